"""One request to the server and its response: the body and its parts, errors as statuses, and the line in
the log. Also the streams of results that are sent while their queries run.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import quote

from condgraph.endpoint.protocol import DRAIN, ProtocolError
from condgraph.engine.errors import CondgraphError, DeadlineError, OptionError, ParseError, UnknownNameError
from condgraph.engine.tracing import request_span
from condgraph.sparql.workers.pool import BusyError, UnwritableError

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[str, str]

_log: Final = logging.getLogger("condgraph.endpoint")
READING: Final = ("GET", "HEAD")
#: Headers of every response, and of all but pages, which have their own policy. A browser that displays a
#: result must not run or load anything, whatever the result contains.
_ALWAYS: Final = ((b"x-content-type-options", b"nosniff"), (b"cross-origin-resource-policy", b"same-origin"))
_POLICY: Final = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
#: How results are compressed (fast, as gzip), and from which size in bytes.
_LEVEL, _GZIP, _WORTH = 1, 31, 1_400
#: How many characters of `Accept-Encoding` are read.
_MAX_ENCODINGS: Final = 1_000
#: How many bytes of results are buffered, so that an early error can still set the status.
HOLD: Final = 4 << 20

#: The extension in a request's scope that reports when the client disconnects (`Disconnect`).
DISCONNECT: Final = "condgraph.disconnect"
#: The extension that puts an error's reason in the status line, which is all that many clients show of it.
REASON: Final = "condgraph.reason"


class Disconnect(Protocol):
    """Reports that the client has disconnected, without a waiting task."""

    def notify(self, callback: Callable[[], None] | None) -> bool:
        """Set the function to call when the client disconnects. Returns False if it already has.

        It replaces the function that was set before.
        """
        ...


class BrokenOffError(Exception):
    """Results could not be sent completely."""


def _problem(error: ProtocolError | CondgraphError) -> ProtocolError:
    """Convert an error to a status and a message."""
    if isinstance(error, ProtocolError):
        return error
    if isinstance(error, BusyError):
        return ProtocolError(503, str(error), {"Retry-After": "1"})
    statuses = ((DeadlineError, 503), (ParseError, 400), (OptionError, 400), (UnknownNameError, 404), (UnwritableError, 406))
    return ProtocolError(next((status for kind, status in statuses if isinstance(error, kind)), 500), str(error))


class Exchange:
    """One request and its response.

    `challenge` is how a client without a token is asked for one, and `rated` is whether the client's
    requests are counted (`guard`).
    """

    challenge: ClassVar[str] = "Basic"
    rated: ClassVar[bool] = False

    def __init__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        #: The query string of the address.
        self.address: bytes = scope["query_string"]
        self.chunked = scope["http_version"] != "1.0"
        #: What the log says about the request, and the status and number of bytes that were sent.
        self.outcome, self.status, self.sent = "", 0, 0
        self._begin = time.perf_counter()
        self._compressor: Any = None

    # -- the request -------------------------------------------------------------------------------

    def header(self, name: str) -> str | None:
        """Return a header of the request. Several with the same name are joined to one list."""
        wanted = name.encode()
        values = [value for key, value in self._scope["headers"] if key == wanted]
        return b", ".join(values).decode("latin-1") if values else None

    @property
    def media_type(self) -> str:
        """The media type of the body, without its parameters, in lower case."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def client(self) -> str:
        """The address of the client."""
        return str((self._scope.get("client") or ("",))[0])

    @property
    def root(self) -> str:
        """The path of the application, ending with a slash."""
        return f"{self._scope.get('root_path', '').rstrip('/')}/"

    def after(self, slashes: int) -> bytes:
        """Return the part of the path after so many slashes of the application's path, as it was sent."""
        sent: bytes = self._scope.get("raw_path") or quote(self.path).encode()
        slashes += self.root.count("/") - 1
        return b"".join(sent.partition(b"?")[0].split(b"/", slashes)[slashes:])

    def url(self, path: str) -> str:
        """Return the full address of a path in the application."""
        host = self.header("host")
        if host is None:
            server = self._scope.get("server") or ("localhost", None)
            host = f"{server[0]}:{server[1]}"
        return f"{self._scope.get('scheme', 'http')}://{host}{self.root}{path}"

    async def body(self, most: int) -> bytes:
        """Return the body. Raises status 413 if it has more than `most` bytes."""
        too_long = ProtocolError(413, f"more than {most:,} bytes", {"Connection": "close"})
        length = self.header("content-length")
        if length and length.isdigit() and int(length) > most and self.header("expect"):
            raise too_long
        parts, size = [], 0
        async for part in self.arriving():
            size += len(part)
            # Most clients read the response only after they have sent everything.
            if size > max(DRAIN, most):
                break
            if size <= most:
                parts.append(part)
        if size > most:
            raise too_long
        return b"".join(parts)

    async def arriving(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body as they arrive."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise BrokenOffError("gone")
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def while_connected(self, work: Coroutine[Any, Any, None]) -> None:
        """Run some work, which ends early if the client disconnects."""
        task, gone = asyncio.current_task(), False
        assert task is not None
        cancelled = task.cancelling()

        def disconnected(*_: Any) -> None:
            nonlocal gone
            gone = True
            task.cancel()

        disconnect: Disconnect | None = (self._scope.get("extensions") or {}).get(DISCONNECT)
        watcher: asyncio.Future[None] | None = None
        if disconnect is None:
            # Other servers report a disconnect only to a waiting task.
            watcher = asyncio.ensure_future(self._gone())
            watcher.add_done_callback(disconnected)
        elif not disconnect.notify(disconnected):
            work.close()
            self.outcome = "gone"
            return
        try:
            await work
        except asyncio.CancelledError:
            if not gone or task.uncancel() > cancelled:
                raise
            self.outcome = "gone"
        finally:
            if disconnect is not None:
                disconnect.notify(None)
            if watcher is not None:
                watcher.remove_done_callback(disconnected)
                watcher.cancel()

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # -- the response ------------------------------------------------------------------------------

    @property
    def takes_gzip(self) -> bool:
        """Whether the client accepts gzip."""
        for part in (self.header("accept-encoding") or "")[:_MAX_ENCODINGS].lower().split(","):
            name, _, quality = part.partition(";")
            if name.strip() in ("gzip", "x-gzip"):
                return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
        return False

    async def start(self, status: int, headers: Headers, *, compress: bool = False) -> None:
        """Send the head of the response.

        With `compress`, the body will be compressed if the client accepts that.
        """
        if compress and self.takes_gzip:
            self._compressor = zlib.compressobj(_LEVEL, wbits=_GZIP)
            headers = headers | {"Content-Encoding": "gzip"}
        self.status = status
        raw = [(key.lower().encode(), value.encode("latin-1", "replace")) for key, value in headers.items()]
        standard = _ALWAYS if "Content-Security-Policy" in headers else (*_ALWAYS, _POLICY)
        await self._send({"type": "http.response.start", "status": status, "headers": [*raw, *standard]})

    async def part(self, data: bytes, *, more: bool = True) -> None:
        """Send a part of the body, the last one if there are no `more`."""
        if self._compressor is not None:
            # Flush at once, so that a client that reads results as they arrive need not wait.
            data = self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH if more else zlib.Z_FINISH)
        self.sent += len(data)
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def end(self) -> None:
        """End the body."""
        await self.part(b"", more=False)

    async def reply(self, status: int, body: bytes, headers: Headers, *, compress: bool = False) -> None:
        """Send a complete response. With `compress`, it is compressed if it is worth it and the client accepts it."""
        if compress and len(body) >= _WORTH and self.takes_gzip:
            body = await asyncio.to_thread(gzip.compress, body, _LEVEL, mtime=0)
            headers = headers | {"Content-Encoding": "gzip"}
        await self.start(status, headers | {"Content-Length": str(len(body))} if status != 204 else headers)
        await self.part(body, more=False)

    async def run(self, handler: Callable[[Any], Awaitable[None]], methods: Sequence[str] = ()) -> None:
        """Answer the request, whatever happens, and log it.

        `methods` are the methods that the path supports besides OPTIONS. Empty means all.
        """
        with request_span(self.method, self._route, self._scope["headers"]) as ended:
            try:
                await self._answer_with(handler, methods)
            finally:
                ended(self.status)

    @property
    def _route(self) -> str:
        """The path with parameter names in place of the values that clients send."""
        path = self.path
        for name, value in (self._scope.get("path_params") or {}).items():
            path = path.removesuffix(str(value)) + f"{{{name}}}"
        return path

    async def _answer_with(self, handler: Callable[[Any], Awaitable[None]], methods: Sequence[str]) -> None:
        allow = {"Allow": ", ".join([*(methods or ("GET", "HEAD", "POST", "DELETE")), "OPTIONS"])}
        try:
            if self.method == "OPTIONS":
                await self.reply(204, b"", allow)
            elif methods and self.method not in methods:
                raise ProtocolError(405, f"this path takes {allow['Allow']}, not {self.method}", allow)
            else:
                await handler(self)
        except BrokenOffError as error:
            self.outcome = str(error)
        except (ProtocolError, CondgraphError) as error:
            await self.failed(_problem(error))
        except asyncio.CancelledError:
            self.outcome = "shutdown"
            raise
        finally:
            self._write_log()

    async def refuse(self, problem: ProtocolError) -> None:
        """Send the reason why the request is refused, and log it."""
        try:
            await self.failed(problem)
        finally:
            self._write_log()

    async def failed(self, problem: ProtocolError) -> None:
        """Send an error. If a part of the response has been sent already, it stays incomplete."""
        self.outcome = problem.message.partition("\n")[0]
        if self.status:
            return
        if reason := (self._scope.get("extensions") or {}).get(REASON):
            reason(self.outcome)
        await self.send_problem(problem)

    async def send_problem(self, problem: ProtocolError) -> None:
        """Send an error as text."""
        headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"} | problem.headers
        await self.reply(problem.status, (problem.message + "\n").encode("utf-8", "replace"), headers)

    def _write_log(self) -> None:
        milliseconds = (time.perf_counter() - self._begin) * 1000
        outcome = f" ({self.outcome})" if self.outcome else ""
        _log.info(
            '%s "%s %s" %s %d bytes %.1f ms%s',
            self.client or "-", self.method, self.path, self.status or "-", self.sent, milliseconds, outcome,
        )  # fmt: skip


class Handler:
    """An ASGI application that answers each request with a function, for the methods of its path."""

    def __init__(
        self, answer: Callable[[Any], Awaitable[None]], methods: Sequence[str] = READING, kind: type[Exchange] = Exchange
    ) -> None:
        self._answer, self._methods, self._kind = answer, methods, kind

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._kind(scope, receive, send).run(self._answer, self._methods)


# -- streams -----------------------------------------------------------------------------------------
# Results that are sent while their query is running occupy a process as long as the client reads. Their
# number is limited. If there are more, the slowest ones are ended, so that a few slow readers never block
# everybody else. A client that reads as fast as the results arrive is never ended, however long its query
# takes.

#: How many seconds to wait for a client before it may count as slow, and the bytes per second that count as fast.
_PATIENCE: Final = 1.0
_FAST: Final = 1 << 20
#: The seconds between two checks while there are too many streams.
_INTERVAL: Final = 0.25


class Stream:
    """Results that are being sent, with the time spent waiting for the client."""

    def __init__(self, deadline: asyncio.Timeout) -> None:
        self._deadline = deadline
        self._sent, self._waited, self._since = 0, 0.0, 0.0
        #: Whether the stream was ended to make room for others.
        self.ended = False

    async def send(self, size: int, sending: Awaitable[None]) -> None:
        """Send a part of `size` bytes as soon as the client accepts it."""
        clock = asyncio.get_running_loop().time
        self._since = clock()
        try:
            await sending
        finally:
            self._waited += clock() - self._since
            self._since = 0.0
            self._sent += size

    def rate(self, now: float) -> float | None:
        """Return the bytes per second that the client read while it was waited for.

        None means that it is too early to tell, or that the client is fast.
        """
        waited = self._waited + (now - self._since if self._since else 0.0)
        if waited < _PATIENCE or self._sent > waited * _FAST:
            return None
        return self._sent / waited

    def end(self, now: float) -> None:
        """End the stream to make room for others."""
        self.ended = True
        if not self._deadline.expired():
            self._deadline.reschedule(now)


class Streams:
    """All streams of a server, of which at most `most` may run for long."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: set[Stream] = set()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, deadline: asyncio.Timeout) -> Stream:
        """Begin a stream. It can be ended through its deadline."""
        stream = Stream(deadline)
        self._running.add(stream)
        if self._timer is None:
            self._check()
        return stream

    def leave(self, stream: Stream) -> None:
        """Remove a finished stream."""
        self._running.discard(stream)

    def _check(self) -> None:
        """End the slowest streams while there are too many."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now, staying = loop.time(), [stream for stream in self._running if not stream.ended]
        if len(staying) > self._most:
            slow = sorted((rate, id(stream), stream) for stream in staying if (rate := stream.rate(now)) is not None)
            for _, _, stream in slow[: len(staying) - self._most]:
                stream.end(now)
            self._timer = loop.call_later(_INTERVAL, self._check)
