"""From columns in load order to the columns of a snapshot: equal statements merged, then indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, different, in_order, slices
from condgraph.engine.errors import LoadError
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, EntityKind
from condgraph.engine.snapshot.build import Builder, Declared, gather, gathered, joined, lay_declared
from condgraph.engine.snapshot.cells import PARTS, sortable
from condgraph.engine.snapshot.container import build_pool
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Kind

# -- memberships closed under subclass -------------------------------------------------------------
# Concepts and all that lies under them: membership closed under subclass, cycles tolerated.


#: Memberships that all concepts have together, whatever the source, and times as many as it states.
MOST: Final = 1 << 28
_TIMES: Final = 300


def components(children: dict[int, list[int]], concepts: list[int]) -> Iterator[list[int]]:
    """The concepts, those that lie under each other together, what is below before what is above
    (Tarjan's strongly connected components, without recursion).
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in concepts:
        if root in index:
            continue
        waiting: list[tuple[int, Iterator[int]]] = []
        fresh: int | None = root
        while fresh is not None or waiting:
            if fresh is not None:
                index[fresh] = low[fresh] = len(index)
                path.append(fresh)
                on_path.add(fresh)
                waiting.append((fresh, iter(children.get(fresh, ()))))
                fresh = None
            concept, below = waiting[-1]
            for child in below:
                if child not in index:
                    fresh = child
                    break
                if child in on_path:
                    low[concept] = min(low[concept], index[child])
            if fresh is not None:
                continue
            waiting.pop()
            if waiting:
                above = waiting[-1][0]
                low[above] = min(low[above], low[concept])
            if low[concept] == index[concept]:
                at = len(path) - 1
                while path[at] != concept:
                    at -= 1
                circle = path[at:]
                del path[at:]
                on_path.difference_update(circle)
                yield circle


def closed_members(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """`con.entity`, `con.offsets`, `con.items`: for each concept the entities (no concepts) it
    holds, sorted.

    Reads `mem.e` and `mem.c` (sorted by concept), `sub.c`, `sub.p` and `ent.kind`.
    """
    kinds = columns["ent.kind"]
    concepts = np.flatnonzero(kinds == EntityKind.CONCEPT).astype(np.int32)
    if not len(concepts):
        return {"con.entity": concepts, "con.offsets": np.zeros(1, np.int64), "con.items": np.empty(0, np.int32)}
    entity = kinds[columns["mem.e"]] != EntityKind.CONCEPT
    members, of = columns["mem.e"][entity], columns["mem.c"][entity]
    begin, end = np.searchsorted(of, concepts), np.searchsorted(of, concepts, side="right")
    direct = {int(c): members[b:e] for c, b, e in zip(concepts, begin, end, strict=True) if e > b}
    children: dict[int, list[int]] = {}
    for child, parent in zip(columns["sub.c"].tolist(), columns["sub.p"].tolist(), strict=True):
        children.setdefault(parent, []).append(child)
    none = members[:0]
    held: dict[int, NDArray[Any]] = {}
    most, made = max(MOST, _TIMES * len(members)), 0
    for together in components(children, concepts.tolist()):
        # Concepts that hold the same share one array, so that a long chain takes little room.
        parts = {id(part): part for item in together if (part := direct.get(item)) is not None}
        for item in together:
            parts |= {id(part): part for child in children.get(item, ()) if len(part := held.get(child, none))}
        found = next(iter(parts.values()), none)
        if len(parts) > 1:
            found = different(np.concatenate([*parts.values()]))
            made += len(found)
            if made > most:
                raise _too_many(made, members)
        held |= dict.fromkeys(together, found)
    items = [held[concept] for concept in concepts.tolist()]
    offsets = np.zeros(len(concepts) + 1, np.int64)
    np.cumsum([len(item) for item in items], out=offsets[1:])
    if offsets[-1] > most:
        raise _too_many(int(offsets[-1]), members)
    return {
        "con.entity": concepts,
        "con.offsets": offsets,
        "con.items": np.concatenate(items).astype(np.int32) if items else np.empty(0, np.int32),
    }


def _too_many(count: int, members: NDArray[Any]) -> LoadError:
    return LoadError(
        f"through subclasses the concepts have more than {count:,} members together, of {len(members):,} that are stated",
        hint="such a hierarchy is deeper than any that people make",
    )


# -- indexes ---------------------------------------------------------------------------------------
# Columns that answer questions: runs, adjacency, qualifiers by key, validity, memberships,
# sources, the schema.


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
    kept = order[changed(*(mark[order] for mark in marks))]
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
    if max(places.values()) < 0:
        columns["val.stmt"], columns["val.start"], columns["val.end"] = np.empty(0, I32), *2 * (np.empty(0, np.int64),)
        return
    offsets, items = columns["qkey.offsets"], columns["qkey.items"]
    at = [items[offsets[place] : offsets[place + 1]] if place >= 0 else items[:0] for place in places.values()]
    columns["val.stmt"], columns["val.start"], columns["val.end"] = validity(columns, *at)


def validity(
    columns: Columns, starting: NDArray[Any], ending: NDArray[Any], observed: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The statements that have a validity, and where it starts and ends, from the places of the qualifiers that say so."""
    owner, a, b, kind = columns["q.owner"], columns["q.a"], columns["q.b"], columns["q.kind"]

    def of(at: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        at = at[(kind[at] == Kind.TIME) | (kind[at] == Kind.UNKNOWN)]
        unknown = kind[at] == Kind.UNKNOWN
        return owner[at], np.where(unknown, UNKNOWN_START, a[at]), np.where(unknown, UNKNOWN_END, b[at])

    starts, ends, points = of(starting), of(ending), of(observed)
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
    return statements, first, last


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
            table = table[changed(*table.T)]
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
    # That is slow even where there is nothing.
    distinct, counts = np.unique(table, axis=0, return_counts=True) if len(table) else (table, owner)
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


# -- equal statements ------------------------------------------------------------------------------
# Equal statements become one: sorting by what makes statements equal, and what further sources
# said of them.


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
    result = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    for mark in reversed(marks[:-1]):
        if not len(result):
            break
        result = result[mark[order[result]] == mark[order[result - 1]]]
    return result


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


# -- the whole layout ------------------------------------------------------------------------------
# Everything is numbered so that order means something: texts by code point; entities by name, then id
# (the order of answers); predicates by name; relations by predicate, subject, object; attributes by
# predicate, type, unit, value, subject. Relations come first, so a statement's number tells which it
# is. Equal statements (subject, predicate, object, qualifiers) become one with all their sources.
#
# Columns (sizes: T texts, E entities, P predicates, R relations, A attributes, N = R + A, Q
# qualifiers):
#
#     pool.*                               the texts (`container`)
#     ent.id ent.name ent.kind [E]         text numbers; `ent.by_id` [E] entities sorted by id
#     ent.source ent.row [E or 0]          of table rows (-1, 0 for others); `row.key`, `row.entity`: rows by (source, row)
#     pred.text [P]
#     rel.s rel.o [R], rel.offsets [P + 1]
#     att.s att.raw + cell parts [A], att.offsets [P + 1]
#     grp.pred grp.kind grp.unit grp.start runs of attributes of one predicate, type and unit
#     out.offsets [E + 1], out.items [N]   statements by subject; in.offsets, in.items [R] relations by object
#     st.src st.row [N]                    first place, by source and row; prov.stmt prov.src prov.row prov.raw the further ones
#     q.owner q.key + cell parts [Q]       by statement; q.offsets [N + 1 or 0]
#     qkey.items [Q]                       qualifiers by key, type, unit and value, qkey.offsets [P + 1]
#     qgrp.key qgrp.kind qgrp.unit qgrp.start   runs of these of one key, type and unit
#     val.stmt val.start val.end           validity of the statements that have one
#     mem.e mem.c mem.src mem.row, sub.c sub.p sub.src sub.row   direct membership and subclasses
#     dec.e dec.src dec.name dec.kind dec.row   who declared what (`build`); dec.known [1]: it is known
#     con.entity [C], con.offsets [C + 1], con.items             members of each concept, closed under subclass, entities only
#     src.name src.location src.format src.content src.terms   text numbers
#     sch.*                                what the schema knows (`schema`)


RELATION = (("sid", I32), ("p", I32), ("s", I32), ("o", I32), ("row", I32), ("src", I32))
ATTRIBUTE = (("sid", I32), ("p", I32), ("s", I32), ("raw", I32), ("row", I32), ("src", I32), *PARTS)
QUALIFIER = (("sid", I32), ("key", I32), *PARTS)


def lay_out(builder: Builder) -> tuple[Columns, dict[str, Any]]:
    """The columns of a snapshot, and its counts (entities, concepts, relations, attributes,
    qualifiers, sources).
    """
    builder.finish()
    drop_emptied(builder)
    columns: Columns = {}
    said = gathered(builder)
    relations = gather(builder.relations, RELATION)
    attributes = gather(builder.attributes, ATTRIBUTE)
    qualifiers = gather(builder.qualifiers, QUALIFIER)
    builder.relations, builder.attributes, builder.qualifiers = [], [], []

    entity = _entities(builder, columns, said)
    text = columns.pop("text")
    predicate = _predicates(columns, text, relations, attributes, qualifiers)
    for chunk in (relations, attributes):
        chunk["p"], chunk["s"] = predicate[chunk["p"]], entity[chunk["s"]]
    relations["o"] = entity[relations["o"]]
    if builder.provenance:
        # Raw texts are the last of four.
        builder.provenance = [(*place[:3], int(text[place[3]]) if place[3] >= 0 else -1) for place in builder.provenance]
    for cells in (attributes, qualifiers):
        renumber_cells(cells, text, entity)
    attributes["raw"] = renumbered(attributes["raw"], text)
    qualifiers["key"] = predicate[qualifiers["key"]]

    # -- join equal statements and number what is left
    total = builder.statements
    qualifiers, fingerprint = distinct_qualifiers(qualifiers, total)
    number = np.full(total, -1, I32)
    first_r = join_equal(relations, ("p", "s", "o"), fingerprint, number, 0)
    kept_r = _taken(relations, first_r)
    attributes["value"] = sortable(attributes["kind"], attributes["a"], attributes["ref"])
    order = ("p", "kind", "unit", "value", "b", "ref", "precision", "s")
    first_a = join_equal(attributes, order, fingerprint, number, len(first_r))
    del attributes["value"]
    kept_a = _taken(attributes, first_a)
    lay_provenance(builder, columns, relations, attributes, kept_r, kept_a, number)
    del relations, attributes

    columns["rel.s"], columns["rel.o"] = kept_r["s"], kept_r["o"]
    columns["rel.offsets"] = offsets_of(kept_r["p"], len(columns["pred.text"]))
    columns["att.s"] = kept_a["s"]
    columns["att.raw"] = kept_a["raw"] if (kept_a["raw"] >= 0).any() else np.empty(0, I32)
    for name, _ in PARTS:
        columns[f"att.{name}"] = kept_a[name]
    columns["att.offsets"] = offsets_of(kept_a["p"], len(columns["pred.text"]))
    columns |= groups_of({"pred": kept_a["p"], "kind": kept_a["kind"], "unit": kept_a["unit"]}, "grp")
    lay_adjacency(columns, kept_r, kept_a, len(entity))
    lay_qualifiers(columns, qualifiers, number, len(columns["pred.text"]), len(kept_r["s"]) + len(kept_a["s"]))
    lay_validity(columns, text, builder)
    lay_memberships(columns, builder, entity)
    lay_sources(columns, builder, text)
    lay_schema(columns, kept_r, kept_a)
    called = renumbered(said.name, text)
    lay_declared(columns, joined([said._replace(e=entity[said.e] if len(said.e) else said.e, name=called)]))
    return columns, counts_of(columns)


def _taken(family: Columns, places: NDArray[np.int64]) -> Columns:
    """Some statements, by their places; a column that says the same of all of them is not looked up."""
    taken = {}
    for name, column in family.items():
        same = len(column) > 0 and column[0] == column[-1] and (column == column[0]).all()
        taken[name] = np.full(len(places), column[0], column.dtype) if same else column.take(places)
    return taken


def counts_of(columns: Columns) -> dict[str, int]:
    """How many of everything there are."""
    concepts = int((columns["ent.kind"] == EntityKind.CONCEPT).sum())
    return {
        "entities": len(columns["ent.kind"]) - concepts,
        "concepts": concepts,
        "rows": len(columns["row.key"]),
        "relations": len(columns["rel.s"]),
        "attributes": len(columns["att.s"]),
        "qualifiers": len(columns["q.owner"]),
        "memberships": len(columns["mem.e"]),
        "subclasses": len(columns["sub.c"]),
        "predicates": len(columns["pred.text"]),
        "sources": len(columns["src.name"]),
        # What lets execution skip work: are concepts ever at these ends, are there numbers that a
        # float cannot hold?
        "concept_subjects": _concepts(columns, "rel.s") if concepts else 0,
        "concept_objects": _concepts(columns, "rel.o") if concepts else 0,
        "concept_attributes": _concepts(columns, "att.s") if concepts else 0,
        "inexact": sum(_inexact(columns[f"{f}.kind"], columns[f"{f}.ref"]) for f in ("att", "q")),
    }


def _concepts(columns: Columns, ends: str) -> int:
    concept, entities = columns["ent.kind"] == EntityKind.CONCEPT, columns[ends]
    return sum(int(concept[entities[part]].sum()) for part in slices(len(entities)))


def _inexact(kind: NDArray[Any], ref: NDArray[Any]) -> int:
    return sum(int(((kind[part] == Kind.QUANTITY) & (ref[part] >= 0)).sum()) for part in slices(len(kind)))


def renumbered(numbers: NDArray[Any], to: NDArray[np.int32]) -> NDArray[np.int32]:
    """Renumber, leaving -1 as it is."""
    if not len(to):
        return numbers.astype(I32)
    return np.where(numbers >= 0, to[numbers], I32(-1)).astype(I32)


def _entities(builder: Builder, columns: Columns, said: Declared) -> NDArray[np.int32]:
    """Number texts and entities; returns the new number of each entity, and leaves that of each
    text under "text".
    """
    texts, known, n = builder.texts, builder.entities, len(builder.entities)
    kinds = np.zeros(n, np.int8)
    for kind in (EntityKind.ROW, EntityKind.CONCEPT):
        kinds[said.e[said.kind == kind]] = kind
    for concepts in ([m[1] for m in builder.members], [end for s in builder.subclasses for end in s[:2]]):
        kinds[np.array(concepts, np.int64)] = EntityKind.CONCEPT
    for members in builder.many_members:
        kinds[members[:, 1]] = EntityKind.CONCEPT
    for source in builder.sources:
        for part in (source.name, source.location, source.format, source.content, source.terms):
            texts[part]
    pool, ranks = build_pool([*known, *texts], [item[1:] for item in builder.spelled])
    columns.update(pool)
    ids, text = ranks[:n], ranks[n:]
    if builder.spelled:
        behind, text = n + len(texts), np.empty(len(text), I32)
        text[np.fromiter(texts.values(), I32, len(texts))] = ranks[n:behind]
        for begin, _, sizes in builder.spelled:
            text[begin : begin + len(sizes)] = ranks[behind : behind + len(sizes)]
            behind += len(sizes)
    columns["text"] = text
    names = ids.copy()
    named, at = said.firsts(said.name)
    names[named] = text[said.name[at]]
    order = in_order([names, ids])
    number = np.empty(n, I32)
    number[order] = np.arange(n, dtype=I32)
    columns["ent.id"], columns["ent.name"], columns["ent.kind"] = ids[order], names[order], kinds[order]
    columns["ent.by_id"] = in_order([columns["ent.id"]]).astype(I32)
    columns["ent.source"] = columns["ent.row"] = np.empty(0, I32)
    at, first = said.firsts(said.row)
    if len(at):
        where = np.stack([said.src[first], said.row[first]], axis=1).astype(np.int64)
        columns["ent.source"], columns["ent.row"] = np.full(n, -1, I32), np.zeros(n, I32)
        columns["ent.source"][number[at]], columns["ent.row"][number[at]] = where[:, 0], where[:, 1]
        key = where[:, 0] << 32 | where[:, 1]
        by_key = in_order([key])
        if not changed(key[by_key]).all():
            by_key = in_order([key, number[at]])
        columns["row.key"], columns["row.entity"] = key[by_key], number[at[by_key]]
    else:
        columns["row.key"], columns["row.entity"] = np.empty(0, np.int64), np.empty(0, I32)
    return number


def _predicates(columns: Columns, text: NDArray[np.int32], *families: Columns) -> NDArray[np.int32]:
    """Number predicates and qualifier keys together, by name; returns the number for each
    load-order text (-1: none).
    """
    used = np.zeros(len(text), bool)
    for family in families:
        used[family["p" if "p" in family else "key"]] = True
    local = np.flatnonzero(used)
    ranks = text[local]
    order = np.argsort(ranks)
    columns["pred.text"] = ranks[order].astype(I32)
    number = np.full(len(text), -1, I32)
    number[local[order]] = np.arange(len(local), dtype=I32)
    return number


def renumber_cells(cells: Columns, text: NDArray[np.int32], entity: NDArray[np.int32]) -> None:
    """Give the texts, units and entities of cells other numbers."""
    refs, entities = cells["ref"], cells["kind"] == Kind.ENTITY
    fresh = renumbered(np.where(entities, -1, refs), text)
    if entities.any():
        fresh[entities] = entity[refs[entities]]
    cells["ref"], cells["unit"] = fresh, renumbered(cells["unit"], text)
