"""The W3C's SPARQL test suites as cases: read from their manifests, with what each expects."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from condgraph.sparql.text.scan import survey
from condgraph.sparql.workers.pool import File

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"
LABEL = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
#: What the folder of the suites is called in IRIs: queries, data and results are relative to it
#: alike.
ROOT = "http://w3c.example/"

QUERY_11 = [
    *("aggregates", "bind", "bindings", "cast", "construct", "exists", "functions"),
    *("grouping", "negation", "project-expression", "property-path", "subquery", "syntax-query"),
]
RESULTS_11 = ["csv-tsv-res", "json-res"]
MEDIA = {
    ".ttl": "text/turtle",
    ".n3": "text/turtle",
    ".nt": "application/n-triples",
    ".rdf": "application/rdf+xml",
    ".srx": "application/sparql-results+xml",
    ".srj": "application/sparql-results+json",
    ".tsv": "text/tab-separated-values",
    ".csv": "text/csv",
}


@dataclass(frozen=True)
class Case:
    """A test: its kind as the manifest has it, and the files that belong to it."""

    id: str
    kind: str
    query: Path
    base: str
    data: tuple[File, ...]
    result: Path | None
    reduced: bool = False

    @property
    def text(self) -> str:
        return self.query.read_text(encoding="utf-8")


def folder() -> Path | None:
    """Where the suites are; None where they are not."""
    root = os.environ.get("CONDGRAPH_DATA")
    found = Path(root, "data", "w3c_sparql") if root else None
    return found if found and found.is_dir() else None


def node(name: str) -> ox.NamedNode:
    return ox.NamedNode(name)


class Manifest:
    """A manifest as a graph."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self.base = ROOT + path.relative_to(root).as_posix()
        self.store = ox.Store()
        self.store.load(path=str(path), format=ox.RdfFormat.TURTLE, base_iri=self.base)

    def all(self, subject: Any, predicate: str) -> list[Any]:
        return [quad.object for quad in self.store.quads_for_pattern(subject, node(predicate), None)]

    def one(self, subject: Any, predicate: str) -> Any:
        found = self.all(subject, predicate)
        return found[0] if found else None

    def list(self, head: Any) -> Iterator[Any]:
        while head is not None and head != node(RDF + "nil"):
            yield self.one(head, RDF + "first")
            head = self.one(head, RDF + "rest")

    def file(self, iri: ox.NamedNode) -> Path:
        assert iri.value.startswith(ROOT), iri
        return self.root / iri.value[len(ROOT) :]

    def entries(self) -> Iterator[Any]:
        for head in self.store.quads_for_pattern(None, node(MF + "entries"), None):
            yield from self.list(head.object)

    def includes(self) -> Iterator[Path]:
        for head in self.store.quads_for_pattern(None, node(MF + "include"), None):
            yield from (self.file(iri) for iri in self.list(head.object))

    def cases(self) -> Iterator[Case]:
        directory = self.path.parent.relative_to(self.root).as_posix()
        for entry in self.entries():
            kind = next((one.value[len(MF) :] for one in self.all(entry, RDF + "type") if one.value.startswith(MF)), "")
            action, result = self.one(entry, MF + "action"), self.one(entry, MF + "result")
            reduced = any(one.value.endswith("LaxCardinality") for one in self.all(entry, MF + "resultCardinality"))
            if isinstance(action, ox.NamedNode):
                query, data = action, []
            else:
                query = self.one(action, QT + "query")
                data = [self.graph(one, None) for one in self.all(action, QT + "data")]
                data += [self.graph(one, one.value) for one in self.all(action, QT + "graphData")]
            path = self.file(query)
            if not data and survey(path.read_text(encoding="utf-8")).dataset:
                data = self.named_in(path, query.value)
            fragment = entry.value.rpartition("#")[2]
            expected = self.file(result) if isinstance(result, ox.NamedNode) else None
            yield Case(f"{directory}/{fragment}", kind, path, query.value, tuple(data), expected, reduced)

    def graph(self, iri: ox.NamedNode, name: str | None) -> File:
        path = self.file(iri)
        return File(path, MEDIA[path.suffix], name, iri.value)

    def named_in(self, query: Path, base: str) -> list[File]:
        """The files that a query names as its data set, each as a named graph."""
        names = sorted(set(re.findall(r"FROM\s+(?:NAMED\s+)?<([^>]+)>", query.read_text(encoding="utf-8"))))
        directory = base.rpartition("/")[0] + "/"
        return [self.graph(node(directory + name), directory + name) for name in names if (query.parent / name).is_file()]


def cases_of(root: Path, paths: list[str]) -> list[Case]:
    """The cases of manifests, and of those that they include."""
    found: list[Case] = []
    for path in paths:
        manifest = Manifest(root / path, root)
        found += cases_of(root, [one.relative_to(root).as_posix() for one in manifest.includes()])
        found += manifest.cases()
    return found


# -- results ---------------------------------------------------------------------------------------


@dataclass
class Solutions:
    """The solutions of a SELECT: its variables, and a dictionary a solution; `ordered` where their
    order counts.
    """

    variables: list[str]
    rows: list[dict[str, Any]]
    ordered: bool = False


def read_solutions(data: bytes, suffix: str, base: str) -> Solutions | bool:
    """Results of a SELECT or ASK in one of the formats of results, or as a graph of the result set
    vocabulary.
    """
    if suffix in (".ttl", ".rdf", ".n3"):
        return _from_graph(data, suffix, base)
    forms = {
        ".srx": ox.QueryResultsFormat.XML,
        ".srj": ox.QueryResultsFormat.JSON,
        ".tsv": ox.QueryResultsFormat.TSV,
    }
    found = ox.parse_query_results(data, forms[suffix])
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    assert isinstance(found, ox.QuerySolutions)
    names = [variable.value for variable in found.variables]
    return Solutions(names, [{name: row[name] for name in names if row[name] is not None} for row in found])


def _from_graph(data: bytes, suffix: str, base: str) -> Solutions | bool:
    form = ox.RdfFormat.RDF_XML if suffix == ".rdf" else ox.RdfFormat.TURTLE
    store = ox.Store()
    store.load(data, form, base_iri=base)

    def objects(subject: Any, name: str) -> list[Any]:
        return [quad.object for quad in store.quads_for_pattern(subject, node(RS + name), None)]

    (head,) = {quad.subject for quad in store.quads_for_pattern(None, node(RDF + "type"), node(RS + "ResultSet"))}
    if objects(head, "boolean"):
        return bool(objects(head, "boolean")[0].value == "true")
    numbered = []
    for solution in objects(head, "solution"):
        row = {objects(one, "variable")[0].value: objects(one, "value")[0] for one in objects(solution, "binding")}
        numbered.append((int((objects(solution, "index") or [ox.Literal(0)])[0].value), row))
    ordered = all(number for number, _ in numbered)
    numbered.sort(key=lambda one: one[0])
    return Solutions([one.value for one in objects(head, "resultVariable")], [row for _, row in numbered], ordered)


def same_solutions(one: Solutions, other: Solutions, *, reduced: bool) -> bool:
    """Whether two results are equal up to the names of blank nodes, and to order where none is
    asked for.
    """
    if set(one.variables) != set(other.variables):
        return False
    if reduced:
        return {frozenset(row.items()) for row in one.rows} == {frozenset(row.items()) for row in other.rows}
    ordered = one.ordered or other.ordered
    return len(one.rows) == len(other.rows) and _canonical(one.rows, ordered) == _canonical(other.rows, ordered)


def _canonical(rows: list[dict[str, Any]], ordered: bool) -> Any:
    if not any(isinstance(value, ox.BlankNode) for row in rows for value in row.values()):
        said = [frozenset((name, _text(value)) for name, value in row.items()) for row in rows]
        return said if ordered else Counter(said)
    # As a graph of rows, whose blank nodes are named alike where the graphs are alike.
    graph = ox.Dataset()
    for number, row in enumerate(rows):
        about = ox.NamedNode(f"row:{number}") if ordered else ox.BlankNode()
        for name, value in row.items():
            kept = value if isinstance(value, ox.BlankNode) else ox.Literal(_text(value))
            graph.add(ox.Quad(about, ox.NamedNode(f"var:{name}"), kept))
    graph.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return {str(quad) for quad in graph}


def _text(term: Any) -> str:
    """A term as text, its value written in one way: Oxigraph keeps numbers and truth values, not
    how they were written.
    """
    if isinstance(term, ox.Literal) and term.datatype.value.startswith(XSD):
        kind = term.datatype.value[len(XSD) :]
        try:
            if kind in ("double", "float"):
                return f"{kind} {float(term.value)!r}"
            if kind in ("decimal", "integer"):
                return f"{kind} {Decimal(term.value).normalize():f}"
            if kind == "boolean":
                return f"{kind} {term.value in ('true', '1')}"
        except (ValueError, InvalidOperation):
            pass
    return str(term)


def read_graph(data: bytes, media_type: str, base: str) -> set[str]:
    """A graph, whose blank nodes are named alike where graphs are alike."""
    form = ox.RdfFormat.from_media_type(media_type)
    graph = ox.Dataset(ox.parse(data, form, base_iri=base))
    graph.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return {str(quad) for quad in graph}
