"""Loader of records: JSON documents and lines, and lists of dictionaries.

A record is a row, and its keys are columns, in the order of their first occurrence; a record may lack
some. A nested record is flattened ("a.b"), a list of plain values gives one statement for each, and a
list of lists is its JSON text. The records of a list become rows of another table, `source/key`
(`source/key/key` for nested lists), which refer to the row that contains them by a predicate named
like its table.

Texts are typed as cells of their column (`column_types`); numbers are exact, booleans are the texts
"true" and "false", null and NaN are missing. A document of columns, or of rows below a header, is read
as that table, with a warning. So is GeoJSON: a feature is a row, its properties are columns, and its
geometry gives further columns.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from condgraph.engine.bounds import check
from condgraph.engine.errors import FormatError, LoadError, numbered
from condgraph.engine.facts import Batch, Entity, Item, Ref, Sourced, Statement
from condgraph.engine.reading.shapes import POINT
from condgraph.engine.reading.times import SECOND, SECOND_OF_DAY, basic_day, digits_time
from condgraph.engine.values import Precision, Quantity, Time, Value, collapse, format_number, parse_number, read_point, text_of
from condgraph.loaders import files
from condgraph.loaders.base import JSON_SIGN, Format, Options, Reading, option_texts
from condgraph.loaders.export import statements_of
from condgraph.loaders.table.column_types import Cell, ColumnType, Profile
from condgraph.loaders.table.joins import with_key_warnings
from condgraph.loaders.table.rows import CELL_OPTIONS, TABLE_OPTIONS, Table, TableOptions, column_names, column_of

#: How many rows are yielded at once.
ROWS_A_CHUNK: Final = 10_000
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]").search
_PLAIN: Final = (str, int, float, bool, Decimal, type(None), datetime.date, datetime.time, datetime.timedelta)


class Digits(str):
    """A number of a JSON file, as written."""

    __slots__ = ()


class BadRecord(ValueError):
    """An error in a record, and the field that has it."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def broken(text: str) -> bool:
    """Whether a text has unpaired surrogates, from undecodable bytes or incomplete escapes."""
    return not text.isascii() and _SURROGATE(text) is not None


def native(value: Any) -> Value | None:
    """Return a Python or JSON value that is not a text as a value of the graph; None if it is missing.

    Raises `BadRecord`.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Digits):
        try:
            return Quantity(parse_number(value))
        except ValueError:
            raise BadRecord("the number has too many digits") from None
    if isinstance(value, int):
        return Quantity(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise BadRecord("the number is infinite")
        return Quantity(float(value))
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        if value.is_infinite():
            raise BadRecord("the number is infinite")
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
    raise BadRecord(f"a value of type {type(value).__name__} cannot be a cell")


def native_or_text(value: Any) -> Value | None:
    """Return the same as `native`, and a text unchanged but for white space."""
    return collapse(value) if isinstance(value, str) and not isinstance(value, Digits) else native(value)


def printed(value: Any) -> str | None:
    """Return the text of a Python value; None if it is missing or cannot be in a cell."""
    try:
        native_value = native_or_text(value)
    except BadRecord:
        return None
    return None if native_value is None else text_of(native_value)


def _with_micros(seconds: int, micros: int) -> int | float | Decimal:
    return parse_number(f"{seconds}.{micros:06d}") if micros else seconds


class Field:
    """One column of records: its profile, then its type."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.texts: list[str] = []
        self.decimals = 0
        self.midnight = True
        #: Whether some record has a value other than null.
        self.has_values = False
        self.cut = 0
        self.infinite = 0
        self.chosen = ColumnType("text")
        self.read: Callable[[str], Cell | None] = self.chosen.reader()
        #: "year" or "day" if numbers are years or days.
        self.numbers_are = ""

    def look(self, values: Sequence[Any]) -> None:
        """Profile values in the first pass."""
        for value in values:
            self.has_values = self.has_values or value is not None
            if isinstance(value, Digits):
                self._number(value)
            elif isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, datetime.datetime):
                if value == value:
                    self.midnight = self.midnight and value.tzinfo is None and value.time() == datetime.time(0)
                    self.cut += value.microsecond != 0
            elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf:
                self._number(format_number(value))
        if len(self.texts) > ROWS_A_CHUNK:
            self.flush()

    def settle(self, table: Table, at: int) -> None:
        """Decide the type of the column, at this index of its table; call it after the last `flush`."""
        self.chosen = table.decide(at, self.profile)
        self.read = self.chosen.reader()
        self.numbers_are = self.chosen.numbers_are if table.declared(at) != "number" else ""
        if self.cut:
            table.reading.warn(f"parts of a second are cut off in {self.cut} cells", field=table.names[at])

    def _number(self, text: str) -> None:
        """Profile a number that is not a text; it may only be a year or a day."""
        if text.isdigit():
            self.texts.append(text)
        else:
            self.decimals += 1

    def flush(self) -> None:
        """Add pending values to the profile."""
        self.profile.add(self.texts)
        if self.decimals:
            counted = self.profile.shapes.setdefault(POINT, [0, 0])
            counted[:] = (item + self.decimals for item in counted)
        self.texts, self.decimals = [], 0

    def cell(self, value: Any) -> Cell | None:
        """Return the value of a cell and its raw text; None if it is missing."""
        if isinstance(value, Digits):
            native_value = native(value)
            if self.numbers_are and isinstance(native_value, Quantity):
                native_value = self._time(native_value)
            assert native_value is not None
            return native_value, None if text_of(native_value) == value else str(value)
        if isinstance(value, str):
            return self.read(value)
        if isinstance(value, float) and math.isinf(value):
            self.infinite += 1
            return repr(float(value)), None
        native_value = native(value)
        if native_value is None:
            return None
        if self.numbers_are and isinstance(native_value, Quantity):
            native_value = self._time(native_value)
        elif isinstance(native_value, Time) and native_value.precision is Precision.SECOND and self.midnight:
            native_value = Time(native_value.start, native_value.start + 86_400, Precision.DAY)
        return native_value, None

    def _time(self, number: Quantity) -> Value:
        year = number.number
        if self.numbers_are == "day" and (day := basic_day(str(year))) is not None:
            return day
        if int(year) == year and 1 <= year <= 9999:
            return Time.year(int(year))
        return (digits_time(str(year)) if self.chosen.years else None) or number

    def elements(self, values: Sequence[Any]) -> list[Any]:
        """Return values, with texts that are lists split (`ColumnType.parts`)."""
        return [part for value in values for part in (self.chosen.parts(value) if type(value) is str else [value])]


#: The deepest nesting of records and lists.
_MAX_DEPTH: Final = 20

#: A callback for a bad record in a list; it may raise, otherwise the other records are read.
Bad: TypeAlias = Callable[[BadRecord], None]


@dataclass(slots=True)
class Flat:
    """A flattened record: lists of values by key, and by key the records of its lists.

    `json` are the keys whose values are JSON texts.
    """

    values: dict[str, list[Any]] = field(default_factory=dict)
    below: dict[str, list[Flat]] = field(default_factory=dict)
    json: tuple[str, ...] = ()


class Repeated(dict[str, Any]):
    """A record with a repeated key, `key`."""

    key = ""


def flatten(record: Mapping[Any, Any], bad: Bad | None = None) -> Flat:
    """Return a record flattened, with keys of nested records joined by points; raises `BadRecord`.

    Bad records in lists go to `bad`, if it is given, and are skipped.
    """
    flat = Flat()
    _flatten_into(flat, record, "", 0, bad)
    return flat


def _flatten_into(flat: Flat, record: Mapping[Any, Any], prefix: str, depth: int, bad: Bad | None) -> None:
    if depth > _MAX_DEPTH:
        raise BadRecord("records are nested too deeply", prefix)
    if isinstance(record, Repeated):
        raise BadRecord(f"the key {record.key!r} occurs more than once", record.key)
    for key, value in record.items():
        if not isinstance(key, str):
            key = str(key)
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            point = _point(value)
            if point is None:
                _flatten_into(flat, value, f"{name}.", depth + 1, bad)
                continue
            value = point
        if name in flat.values or name in flat.below:
            raise BadRecord(f"the key {name!r} occurs more than once", name)
        if broken(name):
            raise BadRecord("a key holds bytes or characters that are not text", None)
        if not isinstance(value, (list, tuple)):
            values = [value]
        else:
            values = list(value)
            if any(isinstance(value, Mapping) for value in values):
                flat.below[name] = _records(name, values, depth + 1, bad)
                values = [value for value in values if value is not None and not isinstance(value, Mapping)]
                if not values:
                    continue
            if any(isinstance(value, (list, tuple)) for value in values):
                if name in flat.below:
                    values = [json_text(value) if isinstance(value, (list, tuple)) else value for value in values]
                else:
                    values = [json_text(value)]
                flat.json = (*flat.json, name)
        flat.values[name] = values
        if any(isinstance(value, str) and broken(value) for value in values):
            raise BadRecord("the text holds bytes or characters that are not text in the encoding", name)


def _point(record: Mapping[Any, Any]) -> str | None:
    """Return a point geometry of GeoJSON as text in the form of points; None for other records."""
    at = record.get("coordinates")
    if record.keys() != {"type", "coordinates"} or record["type"] != "Point" or not isinstance(at, list) or len(at) != 2:
        return None
    return read_point(f"POINT({at[0]} {at[1]})")


def _records(name: str, values: list[Any], depth: int, bad: Bad | None) -> list[Flat]:
    """Return the good records of a list."""

    def named(error: BadRecord) -> None:
        error = BadRecord(error.message, f"{name}.{error.field}" if error.field else name)
        if bad is None:
            raise error from None
        bad(error)

    result = []
    for record in values:
        if isinstance(record, Mapping):
            flat = Flat()
            try:
                _flatten_into(flat, record, "", depth, None if bad is None else named)
            except BadRecord as error:
                named(error)
                continue
            result.append(flat)
    return result


def json_text(value: Any) -> str:
    """Return a value as JSON, with numbers as written in the file.

    >>> json_text([[Digits("8.50"), None], {"a": "b"}])
    '[[8.50, null], {"a": "b"}]'
    """
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(key), ensure_ascii=False)}: {json_text(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


_RECORDS_IN_MEMORY: Final = 50_000
#: The most tables that the lists of a source may become.
_MAX_TABLES: Final = 1_000


#: A record with its 1-based number.
Record: TypeAlias = tuple[int, Flat]
#: Yields the records from the start, with the fraction of the source read; bad ones are reported to
#: the reading, if it is given.
OpenRecords: TypeAlias = Callable[[Reading | None], Iterator[tuple[Record, float]]]


class _Rows:
    """The records of one table: its columns, and the tables of its lists.

    `path` is the path of its keys, "" for the source itself.
    """

    def __init__(self, reading: Reading, path: str, missing: frozenset[str]) -> None:
        self.reading, self.path, self._missing = reading, path, missing
        self.fields: dict[str, Field] = {}
        self.below: dict[str, _Rows] = {}
        self.number = 0
        #: The number of records whose value is kept as JSON, by key.
        self.json: dict[str, int] = {}
        #: The predicate from a row to the row that contains it.
        self.holder = ""
        self.table: Table

    def look(self, flat: Flat, tables: dict[str, _Rows]) -> None:
        """Profile a record in the first pass; `tables` has all tables by path."""
        for key, values in flat.values.items():
            column = self.fields.get(key)
            if column is None:
                column = self.fields[key] = Field(Profile(self._missing))
            column.look(values)
        for key in flat.json:
            self.json[key] = self.json.get(key, 0) + 1
        for key, records in flat.below.items():
            rows = self.below.get(key)
            if rows is None:
                rows = self.below[key] = self._further(key, tables)
            for record in records:
                rows.look(record, tables)

    def _further(self, key: str, tables: dict[str, _Rows]) -> _Rows:
        top = tables[""].reading
        stem = f"{self.path}/{collapse(key) or 'list'}" if self.path else collapse(key) or "list"
        path, count = stem, 1
        while path in tables:
            count += 1
            path = f"{stem} ({count})"
        if count > 1:
            top.warn(f"two lists would be the table {stem!r}; one of them is {path!r}", field=key)
        if len(tables) > _MAX_TABLES:
            raise LoadError(
                f"lists of records appear at more than {_MAX_TABLES:,} places",
                file=top.source.location,
                hint="make keys that are data the values of one key",
            )
        source = replace(top.source, name=f"{top.source.name}/{path}")
        reading = Reading(source, top.on_error, None, top.problems, known=top.known, scope=f"{top.within}/{path}")
        rows = tables[path] = _Rows(reading, path, self._missing)
        rows.holder = self.reading.source.name.rpartition("/")[2]
        return rows

    def settle(self, options: TableOptions) -> None:
        """Decide the types of the columns."""
        names = column_names([*self.fields, self.holder] if self.path else list(self.fields), self.reading)
        self.holder = names.pop() if self.path else ""
        self.table = Table(self.reading, options, names)
        for column in self.fields.values():
            column.flush()
        self.table.look_for_commas({at: column.profile for at, column in enumerate(self.fields.values())})
        for at, column in enumerate(self.fields.values()):
            column.settle(self.table, at)
        for key, count in self.json.items():
            lists = numbered(count, "list of lists is", "lists of lists are")
            self.reading.warn(f"{lists} kept as JSON text", field=key)
        for key in self.below:
            if any(name == key or name.startswith(f"{key}.") for name in self.fields) and self._has(key):
                self.reading.warn(
                    "this is a list of records in some rows, which are rows of a further table, and something else in others",
                    field=key,
                )

    def _has(self, key: str) -> bool:
        return any(column.has_values for name, column in self.fields.items() if name == key or name.startswith(f"{key}."))

    def items(self, chunk: Sequence[tuple[int, Flat, str]]) -> Iterator[Item]:
        """Yield the items of some rows and their lists; each row comes with its number and containing row's id."""
        keys, table = list(self.fields), self.table
        entities, good = table.rows(
            [number for number, _, _ in chunk],
            None if table.key is None else [_first(flat, keys[table.key]) for _, flat, _ in chunk],
            None if table.name_column is None else [_first(flat, keys[table.name_column]) for _, flat, _ in chunk],
        )
        rows = list(chunk) if good is None else [chunk[at] for at in good]
        own_items = self._own(entities, rows)
        yield from own_items if not self.path else self._sourced(own_items)
        for key, list_table in self.below.items():
            prefix = f"{list_table.reading.within}/"
            list_rows: list[tuple[int, Flat, str]] = []
            for entity, (_, flat, _) in zip(entities, rows, strict=True):
                if table.key is not None and entity.id.startswith(prefix):
                    raise LoadError(
                        f"the key of this row is an id of rows of {key!r}", file=self.reading.source.location, row=entity.row
                    )
                for record in flat.below.get(key, ()):
                    list_table.number += 1
                    list_rows.append((list_table.number, record, entity.id))
            for start in range(0, len(list_rows), ROWS_A_CHUNK):
                check()
                yield from list_table.items(list_rows[start : start + ROWS_A_CHUNK])

    def _own(self, entities: Sequence[Entity], rows: Sequence[tuple[int, Flat, str]]) -> Iterator[Item]:
        yield from entities
        if self.path:
            for entity, (number, _, holder) in zip(entities, rows, strict=True):
                yield Statement(entity.id, self.holder, Ref(holder), (), number)
        for at, (key, column) in enumerate(self.fields.items()):
            batch = self._column(
                at, column, [(entity, flat.values.get(key, ())) for entity, (_, flat, _) in zip(entities, rows, strict=True)]
            )
            if batch is not None:
                yield batch

    def _column(self, at: int, column: Field, cells: Sequence[tuple[Entity, Sequence[Any]]]) -> Batch | None:
        table = self.table
        subjects: list[str] = []
        rows: list[int] = []
        values: list[Value] = []
        raws: list[str | None] = []
        for entity, cell_values in cells:
            for value in cell_values if not column.chosen.lists else column.elements(cell_values):
                try:
                    cell = column.cell(value)
                except BadRecord as error:
                    table.reading.bad(error.message, row=entity.row, field=table.names[at])
                    continue
                if cell is not None:
                    subjects.append(entity.id)
                    rows.append(entity.row)
                    values.append(cell[0])
                    raws.append(cell[1])
        if column.infinite:
            infinite = numbered(column.infinite, "infinite number stays", "infinite numbers stay")
            table.reading.warn(f"{infinite} text", field=table.names[at])
            column.infinite = 0
        if not values:
            return None
        table.check(at, values, rows)
        raw_texts = raws if any(raw is not None for raw in raws) else None
        if at in table.refs:
            return Batch(subjects, table.names[at], table.ids_of(at, [text_of(value) for value in values], rows), rows, raw_texts)
        if table.declared(at) == "text":
            values = [text_of(value) for value in values]
        return Batch(subjects, table.names[at], column_of(values), rows, raw_texts)

    def _sourced(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield items of a nested table with their source."""
        source = self.reading.source.name
        for item in items:
            if isinstance(item, Batch):
                for part in statements_of(item):
                    yield Sourced(part, ((source, part.row),))
            elif isinstance(item, (Entity, Statement)):
                yield Sourced(item, ((source, item.row),))


def read_records(open_records: OpenRecords, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of records, which are read twice if there are many; raises `LoadError` if there are none."""
    missing = TableOptions.of(options).missing
    top = _Rows(reading, "", missing)
    tables = {"": top}
    memory: list[tuple[Record, float]] | None = []
    for place, (record, fraction) in enumerate(open_records(reading), 1):
        top.look(record[1], tables)
        if memory is not None:
            memory.append((record, fraction))
            if place > _RECORDS_IN_MEMORY:
                memory = None
        if place % ROWS_A_CHUNK == 0:
            reading.advance(0, fraction / 2)
    if not top.fields and not top.below:
        raise LoadError("no record has a field", file=reading.source.location)
    table_options = _options_of(tables, options)
    for path, rows in tables.items():
        rows.settle(TableOptions.of(table_options[path]))
        if path:
            yield rows.reading.source
    chunk: list[tuple[int, Flat, str]] = []
    fraction = 0.0
    for (number, flat), fraction in memory if memory is not None else open_records(None):
        chunk.append((number, flat, ""))
        if len(chunk) >= ROWS_A_CHUNK:
            yield from top.items(chunk)
            reading.advance(len(chunk), 0.5 + fraction / 2)
            chunk = []
    yield from top.items(chunk)
    for path, rows in tables.items():
        rows.table.finish()
        if path:
            reading.skipped += rows.reading.skipped
            reading.warned += rows.reading.warned
    reading.advance(len(chunk), 1.0)


def _options_of(tables: Mapping[str, _Rows], options: Options) -> dict[str, dict[str, Any]]:
    """Return the options of each table.

    Options about columns of nested tables ("items.price") go to these; unknown columns stay with the
    source's own table, which reports them.
    """
    by_table = {path: {key: options[key] for key in CELL_OPTIONS if key in options} for path in tables}
    by_table[""].update({key: options[key] for key in ("key", "name_column", "times") if key in options})
    owners: dict[str, list[tuple[str, str]]] = {}
    for path, rows in tables.items():
        for column in rows.fields:
            owners.setdefault(collapse(f"{path}.{column}" if path else column), []).append((path, column))
    for option in ("types", "refs", "join"):
        option_value = options.get(option)
        if isinstance(option_value, str) and option == "types":
            for item in by_table.values():
                item[option] = option_value
        elif isinstance(option_value, Mapping):
            for name, value in option_value.items():
                for path, column in owners.get(collapse(str(name)), [("", name)]):
                    by_table[path].setdefault(option, {})[column] = value
        elif option_value is not None and not (option == "join" and option_value is False):
            for name in option_texts(options, option):
                for path, column in owners.get(collapse(name), [("", name)]):
                    by_table[path].setdefault(option, []).append(column)
    return by_table


def _first(flat: Flat, key: str) -> str | None:
    return next((text for value in flat.values.get(key, ()) if (text := printed(value))), None)


def bad_of(report: Reading | None, number: int) -> Bad:
    """Return a callback that reports errors of a record, or of the records of its lists."""

    def bad(error: BadRecord) -> None:
        if report is not None:
            report.bad(error.message, row=number, field=error.field)

    return bad


def read_dicts(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a list of dictionaries."""
    if not is_records(source):
        raise FormatError(f"an object of type {type(source).__name__} is not a list of dictionaries", file=reading.source.location)

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        for number, record in enumerate(source, 1):
            bad = bad_of(report, number)
            try:
                if not isinstance(record, Mapping):
                    raise BadRecord(f"a record is a dictionary, not {type(record).__name__}")
                yield (number, flatten(record, bad)), number / len(source)
            except BadRecord as error:
                bad(error)

    yield from read_records(records, reading, options)


def is_records(source: Any) -> bool:
    """Whether an object is a list of dictionaries, by its first element."""
    return isinstance(source, (list, tuple)) and bool(source) and isinstance(source[0], Mapping)


#: The most characters of a document, which is read as a whole.
MAX_CHARACTERS: Final = 256 << 20


def read_jsonl(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a file with one JSON object per line."""
    path = files.path_of(source)
    encoding = options.get("encoding")
    decoder = _decoder()

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        size = max(1, path.stat().st_size)
        number = 0
        with files.open_text(path, encoding, errors="surrogateescape", newline="\n") as stream, files.file_errors(path):
            for line_number, line in enumerate(stream, 1):
                text = line.strip()
                if not text:
                    continue
                number += 1
                bad = bad_of(report, number)
                try:
                    record = _object(_parse(decoder, text))
                    flat = flatten(_feature(record) if _is_feature(record) else record, bad)
                except BadRecord as error:
                    bad(BadRecord(f"{error.message} (line {line_number})", error.field))
                    continue
                yield (number, flat), min(1.0, files.raw_position(stream) / size)

    with files.file_errors(path):
        files.regular(path).open("rb").close()
    yield from read_records(records, reading, options)


def read_json(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a JSON document: the objects of its list, or its only object."""
    path = files.path_of(source)
    with files.open_text(path, options.get("encoding"), errors="surrogateescape") as stream, files.file_errors(path):
        text = stream.read(MAX_CHARACTERS + 1)
    if len(text) > MAX_CHARACTERS:
        raise LoadError(
            f"a JSON document is read whole, and may have {MAX_CHARACTERS >> 20} MiB",
            file=str(path),
            hint="JSON lines, one object a line, have no such limit",
        )
    try:
        document = _decoder().decode(text.strip())
    except json.JSONDecodeError as error:
        raise LoadError(f"this is not JSON: {error.msg} (column {error.colno})", file=str(path), row=error.lineno) from None
    except RecursionError:
        raise LoadError("the document is nested too deeply", file=str(path)) from None
    del text
    items = _listed(document, reading)

    def records(report: Reading | None) -> Iterator[tuple[Record, float]]:
        for number, item in enumerate(items, 1):
            bad = bad_of(report, number)
            try:
                record = _object(item)
                yield (number, flatten(_feature(record) if _is_feature(record) else record, bad)), number / len(items)
            except BadRecord as error:
                bad(error)

    yield from read_records(records, reading, options)


def _listed(document: Any, reading: Reading) -> Sequence[Any]:
    """Return the records of a document."""
    if isinstance(document, dict) and document.get("type") == "FeatureCollection" and isinstance(document.get("features"), list):
        other_keys = [key for key in document if key not in ("type", "features")]
        if other_keys:
            reading.warn(f"fields of the collection outside its features are left out: {', '.join(map(repr, other_keys[:10]))}")
        return cast("list[Any]", document["features"])
    rows = _rows_of(document)
    if rows is None:
        keyed = _under_keys(document)
        if keyed is None:
            return document if isinstance(document, list) else [document]
        description = (
            f"records under keys, and is read as {len(keyed):,} rows with their keys in the column {next(iter(keyed[0]))!r}"
        )
        reading.warn(f"the document holds {description}")
        return keyed
    description = "rows below a header" if isinstance(document, list) or "columns" in document else "columns"
    reading.warn(f"the document holds {description}, and is read as {numbered(len(rows), 'row', 'rows')}")
    return rows


def _rows_of(document: Any) -> list[dict[str, Any]] | None:
    """Return the rows of a document that is a table, but no list of objects; else None."""
    if isinstance(document, list):
        return _below(document[0], document[1:]) if document else None
    if not isinstance(document, dict) or isinstance(document, Repeated):
        return None
    if set(document) in ({"columns", "data"}, {"columns", "data", "index"}):
        return _below(document["columns"], document["data"])
    columns = list(document.values())
    if len(columns) > 1 and all(isinstance(column, list) and column and len(column) == len(columns[0]) for column in columns):
        if not any(isinstance(cell, (dict, list)) for column in columns for cell in column):
            return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]
    elif len(columns) > 1 and all(isinstance(column, dict) and column and column.keys() == columns[0].keys() for column in columns):
        # The columns of pandas, by row number.
        numbers = list(columns[0])
        if numbers == list(map(str, range(len(numbers)))):
            return [{key: item[number] for key, item in document.items()} for number in numbers]
    return None


def _under_keys(document: Any) -> list[dict[str, Any]] | None:
    """Return the rows of a document with records of similar fields under keys; else None."""
    if not isinstance(document, dict) or isinstance(document, Repeated) or len(document) < 2:
        return None
    records = list(document.values())
    if not all(isinstance(record, dict) and not isinstance(record, Repeated) for record in records):
        return None
    fields = set().union(*records)
    if not fields or sum(map(len, records)) * 2 <= len(fields) * len(records):
        return None
    name = next(name for name in ("key", "document key", "key of the record") if name not in fields)
    return [{name: key, **record} for key, record in document.items()]


def _below(header: Any, rows: Any) -> list[dict[str, Any]] | None:
    """Return the rows below a header, or None."""
    if not isinstance(header, list) or not isinstance(rows, list) or not rows:
        return None
    if not all(isinstance(item, str) and not isinstance(item, Digits) for item in header) or len(set(header)) < len(header):
        return None
    if not all(isinstance(row, list) and len(row) == len(header) for row in rows):
        return None
    return [dict(zip(header, row, strict=True)) for row in rows]


def _is_feature(record: Mapping[str, Any]) -> bool:
    """Whether a record is a GeoJSON feature."""
    return record.get("type") == "Feature" and "properties" in record and "geometry" in record


def _feature(feature: dict[str, Any]) -> dict[str, Any]:
    """Return a feature as a record: its properties and geometry.

    Points have a longitude and a latitude; other coordinates are lists of lists.
    """
    properties, geometry = feature["properties"], feature["geometry"]
    record: dict[str, Any] = {}
    for key, value in feature.items():
        if key not in ("type", "properties", "geometry"):
            # A bounding box is four numbers whose order matters, so it stays JSON text.
            taken = isinstance(properties, dict) and key in properties
            record[f"feature {key}" if taken else key] = json_text(value) if key == "bbox" else value
    record |= properties if isinstance(properties, dict) else {}
    if isinstance(geometry, dict):
        at = geometry.get("coordinates")
        if geometry.get("type") == "Point" and isinstance(at, list) and len(at) in (2, 3):
            geometry = {"type": "Point", **dict(zip(("longitude", "latitude", "altitude"), at, strict=False))}
        record["geometry"] = geometry
    return record


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_unique, parse_int=Digits, parse_float=Digits, parse_constant=float)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        repeated = Repeated(record)
        keys: set[str] = set()
        for key, _ in pairs:
            if key in keys:
                repeated.key = key
                break
            keys.add(key)
        return repeated
    return record


def _parse(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise BadRecord(f"this is not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise BadRecord("records are nested too deeply") from None


def _object(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise BadRecord("a record is a JSON object, not another value")
    return record


#: The start of a list of objects, or of an object.
_DOCUMENT: Final = re.compile(r"(?:\[\s*)?\{\s*(?:\"|\}\s*[,\]])|\[\s*\[\s*\"").match
_DOCUMENTS: Final = (".json", ".geojson")
_LINES: Final = (".jsonl", ".ndjson")


def sniff_jsonl(path: Path, head: bytes) -> int:
    """Score a file as one JSON object per line, but no export of a graph: 0 to 60."""
    text = files.head_text(head)
    if not text or not text.lstrip().startswith("{"):
        return 0
    lines = [line for line in text.split("\n") if line.strip()]
    if len(head) >= files.HEAD_BYTES and len(lines) > 1:
        lines.pop()
    records: list[dict[str, object]] = []
    for line in lines[:20]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return 20 if records and files.suffix_of(path) in _LINES else 0
        if not isinstance(record, dict):
            return 0
        records.append(record)
    if "condgraph" in records[0]:
        return 0
    if files.suffix_of(path) in _LINES:
        return 60
    # A single object is more likely a document.
    return 50 if len(records) > 1 else 10


def sniff_json(path: Path, head: bytes) -> int:
    """Score a file as a JSON document of objects, rather than lines: 0 to 60."""
    text = (files.head_text(head) or "").lstrip("\ufeff \t\r\n")
    named = files.suffix_of(path) in _DOCUMENTS
    if not _DOCUMENT(text):
        return 0
    if text.startswith("["):
        return 60 if named else 50
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        # Truncated, or damaged, which the reader reports best.
        return 44 if named else 8 if len(head) >= files.HEAD_BYTES else 0
    if "condgraph" in document or text[end:].strip():
        return 0
    return 55 if named else 45


JSONL: Final = Format(
    "jsonl-table",
    "a table as JSON lines: one object, one row, a line",
    with_key_warnings(read_jsonl),
    {**TABLE_OPTIONS, "encoding": files.ENCODING_HELP},
    sniff_jsonl,
    sign=JSON_SIGN,
)
JSON: Final = Format(
    "json",
    "a JSON document: a list of objects, each a row, or one object; lists of objects inside are further tables",
    with_key_warnings(read_json),
    {**TABLE_OPTIONS, "encoding": files.ENCODING_HELP},
    sniff_json,
    sign=JSON_SIGN,
)
