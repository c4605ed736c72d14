"""From an answer back to the statements, memberships and entities it rests on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Entities, Group, Node, Table, carried, whole_inputs
from condgraph.engine.bounds import check, watched
from condgraph.engine.execute.aggregates import competitors, uniform
from condgraph.engine.execute.columns import GroupRows
from condgraph.engine.execute.conditions import holds
from condgraph.engine.execute.facts import neighbour
from condgraph.engine.execute.sets import EMPTY, Bag, Numbers, among, distinct, equal_cells, intersect, minus, union
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.grid import Grid
    from condgraph.engine.execute.rowset import RowSet
    from condgraph.engine.execute.run import Run
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- memberships -----------------------------------------------------------------------------------
# What puts entities under a concept: the memberships that were stated, and the subclass steps
# between.


#: Pairs of entity numbers: a member and its concept, or a concept and its parent.
Links: TypeAlias = list[tuple[int, int]]


def put_under(snapshot: Snapshot, concepts: Numbers, wanted: Numbers) -> tuple[Numbers, Links, Links]:
    """The concepts that hold any of the wanted entities, and the memberships and subclass steps
    that put these there.

    Every membership below a concept is given, with the shortest way up from there: of two the one
    through the parents that come first by name. So every store gives the same.
    """
    get = snapshot.arrays.get
    children: dict[int, list[int]] = {}
    for child, parent in zip(get("sub.c").tolist(), get("sub.p").tolist(), strict=True):
        children.setdefault(parent, []).append(child)
    memberships: dict[tuple[int, int], None] = {}
    steps: dict[tuple[int, int], None] = {}
    holding: list[int] = []
    members, of = get("mem.e"), get("mem.c")
    for concept in concepts[snapshot.entity_kind[concepts] == EntityKind.CONCEPT].tolist():
        up = {concept: concept}
        waiting = deque([concept])
        while waiting:
            below = waiting.popleft()
            low, high = np.searchsorted(of, [below, below + 1])
            direct = members[low:high]
            found = direct[among(direct, wanted, snapshot.entities)].tolist()
            holding.extend([concept] if found else [])
            memberships.update(((entity, below), None) for entity in found)
            at = below
            while found and at != concept:
                steps[at, up[at]] = None
                at = up[at]
            for child in sorted(children.get(below, ())):
                if child not in up:
                    up[child] = below
                    waiting.append(child)
    return np.unique(np.array(holding, np.int32)), list(memberships), list(steps)


# -- inputs of one group ---------------------------------------------------------------------------
# What one row of a table asks of the inputs of its group: the rows of the graph behind it, and what
# its ways went over.


def row_asked(run: Run, plan: Table, row: int) -> dict[int, Asked]:
    """For the `Group` below a table, by identity, what a row of the table wants of its inputs."""
    grid: Grid = run.results[id(plan)]
    places = grid.members[row]
    node: Node = plan
    while not isinstance(node, Group):
        (node,) = node.inputs()
    ways = GroupRows(run, node, places)
    steps = ways.gone_over()
    rows = np.unique(ways.chosen)
    own = Demand(entities=rows) if isinstance(node.of, Entities) else Demand(statements=rows)
    asked: Asked = [(node.of, own)]
    for number, facts in enumerate(node.facts):
        asked.append((facts, Demand(statements=steps.get(number, rows[:0]))))
    return {id(node): asked}


# -- demand on each input --------------------------------------------------------------------------
# Demand of each operator on its inputs: which part of them led to the part of its result that is wanted.


class Demand:
    """What is wanted of one operator's result: entities, statements (that are its facts, or carry its
    values), and rows that bind variables.
    """

    __slots__ = ("entities", "rows", "statements")

    def __init__(self, entities: Numbers = EMPTY, statements: Numbers = EMPTY, rows: RowSet | None = None) -> None:
        self.entities, self.statements, self.rows = entities, statements, rows

    def joined(self, other: Demand, snapshot: Snapshot) -> Demand:
        """What either wants."""
        return Demand(
            union([self.entities, other.entities], snapshot.entities),
            union([self.statements, other.statements], snapshot.statements),
            other.rows if self.rows is None else self.rows if other.rows is None else self.rows.with_rows(other.rows),
        )


Asked: TypeAlias = list[tuple[Node, Demand]]


def whole(run: Run, node: Node) -> Demand:
    """Everything an operator gave."""
    if isinstance(node, alg.Entities):
        return Demand(entities=run.entities(node))
    if isinstance(node, alg.Facts):
        return Demand(statements=run.facts(node).all())
    found: Any = run.results[id(node)]
    if isinstance(node, alg.Solutions):
        return Demand(rows=found)
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


# -- evidence --------------------------------------------------------------------------------------
# Every operator is asked, outputs first, which part of its inputs led to the part of its result that
# is wanted. What comes together is a proof: a graph of it alone gives each operator what is wanted of
# it, and nothing that it had not given before. So what was looked at and led to nothing is no
# evidence; what was taken away (`Minus`) is, as far as the rest of the evidence names it, since it
# would come back otherwise. What operators carry on, read, and want everything of they say themselves.


@dataclass(slots=True)
class EvidenceTrail:
    """What an answer rests on, by number; `demands` is what is wanted of each operator, by
    identity.

    `statements` are sorted. `entities` are those that count by themselves, sorted: found by name,
    as a row, as one of all. `read` is what each operator read of the statements, memberships and subclass
    steps, by its identity.
    """

    run: Run
    demands: dict[int, Demand] = field(default_factory=dict)
    read: dict[int, tuple[list[Numbers], Collection[tuple[int, int]], Collection[tuple[int, int]]]] = field(default_factory=dict)
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


def trace_back(run: Run, plan: Node, asked: Mapping[int, Asked] | None = None, demand: Demand | None = None) -> EvidenceTrail:
    """What an execution's answer rests on; `asked` is what some operators, by identity, ask of their
    inputs for a part of it, `demand` a part that is wanted of the answer.
    """
    named = EMPTY
    while True:
        trail = _walk(run, plan, named, asked or {}, whole(run, plan) if demand is None else demand)
        found = trail.named()
        if len(found) == len(named) or not any(isinstance(node, alg.Minus) for node in run.order):
            return trail
        # What was taken away counts where it is named, and its evidence names more.
        named = union([named, found], run.snapshot.entities)


def _walk(run: Run, plan: Node, named: Numbers, of_part: Mapping[int, Asked], wanted_of: Demand) -> EvidenceTrail:
    snapshot, trail = run.snapshot, EvidenceTrail(run)
    demands = trail.demands
    demands[id(plan)] = wanted_of
    entities: list[Numbers] = []
    within: list[tuple[alg.AllEntities, Numbers]] = []
    for node in reversed(run.order):
        check()
        demand = demands.get(id(node))
        if demand is None:
            continue
        asked = of_part.get(id(node))
        if type(node).__module__ == "condgraph.engine.algebra.solutions":
            # Imported late: most plans have no rows.
            row_evidence = import_module("condgraph.engine.execute.row_evidence")
            led = row_evidence.row_evidence(run, node, demand)
            asked = led.asked
            entities.extend(led.entities)
            trail.read[id(node)] = led.statements, led.memberships, led.subclasses
        elif node.facets.reads == "statements":
            # The best value of a key needs those that it is better than, whoever wants it.
            trail.read[id(node)] = [competitors(run, node) if isinstance(node, alg.ArgExtreme) else demand.statements], (), ()
        elif node.facets.reads == "members":
            (concepts,) = node.inputs()
            held, members, steps = put_under(snapshot, run.results[id(concepts)], demand.entities)
            trail.read[id(node)] = [], members, steps
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
            demands[id(child)] = wanted if known is None else known.joined(wanted, snapshot)
    trail.statements = union([part for found, _, _ in trail.read.values() for part in found], snapshot.statements)
    for each in within:
        more = _of_source(run, trail.statements, *each)
        trail.read[id(each[0])] = [more], (), ()
        trail.statements = union([trail.statements, more], snapshot.statements)
    trail.memberships = sorted({link for _, found, _ in trail.read.values() for link in found})
    trail.subclasses = sorted({link for _, _, found in trail.read.values() for link in found})
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
