"""Loader of SQLite files. They are opened read-only, and code in the schema (views, triggers, functions) is not trusted."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from condgraph.engine.bounds import check
from condgraph.engine.errors import CondgraphError, LoadError
from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.database.tables import DATABASE_OPTIONS, ROWS, SqlTable, ordered_by, quoted, read_database, told
from condgraph.loaders.files import MAX_GROWTH, MAX_LINE, file_errors, path_of, regular
from condgraph.loaders.folder.tab import cell_text

MAGIC: Final = b"SQLite format 3\0"
#: Steps of SQLite's virtual machine between two checks of the deadline.
_STEPS: Final = 100_000
#: The most steps for reading one table or view: a base, plus some for each byte of the file. Views that people write
#: need less.
_MAX_STEPS: Final = 2_000_000_000
_STEPS_A_BYTE: Final = 10_000
#: The most bytes of a cell, and of the cells in one batch.
MAX_CELL: Final = MAX_LINE
_TOGETHER: Final = 1 << 24
#: All cells together may have so many characters, whatever the size of the file.
_MAX_CHARACTERS: Final = 1 << 28


class Sqlite:
    """An open SQLite database."""

    form = "sqlite"

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.location = str(path)
        self.connection = connection
        self._stopped: CondgraphError | None = None
        size = path.stat().st_size
        #: The remaining steps for the current table, and the remaining characters for all tables.
        self._most_steps = self._steps = _MAX_STEPS + _STEPS_A_BYTE * size
        self._characters = max(_MAX_CHARACTERS, MAX_GROWTH * size)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
        connection.set_progress_handler(self._check, _STEPS)

    def _check(self) -> int:
        try:
            check()
            self._steps -= _STEPS
            if self._steps < 0:
                raise LoadError(
                    f"a table or view takes SQLite more than {self._most_steps:,} steps", file=self.location,
                    hint="tables= leaves it out, or copy it into a table",
                )  # fmt: skip
        except CondgraphError as error:
            self._stopped = error
            return 1
        return 0

    @contextmanager
    def errors(self, table: str | None = None) -> Iterator[None]:
        """Turn errors of SQLite into a `LoadError`, or into the error of the deadline."""
        try:
            yield
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError) as error:
            if self._stopped is not None:
                raise self._stopped from None
            subject = f"the table {table!r}" if table is not None else "this"
            hint = f"a cell may have {MAX_CELL:,} bytes" if "too big" in str(error) else None
            raise LoadError(f"SQLite cannot read {subject}: {told(error)}", file=self.location, hint=hint) from None

    def _all(self, text: str, *parameters: str) -> list[tuple[Any, ...]]:
        with closing(self.connection.execute(text, parameters)) as cursor:
            return cursor.fetchall()

    def virtual(self) -> list[str]:
        """Return the virtual tables, which are not read."""
        with self.errors():
            return [name for (name,) in self._all("SELECT name FROM pragma_table_list WHERE type = 'virtual' ORDER BY name")]

    def tables(self) -> list[SqlTable]:
        """Return tables and views, except internal ones of SQLite and its extensions."""
        with self.errors():
            declared = self._all(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
                " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
            )
            shadows = {
                name for name, kind in self._all("SELECT name, type FROM pragma_table_list WHERE type IN ('shadow', 'virtual')")
            }
            tables = [SqlTable(name, (name,), view=kind == "view") for name, kind in declared if name not in shadows]
            names = {table.name.casefold(): table.name for table in tables}
            for table in tables:
                columns = self._all("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", table.name)
                table.columns = [name for name, _, _, hidden in columns if hidden != 1]
                table.kinds = [kind for _, kind, _, hidden in columns if hidden != 1]
                table.primary = tuple(name for name, _, pk, _ in sorted(columns, key=lambda item: item[2]) if pk)
                column_names = {name.casefold(): name for name in table.columns}
                keys: dict[int, list[tuple[str, str, str | None]]] = {}
                for ident, target, columns_here, other in self._all(
                    'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq', table.name
                ):
                    keys.setdefault(ident, []).append((target, columns_here, other))
                for parts in keys.values():
                    target = names.get(parts[0][0].casefold(), parts[0][0])
                    columns_here = tuple(column_names.get(part.casefold(), part) for _, part, _ in parts)
                    table.foreign.append((columns_here, target, tuple(str(other) for _, _, other in parts if other is not None)))
                table.foreign.sort()
            columns_of = {table.name: {column.casefold(): column for column in table.columns} for table in tables}
            for table in tables:
                # Names of columns in references may be written in another case.
                table.foreign = [
                    (
                        columns_here,
                        target,
                        tuple(columns_of.get(target, {}).get(other.casefold(), other) for other in columns_there),
                    )
                    for columns_here, target, columns_there in table.foreign
                ]
        return tables

    def rows(self, table: SqlTable) -> Iterator[Sequence[Sequence[str]]]:
        """Yield the rows of a table, ordered by its key if it has one."""
        with self.errors(table.name):
            self._steps = self._most_steps
            columns = ", ".join(quoted((column,)) for column in table.columns)
            with closing(self.connection.execute(f"SELECT {columns} FROM {quoted(table.path)}{ordered_by(table)}")) as cursor:
                rows: list[list[str]] = []
                size = 0
                # Computed columns and views may be much larger than the file.
                for row in cursor:
                    texts = list(map(cell_text, row))
                    rows.append(texts)
                    size += sum(map(len, texts))
                    if len(rows) >= ROWS or size > _TOGETHER:
                        self._take(table, size)
                        yield rows
                        rows, size = [], 0
                self._take(table, size)
                if rows:
                    yield rows

    def _take(self, table: SqlTable, size: int) -> None:
        self._characters -= size
        if self._characters < 0:
            raise LoadError(
                f"the tables have more than {MAX_GROWTH} times the size of the file, and more than {_MAX_CHARACTERS >> 20} MiB",
                file=self.location,
                hint=f"the table {table.name!r} has computed columns, or is a view: tables= leaves it out",
            )


@contextmanager
def opened(path: Path) -> Iterator[Sqlite]:
    """Yield an SQLite file, open for reading, in one transaction."""
    with file_errors(path):
        regular(path).open("rb").close()
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise LoadError(f"SQLite cannot open this: {told(error)}", file=str(path)) from None
    with closing(connection):
        database = Sqlite(path, connection)
        with database.errors():
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("BEGIN")
        yield database


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    with opened(path_of(source)) as database:
        if virtual := database.virtual():
            named = ", ".join(map(repr, virtual[:5])) + (f" and {len(virtual) - 5} more" if len(virtual) > 5 else "")
            reading.warn(f"virtual tables are left out: {named}; a table that is made of one is loaded")
        yield from read_database(database, reading, options)


def _sniff(path: Path, head: bytes) -> int:
    return 100 if head.startswith(MAGIC) else 0


FORMAT: Final = Format(
    "sqlite",
    "an SQLite database: rows of its tables are entities, foreign keys are relations",
    _read,
    DATABASE_OPTIONS,
    _sniff,
    sign=re.compile(re.escape(MAGIC)).match,
)
