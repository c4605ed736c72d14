"""Which function and which parameters the calls of LLM queries mean."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.engine.errors import CondgraphError, PlanError, UnknownNameError
from condgraph.languages.llm.functions import BY_NAME, FUNCTIONS, TABLE
from condgraph.languages.llm.lower.literals import OPERATOR_WORDS, operator_of
from condgraph.languages.llm.lower.query import bind
from condgraph.languages.llm.syntax.parse import parse_expression
from condgraph.languages.llm.syntax.tree import Application, Bound, Call, ColumnCondition, Comparison, Foreign, Literal, Search


def bound(text: str) -> Bound:
    call = parse_expression(text)
    assert isinstance(call, Call)
    return bind(call)


def applied(text: str) -> tuple[str, tuple[object, ...], dict[str, object]]:
    """Function, operands and options of a call, literals as their texts."""
    found = bound(text)
    assert isinstance(found, Application)
    options = {name: _plain(value) for name, value in found.options.items()}
    return found.function, tuple(_plain(operand) for operand in found.operands), options


def _plain(value: object) -> object:
    return value.text if isinstance(value, Literal) else value


def test_a_search() -> None:
    found = bound(
        "get_information(relation='Year', tail_entity>='1960', tail_entity<'1970', key='time', value=None, source='films')"
    )
    assert found == Search(
        relation=Literal("Year"),
        tail=(ColumnCondition(">=", Literal("1960")), ColumnCondition("<", Literal("1970"))),
        key=Literal("time"),
        source=Literal("films"),
    )
    assert isinstance(found, Search)
    assert found.case == "RTK"


def test_a_quoted_none_is_a_text_and_a_bare_one_is_nothing() -> None:
    assert bound("get_information(relation='Sent Home', tail_entity='None')") == Search(
        relation=Literal("Sent Home"), tail=(ColumnCondition("=", Literal("None")),)
    )
    assert bound("get_information(relation='Sent Home', head_entity=None)") == Search(relation=Literal("Sent Home"))


def test_the_same_argument_twice_is_one() -> None:
    found = bound("get_information(key='Cap', value>='600', key='Cap', value<='800', value<='800')")
    assert found == Search(key=Literal("Cap"), value=(ColumnCondition(">=", Literal("600")), ColumnCondition("<=", Literal("800"))))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("get_information()", "without any condition", "head_entity"),
        ("get_information(source='films')", "without any condition", "head_entity"),
        ("get_information(relation>'Year')", "the operator '>' on relation", "tail_entity and value"),
        ("get_information(head_entity!='x')", "the operator '!=' on head_entity", "tail_entity and value"),
        ("get_information(key<='2')", "the operator '<=' on key", "tail_entity and value"),
        ("get_information('Year', '2000')", "without a name", "relation"),
        ("get_information(relation='a', tail_entity='x', relation='b')", "relation is given twice", "set_intersection"),
        ("get_information(relation='a', tail_entity='x', tail_entity='y')", "tail_entity is given twice", "set_intersection"),
        ("get_information(relation='a', head_entity=(1>2))", "a comparison as head_entity", "query of its own"),
        ("get_information(relation='a', tail_entity=2003/04)", "'/' as tail_entity", "between quotes"),
        ("get_information(relation='a', head_entity1='x')", "'head_entity1'", "set_union"),
        ("get_information(relation='a', tail='x')", "'tail'", "nearest: 'tail_entity'"),
    ],
)
def test_what_get_information_does_not_take(text: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        bound(text)
    assert message in raised.value.message
    assert hint in str(raised.value)
    assert raised.value.span is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count(set='x')", ("count", ("x",), {})),
        ("COUNT(set='x')", ("count", ("x",), {})),
        ("count(set='x', distinct=True)", ("count", ("x",), {"distinct": "True"})),
        ("average(set='x')", ("mean", ("x",), {})),
        ("calculate_median(set='x')", ("median", ("x",), {})),
        ("mode(set='x')", ("most", ("x",), {})),
        ("max(set='x')", ("max", ("x",), {})),
        ("set_max(set1='x', set2='y')", ("max", ("x", "y"), {})),
        ("set_difference(set1='x', set2='y', set3='z')", ("set_difference", ("x", "y", "z"), {})),
        ("calculate_difference(value1='x', value2='y')", ("difference", ("x", "y"), {})),
        ("calculate_difference(set='x')", ("difference", ("x",), {})),
        ("subtract('x', 'y')", ("difference", ("x", "y"), {"absolute": "false"})),
        ("abs_difference(value1='x', value2='y')", ("difference", ("x", "y"), {})),
        ("year_difference(date1='x', date2='y')", ("difference", ("x", "y"), {"unit": "years"})),
        ("calculate_difference(start='x', end='y', unit='days')", ("difference", ("x", "y"), {"unit": "days"})),
        ("calculate(a='x', operator='-', b='y')", ("difference", ("x", "y"), {"absolute": "false"})),
        ("calculator(operation='subtraction', operand1='x', operand2='y')", ("difference", ("x", "y"), {"absolute": "false"})),
        ("Calculator(function='add', number='x', value='1')", ("add", ("x", "1"), {})),
        ("calculator(operation='min', operand1='x', operand2='y')", ("min", ("x", "y"), {})),
        ("calculate(comparison='greater', value1='x', value2='y')", ("compare", ("x", "y"), {"operator": "greater"})),
        ("compare(set1='x', set2='y')", ("compare", ("x", "y"), {})),
        ("compare(value1='x', operator='<', value2='y')", ("compare", ("x", "y"), {"operator": "<"})),
        ("Calculator.compare('x', 'y')", ("compare", ("x", "y"), {})),
        ("compare(count='x', operator='>', value='5')", ("compare", ("x", "5"), {"operator": ">"})),
        ("greater_than(value1='x', value2='y')", ("compare", ("x", "y"), {"operator": ">"})),
        ("if_less_than(count='x', value='20')", ("compare", ("x", "20"), {"operator": "<"})),
        ("earlier_date(date1='x', date2='y')", ("compare", ("x", "y"), {"operator": "<"})),
        ("sort(set='x', ascending=True)", ("sort", ("x",), {"order": "ascending"})),
        ("sort(set='x', descending=False)", ("sort", ("x",), {"order": "ascending"})),
        ("sort(set='x', order='descending')", ("sort", ("x",), {"order": "descending"})),
        ("nth_highest(set='x', n=2)", ("nth_highest", ("x",), {"n": "2"})),
        ("second_max(set='x')", ("nth_highest", ("x",), {"n": "2"})),
        ("split(string='x', delimiter='-')", ("split", ("x",), {"delimiter": "-"})),
        ("split('x', '-')", ("split", ("x",), {"delimiter": "-"})),
        ("row_number(x)", ("row_number", ("x",), {})),
        ("if(1 > 2, 'a', 'b')", ("if", (Comparison(">", Literal("1", False), Literal("2", False)), "a", "b"), {})),
        ("if(1 > 2)", ("if", (Comparison(">", Literal("1", False), Literal("2", False)),), {})),
        (
            "if_else(condition=(1 > 2), true_value='a', false_value='b')",
            ("if", (Comparison(">", Literal("1", False), Literal("2", False)), "a", "b"), {}),
        ),
        (
            "if(set1='x', operator='>', set2='y', then='a', else='b')",
            ("if", (Comparison(">", Literal("x"), Literal("y")), "a", "b"), {}),
        ),
        (
            "if_greater(set1='x', set2='y', value1='a', value2='b')",
            ("if", (Comparison(">", Literal("x"), Literal("y")), "a", "b"), {}),
        ),
        (
            "keep(set='x', value>'5', value<='9')",
            ("keep", ("x", Comparison(">", Literal("x"), Literal("5")), Comparison("<=", Literal("x"), Literal("9"))), {}),
        ),
    ],
)
def test_native_functions(text: str, expected: tuple[str, tuple[object, ...], dict[str, object]]) -> None:
    assert applied(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "count()",
        "count(set='x', key='y')",
        "count(set='x', group_by='y')",
        "count(set>'x')",
        "compare('x')",
        "compare('x', 'y', 'z')",
        "compare('x', 'y', operator>'z')",
        "keep(set='x')",
        "keep(value>'x')",
        "keep(set='x', key='y')",
        "if()",
        "if('x' = 'y', 'a', 'b', 'c')",
        "if(set1>'y', 'a', 'b')",
        "if(a='x', then='a')",
        "if(set1='x', operator='-', set2='y', then='a', else='b')",
        "previous_row('x', 'y')",
    ],
)
def test_arguments_that_make_no_sense(text: str) -> None:
    with pytest.raises(PlanError) as raised:
        bound(text)
    assert raised.value.span is not None
    assert raised.value.hint


def test_unknown_functions_are_foreign_and_know_their_neighbours() -> None:
    found = bound("calculate_differnce(set1='x', set2='y')")
    assert isinstance(found, Foreign)
    assert found.candidates[0] == "calculate_difference"
    assert "unknown function 'calculate_differnce'" in str(found.error())


@pytest.mark.parametrize(
    ("word", "op"), [("greater than", ">"), ("At least", ">="), ("<", "<"), (" earliest ", "<"), ("not_equal", "!=")]
)
def test_words_for_operators(word: str, op: str) -> None:
    assert operator_of(Literal(word)) == op


def test_unknown_words_for_operators() -> None:
    with pytest.raises(UnknownNameError, match="unknown operator 'graeter'"):
        operator_of(Literal("graeter"))


def test_every_name_means_one_function() -> None:
    names = Counter(name for function in TABLE for name in (function.name, *function.synonyms))
    assert [name for name, times in names.items() if times > 1] == []
    assert all(name == name.casefold() for name in names)
    for function in FUNCTIONS.values():
        assert set(function.fixed) <= {function.name, *function.synonyms}
        assert function.operands[0] <= function.operands[1]
    assert set(OPERATOR_WORDS.values()) == {"=", "!=", "<", ">", "<=", ">=", "-", "+", "*", "/"}


@given(
    st.sampled_from(sorted(BY_NAME)),
    st.lists(
        st.tuples(
            st.sampled_from(["", "set=", "value>", "n=", "operator=", "then=", "key="]),
            st.sampled_from(["'x'", "5", "(1>2)", "f(x)"]),
        ),
        max_size=5,
    ),
)
def test_binding_gives_something_or_a_typed_error(name: str, arguments: list[tuple[str, str]]) -> None:
    text = f"{name}({', '.join(left + right for left, right in arguments)})"
    try:
        found = bound(text)
    except CondgraphError:
        return
    if isinstance(found, Application):
        fewest, most = FUNCTIONS[found.function].operands
        assert found.function in ("if", "keep", "having") or fewest <= len(found.operands) <= most
