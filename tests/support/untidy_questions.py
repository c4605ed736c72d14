"""Random questions about tables of `untidy_tables`, each as SQL and as a table clause, KoPL or an LLM query.

The SQL spells out intended differences: a test of a missing cell is false, also below `not`; the sum of nothing is 0;
missing values come last in every order.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from tests.support.untidy_tables import Column, Table, Tables, Value, written

Language = Literal["table", "kopl", "llm"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `clause` is empty except for tables. `ordered`: the order of rows counts."""

    language: Language
    program: str
    clause: str
    sql: str
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """A column of a row, or of a row that it refers to: as a path, and in SQL."""

    path: str
    sql: str
    column: Column


SUMS: Final = ("count", "sum", "mean", "min", "max", "median", "distinct")
TESTS: Final = ("=", "!=", "<", ">", "<=", ">=")


class Asking:
    """Random questions about one set of tables."""

    def __init__(self, some: random.Random, tables: Tables) -> None:
        self.some, self.tables = some, tables

    def question(self) -> Question:
        """Return the next question."""
        return self.some.choice((self.groups, self.groups, self.rows, self.backward, self.best, self.kopl, self.llm))()

    # -- table clauses ------------------------------------------------------------------------------

    def groups(self) -> Question:
        """Return a question about groups of rows and their sums."""
        dice, table = self.some, self.some.choice(self.tables.tables)
        joins, ways = self._ways(table)
        keys = [self._key(way) for way in dice.sample(ways, min(len(ways), dice.choice((0, 1, 1, 1, 2))))]
        sums = [self._sum(ways) for _ in range(dice.randint(1, 3))]
        sums = list({ours: (ours, sql) for ours, sql in sums}.values())
        where, sql_where = self._where(ways)
        ours = [ours for ours, _ in keys]
        clause = f"{where} group by {', '.join(ours)} " if keys else f"{where} "
        if len(set(ours)) < len(ours):
            return self.groups()
        clause += "show " + ", ".join(f"{expression} as s{at}" for at, (expression, _) in enumerate(sums))
        columns = ", ".join([*(sql for _, sql in keys), *(f"{sql} AS s{at}" for at, (_, sql) in enumerate(sums))])
        sql = f'SELECT {columns} FROM "{table.name}" t {joins} {sql_where}'
        if keys:
            sql += " GROUP BY " + ", ".join(str(at) for at in range(1, len(keys) + 1))
        ordered = False
        if keys and dice.random() < 0.4:
            number = dice.randint(0, 4)
            clause += f" having count() > {number}"
            sql += f" HAVING count(*) > {number}"
        if keys and dice.random() < 0.5:
            order = [(expression, str(at)) for at, (expression, _) in enumerate(keys, 1)]
            order.insert(0, ("s0", str(len(keys) + 1)))
            clause, sql, ordered = *self._order(clause, sql, order), True
        return Question("table", f"FindAll() FilterConcept({table.name})", clause, sql, ordered)

    def rows(self) -> Question:
        """Return a question about rows and their cells."""
        dice, table = self.some, self.some.choice(self.tables.tables)
        joins, ways = self._ways(table)
        shown = dice.sample(ways, min(len(ways), dice.randint(1, 3)))
        where, sql_where = self._where(ways)
        clause = f"{where} show " + ", ".join(f"{way.path} as c{at}" for at, way in enumerate(shown))
        sql = f'SELECT {", ".join(way.sql for way in shown)} FROM "{table.name}" t {joins} {sql_where}'
        # Rows with equal cells may come in either order.
        clause, sql = self._order(clause, sql, [(f"c{at}", str(at + 1)) for at in range(len(shown))])
        return Question("table", f"FindAll() FilterConcept({table.name})", clause, sql, True)

    def backward(self) -> Question:
        """Return a question about rows and those that refer to them."""
        dice = self.some
        references = [
            (table, other, column)
            for table in self.tables.tables
            for other in self.tables.tables
            for column in other.columns
            if column.to == table.name
        ]
        # A column name with which several tables refer means all of them.
        unambiguous = [item for item in references if sum(item[0] is second[0] for second in references) == 1]
        if not unambiguous:
            return self.groups()
        table, other, column = dice.choice(unambiguous)
        values = [item for item in other.columns if item.to is None]
        ways = [_Way(f'^"{column.name}"."{item.name}"', f'o."{item.name}"', item) for item in values]
        sums = [self._sum(ways) for _ in range(dice.randint(1, 2))]
        sums = [item for item in sums if item[0] != "count()"] + [(f'count(^"{column.name}")', "count(o.nr)")]
        clause = f'show "{table.key}" as k, ' + ", ".join(f"{item} as s{at}" for at, (item, _) in enumerate(sums))
        sql = f'SELECT t."{table.key}", ' + ", ".join(item for _, item in sums)
        sql += f' FROM "{table.name}" t LEFT JOIN "{other.name}" o ON o."{column.name}" = t."{table.key}"'
        if dice.random() < 0.3:
            clause = f'where ^"{column.name}" is missing ' + clause
            sql += " WHERE o.nr IS NULL"
        sql += f' GROUP BY t.nr, t."{table.key}"'
        order = [(f"s{at}", str(at + 2)) for at in range(len(sums))]
        clause, sql = self._order(clause, sql, [*order, ("k", "1")])
        return Question("table", f"FindAll() FilterConcept({table.name})", clause, sql, True)

    def best(self) -> Question:
        """Return a question about the values of each group, or sums of calculated values."""
        dice, table = self.some, self.some.choice(self.tables.tables)
        joins, ways = self._ways(table)
        key = dice.choice(ways)
        numbers = [way for way in ways if way.column.kind == "number" and not way.column.unit]
        texts = [way for way in ways if way.column.kind == "text"]
        if texts and (not numbers or dice.random() < 0.5):
            way = dice.choice(texts)
            ours, sql = f"values({way.path})", f"list(DISTINCT {way.sql} ORDER BY {way.sql}) FILTER ({way.sql} IS NOT NULL)"
        elif numbers:
            first, second, sign = dice.choice(numbers), dice.choice(numbers), dice.choice("+-*")
            ours, sql = f"sum({first.path} {sign} {second.path} + 2)", f"coalesce(sum({first.sql} {sign} {second.sql} + 2), 0)"
        else:
            return self.groups()
        where, sql_where = self._where(ways)
        sql = f'SELECT {key.sql}, {sql} FROM "{table.name}" t {joins} {sql_where} GROUP BY 1'
        return Question("table", f"FindAll() FilterConcept({table.name})", f"{where} group by {key.path} show {ours} as s", sql)

    def _order(self, clause: str, sql: str, columns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        in_clause, in_sql = [], []
        for expression, position in columns:
            descending = self.some.random() < 0.5
            in_clause.append(f"{expression} desc" if descending else expression)
            in_sql.append(f"{position} {'DESC' if descending else 'ASC'} NULLS LAST")
        clause += " order by " + ", ".join(in_clause)
        sql += " ORDER BY " + ", ".join(in_sql)
        if self.some.random() < 0.5:
            number, offset = self.some.randint(1, 12), self.some.choice((0, 0, 3))
            clause += f" limit {number} offset {offset}"
            sql += f" LIMIT {number} OFFSET {offset}"
        return clause, sql

    def _ways(self, table: Table) -> tuple[str, list[_Way]]:
        """Return the joins for a table, and its columns with those of the tables that it refers to."""
        joins: list[str] = []
        columns: list[_Way] = []

        def add(here: Table, alias: str, path: str, deep: int) -> None:
            for column in here.columns:
                if column.to is None:
                    columns.append(_Way(f'{path}"{column.name}"', f'{alias}."{column.name}"', column))
                elif deep < 2:
                    other, name = self.tables.table(column.to), f"j{len(joins)}"
                    joins.append(f'LEFT JOIN "{other.name}" {name} ON {alias}."{column.name}" = {name}."{other.key}"')
                    add(other, name, f'{path}"{column.name}".', deep + 1)

        add(table, "t", "", 0)
        return " ".join(joins), columns

    def _key(self, way: _Way) -> tuple[str, str]:
        if way.column.kind == "date" and self.some.random() < 0.6:
            part = self.some.choice(("year", "month", "day"))
            return f"{part}({way.path})", f"{part}({way.sql})"
        return way.path, way.sql

    def _sum(self, ways: list[_Way]) -> tuple[str, str]:
        name, way = self.some.choice(SUMS), self.some.choice(ways)
        kind = way.column.kind
        if (kind == "text" and name not in ("count", "distinct")) or (kind == "date" and name in ("sum", "mean", "median")):
            return "count()", "count(*)"
        if name == "distinct":
            return f"count(distinct {way.path})", f"count(DISTINCT {way.sql})"
        if name == "sum":
            return f"sum({way.path})", f"coalesce(sum({way.sql}), 0)"
        return f"{name}({way.path})", f"{'avg' if name == 'mean' else name}({way.sql})"

    def _where(self, ways: list[_Way]) -> tuple[str, str]:
        if self.some.random() < 0.4:
            return "", ""
        tests = [self._test(self.some.choice(ways)) for _ in range(self.some.choice((1, 1, 2)))]
        word = self.some.choice(("and", "or"))
        in_clause, in_sql = f" {word} ".join([test for test, _ in tests]), f" {word} ".join([test for _, test in tests])
        return f"where {in_clause}", f"WHERE {in_sql}"

    def _test(self, way: _Way) -> tuple[str, str]:
        if way.column.kind == "text" and self.some.random() < 0.3:
            return self._part(way)
        if self.some.random() < 0.15:
            values = [self._value(way.column) for _ in range(3)]
            in_clause = ", ".join([self._ours(way.column, cell) for cell in values])
            return f"{way.path} in ({in_clause})", f"coalesce({way.sql} IN ({', '.join(map(literal, values))}), false)"
        if self.some.random() < 0.15:
            negation = self.some.choice(("", "not "))
            return f"{way.path} is {negation}null", f"{way.sql} IS {negation}NULL"
        value = self._value(way.column)
        op = self.some.choice(("=", "!=") if isinstance(value, str) else TESTS)
        in_clause, in_sql = f"{way.path} {op} {self._ours(way.column, value)}", f"coalesce({way.sql} {op} {literal(value)}, false)"
        return (f"not {in_clause}", f"NOT {in_sql}") if self.some.random() < 0.15 else (in_clause, in_sql)

    def _part(self, way: _Way) -> tuple[str, str]:
        """Return a test of a part of a text."""
        text = str(self._value(way.column))
        begin = self.some.randrange(len(text))
        part = text[begin : begin + self.some.randint(1, 4)].strip() or text
        word, function = self.some.choice((("contains", "contains"), ("starts with", "starts_with"), ("ends with", "ends_with")))
        return f"{way.path} {word} {quoted(part)}", f"coalesce({function}({way.sql}, {quoted(part)}), false)"

    def _ours(self, column: Column, value: Value) -> str:
        """Return a value as in a clause."""
        if isinstance(value, datetime.date):
            return value.isoformat()
        if not isinstance(value, Decimal):
            return quoted(str(value))
        if self.some.random() < 0.5 and column.way not in ("continental", "brackets"):
            return f"'{written(column, value)}'"
        return f"'{value}%'" if column.unit == "%" else f"{value}{column.unit and ' '}{column.unit}"

    def _value(self, column: Column) -> Value:
        return self.some.choice([cell for cell in column.cells if cell is not None])

    # -- KoPL ---------------------------------------------------------------------------------------

    def kopl(self) -> Question:
        """Return a question of filters, references, counts and values."""
        dice, table = self.some, self.some.choice(self.tables.tables)
        program, sql = f"FindAll() FilterConcept({table.name})", f'SELECT t.* FROM "{table.name}" t'
        filterable = [item for item in table.columns if item.to is None and item.name != table.key]
        for column in dice.sample(filterable, min(len(filterable), dice.choice((0, 1, 1, 2)))):
            value = self._value(column)
            op = dice.choice(("=", "!=")) if isinstance(value, str) else dice.choice(TESTS)
            if isinstance(value, str):
                if op == "!=":
                    continue
                program += f" FilterStr({in_json(column.name)}, {in_json(value)})"
            elif isinstance(value, Decimal):
                program += f" FilterNum({in_json(column.name)}, {in_json(f'{value} {column.unit}'.strip())}, {op})"
            else:
                program += f" FilterDate({in_json(column.name)}, {value.isoformat()}, {op})"
            sql = f'SELECT * FROM ({sql}) WHERE "{column.name}" {op} {literal(value)}'
        ref = dice.choice([None, *(item for item in table.columns if item.to is not None)])
        if ref is not None and dice.random() < 0.7:
            other = self.tables.table(ref.to or "")
            program += f" Relate({in_json(ref.name)}, forward)"
            sql = f'SELECT o.* FROM "{other.name}" o WHERE "{other.key}" IN (SELECT "{ref.name}" FROM ({sql}))'
            table = other
        elif table.key is not None and dice.random() < 0.5:
            referring = [item for item in self.tables.tables if any(column.to == table.name for column in item.columns)]
            if referring:
                program += f" Relate({in_json(table.key)}, backward)"
                counts = [
                    f'SELECT count(*) FROM "{item.name}" WHERE "{table.key}" IN (SELECT "{table.key}" FROM ({sql}))'
                    for item in referring
                ]
                return Question("kopl", program + " Count()", "", f"SELECT {' + '.join(f'({item})' for item in counts)}")
        values = [item for item in table.columns if item.to is None and item.kind != "date"]
        if not values or dice.random() < 0.5:
            return Question("kopl", program + " Count()", "", f"SELECT count(*) FROM ({sql})")
        column = dice.choice(values)
        sql = f'SELECT DISTINCT "{column.name}" FROM ({sql}) WHERE "{column.name}" IS NOT NULL'
        return Question("kopl", f"{program} QueryAttr({in_json(column.name)})", "", sql)

    # -- LLM queries --------------------------------------------------------------------------------

    def llm(self) -> Question:
        """Return a question of a lookup and a sum."""
        dice, table = self.some, self.some.choice(self.tables.tables)
        values = [item for item in table.columns if item.to is None]
        source = f", source={quoted(f'untidy/{table.name}')}"
        column = dice.choice(values)
        value = self._value(column)
        op = "=" if isinstance(value, str) else dice.choice(("=", "<", ">", "<=", ">="))
        text = value.isoformat() if isinstance(value, datetime.date) else written(column, value)
        lines = [f"get_information(relation={quoted(column.name)}, tail_entity{op}{quoted(text)}{source})"]
        where = f'"{column.name}" {op} {literal(value)}'
        numbers = [item for item in values if item.kind == "number"]
        if not numbers or dice.random() < 0.3:
            lines.append("count(set='output_of_query1')")
            sql = f'SELECT count(*) FROM "{table.name}" WHERE {where}'
        else:
            other = dice.choice(numbers)
            function = dice.choice(("sum", "mean", "max", "min", "median"))
            lines.append(f"get_information(relation={quoted(other.name)}, head_entity='output_of_query1'{source})")
            lines.append(f"{function}(set='output_of_query2')")
            name = "avg" if function == "mean" else function
            sql = f'SELECT {name}("{other.name}") FROM "{table.name}" WHERE {where}'
        program = "\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1))
        return Question("llm", program, "", sql)


def quoted(text: str) -> str:
    """Return a text as in a table clause or an LLM query."""
    return "'" + text.replace("'", "''") + "'"


def in_json(text: str) -> str:
    """Return an argument of KoPL."""
    return json.dumps(text, ensure_ascii=False)


def literal(value: Value) -> str:
    """Return a value in SQL."""
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    return str(value) if isinstance(value, Decimal) else quoted(str(value))
