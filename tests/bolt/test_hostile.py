"""Bytes of clients that mean no good, at every state of a connection: it ends with a failure, soon, and others go on."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.bolt.connection import MAGIC
from condgraph.bolt.packstream import MalformedError, Structure, packed, unpacked
from condgraph.engine.errors import OptionError
from condgraph.samples import SAMPLES
from tests.bolt.test_drivers import served

neo4j = pytest.importorskip("neo4j")
HELLO, RESET, RUN, BEGIN, COMMIT, PULL, LOGON = 0x01, 0x0F, 0x10, 0x11, 0x12, 0x3F, 0x6A
SUCCESS, RECORD, IGNORED, FAILURE = 0x70, 0x71, 0x7E, 0x7F


class Client:
    """A connection, byte by byte."""

    def __init__(self, address: str, state: str = "connected", versions: bytes = b"\0\4\4\5") -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        if state == "connected":
            return
        self.send(MAGIC + versions.ljust(16, b"\0"))
        assert self.read(4) == b"\0\0\4\5"
        if state == "agreed":
            return
        self.message(HELLO, {"user_agent": "test"})
        assert self.reply()[0] == SUCCESS
        if state == "greeted":
            return
        self.message(LOGON, {"scheme": "none"})
        assert self.reply()[0] == SUCCESS
        if state in ("streaming", "failed", "in a transaction"):
            if state == "in a transaction":
                self.message(BEGIN, {})
                assert self.reply()[0] == SUCCESS
            self.message(RUN, "RETURN" if state == "failed" else "UNWIND range(1, 50) AS x RETURN x", {}, {})
            assert self.reply()[0] == (FAILURE if state == "failed" else SUCCESS)

    def send(self, data: bytes) -> None:
        with suppress(OSError):  # the server has closed
            self.socket.sendall(data)

    def message(self, tag: int, *fields: Any) -> None:
        data = packed(Structure(tag, fields))
        parts = [data[at : at + 0xFFFF] for at in range(0, len(data), 0xFFFF)]
        self.send(b"".join(len(part).to_bytes(2, "big") + part for part in parts) + b"\0\0")

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError(data)
            data += part
        return data

    def reply(self) -> tuple[int, tuple[Any, ...]]:
        data = b""
        while size := int.from_bytes(self.read(2), "big"):
            data += self.read(size)
        made = unpacked(data)
        return made.tag, made.fields

    def rest(self) -> bytes:
        """What comes until the server closes."""
        data = b""
        try:
            while part := self.socket.recv(1 << 16):
                data += part
        except ConnectionError:
            pass
        return data


STATES = ["connected", "agreed", "greeted", "ready", "streaming", "failed", "in a transaction"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bolt") / "world"
    with condgraph.open(folder) as graph:
        for sample in SAMPLES[:1]:
            graph.load(sample.path, format=sample.format, **sample.options)
    return folder


@pytest.fixture(scope="module")
def address(world: Path) -> Iterator[str]:
    with served(world, "--head-timeout", "1", "--body-timeout", "0.5", "--client-connections", "40", "--body-size", "64") as place:
        yield place
        with neo4j.GraphDatabase.driver(f"bolt://{place}") as driver:
            assert driver.execute_query("RETURN 1 AS x").records[0]["x"] == 1


@pytest.mark.service
@pytest.mark.parametrize("state", STATES)
def test_a_megabyte_of_nonsense_ends_the_connection(address: str, state: str) -> None:
    noise = random.Random(7).randbytes(1 << 20)
    kinds = {
        "noise": noise,
        "zeros after a byte": b"\0\1\xb1" + b"\0" * (1 << 20),
        "one chunk without end": b"\xff\xff" + noise[:0xFFFF] * 16,
        "chunks of a byte": b"\0\1\x91" * (1 << 18),
        "deep": b"\xff\xff" + b"\xb1\x10" + b"\x91" * 0xFFFD + b"\0\0",
        "wide": b"\0\7\xb1\x10\xd6\xff\xff\xff\xff\0\0",
        "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000,
        "no such message": b"\0\2\xb0\x33\0\0",
        "no structure": b"\0\1\x01\0\0",
        "a field of another type": b"\0\3\xb1\x10\x01\0\0",
        "twice a key": b"\0\x0b\xb3\x10\x80\xa2\x81a\x01\x81a\x02\xa0\0\0",
    }
    if state == "failed":
        del kinds["a field of another type"]  # ignored, as every message until a reset
    for name, data in kinds.items():
        client = Client(address, state)
        begin = time.monotonic()
        client.send(data)
        rest = client.rest()
        assert time.monotonic() - begin < 5, name
        # Before a version is agreed on nothing can be sent that a client would read.
        assert state == "connected" or b"Neo.ClientError.Request.Invalid" in rest, (name, rest[:200])
        assert b"Traceback" not in rest
        assert b"condgraph/" not in rest
        assert b".py" not in rest
        client.socket.close()


@pytest.mark.service
def test_slow_clients_are_ended_and_idle_ones_are_not(address: str) -> None:
    waiting = [Client(address, state) for state in ("connected", "agreed", "greeted", "ready")]
    waiting[0].send(MAGIC)
    waiting[3].send(b"\0\7\xb1")
    idle = Client(address, "ready")
    begin = time.monotonic()
    for client in waiting[:3]:
        assert client.rest() == b""
    assert b"took more than 0.5 s" in waiting[3].rest()
    assert time.monotonic() - begin < 6
    idle.send(b"\0\0" * 1000)
    idle.message(RUN, "RETURN 1", {}, {})
    assert idle.reply()[0] == SUCCESS


@pytest.mark.service
def test_a_client_has_so_many_connections_together(address: str) -> None:
    clients = [Client(address, "connected") for _ in range(60)]
    for client in clients:
        client.send(MAGIC + b"\0\4\4\5".ljust(16, b"\0"))
    answers = []
    for client in clients:
        try:
            answers.append(client.read(4))
        except (OSError, EOFError):
            answers.append(b"")
    for client in clients:
        client.socket.close()
    assert 0 < answers.count(b"\0\0\4\5") <= 40


@pytest.mark.service
@pytest.mark.parametrize(
    ("offer", "answer"),
    [
        (b"\0\0\0\5", b"\0\0\0\5"), (b"\0\x08\x08\5\0\2\4\4", b"\0\0\4\5"), (b"\0\2\4\4", b"\0\0\4\4"), (b"\0\0\0\3", b"\0\0\0\0"),
        (b"\0\1\x09\5", b"\0\0\0\0"), (b"\0\0\0\x09\0\0\3\5", b"\0\0\3\5"), (b"", b"\0\0\0\0"), (b"\0\0\0\4", b"\0\0\0\0"),
        (b"\0\0\1\xff\0\x08\x08\5", b"\0\0\1\xff\2\0\4\4\5\0\3\4\4\0"),
    ],
)  # fmt: skip
def test_versions_are_agreed_on(address: str, offer: bytes, answer: bytes) -> None:
    client = Client(address)
    client.send(MAGIC + offer.ljust(16, b"\0"))
    assert client.read(len(answer)) == answer
    if answer[3] == 0xFF:
        client.send(b"\0\0\2\5\0")
        client.message(HELLO, {})
        assert client.reply()[0] == SUCCESS
    client.socket.close()


@pytest.mark.service
def test_older_versions_have_ids_that_are_numbers_and_datetimes_by_their_clock(address: str) -> None:
    for patch, tag, seconds in ([], 0x46, 3600), (["utc"], 0x49, 0):
        client = Client(address)
        client.send(MAGIC + b"\0\0\4\4".ljust(16, b"\0"))
        client.read(4)
        client.message(HELLO, {"scheme": "none", "patch_bolt": patch})
        assert client.reply()[1][0].get("patch_bolt", []) == patch
        client.message(RUN, "MATCH (n) RETURN n, datetime('1970-01-01T01:00+01:00') AS d LIMIT 1", {}, {})
        client.message(PULL, {"n": 1})
        assert client.reply()[1][0]["fields"] == ["n", "d"]
        record, moment = client.reply()[1][0]
        assert len(record.fields) == 3
        assert moment == Structure(tag, (seconds, 0, 3600))
        client.socket.close()


@pytest.mark.service
def test_messages_behind_a_failure_are_ignored_until_a_reset(address: str) -> None:
    client = Client(address, "ready")
    client.message(RUN, "RETURN", {}, {})
    client.message(PULL, {"n": -1})
    client.message(RUN, "RETURN 1", {}, {})
    client.message(RESET)
    client.message(RUN, "RETURN 2 AS x", {}, {})
    client.message(PULL, {"n": 1})
    replies = [client.reply() for _ in range(7)]
    assert [tag for tag, _ in replies] == [FAILURE, IGNORED, IGNORED, SUCCESS, SUCCESS, RECORD, SUCCESS]
    client.message(COMMIT)
    assert client.reply()[1][0]["code"] == "Neo.ClientError.Request.Invalid"
    assert client.rest() == b""


@pytest.mark.service
def test_a_reset_overtakes_a_query(address: str) -> None:
    client = Client(address, "ready")
    client.message(
        RUN, "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b WITH a, b WHERE a * b % 9 = 10 RETURN count(*)", {}, {}
    )
    client.message(PULL, {"n": -1})
    time.sleep(0.3)
    begin = time.monotonic()
    client.message(RESET)
    assert [client.reply()[0] for _ in range(3)] == [FAILURE, IGNORED, SUCCESS]
    assert time.monotonic() - begin < 3
    client.message(RUN, "RETURN 1", {}, {})
    assert client.reply()[0] == SUCCESS


def test_packstream_is_that_of_the_driver() -> None:
    from neo4j._codec.packstream.v1 import PackableBuffer, Packer

    def theirs(value: Any) -> bytes:
        buffer = PackableBuffer()
        Packer(buffer).pack(value)
        return bytes(buffer.data)

    chosen = random.Random(3)

    def made(depth: int) -> Any:
        kind = chosen.randrange(9 if depth < 4 else 7)
        size = chosen.choice([0, 1, 15, 16, 17, 255, 256, 300])
        if kind == 0:
            return chosen.choice([None, True, False])
        if kind in (1, 2):
            bits = chosen.randrange(1, 64)
            return chosen.choice([1, -1]) * chosen.randrange(1 << bits)
        if kind == 3:
            return struct.unpack(">d", struct.pack(">d", chosen.uniform(-1e300, 1e300)))[0]
        if kind in (4, 5):
            return "".join(chosen.choice("aé語🙂") for _ in range(size))
        if kind == 6:
            return chosen.randbytes(size)
        if kind == 7:
            return [made(depth + 1) for _ in range(chosen.randrange(20))]
        return {f"k{at}": made(depth + 1) for at in range(chosen.randrange(20))}

    edges = [
        *(sign * (1 << bits) + more for bits in range(64) for sign in (1, -1) for more in (-1, 0, 1)),
        "x" * 70_000,
        [1] * 70_000,
    ]
    for value in [*edges, *(made(0) for _ in range(300))]:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            with pytest.raises(OptionError):
                packed(value)
            continue
        data = packed(value)
        assert data == theirs(value)
        assert unpacked(data) == value
        for end in {0, len(data) // 2, len(data) - 1}:
            with pytest.raises(MalformedError):
                unpacked(data[:end])


def test_deep_and_long_values_are_refused() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    with pytest.raises(OptionError, match="deeper"):
        packed(deep)
    for data in [
        b"\x91" * 100_000 + b"\x01",
        b"\xd6\x7f\xff\xff\xff",
        b"\x82\xff\xff",
        b"\xc4",
        b"\xd6\x00\x20\x00\x00" + b"\x01" * (1 << 21),
    ]:
        begin = time.process_time()
        with pytest.raises(MalformedError):
            unpacked(data)
        assert time.process_time() - begin < 3
