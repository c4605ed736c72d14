"""What is known of one entity: its statements, those that point at it, its concepts, each with its
sources; on every store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.errors import UnknownNameError
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.facts import Entity, EntityKind
from condgraph.studio.names import label_ids, schema_of
from condgraph.studio.values import entity, fact

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.graph import Graph

#: Others of the same name that are listed.
_SAME: Final = 50


def around(graph: Graph, *, ident: str | None, name: str | None, most: int) -> dict[str, Any]:
    """An entity by its id, or the first of its name: at most `most` statements from it, and as many
    to it. Raises `UnknownNameError` with the nearest names.
    """
    if ident is not None and (concept := _label(graph, ident=ident)):
        return _concept(graph, concept, ident, most)
    part, whole = _part(graph, ident, name, most)
    numbers = [number] if ident is not None and (number := part.identified(ident)) >= 0 else []
    if not numbers and name is not None:
        numbers = part.named(name).tolist()
    if not numbers and name is not None and (concept := _label(graph, name=name)):
        return _concept(graph, concept, label_ids(graph)[concept], most)
    if not numbers:
        wanted = ident if ident is not None else name or ""
        raise UnknownNameError("entity", wanted, candidates=schema_of(graph).nearest_entities(wanted))
    number = numbers[0]
    one = np.array([number])
    out, into = part.touching(one), part.touching(one, backward=True)
    above, below = _links(part, number)
    entry = part.entity(number)
    # On servers the part has the homonyms of a name alone.
    others = part.named(entry.name).tolist() if whole and entry.name else numbers
    others = [other for other in others if other != number]
    return {
        "entity": entity(entry),
        "same": [entity(part.entity(other)) for other in others[:_SAME]],
        "total_same": len(others) if whole else None,
        "facts": _facts(part, out[:most]),
        "total": len(out) if whole else None,
        "pointing": _facts(part, into[:most]),
        "total_pointing": len(into) if whole else None,
        "more": len(out) > most or (not whole and _full(part, out, most)),
        "more_pointing": len(into) > most or (not whole and len(into) >= most),
        "concepts": [fact(link) for link in EvidenceList.of(part, [], above)] if above else [],
        "members": [entity(part.entity(low)) for low, _ in below[:most]],
        "total_members": len(below) if whole else None,
    }


def _label(graph: Graph, *, ident: str | None = None, name: str | None = None) -> str | None:
    """The concept that has this id or name, where it is a label and no entity."""
    return next((one for one, known in label_ids(graph).items() if known == ident or one == name), None)


def _concept(graph: Graph, name: str, ident: str, most: int) -> dict[str, Any]:
    """A concept that is a label of a database: nothing is said of it, and it has members."""
    steps = [{"function": "FindAll", "inputs": []}, {"function": "FilterConcept", "inputs": [name]}]
    found = graph.kopl(steps, limit=most)
    nothing: list[Any] = []
    return {
        "entity": entity(Entity(ident, name, EntityKind.CONCEPT)),
        "same": nothing, "total_same": None,
        "facts": nothing, "total": 0, "pointing": nothing, "total_pointing": 0, "more": False, "more_pointing": False,
        "concepts": nothing,
        "members": [entity(one) for one in found.entities],
        "total_members": len(found.entities) + found.cut,
    }  # fmt: skip


def _part(graph: Graph, ident: str | None, name: str | None, most: int) -> tuple[Snapshot, bool]:
    """A snapshot with the entity and what stands around it, and whether it is the whole graph."""
    store = graph._store_of(None)
    fetch = getattr(store, "around", None)
    if fetch is None:
        return graph.current, True
    found: Snapshot = fetch(
        [] if ident is None else [ident], [] if name is None or ident is not None else [name], most, values=True, concepts=True
    )
    return found, False


def _full(part: Snapshot, out: Any, most: int) -> bool:
    """Whether one of the two queries from the entity gave as many as it may."""
    relations = part.split(out)
    return max(relations, len(out) - relations) >= most


def _facts(part: Snapshot, numbers: Any) -> list[dict[str, Any]]:
    found = [fact(one) for one in EvidenceList.of(part, numbers.tolist(), [])]
    return sorted(found, key=lambda one: (one["predicate"], one["subject"]["name"], one["object"]["text"]))


def _links(part: Snapshot, number: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The memberships of an entity, and of a concept those of its members."""
    get = part.arrays.get
    entities, concepts = get("mem.e"), get("mem.c")
    above = sorted({(number, int(concepts[i])) for i in np.flatnonzero(entities == number)})
    low, high = np.searchsorted(concepts, [number, number + 1])
    below = [(one, number) for one in np.unique(entities[low:high]).tolist()]
    return above, below
