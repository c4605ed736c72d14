"""Whether two lists of answer texts say the same, as WikiTableQuestions counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.denotation import is_right, item, normalise


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Bangkok, Thailand", "bangkok, thailand"),
        ("  two   spaces ", "two spaces"),
        ("Hyytiäinen", "hyytiainen"),
        ("1–2", "1-2"),
        ("2−1", "2-1"),
        ("‘Round", "'round"),
        ("Ohio[1][note 2]", "ohio"),
        ("Ohio†*", "ohio"),
        ("Ohio (USA) (state)", "ohio"),
        ("Ohio (USA)[3]", "ohio"),
        ('"Heroes"', "heroes"),
        ('"A" and "B"', '"a" and "b"'),
        ("St. Louis, Mo.", "st. louis, mo"),
        ("(none)", "(none)"),
        ("[1]", "[1]"),
        ("*", "*"),
        ("", ""),
        ("Straße", "strasse"),
    ],
)
def test_the_common_form(text: str, form: str) -> None:
    assert normalise(text) == form


@pytest.mark.parametrize(
    ("expected", "given", "right"),
    [
        (["2004"], ["2004"], True),
        (["2004"], ["2004.0"], True),
        (["2004"], ["2004.1"], False),
        (["0.5"], [".5000000001"], True),
        (["10 years"], ["10"], False),
        (["Che Fu"], ["che fu"], True),
        (["Ohio"], ["Ohio River"], False),
        (["Ohio River"], ["Ohio"], False),
        (["A", "B"], ["B", "A"], True),
        (["A", "B"], ["A"], False),
        (["A"], ["A", "B"], False),
        (["A"], ["A", "A"], True),
        (["1"], ["1", "1.0"], True),
        ([], [], True),
        (["A"], [], False),
        (["1960-xx-xx"], ["1960-xx-xx"], True),
        (["1960-05-xx"], ["1960-5-xx"], True),
        (["1960-xx-xx"], ["1961-xx-xx"], False),
        (["1960-13-01"], ["1960-13-01"], True),
        (["yes"], ["no"], False),
        (["nan"], ["NaN"], True),
        (["1e999"], ["2e999"], False),
    ],
)
def test_answers(expected: list[str], given: list[str], right: bool) -> None:
    assert is_right(expected, given) is right
    assert is_right(given, expected) is right


def test_canonical_forms_of_the_expected_answer() -> None:
    assert not is_right(["10,000"], ["10000"])
    assert is_right(["10,000"], ["10000"], ["10000"])
    assert is_right(["May 5, 2006"], ["2006-05-05"], ["2006-5-5"])
    assert item("xx-xx-xx").date is None


@given(st.text(max_size=40))
def test_the_common_form_of_the_common_form_says_the_same(text: str) -> None:
    assert is_right([text], [text])
    assert normalise(text) == normalise(text + " ")


def test_long_tails_come_to_an_end() -> None:
    assert normalise("a" + " (b)" * 2_000) == "a"
    assert normalise("a" + "[1]" * 100_000)
    assert normalise("a" + " (" * 4_000)
