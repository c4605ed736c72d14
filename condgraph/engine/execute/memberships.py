"""What puts entities under a concept: the memberships that were stated, and the subclass steps
between.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from condgraph.engine.execute.sets import Numbers, among
from condgraph.engine.facts import EntityKind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

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
