"""Patterns in all their written forms, and what is said of those that are none."""

from __future__ import annotations

from typing import Any

import pytest

from condgraph.engine.errors import ParseError, PlanError
from condgraph.languages.pattern.pattern import MAX_PARALLEL, Pattern, is_pattern
from condgraph.languages.registry import detect

EXPECTED = Pattern.of([("UNKNOWN actor 1", "actor of", "Flashpoint"), ("UNKNOWN actor 1", "actor of", "UNKNOWN film 1")])


@pytest.mark.parametrize(
    "text",
    [
        '("UNKNOWN actor 1", "actor of", "Flashpoint"),\n("UNKNOWN actor 1", "actor of", "UNKNOWN film 1"),',
        '{ "divided": [\n"the actor in Flashpoint",\n"this actor also (appears) in films",\n],\n"triples": [\n'
        '("UNKNOWN actor 1", "actor of", "Flashpoint"),\n("UNKNOWN actor 1", "actor of", "UNKNOWN film 1"),\n]\n}',
        "[('UNKNOWN actor 1', 'actor of', 'Flashpoint'), ('UNKNOWN actor 1', 'actor of', 'UNKNOWN film 1')]",
        "(“UNKNOWN actor 1”, “actor of”, “Flashpoint”) (’UNKNOWN actor 1’, ’actor of’, ’UNKNOWN film 1’)",
        '[["UNKNOWN actor 1", "actor of", "Flashpoint"], ["UNKNOWN actor 1", "actor of", "UNKNOWN film 1"]]',
        '{"triples": [{"head": "UNKNOWN actor 1", "relation": "actor of", "tail": "Flashpoint"},'
        ' {"subject": "UNKNOWN actor 1", "predicate": "actor of", "object": "UNKNOWN film 1"}]}',
        '```json\n[["UNKNOWN actor 1", "actor of", "Flashpoint"], ["UNKNOWN  actor 1", "actor of", "UNKNOWN film 1"]]\n```',
        "(UNKNOWN actor 1) -[actor of]-> (Flashpoint); (UNKNOWN actor 1) -[actor of]-> (UNKNOWN film 1)",
        "(Flashpoint) <-[actor of]- (UNKNOWN actor 1) -[actor of]-> (UNKNOWN film 1)",
        '("UNKNOWN actor 1")-["actor of"]->("Flashpoint")\n("UNKNOWN actor 1") --[actor of]--> (UNKNOWN film 1)',
        "(UNKNOWN actor 1, actor of, Flashpoint), (UNKNOWN actor 1, actor of, UNKNOWN film 1)",
        '(UNKNOWN actor 1, "actor of", "Flashpoint")\n( UNKNOWN actor 1 , actor of , UNKNOWN film 1 )',
    ],
)
def test_one_pattern_in_many_forms(text: str) -> None:
    found = Pattern.of(text)
    assert {(found.nodes[e.head].text, e.relation, found.nodes[e.tail].text) for e in found.edges} == {
        (EXPECTED.nodes[e.head].text, e.relation, EXPECTED.nodes[e.tail].text) for e in EXPECTED.edges
    }
    assert detect(text) == "pattern"
    assert Pattern.of(str(found)) == found


@pytest.mark.parametrize(
    "name",
    [
        'Mick "The Man" Walker',
        "a {b} [c] (d)",
        "it's",
        "x, y",
        "a) -[b]-> (c",
        "back\\slash",
        ";",
        "'Til Tuesday",
        "'Allo 'Allo!'",
        "“",
        "‘x",
        "’s",
    ],
)
def test_names_with_brackets_and_quotes(name: str) -> None:
    pattern = Pattern.of([(name, f"r {name}", "UNKNOWN x 1")])
    assert Pattern.of(str(pattern)) == pattern
    assert Pattern.of(f'[("{name}", "r {name}", "UNKNOWN x 1")]'.replace("\\", "\\\\")) == pattern


def test_unknowns() -> None:
    pattern = Pattern.of([("UNKNOWN", "UNKNOWN relation 1", "UNKNOWN 2"), ("UNKNOWN tv series 12", "r", "UNKNOWN Pleasures")])
    assert [(n.known, n.hint, n.name) for n in pattern.nodes] == [
        (False, None, "UNKNOWN"),
        (False, None, "2"),
        (False, "tv series", "tv series 12"),
        (False, "Pleasures", "Pleasures"),
    ]
    assert [e.known for e in pattern.edges] == [False, True]
    assert Pattern.of([("Unknown Pleasures", "r", "UNKNOWNS")]).nodes[0].known
    assert pattern.number("tv series 12") == pattern.number("UNKNOWN tv series 12") == 2
    with pytest.raises(PlanError, match="no node 'tv serie 12'; nearest: 'tv series 12'"):
        pattern.number("tv serie 12")


def test_unknowns_as_models_write_them() -> None:
    """A variable with a space, or the mark alone, could be a name, which a warning says."""
    pattern = Pattern.of([("?film 1", "r", "?"), ("?tv series 12", "r", "?x"), ("?film", "r", "?? 1"), ("? huh 1", "r", "?a.b 1")])
    assert [(n.text, n.known, n.hint) for n in pattern.nodes] == [
        ("?film 1", False, "film"), ("?", False, None), ("?tv series 12", False, "tv series"), ("?x", False, None),
        ("?film", False, "film"), ("?? 1", True, None), ("? huh 1", True, None), ("?a.b 1", True, None),
    ]  # fmt: skip
    assert [one.split(" is read")[0] for one in pattern.warnings] == ["'?film 1'", "'?'", "'?tv series 12'"]


def test_tuples_without_quotes() -> None:
    pattern = Pattern.of('(?mountain, height, > 8000 metre); (?mountain, "lies, in", Nepal (east, west)) (?mountain, r, 1960)')
    assert [(pattern.nodes[e.head].text, e.relation, pattern.nodes[e.tail].text) for e in pattern.edges] == [
        ("?mountain", "height", "> 8000 metre"), ("?mountain", "lies, in", "Nepal (east, west)"), ("?mountain", "r", "= 1960"),
    ]  # fmt: skip
    # A node of arrows may have commas.
    assert Pattern.of("(a, b, c) -[d]-> (e)").nodes[0].text == "a, b, c"


def test_multigraphs() -> None:
    pattern = Pattern.of([("a", "r", "b"), ("b", "r", "a"), ("a", "s", "b"), ("a", "r", "a"), ("a", "r", "b")])
    assert len(pattern.nodes) == 2
    assert len(pattern.edges) == 4
    assert pattern.warnings == ("triple 5 is repeated and counts once: a | r | b",)
    with pytest.raises(PlanError, match=f"more than {MAX_PARALLEL} edges"):
        Pattern.of([("a", f"r{i}", "b") for i in range(MAX_PARALLEL + 1)])


@pytest.mark.parametrize(
    ("program", "message", "span"),
    [
        ("(a) -[r]- (b)", "an arrow has one head", (4, 8)),
        ("(a) <-[r]-> (b)", "an arrow has one head", (4, 9)),
        ("(a) -[r]-> b", "'(' is expected", (11, 12)),
        ("(a) -[r]-> (b", "this '(' is not closed", (11, 12)),
        ("(a)", "an arrow is expected", (1, 2)),
        ("(a, b)", "an arrow is expected", (1, 5)),
        ("(a, b, c, d)", "an arrow is expected", (1, 11)),
        ("(a, , c)", "an arrow is expected", (1, 7)),
        ("(a) --> (b)", "this arrow has no relation", (4, 7)),
        ("(a)<--(b)", "this arrow has no relation", (3, 6)),
        ('("a", "r")', "a triple has 3 names, not 2", (1, 9)),
        ('("a", "r", "b', "no closing quote", (11, 13)),
        ('("a", r, "b")', "a name in quotes, or a number, is expected", (6, 7)),
        ("(a) -[ ]-> (b)", "the relation of triple 1 is empty", (6, 7)),
        ("{}", "has its triples under 'triples'", None),
        ("[]", "at least one triple", None),
        ([("a", "b")], "triple 1 has 2 parts", None),
        ([("a", 1999, "b")], "triple 1 holds 1999", None),
        ([("a", "b", True)], "triple 1 holds True", None),
        ([("a", "b", "c"), {"head": "a", "tail": "b"}], "triple 2 has no 'relation'", None),
        (("a", "b", "c"), "this is one triple", None),
        ([("a", "b", " ")], "the tail of triple 1 is empty", None),
    ],
)
def test_what_is_no_pattern(program: Any, message: str, span: tuple[int, int] | None) -> None:
    with pytest.raises(ParseError, match=message.replace("(", r"\(").replace(")", r"\)")) as found:
        Pattern.of(program)
    assert found.value.span == span


def test_other_languages_are_no_patterns() -> None:
    for other in (
        "Find(a) QueryName()",
        '[{"function": "Find", "inputs": ["a"]}]',
        "Query1: \"get_information(relation='a')\"",
        [],
    ):
        assert not is_pattern(other)
    assert not is_pattern([{"function": "Find", "inputs": ["a"], "dependencies": []}])
    assert is_pattern([("a", "b", "c")])
    assert is_pattern({"triples": []})
