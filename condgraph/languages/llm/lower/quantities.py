"""Numbers in literals of LLM queries: "1,200", "$5 million", "2e7", "25k", "(5)", "3rd", "425 kg".

What a cell may be, a literal may be: a literal has the readings that a cell of its text has
(`engine.reading`), and two more that no column has to confirm: a letter for thousands or millions
behind a bare number, and any word as a unit. The units of the column it is compared with decide
which of them counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from condgraph.engine.algebra import Condition
from condgraph.engine.reading.numbers import CODES
from condgraph.engine.reading.shapes import LONGEST, readings
from condgraph.engine.reading.words import KNOWN_UNITS
from condgraph.engine.units import conversions, fold_unit
from condgraph.engine.values import NO_UNIT, Number, Quantity, collapse, format_number, parse_number, parse_quantity

_NUMBER: Final = re.compile(
    r"[~≈]? ?(?P<sign>[-+−])? ?(?P<money>(?:US|A|C|NZ|HK)?\$|[€£¥₹₩])? ?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?P<ordinal>st|nd|rd|th)?"
    r"(?: ?(?P<scale>hundred|thousand|million|billion|trillion)\b)?(?: ?(?P<unit>[^\d\s](?:.*[^.\s])?)\.?)?",
    re.ASCII | re.IGNORECASE,
)
_SCALES: Final = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
#: Letters for powers of ten behind a number without a currency. A small m is a metre, unless the
#: column is one of money.
_LETTERED: Final = re.compile(r"(?P<number>.*\d)(?:(?P<letter>[kKMBmbt])| ?(?P<short>bn|mn|mln|mil|bln|tn)\.?)")
_LETTERS: Final = {"k": 3, "m": 6, "b": 9, "t": 12, "bn": 9, "mn": 6, "mln": 6, "mil": 6, "bln": 9, "tn": 12}
_SMALL: Final = frozenset("mbt")
#: Which reading of several counts where the column does not say: commas part thousands, a point
#: stands before decimals.
_ENGLISH: Final = ("num", "exp", "comma", "en", "ord", "space", "cont", "eu", "sci", "minus", "paren", "pareu")
_EUROPEAN: Final = ("num", "exp", "cont", "eu", "comma", "en", "ord", "space", "sci", "minus", "pareu", "paren")
#: Currencies by their sign; a sign of several currencies stands for the commonest.
_CURRENCIES: Final = {
    **dict.fromkeys(("us$", "usd", "dollar"), "$"),
    **dict.fromkeys(("eur", "euro"), "€"),
    **dict.fromkeys(("gbp", "pound sterling"), "£"),
    **dict.fromkeys(("jpy", "yen"), "¥"),
    **dict.fromkeys(("inr", "rupee", "rs"), "₹"),
    "krw": "₩",
}
_LONGEST_UNIT: Final = 30


@dataclass(slots=True)
class Typed:
    """The tests that a literal becomes for a column, and remarks on how it was read.

    `converted`: the literal has another unit than the values. `refused` says which unit it has and
    which the values have, where these do not compare; `certain` that its unit is a known one, so
    that it can mean nothing else.
    """

    conditions: list[Condition] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    converted: bool = False
    refused: str = ""
    certain: bool = False


def read_quantities(text: str, *, european: bool = False, money: bool = False) -> list[Quantity]:
    """What a literal can be as a number with its unit, the likeliest first; empty where it is none.

    `european`: the column has a comma before decimals; `money`: it is one of amounts of money.

    >>> [str(one) for one in read_quantities("25k")], [str(one) for one in read_quantities("25M")]
    (['25000'], ['25 M', '25000000'])
    """
    text = collapse(text)
    found = _as_cell(text, european)
    lettered = _LETTERED.fullmatch(text) if len(text) <= LONGEST else None
    if lettered is not None:
        letter = lettered["letter"] or lettered["short"]
        if letter not in _SMALL or money:
            found.extend(
                Quantity(_scaled(one.number, _LETTERS[letter.casefold()]))
                for one in _as_cell(lettered["number"], european)
                if one.unit == NO_UNIT
            )
    if not found and (one := _as_written(text)) is not None:
        found.append(one)
    return found


def read_quantity(text: str) -> Quantity | None:
    """A number with its unit (a word, a currency, a percent sign), of no column; None where it is
    none.

    >>> str(read_quantity("$1.5 million")), str(read_quantity("3rd")), str(read_quantity("425 kg")), read_quantity("kg")
    ('1500000 $', '3', '425 kg', None)
    """
    found = read_quantities(text)
    return next((one for one in found if one.unit == NO_UNIT), found[0] if found else None)


def _as_cell(text: str, european: bool) -> list[Quantity]:
    """A literal as the cell of its text would be read."""
    order = _EUROPEAN if european else _ENGLISH
    found = [reading for reading in readings(text) if reading.family == "number" and reading.tag in order]
    best = min(found, key=lambda reading: order.index(reading.tag), default=None)
    return [best.value] if best is not None and isinstance(best.value, Quantity) else []


def _as_written(text: str) -> Quantity | None:
    """A number with whatever follows it as its unit."""
    found = _NUMBER.fullmatch(text)
    if found is None or (found["unit"] and (found["money"] or len(found["unit"]) > _LONGEST_UNIT or found["unit"][0] in "-–/:,([")):
        return None
    try:
        number = parse_number(found["digits"].replace(",", ""))
        if found["scale"]:
            number = _scaled(number, _SCALES[found["scale"].casefold()])
    except ValueError:
        # More digits than a number may have.
        return None
    if (found["sign"] or "+") in "-−":
        number = -number
    return Quantity(number, found["money"] or found["unit"] or NO_UNIT)


def _scaled(number: Number, power: int) -> Number:
    return parse_number(format_number(Decimal(f"{format_number(number)}e{power}")))


def is_currency(unit: str) -> bool:
    """Whether a unit is a currency."""
    return unit.endswith("$") or unit in "€£¥₹₩₽₺₪₫₱฿₴₦" or unit in CODES.split("|") or _folded(unit) in ("$", "€", "£", "¥")


def in_units(text: str, units: dict[str, int], typed: Typed, *, european: bool = False) -> list[Quantity]:
    """A literal as quantities in the units of a column (`units`: how many values have each).

    A bare number is taken in the unit that most values have. A unit is left out, with a remark,
    where values have none. Where the units do not compare, nothing is given and `typed.refused`
    names both.
    """
    worded = {unit: count for unit, count in units.items() if unit != NO_UNIT}
    if not european and (own := _as_the_values(text, units)) is not None:
        return _everywhere([own], worded)
    read = read_quantities(text, european=european, money=bool(worded) and all(map(is_currency, worded)))
    if not read:
        return []
    _note_negative(text, read[0], typed)
    for one in read:
        if one.unit in units:
            return _everywhere([one], worded)
    for one in read:
        same = [unit for unit in worded if fold_unit(unit) == fold_unit(one.unit)]
        if same:
            return _everywhere([Quantity(one.number, unit) for unit in same], worded)
    for one in read:
        if one.unit != NO_UNIT and (converted := conversions(one, list(worded))):
            typed.converted = True
            return converted
    bare = next((one for one in read if one.unit == NO_UNIT), None)
    if bare is not None:
        unit = max(worded, key=lambda one: (worded[one], one))
        more = "" if len(worded) == 1 else f", the unit of most of {len(units)}"
        typed.remarks.append(f"{text!r} is read as {Quantity(bare.number, unit)}{more}")
        return _everywhere([Quantity(bare.number, unit)], worded)
    one = read[0]
    same = [unit for unit in worded if _folded(unit) == _folded(one.unit)]
    if same:
        typed.remarks.append(f"{one.unit!r} of {text!r} is taken for {' and '.join(map(repr, same))}, which the values have")
        return _everywhere([Quantity(one.number, unit) for unit in same], worded)
    if NO_UNIT in units:
        typed.remarks.append(f"the unit {one.unit!r} of {text!r} is left out: the values it is compared with have none")
        return [Quantity(one.number)]
    shown = " and ".join(map(repr, sorted(worded, key=lambda unit: (-worded[unit], unit))[:3]))
    typed.refused = f"{text!r} is in {one.unit!r}, and the values are in {shown}"
    typed.certain = is_currency(one.unit) or one.unit == "%" or fold_unit(one.unit) in _KNOWN
    return []


def _everywhere(found: list[Quantity], units: Iterable[str]) -> list[Quantity]:
    """A literal in the units that it has, and the same in all others of the column that compare with
    them: 300 cm are 3 m, whichever of them is written.
    """
    others = [unit for unit in units if all(unit != one.unit for one in found)]
    return [*found, *conversions(found[0], others)] if others else found


def _as_the_values(text: str, units: dict[str, int]) -> Quantity | None:
    """A literal that is written as values are: "3 thousand tonnes" of thousand tonnes. Where more values
    have no unit, "3 million" may be one of theirs.
    """
    with suppress(ValueError):
        found = parse_quantity(text)
        if found.unit != NO_UNIT and units.get(found.unit, 0) > units.get(NO_UNIT, 0):
            return found
    return None


def _note_negative(text: str, one: Quantity, typed: Typed) -> None:
    if text.strip().startswith("("):
        typed.remarks.append(f"{text!r} is read as {one}")


def _folded(unit: str) -> str:
    folded = fold_unit(unit)
    return _CURRENCIES.get(folded, folded)


_KNOWN: Final = frozenset(map(fold_unit, KNOWN_UNITS))
