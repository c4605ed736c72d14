"""The statements and sets that a plan rests on, which a store returns so that the engine can run the
same plan again in process.

A target that answers plans elsewhere fetches the units of a plan, makes a small snapshot of them,
and runs the plan there: that finishes what needs the client's code, and gives the evidence of an
answer and the warnings of its aggregates, which are equal to those in process because the code is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, passed, passing, postorder
from condgraph.engine.execute.run import Outcome, Run
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.snapshot import Snapshot

#: Everything that has a name.
_ALL: Final = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))


@dataclass(frozen=True, slots=True)
class Unit:
    """Something to fetch: facts, or a set of entities, which stands for the outcome of the
    operators `known`.

    `compiled` is what the store runs, which is less filtered than the operator of the plan where
    that needs the client. Of members `concepts` says which memberships are fetched as well. `named`
    is the operator that meets entities by names which only the client knows: of these a store may
    fetch less than `compiled`, where it can tell.
    """

    compiled: Node
    known: tuple[Node, ...] = ()
    concepts: alg.Entities | None = None
    named: Node | None = None


def units(plan: Node, beyond: set[int]) -> list[Unit]:
    """What has to be fetched for a plan; `beyond` are the operators (by identity) that the store
    cannot give.
    """
    order = postorder(plan)
    takers: dict[int, list[Node]] = {}
    for node in order:
        for child in node.inputs():
            takers.setdefault(id(child), []).append(node)
    found: list[Unit] = []
    for node in order:
        taken_by = takers.get(id(node), [])
        if isinstance(node, alg.Facts):
            through = [taker for taker in taken_by if isinstance(taker, alg.Facts) and passed(taker) is node]
            if len(through) < len(taken_by) or node is plan:
                found.append(Unit(_relaxed(node, beyond)))
        elif isinstance(node, alg.ArgExtreme):
            found.append(Unit(_relaxed(alg.Scan(node.of, (node.key,), family="attribute"), beyond)))
        elif isinstance(node, alg.Members):
            found.extend(_members(node, taken_by, beyond))
        elif node.facets.reads == "entities" and not isinstance(node, alg.AllEntities):
            if id(node) not in beyond:
                found.append(Unit(node, (node,)))
                found.extend(_gone_past(node) if isinstance(node, alg.Neighbour) else ())
            elif isinstance(node, alg.Neighbour):
                found.extend(map(Unit, _rows(node)))
            elif not (taken_by and all(isinstance(taker, (alg.Scan, alg.Where)) for taker in taken_by)):
                # Ends of statements come with them; others have to be looked for.
                found.append(Unit(_ALL, named=node))
        elif isinstance(node, alg.AllEntities) and not (taken_by and all(_bounds(taker, node) for taker in taken_by)):
            found.append(Unit(node, (node,)))
            if node.source is not None and node.kinds != (EntityKind.ROW,):
                # That an entity is one of the source is said by its statements.
                found.append(Unit(alg.Scan(None, None, source=node.source)))
    return found


def _members(node: alg.Members, taken_by: list[Node], beyond: set[int]) -> Iterator[Unit]:
    if id(node) in beyond:
        # Which concepts they are only the client will know: all memberships, then.
        yield Unit(alg.AllEntities((EntityKind.ENTITY, EntityKind.ROW)), concepts=alg.AllEntities((EntityKind.CONCEPT,)))
        return
    within = [taker for taker in taken_by if isinstance(taker, alg.Intersect)]
    whole: Node = within[0] if len(within) == len(taken_by) == 1 and id(within[0]) not in beyond else node
    yield Unit(whole, (node,), node.concepts)


def _gone_past(node: alg.Neighbour) -> Iterator[Unit]:
    """The rows between: the evidence has them, since without them another row would be the next
    one.
    """
    step = 1 if node.distance > 0 else -1
    return (Unit(replace(node, distance=way)) for way in range(step, node.distance, step))


def _rows(node: alg.Neighbour) -> list[alg.AllEntities]:
    """The rows of the sources that a neighbour is looked for in."""
    sources = {part.source for part in postorder(node) if isinstance(part, (alg.Scan, alg.AllEntities)) and part.source}
    return [alg.AllEntities((EntityKind.ROW,), source) for source in sorted(sources)] or [alg.AllEntities((EntityKind.ROW,))]


def _bounds(taker: Node, every: alg.AllEntities) -> bool:
    """Whether it takes no more of every entity than what statements or other sets lead to."""
    if isinstance(taker, alg.Intersect):
        return any(part is not every and not isinstance(part, alg.AllEntities) for part in taker.parts)
    return isinstance(taker, alg.Scan) or (isinstance(taker, alg.Minus) and taker.right is every)


def _relaxed(facts: alg.Facts, beyond: set[int]) -> alg.Facts:
    """The same facts without what needs the client."""
    if beyond.isdisjoint(map(id, postorder(facts))):
        return facts
    if isinstance(facts, alg.Scan):
        return replace(facts, of=None)
    of = passed(facts)
    assert of is not None
    inner = _relaxed(of, beyond)
    others = [child for child in facts.inputs() if child is not of]
    if any(not beyond.isdisjoint(map(id, postorder(child))) for child in others):
        return inner
    return passing(facts, inner)


class WitnessRun(Run):
    """An execution on what was fetched, in which the sets that the store gave are known, by the
    operator.
    """

    __slots__ = ("_beyond",)

    def __init__(self, snapshot: Snapshot, known: Mapping[int, Numbers], beyond: Collection[int] = ()) -> None:
        super().__init__(snapshot)
        self.results.update(known)
        self._beyond = beyond

    def execute(self, plan: Node, order: list[Node] | None = None) -> Outcome:
        """Run a plan. Left out is only what the client works out (`beyond`); of the rest not all is
        here, the store counts it.
        """
        known = set(self.results)
        outcome = super().execute(plan, order)
        self.left_out.clear()
        for node in self.order:
            if isinstance(node, alg.FilterValues | alg.AnySatisfies) and id(node.values) in self._beyond:
                self.warn_incomparable(self.values(node.values).cells(), node.condition)
            elif node.facets.warns != alg.NEVER and id(node) in known:
                # For what it has to say of what it takes, which is here.
                self.listen(node)
        return outcome
