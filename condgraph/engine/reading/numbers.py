"""Read numbers in cells: separators, signs, currency, percent, scale words, ordinals, units, feet and
inches.

A cell may have several readings ("1.234" is a decimal, or 1234 if the dot separates thousands);
the column decides between them (`loaders.table.column_types.Profile`). The tags of the readings:

- `num`    digits alone, with a sign, a currency, a percent sign or a unit: the same in every style
- `en`     a point before decimals
- `comma`  commas between thousands (also groups of two, as in 12,34,567, and apostrophes), a point before decimals
- `eu`     a comma before decimals, or points between thousands
- `cont`   the same where no other reading is possible: 1.234,56, 1.234.567, or a unit after the decimals (12,5 %)
- `space`  spaces between thousands
- `minus`  digits alone with a minus after them: 100-
- `exp`    digits with an exponent that has a sign: 5E+1, 1e-3
- `sci`    digits with an exponent and no sign at all: 5E1, which is a code as often as a number
- `ord`    an ordinal: 3rd
- `paren`  a number in parentheses, read as negative; `pareu` with a comma before its decimals
- `code`   digits with leading zeros, three or more: a code rather than a number

Amounts marked as debit or credit (`5.00 DR`, `CR 5.00`, `12,00 S`) also have a reading of the family
`side`. It counts only if the whole column has such marks.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, Literal, NamedTuple, TypeAlias

from condgraph.engine.reading.words import KNOWN_UNITS, NO_UNITS
from condgraph.engine.values import NO_UNIT, Number, Quantity, Value, format_number, parse_number

Family: TypeAlias = Literal["number", "time", "clock", "list", "side", "form"]


MONEY: Final = "¤"
PERCENT: Final = "%"
#: Notes of numbers with commas that may be lists, because all groups have three digits and no leading
#: zero: two groups, more groups, and more groups in ascending order.
LISTS: Final = (",", ",,", ",<")


class Reading(NamedTuple):
    """One reading of a cell: its family, the tag that the column decides by, the value, and a note.

    The note of a number is the unit as written if only the column can confirm that the word is a unit, `MONEY` for
    currencies, `PERCENT`, or one of `LISTS`; for a number in parentheses it may also be the tag of the number inside.
    A reading of the family `list` is not a number: 1,2,3. The tag of the family `side` is the mark and the tag of the
    amount: `dr:en`.
    """

    family: Family
    tag: str
    value: Value
    note: str = ""


_SCALES: Final = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_MONEY_SCALES: Final = {"k": 3, "m": 6, "mn": 6, "mln": 6, "mil": 6, "b": 9, "bn": 9, "bln": 9, "tn": 12, **_SCALES}
#: Vulgar fractions with finite decimals, and the digits they add after the point.
_FRACTIONS: Final = {
    "½": "5",
    "¼": "25",
    "¾": "75",
    "⅛": "125",
    "⅜": "375",
    "⅝": "625",
    "⅞": "875",
    "1⁄2": "5",
    "1⁄4": "25",
    "3⁄4": "75",
}

CODES: Final = (
    "USD|EUR|GBP|JPY|CNY|RMB|INR|CHF|AUD|CAD|NZD|HKD|SGD|SEK|NOK|DKK|PLN|CZK|HUF|RUB|TRY|BRL|MXN|ZAR|KRW|THB|IDR|PHP|MYR|ILS|AED"
)
_SIGNS: Final = "€£¥¢₹₩₽₺₪₫₱฿₴₦"
_PREFIX: Final = rf"(?:US|AU|NZ|HK|CA|NT|MX|A|C|R|S)?\$|[{_SIGNS}]|Rs\.?(?=[\s\d])|(?:{CODES})(?=[\s\d+-])"
_SUFFIX: Final = re.compile(rf"[{_SIGNS}$]|zł|kr\.?|(?:{CODES})")
_NUMBER_PARTS: Final = re.compile(
    rf"(?P<sign>[+-]\s?)?(?:(?P<money>{_PREFIX})\s?)?(?P<sign2>[+-])?"
    r"(?P<body>(?:\d|\.\d)(?:[\d.,'’]*\d)?(?: \d{3}(?![\d:/]))*(?:(?<=\d \d{3})[.,]\d+)?)(?P<dot>\.(?=$))?"
    r"(?P<exponent>[eE][+-]?\d{1,3}(?![\w.]))?\s?(?P<fraction>[½¼¾⅛⅜⅝⅞]|[13]⁄[24])?\s?(?P<rest>.*)",
    re.ASCII | re.DOTALL,
)
_COMMAS: Final = re.compile(
    r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?|[1-9]\d{0,2}(?:['’]\d{3})+(?:\.\d+)?", re.ASCII
)
_APOSTROPHES: Final = re.compile(r"[1-9]\d{0,2}(?:['’]\d{3})+,\d+", re.ASCII)
#: Numbers that may be lists of three-digit numbers.
_TRIPLES: Final = re.compile(r"[1-9]\d\d(?:,[1-9]\d\d)+", re.ASCII)
#: A minus after the digits, or after their unit.
_TRAILING_MINUS: Final = re.compile(rf"([^-]*\d)(?:-(\s?(?:[{_SIGNS}$]|{CODES}))?|(\s?[{_SIGNS}$])-)", re.ASCII)
_POINT: Final = re.compile(r"\d*\.\d+", re.ASCII)
_POINTS: Final = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?", re.ASCII)
_COMMA: Final = re.compile(r"\d+,\d+", re.ASCII)
_SPACES: Final = re.compile(r"[1-9]\d{0,2}(?: \d{3})+(?:[.,]\d+)?", re.ASCII)
_YEAR: Final = re.compile(r"1\d{3}|20\d{2}", re.ASCII)
_ORDINAL: Final = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{1,9}) ?(st|nd|rd|th)", re.ASCII | re.IGNORECASE)
_UNIT: Final = re.compile(r"[°µΩ]?[^\W\d_]+(?:[./·][^\W\d_]+)*[²³23]?\.?(?: [^\W\d_]+[²³23]?\.?){0,2}")
_CONVERSION: Final = re.compile(r"\s*\([~≈]?[+-]?[\d.,½¼¾⁄ ]*\d[½¼¾]?\s?[^\W\d][^()]{0,24}\)")
_FEET: Final = re.compile(
    r"(?P<feet>\d{1,4})\s?(?:ft|feet|foot)\.?,? (?P<inches>\d{1,2}(?:\.\d+)?)?\s?(?P<fraction>[½¼¾⅛⅜⅝⅞]|[13]⁄[24])?"
    r"\s?(?:in|inches|inch)\.?",
    re.ASCII,
)


def read_number(text: str) -> list[Reading]:
    """Return the number readings of a cell, with white space collapsed and without footnote marks; empty if there are
    none.

    >>> [(reading.tag, str(reading.value)) for reading in read_number("1,234")]
    [('comma', '1234'), ('eu', '1.234')]
    >>> [str(reading.value) for reading in read_number("£10.2 billion")]
    ['10200000000 £']
    """
    if text[0] == "=" and text[1:].isdigit():
        # A shared rank.
        text = text[1:]
    if text[0] in "−–﹣－" and len(text) > 1:
        text = "-" + text[1:]
    elif "−" in text:
        text = text.replace("−", "-")
    if text[0] == "(" and text[-1] == ")":
        return _in_parentheses(text)
    if "-" in text[1:]:
        match = _TRAILING_MINUS.fullmatch(text)
        if match is not None:
            return _trailing_minus(match[1] + (match[2] or match[3] or ""))
    parts = _NUMBER_PARTS.fullmatch(text)
    if parts is None:
        return []
    if parts["rest"]:
        if parts["rest"][0] in "-–—/:":
            return []
        special = _special(text, parts)
        if special is not None:
            return special
    suffix = _suffix(parts)
    if suffix is None:
        return []
    unit, power, note = suffix
    if parts["sign"] and parts["sign2"]:
        return []
    negative = "-" in (parts["sign"] or "") or parts["sign2"] == "-"
    extra = _FRACTIONS.get(parts["fraction"] or "")
    readings = []
    alone = not (parts["sign"] or parts["sign2"] or parts["fraction"] or parts["rest"] or parts["money"])
    for tag, digits in _bodies(parts["body"]):
        if tag == "eu" and "," in parts["body"] and unit != NO_UNIT and not _COMMAS.fullmatch(parts["body"]):
            tag = "cont"
        if extra and (parts["exponent"] or not digits.isdigit()):
            continue
        if parts["exponent"]:
            if tag not in ("num", "en"):
                continue
            digits += parts["exponent"]
            if tag == "num":
                tag = "sci" if alone and parts["exponent"][1].isdigit() else "exp"
        number: Number
        if digits.isdigit():
            number = int(digits)
        else:
            # A float keeps fifteen digits.
            number = float(digits) if len(digits) < 17 and not parts["exponent"] else parse_number(digits)
        if extra or power:
            digits = f"{digits}.{extra}" if extra else digits
            sign, figures, exponent = Decimal(digits).as_tuple()
            number = parse_number(format_number(Decimal((sign, figures, int(exponent) + power))))
        if negative:
            number = _negated(number)
        reading_note = _list_note(parts["body"]) if tag == "comma" and alone else note
        readings.append(Reading("number", tag, Quantity(number, unit), reading_note))
    if readings and readings[0].tag == "code" and (suffix != (NO_UNIT, 0, "") or parts["sign"] or parts["exponent"]):
        return []
    return readings


def _list_note(body: str) -> str:
    """Return which of `LISTS` digits with commas may be; "" if they are a number."""
    if not _TRIPLES.fullmatch(body):
        return ""
    groups = body.split(",")
    if len(groups) == 2:
        return LISTS[0]
    return LISTS[2] if groups == sorted(set(groups)) else LISTS[1]


def _trailing_minus(text: str) -> list[Reading]:
    """Return the readings of a number with its minus at the end."""
    return [
        Reading(
            "number",
            "minus" if reading.tag in ("num", "sci") and reading.value.unit == NO_UNIT else reading.tag,
            Quantity(_negated(reading.value.number), reading.value.unit),
            "" if reading.note in LISTS else reading.note,
        )
        for reading in read_number(text)
        if isinstance(reading.value, Quantity) and reading.tag not in ("ord", "code") and text[0] not in "+=("
    ]


def _in_parentheses(text: str) -> list[Reading]:
    """Return the readings of a number in parentheses, which is negative."""
    if text[1] in "+-(−–":
        return []
    return [
        Reading(
            "number",
            "pareu" if reading.tag == "eu" else "paren",
            Quantity(_negated(reading.value.number), reading.value.unit),
            reading.tag if reading.note in ("", *LISTS) else reading.note,
        )
        for reading in read_number(text[1:-1].strip() or "?")
        if reading.tag in ("num", "en", "comma", "space", "cont", "eu") and isinstance(reading.value, Quantity)
    ]


_DEBIT_CREDIT: Final = re.compile(
    r"(?P<before>[DC]R)(?:\.?\s|(?=[^\w\s.]|\d))(?P<after>.+)"
    r"|(?P<amount>.+?)\s?(?<![A-Z])(?P<mark>[DC]R)\.?|(?P<german>.+[.,]\d\d)\s?(?P<letter>[SH])",
    re.ASCII | re.IGNORECASE,
)
_AMOUNTS: Final = ("num", "en", "comma", "eu", "cont", "space")


def read_side(text: str) -> list[Reading]:
    """Return the readings of an amount that is marked as debit (negative) or credit.

    >>> [(reading.tag, str(reading.value)) for reading in read_side("1,234.56 Dr")]
    [('dr:comma', '-1234.56')]
    """
    match = _DEBIT_CREDIT.fullmatch(text)
    if match is None or match["letter"] in ("s", "h"):
        return []
    amount = match["after"] or match["amount"] or match["german"]
    mark = (match["before"] or match["mark"] or match["letter"]).casefold()
    # A mark and a sign together are ambiguous.
    if amount[0] in "+-−–﹣－(=" or amount[-1] == "-":
        return []
    return [
        Reading(
            "side",
            f"{mark}:{reading.tag}",
            Quantity(_negated(reading.value.number), reading.value.unit) if mark in ("dr", "s") else reading.value,
            MONEY if reading.note == MONEY else "",
        )
        for reading in read_number(amount)
        if isinstance(reading.value, Quantity) and reading.tag in _AMOUNTS and reading.note in ("", MONEY, *LISTS)
        if reading.value.number >= 0 and (reading.note == MONEY) == (reading.value.unit != NO_UNIT)
    ]


def _negated(number: Number) -> Number:
    return -number if number else number


def _bodies(body: str) -> list[tuple[str, str]]:
    """Return the styles that digits and separators match, each with the digits in the form that `parse_number` takes."""
    if body.isdigit():
        return [("code" if body[0] == "0" and len(body) > 2 else "num", body)]
    if " " in body:
        return [("space", body.replace(" ", "").replace(",", "."))] if _SPACES.fullmatch(body) else []
    if _APOSTROPHES.fullmatch(body):
        return [("cont", body.replace("'", "").replace("’", "").replace(",", "."))]
    result = []
    if _COMMAS.fullmatch(body):
        result.append(("comma", body.replace(",", "").replace("'", "").replace("’", "")))
    elif _POINT.fullmatch(body):
        result.append(("en", body))
    if _POINTS.fullmatch(body):
        certain = "," in body or body.count(".") > 1
        result.append(("cont" if certain else "eu", body.replace(".", "").replace(",", ".")))
    elif _COMMA.fullmatch(body):
        result.append(("eu", body.replace(",", ".")))
    return result


def _special(text: str, parts: re.Match[str]) -> list[Reading] | None:
    """Return the readings of ordinals and of feet with inches; None for other texts."""
    ordinal = _ORDINAL.fullmatch(text)
    if ordinal is not None:
        digits = ordinal[1].replace(",", "")
        teens = len(digits) > 1 and digits[-2] == "1"
        suffix = "th" if teens else {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th")
        return [Reading("number", "ord", Quantity(int(digits)))] if suffix == ordinal[2].lower() else []
    if "f" in parts["rest"]:
        feet = _FEET.fullmatch(_without_conversion(text))
        if feet is not None and (feet["inches"] or feet["fraction"]):
            inches = (
                int(feet["feet"]) * 12 + Decimal(feet["inches"] or 0) + Decimal("0." + _FRACTIONS.get(feet["fraction"] or "", "0"))
            )
            return [Reading("number", "num", Quantity(parse_number(format_number(inches)), "in"))]
    return None


def _without_conversion(text: str) -> str:
    """Return the text without a measure in another unit at its end: "73 kg (161 lb)" gives "73 kg"."""
    position = text.rfind("(")
    return text[:position].rstrip() if position > 0 and _CONVERSION.fullmatch(text, position) else text


def _suffix(parts: re.Match[str]) -> tuple[str, int, str] | None:
    """Return the unit, the power of ten and the note (see `Reading`) of the text after the digits; None if it makes
    the text not a number.
    """
    rest = parts["rest"]
    money = parts["money"] or ""
    unit = money.rstrip() or NO_UNIT
    note = MONEY if money else ""
    if not rest:
        return unit, 0, note
    if rest[0] == "%":
        return ("%", 0, PERCENT) if not money and rest == "%" else None
    # The space before `rest` is matched outside it.
    attached = not parts.string[parts.start("rest") - 1].isspace()
    word, _, following = rest.partition(" ")
    scales = _MONEY_SCALES if money else _SCALES
    power = scales.get(word.rstrip(".").lower() if money else word.lower())
    if power is not None:
        rest = following.strip()
        if not rest:
            return unit, power, note
    power = power or 0
    if money:
        # "$5 USD" and "US$ 5 m" are amounts; "$5 lunch" is not.
        return (unit, power, note) if rest in CODES.split("|") else None
    if _SUFFIX.fullmatch(rest):
        return rest, power, MONEY
    shorter = _without_conversion("0 " + rest)[2:]
    if shorter:
        rest = shorter
    if rest in KNOWN_UNITS or rest.rstrip(".") in KNOWN_UNITS or rest.lower() in KNOWN_UNITS:
        # 1980s is a decade, not a duration.
        return None if rest == "s" and attached and len(parts["body"]) == 4 else (rest.rstrip("."), power, "")
    if attached or len(rest) > 32 or not _UNIT.fullmatch(rest):
        return None
    if rest.split(" ")[0].lower() in NO_UNITS and not (rest == "AM" and len(parts["body"]) > 2):
        return None
    if sum(word[0].isupper() for word in rest.split(" ")) > 1:
        # 120 Main Street is an address.
        return None
    if rest[0].isupper() and _YEAR.fullmatch(parts["body"]):
        # 2003 World Championships is an event, not an amount.
        return None
    return rest, power, rest
