"""Parquet, Arrow, pandas, polars and records: every type, the same facts as from text, and what is
bad in them.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

import condgraph
from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import Batch, Entity, Item, Numbers, Ref, Source, Statement, Texts
from condgraph.engine.values import Quantity, Time, text_of
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.export import statements_of
from condgraph.loaders.feather import FORMAT as FEATHER
from condgraph.loaders.table.arrow import DATAFRAME, PARQUET
from condgraph.loaders.table.records import JSONL
from condgraph.loaders.table.text import CSV


def load(source: Any, on_error: OnError = "raise", **options: Any) -> tuple[list[Item], Reading]:
    form = DATAFRAME
    if isinstance(source, Path):
        form = {".parquet": PARQUET, ".feather": FEATHER, ".csv": CSV, ".jsonl": JSONL}[source.suffix]
    reading = Reading(Source("t", str(source) if isinstance(source, Path) else ""), on_error)
    form.check_options(options)
    return list(form.read(source, reading, options)), reading


def statements(items: list[Item]) -> list[Statement]:
    return [one for item in items if isinstance(item, Batch) for one in statements_of(item)]


def facts(source: Any, on_error: OnError = "raise", **options: Any) -> dict[str, list[str]]:
    """Printed values by predicate, with their rows: "1: x"."""
    found: dict[str, list[str]] = {}
    for one in statements(load(source, on_error, **options)[0]):
        text = one.object.id if isinstance(one.object, Ref) else text_of(one.object)
        found.setdefault(one.predicate, []).append(f"{one.row}: {text}")
        assert one.subject == f"t/{one.row}"
    return found


def feather_file(tmp_path: Path, table: pa.Table) -> Path:
    path = tmp_path / "t.feather"
    feather.write_feather(table, path, compression="zstd")
    return path


def parquet(tmp_path: Path, table: pa.Table) -> Path:
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    return path


TYPES = {
    "int": (pa.array([1, None, 3], pa.int32()), ["1: 1", "3: 3"]),
    "huge": (pa.array([2**64 - 1, 1, None], pa.uint64()), ["1: 18446744073709551615", "2: 1"]),
    "float": (pa.array([1.5, float("nan"), None]), ["1: 1.5"]),
    "infinite": (pa.array([1.5, float("-inf"), None]), ["1: 1.5", "2: -inf"]),
    "decimal": (pa.array([Decimal("1.50"), None, Decimal("-2")]), ["1: 1.5", "3: -2"]),
    "long decimal": (
        pa.array([Decimal("0.1000000000000000055511151231257827"), None, None]),
        ["1: 0.1000000000000000055511151231257827"],
    ),
    "bool": (pa.array([True, False, None]), ["1: true", "2: false"]),
    "day": (pa.array([dt.date(1800, 1, 1), None, dt.date(2010, 3, 5)]), ["1: 1800-01-01", "3: 2010-03-05"]),
    "midnight": (pa.array([dt.datetime(2010, 3, 5), None, dt.datetime(1960, 1, 1)]), ["1: 2010-03-05", "3: 1960-01-01"]),
    "moment": (
        pa.array([dt.datetime(2010, 3, 5), None, dt.datetime(1960, 1, 1, 1, 2, 3, 400_000)]),
        ["1: 2010-03-05T00:00:00", "3: 1960-01-01T01:02:03"],
    ),
    "zone": (pa.array([0, None, 3600], pa.timestamp("s", "Europe/Paris")), ["1: 1970-01-01T00:00:00", "3: 1970-01-01T01:00:00"]),
    "clock": (
        pa.array([dt.time(1, 0), None, dt.time(0, 0, 0, 500_000)]),
        ["1: 3600 second of the day", "3: 0.5 second of the day"],
    ),
    "duration": (pa.array([dt.timedelta(seconds=5), None, dt.timedelta(seconds=-0.5)]), ["1: 5 second", "3: -0.5 second"]),
    "text": (pa.array(["1,234", "n/a", "3rd"]), ["1: 1234", "3: 3"]),
    "view": (pa.array(["x", None, "y"], pa.string_view()), ["1: x", "3: y"]),
    "category": (pa.array(["x", None, "x"]).dictionary_encode(), ["1: x", "3: x"]),
    "bytes": (pa.array([b"x", None, b"y"]), ["1: x", "3: y"]),
    "list": (pa.array([[1, 2], [], None]), ["1: 1", "1: 2"]),
    "year": (pa.array([1999, None, 2001]), ["1: 1999", "3: 2001"]),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("through", ["arrow", "parquet", "feather"])
def test_columns_keep_their_type(tmp_path: Path, name: str, through: str) -> None:
    array, expected = TYPES[name]
    table = pa.table({"n": range(3), name: array})
    source = table if through == "arrow" else {"parquet": parquet, "feather": feather_file}[through](tmp_path, table)
    assert sorted(facts(source)[name]) == expected


def test_years_and_days_are_told_from_numbers_as_in_text() -> None:
    table = pa.table({"Year": [1999, 2001], "Score": [1999, 2001], "Founded": [1999.0, None]})
    kinds = {one.predicate: type(one.object) for one in statements(load(table)[0])}
    assert kinds == {"Year": Time, "Score": Quantity, "Founded": Time}
    kinds = {one.predicate: type(one.object) for one in statements(load(table, types={"Year": "number", "Score": "time"})[0])}
    assert kinds == {"Year": Quantity, "Score": Time, "Founded": Time}


def test_structs_are_flattened_and_lists_give_several_statements() -> None:
    table = pa.table({"s": [{"a": 1, "b": {"c": ["x", "y"]}}, None, {"a": None, "b": {"c": []}}]})
    assert facts(table) == {"s.a": ["1: 1"], "s.b.c": ["1: x", "1: y"]}


@pytest.mark.parametrize("column", [[[[1]], [[2]]], [[{"a": 1}], []], [b"\xff", b"\xfe"]])
def test_what_is_no_cell_is_bad(column: list[Any]) -> None:
    table = pa.table({"n": [1, 2], "x": column})
    with pytest.raises(LoadError, match="field 'x'"):
        load(table)


def test_unreadable_columns_are_left_out_on_request() -> None:
    table = pa.table({"n": [1, 2], "x": [[[1]], [[2]]]})
    items, reading = load(table, "skip")
    assert reading.skipped == 1
    assert len(statements(items)) == 2


def test_keys_names_and_references() -> None:
    table = pa.table({"id": [7, 8, 7], "name": ["x", None, "z"], "of": ["A", "B", "C"], "n": [1, 2, 3]})
    items, reading = load(table, "skip", key="id", name_column="name", refs=["of"])
    assert [(item.id, item.name, item.row) for item in items if isinstance(item, Entity)] == [("t/7", "x", 1), ("t/8", "8", 2)]
    assert (reading.skipped, reading.warned) == (1, 1)
    found = [(one.subject, one.object) for one in statements(items) if one.predicate in ("of", "n")]
    assert found == [("t/7", Ref("A")), ("t/8", Ref("B")), ("t/7", Quantity(1)), ("t/8", Quantity(2))]


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "c": pd.Categorical(["p", "q"]),
            "t": pd.to_datetime(["2010-03-05", "2011-01-01"]),
            "m": pd.period_range("2010-01", periods=2, freq="M"),
            "s": ["206 cm", "188 cm"],
        }
    )
    assert facts(frame) == {
        "i": ["1: 1"],
        "c": ["1: p", "2: q"],
        "t": ["1: 2010-03-05", "2: 2011-01-01"],
        "m": ["1: 2010-01", "2: 2010-02"],
        "s": ["1: 206 cm", "2: 188 cm"],
    }
    assert facts(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])) == {"a": ["1: 1", "2: 3"], "a (2)": ["1: 2", "2: 4"]}


def test_pandas_indexes_and_mixed_columns_are_not_lost_in_silence() -> None:
    assert facts(pd.DataFrame({"a": [1]}, index=pd.Index(["k"], name="key"))) == {"key": ["1: k"], "a": ["1: 1"]}
    items, reading = load(pd.DataFrame({"a": [1, 2]}).iloc[1:].sort_index(key=lambda index: -index).set_index(pd.Index([7])))
    assert len(statements(items)) == 1
    assert "reset_index" in reading.problems[0].message
    items, reading = load(pd.DataFrame({"a": [1, "x", None, 2.5]}))
    assert [text_of(one.object) for one in statements(items) if not isinstance(one.object, Ref)] == ["1", "x", "2.5"]
    assert "several types" in reading.problems[0].message
    with pytest.raises(LoadError, match="type set cannot be a cell"):
        load(pd.DataFrame({"a": [1, {2}]}))


def test_polars() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [[1], [2, 3]], "d": [dt.date(2010, 1, 1), None]})
    expected = {"a": ["1: 1", "2: 2"], "b": ["1: x"], "c": ["1: 1", "2: 2", "2: 3"], "d": ["1: 2010-01-01"]}
    assert facts(frame) == facts(frame.lazy()) == expected
    # Texts of polars are views, and those of categories dictionaries of views.
    words = pl.Series(["x", None, "y"])
    kinds = pl.DataFrame(
        {"a": words.cast(pl.Categorical), "b": words.cast(pl.Enum(["x", "y"])), "c": words.cast(pl.Categorical).reshape((3, 1))}
    )
    assert facts(kinds[:1]) == {"a": ["1: x"], "b": ["1: x"], "c": ["1: x"]}
    with pytest.raises(LoadError, match="Arrow cannot read this"):
        condgraph.open("memory:").load(pl.DataFrame({"a": pl.Series([2**70], dtype=pl.Int128)}))


def test_records() -> None:
    records = [
        {"a": 1, "b": {"c": [1, 2]}, "year": 1999, "x": np.float32(0.5)},
        {"a": "7 km", "z": dt.date(2000, 1, 1), "year": "2001", "x": float("nan"), "t": True},
    ]
    assert facts(records) == {
        "a": ["1: 1", "2: 7 km"],
        "b.c": ["1: 1", "1: 2"],
        "year": ["1: 1999", "2: 2001"],
        "x": ["1: 0.5"],
        "z": ["2: 2000-01-01"],
        "t": ["2: true"],
    }
    with pytest.raises(LoadError, match="row 2, field 'a': a value of type set"):
        load([{"a": 1}, {"a": {2}}])


def test_objects_that_are_no_table() -> None:
    for thing in (5, "x", [1, 2], {"a": 1}, object()):
        assert not DATAFRAME.claims(thing)
        with pytest.raises(FormatError):
            load_dataframe(thing)
    for thing in (pa.table({"a": [1]}), pd.DataFrame(), pl.DataFrame(), pl.LazyFrame(), [{"a": 1}]):
        assert DATAFRAME.claims(thing)
    with pytest.raises(LoadError, match="no columns"):
        load(pd.DataFrame())


def load_dataframe(thing: Any) -> list[Item]:
    return list(DATAFRAME.read(thing, Reading(Source("t")), {}))


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1.50, "b": "x", "n": 12345678901234567890123}\n\n{"a": null, "b": ["y", "z"], "d": {"e": true}}\n')
    assert facts(path) == {"a": ["1: 1.5"], "b": ["1: x", "2: y", "2: z"], "n": ["1: 12345678901234567890123"], "d.e": ["2: true"]}
    assert next(one.raw for one in statements(load(path)[0])) == "1.50"


BAD_LINES = {
    '{"a": 1, "a": 2}': "the key 'a' occurs more than once",
    "[1]": "a record is a JSON object",
    '{"a": }': "not JSON: Expecting value at character 7",
    '{"a": "\\ud800"}': "not text",
    '{"a": {"b": 1}, "a.b": 2}': "'a.b' occurs more than once",
    '{"a": ' * 2000: "(not JSON|too deep)",
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.items())
def test_bad_json_lines(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"a": 1}}\n{line}\n{{"a": 3}}\n')
    with pytest.raises(LoadError, match=message):
        load(path)
    items, reading = load(path, "skip")
    assert [one.row for one in statements(items)] == [1, 3]
    assert reading.skipped == 1


def test_json_lines_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": "x"}\n{"a": "\xff"}\n')
    with pytest.raises(LoadError, match="row 2, field 'a': the text holds bytes"):
        load(path)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(LoadError, match="Arrow cannot read this"):
        load(path)
    with pytest.raises(LoadError, match="no such file"):
        load(path.with_name("none.parquet"))


def test_damaged_feather(tmp_path: Path) -> None:
    table = pa.table({"name": ["Ann", "Bob", "Cleo"] * 40, "size": range(120)})
    whole = feather_file(tmp_path, table).read_bytes()
    rows = facts(feather_file(tmp_path, table))
    path = tmp_path / "damaged.feather"
    for cut in range(8, len(whole), 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(LoadError):
            load(path)
    for at in range(0, len(whole), 31):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with contextlib.suppress(LoadError):
            load(path)
    path.write_bytes(whole)
    assert facts(path) == rows


def test_a_feather_file_is_recognised_and_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "sizes.arrow"
    feather.write_feather(pa.table({"name": [f"n{at}" for at in range(70_000)], "size": range(70_000)}), path, compression="lz4")
    graph = condgraph.open("memory:")
    assert list(graph.load(path, key="name").sources) == ["sizes"]
    assert graph.query("FindAll() FilterConcept(sizes)", table="show count(), sum(size)").values[0][0] == 70_000


TABLES = st.fixed_dictionaries(
    {
        "n": st.lists(st.integers(-(10**6), 10**6) | st.none(), min_size=4, max_size=4),
        "Year": st.lists(st.integers(990, 2110) | st.none(), min_size=4, max_size=4),
        "d": st.lists(st.dates(min_value=dt.date(1000, 1, 1)) | st.none(), min_size=4, max_size=4),
        "s": st.lists(st.sampled_from(["x", "1,234", "5 km", "", "-"]) | st.none(), min_size=4, max_size=4),
    }
)


@given(TABLES)
def test_a_table_is_the_same_whatever_it_comes_in(tmp_path_factory: pytest.TempPathFactory, columns: dict[str, list[Any]]) -> None:
    folder = tmp_path_factory.mktemp("same")
    table = pa.table(columns, schema=pa.schema([("n", pa.int64()), ("Year", pa.int64()), ("d", pa.date32()), ("s", pa.string())]))
    records = table.to_pylist()
    (folder / "t.csv").write_text(
        "n,Year,d,s\n" + "".join(",".join('""' if one is None else f'"{one}"' for one in row.values()) + "\n" for row in records)
    )
    (folder / "t.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in records))
    expected = sorted(map(str, statements(load(table)[0])))
    for source in (parquet(folder, table), folder / "t.csv", folder / "t.jsonl", pl.from_arrow(table), records):
        assert sorted(map(str, statements(load(source)[0]))) == expected


@given(st.binary(max_size=120) | st.text(st.sampled_from('{}[]":,a1\n\\ué '), max_size=40).map(str.encode))
def test_hostile_json_lines_raise_typed_errors_only(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("hostile") / "t.jsonl"
    path.write_bytes(content)
    with contextlib.suppress(LoadError):
        load(path, "skip")


@pytest.mark.slow
def test_speed(tmp_path: Path) -> None:
    rows = 100_000
    table = pa.table(
        {
            "n": range(rows),
            "x": np.arange(rows) / 7,
            "d": np.datetime64("1990-01-01") + np.arange(rows) % 9999,
            "s": ["a", "b"] * (rows // 2),
        }
    )
    path = parquet(tmp_path, table)
    started = time.process_time()
    items = load(path)[0]
    batches = [item for item in items if isinstance(item, Batch)]
    assert sum(map(len, batches)) == 4 * rows
    assert {type(batch.objects).__name__ for batch in batches} == {Numbers.__name__, "Times", Texts.__name__}
    # Measured at 400,000 statements a second; a machine that is busy with other things is given a
    # third of that.
    assert 4 * rows / (time.process_time() - started) > 130_000
