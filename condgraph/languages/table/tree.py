"""What a table clause says, as it is read: names are not looked up yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from condgraph.engine.algebra import Operator
from condgraph.engine.algebra.grouped import TextOperator

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
