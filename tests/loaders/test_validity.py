"""Declared times: columns that say when the rows of a table hold, qualifiers that say when statements do."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import UNKNOWN, Quantity, Ref, Statement, Time
from condgraph.engine.errors import LoadError, OptionError, StoreMissingError

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
        ("", "not an interval of columns"),
        (3, "not an interval of columns"),
    ],
)
def test_what_is_no_interval(tmp_path: Path, times: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("(", r"\(")):
        condgraph.open().load(written(tmp_path / "prices.csv", history(1)), key="id", times=times)


def test_numbers_of_eight_digits_are_days(tmp_path: Path) -> None:
    path = written(tmp_path / "prices.csv", [("a", 1, "20200101", "20200301"), ("b", 2, "20200301", "99991231")])
    graph = condgraph.open()
    graph.load(path, key="id", times="[valid_from, valid_to)")
    held = [graph.query("FindAll() FilterNum(price, 0, >) QueryName()", at=at).texts for at in ("2019", "2020-02-29", "2020-03-01")]
    assert held == [[], ["a"], ["b"]]
    # Seconds since 1970 are times too; other numbers are none, and no years.
    written(path, [("a", 1, "1577836800", "1577836801")])
    graph = condgraph.open()
    graph.load(path, times="[valid_from, valid_to)")
    held = [graph.at(at).kopl("FindAll() FilterNum(price, 0, >) QueryName()").texts for at in ("2019", "2020-01-01T00:00:00")]
    assert [len(texts) for texts in held] == [0, 1]
    written(path, [("a", 1, "15778368", "")])
    with pytest.raises(LoadError, match="'valid_from' is not a time: '15778368'"):
        condgraph.open().load(path, key="id", times="[valid_from, valid_to)")


def test_rows_that_hold_at_no_time(tmp_path: Path) -> None:
    rows = [("a", 1, "2001-01-01", "2000-01-01"), ("b", 2, "2001", "infinity"), ("c", 3, "soon", "2004"), ("d", 4, "", "")]
    path = written(tmp_path / "prices.csv", rows)
    with pytest.raises(LoadError, match="the row holds at no time"):
        condgraph.open().load(path, key="id", times="[valid_from, valid_to]")
    graph = condgraph.open()
    report = graph.load(path, key="id", times="[valid_from, valid_to]", on_error="skip")
    assert [problem.row for problem in report.problems if problem.skipped] == [1, 3]
    assert graph.query("FindAll() FilterNum(price, 0, >) QueryName()", at="2010").texts == ["b", "d"]
    # Entities are at all times: of a bad row the statements are left out, and the report says so.
    stays = [problem.message.endswith("; its statements are left out, the entity stays") for problem in report.problems]
    assert stays == [problem.skipped for problem in report.problems]
    assert graph.query("FindAll() FilterConcept(prices) QueryName()").texts == ["a", "b", "c", "d"]
    assert [fact.subject.id for fact in graph.query("FindAll() QueryAttr(price)").evidence] == ["prices/b", "prices/d"]
    written(tmp_path / "others.csv", rows[1:2])
    several = condgraph.open()
    several.load(tmp_path, primary={"prices": "id"}, times={"prices": "[valid_from, valid_to]"}, on_error="skip", name="shop")
    (statement,) = several.query('Find("prices/b") QueryAttr(price)').evidence
    assert [source.name for source, _ in statement.sources] == ["shop/prices"]


def test_ends_that_are_starts(tmp_path: Path) -> None:
    rows = [("a", 1, "2001-01-01", "2002-01-01"), ("b", 2, "2002-01-01", "2003-01-01"), ("c", 3, "2003-01-01", "")]
    path = written(tmp_path / "prices.csv", rows)
    report = condgraph.open().load(path, key="id", times="[valid_from, valid_to]")
    assert "2 of 2 ends in 'valid_to' are starts of other rows" in report.problems[0].message
    assert not condgraph.open().load(path, key="id", times="[valid_from, valid_to)").problems
    point = condgraph.open()
    point.load(path, key="id", times="valid_from")
    assert point.query("FindAll() FilterNum(price, 0, >) QueryName()", at="2002").texts == ["b"]


# -- statements --------------------------------------------------------------------------------------

REIGNS = """
@prefix ex: <http://ex.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:DE rdfs:label "Germany" . ex:Bonn rdfs:label "Bonn" . ex:Berlin rdfs:label "Berlin" . ex:Merkel rdfs:label "Merkel" .
ex:DE ex:capital ex:Bonn, ex:Berlin ; ex:head ex:Merkel ; ex:population 78, 82 .
[] a rdf:Statement ; rdf:subject ex:DE ; rdf:predicate ex:capital ; rdf:object ex:Bonn ;
  ex:since "1949"^^xsd:gYear ; ex:until "1990-10-03"^^xsd:date .
[] a rdf:Statement ; rdf:subject ex:DE ; rdf:predicate ex:capital ; rdf:object ex:Berlin ; ex:since "1990-10-03"^^xsd:date .
[] a rdf:Statement ; rdf:subject ex:DE ; rdf:predicate ex:population ; rdf:object 78 ; ex:observed "1984"^^xsd:gYear .
[] a rdf:Statement ; rdf:subject ex:DE ; rdf:predicate ex:head ; rdf:object ex:Merkel ;
  ex:since "2005"^^xsd:gYear ; ex:until "2021-12-08"^^xsd:date .
"""
DECLARED = {"capital": "[since, until)", "population": "observed", "head": "[since, until]"}


def reigns(tmp_path: Path) -> Path:
    path = tmp_path / "reigns.ttl"
    path.write_text(REIGNS, encoding="utf-8")
    return path


def capitals(graph: Any, at: str) -> list[str]:
    texts: list[str] = graph.query("Find(Germany) Relate(capital, forward) QueryName()", at=at).texts
    return texts


def test_statements_at_a_time(tmp_path: Path) -> None:
    """Qualifiers by predicate, with the end excluded or included."""
    graph = condgraph.open()
    graph.load(reigns(tmp_path), times=DECLARED)
    assert capitals(graph, "1960") == capitals(graph, "1990-10-02") == ["Bonn"]
    assert capitals(graph, "1990-10-03") == ["Berlin"]
    assert graph.query("Find(Germany) QueryAttr(population)", at="1984").texts == ["78", "82"]
    assert graph.query("Find(Germany) QueryAttr(population)", at="1990").texts == ["82"]
    for at, held in (("2021-12-08", ["Merkel"]), ("2021-12-09", []), ("2004", [])):
        assert graph.query("Find(Germany) Relate(head, forward) QueryName()", at=at).texts == held
    # The qualifiers themselves are there as well, and a plain program is as it was.
    assert graph.query("Find(Germany) Relate(capital, forward) QFilterYear(since, 1949, =) QueryName()").texts == ["Bonn"]
    file = tmp_path / "times.toml"
    file.write_text('[times]\ncapital = "[since, until]"\n"*" = "observed"\n', encoding="utf-8")
    other = condgraph.open()
    other.load(reigns(tmp_path), times=file)
    assert capitals(other, "1990-10-03") == ["Berlin", "Bonn"]
    assert other.query("Find(Germany) Relate(head, forward) QueryName()", at="1700").texts == ["Merkel"]


def test_ends_of_canonical_names_can_be_excluded(tmp_path: Path) -> None:
    """Data whose `end time` is the first day on which a statement no longer holds."""
    path = tmp_path / "capitals.tsv"
    path.write_text("A\tcapital\tB\t2000-01-01\t2001-01-01\n", encoding="utf-8")
    graph = condgraph.open()
    graph.load(path, format="quintuples", columns="head, relation, tail, start, end", times="[start time, end time)")
    program = "Find(A) Relate(capital, forward) QueryName()"
    assert graph.query(program, at="2000-12-31").texts == ["B"]
    assert graph.query(program, at="2001-01-01").texts == []


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"capitl": "[since, until)"}, "predicate 'capitl', which no statement has; nearest: 'capital'"),
        ({"capital": "[sinc, until)"}, "qualifier 'sinc', which no statement of 'capital' has; nearest: 'since'"),
        ("soon", "qualifier 'soon', which no statement has"),
        ("[since, until", "does not say whether the end is included"),
        ({}, "a mapping of predicates"),
        ({"capital": 3}, "not an interval"),
        (7, "a mapping of predicates"),
    ],
)
def test_declarations_that_fit_nothing(tmp_path: Path, times: Any, message: str) -> None:
    graph = condgraph.open()
    with pytest.raises(OptionError, match=message):
        graph.load(reigns(tmp_path), times=times)
    with pytest.raises(StoreMissingError):
        _ = graph.current


def test_statements_that_hold_at_no_time(tmp_path: Path) -> None:
    path = reigns(tmp_path)
    path.write_text(REIGNS.replace('"1949"^^xsd:gYear', '"1999"^^xsd:gYear'), encoding="utf-8")
    with pytest.raises(LoadError, match="a statement of 'capital' holds at no time: 'until' is 1990-10-03, 'since' is 1999"):
        condgraph.open().load(path, times=DECLARED)
    graph = condgraph.open()
    report = graph.load(path, times=DECLARED, on_error="skip")
    assert [problem.message for problem in report.problems if problem.skipped]
    assert capitals(graph, "1960") == []
    path.write_text(REIGNS.replace('"1949"^^xsd:gYear', '"soon"'), encoding="utf-8")
    with pytest.raises(LoadError, match="'since' is not a time: 'soon'"):
        condgraph.open().load(path, times=DECLARED)


def test_declared_times_are_pushed(tmp_path: Path) -> None:
    """A store that the graph is pushed to knows them."""
    graph = condgraph.open()
    graph.load(reigns(tmp_path), times=DECLARED)
    with condgraph.open(f"duckdb:///{tmp_path}/reigns.duckdb") as stored:
        stored.push(graph)
        for at in ("1960", "1990-10-02", "1990-10-03"):
            assert capitals(stored, at) == capitals(graph, at) == graph.query(
                "Find(Germany) Relate(capital, forward) QueryName()", at=at, engine="sparql"
            ).texts  # fmt: skip


@pytest.mark.parametrize("place", ["memory:", "duckdb"])
def test_statements_whose_times_mean_nothing_are_reported(tmp_path: Path, place: str) -> None:
    ruled = [
        Statement("Rome", "ruled by", Ref("Nero"), (("start time", Time.year(68)), ("end time", Time.year(54)))),
        Statement("Rome", "ruled by", Ref("Otho"), (("start time", "69"), ("end time", Time.year(69)))),
        Statement("Rome", "ruled by", Ref("Galba"), (("start time", Quantity(68)), ("point in time", UNKNOWN))),
        Statement("Rome", "ruled by", Ref("Titus"), (("start time", Time.year(79)), ("end time", Time.day(79, 1, 1)))),
    ]
    graph = condgraph.open(f"duckdb:///{tmp_path}/rome.duckdb" if place == "duckdb" else place)
    said = graph.add(ruled, source="annals").warnings
    assert [text.partition(": ")[0] for text in said if "time" in text] == [
        "1 statement ends before it starts, and holds at no time",
        "1 statement has a text as 'start time', which does not say when it holds",
        "1 statement has a number as 'start time', which does not say when it holds",
    ]
    assert "Rome | ruled by | Nero (end time: 54, start time: 68)" in said[0]
    # What was loaded before is not reported again.
    assert not graph.add([Statement("Rome", "ruled by", Ref("Nerva"))], source="more").warnings
