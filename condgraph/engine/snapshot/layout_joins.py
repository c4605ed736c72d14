"""Equal statements become one: sorting by what makes statements equal, and what further sources
said of them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import changed, in_order
from condgraph.engine.snapshot.build import Builder

Columns = dict[str, NDArray[Any]]


I32 = np.int32
#: Statements of a predicate, at least and on average, that are worth sorting alone.
_LARGE: Final = 10_000


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
    kept = np.sort(order[changed(qualifiers["sid"][order], hashes[order])])
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
    fresh = np.ones(n, bool)
    fresh[_repeats(marks, order)] = False
    number[family["sid"][order]] = base + np.cumsum(fresh, dtype=I32) - 1
    return order[fresh]


def _repeats(marks: list[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places in an order at which all marks are those of the place before. The last mark, which
    tells most, is compared first, and the others where that is not enough.
    """
    ordered = marks[-1][order]
    found = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    for mark in reversed(marks[:-1]):
        if not len(found):
            break
        found = found[mark[order[found]] == mark[order[found - 1]]]
    return found


def sorted_by(marks: list[NDArray[Any]]) -> NDArray[np.int64]:
    """A stable lexicographic order, the first mark the most significant (`pieces.in_order`). Where
    the first says what few large groups there are, each is sorted alone, in which more marks are
    the same everywhere.
    """
    first = marks[0]
    low, groups = int(first.min()), int(first.max()) - int(first.min()) + 1
    if len(marks) == 1 or not 1 < groups <= len(first) // _LARGE:
        return in_order(marks)
    order = in_order([first])
    ends = np.cumsum(np.bincount(first - low, minlength=groups)).tolist()
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > begin:
            group = order[begin:end]
            order[begin:end] = group[in_order([mark[group] for mark in marks[1:]])]
    return order


def drop_emptied(builder: Builder) -> None:
    """Take away the sources that nothing is left of, and number the others anew."""
    if not builder.emptied:
        return
    kept = [number for number in range(len(builder.sources)) if number not in builder.emptied]
    number = np.full(len(builder.sources) + 1, -1, I32)
    number[kept] = np.arange(len(kept), dtype=I32)
    to = number.tolist()
    for chunk in (*builder.relations, *builder.attributes):
        chunk["src"] = number[chunk["src"]]
    builder.members = [(one, other, to[source], row) for one, other, source, row in builder.members]
    for members in builder.many_members:
        members[:, 2] = number[members[:, 2]]
    builder.subclasses = [(one, other, to[source], row) for one, other, source, row in builder.subclasses]
    builder.provenance = [(sid, to[source], row, raw) for sid, source, row, raw in builder.provenance]
    builder.declared = {to[source]: entities for source, entities in builder.declared.items()}
    builder.rows = [(to[source], e, names, rows) for source, e, names, rows in builder.rows]
    if builder.seeded is not None:
        builder.seeded = builder.seeded._replace(src=number[builder.seeded.src])
    builder.sources = [builder.sources[number] for number in kept]
    builder.source_numbers = {source.name: number for number, source in enumerate(builder.sources)}
    builder.emptied = set()


def lay_provenance(
    builder: Builder,
    columns: Columns,
    relations: Columns,
    attributes: Columns,
    kept_r: Columns,
    kept_a: Columns,
    number: NDArray[np.int32],
) -> None:
    """The first place of each statement, by source and row, with the raw text there; and the
    further ones: of statements that were joined, and those given by `Sourced`.
    """
    columns["st.src"] = np.concatenate([kept_r["src"], kept_a["src"]])
    columns["st.row"] = np.concatenate([kept_r["row"], kept_a["row"]])
    split = len(kept_r["src"])
    extra = [np.array(builder.provenance, np.int64).reshape(-1, 4)]
    if len(extra[0]):
        extra[0][:, 0] = number[extra[0][:, 0]]
    for family, kept in ((relations, kept_r), (attributes, kept_a)):
        if len(family["sid"]) > len(kept["sid"]):
            dropped = np.ones(len(family["sid"]), bool)
            dropped[np.isin(family["sid"], kept["sid"], assume_unique=True)] = False
            raw = family["raw"][dropped] if "raw" in family else np.full(int(dropped.sum()), -1)
            extra.append(np.stack([number[family["sid"][dropped]], family["src"][dropped], family["row"][dropped], raw], axis=1))
    rows = np.concatenate(extra)
    raws = np.concatenate([np.full(split, -1, I32), kept_a["raw"]])
    if len(rows):
        several = np.unique(rows[:, 0])
        first = np.stack([several, columns["st.src"][several], columns["st.row"][several], raws[several]], axis=1)
        rows = np.concatenate([first, rows])
        # Of one place that says it twice the first text counts, as it was loaded.
        rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
        same = np.zeros(len(rows), bool)
        same[1:] = (rows[1:, :3] == rows[:-1, :3]).all(axis=1)
        rows = rows[~same]
        begins = np.ones(len(rows), bool)
        begins[1:] = rows[1:, 0] != rows[:-1, 0]
        own = rows[begins]
        columns["st.src"][own[:, 0]], columns["st.row"][own[:, 0]] = own[:, 1], own[:, 2]
        raws[own[:, 0]] = own[:, 3]
        kept_a["raw"] = raws[split:]
        rows = rows[~begins]
    for i, name in enumerate(("stmt", "src", "row", "raw")):
        columns[f"prov.{name}"] = rows[:, i].astype(I32)
    if not (rows[:, 3] >= 0).any() and not (raws >= 0).any():
        columns["prov.raw"] = np.empty(0, I32)
