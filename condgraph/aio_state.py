"""Methods of `AsyncGraph` that change a graph, or hand it on; and the threads that calls run in.

The threads are as many as there are calls: those that a silent server holds keep no later call
waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import copy_context
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

from condgraph.engine.workers import Workers
from condgraph.languages.table.builder import AsyncTableQuery
from condgraph.languages.table.tree import Clause

if TYPE_CHECKING:
    from condgraph.ask.demos import LearningDemos
    from condgraph.chains.chain import Chain
    from condgraph.engine.facts import Item
    from condgraph.graph import Graph
    from condgraph.logic.ask import StoredScores
    from condgraph.reports import LoadReport

P = ParamSpec("P")
T = TypeVar("T")

_WORKERS: Final = Workers("condgraph-async")


async def in_thread(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """What a call gives, from a thread of its own."""
    from asyncio import wrap_future

    # What bounds the task bounds the thread.
    context = copy_context()

    def run() -> T:
        try:
            return context.run(call, *arguments, **options)
        except BaseException as error:
            # Results of pyoxigraph that an error holds may be dropped by their own thread alone.
            clear_frames(error.__traceback__)
            raise

    return await wrap_future(_WORKERS.submit(run))


class StateAsync:
    """What `AsyncGraph` has of them. What changes a graph is not cancelled half way: it ends, and the
    graph has it.
    """

    if TYPE_CHECKING:
        graph: Graph

        def __init__(self, graph: Graph) -> None: ...

        async def _cancellable(self, call: Callable[[], T], timeout: float | None) -> T: ...

        async def query(self, program: Any, **options: Any) -> Any:
            """See `AsyncGraph.query`."""

        async def explain(self, program: Any, **options: Any) -> str:
            """See `AsyncGraph.explain`."""

    @property
    def demos(self) -> LearningDemos:
        """`Graph.demos`; they are in process, and looked at without waiting."""
        return self.graph.demos

    async def add(self, items: Iterable[Item], **options: Any) -> LoadReport:
        """`Graph.add`. One that has begun is not cancelled half way."""
        return await in_thread(self.graph.add, items, **options)

    async def delete(self) -> bool:
        """`Graph.delete`."""
        return await in_thread(self.graph.delete)

    async def abandon(self) -> bool:
        """`Graph.abandon`."""
        return await in_thread(self.graph.abandon)

    async def refresh(self) -> None:
        """`Graph.refresh`."""
        await in_thread(self.graph.refresh)

    async def snapshot(self) -> Self:
        """`Graph.snapshot`: the graph as it is now, to await as well."""
        return type(self)(await in_thread(self.graph.snapshot))

    async def to_rdflib(self, **options: Any) -> Any:
        """`Graph.to_rdflib`."""
        return await in_thread(self.graph.to_rdflib, **options)

    def table(self, program: Any = "FindAll()") -> AsyncTableQuery:
        """`Graph.table`: a table put together without waiting; its `ask` and `explain` are awaited."""
        return AsyncTableQuery(program, Clause(), self.query, self.explain)

    async def chain(self, entities: Any, tokenizer: Any, *, timeout: float | None = None, **options: Any) -> Chain:
        """`Graph.chain`; the chain itself is used by the thread that a model writes it in."""
        return await self._cancellable(lambda: self.graph.chain(entities, tokenizer, **options), timeout)

    async def write_predictions(self, model: Any, **options: Any) -> int:
        """`Graph.write_predictions`."""
        return await in_thread(self.graph.write_predictions, model, **options)

    async def remove_predictions(self, **options: Any) -> None:
        """`Graph.remove_predictions`."""
        await in_thread(self.graph.remove_predictions, **options)

    async def logic_stored(self, query: Any, *branches: Any, timeout: float | None = None, **options: Any) -> StoredScores:
        """`Graph.logic_stored`."""
        ask = self.graph.logic_stored
        return await self._cancellable(lambda: ask(query, *branches, **options), timeout)
