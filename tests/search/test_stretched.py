"""Edges that stand for paths of two, edges that are left out, values, and many edges on two nodes:
by the definitions, and by brute force.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError, PlanError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.languages.pattern.pattern import Pattern, PatternEdge, PatternNode
from condgraph.patterns.join.distinct import assigned, least_sum
from condgraph.patterns.match import match
from tests.search.reference import Node, Reference
from tests.search.test_reference import ENCODER, GRAPHS, idents_of, node_of
from tests.search.worlds import a_graph, a_pattern


def nearest_mappings(reference: Reference, pattern: Pattern, options: dict[str, Any]) -> list[tuple[int, tuple[Node, ...]]]:
    """Every mapping of the pattern's nodes with the least that any of its forms costs, in order."""
    fixed = {"induced": False, "k_nodes": None, "k_relations": None, "k_types": None, "distinct_from": {}}
    least: dict[tuple[Node, ...], int] = {}
    size = len(pattern.nodes)
    forms = [(pattern, 0)]
    for number, edge in enumerate(pattern.edges):
        for known_first in (True, False):
            ends = [(edge.head, size), (size, edge.tail)]
            named, free = ends if known_first else ends[::-1]
            edges = [*pattern.edges, PatternEdge(free[0], "UNKNOWN 99", free[1], False, loose=True)]
            edges[number] = replace(edge, head=named[0], tail=named[1])
            forms.append((Pattern((*pattern.nodes, PatternNode("UNKNOWN 99", False)), tuple(edges)), 250_000))
    for form, extra in forms:
        for total, nodes, *_ in reference.solutions(form, **fixed, **options):
            least[nodes[:size]] = min(least.get(nodes[:size], total + extra), total + extra)
    return sorted((total, nodes) for nodes, total in least.items())


def test_an_edge_may_stand_for_a_path_of_two() -> None:
    stretched = 0
    for seed in range(max(GRAPHS // 5, 30)):
        dice = random.Random(seed)
        items = a_graph(dice)
        graph = condgraph.open("memory:")
        graph.add(items)
        reference = Reference(items, idents_of(graph.current), ENCODER)
        if len(reference.nodes) > 8:
            continue
        pattern = Pattern.of(a_pattern(dice)[:2])
        options = {"injective": dice.random() < 0.2, "free": False, "directed": dice.choice((None, None, True, False))}
        k = dice.choice((1, 3, 8))
        found = match(graph.current, pattern, encoder=ENCODER, stretch=True, k=k, **options)
        wanted = nearest_mappings(reference, pattern, options)[:k]
        about = f"seed {seed}: {pattern} {options} {k}"
        assert [(one.total, tuple(node_of(n.value) for n in one.nodes)) for one in found.solutions] == wanted, about
        for one in found.solutions:
            parts = [part.term or 0 for part in (*one.nodes, *one.edges)] + [e.against + e.stretch for e in one.edges]
            assert sum(parts) == one.total, about
            stretched += any(edge.other is not None for edge in one.edges)
            assert one.count >= 1
    assert stretched > 10


def world() -> condgraph.Graph:
    graph = condgraph.open("memory:")
    graph.add(
        [
            *(Entity(name, name) for name in ("Ann", "Bob", "Cid", "Oslo", "Rome")),
            Statement("Ann", "parents", Ref("Bob")),
            Statement("Bob", "place_of_birth", Ref("Oslo")),
            Statement("Cid", "place_of_birth", Ref("Rome")),
            Statement("Ann", "height", Quantity(170, "centimetre")),
            Statement("Ann", "birth date", Time.day(1990, 5, 3)),
            Statement("Bob", "birth date", Time.year(1960)),
            Statement("Cid", "children count", Quantity(3)),
        ]
    )
    return graph


def test_a_dropped_hop_is_found_and_said() -> None:
    pattern = [("Ann", "born in", "UNKNOWN place 1")]
    found = world().match(pattern, k=1, stretch=True)
    (one,) = found.solutions
    assert (found.texts, one.edges[0].stretch) == (["Oslo"], 250_000)
    assert one.edges[0].triples == (("Bob", "place_of_birth", "Oslo"), ("Ann", "parents", "Bob"))
    assert {str(fact).split(" | ")[0] for fact in found.evidence} >= {"Ann", "Bob"} or len(found.evidence) == 2
    assert found.check()
    assert "0.250000" in found.explain()


def test_an_edge_is_left_out_only_where_nothing_is_near() -> None:
    graph = world()
    pattern = [("UNKNOWN 1", "place of birth", "Rome"), ("UNKNOWN 1", "qxzw", "Oslo")]
    assert graph.match(pattern, k=1).solutions[0].total > 1_000_000
    found = graph.match(pattern, k=1, leave_out=True)
    assert (found.texts, found.solutions[0].total) == (["Cid"], 1_000_000)
    assert any("leaves an edge out: (UNKNOWN 1) -[qxzw]-> (Oslo)" in one for one in found.warnings)
    near = graph.match([("UNKNOWN 1", "place of birth", "Rome")], leave_out=True)
    assert not any("leaves" in one for one in near.warnings)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ([("UNKNOWN 1", "born in", 1960)], ["Bob"]),
        ([("UNKNOWN 1", "birth date", 1990)], ["Ann"]),
        ([("UNKNOWN 1", "birth date", "> 1960")], ["Ann"]),
        ([("UNKNOWN 1", "birth date", ">= 1960")], ["Ann", "Bob"]),
        ([("UNKNOWN 1", "birth date", "< 1990-05-03")], ["Bob"]),
        ([("UNKNOWN 1", "height", 170)], ["Ann"]),
        ([("UNKNOWN 1", "height", "= 170 centimetre")], ["Ann"]),
        ([("UNKNOWN 1", "height", "> 170")], []),
        ([("UNKNOWN 1", "height", "> 169.5"), ("UNKNOWN 1", "height", "< 171")], ["Ann"]),
        ([("UNKNOWN 1", "birth date", "> 1980"), ("UNKNOWN 1", "parents", "UNKNOWN 2")], ["Ann"]),
        ('("UNKNOWN 1", "birth date", 1990)', ["Ann"]),
        ("(UNKNOWN 1) -[birth date]-> (= 1990-05-03)", ["Ann"]),
    ],
)
def test_values(pattern: Any, expected: list[str]) -> None:
    found = world().match(pattern, k=None, group_by="UNKNOWN 1")
    near = [text for text, one in zip(found.texts, found.solutions, strict=True) if one.total < 700_000]
    assert sorted(near) == expected
    assert found.check() or not expected


def test_a_value_says_what_it_is_and_which_way_it_runs() -> None:
    graph = world()
    found = graph.match([("UNKNOWN 1", "height", "> 100"), ("UNKNOWN 1", "parents", "Bob")], k=1)
    (one,) = found.solutions
    assert [node.value for node in one.nodes][-1] == Quantity(170, "centimetre")
    assert ("Ann", "height", "170 centimetre") in one.triples
    back = graph.match([(170, "height", "UNKNOWN 1")], k=1)
    assert (back.texts, back.solutions[0].total) == (["Ann"], 50_000)
    assert not graph.match([(170, "height", "UNKNOWN 1")], k=1, directed=True).solutions
    with pytest.raises(PlanError, match="both values"):
        graph.match([(170, "is", 171)])


@pytest.mark.parametrize("asked", [{"group_by": "> 100"}, {"distinct_from": {"> 100": "Ann"}}])
def test_options_about_nodes_take_no_values(asked: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="takes nodes, and '> 100' is a value"):
        world().match([("UNKNOWN 1", "height", "> 100")], **asked)


def test_a_path_goes_round_but_not_back() -> None:
    graph = condgraph.open("memory:")
    graph.add([Entity("a", "Ann"), Entity("b", "Bob"), Statement("a", "spouse", Ref("b")), Statement("b", "spouse", Ref("a"))])
    path = [("Ann", "spouse", "UNKNOWN 1"), ("UNKNOWN 1", "spouse", "UNKNOWN 2"), ("UNKNOWN 2", "spouse", "UNKNOWN 3")]
    best = graph.match(path, k=1, group_by="3").solutions[0]
    assert (best.total, best["3"].name) == (0, "Bob")  # type: ignore[union-attr]
    assert [edge.triple for edge in best.edges] == [("Ann", "spouse", "Bob"), ("Bob", "spouse", "Ann"), ("Ann", "spouse", "Bob")]
    # A step written the other way round goes round as well.
    turned = graph.match([path[0], ("UNKNOWN 2", "spouse", "UNKNOWN 1"), path[2]], k=1).solutions[0]
    assert turned.total == 50_000
    # Back over the statement that it came by is a free walk, and so is one statement for two parts.
    graph = condgraph.open("memory:")
    graph.add([Entity("a", "Ann"), Entity("b", "Bob"), Statement("a", "spouse", Ref("b")), Statement("b", "is", Ref("b"))])
    back = [("Ann", "spouse", "UNKNOWN 1"), ("UNKNOWN 2", "spouse", "UNKNOWN 1")]
    parts = [("UNKNOWN 1", "spouse", "UNKNOWN 2"), ("UNKNOWN 3", "spouse", "UNKNOWN 4")]
    for pattern in (back, parts):
        assert graph.match(pattern, k=1).solutions[0].total > 0
        assert graph.match(pattern, k=1, free=True).solutions[0].total == 0
    # A statement from a node to itself is each step of a path.
    loop = [("Bob", "is", "UNKNOWN 1"), ("UNKNOWN 1", "is", "UNKNOWN 2"), ("UNKNOWN 2", "is", "UNKNOWN 3")]
    assert (graph.match(loop, k=1).solutions[0].total, graph.match(loop, k=1, group_by="3").texts) == (0, ["Bob"])


def test_edges_that_meet_use_distinct_statements() -> None:
    graph = condgraph.open("memory:")
    graph.add([Entity("a", "a"), Entity("b", "b"), Statement("a", "likes", Ref("b"))])
    path = [("UNKNOWN 1", "likes", "UNKNOWN 2"), ("UNKNOWN 3", "likes", "UNKNOWN 2")]
    assert not graph.match(path).solutions
    assert graph.match(path, free=True).solutions[0].total == 0
    graph.add([Statement("a", "likes", Ref("b"), (("since", "x"),))])
    (one, *_) = graph.match(path).solutions
    assert one["1"] == one["3"]
    assert len({repr(edge.statement) for edge in one.edges}) == 2
    with pytest.raises(OptionError, match="give one of them"):
        graph.match(path, free=True, injective=True)


def test_many_edges_on_two_nodes() -> None:
    """A star of nine unknowns over nine parallel statements: one each."""
    graph = condgraph.open("memory:")
    graph.add([Entity("a", "a"), Entity("b", "b"), *(Statement("a", f"r{i}", Ref("b")) for i in range(9))])
    star = [("a", f"r{i}", f"UNKNOWN {i}") for i in range(9)]
    (one, *_) = graph.match(star, k=1, directed=True).solutions
    assert one.total == 0
    assert sorted(edge.statement.predicate for edge in one.edges) == [f"r{i}" for i in range(9)]
    assert not graph.match([*star, ("a", "r0", "UNKNOWN 10")], k=1, timeout=30).solutions


def test_assignments_are_the_least() -> None:
    dice = random.Random(1)
    for _ in range(200):
        edges = dice.randint(1, 4)
        table = [[dice.randint(0, 9) for _ in range(edges)] for _ in range(dice.randint(edges, 6))]
        best = min(sum(table[row][edge] for edge, row in enumerate(rows)) for rows in permutations(range(len(table)), edges))
        places = assigned(table)
        assert len(set(places)) == edges
        assert sum(table[row][edge] for edge, row in enumerate(places)) == best == least_sum(table, 1 << 40)


def test_an_empty_answer_says_what_emptied_it() -> None:
    graph = condgraph.open("memory:")
    graph.add([Statement("a", "likes", Ref("b")), Statement("b", "likes", Ref("c"))])
    two = [("UNKNOWN 1", "likes", "UNKNOWN 2"), ("UNKNOWN 3", "likes", "UNKNOWN 2")]
    found = graph.match(two, injective=True, directed=True).warnings
    assert found[1] == "without directed=True there is one: 0.050000  a | likes | b; b | likes | c"
    cycle = graph.match([("UNKNOWN 1", "likes", "UNKNOWN 2"), ("UNKNOWN 2", "likes", "UNKNOWN 1")]).warnings
    assert cycle[1] == "without (UNKNOWN 1) -[likes]-> (UNKNOWN 2) there is one: 0.000000  a | likes | b"
    loop = graph.match([("UNKNOWN 1", "likes", "UNKNOWN 1")]).warnings
    assert loop[1] == "loosening any one option, or leaving out any one edge, finds none either"


@pytest.mark.parametrize("name", ["lexcal", "opnai:small", "./no/such/folder", "hybrd:lexical", "two words"])
def test_a_misspelled_encoder_fails_at_once(name: str) -> None:
    with pytest.raises(OptionError, match=r"is not an? (encoder|folder)"):
        world().match([("Ann", "parents", "UNKNOWN 1")], encoder=name)


def test_everyday_words_and_spelling_and_a_hybrid_encoder() -> None:
    graph = world()
    for asked in ("parents", "dad", "Parents", "has the parent"):
        assert graph.match([("Ann", asked, "UNKNOWN 1")], k=1).texts == ["Bob"]
    spelled = graph.match([("Bob", "placeOfBirth", "UNKNOWN 1")], k=1)
    assert spelled.solutions[0].total == 0
    words = graph.match([("Bob", "was born in", "UNKNOWN 1")], k=1)
    assert words.solutions[0].total == 60_000
    assert "compared by spelling" in words.explain()
    graph.index("hybrid:lexical")
    again = graph.match([("Bob", "was born in", "UNKNOWN 1")], k=1)
    assert (again.encoder, again.solutions[0].total) == ("hybrid:lexical-1+lexical-1", 60_000)
