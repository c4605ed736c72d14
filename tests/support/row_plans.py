"""Random plans over rows that bind several variables, for the graph of `tests.support.operators`: there are few names
and variables, so that they often meet; invalid plans (a variable bound twice) are not generated.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.facts import Ref
from condgraph.engine.values import Quantity, Time
from tests.support.world import ODD

V = alg.Variable
PREDICATES = ("knows", "through", "height", "born", "count", "since", "note", "name", "IS", ODD, "amount", "who")
RELATIONS = ("knows", "through", "name", "IS", "who")
KEYS = ("since", "through", "point in time", "start time", "end time")
SETS: tuple[Any, ...] = (
    alg.ByName(("Ann",)), alg.ByName(("Bo",)), alg.ById(("a", "b2")), alg.Members(alg.ByName(("person",))),
    alg.Reached(alg.Scan(alg.ByName(("Ann",)), ("knows",), "subject", "object", "relation")), alg.AllEntities(),
)  # fmt: skip
CONDITIONS: tuple[Any, ...] = (
    alg.Compare(">", Quantity(1.8, "metre")), alg.Compare("=", "Bo"), alg.Compare("<", Time.year(1985)),
    alg.Compare("!=", Quantity(3)),
    alg.AnyOf((alg.Compare("=", Quantity(20)), alg.Compare("=", "short"))), alg.Not(alg.Compare("=", "Ann")),
    alg.Compare("=", Time.year(1999)), alg.Among(alg.ByName(("Bo",))),
)  # fmt: skip
TERMS: tuple[Any, ...] = ("short", "Bo", Quantity(20), Quantity(3), Time.year(1999), Ref("a"), Ref("b2"), Ref("nowhere"), None)
ENTITIES = ("x", "y", "z")
X, Y, Z, W = map(V, "xyzw")
KNOWS = alg.Pattern((alg.StatementPattern(X, ("knows",), Y),))
HEIGHTS = alg.Pattern((alg.StatementPattern(Y, ("height",), W, condition=CONDITIONS[0]),))
#: A plan for each operator, by its description.
EXAMPLES: dict[str, Node] = {
    "Pattern": KNOWS,
    "Pattern of two statements with the same value": alg.Pattern(
        (alg.StatementPattern(X, ("height",), W), alg.StatementPattern(Y, ("height",), W)), different=True
    ),
    "Pattern with qualifiers": alg.Pattern(
        (
            alg.StatementPattern(
                alg.ByName(("Ann",)), V("p"), Y, qualifiers=(alg.QualifierPattern(V("k"), W), alg.QualifierPattern("since"))
            ),
        )
    ),
    "Pattern of both directions": alg.Pattern((alg.StatementPattern(X, ("knows",), Y, undirected=True),)),
    "Pattern with memberships": alg.Pattern((), (alg.MembershipPattern(X, Z), alg.MembershipPattern(X, alg.ByName(("person",))))),
    "Pattern with a statement": alg.Pattern((alg.StatementPattern(X, ("knows",), Y, statement=V("s")),)),
    "Path": alg.Path(KNOWS, Y, (alg.Hop(("through",)),), Z, 1, 3),
    "Path of trails": alg.Path(None, X, (alg.Hop(("through",)),), Z, 1, 3, "trails"),
    "EntityRows": alg.EntityRows("x", alg.ByName(("Bo",))),
    "Rows": alg.Rows(("x", "w"), (("red", Time.year(1999)), (None, "blue"))),
    "Join": alg.Join(KNOWS, HEIGHTS),
    "LeftJoin": alg.LeftJoin(KNOWS, HEIGHTS),
    "LeftJoin of what may be unbound": alg.LeftJoin(alg.LeftJoin(KNOWS, HEIGHTS), alg.Rows(("w",), (("red",),))),
    "SemiJoin": alg.SemiJoin(KNOWS, HEIGHTS),
    "AntiJoin": alg.AntiJoin(KNOWS, HEIGHTS),
    "MarkJoin": alg.MarkJoin(KNOWS, HEIGHTS, "tall"),
    "MinusRows": alg.MinusRows(KNOWS, HEIGHTS),
    "UnionAll": alg.UnionAll((KNOWS, HEIGHTS)),
    "Filter": alg.Filter(HEIGHTS, ex.Comparison(">", ex.Variable("w"), ex.Constant(Quantity(1, "metre")))),
    "WhereRows": alg.WhereRows(KNOWS, "y", CONDITIONS[1]),
    "BoundRows": alg.BoundRows(alg.LeftJoin(KNOWS, HEIGHTS), ("w",)),
    "Extend": alg.Extend(KNOWS, "h", ex.Property(ex.Variable("x"), "height")),
    "Unwind": alg.Unwind(KNOWS, "n", ex.Constant([1, 2])),
    "Project": alg.Project(KNOWS, (("x", "y"), ("y", "x"))),
    "DistinctRows": alg.DistinctRows(alg.Project(KNOWS, (("x", "x"),))),
    "GroupRows": alg.GroupRows(KNOWS, ("x",), (alg.RowAggregate("n", "count"), alg.RowAggregate("m", "count", "y", True))),
    "GroupRows with a list": alg.GroupRows(KNOWS, ("x",), (alg.RowAggregate("all", "list", "y"),)),
    "OrderRows": alg.OrderRows(KNOWS, (alg.RowOrder("y"),)),
    "SliceRows": alg.SliceRows(KNOWS, 1, 2),
    "EntitiesOf": alg.EntitiesOf(KNOWS, "y"),
    "FactsOf": alg.FactsOf(alg.Pattern((alg.StatementPattern(X, ("knows",), Y, statement=V("s")),)), "s", "object"),
}


@dataclass(frozen=True)
class Words:
    """The words of plans."""

    predicates: tuple[str, ...] = PREDICATES
    relations: tuple[str, ...] = RELATIONS
    keys: tuple[str, ...] = KEYS
    sets: tuple[Any, ...] = SETS
    conditions: tuple[Any, ...] = CONDITIONS
    terms: tuple[Any, ...] = TERMS
    concept: str = "person"
    attribute: str = "height"


class Maker:
    """Generates plans from a seed and the words of a graph."""

    def __init__(self, seed: int, words: Words = Words()) -> None:
        self.random = Random(seed)
        self._words = words

    def _some(self, chance: float) -> bool:
        return self.random.random() < chance

    def _place(self, chance: float = 0.8) -> Any:
        if self._some(chance):
            return V(self.random.choice(ENTITIES))
        return self.random.choice((*self._words.sets, None))

    def _qualifier(self) -> alg.QualifierPattern:
        key: Any = V("k") if self._some(0.2) else self.random.choice(self._words.keys)
        value: Any = (
            V(self.random.choice(("o", "w"))) if self._some(0.6) else self.random.choice((None, None, *self._words.sets[:3]))
        )
        condition = self.random.choice(self._words.conditions) if self._some(0.15) else None
        return alg.QualifierPattern(key, value, condition)

    def _statement(self) -> alg.StatementPattern:
        predicate: Any = (self.random.choice(self._words.predicates),)
        if self._some(0.25):
            predicate = self.random.choice((V("p"), None, tuple(self.random.sample(self._words.predicates, 2))))
        undirected = self._some(0.1)
        ends = self._place(), V(self.random.choice((*ENTITIES, "o", "w"))) if self._some(0.8) else self._place(0.0)
        condition = self.random.choice(self._words.conditions) if self._some(0.15) else None
        return alg.StatementPattern(
            ends[0],
            predicate,
            ends[1],
            condition=None if undirected else condition,
            statement=V("s") if self._some(0.1) else None,
            qualifiers=tuple(self._qualifier() for _ in range(self.random.choice((0, 0, 0, 1)))),
            family=self.random.choice(("any", "any", "relation", "attribute")),
            undirected=undirected,
            among=alg.Scan(self._words.sets[0], None) if self._some(0.05) else None,
        )

    def pattern(self) -> alg.Pattern:
        """Return a basic pattern."""
        statements = tuple(self._statement() for _ in range(self.random.choice((0, 1, 1, 1, 2, 2, 3))))
        memberships = tuple(
            alg.MembershipPattern(self._place(), self.random.choice((V("z"), alg.ByName((self._words.concept,)))), self._some(0.3))
            for _ in range(self.random.choice((0, 0, 0, 1)))
        )
        return alg.Pattern(statements, memberships, self._some(0.3))

    def _leaf(self) -> alg.Solutions:
        kind = self.random.choice(("pattern",) * 8 + ("path", "rows", "entities"))
        if kind == "entities":
            return alg.EntityRows(self.random.choice(ENTITIES), self.random.choice(self._words.sets))
        if kind == "rows":
            names = tuple(self.random.sample((*ENTITIES, "o", "w"), self.random.choice((1, 2))))
            terms = self._words.terms if self._some(0.5) else self._words.terms[:5]
            return alg.Rows(
                names, tuple(tuple(self.random.choice(terms) for _ in names) for _ in range(self.random.choice((1, 3))))
            )
        if kind == "path":
            directions: Any = ("forward", "backward", "either") if self._some(0.3) else ("forward",)
            hops = tuple(alg.Hop((name,), self.random.choice(directions)) for name in self.random.sample(self._words.relations, 2))
            least, most = self.random.choice(((1, None), (0, None), (1, 2), (0, 1), (2, 3), (0, 0)))
            input_rows = self.pattern() if self._some(0.4) else None
            mode: Any = "ends" if self._some(0.8) else self.random.choice(("trails", "shortest", "all shortest"))
            ends = V("x"), V("y") if self._some(0.8) else self.random.choice(self._words.sets)
            return alg.Path(input_rows, ends[0], hops, ends[1], least, most, mode)
        return self.pattern()

    def rows(self, depth: int) -> alg.Solutions:
        """Return an operator over rows."""
        if depth == 0:
            return self._leaf()
        kind = self.random.choice(
            ("leaf", "join", "join", "left", "left", "semi", "anti", "mark", "minus", "union", "where", "bound", "project",
             "distinct", "group", "slice", "order", "filter", "extend")
        )  # fmt: skip
        if kind == "leaf":
            return self._leaf()
        input_rows = self.rows(depth - 1)
        pairs: dict[str, Any] = {
            "join": alg.Join, "left": alg.LeftJoin, "semi": alg.SemiJoin, "anti": alg.AntiJoin, "minus": alg.MinusRows
        }  # fmt: skip
        if kind in pairs:
            return pairs[kind](input_rows, self.rows(depth - 1))  # type: ignore[no-any-return]
        if kind == "union":
            return alg.UnionAll((input_rows, self.rows(depth - 1)))
        names = input_rows.variables
        if not names:
            return input_rows
        name = self.random.choice(names)
        new_name = f"n{self.random.randrange(1_000)}"
        if kind == "mark":
            return alg.MarkJoin(input_rows, self.rows(depth - 1), new_name)
        if kind == "where":
            return alg.WhereRows(input_rows, name, self.random.choice(self._words.conditions))
        if kind == "bound":
            return alg.BoundRows(input_rows, (name,))
        if kind == "project":
            chosen = self.random.sample(names, self.random.randint(1, len(names)))
            new_names = list(chosen)
            if self._some(0.4):
                self.random.shuffle(new_names)
            return alg.Project(input_rows, tuple(zip(new_names, chosen, strict=True)))
        if kind == "distinct":
            return alg.DistinctRows(input_rows)
        if kind == "group":
            keys = tuple(self.random.sample(names, self.random.choice((0, 1, 1))))
            function: Any = self.random.choice(("count", "count", "count", "list", "min", "any"))
            counted = None if function == "count" and self._some(0.5) else self.random.choice(names)
            return alg.GroupRows(input_rows, keys, (alg.RowAggregate(new_name, function, counted, self._some(0.4)),))
        if kind == "order":
            return alg.OrderRows(input_rows, (alg.RowOrder(name, self._some(0.5), self._some(0.5)),))
        if kind == "slice":
            return alg.SliceRows(input_rows, self.random.choice((0, 0, 1)), self.random.choice((1, 3, 10)))
        if kind == "filter":
            return alg.Filter(input_rows, self._test(names))
        return alg.Extend(
            input_rows,
            new_name,
            self.random.choice((ex.Property(ex.Variable(name), self._words.attribute), ex.IsNull(ex.Variable(name)))),
        )

    def _test(self, names: tuple[str, ...]) -> Any:
        first, second = (ex.Variable(self.random.choice(names)) for _ in range(2))
        return self.random.choice((ex.Comparison("=", first, second), ex.Not(ex.IsNull(first)), ex.IsNull(first)))

    def plan(self) -> alg.Solutions:
        """Return a complete plan."""
        return self.rows(self.random.choice((1, 1, 2, 2, 3)))
