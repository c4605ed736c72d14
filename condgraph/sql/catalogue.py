"""The catalogue of an existing database: tables, columns with types, keys, and expressions that read cells of each type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, TypeAlias

import sqlglot
from sqlglot import exp

from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.row_times import LAST, RowTimes
from condgraph.engine.values import DAY_SECONDS, Kind, Precision, civil
from condgraph.sql.connections import DuckDb, Engine, Postgres
from condgraph.sql.terms import NULL, both, case, cast, double, either, known, literal, name

#: The content of a column: whole numbers that are exact as floats, and others; floats of both sizes;
#: decimals; dates and timestamps; bytes; lists and structures; texts; anything else, which is read as the
#: database prints it.
Sort: TypeAlias = Literal["integer", "long", "single", "double", "decimal", "date", "time", "bytes", "nested", "text", "other"]
_NUMBERS: Final = ("integer", "long", "single", "double", "decimal")


@dataclass(slots=True)
class Column:
    """A column: its predicate, its name and type in the database, and its content.

    `digits` are the precision and scale of a decimal; None if it may have any. `ordered` tells whether the database
    compares its texts by language rules, `untidy` whether some cell has white space that texts of a graph do not have,
    `infinite` whether some number or time is infinite, which is a text.
    """

    predicate: str
    real: str
    type: str
    sort: Sort
    digits: tuple[int, int] | None = None
    ordered: bool = False
    untidy: bool = False
    infinite: bool = False

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The types of its values: one, or also text where some are infinite."""
        return (self.kind, Kind.TEXT) if self.infinite else (self.kind,)

    def moment(self, text: str) -> exp.Expr:
        """Return a day, or a moment in UTC, as a value of this column of times."""
        if self.sort == "date":
            kind = "date"
        elif self.type.upper() in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"):
            kind, text = "timestamptz", f"{text}+00" if text[-1].isdigit() or text[-1] == ";" else text
        else:
            kind = "timestamp"
        return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind))

    @property
    def kind(self) -> Kind:
        """The type of its values."""
        if self.sort in _NUMBERS:
            return Kind.QUANTITY
        return Kind.TIME if self.sort in ("date", "time") else Kind.TEXT

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers."""
        return self.sort in ("integer", "long")

    @property
    def inexact(self) -> bool:
        """Whether it may hold numbers that are not exact as floats."""
        return self.sort == "long" or (self.sort == "decimal" and (self.digits is None or self.digits[0] > DIGITS))


@dataclass(slots=True)
class Bound(Column):
    """A column as the start, the end or the point of a row's times; whole numbers are years.

    With `excluded`, it is the first moment at which the row no longer holds.
    """

    excluded: bool = False

    @property
    def kind(self) -> Kind:
        """Time, whatever the column holds."""
        return Kind.TIME


@dataclass(slots=True)
class Reference:
    """Columns that hold keys of another table, by predicates; `certain` if the database enforces it."""

    columns: tuple[str, ...]
    target: str
    keys: tuple[str, ...]
    certain: bool = True


@dataclass(slots=True)
class Table:
    """A table or view.

    `key`, `label`, `times` and columns of references are predicates; `relation` is the predicate of rows that are
    relations. The key is `certain` if the database enforces it; rows of a view are not counted, as that may take any
    time.
    """

    name: str
    schema: str
    real: str
    rows: int
    columns: list[Column] = field(default_factory=list)
    key: tuple[str, ...] = ()
    references: list[Reference] = field(default_factory=list)
    label: str | None = None
    relation: str | None = None
    certain: bool = True
    is_view: bool = False
    times: RowTimes | None = None

    def column(self, predicate: str) -> Column:
        """Return the column of a predicate."""
        return next(item for item in self.columns if item.predicate == predicate)

    @property
    def row_number(self) -> str:
        """A name for row numbers that no column has."""
        result, used_names = "row", {item.real.lower() for item in self.columns}
        while result in used_names:
            result += "_"
        return result

    @property
    def values(self) -> list[Column]:
        """The columns that are not references."""
        reference_columns = {item.columns[0] for item in self.references if len(item.columns) == 1}
        return [item for item in self.columns if item.predicate not in reference_columns]

    @property
    def bounds(self) -> list[tuple[str, Bound]]:
        """The columns with the times of a row, by the qualifiers that they give each of its statements."""
        if self.times is None:
            return []
        by_qualifier = ((START_TIME, self.times.start), (END_TIME, self.times.end), (POINT_IN_TIME, self.times.point))
        time_columns = [(key, self.column(predicate)) for key, predicate in by_qualifier if predicate]
        return [
            (
                key,
                Bound(
                    source_column.predicate,
                    source_column.real,
                    source_column.type,
                    source_column.sort,
                    excluded=self.times.excluded and key == END_TIME,
                ),
            )
            for key, source_column in time_columns
        ]


def ends_of(table: Table) -> list[Reference]:
    """Return the references of one column, in the order of the columns."""
    order = [item.predicate for item in table.columns]
    return sorted((item for item in table.references if len(item.columns) == 1), key=lambda item: order.index(item.columns[0]))


# -- DuckDB ------------------------------------------------------------------------------------------

_COLUMNS: Final = """
    SELECT c.schema_name, c.table_name, c.column_name, c.data_type, t.estimated_size, EXISTS (
      FROM (SELECT database_name, sql FROM duckdb_tables() UNION ALL SELECT database_name, sql FROM duckdb_views()) AS made
      WHERE made.database_name = current_database() AND made.sql ILIKE '%collate%'
    )
    FROM duckdb_columns() AS c LEFT JOIN duckdb_tables() AS t ON t.table_oid = c.table_oid AND t.database_oid = c.database_oid
    WHERE NOT c.internal AND c.database_name = current_database() ORDER BY c.schema_name, c.table_name, c.column_index"""
_KEYS: Final = """
    SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
    FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') AND database_name = current_database()
    ORDER BY schema_name, table_name, constraint_index"""


def _of_duckdb(engine: DuckDb) -> list[Table]:
    tables: dict[tuple[str, str], Table] = {}
    for schema, real, column_name, kind, rows, collated in engine.read(sqlglot.parse_one(_COLUMNS, dialect="duckdb")):
        table = tables.setdefault((schema, real), Table(real, schema, real, 1 if rows is None else rows, is_view=rows is None))
        item = _duckdb_column(column_name, kind)
        # The catalogue does not tell which columns have a collation.
        item.ordered = collated and item.sort == "text"
        table.columns.append(item)
    _qualify_names(list(tables.values()))
    for schema, real, sort, columns, other, target_columns in engine.read(sqlglot.parse_one(_KEYS, dialect="duckdb")):
        table = tables[schema, real]
        if sort == "PRIMARY KEY":
            table.key = tuple(columns)
        else:
            table.references.append(Reference(tuple(columns), tables[schema, other].name, tuple(target_columns)))
    return list(tables.values())


def _duckdb_column(real: str, kind: str) -> Column:
    digits: tuple[int, int] | None = None
    sort: Sort = _DUCKDB.get(kind, "other")
    if kind.startswith("DECIMAL"):
        width, scale = map(int, kind[8:-1].split(","))
        sort, digits = "decimal", (width, scale)
    elif kind.startswith("TIMESTAMP"):
        sort = "time"
    elif kind.endswith("]") or kind.startswith(("STRUCT", "MAP")):
        sort = "nested"
    return Column(real, real, kind, sort, digits)


_DUCKDB: Final[dict[str, Sort]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"), "integer"),
    **dict.fromkeys(("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"), "long"),
    "FLOAT": "single", "DOUBLE": "double", "DATE": "date", "BLOB": "bytes", "VARCHAR": "text",
}  # fmt: skip


# -- PostgreSQL --------------------------------------------------------------------------------------

_PG_TABLES: Final = """
    SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relispopulated,
      has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
      CASE c.relkind
        WHEN 'p' THEN (
          SELECT sum(greatest(k.reltuples, 0)) FROM pg_partition_tree(c.oid) AS p JOIN pg_class AS k ON k.oid = p.relid
          WHERE p.isleaf
        )
        WHEN 'v' THEN NULL ELSE c.reltuples END::double precision,
      pg_relation_size(c.oid)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
      AND NOT starts_with(n.nspname, 'pg_') AND n.nspname <> 'information_schema'
    ORDER BY n.nspname, c.relname"""
_PG_COLUMNS: Final = """
    SELECT a.attrelid::bigint, a.attnum, a.attname, a.atttypid::bigint, a.atttypmod, l.collname
    FROM pg_attribute AS a LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
    WHERE a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"""
_PG_TYPES: Final = """
    SELECT oid::bigint, typname, typcategory::text, typbasetype::bigint, typtypmod FROM pg_type
    WHERE typtype <> 'c' OR oid IN (SELECT atttypid FROM pg_attribute)"""
_PG_KEYS: Final = """
    SELECT contype::text, conrelid::bigint, conkey::int[], confrelid::bigint, confkey::int[], convalidated FROM pg_constraint
    WHERE contype IN ('p', 'f') AND conrelid <> 0 AND conparentid = 0 ORDER BY conrelid, conname"""
_POSTGRES: Final[dict[str, Sort]] = {
    "int2": "integer", "int4": "integer", "int8": "long", "float4": "single", "float8": "double", "numeric": "decimal",
    "money": "decimal", "date": "date", "timestamp": "time", "timestamptz": "time", "bytea": "bytes", "text": "text",
    "varchar": "text",
}  # fmt: skip
#: Assumed bytes of a row, if the server has not counted the rows of a table.
_ROW: Final = 100


def _of_postgres(engine: Postgres) -> tuple[list[Table], list[str]]:
    def rows(text: str) -> list[Any]:
        return engine.read(sqlglot.parse_one(text, dialect="postgres"))

    tables: dict[int, Table] = {}
    left_out: dict[int, tuple[str, str]] = {}
    for oid, schema, real, sort, filled, readable, count, size in rows(_PG_TABLES):
        if not readable or not filled:
            why = "is a materialised view that was not filled" if readable else "may not be read by this user"
            left_out[oid] = (f"{schema}.{real}", why)
            continue
        count = 1 if count is None else size // _ROW if count < 0 else int(count)
        tables[oid] = Table(real, schema, real, count, is_view=sort == "v")
    types = {oid: rest for oid, *rest in rows(_PG_TYPES)}
    numbers: dict[int, dict[int, str]] = {}
    for oid, number, real, kind, modifier, collation in rows(_PG_COLUMNS):
        if oid in tables:
            tables[oid].columns.append(_postgres_column(real, types, kind, modifier, collation))
            numbers.setdefault(oid, {})[number] = real
    _qualify_names(list(tables.values()))
    notes = [f"{omitted!r} {why}: left out" for omitted, why in left_out.values() if not omitted.startswith("condgraph ")]
    for sort, oid, key, other, target_key, validated in rows(_PG_KEYS):
        if oid not in tables:
            continue
        columns = tuple(numbers[oid][item] for item in key)
        if sort == "p":
            tables[oid].key = columns
        elif other in tables:
            target_columns = tuple(numbers[other][item] for item in target_key)
            tables[oid].references.append(Reference(columns, tables[other].name, target_columns, certain=validated))
        elif other in left_out:
            named_columns = " + ".join(map(repr, columns))
            notes.append(f"{named_columns} of {tables[oid].name!r} refers to {left_out[other][0]!r}, which is left out: values")
    return list(tables.values()), notes


def _postgres_column(real: str, types: dict[int, list[Any]], kind: int, modifier: int, collation: str | None) -> Column:
    type_name, category, base, own = types[kind]
    shown = type_name
    while base:
        # A domain has the type it is based on.
        modifier = own if modifier < 0 else modifier
        type_name, category, base, own = types[base]
    sort: Sort = _POSTGRES.get(type_name, "other")
    digits = None
    if category == "A":
        sort = "nested"
    elif type_name == "numeric" and modifier >= 4:
        digits = ((modifier - 4) >> 16) & 0xFFFF, ((modifier - 4) & 0x7FF ^ 0x400) - 0x400
    return Column(real, real, shown, sort, digits, collation not in (None, "default", "C", "POSIX"))


def _qualify_names(tables: Sequence[Table]) -> None:
    """Add the schemas to the names of tables that share a name."""
    names = [table.real for table in tables]
    for table in tables:
        if names.count(table.real) > 1:
            table.name = f"{table.schema}.{table.real}"


def catalogue(engine: Engine) -> tuple[list[Table], list[str]]:
    """Return the tables and views of a database with declared keys, and notes about omitted ones: two to four queries."""
    notes: list[str] = []
    if isinstance(engine, DuckDb):
        tables = _of_duckdb(engine)
    else:
        assert isinstance(engine, Postgres)
        tables, notes = _of_postgres(engine)
    return sorted(tables, key=lambda table: table.name), notes


# -- Cells -------------------------------------------------------------------------------------------


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a function of the database."""
    return exp.Anonymous(this=function, expressions=list(arguments))


class Cells(ABC):
    """Expressions for the cells of a database; a cell is an expression for a column."""

    #: The flag that makes the function replace every match of a regular expression, if `sqlglot` does not
    #: set it.
    every_match: ClassVar[exp.Expr | None] = None

    @abstractmethod
    def constant(self, item: Column, whole: exp.Expr | None, text: exp.Expr, size: tuple[int, int]) -> exp.Expr | None:
        """Return a constant with which numbers of a column can be compared directly; None if they cannot.

        It is a whole number of 63 bits, or any number as a text, with the digits before and after its point.
        """

    def plain(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return a number in the form that the database compares."""
        return cell

    def ordered(self, items: Sequence[Column]) -> bool:
        """Tell whether the database has one exact order for the numbers of some columns."""
        return all(item.whole for item in items) or len({item.type for item in items}) == 1

    def value(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return a cell whose texts compare as everywhere: white space is normalised, and texts compare by bytes."""
        if item.sort != "text":
            return cell
        # The collation comes first: regular expressions do not accept every collation.
        cell = self.bytewise(cell) if item.ordered else cell
        return self.tidied(cell) if item.untidy else cell

    def tidied(self, text: exp.Expr) -> exp.Expr:
        """Return a text with single blanks for white space, and none at its ends."""
        pattern = literal(f"[{_BLANK}]+")
        blanks = exp.RegexpReplace(this=text, expression=pattern, replacement=literal(" "), modifiers=self.every_match)
        return exp.Trim(this=blanks, expression=literal(" "))

    def bytewise(self, text: exp.Expr) -> exp.Expr:
        """Return a text that is compared by its bytes, whatever the order of its column."""
        return exp.Collate(this=exp.Paren(this=text), expression=name("C"))

    def by_bytes(self, text: exp.Expr) -> exp.Expr:
        """Return a text that is ordered by its bytes; unchanged if columns have no other order."""
        return text

    def is_given(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return a test that a cell has a value: NULL, the empty text and NaN are none."""
        if item.kind is Kind.TEXT:
            return is_filled(self.text(item, cell))
        if isinstance(item, Bound):
            if item.whole:
                low, high = (exp.Literal.number(year) for year in (_FIRST_YEAR, _LAST_YEAR - 1))
                return exp.Between(this=cell, low=low, high=high)
            last = item.moment("infinity") if item.type == "TIMESTAMP_NS" else no_end(item)
            return both([exp.GT(this=cell, expression=item.moment("-infinity")), exp.LT(this=cell.copy(), expression=last)])
        nan = self.is_nan(item, cell)
        return known(cell) if nan is None else both([known(cell.copy()), exp.not_(nan)])

    def text(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return a cell that is neither a number nor a time as text: lists and structures as JSON, bytes as hexadecimal digits."""
        if item.sort == "bytes":
            return exp.DPipe(this=literal("0x"), expression=self.hexadecimal(cell))
        if item.sort == "text":
            return self.value(item, cell)
        text = cast(call("TO_JSON", cell) if item.sort == "nested" else cell, "text")
        return self.tidied(text) if item.untidy else text

    @abstractmethod
    def is_nan(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        """Return a test that a number is NaN; None if the column cannot have NaN."""

    @abstractmethod
    def is_finite(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        """Return a test that a number or time is finite; None if all are."""

    @abstractmethod
    def seconds(self, cell: exp.Expr) -> exp.Expr:
        """Return the seconds of a time since 1970."""

    @abstractmethod
    def hexadecimal(self, cell: exp.Expr) -> exp.Expr:
        """Return bytes as hexadecimal digits."""

    @abstractmethod
    def number(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return a number as the nearest float."""

    @abstractmethod
    def nearest(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return the nearest float of a number that may have more digits, as the number it is printed as (`format_number`).

        NULL if it is larger than any cell of the column.
        """

    def bound(self, item: Bound, cell: exp.Expr) -> tuple[exp.Expr, exp.Expr, Precision]:
        """Return the first second of a bound's time, the first second after it, and its precision."""
        if item.whole:
            year = cast(cell, "bigint")
            start, stop = _new_year(year, 1), _new_year(year, 0)
        else:
            start = cast(call("FLOOR", self.seconds(cell)), "bigint")
            stop = exp.Add(this=start, expression=literal(DAY_SECONDS if item.sort == "date" else 1))
        if item.excluded:
            # The last day before a day, and the last second before any other time
            # (`row_times.last_before`).
            length = literal(DAY_SECONDS if item.sort == "date" else 1)
            start, stop = exp.Sub(this=exp.Paren(this=start), expression=length), start
        years = item.whole and not item.excluded
        return start, stop, Precision.YEAR if years else Precision.DAY if item.sort == "date" else Precision.SECOND

    def exactly(self, item: Column, cell: exp.Expr) -> dict[str, exp.Expr]:
        """Return the text of a number that is not exact as a float, and its sort key among those with the same float
        (`values.tie_break`).
        """
        text, nearest = cast(cell.copy(), "text"), self.nearest(item, cell.copy())
        digits = places = _trimmed("LEADING", text, "-")
        short: exp.Expr = text
        leading: exp.Expr = literal(0)
        if not item.whole:
            filled = exp.Like(this=text.copy(), expression=literal("%.%"))
            short = case([(filled, _trimmed("TRAILING", _trimmed("TRAILING", text.copy(), "0"), "."))], text.copy())
            before, after = (call("SPLIT_PART", digits.copy(), literal("."), literal(part)) for part in (1, 2))
            places = _trimmed("LEADING", before, "0")
            zeros = exp.Sub(this=call("LENGTH", after), expression=call("LENGTH", _trimmed("LEADING", after.copy(), "0")))
            leading = case([(exp.EQ(this=places.copy(), expression=literal("")), zeros)], literal(0))
            digits = _trimmed("LEADING", call("REPLACE", digits, literal("."), literal("")), "0")
        exponent = exp.Add(this=call("LENGTH", places.copy()), expression=exp.Sub(this=literal(49_999), expression=leading))
        figures = _trimmed("TRAILING", digits, "0")

        def ordered(sign: str, size: exp.Expr, shown: exp.Expr) -> exp.Expr:
            padded = call("LPAD", cast(size, "text"), literal(6), literal("0"))
            return exp.DPipe(this=exp.DPipe(this=literal(sign), expression=padded), expression=shown)

        reverse = call("TRANSLATE", figures.copy(), literal("0123456789"), literal("9876543210"))
        below = exp.Sub(this=literal(999_999), expression=exp.Paren(this=exponent.copy()))
        positive = exp.GT(this=cell.copy(), expression=literal(0))
        order = case(
            [(positive, ordered("2", exponent, figures))],
            ordered("0", below, exp.DPipe(this=reverse, expression=literal("~"))),
        )
        less = exp.LT(this=cell.copy(), expression=nearest.copy())
        # A float larger than any cell is above or below all of them.
        unknown = both([exp.Is(this=nearest.copy(), expression=NULL.copy()), positive.copy()])
        side = case([(either([less, unknown]), literal("0"))], literal("2"))
        same: exp.Expr = exp.EQ(this=nearest, expression=cell.copy())
        bound = _max_exact(item)
        if bound is not None:
            same = either([is_within(cell, bound), same])
        parts = {"exact": short.copy(), "tie": exp.DPipe(this=side, expression=order)}
        return {part: case([(same.copy(), NULL.copy())], value) for part, value in parts.items()}


#: Range of years of times: those from the last on mean no end.
_FIRST_YEAR: Final = -100_000_000_000
_LAST_YEAR: Final = civil(LAST.start // DAY_SECONDS)[0]
#: Days from 1 January of the year 1 to that of 1970.
_DAYS: Final = 719_162


def _new_year(year: exp.Expr, before: int) -> exp.Expr:
    """Return the first second of a year or, with 0 for `before`, of the next one."""
    past = exp.Paren(this=exp.Sub(this=year, expression=literal(before)))
    days: exp.Expr = exp.Mul(this=past, expression=literal(365))
    for length, sort in ((4, exp.Add), (100, exp.Sub), (400, exp.Add)):
        leap = call("FLOOR", exp.Div(this=cast(past.copy(), "double"), expression=literal(length)))
        days = sort(this=days, expression=cast(leap, "bigint"))
    days = exp.Paren(this=exp.Sub(this=days, expression=literal(_DAYS)))
    return exp.Mul(this=days, expression=literal(DAY_SECONDS))


#: Digits of a decimal that every float holds.
DIGITS: Final = 15
#: From here on, floats are whole numbers.
MAX_EXACT: Final = 2**53
#: The error of a query that meets a number beyond all floats.
TOO_LONG: Final = "a number is too large or too small to be compared here"
#: White space as in `str.split`.
_BLANK: Final = "".join(filter(str.isspace, map(chr, range(0x3001))))


#: White space that texts of a graph do not have.
_UNTIDY: Final = f"^ | $|  |[{_BLANK.replace(' ', '')}]"


def is_untidy(text: exp.Expr) -> exp.Expr:
    """Return a test that a text has white space other than single blanks between words."""
    return exp.RegexpLike(this=text, expression=literal(_UNTIDY))


def is_filled(text: exp.Expr) -> exp.Expr:
    """Return a test that a text is more than white space."""
    return exp.NEQ(this=exp.Trim(this=text, expression=literal(_BLANK)), expression=literal(""))


def _trimmed(side: str, text: exp.Expr, mark: str) -> exp.Expr:
    return exp.Trim(this=text, expression=literal(mark), position=side)


def _max_exact(item: Column) -> int | None:
    """Return a number up to which all numbers of a column are exact as floats; None if there is none."""
    if item.whole:
        return MAX_EXACT
    if item.digits is None or item.digits[1] > DIGITS:
        return None
    return int(10 ** (DIGITS - item.digits[1]))


def no_end(item: Bound) -> exp.Expr:
    """Return the first day or second that means no end."""
    return item.moment(f"{_LAST_YEAR}-01-01" if item.sort == "date" else f"{_LAST_YEAR}-01-01 00:00:00")


def is_within(cell: exp.Expr, bound: int) -> exp.Expr:
    """Return a test that the absolute value of a number is at most `bound`."""
    return exp.Between(this=cell.copy(), low=literal(-bound), high=literal(bound))


def decimal(cell: exp.Expr) -> exp.Cast:
    """Return a decimal of any size, on PostgreSQL."""
    return exp.Cast(this=cell, to=exp.DataType.build("decimal"))


class DuckDbCells(Cells):
    """Cells of DuckDB."""

    every_match = literal("g")

    def constant(self, item: Column, whole: exp.Expr | None, text: exp.Expr, size: tuple[int, int]) -> exp.Expr | None:
        """See `Cells.constant`; decimals have at most 38 digits, including the common type of two decimals."""
        if item.sort != "decimal":
            return whole if item.whole else None
        assert item.digits is not None
        (width, places), (before, after) = item.digits, size
        if whole is not None and places < 20:
            return whole
        if after > places or before > width - places:
            width, places = max(before, width - places) + max(after, places), max(after, places)
        return exp.Cast(this=text, to=exp.DataType.build(f"decimal({width}, {places})")) if width <= 38 else None

    def is_nan(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        return call("ISNAN", cell.copy()) if item.sort in ("single", "double") else None

    def is_finite(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        return call("ISFINITE", cell.copy()) if item.sort in ("single", "double", "date", "time") else None

    def seconds(self, cell: exp.Expr) -> exp.Expr:
        """Return seconds with fractions."""
        return call("EPOCH", cell)

    def hexadecimal(self, cell: exp.Expr) -> exp.Expr:
        """Return upper-case digits."""
        return call("HEX", cell)

    def number(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return the number of the shortest text for a single float, since the nearest double has more digits.

        For long decimals, the nearest float is that of their text, not that of a cast.
        """
        by_text = cast(cast(cell.copy(), "text"), "double")
        if item.sort == "single":
            return by_text
        if item.sort == "decimal" and item.inexact:
            bound = _max_exact(item)
            return by_text if bound is None else case([(is_within(cell, bound), cast(cell, "double"))], by_text)
        return cast(cell, "double")

    def nearest(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return an integer of 128 bits, or a decimal with the scale of the column."""
        number = self.number(item, cell)
        whole = exp.TryCast(this=number, to=exp.DataType.build("int128"))
        if item.whole:
            return whole
        assert item.digits is not None
        kind = exp.DataType.build(f"decimal(38, {item.digits[1]})")
        printed = exp.TryCast(this=cast(number.copy(), "text"), to=kind)
        return case([(is_within(number, MAX_EXACT), printed)], exp.TryCast(this=whole, to=kind.copy()))


class PostgresCells(Cells):
    """Cells of PostgreSQL."""

    def constant(self, item: Column, whole: exp.Expr | None, text: exp.Expr, size: tuple[int, int]) -> exp.Expr | None:
        """See `Cells.constant`; decimals may have any number of digits."""
        return decimal(text) if item.sort == "decimal" else whole if item.whole else None

    def plain(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return money as a decimal."""
        return decimal(cell) if item.type == "money" else cell

    def ordered(self, items: Sequence[Column]) -> bool:
        """Tell whether all are whole numbers or decimals, which compare exactly."""
        return all(item.whole or item.sort == "decimal" for item in items)

    def exactly(self, item: Column, cell: exp.Expr) -> dict[str, exp.Expr]:
        """See `Cells.exactly`; money is a decimal."""
        return super().exactly(item, self.plain(item, cell))

    def by_bytes(self, text: exp.Expr) -> exp.Expr:
        """Compare by bytes, whatever the language of the database."""
        return self.bytewise(text)

    def is_nan(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        if item.sort not in ("single", "double", "decimal") or item.type == "money":
            return None
        return exp.EQ(this=cell.copy(), expression=exp.Cast(this=literal("NaN"), to=_pg_type(item)))

    def is_finite(self, item: Column, cell: exp.Expr) -> exp.Expr | None:
        if item.sort in ("date", "time"):
            return call("ISFINITE", cell.copy())
        if item.sort in ("single", "double") or (item.sort == "decimal" and item.digits is None and item.type != "money"):
            infinite = [literal(text) for text in ("Infinity", "-Infinity")]
            return exp.not_(exp.In(this=cast(cell.copy(), "text"), expressions=infinite))
        return None

    def seconds(self, cell: exp.Expr) -> exp.Expr:
        """Return seconds with fractions."""
        return exp.Extract(this=exp.Var(this="EPOCH"), expression=cell)

    def hexadecimal(self, cell: exp.Expr) -> exp.Expr:
        """Return upper-case digits."""
        return exp.Upper(this=call("ENCODE", cell, literal("hex")))

    def number(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """Return the nearest float; raise an error in the query for a decimal beyond all floats.

        PostgreSQL has no function that raises an error, but the cast of a text that is not a number does.
        """
        if item.sort == "single":
            return cast(cast(cell, "text"), "double")
        cell = self.plain(item, cell)
        if item.sort != "decimal" or item.digits is not None:
            return cast(cell, "double")
        size = exp.Abs(this=cell.copy())
        low, high = (decimal(literal(text)) for text in ("1e-300", "1e300"))
        zero = exp.EQ(this=cell.copy(), expression=literal(0))
        fits = either([exp.Between(this=size, low=low, high=high), zero])
        message = exp.DPipe(this=literal(f"{item.predicate}: {TOO_LONG}: "), expression=cast(cell.copy(), "text"))
        return exp.Case(ifs=[exp.If(this=fits, true=cast(cell, "double"))], default=cast(message, "double"))

    def nearest(self, item: Column, cell: exp.Expr) -> exp.Expr:
        """See `Cells.nearest`.

        The cast of a float to a decimal has fifteen digits, but its text has those it is printed with, and an integer
        has all of them; floats beyond 64 bits are a power of two times such an integer.
        """
        number = self.number(item, cell)
        last = exp.GTE(this=exp.Abs(this=number.copy()), expression=double(2.0**63))
        zeros = exp.Sub(this=exp.Floor(this=call("LOG", literal(2), decimal(exp.Abs(this=number.copy())))), expression=literal(57))
        large = exp.Mul(
            this=decimal(
                cast(exp.Div(this=number.copy(), expression=call("POWER", _two("double"), cast(zeros, "double"))), "bigint")
            ),
            expression=call("POWER", _two("decimal"), zeros.copy()),
        )
        whole = decimal(cast(number.copy(), "bigint"))
        if item.whole:
            return case([(last, large)], whole)
        none = exp.GT(this=exp.Abs(this=cell.copy()), expression=decimal(literal("1e300")))
        printed = decimal(cast(number.copy(), "text"))
        return case([(none, NULL.copy()), (is_within(number, MAX_EXACT), printed), (last, large)], whole)


def _two(kind: str) -> exp.Expr:
    return exp.Cast(this=literal(2), to=exp.DataType.build(kind))


def _pg_type(item: Column) -> exp.DataType:
    return exp.DataType.build({"single": "float", "double": "double"}.get(item.sort, "decimal"), dialect="postgres")


def cells_of(engine: Engine) -> Cells:
    return DuckDbCells() if isinstance(engine, DuckDb) else PostgresCells()
