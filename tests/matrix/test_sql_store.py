"""Graphs in SQL databases answer as in process: DuckDB in a file, PostgreSQL on a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer
from typing import Any

import duckdb
import pytest
import sqlglot

import condgraph
from condgraph import Graph
from condgraph.chains.methods import place_of
from condgraph.chains.walk import Walk
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node
from condgraph.engine.bounds import within
from condgraph.engine.errors import (
    CancelledError,
    CondgraphError,
    DeadlineError,
    LoadError,
    MissingExtraError,
    OptionError,
    ReadOnlyError,
    StoreError,
    StoreMissingError,
    UnknownNameError,
    UnsupportedError,
)
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.identity import content_digest
from condgraph.remote_sql import SqlGraph
from condgraph.sql.compiler import ENTITIES, FACTS
from condgraph.sql.plan import SUPPORT
from tests.matrix.test_random_rows import check, made
from tests.support.algebra import classes
from tests.support.cases import case, differences
from tests.support.differential import Comparison
from tests.support.lanes import by_lane
from tests.support.postgres import postgres
from tests.support.world import PROGRAMS, QUERIES, world

Opener = Callable[[str], SqlGraph]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("sql")) as url:
        yield url


@pytest.fixture(
    scope="module",
    params=["duckdb", pytest.param("postgres", marks=[pytest.mark.service, pytest.mark.xdist_group("postgres")])],
)
def opener(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opener:
    if request.param == "duckdb":
        url = f"duckdb:///{tmp_path_factory.mktemp('duck')}/graphs.duckdb"
    else:
        url = request.getfixturevalue("server")

    def opened(name: str) -> SqlGraph:
        graph = condgraph.open(url, graph=name)
        assert isinstance(graph, SqlGraph)
        return graph

    return opened


@pytest.fixture(scope="module")
def pair(opener: Opener) -> Iterator[tuple[Graph, SqlGraph]]:
    here, there = world(), opener("world")
    there.push(here)
    yield here, there
    there.close()


# -- answers -----------------------------------------------------------------------------------------


def test_programs_answer_as_in_process(pair: tuple[Graph, SqlGraph]) -> None:
    uneven = ["FindAll() QueryAttr(height) VerifyStr(tall)", "FindAll() QueryAttr(note) VerifyNum(2, =)"]
    found = Comparison(*pair).ask_all([*PROGRAMS, *QUERIES, *uneven], warnings=True, evidence=True)
    assert not found.different, found.report()


def test_programs_of_the_oracle(opener: Opener, oracle: Path) -> None:
    here, there = condgraph.open(), opener("oracle")
    here.load(oracle / "kb_small.json")
    there.push(here)
    with (oracle / "programs_small.jsonl").open(encoding="utf-8") as lines:
        programs = [json.loads(line)["program"] for line in lines]
    found = Comparison(here, there).ask_all(programs[:: by_lane(25, 5, 1)])
    found.ask_all(programs[:: by_lane(100, 20, 2)], warnings=True, evidence=True)
    assert not found.different, found.report()


@pytest.mark.parametrize("number", range(by_lane(1, 4, 42)))
def test_random_programs(opener: Opener, number: int) -> None:
    given = case(number)
    given = replace(given, asked=given.asked[:: by_lane(3, 1, 1)])
    there = opener("random programs")
    there.store.delete()
    there.push(given.local)
    found = list(differences(given, given.local, there))
    assert not found, "\n".join(str(one)[:2_000] for one in found[:4])


@pytest.mark.parametrize("raw", [False, True], ids=["plain", "raw"])
def test_random_rows(opener: Opener, raw: bool) -> None:
    here, there = made(raw=raw), opener(f"rows {raw}")
    there.push(here)
    first = 10_000 * raw
    check(here, there.store, range(first, first + by_lane(6, 80, 2_000)), warnings=lambda seed: True)


def test_answers_are_checked(pair: tuple[Graph, SqlGraph]) -> None:
    for program in PROGRAMS:
        answer = pair[1].query(program)
        assert answer.check().ok, program
        assert [step.function for step in answer.trace] == [step.function for step in pair[0].query(program).trace]


def test_chains_follow_neighbours(pair: tuple[Graph, SqlGraph]) -> None:
    here, there = pair
    snapshot = here.current
    asked = [snapshot.entity(number) for number in range(snapshot.entities)]
    walks = [Walk.of(place_of(graph), asked, 1, True) for graph in pair]
    mine, theirs = ({str(triple) for triple in walk.following()} for walk in walks)
    assert mine == theirs
    assert len(mine) == 20
    with pytest.raises(UnknownNameError):
        there.verify_chain("< a -> b -> c >", ["a\x00b"])


def test_an_answer_has_its_sql(tmp_path: Path) -> None:
    graph = condgraph.open(f"duckdb:///{tmp_path}/a.duckdb")
    graph.push(world())
    texts = {graph.query(program).sql for program in PROGRAMS}
    graph.close()
    # The graph in process has the same, and another client runs it.
    assert texts == {world().query(program).sql for program in PROGRAMS}
    with duckdb.connect(str(tmp_path / "a.duckdb"), read_only=True) as connection:
        assert all(connection.execute(text).description for text in texts)
    answer = world().query(PROGRAMS[0])
    assert world().match([("Ann", "knows", "UNKNOWN person 1")]).sql is None
    assert answer.cypher
    one = condgraph.open("memory:")
    one.load([("a", "born", "1984")], name="first")
    one.load([("a", "born", "1985")], name="second")
    part = one.kopl("Find(a) Relate(born, forward) QueryName()", prefer={"born": ["first"]})
    with pytest.raises(UnsupportedError, match=r"SPARQL does not support: .* a preference leaves"):
        part.sparql  # noqa: B018


# -- what is stored ----------------------------------------------------------------------------------


def test_pull_returns_what_was_pushed(pair: tuple[Graph, SqlGraph]) -> None:
    here, there = pair
    pulled = there.store.snapshot()
    assert content_digest(pulled) == content_digest(here.current)
    assert pulled.counts == here.current.counts


def test_a_second_load_adds(opener: Opener) -> None:
    graph = opener("second")
    graph.store.delete()
    graph.add([Statement("a", "p", Ref("b"))], source="one")
    first = graph.store.counts()
    graph.add([Statement("a", "q", "text")], source="two")
    assert graph.store.counts()["relations"] == first["relations"] == 1
    assert graph.store.counts()["attributes"] == 1
    assert graph.delete()
    with pytest.raises(StoreMissingError):
        graph.kopl("FindAll() Count()")


def test_queries_see_other_loads(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/a.duckdb"
    reader, writer = condgraph.open(url), condgraph.open(url)
    for number in range(3):
        writer.add([Statement(f"s{number}", "p", "text")], source=str(number))
        assert [reader.kopl("FindAll() Count()").values for _ in range(2)] == [[number + 1]] * 2
    reader.close()
    # The file itself, by a program that knows nothing of its readers here.
    with duckdb.connect(str(tmp_path / "a.duckdb")) as other:
        other.execute("UPDATE \"condgraph default\".about SET content = 'another'")
        other.execute("DELETE FROM \"condgraph default\".entity WHERE id = 's0'")
    assert reader.kopl("FindAll() Count()").values == [2]
    writer.close()


def test_a_query_reads_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = condgraph.open(f"duckdb:///{tmp_path}/a.duckdb")
    graph.push(world())
    graph.kopl("FindAll() Count()")
    read, queries = type(graph.store.engine).read, list[Any]()
    monkeypatch.setattr(type(graph.store.engine), "read", lambda engine, query: queries.append(query) or read(engine, query))
    assert graph.kopl("FindAll() Count()").values
    assert len(queries) == 1


def test_names_are_quoted(opener: Opener) -> None:
    names = ["O'Hara", 'a"b', "a;b--", "\\'", "Zoë \U0001f600", "%s", "{x}", "'; DROP SCHEMA x; --"]
    graph = opener("names")
    graph.store.delete()
    graph.add(
        [Entity(f"e{n}", name) for n, name in enumerate(names)] + [Statement(f"e{n}", name, name) for n, name in enumerate(names)]
    )
    for name in names:
        find = {"function": "Find", "inputs": [name], "dependencies": []}
        query = {"function": "QueryAttr", "inputs": [name], "dependencies": [0]}
        assert graph.kopl([find, query]).values == [name]


def test_a_text_with_a_nul_is_refused(opener: Opener) -> None:
    graph = opener("nul")
    with pytest.raises(LoadError, match="NUL"):
        graph.add([Statement("a", "p", "b\x00c")])
    assert not graph.store.exists()


# -- what is not written -----------------------------------------------------------------------------


def test_queries_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    graph = condgraph.open(f"duckdb:///{path}")
    with pytest.raises(StoreMissingError):
        graph.kopl("FindAll() Count()")
    assert not path.exists()
    graph.push(world())
    before = path.read_bytes()
    for program in PROGRAMS:
        assert graph.query(program).evidence is not None
    graph.close()
    assert path.read_bytes() == before
    with pytest.raises(ReadOnlyError):
        condgraph.open(f"duckdb:///{path}", read_only=True).delete()


# -- bounds ------------------------------------------------------------------------------------------


def _endless() -> Any:
    return sqlglot.parse_one(
        "SELECT COUNT(*) FROM generate_series(1, 100000) AS a, generate_series(1, 100000) AS b", read="postgres"
    )


def test_a_deadline_ends_the_query(pair: tuple[Graph, SqlGraph]) -> None:
    engine = pair[1].store.engine
    with pytest.raises(DeadlineError), within(0.3):
        engine.read(_endless())
    event = Event()
    Timer(0.2, event.set).start()
    with pytest.raises(CancelledError), within(None, event):
        engine.read(_endless())
    assert pair[1].kopl(PROGRAMS[0]).values


@pytest.mark.service
def test_a_deadline_ends_the_query_on_the_server(server: str) -> None:
    import psycopg

    graph = condgraph.open(server)
    with pytest.raises(DeadlineError), within(0.3):
        graph.store.engine.read(_endless())
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND application_name = 'condgraph'"
    with psycopg.connect(server) as connection:
        assert connection.execute(running).fetchone() == (0,)


@pytest.mark.service
def test_no_message_has_the_password(server: str) -> None:
    for address in (server.replace("/test", "/missing"), "postgresql://test:a%40secret@127.0.0.1:1/test"):
        graph = condgraph.open(address, layout="condgraph")
        with pytest.raises(StoreError) as caught:
            graph.kopl("FindAll() Count()")
        assert "secret" not in f"{caught.value}{caught.value.hint}{graph!r}{graph.store!r}"


# -- what there is not -------------------------------------------------------------------------------


def test_the_table_of_support_has_every_operator() -> None:
    sorts = {Node, Condition, alg.Entities, alg.Facts, alg.Values, alg.Scalar, alg.Table, alg.Solutions}
    assert set(SUPPORT) == set(classes().values()) - sorts
    for name, compiled in {**ENTITIES, **FACTS}.items():
        assert SUPPORT[getattr(alg, name)].startswith("supported") == (compiled is not None), name


def test_patterns(pair: tuple[Graph, SqlGraph]) -> None:
    local, remote = pair
    pattern = [("UNKNOWN a", "UNKNOWN b", "UNKNOWN c")]
    here, there = local.match(pattern, k=5), remote.match(pattern, k=5)
    assert (there.texts, there.hits.totals.tolist()) == (here.texts, here.hits.totals.tolist())
    assert len(here) == 5
    with pytest.raises(OptionError, match="no approximate index"):
        remote.match(pattern, exact=False)


@pytest.mark.parametrize(
    ("place", "options"),
    [("duckdb://a.duckdb", {}), ("duckdb:///", {}), ("postgresql://localhost", {}), ("duckdb:///a", {"user": "x"}),
     ("postgresql://h/d", {"base": "x"}), ("duckdb:///a", {"labels": True}), ("duckdb:///a", {"folder": "x"}),
     ("spark://local", {"folder": "x", "user": "y"})],
)  # fmt: skip
def test_options(place: str, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        condgraph.open(place, **options)


def test_spark_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pyspark.sql", "pyspark.errors", "py4j", "py4j.protocol"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"condgraph\[spark\]"):
        condgraph.open("spark://local[2]", folder="x")


def test_a_file_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    path.write_text("no database")
    with pytest.raises(CondgraphError, match="cannot open"):
        condgraph.open(f"duckdb:///{path}").kopl("FindAll() Count()")
