"""Names and values as parts of IRIs, and the vocabularies shared by queries and graphs in RDF.

An entity, predicate or value is one IRI, relative to the base of its graph (`sparql.layout`), whose text is
sufficient to read it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, unquote

from condgraph.engine import values
from condgraph.engine.values import FormedText, formed

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
#: The scheme of KQA Pro's vocabulary.
PRED: Final = "pred:"
#: The namespace of graphs without a base of their own; the domain is reserved (RFC 2606).
NAMESPACE: Final = "http://condgraph.example/"
#: The prefix of the names of values.
VALUE: Final = ".v/"
#: The longest name of a value, in characters; a longer one is replaced by a hash.
MAX_NAME: Final = 1000
_WIKIDATA: Final = "http://www.wikidata.org/"
#: Prefixes that need not be declared.
PREFIXES: Final = {
    "pred": PRED,
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
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

#: Characters besides letters and digits that are not escaped in a name.
PLAIN: Final = frozenset("-.~!$&'()*+,;=@/–—")


@lru_cache(maxsize=65_536)
def encode(name: str) -> str:
    """Encode a name as a relative IRI: a space becomes an underscore, as in KQA Pro.

    Letters and digits of the Basic Multilingual Plane are kept; characters that an IRI cannot contain,
    underscores, and dots and slashes that could be taken for steps of a relative path, are
    percent-encoded. `decode` is the inverse.

    >>> encode("point in time"), encode("UN/LOCODE"), encode("a_b %"), encode("Erdős number"), encode("../x")
    ('point_in_time', 'UN/LOCODE', 'a%5Fb_%25', 'Erdős_number', '%2E.%2Fx')
    """
    if name.isascii() and name.isalnum():
        return name
    if not name:
        return ".empty"
    parts = []
    for position, character in enumerate(name):
        if character == " ":
            parts.append("_")
        elif character == "/":
            neighbours = name[position - 1 : position] + name[position + 1 : position + 2]
            parts.append("%2F" if len(neighbours) < 2 or "/" in neighbours or "." in neighbours else character)
        elif character == "." and not position:
            parts.append("%2E")
        elif character in PLAIN or (character.isalnum() and character < "\U00010000"):
            parts.append(character)
        else:
            parts.append(quote(character, safe=""))
            if parts[-1] == character:  # "_" is safe for `quote`
                parts[-1] = f"%{ord(character):02X}"
    return "".join(parts)


@lru_cache(maxsize=65_536)
def decode(text: str) -> str:
    """Decode a name that `encode` wrote.

    >>> decode("a%5Fb_%25"), decode(".empty")
    ('a_b %', '')
    """
    return "" if text == ".empty" else unquote(text.replace("_", " "), errors="strict")


def hashed(text: str) -> str:
    """Return the hash of a text that is too long for a name, as 24 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def value_name(value: values.Value) -> str:
    """Return the name of a value node after `VALUE`: the value itself, so that its IRI is sufficient to
    read it, or a hash if it is long.

    >>> value_name(values.Quantity(1.5, "metre")), value_name("a b"), value_name(values.Time.year(1970))
    ('q/1.5/metre', 's/a_b', 't/0/31536000/1')
    """
    if isinstance(value, FormedText):
        name = f"f/{value.form}/{encode(value)}"
    elif isinstance(value, str):
        name = "s/" + encode(value)
    elif isinstance(value, values.Quantity):
        name = f"q/{values.format_number(value.number)}/{encode(value.unit)}"
    elif isinstance(value, values.Time):
        name = f"t/{value.start}/{value.end}/{int(value.precision)}"
    else:
        return "u"
    return name if len(name) <= MAX_NAME else f"h/{hashed(name)}"


def value_named(name: str) -> values.Value | None:
    """Return the value of a node from its name; None if the name is a hash.

    >>> value_named("q/1.5/metre"), value_named("t/0/31536000/1") == values.Time.year(1970), value_named("h/00")
    (Quantity(number=1.5, unit='metre'), True, None)
    """
    if name.startswith("s/"):
        return decode(name[2:])
    if name.startswith("f/"):
        form, _, text = name[2:].partition("/")
        return formed(decode(text), form)
    if name.startswith("q/"):
        number, _, unit = name[2:].partition("/")
        return values.Quantity(values.parse_number(number), decode(unit))
    if name.startswith("t/"):
        start, end, precision = map(int, name[2:].split("/"))
        return values.Time(start, end, values.Precision(precision))
    unknown: values.Unknown = values.UNKNOWN
    return unknown if name == "u" else None


def _is_closed(value: values.Time) -> bool:
    return value.start > values.OPEN_START and value.end < values.UNKNOWN_END and value.end > value.start


def year_of(value: values.Time) -> int | None:
    """Return the year that a time is in; None if it is in several, or has an open side."""
    if not _is_closed(value):
        return None
    first = values.civil(value.start // values.DAY_SECONDS)[0]
    return first if values.civil((value.end - 1) // values.DAY_SECONDS)[0] == first else None


def date_of(value: values.Time) -> str | None:
    """Return the day that a time is in, as xsd:date; None if it is in several."""
    if not _is_closed(value) or value.start // values.DAY_SECONDS != (value.end - 1) // values.DAY_SECONDS:
        return None
    year, month, day = values.civil(value.start // values.DAY_SECONDS)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"


def nearest_double(number: values.Number) -> float:
    """Return the nearest double, infinite if the number is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
