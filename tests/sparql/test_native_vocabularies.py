"""Random programs over triples in public vocabularies, asked where they are, with and without presets of the mapping file: the
answers are those of rdflib, by SPARQL queries that are written here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import rdflib

import condgraph
from condgraph.remote_triples import TriplesGraph
from tests.sparql.test_native import serve as serve
from tests.support.lanes import by_lane

pytestmark = pytest.mark.service

EX = "http://example.org/"
PREFIXES = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix schema: <http://schema.org/> .
@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix prov: <http://www.w3.org/ns/prov#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
"""

#: Declared with each query: rdflib knows some of these prefixes otherwise.
SPACES = PREFIXES.replace("@prefix", "\nPREFIX").replace(" .", "")


class Vocabulary(NamedTuple):
    """Terms of a vocabulary: what gives names, its classes, its relations, and its attributes with numbers and with dates.

    With a `preset`, `reads` are the relations that programs name, by the paths of SPARQL that they stand for, `read_dates` such
    attributes, `qualified` relations with a time (name, qualifier, patterns). `more` are triples of each node: of three
    alternatives, with nodes as `{0}`. `same` is a path from a node to those that are the same.
    """

    label: str
    classes: tuple[str, ...]
    relations: tuple[str, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    preset: str = ""
    reads: Mapping[str, str] = MappingProxyType({})
    read_dates: Mapping[str, str] = MappingProxyType({})
    qualified: tuple[tuple[str, str, str], ...] = ()
    more: tuple[str, ...] = ()
    same: str = ""
    axioms: str = ""

    @property
    def related(self) -> Mapping[str, str]:
        """The relations of programs with their paths."""
        return self.reads or {local(term): term for term in self.relations}


VOCABULARIES = {
    "schema.org": Vocabulary(
        "schema:name", ("schema:Movie", "schema:Person", "schema:Organization"), ("schema:actor", "schema:worksFor"),
        ("schema:numberOfEpisodes", "schema:duration"), ("schema:datePublished",),
    ),
    "SKOS": Vocabulary(
        "skos:prefLabel", ("skos:Concept", "skos:Collection"), ("skos:broader", "skos:related", "skos:member"), ("skos:notation",),
        ("dct:modified",),
    ),
    "DCAT": Vocabulary(
        "dct:title", ("dcat:Catalog", "dcat:Dataset", "dcat:Distribution"), ("dcat:dataset", "dcat:distribution"),
        ("dcat:byteSize",), ("dct:issued", "dct:modified"),
    ),
    "FOAF": Vocabulary(
        "foaf:name", ("foaf:Person", "foaf:Agent", "foaf:Group"), ("foaf:knows", "foaf:member"), ("foaf:age",), ("foaf:birthday",),
    ),
    "preset skos": Vocabulary(
        "skos:prefLabel", ("skos:Concept", "skos:Collection"),
        ("skos:broader", "skos:narrower", "skos:related", "skos:topConceptOf"),
        ("skos:notation",), ("dct:modified",), "skos",
        {
            "broader": "(skos:broader|^skos:narrower)", "narrower": "(skos:narrower|^skos:broader)",
            "related": "(skos:related|^skos:related)", "inScheme": "(skos:inScheme|skos:topConceptOf)",
        },
        more=(
            '{0} rdfs:label "no name of {0}" ; skos:inScheme {1} .',
            '{0} xl:altLabel [ a xl:Label ; xl:literalForm "other"@en ; dct:modified "2001"^^xsd:gYear ] .', "",
        ),
    ),
    "preset dcat": Vocabulary(
        "dct:title", ("dcat:Catalog", "dcat:Dataset", "dcat:Distribution"), ("dcat:dataset", "dct:temporal"), ("dcat:byteSize",),
        ("dct:issued",), "dcat", {"dataset": "dcat:dataset"}, {"temporal coverage": "dct:temporal/dcat:startDate"},
        more=(
            '{0} dct:temporal [ a dct:PeriodOfTime ; dcat:startDate "{2}"^^xsd:gYear ; dcat:endDate "{2}-12-31"^^xsd:date ] .',
            '{0} dct:temporal [ dcat:endDate "{2}"^^xsd:gYear ] ; rdfs:label "no name" .',
            '{0} dct:temporal [ a dct:PeriodOfTime ; dcat:startDate "{2}-02"^^xsd:gYearMonth ] .',
        ),
    ),
    "preset prov": Vocabulary(
        "rdfs:label", ("prov:Entity", "prov:Activity", "prov:Agent"), ("prov:used", "prov:generated", "prov:wasRevisionOf"), (),
        ("prov:startedAtTime",), "prov",
        {
            "used": "(prov:used|prov:qualifiedUsage/prov:entity)", "wasGeneratedBy": "(prov:wasGeneratedBy|^prov:generated)",
            "wasAssociatedWith": "prov:qualifiedAssociation/prov:agent", "wasDerivedFrom": "prov:wasRevisionOf",
        },
        qualified=(
            ("used", "at time", "{0} prov:qualifiedUsage ?f . ?f prov:entity {1} ; prov:atTime ?q ."),
            ("used", "point in time", "{0} prov:qualifiedUsage ?f . ?f prov:entity {1} ; prov:atTime ?q ."),
        ),
        more=(
            '{0} prov:qualifiedUsage [ a prov:Usage ; prov:entity {1} ; prov:atTime "{2}-01-02T03:04:05Z"^^xsd:dateTime ] .',
            "{0} prov:qualifiedAssociation [ a prov:Association ; prov:agent {1} ; prov:hadRole {0} ] .",
            "{0} prov:qualifiedUsage [ prov:entity {1} ] .",
        ),
    ),
    "preset owl": Vocabulary(
        "rdfs:label", (":Wine", ":Drink", ":Grape"), (":madeFrom", ":makes", "owl:sameAs"), (":bottles",), (":vintage",), "owl",
        {
            "makes": "(:makes|^:madeFrom|^:pressedFrom)", "madeFrom": "(:madeFrom|:pressedFrom|^:makes)",
            "pressedFrom": ":pressedFrom",
        },
        qualified=(
            (
                *("pressedFrom", "since"),
                "?f owl:annotatedSource {0} ; owl:annotatedProperty :pressedFrom ; owl:annotatedTarget {1} ; :since ?q .",
            ),
        ),
        more=(
            '{0} :pressedFrom {1} ; a owl:NamedIndividual, owl:Thing . [ a owl:Axiom ; owl:annotatedSource {0} ; '
            'owl:annotatedProperty :pressedFrom ; owl:annotatedTarget {1} ; :since "{2}"^^xsd:gYear ] .',
            "{0} a owl:NamedIndividual .", "{0} :pressedFrom {1} .",
        ),
        same="(owl:sameAs|^owl:sameAs)*",
        axioms=""":makes owl:inverseOf :madeFrom . :pressedFrom rdfs:subPropertyOf :madeFrom . :madeFrom a owl:ObjectProperty .
            :Wine a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :madeFrom ; owl:someValuesFrom :Grape ] .""",
    ),
}  # fmt: skip


def data(words: Vocabulary, chance: random.Random) -> str:
    """Triples: nodes with one name or two of other languages, several classes, links to each other and to blank nodes."""
    lines, classes = [PREFIXES, words.axioms], words.classes
    if chance.random() < 0.5:
        lines.append(f"{classes[-1]} rdfs:subClassOf {classes[0]} .")
    for at in range(25):
        node = f":n{at}"
        lines += [f"{node} a {one} ." for one in chance.sample(classes, chance.randint(1, 2))]
        lines.append(f'{node} {words.label} "thing {at}"@en .')
        if chance.random() < 0.3:
            lines.append(f'{node} {words.label} "Ding {at}"@de .')
        for relation in words.relations:
            # Few are the same: of many, all would be.
            most = 2 if relation != "owl:sameAs" else int(chance.random() < 0.1)
            lines += [f"{node} {relation} :n{chance.randrange(25)} ." for _ in range(chance.randint(0, most))]
        if words.more:
            lines.append(chance.choice(words.more).format(node, f":n{chance.randrange(25)}", chance.randint(1980, 2024)))
        if chance.random() < 0.2:
            lines.append(f'{node} {words.relations[0]} [ {words.label} "blank {at}"@en ] .')
        for key in words.numbers:
            written = chance.choice([str(chance.randint(-9, 60)), f"{chance.randint(0, 600) / 10}", '"many"', '"7"^^xsd:long'])
            lines += [f"{node} {key} {written} ."] * chance.randint(0, 1)
        for key in words.dates:
            year = chance.randint(1980, 2024)
            lines.append(
                f"{node} {key} " + chance.choice([f'"{year}"^^xsd:gYear .', f'"{year}-03-0{chance.randint(1, 9)}"^^xsd:date .'])
            )
    return "\n".join(lines)


def local(term: str) -> str:
    """What a program calls a predicate."""
    return term.partition(":")[2]


def asked(words: Vocabulary, chance: random.Random) -> tuple[str, str]:
    """A random program, and the query of its result ?a."""
    concept, name = chance.choice(words.classes), f"thing {chance.randrange(25)}"
    prefixes = {line.split()[0]: line.split()[1] for line in PREFIXES.replace("@prefix ", "\n").splitlines() if line.strip()}
    space, _, rest = concept.partition(":")
    iri = f"{prefixes[f'{space}:'].strip('<>')}{rest}"
    same = f"{words.same}/" if words.same else ""
    member = f"?x0 {same}a/rdfs:subClassOf* {concept} . FILTER NOT EXISTS {{ ?any a ?x0 }}"
    program, query = chance.choice(
        [
            (f"Find({name})", f'?x0 {words.label} "{name}"@en .'),
            (f"FindAll() FilterConcept({iri})", member),
            (f"Find({name}) FilterConcept({iri})", f'?x0 {words.label} "{name}"@en . {member}'),
        ]
    )
    last = "?x0"
    for at in range(1, chance.randint(1, 3)):
        (relation, path), new = chance.choice(sorted(words.related.items())), f"?x{at}"
        forward = chance.random() < 0.5
        program += f" Relate({relation}, {'forward' if forward else 'backward'})"
        path = f"{same}{path}{same and '/'}{words.same}"
        query += f" {last} {path} {new} ." if forward else f" {new} {path} {last} ."
        last = new
    if words.qualified and chance.random() < 0.3:
        relation, key, patterns = chance.choice(words.qualified)
        sign, year = chance.choice(["=", "<", ">"]), chance.randint(1985, 2020)
        program += f" Relate({relation}, forward) QFilterYear({key}, {year}, {sign})"
        ends = ("?s", "?o") if same else (last, "?y")
        query += f" {patterns.format(*ends)} FILTER(xsd:integer(SUBSTR(STR(?q), 1, 4)) {sign} {year})"
        query += f" {last} {words.same} ?s . ?o {words.same} ?y ." if same else ""
        last = "?y"
    numbers, dates = (
        {local(term): term for term in words.numbers},
        {**{local(term): term for term in words.dates}, **words.read_dates},
    )
    if chance.random() < 0.5:
        if numbers and chance.random() < 0.5:
            key, sign, number = chance.choice(sorted(numbers)), chance.choice(["=", "!=", "<", ">"]), chance.randint(0, 40)
            program += f" FilterNum({key}, {number}, {sign})"
            query += f" {last} {same}{numbers[key]} ?n . FILTER(isNumeric(?n) && ?n {sign} {number})"
        else:
            key, sign, year = chance.choice(sorted(dates)), chance.choice(["=", "<", ">"]), chance.randint(1985, 2020)
            program += f" FilterYear({key}, {year}, {sign})"
            query += f" {last} {same}{dates[key]} ?n . FILTER(xsd:integer(SUBSTR(STR(?n), 1, 4)) {sign} {year})"
    if chance.random() < 0.5:
        return f"{program} Count()", f"SELECT (COUNT(DISTINCT {last}) AS ?a) {{ {query} }}"
    label = f'{last} {words.label} ?a . FILTER(LANG(?a) = "en")'
    return f"{program} QueryName()", f"SELECT DISTINCT ?a {{ {query} {label} }}"


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_answers_are_those_of_rdflib(name: str, serve: Any, tmp_path: Path) -> None:
    words, chance, answered = VOCABULARIES[name], random.Random(name), 0
    for _ in range(by_lane(1, 10, 20)):
        text = data(words, chance)
        graph = rdflib.Graph().parse(data=text, format="turtle")
        _, place = serve(text)
        mapping = tmp_path / "map.toml"
        mapping.write_text(f"preset = [{words.preset!r}]" if words.preset else "")
        with condgraph.open(place, layout="native", mapping=mapping) as there:
            assert isinstance(there, TriplesGraph)
            known = {one.name for one in there.mapping.predicates}
            for _ in range(50):
                program, query = asked(words, chance)
                if any(f"({name}," in program and name not in known for name in (*words.related, *map(local, words.numbers))):
                    continue
                rows: Any = graph.query(SPACES + query)
                expected = sorted(str(row.a) for row in rows)
                assert there.kopl(program).texts == expected, (program, query)
                answered += expected not in ([], ["0"])
    assert answered > by_lane(10, 100, 200)
