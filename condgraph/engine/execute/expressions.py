"""Evaluation of expressions over rows (`algebra.expressions`) in process: each is compiled once to a
closure, which is called with the terms of a row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cmp_to_key
from typing import Any, Final, TypeAlias

from condgraph.engine import temporal
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.bounds import check
from condgraph.engine.errors import PlanError, shortened
from condgraph.engine.execute.functions import FUNCTIONS, GRAPH_FUNCTIONS, integer_of
from condgraph.engine.execute.terms import EntityAt, GraphTerms, PathAt, StatementAt, type_name
from condgraph.engine.units import conversions
from condgraph.engine.values import Quantity, Time

#: What an expression becomes: from the terms of a row, by the places of their variables, to its value.
Evaluator: TypeAlias = Callable[[Sequence[Any]], Any]

_NUMBERS: Final = frozenset((int, float, Decimal))
#: Steps of `range`, comprehensions and the like between two looks at the clock.
_SOME: Final = 4096


# -- Equality and order ------------------------------------------------------------------------------


def equal(a: Any, b: Any) -> bool | None:
    """Whether two values are equal, None where that is not known."""
    if a is None or b is None:
        return None
    one, two = type(a), type(b)
    if one is two:
        if one is list:
            return _equal_lists(a, b)
        if one is dict:
            return _equal_maps(a, b)
        if one is Time:
            return bool(b.start <= a.start and a.end <= b.end)
        if one is Quantity:
            pair = _alike(a, b)
            return pair is not None and pair[0] == pair[1]
        return bool(a == b)
    if one in _NUMBERS and two in _NUMBERS:
        return bool(a == b)
    if one is Time or two is Time:
        pair = _times(a, b)
        return pair is not None and pair[1].start <= pair[0].start and pair[0].end <= pair[1].end
    return False


def _equal_lists(a: list[Any], b: list[Any]) -> bool | None:
    if len(a) != len(b):
        return False
    result: bool | None = True
    for x, y in zip(a, b, strict=True):
        same = equal(x, y)
        if same is False:
            return False
        if same is None:
            result = None
    return result


def _equal_maps(a: dict[str, Any], b: dict[str, Any]) -> bool | None:
    if a.keys() != b.keys():
        return False
    return _equal_lists(list(a.values()), [b[key] for key in a])


def _alike(a: Quantity, b: Quantity) -> tuple[Any, Any] | None:
    """The numbers of two quantities in one unit; None where they have none."""
    if a.unit == b.unit:
        return a.number, b.number
    other = conversions(b, [a.unit])
    return (a.number, other[0].number) if other else None


def _times(a: Any, b: Any) -> tuple[Time, Time] | None:
    """Two values as intervals: a year may be an integer; None where one is no time."""
    one, two = temporal.interval(a), temporal.interval(b)
    return None if one is None or two is None else (one, two)


def less(a: Any, b: Any) -> bool | None:
    """Whether a value is before another; None where they have no order."""
    one, two = type(a), type(b)
    if (one is two and one in (int, str, float)) or (one in _NUMBERS and two in _NUMBERS):
        return bool(a < b)
    if one is two:
        if one is bool:
            return bool(a < b)
        if one is list:
            return _less_lists(a, b)
        if one is Quantity:
            pair = _alike(a, b)
            return None if pair is None else bool(pair[0] < pair[1])
        if one in temporal.ORDERED:
            return bool(a < b)
    pair_of_times = _times(a, b) if Time in (one, two) else None
    return None if pair_of_times is None else pair_of_times[0].end <= pair_of_times[1].start


def _less_lists(a: list[Any], b: list[Any]) -> bool | None:
    for x, y in zip(a, b, strict=False):
        same = equal(x, y)
        if same is None:
            return None
        if not same:
            return less(x, y)
    return len(a) < len(b)


def compare(operator: str, a: Any, b: Any) -> bool | None:
    """Two values compared with three-valued logic (`Comparison`)."""
    if a is None or b is None:
        return None
    if operator == "=":
        return equal(a, b)
    if operator == "<>":
        same = equal(a, b)
        if same is None or Time not in (type(a), type(b)):
            return None if same is None else not same
        pair = _times(a, b)
        return pair is None or pair[0].end <= pair[1].start or pair[1].end <= pair[0].start
    if operator in (">", ">="):
        operator, a, b = "<" if operator == ">" else "<=", b, a
    before = less(a, b)
    if before or operator == "<":
        return before
    if before is None or type(a) is float or type(b) is float:
        # NaN is not above or below anything, and equal to nothing.
        return None if before is None else bool(a <= b)
    return equal(a, b)


#: The place of types in the order of all values.
_RANK: Final[dict[type, int]] = {
    dict: 0, EntityAt: 1, StatementAt: 2, list: 3, PathAt: 4,
    temporal.ZonedDateTime: 5, temporal.LocalDateTime: 6, Time: 7, temporal.ZonedTime: 8, temporal.LocalTime: 9,
    temporal.Duration: 10, str: 11, bool: 12, int: 13, float: 13, Decimal: 13, Quantity: 14,
}  # fmt: skip


def _rank(value: Any) -> int:
    if value is None:
        return 99
    rank = _RANK.get(type(value), 98)
    return 15 if rank == 13 and value != value else rank


def total_compare(a: Any, b: Any) -> int:
    """-1, 0 or 1 by the order of all values: maps, entities, statements, lists, paths, times, texts,
    truth values, numbers, NaN, null; lists and maps item by item.
    """
    one, two = _rank(a), _rank(b)
    if one != two:
        return -1 if one < two else 1
    if one in (99, 98, 15):
        return 0
    if one == 0:
        left, right = sorted(a.items()), sorted(b.items())
        keys = [key for key, _ in left], [key for key, _ in right]
        return (keys[0] > keys[1]) - (keys[0] < keys[1]) or _compare_items([v for _, v in left], [v for _, v in right])
    if one == 3:
        return _compare_items(a, b)
    if one == 14:
        pair = _alike(a, b)
        left_key, right_key = (a.unit, b.unit) if pair is None else pair
    elif one in (1, 2, 4, 10):
        left_key, right_key = a.order, b.order
    else:
        left_key, right_key = a, b
    return int(left_key > right_key) - int(left_key < right_key)


def _compare_items(a: Sequence[Any], b: Sequence[Any]) -> int:
    for x, y in zip(a, b, strict=False):
        if result := total_compare(x, y):
            return result
    return (len(a) > len(b)) - (len(a) < len(b))


#: A key by which Python sorts terms in the order of all values.
order_key: Final = cmp_to_key(total_compare)


def same_key(value: Any) -> Any:
    """A hashable key, equal for values that are one in `DISTINCT` and groups: null is null, and NaN is
    NaN.
    """
    kind = type(value)
    if kind in _NUMBERS:
        return ("number", value) if value == value else ("nan",)
    if kind is list:
        return ("list", *map(same_key, value))
    if kind is dict:
        return ("map", *sorted((key, same_key(item)) for key, item in value.items()))
    return kind, value


# -- Compilation -------------------------------------------------------------------------------------


def _wrong(what: str, *values: Any) -> PlanError:
    return PlanError(f"{what} is not defined for {' and '.join(type_name(value) for value in values)}")


class Compiler:
    """Compiles the expressions of one operator: `places` are those of the variables in a row."""

    def __init__(self, places: Mapping[str, int], graph: GraphTerms) -> None:
        self._places = dict(places)
        self._width = max(self._places.values(), default=-1) + 1
        self._graph = graph

    def __call__(self, expression: ex.Expression) -> Evaluator:
        """The closure of an expression; raises `PlanError` for what is no expression of a row."""
        build: Any = _BUILD.get(type(expression))
        if build is None:
            raise PlanError(f"{type(expression).__name__} is no expression over one row")
        result: Evaluator = build(self, expression)
        return result

    def _variable(self, e: ex.Variable) -> Evaluator:
        place = self._places.get(e.name)
        if place is None:
            return lambda row: None
        return lambda row: row[place]

    def _constant(self, e: ex.Constant) -> Evaluator:
        value = e.value
        return lambda row: value

    def _property(self, e: ex.Property) -> Evaluator:
        of, key, graph = self(e.of), e.key, self._graph
        return lambda row: graph.value(of(row), key)

    def _has_concept(self, e: ex.HasConcept) -> Evaluator:
        of, names, graph = self(e.of), e.names, self._graph
        return lambda row: graph.has_concept(of(row), names)

    def _call(self, e: ex.Call) -> Evaluator:
        arguments = [self(argument) for argument in e.arguments]
        kind = e.name.partition(".")[0]
        if not arguments and (kind in temporal.MAKERS or e.name == "timestamp"):
            # The same moment for all rows.
            moment = self._graph.clock
            value = moment // 1_000_000 if e.name == "timestamp" else temporal.now(kind, moment)
            return lambda row: value
        if e.name in GRAPH_FUNCTIONS:
            function: Any = getattr(self._graph, GRAPH_FUNCTIONS[e.name])
        else:
            function = FUNCTIONS[e.name]
        nulls = ex.FUNCTIONS[e.name].nulls
        if len(arguments) == 1 and not nulls:
            (only,) = arguments

            def single(row: Sequence[Any]) -> Any:
                value = only(row)
                return None if value is None else function(value)

            return single

        def several(row: Sequence[Any]) -> Any:
            values = [argument(row) for argument in arguments]
            return None if not nulls and None in values else function(*values)

        return several

    def _and(self, e: ex.And) -> Evaluator:
        operands = [self(one) for one in e.operands]

        def both(row: Sequence[Any]) -> bool | None:
            result: bool | None = True
            for operand in operands:
                value = operand(row)
                if value is False:
                    return False
                if value is None:
                    result = None
                elif value is not True:
                    raise _wrong("AND", value)
            return result

        return both

    def _or(self, e: ex.Or) -> Evaluator:
        operands = [self(one) for one in e.operands]

        def either(row: Sequence[Any]) -> bool | None:
            result: bool | None = False
            for operand in operands:
                value = operand(row)
                if value is True:
                    return True
                if value is None:
                    result = None
                elif value is not False:
                    raise _wrong("OR", value)
            return result

        return either

    def _xor(self, e: ex.Xor) -> Evaluator:
        left, right = self(e.left), self(e.right)

        def one(row: Sequence[Any]) -> bool | None:
            a, b = left(row), right(row)
            for value in (a, b):
                if value is not None and type(value) is not bool:
                    raise _wrong("XOR", value)
            return None if a is None or b is None else a is not b

        return one

    def _not(self, e: ex.Not) -> Evaluator:
        of = self(e.of)

        def opposite(row: Sequence[Any]) -> bool | None:
            value = of(row)
            if value is not None and type(value) is not bool:
                raise _wrong("NOT", value)
            return None if value is None else not value

        return opposite

    def _is_null(self, e: ex.IsNull) -> Evaluator:
        of = self(e.of)
        return lambda row: of(row) is None

    def _comparison(self, e: ex.Comparison) -> Evaluator:
        left, right, operator = self(e.left), self(e.right), e.operator
        if operator == "=":
            return lambda row: equal(left(row), right(row))
        return lambda row: compare(operator, left(row), right(row))

    def _arithmetic(self, e: ex.Arithmetic) -> Evaluator:
        left, right, compute = self(e.left), self(e.right), _ARITHMETIC[e.operator]

        def computed(row: Sequence[Any]) -> Any:
            a, b = left(row), right(row)
            return None if a is None or b is None else compute(a, b)

        return computed

    def _negative(self, e: ex.Negative) -> Evaluator:
        of = self(e.of)

        def negative(row: Sequence[Any]) -> Any:
            value = of(row)
            if value is None:
                return None
            if type(value) is Quantity:
                return Quantity(-value.number, value.unit)
            if type(value) in _NUMBERS or type(value) is temporal.Duration:
                return -value
            raise _wrong("-", value)

        return negative

    def _text_test(self, e: ex.TextTest) -> Evaluator:
        left, right, holds = self(e.left), self(e.right), _TEXT_TESTS[e.operator]

        def test(row: Sequence[Any]) -> bool | None:
            a, b = left(row), right(row)
            return holds(a, b) if type(a) is str and type(b) is str else None

        return test

    def _in(self, e: ex.In) -> Evaluator:
        item, items = self(e.item), self(e.items)

        def within(row: Sequence[Any]) -> bool | None:
            value, found = item(row), items(row)
            if found is None:
                return None
            if type(found) is not list:
                raise _wrong("IN", found)
            result: bool | None = False
            for other in found:
                same = equal(value, other)
                if same:
                    return True
                if same is None:
                    result = None
            return result

        return within

    def _list(self, e: ex.ListOf) -> Evaluator:
        items = [self(item) for item in e.items]
        return lambda row: [item(row) for item in items]

    def _map(self, e: ex.MapOf) -> Evaluator:
        items = [(key, self(value)) for key, value in e.items]
        return lambda row: {key: value(row) for key, value in items}

    def _index(self, e: ex.Index) -> Evaluator:
        of, index, graph = self(e.of), self(e.index), self._graph

        def item(row: Sequence[Any]) -> Any:
            value, at = of(row), index(row)
            if value is None or at is None:
                return None
            if type(value) is list:
                if type(at) is not int:
                    raise _wrong("an index of a list", at)
                return value[at] if -len(value) <= at < len(value) else None
            if type(at) is not str:
                raise _wrong("[]", value, at)
            return graph.value(value, at)

        return item

    def _slice(self, e: ex.Slice) -> Evaluator:
        of = self(e.of)
        start = None if e.start is None else self(e.start)
        stop = None if e.stop is None else self(e.stop)

        def part(row: Sequence[Any]) -> Any:
            value = of(row)
            if value is None:
                return None
            if type(value) is not list:
                raise _wrong("a slice", value)
            first = 0 if start is None else start(row)
            last = len(value) if stop is None else stop(row)
            if first is None or last is None:
                return None
            return value[integer_of(first, "a slice") : integer_of(last, "a slice")]

        return part

    def _case(self, e: ex.Case) -> Evaluator:
        branches = [(self(condition), self(value)) for condition, value in e.branches]
        otherwise = self(e.otherwise)
        if e.operand is not None:
            operand = self(e.operand)

            def simple(row: Sequence[Any]) -> Any:
                value = operand(row)
                for condition, result in branches:
                    if equal(value, condition(row)):
                        return result(row)
                return otherwise(row)

            return simple

        def searched(row: Sequence[Any]) -> Any:
            for condition, result in branches:
                if condition(row) is True:
                    return result(row)
            return otherwise(row)

        return searched

    def _inside(self, *names: str) -> Compiler:
        """A compiler for what is evaluated with further variables, behind those of the row."""
        places = {name: self._width + at for at, name in enumerate(names)}
        return Compiler(self._places | places, self._graph)

    def _padded(self, row: Sequence[Any], *items: Any) -> list[Any]:
        return [*row[: self._width], *[None] * (self._width - len(row)), *items]

    def _comprehension(self, e: ex.ListComprehension) -> Evaluator:
        items, inside = self(e.items), self._inside(e.variable)
        where = None if e.where is None else inside(e.where)
        result = None if e.result is None else inside(e.result)

        def values(row: Sequence[Any]) -> Any:
            found = _list_of(items(row))
            if found is None:
                return None
            out = []
            for at, item in enumerate(found):
                if not at % _SOME:
                    check()
                inner = self._padded(row, item)
                if where is None or where(inner) is True:
                    out.append(item if result is None else result(inner))
            return out

        return values

    def _quantified(self, e: ex.Quantified) -> Evaluator:
        items, where, kind = self(e.items), self._inside(e.variable)(e.where), e.quantifier

        def holds(row: Sequence[Any]) -> bool | None:
            found = _list_of(items(row))
            if found is None:
                return None
            true = unknown = 0
            for at, item in enumerate(found):
                if not at % _SOME:
                    check()
                value = where(self._padded(row, item))
                if value is True:
                    if kind == "any" or kind == "none":
                        return kind == "any"
                    true += 1
                elif value is None:
                    unknown += 1
                elif value is not False:
                    raise _wrong(f"{kind}()", value)
                elif kind == "all":
                    return False
            if kind == "single":
                return false_or(true == 1, unknown) if true < 2 else False
            return None if unknown else kind != "any"

        def false_or(single: bool, unknown: int) -> bool | None:
            return None if unknown else single

        return holds

    def _reduce(self, e: ex.Reduce) -> Evaluator:
        initial, items = self(e.initial), self(e.items)
        result = self._inside(e.accumulator, e.variable)(e.result)

        def last(row: Sequence[Any]) -> Any:
            found, value = _list_of(items(row)), initial(row)
            if found is None:
                return None
            for at, item in enumerate(found):
                if not at % _SOME:
                    check()
                value = result(self._padded(row, value, item))
            return value

        return last


def _list_of(value: Any) -> list[Any] | None:
    if value is None or isinstance(value, list):
        return value
    raise _wrong("a list is needed, which this", value)


_BUILD: Final[dict[type, Callable[[Any, Any], Evaluator]]] = {
    ex.Variable: Compiler._variable,
    ex.Constant: Compiler._constant,
    ex.Property: Compiler._property,
    ex.HasConcept: Compiler._has_concept,
    ex.Call: Compiler._call,
    ex.And: Compiler._and,
    ex.Or: Compiler._or,
    ex.Xor: Compiler._xor,
    ex.Not: Compiler._not,
    ex.IsNull: Compiler._is_null,
    ex.Comparison: Compiler._comparison,
    ex.Arithmetic: Compiler._arithmetic,
    ex.Negative: Compiler._negative,
    ex.TextTest: Compiler._text_test,
    ex.In: Compiler._in,
    ex.ListOf: Compiler._list,
    ex.MapOf: Compiler._map,
    ex.Index: Compiler._index,
    ex.Slice: Compiler._slice,
    ex.Case: Compiler._case,
    ex.ListComprehension: Compiler._comprehension,
    ex.Quantified: Compiler._quantified,
    ex.Reduce: Compiler._reduce,
}


# -- Operators ---------------------------------------------------------------------------------------


def _plain(a: Any, b: Any) -> tuple[Any, Any]:
    """Two numbers that Python computes with: a decimal next to a float is one."""
    if type(a) is Decimal and type(b) is float:
        return float(a), b
    return (a, float(b)) if type(a) is float and type(b) is Decimal else (a, b)


def add_values(a: Any, b: Any) -> Any:
    """The sum of two values (`Arithmetic`)."""
    one, two = type(a), type(b)
    if one in _NUMBERS and two in _NUMBERS:
        a, b = _plain(a, b)
        return a + b
    if one is list:
        return a + b if two is list else [*a, b]
    if two is list:
        return [a, *b]
    if one is str and two is str:
        return a + b
    if (one is str and two in _NUMBERS) or (two is str and one in _NUMBERS):
        return f"{FUNCTIONS['tostring'](a)}{FUNCTIONS['tostring'](b)}"
    if one is Quantity and two is Quantity:
        pair = _alike(a, b)
        if pair is not None:
            return Quantity(sum(_plain(*pair)), a.unit)
    result = temporal.add(a, b)
    if result is None:
        raise _wrong("+", a, b)
    return result


def _subtract(a: Any, b: Any) -> Any:
    one, two = type(a), type(b)
    if one in _NUMBERS and two in _NUMBERS:
        a, b = _plain(a, b)
        return a - b
    if one is Quantity and two is Quantity:
        pair = _alike(a, b)
        if pair is not None:
            x, y = _plain(*pair)
            return Quantity(x - y, a.unit)
    result = temporal.add(a, -b) if two is temporal.Duration else None
    if result is None:
        raise _wrong("-", a, b)
    return result


def _multiply(a: Any, b: Any) -> Any:
    one, two = type(a), type(b)
    if one in _NUMBERS and two in _NUMBERS:
        a, b = _plain(a, b)
        return a * b
    for x, y in ((a, b), (b, a)):
        if type(y) in _NUMBERS:
            if type(x) is Quantity:
                return Quantity(_multiply(x.number, y), x.unit)
            if type(x) is temporal.Duration:
                return x.times(y)
    raise _wrong("*", a, b)


def _divide(a: Any, b: Any) -> Any:
    one, two = type(a), type(b)
    if one is int and two is int:
        if b == 0:
            raise PlanError("an integer is divided by 0")
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) is (b < 0) else -quotient
    if one in _NUMBERS and two in _NUMBERS:
        x, y = float(a), float(b)
        if y == 0:
            return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)
        return x / y
    if one is Quantity and two in _NUMBERS:
        return Quantity(_divide(float(a.number), b), a.unit)
    if one is Quantity and two is Quantity:
        pair = _alike(a, b)
        if pair is not None:
            return _divide(float(pair[0]), float(pair[1]))
    if one is temporal.Duration and two in _NUMBERS and b:
        return a.times(b, divided=True)
    raise _wrong("/", a, b)


def _remainder(a: Any, b: Any) -> Any:
    one, two = type(a), type(b)
    if one is int and two is int:
        if b == 0:
            raise PlanError("the remainder of a division by 0")
        rest = abs(a) % abs(b)
        return -rest if a < 0 else rest
    if one in _NUMBERS and two in _NUMBERS:
        return math.nan if not b or math.isinf(a) else math.fmod(a, b)
    raise _wrong("%", a, b)


def _power(a: Any, b: Any) -> float:
    if type(a) in _NUMBERS and type(b) in _NUMBERS:
        try:
            result = float(a) ** float(b)
        except ZeroDivisionError:
            return math.inf
        except OverflowError:
            return math.inf
        return result if isinstance(result, float) else math.nan
    raise _wrong("^", a, b)


_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": add_values, "-": _subtract, "*": _multiply, "/": _divide, "%": _remainder, "^": _power,
}  # fmt: skip
#: Characters of a regular expression, and of a text that it is matched with.
_LONGEST_PATTERN: Final = 1_000


def _matches(text: str, pattern: str) -> bool:
    """Whether a text matches a regular expression as a whole. One whose repeats are nested would take
    exponential time, and is refused.
    """
    if len(pattern) > _LONGEST_PATTERN or _NESTED.search(pattern):
        raise PlanError(
            f"the regular expression {shortened(pattern, 60)!r} may take exponential time",
            hint="write it without a repeat of what is repeated already, such as (a+)+, and without back references",
        )
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error as error:
        raise PlanError(f"{shortened(pattern, 60)!r} is no regular expression: {error}") from None


#: A group with a repeat or a choice in it that is repeated, or a back reference.
_NESTED: Final = re.compile(r"[*+}|][^()]*\)[*+{]|\)\)+[*+{]|\\[1-9]|\(\?P=")
_TEXT_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "starts with": str.startswith,
    "ends with": str.endswith,
    "contains": str.__contains__,
    "matches": _matches,
}
