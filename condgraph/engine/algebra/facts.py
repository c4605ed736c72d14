"""Operators that give statements, each with the end that was reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from condgraph.engine.algebra.facets import NEVER, Facets, Warns
from condgraph.engine.algebra.needs import EACH, Needs
from condgraph.engine.algebra.sorts import Condition, End, Entities, Facts, Family, Node, Span, Values
from condgraph.engine.values import Time


@dataclass(frozen=True, slots=True)
class Scan(Facts):
    """Statements whose `anchor` end lies in `of` (None: any) and whose predicate is one of
    `predicates` (None: any).

    `reach` is the end that is kept: (subject, subject) for an attribute of the entities themselves,
    (subject, object) for a relation forward, (object, subject) for one backward. `source` scopes to
    one source.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=(), strict=("of",), gives="stated", reads="statements", warns=NEVER)
    of: Entities | None
    predicates: tuple[str, ...] | None
    anchor: End = "subject"
    reach: End = "subject"
    family: Family = "any"
    source: str | None = None

    def inputs(self) -> tuple[Node, ...]:
        return () if self.of is None else (self.of,)


@dataclass(frozen=True, slots=True)
class Where(Facts):
    """Facts whose object satisfies the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="objects"
    )
    facts: Facts
    condition: Condition

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, *self.condition.inputs())


@dataclass(frozen=True, slots=True)
class WhereQualifier(Facts):
    """Facts of which some qualifier `key` satisfies the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="qualifiers"
    )
    facts: Facts
    key: str
    condition: Condition

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, *self.condition.inputs())


@dataclass(frozen=True, slots=True)
class During(Facts):
    """Facts whose validity stands in `relation` to an interval.

    "overlaps" (=) and "disjoint" (!=), "before" (ends before it begins) and "after", "within" and
    "contains", and "until" (<=, ends no later than its end) and "from" (>=, starts no earlier than
    its start). An unknown bound decides nothing: the fact is kept only where the known bound alone
    decides.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER)
    facts: Facts
    relation: Span
    interval: Time

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)


@dataclass(frozen=True, slots=True)
class DuringAny(Facts):
    """Facts whose validity stands in `relation` (see `During`) to at least one of the times of a
    bag.
    """

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",),
        strict=("facts", "values"),
        gives="carried",
        reads="nothing",
        warns=Warns("mixed", "values", constants=False),
    )
    facts: Facts
    relation: Span
    values: Values

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, self.values)


@dataclass(frozen=True, slots=True)
class WhereValidity(Facts):
    """Facts of which the start or the end of the validity, as a time, satisfies the test."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, tests="validity"
    )
    facts: Facts
    part: Literal["start", "end"]
    condition: Condition

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts, *self.condition.inputs())


@dataclass(frozen=True, slots=True)
class OtherEnd(Facts):
    """The same statements, with the other end reached."""

    needs: ClassVar[Needs] = EACH
    facets: ClassVar[Facets] = Facets(
        carries=("facts",), strict=("facts",), gives="carried", reads="nothing", warns=NEVER, alters=True
    )
    facts: Facts
    reach: End

    def inputs(self) -> tuple[Node, ...]:
        return (self.facts,)
