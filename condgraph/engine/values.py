"""Typed values: text, quantity, time, and the unknown value.

Text is a plain `str`. A `Quantity` is a number with a unit ("1" if it has none). A `Time` is a half-open interval of
seconds with the precision in which it was written, so that 1960 is the whole year. `UNKNOWN` is a value that exists
and is not known (Wikidata's "some value", the `####` of a temporal knowledge graph).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum, IntEnum
from fractions import Fraction
from functools import total_ordering
from typing import Any, ClassVar, Final, TypeAlias

DAY_SECONDS: Final = 86_400
#: Bounds of an interval that has no beginning, or no end.
OPEN_START: Final = -(2**63) + 1
OPEN_END: Final = 2**63 - 1
#: Bounds that exist and are not known; only validities of statements have them.
UNKNOWN_START: Final = -(2**63)
UNKNOWN_END: Final = 2**63 - 2
#: The last year of times, and the first when negative.
LAST_YEAR: Final = 290_000_000_000
#: The unit of a pure number.
NO_UNIT: Final = "1"
#: The most digits of a number before the point, or zeros after it; Python converts no longer integers to text.
MAX_DIGITS: Final = 4300

Number: TypeAlias = int | float | Decimal


class Precision(IntEnum):
    """The precision in which a time was written. `SPAN` is an interval given by its two ends."""

    SPAN = 0
    YEAR = 1
    MONTH = 2
    DAY = 3
    SECOND = 4


class Kind(IntEnum):
    """The type of a stored value."""

    TEXT = 0
    QUANTITY = 1
    TIME = 2
    ENTITY = 3
    UNKNOWN = 4


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit. The number is an `int`, a `float`, or a `Decimal` where a float would lose digits."""

    number: Number
    unit: str = NO_UNIT

    def __str__(self) -> str:
        number = format_number(self.number)
        return number if self.unit == NO_UNIT else f"{number} {self.unit}"


@total_ordering
@dataclass(frozen=True, slots=True)
class Time:
    """The half-open interval `[start, end)` in seconds from 1970-01-01 (proleptic Gregorian, year 0 is 1 BC), with
    its precision.

    Times are equal if interval and precision are; they are ordered by start, then end.
    """

    start: int
    end: int
    precision: Precision

    @classmethod
    def year(cls, year: int) -> Time:
        """Return a year: `Time.year(1960)`, `Time.year(-43)` for 44 BC."""
        return cls(_day(year, 1, 1) * DAY_SECONDS, _day(year + 1, 1, 1) * DAY_SECONDS, Precision.YEAR)

    @classmethod
    def month(cls, year: int, month: int) -> Time:
        """Return a month; `month` is 1 to 12."""
        if not 1 <= month <= 12:
            raise ValueError(f"there is no month {month}")
        following = (year, month + 1) if month < 12 else (year + 1, 1)
        return cls(_day(year, month, 1) * DAY_SECONDS, _day(*following, 1) * DAY_SECONDS, Precision.MONTH)

    @classmethod
    def day(cls, year: int, month: int, day: int) -> Time:
        """Return a day; raise ValueError for one that the calendar does not have."""
        if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
            raise ValueError(f"there is no day {year}-{month:02d}-{day:02d}")
        start = _day(year, month, day) * DAY_SECONDS
        return cls(start, start + DAY_SECONDS, Precision.DAY)

    @classmethod
    def second(cls, year: int, month: int, day: int, hour: int, minute: int, second: int = 0) -> Time:
        """Return one second of a day."""
        if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
            raise ValueError(f"there is no time of day {hour:02d}:{minute:02d}:{second:02d}")
        start = cls.day(year, month, day).start + hour * 3600 + minute * 60 + second
        return cls(start, start + 1, Precision.SECOND)

    @classmethod
    def span(cls, first: Time | None, last: Time | None) -> Time:
        """Return the interval from the start of `first` to the end of `last`; None leaves that side open."""
        start = OPEN_START if first is None else first.start
        end = OPEN_END if last is None else last.end
        if start >= end:
            raise ValueError(f"the interval from {first} to {last} ends before it begins")
        return cls(start, end, Precision.SPAN)

    @classmethod
    def parse(cls, text: str) -> Time:
        """Read an ISO 8601 year, month, day, second, or `first/last`; raise ValueError with the reason."""
        first, slash, last = text.strip().partition("/")
        if "/" in last:
            raise ValueError(f"{text!r} has more than one '/': an interval has two ends")
        if slash:
            return cls.span(
                None if first.strip() in ("", "..") else cls.parse(first),
                None if last.strip() in ("", "..") else cls.parse(last),
            )
        match = _ISO(first)
        if match is None:
            raise ValueError(f"{text!r} is not a year, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS")
        year, month, day, hour, minute, second, zone = match.groups()
        if hour is not None:
            moment = cls.second(int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
            shift = _zone_seconds(zone)
            return cls(moment.start - shift, moment.end - shift, Precision.SECOND) if shift else moment
        if day is not None:
            return cls.day(int(year), int(month), int(day))
        if month is not None:
            return cls.month(int(year), int(month))
        return cls.year(int(year))

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        return (self.start, self.end, self.precision) < (other.start, other.end, other.precision)

    def __str__(self) -> str:
        if self.precision is Precision.SPAN:
            first = "" if self.start <= OPEN_START else _bound_text(self.start)
            last = "" if self.end >= UNKNOWN_END else _bound_text(self.end, last=True)
            return f"{first}/{last}"
        year, month, day = civil(self.start // DAY_SECONDS)
        if self.precision is Precision.YEAR:
            return str(year)
        text = f"{_year_text(year)}-{month:02d}"
        if self.precision is Precision.MONTH:
            return text
        text += f"-{day:02d}"
        if self.precision is Precision.DAY:
            return text
        rest = self.start % DAY_SECONDS
        return f"{text}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


Value: TypeAlias = str | Quantity | Time | Unknown

_ISO: Final[Callable[[str], re.Match[str] | None]] = re.compile(
    r"\s*([+-]?\d{1,12})(?:-(\d{2})(?:-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.0*)?)?(Z|[+-]\d{2}:?\d{2})?|Z)?)?)?\s*"
).fullmatch


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return -minutes * 60 if zone[0] == "-" else minutes * 60


def _day(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 (Hinnant's `days_from_civil`); raise ValueError for a year whose seconds exceed
    64 bits.
    """
    if not -LAST_YEAR <= year <= LAST_YEAR + 1:
        raise ValueError(f"the year {year} is more than {LAST_YEAR:,} years away")
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil(days: int) -> tuple[int, int, int]:
    """Return the year, month and day for a number of days from 1970-01-01; the inverse of `_day`."""
    days += 719_468
    era = days // 146_097
    of_era = days - era * 146_097
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def days_in_month(year: int, month: int) -> int:
    """Return the length of a month in days."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _year_text(year: int) -> str:
    return f"{year:04d}" if year >= 0 else f"-{-year:04d}"


def _bound_text(seconds: int, *, last: bool = False) -> str:
    """Return the shortest ISO text of the period that starts (with `last`, ends) at a moment."""
    days, rest = divmod(seconds, DAY_SECONDS)
    if rest:
        return str(Time(seconds - last, seconds - last + 1, Precision.SECOND))
    year, month, day = civil(days)
    if day == 1 and month == 1:
        return str(year - last)
    if day == 1:
        return str(Time.month(year, month - 1 if last else month))
    return str(Time(seconds - last * DAY_SECONDS, seconds + (1 - last) * DAY_SECONDS, Precision.DAY))


def format_number(number: Number) -> str:
    """Return the text of a number without loss: integral ones as integers, others in Python's shortest form.

    >>> format_number(Decimal("0.12345678901234567890"))
    '0.1234567890123456789'
    """
    if isinstance(number, float):
        if number.is_integer():
            return str(int(number))
        return repr(number)
    if isinstance(number, Decimal):
        return str(int(number)) if number == number.to_integral_value() else format(number, "f").rstrip("0")
    return str(number)


def as_float(quantity: Quantity) -> tuple[float, bool]:
    """Return the nearest float of a quantity (infinite if it is out of range), and whether it is exact."""
    number = quantity.number
    if isinstance(number, float):
        return number, True
    try:
        nearest = float(number)
    except OverflowError:
        return (math.inf if number > 0 else -math.inf), False
    exact = Decimal(repr(nearest)) == number if isinstance(number, Decimal) else int(nearest) == number
    return nearest, exact


def number_order(number: Decimal) -> str:
    """Return a text that sorts like the number."""
    if not number:
        return "1"
    _, digits, _ = number.as_tuple()
    figures = "".join(map(str, digits)).strip("0")
    exponent = number.adjusted() + 50_000
    if number > 0:
        return f"2{exponent:06d}{figures}"
    return f"0{999_999 - exponent:06d}" + "".join(str(9 - int(c)) for c in figures) + "~"


def tie_break(number: Number) -> str:
    """Return a text that orders numbers with the same float: "1" for the float as it prints, texts below and above it
    for others.
    """
    nearest, _ = as_float(Quantity(number))
    printed = None if math.isinf(nearest) else Decimal(format_number(nearest))
    exact = number if isinstance(number, Decimal) else Decimal(format_number(number))
    if printed is not None and exact == printed:
        return "1"
    above = nearest < 0 if printed is None else exact > printed
    return ("2" if above else "0") + number_order(exact)


def exact(number: Any) -> Fraction:
    """Return a number without loss; a float stands for its shortest text."""
    return Fraction(Decimal(repr(number))) if isinstance(number, float) else Fraction(number)


def as_number(exact: Fraction) -> Number:
    """Return an exact number without loss: an integer, a float whose shortest text it is, or a decimal. If its
    decimals do not end, or are too many, return `nearest_number`.

    >>> as_number(Fraction(3, 10)), as_number(Fraction(12345678901234567890123, 100)), as_number(Fraction(1, 3))
    (0.3, Decimal('123456789012345678901.23'), 0.3333333333333333)
    """
    if exact.denominator == 1:
        return int(exact)
    scale, remainder = divmod(_SCALE, exact.denominator)
    if not remainder and abs(exact.numerator) * scale < _MAX_EXACT:
        # A float represents fifteen digits exactly.
        return exact.numerator / exact.denominator
    decimals = _decimals(exact.denominator)
    if decimals is None:
        return nearest_number(exact)
    digits = exact.numerator * 10**decimals // exact.denominator
    if abs(digits) >= _MAX_INTEGER:
        return nearest_number(exact)
    decimal = Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -decimals))
    nearest = float(decimal)
    return nearest if math.isfinite(nearest) and Decimal(repr(nearest)) == decimal else decimal


def nearest_number(exact: Fraction) -> Number:
    """Return an integer, or the nearest float; a decimal of `_PLACES` places where a float would print digits that it
    does not have.
    """
    if exact.denominator == 1:
        return int(exact)
    if abs(exact) < _INTEGRAL:
        return exact.numerator / exact.denominator
    digits = round(exact * 10**_DECIMALS)
    if abs(digits) >= _MAX_INTEGER:
        return round(exact)
    return as_number(Fraction(digits, 10**_DECIMALS))


def _decimals(denominator: int) -> int | None:
    """Return the number of decimals of a fraction in lowest terms; None if they do not end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest > 1 and fives < MAX_DIGITS:
        rest, remainder = divmod(rest, 5)
        if remainder:
            return None
        fives += 1
    return max(twos, fives) if rest == 1 and twos < MAX_DIGITS else None


#: The scale of nine decimals, and the bound of fifteen digits that a float represents exactly.
_SCALE: Final = 10**9
_MAX_EXACT: Final = 10**15
#: From here on all floats are whole numbers.
_INTEGRAL: Final = 2**53
#: The decimals of larger quotients.
_DECIMALS: Final = 6
_MAX_INTEGER: Final = 10**MAX_DIGITS


def parse_number(text: str) -> Number:
    """Read a plain decimal number without loss; raise ValueError. Separators, `nan` and `inf` are not numbers.

    >>> parse_number("206"), parse_number("-85.55"), parse_number("0.1000000000000000055511151231257827")
    (206, -85.55, Decimal('0.1000000000000000055511151231257827'))
    """
    text = text.strip()
    if not _NUMBER(text):
        raise ValueError(f"{text!r} is not a number")
    try:
        return int(text)
    except ValueError:
        pass
    number = float(text)
    try:
        exact = Decimal(text)
    except InvalidOperation:  # pragma: no cover - the pattern admits no such text
        raise ValueError(f"{text!r} is not a number") from None
    if abs(exact.adjusted()) >= MAX_DIGITS:
        raise ValueError(f"{text[:20]!r}... has more than {MAX_DIGITS} digits")
    # A float prints as a whole number or as its shortest text; 1e23 equals neither.
    return number if exact == (int(number) if number.is_integer() else Decimal(repr(number))) else exact


_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,4300}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII).fullmatch


def parse_quantity(text: str) -> Quantity:
    """Read a number with an optional unit: "188 centimetre", "23"; raise ValueError."""
    number, _, unit = text.strip().partition(" ")
    return Quantity(parse_number(number), clean_unit(unit))


def collapse(text: str) -> str:
    """Replace each run of white space by one space and strip the ends: the form in which texts are compared."""
    return " ".join(text.split())


def fold(text: str) -> str:
    """Return the form in which texts are compared without regard to case, accents and white space.

    >>> fold("  Hyytiäinen  STRASSE ") == fold("hyytiainen straße")
    True
    """
    text = text.casefold()
    if not text.isascii():
        # Marks are removed before as well: sorting a long run of them takes quadratic time.
        decomposed = unicodedata.normalize("NFKD", "".join(character for character in text if not unicodedata.combining(character)))
        text = "".join(character for character in decomposed if not unicodedata.combining(character)).casefold()
    return " ".join(text.split())


#: Where a small letter or digit meets a capital, and where capitals end before a word.
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def humps(text: str) -> str:
    """Split a name in one word into its parts: "placeOfBirth" is "place Of Birth"."""
    # Names with spaces consist of words already: "McDonald's burger".
    return text if " " in text.strip() else _HUMPS.sub(" ", text)


def clean_unit(unit: str) -> str:
    """Return a unit as graphs store it: white space collapsed, "1" for an empty one.

    >>> clean_unit(" metre  per second "), clean_unit("")
    ('metre per second', '1')
    """
    return collapse(unit) or NO_UNIT


def bound_text(seconds: int) -> str | None:
    """Return the bound of an interval as ISO text (a day if it is midnight); None for an open or unknown side."""
    if seconds <= OPEN_START or seconds >= UNKNOWN_END:
        return None
    if seconds % DAY_SECONDS:
        return str(Time(seconds, seconds + 1, Precision.SECOND))
    return str(Time(seconds, seconds + DAY_SECONDS, Precision.DAY))


def text_of(value: Value | bool | Number) -> str:
    """Return a value as shown to users: "Bavaria", "1.98 metre", "1958-05-29", "42", "yes"."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float, Decimal)):
        return format_number(value)
    return str(value)


# -- texts that have a form of their own -----------------------------------------------------------
# A point is a text `POINT(longitude latitude)`: a subclass of `str` that holds the canonical text. It is stored as a text whose
# unit is the name of the form, in snapshots and on servers: readers that do not know the form read, compare and sort it as text.

#: Mean radius of the Earth in metres (IUGG, R1).
EARTH_RADIUS: Final = 6_371_008.8


#: The number of WGS84 in degrees, longitude first in Cypher (EPSG).
WGS84: Final = 4326


class FormedText(str):
    """A value whose text has a form, named `form` in `FORMS`."""

    __slots__ = ()
    form: ClassVar[str]


class Point(FormedText):
    """A place on Earth (WGS84) as its canonical text, longitude first: `Point.of(13.4, 52.5)` is `POINT(13.4 52.5)`."""

    __slots__ = ()
    form = "point"

    @classmethod
    def of(cls, longitude: float, latitude: float) -> Point:
        """Return the point at these degrees; raise ValueError if it is not on Earth."""
        if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
            raise ValueError(f"no place has longitude {longitude} and latitude {latitude}")
        return cls(f"POINT({_degrees(longitude)} {_degrees(latitude)})")

    @property
    def longitude(self) -> float:
        """Degrees east of Greenwich."""
        return float(self[6:-1].partition(" ")[0])

    @property
    def latitude(self) -> float:
        """Degrees north of the equator."""
        return float(self[6:-1].partition(" ")[2])

    @property
    def order(self) -> tuple[float, float]:
        """The sort key among points: from west to east, then from south to north."""
        return self.longitude, self.latitude

    def part(self, key: str) -> Any:
        """Return a property of Cypher's points, in any case; raise `KeyError` for others.

        >>> Point.of(13.4, 52.5).part("y"), Point.of(13.4, 52.5).part("crs")
        (52.5, 'wgs-84')
        """
        parts = {"longitude": 0, "x": 0, "latitude": 1, "y": 1, "srid": 2, "crs": 3}
        return (self.longitude, self.latitude, WGS84, "wgs-84")[parts[key.casefold()]]

    def distance(self, other: Point) -> float:
        """Return the great-circle distance on a sphere in metres (haversine), rounded to the millimetre."""
        latitude_a, latitude_b = math.radians(self.latitude), math.radians(other.latitude)
        delta = math.radians(other.longitude - self.longitude)
        chord = (
            math.sin((latitude_b - latitude_a) / 2) ** 2 + math.cos(latitude_a) * math.cos(latitude_b) * math.sin(delta / 2) ** 2
        )
        return round(2 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, chord))), 3)


def _degrees(number: float) -> str:
    number = float(number) + 0.0
    return str(int(number)) if number.is_integer() else format(Decimal(repr(number)), "f")


_COORDINATE: Final = r"\s*([+-]?(?:\d{1,3}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,2})?)\s*"
#: Points in well-known text (longitude first), in Neo4j's notation, and in GeoJSON.
_POINTS: Final = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE).fullmatch
    for pattern in (
        rf"(?:SRID=4326;\s*|<https?://www\.opengis\.net/def/crs/OGC/1\.3/CRS84>\s*)?POINT\s?\({_COORDINATE}\s{_COORDINATE}\)",
        rf"point\(\{{(?:srid: ?4326, ?)?x:{_COORDINATE},\s*y:{_COORDINATE}(?:, ?crs: ?'wgs-84'|, ?srid: ?4326)?\}}\)",
        rf'\{{\s*"type"\s*:\s*"Point"\s*,\s*"coordinates"\s*:\s*\[{_COORDINATE},{_COORDINATE}\]\s*\}}',
        rf'\{{\s*"coordinates"\s*:\s*\[{_COORDINATE},{_COORDINATE}\]\s*,\s*"type"\s*:\s*"Point"\s*\}}',
    )
)
_MAY_BE_POINT: Final = re.compile(r"point|SRID=|<http|\{", re.IGNORECASE).match
#: The longest text of a point, in characters.
_MAX_POINT: Final = 250


def read_point(text: str) -> Point | None:
    """Return a point from well-known text, GeoJSON, or Neo4j's notation; None for other texts and other coordinate
    systems.

    >>> read_point("Point(13.40 52.5)"), read_point('{"type": "Point", "coordinates": [2.35, 48.85]}'), read_point("POINT(200 0)")
    ('POINT(13.4 52.5)', 'POINT(2.35 48.85)', None)
    """
    if len(text) > _MAX_POINT or not _MAY_BE_POINT(text):
        return None
    # Without a coordinate system it is one of Neo4j's Cartesian points.
    if "crs" not in text and "srid" not in text.casefold() and text[:7].casefold() == "point({":
        return None
    for pattern in _POINTS:
        if match := pattern(text):
            try:
                return Point.of(float(match[1]), float(match[2]))
            except ValueError:
                return None
    return None


@dataclass(frozen=True, slots=True)
class Form:
    """A type of texts: its Python class, a function that reads any spelling (None: not such a value), the datatype of
    its RDF literals, and the additional fields of a value in JSON.
    """

    of: type[FormedText]
    read: Callable[[str], FormedText | None]
    datatype: str
    record: Callable[[Any], dict[str, Any]]


#: The forms by name, which is also the unit of such texts and the name of their type.
FORMS: Final[dict[str, Form]] = {
    Point.form: Form(
        Point,
        read_point,
        "http://www.opengis.net/ont/geosparql#wktLiteral",
        lambda point: {"longitude": point.longitude, "latitude": point.latitude},
    ),
}
_BY_DATATYPE: Final = {form.datatype: form for form in FORMS.values()}


def form_of(text: str) -> str:
    """Return the name of a text's form, `NO_UNIT` for a plain text: its unit in storage."""
    return text.form if isinstance(text, FormedText) else NO_UNIT


def formed(text: str, unit: str | None) -> str:
    """Return a stored text as a value; a form unknown to this version gives a plain text."""
    form = None if unit is None else FORMS.get(unit)
    return text if form is None else form.of(text)


def of_datatype(text: str, datatype: str) -> FormedText | None:
    """Return the value of an RDF literal; None if its datatype is not that of a form, or the text does not match."""
    form = _BY_DATATYPE.get(datatype)
    return None if form is None else form.read(text)


def type_word(kind: str, unit: str) -> str:
    """Return the name of a type for users, given the word for its kind and its unit: the form's name for texts that
    have one.
    """
    return unit if kind == "text" and unit in FORMS else kind
