"""The layout of graphs in Neo4j, which both the writer and the compiler read.

    (:Entity {graph, handle, id, name, key, kind})      kind 0 entity, 1 concept (:Concept), 2 table row (:Row, with source and row)
    (a:Entity)-[:`predicate` {sid}]->(b:Entity)         a relation, under the predicate's own name
    (a:Entity)-[:`predicate` {sid}]->(v:Value {...})    an attribute; the value node holds the typed value
                                                        either has `since`, `until`, `span` and `valid` where it has a validity
    (s:Statement {graph, sid, name})                    a relation that has qualifiers; (s)-[:SUBJECT]->(a), (s)-[:OBJECT]->(b)
    (:Statement|:Value)-[:QUALIFIER]->(:Qualifier {...})  its qualifiers; (:Qualifier)-[:IS]->(:Entity) where one is an entity
    (a:Entity)-[:MEMBER_OF]->(c:Concept)                membership closed under subclass; it has sources where it was stated
    (c:Concept)-[:SUBCLASS_OF]->(d:Concept)
    (:Graph {name, format, complete, content, counts, schema, survey}),
    (:Source {graph, name, number, location, format, content, terms})
    (:Predicate {graph, key, name, relations, attributes, qualifiers})   how many statements and qualifiers a name has
    (:Edit {graph, number, record})                      the single changes (`edits`)
    (:Load {graph, batch}), (:Former {graph, load, ...})     only during a load: what it wrote, and what it changed

Each label begins with `Condgraph` in the database, each constraint and index with `condgraph_`, so that no name clashes with
an application's data, and every query looks for these labels only. The database may hold any other nodes.

`sid` is the hash of a statement's content; edges of the layout itself have none. Every statement and membership has parallel
lists `sources` and `rows`. `graph` comes first in every index, so that many graphs can share a database. A `Value` and a
`Qualifier` have `kind` ("text", "quantity", "time", "entity", "unknown"), `text` as printed and, depending on the kind, `key`,
`number` and `unit`, `start`, `end` and `precision`. `key` and `handle` (of an id) are texts as indexed: a text too long for an
index is replaced by its hash, and so is a long `predicate` of a `Value`. `order` is a sort key, set where the text (or number)
alone is none: the server compares texts by UTF-16, and floats lose digits. `ranks` are the numbers of a text (or name) that
begins with one, as texts that compare like them. The `name` of a value or a statement is a caption for Browser. `load` tells
which load added a record to a graph that had content before, so that this load can be taken back; `gone`, which one removes it;
and `removing` on the graph's node, that the removal has begun. `declared` of an entity tells who declares it, and as what,
where that is not the first source (`engine.snapshot.declared`); `declares` on the graph's node, that this is stored. Entities
may carry their direct concepts as further labels, which no query here reads (`cypher.labels`); `labels` on the graph's node
lists them. `raws` of a value are its texts at its places, where they differ. A validity is `[since, until)` in seconds, with
precision `span`, and `valid` in words; open and unknown bounds are as in `engine.values`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.dialect import translated
from condgraph.cypher.layout.base import Bound, Cell, Layout, Match, QueryScope, ScanRequest
from condgraph.cypher.servers import ARCADEDB, MEMGRAPH, NEO4J, Engine
from condgraph.engine import values
from condgraph.engine.algebra import Family
from condgraph.engine.errors import StoreError
from condgraph.engine.execute.number_texts import inner_numbers
from condgraph.engine.values import FormedText

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection


#: Quote an identifier for Neo4j.
quote: Final = NEO4J.quote


# -- Labels, keys and properties --------------------------------------------------------------------


FORMAT: Final = 4

# The labels, prefixed so that they differ from those of other data.
ENTITY: Final = "CondgraphEntity"
CONCEPT: Final = "CondgraphConcept"
ROW: Final = "CondgraphRow"
VALUE: Final = "CondgraphValue"
STATEMENT: Final = "CondgraphStatement"
QUALIFIER: Final = "CondgraphQualifier"
GRAPH: Final = "CondgraphGraph"
SOURCE: Final = "CondgraphSource"
PREDICATE: Final = "CondgraphPredicate"
LOAD: Final = "CondgraphLoad"
FORMER: Final = "CondgraphFormer"
EDIT: Final = "CondgraphEdit"
VECTORS: Final = "CondgraphVectors"
EMBEDDING: Final = "CondgraphEmbedding"
#: The value of `loading` on a graph's node while the graph is deleted.
DELETED: Final = "deleted"

#: Relationship types that the layout itself uses.
RESERVED: Final = frozenset({"MEMBER_OF", "SUBCLASS_OF", "QUALIFIER", "IS", "SUBJECT", "OBJECT"})
_SUFFIX: Final = " (predicate)"
#: Longest text (in bytes of UTF-8) that is indexed unchanged. An index entry has at most 8,167 bytes in
#: all.
MAX_KEY: Final = 4_000
#: Longest name of a graph or a unit, and of a predicate that is indexed unchanged, in bytes.
MAX_NAME: Final = 1_000
#: Longest name of a source, in bytes.
MAX_SOURCE: Final = 2_000
#: Longest caption, in characters.
CAPTION: Final = 60


@dataclass(frozen=True, slots=True)
class Index:
    """An index, or a uniqueness constraint with its index; `name` is its name on the server."""

    name: str
    label: str
    properties: tuple[str, ...]
    unique: bool = False

    @property
    def text(self) -> str:
        """The Cypher that creates it if missing; it runs on the Community Edition."""
        listed = f"({', '.join(f'n.{name}' for name in self.properties)})"
        if self.unique:
            return f"CREATE CONSTRAINT {self.name} IF NOT EXISTS FOR (n:{self.label}) REQUIRE {listed} IS UNIQUE"
        return f"CREATE INDEX {self.name} IF NOT EXISTS FOR (n:{self.label}) ON {listed}"


#: Constraints, which a load needs from the start.
CONSTRAINTS: Final = (
    Index("condgraph_4_entity", ENTITY, ("graph", "handle"), unique=True),
    Index("condgraph_4_graph", GRAPH, ("name",), unique=True),
    Index("condgraph_4_load", LOAD, ("graph", "batch"), unique=True),
    Index("condgraph_4_former", FORMER, ("graph", "load", "at"), unique=True),
    Index("condgraph_4_edit", EDIT, ("graph", "number"), unique=True),
    Index("condgraph_4_source", SOURCE, ("graph", "name"), unique=True),
    Index("condgraph_4_predicate", PREDICATE, ("graph", "key"), unique=True),
)
#: Indexes that programs need, created after the first load of a database: faster than updating them during
#: the load.
INDEXES: Final = (
    Index("condgraph_4_entity_key", ENTITY, ("graph", "key")),
    Index("condgraph_4_entity_kind", ENTITY, ("graph", "kind")),
    Index("condgraph_4_row", ROW, ("graph", "source", "row")),
    Index("condgraph_4_concept_key", CONCEPT, ("graph", "key")),
    Index("condgraph_4_value_key", VALUE, ("graph", "predicate", "key")),
    # With all properties that a comparison reads, so that the index answers without the store.
    Index("condgraph_4_value_quantity", VALUE, ("graph", "predicate", "number", "unit")),
    Index("condgraph_4_value_time", VALUE, ("graph", "predicate", "start", "end")),
    Index("condgraph_4_any_key", VALUE, ("graph", "key")),
    Index("condgraph_4_any_number", VALUE, ("graph", "number")),
    Index("condgraph_4_any_start", VALUE, ("graph", "start")),
    Index("condgraph_4_statement", STATEMENT, ("graph", "sid")),
)
#: The index of vectors by name, created when vectors are first stored.
VECTOR_KEYS: Final = Index("condgraph_4_embedding", EMBEDDING, ("graph", "kind", "key"))


def type_of(predicate: str) -> str:
    """Return the relationship type of a predicate;

    a name that the layout uses itself gets a suffix, so that it can be read back.

    >>> type_of("spouse"), type_of("IS"), predicate_of(type_of("IS (predicate)"))
    ('spouse', 'IS (predicate)', 'IS (predicate)')
    """
    # A type needs a name, and a program may ask for a predicate with an empty one.
    return predicate + _SUFFIX if not predicate or predicate in RESERVED or predicate.endswith(_SUFFIX) else predicate


def predicate_of(type_name: str) -> str:
    return type_name[: -len(_SUFFIX)] if type_name.endswith(_SUFFIX) else type_name


def index_key(text: str, longest: int = MAX_KEY) -> str:
    """Return a text as it is indexed: unchanged, or its hash if it has more than `longest` bytes."""
    # A character takes at most four bytes.
    if len(text) * 4 <= longest:
        return text
    encoded = text.encode()
    return text if len(encoded) <= longest else "sha256:" + sha256(encoded).hexdigest()


def predicate_key(name: str) -> str:
    """Return a predicate's name as it is indexed, which leaves room for the values next to it."""
    return index_key(name, MAX_NAME)


def text_order(text: str) -> str:
    """Return a text that sorts by UTF-16 as `text` does by code point; mostly the text itself.

    >>> text_order("Zoë"), text_order("\\uff21") == "\\ud7ff\\u2822"
    ('Zoë', True)
    """
    # UTF-16 sorts the surrogates of higher planes before U+E000; characters from there on are moved below
    # them.
    if text.isascii() or max(text) < "\ud7ff":
        return text
    return "".join("\ud7ff" + chr(ord(c) - 0xD7FF + 0x100) if "\ud7ff" <= c <= "\uffff" else c for c in text)


def as_float(number: values.Number) -> float:
    """Return the nearest float, infinite if there is none."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@lru_cache(1 << 16)
def time_text(start: int, end: int, precision: int) -> str:
    """Return a time as printed; cached, as most data repeats a few times."""
    return str(values.Time(start, end, values.Precision(precision)))


def inner_ranks(text: str) -> list[str] | None:
    """Return the numbers of a text that begins with one, as texts that compare like them."""
    numbers = inner_numbers(text)
    return None if numbers is None else [values.number_order(number) for number in numbers]


def _orders(text: str) -> dict[str, Any]:
    """Return the sort keys of a text, where the text itself is none."""
    result: dict[str, Any] = {}
    if (order := text_order(text)) != text:
        result["order"] = order
    if (ranks := inner_ranks(text)) is not None:
        result["ranks"] = ranks
    return result


def value_properties(value: values.Value) -> dict[str, Any]:
    """Return the properties of a `Value` or `Qualifier` node."""
    if isinstance(value, str):
        result: dict[str, Any] = {"kind": "text", "text": str(value), "key": index_key(value)} | _orders(value)
        return result | {"unit": value.form} if isinstance(value, FormedText) else result
    if isinstance(value, values.Quantity):
        number = as_float(value.number)
        result = {"kind": "quantity", "text": str(value), "number": number, "unit": value.unit}
        if (order := values.tie_break(value.number)) != "1":
            result |= {"exact": str(value.number), "order": order}
        return result
    if isinstance(value, values.Time):
        return {
            "kind": "time",
            "text": str(value),
            "start": value.start,
            "end": value.end,
            "precision": int(value.precision),
        }
    assert isinstance(value, values.Unknown)
    return {"kind": "unknown", "text": values.text_of(value)}


# -- Indexes on a server -----------------------------------------------------------------------------


_SCHEMA_NAMES: Final = [item.name for item in (*CONSTRAINTS, *INDEXES, VECTOR_KEYS)]
_ABOUT: Final = (
    "SHOW INDEXES YIELD name, state, labelsOrTypes, properties, owningConstraint WHERE name IN $names "
    "RETURN name, state, labelsOrTypes AS labels, properties, owningConstraint IS NOT NULL AS unique"
)


def prepare(connection: Connection) -> bool:
    """Create the constraints, and tell whether the indexes exist, as they do after the first load of a database.

    Raises `StoreError` if another index has one of the names: the server would take it for the right one and create none.
    """
    indexes = {row["name"]: row for row in connection.ask(_ABOUT, {"names": _SCHEMA_NAMES})}
    for entry in (*CONSTRAINTS, *INDEXES, VECTOR_KEYS):
        row = indexes.get(entry.name)
        wanted = [entry.label], list(entry.properties), entry.unique
        if row is not None and (row["labels"], row["properties"], row["unique"]) != wanted:
            on = f"{':'.join(row['labels'] or ())}({', '.join(row['properties'] or ())})"
            raise StoreError(
                f"the database has an index or a constraint {entry.name!r} on {on}, which is not condgraph's",
                hint=f"condgraph's is on {entry.label}({', '.join(entry.properties)}): give the other one another name",
            )
    if all(item.name in indexes and indexes[item.name]["state"] == "ONLINE" for item in (*CONSTRAINTS, *INDEXES)):
        return True
    connection.schema(*(constraint.text for constraint in CONSTRAINTS))
    return False


def make_indexes(connection: Connection) -> None:
    """Create the indexes, and wait until they are filled."""
    # In one transaction, so that the server fills them all in one pass over its nodes.
    connection.schema(*(index.text for index in INDEXES))
    pause = 0.05
    names = [item.name for item in (*CONSTRAINTS, *INDEXES)]
    while waiting := [row for row in connection.ask(_ABOUT, {"names": names}) if row["state"] != "ONLINE"]:
        failed = [row["name"] for row in waiting if row["state"] == "FAILED"]
        if failed:
            raise StoreError(f"the server could not make the indexes {', '.join(failed)}", hint="its log says why")
        time.sleep(pause)
        pause = min(pause * 2, 0.5)


# -- Paths -------------------------------------------------------------------------------------------
# The layout in the form that the compiler uses.


#: The stored properties of a `Value` or `Qualifier` node.
_VALUE_FIELDS: Final = ("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw", "id", "held")
_QUOTED_SUFFIX: Final = "' (predicate)'"
#: Most edges that are read in one step where only those of some types are wanted.
MAX_EDGES = ALL_EDGES = 5_000
#: Properties of values that share an index, by kind.
_INDEXED: Final = {values.Kind.QUANTITY: ("number", "unit"), values.Kind.TIME: ("start", "end"), values.Kind.TEXT: ("key",)}


class CondgraphLayout(Layout):
    """The layout of graphs that condgraph writes, in the dialect of a server; it has no other state.

    `CONDGRAPH` is the one for Neo4j, `layout_on` returns the others.
    """

    __slots__ = ("engine",)
    complete = True
    floats = True

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def written(self, text: str) -> str:
        return translated(text, self.engine)

    def parameters(self, graph: str) -> dict[str, Any]:
        return {"graph": graph}

    # -- values of a program -----------------------------------------------------------------------

    def key(self, text: str) -> str:
        return index_key(text)

    def handle(self, ident: str) -> str:
        return index_key(ident)

    def predicate_key(self, name: str) -> str:
        return predicate_key(name)

    def text_order(self, text: str) -> str:
        return text_order(text)

    def number_order(self, number: values.Number) -> str:
        return values.tie_break(number)

    def given(self, value: values.Value) -> dict[str, Any]:
        return value_properties(value)

    # -- entities ----------------------------------------------------------------------------------

    def entity(self, e: str) -> tuple[str, str]:
        """Match by label and graph, the first property of the indexes."""
        return f"({e}:{ENTITY})", f"{e}.graph = $graph"

    def named(self, e: str, test: str) -> str:
        return f"{e}.graph = $graph AND {e}.key {test}"

    def identified(self, e: str, test: str) -> str:
        return f"{e}.graph = $graph AND {e}.handle {test}"

    def has_id(self, e: str, ids: str) -> str:
        return f"{e}.id IN {ids}"

    def of_kinds(self, e: str, kinds: str) -> str:
        return f"{e}.kind IN {kinds}"

    def is_entity(self, o: str) -> str:
        return f"{o}:{ENTITY}"

    def is_entity_term(self, o: str) -> str:
        """Test the kind, which is a number for entities and a word for values."""
        return f"{o}.kind IS :: INTEGER NOT NULL"

    def id(self, e: str) -> str:
        return f"{e}.id"

    def name(self, e: str) -> str:
        return f"{e}.name"

    def name_key(self, e: str) -> str:
        return f"{e}.key"

    def kind(self, e: str) -> str:
        return f"{e}.kind"

    def entity_cell(self, e: str) -> str:
        """Return the node with the fields of a value; `held` marks entities that an answer lists."""
        return self._cell(e, "entity")

    def name_cell(self, e: str) -> str:
        return self._cell(e, "text")

    def _cell(self, e: str, kind: str) -> str:
        return self.engine.projected(e, f"kind: '{kind}'", "key", f"text: {e}.name", "id", "order", "ranks", "held: true")

    def listed(self, e: str) -> str:
        """Return id and name; kind and row are added only for concepts and rows."""
        return f"CASE {e}.kind WHEN 0 THEN [{e}.id, {e}.name] ELSE [{e}.id, {e}.name, {e}.kind, {e}.row] END"

    def described(self, e: str) -> str:
        return self.engine.projected(e, "id", "name", "kind", "source", "row")

    # -- concepts ----------------------------------------------------------------------------------

    def members(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> list[str]:
        c = scope.name("c")
        return [f"MATCH ({c}:{CONCEPT}) WHERE {self.named(c, self.one_of(scope, names))}", *self.members_of(scope, e, c)]

    def members_of(self, scope: QueryScope, e: str, c: str) -> list[str]:
        """Follow the memberships, which include those through subclasses."""
        kept = f" WHERE {e}.kind <> 1" if scope.schema.concept_members else ""
        return [f"MATCH ({e}:{ENTITY})-[:MEMBER_OF]->({c}){kept}", f"WITH DISTINCT {e}"]

    def within(self, scope: QueryScope, e: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
        """Test memberships; a join is offered for a single concept only, as two concepts could give an entity twice."""
        c = scope.name("c")
        test = self.named(c, self.one_of(scope, names))
        condition = f"EXISTS {{ MATCH ({e})-[:MEMBER_OF]->({c}:{CONCEPT}) WHERE {test} }}"
        if scope.schema.concept_members:
            return f"{e}.kind <> 1 AND {condition}", []
        if len(names) != 1 or names[0] not in scope.schema.single:
            return condition, []
        return condition, [f"MATCH ({c}:{CONCEPT}) WHERE {test}", f"MATCH ({e})-[:MEMBER_OF]->({c})"]

    def membership_pattern(self, e: str, c: str, *, direct: bool) -> tuple[str, list[str]]:
        """Match one relationship for each pair; stated memberships have sources."""
        m = f"m_{e}_{c}"
        stated = [f"size({m}.sources) > 0"] if direct else []
        return f"({e}:{ENTITY})-[{m}:MEMBER_OF]->({c}:{CONCEPT})", [f"{e}.graph = $graph", f"{e}.kind <> 1", *stated]

    # -- tables ------------------------------------------------------------------------------------

    def rows(self, e: str, source: str) -> tuple[str, str]:
        """Match by label, in the order of the index."""
        return f"({e}:{ROW})", f"{e}.graph = $graph AND {e}.source = {source} AND {e}.row IS NOT NULL"

    def by_row(self, e: str) -> str:
        """Force the index: by its statistics, the planner may read all rows of all tables."""
        return f" USING INDEX SEEK {e}:{ROW}(graph, source, row)"

    def row(self, e: str) -> str:
        return f"{e}.row"

    def source(self, e: str) -> str:
        return f"{e}.source"

    def row_cell(self, e: str) -> str:
        return f"{{kind: 'quantity', number: toFloat({e}.row), unit: '1', text: toString({e}.row)}}"

    # -- statements --------------------------------------------------------------------------------

    def attributes(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        """Match relationships to `Value` nodes: from bound entities, from rows of a table, or from values by their index."""
        f, anchor, v, predicates = wanted.fact, wanted.anchor, wanted.other, wanted.predicates
        types, cell = self._types_of(scope, wanted), Bound(v)
        if predicates is None or wanted.table is not None:
            label, inside, hint = self._start(wanted)
            pattern = f"({anchor}{label})-[{f}{types}]->({v}:{VALUE})"
            return Match(pattern, [*inside, *wanted.conditions], cell, hint=hint)
        schema, keys = scope.schema, list(map(predicate_key, predicates))
        test = f"= {scope.parameter(keys[0])}" if len(keys) == 1 else f"IN {scope.parameter(keys)}"
        if wanted.bound:
            # The label excludes entities where a predicate has both.
            end = f":{VALUE}" if any(map(schema.has_relation, predicates)) else ""
            return Match(f"({anchor})-[{f}{types}]->({v}{end})", wanted.conditions, cell)
        kinds = {kind for name in predicates for kind, _ in schema.attribute_kinds(name)}
        if self.indexed(kinds):
            (kind,) = kinds
            whole, hint = [f"{v}.{name} IS NOT NULL" for name in _INDEXED[kind]], self.by_kind(v, kind)
            # Each value belongs to one statement.
            types = self._given_types(scope, predicates)
        else:
            # Start at the subjects: no index has values of all kinds.
            whole, hint = [f"{anchor}:{ENTITY}", f"{anchor}.graph = $graph", f"{anchor}.kind IN [0, 1, 2]"], ""
        conditions = [f"{v}.graph = $graph", f"{v}.predicate {test}", *wanted.conditions]
        return Match(f"({anchor})-[{f}{types}]->({v}:{VALUE})", conditions, cell, whole, hint)

    def relations(self, scope: QueryScope, wanted: ScanRequest) -> Match:
        f, anchor, other, predicates = wanted.fact, wanted.anchor, wanted.other, wanted.predicates
        label, inside, hint = self._start(wanted)
        # The label excludes values where a predicate has both.
        both = predicates is None or any(map(scope.schema.has_attribute, predicates))
        end = f":{ENTITY}" if wanted.family == "relation" and (not wanted.bound or (both and wanted.outward)) else ""
        first, second = f"({anchor}{label})", f"({other}{end})"
        if not wanted.outward:
            first, second = second, first
        thing = other if wanted.outward else anchor
        types = self._types_of(scope, wanted)
        return Match(f"{first}-[{f}{types}]->{second}", [*inside, *wanted.conditions], Bound(thing), hint=hint)

    def _start(self, wanted: ScanRequest) -> tuple[str, list[str], str]:
        """Return the label, conditions and hint of the anchors."""
        if wanted.bound:
            return "", [], ""
        if wanted.table is not None:
            return f":{ROW}", [self.rows(wanted.anchor, wanted.table)[1]], self.by_row(wanted.anchor)
        return f":{ENTITY}", [f"{wanted.anchor}.graph = $graph"], ""

    def _types_of(self, scope: QueryScope, wanted: ScanRequest) -> str:
        """Return the types of a scan, as a parameter where possible.

        Then the query is the same text for all predicates, and is planned once. The server reads all edges of the
        anchors if it does not know the types when it plans, so this is done only where these are few.
        """
        predicates, hubs = wanted.predicates, scope.schema.hubs
        if predicates and wanted.bound and all(name in hubs for name in predicates):
            side = 0 if wanted.outward else 1
            edges, each = (max(hubs[name][at] for name in predicates) for at in (side, 2 + side))
            if edges <= MAX_EDGES and each * wanted.anchors <= ALL_EDGES:
                return self._given_types(scope, predicates)
        return self._types(predicates)

    def _given_types(self, scope: QueryScope, predicates: Sequence[str]) -> str:
        types = [type_of(name) for name in predicates]
        if not self.engine.computed_types:
            return self._types(predicates)
        return f":$({scope.parameter(types[0])})" if len(types) == 1 else f":$any({scope.parameter(types)})"

    def _type(self, name: str) -> str:
        """Return the quoted relationship type of a predicate."""
        return self.engine.quote(self.engine.stored_type(type_of(name)))

    def _types(self, predicates: Sequence[str] | None) -> str:
        return "" if predicates is None else ":" + "|".join([self._type(name) for name in predicates])

    def ends(self, f: str) -> tuple[str, str]:
        return f"startNode({f})", f"endNode({f})"

    def reach(
        self, a: str, b: str, predicates: Sequence[str], direction: str, least: int, most: int | None
    ) -> tuple[str, list[str]]:
        """Match relationships of some types; none leads on from a value."""
        left, right = {"forward": ("-", "->"), "backward": ("<-", "-"), "either": ("-", "-")}[direction]
        types = "|".join(self._type(name) for name in predicates)
        steps = f"*{least}..{'' if most is None else most}"
        pattern = f"({a}:{ENTITY}){left}[:{types}{steps}]{right}({b}:{ENTITY})"
        return pattern, [f"{a}.graph = $graph", f"{b}.graph = $graph"]

    def is_statement(self, f: str) -> str:
        """Test `sid`, which edges of the layout do not have."""
        return f"{f}.sid IS NOT NULL"

    def indexed(self, kinds: set[values.Kind]) -> bool:
        return len(kinds) == 1 and next(iter(kinds)) in _INDEXED

    def by_kind(self, v: str, kind: values.Kind) -> str:
        """Force the index: the planner may take the one across all predicates."""
        return f" USING INDEX SEEK {v}:{VALUE}(graph, predicate, {', '.join(_INDEXED[kind])})"

    def object(self, o: str, family: Family) -> Cell:
        """Return the node; an entity also has the properties by which texts are compared."""
        return Bound(o)

    def object_cell(self, o: str, family: Family) -> str:
        cell = self.entity_cell(o)
        return f"CASE WHEN {o}:{VALUE} THEN properties({o}) ELSE {cell} END" if family == "any" else cell

    def kind_of_object(self, o: str) -> str:
        return f"CASE WHEN {o}:{VALUE} THEN {o}.kind ELSE 'entity' END"

    def type(self, f: str) -> str:
        return f"type({f})"

    def predicate(self, f: str) -> str:
        """Read the type, without the suffix of names that the layout uses."""
        name = self.engine.read_type_text(f"type({f})")
        return f"CASE WHEN {name} ENDS WITH {_QUOTED_SUFFIX} THEN left({name}, size({name}) - 12) ELSE {name} END"

    def predicate_of(self, type_name: str) -> str:
        return predicate_of(self.engine.read_type(type_name))

    # -- sources -----------------------------------------------------------------------------------

    def in_source(self, source: str, f: str, value: str | None) -> str:
        """Test the sources of the relationship, or of its value."""
        return f"{source} IN {f}.sources" if value is None else f"{source} IN coalesce({f}.sources, {value}.sources)"

    def entities_in_source(self, scope: QueryScope, e: str, source: str) -> list[str]:
        """Match rows, subjects and objects."""
        pattern, inside = self.rows(e, source)
        f, o = scope.name("f"), scope.name("o")
        subject, of_graph = self.entity(e)
        stands = self.in_source(source, f, o)
        return [
            f"MATCH {pattern} WHERE {inside} RETURN {e}",
            f"MATCH {subject}-[{f}]->({o}) WHERE {of_graph} AND {self.is_statement(f)} AND {stands} RETURN {e}",
            f"MATCH ({o}:{ENTITY})-[{f}]->{subject} WHERE {of_graph} AND {self.is_statement(f)} "
            f"AND {source} IN {f}.sources RETURN {e}",
        ]

    def place(self, f: str, value: str | None) -> str:
        return f"{f}.rows[0]" if value is None else f"coalesce({f}.rows, {value}.rows)[0]"

    # -- qualifiers and validity -------------------------------------------------------------------

    def qualifiers(self, f: str, o: str, family: Family, q: str) -> list[str]:
        """Match from the value of an attribute, or from the `Statement` of a relation."""
        return [f"MATCH {owner}-[:QUALIFIER]->({q}:{QUALIFIER})" for owner in self._owners(f, o, family)]

    def _owners(self, f: str, o: str, family: Family) -> list[str]:
        """Return the nodes that can have qualifiers."""
        result = [] if family == "relation" else [f"({o})"]
        if family == "attribute":
            return result
        if not self.engine.maps_of_others:
            return [*result, f"(of_{f}:{STATEMENT} WHERE of_{f}.graph = $graph AND of_{f}.sid = {f}.sid)"]
        return [*result, f"(:{STATEMENT} {{graph: $graph, sid: {f}.sid}})"]

    def qualifier_name(self, q: str) -> str:
        return f"{q}.name"

    def referred(self, q: str, e: str) -> str:
        return f"({q})-[:IS]->({e}:{ENTITY})"

    def validity(self, f: str) -> tuple[str, str]:
        return f"{f}.since", f"{f}.until"

    def validity_cell(self, f: str) -> str:
        return f"{{kind: 'time', start: {f}.since, end: {f}.until, precision: {f}.span, text: {f}.valid}}"

    # -- what an answer rests on -------------------------------------------------------------------

    def statement(self, scope: QueryScope, f: str, s: str, o: str, family: Family) -> str:
        q, x = scope.name("q"), scope.name("e")
        value = "null" if family == "relation" else self.engine.projected(o, *_VALUE_FIELDS)
        thing = "null" if family == "attribute" else self.described(o)
        if family == "any":
            value, thing = f"CASE WHEN {o}:{VALUE} THEN {value} END", f"CASE WHEN {o}:{ENTITY} THEN {thing} END"
        qualifiers = " + ".join(
            f"COLLECT {{ {clause} OPTIONAL MATCH {self.referred(q, x)} "
            f"RETURN {self.engine.projected(q, *_VALUE_FIELDS, 'name', f'ref: {self.described(x)}')} }}"
            for clause in self.qualifiers(f, o, family, q)
        )
        sources, rows = (
            f"{f}.{item}" if family == "relation" else f"coalesce({f}.{item}, {o}.{item})" for item in ("sources", "rows")
        )
        return (
            f"{{s: {self.described(s)}, p: type({f}), id: {f}.sid, o: {thing}, v: {value}, sources: {sources}, rows: {rows}, "
            f"q: {qualifiers}}}"
        )

    def memberships(self, scope: QueryScope, concepts: str, members: str) -> list[list[str]]:
        """Match memberships with sources: these were stated."""
        e, c, d, p, m = (scope.name(prefix) for prefix in ("e", "c", "c", "c", "m"))
        below = f"UNWIND {concepts} AS {c} MATCH ({d}:{CONCEPT})-[:SUBCLASS_OF*0..]->({c}) WITH DISTINCT {d}"
        places = f"sources: {m}.sources, rows: {m}.rows"
        return [
            [
                below,
                f"MATCH ({e}:{ENTITY})-[{m}:MEMBER_OF]->({d}) WHERE size({m}.sources) > 0 AND {e} IN {members}",
                f"RETURN -1 AS unit, {{m: {{a: {self.described(e)}, b: {self.described(d)}, {places}}}}} AS row",
            ],
            [
                below,
                f"MATCH ({p}:{CONCEPT})-[{m}:SUBCLASS_OF]->({d})",
                f"RETURN -1 AS unit, {{c: {{a: {self.described(p)}, b: {self.described(d)}, {places}}}}} AS row",
            ],
        ]

    def stated(self, e: str, c: str) -> str:
        """Match stated memberships of entities in concepts."""
        m = f"m_{e}_{c}"
        return f"MATCH ({e}:{ENTITY})-[{m}:MEMBER_OF]->({c}) WHERE {e}.graph = $graph AND size({m}.sources) > 0"

    def memberships_of(self, scope: QueryScope, members: str, most: int) -> list[list[str]]:
        result = []
        for end in ("e", "c"):
            e, c, m = (scope.name(prefix) for prefix in ("e", "c", "m"))
            end_variable = e if end == "e" else c
            link = f"{{m: {{a: {self.described(e)}, b: {self.described(c)}, sources: {m}.sources, rows: {m}.rows}}}}"
            stated = f"MATCH ({e})-[{m}:MEMBER_OF]->({c}) WHERE size({m}.sources) > 0"
            result.append([f"UNWIND {members} AS {end_variable}", stated, f"RETURN -1 AS unit, {link} AS row LIMIT {int(most)}"])
        return result

    # -- names -------------------------------------------------------------------------------------

    def subjects_of(self, predicates: Sequence[str]) -> str:
        pattern, inside = self.entity("s")
        return f"MATCH {pattern}-[f{self._types(predicates)}]->() WHERE {inside}"

    def relations_to(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """Match relations; without predicates, by `sid`, which edges of the layout do not have."""
        subject, inside = self.rows("s", source) if table and source else self.entity("s")
        scope = "" if source is None else f" AND {self.in_source(source, 'f', None)}"
        return f"MATCH {subject}-[f{self._types(predicates)}]->(o:{ENTITY}) WHERE {inside} AND {self.is_statement('f')}{scope} "

    def values_of(self, predicates: Sequence[str] | None, source: str | None, *, table: bool) -> str:
        """Read the index of values, without subjects, or start at the rows of a table."""
        scope = "" if source is None else f" AND {self.in_source(source, 'o', None)}"
        if table and source:
            subject, inside = self.rows("s", source)
            return f"MATCH {subject}-[f{self._types(predicates)}]->(o:{VALUE}) WHERE {inside}{scope} "
        return f"MATCH (o:{VALUE}) WHERE o.graph = $graph AND o.predicate IN $attributes{scope} "

    def value_id(self, o: str) -> str:
        return f"{o}.sid"


_LAYOUTS: Final = {engine: CondgraphLayout(engine) for engine in (NEO4J, ARCADEDB, MEMGRAPH)}
CONDGRAPH: Final = _LAYOUTS[NEO4J]


def layout_on(engine: Engine) -> CondgraphLayout:
    """Return the layout in the dialect of a server."""
    return _LAYOUTS[engine]
