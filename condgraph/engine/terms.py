"""The RDF terms of a source: the IRIs of its predicates, the datatypes of its literals,
and which labels gave names. With it, a graph that came as RDF is written as the RDF it came as.

A `Source` keeps it as JSON (`Source.terms`); sources that were no RDF have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from condgraph.engine.values import FORMS, FormedText, Precision, Quantity, Time, Value, text_of

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
#: Qualifiers that say where a triple stood and what its literal was, and say nothing about the
#: statement.
GRAPH, LANGUAGE, DIRECTION, DATATYPE = "graph", "language", "direction", "datatype"
#: Qualifiers of the members of an RDF list: the place from 1 on, and which list it is, where the
#: subject has several for one predicate.
POSITION, LIST = "list position", "list"
#: The qualifier of an inferred statement that names an axiom.
INFERRED: Final = "inferred by"

_SKOS, _SCHEMA = "http://www.w3.org/2004/02/skos/core#", "schema.org/"
#: Predicates whose texts are further names of an entity.
ALTERNATIVE: Final = frozenset(
    (
        *(f"{_SKOS}{name}" for name in ("prefLabel", "altLabel", "hiddenLabel")),
        *(f"{scheme}://{_SCHEMA}{name}" for scheme in ("http", "https") for name in ("name", "alternateName")),
        *(f"http://xmlns.com/foaf/0.1/{name}" for name in ("name", "nick")),
        *(f"http://purl.org/dc/terms/{name}" for name in ("title", "alternative")),
        "http://www.w3.org/2000/01/rdf-schema#label",
    )
)

_TIMES: Final = {
    Precision.DAY: XSD + "date",
    Precision.YEAR: XSD + "gYear",
    Precision.MONTH: XSD + "gYearMonth",
    Precision.SECOND: XSD + "dateTime",
}
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*").fullmatch
#: Characters of an IRI: what is longer is none.
_LONGEST_IRI: Final = 65_536

#: How a label was written: its predicate and its language.
Form = tuple[str, str | None]


@dataclass(slots=True)
class Property:
    """A predicate: its IRI; of a property of Wikibase the IRI that its statements have (`/prop/P69`),
    and whether they were only direct claims.

    `types` says which datatype literals have where their text tells another one (`natural`);
    `labels` are the labels that named it: predicate, language, text.
    """

    iri: str
    types: dict[str, str] = field(default_factory=dict)
    labels: list[tuple[str, str | None, str]] = field(default_factory=list)
    wikibase: bool = False
    direct: bool = False


@dataclass(slots=True)
class Terms:
    """What RDF calls the things of a source.

    `predicates` has a `Property` by the predicate's name here. Names of entities are labels of the
    form `naming`, but those in `apart`: by id, the form of the label, or None where no label that
    is not a fact as well gave the name. `texts` has labels whose white space the name has not.
    `local`: other nodes are called by the end of their IRI. `star`: statements about statements
    were RDF 1.2's, and not reified. `entities`: what stands before ids that are no IRIs. `inferred`: entities
    and classes of memberships that no triple states, with the axioms that they follow from.
    """

    predicates: dict[str, Property] = field(default_factory=dict)
    naming: Form | None = None
    apart: dict[str, Form | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    local: bool = False
    star: bool = False
    entities: str = ""
    inferred: list[tuple[str, ...]] = field(default_factory=list)

    def dumps(self) -> str:
        """As JSON, which `loads` reads."""
        groups: dict[Form | None, list[str]] = {}
        for ident, form in self.apart.items():
            groups.setdefault(form, []).append(ident)
        said: dict[str, Any] = {
            "predicates": {name: _slim(one) for name, one in self.predicates.items()},
            "naming": list(self.naming) if self.naming else None,
            "apart": [[list(form) if form else None, ids] for form, ids in groups.items()],
            "texts": self.texts,
            "local": self.local,
            "star": self.star,
            "entities": self.entities,
            "inferred": self.inferred,
        }
        return json.dumps({key: value for key, value in said.items() if value}, ensure_ascii=False, separators=(",", ":"))

    def with_more(self, more: Terms) -> Terms:
        """These terms and those of data that was added to the source, which was read knowing these:
        its predicates are called as they are here, and `apart` says what `naming` does not.
        """
        found = Terms(dict(self.predicates), self.naming, {**more.apart, **self.apart}, {**more.texts, **self.texts})
        found.local, found.star, found.entities = self.local, self.star or more.star, self.entities
        found.inferred = list(dict.fromkeys([*self.inferred, *more.inferred]))
        for name, one in more.predicates.items():
            known = found.predicates.get(name)
            if known is not None:
                labels = list(dict.fromkeys([*known.labels, *one.labels]))
                one = Property(known.iri, known.types, labels, known.wikibase, known.direct and one.direct)
            found.predicates[name] = one
        return found


def _slim(one: Property) -> Any:
    said = {"iri": one.iri, "types": one.types, "labels": one.labels, "wikibase": one.wikibase, "direct": one.direct}
    slim = {key: value for key, value in said.items() if value}
    return one.iri if len(slim) == 1 else slim


@lru_cache(maxsize=64)
def loads(text: str) -> Terms:
    """The terms that `dumps` wrote. Text of another kind gives as much as can be used: a file may
    come from anywhere.
    """
    try:
        said = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return Terms()
    if not isinstance(said, dict):
        return Terms()
    terms = Terms(local=said.get("local") is True, star=said.get("star") is True)
    if is_iri(said.get("entities")):
        terms.entities = said["entities"]
    for name, one in _pairs(said.get("predicates")):
        found = _property({"iri": one} if isinstance(one, str) else one)
        if found is not None:
            terms.predicates[name] = found
    terms.naming = _form(said.get("naming"))
    for group in _list(said.get("apart")):
        if isinstance(group, list) and len(group) == 2:
            form = _form(group[0])
            terms.apart.update((ident, form) for ident in _list(group[1]) if isinstance(ident, str))
    terms.texts = {ident: one for ident, one in _pairs(said.get("texts")) if isinstance(one, str)}
    pairs = (tuple(pair) for pair in _list(said.get("inferred")) if isinstance(pair, list))
    terms.inferred = [pair for pair in pairs if len(pair) >= 2 and all(isinstance(ident, str) for ident in pair)]
    return terms


@lru_cache(maxsize=64)
def axioms_of(text: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The axioms of the memberships that no triple states, by entity and class, of the terms that `dumps` wrote."""
    return {pair[:2]: pair[2:] for pair in loads(text).inferred}


def _property(said: Any) -> Property | None:
    if not isinstance(said, dict) or not is_iri(said.get("iri")):
        return None
    types = {key: one for key, one in _pairs(said.get("types")) if is_iri(one)}
    labels = [
        (one[0], form[1], one[2])
        for one in _list(said.get("labels"))
        if isinstance(one, list) and len(one) == 3 and isinstance(one[2], str) and (form := _form(one[:2])) is not None
    ]
    return Property(said["iri"], types, labels, said.get("wikibase") is True, said.get("direct") is True)


def _form(said: Any) -> Form | None:
    if not isinstance(said, list) or len(said) != 2 or not is_iri(said[0]) or not isinstance(said[1], (str, type(None))):
        return None
    return said[0], said[1] if is_tag(said[1] or "") else None


def _pairs(said: Any) -> Iterable[tuple[str, Any]]:
    return said.items() if isinstance(said, dict) else ()


def _list(said: Any) -> list[Any]:
    return said if isinstance(said, list) else []


def is_iri(text: Any) -> bool:
    """Whether something is an absolute IRI that can be written in angle brackets."""
    return isinstance(text, str) and len(text) <= _LONGEST_IRI and _ABSOLUTE(text) is not None


_TAG: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*").fullmatch


def is_tag(text: Any) -> bool:
    """Whether something is a language tag."""
    return isinstance(text, str) and len(text) <= 255 and _TAG(text) is not None


def lexical(value: Value, raw: str | None) -> str:
    """The text of a literal: what stood there, else the value as it is printed."""
    if raw is not None:
        return raw
    return text_of(value.number) if isinstance(value, Quantity) else str(value)


def natural(value: Value, text: str) -> str | None:
    """The datatype that a value and its text tell: what is written without saying it.

    >>> natural(Quantity(5), "5").rpartition("#")[2], natural(Quantity(5), "5.0").rpartition("#")[2]
    ('integer', 'decimal')
    """
    if isinstance(value, FormedText):
        return FORMS[value.form].datatype
    if isinstance(value, str):
        return XSD + "string"
    if isinstance(value, Quantity):
        return number_type(text)
    return _TIMES.get(value.precision) if isinstance(value, Time) else None


def number_type(text: str) -> str:
    """The datatype of a number by its text, as Turtle tells them apart."""
    if "e" in text or "E" in text:
        return XSD + "double"
    return XSD + ("decimal" if "." in text else "integer")
