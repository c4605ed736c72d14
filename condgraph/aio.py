"""The same API for asyncio: every call runs in a worker thread, and cancelling the task ends the
query.

The methods are made from those of `Graph`, whose signatures they have. asyncio itself is imported in
the calls, which a loop of it runs: it takes as long as the rest of the package.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from functools import partial, wraps
from threading import Event, Lock
from traceback import clear_frames
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

from condgraph.engine.answer import Answer
from condgraph.engine.bounds import Workers, within
from condgraph.engine.check import Checked, Counting
from condgraph.engine.errors import DeadlineError
from condgraph.engine.external import each, on_loop
from condgraph.engine.records import Evidence
from condgraph.graph import Engine, Graph
from condgraph.languages.table.builder import AsyncTableQuery
from condgraph.languages.table.tree import Clause
from condgraph.opening import open as open_graph
from condgraph.patterns.matches import Matches
from condgraph.prepared import PreparedProgram

if TYPE_CHECKING:
    from condgraph.ask.chat import Chat
    from condgraph.ask.demos import Demos
    from condgraph.ask.records import Asked, AskStep, AskText
    from condgraph.engine.period import TimeLike
    from condgraph.questions.generate import Questions
    from condgraph.questions.record import Question
    from condgraph.versions import AsOf

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound=Answer)

#: As many threads as there are calls: those that a silent server holds keep no later call waiting.
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


# -- methods of graphs as methods to await -----------------------------------------------------------


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of `Graph` that ends soon after the task is cancelled."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncGraph, /, *arguments: Any, **options: Any) -> T:
        cancelled = options.pop("cancelled", None)
        run = getattr(self.graph, name)
        return await self._cancellable(lambda: run(*arguments, **options), options.get("timeout"), cancelled)

    return call


def answered(method: Callable[Concatenate[Any, P], A]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, A]]:
    """The same of a method that gives an answer, whose values are read in the thread."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncGraph, /, *arguments: Any, **options: Any) -> A:
        return await self._answered(getattr(self.graph, name), arguments, options)

    return call


def completed(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of `Graph` that is not cancelled half way: it ends, and the graph keeps what it did."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncGraph, /, *arguments: Any, **options: Any) -> T:
        return await in_thread(getattr(self.graph, name), *arguments, **options)

    return call


async def followed(
    ask: Callable[..., Coroutine[Any, Any, Asked]], arguments: Sequence[Any], options: Mapping[str, Any]
) -> AsyncIterator[AskStep | AskText | Asked]:
    """The steps of a question while they are done, with pieces of what the model writes, and the outcome at last."""
    from asyncio import Queue, create_task, get_running_loop

    loop = get_running_loop()
    steps: Queue[AskStep | AskText | None] = Queue()

    def report(name: str, item: AskStep | AskText) -> None:
        if (hearer := options.get(name)) is not None:
            hearer(item)
        loop.call_soon_threadsafe(steps.put_nowait, item)

    task = create_task(ask(*arguments, **{**options, **{name: partial(report, name) for name in ("on_step", "on_text")}}))
    task.add_done_callback(lambda _: steps.put_nowait(None))
    try:
        while (step := await steps.get()) is not None:
            yield step
        yield await task
    finally:
        task.cancel()


def stepwise(
    method: Callable[Concatenate[Any, P], Asked],
) -> Callable[Concatenate[Any, P], AsyncIterator[AskStep | AskText | Asked]]:
    """`Graph.asking` without waiting."""

    @wraps(method)
    def steps_of(self: AsyncGraph, /, *arguments: Any, **options: Any) -> AsyncIterator[AskStep | AskText | Asked]:
        return followed(self.ask, arguments, options)

    return steps_of


class AsyncGraph:
    """`Graph` with awaitable methods. Use `async with await condgraph.open_async(place) as g: ...`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.graph.close()

    def close(self) -> None:
        """`Graph.close`."""
        self.graph.close()

    load = completed(Graph.load)
    unload = completed(Graph.unload)
    declare = completed(Graph.declare)
    keep_versions = completed(Graph.keep_versions)
    retract = completed(Graph.retract)
    correct = completed(Graph.correct)
    edits = completed(Graph.edits)
    compact = completed(Graph.compact)
    add = completed(Graph.add)
    delete = completed(Graph.delete)
    abandon = completed(Graph.abandon)
    refresh = completed(Graph.refresh)
    index = completed(Graph.index)
    export = completed(Graph.export)
    to_rdflib = completed(Graph.to_rdflib)
    write_predictions = completed(Graph.write_predictions)
    remove_predictions = completed(Graph.remove_predictions)

    kopl = answered(Graph.kopl)
    query = answered(Graph.query)
    match = answered(Graph.match)

    answer_sets = awaited(Graph.answer_sets)
    ask = awaited(Graph.ask)
    asking = stepwise(Graph.ask)
    chain = awaited(Graph.chain)
    conflicts = awaited(Graph.conflicts)
    timeline = awaited(Graph.timeline)
    difference = awaited(Graph.difference)
    evaluate_logic = awaited(Graph.evaluate_logic)
    excerpt = awaited(Graph.excerpt)
    explain = awaited(Graph.explain)
    grammar = awaited(Graph.grammar)
    keep_rows = awaited(Graph.keep_rows)
    learn_rules = awaited(Graph.learn_rules)
    logic = awaited(Graph.logic)
    logic_stored = awaited(Graph.logic_stored)
    mix_links = awaited(Graph.mix_links)
    reason = awaited(Graph.reason)
    sample_queries = awaited(Graph.sample_queries)
    schema = awaited(Graph.schema)
    sparql = awaited(Graph.sparql)
    status = awaited(Graph.status)
    train_links = awaited(Graph.train_links)
    verify = awaited(Graph.verify)
    versions = awaited(Graph.versions)
    verify_chain = awaited(Graph.verify_chain)

    @property
    def demos(self) -> Demos:
        """`Graph.demos`; they are in process, and looked at without waiting."""
        return self.graph.demos

    async def snapshot(self) -> Self:
        """`Graph.snapshot`: the graph as it is now, to await as well."""
        return type(self)(await in_thread(self.graph.snapshot))

    def at(self, at: TimeLike | None = None, *, between: Sequence[TimeLike | None] | None = None, certain: bool = False) -> Self:
        """`Graph.at`: a view to await as well, which is there without waiting."""
        return type(self)(self.graph.at(at, between=between, certain=certain))

    async def as_of(self, as_of: AsOf) -> Self:
        """`Graph.as_of`: an earlier version, to await as well."""
        return type(self)(await in_thread(self.graph.as_of, as_of))

    def table(self, program: Any = "FindAll()") -> AsyncTableQuery:
        """`Graph.table`: a table put together without waiting; its `ask` and `explain` are awaited."""
        return AsyncTableQuery(program, Clause(), self.query, self.explain)

    def chat(self, llm: Any, **options: Any) -> AsyncChat:
        """`Graph.chat`: a conversation whose `ask` is awaited."""
        return AsyncChat(self, self.graph.chat(llm, **options))

    async def prepare(
        self, program: Any, *, language: str | None = None, engine: Engine | None = None, **options: Any
    ) -> AsyncPreparedProgram:
        """`Graph.prepare`; the program that is prepared is awaited when it is called."""
        prepared = await in_thread(self.graph.prepare, program, language=language, engine=engine, **options)
        return AsyncPreparedProgram(self, prepared)

    async def check(
        self,
        answer: Answer,
        evidence: Sequence[Evidence] | None = None,
        *,
        full: bool = False,
        graph: Counting | None = None,
        timeout: float | None = None,
    ) -> Checked:
        """`Answer.check`, in a worker thread."""
        return await self._cancellable(lambda: answer.check(evidence, full=full, graph=graph, timeout=timeout), timeout)

    async def cypher(self, text: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """`Graph.cypher`, which gives an answer, or `Neo4jGraph.cypher`, which gives a dict a row."""
        cancelled = options.pop("cancelled", None)

        def run() -> Any:
            found = self.graph.cypher(text, parameters, **options)
            if isinstance(found, Answer):
                # Values are read in the worker, so that looking at them does not hold the event loop.
                _ = found.values
            return found

        return await self._cancellable(run, options.get("timeout"), cancelled)

    async def generate(self, n: int, *, timeout: float | None = None, **options: Any) -> AsyncQuestions:
        """`Graph.generate`: `async for question in await graph.generate(100)`.

        `timeout` bounds each question, by default with the graph's. `llm` may be a coroutine
        function, and so may its `program`; they run on this loop.
        """
        ended = Event()
        if "llm" in options:
            options["llm"] = _called_from_threads(options["llm"], ended)
        questions = await self._cancellable(lambda: self.graph.generate(n, **options), timeout, ended)
        return AsyncQuestions(self, questions, timeout, ended)

    async def _answered(self, method: Callable[..., A], arguments: Sequence[Any], options: dict[str, Any]) -> A:
        cancelled = options.pop("cancelled", None) or Event()
        if "llm_function" in options:
            from asyncio import get_running_loop

            loop = get_running_loop()
            options["llm_function"] = each(options["llm_function"], lambda one: on_loop(one, loop, cancelled))

        def run() -> A:
            answer = method(*arguments, **options)
            # Values are read in the worker, so that looking at them does not hold the event loop.
            try:
                _ = answer.values
            except DeadlineError:
                # The best matches that were found in time are read when they are looked at.
                if not isinstance(answer, Matches):
                    raise
            return answer

        return await self._cancellable(run, options.get("timeout"), cancelled)

    async def _cancellable(self, call: Callable[[], T], timeout: float | None, cancelled: Event | None = None) -> T:
        """What a call gives that ends soon after this task is cancelled."""
        from asyncio import CancelledError

        ended = cancelled or Event()

        def bounded() -> T:
            with within(self.graph.timeout if timeout is None else timeout, ended):
                return call()

        try:
            return await in_thread(bounded)
        except CancelledError:
            ended.set()
            raise


class AsyncChat:
    """`Chat` with questions to await, or to follow step by step (`asking`); one question at a time."""

    def __init__(self, graph: AsyncGraph, chat: Chat) -> None:
        self.graph, self.chat = graph, chat

    @property
    def turns(self) -> tuple[Asked, ...]:
        """The outcomes so far, the first question first."""
        return self.chat.turns

    async def ask(self, question: str, **options: Any) -> Asked:
        """`Chat.ask`; cancelling the task ends the question, which is then no turn."""
        cancelled = options.setdefault("cancelled", Event())
        timeout = options.get("timeout", self.chat.options.get("timeout"))
        return await self.graph._cancellable(lambda: self.chat.ask(question, **options), timeout, cancelled)

    def asking(self, question: str, **options: Any) -> AsyncIterator[AskStep | AskText | Asked]:
        """`Chat.asking` without waiting."""
        return followed(self.ask, (question,), options)

    def clear(self) -> None:
        """`Chat.clear`."""
        self.chat.clear()


class AsyncPreparedProgram:
    """`PreparedProgram` with awaitable calls."""

    def __init__(self, graph: AsyncGraph, prepared: PreparedProgram) -> None:
        self.graph, self.prepared = graph, prepared

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of their first mention."""
        return self.prepared.parameters

    async def __call__(self, /, **values: Any) -> Answer:
        """`PreparedProgram.__call__`."""
        return await self.run(values)

    async def run(
        self,
        values: Mapping[str, Any],
        *,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
    ) -> Answer:
        """`PreparedProgram.run`; cancelling the task ends the query."""
        options = {"timeout": timeout, "limit": limit, "cancelled": cancelled}
        return await self.graph._answered(self.prepared.run, (values,), options)


class AsyncQuestions(AsyncIterator["Question"]):
    """Questions as they are asked for, each made in a worker thread; `warnings` say why there are
    fewer than wanted. Cancelling the task that waits for one ends them all.
    """

    def __init__(self, graph: AsyncGraph, questions: Questions, timeout: float | None, ended: Event) -> None:
        self._graph, self._questions, self._timeout, self._ended = graph, questions, timeout, ended
        # Tasks that wait at the same time are served one after the other.
        self._turn = Lock()

    @property
    def warnings(self) -> list[str]:
        """Why there are fewer questions than wanted."""
        return self._questions.warnings

    async def __anext__(self) -> Question:
        def step() -> Question | None:
            with self._turn:
                return next(self._questions, None)

        question = await self._graph._cancellable(step, self._timeout, self._ended)
        if question is None:
            raise StopAsyncIteration
        return question


def _called_from_threads(llm: Any, ended: Event) -> Any:
    """A paraphrasing model whose functions may be coroutine functions, as one that a thread calls."""
    from asyncio import get_running_loop

    loop, reader = get_running_loop(), getattr(llm, "program", None)
    if llm is None or reader is None:
        return llm if llm is None else on_loop(llm, loop, ended)
    called, read = on_loop(llm, loop, ended), on_loop(reader, loop, ended)

    def model(text: str) -> Any:
        return called(text)

    model.program = read  # type: ignore[attr-defined]
    return model


def _opened(function: Callable[P, Graph]) -> Callable[P, Coroutine[Any, Any, AsyncGraph]]:
    @wraps(function)
    async def open_async(*arguments: P.args, **options: P.kwargs) -> AsyncGraph:
        return AsyncGraph(await in_thread(function, *arguments, **options))

    open_async.__name__ = open_async.__qualname__ = "open_async"
    return open_async


#: Opens a graph for asyncio; places and options are those of `condgraph.open`.
open_async = _opened(open_graph)
