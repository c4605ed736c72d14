"""Concepts and all that lies under them: membership closed under subclass, cycles tolerated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import EntityKind
from condgraph.engine.pieces import different

#: Memberships that all concepts have together, whatever the source, and times as many as it states.
MOST: Final = 1 << 28
_TIMES: Final = 300


def components(children: dict[int, list[int]], concepts: list[int]) -> Iterator[list[int]]:
    """The concepts, those that lie under each other together, what is below before what is above
    (Tarjan's strongly connected components, without recursion).
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in concepts:
        if root in index:
            continue
        waiting: list[tuple[int, Iterator[int]]] = []
        fresh: int | None = root
        while fresh is not None or waiting:
            if fresh is not None:
                index[fresh] = low[fresh] = len(index)
                path.append(fresh)
                on_path.add(fresh)
                waiting.append((fresh, iter(children.get(fresh, ()))))
                fresh = None
            concept, below = waiting[-1]
            for child in below:
                if child not in index:
                    fresh = child
                    break
                if child in on_path:
                    low[concept] = min(low[concept], index[child])
            if fresh is not None:
                continue
            waiting.pop()
            if waiting:
                above = waiting[-1][0]
                low[above] = min(low[above], low[concept])
            if low[concept] == index[concept]:
                at = len(path) - 1
                while path[at] != concept:
                    at -= 1
                found = path[at:]
                del path[at:]
                on_path.difference_update(found)
                yield found


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
    none = members[:0]
    held: dict[int, NDArray[Any]] = {}
    most, made = max(MOST, _TIMES * len(members)), 0
    for together in components(children, concepts.tolist()):
        # Concepts that hold the same share one array, so that a long chain takes little room.
        parts = {id(part): part for one in together if (part := direct.get(one)) is not None}
        for one in together:
            parts |= {id(part): part for child in children.get(one, ()) if len(part := held.get(child, none))}
        found = next(iter(parts.values()), none)
        if len(parts) > 1:
            found = different(np.concatenate([*parts.values()]))
            made += len(found)
            if made > most:
                raise _too_many(made, members)
        held |= dict.fromkeys(together, found)
    items = [held[concept] for concept in concepts.tolist()]
    offsets = np.zeros(len(concepts) + 1, np.int64)
    np.cumsum([len(one) for one in items], out=offsets[1:])
    if offsets[-1] > most:
        raise _too_many(int(offsets[-1]), members)
    return {
        "con.entity": concepts,
        "con.offsets": offsets,
        "con.items": np.concatenate(items).astype(np.int32) if items else np.empty(0, np.int32),
    }


def _too_many(count: int, members: NDArray[Any]) -> LoadError:
    return LoadError(
        f"through subclasses the concepts have more than {count:,} members together, of {len(members):,} that are stated",
        hint="such a hierarchy is deeper than any that people make",
    )
