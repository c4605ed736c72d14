"""The tables of an existing database as a graph: what their rows become, and what of them is left out. Nothing is written.

A row is an entity, identified by its table and key; a foreign key is a relation, any other column an attribute. A row of a
table of relations is one statement, with its other columns as qualifiers. Entities and statements are identified by texts:
`table/key`, and the place of a column with the key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from condgraph.engine.errors import LoadError, OptionError, numbered
from condgraph.engine.values import NO_UNIT, OPEN_END, OPEN_START, Kind, Precision
from condgraph.sql import terms
from condgraph.sql.catalogue import Bound, Cells, Column, Reference, Table, call, ends_of, is_filled, is_untidy
from condgraph.sql.compiler import BOUND_KEYS
from condgraph.sql.connections import Engine

#: The most rows, by the database's estimate, of a table that is counted when it is opened.
MAX_COUNTED: Final = 10_000_000
#: The most rows of a table whose texts are checked then, which costs more.
MAX_READ: Final = 1_000_000


def _quoted(table: Table, alias: str | None = None) -> exp.Table:
    return terms.table_of(table.real, table.schema or None, alias)


def _joined(parts: Sequence[tuple[exp.Expr, bool]]) -> exp.Expr:
    """Return the columns of a key as one text, as row keys are written everywhere. See `loaders.table.joins`."""
    texts = [terms.cast(part, "text") for part, _ in parts]
    if len(texts) == 1:
        return texts[0]
    result: exp.Expr | None = None
    for text, (_, is_whole) in zip(texts, parts, strict=True):
        part: exp.Expr = text
        if not is_whole:
            for character, escaped in (("\\", "\\\\"), ("+", "\\+")):
                part = exp.Anonymous(this="REPLACE", expressions=[part, terms.literal(character), terms.literal(escaped)])
        result = part if result is None else exp.DPipe(this=exp.DPipe(this=result, expression=terms.literal("+")), expression=part)
    assert result is not None
    return result


@dataclass(frozen=True, slots=True)
class Cell:
    """A value that rows may have: its entity, the parts of its cell, and a test that a row has it."""

    end: exp.Expr
    parts: dict[str, exp.Expr]
    present: exp.Expr


@dataclass(frozen=True, slots=True)
class Part:
    """Statements that the rows of a table give: those of a column or a reference, at index `at`.

    With neither, the rows are relations themselves.
    """

    table: Table
    at: int
    item: Column | None = None
    reference: Reference | None = None

    @property
    def predicate(self) -> str:
        """The predicate of its statements."""
        if self.item is not None:
            return self.item.predicate
        return str(self.table.relation) if self.reference is None else " + ".join(self.reference.columns)


class NativeTables:
    """The tables of a graph as queries over the tables of an existing database."""

    def __init__(self, tables: Sequence[Table], graph: str, cells: Cells) -> None:
        self.cells = cells
        self.tables = {table.name: table for table in tables}
        self.sources = [f"{graph}/{table.name}" for table in tables]
        self._numbers = {table.name: number for number, table in enumerate(tables)}

    # -- entities ----------------------------------------------------------------------------------

    def _key(self, table: Table, columns: Sequence[str], alias: str) -> exp.Expr:
        return _joined([(self.compared(item, alias), item.whole) for item in map(table.column, columns)])

    def compared(self, item: Column, alias: str) -> exp.Expr:
        """Return a cell, compared as texts are everywhere."""
        return self.cells.value(item, terms.column(item.real, alias))

    def id(self, table: Table, alias: str = "t") -> exp.Expr:
        """Return the id of a row."""
        key = self._key(table, table.key, alias) if table.key else terms.cast(terms.column(table.row_number, alias), "text")
        return exp.DPipe(this=terms.literal(f"{table.name}/"), expression=key)

    def rows(self, table: Table, alias: str = "t") -> exp.Expr:
        """Return a table to select from: the rows with a key, or all rows, numbered in stored order, if the table has no key."""
        if table.key and table.certain:
            return _quoted(table, alias)
        if table.key:
            keyed = terms.select(exp.Star()).from_(_quoted(table), copy=False)
            keyed = keyed.where(terms.both([terms.known(terms.column(table.column(item).real)) for item in table.key]), copy=False)
            return exp.Subquery(this=keyed, alias=exp.TableAlias(this=terms.name(alias)))
        window = exp.Window(this=exp.RowNumber())
        numbered = terms.select(exp.Star(), terms.named(window, table.row_number)).from_(_quoted(table), copy=False)
        return exp.Subquery(this=numbered, alias=exp.TableAlias(this=terms.name(alias)))

    def label(self, table: Table, alias: str = "t") -> exp.Expr:
        """Return the name of a row."""
        if table.label is None:
            return self.id(table, alias)
        text = terms.cast(self.compared(table.column(table.label), alias), "text")
        return terms.case([(is_filled(text), text.copy())], self.id(table, alias))

    @property
    def of_rows(self) -> list[Table]:
        """The tables whose rows are entities."""
        return [table for table in self.tables.values() if table.relation is None]

    def entities(self, table: Table) -> exp.Select:
        """Return a query of the ids and names of a table's rows."""
        columns = (terms.named(self.id(table), "e"), terms.named(self.label(table), "name"))
        return terms.select(*columns).from_(self.rows(table), copy=False)

    def source(self, table: Table) -> str:
        """Return the name of a table's source."""
        return self.sources[self._numbers[table.name]]

    def number(self, table: Table) -> int:
        """Return the number of a table's source."""
        return self._numbers[table.name]

    # -- statements --------------------------------------------------------------------------------

    def parts(self, table: Table, predicates: Collection[str] | None) -> list[Part]:
        """Return a table's statements of some predicates, in order: those of values, then those of references."""

        def is_requested(predicate: str) -> bool:
            return predicates is None or predicate in predicates

        if table.relation is not None:
            return [Part(table, 0)] if is_requested(table.relation) else []
        result = [Part(table, at, item=item) for at, item in enumerate(table.values)]
        result += [Part(table, at, reference=item) for at, item in enumerate(table.references)]
        return [part for part in result if is_requested(part.predicate)]

    def ends(self, part: Part) -> tuple[Reference | None, Column | Reference]:
        """Return what gives the subject of statements (None for the row itself) and what gives their object."""
        if part.table.relation is not None:
            first, second, *_ = ends_of(part.table)
            return first, second
        end = part.item or part.reference
        assert end is not None
        return None, end

    def qualifiers(self, table: Table) -> list[tuple[str, Column | Reference]]:
        """Return the qualifiers that a table's rows may have, in order, with their keys."""
        if table.relation is None:
            return [*table.bounds]
        further = [(item.columns[0], item) for item in ends_of(table)[2:]]
        return [*((item.predicate, item) for item in table.values), *further, *table.bounds]

    def cell(self, table: Table, item: Column | Reference) -> Cell:
        """Return what a row of `t` has in a column, or at the end of a reference."""
        if isinstance(item, Column):
            cell = Cell(terms.NULL.copy(), self.cells_at(item, "t"), self.is_given(item, "t"))
        else:
            cell = Cell(*self._end(table, item))
        return replace(cell, present=terms.both([cell.present, self.holds(table, "t")])) if self.may_not_hold(table) else cell

    def statement(self, part: Part) -> tuple[exp.Expr, exp.Expr, exp.Expr, Cell]:
        """Return the name of a statement, its subject with its name, and its object."""
        table = part.table
        start, end = self.ends(part)
        ident, cell = self.id(table), self.cell(table, end)
        fact = exp.DPipe(this=terms.literal(f"{self.mark(part)} "), expression=ident)
        if start is None:
            return fact, ident.copy(), self.label(table), cell
        subject = self.cell(table, start)
        return fact, subject.end, subject.parts["text"], Cell(cell.end, cell.parts, terms.both([subject.present, cell.present]))

    def mark(self, part: Part) -> str:
        """Return the prefix of the names of a part's statements."""
        number = self._numbers[part.table.name]
        return str(number) if part.table.relation is not None else f"{number}.{'r' if part.reference else ''}{part.at}"

    def _end(self, table: Table, reference: Reference) -> tuple[exp.Expr, dict[str, exp.Expr], exp.Expr]:
        """Return the row that a reference leads to, the parts of its cell, and a test that it exists."""
        target = self.tables[reference.target]
        own_columns, target_columns = (
            [table.column(item) for item in reference.columns],
            [target.column(item) for item in reference.keys],
        )
        columns = [self.compared(item, "t") for item in own_columns]
        equalities = [
            exp.EQ(this=self.compared(target_column, "o"), expression=cell_value.copy())
            for target_column, cell_value in zip(target_columns, columns, strict=True)
        ]

        def lookup(cell: exp.Expr) -> exp.Expr:
            return exp.Subquery(this=terms.select(cell).from_(self.rows(target, "o"), copy=False).where(*equalities, copy=True))

        if reference.keys == target.key and all(map(_same_text, own_columns, target_columns)):
            key = _joined(
                [
                    (cell_value.copy(), target_column.whole)
                    for cell_value, target_column in zip(columns, target_columns, strict=True)
                ]
            )
            end: exp.Expr = exp.DPipe(this=terms.literal(f"{target.name}/"), expression=key)
        else:
            end = lookup(self.id(target, "o"))
        text = lookup(self.label(target, "o")) if target.label is not None else end.copy()
        exists = terms.both([terms.known(item.copy()) for item in columns])
        if not (reference.certain and target.certain):
            matching = terms.select(terms.literal(1)).from_(self.rows(target, "o"), copy=False).where(*equalities, copy=True)
            exists = terms.both([exists, exp.Exists(this=matching)])
        return end, {"kind": terms.literal(int(Kind.ENTITY)), "text": text}, exists

    def is_given(self, item: Column, alias: str) -> exp.Expr:
        """Return a test that a column of a row has a value."""
        return self.cells.is_given(item, terms.column(item.real, alias))

    def is_finite(self, item: Column, alias: str) -> exp.Expr | None:
        """Return a test that a number or time of a row is finite, or None if all are."""
        return None if isinstance(item, Bound) else self.cells.is_finite(item, terms.column(item.real, alias))

    def validity(self, table: Table, alias: str) -> tuple[exp.Expr, exp.Expr]:
        """Return the seconds between which a row of a table with times holds, NULL if it states none."""
        is_stated = {key: self.is_given(item, alias) for key, item in table.bounds}
        seconds = {key: self.cells.bound(item, terms.column(item.real, alias))[:2] for key, item in table.bounds}

        def bound_of(keys: tuple[str, str], at: int, otherwise: int) -> exp.Expr:
            pairs = [(is_stated[key].copy(), seconds[key][at]) for key in keys if key in is_stated]
            open_cases = [(test.copy(), terms.literal(otherwise)) for key, test in is_stated.items() if key not in keys]
            return terms.case([*pairs, *open_cases], terms.NULL.copy())

        return bound_of(BOUND_KEYS["start"], 0, OPEN_START), bound_of(BOUND_KEYS["end"], 1, OPEN_END)

    @staticmethod
    def may_not_hold(table: Table) -> bool:
        """Tell whether rows of a table may hold at no time."""
        return len(table.bounds) == 2

    def holds(self, table: Table, alias: str) -> exp.Expr:
        """Return a test that a row of a table with two bounds does not end before it starts; otherwise it gives no statements."""
        bounds = [item for _, item in table.bounds]
        start, end = bounds
        if start.sort == end.sort != "time":
            first, last = (terms.column(item.real, alias) for item in bounds)
            late: exp.Expr = (exp.GTE if end.excluded else exp.GT)(this=first, expression=last)
        else:
            late = exp.GTE(this=self.cells_at(start, alias)["start"], expression=self.cells_at(end, alias)["stop"])
        return terms.none_of([[late, *(self.is_given(item, alias) for item in bounds)]])

    def cells_at(self, item: Column, alias: str) -> dict[str, exp.Expr]:
        """Return the parts of a value of a row. Infinite numbers and times are texts."""
        cell, kind = terms.column(item.real, alias), terms.literal(int(item.kind))
        if isinstance(item, Bound):
            start, stop, precision = self.cells.bound(item, cell)
            is_stated = self.is_given(item, alias)
            times = {
                part: terms.case([(is_stated.copy(), value)], terms.NULL.copy())
                for part, value in (("start", start), ("stop", stop))
            }
            return {"kind": kind, **times, "precision": terms.literal(int(precision))}
        if item.kind is Kind.TEXT:
            return {"kind": kind, "text": self.cells.text(item, cell)}
        result: dict[str, exp.Expr] = {"kind": kind}
        finite = self.is_finite(item, alias)

        def where_finite(value: exp.Expr) -> exp.Expr:
            return value if finite is None else terms.case([(finite.copy(), value)], terms.NULL.copy())

        if finite is not None:
            result["kind"] = terms.case([(finite.copy(), kind)], terms.literal(int(Kind.TEXT)))
            result["text"] = terms.case([(finite.copy(), terms.NULL.copy())], terms.cast(cell.copy(), "text"))
        if item.kind is Kind.QUANTITY:
            result["number"] = where_finite(self.cells.number(item, cell.copy()))
            result["unit"] = where_finite(terms.literal(NO_UNIT))
            if item.inexact:
                result |= {part: where_finite(value) for part, value in self.cells.exactly(item, cell.copy()).items()}
            return result
        day = item.sort == "date"
        start = where_finite(terms.cast(call("FLOOR", self.cells.seconds(cell.copy())), "bigint"))
        result["start"] = start
        result["stop"] = exp.Add(this=start.copy(), expression=terms.literal(86_400 if day else 1))
        result["precision"] = terms.literal(int(Precision.DAY if day else Precision.SECOND))
        return result

    # -- what is left out --------------------------------------------------------------------------

    def checks(self) -> Iterator[tuple[str, terms.Query | None, bool]]:
        """Yield what to report about the tables: a message, a query, and whether the rows it counts are an error.

        If there is a query, its count comes before the message.
        """
        for table in self.tables.values():
            large = table.is_view or table.rows > MAX_COUNTED
            if not table.key and table.relation is None:
                yield f"{table.name!r} has no key: its rows are numbered as they lie; a mapping file gives a key", None, False
            if not table.certain:
                key = f"the key {_listing(table.key)} of {table.name!r}"
                if large:
                    yield f"whether {key} is in each row, and is different in each, was not looked at", None, False
                else:
                    parts = [terms.known(terms.column(table.column(item).real, "t")) for item in table.key]
                    yield (
                        f"of {table.name!r} left out: no key {_listing(table.key)}",
                        _counted(_quoted(table, "t"), exp.not_(terms.both(parts))),
                        False,
                    )
                    yield (
                        f"of {table.name!r} with the key {_listing(table.key)} of another row",
                        self.repeats(table, table.key),
                        True,
                    )
            for other in self.tables:
                if table.relation is None and other.startswith(f"{table.name}/"):
                    start = call("SUBSTR", self.id(table), terms.literal(1), terms.literal(len(other) + 1))
                    nested = exp.EQ(this=start, expression=terms.literal(f"{other}/"))
                    collides = terms.either([exp.EQ(this=self.id(table), expression=terms.literal(other)), nested])
                    message = f"of {table.name!r} with the id of {other!r} or of one of its rows"
                    yield message, _counted(self.rows(table), collides), True
            for item in table.values:
                if item.sort != "time" or item.type == "TIMESTAMP_S":
                    continue
                if large:
                    yield (
                        f"fractions of a second in {item.predicate!r} of {table.name!r} are left out, and were not counted",
                        None,
                        False,
                    )
                else:
                    seconds = self.cells.seconds(terms.column(item.real, "t"))
                    test = exp.NEQ(this=seconds, expression=call("FLOOR", seconds.copy()))
                    message = f"of {table.name!r} without the fraction of a second in {item.predicate!r}"
                    yield message, _counted(_quoted(table, "t"), test), False
            yield from self._reference_checks(table, large)
            yield from self._time_checks(table, large)

    def _reference_checks(self, table: Table, large: bool) -> Iterator[tuple[str, terms.Query | None, bool]]:
        ends = ends_of(table)
        if table.relation is not None:
            for reference in table.references:
                if reference not in ends:
                    columns = _listing(reference.columns)
                    yield f"the reference {columns} of {table.name!r} is left out: ends of relations have one column", None, False
            both_ends_exist = terms.both([self._end(table, item)[2] for item in ends[:2]])
            if large:
                yield f"rows of {table.name!r} that lack an end of the relation are left out, and were not counted", None, False
            else:
                query = _counted(self.rows(table), exp.not_(exp.Paren(this=both_ends_exist)))
                yield f"of {table.name!r} left out: an end of the relation is missing", query, False
        for reference in ends[2:] if table.relation is not None else table.references:
            other = self.tables[reference.target]
            columns = _listing(reference.columns)
            if reference.keys != other.key and not reference.certain and not (other.is_view or other.rows > MAX_COUNTED):
                message = f"of {other.name!r} with the same {_listing(reference.keys)}, which {columns} of {table.name!r} refers to"
                yield message, self.repeats(other, reference.keys), True
            if reference.certain and other.certain:
                continue
            if large or other.is_view:
                yield (
                    f"{columns} of {table.name!r} that lead to no row of {other.name!r} are left out, and were not counted",
                    None,
                    False,
                )
                continue
            has_key = terms.both([terms.known(terms.column(table.column(item).real, "t")) for item in reference.columns])
            dangling = terms.both([has_key, exp.not_(exp.Paren(this=self._end(table, reference)[2]))])
            message = f"of {table.name!r} without {columns}: no row of {other.name!r} has that key"
            yield message, _counted(self.rows(table), dangling), False

    def _time_checks(self, table: Table, large: bool) -> Iterator[tuple[str, terms.Query | None, bool]]:
        for _, bound in table.bounds:
            if bound.whole and not large:
                number = exp.GT(this=terms.column(bound.real, "t"), expression=terms.literal(9_999))
                message = (
                    f"of {table.name!r} with no year in {bound.predicate!r}, which counts as empty: a view makes a date of 20240131"
                )
                yield message, _counted(self.rows(table), number), False
        if not self.may_not_hold(table):
            return
        (_, start), (_, end) = table.bounds
        problem = f"hold at no time, since {end.predicate!r} is before {start.predicate!r}: their statements are left out"
        if large:
            yield f"whether rows of {table.name!r} {problem}, was not counted", None, False
            return
        yield f"of {table.name!r} {problem}", _counted(self.rows(table), exp.not_(self.holds(table, "t"))), False
        if end.excluded or start.type != end.type:
            return
        starts = terms.select(terms.column(start.real, "s")).from_(self.rows(table, "s"), copy=False)
        starts = starts.where(self.is_given(start, "s"), copy=False)
        touches = terms.case([(terms.within(terms.column(end.real, "t"), starts), terms.literal(1))], terms.literal(0))
        is_majority = exp.GT(
            this=exp.Mul(this=exp.Sum(this=touches), expression=terms.literal(2)), expression=exp.Count(this=exp.Star())
        )
        query = terms.select(terms.case([(is_majority, exp.Sum(this=touches.copy()))], terms.literal(0))).from_(
            self.rows(table), copy=False
        )
        excluded = f'times = "[{start.predicate}, {end.predicate})" excludes the end'
        message = f"of {table.name!r} end when another row starts, and both hold then; {excluded}"
        yield message, query.where(self.is_given(end, "t"), copy=False), False

    def repeats(self, table: Table, columns: Sequence[str]) -> terms.Query:
        """Return a query that counts the rows whose columns repeat those of an earlier row."""
        is_complete = terms.both([terms.known(terms.column(table.column(item).real, "t")) for item in columns])
        distinct_keys = exp.Count(this=exp.Distinct(expressions=[self._key(table, columns, "t")]))
        return (
            terms.select(exp.Sub(this=exp.Count(this=exp.Star()), expression=distinct_keys))
            .from_(_quoted(table, "t"), copy=False)
            .where(is_complete, copy=False)
        )


def _counted(relation: exp.Expr, test: exp.Expr) -> terms.Query:
    return terms.select(exp.Count(this=exp.Star())).from_(relation, copy=False).where(test, copy=False)


def _listing(columns: Sequence[str]) -> str:
    return " + ".join(map(repr, columns))


def shortfalls(engine: Engine, tables: NativeTables) -> Iterator[str]:
    """Yield what the tables leave out, with numbers, by one query; raise `LoadError` if rows share a key."""
    checks = list(tables.checks())
    yield from (message for message, query, _ in checks if query is None)
    queries = [
        terms.select(terms.named(terms.literal(at), "n"), terms.named(exp.Subquery(this=query), "rows"))
        for at, (_, query, _) in enumerate(checks)
        if query is not None
    ]
    if not queries:
        return
    for at, rows in sorted(engine.read(terms.together(queries))):
        message, _, is_error = checks[at]
        text = f"{numbered(rows, 'row', 'rows')} {message}"
        if rows and is_error:
            raise LoadError(f"{engine.place}: {text}", hint="ids are different in each row: a mapping file gives another key")
        if rows:
            yield text


def look_at_cells(engine: Engine, tables: NativeTables) -> Iterator[str]:
    """Find the columns whose texts have white space that graph texts do not have, and those with infinite numbers or times, by
    one query; yield what was not checked.

    Keys that differ only in white space are compared as they are.
    """
    checked: list[tuple[Table, list[tuple[Column, exp.Expr]]]] = []
    unchecked: list[str] = []
    unbounded: list[str] = []
    for table in tables.tables.values():
        texts = [item for item in table.columns if item.kind is Kind.TEXT and item.sort != "bytes"]
        bounded = [(item, test) for item in table.columns if (test := tables.is_finite(item, "t")) is not None]
        for item in table.columns:
            item.untidy = item.infinite = False
        if table.is_view or table.rows > MAX_READ:
            unchecked += [table.name] if texts else []
            unbounded += [table.name] if bounded else []
        elif texts or bounded:
            tests = [(item, is_untidy(tables.cells.text(item, terms.column(item.real, "t")))) for item in texts]
            # A missing cell is not infinite.
            tests += [(item, terms.both([tables.is_given(item, "t"), exp.not_(exp.Paren(this=test))])) for item, test in bounded]
            checked.append((table, tests))
    queries: list[terms.Query] = []
    for at, (table, tests) in enumerate(checked):
        flags: exp.Expr = terms.literal("")
        for _, test in tests:
            flag = exp.Max(this=terms.case([(test, terms.literal("1"))], terms.literal("0")))
            flags = exp.DPipe(this=flags, expression=terms.coalesce(flag, terms.literal("0")))
        queries.append(terms.select(terms.literal(at), flags).from_(_quoted(table, "t"), copy=False))
    for at, marks in engine.read(terms.together(queries)) if queries else ():
        for (item, _), mark in zip(checked[at][1], marks, strict=True):
            if item.kind is Kind.TEXT:
                item.untidy = mark == "1"
            else:
                item.infinite = mark == "1"
    references = [(table, part) for table in tables.tables.values() for part in table.references]
    keys = {(table.name, table.key) for table in tables.tables.values()} | {(part.target, part.keys) for _, part in references}
    untidy = [key for key in sorted(keys) if any(tables.tables[key[0]].column(item).untidy for item in key[1])]
    repeats: list[terms.Query] = [
        terms.select(terms.literal(at), exp.Subquery(this=tables.repeats(tables.tables[table], columns)))
        for at, (table, columns) in enumerate(untidy)
    ]
    for at, count in engine.read(terms.together(repeats)) if repeats else ():
        if count:
            name, columns = untidy[at]
            compared = [tables.tables[name].column(item) for item in columns]
            compared += [table.column(item) for table, part in references if part.target == name for item in part.columns]
            for item in compared:
                item.untidy = False
            yield f"white space alone tells {_listing(columns)} of rows of {name!r} apart, and is compared as it is"
    if unchecked:
        yield f"white space in texts of {_listing(unchecked)} was not looked at, and is compared as it is"
    if unbounded:
        yield f"infinite numbers and times of {_listing(unbounded)} were not looked for; tests leave them out without a warning"


def _same_text(column: Column, other: Column) -> bool:
    """Tell whether equal cells of two columns are the same text."""
    if column.whole and other.whole:
        return True
    plain = column.sort in ("text", "date") or column.type.upper() == "UUID"
    return plain and column.sort == other.sort and column.type == other.type and not (column.ordered or other.ordered)


def check_tables(tables: Sequence[Table], place: str) -> None:
    """Raise `OptionError` if no table has a key, since nothing then identifies the rows."""
    if not any(table.key or table.references for table in tables):
        raise OptionError(
            f"{place} has neither a graph of condgraph's nor a table with a key",
            hint='a mapping file (condgraph.toml) says the keys: mapping=; or layout="condgraph" makes a graph there',
        )
