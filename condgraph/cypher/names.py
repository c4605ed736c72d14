"""Names read from Neo4j, for programs whose lowering has to know what a name can mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher import paths
from condgraph.cypher.layout import KINDS, index_key, value_of
from condgraph.engine.schema import Kinds
from condgraph.engine.values import NO_UNIT, Kind, Value

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.engine.stored_schema import StoredSchema

_FIELDS: Final = "{.kind, .text, .number, .exact, .unit, .start, .end, .precision, .raw, .key}"


class Neo4jNames:
    """The names of one graph: what `engine.linking.remote.NameReader` asks."""

    def __init__(self, connection: Connection, graph: str, schema: StoredSchema) -> None:
        self._connection, self._graph, self._schema = connection, graph, schema

    def _rows(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._connection.read(text, {"graph": self._graph, **parameters})

    def _split(self, predicates: tuple[str, ...] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which of the predicates lead to entities, and which to values."""
        asked = self._schema.predicates if predicates is None else predicates
        relations = tuple(name for name in asked if self._schema.has_relation(name))
        return relations, tuple(name for name in asked if self._schema.has_attribute(name))

    def _matches(self, predicates: tuple[str, ...] | None, source: str | None) -> list[tuple[str, bool]]:
        """A MATCH for the relations and one for the attributes, as far as there are any; whether it leads to values."""
        relations, attributes = self._split(predicates)
        found = []
        # All predicates are not spelled out: the edges of the layout have no `sid`, and values have their own label.
        every = predicates is None
        if relations:
            scope = " AND $source IN f.sources" if source is not None else ""
            types = "" if every else paths.types(relations)
            subject = "(s:Row)" if source in self._schema.tabular else "(s:Entity)"
            inside = "s.graph = $graph" + (" AND s.source = $source AND s.row IS NOT NULL" if "Row" in subject else "")
            found.append((f"MATCH {subject}-[f{types}]->(o:Entity) WHERE {inside} AND f.sid IS NOT NULL{scope} ", False))
        if attributes:
            scope = " AND $source IN o.sources" if source is not None else ""
            if source in self._schema.tabular:
                inside = "s.graph = $graph AND s.source = $source AND s.row IS NOT NULL"
                types = "" if every else paths.types(attributes)
                found.append((f"MATCH (s:Row)-[f{types}]->(o:Value) WHERE {inside}{scope} ", True))
            else:
                # By the index of values: their subjects are not asked for.
                found.append((f"MATCH (o:Value) WHERE o.graph = $graph AND o.predicate IN $attributes{scope} ", True))
        return found

    def _asked(self, predicates: tuple[str, ...] | None, source: str | None) -> dict[str, Any]:
        return {"source": source, "attributes": list(self._split(predicates)[1])}

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""
        found: Kinds = {}
        for match, values in self._matches(predicates, source):
            grouped = "o.kind AS kind, o.unit AS unit" if values else "'entity' AS kind, null AS unit"
            for row in self._rows(f"{match}RETURN {grouped}, count(*) AS count", **self._asked(predicates, source)):
                kind = KINDS[row["kind"]]
                unit = row["unit"] if kind is Kind.QUANTITY else NO_UNIT
                found[kind, unit] = found.get((kind, unit), 0) + row["count"]
        return found

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name, without a predicate), and its raw text."""
        for match, values in self._matches(predicates, source):
            if not values:
                for row in self._rows(f"{match}RETURN DISTINCT o.name AS name", **self._asked(predicates, source)):
                    yield "", row["name"], None
                continue
            text = f"{match}RETURN DISTINCT o.predicate AS predicate, o {_FIELDS} AS value"
            for row in self._rows(text, **self._asked(predicates, source)):
                yield row["predicate"], value_of(row["value"]), row["value"]["raw"]

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """The names of subjects."""
        if not predicates:
            return iter(())
        text = f"MATCH (s:Entity)-[f{paths.types(predicates)}]->() WHERE s.graph = $graph RETURN DISTINCT s.name AS name"
        return (row["name"] for row in self._rows(text))

    def names(self) -> Iterator[str]:
        """The names of all entities and concepts that are no table rows."""
        text = "MATCH (e:Entity) WHERE e.graph = $graph AND e.kind IN [0, 1] RETURN DISTINCT e.name AS name"
        return (row["name"] for row in self._rows(text))

    def has_name(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""
        text = "MATCH (e:Entity) WHERE e.graph = $graph AND e.key = $key RETURN e.id AS id LIMIT 1"
        return bool(self._rows(text, key=index_key(name)))

    def has_text(self, text: str) -> bool:
        """Some entity has this name or id, or some attribute this text."""
        if self.has_name(text) or self.has_id(text):
            return True
        query = "MATCH (o:Value) WHERE o.graph = $graph AND o.predicate IN $attributes AND o.key = $key RETURN o.sid AS sid LIMIT 1"
        return bool(self._rows(query, key=index_key(text), attributes=list(self._schema.attributes)))

    def has_id(self, ident: str) -> bool:
        """Some entity has this id."""
        text = "MATCH (e:Entity) WHERE e.graph = $graph AND e.id = $id RETURN e.id AS id"
        return bool(self._rows(text, id=ident))
