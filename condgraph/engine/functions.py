"""The native functions that `Apply` runs, as a table: comparison (`comparisons`), arithmetic
(`arithmetic`), parts of times, texts, and choice.

A function takes its arguments as bags of values with the texts a user sees, and options as texts,
and gives values. What it cannot compute it says by `Inapplicable`, which becomes a warning and no
value: whether three numbers arrive where two are needed is known only when they do. A cell of text
gives the first number in it where a function needs one; that is reported, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from condgraph.engine.arithmetic import (
    absolute,
    add,
    difference,
    divide,
    duration,
    long_of,
    multiply,
    percentage,
    remainder,
    rounded,
)
from condgraph.engine.comparisons import compare, equal, is_in, relation, truth
from condgraph.engine.operands import (
    NUMBERS,
    Native,
    Operand,
    Options,
    number_in,
)
from condgraph.engine.pieces import set_of, watched
from condgraph.engine.values import (
    DAY_SECONDS,
    NO_UNIT,
    OPEN_START,
    Precision,
    Quantity,
    Time,
    civil,
    collapse,
)

_YEAR: Final = re.compile(r"(?<!\d)(1\d{3}|20\d{2})(?!\d)", re.ASCII).search


def extract(part: str) -> Native:
    """A function that gives the year, month or day of each value."""
    at = ("year", "month", "day").index(part)

    def run(arguments: Sequence[Operand], options: Options) -> list[Any]:
        found: list[Any] = []
        for value, text in watched(zip(arguments[0].values, arguments[0].texts, strict=True)):
            if isinstance(value, Time) and value.start > OPEN_START and (at == 0 or value.precision >= Precision.YEAR + at):
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
    for value, text in watched(zip(arguments[0].values, arguments[0].texts, strict=True)):
        if isinstance(value, Quantity):
            found.append(Quantity(value.number))
        elif isinstance(value, (int, float)):
            found.append(Quantity(int(value)) if isinstance(value, bool) else Quantity(value))
        elif numbers := NUMBERS(text.replace("−", "-")):
            found.append(Quantity(number_in(numbers[0])))
        else:
            arguments[0].remarks.append(f"extract_number: {text!r} has no number")
    return found


def split(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """The parts of each text between delimiters (`delimiter`, a comma)."""
    mark = options.get("delimiter", ",")
    every = (part for text in arguments[0].texts for part in (text.split(mark) if mark else [text]))
    return [found for part in watched(every) if (found := collapse(part))]


def length(arguments: Sequence[Operand], options: Options) -> list[Any]:
    """How long one interval lasts, how many characters one text has, or how many members a set has."""
    operand = arguments[0]
    if len(operand) != 1:
        return [Quantity(len(set_of(operand.texts)))]
    value = operand.values[0]
    if isinstance(value, Time):
        return [long_of(value, options)]
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
