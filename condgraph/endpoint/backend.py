"""The backend of an endpoint over stores of Oxigraph on disk, whose queries run in worker
processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from condgraph.sparql.text.survey import aside, survey
from condgraph.sparql.workers.pool import AsyncResults, File, Query, WorkerPool


class OxigraphBackend:
    """Answers from a store (a folder), or from files that every worker loads into memory.

    The default graph of a query that names none is `default`, or the union of all graphs where that
    is None. `workers`, `memory` and the like are those of `WorkerPool`.
    """

    def __init__(
        self,
        source: Path | Sequence[File],
        *,
        graphs: Sequence[str] = (),
        base: str | None = None,
        prefixes: Mapping[str, str] | None = None,
        default: str | None = None,
        **options: Any,
    ) -> None:
        self.graphs, self.base, self.prefixes = tuple(graphs), base, dict(prefixes or {})
        self.default = default
        self._pool = WorkerPool(source, **options)

    def use(self, source: Path | Sequence[File]) -> None:
        """Answer from another source from now on."""
        self._pool.use(source)

    async def query(self, query: Query, timeout: float) -> AsyncResults:
        """Run a query in a worker."""
        if query.graph is None and query.default_graphs is None and query.named_graphs is None:
            about = await aside(len(query.text), survey, query.text)
            if not about.dataset:
                query = replace(query, union=True) if self.default is None else replace(query, default_graphs=[self.default])
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
