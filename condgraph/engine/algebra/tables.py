"""The tables that say what becomes of each operator: one key an operator, one table a sort.

A store fills a table with one function an operator, which takes the store's compiler, the operator
and whatever else that compiler hands on; `None` stands where the store leaves an operator to
others, which `support` of that store explains. mypy knows the keys: a table without an operator, or
with a function that takes another one, is a type error. `by_type` makes it ready to be looked up in.

    >>> from condgraph.engine.algebra import Scan, ByName
    >>> sizes: FactTable[object, [], int] = dict.fromkeys(FactTable.__annotations__, lambda compiler, node: 1)
    >>> by_type(sizes)[Scan](None, Scan(ByName(("Nepal",)), ("capital",)))
    1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeAlias, TypedDict, TypeVar

from condgraph.engine.algebra import conditions, entities, facts, grouped, scalars, values
from condgraph.engine.algebra.sorts import Condition, Node

#: The compiler, what its functions take beside the operator, and what they give.
C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")
N = TypeVar("N")

Entry: TypeAlias = Callable[Concatenate[C, N, P], R] | None


class EntityTable(TypedDict, Generic[C, P, R]):
    """What becomes of each operator that gives entities."""

    AllEntities: Entry[C, entities.AllEntities, P, R]
    ById: Entry[C, entities.ById, P, R]
    ByName: Entry[C, entities.ByName, P, R]
    Members: Entry[C, entities.Members, P, R]
    Union: Entry[C, entities.Union, P, R]
    Intersect: Entry[C, entities.Intersect, P, R]
    Minus: Entry[C, entities.Minus, P, R]
    Neighbour: Entry[C, entities.Neighbour, P, R]
    Reached: Entry[C, entities.Reached, P, R]
    SubjectsOf: Entry[C, entities.SubjectsOf, P, R]
    Referents: Entry[C, entities.Referents, P, R]
    SameName: Entry[C, entities.SameName, P, R]
    ArgExtreme: Entry[C, entities.ArgExtreme, P, R]


class FactTable(TypedDict, Generic[C, P, R]):
    """What becomes of each operator that gives statements."""

    Scan: Entry[C, facts.Scan, P, R]
    Where: Entry[C, facts.Where, P, R]
    WhereQualifier: Entry[C, facts.WhereQualifier, P, R]
    During: Entry[C, facts.During, P, R]
    DuringAny: Entry[C, facts.DuringAny, P, R]
    WhereValidity: Entry[C, facts.WhereValidity, P, R]
    OtherEnd: Entry[C, facts.OtherEnd, P, R]


class ValueTable(TypedDict, Generic[C, P, R]):
    """What becomes of each operator that gives values."""

    Objects: Entry[C, values.Objects, P, R]
    Qualifiers: Entry[C, values.Qualifiers, P, R]
    Validity: Entry[C, values.Validity, P, R]
    Predicates: Entry[C, values.Predicates, P, R]
    QualifierKeys: Entry[C, values.QualifierKeys, P, R]
    Names: Entry[C, values.Names, P, R]
    RowNumbers: Entry[C, values.RowNumbers, P, R]
    FilterValues: Entry[C, values.FilterValues, P, R]
    Distinct: Entry[C, values.Distinct, P, R]
    Concat: Entry[C, values.Concat, P, R]
    Extreme: Entry[C, values.Extreme, P, R]
    Mode: Entry[C, values.Mode, P, R]
    Nth: Entry[C, values.Nth, P, R]
    Clip: Entry[C, values.Clip, P, R]
    Bound: Entry[C, values.Bound, P, R]
    Choose: Entry[C, values.Choose, P, R]
    Shown: Entry[C, values.Shown, P, R]
    Constants: Entry[C, values.Constants, P, R]
    Apply: Entry[C, values.Apply, P, R]
    External: Entry[C, values.External, P, R]


class ScalarTable(TypedDict, Generic[C, P, R]):
    """What becomes of each operator that gives one number, text, time or truth value."""

    Count: Entry[C, scalars.Count, P, R]
    Sum: Entry[C, scalars.Sum, P, R]
    Mean: Entry[C, scalars.Mean, P, R]
    Median: Entry[C, scalars.Median, P, R]
    AnySatisfies: Entry[C, scalars.AnySatisfies, P, R]
    Exists: Entry[C, scalars.Exists, P, R]


class GroupTable(TypedDict, Generic[C, P, R]):
    """What becomes of each operator that gives a table."""

    Group: Entry[C, grouped.Group, P, R]
    Having: Entry[C, grouped.Having, P, R]
    Order: Entry[C, grouped.Order, P, R]
    Limit: Entry[C, grouped.Limit, P, R]


class ConditionTable(TypedDict, Generic[C, P, R]):
    """What becomes of each condition on a value."""

    Compare: Entry[C, conditions.Compare, P, R]
    AnyOf: Entry[C, conditions.AnyOf, P, R]
    AllOf: Entry[C, conditions.AllOf, P, R]
    Among: Entry[C, conditions.Among, P, R]
    Equals: Entry[C, conditions.Equals, P, R]
    Versus: Entry[C, conditions.Versus, P, R]
    Not: Entry[C, conditions.Not, P, R]


#: The tables, which a test holds against the algebra.
TABLES: Final = (EntityTable, FactTable, ValueTable, ScalarTable, GroupTable, ConditionTable)

AnyTable: TypeAlias = (
    EntityTable[C, P, R]
    | FactTable[C, P, R]
    | ValueTable[C, P, R]
    | ScalarTable[C, P, R]
    | GroupTable[C, P, R]
    | ConditionTable[C, P, R]
)


#: All operators and conditions by name.
_TYPES: Final[dict[str, type[Node | Condition]]] = {
    name: getattr(module, name)
    for table, module in zip(TABLES, (entities, facts, values, scalars, grouped, conditions), strict=True)
    for name in table.__annotations__
}


def by_type(table: AnyTable[C, P, R]) -> dict[type[Node | Condition], Callable[Concatenate[C, Any, P], R]]:
    """A table as it is looked up in, by the type of an operator, without what is left to others."""
    filled: dict[str, Any] = {**table}
    return {_TYPES[name]: found for name, found in filled.items() if found is not None}


def given(table: AnyTable[C, P, R]) -> frozenset[str]:
    """The names of the operators that a table has a function for."""
    return frozenset(name for name, found in table.items() if found is not None)
