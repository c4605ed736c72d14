"""The graph in LangChain, with the real package."""

from __future__ import annotations

import asyncio
import json

import pytest

from condgraph.engine.errors import DeadlineError, OptionError, UnknownNameError
from condgraph.graph import Graph
from tests.support.agents import CAPITAL, model, samples

pytest.importorskip("langchain_core")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tracers import BaseTracer, Run

from condgraph.agents.langchain import CondgraphRetriever, langchain_runnable, langchain_tools


@pytest.fixture(scope="module")
def graph() -> Graph:
    return samples()


def test_retriever(graph: Graph) -> None:
    retriever = CondgraphRetriever(graph=graph, k=3)
    first, *facts = retriever.invoke(CAPITAL)
    assert first.page_content == "Kathmandu"
    assert first.metadata["kind"] == "answer"
    assert facts[0].metadata["sources"] == ["countries, row 1"]
    assert facts[0].page_content.startswith("Nepal | capital | Kathmandu")
    json.dumps([one.metadata for one in (first, *facts)])
    assert len(retriever.invoke("FindAll() FilterNum(height, 8000 m, >) QueryName()")) == 4
    assert asyncio.run(retriever.ainvoke(CAPITAL)) == retriever.invoke(CAPITAL)
    assert retriever.batch([CAPITAL, "Find(Nepal) Count()"])[1][0].page_content == "1"
    chain = {"context": retriever, "question": RunnablePassthrough()}
    assert (RunnablePassthrough() | chain).invoke(CAPITAL)["context"][0] == first  # type: ignore[operator]
    pattern = retriever.invoke("(UNKNOWN city 1) <-[capitol]- (Nepall)")
    assert "Kathmandu" in pattern[0].page_content
    with pytest.raises(UnknownNameError):
        retriever.invoke("Find(Nepall) Count()")
    with pytest.raises(OptionError, match="needs a language model"):
        retriever.invoke("What is the capital of Nepal?")
    with pytest.raises(DeadlineError):
        CondgraphRetriever(graph=graph, timeout=1e-9).invoke(CAPITAL)


def test_retriever_in_words(graph: Graph) -> None:
    """Questions in words, with a model of LangChain's own kind as well."""
    chat = GenericFakeChatModel(messages=iter([AIMessage(CAPITAL)] * 9))
    for llm in (model, chat):
        first, *facts = CondgraphRetriever(graph=graph, llm=llm).invoke("What is the capital of Nepal?")
        assert first.page_content == "Kathmandu"
        assert first.metadata["program"] == CAPITAL
        assert facts
    nothing = CondgraphRetriever(graph=graph, llm=lambda messages: "I do not know.").invoke("Why?")
    assert len(nothing) == 1
    assert nothing[0].metadata["kind"] == "no answer"


def test_tools(graph: Graph) -> None:
    tools = {tool.name: tool for tool in langchain_tools(graph)}
    assert set(tools) == {"graph_schema", "graph_find", "graph_query", "graph_match", "graph_evidence"}
    assert "graph_ask" in {tool.name for tool in langchain_tools(graph, llm=model)}
    assert tools["graph_query"].args["parameters"]
    call = ToolCall(
        name="graph_query", args={"program": "Find($x) Relate(capital, forward) QueryName()", "parameters": {"x": "Nepal"}}, id="1"
    )
    message = tools["graph_query"].invoke({**call, "type": "tool_call"})
    assert isinstance(message, ToolMessage)
    assert json.loads(str(message.content))["texts"] == ["Kathmandu"]
    wrong = tools["graph_query"].invoke({"program": "Find(Nepall) Count()"})
    assert wrong["error"]["nearest"][0] == "Nepal"
    assert tools["graph_find"].invoke({"name": "Nepal"})["entities"]
    assert "capital" in asyncio.run(tools["graph_schema"].ainvoke({}))["text"]
    assert tools["graph_evidence"].invoke({"program": CAPITAL})["total"] == 1
    assert tools["graph_match"].invoke({"pattern": "(UNKNOWN city 1) <-[capital]- (Nepal)"})["subgraphs"]


def test_a_prepared_program_as_a_runnable(graph: Graph) -> None:
    capital = langchain_runnable(graph.prepare("Find($country) Relate(capital, forward) QueryName()"))
    assert capital.invoke({"country": "Nepal"})["texts"] == ["Kathmandu"]
    found = capital.batch([{"country": "Nepal"}, {"country": 'Nepal") Find("India'}], return_exceptions=True)
    assert isinstance(found[1], UnknownNameError)
    assert found[0]["facts"][0]["sources"] == ["countries, row 1"]
    assert (capital | (lambda record: record["texts"][0])).invoke({"country": "Nepal"}) == "Kathmandu"
    with pytest.raises(OptionError):
        capital.invoke({"land": "Nepal"})


class Traces(BaseTracer):
    """The roots of the traces that were collected."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def kinds(run: Run) -> list[str]:
    return [run.run_type, *(kind for child in run.child_runs for kind in kinds(child))]


def test_a_trace_is_one_tree(graph: Graph) -> None:
    """The chat model that the graph asks is below the retriever, and below the tool, in threads and in tasks."""
    chat = GenericFakeChatModel(messages=iter([AIMessage(CAPITAL)] * 9))
    words = "What is the capital of Nepal?"
    retriever = CondgraphRetriever(graph=graph, llm=chat)
    chain = RunnableLambda(lambda text: text) | retriever
    for ask in (
        lambda traces: chain.invoke(words, {"callbacks": [traces]}),
        lambda traces: asyncio.run(chain.ainvoke(words, {"callbacks": [traces]})),
    ):
        traces = Traces()
        assert ask(traces)[0].page_content == "Kathmandu"  # type: ignore[no-untyped-call]
        (root,) = traces.roots
        assert kinds(root) == ["chain", "chain", "retriever", "llm"]
    (tool,) = [tool for tool in langchain_tools(graph, llm=chat) if tool.name == "graph_ask"]
    traces = Traces()
    assert tool.invoke({"question": words}, {"callbacks": [traces]})["status"] == "answered"
    (root,) = traces.roots
    assert kinds(root) == ["tool", "llm"]
