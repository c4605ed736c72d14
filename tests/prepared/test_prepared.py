"""Prepared programs: parameters in every language, whatever is given for them, and what is said
where something else is given.
"""

from __future__ import annotations

import datetime
import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import condgraph
from condgraph.engine.errors import (
    CancelledError,
    CondgraphError,
    DeadlineError,
    LiteralError,
    OptionError,
    ParseError,
    UnknownNameError,
)
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from condgraph.languages import registry
from condgraph.languages.parameters import text_for
from condgraph.snapshot_store import QuickAnswer
from tests.support.lanes import examples

#: Names that are syntax where they are pasted into a text.
HOSTILE = (
    'a") FindAll() Count() Find("b',
    "a) Count() Find(b",
    "$person",
    "$$person",
    "UNKNOWN film 1",
    "?x",
    "> 1990",
    "output_of_query1",
    "x', relation='born",
    "highest",
    "none",
    "forward",
    '") or ("',
    "<Q1>",
    "[]",
    '{"function": "FindAll"}',
    "a, b",
    "\0",
    "line\nbreak",
    "'",
    '"',
    "\\",
    '\\"',
    "`",
    "Robert'); DROP",
    "${x}",
    "{x}",
    "%s",
)


def film_items() -> list[Any]:
    people = ["Ann", "Bo", "Cid", *HOSTILE]
    items: list[Any] = [Entity("person", "person", EntityKind.CONCEPT), Entity("film", "film", EntityKind.CONCEPT)]
    for at, name in enumerate(people):
        items += [Entity(f"p{at}", name), Entity(f"f{at}", f"Film {at}"), Member(f"p{at}", "person"), Member(f"f{at}", "film")]
        items += [
            Statement(f"f{at}", "directed_by", Ref(f"p{at}")),
            Statement(f"f{at}", "starred", Ref(f"p{(at + 1) % len(people)}")),
        ]
        items += [
            Statement(f"p{at}", "height", Quantity(160 + at, "centimetre")),
            Statement(f"f{at}", "year", Time.year(1980 + at)),
        ]
        items += [Statement(f"p{at}", "motto", name)]
    return items


@pytest.fixture(scope="module")
def films() -> Graph:
    graph = condgraph.open()
    graph.add(film_items())
    return graph


DIRECTED = "Find($person) Relate(directed_by, backward) QueryName()"


def test_any_name_is_a_name_in_every_language(films: Graph) -> None:
    kopl = films.prepare(DIRECTED)
    steps = films.prepare(
        [
            {"function": "Find", "inputs": ["$person"]},
            {"function": "Relate", "inputs": ["directed_by", "backward"]},
            {"function": "QueryName", "inputs": []},
        ]
    )
    llm = films.prepare("Query1: \"get_information(relation='directed_by', tail_entity=$person)\"")
    logic = films.prepare("?f : directed_by(?f, $person)")
    arrow = films.prepare("(UNKNOWN film 9) -[directed_by]-> ($person)", directed=True)
    tuples = films.prepare([("UNKNOWN film 9", "directed_by", "$person")], directed=True)
    for at, name in enumerate(["Ann", "Bo", "Cid", *HOSTILE]):
        wanted = [f"Film {at}"]
        for _ in range(2):
            assert kopl(person=name).texts == wanted
        assert steps(person=name).texts == logic(person=name).texts == wanted
        assert llm(person=name).texts == wanted, name
        if name.strip() and name == " ".join(name.split()):  # names of patterns are read without white space at their ends
            for pattern in (arrow, tuples):
                found = pattern(person=name)
                assert found.pattern.nodes[1].known  # type: ignore[attr-defined]
                assert found.texts[:1] == wanted, name
        answer = kopl(person=name)
        assert isinstance(answer, QuickAnswer)
        assert answer.parameters == {"person": name}
        assert answer.program == DIRECTED
        assert {one.object.name for one in answer.evidence} == {name}
        assert answer.check()


def test_values_are_values(films: Graph) -> None:
    taller = films.prepare("FindAll() FilterNum($key, $height, >) FilterConcept($concept) Count()")
    assert taller(key="height", height=Quantity(161, "centimetre"), concept="person").values == [len(HOSTILE) + 1]
    assert taller(key="height", height="161 centimetre", concept="person").values == [len(HOSTILE) + 1]
    # A number and a unit that nothing has; no call, no operator.
    assert taller(key="height", height="161 centimetre, >) Count(", concept="person").values == [0]
    with pytest.raises(LiteralError):
        taller(key="height", height=">= 161", concept="person")
    motto = films.prepare("FindAll() FilterStr(motto, $motto) QueryName()")
    for name in HOSTILE:
        assert (
            motto(motto=name).texts
            == films.kopl(
                [
                    {"function": "FindAll", "inputs": []},
                    {"function": "FilterStr", "inputs": ["motto", name]},
                    {"function": "QueryName", "inputs": []},
                ]
            ).texts
            != []
        )
    year = films.prepare("FindAll() FilterYear(year, $year, =) QueryName()")
    for given in (1981, np.int64(1981), "1981", Time.year(1981)):
        assert year(year=given).texts == ["Film 1"]
    newer = films.prepare("(?film) -[year]-> (> $year); (?film) -[directed_by]-> (?someone)", k=None)
    assert len(newer(year=1980 + len(HOSTILE)).texts) == 2
    with pytest.raises(LiteralError, match="not a number or time"):
        newer(year="later")
    assert films.prepare([("?film", "year", "$year")])(year=1981).texts[:1] == ["Film 1"]


def test_words_of_llm_queries_are_values_when_given(films: Graph) -> None:
    written = films.query("Query1: \"get_information(relation='motto', tail_entity='highest')\"")
    given = films.prepare("Query1: \"get_information(relation='motto', tail_entity=$motto)\"")
    assert given(motto="highest").texts == ["highest"] == written.texts  # a cell of this text comes first
    height = films.prepare("Query1: \"get_information(relation='height', tail_entity=$height)\"")
    assert films.query("Query1: \"get_information(relation='height', tail_entity='tallest')\"").texts
    with pytest.raises(CondgraphError):
        height(height="tallest")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("", ""),
        (5, "5"),
        (-0.5, "-0.5"),
        (2.0, "2"),
        (Decimal("1.50"), "1.5"),
        (10**30, "1" + "0" * 30),
        (10**400, "1" + "0" * 400),
        (Decimal("1e400"), "1" + "0" * 400),
        (Fraction(4, 2), "2"),
        (np.float32(0.5), "0.5"),
        (np.str_("x"), "x"),
        (Quantity(5, "kg"), "5 kg"),
        (Time.year(-43), "-43"),
        (datetime.date(2001, 2, 3), "2001-02-03"),
        (datetime.datetime(2001, 2, 3, 4, 5, 6, 7), "2001-02-03T04:05:06"),
    ],
)
def test_how_values_are_written(given: Any, text: str) -> None:
    assert text_for("p", given) == text


@pytest.mark.parametrize(
    "value", [None, True, float("nan"), float("inf"), Decimal("Infinity"), Fraction(1, 3), b"x", ["a"], np.bool_(True), object()]
)
def test_what_is_no_value(films: Graph, value: Any) -> None:
    with pytest.raises(OptionError, match=f"the value of person is {type(value).__name__}: "):
        films.prepare(DIRECTED)(person=value)


def test_missing_and_surplus_values(films: Graph) -> None:
    prepared = films.prepare(DIRECTED)
    for _ in range(4):  # the short way and the long one say the same
        with pytest.raises(OptionError, match="no value is given for person") as missing:
            prepared()
        assert missing.value.hint == "it takes: person"
        with pytest.raises(OptionError, match="no parameter 'persom'") as surplus:
            prepared(persom="Ann")
        assert surplus.value.candidates == ("person",)
        with pytest.raises(OptionError, match="no parameter 'film'"):
            prepared(person="Ann", film="x")
        with pytest.raises(UnknownNameError, match="unknown entity 'Anne'") as unknown:
            prepared(person="Anne")
        assert unknown.value.candidates[0] == "Ann"
        assert prepared(person="Ann").texts == ["Film 0"]
    with pytest.raises(OptionError, match="without quotes"):
        films.prepare('Find("$person") QueryName()', on_unknown="empty")(person="Ann")
    assert (
        films.prepare("Find($self) QueryName()").run({"self": "Ann"}).texts
        == films.prepare("Find($self) QueryName()")(self="Ann").texts
    )


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("Find($x) Relate(directed_by, $way) Count()", "direction"),
        ("FindAll() FilterNum(height, 5, $op) Count()", "operator"),
        ([{"function": "FindAll", "inputs": []}, {"function": "SelectAmong", "inputs": ["height", "$w"]}], "choice"),
        ("FindAll() FilterNum(height, 5, 6, >) Count()", "double quotes"),
        (
            'Query1: "get_information(relation=\'height\', tail_entity=$x)"\nQuery2: "compare(output_of_query1, 5, operator=$op)"',
            "word of operator",
        ),
        ("$x : directed_by(?f, $x)", "a variable is written [?]x"),
        ("?x : directed_by(?x, $a $b)", "',' is expected|'[)]' is expected"),
        ("Find($x", "not closed"),
        ("", "empty"),
    ],
)
def test_parameters_are_no_syntax(films: Graph, program: Any, error: str) -> None:
    with pytest.raises((ParseError, OptionError), match=error):
        films.prepare(program)


def test_texts_with_a_dollar(films: Graph) -> None:
    quoted = films.prepare('Find("$person") Relate(directed_by, backward) QueryName()')
    assert quoted.parameters == ()
    for _ in range(5):
        assert quoted().texts == [f"Film {HOSTILE.index('$person') + 3}"]
    escaped = films.prepare([{"function": "Find", "inputs": ["$$person"]}, {"function": "QueryName", "inputs": []}])
    assert escaped.parameters == ()
    assert escaped().texts == ["$person"]
    # Without preparation nothing is a parameter.
    assert films.kopl("Find($person) QueryName()").texts == ["$person"]
    assert films.prepare("Find($5) QueryName()", on_unknown="empty").parameters == ()
    nested = films.prepare("?f : $relation(?f, <$id>)")
    assert nested.parameters == ("relation", "id")
    assert nested(relation="directed_by", id="p1").texts == ["Film 1"]


def test_equal_values_are_not_taken_as_one(films: Graph) -> None:
    """The plan that is kept is right whichever values meet."""
    both = films.prepare("Find($a) Relate(directed_by, backward) Find($b) Relate(starred, backward) Or() QueryName()")
    for a, b in (("Ann", "Ann"), ("Ann", "Bo"), ("Bo", "Bo"), ("Cid", "Ann"), ("Ann", "Ann"), ("Bo", "Cid")):
        plain = films.kopl(f"Find({a}) Relate(directed_by, backward) Find({b}) Relate(starred, backward) Or() QueryName()")
        found = both(a=a, b=b)
        assert (found.texts, found.warnings, [str(e) for e in found.evidence]) == (
            plain.texts,
            plain.warnings,
            [str(e) for e in plain.evidence],
        )
        assert found.explain().partition("\n\n")[2] == plain.explain().partition("\n\n")[2]
    constant = films.prepare("Find(Ann) Find($b) And() Count()")
    for b, count in (("Ann", 1), ("Bo", 0), ("Ann", 1), ("Cid", 0), ("Ann", 1)):
        assert constant(b=b).values == [count]


def test_it_follows_the_graph() -> None:
    graph = condgraph.open()
    graph.add([Entity("a", "Ann"), Entity("f", "F"), Statement("f", "directed_by", Ref("a"))], source="one")
    prepared = graph.prepare(DIRECTED)
    for _ in range(5):
        before = prepared(person="Ann")
        assert before.texts == ["F"]
    text = "Find(Ann) Relate(directed_by, backward) Count()"
    assert graph.kopl(text).values == [1]
    graph.add([Entity("g", "G"), Statement("g", "directed_by", Ref("a"))], source="two")
    for _ in range(5):
        assert prepared(person="Ann").texts == ["F", "G"]
    assert graph.kopl(text).values == [2]
    # Answers that were given stay good.
    assert before.texts == ["F"]
    assert len(before.evidence) == 1
    with pytest.raises(UnknownNameError):
        prepared(person="Bo")
    graph.add([Entity("b", "Bo"), Statement("f", "directed_by", Ref("b"))], source="three")
    assert prepared(person="Bo").texts == ["F"]


def test_names_that_two_entities_have() -> None:
    graph = condgraph.open()
    graph.add(
        [
            Entity("a", "Ann"),
            Entity("a2", "Ann"),
            Entity("b", "Bo"),
            Entity("b2", "Bo"),
            Statement("a", "knows", Ref("b")),
            Statement("a", "knows", Ref("b")),
            Statement("a2", "knows", Ref("b2")),
            Statement("a2", "knows", Ref("a")),
        ]
    )
    prepared, plain = (
        graph.prepare("Find($x) Relate(knows, forward) QueryName()"),
        graph.kopl("Find(Ann) Relate(knows, forward) QueryName()"),
    )
    for _ in range(5):
        found = prepared(x="Ann")
        assert (
            (found.values, found.texts, found.entities)
            == (plain.values, plain.texts, plain.entities)
            == (
                ["Ann", "Bo", "Bo"],
                ["Ann", "Bo"],
                plain.entities,
            )
        )
        found.values.clear()
        found.texts.clear()


def test_plans_of_texts_are_kept_within_bounds(films: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_PLANS", 16)
    graph = films.snapshot()
    texts = [f"Find(Ann) Relate(directed_by, backward) FilterNum(height, {n}, >) Count()" for n in range(40)]
    for text in texts:
        graph.kopl(text)
    kept = graph.current.schema.kept["plans"]
    assert 0 < len(kept) <= 16
    assert graph.kopl(texts[-1]).plan is graph.kopl(texts[-1]).plan
    # Options are part of what a text means.
    with pytest.raises(UnknownNameError):
        graph.kopl("Find(Nobody) QueryName()")
    assert graph.kopl("Find(Nobody) QueryName()", on_unknown="empty").texts == []
    with pytest.raises(UnknownNameError):
        graph.kopl("Find(Nobody) QueryName()")
    # What functions from outside say is asked each time.
    calls: list[Any] = []

    def outside(name: str, texts: Any, options: Any) -> list[str]:
        calls.append(name)
        return [str(len(calls))]

    program = 'Query1: "get_information(relation=\'motto\')"\nQuery2: "haruspicy(output_of_query1)"'
    assert [graph.query(program, llm_function=outside).texts for _ in range(2)] == [["1"], ["2"]]


def test_deadlines_and_limits(films: Graph) -> None:
    prepared = films.prepare("FindAll() FilterConcept($c) QueryName()")
    answer = prepared.run({"c": "person"}, limit=2)
    assert len(answer.texts) == 2
    assert any("limit 2" in warning for warning in answer.warnings)
    with pytest.raises(OptionError):
        prepared.run({"c": "person"}, limit=-1)
    cancelled = threading.Event()
    cancelled.set()
    path = films.prepare(DIRECTED)
    for _ in range(5):
        assert path(person="Ann").texts == ["Film 0"]
    with pytest.raises(CancelledError):
        path.run({"person": "Ann"}, cancelled=cancelled)
    with pytest.raises(DeadlineError):
        path.run({"person": "Ann"}, timeout=1e-9)
    graph = films.snapshot()
    bounded = graph.prepare(DIRECTED)
    graph.timeout = 1e-9
    with pytest.raises(DeadlineError):
        bounded(person="Ann")
    with pytest.raises(OptionError, match="on_unknown"):
        films.prepare(DIRECTED, on_unknown="maybe")
    with pytest.raises(OptionError, match="takes no option"):
        films.prepare(DIRECTED, bound=True)
    with pytest.raises(OptionError, match="engine"):
        films.prepare(DIRECTED, engine="cobol")


def test_from_many_threads(films: Graph) -> None:
    prepared = films.prepare("Find($x) Relate(directed_by, backward) Relate(starred, forward) QueryName()")
    people = ["Ann", "Bo", "Cid", *HOSTILE]
    wrong: list[Any] = []

    def ask(first: int) -> None:
        for at in range(first, first + 40):
            name = people[at % len(people)]
            if prepared(x=name).texts != [people[(at % len(people) + 1) % len(people)]]:
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@settings(max_examples=examples(40))
@drawn(st.text(max_size=30))
def test_any_text_at_all(value: str) -> None:
    """Whatever is given is looked up as a name, or is a typed error; the program stays what it is."""
    graph = _ONE
    for program in (
        DIRECTED,
        "Query1: \"get_information(relation='directed_by', tail_entity=$person)\"",
        "?f : directed_by(?f, $person)",
        "(UNKNOWN f) -[directed_by]-> ($person)",
    ):
        try:
            answer = graph.prepare(program)(person=value)
        except CondgraphError:
            continue
        # The nearest subgraph may be another one.
        assert set(answer.texts) <= ({"F"} if answer.language != "pattern" else {"F", "Ann"})


_ONE = condgraph.open()
_ONE.add([Entity("a", "Ann"), Entity("f", "F"), Statement("f", "directed_by", Ref("a"))])


def test_a_megabyte_of_nonsense(films: Graph) -> None:
    prepared = films.prepare(DIRECTED)
    for text in ("(" * 1_000_000, "$person" * 150_000, '"' * 1_000_000):
        with pytest.raises(UnknownNameError) as error:
            prepared(person=text)
        assert len(str(error.value)) < 5_000
        for program in (f"Find({text[:100_000]}", f"?x : {text[:100_000]}"):
            with pytest.raises(CondgraphError):
                films.prepare(program)


def test_explain(films: Graph) -> None:
    text = films.prepare(DIRECTED).explain(person="Ann")
    assert text == films.explain("Find(Ann) Relate(directed_by, backward) QueryName()")
    assert '"Ann"' in films.prepare(DIRECTED, engine="sparql").explain(person="Ann")
    assert films.prepare(DIRECTED, engine="sparql")(person=HOSTILE[0]).texts == ["Film 3"]
    assert films.prepare("Find($self)").explain(self="Ann") == films.explain("Find(Ann)")


def test_async(films: Graph) -> None:
    import asyncio

    from condgraph.aio import AsyncGraph

    async def asked() -> None:
        prepared = await AsyncGraph(films).prepare(DIRECTED)
        assert prepared.parameters == ("person",)
        for _ in range(5):
            assert (await prepared(person="Ann")).texts == ["Film 0"]
        assert (await prepared.run({"person": "Bo"}, timeout=9, limit=1)).texts == ["Film 1"]
        with pytest.raises(DeadlineError):
            await prepared.run({"person": "Bo"}, timeout=1e-9)

    asyncio.run(asked())
