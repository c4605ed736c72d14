"""What a function from outside is shown: the values of its arguments, and the rows that carry them
with their columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.engine.algebra import External
from condgraph.engine.execute.bags import Bag, Part
from condgraph.engine.external import Asked, FunctionArgument, FunctionCall, FunctionRow
from condgraph.engine.operands import Operand

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


def function_call(run: Run, node: External, asked: Asked, operands: list[Operand]) -> FunctionCall:
    """The call with everything that is known of it."""
    cells = _cells(run, node)
    names = dict(node.options)
    known: dict[int, FunctionRow] = {}
    arguments = []
    for at, (argument, operand) in enumerate(zip(node.arguments, operands, strict=True), 1):
        carriers = _carriers(run, run.results[id(argument)], len(operand.values))
        rows = tuple(None if one is None else _row(run, one, cells, known) for one in carriers)
        name = names.get(f"argument {at}", "")
        arguments.append(FunctionArgument(name, tuple(operand.values), tuple(operand.texts), rows))
    context = (asked.question, asked.step, asked.words, asked.target_type)
    return FunctionCall(node.name, tuple(arguments), *context, dict(node.options))


def _carriers(run: Run, found: Any, count: int) -> list[int | None]:
    """The entity that carries each value of an argument."""
    if not isinstance(found, Bag):
        return [None] * count
    carriers: list[int | None] = []
    for part in found.parts:
        if part.kind in ("name", "row"):
            carriers.extend(part.carriers.tolist())
        elif part.kind == "given":
            carriers.extend([None] * len(part.ids))
        else:
            carriers.extend(run.snapshot.subjects(part.carriers).tolist())
    return carriers


def _cells(run: Run, node: External) -> dict[int, dict[str, list[str]]]:
    """The texts of the columns of each row, by entity."""
    snapshot = run.snapshot
    found: dict[int, dict[str, list[str]]] = {}
    for facts in node.about:
        numbers = run.facts(facts).all()
        split = snapshot.split(numbers)
        parts = [Part("ent", snapshot.relation_object.take(numbers[:split]), numbers[:split])]
        parts.append(Part("att", numbers[split:] - snapshot.relations, numbers[split:]))
        texts = [text for part in parts if len(part.ids) for text in Bag(run, [part]).texts()]
        for number, subject, text in zip(numbers.tolist(), snapshot.subjects(numbers).tolist(), texts, strict=True):
            several = found.setdefault(subject, {}).setdefault(snapshot.predicate_name(snapshot.predicate_of(number)), [])
            if text not in several:
                several.append(text)
    return found


def _row(run: Run, number: int, cells: dict[int, dict[str, list[str]]], known: dict[int, FunctionRow]) -> FunctionRow:
    row = known.get(number)
    if row is None:
        snapshot = run.snapshot
        entity = snapshot.entity(number)
        places = snapshot.arrays.get("ent.source")
        place = int(places[number]) if len(places) else -1
        source = snapshot.schema.sources[place] if place >= 0 else ""
        columns = {name: tuple(cells[number][name]) for name in sorted(cells.get(number, ()))}
        row = known[number] = FunctionRow(entity.id, entity.name, source, entity.row, columns)
    return row
