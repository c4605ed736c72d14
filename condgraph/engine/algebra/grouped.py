"""Operators that return a table of groups, and the expressions of its columns, conditions and orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from condgraph.engine.algebra.facets import ALWAYS, Facets, Needs
from condgraph.engine.algebra.operators import Entities, Facts, Operator, Table, Values
from condgraph.engine.values import Value

# -- Expressions -------------------------------------------------------------------------------------
# How the cells of a table are computed: paths through the graph, arithmetic, and tests.
#
# These are not operators: `Group` and `Having` have them as parameters, and they refer to the inputs
# of `Group` by number. A `ValuePath` leads from a row over facts to values; `Computed` calculates with them.


#: Functions of one value. "clock" is the number itself, displayed as a clock time.
Part: TypeAlias = Literal[
    "year", "quarter", "month", "day", "weekday", "hour", "minute", "second", "name", "clock", "longitude", "latitude"
]
#: The parts of a time.
TIME_PARTS: Final[tuple[Part, ...]] = ("year", "quarter", "month", "day", "weekday", "hour", "minute", "second")
PARTS: Final[tuple[Part, ...]] = (*TIME_PARTS, "name", "clock", "longitude", "latitude")
#: Functions of an option and a value: a time truncated to a unit, and a moment in a time zone.
Chosen: TypeAlias = Literal["date_trunc", "timezone"]
CHOSEN: Final[tuple[Chosen, ...]] = ("date_trunc", "timezone")
#: Functions of two values: metres between points, and the point at a longitude and a latitude.
Paired: TypeAlias = Literal["distance", "point"]
PAIRED: Final[tuple[Paired, ...]] = ("distance", "point")
#: The parts of a point.
POINT_PARTS: Final[tuple[Part, ...]] = ("longitude", "latitude")
Arithmetic: TypeAlias = Literal["+", "-", "*", "/"]
#: Aggregate functions of a group. "values" lists the distinct values; "top" and "bottom" the rows
#: with the largest and the smallest value.
Function: TypeAlias = Literal["count", "distinct", "sum", "mean", "median", "stdev", "min", "max", "values", "top", "bottom"]
FUNCTIONS: Final[tuple[Function, ...]] = get_args(Function)
#: Position of a text within another; runs of white space count as one space.
TextOperator: TypeAlias = Literal["contains", "starts with", "ends with"]
TEXT_OPERATORS: Final[tuple[TextOperator, ...]] = ("contains", "starts with", "ends with")


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A path from a row to values: over `steps` (indexes in `Group.facts`, each starting where the one before ended)
    to `values` (an index in `Group.values`, carried by the last of these facts), or to the entities that were
    reached.
    """

    name: str
    steps: tuple[int, ...] = ()
    values: int | None = None


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value written in the program."""

    value: Value

    @property
    def name(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Computed:
    """A function of one value, of an option (`GivenValue`) and a value, or of two numbers."""

    function: Part | Chosen | Paired | Arithmetic
    parts: tuple[Expression, ...]

    @property
    def name(self) -> str:
        """The expression as text."""
        words = [
            f"'{part.name}'" if isinstance(part, GivenValue) and isinstance(part.value, str) else part.name for part in self.parts
        ]
        if len(words) == 1 or self.function in (*CHOSEN, *PAIRED):
            return f"{self.function}({', '.join(words)})"
        sides = [f"({word})" if isinstance(part, Computed) else word for word, part in zip(words, self.parts, strict=True)]
        return f" {self.function} ".join(sides)


#: Aggregate functions of the values of one row.
RowFunction: TypeAlias = Literal["count", "distinct", "sum", "mean", "median", "stdev", "min", "max"]
ROW_FUNCTIONS: Final[tuple[RowFunction, ...]] = get_args(RowFunction)


@dataclass(frozen=True, slots=True)
class RowTotal:
    """An aggregate of all values of an expression in one row; a row without values counts 0."""

    function: RowFunction
    of: Expression

    @property
    def name(self) -> str:
        return f"count(distinct {self.of.name})" if self.function == "distinct" else f"{self.function}({self.of.name})"

    @property
    def steps(self) -> tuple[int, ...]:
        """No steps: the total belongs to the row itself, however long the path to the values is."""
        return ()


@dataclass(frozen=True, slots=True)
class FirstOf:
    """The values of a path, and for a row without any the second expression, which goes no further than the path."""

    first: ValuePath
    second: Computed

    @property
    def name(self) -> str:
        return self.first.name

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that both parts share."""
        return self.first.steps[:-1]


Expression: TypeAlias = ValuePath | GivenValue | Computed | RowTotal | FirstOf


@dataclass(frozen=True, slots=True)
class Key:
    """A column of this name that rows are grouped by."""

    name: str
    of: Expression


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate of a group, as a column of this name; without `of` it is an aggregate of the rows. `number` is how
    many items "top" and "bottom" list; `clock`: numbers are displayed as clock times.
    """

    name: str
    function: Function
    of: Expression | None = None
    number: int = 0
    clock: bool = False


@dataclass(frozen=True, slots=True)
class CellTest:
    """A comparison of a cell with a literal, in any of its readings. `of` is the left side: an expression over a row,
    or the index of a column. "missing" and "known" test whether there is a value, and have no readings; a
    `TextOperator` looks for one text within another.
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
    """A column, by its index, that rows are ordered by."""

    column: int
    descending: bool = False

    @property
    def name(self) -> str:
        return f"column {self.column + 1}" + (" descending" if self.descending else "")


# -- Operators ---------------------------------------------------------------------------------------
# These rules of counting are the same for every store. A row is in the group of each value that it
# has for a key, and in the group "no value" if it has none; every path from a row to a value counts
# the value once. `docs/reference/tables.md` explains the consequences.


@dataclass(frozen=True, slots=True)
class Group(Table):
    """Rows (entities, or facts) grouped by the values of `keys`, each group aggregated by `measures`.

    `facts` and `values` are the inputs that the paths of keys and measures refer to. `where` filters the rows first.
    The last `hidden` measures are used by `Having` and `Order` and not shown. Without keys all rows are one group;
    `each` makes every row a group. `unsure` are indexes in `facts` of columns that the rows may not have at all: if
    no row has one, the answer warns.
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
    """The rows of a table ordered by their cells; equal rows keep their order, and cells that cannot be ordered come
    last.
    """

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    by: tuple[OrderBy, ...]


@dataclass(frozen=True, slots=True)
class Limit(Table):
    """At most `number` rows of a table, after the first `offset`; with `ties` also those equal to the last one in the
    order. With `per` (indexes of columns), that many rows of each group that is equal in these columns.
    """

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    number: int
    offset: int = 0
    ties: bool = False
    per: tuple[int, ...] = ()
