"""Random plans over rows that bind several variables: every store gives the rows that the snapshot gives, with as many of each,
the same texts, entities, evidence and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine import algebra as alg
from condgraph.engine.errors import CondgraphError
from condgraph.engine.facts import Item, Statement
from condgraph.engine.row_shapes import row_tests
from condgraph.engine.store import plan_answer
from condgraph.remote_neo4j import Neo4jGraph
from tests.matrix.test_sparql_remote import opened
from tests.support.lanes import ALL, by_lane
from tests.support.operators import graph
from tests.support.row_plans import Maker
from tests.support.stores import marked

STORES = marked("oxigraph", nightly=("virtuoso", "fuseki"))


def made(*, raw: bool) -> Graph:
    """The graph that the plans are about; without `raw` no value is written in a way of its own, so that stores give rows of
    values.
    """

    def plain(item: Item) -> Item:
        return replace(item, raw=None) if isinstance(item, Statement) and not raw else item

    found = condgraph.open()
    found.add([plain(item) for item in graph()], source="world")
    return found


def outcome(store: Any, plan: alg.Solutions, *, warnings: bool) -> tuple[Any, ...]:
    """What a store answers, with its evidence; or the error."""
    try:
        answer = plan_answer(store, plan)
        rows = [tuple(map(repr, row)) for row in answer.values], answer.cells, list(map(repr, answer.entities))
        evidence = sorted(map(str, answer.evidence))
        return (answer.columns, *rows, evidence, sorted(set(answer.warnings)) if warnings else ())
    except CondgraphError as error:
        return type(error).__name__, str(error)


def on_servers(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leave out, in the nightly run, what depends on the order of joins: whether a server looks at one part of a plan where
    another has no rows. These are values that are left out, and the evidence of an answer without rows.
    """
    if len(result) == 2 or not ALL:
        return result
    *head, evidence, warnings = result
    return (*head, evidence if head[1] else [], [line for line in warnings if " left out" not in line])


def check(
    here: Graph,
    store: Any,
    seeds: Iterable[int],
    *,
    warnings: Callable[[int], bool],
    seen: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Compare the answers to the plans of some seeds, by what is `seen` of them."""
    local = here._store_of(None)
    for seed in seeds:
        plan = Maker(seed).plan()
        # How many qualifiers a test meets depends on the order of joins.
        warned = warnings(seed) and not any(isinstance(test, alg.WhereQualifier) for test in row_tests(plan))
        wanted = seen(outcome(local, plan, warnings=warned))
        assert seen(outcome(store, plan, warnings=warned)) == wanted, (seed, plan)


@pytest.mark.parametrize("raw", [False, True], ids=["plain", "raw"])
def test_embedded(raw: bool) -> None:
    here = made(raw=raw)
    first = 10_000 * raw
    # The one more is an attribute in both directions, which is a relation.
    seeds = [*range(first, first + by_lane(80, 2_000, 10_000)), 11_798]
    check(here, here.rdf(), seeds, warnings=lambda seed: True)


def test_many_plans_have_rows() -> None:
    """Else equal answers would say little."""
    local = made(raw=False)._store_of(None)
    sizes = [len(found[1]) for seed in range(100) if len(found := outcome(local, Maker(seed).plan(), warnings=False)) > 2]
    assert sum(size > 0 for size in sizes) > 35


@pytest.mark.xdist_group("neo4j")
@pytest.mark.parametrize("raw", [False, True], ids=["plain", "raw"])
def test_neo4j(neo4j_uri: str, raw: bool) -> None:
    here, first = made(raw=raw), 20_000 + 10_000 * raw
    with condgraph.open(neo4j_uri, graph="random rows") as there:
        assert isinstance(there, Neo4jGraph)
        there.store.delete()
        there.push(here)
        check(
            here,
            there.store,
            range(first, first + by_lane(6, 150, 1_000)),
            warnings=lambda seed: seed % 6 in (0, 4),
            seen=on_servers,
        )
        there.store.delete()


@pytest.mark.parametrize("store", STORES)
def test_rdf_servers(request: pytest.FixtureRequest, store: str) -> None:
    here = made(raw=False)
    with opened(request.getfixturevalue(f"{store}_server"), "random rows") as there:
        there.push(here)
        check(
            here,
            there._store_of(None),
            range(40_000, 40_000 + by_lane(30, 300, 2_000)),
            warnings=lambda seed: seed % 4 == 0,
            seen=on_servers,
        )
        there.delete()
