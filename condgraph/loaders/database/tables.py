"""Databases as tables with keys: the interface of databases, and how they are read.

A database lists its tables, and yields the rows of one as texts, repeatedly and within one
transaction, so that each pass sees the same rows. Its keys and foreign keys are declarations
(`folder.declared`); if it has no foreign key at all, names of columns are examined, as in a folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Protocol

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, nearest
from condgraph.engine.facts import Item
from condgraph.engine.values import collapse
from condgraph.loaders.base import Options, Reading, option_texts
from condgraph.loaders.folder.declared import JOIN_OPTIONS, Declared, Join
from condgraph.loaders.folder.items import by_name, declared_of, read_tables
from condgraph.loaders.folder.tab import Cells, Tab
from condgraph.loaders.table.column_types import undecodable
from condgraph.loaders.table.text import Chunk

#: Options of every database.
DATABASE_OPTIONS: Final[Mapping[str, str]] = {
    "tables": "the tables, or views, to load (default: all tables)",
    **JOIN_OPTIONS,
}
#: How many rows are fetched at once.
ROWS: Final = 5_000


@dataclass(slots=True)
class SqlTable:
    """A table or view of a database: its columns and declared keys.

    `name` is its name here, `path` its name in the database (schema and name). `foreign` are (columns,
    name of the other table, columns there; none for its key).
    """

    name: str
    path: tuple[str, ...]
    columns: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    primary: tuple[str, ...] = ()
    foreign: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)
    view: bool = False


class Database(Protocol):
    """An open database; errors of its library are `LoadError`s."""

    location: str
    form: str

    def tables(self) -> list[SqlTable]:
        """Return its tables and views by name."""
        ...

    def rows(self, table: SqlTable) -> Iterator[Sequence[Sequence[str]]]:
        """Yield the rows of a table in a stable order, in lists of some thousands; cells are texts."""
        ...


#: Types of times on PostgreSQL and MySQL; a column of SQLite with such a type may hold anything.
_TIMES: Final = ("date", "datetime", "timestamp", "timestamptz")


class DatabaseCells:
    """A table of a database as rows of texts."""

    def __init__(self, database: Database, table: SqlTable, reading: Reading) -> None:
        self.database = database
        self.table = table
        self.headers = list(table.columns)
        #: Columns of dates and moments, whatever their cells: infinity and a year BC are none in other tables.
        self.times = [
            name for name, kind in zip(table.columns, table.kinds, strict=True) if kind in _TIMES and database.form != "sqlite"
        ]

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """Yield the rows, some thousands at a time; the total is not known in advance."""
        number = 0
        for rows in self.database.rows(self.table):
            check()
            numbers: Sequence[int] = range(number + 1, number + len(rows) + 1)
            number += len(rows)
            bad = set()
            for at, column, byte in undecodable(rows):
                bad.add(at)
                if report is not None:
                    report.bad(f"byte 0x{byte:02x} is not text", row=numbers[at], field=names[column])
            if bad:
                good = [at for at in range(len(rows)) if at not in bad]
                numbers, rows = [numbers[at] for at in good], [rows[at] for at in good]
            if rows:
                yield Chunk(numbers, list(zip(*rows, strict=True))), 0.0


def _chosen(database: Database, options: Options) -> list[SqlTable]:
    all_tables = database.tables()
    names_wanted = option_texts(options, "tables")
    if not names_wanted:
        chosen = [table for table in all_tables if not table.view]
        if not chosen:
            raise LoadError(
                "the database has no tables", file=database.location, hint="tables= names views" if all_tables else None
            )
        return chosen
    names = {table.name: table for table in all_tables}
    for name in names_wanted:
        if name not in names:
            raise LoadError(f"the database has no table {name!r}", file=database.location, candidates=nearest(name, names))
    return [names[name] for name in dict.fromkeys(names_wanted)]


def tabs_of(database: Database, reading: Reading, options: Options) -> tuple[dict[str, Tab], Declared]:
    """Return the tables of a database, opened, and its declarations."""
    chosen = []
    for table in _chosen(database, options):
        if table.columns:
            chosen.append(table)
        else:
            reading.warn(f"the table {table.name!r} has no columns and is left out")
    tabs = by_name(
        [Tab(table.name, database.location, database.form, reading, partial(_cells, database, table)) for table in chosen]
    )
    declared = Declared(guess_joins=not any(table.foreign for table in chosen))
    for table in chosen:
        tab = tabs[table.name]
        header_of = dict(zip(table.columns, tab.names, strict=True))
        if table.primary:
            declared.keys[table.name] = tuple(header_of[item] for item in table.primary)
        for columns, target, target_columns in table.foreign:
            names = tuple(header_of[column] for column in columns)
            if target not in tabs:
                tab.reading.warn(f"this refers to {target!r}, which is not loaded; its cells are values", field=" + ".join(names))
                continue
            renamed = tuple(map(collapse, target_columns))
            missing = [item for item in renamed if item not in tabs[target].names]
            if missing:
                why = f"this refers to {missing[0]!r} of {target!r}, a missing column; its cells are values"
                tab.reading.warn(why, field=" + ".join(names))
                continue
            declared.joins.append(Join(table.name, names, ((target, renamed),), of_source=True))
    if declared.guess_joins and len(chosen) > 1:
        reading.warn("the database declares no foreign keys; references are found by the names of columns (join= says more)")
    return tabs, declared


def _cells(database: Database, table: SqlTable, reading: Reading) -> Cells:
    return DatabaseCells(database, table, reading)


def read_database(database: Database, reading: Reading, options: Options) -> Iterator[Item]:
    """All tables of a database as items."""
    tabs, said = tabs_of(database, reading, options)
    yield from read_tables(tabs, declared_of(tabs, options, said), reading, options)


def content_of(database: Database, options: Options) -> str:
    """A fingerprint of all that would be loaded."""
    digest = blake2b(digest_size=12)
    for table in _chosen(database, options):
        digest.update(repr((table.name, table.columns, table.primary, table.foreign)).encode("utf-8", "surrogatepass"))
        for rows in database.rows(table):
            check()
            digest.update(repr(rows).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def quoted(path: Sequence[str], mark: str = '"') -> str:
    """Return the names of a table or a column as SQL."""
    return ".".join(mark + part.replace(mark, mark * 2) + mark for part in path)


def ordered_by(table: SqlTable, mark: str = '"') -> str:
    """Return the alias of a table, and the ORDER BY of its key if it has one."""
    # Without the alias, a key would refer to the selected text.
    keys = ", ".join("t." + quoted((item,), mark) for item in table.primary)
    return f" AS t ORDER BY {keys}" if keys else " AS t"


def told(error: Any) -> str:
    """Return the first line of a library's error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
