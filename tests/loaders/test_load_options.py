"""The options of `Graph.load` as its signature and docstring give them, against those of the formats."""

from __future__ import annotations

import inspect
import re

import pytest

import condgraph
from condgraph.aio import AsyncGraph
from condgraph.engine.errors import OptionError
from condgraph.loaders.recognise import FORMATS

#: What `load` itself takes, of every format.
OWN = {"source", "format", "name", "on_error", "progress", "wait", "replace", "append", "memory", "single_valued"}
OF_FORMATS = {option for form in FORMATS.values() for option in form.options}


def test_load_has_the_options_of_every_format() -> None:
    for load in (condgraph.Graph.load, AsyncGraph.load):
        takes = {name for name, one in inspect.signature(load).parameters.items() if one.kind is not one.VAR_KEYWORD}
        assert takes - {"self"} - OWN == OF_FORMATS


def test_every_option_has_a_line_in_the_docstring() -> None:
    lines = re.findall(r"^- `(\w+)`: \S.*", inspect.getdoc(condgraph.Graph.load) or "", re.MULTILINE)
    assert sorted(lines) == sorted((OWN | OF_FORMATS) - {"source"})


def test_an_unknown_option_names_the_nearest() -> None:
    graph = condgraph.open("memory:")
    with pytest.raises(OptionError, match="takes no option 'kee'; nearest: 'key'"):
        graph.load([{"a": "x"}], kee="a")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="takes no option 'sheets'"):
        graph.load([{"a": "x"}], sheets=["one"])
    # What is None is not specified.
    assert graph.load([{"a": "x"}], key="a", sheets=None).entities == 1
