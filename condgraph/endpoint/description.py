"""The description of the service (SPARQL 1.1 Service Description) as RDF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from condgraph.endpoint.formats import GRAPHS, SOLUTIONS, Format

if TYPE_CHECKING:
    import pyoxigraph as ox

SD: Final = "http://www.w3.org/ns/sparql-service-description#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FORMATS: Final = "http://www.w3.org/ns/formats/"


def describe(url: str, graphs: Sequence[str], form: Format) -> bytes:
    """The description of the endpoint at `url`, whose default graph is the union of `graphs`, in
    one of `formats.GRAPHS`.
    """
    import pyoxigraph as ox

    formats = {
        "turtle": ox.RdfFormat.TURTLE,
        "ntriples": ox.RdfFormat.N_TRIPLES,
        "jsonld": ox.RdfFormat.JSON_LD,
        "rdfxml": ox.RdfFormat.RDF_XML,
    }
    said = ox.serialize(
        _triples(url, graphs),
        format=formats[form.name],
        prefixes={"sd": SD, "formats": _FORMATS} if form.name == "turtle" else None,
    )
    assert said is not None
    return said


def _triples(url: str, graphs: Sequence[str]) -> Iterator[ox.Triple]:
    import pyoxigraph as ox

    kind = ox.NamedNode(RDF + "type")

    def sd(name: str) -> ox.NamedNode:
        return ox.NamedNode(SD + name)

    service, dataset, default = ox.BlankNode("service"), ox.BlankNode("dataset"), ox.BlankNode("default")
    yield ox.Triple(service, kind, sd("Service"))
    yield ox.Triple(service, sd("endpoint"), ox.NamedNode(url))
    yield ox.Triple(service, sd("supportedLanguage"), sd("SPARQL11Query"))
    yield ox.Triple(service, sd("feature"), sd("UnionDefaultGraph"))
    for form in (*SOLUTIONS, *GRAPHS):
        yield ox.Triple(service, sd("resultFormat"), ox.NamedNode(form.iri))
    yield ox.Triple(service, sd("defaultDataset"), dataset)
    yield ox.Triple(dataset, kind, sd("Dataset"))
    yield ox.Triple(dataset, sd("defaultGraph"), default)
    yield ox.Triple(default, kind, sd("Graph"))
    for number, graph in enumerate(graphs):
        named, content = ox.BlankNode(f"named{number}"), ox.BlankNode(f"graph{number}")
        yield ox.Triple(dataset, sd("namedGraph"), named)
        yield ox.Triple(named, kind, sd("NamedGraph"))
        yield ox.Triple(named, sd("name"), ox.NamedNode(graph))
        yield ox.Triple(named, sd("graph"), content)
        yield ox.Triple(content, kind, sd("Graph"))
