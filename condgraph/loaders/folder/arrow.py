"""Parquet as one of several tables: a file, or a folder with the pieces of a table (`part-0.parquet`,
`year=2020/part-0.parquet`), whose names are columns then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from condgraph.loaders.base import Reading
from condgraph.loaders.folder.texts import cell_text
from condgraph.loaders.table.arrow import ROWS, arrow_errors
from condgraph.loaders.table.nested import flattened, leaves_of
from condgraph.loaders.table.text import Chunk

#: What the pieces of a table are called, and the folders they may lie in.
_PIECE: Final = re.compile(
    r"(?:part|data|chunk|file|batch)?[-_.]?[0-9a-f]{1,8}(?:[-_.][-_.0-9a-z]*)?\.(?:parquet|pq)", re.ASCII | re.IGNORECASE
)
_VALUE: Final = re.compile(r"[^=]+=.*", re.DOTALL)
#: Files that are looked at to find out whether a folder is one table.
_MOST_FILES: Final = 10_000


def is_pieces(folder: Path) -> bool:
    """Whether a folder holds the pieces of one table in Parquet, and nothing else."""
    if not folder.is_dir():
        return False
    found = False
    for count, path in enumerate(folder.rglob("*")):
        if count > _MOST_FILES or any(part[0] in "._" for part in path.relative_to(folder).parts):
            continue
        if path.is_dir():
            if not _VALUE.fullmatch(path.name):
                return False
        elif not _PIECE.fullmatch(path.name):
            return False
        else:
            found = True
    return found


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
