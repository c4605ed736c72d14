"""The evidence of an answer: the statements that it rests on, fetched with one further query and asked in process.

A graph that only a server has is not here to be looked at. What leaves the filters of each scan, the sets that the plan names and
the memberships between are fetched, and the engine runs the same plan on them (`engine.execute.rests`), so that evidence and the
warnings of aggregates are those of the graph in process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from condgraph.engine.algebra import Node, postorder
from condgraph.engine.execute.rests import Unit, WitnessRun, units
from condgraph.sparql.compile import Compiler
from condgraph.sparql.compile_gather import Gathered, Row, branch_of, collect, gathering, memberships, namesakes
from condgraph.sparql.compile_plan import native

if TYPE_CHECKING:
    from condgraph.sparql.compile_group import Target
    from condgraph.sparql.layout import Names


def wanted(plan: Node) -> list[Unit]:
    """What has to be fetched for a plan."""
    return units(plan, {id(node) for node in postorder(plan) if not native(node)})


def compile_witness(fetched: Sequence[Unit], target: Target) -> str:
    """The query that fetches it; each unit is the leaf of its number, sources and memberships are -1."""
    compiler = Compiler(target)
    branches = ["SELECT DISTINCT (-1 AS ?leaf) (?source AS ?n) WHERE { ?source <pred:place> ?place . }"]
    for i, unit in enumerate(fetched):
        if unit.named is not None:
            below: list[Node] = []
            collect(unit.named, below, below, set())
            branches.extend(namesakes(compiler, i, unit.named, below))
            continue
        branches.append(branch_of(compiler, i, unit.compiled))
        if unit.concepts is not None:
            everything = unit.compiled if unit.known else None
            branches.extend(memberships(compiler, everything, unit.concepts))  # type: ignore[arg-type]
    return gathering(branches, target.names, stated=True)


def run_witness(plan: Node, fetched: Sequence[Unit], rows: Iterable[Row], names: Names) -> WitnessRun:
    """The plan run on what was fetched for it."""
    gathered = Gathered(rows, names, ())
    snapshot = gathered.snapshot
    known = {}
    for i, unit in enumerate(fetched):
        for node in unit.known:
            found = [snapshot.identified(names.name_of(iri)) for iri in gathered.given.get(i, ())]
            known[id(node)] = np.unique(np.array(found, np.int32))
    run = WitnessRun(snapshot, known)
    run.execute(plan)
    return run
