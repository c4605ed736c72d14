"""Loaders of PostgreSQL and MySQL (MariaDB) by URL; a password is never in a message or in the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from condgraph.engine.addresses import parse
from condgraph.engine.errors import LoadError, OptionError, requiring
from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.database import tables as base
from condgraph.loaders.files import MYSQL, POSTGRES
from condgraph.loaders.folder.tab import Pointed, TimeOfDay, cell_text

#: The connection timeout in seconds.
CONNECT: Final = 20


@dataclass(frozen=True)
class Login:
    """The parts of a database's address; `location` is how messages show it."""

    scheme: str
    user: str
    password: str = field(repr=False)
    host: str
    port: int | None
    name: str
    options: dict[str, str] = field(repr=False)
    location: str


@contextmanager
def server_errors(library: Any, location: str, doing: str) -> Iterator[None]:
    """Turn errors of a library into a `LoadError` that says what was attempted."""
    try:
        yield
    except (library.Error, OSError, UnicodeError, ValueError) as error:
        raise LoadError(f"{doing}: {base.told(error)}", file=location) from None


@contextmanager
def mysql(login: Login) -> Iterator[base.Database]:
    """Yield a connection to MySQL in a read-only transaction."""
    with requiring("PyMySQL", "mysql"):
        import pymysql
    if not login.name:
        raise OptionError("the address names no database", hint=f"{login.scheme}://user:password@host:port/database")
    endpoint: dict[str, Any] = (
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
            **endpoint,
        )
    try:
        with server_errors(pymysql, login.location, "MySQL refuses the connection"), connection.cursor() as cursor:
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

    def tables(self) -> list[base.SqlTable]:
        """Return the tables and views of the database."""
        with server_errors(self._library, self.location, "MySQL does not list its tables"):
            table_rows = self._all(
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
        tables = {name: base.SqlTable(name, (name,), view="VIEW" in kind) for name, kind in table_rows}
        for name, column, kind in columns:
            if name in tables:
                tables[name].columns.append(column)
                tables[name].kinds.append(kind)
        foreign: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for name, constraint, column, is_local, other, target_column in keys:
            if constraint == "PRIMARY":
                tables[name].primary += (column,)
            elif is_local:
                foreign.setdefault((name, constraint), []).append((column, other, target_column))
        for (name, _), parts in foreign.items():
            tables[name].foreign.append((tuple(item for item, _, _ in parts), parts[0][1], tuple(item for _, _, item in parts)))
        for table in tables.values():
            table.foreign.sort()
        return sorted(tables.values(), key=lambda table: table.name)

    def rows(self, table: base.SqlTable) -> Iterator[Sequence[Sequence[str]]]:
        """Yield the rows of a table, ordered by its key if it has one."""
        columns = ", ".join(base.quoted((column,), "`") for column in table.columns)
        with (
            server_errors(self._library, self.location, f"MySQL cannot read the table {table.name!r}"),
            self._connection.cursor(_unbuffered()) as cursor,
        ):
            cursor.execute(f"SELECT {columns} FROM {base.quoted(table.path, '`')}{base.ordered_by(table, '`')}")
            while rows := cursor.fetchmany(base.ROWS):
                yield [list(map(cell_text, row)) for row in rows]


def _unbuffered() -> Any:
    import pymysql.cursors

    return pymysql.cursors.SSCursor


@contextmanager
def postgres(login: Login) -> Iterator[base.Database]:
    """Yield a connection to PostgreSQL in a read-only transaction."""
    with requiring("psycopg", "postgres"):
        import psycopg
    options = {"connect_timeout": str(CONNECT), **login.options}
    login_options: dict[str, Any] = {
        "user": login.user,
        "password": login.password,
        "host": login.host,
        "port": login.port,
        "dbname": login.name,
    }
    with server_errors(psycopg, login.location, "PostgreSQL cannot be reached"):
        connection = psycopg.connect(**{**{key: value for key, value in login_options.items() if value}, **options})
    try:
        with server_errors(psycopg, login.location, "PostgreSQL refuses the connection"):
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
    WITH RECURSIVE based (oid, name, base) AS (
      SELECT oid, typname, typbasetype FROM pg_type
      UNION ALL SELECT d.oid, t.typname, t.typbasetype FROM based d JOIN pg_type t ON t.oid = d.base)
    SELECT attrelid, attnum, attname, CASE WHEN t.typcategory = 'A' THEN 'array' ELSE b.name END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN based b ON b.oid = a.atttypid AND b.base = 0
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

    def tables(self) -> list[base.SqlTable]:
        """Return the readable tables and views of all schemas except the server's own; partitions are not listed."""
        with server_errors(self._library, self.location, "PostgreSQL does not list its tables"):
            table_rows = self._connection.execute(_PG_TABLES).fetchall()
            columns = self._connection.execute(_PG_COLUMNS).fetchall()
            keys = self._connection.execute(_PG_KEYS).fetchall()
        name_counts: dict[str, int] = {}
        for _, _, name, _, _ in table_rows:
            name_counts[name] = name_counts.get(name, 0) + 1
        tables: dict[int, base.SqlTable] = {}
        for oid, schema, name, kind, _ in table_rows:
            table_name = name if name_counts[name] == 1 else f"{schema}.{name}"
            tables[oid] = base.SqlTable(table_name, (schema, name), view=kind in "vm")
        numbers: dict[int, dict[int, str]] = {}
        for oid, number, name, kind in columns:
            if oid in tables:
                tables[oid].columns.append(name)
                tables[oid].kinds.append(kind)
                numbers.setdefault(oid, {})[number] = name
        for kind, oid, columns_here, other, columns_there in keys:
            if oid not in tables:
                continue
            names = tuple(numbers[oid][item] for item in columns_here)
            if kind == "p":
                tables[oid].primary = names
            elif other in tables:
                tables[oid].foreign.append(
                    (names, tables[other].name, tuple(numbers[other][target_column] for target_column in columns_there))
                )
        for table in tables.values():
            table.foreign.sort()
        return sorted(tables.values(), key=lambda table: table.name)

    def rows(self, table: base.SqlTable) -> Iterator[Sequence[Sequence[str]]]:
        """Yield the rows of a table, ordered by its key if it has one."""
        columns = ", ".join(_pg_text(base.quoted((name,)), kind) for name, kind in zip(table.columns, table.kinds, strict=True))
        numbers = [at for at, kind in enumerate(table.kinds) if kind in ("float4", "float8", "numeric", "money")]
        clocks = [at for at, kind in enumerate(table.kinds) if kind == "time"]
        self._cursors += 1
        with (
            server_errors(self._library, self.location, f"PostgreSQL cannot read the table {table.name!r}"),
            self._connection.cursor(name=f"condgraph_{self._cursors}") as cursor,
        ):
            cursor.itersize = base.ROWS
            cursor.execute(f"SELECT {columns} FROM {base.quoted(table.path)}{base.ordered_by(table)}".encode())
            while rows := cursor.fetchmany(base.ROWS):
                texts = [["" if cell is None else cell for cell in row] for row in rows]
                for at in numbers:
                    for row in texts:
                        if "e" in row[at] or row[at] == "NaN":
                            row[at] = "" if row[at] == "NaN" else cell_text(float(row[at]))
                        row[at] = Pointed(row[at])
                for at in clocks:
                    for row in texts:
                        row[at] = TimeOfDay(row[at])
                yield texts


def _pg_text(column: str, kind: str) -> str:
    """Return the SQL for a column as the text of a cell."""
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


_EXAMPLE: Final = "{}://user:password@host:port/database"


@dataclass(frozen=True)
class DatabaseUrl:
    """The address of a database; its printed form has no password."""

    url: str

    @property
    def scheme(self) -> str:
        """The scheme as written, such as `postgresql` or `mysql`."""
        return self.url.partition("://")[0].casefold()

    @property
    def called(self) -> str:
        """The name of the source: that of the database."""
        path = self._parts()[4]
        return path or self.scheme

    @property
    def location(self) -> str:
        """The address without user, password and options."""
        _, _, host, port, name, _ = self._parts()
        return f"{self.scheme}://{host}{f':{port}' if port else ''}/{name}"

    def __repr__(self) -> str:
        return f"<database {self.location}>"

    def login(self) -> Login:
        """Return the parts of the address; raises `OptionError` if it is invalid."""
        return Login(self.scheme, *self._parts(), self.location)

    def _parts(self) -> tuple[str, str, str, int | None, str, dict[str, str]]:
        """Return user, password, host, port, database and options; errors never show a password, even unescaped."""
        # The name of a database may contain spaces.
        address = parse(self.url.replace(" ", "%20"), (self.scheme,), example=_EXAMPLE.format(self.scheme), paths=True)
        host = address.host.strip("[]").lower()
        options = dict(parse_qsl(address.query))
        return address.user or "", address.password or "", host, address.port, unquote(address.path.lstrip("/")), options

    def content(self, options: Options) -> str:
        """Return a fingerprint of the data that a load would read."""
        with opened(self) as database:
            return base.content_of(database, options)


@contextmanager
def opened(place: DatabaseUrl) -> Iterator[base.Database]:
    """Yield a connection to a database in a read-only transaction."""
    with (postgres if place.scheme in POSTGRES else mysql)(place.login()) as database:
        yield database


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    place = source if isinstance(source, DatabaseUrl) else DatabaseUrl(str(source))
    with opened(place) as database:
        yield from base.read_database(database, reading, options)


def _format(name: str, schemes: Sequence[str], about: str) -> Format:
    return Format(
        name,
        about,
        _read,
        base.DATABASE_OPTIONS,
        claims=lambda source: isinstance(source, DatabaseUrl) and source.scheme in schemes,
    )


FORMATS: Final = (
    _format("postgresql", POSTGRES, "a PostgreSQL database by its URL: rows are entities, foreign keys are relations"),
    _format("mysql", MYSQL, "a MySQL or MariaDB database by its URL: rows are entities, foreign keys are relations"),
)
