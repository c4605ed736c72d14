"""The export: everything survives both ways, exactly, and whatever is no export is told."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import (
    Batch,
    Entity,
    EntityKind,
    Ids,
    Item,
    Member,
    Numbers,
    Ref,
    Source,
    Sourced,
    Statement,
    Subclass,
    Times,
)
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN, UNKNOWN_END, UNKNOWN_START, Precision, Quantity, Time
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.export import FORMAT, decode_value, encode, encode_value, write

TEXTS = st.text(st.characters(codec="utf-8"))
IDS = st.text(st.characters(codec="utf-8"), min_size=1)
NUMBERS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False)
)
BOUNDS = st.integers(UNKNOWN_START, OPEN_END)
DAYS = st.dates().map(lambda day: Time.day(day.year, day.month, day.day))
TIMES = st.one_of(
    DAYS,
    st.integers(-20_000, 20_000).map(Time.year),
    st.builds(Time.month, st.integers(-20_000, 20_000), st.integers(1, 12)),
    st.tuples(DAYS, DAYS).map(lambda pair: Time.span(min(pair), max(pair))),
    st.tuples(BOUNDS, BOUNDS, st.sampled_from(Precision))
    .filter(lambda parts: parts[0] != parts[1])
    .map(lambda parts: Time(min(parts[:2]), max(parts[:2]), parts[2])),
)
VALUES = st.one_of(TEXTS, st.builds(Ref, IDS), st.builds(Quantity, NUMBERS, TEXTS), TIMES, st.just(UNKNOWN))
#: A snapshot keeps rows in 32 bits.
ROWS = st.integers(0, 2**31 - 1)
PLAIN = st.one_of(
    st.builds(Entity, IDS, TEXTS, st.sampled_from(EntityKind), ROWS),
    st.builds(Member, IDS, IDS, ROWS),
    st.builds(Subclass, IDS, IDS, ROWS),
    st.builds(
        Statement, IDS, IDS, VALUES, st.lists(st.tuples(IDS, VALUES), max_size=3).map(tuple), ROWS, st.one_of(st.none(), TEXTS)
    ),
)
ITEMS = st.one_of(PLAIN, st.builds(Sourced, PLAIN, st.lists(st.tuples(IDS, ROWS), max_size=3).map(tuple)))


def same(one: Any, other: Any) -> bool:
    """Equality that tells 1 from 1.0 and from Decimal(1), and 0.0 from -0.0."""
    return repr(one) == repr(other)


def read(path: Path, on_error: OnError = "raise") -> tuple[list[Item], Reading]:
    reading = Reading(Source("export", str(path)), on_error)
    return list(FORMAT.read(path, reading, {})), reading


@given(VALUES)
def test_values_survive(value: Any) -> None:
    assert same(decode_value(json.loads(json.dumps(encode_value(value)))), value)


@given(st.lists(ITEMS, max_size=5))
def test_items_survive(tmp_path_factory: pytest.TempPathFactory, items: list[Item]) -> None:
    path = tmp_path_factory.mktemp("e") / "graph.jsonl"
    sources = [Source("films", "films.csv", "csv")]
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        assert write([*sources, *items], stream, graph="g") == len(items) + 1
    # What no source is said of is the only source's.
    bare = [isinstance(one, Entity) and one.kind is not EntityKind.ROW for one in items]
    expected = [Sourced(one, (("films", one.row),)) if own else one for one, own in zip(items, bare, strict=True)]
    assert same(read(path)[0], [*sources, *expected])


@pytest.mark.parametrize(
    "time",
    [
        Time(OPEN_START, 0, Precision.SPAN),
        Time(0, OPEN_END, Precision.SPAN),
        Time(0, UNKNOWN_END, Precision.SPAN),
        Time.second(2000, 1, 1, 12, 30),
    ],
)
def test_times_with_open_and_unknown_ends(time: Time) -> None:
    assert same(decode_value(encode_value(time)), time)


def test_a_batch_is_written_as_its_statements(tmp_path: Path) -> None:
    starts = np.array([0, 86_400], np.int64)
    batches: Sequence[Item] = [
        Batch(["a", "b"], "r", Ids(["x", "y"]), range(1, 3), None, [("q", [None, Quantity(1)])]),
        Batch(["a"], ["n"], Numbers(np.array([7], np.int64), "m"), [3], ["7 m"]),
        Batch(["a", "b"], "t", Times(starts, starts + 86_400, np.array([3, 3], np.int8)), [4, 5]),
        Batch([], "r", Ids([]), []),
    ]
    path = tmp_path / "graph.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        assert write(batches, stream) == 6
    assert same(
        read(path)[0],
        [
            Statement("a", "r", Ref("x"), (), 1),
            Statement("b", "r", Ref("y"), (("q", Quantity(1)),), 2),
            Statement("a", "n", Quantity(7, "m"), (), 3, "7 m"),
            Statement("a", "t", Time.day(1970, 1, 1), (), 4),
            Statement("b", "t", Time.day(1970, 1, 2), (), 5),
        ],
    )


def test_the_lines_as_they_are_written() -> None:
    statement = Statement("f1", "cost", Quantity(Decimal("1.10"), "USD"), (("when", Time.year(1992)),), 3, "$1.10")
    assert encode(Sourced(statement, (("films", 3), ("more", 0)))) == (
        '{"s":"f1","p":"cost","o":{"n":"1.10","u":"USD"},"q":[["when",{"t":"1992","precision":"year"}]],"raw":"$1.10","row":3,'
        '"src":[["films",3],["more",0]]}'
    )
    assert encode(Entity("c", "é", EntityKind.CONCEPT)) == '{"entity":"c","name":"é","kind":"concept"}'
    stream = io.StringIO()
    write([], stream, graph="g")
    assert stream.getvalue() == '{"condgraph":1,"graph":"g","sources":[]}\n'


@pytest.mark.parametrize("number", [math.nan, math.inf, Decimal("NaN")])
def test_numbers_that_json_cannot_hold(number: Any) -> None:
    with pytest.raises(LoadError, match="finite"):
        encode(Statement("a", "r", Quantity(number)))


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "[]",
        "{}",
        "[" * 100_000,
        '{"s":"a","p":"r"}',
        '{"s":"a","p":"r","o":3}',
        '{"s":"a","p":"r","o":{"n":NaN}}',
        '{"s":"a","p":"r","o":{"n":1e400}}',
        '{"s":"a","p":"r","o":{"n":"many"}}',
        '{"s":"a","p":"r","o":{"n":true}}',
        '{"s":"a","p":"r","o":{"t":"2000-02-30","precision":"day"}}',
        '{"s":"a","p":"r","o":{"t":"2000","precision":"day"}}',
        '{"s":"a","p":"r","o":{"t":"2000","precision":"era"}}',
        '{"s":"a","p":"r","o":{"t":"x","precision":"span","start":2,"end":1}}',
        '{"s":"a","p":"r","o":{"unknown":false}}',
        '{"s":"a","p":"r","o":{"ref":""}}',
        '{"s":"a","p":"r","o":"\\ud800"}',
        '{"s":"a","p":"r","o":"x","q":{"k":"v"}}',
        '{"s":"a","p":"r","o":"x","q":[["k"]]}',
        '{"s":"a","p":"r","o":"x","row":-1}',
        '{"s":"a","p":"r","o":"x","src":[["f"]]}',
        '{"s":"a","p":"r","o":"x","extra":1}',
        '{"s":"a","p":"r","o":"x","o":"y"}',
        '{"s":"a","p":"r","o":"x","raw":1}',
        '{"entity":"a","kind":"thing"}',
        '{"entity":""}',
        '{"member":"a"}',
        '{"source":3}',
    ],
)
def test_bad_lines(tmp_path: Path, line: str) -> None:
    path = tmp_path / "graph.jsonl"
    path.write_text('{"condgraph":1}\n' + line + '\n\n{"entity":"a"}\n')
    with pytest.raises(LoadError, match="row 2") as caught:
        read(path)
    assert caught.value.row == 2
    items, reading = read(path, "skip")
    assert items == [Entity("a", "a")]
    assert [(one.row, one.skipped) for one in reading.problems] == [(2, True)]


@pytest.mark.parametrize(
    "text", ["", '{"s":"a","p":"r","o":"x"}\n', '{"condgraph":true}\n', '{"condgraph":1,"sources":[3]}\n', "x"]
)
def test_what_is_no_export(tmp_path: Path, text: str) -> None:
    path = tmp_path / "graph.jsonl"
    path.write_text(text)
    with pytest.raises(FormatError, match="begins with a line"):
        read(path)


def test_a_later_version(tmp_path: Path) -> None:
    path = tmp_path / "graph.jsonl"
    path.write_text('{"condgraph":2}\n')
    with pytest.raises(LoadError, match="version 2"):
        read(path)
