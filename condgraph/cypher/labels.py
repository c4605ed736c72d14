"""Direct concepts of entities as labels of their own."""

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
from condgraph.cypher.layout.schema import ENTITY, GRAPH, LONGEST_NAME, quote
from condgraph.engine.errors import StoreError, UnsupportedError
from condgraph.engine.facts import EntityKind

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection, Transaction
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- Which concepts become labels --------------------------------------------------------------------
# No query of condgraph's reads them: they are for others. A graph's node says which labels its entities
# carry and how many of each (`labels`, as JSON; absent where they carry none), and while a load is
# under way which they may carry (`labelling`). Names that others use are not given: nobody's
# `MATCH (p:Person)` finds entities of a graph, unless the label came first.


#: The most labels of a graph, its commonest concepts: Browser and models read a list of them.
MOST: Final = 200
#: Labels of each node of condgraph's that no other of these labels counts as well.
_NODES: Final = (
    *(layout.ENTITY, layout.VALUE, layout.STATEMENT, layout.QUALIFIER, layout.GRAPH, layout.SOURCE, layout.PREDICATE),
    *(layout.LOAD, layout.FORMER, layout.EDIT, layout.VECTORS, layout.EMBEDDING),
)
#: How labels, constraints and indexes of the layout begin, in any case.
_OURS: Final = "condgraph"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: How many nodes are others': each count is a number that the server keeps.
_OTHERS: Final = (
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
_CARRIED: Final = f"MATCH (g:{GRAPH}) WHERE g.labels IS NOT NULL OR g.labelling IS NOT NULL RETURN g.name, g.labels, g.labelling"


def usable(name: str) -> bool:
    """Whether the name of a concept can be a label: it has letters, none of them a control character,
    at most 1,000 bytes, and does not begin as the labels of the layout do.

    >>> usable("head of state"), usable("CondgraphEntity"), usable("")
    (True, False, False)
    """
    plain = bool(name.strip()) and not _CONTROL.search(name) and len(name.encode()) <= LONGEST_NAME
    return plain and not name.lower().startswith(_OURS)


class Labels:
    """The labels of the entities of a snapshot: their direct concepts among `names`, or all of them.

    What is itself a concept has none: its own label says what it is.
    """

    def __init__(self, snapshot: Snapshot, names: Collection[str] | None = None) -> None:
        get = snapshot.arrays.get
        members, concepts = get("mem.e").astype(np.int64), get("mem.c").astype(np.int64)
        kept = snapshot.entity_kind[members] != EntityKind.CONCEPT
        members, called = members[kept], snapshot.entity_name[concepts[kept]]
        # Two concepts of one name are one label.
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
        """The entities that have any, by number."""
        return np.unique(self._members)

    def counts(self) -> dict[str, int]:
        """How many entities have each label, the commonest first, then by name."""
        numbers, counts = np.unique(self._codes, return_counts=True)
        result = zip((self._words[code] for code in numbers.tolist()), counts.tolist(), strict=True)
        return dict(sorted(result, key=lambda item: (-item[1], item[0])))

    def of(self, numbers: NDArray[Any]) -> list[list[str]]:
        """The labels of each of some entities."""
        begins, ends = (np.searchsorted(self._members, numbers, side=side) for side in ("left", "right"))
        first = int(begins.min(initial=len(self._codes)))
        words = [self._words[code] for code in self._codes[first : int(ends.max(initial=first))].tolist()]
        return [words[low:high] for low, high in zip((begins - first).tolist(), (ends - first).tolist(), strict=True)]


def chosen(found: Iterable[str], taken: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Which of the names of concepts `found` (the commonest first) become labels, in the order of
    names; and of those that do not, why, as sentences. `taken` are names that others use.
    """
    names, odd, others = list[str](), list[str](), list[str]()
    for name in found:
        (odd if not usable(name) else others if name in taken else names).append(name)
    remarks = []
    if odd:
        remarks.append(
            f"{_listed(odd)} no label: labels are up to {LONGEST_NAME:,} bytes of text, and none begins with 'Condgraph'"
        )
    if others:
        remarks.append(f"{_listed(others)} no label: other nodes, an index or a constraint of the database use that name")
    if len(names) > MOST:
        remarks.append(f"{len(names) - MOST:,} of {len(names):,} concepts are no labels: a graph has at most {MOST}, the commonest")
    return sorted(names[:MOST]), remarks


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= 40 else name[:39] + "…") for name in names[:5])
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"the {'concept' if len(names) == 1 else 'concepts'} {shown}{more} {'is' if len(names) == 1 else 'are'}"


def alone(connection: Connection) -> bool:
    """Whether a database has nothing but condgraph's own: no nodes, and no index or constraint on a label of
    theirs.
    """
    return not connection.ask(_OTHERS, {})[0]["count"] and not _indexed(connection)


def taken(connection: Connection, names: Collection[str]) -> set[str]:
    """Which of some names are labels of other applications: of their nodes, of an index or of a constraint.

    Where there are nodes of other applications, those of each label are looked at until one is theirs.
    """
    result = _indexed(connection) & set(names)
    if connection.ask(_OTHERS, {})[0]["count"]:
        known = {row["label"] for row in connection.ask("CALL db.labels() YIELD label RETURN label", {})}
        result |= {name for name in names if name in known and usable(name) and _others_have(connection, name)}
    return result


def check_allowed(connection: Connection, names: Collection[str]) -> None:
    """Raise `StoreError` where who is logged in may not write some labels, which may be new to the
    database: tried on a node that is not kept.
    """

    def tried(transaction: Transaction) -> None:
        transaction.run(_TRIED, {"labels": list(names)})
        transaction.rollback()

    connection.transaction(tried)


def is_refusal(error: StoreError) -> bool:
    """Whether a server refused something to who is logged in."""
    return ".Security." in (getattr(error.__cause__, "code", None) or "")


def _indexed(connection: Connection) -> set[str]:
    # The server's own indexes are on no label.
    result = {label for text in _SCHEMA for row in connection.ask(text, {}) for label in row["labels"] or ()}
    return {label for label in result if not label.lower().startswith(_OURS)}


def _others_have(connection: Connection, label: str) -> bool:
    return bool(connection.ask(f"MATCH (n:{quote(label)}) WHERE NOT n:{ENTITY} RETURN true AS there LIMIT 1", {}))


def others(connection: Connection, counts: dict[str, int]) -> dict[str, int]:
    """Of the counts of all labels of a database those of other applications: without the labels that only
    entities of graphs carry.

    Raises `StoreError` where entities and nodes of other applications have a label in common, which queries for
    that label could not tell apart.
    """
    if not counts.get(GRAPH):
        return counts
    carried, named = Counter[str](), dict[str, str]()
    for graph, labels, labelling in (row.values() for row in connection.ask(_CARRIED, {})):
        carried.update(json.loads(labels or "{}"))
        named |= dict.fromkeys((*json.loads(labels or "{}"), *(labelling or ())), graph)
    left = dict(counts)
    for label, graph in named.items():
        # While a load is under way the numbers differ, and after one that was ended.
        if left.pop(label, 0) != carried[label] and _others_have(connection, label):
            raise StoreError(
                f"the label {label!r} is on entities of the graph {graph!r} and on other nodes, which cannot be reported apart",
                hint=f"graph.label(False) of condgraph.open(..., graph={graph!r}) takes the labels of concepts off that graph",
            )
    return left


# -- Labels of a load --------------------------------------------------------------------------------
# What a load does about the labels that entities carry (`condgraph.cypher.labels`): which they are
# once it is done, and which entities that are there already change theirs.
#
# A first load gives entities their labels as it makes them. A later one writes the labels of entities
# that are there in batches of their own, and notes before what they were, so that a load that was
# ended can be taken back (`abandon`).


@dataclass(frozen=True, slots=True)
class Labelling:
    """The labels that entities carry `after` a load (None: they carry none), and may carry `before`
    it. `sure` says that they carry those of their concepts exactly; not so after a load that was
    ended, or one of a version that knows nothing of labels.
    """

    after: tuple[str, ...] | None = None
    before: tuple[str, ...] = ()
    sure: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def every(self) -> list[str]:
        """All that entities may carry while the load is under way."""
        return sorted({*self.before, *(self.after or ())})

    def stated(self, snapshot: Snapshot) -> str | None:
        """What the graph's node says of them once `snapshot` is there."""
        if self.after is None:
            return None
        return json.dumps(Labels(snapshot, set(self.after)).counts(), ensure_ascii=False, sort_keys=True)

    def changed(self, previous: Snapshot, snapshot: Snapshot) -> NDArray[np.int32]:
        """The entities, by their number in `snapshot`, that were there before and change theirs."""
        if not self.every:
            return np.empty(0, np.int32)
        before, after = Labels(previous, set(self.before)), Labels(snapshot, set(self.after or ()))
        # Where that is not sure, every entity that could have one of them is written.
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
    """Whether entities carry their concepts as labels once a load is done. `about` is what the
    graph's node says, `asked` what the caller asked for, None where that is nothing: then what was
    decided for the graph stays, and a new graph has them where nothing else is in the database.
    """
    if "loading" in about and "content" not in about:
        # What a first load began it goes on with: its batches are known by their place.
        return "labelling" in about
    if not connection.engine.types_like_labels:
        # The database would refuse later predicates that are called as one of the labels is.
        if asked:
            raise UnsupportedError(connection.engine.name, ["concepts as labels"], hint="leave labels out")
        return False
    if asked is not None:
        return asked
    return "labels" in about if "content" in about else alone(connection)


def first(connection: Connection, about: dict[str, Any], snapshot: Snapshot) -> Labelling:
    """The labels of a graph that is new, or whose first load goes on."""
    if "labelling" in about:
        return Labelling(tuple(about["labelling"]))
    return _labelling(connection, snapshot, Labelling())


def further(connection: Connection, about: dict[str, Any], previous: Snapshot, snapshot: Snapshot, *, wanted: bool) -> Labelling:
    """The labels of a graph that holds `previous`, and will hold `snapshot`."""
    stated: dict[str, int] = json.loads(about.get("labels") or "{}")
    before = sorted({*stated, *about.get("labelling", ())})
    sure = bool(about.get("complete")) and Labels(previous, set(before)).counts() == stated
    held = Labelling(None, tuple(before), sure)
    # Which concepts are no labels was reported when they came.
    reported = Labels(previous).counts() if "labels" in about else ()
    return _labelling(connection, snapshot, held, reported) if wanted else held


def begun_otherwise(*, asked: bool | None, wanted: bool) -> tuple[str, ...]:
    """What to say where a first load goes on otherwise than the caller `asked`, as sentences."""
    if asked in (None, wanted):
        return ()
    how = "with labels of concepts" if wanted else "without labels of concepts"
    return (f"the load that goes on here was begun {how}, and ends so: graph.label({asked}) changes that then",)


def _labelling(connection: Connection, snapshot: Snapshot, held: Labelling, reported: Collection[str] = ()) -> Labelling:
    counts = Labels(snapshot).counts()
    fresh = [name for name in counts if name not in held.before]
    try:
        # A label that the graph has already stays, also where others use it since: they knew it.
        names, remarks = chosen(counts, taken(connection, fresh) if fresh else ())
        new = [name for name in names if name not in held.before]
        if new:
            check_allowed(connection, new)
    except StoreError as error:
        if not is_refusal(error):
            raise
        # Labels are for others: what this is for is loaded without them.
        names, _ = chosen(name for name in counts if name in held.before)
        return Labelling(tuple(names), held.before, held.sure, (f"no further concept becomes a label: {error.message}",))
    after = tuple(names)
    known = after == held.before and all(name in reported for name in counts)
    return Labelling(after, held.before, held.sure, () if known else tuple(remarks))
