"""What the compiler asks of a layout: how a database stores entities, statements and values, as
expressions, patterns and clauses.

`CondgraphLayout` (`cypher.layout.paths`) answers for the graphs that condgraph writes. A database
that somebody else made is asked by another class. It has entities, concepts, relations and
attributes in some form, which is what the abstract methods are about. It may well have no ids but
those of the server, no statement nodes, no qualifiers, no validity, no sources and rows: for these
a layout need not answer. `missing` says so of an operator before anything runs, and the methods
raise `UnsupportedError`.

Variables (`e` an entity, `c` a concept, `f` a statement, `o` its object, `q` a qualifier) are given
as they are written, and tests on them as `= $p.p1` or `IN $p.p1`. An entity is a node that a variable
holds; a statement is whatever tells it from others, a relationship or a list of an entity and a
property, held by a variable behind its clauses. Values are cells (`cypher.layout.cells`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Final, NoReturn

from condgraph.cypher.layout.cells import Bound, Cell
from condgraph.cypher.layout.scan import Match, Wanted, Writing
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Family, Node
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind, Number, Quantity, Time, Value, as_float, text_of

TARGET: Final = "Neo4j"
#: What operators ask for that many databases do not have.
_OPTIONAL: Final[dict[type[Node], str]] = {
    **dict.fromkeys((alg.WhereQualifier, alg.Qualifiers, alg.QualifierKeys), "qualifiers"),
    **dict.fromkeys((alg.During, alg.DuringAny, alg.WhereValidity, alg.Validity), "times at which statements hold"),
    **dict.fromkeys((alg.Neighbour, alg.RowNumbers), "rows of tables"),
}


class Layout(ABC):
    """How a database is laid out. Methods that are not abstract are about what only some databases
    have.
    """

    __slots__ = ()
    #: Whether it has a place for all that the algebra knows, so that nothing is ever missing.
    complete: ClassVar[bool] = False
    #: Whether the schema says of every value of what type and unit it is, so that nobody has to look.
    trusted: ClassVar[bool] = True

    def missing(self, node: Node) -> str | None:
        """What the layout lacks for an operator, in words; None where it can be asked. Here: what
        the optional methods are for.
        """
        if isinstance(node, alg.Scan | alg.AllEntities) and node.source is not None:
            return "sources of statements"
        if isinstance(node, alg.Members) and not isinstance(node.concepts, alg.ByName):
            return "members of concepts that are worked out"
        return _OPTIONAL.get(type(node))

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

    # -- statements --------------------------------------------------------------------------------

    @abstractmethod
    def attributes(self, writing: Writing, wanted: Wanted) -> Match:
        """The statements whose objects are values."""

    @abstractmethod
    def relations(self, writing: Writing, wanted: Wanted) -> Match:
        """The statements whose objects are entities; in the family "any" those of values as well."""

    def is_statement(self, f: str) -> str:
        """A condition that tells statements from what else the database has between nodes."""
        return "true"

    def indexed(self, kinds: set[Kind]) -> bool:
        """Whether an index has all values of an attribute that has values of these kinds."""
        return False

    def by_kind(self, v: str, kind: Kind) -> str:
        """The hint to take the index of an attribute's values of a kind."""
        return ""

    @abstractmethod
    def object(self, o: str, family: Family) -> Cell:
        """The object of a statement, of rendered clauses, as a value. That of an attribute is a node
        or map with the fields of a cell.
        """

    @abstractmethod
    def object_cell(self, o: str, family: Family) -> str:
        """The object of a statement that may be an entity as a value, as a whole."""

    def kind_of_object(self, o: str) -> str:
        """The type of an object that may be an entity."""
        return f"CASE WHEN {self.is_entity(o)} THEN 'entity' ELSE {self.object(o, 'attribute').kind} END"

    @abstractmethod
    def type(self, f: str) -> str:
        """What says the predicate of a statement, which `predicate_of` reads."""

    @abstractmethod
    def predicate(self, f: str) -> str:
        """The predicate of a statement as a text."""

    def predicate_of(self, type_name: str) -> str:
        """The predicate that `type` gave."""
        return type_name

    def text_cell(self, text: str) -> str:
        """A text that no value has stored as a value, as a whole."""
        return f"{{kind: 'text', key: {text}, text: {text}}}"

    # -- sources -----------------------------------------------------------------------------------

    def in_source(self, source: str, f: str, value: str | None) -> str:
        """A condition: a statement stands in a source; `value` is its object where that may be a
        value.
        """
        self._lacks("sources of statements")

    def standing_in(self, writing: Writing, e: str, source: str) -> list[str]:
        """Queries that return the entities that are rows of a source, or stand in its statements."""
        self._lacks("sources of statements")

    def place(self, f: str, value: str | None) -> str:
        """Where a statement stands in its first source."""
        return "0"

    # -- qualifiers and validity -------------------------------------------------------------------

    def qualifiers(self, f: str, o: str, family: Family, q: str) -> list[str]:
        """Clauses, each of which leaves qualifiers of a statement; together they leave all."""
        self._lacks("qualifiers")

    def qualifier(self, q: str) -> Cell:
        """A qualifier as a value."""
        return Bound(q)

    def qualifier_name(self, q: str) -> str:
        """The key of a qualifier."""
        self._lacks("qualifiers")

    def referred(self, q: str, e: str) -> str:
        """The pattern of the entity that a qualifier is."""
        self._lacks("qualifiers")

    def refer(self, q: str, e: str) -> str:
        """A clause that binds the entity that a qualifier is, or null."""
        return f"OPTIONAL MATCH {self.referred(q, e)}"

    def validity(self, f: str) -> tuple[str, str]:
        """From when until when a statement holds, as `engine.values` has bounds."""
        self._lacks("times at which statements hold")

    def validity_cell(self, f: str) -> str:
        """The same as a value, as a whole."""
        self._lacks("times at which statements hold")

    # -- what an answer rests on -------------------------------------------------------------------

    def statement(self, writing: Writing, f: str, s: str, o: str, family: Family) -> str:
        """A statement with all that is kept of it, as `cypher.witness.restore` takes it."""
        self._lacks("evidence")

    def memberships(self, writing: Writing, concepts: str, members: str) -> list[list[str]]:
        """Queries of the memberships, as they were stated, that put a list of entities under a list
        of concepts, and of the subclasses between.
        """
        self._lacks("evidence")

    def memberships_in(self, writing: Writing, names: Sequence[str], members: str) -> list[list[str]] | None:
        """The same for the concepts of some names, where no nodes stand for them; else None."""
        return None

    def memberships_of(self, writing: Writing, members: str, most: int) -> list[list[str]]:
        """Queries of the memberships, as they were stated, that a list of entities are an end of: at
        most so many each.
        """
        self._lacks("evidence")

    # -- names -------------------------------------------------------------------------------------

    def any_kind(self, e: str, kinds: Collection[EntityKind]) -> str:
        """A condition on an entity: its kind is one of these; for a query that is written once."""
        return self.of_kinds(e, str([int(kind) for kind in kinds]))

    def subjects_of(self, predicates: Sequence[str]) -> str:
        """Clauses that leave the subjects `s` of statements of some predicates."""
        self._lacks("the names of subjects")

    def relations_to(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """Clauses that leave the entities `o` that relations of some predicates (None: all) have at
        their end, from `s`. `source` is the parameter of the source they stand in; `table` says
        that it has statements of its own rows alone. A condition can follow, behind `AND`.
        """
        self._lacks("the names of objects")

    def values_of(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """The same of values `o` of attributes, each a node or map with the fields of a cell and its
        `predicate`; `$attributes` holds their predicates, by `predicate_key`.
        """
        self._lacks("the texts of values")

    def value_id(self, o: str) -> str:
        """What tells a value of an attribute from others."""
        self._lacks("the texts of values")
