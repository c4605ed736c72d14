"""Operators that give one number, text, time or truth value."""

from __future__ import annotations

from dataclasses import dataclass

from condgraph.engine.algebra.sorts import Entities, Facts, Node, Scalar, Test, Values


@dataclass(frozen=True, slots=True)
class Count(Scalar):
    """How many entities; of values, how many distinct texts."""

    of: Entities | Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Sum(Scalar):
    """The exactly rounded sum of all numbers of the bag; 0 of none."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Mean(Scalar):
    """The mean of all numbers of the bag; nothing of none."""

    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Some(Scalar):
    """Whether any value satisfies the test, and how many do."""

    values: Values
    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, *self.test.inputs())


@dataclass(frozen=True, slots=True)
class Exists(Scalar):
    """Whether there is any fact."""

    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)
