"""A server that takes a connection and never answers: callers are free, and so is the process. A
real socket, no server.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import quote_plus

import pytest

from condgraph.engine.errors import DeadlineError, ParseError
from condgraph.sparql.client import Endpoint, encoded
from tests.support.pace import quick_enough

#: Cancels a query without a deadline; the thread that waits for the server waits for ever.
CANCELLED = """
import sys, threading
from condgraph.engine.errors import CancelledError
from condgraph.sparql.client import Endpoint

cancelled = threading.Event()
threading.Timer(0.2, cancelled.set).start()
try:
    Endpoint(sys.argv[1]).query("ASK {}", cancelled=cancelled)
except CancelledError:
    print("cancelled")
"""


@pytest.mark.parametrize("text", ["".join(map(chr, range(128))), "%25+ %2B", "ASK { ?s <http://x/é> '\U0001f40d' }", ""])
def test_texts_are_encoded_as_in_forms(text: str) -> None:
    assert encoded(text) == quote_plus(text, safe="/")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a socket that listens, and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/sparql"


def test_the_caller_is_free_at_the_deadline(silent: str) -> None:
    begin = time.monotonic()
    with pytest.raises(DeadlineError):
        Endpoint(silent).query("ASK {}", timeout=0.2)
    assert quick_enough(time.monotonic() - begin, 5)


def test_the_process_ends_while_a_thread_still_waits(silent: str) -> None:
    done = subprocess.run([sys.executable, "-c", CANCELLED, silent], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")


def test_forty_calls_at_once_do_not_wait_for_each_other(silent: str) -> None:
    """More than a pool of threads would have: each is freed at its own deadline."""
    endpoint = Endpoint(silent)
    calls = [endpoint._workers.submit(lambda: endpoint.query("ASK {}", timeout=0.5)) for _ in range(40)]
    begin = time.monotonic()
    for call in calls:
        with pytest.raises(DeadlineError):
            call.result(10)
    assert quick_enough(time.monotonic() - begin, 5)


class Lasting(BaseHTTPRequestHandler):
    """A server that keeps connections open, and may close one behind an answer without a word."""

    protocol_version = "HTTP/1.1"
    connections = 0
    closes = False
    code = 200

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def setup(self) -> None:
        """Count connections."""
        type(self).connections += 1
        super().setup()

    def do_GET(self) -> None:
        """True."""
        body = b'{"head": {}, "boolean": true}'
        self.send_response(self.code)
        self.send_header("Content-Type", "application/sparql-results+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.closes


@pytest.fixture
def lasting() -> Iterator[tuple[type[Lasting], str]]:
    kind = type("Own", (Lasting,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield kind, f"http://127.0.0.1:{server.server_port}/sparql"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.service
def test_queries_share_a_connection_that_is_made_anew_where_the_server_closed_it(lasting: tuple[type[Lasting], str]) -> None:
    kind, url = lasting
    endpoint = Endpoint(url)
    for timeout in (None, 5.0, None):
        assert endpoint.query("ASK {}", timeout=timeout)
    assert kind.connections == 1
    kind.code = 400
    with pytest.raises(ParseError):
        endpoint.query("ASK {}")
    kind.code = 200
    assert endpoint.query("ASK {}")
    # An error that was read to its end leaves the connection in use.
    assert kind.connections == 1
    kind.closes = True
    for _ in range(3):
        assert endpoint.query("ASK {}")
    # The one that was open took the first of them.
    assert kind.connections == 3
    endpoint.close()
    assert not endpoint._pool._idle


@pytest.mark.service
def test_calls_at_once_have_a_connection_each(lasting: tuple[type[Lasting], str]) -> None:
    kind, url = lasting
    endpoint = Endpoint(url)
    calls = [endpoint._workers.submit(lambda: endpoint.query("ASK {}", timeout=20)) for _ in range(24)]
    assert all(call.result(30) for call in calls)
    assert endpoint.query("ASK {}")
    assert 1 <= kind.connections <= 24
    assert 1 <= len(endpoint._pool._idle) <= 4
    endpoint.close()
