"""Sources of one name: the same one again, or an error that names both."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import condgraph
from condgraph.engine.errors import SourceError
from condgraph.engine.facts import Statement
from condgraph.loaders.recognise import known_by, recognise
from tests.support import same_sources


@pytest.mark.parametrize("kept", [False, True])
def test_sources_of_one_name(kept: bool, tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store" if kept else "memory:") as graph:
        same_sources.check_names(graph, tmp_path)
    with condgraph.open(tmp_path / "frames" if kept else "memory:") as graph:
        same_sources.check_frames(graph)


def test_the_same_file_by_other_paths_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "sales.csv"
    file.write_text("item,price\nshoe,10\n")
    os.link(file, tmp_path / "a" / "hard.csv")
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    graph = condgraph.open()
    graph.load(file)
    monkeypatch.chdir(tmp_path)
    for again in ("a/sales.csv", "./a/../a/sales.csv", "linked/sales.csv"):
        before = graph.status().counts
        graph.load(again)
        assert graph.status().counts == before
    # What is moved, and what is named from another folder, is known by its content.
    shutil.move(tmp_path / "a", tmp_path / "b")
    graph.load("b/sales.csv")
    assert graph.kopl("FindAll() FilterStr(item, shoe) Count()").values == [1]
    # A copy with the same content is another file: were it one, a month that sold the same would
    # vanish.
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    with pytest.raises(SourceError):
        graph.load("c/sales.csv")


def test_folders_and_patterns(tmp_path: Path) -> None:
    for one in ("x", "y"):
        (tmp_path / one).mkdir()
        for month, price in (("jan", 1), ("feb", 2)):
            (tmp_path / one / f"{month}.csv").write_text(f"item,price\n{one},{price}\n")
    graph = condgraph.open()
    graph.load(str(tmp_path / "x" / "*.csv"))
    before = graph.status().counts
    with pytest.raises(SourceError):
        graph.load(str(tmp_path / "y" / "*.csv"))
    # All or nothing.
    assert graph.status().counts == before
    # Told apart by their folders where they are loaded together.
    both = condgraph.open()
    both.load(str(tmp_path / "*" / "*.csv"))
    assert len(both.status().sources) == 4


def test_exports_keep_what_sources_are_known_by(tmp_path: Path) -> None:
    file = tmp_path / "sales.csv"
    file.write_text("item,price\nshoe,10\n")
    graph = condgraph.open(tmp_path / "store")
    graph.load(file)
    graph.export(tmp_path / "g.jsonl")
    again = condgraph.open()
    again.load(tmp_path / "g.jsonl")
    again.load(tmp_path / "g.jsonl")
    assert [one.content for one in again.status().sources] == [one.content for one in graph.status().sources] != [""]
    file.write_text("item,price\nshoe,11\n")
    with pytest.raises(SourceError):
        again.load(file)
    changed = condgraph.open()
    changed.load(file)
    with pytest.raises(SourceError):
        changed.load(tmp_path / "g.jsonl")


def test_items_are_added_to_what_was_added() -> None:
    graph = condgraph.open()
    graph.add([Statement("a", "p", "1")])
    graph.add([Statement("a", "p", "2")])
    assert sorted(graph.kopl("Find(a) QueryAttr(p)").texts) == ["1", "2"]


FRAMES: list[Any] = [
    pd.DataFrame({"a": [1, 2]}),
    pd.DataFrame({"b": [1, 2]}),
    pd.DataFrame({"a": [1.5, np.nan]}),
    pd.DataFrame({"a": ["x", 1, None]}),
    pd.DataFrame({"a": ["x", 2, None]}),
    pd.DataFrame({"a": [{"x": 1}, {"x": 2}]}),
    pd.DataFrame({"a": [1, 2]}, index=pd.Index(["p", "q"], name="i")),
    pl.DataFrame({"a": [1, 3]}),
    pl.DataFrame({"a": [True, None]}),
    pa.table({"a": [1, 4]}),
    pa.table({"a": ["1", "4"]}),
    [{"a": 1}],
    [{"a": 2}],
    [{"a": float("nan")}],
    [("s", "p", "o")],
    [("s", "p", "o2")],
]


def test_fingerprints_tell_objects_apart() -> None:
    found = [known_by(recognise(one), {}, (), named=False)[0].source.content for one in FRAMES]
    again = [known_by(recognise(one), {}, (), named=False)[0].source.content for one in FRAMES]
    assert found == again
    assert len(set(found)) == len(FRAMES)
    assert "" not in found


def test_readers_that_give_once_are_left_to_the_loader() -> None:
    table = pa.table({"item": ["shoe"], "price": [1]})
    graph = condgraph.open()
    graph.load(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    assert graph.kopl("FindAll() FilterStr(item, shoe) QueryAttr(price)").texts == ["1"]
