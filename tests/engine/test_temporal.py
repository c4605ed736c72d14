"""Dates, datetimes and durations of expressions, checked by hand against ISO 8601 and calendars."""

from __future__ import annotations

from typing import Any

import pytest

from condgraph.engine import temporal
from condgraph.engine.errors import LiteralError
from condgraph.engine.values import Time


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (temporal.date("2015-W30-2"), "2015-07-21"),
        (temporal.date("2015202"), "2015-07-21"),
        (temporal.date({"year": 1817, "week": 1}), "1816-12-30"),
        (temporal.date({"year": 1984, "quarter": 3, "dayOfQuarter": 45}), "1984-08-14"),
        (temporal.localtime("214032.142"), "21:40:32.142"),
        (temporal.time({"hour": 12, "timezone": "+01:30"}), "12:00+01:30"),
        (temporal.zoned_datetime("2017-08-08T12:31:14[Europe/Stockholm]"), "2017-08-08T12:31:14+02:00[Europe/Stockholm]"),
        (temporal.duration("P1Y2M10DT2H30M"), "P1Y2M10DT2H30M"),
        (temporal.duration({"months": 0.75}), "P22DT19H51M49.5S"),
        (temporal.duration({"seconds": -2, "milliseconds": 1}), "PT-1.999S"),
        (temporal.between(temporal.date("1984-10-11"), temporal.date("2015-06-24")), "P30Y8M13D"),
        (temporal.in_days(temporal.date("2024-02-28"), temporal.date("2024-03-01")), "P2D"),
        (temporal.add(temporal.date("2024-01-31"), temporal.duration("P1M")), "2024-02-29"),
        (temporal.truncate("date", "decade", temporal.date("1984-10-11")), "1980-01-01"),
        (temporal.truncate("localdatetime", "hour", temporal.localdatetime("1984-10-11T12:31:14")), "1984-10-11T12:00"),
    ],
)
def test_texts_are_those_of_the_calendar(made: Any, text: str) -> None:
    assert str(made) == text


def test_days_across_the_change_to_winter_have_an_hour_more() -> None:
    first, last = (temporal.zoned_datetime(f"2017-10-29T0{hour}:00[Europe/Stockholm]") for hour in (0, 4))
    assert str(temporal.in_seconds(first, last)) == "PT5H"


def test_parts_that_a_time_does_not_have_are_not_known() -> None:
    assert temporal.component(Time.year(1960), "year") == 1960
    assert temporal.component(Time.year(1960), "month") is None
    assert temporal.component(Time.day(1984, 1, 1), "weekYear") == 1983
    assert temporal.component(temporal.duration("P16M"), "monthsOfYear") == 4
    with pytest.raises(KeyError):
        temporal.component(Time.day(1984, 1, 1), "colour")


@pytest.mark.parametrize(
    "call",
    [
        lambda: temporal.date("2024-02-30"),
        lambda: temporal.date({"month": 3}),
        lambda: temporal.date({"year": 2024, "colour": 1}),
        lambda: temporal.time("25:00"),
        lambda: temporal.duration("P"),
        lambda: temporal.duration("P" + "1" * 10_000 + "Y"),
        lambda: temporal.zoned_datetime("2024-01-01T00:00[../../etc/passwd]"),
        lambda: temporal.truncate("date", "hour", temporal.date("2024-01-01")),
        lambda: temporal.between("a", "b"),
    ],
)
def test_what_is_no_time_is_a_typed_error(call: Any) -> None:
    with pytest.raises(LiteralError):
        call()
