"""Loader of Wikidata statements with qualifiers, one per line.

There are two forms: `s, label, p, label, o, label` separated by tabs, followed by pairs of `qp=label`
and `qv=label` (ids and labels); and `s,p,o,qp1,qv1,...` (ids only). Predicates are named by their
labels; `P31` and `P279` declare membership in addition to the statement. Exported as RDF, it has
Wikidata's own IRIs (`wd:`, `wdt:`, `p:`, `ps:`, `pq:`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.engine.terms import Property, Terms, loads
from condgraph.engine.values import Value
from condgraph.loaders.base import Format, Options, Reading, option_bool, option_text, option_texts
from condgraph.loaders.files import ENCODING_HELP, blocks, head_lines, path_of
from condgraph.loaders.statements.names import NAME_OPTIONS, PredicateNames, Table, read_table

_WIKIDATA: Final = "http://www.wikidata.org/"
_PROPERTY: Final = re.compile(r"P\d+", re.ASCII).fullmatch
_LABELLED: Final = re.compile(r"[^\t]+\t[^\t]*\tP\d+\t[^\t]*\t[^\t]+\t[^\t]*(?:\tP\d+=[^\t]*\t[^\t=]+=[^\t]*)*", re.ASCII).fullmatch
_PLAIN: Final = re.compile(r"Q\d+,P\d+,Q\d+(?:,P\d+,Q\d+)*", re.ASCII).fullmatch


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    path = path_of(source)
    concepts = option_bool(options, "concepts") is not False
    instance_of = frozenset(option_texts(options, "instance_of", ("P31",))) if concepts else frozenset()
    subclass_of = frozenset(option_texts(options, "subclass_of", ("P279",))) if concepts else frozenset()
    relations = options.get("relation_names")
    names = options.get("names")
    labels = _Labels(reading, None if names is None else read_table(names, reading, "names"), option_text(options, "id_prefix"))
    predicates = PredicateNames(reading, None if relations is None else read_table(relations, reading, "relation_names"))
    prefix = labels.prefix
    # Names of properties in the source that this load adds to.
    before = loads(reading.source.terms) if reading.source.terms else None
    for name, known in before.predicates.items() if before is not None else ():
        predicates.keep(known.iri.rpartition("/")[2], name)
    predicate_names: dict[str, str] = {}
    tabs: bool | None = None
    for first, lines in blocks(path, reading, options.get("encoding")):
        for row, line in enumerate(lines, first):
            if not line or line.isspace():
                continue
            if tabs is None:
                tabs = "\t" in line
            fields = [field.strip() for field in line.split("\t" if tabs else ",")]
            wrong = _wrong(fields, tabs)
            if wrong is not None:
                reading.bad(f"{wrong}: {line[:80]!r}", row=row)
                continue
            if tabs:
                parts: list[tuple[str, str | None]] = [(fields[0], fields[1]), (fields[2], fields[3]), (fields[4], fields[5])]
                parts += [_pair(field) for field in fields[6:]]
            else:
                parts = [(field, None) for field in fields]
            (item, item_label), (predicate, predicate_label), (other, other_label), *qualifier_parts = parts
            yield from labels.declare(item, item_label, row)
            yield from labels.declare(other, other_label, row)
            qualifiers: list[tuple[str, Ref | Value]] = []
            for (key, key_label), (value, value_label) in zip(qualifier_parts[::2], qualifier_parts[1::2], strict=True):
                yield from labels.declare(value, value_label, row)
                predicate_names[key] = predicates.name(key, key_label, row=row)
                qualifiers.append((predicate_names[key], Ref(prefix + value)))
            if predicate in instance_of:
                yield from labels.concept(other)
                yield Member(prefix + item, prefix + other, row)
            if predicate in subclass_of:
                yield from labels.concept(item)
                yield from labels.concept(other)
                yield Subclass(prefix + item, prefix + other, row)
            predicate_names[predicate] = predicates.name(predicate, predicate_label, row=row)
            yield Statement(prefix + item, predicate_names[predicate], Ref(prefix + other), tuple(qualifiers), row)
    labels.finish()
    if predicate_names and not prefix:
        terms = _terms(predicate_names)
        yield replace(reading.source, terms=(before.with_more(terms) if before is not None else terms).dumps())


def _terms(called: dict[str, str]) -> Terms:
    """Return the terms of Wikidata's RDF; `called` has the names of properties by id."""
    properties = {name: Property(f"{_WIKIDATA}prop/{key}", wikibase=True) for key, name in called.items() if _PROPERTY(key)}
    return Terms(properties, naming=("http://www.w3.org/2000/01/rdf-schema#label", None), entities=f"{_WIKIDATA}entity/")


def _wrong(fields: Sequence[str], tabs: bool) -> str | None:
    """Return what is wrong with the fields of a line, or None."""
    if tabs:
        if len(fields) < 6 or len(fields) % 2:
            return f"6 fields (id and label of subject, predicate, object) and pairs of qualifiers are expected, not {len(fields)}"
        if not (fields[0] and fields[2] and fields[4]):
            return "subject, predicate and object have an id"
        broken = next((field for field in fields[6:] if not field.partition("=")[0].strip()), None)
        return None if broken is None else f"a qualifier is 'id=label', not {broken!r}"
    if len(fields) < 3 or not len(fields) % 2:
        return f"subject, predicate, object and pairs of qualifiers are expected, not {len(fields)} fields"
    return None if all(fields) else "an id is empty"


def _pair(field: str) -> tuple[str, str | None]:
    """Return id and label of a qualifier's part; a label may contain "="."""
    item, found, label = field.partition("=")
    return item.strip(), label.strip() if found else None


class _Labels:
    """Declares entities with their labels, each once; a different second label gives a warning."""

    def __init__(self, reading: Reading, table: Table | None, prefix: str) -> None:
        self._reading = reading
        self._table = table
        self._labels: dict[str, str] = {}
        self._concepts: set[str] = set()
        self._nameless = 0
        self._first_nameless = ""
        self.prefix = prefix

    def declare(self, ident: str, label: str | None, row: int) -> Iterator[Entity]:
        known = self._labels.get(ident)
        if known is not None and (not label or known == label):
            return
        if self._table is not None and known is None:
            self._table.settle((ident,), self._reading)
            label = self._table.get(ident) or label
            if not label:
                self._nameless += 1
                self._first_nameless = self._first_nameless or ident
        name = " ".join((label or "").split())
        if known is not None:
            if name != known and self._table is None:
                self._reading.warn(f"{ident!r} is labelled {known!r} before and {name!r} here; the first is kept", row=row)
            return
        self._labels[ident] = name or ident
        if (name and name != ident) or self.prefix:
            yield Entity(self.prefix + ident, name or ident)

    def concept(self, ident: str) -> Iterator[Entity]:
        if ident not in self._concepts:
            self._concepts.add(ident)
            yield Entity(self.prefix + ident, self._labels[ident], EntityKind.CONCEPT)

    def finish(self) -> None:
        if self._nameless and self._table is not None:
            self._reading.warn(
                f"{self._nameless} entities have no name there and are named by their ids, the first is {self._first_nameless!r}",
                file=self._table.file or None,
            )


def _sniff(path: Path, head: bytes) -> int:
    lines = head_lines(head)
    if not lines:
        return 0
    labelled = sum(_LABELLED(line) is not None for line in lines)
    if labelled >= 0.9 * len(lines):
        return 95
    return 92 if sum(_PLAIN(line) is not None for line in lines) >= 0.9 * len(lines) else 0


FORMAT: Final = Format(
    name="wikidata",
    about="Wikidata statements with qualifiers: s, p, o and qualifier pairs a line, with labels (tabs) or ids alone (commas)",
    read=_read,
    options={
        **NAME_OPTIONS,
        "concepts": "whether instance_of and subclass_of also declare concepts (default: true)",
        "instance_of": "property (or several) that makes its subject an instance of its object (default: P31)",
        "subclass_of": "property (or several) that puts its subject under its object (default: P279)",
        "encoding": ENCODING_HELP,
    },
    sniff=_sniff,
    sign=re.compile(rb"\tP\d|Q\d+,P\d").search,
)
