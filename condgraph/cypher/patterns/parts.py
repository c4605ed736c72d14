"""The nodes and edges of a pattern as parts of Cypher: what they are called, what they may be, and
what they cost.

Candidates, prices and bounds are parameters; predicates are relationship types, which the planner
has to see, unless there are very many. A node that is a text stands as its index key `k3` and its
order `o3`, since every attribute has a `Value` node of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from condgraph.cypher.layout.edges import EDGES
from condgraph.cypher.layout.quote import quote
from condgraph.cypher.patterns.values import MOST_TYPES, Values
from condgraph.patterns.remote.parts import BondPlan, EdgePlan, PartPlan


class Parts(Values):
    """The parts of the text of one plan, and its parameters."""

    def __init__(
        self, plan: PartPlan, graph: str, attributes: Sequence[str], valued: Collection[str], orders: Mapping[str, str]
    ) -> None:
        super().__init__(graph)
        self.plan, self.attributes, self.value_types, self.orders = plan, attributes, valued, orders

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
            conditions += tests
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
