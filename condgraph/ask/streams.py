"""Asking for asyncio: `AsyncGraph.ask`, and its steps as they are done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from threading import Event
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from condgraph.ask.excerpt import Excerpt
    from condgraph.ask.records import Asked, AskStep


class AskAsync:
    """Methods of `AsyncGraph` for questions in words."""

    async def ask(self, question: str, llm: Any, **options: Any) -> Asked:
        """`Graph.ask`; the model is called in a worker thread. Cancelling the task ends it."""
        own = cast("Any", self)
        ended = options.pop("cancelled", None) or Event()

        def ask() -> Asked:
            return cast("Asked", own.graph.ask(question, llm, cancelled=ended, **options))

        return cast("Asked", await own._cancellable(ask, options.get("timeout"), ended))

    async def asking(self, question: str, llm: Any, **options: Any) -> AsyncIterator[AskStep | Asked]:
        """The steps of `ask` as they are done, and the outcome at last."""
        from asyncio import Queue, create_task, get_running_loop

        loop = get_running_loop()
        steps: Queue[AskStep | None] = Queue()
        told = options.pop("on_step", None)

        def tell(step: AskStep) -> None:
            if told is not None:
                told(step)
            loop.call_soon_threadsafe(steps.put_nowait, step)

        task = create_task(self.ask(question, llm, on_step=tell, **options))
        task.add_done_callback(lambda _: steps.put_nowait(None))
        try:
            while (step := await steps.get()) is not None:
                yield step
            yield await task
        finally:
            task.cancel()

    async def excerpt(self, question: str, tokens: int = 500, **options: Any) -> Excerpt:
        """`Graph.excerpt`."""
        own = cast("Any", self)
        return cast(
            "Excerpt",
            await own._cancellable(lambda: own.graph.excerpt(question, tokens, **options), options.get("timeout")),
        )
