"""HTTP requests that another thread can interrupt: the reader of the connection gets an error at
once.
"""

from __future__ import annotations

import http.client
import socket
import urllib.request
from contextlib import suppress
from typing import Any


class Wire:
    """The connection of one request. `patience` is how many seconds it may take to connect."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.over = False
        self._socket: socket.socket | None = None

    def cut(self) -> None:
        """Close the connection in both directions, if it is there; one that is made later is closed
        at once.
        """
        self.over = True
        with suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def begin(self, connection: http.client.HTTPConnection) -> float | None:
        """Have a connection made within the patience; gives the timeout (seconds) that it is to
        have then, None for none.
        """
        given: Any = connection.timeout
        timeout = float(given) if isinstance(given, (int, float)) else None
        connection.timeout = self.patience if timeout is None else min(timeout, self.patience)
        return timeout

    def connected(self, made: socket.socket, timeout: float | None) -> None:
        """Hear of the connection."""
        made.settimeout(timeout)
        self._socket = made
        if self.over:
            self.cut()

    def handlers(self) -> list[urllib.request.BaseHandler]:
        """What makes an opener of `urllib` open its connections here."""
        return [_Http(self), _Https(self)]


class _Plain(http.client.HTTPConnection):
    wire: Wire

    def connect(self) -> None:
        """Connect, within the patience of the wire."""
        timeout = self.wire.begin(self)
        super().connect()
        self.wire.connected(self.sock, timeout)


class _Tls(http.client.HTTPSConnection):
    wire: Wire

    def connect(self) -> None:
        """Connect and shake hands, within the patience of the wire."""
        timeout = self.wire.begin(self)
        super().connect()
        self.wire.connected(self.sock, timeout)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def http_open(self, request: Any) -> Any:
        """Open a plain connection."""

        def connection(host: str, **options: Any) -> _Plain:
            made = _Plain(host, **options)
            made.wire = self._wire
            return made

        return self.do_open(connection, request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def https_open(self, request: Any) -> Any:
        """Open an encrypted connection."""

        def connection(host: str, **options: Any) -> _Tls:
            made = _Tls(host, **options)
            made.wire = self._wire
            return made

        return self.do_open(connection, request, context=self._context)  # type: ignore[attr-defined]
