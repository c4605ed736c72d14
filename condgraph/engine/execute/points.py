"""Points in expressions, as in Cypher: `point()` and distances. All are places on Earth (WGS84); other coordinate
systems raise an error that names them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from condgraph.engine.errors import PlanError, nearest, on_one_line, shortened
from condgraph.engine.execute.terms import type_name
from condgraph.engine.values import WGS84, Point

#: The coordinate systems of Cypher by number (EPSG, or assigned by Neo4j).
SYSTEMS: Final = {WGS84: "wgs-84", 4979: "wgs-84-3d", 7203: "cartesian", 9157: "cartesian-3d"}
_SYSTEM_NUMBERS: Final = {name: number for number, name in SYSTEMS.items()}
_KEYS: Final = ("longitude", "latitude", "height", "x", "y", "z", "crs", "srid")
_HINT: Final = "point({longitude: 13.4, latitude: 52.5})"


def point(value: Any) -> Point | None:
    """Return the point of a map with `longitude` and `latitude`, or with `x` and `y` and the `crs` 'WGS-84' or the
    `srid` 4326; None if a coordinate is null. A longitude beyond 180 degrees wraps around.

    Raises `PlanError` for values that are not places on Earth, for other coordinate systems, and for unknown keys.

    >>> point({"longitude": 190, "latitude": 52.5}), point({"x": 13.4, "y": None, "srid": 4326})
    ('POINT(-170 52.5)', None)
    """
    if isinstance(value, Point):
        return value
    if not isinstance(value, Mapping):
        raise PlanError(f"point() takes a map, not {type_name(value)}", hint=_HINT)
    for key in value:
        if key not in _KEYS:
            named = on_one_line(shortened(repr(key), 60))
            raise PlanError(f"point() knows no key {named}", candidates=nearest(key, _KEYS), hint=_HINT)
    degrees = "longitude" in value or "latitude" in value
    names = ("longitude", "latitude") if degrees else ("x", "y")
    if degrees and ("x" in value or "y" in value):
        raise PlanError("point() takes longitude and latitude, or x and y, not both", hint=_HINT)
    if any(value[key] is None for key in value):
        return None
    _check_system(value, WGS84 if degrees else 7203)
    for name in names:
        if name not in value:
            raise PlanError(f"point() lacks {name!r}", hint=_HINT)
    longitude, latitude = (_degrees(value[name], name) for name in names)
    if not -90 <= latitude <= 90:
        raise PlanError(f"no place has the latitude {latitude}: it is between -90 and 90 degrees")
    if not -180 <= longitude <= 180:
        longitude = math.remainder(longitude, 360)
    return Point.of(longitude, latitude)


def _check_system(value: Mapping[str, Any], system: int) -> None:
    """Raise `PlanError` for coordinates that are not WGS84; `system` is the default for their names."""
    if "crs" in value and "srid" in value:
        raise PlanError("point() takes crs or srid, not both")
    if "crs" in value:
        name = value["crs"]
        known = _SYSTEM_NUMBERS.get(name.casefold()) if isinstance(name, str) else None
        if known is None:
            raise PlanError(f"point() knows no crs {on_one_line(shortened(repr(name), 60))}", candidates=("WGS-84",))
        system = known
    elif "srid" in value:
        number = value["srid"]
        if type(number) is not int or number not in SYSTEMS:
            raise PlanError(f"point() knows no srid {on_one_line(shortened(repr(number), 60))}", candidates=("4326",))
        system = number
    if "height" in value or "z" in value:
        system = {WGS84: 4979, 7203: 9157}.get(system, system)
    if system != WGS84:
        raise refused(system)


def refused(system: int) -> PlanError:
    """Return the error for a point of another coordinate system, by its number."""
    name = SYSTEMS.get(system)
    named = f"the srid {system}" if name is None else f"{name} ({system})"
    return PlanError(
        f"a point of the coordinate system {named}: points are places on Earth in wgs-84 ({WGS84})",
        hint=f"{_HINT}; x and y are degrees with crs: 'WGS-84'",
    )


def _degrees(value: Any, name: str) -> float:
    if type(value) not in (int, float, Decimal):
        raise PlanError(f"the {name} of a point is a number of degrees, not {type_name(value)}")
    number = float(value) if abs(value) < 10**15 else math.nan
    if not math.isfinite(number):
        raise PlanError(f"the {name} of a point is not a number of degrees: {shortened(str(value), 40)}")
    return number


def distance(first: Any, second: Any) -> float:
    """Return the distance of two points in metres (`Point.distance`)."""
    for value in (first, second):
        if type(value) is not Point:
            raise PlanError(f"point.distance() is of two points, not of {type_name(value)}", hint=_HINT)
    return float(first.distance(second))


def within_box(of: Any, lower_left: Any, upper_right: Any) -> bool:
    """Return whether a point is in a box, edges included (`point.withinBBox`). A box whose left edge is east of its
    right one crosses the 180th meridian; one whose lower edge is above the upper one is empty.
    """
    for value in (of, lower_left, upper_right):
        if type(value) is not Point:
            raise PlanError(f"point.withinBBox() is of three points, not of {type_name(value)}", hint=_HINT)
    west, east = lower_left.longitude, upper_right.longitude
    across = west <= of.longitude <= east if west <= east else of.longitude >= west or of.longitude <= east
    return bool(across and lower_left.latitude <= of.latitude <= upper_right.latitude)


def text(of: Point) -> str:
    """Return a point as Cypher's `toString()` does.

    >>> text(Point.of(13, 52.5))
    "point({x: 13.0, y: 52.5, crs: 'wgs-84'})"
    """
    return f"point({{x: {of.longitude}, y: {of.latitude}, crs: '{SYSTEMS[WGS84]}'}})"
