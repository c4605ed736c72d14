"""Small parts of SQL as `sqlglot` expressions: columns, literals, tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from sqlglot import exp

from condgraph.engine.errors import UnsupportedError

Query: TypeAlias = exp.Query

FALSE: Final = exp.false()
NULL: Final = exp.null()


def name(text: str) -> exp.Identifier:
    """Return a quoted name."""
    return exp.Identifier(this=text, quoted=True)


def column(text: str, table: str | None = None) -> exp.Column:
    """Return a column."""
    return exp.Column(this=name(text), table=None if table is None else name(table))


def table_of(text: str, place: str | None = None, alias: str | None = None) -> exp.Table:
    """Return a table, of a schema of the database."""
    return exp.Table(
        this=name(text),
        db=None if place is None else name(place),
        alias=None if alias is None else exp.TableAlias(this=name(alias)),
    )


#: The types of columns and literals.
_TYPES: Final = {kind: exp.DataType.build(kind) for kind in ("int", "bigint", "smallint", "double", "text")}


def type_of(kind: str) -> exp.DataType:
    """Return a column type."""
    return _TYPES[kind].copy()


def cast(value: exp.Expr, kind: str) -> exp.Cast:
    """Return a value cast to a type."""
    return exp.Cast(this=value, to=type_of(kind))


def literal(value: str | int | bool | None) -> exp.Expr:
    """Return a text, integer or truth value; raise `UnsupportedError` for text that SQL cannot hold."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, int):
        number = str(int(value))
        # The smallest number cannot be written as a plain literal.
        return cast(exp.Literal.string(number), "bigint") if abs(value) >= 2**31 else exp.Literal.number(number)
    check_text(value)
    return exp.Literal.string(value)


def is_text(text: str) -> bool:
    """Tell whether a SQL database can store a text: it has no NUL and no half surrogate pair."""
    return "\x00" not in text and (text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text))


def check_text(text: str) -> None:
    """Raise `UnsupportedError` for a text that no SQL database can store."""
    if not is_text(text):
        raise UnsupportedError(
            "SQL", ["a text with a NUL character or half a surrogate pair"], hint="a graph in a folder has such texts"
        )


def double(number: float) -> exp.Expr:
    """Return a float, written as text, since SQL would read plain digits as a decimal, perhaps a different number."""
    text = repr(number) if math.isfinite(number) else ("Infinity" if number > 0 else "-Infinity")
    return cast(exp.Literal.string(text), "double")


def one_of(test: exp.Expr, values: Sequence[str | int]) -> exp.Expr:
    """Return a test that a column has one of some values."""
    if len(values) == 1:
        return exp.EQ(this=test, expression=literal(values[0]))
    return exp.In(this=test, expressions=[literal(value) for value in values]) if values else exp.false()


def within(test: exp.Expr, query: Query) -> exp.Expr:
    """Return a test that a column has one of the values that a query gives."""
    return exp.In(this=test, query=exp.Subquery(this=query))


def both(tests: Iterable[exp.Expr]) -> exp.Expr:
    """Return a test that holds if all tests do."""
    conditions = list(tests)
    return exp.and_(*conditions, copy=False) if conditions else exp.true()


def either(tests: Iterable[exp.Expr]) -> exp.Expr:
    """Return a test that holds if any test does."""
    conditions = list(tests)
    return exp.or_(*conditions, copy=False) if conditions else exp.false()


def none_of(alternatives: Iterable[Iterable[exp.Expr]]) -> exp.Expr:
    """Return a test that no alternative has all its tests hold; a test of a missing value does not hold."""
    return exp.not_(coalesce(exp.Paren(this=either(both(tests) for tests in alternatives)), exp.false()))


def known(test: exp.Expr) -> exp.Expr:
    """Return a test that there is a value."""
    return exp.not_(exp.Is(this=test, expression=exp.null()), copy=False)


def select(*columns: exp.Expr, distinct: bool = False) -> exp.Select:
    """Return a SELECT of some columns."""
    query = exp.Select(expressions=list(columns))
    return query.distinct(copy=False) if distinct else query


def named(expression: exp.Expr, text: str) -> exp.Alias:
    """Return an expression as a column of that name."""
    return exp.Alias(this=expression, alias=name(text))


def together(queries: Sequence[Query], *, distinct: bool = False) -> Query:
    """Return the rows of all queries, as a balanced tree, since a long chain would be deep."""
    if len(queries) == 1:
        return queries[0]
    half = len(queries) // 2
    left, right = together(queries[:half], distinct=distinct), together(queries[half:], distinct=distinct)
    return exp.Union(this=left, expression=right, distinct=distinct)


def coalesce(test: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    """Return a value, or another one if it is missing."""
    return exp.Coalesce(this=test, expressions=[otherwise])


def case(pairs: Iterable[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr) -> exp.Expr:
    """Return the value of the first test that holds."""
    return exp.Case(ifs=[exp.If(this=test, true=value) for test, value in pairs], default=otherwise)
