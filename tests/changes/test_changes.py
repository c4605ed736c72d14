"""Sources of a graph that are replaced, added to and taken away: each time the graph is what a
fresh load of its sources is.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, OptionError, SourceError, UnknownNameError
from condgraph.engine.facts import Entity, Member, Ref, Statement
from tests.support.changing import Edits, exported
from tests.support.lanes import ALL


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a folder"])
@pytest.mark.parametrize("seed", range(4) if ALL else range(1))
def test_edits_are_fresh_loads(seed: int, kept: bool, tmp_path: Path) -> None:
    edits = Edits(random.Random(seed), tmp_path)
    graph = condgraph.open(tmp_path / "store" if kept else "memory:")
    done = []
    for number in range(50):
        done.append(edits.edit(graph))
        if not ALL and number % 10 < 8:
            continue
        fresh = edits.fresh()
        if not edits.sources:
            assert not graph.status().statements
            continue
        assert exported(graph) == exported(fresh), done[-3:]
        assert graph.status().counts == fresh.status().counts, done[-3:]


def test_statements_of_two_sources_stay_while_one_is_left() -> None:
    graph = condgraph.open()
    for name, label in (("a", "Ann"), ("b", "Anna"), ("c", "ann")):
        graph.add([Entity("x", label), Statement("x", "p", "1", (), 1), Statement("x", f"only {name}", "1")], source=name)
    graph.unload("a")
    assert [source.name for source in graph.status().sources] == ["b", "c"]
    answer = graph.kopl("Find(Anna) QueryAttr(p)")
    assert answer.texts == ["1"]
    assert {source.name for fact in answer.evidence for source, _ in fact.sources} == {"b", "c"}
    with pytest.raises(UnknownNameError):
        graph.kopl("Find(Anna) QueryAttr(only a)")
    report = graph.unload("b", "c")
    assert (report.statements, report.entities) == (3, 1)
    assert graph.status().statements == 0
    graph.add([Statement("x", "p", "2")])
    assert graph.kopl("Find(x) QueryAttr(p)").texts == ["2"]


def test_entities_that_others_refer_to_stay() -> None:
    graph = condgraph.open()
    graph.add([Entity("x", "Ann"), Member("x", "human"), Statement("x", "p", "1"), Entity("y", "Bob")], source="a")
    graph.add([Statement("z", "knows", Ref("x"), (("by", Ref("w")),))], source="b")
    graph.unload("a")
    assert graph.kopl("FindAll() QueryName()").texts == ["w", "x", "z"]
    assert not graph.schema().concepts


def test_a_changed_file_is_said_and_replaced(tmp_path: Path) -> None:
    file, other = tmp_path / "sales.csv", tmp_path / "more" / "sales.csv"
    file.write_text("item,price\nshoe,10\nhat,5\n")
    other.parent.mkdir()
    other.write_text("item,price\nshoe,12\n")
    graph = condgraph.open(tmp_path / "store")
    graph.load(file)
    file.write_text("item,price\nshoe,11\n")
    with pytest.raises(SourceError, match="changed since") as caught:
        graph.load(file)
    assert str(file) in str(caught.value)
    assert "replace=True" in str(caught.value)
    assert "append=True" in str(caught.value)
    graph.load(file, replace=True)
    count = "FindAll() FilterStr(item, shoe) QueryAttr(price)"
    assert graph.kopl(count).texts == ["11"]
    # Rows are told apart, though both files begin with row 1.
    graph.load(other, append=True)
    assert sorted(graph.kopl(count).texts) == ["11", "12"]
    assert [source.name for source in graph.status().sources] == ["sales"]
    # Either file again adds nothing, also with append=True, which says so.
    before = exported(graph)
    graph.load(file)
    graph.load(other)
    assert graph.load(other, append=True).warnings == ("source 'sales' holds this already: nothing is added to it",)
    assert exported(graph) == before
    other.write_text("item,price\nboot,1\n")
    with pytest.raises(SourceError):
        graph.load(other)


def test_broken_and_empty_files_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "sales.csv"
    file.write_text("item,price\nshoe,10\n")
    graph = condgraph.open(tmp_path / "store")
    graph.load(file)
    graph.add([Statement("x", "p", "1")])
    before = exported(graph)
    for broken, options in ((b"", {}), (b"item,price\na,1\na,2\n", {"key": "item"}), (b"item,price\na,1,2,3\n", {})):
        file.write_bytes(broken)
        with pytest.raises(CondgraphError):
            graph.load(file, replace=True, **options)
        assert exported(graph) == before
    file.write_text("item,price\n")
    try:
        report = graph.load(file, replace=True)
    except CondgraphError:
        assert exported(graph) == before
    else:
        assert any("the replacement of source 'sales' is empty" in warning for warning in report.warnings)
        assert [source.name for source in graph.status().sources] == ["api"]


def test_names_are_whole_names(tmp_path: Path) -> None:
    graph = condgraph.open()
    for name in ("sales", "sales/old", "sale"):
        graph.add([Statement(name, "p", "1")], source=name)
    with pytest.raises(SourceError, match="no source is called 'sal'"):
        graph.unload("sal")
    graph.unload("sales")
    assert graph.kopl("FindAll() QueryName()").texts == ["sale", "sales/old"]
    # Not the tables of one folder, whose name would stand for them.
    with pytest.raises(SourceError, match="name one of them"):
        graph.unload("sales")
    with pytest.raises(OptionError, match="not both"):
        graph.load([{"a": 1}], name="x", replace=True, append=True)
    with pytest.raises(OptionError, match="name="):
        graph.load([{"a": 1}], replace=True)
    with pytest.raises(SourceError, match="no source is called"):
        graph.load([{"a": 1}], name="sail", append=True)
    assert graph.load([{"a": 1}], name="sail", replace=True).warnings[0].startswith("there was no source 'sail' to replace")


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "customers.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    (folder / "orders.csv").write_text("id,customers_id,total\n7,1,10\n8,2,20\n")
    graph = condgraph.open()
    graph.load(folder, format="folder")
    graph.add([Statement("x", "p", "1")], source="shop note")
    (folder / "orders.csv").write_text("id,customers_id,total\n7,1,15\n")
    with pytest.raises(SourceError):
        graph.load(folder, format="folder")
    graph.load(folder, format="folder", replace=True)
    fresh = condgraph.open()
    fresh.load(folder, format="folder")
    fresh.add([Statement("x", "p", "1")], source="shop note")
    assert exported(graph)[1:] == exported(fresh)[1:]
    assert set(graph.unload("shop").sources) == {"shop/customers", "shop/orders"}
    assert graph.kopl("FindAll() QueryName()").texts == ["x"]


def test_an_earlier_export_keeps_names_of_nobody(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    lines = [
        '{"condgraph": 1, "graph": "g", "sources": [{"name": "a"}, {"name": "b"}]}',
        '{"entity": "x", "name": "Ann"}',
        '{"s": "x", "p": "p", "o": "1", "src": [["a", 1]]}',
        '{"s": "x", "p": "q", "o": "1", "src": [["b", 1]]}',
    ]
    file.write_text("\n".join(lines) + "\n")
    graph = condgraph.open(tmp_path / "store")
    graph.load(file)
    assert "1 entity keeps its name" in graph.unload("a").warnings[0]
    assert graph.kopl("Find(Ann) QueryAttr(q)").texts == ["1"]


def test_what_is_kept_with_the_graph_is_kept_in_step(tmp_path: Path) -> None:
    graph = condgraph.open(tmp_path / "store")
    graph.add([Statement("Ann", "height", "tall"), Statement("Ann", "shoe size", "9")], source="a")
    graph.add([Statement("Ann", "weight", "light")], source="b")
    graph.demos.add("How tall is Ann?", "Find(Ann) QueryAttr(height)")
    graph.demos.add("How heavy is Ann?", "Find(Ann) QueryAttr(weight)")
    graph.index()
    rows = "SELECT ?o WHERE { <Ann> <height> ?o }"
    assert len(graph.sparql(rows).rows) == 1
    assert graph.unload("a").warnings == ("1 demonstration uses names that are no longer in the graph",)
    assert not graph.sparql("SELECT ?o WHERE { ?s <pred:fact_r> ?o }").rows[1:]
    assert [one.name for one in graph.schema().predicates] == ["weight"]
    found = graph.match([("Ann", "weight", "UNKNOWN")])
    assert [str(one) for one in found.texts] == [str(one) for one in found.texts if "tall" not in str(one)]
    assert len(graph.demos) == 2


async def _unloaded(place: Path) -> None:
    async with await condgraph.open_async(place) as graph:
        await graph.load([{"a": 1}], name="t")
        await graph.load([{"a": 2}], name="t", replace=True)
        assert (await graph.unload("t")).sources == ("t",)
        assert not (await graph.status()).statements


def test_asyncio(tmp_path: Path) -> None:
    asyncio.run(_unloaded(tmp_path / "store"))


def test_what_was_added_takes_the_place_of_all(tmp_path: Path) -> None:
    """A source that is replaced by something that was added to it is that, however often it is
    loaded.
    """
    files = [tmp_path / "sales.csv", tmp_path / "may.csv"]
    for number, file in enumerate(files):
        file.write_text(f"item,price\nshoe,{number}\n")
    graph, fresh = condgraph.open(), condgraph.open()
    fresh.load(files[1], name="sales")
    graph.load(files[0])
    graph.load(files[1], name="sales", append=True)
    graph.load(files[1], name="sales", replace=True)
    assert exported(graph) == exported(fresh)
    graph.load(files[1], name="sales")
    assert exported(graph) == exported(fresh)


def test_a_database_beside_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are those of one file, also where that is named without a folder."""
    monkeypatch.chdir(tmp_path)
    graph, fresh = condgraph.open(), condgraph.open()
    for price in (1, 2):
        with closing(sqlite3.connect("shop.db")) as database, database:
            database.execute("DROP TABLE IF EXISTS item")
            database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, price INTEGER)")
            database.execute("CREATE TABLE IF NOT EXISTS other (id INTEGER PRIMARY KEY)")
            database.execute("INSERT INTO item VALUES (1, ?)", [price])
        graph.load("shop.db", replace=price > 1)
    fresh.load("shop.db")
    assert exported(graph) == exported(fresh)
    assert graph.unload("shop").sources == ("shop/item", "shop/other")
