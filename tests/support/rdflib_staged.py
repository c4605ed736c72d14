"""A pytest plugin that runs rdflib's own tests on condgraph: rdflib's default store takes what is written, and answers
from `rdflib.Graph(store="condgraph")` over a graph loaded with it.

    python -m pytest -p tests.support.rdflib_staged test/test_graph

rdflib's tests write before they read, and condgraph's store is read-only; so each first read after a write loads all
triples into a graph as N-Quads. Blank nodes are loaded as IRIs, since condgraph gives them labels of its own; graphs
without triples are known from the written data, since N-Quads cannot have them. `CONDGRAPH_STAGED` names a file for the
warnings of the loads, one a line, and the number of loads in its last line.
"""

from __future__ import annotations

import atexit
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rdflib
from rdflib import BNode, Graph, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.plugins.stores.memory import Memory
from rdflib.store import Store

import condgraph

BLANK, RELATIVE = "urn:condgraph-test:blank:", "urn:condgraph-test:relative:"
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
#: The warnings of all loads so far, and the number of loads.
said: list[str] = []
loads = 0


def there(term: Any) -> Any:
    """Return a term in the form in which it is loaded."""
    if isinstance(term, BNode):
        return URIRef(BLANK + term)
    # rdflib accepts relative IRIs, which N-Quads does not have.
    if isinstance(term, URIRef) and not _ABSOLUTE.match(term):
        return URIRef(RELATIVE + term)
    return term


def back(term: Any) -> Any:
    """Return a term in the form in which it was written."""
    if isinstance(term, URIRef) and term.startswith(BLANK):
        return BNode(term[len(BLANK) :])
    return URIRef(term[len(RELATIVE) :]) if isinstance(term, URIRef) and term.startswith(RELATIVE) else term


class Staged(Memory):
    """A store that is written in memory, and read from condgraph."""

    def __init__(self, configuration: Any = None, identifier: Any = None) -> None:
        self._read: Any = None
        self._removing = False
        super().__init__(configuration, identifier)

    # -- writing -----------------------------------------------------------------------------------

    def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
        self._read = None
        super().add(triple, context, quoted)

    def remove(self, triple_pattern: Any, context: Any = None) -> None:
        self._read, self._removing = None, True
        try:
            super().remove(triple_pattern, context)
        finally:
            self._removing = False

    def remove_graph(self, graph: Any) -> None:
        self._read = None
        super().remove_graph(graph)

    # -- reading -----------------------------------------------------------------------------------

    def triples(self, triple_pattern: Any, context: Any = None) -> Iterator[Any]:
        # rdflib's removal reads its own triples while it removes them.
        if self._removing:
            yield from super().triples(triple_pattern, context)
            return
        store = self._loaded()
        pattern = tuple(there(term) for term in triple_pattern)
        for triple, contexts in list(store.triples(pattern, self._inside(store, context))):
            yield tuple(back(term) for term in triple), iter([self._outside(graph) for graph in contexts])

    def __len__(self, context: Any = None) -> int:
        store = self._loaded()
        return int(store.__len__(self._inside(store, context)))

    def contexts(self, triple: Any = None) -> Iterator[Any]:
        if triple is None:
            # The written store also knows graphs without triples.
            return super().contexts()
        store = self._loaded()
        return iter([self._outside(graph) for graph in store.contexts(tuple(there(term) for term in triple))])

    def _inside(self, read: Any, context: Any) -> Any:
        return None if context is None or context is self else Graph(store=read, identifier=there(context.identifier))

    def _outside(self, context: Any) -> Any:
        return Graph(store=self, identifier=back(context.identifier))

    def _loaded(self) -> Any:
        global loads
        if self._read is None:
            graph = condgraph.open()
            lines = list(self._lines())
            if not lines:
                self._read = Memory()
                return self._read
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                path = Path(folder, "written.nq")
                path.write_text("".join(lines), encoding="utf-8")
                report = graph.load(path, syntax="nquads", format="rdf")
            said.extend(str(warning.message) for warning in caught)
            said.extend(problem.message for problem in report.problems)
            loads += 1
            self._read = rdflib.plugin.get("condgraph", Store)(graph)
        return self._read

    def _lines(self) -> Iterator[str]:
        for triple, contexts in Memory.triples(self, (None, None, None)):
            for context in contexts:
                is_default = context is None or context.identifier == DATASET_DEFAULT_GRAPH_ID
                name = "" if is_default else f" {there(context.identifier).n3()}"
                yield " ".join(_text(there(term)) for term in triple) + f"{name} .\n"


def _text(term: Any) -> str:
    """Return a term in N-Quads, with the escapes of N-Triples, not of Turtle."""
    if not isinstance(term, Literal):
        return str(term.n3())
    text = str(term).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    suffix = f"@{term.language}" if term.language else f"^^<{term.datatype}>" if term.datatype else ""
    return f'"{text}"{suffix}'


def _tell() -> None:
    if "CONDGRAPH_STAGED" in os.environ:
        Path(os.environ["CONDGRAPH_STAGED"]).write_text("\n".join([*said, str(loads)]), encoding="utf-8")


def pytest_configure() -> None:
    """Register the store only when loaded as a plugin, so that importing this module, for instance for doctests, does
    not change rdflib.
    """
    rdflib.plugin.register("default", Store, __name__, "Staged")
    rdflib.plugin.register("Memory", Store, __name__, "Staged")
    atexit.register(_tell)
