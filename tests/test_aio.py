"""`AsyncGraph` against `Graph`: every method is there, and gives the same."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.aio import AsyncGraph
from condgraph.engine.errors import OptionError, ParseError
from condgraph.engine.facts import Entity, Ref, Statement
from tests.chains.tokenizers_made import KINDS, made
from tests.support.samples import load_samples

#: What is no call: state of the graph in process, and what other modules ask of it.
NOT_AWAITED = {"counted", "current", "of", "rdf", "timeout"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aio") / "world"
    with condgraph.open(folder) as graph:
        load_samples(graph)
    return folder


def awaited(place: Any, call: Callable[[AsyncGraph], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with await condgraph.open_async(place) as graph:
            return await call(graph)

    return asyncio.run(run())


def test_every_method_is_there() -> None:
    public = {name for name in dir(Graph) if not name.startswith("_")}
    assert public - NOT_AWAITED - set(dir(AsyncGraph)) == set()


@pytest.mark.parametrize("name", sorted(name for name in dir(Graph) if not name.startswith("_") and callable(getattr(Graph, name))))
def test_every_option_is_there(name: str) -> None:
    awaited_one = getattr(AsyncGraph, name, None)
    if awaited_one is None:
        assert name in NOT_AWAITED
        return
    takes = inspect.signature(awaited_one).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
        assert set(inspect.signature(getattr(Graph, name)).parameters) <= set(takes)


def test_tables(world: Path) -> None:
    """Put together without waiting, and asked by awaiting; parts can be gone on from."""
    with condgraph.open(world) as graph:
        wanted = graph.table().group("country").show("count()", "max(height)").order("-count()").limit(3)
        answer, plan = wanted.ask(limit=2), wanted.explain()

    async def ask(graph: AsyncGraph) -> Any:
        table = graph.table().group("country").show("count()", "max(height)").order("-count()").limit(3)
        found, other = await asyncio.gather(table.ask(limit=2), table.limit(1).ask())
        return found.columns, found.cells, len(other), await table.explain(), (await graph.query("FindAll()", table=table)).cells

    columns, cells, one, explained, again = awaited(world, ask)
    assert (columns, cells, explained) == (answer.columns, answer.cells, plan)
    assert (one, again[:2]) == (1, cells)
    with pytest.raises(ParseError):
        awaited(world, lambda graph: graph.table().show("count()").having("count(").ask())


def test_what_changes_a_graph(tmp_path: Path) -> None:
    async def change(graph: AsyncGraph) -> list[Any]:
        report = await graph.add([Entity("a", "A"), Entity("b", "B"), Statement("a", "r", Ref("b"))], source="one")
        before = await graph.snapshot()
        await graph.add([Statement("b", "r", Ref("a"))], source="two", wait=1.0)
        await graph.refresh()
        texts = [(await one.kopl("FindAll() Relate(r, forward) QueryName()")).texts for one in (before, graph)]
        triples = len(await graph.to_rdflib()) == len(graph.graph.to_rdflib()) > 0
        return [report.statements, texts, triples, await graph.abandon(), await graph.delete(), await graph.delete()]

    assert awaited(tmp_path / "store", change) == [1, [["B"], ["A", "B"]], True, False, True, False]


def test_chains_and_demonstrations(world: Path) -> None:
    async def ask(graph: AsyncGraph) -> Any:
        chain = await graph.chain(["Nepal"], made(KINDS[0]), max_steps=1, timeout=30)
        return bool(len(chain.allowed())), len(graph.demos)

    assert awaited(world, ask) == (True, 0)


def test_what_needs_a_server_says_so(world: Path) -> None:
    with pytest.raises(OptionError):
        awaited(world, lambda graph: graph.remove_predictions())
    with pytest.raises(OptionError):
        awaited(world, lambda graph: graph.logic_stored('?x : capital("Nepal", ?x)', timeout=9))
