"""Requests of the SPARQL 1.1 Protocol: what a request asks for, or the status that says what is
wrong with it.

    GET      query, default-graph-uri, named-graph-uri in the address
    POST     application/x-www-form-urlencoded: the same in the body (the data set may stand in the address)
    POST     application/sparql-query: the query is the body, the rest stands in the address

`timeout` (seconds) is ours. Updates are refused: an endpoint is for reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

from condgraph.engine.errors import shortened

#: Bytes of a request that are read, unless the server is told otherwise; and characters of a query.
MOST_BYTES: Final = 4 << 20
MOST_CHARACTERS: Final = 1 << 20
#: Bytes of a body that is too long that are read, and thrown away, before that is said.
DRAIN: Final = 64 << 20
_MOST_FIELDS: Final = 1000
_FORM, _QUERY, _UPDATE = "application/x-www-form-urlencoded", "application/sparql-query", "application/sparql-update"
#: Characters of a media type's parameters that are read.
_MOST_PARAMETERS: Final = 1_000
_CHARSET: Final = re.compile(r"""(?:^|;)\s*+charset\s*+=\s*+["']?+([^\s;"']*+)""", re.IGNORECASE).search
_IRI: Final = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*+:[^\x00-\x20<>"{}|\\^`]*')
_READ_ONLY: Final = "this endpoint is for reading: updates are refused"


class ProtocolError(Exception):
    """A request that is answered with a status of the protocol and a text."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.message, self.headers = status, shortened(message), dict(headers or {})
        super().__init__(self.message)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked; `query` is None where the request asks about the service."""

    query: str | None
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    timeout: float | None = None
    #: Formats that the request names beside `Accept`, the first that is known goes before it.
    formats: tuple[str, ...] = ()

    @property
    def dataset(self) -> bool:
        """Whether the request says what data set the query is about."""
        return bool(self.default_graphs or self.named_graphs)


def _unquoted(data: bytes) -> str:
    """A name or a value of a form, as `urllib.parse.parse_qsl` reads it, in a third of the time."""
    data = data.replace(b"+", b" ")
    if b"%" not in data:
        return data.decode()
    try:
        # Hexadecimal numbers of bytes are what escapes of strings are, too, and those are read at once.
        return data.replace(b"\\", b"\\\\").replace(b"%", b"\\x").decode("unicode_escape").encode("latin-1").decode()
    except UnicodeDecodeError:  # a percent sign that stands for itself, or no UTF-8
        return unquote_to_bytes(data).decode()


@dataclass(slots=True)
class _Parameters:
    values: dict[str, list[str]] = field(default_factory=dict)

    def add(self, data: bytes, where: str) -> None:
        if not data:
            return
        if data.count(b"&") >= _MOST_FIELDS:
            raise ProtocolError(400, f"the {where} has more than {_MOST_FIELDS} fields")
        try:
            for pair in data.split(b"&"):
                if pair:
                    name, _, value = pair.partition(b"=")
                    self.values.setdefault(_unquoted(name), []).append(_unquoted(value))
        except UnicodeDecodeError:
            raise ProtocolError(400, f"the {where} is not UTF-8") from None

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def one(self, name: str) -> str | None:
        found = self.all(name)
        if len(found) > 1:
            raise ProtocolError(400, f"{len(found)} values of '{name}', there may be one")
        return found[0] if found else None

    def graphs(self, name: str) -> tuple[str, ...]:
        for iri in self.all(name):
            if not _IRI.fullmatch(iri):
                raise ProtocolError(400, f"{name} {iri!r} is no absolute IRI")
        return tuple(self.all(name))

    def timeout(self) -> float | None:
        text = self.one("timeout")
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            raise ProtocolError(400, f"timeout {text!r} is no number of seconds above 0")
        return seconds


def read(method: str, address: bytes, content_type: str | None, body: bytes) -> Request:
    """Read a request: its method (GET, HEAD or POST), the part of its address behind `?`, its media
    type and its body.
    """
    parameters = _Parameters()
    parameters.add(address, "address")
    direct = None
    if method == "POST":
        kind = _media_type(content_type)
        if kind == _UPDATE:
            raise ProtocolError(403, _READ_ONLY)
        if kind == _FORM:
            parameters.add(body, "body")
        elif kind == _QUERY:
            try:
                direct = body.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ProtocolError(400, f"the query is not UTF-8: {error.reason} at byte {error.start}") from None
        else:
            said = f"no media type {kind}" if kind else "a body without a media type"
            raise ProtocolError(415, f"{said}: send {_QUERY} or {_FORM}", {"Accept-Post": f"{_QUERY}, {_FORM}"})
    if parameters.all("update"):
        raise ProtocolError(403 if method == "POST" else 400, _READ_ONLY)
    query = parameters.one("query")
    if direct is not None:
        if query is not None:
            raise ProtocolError(400, "a query in the address and another one in the body")
        query = direct
    if query is not None and len(query) > MOST_CHARACTERS:
        raise ProtocolError(413, f"a query has at most {MOST_CHARACTERS:,} characters")
    if query is None and method == "POST":
        raise ProtocolError(400, "no query: the field 'query' is missing")
    return Request(
        query,
        parameters.graphs("default-graph-uri"),
        parameters.graphs("named-graph-uri"),
        parameters.timeout(),
        tuple(parameters.all("format")),
    )


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """A read of the Graph Store Protocol; `graph` is None for the default graph. `whole` asks for
    all graphs, each with its name.
    """

    graph: str | None
    whole: bool = False
    formats: tuple[str, ...] = ()


def read_graph(address: bytes) -> GraphRequest:
    """Which graph a Graph Store request names: `?default` or `?graph=IRI`; without either, all."""
    parameters = _Parameters()
    parameters.add(address, "address")
    graphs, default = parameters.graphs("graph"), parameters.all("default")
    others = set(parameters.values) - {"graph", "default", "format"}
    if len(graphs) + len(default) > 1 or others:
        raise ProtocolError(400, "name one graph: ?default, or ?graph= and its IRI")
    return GraphRequest(graphs[0] if graphs else None, not graphs and not default, tuple(parameters.all("format")))


def _media_type(content_type: str | None) -> str | None:
    """The media type without parameters, in lower case; anything but UTF-8 is refused."""
    if not content_type:
        return None
    kind, _, rest = content_type.partition(";")
    charset = _CHARSET(rest[:_MOST_PARAMETERS])
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise ProtocolError(415, f"charset {charset[1]}: the protocol is UTF-8")
    return kind.strip().lower()
