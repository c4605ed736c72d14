"""A graph in Neo4j as patterns are searched on it: joins that a store does, their Cypher, and the statements
of solutions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.compile.conditions import span_condition, time_condition
from condgraph.cypher.compile.plan import restore
from condgraph.cypher.compile.values import PlanCompiler
from condgraph.cypher.layout.base import GIVEN, Bound, give
from condgraph.cypher.layout.edges import EDGES
from condgraph.cypher.layout.schema import as_float, quote
from condgraph.engine.bounds import check
from condgraph.engine.period import Period
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import NO_UNIT
from condgraph.patterns.distance.domains import BARRED
from condgraph.patterns.join.distinct import apart
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.parts import BondPlan, EdgePlan, PartPlan, StepPlan, Tally, part_plans
from condgraph.patterns.remote.solutions import TOGETHER, Held, SmallNumbers
from condgraph.patterns.remote.values import ValuePlan

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore


# -- values ------------------------------------------------------------------------------------------
# Values of a pattern as parts of Cypher: a number or a time that a node has, compared by the server.


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


# -- content -----------------------------------------------------------------------------------------


# -- Joins that a store does -------------------------------------------------------------------------

# The joins of a search that a store does itself: the first solutions of a connected part, and which
# edges lie between pairs of nodes.


class Parts:
    """The joins of a search on a store (`patterns.join.join.Server`)."""

    def __init__(self, store: Neo4jContent, catalogue: Catalogue, tally: Tally) -> None:
        self.store, self.catalogue, self.tally = store, catalogue, tally
        self._labels: dict[tuple[int, int], list[int]] = {}

    def part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The first `length` solutions of a part, of each group where it has nodes of `by`.

        The server prices each bond alone. Where bonds of a row lie on the same two nodes, the row
        is put right here: it moves back, and what stood behind it comes first, so that more is
        asked for until enough stand before all that the server did not give.
        """
        bonds = [bond for bond in [*problem.bonds, *problem.loops.values()] if bond.first in nodes]
        if not problem.distinct or len(bonds) < 2:
            return self._part(problem, nodes, bound, length, by, top)
        rank, groups = problem.graph.rank, [node for node in by if node in nodes]
        wanted = length
        while True:
            rows, cut = self._part(problem, nodes, bound, wanted, by, top)
            right = apart(problem, rows, [], bonds, alone=True, between=self.between)
            changed = bool((right.totals != rows.totals).any())
            kept = right.take(np.flatnonzero(right.totals <= min(bound, BARRED - 1)))
            if not changed or wanted is None:
                if length is None or not groups:
                    return kept if length is None else first(kept, rank, length), cut or (length is not None and len(kept) > length)
                best = best_of_groups(kept, groups, rank, length)
                return best, cut or len(best) < len(kept)
            if groups or not cut:
                if not groups:
                    ordered = first(kept, rank, length or len(kept))
                    return ordered, len(ordered) < len(kept)
                wanted = None
                continue
            # What the server did not give stands behind the last row that it gave.
            ahead = first(_until(kept, rows.take(np.array([len(rows) - 1])), rank), rank, len(kept))
            if length is not None and len(ahead) >= length:
                return first(ahead, rank, length), True
            wanted *= 4

    def _part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The same with each bond priced alone."""
        rank, groups = problem.graph.rank, [node for node in by if node in nodes]
        few = None if length is None else length + problem.spare
        # One more than asked for tells whether there are more; of groups the server gives the best,
        # or all rows to choose from.
        limit = None if length is None else length + 1
        if groups:
            limit = top if length == 1 else None
        grouped = groups if groups and length == 1 else []
        found = [Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes})]
        for plan in part_plans(problem, self.catalogue, nodes, bound, few=few, limit=limit, by=grouped, kept=groups):
            check()
            totals, numbers = self.store.rows(plan, self.catalogue, self.tally)
            self.tally.rows += len(totals)
            found.append(Rows(totals, {node: numbers[:, place] for place, node in enumerate(plan.nodes)}))
        rows = Rows.joined(found)
        if length is None:
            return rows, False
        before = len(rows)
        if groups:
            rows = best_of_groups(rows, groups, rank, length)
            # Groups of which the server gave the best alone: that others are there is not known,
            # and matters to pairs only.
            return rows, len(rows) < before or bool(grouped)
        rows = first(rows, rank, length)
        return rows, len(rows) < before

    def joined(
        self, problem: Problem, ones: NDArray[Any], others: NDArray[Any], forward: bool, backward: bool
    ) -> NDArray[np.bool_]:
        """Which of these pairs of nodes some edge joins."""
        keys, which = np.unique(ones.astype(np.int64) << 32 | others, return_inverse=True)
        first_ones, second_ones = (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist()
        found = self.store.joined(self.catalogue, first_ones, second_ones, forward, backward)
        self.tally.queries += 1
        return np.array(found, bool)[which]

    def between(self, ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The edges between pairs of nodes: position of the pair, ascending, and label."""
        pairs = list(zip(ones.tolist(), others.tolist(), strict=True))
        fresh = sorted({pair for pair in pairs if pair not in self._labels})
        for start in range(0, len(fresh), TOGETHER):
            some = fresh[start : start + TOGETHER]
            small = self.store.between(self.catalogue, some)
            self.tally.queries += 1
            numbers = SmallNumbers(small, self.catalogue)
            self._labels.update((pair, numbers.labels(*pair)) for pair in some)
        sizes = [len(self._labels[pair]) for pair in pairs]
        labels = [label for pair in pairs for label in self._labels[pair]]
        return np.arange(len(pairs)).repeat(sizes), np.array(labels, np.int64)


def _until(rows: Rows, last: Rows, rank: NDArray[Any]) -> Rows:
    """The rows that do not stand behind another one in the order of solutions."""
    after = rows.totals > last.totals[0]
    same = rows.totals == last.totals[0]
    for node in sorted(rows.columns):
        own, other = rank.take(rows.columns[node]), rank.take(last.columns[node][:1])[0]
        after |= same & (own > other)
        same &= own == other
    return rows.take(np.flatnonzero(~after))


# -- The text ----------------------------------------------------------------------------------------
# Candidates, prices and bounds are parameters; predicates are relationship types, which the planner
# has to see, unless there are very many. A node that is a text stands as its index key `k3` and its
# order `o3`, since every attribute has a `Value` node of its own.
#
# Rows grow by one node of the pattern a step, and go as soon as they are above what the bound leaves
# (Eq. 11). Of an unknown leaf only the nearest few beside each parent are looked at, and they are
# looked for as soon as the parent is found, once for all rows that grow from it. Where the best of
# each group is asked for, what comes after the nodes of the group is looked for group by group: the
# server keeps one row of each, and stops where nothing better can come.


def keys_of(plan: PartPlan, orders: Mapping[str, str]) -> list[int]:
    """Where in a row the key of each node of the plan stands."""
    places, behind = [], len(plan.nodes)
    for place, node in enumerate(plan.nodes, 1):
        apart = plan.sorts[node] == "text" or bool(orders)
        behind += apart
        places.append(behind if apart else place)
    return places


class Writer(Values):
    """Writes the query of a part. `attributes` are all predicates with text values, `valued` all types of
    relationships that values have. `orders` says what ids are ordered by, where the server would
    order them otherwise.
    """

    def __init__(
        self,
        plan: PartPlan,
        graph: str,
        attributes: Sequence[str],
        valued: Collection[str],
        orders: Mapping[str, str],
        period: Period | None = None,
    ) -> None:
        super().__init__(graph, period)
        self.plan, self.attributes, self.value_types, self.orders = plan, attributes, valued, orders
        #: Lists of what leaves may be, by leaf, that were looked for ahead.
        self._lists: dict[int, str] = {}

    # -- nodes -------------------------------------------------------------------------------------

    def entity(self, node: int) -> bool:
        """Whether a node is an entity here, and no text."""
        return self.plan.sorts[node] == "entity"

    def variables(self, nodes: Sequence[int]) -> list[str]:
        """The variables of nodes: `n3`, or `k3` and `o3` of a text."""
        return [name for node in nodes for name in ((f"n{node}",) if self.entity(node) else (f"k{node}", f"o{node}"))]

    def key(self, node: int) -> str:
        """What a node is known by."""
        return EDGES.id(f"n{node}") if self.entity(node) else f"k{node}"

    def order(self, node: int) -> str:
        """What a node is ordered by: ids and texts by code point."""
        if not self.entity(node):
            return f"o{node}"
        ident = EDGES.id(f"n{node}")
        if not self.orders:
            return ident
        self.parameters.setdefault("orders", dict(self.orders))
        return f"coalesce($orders[{ident}], {ident})"

    def terms(self, node: int) -> tuple[list[str], str | None]:
        """Conditions on a node that was found, by its key, and its term (None: nothing)."""
        key = self.key(node)
        candidates = self.plan.candidates.get(node)
        if candidates is None:
            return self.limits(node, key), None
        if len(candidates) == 1:
            one, cost = candidates[0]
            return [f"{key} = {self.parameter(self.stored(node, one))}"], self.parameter(cost) if cost else None
        if len({cost for _, cost in candidates}) == 1 and len(candidates) <= 16:
            keys = self.parameter([self.stored(node, one) for one, _ in candidates])
            return [f"{key} IN {keys}"], self.parameter(candidates[0][1]) if candidates[0][1] else None
        prices = self.parameter({self.stored(node, one): cost for one, cost in candidates})
        return [f"{prices}[{key}] IS NOT NULL"], f"{prices}[{key}]"

    def limits(self, node: int, key: str) -> list[str]:
        """Conditions on a node that may be anything else, known by `key`: what it is not to be, and
        its type.
        """
        found = []
        excluded, types = self.plan.excluded.get(node), self.plan.types.get(node)
        if excluded:
            found.append(f"NOT {key} IN {self.parameter([self.stored(node, one) for one in excluded])}")
        if types is not None:
            found.append(EDGES.of_type(f"n{node}", self.name("c"), self.parameter(list(types))))
        return found

    def stored(self, node: int, key: str) -> str:
        """A key of the catalogue as it is stored."""
        return key if self.entity(node) else EDGES.key(key)

    # -- edges -------------------------------------------------------------------------------------

    def edge(self, plan: EdgePlan, r: str) -> tuple[str, list[str], str | None]:
        """What stands in the brackets, conditions, and the price (None: nothing)."""
        types = [] if plan.prices is None else [EDGES.type_of(name) for name in plan.prices]
        statement, stated = EDGES.is_statement(r), EDGES.is_stated(r)
        if plan.prices is None:
            return r, [EDGES.is_edge(r) if plan.membership is not None else f"({statement})"], None
        prices = {EDGES.type_of(name): cost for name, cost in plan.prices.items()}
        conditions = []
        if plan.membership is not None:
            prices[EDGES.member] = plan.membership
            types.append(EDGES.member)
            conditions.append(stated if len(types) == 1 else f"({statement} OR {stated})")
        written = f"{r}:" + "|".join(quote(one) for one in types) if len(types) <= MOST_TYPES else r
        costs = set(prices.values())
        if len(costs) == 1 and len(types) <= MOST_TYPES:
            cost = costs.pop()
            return written, conditions, self.parameter(cost) if cost else None
        table = self.parameter(prices)
        if len(types) > MOST_TYPES:
            conditions = [f"{table}[type({r})] IS NOT NULL"]
            conditions.append(f"({statement} OR {stated})" if EDGES.member in prices else f"({statement})")
        return written, conditions, f"{table}[type({r})]"

    def mixed(self, plan: EdgePlan) -> bool:
        """Whether such an edge may also lead to a value, so that the end has to be looked at."""
        if plan.prices is None or len(plan.prices) + 1 > MOST_TYPES:
            return True
        return any(EDGES.type_of(name) in self.value_types for name in plan.prices)

    def bond(self, plan: BondPlan, *, fresh: bool) -> tuple[list[str], list[str], list[str], str | None]:
        """Clauses before, patterns of one MATCH, conditions, and the price. `fresh` says that the
        far end is found by it.

        In one MATCH, edges take different relationships. Texts are met through values of their own.
        """
        before, patterns, conditions, prices = [], [], [], []
        value = ""
        for number, edge in enumerate(plan.edges):
            r = self.name("r")
            inside, tests, price = self.edge(edge, r)
            conditions += [*tests, *self.then(r)]
            if price is not None:
                prices.append(price)
            if edge.against is not None:
                # A loop runs both ways.
                end = "startNode" if edge.against == "in" else "endNode"
                prices.append(f"CASE WHEN {end}({r}) = n{plan.near} THEN 0 ELSE {self.parameter(edge.extra)} END")
            left, right = ("<-" if edge.way == "in" else "-"), ("->" if edge.way == "out" else "-")
            if self.entity(plan.near) and self.entity(plan.far):
                far = EDGES.entity(f"n{plan.far}")[0] if fresh and not number and self.mixed(edge) else f"(n{plan.far})"
                patterns.append(f"(n{plan.near}){left}[{inside}]{right}{far}")
                continue
            v = self.name("v")
            one, text = (plan.near, plan.far) if self.entity(plan.near) else (plan.far, plan.near)
            subject = EDGES.entity(f"n{one}")[0] if fresh and one == plan.far and not number else f"(n{one})"
            patterns.append(f"{subject}-[{inside}]->{EDGES.value(v)}")
            conditions.append(EDGES.is_text(v))
            if text == plan.far and fresh and not number:
                value = v
            elif text == plan.far and fresh:
                conditions.append(f"{EDGES.text_key(v)} = {EDGES.text_key(value)}")
            else:
                conditions.append(f"{EDGES.text_key(v)} = k{text}")
                if text == plan.near:
                    names = list(map(EDGES.predicate_key, self.attributes if edge.prices is None else edge.prices))
                    conditions.append(EDGES.of_predicates(v, self.parameter(names)))
        if value:
            before.append(value)
        return before, patterns, conditions, " + ".join(prices) or None

    def carried(self, nodes: Sequence[int]) -> list[str]:
        """The variables that rows have."""
        return [*self.variables(nodes), *self._lists.values()]

    # -- steps -------------------------------------------------------------------------------------

    def seed(self) -> list[str]:
        """The candidates to begin with."""
        plan, node = self.plan, self.plan.seed
        candidates = plan.candidates.get(node)
        if candidates is None and node in plan.values:
            lines = self.holders(node)
        elif candidates is None:
            conditions, _ = self.terms(node)
            pattern, inside = EDGES.entity(f"n{node}")
            lines = [f"MATCH {pattern}", f"WHERE {' AND '.join([inside, *conditions])}"]
            lines.append(f"WITH n{node}, 0 AS d")
        elif self.entity(node) and len(candidates) == 1:
            ident, cost = candidates[0]
            lines = [f"MATCH {EDGES.at(f'n{node}', self.parameter(EDGES.handle(ident)))}"]
            lines.append(f"WITH n{node}, {self.parameter(cost)} AS d")
        elif self.entity(node):
            rows = self.parameter([[EDGES.handle(ident), cost] for ident, cost in candidates])
            lines = [f"UNWIND {rows} AS c MATCH {EDGES.at(f'n{node}', 'c[0]')}", f"WITH n{node}, c[1] AS d"]
        else:
            rows = self.parameter([[EDGES.key(text), EDGES.text_order(text), cost] for text, cost in candidates])
            lines = [f"UNWIND {rows} AS c WITH c[0] AS k{node}, c[1] AS o{node}, c[2] AS d"]
        return lines + self.checks([node], [node], plan.most)

    def holders(self, node: int) -> list[str]:
        """The nodes that have a value: a look into an index for each way in which it may be as
        asked.
        """
        first, *_ = self.plan.values[node]
        predicates = self.parameter(list(map(EDGES.predicate_key, first.prices)))
        own = self.value(f"n{node}", first)
        inside = EDGES.of_predicates(own.value, predicates)
        looks = [f"MATCH {own.pattern} WHERE {inside} AND {way} RETURN n{node}" for way in own.ways]
        conditions, _ = self.terms(node)
        where = " AND ".join([EDGES.entity(f"n{node}")[1], *conditions])
        return [f"CALL () {{ {' UNION '.join(looks)} }}", f"WITH n{node}, 0 AS d WHERE {where}"]

    def checks(self, found: Sequence[int], fresh: Sequence[int], most: int) -> list[str]:
        """Loops and values of nodes just found, and edges that must not be."""
        lines = []
        carried = ", ".join(self.carried(found))
        for node in fresh:
            loop = self.plan.loops.get(node)
            if loop is not None:
                _, patterns, conditions, price = self.bond(loop, fresh=False)
                where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
                lines.append(f"MATCH {', '.join(patterns)}{where}")
                lines.append(f"WITH {carried}, d + {price or 0} AS d WHERE d <= {self.parameter(most)}")
            for value in self.plan.values.get(node, ()):
                lines += self.valued(node, value, carried, most)
        tests = []
        for one, two, forward, backward in self.plan.apart:
            if {one, two} <= set(found) and {one, two} & set(fresh):
                tests += [
                    self.unjoined(a, b) for a, b, way in ((one, two, forward), (two, one, backward)) if way and self.entity(a)
                ]
        if tests:
            lines.append(f"WITH {carried}, d WHERE {' AND '.join(tests)}")
        return lines

    def valued(self, node: int, plan: ValuePlan, carried: str, most: int) -> list[str]:
        """Rows whose node has a value; a row for each price that it has it at."""
        own = self.value(f"n{node}", plan)
        match, within = f"MATCH {own.pattern} WHERE {' OR '.join(own.ways)}", f"d <= {self.parameter(most)}"
        if len(set(plan.prices.values())) == 1:
            return [f"WITH {carried}, d + {own.price or 0} AS d WHERE {within} AND EXISTS {{ {match} }}"]
        return [match, f"WITH DISTINCT {carried}, d + {own.price} AS d WHERE {within}"]

    def unjoined(self, one: int, two: int) -> str:
        """A condition: no edge runs from one node to the other."""
        r = self.name("r")
        then = "".join(f" AND {test}" for test in self.then(r))
        if self.entity(two):
            return f"NOT EXISTS {{ MATCH (n{one})-[{r}]->(n{two}) WHERE {EDGES.is_edge(r)}{then} }}"
        v = self.name("v")
        text = f"{EDGES.is_text(v)} AND {EDGES.text_key(v)} = k{two}"
        return f"NOT EXISTS {{ MATCH (n{one})-[{r}]->{EDGES.value(v)} WHERE {text}{then} }}"

    def step(self, step: StepPlan, found: list[int], *, all_of: bool) -> list[str]:
        """Find the node of a step; `all_of` says that a leaf is whatever it may be, and not the
        nearest few alone.
        """
        node = step.node
        if step.leaf and self.plan.few is not None and not all_of:
            return self.leaf(step, found)
        values, patterns, conditions, price = self.bond(step.bond, fresh=True)
        grown = [*found, node]
        most = self.parameter(step.most)
        own: list[str] = []
        term: str | None = None
        lines = [f"MATCH {', '.join(patterns)}"]
        named = self._named(node, values)
        if self.entity(node):
            own, term = self.terms(node)
            conditions += own
        conditions += self.distinct(node, found, values)
        if conditions:
            lines.append(f"WHERE {' AND '.join(conditions)}")
        prices = [price] if price else []
        carried = [*self.carried(found), *named]
        if not self.entity(node):
            lines.append(f"WITH {', '.join(carried)}, d + {price or 0} AS d")
            own, term = self.terms(node)
            prices = []
            if own:
                lines.append(f"WHERE {' AND '.join(own)}")
            carried = self.carried(grown)
        if term:
            prices.append(term)
        for closing in step.closing:
            _, more, tests, extra = self.bond(closing, fresh=False)
            # Names in the rows so far, before the next clause looks for its own.
            lines.append(f"WITH {', '.join(carried)}, d + {' + '.join(prices) or 0} AS d WHERE d <= {most}")
            carried = self.carried(grown)
            lines.append(f"MATCH {', '.join(more)}" + (f" WHERE {' AND '.join(tests)}" if tests else ""))
            prices = [extra] if extra else []
        lines.append(f"WITH {', '.join(carried)}, d + {' + '.join(prices) or 0} AS d WHERE d <= {most}")
        return lines + self.checks(grown, [node], step.most)

    def leaf(self, step: StepPlan, found: list[int]) -> list[str]:
        """Put the nearest few choices of an unknown leaf beside each row, as they are looked for
        here, or were ahead.
        """
        node, most = step.node, self.parameter(step.most)
        ahead = self._lists.pop(node, None)
        distinct = "".join(f" AND {one}" for one in self.distinct(node, found, []))
        grown = ", ".join(self.carried([*found, node]))
        if ahead is not None:
            x = self.name("x")
            own = ", ".join(f"{x}[{place}] AS {one}" for place, one in enumerate(self.variables([node])))
            before = ", ".join(self.carried(found))
            return [f"UNWIND {ahead} AS {x}", f"WITH {before}, {own}, d + {x}[-1] AS d WHERE d <= {most}{distinct}"]
        c = self.name("c")
        lines = [*self.choices(step, c), f"RETURN {', '.join(self.variables([node]))}, {c} }}"]
        return [*lines, f"WITH {grown}, d + {c} AS d WHERE d <= {most}{distinct}"]

    def look_ahead(self, step: StepPlan, found: list[int]) -> list[str]:
        """The nearest few choices of a leaf as a list beside each row, before other steps make many
        rows of each.
        """
        c, x = self.name("c"), f"l{step.node}"
        lines = [*self.choices(step, c), f"RETURN collect([{', '.join(self.variables([step.node]))}, {c}]) AS {x} }}"]
        before = ", ".join(self.carried(found))
        self._lists[step.node] = x
        return [*lines, f"WITH {before}, {x}, d"]

    def choices(self, step: StepPlan, c: str) -> list[str]:
        """Beside each parent the nearest few that an unknown leaf may be, with their cost; the
        clause is left open.
        """
        node = step.node
        values, patterns, conditions, price = self.bond(step.bond, fresh=True)
        conditions += self.limits(node, self.key(node) if self.entity(node) else EDGES.text_key(values[0]))
        lines = [f"CALL ({', '.join(self.variables([step.bond.near]))}) {{", f"MATCH {', '.join(patterns)}"]
        if conditions:
            lines.append(f"WHERE {' AND '.join(conditions)}")
        least = f"min({price})" if price else "count(*) * 0"
        lines.append(f"WITH {', '.join(self._named(node, values))}, {least} AS {c}")
        return [*lines, f"ORDER BY {c}, {self.order(node)} LIMIT {self.parameter(self.plan.few)}"]

    def _named(self, node: int, values: list[str]) -> list[str]:
        if self.entity(node):
            return [f"n{node}"]
        v = Bound(values[0])
        return [f"{v.key} AS k{node}", f"coalesce({v.order}, {v.text}) AS o{node}"]

    def distinct(self, node: int, found: Sequence[int], values: list[str]) -> list[str]:
        """Conditions: a node is none of those found before."""
        if not self.plan.injective:
            return []
        same = [other for other in found if self.entity(other) == self.entity(node)]
        if self.entity(node):
            return [f"n{node} <> n{other}" for other in same]
        key = EDGES.text_key(values[0]) if values else f"k{node}"
        return [f"{key} <> k{other}" for other in same]

    # -- the whole ---------------------------------------------------------------------------------

    def whole(self) -> tuple[str, dict[str, Any]]:
        """The query of the part, and its parameters.

        It gives one record, `rows`, with all rows as one list; without a limit a record a row. A row is
        `[sum, orders of the nodes, keys of the nodes]`, without the keys that are what is ordered by
        (`keys_of`).
        """
        plan = self.plan
        lines, found = self.seed(), [plan.seed]
        # What the rows of a group have in common; None while its nodes are not all found.
        group: list[int] | None = None
        ordered = False
        for place, step in enumerate(plan.steps):
            last = place + 1 == len(plan.steps)
            if plan.by and group is None and set(plan.by) <= set(found):
                group, ordered = list(found), False
                names = ", ".join(self.carried(found))
                lines += [f"WITH {names}, d AS b", f"CALL ({names}, b) {{", f"WITH {names}, b AS d"]
            for later in plan.steps[place + 1 :]:
                if later.leaf and plan.few is not None and later.bond.near == found[-1] and later.node not in self._lists:
                    lines += self.look_ahead(later, found)
            # Rows that come in their order are looked at one by one until one is whole, however
            # many a leaf may make of them.
            whole = last and group is not None and ordered and step.bond.near == found[-1]
            lines += self.step(step, found, all_of=whole)
            found.append(step.node)
            ahead = self.settled(found, group or [])
            if plan.tight and plan.limit is not None and (group is not None or not plan.by) and ahead and not ordered and not last:
                # All are equally near, so ids alone decide: rows that come in their order need not
                # all be looked at.
                lines.append(f"WITH {', '.join(self.carried(found))}, d ORDER BY {', '.join(map(self.order, ahead))}")
                ordered = True
        if group is not None:
            rest = [node for node in plan.nodes if node not in group]
            order = ", ".join([*([] if plan.tight else ["d"]), *map(self.order, rest)])
            lines += [f"RETURN {', '.join(self.variables(rest))}, d ORDER BY {order} LIMIT 1 }}"]
        return "\n".join([*lines, *self.ranked()]), self.parameters

    def settled(self, found: Sequence[int], group: Sequence[int]) -> list[int]:
        """The nodes found, as far as they are the first that solutions (of a group) are ordered by."""
        ahead = []
        for node in self.plan.nodes:
            if node in group:
                continue
            if node not in found:
                break
            ahead.append(node)
        return ahead

    def ranked(self) -> list[str]:
        """The first rows, as they are given."""
        plan = self.plan
        orders = [self.order(node) for node in plan.nodes]
        row = f"[d, {', '.join([*orders, *(self.key(node) for node in plan.nodes if self.key(node) != self.order(node))])}]"
        given = "RETURN row" if plan.limit is None else "RETURN collect(row) AS rows"
        limit = "" if plan.limit is None else f" LIMIT {self.parameter(plan.limit)}"
        if plan.by:
            groups = [self.key(node) if not self.entity(node) else f"n{node}" for node in plan.by]
            named = ", ".join(f"{group} AS g{number}" for number, group in enumerate(groups))
            return [f"WITH {named}, min({row}) AS row", f"WITH row ORDER BY row{limit}" if limit else "WITH row", given]
        # At one distance every row of the same nodes is the same.
        d = "d" if plan.tight else "min(d) AS d"
        lines = [f"WITH {'DISTINCT ' if plan.tight else ''}{', '.join(self.variables(plan.nodes))}, {d}"]
        if limit:
            lines.append(f"WITH * ORDER BY {', '.join([*([] if plan.tight else ['d']), *orders])}{limit}")
        return [*lines, f"WITH {row} AS row", given]


# -- The graph ---------------------------------------------------------------------------------------


class Neo4jContent:
    """One content of a graph (`patterns.remote.match.PatternStore`).

    `attributes` are the predicates with text values, `valued` the types of relationships that lead
    to values. `orders` says what ids are ordered by, where the server would order them otherwise;
    `long` says which text a hash stands for.
    """

    def __init__(
        self,
        store: Neo4jStore,
        attributes: Sequence[str],
        valued: frozenset[str],
        orders: Mapping[str, str],
        long: Mapping[str, str],
    ) -> None:
        self._store, self._attributes, self._valued, self._orders, self._long = store, attributes, valued, orders, long
        self._period: Period | None = None

    def at(self, period: Period | None) -> Neo4jContent:
        """The same, of the statements that hold in a period."""
        result = copy(self)
        result._period = period
        return result

    def parts(self, catalogue: Catalogue, tally: Tally) -> Parts:
        """The joins of a search, as Cypher queries."""
        return Parts(self, catalogue, tally)

    def rows(self, plan: PartPlan, catalogue: Catalogue, tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The solutions of a part: sums, and numbers of nodes."""
        writer = Writer(plan, self._store.name, self._attributes, self._valued, self._orders, self._period)
        text, parameters = writer.whole()
        tally.queries += 1
        tally.joins.append((text, parameters))
        records = self._store.connection.values(text, parameters)
        # With a limit all rows come as one list: a record for each costs the driver four times what
        # the row costs.
        found = [record[0] for record in records] if plan.limit is None else records[0][0]
        totals = np.array([row[0] for row in found], np.int64)
        if not found:
            return totals, np.empty((0, len(plan.nodes)), np.int32)
        columns = []
        for node, place in zip(plan.nodes, keys_of(plan, self._orders), strict=True):
            if plan.sorts[node] == "entity":
                columns.append([catalogue.identified(row[place]) for row in found])
            else:
                columns.append([catalogue.text(self._long.get(row[place], row[place])) for row in found])
        return totals, np.array(columns, np.int32).T

    def joined(
        self, catalogue: Catalogue, ones: Sequence[int], others: Sequence[int], forward: bool, backward: bool
    ) -> Sequence[bool]:
        """Which pairs of nodes an edge joins."""
        wanted: list[tuple[int, int, int]] = []
        for place, (one, two) in enumerate(zip(ones, others, strict=True)):
            wanted += [(place, a, b) for a, b, way in ((one, two, forward), (two, one, backward)) if way]
        found = [False] * len(ones)
        start = f"UNWIND $pairs AS p MATCH {EDGES.at('a', 'p[1]')}"
        writer = Values(self._store.name, self._period)
        then = "".join(f" AND {test}" for test in writer.then("r"))
        text = f"{EDGES.is_text('v')} AND {EDGES.text_key('v')} = p[2]{then}"
        texts = {
            True: f"{start} MATCH {EDGES.at('b', 'p[2]')} "
            f"WITH p, a, b WHERE EXISTS {{ MATCH (a)-[r]->(b) WHERE {EDGES.is_edge('r')}{then} }} RETURN p[0] AS place",
            False: f"{start} WITH p, a WHERE EXISTS {{ MATCH (a)-[r]->{EDGES.value('v')} WHERE {text} }} RETURN p[0] AS place",
        }
        for to_entity, text in texts.items():
            pairs = [
                [place, EDGES.handle(catalogue.ids[a]), EDGES.key(catalogue.ids[b] if to_entity else catalogue.key(b))]
                for place, a, b in wanted
                if a < catalogue.entities and (b < catalogue.entities) is to_entity
            ]
            if pairs:
                for row in self._store.connection.read(
                    text, {**EDGES.parameters(self._store.name), **writer.parameters, "pairs": pairs}
                ):
                    found[row["place"]] = True
        return found

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]], values: Sequence[Held] = ()) -> Snapshot:
        """All statements and stated memberships between pairs of nodes, and statements of values,
        with qualifiers and sources: one query for each kind.
        """
        entities, texts = [], []
        for one, two in pairs:
            for a, b in {(one, two), (two, one)}:
                if a < catalogue.entities and b < catalogue.entities:
                    entities.append([EDGES.handle(catalogue.ids[a]), EDGES.handle(catalogue.ids[b])])
                elif a < catalogue.entities:
                    texts.append([EDGES.handle(catalogue.ids[a]), EDGES.key(catalogue.key(b))])
        compiler = PlanCompiler(self._store.name, self._store.schema, [], EDGES)
        relation = EDGES.statement(compiler, "f", "a", "b", "relation")
        attribute = EDGES.statement(compiler, "f", "a", "v", "attribute")
        start, end = f"UNWIND $pairs AS p MATCH {EDGES.at('a', 'p[0]')}", f"MATCH {EDGES.at('b', 'p[1]')}"
        writer = Values(self._store.name, self._period)
        then = "".join(f" AND {test}" for test in writer.then("f"))
        text = f"{EDGES.is_text('v')} AND {EDGES.text_key('v')} = p[1]{then}"
        met = {number for pair in pairs for number in pair} | {number for numbers, _ in values for number in numbers}
        ids = sorted({EDGES.handle(catalogue.ids[number]) for number in met if number < catalogue.entities})
        asked: list[tuple[list[Any], str]] = [
            (
                entities,
                f"{start} {end} MATCH (a)-[f]->(b) WHERE ({EDGES.is_statement('f')}){then} RETURN 0 AS unit, {relation} AS row",
            ),
            (
                texts,
                f"{start} MATCH (a)-[f]->{EDGES.value('v')} WHERE {text} RETURN 0 AS unit, {attribute} AS row",
            ),
            (
                entities if catalogue.used[-1] else [],
                f"{start} {end} MATCH (a)-[m:{EDGES.member}]->(b) WHERE {EDGES.is_stated('m')} "
                f"RETURN -1 AS unit, {EDGES.membership('m', 'a', 'b')} AS row",
            ),
            (
                ids,
                f"UNWIND $pairs AS id MATCH {EDGES.at('e', 'id')} RETURN 0 AS unit, {{e: {EDGES.described('e')}}} AS row",
            ),
        ]
        rows: list[dict[str, Any]] = []
        # Apart, since a text of all of them takes long to plan, and most patterns need one or two.
        for wanted, text in asked:
            if wanted:
                rows += self._store.connection.read(text, {**compiler.parameters, **writer.parameters, "pairs": wanted})
        # Two maps of one name would take each other's place.
        assert GIVEN not in compiler.parameters
        for numbers, plan in values:
            handles = [EDGES.handle(catalogue.ids[number]) for number in numbers]
            text, parameters = statements_of(plan, self._store.name, attribute, handles, self._period)
            rows += self._store.connection.read(text, {**compiler.parameters, **parameters})
        return restore(rows, self._store.sources())
