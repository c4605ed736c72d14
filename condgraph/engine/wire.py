"""HTTP requests that another thread can interrupt (the reader gets an error at once), on connections that stay open
for the next request.
"""

from __future__ import annotations

import http.client
import os
import select
import socket
import urllib.error
import urllib.request
from contextlib import suppress
from functools import partial
from typing import Any, Final

#: The most idle connections of a pool.
_MAX_IDLE: Final = 4


class Wire:
    """The connection of one request. `patience` is the time allowed for connecting, in seconds."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.over = False
        self._socket: socket.socket | None = None

    def cut(self) -> None:
        """Shut the connection down in both directions, at once or as soon as it is made."""
        self.over = True
        with suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def begin(self, connection: http.client.HTTPConnection) -> float | None:
        """Limit the time for connecting to the patience; return the timeout (seconds, or None) to set afterwards."""
        configured: Any = connection.timeout
        timeout = float(configured) if isinstance(configured, (int, float)) else None
        connection.timeout = self.patience if timeout is None else min(timeout, self.patience)
        return timeout

    def connected(self, made: socket.socket, timeout: float | None) -> None:
        """Register the socket of the connection."""
        made.settimeout(timeout)
        self._socket = made
        if self.over:
            self.cut()

    def release(self) -> bool:
        """Detach from the connection, which stays open; return False if it was cut."""
        self._socket = None
        return not self.over

    def handlers(self) -> list[urllib.request.BaseHandler]:
        """Return the handlers with which an opener of `urllib` opens its connections here."""
        return [_Http(self), _Https(self)]


class _Plain(http.client.HTTPConnection):
    wire: Wire

    def connect(self) -> None:
        """Connect (with the handshake), within the patience of the wire."""
        timeout = self.wire.begin(self)
        super().connect()
        self.wire.connected(self.sock, timeout)


class _Tls(_Plain, http.client.HTTPSConnection):
    pass


def _on_wire(kind: type[_Plain], wire: Wire, host: str, **options: Any) -> _Plain:
    """Return a connection to a host on a wire."""
    connection = kind(host, **options)
    connection.wire = wire
    return connection


class _Http(urllib.request.HTTPHandler):
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def http_open(self, request: Any) -> Any:
        """Open a plain connection."""

        return self.do_open(partial(_on_wire, _Plain, self._wire), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def https_open(self, request: Any) -> Any:
        """Open an encrypted connection."""

        return self.do_open(partial(_on_wire, _Tls, self._wire), request, context=self._context)  # type: ignore[attr-defined]


# -- connections that stay open ----------------------------------------------------------------------


class Pool:
    """Connections that stay open for the next request to the same server. Only for requests that may be sent twice:
    if a server has closed an idle connection, the request is sent again on a new one. Each request has its `Wire` as
    the attribute `wire`.
    """

    def __init__(self) -> None:
        self._idle: list[_Plain | _Tls] = []
        self._process = os.getpid()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def handlers(self) -> list[urllib.request.BaseHandler]:
        """Return the handlers with which an opener of `urllib` uses these connections."""
        return [_PooledHttp(self), _PooledHttps(self)]

    def send(self, request: Any, fresh: _Plain | _Tls) -> Any:
        """Return the response to a request, sent on an idle connection to its server, or on `fresh` if there is none."""
        fresh.wire = request.wire
        headers = {**request.headers, **request.unredirected_hdrs}
        while True:
            connection = self._take_idle(fresh) or fresh
            try:
                connection.request(request.get_method(), request.selector, request.data, headers)
                answer = connection.getresponse()
            except (ConnectionError, http.client.BadStatusLine) as error:
                connection.close()
                if connection is not fresh and not request.wire.over:
                    continue
                if isinstance(error, http.client.HTTPException):
                    raise
                raise urllib.error.URLError(error) from None
            except OSError as error:
                connection.close()
                raise urllib.error.URLError(error) from None
            except BaseException:
                connection.close()
                raise
            assert isinstance(answer, _Answer)
            # As urllib does.
            answer.url, answer.msg = request.full_url, answer.reason  # type: ignore[assignment]
            answer.pool, answer.connection = self, connection
            return answer

    def _take_idle(self, like: _Plain | _Tls) -> _Plain | _Tls | None:
        """Take an open idle connection to the same server as `like`."""
        if self._process != os.getpid():
            # The parent process of this fork still uses them.
            self._idle, self._process = [], os.getpid()
        for connection in tuple(self._idle):
            if (type(connection), connection.host, connection.port) == (type(like), like.host, like.port):
                with suppress(ValueError):
                    self._idle.remove(connection)
                    poll = select.poll()
                    poll.register(connection.sock, select.POLLIN)
                    if not poll.poll(0):
                        connection.wire = like.wire
                        timeout: Any = like.timeout
                        like.wire.connected(connection.sock, timeout if isinstance(timeout, (int, float)) else None)
                        return connection
                    # Readable before a request was sent: the server has closed it.
                    connection.close()
        return None

    def give(self, connection: _Plain | _Tls) -> None:
        """Take back a connection whose last response was read to its end."""
        if len(self._idle) < _MAX_IDLE and connection.wire.release():
            self._idle.append(connection)
        else:
            connection.close()


class _Answer(http.client.HTTPResponse):
    """A response that returns its connection to the pool once it was read to its end."""

    pool: Pool | None = None
    connection: _Plain | _Tls | None = None

    def close(self) -> None:
        """Close the response."""
        # At its end the file of a response is closed, and the response itself not yet.
        complete, connection = self.isclosed() and not self.will_close, self.connection
        super().close()
        self.connection = None
        if self.pool is not None and connection is not None:
            (self.pool.give if complete else type(connection).close)(connection)


class _PooledHttp(urllib.request.HTTPHandler):
    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def http_open(self, request: Any) -> Any:
        """Send a request on a plain connection."""
        connection = _Plain(request.host, timeout=request.timeout)
        connection.response_class = _Answer
        return self._pool.send(request, connection)


class _PooledHttps(urllib.request.HTTPSHandler):
    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def https_open(self, request: Any) -> Any:
        """Send a request on an encrypted connection; through a proxy on a connection of its own."""
        if request._tunnel_host:
            return _Https(request.wire).https_open(request)
        connection = _Tls(request.host, timeout=request.timeout, context=self._context)  # type: ignore[attr-defined]
        connection.response_class = _Answer
        return self._pool.send(request, connection)
