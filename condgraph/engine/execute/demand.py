"""Demand of each operator on its inputs: which part of them led to the part of its result that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, carried, whole_inputs
from condgraph.engine.execute.aggregates import competitors, uniform
from condgraph.engine.execute.bags import Bag
from condgraph.engine.execute.conditions import holds
from condgraph.engine.execute.same_cells import equal_cells
from condgraph.engine.execute.sets import EMPTY, Numbers, among, distinct, intersect, union
from condgraph.engine.pieces import watched
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


class Demand:
    """What is wanted of one operator's result: entities, and statements (that are its facts, or
    carry its values).
    """

    __slots__ = ("entities", "statements")

    def __init__(self, entities: Numbers = EMPTY, statements: Numbers = EMPTY) -> None:
        self.entities, self.statements = entities, statements


Asked: TypeAlias = list[tuple[Node, Demand]]


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


def inputs_asked(run: Run, node: Node, demand: Demand, named: Numbers) -> Asked:
    """What each input is asked for."""
    if isinstance(node, alg.Minus):
        # What was taken away, where it is named by the evidence.
        away = intersect(run.entities(node.right), run.entities(node.left), run.snapshot.entities)
        return [(node.left, demand), (node.right, Demand(intersect(away, named, run.snapshot.entities)))]
    asked = _ASKED.get(type(node))
    return _handed_on(run, node, demand) if asked is None else asked(run, node, demand)


def _handed_on(run: Run, node: Node, demand: Demand) -> Asked:
    """Of what is carried on what it has of what is wanted; of other inputs, and of those that count
    as a whole, everything.
    """
    inputs = node.inputs()
    parts = {id(child) for child in carried(node)} - {id(child) for child in whole_inputs(node)}
    if len(inputs) == 1 and parts:
        return [(inputs[0], demand)]
    return [(child, _part(run, child, demand) if id(child) in parts else whole(run, child)) for child in watched(inputs, 16)]


def _part(run: Run, child: Node, demand: Demand) -> Demand:
    has = whole(run, child)
    if has.entities is demand.entities and has.statements is demand.statements:
        return has
    return Demand(
        intersect(has.entities, demand.entities, run.snapshot.entities),
        intersect(has.statements, demand.statements, run.snapshot.statements),
    )


def _everything(run: Run, node: Node, demand: Demand) -> Asked:
    return [(child, whole(run, child)) for child in node.inputs()]


def _best(run: Run, node: alg.ArgExtreme, demand: Demand) -> Asked:
    return [(node.of, Demand(distinct(run.snapshot.subjects(competitors(run, node)), run.snapshot.entities)))]


def _reached(run: Run, node: alg.Reached, demand: Demand) -> Asked:
    snapshot, facts = run.snapshot, run.facts(node.facts)
    numbers = facts.all()
    if facts.reach == "object":
        numbers = numbers[: snapshot.split(numbers)]
        ends = snapshot.relation_object[numbers]
    else:
        ends = snapshot.subjects(numbers)
    return [(node.facts, Demand(statements=numbers[among(ends, demand.entities, snapshot.entities)]))]


def _holders(run: Run, node: alg.SubjectsOf, demand: Demand) -> Asked:
    snapshot, held = run.snapshot, carriers(run, run.values(node.values))
    subjects = snapshot.subjects(held.statements)
    chosen = held.statements[among(subjects, demand.entities, snapshot.entities)]
    return [(node.values, Demand(intersect(held.entities, demand.entities, snapshot.entities), chosen))]


def _referents(run: Run, node: alg.Referents, demand: Demand) -> Asked:
    """The values that are, or name, what is wanted."""
    snapshot, bag = run.snapshot, run.values(node.values)
    cells = bag.cells()
    kinds, refs = cells["kind"], cells["ref"]
    led = (kinds == Kind.ENTITY) & np.isin(refs, demand.entities)
    led |= (kinds == Kind.TEXT) & np.isin(refs, snapshot.entity_name.take(demand.entities))
    return [(node.values, carriers(run, bag.take(led)))]


def _namesakes(run: Run, node: alg.SameName, demand: Demand) -> Asked:
    found, called = run.entities(node.of), run.snapshot.entity_name
    return [(node.of, Demand(found[np.isin(called.take(found), called.take(demand.entities))]))]


def _scan(run: Run, node: alg.Scan, demand: Demand) -> Asked:
    if node.of is None:
        return []
    snapshot, numbers = run.snapshot, demand.statements
    ends = snapshot.relation_object[numbers] if node.anchor == "object" else snapshot.subjects(numbers)
    return [(node.of, Demand(distinct(ends, snapshot.entities)))]


def _where(run: Run, node: alg.Where, demand: Demand) -> Asked:
    if isinstance(node.condition, alg.Among):
        numbers = demand.statements[: run.snapshot.split(demand.statements)]
        objects = distinct(run.snapshot.relation_object[numbers], run.snapshot.entities)
        return [(node.facts, demand), (node.condition.entities, Demand(objects))]
    return _tested(run, node, demand)


def _tested(run: Run, node: alg.Where | alg.WhereQualifier | alg.WhereValidity | alg.DuringAny, demand: Demand) -> Asked:
    """Facts that were tested: those that are wanted, and all that they were compared with."""
    return [(node.facts, demand), *((child, whole(run, child)) for child in node.inputs() if child is not node.facts)]


def _keep(run: Run, node: alg.FilterValues, demand: Demand) -> Asked:
    """The values that are wanted, and what they were compared with: of equal values those that they
    equal.
    """
    asked: Asked = [(node.values, demand)]
    if isinstance(node.condition, alg.Equals):
        other = run.values(node.condition.values)
        equal = equal_cells(run, other.cells(), run.values(node))
        return [*asked, (node.condition.values, carriers(run, other.take(equal)))]
    return asked + [(child, whole(run, child)) for child in node.condition.inputs()]


def _some(run: Run, node: alg.AnySatisfies, demand: Demand) -> Asked:
    bag = run.values(node.values)
    satisfied = bag.take(holds(run, node.condition, bag.cells()))
    # With nothing that satisfies, all that was looked at is why the answer is no.
    asked: Asked = [(node.values, carriers(run, satisfied if len(satisfied) else bag))]
    return asked + [(child, whole(run, child)) for child in node.condition.inputs()]


def _choose(run: Run, node: alg.Choose, demand: Demand) -> Asked:
    taken = node.then if run.results[id(node)] is run.results[id(node.then)] else node.otherwise
    return [(node.condition, whole(run, node.condition)), (taken, demand)]


def _shown(run: Run, node: alg.Shown, demand: Demand) -> Asked:
    return [(node.values, _part(run, node.values, demand)), (node.rows, whole(run, node.rows))]


def _extreme(run: Run, node: alg.Extreme, demand: Demand) -> Asked:
    """All of the best, whoever wants one, so that nothing else is the best without them. They prove
    themselves, unless it is for the others that their type and unit compete, or that texts do.
    """
    of = node.values
    return [(of, whole(run, node if uniform(run.values(of).cells()) else of))]


def _mode(run: Run, node: alg.Mode, demand: Demand) -> Asked:
    """The same of what is frequent; what is rare would be so among fewer others, too, and so would
    they.
    """
    return [(node.values, whole(run, node if node.direction == "largest" else node.values))]


_ASKED: Final[dict[type[Node], Callable[[Run, Any, Demand], Asked]]] = {
    alg.ArgExtreme: _best,
    alg.Reached: _reached,
    alg.SubjectsOf: _holders,
    alg.Referents: _referents,
    alg.SameName: _namesakes,
    alg.Scan: _scan,
    alg.Where: _where,
    alg.WhereQualifier: _tested,
    alg.WhereValidity: _tested,
    alg.DuringAny: _tested,
    alg.FilterValues: _keep,
    alg.Distinct: _everything,
    alg.AnySatisfies: _some,
    alg.Choose: _choose,
    alg.Shown: _shown,
    alg.Extreme: _extreme,
    alg.Mode: _mode,
}
