"""Loaders of tables: CSV, TSV, JSON, Parquet, and the tables of pandas, polars and Arrow.

Each row is an entity of kind row, `{source}/{n}` with n from 1, named "{source} row {n}" (options
`key` and `name_column` say otherwise). Each column is a predicate named by its header. Each cell
that is not missing is one statement, with the cell's text beside its value where that prints
differently. Cells are typed over their whole column, by the rules in `cells`.

A source is read twice, once to type its columns, unless it is small; memory is bounded whatever its
size, except that `key` remembers the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.files import ENCODING_HELP, path_of
from condgraph.loaders.table.arrow import is_frame, read_frame, read_parquet
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.json_files import read_json, read_jsonl
from condgraph.loaders.table.options import TABLE_OPTIONS, TableOptions
from condgraph.loaders.table.records import is_records, read_dicts
from condgraph.loaders.table.rows import Table, column_names
from condgraph.loaders.table.sniff import sniff_csv, sniff_json, sniff_jsonl, sniff_parquet, sniff_tsv
from condgraph.loaders.table.targets import asking
from condgraph.loaders.table.text import Chunk, TextTable
from condgraph.loaders.table.totals import warn_of_totals

_TEXT_OPTIONS: Final[Mapping[str, str]] = {
    **TABLE_OPTIONS,
    "header": "whether the first record names the columns (default: true)",
    "skip": "lines above the header, which are left out (default: found where they are plain)",
    "delimiter": "the character between fields (default: found out)",
    "dialect": "the way of quoting: excel, backslash or plain (default: found out)",
    "comment": "what lines of comment begin with",
    "encoding": ENCODING_HELP,
    "longest_cell": "characters that a cell may have (default: 131072)",
}
#: A table of fewer cells is read once.
_CELLS_IN_MEMORY: Final = 1_000_000


def read_csv(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A file of comma-separated values as facts."""
    yield from _read_text(source, reading, options, ",;\t|")


def read_tsv(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A file of tab-separated values as facts."""
    yield from _read_text(source, reading, options, "\t")


def _read_text(source: Any, reading: Reading, options: Options, delimiters: str) -> Iterator[Item]:
    path = path_of(source)
    checked = TableOptions.of(options)
    text = TextTable.open(path, reading, options, delimiters)
    table = Table(reading, checked, column_names(text.headers, reading) if text.header else text.headers)
    profiles = [table.profile() for _ in table.names]
    memory: list[tuple[Chunk, float]] | None = []
    cells, last = 0, None
    for chunk, fraction in text.chunks(reading, table.names):
        for profile, column in zip(profiles, chunk.columns, strict=True):
            profile.add(column)
        cells += len(chunk.numbers) * len(table.names)
        last = chunk
        if memory is not None:
            memory.append((chunk, 0.5 + fraction / 2))
            if cells > _CELLS_IN_MEMORY:
                memory = None
        reading.advance(0, fraction / 2)
    table.look_for_commas(dict(enumerate(profiles)), text.layout.delimiter)
    if last is not None:
        warn_of_totals(table.names, last, reading)
    types = [table.decide(at, profile) for at, profile in enumerate(profiles)]
    readers = [chosen.reader() for chosen in types]
    again = memory if memory is not None else ((chunk, 0.5 + part / 2) for chunk, part in text.chunks(None, table.names))
    for chunk, fraction in again:
        columns = chunk.columns
        entities, kept = table.rows_at_once(
            chunk.numbers,
            None if table.key is None else columns[table.key],
            None if table.name_column is None else columns[table.name_column],
        )
        if len(entities):
            yield entities
            places = np.asarray(entities.rows, np.int32)
            for at, (column, chosen, read) in enumerate(zip(columns, types, readers, strict=True)):
                if kept is None and isinstance(column, Fields):
                    whole = table.whole_batch(at, chosen, entities, places, column)
                    if whole is not None:
                        if whole.batch is not None:
                            yield whole.batch
                        continue
                taken = column if kept is None else [column[one] for one in kept]
                batch = table.text_batch(at, chosen, read, entities.ids, entities.rows, taken)
                if batch is not None:
                    yield batch
        reading.advance(len(chunk.numbers), fraction)
    table.finish()


def read_dataframe(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A table of pandas, polars or Arrow, or a list of dictionaries, as facts."""
    yield from (read_dicts if is_records(source) else read_frame)(source, reading, options)


CSV: Final = Format("csv", "a table of comma-separated values", asking(read_csv), _TEXT_OPTIONS, sniff_csv)
TSV: Final = Format("tsv", "a table of tab-separated values", asking(read_tsv), _TEXT_OPTIONS, sniff_tsv)
JSONL: Final = Format(
    "jsonl-table",
    "a table as JSON lines: one object, one row, a line",
    asking(read_jsonl),
    {**TABLE_OPTIONS, "encoding": ENCODING_HELP},
    sniff_jsonl,
)
JSON: Final = Format(
    "json",
    "a JSON document: a list of objects, each a row, or one object; lists of objects inside are further tables",
    asking(read_json),
    {**TABLE_OPTIONS, "encoding": ENCODING_HELP},
    sniff_json,
)
PARQUET: Final = Format("parquet", "a table in a Parquet file", asking(read_parquet), TABLE_OPTIONS, sniff_parquet)
DATAFRAME: Final = Format(
    "dataframe",
    "a table of pandas, polars or Arrow, or a list of dictionaries",
    asking(read_dataframe),
    TABLE_OPTIONS,
    claims=lambda source: is_frame(source) or is_records(source),
)
FORMATS: Final = (CSV, TSV, JSONL, JSON, PARQUET, DATAFRAME)
