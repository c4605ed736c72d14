"""From an answer back to what it rests on: statements, memberships, subclass steps, and entities
named by none of these.

Every operator is asked, outputs first, which part of its inputs led to the part of its result that
is wanted. What comes together is a proof: a graph of it alone gives each operator what is wanted of
it, and nothing that it had not given before. So what was looked at and led to nothing is no
evidence; what was taken away (`Minus`) is, as far as the rest of the evidence names it, since it
would come back otherwise. What operators carry on, read, and want everything of they say themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.bounds import check
from condgraph.engine.execute.aggregates import competitors
from condgraph.engine.execute.demand import Asked, Demand, inputs_asked, whole
from condgraph.engine.execute.entities import neighbour
from condgraph.engine.execute.memberships import Links, put_under
from condgraph.engine.execute.sets import EMPTY, Numbers, distinct, intersect, minus, union
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


@dataclass(slots=True)
class Trail:
    """What an answer rests on, by number; `demands` is what is wanted of each operator, by
    identity.

    `statements` are sorted. `entities` are those that count by themselves, sorted: found by name,
    as a row, as one of all.
    """

    run: Run
    demands: dict[int, Demand] = field(default_factory=dict)
    statements: Numbers = field(default_factory=lambda: EMPTY)
    memberships: Links = field(default_factory=list)
    subclasses: Links = field(default_factory=list)
    entities: Numbers = field(default_factory=lambda: EMPTY)

    def mentioned(self) -> Numbers:
        """The entities that the statements, memberships and subclass steps name, sorted."""
        snapshot = self.run.snapshot
        relations = self.statements[: snapshot.split(self.statements)]
        _, qualifiers = snapshot.qualifiers(self.statements)
        kinds, refs = (snapshot.arrays.get(f"q.{name}").take(qualifiers) for name in ("kind", "ref"))
        links = [end for link in (*self.memberships, *self.subclasses) for end in link]
        parts = (snapshot.subjects(self.statements), snapshot.relation_object[relations], refs[kinds == Kind.ENTITY], links)
        return distinct(np.concatenate(parts).astype(np.int32), snapshot.entities)

    def named(self) -> Numbers:
        """Every entity of a graph made of this, sorted."""
        return union([self.mentioned(), self.entities], self.run.snapshot.entities)


def trace_back(run: Run, plan: Node, asked: Mapping[int, Asked] | None = None) -> Trail:
    """What an execution's answer rests on; `asked` is what some operators, by identity, ask of their
    inputs for a part of it.
    """
    named = EMPTY
    while True:
        trail = _walk(run, plan, named, asked or {})
        found = trail.named()
        if len(found) == len(named) or not any(isinstance(node, alg.Minus) for node in run.order):
            return trail
        # What was taken away counts where it is named, and its evidence names more.
        named = union([named, found], run.snapshot.entities)


def _walk(run: Run, plan: Node, named: Numbers, of_part: Mapping[int, Asked]) -> Trail:
    snapshot, trail = run.snapshot, Trail(run)
    demands = trail.demands
    demands[id(plan)] = whole(run, plan)
    statements: list[Numbers] = []
    entities: list[Numbers] = []
    memberships: set[tuple[int, int]] = set()
    subclasses: set[tuple[int, int]] = set()
    within: list[tuple[alg.AllEntities, Numbers]] = []
    for node in reversed(run.order):
        check()
        demand = demands.get(id(node))
        if demand is None:
            continue
        asked = of_part.get(id(node))
        if node.facets.reads == "statements":
            # The best value of a key needs those that it is better than, whoever wants it.
            statements.append(competitors(run, node) if isinstance(node, alg.ArgExtreme) else demand.statements)
        elif node.facets.reads == "members":
            (concepts,) = node.inputs()
            held, members, steps = put_under(snapshot, run.results[id(concepts)], demand.entities)
            memberships.update(members)
            subclasses.update(steps)
            asked = [(concepts, Demand(held))]
        elif node.facets.reads == "entities":
            # They have to be there as such: no statement leads to them.
            entities.append(demand.entities)
            if isinstance(node, alg.Neighbour):
                entities.append(_between(run, node))
            elif isinstance(node, alg.AllEntities) and node.source is not None and not node.own:
                within.append((node, demand.entities))
        for child, wanted in inputs_asked(run, node, demand, named) if asked is None else asked:
            known = demands.get(id(child))
            if known is not None:
                wanted = Demand(
                    union([known.entities, wanted.entities], snapshot.entities),
                    union([known.statements, wanted.statements], snapshot.statements),
                )
            demands[id(child)] = wanted
    trail.statements = union(statements, snapshot.statements)
    for each in within:
        trail.statements = union([trail.statements, _of_source(run, trail.statements, *each)], snapshot.statements)
    trail.memberships, trail.subclasses = sorted(memberships), sorted(subclasses)
    trail.entities = union(entities, snapshot.entities)
    return trail


def _between(run: Run, node: alg.Neighbour) -> Numbers:
    """The rows that were gone past, and those that were found; which is the next row depends on
    them.
    """
    if abs(node.distance) <= 1:
        return run.entities(node)
    ways = range(1, abs(node.distance) + 1)
    found = [neighbour(run, replace(node, distance=way if node.distance > 0 else -way)) for way in ways]
    return union(found, run.snapshot.entities)


def _of_source(run: Run, statements: Numbers, node: alg.AllEntities, wanted: Numbers) -> Numbers:
    """For entities wanted as those of a source: a statement each that makes them so, where they are
    no rows of it.
    """
    snapshot, source = run.snapshot, run.source(node.source)
    places = snapshot.arrays.get("ent.source")
    wanted = wanted[places[wanted] != source] if len(places) else wanted
    scoped = snapshot.sourced(source)
    ends, _ = _ends(run, intersect(statements, scoped, snapshot.statements))
    wanted = minus(wanted, distinct(ends, snapshot.entities), snapshot.entities)
    ends, numbers = _ends(run, scoped)
    order = np.lexsort((numbers, ends))
    first = np.searchsorted(ends[order], wanted)
    return distinct(numbers[order][first], snapshot.statements)


def _ends(run: Run, numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The subjects and objects of sorted statements, and beside each its statement."""
    relations = numbers[: run.snapshot.split(numbers)]
    ends = [run.snapshot.subjects(numbers), run.snapshot.relation_object[relations]]
    return np.concatenate(ends), np.concatenate([numbers, relations])
