"""Graphs that are read whole (/data): they end, memory stays bounded, and they go with their
client.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import pyoxigraph as ox
import pytest

from condgraph.endpoint.app import Limits
from condgraph.endpoint.backend import OxigraphBackend
from tests.endpoint.conftest import GRAPH
from tests.endpoint.test_slow_clients import connect, eventually
from tests.support.lanes import by_lane
from tests.support.pace import quick_enough
from tests.support.serving import ask, running, serving

TRIPLES = 300_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    opened = ox.Store(str(folder))
    data = "".join(f'<{GRAPH}n{i}> <{GRAPH}value> "{i:060d}" .\n' for i in range(TRIPLES))
    opened.bulk_load(data.encode(), ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(GRAPH))
    opened.flush()
    del opened
    return folder


def resident(pid: str = "self") -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def parts(url: str, seconds: float = 0.0) -> Iterator[bytes]:
    """The parts of the whole graph, read with a pause behind each."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=60)
    connection.request("GET", "/data?default", headers={"Accept": "application/n-triples"})
    response = connection.getresponse()
    assert response.status == 200
    while part := response.read(1 << 18):
        yield part
        time.sleep(seconds)
    connection.close()


@pytest.mark.slow
@pytest.mark.service
def test_a_graph_ends_whatever_the_deadline_of_queries_is(large: Path) -> None:
    with running(OxigraphBackend(large, default=GRAPH), Limits(timeout=0.5, rows=10)) as (url, server):
        before, most, size, lines, begin = resident(), 0, 0, 0, time.monotonic()
        # Slower than the deadline of a query.
        for part in parts(url, 0.01):
            size += len(part)
            lines += part.count(b"\n")
            most = max(most, resident())
        seconds = time.monotonic() - begin
        assert seconds > 0.5
        assert lines == TRIPLES
        assert size > 30 << 20
        # What was held back, and what is on its way.
        assert most - before < 24 << 20
        eventually(lambda: not server.server_state.tasks)
        assert ask(url, query="SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(?a = ?z) }").status == 503


@pytest.mark.service
def test_its_own_deadline(large: Path) -> None:
    with serving(OxigraphBackend(large, default=GRAPH), Limits(data_timeout=1.0)) as url:
        begin = time.monotonic()
        # Broken off, or a status, where the machine is that busy.
        with pytest.raises((HTTPException, OSError, AssertionError), match=r"IncompleteRead|reset|closed|503"):
            for _ in parts(url, 0.05):
                pass
        assert quick_enough(time.monotonic() - begin, 6)


@pytest.mark.service
@pytest.mark.slow
def test_a_graph_goes_with_its_client(large: Path) -> None:
    backend = OxigraphBackend(large, default=GRAPH, workers=1)
    with running(backend, Limits(timeout=30.0)) as (url, server):
        for _ in range(by_lane(2, 4, 4)):
            with connect(url, receive=4096) as sock:
                sock.sendall(b"GET /data?default HTTP/1.1\r\nHost: x\r\n\r\n")
                assert sock.recv(1000)
            eventually(lambda: not server.server_state.tasks and not server.server_state.connections, 5)
        assert ask(url, query="ASK {}").status == 200


@pytest.mark.slow
@pytest.mark.service
def test_clients_of_http_1_0_get_no_more_than_is_kept(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.endpoint.app.MAX_BUFFERED", 8 << 20)
    with serving(OxigraphBackend(large, default=GRAPH)) as url:
        where = urlsplit(url)
        with socket.create_connection((where.hostname, where.port), timeout=60) as sock:
            sock.sendall(b"GET /data?default HTTP/1.0\r\n\r\n")
            said = b""
            while part := sock.recv(1 << 16):
                said += part
        assert b" 505 " in said.splitlines()[0]
        assert b"HTTP/1.1" in said.splitlines()[-1]
