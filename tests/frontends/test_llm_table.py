"""The table of the 32 cases of get_information."""

from __future__ import annotations

from itertools import product

from condgraph.languages.llm.lower.search import CASES, ChoiceRule, choose, markdown, subsets


def test_every_subset_has_a_meaning_or_an_error_whatever_holds() -> None:
    assert len(list(subsets())) == 32
    assert set(subsets()) == set(CASES)
    for given, qualifier, constant in product(subsets(), (True, False), (True, False)):
        holds = {
            ChoiceRule.ALWAYS: True,
            ChoiceRule.QUALIFIER: qualifier,
            ChoiceRule.PREDICATE: not qualifier,
            ChoiceRule.CONSTANT: constant,
            ChoiceRule.SET: not constant,
        }
        applying = [choice for choice in CASES[given] if holds[choice.when]]
        assert applying == [choose(given, qualifier=qualifier, constant=constant)]
        assert applying[0].meaning


def test_choices_speak_only_of_what_is_given() -> None:
    for given, choices in CASES.items():
        for choice in choices:
            assert "K" in given or choice.when not in (ChoiceRule.QUALIFIER, ChoiceRule.PREDICATE)
            assert "H" in given or choice.when not in (ChoiceRule.CONSTANT, ChoiceRule.SET)


def test_only_two_cases_are_errors() -> None:
    errors = [(given, choice.when) for given, choices in CASES.items() for choice in choices if choice.lower is None]
    assert errors == [("", ChoiceRule.ALWAYS), ("RK", ChoiceRule.PREDICATE)]


def test_the_markdown_has_a_row_for_every_choice() -> None:
    text = markdown()
    assert text.count("\n") == 2 + sum(map(len, CASES.values()))
    assert "| H R T K | K is a qualifier | qualifier K of F(R)[H][T] |" in text
