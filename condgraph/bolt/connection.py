"""The Bolt protocol, versions 4.1 to 4.4 and 5.0 to 5.4: states of a connection, messages, and timeouts.

All input is limited: the bytes of a message (8 KiB before the login), waiting messages, and results waiting to be pulled.
Queries run in the workers of the API, within the deadline of the server, and only read.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from condgraph.bolt.catalog import AGENT, ALIAS
from condgraph.bolt.packstream import MalformedError, Structure, Unpacker, packed
from condgraph.endpoint.connections import Connections, WatchedConnection
from condgraph.endpoint.guard import Guard
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import CondgraphError, MissingExtraError, requiring

# -- WebSockets --------------------------------------------------------------------------------------

# Bolt within WebSockets, as sent by pages in a browser: the handshake, which the HTTP guard checks, and
# the frames.


#: Largest message of a client, in bytes; drivers send parts of 1,400 bytes.
_MAX_MESSAGE: Final = 128 << 10


class WebSocketTransport:
    """A transport that writes Bolt as binary WebSocket messages, and decodes those of the client."""

    def __init__(self, transport: asyncio.Transport, guard: Guard) -> None:
        with requiring("websockets", "serve"):
            from websockets.server import ServerProtocol
        self._transport, self._guard = transport, guard
        self._protocol = ServerProtocol(max_size=_MAX_MESSAGE)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def received(self, data: bytes, log: Callable[[str], None]) -> bytes:
        """Return the Bolt bytes in data from the client. Refused or malformed data ends the connection; `log` is told why."""
        from websockets.frames import Opcode
        from websockets.http11 import Request

        protocol, parts = self._protocol, []
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Request):
                self._answer(event, log)
            elif event.opcode is Opcode.TEXT:  # type: ignore[union-attr]
                log("a WebSocket sent a text, and Bolt is binary")
                protocol.fail(1003, "Bolt is binary")
            elif event.opcode in (Opcode.BINARY, Opcode.CONT):  # type: ignore[union-attr]
                parts.append(bytes(event.data))  # type: ignore[union-attr]
        self._flush()
        return b"".join(parts)

    def _answer(self, request: Any, log: Callable[[str], None]) -> None:
        protocol = self._protocol
        headers = {name.lower(): ", ".join(request.headers.get_all(name)) for name in request.headers}
        try:
            self._guard.enter("GET", headers)
            response = protocol.accept(request)
        except ProtocolError as problem:
            log(problem.message)
            response = protocol.reject(403, problem.message + "\n")
        protocol.send_response(response)

    def _flush(self) -> None:
        for part in self._protocol.data_to_send():
            if part:
                self._transport.write(part)
            else:
                # An empty part marks the end of the output.
                self._transport.close()

    def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._protocol.send_binary(data)
        self._flush()

    def close(self) -> None:
        """Close after everything is sent."""
        from websockets.protocol import State

        if self._protocol.state is State.OPEN and not self._transport.is_closing():
            self._protocol.send_close(1000)
            self._flush()
        self._transport.close()


# -- Connections ------------------------------------------------------------


_log: Final = logging.getLogger("condgraph.endpoint")
#: First byte of a WebSocket handshake (`GET`).
_HTTP: Final = b"G"
MAGIC: Final = b"\x60\x60\xb0\x17"
#: The client's offer to choose from a list of versions (Bolt's handshake manifest, version 1).
_MANIFEST: Final = b"\x00\x00\x01\xff"
#: The newest and the oldest minor version of each major one.
_VERSIONS: Final = {5: (4, 0), 4: (4, 1)}
HELLO, GOODBYE, RESET, RUN, BEGIN, COMMIT, ROLLBACK = 0x01, 0x02, 0x0F, 0x10, 0x11, 0x12, 0x13
DISCARD, PULL, TELEMETRY, ROUTE, LOGON, LOGOFF = 0x2F, 0x3F, 0x54, 0x66, 0x6A, 0x6B
_NAMES: Final = {
    HELLO: "HELLO", GOODBYE: "GOODBYE", RESET: "RESET", RUN: "RUN", BEGIN: "BEGIN", COMMIT: "COMMIT", ROLLBACK: "ROLLBACK",
    DISCARD: "DISCARD", PULL: "PULL", TELEMETRY: "TELEMETRY", ROUTE: "ROUTE", LOGON: "LOGON", LOGOFF: "LOGOFF",
}  # fmt: skip
_SUCCESS, _RECORD, _IGNORED, _FAILURE = 0x70, 0x71, 0x7E, 0x7F
#: Most bytes of a message before the login, most waiting messages, and most open results in a transaction.
_MAX_BEFORE_LOGIN: Final = 8 << 10
_MAX_WAITING: Final = 64
_MAX_RESULTS: Final = 64
#: Bytes of a message from which it is decoded in a thread, of a part that is written at once, and of the
#: largest result.
_LARGE: Final = 32 << 10
_CHUNK: Final = 64 << 10
_MAX_BYTES: Final = 64 << 20
_LENGTH: Final = struct.Struct(">I")
_RECORD_HEAD: Final = bytes((0xB1, _RECORD))
#: Statements allowed on the database `system`.
_ADMINISTRATIVE: Final = re.compile(r"\s*+(?:SHOW\b|CALL\s++dbms?\.)", re.IGNORECASE)
_AT: Final = re.compile(r"\(at character (\d{1,9})\)")
_INVALID: Final = "Neo.ClientError.Request.Invalid"
_BUSY: Final = "Neo.TransientError.Request.NoThreadsAvailable"
#: Neo4j's codes by those of condgraph's errors.
_CODES: Final = {
    "write": "Neo.ClientError.Statement.AccessMode",
    "parse": "Neo.ClientError.Statement.SyntaxError",
    "unsupported": "Neo.ClientError.Statement.UnsupportedOperationError",
    "plan": "Neo.ClientError.Statement.SemanticError",
    "unknown-name": "Neo.ClientError.Statement.SemanticError",
    "ambiguous-name": "Neo.ClientError.Statement.SemanticError",
    "literal": "Neo.ClientError.Statement.ArgumentError",
    "option": "Neo.ClientError.Statement.ArgumentError",
    "malformed": _INVALID,
    "deadline": "Neo.ClientError.Transaction.TransactionTimedOut",
    "busy": _BUSY,
    "interrupted": "Neo.DatabaseError.Statement.ExecutionFailed",
    "cancelled": "Neo.ClientError.Transaction.TransactionTerminated",
}

#: Runs a call in a worker, with a timeout in seconds; returns its status and body.
Ask = Callable[[dict[str, Any], float], Awaitable[tuple[int, bytes]]]


class Failure(Exception):
    """A failure response to a message; `closing` ends the connection."""

    def __init__(self, code: str, message: str, *, closing: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.closing = code, message, closing


@dataclass
class Bolt:
    """The state that all connections share.

    `ask` runs queries, `database` is the name of the graph, `address` that of the server; `timeout` is the deadline of
    a query in seconds, `rows` the most rows of a result (None: unlimited), `largest` the bytes of the largest message,
    `idle_timeout` how many seconds a connection may be idle.
    """

    ask: Ask
    guard: Guard
    database: str
    address: str
    timeout: float = 30.0
    rows: int | None = 10_000
    largest: int = 4 << 20
    idle_timeout: float = 3600.0
    open: set[BoltConnection] = field(default_factory=set)
    count: int = 0
    #: Bytes of results that wait to be pulled.
    waiting: int = 0

    def factory(self, registry: Connections) -> Callable[[], BoltConnection]:
        """Return a function that creates a connection for each client."""
        return lambda: BoltConnection(self, registry)

    async def close(self, grace: float) -> None:
        """Close idle connections now, and the others when they have responded, or after `grace` seconds."""
        until = time.monotonic() + grace
        while self.open:
            late = time.monotonic() >= until
            for connection in list(self.open):
                if late or not connection.busy:
                    connection.abort()
            await asyncio.sleep(0.02)
            if late:
                return


class _Result:
    """A result that is pulled record by record."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0
        self.meta: dict[str, Any] = json.loads(self.next())
        self.size = len(body)

    def next(self) -> bytes:
        """Return the next record, packed."""
        (size,) = _LENGTH.unpack_from(self._body, self._at)
        begin = self._at + _LENGTH.size
        self._at = begin + size
        return self._body[begin : self._at]

    @property
    def ended(self) -> bool:
        """Whether there are no more records."""
        return self._at == len(self._body)


@dataclass
class _Transaction:
    """A transaction: the seconds that each of its queries may take, when it ends, and the generation that it reads."""

    timeout: float
    until: float | None
    notifications: Mapping[str, Any]
    generation: str | None = None


class BoltConnection(WatchedConnection, asyncio.Protocol):
    """One connection: bytes become messages, which a task processes one after the other."""

    def __init__(self, server: Bolt, registry: Connections) -> None:
        super().__init__()
        self.server, self.registry = server, registry
        self.user: str | None = None
        self._name = ""
        self._version: tuple[int, int] | None = None
        self._offered = self._hello = self._failed = self._trusted = self.refused = False
        self._utc = False
        self._socket: WebSocketTransport | None = None
        self._buffer, self._message = bytearray(), bytearray()
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._resets = 0
        self._asking: asyncio.Task[tuple[int, bytes]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._began = self._made = time.monotonic()
        self._transaction: _Transaction | None = None
        self._results: dict[int, _Result] = {}
        self._last = -1
        self._notifications: Mapping[str, Any] = {}

    # -- from the event loop -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        problem = self.connected(transport)
        self.transport = cast(asyncio.Transport, self.counted)
        self.server.count += 1
        self._name = f"bolt-{self.server.count}"
        if problem is not None:
            self.refused = True
            self.transport.abort()
            return
        self.server.open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.registry.remove(self)
        self.server.open.discard(self)
        self._messages.clear()
        self._forget()
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """Pause, as the client reads more slowly than records arrive."""
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Process data from the client."""
        if self.refused or self.transport.is_closing():
            return
        if not self._buffer and not self._message:
            self._began = time.monotonic()
        try:
            if self._version is None and not self._buffer and self._socket is None and data[:1] == _HTTP:
                self._socket = WebSocketTransport(self.transport, self.server.guard)
                self.transport = cast(asyncio.Transport, self._socket)
            if self._socket is not None:
                data = self._socket.received(data, lambda why: self.registry.log(why, self.client_key))
                if self.transport.is_closing():
                    return
            self._buffer += data
            if self._version is None and not self._shake():
                return
            self._split()
        except Failure as problem:
            self._fail(problem)
            return
        except MissingExtraError as error:
            self._refuse(str(error))
            return
        if self._messages and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())
        if self._full:
            self.transport.pause_reading()

    @property
    def _full(self) -> bool:
        return len(self._messages) > _MAX_WAITING or self._size > self.server.largest

    def eof_received(self) -> bool:
        """Finish earlier requests before closing, as the client sends no more."""
        if self._task is None:
            return False
        self._messages.append(bytes((0xB0, GOODBYE)))
        return True

    # -- handshake and chunks ----------------------------------------------------------------------

    def _shake(self) -> bool:
        """Agree on a version; return whether one is agreed."""
        buffer = self._buffer
        if self._offered:
            if len(buffer) < 5:
                return False
            version = buffer[3], buffer[2]
            newest, oldest = _VERSIONS.get(version[0], (-1, 0))
            if buffer[:2] != b"\x00\x00" or not oldest <= version[1] <= newest or buffer[4]:
                self._refuse("no version of Bolt that was offered")
                return False
            del buffer[:5]
            self._version = version
            return True
        if not buffer:
            return False
        if bytes(buffer[:4]) != MAGIC[: len(buffer)]:
            self._refuse("what came was no Bolt")
            return False
        if len(buffer) < 20:
            return False
        for start in range(4, 20, 4):
            proposal = bytes(buffer[start : start + 4])
            if proposal == _MANIFEST:
                self._offered = True
                versions = [bytes((0, newest - oldest, newest, major)) for major, (newest, oldest) in _VERSIONS.items()]
                self.transport.write(_MANIFEST + bytes((len(versions),)) + b"".join(versions) + b"\x00")
                del buffer[:20]
                return False if not buffer else self._shake()
            _, back, minor, major = proposal
            newest, oldest = _VERSIONS.get(major, (-1, 0))
            chosen = min(minor, newest)
            if chosen >= max(minor - back, oldest):
                self._version = major, chosen
                self.transport.write(bytes((0, 0, chosen, major)))
                del buffer[:20]
                return True
        self.transport.write(b"\x00\x00\x00\x00")
        self._refuse("no version of Bolt that is spoken here")
        return False

    def _refuse(self, why: str) -> None:
        self.registry.log(why, self.client_key)
        self.transport.close()
        self._buffer.clear()

    def _split(self) -> None:
        """Split the received chunks into messages."""
        buffer, start = self._buffer, 0
        most = self.server.largest if self._trusted else _MAX_BEFORE_LOGIN
        while len(buffer) - start >= 2:
            size = (buffer[start] << 8) | buffer[start + 1]
            if len(self._message) + size > most:
                raise Failure(_INVALID, f"a message has more than {most:,} bytes", closing=True)
            if len(buffer) - start < 2 + size:
                break
            self._message += buffer[start + 2 : start + 2 + size]
            start += 2 + size
            # An empty chunk on its own keeps a connection alive.
            if not size and self._message:
                self._receive(bytes(self._message))
                self._message.clear()
        del buffer[:start]

    def _receive(self, message: bytes) -> None:
        self._messages.append(message)
        self._size += len(message)
        if message[1:2] == bytes((RESET,)):
            self._resets += 1
            if self._asking is not None:
                self._asking.cancel()

    # -- answers -----------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether messages are being processed."""
        return self._task is not None

    def abort(self) -> None:
        """Close at once."""
        if self._asking is not None:
            self._asking.cancel()
        self.transport.close()

    def _send(self, tag: int, meta: Mapping[str, Any] | None = None) -> None:
        self.transport.write(_chunked(packed(Structure(tag, () if meta is None else (meta,)))))

    def _fail(self, problem: Failure) -> None:
        """Send a failure; until a reset, all messages are ignored."""
        if problem.closing:
            self.registry.log(problem.message, self.client_key)
        self._send(_FAILURE, {"code": problem.code, "message": problem.message})
        self._failed = True
        self._forget()
        if problem.closing:
            self._messages.clear()
            self._buffer.clear()
            self.transport.close()

    def _forget(self) -> None:
        for result in self._results.values():
            self.server.waiting -= result.size
        self._results.clear()
        self._last = -1

    async def _work(self) -> None:
        try:
            while self._messages and not self.transport.is_closing():
                message = self._messages.popleft()
                self._size -= len(message)
                if not self._full:
                    self.transport.resume_reading()
                try:
                    await self._answer(message)
                except Failure as problem:
                    self._fail(problem)
                except MalformedError as error:
                    self._fail(Failure(_INVALID, error.message, closing=True))
                except CondgraphError as error:
                    self._fail(Failure(_CODES.get(error.code, "Neo.DatabaseError.General.UnknownError"), str(error)))
        except asyncio.CancelledError:
            self.transport.abort()
            raise
        except Exception:  # noqa: BLE001 - the client is told, and the log has the rest
            _log.exception("a Bolt message failed")
            self._fail(Failure("Neo.DatabaseError.General.UnknownError", "the server failed", closing=True))
        finally:
            self._task, self._began = None, time.monotonic()

    async def _answer(self, message: bytes) -> None:
        if len(message) > _LARGE:
            tag, fields, parameter_bytes = await asyncio.to_thread(_unpack, message)
        else:
            tag, fields, parameter_bytes = _unpack(message)
        if tag == GOODBYE:
            self._messages.clear()
            self.transport.close()
        elif self.user is None:
            self._login(tag, fields)
        elif tag == RESET:
            self._resets -= 1
            self._transaction = None
            self._forget()
            if self._resets:
                self._send(_IGNORED)
            else:
                self._failed = False
                self._send(_SUCCESS, {})
        elif self._failed or self._resets:
            if tag not in _NAMES:
                raise MalformedError(f"unknown message tag {tag:02X}")
            self._send(_IGNORED)
        else:
            await self._ready(tag, fields, parameter_bytes)

    async def _ready(self, tag: int, fields: list[Any], given: bytes) -> None:
        """Process a message of a client that has logged in."""
        streaming = bool(self._results)
        if tag == RUN:
            if streaming and self._transaction is None:
                raise _out_of_order(tag, "the result before is not pulled")
            await self._run(fields, given)
        elif tag in (PULL, DISCARD):
            await self._pull(_map(fields, 0), discard=tag == DISCARD)
        elif tag == BEGIN:
            if streaming or self._transaction is not None:
                raise _out_of_order(tag, "a transaction is open, or a result is not pulled")
            extra = _map(fields, 0)
            self._database(extra)
            timeout = self._timeout(extra)
            until = None if not extra.get("tx_timeout") else time.monotonic() + timeout
            self._transaction = _Transaction(timeout, until, extra)
            self._send(_SUCCESS, {})
        elif tag in (COMMIT, ROLLBACK):
            if self._transaction is None:
                raise _out_of_order(tag, "no transaction is open")
            bookmark = {"bookmark": self._bookmark(self._transaction.generation)} if tag == COMMIT else {}
            self._transaction = None
            self._forget()
            self._send(_SUCCESS, bookmark)
        elif tag == ROUTE:
            self._route(fields)
        elif tag == LOGOFF and self._version >= (5, 1):  # type: ignore[operator]
            if streaming or self._transaction is not None:
                raise _out_of_order(tag, "a transaction is open, or a result is not pulled")
            self.user, self._made = None, time.monotonic()
            self._send(_SUCCESS, {})
        elif tag == TELEMETRY and self._version >= (5, 4):  # type: ignore[operator]
            self._send(_SUCCESS, {})
        else:
            raise _out_of_order(tag, "the client has logged in")

    # -- login -------------------------------------------------------------------------------------

    def _login(self, tag: int, fields: list[Any]) -> None:
        assert self._version is not None
        extra = _map(fields, 0)
        with_login = self._version < (5, 1)
        if tag == HELLO and not self._hello:
            meta: dict[str, Any] = {"server": AGENT, "connection_id": self._name, "hints": {}}
            patches = extra.get("patch_bolt")
            self._utc = self._version[0] >= 5
            if not self._utc and isinstance(patches, list) and "utc" in patches:
                self._utc, meta["patch_bolt"] = True, ["utc"]
            self._notifications = extra
            if with_login:
                self._authenticate(extra)
            self._hello = True
            self._send(_SUCCESS, meta)
        elif tag == LOGON and self._hello and not with_login:
            self._authenticate(extra)
            self._send(_SUCCESS, {})
        else:
            what = _NAMES.get(tag, f"a message of the tag {tag:02X}")
            raise Failure(_INVALID, f"{what} before the login", closing=True)

    def _authenticate(self, extra: Mapping[str, Any]) -> None:
        guard = self.server.guard
        if guard.closed:
            raise Failure("Neo.ClientError.Security.Forbidden", guard.closed, closing=True)
        scheme, token = extra.get("scheme", "none"), extra.get("credentials", "")
        if scheme not in ("none", "basic", "bearer") or not isinstance(token, str):
            raise Failure(
                "Neo.ClientError.Security.Unauthorized", "the schemes of a login are basic, bearer and none", closing=True
            )
        try:
            self.user = guard.known(self.client_key, f"Bearer {token}" if scheme != "none" else None)
        except ProtocolError as problem:
            code = "Unauthorized" if problem.status == 401 else "AuthenticationRateLimit"
            raise Failure(f"Neo.ClientError.Security.{code}", problem.message, closing=True) from None
        self._trusted = True

    # -- queries -----------------------------------------------------------------------------------

    def _database(self, extra: Mapping[str, Any], text: str = "") -> None:
        name = extra.get("db")
        if extra.get("imp_user"):
            raise Failure("Neo.ClientError.Security.Forbidden", "no user can be impersonated here")
        if not name or (isinstance(name, str) and name.lower() in (self.server.database.lower(), ALIAS)):
            return
        if isinstance(name, str) and name.lower() == "system" and (not text or _ADMINISTRATIVE.match(text)):
            return
        raise Failure(
            "Neo.ClientError.Database.DatabaseNotFound", f"there is no database {name!r}; the graph is {self.server.database!r}"
        )

    def _timeout(self, extra: Mapping[str, Any]) -> float:
        wanted = extra.get("tx_timeout")
        if wanted is None or wanted == 0:
            return self.server.timeout
        if type(wanted) is not int or wanted < 0:
            raise Failure("Neo.ClientError.Statement.ArgumentError", "tx_timeout is a number of milliseconds")
        return min(self.server.timeout, wanted / 1000)

    def _bookmark(self, generation: str | None) -> str:
        return f"{self.server.database}:{generation or ''}"

    async def _run(self, fields: list[Any], given: bytes) -> None:
        if len(fields) != 3 or not isinstance(fields[0], str) or not isinstance(fields[1], dict):
            raise MalformedError("RUN has a text, a map of parameters, and a map")
        text, extra, transaction = fields[0], _map(fields, 2), self._transaction
        if len(self._results) >= _MAX_RESULTS:
            raise Failure(_INVALID, f"a transaction has {_MAX_RESULTS} results that are not pulled")
        self._database(extra if transaction is None else transaction.notifications, text)
        timeout = self._timeout(extra) if transaction is None else transaction.timeout
        if transaction is not None and transaction.until is not None:
            timeout = transaction.until - time.monotonic()
            if timeout <= 0:
                raise Failure(_CODES["deadline"], "the transaction has taken longer than its timeout")
        try:
            self.server.guard.admit(self.client_key, self.user or "")
        except ProtocolError as problem:
            raise Failure(_BUSY, problem.message) from None
        begin = time.perf_counter()
        result = await self._query(text, given, timeout)
        milliseconds = (time.perf_counter() - begin) * 1000
        if transaction is not None:
            generation = result.meta["generation"]
            if transaction.generation not in (None, generation):
                raise Failure(
                    "Neo.TransientError.Transaction.Outdated", "the graph was loaded again during the transaction; begin it again"
                )
            transaction.generation = generation
        self.server.waiting += result.size
        if self.server.waiting > self.registry.bounds.unread_bytes:
            self.server.waiting -= result.size
            raise Failure("Neo.TransientError.General.MemoryPoolOutOfMemoryError", "too many results wait to be pulled")
        meta: dict[str, Any] = {"fields": result.meta["fields"], "t_first": round(milliseconds)}
        self._last += 1
        self._results[self._last] = result
        result.meta["text"], result.meta["extra"] = text, extra if transaction is None else transaction.notifications
        if transaction is not None:
            meta["qid"] = self._last
        self._send(_SUCCESS, meta)

    async def _query(self, text: str, given: bytes, timeout: float) -> _Result:
        server = self.server
        arguments = {
            "program": text,
            "parameters": base64.b64encode(given).decode(),
            "limit": server.rows,
            "bytes": _MAX_BYTES,
            "element_ids": self._version >= (5, 0),  # type: ignore[operator]
            "utc": self._utc,
            "client": {"user": self.user, "address": server.address, "id": self._name},
        }
        begin, outcome = time.perf_counter(), "ok"
        self._asking = asyncio.get_running_loop().create_task(self._in_worker(arguments, timeout))
        try:
            status, body = await self._asking
            if status != 200:
                problem = json.loads(body)["error"]
                outcome = problem["code"]
                raise _failure(problem)
            return _Result(body)
        except CondgraphError as error:
            outcome = error.code
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            if not self._asking.cancelled() or self.transport.is_closing():
                self._asking.cancel()
                raise
            raise Failure(_CODES["cancelled"], "the query was ended by a reset") from None
        finally:
            self._asking = None
            milliseconds = (time.perf_counter() - begin) * 1000
            _log.info("%s Bolt RUN %d characters %.1f ms (%s)", self.client_key or "-", len(text), milliseconds, outcome)

    async def _in_worker(self, arguments: dict[str, Any], timeout: float) -> tuple[int, bytes]:
        return await self.server.ask(arguments, timeout)

    async def _pull(self, extra: Mapping[str, Any], *, discard: bool) -> None:
        """Send records, or skip them; after the last one, send the summary of the result."""
        number, count = extra.get("qid", -1), extra.get("n", -1)
        number = self._last if number == -1 else number
        result = self._results.get(number) if type(number) is int else None
        if result is None:
            raise _out_of_order(DISCARD if discard else PULL, "there is no such result")
        if type(count) is not int or (count < 1 and count != -1):
            raise Failure(_INVALID, "n is a number of records, or -1 for all")
        out, begin = bytearray(), time.perf_counter()
        while count and not result.ended:
            record = result.next()
            count -= 1
            if discard:
                continue
            out += _chunked(_RECORD_HEAD + record)
            if len(out) >= _CHUNK:
                self.transport.write(bytes(out))
                out.clear()
                await self._writable.wait()
                if self._resets or self.transport.is_closing():
                    # A reset ends the records; its own response follows.
                    self._send(_IGNORED)
                    return
        if out:
            self.transport.write(bytes(out))
        if not result.ended:
            self._send(_SUCCESS, {"has_more": True})
            return
        meta: dict[str, Any] = {"type": "r", "t_last": round((time.perf_counter() - begin) * 1000), "db": self.server.database}
        if notes := self._noted(result.meta):
            meta["notifications"] = notes
        if "plan" in result.meta:
            meta["plan"] = result.meta["plan"]
        if self._transaction is None:
            meta["bookmark"] = self._bookmark(result.meta["generation"])
        self.server.waiting -= result.size
        del self._results[number]
        self._send(_SUCCESS, meta)

    def _noted(self, about: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return warnings as notifications, those that the client wants."""
        extra = {**self._notifications, **about["extra"]}
        minimum, disabled = extra.get("notifications_minimum_severity"), extra.get("notifications_disabled_categories") or ()
        if minimum == "OFF":
            return []
        notes = [_notification(text, about["text"]) for text in about["warnings"]]
        return [
            note for note in notes if (minimum != "WARNING" or note["severity"] == "WARNING") and note["category"] not in disabled
        ]

    def _route(self, fields: list[Any]) -> None:
        routing = _map(fields, 0)
        extra = fields[2] if len(fields) > 2 else None
        wanted = extra if isinstance(extra, dict) else {"db": extra}
        self._database(wanted)
        address = routing.get("address")
        address = address if isinstance(address, str) and 0 < len(address) < 300 else self.server.address
        servers = [{"addresses": [address], "role": role} for role in ("READ", "WRITE", "ROUTE")]
        # Drivers look up the table by the name that they sent.
        self._send(_SUCCESS, {"rt": {"ttl": 300, "db": wanted.get("db") or self.server.database, "servers": servers}})

    # -- timeouts ----------------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """Close the connection if its client has timed out."""
        if self._reads_too_slowly(now):
            self.registry.log("results read too slowly", self.client_key)
            self.transport.abort()
            return
        if self.transport.is_closing():
            return
        bounds = self.registry.bounds
        if self.user is None:
            late = now - self._made > bounds.head_timeout
        elif self.busy:
            self._began = now
            return
        elif self._buffer or self._message:
            if now - self._began > bounds.body_timeout:
                self._fail(Failure(_INVALID, f"a message took more than {bounds.body_timeout:g} s", closing=True))
            return
        else:
            late = now - self._began > self.server.idle_timeout
        if late:
            self.transport.abort()


def _unpack(message: bytes) -> tuple[int, list[Any], bytes]:
    """Return the tag and fields of a message, and the bytes of the second field. Raises `MalformedError`."""
    unpacker = Unpacker(message)
    tag, size = unpacker.head()
    fields, second = [], b""
    for number in range(size):
        begin = unpacker.at
        fields.append(unpacker.value())
        if number == 1:
            second = message[begin : unpacker.at]
    if not unpacker.ended:
        raise MalformedError("bytes follow a message")
    return tag, fields, second


def _map(fields: list[Any], at: int) -> dict[str, Any]:
    """Return the map at an index; empty if the message has fewer fields."""
    if at >= len(fields):
        return {}
    if not isinstance(fields[at], dict):
        raise MalformedError("a field of a message is a map, and something else came")
    return cast(dict[str, Any], fields[at])


def _out_of_order(tag: int, why: str) -> Failure:
    return Failure(_INVALID, f"{_NAMES.get(tag, f'a message of the tag {tag:02X}')}: {why}", closing=True)


def _failure(problem: Mapping[str, Any]) -> Failure:
    """Turn an error of a worker into a failure."""
    message = problem["message"]
    if problem.get("span"):
        message += f" (at character {problem['span'][0] + 1})"
    if problem.get("candidates"):
        message += f"; nearest: {', '.join(map(repr, problem['candidates']))}"
    if problem.get("hint"):
        message += f"; {problem['hint']}"
    code = _CODES.get(problem["code"], "Neo.DatabaseError.General.UnknownError")
    if problem["message"].startswith("there is no procedure"):
        code = "Neo.ClientError.Procedure.ProcedureNotFound"
    elif problem["message"].startswith("the parameter $") and problem["message"].endswith("is not given"):
        code = "Neo.ClientError.Statement.ParameterMissing"
    return Failure(code, message)


#: Beginnings of warnings, with the code, title and category of their notifications.
_NOTES: Final = (
    ("the graph has no label", "UnknownLabelWarning", "The label is not in the graph.", "UNRECOGNIZED"),
    ("the graph has no relationship type", "UnknownRelationshipTypeWarning", "The type is not in the graph.", "UNRECOGNIZED"),
    ("the graph has no property", "UnknownPropertyKeyWarning", "The property is not in the graph.", "UNRECOGNIZED"),
)


def _notification(text: str, program: str) -> dict[str, Any]:
    """Return a warning as a notification."""
    code, title, category = next(
        ((code, title, category) for begin, code, title, category in _NOTES if text.startswith(begin)),
        ("CondgraphWarning", "A warning of condgraph.", "GENERIC"),
    )
    severity = "INFORMATION" if text.startswith("the answer is empty") else "WARNING"
    note: dict[str, Any] = {
        "code": f"Neo.ClientNotification.Statement.{code}",
        "title": title,
        "description": text,
        "severity": severity,
        "category": category,
    }
    if (match := _AT.search(text)) is not None:
        offset = int(match[1]) - 1
        before = program[:offset]
        note["position"] = {"offset": offset, "line": before.count("\n") + 1, "column": offset - before.rfind("\n")}
    return note


def _chunked(message: bytes) -> bytes:
    """Return a message in chunks."""
    if len(message) < 1 << 16:
        return len(message).to_bytes(2, "big") + message + b"\x00\x00"
    parts = []
    for start in range(0, len(message), 0xFFFF):
        part = message[start : start + 0xFFFF]
        parts += [len(part).to_bytes(2, "big"), part]
    return b"".join([*parts, b"\x00\x00"])
