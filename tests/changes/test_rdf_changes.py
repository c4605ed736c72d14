"""RDF that is added to RDF: every triple keeps its own IRIs, datatypes and labels."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.graph import Graph

HEAD = """@prefix a: <http://a.org/> . @prefix b: <http://b.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
FIRST = HEAD + 'a:x a:knows a:y ; a:name "X"@en ; rdfs:label "Ex"@en ; a:age 5 ; a:w 5.0 . a:y rdfs:label "Why"@en .'
SECOND = HEAD + (
    'a:x b:knows a:z ; b:name "XX"@de ; a:age "7"^^xsd:byte ; a:w "5.0"^^xsd:float . '
    'a:z rdfs:label "Zed"@de . a:u a:age 9 ; skos:prefLabel "Uh" .'
)
THIRD = HEAD + 'a:z b:name "third" ; a:age "8"^^xsd:byte . b:name rdfs:label "called" .'


def plain(graph: Graph) -> set[str]:
    stream = io.StringIO()
    graph.export(stream, to="rdf")
    return set(stream.getvalue().splitlines())


def exported(graph: Graph) -> list[str]:
    stream = io.StringIO()
    graph.export(stream)
    return sorted(stream.getvalue().splitlines())


@pytest.mark.parametrize(
    "order", [(FIRST, SECOND, THIRD), (SECOND, FIRST, THIRD), (THIRD, SECOND, FIRST)], ids=["123", "213", "321"]
)
@pytest.mark.parametrize("names", ["iri", "local"])
def test_added_triples_are_what_they_were(order: tuple[str, ...], names: str, tmp_path: Path) -> None:
    apart, graph = condgraph.open(), condgraph.open()
    files = []
    for number, text in enumerate(order):
        files.append(tmp_path / f"{number}.ttl")
        files[-1].write_text(text)
        apart.load(files[-1], names=names)
        graph.load(files[-1], names=names, name="all", append=bool(number))
        assert plain(graph) <= plain(apart)
        # A node has one name in a source: the end of its IRI, where it had no label at first.
        assert names == "local" or plain(graph) == plain(apart)
    # Again, each says what it said.
    before = exported(graph)
    for file in files:
        assert not any(graph.load(file, names=names, name="all").added.values())
    assert exported(graph) == before
    # A newer state has none of the older terms.
    graph.load(files[1], names=names, name="all", replace=True)
    apart.unload("0", "2")
    assert plain(graph) == plain(apart)
    query = "SELECT ?x ?y WHERE { ?x <http://a.org/age> ?y } ORDER BY ?x ?y"
    assert graph.sparql(query).rows == apart.sparql(query).rows != []


def test_every_source_says_what_it_calls_things(tmp_path: Path) -> None:
    """Labels are written in the language of the source that has them, whoever mentions a node
    first.
    """
    graph = condgraph.open()
    texts = ['a:z a:knows a:x . a:z rdfs:label "Zett"@de .', 'a:x rdfs:label "Ex"@en . a:z rdfs:label "Zed"@en .']
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.ttl").write_text(HEAD + text)
        graph.load(tmp_path / f"{number}.ttl")
    graph.load([{"ref": "http://a.org/u", "x": 1}], name="table", key="x", refs=["ref"])
    label, base = "<http://www.w3.org/2000/01/rdf-schema#label>", "http://a.org"
    said = {f'<{base}/z> {label} "Zett"@de .', f'<{base}/x> {label} "Ex"@en .', f'<{base}/z> {label} "Zed"@en .'}
    assert {line for line in plain(graph) if line.startswith(f"<{base}/") and label in line} == said
    graph.unload("0")
    assert {line for line in plain(graph) if line.startswith(f"<{base}/") and label in line} == {
        one for one in said if "@en" in one
    }


def test_every_source_writes_a_literal_in_its_own_way(tmp_path: Path) -> None:
    """Equal values are one fact of two sources, which may write it as other literals; what is a
    predicate in one source and a labelled node in the other keeps its label.
    """
    texts = ['a:x a:p 5 . a:x rdfs:label "x"@en .', 'a:x a:p "5.0"^^xsd:float . a:p rdfs:label "pe"@de . a:x rdfs:label "x"@en .']
    graph = condgraph.open()
    for number, text in enumerate((texts[0], 'a:p rdfs:label "pe"@de . a:x a:q "5.0"^^xsd:float .')):
        (tmp_path / f"{number}.ttl").write_text(HEAD + text)
        graph.load(tmp_path / f"{number}.ttl")
    xsd, label = "http://www.w3.org/2001/XMLSchema#", "<http://www.w3.org/2000/01/rdf-schema#label>"
    assert f'<http://a.org/p> {label} "pe"@de .' in plain(graph)
    (tmp_path / "1.ttl").write_text(HEAD + texts[1])
    graph.load(tmp_path / "1.ttl", replace=True)
    said = {line for line in plain(graph) if line.startswith("<http://a.org/x> <http://a.org/p>") or '"pe"' in line}
    assert said == {
        f'<http://a.org/x> <http://a.org/p> "5"^^<{xsd}integer> .',
        f'<http://a.org/x> <http://a.org/p> "5.0"^^<{xsd}float> .',
        f'<http://a.org/p> {label} "pe"@de .',
    }


def test_wikidata_keeps_its_properties(tmp_path: Path) -> None:
    first, second = tmp_path / "first.tsv", tmp_path / "second.tsv"
    first.write_text("Q1\tone\tP1\tname\tQ2\ttwo\n")
    second.write_text("Q1\tone\tP2\tname\tQ3\tthree\nQ1\tone\tP1\tname\tQ3\tthree\n")
    graph = condgraph.open()
    graph.load(first, format="wikidata", name="w")
    graph.load(second, format="wikidata", name="w", append=True)
    direct = {" ".join(line.split(" ")[:3]) for line in plain(graph) if "/prop/direct/" in line.split(" ")[1]}
    root = "http://www.wikidata.org"
    said = (("P1", "Q2"), ("P1", "Q3"), ("P2", "Q3"))
    assert direct == {f"<{root}/entity/Q1> <{root}/prop/direct/{key}> <{root}/entity/{other}>" for key, other in said}


def test_rdf_and_tables_are_not_one_source(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(FIRST)
    (tmp_path / "b.csv").write_text("name,age\nX,7\n")
    for first, second in (("a.ttl", "b.csv"), ("b.csv", "a.ttl")):
        graph = condgraph.open()
        graph.load(tmp_path / first, name="one")
        before = exported(graph)
        with pytest.raises(OptionError, match="is of the format"):
            graph.load(tmp_path / second, name="one", append=True)
        assert exported(graph) == before
