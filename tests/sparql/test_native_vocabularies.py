"""Random programs over triples in four public vocabularies, asked where they are: the answers are those of rdflib, by SPARQL
queries that are written here.
"""

from __future__ import annotations

import random
from pathlib import Path
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
"""

#: Declared with each query: rdflib knows some of these prefixes otherwise.
SPACES = PREFIXES.replace("@prefix", "\nPREFIX").replace(" .", "")


class Vocabulary(NamedTuple):
    """Terms of a vocabulary: what gives names, its classes, its relations, and its attributes with numbers and with dates."""

    label: str
    classes: tuple[str, ...]
    relations: tuple[str, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]


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
}  # fmt: skip


def data(words: Vocabulary, chance: random.Random) -> str:
    """Triples: nodes with one name or two of other languages, several classes, links to each other and to blank nodes."""
    lines, classes = [PREFIXES], words.classes
    if chance.random() < 0.5:
        lines.append(f"{classes[-1]} rdfs:subClassOf {classes[0]} .")
    for at in range(25):
        node = f":n{at}"
        lines += [f"{node} a {one} ." for one in chance.sample(classes, chance.randint(1, 2))]
        lines.append(f'{node} {words.label} "thing {at}"@en .')
        if chance.random() < 0.3:
            lines.append(f'{node} {words.label} "Ding {at}"@de .')
        for relation in words.relations:
            lines += [f"{node} {relation} :n{chance.randrange(25)} ." for _ in range(chance.randint(0, 2))]
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
    member = f"?x0 a/rdfs:subClassOf* {concept} . FILTER NOT EXISTS {{ ?any a ?x0 }}"
    program, query = chance.choice(
        [
            (f"Find({name})", f'?x0 {words.label} "{name}"@en .'),
            (f"FindAll() FilterConcept({iri})", member),
            (f"Find({name}) FilterConcept({iri})", f'?x0 {words.label} "{name}"@en . {member}'),
        ]
    )
    last = "?x0"
    for at in range(1, chance.randint(1, 3)):
        relation, new = chance.choice(words.relations), f"?x{at}"
        forward = chance.random() < 0.5
        program += f" Relate({local(relation)}, {'forward' if forward else 'backward'})"
        query += f" {last} {relation} {new} ." if forward else f" {new} {relation} {last} ."
        last = new
    if chance.random() < 0.5:
        if chance.random() < 0.5:
            key, sign, number = chance.choice(words.numbers), chance.choice(["=", "!=", "<", ">"]), chance.randint(0, 40)
            program += f" FilterNum({local(key)}, {number}, {sign})"
            query += f" {last} {key} ?n . FILTER(isNumeric(?n) && ?n {sign} {number})"
        else:
            key, sign, year = chance.choice(words.dates), chance.choice(["=", "<", ">"]), chance.randint(1985, 2020)
            program += f" FilterYear({local(key)}, {year}, {sign})"
            query += f" {last} {key} ?n . FILTER(xsd:integer(SUBSTR(STR(?n), 1, 4)) {sign} {year})"
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
        with condgraph.open(place, layout="native") as there:
            assert isinstance(there, TriplesGraph)
            known = {one.name for one in there.mapping.predicates}
            for _ in range(50):
                program, query = asked(words, chance)
                if any(f"({local(term)}," in program and local(term) not in known for term in (*words.relations, *words.numbers)):
                    continue
                rows: Any = graph.query(SPACES + query)
                expected = sorted(str(row.a) for row in rows)
                assert there.kopl(program).texts == expected, (program, query)
                answered += expected not in ([], ["0"])
    assert answered > by_lane(10, 100, 200)
