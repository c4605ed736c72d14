"""Literals of LLM queries: what a cell may be, a literal may be; checked against numbers written
out by hand.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import condgraph
from condgraph.engine.answer import Answer
from condgraph.engine.errors import LiteralError, UnknownNameError
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from condgraph.languages.llm.lower.literals import inner_conditions, read_quantities
from tests.frontends.test_llm_query import program
from tests.support.pace import quick_enough

#: Columns as they come: plain numbers, money with letters, percent, numbers as Germans write them,
#: a column of texts.
CITIES = """\
name;people;budget;share;area;rating
a;1000;$1.2M;10%;1.234,5;3, poor
b;25000000;$2M;50%;2.000,25;25000, loved
c;30000000;$3.5M;90%;12,5;12, fair
d;500;$900k;12.5%;1.500;7, good
e;;;;;
"""


@pytest.fixture(scope="module")
def cities(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    place = tmp_path_factory.mktemp("literals") / "cities.csv"
    place.write_text(CITIES, "utf-8")
    found = condgraph.open()
    found.load(place)
    return found


def names(graph: Graph, column: str, condition: str) -> Answer:
    rows = f"get_information(relation='{column}', tail_entity{condition})"
    return graph.query(program(rows, "get_information(relation='name', head_entity='output_of_query1')"))


@pytest.mark.parametrize(
    ("column", "condition", "expected"),
    [
        ("people", ">'2e7'", "bc"),
        ("people", ">'2.5E7'", "c"),
        ("people", ">='2.5e7'", "bc"),
        ("people", "='25M'", "b"),
        ("people", ">'25M'", "c"),
        ("people", "<'25k'", "ad"),
        ("people", "<'25K'", "ad"),
        ("people", "<'1,001'", "ad"),
        ("people", "='1,000'", "a"),
        ("people", "='1 000'", "a"),
        ("people", "!='1e3'", "bcd"),
        ("people", ">'0.03bn'", ""),
        ("people", ">='0.03bn'", "c"),
        ("people", ">'25 million'", "c"),
        ("people", ">'(5)'", "abcd"),
        ("people", "<'(5)'", ""),
        ("budget", ">='$2M'", "bc"),
        ("budget", "='$2M'", "b"),
        ("budget", "!='$2M'", "acd"),
        ("budget", ">='$2 million'", "bc"),
        ("budget", ">='2M'", "bc"),
        ("budget", ">='2m'", "bc"),
        ("budget", ">='USD 2M'", "bc"),
        ("budget", ">='2 million dollars'", "bc"),
        ("budget", "<'$1bn'", "abcd"),
        ("budget", "<'$1,200,000'", "d"),
        ("budget", ">'$9e5'", "abc"),
        ("share", ">='50%'", "bc"),
        ("share", ">='50 percent'", "bc"),
        ("share", "='12.5 %'", "d"),
        ("area", ">'1.500'", "b"),
        ("area", "<'12,6'", "c"),
        ("rating", ">'2.5e1'", "b"),
        ("rating", ">='25k'", "b"),
    ],
)
def test_a_literal_is_read_as_a_cell_is(cities: Graph, column: str, condition: str, expected: str) -> None:
    assert "".join(names(cities, column, condition).texts) == expected


@pytest.mark.parametrize("literal", ["€2M", "£5", "2 kg", "50%", "€1.2bn"])
@pytest.mark.parametrize("operator", [">", "<=", "="])
def test_units_that_do_not_compare_are_an_error_that_names_both(cities: Graph, literal: str, operator: str) -> None:
    with pytest.raises(LiteralError, match="do not compare") as error:
        names(cities, "budget", f"{operator}'{literal}'")
    unit = literal.strip("0123456789. Mbn") or literal
    assert repr(unit) in str(error.value)
    assert "'$'" in str(error.value)
    everything = names(cities, "budget", f"!='{literal}'")
    assert everything.texts == ["a", "b", "c", "d"]
    assert any("all values differ from it" in warning for warning in everything.warnings)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("> 5", "bc"),
        ("<=5", "a"),
        ("=> 7", "bc"),
        ("!=7", "ac"),
        ("more than 5", "bc"),
        ("at most 7", "ab"),
        ("No  less than 7", "bc"),
        ("between 5 and 8", "ab"),
        ("from 6 to 9", "bc"),
        ("5", "a"),
    ],
)
def test_operators_inside_the_quotes_are_operators(literal: str, expected: str) -> None:
    """They were a part of the text, which the nearest cell then stood for: `'> 5'` gave 5."""
    graph = condgraph.open()
    rows = [("a", 5, "<5"), ("b", 7, "> 5"), ("c", 9, "5 to 9")]
    graph.load([{"name": name, "size": size, "class": group} for name, size, group in rows], name="things")
    for call in (
        f"get_information(relation='name', key='size', value='{literal}')",
        f"get_information(relation='size', tail_entity='{literal}')",
    ):
        found = graph.query(program(call, "get_information(relation='name', head_entity='output_of_query1')"))
        assert "".join(found.texts) == expected
        assert any("operators belong outside of the quotes" in one for one in found.warnings) == (literal != "5")
    # A cell that has the text is meant itself; what cannot be compared stays a text.
    assert graph.query(program("get_information(relation='name', key='class', value='> 5')")).texts == ["b"]
    with pytest.raises(condgraph.CondgraphError, match="'> large'"):
        graph.query(program("get_information(relation='name', key='size', value='> large')"))


def test_operators_inside_the_quotes_of_qualifiers_and_times(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text(
        "subject\trelation\tobject\tstart\tend\nAnn\tworks for\tAcme\t1990\t1999\nBob\tworks for\tAcme\t2001\t2005\n", "utf-8"
    )
    graph = condgraph.open()
    graph.load(tmp_path / "terms.tsv")
    people = enumerate(("Ann", "Bob"), 1)
    graph.add([Statement(name, "member of", Ref("Acme"), (("rank", Quantity(rank)),)) for rank, name in people])
    cases = (("member of", "rank", "> 1"), ("member of", "rank", "at least 2"), ("works for", "start time", "> 2000"))
    for relation, key, value in (*cases, ("works for", "time", "> 2000")):
        call = f"get_information(relation='{relation}', tail_entity='Acme', key='{key}', value='{value}')"
        assert graph.query(program(call)).texts == ["Bob"], (key, value)


def test_texts_of_operators_are_read_in_linear_time() -> None:
    for text in ("between " + "a " * 500_000, "between x" + " " * 10**6, "from " + "a and " * 200_000, "<" * 10**6):
        began = time.process_time()
        assert len(inner_conditions(text)) <= 2
        assert quick_enough(time.process_time() - began, 1)


def test_a_parameter_that_is_none_lists_those_that_are(cities: Graph) -> None:
    with pytest.raises(UnknownNameError, match="'tme'") as error:
        cities.query(program("get_information(relation='people', tme='2003')"))
    assert "head_entity, relation, tail_entity, key, value" in (error.value.hint or "")


def test_a_unit_that_the_values_do_not_have_is_reported(cities: Graph) -> None:
    found = names(cities, "people", ">'$900'")
    assert found.texts == ["a", "b", "c"]
    assert "the unit '$' of '$900' is left out: the values it is compared with have none" in found.warnings
    assert "'2M' is read as 2000000 $" in names(cities, "budget", ">'2M'").warnings
    assert "'USD' of 'USD 2M' is taken for '$', which the values have" in names(cities, "budget", ">'USD 2M'").warnings
    assert "'(5)' is read as -5" in names(cities, "people", ">'(5)'").warnings


@pytest.mark.parametrize(
    "unit", ["million", "thousand tonnes", "1/s", "people [2020]", "(dry) kg", "million barrels per day of oil"]
)
def test_a_unit_is_what_the_values_have_in_it(unit: str) -> None:
    """A literal that is written as the values are is read as they are, whatever its unit begins with."""
    graph = condgraph.open()
    graph.add([Statement("A", "size", Quantity(3, unit)), Statement("B", "size", Quantity(900, unit))])
    found = graph.query(program(f"get_information(relation='size', tail_entity>'3.5 {unit}')"))
    assert (found.texts, found.warnings) == (["B"], [])
    graph.add([Statement(name, "size", Quantity(number)) for name, number in (("C", 1), ("D", 2), ("E", 4_000_000))])
    if unit == "million":
        found = graph.query(program("get_information(relation='size', tail_entity>'3.5 million')"))
        assert found.texts == ["E"]


def test_the_cells_of_a_column_decide(tmp_path: Path) -> None:
    (tmp_path / "heights.csv").write_text("name,height\na,25 m\nb,1.69 m (5 ft 7 in)\nc,2.5 km\n", "utf-8")
    (tmp_path / "seen.csv").write_text("name,seen\na,25M\nb,30M\nc,1.5M\n", "utf-8")
    heights, seen = condgraph.open(), condgraph.open()
    heights.load(tmp_path / "heights.csv")
    seen.load(tmp_path / "seen.csv")
    assert names(heights, "height", "='25m'").texts == ["a"]
    assert names(heights, "height", "='5 ft 7 in'").texts == ["b"]
    assert names(seen, "seen", ">='25M'").texts == ["a", "b"]


def test_operands_of_functions_are_read_alike() -> None:
    graph = condgraph.open()
    graph.load([{"name": "a", "people": 1000}], name="cities")
    people = "get_information(relation='people')"
    for literal, expected in (("2e3", "1000"), ("2k", "1000"), ("1,500", "500"), ("(5)", "1005"), ("0.002M", "1000")):
        assert graph.query(program(people, f"difference(set1='output_of_query1', set2='{literal}')")).texts == [expected], literal


@pytest.mark.parametrize("literal", ["1" * 5000, "1," * 5000, "9" * 5000 + " million", "$" + "9" * 5000, "1e999", "x" + "7" * 9000])
def test_literals_beyond_all_numbers_are_typed_errors(cities: Graph, literal: str) -> None:
    for column in ("people", "budget", "rating", "name"):
        for operator in (">", "=", "!="):
            try:
                names(cities, column, f"{operator}'{literal}'")
            except condgraph.CondgraphError:
                continue


def test_readings_of_a_literal() -> None:
    assert [str(one) for one in read_quantities("1.234")] == ["1.234"]
    assert [str(one) for one in read_quantities("1.234", european=True)] == ["1234"]
    assert [str(one) for one in read_quantities("25m")] == ["25 m"]
    assert [str(one) for one in read_quantities("25m", money=True)] == ["25 m", "25000000"]
    assert [str(one) for one in read_quantities("€1.2bn")] == ["1200000000 €"]
    assert read_quantities("kg") == read_quantities("") == read_quantities("1980s or so, at " + "9" * 5000) == []
