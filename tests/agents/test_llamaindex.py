"""The graph in LlamaIndex, with the real package (`.ci/frameworks`)."""

from __future__ import annotations

import asyncio
import json

import pytest

from condgraph.engine.errors import OptionError, UnknownNameError
from condgraph.graph import Graph
from tests.support.agents import CAPITAL, model, samples

pytest.importorskip("llama_index.core")

from llama_index.core import Settings
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer

from condgraph.agents.llamaindex import CondgraphRetriever, llamaindex_tools


@pytest.fixture(scope="module")
def graph() -> Graph:
    return samples()


def test_retriever(graph: Graph) -> None:
    retriever = CondgraphRetriever(graph, k=3)
    first, *facts = retriever.retrieve(CAPITAL)
    assert first.text == "Kathmandu"
    assert first.score == 1
    assert facts[0].text.startswith("Nepal | capital | Kathmandu")
    assert facts[0].metadata["sources"] == ["countries, row 1"]
    json.dumps([one.metadata for one in (first, *facts)])
    assert [one.text for one in asyncio.run(retriever.aretrieve(CAPITAL))] == [first.text, *(one.text for one in facts)]
    with pytest.raises(UnknownNameError):
        retriever.retrieve("Find(Nepall) Count()")
    with pytest.raises(OptionError, match="needs a language model"):
        retriever.retrieve("What is the capital of Nepal?")
    assert CondgraphRetriever(graph, llm=model).retrieve("What is the capital of Nepal?")[0].text == "Kathmandu"


def test_in_a_query_engine(graph: Graph) -> None:
    Settings.llm = MockLLM()
    synthesizer = get_response_synthesizer(response_mode=ResponseMode.COMPACT)
    engine = RetrieverQueryEngine(CondgraphRetriever(graph), response_synthesizer=synthesizer)
    response = engine.query(CAPITAL)
    assert response.source_nodes[0].text == "Kathmandu"
    # The model is told what was found, and this one says what it was told.
    assert "Nepal | capital | Kathmandu" in str(response)


def test_tools(graph: Graph) -> None:
    tools = {tool.metadata.name: tool for tool in llamaindex_tools(graph, llm=model)}
    assert set(tools) == {"graph_schema", "graph_find", "graph_query", "graph_match", "graph_evidence", "graph_ask"}
    found = tools["graph_query"].call(program="Find($x) Relate(capital, forward) QueryName()", parameters={"x": "Nepal"})
    assert found.raw_output["texts"] == ["Kathmandu"]
    assert tools["graph_query"].call(program="Find(Nepall) Count()").raw_output["error"]["nearest"][0] == "Nepal"
    assert "parameters" in tools["graph_query"].metadata.get_parameters_dict()["properties"]
    assert asyncio.run(tools["graph_find"].acall(name="Nepal")).raw_output["entities"]
