"""Names read from a database of others: the nodes by the properties that name them, and the concepts,
which are labels and have no nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.base import KINDS, value_of
from condgraph.cypher.native.ids import foreign
from condgraph.cypher.native.layout import NativeLayout
from condgraph.engine.errors import StoreError
from condgraph.engine.schema import AROUND, MOST_COMPARED, Kinds
from condgraph.engine.values import NO_UNIT, Kind, Value

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.cypher.native.schema import NativeSchema
    from condgraph.engine.stored_schema import StoredSchema

#: Nodes of the names of a program that are looked up before its other queries; more are found there.
MOST_FOUND: Final = 10_000


class NativeNames:
    """The names of one database: what `names.remote.NameReader` asks."""

    def __init__(self, connection: Connection, schema: NativeSchema, layout: NativeLayout) -> None:
        self._connection, self._schema, self._layout = connection, schema, layout

    def _rows(self, text: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._connection.read(text, {**self._layout.parameters(""), **parameters})

    def _relations(self, predicates: tuple[str, ...] | None) -> str | None:
        """A MATCH of the objects `o` of relations; None where there are none."""
        if not self._layout.types_of(predicates):
            return None
        return self._layout.relations_to(predicates, None, table=False)

    def _values(self, predicates: tuple[str, ...] | None) -> str | None:
        """Clauses that leave the values `v` of attributes with their `p`."""
        writing = _Writing(self._schema)
        found = self._layout.holdings.whole(writing, "s", "v", "f", predicates)
        self._given = writing.parameters
        return found

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""
        found: Kinds = {}
        if match := self._relations(predicates):
            for row in self._rows(f"{match}RETURN count(*) AS count"):
                if row["count"]:
                    found[Kind.ENTITY, NO_UNIT] = row["count"]
        if match := self._values(predicates):
            grouped = "v.kind AS kind, CASE v.kind WHEN 'quantity' THEN v.unit END AS unit"
            for row in self._rows(f"{match} RETURN {grouped}, count(*) AS count", **self._given):
                kind = KINDS[row["kind"]]
                key = kind, row["unit"] if kind is Kind.QUANTITY else NO_UNIT
                found[key] = found.get(key, 0) + row["count"]
        return found

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """There are no tables."""
        return False

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name, without a
        predicate), and its raw text.
        """
        if match := self._relations(predicates):
            for row in self._rows(f"{match}RETURN DISTINCT {self._layout.name('o')} AS name"):
                yield "", row["name"], None
        if match := self._values(predicates):
            for row in self._rows(f"{match} RETURN DISTINCT f[1] AS predicate, v AS value", **self._given):
                yield row["predicate"], value_of(row["value"]), row["value"].get("raw")

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """The names of subjects."""
        if not predicates:
            return iter(())
        text = f"{self._layout.subjects_of(predicates)} RETURN DISTINCT {self._layout.name('s')} AS name"
        return (row["name"] for row in self._rows(text))

    def names(self) -> Iterable[str]:
        """The names of all nodes and concepts."""
        text = f"MATCH (e) WHERE {foreign('e')} RETURN DISTINCT {self._layout.name('e')} AS name"
        return chain(self._schema.concepts, (row["name"] for row in self._rows(text)))

    def _is_there(self, found: list[str]) -> str:
        return f"{' '.join(found)} RETURN count(e) > 0 AS found"

    def has_name(self, name: str) -> bool:
        """Some node or concept has exactly this name."""
        if self._schema.has_concept(name):
            return True
        return bool(self._rows(self._is_there(self._layout.by_name("e", "= $key")), key=name)[0]["found"])

    def name_of(self, ident: str) -> str | None:
        """The name of the node or concept that has this id; None where none has."""
        concept = next((name for name, known in self._schema.concept_ids().items() if known == ident), None)
        if concept is not None:
            return concept
        found = " ".join(self._layout.by_id("e", "= $key"))
        rows = self._rows(f"{found} RETURN {self._layout.name('e')} AS name LIMIT 1", key=ident)
        return rows[0]["name"] if rows else None

    def has_text(self, text: str) -> bool:
        """Some node has this name or id, or some attribute this text."""
        if self.has_name(text) or self.name_of(text) is not None:
            return True
        writing = _Writing(self._schema)
        queries = "\nUNION ALL\n".join(self._layout.holdings.with_text(writing, "s", "$key"))
        if not queries:
            return False
        return bool(self._rows(f"CALL () {{\n{queries}\n}} RETURN 1 AS found LIMIT 1", key=text, **writing.parameters))

    def without(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no node or concept has: one query."""
        asked = [name for name in names if not self._schema.has_concept(name)]
        if not asked:
            return []
        return [row["k"] for row in self._rows(f"UNWIND $keys AS k {self._layout.absent('k', 'e')} RETURN k", keys=asked)]

    def found(self, names: Sequence[str]) -> dict[str, list[str]] | None:
        """The server's ids of the nodes of some names: one query, whose text is always the same. None
        where they are more than `MOST_FOUND`.
        """
        found: dict[str, list[str]] = {name: [] for name in names}
        nodes = "\n".join(self._layout.by_name("e", "= k"))
        text = f"UNWIND $keys AS k CALL (k) {{\n{nodes}\nRETURN e\n}}\nRETURN k, elementId(e) AS id LIMIT $most"
        rows = self._rows(text, keys=list(found), most=MOST_FOUND + 1)
        for row in rows:
            found[row["k"]].append(row["id"])
        return found if len(rows) <= MOST_FOUND else None

    def described(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of what an answer rests on, with what there is to say of each node in the place of the
        server's id; raises `StoreError` where a node went meanwhile.
        """
        places = [
            (part, key)
            for record in rows
            for part in (record["row"], record["row"].get("m"))
            if part is not None
            for key in ("e", "s", "o", "a", "b")
            if isinstance(part.get(key), str)
        ]
        ids = list(dict.fromkeys(part[key] for part, key in places))
        text = f"UNWIND $ids AS i MATCH (e) WHERE elementId(e) = i RETURN i, {self._layout.described('e')} AS about"
        about = {row["i"]: row["about"] for row in self._rows(text, ids=ids)} if ids else {}
        for part, key in places:
            if part[key] not in about:
                raise StoreError("the database changed while it was read", hint="ask again")
            part[key] = about[part[key]]
        return rows

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all nodes and concepts; of a large database those that stand around some texts,
        by the properties that name them.
        """
        found = list(self._schema.concepts)
        if self._schema.mapping.node_count <= MOST_COMPARED:
            return list(dict.fromkeys(chain(found, self.names())))
        for pattern, key in self._layout.identity.naming("e"):
            for text in around:
                for side, way in ((">=", ""), ("<", " DESC")):
                    near = f"MATCH {pattern} WHERE {key} {side} $near RETURN DISTINCT {key} AS name ORDER BY name{way} LIMIT $most"
                    found += [row["name"] for row in self._rows(near, near=text, most=AROUND)]
        return list(dict.fromkeys(found))


class _Writing:
    """Fresh variables and parameters of one query."""

    def __init__(self, schema: NativeSchema) -> None:
        self.schema: StoredSchema = schema
        self.parameters: dict[str, Any] = {}
        self._names = 0

    def name(self, prefix: str) -> str:
        """A fresh variable."""
        self._names += 1
        return f"{prefix}{self._names}"

    def parameter(self, value: Any) -> str:
        """A parameter."""
        self.parameters[f"p{len(self.parameters)}"] = value
        return f"$p{len(self.parameters) - 1}"
