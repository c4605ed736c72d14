"""Types of texts that have a form of their own, one record each: a point is a text `POINT(longitude latitude)`.

Such a value is a `str`, its canonical text, of a subclass. It is stored as a text whose unit is the name of the form, in
snapshots as on servers: whoever does not know the form reads, compares and orders it as its text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final

from condgraph.engine.values import NO_UNIT

#: Mean radius of the Earth in metres (IUGG, R1).
EARTH_RADIUS: Final = 6_371_008.8


#: The number of WGS84 in degrees, longitude first in Cypher (EPSG).
WGS84: Final = 4326


class FormedText(str):
    """A value whose text has a form; `form` is its name in `FORMS`."""

    __slots__ = ()
    form: ClassVar[str]


class Point(FormedText):
    """A place on Earth (WGS84) by its canonical text, longitude first: `Point.of(13.4, 52.5)` is `POINT(13.4 52.5)`."""

    __slots__ = ()
    form = "point"

    @classmethod
    def of(cls, longitude: float, latitude: float) -> Point:
        """The point at these degrees; raises ValueError for one that is not on Earth."""
        if not (-180 <= longitude <= 180 and -90 <= latitude <= 90):
            raise ValueError(f"there is no place at longitude {longitude} and latitude {latitude}")
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
        """Its place among points: from west to east, then from south to north."""
        return self.longitude, self.latitude

    def part(self, key: str) -> Any:
        """A property of it in Cypher, in any case; raises `KeyError` for one that it does not have.

        >>> Point.of(13.4, 52.5).part("y"), Point.of(13.4, 52.5).part("crs")
        (52.5, 'wgs-84')
        """
        parts = {"longitude": 0, "x": 0, "latitude": 1, "y": 1, "srid": 2, "crs": 3}
        return (self.longitude, self.latitude, WGS84, "wgs-84")[parts[key.casefold()]]

    def distance(self, other: Point) -> float:
        """Metres along the great circle of a sphere (haversine), rounded to the millimetre."""
        here, there = math.radians(self.latitude), math.radians(other.latitude)
        across = math.radians(other.longitude - self.longitude)
        chord = math.sin((there - here) / 2) ** 2 + math.cos(here) * math.cos(there) * math.sin(across / 2) ** 2
        return round(2 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, chord))), 3)


def _degrees(number: float) -> str:
    number = float(number) + 0.0
    return str(int(number)) if number.is_integer() else format(Decimal(repr(number)), "f")


_NUMBER: Final = r"\s*([+-]?(?:\d{1,3}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,2})?)\s*"
#: Well-known text in longitude and latitude, and how Neo4j prints a point, and GeoJSON.
_POINTS: Final = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE).fullmatch
    for pattern in (
        rf"(?:SRID=4326;\s*|<https?://www\.opengis\.net/def/crs/OGC/1\.3/CRS84>\s*)?POINT\s?\({_NUMBER}\s{_NUMBER}\)",
        rf"point\(\{{(?:srid: ?4326, ?)?x:{_NUMBER},\s*y:{_NUMBER}(?:, ?crs: ?'wgs-84'|, ?srid: ?4326)?\}}\)",
        rf'\{{\s*"type"\s*:\s*"Point"\s*,\s*"coordinates"\s*:\s*\[{_NUMBER},{_NUMBER}\]\s*\}}',
        rf'\{{\s*"coordinates"\s*:\s*\[{_NUMBER},{_NUMBER}\]\s*,\s*"type"\s*:\s*"Point"\s*\}}',
    )
)
_MAY_BE_POINT: Final = re.compile(r"point|SRID=|<http|\{", re.IGNORECASE).match
#: Longer texts are no points.
_LONGEST: Final = 250


def read_point(text: str) -> Point | None:
    """A point from well-known text, GeoJSON, or as Neo4j prints it; None for other texts and other coordinate systems.

    >>> read_point("Point(13.40 52.5)"), read_point('{"type": "Point", "coordinates": [2.35, 48.85]}'), read_point("POINT(200 0)")
    ('POINT(13.4 52.5)', 'POINT(2.35 48.85)', None)
    """
    if len(text) > _LONGEST or not _MAY_BE_POINT(text):
        return None
    # Cartesian points of Neo4j have the same coordinates and another meaning.
    if "crs" not in text and "srid" not in text.casefold() and text[:7].casefold() == "point({":
        return None
    for pattern in _POINTS:
        if found := pattern(text):
            try:
                return Point.of(float(found[1]), float(found[2]))
            except ValueError:
                return None
    return None


@dataclass(frozen=True, slots=True)
class Form:
    """A type of texts: its Python class, how a text of any spelling is read (None: it is no such value), the datatype of
    its literals in RDF, and what JSON says of a value beside its text.
    """

    of: type[FormedText]
    read: Callable[[str], FormedText | None]
    datatype: str
    record: Callable[[Any], dict[str, Any]]


#: Every form by its name, which is the unit of such texts and the name of their type.
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
    """The name of a text's form, `NO_UNIT` for a plain text: its unit where it is stored."""
    return text.form if isinstance(text, FormedText) else NO_UNIT


def formed(text: str, unit: str | None) -> str:
    """A stored text as a value; one of a form that this version does not know is a plain text."""
    form = None if unit is None else FORMS.get(unit)
    return text if form is None else form.of(text)


def of_datatype(text: str, datatype: str) -> FormedText | None:
    """The value of a literal of RDF; None where its datatype is none of a form, or the text has another one."""
    form = _BY_DATATYPE.get(datatype)
    return None if form is None else form.read(text)


def type_word(kind: str, unit: str) -> str:
    """The name of a type for users, from the word of its kind and its unit: that of the form for texts that have one."""
    return unit if kind == "text" and unit in FORMS else kind
