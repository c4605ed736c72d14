"""Formats of results, and which of them a request is answered in (RFC 9110, section 12.5.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from condgraph.sparql.protocol import ProtocolError


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name in the worker's requests, the media types it is asked for by (the first is its own), and its IRI."""

    name: str
    media_types: tuple[str, ...]
    iri: str

    @property
    def media_type(self) -> str:
        """Its own media type."""
        return self.media_types[0]


_W3: Final = "http://www.w3.org/ns/formats/"
#: For SELECT and ASK; the first is given to those who take anything.
SOLUTIONS: Final = (
    Format("json", ("application/sparql-results+json", "application/json"), _W3 + "SPARQL_Results_JSON"),
    Format("xml", ("application/sparql-results+xml", "application/xml", "text/xml"), _W3 + "SPARQL_Results_XML"),
    Format("csv", ("text/csv",), _W3 + "SPARQL_Results_CSV"),
    Format("tsv", ("text/tab-separated-values",), _W3 + "SPARQL_Results_TSV"),
)
#: For CONSTRUCT and DESCRIBE, for graphs, and for the description of the service.
GRAPHS: Final = (
    Format("turtle", ("text/turtle", "application/x-turtle"), _W3 + "Turtle"),
    Format("ntriples", ("application/n-triples", "text/plain"), _W3 + "N-Triples"),
    Format("jsonld", ("application/ld+json", "application/json"), _W3 + "JSON-LD"),
    Format("rdfxml", ("application/rdf+xml", "application/xml", "text/xml"), _W3 + "RDF_XML"),
)
HTML: Final = Format("html", ("text/html", "application/xhtml+xml"), "")
#: With a charset, since text without one is read as anything.
_TEXTS: Final = frozenset({"text/csv", "text/tab-separated-values", "text/turtle", "text/plain", "text/html", "text/xml"})

_RANGE: Final = re.compile(
    r"\s*([!#$%&'*+.^_`|~\w-]+)/([!#$%&'*+.^_`|~\w-]+)\s*((?:;[^,\"]*(?:\"(?:[^\"\\]|\\.)*\"[^,\"]*)*)?)\s*(?:,|$)"
)
_QUALITY: Final = re.compile(r";\s*q\s*=\s*([0-9.]+)", re.I)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A format, and the media type that it was asked for by."""

    format: Format
    media_type: str

    @property
    def content_type(self) -> str:
        """The header that says so."""
        return self.media_type + ("; charset=utf-8" if self.media_type in _TEXTS else "")


def choose(accept: str | None, formats: tuple[Format, ...]) -> Chosen | None:
    """The format that is liked best, the earlier of equals; None where none is acceptable.

    >>> choose("text/csv;q=0.5, application/*;q=0.9", SOLUTIONS).media_type
    'application/sparql-results+json'
    >>> choose("application/xml, */*;q=0.1", GRAPHS).media_type
    'application/xml'
    >>> choose("image/png", GRAPHS)
    """
    ranges = _ranges(accept)
    best: tuple[float, Chosen] | None = None
    for form in formats:
        for media_type in form.media_types:
            quality = _quality(media_type, ranges, own=media_type == form.media_type)
            if quality > 0 and (best is None or quality > best[0]):
                best = quality, Chosen(form, media_type)
    return None if best is None else best[1]


def require(accept: str | None, formats: tuple[Format, ...]) -> Chosen:
    """The format that is liked best; raises status 406 with a list of what there is."""
    found = choose(accept, formats)
    if found is None:
        there = ", ".join(form.media_type for form in formats)
        raise ProtocolError(406, f"nothing that is accepted ({accept}) can be given here; there is: {there}")
    return found


def _ranges(accept: str | None) -> list[tuple[str, str, float]]:
    """Media ranges and their qualities; raises status 400 where the header cannot be read."""
    if accept is None or not accept.strip():
        return [("*", "*", 1.0)]
    found, at = [], 0
    while at < len(accept):
        one = _RANGE.match(accept, at)
        if one is None:
            if not accept[at:].strip(" \t,"):
                break
            raise ProtocolError(400, f"the header Accept cannot be read at character {at + 1}")
        quality = _QUALITY.search(one[3])
        try:
            value = 1.0 if quality is None else min(1.0, float(quality[1]))
        except ValueError:
            raise ProtocolError(400, f"the header Accept has a quality {quality and quality[1]!r}") from None
        found.append((one[1].lower(), one[2].lower(), value))
        at = one.end()
        while at < len(accept) and accept[at] in " \t,":
            at += 1
    return found


def _quality(media_type: str, ranges: list[tuple[str, str, float]], *, own: bool) -> float:
    """How much a media type is liked: the most specific range counts. Another name of a format is taken where it is named only."""
    kind, _, subtype = media_type.partition("/")
    for wanted in ((kind, subtype), (kind, "*"), ("*", "*")):
        if wanted[1] == "*" and not own:
            return 0.0
        qualities = [quality for one, two, quality in ranges if (one, two) == wanted]
        if qualities:
            return max(qualities)
    return 0.0
