"""What the embedded store holds beside the layout: names as labels, and the plain triples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from condgraph.sparql.layout import LABEL, GraphIris
from condgraph.sparql.literals import string
from condgraph.sparql.plain.quads import Plain

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The named graph of the triples beside that of the layout, behind the base of a graph.
PLAIN: Final = ".rdf/"


def plain_graph(base: str) -> str:
    """The IRI of the named graph that has the plain triples of a graph."""
    return f"{base}{PLAIN}"


def has_terms(snapshot: Snapshot) -> bool:
    """Whether some source of a snapshot came as RDF, or is called so."""
    return any(snapshot.source_of(i).terms for i in range(len(snapshot.arrays.get("src.name"))))


def labels(snapshot: Snapshot, base: str) -> Iterator[str]:
    """Names of the graph's own nodes as labels: `subject predicate object` without the final dot."""
    names = GraphIris(base)
    for ident, name in zip(snapshot.texts.take(snapshot.entity_id), snapshot.texts.take(snapshot.entity_name), strict=True):
        yield f"{names.entity(ident)} {LABEL} {string(name)}"
    for number in range(len(snapshot.arrays.get("src.name"))):
        name = snapshot.source_of(number).name
        yield f"{names.source(name)} {LABEL} {string(name)}"


def plain(snapshot: Snapshot, base: str, end: str) -> Iterator[str]:
    """The plain triples, in a graph of their own, and those of named graphs once more in these, as
    lines of N-Quads. A line ends with `end` where the graph is that of the layout.
    """
    place, own = f" <{plain_graph(base)}> .\n", GraphIris(base).graph
    for one in Plain(snapshot, base, everything=False).quads():
        triple = " ".join(one[:3])
        yield triple + place
        if one.graph:
            yield triple + (end if one.graph == own else f" {one.graph} .\n")
