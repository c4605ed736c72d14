"""The W3C's query and result tests, through the endpoint."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from condgraph.sparql.protocol_text import survey
from tests.support.serving import ask
from tests.w3c.conftest import SuiteServer
from tests.w3c.suite import MEDIA, QUERY_11, RESULTS_11, Case, cases_of, folder, read_graph, read_solutions, same_solutions

pytestmark = pytest.mark.xdist_group("w3c")

#: Tests that are not passed, each with the defect of Oxigraph 0.5 that it shows.
_VALUES = "Oxigraph keeps the value of a number and not how it was written: 1, 01 and +1 are one term"
_GROUP_CONCAT = "GROUP_CONCAT of texts in one language has that language, and is a simple literal in SPARQL 1.1"
_ABSENT = "a path of length zero from or to a term that the graph does not have is left out"
_GRAPH = "the variable of GRAPH ?g is not bound before what stands inside is evaluated"
_DATES = "a date without a time zone is compared with one that has one as if it were in UTC"
KNOWN: dict[str, str] = {
    "sparql11/aggregates/agg-groupconcat-04": _GROUP_CONCAT,
    "sparql11/aggregates/agg-groupconcat-06": _GROUP_CONCAT,
    "sparql11/aggregates/agg-empty-group-count-graph": _GRAPH,
    "sparql11/bindings/graph": _GRAPH,
    "sparql11/functions/bnode01": "BNODE of a text is the same blank node in every solution",
    "sparql11/negation/graph-minus": "MINUS within GRAPH ?g takes the variable ?g for a shared one",
    "sparql11/property-path/zero_or_more_set_start": _ABSENT,
    "sparql11/property-path/zero_or_more_set_end": _ABSENT,
    "sparql11/property-path/zero_or_one_set_start": _ABSENT,
    "sparql11/property-path/zero_or_one_set_end": _ABSENT,
    "sparql11/csv-tsv-res/tsv03": "a value of xsd:negativeInteger is kept as one of xsd:integer",
    "sparql10/open-world/open-eq-01": _VALUES,
    "sparql10/open-world/date-2": _DATES,
    "sparql10/open-world/date-3": _DATES,
    "sparql10/graph/graph-variable-scope": _GRAPH,
    "sparql10/graph/graph-optional": _GRAPH,
    "sparql10/expr-builtin/dawg-str-1": _VALUES,
    "sparql10/expr-builtin/dawg-str-2": _VALUES,
    "sparql10/expr-builtin/sameTerm-simple": _VALUES,
    "sparql10/expr-builtin/sameTerm-eq": _VALUES,
    "sparql10/expr-builtin/sameTerm-not-eq": _VALUES,
    "sparql10/expr-builtin/case-insensitive-booleans": "TRUE and False are keywords whatever their case, and are not read as such",
    "sparql10/expr-equals/eq-graph-1": _VALUES,
    "sparql10/expr-equals/eq-graph-2": _VALUES,
    "sparql10/distinct/distinct-1": _VALUES,
    "sparql10/distinct/distinct-9": _VALUES,
    "sparql10/syntax-sparql3/syn-bad-26": "`<?a&&?b>` is read as an operator and a variable, not as the IRI that it is",
}


def parameters() -> list[Any]:
    root = folder()
    if root is None:
        return [pytest.param(None, marks=pytest.mark.skip("CONDGRAPH_DATA is not set"))]
    manifests = [f"sparql11/{name}/manifest.ttl" for name in (*QUERY_11, *RESULTS_11)]
    manifests += ["sparql10/manifest-evaluation.ttl", "sparql10/manifest-syntax.ttl"]
    found = []
    for case in cases_of(root, manifests):
        marks = [pytest.mark.xfail(reason=KNOWN[case.id], strict=True)] if case.id in KNOWN else []
        found.append(pytest.param(case, id=case.id, marks=marks))
    return found


@pytest.mark.parametrize("case", parameters())
def test_query(case: Case, suite_server: SuiteServer) -> None:
    suite_server.backend.use(case.data, case.base)
    suffix = case.result.suffix if case.result else ""
    graph = survey(case.text).form in ("construct", "describe")
    accept = MEDIA.get(suffix, "*/*") if graph or suffix not in (".ttl", ".rdf", ".n3") else MEDIA[".srj"]
    reply = ask(
        suite_server.url,
        "POST",
        headers={"Content-Type": "application/sparql-query", "Accept": accept},
        body=case.query.read_bytes(),
    )
    if "Negative" in case.kind:
        assert reply.status == 400, reply.text
        return
    if case.result is None:
        assert "Syntax" in case.kind
        # What calls functions that nobody has is well formed, and cannot be run.
        assert reply.status == 200 or (reply.status == 500 and "does not support: the function" in reply.text), reply.text
        return
    assert reply.status == 200, reply.text
    expected = case.result.read_bytes()
    if graph:
        assert read_graph(reply.body, MEDIA[suffix], case.base) == read_graph(expected, MEDIA[suffix], case.base)
    elif suffix == ".csv":
        assert reply.media_type == "text/csv"
        assert rows(reply.body) == rows(expected)
    else:
        given = {"application/sparql-results+json": ".srj", "application/sparql-results+xml": ".srx"}.get(reply.media_type, ".tsv")
        found = read_solutions(reply.body, given, case.base)
        wanted = read_solutions(expected, suffix, case.base)
        if isinstance(found, bool) or isinstance(wanted, bool):
            assert found == wanted
        else:
            assert same_solutions(found, wanted, reduced=case.reduced), f"{reply.text}\n{expected.decode()}"


def rows(data: bytes) -> tuple[list[str], list[list[str]]]:
    """The sorted header, and the sorted rows, of CSV; blank nodes are all one, numbers are written in one way."""
    header, *found = csv.reader(io.StringIO(data.decode("utf-8"), newline=""))
    order = sorted(range(len(header)), key=header.__getitem__)
    return sorted(header), sorted([[cell_text(row[i]) for i in order] for row in found])


def cell_text(cell: str) -> str:
    if cell.startswith("_:"):
        return "_:"
    try:
        return repr(float(cell))
    except ValueError:
        return cell
