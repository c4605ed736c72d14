"""The native functions of LLM queries as a table: names, operands, lowering rules, synonyms, options.

Language models write many names for one function and for its parameters. `lower.query` binds calls
and lowers them by this table, and the reference page is generated from it. A name that is not here
is not a native function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import Final

from condgraph.engine.algebra import Deviation, Mean, Median, Sum
from condgraph.engine.errors import nearest
from condgraph.languages.llm.lower import native, tables
from condgraph.languages.llm.lower.context import Rule


@dataclass(frozen=True, slots=True)
class Function:
    """A native function.

    `operands` are the least and the greatest number of operands, `lower` is the rule (None for
    get_information, which is lowered by its cases), and `options` map option names to their synonyms.
    `fixed` has the options that a name implies: `earlier_date` is compare with operator "<".
    """

    name: str
    about: str
    operands: tuple[int, int]
    lower: Rule | None
    synonyms: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    fixed: Mapping[str, Mapping[str, str]]


def _row(
    name: str,
    about: str,
    operands: tuple[int, int],
    lower: Rule | None,
    synonyms: str = "",
    options: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    fixed: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Function:
    return Function(name, about, operands, lower, tuple(synonyms.split()), options, fixed)


MANY: Final = 99
OPERATOR_OPTION: Final = (
    *("operator", "op", "comparison", "comparator", "comparison_operator", "operation", "option", "function", "operators"),
)
_UNIT: Final = ("unit", "units")
_DELIMITER: Final = ("delimiter", "separator", "sep")
_NUMBER: Final = ("n", "count", "number", "k")
_GREATER: Final = {"operator": ">"}
_LESS_THAN: Final = {"operator": "<"}
_OF_COUNT: Final = {"of": "count"}
_YEARS: Final = {"unit": "years"}
_SIGNED: Final = {"absolute": "false"}

_KEY: Final = ("key", "keys", "by", "group_by", "order_by", "sort_by", "column", "columns", "relation", "field", "attribute")
_AGGREGATE: Final = ("aggregate", "aggregation", "agg", "operation", "function", "func", "aggregate_function", "op", "operator")
_AGGREGATED: Final = ("of", "value", "on", "value_column", "aggregate_column", "agg_column", "measure", "target", "aggregate_on")
_COUNT: Final = {"aggregate": "count"}
_SKIPPED: Final = ("offset", "skip")
_ORDER: Final = ("order", "direction", "ascending", "descending")

TABLE: Final = (
    _row("get_information", "search the graph", (0, 0), None),
    _row("set_union", "members of any of the sets", (1, MANY), native.lower_set, "union"),
    _row("set_intersection", "members of all sets", (1, MANY), native.lower_set, "intersection intersect check_intersection"),
    _row("set_difference", "members of the first set that are in no other", (1, MANY), native.lower_set, "except exclude"),
    _row("set_negation", "everything of the source that is not in the set", (1, 1), native.lower_negation, "negation complement"),
    _row("keep", "members that satisfy a condition; times are clipped to it", (1, 1), native.lower_keep),
    _row("count", "how many", (1, 1), native.count, "set_count calculate_count count_set", {"distinct": ("distinct", "unique")}),
    _row("sum", "the sum of all", (1, MANY), native.total(Sum), "total calculate_sum sum_all"),
    _row("mean", "the mean of all", (1, MANY), native.total(Mean), "average avg calculate_average calculate_mean"),
    _row(
        "median",
        "the middle of all by size",
        (1, MANY),
        native.total(Median),
        "get_median calculate_median median_value middle_value",
    ),
    _row(
        "stdev",
        "the sample standard deviation of all",
        (1, MANY),
        native.total(Deviation),
        "std stddev stddev_samp standard_deviation sample_standard_deviation calculate_standard_deviation",
    ),
    _row("max", "the largest", (1, MANY), native.extreme("largest"), "maximum set_max find_max highest largest latest get_max"),
    _row("min", "the smallest", (1, MANY), native.extreme("smallest"), "minimum set_min find_min lowest smallest earliest get_min"),
    _row(
        "most",
        "the one that appears most often",
        (1, 1),
        native.most_frequent("largest"),
        "mode most_frequent most_common most_occurrences find_max_frequency get_highest_frequency_entity",
    ),
    _row(
        "least", "the one that appears least often", (1, 1), native.most_frequent("smallest"), "least_frequent least_common fewest"
    ),
    _row("argmax", "those that have the largest", (1, 1), native.carriers("largest"), "arg_max"),
    _row("argmin", "those that have the smallest", (1, 1), native.carriers("smallest"), "arg_min"),
    _row("previous_row", "the row before", (1, 1), native.neighbour(-1), "prev_row last_row_before"),
    _row("next_row", "the row after", (1, 1), native.neighbour(1)),
    _row("row_number", "the positions of rows in their table, from 1", (1, 1), native.row_number),
    _row("first", "the first in order", (1, 1), native.position(0), "first_row get_first"),
    _row("last", "the last in order", (1, 1), native.position(-1), "last_row get_last"),
    _row(
        "sort",
        "in ascending or descending order",
        (1, 1),
        native.sort,
        "order sorted",
        {"order": ("order", "direction", "ascending", "descending")},
    ),
    _row(
        "group_by",
        "a table: rows that have the same `key`, each group summed up by `aggregate` (count, sum, mean, ...) of `of`",
        (1, 4),
        tables.lower_group,
        "groupby group aggregate group_and_count count_by group_count aggregate_by",
        {"key": _KEY, "aggregate": _AGGREGATE, "of": _AGGREGATED, "n": ("n", "k", "number")},
        dict.fromkeys(("group_and_count", "count_by", "group_count"), _COUNT),
    ),
    _row(
        "having",
        "the rows of a table whose `key` (the last column) satisfies a condition",
        (1, 1),
        tables.lower_having,
        "filter_groups",
    ),
    _row(
        "order_by",
        "a table in the order of `key` (the last column), rows with the column",
        (1, 2),
        tables.lower_order,
        "orderby sort_by rank_by",
        {"key": _KEY, "order": _ORDER},
    ),
    _row(
        "limit", "so many rows of a table", (1, 2), tables.lower_limit, "take head", {"n": (*_NUMBER, "limit"), "offset": _SKIPPED}
    ),
    _row(
        "top",
        "the `n` rows with the largest `key`, as a table; ties by name",
        (1, 3),
        tables.lower_top,
        "top_n top_k topn topk get_top n_largest nlargest",
        {"n": (*_NUMBER, "top", "limit"), "key": _KEY},
    ),
    _row(
        "bottom",
        "the `n` rows with the smallest `key`, as a table; ties by name",
        (1, 3),
        tables.lower_top,
        "bottom_n bottom_k n_smallest nsmallest",
        {"n": (*_NUMBER, "bottom", "limit"), "key": _KEY},
    ),
    _row("unique", "each text once", (1, 1), native.unique, "distinct distinct_values unique_values"),
    _row("nth_highest", "the n-th largest", (1, 1), native.nth_highest, "second_max", {"n": _NUMBER}, {"second_max": {"n": "2"}}),
    _row(
        "compare",
        "which of two is greater, or whether a comparison holds",
        (2, 2),
        native.lower_compare,
        "comparison comparator compare_values compare_count compare_counts compare_dates compare_date set_comparison "
        "compare_quantity compare_numbers compare_greater compare_greater_than compare_less compare_less_than "
        "calculator.compare greater greater_than is_greater is_greater_than less less_than is_less is_less_than "
        "if_greater_than if_less_than earlier_date later_date",
        {"operator": OPERATOR_OPTION},
        {
            **dict.fromkeys(("compare_greater", "compare_greater_than", "greater", "greater_than"), _GREATER),
            **dict.fromkeys(("is_greater", "is_greater_than", "if_greater_than", "later_date"), _GREATER),
            **dict.fromkeys(("compare_less", "compare_less_than", "less", "less_than", "is_less"), _LESS_THAN),
            **dict.fromkeys(("is_less_than", "if_less_than", "earlier_date"), _LESS_THAN),
            **dict.fromkeys(("compare_count", "compare_counts"), _OF_COUNT),
        },
    ),
    _row(
        "equal",
        "whether two are the same",
        (2, 2),
        native.lower_equal,
        "equals is_equal set_equals check_equal check_equality is_same same",
    ),
    _row(
        "is_in",
        "whether one contains the other",
        (2, 2),
        native.lower_equal,
        "contains is_member check_membership set_contains is_subset in member",
    ),
    _row("is_empty", "whether there is nothing", (1, 1), native.lower_equal, "empty check_empty"),
    _row("exists", "whether there is anything", (1, 1), native.lower_equal, "any not_empty is_not_empty"),
    _row(
        "if",
        "one of two results by a test",
        (2, 3),
        native.lower_conditional,
        "if_else if_then_else ifelse iif conditional if_greater if_less",
    ),
    _row(
        "difference",
        "how far apart two are, without a sign (subtract keeps it); of times, the time between them, with its unit",
        (1, 2),
        native.lower_native,
        "calculate_difference calc_difference subtract subtraction minus abs_difference absolute_difference "
        "year_difference years_between subtract_dates date_difference calculate_time_difference time_difference "
        "calculate_time_interval duration_difference calculate_years",
        {"unit": _UNIT},
        {
            **dict.fromkeys(("subtract", "subtraction", "minus"), _SIGNED),
            **dict.fromkeys(("year_difference", "years_between", "calculate_years"), _YEARS),
        },
    ),
    _row(
        "duration",
        "the time from a start to an end",
        (1, 2),
        native.lower_native,
        "calculate_duration get_duration time_duration calculate_time_span calculate_time_duration",
        {"unit": _UNIT},
    ),
    _row(
        "distance",
        "metres between two points",
        (2, 2),
        native.lower_native,
        "calculate_distance geo_distance haversine",
        {"unit": _UNIT},
    ),
    _row("add", "the sum of the operands", (2, MANY), native.lower_native, "addition plus"),
    _row("multiply", "the product of the operands", (2, MANY), native.lower_native, "multiplication times product"),
    _row("divide", "the first divided by the second", (2, 2), native.lower_native, "division ratio quotient calculate_ratio"),
    _row("percentage", "the first as a percentage of the second", (2, 2), native.lower_native, "percent calculate_percentage"),
    _row("abs", "without its sign", (1, 1), native.lower_native, "absolute absolute_value"),
    _row(
        "round",
        "rounded to so many digits",
        (1, 1),
        native.lower_native,
        "",
        {"digits": ("digits", "decimals", "ndigits", "places")},
    ),
    _row("extract_year", "the year of a time", (1, 1), native.lower_part, "get_year year year_of extract_years"),
    _row("extract_month", "the month of a time", (1, 1), native.lower_part, "get_month month month_of"),
    _row("extract_day", "the day of the month of a time", (1, 1), native.lower_part, "get_day day day_of"),
    _row(
        "extract_number",
        "the numbers in a text",
        (1, 1),
        native.lower_part,
        "extract_numbers extract_number_from_string parse_number int float value",
    ),
    _row("split", "the parts of a text between delimiters", (1, 2), native.lower_native, "split_string", {"delimiter": _DELIMITER}),
    _row("length", "how many characters a text has, or members a set", (1, 1), native.lower_native, "len calculate_length"),
)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType({function.name: function for function in TABLE})
BY_NAME: Final[Mapping[str, Function]] = {name: function for function in TABLE for name in (function.name, *function.synonyms)}

#: Words in the names that models make up, and the function that they usually mean.
_SYNONYMS: Final = (
    ("info", "get_information"), ("search", "get_information"), ("lookup", "get_information"), ("retrieve", "get_information"),
    ("number", "count"), ("size", "count"), ("length", "count"), ("how_many", "count"),
    ("filter", "keep"), ("where", "keep"), ("select", "keep"), ("join", "set_intersection"), ("minus", "set_difference"),
)  # fmt: skip
_MAX_NEAR: Final = 6
#: From this similarity on, a name comes before what models usually mean.
_CLOSE: Final = 0.88


def near_functions(name: str) -> tuple[str, ...]:
    """Return the functions that an unknown name may mean.

    First a name with nearly the same spelling, then what models usually mean, then similar names; each
    by its own name.

    >>> near_functions("get_info")[0], near_functions("set_unoin")[0], near_functions("number")[0]
    ('get_information', 'set_union', 'count')
    """
    folded = name.casefold()
    usual = [function for word, function in _SYNONYMS if word in folded]
    similar = [BY_NAME[item].name for item in nearest(folded, BY_NAME, most=2 * _MAX_NEAR)]
    misspelled = [item for item in nearest(folded, BY_NAME, most=1) if SequenceMatcher(None, folded, item).ratio() > _CLOSE]
    return tuple(dict.fromkeys([*misspelled, *usual, *similar]))[:_MAX_NEAR]
