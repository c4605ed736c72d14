"""Logical queries on servers: symbolic ones as one query of the store, with evidence; fuzzy ones over
predicted edges that are kept beside the graph, as one SPARQL or Cypher query.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.languages.logic.structures import STRUCTURES
from tests.support import logic as judge
from tests.support.lanes import by_lane
from tests.support.stores import asked_of


def queries(dice: random.Random, n: int) -> list[tuple[str, list[Any]]]:
    found = []
    for name, (lengths, shape) in STRUCTURES.items():
        for _ in range(by_lane(1, 1, 5)):
            branches: list[Any] = [
                [f"e{dice.randrange(n):03d}", *(dice.choice(("", "^")) + f"r{dice.randrange(3)}" for _ in range(length))]
                for length in lengths
            ]
            if isinstance(shape, tuple) and shape[0] == "p":
                branches.append(f"r{dice.randrange(3)}")
            found.append((name, branches))
    return found


def compared(remote: condgraph.Graph) -> None:
    dice, n = random.Random(11), 20
    local, _ = judge.random_graph(dice, n, 3, 40)
    model = judge.random_model(4, n, 3, 0.2)
    remote.delete()
    remote.push(local)  # type: ignore[attr-defined]
    counts: list[int] = []
    assert remote.write_predictions(model, epsilon=0.01, on_count=lambda count: bool(counts.append(count))) == counts[0] > 0
    assert not remote.logic_stored("1p", ["e001", "r0"], k=None).answers or all(
        one.observed for one in remote.logic_stored("1p", ["e001", "r0"], k=None).answers
    )
    remote.write_predictions(model, epsilon=0.01)
    # What is kept beside the graph is no part of it.
    assert remote.snapshot().status().counts == local.status().counts
    asked, every = 0, queries(dice, n)
    some = asked_of(remote, every, 3)
    for name, branches in some:
        for alpha in (1.0, 3.0):
            wanted = local.logic(name, *branches, model=model, epsilon=0.01, k=None, alpha=alpha)
            found = remote.logic_stored(name, *branches, k=None, alpha=alpha)
            told = {one.entity.id: (pytest.approx(one.score, rel=1e-9), one.observed) for one in wanted}
            assert {one.entity.id: (one.score, one.observed) for one in found.answers} == told, (name, branches)
            asked += len(told)
        # Symbolic, by the algebra: one query, with the explanation from its evidence.
        symbolic, own = remote.logic(name, *branches, k=None), local.logic(name, *branches, k=None)
        assert symbolic.entities == own.entities
        assert symbolic.answer is not None
        assert symbolic.answer.check()
        for one in list(symbolic)[:2]:
            assert one.derivation.multiplied() == 1.0
            assert all(edge.observed != edge.negated for edge in one.edges)
    assert asked > 100 * len(some) / len(every)
    anti = "?x : exists ?v. (r0(<e001>, ?v) and not r1(?v, ?x)) and r2(<e002>, ?x)"
    assert remote.logic(anti, k=None).entities == local.logic(anti, k=None).entities
    remote.remove_predictions()
    assert all(one.observed for one in remote.logic_stored("2p", ["e001", "r0", "r1"], k=None).answers)
    # Deleting a graph takes them along: a graph of that name has none.
    remote.write_predictions(model, epsilon=0.01)
    remote.delete()
    remote.push(local)  # type: ignore[attr-defined]
    assert all(one.observed for one in remote.logic_stored("2p", ["e001", "r0", "r1"], k=None).answers)
    remote.delete()


def test_sparql_gives_what_the_process_gives(oxigraph_server: Any) -> None:
    with condgraph.open(f"sparql+{oxigraph_server.query}", graph="logic", update=oxigraph_server.update) as remote:
        compared(remote)


def test_cypher_gives_what_the_process_gives(neo4j_uri: str) -> None:
    with condgraph.open(neo4j_uri, graph="logic") as remote:
        compared(remote)


def test_a_graph_in_process_takes_the_model_itself() -> None:
    graph, _ = judge.random_graph(random.Random(1), 5, 2, 5)
    with pytest.raises(OptionError, match="on servers"):
        graph.write_predictions(judge.random_model(1, 5, 2))
