"""Servers that are stopped (SIGSTOP) in the middle of everything: whoever has a deadline is free at
it, and all goes on afterwards.

Real servers. Every public method that takes a timeout is called; one that is new and is not here
fails a test.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.aio import AsyncGraph
from condgraph.engine.algebra import Scan
from condgraph.engine.answer import Answer
from condgraph.engine.errors import DeadlineError, StoreError
from condgraph.graph import Graph
from condgraph.patterns.matches import Matches
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.remote_sparql import SparqlGraph
from tests.support.pace import quick_enough
from tests.support.servers import running
from tests.support.world import world

#: Seconds of a deadline, and how many more a caller may be held on a machine that is quiet; busy
#: ones are given a second attempt.
TIMEOUT = 1.0
LATE = 0.5
PROGRAM = "Find(Ann) Relate(knows, forward) QueryName()"
LLM = "Query1: \"get_information(relation='knows', head_entity='Ann')\""
PATTERN = [("Ann", "knows", "UNKNOWN 1")]
ITEMS: list[Any] = []
INCOMPLETE = "the best so far"

Call = Callable[[Any], Any]
Measured = tuple[float, BaseException | None]


def _run(call: Any) -> Any:
    return asyncio.run(call)


async def _async(graph: Graph, name: str, *arguments: Any) -> Any:
    return await getattr(AsyncGraph(graph), name)(*arguments, timeout=TIMEOUT)


def _asked(asked: Any) -> Any:
    """What `ask` found; a question that its time did not suffice for is no error, but says so."""
    if asked.status == "budget":
        raise DeadlineError(asked.text)
    return asked


class Letters:
    """A tokenizer of letters."""

    special: frozenset[int] = frozenset()

    def encode_many(self, texts: Any) -> Any:
        return [[ord(letter) for letter in text] for text in texts]

    def pieces(self) -> Any:
        return {one: chr(one) for one in range(256)}


class Links:
    """A model of links that knows nothing."""

    entities, relations, calibrated = ["ann", "bo"], ["knows"], True

    def score_tails(self, heads: Any, relation: int, *, inverse: bool = False) -> Any:
        return np.zeros((len(heads), 2), np.float32)


#: Every public call with a deadline, by class and name.
CALLS: dict[str, Call] = {
    "Graph.kopl": lambda graph: graph.kopl(PROGRAM, timeout=TIMEOUT),
    "Graph.query": lambda graph: graph.query(LLM, timeout=TIMEOUT),
    "Graph.match": lambda graph: graph.match(PATTERN, timeout=TIMEOUT),
    "Graph.sparql": lambda graph: graph.sparql("SELECT ?x { ?x <knows> ?y }", timeout=TIMEOUT),
    "Graph.cypher": lambda graph: graph.cypher("MATCH (n) RETURN count(n) AS n", timeout=TIMEOUT),
    "Graph.explain": lambda graph: graph.explain(LLM, timeout=TIMEOUT),
    "Graph.counted": lambda graph: graph.counted([Scan(None, ("knows",))], lambda known: [], timeout=TIMEOUT),
    "Graph.schema": lambda graph: graph.schema(timeout=TIMEOUT),
    "Graph.status": lambda graph: graph.status(timeout=TIMEOUT),
    "Graph.timeline": lambda graph: graph.timeline("Ann", timeout=TIMEOUT),
    "Graph.difference": lambda graph: graph.difference("1984", "1990", timeout=TIMEOUT),
    "Graph.conflicts": lambda graph: graph.conflicts("knows", timeout=TIMEOUT),
    "Neo4jGraph.cypher": lambda graph: graph.cypher("MATCH (n) RETURN count(n) AS n", timeout=TIMEOUT),
    "Connection.read": lambda graph: graph.store.connection.read("RETURN 1 AS n", {}, timeout=TIMEOUT),
    "Connection.values": lambda graph: graph.store.connection.values("RETURN 1 AS n", {}, timeout=TIMEOUT),
    "Endpoint.query": lambda graph: graph.store.endpoint.query("ASK {}", timeout=TIMEOUT),
    "Endpoint.update": lambda graph: graph.store.endpoint.update("INSERT DATA {}", timeout=TIMEOUT),
    "Graph.ask": lambda graph: _asked(graph.ask("Whom does Ann know?", lambda messages: PROGRAM, timeout=TIMEOUT)),
    "Graph.asking": lambda graph: _asked([*graph.asking("Whom does Ann know?", lambda messages: PROGRAM, timeout=TIMEOUT)][-1]),
    "Graph.excerpt": lambda graph: graph.excerpt("Whom does Ann know?", timeout=TIMEOUT),
    "Graph.verify": lambda graph: graph.verify([("Ann", "knows", "Bo")], timeout=TIMEOUT),
    "Graph.grammar": lambda graph: graph.grammar("kopl", timeout=TIMEOUT),
    "Graph.chain": lambda graph: graph.chain(["Ann"], Letters(), timeout=TIMEOUT),
    "Graph.verify_chain": lambda graph: graph.verify_chain("< Ann -> knows -> Bo >", ["Ann"], timeout=TIMEOUT),
    "Graph.reason": lambda graph: graph.reason("Whom does Ann know?", lambda messages: "< Ann -> knows -> Bo >", timeout=TIMEOUT),
    "Graph.logic": lambda graph: graph.logic('?x : knows("Ann", ?x)', timeout=TIMEOUT),
    "Graph.logic_stored": lambda graph: graph.logic_stored('?x : knows("Ann", ?x)', timeout=TIMEOUT),
    "Graph.write_predictions": lambda graph: graph.write_predictions(Links(), timeout=TIMEOUT),
    "Graph.remove_predictions": lambda graph: graph.remove_predictions(timeout=TIMEOUT),
    "Graph.sample_queries": lambda graph: graph.sample_queries([("ann", "knows", "cy")], 1, timeout=TIMEOUT),
    "Graph.evaluate_logic": lambda graph: graph.evaluate_logic([], held=[("ann", "knows", "cy")], timeout=TIMEOUT),
    "Graph.answer_sets": lambda graph: graph.answer_sets([("ann", "knows", "cy")], Links(), 1, timeout=TIMEOUT),
    "Graph.train_links": lambda graph: graph.train_links(timeout=TIMEOUT),
    "Graph.learn_rules": lambda graph: graph.learn_rules(timeout=TIMEOUT),
    "Graph.mix_links": lambda graph: graph.mix_links(Links(), None, valid=[], timeout=TIMEOUT),
    "Graph.keep_rows": lambda graph: graph.keep_rows(Links(), tempfile.mkdtemp(), timeout=TIMEOUT),
    "AsyncGraph.kopl": lambda graph: _run(_async(graph, "kopl", PROGRAM)),
    "AsyncGraph.query": lambda graph: _run(_async(graph, "query", LLM)),
    "AsyncGraph.match": lambda graph: _run(_async(graph, "match", PATTERN)),
    "AsyncGraph.sparql": lambda graph: _run(_async(graph, "sparql", "ASK {}")),
    "AsyncGraph.cypher": lambda graph: _run(_async(graph, "cypher", "RETURN 1 AS n")),
    "AsyncGraph.explain": lambda graph: _run(_async(graph, "explain", LLM)),
    "AsyncGraph.schema": lambda graph: _run(_async(graph, "schema")),
    "AsyncGraph.status": lambda graph: _run(_async(graph, "status")),
    "AsyncGraph.ask": lambda graph: _asked(_run(_async(graph, "ask", "Whom does Ann know?", lambda messages: PROGRAM))),
    "AsyncGraph.verify": lambda graph: _run(_async(graph, "verify", [("Ann", "knows", "Bo")])),
    "AsyncGraph.logic": lambda graph: _run(_async(graph, "logic", '?x : knows("Ann", ?x)')),
    "AsyncGraph.grammar": lambda graph: _run(_async(graph, "grammar", "kopl")),
}
#: What may take nothing that a graph which was asked just now does not know.
KNOWN = ("explain", "warnings")
#: What is not asked of a store.
ONLY = {
    "neo4j": ("Graph.cypher", "Graph.sparql", "AsyncGraph.sparql", "SparqlStore.", "Endpoint."),
    "sparql": ("Neo4j", "Connection.", "AsyncGraph.cypher"),
}


def calls(kind: str) -> dict[str, Call]:
    """The calls of a kind of store; those whose deadline is that of the whole graph, and those that
    wait for others.
    """
    found = {name: call for name, call in CALLS.items() if not name.startswith(ONLY[kind])}
    found["load(wait=)"] = lambda graph: graph.add(world_items(), source="again", wait=TIMEOUT)
    found["push(wait=)"] = lambda graph: graph.push(world(), wait=TIMEOUT)
    return found


def world_items() -> list[Any]:
    from tests.support.world import items

    return items()


#: What an answer that was given in time is asked for later.
LOOKS: dict[str, Callable[[Any], Any]] = {
    "evidence": lambda answer: list(answer.evidence),
    "trace": lambda answer: answer.trace,
    "warnings": lambda answer: answer.warnings,
    "explain": lambda answer: answer.explain(),
}


def test_every_call_with_a_deadline_is_here() -> None:
    """By their signatures. The methods of `AsyncGraph` are made of those of `Graph` by a few functions,
    so that some of them are enough.
    """
    from condgraph.cypher.connection import Connection
    from condgraph.cypher.store import Neo4jStore
    from condgraph.sparql.client import Endpoint
    from condgraph.sparql.remote import SparqlStore

    found = {
        f"{owner.__name__}.{name}"
        for owner in (Graph, Neo4jGraph, SparqlGraph, Neo4jStore, SparqlStore, Connection, Endpoint)
        for name, method in vars(owner).items()
        if not name.startswith("_") and callable(method) and "timeout" in inspect.signature(method).parameters
    }
    awaited = {one for one in CALLS if one.startswith("AsyncGraph.")}
    assert found == set(CALLS) - awaited
    assert len(awaited) > 10


# -- measuring -------------------------------------------------------------------------------------


def measured(call: Call, graph: Any) -> Measured:
    """How many seconds a call took, and what it raised."""
    begin = time.monotonic()
    try:
        found = call(graph)
    except BaseException as error:  # noqa: BLE001 - looked at
        return time.monotonic() - begin, error
    took = time.monotonic() - begin
    if isinstance(found, Matches) and not found.complete:
        # A search whose deadline came first gives the best so far, and says that.
        return took, DeadlineError(INCOMPLETE)
    return took, None


def all_at_once(named: dict[str, tuple[Call, Any]]) -> dict[str, Measured]:
    """The same of several, each in a thread."""
    found: dict[str, Measured] = {}

    def one(name: str, call: Call, graph: Any) -> None:
        found[name] = measured(call, graph)

    threads = [threading.Thread(target=one, args=(name, *rest), daemon=True) for name, rest in named.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + TIMEOUT * 8
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0.0))
    return found


def wrong(named: dict[str, tuple[Call, Any]], found: dict[str, Measured]) -> dict[str, str]:
    """The calls that were held for too long, or ended otherwise than by their deadline."""
    bad = {}
    for name in named:
        if name not in found:
            bad[name] = "held"
        elif found[name][1] is None and name.endswith(KNOWN):
            # All that it takes was known already: no server is asked.
            continue
        elif found[name][0] > TIMEOUT + LATE or not isinstance(found[name][1], DeadlineError):
            bad[name] = f"{found[name][0]:.2f} s, {found[name][1]!r}"
        elif name == "Graph.match" and found[name][1].args != (INCOMPLETE,):
            bad[name] = f"raised {found[name][1]!r}; a search has no subgraphs yet, and says that it is not complete"
    return bad


def settled(server: Any, make: Callable[[], dict[str, tuple[Call, Any]]], *, after: float = 0.0) -> None:
    """Stop the server, make all calls at once, let it go on; a second attempt where a busy machine
    was late.
    """
    for attempt in (1, 2):
        named = make()
        time.sleep(after)
        server.pause()
        try:
            found = all_at_once(named)
        finally:
            server.resume()
        bad = wrong(named, found)
        if not bad:
            return
        if attempt == 2 or "held" in bad.values():
            pytest.fail(str(bad))


def threads() -> int:
    return sum(thread.name.startswith("condgraph") for thread in threading.enumerate())


@pytest.fixture(
    params=[
        pytest.param("neo4j", marks=[pytest.mark.service, pytest.mark.slow]),
        pytest.param("oxigraph", marks=[pytest.mark.service, pytest.mark.xdist_group("stopped oxigraph")]),
        pytest.param("virtuoso", marks=[pytest.mark.service, pytest.mark.slow]),
    ],
    scope="module",
)
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A server of this module's own, since it is stopped."""
    if request.param == "neo4j":
        from neo4j_server import LTS, Neo4jServer

        made: Any = Neo4jServer(LTS, short=True, memory="512m")
    elif request.param == "oxigraph":
        from oxigraph_server import OxigraphServer

        made = OxigraphServer()
    else:
        from virtuoso_server import VirtuosoServer

        made = VirtuosoServer()
    with running(made, request.param) as server:
        server.kind = "neo4j" if request.param == "neo4j" else "sparql"
        opened(server).push(world())
        yield server


def opened(server: Any, **options: Any) -> Any:
    if server.kind == "neo4j":
        return condgraph.open(server.uri, graph="stopped", **options)
    return condgraph.open(f"sparql+{server.query}", graph="stopped", update=server.update, **options)


def warm(server: Any, **options: Any) -> Any:
    """A graph that has been asked."""
    graph = opened(server, **options)
    assert graph.kopl(PROGRAM).texts == ["Bo"]
    assert graph.query(LLM).texts == ["Bo"]
    graph.match(PATTERN)
    return graph


# -- tests -----------------------------------------------------------------------------------------


def test_graphs_that_were_never_asked(server: Any) -> None:
    """Nothing is known of the server: connection, handshake, state, names."""
    settled(server, lambda: {name: (call, opened(server)) for name, call in calls(server.kind).items()})


def test_graphs_that_were_just_asked(server: Any) -> None:
    """Of some the program's own query is the first to wait; all of them share one graph, and so one
    pool of connections.
    """
    graph = warm(server)
    settled(server, lambda: {name: (call, warm(server)) for name, call in calls(server.kind).items()})
    settled(server, lambda: {name: (call, graph) for name, call in calls(server.kind).items()})
    assert graph.kopl(PROGRAM).texts == ["Bo"]


@pytest.mark.slow
def test_graphs_that_were_idle(server: Any) -> None:
    """What is known of the graph is old, and idle connections are asked whether they are alive."""
    graph = warm(server)
    settled(server, lambda: {name: (call, graph) for name, call in calls(server.kind).items()}, after=5.5)


def test_answers_that_are_looked_at_later(server: Any) -> None:
    """Evidence, trace and warnings have the timeout of the query again."""

    def make() -> dict[str, tuple[Call, Any]]:
        graph = warm(server)
        found: dict[str, tuple[Call, Any]] = {}
        for look, call in LOOKS.items():
            found[look] = call, graph.query(PROGRAM, timeout=TIMEOUT)
        return found

    settled(server, make)
    answer = warm(server).query(PROGRAM, timeout=60)
    assert isinstance(answer, Answer)
    assert len(answer.evidence) == 2


def test_calls_without_a_deadline_have_that_of_the_graph(server: Any) -> None:
    def make() -> dict[str, tuple[Call, Any]]:
        graph = warm(server, timeout=TIMEOUT)
        return {
            "kopl": (lambda g: g.kopl(PROGRAM), graph),
            "query": (lambda g: g.query(LLM), graph),
            "match": (lambda g: g.match(PATTERN), graph),
            "explain": (lambda g: g.explain(LLM), graph),
            "status": (lambda g: g.status(), graph),
        }

    settled(server, make)


def test_what_a_server_answers_at_once_has_a_bound_of_its_own(server: Any) -> None:
    """Without any deadline: the state of the graph, and the plan of a Cypher query."""

    def make() -> dict[str, tuple[Call, Any]]:
        found: dict[str, tuple[Call, Any]] = {}
        for name in ("kopl", "status", "add", "exists"):
            graph = opened(server, patience=TIMEOUT)
            asked: dict[str, Call] = {
                "kopl": lambda g: g.kopl(PROGRAM),
                "status": lambda g: g.status(),
                "add": lambda g: g.add(world_items()),
                "exists": lambda g: g.store.exists(),
            }
            found[name] = asked[name], graph
        if server.kind == "neo4j":
            found["cypher"] = (lambda g: g.cypher("RETURN 1 AS n", timeout=None)), opened(server, patience=TIMEOUT)
        return found

    for attempt in (1, 2):
        named = make()
        server.pause()
        try:
            found = all_at_once(named)
        finally:
            server.resume()
        bad = {
            name: found.get(name)
            for name in named
            if name not in found or found[name][0] > TIMEOUT + LATE or not isinstance(found[name][1], (DeadlineError, StoreError))
        }
        if not bad:
            return
        if attempt == 2:
            pytest.fail(str(bad))


def test_many_runaways_hold_nobody(server: Any) -> None:
    """Twelve that wait, then a thirteenth; afterwards the graph answers, and no thread or
    connection is left behind.
    """
    graph = warm(server)

    def make() -> dict[str, tuple[Call, Any]]:
        return {f"runaway {number}": (CALLS["Graph.kopl"], graph) for number in range(12)}

    before = threads()
    named = make()
    server.pause()
    try:
        found = all_at_once(named)
        later = measured(CALLS["Graph.kopl"], graph)
    finally:
        server.resume()
    assert wrong(named, found) == {}
    assert isinstance(later[1], DeadlineError)
    assert later[0] <= TIMEOUT + LATE
    assert graph.kopl(PROGRAM, timeout=30).texts == ["Bo"]
    until = time.monotonic() + 30
    while threads() > before + 1 and time.monotonic() < until:
        time.sleep(0.2)
    assert threads() <= before + 1
    if server.kind == "neo4j":
        pool = graph.store.connection.driver._pool

        def used() -> int:
            return sum(one.in_use for many in list(pool.connections.values()) for one in list(many))

        # A thread that goes back to wait for work may not have given its connection back yet.
        while used() and time.monotonic() < until:
            time.sleep(0.2)
        assert used() == 0


def test_async_calls_hold_nobody(server: Any) -> None:
    """More at once than asyncio has threads: each is free at its deadline, and a task that is
    cancelled ends at once.
    """

    async def stopped() -> list[float]:
        made = await asyncio.to_thread(warm, server)
        server.pause()
        try:
            return await asking(made)
        finally:
            server.resume()

    async def asking(made: Any) -> list[float]:
        graph, begin, ends = AsyncGraph(made), time.monotonic(), []

        async def one() -> None:
            with pytest.raises(DeadlineError):
                await graph.kopl(PROGRAM, timeout=TIMEOUT)
            ends.append(time.monotonic() - begin)

        endless = [asyncio.create_task(graph.kopl(PROGRAM)) for _ in range(40)]
        await asyncio.gather(*(one() for _ in range(40)))
        for task in endless:
            task.cancel()
        await asyncio.gather(*endless, return_exceptions=True)
        ends.append(time.monotonic() - begin)
        return ends

    ends = asyncio.run(stopped())
    assert len(ends) == 41
    assert quick_enough(max(ends), TIMEOUT + 2 * LATE)


def test_the_command_line(server: Any) -> None:
    """`--timeout` of every command that has it: exit code 4."""
    place = server.uri if server.kind == "neo4j" else f"sparql+{server.query}"
    commands = {
        "query": ["query", "-d", place, "--graph", "stopped", "--timeout", str(TIMEOUT), "--evidence", PROGRAM],
        "llm": ["query", "-d", place, "--graph", "stopped", "--timeout", str(TIMEOUT), LLM],
        "match": ["match", "-d", place, "--graph", "stopped", "--timeout", str(TIMEOUT), "(Ann) -[knows]-> (UNKNOWN 1)"],
    }
    if server.kind == "neo4j":
        commands["cypher"] = ["cypher", "-d", place, "--timeout", str(TIMEOUT), "RETURN 1 AS n"]
    else:
        commands["sparql"] = ["sparql", "-d", place, "--graph", "stopped", "--timeout", str(TIMEOUT), "ASK {}"]
    environment = os.environ | {"PYTHONPATH": str(Path(condgraph.__file__).parents[1])}
    server.pause()
    try:
        # Most of the time is what Python takes to begin.
        running = {
            name: subprocess.Popen(
                [sys.executable, "-m", "condgraph", *command], env=environment, stderr=subprocess.PIPE, text=True
            )
            for name, command in commands.items()
        }
        ends = {name: process.communicate(timeout=60)[1] for name, process in running.items()}
    finally:
        server.resume()
    assert {name: process.returncode for name, process in running.items()} == dict.fromkeys(commands, 4), ends
