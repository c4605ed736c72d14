"""The same API for asyncio: every call runs in a worker thread, and cancelling the task ends the
query.

What changes a graph, and the threads, are in `aio_state`. asyncio itself is imported in the calls,
which a loop of it runs: it takes as long as the rest of the package.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from threading import Event, Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from condgraph.aio_state import StateAsync, in_thread
from condgraph.ask.methods import AskAsync
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import within
from condgraph.engine.check import Checked
from condgraph.engine.errors import DeadlineError, OptionError
from condgraph.engine.evidence import Evidence
from condgraph.engine.external import each, on_loop
from condgraph.graph import Graph
from condgraph.opening import open as open_graph
from condgraph.patterns.matches import Matches
from condgraph.prepared import PreparedProgram
from condgraph.reports import LoadReport, Status, UnloadReport
from condgraph.vectors.stored import IndexReport

if TYPE_CHECKING:
    from condgraph.chains.reason import Reasoned
    from condgraph.chains.verify import Verdict as ChainVerdict
    from condgraph.claims.claim import Verdict
    from condgraph.grammars.grammar import Grammar
    from condgraph.links.store import StoredRows
    from condgraph.links.train import Training
    from condgraph.logic.answers import LogicAnswers
    from condgraph.logic.evaluation.run import Evaluation
    from condgraph.logic.evaluation.sampler import Sampled
    from condgraph.overview.schema import GraphSchema
    from condgraph.questions.generate import Questions
    from condgraph.questions.record import Question
    from condgraph.sparql.text.table import Table

T = TypeVar("T")


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

    async def run(self, values: Mapping[str, Any], **options: Any) -> Answer:
        """`PreparedProgram.run`; cancelling the task ends the query."""
        return await self.graph._ask(self.prepared.run, values, options)


class AsyncGraph(AskAsync, StateAsync):
    """`Graph` with awaitable methods. Use `async with await condgraph.open_async(place) as g: ...`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    async def __aenter__(self) -> AsyncGraph:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.graph.close()

    async def load(self, source: Any, **options: Any) -> LoadReport:
        """`Graph.load`. A load that has begun is not cancelled half way: it ends, and the graph has
        it.
        """
        return await in_thread(self.graph.load, source, **options)

    async def unload(self, *sources: str, **options: Any) -> UnloadReport:
        """`Graph.unload`. One that has begun is not cancelled half way."""
        return await in_thread(self.graph.unload, *sources, **options)

    async def kopl(self, program: Any, **options: Any) -> Answer:
        """`Graph.kopl`."""
        return await self._ask(self.graph.kopl, program, options)

    async def query(self, program: Any, **options: Any) -> Answer:
        """`Graph.query`."""
        return await self._ask(self.graph.query, program, options)

    async def prepare(self, program: Any, **options: Any) -> AsyncPreparedProgram:
        """`Graph.prepare`; the program that is prepared is awaited when it is called."""
        return AsyncPreparedProgram(self, await in_thread(self.graph.prepare, program, **options))

    async def match(self, pattern: Any, **options: Any) -> Matches:
        """`Graph.match`."""
        answer = await self._ask(self.graph.match, pattern, options)
        assert isinstance(answer, Matches)
        return answer

    async def train_links(self, path: Any = None, **options: Any) -> Training:
        """`Graph.train_links`; cancelling the task ends it."""
        cancelled = options.pop("cancelled", None) or Event()

        def run() -> Training:
            return self.graph.train_links(path, cancelled=cancelled, **options)

        return await self._cancellable(run, options.get("timeout"), cancelled)

    async def evaluate_logic(self, cases: Any, model: Any = None, **options: Any) -> Evaluation:
        """`Graph.evaluate_logic`; cancelling the task ends it."""
        cancelled = options.pop("cancelled", None) or Event()

        def run() -> Evaluation:
            return self.graph.evaluate_logic(cases, model, cancelled=cancelled, **options)

        return await self._cancellable(run, options.get("timeout"), cancelled)

    async def sample_queries(self, held: Any, n: int = 50, **options: Any) -> Sampled:
        """`Graph.sample_queries`."""
        return await self._cancellable(lambda: self.graph.sample_queries(held, n, **options), options.get("timeout"))

    async def keep_rows(self, model: Any, folder: Any, **options: Any) -> StoredRows:
        """`Graph.keep_rows`; cancelling the task ends it."""
        cancelled = options.pop("cancelled", None) or Event()

        def run() -> StoredRows:
            return self.graph.keep_rows(model, folder, cancelled=cancelled, **options)

        return await self._cancellable(run, options.get("timeout"), cancelled)

    async def verify(self, claim: Any, llm: Any = None, **options: Any) -> Verdict:
        """`Graph.verify`."""
        cancelled = options.pop("cancelled", None)
        return await self._cancellable(lambda: self.graph.verify(claim, llm, **options), options.get("timeout"), cancelled)

    async def logic(self, query: Any, *branches: Any, **options: Any) -> LogicAnswers:
        """`Graph.logic`."""
        cancelled = options.pop("cancelled", None)
        return await self._cancellable(lambda: self.graph.logic(query, *branches, **options), options.get("timeout"), cancelled)

    async def grammar(self, language: Any = "kopl", *, timeout: float | None = None, **options: Any) -> Grammar:
        """`Graph.grammar`."""
        return await self._cancellable(lambda: self.graph.grammar(language, timeout=timeout, **options), timeout)

    async def _ask(self, method: Any, program: Any, options: dict[str, Any]) -> Answer:
        cancelled = options.pop("cancelled", None) or Event()
        if "llm_function" in options:
            from asyncio import get_running_loop

            loop = get_running_loop()
            options["llm_function"] = each(options["llm_function"], lambda one: on_loop(one, loop, cancelled))

        def ask() -> Answer:
            answer: Answer = method(program, **options)
            # Values are read in the worker, so that looking at them does not hold the event loop.
            try:
                _ = answer.values
            except DeadlineError:
                # The best matches that were found in time are read when they are looked at.
                if not isinstance(answer, Matches):
                    raise
            return answer

        return await self._cancellable(ask, options.get("timeout"), cancelled)

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

    async def check(self, answer: Answer, evidence: Sequence[Evidence] | None = None, **options: Any) -> Checked:
        """`Answer.check`, in a worker thread; `evidence` and options are those of it."""
        return await self._cancellable(lambda: answer.check(evidence, **options), options.get("timeout"))

    async def sparql(self, text: str, **options: Any) -> Table:
        """`Graph.sparql`."""
        cancelled = options.pop("cancelled", None)
        return await self._cancellable(lambda: self.graph.sparql(text, **options), options.get("timeout"), cancelled)

    async def cypher(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> list[dict[str, Any]]:
        """`Neo4jGraph.cypher`; raises `OptionError` for a graph that is elsewhere."""
        ask = getattr(self.graph, "cypher", None)
        if ask is None:
            raise OptionError("only a graph on Neo4j is asked in Cypher", hint="KoPL, LLM queries and SPARQL ask any graph")
        return await self._cancellable(lambda: ask(text, parameters, **options), options.get("timeout"))

    async def generate(self, n: int, **options: Any) -> AsyncQuestions:
        """`Graph.generate`: `async for question in await graph.generate(100)`.

        `timeout` bounds each question, by default with the graph's. `llm` may be a coroutine
        function, and so may its `program`; they run on this loop.
        """
        timeout, ended = options.pop("timeout", None), Event()
        if "llm" in options:
            options["llm"] = _awaited(options["llm"], ended)
        found = await self._cancellable(lambda: self.graph.generate(n, **options), timeout, ended)
        return AsyncQuestions(self, found, timeout, ended)

    async def verify_chain(self, text: str, entities: Any, **options: Any) -> ChainVerdict:
        """`Graph.verify_chain`."""
        timeout, ended = options.pop("timeout", None), Event()
        return await self._cancellable(lambda: self.graph.verify_chain(text, entities, cancelled=ended, **options), timeout, ended)

    async def reason(self, question: str, llm: Any, **options: Any) -> Reasoned:
        """`Graph.reason`."""
        timeout, ended = options.pop("timeout", None), Event()
        return await self._cancellable(lambda: self.graph.reason(question, llm, cancelled=ended, **options), timeout, ended)

    async def explain(self, program: Any, **options: Any) -> str:
        """`Graph.explain`."""
        return await self._cancellable(lambda: self.graph.explain(program, **options), options.get("timeout"))

    async def status(self, *, verify: bool = False, timeout: float | None = None) -> Status:
        """`Graph.status`."""
        return await self._cancellable(lambda: self.graph.status(verify=verify, timeout=timeout), timeout)

    async def schema(self, *, timeout: float | None = None, **options: Any) -> GraphSchema:
        """`Graph.schema`."""
        return await self._cancellable(lambda: self.graph.schema(timeout=timeout, **options), timeout)

    async def index(self, encoder: Any = "lexical", **options: Any) -> IndexReport:
        """`Graph.index`."""
        return await in_thread(self.graph.index, encoder, **options)

    async def export(self, path: Any, **options: Any) -> int:
        """`Graph.export`."""
        return await in_thread(self.graph.export, path, **options)

    def close(self) -> None:
        """`Graph.close`."""
        self.graph.close()


class AsyncQuestions(AsyncIterator["Question"]):
    """Questions as they are asked for, each made in a worker thread; `warnings` say why there are
    fewer than wanted. Cancelling the task that waits for one ends them all.
    """

    def __init__(self, graph: AsyncGraph, questions: Questions, timeout: float | None, ended: Event) -> None:
        self._graph, self._questions, self._timeout, self._ended = graph, questions, timeout, ended
        # Those who wait side by side are served one after the other.
        self._one = Lock()

    @property
    def warnings(self) -> list[str]:
        """Why there are fewer questions than wanted."""
        return self._questions.warnings

    async def __anext__(self) -> Question:
        def step() -> Question | None:
            with self._one:
                return next(self._questions, None)

        found = await self._graph._cancellable(step, self._timeout, self._ended)
        if found is None:
            raise StopAsyncIteration
        return found


def _awaited(llm: Any, ended: Event) -> Any:
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


async def open_async(place: Any = "memory:", *, graph: str = "default", read_only: bool = False, **options: Any) -> AsyncGraph:
    """Open a graph for asyncio; places and options are those of `condgraph.open`."""
    return AsyncGraph(await in_thread(open_graph, place, graph=graph, read_only=read_only, **options))
