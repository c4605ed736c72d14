"""Binding of the arguments of get_information: which are head, relation, tail, key and value."""

from __future__ import annotations

import re
from typing import Final, cast

from condgraph.engine.errors import PlanError, UnknownNameError, nearest
from condgraph.languages.llm.functions import BY_NAME, FUNCTIONS, MANY, OPERATOR_OPTION, Function, near_functions
from condgraph.languages.llm.lower.literals import OPERATOR_WORDS, operator_of
from condgraph.languages.llm.syntax import tree

# -- bind search -------------------------------------------------------------------------------------
# What the arguments of get_information mean: each is one of its parameters, given once, and a
# condition only where one can be.


_TESTED: Final = ("tail_entity", "value")
_NUMBERED: Final = re.compile(r"(head_entity|tail_entity|relation|key|value)\d+")


def bind_search(call: tree.Call) -> tree.Search:
    """The search that a call of get_information means.

    Raises `PlanError` for arguments that make no sense, and `UnknownNameError` for a parameter that
    there is none of.
    """
    given: dict[str, tree.Expression] = {}
    tests: dict[str, list[tree.ColumnCondition]] = {"tail_entity": [], "value": []}
    for argument in call.arguments:
        name = _parameter(argument)
        if _is_none(argument.value):
            continue
        _check_value(argument, name)
        if name in _TESTED:
            test = tree.ColumnCondition(argument.op, argument.value, argument.span)
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
            "get_information without any condition",
            span=call.span,
            hint=f"give at least one of {', '.join(tree.PARAMETERS.values())}",
        )
    return tree.Search(
        given.get("head_entity"),
        given.get("relation"),
        tuple(tests["tail_entity"]),
        given.get("key"),
        tuple(tests["value"]),
        given.get("source"),
        call.span,
    )


def _parameter(argument: tree.Argument) -> str:
    names = [*tree.PARAMETERS.values(), "source"]
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


def _check_value(argument: tree.Argument, name: str) -> None:
    value = argument.value
    if isinstance(value, (tree.Comparison, tree.Not)) or (
        isinstance(value, tree.Infix) and not isinstance(value.left, (tree.Item, tree.Infix))
    ):
        kind = "a comparison" if isinstance(value, (tree.Comparison, tree.Not)) else f"an expression with {value.op!r}"
        raise PlanError(
            f"{kind} as {name}", span=value.span, hint="put a text between quotes; put a calculation in a query of its own"
        )


def _check_bounds(name: str, tests: list[tree.ColumnCondition]) -> None:
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


def _is_none(value: tree.Expression) -> bool:
    """An unquoted None is an argument that is not given, as in the signature of get_information."""
    return isinstance(value, tree.Literal) and not value.quoted and value.text in ("None", "null")


# -- binding -----------------------------------------------------------------------------------------
# `bind` turns a `Call` into a `Search` (get_information, see `bind_search`), an `Application` of a
# native function with its operands in order and its options by name, or a `Foreign` call that the
# table of `functions` does not have: an LLM can answer that one where one is configured.


#: `calculate(a=..., operator='-', b=...)` and its likes take the function from an option.
_CALCULATORS: Final = frozenset({"calculate", "calculator", "calculation", "compute"})
_ARITHMETIC: Final = {"-": "difference", "+": "add", "*": "multiply", "/": "divide"}
_TEST_NAMES: Final = frozenset({"condition", "test", "compare1", "if"})
_THEN_NAMES: Final = frozenset({"then", "true", "true_value", "set_true", "value_if_true", "result1", "if_true"})
_ELSE_NAMES: Final = frozenset({"else", "false", "false_value", "set_false", "value_if_false", "result2", "if_false", "otherwise"})


def bind(call: tree.Call) -> tree.Bound:
    """Say which function a call means, and which argument is what.

    Raises `PlanError` for arguments that make no sense, and `UnknownNameError` for a parameter that
    get_information does not have.
    """
    name = call.name.casefold()
    if name == "get_information":
        return bind_search(call)
    if name in _CALCULATORS:
        return _calculation(call)
    function = BY_NAME.get(name)
    # Models make up a `distance` of one set, which is none of two points.
    if function is None or (function.name == "distance" and len(call.arguments) < 2):
        return tree.Foreign(call, near_functions(name))
    if function.name == "if":
        return _conditional(call, name)
    if function.name == "keep":
        return _keep(call)
    if function.name == "having":
        return _having(call)
    return _apply(function, call, name)


def _apply(function: Function, call: tree.Call, name: str) -> tree.Application:
    operands: list[tree.Expression] = []
    options: dict[str, tree.Expression] = {
        option: tree.Literal(text, span=call.span) for option, text in function.fixed.get(name, {}).items()
    }
    spellings = {spelling: option for option, several in function.options.items() for spelling in several}
    for argument in call.arguments:
        written = None if argument.name is None else argument.name.casefold()
        # `compare(count=..., operator='>', value=...)`: a name of an option may be that of an
        # operand as well.
        option = None if written is None else spellings.get(written)
        if option is not None and (written not in ("count", "number", "order") or len(operands) >= function.operands[0]):
            if argument.op != "=":
                raise PlanError(
                    f"the operator {argument.op!r} on {argument.name}", span=argument.span, hint=f"{argument.name} takes '=' only"
                )
            options[option] = _direction(argument) if option == "order" else argument.value
            continue
        if (
            written in ("key", "relation", "condition", "group_by", "by", "exclude", "value")
            and function.operands == (1, 1)
            and operands
        ):
            raise PlanError(
                f"{call.name} takes no {argument.name}",
                span=argument.span,
                hint="write the condition as a query of its own, with get_information",
            )
        if argument.op != "=":
            raise PlanError(
                f"the operator {argument.op!r} on {argument.name}",
                span=argument.span,
                hint="keep(set='...', value>'...') takes a condition",
            )
        operands.append(argument.value)
    fewest, most = function.operands
    if function.name == "split" and len(operands) == 2:
        options["delimiter"] = operands.pop()
    if function.name == "compare" and len(operands) == 1 and isinstance(operands[0], (tree.Comparison, tree.Infix)):
        return tree.Application("if", (operands[0],), options, call.span)
    if function.name == "compare" and len(operands) == 1 and isinstance(operands[0], tree.Items):
        operands = list(operands[0].items)
    if not fewest <= len(operands) <= most:
        wanted = f"{fewest}" if fewest == most else f"at least {fewest}" if most == MANY else f"{fewest} to {most}"
        raise PlanError(
            f"{call.name} takes {wanted} operand{'' if wanted == '1' else 's'}, not {len(operands)}",
            span=call.span,
            hint=f"{function.name}: {function.about}",
        )
    return tree.Application(function.name, tuple(operands), options, call.span)


def _direction(argument: tree.Argument) -> tree.Expression:
    """The order of a sort as "ascending" or "descending", also from `ascending=False`."""
    name = (argument.name or "").casefold()
    if name not in ("ascending", "descending"):
        return argument.value
    yes = not (isinstance(argument.value, tree.Literal) and argument.value.text.casefold() in ("false", "0", "no"))
    return tree.Literal("ascending" if yes == (name == "ascending") else "descending", span=argument.span)


def _keep(call: tree.Call) -> tree.Application:
    """keep(set, value op x): the set is the operand, the conditions stay comparisons whose left
    side is that set.
    """
    sets = [argument for argument in call.arguments if argument.name is None or argument.name.casefold().startswith("set")]
    conditions = [argument for argument in call.arguments if argument not in sets]
    strange = [
        argument for argument in conditions if argument.name is None or argument.name.casefold() not in ("value", "tail_entity")
    ]
    if len(sets) != 1 or not conditions or strange or sets[0].op != "=":
        where = strange[0].span if strange else call.span
        raise PlanError(
            "keep takes one set and conditions on its values", span=where, hint="keep(set='output_of_query1', value>'2000')"
        )
    tests = tuple(tree.Comparison(argument.op, sets[0].value, argument.value, argument.span) for argument in conditions)
    return tree.Application("keep", (sets[0].value, *tests), {}, call.span)


def _having(call: tree.Call) -> tree.Application:
    """having(set, value > x), having(set, condition='count > 5'): the table is the operand, each
    comparison has it as its left side, and what is compared is an option.
    """
    operands: list[tree.Expression] = []
    options: dict[str, tree.Expression] = {}
    tests: list[tree.Expression] = []
    for argument in call.arguments:
        name = (argument.name or "").casefold()
        if name in ("condition", "having", "test"):
            tests.append(argument.value)
        elif argument.op != "=" or name in ("value", "tail_entity"):
            if name not in ("value", "tail_entity", "", "key"):
                options["key"] = tree.Literal(argument.name or "", span=argument.span)
            tests.append(tree.Comparison(argument.op, tree.Literal("", span=argument.span), argument.value, argument.span))
        elif name in ("key", "column", "by"):
            options["key"] = argument.value
        else:
            operands.append(argument.value)
    # having(output_of_query1, 'count > 5')
    if not tests and len(operands) == 2:
        tests.append(operands.pop())
    if len(operands) != 1 or not tests:
        hint = "having(set='output_of_query2', condition='count > 5')"
        raise PlanError("having takes one table and conditions on a column", span=call.span, hint=hint)
    return tree.Application("having", (operands[0], *tests), options, call.span)


def _conditional(call: tree.Call, name: str) -> tree.Application:
    """if(test, a, b) in its many spellings; the operands are the test, then, otherwise."""
    roles: dict[str, list[tree.Expression]] = {"test": [], "then": [], "else": []}
    rest: list[tree.Argument] = []
    operator: str | None = {"if_greater": ">", "if_less": "<"}.get(name)
    for argument in call.arguments:
        written = (argument.name or "").casefold()
        if written in OPERATOR_OPTION and isinstance(argument.value, tree.Literal):
            operator = operator_of(argument.value)
        elif written in _THEN_NAMES:
            roles["then"].append(argument.value)
        elif written in _ELSE_NAMES:
            roles["else"].append(argument.value)
        elif written in _TEST_NAMES or (argument.name is not None and isinstance(argument.value, tree.Comparison)):
            roles["test"].append(argument.value)
        elif argument.op != "=":
            raise PlanError(
                f"{argument.name} stands for nothing here",
                span=argument.span,
                hint="write which output is meant: if(output_of_query1 > 5, ...)",
            )
        else:
            rest.append(argument)
    values = [argument.value for argument in rest]
    if not roles["test"] and operator is not None and len(values) >= 2:
        roles["test"].append(tree.Comparison(_compare_op(operator, call), values[0], values[1], call.span))
        values = values[2:]
    for role in ("test", "then", "else"):
        if not roles[role] and values:
            roles[role].append(values.pop(0))
    if values or any(len(result) > 1 for result in roles.values()) or not roles["test"] or (roles["then"] and not roles["else"]):
        raise PlanError(f"{call.name} takes a test and two results", span=call.span, hint="if(output_of_query1 > 5, 'yes', 'no')")
    return tree.Application("if", tuple(result[0] for result in roles.values() if result), {}, call.span)


def _calculation(call: tree.Call) -> tree.Bound:
    """calculate(operator='-', a=..., b=...) is the function that its operator names."""
    named = [argument for argument in call.arguments if (argument.name or "").casefold() in OPERATOR_OPTION]
    rest = tuple(argument for argument in call.arguments if argument not in named)
    if len(named) == 1 and isinstance(named[0].value, tree.Literal):
        word = named[0].value.text.casefold().replace(" ", "_")
        op = OPERATOR_WORDS.get(word)
        if op in _ARITHMETIC:
            return _apply(FUNCTIONS[_ARITHMETIC[op]], tree.Call(call.name, rest, call.span), "subtract" if op == "-" else "")
        function = BY_NAME.get(word)
        if function is not None and function.name not in ("get_information", "keep", "if", "compare"):
            return _apply(function, tree.Call(call.name, rest, call.span), word)
        if op is not None:
            return _apply(FUNCTIONS["compare"], call, "compare")
    if len(call.arguments) == 1 and isinstance(call.arguments[0].value, tree.Infix):
        return tree.Application("if", (call.arguments[0].value,), {}, call.span)
    return tree.Foreign(call, ("difference", "add", "divide", "compare"))


def _compare_op(op: str, call: tree.Call) -> tree.CompareOp:
    if op in ("=", "!=", "<", ">", "<=", ">="):
        return cast(tree.CompareOp, op)
    raise PlanError(f"{op!r} compares nothing", span=call.span, hint="the operators are = != > < >= <=")
