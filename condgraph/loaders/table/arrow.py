"""Loaders of columnar tables: Parquet files, Arrow tables, and frames of pandas and polars through Arrow.

Columns of texts are typed as in every table (`column_types`). Other columns keep their type: numbers
are exact, NaN and null are missing, booleans are the texts "true" and "false". Days and timestamps are
times (parts of a second are cut off, with a warning; a timestamp with a zone is in UTC), and times of
day and durations are seconds. A column of numbers may be one of years, and a column of timestamps that
are all midnight one of days, by the same rules as in text. A struct becomes one column for each field
("a.b"); a list gives one statement for each element.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from condgraph.engine.errors import FormatError, LoadError, pyarrow_or_error
from condgraph.engine.facts import Batch, Column, Item, Numbers, Texts, Times
from condgraph.engine.reading.shapes import BASIC, INT, YEAR
from condgraph.engine.reading.times import EPOCHS, FIRST_YEAR, LAST_YEAR, SECOND, SECOND_OF_DAY, basic_day, digits_time, epoch
from condgraph.engine.values import DAY_SECONDS, Precision, Quantity, Time, Value, parse_number, text_of
from condgraph.loaders.base import NO_FILE, Format, Options, Reading
from condgraph.loaders.files import MAX_GROWTH, file_errors, path_of, regular
from condgraph.loaders.table.column_types import Cell, ColumnType
from condgraph.loaders.table.fields import basic_days
from condgraph.loaders.table.joins import with_key_warnings
from condgraph.loaders.table.records import is_records, printed, read_dicts
from condgraph.loaders.table.rows import TABLE_OPTIONS, Table, TableOptions, column_names, column_of, year_times
from condgraph.loaders.validity import unpacked

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Part:
    """A column after lists are flattened: its values, and the rows they are in (None: one each, in order)."""

    values: Any
    rows: NDArray[np.int64] | None = None

    def valid(self, length: int) -> tuple[Any, NDArray[np.int64] | None]:
        """Return the values that are not null, and their rows; None for the rows if there is one value each."""
        if self.values.null_count == 0:
            return self.values, self.rows
        mask = self.values.is_valid()
        rows = np.arange(length) if self.rows is None else self.rows
        return self.values.filter(mask), rows[mask.to_numpy(zero_copy_only=False)]


def leaves_of(name: str, kind: Any) -> list[tuple[str, Any]]:
    """Return the names and types of a column's leaves: itself, or the fields of a struct."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in leaves_of(f"{name}.{field.name}", field.type)]
    return [(name, kind)]


def flattened(array: Any) -> list[Any]:
    """Return the arrays of `leaves_of`, in order; a null struct has null fields."""
    import pyarrow as pa

    if pa.types.is_struct(array.type):
        return [leaf for field in array.flatten() for leaf in flattened(field)]
    return [array]


def scalar_type(kind: Any) -> Any:
    """Return the type of a leaf's values: of a list's elements, a dictionary's values, an extension's storage."""
    import pyarrow as pa

    types = pa.types
    while True:
        if types.is_dictionary(kind) or types.is_run_end_encoded(kind) or _is_list(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType) and not kind.extension_name.startswith("pandas."):
            kind = kind.storage_type
        else:
            return kind


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    plain = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(plain or types.is_list_view(kind) or types.is_large_list_view(kind))


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is a type of texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: Any) -> bool:
    """Whether an Arrow type is a type of bytes."""
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def readable(kind: Any) -> bool:
    """Whether a leaf of this Arrow type has values of a graph, or lists of them."""
    import pyarrow as pa

    types = pa.types
    if _is_list(kind) and _is_list(kind.value_type):
        return False
    kind = scalar_type(kind)
    return bool(
        is_text(kind)
        or is_binary(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
        or types.is_duration(kind)
        or types.is_null(kind)
    )


def part_of(array: Any) -> Part:
    """Flatten lists, and decode dictionaries and extensions of an array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows: NDArray[np.int64] | None = None
    while True:
        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(kind):
            # Few kernels accept string views, which polars returns.
            words = array.dictionary
            words = words.cast(pa.large_string()) if pa.types.is_string_view(words.type) else words
            array = pa.DictionaryArray.from_arrays(array.indices, words).dictionary_decode()
        elif pa.types.is_run_end_encoded(kind):
            array = pc.run_end_decode(array)
        elif pa.types.is_string_view(kind):
            array = array.cast(pa.large_string())
        elif pa.types.is_binary_view(kind):
            array = array.cast(pa.large_binary())
        elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            array = array.cast(pa.large_list(kind.value_type))
        elif _is_list(kind):
            parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
            rows = parents if rows is None else rows[parents]
            array = pc.list_flatten(array)
        else:
            return Part(array, rows)


def only_rows(part: Part, rows_kept: Sequence[int], length: int) -> Part:
    """Return the values of the rows in `rows_kept`, with their indices in it."""
    import pyarrow as pa

    place = np.full(length, -1, dtype=np.int64)
    place[np.asarray(rows_kept, dtype=np.int64)] = np.arange(len(rows_kept))
    rows = place if part.rows is None else place[part.rows]
    taken = np.flatnonzero(rows >= 0)
    return Part(part.values.take(pa.array(taken)), rows[taken])


_UNITS: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
#: The number of decimal digits that a float keeps.
_FLOAT_DIGITS: Final = 15


class Leaf:
    """One column during a load: its profile, then its statements."""

    def __init__(self, table: Table, at: int, kind: Any) -> None:
        self.table = table
        self.at = at
        self.name = table.names[at]
        self.kind = scalar_type(kind)
        self.profile = table.profile()
        self.declared = table.declared(at)
        self.midnight = True
        self.chosen: ColumnType | None = None
        self.read: Callable[[str], Cell | None] | None = None
        self.text = is_text(self.kind) or is_binary(self.kind)

    def needs_look(self) -> bool:
        """Whether the column must be profiled before its statements can be made."""
        import pyarrow as pa

        if self.text or pa.types.is_timestamp(self.kind):
            return True
        number = pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind)
        return bool(number) and self.declared == "auto" and self.at not in self.table.refs

    def look(self, part: Part) -> None:
        """Profile the values of a batch."""
        import pyarrow as pa

        values = part.values.drop_null()
        if not len(values):
            return
        if self.text:
            self.profile.add(self._texts(values))
        elif pa.types.is_timestamp(self.kind):
            day = DAY_SECONDS * _UNITS[self.kind.unit]
            self.midnight = self.midnight and self.kind.tz is None and not (_int64(values) % day).any()
        else:
            numbers = values.to_numpy(zero_copy_only=False)
            if pa.types.is_integer(self.kind):
                self.profile.figures.add(str(numbers.min()))
                self.profile.figures.add(str(numbers.max()))
            numbers = numbers[~np.isnan(numbers)].astype(np.float64) if pa.types.is_floating(self.kind) else numbers
            years = (numbers >= FIRST_YEAR) & (numbers <= LAST_YEAR) & (numbers == np.floor(numbers))
            days = np.zeros(len(numbers), bool)
            eight = np.flatnonzero((numbers >= 10_000_000) & (numbers <= 21_001_231) & (numbers == np.floor(numbers)))
            days[eight] = basic_days(numbers[eight].astype(np.int64))
            for shape, count in ((YEAR, int(years.sum())), (BASIC, int(days.sum())), (INT, int((~years & ~days).sum()))):
                if count:
                    counted = self.profile.shapes.setdefault(shape, [0, 0])
                    counted[0] += count
                    counted[1] += count

    def settle(self) -> None:
        """Decide the type of the column; call it after the last `look`."""
        import pyarrow as pa

        number = pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind)
        fits = {
            "number": number or pa.types.is_decimal(self.kind) or pa.types.is_time(self.kind) or pa.types.is_duration(self.kind),
            "time": number or pa.types.is_date(self.kind) or pa.types.is_timestamp(self.kind),
        }
        if not self.text and not fits.get(self.declared, True) and self.at not in self.table.refs:
            self.table.reading.warn(f"a column of type {self.kind} is not read as a {self.declared}", field=self.name)
        if self.text or self.profile.shapes:
            self.chosen = self.table.decide(self.at, self.profile)
            self.read = self.chosen.reader()

    def _texts(self, values: Any) -> list[str]:
        import pyarrow as pa

        if is_binary(self.kind):
            try:
                values = values.cast(pa.large_binary()).cast(pa.large_string())
            except pa.ArrowInvalid:
                raise LoadError(
                    "the column holds bytes that are not text", file=self.table.reading.source.location, field=self.name
                ) from None
        texts: list[str] = values.to_pylist()
        return texts

    def batch(self, part: Part, ids: Sequence[str], rows: Sequence[int]) -> Iterator[Batch]:
        """Yield the statements of the column in a batch of rows."""
        values, at = part.valid(len(ids))
        if not len(values):
            return
        if at is not None:
            ids, rows = [ids[item] for item in at], [rows[item] for item in at]
        if self.text:
            chosen = self.chosen or self.profile.decide(self.name, "text")
            batch = self.table.batch(self.at, chosen, self.read or chosen.reader(), ids, rows, self._texts(values))
            if batch is not None:
                yield batch
            return
        if self.declared == "text" or self.at in self.table.refs:
            texts = [text_of(value) for value in self._values(values)]
            yield Batch(
                ids, self.name, self.table.ids_of(self.at, texts, rows) if self.at in self.table.refs else Texts(texts), rows
            )
            return
        for objects, positions in self._columns(values):
            if positions is None:
                yield Batch(ids, self.name, objects, rows)
            else:
                yield Batch([ids[item] for item in positions], self.name, objects, [rows[item] for item in positions])

    def _values(self, values: Any) -> list[Value]:
        """Return values one by one, for keys and for columns that are needed as texts."""
        result: list[Value] = [""] * len(values)
        for objects, positions in self._columns(values):
            for position, value in zip(range(len(values)) if positions is None else positions, unpacked(objects), strict=True):
                result[position] = value
        return result

    def cells(self, part: Part, length: int) -> list[str | None]:
        """Return the printed values of a column that names rows; None for missing ones.

        A list gives its first element.
        """
        values, at = part.valid(length)
        texts = self._texts(values) if self.text else [text_of(value) for value in self._values(values)]
        result: list[str | None] = [None] * length
        for row, text in zip(range(length) if at is None else at.tolist(), texts, strict=True):
            if result[row] is None and text:
                result[row] = text
        return result

    def _columns(self, values: Any) -> Iterator[tuple[Column, list[int] | None]]:
        """Yield values that are not null and not texts as columns, each with its positions (None for all)."""
        import pyarrow as pa

        types, kind = pa.types, self.kind
        if types.is_boolean(kind):
            yield Texts(["true" if value else "false" for value in values.to_pylist()]), None
        elif types.is_integer(kind) or types.is_floating(kind):
            yield from self._numbers(values.to_numpy(zero_copy_only=False))
        elif types.is_decimal(kind):
            yield _decimals(values), None
        elif types.is_date(kind):
            yield _days(_int64(values.cast(pa.date32()).cast(pa.int32()))), None
        elif types.is_timestamp(kind):
            seconds = self._seconds(_int64(values))
            midnight = self.midnight and kind.tz is None and not (seconds % DAY_SECONDS).any()
            yield _days(seconds // DAY_SECONDS) if midnight else _moments(seconds), None
        else:
            unit = SECOND if types.is_duration(kind) else SECOND_OF_DAY
            ticks, ticks_per_second = _int64(values), _UNITS[kind.unit]
            if not (ticks % ticks_per_second).any():
                yield Numbers(ticks // ticks_per_second, unit), None
            else:
                yield column_of([Quantity(_over(tick, ticks_per_second), unit) for tick in ticks.tolist()]), None

    def _numbers(self, numbers: NDArray[Any]) -> Iterator[tuple[Column, list[int] | None]]:
        positions: list[int] | None = None
        if numbers.dtype.kind == "f":
            numbers = numbers.astype(np.float64)
            infinite, missing = np.isinf(numbers), np.isnan(numbers)
            if infinite.any():
                self.table.reading.warn(f"{int(infinite.sum())} infinite numbers stay text", field=self.name)
                infinite_at = np.flatnonzero(infinite)
                yield Texts([repr(number) for number in numbers[infinite_at].tolist()]), infinite_at.tolist()
            if infinite.any() or missing.any():
                finite = np.flatnonzero(~(infinite | missing))
                if not len(finite):
                    return
                positions, numbers = finite.tolist(), numbers[finite]
        elif numbers.dtype == np.uint64 and numbers.max() > np.iinfo(np.int64).max:
            yield column_of([Quantity(number) for number in numbers.tolist()]), None
            return
        else:
            numbers = numbers.astype(np.int64)
        if self.declared == "time" or (self.chosen is not None and self.chosen.kind == "time"):
            is_whole = numbers == np.floor(numbers)
            eight = numbers.astype(np.int64)
            if len(numbers) and (is_whole & basic_days(eight)).all():
                dates = [Time.day(item // 10_000, item // 100 % 100, item % 100) for item in eight.tolist()]
                yield column_of(dates), positions
                return
            years = (numbers >= 1) & (numbers <= 9999) & is_whole
            if not years.all():
                read = digits_time if self.declared == "time" else basic_day
                times = [
                    Time.year(int(number)) if year else read(str(number)) or Quantity(number)
                    for number, year in zip(numbers.tolist(), years, strict=True)
                ]
                if left := sum(isinstance(item, Quantity) for item in times):
                    self.table.reading.warn(f"{left} cells cannot be read as a time and stay numbers", field=self.name)
                if self.declared == "time" and any(map(epoch, map(str, numbers.tolist()))):
                    self.table.reading.warn(EPOCHS, field=self.name)
                yield column_of(times), positions
                return
            yield year_times(numbers.astype(np.int64)), positions
            return
        yield Numbers(numbers), positions

    def _seconds(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        each = _UNITS[self.kind.unit]
        cut = int(np.count_nonzero(ticks % each))
        if cut:
            self.table.reading.warn(f"parts of a second are cut off in {cut} cells", field=self.name)
        return ticks // each


def _int64(values: Any) -> NDArray[np.int64]:
    """Return the integers of an Arrow array of times."""
    import pyarrow as pa

    if not pa.types.is_integer(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    numbers: NDArray[np.int64] = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _over(ticks: int, divisor: int) -> int | float | Any:
    """Return ticks as seconds, exactly."""
    whole, part = divmod(abs(ticks), divisor)
    return parse_number(f"{'-' if ticks < 0 else ''}{whole}.{part:0{len(str(divisor)) - 1}d}")


def _days(days: NDArray[np.int64]) -> Times:
    starts = days * DAY_SECONDS
    return Times(starts, starts + DAY_SECONDS, np.full(len(days), Precision.DAY, dtype=np.int8))


def _moments(seconds: NDArray[np.int64]) -> Times:
    return Times(seconds, seconds + 1, np.full(len(seconds), Precision.SECOND, dtype=np.int8))


def _decimals(values: Any) -> Column:
    import pyarrow as pa

    kind = values.type
    if kind.scale <= 0 and kind.precision <= 18:
        return Numbers(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
    texts = values.cast(pa.string())
    if kind.precision <= _FLOAT_DIGITS:
        return Numbers(texts.cast(pa.float64()).to_numpy(zero_copy_only=False))
    return column_of([Quantity(parse_number(text)) for text in texts.to_pylist()])


#: The most rows of a batch.
ROWS: Final = 50_000
#: The rows of a file may have so many bytes, whatever its size.
_MAX_BYTES: Final = 1 << 26


class Field(Protocol):
    """A column of an Arrow schema, as far as it is used here."""

    name: str
    type: Any


#: Yields the record batches of a source from the start, with all columns or some.
OpenBatches: TypeAlias = Callable[[Sequence[str] | None], Iterator[Any]]


@contextmanager
def arrow_errors(location: str) -> Iterator[None]:
    """Turn errors of Arrow into a `LoadError`; raises `MissingExtraError` without pyarrow."""
    pa = pyarrow_or_error()
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise LoadError(f"Arrow cannot read this: {error}", file=location) from None


def read_batches(
    schema: Collection[Field], open_batches: OpenBatches, total: int | None, reading: Reading, options: Options
) -> Iterator[Item]:
    """Yield the facts of a table in record batches; `total` is the number of rows, if known."""
    checked = TableOptions.of(options)
    leaves = [(field.name, leaf, kind) for field in schema for leaf, kind in leaves_of(field.name, field.type)]
    if not leaves:
        raise LoadError("the table has no columns", file=reading.source.location)
    table = Table(reading, checked, column_names([leaf for _, leaf, _ in leaves], reading))
    columns: list[Leaf | None] = []
    for at, (_, _, kind) in enumerate(leaves):
        if readable(kind):
            columns.append(Leaf(table, at, kind))
        else:
            columns.append(None)
            reading.bad(f"a column of type {kind} is neither numbers, times nor texts", field=table.names[at])
    profiled = [at for at, column in enumerate(columns) if column is not None and column.needs_look()]
    if profiled:
        names = list(dict.fromkeys(leaves[at][0] for at in profiled))
        done = 0
        for batch in open_batches(names):
            places = range(len(leaves)) if batch.num_columns == len(schema) else _places(leaves, names)
            arrays = dict(zip(places, _arrays(batch), strict=True))
            for at in profiled:
                if (column := columns[at]) is not None:
                    column.look(part_of(arrays[at]))
            done += batch.num_rows
            reading.advance(0, total and done / total / 2)
    table.look_for_commas({at: column.profile for at, column in enumerate(columns) if column is not None and column.text})
    for column in columns:
        if column is not None:
            column.settle()
    number = 0
    for batch in open_batches(None):
        parts = [None if column is None else part_of(array) for column, array in zip(columns, _arrays(batch), strict=True)]
        numbers = range(number + 1, number + 1 + batch.num_rows)
        number += batch.num_rows
        keys = _cells(table.key, columns, parts, numbers)
        entities, good = table.rows(numbers, keys, _cells(table.name_column, columns, parts, numbers))
        yield from entities
        ids, rows = [entity.id for entity in entities], [entity.row for entity in entities]
        for column, part in zip(columns, parts, strict=True):
            if column is None or part is None:
                continue
            yield from column.batch(part if good is None else only_rows(part, good, batch.num_rows), ids, rows)
        reading.advance(batch.num_rows, total and 0.5 + number / total / 2)
    if not table.has_rows:
        reading.warn("the table has no rows")
    table.finish()


def _places(leaves: Sequence[tuple[str, str, Any]], names: Sequence[str]) -> list[int]:
    wanted = frozenset(names)
    return [at for at, (top, _, _) in enumerate(leaves) if top in wanted]


def _arrays(batch: Any) -> list[Any]:
    return [leaf for array in batch.columns for leaf in flattened(array)]


def _cells(
    at: int | None, columns: Sequence[Leaf | None], parts: Sequence[Part | None], numbers: Sequence[int]
) -> Sequence[str | None] | None:
    if at is None:
        return None
    column, part = columns[at], parts[at]
    return [None] * len(numbers) if column is None or part is None else column.cells(part, len(numbers))


def read_parquet(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a Parquet file, in pieces of `ROWS` rows; raises `LoadError`."""
    path = path_of(source)
    if path.is_dir():
        yield from _read_pieces(path, reading, options)
        return
    regular_path(path)
    size = path.stat().st_size
    with arrow_errors(str(path)):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, read_dictionary=repeated_texts(path)) as file:

            def batches(names: Sequence[str] | None) -> Iterator[Any]:
                return bounded(file.iter_batches(batch_size=ROWS, columns=None if names is None else list(names)), size, path)

            yield from read_batches(file.schema_arrow, batches, file.metadata.num_rows, reading, options)


def regular_path(source: Any) -> Path:
    """Return the path of a readable regular file; raises `LoadError`."""
    path = path_of(source)
    with file_errors(path):
        regular(path).open("rb").close()
    return path


def bounded(batches: Iterable[Any], size: int, path: Path) -> Iterator[Any]:
    """Yield the batches of a file; raises `LoadError` if they are implausibly large for its size in bytes.

    A few bytes may encode a row a billion times.
    """
    bytes_left = max(_MAX_BYTES, MAX_GROWTH * size)
    for batch in batches:
        bytes_left -= sum(_bytes_of(array) for array in _arrays(batch))
        if bytes_left < 0:
            raise LoadError(
                f"the rows take more than {MAX_GROWTH} times the size of the file, and more than {_MAX_BYTES >> 20} MiB",
                file=str(path),
            )
        yield batch


def _bytes_of(array: Any) -> int:
    """Return the bytes of an array after decoding its dictionaries."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if _is_list(array.type) and not pa.types.is_list_view(array.type) and not pa.types.is_large_list_view(array.type):
        return 4 * len(array) + _bytes_of(pc.list_flatten(array))
    if pa.types.is_dictionary(array.type) and (is_text(array.type.value_type) or is_binary(array.type.value_type)):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return 4 * len(array) + int(pc.sum(lengths).as_py() or 0)
    return int(array.nbytes)


def repeated_texts(*paths: Path) -> list[str]:
    """Return the columns of Parquet files whose repeated texts may be larger than a batch should be.

    They are read as dictionaries, whose real size is known before it takes memory.
    """
    import pyarrow.parquet as pq

    names: dict[str, None] = {}
    for path in paths:
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            for at in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(at)
                coded = chunk.physical_type == "BYTE_ARRAY" and any("DICTIONARY" in encoding for encoding in chunk.encodings)
                if coded and min(ROWS, chunk.num_values) * chunk.total_uncompressed_size > _MAX_BYTES:
                    names[chunk.path_in_schema] = None
    return list(names)


def dataset_of(path: Path) -> tuple[Any, int]:
    """Return Parquet files as an Arrow data set with columns from folder names, and their size in bytes."""
    import pyarrow.dataset as ds

    partitioning = "hive" if path.is_dir() else None
    files = [Path(file) for file in ds.dataset(str(path), format="parquet", partitioning=partitioning).files]
    form = ds.ParquetFileFormat(dictionary_columns=repeated_texts(*files))
    return ds.dataset(str(path), format=form, partitioning=partitioning), sum(file.stat().st_size for file in files)


def _read_pieces(path: Path, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a folder with pieces of one table, in the order of names.

    Names of folders (`year=2020`) are columns.
    """
    with arrow_errors(str(path)):
        pieces, size = dataset_of(path)

        def batches(names: Sequence[str] | None) -> Iterator[Any]:
            return bounded(pieces.to_batches(columns=None if names is None else list(names), batch_size=ROWS), size, path)

        yield from read_batches(pieces.schema, batches, pieces.count_rows(), reading, options)


def is_frame(source: Any) -> bool:
    """Whether an object is a table of Arrow, pandas or polars, or exports itself as Arrow."""
    top = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    return (top in ("pandas", "polars", "pyarrow") and name in _FRAMES) or (
        hasattr(source, "__arrow_c_stream__") and not isinstance(source, (str, os.PathLike))
    )


_FRAMES: Final = frozenset(("DataFrame", "LazyFrame", "Table", "RecordBatch", "RecordBatchReader"))


def read_frame(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a table of pandas, polars or Arrow; raises `FormatError` for anything else."""
    location = reading.source.location
    with arrow_errors(location):
        import pyarrow as pa

        if type(source).__module__.partition(".")[0] == "pandas":
            table = _from_pandas(source, reading)
        elif isinstance(source, pa.RecordBatch):
            table = pa.Table.from_batches([source])
        elif isinstance(source, pa.Table):
            table = source
        else:
            source = source.collect() if type(source).__name__ == "LazyFrame" else source
            if not hasattr(source, "__arrow_c_stream__"):
                raise FormatError(f"an object of type {type(source).__name__} is not a table", file=location)
            table = pa.table(source)
        yield from read_batches(
            table.schema, lambda names: iter(table.to_batches(max_chunksize=ROWS)), table.num_rows, reading, options
        )


def _from_pandas(frame: Any, reading: Reading) -> Any:
    """Return a pandas frame as an Arrow table; an index other than positions becomes columns."""
    import pandas as pd
    import pyarrow as pa

    if not isinstance(frame.index, pd.RangeIndex):
        names = [f"index {at}" if name is None else name for at, name in enumerate(frame.index.names, 1)]
        names = ["index"] if frame.index.names == [None] else names
        index = frame.index.to_frame(index=False, name=names if frame.index.nlevels > 1 else names[0])
        if list(frame.index.names) == [None] and pd.api.types.is_integer_dtype(frame.index.dtype):
            # Positions in another frame, left over from selecting or sorting.
            reading.warn("the index of the frame has no name and is not loaded; reset_index() makes it a column")
        else:
            frame = pd.concat([index, frame.reset_index(drop=True)], axis=1)
    arrays, names = [], []
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        name = frame.columns[at]
        names.append(" ".join(map(str, name)) if isinstance(name, tuple) else str(name))
        if isinstance(column.dtype, (pd.PeriodDtype, pd.IntervalDtype)):
            column = column.astype(object).where(column.notna(), None).map(lambda value: None if value is None else str(value))
        try:
            array = pa.array(column, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            # Python objects of several types in one column.
            array = _mixed(column, names[-1], reading)
        arrays.append(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    return pa.Table.from_arrays(arrays, names=names)


def _mixed(column: Any, name: str, reading: Reading) -> Any:
    """Return a column of Python objects of several types as their texts, which are typed like cells."""
    import pandas as pd
    import pyarrow as pa

    texts: list[str | None] = []
    kinds: dict[str, int] = {}
    for row, value in enumerate(column, 1):
        kinds[type(value).__name__] = row
        if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
            texts.append(None)
            continue
        text = printed(value)
        if text is None:
            reading.bad(f"a value of type {type(value).__name__} cannot be a cell", row=row, field=name)
        texts.append(text)
    reading.warn(f"values of several types ({', '.join(sorted(kinds))}) are read as their texts", field=name)
    return pa.array(texts, pa.string())


#: Names of the pieces of a table, and of the folders that may contain them.
_PIECE: Final = re.compile(
    r"(?:part|data|chunk|file|batch)?[-_.]?[0-9a-f]{1,8}(?:[-_.][-_.0-9a-z]*)?\.(?:parquet|pq)", re.ASCII | re.IGNORECASE
)
_VALUE: Final = re.compile(r"[^=]+=.*", re.DOTALL)
#: How many files are examined to find out whether a folder is one table.
_MAX_FILES: Final = 10_000


def is_pieces(folder: Path) -> bool:
    """Whether a folder has the pieces of one table in Parquet, and nothing else."""
    if not folder.is_dir():
        return False
    result = False
    for count, path in enumerate(folder.rglob("*")):
        if count > _MAX_FILES or any(part[0] in "._" for part in path.relative_to(folder).parts):
            continue
        if path.is_dir():
            if not _VALUE.fullmatch(path.name):
                return False
        elif not _PIECE.fullmatch(path.name):
            return False
        else:
            result = True
    return result


def read_dataframe(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a table of pandas, polars or Arrow, or of a list of dictionaries."""
    yield from (read_dicts if is_records(source) else read_frame)(source, reading, options)


def sniff_parquet(path: Path, head: bytes) -> int:
    """Score a Parquet file, or a folder with pieces of one: 0 or 100."""
    if path.is_dir():
        return 100 if is_pieces(path) else 0
    return 100 if head[:4] == b"PAR1" else 0


PARQUET: Final = Format(
    "parquet",
    "a table in a Parquet file",
    with_key_warnings(read_parquet),
    TABLE_OPTIONS,
    sniff_parquet,
    sign=re.compile(b"PAR1").match,
)
DATAFRAME: Final = Format(
    "dataframe",
    "a table of pandas, polars or Arrow, or a list of dictionaries",
    with_key_warnings(read_dataframe),
    TABLE_OPTIONS,
    claims=lambda source: is_frame(source) or is_records(source),
    sign=NO_FILE,
)
