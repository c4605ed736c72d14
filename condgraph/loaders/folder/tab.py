"""One of several tables during a load: its cells, columns, keys and problems.

Typed values (of databases, spreadsheets, Parquet) become texts of cells without loss, and are typed
over whole columns afterwards, as in every table. Whole floats are written as integers, decimals keep
their zeros, times with a zone are in UTC, bytes are hexadecimal (`0x...`), and lists and mappings are
JSON.

A table in Parquet is a file, or a folder with its pieces (`part-0.parquet`,
`year=2020/part-0.parquet`), whose names become columns.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from condgraph.engine.bounds import check
from condgraph.engine.facts import Source
from condgraph.engine.reading.shapes import MAX_LENGTH
from condgraph.engine.values import collapse, format_number
from condgraph.loaders.base import Options, Reading, option_texts
from condgraph.loaders.folder.declared import Declared
from condgraph.loaders.folder.keys import Columns, Key
from condgraph.loaders.table.arrow import ROWS, arrow_errors, bounded, dataset_of, flattened, leaves_of
from condgraph.loaders.table.column_types import Profile
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.joins import joined, plain, singular, values_by
from condgraph.loaders.table.rows import CELL_OPTIONS, Table, TableOptions, column_names
from condgraph.loaders.table.text import Chunk, TextTable, warn_of_totals


class Pointed(str):
    """The text of a typed number with decimals. Its point is certain, whatever other cells of the table indicate."""

    __slots__ = ()


class TimeOfDay(str):
    """The text of a typed time of day, which is not a duration."""

    __slots__ = ()


class Length(str):
    """The text of a typed duration, which is not a time of day."""

    __slots__ = ()


def _float(value: float) -> str:
    if math.isfinite(value):
        whole = value.is_integer() and abs(value) < 2**63
        text = format_number(int(value) if whole else value)
        if len(text) > MAX_LENGTH:
            # It would be no number, and neither would one without a point.
            digits, _, exponent = repr(value).partition("e")
            text = f"{digits}{'' if '.' in digits else '.0'}e{exponent}"
        return text if whole else Pointed(text)
    return "" if math.isnan(value) else str(value)


def _decimal(value: Decimal) -> str:
    return "" if value.is_nan() else str(value) if value.is_infinite() else Pointed(format(value, "f"))


def _moment(value: datetime.datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value.isoformat(sep=" ")


def _length(value: datetime.timedelta) -> str:
    seconds = value.days * 86_400 + value.seconds
    sign, seconds = ("-", -seconds) if seconds < 0 and not value.microseconds else ("", seconds)
    if seconds < 0:
        return f"{value.total_seconds()} seconds"
    part = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    return Length(f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{part}")


_PRINT: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda value: "",
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    Decimal: _decimal,
    datetime.datetime: _moment,
    datetime.date: datetime.date.isoformat,
    datetime.time: lambda value: TimeOfDay(value.isoformat()),
    datetime.timedelta: _length,
    bytes: lambda value: "0x" + value.hex().upper(),
    bytearray: lambda value: "0x" + value.hex().upper(),
    memoryview: lambda value: "0x" + value.hex().upper(),
}


def cell_text(value: Any) -> str:
    r"""Return a value as the text of a cell; "" if it is missing.

    >>> [cell_text(one) for one in (10248.0, Decimal("14.00"), True, None, b"\x15", datetime.date(1996, 7, 4))]
    ['10248', '14.00', 'true', '', '0x15', '1996-07-04']
    """
    known = _PRINT.get(type(value))
    if known is not None:
        return known(value)
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        if isinstance(value, (set, frozenset)):
            value = sorted(value, key=str)
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    return str(value)


def columns_of(rows: Sequence[Sequence[Any]], width: int) -> list[list[str]]:
    """Return rows of values as columns of texts."""
    if not rows:
        return [[] for _ in range(width)]
    return [[_PRINT.get(type(value), cell_text)(value) for value in column] for column in zip(*rows, strict=True)]


class ArrowCells:
    """A table in Parquet as rows of texts."""

    def __init__(self, path: Path, reading: Reading | None) -> None:
        self.path = path
        with arrow_errors(str(path)):
            self.dataset, self.size = dataset_of(path)
            self.headers = [name for field in self.dataset.schema for name, _ in leaves_of(field.name, field.type)]
            kinds = [(name, kind) for field in self.dataset.schema for name, kind in leaves_of(field.name, field.type)]
        import pyarrow as pa

        for name, kind in kinds:
            if reading is not None and pa.types.is_nested(kind):
                reading.warn(f"a column of type {kind} is read as JSON text", field=name)

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """Yield the rows, one batch at a time."""
        first = 1
        with arrow_errors(str(self.path)):
            total = max(1, self.dataset.count_rows())
            for batch in bounded(self.dataset.to_batches(batch_size=ROWS), self.size, self.path):
                if batch.num_rows:
                    columns = [array.to_pylist() for column in batch.columns for array in flattened(column)]
                    numbers = range(first, first + batch.num_rows)
                    first += batch.num_rows
                    yield Chunk(numbers, [list(map(cell_text, column)) for column in columns]), first / total


#: The least share of a name column's cells that are not missing, and that are distinct.
_MIN_PRESENT: Final = 0.9
_MIN_DISTINCT: Final = 0.5


def _note_types(column: Sequence[str], profile: Profile) -> None:
    """Add to a profile what is known of typed cells."""
    types = set(map(type, column))
    profile.pointed |= Pointed in types
    if TimeOfDay in types or Length in types:
        profile.clock = "tod" if Length not in types and profile.clock != "dur" else "dur"


class Cells(Protocol):
    """A table as rows of texts, which can be read repeatedly."""

    headers: list[str]

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """Yield the rows, with the fraction of the table read after each chunk.

        Problems go to `report`; None means that they were reported before.
        """
        ...


#: Opens a table; problems go to the reading.
OpenCells = Callable[[Reading], Cells]


class Tab:
    """One table: its cells, columns and keys.

    `location` is its place, `form` the format of its source.
    """

    def __init__(self, name: str, location: str, form: str, reading: Reading, opens: OpenCells) -> None:
        self.name = name
        self.location = location
        self.source = Source(f"{reading.source.name}/{name}", location, form, reading.source.content)
        # If several tables share a location, messages name the table as well.
        table = name if location == reading.source.location else None
        self.reading = Reading(self.source, reading.on_error, None, reading.problems, table=table, spill=reading.spill)
        self.cells = opens(self.reading)
        self.names = column_names(self.cells.headers, self.reading)
        self.columns = Columns(name, self.names, files=reading.spill)
        self.name_column: int | None = None
        #: The predicate of rows that are relations, and the column that has it for each row.
        self.predicate = name
        self.type_column: int | None = None
        #: Ids by which other sources already refer to rows, by the rows' own ids.
        self.taken: dict[str, str] = {}
        self._indexes: dict[Key, dict[str, str]] = {}
        self._kept: list[Chunk] | None = None
        self._begun: Iterator[tuple[Chunk, float]] | None = None

    def begin(self, options: Options, declared: Declared) -> None:
        """Set how the cells are read; must be called first."""
        cell_options = declared.cells.get(self.name, {}) | {
            key: options[key] for key in CELL_OPTIONS if options.get(key) is not None
        }
        times = dict.fromkeys(getattr(self.cells, "times", ()), "time")
        if types := times | declared.types.get(self.name, {}):
            cell_options["types"] = types
        self.table = Table(self.reading, TableOptions.of(cell_options), self.names)
        more_missing = {collapse(text).casefold() for text in option_texts(options, "missing")}
        declared_missing = declared.missing.get(self.name, {})
        self.missing = [
            frozenset({"", *more_missing, *(collapse(text).casefold() for text in declared_missing[name])})
            if name in declared_missing
            else self.table.options.missing
            for name in self.names
        ]
        self.profiles = [Profile(missing) for missing in self.missing]
        self.separators = {self.names.index(name): mark for name, mark in declared.separators.get(self.name, {}).items()}

    def cells_of(self, at: int, column: Sequence[str]) -> list[str | None]:
        """Return the cells of a column as parts of keys; None for missing ones."""
        missing = self.missing[at]
        if not isinstance(column, Fields) or not column.collapsed:
            return [None if text.casefold() in missing else text for text in map(collapse, column)]
        result: list[str | None] = [*column.texts]
        for item in np.flatnonzero(column.perhaps(missing) | (column.lengths == 0)).tolist():
            text = collapse(column.texts[item])
            result[item] = None if text.casefold() in missing else text
        return result

    def keys(self, key: Key, chunk: Chunk) -> list[str | None]:
        """Return the keys of the rows of a chunk; None if a part is missing."""
        parts = [self.cells_of(item, chunk.columns[item]) for item in key]
        return parts[0] if len(parts) == 1 else list(map(joined, zip(*parts, strict=True)))

    def first(self, rows: int, *, alone: bool) -> tuple[list[list[str]], bool]:
        """Return the cells of the first rows by column, before the first pass, and whether these are all rows.

        `alone` means that the other rows may not be needed.
        """
        # The rows read are kept for the first pass. Not with bounded memory, and not for a database, where several open
        # results may be too many.
        alone = alone or self.reading.spill is not None
        is_kept = isinstance(self.cells, TextTable | ArrowCells) and not alone
        if isinstance(self.cells, TextTable) and alone:
            chunks = self.cells.chunks(None, self.names, rows + 1)
        else:
            chunks = self.cells.chunks(self.reading if is_kept else None, self.names)
        heads: list[tuple[Chunk, float]] = []
        columns: list[list[str]] = [[] for _ in self.names]
        row_count = 0
        while row_count <= rows and (head := next(chunks, None)) is not None:
            heads.append(head)
            positions = np.arange(max(0, min(rows - row_count, len(head[0].numbers))))
            for cells, column in zip(columns, head[0].columns, strict=True):
                cells += column.some(positions) if isinstance(column, Fields) else column[: len(positions)]
            row_count += len(head[0].numbers)
        if is_kept:
            self._begun = chain(heads, chunks)
        return columns, row_count <= rows

    def first_pass(self) -> Iterator[Chunk]:
        """Yield all rows for the first time; problems go to the reading."""
        chunks, self._begun = self._begun or self.cells.chunks(self.reading, self.names), None
        for chunk, _ in chunks:
            yield chunk

    def survey(self, keys: set[Key], room: int = 0) -> int:
        """Do the first pass: profile the columns, and collect the values of possible keys.

        A table of at most `room` cells stays in memory; returns the number of its cells.
        """
        kept_chunks: list[Chunk] | None = []
        cells, last = 0, None
        self.columns.values.update((key, values_by(self.reading.spill)) for key in keys)
        for chunk in self.first_pass():
            check()
            for at, column in enumerate(chunk.columns):
                mark = self.separators.get(at)
                self.profiles[at].add(column if mark is None else [part for cell in column for part in cell.split(mark)])
                if not isinstance(self.cells, TextTable):
                    _note_types(column, self.profiles[at])
            for key in keys:
                self.columns.add(key, self.keys(key, chunk))
            self.columns.rows += len(chunk.numbers)
            last = chunk
            cells += len(chunk.numbers) * len(self.names)
            if kept_chunks is not None:
                kept_chunks.append(chunk)
                if cells > room:
                    kept_chunks = None
        for key in keys:
            self.columns.of(key).end()
        if last is not None:
            warn_of_totals(self.names, last, self.reading)
        delimiter = self.cells.layout.delimiter if isinstance(self.cells, TextTable) else ""
        self.table.look_for_commas(dict(enumerate(self.profiles)), delimiter)
        self._kept = kept_chunks
        return 0 if kept_chunks is None else cells

    def again(self) -> Iterator[Chunk]:
        """Yield the rows again, after the first pass."""
        if self._kept is not None:
            yield from self._kept
        else:
            for chunk, _ in self.cells.chunks(None, self.names):
                yield chunk

    def forget(self) -> None:
        """Release the rows; they are not read again."""
        self._kept = None

    def index(self, key: Key) -> None:
        """Read the table again to index its rows by a key that is not the primary key."""
        if key == self.columns.primary or key in self._indexes:
            return
        rows = self._indexes.setdefault(key, {})
        primary = self.columns.primary
        for chunk in self.again():
            own = chunk.numbers if primary is None else self.keys(primary, chunk)
            for item, text in zip(own, self.keys(key, chunk), strict=True):
                if text is not None and item is not None:
                    rows.setdefault(text, f"{self.name}/{item}")

    def known(self, key: Key) -> Iterable[str]:
        """Return the texts of a key that rows have."""
        return self.columns.values[key] if key == self.columns.primary else self._indexes[key]

    def rows_of(self, key: Key, texts: Sequence[str]) -> list[str | None]:
        """Return the ids of the rows with some keys; None for a key that no row has."""
        idents: Iterable[str | None]
        if key == self.columns.primary:
            exist = self.columns.values[key].holds(texts)
            idents = (f"{self.name}/{text}" if exists else None for text, exists in zip(texts, exist, strict=True))
        else:
            idents = map(self._indexes[key].get, texts)
        return [ident if ident is None else self.taken.get(ident, ident) for ident in idents]

    def find_name(self) -> int | None:
        """Return the column that names the rows: of text, with such a header, mostly filled and distinct."""
        stem = singular(plain(self.name))
        ranked = sorted(
            (rank, at)
            for at, name in enumerate(self.names)
            if self.columns.reference(at) is None and (rank := name_rank(plain(name), stem)) is not None
        )
        for _, at in ranked:
            if self.profiles[at].decide(self.names[at]).kind == "text" and _unique_enough(self.profiles[at], self.columns.rows):
                return at
        return None


def name_rank(column: str, stem: str) -> int | None:
    """Return how well a column's header fits a name in a table of that stem: 0 is best, None not at all."""
    if column in (stem + "name", stem + "title"):
        return 0
    if column in ("name", "title", "label"):
        return 1
    return 2 if column.endswith(("name", "title")) else None


def _unique_enough(profile: Profile, rows: int) -> bool:
    # The profile counts distinct texts within chunks only, which is enough for a rule of thumb.
    cells = sum(cell_count for cell_count, _ in profile.shapes.values())
    distinct = sum(distinct_count for _, distinct_count in profile.shapes.values())
    return rows > 0 and cells >= _MIN_PRESENT * rows and distinct >= _MIN_DISTINCT * rows
