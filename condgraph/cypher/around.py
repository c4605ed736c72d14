"""The statements around some entities, as chains read them: one query, at most so many a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from condgraph.cypher.compile.operators import PlanCompiler
from condgraph.cypher.layout.paths import CONDGRAPH
from condgraph.cypher.witness import restore
from condgraph.engine.algebra.around import around_of
from condgraph.engine.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from condgraph.cypher.store import Neo4jStore


def around(store: Neo4jStore, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool) -> Snapshot:
    """The entities of these ids and names with the statements at whose ends they stand, as a
    snapshot of those alone.
    """
    of, scans = around_of(ids, names, values=values)
    compiler = PlanCompiler(store.name, store.schema, [of, *scans], CONDGRAPH)
    branches: list[list[str]] = []
    for number, scan in enumerate(scans):
        facts = compiler.facts(scan)
        row = CONDGRAPH.statement(compiler, facts.fact, facts.subject, facts.thing, facts.family)
        branches.append([*facts.render(), f"RETURN {number} AS unit, {row} AS row LIMIT {int(most)}"])
    rows = compiler.entities(of)
    described = CONDGRAPH.described(rows.variable)
    branches.append([*rows.clauses, f"RETURN {len(scans)} AS unit, {{e: {described}}} AS row"])
    text = compiler.whole(branches, ("unit", "row"))
    return store.steady(lambda: restore(store.connection.read(text, compiler.parameters), store.known_sources))
