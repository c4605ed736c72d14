"""Names read from Neo4j, for programs whose lowering has to know what a name can mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.base import KINDS, Bound, Layout, value_of
from condgraph.cypher.layout.schema import CONDGRAPH
from condgraph.engine.facts import EntityKind
from condgraph.engine.schema import AROUND, MOST_COMPARED, Kinds
from condgraph.engine.values import NO_UNIT, Kind, Value

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.engine.stored_schema import StoredSchema

_FIELDS: Final = "{.kind, .text, .number, .exact, .unit, .start, .end, .precision, .raw, .key}"


class Neo4jNames:
    """The names of one graph: what `names.remote.NameReader` asks."""

    def __init__(self, connection: Connection, graph: str, schema: StoredSchema, layout: Layout = CONDGRAPH) -> None:
        self._connection, self._graph, self._schema, self._layout = connection, graph, schema, layout

    def _rows(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._connection.read(text, {**self._layout.parameters(self._graph), **parameters})

    def _split(self, predicates: tuple[str, ...] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which of the predicates lead to entities, and which to values."""
        asked = self._schema.predicates if predicates is None else predicates
        relations = tuple(name for name in asked if self._schema.has_relation(name))
        return relations, tuple(name for name in asked if self._schema.has_attribute(name))

    def _matches(self, predicates: tuple[str, ...] | None, source: str | None) -> list[tuple[str, bool]]:
        """A MATCH for the relations and one for the attributes, as far as there are any; whether it
        leads to values.
        """
        relations, attributes = self._split(predicates)
        given, table = None if source is None else "$source", source in self._schema.tabular
        result = []
        # All predicates are not spelled out.
        if relations:
            text = self._layout.relations_to(None if predicates is None else relations, given, table=table)
            result.append((text, False))
        if attributes:
            text = self._layout.values_of(None if predicates is None else attributes, given, table=table)
            result.append((text, True))
        return result

    def _entity(self, test: str) -> str:
        """A MATCH of entities and concepts `e` under a test of their names."""
        return f"MATCH {self._layout.entity('e')[0]} WHERE {self._layout.named('e', test)}"

    def _asked(self, predicates: tuple[str, ...] | None, source: str | None) -> dict[str, Any]:
        return {"source": source, "attributes": list(map(self._layout.predicate_key, self._split(predicates)[1]))}

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""
        result: Kinds = {}
        o = Bound("o")
        for match, values in self._matches(predicates, source):
            grouped = f"{o.kind} AS kind, {o.unit} AS unit" if values else "'entity' AS kind, null AS unit"
            for row in self._rows(f"{match}RETURN {grouped}, count(*) AS count", **self._asked(predicates, source)):
                kind = KINDS[row["kind"]]
                unit = row["unit"] if kind is Kind.QUANTITY else NO_UNIT
                result[kind, unit] = result.get((kind, unit), 0) + row["count"]
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Whether some object is a row of a table."""
        result = (match for match, values in self._matches(predicates, source) if not values)
        row, of, ident = self._layout.row("o"), self._layout.source("o"), self._layout.id("o")
        rows = f"AND {of} = $table AND {row} IS NOT NULL RETURN {ident} AS id LIMIT 1"
        return any(self._rows(f"{match}{rows}", table=table, **self._asked(predicates, source)) for match in result)

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name, without a
        predicate), and its raw text.
        """
        names = {self._layout.predicate_key(name): name for name in self._schema.attributes}
        for match, values in self._matches(predicates, source):
            if not values:
                for row in self._rows(
                    f"{match}RETURN DISTINCT {self._layout.name('o')} AS name", **self._asked(predicates, source)
                ):
                    yield "", row["name"], None
                continue
            text = f"{match}RETURN DISTINCT o.predicate AS predicate, o {_FIELDS} AS value"
            for row in self._rows(text, **self._asked(predicates, source)):
                yield names[row["predicate"]], value_of(row["value"]), row["value"]["raw"]

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """The names of subjects."""
        if not predicates:
            return iter(())
        text = f"{self._layout.subjects_of(predicates)} RETURN DISTINCT {self._layout.name('s')} AS name"
        return (row["name"] for row in self._rows(text))

    def names(self) -> Iterator[str]:
        """The names of all entities and concepts that are no table rows."""
        pattern, inside = self._layout.entity("e")
        kinds = self._layout.any_kind("e", (EntityKind.ENTITY, EntityKind.CONCEPT))
        text = f"MATCH {pattern} WHERE {inside} AND {kinds} RETURN DISTINCT {self._layout.name('e')} AS name"
        return (row["name"] for row in self._rows(text))

    def has_name(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""
        text = f"{self._entity('= $key')} RETURN {self._layout.id('e')} AS id LIMIT 1"
        return bool(self._rows(text, key=self._layout.key(name)))

    def has_text(self, text: str) -> bool:
        """Some entity has this name or id, or some attribute this text."""
        if self.has_name(text) or self.name_of(text) is not None:
            return True
        layout, o = self._layout, Bound("o")
        query = f"{layout.values_of(None, None, table=False)}AND {o.key} = $key RETURN {layout.value_id('o')} AS sid LIMIT 1"
        return bool(self._rows(query, key=layout.key(text), attributes=list(map(layout.predicate_key, self._schema.attributes))))

    def name_of(self, ident: str) -> str | None:
        """The name of the entity that has this id; None where none has."""
        layout = self._layout
        text = f"MATCH {layout.entity('e')[0]} WHERE {layout.identified('e', '= $handle')} RETURN {layout.name('e')} AS name"
        rows = self._rows(text, handle=layout.handle(ident))
        return rows[0]["name"] if rows else None

    def without(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no entity or concept has: one query."""
        keys = {self._layout.key(name): name for name in names}
        text = f"UNWIND $keys AS key OPTIONAL {self._entity('= key')} WITH key, count(e) AS found WHERE found = 0 RETURN key"
        return [keys[row["key"]] for row in self._rows(text, keys=list(keys))]

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all entities, concepts and rows; in a large graph those in order around
        some texts.
        """
        name, key = self._layout.name("e"), self._layout.name_key("e")
        every = f"{self._entity('IS NOT NULL')} "
        if self._rows(f"{every}RETURN count(e) AS count")[0]["count"] <= MOST_COMPARED:
            return [name for row in self._rows(f"{every}RETURN collect(DISTINCT {name}) AS names") for name in row["names"]]
        result = []
        for text in around:
            for side, way in ((">=", ""), ("<", " DESC")):
                near = f"{self._entity(f'{side} $near')} WITH DISTINCT {key} AS key ORDER BY key{way}"
                rows = self._rows(f"{near} LIMIT $most RETURN collect(key) AS names", near=text, most=AROUND)
                result += [name for row in rows for name in row["names"]]
        return result
