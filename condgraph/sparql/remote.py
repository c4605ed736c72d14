"""A graph in a remote RDF store: ask it with one query, search it for patterns, load it, remove it.
What that reads of the graph is in `reader`.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from condgraph.engine.bounds import cached, current, within
from condgraph.engine.errors import OptionError, ReadOnlyError
from condgraph.engine.owner import Owner
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.workers import shared
from condgraph.sparql.client import PATIENCE, Endpoint, Method
from condgraph.sparql.dialect import OXIGRAPH
from condgraph.sparql.layout import base_iri, checked_base, predicted_graph
from condgraph.sparql.load.push import Loader, busy
from condgraph.sparql.load.remote import abandon, marks, remove, state
from condgraph.sparql.lookup import LinkedStore
from condgraph.sparql.reader import RemoteReader
from condgraph.sparql.store import RdfStore
from condgraph.sparql.text.lists import rewrite
from condgraph.sparql.text.query import run
from condgraph.sparql.text.survey import makes_triples
from condgraph.sparql.text.table import Table

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.changes import Change
    from condgraph.engine.store import Request
    from condgraph.patterns.matches import Matches
    from condgraph.sparql.patterns.match import SparqlPatterns
    from condgraph.sparql.patterns.vectors import CachedVectors
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport, OnProgress


class SparqlStore(RemoteReader):
    """One graph of an RDF store. `place` is the endpoint's address; `base` the IRI of the graph and
    of its names.
    """

    def __init__(
        self,
        place: str,
        *,
        graph: str = "default",
        read_only: bool = False,
        update: str | None = None,
        store: str | None = None,
        base: str | None = None,
        user: str | None = None,
        password: str | None = None,
        method: Method = "auto",
        timeout: float | None = None,
        patience: float = PATIENCE,
    ) -> None:
        if not graph:
            raise OptionError("the name of a graph is empty")
        base = base_iri(graph) if base is None else checked_base(base)
        endpoint = Endpoint(
            place, update=update, store=store, user=user, password=password, method=method, read_only=read_only, timeout=timeout,
            patience=patience,
        )  # fmt: skip
        super().__init__(endpoint, graph, base)
        self.read_only = read_only
        # An address for updates of its own says how to write; else the store's kind does.
        self._update_given = endpoint.update_url != endpoint.query_url
        self._loader = Loader(endpoint, graph, base, self.sources, self._pull)
        # By load, of which there is one at a time.
        self._patterns: dict[str, Any] = {}
        #: Seconds that a look at the whole graph may take, where the call does not say.
        self._long = 10 * endpoint.patience

    def __enter__(self) -> SparqlStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to let go of: there is no connection between queries, and threads whose callers
        went on were cut off.
        """

    @property
    def timeout(self) -> float | None:
        """Seconds of a call without a deadline of its own."""
        return self.endpoint.timeout

    def __repr__(self) -> str:
        return f"<SparqlStore {self.name!r} at {self.place}>"

    # -- asking ------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        """Answer a program with one SPARQL query."""
        return self.steady(lambda: RdfStore.answer(self._lowering(request.language), request))

    def explain(self, request: Request) -> str:
        """The SPARQL of a program, without running it."""
        return RdfStore.explain(self._lowering(request.language), request)

    def _lowering(self, language: str) -> RdfStore:
        """This store as lowering needs it: names in LLM queries are resolved among all of the
        graph, which is pulled once.
        """
        return self if language == "kopl" else LinkedStore(self)

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """The subgraphs that are nearest to a pattern, as a snapshot of the graph gives them."""
        if not exact:
            raise OptionError("an RDF store has no approximate index", hint="ask with exact=True")
        return self.steady(lambda: self._patterns_now().match(pattern, **options))

    def index(self, encoder: Encoder, on_progress: OnProgress | None) -> IndexReport:
        """Keep the vectors of the graph's names on this machine; only what is new is encoded."""
        return self.steady(lambda: self._patterns_now().index(self._vectors, encoder, on_progress))

    def _patterns_now(self) -> SparqlPatterns:
        """Patterns on the graph as it is now."""
        from condgraph.sparql.patterns.match import SparqlPatterns

        schema = self.schema
        if self._load not in self._patterns:
            self._patterns.clear()
        # A thread that goes on without the call has a bound of its own.
        bound = self._long if current() else None

        def make() -> SparqlPatterns:
            with within(bound):
                return SparqlPatterns(self, schema, self._vectors, self.endpoint.dialect)

        found: SparqlPatterns = shared(self._patterns, self._load, make)
        return found

    @cached
    def _vectors(self) -> CachedVectors:
        from condgraph.sparql.patterns.vectors import CachedVectors

        return CachedVectors(self.place, self.base)

    def text(self, text: str, *, dialect: str = "standard", limit: int | None = None, on_unknown: str = "error") -> Table:
        """Run a query that people wrote, read-only; its results as a table (`sparql.text.query`)."""
        there = self.endpoint.dialect

        def runs(one: str) -> Any:
            if there is OXIGRAPH:
                one = rewrite(one)
            return self.endpoint.triples(one, graphs=(self.base,)) if makes_triples(one) else self._run(one)

        target = self.target
        table = run(
            text, runs, target.names, target.schema, dialect=dialect, limit=limit, on_unknown=on_unknown, federated=True,
            list_length=there.list_length, values=there.long_values,
        )  # fmt: skip
        if makes_triples(text) and not there.says_cut_triples:
            table.warnings.append("Virtuoso does not say where it cut triples (its ResultSetMaxRows)")
        return table

    # -- loading -----------------------------------------------------------------------------------

    def push(self, snapshot: Snapshot, *, wait: float = 0.0, change: Change | None = None) -> tuple[dict[str, int], dict[str, int]]:
        """Write a snapshot as this graph, beside what the graph holds already but for what `change`
        takes away; gives what it held, and holds now.

        The same content again changes nothing. `wait` is for how many seconds to wait for another
        loader; then, or where a load was ended, raises `StoreBusyError`.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        found = self._loader.push(snapshot, wait=wait, by_update=self._update_given, change=change)
        self._schema = None
        return found

    def under_way(self) -> tuple[list[str], bool] | None:
        """The sources of a load that is not finished, and whether its writer is gone."""
        found = state(self.endpoint, self.base)
        begun = marks(found)
        return (found.get("what", []), all(mark.gone for mark in begun)) if begun else None

    def abandon(self) -> bool:
        """Take back a load that was not finished: the graph holds what it held before. Whether
        there was one.

        Raises `StoreBusyError` while the process that loads is there. A process on another machine
        may still be there: stop it first.
        """
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        begun = state(self.endpoint, self.base)
        self._schema = None
        if "loading" not in begun:
            return False
        other = next((mark for mark in marks(begun) if not mark.gone and Owner.here(mark.owner)), None)
        if other is not None:
            raise busy(self.name, other)
        if abandon(self.endpoint, self.base, begun):
            # Compared with the counts that the graph had.
            self.snapshot()
        return True

    def delete(self) -> bool:
        """Remove the graph from the store, and nothing else; whether there was one."""
        if self.read_only:
            raise ReadOnlyError.at(self.place)
        found = bool(state(self.endpoint, self.base))
        self.endpoint.update(f"DROP SILENT GRAPH <{predicted_graph(self.base)}>")
        remove(self.endpoint, self.base)
        self._schema = None
        return found
