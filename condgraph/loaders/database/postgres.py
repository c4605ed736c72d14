"""PostgreSQL in one transaction that sees one state of the database, and may not write.

It gives every cell as text, so that no value of it has to fit into Python's types: a date of 44 BC,
`infinity`, a number of a thousand digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from condgraph.engine.errors import MissingExtraError
from condgraph.engine.values import format_number
from condgraph.loaders.database.login import CONNECT, Login, server_errors
from condgraph.loaders.database.tables import (
    ROWS,
    Database,
    SqlTable,
    ordered_by,
    quoted,
)


@contextmanager
def postgres(login: Login) -> Iterator[Database]:
    """A connection in a transaction for reading."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError("psycopg", "postgres") from None
    options = {"connect_timeout": str(CONNECT), **login.options}
    given: dict[str, Any] = {
        "user": login.user,
        "password": login.password,
        "host": login.host,
        "port": login.port,
        "dbname": login.name,
    }
    with server_errors(psycopg, login.location, "PostgreSQL cannot be reached"):
        connection = psycopg.connect(**{**{key: value for key, value in given.items() if value}, **options})
    try:
        with server_errors(psycopg, login.location, "PostgreSQL does not take the connection"):
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            for setting in (
                "DateStyle = ISO",
                "IntervalStyle = postgres",
                "TimeZone = 'UTC'",
                "synchronize_seqscans = off",
                "client_encoding = 'UTF8'",
            ):
                connection.execute(f"SET LOCAL {setting}".encode())
        yield Postgres(login.location, psycopg, connection)
    finally:
        connection.close()


_PG_TABLES: Final = """
    SELECT c.oid, n.nspname, c.relname, c.relkind::text, n.nspname = ANY (current_schemas(false))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
      AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname, c.relname"""
_PG_COLUMNS: Final = """
    SELECT attrelid, attnum, attname, CASE WHEN t.typcategory = 'A' THEN 'array' ELSE coalesce(b.typname, t.typname) END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = nullif(t.typbasetype, 0)
    WHERE attnum > 0 AND NOT attisdropped ORDER BY attrelid, attnum"""
_PG_KEYS: Final = """
    SELECT contype::text, conrelid, conkey, confrelid, confkey FROM pg_constraint
    WHERE contype IN ('p', 'f') AND conrelid <> 0 AND conparentid = 0 ORDER BY conrelid, conname"""


class Postgres:
    """An open PostgreSQL database."""

    form = "postgresql"

    def __init__(self, location: str, library: Any, connection: Any) -> None:
        self.location = location
        self._library = library
        self._connection = connection
        self._cursors = 0

    def tables(self) -> list[SqlTable]:
        """Tables, partitioned ones whole, and views that may be read, of all schemas but the server's own."""
        with server_errors(self._library, self.location, "PostgreSQL does not say what tables it has"):
            listed = self._connection.execute(_PG_TABLES).fetchall()
            columns = self._connection.execute(_PG_COLUMNS).fetchall()
            keys = self._connection.execute(_PG_KEYS).fetchall()
        often: dict[str, int] = {}
        for _, _, name, _, _ in listed:
            often[name] = often.get(name, 0) + 1
        tables: dict[int, SqlTable] = {}
        for oid, schema, name, kind, _ in listed:
            called = name if often[name] == 1 else f"{schema}.{name}"
            tables[oid] = SqlTable(called, (schema, name), view=kind in "vm")
        numbers: dict[int, dict[int, str]] = {}
        for oid, number, name, kind in columns:
            if oid in tables:
                tables[oid].columns.append(name)
                tables[oid].kinds.append(kind)
                numbers.setdefault(oid, {})[number] = name
        for kind, oid, mine, other, theirs in keys:
            if oid not in tables:
                continue
            names = tuple(numbers[oid][one] for one in mine)
            if kind == "p":
                tables[oid].primary = names
            elif other in tables:
                tables[oid].foreign.append((names, tables[other].name, tuple(numbers[other][one] for one in theirs)))
        for table in tables.values():
            table.foreign.sort()
        return sorted(tables.values(), key=lambda table: table.name)

    def rows(self, table: SqlTable) -> Iterator[Sequence[Sequence[str]]]:
        """The rows of a table, by its key, else as they lie."""
        columns = ", ".join(_pg_text(quoted((name,)), kind) for name, kind in zip(table.columns, table.kinds, strict=True))
        floats = [at for at, kind in enumerate(table.kinds) if kind in ("float4", "float8")]
        self._cursors += 1
        with (
            server_errors(self._library, self.location, f"PostgreSQL cannot read the table {table.name!r}"),
            self._connection.cursor(name=f"condgraph_{self._cursors}") as cursor,
        ):
            cursor.itersize = ROWS
            cursor.execute(f"SELECT {columns} FROM {quoted(table.path)}{ordered_by(table)}".encode())
            while rows := cursor.fetchmany(ROWS):
                texts = [["" if cell is None else cell for cell in row] for row in rows]
                for at in floats:
                    for row in texts:
                        if "e" in row[at] or row[at] == "NaN":
                            row[at] = "" if row[at] == "NaN" else format_number(float(row[at]))
                yield texts


def _pg_text(column: str, kind: str) -> str:
    """A column as the text of a cell."""
    if kind == "timestamptz":
        return f"({column} AT TIME ZONE 'UTC')::text"
    if kind == "bytea":
        return f"'0x' || upper(encode({column}, 'hex'))"
    if kind == "array":
        return f"to_json({column})::text"
    if kind == "numeric":
        return f"nullif({column}::text, 'NaN')"
    if kind == "money":
        return f"{column}::numeric::text"
    if kind == "bpchar":
        return f"rtrim({column}::text)"
    return f"{column}::text"
