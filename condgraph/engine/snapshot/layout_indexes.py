"""Columns that answer questions: runs, adjacency, qualifiers by key, validity, memberships,
sources, the schema.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.pieces import changed, in_order
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.cells import PARTS, sortable
from condgraph.engine.snapshot.closure import closed_members
from condgraph.engine.snapshot.layout_joins import I32, Columns, sorted_by
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Kind


def offsets_of(sorted_numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Where each number begins in a sorted column: `[offsets[i], offsets[i + 1])` holds the i's."""
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(sorted_numbers, minlength=size), out=offsets[1:])
    return offsets


def groups_of(marks: Columns, prefix: str) -> Columns:
    """Runs of sorted cells with equal marks (predicate or key, type, unit): the marks of each, and
    where it starts.
    """
    n = len(next(iter(marks.values())))
    starts = np.flatnonzero(changed(*marks.values()))
    groups = {f"{prefix}.{name}": column[starts] for name, column in marks.items()}
    return groups | {f"{prefix}.start": np.append(starts, n).astype(np.int64)}


def lay_adjacency(columns: Columns, relations: Columns, attributes: Columns, entities: int) -> None:
    """The statements of each subject, and the relations of each object."""
    subjects = np.concatenate([relations["s"], attributes["s"]])
    columns["out.items"] = in_order([subjects]).astype(I32)
    columns["out.offsets"] = offsets_of(subjects, entities).astype(I32)
    columns["in.items"] = in_order([relations["o"]]).astype(I32)
    columns["in.offsets"] = offsets_of(relations["o"], entities).astype(I32)


def lay_qualifiers(columns: Columns, qualifiers: Columns, number: NDArray[np.int32], predicates: int, statements: int) -> None:
    """Qualifiers of the kept statements by (statement, key, value); where statements were joined,
    one copy of them.
    """
    owner = number[qualifiers["sid"]] if len(qualifiers["sid"]) else qualifiers["sid"]
    value = sortable(qualifiers["kind"], qualifiers["a"], qualifiers["ref"])
    parts = ("key", *(name for name, _ in PARTS))
    marks = [owner, qualifiers["key"], qualifiers["kind"], value]
    marks += [qualifiers[name] for name in ("b", "unit", "ref", "precision")]
    order = np.lexsort(marks[::-1])
    fresh = np.zeros(len(order), bool)
    fresh[:1] = True
    for mark in marks:
        ordered = mark[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    kept = order[fresh]
    columns["q.owner"] = owner[kept].astype(I32)
    for name in parts:
        columns[f"q.{name}"] = qualifiers[name][kept]
    if len(kept):
        columns["q.offsets"] = offsets_of(columns["q.owner"], statements).astype(I32)
    columns["qkey.offsets"] = offsets_of(columns["q.key"], predicates)
    marks_of = {"key": columns["q.key"], "kind": columns["q.kind"], "unit": columns["q.unit"]}
    items = sorted_by([*marks_of.values(), value[kept], columns["q.b"]]) if len(kept) else kept
    columns["qkey.items"] = items.astype(I32)
    columns |= groups_of({name: column[items] for name, column in marks_of.items()}, "qgrp")


def lay_validity(columns: Columns, text: NDArray[np.int32], builder: Builder) -> None:
    """The interval a statement holds in, from its `start time`, `end time`, or else `point in time`
    qualifiers.

    Several starts: the earliest; several ends: the latest. A side that is not given is open, one
    given as UNKNOWN is unknown.
    """
    places = {}
    for name in (START_TIME, END_TIME, POINT_IN_TIME):
        local = builder.texts.get(name)
        place = -1 if local is None else int(np.searchsorted(columns["pred.text"], text[local]))
        found = local is not None and place < len(columns["pred.text"]) and columns["pred.text"][place] == text[local]
        places[name] = place if found else -1
    owner, a, b, kind = columns["q.owner"], columns["q.a"], columns["q.b"], columns["q.kind"]
    offsets, items = columns["qkey.offsets"], columns["qkey.items"]

    def of(key: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        place = places[key]
        at = items[offsets[place] : offsets[place + 1]] if place >= 0 else items[:0]
        at = at[(kind[at] == Kind.TIME) | (kind[at] == Kind.UNKNOWN)]
        unknown = kind[at] == Kind.UNKNOWN
        return owner[at], np.where(unknown, UNKNOWN_START, a[at]), np.where(unknown, UNKNOWN_END, b[at]), unknown

    starts, ends, points = of(START_TIME), of(END_TIME), of(POINT_IN_TIME)
    statements = np.unique(np.concatenate([starts[0], ends[0], points[0]])).astype(I32)
    first = np.full(len(statements), OPEN_START, np.int64)
    last = np.full(len(statements), OPEN_END, np.int64)
    given = np.zeros(len(statements), bool)
    if len(starts[0]):
        at = np.searchsorted(statements, starts[0])
        least = np.full(len(statements), OPEN_END, np.int64)
        np.minimum.at(least, at, starts[1])
        given[at] = True
        first[at] = least[at]
    if len(ends[0]):
        at = np.searchsorted(statements, ends[0])
        most = np.full(len(statements), OPEN_START, np.int64)
        np.maximum.at(most, at, ends[2])
        given[at] = True
        last[at] = most[at]
    if len(points[0]):
        at = np.searchsorted(statements, points[0])
        alone = ~given[at]
        least = np.full(len(statements), OPEN_END, np.int64)
        most = np.full(len(statements), OPEN_START, np.int64)
        np.minimum.at(least, at, points[1])
        np.maximum.at(most, at, points[2])
        first[at[alone]], last[at[alone]] = least[at[alone]], most[at[alone]]
    columns["val.stmt"], columns["val.start"], columns["val.end"] = statements, first, last


def lay_memberships(columns: Columns, builder: Builder, entity: NDArray[np.int32]) -> None:
    """Memberships and subclasses, each once, with their sources; concepts closed."""
    for prefix, names, rows, many, first in (
        ("mem", ("e", "c"), builder.members, builder.many_members, 1),
        ("sub", ("c", "p"), builder.subclasses, [], 0),
    ):
        table = np.concatenate([np.array(rows, np.int64).reshape(-1, 4), *many])
        if len(table):
            table[:, 0], table[:, 1] = entity[table[:, 0]], entity[table[:, 1]]
            table = table[sorted_by([table[:, at] for at in (first, 1 - first, 2, 3)])]
            fresh = np.ones(len(table), bool)
            fresh[1:] = (table[1:] != table[:-1]).any(axis=1)
            table = table[fresh]
        for i, name in enumerate((*names, "src", "row")):
            columns[f"{prefix}.{name}"] = table[:, i].astype(I32)
    columns.update(closed_members(columns))


def lay_sources(columns: Columns, builder: Builder, text: NDArray[np.int32]) -> None:
    """Names, places, formats, contents and terms of the sources, and the statements of each."""
    for part in ("name", "location", "format", "content", "terms"):
        numbers = [text[builder.texts[getattr(source, part)]] for source in builder.sources]
        columns[f"src.{part}"] = np.array(numbers, I32)


def lay_schema(columns: Columns, relations: Columns, attributes: Columns) -> None:
    """What lowering asks: the qualifier keys seen on each predicate with their types, and the
    sources of each predicate.
    """
    predicates = np.concatenate([relations["p"], attributes["p"]])
    owner = columns["q.owner"]
    table = np.stack([predicates[owner], columns["q.key"], columns["q.kind"], columns["q.unit"]], axis=1)
    distinct, counts = np.unique(table, axis=0, return_counts=True)
    for i, name in enumerate(("pred", "key", "kind", "unit")):
        columns[f"sch.q.{name}"] = distinct[:, i].astype(I32)
    columns["sch.q.count"] = counts.astype(np.int64)
    sources = np.concatenate([columns["st.src"], columns["prov.src"]]).astype(np.int64)
    owners = np.concatenate([predicates, predicates[columns["prov.stmt"]]])
    width = max(len(columns["src.name"]), 1)
    pairs, counts = _counted(owners.astype(np.int64) * width + sources)
    columns["sch.s.pred"], columns["sch.s.src"] = (pairs // width).astype(I32), (pairs % width).astype(I32)
    columns["sch.s.count"] = counts
    if width > 1:
        # The statements of each source, for queries that are scoped to one.
        statements = np.concatenate([np.arange(len(predicates), dtype=I32), columns["prov.stmt"]])
        order = in_order([sources, statements]) if len(columns["prov.stmt"]) else in_order([sources])
        sources, statements = sources[order], statements[order]
        # A statement that stands in two rows of a source is one.
        fresh = changed(sources, statements)
        if not fresh.all():
            sources, statements = sources[fresh], statements[fresh]
        columns["bysrc.items"], columns["bysrc.offsets"] = statements, offsets_of(sources, width)


def _counted(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different ones of some numbers from 0 on, sorted, and how often each comes."""
    most = int(numbers.max(initial=0))
    if most <= len(numbers):
        counts = np.bincount(numbers, minlength=1)
        there = np.flatnonzero(counts)
        return there, counts[there].astype(np.int64)
    pairs = np.sort(numbers)
    firsts = np.flatnonzero(changed(pairs))
    return pairs[firsts], np.diff(np.append(firsts, len(pairs)))
