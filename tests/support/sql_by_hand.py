# ruff: noqa: E501
"""A shop even more awkward than `ugly_shop`, for PostgreSQL and DuckDB, and random programs over it with SQL as a
person would write it.

It has keys of several columns and types, references to them with some parts NULL, tables that refer to themselves and
to each other, one name in two schemas, a table without a key and one without rows; columns named by keywords,
punctuation, letters that differ only in case or composition; numbers that no float can hold, decimals of 38 digits,
infinity and negative zero; blank texts; dates BC and clocks that were set back; enums, lists, JSON, intervals, and
collations that treat different letters as equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import condgraph
from condgraph.engine.errors import CondgraphError
from condgraph.engine.values import Quantity, Time

Row = dict[str, str | None]
Test = Callable[[str], str]
_NUMBERS: Final = ("int", "big", "huge", "num", "wide", "money", "double", "real")
_TIMES: Final = ("date", "ts", "tns", "tstz")


@dataclass
class Table:
    """A table: its columns with their types, references, and rows as texts to be cast."""

    name: str
    columns: dict[str, str]
    key: tuple[str, ...] = ()
    references: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)
    schema: str = ""
    called: str = ""
    label: str | None = None
    relation: str | None = None
    later: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    @property
    def values(self) -> list[str]:
        """The columns that are not references."""
        taken = {columns[0] for columns, _, _ in self.references if len(columns) == 1}
        return [column for column in self.columns if column not in taken]


_TYPES: Final = {
    True: {
        "int": "integer", "big": "bigint", "num": "numeric(18, 2)", "wide": "numeric(38, 10)", "any": "numeric", "double": "double precision",
        "real": "real", "date": "date", "ts": "timestamp", "tstz": "timestamptz", "text": "text", "char": "char(6)", "enum": '"Mo od"',
        "bool": "boolean", "uuid": "uuid", "json": "jsonb", "interval": "interval", "list": "text[]", "bytes": "bytea", "time": "time",
        "caseless": 'text COLLATE "caseless"', "bit": "bit varying(8)", "money": "money",
    },
    False: {
        "int": "INTEGER", "big": "BIGINT", "huge": "HUGEINT", "num": "DECIMAL(18, 2)", "wide": "DECIMAL(38, 10)", "double": "DOUBLE", "real": "FLOAT",
        "date": "DATE", "ts": "TIMESTAMP", "tns": "TIMESTAMP_NS", "tstz": "TIMESTAMPTZ", "text": "VARCHAR", "char": "CHAR(6)", "enum": '"Mo od"',
        "bool": "BOOLEAN", "uuid": "UUID", "json": "JSON", "interval": "INTERVAL", "list": "VARCHAR[]", "bytes": "BLOB", "time": "TIME",
        "caseless": "VARCHAR COLLATE NOCASE", "struct": 'STRUCT("a b" INTEGER, c VARCHAR)',
    },
}  # fmt: skip
_TEXTS: Final = (
    "", " ", "a", "A", "a ", " a", "b'c", 'd"e', "x\\y", "é", "e\u0301", "ж", "İ", "ß", "10", "1.0", "NULL", "n/a", "true", "false", "-",
    "a  b", "%", "_", "\t", "\n", "😀", "NaN", "2020-01-01", "$1", "{}", "0", "  two", "\u00a0", "z" * 300,
)  # fmt: skip
_MOODS: Final = ("sad", "so 'so", "Ok", "", " x")
_CELLS: Final = {
    "int": ("0", "1", "2", "3", "-1", "7", "2147483647", "-2147483648", "5", "6"),
    "big": ("0", "1", "9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", "4"),
    "huge": ("0", "1", "9007199254740993", str(2**100 + 1), str(2**127 - 1), str(1 - 2**127), "4"),
    "num": ("0", "0.00", "1.5", "1.50", "99.90", "-0.01", "1234567890123456.78", "1234567890123456.77", "9007199254740993.25", "9999999999999999.99", "0.1", "3"),
    "wide": ("0", "0.1", "250000", "250000.5", "1.0000000001", "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456788", "-9007199254740993",
             "9007199254740993", "0.0000000001", "123456789.123456789", "-1234567890123456789012345678.0123456789", "2"),
    "any": ("0", "0.1", "0.1234567890123456789", "0.1234567890123456788", "12345678901234567890.25", "123456789012345678901234567890", "-1e-20", "100000000000000000000", "2"),
    "money": ("0", "1.50", "-3.25", "1234.5", "92233720368547758.07"),
    "double": ("0", "-0.0", "0.1", "0.30000000000000004", "1e300", "5e-324", "NaN", "Infinity", "-Infinity", "9007199254740992", "1e22", "1.5"),
    "real": ("0", "0.1", "16777216", "1e30", "NaN", "Infinity", "3.4e38", "1.5"),
    "date": ("2020-02-29", "2020-03-29", "1970-01-01", "0001-01-01", "BC", "infinity", "-infinity", "9999-12-31", "10000-01-01", "2020-03-01"),
    "ts": ("2020-03-29 02:30:00", "2020-03-29 02:30:00.5", "1969-12-31 23:59:59.999999", "infinity", "0001-01-01 00:00:00", "2020-01-01 00:00:00", "2020-10-25 02:00:00"),
    "tns": ("2020-03-29 02:30:00.123456789", "1969-12-31 23:59:59.999999999", "2020-01-01 00:00:00"),
    "tstz": ("2020-03-29 01:30:00+01", "2020-03-29 03:30:00+02", "2020-10-25 02:30:00+02", "2020-10-25 02:30:00+01", "1883-11-18 12:03:58-04:56", "-infinity",
             "2020-01-01 00:00:00+00", "2020-06-01 10:00:00.25+05:45"),
    "text": _TEXTS, "caseless": _TEXTS, "char": ("", "a", "A", "ab c", " b", "ж"), "enum": _MOODS, "bool": ("true", "false"),
    "uuid": tuple(str(UUID(int=number)) for number in range(6)), "json": ('{"k": [1, 2]}', '"a"', "null", "{}", "[]", "1.50", '{"b":1,"a":2}', '""'),
    "interval": ("1 day", "24:00:00", "1 mon", "30 days", "-1 day", "1 year 2 mons", "00:00:00.5"), "time": ("00:00:00", "23:59:59.5", "12:00:00"),
    "bit": ("", "101", "1"), "struct": ("{'a b': 1, 'c': x}", "{'a b': NULL, 'c': NULL}"),
}  # fmt: skip
_LISTS: Final = {
    True: ("{}", '{a,"b c"}', "{NULL}", '{"","\\"q"}', "{1,2}"),
    False: ("[]", "[a, 'b c']", "[NULL]", "['']", "[1,2]"),
}
_BYTES: Final = {True: ("\\xdeadbeef", "\\x", "\\x00"), False: ("\\xDE\\xAD", "", "\\x00")}


def shop(postgres: bool) -> list[Table]:
    """Return the tables, with rows."""
    main, types = "public" if postgres else "main", _TYPES[postgres]
    users, self_referring = f"{main}.user", "Tab\"le 'x"
    odd_columns = {
        "order": "int", "Group By": "text", "a.b": "num", "$1": "date", "näme": "tstz", "%s": "bool", "?": "enum", " lead": "text", "trail ": "text",
        "new\nline": "int", "tab\tx": "int", "\\": "text", "'": "text", '"': "real", "{}": "double", "😀": "json", "e\u0301": "int", "é": "int", ";--": "ts",
    }  # fmt: skip
    tables = [
        Table("select", odd_columns | ({"A": "int", "a": "int", "x" * 63: "text"} if postgres else {}), ("order",)),
        Table(self_referring, {"k 1": "date", "K 2": "text", "k 3": "num", "p1": "date", "p2": "text", "p3": "num", "v": "double", "of": "int"},
              ("k 1", "K 2", "k 3"), [(("p1", "p2", "p3"), self_referring, ("k 1", "K 2", "k 3")), (("of",), "select", ("order",))]),
        Table("user", {"id": "int", "name": "text", "E-Mail": "text", "boss": "int", "born": "date"}, ("id",), [(("boss",), users, ("id",))],
              called=users, label="name"),
        Table("user", {"id": "big", "since": "tstz", "Rank": "enum"}, ("id",), schema="Sales ", called="Sales .user"),
        Table("товары 商品", {"код": "uuid", "основной": "int", "цена": "wide", "kind": "enum"}, ("код",)),
        Table("скл\nад", {"№": "int", "товар": "uuid", "текст": "text"}, ("№",), [(("товар",), "товары 商品", ("код",))]),
        Table("likes;--", {"a": "int", "b": "int"}, (), [(("a",), users, ("id",)), (("b",), users, ("id",))], relation="likes;--"),
        Table("no key", {"x": "int", "y": "text"}),
        Table("empty", {"id": "int", "q": "text", "n": "num"}, ("id",)),
        Table("only", {"k": "text"}, ("k",)),
        Table("t", {"row": "int", "t1": "int", "e": "text", "s": "text", "o": "int", "kind": "text", "number": "double", "text": "text", "t": "int", "start": "date"},
              ("row",), [(("o",), "t", ("row",)), (("t",), "select", ("order",))]),
        Table("types", {"id": "int", **{f"c {kind}": kind for kind in types}}, ("id",)),
        Table("by mail", {"id": "int", "mail": "text", "m2": "text"}, ("id",), [(("mail",), users, ("E-Mail",))]),
        Table("tagged", {"at": "tstz", "who": "int", "score": "num", "note": "text"}, ("at", "who"), [(("who",), users, ("id",))]),
    ]  # fmt: skip
    if postgres:
        tables[4].later.append((("основной",), "скл\nад", ("№",)))
    for table in tables:
        table.schema, table.called = table.schema or main, table.called or table.name
    _fill(tables, Random(7), postgres)
    return tables


def _cell(kind: str, random: Random, postgres: bool) -> str | None:
    if random.random() < 0.2:
        return None
    cells = _LISTS[postgres] if kind == "list" else _BYTES[postgres] if kind == "bytes" else _CELLS[kind]
    cell = random.choice(cells)
    if cell == "BC":
        return "0044-03-15 BC" if postgres else "0044-03-15 (BC)"
    return cell


def _fill(tables: list[Table], random: Random, postgres: bool, most: int = 30) -> None:
    by_name = {table.called: table for table in tables}
    for table in tables:
        keys: set[Any] = set()
        for at in range(0 if table.called == "empty" else most):
            row = {column: _cell(kind, random, postgres) for column, kind in table.columns.items()}
            for columns, target, others in table.references:
                complete = [other for other in by_name[target].rows if all(other[column] is not None for column in others)]
                if complete and (random.random() < 0.8 or set(columns) & set(table.key)):
                    other = random.choice(complete)
                    row |= {column: other[target_column] for column, target_column in zip(columns, others, strict=True)}
                else:
                    row[random.choice(columns)] = None
            if "E-Mail" in row and row["E-Mail"] in {other["E-Mail"] for other in table.rows}:
                row["E-Mail"] = None
            for column in table.key:
                kind = table.columns[column]
                if len(table.key) == 1 and kind == "int":
                    row[column] = str(at - 3)
                while row[column] is None:
                    row[column] = _cell(kind, random, postgres)
            key = tuple(
                Decimal(str(row[column])) if table.columns[column] in ("num", "int", "big") else row[column] for column in table.key
            )
            if not key or key not in keys:
                keys.add(key)
                table.rows.append(row)


def quoted(name: str) -> str:
    """Return a name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def place(table: Table) -> str:
    """Return a table's name in SQL."""
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def statements(tables: list[Table], postgres: bool) -> list[str]:
    """Return the statements that create the shop."""
    types, by_name = _TYPES[postgres], {table.called: table for table in tables}
    result = [f'CREATE TYPE "Mo od" AS ENUM ({", ".join(map(_text, _MOODS))})', 'CREATE SCHEMA "Sales "']
    if postgres:
        result.append("CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")

    def refers(columns: tuple[str, ...], target: str, others: tuple[str, ...]) -> str:
        own_columns, target_columns = (", ".join(map(quoted, names)) for names in (columns, others))
        return f"FOREIGN KEY ({own_columns}) REFERENCES {place(by_name[target])} ({target_columns})"

    for table in tables:
        lines = [f"{quoted(column)} {types[kind]}{' UNIQUE' * (column == 'E-Mail')}" for column, kind in table.columns.items()]
        lines += [f"PRIMARY KEY ({', '.join(map(quoted, table.key))})"] if table.key else []
        lines += [refers(*reference) for reference in table.references]
        result.append(f"CREATE TABLE {place(table)} ({', '.join(lines)})")
    for table in tables:
        kinds = [types[kind].partition(" COLLATE")[0] for kind in table.columns.values()]
        for row in table.rows:
            cells = [
                "NULL"
                if cell is None
                else f"{_text(cell)}::numeric::money"
                if kind == "money"
                else f"CAST({_text(cell)} AS {kind})"
                for cell, kind in zip(row.values(), kinds, strict=True)
            ]
            result.append(f"INSERT INTO {place(table)} VALUES ({', '.join(cells)})")
    for table in tables:
        for reference in table.later:
            (column,), target, (other,) = reference
            keys = f"SELECT {quoted(other)} FROM {place(by_name[target])}"
            result.append(f"UPDATE {place(table)} SET {quoted(column)} = NULL WHERE {quoted(column)} NOT IN ({keys})")
            result.append(f"ALTER TABLE {place(table)} ADD {refers(*reference)}")
            table.references.append(reference)
    return result


# -- programs ----------------------------------------------------------------------------------------


def _sort(kind: str) -> str:
    return "number" if kind in (*_NUMBERS, "any") else "time" if kind in _TIMES else "text"


@dataclass
class _Set:
    """Rows of a table: the test that they meet, and the steps that find them."""

    table: Table
    test: Test
    steps: list[tuple[str, tuple[str, ...]]]


@dataclass
class Program:
    """A program, its SQL, and the kind of its rows: a count, names, or values of a type."""

    text: str
    sql: str
    sort: str


class Maker:
    """Random programs over the shop; `texts` are the texts in its columns, by table and column."""

    def __init__(self, tables: list[Table], postgres: bool, seed: int, texts: dict[tuple[str, str], list[str]]) -> None:
        self.tables, self.postgres, self.random, self.texts = tables, postgres, Random(seed), texts
        self._by_name = {table.called: table for table in tables}
        self._aliases = 0

    def program(self) -> Program:
        """Return a random program."""
        random = self.random
        rows = self._set(random.choice([table for table in self.tables if table.relation is None]), 1)
        table, alias, draw = rows.table, self._alias(), random.random()
        base = f"FROM {place(table)} {alias} WHERE ({rows.test(alias)})"
        if draw < 0.4 or (draw >= 0.8 and len(table.key) != 1):
            return Program(_written([*rows.steps, ("Count", ())]), f"SELECT count(*) {base}", "count")
        if draw < 0.8:
            column = random.choice(table.values)
            kind, cell = table.columns[column], f"{alias}.{quoted(column)}"
            value = f"SELECT DISTINCT {self._shown(kind, cell)} {base} AND {self._given(kind, cell)}"
            return Program(_written([*rows.steps, ("QueryAttr", (column,))]), value, _sort(kind))
        key = f"{alias}.{quoted(table.key[0])}"
        name = f"{_text(f'{table.called}/')} || {self.as_text(table.columns[table.key[0]], key)}"
        if table.label is not None:
            label = self.as_text("text", f"{alias}.{quoted(table.label)}")
            name = f"CASE WHEN {_filled(label)} THEN {label} ELSE {name} END"
        numbers = [column for column in table.values if _sort(table.columns[column]) == "number"]
        if draw < 0.9 or not numbers:
            return Program(_written([*rows.steps, ("QueryName", ())]), f"SELECT DISTINCT {name} {base}", "names")
        column, inner = random.choice(numbers), self._alias()
        kind, direction = table.columns[column], random.choice(("largest", "smallest"))
        cell_outside, cell_inside = (f"{item}.{quoted(column)}" for item in (alias, inner))
        candidates = f"SELECT * FROM {place(table)} {inner} WHERE ({rows.test(inner)}) AND {self._finite(kind, cell_inside)}"
        best = f"SELECT {'max' if direction == 'largest' else 'min'}({self._number(kind, cell_inside)}) FROM ({candidates}) {inner}"
        test = f"CASE WHEN {self._finite(kind, cell_outside)} THEN {self._number(kind, cell_outside)} = ({best}) ELSE false END"
        return Program(
            _written([*rows.steps, ("SelectAmong", (column, direction))]), f"SELECT DISTINCT {name} {base} AND {test}", "names"
        )

    def _alias(self) -> str:
        self._aliases += 1
        return f"x{self._aliases}"

    def _set(self, table: Table, depth: int) -> _Set:
        random = self.random
        rows = _Set(table, lambda alias: "true", [("FindAll", ()), ("FilterConcept", (table.called,))])
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            rows = self._filtered(rows) if random.random() < 0.55 else self._reached(rows)
        for _ in range(6 if depth and random.random() < 0.35 else 0):
            other = self._set(rows.table, 0)
            if other.table is rows.table:
                word = random.choice(("And", "Or"))
                return _Set(rows.table, _both(word, rows.test, other.test), [*rows.steps, *other.steps, (word, ())])
        return rows

    def _filtered(self, rows: _Set) -> _Set:
        random, table, rows_test = self.random, rows.table, rows.test
        column = random.choice(table.values)
        kind, operator = table.columns[column], random.choice(("=", "!=", "<", ">"))

        def cell(alias: str) -> str:
            return f"{alias}.{quoted(column)}"

        if _sort(kind) == "number":
            excluded = ("NaN", "Infinity", "-Infinity", "1e300", "5e-324", "3.4e38", "1e30", "-1e-20")
            existing = [text for text in (row[column] for row in table.rows) if text is not None and text not in excluded]
            value = random.choice([*existing, "1", "2", *(() if kind in ("int", "big", "huge") else ("0.1",))])
            step = ("FilterNum", (column, value, operator))

            def test(alias: str) -> str:
                compared = f"{self._number(kind, cell(alias))} {operator.replace('!=', '<>')} {self._constant(kind, value)}"
                return f"CASE WHEN {self._finite(kind, cell(alias))} THEN {compared} ELSE false END"

        elif _sort(kind) == "time":
            days = ["2020-03-29", "2020-10-25", "1970-01-01", "1969-12-31", "2020-01-01", "2020-02-29"]
            day = random.choice(days if kind == "tns" else [*days, "0001-01-01", "9999-12-31"])
            step = ("FilterDate", (column, day, operator))
            form = {"date": "date", "tstz": "timestamptz"}.get(kind, "timestamp")
            low = f"{form} '{day}{' 00:00:00+00' * (kind == 'tstz')}'"
            high = f"({low} + interval '1 day')"

            def test(alias: str) -> str:
                item = cell(alias)
                is_within = f"({item} >= {low} AND {item} < {high})"
                compared = {"=": is_within, "!=": f"NOT {is_within}", "<": f"{item} < {low}", ">": f"{item} >= {high}"}[operator]
                return f"({self._finite(kind, item)} AND {compared})"

        else:
            text = random.choice([*self.texts[table.called, column], "a", ""])
            # Programs collapse white space in texts.
            step, words = ("FilterStr", (column, text)), " ".join(text.split())

            def test(alias: str) -> str:
                return f"({self._given(kind, cell(alias))} AND {self.as_text(kind, cell(alias))} = {_text(words)})"

        return _Set(table, lambda alias: f"({rows_test(alias)}) AND {test(alias)}", [*rows.steps, step])

    def _reached(self, rows: _Set) -> _Set:
        table, rows_test = rows.table, rows.test
        links: list[tuple[Table, bool, Any]] = []
        for other in self.tables:
            for reference in other.references:
                if other.relation is None:
                    links += [(other, True, reference)] if other is table else []
                if reference[1] == table.called:
                    links.append((other, False, reference))
        if not links:
            return rows
        linking, forward, (columns, target, others) = self.random.choice(links)
        inner, between = self._alias(), self._alias()
        if linking.relation is not None:
            near = 0 if linking.references[0][0] == columns else 1
            (near_column,), _, (key,) = linking.references[near]
            (far_column,), end, (other_key,) = linking.references[1 - near]

            def along(alias: str) -> str:
                joined = f"{place(linking)} {between} JOIN {place(table)} {inner} ON {between}.{quoted(near_column)} = {inner}.{quoted(key)}"
                return f"EXISTS (SELECT 1 FROM {joined} WHERE {rows_test(inner)} AND {between}.{quoted(far_column)} = {alias}.{quoted(other_key)})"

            step = ("Relate", (linking.relation, "backward" if near else "forward"))
            return _Set(self._by_name[end], along, [*rows.steps, step])

        def linked(alias: str) -> str:
            referring, referred = (inner, alias) if forward else (alias, inner)
            equalities = " AND ".join(
                f"{referring}.{quoted(column)} = {referred}.{quoted(other_column)}"
                for column, other_column in zip(columns, others, strict=True)
            )
            return f"EXISTS (SELECT 1 FROM {place(table)} {inner} WHERE {rows_test(inner)} AND {equalities})"

        end_of = self._by_name[target] if forward else linking
        step = ("Relate", (" + ".join(columns), "forward" if forward else "backward"))
        return _Set(end_of, linked, [*rows.steps, step, ("FilterConcept", (end_of.called,))])

    # -- cells -------------------------------------------------------------------------------------

    def as_text(self, kind: str, cell: str) -> str:
        """Return a cell as text, with collapsed white space unless that would make two keys equal."""
        text = self._printed(kind, cell)
        if cell.endswith(_APART):
            return text
        return f"trim(regexp_replace({text}, '[ \t\n\u00a0]+', ' ', 'g'), ' ')"

    def _printed(self, kind: str, cell: str) -> str:
        if self.postgres:
            special = {"list": f"to_json({cell})::text", "bytes": f"'0x' || upper(encode({cell}, 'hex'))"}
            return f'({cell} COLLATE "C")' if kind in ("text", "caseless") else special.get(kind, f"({cell})::text")
        special = {"caseless": f"({cell} COLLATE C)", "bytes": f"'0x' || hex({cell})"}
        return special.get(kind, f"CAST({f'to_json({cell})' if kind in ('list', 'struct') else cell} AS VARCHAR)")

    def _shown(self, kind: str, cell: str) -> str:
        if kind == "money":
            return f"{cell}::numeric::text"
        if _sort(kind) == "time":
            seconds = f"extract(epoch FROM {cell})" if self.postgres else f"epoch({cell})"
            return f"CASE WHEN isfinite({cell}) THEN CAST(CAST(floor({seconds}) AS BIGINT) AS VARCHAR) ELSE CAST({cell} AS VARCHAR) END"
        return f"CAST({cell} AS VARCHAR)" if _sort(kind) == "number" else self.as_text(kind, cell)

    def _given(self, kind: str, cell: str) -> str:
        if _sort(kind) == "text":
            return _filled(self.as_text(kind, cell))
        return f"{cell} IS NOT NULL" + f" AND {cell} <> 'NaN'" * (kind in ("double", "real"))

    def _finite(self, kind: str, cell: str) -> str:
        if kind in ("double", "real"):
            return f"{cell}::text NOT IN ('Infinity', '-Infinity', 'NaN')" if self.postgres else f"isfinite({cell})"
        return f"isfinite({cell})" if _sort(kind) == "time" else f"{cell} IS NOT NULL"

    def _number(self, kind: str, cell: str) -> str:
        if self.postgres:
            return f"({cell}::text)::numeric" if kind in ("double", "real") else f"{cell}::numeric"
        return f"CAST(CAST({cell} AS VARCHAR) AS DOUBLE)" if kind == "real" else cell

    def _constant(self, kind: str, text: str) -> str:
        if self.postgres:
            return f"{_text(text)}::numeric"
        form = "DOUBLE" if kind in ("double", "real") else "HUGEINT" if kind in ("int", "big", "huge") else "DECIMAL(38, 10)"
        return f"CAST({_text(text)} AS {form})"


#: Key columns with texts that differ only in white space, and the columns that refer to them.
_APART: Final = ('"E-Mail"', '"mail"', '"k"')


def _both(word: str, left: Test, right: Test) -> Test:
    return lambda alias: f"({left(alias)}) {word} ({right(alias)})"


def _filled(text: str) -> str:
    return f"trim({text}, ' \t\n\u00a0') <> ''"


def _written(steps: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    return " ".join(f"{function}({', '.join(map(json.dumps, texts))})" for function, texts in steps)


def texts_of(tables: list[Table], postgres: bool, ask: Callable[[str], list[Any]]) -> dict[tuple[str, str], list[str]]:
    """Return the texts in each text column."""
    maker = Maker(tables, postgres, 0, {})
    result = {}
    for table in tables:
        for column, kind in table.columns.items():
            query = f"SELECT DISTINCT {maker.as_text(kind, quoted(column))} FROM {place(table)}"
            result[table.called, column] = (
                sorted(text for (text,) in ask(query) if text is not None) if _sort(kind) == "text" else []
            )
    return result


def expected(rows: list[Any], sort: str) -> Any:
    """Return rows of SQL in a form to compare with an answer."""
    if sort == "count":
        return rows[0][0]
    if sort == "number":
        return {text if "inf" in text.lower() else _decimal(text) for (text,) in rows}
    return {" ".join(text.split()) if sort == "text" else text for (text,) in rows}


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    # A large float is an integer with all its digits.
    return Decimal(int(float(text))) if "e" in text.lower() and abs(number) > 2**53 else number


def answered(answer: Any, sort: str) -> Any:
    """Return the values of an answer in a form to compare with rows of SQL."""
    if sort == "count":
        return answer.values[0]
    if sort == "names":
        return set(answer.texts)
    result = set()
    for value in answer.values:
        if isinstance(value, Quantity):
            result.add(Decimal(repr(value.number) if isinstance(value.number, float) else value.number))
        else:
            result.add(str(value.start) if isinstance(value, Time) else value)
    return result


def different(
    address: str, tables: list[Table], postgres: bool, ask: Callable[[str], list[Any]], folder: Path, programs: int
) -> list[Any]:
    """Return the programs whose answers differ from their SQL, and, checking every tenth one, those whose evidence does
    not prove the answer.
    """
    (folder / "condgraph.toml").write_text('[tables."likes;--"]\nrelation = "likes;--"\n')
    texts, result = texts_of(tables, postgres, ask), list[Any]()
    with condgraph.open(address, mapping=folder / "condgraph.toml") as graph:
        for seed in range(programs):
            program = Maker(tables, postgres, seed, texts).program()
            expected_values = expected(ask(program.sql), program.sort)
            try:
                answer = graph.kopl(program.text)
                if answered(answer, program.sort) != expected_values:
                    result.append((program, answer.texts, expected_values))
                elif seed % 10 == 0 and not answer.check():
                    result.append((program, str(answer.check())))
            except CondgraphError as error:
                result.append((program, str(error)))
        assert "types" in str(graph.schema())
        assert graph.snapshot().current.counts["entities"] > 0
    return result
