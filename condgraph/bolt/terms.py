"""Values of rows for Bolt (nodes, relationships and paths with properties, temporal types, points), and query parameters as
values of Cypher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from condgraph.bolt.packstream import Packed, Structure, packed
from condgraph.engine import temporal
from condgraph.engine.errors import OptionError
from condgraph.engine.execute.points import point, refused
from condgraph.engine.execute.terms import EntityAt, GraphTerms, PathAt, StatementAt
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, UNKNOWN, WGS84, Point, Precision, Quantity, Time, civil, text_of

NODE, RELATIONSHIP, UNBOUND, PATH = 0x4E, 0x52, 0x72, 0x50
DATE, TIME, LOCAL_TIME, LOCAL_DATETIME, DURATION = 0x44, 0x54, 0x74, 0x64, 0x45
#: A datetime with an offset or a region: by its seconds in UTC, and by those of its own clock (before
#: version 5).
DATETIME, DATETIME_REGION = 0x49, 0x69
LEGACY_DATETIME, LEGACY_DATETIME_REGION = 0x46, 0x66
POINT_2D, POINT_3D = 0x58, 0x59
#: Years of dates that every driver reads.
_YEARS: Final = range(1, 10_000)
_NANOS: Final = temporal.NANOS


class Values:
    """Values of rows as values of PackStream.

    `element_ids` tells whether nodes and relationships have text ids (version 5), `utc` whether datetimes are in UTC.
    """

    def __init__(self, *, element_ids: bool, utc: bool) -> None:
        self._element_ids, self._utc = element_ids, utc
        #: Functions that build the structure of a node, a relationship and a path, by type.
        self._structures: dict[type, Callable[[Any], Packed | Structure]] = {}
        #: Warnings about values that are sent in another form.
        self.warnings: dict[str, None] = {}

    def value(self, term: Any) -> Any:
        """Return a term in a form that can be packed; raises `OptionError` if Bolt has no type for it."""
        kind = type(term)
        if kind is str or kind is int or kind is float or kind is bool or term is None:
            return term
        build = self._structures.get(kind)
        if build is not None:
            return build(term)
        if isinstance(term, list | tuple):
            return [self.value(item) for item in term]
        if isinstance(term, Mapping):
            return {key: self.value(item) for key, item in term.items()}
        if kind is Quantity:
            return self.value(term.number) if term.unit == NO_UNIT else text_of(term)
        if kind is Decimal:
            return self._decimal(term)
        if term is UNKNOWN:
            return None
        if kind is Point:
            return Structure(POINT_2D, (WGS84, term.longitude, term.latitude))
        if isinstance(term, str | int | float):
            return term
        return self._time(term)

    def _decimal(self, number: Decimal) -> Any:
        nearest = float(number)
        if Decimal(repr(nearest)) == number:
            return nearest
        self.warnings["numbers with more digits than a float has are sent as texts"] = None
        return str(number)

    def _time(self, term: Any) -> Any:
        kind = type(term)
        if kind is Time:
            return self._interval(term)
        if kind is temporal.LocalTime:
            return Structure(LOCAL_TIME, (term.nanos,))
        if kind is temporal.ZonedTime:
            return Structure(TIME, (term.nanos, term.offset))
        if kind is temporal.Duration:
            return Structure(DURATION, (term.months, term.days, term.seconds, term.nanos))
        if kind not in (temporal.LocalDateTime, temporal.ZonedDateTime):
            raise OptionError(f"Bolt has no type for a {kind.__name__}", hint="return a part of it, or a text")
        if civil(term.days)[0] not in _YEARS:
            self.warnings["datetimes outside the years 1 to 9999 are sent as texts"] = None
            return str(term)
        seconds, nanos = divmod(term.days * temporal.DAY_NANOS + term.nanos, _NANOS)
        if kind is temporal.LocalDateTime:
            return Structure(LOCAL_DATETIME, (seconds, nanos))
        zone = term.offset if term.region is None else term.region
        if self._utc:
            return Structure(DATETIME if term.region is None else DATETIME_REGION, (seconds - term.offset, nanos, zone))
        return Structure(LEGACY_DATETIME if term.region is None else LEGACY_DATETIME_REGION, (seconds, nanos, zone))

    def _interval(self, time: Time) -> Any:
        """Return a day as a date, a second as a datetime without zone, others as text: Bolt has no types for them."""
        if time.precision in (Precision.DAY, Precision.SECOND):
            days, seconds = divmod(time.start, DAY_SECONDS)
            if civil(days)[0] in _YEARS:
                if time.precision is Precision.DAY:
                    return Structure(DATE, (days,))
                return Structure(LOCAL_DATETIME, (days * DAY_SECONDS + seconds, 0))
            self.warnings["dates outside the years 1 to 9999 are sent as texts"] = None
        return text_of(time)


def path_of(nodes: list[Any], relationships: list[Any], steps: list[tuple[int, bool, int]]) -> Structure:
    """Return a path from its distinct nodes and relationships.

    For each step, `steps` has the index of its relationship, whether that is followed forwards, and the index of the next node.
    """
    # Relationships are counted from 1, negative if followed backwards, nodes from 0.
    flat = [
        number for relationship, forward, node in steps for number in (relationship + 1 if forward else -relationship - 1, node)
    ]
    return Structure(PATH, (nodes, relationships, flat))


class Terms(Values):
    """Terms of rows in process (`execute.terms`) as values of PackStream."""

    def __init__(self, snapshot: Snapshot, *, element_ids: bool, utc: bool) -> None:
        super().__init__(element_ids=element_ids, utc=utc)
        self._snapshot, self._graph = snapshot, GraphTerms(snapshot)
        self._named = [
            (key, read) for key, read in (("name", snapshot.name), ("id", snapshot.ident)) if not snapshot.schema.has_attribute(key)
        ]
        self._nodes: dict[int, Packed] = {}
        self._structures = {
            EntityAt: lambda term: self.node(term.number),
            StatementAt: lambda term: self._relationship(term.number),
            PathAt: self._path,
        }

    def node(self, number: int) -> Packed:
        known = self._nodes.get(number)
        if known is None:
            term = EntityAt(number)
            properties = {key: read(number) for key, read in self._named} | self.value(self._graph.properties(term))
            fields: tuple[Any, ...] = (number, self._graph.labels(term), properties)
            if self._element_ids:
                fields += (self._snapshot.ident(number),)
            known = self._nodes[number] = Packed(packed(Structure(NODE, fields)))
        return known

    def _relationship(self, number: int) -> Structure:
        term, snapshot = StatementAt(number), self._snapshot
        start, end = int(snapshot.relation_subject[number]), int(snapshot.relation_object[number])
        fields: tuple[Any, ...] = (number, start, end, self._graph.type(term), self.value(self._graph.properties(term)))
        if self._element_ids:
            fields += (str(number), snapshot.ident(start), snapshot.ident(end))
        return Structure(RELATIONSHIP, fields)

    def _path(self, path: PathAt) -> Structure:
        nodes, statements = list(dict.fromkeys(path.entities)), list(dict.fromkeys(path.statements))
        relationships = []
        for number in statements:
            term = StatementAt(number)
            fields: tuple[Any, ...] = (number, self._graph.type(term), self.value(self._graph.properties(term)))
            relationships.append(Structure(UNBOUND, (*fields, str(number)) if self._element_ids else fields))
        places = {number: at for at, number in enumerate(nodes)}
        numbers = {number: at for at, number in enumerate(statements)}
        steps = [
            (numbers[number], int(self._snapshot.relation_subject[number]) == path.entities[at], places[path.entities[at + 1]])
            for at, number in enumerate(path.statements)
        ]
        return path_of([self.node(number) for number in nodes], relationships, steps)


# -- parameters --------------------------------------------------------------------------------------


def parameter(value: Any) -> Any:
    """Return a parameter as a value of Cypher.

    Raises `OptionError` for types that no value of a graph has, `LiteralError` for unknown time zones, and `PlanError`
    for points of coordinate systems other than WGS84.
    """
    if isinstance(value, list):
        return [parameter(item) for item in value]
    if isinstance(value, dict):
        return {key: parameter(item) for key, item in value.items()}
    if isinstance(value, bytes):
        raise OptionError("a parameter is of bytes, which no value of a graph is")
    if not isinstance(value, Structure):
        return value
    read, types = _STRUCTURES.get(value.tag, (None, ()))
    if read is None:
        names = {NODE: "a node", RELATIONSHIP: "a relationship", PATH: "a path"}
        raise OptionError(
            f"a parameter is {names.get(value.tag, f'a structure of the tag {value.tag:02X}')}, which no value of a graph is",
            hint="give the id of a node, as a text",
        )
    if tuple(map(type, value.fields)) != types:
        raise OptionError(f"a parameter is a structure of the tag {value.tag:02X} with other fields than it has")
    return read(*value.fields)


def _date(days: int) -> Time:
    return Time(days * DAY_SECONDS, (days + 1) * DAY_SECONDS, Precision.DAY)


def _local(seconds: int, nanos: int) -> temporal.LocalDateTime:
    return temporal.LocalDateTime(*divmod(seconds * _NANOS + nanos, temporal.DAY_NANOS))


def _at(seconds: int, nanos: int, offset: int) -> temporal.ZonedDateTime:
    days, clock = divmod((seconds + offset) * _NANOS + nanos, temporal.DAY_NANOS)
    return temporal.ZonedDateTime(days, clock, offset)


def _in_region(seconds: int, nanos: int, region: str) -> temporal.ZonedDateTime:
    return temporal.zoned_datetime({"epochSeconds": seconds, "nanosecond": nanos, "timezone": region})


def _at_clock(seconds: int, nanos: int, region: str) -> temporal.ZonedDateTime:
    return temporal.zoned_datetime(f"{_local(seconds, nanos)}[{region}]")


def _point(system: int, *coordinates: float) -> Point | None:
    if system != WGS84:
        raise refused(system)
    return point(dict(zip(("longitude", "latitude"), coordinates, strict=False)))


#: Functions that read the fields of each structure, with the types of the fields.
_STRUCTURES: Final[dict[int, tuple[Any, tuple[type, ...]]]] = {
    DATE: (_date, (int,)),
    TIME: (temporal.ZonedTime, (int, int)),
    LOCAL_TIME: (temporal.LocalTime, (int,)),
    LOCAL_DATETIME: (_local, (int, int)),
    DURATION: (lambda *f: temporal.Duration(f[0], f[1], *divmod(f[2] * _NANOS + f[3], _NANOS)), (int,) * 4),
    DATETIME: (_at, (int, int, int)),
    DATETIME_REGION: (_in_region, (int, int, str)),
    LEGACY_DATETIME: (lambda *f: _at(f[0] - f[2], f[1], f[2]), (int, int, int)),
    LEGACY_DATETIME_REGION: (_at_clock, (int, int, str)),
    POINT_2D: (_point, (int, float, float)),
    POINT_3D: (_point, (int, float, float, float)),
}  # fmt: skip
