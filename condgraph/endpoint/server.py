"""The HTTP server: uvicorn with limits for clients. When it is stopped, running queries get some time to
end.
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

#: How many connections may wait to be accepted, so that none is refused in a burst.
BACKLOG: Final = 2048
#: File descriptors reserved for files, pipes and worker processes.
_RESERVE: Final = 256
#: How many bytes of results the system buffers for a client beyond those in flight. The number is small,
#: so that a client that does not read is noticed soon.
_AHEAD: Final = 128 << 10
_log: Final = logging.getLogger("condgraph.endpoint")


@dataclass(frozen=True, slots=True)
class ExtraProtocol:
    """Another protocol: its listening socket, a factory for its connections, and a function to close them.

    The closing function gets the number of seconds that it may take.
    """

    socket: socket.socket
    factory: Callable[[Connections], Callable[[], asyncio.BaseProtocol]]
    close: Callable[[float], Awaitable[None]]


class _KnownMessages(logging.Filter):
    """Filters out uvicorn's messages about responses that were broken off on purpose, and about requests
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
    """Create a server for an application.

    When it is stopped (SIGTERM, SIGINT), queries have `grace` seconds to end. `bounds` are the limits
    for clients, and `proxies` are trusted to name their clients. `beside` is another protocol in the
    same event loop, whose connections count together with those of HTTP. Raises `MissingExtraError`.
    """
    try:
        import httptools  # noqa: F401 - without it uvicorn would use another parser, without the limits
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
    """Request as many file descriptors as connections are allowed.

    If the system grants fewer, log a warning and allow fewer connections. Returns the limits and the
    backlog.
    """
    wanted = bounds.connections + BACKLOG + _RESERVE
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (wanted if limit == resource.RLIM_INFINITY else limit for limit in limits)
    granted = max(soft, min(wanted, hard))
    if granted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, limits[1]))
    if granted >= wanted:
        return bounds, BACKLOG
    backlog = min(BACKLOG, granted // 4)
    allowed = max(1, granted - backlog - _RESERVE)
    if allowed >= bounds.connections:
        return bounds, backlog
    _log.warning("the system gives %d descriptors: there are at most %d connections, not %d", granted, allowed, bounds.connections)
    return replace(bounds, connections=allowed), backlog


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket. Port 0 means any free port. Raises `OptionError`."""
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
    """Return the address of a listening socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if sock.family == socket.AF_INET6 else f"http://{host}:{port}"


def log_to_stderr(*, requests: bool = True) -> None:
    """Log problems, and a line for every request, to standard error."""
    # Leave out the place in the program and the thread, which cause half of the cost (Python's logging
    # HOWTO, "Optimization").
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
