"""The part of a graph that a plan rests on, fetched with one query and asked in process.

The statements that leave the filters of each scan, and the sets that the plan names, are fetched
with qualifiers and sources and make a small snapshot; on it the same plan is run by the same code
as in process. That finishes the operators that are lowered (`cypher.compile.support`), and gives
the evidence of an answer. Where a filter itself needs a function of the client, the statements are
fetched without it, which is more and not less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.cypher.compile.compiled import Compiled, look_up
from condgraph.cypher.compile.compiler import Compiler
from condgraph.cypher.compile.operators import PlanCompiler
from condgraph.cypher.compile.support import lowered
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.cells import value_of
from condgraph.cypher.layout.paths import CONDGRAPH
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.execute.witness_plan import Unit, WitnessRun, units
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

#: The qualifier that tells a relationship from another one with the same ends, type and properties.
PARALLEL: Final = "elementId"


def compile_witness(
    plan: Node, graph: str, schema: StoredSchema, names: Sequence[str] = (), *, layout: Layout = CONDGRAPH
) -> Compiled:
    """The query that fetches what a plan rests on: rows of a unit's number and a record. `names` as
    for `compile_plan`.
    """
    wanted = units(plan, lowered(plan))
    compiler = PlanCompiler(graph, schema, [unit.compiled for unit in wanted], layout)
    concepts = {id(node.concepts) for node in postorder(plan) if isinstance(node, alg.Members)}
    branches: list[list[str]] = []
    for number, unit in enumerate(wanted):
        if isinstance(unit.compiled, alg.Facts):
            facts = compiler.facts(unit.compiled)
            row = layout.statement(compiler, facts.fact, facts.subject, facts.thing, facts.family)
            branches.append([*facts.render(), f"RETURN {number} AS unit, {row} AS row"])
            continue
        if isinstance(unit.compiled, alg.ByName) and id(unit.compiled) in concepts:
            # Beside the entities of that name: the operator may find these for others that take it.
            said = layout.concepts_named(compiler, unit.compiled.names)
            branches.extend([f"RETURN {number} AS unit, {{e: {concept}}} AS row"] for concept in said)
        rows = compiler.entities(unit.compiled)
        branches.append([*rows.clauses, f"RETURN {number} AS unit, {{e: {layout.described(rows.variable)}}} AS row"])
        if unit.concepts is not None:
            branches.extend(_memberships(compiler, unit))
    branches = branches or [["UNWIND [] AS unit RETURN unit, null AS row"]]
    columns = "unit", "row"
    looked_up = look_up(compiler, branches, columns, names)
    return Compiled(compiler.whole(branches, columns), compiler.parameters, "witness", looked_up=looked_up, layout=layout)


def _memberships(compiler: Compiler, unit: Unit) -> list[list[str]]:
    """The memberships, as they were stated, that put entities under concepts, and the subclasses
    between.
    """
    assert unit.concepts is not None
    if isinstance(unit.concepts, alg.ByName) and not compiler.layout.complete:
        members = compiler.set_of(unit.compiled)  # type: ignore[arg-type]
        found = compiler.layout.memberships_in(compiler, unit.concepts.names, members)
        if found is not None:
            return found
    concepts = compiler.set_of(unit.concepts)
    members = compiler.set_of(unit.compiled)  # type: ignore[arg-type]
    return compiler.layout.memberships(compiler, concepts, members)


def compile_counts(nodes: Sequence[Node], graph: str, schema: StoredSchema, *, layout: Layout = CONDGRAPH) -> Compiled:
    """One query for how many statements, or entities, each operator has: rows of `step` and `size`."""
    compiler = PlanCompiler(graph, schema, list(nodes), layout)
    branches: list[list[str]] = []
    for step, node in enumerate(nodes):
        if isinstance(node, alg.Facts):
            facts = compiler.facts(node)
            branches.append([*facts.render(), f"RETURN {step} AS step, count(DISTINCT {facts.fact}) AS size"])
        else:
            assert isinstance(node, alg.Entities)
            rows = compiler.entities(node)
            branches.append([*rows.clauses, f"RETURN {step} AS step, count(DISTINCT {rows.variable}) AS size"])
    return Compiled(compiler.whole(branches, ("step", "size")), compiler.parameters, "witness", layout=layout)


# -- reading ---------------------------------------------------------------------------------------


def restore(rows: Sequence[dict[str, Any]], sources: Sequence[Source], layout: Layout = CONDGRAPH) -> Snapshot:
    """A snapshot of what was fetched."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(_items(rows, sources, layout))
    builder.finish()
    return Snapshot.of(*lay_out(builder))


def _items(rows: Sequence[dict[str, Any]], sources: Sequence[Source], layout: Layout) -> list[Item]:
    entities: dict[str, Item] = {}
    links: dict[Any, Item] = {}
    statements: dict[int, Item] = {}
    alike: set[Statement] = set()

    def ident(entity: dict[str, Any]) -> str:
        found: str = entity["id"]
        if found not in entities:
            one = Entity(found, entity["name"], EntityKind(entity["kind"]), entity["row"] or 0)
            entities[found] = one if entity["source"] is None else Sourced(one, ((entity["source"], one.row),))
        return found

    for record in rows:
        row = record["row"]
        if "e" in row:
            ident(row["e"])
        elif "p" in row:
            if row["id"] in statements:
                continue
            thing: Ref | Value = Ref(ident(row["o"])) if row["v"] is None else value_of(row["v"])
            raw = None if row["v"] is None else row["v"].get("raw")
            qualifiers = tuple((q["name"], value_of(q) if q["ref"] is None else Ref(ident(q["ref"]))) for q in row["q"])
            statement = Statement(ident(row["s"]), layout.predicate_of(row["p"]), thing, qualifiers, raw=raw)
            if layout.parallel and row["v"] is None:
                if (equal := replace(statement, qualifiers=tuple(sorted(qualifiers, key=repr)))) in alike:
                    # What tells it from the other is the server's id alone.
                    statement = replace(statement, qualifiers=(*qualifiers, (PARALLEL, row["id"])))
                alike.add(equal)
            statements[row["id"]] = Sourced(statement, tuple(zip(row["sources"], row["rows"], strict=True)))
        else:
            link = row.get("m") or row["c"]
            build = Member if "m" in row else Subclass
            key = build, ident(link["a"]), ident(link["b"])
            links[key] = Sourced(build(*key[1:]), tuple(zip(link["sources"], link["rows"], strict=True)))
    return [*sources, *entities.values(), *links.values(), *statements.values()]


def run_witness(plan: Node, rows: Sequence[dict[str, Any]], sources: Sequence[Source], layout: Layout = CONDGRAPH) -> WitnessRun:
    """The plan run on what was fetched for it."""
    snapshot = restore(rows, sources, layout)
    members: dict[int, list[int]] = {}
    for record in rows:
        if "e" in record["row"]:
            members.setdefault(record["unit"], []).append(snapshot.identified(record["row"]["e"]["id"]))
    known: dict[int, Numbers] = {}
    for number, unit in enumerate(units(plan, lowered(plan))):
        for node in unit.known:
            known[id(node)] = np.unique(np.array(members.get(number, []), np.int32))
    run = WitnessRun(snapshot, known, lowered(plan))
    run.execute(plan)
    return run
