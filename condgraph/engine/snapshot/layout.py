"""Lay out the columns of a snapshot from columns in load order: merge equal statements, then build indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, different, in_order, slices
from condgraph.engine.errors import LoadError
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, EntityKind
from condgraph.engine.snapshot.build import Builder, Declared, gather, gathered, joined, lay_declared
from condgraph.engine.snapshot.cells import PARTS, mix, sortable
from condgraph.engine.snapshot.container import build_pool
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Kind

# -- memberships closed under subclass -------------------------------------------------------------
# The transitive members of concepts: membership closed under subclass, cycles tolerated.


#: The largest number of transitive memberships, absolute and as a multiple of the stated ones.
MAX_MEMBERSHIPS: Final = 1 << 28
_TIMES: Final = 300


def components(children: dict[int, list[int]], concepts: list[int]) -> Iterator[list[int]]:
    """Yield groups of concepts that are subclasses of each other, subclasses before superclasses (Tarjan's strongly
    connected components, without recursion).
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
    """Return `con.entity`, `con.offsets`, `con.items`: the sorted entities (not concepts) in each concept, including
    its subclasses.

    Reads `mem.e` and `mem.c` (sorted by concept), `sub.c`, `sub.p` and `ent.kind`.
    """
    kinds = columns["ent.kind"]
    concepts = np.flatnonzero(kinds == EntityKind.CONCEPT).astype(np.int32)
    if not len(concepts):
        return {"con.entity": concepts, "con.offsets": np.zeros(1, np.int64), "con.items": np.empty(0, np.int32)}
    entity = kinds[columns["mem.e"]] != EntityKind.CONCEPT
    members, member_concepts = columns["mem.e"][entity], columns["mem.c"][entity]
    begin, end = np.searchsorted(member_concepts, concepts), np.searchsorted(member_concepts, concepts, side="right")
    direct = {int(c): members[b:e] for c, b, e in zip(concepts, begin, end, strict=True) if e > b}
    children: dict[int, list[int]] = {}
    for child, parent in zip(columns["sub.c"].tolist(), columns["sub.p"].tolist(), strict=True):
        children.setdefault(parent, []).append(child)
    none = members[:0]
    members_of: dict[int, NDArray[Any]] = {}
    limit, total = max(MAX_MEMBERSHIPS, _TIMES * len(members)), 0
    for component in components(children, concepts.tolist()):
        # Concepts with the same members share one array, so that a long chain takes little memory.
        parts = {id(part): part for item in component if (part := direct.get(item)) is not None}
        for item in component:
            parts |= {id(part): part for child in children.get(item, ()) if len(part := members_of.get(child, none))}
        union = next(iter(parts.values()), none)
        if len(parts) > 1:
            union = different(np.concatenate([*parts.values()]))
            total += len(union)
            if total > limit:
                raise _too_many_members(total, members)
        members_of |= dict.fromkeys(component, union)
    items = [members_of[concept] for concept in concepts.tolist()]
    offsets = np.zeros(len(concepts) + 1, np.int64)
    np.cumsum([len(item) for item in items], out=offsets[1:])
    if offsets[-1] > limit:
        raise _too_many_members(int(offsets[-1]), members)
    return {
        "con.entity": concepts,
        "con.offsets": offsets,
        "con.items": np.concatenate(items).astype(np.int32) if items else np.empty(0, np.int32),
    }


def _too_many_members(count: int, members: NDArray[Any]) -> LoadError:
    return LoadError(
        f"through subclasses the concepts have more than {count:,} members together, of {len(members):,} that are stated",
        hint="such a hierarchy is deeper than any that people make",
    )


# -- indexes ---------------------------------------------------------------------------------------
# Index columns: runs, adjacency, qualifiers by key, validity, memberships, sources, the schema.


def offsets_of(sorted_numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Return the begin of each number in a sorted column: `[offsets[i], offsets[i + 1])` are the positions of i."""
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(sorted_numbers, minlength=size), out=offsets[1:])
    return offsets


def groups_of(marks: Columns, prefix: str) -> Columns:
    """Return runs of sorted cells with equal marks (predicate or key, type, unit): the marks of each, and its start."""
    length = len(next(iter(marks.values())))
    starts = np.flatnonzero(changed(*marks.values()))
    groups = {f"{prefix}.{name}": column[starts] for name, column in marks.items()}
    return groups | {f"{prefix}.start": np.append(starts, length).astype(np.int64)}


def lay_adjacency(columns: Columns, relations: Columns, attributes: Columns, entities: int) -> None:
    """Index the statements by subject, and the relations by object."""
    subjects = np.concatenate([relations["s"], attributes["s"]])
    columns["out.items"] = in_order([subjects]).astype(I32)
    columns["out.offsets"] = offsets_of(subjects, entities).astype(I32)
    columns["in.items"] = in_order([relations["o"]]).astype(I32)
    columns["in.offsets"] = offsets_of(relations["o"], entities).astype(I32)


def lay_qualifiers(columns: Columns, qualifiers: Columns, number: NDArray[np.int32], predicates: int, statements: int) -> None:
    """Sort the qualifiers of the merged statements by (statement, key, value), without repeats."""
    owner = number[qualifiers["sid"]] if len(qualifiers["sid"]) else qualifiers["sid"]
    value = sortable(qualifiers["kind"], qualifiers["a"], qualifiers["ref"])
    parts = ("key", *(name for name, _ in PARTS))
    sort_keys = [owner, qualifiers["key"], qualifiers["kind"], value]
    sort_keys += [qualifiers[name] for name in ("b", "unit", "ref", "precision")]
    order = np.lexsort(sort_keys[::-1])
    distinct_rows = order[changed(*(column[order] for column in sort_keys))]
    columns["q.owner"] = owner[distinct_rows].astype(I32)
    for name in parts:
        columns[f"q.{name}"] = qualifiers[name][distinct_rows]
    if len(distinct_rows):
        columns["q.offsets"] = offsets_of(columns["q.owner"], statements).astype(I32)
    columns["qkey.offsets"] = offsets_of(columns["q.key"], predicates)
    marks_of = {"key": columns["q.key"], "kind": columns["q.kind"], "unit": columns["q.unit"]}
    items = sorted_by([*marks_of.values(), value[distinct_rows], columns["q.b"]]) if len(distinct_rows) else distinct_rows
    columns["qkey.items"] = items.astype(I32)
    columns |= groups_of({name: column[items] for name, column in marks_of.items()}, "qgrp")


def lay_validity(columns: Columns, text: NDArray[np.int32], builder: Builder) -> None:
    """Compute the validity of statements from their `start time`, `end time`, or else `point in time` qualifiers.

    Of several starts the earliest counts, of several ends the latest. A missing side is open, one with the value
    UNKNOWN is unknown.
    """
    places = {}
    for name in (START_TIME, END_TIME, POINT_IN_TIME):
        local = builder.texts.get(name)
        place = -1 if local is None else int(np.searchsorted(columns["pred.text"], text[local]))
        is_known = local is not None and place < len(columns["pred.text"]) and columns["pred.text"][place] == text[local]
        places[name] = place if is_known else -1
    if max(places.values()) < 0:
        columns["val.stmt"], columns["val.start"], columns["val.end"] = np.empty(0, I32), *2 * (np.empty(0, np.int64),)
        return
    offsets, items = columns["qkey.offsets"], columns["qkey.items"]
    qualifier_lists = [items[offsets[place] : offsets[place + 1]] if place >= 0 else items[:0] for place in places.values()]
    columns["val.stmt"], columns["val.start"], columns["val.end"] = validity(columns, *qualifier_lists)


def validity(
    columns: Columns, starting: NDArray[Any], ending: NDArray[Any], observed: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the statements that have a validity, with its start and end, given the positions of the three kinds of
    qualifiers.
    """
    owner, a, b, kind = columns["q.owner"], columns["q.a"], columns["q.b"], columns["q.kind"]

    def read(at: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        at = at[(kind[at] == Kind.TIME) | (kind[at] == Kind.UNKNOWN)]
        unknown = kind[at] == Kind.UNKNOWN
        return owner[at], np.where(unknown, UNKNOWN_START, a[at]), np.where(unknown, UNKNOWN_END, b[at])

    starts, ends, points = read(starting), read(ending), read(observed)
    statements = np.unique(np.concatenate([starts[0], ends[0], points[0]])).astype(I32)

    def extreme(owners: NDArray[Any], bounds: NDArray[Any], pick: np.ufunc, worst: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the smallest or largest bound of each statement, and which statements have one."""
        positions = np.searchsorted(statements, owners)
        result, is_bound = np.full(len(statements), worst, np.int64), np.zeros(len(statements), bool)
        pick.at(result, positions, bounds)
        is_bound[positions] = True
        return result, is_bound

    earliest, has_start = extreme(starts[0], starts[1], np.minimum, OPEN_END)
    latest, has_end = extreme(ends[0], ends[2], np.maximum, OPEN_START)
    first_point, has_point = extreme(points[0], points[1], np.minimum, OPEN_END)
    last_point, _ = extreme(points[0], points[2], np.maximum, OPEN_START)
    points_only = has_point & ~(has_start | has_end)
    first = np.where(has_start, earliest, np.where(points_only, first_point, OPEN_START))
    return statements, first, np.where(has_end, latest, np.where(points_only, last_point, OPEN_END))


def lay_memberships(columns: Columns, builder: Builder, entity: NDArray[np.int32]) -> None:
    """Store memberships and subclasses, each once, with their sources, and the transitive members of concepts."""
    for prefix, names, rows, batches, first in (
        ("mem", ("e", "c"), builder.members, builder.many_members, 1),
        ("sub", ("c", "p"), builder.subclasses, [], 0),
    ):
        table = np.concatenate([np.array(rows, np.int64).reshape(-1, 4), *batches])
        if len(table):
            table[:, 0], table[:, 1] = entity[table[:, 0]], entity[table[:, 1]]
            table = table[sorted_by([table[:, index] for index in (first, 1 - first, 2, 3)])]
            table = table[changed(*table.T)]
        for index, name in enumerate((*names, "src", "row")):
            columns[f"{prefix}.{name}"] = table[:, index].astype(I32)
    columns.update(closed_members(columns))


def lay_sources(columns: Columns, builder: Builder, text: NDArray[np.int32]) -> None:
    """Store names, locations, formats, contents and terms of the sources."""
    for part in ("name", "location", "format", "content", "terms"):
        numbers = [text[builder.texts[getattr(source, part)]] for source in builder.sources]
        columns[f"src.{part}"] = np.array(numbers, I32)


def lay_schema(columns: Columns, relations: Columns, attributes: Columns) -> None:
    """Store the data of the schema: the qualifier keys of each predicate with their types, and the sources of each
    predicate.
    """
    predicates = np.concatenate([relations["p"], attributes["p"]])
    owner = columns["q.owner"]
    table = np.stack([predicates[owner], columns["q.key"], columns["q.kind"], columns["q.unit"]], axis=1)
    # `np.unique` is slow even on an empty table.
    distinct, counts = np.unique(table, axis=0, return_counts=True) if len(table) else (table, owner)
    for index, name in enumerate(("pred", "key", "kind", "unit")):
        columns[f"sch.q.{name}"] = distinct[:, index].astype(I32)
    columns["sch.q.count"] = counts.astype(np.int64)
    sources = np.concatenate([columns["st.src"], columns["prov.src"]]).astype(np.int64)
    owners = np.concatenate([predicates, predicates[columns["prov.stmt"]]])
    width = max(len(columns["src.name"]), 1)
    pairs, counts = _distinct_counts(owners.astype(np.int64) * width + sources)
    columns["sch.s.pred"], columns["sch.s.src"] = (pairs // width).astype(I32), (pairs % width).astype(I32)
    columns["sch.s.count"] = counts
    if width > 1:
        # The statements of each source, for queries that are scoped to one.
        statements = np.concatenate([np.arange(len(predicates), dtype=I32), columns["prov.stmt"]])
        order = in_order([sources, statements]) if len(columns["prov.stmt"]) else in_order([sources])
        sources, statements = sources[order], statements[order]
        # A statement in two rows of a source counts once.
        is_first = changed(sources, statements)
        if not is_first.all():
            sources, statements = sources[is_first], statements[is_first]
        columns["bysrc.items"], columns["bysrc.offsets"] = statements, offsets_of(sources, width)


def _distinct_counts(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct ones of non-negative numbers, sorted, and the count of each."""
    maximum = int(numbers.max(initial=0))
    if maximum <= len(numbers):
        counts = np.bincount(numbers, minlength=1)
        occurring = np.flatnonzero(counts)
        return occurring, counts[occurring].astype(np.int64)
    pairs = np.sort(numbers)
    starts = np.flatnonzero(changed(pairs))
    return pairs[starts], np.diff(np.append(starts, len(pairs)))


# -- equal statements ------------------------------------------------------------------------------
# Merging equal statements: sorting by all that makes statements equal, and storing further sources.


Columns = dict[str, NDArray[Any]]


I32 = np.int32
#: The mean number of statements of a predicate from which on predicates are sorted separately.
_LARGE: Final = 10_000


def distinct_qualifiers(qualifiers: Columns, total: int) -> tuple[Columns, NDArray[np.uint64] | None]:
    """Drop repeated qualifiers of a statement; return the others, and a fingerprint of each statement's set of
    qualifiers.
    """
    length = len(qualifiers["sid"])
    if not length:
        return qualifiers, None
    hashes = np.zeros(length, np.uint64)
    for name in ("key", "kind", "a", "b", "ref", "unit", "precision"):
        hashes = mix(hashes, qualifiers[name].astype(np.int64).view(np.uint64))
    order = np.lexsort((hashes, qualifiers["sid"]))
    positions = np.sort(order[changed(qualifiers["sid"][order], hashes[order])])
    qualifiers = {name: column[positions] for name, column in qualifiers.items()}
    fingerprint = np.zeros(total, np.uint64)
    np.add.at(fingerprint, qualifiers["sid"], mix(hashes[positions], np.uint64(1)))
    return qualifiers, fingerprint


def join_equal(
    family: Columns, keys: tuple[str, ...], fingerprint: NDArray[np.uint64] | None, number: NDArray[np.int32], base: int
) -> NDArray[np.int64]:
    """Sort relations or attributes and merge equal statements. Fill `number` (load order to final) from `base`;
    return the positions of the first of each.
    """
    length = len(family["sid"])
    if not length:
        return np.empty(0, np.int64)
    sort_keys = [family[key] for key in keys]
    if fingerprint is not None:
        sort_keys.append(fingerprint[family["sid"]])
    order = sorted_by(sort_keys)
    is_first = np.ones(length, bool)
    is_first[_repeats(sort_keys, order)] = False
    number[family["sid"][order]] = base + np.cumsum(is_first, dtype=I32) - 1
    return order[is_first]


def _repeats(marks: list[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions in an order at which all columns equal those of the position before. The last column,
    which differs most often, is compared first.
    """
    last_column = marks[-1][order]
    result = np.flatnonzero(last_column[1:] == last_column[:-1]) + 1
    for column in reversed(marks[:-1]):
        if not len(result):
            break
        result = result[column[order[result]] == column[order[result - 1]]]
    return result


def sorted_by(marks: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Return a stable lexicographic order, the first column the most significant (`bounds.in_order`). If the first
    column forms few large groups, each is sorted separately, where more columns are constant.
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
            order[begin:end] = group[in_order([column[group] for column in marks[1:]])]
    return order


def drop_emptied(builder: Builder) -> None:
    """Remove the sources without content, and renumber the others."""
    if not builder.emptied:
        return
    remaining = [number for number in range(len(builder.sources)) if number not in builder.emptied]
    number = np.full(len(builder.sources) + 1, -1, I32)
    number[remaining] = np.arange(len(remaining), dtype=I32)
    new_numbers = number.tolist()
    for chunk in (*builder.relations, *builder.attributes):
        chunk["src"] = number[chunk["src"]]
    builder.members = [(first, second, new_numbers[source], row) for first, second, source, row in builder.members]
    for members in builder.many_members:
        members[:, 2] = number[members[:, 2]]
    builder.subclasses = [(first, second, new_numbers[source], row) for first, second, source, row in builder.subclasses]
    builder.provenance = [(sid, new_numbers[source], row, raw) for sid, source, row, raw in builder.provenance]
    builder.declared = {new_numbers[source]: entities for source, entities in builder.declared.items()}
    builder.rows = [(new_numbers[source], e, names, rows) for source, e, names, rows in builder.rows]
    if builder.seeded is not None:
        builder.seeded = builder.seeded._replace(src=number[builder.seeded.src])
    builder.sources = [builder.sources[number] for number in remaining]
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
    """Store the first location of each statement (source, row, raw text), and its further ones: those of merged
    statements, and those given by `Sourced`.
    """
    columns["st.src"] = np.concatenate([kept_r["src"], kept_a["src"]])
    columns["st.row"] = np.concatenate([kept_r["row"], kept_a["row"]])
    split = len(kept_r["src"])
    further = [np.array(builder.provenance, np.int64).reshape(-1, 4)]
    if len(further[0]):
        further[0][:, 0] = number[further[0][:, 0]]
    for family, kept in ((relations, kept_r), (attributes, kept_a)):
        if len(family["sid"]) > len(kept["sid"]):
            dropped = np.ones(len(family["sid"]), bool)
            dropped[np.isin(family["sid"], kept["sid"], assume_unique=True)] = False
            raw = family["raw"][dropped] if "raw" in family else np.full(int(dropped.sum()), -1)
            further.append(np.stack([number[family["sid"][dropped]], family["src"][dropped], family["row"][dropped], raw], axis=1))
    rows = np.concatenate(further)
    raws = np.concatenate([np.full(split, -1, I32), kept_a["raw"]])
    if len(rows):
        repeated = np.unique(rows[:, 0])
        first = np.stack([repeated, columns["st.src"][repeated], columns["st.row"][repeated], raws[repeated]], axis=1)
        rows = np.concatenate([first, rows])
        # If one location has the statement twice, the first raw text counts.
        rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
        rows = rows[changed(*rows[:, :3].T)]
        begins = changed(rows[:, 0])
        first_rows = rows[begins]
        columns["st.src"][first_rows[:, 0]], columns["st.row"][first_rows[:, 0]] = first_rows[:, 1], first_rows[:, 2]
        raws[first_rows[:, 0]] = first_rows[:, 3]
        kept_a["raw"] = raws[split:]
        rows = rows[~begins]
    for i, name in enumerate(("stmt", "src", "row", "raw")):
        columns[f"prov.{name}"] = rows[:, i].astype(I32)
    if not (rows[:, 3] >= 0).any() and not (raws >= 0).any():
        columns["prov.raw"] = np.empty(0, I32)


# -- the whole layout ------------------------------------------------------------------------------
# All numbers follow a meaningful order: texts by code point; entities by name, then id
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
#     dec.e dec.src dec.name dec.kind dec.row   declarations (`build`); dec.known [1] exists if they are known
#     con.entity [C], con.offsets [C + 1], con.items             members of each concept, closed under subclass, entities only
#     src.name src.location src.format src.content src.terms   text numbers
#     sch.*                                data of the schema (`schema`)


RELATION = (("sid", I32), ("p", I32), ("s", I32), ("o", I32), ("row", I32), ("src", I32))
ATTRIBUTE = (("sid", I32), ("p", I32), ("s", I32), ("raw", I32), ("row", I32), ("src", I32), *PARTS)
QUALIFIER = (("sid", I32), ("key", I32), *PARTS)


def lay_out(builder: Builder) -> tuple[Columns, dict[str, Any]]:
    """Return the columns of a snapshot, and its counts (entities, concepts, relations, attributes, qualifiers,
    sources).
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
        # The raw text is the last of four items.
        builder.provenance = [(*place[:3], int(text[place[3]]) if place[3] >= 0 else -1) for place in builder.provenance]
    for cells in (attributes, qualifiers):
        renumber_cells(cells, text, entity)
    attributes["raw"] = renumbered(attributes["raw"], text)
    qualifiers["key"] = predicate[qualifiers["key"]]

    # -- merge equal statements and number the result
    total = builder.statements
    qualifiers, fingerprint = distinct_qualifiers(qualifiers, total)
    number = np.full(total, -1, I32)
    first_r = join_equal(relations, ("p", "s", "o"), fingerprint, number, 0)
    kept_r = _take(relations, first_r)
    attributes["value"] = sortable(attributes["kind"], attributes["a"], attributes["ref"])
    order = ("p", "kind", "unit", "value", "b", "ref", "precision", "s")
    first_a = join_equal(attributes, order, fingerprint, number, len(first_r))
    del attributes["value"]
    kept_a = _take(attributes, first_a)
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
    names = renumbered(said.name, text)
    lay_declared(columns, joined([said._replace(e=entity[said.e] if len(said.e) else said.e, name=names)]))
    return columns, counts_of(columns)


def _take(family: Columns, places: NDArray[np.int64]) -> Columns:
    """Return some statements by position; constant columns are filled instead of looked up."""
    result = {}
    for name, column in family.items():
        is_constant = len(column) > 0 and column[0] == column[-1] and (column == column[0]).all()
        result[name] = np.full(len(places), column[0], column.dtype) if is_constant else column.take(places)
    return result


def counts_of(columns: Columns) -> dict[str, int]:
    """Return the counts of a snapshot."""
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
        # Let execution skip work: the numbers of concepts at each end, and of numbers that are not exact
        # as floats.
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
    """Renumber, leaving -1 unchanged."""
    if not len(to):
        return numbers.astype(I32)
    return np.where(numbers >= 0, to[numbers], I32(-1)).astype(I32)


def _entities(builder: Builder, columns: Columns, said: Declared) -> NDArray[np.int32]:
    """Number texts and entities; return the new number of each entity, and store that of each text under "text"."""
    texts, entity_ids, count = builder.texts, builder.entities, len(builder.entities)
    kinds = np.zeros(count, np.int8)
    for kind in (EntityKind.ROW, EntityKind.CONCEPT):
        kinds[said.e[said.kind == kind]] = kind
    for concepts in ([member[1] for member in builder.members], [end for link in builder.subclasses for end in link[:2]]):
        kinds[np.array(concepts, np.int64)] = EntityKind.CONCEPT
    for members in builder.many_members:
        kinds[members[:, 1]] = EntityKind.CONCEPT
    for source in builder.sources:
        for part in (source.name, source.location, source.format, source.content, source.terms):
            texts[part]
    pool, ranks = build_pool([*entity_ids, *texts], [item[1:] for item in builder.spelled])
    columns.update(pool)
    ids, text = ranks[:count], ranks[count:]
    if builder.spelled:
        offset, text = count + len(texts), np.empty(len(text), I32)
        text[np.fromiter(texts.values(), I32, len(texts))] = ranks[count:offset]
        for begin, _, sizes in builder.spelled:
            text[begin : begin + len(sizes)] = ranks[offset : offset + len(sizes)]
            offset += len(sizes)
    columns["text"] = text
    names = ids.copy()
    named, positions = said.firsts(said.name)
    names[named] = text[said.name[positions]]
    order = in_order([names, ids])
    number = np.empty(count, I32)
    number[order] = np.arange(count, dtype=I32)
    columns["ent.id"], columns["ent.name"], columns["ent.kind"] = ids[order], names[order], kinds[order]
    columns["ent.by_id"] = in_order([columns["ent.id"]]).astype(I32)
    columns["ent.source"] = columns["ent.row"] = np.empty(0, I32)
    positions, first = said.firsts(said.row)
    if len(positions):
        rows = np.stack([said.src[first], said.row[first]], axis=1).astype(np.int64)
        columns["ent.source"], columns["ent.row"] = np.full(count, -1, I32), np.zeros(count, I32)
        columns["ent.source"][number[positions]], columns["ent.row"][number[positions]] = rows[:, 0], rows[:, 1]
        key = rows[:, 0] << 32 | rows[:, 1]
        by_key = in_order([key])
        if not changed(key[by_key]).all():
            by_key = in_order([key, number[positions]])
        columns["row.key"], columns["row.entity"] = key[by_key], number[positions[by_key]]
    else:
        columns["row.key"], columns["row.entity"] = np.empty(0, np.int64), np.empty(0, I32)
    return number


def _predicates(columns: Columns, text: NDArray[np.int32], *families: Columns) -> NDArray[np.int32]:
    """Number predicates and qualifier keys together, by name; return the number for each text in load order (-1:
    none).
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
    """Replace the numbers of texts, units and entities in cells."""
    refs, entities = cells["ref"], cells["kind"] == Kind.ENTITY
    new_refs = renumbered(np.where(entities, -1, refs), text)
    if entities.any():
        new_refs[entities] = entity[refs[entities]]
    cells["ref"], cells["unit"] = new_refs, renumbered(cells["unit"], text)
