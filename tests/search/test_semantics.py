"""What a pattern means, sentence by sentence, where no other test says it: on graphs small enough
to see the answer.
"""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph import Entity, Ref, Statement
from condgraph.patterns.options import FAST_NODES, FAST_RELATIONS, FAST_TYPES
from condgraph.vectors.encoders import LexicalEncoder
from tests.search.everyday import fit
from tests.support.lanes import by_lane


def graph_of(*items: Any) -> condgraph.Graph:
    graph = condgraph.open()
    graph.add(list(items))
    return graph


def triples(*some: tuple[str, str, str]) -> list[Statement]:
    return [Statement(head, relation, Ref(tail)) for head, relation, tail in some]


def distance(one: str, two: str) -> int:
    u, v = LexicalEncoder(4096).encode([one, two]).astype(np.float64)
    return int(np.rint(1e6 * np.sqrt(np.square(u - v).sum())))


def test_a_term_is_the_distance_of_two_texts_in_millionths() -> None:
    graph = graph_of(*triples(("Rome", "grown near", "Italy")))
    (one,) = graph.match([("Roma", "gro nea", "UNKNOWN 1")], k=1).solutions
    terms = [distance("Roma", "Rome"), distance("gro nea", "grown near")]
    assert [one.nodes[0].term, one.edges[0].term] == terms
    assert one.total == sum(terms)
    assert one.distance == sum(terms) / 1e6


def test_a_loop_needs_a_loop() -> None:
    graph = graph_of(*triples(("a", "likes", "b"), ("b", "likes", "a"), ("c", "likes", "c")))
    assert graph.match([("UNKNOWN 1", "likes", "UNKNOWN 1")], k=9).texts == ["c"]
    empty = graph_of(*triples(("a", "likes", "b"))).match([("UNKNOWN 1", "likes", "UNKNOWN 1")], k=9)
    assert (len(empty), empty.warnings[0]) == (0, "no subgraph has the form of the pattern")


def test_two_relations_between_two_nodes_are_two_constraints() -> None:
    graph = graph_of(*triples(("a", "wrote", "x"), ("b", "wrote", "y"), ("b", "directed", "y")))
    both = graph.match([("UNKNOWN 1", "wrote", "UNKNOWN 2"), ("UNKNOWN 1", "directed", "UNKNOWN 2")], k=9, directed=True)
    assert [(one.nodes[0].text, one.nodes[1].text) for one in both.solutions if not one.total] == [("b", "y")]
    # One statement is not two edges: a wrote x, and nothing else.
    assert all("a" not in {node.text for node in one.nodes} for one in both.solutions)
    # Two unknown relations take two statements as well, and add nothing.
    free = graph.match(
        [("UNKNOWN 1", "UNKNOWN r1", "UNKNOWN 2"), ("UNKNOWN 1", "UNKNOWN r2", "UNKNOWN 2")], k=9, directed=False
    ).solutions
    assert {frozenset(node.text for node in one.nodes) for one in free} == {frozenset("by")}
    assert all(one.total == 0 and [edge.term for edge in one.edges] == [None, None] for one in free)


def test_each_edge_takes_its_nearest_predicate() -> None:
    graph = graph_of(*triples(("a", "jumped in", "x"), ("a", "jumper of", "x")))
    for asked, nearest in (("jumped", "jumped in"), ("jumpers", "jumper of")):
        (one,) = graph.match([("a", asked, "UNKNOWN 1")], k=1).solutions
        assert one.edges[0].statement.predicate == nearest


def test_ties_go_by_ids_in_the_order_of_first_mention() -> None:
    names = [Entity("e3", "Ann"), Entity("e1", "Zoe"), Entity("e2", "Ann")]
    graph = graph_of(*names, *triples(("e1", "knows", "e2"), ("e1", "knows", "e3"), ("e2", "knows", "e3")))
    found = graph.match([("UNKNOWN 1", "knows", "UNKNOWN 2")], k=9, directed=True).solutions
    assert [(one["1"].id, one["2"].id) for one in found] == [("e1", "e2"), ("e1", "e3"), ("e2", "e3")]
    turned = graph.match([("UNKNOWN 2", "knows", "UNKNOWN 1")], k=9).solutions
    assert [(one["2"].id, one["1"].id) for one in turned][:2] == [("e1", "e2"), ("e1", "e3")]
    # Exactly k, and the first of them.
    assert [(one["1"].id, one["2"].id) for one in graph.match([("UNKNOWN 1", "knows", "UNKNOWN 2")], k=2).solutions] == [
        ("e1", "e2"), ("e1", "e3"),
    ]  # fmt: skip


def test_parts_are_joined_by_their_summed_distance() -> None:
    graph = graph_of(*triples(("a", "capital of", "b"), ("c", "capitals of", "d"), ("e", "mayor of", "f")))
    pattern = [("UNKNOWN 1", "capital of", "UNKNOWN 2"), ("UNKNOWN 3", "mayor of", "UNKNOWN 4")]
    one, *_ = found = graph.match(pattern, k=64, directed=True).solutions
    assert [node.text for node in one.nodes] == ["a", "b", "e", "f"]
    assert [one.total for one in found] == sorted(one.total for one in found)
    # Parts are injective across each other, too.
    assert all(len({node.text for node in one.nodes}) == 4 for one in found)
    assert len(found) == 6


def test_the_papers_numbers_are_a_speed_mode_that_says_so() -> None:
    graph = graph_of(*triples(*((f"name {i}", f"relation {i}", f"name {i + 1}") for i in range(40))))
    pattern = [("name 7", "relation 7", "UNKNOWN 1")]
    fast = graph.match(pattern, k=1, fast=True)
    assert (fast.approximate, fast.exact) == (True, False)
    assert (fast.options.k_nodes, fast.options.k_relations, fast.options.k_types) == (FAST_NODES, FAST_RELATIONS, FAST_TYPES)
    assert any("k_nodes=16, k_relations=16" in warning for warning in fast.warnings)
    whole = graph.match(pattern, k=1)
    assert (whole.approximate, whole.exact, whole.options.k_nodes) == (False, True, None)
    assert whole.solutions[0].total == fast.solutions[0].total == 0


@pytest.mark.parametrize("seed", range(4))
def test_edges_that_close_a_cycle_do_not_count_nodes_again(seed: int) -> None:
    """Triangles with known corners: an edge term is counted an edge, a node term a node (Eq. 9 and
    10).
    """
    for number in range(by_lane(4, 15, 15)):
        dice = random.Random(1000 * seed + number)
        names = ["ant", "ants", "bee", "been", "cat", "cats"]
        relations = ["eats", "eat", "sees", "seen"]
        facts = {(a, dice.choice(relations), b) for a in names for b in names if a < b and dice.random() < 0.75}
        graph = graph_of(*triples(*sorted(facts)))
        pattern = [("ant hill", "eats", "bee hive"), ("bee hive", "sees", "UNKNOWN 1"), ("UNKNOWN 1", "eat", "ant hill")]
        used = sorted({relation for _, relation, _ in facts})

        def related(wanted: str, relation: str, used: list[str] = used) -> int:
            """The distance, and what the words "eat" and "eats" leave of it."""
            whole = distance(wanted, relation)
            return min(whole, 60_000 + whole * (1000 - fit(wanted, relation, [*used, "instance of"])) // 1000)

        prices: dict[frozenset[str], list[str]] = {}
        for a, relation, b in facts:
            prices.setdefault(frozenset((a, b)), []).append(relation)
        best = min(
            (
                distance("ant hill", a) + distance("bee hive", b)
                + sum(
                    min(related(wanted, relation) for relation in prices[frozenset(pair)])
                    for wanted, pair in (("eats", (a, b)), ("sees", (b, c)), ("eat", (c, a)))
                )
                for a, b, c in permutations(names, 3)
                if all(frozenset(pair) in prices for pair in ((a, b), (b, c), (c, a)))
            ),
            default=None,
        )  # fmt: skip
        found = graph.match(pattern, k=1, directed=False, injective=True).solutions
        assert [one.total for one in found] == ([] if best is None else [best])


def test_induced_subgraphs_and_the_direction_of_edges() -> None:
    """With `directed`, an edge against that of the pattern is one which the pattern does not have."""
    graph = graph_of(*triples(("a", "likes", "b"), ("c", "likes", "d"), ("d", "knows", "c")))
    pattern = [("UNKNOWN 1", "likes", "UNKNOWN 2")]
    likes = {"induced": True, "k": None}
    pairs = lambda **asked: {(one["1"].name, one["2"].name) for one in graph.match(pattern, **likes, **asked).solutions}  # noqa: E731
    assert pairs(directed=True) == {("a", "b")}
    assert pairs() >= {("a", "b"), ("c", "d")}
    both = [("UNKNOWN 1", "likes", "UNKNOWN 2"), ("UNKNOWN 2", "knows", "UNKNOWN 1")]
    assert {(one["1"].name, one["2"].name) for one in graph.match(both, **likes, directed=True).solutions} == {("c", "d")}
    # Several edges in the pattern's own direction are no further edges.
    twice = graph_of(*triples(("a", "likes", "b"), ("a", "knows", "b")))
    assert len(twice.match(pattern, induced=True, directed=True, k=None).solutions) == 1


def test_relations_that_are_other_predicates_are_reported() -> None:
    """What words tell is a remark; what is merely the nearest makes the answer doubtful."""
    graph = condgraph.open()
    graph.add(
        [
            Statement("Bob", "is_aged", Ref("31")),
            Statement("Film", "starred_actors", Ref("Bob")),
            Statement("Bob", "date of birth", Ref("1917")),
        ]
    )
    cases = (
        ("acted in", ["Film"], False, "relation 'acted in' is read as 'starred_actors'"),
        ("is under contract with", ["31"], True, "relation 'is under contract with' is not in the graph and is read as 'is_aged'"),
        ("date of death", ["1917"], True, "relation 'date of death' is not in the graph and is read as 'date of birth'"),
        ("Dates of birth", ["1917"], False, ""),
    )
    for relation, texts, doubtful, told in cases:
        found = graph.match([("Bob", relation, "UNKNOWN 1")], k=1)
        assert (found.texts, found.doubtful) == (texts, doubtful)
        assert any(warning.startswith(told) for warning in found.warnings) or not told
        assert told or not any("is read as" in warning for warning in found.warnings)
    asked = graph.ask(
        "Whom is Bob under contract with?", lambda _: '{"triples": [["Bob", "is under contract with", "UNKNOWN 1"]]}', via="pattern"
    )
    assert (asked.status, asked.texts) == ("doubtful", ["31"])
