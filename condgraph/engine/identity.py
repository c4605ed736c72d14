"""The identity of a statement: a 64-bit hash of its content, the same wherever and whenever it is
computed.

Subject and object by their ids, predicate and qualifier keys by their names, values by type, number
or interval, unit and text. Qualifiers are a set: their order does not matter.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

Hashes = NDArray[np.uint64]


def statement_ids(snapshot: Snapshot) -> NDArray[np.int64]:
    """The identity of every statement of a snapshot, in the order of their numbers."""
    get = snapshot.arrays.get
    texts = text_hashes(snapshot)
    ids = texts.take(snapshot.entity_id) if snapshot.entities else texts[:0]
    predicates = texts.take(get("pred.text")) if snapshot.predicate_count else texts[:0]
    parts = []
    for family, subjects in (("rel", snapshot.relation_subject), ("att", snapshot.attribute_subject)):
        if not len(subjects):
            continue
        owners = np.repeat(np.arange(snapshot.predicate_count), np.diff(get(f"{family}.offsets")))
        found = mix(mix(np.zeros(len(subjects), np.uint64), ids.take(subjects)), predicates.take(owners))
        if family == "rel":
            parts.append(mix(mix(found, np.uint64(Kind.ENTITY)), ids.take(snapshot.relation_object)))
        else:
            parts.append(_cells(snapshot, "att", found, texts, ids))
    hashes = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    owners = get("q.owner")
    if len(owners):
        qualifiers = _cells(snapshot, "q", predicates.take(get("q.key")), texts, ids)
        sums = np.zeros(len(hashes), np.uint64)
        np.add.at(sums, owners, mix(qualifiers, np.uint64(1)))
        with_qualifiers = np.unique(owners)
        hashes[with_qualifiers] = mix(hashes[with_qualifiers], sums[with_qualifiers])
    return hashes.view(np.int64)


def content_digest(snapshot: Snapshot) -> str:
    """A name for everything that a snapshot holds: statements, memberships, names, and who says
    them. The same content has the same name, however it came about.
    """
    get, texts = snapshot.arrays.get, text_hashes(snapshot)
    sids = statement_ids(snapshot).view(np.uint64)
    ids = texts.take(snapshot.entity_id) if snapshot.entities else texts[:0]
    sources = texts.take(get("src.name")) if len(get("src.name")) else texts[:0]
    digest = blake2b(digest_size=12)

    def of(numbers: Any, hashes: Hashes) -> Hashes:
        """The hashes of numbers, of which those below 0 are none."""
        known: Hashes = np.where(numbers >= 0, np.append(hashes, np.uint64(0))[numbers], np.uint64(0))
        known += (numbers < -1).astype(np.uint64)
        return known

    def add(*columns: Any) -> None:
        found = np.zeros(len(columns[0]), np.uint64)
        for column in columns:
            found = mix(found, column if column.dtype == np.uint64 else column.astype(np.int64).view(np.uint64))
        digest.update(np.sort(found).tobytes())

    raw = np.full(snapshot.statements, -1, np.int32)
    if len(get("att.raw")):
        raw[snapshot.relations :] = get("att.raw")
    add(sids, of(snapshot.source, sources), snapshot.row, of(raw, texts))
    further = get("prov.raw") if len(get("prov.raw")) else np.full(len(get("prov.stmt")), -1, np.int32)
    add(of(get("prov.stmt"), sids), of(get("prov.src"), sources), get("prov.row"), of(further, texts))
    for prefix, first, second in (("mem", "e", "c"), ("sub", "c", "p")):
        ends = (of(get(f"{prefix}.{name}"), ids) for name in (first, second))
        add(*ends, of(get(f"{prefix}.src"), sources), get(f"{prefix}.row"))
    add(ids, of(snapshot.entity_name, texts), snapshot.entity_kind)
    add(of(get("dec.e"), ids), of(get("dec.src"), sources), of(get("dec.name"), texts), get("dec.kind"), get("dec.row"))
    for number in range(len(sources)):
        one = snapshot.source_of(number)
        digest.update(repr((one.name, one.location, one.format, one.content)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def text_hashes(snapshot: Snapshot) -> Hashes:
    """One hash for each text of the pool."""
    pool = snapshot.texts
    data = b"".join(blake2b(pool[i].encode(), digest_size=8).digest() for i in range(len(pool)))
    return np.frombuffer(data, "<u8").astype(np.uint64)


def _cells(snapshot: Snapshot, family: str, hashes: Hashes, texts: Hashes, ids: Hashes) -> Hashes:
    get = snapshot.arrays.get
    kind, refs, units = get(f"{family}.kind"), get(f"{family}.ref"), get(f"{family}.unit")
    none = np.uint64(0)
    entity = kind == Kind.ENTITY
    named = (refs >= 0) & ~entity
    content = np.where(named, texts.take(np.where(named, refs, 0)), none)
    if entity.any():
        content[entity] = ids.take(refs[entity])
    unit = np.where(units >= 0, texts.take(np.maximum(units, 0)), none)
    columns: tuple[Any, ...] = (kind, get(f"{family}.a"), get(f"{family}.b"), get(f"{family}.precision"), content, unit)
    for column in columns:
        hashes = mix(hashes, column.astype(np.int64).view(np.uint64) if column.dtype != np.uint64 else column)
    return hashes


def mix(hashes: Hashes, column: Any) -> Hashes:
    """Fold a column into hashes (the finaliser of splitmix64)."""
    h: Hashes = (hashes ^ column) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def statement_id(snapshot: Snapshot, number: int) -> int:
    """The identity of one statement, without looking at the others."""
    get, relations = snapshot.arrays.get, snapshot.relations
    found = _hash("") ^ _hash("")
    predicate = _hash(snapshot.predicate_name(snapshot.predicate_of(number)))
    if number < relations:
        subject, thing = int(snapshot.relation_subject[number]), int(snapshot.relation_object[number])
        found = mix(mix(found, _hash(snapshot.ident(subject))), predicate)
        found = mix(mix(found, np.uint64(Kind.ENTITY)), _hash(snapshot.ident(thing)))
    else:
        subject = int(snapshot.attribute_subject[number - relations])
        found = mix(mix(found, _hash(snapshot.ident(subject))), predicate)
        found = _cell(snapshot, "att", number - relations, found)
    if len(get("q.owner")):
        own = snapshot.qualifiers(np.array([number], np.int32))[1].tolist()
        if own:
            keys = get("q.key")
            total = np.zeros(1, np.uint64)
            for at in own:
                total = total + mix(_cell(snapshot, "q", at, _hash(snapshot.predicate_name(int(keys[at])))), np.uint64(1))
            found = mix(found, total)
    return int(found.view(np.int64)[0])


def relation_id(subject: str, predicate: str, thing: str) -> int:
    """The identity that a relation without qualifiers between two ids has; of a membership, too."""
    found = mix(mix(_hash("") ^ _hash(""), _hash(subject)), _hash(predicate))
    return int(mix(mix(found, np.uint64(Kind.ENTITY)), _hash(thing)).view(np.int64)[0])


def _hash(text: str) -> Hashes:
    return np.frombuffer(blake2b(text.encode(), digest_size=8).digest(), "<u8").astype(np.uint64)


def _cell(snapshot: Snapshot, family: str, at: int, found: Hashes) -> Hashes:
    """Fold one cell, as `_cells` folds many."""
    get = snapshot.arrays.get
    kind, ref, unit = (int(get(f"{family}.{part}")[at]) for part in ("kind", "ref", "unit"))
    none = np.zeros(1, np.uint64)
    if kind == Kind.ENTITY:
        content = _hash(snapshot.ident(ref))
    else:
        content = _hash(snapshot.texts[ref]) if ref >= 0 else none
    numbers = (kind, *(int(get(f"{family}.{part}")[at]) for part in ("a", "b", "precision")))
    for number in numbers:
        found = mix(found, np.array([number], np.int64).view(np.uint64))
    return mix(mix(found, content), _hash(snapshot.texts[unit]) if unit >= 0 else none)
