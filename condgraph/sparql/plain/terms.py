"""Terms of plain RDF, as N-Quads writes them: entities, predicates and literals as a source had them,
or under the base of the graph.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from condgraph.engine.terms import DATATYPE, DIRECTION, LANGUAGE, Property, Terms, is_iri, lexical, natural
from condgraph.engine.values import Value, collapse
from condgraph.sparql.layout import GraphIris
from condgraph.sparql.literals import XSD, string
from condgraph.sparql.wikibase import literal_of

_STRING: Final = XSD + "string"


class Quad(NamedTuple):
    """Terms as N-Quads writes them; `graph` is empty for the default graph."""

    subject: str
    predicate: str
    object: str
    graph: str = ""


class TermWriter:
    """Writes the terms of a graph whose own names stand under `base`."""

    def __init__(self, base: str) -> None:
        self.iris = GraphIris(base)
        #: Predicates that were written and have no IRI but under the base.
        self.called: set[str] = set()

    def node(self, ident: str, terms: Terms | None) -> str:
        """An entity: its IRI, a blank node, or its name under the base."""
        if terms is not None and terms.entities and _is_wikidata(ident):
            return f"<{terms.entities}{ident}>"
        if ident.startswith("_:"):
            return f"_:b{hashed(ident)}"
        if is_iri(ident) and (terms is not None or "://" in ident or ident.startswith("urn:")):
            return f"<{ident}>"
        return self.iris.entity(ident)

    def predicate(self, name: str, terms: Terms | None) -> str:
        """A predicate: its IRI, or its name under the base."""
        known = property_of(name, terms)
        if known is None:
            self.called.add(name)
            return self.iris.predicate(name)
        return f"<{known.iri}>"

    def literal(self, value: Value, raw: str | None, own: Property | None, said: dict[str, str] | None = None) -> str:
        """A literal as it was; `said` has its language, direction and datatype."""
        said = said or {}
        if own is None:
            # The text of a number is that of a table, and no number for everybody; text is as it was.
            return literal_of(raw if isinstance(value, str) and raw is not None and collapse(raw) == value else value)
        text = lexical(value, raw)
        if LANGUAGE in said:
            direction = f"--{said[DIRECTION]}" if DIRECTION in said else ""
            return f"{string(text)}@{said[LANGUAGE]}{direction}"
        told = natural(value, text)
        if told is None:
            return literal_of(value)
        datatype = said.get(DATATYPE) or own.types.get(told, told)
        return string(text) if datatype == _STRING else f"{string(text)}^^<{datatype}>"


def property_of(name: str, terms: Terms | None) -> Property | None:
    """What a source says of a predicate; None where it was no RDF, or does not have it."""
    return None if terms is None else terms.predicates.get(name)


def labelled(text: str, language: str | None) -> str:
    """A text as a literal, in its language if it has one."""
    return string(text) if language is None else f"{string(text)}@{language}"


def hashed(text: str) -> str:
    """A name for a blank node, the same for the same text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _is_wikidata(ident: str) -> bool:
    return ident[:1] in ("Q", "P", "L") and ident[1:].isascii() and ident[1:].isdigit()
