"""Loader of Arrow files (Feather, version 2): a table in record batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from condgraph.engine.errors import pyarrow_or_error
from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.table.arrow import ROWS, arrow_errors, bounded, read_batches, regular_path
from condgraph.loaders.table.joins import with_key_warnings
from condgraph.loaders.table.rows import TABLE_OPTIONS


def read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of an Arrow file, in pieces of `ROWS` rows; raises `LoadError` for a damaged one.

    Batches are memory as it was written, so they are validated before they are read.
    """
    path = regular_path(source)
    size = path.stat().st_size
    with arrow_errors(str(path)), pyarrow_or_error().OSFile(str(path)) as stream:
        import pyarrow

        file = pyarrow.ipc.open_file(stream)

        def validated(at: int) -> Any:
            batch = file.get_batch(at)
            batch.validate(full=True)
            return batch

        def batches(names: Sequence[str] | None) -> Iterator[Any]:
            for batch in bounded(map(validated, range(file.num_record_batches)), size, path):
                chosen = batch if names is None else batch.select(list(names))
                yield from (chosen.slice(start, ROWS) for start in range(0, chosen.num_rows, ROWS))

        yield from read_batches(file.schema, batches, None, reading, options)


FORMAT: Final = Format(
    "feather",
    "a table in a file of Arrow (Feather, version 2)",
    with_key_warnings(read),
    TABLE_OPTIONS,
    lambda path, head: 100 if head[:6] == b"ARROW1" else 0,
    sign=re.compile(b"ARROW1").match,
)
