"""The graph in neo4j-graphrag, with the real package and a real server (`.ci/frameworks`)."""

from __future__ import annotations

import pytest

from condgraph.engine.errors import OptionError, UnknownNameError
from tests.support.agents import CAPITAL, model, samples

pytest.importorskip("neo4j_graphrag")

import neo4j

from condgraph.agents.neo4j_graphrag import CondgraphRetriever


def test_external_retriever(neo4j_uri: str) -> None:
    graph = samples()
    ident = graph.kopl("Find(Nepal)").entities[0].id
    with neo4j.GraphDatabase.driver(neo4j_uri, auth=None) as driver:
        try:
            driver.execute_query(
                "CREATE (:`My \x60\x60Land`{`the id`: $id, gdp: 5}), (:`My \x60\x60Land`{`the id`: 'other'})", {"id": ident}
            )
            retriever = CondgraphRetriever(driver, graph, node_label_neo4j="My `Land", id_property_neo4j="the id")
            found = retriever.search(query_text=CAPITAL, top_k=2)
            assert found.metadata["program"] == CAPITAL
            first, *facts = found.items
            assert first.content == "Kathmandu"
            assert facts[0].content.startswith("Nepal | capital | Kathmandu")
            assert facts[0].metadata["nodes"] == [{"the id": ident, "gdp": 5}]
            assert facts[0].metadata["sources"] == ["countries, row 1"]
            given = retriever.search(query_text="Find($x) Relate(capital, forward) QueryName()", parameters={"x": "Nepal"})
            assert given.items[0].content == "Kathmandu"
            assert "query_text" in retriever.get_parameters().properties
            assert retriever.convert_to_tool("graph", "ask the graph") is not None
            for wrong in ({"query_vector": [0.1]}, {}, {"query_text": "Why?"}, {"query_text": CAPITAL, "topk": 3}):
                with pytest.raises(OptionError):
                    retriever.search(**wrong)
            with pytest.raises(UnknownNameError):
                retriever.search(query_text="Find(Nepall) Count()")
            words = CondgraphRetriever(driver, graph, llm=model).search(query_text="What is the capital of Nepal?")
            assert words.items[0].content == "Kathmandu"
            assert "nodes" not in words.items[1].metadata
        finally:
            driver.execute_query("MATCH (n:`My \x60\x60Land`) DELETE n")
