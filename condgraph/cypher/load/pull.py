"""Reads a graph from a server into a snapshot, streaming one kind of record at a time (the inverse of `write`); and the parts
of a graph that a single change concerns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.base import value_of
from condgraph.cypher.layout.schema import (
    CONCEPT,
    ENTITY,
    GRAPH,
    QUALIFIER,
    SOURCE,
    STATEMENT,
    VALUE,
    index_key,
    predicate_of,
    type_of,
)
from condgraph.edits import Removed, SourceUse
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Builder, read_entity
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

Rows = Iterable[list[Any]]

_SOURCES: Final = (
    f"MATCH (s:{SOURCE} {{graph: $graph}}) RETURN s.name, s.location, s.format, coalesce(s.content, ''), coalesce(s.terms, '') "
    "ORDER BY s.number"
)
_ENTITY: Final = "e.id, e.name, e.kind, e.source, e.row, e.declared"
_ENTITIES: Final = f"MATCH (e:{ENTITY} {{graph: $graph}}) RETURN {_ENTITY}"
_DECLARES: Final = f"MATCH (g:{GRAPH} {{name: $graph}}) WHERE g.declares RETURN true AS known"
#: A membership that only follows from another one has no sources.
_LINK: Final = "a.id, c.id, m.sources, m.rows"
_SUBCLASSES: Final = f"MATCH (a:{ENTITY} {{graph: $graph}})-[m:%s]->(c:{ENTITY}) WHERE size(m.sources) > 0 RETURN {_LINK}"
FIELDS: Final = ("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw")
_CELL: Final = f"o.sid, q.name, e.id, {', '.join(f'q.{name}' for name in FIELDS)}"
_QUALIFIED: Final = f"-[:QUALIFIER]->(q:{QUALIFIER}) OPTIONAL MATCH (q)-[:IS]->(e:{ENTITY}) RETURN {_CELL}"
_QUALIFIERS: Final = f"MATCH (o:%s {{graph: $graph}}){_QUALIFIED}"
_RELATION: Final = "a.id, type(f), b.id, f.sid, f.sources, f.rows"
_RELATIONS: Final = f"MATCH (a:{ENTITY} {{graph: $graph}})-[f]->(b:{ENTITY}) WHERE f.sid IS NOT NULL RETURN {_RELATION}"
_ATTRIBUTE: Final = f"a.id, type(f), f.sid, v.sources, v.rows, v.raws, {', '.join(f'v.{name}' for name in FIELDS)}"
_ATTRIBUTES: Final = f"MATCH (a:{ENTITY} {{graph: $graph}})-[f]->(v:{VALUE}) WHERE f.sid IS NOT NULL RETURN {_ATTRIBUTE}"


def pull(connection: Connection, graph: str) -> Snapshot:
    """Return the graph as a snapshot in memory, equal to the one that was pushed."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(_items(connection, graph))
    return Snapshot.of(*lay_out(builder))


def graph_sources(connection: Connection, graph: str) -> tuple[Source, ...]:
    """Return the sources of a graph in the order of loading; none if there is no graph."""
    return tuple(Source(*row.values()) for row in connection.ask(_SOURCES, {"graph": graph}))


def _items(connection: Connection, graph: str) -> Iterator[Item]:
    def rows(text: str) -> Iterator[list[Any]]:
        return connection.stream(text, {"graph": graph})

    listed = graph_sources(connection, graph)
    yield from listed
    known = bool(connection.ask(_DECLARES, {"graph": graph}))
    yield from entities_of(rows(_ENTITIES), [item.name for item in listed], known=known)
    for build, edge in ((Member, "MEMBER_OF"), (Subclass, "SUBCLASS_OF")):
        for below, above, sources, numbers in rows(_SUBCLASSES % edge):
            yield Sourced(build(below, above), places_of(sources, numbers))
    qualifiers = _qualifiers(row for label in (STATEMENT, VALUE) for row in rows(_QUALIFIERS % label))
    yield from statements_of(rows(_RELATIONS), rows(_ATTRIBUTES), qualifiers, connection.engine.read_type)


def entities_of(rows: Rows, sources: Sequence[str], *, known: bool) -> Iterator[Sourced]:
    """Yield declarations of entities, given the columns of `_ENTITY` and the names of all sources."""
    for ident, name, kind, source, row, declared in rows:
        entity = Entity(ident, name, EntityKind(kind), row or 0)
        yield from read_entity(entity, source, declared, sources, known=known)


#: Returns the qualifiers of a statement, by its number in the rows.
Qualifiers = Callable[[int], Sequence[tuple[str, Ref | Value]] | None]


def _qualifiers(rows: Rows) -> Qualifiers:
    qualifiers: dict[int, list[tuple[str, Ref | Value]]] = {}
    for sid, key, ident, *fields in rows:
        value: Ref | Value = value_in(fields) if ident is None else Ref(ident)
        qualifiers.setdefault(sid, []).append((key, value))
    return qualifiers.get


def statements_of(
    relations: Rows, attributes: Rows, qualifiers: Qualifiers, read_type: Callable[[str], str] = str
) -> Iterator[Sourced]:
    """Yield statements, given the columns of `_RELATION` and `_ATTRIBUTE`."""
    for subject, kind, thing, sid, sources, numbers in relations:
        statement = Statement(subject, predicate_of(read_type(kind)), Ref(thing), tuple(qualifiers(sid) or ()))
        yield Sourced(statement, places_of(sources, numbers))
    for subject, kind, sid, sources, numbers, written, *fields in attributes:
        statement_qualifiers = tuple(qualifiers(sid) or ())
        raws, places = [fields[-1]] if written is None else json.loads(written), places_of(sources, numbers)
        for raw in dict.fromkeys(raws):
            raw_places = (
                places if written is None else tuple(place for place, entry in zip(places, raws, strict=True) if entry == raw)
            )
            yield Sourced(
                Statement(subject, predicate_of(read_type(kind)), value_in(fields), statement_qualifiers, raw=raw), raw_places
            )


def places_of(sources: list[str], numbers: list[int]) -> tuple[tuple[str, int], ...]:
    return tuple(zip(sources, numbers, strict=True))


def value_in(fields: list[Any]) -> Value:
    return value_of(dict(zip(FIELDS, fields, strict=True)))


# -- Parts -------------------------------------------------------------------------------------------
# Queries for a single change (`condgraph.remote.PartStore`).


_BY_ID: Final = f"MATCH (e:{ENTITY} {{graph: $graph, handle: $handle}}) "
_BY_NAME: Final = (
    f"{_BY_ID}RETURN e.id, e.name, e.kind, e.row UNION MATCH (e:{ENTITY} {{graph: $graph, key: $key}}) "
    "RETURN e.id, e.name, e.kind, e.row"
)
_NAMES: Final = f"MATCH (e:{ENTITY}) WHERE e.graph = $graph AND e.key IS NOT NULL RETURN e.name LIMIT $most"
_THESE: Final = f"UNWIND $handles AS handle MATCH (e:{ENTITY}) WHERE e.graph = $graph AND e.handle = handle "
_CONCEPTS: Final = "MATCH (e)-[m:%s]->(c) WHERE size(m.sources) > 0 RETURN e.id, m.sources, m.rows, c.id"
_FROM: Final = f"MATCH (a:{ENTITY} {{graph: $graph, handle: $handle}})-[f%s]->"
_USES: Final = (
    f"{_BY_ID}MATCH (e)-[f]->(v) WHERE f.sid IS NOT NULL AND NOT f.sid IN $sids RETURN coalesce(f.sources, v.sources) AS s, "
    f"false AS c LIMIT 1 UNION ALL {_BY_ID}MATCH (e)<-[f]-() WHERE f.sid IS NOT NULL AND NOT f.sid IN $sids "
    f"RETURN f.sources AS s, false AS c LIMIT 1 UNION ALL "
    f"{_BY_ID}MATCH (e)<-[:IS]-(:{QUALIFIER})<-[:QUALIFIER]-(v:{VALUE}) WHERE NOT v.sid IN $sids "
    f"RETURN v.sources AS s, false AS c LIMIT 1 UNION ALL "
    f"{_BY_ID}MATCH (e)<-[:IS]-(:{QUALIFIER})<-[:QUALIFIER]-(o:{STATEMENT})-[:SUBJECT]->(a) WHERE NOT o.sid IN $sids "
    "MATCH (a)-[f]->() WHERE f.sid = o.sid RETURN f.sources AS s, false AS c LIMIT 1 UNION ALL "
    f"{_BY_ID}MATCH (e)<-[f:MEMBER_OF|SUBCLASS_OF]-() WHERE size(f.sources) > 0 RETURN f.sources AS s, true AS c LIMIT 1 "
    f"UNION ALL {_BY_ID}MATCH (e)-[f:SUBCLASS_OF]->() RETURN f.sources AS s, true AS c LIMIT 1"
)
_UNUSED: Final = (
    f"MATCH (e:{ENTITY} {{graph: $graph, kind: 0}}) WHERE e.name = e.id AND e.declared IS NULL AND NOT (e)--() "
    f"RETURN e.id LIMIT $most UNION ALL MATCH (e:{CONCEPT}) WHERE e.graph = $graph AND e.key IS NOT NULL AND e.name = e.id "
    "AND e.declared IS NULL AND NOT (e)<-[:MEMBER_OF]-() AND NOT (e)-[:SUBCLASS_OF]-() RETURN e.id LIMIT $most"
)
_SEVERAL_VALUES: Final = (
    f"MATCH (a:{ENTITY} {{graph: $graph}})-[:%s]->(v:{VALUE}) WHERE NOT a.handle IN $handles "
    "WITH a, count(v) AS values WHERE values > 1 RETURN true LIMIT 1"
)
_SEVERAL_QUALIFIERS: Final = (
    f"MATCH (o:%s {{graph: $graph}})-[:QUALIFIER]->(:{QUALIFIER} {{name: $name}}) WHERE NOT o.sid IN $sids "
    "WITH o, count(*) AS values WHERE values > 1 RETURN true LIMIT 1"
)


class Neo4jParts:
    """Parts of one graph, for single changes."""

    def __init__(self, connection: Connection, graph: str) -> None:
        self._connection, self._graph = connection, graph

    def _rows(self, text: str, **given: Any) -> list[list[Any]]:
        return self._connection.values(text, {"graph": self._graph, **given})

    def called(self, text: str) -> list[Entity]:
        """Return the entities whose id or name is a text."""
        rows = self._rows(_BY_NAME, handle=index_key(text), key=index_key(text))
        return [Entity(ident, name, EntityKind(kind), row or 0) for ident, name, kind, row in rows if text in (ident, name)]

    def some_names(self, most: int) -> list[str]:
        """Return the names of all entities; none if there are more than `most`."""
        rows = self._rows(_NAMES, most=most + 1)
        return [name for (name,) in rows] if len(rows) <= most else []

    def sources(self) -> tuple[Source, ...]:
        """Return the sources in the order of loading."""
        return graph_sources(self._connection, self._graph)

    def value_used(self, value: Value, without: Removed) -> bool:
        """Return False: each statement has its own node for its value."""
        return False

    def entities_about(self, ids: Sequence[str], sources: Sequence[str]) -> list[Item]:
        """Return entities by id, with the concepts they are stated to be in; `sources` are the names of all sources."""
        handles = list(map(index_key, ids))
        memberships: list[Item] = []
        concept_handles: set[str] = set()
        for build, edge in ((Member, "MEMBER_OF"), (Subclass, "SUBCLASS_OF")):
            for below, places, numbers, concept in self._rows(_THESE + _CONCEPTS % edge, handles=handles):
                memberships.append(Sourced(build(below, concept), places_of(places, numbers)))
                concept_handles.add(index_key(concept))
        rows = self._rows(f"{_THESE}RETURN {_ENTITY}", handles=[*handles, *sorted(concept_handles - set(handles))])
        return [*entities_of(rows, sources, known=True), *memberships]

    def statements_about(self, subject: str, predicate: str) -> list[Sourced]:
        """Return the statements of a subject and a predicate."""
        engine, kind = self._connection.engine, type_of(predicate)
        type_test = ":$($type)" if engine.computed_types else f":{engine.quote(engine.stored_type(kind))}"
        parameters = {"handle": index_key(subject), "type": kind}
        start = _FROM % type_test
        relations = self._rows(f"{start}(b:{ENTITY}) WHERE f.sid IS NOT NULL RETURN {_RELATION}", **parameters)
        attributes = self._rows(f"{start}(v:{VALUE}) WHERE f.sid IS NOT NULL RETURN {_ATTRIBUTE}", **parameters)
        cells: list[list[Any]] = []
        if relations:
            text = f"UNWIND $sids AS sid MATCH (o:{STATEMENT}) WHERE o.graph = $graph AND o.sid = sid MATCH (o){_QUALIFIED}"
            cells += self._rows(text, sids=[row[3] for row in relations])
        if attributes:
            cells += self._rows(f"{start}(o:{VALUE}){_QUALIFIED}", **parameters)
        return list(statements_of(relations, attributes, _qualifiers(cells), engine.read_type))

    def some_about(self, subject: str) -> list[Statement]:
        """Return up to 100 statements of a subject."""
        rows = self._rows(f"{_FROM % ''}() WHERE f.sid IS NOT NULL RETURN DISTINCT type(f) LIMIT 100", handle=index_key(subject))
        result: list[Statement] = []
        for (kind,) in rows:
            predicate = predicate_of(self._connection.engine.read_type(kind))
            result += [sourced.item for sourced in self.statements_about(subject, predicate) if isinstance(sourced.item, Statement)]
        return result[:100]

    def uses(self, ident: str, without: Removed) -> Iterable[SourceUse]:
        """Return a source that uses an entity in statements other than `without`, and one that uses it as a concept."""
        rows = self._rows(_USES, handle=index_key(ident), sids=list(without.identities))
        return {concept: SourceUse(sources[0], concept) for sources, concept in rows}.values()

    def unused(self, most: int) -> list[str]:
        """Return up to `most` ids of entities that are named by their id and occur nowhere but in a declaration."""
        return [ident for (ident,) in self._rows(_UNUSED, most=most)]

    def has_several(self, name: str, qualifier: bool, subjects: Sequence[str], without: Removed) -> bool:
        """Tell whether some entity, other than `subjects`, has several values of an attribute, or some statement of a
        qualifier.
        """
        engine = self._connection.engine
        if qualifier:
            texts = [_SEVERAL_QUALIFIERS % label for label in (STATEMENT, VALUE)]
        else:
            texts = [_SEVERAL_VALUES % engine.quote(engine.stored_type(type_of(name)))]
        parameters = {"name": name, "handles": list(map(index_key, subjects)), "sids": list(without.identities)}
        return any(self._rows(text, **parameters) for text in texts)
