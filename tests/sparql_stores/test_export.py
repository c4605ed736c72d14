"""RDF out, and in again: an export to Turtle or N-Quads loads to an equal graph."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import rdflib
from hypothesis import HealthCheck, given, settings

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Ref, Statement
from condgraph.graph import Graph
from tests.support import graphs
from tests.support.canonical import contents_of
from tests.support.lanes import examples
from tests.support.world import world

SYNTAXES = [("turtle", ".ttl"), ("nquads", ".nq")]


def again(graph: Graph, folder: Path, syntax: str, suffix: str) -> Graph:
    path = folder / f"export{suffix}"
    assert graph.export(path, to=syntax) > 0
    found = condgraph.open()
    report = found.load(path)
    assert not report.problems
    assert report.formats == ("rdf",)
    return found


@pytest.mark.parametrize(("syntax", "suffix"), SYNTAXES)
def test_one_of_everything(tmp_path: Path, syntax: str, suffix: str) -> None:
    graph = world()
    assert contents_of(again(graph, tmp_path, syntax, suffix)) == contents_of(graph)


@given(items=graphs.stored_items())
@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
def test_any_graph(tmp_path: Path, items: list[Any]) -> None:
    graph = condgraph.open(graph="any / \u00e9 %")
    graph.add(items)
    for syntax, suffix in SYNTAXES:
        assert contents_of(again(graph, tmp_path, syntax, suffix)) == contents_of(graph)


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs(tmp_path: Path, seed: int) -> None:
    graph = condgraph.open()
    graph.add(graphs.graph(graphs.Dice(seed)))
    for syntax, suffix in SYNTAXES:
        assert contents_of(again(graph, tmp_path, syntax, suffix)) == contents_of(graph)


def test_both_say_the_same(tmp_path: Path) -> None:
    """Read by another parser: the Turtle has the triples that the N-Quads have."""
    graph = world()
    turtle, nquads = io.StringIO(), io.StringIO()
    assert graph.export(turtle, to="turtle") == graph.export(nquads, to="nquads")
    one = set(rdflib.Graph().parse(data=turtle.getvalue(), format="turtle"))
    other = {quad[:3] for quad in rdflib.Dataset().parse(data=nquads.getvalue(), format="nquads").quads()}
    assert one == other
    assert "<a> <knows> <b>" in turtle.getvalue()


def test_a_graph_that_is_there_takes_an_export_in(tmp_path: Path) -> None:
    graph, more = world(), condgraph.open()
    more.add([Statement("a", "knows", Ref("z"))], source="more")
    path = tmp_path / "export.nq"
    graph.export(path, to="nquads")
    more.load(path)
    assert {source.name for source in more.status().sources} >= {"world", "more"}
    assert more.status().statements == graph.status().statements + 1


def test_half_an_export_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "half.nq"
    world().export(path, to="nquads")
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) - 10]), "utf-8")
    report = condgraph.open().load(path)
    assert any("not a complete export" in problem.message for problem in report.problems)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot export to 'turtel'") as caught:
        world().export(tmp_path / "x", to="turtel")
    assert caught.value.candidates == ("turtle",)


LARGE = (
    *("nell995_betae/valid.txt", "fb15k237/FB15K_NumericalTriples.txt", "cronquestions/derived_facts.tsv"),
    *("wikidata12k/valid.txt", "wd50k/derived_labelled_statements.tsv", "wikitablequestions/csv/200-csv/0.csv"),
)


@pytest.mark.data
def test_data_sets(data: Path, tmp_path: Path) -> None:
    """Data sets of every kind, cut to their beginnings where they are large."""
    small: list[tuple[Path, dict[str, Any]]] = [
        (data / "kopl_example" / "example_kb.json", {}),
        (data / "pathquestions" / "2H-kb.txt", {}),
        (data / "lpg_northwind" / "import" / "products.csv", {}),
    ]
    cut = (("metaqa/kb.txt", 3_000), ("fb15k237/valid.txt", 1_500), *((name, 1_500) for name in LARGE))
    for name, lines in cut:
        path = tmp_path / name.replace("/", "_")
        path.write_text("".join((data / name).read_text("utf-8").splitlines(keepends=True)[:lines]), "utf-8")
        small.append((path, {}))
    for source, options in small:
        graph = condgraph.open()
        graph.load(source, **options)
        for syntax, suffix in SYNTAXES:
            assert contents_of(again(graph, tmp_path, syntax, suffix)) == contents_of(graph), source
