"""What people may leave out of a query: the prefixes that everybody knows, and how a name with an
underscore is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Final

from condgraph.sparql.layout import PRED, decode

_WIKIDATA: Final = "http://www.wikidata.org/"
#: Prefixes that need not be declared.
PREFIXES: Final = {
    "pred": PRED,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "schema": "http://schema.org/",
    "prov": "http://www.w3.org/ns/prov#",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "dbr": "http://dbpedia.org/resource/",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "wd": f"{_WIKIDATA}entity/",
    "wds": f"{_WIKIDATA}entity/statement/",
    "wdt": f"{_WIKIDATA}prop/direct/",
    "p": f"{_WIKIDATA}prop/",
    "ps": f"{_WIKIDATA}prop/statement/",
    "psv": f"{_WIKIDATA}prop/statement/value/",
    "pq": f"{_WIKIDATA}prop/qualifier/",
    "pqv": f"{_WIKIDATA}prop/qualifier/value/",
    "wikibase": "http://wikiba.se/ontology#",
}
#: Underscores of a name that are tried as underscores and as spaces; of names with more, all.
_MOST: Final = 6
#: Relative IRIs of a query that are looked at, and their characters.
_DISTINCT, _LONGEST = 1_000, 2_000
#: What an IRI can stand within, so that it is none. A word goes as far as a prefix may, so that no
#: character is looked at more than a few times.
TOKEN: Final = re.compile(
    r"""
      (?P<comment>\#[^\n\r]*)
    | (?P<text>\"{3}(?:\"{0,2}+(?:[^"\\]|\\.))*+(?:\"{3})?+ | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+(?:'{3})?+
        | "(?:[^"\\\n\r]|\\.)*+"?+ | '(?:[^'\\\n\r]|\\.)*+'?+)
    | <(?P<iri>[^<>"{}|^`\\\x00-\x20]*+)>
    | <[^<>\n\r\x00-\x1f]*+>
    | (?P<variable>[?$]\w++)
    | (?P<tag>@[A-Za-z][A-Za-z0-9-]*+)
    | (?P<name>(?P<prefix>[^\W\d_][\w.-]*+)?+:(?P<local>(?:[\w.:-]|%[0-9A-Fa-f]{2}|\\.)*+))
    | (?P<word>[^\W\d_][\w.-]*+)
    """,
    re.X | re.S,
)
_BASE: Final = re.compile(r"\bbase\s*+<", re.I).search
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|[/#?]").match


def undeclared(text: str) -> str:
    """The declarations, on one line, of the known prefixes that a text may use. Those it declares
    itself come later, and count.
    """
    return "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in PREFIXES.items() if f"{prefix}:" in text)


def occurring(prefixes: Mapping[str, str], text: str) -> Mapping[str, str]:
    """Those of the prefixes that a text may use: a parser reads the IRI of each that it is given.

    >>> occurring({"rdf": "a:", "p": "b:", "xsd": "c:"}, "ASK { ?s rdf:type ?pxsd }")
    {'rdf': 'a:'}
    """
    if "\\" in text:  # characters of a prefix may be written by their numbers
        return prefixes
    return {prefix: iri for prefix, iri in prefixes.items() if f"{prefix}:" in text}


def underscored(text: str, is_name: Callable[[str], bool]) -> str:
    """A query in which `<a_b>` is the name `a_b`, where the graph has that name and none of `a b`.

    A space of a name is an underscore in its IRI, and an underscore is percent-encoded; who reads
    names in a table does not know. Relative IRIs that fit several names stay as they are.
    """
    if "_" not in text or _BASE(text):
        return text
    pieces: list[str] = []
    last = 0
    known: dict[str, str | None] = {}
    for found in TOKEN.finditer(text):
        iri = found["iri"]
        if iri is None or "_" not in iri or _ABSOLUTE(iri):
            continue
        if iri not in known:
            if len(known) >= _DISTINCT or len(iri) > _LONGEST:
                continue
            known[iri] = _better(iri, is_name)
        better = known[iri]
        if better is not None:
            pieces += (text[last : found.start()], f"<{better}>")
            last = found.end()
    return "".join((*pieces, text[last:]))


def _better(iri: str, is_name: Callable[[str], bool]) -> str | None:
    if _is(iri, is_name):
        return None
    parts = iri.split("_")
    if len(parts) > _MOST + 1:
        whole = "%5F".join(parts)
        return whole if _is(whole, is_name) else None
    fitting = []
    for marks in product(("_", "%5F"), repeat=len(parts) - 1):
        written = parts[0] + "".join(mark + part for mark, part in zip(marks, parts[1:], strict=True))
        if _is(written, is_name):
            fitting.append(written)
    return fitting[0] if len(fitting) == 1 else None


def _is(written: str, is_name: Callable[[str], bool]) -> bool:
    try:
        return is_name(decode(written))
    except ValueError:
        return False
