"""A server that takes a connection and never answers: callers are free, and so is the process. A
real socket, no server.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from condgraph.engine.errors import DeadlineError
from condgraph.sparql.client import Endpoint
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
