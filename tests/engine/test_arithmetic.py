"""Arithmetic between answers says its unit and its sign, and what it was not given; worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import LiteralError
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.functions import FUNCTIONS, compared, relation
from condgraph.engine.operands import Inapplicable, Operand
from condgraph.engine.values import Quantity, Time, text_of

LEAP, YEAR_ON = Time.day(2020, 2, 29), Time.day(2021, 2, 28)


def operand(*values: Any) -> Operand:
    return Operand(list(values), [text_of(one) for one in values], [])


def run(name: str, *sides: Operand, **options: str) -> str:
    return ", ".join(map(text_of, FUNCTIONS[name](sides, options)))


@pytest.mark.parametrize(
    ("one", "two", "options", "found"),
    [
        (LEAP, YEAR_ON, {"absolute": "false"}, "-365 day"),
        (YEAR_ON, LEAP, {"absolute": "false"}, "365 day"),
        (LEAP, YEAR_ON, {}, "365 day"),
        (LEAP, YEAR_ON, {"absolute": "false", "unit": "months"}, "-12 month"),
        (Time.year(-43), Time.year(14), {"absolute": "false"}, "-57 year"),
        (Time.year(14), Time.year(14), {"absolute": "false"}, "0 year"),
    ],
)
def test_subtracting_times_keeps_the_sign(one: Time, two: Time, options: dict[str, str], found: str) -> None:
    assert run("difference", operand(one), operand(two), **options) == found


@pytest.mark.parametrize("engine", ["snapshot", "sparql"])
def test_the_sign_of_a_program_and_its_warnings_on_engines(engine: str) -> None:
    graph = condgraph.open()
    graph.add([Statement("Ann", "born", LEAP), Statement("Bob", "born", YEAR_ON), Statement("Bob", "paid", Quantity(5, "€"))])
    lines = [f"get_information(relation='{key}', head_entity='{who}')" for key, who in (("born", "Ann"), ("born", "Bob"))]
    asked = [*lines, "output_of_query1 - output_of_query2"]
    answer = graph.query("\n".join(f'Query{at}: "{line}"' for at, line in enumerate(asked, 1)), engine=engine)  # type: ignore[arg-type]
    assert answer.texts == ["-365 day"]
    asked[2] = "add(a='output_of_query1', b='output_of_query2')"
    answer = graph.query("\n".join(f'Query{at}: "{line}"' for at, line in enumerate(asked, 1)), engine=engine)  # type: ignore[arg-type]
    assert answer.texts == ["4041"]
    assert answer.warnings == ["add: the values are times and are read by their years"]


def test_times_are_read_by_their_years_with_a_remark() -> None:
    for name in ("add", "divide", "multiply", "percentage"):
        one = operand(LEAP)
        run(name, one, operand(Quantity(2)))
        assert one.remarks == [f"{name}: the values are times and are read by their years"]
    for name in ("abs", "round"):
        one = operand(LEAP)
        assert run(name, one) == "2020"
        assert one.remarks == [f"{name}: the values are times and are read by their years"]
    year = operand(Time.year(2020))
    assert run("difference", year, operand(Quantity(5))) == "2015"
    assert year.remarks == []  # a year is its number


def test_nothing_is_said_where_something_is_calculated_with_it() -> None:
    nothing = operand()
    assert run("add", operand(Quantity(3, "$")), nothing) == "3 $"
    assert nothing.remarks == ["add: operand 2 is empty, and adds nothing"]
    for operator, holds in ((">", False), ("=", False), ("!=", True)):
        nothing = operand()
        assert relation([operand(Quantity(3)), nothing], {"operator": operator}) == [holds]
        assert nothing.remarks == [f"{operator}: the right side is empty, and matches nothing"]


def test_units_are_not_lost() -> None:
    with pytest.raises(Inapplicable, match="multiply: 3 m and 2 m both have a unit"):
        run("multiply", operand(Quantity(3, "m")), operand(Quantity(2, "m")))
    assert run("multiply", operand(Quantity(3, "m")), operand(Quantity(2))) == "6 m"
    with pytest.raises(Inapplicable, match="%: 7 kg and 2 m are of different units"):
        run("remainder", operand(Quantity(7, "kg")), operand(Quantity(2, "m")))
    with pytest.raises(Inapplicable, match=r"add: 1200000 \$ and 1000000 € are of different units"):
        run("add", operand(Quantity(1_200_000, "$")), operand(Quantity(1_000_000, "€")))
    share = operand(Quantity(12, "wins"))
    assert run("percentage", share, operand(Quantity(30, "matches"))) == "40 %"
    assert share.remarks == ["percentage: 12 wins and 30 matches are of different units"]
    assert run("divide", operand(Quantity(6, "Miles")), operand(Quantity(3, "miles"))) == "2"


def test_units_of_one_dimension_are_calculated_and_compared_in_one() -> None:
    pytest.importorskip("pint")
    metres, centimetres = Quantity(3, "m"), Quantity(250, "cm")
    assert run("difference", operand(metres), operand(centimetres)) == "0.5 m"
    assert run("add", operand(centimetres), operand(metres)) == "550 cm"
    assert run("divide", operand(metres), operand(Quantity(300, "cm"))) == "1"
    share = operand(centimetres)
    assert run("percentage", share, operand(Quantity(5, "m"))) == "50 %"
    assert share.remarks == []
    assert compared(metres, centimetres, ">", "compare")
    assert compared(metres, Quantity(300, "cm"), "=", "=")


def test_percentages_are_parts_of_what_has_a_unit() -> None:
    part, whole = Quantity(10, "%"), Quantity(50, "€")
    assert run("multiply", operand(part), operand(whole)) == run("multiply", operand(whole), operand(part)) == "5 €"
    assert run("multiply", operand(part), operand(part)) == "1 %"
    assert run("multiply", operand(part), operand(Quantity(3))) == "30 %"
    with pytest.raises(Inapplicable, match="multiply: 50 € and 2 m both have a unit"):
        FUNCTIONS["multiply"]([operand(whole), operand(part), operand(Quantity(2, "m"))], {})


def test_years_meet_no_days() -> None:
    """Of a time only the year is a number: what has another unit cannot be added to it."""
    days = Quantity(5, "day")
    for name, sides in (("add", (LEAP, days)), ("add", (days, Time.year(1999))), ("difference", (Time.year(1999), days))):
        with pytest.raises(Inapplicable, match=rf"{name}: .* is a time, and 5 day is not a number of years"):
            run(name, *map(operand, sides))
    assert run("add", operand(Time.year(1999)), operand(Quantity(5, "years"))) == "2004 years"
    assert run("difference", operand(Time.year(1999)), operand(Quantity(5, "years"))) == "1994 years"


def test_units_that_differ_by_case_are_not_one_where_that_is_known() -> None:
    pytest.importorskip("pint")
    large, small = Quantity(1, "MW"), Quantity(5_000_000, "mW")
    assert run("add", operand(large), operand(small)) == "1.005 MW"
    assert compared(large, small, ">", "compare")
    # Of two spellings of one unit no digit is lost.
    assert run("add", operand(Quantity(10**20, "metre")), operand(Quantity(10**20 + 1, "m"))) == f"{2 * 10**20 + 1} metre"


@pytest.mark.parametrize("engine", ["snapshot", "sparql"])
def test_tables_calculate_with_units_as_functions_do(engine: Any) -> None:
    pytest.importorskip("pint")
    graph = condgraph.open()
    rows = [
        {"id": 1, "a": "3 m", "b": "250 cm", "p": "10 %", "q": "50 €"},
        {"id": 2, "a": "1 m", "b": "2 kg", "p": "5 %", "q": "4 €"},
    ]
    graph.load(rows, name="t", key="id")
    found = graph.query("FindAll()", table="show id, a + b, a - b, a / b, p * q, q * p order by id", engine=engine)
    assert found.cells == [("1", "5.5 m", "0.5 m", "1.2", "5 €", "5 €"), ("2", "", "", "", "0.2 €", "0.2 €")]
    assert sorted(found.warnings) == [
        "a + b: numbers in m and in kg: 1 value is left out",
        "a - b: numbers in m and in kg: 1 value is left out",
        "a / b: numbers in m by numbers in kg: 1 value is left out",
    ]
    assert found.check()
    for test in ("a + b > 500 cm", "a * 2 > 500 cm", "b < 2.6 m", "b + a > 500 cm"):
        found = graph.query("FindAll()", table=f"where {test} show id", engine=engine)
        assert found.cells == [("1",)], test


@pytest.mark.parametrize(
    ("test", "ids"),
    [
        ("='3 m'", ["1", "2", "4"]),
        ("!='3 m'", ["3", "5"]),
        (">'2.9 m'", ["1", "2", "4", "5"]),
        (">'2.9'", ["1", "2", "4", "5"]),
        ("<='300 CM'", ["1", "2", "3", "4"]),
        ("='3 meters'", ["1", "2", "4"]),
    ],
)
def test_a_literal_is_compared_in_all_units_of_its_column(test: str, ids: list[str]) -> None:
    """As `FilterNum` and `where` do: a column of lengths may write some in metres and some in centimetres."""
    pytest.importorskip("pint")
    graph = condgraph.open()
    sizes = ("3 m", "300 cm", "2.5 m", "0.003 km", "1000 m")
    graph.load([{"id": str(at), "size": size} for at, size in enumerate(sizes, 1)], name="t", key="id")
    program = f"Query1: \"get_information(relation='size', tail_entity{test})\""
    answer = graph.query(program)
    assert sorted(one.id.rsplit("/", 1)[-1] for one in answer.entities) == ids
    assert not any("cannot be compared" in one for one in answer.warnings)
    assert graph.query(program, engine="sparql").texts == answer.texts


def test_places_among_values_that_do_not_compare_are_said() -> None:
    graph = condgraph.open()
    points = ("10", "7", "10.0", "n.n.", "3 kg")
    items = [Statement(f"e{at}", "points", Quantity(float(one)) if one[-1].isdigit() else one) for at, one in enumerate(points[:4])]
    graph.add([*items, Statement("e9", "points", Quantity(3, "kg"))])

    def ask(*calls: str) -> condgraph.Answer:
        lines = ["get_information(relation='points')", *calls]
        return graph.query("\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1)))

    best = ask("nth_highest(set='output_of_query1', n=1)")
    assert best.texts == ask("max(set='output_of_query1')").texts == ["10"]
    assert best.warnings == ["largest: 2 values are not of type quantity and do not compete"]
    second = ask("nth_highest(set='output_of_query1', n=2)")
    assert any(one.startswith("nth_highest: the values are of 3 types or units") for one in second.warnings)
    last = ask("sort(set='output_of_query1')", "last(set='output_of_query2')")
    assert any(one.startswith("sort: the values are of 3 types or units") for one in last.warnings)


def test_an_answer_that_was_to_be_descending_says_that_it_is_not() -> None:
    graph = condgraph.open()
    graph.add([Statement(f"e{at}", "points", Quantity(at)) for at in range(3)])
    program = """Query1: "get_information(relation='points')"
Query2: "sort(set='output_of_query1', order='descending')\""""
    answer = graph.query(program)
    assert answer.texts == ["0", "1", "2"]
    assert any("has its own order, which is ascending" in one for one in answer.warnings)
    first = graph.query(program + """\nQuery3: "first(set='output_of_query2')\"""")
    assert (first.texts, first.warnings) == (["2"], [])


@pytest.mark.parametrize("text", ["1 000", "1 000 m", "12 000 000", "1 000,5"])
def test_digits_in_groups_are_no_unit(text: str) -> None:
    graph = condgraph.open()
    graph.add([Statement("a", "height", Quantity(2000)), Statement("b", "height", Quantity(3, "100 m"))])
    with pytest.raises(LiteralError, match=r"would be 12? in the unit '000") as error:
        graph.kopl(f'FindAll() FilterNum(height, "{text}", >)')
    assert "digits are written together" in str(error.value)
    assert graph.kopl("FindAll() FilterNum(height, 1000, >) QueryName()").texts == ["a"]


def terms() -> condgraph.Graph:
    """Ann was mayor twice, Bob in between, and began last but one; Dee began last and ended before Ann."""
    graph = condgraph.open()
    held = [("Ann", 1990, 1994), ("Bob", 1994, 1998), ("Ann", 1998, 2010), ("Cid", 1980, 1992), ("Dee", 2002, 2005)]
    graph.add(
        Statement("town", "mayor", Ref(who), (("start time", Time.year(first)), ("end time", Time.year(last))))
        for who, first, last in held
    )
    return graph


@pytest.mark.parametrize(
    ("key", "value", "who"),
    [
        ("start time", "latest", "Dee"),
        ("start time", "earliest", "Cid"),
        ("end time", "earliest", "Cid"),
        ("end time", "latest", "Ann"),
        ("time", "earliest", "Cid"),
        ("time", "latest", "Ann"),
    ],
)
@pytest.mark.parametrize("engine", ["snapshot", "sparql"])
def test_a_superlative_of_the_start_or_the_end_is_of_that(key: str, value: str, who: str, engine: str) -> None:
    program = f"Query1: \"get_information(head_entity='town', relation='mayor', key='{key}', value='{value}')\""
    assert terms().query(program, engine=engine).texts == [who]  # type: ignore[arg-type]


def test_two_intervals_last_as_long_as_each_of_them() -> None:
    program = """Query1: "get_information(head_entity='town', relation='mayor', tail_entity='Ann', key='time')"
Query2: "duration(set='output_of_query1')\""""
    assert terms().query(program).texts == ["4 year", "12 year"]
    assert run("duration", operand(Time.year(1990), Time.year(1998))) == "8 year"
