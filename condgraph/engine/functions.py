"""The native functions that `Apply` runs, as a table: comparison, arithmetic, parts of times, texts, and choice.

A function takes its arguments as bags of values with the texts a user sees, and options as texts, and gives values. What it cannot
compute it says by `Inapplicable`, which becomes a warning and no value: whether three numbers arrive where two are needed is known
only when they do. A cell of text gives the first number in it where a function needs one; that is reported, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

from condgraph.engine.facts import Entity
from condgraph.engine.units import fold_unit
from condgraph.engine.values import (
    DAY_SECONDS,
    NO_UNIT,
    OPEN_START,
    UNKNOWN_END,
    Precision,
    Quantity,
    Time,
    civil,
    collapse,
    format_number,
    text_of,
)


class Inapplicable(Exception):
    """A function that has no result for what it was given; the text says why."""


@dataclass(slots=True)
class Operand:
    """One argument: its values, the text of each, and what should be reported of reading them."""

    values: list[Any]
    texts: list[str]
    remarks: list[str]

    def __len__(self) -> int:
        return len(self.values)

    def one(self, what: str) -> Any:
        """The only value; equal ones count once."""
        distinct = list(dict.fromkeys(self.texts))
        if len(distinct) != 1:
            raise Inapplicable(f"{what} takes one value, not {len(distinct)}" if distinct else f"{what} of nothing is nothing")
        return self.values[0]

    def measures(self, what: str) -> list[Measure]:
        """Every distinct value as a number or a time."""
        pairs = dict(zip(self.texts, self.values, strict=True))
        return [self._measure(value, text, what) for text, value in pairs.items()]

    def measure(self, what: str) -> Measure:
        """The only value as a number or a time."""
        value = self.one(what)
        return self._measure(value, self.texts[0], what)

    def _measure(self, value: Any, text: str, what: str) -> Measure:
        found = measure_of(value)
        if found is None:
            numbers = _NUMBERS(text.replace("−", "-"))
            if not numbers:
                raise Inapplicable(f"{what}: {text!r} is neither a number nor a time")
            self.remarks.append(f"{what}: {text!r} is read as {numbers[0]}")
            found = Quantity(_number(numbers[0]))
        return found


Measure: TypeAlias = Quantity | Time
Options: TypeAlias = Mapping[str, str]
Native: TypeAlias = Callable[[Sequence[Operand], Options], list[Any]]

_NUMBERS: Final = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII).findall
_DIGITS: Final = re.compile(r"\d", re.ASCII).search


def measure_of(value: Any) -> Measure | None:
    """A value as a number or a time; None where it is neither."""
    if isinstance(value, (Quantity, Time)):
        return value
    if isinstance(value, (bool, int, float)):
        return Quantity(int(value) if isinstance(value, bool) else value)
    return None


def _number(text: str) -> int | float:
    digits = text.replace(",", "").lstrip("+")
    return float(digits) if "." in digits else int(digits)


def exact(number: Any) -> Fraction:
    """A number without loss: a float stands for its shortest text."""
    return Fraction(Decimal(repr(number))) if isinstance(number, float) else Fraction(number)


def plain(number: Fraction) -> int | float:
    """A number as an integer where it is one, else as the nearest float."""
    return int(number) if number.denominator == 1 else float(number)


def year_of(value: Time) -> int:
    """The year in which a time begins."""
    return civil(value.start // DAY_SECONDS)[0]


# -- comparison -----------------------------------------------------------------------------------------------------------

#: Comparison of two numbers by operator.
OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    ">": lambda a, b: bool(a > b),
    "<=": lambda a, b: bool(a <= b),
    ">=": lambda a, b: bool(a >= b),
}


def compared(left: Any, right: Any, operator: str, what: str) -> bool:
    """Whether two values compare so: numbers of one unit, times by their intervals, texts by their letters without case."""
    a, b = measure_of(left), measure_of(right)
    if isinstance(a, Time) and isinstance(b, Quantity):
        a = Quantity(year_of(a))
    if isinstance(b, Time) and isinstance(a, Quantity):
        b = Quantity(year_of(b))
    if isinstance(a, Time) and isinstance(b, Time):
        return _times(a, b, operator)
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        _unit(a, b, what)
        return OPERATORS[operator](exact(a.number), exact(b.number))
    one, two = (collapse(_text(value)).casefold() for value in (left, right))
    return OPERATORS[operator](one, two)


def _times(a: Time, b: Time, operator: str) -> bool:
    if operator == "=":
        return a.start >= b.start and a.end <= b.end
    if operator == "!=":
        return a.end <= b.start or a.start >= b.end
    # Which of two is earlier has an answer for times that overlap as well: by start, then by end.
    return OPERATORS[operator]((a.start, a.end), (b.start, b.end))


def _text(value: Any) -> str:
    return value.name if isinstance(value, Entity) else text_of(value)


def _best(operand: Operand, operator: str, what: str) -> Operand:
    """The value that competes where a side has several: the largest for `>`, the smallest for `<`."""
    if len(set(operand.texts)) < 2 or operator in ("=", "!="):
        return operand
    pairs = dict(zip(operand.texts, operand.values, strict=True))
    best: Operand | None = None
    for text, value in pairs.items():
        one = Operand([value], [text], operand.remarks)
        if best is None or compared(*_sides([one, best], what), ">" if operator in (">", ">=") else "<", what):
            best = one
    assert best is not None
    operand.remarks.append(f"{what}: of {len(pairs)} values {best.texts[0]!r} competes")
    return best


def _sides(arguments: Sequence[Operand], what: str) -> tuple[Any, Any]:
    """Two values to compare: as they are, or as the numbers in their texts where only that makes them comparable."""
    left, right = arguments[0].one(what), arguments[1].one(what)
    numeric = [measure_of(value) is not None for value in (left, right)]
    texts = arguments[0].texts[0], arguments[1].texts[0]
    if all(numeric) or (not any(numeric) and not all(map(_DIGITS, texts))):
        return left, right
    return arguments[0].measure(what), arguments[1].measure(what)


def compare(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The winner of two (`mode` "winner": the third or fourth argument, which name them), a truth value, or one of two words."""
    operator = options.get("operator", ">")
    left, right = _sides([_best(one, operator, "compare") for one in arguments[:2]], "compare")
    mode = options.get("mode", "winner")
    if mode == "truth":
        return [compared(left, right, operator, "compare")]
    if mode == "words":
        more, less = options["words"].split("/")
        if compared(left, right, "=", "compare") and compared(right, left, "=", "compare"):
            return ["equal"]
        return [more if compared(left, right, operator, "compare") else less]
    if operator in ("=", "!="):
        return [compared(left, right, operator, "compare")]
    wins = compared(left, right, operator, "compare")
    if not wins and not compared(right, left, operator, "compare"):
        return [*arguments[2].values, *arguments[3].values]
    return list(arguments[2 if wins else 3].values)


#: Pairs of values that are compared one by one, at most.
MOST_PAIRS: Final = 250_000


def _check_size(arguments: Sequence[Operand], what: str) -> None:
    """Refuse to compare every value of one large set with every value of another."""
    if len(arguments[0]) * len(arguments[1]) > MOST_PAIRS:
        sizes = f"{len(arguments[0])} values with {len(arguments[1])}"
        raise Inapplicable(f"{what} would compare {sizes} one by one; max, min, count or set_intersection of them do not")


def relation(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Whether any value of the first compares so with any of the second."""
    operator = options["operator"]
    if operator == "!=":
        return [not relation(arguments, {"operator": "="})[0]]
    if operator == "=" and not set(arguments[0].texts).isdisjoint(arguments[1].texts):
        return [True]
    _check_size(arguments, operator)
    for left, text in zip(arguments[0].values, arguments[0].texts, strict=True):
        for right, other in zip(arguments[1].values, arguments[1].texts, strict=True):
            pair = [Operand([left], [text], arguments[0].remarks), Operand([right], [other], arguments[1].remarks)]
            one, two = _sides(pair, operator) if operator != "=" else (left, right)
            if compared(one, two, operator, operator):
                return [True]
    return [False]


def equal(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Whether two sets have the same members."""
    left, right = arguments
    if set(left.texts) == set(right.texts):
        return [True]
    _check_size(arguments, "equal")
    return [_subset(left, right) and _subset(right, left)]


def is_in(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Whether all members of one set are in the other, or the text of one in a text of the other."""
    left, right = arguments
    if not len(left) or not len(right):
        return [False]
    if set(left.texts) <= set(right.texts) or set(right.texts) <= set(left.texts):
        return [True]
    _check_size(arguments, "is_in")
    return [_subset(left, right) or _subset(right, left) or _within(left, right) or _within(right, left)]


def _subset(left: Operand, right: Operand) -> bool:
    return all(any(compared(a, b, "=", "=") for b in right.values) for a in left.values)


def _within(left: Operand, right: Operand) -> bool:
    return all(any(one.casefold() in other.casefold() for other in right.texts) for one in left.texts)


# -- truth and choice -----------------------------------------------------------------------------------------------------


def truth(operand: Operand) -> bool:
    """A truth value as it is; anything else holds where there is something that is neither 0 nor a word for no."""
    if len(operand) == 1:
        value = operand.values[0]
        if isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return value != 0
        if isinstance(value, str):
            return value.casefold() not in ("no", "false", "")
    return len(operand) > 0


# -- arithmetic -----------------------------------------------------------------------------------------------------------


def _plain_measure(operand: Operand, what: str) -> Quantity:
    found = operand.measure(what)
    return Quantity(year_of(found)) if isinstance(found, Time) else found


def _each(operand: Operand, what: str) -> list[Quantity]:
    """Every value as a number, repeats included."""
    pairs = zip(operand.values, operand.texts, strict=True)
    return [_plain_measure(Operand([value], [text], operand.remarks), what) for value, text in pairs]


def _unit(a: Quantity, b: Quantity, what: str) -> str:
    if a.unit != b.unit and NO_UNIT not in (a.unit, b.unit) and fold_unit(a.unit) != fold_unit(b.unit):
        raise Inapplicable(f"{what}: {a} and {b} are of different units")
    return a.unit if a.unit != NO_UNIT else b.unit


def difference(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """How far apart two values are (`absolute` "false": the first less the second, with its sign); also of one bag of two."""
    if len(arguments) == 1:
        both = arguments[0].measures("difference")
        if len(both) == 1 and isinstance(both[0], Time) and both[0].precision is Precision.SPAN:
            return duration(arguments, options)
        if len(both) != 2:
            raise Inapplicable(f"difference takes two values, not {len(both)}")
        a, b = both
        options = {**options, "absolute": "true"}
    else:
        a, b = (operand.measure("difference") for operand in arguments)
    if isinstance(a, Time) and isinstance(b, Time):
        return [_between(a, b, options)]
    one, two = (Quantity(year_of(value)) if isinstance(value, Time) else value for value in (a, b))
    found = exact(one.number) - exact(two.number)
    if options.get("absolute") != "false":
        found = abs(found)
    return [Quantity(plain(found), _unit(one, two, "difference"))]


_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": DAY_SECONDS, "week": 7 * DAY_SECONDS}


def _between(a: Time, b: Time, options: Options) -> Quantity:
    """The time between two times, in years, months or the unit asked for; days where both are exact days."""
    unit = options.get("unit", "").casefold().rstrip("s")
    if a.start > b.start:
        a, b = b, a
    if unit == "month":
        first, last = (civil(value.start // DAY_SECONDS) for value in (a, b))
        return Quantity((last[0] - first[0]) * 12 + last[1] - first[1])
    if unit == "year" or (not unit and Precision.YEAR in (a.precision, b.precision)) or unit not in ("", *_UNITS):
        return Quantity(year_of(b) - year_of(a))
    seconds = Fraction(b.start - a.start, _UNITS[unit or "day"])
    return Quantity(plain(seconds))


def duration(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The time from a start to an end; of one interval, how long it is (a year less where it is given in years: 1999-2003 is 4)."""
    if len(arguments) == 2:
        a, b = (operand.measure("duration") for operand in arguments)
        if isinstance(a, Time) and isinstance(b, Time):
            return [_between(a, b, options)]
        return difference(arguments, options)
    found = arguments[0].measures("duration")
    if len(found) == 2:
        return difference(arguments, options)
    return [_long(value, options) for value in found]


def _long(value: Measure, options: Options) -> Quantity:
    if isinstance(value, Quantity):
        return value
    if value.start <= OPEN_START or value.end >= UNKNOWN_END:
        raise Inapplicable(f"duration: {value} has an open end")
    last = Time.year(civil((value.end - 1) // DAY_SECONDS)[0])
    first = Time.year(year_of(value))
    if value.precision is Precision.SPAN and not options.get("unit") and (first.start, last.end) != (value.start, value.end):
        return Quantity(plain(Fraction(value.end - value.start, DAY_SECONDS)))
    return (
        _between(first, last, options)
        if not options.get("unit")
        else _between(
            Time(value.start, value.start + 1, Precision.SECOND), Time(value.end - 1, value.end, Precision.SECOND), options
        )
    )


def add(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The sum of the operands; every number of a bag counts."""
    total, unit = Fraction(0), NO_UNIT
    for operand in arguments:
        for measure in _each(operand, "add"):
            unit = _unit(Quantity(0, unit), measure, "add")
            total += exact(measure.number)
    return [Quantity(plain(total), unit)]


def multiply(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The product of the operands."""
    product, unit = Fraction(1), NO_UNIT
    for operand in arguments:
        measure = _plain_measure(operand, "multiply")
        unit = _unit(Quantity(0, unit), measure, "multiply")
        product *= exact(measure.number)
    return [Quantity(plain(product), unit)]


def divide(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The first divided by the second; equal units cancel out."""
    a, b = (_plain_measure(operand, "divide") for operand in arguments)
    if not b.number:
        raise Inapplicable("division by zero has no result")
    unit = a.unit if b.unit == NO_UNIT else NO_UNIT if a.unit == b.unit else f"{a.unit}/{b.unit}"
    return [Quantity(plain(exact(a.number) / exact(b.number)), unit)]


def remainder(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """What is left of the first after division by the second."""
    a, b = (_plain_measure(operand, "%") for operand in arguments)
    if not b.number:
        raise Inapplicable("division by zero has no result")
    return [Quantity(plain(exact(a.number) % exact(b.number)), a.unit)]


def percentage(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The first as a percentage of the second."""
    a, b = (_plain_measure(operand, "percentage") for operand in arguments)
    if not b.number:
        raise Inapplicable("a percentage of zero has no result")
    return [Quantity(plain(exact(a.number) * 100 / exact(b.number)), "%")]


def absolute(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Numbers without their sign."""
    return [Quantity(plain(abs(exact(value.number))), value.unit) for value in _each(arguments[0], "abs")]


def rounded(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """Numbers rounded to so many digits (`digits`, 0), halves to the even neighbour."""
    digits = int(options.get("digits", "0"))
    found = []
    for measure in _each(arguments[0], "round"):
        decimal = Decimal(format_number(measure.number)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)
        found.append(Quantity(plain(Fraction(decimal)), measure.unit))
    return found


# -- parts of values ------------------------------------------------------------------------------------------------------

_YEAR: Final = re.compile(r"(?<!\d)(1\d{3}|20\d{2})(?!\d)", re.ASCII).search


def extract(part: str) -> Native:
    """A function that gives the year, month or day of each value."""
    at = ("year", "month", "day").index(part)

    def run(arguments: Sequence[Operand], options: Options) -> list[Any]:
        found: list[Any] = []
        for value, text in zip(arguments[0].values, arguments[0].texts, strict=True):
            if isinstance(value, Time) and (at == 0 or value.precision >= Precision.YEAR + at):
                number = civil(value.start // DAY_SECONDS)[at]
                found.append(Time.year(number) if at == 0 else Quantity(number))
            elif at == 0 and isinstance(value, Quantity) and value.unit == NO_UNIT:
                found.append(value)
            elif at == 0 and (year := _YEAR(text)):
                arguments[0].remarks.append(f"extract_year: {text!r} is read as {year[0]}")
                found.append(Time.year(int(year[0])))
            else:
                arguments[0].remarks.append(f"extract_{part}: {text!r} has no {part}")
        return found

    return run


def extract_number(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The first number of each value."""
    found: list[Any] = []
    for value, text in zip(arguments[0].values, arguments[0].texts, strict=True):
        if isinstance(value, Quantity):
            found.append(Quantity(value.number))
        elif isinstance(value, (int, float)):
            found.append(Quantity(int(value)) if isinstance(value, bool) else Quantity(value))
        elif numbers := _NUMBERS(text.replace("−", "-")):
            found.append(Quantity(_number(numbers[0])))
        else:
            arguments[0].remarks.append(f"extract_number: {text!r} has no number")
    return found


def split(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The parts of each text between delimiters (`delimiter`, a comma)."""
    mark = options.get("delimiter", ",")
    parts = [collapse(part) for text in arguments[0].texts for part in (text.split(mark) if mark else [text])]
    return [part for part in parts if part]


def length(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """How long one interval lasts, how many characters one text has, or how many members a set has."""
    operand = arguments[0]
    if len(operand) != 1:
        return [Quantity(len(set(operand.texts)))]
    value = operand.values[0]
    if isinstance(value, Time):
        return [_long(value, options)]
    return [Quantity(len(operand.texts[0]))]


def identity(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The values themselves: a scalar where a bag is wanted."""
    return [value for operand in arguments for value in operand.values]


#: Every native function by the name a plan has.
FUNCTIONS: Final[Mapping[str, Native]] = {
    "compare": compare,
    "relation": relation,
    "equal": equal,
    "is_in": is_in,
    "is_empty": lambda arguments, options: [not len(arguments[0])],
    "exists": lambda arguments, options: [len(arguments[0]) > 0],
    "not": lambda arguments, options: [not truth(arguments[0])],
    "and": lambda arguments, options: [all(map(truth, arguments))],
    "or": lambda arguments, options: [any(map(truth, arguments))],
    "difference": difference,
    "duration": duration,
    "add": add,
    "multiply": multiply,
    "divide": divide,
    "remainder": remainder,
    "percentage": percentage,
    "abs": absolute,
    "round": rounded,
    "extract_year": extract("year"),
    "extract_month": extract("month"),
    "extract_day": extract("day"),
    "extract_number": extract_number,
    "split": split,
    "length": length,
    "identity": identity,
}
