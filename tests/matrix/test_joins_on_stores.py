"""Tables that meet, and Northwind with its joins, on Neo4j and as SPARQL: the answers in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from tests.loaders.test_joins import STATIONS, TRIPS
from tests.loaders.test_northwind_everywhere import QUESTIONS
from tests.support import northwind
from tests.support.differential import outcome

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


def test_keys_and_tables_mean_what_they_do_in_process(opener: Any, tmp_path: Path) -> None:
    """The name of a table is a concept, a key finds rows that are called otherwise, several tables of
    a load are joined.
    """
    for stem, text in {"stations": STATIONS, "trips": TRIPS}.items():
        (tmp_path / f"{stem}.csv").write_text(text)
    here = condgraph.open("memory:")
    here.load([{"code": "S09", "title": "Nine", "town": "Oslo"}], name="codes", key="code", name_column="title")
    here.load([{"code": "S09", "name": "x"}], name="rows", name_column="name")
    here.load(tmp_path, name="bus", name_columns={"stations": "stop"})
    with opener("keys that find") as there:
        there.store.delete()
        there.push(here)
        for program in (
            "Find(S09) QueryName()",
            "Find(S08) QueryName()",
            "Find(S08) Relate(start, backward) Count()",
            "Find(S08) QueryAttr(title)",
            "Find(S99) QueryName()",
            "Find(1) QueryName()",
            "FindAll() FilterConcept(codes) QueryName()",
            "FindAll() FilterConcept(codes) QueryAttr(town)",
            "FindAll() FilterConcept(trips) FilterConcept(codes) Count()",
            "FindAll() FilterConcept(coes) Count()",
            "Find(S09) FilterConcept(codes) QueryName()",
            "FindAll() FilterConcept(trips) Relate(start, forward) QueryName()",
        ):
            found = [outcome(graph, program, warnings=True) for graph in (here, there)]
            assert found[0] == found[1], program
        there.store.delete()


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
