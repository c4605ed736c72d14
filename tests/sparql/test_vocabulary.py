"""The ontology declares what is written, and the example of the documentation is what is written."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib

import condgraph
from condgraph.engine import iris
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.sparql import layout
from condgraph.sparql.load.write import ntriples, quads
from tests.support.world import world

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rdf.md"


def declared() -> set[str]:
    text = files("condgraph.sparql").joinpath("ontology.ttl").read_text("utf-8")
    return {triple.subject.value for triple in ox.parse(text.encode(), ox.RdfFormat.TURTLE)}


def test_every_term_that_is_written_is_declared() -> None:
    graph = world()
    lines = "".join(ntriples(graph.current, layout.base_iri("default")))
    used: set[str] = set()
    for triple in ox.parse(lines.encode(), ox.RdfFormat.N_TRIPLES):
        used |= {term.value for term in (triple.predicate, triple.object) if isinstance(term, ox.NamedNode)}
    used = {iri for iri in used if iri.startswith(iris.PRED)}
    assert len(used) > 30
    assert used <= declared()


@pytest.mark.parametrize(
    "text", ["a\\u0060b", "\\u", "\\U0001F600", "\\\\u00", "\\\x07u", "u\\n\\N", "\\", '"\\', "\x07abcd1234", "\U0001f600 \n"]
)
def test_literals_are_read_as_they_were(text: str) -> None:
    """By parsers that resolve escapes with their strings, and by those that do it before they read
    the query.
    """
    query = f"SELECT ({layout.string(text)} AS ?x) {{}}"
    found = ox.Store().query(query)
    assert isinstance(found, ox.QuerySolutions)
    assert [row["x"].value for row in found] == [text]
    assert [str(row[0]) for row in rdflib.Graph().query(query)] == [text]


def test_all_of_a_graph_stands_in_its_named_graph() -> None:
    graph = world()
    base = layout.base_iri("my films")
    found = {quad.graph_name for quad in ox.parse("".join(quads(graph.current, base)).encode(), ox.RdfFormat.N_QUADS)}
    assert found == {ox.NamedNode("http://condgraph.example/my_films/")}


def test_the_example_is_what_is_written() -> None:
    graph = condgraph.open()
    validity = (("start time", Time.year(2014)), ("end time", Time.year(2018)))
    items = [
        Entity("Q36159", "LeBron James"),
        Entity("Q162990", "Cleveland Cavaliers"),
        Statement("Q36159", "member of sports team", Ref("Q162990"), validity),
        Statement("Q36159", "height", Quantity(206, "centimetre")),
    ]
    graph.add(items, source="nba")
    written = set(ox.parse("".join(ntriples(graph.current, layout.base_iri("default"))).encode(), ox.RdfFormat.N_TRIPLES))
    found = re.search(r"```turtle\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert found is not None
    shown = set(ox.parse(found[1].encode(), ox.RdfFormat.TURTLE))
    assert len(shown) > 15
    assert shown <= written, shown - written
