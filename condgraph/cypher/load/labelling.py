"""What a load does about the labels that entities carry (`condgraph.cypher.labels`): which they are
once it is done, and which entities that are there already change theirs.

A first load gives entities their labels as it makes them. A later one writes the labels of entities
that are there in batches of their own, and notes before what they were, so that a load that was
ended can be taken back (`abandon`).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.labels import Labels, alone, check_allowed, chosen, is_refusal, taken
from condgraph.engine.errors import StoreError

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.engine.snapshot.snapshot import Snapshot


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
            differ = [sorted(one) != sorted(other) for one, other in zip(carried, after.of(numbers), strict=True)]
            numbers = numbers[np.array(differ, bool)]
        return np.sort(numbers).astype(np.int32)


def is_wanted(connection: Connection, about: dict[str, Any], asked: bool | None) -> bool:
    """Whether entities carry their concepts as labels once a load is done. `about` is what the
    graph's node says, `asked` what the caller said, None where that is nothing: then what was
    decided for the graph stays, and a new graph has them where nothing of others is in the database.
    """
    if "loading" in about and "content" not in about:
        # What a first load began it goes on with: its batches are known by their place.
        return "labelling" in about
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
    # What concepts that were there already are no labels for was said when they came.
    told = Labels(previous).counts() if "labels" in about else ()
    return _labelling(connection, snapshot, held, told) if wanted else held


def begun_otherwise(*, asked: bool | None, wanted: bool) -> tuple[str, ...]:
    """What to say where a first load goes on otherwise than the caller `asked`, as sentences."""
    if asked in (None, wanted):
        return ()
    said = "with labels of concepts" if wanted else "without labels of concepts"
    return (f"the load that goes on here was begun {said}, and ends so: graph.label({asked}) changes that then",)


def _labelling(connection: Connection, snapshot: Snapshot, held: Labelling, told: Collection[str] = ()) -> Labelling:
    found = Labels(snapshot).counts()
    fresh = [name for name in found if name not in held.before]
    try:
        # A label that the graph has already stays, also where others use it since: they knew it.
        names, remarks = chosen(found, taken(connection, fresh) if fresh else ())
        new = [name for name in names if name not in held.before]
        if new:
            check_allowed(connection, new)
    except StoreError as error:
        if not is_refusal(error):
            raise
        # Labels are for others: what this is for is loaded without them.
        names, _ = chosen(name for name in found if name in held.before)
        return Labelling(tuple(names), held.before, held.sure, (f"no further concept becomes a label: {error.message}",))
    after = tuple(names)
    heard = after == held.before and all(name in told for name in found)
    return Labelling(after, held.before, held.sure, () if heard else tuple(remarks))
