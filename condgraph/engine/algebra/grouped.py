"""Operators that give a table of groups, and the expressions that its columns, conditions and orders are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from condgraph.engine.algebra.facets import ALWAYS, Facets, Needs
from condgraph.engine.algebra.operators import Entities, Facts, Operator, Table, Values
from condgraph.engine.values import Value

# -- Expressions -------------------------------------------------------------------------------------
# What a cell of a table is worked out from: ways through the graph, arithmetic, and tests.
#
# These are no operators: `Group` and `Having` hold them as parameters, and refer to its inputs by
# number. A `ValuePath` leads from a row over facts to values; `Computed` calculates with what ways give.


#: What is worked out from each value by itself. "clock" is the number itself, which is shown as clocks show it.
Part: TypeAlias = Literal[
    "year", "quarter", "month", "day", "weekday", "hour", "minute", "second", "name", "clock", "longitude", "latitude"
]
#: The parts of a time.
TIME_PARTS: Final[tuple[Part, ...]] = ("year", "quarter", "month", "day", "weekday", "hour", "minute", "second")
PARTS: Final[tuple[Part, ...]] = (*TIME_PARTS, "name", "clock", "longitude", "latitude")
#: Functions of an option and a value: a time cut to a unit, and a moment in a time zone.
Chosen: TypeAlias = Literal["date_trunc", "timezone"]
CHOSEN: Final[tuple[Chosen, ...]] = ("date_trunc", "timezone")
#: Functions of two values: metres between points, and the point at a longitude and a latitude.
Paired: TypeAlias = Literal["distance", "point"]
PAIRED: Final[tuple[Paired, ...]] = ("distance", "point")
#: The parts of a point.
POINT_PARTS: Final[tuple[Part, ...]] = ("longitude", "latitude")
Arithmetic: TypeAlias = Literal["+", "-", "*", "/"]
#: What a group is summed up to. "values" are all of them, each once; "top" and "bottom" the rows
#: that have the largest and the smallest.
Function: TypeAlias = Literal["count", "distinct", "sum", "mean", "median", "stdev", "min", "max", "values", "top", "bottom"]
FUNCTIONS: Final[tuple[Function, ...]] = get_args(Function)
#: Where a text stands within another, white space counted once.
TextOperator: TypeAlias = Literal["contains", "starts with", "ends with"]
TEXT_OPERATORS: Final[tuple[TextOperator, ...]] = ("contains", "starts with", "ends with")


@dataclass(frozen=True, slots=True)
class ValuePath:
    """From a row to values: over `steps` (places in `Group.facts`, each starting where the one before
    arrived) to `values` (a place in `Group.values`, carried by the last of these facts), or to the
    entities that were reached.
    """

    name: str
    steps: tuple[int, ...] = ()
    values: int | None = None


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value that the program gives."""

    value: Value

    @property
    def name(self) -> str:
        """As it is written."""
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Computed:
    """A part of one value, an option (`GivenValue`) and a value, or two numbers calculated with."""

    function: Part | Chosen | Paired | Arithmetic
    parts: tuple[Expression, ...]

    @property
    def name(self) -> str:
        """As it is written."""
        words = [
            f"'{part.name}'" if isinstance(part, GivenValue) and isinstance(part.value, str) else part.name for part in self.parts
        ]
        if len(words) == 1 or self.function in (*CHOSEN, *PAIRED):
            return f"{self.function}({', '.join(words)})"
        sides = [f"({word})" if isinstance(part, Computed) else word for word, part in zip(words, self.parts, strict=True)]
        return f" {self.function} ".join(sides)


#: What the values that one row has are summed up to.
RowFunction: TypeAlias = Literal["count", "distinct", "sum", "mean", "median", "stdev", "min", "max"]
ROW_FUNCTIONS: Final[tuple[RowFunction, ...]] = get_args(RowFunction)


@dataclass(frozen=True, slots=True)
class RowTotal:
    """All values that one row has of an expression, summed up: a row without any counts 0."""

    function: RowFunction
    of: Expression

    @property
    def name(self) -> str:
        """As it is written."""
        return f"count(distinct {self.of.name})" if self.function == "distinct" else f"{self.function}({self.of.name})"

    @property
    def steps(self) -> tuple[int, ...]:
        """It hangs on the row itself, however far what it sums up leads."""
        return ()


@dataclass(frozen=True, slots=True)
class FirstOf:
    """What a way leads to, and for a row where it leads to nothing something else, which goes no
    further than the way.
    """

    first: ValuePath
    second: Computed

    @property
    def name(self) -> str:
        """As it is written."""
        return self.first.name

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that both begin with."""
        return self.first.steps[:-1]


Expression: TypeAlias = ValuePath | GivenValue | Computed | RowTotal | FirstOf


@dataclass(frozen=True, slots=True)
class Key:
    """What rows are put together by: those that have the same value, under a column of this name."""

    name: str
    of: Expression


@dataclass(frozen=True, slots=True)
class Measure:
    """What a group is summed up to, under a column of this name; without `of` the rows are meant.
    `number` is how many "top" and "bottom" keep; `clock` says that numbers are shown as clocks show them.
    """

    name: str
    function: Function
    of: Expression | None = None
    number: int = 0
    clock: bool = False


@dataclass(frozen=True, slots=True)
class CellTest:
    """Whether a cell compares so with a literal, in one of its readings. `of` is what is compared: an
    expression over a row, or the place of a column. "missing" and "known" ask whether there is a
    value, without readings; a `TextOperator` looks for one text within another.
    """

    of: Expression | int
    operator: Operator | TextOperator | Literal["missing", "known"]
    readings: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class AllTests:
    """All of the tests hold."""

    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class AnyTest:
    """At least one of the tests holds."""

    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class NotTest:
    """The test does not hold."""

    test: Test


Test: TypeAlias = CellTest | AllTests | AnyTest | NotTest


@dataclass(frozen=True, slots=True)
class OrderBy:
    """A column, by its place, that rows are ordered by."""

    column: int
    descending: bool = False

    @property
    def name(self) -> str:
        """In words."""
        return f"column {self.column + 1}" + (" descending" if self.descending else "")


# -- Operators ---------------------------------------------------------------------------------------
# What is counted in a group is decided here, the same for every store. A row stands in the group of
# each value that it has of a key, and in that of "no value" where it has none; every way from a row
# to a value counts it once. `docs/reference/tables.md` says what follows from that.


@dataclass(frozen=True, slots=True)
class Group(Table):
    """Rows (entities, or facts) put together by the values of `keys`, each group summed up by
    `measures`.

    `facts` and `values` are what the ways of keys and measures go over. `where` is asked of each row
    before. The last `hidden` measures are there for `Having` and `Order`, and are not shown. Without
    keys all rows are one group; `each` makes a group of every row. `unsure` are places in `facts` of
    columns of which it is not known whether such rows may have them: one that no row has is a warning.
    """

    needs: ClassVar[Needs] = Needs(whole=("of", "facts", "values"))
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=ALWAYS)
    of: Entities | Facts
    facts: tuple[Facts, ...]
    values: tuple[Values, ...]
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    where: Test | None = None
    hidden: int = 0
    each: bool = False
    unsure: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Having(Table):
    """The rows of a table whose cells satisfy a test."""

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    test: Test


@dataclass(frozen=True, slots=True)
class Order(Table):
    """The rows of a table by their cells; equal ones keep their order, and what does not compete
    stands last.
    """

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    by: tuple[OrderBy, ...]


@dataclass(frozen=True, slots=True)
class Limit(Table):
    """So many rows of a table, after the first `offset`; with `ties` also those that are equal to the
    last one in the order. With `per`, places of columns, so many of each group of rows that are equal in these.
    """

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    number: int
    offset: int = 0
    ties: bool = False
    per: tuple[int, ...] = ()
