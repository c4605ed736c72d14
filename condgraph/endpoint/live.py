"""SPARQL over a Neo4j database not written by condgraph, queried directly: queries of the language
`languages.sparql`, whose rows become RDF terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from threading import Event
from typing import TYPE_CHECKING, Any, Final, cast

from condgraph.engine.algebra import ById
from condgraph.engine.bounds import within
from condgraph.engine.errors import UnknownNameError
from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.iris import PRED, XSD, date_of
from condgraph.engine.records import Evidence
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import KnownSchema, Store
from condgraph.engine.values import NO_UNIT, Quantity, Time
from condgraph.languages.registry import lower, request
from condgraph.languages.sparql.lower import LoweredSparql
from condgraph.languages.sparql.patterns import NODES, Sort
from condgraph.languages.sparql.syntax import beyond
from condgraph.sparql.layout import GraphIris, base_iri, checked_base, double, integer, string

if TYPE_CHECKING:
    from condgraph.cypher.native.layout import NativeLayout
    from condgraph.cypher.native.store import NativeStore

#: The most rows of a result.
MAX_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Solutions:
    """The result of a SELECT: column names and rows of terms.

    Terms are in N-Triples notation, or None if unbound. `more` is whether there are further rows.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False


def solutions_of(store: Store, schema: KnownSchema, text: str, names: GraphIris, most: int | None = None) -> Solutions | bool:
    """Return the answer of a store to a SELECT or ASK query (bool for ASK), as terms.

    At most `most` rows are returned. Raises the errors of the store and of the lowering.
    """
    options = {"base": names.base}
    lowered = cast("LoweredSparql", lower(schema, text, "sparql", options))
    answer = store.answer(request(text, "sparql", None if most is None else most + 1, options))
    if lowered.ask:
        return bool(answer.values[0][0])
    columns = tuple(lowered.sorts)
    sorts = [lowered.sorts[name] for name in columns]
    rows = tuple(tuple(map(_term, row, sorts, repeat(names))) for row in answer.values[:most])
    return Solutions(columns, rows, len(answer.values) > len(rows))


def _term(value: Any, sort: Sort, names: GraphIris) -> str | None:
    if value is None:
        return None
    if isinstance(value, Entity):
        return names.entity(value.id)
    if sort == "predicate":
        return names.predicate(value)
    if isinstance(value, Evidence):
        raise beyond("the node of a statement as a result", "ask for its <pred:fact_h>, <pred:fact_t> and qualifiers")
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{XSD}boolean>' if sort == "boolean" else string(str(value).lower())
    if sort in NODES:
        return names.value(Quantity(value, NO_UNIT) if isinstance(value, int | float | Decimal) else value)
    if isinstance(value, Time):
        return f'"{date_of(value)}"^^<{XSD}date>'
    if sort == "decimal":
        return f'"{Decimal(repr(value)):f}"^^<{XSD}decimal>'
    whole = sort == "integer" or (sort == "number or 0" and isinstance(value, int))
    return string(value) if isinstance(value, str) else integer(value) if whole else double(value)


class Live:
    """SPARQL over an existing database. The IRIs of its names begin with `base`."""

    def __init__(self, store: NativeStore, *, base: str | None = None) -> None:
        self.store, self.names = store, GraphIris(checked_base(base) if base else base_iri(store.name))

    def ask(
        self, text: str, *, most: int = MAX_ROWS, timeout: float | None = None, cancelled: Event | None = None
    ) -> Solutions | bool:
        """Answer a query with at most `most` rows.

        `text` must be SPARQL, which is not checked here. Raises `UnsupportedError` with the reason if there
        is no plan for it, `UnknownNameError` for predicates that the database does not have, and
        `DeadlineError`.
        """
        with within(timeout, cancelled):
            try:
                return solutions_of(self.store, self.store.naming_schema, text, self.names, most)
            except UnknownNameError as error:
                # The hint mentions an option that requests do not have.
                error.hint = None
                raise

    def describe(self, iri: str, *, most: int = MAX_ROWS, timeout: float | None = None, cancelled: Event | None = None) -> str:
        """Return what the database states about the node or label with an IRI, as N-Triples.

        At most `most` statements in each direction are returned, and an empty text if there is no such
        node. Raises `DeadlineError`.
        """
        full = iri if "://" in iri else self.names.base + iri
        if not full.startswith(self.names.base):
            return ""
        try:
            ident = self.names.name_of(full)
        except ValueError:
            return ""
        full = self.names.entity(ident)[1:-1]
        with within(timeout, cancelled):
            if ident.startswith(":"):
                return self._said(self._concept(ident), full)
            return self._said(self.store.around([ident], [], most, values=True, concepts=True), full)

    def _said(self, part: Snapshot, iri: str) -> str:
        from pyoxigraph import RdfFormat

        from condgraph.sparql.embedded import EmbeddedStore

        store = EmbeddedStore(part, self.store.name, base=self.names.base)
        triples: Any = store.store.query(
            # `declared` refers to loads, which this database does not have.
            f"CONSTRUCT {{ <{iri}> ?p ?o }} WHERE {{ <{iri}> ?p ?o FILTER(?p != <{PRED}declared>) }}",
            use_default_graph_as_union=True,
        )
        return bytes(triples.serialize(format=RdfFormat.N_TRIPLES)).decode()

    def _concept(self, ident: str) -> Snapshot:
        builder = Builder()
        layout: NativeLayout = self.store.layout  # type: ignore[assignment]
        terms = layout.concept_terms(layout.labels_in(ById((ident,))))
        builder.add([Entity(term["id"], term["name"], EntityKind.CONCEPT) for term in terms])
        return Snapshot.of(*lay_out(builder))
