"""The evidence of an answer: the statements that it rests on, fetched with one further query (on
Virtuoso one for each part) and asked in process.

A graph that only a server has is not here to be looked at. So the query fetches the statements that
pass the filters of each scan, the sets that the plan names and the memberships between, and the
engine runs the same plan on them (`engine.execute.witness_plan`), so that evidence and the warnings
of aggregates are those of the graph in process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.execute.searched import countable
from condgraph.engine.execute.witness_plan import Unit, WitnessRun, units
from condgraph.sparql.compile.compiled import native
from condgraph.sparql.compile.entities import Compiler
from condgraph.sparql.compile.gather import branch_of, collect, gathering, memberships, namesakes
from condgraph.sparql.compile.group import Group
from condgraph.sparql.gathered import Gathered, Row
from condgraph.sparql.literals import integer

if TYPE_CHECKING:
    from condgraph.engine.check import KnownIds
    from condgraph.sparql.compile.group import Target
    from condgraph.sparql.layout import GraphIris
    from condgraph.sparql.store import RdfStore

#: Entities that one part of a query names.
_TOGETHER: Final = 200


def wanted(plan: Node) -> list[Unit]:
    """What has to be fetched for a plan."""
    return units(plan, {id(node) for node in postorder(plan) if not native(node)})


def compile_witness(fetched: Sequence[Unit], target: Target) -> list[str]:
    """The query that fetches it, or the queries of its parts where a store gathers so; each unit is
    the leaf of its number, sources and memberships are -1.
    """
    branches = _branches(fetched, target)
    parts = [[branch] for branch in branches] if target.dialect.gathers_in_parts else [branches]
    return [gathering(part, target, stated=True) for part in parts]


def _branches(fetched: Sequence[Unit], target: Target) -> list[str]:
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
    return branches


def count(place: RdfStore, nodes: Sequence[Node], known: KnownIds) -> list[int]:
    """How many statements, or entities, each operator gives: one query; `known` has the ids of what
    only the client works out.
    """
    asked: list[tuple[int, Node]] = []
    for step, node in enumerate(nodes):
        asked.extend((step, part) for part in _parted(countable(node, lambda one: not native(one), known)))
    compiler = Compiler(place.target)
    parts = []
    for step, node in asked:
        out = Group()
        if isinstance(node, alg.Facts):
            counted = compiler.facts(node, out, whole=True).statement
        else:
            counted = compiler.variable("e")
            compiler.settled(node, counted, out)
        parts.append(f"{{ SELECT ({integer(step)} AS ?step) (COUNT(DISTINCT {counted}) AS ?size) WHERE {{ {out.text()} }} }}")
    sizes = [0] * len(nodes)
    for row in place.select(f"SELECT ?step ?size WHERE {{ {' UNION '.join(parts)} }}"):
        sizes[int(row["step"].value)] += int(row["size"].value)
    return sizes


def _parted(node: Node) -> list[Node]:
    """Long lists of entities or names in pieces, which have their statements to themselves."""
    of = node.of if isinstance(node, alg.Scan) else node
    if not isinstance(of, (alg.ById, alg.ByName)):
        return [node]
    listed = of.ids if isinstance(of, alg.ById) else of.names
    pieces = [type(of)(listed[at : at + _TOGETHER]) for at in range(0, len(listed), _TOGETHER)]
    return [replace(node, of=piece) if isinstance(node, alg.Scan) else piece for piece in pieces]


def run_witness(plan: Node, fetched: Sequence[Unit], rows: Iterable[Row], names: GraphIris) -> WitnessRun:
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
