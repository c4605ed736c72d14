"""Connections to SQL engines: DuckDB in this process, PostgreSQL on a server.

A query is a `sqlglot` expression, printed in the engine's dialect. A call with a deadline, or one that is cancelled, ends its
query on the engine. Reading connections cannot write.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from threading import Condition, Event, Lock, Thread, get_ident
from typing import Any, ClassVar, Final, Protocol
from weakref import WeakValueDictionary

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import DialectType

from condgraph.engine.addresses import Address
from condgraph.engine.bounds import POLL, Budget, check, current, watched
from condgraph.engine.errors import OptionError, StoreBusyError, StoreError, StoreMissingError, requiring
from condgraph.sql.tables import PREFIX, Row, Type, as_arrow
from condgraph.sql.terms import table_of, type_of

#: Seconds for a server to accept a connection.
_CONNECT: Final = 10
#: Seconds after which a file that another process has open is tried again.
_AGAIN: Final = 0.1
#: Rows that are read, or written, together.
_TOGETHER: Final = 10_000

#: Columns of a table by name, with their types and the values.
Written = Sequence[tuple[str, Type, Sequence[Any]]]


class Writer(Protocol):
    """A transaction."""

    def read(self, query: exp.Query) -> list[Row]:
        """Return the rows of a query."""
        ...

    def execute(self, statement: exp.Expr) -> None:
        """Run a statement."""
        ...

    def insert(self, place: str, table: str, columns: Written) -> None:
        """Add rows to a table of a schema."""
        ...


def text(query: exp.Expr | str, dialect: DialectType, *, pretty: bool = False) -> str:
    """Return a query in a dialect; a text is returned unchanged."""
    if isinstance(query, str):
        if not pretty:
            return query
        query = sqlglot.parse_one(query, dialect=dialect)
    return query.sql(dialect=dialect, identify=True, pretty=pretty, comments=False, copy=False)


class Engine(ABC):
    """A database; `place` names it without a password."""

    #: The names of the dialect in `sqlglot`, of the engine in messages, and of its address scheme.
    dialect: ClassVar[str]
    title: ClassVar[str]
    scheme: ClassVar[str]
    #: Whether graphs are written there; otherwise they have no table of single changes.
    writes: ClassVar[bool] = True
    #: Builds the table of subconcepts of a graph (`tables.BELOW`), if a query cannot compute it.
    close_subclasses: Callable[[str], None] | None = None

    def __init__(self, place: str) -> None:
        self.place = place

    def text(self, query: exp.Expr | str, *, pretty: bool = False) -> str:
        """Return a query in the dialect of the engine; a text is returned unchanged."""
        return text(query, self.dialect, pretty=pretty)

    def quoted(self, text: str) -> str:
        """Escape a text for use within quotes."""
        return text.replace("'", "''")

    @abstractmethod
    def read(self, query: exp.Expr | str) -> list[Row]:
        """Return the rows of a query."""

    @abstractmethod
    @contextmanager
    def writing(self, wait: float) -> Iterator[Writer]:
        """Open a writing transaction; `wait` is how many seconds to wait for other writers."""

    def changing(self, wait: float) -> AbstractContextManager[None]:
        """Hold the database while this thread reads from it and then writes; `wait` as for `writing`."""
        return nullcontext()

    def schema(self, graph: str) -> str:
        """Return the name of the schema that stores a graph."""
        return f"{PREFIX}{graph}"

    @abstractmethod
    def has_schema(self, name: str) -> bool:
        """Tell whether the database has a schema with this name."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    def unchanged(self) -> object | None:
        """Return an object that stays the same while nobody can write to the database; None if anybody may write at any time."""
        return None

    def refresh(self) -> None:
        """Discard what others may have changed."""
        return

    def data_type(self, kind: Type) -> exp.DataType:
        """Return the type of a column."""
        return type_of(kind)

    def constraints(self, kind: Type) -> list[exp.ColumnConstraint]:
        """Return further constraints of a column of a type."""
        return []

    def index(self, place: str, table: str, names: Sequence[str], kinds: Sequence[Type]) -> exp.Create | None:
        """Return the statement that creates an index; None if the engine has no use for it."""
        return None

    def analyze(self, writer: Writer, table: exp.Table) -> None:
        """Have the engine count the rows of a table, if it does not do so itself."""
        return


class _Watch:
    """Ends a query on the engine once the running call is cancelled, or its deadline has passed."""

    def __init__(self, budget: Budget, end: Callable[[], object]) -> None:
        self._budget, self._end, self._over = budget, end, Event()
        Thread(target=self._watch, name="condgraph-sql-deadline", daemon=True).start()

    def _watch(self) -> None:
        cancelled = self._budget.cancelled()
        while True:
            remaining = self._budget.left()
            pause = POLL if cancelled is not None else remaining
            if remaining is not None and pause is not None:
                pause = min(remaining, pause)
            if self._over.wait(pause):
                return
            remaining = self._budget.left()
            if (remaining is not None and remaining <= 0) or (cancelled is not None and cancelled.is_set()):
                # A query that has not begun cannot be ended: repeat this until it is over.
                while not self._over.wait(POLL / 5):
                    with suppress(Exception):
                        self._end()
                return

    def over(self) -> None:
        """Stop watching, as the query is over."""
        self._over.set()


@contextmanager
def watching(end: Callable[[], object]) -> Iterator[None]:
    """Run a query that `end` terminates on the engine once its call has to end."""
    budget = current()
    if budget is None:
        yield
        return
    budget.check()
    watch = _Watch(budget, end)
    try:
        yield
    finally:
        watch.over()


# -- DuckDB ------------------------------------------------------------------------------------------


class _File:
    """A file of DuckDB, which a process can have open in one way at a time: by any number of readers, or by one writer."""

    def __init__(self, library: Any, path: str) -> None:
        self._library, self._path = library, path
        self._free = Condition()
        self._readers, self._writes = 0, False
        #: The thread that has the file open for reading and writing, with its connection.
        self._held: tuple[int, Any] | None = None
        #: The read-only connection. While it is open, nobody writes: other processes cannot, and `writing`
        #: closes it.
        self._connection: Any = None

    def _opened(self, *, read_only: bool) -> Any:
        if read_only and not os.path.isfile(self._path):
            raise StoreMissingError(f"there is no file {self._path}", hint="load something first")
        try:
            return self._library.connect(self._path, read_only=read_only)
        except self._library.Error as error:
            if "lock" in str(error):
                raise StoreBusyError(f"another process has {self._path} open", hint="wait= for it, or close it there") from None
            raise StoreError(f"DuckDB cannot open {self._path}: {first_line(error)}") from None

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Open a read-only cursor once nobody here writes;

        in the thread that has the file open for writing, a cursor of that connection.
        """
        if (own_connection := self._own()) is not None:
            with closing(own_connection.cursor()) as cursor:
                yield cursor
            return
        with self._free:
            while self._writes:
                self._free.wait(POLL)
                check()
            if self._connection is None:
                self._connection = self._opened(read_only=True)
            cursor = self._connection.cursor()
            self._readers += 1
        try:
            yield cursor
        finally:
            cursor.close()
            with self._free:
                self._readers -= 1
                self._free.notify_all()

    @contextmanager
    def writing(self, wait: float) -> Iterator[Any]:
        """Open a writing connection once nobody here reads or writes, and no other process has the file open."""
        if (own_connection := self._own()) is not None:
            yield own_connection
            return
        until = time.monotonic() + wait
        with self._free:
            # Readers finish soon; another writer is waited for as long as allowed.
            while self._writes:
                check()
                if time.monotonic() >= until:
                    raise StoreBusyError(
                        f"somebody else writes {self._path}", hint="load again when that is finished, or wait= for it"
                    )
                self._free.wait(POLL)
            self._writes = True
        try:
            with self._free:
                while self._readers:
                    self._free.wait(POLL)
                    check()
                self._close()
            while True:
                try:
                    connection = self._opened(read_only=False)
                    break
                except StoreBusyError:
                    check()
                    if time.monotonic() >= until:
                        raise
                    time.sleep(_AGAIN)
            try:
                yield connection
            finally:
                connection.close()
        finally:
            with self._free:
                self._writes = False
                self._free.notify_all()

    @contextmanager
    def holding(self, wait: float) -> Iterator[None]:
        """Open the file once for what this thread reads and then writes, as each opening and closing takes time."""
        with self.writing(wait) as connection:
            self._held = get_ident(), connection
            try:
                yield
            finally:
                self._held = None

    def _own(self) -> Any:
        held = self._held
        return held[1] if held is not None and held[0] == get_ident() else None

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def connection(self) -> object | None:
        """The connection that is used for reading, while it is open."""
        connection: object | None = self._connection
        return connection

    def close(self) -> None:
        """Close the file; further reads open it again."""
        with self._free:
            if not self._readers and not self._writes:
                self._close()


#: The files that are open here, by their real paths.
_FILES: Final[WeakValueDictionary[str, _File]] = WeakValueDictionary()
_FILES_LOCK: Final = Lock()


class DuckDb(Engine):
    """A file of DuckDB. It is open for reading only, except during writes."""

    dialect = "duckdb"
    title = "DuckDB"
    scheme = "duckdb"

    def __init__(self, path: str) -> None:
        with requiring("duckdb", "duckdb"):
            import duckdb
        if not path or path == ":memory:":
            raise OptionError(
                "the address names no file of DuckDB", hint='duckdb:///folder/file.duckdb; "memory:" is a graph in process'
            )
        super().__init__(f"duckdb:///{path}")
        self._library, self._path = duckdb, os.path.realpath(path)
        with _FILES_LOCK:
            self._file = _FILES.get(self._path) or _File(duckdb, self._path)
            _FILES[self._path] = self._file

    def read(self, query: exp.Expr | str) -> list[Row]:
        """Return the rows of a query."""
        text = self.text(query)
        with self._file.reading() as cursor:
            try:
                with watching(cursor.interrupt):
                    rows: list[Row] = cursor.execute(text).fetchall()
                    return rows
            except self._library.InterruptException:
                check()
                raise StoreError("DuckDB ended the query") from None
            except self._library.Error as error:
                check()
                raise StoreError(f"DuckDB does not answer: {first_line(error)}") from None

    @contextmanager
    def writing(self, wait: float) -> Iterator[Writer]:
        """Open a transaction."""
        with self._file.writing(wait) as connection:
            try:
                with watching(connection.interrupt):
                    connection.execute("BEGIN TRANSACTION")
                    yield _DuckWriter(self, connection)
                    connection.execute("COMMIT")
            except self._library.Error as error:
                check()
                raise StoreError(f"DuckDB does not write: {first_line(error)}") from None

    def changing(self, wait: float) -> AbstractContextManager[None]:
        """Open the file once, if it exists."""
        return self._file.holding(wait) if self.is_file() else nullcontext()

    def unchanged(self) -> object | None:
        """Return the connection that is used for reading."""
        return self._file.connection

    def has_schema(self, name: str) -> bool:
        """Tell whether the file has a schema with this name; False without a file."""
        return self.is_file() and bool(self.read(schema_query(name)))

    def is_file(self) -> bool:
        return os.path.isfile(self._path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _DuckWriter:
    """A transaction of DuckDB."""

    def __init__(self, engine: DuckDb, connection: Any) -> None:
        self._engine, self._connection = engine, connection

    def read(self, query: exp.Query) -> list[Row]:
        """Return the rows of a query."""
        rows: list[Row] = self._connection.execute(self._engine.text(query)).fetchall()
        return rows

    def execute(self, statement: exp.Expr) -> None:
        """Run a statement."""
        self._connection.execute(self._engine.text(statement))

    def insert(self, place: str, table: str, columns: Written) -> None:
        """Add rows through Arrow."""
        kinds, values = {name: kind for name, kind, _ in columns}, {name: column_values for name, _, column_values in columns}
        self._connection.register("condgraph_rows", as_arrow(kinds, values))
        into = table_of(table, place)
        rows = exp.Select(expressions=[exp.Star()]).from_(table_of("condgraph_rows"), copy=False)
        self.execute(exp.Insert(this=into, expression=rows))
        self._connection.unregister("condgraph_rows")


# -- PostgreSQL --------------------------------------------------------------------------------------


#: Settings of a connection for texts and times, whatever the server, the database and the user have set.
_SETTINGS: Final = {
    "standard_conforming_strings": "on",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
}


class Postgres(Engine):
    """A database of PostgreSQL. A connection runs one query at a time, and is then reused."""

    dialect = "postgres"
    title = "PostgreSQL"
    scheme = "postgresql"

    def __init__(self, address: Address, user: str | None, password: str | None) -> None:
        with requiring("psycopg", "postgres"):
            import psycopg
        name = address.path.strip("/")
        if not name:
            raise OptionError("the address names no database", hint="postgresql://user@host:5432/database")
        super().__init__(address.plain)
        self._library: Any = psycopg
        self._login = {
            "host": address.host or None, "port": address.port, "dbname": name, "user": user or address.user,
            "password": password or address.password or os.environ.get("PGPASSWORD"), "connect_timeout": _CONNECT,
        }  # fmt: skip
        self._idle: list[Any] = []
        self._lock = Lock()

    def _opened(self, *, read_only: bool) -> Any:
        settings = {**_SETTINGS, "default_transaction_read_only": "on" if read_only else "off"}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        try:
            login = {name: value for name, value in self._login.items() if value is not None}
            return self._library.connect(
                **login, options=options, autocommit=read_only, application_name="condgraph", client_encoding="utf8"
            )
        except self._library.Error as error:
            raise StoreError(f"PostgreSQL at {self.place} cannot be reached: {self._shown(error)}") from None

    def _shown(self, error: Exception) -> str:
        text, password = first_line(error), self._login["password"]
        return text.replace(str(password), "...") if password else text

    def read(self, query: exp.Expr | str) -> list[Row]:
        """Return the rows of a query. A connection that was lost while idle is opened again."""
        text = self.text(query).encode()
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._rows(connection, text)
            except self._library.Error as error:
                if not connection.broken:
                    raise self._wrong(connection, error) from None
                check()
                self.close()
        connection = self._opened(read_only=True)
        try:
            return self._rows(connection, text)
        except self._library.Error as error:
            raise self._wrong(connection, error) from None

    def _rows(self, connection: Any, text: bytes) -> list[Row]:
        result: list[Row] = []
        try:
            with watching(connection.cancel), connection.cursor() as cursor:
                cursor.execute(text)
                while rows := cursor.fetchmany(_TOGETHER):
                    result += rows
                    check()
        except BaseException:
            # A closed connection does not tell whether it was lost.
            if not connection.broken:
                connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        return result

    def _wrong(self, connection: Any, error: Exception) -> StoreError:
        check()
        problem = "has lost the connection" if connection.broken else "does not answer"
        return StoreError(f"PostgreSQL at {self.place} {problem}: {self._shown(error)}")

    @contextmanager
    def writing(self, wait: float) -> Iterator[Writer]:
        """Open a transaction, one at a time in the database: an advisory lock marks the writer."""
        connection = self._opened(read_only=False)
        try:
            until = time.monotonic() + wait
            while not connection.execute("SELECT pg_try_advisory_xact_lock(4851923471)").fetchone()[0]:
                connection.rollback()
                check()
                if time.monotonic() >= until:
                    raise StoreBusyError(
                        f"somebody else writes at {self.place}", hint="load again when that is finished, or wait= for it"
                    )
                time.sleep(_AGAIN)
            with watching(connection.cancel):
                yield _PostgresWriter(self, connection)
                connection.commit()
        except self._library.Error as error:
            check()
            raise StoreError(f"PostgreSQL at {self.place} does not write: {self._shown(error)}") from None
        finally:
            connection.close()

    def has_schema(self, name: str) -> bool:
        """Tell whether the database has a schema with this name."""
        return bool(self.read(schema_query(name)))

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def constraints(self, kind: Type) -> list[exp.ColumnConstraint]:
        """Make texts compare by their bytes, whatever the language of the database."""
        if kind != "text":
            return []
        return [exp.ColumnConstraint(kind=exp.CollateColumnConstraint(this=exp.to_identifier("C", quoted=True)))]

    def index(self, place: str, table: str, names: Sequence[str], kinds: Sequence[Type]) -> exp.Create | None:
        """Return an index; for texts a hash index, since others accept at most 2,704 bytes."""
        on = table_of(table, place)
        columns = [exp.Ordered(this=exp.column(name, quoted=True)) for name in names]
        using = exp.Var(this="HASH" if "text" in kinds else "BTREE")
        return exp.Create(
            this=exp.Index(this=None, table=on, params=exp.IndexParameters(using=using, columns=columns)), kind="INDEX"
        )

    def analyze(self, writer: Writer, table: exp.Table) -> None:
        """Have the server count the rows of a table: until it does so itself, it guesses."""
        writer.execute(exp.Analyze(tables=[table]))


class _PostgresWriter:
    """A transaction of PostgreSQL."""

    def __init__(self, engine: Postgres, connection: Any) -> None:
        self._engine, self._connection = engine, connection

    def read(self, query: exp.Query) -> list[Row]:
        """Return the rows of a query."""
        rows: list[Row] = self._connection.execute(self._engine.text(query).encode()).fetchall()
        return rows

    def execute(self, statement: exp.Expr) -> None:
        """Run a statement."""
        self._connection.execute(self._engine.text(statement).encode())

    def insert(self, place: str, table: str, columns: Written) -> None:
        """Add rows by COPY."""
        into = table_of(table, place)
        names = ", ".join(exp.to_identifier(name, quoted=True).sql(dialect="postgres") for name, *_ in columns)
        # `sqlglot` has no COPY of named columns from the client.
        text = f"COPY {into.sql(dialect='postgres')} ({names}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            for row in watched(list(zip(*(values for *_, values in columns), strict=True))):
                copy.write_row(row)


def schema_query(name: str) -> exp.Select:
    """Return the query for a schema of the database."""
    table = exp.Table(this=exp.to_identifier("schemata"), db=exp.to_identifier("information_schema"))
    matches = exp.EQ(this=exp.column("schema_name"), expression=exp.Literal.string(name))
    return exp.Select(expressions=[exp.column("schema_name")]).from_(table, copy=False).where(matches, copy=False)


def table_query(schema: str, name: str) -> exp.Select:
    """Return the query for a table of a schema."""
    table = exp.Table(this=exp.to_identifier("tables"), db=exp.to_identifier("information_schema"))
    parts = (("table_schema", schema), ("table_name", name))
    matches = [exp.EQ(this=exp.column(column), expression=exp.Literal.string(text)) for column, text in parts]
    return exp.Select(expressions=[exp.column("table_name")]).from_(table, copy=False).where(*matches, copy=False)


def first_line(error: Exception) -> str:
    """Return the first line of an error, at most 300 characters."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
