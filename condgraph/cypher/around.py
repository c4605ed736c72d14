"""The statements around some entities, as chains read them: one query, at most so many a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condgraph.cypher.compile.plan import restore
from condgraph.cypher.compile.values import PlanCompiler
from condgraph.cypher.layout.base import Layout
from condgraph.engine.algebra.around import around_of, named_of
from condgraph.engine.algebra.sorts import Entities
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Kind


def around(store: Any, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
    """The entities of these ids and names with the statements at whose ends they stand, as a
    snapshot of those alone; and of each entity in them one other that has its name, where there is
    one. With `concepts` also the memberships that they are an end of.
    """
    of, scans = around_of(ids, names, values=values)
    layout: Layout = store.layout
    kinds = {kind for key in store.schema.qualifiers for kind, _ in store.schema.qualifier_kinds(key)}
    parts = named_of(of, scans, qualified=Kind.ENTITY in kinds)
    compiler = PlanCompiler(store.name, store.schema, [of, *scans, *parts], layout)
    branches: list[list[str]] = []
    for number, scan in enumerate(scans):
        facts = compiler.facts(scan)
        row = layout.statement(compiler, facts.fact, facts.subject, facts.thing, facts.family)
        branches.append([*facts.render(), f"RETURN {number} AS unit, {row} AS row LIMIT {int(most)}"])
    rows = compiler.entities(of)
    described = layout.described(rows.variable)
    branches.append([*rows.clauses, f"RETURN {len(scans)} AS unit, {{e: {described}}} AS row"])
    for part in parts:
        branches.append(
            [*_namesakes(compiler, part, most), f"RETURN {len(scans)} AS unit, {{e: {layout.described('other')}}} AS row"]
        )
    if concepts:
        branches += layout.memberships_of(compiler, compiler.set_of(of), most)
    text = compiler.whole(branches, ("unit", "row"))
    found: Snapshot = store.steady(lambda: restore(store.connection.read(text, compiler.parameters), store.known_sources, layout))
    return found


def _namesakes(compiler: PlanCompiler, part: Entities, most: int) -> list[str]:
    """Clauses that leave, as `other`, one entity for each of a part whose name it has as well."""
    rows, layout = compiler.entities(part), compiler.layout
    n, k, e = rows.variable, compiler.name("k"), compiler.name("e")
    found = "\n".join(layout.by_name(e, f"= {k}"))
    look_up = f"{found}\nWITH {e}, {n} WHERE {e} <> {n}\nRETURN {e} AS other LIMIT 1"
    bound = [f"WITH DISTINCT {n} LIMIT {int(most)}", f"WITH {n}, {layout.name_key(n)} AS {k}"]
    return [*rows.clauses, *bound, compiler.call(look_up, n, k), "WITH DISTINCT other"]
