"""Answers with ugly names and values in pandas, polars, Arrow, DuckDB and LangChain: each has every text
as the answer has it.
"""

from __future__ import annotations

import json

import pytest

import condgraph
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph

NAMES = (
    "it's", 'say "hi"', "back\\slash", "a\nb", "cr\rhere", "<img src=x onerror=x()>", "\u202eabc", "\u05e9\u05dc", "", "\u200b",
    "L" * 10_000, "Find(x)", "$x", "2019-01-01", "null", "NaN", "=1+1", "dup", "dup", " padded ", "a\u0301", "\u00e1",
)  # fmt: skip


@pytest.fixture(scope="module")
def graph() -> Graph:
    values = (Quantity(10**400, "kg"), Quantity(-0.5, "<u>"), Time.year(-43), "a\x00b", Ref("e0"))
    found = condgraph.open("memory:")
    for number, name in enumerate(NAMES):
        found.add([Entity(f"e{number}", name), Statement(f"e{number}", "l\nine", name or "nothing")], source="<src>\u202e")
        found.add([Statement(f"e{number}", "mixed", values[number % len(values)])])
        found.add([Statement(f"e{number}", "next", Ref(f"e{(number + 1) % len(NAMES)}"))])
    return found


def test_frames_have_every_text(graph: Graph) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    for key in ("l\nine", "mixed"):
        answer = graph.kopl([{"function": "FindAll", "inputs": []}, {"function": "QueryAttr", "inputs": [key]}])
        wanted = [one["text"] for one in answer.data()]
        assert answer.to_pandas()["text"].tolist() == wanted
        assert answer.to_polars()["text"].to_list() == wanted
        assert answer.to_arrow()["text"].to_pylist() == wanted
        assert [row[0] for row in answer.to_duckdb().project("text").fetchall()] == wanted
        assert "<img" not in answer._repr_html_()


def test_tools_and_runnables_take_every_name(graph: Graph) -> None:
    pytest.importorskip("langchain_core")
    from condgraph.agents.langchain import CondgraphRetriever, langchain_runnable, langchain_tools

    tools = {one.name: one for one in langchain_tools(graph)}
    following = langchain_runnable(graph.prepare("Find($x) Relate(next, forward) QueryName()"))
    retriever = CondgraphRetriever(graph=graph, k=3)
    for number, name in enumerate(NAMES):
        if not name:
            continue
        wanted = {NAMES[(at + 1) % len(NAMES)][:100] for at, one in enumerate(NAMES) if one == name}
        assert wanted <= {text[:100] for text in following.invoke({"x": name})["texts"]}, number
        found = tools["graph_query"].invoke({"program": "Find($x) QueryAttr($k)", "parameters": {"x": name, "k": "l\nine"}})
        assert [text[:100] for text in found["texts"]] == [name[:100]], found
        assert tools["graph_find"].invoke({"name": name})["entities"], number
        answer = retriever.invoke(f"Find({json.dumps(name)}) QueryAttr({json.dumps(chr(108) + chr(10) + 'ine')})")[0]
        assert answer.page_content[:100] == name[:100]
        json.dumps(answer.metadata)
