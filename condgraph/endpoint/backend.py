"""The backend of an endpoint over stores of Oxigraph on disk, whose queries run in worker
processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from condgraph.engine.errors import ParseError
from condgraph.sparql.text.prologue import underscored
from condgraph.sparql.text.survey import aside, survey
from condgraph.sparql.workers.pool import AsyncResults, File, Query, WorkerPool

#: What the page asks about an IRI.
ABOUT: Final = """\
SELECT ?predicate ?object ?subject WHERE {
  { <{iri}> ?predicate ?object } UNION { ?subject ?predicate <{iri}> }
} LIMIT 200"""


class OxigraphBackend:
    """Answers from a store (a folder), or from files that every worker loads into memory.

    The default graph of a query that names none is the union of those of `default`, or of all graphs
    where that is None. `predeclared` are prefixes that queries need not declare; `is_name` says
    whether the graph has a name (`prologue.underscored`). `workers`, `memory` and the like are those
    of `WorkerPool`.
    """

    def __init__(
        self,
        source: Path | Sequence[File],
        *,
        graphs: Sequence[str] = (),
        base: str | None = None,
        prefixes: Mapping[str, str] | None = None,
        default: str | Sequence[str] | None = None,
        predeclared: Mapping[str, str] | None = None,
        is_name: Callable[[str], bool] | None = None,
        examples: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.graphs, self.base, self.prefixes = tuple(graphs), base, dict(prefixes or {})
        self.default = (default,) if isinstance(default, str) else None if default is None else tuple(default)
        self.predeclared, self.examples = dict(predeclared or {}), tuple(examples)
        self._is_name, self.about = is_name, ABOUT
        #: Headers of every answer: of which state of the graph it is.
        self.headers: Mapping[str, str] = dict(headers or {})
        self._pool = WorkerPool(source, **options)

    def use(
        self,
        source: Path | Sequence[File],
        *,
        graphs: Sequence[str] | None = None,
        default: Sequence[str] | None = None,
        is_name: Callable[[str], bool] | None = None,
        examples: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Answer from another source from now on; what is not given stays."""
        self._pool.use(source)
        self.graphs = self.graphs if graphs is None else tuple(graphs)
        self.default = self.default if default is None else tuple(default)
        self._is_name = is_name or self._is_name
        self.examples = self.examples if examples is None else tuple(examples)

    async def query(self, query: Query, timeout: float) -> AsyncResults:
        """Run a query in a worker."""
        if query.graph is None and query.default_graphs is None and query.named_graphs is None:
            about = await aside(len(query.text), survey, query.text)
            if not about.dataset:
                query = replace(query, union=True) if self.default is None else replace(query, default_graphs=self.default)
        if self.predeclared:
            query = replace(query, prefixes=self.predeclared)
        if self._is_name is not None and query.graph is None:
            meant = await aside(len(query.text), underscored, query.text, self._is_name)
            if meant != query.text:
                # Errors are about the text as it was written.
                with suppress(ParseError):
                    return await self._pool.query_async(replace(query, text=meant), timeout=timeout)
        return await self._pool.query_async(query, timeout=timeout)

    def status(self) -> Mapping[str, Any]:
        """How many processes there are."""
        return {"graphs": list(self.graphs), "processes": len(self._pool.pids())}

    def close(self) -> None:
        """End all processes."""
        self._pool.close()

    def __enter__(self) -> OxigraphBackend:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
