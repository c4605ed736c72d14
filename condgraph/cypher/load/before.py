"""What a graph on a server holds, beside what it is to hold: where each statement and membership is
said, as hashes to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.load.pairs import Pairs
from condgraph.engine.identity import mix, text_hashes

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


def row_sources(snapshot: Snapshot) -> Callable[[int], str | None]:
    """The source of each table row."""
    places = snapshot.arrays.get("ent.source")
    names = [snapshot.source_of(i).name for i in range(len(snapshot.arrays.get("src.name")))]
    return lambda number: names[places[number]] if len(places) and places[number] >= 0 else None


def _hashed(snapshot: Snapshot) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hashes of the texts of a snapshot, with one of none behind; and of the names of its sources."""
    texts = np.append(text_hashes(snapshot), np.uint64(0))
    return texts, texts[snapshot.arrays.get("src.name")]


def said_where(snapshot: Snapshot) -> NDArray[np.uint64]:
    """A hash of all places of each statement, and of how it is written there."""
    get = snapshot.arrays.get
    texts, names = _hashed(snapshot)
    raws = np.full(snapshot.statements, -1, np.int32)
    if len(get("att.raw")):
        raws[snapshot.relations :] = get("att.raw")
    found = np.zeros(snapshot.statements, np.uint64)
    owners = get("prov.stmt")
    further = get("prov.raw") if len(get("prov.raw")) else np.full(len(owners), -1, np.int32)
    for at, sources, rows, written in (
        (np.arange(snapshot.statements), snapshot.source, snapshot.row, raws),
        (owners, get("prov.src"), get("prov.row"), further),
    ):
        if len(at):
            np.add.at(found, at, mix(mix(names[sources], rows.astype(np.uint64)), texts[written]))
    return found


def pairs_said(snapshot: Snapshot, pairs: Pairs) -> NDArray[np.uint64]:
    """A hash of all that says each pair."""
    found = np.zeros(len(pairs.keys), np.uint64)
    if len(pairs.sources):
        owners = np.repeat(np.arange(len(pairs.keys)), np.diff(pairs.bounds))
        np.add.at(found, owners, mix(_hashed(snapshot)[1][pairs.sources], pairs.rows.astype(np.uint64)))
    return found


def mapped_pairs(previous: Snapshot, prefix: str, snapshot: Snapshot) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The pairs of an earlier snapshot by the numbers of a later one (-1: an end is not there any
    more), and a hash of what says each.
    """
    pairs = Pairs(previous, prefix)
    numbers = np.array([snapshot.identified(ident) for ident in previous.texts.take(previous.entity_id)], np.int64)
    one, other = np.divmod(pairs.keys, max(previous.entities, 1))
    one, other = numbers[one] if len(one) else one, numbers[other] if len(other) else other
    return np.where((one < 0) | (other < 0), -1, one * snapshot.entities + other), pairs_said(previous, pairs)
