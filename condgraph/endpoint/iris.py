"""IRIs of a graph as addresses of the server: RDF for programs, the page for browsers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from condgraph.endpoint.formats import GRAPHS, HTML, Chosen, require
from condgraph.endpoint.protocol import ProtocolError
from condgraph.sparql.layout import PLAIN
from condgraph.sparql.workers.pool import Query

if TYPE_CHECKING:
    from condgraph.endpoint.exchange import Exchange
    from condgraph.endpoint.service import Backend


#: What clients write otherwise than it stands in IRIs: letters beyond ASCII, and signs that stand for themselves there.
_ESCAPES: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2})++")
#: These stay percent-encoded: a path that is resolved takes them for steps, and an underscore is a space.
_KEPT: Final = frozenset("./_")


def path_of(base: str | None) -> str | None:
    """The path that the IRIs of a base have here, decoded; None where they are no addresses of HTTP, or
    have braces, which the routes of an application take for something else.

    >>> path_of("http://condgraph.example/my%5Ffilms/"), path_of("https://example.org/"), path_of("neo4j://films/")
    ('/my_films/', '/', None)
    """
    if base is None:
        return None
    found = urlsplit(base)
    path = unquote(found.path)
    return path if found.scheme.lower() in ("http", "https") and not set("{}") & set(path) else None


def iri_of(base: str, path: bytes) -> str | None:
    """The IRI that is asked for by a path (as it was sent, without what the base has of it); None
    for one that no IRI has.

    >>> iri_of("http://example.org/", b"Erd%C5%91s_number"), iri_of("http://example.org/", b"a%5fb_%25")
    ('http://example.org/Erdős_number', 'http://example.org/a%5Fb_%25')
    """
    try:
        text = _ESCAPES.sub(_plain, path).decode()
    except UnicodeDecodeError:
        return None
    return None if any(c in '<>"{}|^`\\' or c <= " " for c in text) else base + text


def _plain(found: re.Match[bytes]) -> bytes:
    """Percent-encoded bytes as they stand in IRIs of ours."""
    return "".join(map(_character, unquote_to_bytes(found[0]).decode())).encode()


def _character(c: str) -> str:
    if c in _KEPT:
        return f"%{ord(c):02X}"
    return c if c in PLAIN or (not c.isascii() and c.isalnum() and c < "\U00010000") else quote(c, safe="")


async def described(backend: Backend, iri: str, accept: str | None, timeout: float) -> tuple[Query, Chosen] | None:
    """The query that says what the graph says of an IRI, with the format of its result; None where
    the page is wanted. Raises status 404 where the graph says nothing of it.
    """
    chosen = require(accept, (*GRAPHS, HTML))
    text = f"DESCRIBE <{iri}>"
    results = await backend.query(Query(text, triples="ntriples", limit=1), timeout)
    try:
        something = any([bool(part.strip()) async for part in results])
    finally:
        results.close()
    if not something:
        raise ProtocolError(404, f"the graph says nothing of <{iri}>")
    if chosen.format is HTML:
        return None
    return Query(text, triples=chosen.format.name, output_prefixes=backend.prefixes), chosen  # type: ignore[arg-type]


def address_of_page(exchange: Exchange, iri: str) -> str:
    """The page with a query about an IRI."""
    return f"{exchange.root}?about={quote(iri, safe='')}"
