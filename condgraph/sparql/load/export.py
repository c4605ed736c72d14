"""A snapshot written to an RDF file: N-Quads, with the graph's IRI as named graph, or Turtle that
people can read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Final

from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import PRED, RDF, RDFS, base_iri
from condgraph.sparql.literals import XSD
from condgraph.sparql.load.write import quads, triples

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: What `export` writes, by name.
SYNTAXES: Final = ("turtle", "nquads")
_BATCH: Final = 10_000


def write(snapshot: Snapshot, file: IO[str], syntax: str, *, graph: str, base: str | None = None) -> int:
    """Write everything the snapshot holds in the layout of `layout`; returns how many triples."""
    base = base or base_iri(graph)
    written = 0
    if syntax == "nquads":
        for batch in quads(snapshot, base, graph=graph):
            file.write(batch)
            written += batch.count(" .\n")
        return written
    file.write(
        f"@base <{base}> .\n@prefix pred: <{PRED}> .\n@prefix rdf: <{RDF}> .\n@prefix rdfs: <{RDFS}> .\n@prefix xsd: <{XSD}> .\n"
    )
    for lines in cut(triples(snapshot, base, graph=graph), _BATCH):
        file.write("".join(turtle(lines, base)))
        written += len(lines)
    return written


def turtle(lines: list[str], base: str) -> Iterator[str]:
    """Triples as Turtle, those of one subject together where they follow each other.

    >>> print("".join(turtle(['<http://x/a> <http://x/b> "c"', '<http://x/a> <pred:name> "a"'], "http://x/")).strip())
    <a> <b> "c" ;
        pred:name "a" .
    """
    before = ""
    for line in lines:
        subject, predicate, thing = line.split(" ", 2)
        said = f"{_term(predicate, base)} {_term(thing, base)}"
        yield f" ;\n    {said}" if subject == before else f"{' .' if before else ''}\n{_term(subject, base)} {said}"
        before = subject
    if before:
        yield " .\n"


_TYPE: Final = f"<{RDF}type>"
_SHORT: Final = {f"<{RDFS}label>": "rdfs:label", _TYPE: "a"}


def _term(term: str, base: str) -> str:
    if term.startswith("<"):
        if term.startswith(base, 1):
            return f"<{term[len(base) + 1 :]}"
        if term.startswith(PRED, 1):
            return term[1:-1]
        return _SHORT.get(term, term)
    text, mark, datatype = term.rpartition(f'"^^<{XSD}')
    return f'{text}"^^xsd:{datatype[:-1]}' if mark else term
