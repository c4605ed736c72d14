"""What the arguments of get_information mean: each is one of its parameters, given once, and a
condition only where one can be.
"""

from __future__ import annotations

import re
from typing import Final

from condgraph.engine.errors import PlanError, UnknownNameError, nearest
from condgraph.languages.llm.bound import PARAMETERS, ColumnCondition, Search
from condgraph.languages.llm.syntax.tree import Argument, Call, Comparison, Expression, Infix, Item, Literal, Not

_TESTED: Final = ("tail_entity", "value")
_NUMBERED: Final = re.compile(r"(head_entity|tail_entity|relation|key|value)\d+")


def bind_search(call: Call) -> Search:
    """The search that a call of get_information means.

    Raises `PlanError` for arguments that make no sense, and `UnknownNameError` for a parameter that
    there is none of.
    """
    given: dict[str, Expression] = {}
    tests: dict[str, list[ColumnCondition]] = {"tail_entity": [], "value": []}
    for argument in call.arguments:
        name = _parameter(argument)
        if _is_none(argument.value):
            continue
        _check_value(argument, name)
        if name in _TESTED:
            test = ColumnCondition(argument.op, argument.value, argument.span)
            if test not in tests[name]:
                tests[name].append(test)
            continue
        if argument.op != "=":
            raise PlanError(
                f"the operator {argument.op!r} on {name}",
                span=argument.span,
                hint=f"{name} takes '=' only; tail_entity and value take = != > < >= <=",
            )
        if given.setdefault(name, argument.value) != argument.value:
            raise PlanError(
                f"{name} is given twice, with different values",
                span=argument.span,
                hint="write a query for each, then set_intersection or set_union",
            )
    for name, several in tests.items():
        _check_bounds(name, several)
    if not given.keys() - {"source"} and not any(tests.values()):
        raise PlanError(
            "get_information without any condition", span=call.span, hint=f"give at least one of {', '.join(PARAMETERS.values())}"
        )
    return Search(
        given.get("head_entity"),
        given.get("relation"),
        tuple(tests["tail_entity"]),
        given.get("key"),
        tuple(tests["value"]),
        given.get("source"),
        call.span,
    )


def _parameter(argument: Argument) -> str:
    names = [*PARAMETERS.values(), "source"]
    if argument.name is None:
        raise PlanError(
            "an argument of get_information without a name", span=argument.span, hint=f"write which one it is: {', '.join(names)}"
        )
    name = argument.name.casefold()
    if name in names:
        return name
    numbered = _NUMBERED.fullmatch(name)
    hint = f"several values for {numbered[1]} are the output of a query before, or a set_union" if numbered else None
    if hint is None:
        hint = f"the parameters are {', '.join(names)}; a time is key='time', value='2003'"
    raise UnknownNameError(
        "parameter of get_information", argument.name, candidates=nearest(name, names), span=argument.span, hint=hint
    )


def _check_value(argument: Argument, name: str) -> None:
    value = argument.value
    if isinstance(value, (Comparison, Not)) or (isinstance(value, Infix) and not isinstance(value.left, (Item, Infix))):
        kind = "a comparison" if isinstance(value, (Comparison, Not)) else f"an expression with {value.op!r}"
        raise PlanError(
            f"{kind} as {name}", span=value.span, hint="put a text between quotes; put a calculation in a query of its own"
        )


def _check_bounds(name: str, tests: list[ColumnCondition]) -> None:
    """Two different values for "=" on one object can both hold only by accident; that is two
    queries.
    """
    equal = [test for test in tests if test.op == "="]
    if len(equal) > 1:
        raise PlanError(
            f"{name} is given twice, with different values",
            span=equal[1].span,
            hint="write a query for each, then set_intersection or set_union",
        )


def _is_none(value: Expression) -> bool:
    """An unquoted None is an argument that is not given, as in the signature of get_information."""
    return isinstance(value, Literal) and not value.quoted and value.text in ("None", "null")
