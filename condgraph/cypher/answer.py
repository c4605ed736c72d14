"""An answer that a server gave: the rows of one query, read as typed values in the same order as in process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from condgraph.cypher.compile import Compiled
from condgraph.cypher.layout import predicate_of, value_of
from condgraph.engine.algebra import Node
from condgraph.engine.answer import Answer, EvidenceList, Step
from condgraph.engine.describe import describe, tree
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.execute.bags import order_key
from condgraph.engine.facts import Entity
from condgraph.engine.values import text_of

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore


class Neo4jAnswer(Answer):
    """The answer to one program, with the Cypher that gave it. The trace is one further query, asked when it is looked at."""

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
    ) -> None:
        nothing: Any = None
        super().__init__(nothing, plan, program=program, language=language, steps=steps, warnings=warnings, limit=limit)
        self._graph, self._compiled, self._rows = graph, compiled, rows
        self.cypher = pasteable(compiled)

    def _work_out(self) -> tuple[list[Any], list[str]]:
        pairs = sorted(self._pairs(), key=lambda pair: (order_key(pair[0]), pair[1]))
        if self._compiled.distinct or self._compiled.shape == "predicates":
            pairs = list({(repr(value), text): (value, text) for value, text in pairs}.values())
        if self._limit is not None and len(pairs) > self._limit:
            self._cut = len(pairs) - self._limit
            pairs = pairs[: self._limit]
        values = [value.name if self._compiled.shape == "entities" else value for value, _ in pairs]
        return values, [text for _, text in pairs]

    def _pairs(self) -> list[tuple[Any, str]]:
        shape, rows = self._compiled.shape, self._rows
        if shape == "entities":
            return [(Entity(row["id"], row["name"]), row["name"]) for row in rows]
        if shape == "count":
            return [(row["count"], str(row["count"])) for row in rows]
        if shape == "some":
            return [(row["satisfied"] > 0, text_of(row["satisfied"] > 0)) for row in rows]
        if shape == "predicates":
            return [(name, name) for name in (predicate_of(row["type"]) for row in rows)]
        found: list[tuple[Any, str]] = []
        for row in rows:
            if row["id"] is not None:
                found.append((Entity(row["id"], row["name"]), row["name"]))
            else:
                value = value_of(row["value"])
                raw = row["value"].get("raw")
                found.append((value, text_of(value) if raw is None else raw))
        return found

    @cached_property
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order."""
        found = {value.id: value for value, _ in self._pairs() if isinstance(value, Entity)}
        return sorted(found.values(), key=lambda entity: (entity.name, entity.id))[: self._limit]

    @cached_property
    def trace(self) -> list[Step]:
        """What each step of the program gave, in its order: one further query for all of them."""
        sizes = self._graph.sizes([node for _, node in self._steps])
        return [
            Step(function, describe(node), size, sample)
            for (function, node), (size, sample) in zip(self._steps, sizes, strict=True)
        ]

    @cached_property
    def evidence(self) -> EvidenceList:
        """Not from Neo4j yet: `graph.snapshot()` gives the same graph in process, whose answers have it."""
        raise UnsupportedError("Neo4j", ["evidence"], hint="ask graph.snapshot(), the same graph in process")

    @cached_property
    def warnings(self) -> list[str]:
        """What a user should know."""
        found = list(self._warnings)
        empty = not self._outcome()[0]
        if self._cut:
            found.append(f"{self._cut} more values are not shown (limit {self._limit})")
        if empty:
            emptied = next((step for step in self.trace if step.size == 0), None)
            if emptied is not None:
                found.append(f"the answer is empty: {emptied.function} gave nothing, {emptied.operator}")
        return found

    def explain(self) -> str:
        """The program, its plan, the Cypher, and what each step gave."""
        steps = [str(step) for step in self.trace]
        parts = [self.program, tree(self.plan), self.cypher or "", "\n".join(steps)]
        return "\n\n".join(part for part in parts if part)


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
    return repr(value)
