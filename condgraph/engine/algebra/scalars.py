"""Operators that give one number, text, time or truth value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from condgraph.engine.algebra.facets import ALWAYS, NEVER, Facets
from condgraph.engine.algebra.needs import Needs
from condgraph.engine.algebra.sorts import Condition, Entities, Facts, Node, Scalar, Values


@dataclass(frozen=True, slots=True)
class Count(Scalar):
    """How many entities; of values, how many distinct texts."""

    needs: ClassVar[Needs] = Needs(whole=("of",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="numbers", reads="nothing", warns=NEVER, total="counted")
    of: Entities | Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True)
class Sum(Scalar):
    """The exact sum of all numbers of the bag; 0 of none."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(
        carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS, total="summed"
    )
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Mean(Scalar):
    """The mean of all numbers of the bag; nothing of none."""

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class Median(Scalar):
    """The middle of all numbers of the bag by size, the mean of the middle two of an even number;
    nothing of none.
    """

    needs: ClassVar[Needs] = Needs(whole=("values",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="numbers", reads="nothing", warns=ALWAYS)
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.values,)


@dataclass(frozen=True, slots=True)
class AnySatisfies(Scalar):
    """Whether any value satisfies the test, and how many do."""

    needs: ClassVar[Needs] = Needs(shown=True)
    facets: ClassVar[Facets] = Facets(carries=(), strict=("values",), gives="truths", reads="nothing", warns=NEVER, tests="values")
    values: Values
    condition: Condition

    def inputs(self) -> tuple[Node, ...]:
        return (self.values, *self.condition.inputs())


@dataclass(frozen=True, slots=True)
class Exists(Scalar):
    """Whether there is any fact."""

    needs: ClassVar[Needs] = Needs(shown=True)
    facets: ClassVar[Facets] = Facets(carries=(), strict=("facts",), gives="truths", reads="nothing", warns=NEVER)
    facts: Facts

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)
