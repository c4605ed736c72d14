"""What `Where`, `WhereQualifier`, `FilterValues` and `AnySatisfies` ask of a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from condgraph.engine.algebra.needs import EACH, Needs
from condgraph.engine.algebra.sorts import Condition, Entities, Node, Operator, Values
from condgraph.engine.values import Value


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    """Compare with a typed literal; times as intervals (= within, != disjoint, < ends before, >
    begins after).
    """

    needs: ClassVar[Needs] = EACH
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    """At least one of the tests holds: the readings a literal has."""

    needs: ClassVar[Needs] = EACH
    conditions: tuple[Condition, ...]

    def parts(self) -> tuple[Condition, ...]:
        return self.conditions


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    """Every test holds of the same value: two bounds."""

    needs: ClassVar[Needs] = EACH
    conditions: tuple[Condition, ...]

    def parts(self) -> tuple[Condition, ...]:
        return self.conditions


@dataclass(frozen=True, slots=True)
class Among(Condition):
    """The value is one of these entities."""

    needs: ClassVar[Needs] = EACH
    entities: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.entities,)


@dataclass(frozen=True, slots=True)
class Equals(Condition):
    """The value equals one of these values; an entity and a text meet by name."""

    needs: ClassVar[Needs] = EACH
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Versus(Condition):
    """Compare with any of the values of a bag, one after the other; a number without a unit
    compares with every unit.
    """

    needs: ClassVar[Needs] = EACH
    operator: Operator
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The test does not hold."""

    needs: ClassVar[Needs] = Needs(whole=("condition",))
    condition: Condition

    def parts(self) -> tuple[Condition, ...]:
        return (self.condition,)
