"""Graphs that nobody would make, and that somebody has: what is asked of them is right, or nothing
is asked. Every record is checked as in `test_generate`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import Entity, EntityKind, Graph, Member, Quantity, Ref, Statement, Time
from condgraph.questions.locate import around
from tests.questions.test_generate import check
from tests.support.pace import quick_enough

UGLY: dict[str, Callable[[], list[Any]]] = {}


def ugly(function: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
    UGLY[function.__name__] = function
    return function


@ugly
def numbers() -> list[Any]:
    sizes: list[Any] = [10**400, -(10**400), 1e308, -1e308, 5e-324, 1e-300, -0.0, 0, 0.1, 1 / 3, 2**53 + 1, -(2**63)]
    sizes += [10**17 + 1, 10**60, Decimal("0.12345678901234567890123456789"), Decimal("1E+50"), Decimal("1E-50")]
    items: list[Any] = [Entity("c", "thing", EntityKind.CONCEPT)]
    for at, size in enumerate(sizes * 2):
        weight = (("weight", Quantity(size)), ("count", Quantity(at)))
        items += [Entity(f"e{at}", f"E{at}"), Member(f"e{at}", "c"), Statement(f"e{at}", "size", Quantity(size))]
        items += [Statement(f"e{at}", "near", Ref(f"e{(at * 7 + 1) % 17}"), weight)]
        items += [Statement(f"e{at}", "mass", Quantity(size, "kg"), (("method", f"m{at % 3}"),))]
    return items


@ugly
def texts_like_values() -> list[Any]:
    texts = ["nan", "NaN", "inf", "-Infinity", "None", "null", "N/A", "-", "?", "true", "unknown", "yes", "no", "0", "00"]
    texts += ["1e5", "1,000", "0x10", "1958", "1958-05-29", "-5000", "12000-01-01", "$5", "5 kg"]
    items: list[Any] = []
    for at, text in enumerate(texts * 2):
        said = (("said", texts[(at + 3) % len(texts)]),)
        items += [Entity(f"e{at}", f"N{at}" if at % 3 else text), Statement(f"e{at}", "value", text, said)]
        items += [Statement(f"e{at}", "next", Ref(f"e{(at + 5) % len(texts)}"), (("as", text),))]
    return items


@ugly
def times_far_out() -> list[Any]:
    years = [-5000, 12000, -1, 0, 1, -44, 9999, 10000, -99999, 99999, -200_000_000_000, 200_000_000_000, 1960]
    times = [time for year in years for time in (Time.year(year), Time.month(year, 2), Time.day(year, 2, 28))]
    items: list[Any] = []
    for at, moment in enumerate(times):
        then = (("start time", moment), ("end time", times[(at + 9) % len(times)]))
        items += [Entity(f"e{at}", f"E{at}"), Statement(f"e{at}", "born", moment, (("point in time", times[at * 5 % 39]),))]
        items += [Statement(f"e{at}", "met", Ref(f"e{(at + 1) % len(times)}"), then)]
    return items


@ugly
def names() -> list[Any]:
    found = ["", "x" * 9000, "thing", "O'Brien", 'The "Best"', "a\nb", "[1,2]", "(x)", "a, b", "a;b", "<arg>", "a <func> b"]
    found += ["{0}", "{}", "%s", "Find(x)", "output_of_query1", "UNKNOWN thing 1", 'Query1: "x"', "\\", "\u202eabc", "   "]
    found += ["a  b", " lead", "trail ", "é", "E\u0301", "🙂", "“q”", "what?", "yes", "unknown", "5", "the one", "A.", "Ann"]
    items: list[Any] = [Entity("c", "thing", EntityKind.CONCEPT), Entity("d", 'it\'s "it"', EntityKind.CONCEPT)]
    items += [Entity("n", "", EntityKind.CONCEPT), Entity("k", "k" * 9000, EntityKind.CONCEPT)]
    for at, name in enumerate([*found, "Ann", "ann"]):
        who = (("how", found[(at + 4) % 36]), ("who", Ref(f"e{(at + 9) % 36}")))
        items += [Entity(f"e{at}", name), Member(f"e{at}", "cdnk"[at % 4]), Statement(f"e{at}", "size", Quantity(at % 7))]
        items += [Statement(f"e{at}", "knows", Ref(f"e{(at * 3 + 1) % 36}"), who)]
        items += [Statement(f"e{at}", "label", found[(at + 2) % 36])]
    return items


@ugly
def predicates() -> list[Any]:
    found = ["FindAll", "count", "head_entity", "value", "source", "is", "of", "", "{}", "{0} x", "a\nb", "a'b", 'a"b', "(s)", "_"]
    found += ["-", "'s", "ID", "has", "has_", "year born", "on", "of of", "the", "p" * 300, "set", "max", "and", "a, b", "=", "!="]
    found += ["99", "?", "é", "🙂", "<arg>", "UNKNOWN", "row_number", "yes", "part of", "capital of"]
    draw = random.Random(1)
    items: list[Any] = [Entity(f"e{at}", f"E{at}") for at in range(30)]
    for predicate in found * 6:
        for value in (Ref(f"e{draw.randrange(30)}"), Quantity(draw.randrange(50)), Time.year(1900 + draw.randrange(90)), "text"):
            said = ((draw.choice(found), draw.choice([Quantity(3), "t1", "t2", Time.year(1950)])),)
            items.append(Statement(f"e{draw.randrange(30)}", predicate, value, said if draw.random() < 0.5 else ()))
    return items


@ugly
def units() -> list[Any]:
    found = ["m", "M", "metre", "metres", " m", "m²", "m^2", "m2", "kg", "KG", "°C", "K", "1", "%", "$", "US$", "foot", "1/s", "'"]
    draw = random.Random(3)
    items: list[Any] = [Entity(f"e{at}", f"E{at}") for at in range(40)]
    for at in range(40):
        items += [Statement(f"e{at}", "size", Quantity(draw.randrange(1, 40), unit)) for unit in draw.sample(found, 3)]
        items.append(Statement(f"e{at}", "length", Quantity(draw.randrange(1, 99) / 7, draw.choice(found))))
    return items


@ugly
def mixed_values() -> list[Any]:
    draw = random.Random(4)
    items: list[Any] = [Entity(f"e{at}", f"E{at}") for at in range(60)]
    for at in range(120):
        one = draw.randrange(9)
        value: Any = draw.choice(
            [Quantity(one), Quantity(one, "m"), Time.year(1950 + one), Time.day(1950, 1, 1 + one), str(1950 + one), Ref(f"e{one}")]
        )
        said = draw.choice([(), (("p", Quantity(one)),), (("p", Ref(f"e{at % 60}")),), (("p", f"x{one}"),)])
        items.append(Statement(f"e{at % 60}", "p", value, said))
    return items


@ugly
def cycles() -> list[Any]:
    items: list[Any] = []
    for size in range(1, 12):
        items += [Statement(f"c{size}_{at}", "knows", Ref(f"c{size}_{(at + 1) % size}")) for at in range(size)]
        items += [Statement(f"c{size}_{at}", "likes", Ref(f"c{size}_{(at - 1) % size}")) for at in range(size)]
    return items


@ugly
def one_entity() -> list[Any]:
    facts = [Statement("e", "size", Quantity(3)), Statement("e", "born", Time.year(1950)), Statement("e", "note", "hello")]
    return [Entity("e", "E"), *facts, Statement("e", "knows", Ref("e"), (("since", Time.year(1960)),))]


@pytest.mark.parametrize("name", UGLY)
def test_ugly(name: str) -> None:
    graph = condgraph.open("memory:")
    graph.add(UGLY[name]())
    questions = list(graph.generate(40, seed=2))
    assert name == "one_entity" or len(questions) == 40
    for at, question in enumerate(questions):
        check(graph, question, store=at % 8 == 0)


def test_patterns_of_cycles_have_an_entity_for_every_node() -> None:
    """ "What knows the one that likes E?" may mean E: such a question has no pattern."""
    graph = condgraph.open("memory:")
    graph.add(cycles())
    asked = list(graph.generate(60, kinds=["QueryName"], seed=4, queries=False))
    assert any(question.pattern is None for question in asked)
    patterns = [question for question in asked if question.pattern is not None]
    assert len(patterns) > 20
    for question in patterns:
        assert question.pattern is not None
        found = graph.match(list(question.pattern), k=None, directed=True)
        unknown = next(text for triple in question.pattern for text in (triple[0], triple[2]) if text.endswith(" 1"))
        assert found.solutions[0].distance == 0, question
        assert question.answer in {one.text for s in found.solutions for one in s.nodes if one.node.text == unknown}


def test_superlatives_are_of_one_unit() -> None:
    graph = condgraph.open("memory:")
    graph.add([item for item in units() if isinstance(item, Entity) or item.predicate == "length"])
    assert list(graph.generate(5, kinds=["SelectAmong"])) == []


@pytest.mark.parametrize(
    "number", [10**400, 10**60 + 1, 1e308, 5e-324, 1e-300, 0.17, 3, -2.5, 99, Decimal("0.1234567890123456789")]
)
def test_round_numbers_around(number: Any) -> None:
    low, high = around(number)
    assert low < number < high


def loaded(folder: Path, name: str, head: list[str], rows: list[list[Any]]) -> Graph:
    import csv

    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    graph = condgraph.open("memory:")
    graph.load(path)
    return graph


@pytest.mark.slow
def test_tables(tmp_path: Path) -> None:
    """Rows twice, a column of mixed kinds, huge cells, ugly heads, no rows at all."""
    draw = random.Random(9)
    twice = [[draw.choice("abc"), draw.randrange(3), draw.choice("xy")] for _ in range(40)]
    whats, huge = ["1", "1.5", "abc", "1960", "1960-01-02", "", "nan", "inf", "12 kg", "-"], ["1e308", "1e400", "9" * 400, "-0"]
    mixed = [
        [f"n{at}", draw.choice(whats), draw.choice(huge), draw.choice(["-5000", "12000", "44 BC", "0000"]), at] for at in range(50)
    ]
    heads = ["", "a", "a", "it's", 'q"q', "a,b", "x\ny", "source", "relation", "row_number", "name", "id", "sum", "p" * 200]
    cells = [[draw.choice(["u", "w w", "it's", '"', 3]) for _ in heads] for _ in range(40)]
    tables = [
        loaded(tmp_path, "twice", ["letter", "number", "flag"], twice + twice),
        loaded(tmp_path, "mixed", ["name", "what", "huge", "date", "n"], mixed),
        loaded(tmp_path, "he'ads, [x]", heads, cells),
        loaded(tmp_path, "empty", ["a", "b"], []),
    ]
    made = []
    for table in tables:
        made.append(list(table.generate(40, seed=1)))
        for question in made[-1]:
            check(table, question, store=False)
    assert [len(questions) for questions in made[1:]] == [40, 40, 0]
    assert made[0]


@pytest.mark.slow
def test_a_million_statements_onto_one_object(tmp_path: Path) -> None:
    path = tmp_path / "hub.tsv"
    with path.open("w") as file:
        file.writelines(f"e{at}\tpart of\thub\n" for at in range(1_000_000))
        file.writelines(f"e{at}\tknows\te{(at * 7919 + 1) % 1_000_000}\n" for at in range(0, 1_000_000, 10))
    graph = condgraph.open("memory:")
    graph.load(path)
    begin = time.process_time()
    assert len(list(graph.generate(100, seed=1))) == 100
    assert quick_enough(time.process_time() - begin, 60)  # 3 s on one core of two
