"""An endpoint that runs in a thread of the tests, on a port of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from queue import Queue
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from condgraph.endpoint.app import Limits, application
from condgraph.endpoint.guard import Bounds, Proxies
from condgraph.endpoint.server import listen, server


@contextmanager
def serving(
    backend: Any, limits: Limits | None = None, grace: float = 1.0, bounds: Bounds | None = None, proxies: Sequence[str] = ()
) -> Iterator[str]:
    """Run an endpoint; yield its address."""
    with running(backend, limits, grace, bounds, proxies) as (url, _):
        yield url


@contextmanager
def running(
    backend: Any, limits: Limits | None = None, grace: float = 1.0, bounds: Bounds | None = None, proxies: Sequence[str] = ()
) -> Iterator[tuple[str, Any]]:
    """Run an endpoint; yield its address and its server, which knows its connections and tasks."""
    addresses: Queue[str] = Queue()
    sock = listen("127.0.0.1", 0)
    endpoint = server(
        application(backend, limits), [sock], grace=grace, started=addresses.put, bounds=bounds, proxies=Proxies(proxies)
    )
    thread = threading.Thread(target=endpoint.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        yield addresses.get(timeout=60), endpoint
    finally:
        endpoint.should_exit = True
        thread.join(20)
        sock.close()
        assert not thread.is_alive()


class Reply(NamedTuple):
    """A response: its status, headers by names in lower case, and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]


def ask(
    url: str,
    method: str = "GET",
    path: str = "/sparql",
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    **query: Any,
) -> Reply:
    """Send a request; keywords are query parameters, `default_graph_uri=[...]` several with one name."""
    parts = urlsplit(url)
    pairs = [(key.replace("_", "-"), value) for key, value in query.items()]
    address = urlencode(pairs, doseq=True)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=90)
    try:
        connection.request(method, path + ("?" + address if address else ""), body=body, headers=headers or {})
        response = connection.getresponse()
        return Reply(response.status, {key.lower(): value for key, value in response.getheaders()}, response.read())
    finally:
        connection.close()
