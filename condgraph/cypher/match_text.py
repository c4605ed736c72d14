"""A connected part of a pattern as one Cypher query: the join under its bound, ranked by the server.

Rows grow by one node of the pattern a step, and go as soon as they are above what the bound leaves (Eq. 11). Candidates, prices and
bounds are parameters; predicates are relationship types, which the planner has to see, unless there are very many. A node that is a
text stands as its index key `k3` and its order `o3`, since every attribute has a `Value` node of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from condgraph.cypher.layout import index_key, text_order, type_of
from condgraph.cypher.quote import quote
from condgraph.engine.search.remote import BondPlan, EdgePlan, PartPlan, StepPlan

#: More predicates than these are told from others by their prices, and not by the pattern.
MOST_TYPES: Final = 48
_MEMBER: Final = "MEMBER_OF"


def render(plan: PartPlan, graph: str, attributes: Sequence[str], orders: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The query of a part, and its parameters. A row is `[sum, orders of the nodes, keys of the nodes]`.

    `attributes` are all predicates with text values. `orders` says for ids that the server would put in another order what they
    are ordered by.
    """
    return _Writer(plan, graph, attributes, orders).whole()


class _Writer:
    def __init__(self, plan: PartPlan, graph: str, attributes: Sequence[str], orders: Mapping[str, str]) -> None:
        self.plan, self.attributes, self.orders = plan, attributes, orders
        self.parameters: dict[str, Any] = {"graph": graph}
        self._names = 0

    def parameter(self, value: Any) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}_{self._names}"

    # -- nodes ------------------------------------------------------------------------------------------------------------

    def entity(self, node: int) -> bool:
        return self.plan.sorts[node] == "entity"

    def variables(self, nodes: Sequence[int]) -> list[str]:
        return [name for node in nodes for name in ((f"n{node}",) if self.entity(node) else (f"k{node}", f"o{node}"))]

    def key(self, node: int) -> str:
        return f"n{node}.id" if self.entity(node) else f"k{node}"

    def order(self, node: int) -> str:
        if not self.entity(node):
            return f"o{node}"
        if not self.orders:
            return f"n{node}.id"
        self.parameters.setdefault("orders", dict(self.orders))
        return f"coalesce($orders[n{node}.id], n{node}.id)"

    def terms(self, node: int) -> tuple[list[str], str | None]:
        """Conditions on a node that was found, by its key, and its term (None: nothing)."""
        key = self.key(node)
        candidates = self.plan.candidates.get(node)
        if candidates is None:
            excluded = self.plan.excluded.get(node)
            return ([f"NOT {key} IN {self.parameter([self.stored(node, one) for one in excluded])}"] if excluded else []), None
        if len(candidates) == 1:
            one, cost = candidates[0]
            return [f"{key} = {self.parameter(self.stored(node, one))}"], self.parameter(cost) if cost else None
        if len({cost for _, cost in candidates}) == 1 and len(candidates) <= 16:
            keys = self.parameter([self.stored(node, one) for one, _ in candidates])
            return [f"{key} IN {keys}"], self.parameter(candidates[0][1]) if candidates[0][1] else None
        prices = self.parameter({self.stored(node, one): cost for one, cost in candidates})
        return [f"{prices}[{key}] IS NOT NULL"], f"{prices}[{key}]"

    def stored(self, node: int, key: str) -> str:
        return key if self.entity(node) else index_key(key)

    # -- edges ------------------------------------------------------------------------------------------------------------

    def edge(self, plan: EdgePlan, r: str) -> tuple[str, list[str], str | None]:
        """What stands in the brackets, conditions, and the price (None: nothing)."""
        types = [] if plan.prices is None else [type_of(name) for name in plan.prices]
        if plan.prices is None:
            member = f" OR (type({r}) = '{_MEMBER}' AND size({r}.sources) > 0)" if plan.membership is not None else ""
            return r, [f"({r}.sid IS NOT NULL{member})"], None
        prices = {type_of(name): cost for name, cost in plan.prices.items()}
        conditions = []
        if plan.membership is not None:
            prices[_MEMBER] = plan.membership
            types.append(_MEMBER)
            conditions.append(f"size({r}.sources) > 0" if len(types) == 1 else f"({r}.sid IS NOT NULL OR size({r}.sources) > 0)")
        written = f"{r}:" + "|".join(quote(one) for one in types) if len(types) <= MOST_TYPES else r
        costs = set(prices.values())
        if len(costs) == 1 and len(types) <= MOST_TYPES:
            cost = costs.pop()
            return written, conditions, self.parameter(cost) if cost else None
        table = self.parameter(prices)
        if len(types) > MOST_TYPES:
            conditions = [f"{table}[type({r})] IS NOT NULL"]
            conditions.append(f"({r}.sid IS NOT NULL" + (f" OR size({r}.sources) > 0)" if _MEMBER in prices else ")"))
        return written, conditions, f"{table}[type({r})]"

    def bond(self, plan: BondPlan, *, fresh: bool) -> tuple[list[str], list[str], list[str], str | None]:
        """Clauses before, patterns of one MATCH, conditions, and the price. `fresh` says that the far end is found by it.

        In one MATCH, edges take different relationships. Texts are met through values of their own.
        """
        before, patterns, conditions, prices = [], [], [], []
        value = ""
        for number, edge in enumerate(plan.edges):
            inside, tests, price = self.edge(edge, self.name("r"))
            conditions += tests
            if price is not None:
                prices.append(price)
            left, right = ("<-" if edge.way == "in" else "-"), ("->" if edge.way == "out" else "-")
            if self.entity(plan.near) and self.entity(plan.far):
                far = f"(n{plan.far}:Entity)" if fresh and not number else f"(n{plan.far})"
                patterns.append(f"(n{plan.near}){left}[{inside}]{right}{far}")
                continue
            v = self.name("v")
            one, text = (plan.near, plan.far) if self.entity(plan.near) else (plan.far, plan.near)
            label = ":Entity" if fresh and one == plan.far and not number else ""
            patterns.append(f"(n{one}{label})-[{inside}]->({v}:Value)")
            conditions.append(f"{v}.kind = 'text'")
            if text == plan.far and fresh and not number:
                value = v
            elif text == plan.far and fresh:
                conditions.append(f"{v}.key = {value}.key")
            else:
                conditions.append(f"{v}.key = k{text}")
                if text == plan.near:
                    names = list(self.attributes if edge.prices is None else edge.prices)
                    conditions.append(f"{v}.graph = $graph AND {v}.predicate IN {self.parameter(names)}")
        if value:
            before.append(value)
        return before, patterns, conditions, " + ".join(prices) or None

    # -- steps ------------------------------------------------------------------------------------------------------------

    def seed(self) -> list[str]:
        plan, node = self.plan, self.plan.seed
        candidates = plan.candidates.get(node)
        if candidates is None:
            conditions, _ = self.terms(node)
            lines = [f"MATCH (n{node}:Entity)", f"WHERE {' AND '.join([f'n{node}.graph = $graph', *conditions])}"]
            lines.append(f"WITH n{node}, 0 AS d")
        elif self.entity(node) and len(candidates) == 1:
            ident, cost = candidates[0]
            lines = [f"MATCH (n{node}:Entity {{graph: $graph, id: {self.parameter(ident)}}})"]
            lines.append(f"WITH n{node}, {self.parameter(cost)} AS d")
        elif self.entity(node):
            rows = self.parameter([list(one) for one in candidates])
            lines = [f"UNWIND {rows} AS c MATCH (n{node}:Entity {{graph: $graph, id: c[0]}})", f"WITH n{node}, c[1] AS d"]
        else:
            rows = self.parameter([[index_key(text), text_order(text), cost] for text, cost in candidates])
            lines = [f"UNWIND {rows} AS c WITH c[0] AS k{node}, c[1] AS o{node}, c[2] AS d"]
        return lines + self.checks([node], [node], plan.most)

    def checks(self, found: Sequence[int], fresh: Sequence[int], most: int) -> list[str]:
        """Loops at nodes just found, and edges that must not be."""
        lines = []
        carried = ", ".join(self.variables(found))
        for node in fresh:
            loop = self.plan.loops.get(node)
            if loop is not None:
                _, patterns, conditions, price = self.bond(loop, fresh=False)
                where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
                lines.append(f"MATCH {', '.join(patterns)}{where}")
                lines.append(f"WITH {carried}, d + {price or 0} AS d WHERE d <= {self.parameter(most)}")
        tests = []
        for one, two, forward, backward in self.plan.apart:
            if {one, two} <= set(found) and {one, two} & set(fresh):
                tests += [
                    self.unjoined(a, b) for a, b, way in ((one, two, forward), (two, one, backward)) if way and self.entity(a)
                ]
        if tests:
            lines.append(f"WITH {carried}, d WHERE {' AND '.join(tests)}")
        return lines

    def unjoined(self, one: int, two: int) -> str:
        r = self.name("r")
        if self.entity(two):
            return f"NOT EXISTS {{ MATCH (n{one})-[{r}]->(n{two}) WHERE {is_edge(r)} }}"
        v = self.name("v")
        return f"NOT EXISTS {{ MATCH (n{one})-[{r}]->({v}:Value) WHERE {v}.kind = 'text' AND {v}.key = k{two} }}"

    def step(self, step: StepPlan, found: list[int]) -> list[str]:
        node = step.node
        values, patterns, conditions, price = self.bond(step.bond, fresh=True)
        grown = [*found, node]
        most = self.parameter(step.most)
        own: list[str] = []
        term: str | None = None
        if not step.leaf or self.plan.few is None:
            lines = [f"MATCH {', '.join(patterns)}"]
            named = self._named(node, values)
            if self.entity(node):
                own, term = self.terms(node)
                conditions += own
            conditions += self.distinct(node, found, values)
            if conditions:
                lines.append(f"WHERE {' AND '.join(conditions)}")
            prices = [price] if price else []
            carried = [*self.variables(found), *named]
            if not self.entity(node):
                lines.append(f"WITH {', '.join(carried)}, d + {price or 0} AS d")
                own, term = self.terms(node)
                prices = []
                if own:
                    lines.append(f"WHERE {' AND '.join(own)}")
                carried = self.variables(grown)
            if term:
                prices.append(term)
            for closing in step.closing:
                _, more, tests, extra = self.bond(closing, fresh=False)
                # Names in the rows so far, before the next clause looks for its own.
                lines.append(f"WITH {', '.join(carried)}, d + {' + '.join(prices) or 0} AS d WHERE d <= {most}")
                carried = self.variables(grown)
                lines.append(f"MATCH {', '.join(more)}" + (f" WHERE {' AND '.join(tests)}" if tests else ""))
                prices = [extra] if extra else []
            lines.append(f"WITH {', '.join(carried)}, d + {' + '.join(prices) or 0} AS d WHERE d <= {most}")
            return lines + self.checks(grown, [node], step.most)
        # An unknown leaf: the nearest few beside each parent are all that the first solutions can have.
        named = self._named(node, values)
        c = self.name("c")
        excluded = self.plan.excluded.get(node)
        key = f"n{node}.id" if self.entity(node) else f"{values[0]}.key"
        if excluded:
            conditions.append(f"NOT {key} IN {self.parameter([self.stored(node, one) for one in excluded])}")
        near = self.variables([step.bond.near])
        lines = [f"CALL ({', '.join(near)}) {{", f"MATCH {', '.join(patterns)}"]
        if conditions:
            lines.append(f"WHERE {' AND '.join(conditions)}")
        lines.append(f"WITH {', '.join(named)}, {'min(' + price + ')' if price else 'count(*) * 0'} AS {c}")
        lines.append(f"ORDER BY {c}, {self.order(node)} LIMIT {self.parameter(self.plan.few)}")
        lines.append(f"RETURN {', '.join(self.variables([node]))}, {c} }}")
        distinct = self.distinct(node, found, [])
        lines.append(
            f"WITH {', '.join(self.variables(grown))}, d + {c} AS d WHERE d <= {most}" + "".join(f" AND {one}" for one in distinct)
        )
        return lines

    def _named(self, node: int, values: list[str]) -> list[str]:
        if self.entity(node):
            return [f"n{node}"]
        v = values[0]
        return [f"{v}.key AS k{node}", f"coalesce({v}.order, {v}.text) AS o{node}"]

    def distinct(self, node: int, found: Sequence[int], values: list[str]) -> list[str]:
        if not self.plan.injective:
            return []
        same = [other for other in found if self.entity(other) == self.entity(node)]
        if self.entity(node):
            return [f"n{node} <> n{other}" for other in same]
        key = f"{values[0]}.key" if values else f"k{node}"
        return [f"{key} <> k{other}" for other in same]

    # -- the whole --------------------------------------------------------------------------------------------------------

    def settled(self, found: Sequence[int]) -> list[int]:
        """The nodes found, as far as they are the first that solutions are ordered by."""
        ahead = []
        for node in self.plan.nodes:
            if node not in found:
                break
            ahead.append(node)
        return ahead

    def whole(self) -> tuple[str, dict[str, Any]]:
        plan = self.plan
        lines, found = self.seed(), [plan.seed]
        ordered = 0
        for step in plan.steps:
            lines += self.step(step, found)
            found.append(step.node)
            ahead = self.settled(found)
            if plan.tight and plan.limit is not None and not plan.by and len(ahead) > ordered == 0:
                # All are equally near, so ids alone decide: rows that come in their order need not all be looked at.
                lines.append(f"WITH {', '.join(self.variables(found))}, d ORDER BY {', '.join(map(self.order, ahead))}")
                ordered = len(ahead)
        orders = [self.order(node) for node in plan.nodes]
        keys = [self.key(node) for node in plan.nodes]
        limit = "" if plan.limit is None else f" LIMIT {self.parameter(plan.limit)}"
        if plan.by:
            groups = [self.key(node) if not self.entity(node) else f"n{node}" for node in plan.by]
            named = ", ".join(f"{group} AS g{number}" for number, group in enumerate(groups))
            lines.append(f"WITH {named}, min([d, {', '.join([*orders, *keys])}]) AS best")
            lines.append(f"RETURN best AS row ORDER BY best{limit}")
        elif plan.tight:
            lines.append(f"WITH DISTINCT {', '.join(self.variables(plan.nodes))}")
            if limit:
                lines.append(f"WITH * ORDER BY {', '.join(orders)}{limit}")
            lines.append(f"RETURN [{self.parameter(plan.bound)}, {', '.join(keys)}] AS row")
        else:
            lines.append(f"WITH {', '.join(self.variables(plan.nodes))}, min(d) AS d")
            if limit:
                lines.append(f"WITH * ORDER BY d, {', '.join(orders)}{limit}")
            lines.append(f"RETURN [d, {', '.join(keys)}] AS row")
        return "\n".join(lines), self.parameters


def is_edge(r: str) -> str:
    """A condition: a statement, or a membership as it was stated."""
    return f"({r}.sid IS NOT NULL OR (type({r}) = '{_MEMBER}' AND size({r}.sources) > 0))"
