"""Questions at random about tables made by `untidy`, each as SQL and as ours: table clauses, KoPL
and LLM queries.

What differs by decision is said in the SQL: a test of a missing cell is false, also below `not`;
the sum of nothing is 0; no value stands last in every order.
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
    """One question; `clause` is empty but for tables. `ordered` says that the order of rows counts."""

    language: Language
    program: str
    clause: str
    sql: str
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """A column of a row, or of a row that it refers to: the path, and the same in SQL."""

    path: str
    sql: str
    column: Column


SUMS: Final = ("count", "sum", "mean", "min", "max", "median", "distinct")
TESTS: Final = ("=", "!=", "<", ">", "<=", ">=")


class Asking:
    """Questions about one set of tables."""

    def __init__(self, some: random.Random, tables: Tables) -> None:
        self.some, self.tables = some, tables

    def question(self) -> Question:
        """The next question."""
        return self.some.choice((self.groups, self.groups, self.rows, self.backward, self.best, self.kopl, self.llm))()

    # -- table clauses ------------------------------------------------------------------------------

    def groups(self) -> Question:
        """Rows put together and summed up."""
        some, table = self.some, self.some.choice(self.tables.tables)
        joined, ways = self._ways(table)
        keys = [self._key(way) for way in some.sample(ways, min(len(ways), some.choice((0, 1, 1, 1, 2))))]
        sums = [self._sum(ways) for _ in range(some.randint(1, 3))]
        sums = list({ours: (ours, sql) for ours, sql in sums}.values())
        where, sql_where = self._where(ways)
        ours = [ours for ours, _ in keys]
        clause = f"{where} group by {', '.join(ours)} " if keys else f"{where} "
        if len(set(ours)) < len(ours):
            return self.groups()
        clause += "show " + ", ".join(f"{one} as s{at}" for at, (one, _) in enumerate(sums))
        shown = ", ".join([*(sql for _, sql in keys), *(f"{sql} AS s{at}" for at, (_, sql) in enumerate(sums))])
        sql = f'SELECT {shown} FROM "{table.name}" t {joined} {sql_where}'
        if keys:
            sql += " GROUP BY " + ", ".join(str(at) for at in range(1, len(keys) + 1))
        ordered = False
        if keys and some.random() < 0.4:
            number = some.randint(0, 4)
            clause += f" having count() > {number}"
            sql += f" HAVING count(*) > {number}"
        if keys and some.random() < 0.5:
            order = [(one, str(at)) for at, (one, _) in enumerate(keys, 1)]
            order.insert(0, ("s0", str(len(keys) + 1)))
            clause, sql, ordered = *self._order(clause, sql, order), True
        return Question("table", f"FindAll() FilterConcept({table.name})", clause, sql, ordered)

    def rows(self) -> Question:
        """Rows with their cells."""
        some, table = self.some, self.some.choice(self.tables.tables)
        joined, ways = self._ways(table)
        shown = some.sample(ways, min(len(ways), some.randint(1, 3)))
        where, sql_where = self._where(ways)
        clause = f"{where} show " + ", ".join(f"{way.path} as c{at}" for at, way in enumerate(shown))
        sql = f'SELECT {", ".join(way.sql for way in shown)} FROM "{table.name}" t {joined} {sql_where}'
        # Rows that are equal in all cells are the same in either order.
        clause, sql = self._order(clause, sql, [(f"c{at}", str(at + 1)) for at in range(len(shown))])
        return Question("table", f"FindAll() FilterConcept({table.name})", clause, sql, True)

    def backward(self) -> Question:
        """Rows with what refers to them."""
        some = self.some
        found = [
            (table, other, column)
            for table in self.tables.tables
            for other in self.tables.tables
            for column in other.columns
            if column.to == table.name
        ]
        # A name that several tables refer by is all of theirs.
        once = [one for one in found if sum(one[0] is two[0] for two in found) == 1]
        if not once:
            return self.groups()
        table, other, column = some.choice(once)
        own = [one for one in other.columns if one.to is None]
        ways = [_Way(f'^"{column.name}"."{one.name}"', f'o."{one.name}"', one) for one in own]
        sums = [self._sum(ways) for _ in range(some.randint(1, 2))]
        sums = [one for one in sums if one[0] != "count()"] + [(f'count(^"{column.name}")', "count(o.nr)")]
        clause = f'show "{table.key}" as k, ' + ", ".join(f"{one} as s{at}" for at, (one, _) in enumerate(sums))
        sql = f'SELECT t."{table.key}", ' + ", ".join(one for _, one in sums)
        sql += f' FROM "{table.name}" t LEFT JOIN "{other.name}" o ON o."{column.name}" = t."{table.key}"'
        if some.random() < 0.3:
            clause = f'where ^"{column.name}" is missing ' + clause
            sql += " WHERE o.nr IS NULL"
        sql += f' GROUP BY t.nr, t."{table.key}"'
        order = [(f"s{at}", str(at + 2)) for at in range(len(sums))]
        clause, sql = self._order(clause, sql, [*order, ("k", "1")])
        return Question("table", f"FindAll() FilterConcept({table.name})", clause, sql, True)

    def best(self) -> Question:
        """The values of each group, and sums of what is calculated."""
        some, table = self.some, self.some.choice(self.tables.tables)
        joined, ways = self._ways(table)
        key = some.choice(ways)
        numbers = [way for way in ways if way.column.kind == "number" and not way.column.unit]
        texts = [way for way in ways if way.column.kind == "text"]
        if texts and (not numbers or some.random() < 0.5):
            way = some.choice(texts)
            ours, sql = f"values({way.path})", f"list(DISTINCT {way.sql} ORDER BY {way.sql}) FILTER ({way.sql} IS NOT NULL)"
        elif numbers:
            one, two, sign = some.choice(numbers), some.choice(numbers), some.choice("+-*")
            ours, sql = f"sum({one.path} {sign} {two.path} + 2)", f"coalesce(sum({one.sql} {sign} {two.sql} + 2), 0)"
        else:
            return self.groups()
        where, sql_where = self._where(ways)
        sql = f'SELECT {key.sql}, {sql} FROM "{table.name}" t {joined} {sql_where} GROUP BY 1'
        return Question("table", f"FindAll() FilterConcept({table.name})", f"{where} group by {key.path} show {ours} as s", sql)

    def _order(self, clause: str, sql: str, columns: Sequence[tuple[str, str]]) -> tuple[str, str]:
        ours, theirs = [], []
        for one, place in columns:
            down = self.some.random() < 0.5
            ours.append(f"{one} desc" if down else one)
            theirs.append(f"{place} {'DESC' if down else 'ASC'} NULLS LAST")
        clause += " order by " + ", ".join(ours)
        sql += " ORDER BY " + ", ".join(theirs)
        if self.some.random() < 0.5:
            number, offset = self.some.randint(1, 12), self.some.choice((0, 0, 3))
            clause += f" limit {number} offset {offset}"
            sql += f" LIMIT {number} OFFSET {offset}"
        return clause, sql

    def _ways(self, table: Table) -> tuple[str, list[_Way]]:
        """The columns of a table, and those that its references lead to."""
        joins: list[str] = []
        found: list[_Way] = []

        def add(here: Table, alias: str, path: str, deep: int) -> None:
            for column in here.columns:
                if column.to is None:
                    found.append(_Way(f'{path}"{column.name}"', f'{alias}."{column.name}"', column))
                elif deep < 2:
                    other, name = self.tables.table(column.to), f"j{len(joins)}"
                    joins.append(f'LEFT JOIN "{other.name}" {name} ON {alias}."{column.name}" = {name}."{other.key}"')
                    add(other, name, f'{path}"{column.name}".', deep + 1)

        add(table, "t", "", 0)
        return " ".join(joins), found

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
        ours, theirs = f" {word} ".join([one for one, _ in tests]), f" {word} ".join([one for _, one in tests])
        return f"where {ours}", f"WHERE {theirs}"

    def _test(self, way: _Way) -> tuple[str, str]:
        if way.column.kind == "text" and self.some.random() < 0.3:
            return self._part(way)
        if self.some.random() < 0.15:
            values = [self._value(way.column) for _ in range(3)]
            ours = ", ".join([self._ours(way.column, one) for one in values])
            return f"{way.path} in ({ours})", f"coalesce({way.sql} IN ({', '.join(map(literal, values))}), false)"
        if self.some.random() < 0.15:
            no = self.some.choice(("", "not "))
            return f"{way.path} is {no}null", f"{way.sql} IS {no}NULL"
        value = self._value(way.column)
        op = self.some.choice(("=", "!=") if isinstance(value, str) else TESTS)
        ours, theirs = f"{way.path} {op} {self._ours(way.column, value)}", f"coalesce({way.sql} {op} {literal(value)}, false)"
        return (f"not {ours}", f"NOT {theirs}") if self.some.random() < 0.15 else (ours, theirs)

    def _part(self, way: _Way) -> tuple[str, str]:
        """A test of a part of a text."""
        text = str(self._value(way.column))
        begin = self.some.randrange(len(text))
        part = text[begin : begin + self.some.randint(1, 4)].strip() or text
        word, function = self.some.choice((("contains", "contains"), ("starts with", "starts_with"), ("ends with", "ends_with")))
        return f"{way.path} {word} {quoted(part)}", f"coalesce({function}({way.sql}, {quoted(part)}), false)"

    def _ours(self, column: Column, value: Value) -> str:
        """A value in a clause."""
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
        """Filters, references, counts and values."""
        some, table = self.some, self.some.choice(self.tables.tables)
        program, sql = f"FindAll() FilterConcept({table.name})", f'SELECT t.* FROM "{table.name}" t'
        own = [one for one in table.columns if one.to is None and one.name != table.key]
        for column in some.sample(own, min(len(own), some.choice((0, 1, 1, 2)))):
            value = self._value(column)
            op = some.choice(("=", "!=")) if isinstance(value, str) else some.choice(TESTS)
            if isinstance(value, str):
                if op == "!=":
                    continue
                program += f" FilterStr({in_json(column.name)}, {in_json(value)})"
            elif isinstance(value, Decimal):
                program += f" FilterNum({in_json(column.name)}, {in_json(f'{value} {column.unit}'.strip())}, {op})"
            else:
                program += f" FilterDate({in_json(column.name)}, {value.isoformat()}, {op})"
            sql = f'SELECT * FROM ({sql}) WHERE "{column.name}" {op} {literal(value)}'
        ref = some.choice([None, *(one for one in table.columns if one.to is not None)])
        if ref is not None and some.random() < 0.7:
            other = self.tables.table(ref.to or "")
            program += f" Relate({in_json(ref.name)}, forward)"
            sql = f'SELECT o.* FROM "{other.name}" o WHERE "{other.key}" IN (SELECT "{ref.name}" FROM ({sql}))'
            table = other
        elif table.key is not None and some.random() < 0.5:
            from_ = [one for one in self.tables.tables if any(column.to == table.name for column in one.columns)]
            if from_:
                program += f" Relate({in_json(table.key)}, backward)"
                counts = [
                    f'SELECT count(*) FROM "{one.name}" WHERE "{table.key}" IN (SELECT "{table.key}" FROM ({sql}))' for one in from_
                ]
                return Question("kopl", program + " Count()", "", f"SELECT {' + '.join(f'({one})' for one in counts)}")
        values = [one for one in table.columns if one.to is None and one.kind != "date"]
        if not values or some.random() < 0.5:
            return Question("kopl", program + " Count()", "", f"SELECT count(*) FROM ({sql})")
        column = some.choice(values)
        sql = f'SELECT DISTINCT "{column.name}" FROM ({sql}) WHERE "{column.name}" IS NOT NULL'
        return Question("kopl", f"{program} QueryAttr({in_json(column.name)})", "", sql)

    # -- LLM queries --------------------------------------------------------------------------------

    def llm(self) -> Question:
        """What is looked up, and summed up."""
        some, table = self.some, self.some.choice(self.tables.tables)
        own = [one for one in table.columns if one.to is None]
        source = f", source={quoted(f'untidy/{table.name}')}"
        column = some.choice(own)
        value = self._value(column)
        op = "=" if isinstance(value, str) else some.choice(("=", "<", ">", "<=", ">="))
        text = value.isoformat() if isinstance(value, datetime.date) else written(column, value)
        lines = [f"get_information(relation={quoted(column.name)}, tail_entity{op}{quoted(text)}{source})"]
        where = f'"{column.name}" {op} {literal(value)}'
        numbers = [one for one in own if one.kind == "number"]
        if not numbers or some.random() < 0.3:
            lines.append("count(set='output_of_query1')")
            sql = f'SELECT count(*) FROM "{table.name}" WHERE {where}'
        else:
            other = some.choice(numbers)
            function = some.choice(("sum", "mean", "max", "min", "median"))
            lines.append(f"get_information(relation={quoted(other.name)}, head_entity='output_of_query1'{source})")
            lines.append(f"{function}(set='output_of_query2')")
            name = "avg" if function == "mean" else function
            sql = f'SELECT {name}("{other.name}") FROM "{table.name}" WHERE {where}'
        program = "\n".join(f'Query{at}: "{line}"' for at, line in enumerate(lines, 1))
        return Question("llm", program, "", sql)


def quoted(text: str) -> str:
    """A text of a table clause or an LLM query."""
    return "'" + text.replace("'", "''") + "'"


def in_json(text: str) -> str:
    """An argument of KoPL."""
    return json.dumps(text, ensure_ascii=False)


def literal(value: Value) -> str:
    """A value in SQL."""
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    return str(value) if isinstance(value, Decimal) else quoted(str(value))
