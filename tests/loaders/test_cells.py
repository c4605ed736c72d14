"""What cells mean: readings of single texts, and the decisions a column makes between them."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import condgraph
from condgraph.engine.reading.shapes import MAX_LENGTH, ambiguous, careful, quick, readings, shape, written_with_comma
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.values import Precision, Quantity, Time, collapse, text_of
from condgraph.loaders.table.column_types import MISSING, Profile, type_cells
from condgraph.loaders.table.fields import Fields
from tests.support.lanes import examples, sample


def texts(cells: list[str], header: str = "", **options: object) -> list[str | None]:
    """The typed cells of a column: printed values, with `'...'` around those that are text."""
    typed = type_cells(cells, header, **options)  # type: ignore[arg-type]
    return [None if cell is None else repr(cell[0]) if isinstance(cell[0], str) else str(cell[0]) for cell in typed]


NUMBERS = {
    "1,234": "1234",
    "1,234.5": "1234.5",
    "12,34,567": "1234567",
    "1 234 567": "1234567",
    "−1.96": "-1.96",
    "–7": "-7",
    "+5.78": "5.78",
    "$1,000": "1000 $",
    "-$5": "-5 $",
    "US$ 1.2m": "1200000 US$",
    "£10.2 billion": "10200000000 £",
    "5 €": "5 €",
    "100 USD": "100 USD",
    "25.61%": "25.61 %",
    "206 cm": "206 cm",
    "2.4m": "2.4 m",
    "73 kg (161 lb)": "73 kg",
    "10.65 sq mi (27.6 km2)": "10.65 sq mi",
    "2 ft 8½ in": "32.5 in",
    "5½": "5.5",
    "3rd": "3",
    "111th": "111",
    "4.": "4",
    "=5": "5",
    "2=": "2",
    "1,234[1]": "1234",
    "13160†": "13160",
    "1.5e5": "150000",
    "1e+05": "100000",
    "5.00-": "-5",
    "1'234.50-": "-1234.5",
    "1\u00a0234,5": "1234.5",
    "1\u202f234": "1234",
    "50¢": "50 ¢",
    ".750": "0.75",
    "0.1000000000000000055511151231257827": "0.1000000000000000055511151231257827",
}


@pytest.mark.parametrize(("cell", "value"), NUMBERS.items())
def test_numbers(cell: str, value: str) -> None:
    assert texts([cell, "7", "8", "9"])[0] == value


NO_NUMBERS = [
    "12st",
    "1,23",
    "1.2.3",
    "27–21",
    "12A",
    "28 Days Later",
    "(555) 1234",
    "4 or 5",
    "$5 lunch",
    "1,234 (est.)",
    "DNF",
    "c. 650",
]


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_what_is_no_number_stays_text_among_numbers(cell: str) -> None:
    assert texts([cell, "7", "8", "9"])[0] == repr(cell)


TIMES = {
    "March 5, 2010": "2010-03-05",
    "Mar. 5 2010": "2010-03-05",
    "5 March 2010": "2010-03-05",
    "5th March 2010": "2010-03-05",
    "05-Mar-2010": "2010-03-05",
    "Saturday, March 5, 2010": "2010-03-05",
    "2010-03-05": "2010-03-05",
    "2010/3/5": "2010-03-05",
    "5.3.2010": "2010-03-05",
    "March 2010": "2010-03",
    "November, 1791": "1791-11",
    "11/1863": "1863-11",
    "2010": "2010",
    "44 BC": "-43",
    "AD 79": "79",
    "1990s": "1990/1999",
    "1999-2003": "1999/2003",
    "1999–2003": "1999/2003",
    "2012–present": "2012/",
    "March 8 – April 2, 1983": "1983-03-08/1983-04-02",
    "October 20–22, 1982": "1982-10-20/1982-10-22",
    "20-22 October 1982": "1982-10-20/1982-10-22",
    "2010-03-05 12:34:56": "2010-03-05T12:34:56",
    "2010-03-05T12:34+02:00": "2010-03-05T10:34:00",
    "5 March 2010, 7:30 PM": "2010-03-05T19:30:00",
    "June 3, 1979 (age 35)": "1979-06-03",
    "06 May 2006*": "2006-05-06",
}


@pytest.mark.parametrize(("cell", "value"), TIMES.items())
def test_times(cell: str, value: str) -> None:
    assert texts([cell, "1 May 1950", "2 May 1951"], "Date")[0] == value


NO_TIMES = [
    "2010-02-30",
    "30 February 2010",
    "99/99/2010",
    "2003–1999",
    "12/25/98",
    "April 1",
    "circa 1900",
    "1937, 1939",
    "5432-17",
]


@pytest.mark.parametrize("cell", NO_TIMES)
def test_what_is_no_time_stays_text_among_times(cell: str) -> None:
    assert texts([cell, "1 May 1950", "2 May 1951"], "Date")[0] == repr(cell)


@pytest.mark.parametrize("cell", ["", " ", "n/a", "N/A", "-", "—", "–", "NULL", "null"])
def test_missing_cells_are_no_statements(cell: str) -> None:
    assert type_cells([cell, "x"])[0] is None


def test_nan_is_missing_among_numbers_and_a_text_among_texts() -> None:
    assert texts(["NaN", "1", "2"]) == [None, "1", "2"]
    assert texts(["NA", "Nan", "Bob"]) == ["'NA'", "'Nan'", "'Bob'"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["03/05/2010", "13/05/2010"], ["2010-05-03", "2010-05-13"]),
        (["03/05/2010", "05/13/2010"], ["2010-03-05", "2010-05-13"]),
        (["03/05/2010", "04/05/2010"], ["'03/05/2010'", "'04/05/2010'"]),
        (["05/05/2010", "06/06/2010"], ["2010-05-05", "2010-06-06"]),
        (["13/05/2010", "05/13/2010", "03/05/2010"], ["'13/05/2010'", "'05/13/2010'", "'03/05/2010'"]),
    ],
)
def test_a_day_after_the_twelfth_decides_the_order(cells: list[str], values: list[str]) -> None:
    assert texts(cells) == values


def test_day_first_overrules() -> None:
    assert texts(["03/05/2010"], day_first=True) == ["2010-05-03"]
    assert texts(["03/05/2010"], day_first=False) == ["2010-03-05"]


@pytest.mark.parametrize(
    ("header", "cells", "first"),
    [
        ("Year", ["1999", "2001"], "time"),
        ("Season", ["1999", "2001"], "time"),
        ("Founded", ["1999[1]", "2001"], "time"),
        ("Number built", ["1999", "2001"], "number"),
        ("Score", ["1999", "2001"], "number"),
        ("Year", ["1999", "20010"], "number"),
        ("Score", ["1999", "May 2001"], "time"),
        ("Year", ["1999", "2000", "Total"], "time"),
        ("No. in season", ["3", "4"], "number"),
    ],
)
def test_four_digits_are_years_where_header_and_column_say_so(header: str, cells: list[str], first: str) -> None:
    typed = type_cells(cells, header)[0]
    assert typed is not None
    assert isinstance(typed[0], Time if first == "time" else Quantity)


@pytest.mark.parametrize(
    ("header", "cells", "values"),
    [
        ("Season", ["2004-05", "2005-06"], ["2004/2005", "2005/2006"]),
        ("Data", ["2012-13", "2013-14"], ["2012/2013", "2013/2014"]),
        ("Month", ["2004-05", "2004-07"], ["2004-05", "2004-07"]),
        ("Data", ["2004-05", "1999-00"], ["2004/2005", "1999/2000"]),
        ("Data", ["2004-05", "2004-03"], ["2004-05", "2004-03"]),
        ("Data", ["2004-05"], ["'2004-05'"]),
        ("Data", ["2004/05"], ["2004/2005"]),
    ],
)
def test_two_years_or_a_month(header: str, cells: list[str], values: list[str]) -> None:
    assert texts(cells, header) == values


DEBIT = "amounts marked DR are read as negative, those marked CR as positive"
COLUMNS = [
    # Codes: texts that would be one number, or another than they say.
    ("code", ["5E1", "5E2", "5E3", "50"], ["'5E1'", "'5E2'", "'5E3'", "'50'"], "whole numbers with an exponent"),
    ("", ["5e1", "7", "8", "9"], ["'5e1'", "7", "8", "9"], ""),
    ("", ["5E1", "1.5", "2E-3"], ["50", "1.5", "0.002"], ""),
    ("", ["1,000", "1000", "1e3"], ["1000", "1000", "1000"], ""),
    ("Version", ["1.9", "1.10", "1.1"], ["'1.9'", "'1.10'", "'1.1'"], "decimals are read as codes"),
    ("release", ["2", "2.0"], ["'2'", "'2.0'"], "decimals are read as codes"),
    ("version", ["1", "2"], ["1", "2"], ""),
    ("version no. sold", ["1.5", "2.25", "10.10"], ["1.5", "2.25", "10.1"], "1.10 and 1.1 are one number"),
    ("price", ["1.10", "1.1", "2.25"], ["1.1", "1.1", "2.25"], "1.10 and 1.1 are one number"),
    ("price", ["1.10", "2.25"], ["1.1", "2.25"], ""),
    ("area", ["1.10", "1.05", "7.3"], ["1.1", "1.05", "7.3"], ""),
    # One cell that is certain decides.
    ("betrag", ["1.234,56 €", "500 €", "2.000 €"], ["1234.56 €", "500 €", "2000 €"], ""),
    ("", ["1.234.567", "2.000"], ["1234567", "2000"], ""),
    ("", ["12,5 km", "2.000 km"], ["12.5 km", "2000 km"], ""),
    ("", ["1,23", "7", "8"], ["'1,23'", "7", "8"], ""),
    ("", ["12,5 %", "7.5 %", "0.1 %"], ["'12,5 %'", "7.5 %", "0.1 %"], ""),
    ("", ["1.234 €", "500 €"], ["1234 €", "500 €"], "2.000 is read as 2000"),
    ("fuel", ["€1.799", "€1.859"], ["1.799 €", "1.859 €"], "2.000 is read with a point before decimals"),
    ("Einwohner", ["1.234", "567", "12.345"], ["1234", "567", "12345"], "2.000 is read as 2000"),
    ("Population (millions)", ["1.234", "12.345"], ["1.234", "12.345"], ""),
    ("people", ["1.234", "2.5"], ["1.234", "2.5"], ""),
    ("", ["1'234.50", "2’000.25-", "(1'000.00)"], ["1234.5", "-2000.25", "-1000"], ""),
    ("", ["1'234,50", "2'000,25"], ["1234.5", "2000.25"], ""),
    ("", ["1\u00a0234,50", "-12\u202f000", "(1 000)"], ["1234.5", "-12000", "-1000"], ""),
    ("y", ["100-", "200-", "3"], ["-100", "-200", "3"], "100- is read as -100"),
    ("Amount", ["5.00-", "2000.00", "1200.00-"], ["-5", "2000", "-1200"], ""),
    ("Amount", ["1.000,00-", "2.500,00 €-"], ["-1000", "-2500 €"], ""),
    ("hits", ["62-", "7", "8"], ["'62-'", "7", "8"], "100- stays text"),
    ("Built", ["2013-", "1999", "2001"], ["2013/", "1999", "2001"], ""),
    # Times.
    ("month", ["2004-05", "2005-06", "2006-07"], ["2004-05", "2005-06", "2006-07"], ""),
    ("date", ["1960", "1960-05", "1960-05-13"], ["1960", "1960-05", "1960-05-13"], ""),
    ("when", ["1960-05", "1960-05-13"], ["1960-05", "1960-05-13"], ""),
    ("x", ["2010-11", "2011-12"], ["2010/2011", "2011/2012"], "2004-05 is read as the years 2004 and 2005"),
    ("x", ["2004-05", "2004-21", "2004-07"], ["2004-05", "'2004-21'", "2004-07"], ""),
    ("founded", ["753 BC", "1191", "330", "1850"], ["-752", "1191", "330", "1850"], ""),
    ("year", ["44 BC", "AD 79", "5"], ["-43", "79", "5"], ""),
    ("year", ["44 bc", "BC 221", "30 bce", "5"], ["-43", "-220", "-29", "5"], ""),
    ("created_at", ["20240131", "20231231"], ["2024-01-31", "2023-12-31"], ""),
    ("height", ["753 BC", "120", "12345", "7"], ["'753 BC'", "120", "12345", "7"], ""),
    ("start_date", ["20240131", "20231231"], ["2024-01-31", "2023-12-31"], ""),
    ("date", ["20240131", "20241331"], ["20240131", "20241331"], ""),
    ("update_count", ["20240131", "20231231"], ["20240131", "20231231"], ""),
    ("at", ["20240131T120000Z", "20240131T1230"], ["2024-01-31T12:00:00", "2024-01-31T12:30:00"], ""),
    ("d", ["01/02/03", "25/12/99", "31/01/70"], ["'01/02/03'", "'25/12/99'", "'31/01/70'"], "3 dates stay text, as their years"),
    ("d", ["15-NOV-23", "1-NOV-2023", "2-NOV-2023"], ["'15-NOV-23'", "2023-11-01", "2023-11-02"], "1 date stays text"),
    # Lists of numbers, which are no thousands.
    ("numeric", ["928,926", "578", "978"], ["'928,926'", "578", "978"], "cells such as 101,102 are read as lists"),
    ("related", ["102,103", "101,102,104"], ["'102,103'", "'101,102,104'"], "cells such as 101,102 are read as lists"),
    ("related", ["516,710", "1,2,3"], ["'516,710'", "'1,2,3'"], "cells such as 101,102 are read as lists"),
    ("price", ["350,000", "516,710"], ["350000", "516710"], ""),
    ("pop", ["516,710", "1,234", "567"], ["516710", "1234", "567"], ""),
    ("x", ["516,710", "883,305"], ["516710", "883305"], "numbers such as 101,102 may be lists"),
    ("x", ["516,710", "7", "12"], ["516710", "7", "12"], ""),
    ("pop", ["516,710", "883,305", "950"], ["516710", "883305", "950"], ""),
    # Parentheses.
    ("v", ["(100)", "200", "(5)"], ["-100", "200", "-5"], "(100) is read as -100"),
    ("No.", ["(1)", "2", "(3)"], ["'(1)'", "'2'", "'(3)'"], ""),
    ("amount", ["1.234,56-", "(500,00)", "(1.000)"], ["-1234.56", "-500", "-1000"], ""),
    # Times of two and of three parts.
    ("t", ["10:30:00", "11:00", "9:15"], [f"{n} second of the day" for n in (37800, 39600, 33300)], ""),
    ("t", ["10:31:00", "11:02"], ["37860 second", "662 second"], "11:00 is read as 11 minutes"),
    ("start", ["10:31:00", "11:02"], ["37860 second of the day", "39720 second of the day"], ""),
    ("lap", ["1:02:03", "9:30"], ["3723 second", "570 second"], ""),
    # Debit and credit.
    (
        "",
        ["5.00 DR", "1,234.56 Cr", "DR 7.25", "Cr. £3", "3.20CR", "pending"],
        ["-5", "1234.56", "-7.25", "3 £", "3.2", "'pending'"],
        DEBIT,
    ),
    ("Balance", ["1999 CR", "0 DR", "7DR"], ["1999", "0", "-7"], DEBIT),
    ("x", ["1.234,56 CR", "12,50 DR", "2.000,00 DR"], ["1234.56", "-12.5", "-2000"], DEBIT),
    ("amount", ["5.00 DR", "6.00 DR"], ["-5", "-6"], DEBIT),
    ("x", ["5.00 DR", "6.00", "7.00 CR", "8", "9"], ["'5.00 DR'", "6", "'7.00 CR'", "8", "9"], ""),
    ("amount", ["5.00 CR", "-5.00 DR", "5.00- DR"], ["'5.00 CR'", "'-5.00 DR'", "'5.00- DR'"], ""),
    ("road", ["CR 12", "CR 14", "DR 7.50"], ["'CR 12'", "'CR 14'", "'DR 7.50'"], ""),
    ("account", ["CR 0012", "DR 0014", "DR 5.00", "CR 0015"], ["'CR 0012'", "'DR 0014'", "'DR 5.00'", "'CR 0015'"], ""),
    ("Betrag", ["12,00 S", "1.234,50 H"], ["-12", "1234.5"], "amounts marked S (Soll) are read as negative"),
    ("Betrag", ["12,00 S", "1.234,50 H", "1,00"], ["12 S", "1234.5 H", "1"], ""),
    ("Dauer", ["12,00 S", "1,50 H"], ["12 S", "1.5 H"], ""),
]


@pytest.mark.parametrize(("header", "cells", "values", "remark"), COLUMNS)
def test_what_the_cells_of_a_column_mean(header: str, cells: list[str], values: list[str], remark: str) -> None:
    assert texts(cells, header) == values
    profile = Profile()
    profile.add(cells)
    remarks = profile.decide(header).remarks
    assert [one[: len(remark)] for one in remarks] == ([remark] if remark else [])


def test_marks_of_debit_and_credit_are_read_alike_in_long_columns() -> None:
    """Long columns are counted by their bytes, and one odd cell makes no numbers of codes."""
    for cells, values in (
        (["DR 5.00", "CR 7.00"] * 300, ["-5", "7"] * 300),
        (["DR5.00", "CR£7.00"] * 300, ["-5", "7 £"] * 300),
        ([*["note"] * 5, *["5.00 DR", "7 CR"] * 300], [*["'note'"] * 5, *["-5", "7"] * 300]),
        ([*["CR 0012", "Crow 7"] * 300, "DR 5.00"], [*["'CR 0012'", "'Crow 7'"] * 300, "'DR 5.00'"]),
    ):
        profile = Profile()
        profile.add(Fields.of(cells) or cells)
        assert profile.shapes == {key: profile.shapes[key] for key in map(shape, cells)}
        assert texts(cells) == values


def test_types_overrule_marks_of_debit_and_credit() -> None:
    assert texts(["5 DR", "6 CR"], declared="number") == ["-5", "6"]
    assert texts(["5 DR", "6 CR"], "amount", declared="text") == ["'5 DR'", "'6 CR'"]
    assert texts(["5 DR", "6 CR"], "x") == ["'5 DR'", "'6 CR'"]
    assert type_cells(["5.00 DR", "6.00 CR"])[0] == (Quantity(-5), "5.00 DR")


def test_options_decide_where_cells_leave_two_readings() -> None:
    assert texts(["2010-11", "2011-12"], seasons=False) == ["2010-11", "2011-12"]
    assert texts(["2010-11", "2004-07"], seasons=True) == ["2010/2011", "2004/2007"]
    assert texts(["1.234", "2.500"], decimal=",") == ["1234", "2500"]
    assert texts(["1.234", "1.5", "12,5 %"], decimal=".") == ["1.234", "1.5", "'12,5 %'"]
    assert texts(["5E1", "101,102", "62-", "3"], declared="number") == ["50", "101102", "-62", "3"]
    assert texts(["20240131", "1960", "31/12/99", "1-NOV-23"], declared="time") == [
        "2024-01-31",
        "1960",
        "1999-12-31",
        "2023-11-01",
    ]
    assert texts(["01/02/03"], declared="time", day_first=True) == ["2003-02-01"]


def test_four_digits_with_an_s_are_a_decade() -> None:
    assert texts(["1980s", "1990s"]) == ["1980/1989", "1990/1999"]
    assert texts(["1980sec", "1990sec"]) == ["1980 sec", "1990 sec"]
    assert texts(["1980 s", "1990 s"]) == ["1980 s", "1990 s"]


def test_commas_and_points() -> None:
    assert texts(["1,234", "5,678"]) == ["1234", "5678"]
    assert texts(["1.234", "5.678"]) == ["1.234", "5.678"]
    assert texts(["17,5", "1.234,5", "1.234"]) == ["17.5", "1234.5", "1234"]
    assert texts(["39,6", "31,54", "1.38"]) == ["39.6", "31.54", "1.38"]
    assert texts(["7,8", "1.5", "2.5"]) == ["'7,8'", "1.5", "2.5"]


def test_parentheses_are_negative_where_money_is() -> None:
    assert texts(["1,234", "(567)"]) == ["1234", "-567"]
    assert texts(["$5", "($567)"]) == ["5 $", "-567 $"]
    assert texts(["12", "7", "(5)"], "Profit") == ["12", "7", "-5"]
    assert texts(["1", "2", "(3)"], "No.") == ["1", "2", "'(3)'"]


def test_leading_zeros_are_codes() -> None:
    assert texts(["06897", "12345"]) == ["'06897'", "'12345'"]
    assert texts(["01", "10"]) == ["1", "10"]
    assert texts(["06897", "12345"], declared="number") == ["6897", "12345"]


def test_units_are_those_of_the_column() -> None:
    assert texts(["3 episodes", "1 episode", "5"]) == ["3 episodes", "1 episodes", "5"]
    assert texts(["30 Rock", "Cheers", "24", "Lost"]) == ["'30 Rock'", "'Cheers'", "'24'", "'Lost'"]
    assert texts(["2003 World Cup", "2007 World Cup"]) == ["'2003 World Cup'", "'2007 World Cup'"]
    assert texts(["120 Main Street", "7 Main Street"]) == ["'120 Main Street'", "'7 Main Street'"]
    assert texts(["25 2", "1 2", "7", "8"])[0] == "'25 2'"


@pytest.mark.parametrize(
    ("header", "cells", "values"),
    [
        ("", ["4:27.97", "1:02:03"], ["267.97 second", "3723 second"]),
        ("Length", ["4:00", "3:30"], ["240 second", "210 second"]),
        ("", ["4:27", "3:31"], ["267 second", "211 second"]),
        ("", ["19:30", "20:00"], ["70200 second of the day", "72000 second of the day"]),
        ("Kick-off", ["19:31", "20:02"], ["70260 second of the day", "72120 second of the day"]),
        ("", ["7:00 PM", "8:30 p.m.", "12:05 am"], ["68400 second of the day", "73800 second of the day", "300 second of the day"]),
        ("", ["7:30 PM", "9 PM", "7:00"], ["70200 second of the day", "75600 second of the day", "'7:00'"]),
        ("", ["48:26", "4:27"], ["2906 second", "267 second"]),
        ("", ["4:27"], ["'4:27'"]),
        ("", ["3:2", "17:12", "4:15", "5:16"], ["'3:2'", "'17:12'", "'4:15'", "'5:16'"]),
        ("", ["8:30 pm EDT", "9:30 pm EDT"], ["73800 second of the day", "77400 second of the day"]),
        ("", ["8:30 pm EDT", "9:30 pm PDT"], ["'8:30 pm EDT'", "'9:30 pm PDT'"]),
    ],
)
def test_durations_and_times_of_day(header: str, cells: list[str], values: list[str]) -> None:
    assert texts(cells, header) == values


def test_midnights_are_days_only_where_all_are() -> None:
    assert texts(["1996-07-04 00:00:00.000", "1996-07-05 00:00:00"]) == ["1996-07-04", "1996-07-05"]
    assert texts(["1996-07-04 00:00:00", "1996-07-05 10:00:00"]) == ["1996-07-04T00:00:00", "1996-07-05T10:00:00"]


def test_the_majority_decides_and_the_rest_stays_text() -> None:
    assert texts(["1", "2", "3", "DNF"]) == ["1", "2", "3", "'DNF'"]
    assert texts(["1", "x", "y", "z"]) == ["'1'", "'x'", "'y'", "'z'"]
    # Distinct texts count too: three positions beside a word that comes often.
    assert texts(["1", "2", "3", "Ret", "Ret", "Ret", "Ret"])[0] == "1"


def test_declared_types_overrule() -> None:
    assert texts(["1", "2"], declared="text") == ["'1'", "'2'"]
    assert texts(["1", "x", "y"], declared="number") == ["1", "'x'", "'y'"]
    assert texts(["476", "20000", "1066"], declared="time") == ["476", "'20000'", "1066"]
    assert texts(["1999"], "Year", declared="number") == ["1999"]


def test_raw_text_is_kept_where_the_value_prints_differently() -> None:
    assert type_cells(["1,234", "5678", " 9 ", "a  b"]) == [
        (Quantity(1234), "1,234"),
        (Quantity(5678), None),
        (Quantity(9), " 9 "),
        ("a b", "a  b"),
    ]


@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=12), st.sampled_from(["auto", "text", "number", "time"]))
def test_typing_never_fails_and_loses_nothing(cells: list[str], header: str, declared: str) -> None:
    typed = type_cells(cells, header, declared=declared)  # type: ignore[arg-type]
    assert len(typed) == len(cells)
    for cell, found in zip(cells, typed, strict=True):
        if collapse(cell).casefold() in MISSING:
            assert found is None
        elif found is None:
            assert collapse(cell).casefold() in ("nan", "na", "#value!", "#div/0!")
        else:
            value, raw = found
            assert (text_of(value) if raw is None else raw) == cell


#: Texts made of what numbers, dates and clocks are made of.
FORMS = st.lists(
    st.sampled_from(
        [*"0123456789", "19", "2004", "12", "31", ",", ".", ":", "/", "-", "–", " ", "$", "%", "(", ")", "March", "May "]
    )
    | st.sampled_from(["th", "st", " km", " BC", "AD ", "s", " PM", "present", " to ", "½", "€", "million", "*", "[1]", "T", "+"])
    | st.sampled_from([" km2", " m3", "m/s2", " CO2", " billion", "e3", "E-1", "k", "DR", " Cr.", "CR ", " S", "H"]),
    min_size=1,
    max_size=9,
).map("".join)


@given(FORMS)
@example("2010-02-30")
@example("1.234")
@example("5 Foo 2010")
def test_the_shape_of_a_text_is_that_of_its_readings(form: str) -> None:
    form = collapse(form)
    assert shape(form) == tuple(reading._replace(value="") for reading in readings(form))


@pytest.mark.parametrize(
    "text",
    [
        *("12:75", "1:02:75", "12:59:60", "23:59", "24:00", "25:10", "12:30.5", "12:30:15", "12:30"),
        *(
            "28 February 2010",
            "29 February 2010",
            "February 29, 2010",
            "0 May 2010",
            "May 28, 2010",
            "May 29, 2010",
            "5, 2010",
            "May 5 May 2010",
        ),
        *("1000–1000", "0999-1000", "1000-2100", "1000-2101", "2000-1999", "1000", "0999", "2100", "2101"),
        *("1.234", "0.234", "-0.234", "1.2345", "2010-02-29", "2012-02-29", "0000-01-01"),
    ],
)
def test_the_shapes_of_the_commonest_end_where_their_readings_do(text: str) -> None:
    assert shape(text) == tuple(reading._replace(value="") for reading in readings(text))


@given(FORMS, st.randoms(use_true_random=False))
@example("7 km2", random.Random(1))
@example("2 m/s2", random.Random(1))
def test_other_digits_read_before_do_not_count(form: str, rng: random.Random) -> None:
    """Shapes are kept by what digits do not change: "5 km7", which is text, says nothing of "7 km2"."""
    form = collapse(form)
    for _ in range(10):
        shape(collapse("".join(rng.choice("123456789") if "1" <= char <= "9" else char for char in form)))
    assert shape(form) == tuple(reading._replace(value="") for reading in readings(form))


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("2e3 million", 2 * 10**9),
        ("2.5e3 billion", 25 * 10**11),
        ("2e-3 million", 2_000),
        ("-1E+2 million", -(10**8)),
        ("1.123456789012345678901234567890123e3 million", Decimal("1123456789.012345678901234567890123")),
        # No number: a fraction behind an exponent.
        ("234E3½", None),
        ("1e999999999 million", None),
    ],
)
def test_exponents_with_scales_and_fractions(cell: str, number: Any, tmp_path: Path) -> None:
    """They ended a load with an error of `decimal`."""
    assert [reading.value.number for reading in readings(cell)] == ([] if number is None else [number])  # type: ignore[union-attr]
    (tmp_path / "t.csv").write_text(f"name,sales\na,{cell}\nb,{cell}\n")
    with condgraph.open("memory:") as graph:
        graph.load(tmp_path / "t.csv", key="name")
        assert graph.kopl("Find(a) QueryAttr(sales)").texts == [cell]


def test_units_with_digits_in_any_order() -> None:
    """A column of areas is one whatever was read before it."""
    assert texts(["5 km7", "6 km8"]) == ["'5 km7'", "'6 km8'"]
    assert texts(["7 km2", "8 km2"]) == ["7 km2", "8 km2"]


@given(st.integers(-(10**20), 10**20), st.sampled_from(["{}", "{:,}", "${:,}", "{} km", "{}%", "{:,}[2]", "{}."]))
def test_integers_come_back_as_they_were_written(number: int, form: str) -> None:
    cell = form.format(number)
    typed = type_cells([cell, "1", "2", "3"])[0]
    assert typed is not None
    if re.search(r"(?<!\d)\d{4}\.$", cell):
        return
    assert isinstance(typed[0], Quantity)
    assert typed[0].number == number


@given(st.decimals(-(10**9), 10**9, places=3, allow_nan=False))
def test_decimals_come_back_exactly(number: Decimal) -> None:
    typed = type_cells([f"{number:f}", "1.5", "2.25"])[0]
    assert typed is not None
    assert isinstance(typed[0], Quantity)
    assert Decimal(str(typed[0])) == number


@given(st.dates(), st.sampled_from(["%B {d}, %Y", "{d} %B %Y", "%Y-%m-%d", "{d} %b %Y"]))
def test_days_come_back_as_they_were_written(day: object, form: str) -> None:
    assert hasattr(day, "strftime")
    written = day.strftime(form.replace("{d}", str(day.day)).replace("%Y", f"{day.year:04d}"))  # type: ignore[attr-defined]
    typed = type_cells([written], "Date")[0]
    assert typed is not None
    assert typed[0] == Time.day(day.year, day.month, day.day)  # type: ignore[attr-defined]
    assert isinstance(typed[0], Time)
    assert typed[0].precision is Precision.DAY


_PLAIN = ["1", "2000", "1.5", "1.234", "-1.234", "-3", "", "-", "2010-01-02", "0.1234567890123456789"]


@given(st.lists(st.sampled_from(_PLAIN), max_size=20))
def test_plain_columns_are_counted_as_cell_by_cell(cells: list[str]) -> None:
    # Long columns are counted by one expression; the same cells in short pieces are not.
    long, short = Profile(), Profile()
    long.add(cells * 30)
    for _ in range(30):
        short.add(cells)
    assert {key: counts[0] for key, counts in long.shapes.items()} == {key: counts[0] for key, counts in short.shapes.items()}


@settings(max_examples=examples(300))
@given(
    st.from_regex(
        r"\A[$£-]?[0-9]{0,4}(,[0-9]{3}){0,2}(\.[0-9]{1,4})?(%| ?(cm|km|s|m|th|pm|kg|ft|a))?(\[[0-9a-z]{1,3}\])?\Z"
        r"|\A(May|Jun|June|Mon|Sept|Word) [0-9]{1,2},? [0-9]{4}\Z"
        r"|\A[0-9]{1,2} (July|Dec|Xyz) [0-9]{4}\Z|\A[0-9]{1,3}(:[0-9]{2}){1,2}\Z"
    )
)
def test_quick_readings_are_careful_readings(text: str) -> None:
    """The commonest forms are read in one look; the values and their types are those of the longer
    one.
    """
    same_as_careful(collapse(text))


def test_quick_readings_of_real_tables(data: Path) -> None:
    """Much of what real tables hold is read quickly."""
    paths = sorted((data / "wikitablequestions/csv").glob("*/*.csv"))
    lines = [line for path in sample(paths, 20) for line in path.read_text("utf-8").splitlines()]
    texts = {collapse(cell) for line in lines for cell in line.split('","')}
    looked = [text for text in texts if 0 < len(text) <= MAX_LENGTH and any(map(str.isdigit, text))]
    assert sum(map(same_as_careful, looked)) > 500


def same_as_careful(text: str) -> bool:
    """Whether a text was read quickly, and then as careful reading has it."""
    found = quick(text) if text else None
    if found is None:
        return False
    wanted = careful(text)
    assert found == wanted
    assert list(map(repr, found)) == list(map(repr, wanted))
    return True


@pytest.mark.parametrize(
    ("text", "only", "also"),
    [
        ("1.234,5", True, False),
        ("0,5", True, False),
        ("1.234", False, True),
        ("1,234", False, True),
        ("1234", False, False),
        ("Ann", False, False),
    ],
)
def test_commas_before_decimals(text: str, only: bool, also: bool) -> None:
    """Whether a text is a number in the one way alone, or in both; what is no number is neither."""
    assert (written_with_comma(text), ambiguous(text)) == (only, also)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5:30 pm", 63_000),
        ("5:30:45 pm", 63_045),
        ("5:30:59 pm", 63_059),
        ("5:30:61 pm", None),
        ("5:61 pm", None),
        ("13:30 pm", None),
    ],
)
def test_times_of_a_half_day(text: str, seconds: int | None) -> None:
    """Minutes and seconds go to 59, hours to 12."""
    found = [one.value for one in readings(text) if one.tag == "tod"]
    assert found == ([] if seconds is None else [Quantity(seconds, SECOND_OF_DAY)])


@pytest.mark.parametrize(("text", "seconds"), [("1:30", 90), ("12:05", 725), ("1:02:03", 3_723), ("-1:30", -90)])
def test_lengths_of_time(text: str, seconds: int) -> None:
    """Minutes and seconds, or hours, minutes and seconds."""
    assert [one.value for one in readings(text) if one.tag == "dur"] == [Quantity(seconds, SECOND)]
