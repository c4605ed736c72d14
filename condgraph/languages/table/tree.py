"""The syntax tree of a table clause, before names are looked up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from condgraph.engine.algebra import Operator
from condgraph.engine.algebra.grouped import TextOperator
from condgraph.engine.errors import CondgraphError, shortened

Span: TypeAlias = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path: a predicate followed forward, or backward from object to subject."""

    name: str
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """Predicates followed from a row, and a qualifier of the last statement; the row itself without steps."""

    steps: tuple[Step, ...]
    qualifier: str | None = None
    span: Span = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit ("" for none), as written."""

    text: str
    unit: str = ""
    span: Span = None


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted text, or a date."""

    text: str
    span: Span = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function, named as written, and its argument (None: the row).

    `number` is the first argument of `top`, `distinct` marks `count(distinct x)`, and `options` are the
    arguments before `of`.
    """

    function: str
    of: Expression | None
    number: int | None = None
    distinct: bool = False
    span: Span = None
    options: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    """An arithmetic operation."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression
    span: Span = None


Expression: TypeAlias = Path | Number | Text | Call | Binary


@dataclass(frozen=True, slots=True)
class Column:
    """An expression, and the name of its column if one is given."""

    of: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test of an expression: equal to any literal, compared with one, or containing a text.

    "missing" and "known" take no literals.
    """

    of: Expression
    operator: Operator | TextOperator | Literal["missing", "known"]
    literals: tuple[Number | Text, ...] = ()
    span: Span = None


@dataclass(frozen=True, slots=True)
class Junction:
    """A conjunction, disjunction or negation of tests."""

    word: Literal["and", "or", "not"]
    tests: tuple[Test, ...]


Test: TypeAlias = Comparison | Junction


@dataclass(frozen=True, slots=True)
class OrderBy:
    """An expression to order by."""

    of: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """A parsed table clause; `limit` None for all rows."""

    where: Test | None = None
    keys: tuple[Column, ...] = ()
    shown: tuple[Column, ...] = ()
    having: Test | None = None
    order: tuple[OrderBy, ...] = ()
    limit: int | None = None
    offset: int = 0
    ties: bool = False
    per: tuple[Expression, ...] = ()


#: Synonyms of function names.
SYNONYMS: Final[dict[str, str]] = {
    **dict.fromkeys(("avg", "average"), "mean"),
    **dict.fromkeys(("std", "stddev", "stddev_samp", "standard_deviation"), "stdev"),
    **dict.fromkeys(("minimum", "smallest", "lowest", "earliest"), "min"),
    **dict.fromkeys(("maximum", "largest", "highest", "latest"), "max"),
    **dict.fromkeys(("list", "array_agg", "string_agg", "group_concat", "collect"), "values"),
    **dict.fromkeys(("count_distinct", "nunique", "unique"), "distinct"),
    "total": "sum",
}


# -- words -------------------------------------------------------------------------------------------
# Titles of expressions, and searches in a clause.


def title(of: Expression) -> str:
    """Return an expression as text, which is the name of its column."""
    if isinstance(of, Path):
        name = ".".join(("^" if step.backward else "") + step.name for step in of.steps)
        return (name or ("" if of.qualifier else "self")) + (f"@{of.qualifier}" if of.qualifier else "")
    if isinstance(of, Number):
        return f"{of.text} {of.unit}".strip()
    if isinstance(of, Text):
        return of.text
    if isinstance(of, Call):
        arguments = "" if of.of is None else f"'{of.of.text}'" if isinstance(of.of, Text) and of.options else title(of.of)
        if of.number is not None:
            arguments = f"{of.number}, {arguments}"
        for option in reversed(of.options):
            arguments = f"'{option.text}', {arguments}" if isinstance(option, Text) else f"{title(option)}, {arguments}"
        return f"{of.function}({'distinct ' if of.distinct else ''}{arguments})"
    sides = [f"({title(side)})" if isinstance(side, Binary) else title(side) for side in (of.left, of.right)]
    return f" {of.operator} ".join(sides)


def named_row() -> Path:
    return Path(())


def step(name: str) -> Path:
    """Return the path of one predicate from the row."""
    return Path((Step(name),))


def mentions(clause: Clause) -> bool:
    """Whether a path begins with a qualifier, so that the rows must be facts."""
    return any(not path.steps and path.qualifier is not None for path in _paths(clause))


def _paths(clause: Clause) -> Iterator[Path]:
    for column in (*clause.keys, *clause.shown):
        yield from _inside(column.of)
    for by in clause.order:
        yield from _inside(by.of)
    for test in (clause.where, clause.having):
        if test is not None:
            yield from _tested(test)


def _inside(of: Expression) -> Iterator[Path]:
    if isinstance(of, Path):
        yield of
    elif isinstance(of, Call) and of.of is not None:
        for part in (*of.options, of.of):
            yield from _inside(part)
    elif isinstance(of, Binary):
        yield from _inside(of.left)
        yield from _inside(of.right)


def _tested(test: Test) -> Iterator[Path]:
    if isinstance(test, Junction):
        for part in test.tests:
            yield from _tested(part)
    else:
        yield from _inside(test.of)


# -- positions ---------------------------------------------------------------------------------------
# Positions in a table clause go into the message of an error, since its span is a position in the
# program.


#: How many characters of the clause a message shows after the position.
_SHOWN = 30


@contextmanager
def in_clause(text: str | None) -> Iterator[None]:
    """Move the span of an error into its message, as a position in the clause; drop it without a text."""
    try:
        yield
    except CondgraphError as error:
        if error.span is not None:
            start = error.span[0]
            if text is not None:
                at = f", before {shortened(text[start:], _SHOWN)!r}" if text[start:].strip() else ", at its end"
                error.message += f", at character {start + 1} of the table{at}"
            error.span = None
        raise
