"""A graph on a server read back into a snapshot: the inverse of `write`, streamed a kind of record
at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.cells import value_of
from condgraph.cypher.layout.schema import ENTITY, GRAPH, QUALIFIER, SOURCE, STATEMENT, VALUE, predicate_of
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.declared import read_entity
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

_SOURCES: Final = (
    f"MATCH (s:{SOURCE} {{graph: $graph}}) RETURN s.name, s.location, s.format, coalesce(s.content, ''), coalesce(s.terms, '') "
    "ORDER BY s.number"
)
_ENTITIES: Final = f"MATCH (e:{ENTITY} {{graph: $graph}}) RETURN e.id, e.name, e.kind, e.source, e.row, e.declared"
_DECLARES: Final = f"MATCH (g:{GRAPH} {{name: $graph}}) WHERE g.declares RETURN true AS known"
#: Membership that follows from the direct one has no sources.
_BELOW: Final = (
    f"MATCH (a:{ENTITY} {{graph: $graph}})-[m:%s]->(c:{ENTITY}) WHERE size(m.sources) > 0 RETURN a.id, c.id, m.sources, m.rows"
)
_FIELDS: Final = ("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw")
_QUALIFIERS: Final = (
    f"MATCH (o:%s {{graph: $graph}})-[:QUALIFIER]->(q:{QUALIFIER}) OPTIONAL MATCH (q)-[:IS]->(e:{ENTITY}) "
    f"RETURN o.sid, q.name, e.id, {', '.join(f'q.{name}' for name in _FIELDS)}"
)
_RELATIONS: Final = (
    f"MATCH (a:{ENTITY} {{graph: $graph}})-[f]->(b:{ENTITY}) WHERE f.sid IS NOT NULL "
    "RETURN a.id, type(f), b.id, f.sid, f.sources, f.rows"
)
_ATTRIBUTES: Final = (
    f"MATCH (a:{ENTITY} {{graph: $graph}})-[f]->(v:{VALUE}) WHERE f.sid IS NOT NULL "
    f"RETURN a.id, type(f), f.sid, v.sources, v.rows, v.raws, {', '.join(f'v.{name}' for name in _FIELDS)}"
)


def pull(connection: Connection, graph: str) -> Snapshot:
    """The graph as a snapshot in memory, equal to the one that was pushed."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(_items(connection, graph))
    return Snapshot.of(*lay_out(builder))


def graph_sources(connection: Connection, graph: str) -> tuple[Source, ...]:
    """The sources of a graph in the order they were loaded; none where there is no graph."""
    return tuple(Source(*row.values()) for row in connection.ask(_SOURCES, {"graph": graph}))


def _items(connection: Connection, graph: str) -> Iterator[Item]:
    def rows(text: str) -> Iterator[list[Any]]:
        return connection.stream(text, {"graph": graph})

    def places(sources: list[str], numbers: list[int]) -> tuple[tuple[str, int], ...]:
        return tuple(zip(sources, numbers, strict=True))

    listed = graph_sources(connection, graph)
    yield from listed
    names = [one.name for one in listed]
    known = bool(connection.ask(_DECLARES, {"graph": graph}))
    for ident, name, kind, source, row, said in rows(_ENTITIES):
        entity = Entity(ident, name, EntityKind(kind), row or 0)
        yield from read_entity(entity, source, said, names, known=known)
    for one, other, sources, numbers in rows(_BELOW % "MEMBER_OF"):
        yield Sourced(Member(one, other), places(sources, numbers))
    for one, other, sources, numbers in rows(_BELOW % "SUBCLASS_OF"):
        yield Sourced(Subclass(one, other), places(sources, numbers))
    qualifiers: dict[int, list[tuple[str, Ref | Value]]] = {}
    for label in (STATEMENT, VALUE):
        for sid, key, ident, *fields in rows(_QUALIFIERS % label):
            value: Ref | Value = _value(fields) if ident is None else Ref(ident)
            qualifiers.setdefault(sid, []).append((key, value))
    for subject, kind, thing, sid, sources, numbers in rows(_RELATIONS):
        statement = Statement(subject, predicate_of(kind), Ref(thing), tuple(qualifiers.get(sid, ())))
        yield Sourced(statement, places(sources, numbers))
    for subject, kind, sid, sources, numbers, written, *fields in rows(_ATTRIBUTES):
        found = tuple(qualifiers.get(sid, ()))
        raws, every = [fields[-1]] if written is None else json.loads(written), places(sources, numbers)
        for raw in dict.fromkeys(raws):
            some = every if written is None else tuple(place for place, one in zip(every, raws, strict=True) if one == raw)
            yield Sourced(Statement(subject, predicate_of(kind), _value(fields), found, raw=raw), some)


def _value(fields: list[Any]) -> Value:
    return value_of(dict(zip(_FIELDS, fields, strict=True)))
