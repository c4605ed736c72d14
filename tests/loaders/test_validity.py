"""Times of rows: columns that say when the rows of a table hold."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import LoadError, OptionError

Row = tuple[str, int, str, str]


def history(seed: int) -> list[Row]:
    """Prices of products, one after the other, with gaps in what is known and two ways to write no end."""
    drawn, rows = random.Random(seed), []
    for product in range(20):
        day = date(2000, 1, 1) + timedelta(days=drawn.randrange(2000))
        for version in range(drawn.randint(1, 4)):
            after = day + timedelta(days=drawn.randint(1, 600))
            start = day.isoformat() if drawn.random() < 0.9 else ""
            end = after.isoformat() if drawn.random() < 0.7 else drawn.choice(["", "9999-12-31"])
            rows.append((f"P{product}-{version}", drawn.randint(1, 99), start, end))
            day = after
    return rows


def written(path: Path, rows: list[Row]) -> Path:
    path.write_text("id,price,valid_from,valid_to\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows), encoding="utf-8")
    return path


FORMS: list[tuple[str, Callable[[str, str], bool]]] = [
    ("[valid_from, valid_to)", lambda at, end: at < end),
    ("[valid_from, valid_to]", lambda at, end: at <= end),
]


@pytest.mark.parametrize(("times", "before"), FORMS)
@pytest.mark.parametrize("given", ["file", "folder", "declaration", "frame"])
def test_rows_at_a_time(tmp_path: Path, times: str, before: Callable[[str, str], bool], given: str) -> None:
    rows = history(5)
    graph = condgraph.open()
    path = written(tmp_path / "prices.csv", rows)
    if given == "file":
        graph.load(path, key="id", times=times)
    elif given == "frame":
        columns: list[Any] = [dict(zip(("id", "price", "valid_from", "valid_to"), row, strict=True)) for row in rows]
        graph.load(columns, name="prices", key="id", times=times)
    elif given == "folder":
        written(tmp_path / "other.csv", rows[:3])
        graph.load(tmp_path, primary={"prices": "id"}, times={"prices": times}, join=False)
    else:
        (tmp_path / "condgraph.toml").write_text(f'[tables.prices]\nkey = "id"\ntimes = "{times}"\n', encoding="utf-8")
        graph.load(tmp_path)
    days = [date(2000, 1, 1) + timedelta(days=130 * step) for step in range(25)]
    # The days on which something ends tell whether the end is included.
    every = [*map(str, days), *(end for *_, end in rows[:12] if end and end < "9999")]
    for at in every:
        expected = [name for name, price, start, end in rows if price > 50 and start <= at and (not end or before(at, end))]
        names = graph.query("FindAll() FilterNum(price, 50, >) QueryName()", at=at).texts
        # In a folder rows are named after their tables.
        own = [name.removeprefix("prices/") for name in names if not name.startswith("other/")]
        assert sorted(own) == sorted(expected), at


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("valid_from, valid_to", "does not say whether the end is included"),
        ("(valid_from, valid_to]", "does not say whether the end is included"),
        ("[valid_form, valid_to)", "which the table does not have"),
        ("[,)", "names no column"),
        ("", "no interval of columns"),
        (3, "no interval of columns"),
    ],
)
def test_what_is_no_interval(tmp_path: Path, times: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("(", r"\(")):
        condgraph.open().load(written(tmp_path / "prices.csv", history(1)), key="id", times=times)


def test_rows_that_hold_at_no_time(tmp_path: Path) -> None:
    rows = [("a", 1, "2001-01-01", "2000-01-01"), ("b", 2, "2001", "infinity"), ("c", 3, "soon", "2004"), ("d", 4, "", "")]
    path = written(tmp_path / "prices.csv", rows)
    with pytest.raises(LoadError, match="the row holds at no time"):
        condgraph.open().load(path, key="id", times="[valid_from, valid_to]")
    graph = condgraph.open()
    report = graph.load(path, key="id", times="[valid_from, valid_to]", on_error="skip")
    assert [problem.row for problem in report.problems if problem.skipped] == [1, 3]
    assert graph.query("FindAll() FilterNum(price, 0, >) QueryName()", at="2010").texts == ["b", "d"]


def test_ends_that_are_starts(tmp_path: Path) -> None:
    rows = [("a", 1, "2001-01-01", "2002-01-01"), ("b", 2, "2002-01-01", "2003-01-01"), ("c", 3, "2003-01-01", "")]
    path = written(tmp_path / "prices.csv", rows)
    report = condgraph.open().load(path, key="id", times="[valid_from, valid_to]")
    assert "2 of 2 ends in 'valid_to' are starts of other rows" in report.problems[0].message
    assert not condgraph.open().load(path, key="id", times="[valid_from, valid_to)").problems
    point = condgraph.open()
    point.load(path, key="id", times="valid_from")
    assert point.query("FindAll() FilterNum(price, 0, >) QueryName()", at="2002").texts == ["b"]
