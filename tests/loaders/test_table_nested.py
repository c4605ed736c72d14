"""Nested records: JSON documents, objects in rows, lists in rows as further tables."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, FormatError, LoadError, OptionError, SourceError
from condgraph.engine.facts import Batch, Ref, Source, Sourced, Statement
from condgraph.engine.values import text_of
from condgraph.loaders.base import Reading
from condgraph.loaders.export import statements_of
from condgraph.loaders.recognise import recognise
from condgraph.loaders.table.arrow import DATAFRAME
from condgraph.loaders.table.records import JSON, JSONL

ORDERS: list[dict[str, Any]] = [
    {"no": 1, "by": {"name": "Ann", "at": {"city": "Ulm"}}, "tags": ["a", 5], "items": [{"sku": "x", "n": 2, "lots": [{"m": 7}]}]},
    {"no": 2, "by": {"name": "Bob"}, "items": [{"sku": "y", "n": 3.50}, {"sku": "x", "n": 1, "lots": [{"m": 8}, {"m": 9}]}]},
    {"no": 3, "items": []},
]
Fact = tuple[str, int, str, str, str]


def read(form: Any, data: Any, on_error: Any = "raise", **options: Any) -> tuple[list[Fact], Reading]:
    """The statements: source, row, subject, predicate, object; and the reading."""
    reading = Reading(Source("t", str(data) if isinstance(data, Path) else ""), on_error)
    facts: list[Fact] = []

    def add(source: str, one: Statement) -> None:
        told = one.object.id if isinstance(one.object, Ref) else one.raw or text_of(one.object)
        facts.append((source, one.row, one.subject, one.predicate, told))

    for item in form.read(data, reading, options):
        if isinstance(item, Batch):
            for one in statements_of(item):
                add("t", one)
        elif isinstance(item, Sourced) and isinstance(item.item, Statement):
            add(item.sources[0][0], item.item)
        elif isinstance(item, Statement):
            add("t", item)
    return facts, reading


def document(folder: Path, value: Any) -> Path:
    path = folder / "t.json"
    path.write_text(json.dumps(value, indent=1))
    return path


def lines(folder: Path, records: Any) -> Path:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def expected(records: Any) -> Counter[Fact]:
    """What should come of records, by a plain recursion."""
    found: Counter[Fact] = Counter()
    numbers: Counter[str] = Counter()

    def row(record: Any, table: str, holder: tuple[str, str] | None) -> None:
        numbers[table] += 1
        number, ident = numbers[table], f"{table}/{numbers[table]}"
        if holder is not None:
            found[table, number, ident, holder[0], holder[1]] += 1
        values(record, "", table, number, ident)

    def values(record: Any, prefix: str, table: str, number: int, ident: str) -> None:
        for key, value in record.items():
            if isinstance(value, dict):
                values(value, f"{prefix}{key}.", table, number, ident)
                continue
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    row(one, f"{table}/{prefix}{key}", (table.rpartition("/")[2], ident))
                elif one is not None:
                    found[table, number, ident, f"{prefix}{key}", str(one)] += 1

    for one in records:
        row(one, "t", None)
    return found


def test_documents_lines_and_dictionaries_are_one_thing(tmp_path: Path) -> None:
    wanted = expected(ORDERS)
    assert wanted["t/items/lots", 3, "t/items/lots/3", "items", "t/items/3"] == 1
    for form, data in ((JSON, document(tmp_path, ORDERS)), (JSONL, lines(tmp_path, ORDERS)), (DATAFRAME, ORDERS)):
        facts, reading = read(form, data)
        assert Counter(facts) == wanted
        assert reading.problems == []


def test_an_object_alone_is_one_row(tmp_path: Path) -> None:
    facts, _ = read(JSON, document(tmp_path, {"version": 2, "orders": [{"no": 1}, {"no": 2}]}))
    assert Counter(facts) == expected([{"version": 2, "orders": [{"no": 1}, {"no": 2}]}])
    only, _ = read(JSON, document(tmp_path, {"orders": [{"no": 1}]}))
    assert only == [("t/orders", 1, "t/orders/1", "t", "t/1"), ("t/orders", 1, "t/orders/1", "no", "1")]


@pytest.mark.parametrize("seed", range(25))
def test_an_oracle_agrees_on_random_records(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    def made(depth: int) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for key in rng.sample(["a", "b", "c", "d"], rng.randint(1, 4)):
            kind = rng.random()
            if depth < 3 and kind < 0.2:
                record[f"o{key}{depth}"] = made(depth + 1)
            elif depth < 3 and kind < 0.5:
                record[f"l{key}{depth}"] = [rng.choice([made(depth + 1), made(depth + 1), None]) for _ in range(rng.randint(1, 3))]
                if not any(record[f"l{key}{depth}"]):
                    record[f"l{key}{depth}"] = []
            elif kind < 0.6:
                record[f"s{key}"] = [rng.randint(0, 9) for _ in range(rng.randint(0, 3))]
            else:
                record[f"v{key}"] = rng.choice([rng.randint(0, 99), "word", None])
        return record

    records = [made(0) for _ in range(rng.randint(1, 6))]
    facts, _ = read(JSON, document(tmp_path, records), types="text")
    # Values that stand twice in a cell's list are two cells of the row.
    assert Counter(facts) == expected(records)


def test_keys_references_and_types_reach_further_tables(tmp_path: Path) -> None:
    with condgraph.open("memory:") as graph:
        report = graph.load(document(tmp_path, ORDERS), key="no", refs=["items.sku"], types={"items.n": "text"}, name="orders")
        assert report.formats == ("json",)
        assert graph.kopl("Find(x) Relate(sku, backward) Relate(orders, forward) QueryName()").texts == ["1", "2"]
        assert graph.kopl("Find(2) Relate(orders, backward) QueryAttr(n)").texts == ["1", "3.5"]
        assert [one.name for one in graph.status().sources] == ["orders/items", "orders/items/lots", "orders"]
    with pytest.raises(OptionError, match=r"items\.sko"):
        read(JSON, document(tmp_path, ORDERS), refs=["items.sko"])


def test_what_is_no_row_is_bad_and_the_rest_is_kept(tmp_path: Path) -> None:
    bad: list[Any] = [5, None, {"a.b": 1, "a": {"b": 2}}]
    records = [{"n": 1}, *bad, {"n": 2, "m": [None, {"a": 3}]}]
    for form, path in ((JSON, document(tmp_path, records)), (JSONL, lines(tmp_path, records))):
        with pytest.raises(LoadError, match="row 2"):
            read(form, path)
        facts, reading = read(form, path, "skip")
        assert [problem.row for problem in reading.problems] == list(range(2, 2 + len(bad)))
        assert [(one[0], one[3], one[4]) for one in facts] == [
            ("t", "n", "1"),
            ("t", "n", "2"),
            ("t/m", "t", "t/5"),
            ("t/m", "a", "3"),
        ]


def test_records_too_deep_inside_each_other_are_left_out(tmp_path: Path) -> None:
    deep: Any = {"a": 1}
    for _ in range(30):
        deep = {"l": [deep], "n": 1}
    with pytest.raises(LoadError, match="records are nested too deeply"):
        read(JSON, document(tmp_path, deep))
    facts, reading = read(JSON, document(tmp_path, deep), "skip")
    assert [fact[3] for fact in facts].count("n") == 21
    assert reading.skipped == 1


def test_keys_that_stand_twice_are_bad(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"a": 1}, {"a": 1, "a": 2}, {"m": [{"b": 1, "b": 1}]}]')
    facts, reading = read(JSON, path, "skip")
    assert [one[1] for one in facts] == [1]
    assert [problem.row for problem in reading.problems] == [2, 3]


@pytest.mark.parametrize(
    "text", ["", "[", "[1", '[{"a": 1}', "[]", "3", '"x"', "[{}]", '[{"a": 1},]', "[" * 100_000, '{"a":' * 50_000]
)
def test_what_is_no_document_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(LoadError):
        read(JSON, path)


def test_tables_are_bounded_and_names_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="1,000 places"):
        read(JSON, document(tmp_path, [{f"k{at}": [{"a": 1}]} for at in range(1_200)]))
    facts, reading = read(JSON, document(tmp_path, [{"a/b": [{"x": 1}], "a": [{"b": [{"x": 2}]}]}]))
    assert {(one[0], one[4]) for one in facts if one[3] == "x"} == {("t/a/b", "1"), ("t/a/b (2)", "2")}
    assert "two lists would be the table" in reading.problems[0].message
    _, reading = read(JSON, document(tmp_path, [{"a": {"x": 1}}, {"a": [{"x": 2}]}]))
    assert "something else in others" in reading.problems[0].message
    with pytest.raises(LoadError, match="is an id of rows"):
        read(JSON, document(tmp_path, [{"k": "m/1", "m": [{"a": 1}]}]), key="k")
    # A column that is called like what holds the row keeps its name.
    facts, _ = read(JSON, document(tmp_path, [{"m": [{"t": 5}]}]))
    assert {one[3]: one[4] for one in facts} == {"t": "5", "t (2)": "t/1"}


def test_documents_are_recognised(tmp_path: Path) -> None:
    for name, text, form in (
        ("a.json", '[\n {"a": 1}\n]', "json"),
        ("a.json", '{\n "a": [1, 2],\n "b": {"c": 1}\n}', "json"),
        ("a.txt", '[{"a": 1, "b": 2}, {"a": 3, "b": 4}]', "json"),
        ("a.json", '{"a": 1}\n{"a": 2}\n', "jsonl-table"),
        ("a.json", '[{"a": "' + "x" * 100_000 + '"}]', "json"),
        ("a.json", '{"b": "' + "x" * 100_000 + '"}', "json"),
        ("a.jsonl", '{"a": 1}\n', "jsonl-table"),
        ("kb.json", '{"concepts": {}, "entities": {}}', "kqapro"),
        ("a.json", '[{"@id": "http://a/b", "http://a/p": 1}]', "rdf"),
    ):
        (tmp_path / name).write_text(text)
        assert recognise(tmp_path / name)[0].format.name == form, text[:50]
    for text in ("[1, 2]", "[]", "[[1]]"):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(FormatError):
            recognise(tmp_path / "a.json")


def test_a_file_is_replaced_and_unloaded_with_its_further_tables(tmp_path: Path) -> None:
    path = document(tmp_path, ORDERS)
    changed = [{"no": 1, "items": [{"sku": "z"}], "notes": [{"x": 1}]}]

    def exported(graph: Any) -> list[str]:
        graph.export(tmp_path / "out.jsonl")
        return sorted((tmp_path / "out.jsonl").read_text().splitlines()[1:])

    with condgraph.open("memory:") as graph, condgraph.open("memory:") as fresh:
        graph.load(path, name="orders")
        path = document(tmp_path, changed)
        with pytest.raises(SourceError):
            graph.load(path, name="orders")
        with pytest.raises(OptionError, match="tables of their own"):
            graph.load(path, name="orders", append=True)
        graph.load(path, name="orders", replace=True)
        fresh.load(path, name="orders")
        assert exported(graph) == exported(fresh)
        graph.unload("orders")
        assert graph.status().statements == 0
        assert not graph.status().sources


def test_a_megabyte_of_nonsense_is_an_error_in_time(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for text in ('[{"a":' * 100_000, '[{"' + "k" * 1_000_000 + '": "\\ud800"}]', "[{}" + ",{}" * 300_000):
        path.write_text(text)
        with pytest.raises(CondgraphError):
            read(JSON, path)
    path.write_text('[{"a": [' + "[[]]," * 100_000 + "{}]}]")
    assert len(read(JSON, path)[0]) == 100_001


@pytest.mark.parametrize(
    "document",
    [
        {"name": ["a", "b"], "age": [1, 2]},
        {"name": {"0": "a", "1": "b"}, "age": {"0": 1, "1": 2}},
        {"columns": ["name", "age"], "index": [0, 1], "data": [["a", 1], ["b", 2]]},
        [["name", "age"], ["a", 1], ["b", 2]],
    ],
)
def test_documents_of_columns_and_of_rows_are_tables(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    assert recognise(path)[0].format is JSON
    facts, reading = read(JSON, path)
    assert Counter(facts) == Counter(
        [("t", 1, "t/1", "name", "a"), ("t", 2, "t/2", "name", "b"), ("t", 1, "t/1", "age", "1"), ("t", 2, "t/2", "age", "2")]
    )
    assert ["is read as 2 rows" in one.message for one in reading.problems] == [True]


@pytest.mark.parametrize(
    "document",
    [
        {"name": "x", "tags": ["a", "b"], "langs": ["q", "r"]},
        {"tags": ["a", "b", "c"], "langs": ["q", "r"]},
        {"tags": ["a", "b"]},
        {"a": {"x": 1}, "b": {"y": 2}},
    ],
)
def test_other_documents_stay_one_row(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    facts, reading = read(JSON, path)
    assert {fact[2] for fact in facts} == {"t/1"}
    assert not reading.problems


POINT = {
    "type": "Feature",
    "id": 7,
    "properties": {"name": "A", "pop": 10},
    "geometry": {"type": "Point", "coordinates": [8.5, 47.3]},
}
AREAS = [
    {
        "type": "Feature",
        "properties": {"name": name},
        "geometry": {"type": "Polygon", "coordinates": [[[8, 47], [9, 47.50], [8, 47]]]},
    }
    for name in "BC"
]
NOWHERE = {"type": "Feature", "properties": {"name": "D"}, "geometry": None, "bbox": [1, 2, 3, 4]}


@pytest.mark.parametrize("form", [JSON, JSONL])
def test_features_of_geojson_are_rows(tmp_path: Path, form: Any) -> None:
    features = [POINT, *AREAS, NOWHERE]
    path = tmp_path / "t.geojson"
    collection = {"type": "FeatureCollection", "crs": "x", "features": features}
    path.write_text(json.dumps(collection) if form is JSON else "\n".join(map(json.dumps, features)))
    facts, reading = read(form, path)
    assert {(fact[1], *fact[3:]) for fact in facts} == {
        (1, "id", "7"), (1, "name", "A"), (1, "pop", "10"), (1, "geometry.type", "Point"),
        (1, "geometry.longitude", "8.5"), (1, "geometry.latitude", "47.3"),
        (2, "name", "B"), (2, "geometry.type", "Polygon"), (2, "geometry.coordinates", "[[[8, 47], [9, 47.5], [8, 47]]]"),
        (3, "name", "C"), (3, "geometry.type", "Polygon"), (3, "geometry.coordinates", "[[[8, 47], [9, 47.5], [8, 47]]]"),
        (4, "name", "D"), (4, "bbox", "[1, 2, 3, 4]"),
    }  # fmt: skip
    said = [one.message for one in reading.problems]
    assert said[-1] == "2 lists of lists are kept as JSON text"
    assert said[:-1] == (["fields of the collection outside its features are left out: 'crs'"] if form is JSON else [])


def test_records_beside_other_values_and_lists_of_lists(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "info": ["x", {"code": "X1"}, None, [1, 2]]},
        {"id": "b", "info": ["y"]},
        {"id": "c", "info": {"code": "X2"}},
    ]
    for form, data in ((JSON, document(tmp_path, rows)), (JSONL, lines(tmp_path, rows)), (DATAFRAME, rows)):
        facts, reading = read(form, data)
        assert [fact[3:] for fact in facts if fact[2] == "t/1"] == [("id", "a"), ("info", "x"), ("info", "[1, 2]")]
        assert [fact[3:] for fact in facts if fact[2] == "t/info/1"] == [("t", "t/1"), ("code", "X1")]
        assert [fact[3:] for fact in facts if fact[2] in ("t/2", "t/3") and fact[3] != "id"] == [("info", "y"), ("info.code", "X2")]
        assert len(reading.problems) == 2


def test_bad_records_of_a_list_are_left_out_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"n": 1, "items": [{"a": 1}, {"a": 2, "a": 3}, {"a": 4, "b": [{"c": "\\ud800"}, {"c": "x"}]}]}')
    with pytest.raises(LoadError, match=r"row 1, field 'items\.a': the key 'a' occurs more than once"):
        read(JSON, path)
    facts, reading = read(JSON, path, "skip")
    assert [fact[4] for fact in facts if fact[3] in "nac"] == ["1", "1", "4", "x"]
    assert (reading.skipped, [one.field for one in reading.problems]) == (2, ["items.a", "items.b.c"])
