"""`/api/v1` over HTTP: each operation of `spec`, files that are dropped, the OpenAPI document.

Replies are JSON (or CSV, Arrow, lines of JSON), errors too: `{"error": {"code", "message", ...}}`.
Every call has the server's deadline, which a request may shorten; it ends when its client goes.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from condgraph.endpoint.exchange import HOLD, READING, BrokenOffError, Exchange, Handler, Headers, Streams
from condgraph.endpoint.guard import client_of
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import CondgraphError
from condgraph.studio.openapi import document
from condgraph.studio.pools import Call, Given, Workers
from condgraph.studio.requests import from_address, read_json, saved
from condgraph.studio.scratch import ScratchGraphs
from condgraph.studio.spec import DROP, OPERATIONS, Operation, read_fields
from condgraph.studio.work import said, status_of

_log: Final = logging.getLogger("condgraph.endpoint")
#: Files that are taken at once, of all clients and of one.
_DROPS, _DROPS_OF_ONE = 16, 2
_CODES: Final = {
    400: "request", 401: "token", 403: "forbidden", 404: "missing", 405: "method", 406: "format", 413: "too-long",
    415: "media-type", 429: "too-many", 503: "busy",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """Bounds of calls: seconds of each and of a question in words, the most rows (None: any
    number), bytes of a file that is dropped, results on their way at once.
    """

    timeout: float = 30.0
    ask_timeout: float = 120.0
    rows: int | None = 10_000
    drop: int = 64 << 20
    streams: int = 8

    def data(self) -> dict[str, Any]:
        """As the API tells them."""
        return {"timeout": self.timeout, "ask_timeout": self.ask_timeout, "rows": self.rows, "drop": self.drop}


class ApiExchange(Exchange):
    """A request of the API and its response: errors are JSON."""

    challenge = "Bearer"
    rated = True

    async def send_problem(self, problem: ProtocolError) -> None:
        """Send an error as JSON."""
        told = {"error": {"code": _CODES.get(problem.status, "error"), "message": problem.message}}
        await self.tell(problem.status, told, problem.headers)

    async def tell(self, status: int, found: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON."""
        body = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
        own: Headers = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}
        await self.reply(status, body, own | dict(headers or {}))


class Api:
    """The operations, answered by workers."""

    def __init__(self, workers: Workers, limits: ApiLimits, model: str | None) -> None:
        self.workers, self.limits, self.model = workers, limits, model
        self.scratch = ScratchGraphs(limits.drop)
        self._streams = Streams(limits.streams)
        self._drops: Counter[str] = Counter()

    def close(self) -> None:
        """End all processes, and remove scratch graphs."""
        self.workers.close()
        self.scratch.close()

    def handlers(self) -> dict[str, Handler]:
        """The handlers, by path."""
        handlers: dict[str, tuple[Callable[[ApiExchange], Awaitable[None]], tuple[str, ...]]] = {
            "/api/v1/openapi.json": (self.openapi, READING),
            **{f"/api/v1/{operation.name}": (self._handler(operation), operation.methods) for operation in OPERATIONS},
            "/api/v1/graphs": (self.drop, ("POST",)),
            "/api/v1/graphs/{graph}": (self.forget, ("DELETE",)),
            "/api/v1/{rest:path}": (self.missing, ()),
        }
        return {path: Handler(answer, methods, ApiExchange) for path, (answer, methods) in handlers.items()}

    # -- handlers ----------------------------------------------------------------------------------

    async def openapi(self, exchange: ApiExchange) -> None:
        """The document that describes the API."""
        await exchange.tell(200, document())

    async def missing(self, exchange: ApiExchange) -> None:
        """Anything else."""
        raise ProtocolError(404, "the API has no such path; /api/v1/openapi.json lists those that there are")

    def _handler(self, operation: Operation) -> Callable[[ApiExchange], Awaitable[None]]:
        async def handle(exchange: ApiExchange) -> None:
            if exchange.method != "POST":
                arguments = read_fields(from_address(exchange.address, operation.fields), operation.fields)
            else:
                arguments = read_fields(await read_json(exchange), operation.fields)
            await self._called(exchange, operation, arguments)

        return handle

    async def _called(self, exchange: ApiExchange, operation: Operation, arguments: dict[str, Any]) -> None:
        most = self.limits.ask_timeout if operation.name == "ask" else self.limits.timeout
        timeout = min(arguments.pop("timeout", most), most)
        graph = arguments.pop("graph", None)
        place = None if graph is None else self.scratch.find(graph).place
        if self.limits.rows is not None and "limit" in arguments:
            arguments["limit"] = min(arguments["limit"], self.limits.rows)
        if operation.name == "ask" and self.model is None:
            raise ProtocolError(404, "no language model is configured: condgraph serve --llm openai:MODEL")
        call = Call(operation.name, arguments, timeout, place)
        await exchange.while_connected(self._answer(exchange, operation, call))

    async def _answer(self, exchange: ApiExchange, operation: Operation, call: Call) -> None:
        try:
            given = await self.workers.call(call)
        except CondgraphError as error:
            await _told(exchange, error)
            return
        try:
            if operation.name == "about" and given.status == 200:
                found = json.loads(await given.body())
                await exchange.tell(200, found | {"model": self.model, "limits": self.limits.data()})
            else:
                await self._send(exchange, given, call.timeout, stream=operation.stream)
        except CondgraphError as error:
            if exchange.status:
                raise BrokenOffError(error.code) from None
            await _told(exchange, error)
        finally:
            given.close()

    async def _send(self, exchange: ApiExchange, given: Given, timeout: float, *, stream: bool) -> None:
        if given.trace:
            _log.error("a call failed:\n%s", given.trace)
        headers = {"Content-Type": given.media_type, "Cache-Control": "no-store"}
        if not given.media_type.startswith(("application/json", "application/x-ndjson")):
            headers["Content-Disposition"] = f'attachment; filename="answer.{"csv" if "csv" in given.media_type else "arrow"}"'
        if not stream:
            held, size, parts = [], 0, given.parts()
            async for part in parts:
                held.append(part)
                size += len(part)
                if size > HOLD:
                    break
            else:
                await exchange.reply(given.status, b"".join(held), headers)
                return
        else:
            held, parts = [], given.parts()
        # Who reads slowly keeps a process no longer than its deadline.
        try:
            async with asyncio.timeout(timeout) as deadline:
                sending = self._streams.enter(deadline)
                try:
                    await exchange.start(given.status, headers)
                    for part in held:
                        await sending.send(len(part), exchange.part(part))
                    async for part in parts:
                        await sending.send(len(part), exchange.part(part))
                    await exchange.end()
                finally:
                    self._streams.leave(sending)
        except TimeoutError:
            raise BrokenOffError("read too slowly") from None

    # -- files -------------------------------------------------------------------------------------

    async def drop(self, exchange: ApiExchange) -> None:
        """Load a file into a scratch graph."""
        if (exchange.header("content-type") or "").partition(";")[0].strip().lower() != "application/octet-stream":
            raise ProtocolError(
                415, "send the file itself, as application/octet-stream", {"Accept-Post": "application/octet-stream"}
            )
        arguments = read_fields(from_address(exchange.address, DROP), DROP)
        client = client_of(exchange.client)
        if self._drops[client] >= _DROPS_OF_ONE or self._drops.total() >= _DROPS:
            raise ProtocolError(
                503, "other files are taken right now; try again later", {"Retry-After": "2", "Connection": "close"}
            )
        self._drops[client] += 1
        try:
            await self._dropped(exchange, arguments)
        finally:
            self._drops[client] -= 1
            if not self._drops[client]:
                del self._drops[client]

    async def _dropped(self, exchange: ApiExchange, arguments: dict[str, Any]) -> None:
        fresh = arguments.get("graph") is None
        name: str = self.scratch.make(client_of(exchange.client)) if fresh else arguments["graph"]
        one = self.scratch.find(name)
        kept = False
        try:
            path = self.scratch.file(one, arguments["name"])
            one.size += await saved(exchange, path, self.limits.drop - one.size)
            options = {
                "name": path.name,
                "key": arguments.get("key"),
                "refs": arguments.get("refs") or [],
                "beside": list(one.tables),
            }
            call = Call("load", options, self.limits.timeout, one.place, path)

            async def load() -> None:
                nonlocal kept
                try:
                    given = await self.workers.call(call)
                except CondgraphError as error:
                    await _told(exchange, error)
                    return
                try:
                    body = await given.body()
                finally:
                    given.close()
                if given.trace:
                    _log.error("a load failed:\n%s", given.trace)
                kept = given.status == 200
                found = json.loads(body)
                if kept and found.pop("table", False):
                    one.tables.append(str(path))
                await exchange.tell(given.status, found | {"graph": name} if kept else found)

            await exchange.while_connected(load())
            if str(path) not in one.tables:
                path.unlink(missing_ok=True)
        finally:
            if fresh and not kept:
                self.scratch.remove(name)

    async def forget(self, exchange: ApiExchange) -> None:
        """Remove a scratch graph."""
        name = exchange.path.rsplit("/", 1)[-1]
        self.scratch.find(name)
        self.scratch.remove(name)
        await exchange.reply(204, b"", {})


async def _told(exchange: ApiExchange, error: CondgraphError) -> None:
    """Answer with an error of the package."""
    status = status_of(error)
    exchange.outcome = error.code
    await exchange.tell(status, {"error": said(error)}, {"Retry-After": "1"} if error.code == "busy" else None)
