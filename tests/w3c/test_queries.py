"""The W3C's query and result tests, through the endpoint."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from condgraph.sparql.text.scan import survey
from tests.support.serving import ask
from tests.w3c.conftest import SuiteServer
from tests.w3c.known import KNOWN
from tests.w3c.suite import MEDIA, QUERY_11, RESULTS_11, Case, cases_of, folder, read_graph, read_solutions, same_solutions

pytestmark = pytest.mark.xdist_group("w3c")


def parameters() -> list[Any]:
    root = folder()
    if root is None:
        return [pytest.param(None, marks=pytest.mark.skip("CONDGRAPH_DATA is not set"))]
    manifests = [f"sparql11/{name}/manifest.ttl" for name in (*QUERY_11, *RESULTS_11)]
    manifests += ["sparql10/manifest-evaluation.ttl", "sparql10/manifest-syntax.ttl"]
    found = []
    for number, case in enumerate(cases_of(root, manifests)):
        # The gate has every eighth: most of them test the store's SPARQL, which is Oxigraph's.
        marks = [pytest.mark.reads_data, *([pytest.mark.slow] if number % 8 else [])]
        marks += [pytest.mark.xfail(reason=KNOWN[case.id], strict=True)] if case.id in KNOWN else []
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
    """The sorted header, and the sorted rows, of CSV; blank nodes are all one, numbers are written
    in one way.
    """
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
