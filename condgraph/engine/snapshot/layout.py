"""From columns in load order to the columns of a snapshot: the second half of building.

Everything is numbered so that order means something: texts by code point; entities by name, then id (the order of answers);
predicates by name; relations by predicate, subject, object; attributes by predicate, type, unit, value, subject. Relations come
first, so a statement's number tells which it is. Equal statements (subject, predicate, object, qualifiers) become one with all
their sources.

Columns (sizes: T texts, E entities, P predicates, R relations, A attributes, N = R + A, Q qualifiers):

    pool.*                               the texts (`pool`)
    ent.id ent.name ent.kind [E]         text numbers; `ent.by_id` [E] entities sorted by id
    ent.source ent.row [E or 0]          of table rows (-1, 0 for others); `row.key`, `row.entity`: rows by (source, row)
    pred.text [P]
    rel.s rel.o [R], rel.offsets [P + 1]
    att.s att.raw + cell parts [A], att.offsets [P + 1]
    grp.pred grp.kind grp.unit grp.start runs of attributes of one predicate, type and unit
    out.offsets [E + 1], out.items [N]   statements by subject; in.offsets, in.items [R] relations by object
    st.src st.row [N]                    first source; prov.stmt prov.src prov.row the further ones
    q.owner q.key + cell parts [Q]       by statement; q.offsets [N + 1 or 0]
    qkey.items [Q]                       qualifiers by key, type, unit and value, qkey.offsets [P + 1]
    qgrp.key qgrp.kind qgrp.unit qgrp.start   runs of these of one key, type and unit
    val.stmt val.start val.end           validity of the statements that have one
    mem.e mem.c mem.src mem.row, sub.c sub.p sub.src sub.row   direct membership and subclasses
    con.entity [C], con.offsets [C + 1], con.items             members of each concept, closed under subclass, entities only
    src.name src.location src.format     text numbers
    sch.*                                what the schema knows (`schema`)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, EntityKind
from condgraph.engine.snapshot.build import Builder, gather
from condgraph.engine.snapshot.cells import PARTS, sortable
from condgraph.engine.snapshot.closure import closed_members
from condgraph.engine.snapshot.pool import build_pool
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Kind

Columns = dict[str, NDArray[Any]]
_I32 = np.int32
_RELATION = (("sid", _I32), ("p", _I32), ("s", _I32), ("o", _I32), ("row", _I32), ("src", _I32))
_ATTRIBUTE = (("sid", _I32), ("p", _I32), ("s", _I32), ("raw", _I32), ("row", _I32), ("src", _I32), *PARTS)
_QUALIFIER = (("sid", _I32), ("key", _I32), *PARTS)


def lay_out(builder: Builder) -> tuple[Columns, dict[str, Any]]:
    """The columns of a snapshot, and its counts (entities, concepts, relations, attributes, qualifiers, sources)."""
    builder.finish()
    columns: Columns = {}
    relations = gather(builder.relations, _RELATION)
    attributes = gather(builder.attributes, _ATTRIBUTE)
    qualifiers = gather(builder.qualifiers, _QUALIFIER)
    builder.relations, builder.attributes, builder.qualifiers = [], [], []

    entity = _entities(builder, columns)
    text = columns.pop("text")
    predicate = _predicates(columns, text, relations, attributes, qualifiers)
    for chunk in (relations, attributes):
        chunk["p"], chunk["s"] = predicate[chunk["p"]], entity[chunk["s"]]
    relations["o"] = entity[relations["o"]]
    for cells in (attributes, qualifiers):
        _renumber_cells(cells, text, entity)
    attributes["raw"] = _map(attributes["raw"], text)
    qualifiers["key"] = predicate[qualifiers["key"]]

    # -- join equal statements and number what is left
    total = builder.statements
    qualifiers, fingerprint = _distinct_qualifiers(qualifiers, total)
    number = np.full(total, -1, _I32)
    first_r = _join(relations, ("p", "s", "o"), fingerprint, number, 0)
    kept_r = {name: column[first_r] for name, column in relations.items()}
    attributes["value"] = sortable(attributes["kind"], attributes["a"], attributes["ref"])
    order = ("p", "kind", "unit", "value", "b", "ref", "precision", "s")
    first_a = _join(attributes, order, fingerprint, number, len(first_r))
    kept_a = {name: column[first_a] for name, column in attributes.items()}
    _provenance(builder, columns, relations, attributes, kept_r, kept_a, number)
    del relations, attributes

    columns["rel.s"], columns["rel.o"] = kept_r["s"], kept_r["o"]
    columns["rel.offsets"] = _offsets(kept_r["p"], len(columns["pred.text"]))
    columns["att.s"] = kept_a["s"]
    columns["att.raw"] = kept_a["raw"] if (kept_a["raw"] >= 0).any() else np.empty(0, _I32)
    for name, _ in PARTS:
        columns[f"att.{name}"] = kept_a[name]
    columns["att.offsets"] = _offsets(kept_a["p"], len(columns["pred.text"]))
    columns |= _groups({"pred": kept_a["p"], "kind": kept_a["kind"], "unit": kept_a["unit"]}, "grp")
    _adjacency(columns, kept_r, kept_a, len(entity))
    _qualifiers(columns, qualifiers, number, len(columns["pred.text"]), len(kept_r["s"]) + len(kept_a["s"]))
    _validity(columns, text, builder)
    _membership(columns, builder, entity)
    _sources(columns, builder, text)
    _schema(columns, kept_r, kept_a)
    counts = {
        "entities": int((columns["ent.kind"] != EntityKind.CONCEPT).sum()),
        "concepts": int((columns["ent.kind"] == EntityKind.CONCEPT).sum()),
        "rows": len(columns["row.key"]),
        "relations": len(kept_r["s"]),
        "attributes": len(kept_a["s"]),
        "qualifiers": len(columns["q.owner"]),
        "memberships": len(columns["mem.e"]),
        "subclasses": len(columns["sub.c"]),
        "predicates": len(columns["pred.text"]),
        "sources": len(columns["src.name"]),
        # What lets execution skip work: are concepts ever at these ends, are there numbers that a float cannot hold?
        "concept_subjects": _concepts(columns, "rel.s"),
        "concept_objects": _concepts(columns, "rel.o"),
        "concept_attributes": _concepts(columns, "att.s"),
        "inexact": sum(int(((columns[f"{f}.kind"] == Kind.QUANTITY) & (columns[f"{f}.ref"] >= 0)).sum()) for f in ("att", "q")),
    }
    return columns, counts


def _concepts(columns: Columns, ends: str) -> int:
    return int((columns["ent.kind"][columns[ends]] == EntityKind.CONCEPT).sum())


def _map(numbers: NDArray[Any], to: NDArray[np.int32]) -> NDArray[np.int32]:
    """Renumber, leaving -1 as it is."""
    if not len(to):
        return numbers.astype(_I32)
    return np.where(numbers >= 0, to[numbers], _I32(-1)).astype(_I32)


def _offsets(sorted_numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Where each number begins in a sorted column: `[offsets[i], offsets[i + 1])` holds the i's."""
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(sorted_numbers, minlength=size), out=offsets[1:])
    return offsets


def _entities(builder: Builder, columns: Columns) -> NDArray[np.int32]:
    """Number texts and entities; returns the new number of each entity, and leaves that of each text under "text"."""
    texts, known, n = builder.texts, builder.entities, len(builder.entities)
    given = [texts[name] for name in builder.names.values()]
    kinds = np.zeros(n, np.int8)
    for entity, kind in builder.kinds.items():
        kinds[entity] = kind
    for source in builder.sources:
        for part in (source.name, source.location, source.format):
            texts[part]
    # Ids are numbered already; only the other texts are added to them.
    others = [text for text in texts if text not in known]
    pool, ranks = build_pool([*known, *others])
    columns.update(pool)
    ids, rest = ranks[:n], iter(range(n, n + len(others)))
    text = ranks[np.fromiter((known[text] if text in known else next(rest) for text in texts), np.int64, len(texts))]
    columns["text"] = text
    names = ids.copy()
    names[np.fromiter(builder.names, np.int64, len(given))] = text[np.array(given, np.int64)]
    order = np.lexsort((ids, names))
    number = np.empty(n, _I32)
    number[order] = np.arange(n, dtype=_I32)
    columns["ent.id"], columns["ent.name"], columns["ent.kind"] = ids[order], names[order], kinds[order]
    columns["ent.by_id"] = np.argsort(columns["ent.id"], kind="stable").astype(_I32)
    columns["ent.source"] = columns["ent.row"] = np.empty(0, _I32)
    if builder.rows:
        at = np.fromiter(builder.rows, np.int64, len(builder.rows))
        place = np.array(list(builder.rows.values()), np.int64)
        columns["ent.source"], columns["ent.row"] = np.full(n, -1, _I32), np.zeros(n, _I32)
        columns["ent.source"][number[at]], columns["ent.row"][number[at]] = place[:, 0], place[:, 1]
        key = place[:, 0] << 32 | place[:, 1]
        by_key = np.argsort(key, kind="stable")
        columns["row.key"], columns["row.entity"] = key[by_key], number[at[by_key]]
    else:
        columns["row.key"], columns["row.entity"] = np.empty(0, np.int64), np.empty(0, _I32)
    return number


def _predicates(columns: Columns, text: NDArray[np.int32], *families: Columns) -> NDArray[np.int32]:
    """Number predicates and qualifier keys together, by name; returns the number for each load-order text (-1: none)."""
    used = np.zeros(len(text), bool)
    for family in families:
        used[family["p" if "p" in family else "key"]] = True
    local = np.flatnonzero(used)
    ranks = text[local]
    order = np.argsort(ranks)
    columns["pred.text"] = ranks[order].astype(_I32)
    number = np.full(len(text), -1, _I32)
    number[local[order]] = np.arange(len(local), dtype=_I32)
    return number


def _renumber_cells(cells: Columns, text: NDArray[np.int32], entity: NDArray[np.int32]) -> None:
    refs, entities = cells["ref"], cells["kind"] == Kind.ENTITY
    fresh = _map(np.where(entities, -1, refs), text)
    if entities.any():
        fresh[entities] = entity[refs[entities]]
    cells["ref"], cells["unit"] = fresh, _map(cells["unit"], text)


def _mix(hashes: NDArray[np.uint64], column: NDArray[Any]) -> NDArray[np.uint64]:
    """Fold a column into 64-bit hashes (the finaliser of splitmix64)."""
    h = (hashes ^ column.astype(np.int64).view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def _distinct_qualifiers(qualifiers: Columns, total: int) -> tuple[Columns, NDArray[np.uint64] | None]:
    """Drop repeated qualifiers of a statement; returns the rest and one fingerprint a statement of its set of qualifiers."""
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


def _join(
    family: Columns, keys: tuple[str, ...], fingerprint: NDArray[np.uint64] | None, number: NDArray[np.int32], base: int
) -> NDArray[np.int64]:
    """Sort a family and join equal statements. Fills `number` (load order to final) from `base`; returns the kept positions."""
    n = len(family["sid"])
    if not n:
        return np.empty(0, np.int64)
    marks = [family[key] for key in keys]
    if fingerprint is not None:
        marks.append(fingerprint[family["sid"]])
    order = _sort(marks)
    fresh = np.zeros(n, bool)
    fresh[0] = True
    for mark in marks:
        ordered = mark[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    number[family["sid"][order]] = base + np.cumsum(fresh, dtype=_I32) - 1
    return order[fresh]


def _sort(marks: list[NDArray[Any]]) -> NDArray[np.int64]:
    """A stable lexicographic order, the first mark the most significant; constant marks cost nothing, narrow ones are packed."""
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


def _provenance(
    builder: Builder,
    columns: Columns,
    relations: Columns,
    attributes: Columns,
    kept_r: Columns,
    kept_a: Columns,
    number: NDArray[np.int32],
) -> None:
    """First source of each statement, and the further ones: of statements that were joined, and those given by `Sourced`."""
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
        columns[f"prov.{name}"] = rows[:, i].astype(_I32)


def _groups(marks: Columns, prefix: str) -> Columns:
    """Runs of sorted cells with equal marks (predicate or key, type, unit): the marks of each, and where it starts."""
    n = len(next(iter(marks.values())))
    fresh = np.zeros(n, bool)
    fresh[:1] = True
    for column in marks.values():
        fresh[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(fresh)
    groups = {f"{prefix}.{name}": column[starts] for name, column in marks.items()}
    return groups | {f"{prefix}.start": np.append(starts, n).astype(np.int64)}


def _adjacency(columns: Columns, relations: Columns, attributes: Columns, entities: int) -> None:
    subjects = np.concatenate([relations["s"], attributes["s"]])
    columns["out.items"] = np.argsort(subjects, kind="stable").astype(_I32)
    columns["out.offsets"] = _offsets(subjects, entities)
    columns["in.items"] = np.argsort(relations["o"], kind="stable").astype(_I32)
    columns["in.offsets"] = _offsets(relations["o"], entities)


def _qualifiers(columns: Columns, qualifiers: Columns, number: NDArray[np.int32], predicates: int, statements: int) -> None:
    """Qualifiers of the kept statements by (statement, key, value); where statements were joined, one copy of them."""
    owner = number[qualifiers["sid"]] if len(qualifiers["sid"]) else qualifiers["sid"]
    value = sortable(qualifiers["kind"], qualifiers["a"], qualifiers["ref"])
    parts = ("key", *(name for name, _ in PARTS))
    marks = [owner, qualifiers["key"], qualifiers["kind"], value, qualifiers["b"], qualifiers["unit"], qualifiers["ref"]]
    order = np.lexsort(marks[::-1])
    fresh = np.zeros(len(order), bool)
    fresh[:1] = True
    for mark in (*marks, qualifiers["precision"]):
        ordered = mark[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    kept = order[fresh]
    columns["q.owner"] = owner[kept].astype(_I32)
    for name in parts:
        columns[f"q.{name}"] = qualifiers[name][kept]
    if len(kept):
        columns["q.offsets"] = _offsets(columns["q.owner"], statements).astype(_I32)
    columns["qkey.offsets"] = _offsets(columns["q.key"], predicates)
    sorted_by = {"key": columns["q.key"], "kind": columns["q.kind"], "unit": columns["q.unit"]}
    items = _sort([*sorted_by.values(), value[kept], columns["q.b"]]) if len(kept) else kept
    columns["qkey.items"] = items.astype(_I32)
    columns |= _groups({name: column[items] for name, column in sorted_by.items()}, "qgrp")


def _validity(columns: Columns, text: NDArray[np.int32], builder: Builder) -> None:
    """The interval a statement holds in, from its `start time`, `end time`, or else `point in time` qualifiers.

    Several starts: the earliest; several ends: the latest. A side that is not given is open, one given as UNKNOWN is unknown.
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
    statements = np.unique(np.concatenate([starts[0], ends[0], points[0]])).astype(_I32)
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


def _membership(columns: Columns, builder: Builder, entity: NDArray[np.int32]) -> None:
    for prefix, names, rows, first in (
        ("mem", ("e", "c"), builder.members, 1),
        ("sub", ("c", "p"), builder.subclasses, 0),
    ):
        table = np.array(rows, np.int64).reshape(-1, 4)
        if len(table):
            table[:, 0], table[:, 1] = entity[table[:, 0]], entity[table[:, 1]]
            table = np.unique(table, axis=0)
            table = table[np.lexsort((table[:, 3], table[:, 2], table[:, 1 - first], table[:, first]))]
        for i, name in enumerate((*names, "src", "row")):
            columns[f"{prefix}.{name}"] = table[:, i].astype(_I32)
    columns.update(closed_members(columns))


def _sources(columns: Columns, builder: Builder, text: NDArray[np.int32]) -> None:
    for part in ("name", "location", "format"):
        numbers = [text[builder.texts[getattr(source, part)]] for source in builder.sources]
        columns[f"src.{part}"] = np.array(numbers, _I32)


def _schema(columns: Columns, relations: Columns, attributes: Columns) -> None:
    """What lowering asks: the qualifier keys seen on each predicate with their types, and the sources of each predicate."""
    predicates = np.concatenate([relations["p"], attributes["p"]])
    owner = columns["q.owner"]
    table = np.stack([predicates[owner], columns["q.key"], columns["q.kind"], columns["q.unit"]], axis=1)
    distinct, counts = np.unique(table, axis=0, return_counts=True)
    for i, name in enumerate(("pred", "key", "kind", "unit")):
        columns[f"sch.q.{name}"] = distinct[:, i].astype(_I32)
    columns["sch.q.count"] = counts.astype(np.int64)
    sources = np.concatenate([columns["st.src"], columns["prov.src"]]).astype(np.int64)
    owners = np.concatenate([predicates, predicates[columns["prov.stmt"]]])
    width = max(len(columns["src.name"]), 1)
    pairs, counts = np.unique(owners.astype(np.int64) * width + sources, return_counts=True)
    columns["sch.s.pred"], columns["sch.s.src"] = (pairs // width).astype(_I32), (pairs % width).astype(_I32)
    columns["sch.s.count"] = counts.astype(np.int64)
    if width > 1:
        # The statements of each source, for queries that are scoped to one.
        statements = np.concatenate([np.arange(len(predicates), dtype=_I32), columns["prov.stmt"]])
        order = np.lexsort((statements, sources))
        columns["bysrc.items"], columns["bysrc.offsets"] = statements[order], _offsets(sources[order], width)
