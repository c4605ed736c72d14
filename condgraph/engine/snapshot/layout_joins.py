"""Equal statements become one: sorting by what makes statements equal, and what further sources
said of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.snapshot.build import Builder

Columns = dict[str, NDArray[Any]]


I32 = np.int32


def _mix(hashes: NDArray[np.uint64], column: NDArray[Any]) -> NDArray[np.uint64]:
    """Fold a column into 64-bit hashes (the finaliser of splitmix64)."""
    h = (hashes ^ column.astype(np.int64).view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def distinct_qualifiers(qualifiers: Columns, total: int) -> tuple[Columns, NDArray[np.uint64] | None]:
    """Drop repeated qualifiers of a statement; returns the rest and one fingerprint a statement of
    its set of qualifiers.
    """
    n = len(qualifiers["sid"])
    if not n:
        return qualifiers, None
    hashes = np.zeros(n, np.uint64)
    for name in ("key", "kind", "a", "b", "ref", "unit", "precision"):
        hashes = _mix(hashes, qualifiers[name])
    order = np.lexsort((hashes, qualifiers["sid"]))
    sid, h = qualifiers["sid"][order], hashes[order]
    fresh = np.ones(n, bool)
    fresh[1:] = (sid[1:] != sid[:-1]) | (h[1:] != h[:-1])
    kept = np.sort(order[fresh])
    qualifiers = {name: column[kept] for name, column in qualifiers.items()}
    fingerprint = np.zeros(total, np.uint64)
    np.add.at(fingerprint, qualifiers["sid"], _mix(hashes[kept], np.ones(len(kept))))
    return qualifiers, fingerprint


def join_equal(
    family: Columns, keys: tuple[str, ...], fingerprint: NDArray[np.uint64] | None, number: NDArray[np.int32], base: int
) -> NDArray[np.int64]:
    """Sort a family and join equal statements. Fills `number` (load order to final) from `base`;
    returns the kept positions.
    """
    n = len(family["sid"])
    if not n:
        return np.empty(0, np.int64)
    marks = [family[key] for key in keys]
    if fingerprint is not None:
        marks.append(fingerprint[family["sid"]])
    order = sorted_by(marks)
    fresh = np.zeros(n, bool)
    fresh[0] = True
    for mark in marks:
        ordered = mark[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    number[family["sid"][order]] = base + np.cumsum(fresh, dtype=I32) - 1
    return order[fresh]


def sorted_by(marks: list[NDArray[Any]]) -> NDArray[np.int64]:
    """A stable lexicographic order, the first mark the most significant; constant marks cost
    nothing, narrow ones are packed.
    """
    packed: list[NDArray[Any]] = []
    width = 0
    for mark in marks:
        if mark.dtype == np.uint64:
            packed, width = [*packed, mark], 64
            continue
        low = int(mark.min())
        span = int(mark.max()) - low
        bits = span.bit_length()
        if not bits:
            continue
        if packed and width + bits <= 62:
            packed[-1] = packed[-1] << bits | (mark.astype(np.int64) - low)
            width += bits
        elif bits <= 62:
            packed.append(mark.astype(np.int64) - low)
            width = bits
        else:
            packed, width = [*packed, mark], 64
    if not packed:
        return np.arange(len(marks[0]))
    if len(packed) == 1:
        return np.argsort(packed[0], kind="stable")
    return np.lexsort(packed[::-1])


def lay_provenance(
    builder: Builder,
    columns: Columns,
    relations: Columns,
    attributes: Columns,
    kept_r: Columns,
    kept_a: Columns,
    number: NDArray[np.int32],
) -> None:
    """First source of each statement, and the further ones: of statements that were joined, and
    those given by `Sourced`.
    """
    columns["st.src"] = np.concatenate([kept_r["src"], kept_a["src"]])
    columns["st.row"] = np.concatenate([kept_r["row"], kept_a["row"]])
    extra = [np.array(builder.provenance, np.int64).reshape(-1, 3)]
    if len(extra[0]):
        extra[0][:, 0] = number[extra[0][:, 0]]
    for family, kept in ((relations, kept_r), (attributes, kept_a)):
        if len(family["sid"]) > len(kept["sid"]):
            dropped = np.ones(len(family["sid"]), bool)
            dropped[np.isin(family["sid"], kept["sid"], assume_unique=True)] = False
            extra.append(np.stack([number[family["sid"][dropped]], family["src"][dropped], family["row"][dropped]], axis=1))
    rows = np.concatenate(extra)
    if len(rows):
        rows = np.unique(rows, axis=0)
        same = (columns["st.src"][rows[:, 0]] == rows[:, 1]) & (columns["st.row"][rows[:, 0]] == rows[:, 2])
        rows = rows[~same]
    for i, name in enumerate(("stmt", "src", "row")):
        columns[f"prov.{name}"] = rows[:, i].astype(I32)
