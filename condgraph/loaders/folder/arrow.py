"""Parquet as one of several tables: a file, or a folder with the pieces of a table (`part-0.parquet`,
`year=2020/part-0.parquet`), whose names are columns then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from condgraph.loaders.base import Reading
from condgraph.loaders.folder.texts import cell_text
from condgraph.loaders.table.arrow import ROWS, arrow_errors, flattened, leaves_of
from condgraph.loaders.table.text import Chunk


def dataset_of(path: Path) -> Any:
    """The Parquet at a place as an Arrow data set, columns of folders' names included."""
    import pyarrow.dataset as ds

    return ds.dataset(str(path), format="parquet", partitioning="hive" if path.is_dir() else None)


class ArrowCells:
    """A table in Parquet as rows of texts."""

    def __init__(self, path: Path, reading: Reading | None) -> None:
        self.path = path
        with arrow_errors(str(path)):
            self.dataset = dataset_of(path)
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
            for batch in self.dataset.to_batches(batch_size=ROWS):
                if batch.num_rows:
                    columns = [array.to_pylist() for one in batch.columns for array in flattened(one)]
                    numbers = range(first, first + batch.num_rows)
                    first += batch.num_rows
                    yield Chunk(numbers, [list(map(cell_text, column)) for column in columns]), first / total
