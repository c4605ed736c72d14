"""Wikidata statements with qualifiers: labels, ids alone, membership; the labelled benchmark
counted independently.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condgraph.engine.errors import LoadError, OptionError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Statement, Subclass
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.statements.wikidata import FORMAT

LABELLED = (
    "Q1\tAda\tP166\taward received\tQ2\tMedal\tP805=subject of\tQ3=1843=1844\n"
    "Q1\tAda\tP31\tinstance of\tQ5\thuman\n"
    "Q5\thuman\tP279\tsubclass of\tQ6\tanimal\n"
)


def read(path: Path, on_error: OnError = "raise", **options: Any) -> tuple[list[Item], Reading]:
    reading = Reading(Source("wd", str(path)), on_error)
    FORMAT.check_options(options)
    return list(FORMAT.read(path, reading, options)), reading


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def make(text: str, name: str = "wd.txt") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return make


def test_labelled(file: Any) -> None:
    items, reading = read(file(LABELLED))
    assert "http://www.wikidata.org/prop/P166" in items.pop().terms
    assert items == [
        Entity("Q1", "Ada"),
        Entity("Q2", "Medal"),
        Entity("Q3", "1843=1844"),
        Statement("Q1", "award received", Ref("Q2"), (("subject of", Ref("Q3")),), 1),
        Entity("Q5", "human"),
        Entity("Q5", "human", EntityKind.CONCEPT),
        Member("Q1", "Q5", 2),
        Statement("Q1", "instance of", Ref("Q5"), (), 2),
        Entity("Q6", "animal"),
        Entity("Q6", "animal", EntityKind.CONCEPT),
        Subclass("Q5", "Q6", 3),
        Statement("Q5", "subclass of", Ref("Q6"), (), 3),
    ]
    assert reading.problems == []


def test_ids_alone(file: Any) -> None:
    items, _ = read(
        file("Q1,P166,Q2,P805,Q3,P805,Q4\nQ1,P31,Q5\n"), names={"Q1": "Ada"}, relation_names={"P166": "award"}, id_prefix="w:"
    )
    assert Entity("w:Q1", "Ada") in items
    assert Statement("w:Q1", "award", Ref("w:Q2"), (("P805", Ref("w:Q3")), ("P805", Ref("w:Q4"))), 1) in items
    assert Member("w:Q1", "w:Q5", 2) in items


def test_membership_may_be_left_alone(file: Any) -> None:
    items, _ = read(file(LABELLED), concepts=False)
    assert not any(isinstance(item, (Member, Subclass)) for item in items)
    items, _ = read(file(LABELLED), instance_of=["P166"], subclass_of="P31")
    assert Member("Q1", "Q2", 1) in items
    assert Subclass("Q1", "Q5", 2) in items


def test_two_properties_of_one_label(file: Any) -> None:
    items, reading = read(file("Q1\ta\tP1\tpart\tQ2\tb\nQ1\ta\tP2\tpart\tQ2\tb\tP1=part\tQ2=b\n"))
    found = [item for item in items if isinstance(item, Statement)]
    assert [one.predicate for one in found] == ["part", "part (P2)"]
    assert found[1].qualifiers == (("part", Ref("Q2")),)
    assert [problem.row for problem in reading.problems] == [2]


def test_two_labels_of_one_id(file: Any) -> None:
    items, reading = read(file("Q1\ta\tP1\tp\tQ2\tb\nQ1\tA\tP1\tp\tQ2\tb\n"))
    assert [item.name for item in items if isinstance(item, Entity)] == ["a", "b"]
    assert "labelled 'a' before and 'A' here" in reading.problems[0].message


@pytest.mark.parametrize(
    "line",
    ["Q1\ta\tP1\tp\tQ2", "Q1\ta\tP1\tp\tQ2\tb\tP2=q", "\ta\tP1\tp\tQ2\tb", "Q1\ta\tP1\tp\tQ2\tb\t=q\tQ3=c", "Q1\ta", "Q1,P1,Q2"],
)
def test_bad_lines(file: Any, line: str) -> None:
    path = file(LABELLED + line + "\n")
    with pytest.raises(LoadError, match="row 4"):
        read(path)
    assert read(path, "skip")[1].skipped == 1


def test_wrong_options(file: Any) -> None:
    for options in ({"concepts": "no"}, {"instance_of": 31}, {"concept": True}):
        with pytest.raises(OptionError):
            read(file(LABELLED), **options)


def test_sniff() -> None:
    assert FORMAT.sniff(Path("x"), LABELLED.encode()) > 90
    assert FORMAT.sniff(Path("x"), b"Q1,P166,Q2,P805,Q3\nQ1,P31,Q5\n") > 90
    assert FORMAT.sniff(Path("x"), b"a\tr\tb\n") == 0


@pytest.mark.data
def test_wd50k(data: Path) -> None:
    path = data / "wd50k" / "derived_labelled_statements.tsv"
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    items, reading = read(path)
    found = [item for item in items if isinstance(item, Statement)]
    assert [(one.subject, one.predicate, one.object) for one in found] == [(line[0], line[3], Ref(line[4])) for line in lines]
    assert [one.qualifiers for one in found] == [
        tuple((key.split("=", 1)[1], Ref(value.split("=", 1)[0])) for key, value in zip(line[6::2], line[7::2], strict=True))
        for line in lines
    ]
    assert sum(isinstance(item, Member) for item in items) == sum(line[2] == "P31" for line in lines) == 10_105
    assert sum(isinstance(item, Subclass) for item in items) == sum(line[2] == "P279" for line in lines) == 1_269
    names = {item.id: item.name for item in items if isinstance(item, Entity)}
    assert all(names.get(line[0], line[0]) == line[1] for line in lines)
    assert reading.problems == []
