"""The table of the 32 cases of get_information."""

from __future__ import annotations

from itertools import product

from condgraph.languages.llm.lower.search import CASES, When, choose, markdown, subsets


def test_every_subset_has_a_meaning_or_an_error_whatever_holds() -> None:
    assert len(list(subsets())) == 32
    assert set(subsets()) == set(CASES)
    for given, qualifier, constant in product(subsets(), (True, False), (True, False)):
        holds = {
            When.ALWAYS: True,
            When.QUALIFIER: qualifier,
            When.PREDICATE: not qualifier,
            When.CONSTANT: constant,
            When.SET: not constant,
        }
        applying = [choice for choice in CASES[given].choices if holds[choice.when]]
        assert applying == [choose(given, qualifier=qualifier, constant=constant)]
        assert applying[0].meaning


def test_choices_speak_only_of_what_is_given() -> None:
    for given, case in CASES.items():
        for choice in case.choices:
            assert "K" in given or choice.when not in (When.QUALIFIER, When.PREDICATE)
            assert "H" in given or choice.when not in (When.CONSTANT, When.SET)


def test_only_two_cases_are_errors() -> None:
    errors = [(case.name, choice.when) for case in CASES.values() for choice in case.choices if choice.rule is None]
    assert errors == [("nothing", When.ALWAYS), ("R K", When.PREDICATE)]


def test_a_rule_has_one_meaning_and_the_same_parameters_up_to_the_place_of_a_test() -> None:
    meanings: dict[str, set[str]] = {}
    for case in CASES.values():
        for choice in case.choices:
            if choice.rule is not None:
                meanings.setdefault(choice.rule, set()).add(case.given.replace("V", "T"))
    shared = {rule: given for rule, given in meanings.items() if len(given) > 1}
    # One test alone says the same as T and as V; K with one test is a search by K.
    assert set(shared) <= {"subjects_any", "subjects_k", "subjects_qualified", "holds_k"}


def test_the_markdown_has_a_row_for_every_choice() -> None:
    text = markdown()
    assert text.count("\n") == 2 + sum(len(case.choices) for case in CASES.values())
    assert "| H R T K | K is a qualifier | qualifier K of F(R)[H][T] | `qualifiers_of_with_object` |" in text
