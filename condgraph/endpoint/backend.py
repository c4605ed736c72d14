"""The backend of an endpoint over stores of Oxigraph on disk, whose queries run in worker
processes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias

from condgraph.engine.errors import DeadlineError, ParseError
from condgraph.engine.workers import Once
from condgraph.sparql.embedded import BUILDERS
from condgraph.sparql.text.scan import aside, survey, underscored
from condgraph.sparql.workers.pool import AsyncResults, File, Query, UnopenedError, WorkerPool

#: What the page asks about an IRI.
ABOUT: Final = """\
SELECT ?predicate ?object ?subject WHERE {
  { <{iri}> ?predicate ?object } UNION { ?subject ?predicate <{iri}> }
} LIMIT 200"""


#: Seconds that a query waits for a newer source, where its own cannot be opened, and between two looks.
_NEWER, _LOOK = 3.0, 0.05
#: A store on disk, files, or what a worker opens.
Source: TypeAlias = Path | Sequence[File] | Mapping[str, Any]


class OxigraphBackend:
    """Answers from a store (a folder), or from files that every worker loads into memory.

    Where a store has the triples of a graph in its default graph (`Stored.source`), `naming` gives
    the store with the named graph, for queries that name graphs: it is called when the first of
    them comes, in a thread, and once.

    The default graph of a query that names none is the union of those of `default`, or of all graphs
    where that is None. `predeclared` are prefixes that queries need not declare; `is_name` says
    whether the graph has a name (`prologue.underscored`). A store of at most `held` quads is held in
    memory by the processes that answer. `workers`, `memory` and the like are those of `WorkerPool`.
    """

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
        headers: Mapping[str, str] | None = None,
        held: int = 0,
        **options: Any,
    ) -> None:
        self.graphs, self.base, self.prefixes = tuple(graphs), base, dict(prefixes or {})
        self.default = (default,) if isinstance(default, str) else None if default is None else tuple(default)
        self.predeclared, self.examples = dict(predeclared or {}), tuple(examples)
        self._is_name, self.about = is_name, ABOUT
        #: Headers of every answer: of which state of the graph it is.
        self.headers: Mapping[str, str] = dict(headers or {})
        self._held = held
        self._pool, self._options = WorkerPool(self._told(source), **options), options
        self._named = self._naming(naming)
        #: How often the source was replaced.
        self._uses = 0

    def use(
        self,
        source: Source,
        *,
        naming: Callable[[], Source] | None = None,
        graphs: Sequence[str] | None = None,
        default: Sequence[str] | None = None,
        is_name: Callable[[str], bool] | None = None,
        examples: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Answer from another source from now on; what is not given stays."""
        self._pool.use(self._told(source))
        # Queries that run keep the pool of before until they have ended.
        self._named = self._naming(naming)
        self._uses += 1
        self.graphs = self.graphs if graphs is None else tuple(graphs)
        self.default = self.default if default is None else tuple(default)
        self._is_name = is_name or self._is_name
        self.examples = self.examples if examples is None else tuple(examples)

    def _naming(self, naming: Callable[[], Source] | None) -> Once[WorkerPool] | None:
        return None if naming is None else Once(BUILDERS, lambda: WorkerPool(self._told(naming()), **self._options))

    def _told(self, source: Source) -> Source:
        """What processes are told to open."""
        if isinstance(source, Path):
            source = {"store": str(source)}
        return {**source, "held": self._held} if isinstance(source, Mapping) and self._held else source

    def prepare(self) -> None:
        """Open the source now, so that the first query need not wait for that."""
        self._pool.prepare()

    async def query(self, query: Query, timeout: float) -> AsyncResults:
        """Run a query in a worker. A load may replace the generation before workers have opened it: such a
        query waits for the next source.
        """
        until = time.monotonic() + timeout
        newer = time.monotonic() + _NEWER
        while True:
            uses = self._uses
            try:
                return await self._query(query, max(0.001, round(until - time.monotonic(), 3)))
            except UnopenedError:
                while self._uses == uses:
                    if time.monotonic() >= min(until, newer):
                        raise
                    await asyncio.sleep(_LOOK)

    async def _query(self, query: Query, timeout: float) -> AsyncResults:
        pool, named, default = self._pool, self._named, self.default
        changed: dict[str, Any] = {}
        if query.graph is None and not query.dataset:
            about = await aside(len(query.text), survey, query.text)
            says = query.default_graphs is not None or query.named_graphs is not None
            # What a request says of the data set counts, and not what the query says.
            if named is not None and (about.graph or (about.dataset and not says)):
                begin = time.monotonic()
                pool = await _made(named, timeout)
                timeout = max(0.001, round(timeout - (time.monotonic() - begin), 3))
            if not about.dataset and not says:
                changed |= {"union": True} if default is None else {"default_graphs": default}
        if self.predeclared:
            changed["prefixes"] = self.predeclared
        query = replace(query, **changed)
        if self._is_name is not None and query.graph is None:
            meant = await aside(len(query.text), underscored, query.text, self._is_name)
            if meant != query.text:
                # Errors are about the text as it was written.
                with suppress(ParseError):
                    return await pool.query_async(replace(query, text=meant), timeout=timeout)
        return await pool.query_async(query, timeout=timeout)

    def _pools(self) -> Iterator[WorkerPool]:
        yield self._pool
        if self._named is not None and (named := self._named.there()) is not None:
            yield named

    def status(self) -> Mapping[str, Any]:
        """How many processes there are."""
        return {"graphs": list(self.graphs), "processes": sum(len(pool.pids()) for pool in self._pools())}

    def close(self) -> None:
        """End all processes."""
        for pool in self._pools():
            pool.close()

    def __enter__(self) -> OxigraphBackend:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


async def _made(named: Once[WorkerPool], timeout: float) -> WorkerPool:
    """The workers for queries that name graphs, as soon as their store is there."""
    made = asyncio.wrap_future(named.begun())
    # Whoever goes away takes nothing from others who wait.
    if not (await asyncio.wait([made], timeout=timeout))[0]:
        raise DeadlineError(
            f"the store for queries that name graphs was not built in {timeout:g} s", hint="it is built once: ask again later"
        )
    return made.result()
