"""The RDF terms of a source: IRIs of its predicates, datatypes of its literals, and the labels that gave names. They
let a graph that was loaded from RDF be written as the same RDF.

A `Source` stores them as JSON (`Source.terms`); sources that were not RDF have none.
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
#: Qualifiers that record where a triple stood and how its literal was written, and say nothing about the statement.
GRAPH, LANGUAGE, DIRECTION, DATATYPE = "graph", "language", "direction", "datatype"
#: Qualifiers of the members of an RDF list: the position from 1, and the list where the subject has several for one predicate.
POSITION, LIST = "list position", "list"
#: The qualifier of an inferred statement that names an axiom.
INFERRED: Final = "inferred by"

_SKOS, _SCHEMA = "http://www.w3.org/2004/02/skos/core#", "schema.org/"
#: Predicates whose texts are alternative names of an entity.
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
#: The most characters of an IRI: a long prefix would be repeated in every use.
MAX_IRI: Final = 65_536

#: The form of a label: its predicate and its language.
Form = tuple[str, str | None]


@dataclass(slots=True)
class Property:
    """A predicate: its IRI, which for a property of Wikibase is that of its statements (`/prop/P69`), and whether all
    of these were direct claims.

    `types` has the datatypes of literals whose text implies another one (`natural`); `labels` are the labels that
    named the property: predicate, language, text.
    """

    iri: str
    types: dict[str, str] = field(default_factory=dict)
    labels: list[tuple[str, str | None, str]] = field(default_factory=list)
    wikibase: bool = False
    direct: bool = False


@dataclass(slots=True)
class Terms:
    """The RDF terms of a source.

    `predicates` has a `Property` by the predicate's name in the graph. Entities are named by labels of the form
    `naming`; `apart` has the exceptions: by id, the form of the label, or None if the name came from no label that is
    not also a fact. `texts` has labels whose white space the name lacks. `local`: other nodes are named by the end of
    their IRI. `star`: statements about statements were RDF 1.2's, not reified. `entities`: the prefix of ids that are
    not IRIs. `inferred`: entities and classes of memberships that no triple states, with the axioms they follow from.
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
        """Return the terms as JSON, which `loads` reads."""
        groups: dict[Form | None, list[str]] = {}
        for ident, form in self.apart.items():
            groups.setdefault(form, []).append(ident)
        record: dict[str, Any] = {
            "predicates": {name: _slim(property_) for name, property_ in self.predicates.items()},
            "naming": list(self.naming) if self.naming else None,
            "apart": [[list(form) if form else None, ids] for form, ids in groups.items()],
            **{name: getattr(self, name) for name in ("texts", "local", "star", "entities", "inferred")},
        }
        return json.dumps({key: value for key, value in record.items() if value}, ensure_ascii=False, separators=(",", ":"))

    def with_more(self, more: Terms) -> Terms:
        """Merge these terms with those of data added to the source, which was read knowing these: predicates keep
        their names here, and `apart` covers labels that `naming` does not.
        """
        merged = Terms(dict(self.predicates), self.naming, {**more.apart, **self.apart}, {**more.texts, **self.texts})
        merged.local, merged.star, merged.entities = self.local, self.star or more.star, self.entities
        merged.inferred = list(dict.fromkeys([*self.inferred, *more.inferred]))
        for name, property_ in more.predicates.items():
            known = merged.predicates.get(name)
            if known is not None:
                labels = list(dict.fromkeys([*known.labels, *property_.labels]))
                property_ = Property(known.iri, known.types, labels, known.wikibase, known.direct and property_.direct)
            merged.predicates[name] = property_
        return merged


def _slim(one: Property) -> Any:
    record = {"iri": one.iri, "types": one.types, "labels": one.labels, "wikibase": one.wikibase, "direct": one.direct}
    slim = {key: value for key, value in record.items() if value}
    return one.iri if len(slim) == 1 else slim


@lru_cache(maxsize=64)
def loads(text: str) -> Terms:
    """Return the terms that `dumps` wrote. A file may come from anywhere, so unusable parts are ignored."""
    try:
        record = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return Terms()
    if not isinstance(record, dict):
        return Terms()
    terms = Terms(local=record.get("local") is True, star=record.get("star") is True)
    if is_iri(record.get("entities")):
        terms.entities = record["entities"]
    for name, entry in _pairs(record.get("predicates")):
        property_ = _property({"iri": entry} if isinstance(entry, str) else entry)
        if property_ is not None:
            terms.predicates[name] = property_
    terms.naming = _form(record.get("naming"))
    for group in _list(record.get("apart")):
        if isinstance(group, list) and len(group) == 2:
            form = _form(group[0])
            terms.apart.update((ident, form) for ident in _list(group[1]) if isinstance(ident, str))
    terms.texts = {ident: label for ident, label in _pairs(record.get("texts")) if isinstance(label, str)}
    pairs = (tuple(pair) for pair in _list(record.get("inferred")) if isinstance(pair, list))
    terms.inferred = [pair for pair in pairs if len(pair) >= 2 and all(isinstance(ident, str) for ident in pair)]
    return terms


@lru_cache(maxsize=64)
def axioms_of(text: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the axioms of memberships that no triple states, by entity and class, from the JSON that `dumps` wrote."""
    return {pair[:2]: pair[2:] for pair in loads(text).inferred}


def _property(said: Any) -> Property | None:
    if not isinstance(said, dict) or not is_iri(said.get("iri")):
        return None
    types = {key: datatype for key, datatype in _pairs(said.get("types")) if is_iri(datatype)}
    labels = [
        (label[0], form[1], label[2])
        for label in _list(said.get("labels"))
        if isinstance(label, list) and len(label) == 3 and isinstance(label[2], str) and (form := _form(label[:2])) is not None
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
    """Return whether a value is an absolute IRI that can be written in angle brackets."""
    return isinstance(text, str) and len(text) <= MAX_IRI and _ABSOLUTE(text) is not None


_TAG: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*").fullmatch


def is_tag(text: Any) -> bool:
    """Return whether a value is a language tag."""
    return isinstance(text, str) and len(text) <= 255 and _TAG(text) is not None


def lexical(value: Value, raw: str | None) -> str:
    """Return the text of a literal: as written in the source, or else the printed value."""
    if raw is not None:
        return raw
    return text_of(value.number) if isinstance(value, Quantity) else str(value)


def natural(value: Value, text: str) -> str | None:
    """Return the datatype that a value and its text imply, which is not written out.

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
    """Return the datatype of a number by its text, by Turtle's rules."""
    if "e" in text or "E" in text:
        return XSD + "double"
    return XSD + ("decimal" if "." in text else "integer")
