"""The studio over HTTP: its page, the operations of `/api/v1` (`spec`), dropped files with their scratch
graphs, and the OpenAPI document.

Replies are JSON (or CSV, Arrow, JSON lines). So are errors: `{"error": {"code", "message", ...}}`.
Every call has the server's deadline, which a request can shorten, and ends when its client
disconnects.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

from condgraph.endpoint.exchange import HOLD, READING, BrokenOffError, Exchange, Handler, Headers, Streams
from condgraph.endpoint.guard import client_of
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import CondgraphError, OptionError, nearest, requiring
from condgraph.studio.pools import Call, Reply, Workers
from condgraph.studio.spec import OPERATIONS, Drop, Operation, document, from_address, read_fields
from condgraph.studio.worker import error_document, status_of

_log: Final = logging.getLogger("condgraph.endpoint")
#: The size limit of a JSON body in bytes.
_MAX_JSON: Final = 2 << 20
#: How many files may be uploaded at once, by all clients and by one.
_DROPS, _DROPS_PER_CLIENT = 16, 2
_CODES: Final = {
    400: "request", 401: "token", 403: "forbidden", 404: "missing", 405: "method", 406: "format", 413: "too-long",
    415: "media-type", 429: "too-many", 503: "busy",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """The limits of calls.

    They are the seconds of a call and of a question in words, the most rows (None for no limit), the
    size limit of a dropped file in bytes, and how many results may be sent at once.
    """

    timeout: float = 30.0
    ask_timeout: float = 120.0
    rows: int | None = 10_000
    drop: int = 64 << 20
    streams: int = 8


class ApiExchange(Exchange):
    """A request of the API and its response. Errors are JSON."""

    challenge = "Bearer"
    rated = True

    async def send_problem(self, problem: ProtocolError) -> None:
        """Send an error as JSON."""
        error = {"code": _CODES.get(problem.status, "error"), "message": problem.message}
        await self.send_json(problem.status, {"error": error}, problem.headers)

    async def send_error(self, error: CondgraphError) -> None:
        """Send a `CondgraphError`."""
        self.outcome = error.code
        retry = {"Retry-After": "1"} if error.code == "busy" else None
        await self.send_json(status_of(error), {"error": error_document(error)}, retry)

    async def send_json(self, status: int, document: Any, headers: Mapping[str, str] | None = None) -> None:
        """Send a document as JSON."""
        body = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        standard: Headers = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}
        await self.reply(status, body, standard | dict(headers or {}))


class Api:
    """The operations, answered by worker processes.

    `workers` serve the main graph. `graphs` has the workers of all graphs by name if several are
    served.
    """

    def __init__(self, workers: Workers, limits: ApiLimits, model: str | None, graphs: Mapping[str, Workers] | None = None) -> None:
        self.workers, self.limits, self.model, self.graphs = workers, limits, model, dict(graphs or {})
        self.scratch = ScratchGraphs()
        self._streams = Streams(limits.streams)
        self._drops: Counter[str] = Counter()

    def close(self) -> None:
        """End all processes and remove the scratch graphs."""
        for workers in {self.workers, *self.graphs.values()}:
            workers.close()
        self.scratch.close()

    async def bolt(self, arguments: dict[str, Any], timeout: float) -> tuple[int, bytes]:
        """Run a query for a Bolt connection within `timeout` seconds. Returns the reply's status and body."""
        reply = await self.workers.call(Call("bolt", arguments, timeout))
        try:
            if reply.trace:
                _log.error("a call failed:\n%s", reply.trace)
            return reply.status, await reply.body()
        finally:
            reply.close()

    def routes(self, *, sparql: bool, tiles: Tiles | None = None) -> list[Any]:
        """Return the routes of the studio.

        `sparql` is whether the server has a SPARQL endpoint, and `tiles` is the source of background
        maps. Raises `MissingExtraError`.
        """
        with requiring("starlette", "serve"):
            from starlette.routing import Mount, Route
            from starlette.staticfiles import StaticFiles

        async def page(exchange: ApiExchange) -> None:
            await exchange.reply(200, *render(exchange.root, sparql=sparql, tiles=tiles))

        async def to_page(exchange: ApiExchange) -> None:
            await exchange.reply(307, b"", {"Location": f"{exchange.root}studio/"})

        async def health(exchange: ApiExchange) -> None:
            await exchange.send_json(200, {"status": "ok", "processes": len(self.workers.pids())})

        handlers: dict[str, tuple[Callable[[ApiExchange], Awaitable[None]], tuple[str, ...]]] = {
            "/": (page, READING),
            "/studio/": (page, READING),
            "/studio": (to_page, READING),
            **({} if sparql else {"/health": (health, READING)}),
            "/api/v1/openapi.json": (self._openapi, READING),
            **{f"/api/v1/{operation.name}": (self._handler(operation), operation.methods) for operation in OPERATIONS},
            "/api/v1/graphs": (self._drop, ("POST",)),
            "/api/v1/graphs/{graph}": (self._forget, ("DELETE",)),
            "/api/v1/{rest:path}": (self._missing, ()),
        }
        routes = [Route(path, Handler(answer, methods, ApiExchange)) for path, (answer, methods) in handlers.items()]
        return [Mount("/studio/static", StaticFiles(directory=STATIC)), *routes]

    # -- operations --------------------------------------------------------------------------------

    async def _openapi(self, exchange: ApiExchange) -> None:
        await exchange.send_json(200, document())

    async def _missing(self, exchange: ApiExchange) -> None:
        raise ProtocolError(404, "the API has no such path; /api/v1/openapi.json lists those that there are")

    def _handler(self, operation: Operation) -> Callable[[ApiExchange], Awaitable[None]]:
        async def handle(exchange: ApiExchange) -> None:
            if exchange.method != "POST":
                await self._called(exchange, operation, from_address(exchange.address, operation.fields))
                return
            if exchange.media_type != "application/json":
                # A page of another site can send any other media type without the browser asking for permission.
                raise ProtocolError(415, "send JSON, as application/json", {"Accept-Post": "application/json"})
            await self._called(exchange, operation, read_fields(await exchange.body(_MAX_JSON), operation.fields))

        return handle

    async def _called(self, exchange: ApiExchange, operation: Operation, arguments: dict[str, Any]) -> None:
        limit = self.limits.ask_timeout if operation.name == "ask" else self.limits.timeout
        timeout = min(arguments.pop("timeout", limit), limit)
        graph = arguments.pop("graph", None)
        workers = self.workers if graph is None else self.graphs.get(graph)
        try:
            place = None if workers is not None else self.scratch.find(graph).place
        except ProtocolError as problem:
            if not self.graphs:
                raise
            known = ", ".join(nearest(graph, self.graphs) or self.graphs)
            raise ProtocolError(404, f"{problem.message}; the graphs that are served are {known}") from None
        if self.limits.rows is not None and "limit" in arguments:
            arguments["limit"] = min(arguments["limit"], self.limits.rows)
        if operation.name == "ask" and self.model is None:
            raise ProtocolError(404, "no language model is configured: condgraph serve --llm openai:MODEL")
        await exchange.while_connected(
            self._answer(exchange, operation, Call(operation.name, arguments, timeout, place), workers or self.workers)
        )

    async def _answer(self, exchange: ApiExchange, operation: Operation, call: Call, workers: Workers) -> None:
        try:
            reply = await workers.call(call)
        except CondgraphError as error:
            await exchange.send_error(error)
            return
        try:
            if operation.name == "about" and reply.status == 200:
                about, limits = json.loads(await reply.body()), asdict(self.limits)
                del limits["streams"]
                await exchange.send_json(200, about | {"model": self.model, "graphs": list(self.graphs), "limits": limits})
            else:
                await self._send(exchange, reply, call.timeout, stream=operation.stream)
        except CondgraphError as error:
            if exchange.status:
                raise BrokenOffError(error.code) from None
            await exchange.send_error(error)
        finally:
            reply.close()

    async def _send(self, exchange: ApiExchange, reply: Reply, timeout: float, *, stream: bool) -> None:
        if reply.trace:
            _log.error("a call failed:\n%s", reply.trace)
        headers = {"Content-Type": reply.media_type, "Cache-Control": "no-store"}
        if not reply.media_type.startswith(("application/json", "application/x-ndjson")):
            headers["Content-Disposition"] = f'attachment; filename="answer.{"csv" if "csv" in reply.media_type else "arrow"}"'
        parts, held, size = reply.parts(), [], 0
        if not stream:
            async for part in parts:
                held.append(part)
                size += len(part)
                if size > HOLD:
                    break
            else:
                await exchange.reply(reply.status, b"".join(held), headers)
                return
        # A slow reader must not occupy a process longer than its deadline.
        try:
            async with asyncio.timeout(timeout) as deadline:
                sending = self._streams.enter(deadline)
                try:
                    await exchange.start(reply.status, headers)
                    for part in held:
                        await sending.send(len(part), exchange.part(part))
                    async for part in parts:
                        await sending.send(len(part), exchange.part(part))
                    await exchange.end()
                finally:
                    self._streams.leave(sending)
        except TimeoutError:
            raise BrokenOffError("read too slowly") from None

    # -- dropped files -----------------------------------------------------------------------------

    async def _drop(self, exchange: ApiExchange) -> None:
        """Load an uploaded file into a scratch graph."""
        if exchange.media_type != "application/octet-stream":
            raise ProtocolError(
                415, "send the file itself, as application/octet-stream", {"Accept-Post": "application/octet-stream"}
            )
        arguments = from_address(exchange.address, Drop)
        client = client_of(exchange.client)
        if self._drops[client] >= _DROPS_PER_CLIENT or self._drops.total() >= _DROPS:
            raise ProtocolError(
                503, "other files are being loaded right now; try again later", {"Retry-After": "2", "Connection": "close"}
            )
        self._drops[client] += 1
        try:
            await self._load(exchange, arguments)
        finally:
            self._drops[client] -= 1
            if not self._drops[client]:
                del self._drops[client]

    async def _load(self, exchange: ApiExchange, arguments: dict[str, Any]) -> None:
        fresh = "graph" not in arguments
        name: str = self.scratch.make(client_of(exchange.client)) if fresh else arguments["graph"]
        scratch = self.scratch.find(name)
        loaded = False
        try:
            path = scratch.file(arguments["name"])
            scratch.size += await _save(exchange, path, self.limits.drop - scratch.size)
            options = {"name": path.name, "key": arguments.get("key"), "refs": arguments["refs"], "tables": list(scratch.tables)}
            call = Call("load", options, self.limits.timeout, scratch.place, path)

            async def load() -> None:
                nonlocal loaded
                try:
                    reply = await self.workers.call(call)
                except CondgraphError as error:
                    await exchange.send_error(error)
                    return
                try:
                    body = await reply.body()
                finally:
                    reply.close()
                if reply.trace:
                    _log.error("a load failed:\n%s", reply.trace)
                loaded = reply.status == 200
                report = json.loads(body)
                if loaded and report.pop("table", False):
                    scratch.tables.append(str(path))
                await exchange.send_json(reply.status, report | {"graph": name} if loaded else report)

            await exchange.while_connected(load())
            if str(path) not in scratch.tables:
                path.unlink(missing_ok=True)
        finally:
            if fresh and not loaded:
                self.scratch.remove(name)

    async def _forget(self, exchange: ApiExchange) -> None:
        """Remove a scratch graph."""
        name = exchange.path.rsplit("/", 1)[-1]
        self.scratch.find(name)
        self.scratch.remove(name)
        await exchange.reply(204, b"", {})


async def _save(exchange: Exchange, path: Path, most: int) -> int:
    """Write the body to a file as it arrives, and return its size in bytes. Raises status 413."""
    length = exchange.header("content-length")
    too_long = ProtocolError(413, f"the files of a scratch graph have at most {max(most, 0):,} bytes more", {"Connection": "close"})
    if length and length.isdigit() and int(length) > most:
        raise too_long
    size = 0
    with path.open("xb") as file:
        async for part in exchange.arriving():
            size += len(part)
            if size > most:
                break
            file.write(part)
    if size > most:
        path.unlink(missing_ok=True)
        raise too_long
    if not size:
        raise ProtocolError(400, "the file is empty")
    return size


# -- scratch graphs ----------------------------------------------------------------------------------
# Scratch graphs are folders that last as long as the server, or until they have not been used for an
# hour. Anybody who knows the name of one can use it, and names cannot be guessed.

#: The most scratch graphs of all clients and of one client, and the most files of a graph.
_MAX_SCRATCH, _MAX_PER_CLIENT, _MAX_FILES = 32, 8, 50
#: After how many seconds an unused scratch graph is removed.
_IDLE: Final = 3600.0
_SCRATCH_NAME: Final = re.compile(r"[0-9a-f]{32}")
#: Characters that are replaced in file names, for example in folders and control characters.
_UNSAFE: Final = re.compile(r"[^\w.()\[\] ,+-]")


@dataclass(slots=True)
class Scratch:
    """A scratch graph: its folder, owner, the size and number of its files, and when it was last used."""

    folder: Path
    owner: str
    size: int = 0
    files: int = 0
    #: Files of tables. They are kept because later tables may refer to them.
    tables: list[str] = field(default_factory=list)
    used: float = field(default_factory=time.monotonic)

    @property
    def place(self) -> Path:
        """The folder of the store."""
        return self.folder / "store"

    def file(self, name: str) -> Path:
        """Return the path for a new file. Anything in the name that could lead to another place is removed."""
        if self.files >= _MAX_FILES:
            raise ProtocolError(413, f"a scratch graph has at most {_MAX_FILES} files")
        self.files += 1
        safe = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(". ")[-100:] or "file"
        folder = self.folder / f"file{self.files}"
        folder.mkdir(mode=0o700)
        return folder / safe


class ScratchGraphs:
    """All scratch graphs of a server."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._graphs: dict[str, Scratch] = {}

    def make(self, owner: str) -> str:
        """Create a scratch graph and return its name.

        If the client has too many, its oldest one is removed. Raises status 503 if all clients together
        have too many.
        """
        self._sweep()
        owned = sorted((scratch.used, name) for name, scratch in self._graphs.items() if scratch.owner == owner)
        if len(owned) >= _MAX_PER_CLIENT:
            self.remove(owned[0][1])
        if len(self._graphs) >= _MAX_SCRATCH:
            raise ProtocolError(503, f"there are {_MAX_SCRATCH} scratch graphs; try again later", {"Retry-After": "60"})
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="condgraph-studio-"))
        name = secrets.token_hex(16)
        folder = self._root / name
        folder.mkdir(mode=0o700)
        self._graphs[name] = Scratch(folder, owner)
        return name

    def find(self, name: str) -> Scratch:
        """Return the scratch graph with a name. Raises status 404 if there is none."""
        self._sweep()
        scratch = self._graphs.get(name) if _SCRATCH_NAME.fullmatch(name) else None
        if scratch is None:
            raise ProtocolError(404, "there is no such scratch graph; it may have been removed")
        scratch.used = time.monotonic()
        return scratch

    def remove(self, name: str) -> None:
        """Remove a scratch graph if it exists."""
        scratch = self._graphs.pop(name, None)
        if scratch is not None:
            shutil.rmtree(scratch.folder, ignore_errors=True)

    def _sweep(self) -> None:
        now = time.monotonic()
        for name in [name for name, scratch in self._graphs.items() if now - scratch.used > _IDLE]:
            self.remove(name)

    def close(self) -> None:
        """Remove all scratch graphs."""
        self._graphs.clear()
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None


# -- the page ----------------------------------------------------------------------------------------

#: The page's code and styles, and the libraries that `tools/studio` builds (`vendor.js`).
STATIC: Final = Path(__file__).with_name("static")
#: With this policy the page runs only its own code and connects only to this server.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:{tiles}; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
#: The editor creates its styles when it starts, which the nonce permits.
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>condgraph studio</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}studio/static/studio.css">
{modules}
<script type="module" src="{root}studio/static/main.js"></script>
</head>
<body data-root="{root}" data-nonce="{nonce}" data-sparql="{sparql}"{tiles}>
<script type="module" src="{root}studio/static/api.js" async></script>
<header><span class="brand">condgraph</span></header>
<main><p>Reading…</p></main>
<noscript>The studio needs JavaScript; the API at {root}api/v1/ does not.</noscript>
</body>
</html>
"""


@cache
def _modules(first: str) -> tuple[str, ...]:
    """Return a module and all modules that it imports statically, without those it loads later (`import()`)."""
    result = [first]
    for name in result:
        imports = re.findall(r'^(?:import|\}) .*?from "\./(.+?)";$', (STATIC / name).read_text(encoding="utf-8"), re.M)
        result += [imported for imported in dict.fromkeys(imports) if imported not in result]
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Tiles:
    """The source of background maps: images of the earth from another server.

    `address` contains `{z}`, `{x}` and `{y}`. `credit` is the attribution shown on the map. Raises
    `OptionError` for an invalid address.
    """

    address: str
    credit: str

    def __post_init__(self) -> None:
        fields = sorted(re.findall(r"\{.*?\}", self.address))
        if fields != ["{x}", "{y}", "{z}"] or not self.origin:
            raise OptionError(f"{self.address!r} is not an address of tiles", hint="such as https://tiles.example/{z}/{x}/{y}.png")
        if not self.credit.strip():
            raise OptionError("a map with tiles names their source", hint="--tiles-credit '© whoever makes them'")

    @property
    def origin(self) -> str:
        """The origin of the server for the policy, or "" if the address is invalid."""
        match = re.match(r"https?://[\w.-]+(?::\d{1,5})?(?=/)", self.address, re.ASCII)
        return match[0] if match else ""


def render(root: str, *, sparql: bool, tiles: Tiles | None = None) -> tuple[bytes, dict[str, str]]:
    """Return the page and its headers.

    `root` is the path of the application, `sparql` whether the server has a SPARQL endpoint, and
    `tiles` the source of background maps.
    """
    nonce = secrets.token_urlsafe(16)
    # The browser fetches these at once, without first reading which module imports which. The editor's modules run last.
    kinds = (('rel="modulepreload"', _modules("main.js")), ('rel="preload" as="script" crossorigin', ("editor.js", "vendor.js")))
    modules = "\n".join(f'<link {kind} href="{escape(root)}studio/static/{name}">' for kind, names in kinds for name in names)
    tile_attributes = "" if tiles is None else f' data-tiles="{escape(tiles.address)}" data-credit="{escape(tiles.credit)}"'
    text = _PAGE.format(root=escape(root), nonce=nonce, sparql="yes" if sparql else "", modules=modules, tiles=tile_attributes)
    return text.encode(), {
        "Content-Type": "text/html; charset=utf-8",
        "Cache-Control": "no-store",
        "Content-Security-Policy": _POLICY.format(nonce=nonce, tiles="" if tiles is None else f" {tiles.origin}"),
        # Tile servers refuse requests without a referrer.
        "Referrer-Policy": "no-referrer" if tiles is None else "strict-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }
