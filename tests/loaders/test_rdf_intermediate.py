"""Intermediate nodes of RDF that are collapsed into statements with qualifiers: what is, what is
not and why, and what an oracle over rdflib's triples says.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import rdflib

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import Item, Ref, Source, Statement
from condgraph.engine.values import Quantity, Time
from condgraph.loaders.base import Reading
from condgraph.loaders.rdf.load import FORMAT

X = "http://x/"
PREFIXES = """@prefix : <http://x/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def read(path: Path, text: str, **options: Any) -> tuple[list[Statement], list[str]]:
    """The statements of a text in Turtle, and what was warned of."""
    path.write_text(PREFIXES + text)
    reading = Reading(Source("g", str(path)))
    items: list[Item] = list(FORMAT.read(path, reading, options))
    return [one for one in items if isinstance(one, Statement)], [problem.message for problem in reading.problems]


def test_a_marriage_is_one_statement(tmp_path: Path) -> None:
    text = ':ada :spouse_s [ :spouse :william ; :from "1835"^^xsd:gYear ; :children 3 ] . :william rdfs:label "William" .'
    (one,), warned = read(tmp_path / "g.ttl", text, collapse="blank")
    assert (one.subject, one.predicate, one.object) == (X + "ada", "spouse_s", Ref(X + "william"))
    assert dict(one.qualifiers) == {"from": Time.year(1835), "children": Quantity(3)}
    assert "1 node is collapsed into a statement: 'spouse_s' with the object of 'spouse', qualifiers 'from', 'children'" in warned
    assert any("collapsed nodes are not kept" in one for one in warned)


def test_nothing_is_collapsed_unasked(tmp_path: Path) -> None:
    found, warned = read(tmp_path / "g.ttl", ":ada :spouse_s [ :spouse :william ; :children 3 ] .")
    assert len(found) == 3
    assert not warned


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (":a :p _:n . :b :p _:n . _:n :q :c .", "is the object of several triples"),
        (":a :p _:n . _:n :q :c, :d .", "leads to several things"),
        (":a :p _:n . _:n :q 1 ; :r 2 .", "leads to several things"),
        (":a :p _:n . _:n :q :c . _:n :r _:m .", "leads to another node without a name"),
        (":a :p _:n . _:n :q _:n .", "is the object of several triples"),
        (":a :p _:n . _:n :q (1 2) .", "leads to another node without a name"),
        (":a :p _:n . _:n :q :c . << _:n :q :c >> :since 3 .", "is a member of a list, a class, a graph"),
        (":a :p _:n . :b a _:n . _:n :q :c .", "is a member of a list, a class, a graph"),
    ],
)
def test_what_cannot_be_collapsed_stays_and_is_said(tmp_path: Path, text: str, why: str) -> None:
    plain, _ = read(tmp_path / "g.ttl", text)
    found, warned = read(tmp_path / "g.ttl", text, collapse="blank")
    assert found == plain
    assert [one for one in warned if "not collapsed" in one and why in one], warned


@pytest.mark.parametrize(
    "text",
    [
        ':a :p _:n . _:n rdfs:label "N" ; :q :c .',  # a name
        ":a :p _:n . _:n a :T ; :q :c .",  # a type
        "_:n :q :c .",  # nothing leads to it
        ":a :p _:n .",  # it leads nowhere
        ":a :p (1 2) .",
        ":a :p :n . :n :q :c .",  # an IRI is a name
    ],
)
def test_other_nodes_stay_silently(tmp_path: Path, text: str) -> None:
    plain, before = read(tmp_path / "g.ttl", text)
    found, warned = read(tmp_path / "g.ttl", text, collapse="blank")
    assert (found, warned) == (plain, before)


def test_what_leads_to_the_object_can_be_said(tmp_path: Path) -> None:
    text = ':a :p [ :who :b ; :where :c ; :cost 5 ], [ rdf:value 3 ; :unit :cm ] . :b rdfs:label "B" .'
    found, _ = read(tmp_path / "g.ttl", text, collapse="blank", collapse_to=[X + "where", "rdf:value"])
    assert [(one.object, dict(one.qualifiers)) for one in found] == [
        (Ref(X + "c"), {"who": Ref(X + "b"), "cost": Quantity(5)}),
        (Quantity(3), {"unit": Ref(X + "cm")}),
    ]


def test_iris_without_a_label_are_collapsed_where_they_are_asked_for(tmp_path: Path) -> None:
    text = ':a rdfs:label "A" ; :p :m1 . :m1 :who :b ; :cost 5 . :b rdfs:label "B" ; :born 1900 .'
    found, _ = read(tmp_path / "g.ttl", text, collapse="unnamed")
    assert [(one.subject, one.predicate, one.object, dict(one.qualifiers)) for one in found] == [
        (X + "a", "p", Ref(X + "b"), {"cost": Quantity(5)}),
        (X + "b", "born", Quantity(1900), {}),
    ]


def test_equal_nodes_languages_and_graphs_are_said(tmp_path: Path) -> None:
    text = ':a :p [ :who :b ; :note "x"@en ], [ :who :b ; :note "x"@en ] .'
    found, warned = read(tmp_path / "g.ttl", text, collapse="blank")
    assert len({(one.object, one.qualifiers) for one in found}) == 1
    assert any("says the same as another" in one for one in warned)
    assert any("the language or datatype of a value" in one for one in warned)
    path = tmp_path / "g.trig"
    path.write_text(PREFIXES + ":g { :a :p _:n . _:n :q :c } :h { :a :p _:m } _:m :q :c .")
    reading = Reading(Source("g", str(path)))
    made = [one for one in FORMAT.read(path, reading, {"collapse": "blank"}) if isinstance(one, Statement)]
    assert (X + "a", (("graph", Ref(X + "g")),)) in [(one.subject, one.qualifiers) for one in made if one.object == Ref(X + "c")]
    assert any("stands in several graphs: not collapsed" in problem.message for problem in reading.problems)


def test_wrong_options_are_errors(tmp_path: Path) -> None:
    for options in (
        {"collapse": "some"},
        {"collapse": True},
        {"collapse_to": "rdf:value"},
        {"collapse": "blank", "collapse_to": 3},
    ):
        with pytest.raises(OptionError):
            read(tmp_path / "g.ttl", ":a :p :b .", **options)


def test_a_program_asks_through_it_and_export_has_the_statement(tmp_path: Path) -> None:
    path = tmp_path / "people.ttl"
    people = ':ada rdfs:label "Ada" ; :spouse_s [ :spouse :will ; :from "1835"^^xsd:gYear ] . :will rdfs:label "Will" .'
    path.write_text(PREFIXES + people)
    with condgraph.open("memory:") as graph:
        graph.load(path, collapse="blank")
        assert graph.kopl("Find(Ada) Relate(spouse_s, forward) QFilterYear(from, 1835, =) QueryName()").texts == ["Will"]
        graph.export(tmp_path / "out.nq", to="rdf")
    written = rdflib.Dataset()
    written.parse(tmp_path / "out.nq", format="nquads")
    spouse = rdflib.URIRef(X + "will")
    assert (rdflib.URIRef(X + "ada"), rdflib.URIRef(X + "spouse_s"), spouse) in {one[:3] for one in written.quads()}
    assert not [one for one in written.quads() if one[1] == rdflib.URIRef(X + "spouse")]


def expected(text: str) -> set[tuple[Any, ...]]:
    """The statements that should come of a text of IRIs, blank nodes and integers, by rdflib."""
    triples = set(rdflib.Graph().parse(data=PREFIXES + text, format="turtle"))

    def in_way(node: Any) -> bool:
        out = [one for one in triples if one[0] == node]
        into = [one for one in triples if one[2] == node]
        nodes = [one for one in out if not isinstance(one[2], rdflib.Literal)]
        if not isinstance(node, rdflib.BNode) or len(into) != 1 or not out or any(isinstance(one[2], rdflib.BNode) for one in out):
            return True
        return len(nodes) != 1 and (bool(nodes) or len(out) != 1)

    def end(iri: Any) -> str:
        return str(iri).rpartition("/")[2] if isinstance(iri, rdflib.URIRef) else "_" if isinstance(iri, rdflib.BNode) else str(iri)

    found = set()
    for subject, predicate, other in triples:
        if not in_way(subject):
            continue
        pairs: frozenset[tuple[str, str]] = frozenset()
        if not in_way(other):
            out = [one for one in triples if one[0] == other]
            main = next((one for one in out if not isinstance(one[2], rdflib.Literal)), out[0])
            pairs = frozenset((end(by), end(value)) for _, by, value in set(out) - {main})
            other = main[2]
        found.add((end(subject), end(predicate), end(other), pairs))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_an_oracle_over_triples_agrees(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    nodes, ends = [":a", ":b", "_:m", "_:n", "_:o"], [":a", ":c", "_:m", "_:n", "_:o", "1", "2"]
    text = "\n".join(f"{rng.choice(nodes)} :{rng.choice('pqr')} {rng.choice(ends)} ." for _ in range(rng.randint(3, 9)))
    found, _ = read(tmp_path / "g.ttl", text, collapse="blank")

    def shown(value: Any) -> str:
        name = value.id if isinstance(value, Ref) else str(value)
        return "_" if name.startswith("_:") else name.rpartition("/")[2]

    made = {
        (shown(Ref(one.subject)), one.predicate, shown(one.object), frozenset((key, shown(value)) for key, value in one.qualifiers))
        for one in found
    }
    assert made == expected(text), text
