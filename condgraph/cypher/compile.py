"""A plan as one parameterised Cypher query.

Each operator answers for itself: it is said by a few clauses that leave rows of an entity, of a fact, or of a value, or it is
unsupported, and then every operator of the plan that is gets named at once, before anything runs. Values, names of entities and
graphs are parameters; predicates are relationship types, which the planner needs to see, and are quoted. What the rows are is said
by `Compiled.shape`, so that the client can read them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from condgraph.cypher.layout import index_key, type_of
from condgraph.cypher.quote import quote
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Test, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.values import Quantity, Time

#: What the rows of a query are: entities, values, predicates (as relationship types), a count, or how many values satisfy a test.
Shape: TypeAlias = Literal["entities", "values", "predicates", "count", "some"]
TARGET: Final = "Neo4j"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query with its parameters, and what its rows are."""

    text: str
    parameters: dict[str, Any]
    shape: Shape
    distinct: bool = False


@dataclass(slots=True)
class Rows:
    """Clauses that leave one row for each entity of a set, bound to `variable`."""

    clauses: list[str]
    variable: str


@dataclass(slots=True)
class FactRows:
    """Clauses, then one MATCH of `pattern` under `conditions`: a row for each fact.

    `fact` is the relationship, `reached` the entity, `value` the node of an attribute's value (None for a relation), `object` the
    entity at the object end of a relation (None for an attribute).
    """

    clauses: list[str]
    pattern: str
    conditions: list[str]
    fact: str
    reached: str
    value: str | None = None
    object: str | None = None

    def render(self) -> list[str]:
        """All clauses."""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return [*self.clauses, f"MATCH {self.pattern}{where}"]


class Compiler:
    """Compiles one plan. Parameters are numbered in the order they come, so that equal plans give equal texts."""

    def __init__(self, graph: str) -> None:
        self.parameters: dict[str, Any] = {"graph": graph}
        self._names = 0

    def name(self, prefix: str) -> str:
        """A fresh variable."""
        self._names += 1
        return f"{prefix}{self._names}"

    def parameter(self, value: Any) -> str:
        """A parameter holding a value."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    # -- entities ---------------------------------------------------------------------------------------------------------

    def entities(self, node: Node) -> Rows:
        """Rows of a set of entities."""
        return _ENTITIES[type(node)](self, node)

    def every(self, node: alg.Every) -> Rows:
        """All entities of the kinds."""
        e = self.name("e")
        kinds = self.parameter([int(kind) for kind in node.kinds])
        return Rows([f"MATCH ({e}:Entity) WHERE {e}.graph = $graph AND {e}.kind IN {kinds}"], e)

    def named(self, node: alg.Named) -> Rows:
        """Entities by exact name."""
        e = self.name("e")
        return Rows([f"MATCH ({e}:Entity) WHERE {e}.graph = $graph AND {self._one_of(f'{e}.key', node.names)}"], e)

    def known(self, node: alg.Known) -> Rows:
        """Entities by id."""
        e = self.name("e")
        return Rows([f"MATCH ({e}:Entity) WHERE {e}.graph = $graph AND {e}.id IN {self.parameter(list(node.ids))}"], e)

    def _one_of(self, left: str, names: tuple[str, ...]) -> str:
        keys = [index_key(name) for name in names]
        return f"{left} = {self.parameter(keys[0])}" if len(keys) == 1 else f"{left} IN {self.parameter(keys)}"

    def members(self, node: alg.Members) -> Rows:
        """Entities in any of the concepts."""
        e = self.name("e")
        if isinstance(node.concepts, alg.Named):
            c = self.name("c")
            concept = f"({c}:Concept) WHERE {c}.graph = $graph AND {self._one_of(f'{c}.key', node.concepts.names)}"
            return Rows([f"MATCH {concept}", f"MATCH ({e}:Entity)-[:MEMBER_OF]->({c})", f"WITH DISTINCT {e}"], e)
        of = self.entities(node.concepts)
        return Rows([*of.clauses, f"MATCH ({e}:Entity)-[:MEMBER_OF]->({of.variable})", f"WITH DISTINCT {e}"], e)

    def union(self, node: alg.Union) -> Rows:
        """Entities in any part."""
        return self._together(node.parts, "UNION", "")

    def _together(self, parts: tuple[alg.Entities, ...], word: str, after: str) -> Rows:
        e = self.name("e")
        branches = []
        for part in parts:
            rows = self.entities(part)
            branches.append("\n".join([*rows.clauses, f"RETURN {rows.variable} AS {e}"]))
        body = f"\n{word}\n".join(branches)
        return Rows([f"CALL () {{\n{body}\n}}", *([after.format(e=e)] if after else [])], e)

    def intersect(self, node: alg.Intersect) -> Rows:
        """Entities in all parts: concepts by a semi-join, other sets counted."""
        filters: list[alg.Entities] = [
            part for part in node.parts if isinstance(part, alg.Members) and isinstance(part.concepts, alg.Named)
        ]
        others = [part for part in node.parts if part not in filters]
        if not others:
            others, filters = filters[:1], filters[1:]
        if len(others) > 1:
            rows = self._together(tuple(others), "UNION ALL", f"WITH {{e}}, count(*) AS times WHERE times = {len(others)}")
        else:
            rows = self.entities(others[0])
        for part in filters:
            assert isinstance(part, alg.Members)
            assert isinstance(part.concepts, alg.Named)
            c = self.name("c")
            test = f"{c}.graph = $graph AND {self._one_of(f'{c}.key', part.concepts.names)}"
            exists = f"EXISTS {{ MATCH ({rows.variable})-[:MEMBER_OF]->({c}:Concept) WHERE {test} }}"
            rows = Rows([*rows.clauses, f"WITH {rows.variable} WHERE {exists}"], rows.variable)
        return rows

    def minus(self, node: alg.Minus) -> Rows:
        """Entities of the left that are not in the right."""
        left, right, taken = self.entities(node.left), self.entities(node.right), self.name("taken")
        body = "\n".join([*right.clauses, f"RETURN collect({right.variable}) AS {taken}"])
        kept = self.name("kept")
        clauses = [
            *left.clauses,
            f"WITH collect({left.variable}) AS {kept}",
            f"CALL () {{\n{body}\n}}",
            f"UNWIND {kept} AS {left.variable}",
            f"WITH {left.variable}, {taken} WHERE NOT {left.variable} IN {taken}",
            f"WITH {left.variable}",
        ]
        return Rows(clauses, left.variable)

    def reached(self, node: alg.Reached) -> Rows:
        """The distinct ends of the facts."""
        facts = self.facts(node.facts)
        return Rows([*facts.render(), f"WITH DISTINCT {facts.reached}"], facts.reached)

    def best(self, node: alg.Best) -> Rows:
        """The entities with the best value of a key, all ties."""
        facts = self.facts(alg.Scan(node.of, (node.key,), family="attribute"))
        value, e = facts.value, facts.reached
        facts.conditions.append(f"{value}.kind IN ['quantity', 'time']")
        side = "end" if node.direction == "largest" else "start"
        rows, best, row = self.name("rows"), self.name("best"), self.name("row")
        choose = "max" if node.direction == "largest" else "min"
        return Rows(
            [
                *facts.render(),
                f"WITH {value}.kind AS kind, coalesce({value}.unit, '') AS unit, count(*) AS times, "
                f"collect([{e}, coalesce({value}.number, {value}.{side})]) AS {rows} "
                # The most frequent type and unit competes; ties: times first, then the unit by name.
                "ORDER BY times DESC, kind DESC, unit LIMIT 1",
                f"UNWIND {rows} AS {row} WITH {rows}, {choose}({row}[1]) AS {best}",
                f"UNWIND {rows} AS {row} WITH {row}, {best} WHERE {row}[1] = {best}",
                f"WITH DISTINCT {row}[0] AS {e}",
            ],
            e,
        )

    # -- facts ------------------------------------------------------------------------------------------------------------

    def facts(self, node: Node) -> FactRows:
        """Rows of facts."""
        return _FACTS[type(node)](self, node)

    def scan(self, node: alg.Scan) -> FactRows:
        """The statements of a scan, its tests added later to the same MATCH."""
        f = self.name("f")
        types = "" if node.predicates is None else ":" + "|".join(quote(type_of(name)) for name in node.predicates)
        whole = node.of is None or (isinstance(node.of, alg.Every) and node.of.source is None)
        of = None if whole or node.of is None else self.entities(node.of)
        clauses = [] if of is None else of.clauses
        conditions = [] if node.predicates is not None else [f"{f}.sid IS NOT NULL"]
        anchor = self.name("e") if of is None else of.variable
        if of is None and isinstance(node.of, alg.Every):
            conditions.append(f"{anchor}.kind IN {self.parameter([int(kind) for kind in node.of.kinds])}")
        label = ":Entity" if of is None else ""
        if node.family == "attribute":
            v = self.name("v")
            if node.predicates is not None:
                conditions = [f"{v}.graph = $graph", f"{v}.predicate = {self.parameter(node.predicates[0])}", *conditions]
            return FactRows(clauses, f"({anchor}{label})-[{f}{types}]->({v}:Value)", conditions, f, anchor, value=v)
        other = self.name("e")
        if of is None:
            conditions.append(f"{anchor}.graph = $graph")
        if node.anchor == "subject":
            pattern, thing = f"({anchor}{label})-[{f}{types}]->({other}:Entity)", other
        else:
            pattern, thing = f"({other}:Entity)-[{f}{types}]->({anchor}{label})", anchor
        reached = anchor if node.reach == node.anchor else other
        return FactRows(clauses, pattern, conditions, f, reached, object=thing)

    def where(self, node: alg.Where) -> FactRows:
        """Facts whose object satisfies the test."""
        facts = self.facts(node.facts)
        test = node.test
        if isinstance(test, alg.Among):
            assert facts.object is not None
            if isinstance(test.entities, alg.Named):
                facts.conditions.append(
                    f"{facts.object}.graph = $graph AND {self._one_of(f'{facts.object}.key', test.entities.names)}"
                )
                return facts
            of = self.entities(test.entities)
            allowed = self.name("allowed")
            body = "\n".join([*of.clauses, f"RETURN collect(DISTINCT {of.variable}) AS {allowed}"])
            facts.clauses = [f"CALL () {{\n{body}\n}}", *_carrying(facts.clauses, allowed)]
            facts.conditions.append(f"{facts.object} IN {allowed}")
            return facts
        facts.conditions.append(self.test(test, facts.value or facts.object or ""))
        return facts

    def where_qualifier(self, node: alg.WhereQualifier) -> FactRows:
        """Facts of which some qualifier satisfies the test."""
        facts = self.facts(node.facts)
        q = self.name("q")
        owner = self._owner(facts)
        test = f"{q}.name = {self.parameter(node.key)} AND {self.test(node.test, q)}"
        facts.conditions.append(f"EXISTS {{ MATCH {owner}-[:QUALIFIER]->({q}:Qualifier) WHERE {test} }}")
        return facts

    def _owner(self, facts: FactRows) -> str:
        """The node that a fact's qualifiers hang on."""
        return f"({facts.value})" if facts.value else f"(:Statement {{graph: $graph, sid: {facts.fact}.sid}})"

    # -- tests ------------------------------------------------------------------------------------------------------------

    def test(self, test: Test, node: str) -> str:
        """A condition on a `Value` or `Qualifier` node."""
        if isinstance(test, (alg.AnyOf, alg.AllOf)):
            word = " OR " if isinstance(test, alg.AnyOf) else " AND "
            return "(" + word.join(self.test(part, node) for part in test.tests) + ")"
        assert isinstance(test, alg.Compare)
        value, operator = test.value, "<>" if test.operator == "!=" else test.operator
        if isinstance(value, Time):
            return self._time(test.operator, value, node)
        if isinstance(value, Quantity):
            number, unit = self.parameter(float(value.number)), self.parameter(value.unit)
            return f"({node}.number {operator} {number} AND {node}.unit = {unit})"
        assert isinstance(value, str)
        return f"{node}.key {operator} {self.parameter(index_key(value))}"

    def _time(self, operator: str, value: Time, node: str) -> str:
        start, end = self.parameter(value.start), self.parameter(value.end)
        return {
            "=": f"({node}.start >= {start} AND {node}.start < {end} AND {node}.end <= {end})",
            "!=": f"({node}.end <= {start} OR {node}.start >= {end})",
            "<": f"({node}.start < {start} AND {node}.end <= {start})",
            ">": f"{node}.start >= {end}",
            "<=": f"({node}.start < {end} AND {node}.end <= {end})",
            ">=": f"{node}.start >= {start}",
        }[operator]


def _carrying(clauses: list[str], variable: str) -> list[str]:
    """The same clauses with one more variable handed on by every WITH."""
    return [
        clause.replace("WITH DISTINCT ", f"WITH DISTINCT {variable}, ", 1)
        if clause.startswith("WITH DISTINCT ")
        else clause.replace("WITH ", f"WITH {variable}, ", 1)
        if clause.startswith("WITH ")
        else clause
        for clause in clauses
    ]


def compile_plan(plan: Node, graph: str) -> Compiled:
    """The query of a plan; raises `UnsupportedError` naming every operator that has no Cypher yet."""
    missing = sorted({type(node).__name__ for node in postorder(plan) if not supports(node)})
    if missing:
        raise UnsupportedError(TARGET, missing)
    compiler = Compiler(graph)
    distinct = isinstance(plan, alg.Distinct)
    lines, shape = _result(compiler, plan.values if isinstance(plan, alg.Distinct) else plan)
    return Compiled("\n".join(lines), compiler.parameters, shape, distinct)


def _result(compiler: Compiler, plan: Node) -> tuple[list[str], Shape]:
    """All clauses with the RETURN, and what its rows are."""
    if isinstance(plan, alg.Facts):
        plan = alg.Reached(plan)
    if isinstance(plan, alg.Names):
        plan = plan.entities
    if isinstance(plan, alg.Entities):
        rows = compiler.entities(plan)
        return [*rows.clauses, f"RETURN DISTINCT {rows.variable}.id AS id, {rows.variable}.name AS name"], "entities"
    if isinstance(plan, alg.Count):
        assert isinstance(plan.of, alg.Entities)
        rows = compiler.entities(plan.of)
        return [*rows.clauses, f"RETURN count(DISTINCT {rows.variable}) AS count"], "count"
    if isinstance(plan, alg.Some):
        values = plan.values.values if isinstance(plan.values, alg.Distinct) else plan.values
        clauses, node = _value_rows(compiler, values)
        test = compiler.test(plan.test, node)
        return [*clauses, f"RETURN count({node}) AS total, count(CASE WHEN {test} THEN 1 END) AS satisfied"], "some"
    if isinstance(plan, alg.Predicates):
        facts = compiler.facts(plan.facts)
        return [*facts.render(), f"RETURN DISTINCT type({facts.fact}) AS type"], "predicates"
    clauses, node = _value_rows(compiler, plan)
    entity = compiler.name("e")
    fields = ", ".join(f".{name}" for name in ("kind", "text", "number", "exact", "unit", "start", "end", "precision", "raw"))
    return [
        *clauses,
        f"OPTIONAL MATCH ({node})-[:IS]->({entity}:Entity)",
        f"RETURN {node} {{{fields}}} AS value, {entity}.id AS id, {entity}.name AS name",
    ], "values"


def compile_sizes(nodes: list[Node], graph: str) -> Compiled:
    """One query for how many results each operator gives (`step`, `size`), with the names or texts of the first (`sample`)."""
    compiler = Compiler(graph)
    parts = []
    for i, node in enumerate(nodes):
        if isinstance(node, (alg.Names, alg.Facts)):
            node = node.entities if isinstance(node, alg.Names) else alg.Reached(node)
        if isinstance(node, alg.Entities):
            rows = compiler.entities(node)
            one, shown, clauses = rows.variable, f"{rows.variable}.name", rows.clauses
        elif isinstance(node, (alg.Distinct, alg.Objects, alg.Qualifiers)):
            inner = node.values if isinstance(node, alg.Distinct) else node
            if isinstance(inner, alg.Predicates):
                facts = compiler.facts(inner.facts)
                clauses, one, shown = [*facts.render(), f"WITH DISTINCT type({facts.fact}) AS name"], "name", "name"
            else:
                clauses, one = _value_rows(compiler, inner)
                shown = f"coalesce({one}.text, toString({one}.number), '')"
        else:
            continue
        parts.append(
            "\n".join([*clauses, f"RETURN {i} AS step, count(DISTINCT {one}) AS size, collect(DISTINCT {shown})[0..3] AS sample"])
        )
    return Compiled("\nUNION ALL\n".join(parts) or "RETURN -1 AS step, 0 AS size, [] AS sample", compiler.parameters, "values")


def _value_rows(compiler: Compiler, values: Node) -> tuple[list[str], str]:
    """Clauses that leave one row a value, and the node that holds it."""
    if isinstance(values, alg.Objects):
        facts = compiler.facts(values.facts)
        assert facts.value is not None
        return facts.render(), facts.value
    assert isinstance(values, alg.Qualifiers)
    facts = compiler.facts(values.facts)
    q = compiler.name("q")
    owner = compiler._owner(facts)
    return [*facts.render(), f"MATCH {owner}-[:QUALIFIER]->({q}:Qualifier) WHERE {q}.name = {compiler.parameter(values.key)}"], q


_ENTITIES: Final[dict[type[Node], Callable[[Compiler, Any], Rows]]] = {
    alg.Every: Compiler.every,
    alg.Named: Compiler.named,
    alg.Known: Compiler.known,
    alg.Members: Compiler.members,
    alg.Union: Compiler.union,
    alg.Intersect: Compiler.intersect,
    alg.Minus: Compiler.minus,
    alg.Reached: Compiler.reached,
    alg.Best: Compiler.best,
}
_FACTS: Final[dict[type[Node], Callable[[Compiler, Any], FactRows]]] = {
    alg.Scan: Compiler.scan,
    alg.Where: Compiler.where,
    alg.WhereQualifier: Compiler.where_qualifier,
}
_RESULTS: Final = (alg.Names, alg.Objects, alg.Qualifiers, alg.Predicates, alg.Distinct, alg.Count, alg.Some)


def supports(node: Node) -> bool:
    """Whether one operator, with its parameters, has Cypher."""
    if isinstance(node, alg.Scan):
        return node.family != "any" and node.source is None and (node.predicates is None or len(node.predicates) == 1)
    if isinstance(node, alg.Every):
        return node.source is None
    if isinstance(node, alg.Count):
        return isinstance(node.of, alg.Entities)
    if isinstance(node, alg.Qualifiers):
        return node.key is not None
    return type(node) in _ENTITIES or type(node) in _FACTS or isinstance(node, _RESULTS)
