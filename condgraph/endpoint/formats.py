"""Formats of results, and which of them a request is answered in (RFC 9110, section 12.5.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from condgraph.endpoint.protocol import ProtocolError


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name in the worker's requests, the media types it is asked for by (the first is
    its own), and its IRI.
    """

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
#: For all graphs together, each with its name.
DATASETS: Final = (
    Format("trig", ("application/trig", "application/x-trig"), _W3 + "TriG"),
    Format("nquads", ("application/n-quads", "text/x-nquads"), _W3 + "N-Quads"),
)
#: Names that `format=` has beside those of the formats and their media types.
_ALSO: Final = {"nt": "ntriples", "ttl": "turtle", "json-ld": "jsonld", "rdf": "rdfxml", "rdf+xml": "rdfxml", "nq": "nquads"}
HTML: Final = Format("html", ("text/html", "application/xhtml+xml"), "")
#: With a charset, since text without one is read as anything.
_TEXTS: Final = frozenset({"text/csv", "text/tab-separated-values", "text/turtle", "text/plain", "text/html", "text/xml"})

#: Characters of a header that an error repeats, and up to which what was read is remembered.
_SHOWN: Final = 200
_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_RANGE: Final = re.compile(rf"\s*({_NAME})/({_NAME})\s*")
#: What separates, and what it does not separate within quotes. A quote that is not closed reaches
#: to the end: one pass is enough.
_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|(,)')
_SEMICOLON: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|(;)')
_QUALITY: Final = re.compile(r"\s*q\s*=\s*(\"?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\1\s*", re.I | re.A)


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
    return (_remembered if accept is None or len(accept) <= _SHOWN else _choose)(accept, formats)


def _choose(accept: str | None, formats: tuple[Format, ...]) -> Chosen | None:
    ranges = _ranges(accept)
    best: tuple[float, Chosen] | None = None
    for form in formats:
        for media_type in form.media_types:
            quality = _quality(media_type, ranges, own=media_type == form.media_type)
            if quality > 0 and (best is None or quality > best[0]):
                best = quality, Chosen(form, media_type)
    return None if best is None else best[1]


#: Clients send the same few again and again.
_remembered: Final = lru_cache(maxsize=256)(_choose)


def wanted(names: tuple[str, ...], accept: str | None, formats: tuple[Format, ...]) -> Chosen:
    """The format that `format=` names, by its name or a media type, else the one that `Accept` likes
    best. Some clients send several names, not all of which are ours.

    Raises status 406 with a list of what there is, where no name is known and `Accept` takes
    anything.

    >>> wanted(("CSV",), None, SOLUTIONS).media_type, wanted(("odd", "application/json"), None, SOLUTIONS).format.name
    ('text/csv', 'json')
    """
    for name in names:
        known = _ALSO.get(name.strip().lower(), name.strip().lower())
        for form in formats:
            if known == form.name or known in form.media_types:
                return Chosen(form, known if known in form.media_types else form.media_type)
    if names and ("*", "*") in _ranges(accept):
        there = ", ".join(form.name for form in formats)
        raise ProtocolError(406, f"format={names[0][:_SHOWN]!r} cannot be given here; there is: {there}")
    return require(accept, formats)


def require(accept: str | None, formats: tuple[Format, ...]) -> Chosen:
    """The format that is liked best; raises status 406 with a list of what there is."""
    found = choose(accept, formats)
    if found is None:
        there = ", ".join(form.media_type for form in formats)
        said = accept if accept is None or len(accept) <= _SHOWN else accept[:_SHOWN] + "..."
        raise ProtocolError(406, f"nothing that is accepted ({said}) can be given here; there is: {there}")
    return found


def _ranges(accept: str | None) -> dict[tuple[str, str], float]:
    """The qualities of media ranges. What cannot be read is left out; where nothing is left,
    anything is wanted.

    >>> _ranges("text/html, *; q=.2, image, text/csv;q=much, text/turtle;charset=utf-8;q=0.5")
    {('text', 'html'): 1.0, ('*', '*'): 0.2, ('text', 'turtle'): 0.5}
    >>> _ranges("image, ,")
    {('*', '*'): 1.0}
    """
    found: dict[tuple[str, str], float] = {}
    for one in _split(accept or "", _COMMA):
        if not one:
            continue
        name, *parameters = _split(one, _SEMICOLON)
        # Java's own client writes `*` where `*/*` is meant.
        wanted = _RANGE.fullmatch("*/*" if name.strip() == "*" else name)
        quality = next((text for text in parameters if text.partition("=")[0].strip().lower() == "q"), "q=1")
        said = _QUALITY.fullmatch(quality)
        if wanted is None or said is None:
            continue
        kind = wanted[1].lower(), wanted[2].lower()
        found[kind] = max(found.get(kind, 0.0), min(1.0, float(said[2])))
    return found or {("*", "*"): 1.0}


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """The parts between separators that stand outside quotes."""
    parts, last = [], 0
    for found in separator.finditer(text):
        if found[1]:
            parts.append(text[last : found.start()])
            last = found.end()
    return [*parts, text[last:]]


def _quality(media_type: str, ranges: dict[tuple[str, str], float], *, own: bool) -> float:
    """How much a media type is liked: the most specific range counts. Another name of a format is
    taken where it is named only.
    """
    kind, _, subtype = media_type.partition("/")
    for wanted in ((kind, subtype), (kind, "*"), ("*", "*")):
        if wanted[1] == "*" and not own:
            return 0.0
        if wanted in ranges:
            return ranges[wanted]
    return 0.0
