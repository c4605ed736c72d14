"""How a layout of Neo4j (`cypher.layout.base`) has entities, concepts and the rows of tables, and by
what keys the values of a program are looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, NoReturn

from condgraph.cypher.layout.cells import Cell
from condgraph.cypher.layout.scan import Writing
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.values import Number, Quantity, Time, Value, as_float, text_of

TARGET: Final = "Neo4j"


class EntityLayout(ABC):
    """Entities, concepts and rows as expressions, patterns and clauses. Methods that are not abstract
    are about what only some databases have.
    """

    __slots__ = ()

    def _lacks(self, what: str) -> NoReturn:
        raise UnsupportedError(TARGET, [what])

    @abstractmethod
    def parameters(self, graph: str) -> dict[str, Any]:
        """The parameters that every query of a graph has."""

    def typed(self, written: str, value: Any) -> str:
        """A value of a query (`cypher.layout.given`) with what the planner has to know of its type, which
        range indexes do not ask for.
        """
        return written

    # -- values of a program -----------------------------------------------------------------------

    def key(self, text: str) -> str:
        """What a text is looked up by, and is equal by."""
        return text

    def handle(self, ident: str) -> str:
        """What an id is looked up by."""
        return ident

    def predicate_key(self, name: str) -> str:
        """What the values of a predicate are looked up by."""
        return name

    def text_order(self, text: str) -> str:
        """What a text is ordered by."""
        return text

    def number_order(self, number: Number) -> str:
        """What breaks the tie among numbers that are one float."""
        return "1"

    def number(self, value: Quantity) -> tuple[Number, bool]:
        """What a number is compared with, and whether that is the number itself."""
        return as_float(value)

    def ranks(self, cell: Cell) -> str:
        """The numbers of a text that begins with one, of a value that a list holds."""
        return cell.ranks

    def given(self, value: Value) -> dict[str, Any]:
        """A value of a program as a map of the fields of a cell."""
        if isinstance(value, str):
            return {"kind": "text", "text": value, "key": self.key(value)}
        if isinstance(value, Quantity):
            return {"kind": "quantity", "text": str(value), "number": as_float(value)[0], "unit": value.unit}
        if isinstance(value, Time):
            precision = int(value.precision)
            return {"kind": "time", "text": str(value), "start": value.start, "end": value.end, "precision": precision}
        return {"kind": "unknown", "text": text_of(value)}

    def one_of(self, writing: Writing, names: tuple[str, ...]) -> str:
        """A test of a key against names."""
        keys = [self.key(name) for name in names]
        return f"= {writing.parameter(keys[0])}" if len(keys) == 1 else f"IN {writing.parameter(keys)}"

    # -- entities ----------------------------------------------------------------------------------

    @abstractmethod
    def entity(self, e: str) -> tuple[str, str]:
        """Any entity or concept of the graph: its pattern, and the condition under which it is one."""

    @abstractmethod
    def named(self, e: str, test: str) -> str:
        """A condition on an entity, bound or not: a test of its name, by `key`."""

    @abstractmethod
    def identified(self, e: str, test: str) -> str:
        """The same of its id, by `handle`."""

    def every(self, e: str, kinds: str) -> list[str]:
        """Clauses that leave all entities of the kinds of a list."""
        pattern, inside = self.entity(e)
        return [f"MATCH {pattern} WHERE {inside} AND {self.of_kinds(e, kinds)}"]

    def by_name(self, e: str, test: str) -> list[str]:
        """Clauses that leave the entities whose names pass a test."""
        return [f"MATCH {self.entity(e)[0]} WHERE {self.named(e, test)}"]

    def by_id(self, e: str, test: str) -> list[str]:
        """The same of ids."""
        return [f"MATCH {self.entity(e)[0]} WHERE {self.identified(e, test)}"]

    def absent(self, k: str, e: str) -> str:
        """Clauses that leave those of some keys `k` that are the name of nothing."""
        pattern, inside = self.entity(e)[0], self.named(e, f"= {k}")
        return f"OPTIONAL MATCH {pattern} WHERE {inside}\nWITH {k}, count({e}) AS {e} WHERE {e} = 0"

    @abstractmethod
    def has_id(self, e: str, ids: str) -> str:
        """A condition on an entity that is bound: its id is one of a list."""

    @abstractmethod
    def of_kinds(self, e: str, kinds: str) -> str:
        """A condition on an entity: its kind (`engine.facts.EntityKind`) is one of a list."""

    @abstractmethod
    def is_entity(self, o: str) -> str:
        """A condition that tells an entity from a value."""

    @abstractmethod
    def id(self, e: str) -> str:
        """The id of an entity."""

    @abstractmethod
    def name(self, e: str) -> str:
        """The name of an entity."""

    def name_key(self, e: str) -> str:
        """What the name of an entity is looked up by."""
        return self.name(e)

    @abstractmethod
    def kind(self, e: str) -> str:
        """The kind of an entity, as a number."""

    @abstractmethod
    def entity_cell(self, e: str) -> str:
        """An entity as a value, as a whole."""

    @abstractmethod
    def name_cell(self, e: str) -> str:
        """The name of an entity as a value, as a whole."""

    @abstractmethod
    def listed(self, e: str) -> str:
        """An entity as an answer lists it: id and name, and its kind and row where these say more."""

    @abstractmethod
    def described(self, e: str) -> str:
        """An entity with all that is kept of it: `id`, `name`, `kind`, `source`, `row`."""

    # -- concepts ----------------------------------------------------------------------------------

    @abstractmethod
    def members(self, writing: Writing, e: str, names: tuple[str, ...]) -> list[str]:
        """Clauses that leave each entity once that is in a concept of these names, closed under
        subclass.
        """

    @abstractmethod
    def within(self, writing: Writing, e: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
        """A condition: an entity is in a concept of these names; and clauses that give all members,
        each once, to be joined with. No clauses where that is not worth it.
        """

    def members_of(self, writing: Writing, e: str, c: str) -> list[str]:
        """Clauses that go on from concepts that are bound, as `members`."""
        self._lacks("members of concepts that are worked out")

    # -- tables ------------------------------------------------------------------------------------

    def rows(self, e: str, source: str) -> tuple[str, str]:
        """The rows of a table: their pattern, and the condition."""
        self._lacks("rows of tables")

    def by_row(self, e: str) -> str:
        """The hint to look the rows of a table up."""
        return ""

    def row(self, e: str) -> str:
        """The number of a row in its table, null where an entity is none."""
        return "null"

    def source(self, e: str) -> str:
        """The table that a row is of."""
        return "null"

    def row_cell(self, e: str) -> str:
        """The number of a row as a value, as a whole."""
        self._lacks("rows of tables")
