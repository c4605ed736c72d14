"""The identity of a statement: a 64-bit hash of its content, reproducible anywhere and at any time.

Subject and object count by id, predicate and qualifier keys by name, values by type, number or interval, unit and
text. Qualifiers are a set: their order does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import CHUNK, scratch, slices
from condgraph.engine.snapshot.cells import Hashes, mix
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


def statement_ids(snapshot: Snapshot) -> NDArray[np.int64]:
    """Return the identity of every statement of a snapshot, in the order of their numbers (a `bounds.scratch` array)."""
    texts = text_hashes(snapshot)
    return _statement_hashes(snapshot, texts, _take(texts, snapshot.entity_id)).view(np.int64)


def _statement_hashes(snapshot: Snapshot, texts: Hashes, ids: Hashes) -> Hashes:
    get, first = snapshot.arrays.get, snapshot.relations
    predicates = _take(texts, get("pred.text"))
    owners, keys = get("q.owner"), get("q.key")
    hashes: Hashes = scratch(snapshot.statements, np.uint64)
    for part in slices(snapshot.statements):
        numbers = np.arange(part.start, part.stop, dtype=np.int32)
        split = snapshot.split(numbers)
        part_hashes = mix(np.zeros(len(numbers), np.uint64), ids.take(snapshot.subjects(numbers)))
        part_hashes = mix(part_hashes, predicates.take(snapshot.predicates(numbers)))
        if split:
            objects = ids.take(snapshot.relation_object[part.start : part.start + split])
            part_hashes[:split] = mix(mix(part_hashes[:split], np.uint64(Kind.ENTITY)), objects)
        if split < len(numbers):
            attributes = slice(part.start + split - first, part.stop - first)
            part_hashes[split:] = _cells(snapshot, "att", attributes, part_hashes[split:], texts, ids)
        qualifiers = slice(*np.searchsorted(owners, [part.start, part.stop]).tolist())
        if qualifiers.start < qualifiers.stop:
            positions = owners[qualifiers] - part.start
            cells = _cells(snapshot, "q", qualifiers, predicates.take(keys[qualifiers]), texts, ids)
            sums = np.zeros(len(part_hashes), np.uint64)
            np.add.at(sums, positions, mix(cells, np.uint64(1)))
            with_qualifiers = np.unique(positions)
            part_hashes[with_qualifiers] = mix(part_hashes[with_qualifiers], sums[with_qualifiers])
        hashes[part] = part_hashes
    return hashes


def content_digest(snapshot: Snapshot) -> str:
    """Return a hash of the whole content of a snapshot: statements, memberships, names, and their sources. Equal
    content has equal hashes, however it was built.
    """
    get, texts = snapshot.arrays.get, text_hashes(snapshot)
    ids, sources = _take(texts, snapshot.entity_id), _take(texts, get("src.name"))
    sids, first, raws = _statement_hashes(snapshot, texts, ids), snapshot.relations, get("att.raw")
    digest = blake2b(digest_size=12)

    def hashes_of(numbers: Any, hashes: Hashes) -> Hashes:
        """Return the hashes of numbers; negative numbers have none."""
        known = np.zeros(len(numbers), np.uint64)
        known[numbers >= 0] = hashes.take(numbers[numbers >= 0])
        known[numbers < -1] = 1
        return known

    def raw_texts(part: slice) -> Any:
        part_raws = np.full(part.stop - part.start, -1, np.int32)
        if len(raws) and part.stop > first:
            part_raws[max(first - part.start, 0) :] = raws[max(part.start - first, 0) : part.stop - first]
        return part_raws

    def add(length: int, *columns: Callable[[slice], Any]) -> None:
        """Add columns to the digest, given functions that return their parts."""
        row_hashes: Hashes = scratch(length, np.uint64)
        for part in slices(length):
            mixed = np.zeros(part.stop - part.start, np.uint64)
            for column in columns:
                values = column(part)
                mixed = mix(mixed, values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64))
            row_hashes[part] = mixed
        row_hashes.sort()
        for part in slices(length):
            digest.update(row_hashes[part].data)

    def named(name: str, hashes: Hashes) -> Callable[[slice], Any]:
        numbers = get(name)
        return lambda part: hashes_of(numbers[part], hashes)

    source, row = snapshot.source, snapshot.row
    places = (
        (lambda part: hashes_of(source[part], sources)),
        (lambda part: row[part]),
        (lambda part: hashes_of(raw_texts(part), texts)),
    )
    add(snapshot.statements, lambda part: sids[part], *places)
    written = named("prov.raw", texts) if len(get("prov.raw")) else lambda part: np.zeros(part.stop - part.start, np.uint64)
    columns = [named("prov.stmt", sids), named("prov.src", sources), get("prov.row").__getitem__, written]
    add(len(get("prov.stmt")), *columns)
    for prefix, ends in (("mem", "ec"), ("sub", "cp")):
        columns = [named(f"{prefix}.{end}", ids) for end in ends]
        add(len(get(f"{prefix}.row")), *columns, named(f"{prefix}.src", sources), get(f"{prefix}.row").__getitem__)
    names, kinds = snapshot.entity_name, snapshot.entity_kind
    add(len(ids), lambda part: ids[part], lambda part: hashes_of(names[part], texts), lambda part: kinds[part])
    declared = named("dec.e", ids), named("dec.src", sources), named("dec.name", texts)
    add(len(get("dec.e")), *declared, get("dec.kind").__getitem__, get("dec.row").__getitem__)
    for number in range(len(sources)):
        origin = snapshot.source_of(number)
        digest.update(repr((origin.name, origin.location, origin.format, origin.content)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def text_hashes(snapshot: Snapshot) -> Hashes:
    """Return one hash for each text of the pool."""
    pool = snapshot.texts
    hashes: Hashes = scratch(len(pool), np.uint64)
    for part in slices(len(pool), CHUNK):
        data = b"".join(blake2b(pool[number].encode(), digest_size=8).digest() for number in range(part.start, part.stop))
        hashes[part] = np.frombuffer(data, "<u8")
    return hashes


def _take(hashes: Hashes, numbers: Any) -> Hashes:
    """Return the hashes of numbers."""
    result: Hashes = scratch(len(numbers), np.uint64)
    for part in slices(len(numbers)):
        result[part] = hashes.take(numbers[part])
    return result


def _cells(snapshot: Snapshot, family: str, part: slice, hashes: Hashes, texts: Hashes, ids: Hashes) -> Hashes:
    def get(name: str) -> Any:
        return snapshot.arrays.get(f"{family}.{name}")[part]

    kind, refs, units = get("kind"), get("ref"), get("unit")
    none = np.uint64(0)
    entity = kind == Kind.ENTITY
    named = (refs >= 0) & ~entity
    content = np.where(named, texts.take(np.where(named, refs, 0)), none)
    if entity.any():
        content[entity] = ids.take(refs[entity])
    unit = np.where(units >= 0, texts.take(np.maximum(units, 0)), none)
    columns: tuple[Any, ...] = (kind, get("a"), get("b"), get("precision"), content, unit)
    for column in columns:
        hashes = mix(hashes, column.astype(np.int64).view(np.uint64) if column.dtype != np.uint64 else column)
    return hashes


def statement_id(snapshot: Snapshot, number: int) -> int:
    """Return the identity of one statement, without reading the others."""
    get, relations = snapshot.arrays.get, snapshot.relations
    hash_ = _hash("") ^ _hash("")
    predicate = _hash(snapshot.predicate_name(snapshot.predicate_of(number)))
    if number < relations:
        subject, object_ = int(snapshot.relation_subject[number]), int(snapshot.relation_object[number])
        hash_ = mix(mix(hash_, _hash(snapshot.ident(subject))), predicate)
        hash_ = mix(mix(hash_, np.uint64(Kind.ENTITY)), _hash(snapshot.ident(object_)))
    else:
        subject = int(snapshot.attribute_subject[number - relations])
        hash_ = mix(mix(hash_, _hash(snapshot.ident(subject))), predicate)
        hash_ = _cell(snapshot, "att", number - relations, hash_)
    if len(get("q.owner")):
        qualifiers = snapshot.qualifiers(np.array([number], np.int32))[1].tolist()
        if qualifiers:
            keys = get("q.key")
            total = np.zeros(1, np.uint64)
            for qualifier in qualifiers:
                total = total + mix(
                    _cell(snapshot, "q", qualifier, _hash(snapshot.predicate_name(int(keys[qualifier])))), np.uint64(1)
                )
            hash_ = mix(hash_, total)
    return int(hash_.view(np.int64)[0])


def relation_id(subject: str, predicate: str, thing: str) -> int:
    """Return the identity of a relation without qualifiers between two ids; also of a membership."""
    hash_ = mix(mix(_hash("") ^ _hash(""), _hash(subject)), _hash(predicate))
    return int(mix(mix(hash_, np.uint64(Kind.ENTITY)), _hash(thing)).view(np.int64)[0])


def _hash(text: str) -> Hashes:
    return np.frombuffer(blake2b(text.encode(), digest_size=8).digest(), "<u8").astype(np.uint64)


def _cell(snapshot: Snapshot, family: str, at: int, found: Hashes) -> Hashes:
    """Fold one cell, as `_cells` folds many."""
    get = snapshot.arrays.get
    kind, ref, unit = (int(get(f"{family}.{part}")[at]) for part in ("kind", "ref", "unit"))
    none = np.zeros(1, np.uint64)
    content = _hash(snapshot.ident(ref)) if kind == Kind.ENTITY else _hash(snapshot.texts[ref]) if ref >= 0 else none
    for part in ("kind", "a", "b", "precision"):
        found = mix(found, np.array([get(f"{family}.{part}")[at]], np.int64).view(np.uint64))
    return mix(mix(found, content), _hash(snapshot.texts[unit]) if unit >= 0 else none)
