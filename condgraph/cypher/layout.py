"""How a graph is stored in Neo4j: the one place that the writer and the compiler both read.

    (:Entity {graph, id, name, key, kind})              kind 0 entity, 1 concept (:Concept), 2 table row (:Row, with source and row)
    (a:Entity)-[:`predicate` {sid}]->(b:Entity)         a relation, under the predicate's own name
    (a:Entity)-[:`predicate` {sid}]->(v:Value {...})    an attribute; the value node holds the typed value
    (:Statement {graph, sid})                           stands for a relation that has qualifiers
    (:Statement|:Value)-[:QUALIFIER]->(:Qualifier {...})  its qualifiers; (:Qualifier)-[:IS]->(:Entity) where one is an entity
    (a:Entity)-[:MEMBER_OF]->(c:Concept)                membership closed under subclass; it has sources where it was stated
    (c:Concept)-[:SUBCLASS_OF]->(d:Concept)
    (:Graph {name, format, complete, counts, schema}), (:Source {graph, name, location, format})

`sid` is the hash of a statement's content, and tells data from the edges of the layout, which have none; every statement and
membership has `sources` and `rows`, side by side. `graph` leads every index, so that many graphs share a database. A `Value` and
a `Qualifier` have `kind` ("text", "quantity", "time", "entity", "unknown"), and as the kind asks `text` and `key`, `number` and
`unit`, `start`, `end` and `precision`. `key` is the text as it is indexed: long texts, which an index refuses, stand there as their
hash.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from condgraph.engine.values import Kind, Precision, Quantity, Time, Unknown, Value

FORMAT: Final = 1
#: Names of relationship types that the layout itself uses.
RESERVED: Final = frozenset({"MEMBER_OF", "SUBCLASS_OF", "QUALIFIER", "IS"})
_SUFFIX: Final = " (predicate)"
#: Longest text (in bytes of UTF-8) that is indexed as it stands.
_LONGEST_KEY: Final = 4_000

#: Indexes and constraints, all of Community; `$name` of each is its name in the database.
INDEXES: Final[tuple[str, ...]] = (
    "CREATE CONSTRAINT condgraph_entity_id IF NOT EXISTS FOR (e:Entity) REQUIRE (e.graph, e.id) IS UNIQUE",
    "CREATE CONSTRAINT condgraph_graph IF NOT EXISTS FOR (g:Graph) REQUIRE g.name IS UNIQUE",
    "CREATE CONSTRAINT condgraph_load IF NOT EXISTS FOR (l:Load) REQUIRE (l.graph, l.batch) IS UNIQUE",
    "CREATE INDEX condgraph_entity_key IF NOT EXISTS FOR (e:Entity) ON (e.graph, e.key)",
    "CREATE INDEX condgraph_entity_kind IF NOT EXISTS FOR (e:Entity) ON (e.graph, e.kind)",
    "CREATE INDEX condgraph_concept_key IF NOT EXISTS FOR (c:Concept) ON (c.graph, c.key)",
    "CREATE INDEX condgraph_value_sid IF NOT EXISTS FOR (v:Value) ON (v.graph, v.sid)",
    "CREATE INDEX condgraph_value_key IF NOT EXISTS FOR (v:Value) ON (v.graph, v.predicate, v.key)",
    "CREATE INDEX condgraph_value_number IF NOT EXISTS FOR (v:Value) ON (v.graph, v.predicate, v.number)",
    "CREATE INDEX condgraph_value_start IF NOT EXISTS FOR (v:Value) ON (v.graph, v.predicate, v.start)",
    "CREATE INDEX condgraph_statement_sid IF NOT EXISTS FOR (s:Statement) ON (s.graph, s.sid)",
    "CREATE INDEX condgraph_qualifier_key IF NOT EXISTS FOR (q:Qualifier) ON (q.graph, q.name, q.key)",
)


def type_of(predicate: str) -> str:
    """The relationship type of a predicate; those the layout uses itself get a suffix, so that the name can be read back.

    >>> type_of("spouse"), type_of("IS"), predicate_of(type_of("IS (predicate)"))
    ('spouse', 'IS (predicate)', 'IS (predicate)')
    """
    return predicate + _SUFFIX if predicate in RESERVED or predicate.endswith(_SUFFIX) else predicate


def predicate_of(type_name: str) -> str:
    """The predicate of a relationship type."""
    return type_name[: -len(_SUFFIX)] if type_name.endswith(_SUFFIX) else type_name


def index_key(text: str) -> str:
    """A text as it is indexed: itself, or its hash where it is too long for an index."""
    encoded = text.encode()
    return text if len(encoded) <= _LONGEST_KEY else "sha256:" + sha256(encoded).hexdigest()


def value_properties(value: Value) -> dict[str, Any]:
    """The properties of a `Value` or `Qualifier` node."""
    if isinstance(value, str):
        return {"kind": "text", "text": value, "key": index_key(value)}
    if isinstance(value, Quantity):
        found: dict[str, Any] = {"kind": "quantity", "number": float(value.number), "unit": value.unit}
        if float(value.number) != value.number:
            found["exact"] = str(value.number)
        return found
    if isinstance(value, Time):
        return {"kind": "time", "start": value.start, "end": value.end, "precision": int(value.precision)}
    assert isinstance(value, Unknown)
    return {"kind": "unknown"}


def value_of(properties: dict[str, Any]) -> Value:
    """The value of a `Value` or `Qualifier` node that is no entity."""
    from condgraph.engine.values import UNKNOWN, parse_number

    kind = properties["kind"]
    if kind == "text":
        return str(properties["text"])
    if kind == "quantity":
        number = properties["number"]
        exact = properties.get("exact")
        if exact is not None:
            return Quantity(parse_number(exact), properties["unit"])
        return Quantity(int(number) if float(number).is_integer() else number, properties["unit"])
    if kind == "time":
        return Time(properties["start"], properties["end"], Precision(properties["precision"]))
    return UNKNOWN


#: Kinds of values by the word that stands in the database.
KINDS: Final = {kind.name.lower(): kind for kind in Kind}
