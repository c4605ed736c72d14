"""Trace an answer back to the statements, memberships and entities it rests on."""

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
# The derivation of membership in a concept: stated memberships, and the subclass steps up to it.


#: Pairs of entity numbers: a member and its concept, or a concept and its parent.
Links: TypeAlias = list[tuple[int, int]]


def put_under(snapshot: Snapshot, concepts: Numbers, wanted: Numbers) -> tuple[Numbers, Links, Links]:
    """Return the concepts that contain any of the wanted entities, with the memberships and subclass steps that prove
    it.

    Every membership below a concept is returned, with the shortest path up from there: among equals the one through
    the parents that come first by name. So every store returns the same.
    """
    get = snapshot.arrays.get
    children: dict[int, list[int]] = {}
    for child, parent in zip(get("sub.c").tolist(), get("sub.p").tolist(), strict=True):
        children.setdefault(parent, []).append(child)
    memberships: dict[tuple[int, int], None] = {}
    steps: dict[tuple[int, int], None] = {}
    holding: list[int] = []
    members, member_concepts = get("mem.e"), get("mem.c")
    for concept in concepts[snapshot.entity_kind[concepts] == EntityKind.CONCEPT].tolist():
        parent_of = {concept: concept}
        waiting = deque([concept])
        while waiting:
            current = waiting.popleft()
            low, high = np.searchsorted(member_concepts, [current, current + 1])
            direct = members[low:high]
            found_members = direct[among(direct, wanted, snapshot.entities)].tolist()
            holding.extend([concept] if found_members else [])
            memberships.update(((entity, current), None) for entity in found_members)
            step = current
            while found_members and step != concept:
                steps[step, parent_of[step]] = None
                step = parent_of[step]
            for child in sorted(children.get(current, ())):
                if child not in parent_of:
                    parent_of[child] = current
                    waiting.append(child)
    return np.unique(np.array(holding, np.int32)), list(memberships), list(steps)


# -- inputs of one group ---------------------------------------------------------------------------
# The evidence of one row of a table: the rows of the graph behind it, and the statements on their paths.


def row_asked(run: Run, plan: Table, row: int) -> dict[int, Demands]:
    """Return what a row of the table needs from the inputs of its `Group`, by the identity of that operator."""
    grid: Grid = run.results[id(plan)]
    places = grid.members[row]
    node: Node = plan
    while not isinstance(node, Group):
        (node,) = node.inputs()
    group_rows = GroupRows(run, node, places)
    steps = group_rows.gone_over()
    rows = np.unique(group_rows.chosen)
    own = Demand(entities=rows) if isinstance(node.of, Entities) else Demand(statements=rows)
    demands: Demands = [(node.of, own)]
    for number, facts in enumerate(node.facts):
        demands.append((facts, Demand(statements=steps.get(number, rows[:0]))))
    return {id(node): demands}


# -- demand on each input --------------------------------------------------------------------------
# The demand of each operator on its inputs: the part of them that led to the wanted part of its result.


class Demand:
    """The wanted part of an operator's result: entities, statements (its facts, or the carriers of its values), and
    rows that bind variables.
    """

    __slots__ = ("entities", "rows", "statements")

    def __init__(self, entities: Numbers = EMPTY, statements: Numbers = EMPTY, rows: RowSet | None = None) -> None:
        self.entities, self.statements, self.rows = entities, statements, rows

    def joined(self, other: Demand, snapshot: Snapshot) -> Demand:
        """Return the union of two demands."""
        return Demand(
            union([self.entities, other.entities], snapshot.entities),
            union([self.statements, other.statements], snapshot.statements),
            other.rows if self.rows is None else self.rows if other.rows is None else self.rows.with_rows(other.rows),
        )


Demands: TypeAlias = list[tuple[Node, Demand]]


def whole(run: Run, node: Node) -> Demand:
    """Return everything that an operator returned as a demand."""
    if isinstance(node, alg.Entities):
        return Demand(entities=run.entities(node))
    if isinstance(node, alg.Facts):
        return Demand(statements=run.facts(node).all())
    result: Any = run.results[id(node)]
    if isinstance(node, alg.Solutions):
        return Demand(rows=result)
    return carriers(run, result) if isinstance(result, Bag) else Demand()


def carriers(run: Run, bag: Bag) -> Demand:
    """Return the carriers of all values of a bag."""
    snapshot = run.snapshot
    entities, statements = [], []
    for part in bag.parts:
        if part.kind in ("name", "row"):
            entities.append(distinct(part.carriers, snapshot.entities))
        elif part.kind != "given":
            statements.append(distinct(part.carriers, snapshot.statements))
    return Demand(union(entities, snapshot.entities), union(statements, snapshot.statements))


def inputs_asked(run: Run, node: Node, demand: Demand, named: Numbers) -> Demands:
    """Return the demand on each input."""
    if isinstance(node, alg.Minus):
        # The entities that were taken away, as far as the evidence names them.
        removed = intersect(run.entities(node.right), run.entities(node.left), run.snapshot.entities)
        return [(node.left, demand), (node.right, Demand(intersect(removed, named, run.snapshot.entities)))]
    function = _DEMANDS.get(type(node))
    return _input_demands(run, node, demand) if function is None else function(run, node, demand)


def _input_demands(run: Run, node: Node, demand: Demand) -> Demands:
    """Return the demand on inputs that are carried on (the wanted part), and on other and whole inputs (everything)."""
    inputs = node.inputs()
    parts = {id(child) for child in carried(node)} - {id(child) for child in whole_inputs(node)}
    if len(inputs) == 1 and parts:
        return [(inputs[0], demand)]
    return [(child, _restricted(run, child, demand) if id(child) in parts else whole(run, child)) for child in watched(inputs, 16)]


def _restricted(run: Run, child: Node, demand: Demand) -> Demand:
    available = whole(run, child)
    if available.entities is demand.entities and available.statements is demand.statements:
        return available
    return Demand(
        intersect(available.entities, demand.entities, run.snapshot.entities),
        intersect(available.statements, demand.statements, run.snapshot.statements),
    )


def _everything(run: Run, node: Node, demand: Demand) -> Demands:
    return [(child, whole(run, child)) for child in node.inputs()]


def _extreme_demands(run: Run, node: alg.ArgExtreme, demand: Demand) -> Demands:
    return [(node.of, Demand(distinct(run.snapshot.subjects(competitors(run, node)), run.snapshot.entities)))]


def _reached(run: Run, node: alg.Reached, demand: Demand) -> Demands:
    snapshot, facts = run.snapshot, run.facts(node.facts)
    numbers = facts.all()
    if facts.reach == "object":
        numbers = numbers[: snapshot.split(numbers)]
        ends = snapshot.relation_object[numbers]
    else:
        ends = snapshot.subjects(numbers)
    return [(node.facts, Demand(statements=numbers[among(ends, demand.entities, snapshot.entities)]))]


def _holders(run: Run, node: alg.SubjectsOf, demand: Demand) -> Demands:
    snapshot, all_carriers = run.snapshot, carriers(run, run.values(node.values))
    subjects = snapshot.subjects(all_carriers.statements)
    chosen = all_carriers.statements[among(subjects, demand.entities, snapshot.entities)]
    return [(node.values, Demand(intersect(all_carriers.entities, demand.entities, snapshot.entities), chosen))]


def _referents(run: Run, node: alg.Referents, demand: Demand) -> Demands:
    """Return the values that are, or name, the wanted entities."""
    snapshot, bag = run.snapshot, run.values(node.values)
    cells = bag.cells()
    kinds, refs = cells["kind"], cells["ref"]
    is_wanted = (kinds == Kind.ENTITY) & np.isin(refs, demand.entities)
    is_wanted |= (kinds == Kind.TEXT) & np.isin(refs, snapshot.entity_name.take(demand.entities))
    return [(node.values, carriers(run, bag.take(is_wanted)))]


def _namesakes(run: Run, node: alg.SameName, demand: Demand) -> Demands:
    entities, names = run.entities(node.of), run.snapshot.entity_name
    return [(node.of, Demand(entities[np.isin(names.take(entities), names.take(demand.entities))]))]


def _scan(run: Run, node: alg.Scan, demand: Demand) -> Demands:
    if node.of is None:
        return []
    snapshot, numbers = run.snapshot, demand.statements
    ends = snapshot.relation_object[numbers] if node.anchor == "object" else snapshot.subjects(numbers)
    return [(node.of, Demand(distinct(ends, snapshot.entities)))]


def _where_demands(run: Run, node: alg.Where, demand: Demand) -> Demands:
    if isinstance(node.condition, alg.Among):
        numbers = demand.statements[: run.snapshot.split(demand.statements)]
        objects = distinct(run.snapshot.relation_object[numbers], run.snapshot.entities)
        return [(node.facts, demand), (node.condition.entities, Demand(objects))]
    return _tested(run, node, demand)


def _tested(run: Run, node: alg.Where | alg.WhereQualifier | alg.WhereValidity | alg.DuringAny, demand: Demand) -> Demands:
    """Return the wanted facts, and everything that they were compared with."""
    return [(node.facts, demand), *((child, whole(run, child)) for child in node.inputs() if child is not node.facts)]


def _filter_demands(run: Run, node: alg.FilterValues, demand: Demand) -> Demands:
    """Return the wanted values, and what they were compared with: for `Equals`, only the values that they equal."""
    demands: Demands = [(node.values, demand)]
    if isinstance(node.condition, alg.Equals):
        others = run.values(node.condition.values)
        equal = equal_cells(run, others.cells(), run.values(node))
        return [*demands, (node.condition.values, carriers(run, others.take(equal)))]
    return demands + [(child, whole(run, child)) for child in node.condition.inputs()]


def _some(run: Run, node: alg.AnySatisfies, demand: Demand) -> Demands:
    bag = run.values(node.values)
    satisfied = bag.take(holds(run, node.condition, bag.cells()))
    # If nothing satisfies the condition, all values prove the answer no.
    demands: Demands = [(node.values, carriers(run, satisfied if len(satisfied) else bag))]
    return demands + [(child, whole(run, child)) for child in node.condition.inputs()]


def _choose(run: Run, node: alg.Choose, demand: Demand) -> Demands:
    taken = node.then if run.results[id(node)] is run.results[id(node.then)] else node.otherwise
    return [(node.condition, whole(run, node.condition)), (taken, demand)]


def _shown(run: Run, node: alg.Shown, demand: Demand) -> Demands:
    return [(node.values, _restricted(run, node.values, demand)), (node.rows, whole(run, node.rows))]


def _extreme(run: Run, node: alg.Extreme, demand: Demand) -> Demands:
    """Return all of the best values, however few are wanted, so that nothing else is the best without them. They
    suffice, unless the other values decide which type and unit competes, or that texts do.
    """
    of = node.values
    return [(of, whole(run, node if uniform(run.values(of).cells()) else of))]


def _mode(run: Run, node: alg.Mode, demand: Demand) -> Demands:
    """Return all of the most frequent values; for the least frequent return all values, because fewer of them would
    change what is rare.
    """
    return [(node.values, whole(run, node if node.direction == "largest" else node.values))]


_DEMANDS: Final[dict[type[Node], Callable[[Run, Any, Demand], Demands]]] = {
    alg.ArgExtreme: _extreme_demands,
    alg.Reached: _reached,
    alg.SubjectsOf: _holders,
    alg.Referents: _referents,
    alg.SameName: _namesakes,
    alg.Scan: _scan,
    alg.Where: _where_demands,
    alg.WhereQualifier: _tested,
    alg.WhereValidity: _tested,
    alg.DuringAny: _tested,
    alg.FilterValues: _filter_demands,
    alg.Distinct: _everything,
    alg.AnySatisfies: _some,
    alg.Choose: _choose,
    alg.Shown: _shown,
    alg.Extreme: _extreme,
    alg.Mode: _mode,
}


# -- evidence --------------------------------------------------------------------------------------
# From the output to the inputs, each operator determines which part of its inputs led to the wanted
# part of its result. Together this is a proof: on a graph of the evidence alone, each operator returns
# its wanted part, and nothing that it did not return before. So facts that were read and led to nothing
# are not evidence; entities that `Minus` took away are, as far as the other evidence names them, since
# they would reappear otherwise. The facets of operators define what they carry, read and need in full.


@dataclass(slots=True)
class EvidenceTrail:
    """The evidence of an answer, by number; `demands` is the wanted part of each operator's result, by identity.

    `statements` are sorted. `entities`, sorted, are evidence by themselves: found by name, as a row, or as one of all
    entities. `read` lists the statements, memberships and subclass steps that each operator read, by its identity.
    """

    run: Run
    demands: dict[int, Demand] = field(default_factory=dict)
    read: dict[int, tuple[list[Numbers], Collection[tuple[int, int]], Collection[tuple[int, int]]]] = field(default_factory=dict)
    statements: Numbers = field(default_factory=lambda: EMPTY)
    memberships: Links = field(default_factory=list)
    subclasses: Links = field(default_factory=list)
    entities: Numbers = field(default_factory=lambda: EMPTY)

    def mentioned(self) -> Numbers:
        """Return the entities that the statements, memberships and subclass steps name, sorted."""
        snapshot = self.run.snapshot
        relations = self.statements[: snapshot.split(self.statements)]
        _, qualifiers = snapshot.qualifiers(self.statements)
        kinds, refs = (snapshot.arrays.get(f"q.{name}").take(qualifiers) for name in ("kind", "ref"))
        links = [end for link in (*self.memberships, *self.subclasses) for end in link]
        parts = (snapshot.subjects(self.statements), snapshot.relation_object[relations], refs[kinds == Kind.ENTITY], links)
        return distinct(np.concatenate(parts).astype(np.int32), snapshot.entities)

    def named(self) -> Numbers:
        """Return all entities of a graph made of the evidence, sorted."""
        return union([self.mentioned(), self.entities], self.run.snapshot.entities)


def trace_back(run: Run, plan: Node, asked: Mapping[int, Demands] | None = None, demand: Demand | None = None) -> EvidenceTrail:
    """Return the evidence of an answer; `asked` replaces the demand of some operators (by identity) on their inputs,
    `demand` is the wanted part of the answer.
    """
    named = EMPTY
    while True:
        trail = _walk(run, plan, named, asked or {}, whole(run, plan) if demand is None else demand)
        entities = trail.named()
        if len(entities) == len(named) or not any(isinstance(node, alg.Minus) for node in run.order):
            return trail
        # Entities that were taken away count if they are named, and their evidence may name more.
        named = union([named, entities], run.snapshot.entities)


def _walk(run: Run, plan: Node, named: Numbers, of_part: Mapping[int, Demands], wanted_of: Demand) -> EvidenceTrail:
    snapshot, trail = run.snapshot, EvidenceTrail(run)
    demands = trail.demands
    demands[id(plan)] = wanted_of
    entities: list[Numbers] = []
    of_sources: list[tuple[alg.AllEntities, Numbers]] = []
    for node in reversed(run.order):
        check()
        demand = demands.get(id(node))
        if demand is None:
            continue
        input_demands = of_part.get(id(node))
        if type(node).__module__ == "condgraph.engine.algebra.solutions":
            # Imported late: most plans have no rows.
            row_evidence = import_module("condgraph.engine.execute.row_evidence")
            row_result = row_evidence.row_evidence(run, node, demand)
            input_demands = row_result.demands
            entities.extend(row_result.entities)
            trail.read[id(node)] = row_result.statements, row_result.memberships, row_result.subclasses
        elif node.facets.reads == "statements":
            # The proof of the best value needs its competitors, whatever part is wanted.
            trail.read[id(node)] = [competitors(run, node) if isinstance(node, alg.ArgExtreme) else demand.statements], (), ()
        elif node.facets.reads == "members":
            (concepts,) = node.inputs()
            concept_numbers, members, steps = put_under(snapshot, run.results[id(concepts)], demand.entities)
            trail.read[id(node)] = [], members, steps
            input_demands = [(concepts, Demand(concept_numbers))]
        elif node.facets.reads == "entities":
            # The entities are evidence themselves: no statement leads to them.
            entities.append(demand.entities)
            if isinstance(node, alg.Neighbour):
                entities.append(_skipped_rows(run, node))
            elif isinstance(node, alg.AllEntities) and node.source is not None and not node.own:
                of_sources.append((node, demand.entities))
        for child, wanted in inputs_asked(run, node, demand, named) if input_demands is None else input_demands:
            previous = demands.get(id(child))
            demands[id(child)] = wanted if previous is None else previous.joined(wanted, snapshot)
    trail.statements = union([part for found, _, _ in trail.read.values() for part in found], snapshot.statements)
    for pair in of_sources:
        scoped = _of_source(run, trail.statements, *pair)
        trail.read[id(pair[0])] = [scoped], (), ()
        trail.statements = union([trail.statements, scoped], snapshot.statements)
    trail.memberships = sorted({link for _, links, _ in trail.read.values() for link in links})
    trail.subclasses = sorted({link for _, _, links in trail.read.values() for link in links})
    trail.entities = union(entities, snapshot.entities)
    return trail


def _skipped_rows(run: Run, node: alg.Neighbour) -> Numbers:
    """Return the rows that were skipped and those that were found, which together determine the next row."""
    if abs(node.distance) <= 1:
        return run.entities(node)
    distances = range(1, abs(node.distance) + 1)
    rows = [neighbour(run, replace(node, distance=distance if node.distance > 0 else -distance)) for distance in distances]
    return union(rows, run.snapshot.entities)


def _of_source(run: Run, statements: Numbers, node: alg.AllEntities, wanted: Numbers) -> Numbers:
    """Return, for wanted entities of a source that are not rows of it, one statement each that makes them part of it."""
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
    """Return the subjects and objects of sorted statements, and the statement of each."""
    relations = numbers[: run.snapshot.split(numbers)]
    ends = [run.snapshot.subjects(numbers), run.snapshot.relation_object[relations]]
    return np.concatenate(ends), np.concatenate([numbers, relations])
