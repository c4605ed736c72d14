"""The interface of a layout: how a database stores entities, statements and values, as expressions, patterns and clauses.

`CondgraphLayout` (`cypher.layout.schema`) implements it for graphs that condgraph writes; other classes do for existing
databases. Every database has entities, concepts, relations and attributes in some form, which the abstract methods cover.
It may lack ids other than the server's, statement nodes, qualifiers, validity, sources and rows; a layout need not
implement these. `missing` reports them before anything runs, and the methods raise `UnsupportedError`.

Variables (`e` an entity, `c` a concept, `f` a statement, `o` its object, `q` a qualifier) are passed as text, and tests on
them as `= $p.p1` or `IN $p.p1`. An entity is a node; a statement is identified by a relationship, or by a list of an
entity and a property, bound to a variable after its clauses. Values are cells (`Cell`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, NoReturn, Protocol, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Family, Node
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import (
    UNKNOWN,
    FormedText,
    Kind,
    Number,
    Precision,
    Quantity,
    Time,
    Value,
    as_float,
    formed,
    parse_number,
    text_of,
)

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema


# -- Parameters --------------------------------------------------------------------------------------
# Query parameters are fields of one map: `$p.p1`.


#: The parameter that holds the map.
GIVEN: Final = "p"


def give(parameters: dict[str, Any], name: str, value: Any) -> str:
    """Add a parameter to a query and return its reference.

    >>> parameters = {"graph": "films"}
    >>> give(parameters, "p1", "Nepal"), parameters
    ('$p.p1', {'graph': 'films', 'p': {'p1': 'Nepal'}})
    """
    parameters.setdefault(GIVEN, {})[name] = value
    return f"${GIVEN}.{name}"


# -- Cells -------------------------------------------------------------------------------------------
# Values in the text of a query: an expression for each field, however the value is stored.
#
# Code that compares, orders or prints values gets the expressions from a `Cell`. If values are nodes, the
# cell reads their properties (`Bound`); if they are plain properties, it computes each field. Where a
# query passes on a whole value, in a list or under a name, it passes a node or map with the fields under
# their own names, and the next clause reads it as `Bound`.


#: The fields of a value. `kind` is "text", "quantity", "time", "entity" or "unknown"; `text` is the value
#: as printed, `raw` the text of the source where it differs. A text has a `key`, which equal texts share,
#: and as `unit` the name of its form, if any; a quantity has `number` and `unit` ("1": none) and, where a
#: float loses digits, `exact`; a time has `start`, `end` (seconds) and `precision`. `order` and `ranks`
#: are sort keys where the text or number is not one. `id` is that of the entity that the value is or
#: names; `held` tells whether an answer lists this entity.
Field: TypeAlias = Literal[
    "kind", "text", "raw", "key", "number", "unit", "exact", "start", "end", "precision", "order", "ranks", "id", "held"
]

#: The fields of a value that an answer reads: its own, and the kind and row of the entity that it is.
Listed: TypeAlias = Field | Literal["of", "row"]
#: All fields that an answer reads where the schema tells nothing of the value, in order.
FIELDS: Final[tuple[Listed, ...]] = (
    *("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw", "id", "held", "of", "row"),
)

#: Value types by the word in `kind`.
KINDS: Final = {kind.name.lower(): kind for kind in Kind}


class _FieldOf:
    """A field of a cell as an attribute."""

    _name: Field

    def __set_name__(self, owner: type, name: Field) -> None:
        self._name = name

    def __get__(self, cell: Cell, owner: type) -> str:
        return cell.field(self._name)


class Cell(ABC):
    """A value in a query; `whole` is an expression for a node or map with all of its fields."""

    __slots__ = ()

    @property
    @abstractmethod
    def whole(self) -> str: ...

    @abstractmethod
    def field(self, name: Field) -> str:
        """Return an expression for a field; it is null where the value has none."""

    @property
    @abstractmethod
    def ordered(self) -> str:
        """The sort key of texts (and of entities, by name)."""

    def tested(self, name: Field) -> str:
        """Return the indexed form of a field, for tests where another type makes the comparison false or null anyway."""
        return self.field(name)

    def timed(self, operator: str, value: Time, parameter: Callable[[Any], str]) -> str | None:
        """Return a comparison with a time that is not stored in seconds, or None; `parameter` adds query parameters."""
        return None

    #: The fields as attributes.
    kind = _FieldOf()
    text = _FieldOf()
    raw = _FieldOf()
    key = _FieldOf()
    number = _FieldOf()
    unit = _FieldOf()
    start = _FieldOf()
    end = _FieldOf()
    precision = _FieldOf()
    order = _FieldOf()
    ranks = _FieldOf()
    id = _FieldOf()


class Bound(Cell):
    """A node or map that has the fields under their own names.

    >>> Bound("v3").number, Bound("x1.c").whole
    ('v3.number', 'x1.c')
    """

    __slots__ = ("_whole",)

    def __init__(self, whole: str) -> None:
        self._whole = whole

    @property
    def whole(self) -> str:
        return self._whole

    def field(self, name: Field) -> str:
        return f"{self._whole}.{name}"

    @property
    def ordered(self) -> str:
        """The stored sort key, else the text, else the name of an entity."""
        whole = self._whole
        return f"coalesce({whole}.order, {whole}.text, {whole}.name)"


def value_of(fields: Mapping[str, Any]) -> Value:
    """Build a value (no entity) from the fields of its cell."""
    kind = fields["kind"]
    if kind == "text":
        return formed(str(fields["text"]), fields.get("unit"))
    if kind == "quantity":
        number = fields["number"]
        exact = fields.get("exact")
        if exact is not None:
            return Quantity(parse_number(exact), fields["unit"])
        return Quantity(int(number) if float(number).is_integer() else number, fields["unit"])
    if kind == "time":
        return Time(fields["start"], fields["end"], Precision(fields["precision"]))
    return UNKNOWN


# -- Scans -------------------------------------------------------------------------------------------
# The exchange between the compiler and a layout about a scan of statements.


class QueryScope(Protocol):
    """The part of the compiler that a layout uses: fresh variables, parameters and the schema."""

    schema: StoredSchema

    def name(self, prefix: str) -> str:
        """Return a fresh variable."""
        ...

    def parameter(self, value: Any) -> str:
        """Add a parameter and return its reference."""
        ...


@dataclass(slots=True)
class ScanRequest:
    """The statements that a scan looks for.

    `anchor` is the end it starts from, bound earlier or (`bound` false) any entity; `other` is the other end. `outward` tells
    that the anchor is the subject. `predicates` None means all. `table` is the parameter of a source whose rows are the
    anchors. `conditions` are added to those of the layout. `anchors` is the estimated number of bound anchors.
    """

    fact: str
    anchor: str
    other: str
    predicates: tuple[str, ...] | None
    family: Family
    outward: bool
    bound: bool
    table: str | None
    conditions: list[str]
    anchors: float = float("inf")


@dataclass(slots=True)
class Match:
    """One MATCH that gives statements.

    `cell` is the object as a value, in conditions on the MATCH and after it. `whole` are conditions that read all statements
    from an index, omitted where a test uses an index; `hint` names the index. `after` are clauses after the MATCH that bind
    the statement and the object where a value is a property, which no pattern can bind; the object is then a map with the
    fields of the cell.

    Without a `pattern`, the clauses `before` bind everything, and the conditions follow. `branches` gives several patterns,
    each with a condition, whose rows are combined; `binds` are the variables that they bind. Given labels, the branches cover
    only members of these.
    """

    pattern: str | None
    conditions: list[str]
    cell: Cell
    whole: list[str] = field(default_factory=list)
    hint: str = ""
    after: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    branches: Callable[[Collection[str] | None], list[tuple[str, str]]] | None = None
    binds: tuple[str, ...] = ()


# -- Layouts ----------------------------------------------------------------------------------------

TARGET: Final = "Neo4j"
#: Features used by operators that many databases lack.
_OPTIONAL: Final[dict[type[Node], str]] = {
    **dict.fromkeys((alg.WhereQualifier, alg.Qualifiers, alg.QualifierKeys), "qualifiers"),
    **dict.fromkeys((alg.During, alg.DuringAny, alg.WhereValidity, alg.Validity), "times at which statements hold"),
    **dict.fromkeys((alg.Neighbour, alg.RowNumbers), "rows of tables"),
}


class Direct(NamedTuple):
    """A stored value of one plain type: "text", "boolean", "integer", "float", "day"; `cell` is the same as a value."""

    expression: str
    kind: str
    cell: Cell


class Layout(ABC):
    """The layout of a database. Methods that are not abstract cover what only some databases have."""

    __slots__ = ()
    #: Whether everything in the algebra is supported, so that `missing` reports nothing.
    complete: ClassVar[bool] = False
    #: Whether the schema tells type and unit of every value, so that queries need not read them.
    trusted: ClassVar[bool] = True
    #: Whether all numbers are floats, so that each has a next one.
    floats: ClassVar[bool] = False
    #: Whether statements that differ only by id count as several.
    parallel: ClassVar[bool] = False
    #: Whether concepts are labels without nodes.
    labelled: ClassVar[bool] = False
    #: Whether an index finds entities by tests of names or ids.
    looks_up: ClassVar[bool] = True

    def _lacks(self, what: str) -> NoReturn:
        raise UnsupportedError(TARGET, [what])

    @abstractmethod
    def parameters(self, graph: str) -> dict[str, Any]:
        """Return the parameters that every query of a graph has."""

    def typed(self, written: str, value: Any) -> str:
        """Annotate a parameter (`give`) with the type that the planner needs to know; range indexes do not need it."""
        return written

    # -- values of a program -----------------------------------------------------------------------

    def key(self, text: str) -> str:
        """Return the form in which a text is looked up and compared for equality."""
        return text

    def handle(self, ident: str) -> str:
        """Return the form in which an id is looked up."""
        return ident

    def predicate_key(self, name: str) -> str:
        """Return the form by which the values of a predicate are looked up."""
        return name

    def text_order(self, text: str) -> str:
        """Return the sort key of a text."""
        return text

    def number_order(self, number: Number) -> str:
        """Return what breaks a tie among numbers that are the same float."""
        return "1"

    def number(self, value: Quantity) -> tuple[Number, bool]:
        """Return the number to compare with, and whether it is exact."""
        return as_float(value)

    def ranks(self, cell: Cell) -> str:
        """Return the numbers of a text that begins with one, for a value in a list."""
        return cell.ranks

    def given(self, value: Value) -> dict[str, Any]:
        """Return a value of a program as a map of cell fields."""
        if isinstance(value, str):
            result = {"kind": "text", "text": str(value), "key": self.key(value)}
            return result | {"unit": value.form} if isinstance(value, FormedText) else result
        if isinstance(value, Quantity):
            return {"kind": "quantity", "text": str(value), "number": as_float(value)[0], "unit": value.unit}
        if isinstance(value, Time):
            precision = int(value.precision)
            return {"kind": "time", "text": str(value), "start": value.start, "end": value.end, "precision": precision}
        return {"kind": "unknown", "text": text_of(value)}

    def one_of(self, scope: QueryScope, names: tuple[str, ...]) -> str:
        """Return a test of a key against names."""
        keys = [self.key(name) for name in names]
        return f"= {scope.parameter(keys[0])}" if len(keys) == 1 else f"IN {scope.parameter(keys)}"

    # -- entities ----------------------------------------------------------------------------------

    @abstractmethod
    def entity(self, e: str) -> tuple[str, str]:
        """Return the pattern of any entity or concept of the graph, and its condition."""

    @abstractmethod
    def named(self, e: str, test: str) -> str:
        """Return a condition that the name (`key`) of an entity, bound or not, passes a test."""

    @abstractmethod
    def identified(self, e: str, test: str) -> str:
        """Return a condition that the id (`handle`) of an entity passes a test."""

    def every(self, e: str, kinds: str) -> list[str]:
        """Return clauses that leave all entities whose kind is in a list."""
        pattern, inside = self.entity(e)
        return [f"MATCH {pattern} WHERE {inside} AND {self.of_kinds(e, kinds)}"]

    def by_name(self, e: str, test: str) -> list[str]:
        """Return clauses that leave the entities whose names pass a test."""
        return [f"MATCH {self.entity(e)[0]} WHERE {self.named(e, test)}"]

    def by_id(self, e: str, test: str) -> list[str]:
        """Return clauses that leave the entities whose ids pass a test."""
        return [f"MATCH {self.entity(e)[0]} WHERE {self.identified(e, test)}"]

    def absent(self, k: str, e: str) -> str:
        """Return clauses that leave the keys `k` that are not an entity's name."""
        pattern, inside = self.entity(e)[0], self.named(e, f"= {k}")
        return f"OPTIONAL MATCH {pattern} WHERE {inside}\nWITH {k}, count({e}) AS {e} WHERE {e} = 0"

    @abstractmethod
    def has_id(self, e: str, ids: str) -> str:
        """Return a condition that the id of a bound entity is in a list."""

    @abstractmethod
    def of_kinds(self, e: str, kinds: str) -> str:
        """Return a condition that the kind of an entity (`engine.facts.EntityKind`) is in a list."""

    @abstractmethod
    def is_entity(self, o: str) -> str:
        """Return a condition that an object is an entity, not a value."""

    def is_entity_term(self, o: str) -> str:
        """Return the same condition for a term that may be a value of the program, which is a map."""
        return self.is_entity(o)

    def is_node_term(self, o: str) -> str:
        """Return a condition that a term has a node, from which a pattern can start."""
        return self.is_entity_term(o)

    def term_id(self, o: str) -> str:
        """Return the identity of an entity that a row binds."""
        return self.id(o)

    def described_term(self, o: str) -> str:
        """Return an entity that a row binds, as `described` does."""
        return self.described(o)

    @abstractmethod
    def id(self, e: str) -> str: ...

    @abstractmethod
    def name(self, e: str) -> str: ...

    def name_key(self, e: str) -> str:
        """Return the name of an entity in the form it is looked up by."""
        return self.name(e)

    @abstractmethod
    def kind(self, e: str) -> str:
        """Return the kind of an entity, as a number."""

    @abstractmethod
    def entity_cell(self, e: str) -> str:
        """Return an entity as a whole value."""

    @abstractmethod
    def name_cell(self, e: str) -> str:
        """Return the name of an entity as a whole value."""

    @abstractmethod
    def listed(self, e: str) -> str:
        """Return an entity as an answer lists it: id and name, and kind and row where they matter."""

    @abstractmethod
    def described(self, e: str) -> str:
        """Return all that is stored of an entity: `id`, `name`, `kind`, `source`, `row`."""

    # -- concepts ----------------------------------------------------------------------------------

    @abstractmethod
    def members(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> list[str]:
        """Return clauses that leave each member of concepts with these names once, including members of subclasses."""

    @abstractmethod
    def within(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
        """Return a condition that an entity is in concepts of these names, and clauses that give all members once, for a join.

        There are no clauses where a join does not pay off.
        """

    def members_of(self, scope: QueryScope, e: str, c: str) -> list[str]:
        """Return clauses like `members`, for bound concepts."""
        self._lacks("members of concepts that are worked out")

    def membership_pattern(self, e: str, c: str, *, direct: bool) -> tuple[str, list[str]]:
        """Return the pattern of members and concepts, each pair once, with conditions; `direct` leaves only stated memberships."""
        self._lacks("members and their concepts")

    def labels_in(self, entities: alg.Entities) -> list[str]:
        """Return the labels of the concepts in a set, where concepts are labels without nodes."""
        return []

    def concept_terms(self, labels: Collection[str]) -> list[dict[str, Any]]:
        """Return the concepts of labels as rows bind them."""
        self._lacks("concepts without nodes")

    def in_labels(self, e: str, labels: Sequence[str]) -> str:
        """Return a condition that an entity has one of some labels."""
        self._lacks("concepts without nodes")

    def in_label(self, e: str, c: str) -> str:
        """Return a condition that an entity has the label of a concept that a row binds."""
        self._lacks("concepts without nodes")

    # -- tables ------------------------------------------------------------------------------------

    def rows(self, e: str, source: str) -> tuple[str, str]:
        """Return the pattern and the condition of the rows of a table."""
        self._lacks("rows of tables")

    def by_row(self, e: str) -> str:
        """Return the planner hint for looking up rows of a table."""
        return ""

    def row(self, e: str) -> str:
        """Return the number of a row in its table; null for other entities."""
        return "null"

    def source(self, e: str) -> str:
        """Return the table of a row."""
        return "null"

    def row_cell(self, e: str) -> str:
        """Return the number of a row as a whole value."""
        self._lacks("rows of tables")

    def missing(self, node: Node) -> str | None:
        """Name what the layout lacks for an operator, or return None; by default, all that the optional methods cover."""
        if isinstance(node, alg.Scan | alg.AllEntities) and node.source is not None:
            return "sources of statements"
        if isinstance(node, alg.Solutions):
            return "rows that bind several variables"
        if isinstance(node, alg.Members) and not isinstance(node.concepts, alg.ByName):
            return "members of concepts that are worked out"
        if isinstance(node, alg.During) and node.relation in ("may", "must"):
            # Statements without times always hold.
            return None
        return _OPTIONAL.get(type(node))

    def remarks(self, plan: Node) -> list[str]:
        """Return warnings for an answer, where a plan means something else here than in process."""
        return []

    # -- statements --------------------------------------------------------------------------------

    @abstractmethod
    def attributes(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        """Match statements whose objects are values."""

    @abstractmethod
    def relations(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        """Match statements whose objects are entities; in the family "any" also those with values."""

    def row_statement(self, f: str, o: str, family: Family) -> str:
        """Return a statement of rendered clauses as a row binds it; `ends` and the rest accept it."""
        return f

    def same_statement(self, f: str) -> str:
        """Return the identity of a statement that a row binds."""
        return f

    def ends(self, f: str) -> tuple[str, str]:
        """Return the subject and the object of a statement that a row binds."""
        self._lacks("the ends of statements")

    def reach(
        self, a: str, b: str, predicates: Sequence[str], direction: str, least: int, most: int | None
    ) -> tuple[str, list[str]]:
        """Return the pattern of a path of `least` to `most` relations, with conditions.

        `direction` is "forward", "backward" or "either".
        """
        self._lacks("paths")

    def is_statement(self, f: str) -> str:
        """Return a condition that a relationship is a statement."""
        return "true"

    def indexed(self, kinds: set[Kind]) -> bool:
        """Tell whether an index has all values of an attribute with these kinds of values."""
        return False

    def by_kind(self, v: str, kind: Kind) -> str:
        """Return the planner hint for the index on values of a kind."""
        return ""

    @abstractmethod
    def object(self, o: str, family: Family) -> Cell:
        """Return the object of a statement, of rendered clauses, as a value;

        for attributes a node or map with the cell's fields.
        """

    @abstractmethod
    def object_cell(self, o: str, family: Family) -> str:
        """Return an object that may be an entity, as a whole value."""

    def kind_of_object(self, o: str) -> str:
        """Return the type of an object that may be an entity."""
        return f"CASE WHEN {self.is_entity(o)} THEN 'entity' ELSE {self.object(o, 'attribute').kind} END"

    def written(self, text: str) -> str:
        """Translate a whole query for the server."""
        return text

    @abstractmethod
    def type(self, f: str) -> str:
        """Return an expression for the predicate of a statement, which `predicate_of` reads."""

    @abstractmethod
    def predicate(self, f: str) -> str:
        """Return the predicate of a statement as a text."""

    def predicate_of(self, type_name: str) -> str:
        """Return the predicate for a result of `type`."""
        return type_name

    def text_cell(self, text: str) -> str:
        """Return a text that no value stores, as a whole value."""
        return f"{{kind: 'text', key: {text}, text: {text}}}"

    # -- what the server groups by and sums up -----------------------------------------------------

    def direct(self, e: str, predicate: str, concepts: Sequence[str] = ()) -> Direct | None:
        """Return an attribute of an entity in a concept with these names, null where it has none.

        None where the values are not plain, or there may be several.
        """
        return None

    def direct_qualifier(self, f: str, predicates: Sequence[str], key: str) -> Direct | None:
        """Return a qualifier of statements of some predicates, as `direct` does an attribute."""
        return None

    def hop(self, r: str, a: str, b: str, predicates: Sequence[str], *, outward: bool) -> str | None:
        """Return the pattern of a relation between two entities; None where there is none."""
        return None

    # -- sources -----------------------------------------------------------------------------------

    def in_source(self, source: str, f: str, value: str | None) -> str:
        """Return a condition that a statement is in a source; `value` is its object if that may be a value."""
        self._lacks("sources of statements")

    def entities_in_source(self, scope: QueryScope, e: str, source: str) -> list[str]:
        """Return queries for the entities that are rows of a source or occur in its statements."""
        self._lacks("sources of statements")

    def place(self, f: str, value: str | None) -> str:
        """Return the row of a statement in its first source."""
        return "0"

    # -- qualifiers and validity -------------------------------------------------------------------

    def qualifiers(self, f: str, o: str, family: Family, q: str) -> list[str]:
        """Return clauses that together leave all qualifiers of a statement."""
        self._lacks("qualifiers")

    def qualifier(self, q: str) -> Cell:
        """Return a qualifier as a value."""
        return Bound(q)

    def qualifier_name(self, q: str) -> str:
        self._lacks("qualifiers")

    def referred(self, q: str, e: str) -> str:
        """Return the pattern of the entity that a qualifier is."""
        self._lacks("qualifiers")

    def refer(self, q: str, e: str) -> str:
        """Return a clause that binds the entity that a qualifier is, or null."""
        return f"OPTIONAL MATCH {self.referred(q, e)}"

    def has_times(self, family: Family) -> bool:
        """Tell whether statements of a family may have a validity."""
        return True

    def validity(self, f: str) -> tuple[str, str]:
        """Return the start and the end of a statement's validity, with bounds as in `engine.values`."""
        self._lacks("times at which statements hold")

    def timed(self, f: str, test: Callable[[tuple[str, str]], str]) -> str:
        """Return a condition on the validity of a statement."""
        return test(self.validity(f))

    def validity_cell(self, f: str) -> str:
        """Return the validity as a whole value."""
        self._lacks("times at which statements hold")

    # -- what an answer rests on -------------------------------------------------------------------

    def statement(self, scope: QueryScope, f: str, s: str, o: str, family: Family) -> str:
        """Return all that is stored of a statement, in the form of `cypher.compile.plan.restore`."""
        self._lacks("evidence")

    def qualifiers_in(self, sent: Sequence[Any]) -> list[tuple[str, Any]]:
        """Return the qualifiers sent with a statement: names with values, or with descriptions of entities."""
        return [(q["name"], value_of(q) if q["ref"] is None else q["ref"]) for q in sent]

    def memberships(self, scope: QueryScope, concepts: str, members: str) -> list[list[str]]:
        """Return queries for the stated memberships that put listed entities under listed concepts, and the subclasses
        in between.
        """
        self._lacks("evidence")

    def memberships_in(self, scope: QueryScope, names: Sequence[str], members: str) -> list[list[str]] | None:
        """Return the same for named concepts, where these have no nodes; else None."""
        return None

    def concepts_named(self, scope: QueryScope, names: Sequence[str]) -> list[str]:
        """Return the concepts with these names that have no nodes, as `described` does entities."""
        return []

    def memberships_of(self, scope: QueryScope, members: str, most: int) -> list[list[str]]:
        """Return queries for stated memberships with a listed entity at one end, at most `most` each."""
        self._lacks("evidence")

    # -- names -------------------------------------------------------------------------------------

    def any_kind(self, e: str, kinds: Collection[EntityKind]) -> str:
        """Return a condition on the kind of an entity, for a query whose text is fixed."""
        return self.of_kinds(e, str([int(kind) for kind in kinds]))

    def subjects_of(self, predicates: Sequence[str]) -> str:
        """Return clauses that leave the subjects `s` of statements of some predicates."""
        self._lacks("the names of subjects")

    def relations_to(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """Return clauses that leave the objects `o` of relations of some predicates (None: all), with their subjects `s`.

        `source` is the parameter of their source; `table` tells that all its statements belong to its own rows. A condition can
        follow after `AND`.
        """
        self._lacks("the names of objects")

    def values_of(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """Return clauses that leave the values `o` of attributes, each a node or map with cell fields and its `predicate`.

        `$attributes` holds the predicates as `predicate_key`.
        """
        self._lacks("the texts of values")

    def value_id(self, o: str) -> str:
        """Return the identity of an attribute's value."""
        self._lacks("the texts of values")
