"""The same API for asyncio: every call runs in a worker thread, and cancelling the task ends the query.

asyncio itself is imported in the calls, which a loop of it runs: it takes as long as the rest of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from condgraph.engine.answer import Answer
from condgraph.engine.linking.kept_vectors import IndexReport
from condgraph.engine.search.result import Matches
from condgraph.graph import Graph
from condgraph.opening import open as open_graph
from condgraph.reports import LoadReport, Status

P = ParamSpec("P")
T = TypeVar("T")


async def _in_thread(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    from asyncio import to_thread

    return await to_thread(call, *arguments, **options)


class AsyncGraph:
    """`Graph` with awaitable methods. Use `async with await condgraph.open_async(place) as g: ...`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    async def __aenter__(self) -> AsyncGraph:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.graph.close()

    async def load(self, source: Any, **options: Any) -> LoadReport:
        """`Graph.load`. A load that has begun is not cancelled half way: it ends, and the graph has it."""
        return await _in_thread(self.graph.load, source, **options)

    async def kopl(self, program: Any, **options: Any) -> Answer:
        """`Graph.kopl`."""
        return await self._ask(self.graph.kopl, program, options)

    async def query(self, program: Any, **options: Any) -> Answer:
        """`Graph.query`."""
        return await self._ask(self.graph.query, program, options)

    async def match(self, pattern: Any, **options: Any) -> Matches:
        """`Graph.match`."""
        answer = await self._ask(self.graph.match, pattern, options)
        assert isinstance(answer, Matches)
        return answer

    async def _ask(self, method: Any, program: Any, options: dict[str, Any]) -> Answer:
        from asyncio import CancelledError

        cancelled = options.pop("cancelled", None) or Event()

        def ask() -> Answer:
            answer: Answer = method(program, cancelled=cancelled, **options)
            # Values are read in the worker, so that looking at them does not hold the event loop.
            _ = answer.values
            return answer

        try:
            return await _in_thread(ask)
        except CancelledError:
            cancelled.set()
            raise

    async def explain(self, program: Any, **options: Any) -> str:
        """`Graph.explain`."""
        return await _in_thread(self.graph.explain, program, **options)

    async def status(self, *, verify: bool = False) -> Status:
        """`Graph.status`."""
        return await _in_thread(self.graph.status, verify=verify)

    async def index(self, encoder: Any = "lexical", **options: Any) -> IndexReport:
        """`Graph.index`."""
        return await _in_thread(self.graph.index, encoder, **options)

    async def export(self, path: Any, *, to: str = "jsonl") -> int:
        """`Graph.export`."""
        return await _in_thread(self.graph.export, path, to=to)

    def close(self) -> None:
        """`Graph.close`."""
        self.graph.close()


async def open_async(place: Any = "memory:", *, graph: str = "default", read_only: bool = False) -> AsyncGraph:
    """Open a graph for asyncio; places are those of `condgraph.open`."""
    return AsyncGraph(await _in_thread(open_graph, place, graph=graph, read_only=read_only))
