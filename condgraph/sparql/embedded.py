"""The RDF face of a local graph: Oxigraph, built from the snapshot on first use and kept beside the
generation it was built from.

A graph in a directory keeps its store in the directory of its generation, so that both go together;
it is written under another name and renamed when it is complete, and opened for reading. A graph in
memory, or one in a directory that cannot be written, has its store in memory. There is a second one
beside it as soon as a query names graphs (`stored`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import cached, current, within
from condgraph.engine.errors import OptionError
from condgraph.engine.execute import Run
from condgraph.engine.pieces import watched
from condgraph.engine.workers import Once
from condgraph.sparql.compile.group import Target
from condgraph.sparql.layout import GraphIris, base_iri
from condgraph.sparql.load.write import counts
from condgraph.sparql.plain.served import has_terms, plain_graph
from condgraph.sparql.store import RdfStore
from condgraph.sparql.stored import BUILDERS, Stored
from condgraph.sparql.text.prologue import underscored
from condgraph.sparql.text.survey import makes_triples, names_graphs
from condgraph.sparql.text.terms import Cells, Knows, by_name, cells
from condgraph.sparql.text.weight import is_heavy
from condgraph.sparql.workers.pool import Query, UnopenedError, WorkerPool

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution, Store

    from condgraph.engine.algebra import Node
    from condgraph.engine.facts import Entity
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.patterns.matches import Matches
    from condgraph.sparql.patterns.match import SparqlPatterns
    from condgraph.sparql.text.table import Table


class EmbeddedStore(RdfStore):
    """The store of one generation. `folder` is where it is on disk, None in memory."""

    def __init__(self, snapshot: Snapshot, graph: str = "default", directory: Path | None = None, base: str | None = None) -> None:
        from pyoxigraph import NamedNode

        self.base = base or base_iri(graph)
        NamedNode(self.base)  # raises what is wrong with it
        self.snapshot = snapshot
        #: The graphs that queries of people ask: the layout, and what sources say as plain RDF.
        self.defaults = [self.base, plain_graph(self.base)] if has_terms(snapshot) else [self.base]
        generation = None if directory is None or base is not None else snapshot.about.get("generation")
        place = None if directory is None or not generation else directory / str(generation)
        self._stored = Stored(snapshot, graph, self.base, place, named=False)
        #: For queries that name graphs: built when the first of them comes.
        self._naming = Once(BUILDERS, lambda: Stored(snapshot, graph, self.base, place, named=True))
        self.folder = self._stored.folder

    @property
    def store(self) -> Store:
        """The store in this process: the triples of the graph are in its default graph."""
        return self._stored.store

    @cached
    def target(self) -> Target:
        """What compiling knows of the graph."""
        return Target(GraphIris(self.base), self.snapshot.schema, counts(self.snapshot), self.entities)

    def select(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> Iterable[QuerySolution]:
        """The solutions of a SELECT over the graph."""
        with within(timeout, cancelled):
            found: Any = self._query(text)
        return found  # type: ignore[no-any-return]

    def entities(self, ids: list[str]) -> list[Entity]:
        """Entities by their ids, read from the snapshot that the store was built from."""
        return [self.snapshot.entity(self.snapshot.identified(ident)) for ident in ids]

    def ask(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> bool:
        """The answer of an ASK over the graph."""
        with within(timeout, cancelled):
            return bool(self._query(text))

    @cached
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of all named graphs of the store, the graph's own first."""
        others = {one.value for one in self.store.named_graphs() if hasattr(one, "value") and type(one).__name__ == "NamedNode"}
        return (*self.defaults, *sorted(others.difference(self.defaults)))

    def _query(self, text: str, *, plainly: bool = False) -> Any:
        graphs = self.defaults if plainly else [self.base]
        if current() is None and not is_heavy(text):
            return self._now(text, graphs)
        from pyoxigraph import QueryResultsFormat, parse_query_results

        return parse_query_results(self._elsewhere(Query(text, default_graphs=graphs)), QueryResultsFormat.JSON)

    def _elsewhere(self, query: Query) -> bytes:
        """The results of a query in another process, which can be killed."""
        stored = self._asked(query.text)
        try:
            return _results(stored.pool, query)
        except UnopenedError:
            # A load replaced the generation before the process opened its folder.
            stored.leave_folder()
            return _results(stored.pool, query)

    def _asked(self, text: str) -> Stored:
        """The store that answers a query."""
        return self._naming.get() if names_graphs(text) else self._stored

    def _now(self, text: str, graphs: Sequence[str] = ()) -> Any:
        """Run a query in this process."""
        return self._asked(text).query(text, graphs or [self.base])

    def text(
        self,
        text: str,
        *,
        dialect: str = "standard",
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        on_unknown: str = "error",
    ) -> Table:
        """Run a query that people wrote, read-only; its results as a table (`sparql.text.query`)."""
        from condgraph.sparql.text.query import run

        plainly = dialect == "standard"
        if plainly:
            text = underscored(text, self.is_name)

        def runs(one: str) -> Any:
            return self._triples(one) if makes_triples(one) else self._query(one, plainly=plainly)

        with within(timeout, cancelled):
            names, schema = self.target.names, self.target.schema
            return run(text, runs, names, schema, dialect=dialect, limit=limit, on_unknown=on_unknown, known=self._remembered)

    @cached
    def _remembered(self) -> Knows:
        return lru_cache(maxsize=1 << 16)(self._known)

    def _known(self, iri: str) -> Cells | None:
        """What a node is, from the snapshot (`sparql.text.terms.Knows`)."""
        names, snapshot = self.target.names, self.snapshot
        if iri.startswith(names.base + "."):  # a value, or a statement, say
            return by_name(iri, names) if names.is_value(iri) else cells(iri, None, None)
        try:
            name = names.name_of(iri)
        except ValueError:
            name = ""
        if f"<{iri}>" != names.entity(name):
            return cells(iri, None, None)
        number = snapshot.identified(name)
        return cells(iri, snapshot.entity(number) if number >= 0 else None, name if name in self._predicates else None)

    def is_name(self, name: str) -> bool:
        """Whether the graph has an entity of this id, or a predicate or qualifier key of this name."""
        return name in self._predicates or self.snapshot.identified(name) >= 0

    @cached
    def _predicates(self) -> frozenset[str]:
        return frozenset(map(self.snapshot.predicate_name, range(self.snapshot.predicate_count)))

    def _triples(self, text: str) -> Any:
        if current() is None and not is_heavy(text):
            return self._now(text, self.defaults)
        from pyoxigraph import RdfFormat, parse

        query = Query(text, triples="ntriples", default_graphs=self.defaults)
        return [quad.triple for quad in watched(parse(self._elsewhere(query), RdfFormat.N_TRIPLES))]

    @property
    def source(self) -> Mapping[str, str]:
        """The store for other processes (`Stored.source`)."""
        return self._stored.source

    def naming(self) -> Mapping[str, str]:
        """The store for those queries of other processes that name graphs, built where it is not
        there.
        """
        return self._naming.get().source

    @cached
    def patterns(self) -> SparqlPatterns:
        """Patterns on this store."""
        from condgraph.sparql.patterns.match import SparqlPatterns
        from condgraph.sparql.patterns.vectors import SnapshotVectors

        return SparqlPatterns(self, self.snapshot.schema, SnapshotVectors(self.snapshot))

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """The subgraphs nearest to a pattern, over edges fetched from the store."""
        if not exact:
            raise OptionError("the RDF store has no approximate index", hint="ask with exact=True")
        return self.patterns.match(pattern, **options)

    def witness(self, plan: Node) -> Run:
        """A plan run on the snapshot behind the store: for evidence and warnings."""
        run = Run(self.snapshot)
        run.execute(plan)
        return run


def _results(pool: WorkerPool, query: Query) -> bytes:
    """The results of a query that processes run, within the bounds of this call."""
    budget = current()
    timeout, cancelled = (None, None) if budget is None else (budget.left(), budget.cancelled())
    with pool.query(query, timeout=timeout, cancelled=cancelled) as results:
        return results.read()
