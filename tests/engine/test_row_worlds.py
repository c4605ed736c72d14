"""Random plans of several variables against other systems: SQL by DuckDB, and SPARQL by the embedded RDF store."""

from __future__ import annotations

import random

import pytest

from tests.support import row_worlds
from tests.support.lanes import by_lane

#: Plans asked of each graph.
PLANS = 25


@pytest.mark.parametrize("seed", range(by_lane(3, 400, 400)))
def test_sql_gives_the_same_rows(seed: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    rng = random.Random(seed)
    world = row_worlds.world(rng)
    with duckdb.connect(config={"threads": 1}) as connection:
        world.tables(connection)
        for _ in range(PLANS):
            plan = row_worlds.Plans(rng, [one[2:] for one in world.entities]).plan(rng.choice((1, 2, 3, 4)))
            _, rows = row_worlds.answered(world.graph, plan)
            assert rows == row_worlds.by_sql(connection, plan), plan


@pytest.mark.parametrize("seed", range(by_lane(1, 40, 40)))
def test_sparql_gives_the_same_rows(seed: int) -> None:
    rng = random.Random(seed)
    world = row_worlds.world(rng)
    entities = [one[2:] for one in world.entities if one.startswith("e:x")]
    for _ in range(PLANS):
        plan = row_worlds.Plans(rng, entities, plain=True).plan(rng.choice((1, 2, 3)))
        if plan.variables:
            _, rows = row_worlds.answered(world.graph, plan)
            assert rows == row_worlds.by_sparql(world.graph, plan), plan


@pytest.mark.parametrize("seed", range(1000, by_lane(1002, 1100, 1100)))
def test_evidence_proves_random_rows(seed: int) -> None:
    rng = random.Random(seed)
    world = row_worlds.world(rng)
    for _ in range(10):
        plan = row_worlds.Plans(rng, [one[2:] for one in world.entities]).plan(rng.choice((1, 2, 3)))
        answer, _ = row_worlds.answered(world.graph, plan)
        checked = answer.check()
        assert checked, f"{plan}\n{checked}"
