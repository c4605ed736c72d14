"""Values of graphs on servers and in databases for Bolt: labels and properties of nodes and relationships are read by
further queries to the same store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from condgraph.bolt.packstream import Packed, Structure, packed
from condgraph.bolt.terms import NODE, RELATIONSHIP, UNBOUND, Values, path_of
from condgraph.engine.facts import Entity
from condgraph.engine.records import Evidence, PathTerm
from condgraph.languages.parameters import BoundQuery

if TYPE_CHECKING:
    from condgraph.graph import Graph

#: Nodes that one query reads.
_PAGE: Final = 500
_NODES: Final = (
    "MATCH (n) WHERE elementId(n) IN $ids RETURN n, labels(n) AS labels, properties(n) AS properties, n.name AS name, n.id AS id"
)
_RELATIONSHIPS: Final = (
    "MATCH (a)-[r]->(b) WHERE elementId(a) IN $subjects AND elementId(b) IN $objects AND type(r) IN $types "
    "RETURN r, properties(r) AS properties"
)
#: The patterns of `db.schema.visualization`.
PATTERNS: Final = (
    "MATCH (a)-[r]->(b) UNWIND labels(a) AS subject UNWIND labels(b) AS object "
    "RETURN DISTINCT subject, type(r) AS predicate, object"
)
#: Identifies a relationship.
_Key = tuple[str, str, str, tuple[Any, ...]]


class RemoteValues(Values):
    """Values of answers as values of PackStream.

    `load` reads what nodes and relationships have besides their ends. Drivers that require numeric ids get 53 bits of a
    hash of the id.
    """

    def __init__(self, graph: Graph, *, element_ids: bool, utc: bool) -> None:
        super().__init__(element_ids=element_ids, utc=utc)
        self._graph = graph
        self._entities: dict[str, tuple[list[str], dict[str, Any]]] = {}
        self._nodes: dict[str, Packed] = {}
        self._qualifiers: dict[_Key, dict[str, Any]] = {}
        self._structures = {Entity: self._node, Evidence: self._relationship, PathTerm: self._path}

    def load(self, rows: Sequence[Sequence[Any]]) -> None:
        """Read the labels and properties of the nodes and relationships in rows."""
        entities: dict[str, None] = {}
        qualified: dict[_Key, Evidence] = {}
        for term in _graph_items(rows):
            if isinstance(term, Entity):
                entities[term.id] = None
            elif term.qualifiers:
                qualified[_key(term)] = term
        idents = list(entities)
        for low in range(0, len(idents), _PAGE):
            for entity, labels, properties, name, ident in self._rows(_NODES, {"ids": idents[low : low + _PAGE]}):
                identity = {key: value for key, value in (("name", name), ("id", ident)) if value is not None}
                self._entities[entity.id] = list(labels), identity | properties
        statements = list(qualified.values())
        for low in range(0, len(statements), _PAGE):
            page = statements[low : low + _PAGE]
            objects = [one.object.id for one in page if isinstance(one.object, Entity)]
            ends = {"subjects": [one.subject.id for one in page], "objects": objects, "types": [one.predicate for one in page]}
            for statement, properties in self._rows(_RELATIONSHIPS, {key: list(dict.fromkeys(v)) for key, v in ends.items()}):
                self._qualifiers[_key(statement)] = properties

    def _rows(self, text: str, parameters: dict[str, Any]) -> list[Any]:
        return self._graph.query(BoundQuery(text, parameters), language="cypher", on_unknown="empty").values

    def _node(self, entity: Entity) -> Packed:
        known = self._nodes.get(entity.id)
        if known is None:
            labels, properties = self._entities[entity.id]
            fields: tuple[Any, ...] = (_number(entity.id), labels, self.value(properties))
            if self._element_ids:
                fields += (entity.id,)
            known = self._nodes[entity.id] = Packed(packed(Structure(NODE, fields)))
        return known

    def _relationship(self, statement: Evidence) -> Structure:
        subject, thing = statement.subject.id, _key(statement)[2]
        ends: tuple[Any, ...] = (_number(subject), _number(thing))
        fields, ident = self._unbound(statement)
        fields = (fields[0], *ends, *fields[1:])
        return Structure(RELATIONSHIP, (*fields, ident, subject, thing) if self._element_ids else fields)

    def _unbound(self, statement: Evidence) -> tuple[tuple[Any, ...], str]:
        """Return the number, type and properties of a relationship, and its id."""
        key = _key(statement)
        number = _number(repr(key))
        properties = self._qualifiers[key] if statement.qualifiers else {}
        return (number, statement.predicate, self.value(properties)), f"{number:x}"

    def _path(self, path: PathTerm) -> Structure:
        nodes = list(dict.fromkeys(path.entities))
        statements = {_key(one): one for one in path.statements}
        node_places, numbers = {node.id: at for at, node in enumerate(nodes)}, {key: at for at, key in enumerate(statements)}
        relationships = []
        for one in statements.values():
            fields, ident = self._unbound(one)
            relationships.append(Structure(UNBOUND, (*fields, ident) if self._element_ids else fields))
        steps = [
            (numbers[_key(one)], one.subject.id == path.entities[at].id, node_places[path.entities[at + 1].id])
            for at, one in enumerate(path.statements)
        ]
        return path_of([self._node(node) for node in nodes], relationships, steps)


def _graph_items(value: Any) -> Iterator[Entity | Evidence]:
    """Yield the entities and statements within a value of a row, including the ends of statements."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Entity):
            yield item
        elif isinstance(item, Evidence):
            yield item
            yield item.subject
            if isinstance(item.object, Entity):
                yield item.object
        elif isinstance(item, PathTerm):
            pending += [*item.entities, *item.statements]
        elif isinstance(item, Mapping):
            pending += item.values()
        elif isinstance(item, list | tuple):
            pending += item


def _key(statement: Evidence) -> _Key:
    thing = statement.object
    return statement.subject.id, statement.predicate, thing.id if isinstance(thing, Entity) else str(thing), statement.qualifiers


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big") >> 3
