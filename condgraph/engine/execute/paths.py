"""Fast execution of plans that follow relations from names, without the operators.

Prepared programs are run often, and most are such paths: names, relations, set operations, and the names or number of
the entities reached. Small sets are Python's, which are faster than any call of NumPy; larger ones are sorted arrays,
as elsewhere. The result equals that of the operators; a plan with any other operator has no path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import ByName, Count, Entities, Intersect, Names, Node, Reached, Scan, Union
from condgraph.engine.bounds import check
from condgraph.engine.execute.sets import distinct
from condgraph.engine.snapshot.snapshot import take_ranges

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The largest set that is handled in Python instead of NumPy.
_SMALL: Final = 24
#: A set of entities: a list or a set of numbers, or a sorted array; without repeats.
_Set = Collection[int] | NDArray[np.int32]
#: A step returns a set, given the entities of the names and the sets of the earlier steps.
_Step = Callable[[list[_Set]], _Set]


class Path:
    """A plan as steps over sets. The entities of the parameters `names` are the first sets."""

    __slots__ = ("_steps", "counted", "names", "snapshot")

    def __init__(self, snapshot: Snapshot, names: tuple[str, ...], steps: list[_Step], counted: bool) -> None:
        self.snapshot, self.names, self._steps, self.counted = snapshot, names, steps, counted

    def run(self, values: Mapping[str, str]) -> list[int] | None:
        """Return the entities in order; None if a name is unknown."""
        named = self.snapshot.named
        sets: list[_Set] = []
        for name in self.names:
            entities = named(values[name]).tolist()
            if not entities:
                return None
            sets.append(entities)
        for step in self._steps:
            sets.append(step(sets))
        last = sets[-1]
        return last.tolist() if isinstance(last, np.ndarray) else sorted(last)


def path_of(snapshot: Snapshot, plan: Node, order: list[Node], names: Mapping[int, str]) -> Path | None:
    """Return the path of a plan; None if it has none, or if the ends of its predicates need too much memory. `names`
    maps the ids of operators to the parameters that give their entities.
    """
    root = plan.entities if isinstance(plan, Names) else plan.of if isinstance(plan, Count) else plan
    if not isinstance(root, Entities):
        return None
    parameters = tuple(dict.fromkeys(names.values()))
    places = {id(node): parameters.index(names[id(node)]) for node in order if id(node) in names}
    steps: list[_Step] = []
    for node in order:
        if id(node) in places or isinstance(node, Scan) or node is plan is not root:
            continue
        step = _step(snapshot, node, places)
        if step is None:
            return None
        places[id(node)] = len(parameters) + len(steps)
        steps.append(step)
    if places.get(id(root)) != len(parameters) + len(steps) - 1:
        return None
    return Path(snapshot, parameters, steps, isinstance(plan, Count))


def _step(snapshot: Snapshot, node: Node, places: Mapping[int, int]) -> _Step | None:
    if isinstance(node, ByName):
        entities = [number for name in node.names for number in snapshot.named(name).tolist()]
        return lambda sets: entities
    if isinstance(node, Intersect | Union):
        parts = [places.get(id(part)) for part in node.parts]
        if None in parts:
            return None
        intersected = isinstance(node, Intersect)
        numbers = [part for part in parts if part is not None]
        return lambda sets: _intersection_or_union([sets[number] for number in numbers], whole=intersected)
    return _hop(snapshot, node, places) if isinstance(node, Reached) else None


def _hop(snapshot: Snapshot, node: Reached, places: Mapping[int, int]) -> _Step | None:
    scan = node.facts
    if not isinstance(scan, Scan) or scan.of is None or scan.source is not None or scan.family != "relation":
        return None
    input_index = places.get(id(scan.of))
    if input_index is None or scan.anchor == scan.reach:
        return None
    ends = snapshot.ends(scan.predicates, backward=scan.anchor == "object")
    if ends is None:
        return None
    offsets, items = ends
    first, item_view, size = offsets.data, items.data, snapshot.entities

    def hop(sets: list[_Set]) -> _Set:
        entities = sets[input_index]
        if len(entities) == 1:
            (entity,) = entities
            return item_view[first[entity] : first[entity + 1]].tolist()
        if len(entities) <= _SMALL:
            reached: set[int] = set()
            for entity in entities:
                reached.update(item_view[first[entity] : first[entity + 1]].tolist())
            return reached
        check()
        numbers = entities if isinstance(entities, np.ndarray) else np.fromiter(entities, np.int32, len(entities))
        return distinct(take_ranges(items, offsets.take(numbers), offsets[1:].take(numbers)), size)

    return hop


def _intersection_or_union(sets: list[_Set], *, whole: bool) -> _Set:
    check()
    first, *further = (set(set_.tolist()) if isinstance(set_, np.ndarray) else set(set_) for set_ in sets)
    return first.intersection(*further) if whole else first.union(*further)
