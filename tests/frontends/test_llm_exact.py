"""Exact texts first: what differs in case, accents or white space counts only where nothing is
exact, and is told.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import condgraph
from condgraph.engine.answer import Answer
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.graph import Graph
from tests.frontends.test_llm_query import program

#: Countries as people write them: row d has two spaces, rows f and g differ by an accent.
MIXED = "name,land\na,US\nb,us\nc,Us\nd,New  York\ne,new york\nf,café\ng,cafe\nh,Österreich\ni,\nj,Mar 2003\n"
TOLD = "(the same except for case, accents or white space)"


@pytest.fixture(scope="module")
def lands(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    place = tmp_path_factory.mktemp("exact") / "lands.csv"
    place.write_text(MIXED, "utf-8")
    found = condgraph.open()
    found.load(place)
    return found


def names(graph: Graph, condition: str) -> Answer:
    rows = f"get_information(relation='land', tail_entity{condition})"
    return graph.query(program(rows, "get_information(relation='name', head_entity='output_of_query1')"))


@pytest.mark.parametrize(
    ("condition", "expected", "near"),
    [
        ("='US'", "a", ()),
        ("='us'", "b", ()),
        ("='uS'", "abc", ("US", "us", "Us")),
        ("!='US'", "bcdefghj", ()),
        ("!='uS'", "defghj", ("US", "us", "Us")),
        ("='New York'", "d", ()),
        ("='NEW YORK'", "de", ("New  York", "new york")),
        ("='café'", "f", ()),
        ("='cafe'", "g", ()),
        ("!='cafe'", "abcdefhj", ()),
        ("='CAFE'", "fg", ("café", "cafe")),
        ("='osterreich'", "h", ("Österreich",)),
    ],
)
def test_exact_first_in_tables(lands: Graph, condition: str, expected: str, near: tuple[str, ...]) -> None:
    answer = names(lands, condition)
    assert "".join(answer.texts) == expected
    reported = [warning for warning in answer.warnings if TOLD in warning]
    assert len(reported) == (1 if near else 0)
    assert all(repr(one) in reported[0] for one in near)


def test_exact_first_in_functions(lands: Graph) -> None:
    everything = "get_information(relation='land')"
    for query, expected in (
        ("keep(set='output_of_query1', value='US')", ["US"]),
        ("set_intersection(set1='output_of_query1', set2='US')", ["US"]),
        ("set_intersection(set1='output_of_query1', set2='CAFE')", ["cafe", "café"]),
        ("set_difference(set1='output_of_query1', set2='us')", ["Mar 2003", "New  York", "US", "Us", "cafe", "café", "new york"]),
    ):
        answer = lands.query(program(everything, query))
        assert [text for text in answer.texts if text != "Österreich"] == expected, query
        assert any(TOLD in warning for warning in answer.warnings) == ("CAFE" in query)
    two = lands.query(program("get_information(relation='name', head_entity={'us', 'cafe'})"))
    assert two.texts == ["b", "g"]
    assert lands.query(program("get_information(relation='name', head_entity='US')")).texts == ["a"]
    both = "get_information(relation='name', tail_entity={'B', 'c'})"
    answer = lands.query(program(both, "get_information(relation='land', head_entity='output_of_query1')"))
    assert answer.texts == ["Us", "us"]
    assert f"value of 'name' 'B' is read as 'b' {TOLD}" in answer.warnings


def test_functions_report_where_only_case_makes_texts_the_same(lands: Graph) -> None:
    rows = "get_information(relation='name', tail_entity='a')"
    mine = "get_information(relation='land', head_entity='output_of_query1')"
    for test, expected, reported in (
        ("equal(a='output_of_query2', b='US')", "yes", False),
        ("equal(a='output_of_query2', b='us')", "yes", True),
        ("is_in(a='output_of_query2', b='us')", "yes", True),
        ("output_of_query2 = 'Us'", "yes", True),
        ("output_of_query2 = 'UK'", "no", False),
    ):
        answer = lands.query(program(rows, mine, test))
        assert answer.texts == [expected], test
        assert any("the same except for case" in warning for warning in answer.warnings) == reported, test


def test_values_that_read_the_same_are_not_near(tmp_path: Path) -> None:
    (tmp_path / "born.csv").write_text('name,date\na,"March 8, 2003"\nb,"May 1, 1999"\n', "utf-8")
    graph = condgraph.open()
    graph.load(tmp_path / "born.csv")
    query = "get_information(relation='date', tail_entity='march 8, 2003')"
    answer = graph.query(program(query, "get_information(relation='name', head_entity='output_of_query1')"))
    assert answer.texts == ["a"]
    assert not any("read as" in warning for warning in answer.warnings)


def test_exact_first_in_graphs() -> None:
    graph = condgraph.open()
    cities = [Entity("1", "Paris"), Entity("2", "PARIS"), Entity("3", "Orléans")]
    lives = [Statement(who, "lives in", Ref(city)) for who, city in (("Ann", "1"), ("Bob", "2"), ("Cid", "3"))]
    motto = [Statement(who, "motto", text) for who, text in (("Ann", "Yes"), ("Bob", "YES"))]
    graph.add([*cities, *lives, *motto], source="s")
    for literal, expected, near in (("Paris", ["Ann"], 0), ("paris", ["Ann", "Bob"], 1), ("orleans", ["Cid"], 1)):
        answer = graph.query(program(f"get_information(relation='lives in', tail_entity='{literal}')"))
        assert answer.texts == expected
        assert sum(TOLD in warning for warning in answer.warnings) == near
    answer = graph.query(program("get_information(relation='lives in', tail_entity!='Paris')"))
    assert answer.texts == ["Bob", "Cid"]
    assert graph.query(program("get_information(relation='motto', tail_entity='YES')")).texts == ["Bob"]
    answer = graph.query(program("get_information(relation='motto', tail_entity='yes')"))
    assert answer.texts == ["Ann", "Bob"]
    assert sum(TOLD in warning for warning in answer.warnings) == 1
    answer = graph.query(program("get_information(head_entity='ann', relation='lives in')"))
    assert answer.texts == ["Paris"]
    assert sum(TOLD in warning for warning in answer.warnings) == 1


#: Values of every kind, two of them unknown; a qualifier with texts and numbers; names that differ in their white space.
UNTIDY = [
    Statement("a", "made in", "Rome", (("no", Quantity(7)),)),
    Statement("b", "made in", Time.year(1960), (("no", "x7"),)),
    Statement("c", "made in", Quantity(3, "kg")),
    Statement("d", "made in", Ref("Oslo"), (("no", UNKNOWN),)),
    Statement("e", "made in", UNKNOWN),
    Statement("a  b", "made in", Ref("Old  Town")),
    Statement("a b", "made in", Ref("Old Town")),
    Statement("u", "lost in", UNKNOWN),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("relation='made in', tail_entity!='Rome'", ["a  b", "a b", "b", "c", "d"]),
        ("relation='made in', tail_entity!='3 kg'", ["a  b", "a b", "a", "b", "d"]),
        ("relation='lost in', tail_entity!='Rome'", []),
        ("relation='made in', key='no', value>'3'", ["Rome"]),
        ("relation='made in', key='no', value!='3'", ["1960", "Rome"]),
        ("relation='made in', head_entity='a  b'", ["Old  Town"]),
        ("relation='made in', head_entity='a b'", ["Old Town"]),
        ("relation='made in', tail_entity='Old  Town'", ["a  b"]),
        ("relation='made in', tail_entity='Old Town'", ["a b"]),
    ],
)
@pytest.mark.parametrize("engine", [None, "sparql"])
def test_unknown_values_and_white_space(query: str, expected: list[str], engine: str | None) -> None:
    graph = condgraph.open()
    graph.add(UNTIDY)
    assert sorted(graph.query(program(f"get_information({query})"), engine=engine).texts) == sorted(expected)
