"""Bolt within WebSockets, as pages send it: behind the guard, bounded, and refused where it is malformed."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import condgraph
from condgraph.bolt.connection import MAGIC
from condgraph.bolt.packstream import Structure, packed, unpacked
from condgraph.samples import SAMPLES
from tests.bolt.test_drivers import served

pytest.importorskip("neo4j")
client = pytest.importorskip("websockets.sync.client")
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402 - after it is known to be there

pytestmark = pytest.mark.service
PAGE = "http://pages.example.org"
HEAD = "GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("bolt") / "world"
    with condgraph.open(folder) as graph:
        for sample in SAMPLES:
            graph.load(sample.path, format=sample.format, **sample.options)
    with served(folder, "--cors", PAGE) as place:
        yield place


def message(tag: int, *fields: Any) -> bytes:
    data = packed(Structure(tag, fields))
    return len(data).to_bytes(2, "big") + data + b"\0\0"


def connected(address: str, origin: str | None = PAGE) -> Any:
    return client.connect(f"ws://{address}", origin=origin, compression=None, max_size=None, open_timeout=20)


def answers(link: Any, count: int) -> list[Any]:
    """The next messages of the server: their tags and fields."""
    data, found = b"", []
    while len(found) < count:
        data += link.recv(timeout=20)
        while len(data) >= 2 and len(data) >= (end := 2 + int.from_bytes(data[:2], "big") + 2):
            found.append(unpacked(data[2 : end - 2]))
            data = data[end:]
    return [(item.tag, item.fields) for item in found]


def asked(address: str, cut: int | None) -> list[Any]:
    """The records of a query, sent in pieces of so many bytes."""
    with connected(address) as link:
        link.send(MAGIC + b"\0\4\4\5".ljust(16, b"\0"))
        assert link.recv(timeout=20) == b"\0\0\4\5"
        sent = message(0x01, {"user_agent": "page"}) + message(0x6A, {"scheme": "none"})
        sent += message(0x10, "UNWIND range(1, 3) AS x RETURN x", {}, {}) + message(0x3F, {"n": -1})
        for at in range(0, len(sent), cut or len(sent)):
            link.send(sent[at : at + (cut or len(sent))])
        return [fields[0] for tag, fields in answers(link, 7) if tag == 0x71]


#: What Neo4j Browser 5.24 sends when it connects.
BROWSER = [
    "CALL dbms.components() YIELD versions, edition;",
    "SHOW DATABASES",
    "SHOW CURRENT USER",
    "SHOW PROCEDURES\nYIELD name, description, mode, worksOnSystem, argumentDescription, signature, "
    "returnDescription, admin, option",
    "SHOW FUNCTIONS YIELD isDeprecated, \n    name, category, description, isBuiltIn, argumentDescription, signature, "
    "returnDescription, aggregating",
    "CALL dbms.clientConfig() YIELD name, value",
    "CALL db.labels() YIELD label\nRETURN COLLECT(label)[..1000] AS result\nUNION ALL\nCALL db.relationshipTypes() YIELD "
    "relationshipType\nRETURN COLLECT(relationshipType)[..1000] AS result\nUNION ALL\nCALL db.propertyKeys() YIELD "
    "propertyKey\nRETURN COLLECT(propertyKey)[..1000] AS result",
    "SHOW PROCEDURES",
    "SHOW FUNCTIONS WHERE name STARTS WITH 'to'",
]


def test_the_first_queries_of_neo4j_browser_are_answered(address: str) -> None:
    import neo4j

    with neo4j.GraphDatabase.driver(f"bolt://{address}") as driver, driver.session() as session:
        keys = []
        for text in BROWSER:
            result = session.run(text)
            keys.append(result.keys())
            assert result.values(), text
    assert keys[-2:] == [["name", "description", "mode", "worksOnSystem"], ["name", "category", "description"]]


@pytest.mark.parametrize("cut", [None, 1, 7])
def test_a_page_asks_in_messages_of_any_size(address: str, cut: int | None) -> None:
    assert asked(address, cut) == [[1], [2], [3]]


def test_pages_of_other_servers_are_refused(address: str) -> None:
    for origin in ("http://evil.example.org", "null", "http://127.0.0.1:1"):
        with pytest.raises(InvalidStatus) as refused:
            connected(address, origin)
        assert refused.value.response.status_code == 403
    assert asked(address, None) == [[1], [2], [3]]


def test_names_of_other_machines_are_refused(address: str) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as link:
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        link.sendall((HEAD.format(host="rebound.example.org") + key).encode())
        assert b" 403 " in link.recv(4096).splitlines()[0]


@pytest.mark.parametrize("kind", ["text", "too large", "no Bolt"])
def test_other_messages_end_the_connection(address: str, kind: str) -> None:
    with connected(address) as link:
        sent = {"text": "RETURN 1", "too large": b"\0" * (1 << 20), "no Bolt": b"GET / HTTP/1.1\r\n\r\n"}
        link.send(sent[kind])
        with pytest.raises(ConnectionClosed):
            answers(link, 100)
    assert asked(address, None) == [[1], [2], [3]]


def test_bytes_that_are_no_websocket_end_the_connection(address: str) -> None:
    host, _, port = address.rpartition(":")
    numbers, head = random.Random(5), HEAD.format(host=address).encode()
    cases = [b"GET / HTTP/1.0\r\n\r\n", b"GET " + b"a" * 100_000, b"G" + bytes(2_000), head + b"\r\n", b"G\r\n" * 400]
    cases += [head + b"X-A: b\r\n" * 1_000, *(b"GE" + numbers.randbytes(500) + b"\r\n\r\n" for _ in range(20))]
    begin = time.monotonic()
    for data in cases:
        with socket.create_connection((host, int(port)), timeout=20) as link, suppress(ConnectionError):
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            while link.recv(65_536):
                pass
    assert time.monotonic() - begin < 30
    assert asked(address, None) == [[1], [2], [3]]
