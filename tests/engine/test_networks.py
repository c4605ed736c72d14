"""Evidence as a graph of NetworkX and of igraph."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from condgraph.engine.errors import MissingExtraError
from condgraph.engine.values import Quantity
from tests.support.agents import samples

PROGRAM = "Find(Nepal) Relate(country, backward) QueryAttr(height)"


def test_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    evidence = samples().kopl(PROGRAM).evidence
    graph = evidence.to_networkx()
    (nepal,) = [node for node, about in graph.nodes(data=True) if about["name"] == "Nepal"]
    joined = [one for one in evidence if one.predicate == "country"]
    assert graph.number_of_edges() == len(joined) == graph.in_degree(nepal) > 1
    assert {(start, end) for start, end in graph.edges()} == {(one.subject.id, nepal) for one in joined}
    heights = [about["values"]["height"][0] for _, about in graph.nodes(data=True) if "height" in about["values"]]
    assert heights
    assert all(isinstance(height, Quantity) for height in heights)
    edge = next(iter(graph.edges(data=True)))[2]
    assert edge["predicate"] == "country"
    assert edge["sources"][0].startswith("mountains, row ")
    assert networkx.number_weakly_connected_components(graph) == 1


def test_igraph_has_the_same() -> None:
    pytest.importorskip("igraph")
    pytest.importorskip("networkx")
    for program in (PROGRAM, "Find(India) Relate(head of government, forward) QueryName()", "Find(Musala) QueryAttr(height)"):
        evidence = samples().kopl(program).evidence
        other, graph = evidence.to_networkx(), evidence.to_igraph()
        assert graph.is_directed()
        assert graph.vs["id"] == list(other.nodes)
        assert graph.vs["name"] == [about["name"] for _, about in other.nodes(data=True)]
        ids = graph.vs["id"]
        edges = sorted((ids[edge.source], ids[edge.target], edge["predicate"], str(edge["qualifiers"])) for edge in graph.es)
        assert edges == sorted((a, b, about["predicate"], str(about["qualifiers"])) for a, b, about in other.edges(data=True))


@pytest.mark.parametrize("name", ["networkx", "igraph"])
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"condgraph\[{name}\]"):
        getattr(samples().kopl(PROGRAM).evidence, f"to_{name}")()


def test_a_package_that_is_broken_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "networkx.py").write_text("raise ImportError('libnetwork.so: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "networkx", raising=False)
    with pytest.raises(MissingExtraError, match=r"networkx cannot be imported: libnetwork\.so: cannot open"):
        samples().kopl(PROGRAM).evidence.to_networkx()
