"""Tables of records: JSON lines, and lists of dictionaries.

A record is a row, its keys are columns, in the order in which they first occur; a record may lack
some. A record inside a record is flattened ("a.b"), a list of plain values gives one statement for
each. Texts are typed as cells of their column (`cells`); numbers are exact, booleans are the texts
"true" and "false", null and NaN are missing.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import Batch, Ids, Item
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY
from condgraph.engine.values import Precision, Quantity, Time, Value, collapse, format_number, parse_number, text_of
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import file_errors, open_text, path_of, raw_position
from condgraph.loaders.table.cells import Cell, ColumnType, Profile
from condgraph.loaders.table.rows import Table, TableOptions, column_names, column_of

#: A record: its 1-based number, and its values by flattened key, a list of them for each.
Record: TypeAlias = tuple[int, dict[str, list[Any]]]
#: Gives the records again, with the fraction of the source read; bad ones are reported to the
#: reading, if there is one.
OpenRecords: TypeAlias = Callable[[Reading | None], Iterator[tuple[Record, float]]]

_ROWS_A_CHUNK: Final = 10_000
_RECORDS_IN_MEMORY: Final = 50_000
_DEEPEST: Final = 20
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]").search
_PLAIN: Final = (str, int, float, bool, Decimal, type(None), datetime.date, datetime.time, datetime.timedelta)


class Digits(str):
    """A number of a JSON file, as it is written there."""

    __slots__ = ()


class _BadRecord(ValueError):
    """What is wrong with a record, and in which field."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def flatten(record: Mapping[Any, Any]) -> dict[str, list[Any]]:
    """The values of a record by key; those of records inside have keys joined by points."""
    flat: dict[str, list[Any]] = {}
    _flatten_into(flat, record, "", 0)
    return flat


def _flatten_into(flat: dict[str, list[Any]], record: Mapping[Any, Any], prefix: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise _BadRecord("records stand too deep inside each other", prefix)
    for key, value in record.items():
        if not isinstance(key, str):
            key = str(key)
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _flatten_into(flat, value, f"{name}.", depth + 1)
            continue
        if name in flat:
            raise _BadRecord(f"the key {name!r} stands more than once", name)
        if _broken(name):
            raise _BadRecord("a key holds bytes or characters that are not text", None)
        if isinstance(value, (list, tuple)):
            if any(isinstance(one, (list, tuple, Mapping)) for one in value):
                raise _BadRecord("a list of lists or of records is no cell", name)
            flat[name] = list(value)
        else:
            flat[name] = [value]
        if any(isinstance(one, str) and _broken(one) for one in flat[name]):
            raise _BadRecord("the text holds bytes or characters that are not text in the encoding", name)


def _broken(text: str) -> bool:
    """Whether a text holds halves of characters: bytes that could not be decoded, or escapes that
    are not whole.
    """
    return not text.isascii() and _SURROGATE(text) is not None


def native(value: Any) -> Value | None:
    """A Python or JSON value that is no text as a value of the graph; None where it is missing.
    Raises `_BadRecord`.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Digits):
        try:
            return Quantity(parse_number(value))
        except ValueError:
            raise _BadRecord("the number has too many digits") from None
    if isinstance(value, int):
        return Quantity(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise _BadRecord("the number is infinite")
        return Quantity(float(value))
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        if value.is_infinite():
            raise _BadRecord("the number is infinite")
        return Quantity(parse_number(format_number(value)))
    if isinstance(value, datetime.datetime):
        if value != value:  # NaT
            return None
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return Time.second(value.year, value.month, value.day, value.hour, value.minute, value.second)
    if isinstance(value, datetime.date):
        return Time.day(value.year, value.month, value.day)
    if isinstance(value, datetime.time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return Quantity(_with_micros(seconds, value.microsecond), SECOND_OF_DAY)
    if isinstance(value, datetime.timedelta):
        if value != value:  # NaT
            return None
        sign = -1 if value < datetime.timedelta(0) else 1
        length = abs(value)
        return Quantity(sign * _with_micros(length.days * 86_400 + length.seconds, length.microseconds), SECOND)
    if isinstance(value, (UUID, Path)):
        return str(value)
    if isinstance(value, Enum):
        return native_or_text(value.value)
    if isinstance(value, Fraction):
        return Quantity(int(value)) if value.denominator == 1 else str(value)
    if isinstance(value, (Quantity, Time)):
        return value
    item = getattr(value, "item", None)
    if type(value).__module__ == "numpy" and callable(item) and getattr(value, "ndim", 1) == 0:
        return native_or_text(item())
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise _BadRecord(f"a value of type {type(value).__name__} has no place in a cell")


def native_or_text(value: Any) -> Value | None:
    """`native`, with a text as it is."""
    return collapse(value) if isinstance(value, str) and not isinstance(value, Digits) else native(value)


def printed(value: Any) -> str | None:
    """The text of a Python value, None where it has no place in a cell or is missing."""
    try:
        found = native_or_text(value)
    except _BadRecord:
        return None
    return None if found is None else text_of(found)


def _with_micros(seconds: int, micros: int) -> int | float | Decimal:
    return parse_number(f"{seconds}.{micros:06d}") if micros else seconds


class _Field:
    """One column of records: its profile, then its type."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.texts: list[str] = []
        self.midnight = True
        self.cut = 0
        self.infinite = 0
        self.chosen = ColumnType("text")
        self.read: Callable[[str], Cell | None] = self.chosen.reader()
        self.years = False

    def look(self, values: Sequence[Any]) -> None:
        for value in values:
            if isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, datetime.datetime):
                if value == value:
                    self.midnight = self.midnight and value.tzinfo is None and value.time() == datetime.time(0)
                    self.cut += value.microsecond != 0
            elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                self.texts.append(format_number(value))
        if len(self.texts) > _ROWS_A_CHUNK:
            self.flush()

    def flush(self) -> None:
        self.profile.add(self.texts)
        self.texts = []

    def cell(self, value: Any) -> Cell | None:
        """The value of a cell and its raw text; None where it is missing."""
        if isinstance(value, Digits):
            found = native(value)
            if self.years and isinstance(found, Quantity):
                found = self._year(found)
            assert found is not None
            return found, None if text_of(found) == value else str(value)
        if isinstance(value, str):
            return self.read(value)
        if isinstance(value, float) and math.isinf(value):
            self.infinite += 1
            return repr(float(value)), None
        found = native(value)
        if found is None:
            return None
        if self.years and isinstance(found, Quantity):
            found = self._year(found)
        elif isinstance(found, Time) and found.precision is Precision.SECOND and self.midnight:
            found = Time(found.start, found.start + 86_400, Precision.DAY)
        return found, None

    def _year(self, number: Quantity) -> Value:
        year = number.number
        return Time.year(int(year)) if int(year) == year and 1 <= year <= 9999 else number


def read_records(open_records: OpenRecords, reading: Reading, options: Options) -> Iterator[Item]:
    """Records as facts; they are read twice where there are many. Raises `LoadError` where there is
    no record.
    """
    checked = TableOptions.of(options)
    fields: dict[str, _Field] = {}
    memory: list[tuple[Record, float]] | None = []
    for found, (record, fraction) in enumerate(open_records(reading), 1):
        for key, values in record[1].items():
            field = fields.get(key)
            if field is None:
                field = fields[key] = _Field(Profile(checked.missing))
            field.look(values)
        if memory is not None:
            memory.append((record, fraction))
            if found > _RECORDS_IN_MEMORY:
                memory = None
        if found % _ROWS_A_CHUNK == 0:
            reading.advance(0, fraction / 2)
    if not fields:
        raise LoadError("there is no record with a field", file=reading.source.location)
    table = Table(reading, checked, column_names(list(fields), reading))
    for at, field in enumerate(fields.values()):
        field.flush()
        field.chosen = table.decide(at, field.profile)
        field.read = field.chosen.reader()
        field.years = field.chosen.kind == "time" and ("year" in field.chosen.tags) and table.declared(at) != "number"
        if field.cut:
            reading.warn(f"parts of a second are cut off in {field.cut} cells", field=table.names[at])
    chunk: list[Record] = []
    fraction = 0.0
    for record, fraction in memory if memory is not None else open_records(None):
        chunk.append(record)
        if len(chunk) >= _ROWS_A_CHUNK:
            yield from _chunk(table, fields, chunk)
            reading.advance(len(chunk), 0.5 + fraction / 2)
            chunk = []
    yield from _chunk(table, fields, chunk)
    reading.advance(len(chunk), 1.0)


def _chunk(table: Table, fields: Mapping[str, _Field], chunk: Sequence[Record]) -> Iterator[Item]:
    keys = list(fields)
    entities, kept = table.rows(
        [number for number, _ in chunk],
        None if table.key is None else [_first(record, keys[table.key]) for _, record in chunk],
        None if table.name_column is None else [_first(record, keys[table.name_column]) for _, record in chunk],
    )
    yield from entities
    records = [record for _, record in chunk] if kept is None else [chunk[at][1] for at in kept]
    for at, (key, field) in enumerate(fields.items()):
        subjects: list[str] = []
        rows: list[int] = []
        values: list[Value] = []
        raws: list[str | None] = []
        for entity, record in zip(entities, records, strict=True):
            for value in record.get(key, ()):
                try:
                    cell = field.cell(value)
                except _BadRecord as error:
                    table.reading.bad(error.message, row=entity.row, field=table.names[at])
                    continue
                if cell is not None:
                    subjects.append(entity.id)
                    rows.append(entity.row)
                    values.append(cell[0])
                    raws.append(cell[1])
        if field.infinite:
            table.reading.warn(f"{field.infinite} infinite numbers stay text", field=table.names[at])
            field.infinite = 0
        if not values:
            continue
        table.check(at, values, rows)
        some = raws if any(raw is not None for raw in raws) else None
        if at in table.refs:
            yield Batch(subjects, table.names[at], Ids([text_of(value) for value in values]), rows, some)
        else:
            if table.declared(at) == "text":
                values = [text_of(value) for value in values]
            yield Batch(subjects, table.names[at], column_of(values), rows, some)


def _first(record: Mapping[str, list[Any]], key: str) -> str | None:
    return next((text for value in record.get(key, ()) if (text := printed(value))), None)


def read_dicts(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A list of dictionaries as facts."""
    if not is_records(source):
        raise FormatError(f"an object of type {type(source).__name__} is not a list of dictionaries", file=reading.source.location)

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        for number, record in enumerate(source, 1):
            try:
                if not isinstance(record, Mapping):
                    raise _BadRecord(f"a record is a dictionary, not {type(record).__name__}")
                yield (number, flatten(record)), number / len(source)
            except _BadRecord as error:
                if report is not None:
                    report.bad(error.message, row=number, field=error.field)

    yield from read_records(records, reading, options)


def is_records(source: Any) -> bool:
    """Whether an object is a list of dictionaries, by its first element."""
    return isinstance(source, (list, tuple)) and bool(source) and isinstance(source[0], Mapping)


def read_jsonl(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A file with one JSON object a line as facts."""
    path = path_of(source)
    encoding = options.get("encoding")
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_int=Digits, parse_float=Digits, parse_constant=float)

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        size = max(1, path.stat().st_size)
        number = 0
        with open_text(path, encoding, errors="surrogateescape", newline="\n") as stream, file_errors(path):
            for line_number, line in enumerate(stream, 1):
                text = line.strip()
                if not text:
                    continue
                number += 1
                try:
                    record = _parse(decoder, text)
                    flat = flatten(record)
                except _BadRecord as error:
                    if report is not None:
                        report.bad(f"{error.message} (line {line_number})", row=number, field=error.field)
                    continue
                yield (number, flat), min(1.0, raw_position(stream) / size)

    with file_errors(path):
        path.open("rb").close()
    yield from read_records(records, reading, options)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _BadRecord(f"the key {key!r} stands more than once", key)
            seen.add(key)
    return record


def _parse(decoder: json.JSONDecoder, text: str) -> Mapping[str, Any]:
    try:
        record = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise _BadRecord(f"this is not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise _BadRecord("records stand too deep inside each other") from None
    if not isinstance(record, dict):
        raise _BadRecord("a record is a JSON object, not another value")
    return record
