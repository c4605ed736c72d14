"""Patterns on Neo4j give what they give on the snapshot, in its order, on a real server: random
graphs, and real data.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

import condgraph
from condgraph import Entity, Graph, Ref, Statement
from condgraph.cypher.answer import literal
from condgraph.cypher.connection import Connection
from condgraph.engine.errors import CancelledError, EncoderMismatchError, OptionError
from condgraph.engine.facts import EntityKind, Member
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.match import match
from condgraph.patterns.matches import Matches
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.vectors.encoders import LexicalEncoder
from tests.search.worlds import TieEncoder, a_graph, a_pattern, an_ask
from tests.support.lanes import by_lane, sample
from tests.support.pace import quick_enough

pytestmark = pytest.mark.xdist_group("neo4j")
#: Random graphs; the whole of them takes half an hour.
GRAPHS = by_lane(2, 8, 200)
ENCODER = TieEncoder()


def others(graph: Graph) -> list[Any]:
    """The entities of the graph, and their names."""
    entities = list(map(graph.current.entity, range(graph.current.entities)))
    return [*entities, *(entity.name for entity in entities)]


def shown(found: Matches) -> list[Any]:
    """Everything of the solutions that a user can look at."""
    return [
        (
            one.total,
            [(node.value, node.term) for node in one.nodes],
            [(repr(edge.statement), edge.reversed, edge.term, edge.against) for edge in one.edges],
            one.count,
        )
        for one in found.solutions
    ]


@pytest.fixture(scope="module")
def remote(neo4j_uri: str) -> Iterator[Neo4jGraph]:
    found = condgraph.open(neo4j_uri, graph="patterns")
    assert isinstance(found, Neo4jGraph)
    found.store.delete()
    yield found
    found.store.delete()
    found.close()


def sure(warnings: list[str]) -> list[str]:
    """Warnings without what looser searches gave: they have two seconds, in which a server gets less
    far.
    """
    return [one for one in warnings if " there is one: " not in one and not one.startswith("loosening any one")]


@pytest.mark.parametrize("batch", range(by_lane(2, 8, 8)))
def test_random_graphs(remote: Neo4jGraph, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over edges that are copied after the first search, and that are fetched."""
    monkeypatch.setattr("condgraph.patterns.remote.planned.MAX_COPIED", 250_000 if batch % 2 else 0)
    for seed in range(batch * GRAPHS // 8, (batch + 1) * GRAPHS // 8):
        dice = random.Random(seed)
        local = condgraph.open()
        local.add(a_graph(dice))
        remote.store.delete()
        remote.push(local)
        for _ in range(4):
            pattern = Pattern.of(a_pattern(dice))
            asked = an_ask(dice, pattern, others(local))
            here = match(local.current, pattern, encoder=ENCODER, **asked)
            there = remote.match(pattern, encoder=ENCODER, **asked)
            about = f"seed {seed}: {pattern} {asked}\n{there.cypher}"
            assert there.hits.totals.tolist() == here.hits.totals.tolist(), about
            assert shown(there) == shown(here), about
            assert (there.texts, there.complete, there.exact, sure(there.warnings)) == (
                here.texts, here.complete, here.exact, sure(here.warnings),
            ), about  # fmt: skip


@pytest.mark.parametrize("directed", [True, False])
def test_induced_with_and_without_direction(remote: Neo4jGraph, directed: bool) -> None:
    for seed in range(5000, 5000 + GRAPHS // 4):
        dice = random.Random(seed)
        local = condgraph.open()
        local.add(a_graph(dice))
        remote.store.delete()
        remote.push(local)
        for _ in range(4):
            pattern = Pattern.of(a_pattern(dice))
            asked = an_ask(dice, pattern, others(local)) | {"induced": True, "directed": directed}
            here, there = match(local.current, pattern, encoder=ENCODER, **asked), remote.match(pattern, encoder=ENCODER, **asked)
            assert shown(there) == shown(here), f"seed {seed}: {pattern} {asked}\n{there.cypher}"


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(by_lane(1, 2, 2)))
def test_candidates_of_the_index_are_enough_where_it_finds_all(remote: Neo4jGraph, batch: int) -> None:
    """Of so few names the index finds every one, so that approximate answers are the exact ones, by
    another way.
    """
    size = max(4, GRAPHS // 4)
    for seed in range(batch * size // 2, (batch + 1) * size // by_lane(4, 2, 2)):
        dice = random.Random(1000 + seed)
        local = condgraph.open()
        local.add(a_graph(dice))
        remote.store.delete()
        remote.push(local)
        remote.index(ENCODER)
        again = condgraph.open(remote.place, graph="patterns")
        for _ in range(by_lane(2, 3, 8)):
            pattern = Pattern.of(a_pattern(dice))
            asked = an_ask(dice, pattern, others(local))
            here = match(local.current, pattern, encoder=ENCODER, **asked)
            there = again.match(pattern, encoder=ENCODER, exact=False, **asked)
            about = f"seed {seed}: {pattern} {asked}\n{there.cypher}"
            assert there.hits.totals.tolist() == here.hits.totals.tolist(), about
            assert shown(there) == shown(here), about
            assert (there.approximate, there.exact, there.complete) == (True, False, here.complete), about
        again.close()


@pytest.mark.slow
def test_names_that_need_quoting(remote: Neo4jGraph) -> None:
    odd = "odd `name` \\u0060) DETACH DELETE n //"
    local = condgraph.open()
    local.add(
        [
            Entity("😀", "Ann"),
            Entity("\uffee", "Ann"),
            Entity("b", "x' OR 1=1 //"),
            Statement("😀", odd, Ref("b")),
            Statement("\uffee", odd, Ref("b"), (("since", "1999"), ("through", Ref("b")))),
            Statement("b", "IS", Ref("😀")),
            Statement("b", "note", "long " * 3000),
            Statement("\uffee", "note", "long " * 3000),
            Statement("b", "note", "\uffee"),
            Statement("b", "note", "😀"),
        ]
    )
    remote.store.delete()
    remote.push(local)
    for pattern in (
        [("UNKNOWN 1", odd, "x' OR 1=1 //")],
        [("UNKNOWN 1", "IS", "UNKNOWN 2")],
        [("UNKNOWN 1", "note", "UNKNOWN 2")],
        [("UNKNOWN 1", "note", "UNKNOWN 2"), ("UNKNOWN 3", "note", "UNKNOWN 2")],
        [("x' OR 1=1 //", "note", "long " * 3000)],
    ):
        for k in sample((2, 1, None), 3):
            here, there = local.match(pattern, k=k), remote.match(pattern, k=k)
            assert shown(there) == shown(here)
    assert remote.status().counts == local.status().counts


@pytest.fixture(scope="module")
def towns(remote: Neo4jGraph) -> Graph:
    """A graph with an index on the server."""
    local = condgraph.open()
    dice = random.Random(0)
    items: list[Any] = [Entity(f"t{i}", f"town {i}") for i in range(400)]
    items += [Statement(f"t{i % 400}", dice.choice(("near", "north of")), Ref(f"t{dice.randrange(400)}")) for i in range(1200)]
    local.add(items)
    remote.store.delete()
    remote.push(local)
    return local


PATTERNS = (
    [("town 17", "near", "UNKNOWN town 1"), ("UNKNOWN town 1", "north of", "UNKNOWN town 2")],
    [("town 3x", "nearby", "town 39")],
)


class Hashed:
    """Vectors of the tests: the lexical encoder's under another name, so that they are kept and
    fetched as a model's are.
    """

    id, dimension = "hashed", 256

    def encode(self, texts: Any) -> Any:
        return LexicalEncoder(256).encode(texts)


@pytest.mark.parametrize("encoder", [pytest.param("lexical", marks=pytest.mark.slow), Hashed()], ids=["lexical", "dense"])
def test_the_vector_index_of_the_server(remote: Neo4jGraph, towns: Graph, encoder: Any) -> None:
    report = remote.index(encoder)
    assert (report.nodes, report.predicates, report.encoded) == (400, 3, 403)
    assert remote.index(encoder).encoded == 0
    again = condgraph.open(remote.place, graph="patterns")
    for pattern in PATTERNS:
        here = match(towns.current, pattern, encoder=encoder, k=5)
        for graph in (remote, again):
            there = graph.match(pattern, k=5, encoder=encoder)
            assert shown(there) == shown(here)
            assert (there.exact, there.approximate, there.encoder) == (True, False, here.encoder)
            near = graph.match(pattern, k=5, encoder=encoder, exact=False)
            assert (near.exact, near.approximate) == (False, True)
            assert near.index.startswith("condgraph_vectors_")
            assert any("approximate: candidates come from condgraph_vectors_" in warning for warning in near.warnings)
            # Of 400 names 256 are looked at; what is found has the distances that it has.
            for one, best in zip(near.solutions, here.solutions, strict=True):
                terms = sum(part.term or 0 for part in (*one.nodes, *one.edges)) + sum(edge.against for edge in one.edges)
                assert one.total == terms >= best.total
            if pattern is PATTERNS[0]:
                assert shown(near)[0] == shown(here)[0]
    again.close()


def test_nothing_is_pulled_that_grows_with_the_graph(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    pulled: list[int] = []
    read = Connection._run

    def counted(self: Connection, *given: Any, **options: Any) -> list[Any]:
        found = read(self, *given, **options)
        pulled[-1] += len(found) + sum(
            len(value) for row in found if isinstance(row, list) for value in row if isinstance(value, list)
        )
        return found

    pattern = [("town 17", "near", "UNKNOWN town 1"), ("UNKNOWN town 1", "north of", "UNKNOWN town 2")]
    for size in by_lane((300, 900), (500, 1500), (500, 1500)):
        local = condgraph.open()
        items: list[Any] = [Entity("c", "town", EntityKind.CONCEPT), *(Entity(f"t{i}", f"town {i}") for i in range(size))]
        items += [Member(f"t{i}", "c") for i in range(size)]
        items += [Statement(f"t{i}", "near", Ref(f"t{(i + 1) % size}")) for i in range(size)]
        items += [Statement(f"t{i}", "north of", Ref(f"t{(i + 2) % size}")) for i in range(size)]
        local.add(items)
        grown = condgraph.open(remote.place, graph="growing")
        assert isinstance(grown, Neo4jGraph)
        grown.store.delete()
        grown.push(local)
        grown.index("lexical")
        fresh = condgraph.open(remote.place, graph="growing")
        monkeypatch.setattr(Connection, "_run", counted)
        pulled.append(0)
        found = fresh.match(pattern, k=2, exact=False, k_types=1, distinct_from={"town 2": "town 18"})
        here = local.match(pattern, k=2, k_types=1, distinct_from={"town 2": "town 18"})
        assert shown(found) == shown(here)
        assert found.report.queries > 1
        monkeypatch.undo()
        grown.store.delete()
        grown.close()
        fresh.close()
    # The same names are near, and the same nodes are found.
    assert pulled[1] <= pulled[0] + 50
    assert pulled[0] < 600


def test_an_index_of_an_earlier_state_says_so(remote: Neo4jGraph, towns: Graph) -> None:
    remote.index("lexical")
    assert not any("earlier" in warning for warning in remote.match(PATTERNS[0], exact=False).warnings)
    remote.add([Entity("y", "Ypres"), Statement("y", "near", Ref("t1"))])
    assert any("earlier state" in warning for warning in remote.match(PATTERNS[0], exact=False).warnings)
    towns.add([Entity("y", "Ypres"), Statement("y", "near", Ref("t1"))])


@pytest.mark.slow
def test_vectors_of_two_encoders_are_never_compared(remote: Neo4jGraph, towns: Graph) -> None:
    remote.index(Hashed())

    class Other(Hashed):
        id = "other"

    with pytest.raises(EncoderMismatchError, match=r"'hashed' \(256 dimensions\).*'other' \(256 dimensions\)"):
        remote.match(PATTERNS[0], encoder=Other())
    assert remote.match(PATTERNS[0], encoder="lexical").encoder == "lexical-1"
    with pytest.raises(OptionError, match="no vector index by 'lexical-1'"):
        remote.match(PATTERNS[0], encoder="lexical", exact=False)
    # What was loaded since is encoded when it is asked for, and written by the next index.
    remote.add([Entity("z", "Zadar"), Statement("z", "near", Ref("t1"))])
    assert remote.match([("Zadar", "near", "UNKNOWN town 1")], encoder=Hashed()).solutions[0].total == 0
    assert remote.index(Hashed()).encoded == 1
    towns.add([Entity("z", "Zadar"), Statement("z", "near", Ref("t1"))])


def test_deadlines_and_cancellation(remote: Neo4jGraph, towns: Graph) -> None:
    # Seven towns around one, all different: nothing is known, and everything is to be joined.
    endless = [(f"UNKNOWN {i}", "nearness", f"UNKNOWN {i + 1}") for i in range(9)]
    begin = time.monotonic()
    found = remote.match(endless, k=3, timeout=0.3, encoder="lexical")
    assert quick_enough(time.monotonic() - begin, 10)
    assert found.complete or (not found.exact and any("deadline" in warning for warning in found.warnings))
    stop = Event()
    stop.set()
    with pytest.raises(CancelledError):
        remote.match(endless, k=3, cancelled=stop, encoder="lexical")
    with pytest.raises(OptionError, match="timeout"):
        remote.match(endless, timeout=0, encoder="lexical")


def test_the_answer_says_what_it_took(remote: Neo4jGraph, towns: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.patterns.remote.planned.MAX_COPIED", 0)
    found = remote.match(PATTERNS[0], k=2, encoder="lexical")
    assert found.report.queries >= 1
    assert found.report.rows >= 2
    assert found.cypher is not None
    assert ":param p => {p1: ['t17']" in found.cypher
    assert len(found.cypher_queries) >= 1
    assert all("t17" not in text for text, _ in found.cypher_queries)
    monkeypatch.undo()
    copied = [remote.match(PATTERNS[0], k=2, encoder="lexical") for _ in range(2)][-1]
    assert copied.report.queries == 0
    assert copied.report.notes[-1] == "edges copied before"
    ((text, parameters),) = copied.cypher_queries
    ((rows,),) = remote.store.connection.values(text, parameters)
    assert len(rows) == towns.current.relations


def test_its_queries_can_be_run_again(remote: Neo4jGraph, towns: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a driver takes them, and as Browser does: `:param` lines have literals of the same values."""
    monkeypatch.setattr("condgraph.patterns.remote.planned.MAX_COPIED", 0)
    driver = remote.store.connection.driver
    found = remote.match(PATTERNS[0], k=2, encoder="lexical")
    assert found.cypher is not None
    blocks = found.cypher.split("\n;\n")
    assert len(blocks) == len(found.cypher_queries)
    for (text, parameters), block in zip(found.cypher_queries, blocks, strict=True):
        *lines, _ = block.partition(text)[0].split("\n")
        read = {}
        for line in lines:
            said = re.fullmatch(r":param (\w+) => (.*);", line)
            assert said is not None, line
            records, _, _ = driver.execute_query(f"RETURN {said[2]} AS value")
            read[said[1]] = records[0]["value"]
        assert read == parameters
        ours, _, _ = driver.execute_query(text, parameters)
        theirs, _, _ = driver.execute_query(text, read)
        assert [record.values() for record in ours] == [record.values() for record in theirs]
    assert any(record.values() for record in ours)
    assert remote.snapshot().match(PATTERNS[0], k=2, encoder="lexical").cypher is None


def test_literals_of_parameters(remote: Neo4jGraph) -> None:
    value = {"a b": [1, -2.5, None, True], "`": {"\\u0060": "it's \\u0041 \n\r\t \"", "größe": -(2**63)}, "plain": float("inf")}
    records, _, _ = remote.store.connection.driver.execute_query(f"RETURN {literal(value)} AS value")
    assert records[0]["value"] == value
