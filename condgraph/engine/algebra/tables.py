"""Typed tables with one function for each operator, which stores fill to define how they handle the operators.

A function takes the store's compiler, the operator and any further arguments of that compiler; `None` means that the
store does not handle the operator, which its `support` explains. mypy knows the keys: a table that lacks an operator,
or has a function for another one, is a type error. `by_type` turns a table into a lookup by type.

    >>> from condgraph.engine.algebra import Scan, ByName
    >>> sizes: FactTable[object, [], int] = dict.fromkeys(FactTable.__annotations__, lambda compiler, node: 1)
    >>> by_type(sizes)[Scan](None, Scan(ByName(("Nepal",)), ("capital",)))
    1
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeAlias, TypedDict, TypeVar

from condgraph.engine.algebra import grouped, operators
from condgraph.engine.algebra.operators import Condition, Node

if TYPE_CHECKING:
    from condgraph.engine.algebra import solutions

#: The compiler, the further parameters of its functions, and their result.
C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")
N = TypeVar("N")

Entry: TypeAlias = Callable[Concatenate[C, N, P], R] | None


class EntityTable(TypedDict, Generic[C, P, R]):
    """Functions for the operators that return entities."""

    AllEntities: Entry[C, operators.AllEntities, P, R]
    ById: Entry[C, operators.ById, P, R]
    ByName: Entry[C, operators.ByName, P, R]
    Members: Entry[C, operators.Members, P, R]
    Union: Entry[C, operators.Union, P, R]
    Intersect: Entry[C, operators.Intersect, P, R]
    Minus: Entry[C, operators.Minus, P, R]
    Neighbour: Entry[C, operators.Neighbour, P, R]
    Reached: Entry[C, operators.Reached, P, R]
    SubjectsOf: Entry[C, operators.SubjectsOf, P, R]
    Referents: Entry[C, operators.Referents, P, R]
    SameName: Entry[C, operators.SameName, P, R]
    ArgExtreme: Entry[C, operators.ArgExtreme, P, R]


class FactTable(TypedDict, Generic[C, P, R]):
    """Functions for the operators that return statements."""

    Scan: Entry[C, operators.Scan, P, R]
    Where: Entry[C, operators.Where, P, R]
    WhereQualifier: Entry[C, operators.WhereQualifier, P, R]
    During: Entry[C, operators.During, P, R]
    DuringAny: Entry[C, operators.DuringAny, P, R]
    WhereValidity: Entry[C, operators.WhereValidity, P, R]
    OtherEnd: Entry[C, operators.OtherEnd, P, R]


class ValueTable(TypedDict, Generic[C, P, R]):
    """Functions for the operators that return values."""

    Objects: Entry[C, operators.Objects, P, R]
    Qualifiers: Entry[C, operators.Qualifiers, P, R]
    Validity: Entry[C, operators.Validity, P, R]
    Predicates: Entry[C, operators.Predicates, P, R]
    QualifierKeys: Entry[C, operators.QualifierKeys, P, R]
    Names: Entry[C, operators.Names, P, R]
    RowNumbers: Entry[C, operators.RowNumbers, P, R]
    FilterValues: Entry[C, operators.FilterValues, P, R]
    Distinct: Entry[C, operators.Distinct, P, R]
    Concat: Entry[C, operators.Concat, P, R]
    Extreme: Entry[C, operators.Extreme, P, R]
    Mode: Entry[C, operators.Mode, P, R]
    Nth: Entry[C, operators.Nth, P, R]
    Clip: Entry[C, operators.Clip, P, R]
    Bound: Entry[C, operators.Bound, P, R]
    Choose: Entry[C, operators.Choose, P, R]
    Shown: Entry[C, operators.Shown, P, R]
    Constants: Entry[C, operators.Constants, P, R]
    Apply: Entry[C, operators.Apply, P, R]
    External: Entry[C, operators.External, P, R]


class ScalarTable(TypedDict, Generic[C, P, R]):
    """Functions for the operators that return one number, text, time or truth value."""

    Count: Entry[C, operators.Count, P, R]
    Sum: Entry[C, operators.Sum, P, R]
    Mean: Entry[C, operators.Mean, P, R]
    Median: Entry[C, operators.Median, P, R]
    Deviation: Entry[C, operators.Deviation, P, R]
    AnySatisfies: Entry[C, operators.AnySatisfies, P, R]
    Exists: Entry[C, operators.Exists, P, R]


class GroupTable(TypedDict, Generic[C, P, R]):
    """Functions for the operators that return a table."""

    Group: Entry[C, grouped.Group, P, R]
    Having: Entry[C, grouped.Having, P, R]
    Order: Entry[C, grouped.Order, P, R]
    Limit: Entry[C, grouped.Limit, P, R]


class SolutionTable(TypedDict, Generic[C, P, R]):
    """Functions for the operators on rows that bind variables, and for the two that lead back to the other sorts."""

    Pattern: Entry[C, solutions.Pattern, P, R]
    Path: Entry[C, solutions.Path, P, R]
    EntityRows: Entry[C, solutions.EntityRows, P, R]
    Rows: Entry[C, solutions.Rows, P, R]
    Join: Entry[C, solutions.Join, P, R]
    LeftJoin: Entry[C, solutions.LeftJoin, P, R]
    SemiJoin: Entry[C, solutions.SemiJoin, P, R]
    AntiJoin: Entry[C, solutions.AntiJoin, P, R]
    MarkJoin: Entry[C, solutions.MarkJoin, P, R]
    MinusRows: Entry[C, solutions.MinusRows, P, R]
    UnionAll: Entry[C, solutions.UnionAll, P, R]
    Filter: Entry[C, solutions.Filter, P, R]
    WhereRows: Entry[C, solutions.WhereRows, P, R]
    BoundRows: Entry[C, solutions.BoundRows, P, R]
    Extend: Entry[C, solutions.Extend, P, R]
    Unwind: Entry[C, solutions.Unwind, P, R]
    Project: Entry[C, solutions.Project, P, R]
    DistinctRows: Entry[C, solutions.DistinctRows, P, R]
    GroupRows: Entry[C, solutions.GroupRows, P, R]
    OrderRows: Entry[C, solutions.OrderRows, P, R]
    SliceRows: Entry[C, solutions.SliceRows, P, R]
    EntitiesOf: Entry[C, solutions.EntitiesOf, P, R]
    FactsOf: Entry[C, solutions.FactsOf, P, R]


class ConditionTable(TypedDict, Generic[C, P, R]):
    """Functions for the conditions on a value."""

    Compare: Entry[C, operators.Compare, P, R]
    AnyOf: Entry[C, operators.AnyOf, P, R]
    AllOf: Entry[C, operators.AllOf, P, R]
    Among: Entry[C, operators.Among, P, R]
    Equals: Entry[C, operators.Equals, P, R]
    Versus: Entry[C, operators.Versus, P, R]
    Not: Entry[C, operators.Not, P, R]


#: All tables; a test compares them with the algebra.
TABLES: Final = (EntityTable, FactTable, ValueTable, ScalarTable, GroupTable, SolutionTable, ConditionTable)

AnyTable: TypeAlias = (
    EntityTable[C, P, R]
    | FactTable[C, P, R]
    | ValueTable[C, P, R]
    | ScalarTable[C, P, R]
    | GroupTable[C, P, R]
    | SolutionTable[C, P, R]
    | ConditionTable[C, P, R]
)


def _type(name: str) -> type[Node | Condition]:
    """Return an operator or a condition by its name."""
    cls: type[Node | Condition]
    if name in SolutionTable.__annotations__:
        # Imported only if a table of them is filled: most programs need none.
        cls = getattr(import_module("condgraph.engine.algebra.solutions"), name)
    else:
        cls = getattr(grouped if name in GroupTable.__annotations__ else operators, name)
    return cls


def by_type(table: AnyTable[C, P, R]) -> dict[type[Node | Condition], Callable[Concatenate[C, Any, P], R]]:
    """Return the functions of a table by the type of operator, without those that are None."""
    filled: dict[str, Any] = {**table}
    return {_type(name): function for name, function in filled.items() if function is not None}


def given(table: AnyTable[C, P, R]) -> frozenset[str]:
    """Return the names of the operators that a table has a function for."""
    return frozenset(name for name, function in table.items() if function is not None)
