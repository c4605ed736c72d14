"""The rules of verification, on a small graph where each of them can be seen."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import condgraph
from condgraph.claims.claim import Claim
from condgraph.claims.verify import likeness
from condgraph.engine.errors import CondgraphError, DeadlineError, OptionError, ParseError, PlanError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.graph import Graph

SINGLE = ["born", "height", "capital", "head"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    found = condgraph.open()
    found.add(items())
    return found


def items() -> list[Any]:
    return [
        Entity("city", "city", EntityKind.CONCEPT),
        Entity("a", "Avalon"),
        Entity("b", "Brigand"),
        Entity("p", "Perth"),
        Entity("p2", "Perth"),
        Entity("q", "Quay"),
        Entity("ann", "Ann"),
        Entity("bo", "Bo"),
        Entity("c", "Cape"),
        Member("p", "city"),
        Statement("a", "capital", Ref("p")),
        Statement("b", "capital", Ref("q")),
        Statement("c", "capital", Ref("p2")),
        Statement("p", "near", Ref("q")),
        Statement("q", "part of", Ref("c")),
        Statement("a", "head", Ref("ann"), (("start time", Time.year(1990)),)),
        Statement("ann", "born", Time.day(1960, 5, 1)),
        Statement("bo", "born", Time.year(1970)),
        Statement("ann", "height", Quantity(1.704, "metre")),
        Statement("ann", "motto", "Do it"),
        Statement("ann", "lives in", Ref("p")),
        Statement("ann", "lives in", Ref("q")),
        Statement("bo", "height", UNKNOWN),
    ]


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ([("Avalon", "capital", "Perth")], "supported"),
        ([("Brigand", "NOT capital", "Quay")], "refuted"),
        # One Perth is the capital, and nothing says that the other one is not meant.
        ([("Avalon", "NOT capital", "Perth")], "not enough facts"),
        # One value, another one: refuted; but not where a statement joins the two values.
        ([("Avalon", "capital", "Bo")], "refuted"),
        ([("Avalon", "NOT capital", "Bo")], "supported"),
        ([("Avalon", "capital", "Quay")], "not enough facts"),
        ([("Avalon", "NOT capital", "Quay")], "not enough facts"),
        # Part of what stands there.
        ([("Brigand", "capital", "Cape")], "not enough facts"),
        # Another entity of the same name is no other value.
        ([("Cape", "capital", "Perth")], "supported"),
        # Several values: another one says nothing.
        ([("Ann", "lives in", "Cape")], "not enough facts"),
        # A statement with a time: at another time it may have been otherwise.
        ([("Avalon", "head", "Bo")], "not enough facts"),
        # What is not in the graph decides nothing.
        ([("Avalon", "capital", "Nowhere")], "not enough facts"),
        ([("Nowhere", "capital", "Perth")], "not enough facts"),
        ([("Avalon", "metropolis", "Bo")], "not enough facts"),
        # Directions count.
        ([("Perth", "capital", "Avalon")], "not enough facts"),
        # Values.
        ([("Ann", "born", "1960")], "supported"),
        ([("Ann", "born", "1961")], "refuted"),
        ([("Bo", "born", "1970-03-02")], "not enough facts"),
        ([("Ann", "height", "1.7 metre")], "supported"),
        ([("Ann", "height", "1.8 metre")], "refuted"),
        ([("Ann", "height", "tall")], "not enough facts"),
        ([("Bo", "height", "1.8 metre")], "not enough facts"),
        ([("Ann", "motto", "do  it")], "supported"),
        ([("Ann", "motto", "Leave it")], "not enough facts"),
        # Existence.
        ([("Ann", "lives in", "UNKNOWN place 1")], "supported"),
        ([("Ann", "NOT lives in", "UNKNOWN place 1")], "refuted"),
        ([("Bo", "lives in", "UNKNOWN place 1")], "not enough facts"),
        ([("Bo", "NOT lives in", "UNKNOWN place 1")], "not enough facts"),
        ([("UNKNOWN 1", "lives in", "Perth")], "supported"),
        ([("UNKNOWN 1", "motto", "Do it")], "supported"),
        # Memberships.
        ([("Perth", "instance of", "city"), ("Ann", "lives in", "Perth")], "supported"),
        ([("Quay", "instance of", "city")], "not enough facts"),
        ([("Perth", "instance of", "UNKNOWN 1")], "supported"),
        ([("UNKNOWN 1", "instance of", "city"), ("Ann", "lives in", "UNKNOWN 1")], "supported"),
        # Any relation.
        ([("Perth", "UNKNOWN relation", "Quay")], "supported"),
        ([("Quay", "UNKNOWN relation", "Perth")], "not enough facts"),
        # Several hops: refuted only where the middle can be nothing else.
        ([("Brigand", "capital", "UNKNOWN 1"), ("UNKNOWN 1", "part of", "Cape")], "supported"),
        ([("Avalon", "capital", "UNKNOWN 1"), ("UNKNOWN 1", "near", "Quay")], "supported"),
        ([("Avalon", "capital", "UNKNOWN 1"), ("UNKNOWN 1", "NOT near", "Quay")], "refuted"),
        ([("Ann", "lives in", "UNKNOWN 1"), ("UNKNOWN 1", "NOT near", "Quay")], "not enough facts"),
        # Conjunctions: one refuted part refutes all of it.
        ([("Ann", "lives in", "Perth"), ("Ann", "born", "1999")], "refuted"),
        ([("Ann", "lives in", "Cape"), ("Ann", "born", "1960")], "not enough facts"),
    ],
)
def test_open_world(graph: Graph, claim: list[tuple[str, str, str]], status: str) -> None:
    found = graph.verify(claim, single=SINGLE)
    assert found.status == status, found.text
    assert found.text.startswith({"supported": "Supported.", "refuted": "Refuted."}.get(status, "Not enough facts."))
    if status != "not enough facts":
        assert found.evidence
        assert all(f"[{number}]" in found.text for number in range(1, len(found.evidence) + 1))


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ([("Ann", "lives in", "Cape")], "refuted"),
        ([("Ann", "NOT lives in", "Cape")], "supported"),
        ([("Bo", "lives in", "UNKNOWN place 1")], "refuted"),
        ([("Bo", "NOT lives in", "UNKNOWN place 1")], "supported"),
        ([("Ann", "lives in", "UNKNOWN 1"), ("UNKNOWN 1", "near", "Cape")], "not enough facts"),
        ([("Ann", "lives in", "UNKNOWN 1"), ("UNKNOWN 1", "born", "1960")], "not enough facts"),
        # All of the places are known, and near neither is anything denied of both.
        ([("Ann", "lives in", "UNKNOWN 1"), ("UNKNOWN 1", "capital", "Bo")], "not enough facts"),
        ([("Avalon", "capital", "Perth")], "supported"),
        ([("Ann", "lives in", "Nowhere")], "not enough facts"),
    ],
)
def test_closed_predicate(graph: Graph, claim: list[tuple[str, str, str]], status: str) -> None:
    assert graph.verify(claim, closed=["lives in"]).status == status


def test_closed_world(graph: Graph) -> None:
    hops = [("Ann", "lives in", "UNKNOWN 1"), ("UNKNOWN 1", "near", "Cape")]
    assert graph.verify(hops, closed=True).status == "refuted"
    assert graph.verify([("Nowhere", "near", "Cape")], closed=True).status == "not enough facts"
    assert "taken to have all" in graph.verify(hops, closed=True).text


def test_single_by_counting() -> None:
    graph = condgraph.open()
    graph.add(
        [Statement(f"s{i}", "code", Ref(f"c{i}")) for i in range(30)] + [Statement(f"s{i}", "tag", Ref("t")) for i in range(29)]
    )
    assert graph.verify([("s1", "code", "c2")]).status == "refuted"
    assert graph.verify([("s1", "tag", "c2")]).status == "not enough facts"  # too few to tell
    assert graph.verify([("s1", "code", "c2")], single={"code": False}).status == "refuted"  # c2 has one subject
    graph.add([Statement("s1", "code", Ref("c0")), Statement("s2", "code", Ref("c7"))])
    assert graph.verify([("s3", "code", "c2")]).status == "not enough facts"


def test_notes(graph: Graph) -> None:
    found = graph.verify([("avalon", "Capital", "Prth")])
    notes = " ".join(found.notes)
    assert "'Capital' is taken for the predicate 'capital'" in notes
    assert "'avalon' is taken for 'Avalon'" in notes
    assert "the graph has nothing called 'Prth' (nearest: 'Perth')" in notes
    assert "2 entities are called 'Perth'" in " ".join(graph.verify([("Avalon", "capital", "Perth")]).notes)
    assert "the other way round" in graph.verify([("Quay", "near", "Perth")]).text
    assert "taken" not in graph.verify([("Avalon", "capital", "Perth")]).text
    similar = graph.verify([("Ann", "lived at", "Perth")], nearest=2).nearest
    assert ("Ann", "lives in", "Perth") in similar[0].triples


def test_forms(graph: Graph) -> None:
    forms: list[Any] = [
        "(Brigand) -[NOT capital]-> (Quay)",
        '[["Brigand", "NOT capital", "Quay"]]',
        {"triples": [{"head": "Brigand", "relation": "capital", "tail": "Quay", "negated": True}]},
        [{"head": "Brigand", "relation": "capital", "tail": "Quay", "negated": True}],
        Claim.of("(Brigand) -[NOT capital]-> (Quay)"),
    ]
    assert {graph.verify(form).status for form in forms} == {"refuted"}
    assert Claim.of(Claim.of(forms[0]).data()) == Claim.of(forms[0])
    wrong: list[Any] = ["", "Avalon", [], [("a", "b")], [{"head": "a", "relation": "b", "tail": "c", "negated": "no"}]]
    for one in wrong:
        with pytest.raises((ParseError, PlanError)):
            graph.verify(one)
    with pytest.raises(PlanError, match="at most 16"):
        graph.verify([(f"a{i}", "r", "b") for i in range(17)])
    with pytest.raises(OptionError, match="no predicate 'lives at'"):
        graph.verify(forms[0], closed=["lives at"])
    with pytest.raises(OptionError, match="several names"):
        graph.verify(forms[0], single="capital")
    with pytest.raises(DeadlineError):
        graph.verify(forms[0], timeout=1e-9)


def test_long_names() -> None:
    graph = condgraph.open()
    graph.add([Statement("x" * 5_000, "near", Ref("y"))])
    assert graph.verify([("x" * 5_000, "near", "y")]).status == "supported"


def test_hostile_text(graph: Graph) -> None:
    for text in ("(" * 1_000_000, '"' * 1_000_000, "NOT " * 250_000, "(a)-[" * 200_000, "\\" * 1_000_000):
        with pytest.raises(CondgraphError):
            graph.verify(text, timeout=20)
    assert graph.verify([("x" * 1_000_000, "NOT y" * 1000, "z")]).status == "not enough facts"


def test_data(graph: Graph) -> None:
    found = graph.verify([("Ann", "born", "1961")], single=SINGLE)
    data = found.data()
    assert data["reasons"] == [{"triple": "Ann | born | 1961", "rule": "one value", "statements": [1]}]
    assert data["evidence"][0]["object"] == "1960-05-01"
    assert data["evidence"][0]["sources"] == [{"source": "api", "row": None}]
    assert "Ann" in found._repr_html_()
    assert repr(found) == "<Verdict: refuted: Ann | born | 1961>"


def test_likeness() -> None:
    assert likeness("8849", Quantity(8848.86)) == "same"
    assert likeness("8848.9", Quantity(8848.86)) == "same"
    assert likeness("8848.8", Quantity(8848.86)) == "other"
    assert likeness("8800", Quantity(8848.86)) == "other"
    assert likeness("5 bananas", Quantity(3, "metre")) == "open"
    assert likeness("1960", Time.parse("1959/1961")) == "open"
    assert likeness("44 BC", Time.year(-43)) in ("same", "open")
    assert likeness("anything", UNKNOWN) == "open"


def test_async(graph: Graph) -> None:
    async def ask() -> str:
        async with condgraph.AsyncGraph(graph.snapshot()) as there:
            return (await there.verify([("Avalon", "capital", "Perth")])).status

    assert asyncio.run(ask()) == "supported"
