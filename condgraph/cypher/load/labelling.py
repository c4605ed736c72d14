"""What a load does about the labels that entities carry (`condgraph.cypher.labels`): which they are
once it is done, and which entities that are there already change theirs.

A first load gives entities their labels as it makes them. A later one writes the labels of entities
that are there in batches of their own, and notes before what they were, so that a load that was
ended can be taken back (`abandon`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.labels import Labels, alone, chosen, taken

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection
    from condgraph.engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Labelling:
    """The labels that entities carry `after` a load (None: they carry none), and may carry `before`
    it. `sure` says that they carry those of their concepts exactly; not so after a load that was
    ended.
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
        # After a load that was ended every entity that could have one of them is written.
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


def further(connection: Connection, about: dict[str, Any], snapshot: Snapshot, *, wanted: bool) -> Labelling:
    """The labels of a graph that is there, and will hold `snapshot`."""
    before = sorted({*json.loads(about.get("labels") or "{}"), *about.get("labelling", ())})
    held = Labelling(None, tuple(before), sure=bool(about.get("complete")))
    return _labelling(connection, snapshot, held) if wanted else held


def _labelling(connection: Connection, snapshot: Snapshot, held: Labelling) -> Labelling:
    found = Labels(snapshot).counts()
    fresh = [name for name in found if name not in held.before]
    # A label that the graph has already stays, also where others use it since: they knew it.
    names, remarks = chosen(found, taken(connection, fresh) if fresh else ())
    after = tuple(names)
    return Labelling(after, held.before, held.sure, tuple(remarks) if after != held.before else ())
