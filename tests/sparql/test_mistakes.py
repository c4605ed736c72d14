"""Queries with a mistake are told what it is: the prefix, or the word."""

from __future__ import annotations

import time

import pytest

import condgraph
from condgraph import Statement
from condgraph.engine.errors import ParseError
from condgraph.engine.iris import PREFIXES
from condgraph.sparql.text.scan import mistake, undeclared, underscored
from tests.support.pace import quick_enough


@pytest.mark.parametrize(
    ("text", "said", "where"),
    [
        ("SELECT * { ?s foo:bar ?o }", "the prefix foo: is not declared; known: foaf:", "foo:"),
        ("SELECT * { ?s :x ?o }", "the prefix : is not declared", ":"),
        ("SELECT * { ?s ?p ?o } LIMT 10", "'LIMT' is not a word of SPARQL; the nearest: LIMIT", "LIMT"),
        ("SELCT * { ?s ?p ?o }", "'SELCT' is not a word of SPARQL; the nearest: SELECT", "SELCT"),
        ("SELECT * {\n  ?s rdsf:label 'x' }", "the prefix rdsf: is not declared; known: rdf:, rdfs:", "rdsf:"),
    ],
)
def test_what_is_wrong(text: str, said: str, where: str) -> None:
    found = mistake(text)
    assert found is not None
    assert found.message.startswith(said)
    assert text[found.begin : found.end] == where
    with condgraph.open() as graph:
        graph.add([Statement("a", "p", "x")])
        with pytest.raises(ParseError) as caught:
            graph.sparql(text)
    assert said in str(caught.value)
    line = text.count("\n", 0, found.begin) + 1
    assert f"line {line}, " in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s a _:b ; rdfs:label 1e5, 'foo:x LIMT'@en, \"a\"^^xsd:int # foo: bla\n}",
        "PREFIX foo: <http://x/> SELECT (COUNT(?x) AS ?n) { <foo:bar> foo:b\\.c ?x FILTER(?x < 3 && ?x > 1) }",
        "prefix : <http://x/> ASK { [ :p '''a ' b''' ] }",
        "SELECT * { ?s <a b> ?o }",  # another mistake
    ],
)
def test_what_is_not(text: str) -> None:
    assert mistake(text) is None


@pytest.mark.parametrize(
    ("text", "said", "where"),
    [
        ("SELECT", "the query ends too early", ""),
        ("SELECT * { ?s", "the query ends too early", ""),
        ("SELECT * { ?s ?p ?o } LIMIT \n", "the query ends too early", ""),
        ("SELECT * { ?s ?p ?o } }", "'}' cannot stand here", "}"),
        ("SELECT * { ?s ?p ?o FILTER(?o > ) }", "something before this is missing", "}"),
        ("SELECT ?o { ?s ?p ?o } GROUP BY ?s", "a variable of SELECT is bound nowhere, or is neither grouped", ""),
        ("SELECT * { ?s ?p ?o } GROUP BY ?s", "SELECT * does not go with GROUP BY", ""),
        ("SELECT (?p AS ?o) { ?s ?p ?o } ORDER BY ?s", "a variable that AS names in SELECT is bound already", ""),
        (" ", "the query is empty", ""),
    ],
)
def test_what_is_wrong_at_the_end(text: str, said: str, where: str) -> None:
    """What the text ends with is not blamed for what it lacks."""
    with condgraph.open() as graph:
        graph.add([Statement("a", "p", "x")])
        with pytest.raises(ParseError) as caught:
            graph.sparql(text)
    assert f": {said}" in caught.value.message
    assert caught.value.span is not None
    assert text[slice(*caught.value.span)] == where


@pytest.mark.parametrize("piece", ["<", "a:", "_", '"', "%20", "?", "a_", "'''", "<a_b>", "\\", "\ud800"])
def test_nonsense_takes_no_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    begin = time.process_time()
    mistake(text)
    underscored(text, lambda name: False)
    underscored(f"<{text}>", lambda name: False)
    undeclared(text)
    assert quick_enough(time.process_time() - begin, 5)


def test_underscores() -> None:
    names = {"a_b", "c d", "c_d", "e_f g", "x_y z", "x y_z"}
    wanted = {
        "<a_b>": "<a%5Fb>",
        "<c_d>": "<c_d>",  # what KQA Pro means
        "<e_f_g>": "<e%5Ff_g>",
        "<x_y_z>": "<x_y_z>",  # two fit
        "<http://x/a_b>": "<http://x/a_b>",
        "'<a_b>' # <a_b>": "'<a_b>' # <a_b>",
        "<un_known>": "<un_known>",
        "BASE <http://x/> <a_b>": "BASE <http://x/> <a_b>",
    }
    assert {text: underscored(text, names.__contains__) for text in wanted} == wanted


def test_known_prefixes() -> None:
    assert undeclared("SELECT * { ?s ?o ?p }") == ""
    with condgraph.open() as graph:
        graph.add([Statement("a", "p", "x")])
        for prefix, iri in PREFIXES.items():
            made = graph.sparql(f"SELECT ({prefix}:x AS ?iri) {{}}")
            assert str(made.rows[0][0]) == f"{iri}x"
        own = graph.sparql("PREFIX wd: <http://mine/> SELECT (wd:x AS ?iri) {}")
        assert str(own.rows[0][0]) == "http://mine/x"


@pytest.mark.parametrize(
    "piece", ["a ", "a-", "a.", "(", "prefix-", "prefix", "PREFIX ", "_a-", "<a_b> ", "<a_", "a_b-", "@a-", "%41:", ":a."]
)
def test_a_megabyte_of_nonsense_is_looked_at_once(piece: str) -> None:
    """Twice the text takes about twice as long, for what is looked for in it and for names."""
    took = []
    for size in (100_000, 1_000_000):
        text, begin = piece * (size // len(piece)), time.thread_time()
        mistake(text)
        underscored(text, lambda name: False)
        took.append(time.thread_time() - begin)
    assert quick_enough(took[1], 30 * took[0] + 0.5)
