"""Items through a snapshot and back: nothing is lost, whichever way they came in."""

from __future__ import annotations

import io
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import condgraph
from condgraph.engine.errors import LoadError, OptionError
from condgraph.engine.facts import (
    Batch,
    Entity,
    EntityKind,
    Ids,
    Member,
    Numbers,
    Ref,
    Source,
    Sourced,
    Statement,
    Subclass,
    Texts,
    Times,
    Values,
)
from condgraph.engine.values import UNKNOWN, Precision, Quantity, Time
from condgraph.graph import Graph
from tests.support import graphs
from tests.support.canonical import contents, contents_of
from tests.support.lanes import examples


def graph_of(*parts: list[Any], place: str | Path = "memory:") -> Graph:
    """A graph to which the parts were added one after the other."""
    graph = condgraph.open(place)
    for part in parts:
        graph.add(part)
    return graph


def exported(graph: Graph, folder: Path) -> Graph:
    """The graph after an export and a load of it."""
    path = folder / "export.jsonl"
    graph.export(path)
    again = condgraph.open("memory:")
    report = again.load(path)
    assert not report.problems
    return again


@settings(max_examples=examples(60))
@given(graphs.stored_items())
def test_items_come_back(items: list[Any]) -> None:
    """In memory, through a directory, and through an export."""
    wanted = contents(items)
    graph = graph_of(items)
    assert contents_of(graph) == wanted
    with tempfile.TemporaryDirectory() as folder:
        assert contents_of(exported(graph, Path(folder))) == wanted
        kept = graph_of(items, place=Path(folder) / "store")
        assert contents_of(kept) == wanted
        opened = condgraph.open(Path(folder) / "store", read_only=True)
        assert contents_of(opened) == wanted
        assert opened.status(verify=True).counts == graph.status().counts


@settings(max_examples=examples(50))
@given(graphs.stored_items(), st.data())
def test_appending_is_adding_together(items: list[Any], data: st.DataObject) -> None:
    """A graph that grew is the graph that was loaded at once, column by column but for the order of
    sources.
    """
    at = data.draw(st.integers(0, len(items)))
    together, grown = graph_of(items), graph_of(items[:at], items[at:])
    assert contents_of(grown) == contents_of(together)
    assert grown.status().counts == together.status().counts
    for name in together.current.arrays.names:
        if "src" in name or name.startswith(("pool.", "prov.", "bysrc.")):
            continue
        one, other = together.current.arrays.get(name), grown.current.arrays.get(name)
        assert one.dtype == other.dtype, name
        if name not in ("ent.source", "row.key", "sch.s.count"):
            assert np.array_equal(one, other), name


@settings(max_examples=examples(60))
@given(graphs.stored_items())
def test_adding_twice_adds_nothing(items: list[Any]) -> None:
    """A graph added to itself is itself."""
    once = graph_of(items)
    twice = graph_of(items, items)
    assert contents_of(twice) == contents_of(once)
    assert twice.status().counts == once.status().counts


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(graphs.ENTITIES), graphs.stored_values()), max_size=30), st.booleans())
def test_batches_are_statements(rows: list[tuple[str, Any]], qualified: bool) -> None:
    """A batch of any kind of column says what its statements say one by one."""
    values = [value for _, value in rows]
    subjects = [subject for subject, _ in rows]
    numbers = list(range(1, len(rows) + 1))
    raws = [f"raw {n}" if n % 3 == 0 else None for n in numbers]
    some: list[Any] = [None if n % 2 else Quantity(n) for n in numbers]
    qualifiers = (("of", some),) if qualified else ()
    singly = [
        Statement(s, "p", v, (("of", q),) if qualified and q is not None else (), n, raw)
        for s, v, n, raw, q in zip(subjects, values, numbers, raws, some, strict=True)
    ]
    assert contents_of(graph_of([Batch(subjects, "p", Values(values), numbers, raws, qualifiers)])) == contents_of(graph_of(singly))


def test_columns_of_one_type() -> None:
    """Batches of numbers, times, texts and ids keep every value."""
    days = np.arange(5, dtype=np.int64) * 86_400
    whole = np.array([0, -1, 2**53 + 1, 2**62, -(2**63)], np.int64)
    floats = np.array([0.5, -0.0, 1e300, 5e-324, 3.0])
    columns: dict[str, Any] = {
        "whole": Numbers(whole, "metre"),
        "floats": Numbers(floats),
        "days": Times(days, days + 86_400, np.full(5, Precision.DAY, np.int8)),
        "texts": Texts(["", "a", "ß", "🜁", "a"]),
        "ids": Ids(["x", "y", "x", "z", "s1"]),
    }
    subjects = [f"s{i}" for i in range(5)]
    batches = [Batch(subjects, name, column, range(1, 6)) for name, column in columns.items()]
    graph = graph_of(batches)
    assert contents_of(graph) == contents(batches)
    values = graph.kopl("FindAll() QueryAttr(whole)").values
    assert sorted(value.number for value in values) == sorted(whole.tolist())  # type: ignore[union-attr]
    with pytest.raises(LoadError, match="not finite"):
        graph.add([Batch(["s"], "p", Numbers(np.array([np.nan])), [1])])
    assert contents_of(graph) == contents(batches)


def test_joined_statements_keep_their_sources() -> None:
    """The same statement from several sources is one, with all of them; the order of qualifiers
    does not count, their values do.
    """
    one = Statement("a", "p", Quantity(5), (("k", "x"), ("l", Ref("b"))), 0, "five")
    turned = Statement("a", "p", Quantity(5.0), (("l", Ref("b")), ("k", "x")), 0, "5,0")
    other = Statement("a", "p", Quantity(5), (("k", "x"),))
    graph = graph_of(
        [Source("one", "1.csv", "csv"), Source("two", "2.csv", "csv")],
        [Sourced(one, (("one", 1), ("two", 7))), Sourced(turned, (("two", 3),)), Sourced(other, (("two", 3),))],
        [Sourced(turned, (("three", 9),)), Sourced(one, (("one", 1),))],
    )
    assert graph.status().counts["attributes"] == 2
    places = sorted(sorted(place) for place in contents_of(graph).statements.values())
    assert places == [[("one", 1), ("three", 9), ("two", 3), ("two", 7)], [("two", 3)]]
    evidence = graph.kopl("Find(a) FilterNum(p, 5, =) QFilterStr(l, b) QueryAttrQualifier(p, 5, k)").evidence
    assert [
        sorted((source.name, source.location, row) for source, row in e.sources) for e in evidence if len(e.qualifiers) == 2
    ] == [[("one", "1.csv", 1), ("three", "", 9), ("two", "2.csv", 3), ("two", "2.csv", 7)]]
    assert sorted(graph.kopl("Find(a) QueryAttr(p)").texts) == ["five"]


SPANS = (
    Time(-(2**63), 2**63 - 2, Precision.SPAN),
    Time(-(2**63) + 1, 2**63 - 1, Precision.SPAN),
    Time.year(-4713),
    Time.year(99999),
)
EXTREME = (
    *(Quantity(n) for n in (2**53, 2**53 + 1, -(2**63) - 1, 10**400, -(10**4299), 1e308, 5e-324, -0.0)),
    *(Quantity(Decimal(n), "metre") for n in ("0.1", "0.10", "1e400", "1e-400", "123456789.123456789123456789", "-1E+4299")),
    *SPANS,
    *("", " ", "a\u0000b", "\n", "𝔘" * 1000, UNKNOWN),
)


@pytest.mark.parametrize("value", EXTREME, ids=range(len(EXTREME)))
def test_extreme_values(value: Any, tmp_path: Path) -> None:
    """As objects and as qualifiers, in memory and through an export."""
    items = [Statement("a", "p", value, (("k", value),), 3, "raw"), Statement("a", "q", "b", (("start time", value),))]
    graph = graph_of(items)
    assert contents_of(graph) == contents(items)
    assert contents_of(exported(graph, tmp_path)) == contents(items)


REFUSED = (
    *(float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")),
    *(10**4300, Decimal("1e5000"), Decimal("1e-5000"), Decimal("1E+999999")),
)


@pytest.mark.parametrize("number", REFUSED, ids=range(len(REFUSED)))
def test_refused_numbers(number: Any) -> None:
    """What is no finite number of a sane size is refused, and the graph stays as it was."""
    graph = graph_of([Statement("a", "p", "b")])
    with pytest.raises(LoadError, match=r"finite|digits"):
        graph.add([Statement("a", "p", Quantity(number))])
    assert graph.kopl("Find(a) QueryAttr(p)").texts == ["b"]


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_is_refused(text: str) -> None:
    """Wherever it stands."""
    places: list[Any] = [
        Statement(text, "p", "b"),
        Statement("a", text, "b"),
        Statement("a", "p", text),
        Statement("a", "p", Quantity(1, text)),
        Statement("a", "p", "b", ((text, "c"),)),
        Statement("a", "p", "b", (("k", text),)),
        Statement("a", "p", "b", raw=text),
        Entity("a", text),
        Member("a", text),
        Subclass(text, "b"),
        Source(text),
    ]
    for place in places:
        with pytest.raises(LoadError, match="surrogate"):
            graph_of([place])


def test_things_that_are_no_items() -> None:
    """Are refused by type, and leave the graph as it was."""
    graph = graph_of([Statement("a", "p", "b")])
    for wrong in (("a", "p", "b"), Statement("a", "p", 5), Statement("a", "p", None), Statement("a", "p", "b", (("k", 1.5),))):  # type: ignore[arg-type]
        with pytest.raises(LoadError):
            graph.add([wrong])  # type: ignore[list-item]
    assert graph.kopl("Find(a) QueryAttr(p)").texts == ["b"]


def test_sources_have_names() -> None:
    """An empty one is refused wherever it can be given."""
    graph = graph_of([Statement("a", "p", "b")])
    with pytest.raises(OptionError, match="empty"):
        graph.add([Statement("a", "p", "b")], source="")
    with pytest.raises(OptionError, match="empty"):
        graph.load([{"a": 1}], name="")


def test_first_name_stays() -> None:
    """A second name is a warning; a concept stays one; a row stays a row."""
    graph = graph_of(
        [Entity("a", "Ann"), Entity("a", "Anna"), Entity("a", "a"), Entity("r", "r 1", EntityKind.ROW, 1), Entity("r", "r 1")]
    )
    assert graph.kopl("Find(Ann) QueryName()").texts == ["Ann"]
    assert contents_of(graph).rows == {"r": ("api", 1)}
    graph.add([Member("b", "r")])
    assert contents_of(graph).kinds["r"] is EntityKind.CONCEPT


def test_an_export_into_a_file_object() -> None:
    """Counts its lines."""
    graph = graph_of([Statement("a", "p", "b"), Statement("b", "q", Ref("c"))])
    file = io.StringIO()
    lines = graph.export(file)
    assert file.getvalue().count("\n") == lines
