"""Tables that somebody else made as the tables of a graph (`sql.tables`): what DuckDB's catalogue says of them, and each
table of the graph as a query over theirs. Nothing is written.

A row is an entity, called by its table and key; a foreign key is a relation, any other column an attribute. A row of a
table of relations is one statement, with its other columns as qualifiers. Entities and statements go by texts: `table/key`,
and the place of a column with the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import sqlglot
from sqlglot import exp

from condgraph.engine.errors import LoadError, OptionError, numbered
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import NO_UNIT, Kind, Precision
from condgraph.sql.engines import DuckDb
from condgraph.sql.tables import CELL, NAMED, views
from condgraph.sql.terms import NULL, Query, both, case, cast, column, known, literal, name, named, select, table_of, together

#: Types of columns that are numbers a float holds, in DuckDB's words.
_INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
_LONG: Final = ("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT")
_FLOATS: Final = ("FLOAT", "DOUBLE")
#: Rows of a table, by the database's estimate, that are counted when it is opened.
MOST_COUNTED: Final = 10_000_000
#: Digits that a float holds of every decimal number.
_DIGITS: Final = 15


@dataclass(slots=True)
class Column:
    """A column: its predicate, its name in the database, and its type there."""

    predicate: str
    real: str
    type: str

    @property
    def kind(self) -> Kind:
        """The type of its values."""
        if self.type in (*_INTEGERS, *_LONG, *_FLOATS) or self.type.startswith("DECIMAL"):
            return Kind.QUANTITY
        return Kind.TIME if self.type == "DATE" or self.type.startswith("TIMESTAMP") else Kind.TEXT


@dataclass(slots=True)
class Reference:
    """Columns that hold keys of another table, by predicates; `certain` where the database makes sure of it."""

    columns: tuple[str, ...]
    target: str
    others: tuple[str, ...]
    certain: bool = True


@dataclass(slots=True)
class Table:
    """A table or view. `key`, `label` and columns of references are predicates; `relation` is that of rows that are relations.
    The key is `certain` where the database makes sure of it; rows of a view are not counted, as that may take any time.
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

    def column(self, predicate: str) -> Column:
        """The column of a predicate."""
        return next(item for item in self.columns if item.predicate == predicate)

    @property
    def row_number(self) -> str:
        """A name for the numbers of rows, which no column has."""
        result, taken = "row", {item.real.lower() for item in self.columns}
        while result in taken:
            result += "_"
        return result

    @property
    def values(self) -> list[Column]:
        """The columns that are no references."""
        taken = {item.columns[0] for item in self.references if len(item.columns) == 1}
        return [item for item in self.columns if item.predicate not in taken]


_COLUMNS: Final = """
    SELECT c.schema_name, c.table_name, c.column_name, c.data_type, t.estimated_size
    FROM duckdb_columns() AS c LEFT JOIN duckdb_tables() AS t ON t.table_oid = c.table_oid AND t.database_oid = c.database_oid
    WHERE NOT c.internal AND c.database_name = current_database() ORDER BY c.schema_name, c.table_name, c.column_index"""
_KEYS: Final = """
    SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
    FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') AND database_name = current_database()
    ORDER BY schema_name, table_name, constraint_index"""


def catalogue(engine: DuckDb) -> list[Table]:
    """The tables and views of a file of DuckDB, with the keys it declares: two queries."""
    tables: dict[tuple[str, str], Table] = {}
    for schema, real, column_name, kind, rows in engine.read(sqlglot.parse_one(_COLUMNS, dialect="duckdb")):
        table = tables.setdefault((schema, real), Table(real, schema, real, 1 if rows is None else rows, is_view=rows is None))
        table.columns.append(Column(column_name, column_name, kind))
    names = [real for _, real in tables]
    for (schema, real), table in tables.items():
        if names.count(real) > 1:
            table.name = f"{schema}.{real}"
    for schema, real, sort, columns, other, others in engine.read(sqlglot.parse_one(_KEYS, dialect="duckdb")):
        table = tables[schema, real]
        if sort == "PRIMARY KEY":
            table.key = tuple(columns)
        else:
            table.references.append(Reference(tuple(columns), tables[schema, other].name, tuple(others)))
    return sorted(tables.values(), key=lambda table: table.name)


def _quoted(table: Table, alias: str | None = None) -> exp.Table:
    return table_of(table.real, table.schema, alias)


def _joined(parts: Sequence[tuple[exp.Expr, bool]]) -> exp.Expr:
    """The columns of a key as one text, as keys of rows are written everywhere (`loaders.table.joins`)."""
    texts = [cast(part, "text") for part, _ in parts]
    if len(texts) == 1:
        return texts[0]
    result: exp.Expr | None = None
    for text, (_, plain) in zip(texts, parts, strict=True):
        part: exp.Expr = text
        if not plain:
            for mark, instead in (("\\", "\\\\"), ("+", "\\+")):
                part = exp.Anonymous(this="REPLACE", expressions=[part, literal(mark), literal(instead)])
        result = part if result is None else exp.DPipe(this=exp.DPipe(this=result, expression=literal("+")), expression=part)
    assert result is not None
    return result


class TheirTables:
    """The tables of a graph as queries over tables that somebody else made."""

    def __init__(self, tables: Sequence[Table], called: str) -> None:
        self.tables = {table.name: table for table in tables}
        self.sources = [f"{called}/{table.name}" for table in tables]
        self._numbers = {table.name: number for number, table in enumerate(tables)}

    def relation(self, table: str, alias: str, predicates: frozenset[str] | None) -> exp.Expr:
        """A table of the graph, of statements at least those of some predicates."""

        def stored(part: str) -> exp.Expr:
            return self.relation(part, part, predicates)

        made = {
            "entity": self._entities, "member": self._members, "membership": self._memberships, "source": self._sources,
        }.get(table)  # fmt: skip
        if made is not None:
            query = made()
        elif table in ("statement", "qualifier", "place"):
            query = together(
                [part for item in self.tables.values() for part in self.facts(item, table, predicates)] or [_none(table)]
            )
        elif table in NAMED.tables:
            query = _none(table)
        else:
            query = dict(views(stored, NAMED))[table]
        return exp.Subquery(this=query, alias=exp.TableAlias(this=name(alias)))

    # -- entities ----------------------------------------------------------------------------------

    def _key(self, table: Table, columns: Sequence[str], alias: str) -> exp.Expr:
        parts = [table.column(item) for item in columns]
        return _joined([(column(item.real, alias), item.type in (*_INTEGERS, *_LONG)) for item in parts])

    def _id(self, table: Table, alias: str = "t") -> exp.Expr:
        key = self._key(table, table.key, alias) if table.key else cast(column(table.row_number, alias), "text")
        return exp.DPipe(this=literal(f"{table.name}/"), expression=key)

    def _from(self, table: Table, alias: str = "t") -> exp.Expr:
        """A table to select from: the rows that have a key; one without a key with the numbers of its rows, as they lie."""
        if table.key and table.certain:
            return _quoted(table, alias)
        if table.key:
            keyed = select(exp.Star()).from_(_quoted(table), copy=False)
            keyed = keyed.where(both([known(column(table.column(item).real)) for item in table.key]), copy=False)
            return exp.Subquery(this=keyed, alias=exp.TableAlias(this=name(alias)))
        window = exp.Window(this=exp.RowNumber())
        numbered = select(exp.Star(), named(window, table.row_number)).from_(_quoted(table), copy=False)
        return exp.Subquery(this=numbered, alias=exp.TableAlias(this=name(alias)))

    def _label(self, table: Table, alias: str = "t") -> exp.Expr:
        if table.label is None:
            return self._id(table, alias)
        text = column(table.column(table.label).real, alias)
        given = exp.NEQ(this=exp.Trim(this=cast(text, "text")), expression=literal(""))
        return case([(given, cast(text.copy(), "text"))], self._id(table, alias))

    @property
    def _of_rows(self) -> list[Table]:
        return [table for table in self.tables.values() if table.relation is None]

    def entities(self, table: Table) -> Query:
        """The rows of a table as entities."""
        cells = (self._id(table), self._id(table), self._label(table), literal(int(EntityKind.ROW)), self._number(table))
        return _columns("entity", (*cells, literal(0))).from_(self._from(table), copy=False)

    def _entities(self) -> Query:
        queries: list[Query] = []
        for table in self._of_rows:
            own = (literal(table.name),) * 3
            concept = _columns("entity", (*own, literal(int(EntityKind.CONCEPT)), NULL.copy(), literal(0)))
            queries += [self.entities(table), concept]
        return together(queries)

    def _number(self, table: Table) -> exp.Expr:
        return literal(self._numbers[table.name])

    def _members(self) -> Query:
        return together(
            [
                _columns("member", (literal(table.name), self._id(table))).from_(self._from(table), copy=False)
                for table in self._of_rows
            ]
        )

    def _memberships(self) -> Query:
        queries = []
        for table in self._of_rows:
            cells = (self._id(table), literal(table.name), self._number(table), literal(0))
            queries.append(_columns("membership", cells).from_(self._from(table), copy=False))
        return together(queries)

    def _sources(self) -> Query:
        return together(
            [
                _columns("source", (literal(number), literal(text), *(literal("") for _ in range(3)), NULL.copy()))
                for number, text in enumerate(self.sources)
            ]
        )

    # -- statements --------------------------------------------------------------------------------

    def facts(self, table: Table, sort: str, predicates: frozenset[str] | None) -> list[Query]:
        """The statements, qualifiers or places (`sort`) of a table: of values, then of references, in their order."""

        def asked(predicate: str) -> bool:
            return predicates is None or predicate in predicates

        if table.relation is not None:
            return self._related(table, sort) if asked(table.relation) else []
        if sort == "qualifier":
            return []
        result: list[Query] = []
        for at, item in enumerate(table.values):
            if asked(item.predicate):
                there = _there(item)
                fact = exp.DPipe(this=literal(f"{self._numbers[table.name]}.{at} "), expression=self._id(table))
                cells = _cells(item)
                result.append(self._fact(table, sort, fact, item.predicate, NULL.copy(), cells, there))
        for at, reference in enumerate(table.references):
            predicate = " + ".join(reference.columns)
            if asked(predicate):
                fact = exp.DPipe(this=literal(f"{self._numbers[table.name]}.r{at} "), expression=self._id(table))
                end, cells, there = self._end(table, reference)
                result.append(self._fact(table, sort, fact, predicate, end, cells, there))
        return result

    def _end(self, table: Table, reference: Reference) -> tuple[exp.Expr, dict[str, exp.Expr], exp.Expr]:
        """The row that a reference leads to, with the parts of its cell, and whether there is one."""
        other = self.tables[reference.target]
        columns = [column(table.column(item).real, "t") for item in reference.columns]
        same = [
            exp.EQ(this=column(other.column(item).real, "o"), expression=mine.copy())
            for item, mine in zip(reference.others, columns, strict=True)
        ]

        def looked_up(cell: exp.Expr) -> exp.Expr:
            return exp.Subquery(this=select(cell).from_(self._from(other, "o"), copy=False).where(*same, copy=True))

        if reference.others == other.key:
            parts = zip(columns, map(other.column, reference.others), strict=True)
            key = _joined([(mine.copy(), of.type in (*_INTEGERS, *_LONG)) for mine, of in parts])
            end: exp.Expr = exp.DPipe(this=literal(f"{other.name}/"), expression=key)
        else:
            end = looked_up(self._id(other, "o"))
        text = looked_up(self._label(other, "o")) if other.label is not None else end.copy()
        there = both([known(item.copy()) for item in columns])
        if not (reference.certain and other.certain):
            some = select(literal(1)).from_(self._from(other, "o"), copy=False).where(*same, copy=True)
            there = both([there, exp.Exists(this=some)])
        return end, {"kind": literal(int(Kind.ENTITY)), "text": text}, there

    def _fact(
        self, table: Table, sort: str, fact: exp.Expr, predicate: str, end: exp.Expr, cells: dict[str, exp.Expr], there: exp.Expr
    ) -> Query:
        if sort == "place":
            return self._place(table, fact, there)
        parts = (fact, self._id(table), literal(predicate), end, *_listed(cells), NULL.copy(), NULL.copy(), NULL.copy())
        return _columns("statement", parts).from_(self._from(table), copy=False).where(there, copy=False)

    def _place(self, table: Table, fact: exp.Expr, there: exp.Expr) -> Query:
        parts = (fact, literal(0), self._number(table), literal(0), NULL.copy())
        return _columns("place", parts).from_(self._from(table), copy=False).where(there, copy=False)

    def _related(self, table: Table, sort: str) -> list[Query]:
        """The rows of a table of relations, each a statement from its first reference to its second."""
        assert table.relation is not None
        first, second, *others = ends_of(table)
        (start, _, one), (end, cells, two) = self._end(table, first), self._end(table, second)
        fact = exp.DPipe(this=literal(f"{self._numbers[table.name]} "), expression=self._id(table))
        there = both([one, two])
        if sort == "place":
            return [self._place(table, fact, there)]
        if sort == "statement":
            parts = (fact, start, literal(table.relation), end, *_listed(cells), NULL.copy(), NULL.copy(), NULL.copy())
            return [_columns("statement", parts).from_(self._from(table), copy=False).where(there, copy=False)]
        result: list[Query] = []
        for at, item in enumerate(table.values):
            parts = (fact.copy(), literal(at), literal(item.predicate), NULL.copy(), *_listed(_cells(item)))
            query = _columns("qualifier", parts).from_(self._from(table), copy=False)
            result.append(query.where(both([there.copy(), _there(item)]), copy=False))
        for at, reference in enumerate(others, len(table.values)):
            end, cells, given = self._end(table, reference)
            parts = (fact.copy(), literal(at), literal(reference.columns[0]), end, *_listed(cells))
            query = _columns("qualifier", parts).from_(self._from(table), copy=False)
            result.append(query.where(both([there.copy(), given]), copy=False))
        return result

    # -- what is left out --------------------------------------------------------------------------

    def checks(self) -> Iterator[tuple[str, Query | None, bool]]:
        """What is to be known of the tables: a message, which follows the number of rows that a query counts where there
        is a query, and whether such rows are an error.
        """
        for table in self.tables.values():
            large = table.is_view or table.rows > MOST_COUNTED
            if not table.key and table.relation is None:
                yield f"{table.name!r} has no key: its rows are numbered as they lie; a mapping file gives a key", None, False
            if not table.certain:
                own = f"the key {_listing(table.key)} of {table.name!r}"
                if large:
                    yield f"whether {own} is in each row, and is different in each, was not looked at", None, False
                else:
                    parts = [known(column(table.column(item).real, "t")) for item in table.key]
                    yield (
                        f"of {table.name!r} left out: no key {_listing(table.key)}",
                        _counted(_quoted(table, "t"), exp.not_(both(parts))),
                        False,
                    )
                    yield (
                        f"of {table.name!r} with the key {_listing(table.key)} of another row",
                        self._repeats(table, table.key),
                        True,
                    )
            for other in self.tables:
                if other.startswith(f"{table.name}/"):
                    yield (
                        f"rows of {table.name!r} may have ids of {other!r} or its rows, and are the same as these then",
                        None,
                        False,
                    )
            for item in table.values:
                if not item.type.startswith("TIMESTAMP") or item.type == "TIMESTAMP_S":
                    continue
                if large:
                    yield (
                        f"fractions of a second in {item.predicate!r} of {table.name!r} are left out, and were not counted",
                        None,
                        False,
                    )
                else:
                    seconds = _call("EPOCH", column(item.real, "t"))
                    test = exp.NEQ(this=seconds, expression=_call("FLOOR", seconds.copy()))
                    message = f"of {table.name!r} without the fraction of a second in {item.predicate!r}"
                    yield message, _counted(_quoted(table, "t"), test), False
            yield from self._reference_checks(table, large)

    def _reference_checks(self, table: Table, large: bool) -> Iterator[tuple[str, Query | None, bool]]:
        ends = ends_of(table)
        if table.relation is not None:
            for reference in table.references:
                if reference not in ends:
                    columns = _listing(reference.columns)
                    yield f"the reference {columns} of {table.name!r} is left out: ends of relations have one column", None, False
            there = both([self._end(table, item)[2] for item in ends[:2]])
            if large:
                yield f"rows of {table.name!r} that lack an end of the relation are left out, and were not counted", None, False
            else:
                query = _counted(self._from(table), exp.not_(exp.Paren(this=there)))
                yield f"of {table.name!r} left out: an end of the relation is missing", query, False
        for reference in ends[2:] if table.relation is not None else table.references:
            other = self.tables[reference.target]
            columns = _listing(reference.columns)
            if reference.others != other.key and not reference.certain and not (other.is_view or other.rows > MOST_COUNTED):
                message = (
                    f"of {other.name!r} with the same {_listing(reference.others)}, which {columns} of {table.name!r} refers to"
                )
                yield message, self._repeats(other, reference.others), True
            if reference.certain and other.certain:
                continue
            if large or other.is_view:
                yield (
                    f"{columns} of {table.name!r} that lead to no row of {other.name!r} are left out, and were not counted",
                    None,
                    False,
                )
                continue
            given = both([known(column(table.column(item).real, "t")) for item in reference.columns])
            dangling = both([given, exp.not_(exp.Paren(this=self._end(table, reference)[2]))])
            message = f"of {table.name!r} without {columns}: no row of {other.name!r} has that key"
            yield message, _counted(self._from(table), dangling), False

    def _repeats(self, table: Table, columns: Sequence[str]) -> Query:
        """How many rows have these columns as an earlier row has them."""
        given = both([known(column(table.column(item).real, "t")) for item in columns])
        different = exp.Count(this=exp.Distinct(expressions=[self._key(table, columns, "t")]))
        return (
            select(exp.Sub(this=exp.Count(this=exp.Star()), expression=different))
            .from_(_quoted(table, "t"), copy=False)
            .where(given, copy=False)
        )


def _counted(of: exp.Expr, test: exp.Expr) -> Query:
    return select(exp.Count(this=exp.Star())).from_(of, copy=False).where(test, copy=False)


def _listing(columns: Sequence[str]) -> str:
    return " + ".join(map(repr, columns))


def shortfalls(engine: DuckDb, tables: TheirTables) -> Iterator[str]:
    """What is left out of the tables, with numbers: one query. Raises `LoadError` where rows have the same key."""
    checks = list(tables.checks())
    yield from (message for message, query, _ in checks if query is None)
    counted = [
        select(named(literal(at), "n"), named(exp.Subquery(this=query), "rows"))
        for at, (_, query, _) in enumerate(checks)
        if query is not None
    ]
    if not counted:
        return
    for at, rows in sorted(engine.read(together(counted))):
        message, _, wrong = checks[at]
        text = f"{numbered(rows, 'row', 'rows')} {message}"
        if rows and wrong:
            raise LoadError(f"{engine.place}: {text}", hint="a key is different in each row")
        if rows:
            yield text


def ends_of(table: Table) -> list[Reference]:
    """The references of one column, in the order of the columns."""
    places = [item.predicate for item in table.columns]
    return sorted((item for item in table.references if len(item.columns) == 1), key=lambda item: places.index(item.columns[0]))


def _columns(table: str, cells: Sequence[exp.Expr]) -> exp.Select:
    types = NAMED.tables[table]
    return select(*(named(cast(cell, kind), key) for (key, kind), cell in zip(types.items(), cells, strict=True)))


def _none(table: str) -> Query:
    return _columns(table, [NULL.copy() for _ in NAMED.tables[table]]).where(exp.false(), copy=False)


def _listed(cells: dict[str, exp.Expr]) -> list[exp.Expr]:
    return [cells.get(key, NULL).copy() for key in CELL]


def _call(function: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=list(arguments))


def _there(item: Column) -> exp.Expr:
    """Whether a cell has a value: NULL, the empty text and NaN are none."""
    cell = column(item.real, "t")
    if item.type in _FLOATS:
        return both([known(cell), exp.not_(_call("ISNAN", cell.copy()))])
    if item.kind is Kind.TEXT:
        return exp.NEQ(this=exp.Trim(this=_text(item)), expression=literal(""))
    return known(cell)


def _text(item: Column) -> exp.Expr:
    """A cell that is no number and no time as a text: of lists, structures and maps as JSON, of bytes as hexadecimal digits."""
    cell = column(item.real, "t")
    if item.type == "BLOB":
        return exp.DPipe(this=literal("0x"), expression=_call("HEX", cell))
    if item.type.endswith("]") or item.type.startswith(("STRUCT", "MAP")):
        return cast(_call("TO_JSON", cell), "text")
    return cell if item.type == "VARCHAR" else cast(cell, "text")


def _cells(item: Column) -> dict[str, exp.Expr]:
    """The parts of a value. Infinite numbers and times are texts."""
    cell, kind = column(item.real, "t"), literal(int(item.kind))
    if item.kind is Kind.TEXT:
        return {"kind": kind, "text": _text(item)}
    result: dict[str, exp.Expr] = {"kind": kind}
    finite = _call("ISFINITE", cell.copy())
    if item.type not in (*_INTEGERS, *_LONG) and not item.type.startswith("DECIMAL"):
        result["kind"] = case([(finite.copy(), kind)], literal(int(Kind.TEXT)))
        result["text"] = case([(finite.copy(), NULL.copy())], cast(cell.copy(), "text"))
    if item.kind is Kind.QUANTITY:
        result["number"] = _number(item)
        result["unit"] = literal(NO_UNIT)
        if "text" in result:
            result["unit"] = case([(finite, literal(NO_UNIT))], NULL.copy())
        return result
    day = item.type == "DATE"
    seconds = cast(_call("FLOOR", _call("EPOCH", cell.copy())), "bigint")
    start = case([(finite, seconds)], NULL.copy())
    result["start"] = start
    result["stop"] = exp.Add(this=start.copy(), expression=literal(86_400 if day else 1))
    result["precision"] = literal(int(Precision.DAY if day else Precision.SECOND))
    return result


def _number(item: Column) -> exp.Expr:
    """A number as a float; a query that meets one that no float is ends with an error that names the column."""
    cell = column(item.real, "t")
    number = cast(cell, "double")
    if item.type == "FLOAT":
        # Its shortest text is the number; the nearest double has more digits.
        return cast(cast(cell, "text"), "double")
    if item.type in _LONG:
        most = 2**53
    elif item.type.startswith("DECIMAL"):
        width, scale = map(int, item.type[8:-1].split(","))
        if width <= _DIGITS:
            return number
        most = 10 ** max(0, _DIGITS - scale)
    else:
        return number
    fits = exp.Between(this=cell.copy(), low=literal(-most), high=literal(most))
    raised = cast(_call("ERROR", literal(f"{item.predicate}: a number has more digits than can be compared here")), "double")
    return case([(fits, number)], raised)


def check_tables(tables: Sequence[Table], place: str) -> None:
    """Raise where no table has a key: nothing says then what rows are."""
    if not any(table.key or table.references for table in tables):
        raise OptionError(
            f"{place} has neither a graph of condgraph's nor a table with a key",
            hint='a mapping file (condgraph.toml) says the keys: mapping=; or layout="condgraph" makes a graph there',
        )
