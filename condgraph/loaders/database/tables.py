"""A database as tables with keys: what every kind of database gives, and how it is read.

A database has a `Catalogue` of tables, and gives the rows of one as texts, as often as asked,
within one transaction: what is read first and what is read again are the same. Keys and foreign
keys that it declares are what is declared of its tables (`folder.declared`); where it declares no
foreign key at all, names of columns are looked at, as in a folder.
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
#: Rows that are asked for at once.
ROWS: Final = 5_000


@dataclass(slots=True)
class SqlTable:
    """A table, or a view, of a database: its columns, and the keys it declares.

    `name` is what it is called here, `path` what the database calls it (schema and name).
    `foreign` are (columns, name of the other table, columns there; none: its key).
    """

    name: str
    path: tuple[str, ...]
    columns: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    primary: tuple[str, ...] = ()
    foreign: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)
    view: bool = False


class Database(Protocol):
    """An open database. Whatever its library raises is a `LoadError`."""

    location: str
    form: str

    def tables(self) -> list[SqlTable]:
        """Its tables and views, by name."""
        ...

    def rows(self, table: SqlTable) -> Iterator[Sequence[Sequence[str]]]:
        """The rows of a table, in an order that stays, in lists of some thousands; texts of cells."""
        ...


class DatabaseCells:
    """A table of a database as rows of texts."""

    def __init__(self, database: Database, table: SqlTable, reading: Reading) -> None:
        self.database = database
        self.table = table
        self.headers = list(table.columns)

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """The rows, some thousands at a time; how many there are is not known before."""
        number = 0
        for rows in self.database.rows(self.table):
            check()
            numbers: Sequence[int] = range(number + 1, number + len(rows) + 1)
            number += len(rows)
            bad = set()
            for at, where, byte in undecodable(rows):
                bad.add(at)
                if report is not None:
                    report.bad(f"byte 0x{byte:02x} is not text", row=numbers[at], field=names[where])
            if bad:
                kept = [at for at in range(len(rows)) if at not in bad]
                numbers, rows = [numbers[at] for at in kept], [rows[at] for at in kept]
            if rows:
                yield Chunk(numbers, list(zip(*rows, strict=True))), 0.0


def _chosen(database: Database, options: Options) -> list[SqlTable]:
    there = database.tables()
    wanted = option_texts(options, "tables")
    if not wanted:
        chosen = [table for table in there if not table.view]
        if not chosen:
            raise LoadError("the database has no tables", file=database.location, hint="tables= names views" if there else None)
        return chosen
    names = {table.name: table for table in there}
    for name in wanted:
        if name not in names:
            raise LoadError(f"the database has no table {name!r}", file=database.location, candidates=nearest(name, names))
    return [names[name] for name in dict.fromkeys(wanted)]


def tabs_of(database: Database, reading: Reading, options: Options) -> tuple[dict[str, Tab], Declared]:
    """The tables of a database, opened, and what it declares of them."""
    chosen = []
    for table in _chosen(database, options):
        if table.columns:
            chosen.append(table)
        else:
            reading.warn(f"the table {table.name!r} has no columns and is left out")
    tabs = by_name(
        [Tab(table.name, database.location, database.form, reading, partial(_cells, database, table)) for table in chosen]
    )
    said = Declared(guess_joins=not any(table.foreign for table in chosen))
    for table in chosen:
        tab = tabs[table.name]
        called = dict(zip(table.columns, tab.names, strict=True))
        if table.primary:
            said.keys[table.name] = tuple(called[item] for item in table.primary)
        for columns, target, others in table.foreign:
            names = tuple(called[column] for column in columns)
            if target not in tabs:
                tab.reading.warn(f"this refers to {target!r}, which is not loaded; its cells are values", field=" + ".join(names))
                continue
            renamed = tuple(map(collapse, others))
            lacking = [item for item in renamed if item not in tabs[target].names]
            if lacking:
                why = f"this refers to {lacking[0]!r} of {target!r}, a column that is not there; its cells are values"
                tab.reading.warn(why, field=" + ".join(names))
                continue
            said.joins.append(Join(table.name, names, ((target, renamed),), of_source=True))
    if said.guess_joins and len(chosen) > 1:
        reading.warn("the database declares no foreign keys; references are found by the names of columns (join= says more)")
    return tabs, said


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
    """Names of a table or a column as SQL."""
    return ".".join(mark + part.replace(mark, mark * 2) + mark for part in path)


def ordered_by(table: SqlTable, mark: str = '"') -> str:
    """The alias of a table, and what keeps its rows in one order, where it has a key."""
    # Without the alias, a key would be the text that is selected.
    keys = ", ".join("t." + quoted((item,), mark) for item in table.primary)
    return f" AS t ORDER BY {keys}" if keys else " AS t"


def told(error: Any) -> str:
    """The first line of what a library says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
