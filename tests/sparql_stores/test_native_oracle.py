"""The oracle's small graph as a Wikibase on real servers, asked where it is: the answers are those of the same triples in a
folder, and of queries that a user of Wikidata writes by hand.
"""

from __future__ import annotations

import json
import re
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError
from condgraph.graph import Graph
from condgraph.remote_triples import TriplesGraph
from tests.support.lanes import by_lane
from tests.support.servers import running
from tests.support.sparql_servers import fresh_virtuoso
from tests.support.stores import marked
from tests.support.wikibase_dump import ONTOLOGY, PROP, Dump

pytestmark = pytest.mark.service
#: Lines of one request.
BATCH = 20_000
#: Prefixes that Wikidata's endpoint has.
PREFIXES = {
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "xsd": "http://www.w3.org/2001/XMLSchema#", "wikibase": ONTOLOGY,
    "wdt": f"{PROP}direct/", "p": PROP, "ps": f"{PROP}statement/", "psv": f"{PROP}statement/value/", "pq": f"{PROP}qualifier/",
}  # fmt: skip


@pytest.fixture(scope="module")
def dump(oracle: Path) -> tuple[Dump, list[str]]:
    made = Dump(json.loads((oracle / "kb_small.json").read_text()))
    return made, [f"{line}\n" for line in made.lines()]


@pytest.fixture(scope="module")
def here(dump: tuple[Dump, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Graph:
    place = tmp_path_factory.mktemp("dump") / "dump.nt"
    place.write_text("".join(dump[1]))
    graph = condgraph.open()
    graph.load(place)
    return graph


@pytest.fixture(scope="module", params=marked("oxigraph", nightly=("virtuoso", "fuseki")))
def there(request: pytest.FixtureRequest, dump: tuple[Dump, list[str]]) -> Iterator[TriplesGraph]:
    with _server(request.param) as server:
        where = "graph=http://example.org/wikibase" if request.param == "virtuoso" else "default"
        for start in range(0, len(dump[1]), BATCH):
            body = "".join(dump[1][start : start + BATCH]).encode()
            asked = urllib.request.Request(
                f"{server.store}?{where}", body, {"Content-Type": "application/n-triples"}, method="POST"
            )
            urllib.request.urlopen(asked, timeout=300).close()
        with condgraph.open(f"sparql+{server.query}") as graph, pytest.MonkeyPatch.context() as patch:
            assert isinstance(graph, TriplesGraph)
            # A server that has just begun, on a machine with much else to do, may have time for no more than a sample.
            patch.setattr("condgraph.sparql.native.look.SCAN", 120.0)
            patch.setattr("condgraph.sparql.native.look.STEP", 60.0)
            assert graph.mapping.shape == "wikibase"
            assert graph.mapping.whole
            yield graph


def _server(name: str) -> Any:
    if name == "virtuoso":
        return fresh_virtuoso()
    if name == "fuseki":
        from fuseki_server import FusekiServer

        return running(FusekiServer(short=True, limit=120), "Fuseki")
    from oxigraph_server import OxigraphServer

    return running(OxigraphServer(limit=120), "Oxigraph server")


def outcome(graph: Graph, program: Any) -> Any:
    """Texts and evidence, or the kind of the error. What left an answer empty takes a store too long at times."""
    try:
        answer = graph.kopl(program)
        return answer.texts, sorted(str(item).partition("  [")[0] for item in answer.evidence)
    except CondgraphError as error:
        return type(error).__name__


def test_programs_of_the_oracle(there: TriplesGraph, here: Graph, oracle: Path) -> None:
    lines = (oracle / "programs_small.jsonl").read_text().splitlines()
    for record in map(json.loads, lines[5 :: by_lane(160, 10, 1)]):
        assert outcome(there, record["program"]) == outcome(here, record["program"]), record["id"]


def test_an_intersection_that_gives_nothing_says_so_in_time(there: TriplesGraph, oracle: Path) -> None:
    """Its explanation once asked for all statements, and did not end."""
    lines = (oracle / "programs_small.jsonl").read_text().splitlines()
    program = next(record for record in map(json.loads, lines) if record["id"] == "small-00269")["program"]
    answer = there.kopl(program, timeout=60)
    assert answer.texts == []
    assert answer.warnings


def test_queries_by_hand(there: TriplesGraph, dump: tuple[Dump, list[str]], oracle: Path) -> None:
    records = {one["id"]: one for one in map(json.loads, (oracle / "programs_small.jsonl").read_text().splitlines())}
    file = Path(__file__).parents[1] / "support" / "wikidata_by_hand.toml"
    known = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
    by_hand = tomllib.loads(file.read_text())
    assert len(by_hand) == 30
    for ident, about in list(by_hand.items())[:: by_lane(5, 1, 1)]:
        text = known + re.sub(r"\{(\w[^{}?\n]*)\}", lambda match: dump[0].number(match[1]), about["query"])
        rows: Any = there.store.endpoint.query(text, timeout=100)
        expected = sorted({row["a"].value for row in rows})
        assert expected, ident
        assert sorted(set(there.kopl(records[ident]["program"], timeout=100).texts)) == expected, ident
