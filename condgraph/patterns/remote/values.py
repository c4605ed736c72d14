"""Edges to values as conditions for a server: quantities per unit, a time, and the price of each predicate under the bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from condgraph.engine.values import Quantity, Time
from condgraph.languages.pattern.pattern import Condition
from condgraph.patterns.distance.domains import BARRED
from condgraph.patterns.problem import Problem
from condgraph.patterns.remote.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class ValuePlan:
    """A value that a node must have under one of these predicates, at their prices, which include the cost of
    direction.

    `numbers` are compared with quantities, one per unit; a number without a unit compares with any. `time` is compared
    with times. Both are empty if these predicates have no such values.
    """

    condition: Condition
    numbers: tuple[Quantity, ...]
    time: Time | None
    prices: Mapping[str, int]


def value_plans(problem: Problem, catalogue: Catalogue, nodes: Sequence[int], slack: int) -> dict[int, tuple[ValuePlan, ...]]:
    """Return, for each of some nodes, the values that it must have."""
    plans: dict[int, tuple[ValuePlan, ...]] = {}
    for edge in problem.asked:
        if edge.node in nodes:
            allowed = np.flatnonzero((edge.prices + edge.against <= edge.least + slack) & (edge.prices < BARRED))
            prices = {catalogue.predicates[number]: int(edge.prices[number]) + edge.against for number in allowed.tolist()}
            plan = value_plan(catalogue, edge.condition, prices)
            plans[edge.node] = (*plans.get(edge.node, ()), plan)
    return plans


def value_plan(catalogue: Catalogue, condition: Condition, prices: Mapping[str, int]) -> ValuePlan:
    """Return a condition on the values of some predicates, with their prices, as a plan."""
    units = {unit for name in prices for unit in catalogue.units(name)}
    time = condition.time if any(map(catalogue.has_times, prices)) else None
    return ValuePlan(condition, tuple(condition.in_units(sorted(units))), time, prices)


def every_plan(problem: Problem, catalogue: Catalogue) -> Iterator[ValuePlan]:
    """Yield, for each edge to a value, the plan of its value under all predicates that may hold it, whatever they cost."""
    for edge in problem.values:
        yield every_value(catalogue, edge.condition)


def every_value(catalogue: Catalogue, condition: Condition) -> ValuePlan:
    """Return the plan of a value under all predicates that may hold it."""
    names = [catalogue.predicates[number] for number in np.flatnonzero(catalogue.holding(condition)).tolist()]
    return value_plan(catalogue, condition, dict.fromkeys(names, 0))
