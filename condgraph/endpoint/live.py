"""SPARQL over a Neo4j database that condgraph did not write, where it is: queries of the language
(`languages.sparql`), whose rows become terms of RDF.
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

#: Rows of a result at most.
MOST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Solutions:
    """What a SELECT gave: names of its columns, and rows of terms as N-Triples writes them, None where nothing
    is bound. `more` says that there are further rows.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False


def solutions_of(store: Store, schema: KnownSchema, text: str, names: GraphIris, most: int | None = None) -> Solutions | bool:
    """The answer of a store to a SELECT, or an ASK (bool), as terms: at most so many rows. Raises as the store and
    the lowering of the text do.
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
    whole = sort == "integer" or (sort == "number or 0" and isinstance(value, int))
    return string(value) if isinstance(value, str) else integer(value) if whole else double(value)


class Live:
    """SPARQL over an existing database. `base` is what the IRIs of its names begin with."""

    def __init__(self, store: NativeStore, *, base: str | None = None) -> None:
        self.store, self.names = store, GraphIris(checked_base(base) if base else base_iri(store.name))

    def ask(self, text: str, *, most: int = MOST, timeout: float | None = None, cancelled: Event | None = None) -> Solutions | bool:
        """The answer to a query: at most so many rows. Raises `UnsupportedError`, with the reason, for what has no plan,
        `UnknownNameError` for predicates that the database does not have, and `DeadlineError`. `text` is SPARQL, which is not
        checked here.
        """
        with within(timeout, cancelled):
            try:
                return solutions_of(self.store, self.store.naming_schema, text, self.names, most)
            except UnknownNameError as error:
                # It names an option that requests do not have.
                error.hint = None
                raise

    def describe(self, iri: str, *, most: int = MOST, timeout: float | None = None, cancelled: Event | None = None) -> str:
        """What the database says of the node or the label that an IRI is, as N-Triples: at most so many
        statements each way. Nothing where there is none. Raises `DeadlineError`.
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

        held = EmbeddedStore(part, self.store.name, base=self.names.base)
        found: Any = held.store.query(
            # What was declared where is said of loads, of which there are none here.
            f"CONSTRUCT {{ <{iri}> ?p ?o }} WHERE {{ <{iri}> ?p ?o FILTER(?p != <{PRED}declared>) }}",
            use_default_graph_as_union=True,
        )
        return bytes(found.serialize(format=RdfFormat.N_TRIPLES)).decode()

    def _concept(self, ident: str) -> Snapshot:
        builder = Builder()
        layout: NativeLayout = self.store.layout  # type: ignore[assignment]
        terms = layout.concept_terms(layout.labels_in(ById((ident,))))
        builder.add([Entity(term["id"], term["name"], EntityKind.CONCEPT) for term in terms])
        return Snapshot.of(*lay_out(builder))
