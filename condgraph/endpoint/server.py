"""The HTTP server: uvicorn, with bounds for its clients. When it is stopped, running queries have some
time to end.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from condgraph.endpoint.guard import Bounds, Forwarded, Proxies
from condgraph.engine.errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import uvicorn

    from condgraph.endpoint.connections import Connections

#: Connections that may wait to be accepted, so that a burst refuses none.
BACKLOG: Final = 2048
#: Descriptors for files, pipes and worker processes.
_RESERVE: Final = 256
#: Bytes of results that the system buffers for a client beyond those in flight: a client that does not
#: read is noticed soon.
_AHEAD: Final = 128 << 10
_log: Final = logging.getLogger("condgraph.endpoint")


@dataclass(frozen=True, slots=True)
class ExtraProtocol:
    """Another protocol: the socket that it listens on, what makes its connections, and what closes them within so
    many seconds.
    """

    socket: socket.socket
    factory: Callable[[Connections], Callable[[], asyncio.BaseProtocol]]
    close: Callable[[float], Awaitable[None]]


class _KnownMessages(logging.Filter):
    """Leaves out uvicorn's messages about responses that were broken off on purpose, and about requests
    that are not HTTP, which `Connections` logs.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return "without completing response" not in message and not message.startswith("Invalid HTTP request")


def server(
    application: Any,
    sockets: list[socket.socket],
    *,
    grace: float,
    started: Callable[[str], None],
    bounds: Bounds | None = None,
    proxies: Proxies | None = None,
    beside: ExtraProtocol | None = None,
) -> uvicorn.Server:
    """A server of an application; `grace` is how many seconds queries have to end when it is
    stopped (SIGTERM, SIGINT).

    `bounds` is what clients may take, `proxies` are those that are trusted to name their clients. `beside` is another
    protocol in the same event loop, whose connections count together with those of HTTP. Raises `MissingExtraError`.
    """
    try:
        import httptools  # noqa: F401 - without it uvicorn would take another parser, and none of the bounds
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(error.name or "uvicorn", "serve") from None
    from condgraph.endpoint.connections import Connection, Connections

    proxies = proxies or Proxies()
    bounds, backlog = _descriptors(bounds or Bounds())

    registry = Connections(bounds, proxies)

    class Server(uvicorn.Server):
        other: asyncio.Server | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if beside is not None:
                loop = asyncio.get_running_loop()
                self.other = await loop.create_server(beside.factory(registry), sock=beside.socket, backlog=backlog)
            for sock in sockets or []:
                started(address(sock))

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if self.other is None or beside is None:
                await super().shutdown(sockets=sockets)
                return
            self.other.close()
            await asyncio.gather(super().shutdown(sockets=sockets), beside.close(grace))

    logging.getLogger("uvicorn.error").addFilter(_KnownMessages())
    config = uvicorn.Config(
        Forwarded(application, proxies, bounds.per_client) if proxies else application,
        http=type("Connection", (Connection,), {"registry": registry}),
        ws="none",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        backlog=backlog,
        timeout_keep_alive=max(1, round(bounds.idle_timeout)),
        timeout_graceful_shutdown=max(1, round(grace)),
        lifespan="on",
    )
    return Server(config)


def _descriptors(bounds: Bounds) -> tuple[Bounds, int]:
    """Ask the system for as many descriptors as there may be connections; where it has fewer, there are fewer
    connections, with a warning.
    """
    wanted = bounds.connections + BACKLOG + _RESERVE
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (wanted if limit == resource.RLIM_INFINITY else limit for limit in limits)
    given = max(soft, min(wanted, hard))
    if given > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (given, limits[1]))
    if given >= wanted:
        return bounds, BACKLOG
    backlog = min(BACKLOG, given // 4)
    most = max(1, given - backlog - _RESERVE)
    if most >= bounds.connections:
        return bounds, backlog
    _log.warning("the system gives %d descriptors: there are at most %d connections, not %d", given, most, bounds.connections)
    return replace(bounds, connections=most), backlog


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free. Raises `OptionError`."""
    try:
        family, kind, number, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        sock = socket.socket(family, kind, number)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _AHEAD)
        try:
            sock.bind(place)
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise
    except (OSError, OverflowError) as error:
        raise OptionError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    return sock


def address(sock: socket.socket) -> str:
    """The address of a listening socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if sock.family == socket.AF_INET6 else f"http://{host}:{port}"


def log_to_stderr(*, requests: bool = True) -> None:
    """Write a line for every request, and problems, to standard error."""
    # Lines leave out the place in the program and the thread, which are half of the cost (Python's
    # logging HOWTO, "Optimization").
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for name in ("condgraph.endpoint", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
    logging.getLogger("condgraph.endpoint").setLevel(logging.INFO if requests else logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
