"""Columnar tables: Parquet files, Arrow tables, and the frames of pandas and polars through Arrow.

Columns of texts are typed as in every table (`cells`). Columns that have a type keep it: numbers
are exact, NaN and null are missing, booleans are the texts "true" and "false", days and moments are
times (parts of a second are cut off, with a warning; a moment with a time zone is in UTC), times of
day and durations are seconds. A column of numbers is one of years, and a column of moments that are
all midnight one of days, by the same rules as in text. A struct is one column a field ("a.b"); a
list gives one statement for each of its elements.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import Item
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import MOST_GROWTH, file_errors, path_of, regular
from condgraph.loaders.table.leaf import Leaf
from condgraph.loaders.table.nested import Part, flattened, leaves_of, only_rows, part_of, readable
from condgraph.loaders.table.options import TableOptions
from condgraph.loaders.table.rows import Table, column_names

#: Rows of one batch.
ROWS: Final = 50_000
#: Bytes that the rows of a file may have, whatever its size.
_MOST_BYTES: Final = 1 << 26


class Field(Protocol):
    """A column of an Arrow schema, as far as it is looked at."""

    name: str
    type: Any


#: Gives the record batches of a source again, of all columns or of some.
OpenBatches: TypeAlias = Callable[[Sequence[str] | None], Iterator[Any]]


@contextmanager
def arrow_errors(location: str) -> Iterator[None]:
    """Turn what Arrow raises into a `LoadError`."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise LoadError(f"Arrow cannot read this: {error}", file=location) from None


def read_batches(
    schema: Collection[Field], open_batches: OpenBatches, total: int, reading: Reading, options: Options
) -> Iterator[Item]:
    """A table in record batches as facts: `open_batches` gives them from the start, of the named
    columns or of all.
    """
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
            reading.bad(f"a column of type {kind} has no place among numbers, times and texts", field=table.names[at])
    looked = [at for at, column in enumerate(columns) if column is not None and column.needs_look()]
    if looked:
        names = list(dict.fromkeys(leaves[at][0] for at in looked))
        done = 0
        for batch in open_batches(names):
            places = range(len(leaves)) if batch.num_columns == len(schema) else _places(leaves, names)
            arrays = dict(zip(places, _arrays(batch), strict=True))
            for at in looked:
                if (column := columns[at]) is not None:
                    column.look(part_of(arrays[at]))
            done += batch.num_rows
            reading.advance(0, done / max(1, total) / 2)
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
        entities, kept = table.rows(numbers, keys, _cells(table.name_column, columns, parts, numbers))
        yield from entities
        ids, rows = [entity.id for entity in entities], [entity.row for entity in entities]
        for column, part in zip(columns, parts, strict=True):
            if column is None or part is None:
                continue
            yield from column.batch(part if kept is None else only_rows(part, kept, batch.num_rows), ids, rows)
        reading.advance(batch.num_rows, 0.5 + number / max(1, total) / 2)
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
    """A Parquet file as facts; it is read in pieces of `ROWS` rows. Raises `LoadError`."""
    import pyarrow.parquet as pq

    path = path_of(source)
    if path.is_dir():
        yield from _read_pieces(path, reading, options)
        return
    with file_errors(path):
        regular(path).open("rb").close()
    size = path.stat().st_size
    with arrow_errors(str(path)), pq.ParquetFile(path) as file:

        def batches(names: Sequence[str] | None) -> Iterator[Any]:
            return _bounded(file.iter_batches(batch_size=ROWS, columns=None if names is None else list(names)), size, path)

        yield from read_batches(file.schema_arrow, batches, file.metadata.num_rows, reading, options)


def _bounded(batches: Iterable[Any], size: int, path: Path) -> Iterator[Any]:
    """The batches of a file of so many bytes. Raises `LoadError` where they are more than any data that is kept in
    so few: a few bytes may say a row a thousand million times.
    """
    left = max(_MOST_BYTES, MOST_GROWTH * size)
    for batch in batches:
        left -= batch.nbytes
        if left < 0:
            raise LoadError(
                f"the rows take more than {MOST_GROWTH} times the size of the file, and more than {_MOST_BYTES >> 20} MiB",
                file=str(path),
            )
        yield batch


def _read_pieces(path: Path, reading: Reading, options: Options) -> Iterator[Item]:
    """A folder with the pieces of one table, in the order of their names; names of folders
    (`year=2020`) are columns.
    """
    import pyarrow.dataset as ds

    with arrow_errors(str(path)):
        pieces = ds.dataset(str(path), format="parquet", partitioning="hive")
        size = sum(Path(one).stat().st_size for one in pieces.files)

        def batches(names: Sequence[str] | None) -> Iterator[Any]:
            return _bounded(pieces.to_batches(columns=None if names is None else list(names), batch_size=ROWS), size, path)

        yield from read_batches(pieces.schema, batches, pieces.count_rows(), reading, options)


def is_frame(source: Any) -> bool:
    """Whether an object is a table of Arrow, pandas or polars, or another that gives itself as
    Arrow does.
    """
    top = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    return (top in ("pandas", "polars", "pyarrow") and name in _FRAMES) or (
        hasattr(source, "__arrow_c_stream__") and not isinstance(source, (str, os.PathLike))
    )


_FRAMES: Final = frozenset(("DataFrame", "LazyFrame", "Table", "RecordBatch", "RecordBatchReader"))


def read_frame(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A table of pandas, polars or Arrow as facts. Raises `FormatError` for anything else."""
    import pyarrow as pa

    location = reading.source.location
    with arrow_errors(location):
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
    """A pandas frame as an Arrow table; an index that is more than positions becomes columns."""
    import pandas as pd
    import pyarrow as pa

    if not isinstance(frame.index, pd.RangeIndex):
        names = [f"index {at}" if name is None else name for at, name in enumerate(frame.index.names, 1)]
        names = ["index"] if frame.index.names == [None] else names
        index = frame.index.to_frame(index=False, name=names if frame.index.nlevels > 1 else names[0])
        if list(frame.index.names) == [None] and pd.api.types.is_integer_dtype(frame.index.dtype):
            # What selecting or sorting leaves behind: positions in another frame.
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
            # Values of several types in one column, which only Python objects hold.
            array = _mixed(column, names[-1], reading)
        arrays.append(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    return pa.Table.from_arrays(arrays, names=names)


def _mixed(column: Any, name: str, reading: Reading) -> Any:
    """A column of Python objects of several types, as their printed texts, which are typed as cells
    are.
    """
    import pandas as pd
    import pyarrow as pa

    from condgraph.loaders.table.objects import printed

    texts: list[str | None] = []
    kinds: dict[str, int] = {}
    for row, value in enumerate(column, 1):
        kinds[type(value).__name__] = row
        if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
            texts.append(None)
            continue
        text = printed(value)
        if text is None:
            reading.bad(f"a value of type {type(value).__name__} has no place in a cell", row=row, field=name)
        texts.append(text)
    reading.warn(f"values of several types ({', '.join(sorted(kinds))}) are read as their texts", field=name)
    return pa.array(texts, pa.string())
