"""A folder of table files (CSV, TSV, Parquet) with keys between them, or with a declaration file.

`items` says what becomes what, `keys` how keys are found, `declared` how they are said. Each table
is a source of its own, `{folder}/{table}`, so that rows are rows of its file. A folder inside such
a folder is a table as well, if it holds the pieces of one in Parquet (`arrow`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.documents import is_document
from condgraph.loaders.files import ENCODING_HELP, head_text, path_of, read_head, stem_of, suffix_of
from condgraph.loaders.folder.arrow import ArrowCells, is_pieces
from condgraph.loaders.folder.declared import FILE, JOIN_OPTIONS
from condgraph.loaders.folder.items import by_name, declared_of, read_tables
from condgraph.loaders.folder.spelling import key_names, plain
from condgraph.loaders.folder.tab import Cells, Tab
from condgraph.loaders.table.dialect import sample_rows
from condgraph.loaders.table.text import TextTable

#: What the text files of such a folder end in, before an optional `.gz`.
SUFFIXES: Final = (".csv", ".tsv")
PARQUET: Final = (".parquet", ".pq")

_DELIMITERS: Final = {".csv": ",;\t|", ".tsv": "\t"}


def files_of(folder: Path) -> list[Path]:
    """The tables of a folder, by name: files, and folders with pieces of a table in Parquet."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name[0] != "." and ((path.is_file() and suffix_of(path) in SUFFIXES + PARQUET) or is_pieces(path))
    )


def _cells(path: Path, options: Options, reading: Reading) -> Cells:
    if path.is_dir() or suffix_of(path) in PARQUET:
        return ArrowCells(path, reading)
    return TextTable.open(path, reading, options, _DELIMITERS[suffix_of(path)])


def tabs_of(folder: Path, reading: Reading, options: Options) -> dict[str, Tab]:
    """The tables of a folder, opened."""
    if not folder.is_dir():
        raise FormatError("this is not a folder", file=str(folder))
    paths = files_of(folder)
    if not paths:
        raise FormatError("the folder has no CSV or Parquet files", file=str(folder))
    stems: dict[str, Path] = {}
    for path in paths:
        if stems.setdefault(stem_of(path), path) != path:
            raise LoadError(f"two files of the folder are called {stem_of(path)!r}", file=str(path))
    return by_name(
        [
            Tab(stem, str(path), "csv" if suffix_of(path) in SUFFIXES else "parquet", reading, partial(_cells, path, options))
            for stem, path in stems.items()
        ]
    )


def with_declaration(folder: Path, options: Options) -> Options:
    """Options with the declaration file of a folder, if it has one and they name none."""
    file = folder / FILE
    return {**options, "declaration": file} if options.get("declaration") is None and file.is_file() else options


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    folder = path_of(source)
    tabs = tabs_of(folder, reading, options)
    yield from read_tables(tabs, declared_of(tabs, with_declaration(folder, options)), reading, options)


def _sniff(path: Path, head: bytes) -> int:
    """A folder of several tables and nothing else that is data, where one has a column called like
    a key of another; or with a declaration file.
    """
    if not path.is_dir():
        return 0
    files = files_of(path)
    if files and (path / FILE).is_file():
        return 95
    others = [one for one in path.iterdir() if one not in files and (one.is_dir() or not is_document(one))]
    if len(files) < 2 or others:
        return 0
    headers: dict[str, list[str]] = {}
    for file in files:
        if suffix_of(file) in SUFFIXES and file.is_file():
            start = read_head(file)
            rows = sample_rows(start, _DELIMITERS[suffix_of(file)])[1] if head_text(start) is not None else []
            if rows:
                headers[stem_of(file)] = [plain(name) for name in rows[0]]
        else:
            headers[stem_of(file)] = [plain(name) for name in ArrowCells(file, None).headers]
    for table, columns in headers.items():
        own = key_names(table)
        keys = {name for name in columns if name == "id" or name in own}
        others_have = {name for other, names in headers.items() if other != table for name in names}
        if keys and others_have & (own | keys - {"id"}):
            return 90
    return 0


FORMAT: Final = Format(
    name="folder",
    about="a folder of CSV or Parquet files with keys between them: rows are entities, references are relations",
    read=_read,
    options={**JOIN_OPTIONS, "encoding": ENCODING_HELP},
    sniff=_sniff,
)
