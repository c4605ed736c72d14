"""Literals of LLM queries as language models write them: "1,200", "$5 million", "2e7", "425 kg",
"4:27", "March 8, 2003".

A literal has several readings; which of them count is decided by the types of the column it is
compared with (`literal_tests`). What a cell may be, a literal may be: what the forms known here do
not cover is read as the cell of its text (`engine.reading`).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from condgraph.engine.algebra import Compare, Condition, Constants, Equals, Operator
from condgraph.engine.reading.shapes import UNSURE, readings
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind, Number, Precision, Quantity, Time, Value, collapse, parse_number
from condgraph.languages.llm.lower.quantities import Typed, in_units

_MONTHS: Final = {name: n for n, name in enumerate(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"), 1)}
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_FLAGS: Final = re.ASCII | re.IGNORECASE
_DATES: Final = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"(?:\w+day,? )?{_MONTH} ?{_DAY},? ?(?P<year>\d{{4}})",
        rf"(?:\w+day,? )?{_DAY}[ -](?:of )?{_MONTH},?[ -](?P<year>\d{{4}})",
        rf"{_MONTH},?[ -](?:of )?(?P<year>\d{{4}})",
        r"(?P<year>\d{4})[-/.](?P<m>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?",
    )
)
_SLASHED: Final = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})", re.ASCII)
_RANGE: Final = re.compile(r"(\d{4}) ?(?:[-–—/]|to|until) ?(\d{4}|\d{1,2})", _FLAGS)
_ISO_SPAN: Final = re.compile(r"-?\d{4,}(?:-\d\d){0,2}/-?\d{4,}(?:-\d\d){0,2}", re.ASCII).fullmatch
_DECADE: Final = re.compile(r"(?:the )?(\d{3}0)'?s", _FLAGS)
_CLOCK: Final = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?(\.\d{1,9})?(?: ?([ap])\.?m\.?)?", _FLAGS)
_BETWEEN: Final = re.compile(r"(?:between|from) (.+?) (?:and|to) (.+)", re.IGNORECASE)
_OPERATORS: Final[dict[str, Operator]] = {
    **dict.fromkeys((">=", "=>", "≥", "at least", "no less than", "not less than", "no fewer than"), ">="),
    **dict.fromkeys(("<=", "=<", "≤", "at most", "no more than", "not more than", "up to"), "<="),
    **dict.fromkeys((">", "more than", "greater than", "larger than", "higher than", "later than"), ">"),
    **dict.fromkeys(("<", "less than", "fewer than", "smaller than", "lower than", "earlier than"), "<"),
    **dict.fromkeys(("!=", "<>", "≠", "not equal to"), "!="),
    **dict.fromkeys(("=", "==", "equal to"), "="),
}
_OPERATOR: Final = re.compile(
    r"(?:([<>=!≥≤≠]{1,2}) ?|(" + "|".join(word for word in _OPERATORS if word.isascii() and word[0].isalpha()) + r") )(.+)",
    re.IGNORECASE,
)
_LEADING: Final = re.compile(r"[^\w+\-−]{0,3}([-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?![\d:])", re.ASCII)
_INNER: Final = re.compile(r"(?<![\w.,])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w])", re.ASCII)


def literal_tests(operator: Operator, text: str, kinds: Kinds, *, european: bool = False) -> Typed:
    """A test for each type and unit of a column that the literal can be read as; texts are not
    among them.

    `european` says that numbers of the column have a comma before their decimals.
    """
    found = Typed()
    types = {kind for kind, _ in kinds}
    if Kind.TIME in types:
        found.conditions.extend(Compare(operator, time) for time in read_times(text))
    if Kind.QUANTITY in types:
        units = {unit: count for (kind, unit), count in kinds.items() if kind is Kind.QUANTITY}
        clock = read_clock(text)
        numbers = in_units(text, units, found, european=european) if clock is None else in_clock(clock, units)
        found.conditions.extend(Compare(operator, one) for one in numbers)
    return found


def inner_conditions(text: str) -> tuple[tuple[Operator, str], ...]:
    """The operators that stand in a text, each with what it compares with: models write
    `tail_entity='> 5'` for `tail_entity>'5'`, and `'between 2 and 5'`. Empty where there is none.

    >>> inner_conditions("=> 5"), inner_conditions("between 2 and 5"), inner_conditions("5")
    ((('>=', '5'),), (('>=', '2'), ('<=', '5')), ())
    """
    text = collapse(text)
    between = _BETWEEN.fullmatch(text)
    if between is not None:
        return (">=", between[1]), ("<=", between[2])
    found = _OPERATOR.fullmatch(text)
    operator = None if found is None else _OPERATORS.get((found[1] or found[2]).casefold())
    return () if found is None or operator is None else ((operator, found[3]),)


def in_clock(clock: dict[str, Number], units: dict[str, int]) -> list[Quantity]:
    """A duration or a time of day in those units of a column that it can have."""
    return [Quantity(clock[unit], unit) for unit in units if unit in clock]


def leading_number(text: str) -> Number | None:
    """The number a text begins with, but for a sign or a mark: "1,200 (estimate)" is 1200; None
    where it begins otherwise.
    """
    found = _LEADING.match(text)
    return None if found is None else _number(found[1])


def inner_number(text: str) -> Quantity | None:
    """The only number in a text: "Round 7" is 7; None where there are none or several."""
    found = _INNER.findall(text)
    number = _number(found[0]) if len(found) == 1 else None
    return None if number is None else Quantity(number)


def _number(text: str) -> Number | None:
    """A number with commas between thousands; None where it has more digits than a number may have."""
    with suppress(ValueError):
        return parse_number(text.replace(",", "").replace("−", "-").lstrip("+"))
    return None


def read_clock(text: str) -> dict[str, Number] | None:
    """A duration in seconds and a time of day in seconds since midnight, by unit: 4:27, 1:02:03.5,
    7:30 PM; None for others.
    """
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        read = [one.value for one in readings(collapse(text)) if one.family == "clock"]
        return {value.unit: value.number for value in read if isinstance(value, Quantity)} or None
    first, second, third, part, half = found.groups()
    whole = int(first) * 60 + int(second)
    if third:
        whole = whole * 60 + int(third)
    clock: dict[str, Number] = {}
    if not half:
        clock[SECOND] = parse_number(f"{whole}{part or ''}")
    hour = int(first)
    if half:
        hour = hour % 12 + (12 if half in "pP" else 0)
    if hour < 24 and not part:
        clock[SECOND_OF_DAY] = hour * 3600 + int(second) * 60 + int(third or 0)
    return clock


def read_times(text: str) -> list[Time]:
    """A literal as times: ISO forms, months in words, decades, ranges of years; both readings of
    3/5/2010.

    >>> [str(time) for time in read_times("March 8, 2003")], [str(time) for time in read_times("1999-2003")]
    (['2003-03-08'], ['1999/2003'])
    """
    text = collapse(text)
    ranged = _RANGE.fullmatch(text)
    if ranged is not None:
        last = ranged[1][: -len(ranged[2])] + ranged[2] if len(ranged[2]) < 4 else ranged[2]
        # 2004-05 may be a month; only a column says so, and its cells are found by their text.
        if int(ranged[1]) < int(last):
            return [Time.span(Time.year(int(ranged[1])), Time.year(int(last)))]
    # An interval needs whole years on both sides: 2006/7 and 11/25/2013 are none.
    if "/" not in text or _ISO_SPAN(text):
        with suppress(ValueError):
            return [Time.parse(text)]
    decade = _DECADE.fullmatch(text)
    if decade is not None:
        return [Time.span(Time.year(int(decade[1])), Time.year(int(decade[1]) + 9))]
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found is not None:
            parts = found.groupdict()
            month = int(parts["m"]) if parts.get("m") else _MONTHS[parts["month"][:3].casefold()]
            with suppress(ValueError):
                year = int(parts["year"])
                return [Time.day(year, month, int(parts["day"])) if parts.get("day") else Time.month(year, month)]
            return []
    slashed = _SLASHED.fullmatch(text)
    times: list[Time] = []
    if slashed is not None:
        for first, second in ((1, 3), (3, 1)):
            with suppress(ValueError):
                time = Time.day(int(slashed[4]), int(slashed[second]), int(slashed[first]))
                if time not in times:
                    times.append(time)
    as_cell = (one.value for one in readings(text) if one.family == "time" and one.tag not in UNSURE)
    return times or list(dict.fromkeys(time for time in as_cell if isinstance(time, Time)))


def exactly(value: Value) -> Condition:
    """A test for a value that a cell was found to have: the same interval, where `=` would also
    take what lies within it.
    """
    if isinstance(value, Time) and value.precision is Precision.SPAN:
        return Equals(Constants((value,)))
    return Compare("=", value)
