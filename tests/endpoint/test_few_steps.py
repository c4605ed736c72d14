"""What a request costs beside its query: one write of an answer, no change of what the event loop
watches; and that a worker may be asked from threads and event loops in turns all the same.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pyoxigraph as ox
import pytest

from condgraph.endpoint.connections import Disconnected, Writer
from condgraph.endpoint.protocol import ProtocolError, read
from condgraph.engine.errors import DeadlineError, ParseError
from condgraph.engine.iris import PREFIXES
from condgraph.sparql.text.scan import occurring
from condgraph.sparql.workers.pool import Query, WorkerPool

ONE = Query("SELECT ?x { VALUES ?x { 1 } }", solutions="csv")
ENDLESS = Query("SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }")


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    store = ox.Store(str(tmp_path / "store"))
    store.extend(ox.Quad(ox.NamedNode(f"a:{i}"), ox.NamedNode("a:p"), ox.Literal(i)) for i in range(200))
    store.flush()
    del store
    with WorkerPool(tmp_path / "store", workers=1, long=0) as pool:
        yield pool


async def asked(pool: WorkerPool, query: Query = ONE, timeout: float = 10) -> bytes:
    return await (await pool.query_async(query, timeout=timeout)).read()


class Changes:
    """How often sockets are added to an event loop, and taken from it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        for name in ("add_reader", "remove_reader"):
            monkeypatch.setattr(loop, name, self._counted(getattr(loop, name)))

    def _counted(self, call: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            self.number += 1
            return call(*arguments)

        return counted


def test_a_socket_stays_in_the_event_loop(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        await asked(pool)
        changes = Changes(asyncio.get_running_loop(), monkeypatch)
        for _ in range(20):
            assert await asked(pool) == b"x\r\n1\r\n"
        # A spare process may take a turn.
        assert changes.number <= 4

    asyncio.run(main())


def test_threads_and_event_loops_take_turns(pool: WorkerPool) -> None:
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    try:

        async def main() -> None:
            for _ in range(10):
                assert await asked(pool) == b"x\r\n1\r\n"
                assert await asyncio.to_thread(lambda: pool.query(ONE, timeout=10).read()) == b"x\r\n1\r\n"
                there = asyncio.run_coroutine_threadsafe(asked(pool), other)
                assert await asyncio.wrap_future(there) == b"x\r\n1\r\n"

        for _ in range(3):  # each time in a loop of its own, the last of which is closed
            asyncio.run(main())
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
def test_processes_that_end_leave_no_descriptor(pool: WorkerPool) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def main() -> tuple[int, int]:
        await asked(pool)
        found = []
        for _ in range(2):
            for _ in range(4):
                with pytest.raises(DeadlineError):
                    await asked(pool, ENDLESS, timeout=0.1)
                await asked(pool)
            await asyncio.sleep(0.3)
            found.append(descriptors())
        return found[0], found[1]

    before, after = asyncio.run(main())
    assert after <= before + 2


def test_an_idle_process_that_dies_is_let_go(pool: WorkerPool) -> None:
    async def main() -> None:
        await asked(pool)
        for pid in pool.pids():
            os.kill(pid, 9)
        begin = time.process_time()
        await asyncio.sleep(0.5)
        # A socket at its end is ready for ever: nobody looks at it again and again.
        assert time.process_time() - begin < 0.3
        assert await asked(pool) == b"x\r\n1\r\n"

    asyncio.run(main())


class Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.parts.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def test_head_and_body_are_one_write() -> None:
    async def main() -> None:
        loop, written = asyncio.get_running_loop(), Written()

        def new() -> Writer:
            return Writer(loop, written)  # type: ignore[arg-type]

        one = new()
        one.write(b"head ")
        one.write(b"body")
        one.write(b"more")
        assert written.parts == [b"head body", b"more"]
        # A body that comes later does not keep the head back, nor does one that is large.
        two = new()
        two.write(b"head")
        await asyncio.sleep(0)
        two.write(b"body")
        assert written.parts[2:] == [b"head", b"body"]
        three = new()
        three.write(b"head")
        three.write(b"x" * 100_000)
        assert written.parts[4:] == [b"head", b"x" * 100_000]
        # What is closed at once is written before.
        four = new()
        four.write(b"alone")
        four.close()
        await asyncio.sleep(0)
        assert written.parts[6:] == [b"alone"]

    asyncio.run(main())


def test_a_disconnect_is_reported_once() -> None:
    class Request:
        disconnected = False

        class flow:
            @staticmethod
            def resume_reading() -> None:
                told.append("reads")

    told: list[str] = []
    request = Request()
    disconnected = Disconnected(request)
    assert disconnected.notify(lambda: told.append("left"))
    disconnected.fire()
    disconnected.fire()
    assert told == ["reads", "left"]
    assert disconnected.notify(lambda: told.append("again"))
    disconnected.notify(None)
    disconnected.fire()
    assert "again" not in told
    request.disconnected = True
    assert not disconnected.notify(lambda: None)


def test_prefixes_that_a_text_may_use() -> None:
    assert set(occurring(PREFIXES, "SELECT * { ?s rdf:type foaf:Person }")) == {"rdf", "foaf"}
    assert occurring(PREFIXES, r"SELECT * { ?s \u0072df:type ?o }") == PREFIXES


def test_known_prefixes_are_offered_for_one_that_is_not(pool: WorkerPool) -> None:
    text = "SELECT * { ?s rdff:type ?o }"
    with pytest.raises(ParseError, match=r"known: .*rdf:"):
        pool.query(Query(text, prefixes=PREFIXES), timeout=10)


def test_fields_of_a_form_are_read_as_everybody_reads_them() -> None:
    rng = random.Random(3)
    pieces = [
        b"a",
        b"=",
        b"&",
        b"+",
        b"%20",
        b"%",
        b"%zz",
        b"%c3%a9",
        "é".encode(),
        b"query",
        b"%26",
        b"%ff",
        b";",
        b"%2B",
        b"\\",
        b"\n",
    ]
    for _ in range(20_000):
        # An empty query is refused.
        data = b"query=q" + b"".join(rng.choices(pieces, k=rng.randrange(9)))
        try:
            said = [value for name, value in parse_qsl(data.decode(), keep_blank_values=True, errors="strict") if name == "query"]
        except UnicodeDecodeError:
            with pytest.raises(ProtocolError, match="not UTF-8"):
                read("POST", b"", "application/x-www-form-urlencoded", data)
            continue
        if len(said) == 1:
            assert read("POST", b"", "application/x-www-form-urlencoded", data).query == said[0]
    with pytest.raises(ProtocolError, match="more than 1000 fields"):
        read("POST", b"", "application/x-www-form-urlencoded", b"query=x" + b"&a=b" * 1000)


def test_the_reason_of_an_error_stands_in_its_status_line() -> None:
    written: list[bytes] = []
    transport: Any = SimpleNamespace(write=written.append, is_closing=lambda: False, close=lambda: None)
    loop: Any = SimpleNamespace(call_soon=lambda call: None)
    for first in (b"HTTP/1.1 100 Continue\r\n\r\n", b""):
        writer = Writer(loop, transport)
        writer.reason("no \r\nSet-Cookie: a=b\x00 \u20ac" + "x" * 1000)
        if first:
            writer.write(first)
        writer.write(b"HTTP/1.1 501 Not Implemented\r\nA: HTTP/1.1 400 b\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Body")
        head, _, body = b"".join(written).removeprefix(first).partition(b"\r\n")
        assert head.startswith(b"HTTP/1.1 501 no ??Set-Cookie: a=b? ?xxx")
        assert len(head) == 213
        assert body == b"A: HTTP/1.1 400 b\r\n\r\nHTTP/1.1 400 Body"
        written.clear()
    # A result says what it always says.
    writer = Writer(loop, transport)
    writer.reason("why")
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    writer.close()
    assert written == [b"HTTP/1.1 200 OK\r\n\r\n"]
