"""One projection (QTO, Eq. 7 to 10): from the scores of a variable to those of what a relation leads
to.

Which way is quickest depends on the frontier, the nodes that have a score: one row as it is; a few
rows sorted; many rows gathered, and `np.maximum.at`; and the whole relation where the frontier
holds a third of its heads, since that needs no gathering.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from condgraph.engine.bounds import check
from condgraph.logic.matrix import Key, Matrix, Rows
from condgraph.logic.vector import NOTHING, Ids, Scores, Vector, scaled_all

#: Entries up to which sorting is quicker than a table of all nodes, which is this much larger.
SORTED_BELOW: Final = 4_096
#: Heads whose rows are gathered at once.
AT_ONCE: Final = 4_096
#: Entries whose products are worked out at once.
IN_CACHE: Final = 65_536


def project(matrix: Matrix, key: Key, frontier: Vector, least: float = 0.0, candidates: Ids | None = None) -> Vector:
    """max over e of T(e) * M[e, x] for every x (Eq. 7), of `candidates` (sorted) alone where they are
    given; results below `least` are left out, which is exact for the others.
    """
    if frontier.default > 0.0:
        return _from_everything(matrix, key, frontier, least, candidates)
    heads, scores = frontier.ids, frontier.values
    if least > 0.0:
        near = scores >= least
        if not near.all():
            heads, scores = heads[near], scores[near]
    if not len(heads):
        return NOTHING
    # What was divided may be rounded up.
    needed = (1.0 - 1e-12) * least / float(scores.max()) if least > 0.0 else 0.0
    if len(heads) == 1:
        found = _one_row(matrix.rows(key, heads, needed), float(scores[0]))
    else:
        whole = matrix.whole(key)
        if whole is not None and 3 * len(heads) >= len(whole.heads):
            found = _whole(whole, Vector(0.0, heads, scores), matrix.size)
        else:
            found = _gathered(matrix, key, heads, scores, needed)
    return _kept(found, least, candidates)


def _kept(found: Vector, least: float, candidates: Ids | None) -> Vector:
    if candidates is not None:
        found = Vector(0.0, candidates, found.at(candidates))
    return found.pruned(least)


def _one_row(rows: Rows, score: float) -> Vector:
    return Vector(0.0, rows.ids.astype(np.int64), rows.values.astype(np.float64) * score)


def _whole(rows: Rows, frontier: Vector, size: int) -> Vector:
    weights = frontier.at(rows.heads)
    if len(rows.ids) < SORTED_BELOW:
        return _sorted_largest(rows.ids, np.repeat(weights, rows.counts()) * rows.values)
    table = np.zeros(size)
    _into(table, rows, weights)
    return _from_table(table)


def _into(table: Scores, rows: Rows, weights: Scores) -> None:
    """Raise a table to the products of rows with the weights of their heads; some rows at a time, so
    that what is in between stays in the processor's cache.
    """
    offsets, counts = rows.offsets, rows.counts()
    begin, heads = 0, len(rows.heads)
    while begin < heads:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + IN_CACHE, "right")) - 1)
        low, high = int(offsets[begin]), int(offsets[end])
        products = np.repeat(weights[begin:end], counts[begin:end])
        products *= rows.values[low:high]
        # NumPy is slower by more than the conversion where places are narrower than its own.
        np.maximum.at(table, rows.ids[low:high].astype(np.intp, copy=False), products)
        begin = end


def _gathered(matrix: Matrix, key: Key, heads: Ids, scores: Scores, needed: float) -> Vector:
    table: Scores | None = None
    for begin in range(0, len(heads), AT_ONCE):
        check()
        some, theirs = heads[begin : begin + AT_ONCE], scores[begin : begin + AT_ONCE]
        rows = matrix.rows(key, some, needed)
        if len(rows.heads) != len(some):
            theirs = theirs[np.searchsorted(some, rows.heads)]
        if len(heads) <= AT_ONCE and len(rows.ids) < SORTED_BELOW:
            return _sorted_largest(rows.ids, np.repeat(theirs, rows.counts()) * rows.values)
        if table is None:
            table = np.zeros(matrix.size)
        _into(table, rows, theirs)
    assert table is not None
    return _from_table(table)


def _from_table(table: Scores) -> Vector:
    ids = np.flatnonzero(table)
    return Vector(0.0, ids, table[ids])


def _sorted_largest(ids: Ids, products: Scores) -> Vector:
    if not len(ids):
        return NOTHING
    order = np.argsort(ids, kind="stable")
    ids, products = ids[order].astype(np.int64), products[order]
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    return Vector(0.0, ids[first], np.maximum.reduceat(products, first))


def _from_everything(matrix: Matrix, key: Key, frontier: Vector, least: float, candidates: Ids | None) -> Vector:
    """From a frontier that is almost all nodes: all rows of the relation."""
    rows = matrix.every_row(key, least)
    return _kept(_whole(rows, frontier, matrix.size), least, candidates)


# -- anti-projection -------------------------------------------------------------------------------


def anti_project(matrix: Matrix, key: Key, frontier: Vector, alpha: float) -> Vector:
    """max over e of T(e) * (1 - M[e, x]) for every x (Eq. 9), M on the negation scale.

    The best source, of score m, has no edge to almost all nodes: m is the default, and only what it
    leads to can have less. Of that the next source decides what it has no edge to, and so on, until
    nothing is open.
    """
    best: float | None = None
    open_ids = decided_ids = np.empty(0, np.int64)
    values: Scores = np.empty(0)
    for heads, scores in _by_score(frontier, matrix.size):
        rows = matrix.rows(key, np.sort(heads))
        places = dict(zip(rows.heads.tolist(), range(len(rows.heads)), strict=True))
        for head, score in zip(heads.tolist(), scores.tolist(), strict=True):
            place = places.get(head)
            begin, end = (0, 0) if place is None else (int(rows.offsets[place]), int(rows.offsets[place + 1]))
            row = Vector(0.0, rows.ids[begin:end].astype(np.int64), rows.values[begin:end].astype(np.float64))
            if best is None:
                best, open_ids, values = score, row.ids, np.zeros(len(row.ids))
                decided_ids = row.ids
            at = np.searchsorted(decided_ids, open_ids)
            # No later source has a higher score than this one.
            at = at[values[at] < score]
            open_ids = decided_ids[at]
            if not len(open_ids):
                return Vector(best, decided_ids, values)
            values[at] = np.maximum(values[at], score * (1.0 - scaled_all(row.at(open_ids), alpha)))
    return NOTHING if best is None else Vector(best, decided_ids, values)


def _by_score(frontier: Vector, size: int) -> Iterator[tuple[Ids, Scores]]:
    """The nodes of a frontier by falling score (then by number), a few more each time."""
    above = frontier.values > frontier.default
    yield from _cut(*_falling(frontier.ids[above], frontier.values[above]))
    if frontier.default > 0.0:
        others = np.ones(size, bool)
        others[frontier.ids] = False
        rest = np.flatnonzero(others)
        yield from _cut(rest, np.full(len(rest), frontier.default))
        below = ~above & (frontier.values > 0.0)
        yield from _cut(*_falling(frontier.ids[below], frontier.values[below]))


def _falling(ids: Ids, values: Scores) -> tuple[Ids, Scores]:
    order = np.lexsort((ids, -values))
    return ids[order], values[order]


def _cut(ids: Ids, values: Scores) -> Iterator[tuple[Ids, Scores]]:
    begin, length = 0, 1
    while begin < len(ids):
        check()
        yield ids[begin : begin + length], values[begin : begin + length]
        begin, length = begin + length, min(2 * length, 256)
