"""Every option at once on every store: values, edges that stand for paths of two, edges that are left
out, beside all others, give what they give on the snapshot, in its order.

The cases are those that a brute force is asked in `tests/search/test_forms.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import Entity, Graph, Quantity, Ref, Statement, Time
from condgraph.engine.facts import EntityKind, Member
from condgraph.patterns.match import match
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.remote_sparql import SparqlGraph
from tests.matrix.test_match_neo4j import shown, sure
from tests.search.test_forms import ENCODER
from tests.search.worlds import a_case
from tests.support.lanes import by_lane
from tests.support.stores import asked_of, marked

#: Random graphs, on a SQL database and on each server.
EMBEDDED, SERVED = by_lane((4, 1), (40, 3), (200, 200))
STORES = marked("neo4j", "oxigraph", nightly=("virtuoso",))


def opened(request: pytest.FixtureRequest, name: str) -> Neo4jGraph | SparqlGraph:
    if name == "neo4j":
        place, options = request.getfixturevalue("neo4j_uri"), {}
    else:
        server = request.getfixturevalue(f"{name}_server")
        place, options = f"sparql+{server.query}", {} if name == "virtuoso" else {"update": server.update}
    found = condgraph.open(place, graph="forms", **options)
    assert isinstance(found, Neo4jGraph | SparqlGraph)
    return found


def emptied(remote: Neo4jGraph | SparqlGraph) -> None:
    (remote.store if isinstance(remote, Neo4jGraph) else remote).delete()


@pytest.fixture(params=STORES, scope="module")
def remote(request: pytest.FixtureRequest) -> Any:
    found = opened(request, request.param)
    emptied(found)
    yield found
    emptied(found)
    found.close()


def all_of(found: Any) -> Any:
    return shown(found), found.texts, found.complete, found.exact, sure(found.warnings), found.hits.totals.tolist()


def compare(local: Graph, ask: Callable[..., Any], cases: Any, seed: int) -> None:
    for pattern, asked in cases:
        here, there = match(local.current, pattern, encoder=ENCODER, **asked), ask(pattern, encoder=ENCODER, **asked)
        assert all_of(there) == all_of(here), f"seed {seed}: {pattern} {asked}\n{there.cypher or there.sparql}"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Any]:
    found = condgraph.open(f"duckdb:///{tmp_path}/graphs.duckdb")
    yield found
    found.close()


@pytest.mark.parametrize("batch", range(4))
def test_every_option_on_a_sql_database(batch: int, database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over edges that are copied after the first search, and that are fetched."""
    monkeypatch.setattr("condgraph.patterns.remote.planned.MAX_COPIED", 250_000 if batch % 2 else 0)
    for seed in range(batch * EMBEDDED // 4, (batch + 1) * EMBEDDED // 4):
        items, cases = a_case(random.Random(seed))
        local = condgraph.open()
        local.add(items)
        database.store.delete()
        database.push(local)
        compare(local, database.match, cases, seed)


def test_every_option_on_servers(remote: Neo4jGraph | SparqlGraph) -> None:
    for seed in range(SERVED):
        items, cases = a_case(random.Random(seed))
        local = condgraph.open()
        local.add(items)
        emptied(remote)
        remote.push(local)
        compare(local, remote.match, cases, seed)


def people() -> Graph:
    graph = condgraph.open()
    long = "9" * 1200
    items: list[Any] = [Entity(name, name) for name in ("Ann", "Bob", "Cid", "Oslo")]
    items += [
        Statement("Ann", "parents", Ref("Bob")),
        Statement("Bob", "place of birth", Ref("Oslo")),
        Statement("Ann", "height", Quantity(170, "centimetre"), (("in", "2010"),)),
        Statement("Bob", "height", Quantity(Decimal("1.8"), "metre")),
        Statement("Cid", "height", Quantity(2**53 + 1, "centimetre")),
        Statement("Ann", "birth date", Time.day(1990, 5, 3)),
        Statement("Bob", "birth date", Time.year(1960)),
        Statement("Bob", "birth date", Time.year(-43)),
        Statement("Cid", "wealth", Quantity(int(long))),
        Statement("Oslo", "year", Quantity(1048)),
    ]
    graph.add(items)
    return graph


#: Patterns with values, by what they try.
ASKED: tuple[list[tuple[Any, str, Any]], ...] = (
    [("UNKNOWN 1", "height", "> 169.99999999999999999")],
    [("UNKNOWN 1", "height", "= 180 centimetre")],
    [("UNKNOWN 1", "height", 2**53 + 1)],
    [("UNKNOWN 1", "height", 2**53)],
    [("UNKNOWN 1", "height", f"> {2**53}")],
    [("UNKNOWN 1", "born", "< 1960"), ("UNKNOWN 1", "height", "> 1 metre")],
    [("UNKNOWN 2", "parents", "UNKNOWN 1"), ("UNKNOWN 1", "birth date", "<= 1960"), ("UNKNOWN 2", "birth date", "> 1980")],
    [("UNKNOWN 1", "wealth", f"> {'9' * 1199}8")],
    [("UNKNOWN 1", "wealth", f"> {'9' * 1200}")],
    [("UNKNOWN 1", "UNKNOWN relation 1", "> 1000")],
    [("> 1000", "year", "UNKNOWN 1")],
    [("Ann", "height", 170), ("Ann", "parents", "UNKNOWN 1")],
    [("Oslo", "year", "= 1048 metre")],
)


def test_values_on_a_sql_database(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    local = people()
    database.push(local)
    for pattern in ASKED:
        for options in ({"k": 9}, {"k": 1, "directed": True}, {"k": None, "stretch": True}):
            assert all_of(database.match(pattern, **options)) == all_of(local.match(pattern, **options)), pattern
    asked = [("UNKNOWN 1", "birth date", "> 1980"), ("UNKNOWN 1", "parents", "UNKNOWN 2")]
    # Edges were copied; the values are asked for.
    found = database.match(asked, k=1)
    assert (found.report.queries, found.report.rows) == (1, 3)
    assert found.check()
    # What was reached, its value, and nothing else of the graph.
    monkeypatch.setattr("condgraph.patterns.remote.planned.MAX_COPIED", 0)
    found = database.match(asked, k=1)
    assert found.report.rows == 2
    assert found.check()


def test_all_edges_of_a_predicate_lead_to_texts(database: Any) -> None:
    """In either direction: a text is at one end only."""
    local = condgraph.open()
    local.add([Statement("a", "near", Ref("b")), Statement("b", "near", "blue"), Statement("c", "near", "blue")])
    database.push(local)
    pattern = [("UNKNOWN 1", "near", "UNKNOWN 2"), ("UNKNOWN 3", "near", "blue")]
    here, there = (graph.match(pattern, k=20, directed=False) for graph in (local, database))
    assert all_of(there) == all_of(here)
    assert len(here) > 4


def test_values_on_servers(remote: Neo4jGraph | SparqlGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    local = people()
    emptied(remote)
    remote.push(local)
    for pattern in asked_of(remote, ASKED, 2):
        for options in ({"k": 9}, {"k": 1, "directed": True}, {"k": None, "stretch": True}):
            here, there = local.match(pattern, **options), remote.match(pattern, **options)
            assert all_of(there) == all_of(here), f"{pattern}\n{there.cypher or there.sparql}"
    monkeypatch.setattr("condgraph.patterns.remote.planned.MAX_COPIED", 0)
    found = remote.match([("UNKNOWN 1", "birth date", "> 1980"), ("UNKNOWN 1", "parents", "UNKNOWN 2")], k=1, directed=True)
    assert found.check()
    assert {str(fact).split(" | ")[1] for fact in found.evidence} == {"birth date", "parents"}
    # What was reached, its value, and nothing else of the graph.
    assert (found.report.queries, found.report.rows) == (2, 2)


@pytest.mark.slow
@pytest.mark.xdist_group("neo4j")
def test_values_among_candidates_of_an_index(neo4j_uri: str) -> None:
    remote, local = condgraph.open(neo4j_uri, graph="near"), people()
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    remote.push(local)
    remote.index("lexical")
    again = condgraph.open(neo4j_uri, graph="near")
    for pattern in asked_of(again, ASKED, 2):
        here, there = local.match(pattern, k=5), again.match(pattern, k=5, exact=False)
        assert shown(there) == shown(here), f"{pattern}\n{there.cypher}"
    remote.store.delete()
    again.close()
    remote.close()


def test_memberships_of_concepts_on_a_sql_database(database: Any) -> None:
    """A concept that is a member of another is met from that one."""
    local = condgraph.open()
    local.add([*(Entity(name, name, EntityKind.CONCEPT) for name in "ab"), Entity("x", "x"), Member("a", "b"), Member("x", "b")])
    database.push(local)
    (found,) = database.match([("UNKNOWN 1", "instance of", "b")], k=1).solutions
    assert found.count == 2
