"""The statements around some entities, as chains read them: one query, at most so many a direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from condgraph.engine.algebra.around import around_of
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.sparql.compile.entities import Compiler
from condgraph.sparql.compile.gather import branch_of, gathering, memberships_of, others
from condgraph.sparql.gathered import Gathered, LostRowsError, Row


def around(store: Any, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
    """The entities of these ids and names with the statements at whose ends they stand, as a
    snapshot of those alone; and others that have the name of an entity in them, up to the bound.
    With `concepts` also the memberships that they are an end of.
    """
    target = store.target
    compiler = Compiler(target)
    of, scans = around_of(ids, names, values=values)
    branches = ["SELECT DISTINCT (-1 AS ?leaf) (?source AS ?n) WHERE { ?source <pred:place> ?place . }"]
    branches += [f"{branch_of(compiler, number, scan)} LIMIT {int(most)}" for number, scan in enumerate(scans)]
    branches.append(branch_of(compiler, len(scans), of))
    branches += others(compiler, len(scans) + 1, of, scans, most)
    if concepts:
        branches += memberships_of(compiler, of, most)
    text = gathering(branches, target, stated=True)
    try:
        return Gathered(_rows(store, text), target.names, ()).snapshot
    except LostRowsError:
        # Shorter queries are planned otherwise.
        parts = [row for branch in branches for row in _rows(store, gathering([branch], target, stated=True))]
        return Gathered(parts, target.names, ()).snapshot


def _rows(store: Any, text: str) -> Iterator[Row]:
    for row in store.select(text):
        leaf, n, s, p, o = (row[name].value for name in ("leaf", "n", "s", "p", "o"))
        yield leaf, n, s, p, o
