"""Temporal facts: bounds of all precisions, open and unknown ends, wrong orders; the benchmark
files counted independently.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import condgraph
from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Batch, Entity, Item, Ref, Source, Statement
from condgraph.engine.reading.times import EPOCHS
from condgraph.engine.values import UNKNOWN, Precision, Quantity, Time
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.export import statements_of
from condgraph.loaders.statements.facts import QUINTUPLES, read_bound, read_time


def read(source: Any, on_error: OnError = "raise", **options: Any) -> tuple[list[Item], Reading]:
    reading = Reading(Source("tkg", str(source) if isinstance(source, Path) else ""), on_error)
    QUINTUPLES.check_options(options)
    return list(QUINTUPLES.read(source, reading, options)), reading


def facts(items: list[Item]) -> list[Statement]:
    return [one for item in items if isinstance(item, Batch) for one in statements_of(item)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2012", Time.year(2012)),
        ("364", Time.year(364)),
        ("-43", Time.year(-43)),
        ("2012-##-##", Time.year(2012)),
        ("2012-##", Time.year(2012)),
        ("99-##-##", Time.year(99)),
        ("1850-05-##", Time.month(1850, 5)),
        ("1850-05", Time.month(1850, 5)),
        ("2000-02-29", Time.day(2000, 2, 29)),
        ("2000/02/29", Time.day(2000, 2, 29)),
        ("18##", Time.span(Time.year(1800), Time.year(1899))),
        ("-43#", Time.span(Time.year(-439), Time.year(-430))),
        ("####-##-##", UNKNOWN),
        ("####", UNKNOWN),
        ("", None),
        (" - ", None),
    ],
)
def test_bounds(text: str, value: Any) -> None:
    assert read_bound(text) == value


@pytest.mark.parametrize(
    "text", ["soon", "2012-##-05", "####-05-##", "#900", "2001-02-30", "-####", "18##-05-##", "1/2", "1990/1995", "12-13"]
)
def test_what_cannot_be_a_bound(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_bound(text)


@given(st.text(alphabet="0123456789#-/+ T:Z.", max_size=14))
def test_bounds_raise_value_errors_only(text: str) -> None:
    for one in (read_bound, read_time):
        try:
            found = one(text)
        except ValueError:
            continue
        assert found in (None, UNKNOWN) or (isinstance(found, Time) and found.start < found.end)


@pytest.mark.parametrize("mark", ["\t", "|", ","])
def test_intervals(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "facts.txt"
    lines = [
        ("a", "r", "b", "1926-##-##", "1929-05-##"),
        ("a", "r", "c", "####-##-##", ""),
        ("b", "r", "c", "-", "2000"),
        ("b", "r", "d", "", ""),
    ]
    path.write_text("\n".join(mark.join(line) for line in lines))
    items, reading = read(path)
    assert [(one.object.id, one.qualifiers, one.row) for one in facts(items)] == [  # type: ignore[union-attr]
        ("b", ((START_TIME, Time.year(1926)), (END_TIME, Time.month(1929, 5))), 1),
        ("c", ((START_TIME, UNKNOWN),), 2),
        ("c", ((END_TIME, Time.year(2000)),), 3),
        ("d", (), 4),
    ]
    assert reading.problems == []


@pytest.mark.parametrize(
    "header", ["head\trelation\ttail\tstart_year\tend_year\n", "subject\tpredicate\tobject\tvalid from\tvalid to\n"]
)
def test_headers(tmp_path: Path, header: str) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(header + "a\tr\tb\t1990\t1991\n")
    items, _ = read(path)
    assert [(one.subject, one.row, len(one.qualifiers)) for one in facts(items)] == [("a", 2, 2)]


def test_one_time(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tr\tb\t2014-01-02\nc\tr\tb\t\n")
    assert [one.qualifiers for one in facts(read(path)[0])] == [((POINT_IN_TIME, Time.day(2014, 1, 2)),), ()]


def test_objects_that_are_values(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,property,value,date\nAnn,height,170,2001\nAnn,weight,60.5,2003\nBob,mood,good,2003\n")
    assert all(isinstance(one.object, Ref) for one in facts(read(path)[0]))
    graph = condgraph.open()
    graph.load(path, objects="values")
    assert graph.query("Find(Ann) QueryAttr(height)", at="2001").values == [Quantity(170)]
    assert not graph.query("Find(Ann) QueryAttr(weight)", at="2001").values


def test_a_start_after_its_end_is_reported_and_both_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tr\tb\t1811\t1796\na\tr\tb\t1811-06-##\t1811\na\tr\tb\t1811-06-##\t1811-05-##\n")
    items, reading = read(path)
    unknown = ((START_TIME, UNKNOWN), (END_TIME, UNKNOWN))
    found = [one.qualifiers for one in facts(items)]
    assert found == [unknown, ((START_TIME, Time.month(1811, 6)), (END_TIME, Time.year(1811))), unknown]
    assert [problem.row for problem in reading.problems] == [1, 3]


def test_what_cannot_be_a_date_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tr\tb\tsoon\t1990\na\tr\tb\t1989\t1990-13\n")
    items, reading = read(path)
    assert [one.qualifiers for one in facts(items)] == [
        ((START_TIME, "soon"), (END_TIME, Time.year(1990))),
        ((START_TIME, Time.year(1989)), (END_TIME, "1990-13")),
    ]
    assert [(one.row, one.field, one.skipped) for one in reading.problems] == [(1, "start", False), (2, "end", False)]


def test_bad_lines_and_other_widths(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tr\tb\t1990\t1991\na\tr\tb\n")
    with pytest.raises(LoadError, match="row 2"):
        read(path)
    assert read(path, "skip")[1].skipped == 1
    path.write_text("a\tr\tb\n")
    with pytest.raises(FormatError, match="5 or 4 fields"):
        read(path)


def test_names_prefix_and_objects(tmp_path: Path) -> None:
    rows = [("1", "7", "2", "1990", "1991")]
    assert QUINTUPLES.claims(rows)
    assert not QUINTUPLES.claims([("1", "7", "2")])
    items, _ = read(rows, names={"1": "One"}, relation_names={"7": "leads"}, id_prefix="x:")
    assert items[:2] == [Entity("x:1", "One"), Entity("x:2", "2")]
    assert facts(items)[0].predicate == "leads"


@pytest.mark.parametrize(("name", "turned"), [("train", 7), ("valid", 0), ("test", 3)])
def test_wikidata12k(data: Path, name: str, turned: int) -> None:
    folder = data / "wikidata12k"
    path = folder / f"{name}.txt"
    lines = [line.split("\t") for line in path.read_text().split("\n")[:-1]]
    items, reading = read(path, names=folder / "entity2id.txt", relation_names=folder / "relation2id.txt", id_prefix="w:")
    found = facts(items)
    assert [(one.subject, one.object.id) for one in found] == [(f"w:{line[0]}", f"w:{line[2]}") for line in lines]  # type: ignore[union-attr]
    wrong = {
        at
        for at, (*_, start, end) in enumerate(lines)
        if "#" not in (start[:4] + end[:4]) and int(start.split("-")[0]) > int(end.split("-")[0])
    }
    assert len(wrong) == turned
    for at, (one, (*_, start, end)) in enumerate(zip(found, lines, strict=True)):
        for (key, value), text in zip(one.qualifiers, (start, end), strict=True):
            assert key in (START_TIME, END_TIME)
            if at in wrong or text.startswith("####"):
                assert value is UNKNOWN
            else:
                assert isinstance(value, Time)
                assert value == Time.year(int(text.split("-")[0]))
    assert sum("is after the end" in problem.message for problem in reading.problems) == turned
    assert all(item.name.startswith("Q") for item in items if isinstance(item, Entity))


def test_cronquestions(data: Path) -> None:
    items, reading = read(data / "cronquestions" / "derived_facts.tsv")
    found = facts(items)
    assert len(found) == 8823
    assert found[0].row == 2
    assert all(value.precision is Precision.YEAR for one in found for _, value in one.qualifiers)  # type: ignore[union-attr]
    assert reading.problems == []


@pytest.mark.parametrize(
    ("times", "said", "first"),
    [
        (("1577836800", "1609459200"), True, "2020-01-01T00:00:00"),
        (("788918400", "1577836800"), True, "1995-01-01T00:00:00"),
        (("1577836800123", "1609459200000"), True, "2020-01-01T00:00:00"),
        (("20200101", "20210101"), False, "2020-01-01"),
        (("20200101103000", "20210101000000"), False, "2020-01-01T10:30:00"),
    ],
)
def test_long_numbers_are_days_or_moments(times: tuple[str, str], said: bool, first: str, tmp_path: Path) -> None:
    """They were years, of which 1577836800 is one far away."""
    path = tmp_path / "facts.tsv"
    path.write_text("head\trelation\ttail\tstart\tend\n" + "".join(f"a{n}\tr\tb\t{times[0]}\t{times[1]}\n" for n in range(3)))
    graph = condgraph.open()
    report = graph.load(path)
    assert report.formats == ("quintuples",)
    assert [str(problem.message) for problem in report.problems] == [EPOCHS] * said
    assert graph.kopl("Find(a1) Find(b) QueryRelationQualifier(r, start time)").texts == [first]


def test_a_column_of_telephone_numbers_has_no_times(tmp_path: Path) -> None:
    path = tmp_path / "staff.tsv"
    path.write_text("".join(f"Ann{n}\tworks in\tParis\t21255512{n}0\n" for n in range(10, 40)))
    assert condgraph.open().load(path).formats == ("tsv",)
