"""An answer that a server gave: the rows of one query, read as typed values in the same order as in process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from condgraph.cypher.compile import Compiled
from condgraph.cypher.layout import predicate_of, value_of
from condgraph.engine.algebra import Node, Shown
from condgraph.engine.answer import Answer, EvidenceList, Step
from condgraph.engine.describe import describe, tree
from condgraph.engine.execute.bags import order_key
from condgraph.engine.facts import Entity
from condgraph.engine.values import text_of

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore
    from condgraph.engine.execute.rests import WitnessRun


class Neo4jAnswer(Answer):
    """The answer to one program, with the Cypher that gave it.

    The trace is one further query, and so are the evidence and those warnings that are about values which were left out; each is
    asked when it is first looked at. Where the plan is finished in process (`support.lowered`), `_rows` are the statements it
    rests on, and `_local` is the answer from these.
    """

    def __init__(
        self,
        graph: Neo4jStore,
        plan: Node,
        compiled: Compiled,
        rows: Sequence[dict[str, Any]],
        *,
        program: Any,
        language: str,
        steps: Sequence[tuple[str, Node]],
        warnings: Sequence[str],
        limit: int | None,
        notes: dict[int, str] | None = None,
    ) -> None:
        nothing: Any = None
        super().__init__(nothing, plan, program=program, language=language, steps=steps, warnings=warnings, limit=limit)
        self._graph, self._compiled, self._rows = graph, compiled, rows
        self._notes = notes or {}
        self.cypher = pasteable(compiled)

    # -- values -----------------------------------------------------------------------------------------------------------

    def _work_out(self) -> tuple[list[Any], list[str]]:
        if self._compiled.shape == "witness":
            local = self._local
            found = local._outcome()
            self._cut = local._cut
            return found
        pairs = sorted(self._pairs(), key=lambda pair: (order_key(pair[0]), pair[1]))
        if self._compiled.distinct:
            pairs = list({(repr(value), text): (value, text) for value, text in pairs}.values())
        if self._limit is not None and len(pairs) > self._limit:
            self._cut = len(pairs) - self._limit
            pairs = pairs[: self._limit]
        values = [value.name if self._compiled.shape == "entities" else value for value, _ in pairs]
        return values, [text for _, text in pairs]

    def _pairs(self) -> list[tuple[Any, str]]:
        shape, rows = self._compiled.shape, self._rows
        if shape == "entities":
            return [(Entity(ident, name), name) for ident, name in rows[0]["rows"]]
        if shape == "values":
            return list(map(_read, self._cells))
        if shape == "count":
            return [(row["count"], str(row["count"])) for row in rows]
        if shape == "predicates":
            return [(name, name) for name in (predicate_of(row["type"]) for row in rows)]
        truths = [row["satisfied"] > 0 if shape == "some" else row["found"] for row in rows]
        return [(truth, text_of(truth)) for truth in truths]

    @cached_property
    def _cells(self) -> list[dict[str, Any]]:
        """The values as the server has them."""
        fields, kind = self._compiled.fields, self._compiled.kind
        listed = next(row["rows"] for row in self._rows if not row.get("held"))
        cells = [dict(zip(fields, cell, strict=True)) for cell in listed]
        if kind is not None:
            for cell in cells:
                cell["kind"] = kind
        return cells

    @cached_property
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order."""
        shape = self._compiled.shape
        if shape == "witness":
            return self._local.entities
        found: dict[str, Entity] = {}
        if shape == "entities" or isinstance(self.plan, Shown):
            listed = next(row["rows"] for row in self._rows if row.get("held", True))
            found = {ident: Entity(ident, name) for ident, name in listed}
        elif shape == "values":
            found = {cell["id"]: Entity(cell["id"], cell["text"]) for cell in self._cells if cell.get("held")}
        return sorted(found.values(), key=lambda entity: (entity.name, entity.id))[: self._limit]

    # -- how it came about ------------------------------------------------------------------------------------------------

    @cached_property
    def _witness(self) -> WitnessRun:
        """The plan run in process on the statements it rests on; one further query, unless they are there already."""
        from condgraph.cypher.witness import compile_witness, run_witness

        rows = self._rows
        if self._compiled.shape != "witness":
            rows = self._graph.run(compile_witness(self.plan, self._graph.name, self._graph.schema))
        return run_witness(self.plan, rows, self._graph.known_sources)

    @cached_property
    def _local(self) -> Answer:
        return Answer(self._witness, self.plan, program=self._program, language=self.language, steps=self._steps, limit=self._limit)

    @cached_property
    def trace(self) -> list[Step]:
        """What each step of the program gave, in its order: one further query for all of them."""
        steps = self._steps or [(type(self.plan).__name__, self.plan)]
        sizes = self._graph.sizes([node for _, node in steps])
        found = []
        for (function, node), size in zip(steps, sizes, strict=True):
            # What is finished in process is counted there.
            known = self._local._size(node) if size is None else size
            found.append(Step(function, describe(node), *known, self._notes.get(id(node), "")))
        return found

    @cached_property
    def evidence(self) -> EvidenceList:
        """The statements the answer rests on, with their sources: one further query."""
        return self._local.evidence

    def _noticed(self) -> list[str]:
        from condgraph.cypher.warnings import compile_tallies, left_out, tested, told

        schema = self._graph.schema
        found: list[str] = []
        if self._compiled.shape == "witness" or told(self.plan, schema, not self._outcome()[0]):
            found.extend(self._witness.warnings)
        nodes = tested(self.plan, schema)
        if nodes:
            found.extend(left_out(nodes, self._graph.run(compile_tallies(nodes, self._graph.name, schema))))
        return found

    def explain(self) -> str:
        """The program, its plan, the Cypher, and what each step gave."""
        steps = [str(step) for step in self.trace]
        parts = [self.program, tree(self.plan), self.cypher or "", "\n".join(steps)]
        return "\n\n".join(part for part in parts if part)


def _read(cell: dict[str, Any]) -> tuple[Any, str]:
    """A cell as a value with its text."""
    if cell["kind"] == "entity":
        return Entity(cell["id"], cell["text"]), cell["text"]
    value = value_of(cell)
    raw = cell.get("raw")
    return value, text_of(value) if raw is None else raw


def pasteable(compiled: Compiled) -> str:
    """The query with its parameters as Browser takes them."""
    lines = [f":param {name} => {literal(value)};" for name, value in compiled.parameters.items()]
    return "\n".join([*lines, compiled.text])


def literal(value: Any) -> str:
    """A parameter as a Cypher literal."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {literal(one)}" for name, one in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    # The least number there is cannot be written as it is.
    return "-9223372036854775807 - 1" if value == -(2**63) else repr(value)
