"""Values in words: numbers with their units, times, comparisons."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from condgraph.engine.values import DAY_SECONDS, NO_UNIT, Precision, Quantity, Time, civil, format_number
from condgraph.questions import forms
from condgraph.questions.description import Cell
from condgraph.questions.lexicon import PREPOSITIONS
from condgraph.questions.locate import is_code

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
#: Endings, and nouns, that are no plurals; and plurals that nobody counts.
_ONE: Final = ("ss", "us", "is", "as", "os", "ics")
_ONES: Final = frozenset({"series", "species", "news", "alias", "lens", "always", "previous"})
_AMOUNTS: Final = frozenset({"sales", "earnings", "proceeds", "winnings", "assets", "expenses", "savings", "wages", "coordinates"})


def number(value: Quantity) -> str:
    """A number as people write it, with its unit: "282 square kilometres".

    >>> number(Quantity(8670300)), number(Quantity(1.98, "metre")), number(Quantity(1, "metre")), number(Quantity(5, "$"))
    ('8,670,300', '1.98 metres', '1 metre', '5 $')
    """
    text = format_number(value.number)
    digits, point, rest = text.partition(".")
    if len(digits.lstrip("-")) > 4 and digits.lstrip("-").isdigit():
        text = f"{int(digits):,}{point}{rest}"
    if value.unit == NO_UNIT:
        return text
    return f"{text} {value.unit if value.number == 1 else forms.unit(value.unit)}"


def moment(value: Time) -> str:
    """A time in words: "1958", "May 1958", "29 May 1958", "44 BC"."""
    year, month, day = civil(value.start // DAY_SECONDS)
    shown = str(year) if year > 0 else f"{1 - year} BC"
    if value.precision is Precision.YEAR:
        return shown
    return f"{_MONTHS[month - 1]} {shown}" if value.precision is Precision.MONTH else f"{day} {_MONTHS[month - 1]} {shown}"


def cell(value: Cell) -> str:
    """A value in words."""
    return value if isinstance(value, str) else number(value) if isinstance(value, Quantity) else moment(value)


def when(op: str, value: Time) -> str:
    """When something happened: "in 1958", "before 1960", "on 29 May 1958"."""
    words = {"<": "before", ">": "after", "<=": "no later than", ">=": "no earlier than"}
    at = words.get(op) or ("on" if value.precision is Precision.DAY else "in")
    return ("not " if op == "!=" else "") + f"{at} {moment(value)}"


def attribute(key: str, value: Cell) -> tuple[str, str]:
    """The name of an attribute before its value, and the verb between them: units are counted, and
    comments are what they are.

    >>> attribute("population", Quantity(5)), attribute("unitsInStock", Quantity(5)), attribute("Comments", "good")
    (('population', 'is'), ('number of units in stock', 'is'), ('Comments', 'are'))
    """
    name = forms.words_of(key)
    if (noun := forms.column(key)) != name:
        return noun, "is"
    head = list(takewhile(lambda word: word.casefold() not in PREPOSITIONS, name.split()))
    last = head[-1].casefold() if head else ""
    if len(last) < 4 or not last.isalpha() or not last.endswith("s") or last.endswith(_ONE) or last in _ONES:
        return name, "is"
    counts = isinstance(value, Quantity) and value.unit == NO_UNIT and last not in _AMOUNTS
    return (f"number of {name}", "is") if counts else (name, "are")


def plain(key: str, value: Cell) -> str:
    """A value of an attribute: texts in quotes, codes without separators."""
    if isinstance(value, str):
        return f"“{value}”"
    if isinstance(value, Quantity) and value.unit == NO_UNIT and is_code(key, value):
        return format_number(value.number)
    return cell(value)


def compared(op: str, value: Cell, key: str = "") -> str:
    """What follows "is": "206 centimetres", "more than 200", "after 1960"."""
    if isinstance(value, Time):
        return moment(value) if op == "=" else when(op, value)
    words = {"=": "", "!=": "not ", "<": "less than ", ">": "more than ", "<=": "at most ", ">=": "at least "}
    return words[op] + plain(key, value)
