"""Spark as a SQL engine: an export to Parquet, read through the views of a session.

A graph is queried in a session of its own within the user's application. It has the user's views and settings, except for
those that queries rely on (`_SETTINGS`). Views are temporary, so nothing is written to a catalogue.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from threading import Lock
from typing import Any, ClassVar, Final, Never
from uuid import uuid4

from sqlglot import exp
from sqlglot.dialects.spark import Spark as SparkDialect
from sqlglot.generators.spark import SparkGenerator

from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, ReadOnlyError, StoreError, StoreMissingError, UnsupportedError, requiring
from condgraph.sql import tables as layout
from condgraph.sql.catalogue import MAX_EXACT, Bound, Column, DuckDbCells, Sort, Table, call, is_within, no_end
from condgraph.sql.connections import Engine, first_line, text, watching
from condgraph.sql.tables import PREFIX
from condgraph.sql.terms import both, case, cast, column, double, known, literal, name, select, table_of, type_of

#: Settings that queries rely on, whatever the user's session has.
_SETTINGS: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    # `${...}` in a text is to stay as it is.
    "spark.sql.variable.substitute": "false",
}
#: Settings that speed up queries over few bytes, whose stages take less time to run than to plan and compile.
_SMALL: Final = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}
_FEW: Final = 64 * 2**20
#: A size in bytes that stands for "unknown" in Spark.
_UNKNOWN: Final = 2**62
_VIEWS: Final = (*layout.TABLES, layout.FACT_RECORDS, layout.ENTITY_RECORDS, layout.ENDS)
_TAGS: Final = count()


class _Generator(SparkGenerator):
    """Prints Spark's SQL. Views have no schema, so the schema becomes part of a view's name."""

    TRANSFORMS: ClassVar = {
        **SparkGenerator.TRANSFORMS,
        exp.TryCast: lambda self, expression: self.cast_sql(expression, safe_prefix="TRY_"),
    }

    def window_sql(self, expression: exp.Window) -> str:
        """Number rows by their stored order if no order is given."""
        if isinstance(expression.this, exp.RowNumber) and not expression.args.get("order"):
            expression = expression.copy()
            expression.set("order", exp.Order(expressions=[exp.Anonymous(this="MONOTONICALLY_INCREASING_ID")]))
        return str(super().window_sql(expression))

    def table_parts(self, expression: exp.Table) -> str:
        """Return the name of a table or view."""
        if not expression.db.startswith(layout.PREFIX):
            return str(super().table_parts(expression))
        view = self.sql(name(_view(expression.db, expression.name)))
        return view if expression.alias else f"{view} AS {self.sql(expression.this)}"


class _Dialect(SparkDialect):
    Generator = _Generator


def printed(query: exp.Expr | str, *, pretty: bool = False) -> str:
    """Return a query in Spark's dialect; text is returned as it is."""
    return text(query, _Dialect, pretty=pretty)


def _view(place: str, table: str) -> str:
    # Sessions that ignore case store names in lower case.
    return f"{place}.{table}".lower()


def _quoted(place: str, table: str) -> str:
    """Return a view's name as Spark's catalogue methods take it."""
    return name(_view(place, table)).sql(dialect=_Dialect)


def session_at(master: str) -> Any:
    """Return this process's session, or one at `master`; if that is empty, Spark's own settings decide."""
    with requiring("pyspark", "spark"):
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    builder = SparkSession.builder.appName("condgraph")
    if master and not master.startswith(("local", "yarn", "k8s:")):
        master = f"spark://{master}"
    try:
        session = (builder.master(master) if master else builder).getOrCreate()
    except (PySparkException, Py4JError, OSError, RuntimeError) as error:
        hint = "it needs Java 17 or later, as JAVA_HOME or on the path"
        raise StoreError(f"Spark does not start: {first_line(error)}", hint=hint) from None
    if master and session.sparkContext.master != master:
        running_at = session.sparkContext.master
        raise OptionError(
            f"this process has an application of Spark at {running_at}", hint="condgraph.open(spark) takes its session"
        )
    return session


def _bytes(rows: Any) -> int:
    """Return Spark's estimate of the bytes of rows, without reading them."""
    return int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


class Spark(Engine):
    """A Spark session and the folder of a Parquet export; without a folder, the session's own tables are queried."""

    dialect = "spark"
    title = "Spark"
    scheme = "spark"
    writes = False

    def __init__(self, session: Any, folder: str | None, graph: str) -> None:
        if "connect" in type(session).__module__:
            raise UnsupportedError("Spark", ["sessions of Spark Connect"], hint="a session whose driver is this process")
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        # A stopped session has lost its parts, or its Java process is gone.
        self._errors = (PySparkException, Py4JError, ConnectionError, AttributeError, AssertionError)
        super().__init__(f"spark://{str(session.sparkContext.master).removeprefix('spark://')}")
        # A tag for its views, since others of the same name may be open in the session.
        self._tag = uuid4().hex[:8]
        self._session_given, self._folder, self._graph = session, folder and folder.rstrip("/"), self.schema(graph)
        self._own: Any = None
        self._lock = Lock()

    def text(self, query: exp.Expr | str, *, pretty: bool = False) -> str:
        """Return a query in Spark's dialect; text is returned as it is."""
        return printed(query, pretty=pretty)

    def schema(self, graph: str) -> str:
        """Return the prefix of a graph's view names."""
        return f"{super().schema(graph)} {self._tag}"

    # -- the session -------------------------------------------------------------------------------

    def _session(self) -> Any:
        with self._lock, self._failing():
            if self._own is None:
                size = 0
                for table, kinds in layout.TABLES.items() if self._folder else ():
                    # Given the types, Spark runs no job to look them up in the files.
                    types = ", ".join(f"`{field}` {type_of(kind).sql(dialect=_Dialect)}" for field, kind in kinds.items())
                    # Spark reads paths as patterns.
                    path = re.sub(r"([\\*?\[\]{}])", r"\\\1", str(self._folder))
                    rows = self._session_given.read.schema(types).parquet(f"{path}/{table}")
                    rows.createOrReplaceTempView(_quoted(self._graph, table))
                    size += _bytes(rows)
                for view, query in layout.views(lambda table: table_of(table, self._graph)) if self._folder else ():
                    self._session_given.sql(self.text(query)).createOrReplaceTempView(_quoted(self._graph, view))
                session = type(self._session_given)(
                    self._session_given.sparkContext, self._session_given._jsparkSession.cloneSession()
                )
                settings = dict(_SETTINGS)
                if self._folder and size < _FEW:
                    partitions = min(session.sparkContext.defaultParallelism, int(session.conf.get("spark.sql.shuffle.partitions")))
                    settings |= _SMALL | {"spark.sql.shuffle.partitions": str(partitions)}
                for setting, value in settings.items():
                    session.conf.set(setting, value)
                self._own = session
            return self._own

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            check()
            if self._is_lost():
                raise StoreError(f"Spark at {self.place} has lost the session", hint="open the graph with another one") from None
            message = first_line(error)
            if "PATH_NOT_FOUND" in message:
                hint = 'g.export(folder, to="parquet") makes one'
                raise StoreMissingError(f"there is no export of a graph in {self._folder}", hint=hint) from None
            again = "refresh() reads the files anew" if self._folder else None
            raise StoreError(f"Spark at {self.place} does not answer: {message}", hint=again) from None

    def _is_lost(self) -> bool:
        try:
            context = self._session_given.sparkContext._jsc
            return context is None or bool(context.sc().isStopped())
        except self._errors:
            return True

    def close_subclasses(self, place: str) -> None:
        """Make the view of the closed subclass relation, at the first call.

        Recursive queries in Spark cannot exclude what they have already found, so they would never end in a cycle.
        """
        session = self._session()
        with self._lock, self._failing():
            if session.catalog.tableExists(_quoted(place, layout.BELOW)):
                return
            query = select(column("concept"), column("parent")).from_(table_of("subclass", place), copy=False)
            pairs, size = session.sql(self.text(query)).distinct().persist(), -1
            while size != (size := pairs.count()):
                longer = pairs.join(pairs.toDF("parent", "above"), "parent").select("concept", "above")
                pairs = pairs.union(longer).distinct().persist()
            pairs.createOrReplaceTempView(_quoted(place, layout.BELOW))

    def listed(self) -> list[Any]:
        """Return the tables and views of the current database, and the temporary views."""
        session = self._session()
        with self._failing():
            return list(session.catalog.listTables())

    def described(self, table: str, schema: str) -> tuple[list[Any], int | None]:
        """Return a table's fields and Spark's estimate of its bytes, or None if Spark does not know or must compute them."""
        session = self._session()
        with self._failing():
            rows = session.table(table_of(table, schema or None).sql(dialect=_Dialect))
            plan = rows._jdf.queryExecution().optimizedPlan()
            size = _bytes(rows) if plan.children().isEmpty() else _UNKNOWN
            return list(rows.schema.fields), size if size < _UNKNOWN else None

    # -- queries -----------------------------------------------------------------------------------

    def quoted(self, text: str) -> str:
        """Return a text as it is written within quotes."""
        return printed(exp.Literal.string(text))[1:-1]

    def read(self, query: exp.Expr | str) -> list[layout.Row]:
        """Return the rows of a query."""
        session, tag = self._session(), f"condgraph-{next(_TAGS)}"
        # Unlike the application's tags, a session's tags can only be cancelled by their own thread.
        context = session.sparkContext
        with self._failing(), watching(lambda: context.cancelJobsWithTag(tag)), ExitStack() as views:
            context.addJobTag(tag)
            try:
                return list(map(tuple, session.sql(self.text(self._cached(query, tag, views))).collect()))
            finally:
                with suppress(*self._errors):
                    context.removeJobTag(tag)

    def _cached(self, query: exp.Expr | str, tag: str, views: ExitStack) -> exp.Expr | str:
        """Return a query whose parts become views while it runs, if some are used twice.

        Those are cached, since Spark otherwise expands a part wherever it is used.
        """
        if not isinstance(query, exp.Query):
            return query
        parts = [part.alias for part in query.ctes]
        uses = Counter(table.name for table in query.find_all(exp.Table) if not table.db)
        if all(uses[part] < 2 for part in parts):
            return query
        query = query.copy()
        for table in query.find_all(exp.Table):
            if not table.db and table.name in parts:
                table.set("alias", exp.TableAlias(this=name(table.alias or table.name)))
                table.set("this", name(f"{layout.PREFIX}{tag} {table.name}"))
        session = self._session()
        for part in query.ctes:
            rows, view = session.sql(self.text(part.this)), name(f"{layout.PREFIX}{tag} {part.alias}")
            if uses[part.alias] > 1:
                views.callback(rows.persist().unpersist)
            rows.createOrReplaceTempView(view.sql(dialect=_Dialect))
            views.callback(session.catalog.dropTempView, view.name)
        query.set("with_", None)
        return query

    def writing(self, wait: float) -> Never:
        """Raise `ReadOnlyError`."""
        raise ReadOnlyError(f"{self.place} is only read", hint="load the graph in process, and export it again")

    def has_schema(self, name: str) -> bool:
        """Tell whether this is the graph and its export exists."""
        try:
            return self._folder is not None and name == self._graph and self._session() is not None
        except StoreMissingError:
            return False

    def unchanged(self) -> object | None:
        """Return the session, whose views are of the files that existed when it was opened."""
        session: object | None = self._own
        return session

    def refresh(self) -> None:
        """Look for the files again."""
        with self._lock:
            self._own = None

    def close(self) -> None:
        """Drop the views; the application belongs to the user."""
        with self._lock, suppress(*self._errors):
            session, self._own = self._own, None
            for view in _VIEWS if session is not None and self._folder else ():
                self._session_given.catalog.dropTempView(_view(self._graph, view))


# -- tables ------------------------------------------------------------------------------------------
# Spark's tables and views as an existing database: what the catalogue says, and how cells are read.


#: The assumed bytes of a row, since Spark has not counted a table's rows.
_ROW: Final = 100
_SORTS: Final[dict[str, Sort]] = {
    **dict.fromkeys(("tinyint", "smallint", "int"), "integer"), "bigint": "long", "float": "single", "double": "double",
    "date": "date", "timestamp": "time", "timestamp_ntz": "time", "binary": "bytes", "string": "text",
}  # fmt: skip


def of_spark(engine: Engine) -> list[Table]:
    """Return the tables and views of the current database, and the temporary views; Spark declares no keys."""
    assert isinstance(engine, Spark)
    tables = []
    for listing in engine.listed():
        if listing.name.startswith(PREFIX):
            continue
        schema = "" if listing.isTemporary else listing.namespace[-1]
        fields, size = engine.described(listing.name, schema)
        table = Table(listing.name, schema, listing.name, max(1, (size or 1) // _ROW), is_view=size is None)
        table.columns = [_column(field.name, field.dataType.simpleString()) for field in fields]
        tables.append(table)
    return sorted(tables, key=lambda table: table.name)


def _column(real: str, kind: str) -> Column:
    word = re.split(r"[(< ]", kind, maxsplit=1)[0]
    if word == "decimal":
        width, scale = map(int, kind[8:-1].split(","))
        return Column(real, real, kind, "decimal", (width, scale))
    text = word in ("char", "varchar")
    sort: Sort = "nested" if word in ("array", "map", "struct") else "text" if text else _SORTS.get(word, "other")
    return Column(real, real, kind, sort, None, word == "string" and "collate" in kind)


class SparkCells(DuckDbCells):
    """Spark's cells, in a session in UTC."""

    def bytewise(self, text: exp.Expr) -> exp.Expr:
        """Order text by code point."""
        return exp.Collate(this=exp.Paren(this=text), expression=name("UTF8_BINARY"))

    def is_given(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return a test for a value; an end of time must be finite."""
        if isinstance(item, Bound) and not item.whole:
            return both([known(cell), exp.LT(this=cell.copy(), expression=no_end(item))])
        return super().is_given(item, cell)

    def is_finite(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        """Return a test for finite numbers; only floats may be infinite."""
        if item.sort not in ("single", "double"):
            return None
        return exp.NEQ(this=exp.Abs(this=cell.copy()), expression=cast(literal("Infinity"), "double"))

    def seconds(self, cell: exp.Expr) -> exp.Expr:
        """Return the seconds, with fractions, as a decimal number."""
        moment = exp.Cast(this=cell, to=exp.DataType.build("timestamp"))
        return exp.Div(this=_decimal(call("UNIX_MICROS", moment), 19), expression=_decimal(literal(1_000_000), 7))

    def number(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return a number as a double. A single float is read from its text; other numbers are cast to the nearest float."""
        return cast(cast(cell, "text") if item.sort == "single" else cell, "double")

    def nearest(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return the nearest 64-bit integer, or decimal number of the column's scale.

        A cast to decimal takes the digits that a float is printed with, so larger floats are converted in two 64-bit halves.
        """
        number = self.number(item, cell)
        whole, is_long = cast(number.copy(), "bigint"), exp.LT(this=number.copy(), expression=double(2.0**63))
        if item.whole:
            return exp.Case(ifs=[exp.If(this=is_long, true=whole)])
        assert item.digits is not None
        kind = exp.DataType.build(f"decimal(38, {item.digits[1]})")
        size = exp.Abs(this=number.copy())
        high = exp.Floor(this=exp.Div(this=size.copy(), expression=double(2.0**64)))
        remainder = exp.Paren(this=exp.Sub(this=size.copy(), expression=exp.Mul(this=high.copy(), expression=double(2.0**64))))
        low = cast(exp.Div(this=remainder, expression=double(2.0**11)), "bigint")
        upper, lower = (_times(half, factor) for half, factor in ((high, 2**64), (low, 2**11)))
        sign = _decimal(call("SIGN", number.copy()), 1)
        large = exp.Mul(this=exp.Paren(this=exp.Add(this=upper, expression=lower)), expression=sign)
        from_text = exp.TryCast(this=cast(number.copy(), "text"), to=kind)
        fits_long = exp.LT(this=size, expression=double(2.0**63))
        otherwise = case([(fits_long, exp.TryCast(this=whole, to=kind.copy()))], exp.TryCast(this=large, to=kind.copy()))
        return case([(is_within(number, MAX_EXACT), from_text)], otherwise)


def _times(cell: exp.Expr, number: int) -> exp.Mul:
    return exp.Mul(this=_decimal(cell, 19), expression=_decimal(literal(str(number)), 20))


def _decimal(cell: exp.Expr, digits: int) -> exp.Cast:
    return exp.Cast(this=cell, to=exp.DataType.build(f"decimal({digits}, 0)"))
