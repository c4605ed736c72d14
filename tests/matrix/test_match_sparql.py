"""Patterns on SQL databases and RDF stores give what they give on the snapshot, in its order: DuckDB,
Virtuoso, Oxigraph's server, Fuseki.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import condgraph
from condgraph import Entity, Graph, Ref, Statement
from condgraph.engine.errors import CancelledError, EncoderMismatchError, OptionError
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.match import match
from condgraph.remote_sparql import SparqlGraph
from condgraph.vectors.encoders import LexicalEncoder
from tests.matrix.test_match_neo4j import others, shown, sure
from tests.search.worlds import TieEncoder, a_graph, a_pattern, an_ask
from tests.support.lanes import by_lane
from tests.support.pace import quick_enough
from tests.support.stores import marked

#: Random graphs, on a SQL database and on servers.
EMBEDDED, SERVED = by_lane((4, 6), (60, 8), (200, 200))
ENCODER = TieEncoder()
STORES = marked("oxigraph", nightly=("virtuoso", "fuseki"))


def compare(local: Graph, dice: random.Random, ask: Any, seed: int) -> None:
    for _ in range(4):
        pattern = Pattern.of(a_pattern(dice))
        asked = an_ask(dice, pattern, others(local))
        here = match(local.current, pattern, encoder=ENCODER, **asked)
        there = ask(pattern, encoder=ENCODER, **asked)
        about = f"seed {seed}: {pattern} {asked}\n{there.sparql}"
        assert there.hits.totals.tolist() == here.hits.totals.tolist(), about
        assert shown(there) == shown(here), about
        assert (there.texts, there.complete, there.exact, sure(there.warnings)) == (
            here.texts, here.complete, here.exact, sure(here.warnings),
        ), about  # fmt: skip


@pytest.mark.parametrize("batch", range(4))
def test_random_graphs_on_a_sql_database(batch: int, tmp_path: Path) -> None:
    remote: Any = condgraph.open(f"duckdb:///{tmp_path}/graphs.duckdb")
    for seed in range(batch * EMBEDDED // 4, (batch + 1) * EMBEDDED // 4):
        dice = random.Random(seed)
        local = condgraph.open()
        local.add(a_graph(dice))
        remote.store.delete()
        remote.push(local)
        compare(local, dice, remote.match, seed)
    remote.close()


@pytest.fixture(params=STORES, scope="module")
def remote(request: pytest.FixtureRequest) -> Iterator[SparqlGraph]:
    server = request.getfixturevalue(f"{request.param}_server")
    options = {} if server.name == "virtuoso" else {"update": server.update}
    found = condgraph.open(f"sparql+{server.query}", graph="patterns", **options)
    assert isinstance(found, SparqlGraph)
    yield found
    found.delete()


def test_random_graphs_on_servers(remote: SparqlGraph) -> None:
    for seed in range(SERVED if remote.store.endpoint.dialect.name != "fuseki" else by_lane(2, 2, 8)):
        dice = random.Random(seed)
        local = condgraph.open()
        local.add(a_graph(dice))
        remote.delete()
        remote.push(local)
        compare(local, dice, remote.match, seed)


class Hashed:
    """The lexical encoder's vectors under another name, so that they are kept as a model's are; it
    counts what it encodes.
    """

    id, dimension = "hashed", 256

    def __init__(self) -> None:
        self.encoded = 0

    def encode(self, texts: Any) -> Any:
        self.encoded += len(texts)
        return LexicalEncoder(256).encode(texts)


def some_towns() -> list[Any]:
    return [Entity(f"t{i}", f"town {i}") for i in range(40)] + [
        Statement(f"t{i}", "near", Ref(f"t{i * 7 % 40}")) for i in range(40)
    ]


def test_vectors_are_kept_on_this_machine(remote: SparqlGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDGRAPH_CACHE", str(tmp_path))
    options = {} if remote.store.endpoint.update_url == remote.place else {"update": remote.store.endpoint.update_url}
    local, encoder = condgraph.open(), Hashed()
    local.add(some_towns())
    remote.delete()
    remote.push(local)

    def opened() -> SparqlGraph:
        found = condgraph.open(f"sparql+{remote.place}", graph="patterns", **options)
        assert isinstance(found, SparqlGraph)
        return found

    reported: list[tuple[int, int]] = []
    # Nodes, the predicate, and what memberships are called.
    report = opened().index(encoder, progress=lambda done, total: reported.append((done, total)))
    assert (report.nodes, report.predicates, report.encoded, encoder.encoded) == (40, 2, 42, 42)
    assert reported == [(42, 42)]
    pattern = [("town 17x", "nearby", "UNKNOWN town 1")]
    here, there = match(local.current, pattern, encoder=Hashed(), k=3), opened().match(pattern, encoder=encoder, k=3)
    assert shown(there) == shown(here)
    # The two texts of the pattern, and the two predicates as words; nothing else of the graph.
    assert encoder.encoded == 46
    with pytest.raises(OptionError, match="an encoder of the caller's own"):
        opened().match(pattern)
    with pytest.raises(EncoderMismatchError):
        opened().match(pattern, encoder=TieEncoder())
    assert opened().match(pattern, encoder="lexical").encoder == "lexical-1"
    remote.add([Entity("z", "Zadar"), Statement("z", "near", Ref("t1"))])
    assert opened().index(encoder).encoded == 1
    opened().index("lexical")
    assert opened().match(pattern).encoder == "lexical-1"
    with pytest.raises(OptionError, match="approximate"):
        opened().index(encoder, faiss=True)


def test_the_embedded_store_goes_by_the_index_of_its_graph() -> None:
    local, encoder = condgraph.open(), Hashed()
    local.add(some_towns())
    local.index(encoder)
    count = encoder.encoded
    pattern = [("town 17x", "nearby", "UNKNOWN town 1")]
    here, there = local.match(pattern, k=5), local.match(pattern, k=5, engine="sparql")
    assert shown(there) == shown(here)
    assert there.encoder == here.encoder == "hashed"
    # The two texts of the pattern and the two predicates as words, once; nothing else of the graph.
    assert encoder.encoded == count + 4


def test_candidates_go_in_chunks(remote: SparqlGraph) -> None:
    local = condgraph.open()
    hub = [Statement(f"e{i}", "in", Ref("hub")) for i in range(3000)]
    local.add([Entity("hub", "the hub"), *hub, *(Statement(f"e{i}", "with", Ref(f"e{i + 1}")) for i in range(0, 2999, 3))])
    remote.delete()
    remote.push(local)
    pattern = [("UNKNOWN 1", "in", "the hub"), ("UNKNOWN 1", "with", "UNKNOWN 2"), ("UNKNOWN 2", "in", "the hub")]
    for options in ({"k": 3}, {"k": None, "group_by": "1"}):
        here, there = local.match(pattern, **options), remote.match(pattern, **options)
        assert there.hits.nodes.tolist() == here.hits.nodes.tolist()
        assert there.texts == here.texts
        # Three thousand nodes around the hub are more than one list holds; of the first three few are looked at.
        assert there.report.queries > 2 or options["k"] == 3
        assert there.report.rows >= 3000
        assert there.sparql is not None


def test_deadlines_and_cancellation(remote: SparqlGraph) -> None:
    stop = Event()
    stop.set()
    with pytest.raises(CancelledError):
        remote.match([("UNKNOWN 1", "in", "the hub")], cancelled=stop)
    begin = time.monotonic()
    found = remote.match([("UNKNOWN 1", "in", "the hub"), ("UNKNOWN 1", "with", "UNKNOWN 2")], timeout=0.001)
    assert quick_enough(time.monotonic() - begin, 20)
    assert found.complete or (not found.exact and any("deadline" in warning for warning in found.warnings))
    with pytest.raises(OptionError, match="approximate"):
        remote.match([("UNKNOWN 1", "in", "the hub")], exact=False)


@pytest.mark.slow
def test_films_on_a_sql_database(data: Path, tmp_path: Path) -> None:
    local: Any = condgraph.open()
    local.load(data / "metaqa" / "kb.txt", name="films")
    remote: Any = condgraph.open(f"duckdb:///{tmp_path}/graphs.duckdb")
    remote.push(local)
    path = [
        ("UNKNOWN film 1", "directed_by", "Clint Eastwood"),
        ("UNKNOWN film 1", "starred_actors", "UNKNOWN actor 1"),
        ("UNKNOWN film 2", "starred_actors", "UNKNOWN actor 1"),
    ]
    for pattern in (path[:1], path, [("UNKNOWN film", "genre", "Drama"), ("UNKNOWN film", "director", "clint eastwod")]):
        here, there = local.match(pattern, k=5), remote.match(pattern, k=5)
        assert shown(there) == shown(here)
