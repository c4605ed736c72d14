"""KQA Pro's kb.json: both spellings, facts once, values typed, problems told; the oracle's
knowledge base counted independently.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Statement, Subclass
from condgraph.engine.values import Quantity, Time
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.kqapro import FORMAT
from tests.support.pace import quick_enough


def read(source: Any, on_error: OnError = "raise") -> tuple[list[Item], Reading]:
    reading = Reading(Source("kb", str(source) if isinstance(source, Path) else ""), on_error)
    return list(FORMAT.read(source, reading, {})), reading


def statements(items: list[Item]) -> list[Statement]:
    return [item for item in items if isinstance(item, Statement)]


def relation(predicate: str, other: str, direction: str = "forward", *, old: bool = False, **qualifiers: Any) -> dict[str, Any]:
    return {"predicate" if old else "relation": predicate, "object": other, "direction": direction, "qualifiers": qualifiers}


def year(value: int) -> list[dict[str, Any]]:
    return [{"type": "year", "value": value}]


def entity(
    name: str, relations: list[Any] | None = None, attributes: list[Any] | None = None, of: list[Any] | None = None
) -> dict[str, Any]:
    return {"name": name, "instanceOf": of or [], "attributes": attributes or [], "relations": relations or []}


def attribute(kind: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"key": "k", "value": {"type": kind, "value": value, **more}, "qualifiers": {}}


def test_both_spellings_give_the_same() -> None:
    new = {"concepts": {"c": {"name": "cat", "subclassOf": ["d"]}, "d": {"name": "animal", "subclassOf": []}}}
    old = {"concepts": {"c": {"name": "cat", "instanceOf": ["d"]}, "d": {"name": "animal", "instanceOf": []}}}
    for base, spelled in ((new, False), (old, True)):
        base["entities"] = {
            "a": entity("Tom", [relation("chases", "b", old=spelled)], of=["c"]),
            "b": entity("Jerry", [relation("chases", "a", "backward", old=spelled)]),
        }
    items, reading = read(new)
    assert items == read(old)[0]
    assert items == [
        Entity("c", "cat", EntityKind.CONCEPT),
        Entity("d", "animal", EntityKind.CONCEPT),
        Subclass("c", "d", 1),
        Entity("a", "Tom"),
        Entity("b", "Jerry"),
        Member("a", "c", 1),
        Statement("a", "chases", Ref("b"), (), 1),
    ]
    assert reading.problems == []


def test_a_fact_is_loaded_once_and_kept_when_it_stands_only_backward() -> None:
    base = {
        "concepts": {},
        "entities": {
            # The backward copy stands before the forward one, its qualifiers in another order.
            "b": entity("B", [relation("r", "a", "backward", y=year(2), x=year(1)), relation("only back", "a", "backward")]),
            "a": entity(
                "A",
                [
                    relation("r", "b", x=year(1), y=year(2)),
                    relation("r", "b"),
                    relation("self", "a"),
                    relation("self", "a", "backward"),
                ],
            ),
        },
    }
    found = statements(read(base)[0])
    qualified = (("x", Time.year(1)), ("y", Time.year(2)))
    assert found == [
        Statement("a", "r", Ref("b"), qualified, 2),
        Statement("a", "r", Ref("b"), (), 2),
        Statement("a", "self", Ref("a"), (), 2),
        Statement("a", "only back", Ref("b"), (), 1),
    ]


def test_values() -> None:
    attributes = [
        attribute("string", " two  words "),
        attribute("quantity", 206, unit="centimetre"),
        attribute("quantity", 206.0, unit="1"),
        attribute("quantity", "1.50"),
        attribute("year", -43),
        attribute("date", "1984/12/30"),
        attribute("date", "1984-12-30"),
        attribute("date", "1984-02-30"),
        attribute("year", "sometime"),
        attribute("quantity", "many", unit="metre"),
    ]
    items, reading = read({"concepts": {}, "entities": {"a": entity("A", attributes=attributes)}})
    assert [(one.object, one.raw) for one in statements(items)] == [
        ("two words", " two  words "),
        (Quantity(206, "centimetre"), None),
        (Quantity(206.0), None),
        (Quantity(1.5), "1.50"),
        (Time.year(-43), None),
        (Time.day(1984, 12, 30), "1984/12/30"),
        (Time.day(1984, 12, 30), None),
        ("1984-02-30", None),
        ("sometime", None),
        ("many metre", "many"),
    ]
    assert [(one.field, one.skipped) for one in reading.problems] == [("a", False)] * 3


def test_numbers_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "kb.json"
    text = json.dumps({"concepts": {}, "entities": {"a": entity("A", attributes=[attribute("quantity", 0.5)])}})
    path.write_text(text.replace("0.5", "0.1000000000000000055511151231257827"))
    assert statements(read(path)[0])[0].object == Quantity(Decimal("0.1000000000000000055511151231257827"))


def test_what_is_missing_becomes_a_stub_with_a_warning() -> None:
    items, reading = read({"concepts": {}, "entities": {"a": entity("A", [relation("r", "Q1")], of=["Q2"])}})
    assert items[-2:] == [Entity("Q2", "Q2", EntityKind.CONCEPT), Entity("Q1", "Q1")]
    assert [problem.field for problem in reading.problems] == ["a", "a"]
    assert not any(problem.skipped for problem in reading.problems)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (entity("A", [{"relation": "r", "direction": "sideways", "object": "a"}]), "sideways"),
        (entity("A", [relation("r", "")]), "id of an object"),
        (entity("A", [relation("", "a")]), "instead of a relation"),
        (entity("A", ["text"]), "text instead of an object"),
        (entity("A", attributes=[attribute("colour", "red")]), "value type 'colour'"),
        (entity("A", attributes=[attribute("quantity", [1])]), "the value [1]"),
        (entity("A", attributes=[attribute("string", "\ud800")]), "surrogate"),
        (entity("A", attributes=[{"key": "k", "value": 3}]), "instead of an object with type and value"),
        (entity("A", of=[3]), "lists ids"),
        ({"name": "A", "relations": {}}, "is a list"),
        ("text", "a record is an object"),
    ],
)
def test_bad_records_name_the_entity(record: Any, message: str) -> None:
    base = {"concepts": {}, "entities": {"good": entity("G"), "a": record}}
    with pytest.raises(LoadError, match=r"row 2, field 'a'") as caught:
        read(base)
    assert message in str(caught.value)
    items, reading = read(base, "skip")
    assert reading.skipped == 1
    assert Entity("good", "G") in items


def test_unknown_parts_are_reported() -> None:
    record = entity("A") | {"aliases": ["B"]}
    _, reading = read({"concepts": {}, "entities": {"a": record}})
    assert "'aliases'" in reading.problems[0].message


def test_an_id_that_stands_twice_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "kb.json"
    path.write_text('{"concepts": {}, "entities": {"a": {"name": "A"}, "a": {"name": "B"}}}')
    with pytest.raises(LoadError, match="twice"):
        read(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"x": 1}', '{"entities": 3}', "[" * 100_000, '{"entities": {"a": NaN}}', "1" * 5000]
)
def test_what_is_no_kb(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kb.json"
    path.write_text(text)
    with pytest.raises(LoadError, match=r"kb\.json") as caught:
        read(path)
    assert caught.value.file == str(path)


def test_sniff() -> None:
    assert FORMAT.sniff(Path("x"), b'{\n "concepts": {"Q1": {"name": "x", "subclassOf": []}}, "entities": {}}') == 95
    assert FORMAT.sniff(Path("kb.json"), b'{"questions": {}}') == 0
    assert FORMAT.claims({"concepts": {}, "entities": {}})


def test_example_of_kopl(data: Path, tmp_path: Path) -> None:
    path = data / "kopl_example" / "example_kb.json"
    items, reading = read(path)
    assert Counter(type(item).__name__ for item in items) == {"Entity": 8, "Subclass": 2, "Member": 3, "Statement": 14}
    drafted = next(one for one in statements(items) if one.predicate == "drafted by")
    assert drafted.qualifiers == (("point in time", Time.day(2003, 6, 26)),)
    assert reading.problems == []
    packed = tmp_path / "kb.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed)[0] == items


@pytest.mark.parametrize("name", ["kb_small.json", pytest.param("kb.json", marks=pytest.mark.data)])
def test_oracle(oracle: Path, name: str) -> None:
    path = oracle / name
    base = json.loads(path.read_text())
    pairs: set[tuple[str, ...]] = set()
    literals = qualifiers = members = 0
    for one, record in base["entities"].items():
        members += len(record["instanceOf"])
        literals += len(record["attributes"])
        for link in record["relations"]:
            ends = (one, link["object"]) if link["direction"] == "forward" else (link["object"], one)
            shown = json.dumps(link["qualifiers"], sort_keys=True)
            if (fact := (*ends, link["relation"], shown)) not in pairs:
                pairs.add(fact)
                qualifiers += sum(map(len, link["qualifiers"].values()))
    begin = time.process_time()
    items, reading = read(path)
    spent = time.process_time() - begin
    found = statements(items)
    assert sum(isinstance(one.object, Ref) for one in found) == len(pairs)
    assert sum(not isinstance(one.object, Ref) for one in found) == literals
    assert sum(len(one.qualifiers) for one in found if isinstance(one.object, Ref)) == qualifiers
    assert sum(isinstance(item, Member) for item in items) == members
    assert reading.problems == []
    assert reading.records == len(base["entities"])
    if name == "kb.json":
        assert len(pairs) == 106_841
        assert quick_enough(spent, 20)  # about 3 s where nothing else runs
