"""Several stores asked as one say what the graph says that they are cut from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.facts import Entity, EntityKind, Source, Sourced, Statement
from condgraph.engine.snapshot.readback import items
from condgraph.remote_several import SeveralGraph
from condgraph.several.member import built
from tests.support.cases import GRAPHS, Case, Difference, case, differences
from tests.support.lanes import by_lane

STORES = 3
#: Cases in one test.
AT_ONCE = 4
NUMBERS = [range(first, min(first + AT_ONCE, GRAPHS)) for first in range(0, GRAPHS, AT_ONCE)]


def cut(graph: Graph, seed: int) -> tuple[Graph, list[Graph]]:
    """A graph cut at random into several, and all of them as one, loaded in their order: a table is in one store, and each
    predicate, or, of every other graph, each statement in one or two. Entities are declared in some, in one of them under
    another name.
    """
    dice = random.Random(seed)
    found = list(items(graph.snapshot()._storage.whole()))
    parts: list[list[Any]] = [[] for _ in range(STORES)]
    homes: dict[str, int] = {}
    tables = {name for item in found if isinstance(item, Sourced) and _is_row(item.item) for name, _ in item.sources}
    scattered = seed % 2 == 1
    for item in found:
        if isinstance(item, Source):
            for part in parts:
                part.append(item)
            continue
        of = item.item
        at = dice.randrange(STORES)
        table = next((name for name, _ in item.sources if name in tables), None)
        if table is not None:
            parts[homes.setdefault(f"table {table}", at)].append(item)
            continue
        if isinstance(of, Statement) and not scattered:
            at = homes.setdefault(of.predicate, at)
        parts[at].append(item)
        if scattered and dice.random() < 0.15:
            parts[dice.randrange(STORES)].append(item)
        if isinstance(of, Entity) and not _is_row(of) and dice.random() < 0.1:
            other = replace(of, name=dice.choice([f"{of.name} too", of.id, of.name.upper()]))
            parts[dice.randrange(STORES)].append(Sourced(other, item.sources))
    whole = Graph.of(built(item for part in parts for item in part))
    return whole, [Graph.of(built(part)) for part in parts]


def _is_row(item: Any) -> bool:
    return isinstance(item, Entity) and item.kind is EntityKind.ROW


def together(graphs: list[Graph]) -> SeveralGraph:
    return SeveralGraph({f"part {number}": graph for number, graph in enumerate(graphs)})


def report(found: list[Difference]) -> str:
    return f"{len(found)} differences\n" + "\n".join(str(one)[:3_000] for one in found[:4])


def compared(given: Case, whole: Graph, parts: list[Graph]) -> Iterator[Difference]:
    """What differs, but for errors of columns that no row of its class has: of the classes of all stores together nothing is
    known, so that another error is told, or the answer is empty.
    """
    for one in differences(given, whole, together(parts), warnings=False):
        of_classes = "none of these rows" in one.here.error
        if not of_classes or not (one.there.error.startswith("UnknownNameError") or not one.there.error):
            yield one


@contextmanager
def on_servers(request: pytest.FixtureRequest, parts: list[Graph]) -> Iterator[list[Graph]]:
    """The parts in a folder, a Neo4j database and a DuckDB file."""
    with ExitStack() as stack:
        folder, neo4j = parts[0], stack.enter_context(condgraph.open(request.getfixturevalue("neo4j_uri"), graph="several"))
        place = request.getfixturevalue("tmp_path_factory").mktemp("several")
        duckdb = stack.enter_context(condgraph.open(f"duckdb:///{place}/part.duckdb", graph="several"))
        neo4j.store.delete()
        neo4j.push(parts[1])
        duckdb.push(parts[2])
        yield [folder, neo4j, duckdb]
        neo4j.store.delete()


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
def test_graphs_in_process(numbers: range) -> None:
    found: list[Difference] = []
    for number in numbers[:: by_lane(4, 4, 1)]:
        given = case(number)
        given = replace(given, asked=given.asked[:: by_lane(12, 4, 1)])
        found += compared(given, *cut(given.local, number))
    assert not found, report(found)


@pytest.mark.service
@pytest.mark.xdist_group("neo4j")
@pytest.mark.parametrize("number", range(by_lane(1, 4, 28)))
def test_graphs_on_servers(request: pytest.FixtureRequest, number: int) -> None:
    given = case(number)
    given = replace(given, asked=given.asked[:: by_lane(4, 2, 1)])
    whole, parts = cut(given.local, number)
    with on_servers(request, parts) as there:
        found = list(compared(given, whole, there))
    assert not found, report(found)
