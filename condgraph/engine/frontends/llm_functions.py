"""What the calls of an LLM query mean: families of synonyms, parameters, and their checks.

Language models write many names for one function, and many names for its parameters. `FUNCTIONS` lists every function with its synonyms;
`bind` turns a `Call` into a `Search` (get_information) or an `Application` (anything else) with operands in order and options by name.
A function that is not in the table stays a `Foreign` call: an LLM can answer it where one is configured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from condgraph.engine.errors import PlanError, UnknownNameError, nearest
from condgraph.engine.frontends.llm_tree import (
    NOWHERE,
    Argument,
    Call,
    CompareOp,
    Comparison,
    Expression,
    Infix,
    Item,
    Literal,
    Not,
    Span,
)

#: The parameters of get_information, as letters in the order of the table of 32 cases.
PARAMETERS: Final = {"H": "head_entity", "R": "relation", "T": "tail_entity", "K": "key", "V": "value"}
_TESTED: Final = ("tail_entity", "value")


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on an object or a qualifier: `op` and what to compare with."""

    op: CompareOp
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Search:
    """A bound get_information. `tail` and `value` hold one test, or several that must all hold; empty where not given."""

    head: Expression | None = None
    relation: Expression | None = None
    tail: tuple[Test, ...] = ()
    key: Expression | None = None
    value: tuple[Test, ...] = ()
    source: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def case(self) -> str:
        """Which of the five parameters are given, as letters: "HR", "RTKV"."""
        parts = (self.head, self.relation, self.tail, self.key, self.value)
        return "".join(letter for letter, part in zip(PARAMETERS, parts, strict=True) if part is not None and part != ())


@dataclass(frozen=True, slots=True)
class Application:
    """A bound call of a native function: its name in `FUNCTIONS`, its operands in order, its options by name."""

    function: str
    operands: tuple[Expression, ...]
    options: Mapping[str, Expression] = field(default_factory=dict)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A call of a function that the table does not know; `candidates` are the nearest names it has."""

    call: Call
    candidates: tuple[str, ...]

    def error(self) -> UnknownNameError:
        """What to raise where no LLM is there to answer it."""
        return UnknownNameError("function", self.call.name, candidates=self.candidates, span=self.call.span)


Bound: TypeAlias = Search | Application | Foreign


@dataclass(frozen=True, slots=True)
class Function:
    """A native function: how many operands it takes, its options with their own synonyms, and the names it goes by.

    `fixed` are options that a name implies: `earlier_date` is compare with operator "<".
    """

    name: str
    about: str
    operands: tuple[int, int]
    synonyms: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


MANY: Final = 99
_OPERATOR: Final = ("operator", "op", "comparison", "comparator", "comparison_operator", "operation", "option", "function")
_UNIT: Final = ("unit", "units")
_DELIMITER: Final = ("delimiter", "separator", "sep")
_NUMBER: Final = ("n", "count", "number", "k")
_GREATER: Final = {"operator": ">"}
_LESS: Final = {"operator": "<"}
_EQUAL: Final = {"operator": "="}
_YEARS: Final = {"unit": "years"}

_TABLE: Final = (
    Function("get_information", "search the graph", (0, 0)),
    Function("set_union", "members of any of the sets", (1, MANY), ("union",)),
    Function("set_intersection", "members of all sets", (1, MANY), ("intersection", "intersect", "check_intersection")),
    Function("set_difference", "members of the first set that are in no other", (1, MANY), ("except", "exclude")),
    Function("set_negation", "everything of the source that is not in the set", (1, 1), ("negation", "complement")),
    Function("keep", "members that satisfy a condition; times are clipped to it", (1, 1)),
    Function("count", "how many", (1, 1), ("set_count", "calculate_count", "count_set"), {"distinct": ("distinct", "unique")}),
    Function("sum", "the sum of all", (1, MANY), ("total", "calculate_sum", "sum_all")),
    Function("mean", "the mean of all", (1, MANY), ("average", "avg", "calculate_average", "calculate_mean")),
    Function("max", "the largest", (1, MANY), ("maximum", "set_max", "find_max", "highest", "largest", "latest", "get_max")),
    Function("min", "the smallest", (1, MANY), ("minimum", "set_min", "find_min", "lowest", "smallest", "earliest", "get_min")),
    Function(
        "most",
        "the one that appears most often",
        (1, 1),
        (
            *("mode", "most_frequent", "most_common", "most_occurrences", "find_max_frequency"),
            "get_highest_frequency_entity",
        ),
    ),
    Function("least", "the one that appears least often", (1, 1), ("least_frequent", "least_common", "fewest")),
    Function("argmax", "those that have the largest", (1, 1), ("arg_max",)),
    Function("argmin", "those that have the smallest", (1, 1), ("arg_min",)),
    Function("previous_row", "the row before", (1, 1), ("prev_row", "last_row_before")),
    Function("next_row", "the row after", (1, 1)),
    Function("first", "the first in order", (1, 1), ("first_row", "get_first")),
    Function("last", "the last in order", (1, 1), ("last_row", "get_last")),
    Function(
        "sort",
        "in ascending or descending order",
        (1, 1),
        ("order", "sorted"),
        {"order": ("order", "direction", "ascending", "descending")},
    ),
    Function("unique", "each text once", (1, 1), ("distinct", "distinct_values", "unique_values")),
    Function("nth_highest", "the n-th largest", (1, 1), ("second_max",), {"n": _NUMBER}, {"second_max": {"n": "2"}}),
    Function(
        "compare",
        "which of two is greater, or whether a comparison holds",
        (2, 2),
        (
            *(
                "comparison",
                "comparator",
                "compare_values",
                "compare_count",
                "compare_counts",
                "compare_dates",
                "compare_date",
                "set_comparison",
            ),
            *(
                "compare_quantity",
                "compare_numbers",
                "compare_greater",
                "compare_greater_than",
                "compare_less",
                "compare_less_than",
            ),
            *(
                "calculator.compare",
                "greater",
                "greater_than",
                "is_greater",
                "is_greater_than",
                "less",
                "less_than",
                "is_less",
                "is_less_than",
            ),
            *("if_greater_than", "if_less_than", "earlier_date", "later_date"),
        ),
        {"operator": _OPERATOR},
        {
            **dict.fromkeys(("compare_greater", "compare_greater_than", "greater", "greater_than"), _GREATER),
            **dict.fromkeys(("is_greater", "is_greater_than", "if_greater_than", "later_date"), _GREATER),
            **dict.fromkeys(("compare_less", "compare_less_than", "less", "less_than", "is_less"), _LESS),
            **dict.fromkeys(("is_less_than", "if_less_than", "earlier_date"), _LESS),
        },
    ),
    Function(
        "equal",
        "whether two are the same",
        (2, 2),
        ("equals", "is_equal", "set_equals", "check_equal", "check_equality", "is_same", "same"),
    ),
    Function(
        "is_in",
        "whether one contains the other",
        (2, 2),
        ("contains", "is_member", "check_membership", "set_contains", "is_subset", "in", "member"),
    ),
    Function("is_empty", "whether there is nothing", (1, 1), ("empty", "check_empty")),
    Function("exists", "whether there is anything", (1, 1), ("any", "not_empty", "is_not_empty")),
    Function(
        "if",
        "one of two results by a test",
        (2, 3),
        ("if_else", "if_then_else", "ifelse", "iif", "conditional", "if_greater", "if_less"),
    ),
    Function(
        "difference",
        "the first less the second; of times, the time between them",
        (1, 2),
        (
            *(
                "calculate_difference",
                "calc_difference",
                "subtract",
                "subtraction",
                "minus",
                "abs_difference",
                "absolute_difference",
            ),
            *(
                "year_difference",
                "years_between",
                "subtract_dates",
                "date_difference",
                "calculate_time_difference",
                "time_difference",
            ),
            *("calculate_time_interval", "duration_difference", "calculate_years"),
        ),
        {"unit": _UNIT},
        {
            **dict.fromkeys(("abs_difference", "absolute_difference"), {"absolute": "true"}),
            **dict.fromkeys(("year_difference", "years_between", "calculate_years"), _YEARS),
        },
    ),
    Function(
        "duration",
        "the time from a start to an end",
        (1, 2),
        ("calculate_duration", "get_duration", "time_duration", "calculate_time_span", "calculate_time_duration"),
        {"unit": _UNIT},
    ),
    Function("add", "the sum of the operands", (2, MANY), ("addition", "plus")),
    Function("multiply", "the product of the operands", (2, MANY), ("multiplication", "times", "product")),
    Function("divide", "the first divided by the second", (2, 2), ("division", "ratio", "quotient", "calculate_ratio")),
    Function("percentage", "the first as a percentage of the second", (2, 2), ("percent", "calculate_percentage")),
    Function("abs", "without its sign", (1, 1), ("absolute", "absolute_value")),
    Function("round", "rounded to so many digits", (1, 1), (), {"digits": ("digits", "decimals", "ndigits", "places")}),
    Function("extract_year", "the year of a time", (1, 1), ("get_year", "year", "year_of", "extract_years")),
    Function("extract_month", "the month of a time", (1, 1), ("get_month", "month", "month_of")),
    Function("extract_day", "the day of the month of a time", (1, 1), ("get_day", "day", "day_of")),
    Function(
        "extract_number",
        "the numbers in a text",
        (1, 1),
        ("extract_numbers", "extract_number_from_string", "parse_number", "int", "float", "value"),
    ),
    Function("split", "the parts of a text between delimiters", (1, 2), ("split_string",), {"delimiter": _DELIMITER}),
    Function("length", "how many characters a text has, or members a set", (1, 1), ("len", "calculate_length")),
)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType({function.name: function for function in _TABLE})
_BY_NAME: Final = {name: function for function in _TABLE for name in (function.name, *function.synonyms)}

#: Words for operators, as they are written in an `operator` option.
OPERATOR_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("=", "==", "equal", "equals", "equal_to", "same"), "="),
        **dict.fromkeys(("!=", "<>", "not_equal", "different"), "!="),
        **dict.fromkeys(
            (">", "greater", "greater_than", "larger", "larger_than", "higher", "highest", "more", "more_than", "max"), ">"
        ),
        **dict.fromkeys(("above", "later", "latest", "after", "bigger", "biggest", "longer", "longest", "most"), ">"),
        **dict.fromkeys(("<", "less", "less_than", "smaller", "smaller_than", "lower", "lowest", "fewer", "min", "below"), "<"),
        **dict.fromkeys(("earlier", "earliest", "before", "shorter", "shortest", "least", "fewest"), "<"),
        **dict.fromkeys((">=", "at_least", "greater_than_or_equal", "greater_or_equal"), ">="),
        **dict.fromkeys(("<=", "at_most", "less_than_or_equal", "less_or_equal"), "<="),
        **dict.fromkeys(("-", "subtract", "subtraction", "difference", "minus"), "-"),
        **dict.fromkeys(("+", "add", "addition", "plus", "sum"), "+"),
        **dict.fromkeys(("*", "multiply", "times"), "*"),
        **dict.fromkeys(("/", "divide", "division", "ratio"), "/"),
    }
)
#: `calculate(a=..., operator='-', b=...)` and its likes take the function from an option.
_CALCULATORS: Final = frozenset({"calculate", "calculator", "calculation", "compute"})
_ARITHMETIC: Final = {"-": "difference", "+": "add", "*": "multiply", "/": "divide"}
_TEST_NAMES: Final = frozenset({"condition", "test", "compare1", "if"})
_THEN_NAMES: Final = frozenset({"then", "true", "true_value", "set_true", "value_if_true", "result1", "if_true"})
_ELSE_NAMES: Final = frozenset({"else", "false", "false_value", "set_false", "value_if_false", "result2", "if_false", "otherwise"})
_NUMBERED: Final = re.compile(r"(head_entity|tail_entity|relation|key|value)\d+")


def function_names() -> Iterator[str]:
    """Every name that `bind` knows, synonyms included."""
    yield from _BY_NAME
    yield from sorted(_CALCULATORS)


def bind(call: Call) -> Bound:
    """Say which function a call means, and which argument is what.

    Raises `PlanError` for arguments that make no sense, and `UnknownNameError` for a parameter that get_information does not have.
    """
    name = call.name.casefold()
    if name == "get_information":
        return _search(call)
    if name in _CALCULATORS:
        return _calculation(call)
    function = _BY_NAME.get(name)
    if function is None:
        return Foreign(call, tuple(nearest(name, _BY_NAME)))
    if function.name == "if":
        return _conditional(call, name)
    if function.name == "keep":
        return _keep(call)
    return _apply(function, call, name)


# get_information


def _search(call: Call) -> Search:
    given: dict[str, Expression] = {}
    tests: dict[str, list[Test]] = {"tail_entity": [], "value": []}
    for argument in call.arguments:
        name = _parameter(argument)
        if _is_none(argument.value):
            continue
        _check_value(argument, name)
        if name in _TESTED:
            test = Test(argument.op, argument.value, argument.span)
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


def _check_bounds(name: str, tests: list[Test]) -> None:
    """Two different values for "=" on one object can both hold only by accident; that is two queries."""
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


# The other functions


def _apply(function: Function, call: Call, name: str) -> Application:
    operands: list[Expression] = []
    options: dict[str, Expression] = {
        option: Literal(text, span=call.span) for option, text in function.fixed.get(name, {}).items()
    }
    spellings = {spelling: option for option, several in function.options.items() for spelling in several}
    for argument in call.arguments:
        written = None if argument.name is None else argument.name.casefold()
        # `compare(count=..., operator='>', value=...)`: a name of an option may be that of an operand as well.
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
    if function.name == "compare" and len(operands) == 1 and isinstance(operands[0], (Comparison, Infix)):
        return Application("if", (operands[0],), options, call.span)
    if not fewest <= len(operands) <= most:
        wanted = f"{fewest}" if fewest == most else f"at least {fewest}" if most == MANY else f"{fewest} to {most}"
        raise PlanError(
            f"{call.name} takes {wanted} operand{'' if wanted == '1' else 's'}, not {len(operands)}",
            span=call.span,
            hint=f"{function.name}: {function.about}",
        )
    return Application(function.name, tuple(operands), options, call.span)


def _direction(argument: Argument) -> Expression:
    """The order of a sort as "ascending" or "descending", also from `ascending=False`."""
    name = (argument.name or "").casefold()
    if name not in ("ascending", "descending"):
        return argument.value
    yes = not (isinstance(argument.value, Literal) and argument.value.text.casefold() in ("false", "0", "no"))
    return Literal("ascending" if yes == (name == "ascending") else "descending", span=argument.span)


def _keep(call: Call) -> Application:
    """keep(set, value op x): the set is the operand, the conditions stay comparisons whose left side is that set."""
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
    tests = tuple(Comparison(argument.op, sets[0].value, argument.value, argument.span) for argument in conditions)
    return Application("keep", (sets[0].value, *tests), {}, call.span)


def _conditional(call: Call, name: str) -> Application:
    """if(test, a, b) in its many spellings; the operands are the test, then, otherwise."""
    roles: dict[str, list[Expression]] = {"test": [], "then": [], "else": []}
    rest: list[Argument] = []
    operator: str | None = {"if_greater": ">", "if_less": "<"}.get(name)
    for argument in call.arguments:
        written = (argument.name or "").casefold()
        if written in _OPERATOR and isinstance(argument.value, Literal):
            operator = operator_of(argument.value)
        elif written in _THEN_NAMES:
            roles["then"].append(argument.value)
        elif written in _ELSE_NAMES:
            roles["else"].append(argument.value)
        elif written in _TEST_NAMES or (argument.name is not None and isinstance(argument.value, Comparison)):
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
        roles["test"].append(Comparison(_compare_op(operator, call), values[0], values[1], call.span))
        values = values[2:]
    for role in ("test", "then", "else"):
        if not roles[role] and values:
            roles[role].append(values.pop(0))
    if values or any(len(found) > 1 for found in roles.values()) or not roles["test"] or (roles["then"] and not roles["else"]):
        raise PlanError(f"{call.name} takes a test and two results", span=call.span, hint="if(output_of_query1 > 5, 'yes', 'no')")
    return Application("if", tuple(found[0] for found in roles.values() if found), {}, call.span)


def _calculation(call: Call) -> Bound:
    """calculate(operator='-', a=..., b=...) is the function that its operator names."""
    named = [argument for argument in call.arguments if (argument.name or "").casefold() in _OPERATOR]
    rest = tuple(argument for argument in call.arguments if argument not in named)
    if len(named) == 1 and isinstance(named[0].value, Literal):
        word = named[0].value.text.casefold().replace(" ", "_")
        op = OPERATOR_WORDS.get(word)
        if op in _ARITHMETIC:
            return _apply(FUNCTIONS[_ARITHMETIC[op]], Call(call.name, rest, call.span), "")
        function = _BY_NAME.get(word)
        if function is not None and function.name not in ("get_information", "keep", "if", "compare"):
            return _apply(function, Call(call.name, rest, call.span), word)
        if op is not None:
            return _apply(FUNCTIONS["compare"], call, "compare")
    if len(call.arguments) == 1 and isinstance(call.arguments[0].value, Infix):
        return Application("if", (call.arguments[0].value,), {}, call.span)
    return Foreign(call, ("difference", "add", "divide", "compare"))


def operator_of(word: Literal) -> str:
    """The operator that a word names ("greater than" is ">"). Raises `UnknownNameError`."""
    op = OPERATOR_WORDS.get(word.text.strip().casefold().replace(" ", "_"))
    if op is None:
        raise UnknownNameError("operator", word.text, candidates=nearest(word.text, OPERATOR_WORDS), span=word.span)
    return op


def _compare_op(op: str, call: Call) -> CompareOp:
    for known in ("=", "!=", "<", ">", "<=", ">="):
        if op == known:
            return known  # type: ignore[return-value]
    raise PlanError(f"{op!r} compares nothing", span=call.span, hint="the operators are = != > < >= <=")
