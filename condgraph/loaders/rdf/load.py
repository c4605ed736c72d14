"""RDF: Turtle, TriG, N-Triples, N-Quads, RDF/XML, N3 and JSON-LD.

A source is read twice, but for whole exports of condgraph's: first for names (a predicate is called
by its label, or the end of its IRI, wherever in the file the label stands) and for statements about
statements; then for its items, in the file's order. `rdf:type` and `rdfs:subClassOf` give
membership; a label gives a name; a triple of a named graph has the qualifier `graph`. Statements
that are reified, in RDF 1.2 (`rdf:reifies`, annotations) or in RDF 1.0 (`rdf:Statement`), get what
is said about them as qualifiers, and come last, as do the statements of Wikidata's model
(`wikibase`). The members of a list are statements of the triple that names the list (`lists`). With
`collapse=`, nodes that only hold a fact of several parts together are read as statements with
qualifiers (`intermediate`).

What its triples were called and how their literals were written goes with the source
(`engine.terms`), so that the graph can be written as the RDF that it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.rdf.intermediate import CHOICES
from condgraph.loaders.rdf.items import Writer
from condgraph.loaders.rdf.parse import SYNTAXES, is_graph_object, open_source, quads, syntax_of
from condgraph.loaders.rdf.survey import Survey

#: What an export of condgraph's ends with, and what its statements have.
LAYOUT: Final = "pred:layout"
FACT: Final = "pred:fact_h"
#: Bytes at the end of a file in which the mark stands; how an export as Turtle tells its base, and
#: one as N-Quads, with the mark.
_END: Final = 1 << 16
_BASE: Final = re.compile(rb"@base <([^<>\\\s]+)> \.\n")
_MARK: Final = re.compile(rb"^<([^<>\\\s]+)> <pred:layout> ", re.MULTILINE)


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    open_stream, path = open_source(source)
    survey = Survey(reading, options)
    if reading.own_rdf is not None and reading.on_error == "raise" and (told := _own_base(path)) is not None:
        # What is all of one export need not be surveyed: one reading gives it, and shows whether it
        # was that before the first item is given.
        try:
            found = quads(open_stream, path, reading, options, aloud=True)
            yield from reading.own_rdf(_one_export(found, told), told)
            return
        except _OtherwiseError:
            pass
    own: dict[str, None] = {}
    half = False
    for row, quad in quads(open_stream, path, reading, options, aloud=False):
        survey.see(row, quad)
        if quad.predicate.value == LAYOUT:
            own[str(getattr(quad.subject, "value", ""))] = None
        half |= quad.predicate.value == FACT
    if own and reading.own_rdf is not None:
        # An export of condgraph's: it says more than its triples do, and is read as what it was
        # written from.
        for base in own:
            yield from reading.own_rdf((quad for _, quad in quads(open_stream, path, reading, options, aloud=True)), base)
        return
    if half and not own:
        reading.warn(f"the source has <{FACT}> and no <{LAYOUT}>: it is no whole export, and read as any other RDF")
    if not survey.predicates and not survey.reified:
        reading.warn("the source has no triples")
    survey.settle()
    writer = Writer(survey, reading, options)
    for row, quad in quads(open_stream, path, reading, options, aloud=True):
        yield from writer.items(row, quad)
    yield from writer.reified()
    yield from writer.wikibase()
    if survey.predicates:
        yield replace(reading.source, terms=writer.terms().dumps())


class _OtherwiseError(Exception):
    """A file is not one export of condgraph's with the base that its end tells."""


def _own_base(path: Path | None) -> str | None:
    """The base of the export that a file of N-Quads seems to be by its end, or a file of Turtle by
    its beginning and its end; None for others.
    """
    if path is None or not path.is_file():
        return None
    with path.open("rb") as stream:
        head = _BASE.match(stream.read(_END))
        stream.seek(max(0, path.stat().st_size - _END))
        tail = stream.read()
    marks = _MARK.findall(tail)
    base = marks[-1] if marks else head[1] if head is not None and b"pred:layout " in tail else None
    return base.decode("utf-8", "replace") if base is not None else None


def _one_export(found: Iterable[tuple[int, Any]], base: str) -> Iterator[Any]:
    """The quads of a file. Raises `_OtherwiseError` at their end if the file has another mark than
    that of this base, or none.
    """
    marks: set[str] = set()
    for _, quad in found:
        if quad.predicate.value == LAYOUT:
            marks.add(str(getattr(quad.subject, "value", "")))
        yield quad
    if marks != {base}:
        raise _OtherwiseError


def _sniff(path: Path, head: bytes) -> int:
    return syntax_of(path, head)[1]


FORMAT: Final = Format(
    name="rdf",
    about="RDF: Turtle, TriG, N-Triples, N-Quads, RDF/XML, N3, JSON-LD, with RDF 1.2 reifiers and classical reification",
    read=_read,
    options={
        "syntax": f"one of {', '.join(SYNTAXES)} (default: found out)",
        "base": "the absolute IRI that relative ones start from",
        "labels": "predicates that give names, best first, as IRIs or as rdfs:label "
        "(default: rdfs:label, skos:prefLabel, schema:name, foaf:name, dct:title)",
        "language": "language of the labels that are preferred as names (default: en)",
        "collapse": f"which nodes that only hold a fact together become statements with qualifiers: one of {', '.join(CHOICES)} "
        "(default: no; unnamed: also IRIs without a label)",
        "collapse_to": "predicates that lead from such a node to the object of its statement "
        "(default: rdf:value, else the only node)",
        "names": 'what nodes without a label are called: "iri" (default) or "local", the end of the IRI',
    },
    sniff=_sniff,
    claims=is_graph_object,
)
