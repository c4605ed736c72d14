"""RDF in all its syntaxes: names, membership, typed literals, graphs, statements about statements,
errors with file and line.
"""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import rdflib
from rdflib.namespace import XSD

import condgraph
from condgraph.engine.errors import FormatError, LoadError, OptionError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Statement, Subclass
from condgraph.engine.values import Quantity, Time
from condgraph.loaders.base import OnError, Reading
from condgraph.loaders.files import read_head
from condgraph.loaders.rdf.load import FORMAT, local_name

PREFIXES = """@prefix : <http://x/> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
X = "http://x/"


class Loaded(list[Item]):
    """Items of one load, with its reading and its statements without rows."""

    reading: Reading

    @property
    def facts(self) -> list[tuple[Any, ...]]:
        return [(one.subject, one.predicate, one.object, one.qualifiers) for one in self if isinstance(one, Statement)]


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def read(text: str | bytes, name: str = "g.ttl", on_error: OnError = "raise", **options: Any) -> Loaded:
        path = tmp_path / name
        if isinstance(text, str):
            text = (PREFIXES + text if name.endswith((".ttl", ".trig")) else text).encode()
        path.write_bytes(text)
        reading = Reading(Source("g", str(path)), on_error)
        FORMAT.check_options(options)
        loaded = Loaded(item for item in FORMAT.read(path, reading, options) if not isinstance(item, Source))
        loaded.reading = reading
        return loaded

    return read


def test_relations_names_and_membership(load: Any) -> None:
    found = load(
        ":a :knows :b . :a a :Cat . :Cat rdfs:subClassOf :Animal . :a rdfs:label 'Tom' ."
        ":Cat rdfs:label 'cat'@en . :Dog a owl:Class ."
    )
    assert found == [
        Statement(X + "a", "knows", Ref(X + "b"), (), 1),
        Entity(X + "Cat", "cat", EntityKind.CONCEPT),
        Member(X + "a", X + "Cat", 2),
        Entity(X + "Animal", X + "Animal", EntityKind.CONCEPT),
        Subclass(X + "Cat", X + "Animal", 3),
        Entity(X + "a", "Tom"),
        Entity(X + "Cat", "cat"),
        Entity("http://www.w3.org/2002/07/owl#Class", "http://www.w3.org/2002/07/owl#Class", EntityKind.CONCEPT),
        Entity(X + "Dog", X + "Dog", EntityKind.CONCEPT),
        Member(X + "Dog", "http://www.w3.org/2002/07/owl#Class", 6),
    ]
    assert found.reading.problems == []


def test_the_preferred_label_is_the_name_and_others_are_facts(load: Any) -> None:
    text = ":a rdfs:label 'A', 'Ah'@de, 'An A'@en . :a skos:prefLabel 'pref'@en ."
    named = load(text)
    assert Entity(X + "a", "An A") in named
    assert named.facts == [
        (X + "a", "label", "A", ()),
        (X + "a", "label", "Ah", (("language", "de"),)),
        (X + "a", "prefLabel", "pref", (("language", "en"),)),
    ]
    assert Entity(X + "a", "Ah") in load(text, language="de")
    assert Entity(X + "a", "A") in load(text, language="fr")
    assert Entity(X + "a", "pref") in load(text, labels=["skos:prefLabel", "rdfs:label"])
    assert Entity(X + "a", "pref") in load(text, labels="http://www.w3.org/2004/02/skos/core#prefLabel")


def test_predicates_are_named_by_their_labels_and_apart(load: Any) -> None:
    found = load(":a :p :b . :a <http://y/q> :b . :a <http://z/q> :b . :a <http://y/type> :b . :p rdfs:label 'is next to' .")
    assert [fact[1] for fact in found.facts] == ["is next to", "q", "http://z/q", "http://y/type"]
    assert not any(isinstance(item, Entity) for item in found)
    assert [problem.row for problem in found.reading.problems] == [3, 4]
    described = load(":a :p :b . :p rdfs:label 'next to' . :p :inverseOf :q .")
    assert Entity(X + "p", "next to") in described


def test_local_names(load: Any) -> None:
    assert [local_name(iri) for iri in ("http://x/a#b", "urn:isbn:1", "http://x/")] == ["b", "1", "http://x/"]
    found = load(":a :p <http://y/b#c> . :b rdfs:label 'Bee' .", names="local")
    assert {item.name for item in found if isinstance(item, Entity)} == {"a", "c", "Bee"}


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ('VERSION "1.2" :bert :worksFor :acme {| :role :chef |} .', "turtle"),
        ("<< :bert :worksFor :acme >> :role :chef . :bert :worksFor :acme .", "turtle"),
        ("[] rdf:subject :bert ; rdf:predicate :worksFor ; rdf:object :acme ; a rdf:Statement ; :role :chef .", "turtle"),
        (":bert :worksFor :acme ~ :r1 . :r1 :role :chef .", "turtle"),
        ("GRAPH :chef { :bert :worksFor :acme . }", "trig"),
        ("GRAPH :chef { :bert :worksFor :acme . :acme a :Firm }", "trig"),
        ("GRAPH :chef { :bert :worksFor (:acme :acme2) . }", "trig"),
    ],
)
def test_local_names_of_what_is_only_said_about_statements(load: Any, text: str, syntax: str) -> None:
    """A node of an annotation, or the name of a graph, has a name as any other."""
    found = load(text, names="local", syntax=syntax)
    names = {item.id: item.name for item in found if isinstance(item, Entity)}
    assert names[X + "chef"] == "chef"
    assert names[X + "bert"] == "bert"
    refs = {value.id for item in found if isinstance(item, Statement) for _, value in item.qualifiers if isinstance(value, Ref)}
    assert X + "chef" in refs
    assert refs <= names.keys()
    assert not any(isinstance(item, Entity) and item.name == X + "chef" for item in load(text, syntax=syntax))


def test_a_label_about_which_something_is_said_is_a_name(load: Any) -> None:
    found = load('VERSION "1.2" :a rdfs:label "Ann" {| :source :register |} . :a :knows :b .')
    assert [item.name for item in found if isinstance(item, Entity) and item.id == X + "a"] == ["Ann"]
    assert found.facts == [(X + "a", "knows", Ref(X + "b"), ()), (X + "a", "label", "Ann", (("source", Ref(X + "register")),))]


@pytest.mark.parametrize(
    ("literal", "value", "qualifiers", "raw", "warned"),
    [
        ("12", Quantity(12), (), None, False),
        ("1.50", Quantity(1.5), (), "1.50", False),
        ("1.5e3", Quantity(1500.0), (), "1.5e3", False),
        ("'007'^^xsd:unsignedByte", Quantity(7), (), "007", False),
        ("0.1000000000000000055511151231257827", Quantity(Decimal("0.1000000000000000055511151231257827")), (), None, False),
        ("true", "true", (), None, False),
        ("'0'^^xsd:boolean", "false", (), "0", False),
        ("'  two\\n words'", "two words", (), "  two\n words", False),
        ("'chat'@fr", "chat", (("language", "fr"),), None, False),
        ("'2001-10-26'^^xsd:date", Time.day(2001, 10, 26), (), None, False),
        ("'2001-10-26Z'^^xsd:date", Time.day(2001, 10, 26), (), "2001-10-26Z", False),
        ("'2001-10-26+02:00'^^xsd:date", Time.day(2001, 10, 26), (), "2001-10-26+02:00", True),
        ("'-0044'^^xsd:gYear", Time.year(-44), (), "-0044", False),
        ("'2001-10'^^xsd:gYearMonth", Time.month(2001, 10), (), None, False),
        ("'2001-10-26T21:32:52'^^xsd:dateTime", Time.second(2001, 10, 26, 21, 32, 52), (), None, False),
        ("'2001-10-26T21:32:52.5Z'^^xsd:dateTime", Time.second(2001, 10, 26, 21, 32, 52), (), "2001-10-26T21:32:52.5Z", True),
        (
            "'2001-10-26T21:32:52+02:00'^^xsd:dateTime",
            Time.second(2001, 10, 26, 19, 32, 52),
            (),
            "2001-10-26T21:32:52+02:00",
            False,
        ),
        ("'2001-02-30'^^xsd:date", "2001-02-30", (("datatype", "http://www.w3.org/2001/XMLSchema#date"),), None, True),
        ("'2001'^^xsd:date", "2001", (("datatype", "http://www.w3.org/2001/XMLSchema#date"),), None, True),
        ("'1.5'^^xsd:integer", "1.5", (("datatype", "http://www.w3.org/2001/XMLSchema#integer"),), None, True),
        ("'1e3'^^xsd:decimal", "1e3", (("datatype", "http://www.w3.org/2001/XMLSchema#decimal"),), None, True),
        ("'INF'^^xsd:double", "INF", (("datatype", "http://www.w3.org/2001/XMLSchema#double"),), None, True),
        ("'maybe'^^xsd:boolean", "maybe", (("datatype", "http://www.w3.org/2001/XMLSchema#boolean"),), None, True),
        ("'P1Y'^^xsd:duration", Quantity(12, "month"), (("datatype", str(XSD.duration)),), "P1Y", True),
        ("'PT1H'^^xsd:dayTimeDuration", Quantity(3600, "second"), (("datatype", str(XSD.dayTimeDuration)),), "PT1H", True),
        ("'P1M2D'^^xsd:duration", "P1M2D", (("datatype", str(XSD.duration)),), None, False),
        ("'x'^^:own", "x", (("datatype", "http://x/own"),), None, False),
    ],
)
def test_literals(load: Any, literal: str, value: Any, qualifiers: Any, raw: str | None, warned: bool) -> None:
    found = load(f":a :p {literal} .")
    assert repr(found) == repr([Statement(X + "a", "p", value, qualifiers, 1, raw)])
    assert [(one.field, one.skipped) for one in found.reading.problems] == ([("p", False)] if warned else [])


def test_blank_nodes_are_scoped_and_the_same_each_time(load: Any) -> None:
    text = ":a :p [ :q 1 ] . _:x :p _:x . :a :list (1 2) ."
    found = load(text)
    assert found == load(text)
    assert (X + "a", "p", Ref("_:g/.1"), ()) in found.facts
    assert ("_:g/x", "p", Ref("_:g/x"), ()) in found.facts


def test_lists_are_their_members_in_order(load: Any) -> None:
    found = load(":a :list (1 'two' :b 1) , (:c) ; :other (:b) ; :none () .")
    place = [(("list position", Quantity(n)), ("list", Quantity(1))) for n in (1, 2, 3, 4)]
    assert found.facts == [
        (X + "a", "list", Quantity(1), place[0]),
        (X + "a", "list", "two", place[1]),
        (X + "a", "list", Ref(X + "b"), place[2]),
        (X + "a", "list", Quantity(1), place[3]),
        (X + "a", "list", Ref(X + "c"), (("list position", Quantity(1)), ("list", Quantity(2)))),
        (X + "a", "other", Ref(X + "b"), (("list position", Quantity(1)),)),
        (X + "a", "none", Ref(str(rdflib.RDF.nil)), ()),
    ]
    assert found.reading.problems == []


@pytest.mark.parametrize(
    "text",
    [
        ":a :p (1 (2)) .",  # a list in a list
        ":a :p (1 ()) .",
        ":a :p _:l . :b :p _:l . _:l rdf:first 1 ; rdf:rest () .",  # two that share it
        "_:l rdf:first 1 ; rdf:rest () .",  # one that nobody names
        ":a :p :l . :l rdf:first 1 ; rdf:rest () .",  # a name of its own
        ":a :p _:l . _:l rdf:first 1 ; rdf:rest () ; :note 'x' .",  # something else is said
        ":a :p _:l . _:l rdf:first 1, 2 ; rdf:rest () .",
        ":a :p _:l . _:l rdf:first 1 .",
        ":a :p _:l . _:l rdf:first 1 ; rdf:rest _:l .",
        ":a :p _:l . _:l rdf:first 1 ; rdf:rest _:m . _:m rdf:first 2 ; rdf:rest _:m .",
        ":a :p _:m . :b :p _:n . _:m rdf:first 1 ; rdf:rest _:o . _:n rdf:first 1 ; rdf:rest _:o . _:o rdf:first 1 ; rdf:rest () .",
        ":a a (:b) .",
        "<< :a :p :b >> :in (1 2) . :a :p :b .",
    ],
)
def test_other_chains_stay_as_they_are(load: Any, text: str) -> None:
    found = load(text)
    assert not any(key == "list position" for fact in found.facts for key, _ in fact[3])
    assert any(fact[1] in ("first", "rest") for fact in found.facts)
    assert any("kept as their nodes" in one.message for one in found.reading.problems)


def test_named_graphs_are_qualifiers(load: Any) -> None:
    found = load(":g { :a :p :b . :a a :K . :a rdfs:label 'A' } :a :p :b .", "g.trig")
    graph = (("graph", Ref(X + "g")),)
    assert found.facts == [
        (X + "a", "p", Ref(X + "b"), graph),
        (X + "a", "type", Ref(X + "K"), graph),
        (X + "a", "label", "A", graph),
        (X + "a", "p", Ref(X + "b"), ()),
    ]
    assert Member(X + "a", X + "K", 2) in found
    assert Entity(X + "a", "A") in found


def test_annotations_become_qualifiers(load: Any) -> None:
    found = load(":a :p :b {| :since 1990 ; :by :c |} . :a :p :c . :d :p :e ~ :r . :r :since 1991 .")
    assert found.facts == [
        (X + "a", "p", Ref(X + "c"), ()),
        (X + "a", "p", Ref(X + "b"), (("since", Quantity(1990)), ("by", Ref(X + "c")))),
        (X + "d", "p", Ref(X + "e"), (("since", Quantity(1991)),)),
    ]
    assert [one.message for one in found.reading.problems] == ["1 statement has an IRI of its own, not kept"]


def test_what_is_only_spoken_about_is_reported(load: Any) -> None:
    found = load("<< :a :p :b >> :since 1990 .")
    assert found.facts == [(X + "a", "p", Ref(X + "b"), (("since", Quantity(1990)),))]
    assert "1 statement is only spoken about" in found.reading.problems[0].message


def test_rdf_star(load: Any) -> None:
    text = '<http://x/a> <http://x/p> <http://x/b> .\n<< <http://x/a> <http://x/p> <http://x/b> >> <http://x/since> "1990" .\n'
    for name in ("g.nt", "g.data"):
        found = load(text, name)
        assert found.facts == [(X + "a", "p", Ref(X + "b"), (("since", "1990"),))]
        assert found.reading.problems == []
    with pytest.raises(LoadError, match=r'row 2: .*syntax="turtle"'):
        load(text, "g.nt", syntax="ntriples")


def test_classical_reification(load: Any) -> None:
    text = "_:s a rdf:Statement ; rdf:subject :a ; rdf:predicate :p ; rdf:object 7 ; :since 1990 . :a :p 7 ."
    found = load(text)
    assert found.facts == [(X + "a", "p", Quantity(7), (("since", Quantity(1990)),))]
    assert found.reading.problems == []
    typed = load("_:s a rdf:Statement ; rdf:subject :a ; rdf:predicate rdf:type ; rdf:object :K ; :since 1990 . :a a :K .")
    assert typed.facts == [(X + "a", "type", Ref(X + "K"), (("since", Quantity(1990)),))]
    assert sum(isinstance(item, Member) for item in typed) == 1
    half = load("_:s a rdf:Statement ; rdf:subject :a ; rdf:predicate :p .")
    assert ("_:g/s", "subject", Ref(X + "a"), ()) in half.facts
    assert "not one node for each" in half.reading.problems[0].message


def test_annotated_axioms_of_owl(load: Any) -> None:
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> . "
    ends = "owl:annotatedSource :a ; owl:annotatedProperty :p ; owl:annotatedTarget 7"
    found = load(f"{owl} _:s a owl:Axiom ; {ends} ; :since 1990 . :a :p 7 .")
    assert found.facts == [(X + "a", "p", Quantity(7), (("since", Quantity(1990)),))]
    assert [one.message for one in found.reading.problems] == [
        "annotated axioms (owl:Axiom) are statements with qualifiers; exported RDF has rdf:Statement"
    ]
    half = load(f"{owl} _:s a owl:Axiom ; owl:annotatedSource :a ; owl:annotatedProperty :p .")
    assert ("_:g/s", "annotatedSource", Ref(X + "a"), ()) in half.facts
    assert not any(predicate == "subject" for _, predicate, *_ in half.facts)


def test_triple_terms_elsewhere_are_bad(load: Any) -> None:
    text = ":bob :says <<( :a :p :b )>> . :a :p :c ."
    with pytest.raises(LoadError, match="triple term"):
        load(text)
    found = load(text, on_error="skip")
    assert found.facts == [(X + "a", "p", Ref(X + "c"), ())]
    assert found.reading.skipped == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.nt", "<http://x/a> <http://x/p> <http://x/b> .\n"),
        ("g.nq", "<http://x/a> <http://x/p> <http://x/b> .\n"),
        ("g.txt", "<http://x/a> <http://x/p> <http://x/b> .\n"),
        ("g.data", "PREFIX : <http://x/>\n:a :p :b .\n"),
        ("g.n3", "@prefix : <http://x/> .\n:a :p :b .\n"),
        (
            "g.rdf",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x/">'
            '<rdf:Description rdf:about="http://x/a"><p rdf:resource="http://x/b"/></rdf:Description></rdf:RDF>',
        ),
        ("g.json", '{"@context": {"x": "http://x/"}, "@id": "x:a", "x:p": {"@id": "x:b"}}'),
    ],
)
def test_syntaxes_are_told_by_content(load: Any, tmp_path: Path, name: str, text: str) -> None:
    assert load(text, name) == [Statement(X + "a", "p", Ref(X + "b"), (), 1)]
    path = tmp_path / name
    assert FORMAT.sniff(path, read_head(path)) >= 90
    packed = load(gzip.compress(text.encode()), name + ".gz")
    assert packed == [Statement(X + "a", "p", Ref(X + "b"), (), 1)]


def test_rows_of_n_triples_are_lines_and_bad_lines_cost_only_themselves(load: Any) -> None:
    lines = ["# about", "<http://x/a> <http://x/p> <http://x/b> .", "<http://x/a> nonsense .", "", "<http://x/a> <http://x/p> 'x"]
    text = "\n".join([*lines, "<http://x/a> <http://x/p> <http://x/c> .", ""])
    with pytest.raises(LoadError) as caught:
        load(text, "g.nt")
    assert (Path(str(caught.value.file)).name, caught.value.row) == ("g.nt", 3)
    found = load(text, "g.nt", "skip")
    assert [item.row for item in found if isinstance(item, Statement)] == [2, 6]
    assert [one.row for one in found.reading.problems if one.skipped] == [3, 5]


def test_syntax_errors_have_file_and_line(load: Any) -> None:
    text = ":a :p :b .\n:c :p ; .\n:d :p :e ."
    with pytest.raises(LoadError, match=r"g\.ttl, row 8: syntax error"):
        load(text)
    found = load(text, on_error="skip")
    assert [fact[0] for fact in found.facts] == [X + "a", X + "d"]
    assert [one.row for one in found.reading.problems] == [8]
    with pytest.raises(LoadError, match="syntax error"):
        load("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><p></rdf:RDF>", "g.rdf", "skip")


def test_relative_iris_need_a_base(load: Any) -> None:
    with pytest.raises(LoadError, match="base="):
        load(":a :p <b> .")
    assert load(":a :p <b> .", base="http://y/").facts == [(X + "a", "p", Ref("http://y/b"), ())]
    with pytest.raises(OptionError, match="not an absolute IRI"):
        load(":a :p <b> .", base="y")


@pytest.mark.parametrize(
    "options", [{"syntax": "turtel"}, {"names": "label"}, {"labels": 3}, {"language": 3}, {"base": 3}, {"lang": "en"}]
)
def test_wrong_options(load: Any, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        load(":a :p :b .", **options)


def test_what_is_no_rdf(load: Any) -> None:
    with pytest.raises(FormatError, match="syntax="):
        load("a,b\n1,2\n", "g.csv")
    assert "no triples" in load("", "g.ttl").reading.problems[0].message
    with pytest.raises(LoadError, match="no such file"):
        list(FORMAT.read("nowhere.ttl", Reading(Source("g")), {}))


def test_rdflib_graphs() -> None:
    graph = rdflib.Graph()
    graph.parse(data=PREFIXES + ":a :p :b .", format="turtle")
    assert FORMAT.claims(graph)
    assert not FORMAT.claims({})
    assert list(FORMAT.read(graph, Reading(Source("g")), {}))[:-1] == [Statement(X + "a", "p", Ref(X + "b"), (), 1)]
    dataset = rdflib.Dataset()
    dataset.parse(data=PREFIXES + ":g { :a :p :b }", format="trig")
    assert list(FORMAT.read(dataset, Reading(Source("g")), {}))[:-1] == [
        Statement(X + "a", "p", Ref(X + "b"), (("graph", Ref(X + "g")),), 1)
    ]


def test_as_many_triples_as_rdflib_reads(data: Path) -> None:
    """Every triple of the W3C suite's Turtle files is accounted for: a statement, a membership, or
    a name.
    """
    counted = 0
    for path in sorted((data / "w3c_sparql").rglob("data*.ttl"))[:60]:
        graph = rdflib.Graph()
        graph.parse(path, publicID="http://base/")
        reading = Reading(Source("g", str(path)))
        items = list(FORMAT.read(path, reading, {"base": "http://base/"}))
        labels = {(s, o) for s, o in graph.subject_objects(rdflib.RDFS.label)}
        facts = {(type(item), repr(item)[: repr(item).rfind("row=")]) for item in items if not isinstance(item, (Entity, Source))}
        # A list that is read as its members is a fact for two triples and more.
        chains = sum(len(list(graph.triples((None, part, None)))) for part in (rdflib.RDF.first, rdflib.RDF.rest))
        assert len(graph) - len(labels) - chains <= len(facts) <= len(graph)
        counted += len(graph)
    assert counted > 100


@pytest.mark.parametrize("language", ["kopl", "logic"])
def test_who_asks_by_an_iri_is_told_the_name(tmp_path: Path, language: str) -> None:
    (tmp_path / "a.ttl").write_text(
        '@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n'
        ':a rdfs:label "Alpha" ; :p :ab, :ac, :ad, :ae, :af .', encoding="utf-8"
    )  # fmt: skip
    graph = condgraph.open()
    graph.load(tmp_path / "a.ttl")
    text = {"kopl": "Find(http://e/a) QueryName()", "logic": '?x : p("http://e/a", ?x)'}[language]
    with pytest.raises(UnknownNameError) as told:
        graph.query(text)
    assert told.value.candidates[0] == "Alpha"
    assert "id" in str(told.value.hint)


def test_singleton_properties(tmp_path: Path) -> None:
    """The one triple of a singleton property is a statement of the property that it stands for, wherever the link stands."""
    (tmp_path / "single.ttl").write_text("""
@prefix : <http://x.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
:k1 :since 1990 . :ann rdfs:label "Ann" ; :k1 :bob ; :k2 :eve, :bob ; :k3 "three" .
:bob rdfs:label "Bob" . :knows rdfs:label "is a friend of" .
:k1 rdf:singletonPropertyOf :knows . :k2 rdf:singletonPropertyOf :knows . :k4 rdf:singletonPropertyOf :knows .
:k3 rdf:singletonPropertyOf :says ; :since 2001 .
""")
    graph = condgraph.open()
    report = graph.load(tmp_path / "single.ttl")
    answer = graph.kopl("Find(Ann) Relate(is a friend of, forward) QFilterNum(since, 1990, =) QueryName()")
    assert answer.texts == ["Bob"]
    assert [str(item).partition("  [")[0] for item in answer.evidence] == ["Ann | is a friend of | Bob (since: 1990)"]
    assert graph.kopl("Find(Ann) QueryAttrQualifier(says, three, since)").texts == ["2001"]
    # Several triples, or none: the property stays what it is.
    assert sorted(graph.kopl("Find(Ann) Relate(k2, forward) QueryName()").texts) == ["Bob", "http://x.org/eve"]
    assert any("2 singleton properties have no triple or several" in str(one) for one in report.problems), report.problems
