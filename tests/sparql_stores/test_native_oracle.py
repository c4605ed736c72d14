"""The oracle's small graph as a Wikibase on real servers, asked where it is: the answers are those of the same triples in a
folder, and of queries that a user of Wikidata writes by hand.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, StoreError
from condgraph.graph import Graph
from condgraph.remote_triples import TriplesGraph
from condgraph.sparql.native import look
from tests.support.lanes import WHOLE as IN_WHOLE
from tests.support.lanes import by_lane, share_of_today
from tests.support.sparql_servers import fresh_server, put
from tests.support.stores import marked
from tests.support.wikibase_dump import PREFIXES, Dump

pytestmark = pytest.mark.service


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
    with asked(request.param, dump[1]) as graph:
        yield graph


@contextmanager
def asked(store: str, lines: Sequence[str]) -> Iterator[TriplesGraph]:
    """Lines of N-Triples on a store, looked at as a Wikibase."""
    with fresh_server(store) as server:
        put(server, lines, "http://example.org/wikibase" if store == "virtuoso" else None)
        with condgraph.open(f"sparql+{server.query}") as graph, pytest.MonkeyPatch.context() as patch:
            assert isinstance(graph, TriplesGraph)
            # A server that has just begun, on a machine with much else to do, may have time for no more than a sample.
            for name, value in {"SCAN": 300.0, "STEP": 120.0, "MAX_SECONDS": 900.0, "COUNTABLE": 50_000_000}.items():
                patch.setattr(look, name, value)
            assert graph.mapping.shape == "wikibase"
            assert graph.mapping.whole
            yield graph


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


#: Parts of the programs of the whole graph. Oxigraph is asked all; the others one a day, another each day.
SHARES = 20
#: Programs of which Virtuoso lost rows, of the answer or of its evidence, and others that Jena did not end within 90 s: asked each
#: day.
LOST = {"kb-01473", "kb-05976", "kb-02012", "kb-05257", "kb-05906"}
WHOLE = [("oxigraph", share) for share in range(SHARES)] + [(store, share_of_today(SHARES)) for store in ("virtuoso", "fuseki")]


@pytest.fixture(scope="module")
def whole(oracle: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Graph]:
    """The oracle's whole graph as triples, and loaded."""
    lines = [f"{line}\n" for line in Dump(json.loads((oracle / "kb.json").read_text())).lines()]
    place = tmp_path_factory.mktemp("whole") / "dump.nt"
    place.write_text("".join(lines))
    graph = condgraph.open()
    graph.load(place)
    return lines, graph


@pytest.fixture(scope="module")
def asked_whole(request: pytest.FixtureRequest, whole: tuple[list[str], Graph]) -> Iterator[TriplesGraph]:
    """The oracle's whole graph on a store."""
    with asked(request.param, whole[0]) as graph:
        yield graph


@pytest.mark.data
@pytest.mark.skipif(not IN_WHOLE, reason="it is for the part in-place of the nightly run")
@pytest.mark.parametrize(
    ("asked_whole", "share"),
    [pytest.param(*one, marks=pytest.mark.xdist_group(one[0]), id=f"{one[0]}-{one[1]}") for one in WHOLE],
    indirect=["asked_whole"],
)
def test_programs_of_the_whole_graph(asked_whole: TriplesGraph, share: int, whole: tuple[list[str], Graph], oracle: Path) -> None:
    """`CONDGRAPH_SHARE` names the share of another day."""
    records = [json.loads(line) for line in (oracle / "programs_dev.jsonl").read_text().splitlines()]
    different = []
    for record in [*records[share::SHARES], *(record for record in records if record["id"] in LOST)]:
        there, here = (outcome(graph, record["program"]) for graph in (asked_whole, whole[1]))
        if there != here:
            different.append((record["id"], there, here))
    assert not different, f"{len(different)} of share {share}"


def test_patterns_begin_at_what_is_known(there: TriplesGraph, oracle: Path) -> None:
    """Jena keeps their order around a filter, and would go through all statements of the property for each row."""
    records = map(json.loads, (oracle / "programs_small.jsonl").read_text().splitlines())
    steps = next(record["program"] for record in records if record["program"][1]["function"] == "Relate")
    find, relation = steps[0], steps[1]["inputs"][0]
    for direction, begins in (("forward", "prop/"), ("backward", "prop/statement/")):
        way = {"function": "Relate", "inputs": [relation, direction], "dependencies": [0]}
        text = there.kopl([find, way, {"function": "Count", "inputs": [], "dependencies": [1]}]).sparql
        assert re.findall(r"\?n\d+ \. \?\w+ <[^>]*?(prop/|prop/statement/)P\d+> \?\w+ \. ", text) == [begins], text


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
    chosen, refused = list(by_hand.items())[:: by_lane(5, 1, 1)], 0
    for ident, about in chosen:
        text = known + re.sub(r"\{(\w[^{}?\n]*)\}", lambda match: dump[0].number(match[1]), about["query"])
        try:
            rows: Any = there.store.endpoint.query(text, timeout=100)
        except StoreError as error:
            # Virtuoso's compiler fails at a few.
            if "compiler error" not in str(error):
                raise
            refused += 1
            continue
        expected = sorted({row["a"].value for row in rows})
        assert expected, ident
        assert sorted(set(there.kopl(records[ident]["program"], timeout=100).texts)) == expected, ident
    assert refused * 6 <= len(chosen)
