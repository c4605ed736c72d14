"""What a table clause says, as it is read: names are not looked up yet."""

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
    """One step of a path: a predicate followed forward, or "backward" from object to subject."""

    name: str
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """Predicates from a row on, and the qualifier of the last statement; without steps the row
    itself.
    """

    steps: tuple[Step, ...]
    qualifier: str | None = None
    span: Span = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit ("" for none), as it is written."""

    text: str
    unit: str = ""
    span: Span = None


@dataclass(frozen=True, slots=True)
class Text:
    """A text between quotes, or a date."""

    text: str
    span: Span = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function by its name as it is written, of an expression (none: of the row). `number` is the
    first argument of `top`; `distinct` stands in `count(distinct x)`; `options` are the arguments before `of`.
    """

    function: str
    of: Expression | None
    number: int | None = None
    distinct: bool = False
    span: Span = None
    options: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions calculated with."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression
    span: Span = None


Expression: TypeAlias = Path | Number | Text | Call | Binary


@dataclass(frozen=True, slots=True)
class Column:
    """An expression with the name of its column, where it is given one."""

    of: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """An expression compared with any of some literals, or looked through for a text; "missing" and
    "known" take none.
    """

    of: Expression
    operator: Operator | TextOperator | Literal["missing", "known"]
    literals: tuple[Number | Text, ...] = ()
    span: Span = None


@dataclass(frozen=True, slots=True)
class Junction:
    """Tests of which all ("and"), any ("or") or not the one ("not") holds."""

    word: Literal["and", "or", "not"]
    tests: tuple[Test, ...]


Test: TypeAlias = Comparison | Junction


@dataclass(frozen=True, slots=True)
class OrderBy:
    """What is ordered by."""

    of: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """A whole clause; `limit` is None for all rows."""

    where: Test | None = None
    keys: tuple[Column, ...] = ()
    shown: tuple[Column, ...] = ()
    having: Test | None = None
    order: tuple[OrderBy, ...] = ()
    limit: int | None = None
    offset: int = 0
    ties: bool = False
    per: tuple[Expression, ...] = ()


#: The other names of functions.
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
# Parts of a table clause in words, and what is looked for in one.


def title(of: Expression) -> str:
    """An expression as it is written, which is the name of its column."""
    if isinstance(of, Path):
        name = ".".join(("^" if step.backward else "") + step.name for step in of.steps)
        return (name or ("" if of.qualifier else "self")) + (f"@{of.qualifier}" if of.qualifier else "")
    if isinstance(of, Number):
        return f"{of.text} {of.unit}".strip()
    if isinstance(of, Text):
        return of.text
    if isinstance(of, Call):
        inside = "" if of.of is None else f"'{of.of.text}'" if isinstance(of.of, Text) and of.options else title(of.of)
        if of.number is not None:
            inside = f"{of.number}, {inside}"
        for option in reversed(of.options):
            inside = f"'{option.text}', {inside}" if isinstance(option, Text) else f"{title(option)}, {inside}"
        return f"{of.function}({'distinct ' if of.distinct else ''}{inside})"
    sides = [f"({title(side)})" if isinstance(side, Binary) else title(side) for side in (of.left, of.right)]
    return f" {of.operator} ".join(sides)


def named_row() -> Path:
    """The row itself."""
    return Path(())


def step(name: str) -> Path:
    """One predicate of the row."""
    return Path((Step(name),))


def mentions(clause: Clause) -> bool:
    """Whether a path begins with a qualifier, so that the rows are facts."""
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
# Positions in a table clause, for messages; the span of an error is a position in the program.


#: Characters of the clause that are shown behind the place.
_SHOWN = 30


@contextmanager
def in_clause(text: str | None) -> Iterator[None]:
    """Tell the places of errors by the text of a clause; of one that has none they are left out."""
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
