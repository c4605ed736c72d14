"""RDF as other programs write it: one source for each kind of construct."""

from __future__ import annotations

PREFIXES = """@prefix : <http://x.org/a#> .
@prefix dbr: <http://dbpedia.org/resource/> .
@prefix dbo: <http://dbpedia.org/ontology/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""

DBPEDIA = """
dbr:Leipzig a dbo:City ; rdfs:label "Leipzig"@en, "Leipzig"@de, "Lipsia"@it ; dbo:populationTotal "628718"^^xsd:nonNegativeInteger ;
    dbo:areaTotal "2.978E8"^^xsd:double ; dbo:country dbr:Germany ; foaf:name "City of Leipzig" ; skos:altLabel "Leipsic"@en ;
    dbo:founded "1015-12-20"^^xsd:date ; dbo:twin (dbr:Houston dbr:Kyiv "Lyon"@fr) ; dbo:isBig true ; dbo:note [ dbo:by "me" ] .
dbr:Germany rdfs:label "Germany"@en . dbr:Houston rdfs:label "Houston"@de . dbr:Kyiv foaf:name "Kyiv"@uk .
dbo:country rdfs:label "country"@en ; rdfs:range dbo:Country .
"""
OWL = """
:C a owl:Class ; rdfs:label "C"@en ; owl:unionOf (:D :E [ owl:complementOf :F ]) ;
    rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ; owl:someValuesFrom :D ] , :B .
:p a owl:ObjectProperty ; rdfs:label "pee" ; rdfs:label "pé"@fr ; rdfs:domain :C . :q rdfs:label "pee" .
:x :p :y ; :q :z . [] a owl:AllDifferent ; owl:distinctMembers (:x :y) .
"""
SKOS = """
:s a skos:Concept ; skos:prefLabel "Zed"@en, "Zett"@de ; skos:altLabel "Zee"@en-US ; skos:broader :t ; skos:notation "1.2"^^:code .
:t skos:prefLabel "Tee"@en ; skos:note "a\\nb\\tc\\"\\\\ \\u00e9 \\U0001F600"@en-GB , "" , "  spaced  out " , "مرحبا"@ar .
:list a skos:OrderedCollection ; skos:memberList ( :s :t ) . :w rdfs:label "dub"@de , "dub"@fr . :u rdfs:label "  ex  tra "@en .
"""
LITERALS = """
:x :q 1, 1.0, "1"^^xsd:int, "1"^^xsd:byte, 1e0, "1", true, "true" ; :big 123456789012345678901234567890 ,
        0.1000000000000000055511151231257827 ;
    :t "1992"^^xsd:gYear , "1992-05"^^xsd:gYearMonth , "1992-05-01"^^xsd:date , "1992-05-01T00:00:00Z"^^xsd:dateTime ,
        "1992-05-01T00:00:00+02:00"^^xsd:dateTime, "1992-05-01T00:00:00.123Z"^^xsd:dateTimeStamp,
        "--05-01"^^xsd:gMonthDay, "P1Y"^^xsd:duration ;
    :inf "INF"^^xsd:double , "NaN"^^xsd:double , "abc"^^xsd:integer ; :html "<b>x</b>"^^rdf:HTML ; :padded "007"^^xsd:integer .
:y :q 2.50, "2"^^xsd:byte ; :flag "1"^^xsd:boolean .
"""
NODES = """
:a-b :c_d :e.f ; :g%20h "percent" . <http://x.org/é/ü> :p <http://x.org/a(b)> , <urn:isbn:123> , <mailto:a@b.c> .
:m :p [] . [] :p :m . _:b :p _:b . :x :empty () ; :nested ( 1 (2 3) ) ; :two (1 2) , (2 1) ; :mixed ("a"@en 1.5 "z"^^:dt true) .
"""
REIFIED = """
_:s a rdf:Statement ; rdf:subject :x ; rdf:predicate :p ; rdf:object :y ; :since 1990 ; :by :z ; :w "1.5"^^xsd:double . :x :p :y .
"""
STAR = """
:a :p :b {| :since 1990 ; :by :c |} . :a :p :c . :d :p "lit"@en {| :conf 0.9 |} . :a rdfs:label "A"@en .
:a a :K {| :since 2000 |} . :b a :K .
"""
GRAPHS = """
:g { :a :p :b . :a a :K . :a rdfs:label 'A' . :a :l (1 2) } :a :p :b . :h { :a :p :b } _:g { :a :q [] } :b rdfs:label "B" .
:a a :K .
"""
#: The sources by name; exports contain all of their statements again.
WHOLE = {
    "dbpedia": DBPEDIA,
    "owl": OWL,
    "skos": SKOS,
    "literals": LITERALS,
    "nodes": NODES,
    "reified": REIFIED,
    "star": STAR,
    "graphs": GRAPHS,
}
