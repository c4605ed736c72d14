"""A sample of the openCypher TCK, asked by the official driver over Bolt: the same as in process."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.bolt.connection import Bolt
from condgraph.bolt.query import answered
from condgraph.endpoint.connections import Connections
from condgraph.endpoint.guard import Bounds, Guard, Proxies
from condgraph.engine import temporal
from condgraph.engine.bounds import within
from condgraph.engine.errors import CondgraphError, ParseError
from condgraph.engine.values import Quantity, Time
from condgraph.studio.worker import as_json, error_document
from tests.support import tck
from tests.support.lanes import by_lane

neo4j = pytest.importorskip("neo4j")


class Server:
    """Bolt for the graph that is set, in a thread, with queries in other threads."""

    graph: condgraph.Graph

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.address = ""
        started = threading.Event()

        async def ask(arguments: dict[str, Any], timeout: float) -> tuple[int, bytes]:
            return await asyncio.to_thread(self._answer, arguments, timeout)

        async def main() -> None:
            bolt = Bolt(ask, Guard(), "default", "localhost", rows=None)
            server = await self._loop.create_server(bolt.factory(Connections(Bounds(), Proxies())), "127.0.0.1", 0)
            host, port = server.sockets[0].getsockname()
            self.address = f"{host}:{port}"
            started.set()

        def run() -> None:
            self._loop.run_until_complete(main())
            self._loop.run_forever()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        started.wait(20)

    def _answer(self, arguments: dict[str, Any], timeout: float) -> tuple[int, bytes]:
        try:
            with within(timeout):
                return 200, answered(self.graph, arguments)
        except CondgraphError as error:
            return 400, as_json({"error": error_document(error)})

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def sent(value: Any) -> Any:
    """A parameter as the driver takes it."""
    if isinstance(value, Quantity):
        return value.number
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, list | tuple):
        return [sent(item) for item in value]
    return {key: sent(item) for key, item in value.items()} if isinstance(value, dict) else value


def engine_value(value: Any) -> Any:
    """A value of the driver as `tck.rendered` takes it."""
    if isinstance(value, neo4j.time.Duration):
        return temporal.Duration(
            value.months, value.days, *divmod(value.seconds * temporal.NANOS + value.nanoseconds, temporal.NANOS)
        )
    if isinstance(value, neo4j.time.DateTime):
        days, nanos = value.date().toordinal() - 719163, clock(value)
        if value.tzinfo is None:
            return temporal.LocalDateTime(days, nanos)
        region = getattr(value.tzinfo, "zone", None) or getattr(value.tzinfo, "key", None)
        # The driver has a zone called UTC for the offset of 0.
        return temporal.ZonedDateTime(days, nanos, offset(value), None if region == "UTC" else region)
    if isinstance(value, neo4j.time.Date):
        return Time.day(value.year, value.month, value.day)
    if isinstance(value, neo4j.time.Time):
        return temporal.LocalTime(clock(value)) if value.tzinfo is None else temporal.ZonedTime(clock(value), offset(value))
    if isinstance(value, list):
        return tuple(map(engine_value, value))
    return {key: engine_value(item) for key, item in value.items()} if isinstance(value, dict) else value


def clock(value: Any) -> int:
    return int(((value.hour * 60 + value.minute) * 60 + value.second) * temporal.NANOS + value.nanosecond)


def offset(value: Any) -> int:
    return int(value.utcoffset().total_seconds())


def drawn(value: Any) -> str:
    """A value of the driver as the TCK writes it."""
    from neo4j.graph import Node, Path, Relationship

    if isinstance(value, Node):
        return f"({''.join(':' + label for label in sorted(value.labels))}{properties(value)})"
    if isinstance(value, Relationship):
        return f"[:{value.type}{properties(value)}]"
    if isinstance(value, Path):
        text = drawn(value.nodes[0])
        for before, step, after in zip(value.nodes, value.relationships, value.nodes[1:], strict=False):
            forward = step.start_node.element_id == before.element_id and step.end_node.element_id == after.element_id
            text += f"-{drawn(step)}->{drawn(after)}" if forward else f"<-{drawn(step)}-{drawn(after)}"
        return f"<{text}>"
    if isinstance(value, list):
        return f"[{', '.join(map(drawn, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {drawn(value[key])}" for key in sorted(value)) + "}"
    return tck.rendered(engine_value(value))


def properties(value: Any) -> str:
    return drawn({key: item for key, item in value.items() if key != tck.EDGE}).replace("{}", "") if len(value) else ""


class Drawn:
    """A value that is written already."""

    def __init__(self, value: Any) -> None:
        self.text = drawn(value)


@pytest.mark.reads_data
@pytest.mark.service
def test_a_sample_is_the_same_as_in_process(shared: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = tck.rendered
    monkeypatch.setattr(
        tck, "rendered", lambda value, graph=None: value.text if isinstance(value, Drawn) else rendered(value, graph)
    )
    graphs: dict[tuple[str, ...], Any] = {}
    counts: Counter[str] = Counter()
    other = []
    quiet = {"notifications_min_severity": "OFF"}
    with neo4j.GraphDatabase.driver(f"bolt://{server.address}", **quiet) as driver, driver.session() as session:

        def ask(graph: condgraph.Graph, text: str, parameters: dict[str, Any]) -> tuple[list[str], list[Any]]:
            server.graph = graph
            try:
                result = session.run(text, sent(parameters))
                return list(result.keys()), [tuple(map(Drawn, record.values())) for record in result]
            except neo4j.exceptions.Neo4jError as error:
                raise ParseError(error.message or "") from None

        step = by_lane(29, 3, 1)
        for number, scenario in enumerate(tck.scenarios(shared / "data" / "opencypher_tck" / "tck" / "features")):
            if number % step or tck.skipped(scenario):
                continue
            here, there = tck.played(scenario, graphs), tck.played(scenario, graphs, ask)
            counts[there.kind] += 1
            if here.kind != there.kind:
                other.append(f"{scenario.name}: {scenario.query!r}: {here.kind} in process, over Bolt {there.kind}: {there.why}")
    assert not other, "\n".join(other)
    assert counts["pass"] > 0.9 * counts.total() > 100
