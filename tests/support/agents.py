"""A sample graph and a model for tests of agents' tools."""

from __future__ import annotations

from typing import Any

import condgraph
from condgraph.graph import Graph
from condgraph.samples import FOLDER

CAPITAL = "Find(Nepal) Relate(capital, forward) QueryName()"


def samples() -> Graph:
    graph = condgraph.open()
    graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    graph.load(FOLDER / "countries.json")
    graph.load(FOLDER / "governments.tsv")
    return graph


def model(messages: Any) -> str:
    """Answer every request with the same program."""
    return CAPITAL
