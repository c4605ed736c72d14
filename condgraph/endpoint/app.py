"""The SPARQL 1.1 endpoint: an ASGI application over a backend that answers queries.

    /sparql         queries (SPARQL 1.1 Protocol); without a query, the service description, or the page for browsers
    /data           graphs (SPARQL 1.1 Graph Store HTTP Protocol, reading only)
    /description    the service description, for browsers too
    /health         whether the server is running
    /               the studio if the server has it, else the SPARQL page
    /default/NAME   what the graph states about an IRI that begins with its base

Every query has a deadline and a limit on results. An error before the first megabytes of results has
a status: 400 for a malformed query, 503 at the deadline. Longer results are streamed. If they cannot
be completed (because of the deadline or the limit), the connection is closed in the middle, so that
nobody mistakes them for complete. Complete responses that the limit has cut have the header
`X-SPARQL-MaxRows` and a warning.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from condgraph.endpoint import protocol
from condgraph.endpoint.exchange import HOLD, READING, BrokenOffError, Exchange, Handler, Streams
from condgraph.endpoint.guard import Application, Guard, Guarded
from condgraph.engine.errors import requiring
from condgraph.engine.iris import PLAIN
from condgraph.engine.tracing import results_span
from condgraph.sparql.text.scan import aside, survey
from condgraph.sparql.workers.pool import Head, Query

if TYPE_CHECKING:
    import pyoxigraph as ox
    from starlette.applications import Starlette

#: The most bytes of results for HTTP/1.0 clients, which cannot notice that results were broken off.
MAX_BUFFERED: Final = 64 << 20
#: The most graphs that an error lists.
_MAX_LISTED: Final = 10


class Results(Protocol):
    """Results of a query from a backend: a head and the serialised parts."""

    head: Head

    @property
    def cut(self) -> bool:
        """Whether the limit cut the results; known after the last part."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def close(self) -> None:
        """End the query."""


class Backend(Protocol):
    """The source of an endpoint's answers. Another store can be used by implementing this."""

    @property
    def store(self) -> str:
        """The kind of store, as named in traces."""

    @property
    def base(self) -> str | None:
        """The IRI that relative IRIs in queries refer to, or None for the address of the endpoint."""

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes for Turtle and for the first query on the page."""

    @property
    def graphs(self) -> tuple[str, ...]:
        """The named graphs."""

    @property
    def default(self) -> Sequence[str] | None:
        """The named graphs whose union is the default graph, or None for all of them."""

    @property
    def predeclared(self) -> Mapping[str, str]:
        """The prefixes that queries need not declare."""

    @property
    def examples(self) -> Sequence[tuple[str, str]]:
        """The example queries on the page, each with a title and its text."""

    @property
    def about(self) -> str:
        """The page's query about an IRI, with `{iri}` as a placeholder."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of every answer, besides those of its source (`Head.headers`)."""

    async def query(self, query: Query, timeout: float) -> Results:
        """Run a query. Raises a `CondgraphError` if it is wrong."""

    def status(self) -> Mapping[str, Any]:
        """Return additional fields for /health."""

    def close(self) -> None:
        """Release everything."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of every query: seconds, and the number of solutions or triples (None for no limit).

    Whole graphs have `data_timeout` seconds. A body has at most `body` bytes. At most `streams` results
    of more than 4 MiB may be sent at once while their queries run.
    """

    timeout: float = 30.0
    rows: int | None = 10_000
    data_timeout: float = 600.0
    body: int = protocol.MAX_BYTES
    streams: int = 8


class Endpoint:
    """The requests of the SPARQL protocols, answered by a backend."""

    def __init__(self, backend: Backend, limits: Limits, *, studio: bool = False, discreet: bool = False) -> None:
        self.backend, self.limits, self._studio, self._discreet = backend, limits, studio, discreet
        self._streams = Streams(limits.streams)

    # -- requests ----------------------------------------------------------------------------------

    async def sparql(self, exchange: Exchange) -> None:
        """Answer a request to /sparql."""
        body = await exchange.body(self.limits.body) if exchange.method == "POST" else b""
        kind = exchange.header("content-type")
        request = await aside(len(body) + len(exchange.address), protocol.read, exchange.method, exchange.address, kind, body)
        if request.query is not None:
            await self._query(exchange, request, request.query)
            return
        chosen = protocol.require(exchange.header("accept"), (*protocol.GRAPHS, protocol.HTML))
        if chosen.format is protocol.HTML:
            await self.page(exchange)
        else:
            await self._describe(exchange, chosen)

    async def data(self, exchange: Exchange) -> None:
        """Answer a request to /data."""
        request = protocol.read_graph(exchange.address)
        chosen = protocol.wanted(
            request.formats,
            exchange.header("accept"),
            protocol.DATASETS if request.whole else (*protocol.GRAPHS, *protocol.DATASETS),
        )
        default = self.backend.default
        query = Query(
            "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
            triples=chosen.format.name,  # type: ignore[arg-type]
            version=chosen.version,
            output_prefixes=self.backend.prefixes,
            # The default graph may be the union of several graphs.
            dataset=request.whole,
            graph=request.graph or (default[0] if default is not None and len(default) == 1 else None),
            default_graphs=None if request.graph or default is None or len(default) == 1 else default,
        )
        # Graphs are sent completely, so they have their own deadline and no limit on results.
        await self._send(exchange, query, chosen, self.limits.data_timeout)

    async def page(self, exchange: Exchange) -> None:
        """Send the page for people."""
        await exchange.reply(200, page(self.backend, self.limits, exchange.root, studio=self._studio), PAGE_HEADERS)

    async def iri(self, exchange: Exchange) -> None:
        """Answer a request for an IRI of the graph: what the graph states about it, or the page with that query."""
        base = self.backend.base or ""
        # The path of the base may be spelled in different ways, but the number of slashes is the same.
        iri = iri_of(base, exchange.after(urlsplit(base).path.count("/")))
        if iri is None:
            raise protocol.ProtocolError(404, "no IRI is written so")
        chosen = protocol.require(exchange.header("accept"), (*protocol.GRAPHS, protocol.HTML))
        query = Query(f"DESCRIBE <{iri}>", triples="ntriples", limit=1)
        results = await self.backend.query(query, self.limits.timeout)
        try:
            known = any([bool(part.strip()) async for part in results])
        finally:
            results.close()
        if not known:
            raise protocol.ProtocolError(404, f"the graph has nothing about <{iri}>")
        if chosen.format is protocol.HTML:
            about = f"{exchange.root}sparql?about={quote(iri, safe='')}"
            await exchange.reply(303, b"", {"Location": about, "Vary": "Accept"})
            return
        form: Any = chosen.format.name
        query = replace(query, triples=form, version=chosen.version, output_prefixes=self.backend.prefixes, limit=self.limits.rows)
        await self._send(exchange, query, chosen, self.limits.timeout)

    async def health(self, exchange: Exchange) -> None:
        """Report that the server is running, and what it serves if that is public."""
        status = {"status": "ok", **({} if self._discreet else self.backend.status())}
        body = json.dumps(status, ensure_ascii=False).encode()
        await exchange.reply(200, body, {"Content-Type": "application/json", "Cache-Control": "no-store"})

    async def description(self, exchange: Exchange) -> None:
        """Send the service description, even to clients that accept none of its formats."""
        await self._describe(
            exchange,
            protocol.choose(exchange.header("accept"), protocol.GRAPHS)
            or protocol.ChosenFormat(protocol.GRAPHS[0], protocol.GRAPHS[0].media_type),
        )

    async def _describe(self, exchange: Exchange, chosen: protocol.ChosenFormat) -> None:
        body = describe(exchange.url("sparql"), self.backend.graphs, chosen.format)
        await exchange.reply(200, body, {"Content-Type": chosen.content_type, "Vary": "Accept"})

    async def _query(self, exchange: Exchange, request: protocol.Request, text: str) -> None:
        parsed = await aside(len(text), survey, text)
        if parsed.form == "update":
            raise protocol.ProtocolError(400, "this is an update and no query; the endpoint is for reading")
        if parsed.service:
            raise protocol.ProtocolError(403, "SERVICE is refused: this endpoint asks no other one")
        graphs = self.backend.graphs
        unknown = [iri for iri in (*request.default_graphs, *request.named_graphs) if iri not in graphs]
        if graphs and unknown:
            listed = ", ".join(f"<{iri}>" for iri in graphs[:_MAX_LISTED]) + (", ..." if len(graphs) > _MAX_LISTED else "")
            raise protocol.ProtocolError(
                400, f"there is no graph <{unknown[0]}>; there {'is' if len(graphs) == 1 else 'are'} {listed}"
            )
        formats = (*protocol.GRAPHS, *protocol.DATASETS) if parsed.form in ("construct", "describe") else protocol.SOLUTIONS
        chosen = protocol.wanted(request.formats, exchange.header("accept"), formats)
        query = Query(
            text,
            solutions=chosen.format.name if chosen.format in protocol.SOLUTIONS else "json",  # type: ignore[arg-type]
            triples="turtle" if chosen.format in protocol.SOLUTIONS else chosen.format.name,  # type: ignore[arg-type]
            base=self.backend.base or exchange.url("sparql"),
            default_graphs=request.default_graphs if request.dataset else None,
            named_graphs=request.named_graphs if request.dataset else None,
            limit=self.limits.rows,
            version=chosen.version,
            output_prefixes=self.backend.prefixes,
        )
        timeout = self.limits.timeout if request.timeout is None else min(request.timeout, self.limits.timeout)
        await self._send(exchange, query, chosen, timeout)

    # -- results -----------------------------------------------------------------------------------

    async def _send(self, exchange: Exchange, query: Query, chosen: protocol.ChosenFormat, timeout: float) -> None:
        """Run a query and send its results. The query ends when the client disconnects."""
        with results_span("sparql", self.backend.store):
            await exchange.while_connected(self._results(exchange, query, chosen, timeout))

    async def _results(self, exchange: Exchange, query: Query, chosen: protocol.ChosenFormat, timeout: float) -> None:
        headers = {"Content-Type": chosen.content_type, "Vary": "Accept, Accept-Encoding"} | dict(self.backend.headers)
        end, stream = asyncio.get_running_loop().time() + timeout, None
        results = await self.backend.query(query, timeout)
        # The source of the results may have replaced another one since the query arrived.
        headers |= results.head.headers
        try:
            parts, size = [], 0
            complete = True
            async for part in results:
                parts.append(part)
                size += len(part)
                # An HTTP/1.0 client cannot distinguish results that were broken off from complete ones.
                if size > HOLD and exchange.chunked:
                    complete = False
                    break
                if size > MAX_BUFFERED:
                    raise protocol.ProtocolError(
                        505, f"results of more than {MAX_BUFFERED >> 20} MiB are sent to clients of HTTP/1.1 only"
                    )
            if complete:
                if results.cut:
                    exchange.outcome = "cut"
                    headers |= {"X-SPARQL-MaxRows": str(query.limit), "Warning": f'299 - "cut after {query.limit} results"'}
                await exchange.reply(200, b"".join(parts), headers, compress=True)
                return
            # A slow reader must not keep the query running beyond its deadline.
            async with asyncio.timeout_at(end) as deadline:
                stream = self._streams.enter(deadline)
                await exchange.start(200, headers, compress=True)
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
            too_slow = stream is not None and stream.ended
            raise BrokenOffError("read more slowly than others, and too many are read" if too_slow else "deadline") from None
        finally:
            if stream is not None:
                self._streams.leave(stream)
            results.close()


def application(
    backend: Backend | None,
    limits: Limits | None = None,
    *,
    routes: Sequence[Any] = (),
    closing: Callable[[], None] | None = None,
    guard: Guard | None = None,
    kinds: Mapping[str, type[Exchange]] | None = None,
) -> Application:
    """Create the ASGI application: the endpoint over a backend (or without one if None) and other `routes`.

    When it ends, it closes the backend and calls `closing`. `guard` checks every request; None leaves
    that to the application in which this one is mounted. `kinds` specifies how refusals are written
    (see `Guarded`). Raises `MissingExtraError`.
    """
    with requiring("starlette", "serve"):
        from starlette.applications import Starlette
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if backend is not None:
                backend.close()
            if closing is not None:
                closing()

    first_routes: list[Any] = []
    last_routes: list[Any] = []
    direct: dict[str, Handler] = {}

    class Site(Starlette):
        """The application. Frequent paths skip Starlette's routing and middleware, which would do nothing."""

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and not scope.get("root_path") and (handler := direct.get(scope["path"])) is not None:
                await handler(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)

    if backend is not None:
        endpoint = Endpoint(backend, limits or Limits(), studio=bool(routes), discreet=guard is not None and bool(guard.tokens))
        sparql = Handler(endpoint.sparql, (*READING, "POST"))
        # With a studio, its page is at /, and the SPARQL page only at /sparql.
        direct |= {} if routes else {"/": Handler(endpoint.page)}
        direct |= {"/sparql": sparql, "/sparql/": sparql, "/data": Handler(endpoint.data)}
        direct |= {"/description": Handler(endpoint.description), "/health": Handler(endpoint.health, (*READING, "POST"))}
        first_routes += [Route(path, handler) for path, handler in direct.items()]
        first_routes.append(Mount("/static/vendor", StaticFiles(directory=VENDOR)))
        first_routes.append(Mount("/static", StaticFiles(directory=STATIC)))
        if (path := path_of(backend.base)) is not None:
            # This route comes last, since a base may be the root of a server.
            last_routes.append(Route(f"{path}{{rest:path}}", Handler(endpoint.iri)))
    site = Site(routes=[*first_routes, *routes, *last_routes], lifespan=lifespan)
    # The examples on the SPARQL page name concepts of the graph, while the studio's page contains no data.
    public = frozenset({"/health", "/studio", "/studio/", *(("/",) if routes else ())})
    return site if guard is None else Guarded(site, guard, kinds=kinds, public=public)


# -- IRIs of the graph as addresses ------------------------------------------------------------------

#: Percent-escapes, which clients also use for non-ASCII letters and characters that need no escape.
_ESCAPES: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2})++")
#: These stay percent-encoded: dots and slashes would be resolved as steps of a path, and an underscore means a space.
_KEPT: Final = frozenset("./_")


def path_of(base: str | None) -> str | None:
    """Return the decoded path of a base's IRIs, or None if it cannot be routed.

    That is the case for a scheme other than HTTP, and for braces, which have a meaning in routes.

    >>> path_of("http://condgraph.example/my%5Ffilms/"), path_of("https://example.org/"), path_of("neo4j://films/")
    ('/my_films/', '/', None)
    """
    if base is None:
        return None
    parts = urlsplit(base)
    path = unquote(parts.path)
    return path if parts.scheme.lower() in ("http", "https") and not set("{}") & set(path) else None


def iri_of(base: str, path: bytes) -> str | None:
    """Return the IRI that a path addresses, or None if no IRI can be written so.

    The path is as it was sent, without the path of the base.

    >>> iri_of("http://example.org/", b"Erd%C5%91s_number"), iri_of("http://example.org/", b"a%5fb_%25")
    ('http://example.org/Erdős_number', 'http://example.org/a%5Fb_%25')
    """
    try:
        text = _ESCAPES.sub(_unescaped, path).decode()
    except UnicodeDecodeError:
        return None
    return None if any(c in '<>"{}|^`\\' or c <= " " for c in text) else base + text


def _unescaped(escapes: re.Match[bytes]) -> bytes:
    """Decode percent-escapes to the form that a graph's IRIs have."""
    return "".join(map(_character, unquote_to_bytes(escapes[0]).decode())).encode()


def _character(c: str) -> str:
    if c in _KEPT:
        return f"%{ord(c):02X}"
    return c if c in PLAIN or (not c.isascii() and c.isalnum() and c < "\U00010000") else quote(c, safe="")


# -- the description of the service ------------------------------------------------------------------


def describe(url: str, graphs: Sequence[str], form: protocol.Format) -> bytes:
    """Return the SPARQL 1.1 Service Description of the endpoint at `url` in one of the formats `GRAPHS`.

    Its default graph is the union of `graphs`.
    """
    import pyoxigraph as ox

    prefixes = {"sd": _SD, "formats": "http://www.w3.org/ns/formats/"} if form.name == "turtle" else None
    media_type = ox.RdfFormat.from_media_type(form.media_type)
    assert media_type is not None
    serialised = ox.serialize(_description(url, graphs), format=media_type, prefixes=prefixes)
    assert serialised is not None
    return serialised


_SD: Final = "http://www.w3.org/ns/sparql-service-description#"


def _description(url: str, graphs: Sequence[str]) -> Iterator[ox.Triple]:
    import pyoxigraph as ox

    kind = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

    def sd(name: str) -> ox.NamedNode:
        return ox.NamedNode(_SD + name)

    service, dataset, default = ox.BlankNode("service"), ox.BlankNode("dataset"), ox.BlankNode("default")
    yield ox.Triple(service, kind, sd("Service"))
    yield ox.Triple(service, sd("endpoint"), ox.NamedNode(url))
    yield ox.Triple(service, sd("supportedLanguage"), sd("SPARQL11Query"))
    yield ox.Triple(service, sd("feature"), sd("UnionDefaultGraph"))
    for form in (*protocol.SOLUTIONS, *protocol.GRAPHS):
        yield ox.Triple(service, sd("resultFormat"), ox.NamedNode(form.iri))
    yield ox.Triple(service, sd("defaultDataset"), dataset)
    yield ox.Triple(dataset, kind, sd("Dataset"))
    yield ox.Triple(dataset, sd("defaultGraph"), default)
    yield ox.Triple(default, kind, sd("Graph"))
    for number, graph in enumerate(graphs):
        named, content = ox.BlankNode(f"named{number}"), ox.BlankNode(f"graph{number}")
        yield ox.Triple(dataset, sd("namedGraph"), named)
        yield ox.Triple(named, kind, sd("NamedGraph"))
        yield ox.Triple(named, sd("name"), ox.NamedNode(graph))
        yield ox.Triple(named, sd("graph"), content)
        yield ox.Triple(content, kind, sd("Graph"))


# -- the page ----------------------------------------------------------------------------------------
# The page is YASGUI, served from the package.

#: Scripts and styles, made by `tools/yasgui.py`.
STATIC: Final = Path(__file__).with_name("static")
#: The studio's libraries, which draw charts and graphs.
VENDOR: Final = Path(__file__).parents[1] / "studio" / "static"
#: The page loads only from its own server, so data cannot bring in scripts or images from elsewhere.
#: YASGUI parses HTML that contains data, and `trusted.js` sanitises all of it.
PAGE_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Vary": "Accept",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "object-src 'none'; frame-src 'none'; form-action 'none'; base-uri 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types default dompurify",
}
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>condgraph: SPARQL</title>
<base href="{root}">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/yasgui.min.css">
<link rel="stylesheet" href="static/page.css">
</head>
<body>
<header>
<h1>condgraph</h1>
<p>SPARQL 1.1 endpoint at <code>/sparql</code>, graphs at <code>/data</code>. Queries end after {timeout:g} s; {rows}.
<a href="description">Description of the service</a>{studio}</p>
<label id="examples" hidden>Examples: <select><option value="">choose a query</option></select></label>
</header>
<main id="yasgui"></main>
<noscript>The query editor needs JavaScript; the endpoint does not.</noscript>
<script type="application/json" id="settings">{settings}</script>
<script src="static/trusted.js"></script>
<script src="static/yasgui.min.js"></script>
<script src="static/pictures.js"></script>
<script src="static/page.js"></script>
</body>
</html>
"""


def page(backend: Backend, limits: Limits, root: str, *, studio: bool = False) -> bytes:
    """Return the page as HTML.

    `root` is the path of the application, and `studio` is whether the server has a studio.
    """
    first_query = "".join(f"PREFIX {prefix}: <{iri}>\n" for prefix, iri in backend.prefixes.items())
    first_query += "\nSELECT ?subject ?predicate ?object WHERE {\n  ?subject ?predicate ?object\n} LIMIT 10\n"
    # A script element is not unescaped, and only `<` could end it.
    examples = [{"about": about, "query": query} for about, query in backend.examples]
    settings = {
        "query": first_query.lstrip(),
        "prefixes": {**backend.predeclared, **backend.prefixes},
        "examples": examples,
        "base": backend.base,
        "about": backend.about,
        "most": limits.rows,
        "studio": studio,
    }
    settings_json = json.dumps(settings).replace("<", "\\u003c")
    rows = "as many results as there are" if limits.rows is None else f"at most {limits.rows:,} results are given"
    link = ' <a href="./">Studio</a>' if studio else ""
    return _PAGE.format(timeout=limits.timeout, rows=escape(rows), settings=settings_json, root=escape(root), studio=link).encode()
