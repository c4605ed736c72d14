"""What an answer warns of, found out when somebody asks: values that a test could not compare,
counted by the server.

Most questions need no query for it: the schema says which types a predicate has. What aggregates
warn of is found by running the plan on the statements it rests on (`compile_witness`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from condgraph.cypher.compile.compiler import Compiler
from condgraph.cypher.compile.plan import lowered
from condgraph.cypher.compile.sets import written
from condgraph.cypher.compile.values import PlanCompiler, qualified
from condgraph.cypher.layout.base import KINDS, Layout
from condgraph.cypher.layout.paths import CONDGRAPH
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, postorder
from condgraph.engine.execute.conditions import compared_kinds
from condgraph.engine.execute.left_out import LeftOut, left_out
from condgraph.engine.facts import Entity
from condgraph.engine.kinds import all_comparable, condition_of, kinds_tested, may_warn
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind

if TYPE_CHECKING:
    from condgraph.cypher.compile.plan import Compiled
    from condgraph.engine.execute import Run
    from condgraph.engine.stored_schema import StoredSchema


def tested(plan: Node, schema: StoredSchema) -> list[Node]:
    """The operators whose tests may meet values that they cannot compare, but for those that the
    client works out.
    """
    beyond = lowered(plan)
    found: list[Node] = []
    for node in postorder(plan):
        tests = node.facets.tests
        if tests != "nothing" and not (tests == "values" and id(node.inputs()[0]) in beyond):
            wanted = compared_kinds(condition_of(node))
            kinds = kinds_tested(node, schema)
            if wanted and (kinds is None or not all_comparable(kinds, wanted)):
                found.append(node)
    return found


def of_concepts(plan: Node, nodes: list[Node]) -> list[Node]:
    """Operators whose tests look at statements of any entity, as they are of the members of concepts
    alone, where the plan keeps none but these of what passes: what others have makes no difference.
    """
    members: dict[int, list[alg.Entities]] = {}
    order = postorder(plan)
    takers = Counter(id(child) for node in order for child in node.inputs())
    for node in order:
        if isinstance(node, alg.Intersect):
            concepts = [part for part in node.parts if isinstance(part, alg.Members) and isinstance(part.concepts, alg.ByName)]
            for part in node.parts if concepts else ():
                below: alg.Entities | alg.Facts | None = part
                while below is not None and takers[id(below)] == 1:
                    members[id(below)] = [*concepts]
                    below = (
                        below.facts
                        if isinstance(below, alg.Reached)
                        else alg.passed(below)
                        if isinstance(below, alg.Facts)
                        else None
                    )
    return [_of(node, members[id(node)]) if id(node) in members and isinstance(node, alg.Facts) else node for node in nodes]


def _of(facts: alg.Facts, concepts: list[alg.Entities]) -> alg.Facts:
    inner = alg.passed(facts)
    if inner is not None:
        return alg.passing(facts, _of(inner, concepts))
    if not isinstance(facts, alg.Scan) or facts.anchor != "subject" or facts.reach != "subject":
        return facts
    whole = facts.of is None or (isinstance(facts.of, alg.AllEntities) and facts.of.source is None)
    return replace(facts, of=concepts[0] if len(concepts) == 1 else alg.Intersect(tuple(concepts))) if whole else facts


def placed(part: Any, beyond: set[int], run: Run) -> Any:
    """A part of a plan as the server can run it: in place of what the client works out stands what
    that gave.
    """
    if isinstance(part, tuple):
        return tuple(placed(one, beyond, run) for one in part)
    if not isinstance(part, Node | Condition) or (isinstance(part, Node) and id(part) not in beyond):
        return part
    if isinstance(part, alg.Entities):
        return alg.ById(tuple(run.snapshot.entity(number).id for number in run.entities(part).tolist()))
    if isinstance(part, alg.Values):
        values: list[Any] = [value.name if isinstance(value, Entity) else value for value in run.values(part).values()]
        return alg.Constants(tuple(value for value in values if value is not UNKNOWN))
    changed = {one.name: placed(getattr(part, one.name), beyond, run) for one in fields(part) if one.init}  # type: ignore[arg-type]
    return replace(part, **changed)  # type: ignore[type-var]


def values_may_warn(plan: Node, schema: StoredSchema, empty: bool, *, tables: bool = True) -> bool:
    """Whether some operator may have something to say that only a look at its values tells; `tables`
    says that those that give tables are among them.
    """
    return any(may_warn(node, schema, empty) for node in postorder(plan) if tables or not isinstance(node, alg.Table))


def compile_tallies(nodes: list[Node], graph: str, schema: StoredSchema, *, layout: Layout = CONDGRAPH) -> Compiled:
    """One query for how many values of each type and unit each operator looks at: `step`, `kind`,
    `unit`, `count`.
    """
    from condgraph.cypher.compile.plan import Compiled

    compiler = PlanCompiler(graph, schema, [child for node in nodes for child in node.inputs()], layout)
    branches: list[list[str]] = []
    for step, node in enumerate(nodes):
        for clauses, kind, unit in _looked_at(compiler, node):
            grouped = f"RETURN {step} AS step, {kind} AS kind, {unit} AS unit, count(*) AS count"
            branches.append([*clauses, grouped])
    return Compiled(compiler.whole(branches, ("step", "kind", "unit", "count")), compiler.parameters, "values", layout=layout)


def _looked_at(compiler: Compiler, node: Node) -> list[tuple[list[str], str, str]]:
    """Clauses that leave what an operator's test looks at, and its kind and unit."""
    if isinstance(node, (alg.FilterValues, alg.AnySatisfies)):
        rows = compiler.values(node.values)
        return [(rows.clauses, rows.cell.kind, rows.cell.unit)]
    assert isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity))
    facts = compiler.facts(node.facts)
    if isinstance(node, alg.Where):
        if facts.family == "relation":
            return [(facts.render(), "'entity'", "null")]
        return [(facts.render(), compiler.layout.kind_of_object(facts.thing), facts.cell.unit)]
    q, layout = compiler.name("q"), compiler.layout
    if isinstance(node, alg.WhereQualifier):
        test = f"{layout.qualifier_name(q)} = {compiler.parameter(node.key)}"
    else:
        test = written(compiler, facts, q, node.part)
    return [(qualified(compiler, facts, q, test), layout.qualifier(q).kind, layout.qualifier(q).unit)]


def counted(nodes: list[Node], rows: list[dict[str, Any]]) -> LeftOut:
    """The values that were left out."""
    found = LeftOut()
    for row in rows:
        node, kind = nodes[row["step"]], KINDS[row["kind"]]
        left_out(found, kind, row["unit"] if kind is Kind.QUANTITY else NO_UNIT, row["count"], compared_kinds(condition_of(node)))
    return found
