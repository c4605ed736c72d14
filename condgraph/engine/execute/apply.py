"""Operators that call functions on values: native ones, and external ones, which are also shown rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.engine.algebra import Apply, Choose, External, Scalar, Values
from condgraph.engine.bounds import Workers, watched
from condgraph.engine.errors import InterruptedQueryError, PlanError, UnknownNameError, nearest
from condgraph.engine.execute.sets import Bag, Part
from condgraph.engine.external import CallContext, FunctionArgument, FunctionCall, FunctionRow, waited
from condgraph.engine.functions import FUNCTIONS, truth
from condgraph.engine.operands import Inapplicable, Operand
from condgraph.engine.values import Quantity, Time, text_of

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


# -- rows shown to an external function ------------------------------------------------------------
# An external function receives the values of its arguments, and the rows that carry them with their
# columns.


def function_call(run: Run, node: External, asked: CallContext, operands: list[Operand]) -> FunctionCall:
    """Return the call with its context: arguments, their rows, the question and the step."""
    cells = _cells(run, node)
    names = dict(node.options)
    known: dict[int, FunctionRow] = {}
    arguments = []
    for position, (argument, operand) in enumerate(zip(node.arguments, operands, strict=True), 1):
        carriers = _carriers(run, run.results[id(argument)], len(operand.values))
        rows = tuple(None if carrier is None else _row(run, carrier, cells, known) for carrier in carriers)
        name = names.get(f"argument {position}", "")
        arguments.append(FunctionArgument(name, tuple(operand.values), tuple(operand.texts), rows))
    context = (asked.question, asked.step, asked.words, asked.target_type)
    return FunctionCall(node.name, tuple(arguments), *context, dict(node.options))


def _carriers(run: Run, found: Any, count: int) -> list[int | None]:
    """Return the entity that carries each value of an argument, or None."""
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
    """Return the texts of each column, by entity and column name."""
    snapshot = run.snapshot
    cells: dict[int, dict[str, list[str]]] = {}
    for facts in node.about:
        numbers = run.facts(facts).all()
        split = snapshot.split(numbers)
        parts = [Part("ent", snapshot.relation_object.take(numbers[:split]), numbers[:split])]
        parts.append(Part("att", numbers[split:] - snapshot.relations, numbers[split:]))
        texts = [text for part in parts if len(part.ids) for text in Bag(run, [part]).texts()]
        for number, subject, text in zip(numbers.tolist(), snapshot.subjects(numbers).tolist(), texts, strict=True):
            column = cells.setdefault(subject, {}).setdefault(snapshot.predicate_name(snapshot.predicate_of(number)), [])
            if text not in column:
                column.append(text)
    return cells


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


# -- calls -----------------------------------------------------------------------------------------


#: The number of texts of an argument that a warning shows.
_SHOWN = 5
#: External functions run in threads, because they may wait for a remote model.
_WORKERS = Workers("condgraph-functions")


def apply(run: Run, node: Apply) -> Bag:
    """Run a native function; if it has no result, the answer warns why."""
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise UnknownNameError("native function", node.function, candidates=nearest(node.function, FUNCTIONS))
    arguments = [_operand(run, argument) for argument in node.arguments]
    try:
        values = function(arguments, dict(node.options))
    except Inapplicable as error:
        run.warn(str(error))
        values = []
    for argument in arguments:
        for remark in watched(argument.remarks):
            run.warn(remark)
    return Bag.given(run, values)


def choose(run: Run, node: Choose) -> Bag:
    """Return one of two bags, depending on a condition."""
    return run.values(node.then if truth(_operand(run, node.condition)) else node.otherwise)


def external(run: Run, node: External) -> Bag:
    """Call an external function; the answer warns which one, and what it was shown."""
    arguments = [_operand(run, argument) for argument in node.arguments]
    shown = "; ".join(
        ", ".join(argument.texts[:_SHOWN]) + (", ..." if len(argument.texts) > _SHOWN else "") for argument in arguments
    )
    warning = f"{node.name} is not a native function: the configured function answered it, given {shown or 'nothing'}"
    call_arguments: tuple[Any, ...] = (node.name, [list(argument.texts) for argument in arguments], dict(node.options))
    if node.asked is not None:
        call = function_call(run, node, node.asked, arguments)
        warning += f", and {len(call.rows)} row{'' if len(call.rows) == 1 else 's'} with all columns" if call.rows else ""
        call_arguments = (call,)
    run.warn(warning)
    try:
        values = _WORKERS.run(lambda: list(waited(node.call(*call_arguments))))
    except InterruptedQueryError:
        raise
    except Exception as error:
        hint = "llm_function= takes a name, the texts of each argument and options, or one FunctionCall, and gives texts"
        raise PlanError(f"the function {node.name!r} from outside failed: {type(error).__name__}: {error}", hint=hint) from error
    return Bag.given(run, [_typed(value) for value in values])


def _typed(value: Any) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Quantity(value) if number else value if isinstance(value, (bool, Quantity, Time)) else str(value)


def _operand(run: Run, node: Values | Scalar) -> Operand:
    result: Any = run.results[id(node)]
    if isinstance(result, Bag):
        values, texts = result.values_and_texts()
        return Operand(values, texts, [])
    return Operand([], [], []) if result is None else Operand([result], [text_of(result)], [])
