"""HTTP requests that another thread can interrupt (the reader of the connection gets an error at
once), on connections that stay open for the next request.
"""

from __future__ import annotations

import http.client
import os
import select
import socket
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any, Final

#: Connections of a pool that no request uses.
_MOST_IDLE: Final = 4


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

    def release(self) -> bool:
        """Let go of the connection, which goes on without this one; False where it was cut."""
        self._socket = None
        return not self.over

    def handlers(self) -> list[urllib.request.BaseHandler]:
        """What makes an opener of `urllib` open its connections here."""
        return [_Http(self), _Https(self)]


class _Plain(http.client.HTTPConnection):
    wire: Wire

    def connect(self) -> None:
        """Connect (and shake hands), within the patience of the wire."""
        timeout = self.wire.begin(self)
        super().connect()
        self.wire.connected(self.sock, timeout)


class _Tls(_Plain, http.client.HTTPSConnection):
    pass


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


# -- connections that stay open ----------------------------------------------------------------------


class Pool:
    """Connections that stay open for the next request to the same server. For requests that may be sent twice: a server
    that closed an idle connection meanwhile is asked again on a new one. Each request has its `Wire` as the attribute `wire`.
    """

    def __init__(self) -> None:
        self._idle: list[_Plain | _Tls] = []
        self._process = os.getpid()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that no request uses."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def handlers(self) -> list[urllib.request.BaseHandler]:
        """What makes an opener of `urllib` use these connections."""
        return [_PooledHttp(self), _PooledHttps(self)]

    def send(self, request: Any, fresh: _Plain | _Tls) -> Any:
        """The answer to a request on an idle connection to its server; on a fresh one where none is left."""
        fresh.wire = request.wire
        headers = {**request.headers, **request.unredirected_hdrs}
        while True:
            connection = self._taken(fresh) or fresh
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
            # As urllib does it.
            answer.url, answer.msg = request.full_url, answer.reason  # type: ignore[assignment]
            answer.pool, answer.connection = self, connection
            return answer

    def _taken(self, like: _Plain | _Tls) -> _Plain | _Tls | None:
        """An idle connection to the server of another one that is still open."""
        if self._process != os.getpid():
            # The process that this one was forked from goes on to use them.
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
                    # What can be read before anything is asked is the end.
                    connection.close()
        return None

    def give(self, connection: _Plain | _Tls) -> None:
        """Take back a connection whose last answer was read to its end."""
        if len(self._idle) < _MOST_IDLE and connection.wire.release():
            self._idle.append(connection)
        else:
            connection.close()


class _Answer(http.client.HTTPResponse):
    """An answer that gives its connection back once it was read to its end."""

    pool: Pool | None = None
    connection: _Plain | _Tls | None = None

    def close(self) -> None:
        """End the answer."""
        # At its end the file of an answer is closed, and the answer is not yet.
        whole, connection = self.isclosed() and not self.will_close, self.connection
        super().close()
        self.connection = None
        if self.pool is not None and connection is not None:
            (self.pool.give if whole else type(connection).close)(connection)


class _PooledHttp(urllib.request.HTTPHandler):
    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def http_open(self, request: Any) -> Any:
        """Send a request on a plain connection."""
        made = _Plain(request.host, timeout=request.timeout)
        made.response_class = _Answer
        return self._pool.send(request, made)


class _PooledHttps(urllib.request.HTTPSHandler):
    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def https_open(self, request: Any) -> Any:
        """Send a request on an encrypted connection; through a proxy on one of its own."""
        if request._tunnel_host:
            return _Https(request.wire).https_open(request)
        made = _Tls(request.host, timeout=request.timeout, context=self._context)  # type: ignore[attr-defined]
        made.response_class = _Answer
        return self._pool.send(request, made)
