"""Arms of two at a hub: the first choices of each alone are looked at, and the first solutions are those
that all of them give.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import Ref, Statement
from condgraph.patterns.join import join
from tests.support.lanes import by_lane

GRAPHS = by_lane(24, 150, 600)
HUB = [(f"UNKNOWN {i}", "genre", "Drama") for i in (1, 2)] + [(f"UNKNOWN {i}", "actor", f"UNKNOWN {i}{i}") for i in (1, 2)]
#: Arms at one node, on an arm, at a leaf's place, with something known behind them, and of unknown relations.
PATTERNS: tuple[list[tuple[str, str, str]], ...] = (
    HUB,
    HUB[:1] + HUB[2:3] + [("UNKNOWN 3", "actor", "UNKNOWN 11")],
    [*HUB, ("UNKNOWN 3", "genre", "Drama")],
    [("UNKNOWN 1", "UNKNOWN r1", "UNKNOWN 2"), ("UNKNOWN 2", "UNKNOWN r2", "UNKNOWN 3"), ("UNKNOWN 1", "UNKNOWN r3", "UNKNOWN 4")],
    [("Drama", "genre", "UNKNOWN 2"), ("UNKNOWN 2", "UNKNOWN r1", "UNKNOWN 1"), ("UNKNOWN 2", "actor", "UNKNOWN 3"),
     ("UNKNOWN 3", "actor", "UNKNOWN 4"), ("UNKNOWN 1", "actor", "UNKNOWN 5")],
    [("UNKNOWN 22", "actor", "UNKNOWN 2"), ("UNKNOWN 2", "genre", "Drama"), ("n1", "UNKNOWN r", "Drama"),
     ("UNKNOWN 3", "actor", "n1"), ("UNKNOWN 3", "genre", "UNKNOWN 4")],
)  # fmt: skip


def some_graph(dice: random.Random) -> condgraph.Graph:
    """Few nodes with many statements, so that arms meet, lead back, and run beside each other."""
    names = ["Drama", *(f"n{i}" for i in range(dice.randint(3, 9)))]
    graph = condgraph.open("memory:")
    graph.add(
        Statement(dice.choice(names), dice.choice(("genre", "actor", "actors", "genre of")), Ref(dice.choice(names)), given)
        for _ in range(dice.randint(6, 40))
        for given in (((), (("since", "x"),)) if dice.random() < 0.2 else ((),))
    )
    return graph


@pytest.mark.parametrize("batch", range(4))
def test_arms_give_what_all_their_choices_give(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    whole, arms, used = join.with_arms, join.choices, list[int]()

    def counted(*given: Any) -> Any:
        used.append(1)
        return arms(*given)

    for seed in range(batch * GRAPHS // 4, (batch + 1) * GRAPHS // 4):
        dice = random.Random(seed)
        graph = some_graph(dice)
        for _ in range(4):
            pattern = dice.choice(PATTERNS)
            nodes = sorted({node for head, _, tail in pattern for node in (head, tail) if node.startswith("UNKNOWN")})
            asked: dict[str, Any] = {
                "k": dice.choice((1, 2, 7, None)),
                "directed": dice.choice((None, True, False)),
                "group_by": dice.choice((None, dice.choice(nodes), dice.sample(nodes, 2))),
                "stretch": dice.random() < 0.1,
            }
            asked |= dice.choice(({}, {"injective": True}, {"free": True}))
            monkeypatch.setattr(join, "with_arms", lambda problem, nodes, steps, others: steps)
            wanted = graph.match(pattern, **asked)
            monkeypatch.setattr(join, "with_arms", whole)
            monkeypatch.setattr(join, "choices", counted)
            found = graph.match(pattern, **asked)
            about = f"seed {seed}: {pattern} {asked}"
            assert found.hits.totals.tolist() == wanted.hits.totals.tolist(), about
            assert found.hits.nodes.tolist() == wanted.hits.nodes.tolist(), about
    assert len(used) > 10


def test_arms_are_not_multiplied_where_all_answers_are_wanted(extended: list[int]) -> None:
    """Two arms of two edges at a hub: four million solutions, and the first of each film or actor."""
    graph = condgraph.open("memory:")
    graph.add(Statement(f"film {i:04}", "genre", Ref("Drama")) for i in range(1000))
    graph.add(Statement(f"film {i:04}", "actor", Ref(f"actor {i + more:04}")) for i in range(1000) for more in (0, 1))
    for options in ({}, {"injective": True}):
        for by, size in (("1", 1000), ("11", 1001)):
            extended.clear()
            found = graph.match(HUB, k=None, group_by=by, **options)
            assert (len(found.solutions), found.complete) == (size, True)
            assert sum(extended) < 250_000
            assert [match.text for match in found.solutions[0].nodes][:3] == ["film 0000", "Drama", "film 0001"]
