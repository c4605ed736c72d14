"""The native functions of LLM queries: their names, synonyms and options, as a table.

Language models write many names for one function and many for its parameters. Each row says how
many operands a function takes and which other names it goes by; `binding` applies the table to
calls. A name that is not here is no native function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import Final

from condgraph.engine.errors import nearest


@dataclass(frozen=True, slots=True)
class Function:
    """A native function: how many operands it takes, its options with their own synonyms, and the
    names it goes by.

    `fixed` are options that a name implies: `earlier_date` is compare with operator "<".
    """

    name: str
    about: str
    operands: tuple[int, int]
    synonyms: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


MANY: Final = 99
OPERATOR_OPTION: Final = (
    *("operator", "op", "comparison", "comparator", "comparison_operator", "operation", "option", "function", "operators"),
)
_UNIT: Final = ("unit", "units")
_DELIMITER: Final = ("delimiter", "separator", "sep")
_NUMBER: Final = ("n", "count", "number", "k")
_GREATER: Final = {"operator": ">"}
_LESS: Final = {"operator": "<"}
_COUNTS: Final = {"of": "count"}
_EQUAL: Final = {"operator": "="}
_YEARS: Final = {"unit": "years"}
_SIGNED: Final = {"absolute": "false"}

_KEY: Final = ("key", "keys", "by", "group_by", "order_by", "sort_by", "column", "columns", "relation", "field", "attribute")
_AGGREGATE: Final = ("aggregate", "aggregation", "agg", "operation", "function", "func", "aggregate_function", "op", "operator")
_AGGREGATED: Final = ("of", "value", "on", "value_column", "aggregate_column", "agg_column", "measure", "target", "aggregate_on")
_COUNTED: Final = {"aggregate": "count"}
_SKIPPED: Final = ("offset", "skip")
_ORDER: Final = ("order", "direction", "ascending", "descending")

TABLE: Final = (
    Function("get_information", "search the graph", (0, 0)),
    Function("set_union", "members of any of the sets", (1, MANY), ("union",)),
    Function("set_intersection", "members of all sets", (1, MANY), ("intersection", "intersect", "check_intersection")),
    Function("set_difference", "members of the first set that are in no other", (1, MANY), ("except", "exclude")),
    Function("set_negation", "everything of the source that is not in the set", (1, 1), ("negation", "complement")),
    Function("keep", "members that satisfy a condition; times are clipped to it", (1, 1)),
    Function("count", "how many", (1, 1), ("set_count", "calculate_count", "count_set"), {"distinct": ("distinct", "unique")}),
    Function("sum", "the sum of all", (1, MANY), ("total", "calculate_sum", "sum_all")),
    Function("mean", "the mean of all", (1, MANY), ("average", "avg", "calculate_average", "calculate_mean")),
    Function("median", "the middle of all by size", (1, MANY), ("get_median", "calculate_median", "median_value", "middle_value")),
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
    Function("row_number", "the positions of rows in their table, from 1", (1, 1)),
    Function("first", "the first in order", (1, 1), ("first_row", "get_first")),
    Function("last", "the last in order", (1, 1), ("last_row", "get_last")),
    Function(
        "sort",
        "in ascending or descending order",
        (1, 1),
        ("order", "sorted"),
        {"order": ("order", "direction", "ascending", "descending")},
    ),
    Function(
        "group_by",
        "a table: rows that have the same `key`, each group summed up by `aggregate` (count, sum, mean, ...) of `of`",
        (1, 4),
        ("groupby", "group", "aggregate", "group_and_count", "count_by", "group_count", "aggregate_by"),
        {"key": _KEY, "aggregate": _AGGREGATE, "of": _AGGREGATED, "n": ("n", "k", "number")},
        dict.fromkeys(("group_and_count", "count_by", "group_count"), _COUNTED),
    ),
    Function("having", "the rows of a table whose `key` (the last column) satisfies a condition", (1, 1), ("filter_groups",)),
    Function(
        "order_by",
        "a table in the order of `key` (the last column), rows with the column",
        (1, 2),
        ("orderby", "sort_by", "rank_by"),
        {"key": _KEY, "order": _ORDER},
    ),
    Function("limit", "so many rows of a table", (1, 2), ("take", "head"), {"n": (*_NUMBER, "limit"), "offset": _SKIPPED}),
    Function(
        "top",
        "the `n` rows with the largest `key`, as a table; ties by name",
        (1, 3),
        ("top_n", "top_k", "topn", "topk", "get_top", "n_largest", "nlargest"),
        {"n": (*_NUMBER, "top", "limit"), "key": _KEY},
    ),
    Function(
        "bottom",
        "the `n` rows with the smallest `key`, as a table; ties by name",
        (1, 3),
        ("bottom_n", "bottom_k", "n_smallest", "nsmallest"),
        {"n": (*_NUMBER, "bottom", "limit"), "key": _KEY},
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
        {"operator": OPERATOR_OPTION},
        {
            **dict.fromkeys(("compare_greater", "compare_greater_than", "greater", "greater_than"), _GREATER),
            **dict.fromkeys(("is_greater", "is_greater_than", "if_greater_than", "later_date"), _GREATER),
            **dict.fromkeys(("compare_less", "compare_less_than", "less", "less_than", "is_less"), _LESS),
            **dict.fromkeys(("is_less_than", "if_less_than", "earlier_date"), _LESS),
            **dict.fromkeys(("compare_count", "compare_counts"), _COUNTS),
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
        "how far apart two are, without a sign (subtract keeps it); of times, the time between them, with its unit",
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
            **dict.fromkeys(("subtract", "subtraction", "minus"), _SIGNED),
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

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType({function.name: function for function in TABLE})
BY_NAME: Final[Mapping[str, Function]] = {name: function for function in TABLE for name in (function.name, *function.synonyms)}

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

#: What models call things that the table has by other names, as parts of a name.
_MEANT: Final = (
    ("info", "get_information"), ("search", "get_information"), ("lookup", "get_information"), ("retrieve", "get_information"),
    ("number", "count"), ("size", "count"), ("length", "count"), ("how_many", "count"),
    ("filter", "keep"), ("where", "keep"), ("select", "keep"), ("join", "set_intersection"), ("minus", "set_difference"),
)  # fmt: skip
_MOST_NEAR: Final = 6
#: How like a name is that is taken before those that models usually mean.
_SURE: Final = 0.88


def near_functions(name: str) -> tuple[str, ...]:
    """The functions that a name may mean which none has: the name that it is but for a letter, what models
    usually call so, then those with a name like it, by their own names.

    >>> near_functions("get_info")[0], near_functions("set_unoin")[0], near_functions("number")[0]
    ('get_information', 'set_union', 'count')
    """
    folded = name.casefold()
    usual = [function for word, function in _MEANT if word in folded]
    alike = [BY_NAME[one].name for one in nearest(folded, BY_NAME, most=2 * _MOST_NEAR)]
    first = [one for one in nearest(folded, BY_NAME, most=1) if SequenceMatcher(None, folded, one).ratio() > _SURE]
    return tuple(dict.fromkeys([*first, *usual, *alike]))[:_MOST_NEAR]
