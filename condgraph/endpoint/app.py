"""The SPARQL 1.1 endpoint: an ASGI application over a backend that answers queries.

    /sparql         queries (SPARQL 1.1 Protocol); asked without a query, the description of the service, or the page for browsers
    /data           graphs (SPARQL 1.1 Graph Store HTTP Protocol, reading)
    /description    the description of the service, for browsers too
    /health         whether the server runs
    /               the page
    /default/NAME   what the graph says of an IRI that begins with its base (`iris`)

Every query has a deadline and a limit of results. What is found out before the first megabytes are
there is a status: 400 for a query that is not well formed, 503 at the deadline. Results behind that
are sent as they come, and where they cannot be sent to their end (the deadline, the limit), the
connection is closed in the middle, so that nobody takes them for whole. Results that the limit cut,
and that are sent at once, have the header `X-SPARQL-MaxRows` and a warning.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from condgraph.endpoint import description as protocol_description
from condgraph.endpoint import iris, page
from condgraph.endpoint.clients import Application
from condgraph.endpoint.exchange import READING, BrokenOffError, Exchange, Receive, Send
from condgraph.endpoint.formats import DATASETS, GRAPHS, HTML, SOLUTIONS, Chosen, choose, require, wanted
from condgraph.endpoint.guard import Guard, Guarded
from condgraph.endpoint.protocol import ProtocolError, Request, read, read_graph
from condgraph.endpoint.service import Backend, Limits
from condgraph.endpoint.streams import Streams
from condgraph.engine.errors import MissingExtraError
from condgraph.sparql.text.scan import aside, survey
from condgraph.sparql.workers.pool import Query

if TYPE_CHECKING:
    from starlette.applications import Starlette


#: Bytes of results that are held back, so that what goes wrong early has a status.
HOLD: Final = 4 << 20
#: And for clients of HTTP/1.0, who are sent whole results only.
MOST_HELD: Final = 64 << 20


class Endpoint:
    """The requests of the protocols, answered from a backend."""

    def __init__(self, backend: Backend, limits: Limits, *, studio: bool = False, discreet: bool = False) -> None:
        self.backend, self.limits, self._studio, self._discreet = backend, limits, studio, discreet
        self._streams = Streams(limits.streams)

    # -- requests ----------------------------------------------------------------------------------

    async def sparql(self, exchange: Exchange) -> None:
        """A request to /sparql."""
        if exchange.method not in ("GET", "HEAD", "POST"):
            raise _not_allowed(READING)
        body = await exchange.body(self.limits.body) if exchange.method == "POST" else b""
        kind = exchange.header("content-type")
        asked = await aside(len(body) + len(exchange.address), read, exchange.method, exchange.address, kind, body)
        if asked.query is None:
            await self._about(exchange)
        else:
            await self._answer(exchange, asked, asked.query)

    async def data(self, exchange: Exchange) -> None:
        """A request to /data."""
        if exchange.method not in ("GET", "HEAD"):
            raise _not_allowed("GET, HEAD, OPTIONS")
        asked = read_graph(exchange.address)
        chosen = wanted(asked.formats, exchange.header("accept"), DATASETS if asked.whole else (*GRAPHS, *DATASETS))
        default = self.backend.default
        query = Query(
            "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
            triples=chosen.format.name,  # type: ignore[arg-type]
            output_prefixes=self.backend.prefixes,
            # The default graph may be the union of several.
            dataset=asked.whole,
            graph=asked.graph or (default[0] if default is not None and len(default) == 1 else None),
            default_graphs=None if asked.graph or default is None or len(default) == 1 else default,
        )
        # A graph is wanted whole: there is no limit but a deadline, which is its own.
        await self._send(exchange, query, chosen, self.limits.data_timeout)

    async def page(self, exchange: Exchange) -> None:
        """The page for people."""
        if exchange.method not in ("GET", "HEAD"):
            raise _not_allowed("GET, HEAD, OPTIONS")
        await exchange.reply(200, page.render(self.backend, self.limits, exchange.root, studio=self._studio), page.HEADERS)

    async def thing(self, exchange: Exchange) -> None:
        """An IRI of the graph itself: what the graph says of it, or the page that asks for that."""
        if exchange.method not in ("GET", "HEAD"):
            raise _not_allowed("GET, HEAD, OPTIONS")
        base = self.backend.base or ""
        # The path of the base may have been sent in more than one spelling; its slashes are the same.
        iri = iris.iri_of(base, exchange.behind(urlsplit(base).path.count("/")))
        if iri is None:
            raise ProtocolError(404, "no IRI is written so")
        found = await iris.described(self.backend, iri, exchange.header("accept"), self.limits.timeout)
        if found is None:
            await exchange.reply(303, b"", {"Location": iris.address_of_page(exchange, iri), "Vary": "Accept"})
            return
        query, chosen = found
        await self._send(exchange, replace(query, limit=self.limits.rows), chosen, self.limits.timeout)

    async def health(self, exchange: Exchange) -> None:
        """Whether the server runs; and with what, where anybody may know."""
        await exchange.reply(
            200,
            page.health(None if self._discreet else self.backend),
            {"Content-Type": "application/json", "Cache-Control": "no-store"},
        )

    async def description(self, exchange: Exchange) -> None:
        """The description of the service, for those too who accept nothing that it can be written
        in.
        """
        if exchange.method not in ("GET", "HEAD"):
            raise _not_allowed("GET, HEAD, OPTIONS")
        await self._described(exchange, choose(exchange.header("accept"), GRAPHS) or Chosen(GRAPHS[0], GRAPHS[0].media_type))

    async def _about(self, exchange: Exchange) -> None:
        """The service itself: its description, or the page for those who like that better."""
        chosen = require(exchange.header("accept"), (*GRAPHS, HTML))
        if chosen.format is HTML:
            await self.page(exchange)
            return
        await self._described(exchange, chosen)

    async def _described(self, exchange: Exchange, chosen: Chosen) -> None:
        about = protocol_description.describe(exchange.at("sparql"), self.backend.graphs, chosen.format)
        await exchange.reply(200, about, {"Content-Type": chosen.content_type, "Vary": "Accept"})

    async def _answer(self, exchange: Exchange, asked: Request, text: str) -> None:
        found = await aside(len(text), survey, text)
        if found.form == "update":
            raise ProtocolError(400, "this is an update and no query; the endpoint is for reading")
        if found.service:
            raise ProtocolError(403, "SERVICE is refused: this endpoint asks no other one")
        formats = (*GRAPHS, *DATASETS) if found.form in ("construct", "describe") else SOLUTIONS
        chosen = wanted(asked.formats, exchange.header("accept"), formats)
        dataset = asked.dataset
        query = Query(
            text,
            solutions=chosen.format.name if chosen.format in SOLUTIONS else "json",  # type: ignore[arg-type]
            triples="turtle" if chosen.format in SOLUTIONS else chosen.format.name,  # type: ignore[arg-type]
            base=self.backend.base or exchange.at("sparql"),
            default_graphs=asked.default_graphs if dataset else None,
            named_graphs=asked.named_graphs if dataset else None,
            limit=self.limits.rows,
            output_prefixes=self.backend.prefixes,
        )
        timeout = self.limits.timeout if asked.timeout is None else min(asked.timeout, self.limits.timeout)
        await self._send(exchange, query, chosen, timeout)

    # -- results -----------------------------------------------------------------------------------

    async def _send(self, exchange: Exchange, query: Query, chosen: Chosen, timeout: float) -> None:
        """Run a query and send its results; ends the query when the other side goes away."""
        await exchange.while_there(self._results(exchange, query, chosen, timeout))

    async def _results(self, exchange: Exchange, query: Query, chosen: Chosen, timeout: float) -> None:
        headers = {"Content-Type": chosen.content_type, "Vary": "Accept, Accept-Encoding"} | dict(self.backend.headers)
        until, stream = asyncio.get_running_loop().time() + timeout, None
        results = await self.backend.query(query, timeout)
        try:
            parts, size = [], 0
            whole = True
            async for part in results:
                parts.append(part)
                size += len(part)
                # A client of HTTP/1.0 cannot tell results that broke off from whole ones: it is
                # sent whole ones only.
                if size > HOLD and exchange.chunked:
                    whole = False
                    break
                if size > MOST_HELD:
                    raise ProtocolError(505, f"results of more than {MOST_HELD >> 20} MiB are sent to clients of HTTP/1.1 only")
            if whole:
                if results.cut:
                    exchange.outcome = "cut"
                    headers |= {"X-SPARQL-MaxRows": str(query.limit), "Warning": f'299 - "cut after {query.limit} results"'}
                await exchange.reply(200, b"".join(parts), headers, packs=True)
                return
            # Who reads slowly does not keep the query longer than its deadline.
            async with asyncio.timeout_at(until) as deadline:
                stream = self._streams.enter(deadline)
                await exchange.start(200, headers, packs=True)
                if exchange.method == "HEAD":
                    await exchange.end()
                    return
                for part in parts:
                    await stream.send(len(part), exchange.part(part))
                parts.clear()
                async for part in results:
                    await stream.send(len(part), exchange.part(part))
                if results.cut:
                    raise BrokenOffError(f"cut after {query.limit} results")
                await exchange.end()
        except TimeoutError:
            slow = stream is not None and stream.gives_way
            raise BrokenOffError("read more slowly than others, and too many are read" if slow else "deadline") from None
        finally:
            if stream is not None:
                self._streams.leave(stream)
            results.close()


def _not_allowed(methods: str) -> ProtocolError:
    return ProtocolError(405, f"this is for {methods}", {"Allow": methods})


class _Route:
    """A handler as an application of its own."""

    def __init__(self, handler: Callable[[Exchange], Awaitable[None]]) -> None:
        self._handler = handler

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        await Exchange(scope, receive, send).run(self._handler)


def application(
    backend: Backend | None,
    limits: Limits | None = None,
    *,
    routes: Sequence[Any] = (),
    closing: Callable[[], None] | None = None,
    guard: Guard | None = None,
    kinds: Mapping[str, type[Exchange]] | None = None,
) -> Application:
    """The ASGI application: the endpoint over a backend (None: without one), and other `routes`. It
    closes the backend, and calls `closing`, when it ends. `guard` says who may ask (None: whoever the
    application is mounted by sees to that), `kinds` how refusals are written (`Guarded`). Raises
    `MissingExtraError`.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles
    except ImportError:
        raise MissingExtraError("starlette", "serve") from None

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if backend is not None:
                backend.close()
            if closing is not None:
                closing()

    own: list[Any] = []
    last: list[Any] = []
    at_once: dict[str, _Route] = {}

    class Site(Starlette):
        """The application: what is asked again and again is answered without looking through all routes, and
        without their layers, which would do nothing.
        """

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and not scope.get("root_path") and (known := at_once.get(scope["path"])) is not None:
                await known(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)

    if backend is not None:
        endpoint = Endpoint(backend, limits or Limits(), studio=bool(routes), discreet=guard is not None and bool(guard.tokens))
        paths = {
            "/": endpoint.page,
            "/sparql": endpoint.sparql,
            "/sparql/": endpoint.sparql,
            "/data": endpoint.data,
            "/description": endpoint.description,
            "/health": endpoint.health,
        }
        at_once |= {path: _Route(handler) for path, handler in paths.items()}
        own += [Route(path, handler) for path, handler in at_once.items()]
        own.append(Mount("/static/vendor", StaticFiles(directory=page.VENDOR)))
        own.append(Mount("/static", StaticFiles(directory=page.STATIC)))
        if (path := iris.path_of(backend.base)) is not None:
            # Behind all others: a base may be the root of a server.
            last.append(Route(f"{path}{{rest:path}}", _Route(endpoint.thing)))
    site = Site(routes=[*own, *routes, *last], lifespan=lifespan)
    # The first page names concepts of the graph in its examples; the others hold nothing of it.
    public = frozenset({"/health", "/studio", "/studio/", *(() if backend is not None else ("/",))})
    return site if guard is None else Guarded(site, guard, kinds=kinds, public=public)
