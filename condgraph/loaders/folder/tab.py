"""One of several tables while they are read: how it is opened, what its columns are, its keys, and
the reading that its problems go to.

Typed values (of databases, spreadsheets, Parquet) as the texts of cells, without loss: what is
typed over the whole column afterwards, as in every table.

Whole floats are whole numbers, decimals keep their zeros, moments with a zone are in UTC, bytes are
hexadecimal (`0x...`), and what has parts (lists, mappings) is JSON.

Parquet as one of several tables: a file, or a folder with the pieces of a table (`part-0.parquet`,
`year=2020/part-0.parquet`), whose names are columns then.
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


def _float(value: float) -> str:
    return (
        ""
        if math.isnan(value)
        else str(value)
        if math.isinf(value)
        else format_number(int(value) if value.is_integer() and abs(value) < 2**63 else value)
    )


def _decimal(value: Decimal) -> str:
    return "" if value.is_nan() else str(value) if value.is_infinite() else format(value, "f")


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
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{part}"


_PRINT: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda value: "",
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    Decimal: _decimal,
    datetime.datetime: _moment,
    datetime.date: datetime.date.isoformat,
    datetime.time: lambda value: value.isoformat(),
    datetime.timedelta: _length,
    bytes: lambda value: "0x" + value.hex().upper(),
    bytearray: lambda value: "0x" + value.hex().upper(),
    memoryview: lambda value: "0x" + value.hex().upper(),
}


def cell_text(value: Any) -> str:
    """A value as the text of a cell; "" where it is missing.

    >>> [cell_text(one) for one in (10248.0, Decimal("14.00"), True, None, b"\\x15", datetime.date(1996, 7, 4))]
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
    """Rows of values as columns of texts."""
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
        """The rows, a batch at a time."""
        first = 1
        with arrow_errors(str(self.path)):
            total = max(1, self.dataset.count_rows())
            for batch in bounded(self.dataset.to_batches(batch_size=ROWS), self.size, self.path):
                if batch.num_rows:
                    columns = [array.to_pylist() for column in batch.columns for array in flattened(column)]
                    numbers = range(first, first + batch.num_rows)
                    first += batch.num_rows
                    yield Chunk(numbers, [list(map(cell_text, column)) for column in columns]), first / total


#: The part of a name column's cells that have to be there, and to be different.
_THERE: Final = 0.9
_DIFFERENT: Final = 0.5


class Cells(Protocol):
    """A table as rows of texts, read as often as is asked."""

    headers: list[str]

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """The rows, with the fraction of the table read after each chunk; what is bad goes to
        `report` (None: it was reported before).
        """
        ...


#: Opens a table; what is bad about it goes to the reading.
OpenCells = Callable[[Reading], Cells]


class Tab:
    """One table: its cells, its columns, its keys.

    `location` is where it is, `form` the format its source says.
    """

    def __init__(self, name: str, location: str, form: str, reading: Reading, opens: OpenCells) -> None:
        self.name = name
        self.location = location
        self.source = Source(f"{reading.source.name}/{name}", location, form, reading.source.content)
        # Where several tables are in one place, a row alone says little.
        table = name if location == reading.source.location else None
        self.reading = Reading(self.source, reading.on_error, None, reading.problems, table=table, spill=reading.spill)
        self.cells = opens(self.reading)
        self.names = column_names(self.cells.headers, self.reading)
        self.columns = Columns(name, self.names, files=reading.spill)
        self.name_column: int | None = None
        #: The predicate of rows that are relations, and the column that says it row by row.
        self.predicate = name
        self.type_column: int | None = None
        #: The ids of rows that other sources refer to by another one than theirs (`referred`).
        self.taken: dict[str, str] = {}
        self._indexes: dict[Key, dict[str, str]] = {}
        self._kept: list[Chunk] | None = None
        self._begun: Iterator[tuple[Chunk, float]] | None = None

    def begin(self, options: Options, declared: Declared) -> None:
        """Say how the cells are read; before anything else is asked."""
        given = declared.cells.get(self.name, {}) | {key: options[key] for key in CELL_OPTIONS if options.get(key) is not None}
        if types := declared.types.get(self.name):
            given["types"] = dict(types)
        self.table = Table(self.reading, TableOptions.of(given), self.names)
        further = {collapse(text).casefold() for text in option_texts(options, "missing")}
        said = declared.missing.get(self.name, {})
        self.missing = [
            frozenset({"", *further, *(collapse(text).casefold() for text in said[name])})
            if name in said
            else self.table.options.missing
            for name in self.names
        ]
        self.profiles = [Profile(missing) for missing in self.missing]
        self.separators = {self.names.index(name): mark for name, mark in declared.separators.get(self.name, {}).items()}

    def cells_of(self, at: int, column: Sequence[str]) -> list[str | None]:
        """The cells of a column as parts of keys; None where one is missing."""
        missing = self.missing[at]
        if not isinstance(column, Fields) or not column.collapsed:
            return [None if text.casefold() in missing else text for text in map(collapse, column)]
        result: list[str | None] = [*column.texts]
        for item in np.flatnonzero(column.perhaps(missing) | (column.lengths == 0)).tolist():
            text = collapse(column.texts[item])
            result[item] = None if text.casefold() in missing else text
        return result

    def keys(self, key: Key, chunk: Chunk) -> list[str | None]:
        """The keys of the rows of a chunk; None where a part is missing."""
        parts = [self.cells_of(item, chunk.columns[item]) for item in key]
        return parts[0] if len(parts) == 1 else list(map(joined, zip(*parts, strict=True)))

    def first(self, rows: int, *, alone: bool) -> tuple[list[list[str]], bool]:
        """The cells of the first rows, before the first pass, column by column, and whether there are
        no more rows; `alone` says that no more may be wanted.
        """
        # A file is opened once, but where memory is bounded; of a database several results at once may be too many.
        alone = alone or self.reading.spill is not None
        kept = isinstance(self.cells, TextTable | ArrowCells) and not alone
        if isinstance(self.cells, TextTable) and alone:
            chunks = self.cells.chunks(None, self.names, rows + 1)
        else:
            chunks = self.cells.chunks(self.reading if kept else None, self.names)
        heads: list[tuple[Chunk, float]] = []
        columns: list[list[str]] = [[] for _ in self.names]
        seen = 0
        while seen <= rows and (head := next(chunks, None)) is not None:
            heads.append(head)
            few = np.arange(max(0, min(rows - seen, len(head[0].numbers))))
            for mine, column in zip(columns, head[0].columns, strict=True):
                mine += column.some(few) if isinstance(column, Fields) else column[: len(few)]
            seen += len(head[0].numbers)
        if kept:
            self._begun = chain(heads, chunks)
        return columns, seen <= rows

    def first_pass(self) -> Iterator[Chunk]:
        """All rows, for the first time; problems go to the reading."""
        chunks, self._begun = self._begun or self.cells.chunks(self.reading, self.names), None
        for chunk, _ in chunks:
            yield chunk

    def survey(self, keys: set[Key], room: int = 0) -> int:
        """The first pass: what the columns look like, and the values of those that may be keys. A
        table of at most `room` cells stays in memory; how many cells do.
        """
        kept: list[Chunk] | None = []
        cells, last = 0, None
        self.columns.values.update((key, values_by(self.reading.spill)) for key in keys)
        for chunk in self.first_pass():
            check()
            for at, column in enumerate(chunk.columns):
                mark = self.separators.get(at)
                self.profiles[at].add(column if mark is None else [part for cell in column for part in cell.split(mark)])
            for key in keys:
                self.columns.add(key, self.keys(key, chunk))
            self.columns.rows += len(chunk.numbers)
            last = chunk
            cells += len(chunk.numbers) * len(self.names)
            if kept is not None:
                kept.append(chunk)
                if cells > room:
                    kept = None
        for key in keys:
            self.columns.of(key).end()
        if last is not None:
            warn_of_totals(self.names, last, self.reading)
        delimiter = self.cells.layout.delimiter if isinstance(self.cells, TextTable) else ","
        self.table.look_for_commas(dict(enumerate(self.profiles)), delimiter)
        self._kept = kept
        return 0 if kept is None else cells

    def again(self) -> Iterator[Chunk]:
        """The rows once more, after the first pass."""
        if self._kept is not None:
            yield from self._kept
        else:
            for chunk, _ in self.cells.chunks(None, self.names):
                yield chunk

    def forget(self) -> None:
        """Call when the rows are not asked for again."""
        self._kept = None

    def index(self, key: Key) -> None:
        """Read the table once more, to know its rows by a key that is not its own."""
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
        """The texts of a key that rows have."""
        return self.columns.values[key] if key == self.columns.primary else self._indexes[key]

    def rows_of(self, key: Key, texts: Sequence[str]) -> list[str | None]:
        """The ids of the rows that have some keys; None where none has."""
        idents: Iterable[str | None]
        if key == self.columns.primary:
            there = self.columns.values[key].holds(texts)
            idents = (f"{self.name}/{text}" if found else None for text, found in zip(texts, there, strict=True))
        else:
            idents = map(self._indexes[key].get, texts)
        return [ident if ident is None else self.taken.get(ident, ident) for ident in idents]

    def find_name(self) -> int | None:
        """The column that names the rows: of text, called like a name, mostly there and mostly
        different.
        """
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
    """How much a column is called like one of names, in a table of that word; 0 is the most, None not at all."""
    if column in (stem + "name", stem + "title"):
        return 0
    if column in ("name", "title", "label"):
        return 1
    return 2 if column.endswith(("name", "title")) else None


def _unique_enough(profile: Profile, rows: int) -> bool:
    # The profile counts distinct texts once a chunk, which is enough for a rule of thumb.
    cells = sum(some for some, _ in profile.shapes.values())
    distinct = sum(different for _, different in profile.shapes.values())
    return rows > 0 and cells >= _THERE * rows and distinct >= _DIFFERENT * rows
