"""A folder of CSV files with keys between them: rows become entities, foreign keys become
relations.

A table gives a concept called like its file, and each row an entity of it: `products/1` by its
primary key, or by the row's number where the table has none. It is named by its name column
(`name_columns=`, or one called like `productName`, `name` or `title`), else by its id. A column is
a predicate called by its header, as it stands; a foreign key's objects are the rows it points to. A
table of two foreign keys and nothing else gives relations from the first to the second, called like
its file. `keys` says what keys are.

Each table is a source of its own, `{folder}/{table}`, so that rows are rows of its file. Files are
read twice, and memory holds only the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import FormatError, LoadError
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement
from condgraph.engine.values import collapse
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.files import ENCODING_HELP, head_text, path_of, read_head, stem_of, suffix_of
from condgraph.loaders.folder.keys import Columns, columns_option, find_keys, key_names, keys_option, may_be_keys, plain, singular
from condgraph.loaders.table.cells import Cell, Profile
from condgraph.loaders.table.rows import Table, TableOptions, column_names
from condgraph.loaders.table.text import TextTable, sample_rows

#: What the files of such a folder end in, before an optional `.gz`.
SUFFIXES: Final = (".csv", ".tsv")
#: The part of a name column's cells that have to be there, and to be different.
_THERE: Final = 0.9
_DIFFERENT: Final = 0.5

_DELIMITERS: Final = {".csv": ",;\t|", ".tsv": "\t"}


def files_of(folder: Path) -> list[Path]:
    """The table files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.is_file() and suffix_of(path) in SUFFIXES and path.name[0] != ".")


class _File:
    """One file: how it is written, what its columns are, and the reading that its problems go to."""

    def __init__(self, path: Path, reading: Reading, options: Options) -> None:
        self.path = path
        self.name = stem_of(path)
        self.source = Source(f"{reading.source.name}/{self.name}", str(path), "csv", reading.source.content)
        self.reading = Reading(self.source, reading.on_error, None, reading.problems)
        self.text = TextTable.open(path, self.reading, options, _DELIMITERS[suffix_of(path)])
        self.names = column_names(self.text.headers, self.reading)
        self.table = Table(
            self.reading, TableOptions.of({key: options[key] for key in ("missing", "day_first") if key in options}), self.names
        )
        self.columns = Columns(self.name, self.names)
        self.profiles = [self.table.profile() for _ in self.names]
        self.name_column: int | None = None

    def key(self, cell: str) -> str | None:
        """A cell as a key; None where it is missing."""
        text = collapse(cell)
        return None if text.casefold() in self.table.options.missing else text


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    folder = path_of(source)
    if not folder.is_dir():
        raise FormatError("this is not a folder", file=str(folder))
    paths = files_of(folder)
    if not paths:
        raise FormatError("the folder has no CSV files", file=str(folder))
    files: dict[str, _File] = {}
    for path in paths:
        file = _File(path, reading, options)
        if file.name in files:
            raise LoadError(f"two files of the folder are called {file.name!r}", file=str(path))
        files[file.name] = file
    headers = {name: file.names for name, file in files.items()}
    primary = columns_option(options.get("primary"), "primary", headers)
    keys = keys_option(options.get("keys"), headers)
    named = columns_option(options.get("name_columns"), "name_columns", headers)
    wanted = may_be_keys(headers, [*primary.items(), *keys.keys(), *keys.values()])
    for done, file in enumerate(files.values()):
        _survey(file, wanted[file.name])
        reading.advance(0, (done + 1) / len(files) / 2)
    for table, column, why in find_keys({name: file.columns for name, file in files.items()}, primary, keys):
        files[table].reading.warn(f"this looks like a key, but {why}; its cells are values (keys= makes it one)", field=column)
    for file in files.values():
        file.name_column = file.names.index(named[file.name]) if file.name in named else _name_column(file)
    for done, file in enumerate(files.values()):
        yield file.source
        yield from _join(file, files) if file.columns.joins else _rows(file, files)
        reading.skipped += file.reading.skipped
        reading.warned += file.reading.warned
        reading.advance(file.columns.rows, 0.5 + (done + 1) / len(files) / 2)


def _survey(file: _File, keys: set[int]) -> None:
    """The first pass over a file: what its columns look like, and the values of those that may be
    keys.
    """
    for chunk, _ in file.text.chunks(file.reading, file.names):
        for at, column in enumerate(chunk.columns):
            file.profiles[at].add(column)
            if at in keys:
                file.columns.add(at, map(file.key, column))
        file.columns.rows += len(chunk.numbers)


def _name_column(file: _File) -> int | None:
    """The column that names the rows: of text, called like a name, mostly there and mostly
    different.
    """
    stem = singular(plain(file.name))
    ranked = sorted(
        (rank, at)
        for at, name in enumerate(file.names)
        if at not in file.columns.foreign and (rank := _name_rank(plain(name), stem)) is not None
    )
    for _, at in ranked:
        if file.profiles[at].decide(file.names[at]).kind == "text" and _unique_enough(file.profiles[at], file.columns.rows):
            return at
    return None


def _name_rank(column: str, stem: str) -> int | None:
    if column in (stem + "name", stem + "title"):
        return 0
    if column in ("name", "title", "label"):
        return 1
    return 2 if column.endswith(("name", "title")) else None


def _unique_enough(profile: Profile, rows: int) -> bool:
    # The profile counts distinct texts once a chunk, which is enough for a rule of thumb.
    cells = sum(some for some, _ in profile.shapes.values())
    distinct = sum(different for _, different in profile.shapes.values())
    return rows > 0 and cells >= _THERE * rows and distinct >= _DIFFERENT * rows


def _rows(file: _File, files: Mapping[str, _File]) -> Iterator[Item]:
    """The second pass over a table of rows."""
    table, columns, missing = file.table, file.columns, file.key
    names = [columns.foreign.get(at) for at in range(len(file.names))]
    types = [None if names[at] else table.decide(at, profile) for at, profile in enumerate(file.profiles)]
    readers: list[Callable[[str], Cell | None] | None] = [None if chosen is None else chosen.reader() for chosen in types]
    concept = file.name
    yield Entity(concept, concept, EntityKind.CONCEPT)
    seen: dict[str, int] = {}
    for chunk, _ in file.text.chunks(None, file.names):
        for at, number in enumerate(chunk.numbers):
            one = _row_id(file, chunk.columns, at, number, seen)
            if one is None:
                continue
            where = ((file.source.name, number),)
            name = missing(chunk.columns[file.name_column][at]) if file.name_column is not None else None
            yield Sourced(Entity(one, name or one, EntityKind.ROW, number), where)
            yield Sourced(Member(one, concept, number), where)
            for position, header in enumerate(file.names):
                text = chunk.columns[position][at]
                target, read = names[position], readers[position]
                if target is not None:
                    key = missing(text)
                    if key is not None:
                        other = _target(files[target], key, file, number, header)
                        yield Sourced(
                            Statement(one, header, other, (), number, None if isinstance(other, Ref) or other == text else text),
                            where,
                        )
                elif read is not None and (cell := read(text)) is not None:
                    yield Sourced(Statement(one, header, cell[0], (), number, cell[1]), where)


def _row_id(file: _File, cells: Sequence[Sequence[str]], at: int, number: int, seen: dict[str, int]) -> str | None:
    """The id of a row; None for one whose key is missing or repeated, which is bad."""
    if file.columns.primary is None:
        return f"{file.name}/{number}"
    header = file.names[file.columns.primary]
    key = file.key(cells[file.columns.primary][at])
    if key is None:
        file.reading.bad("the row has no key", row=number, field=header)
        return None
    first = seen.setdefault(key, number)
    if first != number:
        file.reading.bad(f"the key {key!r} stands in row {first} already", row=number, field=header)
        return None
    return f"{file.name}/{key}"


def _target(other: _File, key: str, file: _File, row: int, field: str) -> Ref | str:
    """The row that a foreign key points to; the key as text where there is none."""
    at = other.columns.primary
    if at is not None and key in other.columns.values[at]:
        return Ref(f"{other.name}/{key}")
    file.reading.warn(f"{key!r} is no key of {other.name!r}; the cell is kept as text", row=row, field=field)
    return key


def _join(file: _File, files: Mapping[str, _File]) -> Iterator[Item]:
    """The second pass over a join table: one relation a row, from the first key to the second."""
    for chunk, _ in file.text.chunks(None, file.names):
        for at, number in enumerate(chunk.numbers):
            ends: list[str] = []
            for position, header in enumerate(file.names):
                other = files[file.columns.foreign[position]]
                key = file.key(chunk.columns[position][at])
                primary = other.columns.primary
                if key is None or primary is None or key not in other.columns.values[primary]:
                    said = "the key is missing" if key is None else f"{key!r} is no key of {other.name!r}"
                    file.reading.bad(f"{said}, so that there is nothing to relate", row=number, field=header)
                    break
                ends.append(f"{other.name}/{key}")
            if len(ends) == 2:
                yield Sourced(Statement(ends[0], file.name, Ref(ends[1]), (), number), ((file.source.name, number),))


def _sniff(path: Path, head: bytes) -> int:
    """A folder of several CSV files and nothing else that is data, where one has a column called
    like a key of another.
    """
    from condgraph.loaders.documents import is_document

    if not path.is_dir():
        return 0
    files = files_of(path)
    others = [one for one in path.iterdir() if one not in files and (one.is_dir() or not is_document(one))]
    if len(files) < 2 or others:
        return 0
    headers: dict[str, list[str]] = {}
    for file in files:
        start = read_head(file)
        rows = sample_rows(start, _DELIMITERS[suffix_of(file)])[1] if head_text(start) is not None else []
        if rows:
            headers[stem_of(file)] = [plain(name) for name in rows[0]]
    for table, columns in headers.items():
        own = key_names(table)
        keys = {name for name in columns if name == "id" or name in own}
        others_have = {name for other, names in headers.items() if other != table for name in names}
        if keys and others_have & (own | keys - {"id"}):
            return 90
    return 0


FORMAT: Final = Format(
    name="folder",
    about="a folder of CSV files with keys between them: rows are entities, foreign keys are relations",
    read=_read,
    options={
        "keys": "foreign keys that are not found by their names: {'orders.shipVia': 'shippers.shipperID'}",
        "primary": "primary keys that are not found by their names: {'orders': 'orderID'}",
        "name_columns": "columns that name the rows: {'products': 'productName'}",
        "missing": "further texts that stand for a missing cell",
        "day_first": "whether 03/05/2010 is the third of May (default: decided by column, text where undecided)",
        "encoding": ENCODING_HELP,
    },
    sniff=_sniff,
)
