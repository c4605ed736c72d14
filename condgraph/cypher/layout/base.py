"""What the compiler asks of a layout: how a database stores entities, statements and values, as
expressions, patterns and clauses.

`CondgraphLayout` (`cypher.layout.schema`) answers for the graphs that condgraph writes. A database
that somebody else made is asked by another class. It has entities, concepts, relations and
attributes in some form, which is what the abstract methods are about. It may well have no ids but
those of the server, no statement nodes, no qualifiers, no validity, no sources and rows: for these
a layout need not answer. `missing` reports them before anything runs, and the methods
raise `UnsupportedError`.

Variables (`e` an entity, `c` a concept, `f` a statement, `o` its object, `q` a qualifier) are given
as they are written, and tests on them as `= $p.p1` or `IN $p.p1`. An entity is a node that a variable
holds; a statement is whatever identifies it, a relationship or a list of an entity and a
property, held by a variable after its clauses. Values are cells (`Cell`).
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
from condgraph.engine.forms import FormedText, formed
from condgraph.engine.values import UNKNOWN, Kind, Number, Precision, Quantity, Time, Value, as_float, parse_number, text_of

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema


# -- Parameters --------------------------------------------------------------------------------------
# Parameters of a Cypher query as the fields of one map: `$p.p1`.


#: The parameter that is the map.
GIVEN: Final = "p"


def give(parameters: dict[str, Any], name: str, value: Any) -> str:
    """Put a value among the parameters of a query, under a plain word; how it is written.

    >>> parameters = {"graph": "films"}
    >>> give(parameters, "p1", "Nepal"), parameters
    ('$p.p1', {'graph': 'films', 'p': {'p1': 'Nepal'}})
    """
    parameters.setdefault(GIVEN, {})[name] = value
    return f"${GIVEN}.{name}"


# -- Cells -------------------------------------------------------------------------------------------
# Values in the text of a query: an expression for each field of a value, whatever it is stored as.
#
# What compares, orders and prints values asks a `Cell` for the expressions it needs. A layout whose
# values are nodes gives cells that read the properties of the node (`Bound`); one whose values are
# plain properties gives cells that work each field out of the property. Wherever a query
# hands a value on as a whole, in a list or under a name, it hands on a node or map that has the
# fields under their own names, and the next clause reads it as `Bound`.


#: The fields of a value. `kind` is "text", "quantity", "time", "entity" or "unknown", `text` what a
#: user reads, `raw` what stood in the source where that is something else. A text has `key`, by
#: which it is equal to another, and as `unit` the name of its form, if it has one; a quantity
#: `number` and `unit` ("1": none) and, where a float does not tell all digits, `exact`; a time
#: `start`, `end` (seconds) and `precision`. `order` and `ranks` say how a value is ordered where the
#: text or number does not. `id` is that of the entity that the value is or names, `held` whether an
#: answer lists this entity.
Field: TypeAlias = Literal[
    "kind", "text", "raw", "key", "number", "unit", "exact", "start", "end", "precision", "order", "ranks", "id", "held"
]

#: What an answer reads of a value: its fields, and what kind of entity it is and in which row it
#: stands, which is read from the entity.
Listed: TypeAlias = Field | Literal["of", "row"]
#: All that it reads where nothing is known of the value, in its order.
FIELDS: Final[tuple[Listed, ...]] = (
    *("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw", "id", "held", "of", "row"),
)

#: Types of values by the word in `kind`.
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
    def whole(self) -> str:
        """The value as a whole."""

    @abstractmethod
    def field(self, name: Field) -> str:
        """A field as an expression; null where the value has none."""

    @property
    @abstractmethod
    def ordered(self) -> str:
        """What texts (and entities, by name) are ordered by."""

    def tested(self, name: Field) -> str:
        """A field where a value of another type makes a comparison false or null anyway: that which an
        index has.
        """
        return self.field(name)

    def timed(self, operator: str, value: Time, parameter: Callable[[Any], str]) -> str | None:
        """A comparison with a time where that is none of seconds; `parameter` writes what it needs."""
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
        """The node or map."""
        return self._whole

    def field(self, name: Field) -> str:
        """A property."""
        return f"{self._whole}.{name}"

    @property
    def ordered(self) -> str:
        """By what is there for it, else the text, else the name that an entity has."""
        whole = self._whole
        return f"coalesce({whole}.order, {whole}.text, {whole}.name)"


def value_of(fields: Mapping[str, Any]) -> Value:
    """The value, which is no entity, from what was read of its cell."""
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
# What the compiler and a layout say to each other about a scan of statements.


class Writing(Protocol):
    """What a layout asks of the compiler: fresh variables, parameters, and what the graph holds."""

    schema: StoredSchema

    def name(self, prefix: str) -> str:
        """A fresh variable."""
        ...

    def parameter(self, value: Any) -> str:
        """A parameter holding a value, as it is written."""
        ...


@dataclass(slots=True)
class ScanRequest:
    """The statements that a scan looks for.

    `anchor` is the end it starts from, bound before or (`bound` false) any entity; `other` is the
    other end. `outward` says that the anchor is the subject. `predicates` None means all.
    `table` is the parameter of a source whose rows the anchors are, where the statements of a table
    are looked for. `conditions` hold in addition to what the layout adds. `anchors` is how many bound anchors
    there are likely to be.
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

    `cell` is the object as a value, in conditions on the MATCH and after it. `whole` are further
    conditions by which an index gives all statements, left out where a test is one that an index
    answers; `hint` says which index to take. `after` are clauses after the MATCH that bind the
    variables of the statement and the object where no pattern can, since a value is a property: the
    object then is a map with the fields of the cell.

    Without a `pattern` the clauses `before` bind all, and the conditions follow them. `branches` are
    patterns with a condition each in place of the one, whose rows together are wanted, and `kept` the
    variables that these bind; given labels, they are for the members of these alone.
    """

    pattern: str | None
    conditions: list[str]
    cell: Cell
    whole: list[str] = field(default_factory=list)
    hint: str = ""
    after: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    branches: Callable[[Collection[str] | None], list[tuple[str, str]]] | None = None
    kept: tuple[str, ...] = ()


# -- Layouts ----------------------------------------------------------------------------------------

TARGET: Final = "Neo4j"
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


class Layout(ABC):
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
    #: Whether concepts are labels, and have no nodes.
    labelled: ClassVar[bool] = False
    #: Whether an index finds entities by a test of names or ids.
    looks_up: ClassVar[bool] = True

    def _lacks(self, what: str) -> NoReturn:
        raise UnsupportedError(TARGET, [what])

    @abstractmethod
    def parameters(self, graph: str) -> dict[str, Any]:
        """The parameters that every query of a graph has."""

    def typed(self, written: str, value: Any) -> str:
        """A value of a query (`give`) with what the planner has to know of its type, which
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
            result = {"kind": "text", "text": str(value), "key": self.key(value)}
            return result | {"unit": value.form} if isinstance(value, FormedText) else result
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
        """A condition: an object is an entity, not a value."""

    def is_entity_term(self, o: str) -> str:
        """The same of what may be a value that a program gave, which is a map."""
        return self.is_entity(o)

    def is_node_term(self, o: str) -> str:
        """The same of what has a node, from which a pattern can start."""
        return self.is_entity_term(o)

    def term_id(self, o: str) -> str:
        """What identifies an entity that a row binds."""
        return self.id(o)

    def described_term(self, o: str) -> str:
        """An entity that a row binds, as `described`."""
        return self.described(o)

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

    def membership_pattern(self, e: str, c: str, *, direct: bool) -> tuple[str, list[str]]:
        """The pattern of members and their concepts, each pair once, and its conditions; `direct`: as they are stated."""
        self._lacks("members and their concepts")

    def labels_in(self, entities: alg.Entities) -> list[str]:
        """The labels of the concepts in a set, where concepts are labels and have no nodes."""
        return []

    def concept_terms(self, labels: Collection[str]) -> list[dict[str, Any]]:
        """The concepts of labels, as rows bind them."""
        self._lacks("concepts without nodes")

    def in_labels(self, e: str, labels: Sequence[str]) -> str:
        """A condition: an entity has one of some labels."""
        self._lacks("concepts without nodes")

    def in_label(self, e: str, c: str) -> str:
        """A condition: an entity has the label of a concept that a row binds."""
        self._lacks("concepts without nodes")

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

    def missing(self, node: Node) -> str | None:
        """What the layout lacks for an operator, in words; None where it can be asked. Here: what
        the optional methods are for.
        """
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
        """What a plan takes otherwise here than in process, as warnings of its answer."""
        return []

    # -- statements --------------------------------------------------------------------------------

    @abstractmethod
    def attributes(self, writing: Writing, wanted: ScanRequest) -> Match:
        """The statements whose objects are values."""

    @abstractmethod
    def relations(self, writing: Writing, wanted: ScanRequest) -> Match:
        """The statements whose objects are entities; in the family "any" those of values as well."""

    def kept(self, f: str, o: str, family: Family) -> str:
        """A statement of rendered clauses as a row binds it; `ends` and all else can be asked of it."""
        return f

    def same_statement(self, f: str) -> str:
        """What identifies a statement that a row binds."""
        return f

    def ends(self, f: str) -> tuple[str, str]:
        """The subject and the object of a statement that a row binds."""
        self._lacks("the ends of statements")

    def reach(
        self, a: str, b: str, predicates: Sequence[str], direction: str, least: int, most: int | None
    ) -> tuple[str, list[str]]:
        """The pattern of `least` to `most` relations from one entity to another, and its conditions; `direction` is "forward",
        "backward" or "either".
        """
        self._lacks("paths")

    def is_statement(self, f: str) -> str:
        """A condition: a relationship is a statement, not anything else that the database has between nodes."""
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

    def written(self, text: str) -> str:
        """A whole query in the words of the server."""
        return text

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
        """A condition: a statement is in a source; `value` is its object where that may be a
        value.
        """
        self._lacks("sources of statements")

    def standing_in(self, writing: Writing, e: str, source: str) -> list[str]:
        """Queries that return the entities that are rows of a source, or occur in its statements."""
        self._lacks("sources of statements")

    def place(self, f: str, value: str | None) -> str:
        """The row of a statement in its first source."""
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

    def has_times(self, family: Family) -> bool:
        """Whether statements of a family may have a validity."""
        return True

    def validity(self, f: str) -> tuple[str, str]:
        """From when until when a statement holds, as `engine.values` has bounds."""
        self._lacks("times at which statements hold")

    def timed(self, f: str, test: Callable[[tuple[str, str]], str]) -> str:
        """A condition on from when until when a statement holds."""
        return test(self.validity(f))

    def validity_cell(self, f: str) -> str:
        """The same as a value, as a whole."""
        self._lacks("times at which statements hold")

    # -- what an answer rests on -------------------------------------------------------------------

    def statement(self, writing: Writing, f: str, s: str, o: str, family: Family) -> str:
        """A statement with all that is kept of it, as `cypher.compile.plan.restore` takes it."""
        self._lacks("evidence")

    def qualifiers_in(self, sent: Sequence[Any]) -> list[tuple[str, Any]]:
        """The qualifiers that a statement was sent with, each a name and a value, or what there is to say of an entity."""
        return [(q["name"], value_of(q) if q["ref"] is None else q["ref"]) for q in sent]

    def memberships(self, writing: Writing, concepts: str, members: str) -> list[list[str]]:
        """Queries of the memberships, as they were stated, that put a list of entities under a list
        of concepts, and of the subclasses between.
        """
        self._lacks("evidence")

    def memberships_in(self, writing: Writing, names: Sequence[str], members: str) -> list[list[str]] | None:
        """The same for the concepts of some names, where these have no nodes; else None."""
        return None

    def concepts_named(self, writing: Writing, names: Sequence[str]) -> list[str]:
        """The concepts of some names that have no nodes, as `described` gives entities."""
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
        their end, from `s`. `source` is the parameter of the source they are in; `table` says
        that it has statements of its own rows alone. A condition can follow, after `AND`.
        """
        self._lacks("the names of objects")

    def values_of(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """The same of values `o` of attributes, each a node or map with the fields of a cell and its
        `predicate`; `$attributes` holds their predicates, by `predicate_key`.
        """
        self._lacks("the texts of values")

    def value_id(self, o: str) -> str:
        """What identifies a value of an attribute."""
        self._lacks("the texts of values")
