"""A graph as a folder of Parquet files: it loads to an equal graph, and DuckDB asks it as it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import LoadError, OptionError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.identity import content_digest
from condgraph.engine.snapshot.directory import try_lock
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.sql import parquet
from tests.support.differential import outcome
from tests.support.world import items

pytest.importorskip("duckdb")

NUMBERS = (-0.0, 5e-324, 1.7976931348623157e308, 10**400, -(2**63) - 1, 2**53 + 1, 0.1)
UGLY: list[Item] = [
    Source('second; "quoted", source', "C:\\x", "csv"),
    Sourced(
        Statement("a", "height", Quantity(1.5, "m²"), (("since", Time.year(2000)),)),
        (("world", 3), ('second; "quoted", source', 7)),
    ),
    Sourced(Statement("a", "raw", "5-10", raw=" 5-10 "), (("world", 1),)),
    Sourced(Statement("a", "raw", "5-10", raw="5–10"), (('second; "quoted", source', 2),)),
    Sourced(Entity("row 1", "Zeile 'eins'", EntityKind.ROW, 1), (("world", 1),)),
    Statement("row 1", "empty", ""),
    Statement("a", "../../etc", 'one\ntwo "three", four; five\\six\r\n\t\x00\x1f'),
    Statement("a", "Ω=1/城", "ﷺ\U0001f600\u202e"),
    Statement("a", "1984", UNKNOWN),
    Statement("a", "died", Time.year(-44), (("at", Time.day(-44, 3, 15)), ("with", Ref("b")), ("with", Ref("row 1")))),
    Statement("a", "term", Ref("b"), (("start time", Time.day(1999, 1, 1)), ("end time", Time.day(2001, 1, 1)))),
    *(Statement("a", "number", Quantity(number, unit)) for number in NUMBERS for unit in ("1", "km/h")),
    Subclass("C'", "D"),
    Member("a", "C'"),
]  # fmt: skip


@pytest.fixture
def ugly() -> Graph:
    graph = condgraph.open()
    graph.add([*items(), *UGLY], source="world")
    return graph


def test_it_loads_to_an_equal_graph(ugly: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP", 3)
    monkeypatch.setattr(parquet, "_FILE", 6)
    folder = tmp_path / "it's [a] folder"
    assert ugly.export(folder, to="parquet") == ugly.current.statements
    assert len(list((folder / "statement").iterdir())) == -(-ugly.current.statements // 6)
    copy = condgraph.open()
    report = copy.load(folder)
    assert report.formats == ("condgraph-parquet",)
    assert not report.warnings
    assert content_digest(copy.current) == content_digest(ugly.current)
    spilled = condgraph.open(tmp_path / "store")
    spilled.load(folder, memory="512 MiB")
    assert content_digest(spilled.current) == content_digest(ugly.current)
    empty = condgraph.open()
    empty.add([Source("nothing")])
    empty.export(tmp_path / "empty", to="parquet")
    again = condgraph.open()
    again.load(tmp_path / "empty")
    assert content_digest(again.current) == content_digest(empty.current)


def test_duckdb_asks_the_files(ugly: Graph, tmp_path: Path) -> None:
    import duckdb

    folder = tmp_path / "it's [a] folder"
    ugly.export(folder, to="parquet")
    with duckdb.connect(tmp_path / "views.duckdb") as database:
        database.execute((folder / "views.sql").read_text(encoding="utf-8"))
        rows = database.execute(
            "SELECT count(*) FROM read_parquet(?)", [str(folder / "statement/*.parquet").replace("[a]", "[[]a]")]
        )
        assert rows.fetchall() == [(ugly.current.statements,)]
    with condgraph.open(f"duckdb:///{tmp_path / 'views.duckdb'}", graph=ugly.name) as there:
        for program in (
            "FindAll() FilterNum(number, 1, >) QueryName()",
            "Find(a) QueryAttr(number)",
            "Find(a) Relate(term, forward) QueryName()",
        ):
            assert outcome(there, program, evidence=True) == outcome(ugly, program, evidence=True)
        assert content_digest(there.snapshot().current) == content_digest(ugly.current)


def test_a_folder_is_replaced_whole_or_not_at_all(ugly: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(OptionError, match="is not the export of a graph"):
        ugly.export(other, to="parquet")
    with pytest.raises(OptionError, match="folder"):
        ugly.export((tmp_path / "x").open("w"), to="parquet")
    folder = tmp_path / "files"
    ugly.export(folder, to="parquet")
    before = json.loads((folder / parquet.MARK).read_text())
    monkeypatch.setattr(parquet, "_views", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ugly.export(folder, to="parquet")
    assert json.loads((folder / parquet.MARK).read_text()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "other", "x"]
    monkeypatch.undo()
    ugly.export(folder, to="parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "other", "x"]


_KILLED = """
import os, signal, condgraph
from condgraph.sql import parquet
graph = condgraph.open()
graph.add([condgraph.Statement("a", "b", "c")])
kill, replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL), os.replace
if {late}:
    parquet.os.replace = lambda one, two: replace(one, two) if str(two).endswith("export") else kill()
else:
    parquet._views = kill
graph.export({folder!r}, to="parquet")
"""


@pytest.mark.parametrize("late", [False, True])
def test_what_a_killed_export_left_is_cleared(ugly: Graph, tmp_path: Path, late: bool) -> None:
    folder, mine = tmp_path / "files [1]", tmp_path / ".files [1].7.condgraph"
    ugly.export(folder, to="parquet")
    mine.mkdir()
    killed = subprocess.run([sys.executable, "-c", _KILLED.format(late=late, folder=str(folder))], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = sorted(path.name for path in tmp_path.iterdir() if path.name.endswith(".condgraph-export"))
    assert len(left) == 1 + late
    assert folder.exists() is not late
    # One that is still running is left alone.
    handle = os.open(tmp_path / left[0], os.O_RDONLY)
    assert try_lock(handle)
    ugly.export(folder, to="parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([left[0], mine.name, folder.name])
    os.close(handle)
    ugly.export(folder, to="parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, folder.name])


def test_files_that_do_not_fit_together_are_an_error(ugly: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    ugly.export(folder, to="parquet")
    path = folder / "statement" / "part-00000.parquet"
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.slice(1), path)
    with pytest.raises(LoadError, match="rows"):
        condgraph.open().load(folder)
    at = table.schema.get_field_index("s")
    pyarrow.parquet.write_table(table.set_column(at, "s", pyarrow.array([10**6] * len(table), pyarrow.int32())), path)
    with pytest.raises(LoadError, match="fit together"):
        condgraph.open().load(folder)
    path.write_bytes(b"PAR1")
    with pytest.raises(LoadError, match="fit together"):
        condgraph.open().load(folder)
