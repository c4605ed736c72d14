"""A database of others read into a snapshot, streamed, through the mapping that programs there go
by: the reference that their answers are held against.

Nodes are entities and members of their labels, properties statements (a list one for each of its
values), relationships statements with their properties as qualifiers. Relationships that are equal
in all of these are one statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from condgraph.cypher.native.ids import SOURCE, concept_id, foreign, id_of, name_of
from condgraph.cypher.native.mapping import Mapping, NodeType, Property, RelationshipType
from condgraph.cypher.native.qualifiers import named
from condgraph.cypher.native.values import sent, values_in
from condgraph.engine.bounds import check
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Statement
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

#: Properties as `values_in` takes them, each behind its key.
_HELD: Final = f"[k IN keys(%s) WHERE NOT k IN $hidden | head([v IN [%s[k]] | [k] + {sent('v')}])]"
#: Rows between two looks at the deadline.
_ROWS: Final = 1_000


def pull(connection: Connection, mapping: Mapping) -> tuple[Snapshot, int]:
    """The database as a snapshot in memory; and how many relationships it holds that are equal to
    others, which the snapshot has not.
    """
    builder, read = Builder(), 0

    def items() -> Iterator[Item]:
        nonlocal read
        for item in _items(connection, mapping):
            read += isinstance(item, Statement) and isinstance(item.object, Ref)
            yield item

    builder.begin(Source(SOURCE, connection.place, "neo4j"))
    builder.add(items())
    snapshot = Snapshot.of(*lay_out(builder))
    return snapshot, read - snapshot.relations


def _items(connection: Connection, mapping: Mapping) -> Iterator[Item]:
    for node in mapping.nodes:
        if node.label:
            yield Entity(concept_id(node.label), node.concept, EntityKind.CONCEPT)
    yield from _nodes(connection, mapping)
    yield from _relationships(connection, mapping)


def _nodes(connection: Connection, mapping: Mapping) -> Iterator[Item]:
    by_label = {node.label: (place, node, {one.key: one for one in node.properties}) for place, node in enumerate(mapping.nodes)}
    text = f"MATCH (n) WHERE {foreign('n')} RETURN {id_of('n', mapping)}, {name_of('n', mapping)}, labels(n), {_HELD % ('n', 'n')}"
    for number, (ident, name, labels, held) in enumerate(connection.stream(text, {"hidden": _hidden(mapping)})):
        if not number % _ROWS:
            check()
        yield Entity(ident, name)
        for label in labels:
            yield Member(ident, concept_id(label))
        # The first label that has a property says how it is read.
        known = sorted((by_label[label] for label in labels or [""] if label in by_label), key=lambda one: one[0])
        for key, *found in held:
            prop = _property(key, known)
            if prop is None:
                continue
            for value, raw in values_in(found, prop):
                yield Statement(ident, prop.predicate, value, raw=raw)


def _hidden(mapping: Mapping) -> list[str]:
    """Keys that are hidden wherever they are: they are not sent at all."""
    shown = {one.key for node in mapping.nodes for one in node.properties if one.key not in node.hidden}
    shown |= {one.key for relationship in mapping.relationships for one in relationship.qualifiers}
    return sorted({key for node in mapping.nodes for key in node.hidden} - shown)


def _property(key: str, known: list[tuple[int, NodeType, dict[str, Property]]]) -> Property | None:
    """How a property of a node is read; None where it is hidden. One that no sample had is read as
    its own type says.
    """
    for _, node, properties in known:
        if key in node.hidden:
            return None
        if key in properties:
            return properties[key]
    return Property(key, key, (), 0)


def _relationships(connection: Connection, mapping: Mapping) -> Iterator[Item]:
    by_type = {one.type: (one, {prop.key: prop for prop in one.qualifiers}) for one in mapping.relationships}
    text = (
        f"MATCH (a)-[r]->(b) WHERE {foreign('a')} AND {foreign('b')} "
        f"RETURN {id_of('a', mapping)}, type(r), {id_of('b', mapping)}, {_HELD % ('r', 'r')}"
    )
    for number, (subject, name, thing, held) in enumerate(connection.stream(text, {"hidden": _hidden(mapping)})):
        if not number % _ROWS:
            check()
        one, properties = by_type.get(name) or (RelationshipType(name, name, 0), {})
        qualifiers: list[tuple[str, Ref | Value]] = []
        for key, *found in held:
            prop = properties.get(key) or Property(key, key, (), 0)
            called = named(one, prop)
            qualifiers.extend((called, value) for value, _ in values_in(found, prop))
        yield Statement(subject, one.predicate, Ref(thing), tuple(qualifiers))
