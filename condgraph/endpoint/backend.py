"""Backends of an endpoint: Oxigraph stores on disk, queried in worker processes (`OxigraphBackend`), an
in-process copy of a graph in Neo4j (`Replica`), and a Neo4j database not written by condgraph, queried
directly (`LiveBackend`).
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.bounds import SharedTask
from condgraph.engine.errors import CondgraphError, DeadlineError, ParseError, PlanError, UnsupportedError
from condgraph.engine.iris import PRED, PREFIXES
from condgraph.sparql.embedded import BUILDERS
from condgraph.sparql.text.scan import aside, survey, underscored
from condgraph.sparql.workers.pool import AsyncResults, File, Query, UnopenedError, WorkerPool

if TYPE_CHECKING:
    from condgraph.endpoint.live import Live, Solutions
    from condgraph.graph import Graph
    from condgraph.reports import Status
    from condgraph.sparql.embedded import EmbeddedStore


#: The page's query about an IRI.
ABOUT: Final = """\
SELECT ?predicate ?object ?subject WHERE {
  { <{iri}> ?predicate ?object } UNION { ?subject ?predicate <{iri}> }
} LIMIT 200"""


#: How many seconds a query waits for a newer source if its own cannot be opened, and the pause between checks.
_NEWER, _NEWER_INTERVAL = 3.0, 0.05
#: A store on disk, files, or the description of what a worker opens.
Source: TypeAlias = Path | Sequence[File] | Mapping[str, Any]


class OxigraphBackend:
    """A backend over a store (a folder), or over files that every worker loads into memory.

    `state` has headers for the answers from this source: a query that waits for the next source has those of that one.

    If a store has the triples of a graph in its default graph (`Stored.source`), `naming` returns the
    store with the named graph, for queries that name graphs. It is called once, in a thread, for the
    first such query.

    The default graph of a query that names none is the union of the graphs `default`, or of all graphs
    if that is None. `predeclared` are prefixes that queries need not declare. `is_name` tells whether
    the graph has a name (`prologue.underscored`). The workers load a store of at most `held` quads into
    memory. Until `use` is called, queries are refused with status 503 and the reason `preparing`.
    `workers`, `memory` and the like are those of `WorkerPool`.
    """

    #: The kind of store, as named in traces.
    store = "folder"

    def __init__(
        self,
        source: Source,
        *,
        naming: Callable[[], Source] | None = None,
        graphs: Sequence[str] = (),
        base: str | None = None,
        prefixes: Mapping[str, str] | None = None,
        default: str | Sequence[str] | None = None,
        predeclared: Mapping[str, str] | None = None,
        is_name: Callable[[str], bool] | None = None,
        examples: Sequence[tuple[str, str]] = (),
        state: Mapping[str, str] | None = None,
        held: int = 0,
        preparing: str = "",
        **options: Any,
    ) -> None:
        #: Why queries are refused until there is a source (`use`), or empty.
        self.preparing = preparing
        self.graphs, self.base, self.prefixes = tuple(graphs), base, dict(prefixes or {})
        self.default = (default,) if isinstance(default, str) else None if default is None else tuple(default)
        self.predeclared, self.examples = dict(predeclared or {}), tuple(examples)
        self._is_name, self.about = is_name, ABOUT
        #: The headers of every answer, besides those of its source.
        self.headers: Mapping[str, str] = {}
        self._held = held
        self._pool, self._options = WorkerPool(self._opened(source, state), **options), options
        self._named = self._naming(naming, state)
        #: How many times the source was replaced.
        self._uses = 0

    def use(
        self,
        source: Source,
        *,
        naming: Callable[[], Source] | None = None,
        state: Mapping[str, str] | None = None,
        graphs: Sequence[str] | None = None,
        default: Sequence[str] | None = None,
        is_name: Callable[[str], bool] | None = None,
        examples: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Answer from another source from now on. Arguments from `graphs` on that are None keep their old values."""
        self._pool.use(self._opened(source, state))
        # Running queries keep the old pool until they end.
        self._named = self._naming(naming, state)
        self._uses += 1
        self.preparing = ""
        self.graphs = self.graphs if graphs is None else tuple(graphs)
        self.default = self.default if default is None else tuple(default)
        self._is_name = is_name or self._is_name
        self.examples = self.examples if examples is None else tuple(examples)

    def _naming(self, naming: Callable[[], Source] | None, state: Mapping[str, str] | None) -> SharedTask[WorkerPool] | None:
        if naming is None:
            return None
        return SharedTask(BUILDERS, lambda: WorkerPool(self._opened(naming(), state), **self._options))

    def _opened(self, source: Source, state: Mapping[str, str] | None) -> Source:
        if isinstance(source, Path):
            source = {"store": str(source)}
        return {**source, "held": self._held, "headers": dict(state or {})} if isinstance(source, Mapping) else source

    def prepare(self) -> None:
        """Open the source now, so that the first query need not wait for it."""
        self._pool.prepare()

    async def query(self, query: Query, timeout: float) -> AsyncResults:
        """Run a query in a worker.

        If a load replaces the generation before the workers have opened it, the query waits for the next
        source.
        """
        if self.preparing:
            raise ProtocolError(503, self.preparing, {"Retry-After": "5"})
        end = time.monotonic() + timeout
        wait_until = time.monotonic() + _NEWER
        while True:
            uses = self._uses
            try:
                return await self._query(query, max(0.001, round(end - time.monotonic(), 3)))
            except UnopenedError:
                while self._uses == uses:
                    if time.monotonic() >= min(end, wait_until):
                        raise
                    await asyncio.sleep(_NEWER_INTERVAL)

    async def _query(self, query: Query, timeout: float) -> AsyncResults:
        pool, named, default = self._pool, self._named, self.default
        changed: dict[str, Any] = {}
        if query.graph is None and not query.dataset:
            parsed = await aside(len(query.text), survey, query.text)
            in_request = query.default_graphs is not None or query.named_graphs is not None
            # The data set of the request overrides the one of the query.
            if named is not None and (parsed.graph or (parsed.dataset and not in_request)):
                started = time.monotonic()
                pool = await _naming_pool(named, timeout)
                timeout = max(0.001, round(timeout - (time.monotonic() - started), 3))
            if not parsed.dataset and not in_request:
                changed |= {"union": True} if default is None else {"default_graphs": default}
        if self.predeclared:
            changed["prefixes"] = self.predeclared
        query = replace(query, **changed)
        if self._is_name is not None and query.graph is None:
            rewritten = await aside(len(query.text), underscored, query.text, self._is_name)
            if rewritten != query.text:
                # Errors must refer to the text as it was written.
                with suppress(ParseError):
                    return await pool.query_async(replace(query, text=rewritten), timeout=timeout)
        return await pool.query_async(query, timeout=timeout)

    def _pools(self) -> Iterator[WorkerPool]:
        yield self._pool
        if self._named is not None and (named := self._named.there()) is not None:
            yield named

    def status(self) -> Mapping[str, Any]:
        """Return the graphs, the number of processes, and whether SPARQL has to wait."""
        more = {"preparing": self.preparing} if self.preparing else {}
        return {"graphs": list(self.graphs), "processes": sum(len(pool.pids()) for pool in self._pools()), **more}

    def close(self) -> None:
        """End all processes."""
        for pool in self._pools():
            pool.close()

    def __enter__(self) -> OxigraphBackend:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


async def _naming_pool(named: SharedTask[WorkerPool], timeout: float) -> WorkerPool:
    """Return the workers for queries that name graphs, once their store has been built."""
    building = asyncio.wrap_future(named.begun())
    # Cancelling a query must not cancel the build, since other queries may be waiting for it.
    if not (await asyncio.wait([building], timeout=timeout))[0]:
        raise DeadlineError(
            f"the store for queries that name graphs was not built in {timeout:g} s", hint="it is built once: ask again later"
        )
    return building.result()


# -- replicas ----------------------------------------------------------------------------------------
# SPARQL over a graph in Neo4j uses an RDF copy in this process, which is read again when the graph
# changes. The whole graph is read and laid out like any in-process graph, so queries, results and limits
# are the same. The old replica answers until the new one is ready, and the headers of every answer tell
# its state.


#: The default limit for the statements of a replicated graph: about five million triples.
MAX_STATEMENTS: Final = 1_000_000
#: The seconds between two checks of the graph.
_INTERVAL: Final = 0.5


def free_unused() -> None:
    """Free the memory and files of unused graphs and stores.

    They contain reference cycles, so they must be collected. Their memory goes back to the system if
    the C library can do that (glibc).
    """
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class CopiedGraph(Protocol):
    """A graph on a server that can be read as a whole."""

    @property
    def content(self) -> str:
        """A mark of the graph's content, which changes with it."""
        ...

    def status(self, *, verify: bool = False, timeout: float | None = None) -> Status:
        """Return the counts of the graph."""
        ...

    def snapshot(self) -> Graph:
        """Return the whole graph, in this process."""
        ...


class Replica:
    """The RDF of a graph on a server.

    `base` is the base of its IRIs. A graph of more than `most` statements is refused. With `refresh`,
    it is also read again when it is that many seconds old, for databases whose counts do not show every
    change.
    """

    def __init__(
        self, graph: CopiedGraph, *, base: str | None = None, most: int = MAX_STATEMENTS, refresh: float | None = None
    ) -> None:
        self._graph, self._base, self._most, self._refresh = graph, base, most, refresh
        self._newer = False
        self._read()

    def _read(self) -> None:
        """Read the graph. Raises `UnsupportedError` if it is too large."""
        content = self._graph.content
        statements = self._graph.status().statements
        if statements > self._most:
            raise UnsupportedError(
                "SPARQL over Neo4j",
                [f"a graph of {statements:,} statements"],
                hint=f"{self._most:,} are read into process at most; --replica-size N allows more, where the memory does",
            )
        started = datetime.now(UTC)
        self._local = self._graph.snapshot()
        #: The previous store. Its queries may still be running, so it stays until the next replica is ready.
        self._before: EmbeddedStore | None = getattr(self, "embedded", None)
        self.embedded: EmbeddedStore = self._local.rdf(self._base)
        self._content, self._at, self._since = content, started, time.monotonic()

    @property
    def state(self) -> Mapping[str, str]:
        """The headers that tell the graph's mark and when it was read."""
        return {"X-Condgraph-Content": self._content, "X-Condgraph-Read": self._at.isoformat(timespec="milliseconds")}

    @property
    def headers(self) -> Mapping[str, str]:
        """The header of every answer while a newer state is being read."""
        return {"X-Condgraph-Newer": "being read"} if self._newer else {}

    def stale(self) -> bool:
        """Return whether the graph has changed or the replica is too old."""
        old = self._refresh is not None and time.monotonic() - self._since > self._refresh
        return old or self._graph.content != self._content

    def follow(self, use: Callable[[Replica, bool], None], complain: Callable[[str], None], stop: Event) -> None:
        """Read the graph again whenever it changes, until `stop` is set.

        `use` is called whenever the headers change, with whether the store has changed, too. A problem is
        reported once, and the old replica continues to answer.
        """
        problem = ""
        while not stop.wait(_INTERVAL):
            try:
                if self.stale():
                    self._newer = True
                    use(self, False)
                    self._read()
                    self._newer, problem = False, ""
                    use(self, True)
                    free_unused()
            except (CondgraphError, OSError) as error:
                if str(error) != problem:
                    problem = str(error)
                    complain(
                        f"warning: the graph changed, or cannot be reached, and is not served again: {problem}; the old one goes on"
                    )


# -- live --------------------------------------------------------------------------------------------
# SPARQL without a copy, over a Neo4j database that condgraph did not write. A query becomes a plan that
# runs there (`endpoint.live`), or it is refused with a reason. The usual worker processes write the
# results, which they get as the rows of a VALUES. So they also handle formats, limits and deadlines, and
# they check the syntax before the database is queried.

#: The time limit in seconds for parsing a query, before the database is queried.
_READING: Final = 5.0
#: A query about one IRI.
_DESCRIBE: Final = re.compile(r"\s*+DESCRIBE\s*+<([^<>\s]*+)>\s*+", re.IGNORECASE)


class LiveBackend:
    """A backend that queries the database itself. `options` are those of `WorkerPool`."""

    store = "neo4j"

    def __init__(self, live: Live, **options: Any) -> None:
        self._live, self.base = live, live.names.base
        self.prefixes, self.predeclared = {"pred": PRED}, dict(PREFIXES)
        self.graphs: tuple[str, ...] = (self.base,)
        self.default = (self.base,)
        self.examples, self.about = _examples(live), "DESCRIBE <{iri}>"
        # The workers have no store, because their queries contain all the data.
        self._pool = WorkerPool([], **options)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers that say that the answers are current."""
        return {"X-Condgraph-Live": "asked", "X-Condgraph-Read": datetime.now(UTC).isoformat(timespec="milliseconds")}

    async def query(self, query: Query, timeout: float) -> AsyncResults:
        """Query the database.

        Raises an error for a wrong query, and status 501 for one that cannot be answered live.
        """
        from condgraph.endpoint.live import MAX_ROWS

        end = time.monotonic() + timeout
        if query.graph is not None or query.dataset:
            raise ProtocolError(501, "whole graphs are not available live: serve a replica (without --live)")
        empty = replace(query, prefixes=self.predeclared, default_graphs=None, named_graphs=None)
        parsing = await self._pool.query_async(replace(empty, limit=1), timeout=min(timeout, _READING))
        parsing.close()
        limit = MAX_ROWS if query.limit is None else query.limit + 1
        if (about := _DESCRIBE.fullmatch(query.text)) is not None:
            left = max(0.001, end - time.monotonic())
            try:
                triples = await asyncio.to_thread(self._live.describe, about[1], most=limit, timeout=left)
            except UnsupportedError as error:
                raise ProtocolError(501, str(error)) from None
            result_query = replace(empty, text=f"CONSTRUCT {{\n{triples}}} WHERE {{}}", prefixes=None)
            return await self._pool.query_async(result_query, timeout=max(0.001, end - time.monotonic()))
        try:
            results = await asyncio.to_thread(self._live.ask, query.text, most=limit, timeout=max(0.001, end - time.monotonic()))
        except (UnsupportedError, PlanError) as error:
            raise ProtocolError(501, str(error)) from None
        if query.limit is None and not isinstance(results, bool) and results.more:
            raise ProtocolError(501, f"more than {MAX_ROWS:,} rows are not returned live; set a LIMIT")
        result_query = replace(empty, text=as_query(results), prefixes=None)
        return await self._pool.query_async(result_query, timeout=max(0.001, end - time.monotonic()))

    def status(self) -> Mapping[str, Any]:
        """Return the graphs and the number of processes."""
        return {"graphs": list(self.graphs), "processes": len(self._pool.pids()), "live": True}

    def close(self) -> None:
        """End all processes."""
        self._pool.close()


def as_query(results: Solutions | bool) -> str:
    """Return a query over no data that has the given results.

    >>> from condgraph.endpoint.live import Solutions
    >>> as_query(True)
    'ASK { FILTER(true) }'
    >>> as_query(Solutions(("name",), (('"Nepal"',), (None,))))
    'SELECT ?name { VALUES (?name) { ("Nepal") (UNDEF) } }'
    """
    if isinstance(results, bool):
        return f"ASK {{ FILTER({'true' if results else 'false'}) }}"
    names = " ".join(f"?{name}" for name in results.names)
    rows = " ".join(f"({' '.join('UNDEF' if term is None else term for term in row)})" for row in results.rows)
    return f"SELECT {names} {{ VALUES ({names}) {{ {rows} }} }}"


def _examples(live: Live) -> tuple[tuple[str, str], ...]:
    """Return the example queries for the page."""
    mapping, names = live.store.mapping, live.names
    queries = [("the concepts, with how many members each has",
              "SELECT ?concept (COUNT(?x) AS ?members) {\n  ?x <pred:instance_of>/<pred:name> ?concept\n}\n"
              "GROUP BY ?concept ORDER BY DESC(?members)")]  # fmt: skip
    largest = sorted(mapping.relationships, key=lambda item: -item.count)[:2]
    for kind in largest:
        text = f"SELECT ?a ?b {{\n  ?x {names.predicate(kind.predicate)} ?y ; <pred:name> ?a .\n  ?y <pred:name> ?b\n}} LIMIT 20"
        queries.append((f"what {kind.predicate} leads to", text))
    return tuple(queries)
