"""A plugin for pytest that puts condgraph behind rdflib's own tests: rdflib's default store takes
what is written, and answers from `rdflib.Graph(store="condgraph")` over a graph into which it was
loaded.

    python -m pytest -p tests.support.rdflib_staged test/test_graph

rdflib's tests write before they read, and this store is read only; so each first reading after a
write loads all that was written into a graph of condgraph, as N-Quads. Blank nodes go as IRIs, since
condgraph gives them labels of its own; graphs without triples are told from what was written, since
N-Quads has none. `CONDGRAPH_STAGED` names a file that takes the warnings of the loads, one a line,
and, as its last line, how many loads there were.
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
#: Warnings of loads so far, and their number.
said: list[str] = []
loads = 0


def there(term: Any) -> Any:
    """A term as it is loaded."""
    if isinstance(term, BNode):
        return URIRef(BLANK + term)
    # rdflib takes relative IRIs, which N-Quads has none of.
    if isinstance(term, URIRef) and not _ABSOLUTE.match(term):
        return URIRef(RELATIVE + term)
    return term


def back(term: Any) -> Any:
    """A term as it was written."""
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
        # rdflib's own removal asks its own triples, while it has them.
        if self._removing:
            yield from super().triples(triple_pattern, context)
            return
        read = self._loaded()
        pattern = tuple(there(term) for term in triple_pattern)
        for triple, contexts in list(read.triples(pattern, self._inside(read, context))):
            yield tuple(back(term) for term in triple), iter([self._outside(one) for one in contexts])

    def __len__(self, context: Any = None) -> int:
        read = self._loaded()
        return int(read.__len__(self._inside(read, context)))

    def contexts(self, triple: Any = None) -> Iterator[Any]:
        if triple is None:
            # Those without triples are there as well.
            return super().contexts()
        read = self._loaded()
        return iter([self._outside(one) for one in read.contexts(tuple(there(term) for term in triple))])

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
            said.extend(str(one.message) for one in caught)
            said.extend(problem.message for problem in report.problems)
            loads += 1
            self._read = rdflib.plugin.get("condgraph", Store)(graph)
        return self._read

    def _lines(self) -> Iterator[str]:
        for triple, contexts in Memory.triples(self, (None, None, None)):
            for context in contexts:
                inside = context is None or context.identifier == DATASET_DEFAULT_GRAPH_ID
                name = "" if inside else f" {there(context.identifier).n3()}"
                yield " ".join(_text(there(term)) for term in triple) + f"{name} .\n"


def _text(term: Any) -> str:
    """A term in N-Quads; the escapes are those of N-Triples, not of Turtle."""
    if not isinstance(term, Literal):
        return str(term.n3())
    text = str(term).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    more = f"@{term.language}" if term.language else f"^^<{term.datatype}>" if term.datatype else ""
    return f'"{text}"{more}'


def _tell() -> None:
    if "CONDGRAPH_STAGED" in os.environ:
        Path(os.environ["CONDGRAPH_STAGED"]).write_text("\n".join([*said, str(loads)]), encoding="utf-8")


def pytest_configure() -> None:
    """As a plugin alone: whoever imports this module, as the search for doctests does, keeps rdflib as
    it is.
    """
    rdflib.plugin.register("default", Store, __name__, "Staged")
    rdflib.plugin.register("Memory", Store, __name__, "Staged")
    atexit.register(_tell)
