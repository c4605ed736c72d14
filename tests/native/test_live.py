"""SPARQL on a database of others without a copy of it: what is answered is what Oxigraph answers over
the same database as RDF, and all else is refused with a reason.
"""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neo4j
import pytest

from condgraph.cypher.connection import Connection
from condgraph.endpoint.live import Live
from condgraph.engine.errors import UnknownNameError, UnsupportedError
from condgraph.remote_native import NativeGraph
from tests.support.lanes import by_lane
from tests.support.native_databases import content, database, reading_data
from tests.support.sparql_queries import Maker, compare

pytestmark = pytest.mark.xdist_group("neo4j native")
REALISTIC = tomllib.loads((Path(__file__).parent / "live_queries.toml").read_text(encoding="utf-8"))


@dataclass
class Beside:
    """A database asked live, and the same one as RDF in Oxigraph."""

    live: Live
    rdf: Any
    graph: NativeGraph
    driver: neo4j.Driver
    name: str

    def check(self, text: str) -> int:
        """Compare the answers to a query; how many rows there are."""
        return compare(lambda query: self.live.ask(query, timeout=120), self.rdf, text)


@pytest.fixture(scope="module", params=[*reading_data("movies", nightly=("northwind",)), "social", "ledger"])
def beside(request: pytest.FixtureRequest, emptied_neo4j_uri: str) -> Iterator[Beside]:
    with database(emptied_neo4j_uri, request.param) as driver, NativeGraph(Connection(emptied_neo4j_uri)) as graph:
        before = content(driver)
        rdf = graph.snapshot().rdf()
        yield Beside(Live(graph.store, base=rdf.base), rdf, graph, driver, request.param)
        assert content(driver) == before


def test_what_people_ask(beside: Beside) -> None:
    """Eight of ten and more are answered, and those are right."""
    asked = REALISTIC.get(beside.name, [])
    answered = 0
    for one in asked:
        if one.get("pushed", True):
            beside.check(one["text"])
            answered += 1
        else:
            with pytest.raises((UnsupportedError, UnknownNameError)):
                beside.live.ask(one["text"])
    assert answered >= 0.8 * len(asked)


def test_random_queries(beside: Beside) -> None:
    maker, found, rows = Maker.of_mapping(beside.graph.mapping, beside.rdf, random.Random(18)), Counter[str](), 0
    wanted = by_lane(6, 25, 1_250)
    while found["answered"] < wanted:
        text = maker.query()
        try:
            rows += beside.check(text) > 0
            found["answered"] += 1
        except (UnsupportedError, UnknownNameError) as error:
            # Lists of many numbers are hidden.
            found[error.message] += 1
    # Many are answered, also where half of the properties are lists or of several types; and many of
    # the answers are something.
    assert found["answered"] > 0.5 * sum(found.values()), found
    assert rows > 0.2 * found["answered"], found


def test_properties_that_relationships_have_too(beside: Beside) -> None:
    """Statements are subjects of these as well: without a word that nodes are meant, live queries would
    count fewer than there are.
    """
    if beside.name != "northwind":
        pytest.skip("Northwind has products and orders with a price")
    for text in (
        "SELECT (COUNT(?a) AS ?n) { ?a <unitPrice>/<pred:value> ?x FILTER(?x = 30.4) }",
        "ASK { ?a <unitPrice> ?x }",
        "SELECT ?x { ?a <unitPrice>/<pred:value> ?x . ?a <quantity>/<pred:value> ?y }",
    ):
        with pytest.raises(UnsupportedError, match=r"statement with the qualifier|relationship nor a property"):
            beside.live.ask(text)
    for said in ("?a a <pred:Entity>", "?a <pred:name> ?name", "?a <PART_OF> ?o", "?a <pred:instance_of> ?c"):
        assert beside.check(f"SELECT ?a ?x {{ {said} . ?a <unitPrice>/<pred:value> ?x FILTER(?x > 30.0) }}") > 0
