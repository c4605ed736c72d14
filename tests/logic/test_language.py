"""The language of logical queries: its text, BetaE's structures and tuples, and what is no tree."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine.errors import (
    CondgraphError,
    CyclicQueryError,
    OptionError,
    ParseError,
    PlanError,
    UnknownNameError,
    UnsafeQueryError,
)
from condgraph.languages.logic.convert import checked_safe, tree_of
from condgraph.languages.logic.formula import Query
from condgraph.languages.logic.structures import STRUCTURES, is_nested, named, nested
from condgraph.languages.logic.text import read
from condgraph.languages.logic.tree import Anchor, Complement, Intersection, Projection, Tree, Union
from condgraph.languages.registry import detect


def told(node: Tree) -> Any:
    """A tree as plain tuples."""
    match node:
        case Anchor():
            return node.name
        case Projection():
            return (("-" if node.anti else "") + ("^" if node.inverse else "") + node.relation, told(node.of))
        case Intersection() | Union():
            return ("and" if isinstance(node, Intersection) else "or", *map(told, node.parts))
        case Complement():
            return ("not", told(node.part))
    return type(node).__name__


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            '?x : exists ?v. award("Nobel", ?v) and born(?v, ?x) and not capital(?x, "France")',
            ("and", ("not", ("^capital", "France")), ("born", ("award", "Nobel"))),
        ),
        ("?x: r(<Q1>, ?x)", ("r", "Q1")),
        # Both negations: of a whole `exists`, and of the atom that joins it.
        ('?x : not exists ?v. (a("A", ?v) and b(?v, ?x))', ("not", ("b", ("a", "A")))),
        ('?x : exists ?v. (a("A", ?v) and not b(?v, ?x))', ("-b", ("a", "A"))),
        # De Morgan.
        ('?x : not (not a("A", ?x) and not b("B", ?x))', ("or", ("a", "A"), ("b", "B"))),
        ('?x : not (a("A", ?x) or not b("B", ?x))', ("and", ("not", ("a", "A")), ("b", "B"))),
        # Branches that hang by the same atom are merged, others have variables of their own.
        (
            '?x : exists ?v. (a("A", ?v) and b(?v, ?x)) or (c("C", ?v) and b(?v, ?x))',
            ("b", ("or", ("a", "A"), ("c", "C"))),
        ),
        (
            '?x : exists ?v. (a("A", ?v) and b(?v, ?x)) or (c("C", ?v) and d(?v, ?x))',
            ("or", ("b", ("a", "A")), ("d", ("c", "C"))),
        ),
        # The same name bound twice is two variables.
        (
            '?x : (exists ?v. a("A", ?v) and b(?v, ?x)) ∧ (∃?v. c("C", ?v) ∧ d(?x, ?v))',
            ("and", ("b", ("a", "A")), ("^d", ("c", "C"))),
        ),
        # What does not speak of the variable stands beside; what is bound by nothing else is anything.
        ('?x : exists ?v. a("A", ?x) and b(?v, ?x)', ("and", ("a", "A"), ("b", "Anything"))),
        ('?x : exists ?v ?w. a(?w, ?v) and b(?v, ?x) and "c d"("C", ?w)', ("b", ("a", ("c d", "C")))),
        # Marks that stand on letters are no part of a word.
        ('?x : "e\u0301tat"("A", ?x) or "\u092d\u093e"("B", ?x)', ("or", ("e\u0301tat", "A"), ("\u092d\u093e", "B"))),
    ],
)
def test_a_text_has_this_tree(text: str, wanted: Any) -> None:
    query = read(text)
    assert told(tree_of(query)) == wanted
    # What is written reads back.
    assert told(tree_of(read(str(query)))) == wanted
    assert detect(text) == "logic"


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ('?x : exists ?v. a("A", ?v) and b(?v, ?x) and c(?v, ?x)', CyclicQueryError, "cyclic"),
        ('?x : exists ?v ?w. a("A", ?v) and b(?v, ?w) and c(?w, ?x) and d(?v, ?x)', CyclicQueryError, "cyclic"),
        ("?x : r(?x, ?x)", CyclicQueryError, "with itself"),
        ('?x : a("A", ?x) and exists ?v. b("B", ?v)', PlanError, "not joined to ?x"),
        ('?x : a("A", "B")', PlanError, "not joined to ?x"),
        ("?x : a(?v, ?x)", PlanError, "bound by nothing"),
        ('?x : exists ?v. a("A", ?v) and (b(?v, ?x) or c(?v, ?x))', PlanError, "not a tree"),
        ('?x : a("A", ?x', ParseError, "')' is expected"),
        ('?x : a("A, ?x)', ParseError, "no closing mark"),
        ('?x : a("A", ?x, ?y)', ParseError, "one or two"),
        ("?x : " + "(" * 500, ParseError, "nested deeper"),
        ("?x : " + "not " * 5000, ParseError, "nested deeper"),
        ("?x : " + " and ".join(['a("A", ?x)'] * 300), ParseError, "at most 200 atoms"),
        ("?x : a(" + "x" * 200_000, ParseError, "characters"),
    ],
)
def test_what_is_no_tree_says_so(text: str, error: type[CondgraphError], says: str) -> None:
    with pytest.raises(error, match=says.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        tree_of(read(text))


def test_long_names_make_no_long_messages() -> None:
    with pytest.raises(PlanError, match="bound by nothing") as caught:
        tree_of(read("?x : a(?" + "v" * 5_000 + ", ?x)"))
    assert len(str(caught.value)) < 1_000


def test_only_negated_branches_are_unsafe() -> None:
    for text in ('?x : not a("A", ?x)', '?x : a("A", ?x) or not b("B", ?x)', '?x : exists ?v. a("A", ?v) and not b(?v, ?x)'):
        with pytest.raises(UnsafeQueryError):
            checked_safe(tree_of(read(text)))
        checked_safe(tree_of(read(text)), bound=True)
    checked_safe(tree_of(read('?x : country(?x) and not a("A", ?x)')))


_TREES = {
    "1p": ("r1", "E1"),
    "3p": ("r3", ("r2", ("r1", "E1"))),
    "5p": ("r5", ("r4", ("r3", ("r2", ("r1", "E1"))))),
    "2i": ("and", ("r1", "E1"), ("s1", "E2")),
    "pi": ("and", ("r2", ("r1", "E1")), ("s1", "E2")),
    "ip": ("t", ("and", ("r1", "E1"), ("s1", "E2"))),
    "2u": ("or", ("r1", "E1"), ("s1", "E2")),
    "up": ("t", ("or", ("r1", "E1"), ("s1", "E2"))),
    "2in": ("and", ("r1", "E1"), ("not", ("s1", "E2"))),
    "inp": ("t", ("and", ("r1", "E1"), ("not", ("s1", "E2")))),
    "pin": ("and", ("r2", ("r1", "E1")), ("not", ("s1", "E2"))),
    "pni": ("and", ("not", ("r2", ("r1", "E1"))), ("s1", "E2")),
}


@pytest.mark.parametrize("name", _TREES)
def test_structures_by_name(name: str) -> None:
    lengths, shape = STRUCTURES[name]
    branches: list[Any] = [[f"E{i + 1}", *(f"{'rsq'[i]}{j + 1}" for j in range(length))] for i, length in enumerate(lengths)]
    if isinstance(shape, tuple) and shape[0] == "p":
        branches.append("t")
    assert told(tree_of(named(name, branches))) == _TREES[name]


def test_structures_that_do_not_fit() -> None:
    with pytest.raises(UnknownNameError, match="2in"):
        named("2ni", [["A", "r"], ["B", "s"]])
    for branches in ([["A", "r"]], [["A", "r"], ["B"]], [["A", "r"], "B"], [["A", "r"], ["B", None]]):
        with pytest.raises(OptionError):
            named("2i", branches)
    assert told(tree_of(named("1p", [["A", "^r"]]))) == ("^r", "A")


def test_nested_tuples_as_published() -> None:
    cases: dict[Any, Any] = {
        (3, (7,)): ("7", "3"),
        ((3, (7, 8)), (12, (5, -2))): ("and", ("8", ("7", "3")), ("not", ("5", "12"))),
        (((3, (7,)), (12, (5,)), (-1,)), (9,)): ("9", ("or", ("7", "3"), ("5", "12"))),
        # The De Morgan forms of 2u and up.
        (((3, (7, -2)), (12, (5, -2))), (-2,)): ("or", ("7", "3"), ("5", "12")),
        (((3, (7, -2)), (12, (5, -2))), (-2, 9)): ("9", ("or", ("7", "3"), ("5", "12"))),
        ((100, (29, 17, -2)), (209, (45,))): ("and", ("not", ("17", ("29", "100"))), ("45", "209")),
    }
    for program, wanted in cases.items():
        assert is_nested(program)
        assert told(tree_of(nested(program))) == wanted
    assert not is_nested([("a", "b", "c")])
    for program in ((), (3,), ((3, (7,)),), "text", 7):
        with pytest.raises(ParseError):
            nested(program)
    deep: Any = (3, (7,))
    for _ in range(500):
        deep = (deep, (7,))
    with pytest.raises(ParseError, match="nested deeper"):
        nested(deep)


_PIECES = [
    "?x",
    "?v",
    ":",
    ".",
    ",",
    "(",
    ")",
    "and",
    "or",
    "not",
    "exists",
    "a",
    '"b"',
    "<c>",
    "∧",
    "¬",
    " ",
    '"',
    "<",
    "?",
    "%",
    "é",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=40).map(" ".join) | st.text(max_size=60))
def test_any_text_is_a_tree_or_a_typed_error(text: str) -> None:
    for one in (text, "?x : " + text):
        try:
            found = read(one)
            assert isinstance(found, Query)
            tree_of(found)
        except (ParseError, PlanError):
            pass


def test_de_morgan_pairs_are_one_tree() -> None:
    dice = random.Random(1)
    for _ in range(200):
        a, b, c = (f'r{dice.randrange(3)}("e{dice.randrange(9)}", ?x)' for _ in range(3))
        left = read(f"?x : not ({a} and ({b} or not {c}))")
        right = read(f"?x : not {a} or (not {b} and {c})")
        assert told(tree_of(left)) == told(tree_of(right))
