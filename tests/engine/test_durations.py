"""Durations: ISO 8601 and clock times as quantities, differences of times, and how clocks show them; times cut to a unit and
in time zones.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import condgraph
from condgraph.engine.errors import OptionError, ParseError, PlanError
from condgraph.engine.operands import Inapplicable
from condgraph.engine.reading.times import read_duration
from condgraph.engine.time_parts import TRUNCATIONS, in_zone, truncated
from condgraph.engine.units import clock_text, conversions
from condgraph.engine.values import Quantity, Time

RACES = [
    {"race": "a", "net": "2:03:59", "lap": "1:45.32", "rest": "PT1H30M", "term": "P1Y2M", "mixed": "P1M3D"}
    | {"started": "2024-01-31 10:30:00", "ended": "2024-01-31 12:34:01"},
    {"race": "b", "net": "2:04:00", "lap": "1:45.4", "rest": "PT36M", "term": "P3M", "mixed": "P2D"}
    | {"started": "2024-03-31 00:30:00", "ended": "2024-04-01 00:30:00"},
    {"race": "c", "net": "1:59:40", "lap": "1:46", "rest": "-PT0.5S", "term": "P2Y", "mixed": "P1W"}
    | {"started": "2023-12-31 23:00:00", "ended": "2024-01-01 01:00:30"},
]
#: Clauses over the races, with their cells.
CLAUSES: list[tuple[str, list[tuple[str, ...]]]] = [
    ("show sum(net), clock(sum(net)), clock(max(net) )", [("22059 second", "6:07:39", "2:04:00")]),
    ("show clock(sum(lap)), sum(lap)", [("5:16.72", "316.72 second")]),
    ("show race where net < '2:04' order by race", []),
    ("show race where net < '2:04:00' and net > '1:59:40'", [("a",)]),
    ("show race where rest > 'PT40M'", [("a",)]),
    ("show race where rest > 40 minutes", [("a",)]),
    ("show race where rest = 1.5 hours", [("a",)]),
    ("show race where term >= 1 year", [("a",), ("c",)]),
    ("show sum(rest), mean(term)", [("7559.5 second", "13.666666666666666 month")]),
    ("show race, rest, term, mixed where race = 'a'", [("a", "PT1H30M", "P1Y2M", "P1M3D")]),
    ("show ended - started", [("7441 second",), ("86400 second",), ("7230 second",)]),
    ("show race where ended - started > 2.01 hours", [("a",), ("b",)]),
    ("show race where ended - started >= 1", [("b",)]),
    ("show clock(ended - started) as c order by c desc", [("24:00:00",), ("2:04:01",), ("2:00:30",)]),
    ("show clock(sum(ended - started - net))", [("21:56:52",)]),
    ("show clock(term) where race = 'a'", [("",)]),
    ("group by date_trunc('month', started) show count() ", [("2023-12", "1"), ("2024-01", "1"), ("2024-03", "1")]),
    ("group by date_trunc(quarter, started) as q show count()", [("2023-10-01", "1"), ("2024-01-01", "2")]),
    ("group by hour(timezone('Europe/Berlin', started)) as h show count()", [("0", "1"), ("1", "1"), ("11", "1")]),
    ("show race where date_trunc('year', ended) = 2024", [("a",), ("b",), ("c",)]),
]


@pytest.fixture(scope="module")
def races() -> Any:
    found = condgraph.open("memory:")
    found.load(RACES, name="t", key="race")
    return found


@pytest.mark.parametrize(("clause", "cells"), CLAUSES)
def test_clauses(races: Any, clause: str, cells: list[tuple[str, ...]]) -> None:
    answer = races.query("FindAll()", table=clause)
    assert answer.cells == cells
    assert answer.check()


def test_the_load_says_what_it_read(races: Any) -> None:
    found = condgraph.open("memory:")
    warnings = {problem.field: problem.message for problem in found.load(RACES, name="t", key="race").problems}
    assert "read in seconds and in months" in warnings["rest"] + warnings["term"]
    assert "stay text" in warnings["mixed"]
    assert "net" not in warnings


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["P1", "P2", "P10"], ["P1", "P2", "P10"]),
        (["P10D", "x"], ["P10D", "x"]),
        (["PT1H", "2:00"], ["PT1H", "2:00"]),
        (["P1W", "P1D", ""], ["604800 second", "86400 second"]),
        (["P1Y", "PT1S"], ["12 month", "1 second"]),
        (["PT", "P", "P1S"], ["PT", "P", "P1S"]),
        (["7PM", "9 PM"], ["68400 second of the day", "75600 second of the day"]),
    ],
)
def test_a_column_is_of_durations_if_every_cell_is_one(cells: list[str], values: list[str]) -> None:
    found = condgraph.open("memory:")
    found.load([{"k": str(at), "x": cell} for at, cell in enumerate(cells)], name="t", key="k")
    assert [str(value[0]) for value in found.query("FindAll()", table="show x where x is known").values] == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P3Y6M", Quantity(42, "month")),
        ("-P1M", Quantity(-1, "month")),
        ("P1DT12H", Quantity(129_600, "second")),
        ("PT0.001S", Quantity(0.001, "second")),
        ("PT1,5H", Quantity(5400, "second")),
        ("P0D", Quantity(0, "second")),
        ("P1Y1D", None),
        ("PT1.5H2M", None),
        ("P1.5Y", None),
        ("P" + "9" * 40 + "D", None),
        ("P1Y\n", None),
    ],
)
def test_iso_durations(text: str, value: Quantity | None) -> None:
    assert read_duration(text) == value


def test_units_of_time_convert_exactly() -> None:
    assert conversions(Quantity(1, "second"), ["day", "hours", "month", "metre"])[:2] == [
        Quantity(1 / 86_400, "day"),
        Quantity(1 / 3600, "hours"),
    ]
    assert conversions(Quantity(90, "min"), ["second"]) == [Quantity(5400, "second")]
    assert conversions(Quantity(1, "year"), ["month"]) == [Quantity(12, "month")]


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_clock_times_are_those_of_duckdb(seed: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    draw = random.Random(seed)
    times = [timedelta(milliseconds=draw.randrange(8 * 10**7)) for _ in range(300)]
    texts = [clock_text(Quantity(time / timedelta(milliseconds=1) / 1000, "second")) for time in times]
    iso = [f"PT{time // timedelta(minutes=1)}M{time % timedelta(minutes=1) / timedelta(seconds=1):.3f}S" for time in times]
    found = condgraph.open("memory:")
    found.load([{"k": str(at), "net": one, "iso": two} for at, (one, two) in enumerate(zip(texts, iso, strict=True))], name="t")
    ours = found.query("FindAll()", table="show sum(net), sum(iso), min(net), max(iso)").values[0]
    connection = duckdb.connect()
    connection.execute("create table t(x interval)")
    connection.executemany("insert into t values (?)", [[time] for time in times])
    row = connection.execute("select sum(u), sum(u), min(u), max(u) from (select epoch_us(x) as u from t)").fetchone()
    assert [Fraction(str(value.number)) for value in ours] == [Fraction(int(sum_of), 10**6) for sum_of in row]
    assert {value.unit for value in ours} == {"second"}


@pytest.mark.parametrize("seed", range(3))
def test_truncated_times_and_differences_are_those_of_duckdb(seed: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    draw = random.Random(seed)
    moments = [datetime(1583, 1, 1) + timedelta(seconds=draw.randrange(13 * 10**9)) for _ in range(200)]
    ends = [moment + timedelta(seconds=draw.randrange(-(10**6), 10**7)) for moment in moments]
    found = condgraph.open("memory:")
    rows = zip(moments, ends, strict=True)
    found.load([{"k": f"r{at:03}", "d": str(one), "e": str(two)} for at, (one, two) in enumerate(rows)], name="t", key="k")
    cut = ", ".join([f"date_trunc('{unit}', d)" for unit in TRUNCATIONS])
    table = found.query("FindAll()", table=f"show {cut}, e - d")
    epoch = datetime(1970, 1, 1)
    ours = [(*(epoch + timedelta(seconds=cell.start) for cell in row[:-1]), row[-1].number) for row in table.values]
    columns = ", ".join(f"date_trunc('{unit}', d)::timestamp" for unit in TRUNCATIONS)
    connection = duckdb.connect()
    connection.execute("create table t(d timestamp, e timestamp)")
    connection.executemany("insert into t values (?, ?)", list(zip(moments, ends, strict=True)))
    assert ours == connection.execute(f"select {columns}, date_diff('second', d, e) from t").fetchall()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC"])
def test_moments_in_zones_are_those_of_python(zone: str) -> None:
    draw = random.Random(zone)
    for _ in range(200):
        moment = datetime(1900, 1, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(6 * 10**9))
        start = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        local = moment.astimezone(ZoneInfo(zone))
        assert str(in_zone(Time.parse(moment.isoformat()), zone, "")) == local.strftime("%Y-%m-%dT%H:%M:%S"), start


def test_times_that_are_not_exact_enough() -> None:
    for unit, time in (
        ("day", Time.month(2024, 1)),
        ("month", Time.year(2024)),
        ("hour", Time.day(2024, 1, 1)),
        ("week", Time.year(1)),
    ):
        with pytest.raises(Inapplicable, match=f"no {unit} in the time"):
            truncated(time, unit, "x")
    for time in (Time.day(2024, 1, 1), Time.parse("12024-01-01T00:00:00"), Time.parse("-0044-03-15T12:00:00")):
        with pytest.raises(Inapplicable):
            in_zone(time, "Europe/Berlin", "x")


@pytest.mark.parametrize(
    ("clause", "error", "message"),
    [
        ("show date_trunc('fortnight', started)", PlanError, "'fortnight' is not a unit of date_trunc"),
        ("show timezone('Europe/Berln', started)", OptionError, "there is no time zone 'Europe/Berln'"),
        ("show timezone('../../etc/passwd', started)", OptionError, "there is no time zone"),
        ("show date_trunc(started)", ParseError, "',' is missing"),
        ("show date_trunc()", PlanError, "date_trunc takes an option and an expression"),
        ("show clock()", PlanError, "clock takes one expression"),
        ("show date_trunc('year', started) + 1", PlanError, "is a time, not a number"),
    ],
)
def test_mistakes(races: Any, clause: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        races.query("FindAll()", table=clause)


def test_exports_keep_texts_and_values(races: Any, tmp_path: Path) -> None:
    races.export(tmp_path / "races.jsonl")
    again = condgraph.open("memory:")
    again.load(tmp_path / "races.jsonl")
    for clause, cells in CLAUSES:
        assert again.query("FindAll()", table=clause).cells == cells


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("n.net < duration('PT2H4M')", ["a", "c"]),
        ("duration('PT2H4M') <= n.net", ["b"]),
        ("n.net = duration('PT2H3M59S')", ["a"]),
        ("n.net <> duration('PT2H3M59S')", ["b", "c"]),
        ("n.lap IN [duration('PT1M46S')]", ["c"]),
        ("n.term >= duration('P1Y2M')", ["a", "c"]),
        ("n.net + duration('PT1S') = duration('PT2H4M')", ["a"]),
        ("duration('P1D') - n.net > duration('PT22H')", ["c"]),
        ("n.net > duration('P1M')", []),
        ("n.term > duration('P1M2D')", []),
    ],
)
def test_durations_of_cypher_compare_and_add_with_quantities(races: Any, condition: str, names: list[str]) -> None:
    text = f"MATCH (n:t) WHERE {condition} RETURN n.race AS race ORDER BY race"
    assert races.cypher(text).texts == names
    assert races.query(text, engine="sparql").texts == names


def test_cypher_does_not_add_months_to_seconds(races: Any) -> None:
    with pytest.raises(PlanError, match=r"\+"):
        races.cypher("MATCH (n:t) RETURN n.net + duration('P1M') AS x")
