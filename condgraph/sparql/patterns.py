"""Reads the edges of patterns on RDF stores as rows of their ends, a tenth of the size of whole statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from condgraph.patterns.graph import Numbers
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.planned import Edges, End, PlannedPatterns
from condgraph.patterns.remote.vectors import CachedVectors
from condgraph.sparql.compile.conditions import during_filter
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import TYPE, integer
from condgraph.sparql.store import RdfStore


class SparqlPatterns(PlannedPatterns):
    """Patterns on one state of a graph in an RDF store.

    Nodes are sent in chunks, in the form that the store is fast with: `VALUES`, or `IN` (Virtuoso).
    """

    def __init__(self, store: RdfStore, vectors: CachedVectors) -> None:
        super().__init__(store, vectors)
        self._select, self._dialect, names = store.select, store.target.dialect, store.target.names
        self._names = names
        self._predicates = [names.predicate(name) for name in self.catalogue.predicates]
        self._numbers = {iri[1:-1]: number for number, iri in enumerate(self._predicates)}
        self._iris = [*map(names.entity, self.catalogue.ids), *map(names.value, self.catalogue.texts)]
        self._nodes = {iri[1:-1]: number for number, iri in enumerate(self._iris)}

    def _among(self, variable: str, iris: Sequence[str]) -> str:
        if self._dialect.long_values:
            return f"VALUES {variable} {{{' '.join(iris)}}}"
        return f"FILTER({variable} IN ({', '.join(iris)}))"

    def edges(
        self, catalogue: Catalogue, nodes: Numbers | None, end: End, predicates: Sequence[int], *, statements: bool, tally: Tally
    ) -> Edges:
        """See `PlannedPatterns.edges`."""
        last = len(catalogue.predicates)
        variable = "?x" if end == "subject" else "?y"
        rows: list[tuple[int, int, int, int]] = []
        proper = [number for number in predicates if number != last]
        chunks = [None] if nodes is None else list(cut(nodes.tolist(), self._dialect.list_length))
        for chunk in chunks:
            # Texts are only objects, and memberships join entities.
            if chunk is not None and end == "subject":
                chunk = [number for number in chunk if number < catalogue.entities]
            if chunk is not None and not chunk:
                continue
            limit = "" if chunk is None else self._among(variable, [self._iris[number] for number in chunk]) + " "
            if proper:
                rows += self._rows(self._edge_text(limit, proper, statements), proper, tally)
            if last in predicates:
                text = (
                    f"SELECT DISTINCT ?x ?y WHERE {{ {limit}?m {TYPE} <pred:Membership> ; <pred:member> ?x ; <pred:concept> ?y }}"
                )
                rows += [(s, last, o, 0) for s, _, o, _ in self._rows(text, [last], tally)]
        edges: Edges = np.array(rows, np.int64).reshape(-1, 4)
        return edges

    def _edge_text(self, among: str, named: Sequence[int], statements: bool) -> str:
        """Return the query of edges with these predicates; of all edges if there are too many to list."""
        all_predicates = len(named) > self._dialect.list_length
        predicate = self._predicates[named[0]] if len(named) == 1 else "?p"
        listed = (
            "" if all_predicates or len(named) == 1 else self._among("?p", [self._predicates[number] for number in named]) + " "
        )
        stated = f"{among}{listed}?f <pred:fact_h> ?x ; <pred:fact_r> {predicate} ; <pred:fact_t> ?y{self._then('?f')}"
        if statements:
            return f"SELECT ?f ?x ?p ?y WHERE {{ {stated} }}"
        if self._period is not None:
            return f"SELECT DISTINCT ?x ?p ?y WHERE {{ {stated} }}"
        return f"SELECT DISTINCT ?x ?p ?y WHERE {{ {among}{listed}?x {predicate} ?y }}"

    def _then(self, f: str) -> str:
        """Return a condition, after the triples of a statement, that it holds in the period of the search."""
        if self._period is None:
            return ""
        time = self._period.interval
        test = during_filter(self._period.relation, "?since", "?until", integer(time.start), integer(time.end))
        times = f"{f} <pred:valid_start> ?since . {f} <pred:valid_end> ?until"
        return f" FILTER NOT EXISTS {{ {times} FILTER(!({test})) }}"

    def _rows(self, text: str, named: Sequence[int], tally: Tally) -> Iterator[tuple[int, int, int, int]]:
        tally.queries += 1
        tally.texts.append(text)
        only = named[0] if len(named) == 1 else None
        allowed, nodes = set(named), self._nodes
        for row in self._select(text):
            tally.rows += 1
            subject, thing = nodes.get(row["x"].value, -1), nodes.get(row["y"].value, -1)
            predicate = only if only is not None else self._numbers.get(row["p"].value, -1)
            # Numbers and times are no nodes, and the vocabulary of the layout is no predicate.
            if subject >= 0 and thing >= 0 and predicate in allowed:
                key = self._names.sid_of(row["f"].value) if text.startswith("SELECT ?f ") else 0
                yield subject, predicate, thing, key
