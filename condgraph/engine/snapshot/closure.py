"""Concepts and all that lies under them: membership closed under subclass, cycles tolerated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import EntityKind
from condgraph.engine.pieces import different


def descendants(children: dict[int, list[int]], concept: int) -> list[int]:
    """The concept and every concept below it."""
    seen = {concept}
    stack = [concept]
    while stack:
        for child in children.get(stack.pop(), ()):
            if child not in seen:
                seen.add(child)
                stack.append(child)
    return list(seen)


def closed_members(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """`con.entity`, `con.offsets`, `con.items`: for each concept the entities (no concepts) it
    holds, sorted.

    Reads `mem.e` and `mem.c` (sorted by concept), `sub.c`, `sub.p` and `ent.kind`.
    """
    kinds = columns["ent.kind"]
    concepts = np.flatnonzero(kinds == EntityKind.CONCEPT).astype(np.int32)
    entity = kinds[columns["mem.e"]] != EntityKind.CONCEPT
    members, of = columns["mem.e"][entity], columns["mem.c"][entity]
    begin, end = np.searchsorted(of, concepts), np.searchsorted(of, concepts, side="right")
    direct = {int(c): members[b:e] for c, b, e in zip(concepts, begin, end, strict=True) if e > b}
    children: dict[int, list[int]] = {}
    for child, parent in zip(columns["sub.c"].tolist(), columns["sub.p"].tolist(), strict=True):
        children.setdefault(parent, []).append(child)
    offsets = np.zeros(len(concepts) + 1, np.int64)
    items: list[NDArray[Any]] = []
    for i, concept in enumerate(concepts.tolist()):
        parts = [direct[below] for below in descendants(children, concept) if below in direct]
        found = different(np.concatenate(parts)) if parts else members[:0]
        offsets[i + 1] = offsets[i] + len(found)
        items.append(found)
    return {
        "con.entity": concepts,
        "con.offsets": offsets,
        "con.items": np.concatenate(items).astype(np.int32) if items else np.empty(0, np.int32),
    }
