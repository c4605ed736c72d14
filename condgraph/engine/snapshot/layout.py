"""From columns in load order to the columns of a snapshot: the second half of building.

Everything is numbered so that order means something: texts by code point; entities by name, then id
(the order of answers); predicates by name; relations by predicate, subject, object; attributes by
predicate, type, unit, value, subject. Relations come first, so a statement's number tells which it
is. Equal statements (subject, predicate, object, qualifiers) become one with all their sources.

Columns (sizes: T texts, E entities, P predicates, R relations, A attributes, N = R + A, Q
qualifiers):

    pool.*                               the texts (`pool`)
    ent.id ent.name ent.kind [E]         text numbers; `ent.by_id` [E] entities sorted by id
    ent.source ent.row [E or 0]          of table rows (-1, 0 for others); `row.key`, `row.entity`: rows by (source, row)
    pred.text [P]
    rel.s rel.o [R], rel.offsets [P + 1]
    att.s att.raw + cell parts [A], att.offsets [P + 1]
    grp.pred grp.kind grp.unit grp.start runs of attributes of one predicate, type and unit
    out.offsets [E + 1], out.items [N]   statements by subject; in.offsets, in.items [R] relations by object
    st.src st.row [N]                    first place, by source and row; prov.stmt prov.src prov.row prov.raw the further ones
    q.owner q.key + cell parts [Q]       by statement; q.offsets [N + 1 or 0]
    qkey.items [Q]                       qualifiers by key, type, unit and value, qkey.offsets [P + 1]
    qgrp.key qgrp.kind qgrp.unit qgrp.start   runs of these of one key, type and unit
    val.stmt val.start val.end           validity of the statements that have one
    mem.e mem.c mem.src mem.row, sub.c sub.p sub.src sub.row   direct membership and subclasses
    dec.e dec.src dec.name dec.kind dec.row   who declared what (`declared`); dec.known [1]: it is known
    con.entity [C], con.offsets [C + 1], con.items             members of each concept, closed under subclass, entities only
    src.name src.location src.format src.content src.terms   text numbers
    sch.*                                what the schema knows (`schema`)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import EntityKind
from condgraph.engine.pieces import in_order
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.cells import PARTS, sortable
from condgraph.engine.snapshot.chunks import gather
from condgraph.engine.snapshot.declared import Declared, gathered, joined, lay_declared
from condgraph.engine.snapshot.layout_indexes import (
    groups_of,
    lay_adjacency,
    lay_memberships,
    lay_qualifiers,
    lay_schema,
    lay_sources,
    lay_validity,
    offsets_of,
)
from condgraph.engine.snapshot.layout_joins import I32, Columns, distinct_qualifiers, drop_emptied, join_equal, lay_provenance
from condgraph.engine.snapshot.pool import build_pool
from condgraph.engine.values import Kind

_RELATION = (("sid", I32), ("p", I32), ("s", I32), ("o", I32), ("row", I32), ("src", I32))
_ATTRIBUTE = (("sid", I32), ("p", I32), ("s", I32), ("raw", I32), ("row", I32), ("src", I32), *PARTS)
_QUALIFIER = (("sid", I32), ("key", I32), *PARTS)


def lay_out(builder: Builder) -> tuple[Columns, dict[str, Any]]:
    """The columns of a snapshot, and its counts (entities, concepts, relations, attributes,
    qualifiers, sources).
    """
    builder.finish()
    drop_emptied(builder)
    columns: Columns = {}
    said = gathered(builder)
    relations = gather(builder.relations, _RELATION)
    attributes = gather(builder.attributes, _ATTRIBUTE)
    qualifiers = gather(builder.qualifiers, _QUALIFIER)
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
        _renumber_cells(cells, text, entity)
    attributes["raw"] = _map(attributes["raw"], text)
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
    called = _map(said.name, text)
    lay_declared(columns, joined([said._replace(e=entity[said.e] if len(said.e) else said.e, name=called)]))
    return columns, _counts(columns)


def _taken(family: Columns, places: NDArray[np.int64]) -> Columns:
    """Some statements, by their places; a column that says the same of all of them is not looked up."""
    taken = {}
    for name, column in family.items():
        same = len(column) > 0 and column[0] == column[-1] and (column == column[0]).all()
        taken[name] = np.full(len(places), column[0], column.dtype) if same else column.take(places)
    return taken


def _counts(columns: Columns) -> dict[str, int]:
    """How many of everything there are."""
    return {
        "entities": int((columns["ent.kind"] != EntityKind.CONCEPT).sum()),
        "concepts": int((columns["ent.kind"] == EntityKind.CONCEPT).sum()),
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
        "concept_subjects": _concepts(columns, "rel.s"),
        "concept_objects": _concepts(columns, "rel.o"),
        "concept_attributes": _concepts(columns, "att.s"),
        "inexact": sum(int(((columns[f"{f}.kind"] == Kind.QUANTITY) & (columns[f"{f}.ref"] >= 0)).sum()) for f in ("att", "q")),
    }


def _concepts(columns: Columns, ends: str) -> int:
    return int((columns["ent.kind"][columns[ends]] == EntityKind.CONCEPT).sum())


def _map(numbers: NDArray[Any], to: NDArray[np.int32]) -> NDArray[np.int32]:
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
    pool, ranks = build_pool([*known, *texts], [one[1:] for one in builder.spelled])
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


def _renumber_cells(cells: Columns, text: NDArray[np.int32], entity: NDArray[np.int32]) -> None:
    refs, entities = cells["ref"], cells["kind"] == Kind.ENTITY
    fresh = _map(np.where(entities, -1, refs), text)
    if entities.any():
        fresh[entities] = entity[refs[entities]]
    cells["ref"], cells["unit"] = fresh, _map(cells["unit"], text)
