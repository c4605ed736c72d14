"""What a user gets: typed values in a fixed order, texts, entities, the trace of steps, the evidence, warnings, tables.

Nothing is turned into Python values before it is asked for; the execution behind an answer is kept until the answer goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.algebra import Entities, Facts, Names, Node, Shown
from condgraph.engine.describe import describe, tree
from condgraph.engine.execute.bags import Bag, Result, order_key
from condgraph.engine.execute.evidence import trace_back
from condgraph.engine.execute.factset import FactSet
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import Entity, Ref, Source
from condgraph.engine.snapshot import readback
from condgraph.engine.tabular import Tabular, arrow_table
from condgraph.engine.values import Kind, Quantity, Time, Value, bound_text, text_of

if TYPE_CHECKING:
    import pyarrow

    from condgraph.engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of the program gave: its operator in words, how many results, the first few of them, a remark."""

    function: str
    operator: str
    size: int
    sample: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        shown = ", ".join(self.sample) + (", ..." if self.size > len(self.sample) else "")
        return f"{self.function}: {self.size}" + (f" ({shown})" if shown else "") + (f"; {self.note}" if self.note else "")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A statement an answer rests on, with every `(source, row)` it stands in; a membership has the predicate "instance of"."""

    subject: Entity
    predicate: str
    object: Entity | Value
    qualifiers: tuple[tuple[str, Entity | Value], ...]
    sources: tuple[tuple[Source, int], ...]

    def __str__(self) -> str:
        text = f"{self.subject.name} | {self.predicate} | {_shown(self.object)}"
        if self.qualifiers:
            text += " (" + ", ".join(f"{key}: {_shown(value)}" for key, value in self.qualifiers) + ")"
        return text + "  [" + "; ".join(s.name + (f", row {row}" if row else "") for s, row in self.sources) + "]"


class EvidenceList(Sequence[Evidence]):
    """The evidence of an answer, each statement read when it is looked at."""

    def __init__(self, snapshot: Snapshot, statements: list[int], memberships: list[tuple[int, int]]) -> None:
        self._snapshot, self._statements, self._memberships = snapshot, statements, memberships

    def __len__(self) -> int:
        return len(self._statements) + len(self._memberships)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        if at < len(self._statements):
            return self._statement(self._statements[at])
        return self._membership(*self._memberships[at - len(self._statements)])

    def __iter__(self) -> Iterator[Evidence]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} statements of evidence>"

    def _statement(self, number: int) -> Evidence:
        snapshot = self._snapshot
        found, places = next(readback.statements(snapshot, np.array([number], np.int32)))
        return Evidence(
            self._entity(found.subject),
            found.predicate,
            self._resolve(found.object),
            tuple((key, self._resolve(value)) for key, value in found.qualifiers),
            tuple((snapshot.source_of(s), row) for s, row in places),
        )

    def _membership(self, entity: int, concept: int) -> Evidence:
        snapshot = self._snapshot
        places = readback.membership_sources(snapshot, entity, concept)
        sources = tuple((snapshot.source_of(s), row) for s, row in places)
        return Evidence(snapshot.entity(entity), "instance of", snapshot.entity(concept), (), sources)

    def _entity(self, ident: str) -> Entity:
        return self._snapshot.entity(self._snapshot.identified(ident))

    def _resolve(self, value: Ref | Value) -> Entity | Value:
        return self._entity(value.id) if isinstance(value, Ref) else value


def _shown(value: Any) -> str:
    return value.name if isinstance(value, Entity) else text_of(value)


class Answer(Tabular):
    """The answer to one program.

    `values` are typed: `str`, `Quantity`, `Time`, `int` (a count), `bool` (a verification); the fixed order is that of entities
    (name, then id), and for values: numbers by unit and size, times, texts. `texts` are the same as distinct strings.
    """

    def __init__(
        self,
        run: Run,
        plan: Node,
        *,
        program: Any = "",
        language: str = "kopl",
        steps: Sequence[tuple[str, Node]] = (),
        warnings: Sequence[str] = (),
        limit: int | None = None,
    ) -> None:
        self.run, self.plan, self.language = run, plan, language
        self._program = program
        self._steps, self._warnings, self._limit = steps, warnings, limit
        self._found: tuple[list[Any], list[str]] | None = None
        self._texts: list[str] | None = None
        #: The compiled queries of other targets; None for an answer computed in process.
        self.cypher: str | None = None
        self.sparql: str | None = None

    @property
    def program(self) -> str:
        """The program as text."""
        return self._program if isinstance(self._program, str) else json.dumps(self._program, ensure_ascii=False, default=str)

    # -- values -----------------------------------------------------------------------------------------------------------

    def _outcome(self) -> tuple[list[Any], list[str]]:
        """Values and their texts, in order, cut at the limit; worked out once."""
        if self._found is None:
            self._found = self._work_out()
        return self._found

    def _work_out(self) -> tuple[list[Any], list[str]]:
        found: Any = self.run.results[id(self.plan)]
        snapshot = self.run.snapshot
        if isinstance(found, FactSet):
            found = found.ends()
        if isinstance(found, Bag):
            values, texts = found.values_and_texts()
            if len(values) > 1 and not found.in_order():
                order = sorted(range(len(values)), key=lambda i: (order_key(values[i]), texts[i]))
                values, texts = [values[i] for i in order], [texts[i] for i in order]
        elif found is None:
            values, texts = [], []
        elif isinstance(found, (bool, int, float)):
            values, texts = [found], [text_of(found)]
        else:
            values = texts = snapshot.texts.take(snapshot.entity_name[found])
        if self._limit is not None and len(values) > self._limit:
            self._cut = len(values) - self._limit
            values, texts = values[: self._limit], texts[: self._limit]
        return values, texts

    _cut = 0

    @property
    def values(self) -> list[Result]:
        """Typed values in the fixed order."""
        return self._outcome()[0]

    @property
    def texts(self) -> list[str]:
        """The values as distinct strings, in the order of `values`."""
        if self._texts is None:
            self._texts = list(dict.fromkeys(self._outcome()[1]))
        return self._texts

    @cached_property
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order; empty where it has none."""
        snapshot = self.run.snapshot
        found: Any = self.run.results[id(self.plan)]
        if isinstance(self.plan, Entities):
            numbers = found.tolist()
        elif isinstance(self.plan, Facts):
            numbers = found.ends().tolist()
        elif isinstance(self.plan, Names):
            numbers = self.run.entities(self.plan.entities).tolist()
        elif isinstance(self.plan, Shown):
            numbers = self.run.entities(self.plan.rows).tolist()
        elif isinstance(found, Bag):
            numbers = sorted({i for part in found.parts if part.kind in ("ent", "name") for i in part.ids.tolist()})
        else:
            numbers = []
        return [snapshot.entity(i) for i in numbers[: self._limit]]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "\n".join(self.texts)

    def __repr__(self) -> str:
        shown = ", ".join(self.texts[:5]) + (", ..." if len(self.texts) > 5 else "")
        return f"<Answer of {len(self.values)}: {shown}>"

    # -- how it came about ------------------------------------------------------------------------------------------------

    @cached_property
    def trace(self) -> list[Step]:
        """What each step of the program gave, in its order."""
        return [self._step(function, node) for function, node in self._steps or [(type(self.plan).__name__, self.plan)]]

    def _step(self, function: str, node: Node) -> Step:
        size, sample = self._size(node)
        return Step(function, describe(node), size, sample, self.run.notes.get(id(node), ""))

    def _size(self, node: Node) -> tuple[int, tuple[str, ...]]:
        snapshot = self.run.snapshot
        found: Any = self.run.outcome(node)
        if isinstance(found, FactSet):
            found = found.ends()
        if isinstance(found, Bag):
            first = [part.take(np.arange(min(3, len(part.ids)))) for part in found.parts[:1]]
            return len(found), tuple(Bag(found.scope, first).texts())
        if isinstance(found, (bool, int, float)):
            return 1, (text_of(found),)
        return len(found), tuple(snapshot.texts.take(snapshot.entity_name[found[:3]]))

    @cached_property
    def evidence(self) -> EvidenceList:
        """The statements the answer rests on, with their sources."""
        statements, memberships = trace_back(self.run, self.plan)
        return EvidenceList(self.run.snapshot, statements.tolist(), memberships)

    @cached_property
    def warnings(self) -> list[str]:
        """What a user should know: what was left out, cut, or normalised; for an empty answer, the step that emptied it."""
        found = [*self._warnings, *self._noticed()]
        values, _ = self._outcome()
        if self._cut:
            found.append(f"{self._cut} more values are not shown (limit {self._limit})")
        if not values and (emptied := next((step for step in self.trace if step.size == 0), None)) is not None:
            found.append(f"the answer is empty: {emptied.function} gave nothing, {emptied.operator}")
        return found

    def _noticed(self) -> list[str]:
        """What was noticed while the program ran."""
        return self.run.warnings

    def explain(self) -> str:
        """The program, its plan with what each operator gave, and warnings, as text."""
        notes = {}
        for node in self.run.order:
            size, sample = self._size(node)
            unit = {True: "entities"}.get(isinstance(node, Entities), "facts" if isinstance(node, Facts) else "values")
            notes[id(node)] = f"{size} {unit}" + (f": {', '.join(sample)}" if sample else "")
        lines = [self.program, "", tree(self.plan, notes)] if self.program else [tree(self.plan, notes)]
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)

    # -- tables -----------------------------------------------------------------------------------------------------------

    def data(self) -> list[dict[str, Any]]:
        """One record a value: its `text` and `type`, and as the type asks `id` and `name`, `number` and `unit`, `count`, `truth`,
        or `precision`, `start` and `end` (the first moment and the first one after it, as ISO text; None for an open side).
        """
        entities: list[Entity | None]
        values, texts = self._outcome()
        entities = list(self.entities) if isinstance(self.plan, (Entities, Facts, Names)) else []
        entities.extend([None] * (len(values) - len(entities)))
        return [_record(*record) for record in zip(values, texts, entities, strict=False)]

    def to_arrow(self) -> pyarrow.Table:
        """The same as a pyarrow Table; every column is nullable, columns that nothing fills are left out."""
        return arrow_table(self.data(), {"number": "double", "count": "int64", "truth": "bool"})


def _record(value: Any, text: str, entity: Entity | None) -> dict[str, Any]:
    record: dict[str, Any] = {"text": text}
    entity = value if isinstance(value, Entity) else entity
    if entity is not None:
        return record | {"type": "entity", "id": entity.id, "name": entity.name}
    if isinstance(value, bool):
        return record | {"type": "truth", "truth": value}
    if isinstance(value, int):
        return record | {"type": "count", "count": value}
    if isinstance(value, Quantity):
        return record | {"type": Kind.QUANTITY.name.lower(), "number": float(value.number), "unit": value.unit}
    if isinstance(value, Time):
        bounds = {"start": bound_text(value.start), "end": bound_text(value.end)}
        return record | {"type": Kind.TIME.name.lower(), "precision": value.precision.name.lower()} | bounds
    return record | {"type": "text" if isinstance(value, str) else "unknown"}
