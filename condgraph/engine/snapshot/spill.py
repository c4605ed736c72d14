"""Files for a load in bounded memory: tables that DuckDB sorts and joins, columns, and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, in_order
from condgraph.engine.errors import requiring
from condgraph.engine.snapshot.directory import remove_spill

if TYPE_CHECKING:
    import pyarrow as pa


I32 = np.int32
Part = dict[str, NDArray[Any]]
#: The number of rows that are read from a sorted file at once.
ROWS: Final = 1 << 17
#: The memory of the process before it reads anything, in bytes.
IDLE_MEMORY: Final = 200 << 20


def binary(data: Any, lengths: NDArray[Any]) -> pa.Array:
    """Return concatenated texts as an Arrow array."""
    import pyarrow as pa

    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data) if isinstance(data, np.ndarray) else data)]
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)


class SpilledTable:
    """Rows that are written to a Parquet file, to be sorted."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, 0
        self._writer: Any = None

    def add(self, columns: Mapping[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table(dict(columns))
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self.path, table.schema, use_dictionary=False, write_statistics=False)
        self._writer.write_table(table, row_group_size=ROWS)
        self.rows += table.num_rows

    def close(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()


class SpilledColumn:
    """A column that is written to a file sequentially."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), 0
        self._file = path.open("wb", buffering=1 << 16)

    def add(self, part: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(part, self.dtype).data)
        self.length += len(part)

    def close(self) -> None:
        self._file.close()

    def mapped(self, mode: Any = "r") -> NDArray[Any]:
        """Map the part of the column that is in the file so far; `released` frees its memory."""
        if not self._file.closed:
            self._file.flush()
        if not self.length:
            return np.empty(0, self.dtype)
        return np.memmap(self.path, self.dtype, mode, shape=(self.length,))


_File = TypeVar("_File", "SpilledTable", "SpilledColumn")


class SpilledFiles:
    """The folder of spilled files, and DuckDB on its tables."""

    def __init__(self, folder: Path, memory: int) -> None:
        with requiring("duckdb", "duckdb"):
            import duckdb
            import pyarrow  # noqa: F401
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._open: dict[str, SpilledTable | SpilledColumn] = {}
        self._database = duckdb.connect(
            config={"memory_limit": f"{(memory - IDLE_MEMORY) // 2 >> 20}MiB", "temp_directory": str(folder), "threads": 2}
        )
        self._sorted = 0
        self._numbers = count()

    def fresh(self, name: str) -> str:
        """Return an unused file name."""
        return f"{name}-{next(self._numbers)}"

    def close(self) -> None:
        """Remove all files."""
        self._database.close()
        for file in self._open.values():
            # The files are removed, so errors of a full disk do not matter.
            with suppress(OSError):
                file.close()
        remove_spill(self.folder.parent)

    def table(self, name: str) -> SpilledTable:
        """Return a new table, replacing one of the same name."""
        return self._opened(name, SpilledTable(self.folder / f"{name}.parquet"))

    def column(self, name: str, dtype: Any = I32) -> SpilledColumn:
        """Return a new column, replacing one of the same name."""
        return self._opened(f"{name}.column", SpilledColumn(self.folder / f"{name}.column", dtype))

    def _opened(self, name: str, file: _File) -> _File:
        # A file of the same name is replaced.
        if name in self._open:
            self._open[name].close()
        self._open[name] = file
        return file

    def save(self, run: int, parts: Part) -> None:
        with self.run_path(run).open("wb") as file:
            np.savez(file, **parts)  # type: ignore[arg-type]

    def run(self, run: int) -> Any:
        return np.load(self.run_path(run))

    def run_path(self, run: int) -> Path:
        return self.folder / f"run-{run}.npz"

    def rows(self, query: str, *tables: SpilledTable) -> Iterator[Any]:
        """Yield the record batches of a query, in which `$0`, `$1`, ... are the tables."""
        from pyarrow import parquet

        for number, table in enumerate(tables):
            table.close()
            query = query.replace(f"${number}", f"read_parquet('{str(table.path).replace(chr(39), chr(39) * 2)}')")
        self._sorted += 1
        path = self.folder / f"sorted-{self._sorted}.parquet"
        quoted = str(path).replace("'", "''")
        self._database.execute(f"COPY ({query}) TO '{quoted}' (FORMAT parquet, ROW_GROUP_SIZE {ROWS})")
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS):
                if batch.num_rows:
                    yield batch
        path.unlink()

    def parts(self, query: str, *tables: SpilledTable) -> Iterator[Part]:
        """Yield the same as columns of numbers; nothing if a table is empty."""
        if not all(table.rows for table in tables):
            return
        for batch in self.rows(query, *tables):
            yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}


# -- sorted parts ------------------------------------------------------------------------------------
# Sorted tables in parts: which rows are new, where groups begin, and how often each row occurs.


#: The number of partial counts that are collected before they are summed.
_TOGETHER: Final = 64


class NewRows:
    """Tells which rows of a sorted table, given in parts, differ from the row before."""

    def __init__(self) -> None:
        self._last: list[Any] | None = None

    def __call__(self, *columns: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows of the next part differ from the row before."""
        is_new = changed(*columns)
        if self._last is not None:
            is_new[0] = any(column[0] != last for column, last in zip(columns, self._last, strict=True))
        self._last = [column[-1] for column in columns]
        return is_new


class Groups:
    """Runs of rows with equal marks in a table given in parts: the marks, and the start of each."""

    def __init__(self, *names: str) -> None:
        self._names, self._fresh, self._length = names, NewRows(), 0
        self._found: dict[str, list[NDArray[Any]]] = {name: [] for name in (*names, "start")}

    def add(self, part: Part) -> None:
        """Add the next part."""
        marks = [part[name] for name in self._names]
        starts = np.flatnonzero(self._fresh(*marks))
        for name, mark in zip(self._names, marks, strict=True):
            self._found[name].append(mark[starts])
        self._found["start"].append(starts + self._length)
        self._length += len(marks[0])

    def columns(self, prefix: str, kind_of: Mapping[str, Any], called: Mapping[str, str]) -> Part:
        """Return the marks of all groups and their starts, with the end of the last, by names of columns."""
        self._found["start"].append(np.array([self._length]))
        types = {**dict.fromkeys(self._names, I32), **kind_of, "start": np.int64}
        return {f"{prefix}.{called.get(name, name)}": joined_parts(parts, types[name]) for name, parts in self._found.items()}


def joined_parts(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """Concatenate parts."""
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)


class Offsets:
    """Writes the begin of each number in a sorted column given in parts."""

    def __init__(self, column: SpilledColumn) -> None:
        self._column, self._next, self._seen = column, 0, 0

    def add(self, numbers: NDArray[Any]) -> None:
        """Add the next part."""
        last = int(numbers[-1])
        for low in range(self._next, last + 1, ROWS):
            high = min(low + ROWS, last + 1)
            self._column.add(self._seen + np.searchsorted(numbers, np.arange(low, high)))
        self._next, self._seen = max(self._next, last + 1), self._seen + len(numbers)

    def end(self, size: int) -> None:
        """Write the offsets for the remaining ones of `size` numbers, and the end."""
        for low in range(self._next, size + 1, ROWS):
            self._column.add(np.full(min(low + ROWS, size + 1) - low, self._seen))


def whole(parts: Iterable[Part], *keys: str) -> Iterator[Part]:
    """Yield the same rows in parts that end at the end of a group with equal keys."""
    pending: Part | None = None
    for part in parts:
        if pending is not None:
            part = {name: np.concatenate([pending[name], column]) for name, column in part.items()}
        starts = np.flatnonzero(changed(*(part[key] for key in keys)))
        cut = int(starts[-1])
        if cut:
            yield {name: column[:cut] for name, column in part.items()}
        pending = {name: column[cut:] for name, column in part.items()}
    if pending is not None:
        yield pending


class Counts:
    """Counts the occurrences of rows."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._found: list[tuple[list[NDArray[Any]], NDArray[Any]]] = []

    def add(self, columns: Sequence[NDArray[Any]], counts: NDArray[Any] | None = None) -> None:
        """Count rows, once each or `counts` times."""
        columns = [np.asarray(column, np.int64) for column in columns]
        order = in_order(columns)
        columns = [column[order] for column in columns]
        starts = np.flatnonzero(changed(*columns))
        weights = np.ones(len(order), np.int64) if counts is None else counts[order]
        self._found.append(([column[starts] for column in columns], np.add.reduceat(weights, starts) if len(starts) else weights))
        if len(self._found) > _TOGETHER:
            self.found()

    def found(self) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
        """Return the distinct rows in order, and their counts."""
        partial_counts, self._found = self._found, []
        columns = [joined_parts([partial[0][index] for partial in partial_counts], np.int64) for index in range(self._width)]
        self.add(columns, joined_parts([partial[1] for partial in partial_counts], np.int64))
        return self._found[0]
