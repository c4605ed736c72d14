"""Edges to values for a server: what a value has to be, as numbers by unit and as a time, and what each
predicate costs under the bound.
"""

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
    """What a node has to have: a value under one of these predicates, at their prices, which include
    what direction adds.

    `numbers` are what numbers are compared with, one of each unit; a number without a unit compares
    with any. `time` is what times are compared with. Without them nothing is, since these predicates
    have no such values.
    """

    condition: Condition
    numbers: tuple[Quantity, ...]
    time: Time | None
    prices: Mapping[str, int]


def value_plans(problem: Problem, catalogue: Catalogue, nodes: Sequence[int], slack: int) -> dict[int, tuple[ValuePlan, ...]]:
    """The values that some nodes have to have, by node."""
    found: dict[int, tuple[ValuePlan, ...]] = {}
    for edge in problem.asked:
        if edge.node in nodes:
            allowed = np.flatnonzero((edge.prices + edge.against <= edge.least + slack) & (edge.prices < BARRED))
            prices = {catalogue.predicates[number]: int(edge.prices[number]) + edge.against for number in allowed.tolist()}
            plan = value_plan(catalogue, edge.condition, prices)
            found[edge.node] = (*found.get(edge.node, ()), plan)
    return found


def value_plan(catalogue: Catalogue, condition: Condition, prices: Mapping[str, int]) -> ValuePlan:
    """A condition on values of some predicates."""
    units = {unit for name in prices for unit in catalogue.units(name)}
    time = condition.time if any(map(catalogue.has_times, prices)) else None
    return ValuePlan(condition, tuple(condition.in_units(sorted(units))), time, prices)


def every_plan(problem: Problem, catalogue: Catalogue) -> Iterator[ValuePlan]:
    """For each edge to a value, what the value has to be, whatever its predicate costs."""
    for edge in problem.values:
        names = [catalogue.predicates[number] for number in np.flatnonzero(catalogue.holding(edge.condition)).tolist()]
        yield value_plan(catalogue, edge.condition, dict.fromkeys(names, 0))
