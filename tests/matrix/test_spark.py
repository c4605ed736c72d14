"""Exports to Parquet answer on Spark as in process: a real cluster of two executors in processes of their own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph import Graph
from condgraph.cli.app import app
from condgraph.engine.bounds import within
from condgraph.engine.errors import (
    CancelledError,
    CondgraphError,
    DeadlineError,
    OptionError,
    ReadOnlyError,
    StoreError,
    StoreMissingError,
)
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.identity import content_digest
from tests.support.cases import case, differences
from tests.support.differential import Comparison, full_message, shown
from tests.support.graphs import Dice
from tests.support.lanes import by_lane
from tests.support.programs import as_text, program
from tests.support.ugly_shop import STATEMENTS, shop_words
from tests.support.world import PROGRAMS, QUERIES, world

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

ENDLESS = "SELECT COUNT(*) FROM RANGE(100000000) AS a CROSS JOIN RANGE(100000000) AS b"


@pytest.fixture(scope="module")
def spark_server() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    settings = {
        "driver.memory": "1g",
        "executor.memory": "1g",
        "ui.enabled": False,
        "driver.host": "127.0.0.1",
        "log.level": "FATAL",
    }
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    # As some users have it, and as no query relies on.
    others = {"ansi.enabled": False, "session.timeZone": "Asia/Tokyo", "parser.escapedStringLiterals": True}
    for name, value in (others | {"shuffle.partitions": 2}).items():
        builder = builder.config(f"spark.sql.{name}", value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def pair(spark_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, Graph]]:
    here, folder = world(), tmp_path_factory.mktemp("spark") / "it's [a] 'folder'"
    here.export(folder, to="parquet")
    with condgraph.open(spark_server, folder=folder) as there:
        yield here, there


def _exported(here: Graph, folder: Path, session: Any) -> Graph:
    here.export(folder, to="parquet")
    return condgraph.open(session, folder=folder)


def test_programs_answer_as_in_process(pair: tuple[Graph, Graph]) -> None:
    found = Comparison(*pair).ask_all([*PROGRAMS, *QUERIES][:: by_lane(8, 8, 1)], warnings=True, evidence=True)
    assert not found.different, found.report()


def test_programs_of_the_oracle(spark_server: Any, oracle: Path, tmp_path: Path) -> None:
    here = condgraph.open()
    here.load(oracle / "kb_small.json")
    with (oracle / "programs_small.jsonl").open(encoding="utf-8") as lines:
        programs = [json.loads(line)["program"] for line in lines]
    with _exported(here, tmp_path / "oracle", spark_server) as there:
        found = Comparison(here, there).ask_all(programs[:: by_lane(60, 30, 2)])
        # Statements that only qualifiers tell apart have no order.
        for program in programs[7 :: by_lane(400, 200, 20)]:
            first, second = (sorted(map(shown, graph.query(program).evidence)) for graph in (here, there))
            assert first == second, program
    assert not found.different, found.report()


@pytest.mark.parametrize("number", range(by_lane(1, 2, 4)))
def test_random_programs(spark_server: Any, tmp_path: Path, number: int) -> None:
    given = case(number)
    given = replace(given, asked=given.asked[:: by_lane(7, 7, 2)])
    with _exported(given.local, tmp_path / "random", spark_server) as there:
        found = list(differences(given, given.local, there))
    assert not found, "\n".join(str(one)[:2_000] for one in found[:4])


def test_tables_where_they_are(spark_server: Any, tmp_path: Path) -> None:
    """Temporary views, as users make them of their data, with the declarations that their keys are on DuckDB."""
    import duckdb

    given, place = tmp_path / "given.toml", tmp_path / "spark.duckdb"
    given.write_text('[tables.rates]\nrelation = "rated"\n')
    with duckdb.connect(place) as database:
        for statement in STATEMENTS:
            database.execute(statement)
        # Only such a session keeps the letters of names.
        spark_server.conf.set("spark.sql.caseSensitive", True)
        for number, (table,) in enumerate(database.execute("SELECT table_name FROM duckdb_tables()").fetchall()):
            file = tmp_path / f"{number}.parquet"
            database.execute(f"COPY (SELECT * FROM \"{table}\") TO '{file}'")
            spark_server.read.parquet(str(file)).createOrReplaceTempView(f"`{table}`")
    with condgraph.open(f"duckdb:///{place}", mapping=given) as loaded:
        declared = tmp_path / "condgraph.toml"
        declared.write_text(loaded.mapping_file(), encoding="utf-8")
        here = loaded.snapshot()
    there = condgraph.open(spark_server, mapping=declared)
    words, different = shop_words(here), []
    for number in range(by_lane(20, 100, 500)):
        text = as_text(program(Dice(number), words=words, wrong=number % 5 == 0))
        answers = [_told(graph, text, evidence=number % 10 == 0) for graph in (here, there)]
        if answers[0] != answers[1]:
            different.append((text, *map(str, answers)))
    assert not different, different[:3]


def _told(graph: Graph, text: str, *, evidence: bool) -> tuple[Any, ...]:
    try:
        answer = graph.kopl(text)
        facts = (
            sorted(f"{item.subject.id} {item.predicate} {item.object} {item.qualifiers}" for item in answer.evidence)
            if evidence
            else []
        )
        return [re.sub(r"row=\d+", "row=0", repr(value)) for value in answer.values], answer.texts, facts
    except CondgraphError as error:
        return (full_message(error),)


def test_the_whole_graph(pair: tuple[Graph, Graph], spark_server: Any) -> None:
    here, there = pair
    assert content_digest(there.snapshot().current) == content_digest(here.current)
    answer = there.query(PROGRAMS[0])
    assert answer.check().ok
    # The text is one for the user's own session, but for its settings.
    assert spark_server.sql(there.query("FindAll() Count()").sql).collect()[0][0] == answer._store.counts()["entities"]
    assert spark_server.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


def test_names_are_no_sql(spark_server: Any, tmp_path: Path) -> None:
    names = ["O'Hara \\'", 'a"b;--', "\\n Zoë \U0001f600", "%s ${spark.app.name}", "`x` \u001a\t\n :a ?"]
    here = condgraph.open()
    here.add(
        [Entity(f"e{n}", name) for n, name in enumerate(names)] + [Statement(f"e{n}", name, name) for n, name in enumerate(names)]
    )
    with _exported(here, tmp_path / "names", spark_server) as there:
        for name in names:
            find = {"function": "Find", "inputs": [name], "dependencies": []}
            query = {"function": "QueryAttr", "inputs": [name], "dependencies": [0]}
            assert there.kopl([find, query]).values == here.kopl([find, query]).values != []


def test_an_export_is_only_read(pair: tuple[Graph, Graph], spark_server: Any, tmp_path: Path) -> None:
    with pytest.raises(ReadOnlyError, match="only read"):
        pair[1].add([Statement("a", "p", "b")])
    with pytest.raises(StoreMissingError, match="no export"):
        condgraph.open(spark_server, folder=tmp_path).kopl("FindAll() Count()")
    with pytest.raises(OptionError, match=r"local-cluster\[2,1,1024\]"):
        condgraph.open("spark://local[2]", folder=tmp_path)
    here, folder = condgraph.open(), tmp_path / "export"
    here.add([Statement("a", "p", "b")])
    before = {table.name for table in spark_server.catalog.listTables()}
    with _exported(here, folder, spark_server) as there:
        assert there.kopl("FindAll() Count()").values == [1]
        # Graphs of one name are told apart, also where the user asks.
        texts = [graph.kopl("FindAll() Count()").sql for graph in (pair[1], there)]
        assert [spark_server.sql(text).collect()[0][0] for text in texts] == [*pair[0].kopl("FindAll() Count()").values, 1]
        command = ["query", "FindAll() Count()", "-a", "spark://local-cluster[2,1,1024]", "--folder", str(folder)]
        assert CliRunner().invoke(app, command, catch_exceptions=False).stdout.split() == ["1"]
        with condgraph.open(tmp_path / "more") as more:
            more.add([Statement("b", "q", "c")])
        command[2:4] = ["-d", str(tmp_path / "more"), "--also", command[3]]
        assert CliRunner().invoke(app, command, catch_exceptions=False).stdout.split() == ["2"]
        here.add([Statement("c", "p", "b")])
        here.export(folder, to="parquet")
        there.refresh()
        assert there.kopl("FindAll() Count()").values == [2]
        own = there.store.engine
        assert not [view for view in own.listed() if view.name.startswith("condgraph condgraph-")]
    assert {table.name for table in spark_server.catalog.listTables()} == before


def test_a_deadline_ends_the_query(pair: tuple[Graph, Graph], spark_server: Any) -> None:
    engine, event = pair[1].store.engine, Event()
    with pytest.raises(DeadlineError), within(2):
        engine.read(ENDLESS)
    Timer(0.2, event.set).start()
    with pytest.raises(CancelledError), within(None, event):
        engine.read(ENDLESS)
    assert not spark_server.sparkContext.statusTracker().getActiveJobsIds()
    assert pair[1].kopl(PROGRAMS[0]).values


def test_a_session_that_is_lost(pair: tuple[Graph, Graph], spark_server: Any) -> None:
    """The last one, since the application ends here."""
    spark_server.stop()
    with pytest.raises(StoreError, match="has lost the session"):
        pair[1].kopl(PROGRAMS[0])
    pair[1].close()
