"""A plan as one parameterised Cypher query.

`support` says what becomes of each operator; `compiler` holds what compiling shares, `entities`,
`facts`, `values`, `selection` and `conditions` the functions that `operators` has in its tables,
`cypher.layout` how a database is laid out. Here the parts become whole queries: of an answer, of
the sizes of steps, of the statements an answer rests on (`witness`). Values, names of entities and
graphs are parameters; predicates are relationship types, which the planner needs to see, and are
quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from condgraph.cypher.compile.compiled import Compiled, Shape, look_up
from condgraph.cypher.compile.compiler import Compiler
from condgraph.cypher.compile.conditions import condition
from condgraph.cypher.compile.groups import compile_groups
from condgraph.cypher.compile.join_order import arrange
from condgraph.cypher.compile.operators import PlanCompiler
from condgraph.cypher.compile.selection import MIDDLE, middle, scalar, shown_text
from condgraph.cypher.compile.support import SUPPORT, lowered
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.cells import FIELDS, Listed
from condgraph.cypher.layout.entities import TARGET
from condgraph.cypher.layout.paths import CONDGRAPH
from condgraph.cypher.witness import compile_witness
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

__all__ = ["Compiled", "compile_plan", "compile_sizes"]


def check(plan: Node, layout: Layout) -> None:
    """Raise `UnsupportedError` naming every operator that is not known here, and all that the
    database does not have.
    """
    nodes = postorder(plan)
    missing = sorted({type(node).__name__ for node in nodes if type(node) not in SUPPORT})
    if not missing and not layout.complete:
        missing = sorted({found for node in nodes if (found := layout.missing(node)) is not None})
    if missing:
        raise UnsupportedError(TARGET, missing)


def compile_plan(
    plan: Node, graph: str, schema: StoredSchema, names: Sequence[str] = (), *, layout: Layout = CONDGRAPH, grouped: bool = True
) -> Compiled:
    """The query of a plan. Where the plan has operators that are lowered, it fetches the statements
    that they work on; `grouped` allows that of a table it fetches groups alone.

    The query looks `names` of entities up as well; `Compiled.unknown` says which are not there.
    """
    check(plan, layout)
    try:
        return _compiled(plan, graph, schema, names, layout, grouped=grouped)
    except RecursionError:
        raise UnsupportedError(TARGET, ["so many steps of a program within each other"]) from None


def _compiled(plan: Node, graph: str, schema: StoredSchema, names: Sequence[str], layout: Layout, *, grouped: bool) -> Compiled:
    if id(plan) in lowered(plan):
        if grouped and (found := compile_groups(plan, graph, schema, names, layout)) is not None:
            return found
        return compile_witness(plan, graph, schema, names, layout=layout)
    plan = arrange(plan, schema)
    compiler = PlanCompiler(graph, schema, [plan], layout)
    # Without raw texts, equal values are one value, whichever stays.
    inner = plan
    if isinstance(plan, alg.Distinct) and not schema.tables and not isinstance(plan.values, alg.Predicates):
        inner = plan.values
    distinct = inner is not plan
    kind, fields = _fields(inner, schema) if layout.trusted or isinstance(inner, alg.Median) else (None, FIELDS)
    # A qualifier that is an entity is looked up there.
    compiler.refers |= "of" in fields
    branches, columns, shape = _result(compiler, inner, fields, distinct)
    looked_up = look_up(compiler, branches, columns, names)
    return Compiled(compiler.whole(branches, columns), compiler.parameters, shape, distinct, fields, kind, looked_up, layout)


#: The parts of a value that identify it, by kind.
_PARTS: Final[dict[Kind, tuple[Listed, ...]]] = {
    Kind.TEXT: ("text",),
    Kind.QUANTITY: ("number", "unit"),
    Kind.TIME: ("start", "end", "precision"),
    Kind.ENTITY: ("id", "text", "of", "row"),
    Kind.UNKNOWN: (),
}


def _fields(plan: Node, schema: StoredSchema) -> tuple[str | None, tuple[Listed, ...]]:
    """What an answer has to read of each value, from what the schema says of their kinds; the kind,
    where there is only one.
    """
    if isinstance(plan, alg.Median):
        return "quantity", MIDDLE
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
        return None, FIELDS
    found = [name for kind in sorted(kinds) for name in _PARTS[kind]]
    if Kind.QUANTITY in kinds and schema.inexact:
        found.append("exact")
    if own and schema.raw:
        found.append("raw")
    if len(kinds) == 1:
        return next(iter(kinds)).name.lower(), tuple(found)
    return None, tuple(dict.fromkeys(["kind", *found]))


def _result(
    compiler: Compiler, plan: Node, fields: tuple[Listed, ...], distinct: bool
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
        return [[*rows.clauses, f"RETURN collect({compiler.layout.listed(e)}) AS rows"]], ("rows",), "entities"
    if isinstance(plan, alg.AnySatisfies):
        # Whether some value satisfies does not depend on how often it stands there.
        values = compiler.values(plan.values.values if isinstance(plan.values, alg.Distinct) else plan.values)
        test = condition(compiler, plan.condition, values.cell, values.ref)
        returned = f"RETURN count({values.cell.whole}) AS total, count(CASE WHEN {test} THEN 1 END) AS satisfied"
        return [[*values.clauses, returned]], ("total", "satisfied"), "some"
    if isinstance(plan, alg.Median):
        return [middle(compiler, plan)], ("rows", "numbers"), "median"
    if isinstance(plan, alg.Count | alg.Exists):
        clauses, expression = scalar(compiler, plan)
        name = "count" if isinstance(plan, alg.Count) else "found"
        return [[*clauses, f"RETURN {expression} AS {name}"]], (name,), "count" if name == "count" else "exists"
    if isinstance(plan, alg.Distinct) and isinstance(plan.values, alg.Predicates):
        facts = compiler.facts(plan.values.facts)
        return [[*facts.render(), f"RETURN DISTINCT {compiler.layout.type(facts.fact)} AS type"]], ("type",), "predicates"
    assert isinstance(plan, alg.Values)
    if isinstance(plan, alg.Predicates):
        facts = compiler.facts(plan.facts)
        return [[*facts.render(), f"RETURN {compiler.layout.type(facts.fact)} AS type"]], ("type",), "predicates"
    values = compiler.values(plan)
    # What an entity is stands at the entity.
    ref, layout = values.ref, compiler.layout
    about: dict[Listed, str] = {"of": layout.kind(ref) if ref else "null", "row": layout.row(ref) if ref else "null"}
    listed = ", ".join([about[name] if name in about else values.cell.field(name) for name in fields])  # type: ignore[arg-type]
    once = "DISTINCT " if distinct else ""
    if not isinstance(plan, alg.Shown):
        return [[*values.clauses, f"RETURN collect({once}[{listed}]) AS rows"]], ("rows",), "values"
    rows = compiler.entities(plan.rows)
    # Counted, as a constant beside an aggregate would group by it, and give no row where there is
    # nothing.
    shown = [*rows.clauses, f"RETURN collect({compiler.layout.listed(rows.variable)}) AS rows, count(*) >= 0 AS held"]
    return [[*values.clauses, f"RETURN collect([{listed}]) AS rows, count(*) < 0 AS held"], shown], ("rows", "held"), "values"


def compile_sizes(nodes: list[Node], graph: str, schema: StoredSchema, *, layout: Layout = CONDGRAPH) -> Compiled:
    """One query for how many results each operator gives (`step`, `size`), with the names or texts
    of the first (`sample`).
    """
    beyond = set().union(*(lowered(node, ends=False) for node in nodes)) if nodes else set()
    chosen = [(i, node) for i, node in enumerate(nodes) if id(node) not in beyond]
    compiler = PlanCompiler(graph, schema, [node for _, node in chosen], layout)
    branches = []
    for i, node in chosen:
        if isinstance(node, alg.Facts):
            node = alg.Reached(node)
        if isinstance(node, alg.Entities):
            rows = compiler.entities(node)
            clauses = rows.clauses
            shown, size = f"collect({layout.name(rows.variable)})[0..3]", f"count({rows.variable})"
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
    return Compiled(compiler.whole(branches or empty, names), compiler.parameters, "values", layout=layout)
