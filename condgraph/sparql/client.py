"""HTTP client of a SPARQL endpoint: queries, updates, responses, and errors."""

from __future__ import annotations

import http.client
import math
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from email.utils import parsedate_to_datetime
from functools import cache, partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast
from urllib.parse import quote, quote_plus, urlsplit

from condgraph.engine import errors
from condgraph.engine.addresses import parse, shown
from condgraph.engine.bounds import Workers, cached, check_bounds, current, left, within
from condgraph.engine.wire import Pool, Wire
from condgraph.sparql.dialect import STANDARD, Dialect, dialect_of

if TYPE_CHECKING:
    import pyoxigraph
    from SPARQLWrapper import SPARQLWrapper


# -- refusals ----------------------------------------------------------------------------------------
# Errors of servers: HTTP statuses, and messages within the results.


#: Parts of a server's message about a query that took too long.
_LATE: Final = ("S1T00", "imeout", "timed out", "imed out")
_SHORTER: Final = "its own limit may be shorter than timeout="
#: A message appended to a response that breaks off after a token.
_WORDS: Final = re.compile(r"[\n\[{}\],>]([A-Z][\w ,:;'-]*+)\.?\s*+\Z")
#: Bytes at the end of a response that are searched for a message.
_END: Final = 500


def refused(url: str, code: int, kind: str, said: str) -> errors.StoreError | errors.ParseError | errors.DeadlineError:
    """Return the error for an HTTP status."""
    short = " ".join(said.split())[:600]
    if code in (408, 504):
        # A proxy responds with a page.
        message = (
            f"the server ended the query: {short}" if kind != "text/html" else f"{url} did not answer its proxy in time ({code})"
        )
        return errors.DeadlineError(message, hint=_SHORTER)
    if code in (401, 403):
        return errors.StoreError(f"{url} refuses the user or the password", hint="set SPARQL_USERNAME and SPARQL_PASSWORD")
    if code == 502:
        return errors.StoreError(f"the server of {url} does not answer its proxy (502)", hint="is it running?")
    if code in (404, 405, 406, 415) or kind == "text/html":
        return errors.StoreError(f"{url} is not a SPARQL endpoint: it returns {code}", hint="is the path right?")
    if code == 400:
        return errors.ParseError(f"the server cannot read the query: {short}")
    if any(mark in said for mark in _LATE):
        return errors.DeadlineError(f"the server ended the query: {short}", hint=_SHORTER)
    return errors.StoreError(f"the server says ({code}): {short}")


def broken(url: str, error: SyntaxError, last: bytes) -> errors.StoreError | errors.DeadlineError:
    """Return the error for results that cannot be read to their end; `last` is their last part.

    A server that gives up has begun to respond, and appends a message.
    """
    words = _WORDS.search(last[-_END:].decode(errors="replace"))
    if words is not None and ("cancel" in words[1] or any(mark in words[1] for mark in _LATE)):
        return errors.DeadlineError(f"the server ended the query: {words[1]}", hint=_SHORTER)
    return errors.StoreError(
        f"{url} returned something other than a SPARQL result: {error}", hint="the server may have ended the query"
    )


# -- replies -----------------------------------------------------------------------------------------
# A response of a SPARQL endpoint: the body in pieces, and its solutions one by one.


_CHUNK: Final = 1 << 18


#: ASCII characters that `quote_plus` encodes in an address or a form, with "%" and "+" before others.
_CODES: Final = [(character, quote_plus(character, safe="/")) for character in "%+ " + "".join(map(chr, range(128)))]
_ENCODED: Final = [(character, code) for character, code in dict(_CODES).items() if character != code]


def encoded(text: str) -> str:
    """Encode a text for an address or a form, as `quote_plus` does, but five times as fast for a query of some thousand
    characters.
    """
    if not text.isascii():
        return quote_plus(text, safe="/")
    for character, code in _ENCODED:
        text = text.replace(character, code)
    return text


@cache
def wrapper_class() -> Any:
    """Return a subclass of SPARQLWrapper with its own opener: for digest authentication, SPARQLWrapper would set a global one."""
    try:
        from SPARQLWrapper import SPARQLWrapper
    except ImportError:
        raise errors.MissingExtraError("SPARQLWrapper", "sparql") from None

    class Wrapper(SPARQLWrapper):
        """A request."""

        opener: urllib.request.OpenerDirector
        wire: Wire

        def _getRequestEncodedParameters(self, query: tuple[str, str] | None = None) -> str:
            fields = {**self.parameters, **({query[0]: [query[1]]} if query else {})}
            return "&".join(f"{encoded(name)}={encoded(value)}" for name, values in fields.items() for value in values)

        def _query(self) -> tuple[Any, str]:
            request: Any = self._createRequest()
            request.wire = self.wire
            if self.timeout is None:
                return self.opener.open(request), self.returnFormat
            return self.opener.open(request, timeout=self.timeout), self.returnFormat

    return Wrapper


class Solutions:
    """The solutions of a SELECT, parsed one by one, with its variables."""

    __slots__ = ("_found", "_readable", "variables")

    def __init__(self, found: pyoxigraph.QuerySolutions, readable: Callable[[], AbstractContextManager[None]]) -> None:
        self._found, self._readable, self.variables = found, readable, found.variables

    def __iter__(self) -> Iterator[pyoxigraph.QuerySolution]:
        with self._readable():
            yield from self._found


def chunks(response: Any) -> Iterator[bytes]:
    """Yield the body in pieces."""
    while data := response.read(_CHUNK):
        yield data
    _check_end(response)


def _check_end(response: Any) -> None:
    """Raise an error if the body ends before its length, which `http.client` takes for the end."""
    if getattr(response, "length", None):
        raise http.client.IncompleteRead(b"", response.length)


class Reader:
    """A response as a file; `waited` runs each read."""

    def __init__(self, response: Any, waited: Callable[[Callable[[], bytes]], bytes]) -> None:
        self._response, self._waited = response, waited
        #: The last part that was not empty.
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        part = self._waited(lambda: bytes(self._response.read1(size)))
        if not part and size:
            _check_end(self._response)
        self.last = part or self.last
        return part


# -- client ------------------------------------------------------------------------------------------
# Sends requests with SPARQLWrapper; pyoxigraph reads the responses, as for the embedded store. The
# protocol has no deadlines: a request with a deadline waits in a thread (`workers`), the caller continues
# at the deadline in any case, the connection is cut, and the server ends the query as configured. A store
# that cuts results (a row limit of Virtuoso, a partial answer) reports it in a header; this is treated as
# an error, never as a shorter answer.


T = TypeVar("T")
Method = Literal["auto", "get", "post"]

#: Longest request line (encoded query, in characters) for GET; longer queries are sent by POST.
MAX_GET: Final = 1_500
#: Default of `patience=`: seconds for a response that costs the server nothing.
PATIENCE: Final = 30.0
#: Most attempts with a busy server, and the longest pause (seconds) between them.
MAX_TRIES: Final = 4
MAX_PAUSE: Final = 120.0
#: Factor on `patience` for requests that read or write a part of a graph.
_LONG: Final = 10
#: Virtuoso's form of a blank node in results; no label of one has a colon.
_BLANK: Final = re.compile(rb'("type"\s*:\s*"bnode"\s*,\s*"value"\s*:\s*")nodeID://')
_RESULTS: Final = ("application/sparql-results+json", "application/json")
_GRAPHS: Final = {
    "application/n-triples": "N_TRIPLES",
    "text/plain": "N_TRIPLES",
    "text/turtle": "TURTLE",
    "application/x-turtle": "TURTLE",
    "application/rdf+xml": "RDF_XML",
}


def _until() -> float:
    """Return the time at which the running call has to end."""
    remaining = left()
    return math.inf if remaining is None else time.monotonic() + remaining


class Endpoint:
    """A SPARQL 1.1 endpoint.

    `query` is its address (`http://user:password@host/sparql`; otherwise `SPARQL_USERNAME` and `SPARQL_PASSWORD`),
    `update` that for updates (by default the same), `store` that of the Graph Store Protocol, if there is one.
    Authentication is basic or digest, as the server requires. `method` is "get", "post", or "auto": POST for long
    queries. `timeout` is the default deadline of queries, in seconds; `patience` is how many seconds the server may be
    silent on small requests (ten times that for a part of a graph).
    """

    def __init__(
        self,
        query: str,
        *,
        update: str | None = None,
        store: str | None = None,
        user: str | None = None,
        password: str | None = None,
        method: Method = "auto",
        timeout: float | None = None,
        read_only: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        check_bounds(timeout)
        if not patience > 0:
            raise errors.OptionError(f"patience is in seconds and more than 0, not {patience}")
        self.patience = patience
        if method not in ("auto", "get", "post"):
            raise errors.OptionError(f"method is 'auto', 'get' or 'post', not {method!r}")
        addresses = [_address(url) for url in (query, update or query, store or query)]
        self.query_url, self.update_url = addresses[0][0], addresses[1][0]
        self.store_url = None if store is None else addresses[2][0]
        self._user = user or next((one for _, one, _ in addresses if one), None) or os.environ.get("SPARQL_USERNAME")
        self._password = password or next((one for _, _, one in addresses if one), None) or os.environ.get("SPARQL_PASSWORD") or ""
        self._method, self.timeout, self.read_only = method, timeout, read_only
        # These threads may wait for a server that never responds; nobody waits for the threads.
        self._workers = Workers("condgraph-sparql")
        self._pool = Pool()
        #: The kind of store; known after the first query.
        self.dialect: Dialect = STANDARD

    def __repr__(self) -> str:
        return f"<Endpoint {self.query_url}>"

    def close(self) -> None:
        """Close idle connections."""
        self._pool.close()

    # -- reading -----------------------------------------------------------------------------------

    def query(
        self,
        text: str,
        *,
        graphs: Iterable[str] = (),
        timeout: float | None = None,
        cancelled: Event | None = None,
        patience: float | None = None,
        most_bytes: int | None = None,
    ) -> Solutions | pyoxigraph.QueryBoolean:
        """Run a SELECT or an ASK over the union of `graphs` as default graph (the endpoint's own if none is given).

        `patience` is the timeout in seconds of queries that cost the server nothing. A response of more than
        `most_bytes` is an error. A busy server (429, 503) is asked again when it says, or after some seconds, a few
        times. Raises `DeadlineError` at the deadline (its own, or that of the surrounding call), `ParseError` for a
        query that the server cannot read, otherwise `StoreError`.
        """
        import pyoxigraph

        graph_iris = tuple(graphs)
        if timeout is None and current() is None:
            timeout = self.timeout
        with within(timeout, cancelled):
            until = _until()
            body = self._waited(lambda wire: self._results(text, graph_iris, wire, most_bytes, until), patience)
        readable = partial(self._readable, lambda: body)
        with readable():
            results = pyoxigraph.parse_query_results(body, pyoxigraph.QueryResultsFormat.JSON)
        return results if isinstance(results, pyoxigraph.QueryBoolean) else Solutions(results, readable)

    @contextmanager
    def _readable(self, last: Callable[[], bytes]) -> Iterator[None]:
        """Turn a syntax error in results into the error of a server that gave up while responding."""
        try:
            yield
        except SyntaxError as error:
            raise broken(self.query_url, error, last()) from None

    def _results(self, text: str, graphs: tuple[str, ...], wire: Wire, most_bytes: int | None, until: float) -> bytes:
        def request() -> bytes:
            with self._errors(self.query_url), self._send(text, graphs, wire, _RESULTS[0], "json") as response:
                kind = response.headers.get_content_type()
                if kind not in _RESULTS:
                    raise errors.StoreError(
                        f"{self.query_url} is not a SPARQL endpoint: it returns {kind}", hint="is the path right?"
                    )
                self._check_complete(response)
                return _BLANK.sub(rb"\1", self._body(response, most_bytes))

        return self._retry(request, wire, until)

    def _retry(self, ask: Callable[[], T], wire: Wire, until: float) -> T:
        """Retry a read request once after a dropped connection, and while the server is busy.

        There is no retry if the pause that it asks for exceeds the call's time (`until`).
        """
        dropped = 0
        for attempt in range(MAX_TRIES):
            try:
                return ask()
            except _DroppedError:
                # The server may have restarted; reading is repeated once, writing never.
                dropped += 1
                if dropped == 2 or wire.over:
                    raise
            except BusyEndpointError as error:
                # The pause is waited for in small steps: the caller may be gone by then.
                pause = error.seconds if error.seconds is not None else 2.0**attempt
                end = time.monotonic() + pause
                if attempt == MAX_TRIES - 1 or pause > MAX_PAUSE or wire.over or end > until:
                    raise
                while (remaining := end - time.monotonic()) > 0 and not wire.over:
                    time.sleep(min(remaining, 0.05))
        raise AssertionError("unreachable")

    def _body(self, response: Any, most_bytes: int | None) -> bytes:
        parts, size = [], 0
        for part in chunks(response):
            parts.append(part)
            size += len(part)
            if most_bytes is not None and size > most_bytes:
                raise errors.StoreError(f"{self.query_url} answers more than {most_bytes:,} bytes", hint="ask for less")
        return b"".join(parts)

    def triples(self, text: str, *, graphs: Iterable[str] = (), whole: bool = False) -> Iterator[pyoxigraph.Triple]:
        """Run a CONSTRUCT or a DESCRIBE and yield its triples as they arrive.

        A server begins to send a `whole` graph soon: it may not be silent for long.
        """
        import pyoxigraph

        accept = ", ".join(["application/n-triples", "text/turtle;q=0.9", "application/rdf+xml;q=0.5"])
        wire = Wire(self.patience)
        silence = _LONG * self.patience if whole else None

        def run(work: Callable[[], T]) -> T:
            return self._waited(lambda _: work(), wire=wire)

        def request() -> Any:
            with self._errors(self.query_url):
                return self._send(text, tuple(graphs), wire, accept, "n3", silence)

        until = _until()
        with self._errors(self.query_url), run(lambda: self._retry(request, wire, until)) as response:
            form = _GRAPHS.get(response.headers.get_content_type())
            if form is None:
                raise errors.StoreError(f"{self.query_url} answers a graph as {response.headers.get_content_type()}")
            self._check_complete(response)
            reader = Reader(response, run)
            with self._readable(lambda: reader.last):
                for quad in pyoxigraph.parse(cast("Any", reader), getattr(pyoxigraph.RdfFormat, form)):
                    yield quad.triple

    def _send(self, text: str, graphs: tuple[str, ...], wire: Wire, accept: str, form: str, silence: float | None = None) -> Any:
        wrapper = self._wrapper(self.query_url, accept, wire, silence, None if self._user else self._reading)
        for graph in graphs:
            wrapper.addDefaultGraph(graph)
        short = len(text) <= MAX_GET and len(encoded(text)) + sum(len(graph) + 20 for graph in graphs) <= MAX_GET
        wrapper.setMethod("GET" if self._method == "get" or (self._method == "auto" and short) else "POST")
        wrapper.queryString, wrapper.queryType = text, "SELECT" if form == "json" else "CONSTRUCT"
        wrapper.setReturnFormat(form)
        return wrapper.query().response

    # -- writing -----------------------------------------------------------------------------------

    def update(self, text: str, *, timeout: float | None = None) -> None:
        """Run a SPARQL Update; raises `ReadOnlyError` on an endpoint that was opened for reading."""
        self._check_writable()

        def send(wire: Wire) -> None:
            wrapper = self._wrapper(self.update_url, "*/*", wire, _LONG * self.patience)
            wrapper.setMethod("POST")
            wrapper.queryString, wrapper.queryType = text, "INSERT"
            with self._errors(self.update_url), wrapper.query().response as response:
                response.read()

        with within(timeout):
            try:
                self._waited(send)
            except (errors.ParseError, errors.StoreError) as error:
                # Servers respond in many ways if an address accepts queries alone.
                if self.update_url == self.query_url and error.hint is None:
                    error.hint = "where another address takes updates, update= (SPARQL_UPDATE on the command line) names it"
                raise

    def add(self, lines: bytes, graph: str) -> None:
        """Add N-Triples to a named graph by the Graph Store Protocol."""
        self._check_writable()
        if self.store_url is None:
            raise errors.StoreError("the endpoint has no address for the Graph Store Protocol", hint="store= gives it")
        mark = "&" if "?" in self.store_url else "?"
        request = urllib.request.Request(f"{self.store_url}{mark}graph={quote(graph, safe='')}", lines, method="POST")
        request.add_header("Content-Type", "application/n-triples")
        url = self.store_url

        def send(wire: Wire) -> None:
            with self._errors(url), self._opener(url, wire).open(request, timeout=_LONG * self.patience) as response:
                response.read()

        self._waited(send)

    def _check_writable(self) -> None:
        if self.read_only:
            raise errors.ReadOnlyError.at(self.query_url)

    # -- one request -------------------------------------------------------------------------------

    def _wrapper(
        self, url: str, accept: str, wire: Wire, silence: float | None, opener: urllib.request.OpenerDirector | None = None
    ) -> SPARQLWrapper:
        wrapper = wrapper_class()(url)
        wrapper.opener = self._opener(url, wire) if opener is None else opener
        wrapper.wire = wire
        wrapper.agent = "condgraph"
        wrapper.setOnlyConneg(True)
        wrapper.addCustomHttpHeader("Accept", accept)
        # SPARQLWrapper's type is whole seconds, but it passes them to the socket unchanged.
        wrapper.timeout = cast("int", silence)
        return cast("SPARQLWrapper", wrapper)

    @cached
    def _reading(self) -> urllib.request.OpenerDirector:
        """The opener that sends queries, on connections that stay open."""
        return urllib.request.build_opener(*self._pool.handlers(), _Redirects())

    def _opener(self, url: str, wire: Wire) -> urllib.request.OpenerDirector:
        # One for each request: urllib counts the failures of digest authentication in the handler, which
        # threads must not share.
        if not self._user:
            return urllib.request.build_opener(*wire.handlers(), _Redirects())
        known = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        known.add_password(None, url, self._user, self._password)
        who = urllib.request.HTTPBasicAuthHandler(known), urllib.request.HTTPDigestAuthHandler(known)
        return urllib.request.build_opener(*wire.handlers(), _Redirects(), *who)

    def _waited(self, work: Callable[[Wire], T], patience: float | None = None, *, wire: Wire | None = None) -> T:
        """Run some work; raises `DeadlineError` at the deadline of the call, `CancelledError` soon after cancellation."""
        wire = wire or Wire(self.patience)
        if patience is None and current() is None:
            return work(wire)
        return self._workers.run(lambda: work(wire), patience=patience, silent=self._silent, cut=wire.cut)

    def _silent(self) -> errors.DeadlineError:
        return errors.DeadlineError(
            f"{self.query_url} does not answer", hint="it may be stopped or very busy; patience= sets how long to wait for it"
        )

    def _check_complete(self, response: Any) -> None:
        """Raise an error if the server reports a partial answer; record the kind of store."""
        self.dialect = dialect_of(response.headers)
        if response.headers.get("X-SPARQL-MaxRows"):
            raise errors.StoreError(
                f"{self.query_url} cuts results at {response.headers['X-SPARQL-MaxRows']} rows",
                hint="raise ResultSetMaxRows of the server, or ask for less",
            )
        if response.headers.get("X-SQL-State", "").startswith("S1TA"):
            raise errors.DeadlineError("the server ended the query at its own limit and gives a part of the answer")

    @contextmanager
    def _errors(self, url: str) -> Iterator[None]:
        try:
            yield
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(4_000).decode(errors="replace").strip()
            if error.code in (429, 503):
                short = " ".join(text.split())[:200]
                after = _pause(error.headers.get("Retry-After"))
                when = "" if after is None else f", and to come back in {after:.0f} s"
                raise BusyEndpointError(f"{url} says that it is busy ({error.code}){when}: {short}", after) from None
            raise refused(url, error.code, error.headers.get_content_type() if error.headers else "", text) from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._silent() from None
            if isinstance(error.reason, ConnectionResetError):
                raise _DroppedError(f"{url} closed the connection ({type(error).__name__})") from None
            raise errors.StoreError(
                f"no server answers at {url}: {error.reason}", hint="is it running, and is the address right?"
            ) from None
        except TimeoutError:
            raise self._silent() from None
        except (ConnectionError, http.client.HTTPException) as error:
            raise _DroppedError(f"{url} closed the connection ({type(error).__name__})") from None


class BusyEndpointError(errors.StoreError):
    """The server reports that it is busy, and possibly for how many seconds."""

    def __init__(self, message: str, seconds: float | None) -> None:
        super().__init__(message, hint="wait, or ask less often")
        self.seconds = seconds


def _pause(text: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date; None if it is neither."""
    if text is None or not text.strip():
        return None
    if text.strip().isdecimal():
        return float(text.strip()[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the same server only: queries and logins are not passed to another one."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the request to the new address."""
        target, origin = urlsplit(newurl), urlsplit(req.full_url)
        if target.hostname != origin.hostname or (origin.scheme == "https" and target.scheme != "https"):
            raise errors.StoreError(
                f"{origin.scheme}://{origin.netloc} redirects to another server, {target.scheme}://{target.hostname}",
                hint="open that address, if it is to be trusted",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _DroppedError(errors.StoreError):
    """The server closed the connection before it had responded."""


def _address(url: str) -> tuple[str, str | None, str | None]:
    """Split an address into the address without login, the user and the password."""
    address = parse(url, ("http", "https"), example="http://localhost:8890/sparql", paths=True)
    if not address.host:
        raise errors.OptionError(
            f"{shown(url)!r} is not the address of an endpoint: it names no server", hint="such as http://localhost:8890/sparql"
        )
    return address.plain, address.user, address.password
