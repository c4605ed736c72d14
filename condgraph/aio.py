"""`Graph` for asyncio: every call runs in a worker thread, and cancelling the task ends the query.

The methods are derived from those of `Graph` and have the same signatures. asyncio is imported inside functions,
which only run in an event loop: importing it takes as long as the rest of the package.
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

#: One thread for each call in progress, so that calls that wait for a silent server do not delay later calls.
_WORKERS: Final = Workers("condgraph-async")


async def in_thread(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run a call in a thread of its own and return its result."""
    from asyncio import wrap_future

    # The deadline and cancellation of the task also apply in the thread.
    context = copy_context()

    def run() -> T:
        try:
            return context.run(call, *arguments, **options)
        except BaseException as error:
            # pyoxigraph's results may only be freed by their own thread, and the traceback may refer to some.
            clear_frames(error.__traceback__)
            raise

    return await wrap_future(_WORKERS.submit(run))


# -- awaitable forms of the methods of graphs --------------------------------------------------------


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Make a method of `Graph` awaitable. Cancelling the task ends the call soon after."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncGraph, /, *arguments: Any, **options: Any) -> T:
        cancelled = options.pop("cancelled", None)
        run = getattr(self.graph, name)
        return await self._cancellable(lambda: run(*arguments, **options), options.get("timeout"), cancelled)

    return call


def answered(method: Callable[Concatenate[Any, P], A]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, A]]:
    """Make a method of `Graph` that returns an answer awaitable. The answer's values are computed in the thread."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncGraph, /, *arguments: Any, **options: Any) -> A:
        return await self._run(getattr(self.graph, name), arguments, options)

    return call


def completed(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Make a method of `Graph` awaitable that is not interrupted: it runs to its end even if the task is cancelled."""
    name = method.__name__

    @wraps(method)
    async def call(self: AsyncGraph, /, *arguments: Any, **options: Any) -> T:
        return await in_thread(getattr(self.graph, name), *arguments, **options)

    return call


async def followed(
    ask: Callable[..., Coroutine[Any, Any, Asked]], arguments: Sequence[Any], options: Mapping[str, Any]
) -> AsyncIterator[AskStep | AskText | Asked]:
    """Yield the steps of a question as they finish, pieces of the model's text, and at last the outcome."""
    from asyncio import Queue, create_task, get_running_loop

    loop = get_running_loop()
    steps: Queue[AskStep | AskText | None] = Queue()

    def report(name: str, item: AskStep | AskText) -> None:
        if (callback := options.get(name)) is not None:
            callback(item)
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
    """Make `Graph.asking` an asynchronous iterator."""

    @wraps(method)
    def steps_of(self: AsyncGraph, /, *arguments: Any, **options: Any) -> AsyncIterator[AskStep | AskText | Asked]:
        return followed(self.ask, arguments, options)

    return steps_of


class AsyncGraph:
    """`Graph` with awaitable methods: `async with await condgraph.open_async(place) as g: ...`.

    Methods have the parameters and results of `Graph`. Cancelling the task ends a query; loads and other changes run
    to their end.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.graph.close()

    def close(self) -> None:
        """Release the snapshot, or close the connection to a server (`Graph.close`). Returns without waiting."""
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
        """The demonstrations of the graph (`Graph.demos`). They are in process and need no waiting."""
        return self.graph.demos

    async def snapshot(self) -> Self:
        """Return the current state of the graph in process, as an `AsyncGraph` (`Graph.snapshot`)."""
        return type(self)(await in_thread(self.graph.snapshot))

    def at(self, at: TimeLike | None = None, *, between: Sequence[TimeLike | None] | None = None, certain: bool = False) -> Self:
        """Return a view of the graph as of a time, as an `AsyncGraph` (`Graph.at`). Needs no waiting."""
        return type(self)(self.graph.at(at, between=between, certain=certain))

    async def as_of(self, as_of: AsOf) -> Self:
        """Return an earlier version of the graph, as an `AsyncGraph` (`Graph.as_of`)."""
        return type(self)(await in_thread(self.graph.as_of, as_of))

    def table(self, program: Any = "FindAll()") -> AsyncTableQuery:
        """Return a builder of a query with a table, whose `ask` and `explain` are awaitable (`Graph.table`)."""
        return AsyncTableQuery(program, Clause(), self.query, self.explain)

    def chat(self, llm: Any, **options: Any) -> AsyncChat:
        """Start a conversation whose `ask` is awaitable (`Graph.chat`)."""
        return AsyncChat(self, self.graph.chat(llm, **options))

    async def prepare(
        self, program: Any, *, language: str | None = None, engine: Engine | None = None, **options: Any
    ) -> AsyncPreparedProgram:
        """Parse a program with parameters; calls of the result are awaitable (`Graph.prepare`)."""
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
        """Run `answer.check` in a worker thread (`Answer.check`). `timeout` is in seconds."""
        return await self._cancellable(lambda: answer.check(evidence, full=full, graph=graph, timeout=timeout), timeout)

    async def cypher(self, text: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Run a Cypher query. Returns an answer (`Graph.cypher`), or on Neo4j a list with a dict for each row
        (`Neo4jGraph.cypher`).
        """
        cancelled = options.pop("cancelled", None)

        def run() -> Any:
            result = self.graph.cypher(text, parameters, **options)
            if isinstance(result, Answer):
                # Values are computed here, so that reading them later does not block the event loop.
                _ = result.values
            return result

        return await self._cancellable(run, options.get("timeout"), cancelled)

    async def generate(self, n: int, *, timeout: float | None = None, **options: Any) -> AsyncQuestions:
        """Generate questions: `async for question in await graph.generate(100)`.

        Parameters are those of `Graph.generate`. `timeout`, in seconds, bounds each question; by default it is the
        graph's. `llm` and its `program` may be coroutine functions, which run on this loop.
        """
        ended = Event()
        if "llm" in options:
            options["llm"] = _called_from_threads(options["llm"], ended)
        questions = await self._cancellable(lambda: self.graph.generate(n, **options), timeout, ended)
        return AsyncQuestions(self, questions, timeout, ended)

    async def _run(self, method: Callable[..., A], arguments: Sequence[Any], options: dict[str, Any]) -> A:
        cancelled = options.pop("cancelled", None) or Event()
        if "llm_function" in options:
            from asyncio import get_running_loop

            loop = get_running_loop()
            options["llm_function"] = each(options["llm_function"], lambda function: on_loop(function, loop, cancelled))

        def run() -> A:
            answer = method(*arguments, **options)
            # Values are computed here, so that reading them later does not block the event loop.
            try:
                _ = answer.values
            except DeadlineError:
                # The best matches up to the deadline remain readable.
                if not isinstance(answer, Matches):
                    raise
            return answer

        return await self._cancellable(run, options.get("timeout"), cancelled)

    async def _cancellable(self, call: Callable[[], T], timeout: float | None, cancelled: Event | None = None) -> T:
        """Run a call in a thread and return its result. The call ends soon after this task is cancelled."""
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
    """`Chat` with questions that are awaited (`ask`) or followed step by step (`asking`), one question at a time."""

    def __init__(self, graph: AsyncGraph, chat: Chat) -> None:
        self.graph, self.chat = graph, chat

    @property
    def turns(self) -> tuple[Asked, ...]:
        """The outcomes so far, in the order of the questions."""
        return self.chat.turns

    async def ask(self, question: str, **options: Any) -> Asked:
        """Ask a question and return its outcome (`Chat.ask`). Cancelling the task ends the question, which does not
        become a turn.
        """
        cancelled = options.setdefault("cancelled", Event())
        timeout = options.get("timeout", self.chat.options.get("timeout"))
        return await self.graph._cancellable(lambda: self.chat.ask(question, **options), timeout, cancelled)

    def asking(self, question: str, **options: Any) -> AsyncIterator[AskStep | AskText | Asked]:
        """Iterate over the steps of a question as they finish, and at last its outcome (`Chat.asking`)."""
        return followed(self.ask, (question,), options)

    def clear(self) -> None:
        """Forget the conversation so far (`Chat.clear`)."""
        self.chat.clear()


class AsyncPreparedProgram:
    """`PreparedProgram` with awaitable calls."""

    def __init__(self, graph: AsyncGraph, prepared: PreparedProgram) -> None:
        self.graph, self.prepared = graph, prepared

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of their first use."""
        return self.prepared.parameters

    async def __call__(self, /, **values: Any) -> Answer:
        """Run the program with parameter values given as keywords (`PreparedProgram.__call__`)."""
        return await self.run(values)

    async def run(
        self,
        values: Mapping[str, Any],
        *,
        timeout: float | None = None,
        limit: int | None = None,
        cancelled: Event | None = None,
    ) -> Answer:
        """Run the program with parameter values (`PreparedProgram.run`). Cancelling the task ends the query."""
        options = {"timeout": timeout, "limit": limit, "cancelled": cancelled}
        return await self.graph._run(self.prepared.run, (values,), options)


class AsyncQuestions(AsyncIterator["Question"]):
    """An asynchronous iterator of generated questions, each made in a worker thread when it is requested. Cancelling
    a task that waits for a question ends the iteration.
    """

    def __init__(self, graph: AsyncGraph, questions: Questions, timeout: float | None, ended: Event) -> None:
        self._graph, self._questions, self._timeout, self._ended = graph, questions, timeout, ended
        # Concurrent tasks are served one at a time.
        self._turn = Lock()

    @property
    def warnings(self) -> list[str]:
        """The reasons why there are fewer questions than requested."""
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
    """Return a paraphrasing model that threads can call, from one whose functions may be coroutine functions."""
    from asyncio import get_running_loop

    loop, reader = get_running_loop(), getattr(llm, "program", None)
    if llm is None or reader is None:
        return llm if llm is None else on_loop(llm, loop, ended)
    paraphrase, read_program = on_loop(llm, loop, ended), on_loop(reader, loop, ended)

    def model(text: str) -> Any:
        return paraphrase(text)

    model.program = read_program  # type: ignore[attr-defined]
    return model


def _opened(function: Callable[P, Graph]) -> Callable[P, Coroutine[Any, Any, AsyncGraph]]:
    @wraps(function)
    async def open_async(*arguments: P.args, **options: P.kwargs) -> AsyncGraph:
        return AsyncGraph(await in_thread(function, *arguments, **options))

    open_async.__name__ = open_async.__qualname__ = "open_async"
    return open_async


#: Opens a graph for asyncio, with the places and options of `condgraph.open`.
open_async = _opened(open_graph)
