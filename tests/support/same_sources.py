"""Checks of two sources with the same name, for local graphs and graphs on servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from condgraph.engine.errors import SourceError
from condgraph.engine.facts import Statement
from condgraph.graph import Graph

COUNT = "FindAll() FilterStr(item, shoe) QueryAttr(price)"


def prices(graph: Graph) -> list[str]:
    return sorted(graph.kopl(COUNT).texts)


def check_names(graph: Graph, folder: Path) -> None:
    """Check that two files of one name do not become one table, that loading a file again adds nothing, and that
    changes are detected.
    """
    for month, price in (("jan", 10), ("feb", 12)):
        (folder / month).mkdir()
        (folder / month / "sales.csv").write_text(f"item,price\nshoe,{price}\nhat,{price - 5}\n")
    january, february = folder / "jan" / "sales.csv", folder / "feb" / "sales.csv"
    graph.load(january)
    before = graph.status().counts
    for clash in ({}, {"key": "item"}):
        with pytest.raises(SourceError) as caught:
            graph.load(february, **clash)
        assert str(january) in str(caught.value)
        assert str(february) in str(caught.value)
        assert "name=" in str(caught.value.hint)
    graph.load(january)
    assert (graph.status().counts, prices(graph)) == (before, ["10"])
    graph.load(february, name="sales of february")
    assert prices(graph) == ["10", "12"]
    with pytest.raises(SourceError, match="other options"):
        graph.load(january, key="item")
    january.write_text("item,price\nshoe,11\n")
    with pytest.raises(SourceError, match="changed"):
        graph.load(january)
    with pytest.raises(SourceError, match="added from Python"):
        graph.add([Statement("shoe", "price", "12")], source="sales")
    assert prices(graph) == ["10", "12"]


def check_frames(graph: Graph) -> None:
    """Check that frames without a name get distinct names, and that equal content is the same source."""
    first = pd.DataFrame({"item": ["shoe", "hat"], "price": [10, 5]})
    second = first.assign(price=[12, 7])
    names: list[Any] = [
        graph.load(frame).sources for frame in (first, second, first.copy(), second, [{"item": "shoe", "price": 14}])
    ]
    assert names == [("dataframe",), ("dataframe 2",), ("dataframe",), ("dataframe 2",), ("list",)]
    assert prices(graph) == ["10", "12", "14"]
    with pytest.raises(SourceError, match="other content"):
        graph.load(second, name="dataframe")
