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

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, Final, NamedTuple

from condgraph.cypher.layout.cells import Bound, Cell
from condgraph.cypher.layout.entities import EntityLayout
from condgraph.cypher.layout.scan import Match, Wanted, Writing
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Family, Node
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind

#: What operators ask for that many databases do not have.
_OPTIONAL: Final[dict[type[Node], str]] = {
    **dict.fromkeys((alg.WhereQualifier, alg.Qualifiers, alg.QualifierKeys), "qualifiers"),
    **dict.fromkeys((alg.During, alg.DuringAny, alg.WhereValidity, alg.Validity), "times at which statements hold"),
    **dict.fromkeys((alg.Neighbour, alg.RowNumbers), "rows of tables"),
}


class Direct(NamedTuple):
    """A value as the database stores it, of one plain type: "text", "boolean", "integer", "float", "day";
    `cell` is the same as a value.
    """

    expression: str
    kind: str
    cell: Cell


class Layout(EntityLayout):
    """How a database is laid out. Methods that are not abstract are about what only some databases
    have.
    """

    __slots__ = ()
    #: Whether it has a place for all that the algebra knows, so that nothing is ever missing.
    complete: ClassVar[bool] = False
    #: Whether the schema says of every value of what type and unit it is, so that nobody has to look.
    trusted: ClassVar[bool] = True
    #: Whether all numbers of values are floats, each of which has one that is the next.
    floats: ClassVar[bool] = False
    #: Whether statements that are equal in all but their ids are several.
    parallel: ClassVar[bool] = False

    def missing(self, node: Node) -> str | None:
        """What the layout lacks for an operator, in words; None where it can be asked. Here: what
        the optional methods are for.
        """
        if isinstance(node, alg.Scan | alg.AllEntities) and node.source is not None:
            return "sources of statements"
        if isinstance(node, alg.Members) and not isinstance(node.concepts, alg.ByName):
            return "members of concepts that are worked out"
        return _OPTIONAL.get(type(node))

    def remarks(self, plan: Node) -> list[str]:
        """What a plan takes otherwise here than in process, as warnings of its answer."""
        return []

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

    # -- what the server groups by and sums up -----------------------------------------------------

    def direct(self, e: str, predicate: str, concepts: Sequence[str] = ()) -> Direct | None:
        """An attribute of an entity, which is in a concept of these names, null where it has none; None
        where values are no plain ones, or several.
        """
        return None

    def direct_qualifier(self, f: str, predicates: Sequence[str], key: str) -> Direct | None:
        """The same of a qualifier of statements of some predicates."""
        return None

    def way(self, r: str, a: str, b: str, predicates: Sequence[str], *, outward: bool) -> str | None:
        """The pattern of a relation from one entity to another; None where there is none."""
        return None

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
        """A statement with all that is kept of it, as `cypher.compile.plan.restore` takes it."""
        self._lacks("evidence")

    def memberships(self, writing: Writing, concepts: str, members: str) -> list[list[str]]:
        """Queries of the memberships, as they were stated, that put a list of entities under a list
        of concepts, and of the subclasses between.
        """
        self._lacks("evidence")

    def memberships_in(self, writing: Writing, names: Sequence[str], members: str) -> list[list[str]] | None:
        """The same for the concepts of some names, where no nodes stand for them; else None."""
        return None

    def concepts_named(self, writing: Writing, names: Sequence[str]) -> list[str]:
        """The concepts of some names for which no nodes stand, as `described` gives entities."""
        return []

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
