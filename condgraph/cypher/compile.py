"""A plan as one parameterised Cypher query.

`support` says what becomes of each operator; `compiler` holds what compiling shares, `compile_entities`, `compile_facts`,
`compile_values`, `compile_picks` and `compile_tests` the operators, `paths` how the layout is reached. Here the parts become whole
queries: of an answer, of the sizes of steps, of the statements an answer rests on (`witness`). Values, names of entities and graphs
are parameters; predicates are relationship types, which the planner needs to see, and are quoted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from condgraph.cypher import compile_entities, compile_facts, compile_picks, compile_values, paths
from condgraph.cypher.arrange import arrange
from condgraph.cypher.compile_picks import scalar, shown_text
from condgraph.cypher.compile_tests import condition
from condgraph.cypher.compiler import ENTITIES, FACTS, TARGET, VALUES, Compiler
from condgraph.cypher.support import SUPPORT, lowered
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

__all__ = ["OPERATORS", "Compiled", "compile_plan", "compile_sizes"]

#: The modules that say the operators; each has put its own into the tables.
_MODULES: Final = (compile_entities, compile_facts, compile_values, compile_picks)
#: The operators that leave rows.
OPERATORS: Final = frozenset((*ENTITIES, *FACTS, *VALUES))

#: What the rows of a query are: entities, values, predicates (as relationship types), a count, how many values satisfy a test, a
#: truth value, or the statements that the plan rests on.
Shape: TypeAlias = Literal["entities", "values", "predicates", "count", "some", "exists", "witness"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query with its parameters, and what its rows are."""

    text: str
    parameters: dict[str, Any]
    shape: Shape
    distinct: bool = False
    #: Of values: what each row lists, and the kind of all of them where it is known.
    fields: tuple[str, ...] = ()
    kind: str | None = None


def check(plan: Node) -> None:
    """Raise `UnsupportedError` naming every operator that is not known here."""
    missing = sorted({type(node).__name__ for node in postorder(plan) if type(node) not in SUPPORT})
    if missing:
        raise UnsupportedError(TARGET, missing)


def compile_plan(plan: Node, graph: str, schema: StoredSchema) -> Compiled:
    """The query of a plan. Where the plan has operators that are lowered, it fetches the statements that they work on."""
    check(plan)
    if id(plan) in lowered(plan):
        from condgraph.cypher.witness import compile_witness

        return compile_witness(plan, graph, schema)
    plan = arrange(plan, schema)
    compiler = Compiler(graph, schema, [plan])
    # Without raw texts, equal values are one value, whichever stays.
    inner = plan
    if isinstance(plan, alg.Distinct) and not schema.tables and not isinstance(plan.values, alg.Predicates):
        inner = plan.values
    distinct = inner is not plan
    kind, fields = _fields(inner, schema)
    branches, names, shape = _result(compiler, inner, fields, distinct)
    return Compiled(compiler.whole(branches, names), compiler.parameters, shape, distinct, fields, kind)


#: The parts of a value that tell it, by kind.
_PARTS: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.TEXT: ("text",),
    Kind.QUANTITY: ("number", "unit"),
    Kind.TIME: ("start", "end", "precision"),
    Kind.ENTITY: ("id", "text"),
    Kind.UNKNOWN: (),
}


def _fields(plan: Node, schema: StoredSchema) -> tuple[str | None, tuple[str, ...]]:
    """What an answer has to read of each value, from what the schema says of their kinds; the kind, where there is only one."""
    kinds: set[Kind] | None = None
    own = False
    if isinstance(plan, alg.Objects):
        facts = plan.facts
        while not isinstance(facts, alg.Scan) and isinstance(inner := facts.inputs()[0], alg.Facts):
            facts = inner
        if isinstance(facts, alg.Scan) and facts.family == "attribute" and facts.predicates:
            own = True
            kinds = {kind for name in facts.predicates for kind, _ in schema.attribute_kinds(name)}
    elif isinstance(plan, alg.Qualifiers) and plan.key is not None:
        kinds = {kind for kind, _ in schema.qualifier_kinds(plan.key)}
    if not kinds:
        return None, paths.FIELDS
    found = [name for kind in sorted(kinds) for name in _PARTS[kind]]
    if Kind.QUANTITY in kinds and schema.inexact:
        found.append("exact")
    if own and schema.raw:
        found.append("raw")
    if len(kinds) == 1:
        return next(iter(kinds)).name.lower(), tuple(found)
    return None, tuple(dict.fromkeys(["kind", *found]))


def _result(
    compiler: Compiler, plan: Node, fields: tuple[str, ...], distinct: bool
) -> tuple[list[list[str]], tuple[str, ...], Shape]:
    """Branches of clauses that end in a RETURN, the columns they return, and what the rows are."""
    if isinstance(plan, alg.Facts):
        plan = alg.Reached(plan)
    if isinstance(plan, alg.Names):
        plan = plan.entities
    if isinstance(plan, alg.Entities):
        rows = compiler.entities(plan)
        e = rows.variable
        # As one list: a record for each of them costs more than all that is in it.
        return [[*rows.clauses, f"RETURN collect([{e}.id, {e}.name]) AS rows"]], ("rows",), "entities"
    if isinstance(plan, alg.Some):
        # Whether some value satisfies does not depend on how often it stands there.
        values = compiler.values(plan.values.values if isinstance(plan.values, alg.Distinct) else plan.values)
        test = condition(compiler, plan.test, values.cell, values.ref)
        returned = f"RETURN count({values.cell}) AS total, count(CASE WHEN {test} THEN 1 END) AS satisfied"
        return [[*values.clauses, returned]], ("total", "satisfied"), "some"
    if isinstance(plan, alg.Count | alg.Exists):
        clauses, expression = scalar(compiler, plan)
        name = "count" if isinstance(plan, alg.Count) else "found"
        return [[*clauses, f"RETURN {expression} AS {name}"]], (name,), "count" if name == "count" else "exists"
    if isinstance(plan, alg.Distinct) and isinstance(plan.values, alg.Predicates):
        facts = compiler.facts(plan.values.facts)
        return [[*facts.render(), f"RETURN DISTINCT type({facts.fact}) AS type"]], ("type",), "predicates"
    assert isinstance(plan, alg.Values)
    if isinstance(plan, alg.Predicates):
        facts = compiler.facts(plan.facts)
        return [[*facts.render(), f"RETURN type({facts.fact}) AS type"]], ("type",), "predicates"
    values = compiler.values(plan)
    listed = ", ".join(f"{values.cell}.{name}" for name in fields)
    once = "DISTINCT " if distinct else ""
    if not isinstance(plan, alg.Shown):
        return [[*values.clauses, f"RETURN collect({once}[{listed}]) AS rows"]], ("rows",), "values"
    rows = compiler.entities(plan.rows)
    # Counted, as a constant beside an aggregate would group by it, and give no row where there is nothing.
    shown = [*rows.clauses, f"RETURN collect([{rows.variable}.id, {rows.variable}.name]) AS rows, count(*) >= 0 AS held"]
    return [[*values.clauses, f"RETURN collect([{listed}]) AS rows, count(*) < 0 AS held"], shown], ("rows", "held"), "values"


def compile_sizes(nodes: list[Node], graph: str, schema: StoredSchema) -> Compiled:
    """One query for how many results each operator gives (`step`, `size`), with the names or texts of the first (`sample`)."""
    beyond = set().union(*(lowered(node) for node in nodes)) if nodes else set()
    chosen = [(i, node) for i, node in enumerate(nodes) if id(node) not in beyond]
    compiler = Compiler(graph, schema, [node for _, node in chosen])
    branches = []
    for i, node in chosen:
        if isinstance(node, alg.Facts):
            node = alg.Reached(node)
        if isinstance(node, alg.Entities):
            rows = compiler.entities(node)
            clauses = rows.clauses
            shown, size = f"collect({rows.variable}.name)[0..3]", f"count({rows.variable})"
        elif isinstance(node, alg.Scalar):
            clauses, expression = scalar(compiler, node)
            clauses = [*clauses, f"WITH {expression} AS found"]
            shown, size = "[toString(found)]", "1"
            branches.append([*clauses, f"RETURN {i} AS step, {size} AS size, {shown} AS sample"])
            continue
        else:
            bag = compiler.values(node)
            clauses, size = bag.clauses, "count(*)"
            shown = f"collect({shown_text(bag.cell)})[0..3]"
        branches.append([*clauses, f"RETURN {i} AS step, {size} AS size, {shown} AS sample"])
    names = ("step", "size", "sample")
    empty = [["UNWIND [] AS step RETURN step, 0 AS size, [] AS sample"]]
    return Compiled(compiler.whole(branches or empty, names), compiler.parameters, "values")
