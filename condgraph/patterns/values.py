"""Edges to values: which nodes have a number or time that a pattern asks for, and at which price.

A value in a pattern is a condition on the node next to it, so it becomes part of that node's domain before anything is joined:
the price of the nearest predicate under which the node has such a value. A value does not use up a statement: `> 1990` and
`< 2000` may be the same date.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.values import NO_UNIT, Kind
from condgraph.languages.pattern.pattern import Condition, Pattern
from condgraph.patterns.distance.domains import BARRED, Domain
from condgraph.patterns.graph import Costs
from condgraph.patterns.options import AGAINST

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ValueEdge:
    """An edge of the pattern to a value: its number, the node with the value, the condition, prices, and what direction adds."""

    edge: int
    node: int
    condition: Condition
    prices: Costs
    against: int

    @property
    def least(self) -> int:
        """The least that the edge can cost; `BARRED` if nothing has such a value."""
        return min(int(self.prices.min(initial=BARRED)) + self.against, BARRED)

    def among(self, predicates: NDArray[np.bool_]) -> ValueEdge:
        """Return the edge limited to some predicates."""
        return replace(self, prices=np.where(predicates, self.prices, BARRED))


def value_edges(pattern: Pattern, prices: Sequence[Costs | None], predicates: int, directed: bool | None) -> list[ValueEdge]:
    """Return the edges of a pattern that end at values; `prices` are those of its edges."""
    edges = []
    for number, edge in enumerate(pattern.edges):
        at_head = pattern.nodes[edge.head].value
        condition = at_head or pattern.nodes[edge.tail].value
        if condition is None:
            continue
        edge_prices = prices[number]
        costs = np.zeros(predicates, np.int64) if edge_prices is None else edge_prices
        # A statement runs to its value, so an edge with the value as subject runs against it.
        against = 0 if at_head is None or directed is False else BARRED if directed else AGAINST
        edges.append(ValueEdge(number, edge.tail if at_head else edge.head, condition, costs, against))
    return edges


def with_value(domain: Domain, edge: ValueEdge, nodes: NDArray[Any], predicates: NDArray[Any]) -> Domain:
    """Return the nodes of a domain that have such a value: these `nodes` under these `predicates`."""
    costs = np.minimum(edge.prices.take(predicates) + edge.against, BARRED)
    order = np.lexsort((costs, nodes))
    nodes, costs = nodes[order], costs[order]
    starts = changed(nodes)
    nodes, costs = nodes[starts].astype(np.int32), costs[starts]
    terms = domain.at(nodes)
    costs = np.minimum(costs if terms is None else costs + terms, BARRED)
    keep = costs < BARRED
    return Domain(costs[keep], nodes[keep])


def holders(snapshot: Snapshot, condition: Condition) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the attribute statements with matching values: their numbers, subjects and predicates, each of shape (n,)."""
    get = snapshot.arrays.get
    kinds = get("att.kind")
    if not len(kinds):
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    mask = np.zeros(len(kinds), bool)
    if condition.quantity is not None:
        mask |= _numbers(snapshot, condition, kinds)
    if condition.time is not None:
        times = kinds == Kind.TIME
        mask |= times & condition.at(get("att.a"), get("att.b"))
    at = np.flatnonzero(mask)
    predicates = np.searchsorted(get("att.offsets"), at, side="right") - 1
    return at + snapshot.relations, snapshot.attribute_subject[at].astype(np.int64), predicates.astype(np.int64)


def _numbers(snapshot: Snapshot, condition: Condition, kinds: NDArray[Any]) -> NDArray[np.bool_]:
    get = snapshot.arrays.get
    units, floats = get("att.unit"), np.ascontiguousarray(get("att.a")).view(np.float64)
    quantities = kinds == Kind.QUANTITY
    mask, equal = np.zeros(len(kinds), bool), np.zeros(len(kinds), bool)
    for unit in np.unique(units[quantities]).tolist():
        bound = condition.in_unit(NO_UNIT if unit < 0 else snapshot.texts[unit])
        if bound is None:
            continue
        in_unit = quantities & (units == unit)
        try:
            number = float(bound)
        except OverflowError:
            number = float("inf") if bound > 0 else float("-inf")
        equal |= in_unit & (floats == number)
        match condition.operator:
            case "=":
                mask |= in_unit & (floats == number)
            case "<" | "<=":
                mask |= in_unit & (floats <= number)
            case _:
                mask |= in_unit & (floats >= number)
    # Floats do not decide about numbers that no float equals, or that equal the bound.
    candidates = np.flatnonzero(mask)
    exact = candidates[(get("att.ref")[candidates] >= 0) | equal[candidates]]
    if len(exact):
        cells = {name: get(f"att.{name}").take(exact) for name, _ in PARTS}
        values = decode_values(cells, snapshot.texts.__getitem__, snapshot.ident)
        mask[exact] = [condition.holds(value) for value in values]
    return mask
