"""Values of a pattern as parts of Cypher: a number or a time that a node has, compared by the server."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from condgraph.cypher.compile.conditions import span_condition, time_condition
from condgraph.cypher.layout.base import Bound, give
from condgraph.cypher.layout.edges import EDGES
from condgraph.cypher.layout.schema import as_float, quote
from condgraph.engine.period import Period
from condgraph.engine.values import NO_UNIT
from condgraph.patterns.remote.values import ValuePlan

#: More predicates than these are told from others by their prices, and not by the pattern.
MOST_TYPES: Final = 48


class ValuePattern(NamedTuple):
    """A value in a text: the pattern by which a node has it, the variables of the statement and of the
    value, what the value has to be (one way is enough), and the price (None: nothing).
    """

    pattern: str
    statement: str
    value: str
    ways: list[str]
    price: str | None


class Values:
    """Names and parameters of a text, and what values have to be in it."""

    def __init__(self, graph: str, period: Period | None = None) -> None:
        """With a `period`, of the statements that hold in it."""
        self.period = period
        self.parameters: dict[str, Any] = {"graph": graph}
        self._names = self._given = 0

    def parameter(self, value: Any) -> str:
        """A new parameter with this value, as it is written."""
        self._given += 1
        return give(self.parameters, f"p{self._given}", value)

    def name(self, prefix: str) -> str:
        """A name that is used once."""
        self._names += 1
        return f"{prefix}_{self._names}"

    constant = parameter

    def then(self, r: str) -> list[str]:
        """The condition that a statement holds in the period; none without a period. Memberships have no times."""
        if self.period is None:
            return []
        low, high = (self.parameter(bound) for bound in (self.period.interval.start, self.period.interval.end))
        return [span_condition(self, self.period.relation, EDGES.validity(r), low, high)]

    def value(self, n: str, plan: ValuePlan) -> ValuePattern:
        """How a node has a value as it is planned."""
        r, v = self.name("r"), self.name("v")
        prices = {EDGES.type_of(name): cost for name, cost in plan.prices.items()}
        costs, written, table = set(prices.values()), r, ""
        if len(prices) <= MOST_TYPES:
            written = f"{r}:" + "|".join(map(quote, prices))
        if len(costs) > 1 or len(prices) > MOST_TYPES:
            table = self.parameter(prices)
        then = "".join(f" AND {test}" for test in self.then(r))
        ways = [f"({way}{then})" for way in self.ways(v, plan)]
        if len(prices) > MOST_TYPES:
            ways = [f"{table}[type({r})] IS NOT NULL AND {way}" for way in ways]
        price = f"{table}[type({r})]" if len(costs) > 1 else self.parameter(one) if (one := next(iter(costs), 0)) else None
        return ValuePattern(f"({n})-[{written}]->{EDGES.value(v)}", r, v, ways, price)

    def ways(self, v: str, plan: ValuePlan) -> list[str]:
        """What a value may be: a number of any of some units, compared as it was written, or a time."""
        found, cell, operator = [], Bound(v), plan.condition.operator
        for one in plan.numbers:
            number, order = self.parameter(as_float(one.number)), self.parameter(EDGES.number_order(one.number))
            unit = "IS NOT NULL" if one.unit == NO_UNIT else f"= {self.parameter(one.unit)}"
            # By the float, which an index has, and of those that are one float by their digits.
            mine = f"coalesce({cell.order}, '1')"
            test = f"{cell.number} = {number} AND {mine} = {order}"
            if operator != "=":
                strict = operator[0]
                test = f"{cell.number} {strict}= {number} AND ({cell.number} {strict} {number} OR {mine} {operator} {order})"
            found.append(f"{test} AND {cell.unit} {unit}")
        if plan.time is not None:
            start, end = self.parameter(plan.time.start), self.parameter(plan.time.end)
            found.append(time_condition(operator, cell, start, end))
        return found


def statements_of(
    plan: ValuePlan, graph: str, record: str, ids: list[str], period: Period | None = None
) -> tuple[str, dict[str, Any]]:
    """The query of the statements, as `record` writes `f` from `a` to `v`, by which entities have a
    value; and its parameters.
    """
    writer = Values(graph, period)
    own = writer.value("a", plan)
    start = f"UNWIND {writer.parameter(ids)} AS id MATCH {EDGES.at('a', 'id')}"
    named = f"WITH a, {own.statement} AS f, {own.value} AS v"
    text = f"{start} MATCH {own.pattern} WHERE {' OR '.join(own.ways)} {named} RETURN 0 AS unit, {record} AS row"
    return text, writer.parameters
