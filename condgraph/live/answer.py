"""Queries answered live: compiled, run on the database, and their rows as terms of RDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.native.identity import concept_id
from condgraph.engine.bounds import within
from condgraph.engine.errors import StoreError, UnsupportedError
from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.iris import PRED, PREFIXES, XSD
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time
from condgraph.languages.sparql.parse import parse
from condgraph.languages.sparql.syntax import Iri, beyond
from condgraph.live.compiled import MOST, Column, Compiled, compiled
from condgraph.live.expressions import Sort
from condgraph.live.vocabulary import MARK, Vocabulary
from condgraph.sparql.layout import GraphIris, base_iri, checked_base, double, integer, string
from condgraph.sparql.text.scan import underscored

if TYPE_CHECKING:
    from condgraph.cypher.native.mapping import Mapping as Taken
    from condgraph.cypher.native.store import NativeStore

#: Kept of texts that were compiled.
_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class Solutions:
    """What a SELECT gave: names of its columns, and rows of terms as N-Triples writes them, None where nothing
    is bound. `more` says that there are further rows.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False


class Live:
    """SPARQL over a database of others, where it is. `base` is what the IRIs of its names begin with."""

    def __init__(self, store: NativeStore, *, base: str | None = None, prefixes: Mapping[str, str] = PREFIXES) -> None:
        self._store, self._prefixes = store, prefixes
        self.names = GraphIris(checked_base(base) if base else base_iri(store.name))
        self._known: tuple[Taken, Vocabulary] | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """What the names are in the database now."""
        mapping = self._store.mapping
        if self._known is None or self._known[0] is not mapping:
            rows = self._store.connection.read("CALL db.propertyKeys() YIELD propertyKey RETURN propertyKey AS key", {})
            self._known = mapping, Vocabulary(mapping, self.names, frozenset(row["key"] for row in rows))
        return self._known[1]

    def compiled(self, text: str, *, most: int = MOST) -> Compiled:
        """The one query that a query becomes. Raises `UnsupportedError`, with the reason, for what is
        not known to mean the same in Cypher. `text` is SPARQL, which is not checked here.
        """
        vocabulary = self.vocabulary
        query = parse(underscored(text, vocabulary.is_name), self.names.base, self._prefixes)
        layout: Any = self._store.layout
        return compiled(query, vocabulary, layout, most)

    def ask(self, text: str, *, most: int = MOST, timeout: float | None = None, cancelled: Event | None = None) -> Solutions | bool:
        """The answer to a query: at most so many rows. Raises what `compiled` raises, `UnsupportedError`
        where a value is met of another type than the sample says, and `DeadlineError`.
        """
        with within(timeout, cancelled):
            made = self.compiled(text, most=most)
            try:
                rows = self._store.connection.values(made.text, made.parameters)
            except StoreError as error:
                _, mark, met = str(error).partition(MARK)
                if not mark:
                    raise
                key = met.split(" of ")[0].strip()
                raise beyond(
                    f"{key!r}, of which a value has another type than its others", "the replica (without --live) has it"
                ) from None
            if made.ask:
                return bool(rows[0][0])
            return self._solutions(made, rows, most)

    def describe(self, iri: str, *, most: int = MOST, timeout: float | None = None, cancelled: Event | None = None) -> str:
        """What the database says of the node or the label that an IRI is, as N-Triples: at most so many
        statements each way. Nothing where there is none. Raises `DeadlineError`.
        """
        full = iri if "://" in iri else self.names.base + iri
        if not full.startswith(self.names.base):
            return ""
        try:
            ident = self.vocabulary.entity(Iri(full))
        except UnsupportedError:
            return ""
        full = self.names.entity(ident)[1:-1]
        with within(timeout, cancelled):
            if ident.startswith(":"):
                return self._said(self._concept(ident[1:]), full)
            return self._said(self._store.around([ident], [], most, values=True, concepts=True), full)

    def _said(self, part: Snapshot, iri: str) -> str:
        from pyoxigraph import RdfFormat

        from condgraph.sparql.embedded import EmbeddedStore

        held = EmbeddedStore(part, self._store.name, base=self.names.base)
        found: Any = held.store.query(
            # What was declared where is said of loads, of which there are none here.
            f"CONSTRUCT {{ <{iri}> ?p ?o }} WHERE {{ <{iri}> ?p ?o FILTER(?p != <{PRED}declared>) }}",
            use_default_graph_as_union=True,
        )
        return bytes(found.serialize(format=RdfFormat.N_TRIPLES)).decode()

    def _concept(self, label: str) -> Snapshot:
        called = self.vocabulary.concepts.get(label)
        builder = Builder()
        if called is not None:
            builder.add([Entity(concept_id(label), called, EntityKind.CONCEPT)])
        return Snapshot.of(*lay_out(builder))

    def _solutions(self, made: Compiled, rows: list[list[Any]], most: int) -> Solutions:
        if made.order:
            if len(rows) > MOST:
                raise beyond(f"an order by texts or IRIs of more than {MOST:,} rows", "order by numbers, or ask for fewer")
            rows = _ordered(rows, made, self._term)
            rows = rows[made.offset : None if made.limit is None else made.offset + made.limit]
        terms = tuple(tuple(map(self._cell, made.columns, row)) for row in rows[:most])
        return Solutions(tuple(made.names), terms, len(rows) > most)

    def _cell(self, column: Column, value: Any) -> str | None:
        if value is None:
            return integer(0) if column.zero else None
        assert column.sort is not None
        return self._term(column.sort, value)

    def _term(self, sort: Sort, value: Any) -> str:
        if sort == "node":
            return self.names.entity(value)
        if sort == "concept":
            return self.names.entity(f":{value}")
        if sort == "text":
            return string(value)
        if sort == "number":
            return double(value)
        if sort == "integer":
            return integer(value)
        if sort == "date":
            return f'"{value}"^^<{XSD}date>'
        if sort == "value:number":
            return self.names.value(Quantity(value))
        if sort == "value:day":
            return self.names.value(Time.parse(value))
        return self.names.value(value if sort == "value:text" else "true" if value else "false")


def _ordered(rows: list[list[Any]], made: Compiled, term: Callable[[Sort, Any], str]) -> list[list[Any]]:
    """Rows in the order of their last cells, without these."""
    width = len(made.columns)

    def key(sort: Sort, value: Any) -> tuple[bool, Any]:
        if value is None:
            return False, ""
        # IRIs by their texts, what is no IRI by itself: in one column all are of one sort.
        return True, term(sort, value)[1:-1] if sort in ("node", "concept") or sort.startswith("value:") else value

    keyed = [([key(sort, cell) for (sort, _), cell in zip(made.order, row[width:], strict=True)], row[:width]) for row in rows]

    def compare(one: tuple[list[tuple[bool, Any]], list[Any]], two: tuple[list[tuple[bool, Any]], list[Any]]) -> int:
        for (_, down), a, b in zip(made.order, one[0], two[0], strict=True):
            if a != b:
                return -1 if (a < b) is not down else 1
        return 0

    return [row for _, row in sorted(keyed, key=cmp_to_key(compare))]
