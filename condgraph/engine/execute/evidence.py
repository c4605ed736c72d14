"""From an answer back to the statements it rests on.

Every operator is asked, outputs first, which part of its inputs led to the part of its result that is wanted; at a `Scan` these are
statements, at `Members` memberships. What was looked at and led to nothing is no evidence, nor is what a difference took away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.execute.aggregates import best_facts
from condgraph.engine.execute.bags import Bag
from condgraph.engine.execute.sets import EMPTY, Numbers, among, distinct, intersect, union
from condgraph.engine.execute.tests import holds
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.closure import descendants

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


class Demand:
    """What is wanted of one operator's result: entities, and statements (that are its facts, or carry its values)."""

    __slots__ = ("entities", "statements")

    def __init__(self, entities: Numbers = EMPTY, statements: Numbers = EMPTY) -> None:
        self.entities, self.statements = entities, statements


def trace_back(run: Run, plan: Node) -> tuple[Numbers, list[tuple[int, int]]]:
    """The statements an execution's answer rests on (sorted), and the memberships (entity, concept)."""
    demands: dict[int, Demand] = {id(plan): whole(run, plan)}
    statements: list[Numbers] = []
    memberships: set[tuple[int, int]] = set()
    for node in reversed(run.order):
        demand = demands.get(id(node))
        if demand is None:
            continue
        if isinstance(node, alg.Scan):
            statements.append(demand.statements)
        elif isinstance(node, alg.Best):
            winners = best_facts(run, node)
            subjects = run.snapshot.subjects(winners)
            statements.append(winners[among(subjects, demand.entities, run.snapshot.entities)])
        elif isinstance(node, alg.Members):
            memberships |= _memberships(run, node, demand.entities)
        for child, wanted in _inputs(run, node, demand):
            known = demands.get(id(child))
            if known is not None:
                wanted = Demand(
                    union([known.entities, wanted.entities], run.snapshot.entities),
                    union([known.statements, wanted.statements], run.snapshot.statements),
                )
            demands[id(child)] = wanted
    return union(statements, run.snapshot.statements), sorted(memberships)


def whole(run: Run, node: Node) -> Demand:
    """Everything an operator gave."""
    if isinstance(node, alg.Entities):
        return Demand(entities=run.entities(node))
    if isinstance(node, alg.Facts):
        return Demand(statements=run.facts(node).all())
    found: Any = run.results[id(node)]
    return carriers(run, found) if isinstance(found, Bag) else Demand()


def carriers(run: Run, bag: Bag) -> Demand:
    """The carriers of all values of a bag."""
    snapshot = run.snapshot
    entities, statements = [], []
    for part in bag.parts:
        if part.kind in ("name", "row"):
            entities.append(distinct(part.carriers, snapshot.entities))
        elif part.kind != "given":
            statements.append(distinct(part.carriers, snapshot.statements))
    return Demand(union(entities, snapshot.entities), union(statements, snapshot.statements))


def _inputs(run: Run, node: Node, demand: Demand) -> list[tuple[Node, Demand]]:
    """What each input is asked for."""
    snapshot = run.snapshot
    wanted = demand.entities
    if isinstance(node, alg.Union):
        return [(part, Demand(intersect(wanted, run.entities(part), snapshot.entities))) for part in node.parts]
    if isinstance(node, alg.Intersect):
        return [(part, Demand(wanted)) for part in node.parts]
    if isinstance(node, alg.Minus):
        return [(node.left, Demand(wanted))]
    if isinstance(node, alg.Best):
        return [(node.of, Demand(wanted))]
    if isinstance(node, alg.Neighbour):
        return [(node.of, whole(run, node.of))]
    if isinstance(node, alg.Reached):
        facts = run.facts(node.facts)
        numbers = facts.all()
        ends = snapshot.relation_object[numbers] if facts.reach == "object" else snapshot.subjects(numbers)
        return [(node.facts, Demand(statements=numbers[among(ends, wanted, snapshot.entities)]))]
    if isinstance(node, alg.Holders):
        held = carriers(run, run.values(node.values))
        subjects = snapshot.subjects(held.statements)
        chosen = held.statements[among(subjects, wanted, snapshot.entities)]
        return [(node.values, Demand(intersect(held.entities, wanted, snapshot.entities), chosen))]
    if isinstance(node, alg.Referents):
        return [(node.values, carriers(run, run.values(node.values)))]
    if isinstance(node, alg.Scan):
        if node.of is None:
            return []
        ends = snapshot.relation_object[demand.statements] if node.anchor == "object" else snapshot.subjects(demand.statements)
        return [(node.of, Demand(distinct(ends, snapshot.entities)))]
    if isinstance(node, alg.Where):
        pushed: list[tuple[Node, Demand]] = [(node.facts, demand)]
        if isinstance(node.test, alg.Among):
            objects = snapshot.relation_object[demand.statements[demand.statements < snapshot.relations]]
            pushed.append((node.test.entities, Demand(distinct(objects, snapshot.entities))))
        else:
            pushed.extend((child, whole(run, child)) for child in node.test.inputs())
        return pushed
    if isinstance(node, alg.Names | alg.RowNumbers):
        return [(node.entities, Demand(wanted))]
    if isinstance(node, alg.Some):
        bag = run.values(node.values)
        satisfied = bag.take(holds(run, node.test, bag.cells()))
        # With nothing that satisfies, all that was looked at is why the answer is no.
        return [(node.values, carriers(run, satisfied if len(satisfied) else bag))]
    if isinstance(node, alg.Choose):
        taken = node.then if run.results[id(node)] is run.results[id(node.then)] else node.otherwise
        return [(node.test, whole(run, node.test)), (taken, demand)]
    if isinstance(node, alg.Namesakes):
        found = run.entities(node.of)
        names = snapshot.entity_name.take(wanted)
        return [(node.of, Demand(found[np.isin(snapshot.entity_name.take(found), names)]))]
    if isinstance(node, alg.Shown):
        return [(node.values, demand)]
    if isinstance(node, alg.DuringAny | alg.WhereValidity):
        return [(node.facts, demand), *((child, whole(run, child)) for child in node.inputs()[1:])]
    if isinstance(node, alg.Keep | alg.Clip):
        return [(node.values, demand), *((child, whole(run, child)) for child in node.inputs()[1:])]
    if isinstance(node, alg.Count | alg.Sum | alg.Mean | alg.Exists | alg.Apply | alg.External | alg.Distinct):
        return [(child, whole(run, child)) for child in node.inputs()]
    # Every other operator hands its carriers or facts on.
    return [(child, demand) for child in node.inputs()]


def _memberships(run: Run, node: alg.Members, wanted: Numbers) -> set[tuple[int, int]]:
    """Direct memberships that put these entities under the concepts."""
    snapshot = run.snapshot
    get = snapshot.arrays.get
    children: dict[int, list[int]] = {}
    for child, parent in zip(get("sub.c").tolist(), get("sub.p").tolist(), strict=True):
        children.setdefault(parent, []).append(child)
    found: set[tuple[int, int]] = set()
    concepts = run.entities(node.concepts)
    members, of = get("mem.e"), get("mem.c")
    for concept in concepts[snapshot.entity_kind[concepts] == EntityKind.CONCEPT].tolist():
        for below in descendants(children, concept):
            low, high = np.searchsorted(of, [below, below + 1])
            chosen = members[low:high]
            found.update((entity, below) for entity in chosen[among(chosen, wanted, snapshot.entities)].tolist())
    return found
