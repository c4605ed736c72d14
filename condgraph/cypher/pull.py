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

_SOURCES: Final = "MATCH (s:Source {graph: $graph}) RETURN s.name, s.location, s.format ORDER BY s.number"
_ENTITIES: Final = "MATCH (e:Entity {graph: $graph}) RETURN e.id, e.name, e.kind, e.source, e.row"
#: Membership that follows from the direct one has no sources.
_BELOW: Final = "MATCH (a:Entity {graph: $graph})-[m:%s]->(c:Entity) WHERE size(m.sources) > 0 RETURN a.id, c.id, m.sources, m.rows"
_FIELDS: Final = ("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw")
_QUALIFIERS: Final = (
    "MATCH (o:%s {graph: $graph})-[:QUALIFIER]->(q:Qualifier) OPTIONAL MATCH (q)-[:IS]->(e:Entity) "
    f"RETURN o.sid, q.name, e.id, {', '.join(f'q.{name}' for name in _FIELDS)}"
)
_RELATIONS: Final = (
    "MATCH (a:Entity {graph: $graph})-[f]->(b:Entity) WHERE f.sid IS NOT NULL RETURN a.id, type(f), b.id, f.sid, f.sources, f.rows"
)
_ATTRIBUTES: Final = (
    "MATCH (a:Entity {graph: $graph})-[f]->(v:Value) WHERE f.sid IS NOT NULL "
    f"RETURN a.id, type(f), f.sid, v.sources, v.rows, {', '.join(f'v.{name}' for name in _FIELDS)}"
)


def pull(connection: Connection, graph: str) -> Snapshot:
    """The graph as a snapshot in memory, equal to the one that was pushed."""
    builder = Builder()
    builder.begin(Source(graph))
    builder.add(_items(connection, graph))
    return Snapshot.of(*lay_out(builder))


def _items(connection: Connection, graph: str) -> Iterator[Item]:
    def rows(text: str) -> Iterator[list[Any]]:
        return connection.stream(text, {"graph": graph})

    def places(sources: list[str], numbers: list[int]) -> tuple[tuple[str, int], ...]:
        return tuple(zip(sources, numbers, strict=True))

    for name, location, form in rows(_SOURCES):
        yield Source(name, location, form)

    for ident, name, kind, source, row in rows(_ENTITIES):
        entity = Entity(ident, name, EntityKind(kind), row or 0)
        yield entity if source is None else Sourced(entity, places([source], [row]))
    for one, other, sources, numbers in rows(_BELOW % "MEMBER_OF"):
        yield Sourced(Member(one, other), places(sources, numbers))
    for one, other, sources, numbers in rows(_BELOW % "SUBCLASS_OF"):
        yield Sourced(Subclass(one, other), places(sources, numbers))
    qualifiers: dict[int, list[tuple[str, Ref | Value]]] = {}
    for label in ("Statement", "Value"):
        for sid, key, ident, *fields in rows(_QUALIFIERS % label):
            value: Ref | Value = _value(fields) if ident is None else Ref(ident)
            qualifiers.setdefault(sid, []).append((key, value))
    for subject, kind, thing, sid, sources, numbers in rows(_RELATIONS):
        statement = Statement(subject, predicate_of(kind), Ref(thing), tuple(qualifiers.get(sid, ())))
        yield Sourced(statement, places(sources, numbers))
    for subject, kind, sid, sources, numbers, *fields in rows(_ATTRIBUTES):
        found = tuple(qualifiers.get(sid, ()))
        statement = Statement(subject, predicate_of(kind), _value(fields), found, raw=fields[-1])
        yield Sourced(statement, places(sources, numbers))


def _value(fields: list[Any]) -> Value:
    return value_of(dict(zip(_FIELDS, fields, strict=True)))
