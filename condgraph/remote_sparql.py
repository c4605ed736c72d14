"""A graph in a remote RDF store, behind the same API as local ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Event
from typing import IO, TYPE_CHECKING, Any

from condgraph.engine.answer import Answer
from condgraph.engine.errors import OptionError
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.collector import fewer_collections
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.graph import Engine, Graph, OnUnknown
from condgraph.reports import Status
from condgraph.sparql.remote import SparqlStore
from condgraph.sparql.table import Table

if TYPE_CHECKING:
    from condgraph.engine.linking.encoder import Encoder
    from condgraph.engine.search.result import Matches


class SparqlGraph(Graph):
    """One graph of an RDF store, through its SPARQL endpoint.

    `place` is `sparql+http://host/path` or `sparql+https://...`, with user and password in it or in `SPARQL_USERNAME` and
    `SPARQL_PASSWORD`. `update` is the address for updates where it is another one, `store` that of the Graph Store Protocol, by
    which loading is quicker, `base` the IRI of the graph (and of its named graph), `method` "get", "post" or "auto".
    """

    def __init__(self, place: str, *, graph: str = "default", read_only: bool = False, **options: Any) -> None:
        super().__init__("memory:", graph=graph, read_only=read_only)
        known = ("update", "store", "base", "user", "password", "method")
        wrong = next((name for name in options if name not in known), None)
        if wrong is not None:
            raise OptionError(f"a SPARQL endpoint takes no option {wrong!r}", hint=f"it takes: {', '.join(known)}")
        options = {name: value and str(value).removeprefix("sparql+") for name, value in options.items()}
        self.store = SparqlStore(place.removeprefix("sparql+"), graph=graph, read_only=read_only, **options)
        self.place = self.store.place

    def close(self) -> None:
        """Let go of what waits."""
        self.store.close()

    def refresh(self) -> None:
        """Forget what is known of the schema, which another process may have changed."""
        self.store.refresh()

    @property
    def current(self) -> Snapshot:
        """The graph as it is now, pulled into process and kept until it changes there."""
        return self.store.linked()

    def _build(self, read: Callable[[Builder], None], wait: float) -> tuple[dict[str, int], dict[str, int], int, list[str]]:
        with self._lock, fewer_collections():
            before = self.store.counts() if self.store.exists() else {}
            builder = Builder()
            read(builder)
            builder.finish()
            statements, warnings = builder.statements, builder.warnings
            self.store.push(Snapshot.of(*lay_out(builder)))
            return before, self.store.counts(), statements, warnings

    def query(
        self,
        program: Any,
        *,
        language: str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine = "sparql",
        **options: Any,
    ) -> Answer:
        """Answer a program in any language with one SPARQL query; `engine="snapshot"` answers in process, on the pulled graph."""
        about: dict[str, Any] = {"timeout": timeout, "limit": limit, "on_unknown": on_unknown, "cancelled": cancelled, **options}
        if engine == "sparql":
            return self.store.query(program, language=language, **about)
        return Graph.of(self.current, self.name).query(program, language=language, engine=engine, **about)

    def kopl(
        self,
        program: Any,
        *,
        timeout: float | None = None,
        limit: int | None = None,
        on_unknown: OnUnknown = "error",
        cancelled: Event | None = None,
        engine: Engine = "sparql",
    ) -> Answer:
        """Answer a KoPL program with one SPARQL query."""
        return self.query(
            program,
            language="kopl",
            timeout=timeout,
            limit=limit,
            on_unknown=on_unknown,
            cancelled=cancelled,
            engine=engine,
        )

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

    def match(
        self,
        pattern: Any,
        *,
        k: int | None = 3,
        group_by: str | Sequence[str] | None = None,
        distinct_from: Any = None,
        injective: bool = True,
        induced: bool = False,
        directed: bool = False,
        k_nodes: int | None = None,
        k_relations: int | None = None,
        k_types: int | None = None,
        fast: bool = False,
        encoder: Encoder | str | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
        exact: bool = True,
        engine: Engine = "snapshot",
    ) -> Matches:
        """The k subgraphs that are most similar to a pattern, as `Graph.match` gives them, over edges fetched from the store."""
        if not exact:
            raise OptionError("an RDF store has no approximate index", hint="ask with exact=True")
        return self.store.match(
            pattern,
            encoder=encoder,
            timeout=timeout,
            limit=limit,
            cancelled=cancelled,
            k=k,
            group_by=group_by,
            distinct_from=distinct_from,
            injective=injective,
            induced=induced,
            directed=directed,
            k_nodes=k_nodes,
            k_relations=k_relations,
            k_types=k_types,
            fast=fast,
        )

    def explain(self, program: Any, *, language: str | None = None, on_unknown: OnUnknown = "error", **options: Any) -> str:
        """The SPARQL of a program, without running it."""
        return self.store.explain(program, language=language, on_unknown=on_unknown, **options)

    def status(self, *, verify: bool = False) -> Status:
        """What the graph holds; `verify` pulls it and raises `StoreDamagedError` where it is not what was written."""
        if verify:
            self.store.snapshot()
        return Status(self.place, self.name, "server", self.store.counts(), self.store.sources(), 0, verify)

    def snapshot(self) -> Graph:
        """The whole graph as a local one in memory, equal to what was loaded."""
        return Graph.of(self.store.snapshot(), self.name)

    def push(self, graph: Graph) -> None:
        """Write a local graph as this one, beside what it holds; the same content twice changes nothing."""
        self.store.push(graph.current)

    def delete(self) -> None:
        """Remove the graph from the store."""
        self.store.delete()

    def export(self, path: str | os.PathLike[str] | IO[str], *, to: str = "jsonl") -> int:
        """Write everything the graph holds to a file, as `Graph.export`."""
        return self.snapshot().export(path, to=to)
