"""Puts the direct concepts of entities on them as further labels."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout import schema as layout
from condgraph.cypher.layout.schema import ENTITY, GRAPH, MAX_NAME, quote
from condgraph.engine.errors import StoreError, UnsupportedError
from condgraph.engine.facts import EntityKind

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection, Transaction
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- Which concepts become labels --------------------------------------------------------------------
# condgraph's own queries do not read these labels: they are for users. A graph's node states which labels
# its entities carry, with counts (`labels`, as JSON; absent without labels), and during a load which they
# may carry (`labelling`). Labels that other applications use are avoided: their `MATCH (p:Person)` finds
# no entities of a graph, unless the graph's label came first.


#: Most labels of a graph, its commonest concepts: Browser and models read the whole list.
LIMIT: Final = 200
#: Disjoint labels that together cover all nodes of condgraph.
_NODES: Final = (
    *(layout.ENTITY, layout.VALUE, layout.STATEMENT, layout.QUALIFIER, layout.GRAPH, layout.SOURCE, layout.PREDICATE),
    *(layout.LOAD, layout.FORMER, layout.EDIT, layout.VECTORS, layout.EMBEDDING),
)
#: Prefix of the layout's labels, constraints and indexes, in lower case.
_OURS: Final = "condgraph"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: Counts the nodes of other applications, from counts that the server stores.
_COUNT_OTHERS: Final = (
    "CALL () { MATCH (n) RETURN count(n) AS every } "
    + " ".join(f"CALL () {{ MATCH (n:{label}) RETURN count(n) AS n{i} }}" for i, label in enumerate(_NODES))
    + f" RETURN every - {' - '.join(f'n{i}' for i in range(len(_NODES)))} AS count"
)
_SCHEMA: Final = tuple(
    f"SHOW {what} YIELD entityType, labelsOrTypes WHERE entityType = 'NODE' RETURN labelsOrTypes AS labels"
    for what in ("INDEXES", "CONSTRAINTS")
)
#: What a load does with labels.
_TRIED: Final = f"CREATE (e:{ENTITY}:$($labels)) REMOVE e:$($labels) SET e:$($labels)"
_LABELS: Final = f"MATCH (g:{GRAPH}) WHERE g.labels IS NOT NULL OR g.labelling IS NOT NULL RETURN g.name, g.labels, g.labelling"


def usable(name: str) -> bool:
    """Tell whether the name of a concept can be a label.

    It needs a letter, no control characters, at most 1,000 bytes, and another prefix than the labels of the layout.

    >>> usable("head of state"), usable("CondgraphEntity"), usable("")
    (True, False, False)
    """
    plain = bool(name.strip()) and not _CONTROL.search(name) and len(name.encode()) <= MAX_NAME
    return plain and not name.lower().startswith(_OURS)


class Labels:
    """The labels of the entities of a snapshot: their direct concepts among `names`, or all.

    A concept itself gets none: it has a label of its own.
    """

    def __init__(self, snapshot: Snapshot, names: Collection[str] | None = None) -> None:
        get = snapshot.arrays.get
        members, concepts = get("mem.e").astype(np.int64), get("mem.c").astype(np.int64)
        kept = snapshot.entity_kind[members] != EntityKind.CONCEPT
        members, called = members[kept], snapshot.entity_name[concepts[kept]]
        # Two concepts with one name are one label.
        numbers, codes = np.unique(called, return_inverse=True)
        words = snapshot.texts.take(numbers) if len(numbers) else []
        if names is not None:
            wanted = np.array([word in names for word in words], bool)
            chosen = wanted[codes] if len(codes) else np.zeros(0, bool)
            members, codes = members[chosen], codes[chosen]
        pairs = np.unique(members * max(len(words), 1) + codes)
        self._words = words
        self._members, self._codes = np.divmod(pairs, max(len(words), 1))

    @property
    def members(self) -> NDArray[np.int64]:
        """The entities that have any label, by number."""
        return np.unique(self._members)

    def counts(self) -> dict[str, int]:
        """Count the entities of each label, the commonest first, then by name."""
        numbers, counts = np.unique(self._codes, return_counts=True)
        result = zip((self._words[code] for code in numbers.tolist()), counts.tolist(), strict=True)
        return dict(sorted(result, key=lambda item: (-item[1], item[0])))

    def of(self, numbers: NDArray[Any]) -> list[list[str]]:
        """Return the labels of each of some entities."""
        begins, ends = (np.searchsorted(self._members, numbers, side=side) for side in ("left", "right"))
        first = int(begins.min(initial=len(self._codes)))
        words = [self._words[code] for code in self._codes[first : int(ends.max(initial=first))].tolist()]
        return [words[low:high] for low, high in zip((begins - first).tolist(), (ends - first).tolist(), strict=True)]


def chosen(found: Iterable[str], taken: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Choose which concepts become labels, sorted by name, and return sentences that explain which do not.

    `found` are names of concepts, commonest first; `taken` are names that others use.
    """
    names, unusable, in_use = list[str](), list[str](), list[str]()
    for name in found:
        (unusable if not usable(name) else in_use if name in taken else names).append(name)
    remarks = []
    if unusable:
        remarks.append(
            f"{_listed(unusable)} no label: labels are up to {MAX_NAME:,} bytes of text, and none begins with 'Condgraph'"
        )
    if in_use:
        remarks.append(f"{_listed(in_use)} no label: other nodes, an index or a constraint of the database use that name")
    if len(names) > LIMIT:
        remarks.append(
            f"{len(names) - LIMIT:,} of {len(names):,} concepts are not labels: a graph has at most {LIMIT}, the most frequent"
        )
    return sorted(names[:LIMIT]), remarks


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= 40 else name[:39] + "…") for name in names[:5])
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"the {'concept' if len(names) == 1 else 'concepts'} {shown}{more} {'is' if len(names) == 1 else 'are'}"


def alone(connection: Connection) -> bool:
    """Tell whether a database holds only condgraph's data: no other nodes, and no index or constraint on their labels."""
    return not connection.ask(_COUNT_OTHERS, {})[0]["count"] and not _indexed(connection)


def taken(connection: Connection, names: Collection[str]) -> set[str]:
    """Return which of some names are labels of other applications: of their nodes, of an index or of a constraint.

    If other applications have nodes, those of each label are read until one is found.
    """
    result = _indexed(connection) & set(names)
    if connection.ask(_COUNT_OTHERS, {})[0]["count"]:
        known = {row["label"] for row in connection.ask("CALL db.labels() YIELD label RETURN label", {})}
        result |= {name for name in names if name in known and usable(name) and _is_used_elsewhere(connection, name)}
    return result


def check_allowed(connection: Connection, names: Collection[str]) -> None:
    """Raise `StoreError` if the user may not write some labels, which may be new to the database; tried on a temporary node."""

    def attempt(transaction: Transaction) -> None:
        transaction.run(_TRIED, {"labels": list(names)})
        transaction.rollback()

    connection.transaction(attempt)


def is_refusal(error: StoreError) -> bool:
    """Tell whether the server denied the user permission."""
    return ".Security." in (getattr(error.__cause__, "code", None) or "")


def _indexed(connection: Connection) -> set[str]:
    # The server's own indexes are on no label.
    result = {label for text in _SCHEMA for row in connection.ask(text, {}) for label in row["labels"] or ()}
    return {label for label in result if not label.lower().startswith(_OURS)}


def _is_used_elsewhere(connection: Connection, label: str) -> bool:
    return bool(connection.ask(f"MATCH (n:{quote(label)}) WHERE NOT n:{ENTITY} RETURN true AS there LIMIT 1", {}))


def others(connection: Connection, counts: dict[str, int]) -> dict[str, int]:
    """Return the counts of labels of other applications: all labels but those that only entities carry.

    Raises `StoreError` if entities and nodes of other applications share a label, as its count cannot be split.
    """
    if not counts.get(GRAPH):
        return counts
    carried, named = Counter[str](), dict[str, str]()
    for graph, labels, labelling in (row.values() for row in connection.ask(_LABELS, {})):
        carried.update(json.loads(labels or "{}"))
        named |= dict.fromkeys((*json.loads(labels or "{}"), *(labelling or ())), graph)
    remaining = dict(counts)
    for label, graph in named.items():
        # During a load, and after an interrupted one, the numbers differ.
        if remaining.pop(label, 0) != carried[label] and _is_used_elsewhere(connection, label):
            raise StoreError(
                f"the label {label!r} is on entities of the graph {graph!r} and on other nodes, which cannot be reported apart",
                hint=f"graph.label(False) of condgraph.open(..., graph={graph!r}) takes the labels of concepts off that graph",
            )
    return remaining


# -- Labels of a load --------------------------------------------------------------------------------
# Determines the labels that entities carry after a load, and the existing entities whose labels change.
#
# A first load creates entities with their labels. A later one writes the labels of existing entities in
# batches of their own, and records the earlier labels, so that an interrupted load can be taken back
# (`abandon`).


@dataclass(frozen=True, slots=True)
class Labelling:
    """The labels that entities carry `after` a load (None: no labels), and may carry `before` it.

    `sure` tells that they carry exactly those of their concepts; this is not so after an interrupted load, or one by a version
    without labels.
    """

    after: tuple[str, ...] | None = None
    before: tuple[str, ...] = ()
    sure: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def every(self) -> list[str]:
        """All labels that entities may carry during the load."""
        return sorted({*self.before, *(self.after or ())})

    def stated(self, snapshot: Snapshot) -> str | None:
        """Return what the graph's node states of the labels once it holds `snapshot`."""
        if self.after is None:
            return None
        return json.dumps(Labels(snapshot, set(self.after)).counts(), ensure_ascii=False, sort_keys=True)

    def changed(self, previous: Snapshot, snapshot: Snapshot) -> NDArray[np.int32]:
        """Return the entities, by number in `snapshot`, that existed before and whose labels change."""
        if not self.every:
            return np.empty(0, np.int32)
        before, after = Labels(previous, set(self.before)), Labels(snapshot, set(self.after or ()))
        # If the present labels are not known exactly, every entity that could have one of them is
        # written.
        wide = (before, after) if self.sure else (Labels(previous, set(self.every)), Labels(snapshot, set(self.every)))
        known = {int(number): previous.identified(snapshot.ident(int(number))) for number in wide[1].members}
        for number in wide[0].members.tolist():
            known[snapshot.identified(previous.ident(number))] = number
        numbers = np.array([number for number, earlier in known.items() if number >= 0 <= earlier], np.int64)
        if self.sure and len(numbers):
            carried = before.of(np.array([known[number] for number in numbers.tolist()], np.int64))
            differ = [sorted(item) != sorted(other) for item, other in zip(carried, after.of(numbers), strict=True)]
            numbers = numbers[np.array(differ, bool)]
        return np.sort(numbers).astype(np.int32)


def is_wanted(connection: Connection, about: dict[str, Any], asked: bool | None) -> bool:
    """Tell whether entities carry their concepts as labels after a load.

    `about` is the state of the graph's node, `asked` the caller's choice. With None, the graph's present state is kept,
    and a new graph has labels if there is nothing else in the database.
    """
    if "loading" in about and "content" not in about:
        # A first load continues as it began: its batches are identified by position.
        return "labelling" in about
    if not connection.engine.types_like_labels:
        # The database would refuse later predicates named like one of the labels.
        if asked:
            raise UnsupportedError(connection.engine.name, ["concepts as labels"], hint="leave labels out")
        return False
    if asked is not None:
        return asked
    return "labels" in about if "content" in about else alone(connection)


def first(connection: Connection, about: dict[str, Any], snapshot: Snapshot) -> Labelling:
    """Return the labels of a graph that is new, or whose first load continues."""
    if "labelling" in about:
        return Labelling(tuple(about["labelling"]))
    return _labelling(connection, snapshot, Labelling())


def further(connection: Connection, about: dict[str, Any], previous: Snapshot, snapshot: Snapshot, *, wanted: bool) -> Labelling:
    """Return the labels of a graph that holds `previous` and will hold `snapshot`."""
    stated: dict[str, int] = json.loads(about.get("labels") or "{}")
    before = sorted({*stated, *about.get("labelling", ())})
    sure = bool(about.get("complete")) and Labels(previous, set(before)).counts() == stated
    current = Labelling(None, tuple(before), sure)
    # Concepts that cannot be labels were reported when they were added.
    reported = Labels(previous).counts() if "labels" in about else ()
    return _labelling(connection, snapshot, current, reported) if wanted else current


def begun_otherwise(*, asked: bool | None, wanted: bool) -> tuple[str, ...]:
    """Return the remarks if a first load continues otherwise than the caller `asked`."""
    if asked in (None, wanted):
        return ()
    how = "with labels of concepts" if wanted else "without labels of concepts"
    return (f"the load that goes on here was begun {how}, and ends so: graph.label({asked}) changes that then",)


def _labelling(connection: Connection, snapshot: Snapshot, held: Labelling, reported: Collection[str] = ()) -> Labelling:
    counts = Labels(snapshot).counts()
    fresh = [name for name in counts if name not in held.before]
    try:
        # A label that the graph has already stays, even if others have used it since.
        names, remarks = chosen(counts, taken(connection, fresh) if fresh else ())
        new = [name for name in names if name not in held.before]
        if new:
            check_allowed(connection, new)
    except StoreError as error:
        if not is_refusal(error):
            raise
        # Labels are optional: the graph is loaded without them.
        names, _ = chosen(name for name in counts if name in held.before)
        return Labelling(tuple(names), held.before, held.sure, (f"no further concept becomes a label: {error.message}",))
    after = tuple(names)
    known = after == held.before and all(name in reported for name in counts)
    return Labelling(after, held.before, held.sure, () if known else tuple(remarks))
