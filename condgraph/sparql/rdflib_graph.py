"""Converts the plain triples of a graph (`plain`) into a graph of rdflib."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import requiring
from condgraph.engine.iris import PREFIXES
from condgraph.sparql.layout import base_iri, checked_base
from condgraph.sparql.plain import Plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdflib import Dataset, Graph

    from condgraph.engine.snapshot.snapshot import Snapshot


#: Lines that are parsed together.
_BATCH = 20_000


def to_rdflib(snapshot: Snapshot, graph: str, base: str | None, *, dataset: bool) -> Graph | Dataset:
    """Return the plain triples of a snapshot as a graph, or as a data set with their named graphs.

    What RDF, or rdflib, cannot express is a Python warning.
    """
    with requiring("rdflib", "rdflib"):
        from rdflib import Dataset, Graph, Namespace
    base = checked_base(base) if base else base_iri(graph)
    result: Graph | Dataset = Dataset() if dataset else Graph()
    for prefix, iri in {**PREFIXES, "": base}.items():
        result.bind(prefix, Namespace(iri))
    store: Any = result.store
    for triple, context in quads(Plain(snapshot, base, star=False)):
        if dataset:
            dataset_graph: Any = result
            (dataset_graph.graph(context) if context is not None else dataset_graph.default_graph).add(triple)
        else:
            store.add(triple, context=result)
    return result


def quads(plain: Plain) -> Iterator[tuple[tuple[Any, Any, Any], Any]]:
    """Yield triples with terms of rdflib, and their graph; what cannot be expressed is a Python warning at the end."""
    import pyoxigraph as ox
    from rdflib import BNode, Literal, URIRef

    directed = 0

    def parsed(lines: list[str]) -> Iterator[ox.Quad]:
        yield from ox.parse("\n".join(lines).encode(), ox.RdfFormat.N_QUADS)

    def term(one: Any) -> Any:
        nonlocal directed
        if type(one) is ox.NamedNode:
            return URIRef(one.value)
        if type(one) is ox.BlankNode:
            return BNode(one.value)
        directed += one.direction is not None
        if one.language:
            return Literal(one.value, lang=one.language)
        # Unchanged: rdflib would normalise 01 to 1.
        plainly = one.datatype.value == "http://www.w3.org/2001/XMLSchema#string"
        return Literal(one.value, datatype=None if plainly else URIRef(one.datatype.value), normalize=False)

    def read(lines: list[str]) -> Iterator[tuple[tuple[Any, Any, Any], Any]]:
        for quad in parsed(lines):
            context = None if type(quad.graph_name) is ox.DefaultGraph else term(quad.graph_name)
            yield (term(quad.subject), term(quad.predicate), term(quad.object)), context

    lines: list[str] = []
    for line in plain.lines():
        lines.append(line)
        if len(lines) >= _BATCH:
            yield from read(lines)
            lines = []
    yield from read(lines)
    messages = list(plain.warnings)
    if directed:
        messages.append(f"{directed} texts have a direction, which rdflib has no place for")
    for one in messages:
        warnings.warn(one, stacklevel=4)
