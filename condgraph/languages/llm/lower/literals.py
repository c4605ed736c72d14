"""Literals of LLM queries as language models write them: numbers with units, times, superlatives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Final
from typing import Literal as Literal_

from condgraph.engine import values
from condgraph.engine.algebra import AllOf, AnyOf, Compare, Condition, Constants, Direction, Equals, Not, Operator
from condgraph.engine.errors import UnknownNameError, nearest
from condgraph.engine.reading.numbers import CODES
from condgraph.engine.reading.shapes import MAX_LENGTH, UNSURE, readings
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.reading.words import KNOWN_UNITS
from condgraph.engine.schema import Kinds
from condgraph.engine.units import conversions, fold_unit
from condgraph.languages.literals import formed_literal
from condgraph.languages.llm.syntax.tree import Literal
from condgraph.languages.parameters import GivenText

# -- numbers with units ------------------------------------------------------------------------------
# Numbers in literals of LLM queries: "1,200", "$5 million", "2e7", "25k", "(5)", "3rd", "425 kg".
#
# A literal has the readings of a cell with its text (`engine.reading`), and two more that no column
# needs to confirm: a letter for thousands or millions after a bare number, and any word as a unit. The
# units of the column that it is compared with decide which reading counts.


_NUMBER: Final = re.compile(
    r"[~≈]? ?(?P<sign>[-+−])? ?(?P<money>(?:US|A|C|NZ|HK)?\$|[€£¥₹₩])? ?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?P<ordinal>st|nd|rd|th)?"
    r"(?: ?(?P<scale>hundred|thousand|million|billion|trillion)\b)?(?: ?(?P<unit>[^\d\s](?:.*[^.\s])?)\.?)?",
    re.ASCII | re.IGNORECASE,
)
_SCALES: Final = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
#: Letters for powers of ten after a number without a currency. A lower-case m is a metre, unless the
#: column holds money.
_LETTERED: Final = re.compile(r"(?P<number>.*\d)(?:(?P<letter>[kKMBmbt])| ?(?P<short>bn|mn|mln|mil|bln|tn)\.?)")
_LETTERS: Final = {"k": 3, "m": 6, "b": 9, "t": 12, "bn": 9, "mn": 6, "mln": 6, "mil": 6, "bln": 9, "tn": 12}
_SMALL: Final = frozenset("mbt")
#: The order of preference among readings if the column does not decide: in English, commas separate
#: thousands and a point the decimals.
_ENGLISH: Final = ("num", "exp", "comma", "en", "ord", "space", "cont", "eu", "sci", "minus", "paren", "pareu")
_EUROPEAN: Final = ("num", "exp", "cont", "eu", "comma", "en", "ord", "space", "sci", "minus", "pareu", "paren")
#: Names of currencies and their signs; a sign of several currencies means the commonest.
_CURRENCIES: Final = {
    **dict.fromkeys(("us$", "usd", "dollar"), "$"),
    **dict.fromkeys(("eur", "euro"), "€"),
    **dict.fromkeys(("gbp", "pound sterling"), "£"),
    **dict.fromkeys(("jpy", "yen"), "¥"),
    **dict.fromkeys(("inr", "rupee", "rs"), "₹"),
    "krw": "₩",
}
_MAX_UNIT: Final = 30


@dataclass(slots=True)
class LiteralTests:
    """The tests that a literal becomes for a column, and remarks on its reading.

    `converted`: the literal's unit differs from that of the values. `refused` names both units if they
    do not compare; `certain`: the literal's unit is a known one, so that it can mean nothing else.
    """

    conditions: list[Condition] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    converted: bool = False
    refused: str = ""
    certain: bool = False


def read_quantities(text: str, *, european: bool = False, money: bool = False) -> list[values.Quantity]:
    """Return the readings of a literal as a number with its unit, likeliest first; empty if it has none.

    `european`: the column has decimal commas; `money`: it holds amounts of money.

    >>> [str(one) for one in read_quantities("25k")], [str(one) for one in read_quantities("25M")]
    (['25000'], ['25 M', '25000000'])
    """
    text = values.collapse(text)
    result = _as_cell(text, european)
    lettered = _LETTERED.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if lettered is not None:
        letter = lettered["letter"] or lettered["short"]
        if letter not in _SMALL or money:
            result.extend(
                values.Quantity(_scaled(item.number, _LETTERS[letter.casefold()]))
                for item in _as_cell(lettered["number"], european)
                if item.unit == values.NO_UNIT
            )
    if not result and (value := _with_unit(text)) is not None:
        result.append(value)
    return result


def read_quantity(text: str) -> values.Quantity | None:
    """Return a number with its unit (a word, a currency, a percent sign), regardless of a column, or None.

    >>> str(read_quantity("$1.5 million")), str(read_quantity("3rd")), str(read_quantity("425 kg")), read_quantity("kg")
    ('1500000 $', '3', '425 kg', None)
    """
    result = read_quantities(text)
    return next((item for item in result if item.unit == values.NO_UNIT), result[0] if result else None)


def _as_cell(text: str, european: bool) -> list[values.Quantity]:
    """Return the reading of a cell with this text."""
    order = _EUROPEAN if european else _ENGLISH
    numbers = [reading for reading in readings(text) if reading.family == "number" and reading.tag in order]
    best = min(numbers, key=lambda reading: order.index(reading.tag), default=None)
    return [best.value] if best is not None and isinstance(best.value, values.Quantity) else []


def _with_unit(text: str) -> values.Quantity | None:
    """Return a number, with whatever follows it as its unit."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match["unit"] and (match["money"] or len(match["unit"]) > _MAX_UNIT or match["unit"][0] in "-–/:,([")):
        return None
    try:
        number = values.parse_number(match["digits"].replace(",", ""))
        if match["scale"]:
            number = _scaled(number, _SCALES[match["scale"].casefold()])
    except ValueError:
        # Too many digits.
        return None
    if (match["sign"] or "+") in "-−":
        number = -number
    return values.Quantity(number, match["money"] or match["unit"] or values.NO_UNIT)


def _scaled(number: values.Number, power: int) -> values.Number:
    return values.parse_number(values.format_number(Decimal(f"{values.format_number(number)}e{power}")))


def is_currency(unit: str) -> bool:
    return unit.endswith("$") or unit in "€£¥₹₩₽₺₪₫₱฿₴₦" or unit in CODES.split("|") or _folded(unit) in ("$", "€", "£", "¥")


def in_units(text: str, units: dict[str, int], typed: LiteralTests, *, european: bool = False) -> list[values.Quantity]:
    """Return a literal as quantities in the units of a column; `units` counts the values of each.

    A bare number gets the most frequent unit. A unit is dropped, with a remark, if the values have none.
    If the units do not compare, the result is empty and `typed.refused` names both.
    """
    worded = {unit: count for unit, count in units.items() if unit != values.NO_UNIT}
    if not european and (same_unit := _as_the_values(text, units)) is not None:
        return _everywhere([same_unit], worded)
    candidates = read_quantities(text, european=european, money=bool(worded) and all(map(is_currency, worded)))
    if not candidates:
        return []
    _note_negative(text, candidates[0], typed)
    for quantity in candidates:
        if quantity.unit in units:
            return _everywhere([quantity], worded)
    for quantity in candidates:
        matching = [unit for unit in worded if fold_unit(unit) == fold_unit(quantity.unit)]
        if matching:
            return _everywhere([values.Quantity(quantity.number, unit) for unit in matching], worded)
    for quantity in candidates:
        if quantity.unit != values.NO_UNIT and (converted := conversions(quantity, list(worded))):
            typed.converted = True
            return converted
    bare = next((item for item in candidates if item.unit == values.NO_UNIT), None)
    if bare is not None:
        unit = max(worded, key=lambda item: (worded[item], item))
        more = "" if len(worded) == 1 else f", the unit of most of {len(units)}"
        typed.remarks.append(f"{text!r} is read as {values.Quantity(bare.number, unit)}{more}")
        return _everywhere([values.Quantity(bare.number, unit)], worded)
    quantity = candidates[0]
    matching = [unit for unit in worded if _folded(unit) == _folded(quantity.unit)]
    if matching:
        typed.remarks.append(
            f"{quantity.unit!r} of {text!r} is taken for {' and '.join(map(repr, matching))}, which the values have"
        )
        return _everywhere([values.Quantity(quantity.number, unit) for unit in matching], worded)
    if values.NO_UNIT in units:
        typed.remarks.append(f"the unit {quantity.unit!r} of {text!r} is left out: the values it is compared with have none")
        return [values.Quantity(quantity.number)]
    shown = " and ".join(map(repr, sorted(worded, key=lambda unit: (-worded[unit], unit))[:3]))
    typed.refused = f"{text!r} is in {quantity.unit!r}, and the values are in {shown}"
    typed.certain = is_currency(quantity.unit) or quantity.unit == "%" or fold_unit(quantity.unit) in _FOLDED_UNITS
    return []


def _everywhere(found: list[values.Quantity], units: Iterable[str]) -> list[values.Quantity]:
    """Return a literal in its own units and converted to the others of the column: 300 cm are 3 m."""
    missing = [unit for unit in units if all(unit != item.unit for item in found)]
    return [*found, *conversions(found[0], missing)] if missing else found


def _as_the_values(text: str, units: dict[str, int]) -> values.Quantity | None:
    """Return a literal whose unit is one of the values' units as written: "3 thousand tonnes".

    If more values have no unit, "3 million" may be a bare number, and the result is None.
    """
    with suppress(ValueError):
        result = values.parse_quantity(text)
        if result.unit != values.NO_UNIT and units.get(result.unit, 0) > units.get(values.NO_UNIT, 0):
            return result
    return None


def _note_negative(text: str, one: values.Quantity, typed: LiteralTests) -> None:
    if text.strip().startswith("("):
        typed.remarks.append(f"{text!r} is read as {one}")


def _folded(unit: str) -> str:
    folded = fold_unit(unit)
    return _CURRENCIES.get(folded, folded)


_FOLDED_UNITS: Final = frozenset(map(fold_unit, KNOWN_UNITS))


# -- times, and tests of a column --------------------------------------------------------------------
# The types of the column decide which readings of a literal count (`literal_tests`). A literal that
# none of the forms here covers is read as a cell with its text (`engine.reading`).


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


def literal_tests(operator: Operator, text: str, kinds: Kinds, *, european: bool = False) -> LiteralTests:
    """Return a test for each type and unit of a column that the literal can be read as, except texts.

    `european`: numbers of the column have decimal commas.
    """
    result = LiteralTests()
    types = {kind for kind, _ in kinds}
    if values.Kind.TIME in types:
        result.conditions.extend(Compare(operator, time) for time in read_times(text))
    if values.Kind.QUANTITY in types:
        units = {unit: count for (kind, unit), count in kinds.items() if kind is values.Kind.QUANTITY}
        clock = read_clock(text)
        numbers = in_units(text, units, result, european=european) if clock is None else in_clock(clock, units)
        result.conditions.extend(Compare(operator, number) for number in numbers)
    if operator == "=" and (value := formed_literal(text, kinds)) is not None:
        result.conditions.append(Compare(operator, value))
    return result


def inner_conditions(text: str) -> tuple[tuple[Operator, str], ...]:
    """Return the operators inside a text, each with what it compares with; empty if there is none.

    Models write `tail_entity='> 5'` for `tail_entity>'5'`, and `'between 2 and 5'`.

    >>> inner_conditions("=> 5"), inner_conditions("between 2 and 5"), inner_conditions("5")
    ((('>=', '5'),), (('>=', '2'), ('<=', '5')), ())
    """
    text = values.collapse(text)
    between = _BETWEEN.fullmatch(text)
    if between is not None:
        return (">=", between[1]), ("<=", between[2])
    match = _OPERATOR.fullmatch(text)
    operator = None if match is None else _OPERATORS.get((match[1] or match[2]).casefold())
    return () if match is None or operator is None else ((operator, match[3]),)


def in_clock(clock: dict[str, values.Number], units: dict[str, int]) -> list[values.Quantity]:
    """Return a duration or a time of day in those units of a column that fit."""
    return [values.Quantity(clock[unit], unit) for unit in units if unit in clock]


def leading_number(text: str) -> values.Number | None:
    """Return the number at the start of a text, after a sign or a mark: "1,200 (estimate)" is 1200."""
    match = _LEADING.match(text)
    return None if match is None else _number(match[1])


def inner_number(text: str) -> values.Quantity | None:
    """Return the only number in a text ("Round 7" is 7), or None."""
    numbers = _INNER.findall(text)
    number = _number(numbers[0]) if len(numbers) == 1 else None
    return None if number is None else values.Quantity(number)


def _number(text: str) -> values.Number | None:
    """Return a number with commas between thousands; None if it has too many digits."""
    with suppress(ValueError):
        return values.parse_number(text.replace(",", "").replace("−", "-").lstrip("+"))
    return None


def read_clock(text: str) -> dict[str, values.Number] | None:
    """Return a duration in seconds and a time of day in seconds since midnight, by unit, or None.

    Such texts are 4:27, 1:02:03.5 and 7:30 PM.
    """
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        clock_values = [reading.value for reading in readings(values.collapse(text)) if reading.family == "clock"]
        return {value.unit: value.number for value in clock_values if isinstance(value, values.Quantity)} or None
    first, second, third, fraction, half = match.groups()
    seconds = int(first) * 60 + int(second)
    if third:
        seconds = seconds * 60 + int(third)
    clock: dict[str, values.Number] = {}
    if not half:
        clock[SECOND] = values.parse_number(f"{seconds}{fraction or ''}")
    hour = int(first)
    if half:
        hour = hour % 12 + (12 if half in "pP" else 0)
    if hour < 24 and not fraction:
        clock[SECOND_OF_DAY] = hour * 3600 + int(second) * 60 + int(third or 0)
    return clock


def read_times(text: str) -> list[values.Time]:
    """Return a literal as times: ISO forms, months in words, decades, ranges of years.

    A text such as 3/5/2010 has both readings.

    >>> [str(time) for time in read_times("March 8, 2003")], [str(time) for time in read_times("1999-2003")]
    (['2003-03-08'], ['1999/2003'])
    """
    text = values.collapse(text)
    ranged = _RANGE.fullmatch(text)
    if ranged is not None:
        last = ranged[1][: -len(ranged[2])] + ranged[2] if len(ranged[2]) < 4 else ranged[2]
        # 2004-05 may also be a month; cells that mean one are matched by their text.
        if int(ranged[1]) < int(last):
            return [values.Time.span(values.Time.year(int(ranged[1])), values.Time.year(int(last)))]
    # An interval needs full years on both sides: 2006/7 and 11/25/2013 are not intervals.
    if "/" not in text or _ISO_SPAN(text):
        with suppress(ValueError):
            return [values.Time.parse(text)]
    decade = _DECADE.fullmatch(text)
    if decade is not None:
        return [values.Time.span(values.Time.year(int(decade[1])), values.Time.year(int(decade[1]) + 9))]
    for pattern in _DATES:
        match = pattern.fullmatch(text)
        if match is not None:
            parts = match.groupdict()
            month = int(parts["m"]) if parts.get("m") else _MONTHS[parts["month"][:3].casefold()]
            with suppress(ValueError):
                year = int(parts["year"])
                return [values.Time.day(year, month, int(parts["day"])) if parts.get("day") else values.Time.month(year, month)]
            return []
    slashed = _SLASHED.fullmatch(text)
    times: list[values.Time] = []
    if slashed is not None:
        for first, second in ((1, 3), (3, 1)):
            with suppress(ValueError):
                time = values.Time.day(int(slashed[4]), int(slashed[second]), int(slashed[first]))
                if time not in times:
                    times.append(time)
    as_cell = (reading.value for reading in readings(text) if reading.family == "time" and reading.tag not in UNSURE)
    return times or list(dict.fromkeys(time for time in as_cell if isinstance(time, values.Time)))


def exactly(value: values.Value) -> Condition:
    """Return a test for the exact value of a cell; `=` on an interval would also accept times within it."""
    if isinstance(value, values.Time) and value.precision is values.Precision.SPAN:
        return Equals(Constants((value,)))
    return Compare("=", value)


def unlike(test: Condition, kinds: Kinds) -> Condition:
    """Return the test of `!=` for a column: the values that do not pass `test`, without unknown ones, which decide nothing."""
    if all(kind is not values.Kind.UNKNOWN for kind, _ in kinds):
        return Not(test)
    known: list[Condition] = []
    for kind, unit in kinds:
        if kind is values.Kind.QUANTITY:
            zero = values.Quantity(0, unit)
            known += [Compare("<", zero), Compare(">=", zero)]
        elif kind is values.Kind.TIME:
            known.append(Compare("=", values.Time.span(None, None)))
        elif kind is not values.Kind.UNKNOWN:
            known.append(Compare(">=", ""))
    return AllOf((Not(test), AnyOf(tuple(dict.fromkeys(known)) or (Compare("<", ""),))))


# -- superlatives ------------------------------------------------------------------------------------
# Superlatives in the place of a value: "the row whose Points are the highest".


_MAX_WORDS: Final = frozenset(
    [
        "highest",
        "largest",
        "latest",
        "longest",
        "biggest",
        "greatest",
        "tallest",
        "heaviest",
        "newest",
        "maximum",
        "max",
        "last",
        "fastest",
        "deepest",
        "widest",
        "best",
        "top",
        "farthest",
        "furthest",
        "strongest",
        "richest",
        "quickest",
        "greatest_number",
        "top_most",
    ]
)
_MIN_WORDS: Final = frozenset(
    [
        "lowest",
        "smallest",
        "earliest",
        "shortest",
        "least_recent",
        "lightest",
        "slowest",
        "minimum",
        "min",
        "first",
        "fewest",
        "shallowest",
        "narrowest",
        "worst",
        "nearest",
        "closest",
        "weakest",
        "poorest",
    ]
)
_MODE: Final[dict[str, Direction]] = {
    "most": "largest",
    "least": "smallest",
    "most_frequent": "largest",
    "least_frequent": "smallest",
    "most_common": "largest",
    "least_common": "smallest",
}
#: The oldest is the largest age, but the smallest year or date of birth.
_AGE: Final[dict[str, Direction]] = {"oldest": "largest", "eldest": "largest", "youngest": "smallest"}
_LATER: Final[dict[str, Direction]] = {"oldest": "smallest", "eldest": "smallest", "youngest": "largest"}


def superlative(word: str, kinds: Kinds) -> tuple[Literal_["mode", "extreme"], Direction] | None:
    """Return whether a word means the mode or the extreme of values, and the direction; else None.

    The types of the values decide for words such as "oldest". A parameter is always a value, so the
    result is None.

    >>> superlative("highest", {}), superlative("most", {}), superlative("Paris", {})
    (('extreme', 'largest'), ('mode', 'largest'), None)
    """
    if isinstance(word, GivenText):
        return None
    folded = "_".join(word.casefold().split())
    if folded in _MODE:
        return "mode", _MODE[folded]
    if folded == "most_recent":
        return "extreme", "largest"
    if folded in _MAX_WORDS:
        return "extreme", "largest"
    if folded in _MIN_WORDS:
        return "extreme", "smallest"
    directions = _LATER if any(kind is values.Kind.TIME for kind, _ in kinds) else _AGE
    return ("extreme", directions[folded]) if folded in directions else None


# -- operators in words ------------------------------------------------------------------------------


#: Words for operators in an `operator` option.
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


def operator_of(word: Literal) -> str:
    """Return the operator that a word means ("greater than" is ">"); raises `UnknownNameError`."""
    op = OPERATOR_WORDS.get(word.text.strip().casefold().replace(" ", "_"))
    if op is None:
        raise UnknownNameError("operator", word.text, candidates=nearest(word.text, OPERATOR_WORDS), span=word.span)
    return op
