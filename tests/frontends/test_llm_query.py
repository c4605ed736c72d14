"""LLM queries on small graphs: the 32 cases, the other functions, rows, times, names, several
sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import condgraph
from condgraph.engine.answer import Answer
from condgraph.engine.errors import (
    AmbiguousNameError,
    LiteralError,
    OptionError,
    ParseError,
    PlanError,
    UnknownNameError,
)
from condgraph.engine.execute import Run
from condgraph.engine.facts import Item, Ref, Statement
from condgraph.engine.passes import optimise
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from condgraph.languages.llm.lower.query import lower
from condgraph.languages.llm.lower.search import CASES, subsets

PEOPLE = """\
Name,Team,Points,Joined,Weight,Note
Ann,Red,10,"March 8, 2003",70 kg,captain
Bob,Blue,10,1999-05-01,80 kg,
Cid,Red,5,2001-02-03,75 kg,n/a
Dora Maar,Green,7,2003-12-24,60 kg,new
"""


def years(first: int, last: int) -> tuple[tuple[str, Ref | Quantity | Time], ...]:
    return ("start time", Time.year(first)), ("end time", Time.year(last))


def work() -> Iterator[Item]:
    def job(who: str, where: str, first: int, last: int, role: str) -> Statement:
        return Statement(who, "works at", Ref(where), (*years(first, last), ("role", role)))

    yield job("Ann", "Acme", 2000, 2004, "boss")
    yield job("Ann", "Beta", 2005, 2010, "clerk")
    yield job("Bob", "Acme", 2003, 2008, "clerk")
    yield Statement("Ann", "knows", Ref("Bob"))
    for who, city in (("Acme", "Oslo"), ("Beta", "Rome")):
        yield Statement(who, "city", city)
    for who, age in (("Ann", 30), ("Bob", 40)):
        yield Statement(who, "age", Quantity(age))


@pytest.fixture(scope="module")
def graph() -> Graph:
    found = condgraph.open()
    found.add(list(work()), source="work")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    (place / "people.csv").write_text(PEOPLE, "utf-8")
    (place / "teams.csv").write_text("Team,City,Founded\nRed,Oslo,1950\nBlue,Rome,1960\n", "utf-8")
    return place


@pytest.fixture(scope="module")
def table(folder: Path) -> Graph:
    found = condgraph.open()
    found.load(folder / "people.csv")
    return found


def program(*queries: str, target: str | None = None) -> str:
    head = "" if target is None else f"## Target type: {{{target}}}\n"
    return head + "\n".join(f'Query{at}: "{query}"' for at, query in enumerate(queries, 1))


def ask(graph: Graph, *queries: str, target: str | None = None) -> list[str]:
    return graph.query(program(*queries, target=target)).texts


def get(**given: str) -> str:
    """get_information with H, R, T, K, V; a value that begins with an operator keeps it."""
    names = {"H": "head_entity", "R": "relation", "T": "tail_entity", "K": "key", "V": "value"}
    parts = []
    for letter, text in given.items():
        operator = text[: len(text) - len(text.lstrip("=<>!"))] or "="
        parts.append(f"{names[letter]}{operator}'{text.lstrip('=<>!')}'")
    return f"get_information({', '.join(parts)})"


EXPECTED = {
    "H": (["city"], {"H": "Acme"}),
    "R": (["Acme", "Beta"], {"R": "works at"}),
    "T": (["Acme"], {"T": "Oslo"}),
    "K": (["30", "40"], {"K": "age"}),
    "K q": (["boss", "clerk"], {"K": "role"}),
    "V": (["Acme"], {"V": "Oslo"}),
    "HR": (["Acme", "Beta"], {"H": "Ann", "R": "works at"}),
    "HT": (["works at"], {"H": "Ann", "T": "Acme"}),
    "HK": (["30"], {"H": "Ann", "K": "age"}),
    "HK q": (["boss", "clerk"], {"H": "Ann", "K": "role"}),
    "HK time": (["2000/2004", "2005/2010"], {"H": "Ann", "K": "time"}),
    "HV": (["age"], {"H": "Ann", "V": "30"}),
    "RT": (["Ann", "Bob"], {"R": "works at", "T": "Acme"}),
    "RT >": (["Bob"], {"R": "age", "T": ">35"}),
    "RT !=": (["Beta"], {"R": "city", "T": "!=Oslo"}),
    "RK q": (["boss", "clerk"], {"R": "works at", "K": "role"}),
    "RK end": (["2004", "2008", "2010"], {"R": "works at", "K": "end time"}),
    "RV": (["Acme"], {"R": "city", "V": "Oslo"}),
    "TK": (["Bob"], {"T": "40", "K": "age"}),
    "TK q": (["Ann", "Bob"], {"T": "clerk", "K": "role"}),
    "TV": (["Ann"], {"T": "Acme", "V": "Beta"}),
    "KV": (["Beta"], {"K": "city", "V": "Rome"}),
    "KV q": (["Ann"], {"K": "role", "V": "boss"}),
    "HRT": (["yes"], {"H": "Ann", "R": "works at", "T": "Acme"}),
    "HRT no": (["no"], {"H": "Bob", "R": "works at", "T": "Beta"}),
    "HRK": (["Oslo", "Rome"], {"H": "Ann", "R": "works at", "K": "city"}),
    "HRK q": (["boss", "clerk"], {"H": "Ann", "R": "works at", "K": "role"}),
    "HRV": (["yes"], {"H": "Ann", "R": "age", "V": "30"}),
    "HTK": (["yes"], {"H": "Ann", "T": "30", "K": "age"}),
    "HTK q": (["2000/2004"], {"H": "Ann", "T": "Acme", "K": "time"}),
    "HTV": (["yes"], {"H": "Ann", "T": "Acme", "V": "30"}),
    "HKV": (["no"], {"H": "Ann", "K": "age", "V": "40"}),
    "HKV q": (["Acme"], {"H": "Ann", "K": "role", "V": "boss"}),
    "RTK": (["30", "40"], {"R": "works at", "T": "Acme", "K": "age"}),
    "RTK q": (["boss", "clerk"], {"R": "works at", "T": "Acme", "K": "role"}),
    "RTV": (["Bob"], {"R": "age", "T": ">30", "V": "<50"}),
    "RKV": (["Acme"], {"R": "works at", "K": "age", "V": "40"}),
    "RKV q": (["Acme", "Beta"], {"R": "works at", "K": "role", "V": "clerk"}),
    "RKV time": (["Acme", "Beta"], {"R": "works at", "K": "time", "V": ">=2002"}),
    "TKV": (["Ann"], {"T": "Acme", "K": "age", "V": "30"}),
    "TKV q": (["Bob"], {"T": "Acme", "K": "role", "V": "clerk"}),
    "HRTK": (["30"], {"H": "Ann", "R": "works at", "T": "Acme", "K": "age"}),
    "HRTK q": (["boss"], {"H": "Ann", "R": "works at", "T": "Acme", "K": "role"}),
    "HRTV": (["yes"], {"H": "Ann", "R": "age", "T": ">20", "V": "<40"}),
    "HRKV": (["Beta"], {"H": "Ann", "R": "works at", "K": "city", "V": "Rome"}),
    "HRKV q": (["Acme"], {"H": "Ann", "R": "works at", "K": "time", "V": "2003"}),
    "HTKV": (["works at"], {"H": "Ann", "T": "Acme", "K": "age", "V": "30"}),
    "HTKV q": (["works at"], {"H": "Ann", "T": "Acme", "K": "role", "V": "boss"}),
    "RTKV": (["Bob"], {"R": "works at", "T": "Acme", "K": "age", "V": ">35"}),
    "RTKV q": (["Ann", "Bob"], {"R": "works at", "T": "Acme", "K": "time", "V": "2004"}),
    "HRTKV": (["no"], {"H": "Bob", "R": "works at", "T": "Acme", "K": "age", "V": "30"}),
    "HRTKV q": (["yes"], {"H": "Bob", "R": "works at", "T": "Acme", "K": "role", "V": "clerk"}),
}


@pytest.mark.parametrize("case", EXPECTED)
def test_every_case_has_its_meaning(graph: Graph, case: str) -> None:
    expected, given = EXPECTED[case]
    assert ask(graph, get(**given)) == expected


def test_no_case_is_left_out(graph: Graph) -> None:
    shown = {"".join(letter for letter in "HRTKV" if letter in given) for _, given in EXPECTED.values()}
    assert shown == {given for given in subsets() if given}
    with pytest.raises(PlanError, match="two columns without a condition"):
        ask(graph, get(R="works at", K="age"))
    with pytest.raises(PlanError, match="without any condition"):
        ask(graph, "get_information()")
    assert len(CASES) == 32


@pytest.mark.parametrize("case", EXPECTED)
def test_passes_change_no_result(graph: Graph, case: str) -> None:
    schema = graph.current.schema
    lowered = lower(program(get(**EXPECTED[case][1]), "count(set='output_of_query1')"), schema)
    both = []
    for plan in (lowered.plan, optimise(lowered.plan)[0]):
        run = Run(graph.current)
        run.execute(plan)
        both.append(Answer(run, plan).texts)
    assert both[0] == both[1]


def test_a_set_as_head_keeps_those_that_hold(graph: Graph) -> None:
    workers = get(R="works at", T="Acme")
    assert ask(graph, workers, "get_information(head_entity='output_of_query1', relation='age', tail_entity>'35')") == ["Bob"]
    assert ask(graph, workers, "get_information(head_entity='output_of_query1', relation='age')") == ["30", "40"]


def test_two_bounds_both_hold(graph: Graph) -> None:
    assert ask(graph, "get_information(relation='age', tail_entity>'29', tail_entity<'31')") == ["Ann"]


# -- times -----------------------------------------------------------------------------------------


def test_times_are_clipped_and_compared(graph: Graph) -> None:
    when = get(R="works at", T="Acme", K="time")
    assert ask(graph, when) == ["2000/2004", "2003/2008"]
    assert ask(graph, when, "min(set='output_of_query1')") == ["2000"]
    assert ask(graph, when, "max(set='output_of_query1')") == ["2008"]
    assert ask(graph, when, "keep(set='output_of_query1', value<'2003')") == ["2000/2002"]
    assert ask(graph, when, "keep(set='output_of_query1', value>='2008')") == ["2008"]
    assert ask(graph, when, "keep(set='output_of_query1', value<'2003')", "max(set='output_of_query2')") == ["2002"]
    assert ask(graph, when, "keep(set='output_of_query1', value='2004')") == ["2004", "2004"][:1]


def test_who_was_there_at_the_same_time(graph: Graph) -> None:
    mine = get(H="Bob", R="works at", T="Acme", K="time")
    for operator, expected in (("=", ["Ann", "Bob"]), ("<", []), (">", []), ("!=", [])):
        query = f"get_information(relation='works at', tail_entity='Acme', key='time', value{operator}'output_of_query1')"
        assert ask(graph, mine, query) == expected
    assert ask(graph, mine, "get_information(relation='works at', key='time', value>='output_of_query1')") == ["Acme", "Beta"]


def test_superlatives_of_time(graph: Graph) -> None:
    assert ask(graph, get(H="Ann", R="works at", K="time", V="latest")) == ["Beta"]
    assert ask(graph, get(H="Ann", R="works at", K="start time", V="first")) == ["Acme"]
    with pytest.raises(LiteralError, match="'soon' is not a time"):
        ask(graph, get(H="Ann", R="works at", K="time", V="soon"))


# -- tables ----------------------------------------------------------------------------------------


def test_rows_columns_and_neighbours(table: Graph) -> None:
    rows = get(R="Team", T="Red")
    assert ask(table, rows, "get_information(relation='Name', head_entity='output_of_query1')") == ["Ann", "Cid"]
    assert ask(table, rows, "count(set='output_of_query1')") == ["2"]
    assert ask(table, get(R="row_number")) == ["1", "2", "3", "4"]
    assert ask(table, get(R="row_number", T="<=2"), "get_information(relation='Name', head_entity='output_of_query1')") == [
        "Ann",
        "Bob",
    ]
    after = ("next_row(set='output_of_query1')", "get_information(relation='Name', head_entity='output_of_query2')")
    assert ask(table, get(R="Name", T="Bob"), *after) == ["Cid"]
    assert ask(table, get(R="Name", T="Dora Maar"), *after) == []
    numbered = "get_information(relation='row_number', head_entity='output_of_query1')"
    assert ask(table, rows, numbered) == ["1", "3"]
    assert ask(table, rows, numbered, "max(set='output_of_query2')") == ["3"]


def test_columns_are_bags(table: Graph) -> None:
    points = get(R="Points")
    assert ask(table, points, "sum(set='output_of_query1')") == ["32"]
    assert ask(table, points, "mean(set='output_of_query1')") == ["8"]
    assert ask(table, points, "count(set='output_of_query1')") == ["3"]
    best = (points, "max(set='output_of_query1')")
    assert ask(table, *best, "get_information(relation='Name', head_entity='output_of_query2')") == ["Ann", "Bob"]
    assert ask(table, *best, "get_information(relation='Points', tail_entity='output_of_query2')", target="name") == ["Ann", "Bob"]


def test_superlatives(table: Graph) -> None:
    name = "get_information(relation='Name', head_entity='output_of_query1')"
    assert ask(table, get(R="Points", T="highest"), name) == ["Ann", "Bob"]
    assert ask(table, get(R="Team", T="most"), name) == ["Ann", "Cid"]
    assert ask(table, get(R="Joined", T="earliest"), name) == ["Bob"]
    answer = table.query(program(get(R="Weight", T=">=lowest"), name))
    assert answer.texts == ["Dora Maar"]
    assert "'lowest' is taken as a superlative; >= adds nothing" in answer.warnings


def test_literals_are_read_by_the_column(table: Graph) -> None:
    name = "get_information(relation='Name', head_entity='output_of_query1')"
    answer = table.query(program(get(R="Weight", T=">72"), name))
    assert answer.texts == ["Bob", "Cid"]
    assert "'72' is read as 72 kg" in answer.warnings
    assert ask(table, get(R="Weight", T="70 kg"), name) == ["Ann"]
    assert ask(table, get(R="Joined", T="2003"), name) == ["Ann", "Dora Maar"]
    assert ask(table, get(R="Joined", T="8 March 2003"), name) == ["Ann"]
    assert ask(table, get(R="Joined", T="<May 2001"), name) == ["Bob", "Cid"]
    assert ask(table, get(R="Note", T="n/a"), name) == ["Bob", "Cid"]
    with pytest.raises(LiteralError, match="cannot be read as quantity"):
        ask(table, get(R="Points", T=">many"))


def test_rows_without_a_value_are_shown_by_what_tells_most(table: Graph) -> None:
    """By the column of the missing values there would be nothing to see."""
    answer = table.query(program(get(R="Note", T="n/a")))
    assert answer.values == [entity.name for entity in answer.entities] == ["people row 2", "people row 3"]
    assert answer.texts == ["Bob", "Cid"]
    assert answer.warnings[-1] == "the answer is table rows; it shows the column that tells most of them"
    assert answer.check()
    assert table.query("## Target type: {name}\n" + program(get(R="Note", T="n/a"))).texts == ["Bob", "Cid"]
    assert ask(table, get(R="Note", T="!=n/a")) == ["captain", "new"]
    # Sets of them as well; what is left without them has its values.
    both = "(set1='output_of_query1', set2='output_of_query2')"
    missing = get(R="Note", T="n/a")
    assert ask(table, missing, get(R="Team", T="Red"), f"set_intersection{both}") == ["Cid"]
    assert ask(table, missing, get(R="Team", T="Red"), f"set_difference{both}") == ["Bob"]
    assert ask(table, missing, get(R="Note", T="new"), f"set_union{both}")[:2] == ["Bob", "Cid"]
    assert ask(table, get(R="Note", T="!=n/a"), missing, f"set_difference{both}") == ["captain", "new"]
    assert ask(table, missing, "last(set='output_of_query1')") == ["Cid"]
    assert ask(table, get(R="Note", T="n/a", K="Team", V="Red")) == ["Cid"]
    assert ask(table, get(R="Note", T="n/a"), "count(set='output_of_query1')") == ["2"]


def test_cells_keep_their_text(table: Graph) -> None:
    assert ask(table, get(R="Name", T="Ann"), "get_information(relation='Joined', head_entity='output_of_query1')") == [
        "March 8, 2003"
    ]


def test_a_program_that_ends_on_rows_shows_a_column(table: Graph) -> None:
    answer = table.query(program(get(R="Team", T="Red"), target="player name"))
    assert answer.texts == ["Ann", "Cid"]
    assert [entity.row for entity in answer.entities] == [1, 3]
    assert "the answer is table rows; it shows their values of 'Name'" in answer.warnings
    assert table.query(program(get(R="Team", T="Red"))).texts == ["Red"]
    assert ask(table, get(R="Team", T="Red"), target="yes/no") == ["yes"]


def test_sets_of_rows_and_values(table: Graph) -> None:
    red, ten = get(R="Team", T="Red"), get(R="Points", T="10")
    name = "get_information(relation='Name', head_entity='output_of_query3')"
    for function, expected in (
        ("set_intersection", ["Ann"]),
        ("set_union", ["Ann", "Bob", "Cid"]),
        ("set_difference", ["Cid"]),
    ):
        assert ask(table, red, ten, f"{function}(set1='output_of_query1', set2='output_of_query2')", name) == expected
    negation = ("set_negation(set='output_of_query1')", "get_information(relation='Name', head_entity='output_of_query2')")
    assert ask(table, red, *negation) == ["Bob", "Dora Maar"]
    assert ask(table, get(R="Name"), "set_difference(set1='output_of_query1', set2='Ann', set3='Bob')") == ["Cid", "Dora Maar"]
    assert ask(table, get(R="Points"), "set_difference(set1='output_of_query1', set2='10')") == ["5", "7"]


def test_functions_beyond_the_paper(table: Graph) -> None:
    def points(name: str, first: int) -> tuple[str, str]:
        return get(R="Name", T=name), f"get_information(relation='Points', head_entity='output_of_query{first}')"

    both = (*points("Ann", 1), *points("Cid", 3))
    two = "value1='output_of_query2', value2='output_of_query4'"
    assert ask(table, *both, f"compare({two})") == ["Ann"]
    assert ask(table, *both, f"compare({two}, operator='less than')") == ["Cid"]
    assert ask(table, *both, f"compare({two})", target="yes or no") == ["yes"]
    assert ask(table, *both, f"compare({two})", target="more or less") == ["more"]
    assert ask(table, *both, f"calculate_difference({two})") == ["5"]
    assert ask(table, *both, "subtract(value1='output_of_query4', value2='output_of_query2')") == ["-5"]
    assert ask(table, *both, "if(output_of_query2 > output_of_query4, output_of_query1, output_of_query3)", target="name") == [
        "Ann"
    ]
    assert ask(table, *both, "output_of_query2 - output_of_query4") == ["5"]
    assert ask(table, *both, "divide(a='output_of_query2', b='output_of_query4')") == ["2"]
    joined = (get(R="Name", T="Ann"), "get_information(relation='Joined', head_entity='output_of_query1')")
    assert ask(table, *joined, "extract_year(set='output_of_query2')") == ["2003"]
    assert ask(table, *joined, "difference(a='output_of_query2', b='1999', unit='years')") == ["4"]
    assert ask(table, get(R="Name"), "last(set='output_of_query1')") == ["Dora Maar"]
    assert ask(table, get(R="Points"), "nth_highest(set='output_of_query1', n=2)") == ["7"]


def test_what_a_function_cannot_do_is_said(table: Graph) -> None:
    answer = table.query(program(get(R="Points"), "difference(a='output_of_query1', b='3')"))
    assert answer.texts == []
    assert "difference takes one value, not 3" in answer.warnings
    answer = table.query(program(get(R="Points"), "divide(a='1', b='0')"))
    assert "division by zero has no result" in answer.warnings


# -- names -----------------------------------------------------------------------------------------


def test_near_names_are_said_with_their_score(table: Graph) -> None:
    answer = table.query(program(get(R="Names", T="Dora Mar"), "get_information(relation='Teams', head_entity='output_of_query1')"))
    assert answer.texts == ["Green"]
    assert any(one.startswith("value of 'Name' 'Dora Mar' is read as 'Dora Maar' (similarity 0.") for one in answer.warnings)
    assert any("'Dora Maar' (similarity" in step.note for step in answer.trace)
    answer = table.query(program(get(R="name", T="ann")))
    folded = "(the same except for case, accents or white space)"
    assert [one for one in answer.warnings if "read as" in one] == [
        f"relation 'name' is read as 'Name' {folded}",
        f"value of 'Name' 'ann' is read as 'Ann' {folded}",
    ]
    answer = table.query(program(get(R="Name", T="Ann")))
    assert [one for one in answer.warnings if "read as" in one] == []


def test_unknown_names_list_what_is_near(table: Graph, graph: Graph) -> None:
    with pytest.raises(UnknownNameError, match="unknown value of 'Team' 'Zzz'") as caught:
        ask(table, get(R="Team", T="Zzz"))
    assert caught.value.span is not None
    with pytest.raises(UnknownNameError, match="unknown entity 'Anne Boleyn'"):
        ask(graph, get(H="Anne Boleyn", R="knows"))
    lenient = table.query(program(get(R="Team", T="Zzz"), "count(set='output_of_query1')"), on_unknown="empty")
    assert lenient.texts == ["0"]
    assert any("; it matches nothing" in one for one in lenient.warnings)


def test_functions_from_outside(table: Graph) -> None:
    text = program(get(R="Name"), "initials(set='output_of_query1')")
    with pytest.raises(UnknownNameError, match="unknown function 'initials'") as caught:
        table.query(text)
    assert "llm_function" in str(caught.value)
    seen: list[tuple[str, list[list[str]], dict[str, str]]] = []

    def function(name: str, arguments: list[list[str]], options: dict[str, str]) -> list[str]:
        seen.append((name, arguments, options))
        return sorted({text[0] for text in arguments[0]})

    answer = table.query(text, llm_function=function)
    assert answer.texts == ["A", "B", "C", "D"]
    assert seen == [("initials", [["Ann", "Bob", "Cid", "Dora Maar"]], {"argument 1": "set"})]
    assert any("given Ann, Bob, Cid, Dora Maar" in one for one in answer.warnings)
    with pytest.raises(OptionError):
        table.query(text, llm_function="gpt")
    assert table.query(text, llm_function={"Initials": function}).texts == ["A", "B", "C", "D"]
    with pytest.raises(UnknownNameError) as caught:
        table.query(text, llm_function={"initial": function})
    assert caught.value.candidates[0] == "initial"
    with pytest.raises(PlanError, match="the function 'initials' from outside failed"):
        table.query(text, llm_function=lambda name, arguments, options: [1 / 0])


def test_options_of_other_languages_are_refused(table: Graph) -> None:
    with pytest.raises(OptionError, match="kopl takes no option 'source'"):
        table.query("FindAll() Count()", source="people")
    with pytest.raises(OptionError, match="llm_query takes no option 'sources'") as caught:
        table.query(program(get(R="Name")), sources="people")
    assert caught.value.candidates == ("source",)


def test_steps_nobody_needs_are_not_run(table: Graph) -> None:
    answer = table.query(program(get(R="Zzzz"), get(R="Points"), "max(set='output_of_query2')"))
    assert answer.texts == ["10"]
    assert "the answer does not need query 1, which is not run" in answer.warnings
    answer = table.query("Query1: \"get_information(relation='Name'\"\nQuery2: \"get_information(relation='Points')\"")
    assert any("cannot be read" in one for one in answer.warnings)
    with pytest.raises(ParseError):
        table.query("Query1: \"get_information(relation='Name'\"", language="llm_query")


def test_evidence_and_trace(table: Graph) -> None:
    answer = table.query(program(get(R="Team", T="Red"), "get_information(relation='Name', head_entity='output_of_query1')"))
    shown = sorted(str(one) for one in answer.evidence)
    assert len(shown) == 4
    assert all("[people, row " in one for one in shown)
    assert [(step.function, step.size) for step in answer.trace] == [("Query1", 2), ("Query2", 2)]
    assert "Objects(" in answer.explain()
    assert "Scan('Team'" in table.explain(program(get(R="Team", T="Red")))


# -- several sources -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(folder: Path) -> Graph:
    found = condgraph.open()
    found.load(folder / "people.csv")
    found.load(folder / "teams.csv")
    found.add([Statement("r", "coach", Ref("zoe"))], source="coaches")
    found.add([*_named("r", "Red"), *_named("zoe", "Zoe")], source="coaches")
    found.add([*_named("z9", "Zoe"), *_named("c1", "Cup"), Statement("c1", "winner", Ref("z9"), years(2002, 2002))], source="cups")
    return found


def _named(ident: str, name: str) -> list[Item]:
    from condgraph.engine.facts import Entity

    return [Entity(ident, name)]


def test_a_name_of_several_tables_has_to_be_scoped(world: Graph) -> None:
    with pytest.raises(AmbiguousNameError, match="'Team' stands in 2 sources") as caught:
        ask(world, get(R="Team", T="Red"))
    assert caught.value.candidates == ("people", "teams")
    with pytest.raises(AmbiguousNameError, match="row_number"):
        ask(world, get(R="row_number"))
    scoped = "get_information(relation='Team', tail_entity='Red', source='teams')"
    assert ask(world, scoped, "get_information(relation='City', head_entity='output_of_query1')") == ["Oslo"]
    assert world.query(program(get(R="Team", T="Red"), "count(set='output_of_query1')"), source="people").texts == ["2"]
    with pytest.raises(UnknownNameError, match="unknown source"):
        world.query(program(get(R="Team")), source="peple")
    # What a step before gave says which table is meant.
    assert ask(world, get(R="Name", T="Bob"), "get_information(relation='Team', head_entity='output_of_query1')") == ["Blue"]


def test_a_chain_through_three_sources(world: Graph) -> None:
    answer = world.query(
        program(
            get(R="Name", T="Ann"),
            "get_information(relation='Team', head_entity='output_of_query1')",
            "get_information(relation='coach', head_entity='output_of_query2')",
            "get_information(head_entity='Cup', relation='winner', tail_entity='output_of_query3', key='time')",
        )
    )
    assert answer.texts == ["2002"]
    notes = [step.note for step in answer.trace]
    assert "values of 'people' meet entities by name" in notes[2]
    assert "entities of coaches meet those of cups by name" in notes[3]


def test_the_index_of_names_is_kept_beside_the_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from condgraph.names import vocabulary as kept

    monkeypatch.setattr(kept, "WORTH_KEEPING", -1.0)
    query = program(get(H="Acmee", R="city"))
    graph = condgraph.open(tmp_path)
    graph.add(list(work()), source="work")
    assert kept.entity_index(graph.current).names == ["Acme", "Ann", "Beta", "Bob"]
    files = list(tmp_path.rglob("names-*.npz"))
    assert len(files) == 1
    again = condgraph.open(tmp_path)
    assert kept.entity_index(again.current).names == ["Acme", "Ann", "Beta", "Bob"]
    assert again.query(query).texts == ["Oslo"]
    files[0].write_bytes(b"damaged")
    assert kept.entity_index(condgraph.open(tmp_path).current).folded("ACME") == [0]
