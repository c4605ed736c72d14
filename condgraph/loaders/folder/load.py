"""Loader of folders of table files (CSV, TSV, Parquet) with keys, with or without a declaration (`declared`).

`items` converts rows, `keys` finds keys, `declared` reads declarations. Each table is a separate source,
`{folder}/{table}`, so that row numbers are those of its file. A subfolder is a table, too, if it holds
the pieces of one in Parquet (`arrow`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import CondgraphError, FormatError, LoadError
from condgraph.engine.facts import Item, Source
from condgraph.loaders.base import JSON_SIGN, Format, Options, Reading
from condgraph.loaders.files import ENCODING_HELP, head_text, is_document, path_of, read_head, stem_of, suffix_of
from condgraph.loaders.folder.declared import (
    FILE,
    JOIN_OPTIONS,
    PACKAGE,
    Declared,
    DescribedTable,
    described,
    gtfs_declared,
    gtfs_files,
    gtfs_groups,
    is_description,
)
from condgraph.loaders.folder.guess import MAX_TABLES, linked
from condgraph.loaders.folder.items import by_name, declared_of, read_tables
from condgraph.loaders.folder.tab import ArrowCells, Cells, Tab
from condgraph.loaders.spreadsheet import SheetCells
from condgraph.loaders.table.arrow import is_pieces
from condgraph.loaders.table.joins import key_names, plain
from condgraph.loaders.table.text import TextTable, sample_rows

#: Extensions of the text files, before an optional `.gz`.
SUFFIXES: Final = (".csv", ".tsv")
PARQUET: Final = (".parquet", ".pq")

#: The most bytes of files that are searched for joins before a load.
_MAX_BYTES: Final = 256 << 20


@dataclass(frozen=True)
class TableFiles:
    """Several files of tables that are one source, and its name."""

    paths: tuple[Path, ...]
    called: str


_DELIMITERS: Final = {".csv": ",;\t|", ".tsv": "\t"}


def files_of(folder: Path, further: Sequence[str] = ()) -> list[Path]:
    """Return the tables of a folder by name: files, and folders with pieces of a table in Parquet."""
    suffixes = (*SUFFIXES, *PARQUET, *further)
    return sorted(
        path
        for path in folder.iterdir()
        if path.name[0] != "." and ((path.is_file() and suffix_of(path) in suffixes) or is_pieces(path))
    )


def _cells(path: Path, options: Options, names: Sequence[str], reading: Reading) -> Cells:
    if path.is_dir() or suffix_of(path) in PARQUET:
        return ArrowCells(path, reading)
    table = TextTable.open(path, reading, options, _DELIMITERS.get(suffix_of(path), ",;\t|"))
    if not table.header and len(names) == len(table.headers):
        table.headers = list(names)
    return table


def opened(place: Path | TableFiles, reading: Reading, options: Options) -> tuple[dict[str, Tab], Declared]:
    """Open the tables of a folder, of some files, or of a description; returns them with their declarations."""
    if isinstance(place, TableFiles):
        file_tables = [DescribedTable(stem_of(path), path) for path in place.paths]
        return by_name([tab for table in file_tables for tab in _tab(table, place.paths[0], reading, options)]), Declared()
    if not place.is_dir() and not (place.is_file() and is_description(place, read_head(place))):
        raise FormatError("this is neither a folder nor a description of one", file=str(place))
    folder = place if place.is_dir() else place.parent
    description = described(place)
    feed = gtfs_files(place) if description is None else {}
    tables = [] if description is None else [*description.tables]
    tables += [DescribedTable(name, path) for name, path in feed.items()]
    if place.is_dir():
        tables += _further(place, tables, description is not None or bool(feed))
    if not tables:
        raise FormatError("the folder has no CSV or Parquet files", file=str(place))
    names: dict[str, DescribedTable] = {}
    for table in tables:
        if names.setdefault(table.name, table) is not table:
            raise LoadError(f"two files of the folder are called {table.name!r}", file=str(table.path or place))
    if description is not None or feed:
        used = {table.path for table in tables} | (set() if description is None else {description.file, *description.parts})
        skipped = [file.name for file in sorted(folder.iterdir()) if file.is_file() and file not in used and not is_document(file)]
        skipped = (
            []
            if description is not None and description.only
            else [name for name in skipped if name != FILE and not _is_metadata(folder / name)]
        )
        if skipped:
            reading.warn(f"files that are not tables of the folder are left out: {', '.join(skipped[:10])}", file=str(folder))
    tabs = by_name([tab for table in tables for tab in _tab(table, place, reading, options)])
    for name, cells in gtfs_groups(feed, lambda path: TextTable.open(path, _quiet(reading), options, ",;\t|")).items():
        if name not in tabs:
            tabs[name] = Tab(name, str(place), "csv", reading, partial(_given, cells))
    headers = {name: tab.names for name, tab in tabs.items()}
    declared = Declared() if description is None else description.declared(headers)
    if description is not None:
        description.warn(reading)
    return tabs, gtfs_declared(headers) if feed else declared


def _given(cells: Cells, reading: Reading) -> Cells:
    return cells


def _quiet(reading: Reading) -> Reading:
    """Return a reading that discards problems, since another one reports them."""
    return Reading(reading.source, "skip")


def _is_metadata(path: Path) -> bool:
    return suffix_of(path) in (".json", ".jsonld") and path.is_file() and is_description(path, read_head(path))


def _further(folder: Path, tables: Sequence[DescribedTable], described: bool) -> list[DescribedTable]:
    """Return the tables of a folder that its description does not name."""
    described_paths, names = {table.path for table in tables}, {table.name for table in tables}
    paths = [
        path
        for path in files_of(folder, further=(".txt",) if described and gtfs_files(folder) else ())
        if path not in described_paths
    ]
    if not described:
        return [DescribedTable(stem_of(path), path) for path in paths]
    return [DescribedTable(path.name if stem_of(path) in names else stem_of(path), path) for path in paths if not is_document(path)]


def _tab(table: DescribedTable, place: Path, reading: Reading, options: Options) -> Iterator[Tab]:
    """Yield an opened table, or nothing if its file is missing or empty."""
    if table.path is None:
        yield Tab(table.name, str(place), "csv", reading, partial(_listed, table))
        return
    if not table.path.exists():
        reading.bad(f"the table {table.name!r} should be {table.path.name}, which does not exist", file=str(place))
        return
    text = suffix_of(table.path) not in PARQUET and table.path.is_file()
    if text and not read_head(table.path).strip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n,;"):
        reading.warn("the table is empty and is left out", file=str(table.path))
        return
    opens = partial(_cells, table.path, {**options, **table.options}, table.names)
    yield Tab(table.name, str(table.path), "csv" if text else "parquet", reading, opens)


def _listed(table: DescribedTable, reading: Reading) -> Cells:
    """Return the rows inside a description, which are objects or lists."""
    rows = [row for row in table.rows if isinstance(row, (dict, list))]
    keys = list(dict.fromkeys(key for row in rows if isinstance(row, dict) for key in row)) or table.names
    lists = [[row.get(key) for key in keys] if isinstance(row, dict) else row for row in rows]
    if keys != table.names and lists and not any(isinstance(row, dict) for row in rows):
        keys = [str(item) for item in lists.pop(0)]
    elif lists and all(isinstance(row, list) for row in rows) and list(map(str, lists[0])) == keys:
        lists.pop(0)
    return SheetCells([keys, *lists], [], reading)


def with_declaration(place: Path, options: Options) -> Options:
    """Return options with the declaration file of a folder, if it has one and the options name none."""
    file = (place if place.is_dir() else place.parent) / FILE
    return {**options, "declaration": file} if options.get("declaration") is None and file.is_file() else options


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    place = source if isinstance(source, TableFiles) else path_of(source)
    tabs, declared = opened(place, reading, options)
    load_options = with_declaration(place, options) if isinstance(place, Path) else options
    yield from read_tables(tabs, declared_of(tabs, load_options, declared), reading, options)


def referring(paths: Sequence[Path], options: Options) -> tuple[list[Path], list[tuple[Path, str, str]]]:
    """Return the files whose tables certainly refer to each other, and questions about columns of others.

    A question is (file, column, text). If the files are too large to examine, the only question says so.
    """
    if len({stem_of(path) for path in paths}) < len(paths):
        return [], []
    if len(paths) > MAX_TABLES or sum(path.stat().st_size for path in paths) > _MAX_BYTES:
        message = f"{len(paths):,} tables are too many to search for references; join= declares them"
        return [], [(paths[0], "", message)]
    try:
        tabs, _ = opened(TableFiles(tuple(paths), ""), Reading(Source("", ""), "skip"), options)
        linked_tables, open_questions = linked(tabs, options)
    except CondgraphError:
        # The loader of the file reports the error.
        return [], []
    by_stem = {stem_of(path): path for path in paths}
    questions = [(by_stem[table], tabs[table].names[at], message) for table, at, message in open_questions]
    return [path for path in paths if stem_of(path) in linked_tables], questions


def _sniff(path: Path, head: bytes) -> int:
    """Score a folder of tables, or a description of tables.

    A folder counts if it has several tables and no other data, and a column named like a key of another
    table; or a declaration file; or a description of its tables.
    """
    if not path.is_dir():
        return 99 if is_description(path, head) else 0
    files = files_of(path)
    if (files and (path / FILE).is_file()) or (path / PACKAGE).is_file() or gtfs_files(path):
        return 95
    if any(map(_is_metadata, path.iterdir())):
        return 95
    other_files = [item for item in path.iterdir() if item not in files and (item.is_dir() or not is_document(item))]
    if len(files) < 2 or other_files:
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
        own_key_names = key_names(table)
        keys = {name for name in columns if name == "id" or name in own_key_names}
        others_have = {name for other, names in headers.items() if other != table for name in names}
        if keys and others_have & (own_key_names | keys - {"id"}):
            return 90
    return 0


FORMAT: Final = Format(
    name="folder",
    about="a folder of CSV or Parquet files with keys between them: rows are entities, references are relations",
    read=_read,
    options={**JOIN_OPTIONS, "encoding": ENCODING_HELP},
    sniff=_sniff,
    sign=JSON_SIGN,
    suffixes=(".json",),
)
