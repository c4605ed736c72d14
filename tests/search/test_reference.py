"""The search of a snapshot gives what the definitions give, in their order (`reference`), on random
graphs and patterns.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.facts import Entity, Ref
from condgraph.engine.identity import relation_id, statement_ids
from condgraph.engine.snapshot import readback
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance import domains
from condgraph.patterns.join import driver, join, product
from condgraph.patterns.join import join as look_back
from condgraph.patterns.match import match
from tests.search.reference import Node, Reference
from tests.search.worlds import NAMES, RELATIONS, TieEncoder, a_graph, a_pattern, an_ask
from tests.support.lanes import by_lane

#: Graphs a run; a thousand with CONDGRAPH_ALL=1.
GRAPHS = by_lane(50, 500, 1000)
ENCODER = TieEncoder()


def idents_of(snapshot: Snapshot) -> dict[Any, int]:
    """The id of every statement and membership by its content."""
    found: dict[Any, int] = {}
    ids = statement_ids(snapshot)
    for number, (one, _) in enumerate(readback.statements(snapshot, np.arange(snapshot.statements, dtype=np.int32))):
        found[one.subject, one.predicate, one.object, frozenset(one.qualifiers)] = int(ids[number])
    get = snapshot.arrays.get
    for entity, concept in zip(get("mem.e").tolist(), get("mem.c").tolist(), strict=True):
        pair = snapshot.ident(entity), snapshot.ident(concept)
        found[pair] = relation_id(pair[0], "instance of", pair[1])
    return found


def node_of(value: Any) -> Node:
    return (0, value.id) if isinstance(value, Entity) else (1, value)


def object_of(value: Any) -> Node:
    return (0, value.id) if isinstance(value, Entity | Ref) else (1, value)


def expected(reference: Reference, pattern: Pattern, asked: dict[str, Any]) -> list[Any]:
    apart: dict[int, set[Node]] = {}
    for name, one in asked.get("distinct_from", {}).items():
        apart[pattern.number(name)] = {node for node in reference.nodes if reference.text(node) == one}
    names = ("injective", "free", "induced", "directed", "k_nodes", "k_relations", "k_types")
    found = reference.solutions(pattern, distinct_from=apart, **{name: asked[name] for name in names})
    by = [pattern.number(name) for name in asked.get("group_by", [])]
    counts: dict[Any, int] = {}
    groups: dict[Any, Any] = {}
    for one in found:
        key = tuple(one[1][number] for number in by)
        counts[one[0], key] = counts.get((one[0], key), 0) + 1
        if by:
            groups.setdefault(key, one)
    chosen = list(groups.values()) if by else found
    k = asked["k"]
    chosen = [one for one in chosen if one[0] == chosen[0][0]] if k is None else chosen[:k]
    return [(*one, counts[one[0], tuple(one[1][number] for number in by)]) for one in chosen]


@pytest.mark.parametrize("batch", range(10))
def test_solutions_are_those_of_the_definitions(batch: int) -> None:
    for seed in range(batch * GRAPHS // 10, (batch + 1) * GRAPHS // 10):
        one_graph(seed)


def one_graph(seed: int) -> None:
    """A random graph, asked four random patterns."""
    dice = random.Random(seed)
    items = a_graph(dice)
    graph = condgraph.open("memory:")
    graph.add(items)
    reference = Reference(items, idents_of(graph.current), ENCODER)
    for _ in range(4):
        pattern = Pattern.of(a_pattern(dice))
        check(graph.current, reference, pattern, an_ask(dice, pattern, list(map(reference.text, reference.nodes))), seed)


@pytest.mark.parametrize("directed", [True, False])
def test_induced_with_and_without_direction(directed: bool) -> None:
    """What "directed" forbids an induced subgraph: an edge against that of the pattern. Both
    answers, by the definitions.
    """
    changed = 0
    for seed in range(10_000, 10_000 + max(GRAPHS // 10, 12)):
        dice = random.Random(seed)
        items = a_graph(dice)
        graph = condgraph.open("memory:")
        graph.add(items)
        reference = Reference(items, idents_of(graph.current), ENCODER)
        for _ in range(3):
            pattern = Pattern.of(a_pattern(dice))
            asked = an_ask(dice, pattern, list(map(reference.text, reference.nodes))) | {"k": 5}
            check(graph.current, reference, pattern, asked | {"induced": True, "directed": directed}, seed)
            ways = [
                match(graph.current, pattern, encoder=ENCODER, **asked | {"induced": one, "directed": True})
                for one in (True, False)
            ]
            changed += len(ways[0].solutions) != len(ways[1].solutions)
    assert changed


def check(snapshot: Snapshot, reference: Reference, pattern: Pattern, asked: dict[str, Any], seed: int) -> None:
    found = match(snapshot, pattern, encoder=ENCODER, **asked)
    wanted = expected(reference, pattern, asked)
    about = f"seed {seed}: {pattern} {asked}"
    assert found.complete, about
    assert [one.total for one in found.solutions] == [one[0] for one in wanted], about
    for solution, (total, nodes, edges, terms, count) in zip(found.solutions, wanted, strict=True):
        assert tuple(node_of(one.value) for one in solution.nodes) == nodes, about
        shown = [(object_of(e.statement.subject), e.statement.predicate, object_of(e.statement.object)) for e in solution.edges]
        assert shown == [(edge.subject, edge.predicate, edge.object) for edge in edges], about
        assert tuple(edge.term for edge in solution.edges) == terms, about
        parts = [one.term for one in (*solution.nodes, *solution.edges) if one.term is not None]
        parts += [one.against for one in solution.edges]
        assert sum(parts) == total, about
        assert solution.count == count, about
        for one in solution.edges:
            head, tail = solution.nodes[one.edge.head].value, solution.nodes[one.edge.tail].value
            turned = node_of(head) != object_of(one.statement.subject)
            assert one.reversed == turned, about
            assert {node_of(head), node_of(tail)} == {object_of(one.statement.subject), object_of(one.statement.object)}, about
            assert one.statement.sources, about


#: How far known nodes are looked back from, and pairs that hubs are looked up in: never, always,
#: and between.
WAYS = ((0, 0), (1 << 20, 1 << 20), (6, 3))
#: Three parts that nothing joins.
THREE = [(0, 1), (2, 3), (4, 5)]


def lowered(monkeypatch: pytest.MonkeyPatch, look: int, pairs: int) -> None:
    """Limits so low that rows are made in parts, hubs are looked up in pairs, and nothing, or all,
    is looked back.
    """
    monkeypatch.setattr(domains, "_SMALL", 0)
    monkeypatch.setattr(domains, "_HUB", 2)
    monkeypatch.setattr(domains, "_PAIRS", pairs)
    monkeypatch.setattr(join, "CHUNK", 3)
    monkeypatch.setattr(join, "FIRST", 1)
    monkeypatch.setattr(product, "CHUNK", 3)
    monkeypatch.setattr(driver, "_SPARE", 0)
    monkeypatch.setattr(look_back, "LOOK", look)


@pytest.mark.slow
def test_large_graphs_take_ways_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (look, pairs) in enumerate(WAYS):
        lowered(monkeypatch, look, pairs)
        for seed in range(10_000 + number, 10_000 + GRAPHS // 2, 3):
            one_graph(seed)


@pytest.mark.parametrize("seed", [10_190])
@pytest.mark.parametrize(("look", "pairs"), WAYS)
def test_rows_left_out_of_a_part_are_known_to_be_missing(monkeypatch: pytest.MonkeyPatch, look: int, pairs: int, seed: int) -> None:
    """A part whose other rows a limit kept from being made: they are wanted where the first
    conflict with another part.
    """
    lowered(monkeypatch, look, pairs)
    one_graph(seed)


def test_three_parts_in_random_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of two parts that go on to the third are the first ones of all, not some of them."""
    monkeypatch.setattr(driver, "_SPARE", 0)
    for seed in (*range(GRAPHS), 3895):
        dice = random.Random(seed)
        items = a_graph(dice)
        graph = condgraph.open("memory:")
        graph.add(items)
        reference = Reference(items, idents_of(graph.current), ENCODER)
        if len(reference.edges) > 8:
            continue
        nodes = [dice.choice((*NAMES, "blue", "nobody")) if dice.random() < 0.4 else f"UNKNOWN {i}" for i in range(6)]
        pairs = dice.choice((THREE, [(0, 1), (2, 3), (4, 4)], [(0, 1), (2, 2), (3, 3)], THREE))
        pattern = Pattern.of([(nodes[one], dice.choice(RELATIONS), nodes[two]) for one, two in pairs])
        asked = an_ask(dice, pattern, list(map(reference.text, reference.nodes)))
        asked["injective"] = (dice.random() < 0.4 or asked["injective"]) and not asked["free"]
        check(graph.current, reference, pattern, asked, seed)
