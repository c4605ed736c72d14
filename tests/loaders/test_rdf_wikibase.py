"""Wikidata's statement model: statements, qualifiers, ranks, full values, truthy claims, and what
is left out said aloud.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.facts import EntityKind, Member, Ref, Source, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.loaders.base import Reading
from condgraph.loaders.rdf.load import FORMAT
from condgraph.loaders.rdf.wikibase import full_time

PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix s: <http://www.wikidata.org/entity/statement/> .
@prefix v: <http://www.wikidata.org/value/> .
@prefix ref: <http://www.wikidata.org/reference/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wdtn: <http://www.wikidata.org/prop/direct-normalized/> .
@prefix p: <http://www.wikidata.org/prop/> .
@prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix psv: <http://www.wikidata.org/prop/statement/value/> .
@prefix pq: <http://www.wikidata.org/prop/qualifier/> .
@prefix pqv: <http://www.wikidata.org/prop/qualifier/value/> .
@prefix pr: <http://www.wikidata.org/prop/reference/> .
@prefix wdno: <http://www.wikidata.org/prop/novalue/> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
WD = "http://www.wikidata.org/entity/"

ADAMS = """
wd:Q42 a wikibase:Item ; rdfs:label "Douglas Adams"@en ;
    wdt:P31 wd:Q5 ; wdt:P69 wd:Q691283 ; wdt:P2048 "+1.96"^^xsd:decimal ; wdt:P40 wd:Q14623683 ;
    p:P31 s:q42-a ; p:P69 s:q42-b, s:q42-c ; p:P2048 s:q42-d ; p:P569 s:q42-e ; p:P22 s:q42-f ; p:P1971 s:q42-g .
wd:Q5 rdfs:label "human"@en .
wd:Q691283 rdfs:label "St John's College"@en .
wd:Q11573 rdfs:label "metre"@en .
wd:P69 a wikibase:Property ; rdfs:label "educated at"@en ; wikibase:claim p:P69 ; wikibase:directClaim wdt:P69 ;
    wikibase:statementProperty ps:P69 .
wd:P580 rdfs:label "start time"@en .
wd:P582 rdfs:label "end time"@en .
wd:P2048 rdfs:label "height"@en .
wd:P31 rdfs:label "instance of"@en .
wd:P569 rdfs:label "date of birth"@en .
wd:P22 rdfs:label "father"@en .

s:q42-a a wikibase:Statement, wikibase:BestRank ; wikibase:rank wikibase:NormalRank ; ps:P31 wd:Q5 .
s:q42-b a wikibase:Statement, wikibase:BestRank ; wikibase:rank wikibase:PreferredRank ; ps:P69 wd:Q691283 ;
    pq:P580 "1971-01-01T00:00:00Z"^^xsd:dateTime ; pqv:P580 v:1971 ;
    pq:P582 "1974-01-01T00:00:00Z"^^xsd:dateTime, "1975-06-01T00:00:00Z"^^xsd:dateTime ; pqv:P582 v:1974, v:1975 ;
    prov:wasDerivedFrom ref:r .
s:q42-c a wikibase:Statement ; wikibase:rank wikibase:DeprecatedRank ; ps:P69 wd:Q999 .
s:q42-d a wikibase:Statement ; wikibase:rank wikibase:NormalRank ; ps:P2048 "+1.96"^^xsd:decimal ; psv:P2048 v:196 .
s:q42-e a wikibase:Statement ; wikibase:rank wikibase:NormalRank ; ps:P569 "1952-03-11T00:00:00Z"^^xsd:dateTime ; psv:P569 v:birth .
s:q42-f a wikibase:Statement ; wikibase:rank wikibase:NormalRank ; ps:P22 _:somebody .
s:q42-g a wikibase:Statement, wdno:P1971 ; wikibase:rank wikibase:NormalRank .

v:1971 a wikibase:TimeValue ; wikibase:timeValue "1971-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 ;
    wikibase:timeTimezone 0 ; wikibase:timeCalendarModel wd:Q1985727 .
v:1974 a wikibase:TimeValue ; wikibase:timeValue "1974-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 9 .
v:1975 a wikibase:TimeValue ; wikibase:timeValue "1975-06-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 10 .
v:birth a wikibase:TimeValue ; wikibase:timeValue "1952-03-11T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 .
v:196 a wikibase:QuantityValue ; wikibase:quantityAmount "+1.96"^^xsd:decimal ; wikibase:quantityUnit wd:Q11573 .
ref:r a wikibase:Reference ; pr:P248 wd:Q5375741 .
"""


def load(path: Path, text: str) -> tuple[list[Any], list[str]]:
    path.write_text(PREFIXES + text)
    reading = Reading(Source("wd", str(path)))
    return list(FORMAT.read(path, reading, {})), [problem.message for problem in reading.problems]


def facts(items: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (one.subject.removeprefix(WD), one.predicate, one.object, one.qualifiers) for one in items if isinstance(one, Statement)
    ]


def test_statements_with_qualifiers_and_full_values(tmp_path: Path) -> None:
    items, warnings = load(tmp_path / "wd.ttl", ADAMS)
    assert facts(items) == [
        ("Q42", "P40", Ref(WD + "Q14623683"), ()),
        ("Q42", "instance of", Ref(WD + "Q5"), ()),
        (
            "Q42",
            "educated at",
            Ref(WD + "Q691283"),
            (("start time", Time.year(1971)), ("end time", Time.year(1974)), ("end time", Time.month(1975, 6))),
        ),
        ("Q42", "height", Quantity(1.96, "metre"), ()),
        ("Q42", "date of birth", Time.day(1952, 3, 11), ()),
        ("Q42", "father", UNKNOWN, ()),
    ]
    assert Member(WD + "Q42", WD + "Q5", 7) in [Member(one.entity, one.concept, 7) for one in items if isinstance(one, Member)]
    assert not any("statement/" in getattr(one, "id", "") or "value/" in getattr(one, "id", "") for one in items)
    reported = "\n".join(warnings)
    assert "1 statement is deprecated and is left out" in reported
    assert '1 statement says "no value" and is left out' in reported
    assert "1 statement has the preferred rank" in reported
    assert "1 reference" in reported
    assert len(warnings) == 4


def test_no_value_of_a_qualifier(tmp_path: Path) -> None:
    """A class of the node says "no value" of the statement's property, or of a qualifier's."""
    text = """
    wd:Q7 p:P39 s:now, s:once, s:never, s:of-itself ; p:P40 s:childless ; a wdno:P570 .
    s:now a wikibase:Statement, wdno:P582 ; wikibase:rank wikibase:NormalRank ; ps:P39 wd:Q30185 ; pq:P580 wd:Q2 .
    s:once a wdno:P582, wdno:P580 ; ps:P39 wd:Q30185 ; prov:wasDerivedFrom ref:x .
    s:never a wikibase:Statement, wdno:P39, wdno:P582 .
    s:of-itself a wdno:P39 ; ps:P39 wd:Q30186 .
    s:childless a wdno:P40 ; wikibase:rank wikibase:DeprecatedRank .
    ref:x a wikibase:Reference, wdno:P854 .
    wd:Q9 a wd:Q5 .
    s:half a wdno:P39 ; pq:P1 wd:Q2 .
    """
    items, warnings = load(tmp_path / "wd.ttl", text)
    assert facts(items) == [
        ("http://www.wikidata.org/entity/statement/half".removeprefix(WD), "P1", Ref(WD + "Q2"), ()),
        ("Q7", "P39", Ref(WD + "Q30185"), (("P580", Ref(WD + "Q2")),)),
        ("Q7", "P39", Ref(WD + "Q30185"), ()),
        ("Q7", "P39", Ref(WD + "Q30186"), ()),
    ]
    members = [(one.entity.removeprefix(WD), one.concept) for one in items if isinstance(one, Member)]
    assert members == [("Q9", WD + "Q5"), ("statement/half", "http://www.wikidata.org/prop/novalue/P39")]
    reported = "\n".join(warnings)
    assert '5 qualifiers say "no value" and are left out' in reported
    assert '1 direct claim says "no value" and is left out' in reported
    assert '1 statement says "no value" and is left out' in reported
    assert "1 statement is deprecated and is left out" in reported


def test_asked_by_names(tmp_path: Path) -> None:
    path = tmp_path / "wd.ttl"
    path.write_text(PREFIXES + ADAMS)
    graph = condgraph.open()
    graph.load(path)
    assert graph.kopl("Find(Douglas Adams) QueryAttr(height)").texts == ["1.96 metre"]
    assert graph.kopl("FindAll() FilterConcept(human) QueryName()").texts == ["Douglas Adams"]
    program = "Find(Douglas Adams) Find(St John's College) QueryRelationQualifier(educated at, start time)"
    assert graph.kopl(program).texts == ["1971"]


def test_truthy_claims_alone(tmp_path: Path) -> None:
    text = (
        'wd:Q1 wdt:P31 wd:Q5 ; wdt:P569 "1952-03-11T00:00:00Z"^^xsd:dateTime . wd:Q5 wdt:P279 wd:Q6 . wd:P31 rdfs:label "is a"@en .'
    )
    items, warnings = load(tmp_path / "wd.ttl", text)
    assert [fact[:3] for fact in facts(items)] == [
        ("Q1", "is a", Ref(WD + "Q5")),
        ("Q1", "P569", Time.second(1952, 3, 11, 0, 0)),
        ("Q5", "P279", Ref(WD + "Q6")),
    ]
    assert {one.id.removeprefix(WD) for one in items if getattr(one, "kind", None) is EntityKind.CONCEPT} == {"Q5", "Q6"}
    assert warnings == []


def test_without_value_nodes_a_day_is_taken_aloud(tmp_path: Path) -> None:
    text = 'wd:Q1 p:P569 s:x . s:x ps:P569 "1952-01-01T00:00:00Z"^^xsd:dateTime ; pq:P1480 "12"^^xsd:decimal .'
    items, warnings = load(tmp_path / "wd.ttl", text)
    assert facts(items) == [("Q1", "P569", Time.day(1952, 1, 1), (("P1480", Quantity(12)),))]
    assert warnings == ["a time without its precision is taken as the day"]


def test_half_a_statement_stays_ordinary(tmp_path: Path) -> None:
    items, warnings = load(tmp_path / "wd.ttl", "wd:Q1 p:P22 s:x . s:x pq:P1 wd:Q2 .")
    assert [fact[1:3] for fact in facts(items)] == [("P22", Ref(WD + "statement/x")), ("P1", Ref(WD + "Q2"))]
    assert "no subject or no value" in warnings[0]


def test_another_wikibase(tmp_path: Path) -> None:
    text = """@prefix : <https://lab.example/prop/> . @prefix st: <https://lab.example/prop/statement/> .
    <https://lab.example/entity/Q1> :P3 <https://lab.example/entity/statement/z> .
    <https://lab.example/entity/statement/z> st:P3 "five" . <https://lab.example/entity/P3> rdfs:label "motto"@en ."""
    items, _ = load(tmp_path / "wd.ttl", text)
    assert [fact[1:3] for fact in facts(items)] == [("motto", "five")]


def test_named_graphs_stay(tmp_path: Path) -> None:
    items, _ = load(tmp_path / "wd.trig", "GRAPH <http://g> { wd:Q1 p:P22 s:x . s:x ps:P22 wd:Q2 ; pq:P1 wd:Q3 . }")
    assert facts(items) == [("Q1", "P22", Ref(WD + "Q2"), (("P1", Ref(WD + "Q3")), ("graph", Ref("http://g"))))]


@pytest.mark.parametrize(
    ("text", "precision", "time"),
    [
        ("1971-06-05T10:11:12Z", 14, "1971-06-05T10:11:12"),
        ("1971-06-05T10:11:00Z", 13, "1971-06-05T10:11:00/1971-06-05T10:11:59"),
        ("1971-06-05T00:00:00Z", 11, "1971-06-05"),
        ("1971-06-01T00:00:00Z", 10, "1971-06"),
        ("-0043-01-01T00:00:00Z", 9, "-43"),
        ("1967-01-01T00:00:00Z", 8, "1960/1969"),
        ("2000-01-01T00:00:00Z", 7, "1901/2000"),
        ("2000-01-01T00:00:00Z", 6, "1001/2000"),
    ],
)
def test_precisions(text: str, precision: int, time: str) -> None:
    assert str(full_time(text, precision)) == time
    with pytest.raises(ValueError, match="unknown precision 15"):
        full_time(text, 15)
