"""RDF that stays itself: what was loaded comes out again, by its own IRIs, as rdflib and Oxigraph
read both; what does not is said.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib.compare import to_isomorphic

import condgraph
from condgraph.engine.errors import OptionError, ReadOnlyError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.engine.terms import Property, Terms, loads
from condgraph.engine.values import Quantity, Time
from condgraph.rdflib_store import CondgraphStore
from tests.support.canonical import contents_of
from tests.support.foreign_rdf import DBPEDIA, LITERALS, PREFIXES, WHOLE
from tests.support.lanes import by_lane

BASE = "http://condgraph.example/default/"
LEIPZIG = "http://dbpedia.org/resource/Leipzig"


def loaded(path: Path, text: str, **options: Any) -> tuple[condgraph.Graph, list[str]]:
    path.write_text(PREFIXES + text, encoding="utf-8")
    graph = condgraph.open()
    return graph, [one.message for one in graph.load(path, **options).problems]


def exported(graph: condgraph.Graph, to: str = "rdf", **options: Any) -> str:
    file = io.StringIO()
    graph.export(file, to=to, **options)
    return file.getvalue()


def canonical(text: str | bytes, syntax: Any) -> set[Any]:
    found = ox.Dataset(ox.parse(text if isinstance(text, bytes) else text.encode(), syntax))
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(found)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("options", [{}, {"names": "local"}, {"language": "de"}, {"labels": ["skos:prefLabel", "foaf:name"]}])
def test_every_triple_comes_back(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    graph, _ = loaded(tmp_path / "in.trig", WHOLE[name], **options)
    wanted = canonical(PREFIXES + WHOLE[name], ox.RdfFormat.TRIG)
    assert canonical(exported(graph), ox.RdfFormat.N_QUADS) == wanted
    # Through the export that says everything, and a store on disk.
    graph.export(tmp_path / "all.jsonl")
    with condgraph.open(tmp_path / "store") as kept:
        kept.load(tmp_path / "all.jsonl")
    with condgraph.open(tmp_path / "store", read_only=True) as kept:
        assert canonical(exported(kept), ox.RdfFormat.N_QUADS) == wanted
        kept.export(tmp_path / "layout.nq", to="nquads")
    again = condgraph.open()
    again.load(tmp_path / "layout.nq")
    assert canonical(exported(again), ox.RdfFormat.N_QUADS) == wanted


@pytest.mark.parametrize("name", [name for name in WHOLE if name not in ("star", "graphs")])
def test_rdflib_reads_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", False)
    # Case says nothing in a language tag, and the parser makes it lower case.
    graph, _ = loaded(tmp_path / "in.ttl", WHOLE[name].replace("@en-US", "@en-us").replace("@en-GB", "@en-gb"))
    wanted = to_isomorphic(rdflib.Graph().parse(tmp_path / "in.ttl"))
    assert to_isomorphic(graph.to_rdflib()) == wanted
    store = rdflib.Graph(store=CondgraphStore(graph))
    assert to_isomorphic(store) == wanted
    assert to_isomorphic(rdflib.Graph().parse(data=exported(graph), format="nt")) == wanted


def test_what_is_written_in_two_ways_is_said(tmp_path: Path) -> None:
    text = ':x :q 1, "01"^^xsd:integer , "+1"^^xsd:integer ; :b true , "1"^^xsd:boolean ; :s "a b" , "a  b" ; :t 1, 1.0 .'
    graph, said = loaded(tmp_path / "in.ttl", text)
    lost = canonical(PREFIXES + text, ox.RdfFormat.TURTLE) - canonical(exported(graph), ox.RdfFormat.N_QUADS)
    # One fact of the graph, and every way in which it was written.
    assert not lost
    assert len(said) == 4
    assert all("written in another way" in one for one in said)


def test_each_triple_that_is_not_kept_has_a_warning(tmp_path: Path) -> None:
    text = """
    :stated a rdf:Statement ; rdf:subject :x ; rdf:predicate :p ; rdf:object :y ; :since "1990"@en .
    _:silent a rdf:Statement ; rdf:subject :x ; rdf:predicate :p ; rdf:object :z . """
    _, said = loaded(tmp_path / "in.ttl", text)
    for part in ("only spoken about", "IRI of its own, not kept", "nothing is said", "language or datatype"):
        assert any(part in one for one in said), part


_names = st.sampled_from(["a", "b", "c_d", "e.f", "é", "g%20h", "P31"]).map(lambda name: ox.NamedNode(f"http://x.org/{name}"))
_blank = st.sampled_from([ox.BlankNode("x"), ox.BlankNode("y")])
_told = st.sampled_from(["string", "integer", "decimal", "double", "int", "boolean", "date", "gYear", "dateTime", "anyURI"])
_texts = st.one_of(st.sampled_from(["1", "1.0", "01", "true", "1992", "1992-01-01", "", " a  b", "1e3", "x"]), st.text(max_size=6))
_literals = st.one_of(
    st.builds(
        lambda text, kind: ox.Literal(text, datatype=ox.NamedNode(f"http://www.w3.org/2001/XMLSchema#{kind}")), _texts, _told
    ),
    st.builds(lambda text, tag: ox.Literal(text, language=tag), _texts, st.sampled_from(["en", "de", "en-GB"])),
)
_rdfs = "http://www.w3.org/2000/01/rdf-schema#"
_predicates = st.one_of(
    _names, st.sampled_from([ox.NamedNode(rdflib.RDF.type), ox.NamedNode(_rdfs + "label"), ox.NamedNode(_rdfs + "subClassOf")])
)
_quads = st.lists(
    st.builds(
        ox.Quad,
        st.one_of(_names, _blank),
        _predicates,
        st.one_of(_names, _blank, _literals),
        st.sampled_from([ox.DefaultGraph(), ox.DefaultGraph(), ox.NamedNode("http://x.org/g")]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=by_lane(25, 400, 4_000), deadline=None)
@given(found=_quads, local=st.booleans())
def test_random_quads_come_back_or_are_said(tmp_path_factory: pytest.TempPathFactory, found: list[ox.Quad], local: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "random.nq"
    ox.serialize(sorted(found, key=str), str(path), ox.RdfFormat.N_QUADS)
    graph = condgraph.open()
    report = graph.load(path, names="local" if local else "iri")
    wanted, got = (canonical(text, ox.RdfFormat.N_QUADS) for text in (path.read_bytes(), exported(graph)))
    assert not got - wanted or len(got - wanted) <= len(wanted - got)  # blank nodes may change their labels beside what is lost
    said = sum("written in another way" in one.message for one in report.problems)
    assert len(wanted) - len(got) == said


def test_asked_by_its_own_iris(tmp_path: Path) -> None:
    graph, _ = loaded(tmp_path / "in.ttl", DBPEDIA)
    rows = graph.sparql(f"SELECT ?p ?o {{ <{LEIPZIG}> ?p ?o }}").rows
    assert ("http://dbpedia.org/ontology/country", "http://dbpedia.org/resource/Germany") in [(str(p), str(o)) for p, o in rows]
    assert graph.sparql("SELECT ?n { dbr:Leipzig dbo:populationTotal ?n }").values == [628718]
    assert graph.sparql("SELECT (DATATYPE(?n) AS ?d) { dbr:Leipzig dbo:areaTotal ?n }").texts == [str(rdflib.XSD.double)]
    assert sorted(graph.sparql("SELECT (LANG(?l) AS ?t) { dbr:Leipzig rdfs:label ?l }").texts) == ["de", "en", "it"]
    members = "SELECT ?m { dbr:Leipzig dbo:twin/rdf:rest*/rdf:first ?m }"
    assert len(graph.sparql(members).rows) == 3
    assert sorted(map(str, graph.sparql(members, timeout=20).rows)) == sorted(map(str, graph.sparql(members).rows))
    made = graph.sparql("CONSTRUCT { ?s rdfs:label ?l } WHERE { ?s rdfs:label ?l FILTER(LANG(?l) = 'it') }").rows
    assert [str(one[2]) for one in made] == ["Lipsia"]
    # The graph's own view is there as before, each triple once.
    assert len(graph.sparql("SELECT ?e { ?e <pred:name> 'Leipzig' }").rows) == 1
    for engine in (None, "sparql"):
        assert graph.kopl("Find(Leipzig) Relate(twin, forward) QueryName()", engine=engine).texts == [
            "Houston",
            "Kyiv",
        ]


def test_alternative_labels_find_entities(tmp_path: Path) -> None:
    graph, _ = loaded(tmp_path / "in.ttl", DBPEDIA)
    for name in ("Leipsic", "Lipsia", "City of Leipzig"):
        for engine in (None, "sparql"):
            answer = graph.kopl(f"Find({name}) QueryAttr(populationTotal)", engine=engine)
            assert answer.texts == ["628718"]
            assert answer.warnings == [f"no entity is called '{name}'; it is an alternative label of 'Leipzig'"]
            assert ["populationTotal" in str(fact) for fact in answer.evidence] == [True]
    with pytest.raises(UnknownNameError, match="nearest: 'Leipzig'"):
        graph.kopl("Find(Leipzick) QueryName()")


def test_a_graph_of_ones_own(tmp_path: Path) -> None:
    graph = condgraph.open()
    graph.add(
        [
            Entity("k", "big city", EntityKind.CONCEPT),
            Subclass("k", "place"),
            Entity("l", "Leipzig"),
            Member("l", "k"),
            Statement("l", "part_of", Ref("s")),
            Statement("l", "part of", Ref("t")),
            Statement("l", "post_code", "04109"),
            Statement("l", "area", Quantity(297.8, "km2"), (("point in time", Time.year(2015)),)),
        ],
        source="mine",
    )
    base = "http://example.org/mine/"
    found = rdflib.Graph().parse(data=exported(graph, base=base), format="nt")
    leipzig = rdflib.URIRef(base + "l")
    assert found.value(leipzig, rdflib.RDFS.label) == rdflib.Literal("Leipzig")
    assert (leipzig, rdflib.RDF.type, rdflib.URIRef(base + "k")) in found
    assert found.value(leipzig, rdflib.URIRef(base + "area")) == rdflib.Literal("297.8", datatype=rdflib.XSD.decimal)
    stated = found.value(predicate=rdflib.RDF.predicate, object=rdflib.URIRef(base + "area"))
    assert found.value(stated, rdflib.URIRef(base + "unit")) == rdflib.Literal("km2")
    assert found.value(stated, rdflib.URIRef(base + "point_in_time")).datatype == rdflib.XSD.gYear
    assert to_isomorphic(graph.to_rdflib(base=base)) == to_isomorphic(found)
    with pytest.raises(OptionError, match="is not a base IRI"):
        exported(graph, base="example.org")
    with pytest.raises(OptionError, match="has no base"):
        graph.export(tmp_path / "x.jsonl", base=base)
    # Labels, prefixes and names with underscores where it is asked.
    assert graph.sparql("SELECT ?l { <l> rdfs:label ?l }").texts == ["Leipzig"]
    assert graph.sparql("SELECT ?v { <l> <post_code>/<pred:value> ?v }").texts == ["04109"]
    # A name with a space is what KQA Pro means, and goes before.
    assert str(graph.sparql("SELECT ?v { <l> <part_of> ?v }").rows[0][0]) == BASE + "t"
    assert graph.sparql("BASE <http://x/> SELECT ?v { ?s <post_code> ?v }").rows == []


def test_wikibase_is_asked_as_wikidata_is(tmp_path: Path) -> None:
    path = tmp_path / "wd.txt"
    path.write_text("Q1\tAda\tP54\tteam\tQ2\tRovers\tP580=start\tQ3=1843\nQ1\tAda\tP31\tinstance of\tQ5\thuman\n")
    graph = condgraph.open()
    graph.load(path, format="wikidata")
    assert graph.sparql("SELECT ?l { wd:Q1 wdt:P54/rdfs:label ?l }").texts == ["Rovers"]
    assert graph.sparql("SELECT ?l { wd:Q1 p:P54 [ ps:P54 wd:Q2 ; pq:P580/rdfs:label ?l ] }").texts == ["1843"]
    asked = "SELECT ?l { wd:Q1 ?claim [] . ?property wikibase:claim ?claim ; rdfs:label ?l }"
    assert sorted(graph.sparql(asked).texts) == ["instance of", "team"]
    assert not graph.sparql("ASK { wd:Q1 rdf:type ?c }").truth  # said by wdt:P31


def test_what_wikibase_says_and_is_not_kept_is_said(tmp_path: Path) -> None:
    text = """@prefix wd: <http://www.wikidata.org/entity/> . @prefix wds: <http://www.wikidata.org/entity/statement/> .
    @prefix p: <http://www.wikidata.org/prop/> . @prefix ps: <http://www.wikidata.org/prop/statement/> .
    @prefix psv: <http://www.wikidata.org/prop/statement/value/> . @prefix pq: <http://www.wikidata.org/prop/qualifier/> .
    @prefix wikibase: <http://wikiba.se/ontology#> . @prefix wdv: <http://www.wikidata.org/value/> .
    wd:Q1 p:P1 wds:Q1-a ; p:P2 wds:Q1-b .
    wds:Q1-a a wikibase:Statement ; ps:P1 wd:Q2 ; pq:P5 "x"@en .
    wds:Q1-b a wikibase:Statement ; ps:P2 "+5"^^xsd:decimal ; psv:P2 wdv:q .
    wdv:q a wikibase:QuantityValue ; wikibase:quantityAmount "+5"^^xsd:decimal ; wikibase:quantityUnit wd:Q11573 . """
    graph, said = loaded(tmp_path / "in.ttl", text)
    assert [one for one in said if "language or datatype of a value said about a statement" in one]
    with pytest.warns(UserWarning, match="a unit is written by its name"):
        found = exported(graph)
    # The tag and the IRI of the unit are what these warnings are about.
    assert '<http://www.wikidata.org/prop/qualifier/P5> "x" ' in found
    assert '<http://wikiba.se/ontology#quantityUnit> "Q11573" ' in found


def test_the_store_of_rdflib_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "in.trig"
    path.write_text(PREFIXES + WHOLE["graphs"])
    with condgraph.open(tmp_path / "store", graph="films") as kept:
        kept.load(path)
    store = CondgraphStore()
    data = rdflib.Dataset(store=store)
    assert data.open(f"{tmp_path / 'store'}?graph=films") == rdflib.store.VALID_STORE
    reference = rdflib.Dataset()
    reference.parse(path, format="trig")
    assert len(data) == len(reference)
    for name in ("g", "h"):
        one = rdflib.URIRef(f"http://x.org/a#{name}")
        assert to_isomorphic(data.graph(one)) == to_isomorphic(reference.graph(one))
    # Every kind of pattern gives what rdflib's own store gives.
    triple = next(iter(reference.graph(rdflib.URIRef("http://x.org/a#h"))))
    for known in range(8):
        pattern = tuple(term if known >> at & 1 else None for at, term in enumerate(triple))
        assert len(list(data.triples(pattern))) == len(list(reference.triples(pattern)))
    assert bool(data.query("ASK { GRAPH ?g { ?s ?p ?o } }"))
    one = rdflib.URIRef("x:y")
    for change in (
        lambda: data.add((one, one, one)),
        lambda: data.remove((None, None, None)),
        lambda: data.addN([(one, one, one, data.default_graph)]),
        lambda: data.update("INSERT DATA { <x:a> <x:b> <x:c> }"),
        lambda: data.graph(one),
        lambda: data.remove_graph(rdflib.URIRef("http://x.org/a#g")),
        lambda: store.destroy("x"),
        lambda: CondgraphStore().open(str(tmp_path), create=True),
    ):
        with pytest.raises(ReadOnlyError):
            change()
    assert CondgraphStore().open("nowhere") == rdflib.store.NO_STORE
    with pytest.raises(OptionError, match="open already"):
        store.open(str(tmp_path / "store"))
    found = rdflib.plugin.get("condgraph", rdflib.store.Store) if _registered() else CondgraphStore
    assert found is CondgraphStore


def _registered() -> bool:
    from importlib.metadata import entry_points

    return any(one.name == "condgraph" for one in entry_points(group="rdf.plugins.store"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"predicates": 3, "naming": "x", "apart": [[1]], "texts": [], "entities": 7}',
        '{"predicates": {"p": "no iri", "q": {"iri": "http://x> <y"}, "r": {"iri": "http://x/r", "labels": [["bad", null, "x"]]}}}',
        '{"apart": [[["http://x/l", "no tag"], ["a", 3]]], "entities": "http://x/ y"}',
        "[" * 100_000,
    ],
)
def test_terms_from_anywhere(text: str) -> None:
    terms = loads(text)
    assert set(terms.predicates) <= {"r"}
    assert not terms.entities
    assert terms.naming is None


def test_terms_are_read_back() -> None:
    terms = Terms(
        {
            "p": Property("http://x/p", {"http://x/a": "http://x/b"}, [("http://x/l", "en", "P")], True, True),
            "q": Property("http://x/q"),
        },
        naming=("http://x/l", None),
        apart={"a": None, "b": ("http://x/l", "de")},
        texts={"a": " a "},
        local=True,
        star=True,
        entities="http://x/e/",
    )
    assert loads(terms.dumps()) == terms
    assert json.loads(Terms().dumps()) == {}


REIFIED = """
[] a rdf:Statement ; rdf:subject :a ; rdf:predicate :p ; rdf:object :b ; :since 1990 ; :by :c . :a :p :b .
[] a rdf:Statement ; rdf:subject :a ; rdf:predicate :q ; rdf:object "x"@en ; :since 1991 . :a :q "x"@en . :a :p :c .
"""


def test_qualifiers_are_written_as_reifiers_of_rdf_1_2(tmp_path: Path) -> None:
    graph, _ = loaded(tmp_path / "in.ttl", REIFIED)
    text = exported(graph, "rdf12")
    assert text.count("#reifies> <<(") == 2
    assert "rdf-syntax-ns#Statement" not in text
    assert "#reifies" not in exported(graph)
    (tmp_path / "out.nq").write_text(text)
    again = condgraph.open()
    report = again.load(tmp_path / "out.nq")
    assert not report.problems
    assert contents_of(again).statements.keys() == contents_of(graph).statements.keys()
    # What is RDF 1.2 already is written as it was.
    text = "<http://x/a> <http://x/p> <http://x/b> {| <http://x/since> 1990 |} , <http://x/c> ."
    graph, _ = loaded(tmp_path / "star.ttl", text)
    assert canonical(exported(graph, "rdf12"), ox.RdfFormat.N_QUADS) == canonical(text, ox.RdfFormat.TURTLE)


def test_tables_become_rdf_1_2_as_well(tmp_path: Path) -> None:
    graph = condgraph.open()
    graph.add([Statement("a", "height", Quantity(3, "metre"), (("since", Time.year(1990)), ("by", Ref("c"))))])
    found = list(ox.parse(exported(graph, "rdf12").encode(), ox.RdfFormat.N_QUADS))
    terms = [quad.object for quad in found if quad.predicate.value.endswith("#reifies")]
    assert [str(term.object) for term in terms] == ['"3"^^<http://www.w3.org/2001/XMLSchema#integer>']
    about = {quad.predicate.value.rpartition("/")[2] for quad in found if type(quad.subject) is ox.BlankNode}
    assert {"since", "by", "unit"} <= about


def test_hostile_ids_cannot_write_other_triples(tmp_path: Path) -> None:
    graph = condgraph.open()
    graph.add(
        [
            Statement("http://x/> <y:z> <y:z> .\n<http://x/", "http://a b>", 'say "x"\n.'),
            Statement("_:a b>", "p\u0000", Ref("\ud7ff")),
        ]
    )
    found = list(ox.parse(exported(graph).encode(), ox.RdfFormat.N_QUADS))
    assert all(quad.subject.value.startswith(BASE) or type(quad.subject) is ox.BlankNode for quad in found)
    assert sum(type(quad.object) is ox.Literal and quad.object.value == 'say "x"\n.' for quad in found) == 1


def test_stores_without_terms_go_on(tmp_path: Path) -> None:
    """A store of an earlier version says nothing of what its triples were called."""
    graph, _ = loaded(tmp_path / "in.ttl", LITERALS)
    graph.export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    head = json.loads(lines[0])
    assert all(source.pop("terms") for source in head["sources"])
    (tmp_path / "old.jsonl").write_text("\n".join([json.dumps(head), *lines[1:]]))
    old = condgraph.open()
    old.load(tmp_path / "old.jsonl")
    assert old.sparql("SELECT ?p { <http://x.org/a#x> ?p ?o }").rows == []
    assert "http://x.org/a%23" not in exported(old)
    assert len(exported(old).splitlines()) > 10
