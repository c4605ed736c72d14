"""MySQL and MariaDB in one transaction that sees one state of the database, and may not write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from condgraph.engine.errors import MissingExtraError, OptionError
from condgraph.loaders.database.login import CONNECT, Login, server_errors
from condgraph.loaders.database.tables import (
    ROWS,
    Database,
    SqlTable,
    ordered_by,
    quoted,
)
from condgraph.loaders.folder.texts import cell_text


@contextmanager
def mysql(login: Login) -> Iterator[Database]:
    """A connection in a transaction for reading."""
    try:
        import pymysql
    except ImportError:
        raise MissingExtraError("PyMySQL", "mysql") from None
    if not login.name:
        raise OptionError("the address names no database", hint=f"{login.scheme}://user:password@host:port/database")
    given: dict[str, Any] = (
        {"unix_socket": login.options["unix_socket"]}
        if "unix_socket" in login.options
        else {"host": login.host, "port": login.port or 3306}
    )
    with server_errors(pymysql, login.location, "MySQL cannot be reached"):
        connection = pymysql.connect(
            user=login.user or None,
            password=login.password,
            database=login.name,
            charset="utf8mb4",
            connect_timeout=CONNECT,
            autocommit=True,
            **given,
        )
    try:
        with server_errors(pymysql, login.location, "MySQL does not take the connection"), connection.cursor() as cursor:
            cursor.execute("SET SESSION time_zone = '+00:00'")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield MySql(login.location, login.name, pymysql, connection)
    finally:
        connection.close()


class MySql:
    """An open MySQL or MariaDB database."""

    form = "mysql"

    def __init__(self, location: str, name: str, library: Any, connection: Any) -> None:
        self.location = location
        self.name = name
        self._library = library
        self._connection = connection

    def _all(self, text: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(text, (self.name,))
            return list(cursor.fetchall())

    def tables(self) -> list[SqlTable]:
        """Tables and views of the database."""
        with server_errors(self._library, self.location, "MySQL does not say what tables it has"):
            listed = self._all(
                "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s ORDER BY table_name"
            )
            columns = self._all(
                "SELECT table_name, column_name, data_type FROM information_schema.columns"
                " WHERE table_schema = %s ORDER BY table_name, ordinal_position"
            )
            keys = self._all(
                "SELECT table_name, constraint_name, column_name, referenced_table_schema = table_schema,"
                " referenced_table_name, referenced_column_name FROM information_schema.key_column_usage"
                " WHERE table_schema = %s AND (constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL)"
                " ORDER BY table_name, constraint_name, ordinal_position"
            )
        tables = {name: SqlTable(name, (name,), view="VIEW" in kind) for name, kind in listed}
        for name, column, kind in columns:
            if name in tables:
                tables[name].columns.append(column)
                tables[name].kinds.append(kind)
        foreign: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for name, constraint, column, here, other, theirs in keys:
            if constraint == "PRIMARY":
                tables[name].primary += (column,)
            elif here:
                foreign.setdefault((name, constraint), []).append((column, other, theirs))
        for (name, _), parts in foreign.items():
            tables[name].foreign.append((tuple(one for one, _, _ in parts), parts[0][1], tuple(one for _, _, one in parts)))
        for table in tables.values():
            table.foreign.sort()
        return sorted(tables.values(), key=lambda table: table.name)

    def rows(self, table: SqlTable) -> Iterator[Sequence[Sequence[str]]]:
        """The rows of a table, by its key, else as they lie."""
        columns = ", ".join(quoted((one,), "`") for one in table.columns)
        with (
            server_errors(self._library, self.location, f"MySQL cannot read the table {table.name!r}"),
            self._connection.cursor(_unbuffered()) as cursor,
        ):
            cursor.execute(f"SELECT {columns} FROM {quoted(table.path, '`')}{ordered_by(table, '`')}")
            while rows := cursor.fetchmany(ROWS):
                yield [list(map(cell_text, row)) for row in rows]


def _unbuffered() -> Any:
    import pymysql.cursors

    return pymysql.cursors.SSCursor
