"""A graph on a server read back into a snapshot: the inverse of `load`, streamed a kind of record at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout import predicate_of, value_of
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

_SOURCES: Final = "MATCH (s:Source {graph: $graph}) RETURN s.name AS name, s.location AS location, s.format AS format"
_ENTITIES: Final = (
    "MATCH (e:Entity {graph: $graph}) RETURN e.id AS id, e.name AS name, e.kind AS kind, e.source AS source, e.row AS row"
)
#: Membership that follows from the direct one has no sources.
_BELOW: Final = (
    "MATCH (a:Entity {graph: $graph})-[m:%s]->(c:Entity) WHERE size(m.sources) > 0 "
    "RETURN a.id AS a, c.id AS c, m.sources AS sources, m.rows AS rows"
)
_FIELDS: Final = ".kind, .text, .number, .exact, .unit, .start, .end, .precision"
_QUALIFIERS: Final = (
    "MATCH (o:%s {graph: $graph})-[:QUALIFIER]->(q:Qualifier) OPTIONAL MATCH (q)-[:IS]->(e:Entity) "
    f"RETURN o.sid AS sid, q.name AS name, q {{{_FIELDS}}} AS value, e.id AS id"
)
_RELATIONS: Final = (
    "MATCH (a:Entity {graph: $graph})-[f]->(b:Entity) WHERE f.sid IS NOT NULL "
    "RETURN a.id AS s, type(f) AS p, b.id AS o, f.sid AS sid, f.sources AS sources, f.rows AS rows"
)
_ATTRIBUTES: Final = (
    "MATCH (a:Entity {graph: $graph})-[f]->(v:Value) "
    f"RETURN a.id AS s, type(f) AS p, v {{{_FIELDS}, .raw}} AS value, f.sid AS sid, v.sources AS sources, v.rows AS rows"
)


def pull(connection: Connection, graph: str) -> Snapshot:
    """The graph as a snapshot in memory, equal to the one that was pushed."""
    builder = Builder()
    builder.begin(Source(graph))
    builder.add(_items(connection, graph))
    return Snapshot.of(*lay_out(builder))


def _items(connection: Connection, graph: str) -> Iterator[Item]:
    def rows(text: str) -> list[dict[str, Any]]:
        return connection.read(text, {"graph": graph})

    for row in rows(_SOURCES):
        yield Source(row["name"], row["location"], row["format"])
    for row in rows(_ENTITIES):
        entity = Entity(row["id"], row["name"], EntityKind(row["kind"]), row["row"] or 0)
        yield entity if row["source"] is None else Sourced(entity, ((row["source"], entity.row),))
    for row in rows(_BELOW % "MEMBER_OF"):
        yield Sourced(Member(row["a"], row["c"]), _places(row))
    for row in rows(_BELOW % "SUBCLASS_OF"):
        yield Sourced(Subclass(row["a"], row["c"]), _places(row))
    qualifiers: dict[int, list[tuple[str, Ref | Value]]] = {}
    for label in ("Statement", "Value"):
        for row in rows(_QUALIFIERS % label):
            value: Ref | Value = value_of(row["value"]) if row["id"] is None else Ref(row["id"])
            qualifiers.setdefault(row["sid"], []).append((row["name"], value))
    for row in rows(_RELATIONS):
        found = tuple(qualifiers.get(row["sid"], ()))
        yield Sourced(Statement(row["s"], predicate_of(row["p"]), Ref(row["o"]), found), _places(row))
    for row in rows(_ATTRIBUTES):
        found = tuple(qualifiers.get(row["sid"], ()))
        statement = Statement(row["s"], predicate_of(row["p"]), value_of(row["value"]), found, raw=row["value"].get("raw"))
        yield Sourced(statement, _places(row))


def _places(row: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple(zip(row["sources"], row["rows"], strict=True))
