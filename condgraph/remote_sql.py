"""Graphs in SQL databases (DuckDB files, PostgreSQL and Spark), and existing tables as graphs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from condgraph.engine.addresses import SQL_SCHEMES, parse
from condgraph.engine.bounds import within
from condgraph.engine.errors import OptionError, ReadOnlyError, StoreMissingError, UnsupportedError, nearest, requiring
from condgraph.engine.facts import Source
from condgraph.engine.values import Kind, collapse
from condgraph.loaders.base import Reading
from condgraph.loaders.folder.declared import Declared, of_file
from condgraph.loaders.folder.tab import name_rank
from condgraph.loaders.table.joins import plain, singular
from condgraph.loaders.table.rows import column_names
from condgraph.remote import EditedGraph, EditedStorage
from condgraph.reports import Status
from condgraph.storage import ENGINES

if TYPE_CHECKING:
    from condgraph.engine.store import Store
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.sql.catalogue import Cells, Table
    from condgraph.sql.connections import Engine
    from condgraph.sql.native_store import NativeSqlStore
    from condgraph.sql.store import SqlStore
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport

#: The options of a SQL database.
OPTIONS: Final = ("user", "password", "timeout", "folder")
#: The note on the counts of existing tables.
_ESTIMATES: Final = "these are estimates: rows of a table by its columns, and a view as one row"
_EXAMPLE: Final = "duckdb:///folder/file.duckdb or postgresql://user@host:5432/database"


class SqlStorage(EditedStorage):
    """One graph in a SQL database, which is only queried there."""

    server: SqlStore

    def store(self, engine: str | None) -> Store:
        """Return the store in the database. Raises `OptionError` for any engine."""
        if engine is not None:
            hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}"
            raise OptionError("a graph in a SQL database answers there", hint=hint if engine in ENGINES else "leave `engine` out")
        return self.server

    def rdf(self, base: str | None) -> EmbeddedStore:
        """Raise `UnsupportedError`: only graphs in process have an embedded RDF store."""
        raise UnsupportedError("SQL", ["SPARQL"], hint="graph.snapshot() is the same graph in process, which has an RDF store")

    def content(self) -> str | None:
        """Return the name of the content, as the graph's table states it."""
        return self.server.content()

    def check_writable(self, wait: float = 0.0) -> None:
        """Raise an error if the graph or the engine is read-only."""
        if not self.server.engine.writes:
            self.server.engine.writing(wait)
        super().check_writable(wait)

    def changing(self, wait: float) -> AbstractContextManager[None]:
        """Keep a DuckDB file open for the whole change."""
        return self.server.engine.changing(wait)

    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Raise `UnsupportedError`: vectors are not stored in SQL databases."""
        raise UnsupportedError(
            "SQL", ["vectors of names"], hint="graph.snapshot() is the same graph in process, which has an index"
        )


class SqlGraph(EditedGraph):
    """One graph in a SQL database.

    `place` is `duckdb:///path` for a file, or `postgresql://host/database` for a server, with user and password in
    the address or as options. Each graph is a schema of the database. On Spark (a session or `spark://master`), the
    graph is an export to Parquet in a `folder`, and read-only. `timeout` is the default timeout of calls, in seconds.
    """

    _storage: SqlStorage

    def __init__(self, place: Any, *, graph: str = "default", read_only: bool = False, **options: Any) -> None:
        _check(options)
        timeout = options.pop("timeout", None)
        engine = _engine(place, graph, **options)
        from condgraph.sql.store import SqlStore

        read_only = read_only or not engine.writes
        store = SqlStore(engine, graph=graph, read_only=read_only, timeout=timeout)
        super().__init__(SqlStorage(store, graph=graph, read_only=read_only))

    @property
    def store(self) -> SqlStore:
        """The store that queries the database."""
        return self._storage.server


class NativeSqlStorage(SqlStorage):
    """Existing tables, which condgraph did not write."""

    server: NativeSqlStore

    def content(self) -> str | None:
        """Return None: changes of existing tables cannot be detected."""
        return None

    def check_writable(self, wait: float = 0.0) -> None:
        raise ReadOnlyError(
            f"{self.place} has tables that condgraph did not write, and is only read",
            hint='layout="condgraph" opens, or makes, a graph of condgraph\'s own next to them',
        )

    def status(self, verify: bool) -> Status:
        """Return the estimated counts and the sources of the tables as a graph, with notes on what is left out.
        Raises `OptionError` for `verify`.
        """
        if verify:
            raise OptionError("a graph on a server has no checksums here")
        return Status(
            *(self.place, self.graph, "not written by condgraph", self.server.counts(), self.server.sources(), 0),
            notes=(_ESTIMATES, *self.server.notes),
        )


class NativeSqlGraph(SqlGraph):
    """A database with existing tables: queried in place and never changed. `mapping` is the path of a declaration
    file (`condgraph.toml`), as for loads; `notes` list what is left out.
    """

    def __init__(
        self, engine: Engine, tables: list[Table], cells: Cells, mapping: Path | None, timeout: float | None, notes: list[str]
    ) -> None:
        from condgraph.sql.native import NativeTables, check_tables
        from condgraph.sql.native_store import NativeSqlStore

        name = {"duckdb": Path(engine.place).stem, "spark": "spark"}.get(engine.scheme, engine.place.rpartition("/")[2])
        reading = Reading(Source(name, engine.place), "skip")
        _declare(tables, mapping, reading)
        check_tables(tables, engine.place)
        notes = [*notes, *(problem.message for problem in reading.problems)]
        store = NativeSqlStore(engine, NativeTables(tables, name, cells), timeout=timeout, notes=notes)
        EditedGraph.__init__(self, NativeSqlStorage(store, graph="default", read_only=True))

    def mapping_file(self) -> str:
        """Return the interpretation of the tables as the text of a declaration file. A load with it gives the same
        graph.
        """
        lines = ["guess = false"]
        joins = []
        for table in self.store.native.tables.values():
            lines += ["", f"[tables.{_toml(table.name)}]", f"key = [{', '.join(map(_toml, table.key))}]"]
            if table.label is not None:
                lines.append(f"name = {_toml(table.label)}")
            lines.append(f"relation = {'false' if table.relation is None else _toml(table.relation)}")
            if table.times is not None:
                lines.append(f"times = {_toml(str(table.times))}")
            types = ", ".join(f'{_toml(item.predicate)} = "{_WORDS[item.kind]}"' for item in table.values)
            lines.append(f"types = {{ {types} }}")
            for reference in table.references:
                joins.append(f"{_toml(_place(table.name, reference.columns))} = {_toml(_place(reference.target, reference.keys))}")
        return "\n".join([*lines, "", "[joins]", *joins]) + "\n"

    @property
    def store(self) -> NativeSqlStore:
        """The store that queries the database."""
        return cast("NativeSqlStore", self._storage.server)


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _place(table: str, columns: tuple[str, ...]) -> str:
    return f"{table}.{columns[0]}" if len(columns) == 1 else f"{table}.({', '.join(columns)})"


def _catalogue(engine: Engine) -> tuple[list[Table], list[str], Cells]:
    """Return the tables of a database, notes on what is left out of them, and a reader of their cells."""
    if engine.scheme == "spark":
        from condgraph.sql.spark import SparkCells, of_spark

        return of_spark(engine), [], SparkCells()
    from condgraph.sql.catalogue import catalogue, cells_of

    return *catalogue(engine), cells_of(engine)


def native_graph(place: Any, *, sure: bool, mapping: str | os.PathLike[str] | None, **options: Any) -> NativeSqlGraph | None:
    """Open a database with existing tables.

    Unless the caller is `sure`, returns None if there are no tables, or if there is a graph of condgraph. Raises
    `StoreMissingError` if the caller is `sure` and there are no tables.
    """
    _check(options)
    timeout = options.pop("timeout", None)
    engine = _engine(place, None, **options)
    from condgraph.sql.connections import DuckDb

    try:
        with within(timeout):
            if not sure and isinstance(engine, DuckDb) and not engine.is_file():
                return None
            tables, notes, cells = _catalogue(engine)
            if not sure and any(table.schema.startswith("condgraph ") for table in tables):
                return None
            tables = [table for table in tables if not table.schema.startswith("condgraph ")]
            if not tables:
                if sure:
                    raise StoreMissingError(f"there are no tables in {engine.place}", hint='layout="condgraph" makes a graph there')
                return None
            return NativeSqlGraph(engine, tables, cells, None if mapping is None else Path(mapping), timeout, notes)
    except BaseException:
        engine.close()
        raise


def _declare(tables: list[Table], mapping: Path | None, reading: Reading) -> None:
    """Name the columns as loads do, and apply the mapping file to the tables, on top of what the database declares."""
    from condgraph.sql.catalogue import Reference, ends_of

    headers: dict[str, list[str]] = {}
    for table in tables:
        headers[table.name] = column_names([item.real for item in table.columns], reading)
        names = dict(zip((item.real for item in table.columns), headers[table.name], strict=True))
        for item in table.columns:
            item.predicate = names[item.real]
        table.key = tuple(names[item] for item in table.key)
        for reference in table.references:
            reference.columns = tuple(names[item] for item in reference.columns)
    for table in tables:
        for reference in table.references:
            referenced_table = next(item for item in tables if item.name == reference.target)
            reference.keys = tuple(
                next(column.predicate for column in referenced_table.columns if column.real == item) for item in reference.keys
            )
    declared = Declared() if mapping is None else of_file(mapping, headers)
    if declared.type_columns:
        raise UnsupportedError("SQL", ["`type` in a mapping file"], hint="`relation` names the relation of a table")
    if declared.single_valued:
        reading.warn("`single_valued` of the mapping file is not used: conflicts are looked for in a graph that is loaded")
    by_name = {table.name: table for table in tables}
    for table in tables:
        key = declared.keys.get(table.name, table.key)
        table.certain = key == table.key
        table.key = key
    for join in declared.joins:
        table = by_name[join.table]
        table.references = [item for item in table.references if item.columns != join.columns]
        if len(join.targets) != 1:
            raise UnsupportedError("SQL", [f"{join} to several tables"], hint="load the database instead")
        ((target, columns),) = join.targets
        target_columns = columns or by_name[target].key
        if len(target_columns) != len(join.columns):
            raise declared.wrong(f"{join} joins {len(join.columns)} columns to {len(target_columns)}")
        if target_columns != by_name[target].key and len(target_columns) == 1 and not by_name[target].key:
            by_name[target].key, by_name[target].certain = target_columns, False
        table.references.append(Reference(join.columns, target, target_columns, certain=False))
    for table in tables:
        for item in table.columns:
            type_name = declared.types.get(table.name, {}).get(item.predicate)
            if type_name not in (None, "auto") and type_name != _WORDS[item.kind] and item in table.values:
                raise declared.wrong(
                    f"{table.name}.{item.predicate} is {item.type} in the database, and cannot be read as {type_name}",
                    hint="in a database columns have the types that they have there",
                )
        referenced = any(reference.target == table.name for referring in tables for reference in referring.references)
        ends = ends_of(table)
        only_ends = len(table.references) == len(ends) == 2 and not table.values and not referenced
        relation = declared.relations.get(table.name, only_ends)
        if relation is not False:
            if len(ends) < 2:
                raise declared.wrong(
                    f"rows of {table.name!r} cannot be relations: fewer than two of its columns refer to other tables"
                )
            table.relation = collapse(relation) if isinstance(relation, str) else table.name
        table.times = declared.times.get(table.name)
        for column_name in table.times.columns() if table.times is not None else ():
            item = table.column(column_name)
            if item not in table.values or item.sort not in ("date", "time", "integer", "long"):
                column_type = item.type if item in table.values else "a reference"
                raise declared.wrong(
                    f"{table.name}.{column_name} is {column_type} in the database, and cannot say when a row holds",
                    hint="dates, timestamps and whole numbers of years can; a view can cast it",
                )
        label = declared.names.get(table.name)
        table.label = _label(table) if label is None and declared.guess else label
    for table in tables:
        for reference in table.references:
            if by_name[reference.target].relation is not None:
                raise declared.wrong(f"{table.name!r} refers to rows of {reference.target!r}, which are relations")


_WORDS: Final = {Kind.QUANTITY: "number", Kind.TIME: "time", Kind.TEXT: "text"}


def _label(table: Table) -> str | None:
    """Return the text column that holds the names of rows, judging by its own name, or None."""
    stem = singular(plain(table.name))
    texts = [item.predicate for item in table.values if item.sort == "text"]
    candidates = sorted((rank, at) for at, item in enumerate(texts) if (rank := name_rank(plain(item), stem)) is not None)
    return texts[candidates[0][1]] if candidates else None


def _check(options: dict[str, Any]) -> None:
    unknown_option = next((name for name in options if name not in OPTIONS), None)
    if unknown_option is not None:
        hint = f"it takes: {', '.join(OPTIONS)}"
        raise OptionError(
            f"a SQL database takes no option {unknown_option!r}", candidates=nearest(unknown_option, OPTIONS), hint=hint
        )


def _engine(
    place: Any,
    graph: str | None,
    *,
    user: str | None = None,
    password: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Engine:
    with requiring("sqlglot", "sql"):
        from condgraph.sql.connections import DuckDb, Postgres
    scheme, _, address_rest = place.partition("://") if isinstance(place, str) else ("spark", "", "")
    if scheme.lower() == "spark":
        from condgraph.sql.spark import Spark, session_at

        if user is not None or password is not None:
            raise OptionError("Spark has no login here", hint="leave `user` and `password` out")
        if graph is not None and folder is None:
            raise OptionError("Spark has no tables", hint='condgraph.open(spark, folder="/data/films") asks an export to Parquet')
        if graph is None and folder is not None:
            raise OptionError("folder is where an export is, which needs no mapping", hint="leave `layout` and `mapping` out")
        path = None if folder is None else os.fspath(folder)
        return Spark(session_at(address_rest) if isinstance(place, str) else place, path, graph or "")
    if folder is not None:
        raise OptionError("folder is about Spark", hint="leave `folder` out")
    if scheme.lower() == "duckdb":
        if user is not None or password is not None:
            raise OptionError("a file of DuckDB has no login", hint="leave `user` and `password` out")
        if not address_rest.startswith("/"):
            raise OptionError("an address of DuckDB has three slashes", hint=f"such as {_EXAMPLE}; four begin an absolute path")
        return DuckDb(address_rest[1:])
    return Postgres(parse(place, SQL_SCHEMES, example=_EXAMPLE), user, password)
