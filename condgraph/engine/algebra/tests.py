"""What `Where`, `WhereQualifier`, `Keep` and `Some` ask of a value."""

from __future__ import annotations

from dataclasses import dataclass

from condgraph.engine.algebra.sorts import Entities, Node, Operator, Test, Values
from condgraph.engine.values import Value


@dataclass(frozen=True, slots=True)
class Compare(Test):
    """Compare with a typed literal; times as intervals (= within, != disjoint, < ends before, > begins after)."""

    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class AnyOf(Test):
    """At least one of the tests holds: the readings a literal has."""

    tests: tuple[Test, ...]

    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for test in self.tests for node in test.inputs())


@dataclass(frozen=True, slots=True)
class AllOf(Test):
    """Every test holds of the same value: two bounds."""

    tests: tuple[Test, ...]

    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for test in self.tests for node in test.inputs())


@dataclass(frozen=True, slots=True)
class Among(Test):
    """The value is one of these entities."""

    entities: Entities

    def inputs(self) -> tuple[Node, ...]:
        return (self.entities,)


@dataclass(frozen=True, slots=True)
class Equals(Test):
    """The value equals one of these values; an entity and a text meet by name."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Versus(Test):
    """Compare with any of the values of a bag, one after the other; a number without a unit compares with every unit."""

    operator: Operator
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Not(Test):
    """The test does not hold."""

    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return self.test.inputs()
