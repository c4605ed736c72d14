"""Requests of the SPARQL 1.1 Protocol, or the status for what is wrong with one, and the result formats
that a request accepts.

    GET      query, default-graph-uri, named-graph-uri in the address
    POST     application/x-www-form-urlencoded: the same in the body (the data set may be in the address)
    POST     application/sparql-query: the query is the body, the rest is in the address

`timeout` (seconds) is an extension. Updates are refused: an endpoint is read-only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from condgraph.engine.errors import shortened

#: The default size limit of a body in bytes, and the most characters of a query.
MAX_BYTES: Final = 4 << 20
MAX_CHARACTERS: Final = 1 << 20
#: How many bytes of an oversized body are read and discarded before the response.
DRAIN: Final = 64 << 20
_MAX_FIELDS: Final = 1000
_FORM, _QUERY, _UPDATE = "application/x-www-form-urlencoded", "application/sparql-query", "application/sparql-update"
#: How many characters of a media type's parameters are read.
_MAX_PARAMETERS: Final = 1_000
_CHARSET: Final = re.compile(r"""(?:^|;)\s*+charset\s*+=\s*+["']?+([^\s;"']*+)""", re.IGNORECASE).search
_IRI: Final = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*+:[^\x00-\x20<>"{}|\\^`]*')
_READ_ONLY: Final = "this endpoint is for reading: updates are refused"


class ProtocolError(Exception):
    """A request that is answered with an error status and a text."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.message, self.headers = status, shortened(message), dict(headers or {})
        super().__init__(self.message)


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the protocol. `query` is None if it asks for the service description."""

    query: str | None
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    timeout: float | None = None
    #: The formats named in the request. The first known one takes precedence over `Accept`.
    formats: tuple[str, ...] = ()

    @property
    def dataset(self) -> bool:
        """Whether the request specifies the data set of the query."""
        return bool(self.default_graphs or self.named_graphs)


def _unquoted(data: bytes) -> str:
    """Decode a name or value of a form like `urllib.parse.parse_qsl`, but three times as fast."""
    data = data.replace(b"+", b" ")
    if b"%" not in data:
        return data.decode()
    try:
        # Python's string escapes are hexadecimal bytes, too, and can be decoded in one call.
        return data.replace(b"\\", b"\\\\").replace(b"%", b"\\x").decode("unicode_escape").encode("latin-1").decode()
    except UnicodeDecodeError:  # a lone percent sign, or not UTF-8
        return unquote_to_bytes(data).decode()


@dataclass(slots=True)
class _Parameters:
    values: dict[str, list[str]] = field(default_factory=dict)

    def add(self, data: bytes, where: str) -> None:
        if not data:
            return
        if data.count(b"&") >= _MAX_FIELDS:
            raise ProtocolError(400, f"the {where} has more than {_MAX_FIELDS} fields")
        try:
            for pair in data.split(b"&"):
                if pair:
                    name, _, value = pair.partition(b"=")
                    self.values.setdefault(_unquoted(name), []).append(_unquoted(value))
        except UnicodeDecodeError:
            raise ProtocolError(400, f"the {where} is not UTF-8") from None

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def single(self, name: str) -> str | None:
        values = self.all(name)
        if len(values) > 1:
            raise ProtocolError(400, f"{len(values)} values of '{name}', there may be one")
        return values[0] if values else None

    def graphs(self, name: str) -> tuple[str, ...]:
        for iri in self.all(name):
            if not _IRI.fullmatch(iri):
                raise ProtocolError(400, f"{name} {iri!r} is not an absolute IRI")
        return tuple(self.all(name))

    def timeout(self) -> float | None:
        text = self.single("timeout")
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            raise ProtocolError(400, f"timeout {text!r} is not a number of seconds above 0")
        return seconds


def read(method: str, address: bytes, content_type: str | None, body: bytes) -> Request:
    """Parse a request: its method (GET, HEAD or POST), query string, media type and body."""
    parameters = _Parameters()
    parameters.add(address, "address")
    body_query = None
    if method == "POST":
        kind = _media_type(content_type)
        if kind == _UPDATE:
            raise ProtocolError(403, _READ_ONLY)
        if kind == _FORM:
            parameters.add(body, "body")
        elif kind == _QUERY:
            try:
                body_query = body.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ProtocolError(400, f"the query is not UTF-8: {error.reason} at byte {error.start}") from None
        else:
            problem = f"unknown media type {kind}" if kind else "a body without a media type"
            raise ProtocolError(415, f"{problem}: send {_QUERY} or {_FORM}", {"Accept-Post": f"{_QUERY}, {_FORM}"})
    if parameters.all("update"):
        raise ProtocolError(403 if method == "POST" else 400, _READ_ONLY)
    query = parameters.single("query")
    if body_query is not None:
        if query is not None:
            raise ProtocolError(400, "a query in the address and another one in the body")
        query = body_query
    if query is not None and len(query) > MAX_CHARACTERS:
        raise ProtocolError(413, f"a query has at most {MAX_CHARACTERS:,} characters")
    if query is None and method == "POST":
        raise ProtocolError(400, "no query: the field 'query' is missing")
    if query is not None and not query.strip():
        raise ProtocolError(400, "the query is empty")
    return Request(
        query,
        parameters.graphs("default-graph-uri"),
        parameters.graphs("named-graph-uri"),
        parameters.timeout(),
        tuple(parameters.all("format")),
    )


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """A read request of the Graph Store Protocol.

    `graph` is None for the default graph. With `whole`, all graphs are requested, each with its name.
    """

    graph: str | None
    whole: bool = False
    formats: tuple[str, ...] = ()


def read_graph(address: bytes) -> GraphRequest:
    """Return which graph a Graph Store request asks for: `?default`, `?graph=IRI`, or all without either."""
    parameters = _Parameters()
    parameters.add(address, "address")
    graphs, default = parameters.graphs("graph"), parameters.all("default")
    others = set(parameters.values) - {"graph", "default", "format"}
    if len(graphs) + len(default) > 1 or others:
        raise ProtocolError(400, "name one graph: ?default, or ?graph= and its IRI")
    return GraphRequest(graphs[0] if graphs else None, not graphs and not default, tuple(parameters.all("format")))


def _media_type(content_type: str | None) -> str | None:
    """Return the media type without parameters, in lower case. Charsets other than UTF-8 are refused."""
    if not content_type:
        return None
    kind, _, rest = content_type.partition(";")
    charset = _CHARSET(rest[:_MAX_PARAMETERS])
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise ProtocolError(415, f"charset {charset[1]}: the protocol is UTF-8")
    return kind.strip().lower()


# -- formats -----------------------------------------------------------------------------------------
# Content negotiation follows RFC 9110, section 12.5.1.


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name in a worker's queries, its media types (the first is the main one), and its IRI."""

    name: str
    media_types: tuple[str, ...]
    iri: str

    @property
    def media_type(self) -> str:
        """The main media type."""
        return self.media_types[0]


_W3: Final = "http://www.w3.org/ns/formats/"
#: For SELECT and ASK. Clients that accept anything get the first format.
SOLUTIONS: Final = (
    Format("json", ("application/sparql-results+json", "application/json"), _W3 + "SPARQL_Results_JSON"),
    Format("xml", ("application/sparql-results+xml", "application/xml", "text/xml"), _W3 + "SPARQL_Results_XML"),
    Format("csv", ("text/csv",), _W3 + "SPARQL_Results_CSV"),
    Format("tsv", ("text/tab-separated-values",), _W3 + "SPARQL_Results_TSV"),
)
#: For CONSTRUCT and DESCRIBE, for graphs, and for the service description.
GRAPHS: Final = (
    Format("turtle", ("text/turtle", "application/x-turtle"), _W3 + "Turtle"),
    Format("ntriples", ("application/n-triples", "text/plain"), _W3 + "N-Triples"),
    Format("jsonld", ("application/ld+json", "application/json"), _W3 + "JSON-LD"),
    Format("rdfxml", ("application/rdf+xml", "application/xml", "text/xml"), _W3 + "RDF_XML"),
)
#: For all graphs together, each with its name.
DATASETS: Final = (
    Format("trig", ("application/trig", "application/x-trig"), _W3 + "TriG"),
    Format("nquads", ("application/n-quads", "text/x-nquads"), _W3 + "N-Quads"),
)
#: Additional names for `format=`.
_ALSO: Final = {"nt": "ntriples", "ttl": "turtle", "json-ld": "jsonld", "rdf": "rdfxml", "rdf+xml": "rdfxml", "nq": "nquads"}
HTML: Final = Format("html", ("text/html", "application/xhtml+xml"), "")
#: These are sent with a charset, because clients would otherwise guess it.
_TEXTS: Final = frozenset({"text/csv", "text/tab-separated-values", "text/turtle", "text/plain", "text/html", "text/xml"})

#: RDF versions that a media type may request (RDF 1.2 Concepts, section 2.1) in ascending order. The default is 1.1.
_VERSIONS: Final = ("1.1", "1.2-basic", "1.2")
#: Formats without RDF 1.2. CSV has plain texts in any case.
_UNVERSIONED: Final = frozenset({"csv", "jsonld"})
#: How many characters of a header an error repeats. Results for headers up to this length are cached.
_SHOWN: Final = 200
_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_RANGE: Final = re.compile(rf"\s*({_NAME})/({_NAME})\s*")
#: Separators outside quotes. An unclosed quote extends to the end, so that one pass is enough.
_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|(,)')
_SEMICOLON: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|(;)')
_QUALITY: Final = re.compile(r"\s*q\s*=\s*(\"?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\1\s*", re.I | re.A)


@dataclass(frozen=True, slots=True)
class ChosenFormat:
    """A format with the requested media type and RDF version ("" for none)."""

    format: Format
    media_type: str
    version: str = ""

    @property
    def content_type(self) -> str:
        """The `Content-Type` header."""
        version = f"; version={self.version}" if self.version else ""
        return self.media_type + ("; charset=utf-8" if self.media_type in _TEXTS else "") + version


def choose(accept: str | None, formats: tuple[Format, ...]) -> ChosenFormat | None:
    """Return the format with the highest quality (the first among equals), or None if none is acceptable.

    >>> choose("text/csv;q=0.5, application/*;q=0.9", SOLUTIONS).media_type
    'application/sparql-results+json'
    >>> choose("application/xml, */*;q=0.1", GRAPHS).media_type
    'application/xml'
    >>> choose("image/png", GRAPHS)
    >>> choose("text/turtle;version=1.2, application/n-triples;q=0.5", GRAPHS).content_type
    'text/turtle; charset=utf-8; version=1.2'
    """
    return (_choose_cached if accept is None or len(accept) <= _SHOWN else _choose)(accept, formats)


def _choose(accept: str | None, formats: tuple[Format, ...]) -> ChosenFormat | None:
    ranges = _ranges(accept)
    best: tuple[float, ChosenFormat] | None = None
    for form in formats:
        for media_type in form.media_types:
            quality = _quality(media_type, ranges, own=media_type == form.media_type)
            if quality > 0 and (best is None or quality > best[0]):
                best = quality, ChosenFormat(form, media_type)
    return None if best is None else versioned(best[1], accept)


def versioned(chosen: ChosenFormat, accept: str | None) -> ChosenFormat:
    """Return a format with the highest RDF version that `Accept` requests for it."""
    if not accept or "version" not in accept.lower() or chosen.format.name in _UNVERSIONED:
        return chosen
    highest = ""
    for item in _split(accept, _COMMA):
        name, *parameters = _split(item, _SEMICOLON)
        if name.strip().lower() in (chosen.media_type, "*/*", chosen.media_type.partition("/")[0] + "/*"):
            for parameter in parameters:
                key, _, value = parameter.partition("=")
                version = value.strip().strip('"')
                if key.strip().lower() == "version" and version in _VERSIONS:
                    highest = max(highest, version, key=lambda one: _VERSIONS.index(one) if one else -1)
    return replace(chosen, version=highest)


#: Clients send the same few headers again and again.
_choose_cached: Final = lru_cache(maxsize=256)(_choose)


def wanted(names: tuple[str, ...], accept: str | None, formats: tuple[Format, ...]) -> ChosenFormat:
    """Return the format named by `format=` (a name or a media type), or else the best one for `Accept`.

    Some clients send several names, not all of which are known here. If no name is known and `Accept`
    permits anything, status 406 is raised with a list of the formats.

    >>> wanted(("CSV",), None, SOLUTIONS).media_type, wanted(("odd", "application/json"), None, SOLUTIONS).format.name
    ('text/csv', 'json')
    """
    for name in names:
        plain = name.partition(";")[0].strip().lower()
        known = _ALSO.get(plain, plain)
        for form in formats:
            if known == form.name or known in form.media_types:
                chosen = ChosenFormat(form, known if known in form.media_types else form.media_type)
                return versioned(chosen, name.replace(name.partition(";")[0], chosen.media_type, 1) if ";" in name else accept)
    if names and ("*", "*") in _ranges(accept):
        available = ", ".join(form.name for form in formats)
        raise ProtocolError(406, f"format={names[0][:_SHOWN]!r} cannot be given here; there is: {available}")
    return require(accept, formats)


def require(accept: str | None, formats: tuple[Format, ...]) -> ChosenFormat:
    """Return the best format for `Accept`. Raises status 406 with a list of the formats."""
    chosen = choose(accept, formats)
    if chosen is None:
        available = ", ".join(form.media_type for form in formats)
        header = accept if accept is None or len(accept) <= _SHOWN else accept[:_SHOWN] + "..."
        raise ProtocolError(406, f"nothing that is accepted ({header}) can be given here; there is: {available}")
    return chosen


def _ranges(accept: str | None) -> dict[tuple[str, str], float]:
    """Parse the media ranges with their qualities.

    Unreadable ones are left out. If none is left, everything is accepted.

    >>> _ranges("text/html, *; q=.2, image, text/csv;q=much, text/turtle;charset=utf-8;q=0.5")
    {('text', 'html'): 1.0, ('*', '*'): 0.2, ('text', 'turtle'): 0.5}
    >>> _ranges("image, ,")
    {('*', '*'): 1.0}
    """
    qualities: dict[tuple[str, str], float] = {}
    for item in _split(accept or "", _COMMA):
        if not item:
            continue
        name, *parameters = _split(item, _SEMICOLON)
        # Java's HTTP client writes `*` for `*/*`.
        types = _RANGE.fullmatch("*/*" if name.strip() == "*" else name)
        quality = _QUALITY.fullmatch(next((text for text in parameters if text.partition("=")[0].strip().lower() == "q"), "q=1"))
        if types is None or quality is None:
            continue
        key = types[1].lower(), types[2].lower()
        qualities[key] = max(qualities.get(key, 0.0), min(1.0, float(quality[2])))
    return qualities or {("*", "*"): 1.0}


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split a text at separators outside quotes."""
    parts, last = [], 0
    for match in separator.finditer(text):
        if match[1]:
            parts.append(text[last : match.start()])
            last = match.end()
    return [*parts, text[last:]]


def _quality(media_type: str, ranges: dict[tuple[str, str], float], *, own: bool) -> float:
    """Return the quality of a media type, from the most specific range that matches.

    Wildcards match only the main media type of a format.
    """
    kind, _, subtype = media_type.partition("/")
    for key in ((kind, subtype), (kind, "*"), ("*", "*")):
        if key[1] == "*" and not own:
            return 0.0
        if key in ranges:
            return ranges[key]
    return 0.0
