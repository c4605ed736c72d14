"""A folder of table files (CSV, TSV, Parquet) with keys between them, with a declaration file, or one
that describes its tables itself (`declared`).

`items` says what becomes what, `keys` how keys are found, `declared` how they are said. Each table
is a source of its own, `{folder}/{table}`, so that rows are rows of its file. A folder inside such
a folder is a table as well, if it holds the pieces of one in Parquet (`arrow`).
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
from condgraph.loaders.folder.guess import MOST_TABLES, linked
from condgraph.loaders.folder.items import by_name, declared_of, read_tables
from condgraph.loaders.folder.tab import ArrowCells, Cells, Tab
from condgraph.loaders.spreadsheet import SheetCells
from condgraph.loaders.table.arrow import is_pieces
from condgraph.loaders.table.joins import key_names, plain
from condgraph.loaders.table.text import TextTable, sample_rows

#: What the text files of such a folder end in, before an optional `.gz`.
SUFFIXES: Final = (".csv", ".tsv")
PARQUET: Final = (".parquet", ".pq")

#: Bytes of files of which joins are looked for before they are loaded.
_MOST_BYTES: Final = 256 << 20


@dataclass(frozen=True)
class TableFiles:
    """Several files of tables that are one source, and what it is called."""

    paths: tuple[Path, ...]
    called: str


_DELIMITERS: Final = {".csv": ",;\t|", ".tsv": "\t"}


def files_of(folder: Path, further: Sequence[str] = ()) -> list[Path]:
    """The tables of a folder, by name: files, and folders with pieces of a table in Parquet."""
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
    """The tables of a folder, of some files, or those that a description of tables names, opened; and
    what the folder says of them itself.
    """
    if isinstance(place, TableFiles):
        listed = [DescribedTable(stem_of(path), path) for path in place.paths]
        return by_name([tab for table in listed for tab in _tab(table, place.paths[0], reading, options)]), Declared()
    if not place.is_dir() and not (place.is_file() and is_description(place, read_head(place))):
        raise FormatError("this is not a folder, and describes none", file=str(place))
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
        left = [file.name for file in sorted(folder.iterdir()) if file.is_file() and file not in used and not is_document(file)]
        left = (
            []
            if description is not None and description.only
            else [name for name in left if name != FILE and not _is_metadata(folder / name)]
        )
        if left:
            reading.warn(f"files that are no tables of the folder are left out: {', '.join(left[:10])}", file=str(folder))
    tabs = by_name([tab for table in tables for tab in _tab(table, place, reading, options)])
    for name, cells in gtfs_groups(feed, lambda path: TextTable.open(path, _quiet(reading), options, ",;\t|")).items():
        if name not in tabs:
            tabs[name] = Tab(name, str(place), "csv", reading, partial(_given, cells))
    headers = {name: tab.names for name, tab in tabs.items()}
    said = Declared() if description is None else description.declared(headers)
    if description is not None:
        description.warn(reading)
    return tabs, gtfs_declared(headers) if feed else said


def _given(cells: Cells, reading: Reading) -> Cells:
    return cells


def _quiet(reading: Reading) -> Reading:
    """A reading whose problems nobody hears, since another one has them."""
    return Reading(reading.source, "skip")


def _is_metadata(path: Path) -> bool:
    return suffix_of(path) in (".json", ".jsonld") and path.is_file() and is_description(path, read_head(path))


def _further(folder: Path, tables: Sequence[DescribedTable], described: bool) -> list[DescribedTable]:
    """The tables of a folder that its description does not name."""
    taken, names = {table.path for table in tables}, {table.name for table in tables}
    paths = [path for path in files_of(folder, further=(".txt",) if described and gtfs_files(folder) else ()) if path not in taken]
    if not described:
        return [DescribedTable(stem_of(path), path) for path in paths]
    return [DescribedTable(path.name if stem_of(path) in names else stem_of(path), path) for path in paths if not is_document(path)]


def _tab(table: DescribedTable, place: Path, reading: Reading, options: Options) -> Iterator[Tab]:
    """A table, opened; none for a file that is missing or empty."""
    if table.path is None:
        yield Tab(table.name, str(place), "csv", reading, partial(_listed, table))
        return
    if not table.path.exists():
        reading.bad(f"the table {table.name!r} should be {table.path.name}, which is not there", file=str(place))
        return
    text = suffix_of(table.path) not in PARQUET and table.path.is_file()
    if text and not read_head(table.path).strip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n,;"):
        reading.warn("the table is empty and is left out", file=str(table.path))
        return
    opens = partial(_cells, table.path, {**options, **table.options}, table.names)
    yield Tab(table.name, str(table.path), "csv" if text else "parquet", reading, opens)


def _listed(table: DescribedTable, reading: Reading) -> Cells:
    """Rows that a description holds itself, as objects or as lists."""
    rows = [row for row in table.rows if isinstance(row, (dict, list))]
    keys = list(dict.fromkeys(key for row in rows if isinstance(row, dict) for key in row)) or table.names
    lists = [[row.get(key) for key in keys] if isinstance(row, dict) else row for row in rows]
    if keys != table.names and lists and not any(isinstance(row, dict) for row in rows):
        keys = [str(item) for item in lists.pop(0)]
    elif lists and all(isinstance(row, list) for row in rows) and list(map(str, lists[0])) == keys:
        lists.pop(0)
    return SheetCells([keys, *lists], [], reading)


def with_declaration(place: Path, options: Options) -> Options:
    """Options with the declaration file of a folder, if it has one and they name none."""
    file = (place if place.is_dir() else place.parent) / FILE
    return {**options, "declaration": file} if options.get("declaration") is None and file.is_file() else options


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    place = source if isinstance(source, TableFiles) else path_of(source)
    tabs, said = opened(place, reading, options)
    given = with_declaration(place, options) if isinstance(place, Path) else options
    yield from read_tables(tabs, declared_of(tabs, given, said), reading, options)


def referring(paths: Sequence[Path], options: Options) -> tuple[list[Path], list[tuple[Path, str, str]]]:
    """Of some files those whose tables refer to each other for certain, and what to ask of columns of
    others (file, column, words). Says so where they are too much to look through before loading.
    """
    if len({stem_of(path) for path in paths}) < len(paths):
        return [], []
    if len(paths) > MOST_TABLES or sum(path.stat().st_size for path in paths) > _MOST_BYTES:
        said = f"{len(paths):,} tables are too much to look for references between them; join= says what refers to what"
        return [], [(paths[0], "", said)]
    try:
        tabs, _ = opened(TableFiles(tuple(paths), ""), Reading(Source("", ""), "skip"), options)
        found, asked = linked(tabs, options)
    except CondgraphError:
        # What is wrong with a file is for its loader to say.
        return [], []
    by_stem = {stem_of(path): path for path in paths}
    questions = [(by_stem[table], tabs[table].names[at], said) for table, at, said in asked]
    return [path for path in paths if stem_of(path) in found], questions


def _sniff(path: Path, head: bytes) -> int:
    """A folder of several tables and nothing else that is data, where one has a column called like
    a key of another; or with a declaration file, or a description of its tables; or such a
    description itself.
    """
    if not path.is_dir():
        return 99 if is_description(path, head) else 0
    files = files_of(path)
    if (files and (path / FILE).is_file()) or (path / PACKAGE).is_file() or gtfs_files(path):
        return 95
    if any(map(_is_metadata, path.iterdir())):
        return 95
    others = [item for item in path.iterdir() if item not in files and (item.is_dir() or not is_document(item))]
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
    sign=JSON_SIGN,
    suffixes=(".json",),
)
