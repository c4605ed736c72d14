"""An answer that a server gave: the rows of one query, read as typed values in the same order as in
process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from condgraph.cypher.compile.plan import Compiled
from condgraph.cypher.layout.base import value_of
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.records import entity_of
from condgraph.engine.algebra import Count, Scalar, Shown
from condgraph.engine.bounds import cached, kept, timed
from condgraph.engine.describe import describe, tree
from condgraph.engine.execute.aggregates import median_of
from condgraph.engine.execute.bags import order_key
from condgraph.engine.execute.grid import Grid, grid_size
from condgraph.engine.execute.left_out import LeftOut, left_out_warnings
from condgraph.engine.execute.number_texts import summed_numbers
from condgraph.engine.facts import Entity
from condgraph.engine.lowered import Step
from condgraph.engine.stored_answer import StoredAnswer
from condgraph.engine.values import NO_UNIT, Quantity, text_of

if TYPE_CHECKING:
    from condgraph.cypher.queries import AskingStore
    from condgraph.engine.execute import Run
    from condgraph.engine.lowered import Lowered
    from condgraph.engine.store import Request


class Neo4jAnswer(StoredAnswer):
    """The answer to one program, with the Cypher that gave it.

    The trace is one further query; so are the evidence, and the warnings about values that were
    left out. Each is asked when somebody first looks at it. Where the plan is finished in process
    (`cypher.compile.plan.lowered`), `_rows` are the statements it rests on, and `_local` is the
    answer from these.
    """

    _store: AskingStore

    def __init__(
        self, store: AskingStore, request: Request, lowered: Lowered, compiled: Compiled, rows: Sequence[dict[str, Any]]
    ) -> None:
        super().__init__(store, request, lowered)
        self._compiled, self._rows = compiled, rows
        self.cypher = pasteable(compiled)

    # -- values ------------------------------------------------------------------------------------

    def _work_out(self) -> tuple[list[Any], list[str]]:
        if self._grouped is not None:
            values, texts = self._grid().values_and_texts()
            if self._limit is not None and len(values) > self._limit:
                self._cut = len(values) - self._limit
            return values[: self._limit], texts[: self._limit]
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

    @kept
    def _grouped(self) -> Run | None:
        """The tables of groups that the server summed up; None of other answers, and where it met values
        that it does not sum up as the client does.
        """
        if self._compiled.columns is None:
            return None
        from condgraph.cypher.groups import tables_of

        found = tables_of(self.plan, self._compiled.columns, self._rows[0]["rows"])
        if found is None:
            self._compiled = self._store.statements_of(self.plan)
            self._rows = self._store.run(self._compiled)
            self.cypher = pasteable(self._compiled)
        return found

    def _grid(self) -> Grid:
        grouped = self._grouped
        return super()._grid() if grouped is None else grouped.results[id(self.plan)]

    def _pairs(self) -> list[tuple[Any, str]]:
        shape, rows = self._compiled.shape, self._rows
        if shape == "entities":
            return [(entity_of(*row), row[1]) for row in rows[0]["rows"]]
        if shape == "values":
            return list(map(_read, self._cells))
        if shape == "count":
            return [(row["count"], str(row["count"])) for row in rows]
        if shape == "median":
            return [(found, text_of(found)) for row in rows if (found := self._median(row)) is not None]
        if shape == "predicates":
            return [(name, name) for name in (self._compiled.layout.predicate_of(row["type"]) for row in rows)]
        truths = [row["satisfied"] > 0 if shape == "some" else row["found"] for row in rows]
        return [(truth, text_of(truth)) for truth in truths]

    def _median(self, row: dict[str, Any]) -> Quantity | None:
        """The median from the middle of the numbers, or from all texts where nothing is a number."""
        if not row["numbers"]:
            numbers = summed_numbers(row["rows"])
            return None if numbers is None else median_of(numbers, NO_UNIT)
        cells = [dict(zip(self._compiled.fields, cell, strict=True)) | {"kind": self._compiled.kind} for cell in row["rows"]]
        found: list[Any] = list(map(value_of, cells))
        return median_of([value.number for value in found], found[0].unit)

    @cached
    def _cells(self) -> list[dict[str, Any]]:
        """The values as the server has them."""
        fields, kind = self._compiled.fields, self._compiled.kind
        listed = next(row["rows"] for row in self._rows if not row.get("held"))
        cells = [dict(zip(fields, cell, strict=True)) for cell in listed]
        if kind is not None:
            for cell in cells:
                cell["kind"] = kind
        return cells

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order."""
        shape = self._compiled.shape
        if shape in ("witness", "groups"):
            return self._local.entities
        found: dict[str, Entity] = {}
        if shape == "entities" or isinstance(self.plan, Shown):
            listed = next(row["rows"] for row in self._rows if row.get("held", True))
            found = {row[0]: entity_of(*row) for row in listed}
        elif shape == "values":
            held = [cell for cell in self._cells if cell.get("held")]
            if self._compiled.distinct:
                # Of several entities that carry one name the first stays.
                held.sort(key=lambda cell: str(cell["id"]), reverse=True)
                held = list({(cell["kind"] == "entity" and cell["id"], cell["text"]): cell for cell in held}.values())
            found = {cell["id"]: _entity_in(cell) for cell in held}
        return sorted(found.values(), key=lambda entity: (entity.name, entity.id))[: self._limit]

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._store.schema.telling

    # -- how it came about -------------------------------------------------------------------------

    @kept
    def _witness(self) -> Run:
        """The plan run in process on the statements it rests on; one further query, unless they are
        there already.
        """
        if self._compiled.shape != "witness":
            return self._store.witness(self.plan)
        from condgraph.cypher.compile.plan import run_witness

        return run_witness(self.plan, self._rows, self._store.known_sources, self._compiled.layout)

    @kept
    def trace(self) -> list[Step]:
        """What each step of the program gave, in its order: one further query for all of them."""
        steps = self._steps or [(type(self.plan).__name__, self.plan)]
        grouped = self._grouped
        sizes = self._store.sizes([node for _, node in steps])
        found = []
        for (function, node), size in zip(steps, sizes, strict=True):
            # What is finished in process is counted there.
            if size is None and grouped is not None and id(node) in grouped.results:
                known = grid_size(grouped.results[id(node)])
            else:
                known = self._local._size(node) if size is None else size
            found.append(Step(function, describe(node), *known, self._notes.get(id(node), "")))
        return found

    def _is_nothing(self, node: Scalar, values: list[Any]) -> bool:
        return (
            super()._is_nothing(node, values)
            if node is self.plan and isinstance(node, Count)
            else self._local._is_nothing(node, values)
        )

    def _noticed(self) -> list[str]:
        from condgraph.cypher.compile.plan import lowered
        from condgraph.cypher.warnings import compile_tallies, counted, of_concepts, placed, tested, values_may_warn

        schema = self._store.schema
        found, left = list[str](), LeftOut()
        empty, grouped = not self._outcome()[0], self._grouped
        if grouped is not None and not values_may_warn(self.plan, schema, empty, tables=False):
            found = list(grouped.warnings)
        elif self._compiled.shape in ("witness", "groups") or values_may_warn(self.plan, schema, empty):
            found, left = list(self._witness.warnings), self._witness.left_out
        nodes = tested(self.plan, schema)
        if nodes:
            beyond = lowered(self.plan)
            # What databases that others wrote have under other labels is nobody's mistake.
            apart = of_concepts(self.plan, nodes) if self._compiled.layout.parallel else nodes
            there = [node if beyond.isdisjoint(map(id, node.inputs())) else placed(node, beyond, self._witness) for node in apart]
            tallies = compile_tallies(there, self._store.name, schema, layout=self._compiled.layout)
            left = left + counted(nodes, self._store.run(tallies))
        return found + left_out_warnings(left)

    @timed
    def explain(self) -> str:
        """The program, its plan, the Cypher, and what each step gave."""
        steps = [str(step) for step in self.trace]
        parts = [self.program, tree(self.plan), self.cypher or "", "\n".join(steps)]
        return "\n\n".join(part for part in parts if part)


def _entity_in(cell: dict[str, Any]) -> Entity:
    return entity_of(cell["id"], cell["text"], cell["of"], cell["row"])


def _read(cell: dict[str, Any]) -> tuple[Any, str]:
    """A cell as a value with its text."""
    if cell["kind"] == "entity":
        return _entity_in(cell), cell["text"]
    value = value_of(cell)
    raw = cell.get("raw")
    return value, text_of(value) if raw is None else raw


def pasteable(compiled: Compiled) -> str:
    """The query with its parameters as Browser takes them."""
    return pasted(compiled.text, compiled.parameters)


def pasted(text: str, parameters: Mapping[str, Any]) -> str:
    """A text and its parameters as Browser takes them."""
    return "\n".join([*(f":param {name} => {literal(value)};" for name, value in parameters.items()), text])


def literal(value: Any) -> str:
    """A parameter as a Cypher literal."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)}: {literal(one)}" for name, one in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, date):
        # A time is one as well.
        name = "date" if not isinstance(value, datetime) else "localdatetime" if value.tzinfo is None else "datetime"
        return f"{name}('{value.isoformat()}')"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    # The least number there is cannot be written as it is.
    return "-9223372036854775807 - 1" if value == -(2**63) else repr(value)


def _key(name: str) -> str:
    """A key of a map, in backticks where it is no plain word."""
    if not name:
        return "/* Cypher has no word for an empty key */ empty"
    return name if name.isascii() and name.isidentifier() else quote(name)
