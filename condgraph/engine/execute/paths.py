"""Fast execution of plans that follow relations from names, without the operators.

A prepared program is run often, and most are such paths: names, relations followed, sets joined,
and the names of what was reached, or their number. Small sets are Python's, which are quicker than
any call of NumPy; larger ones are sorted arrays, as everywhere. What such a plan gives is what its
operators give; a plan with anything else in it has no path.
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

#: From so many entities on, the ends of their statements are taken by NumPy.
_SMALL: Final = 24
#: A set of entities: a list or a set of numbers, or a sorted array; without repeats.
_Set = Collection[int] | NDArray[np.int32]
#: A step: the sets of the steps before, and the entities of the names, to a set.
_Step = Callable[[list[_Set]], _Set]


class Path:
    """A plan as steps over sets. `names` are the parameters whose entities come first."""

    __slots__ = ("_steps", "counted", "names", "snapshot")

    def __init__(self, snapshot: Snapshot, names: tuple[str, ...], steps: list[_Step], counted: bool) -> None:
        self.snapshot, self.names, self._steps, self.counted = snapshot, names, steps, counted

    def run(self, values: Mapping[str, str]) -> list[int] | None:
        """The entities, in order; None where a name is not known."""
        named = self.snapshot.named
        sets: list[_Set] = []
        for name in self.names:
            found = named(values[name]).tolist()
            if not found:
                return None
            sets.append(found)
        for step in self._steps:
            sets.append(step(sets))
        last = sets[-1]
        return last.tolist() if isinstance(last, np.ndarray) else sorted(last)


def path_of(snapshot: Snapshot, plan: Node, order: list[Node], names: Mapping[int, str]) -> Path | None:
    """The path of a plan; None where it has none, or the ends of its predicates take too much
    memory. `names` are the parameters by the ids of the operators that give their entities.
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
        found = [number for name in node.names for number in snapshot.named(name).tolist()]
        return lambda sets: found
    if isinstance(node, Intersect | Union):
        parts = [places.get(id(part)) for part in node.parts]
        if None in parts:
            return None
        whole = isinstance(node, Intersect)
        numbers = [part for part in parts if part is not None]
        return lambda sets: _joined([sets[number] for number in numbers], whole=whole)
    return _hop(snapshot, node, places) if isinstance(node, Reached) else None


def _hop(snapshot: Snapshot, node: Reached, places: Mapping[int, int]) -> _Step | None:
    scan = node.facts
    if not isinstance(scan, Scan) or scan.of is None or scan.source is not None or scan.family != "relation":
        return None
    at = places.get(id(scan.of))
    if at is None or scan.anchor == scan.reach:
        return None
    ends = snapshot.ends(scan.predicates, backward=scan.anchor == "object")
    if ends is None:
        return None
    offsets, items = ends
    first, view, size = offsets.data, items.data, snapshot.entities

    def hop(sets: list[_Set]) -> _Set:
        of = sets[at]
        if len(of) == 1:
            (one,) = of
            return view[first[one] : first[one + 1]].tolist()
        if len(of) <= _SMALL:
            found: set[int] = set()
            for one in of:
                found.update(view[first[one] : first[one + 1]].tolist())
            return found
        check()
        numbers = of if isinstance(of, np.ndarray) else np.fromiter(of, np.int32, len(of))
        return distinct(take_ranges(items, offsets.take(numbers), offsets[1:].take(numbers)), size)

    return hop


def _joined(sets: list[_Set], *, whole: bool) -> _Set:
    check()
    first, *others = (set(one.tolist()) if isinstance(one, np.ndarray) else set(one) for one in sets)
    return first.intersection(*others) if whole else first.union(*others)
