"""The rest of a snapshot without some of its sources, as columns for a builder: statements that
another source states stay, with their other locations, and so do entities that others mention.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import changed
from condgraph.engine.snapshot.build import Declared, declared
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Masks over the texts and the entities of the snapshot of those that are kept; everything else
    by the numbers that these have then, one after the other. Sources keep theirs.
    """

    texts: NDArray[np.bool_]
    entities: NDArray[np.bool_]
    statements: int
    relations: Columns
    attributes: Columns
    qualifiers: Columns
    #: Entity, concept, source, row; and concept, parent, source, row.
    members: list[NDArray[Any]]
    subclasses: list[NDArray[Any]]
    #: Further places of statements: statement, source, row, raw text.
    places: list[NDArray[Any]]
    declared: Declared


def without_sources(
    snapshot: Snapshot, gone: Collection[int], stays: NDArray[np.bool_] | None = None, *, unused: bool = True
) -> KeptRows:
    """What is left without the sources of these numbers; everything where there are none. With a mask
    over the statements only these, and all entities, or without those that are `unused` then.
    """
    get = snapshot.arrays.get
    relations, statements = snapshot.relations, snapshot.statements
    left = ~np.isin(np.arange(len(get("src.name"))), list(gone))
    source, row, raw, more = _places(snapshot, left)
    kept = source >= 0
    if stays is not None:
        kept &= stays
        more = [column[kept[more[0]]] for column in more]
    sid = (np.cumsum(kept) - 1).astype(np.int32)
    more[0] = sid[more[0]]
    predicate = get("pred.text")
    families: list[Columns] = []
    for family, begin, end in (("rel", 0, relations), ("att", relations, statements)):
        own = kept[begin:end]
        chunk = {"sid": sid[begin:end][own], "row": row[begin:end][own], "src": source[begin:end][own]}
        chunk["s"] = get(f"{family}.s")[own]
        chunk["p"] = predicate[np.repeat(np.arange(len(predicate)), np.diff(get(f"{family}.offsets")))][own]
        if family == "rel":
            chunk["o"] = get("rel.o")[own]
        else:
            chunk["raw"] = raw[begin:end][own]
            chunk |= {name: get(f"att.{name}")[own] for name, _ in PARTS}
        families.append(chunk)
    owners = get("q.owner")
    own = kept[owners] if len(owners) else np.empty(0, bool)
    qualifiers = {"sid": sid[owners[own]] if len(owners) else owners, "key": predicate[get("q.key")[own]]}
    qualifiers |= {name: get(f"q.{name}")[own] for name, _ in PARTS}
    links = []
    for prefix, first, second in (("mem", "e", "c"), ("sub", "c", "p")):
        columns = [get(f"{prefix}.{name}") for name in (first, second, "src", "row")]
        stay = left[columns[2]] if len(columns[2]) else np.empty(0, bool)
        links.append([column[stay] for column in columns])
    said = declared(snapshot)
    # What nobody is known to have declared stays.
    said = said.take((said.src < 0) | left[said.src]) if len(left) else said
    masks = np.zeros(len(snapshot.texts), bool), np.full(snapshot.entities, stays is not None and unused)
    rest = KeptRows(*masks, int(kept.sum()), families[0], families[1], qualifiers, links[0], links[1], more, said)
    return _renumbered(snapshot, rest)


def _places(snapshot: Snapshot, left: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[NDArray[Any]]]:
    """The first place of every statement among the sources that are left (source -1: none), its raw
    text, and the further ones.
    """
    get = snapshot.arrays.get
    raws = np.full(snapshot.statements, -1, np.int32)
    if len(get("att.raw")):
        raws[snapshot.relations :] = get("att.raw")
    further = get("prov.raw") if len(get("prov.raw")) else np.full(len(get("prov.stmt")), -1, np.int32)
    if not len(get("dec.known")) and len(get("att.raw")):
        # An earlier version kept the text of the first place alone.
        further = raws[get("prov.stmt")]
    more = [get("prov.stmt"), get("prov.src"), get("prov.row"), further]
    if left.all():
        return snapshot.source, snapshot.row, raws, [column.copy() for column in more]
    first = [np.arange(snapshot.statements, dtype=np.int32), snapshot.source, snapshot.row, raws]
    every = [np.concatenate(pair) for pair in zip(first, more, strict=True)]
    every = [column[left[every[1]]] for column in every]
    every = [column[np.lexsort((every[2], every[1], every[0]))] for column in every]
    fresh = changed(every[0])
    source, row, raw = (np.full(snapshot.statements, -1, np.int32) for _ in range(3))
    for into, column in zip((source, row, raw), every[1:], strict=True):
        into[every[0][fresh]] = column[fresh]
    return source, row, raw, [column[~fresh] for column in every]


def _renumbered(snapshot: Snapshot, rest: KeptRows) -> KeptRows:
    """Without the texts and entities that nothing names any more."""
    texts, entities = rest.texts, rest.entities
    used = [rest.relations["s"], rest.relations["o"], rest.attributes["s"], *rest.members[:2], *rest.subclasses[:2]]
    cells = (rest.attributes, rest.qualifiers)
    for cell in cells:
        used.append(cell["ref"][cell["kind"] == Kind.ENTITY])
    for end in (*used, rest.declared.e):
        entities[end] = True
    named = [snapshot.entity_id[entities], rest.relations["p"], rest.attributes["p"], rest.qualifiers["key"]]
    named += [rest.attributes["raw"], rest.places[3], rest.declared.name, *(cell["unit"] for cell in cells)]
    named += [cell["ref"][cell["kind"] != Kind.ENTITY] for cell in cells]
    for numbers in named:
        texts[numbers[numbers >= 0]] = True

    text, entity = (np.append(np.cumsum(mask) - 1, -1).astype(np.int32) for mask in (texts, entities))
    for family in (rest.relations, rest.attributes):
        family["s"], family["p"] = entity[family["s"]], text[family["p"]]
    rest.relations["o"] = entity[rest.relations["o"]]
    rest.attributes["raw"], rest.qualifiers["key"] = text[rest.attributes["raw"]], text[rest.qualifiers["key"]]
    for cell in cells:
        is_entity = cell["kind"] == Kind.ENTITY
        ends = entity[np.where(is_entity, cell["ref"], -1)]
        cell["ref"] = np.where(is_entity, ends, text[np.where(is_entity, -1, cell["ref"])])
        cell["unit"] = text[cell["unit"]]
    for link in (rest.members, rest.subclasses):
        link[0], link[1] = entity[link[0]], entity[link[1]]
    rest.places[3] = text[rest.places[3]]
    said = rest.declared._replace(e=entity[rest.declared.e], name=text[rest.declared.name])
    return KeptRows(
        texts, entities, rest.statements, rest.relations, rest.attributes, rest.qualifiers, rest.members, rest.subclasses,
        rest.places, said,
    )  # fmt: skip
