"""An endpoint whose data is another one for every test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from condgraph.endpoint.app import Limits
from condgraph.sparql.workers.pool import AsyncResults, File, Query, WorkerPool
from tests.support.serving import serving


class SuiteBackend:
    """A backend of its own: the default graph is the store's, and everything can be changed."""

    graphs: tuple[str, ...] = ()
    default: str | None = None
    store = "files"

    def __init__(self) -> None:
        self.base: str | None = None
        self.prefixes: Mapping[str, str] = {}
        self.headers: Mapping[str, str] = {}
        self._pool = WorkerPool([], workers=1)

    def use(self, files: Sequence[File], base: str | None) -> None:
        self.base = base
        self._pool.use(list(files))

    async def query(self, query: Query, timeout: float) -> AsyncResults:
        return await self._pool.query_async(query, timeout=timeout)

    def status(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        self._pool.close()


@dataclass
class SuiteServer:
    url: str
    backend: SuiteBackend


@pytest.fixture(scope="session")
def suite_server() -> Iterator[SuiteServer]:
    backend = SuiteBackend()
    with serving(backend, Limits(timeout=20.0, rows=None)) as url:
        yield SuiteServer(url, backend)
