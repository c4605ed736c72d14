"""Tables that meet, and Northwind with its joins, on Neo4j and as SPARQL: the answers in process."""

from __future__ import annotations

from pathlib import Path

import pytest

import condgraph
from tests.loaders.test_northwind_everywhere import QUESTIONS
from tests.support import northwind

PEAKS = [{"mountain": "Eiger", "country": "Switzerland"}, {"mountain": "K9", "country": "Atlantis"}]
COUNTRIES = [{"country": "Switzerland", "capital": "Bern"}]


@pytest.mark.parametrize("join", [{"refs": ["country"]}, {"join": {"country": "countries.country"}}])
@pytest.mark.parametrize("first", ["peaks", "countries"])
def test_a_reference_and_a_key_are_one_thing(neo4j_uri: str, first: str, join: dict[str, object]) -> None:
    with condgraph.open(neo4j_uri, graph=f"joins {first} {next(iter(join))}") as graph:
        graph.delete()
        for one in (first, "countries" if first == "peaks" else "peaks"):
            if one == "peaks":
                graph.load(PEAKS, name="peaks", key="mountain", **join)  # type: ignore[arg-type]
            else:
                graph.load(COUNTRIES, name="countries", key="country")
        assert graph.kopl("Find(Eiger) Relate(country, forward) QueryAttr(capital)").texts == ["Bern"]
        assert graph.kopl("Find(Switzerland) Relate(country, backward) QueryName()").texts == ["Eiger"]
        graph.delete()


@pytest.mark.data
def test_northwind(neo4j_uri: str, data: Path) -> None:
    local = condgraph.open("memory:")
    local.load(data / "lpg_northwind" / "import", **northwind.OPTIONS)
    with condgraph.open(neo4j_uri, graph="northwind joins") as graph:
        graph.delete()
        graph.load(data / "lpg_northwind" / "import", **northwind.OPTIONS)
        for words, program, _ in QUESTIONS:
            asked = program.format(words[0])
            expected = local.kopl(asked).texts
            assert graph.kopl(asked).texts == expected, asked
            assert local.kopl(asked, engine="sparql").texts == expected, asked
        graph.delete()
