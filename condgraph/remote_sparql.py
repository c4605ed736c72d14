"""A graph in a remote RDF store, behind the same API as local ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any

from condgraph.engine.answer import Answer
from condgraph.engine.errors import OptionError
from condgraph.engine.linking.encoders import encoder_of
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph import Graph, OnUnknown, filled
from condgraph.remote import RemoteGraph
from condgraph.reports import Status
from condgraph.sparql.remote import SparqlStore
from condgraph.sparql.table import Table

if TYPE_CHECKING:
    from condgraph.engine.linking.encoder import Encoder
    from condgraph.engine.linking.kept_vectors import IndexReport
    from condgraph.engine.search.result import Matches


class SparqlGraph(RemoteGraph):
    """One graph of an RDF store, through its SPARQL endpoint.

    `place` is `sparql+http://host/path` or `sparql+https://...`, with user and password in it or in `SPARQL_USERNAME` and
    `SPARQL_PASSWORD`. `update` is the address for updates where it is another one, `store` that of the Graph Store Protocol, by
    which loading is quicker, `base` the IRI of the graph (and of its named graph), `method` "get", "post" or "auto".
    """

    def __init__(self, place: str, *, graph: str = "default", read_only: bool = False, **options: Any) -> None:
        known = ("update", "store", "base", "user", "password", "method")
        wrong = next((name for name in options if name not in known), None)
        if wrong is not None:
            raise OptionError(f"a SPARQL endpoint takes no option {wrong!r}", hint=f"it takes: {', '.join(known)}")
        options = {name: value and str(value).removeprefix("sparql+") for name, value in options.items()}
        self.store = SparqlStore(place.removeprefix("sparql+"), graph=graph, read_only=read_only, **options)
        super().__init__(self.store, graph=graph, read_only=read_only)

    @property
    def current(self) -> Snapshot:
        """The graph as it is now, pulled into process and kept until it changes there."""
        return self.store.linked()

    def _build(self, read: Callable[[Builder], None], wait: float) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        """What the graph held and holds is told by the load itself: others may load before and after."""
        with self._lock:
            builder = Builder()
            filled(builder, read)
            before, after = self.store.push(Snapshot.of(*lay_out(builder)), wait=wait)
            return before, after, builder.statements, builder.warnings

    def _answer(self, engine: str | None, program: Any, language: str | None, **options: Any) -> Answer:
        """One SPARQL query; `engine="snapshot"` answers in process, on the pulled graph."""
        if engine in (None, "sparql"):
            return self.store.query(program, language=language, **options)
        return super()._answer(engine, program, language, **options)

    def sparql(
        self,
        text: str,
        *,
        dialect: str = "standard",
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
    ) -> Table:
        """Run a SPARQL 1.1 query that a person wrote, read-only, over this graph on the server."""
        return self.store.text(text, dialect=dialect, timeout=timeout, limit=limit, on_unknown=on_unknown, cancelled=cancelled)

    def _match(self, engine: str | None, pattern: Any, *, exact: bool, **options: Any) -> Matches:
        """Over edges fetched from the store; `engine="snapshot"` searches in process, on the pulled graph."""
        if engine not in (None, "sparql"):
            return super()._match(engine, pattern, exact=exact, **options)
        if not exact:
            raise OptionError("an RDF store has no approximate index", hint="ask with exact=True")
        return self.store.match(pattern, **options)

    def _index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Encode the names of nodes and predicates, and keep their vectors on this machine, since RDF stores keep none."""
        if faiss:
            raise OptionError("an RDF store has no approximate index", hint="leave `faiss` out")
        return self.store.index(encoder_of(encoder), progress)

    def _explain(self, engine: str | None, program: Any, language: str | None, **options: Any) -> str:
        """The SPARQL of a program; with `engine="snapshot"` its plan."""
        if engine in (None, "sparql"):
            return self.store.explain(program, language=language, **options)
        return super()._explain(engine, program, language, **options)

    def status(self, *, verify: bool = False) -> Status:
        """What the graph holds; `verify` pulls it and raises `StoreDamagedError` where it is not what was written."""
        if verify:
            self.store.snapshot()
        return Status(self.place, self.name, "server", self.store.counts(), self.store.sources(), 0, verify)

    def push(self, graph: Graph, *, wait: float = 0.0) -> None:
        """Write a local graph as this one, beside what it holds; the same content twice changes nothing. `wait` as for `load`."""
        self.store.push(graph.current, wait=wait)

    def delete(self) -> None:
        """Remove the graph from the store."""
        self.store.delete()
