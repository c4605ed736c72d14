"""Triples in all their spellings, entities or values, names and prefixes; the benchmark files
counted independently.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine.errors import FormatError, LoadError, OptionError
from condgraph.engine.facts import Batch, Entity, EntityKind, Ids, Item, Member, Numbers, Source, Subclass, Texts, Values
from condgraph.engine.values import Quantity, Time
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.export import statements_of
from condgraph.loaders.statements.facts import TRIPLES

FACTS = [("a", "r", "b c"), ("b c", "r", "d")]


def read(source: Any, on_error: OnError = "raise", **options: Any) -> tuple[list[Item], Reading]:
    reading = Reading(Source("kg", str(source) if isinstance(source, Path) else ""), on_error)
    TRIPLES.check_options(options)
    return list(TRIPLES.read(source, reading, options)), reading


def facts(items: list[Item]) -> list[tuple[str, str, Any]]:
    found = [one for item in items if isinstance(item, Batch) for one in statements_of(item)]
    return [(one.subject, one.predicate, getattr(one.object, "id", one.object)) for one in found]


def rows(items: list[Item]) -> list[int]:
    return [int(row) for item in items if isinstance(item, Batch) for row in item.rows]


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def make(text: str | bytes, name: str = "kg.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a|r|b c\nb c|r|d\n", 1),
        ("a | r | b c\nb c | r | d", 1),
        ("a\tr\tb c\r\nb c\tr\td\r\n", 1),
        ('a,r,b c\n"b c",r,d\n', 1),
        ("\ufeffa\tr\tb c\n\nb c\tr\td\n", 1),
        ("head\trelation\ttail\na\tr\tb c\nb c\tr\td\n", 2),
        ("object,subject,predicate\nb c,a,r\nd,b c,r\n", 2),
        ("2\na\tr\tb c\nb c\tr\td\n", 2),
    ],
)
def test_spellings(file: Any, text: str, first: int) -> None:
    items, reading = read(file(text))
    assert facts(items) == FACTS
    assert rows(items)[0] == first
    assert reading.problems == []


def test_white_space_between_fields(file: Any) -> None:
    assert facts(read(file("1 2  3\n4 5\t6\n7 8 9 \n"))[0]) == [("1", "2", "3"), ("4", "5", "6"), ("7", "8", "9")]


def test_packed_and_other_encodings(file: Any) -> None:
    text = "ä\tr\tb\n"
    assert facts(read(file(gzip.compress(text.encode())))[0]) == [("ä", "r", "b")]
    assert facts(read(file(text.encode("latin-1")), encoding="latin-1")[0]) == [("ä", "r", "b")]
    assert facts(read(file(text.encode("utf-16")), encoding="utf-16")[0]) == [("ä", "r", "b")]


def test_quoted_fields_hold_marks_and_line_ends(file: Any) -> None:
    items, _ = read(file('a,r,"x, y"\n"two\nlines",r,b\nlast,r,b\n'))
    assert facts(items) == [("a", "r", "x, y"), ("two\nlines", "r", "b"), ("last", "r", "b")]
    assert rows(items) == [1, 2, 4]


@pytest.mark.parametrize(
    ("text", "row", "message"),
    [
        ("a\tr\tb\na\tr\na\tr\tc\n", 2, "this line has 2"),
        ("a\tr\tb\nx\ty\tz\tw\na\tr\tc\n", 2, "this line has 4"),
        ("a\tr\tb\n\tr\tc\na\tr\tc\n", 2, "head of this fact is empty"),
        ("a\tr\tb\na\t \tc\na\tr\tc\n", 2, "relation of this fact is empty"),
        (b"a\tr\tb\n\xff\tr\tc\na\tr\tc\n", 2, "byte 0xff"),
        ('a,r,b\na,"r"x,c\na,r,c\n', 2, "cannot be split"),
    ],
)
def test_bad_lines(file: Any, text: str | bytes, row: int, message: str) -> None:
    path = file(text)
    with pytest.raises(LoadError, match=message) as caught:
        read(path)
    assert (caught.value.file, caught.value.row) == (str(path), row)
    items, reading = read(path, "skip")
    assert facts(items) == [("a", "r", "b"), ("a", "r", "c")]
    assert rows(items) == [1, 3]
    assert [(one.row, one.skipped) for one in reading.problems] == [(row, True)]


def test_white_space_around_fields_is_left_out_and_reported(file: Any) -> None:
    items, reading = read(file("a \tr\tb\nc\tr\t d\n"))
    assert facts(items) == [("a", "r", "b"), ("c", "r", "d")]
    assert "2 fields" in reading.problems[0].message


def test_a_wrong_count_is_reported(file: Any) -> None:
    _, reading = read(file("3\na\tr\tb\n"))
    assert "says 3 facts and 1" in reading.problems[0].message


def test_columns_delimiter_header(file: Any) -> None:
    path = file("r::a::b\n")
    assert facts(read(path, delimiter="::", columns="rht")[0]) == [("a", "r", "b")]
    path = file("0.9\ta\tr\tb\n")
    assert facts(read(path, columns=["-", "head", "relation", "tail"])[0]) == [("a", "r", "b")]
    path = file("s\tp\to\n")
    assert facts(read(path)[0]) == []
    assert facts(read(path, header=False)[0]) == [("s", "p", "o")]
    path = file("x\ty\tz\ns\tp\to\n")
    assert facts(read(path, header=True)[0]) == [("s", "p", "o")]


@pytest.mark.parametrize(
    "options",
    [
        {"columns": "hr"},
        {"columns": "hrr"},
        {"columns": 3},
        {"delimiter": "\n"},
        {"header": "no"},
        {"objects": "things"},
        {"names": 3},
        {"id_prefix": 3},
        {"instance_of": 3},
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"colums": "hrt"},
    ],
)
def test_wrong_options(file: Any, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        read(file("a\tr\tb\n"), **options)


def test_no_line_fits(file: Any) -> None:
    with pytest.raises(FormatError, match="3 fields"):
        read(file("a\tb\n"))
    items, reading = read(file("\n\n"))
    assert items == []
    assert "no lines" in reading.problems[0].message


def test_objects_that_are_all_decimal_numbers_are_values(file: Any) -> None:
    items, reading = read(file("/m/1\t<http://x/lat>\t9.70\n/m/2\t<http://x/lat>\t-1e3\n"))
    batch = items[-1]
    assert isinstance(batch, Batch)
    assert isinstance(batch.objects, Numbers)
    assert batch.objects.numbers.tolist() == [9.7, -1000.0]
    assert batch.objects.numbers.dtype == np.float64
    assert batch.raws == ["9.70", "-1e3"]
    assert batch.predicates == ["http://x/lat", "http://x/lat"]
    assert reading.warned == 1


@pytest.mark.parametrize("text", ["a\tr\t1.5\na\tr\tb\n", "a\tr\t15\n", "1\tr\t2.5\n"])
def test_otherwise_objects_are_entities(file: Any, text: str) -> None:
    items, reading = read(file(text))
    assert isinstance(items[-1], Batch)
    assert isinstance(items[-1].objects, Ids)
    # Whole numbers may be ids or values.
    assert [problem.message[-28:] for problem in reading.problems] == ['(objects="values" changes that)'[-28:]] * text.endswith(
        "15\n"
    )


def test_quotes_around_all_fields_are_no_part_of_them(file: Any) -> None:
    assert read(file('"a"\t"r"\t"b ""c"""\n'))[0][-1].objects.ids == ['b "c"']  # type: ignore[union-attr]
    assert read(file('"a" x\tr\t"b"\n'))[0][-1].objects.ids == ['"b"']  # type: ignore[union-attr]


def test_values_of_all_kinds(file: Any) -> None:
    items, _ = read(
        file("a\tr\t12\na\tr\t1984-12-30\na\tr\ta  text\na\tr\t1984-13-30\nb\tis\tc\n"), objects="values", instance_of="is"
    )
    batch = items[-1]
    assert isinstance(batch, Batch)
    assert isinstance(batch.objects, Values)
    assert [one.object for one in statements_of(batch)][:4] == [Quantity(12), Time.day(1984, 12, 30), "a text", "1984-13-30"]
    assert facts(items)[4] == ("b", "is", "c")
    assert batch.raws == [None, None, "a  text", None, None]
    assert isinstance(read(file("a\tr\tx\n"), objects="values")[0][-1].objects, Texts)  # type: ignore[union-attr]


def test_membership_besides_the_statement(file: Any) -> None:
    items, _ = read(file("tom\tis\tcat\ncat\tunder\tanimal\n"), instance_of=["is"], subclass_of="under", id_prefix="x:")
    assert Member("x:tom", "x:cat", 1) in items
    assert Subclass("x:cat", "x:animal", 2) in items
    assert Entity("x:cat", "cat", EntityKind.CONCEPT) in items
    assert facts(items) == [("x:tom", "is", "x:cat"), ("x:cat", "under", "x:animal")]


def test_names(file: Any) -> None:
    path = file("1\t7\t2\n2\t8\t3\n")
    items, reading = read(
        path, names=file("1\tOne\n2\tTwo\n9\tNine\n", "n.txt"), relation_names={"7": "likes", "8": "likes"}, id_prefix="k:"
    )
    assert [item for item in items if isinstance(item, Entity)] == [Entity("k:1", "One"), Entity("k:2", "Two"), Entity("k:3", "3")]
    assert facts(items) == [("k:1", "likes", "k:2"), ("k:2", "likes (8)", "k:3")]
    assert ["both called 'likes'" in reading.problems[0].message, "1 entities have no name" in reading.problems[1].message] == [
        True,
        True,
    ]


def test_names_may_stand_before_ids(file: Any) -> None:
    items, reading = read(file("1\tr\t2\n"), names=file("2\nOne\t1\nTwo\t2\n", "n.txt"))
    assert [item for item in items if isinstance(item, Entity)] == [Entity("1", "One"), Entity("2", "Two")]
    assert "second column holds the ids" in reading.problems[0].message


def test_problems_of_the_names(file: Any) -> None:
    with pytest.raises(LoadError, match="two fields"):
        read(file("1\tr\t2\n"), names=file("1\tOne\nTwo\n", "n.txt"))
    _, reading = read(file("1\tr\t1\n"), names=file("1\tOne\n1\tUno\n", "n.txt"))
    assert "'One' before and 'Uno' here" in reading.problems[0].message
    with pytest.raises(LoadError, match="no such file"):
        read(file("1\tr\t1\n"), names="nowhere.txt")


def test_python_lists() -> None:
    assert TRIPLES.claims(FACTS)
    assert not TRIPLES.claims([("a", "b")])
    assert not TRIPLES.claims(["abc"])
    assert facts(read(FACTS)[0]) == FACTS


@given(
    st.lists(
        st.tuples(*[st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1)] * 3), min_size=1
    )
)
def test_anything_survives_tabs(tmp_path_factory: pytest.TempPathFactory, triples: list[tuple[str, str, str]]) -> None:
    path = tmp_path_factory.mktemp("t") / "kg.tsv"
    path.write_text("".join("\t".join(one) + "\n" for one in triples), encoding="utf-8", newline="")
    items, _ = read(path, delimiter="\t", header=False, objects="entities")
    assert facts(items) == [
        (one, other[1:-1] if len(other) > 2 and other[0] + other[-1] == "<>" else other, last) for one, other, last in triples
    ]


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("metaqa/kb.txt", "|"),
        ("pathquestions/2H-kb.txt", "\t"),
        pytest.param("fb15k237/train.txt", "\t", marks=pytest.mark.data),
        ("fb15k237/valid.txt", "\t"),
        pytest.param("nell995_betae/train.txt", "\t", marks=pytest.mark.data),
    ],
)
def test_benchmarks(data: Path, name: str, mark: str) -> None:
    path = data / name
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    begin = time.process_time()
    items, reading = read(path)
    spent = time.process_time() - begin
    assert facts(items) == [tuple(line.split(mark)) for line in lines]
    assert rows(items) == list(range(1, len(lines) + 1))
    assert reading.problems == []
    if len(lines) > 100_000:
        assert len(lines) / spent > 100_000  # 700,000 and more a second where nothing else runs


def test_numeric_attributes(data: Path) -> None:
    folder = data / "fb15k237"
    items, reading = read(folder / "FB15K_NumericalTriples.txt", names=folder / "entity2text.txt")
    batch = items[-1]
    assert isinstance(batch, Batch)
    lines = [line.split("\t") for line in (folder / "FB15K_NumericalTriples.txt").read_text().split("\n")[:-1]]
    assert isinstance(batch.objects, Numbers)
    assert batch.objects.numbers.tolist() == [float(line[2]) for line in lines]
    assert not any("<" in predicate for predicate in batch.predicates)
    assert {item.id for item in items if isinstance(item, Entity)} == {line[0] for line in lines}
    assert reading.warned == 1
