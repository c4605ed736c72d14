"""Batches: records of one kind as they travel to the server, one transaction each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout.schema import index_key

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Records a transaction writes. The first ones are small: until the server has warmed up, a large
#: one only makes others wait. More are no quicker: what is not committed lives through collections
#: of garbage, which with 20,000 are a fifth of the server's work.
BATCH: Final = 5_000
FIRST: Final = 2_000

Numbers = NDArray[np.int32]
Rows = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one kind: a `name` that is the same for the same batch, the `ids` (as they are
    indexed; for labels, the labels) that rows name by place, the `rows`.

    `nodes` and `edges` are how many the server has to make of it; None where it may find them
    there.
    """

    kind: str
    name: str
    ids: list[str]
    rows: Rows
    nodes: int | None = None
    edges: int | None = None


class Ids:
    """The entities of a batch, each once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._places: dict[int, int] = {}

    def places(self, numbers: NDArray[Any]) -> list[int]:
        """The place of each entity in the batch's list."""
        places = self._places
        return [places.setdefault(number, len(places)) for number in numbers.tolist()]

    def texts(self) -> list[str]:
        """What they are looked up by, in the order of places."""
        numbers = np.fromiter(self._places, np.int32, len(self._places))
        return list(map(index_key, self._snapshot.texts.take(self._snapshot.entity_id[numbers])))


def cut(kind: str, numbers: Numbers, make: Callable[[str, str, Numbers], Batch], called: str | None = None) -> Iterator[Batch]:
    """Batches of records by number, each made by `make(kind, name, numbers)`; the first ones are
    smaller. `called` begins their names, where the kind does not tell them from others.
    """
    at, size = 0, FIRST
    while at < len(numbers):
        yield make(kind, f"{called or kind} {at}", numbers[at : at + size])
        at, size = at + size, min(size * 2, BATCH)
