"""Serve an endpoint over HTTP until it is told to stop; running queries then have some time to end."""

from __future__ import annotations

import logging
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    import uvicorn

#: Connections beyond this many are answered with 503 at once.
MOST_CONNECTIONS: Final = 10_000


class _BreakingOff(logging.Filter):
    """Leaves out what uvicorn says of responses that were broken off on purpose."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "without completing response" not in record.getMessage()


def server(application: Any, sockets: list[socket.socket], *, grace: float, started: Callable[[str], None]) -> uvicorn.Server:
    """A server of an application; `grace` is how many seconds queries have to end when it is stopped (SIGTERM, SIGINT)."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "serve") from None

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            for one in sockets or []:
                started(address(one))

    logging.getLogger("uvicorn.error").addFilter(_BreakingOff())
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=max(1, round(grace)),
        limit_concurrency=MOST_CONNECTIONS,
        lifespan="on",
    )
    return Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free. Raises `OptionError`."""
    try:
        family, kind, number, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(family, kind, number)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(place)
            found.listen(2048)
        except OSError:
            found.close()
            raise
    except (OSError, OverflowError) as error:
        raise OptionError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    return found


def address(one: socket.socket) -> str:
    """The address of a listening socket."""
    host, port = one.getsockname()[:2]
    return f"http://[{host}]:{port}" if one.family == socket.AF_INET6 else f"http://{host}:{port}"


def log_to_stderr(*, requests: bool = True) -> None:
    """Write a line for every request, and what goes wrong, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for name in ("condgraph.endpoint", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
    logging.getLogger("condgraph.endpoint").setLevel(logging.INFO if requests else logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
