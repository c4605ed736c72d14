"""One request of the endpoint and its response: the body, the parts, errors as statuses, the line
in the log.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import quote

from condgraph.endpoint.protocol import DRAIN, ProtocolError
from condgraph.engine.errors import CondgraphError, DeadlineError, OptionError, ParseError, UnknownNameError
from condgraph.sparql.workers.pool import BusyError, UnwritableError

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = dict[str, str]

_log: Final = logging.getLogger("condgraph.endpoint")
READING: Final = "GET, HEAD, POST, OPTIONS"
#: Headers of every response; and of all but pages, which have a policy of their own: whatever a result
#: holds, a browser that shows it runs and loads nothing.
_ALWAYS: Final = ((b"x-content-type-options", b"nosniff"), (b"cross-origin-resource-policy", b"same-origin"))
_POLICY: Final = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


#: How results are packed: quickly, and from how many bytes on.
_LEVEL, _GZIP, _WORTH = 1, 31, 1_400
#: Characters of `Accept-Encoding` that are read.
_MOST_ENCODINGS: Final = 1_000


#: Under this name an extension of a request's scope says when the other side goes away.
LEAVING: Final = "condgraph.leaving"
#: And under this one it takes the reason of an error, for the status line: many clients show nothing else of it.
REASON: Final = "condgraph.reason"


class Leaving(Protocol):
    """Says when the other side goes away, without a task that waits for it."""

    def call(self, what: Callable[[], None] | None) -> bool:
        """Call this when it goes away, and nothing else that was given before; False where it is gone
        already.
        """
        ...


class BrokenOffError(Exception):
    """Results could not be sent to their end."""


def _problem(error: Exception, text: str | None = None) -> ProtocolError:
    """An error as a status and a message."""
    if isinstance(error, ProtocolError):
        return error
    if isinstance(error, BusyError):
        return ProtocolError(503, str(error), {"Retry-After": "1"})
    if isinstance(error, DeadlineError):
        return ProtocolError(503, str(error))
    if isinstance(error, ParseError | OptionError):
        return ProtocolError(400, str(error))
    if isinstance(error, UnknownNameError):
        return ProtocolError(404, str(error))
    if isinstance(error, UnwritableError):
        return ProtocolError(406, str(error))
    return ProtocolError(500, str(error))


class Exchange:
    """One request and its response. `challenge` is how a client without a token is asked for one, `rated`
    says whether requests of a client are counted (`guard`).
    """

    challenge: ClassVar[str] = "Basic"
    rated: ClassVar[bool] = False

    def __init__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.method: str = scope["method"]
        self.address: bytes = scope["query_string"]
        self.chunked = scope["http_version"] != "1.0"
        self.outcome, self.status, self.sent = "", 0, 0
        self._begin = time.perf_counter()
        self._packer: Any = None

    def header(self, name: str) -> str | None:
        """A header of the request; several of one name are one list."""
        wanted = name.encode()
        found = [value for key, value in self._scope["headers"] if key == wanted]
        return b", ".join(found).decode("latin-1") if found else None

    @property
    def client(self) -> str:
        """The address of who asks."""
        return str((self._scope.get("client") or ("",))[0])

    @property
    def root(self) -> str:
        """The path that the application is at, which ends with a slash."""
        return f"{self._scope.get('root_path', '').rstrip('/')}/"

    def behind(self, steps: int) -> bytes:
        """What stands behind so many slashes of the application's path, as it was sent."""
        sent: bytes = self._scope.get("raw_path") or quote(self._scope["path"]).encode()
        steps += self.root.count("/") - 1
        return b"".join(sent.partition(b"?")[0].split(b"/", steps)[steps:])

    def at(self, path: str) -> str:
        """The address of a path of the application."""
        host = self.header("host")
        if host is None:
            server = self._scope.get("server") or ("localhost", None)
            host = f"{server[0]}:{server[1]}"
        return f"{self._scope.get('scheme', 'http')}://{host}{self.root}{path}"

    async def body(self, most: int) -> bytes:
        """The body; raises status 413 where it has more than `most` bytes."""
        too_long = f"more than {most:,} bytes"
        length = self.header("content-length")
        if length and length.isdigit() and int(length) > most and self.header("expect"):
            raise ProtocolError(413, too_long, {"Connection": "close"})
        parts, size, more = [], 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise BrokenOffError("gone")
            part = message.get("body", b"")
            size += len(part)
            # Those who send without asking read the answer when they have sent it all.
            if size > max(DRAIN, most):
                break
            if size <= most:
                parts.append(part)
            more = message.get("more_body", False)
        if size > most:
            raise ProtocolError(413, too_long, {"Connection": "close"})
        return b"".join(parts)

    async def arriving(self) -> AsyncIterator[bytes]:
        """The parts of the body as they come."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise BrokenOffError("gone")
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def gone(self) -> None:
        """Wait until the other side goes away."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def while_there(self, answer: Coroutine[Any, Any, None]) -> None:
        """Answer, unless the other side goes away before: that ends the work."""
        leaving: Leaving | None = (self._scope.get("extensions") or {}).get(LEAVING)
        if leaving is None:
            await self._while_not_told(answer)
            return
        task = asyncio.current_task()
        assert task is not None
        before, told = task.cancelling(), False

        def leave() -> None:
            nonlocal told
            told = True
            task.cancel()

        if not leaving.call(leave):
            answer.close()
            self.outcome = "gone"
            return
        try:
            await answer
        except asyncio.CancelledError:
            if not told or task.uncancel() > before:
                raise
            self.outcome = "gone"
        finally:
            leaving.call(None)

    async def _while_not_told(self, answer: Coroutine[Any, Any, None]) -> None:
        """The same on a server that says it to those only who wait for it."""
        work, gone = asyncio.ensure_future(answer), asyncio.ensure_future(self.gone())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.outcome = "gone"
                return
            await work
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    @property
    def packed(self) -> bool:
        """Whether the client takes gzip."""
        for one in (self.header("accept-encoding") or "")[:_MOST_ENCODINGS].lower().split(","):
            name, _, quality = one.partition(";")
            if name.strip() in ("gzip", "x-gzip"):
                return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
        return False

    async def options(self) -> None:
        """Which methods there are."""
        allow = "GET, HEAD, OPTIONS" if self._scope["path"].startswith("/data") else READING
        await self.reply(204, b"", {"Allow": allow})

    async def start(self, status: int, headers: Headers, *, packs: bool = False) -> None:
        """Send the head of the response; `packs`: with the body packed, where the client takes that."""
        if packs and self.packed:
            self._packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
            headers = headers | {"Content-Encoding": "gzip"}
        self.status = status
        raw = [(key.lower().encode(), value.encode("latin-1", "replace")) for key, value in headers.items()]
        own = _ALWAYS if "Content-Security-Policy" in headers else (*_ALWAYS, _POLICY)
        await self._send({"type": "http.response.start", "status": status, "headers": [*raw, *own]})

    async def part(self, data: bytes) -> None:
        """Send a part of the body."""
        if self._packer is not None:
            # What was packed is sent at once: who reads results as they come need not wait.
            data = self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        self.sent += len(data)
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last part of the body."""
        if self._packer is not None:
            data = self._packer.compress(data) + self._packer.flush()
        self.sent += len(data)
        await self._send({"type": "http.response.body", "body": data})

    async def reply(self, status: int, body: bytes, headers: Headers, *, packs: bool = False) -> None:
        """Send a whole response; `packs`: packed, where that is worth it and the client takes it."""
        if packs and len(body) >= _WORTH and self.packed:
            body = await asyncio.to_thread(gzip.compress, body, _LEVEL, mtime=0)
            headers = headers | {"Content-Encoding": "gzip"}
        await self.start(status, headers | {"Content-Length": str(len(body))} if status != 204 else headers)
        await self.end(body)

    async def run(self, handler: Callable[[Any], Awaitable[None]]) -> None:
        """Answer the request, whatever happens, and write its line to the log."""
        try:
            if self.method == "OPTIONS":
                await self.options()
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
            self._logged()

    async def refuse(self, problem: ProtocolError) -> None:
        """Say why the request is not answered, and write its line to the log."""
        try:
            await self.failed(problem)
        finally:
            self._logged()

    def reason(self, problem: ProtocolError) -> bool:
        """Put what is wrong into the log and the status line; False where that is out already, and the
        response stays without its end.
        """
        self.outcome = problem.message.partition("\n")[0]
        if self.status:
            return False
        if say := (self._scope.get("extensions") or {}).get(REASON):
            say(self.outcome)
        return True

    async def failed(self, problem: ProtocolError) -> None:
        """Say what is wrong."""
        if not self.reason(problem):
            return
        headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"} | problem.headers
        await self.reply(problem.status, (problem.message + "\n").encode("utf-8", "replace"), headers)

    def _logged(self) -> None:
        client = self._scope.get("client") or ("-",)
        milliseconds = (time.perf_counter() - self._begin) * 1000
        said = f" ({self.outcome})" if self.outcome else ""
        _log.info(
            '%s "%s %s" %s %d bytes %.1f ms%s',
            client[0], self.method, self._scope["path"], self.status or "-", self.sent, milliseconds, said,
        )  # fmt: skip
