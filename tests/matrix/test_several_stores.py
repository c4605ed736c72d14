"""Several stores asked as one say what the graph says that they are cut from."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import CancelledError, DeadlineError, OptionError, ReadOnlyError, StoreError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Source, Sourced, Statement
from condgraph.engine.snapshot.readback import items
from condgraph.remote_several import SeveralGraph
from condgraph.samples import FOLDER
from condgraph.several.member import built
from tests.matrix.test_random_rows import Maker, made, outcome
from tests.support import commands
from tests.support.cases import Case, Difference, case, differences
from tests.support.differential import Comparison
from tests.support.lanes import by_lane
from tests.support.postgres import postgres

STORES = 3


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
def on_servers(servers: Sequence[str], place: Path, parts: list[Graph], number: int) -> Iterator[list[Graph]]:
    """The parts in a folder, and on two servers; by the number, which of them is where."""
    order = random.Random(number).sample(range(STORES), STORES)
    parts[order[0]].export(place / "part.jsonl")
    with ExitStack() as stack:
        folder, *remotes = (stack.enter_context(condgraph.open(one, graph="several")) for one in (place / "folder", *servers))
        folder.load(place / "part.jsonl")
        for remote, part in zip(remotes, order[1:], strict=True):
            remote.store.delete()
            remote.push(parts[part])
        found = dict(zip(order, (folder, *remotes), strict=True))
        yield [found[number] for number in range(STORES)]
        for remote in remotes:
            remote.store.delete()


@pytest.mark.parametrize("number", range(by_lane(2, 110, 110)))
def test_graphs_in_process(number: int) -> None:
    given = case(number)
    given = replace(given, asked=given.asked[::4])
    found = list(compared(given, *cut(given.local, number)))
    assert not found, report(found)


@pytest.mark.parametrize("seed", range(by_lane(1, 2, 8)))
def test_plans_of_rows(seed: int) -> None:
    whole, parts = cut(made(raw=True), seed)
    here, there = whole._store_of(None), together(parts).store
    for number in range(seed * 1_000, seed * 1_000 + by_lane(15, 60, 250)):
        plan = Maker(number).plan()
        wanted, found = (rows_of(store, plan, warnings=False) for store in (here, there))
        assert str(found) == str(wanted), (number, plan)


def rows_of(store: Any, plan: Any, *, warnings: bool) -> tuple[Any, ...]:
    """What a store gives for a plan of rows, but for the names of stores in its evidence."""
    return tuple(
        [re.sub(r"part \d[^:;\]]*: ", "", one) if isinstance(one, str) else one for one in part] if isinstance(part, list) else part
        for part in outcome(store, plan, warnings=warnings)
    )


def test_programs_of_the_oracle(oracle: Path, tmp_path: Path) -> None:
    here = condgraph.open()
    here.load(oracle / "kb_small.json")
    whole, parts = cut(here, 0)
    with ExitStack() as stack:
        there = [parts[0]]
        for number in (1, 2):
            place = f"duckdb:///{tmp_path}/{number}.duckdb"
            there.append(stack.enter_context(condgraph.open(place, graph="part")))
            there[-1].push(parts[number])
        with (oracle / "programs_small.jsonl").open(encoding="utf-8") as lines:
            programs = [json.loads(line)["program"] for line in lines]
        found = Comparison(whole, together(there)).ask_all(programs[:: by_lane(200, 20, 1)])
    assert not found.different, found.report()


@pytest.mark.service
@pytest.mark.xdist_group("neo4j")
@pytest.mark.parametrize("number", range(by_lane(1, 4, 28)))
def test_graphs_beside_neo4j(neo4j_uri: str, tmp_path: Path, number: int) -> None:
    check_on_servers([neo4j_uri, f"duckdb:///{tmp_path}/part.duckdb"], tmp_path, number)


@pytest.fixture(scope="module")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.mark.service
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("number", range(by_lane(3, 18, 110)))
def test_graphs_beside_postgres(postgres_server: str, tmp_path: Path, number: int) -> None:
    check_on_servers([postgres_server, f"duckdb:///{tmp_path}/part.duckdb"], tmp_path, number)


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.xdist_group("neo4j")
@pytest.mark.parametrize("number", range(by_lane(1, 4, 30)))
def test_graphs_on_neo4j_and_postgres(neo4j_uri: str, postgres_server: str, tmp_path: Path, number: int) -> None:
    check_on_servers([neo4j_uri, postgres_server], tmp_path, number)


def check_on_servers(servers: Sequence[str], place: Path, number: int) -> None:
    given = case(number)
    given = replace(given, asked=given.asked[:: by_lane(4, 2, 1)])
    whole, parts = cut(given.local, number)
    with on_servers(servers, place, parts, number) as there:
        found = list(compared(given, whole, there))
    assert not found, report(found)


# -- a folder beside tables in place -----------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """Tables that somebody else made, some of whose rows are countries of the samples."""
    with duckdb.connect(tmp_path / "shop.duckdb") as database:
        database.execute("CREATE TABLE country (code VARCHAR PRIMARY KEY, name VARCHAR)")
        database.execute(
            "CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR, revenue DECIMAL(8, 2), "
            "country VARCHAR REFERENCES country)"
        )
        database.execute("INSERT INTO country VALUES ('NP', 'Nepal'), ('CA', 'Canada'), ('UT', 'Utopia'), ('C2', 'Canada')")
        database.execute("INSERT INTO customer VALUES (1, 'Ann', 100.5, 'NP'), (2, 'Bob', 20, 'CA'), (3, 'Cy', 7, 'UT')")
    return f"duckdb:///{tmp_path}/shop.duckdb"


@pytest.fixture
def countries() -> Graph:
    graph = condgraph.open()
    graph.load(FOLDER / "countries.json")
    return graph


def test_entities_of_one_name_are_one_where_that_is_declared(countries: Graph, shop: str) -> None:
    with condgraph.open({"world": countries, "shop": shop}, same={"shop": ["country"]}) as graph:
        answer = graph.kopl("Find(Kathmandu) Relate(capital, backward) Relate(country, backward)")
        assert (answer.texts, answer.warnings) == (["Ann"], [])
        assert {source.store for fact in answer.evidence for source, _ in fact.sources} == {"world", "shop"}
        assert answer.check(full=True)
        rows = graph.query("MATCH (c:customer)-[:country]->(n)-[:capital]->(k) RETURN c.revenue, k")
        assert rows.texts == ["100.5 | Kathmandu"]
        by_tail = "Query1: \"get_information(relation='country', tail_entity='Nepal')\""
        with graph.snapshot() as copy:
            assert graph.query(by_tail).values == copy.query(by_tail).values != []
        assert graph.kopl("Find(Nepal) Relate(country, backward) QueryAttr(revenue)").whole == "shop"
        # There are two countries of one name, and one that is in no other store.
        assert len(graph.status().notes) == 3


def test_a_mapping_declares_what_is_one(countries: Graph, shop: str) -> None:
    canada = countries.kopl("Find(Canada)").entities[0].id
    with condgraph.open({"world": countries, "shop": shop}, same={"shop": {"country/CA": canada}}) as graph:
        assert graph.kopl("Find(Bob) Relate(country, forward) Relate(capital, forward)").texts == ["Ottawa"]
        with graph.snapshot() as copy:
            assert copy.kopl("Find(Bob) Relate(country, forward) Relate(capital, forward)").texts == ["Ottawa"]


def test_what_may_be_one_and_is_not_declared_is_told(countries: Graph, shop: str) -> None:
    with condgraph.open({"world": countries, "shop": shop}) as graph:
        named = graph.kopl("Find(Nepal) Relate(country, backward)")
        assert named.texts == ["Ann"]
        assert "'country/NP' in 'shop', two entities; `same` of condgraph.open declares what is one" in named.warnings[0]
        empty = graph.kopl("Find(Kathmandu) Relate(capital, backward) Relate(country, backward)")
        assert empty.texts == []
        assert empty.warnings[0].startswith("'shop' knows none of the 1 entity that leads there from other stores")


def test_wrong_declarations_are_errors(countries: Graph, shop: str) -> None:
    with pytest.raises(UnknownNameError) as unknown:
        condgraph.open({"world": countries, "shop": shop}, same={"shop": ["contry"]})
    assert unknown.value.candidates == ("country",)
    with pytest.raises(OptionError, match="`same` is about a store 'shops'"):
        condgraph.open({"world": countries, "shop": shop}, same={"shops": ["country"]})
    with pytest.raises(OptionError, match="same is about several stores"):
        condgraph.open(shop, same={"shop": ["country"]})
    with pytest.raises(OptionError, match="user is about one store"):
        condgraph.open([countries, shop], user="somebody")
    with pytest.raises(OptionError, match="two stores are called 'shop'"):
        condgraph.open([shop, shop])
    with pytest.raises(OptionError, match="no store is given"):
        condgraph.open([])


def test_types_that_differ_are_told(countries: Graph) -> None:
    other = condgraph.open()
    other.add([Entity("x", "X"), Statement("x", "capital", "none"), Statement("x", "driving side", condgraph.Quantity(1))])
    notes = condgraph.open({"world": countries, "other": other}).status().notes
    assert "values of the attribute 'driving side' are text in 'world'; quantity in 'other'" in notes
    assert "'capital' leads to entities in 'world', and to values in 'other'" in notes


def test_sources_of_one_name_stay_two(tmp_path: Path) -> None:
    graphs = []
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        table = tmp_path / str(number) / "people.csv"
        table.write_text(f"id,age\np{number},{number}\n", encoding="utf-8")
        graphs.append(condgraph.open())
        graphs[-1].load(table, key="id")
    graph = condgraph.open(dict(zip("ab", graphs, strict=True)))
    assert [source.name for source in graph.store.sources()] == ["people", "b/people"]
    evidence = graph.kopl("FindAll() FilterNum(age, 0, >)").evidence
    assert sorted(str(fact) for fact in evidence) == ["p1 | age | 1  [a: people, row 1]", "p2 | age | 2  [b: b/people, row 1]"]


def test_a_store_that_fails_is_named(countries: Graph, tmp_path: Path) -> None:
    graph = condgraph.open({"world": countries, "gone": condgraph.open(f"duckdb:///{tmp_path}/gone.duckdb", graph="none")})
    with pytest.raises(StoreError, match="store 'gone': "):
        graph.kopl("FindAll() Count()")
    with pytest.raises(ReadOnlyError):
        graph.add("Nepal", "capital", "Kathmandu")


def test_deadlines_and_cancels_end_the_whole(countries: Graph, shop: str) -> None:
    with condgraph.open({"world": countries, "shop": shop}) as graph:
        with pytest.raises(DeadlineError):
            graph.kopl("FindAll() Count()", timeout=1e-6)
        cancelled = Event()
        cancelled.set()
        with pytest.raises(CancelledError):
            graph.kopl("FindAll() Count()", cancelled=cancelled)


def test_the_command_line_asks_several(countries: Graph, shop: str, tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "world") as folder:
        folder.load(FOLDER / "countries.json")
    program = "Find(Nepal) Relate(country, backward) QueryName()"
    done = commands.run("query", "-d", str(tmp_path / "world"), "--also", shop, program)
    assert done.stdout == "Ann\n"
    shown = commands.run("explain", "-d", str(tmp_path / "world"), "--also", shop, program)
    assert shown.stdout.startswith(f"-- shop: {shop}\nSELECT")
