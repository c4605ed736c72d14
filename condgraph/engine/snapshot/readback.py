"""Read a snapshot back: as items for an export, columns for an append, statements for evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, slices
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.snapshot.build import Declared, declared
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.values import Kind, Value

if TYPE_CHECKING:
    from condgraph.engine.snapshot.build import Builder
    from condgraph.engine.snapshot.snapshot import Numbers, Snapshot


# -- sources -----------------------------------------------------------------------------------------
# A snapshot without some of its sources, as columns for a builder: statements that another source
# states are kept, with their other locations, and so are entities that others mention.


Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Masks over the texts and entities of the snapshot that are kept; everything else uses their new, consecutive
    numbers. Sources keep their numbers.
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
    #: Further locations of statements: statement, source, row, raw text.
    places: list[NDArray[Any]]
    declared: Declared


def without_sources(
    snapshot: Snapshot, gone: Collection[int], stays: NDArray[np.bool_] | None = None, *, unused: bool = True
) -> KeptRows:
    """Return the content without the sources of these numbers. With a mask over the statements only these are kept,
    with all entities, or without those that become `unused`.
    """
    get = snapshot.arrays.get
    relations, statements = snapshot.relations, snapshot.statements
    remains = ~np.isin(np.arange(len(get("src.name"))), list(gone))
    source, row, raw, further = _locations(snapshot, remains)
    is_kept = source >= 0
    if stays is not None:
        is_kept &= stays
        further = [column[is_kept[further[0]]] for column in further]
    sid = (np.cumsum(is_kept) - 1).astype(np.int32)
    further[0] = sid[further[0]]
    predicate = get("pred.text")
    families: list[Columns] = []
    for family, begin, end in (("rel", 0, relations), ("att", relations, statements)):
        chosen = is_kept[begin:end]
        chunk = {"sid": sid[begin:end][chosen], "row": row[begin:end][chosen], "src": source[begin:end][chosen]}
        chunk["s"] = get(f"{family}.s")[chosen]
        chunk["p"] = predicate[np.repeat(np.arange(len(predicate)), np.diff(get(f"{family}.offsets")))][chosen]
        if family == "rel":
            chunk["o"] = get("rel.o")[chosen]
        else:
            chunk["raw"] = raw[begin:end][chosen]
            chunk |= {name: get(f"att.{name}")[chosen] for name, _ in PARTS}
        families.append(chunk)
    owners = get("q.owner")
    chosen = is_kept[owners] if len(owners) else np.empty(0, bool)
    qualifiers = {"sid": sid[owners[chosen]] if len(owners) else owners, "key": predicate[get("q.key")[chosen]]}
    qualifiers |= {name: get(f"q.{name}")[chosen] for name, _ in PARTS}
    links = []
    for prefix, first, second in (("mem", "e", "c"), ("sub", "c", "p")):
        columns = [get(f"{prefix}.{name}") for name in (first, second, "src", "row")]
        chosen_links = remains[columns[2]] if len(columns[2]) else np.empty(0, bool)
        links.append([column[chosen_links] for column in columns])
    declarations = declared(snapshot)
    # Declarations of unknown origin are kept.
    declarations = declarations.take((declarations.src < 0) | remains[declarations.src]) if len(remains) else declarations
    masks = np.zeros(len(snapshot.texts), bool), np.full(snapshot.entities, stays is not None and unused)
    result = KeptRows(*masks, int(is_kept.sum()), families[0], families[1], qualifiers, links[0], links[1], further, declarations)
    return _renumbered(snapshot, result)


def _locations(snapshot: Snapshot, left: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[NDArray[Any]]]:
    """Return the first location of every statement among the remaining sources (source -1: none), its raw text, and
    the further locations.
    """
    get = snapshot.arrays.get
    raws = np.full(snapshot.statements, -1, np.int32)
    if len(get("att.raw")):
        raws[snapshot.relations :] = get("att.raw")
    further = get("prov.raw") if len(get("prov.raw")) else np.full(len(get("prov.stmt")), -1, np.int32)
    if not len(get("dec.known")) and len(get("att.raw")):
        # An earlier version stored only the raw text of the first location.
        further = raws[get("prov.stmt")]
    further_places = [get("prov.stmt"), get("prov.src"), get("prov.row"), further]
    if left.all():
        return snapshot.source, snapshot.row, raws, [column.copy() for column in further_places]
    first = [np.arange(snapshot.statements, dtype=np.int32), snapshot.source, snapshot.row, raws]
    all_places = [np.concatenate(pair) for pair in zip(first, further_places, strict=True)]
    all_places = [column[left[all_places[1]]] for column in all_places]
    all_places = [column[np.lexsort((all_places[2], all_places[1], all_places[0]))] for column in all_places]
    is_first = changed(all_places[0])
    source, row, raw = (np.full(snapshot.statements, -1, np.int32) for _ in range(3))
    for target, column in zip((source, row, raw), all_places[1:], strict=True):
        target[all_places[0][is_first]] = column[is_first]
    return source, row, raw, [column[~is_first] for column in all_places]


def _renumbered(snapshot: Snapshot, rest: KeptRows) -> KeptRows:
    """Remove the texts and entities that are not referred to any more."""
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
    declarations = rest.declared._replace(e=entity[rest.declared.e], name=text[rest.declared.name])
    return KeptRows(
        texts, entities, rest.statements, rest.relations, rest.attributes, rest.qualifiers, rest.members, rest.subclasses,
        rest.places, declarations,
    )  # fmt: skip


# -- statements --------------------------------------------------------------------------------------


def seed(
    snapshot: Snapshot,
    builder: Builder,
    without: Iterable[str] = (),
    stays: NDArray[np.bool_] | None = None,
    *,
    unused: bool = True,
) -> None:
    """Fill a builder with the content of a snapshot, except for what only the sources `without` state or mention.
    With a mask over the statements only these are kept, with all entities, or without those that become `unused`.
    """
    sources = [snapshot.source_of(number) for number in range(len(snapshot.arrays.get("src.name")))]
    builder.sources = sources
    builder.source_numbers = {source.name: number for number, source in enumerate(sources)}
    builder.emptied = {builder.source_numbers[name] for name in without}
    content = without_sources(snapshot, builder.emptied, stays, unused=unused)
    texts = snapshot.texts
    kept_texts, kept_entities = np.flatnonzero(content.texts), np.flatnonzero(content.entities)
    builder.texts.update(zip(texts.take(kept_texts), range(len(kept_texts)), strict=True))
    builder.texts.default_factory = count(len(kept_texts)).__next__
    idents = texts.take(snapshot.entity_id[kept_entities])
    builder.entities.update(zip(idents, range(len(kept_entities)), strict=True))
    builder.entities.default_factory = count(len(kept_entities)).__next__
    builder.seeded = content.declared
    named, positions = content.declared.firsts(content.declared.name)
    names = texts.take(kept_texts[content.declared.name[positions]])
    builder.names = dict(zip(named.tolist(), names, strict=True))
    builder.statements = content.statements
    builder.relations += [content.relations] if len(content.relations["sid"]) else []
    builder.attributes += [content.attributes] if len(content.attributes["sid"]) else []
    builder.qualifiers += [content.qualifiers] if len(content.qualifiers["sid"]) else []
    builder.many_members.append(np.stack(content.members, axis=1).astype(np.int64))
    builder.subclasses.extend(zip(*(column.tolist() for column in content.subclasses), strict=True))
    builder.provenance.extend(zip(*(column.tolist() for column in content.places), strict=True))


#: The number of statements that are read at once.
_TOGETHER = 20_000


def statements(snapshot: Snapshot, numbers: Numbers) -> Iterator[tuple[Statement, tuple[tuple[int, int], ...]]]:
    """Yield sorted statements with their qualifiers and raw texts, each with every `(source, row)`, the first one
    first.
    """
    for start in range(0, len(numbers), _TOGETHER):
        yield from _read_statements(snapshot, numbers[start : start + _TOGETHER])


def _read_statements(snapshot: Snapshot, numbers: Numbers) -> Iterator[tuple[Statement, tuple[tuple[int, int], ...]]]:
    get, texts = snapshot.arrays.get, snapshot.texts
    split = snapshot.split(numbers)
    subjects = texts.take(snapshot.entity_id.take(snapshot.subjects(numbers)))
    predicates = snapshot.predicates(numbers).tolist()
    names = {number: snapshot.predicate_name(number) for number in set(predicates)}
    objects: list[Ref | Value] = [
        Ref(ident) for ident in texts.take(snapshot.entity_id.take(snapshot.relation_object.take(numbers[:split])))
    ]
    attributes = numbers[split:] - np.int32(snapshot.relations)
    cells = {name: get(f"att.{name}").take(attributes) for name, _ in PARTS}
    objects.extend(decode_values(cells, texts.__getitem__, snapshot.ident))
    raws = [-1] * split + (get("att.raw").take(attributes).tolist() if len(get("att.raw")) else [-1] * len(attributes))
    qualifiers: dict[int, list[tuple[str, Ref | Value]]] = {}
    positions, places = snapshot.qualifiers(numbers)
    values = decode_values({name: get(f"q.{name}").take(places) for name, _ in PARTS}, texts.__getitem__, snapshot.ident)
    keys = get("q.key").take(places).tolist()
    known = {key: snapshot.predicate_name(key) for key in set(keys)}
    for position, key, value in zip(positions.tolist(), keys, values, strict=True):
        qualifiers.setdefault(position, []).append((known[key], value))
    further = further_sources(snapshot, numbers)
    sources, rows = snapshot.source.take(numbers).tolist(), snapshot.row.take(numbers).tolist()
    for i, (subject, predicate, thing) in enumerate(zip(subjects, predicates, objects, strict=True)):
        raw = None if raws[i] < 0 else texts[raws[i]]
        statement = Statement(subject, names[predicate], thing, tuple(qualifiers.get(i, ())), rows[i], raw)
        yield statement, ((sources[i], rows[i]), *further.get(i, ()))


def further_sources(snapshot: Snapshot, numbers: Numbers) -> dict[int, list[tuple[int, int]]]:
    """Return the sources beyond the first, by position."""
    owners = snapshot.arrays.get("prov.stmt")
    if not len(owners):
        return {}
    begin, end = owners.searchsorted(numbers), owners.searchsorted(numbers, side="right")
    sources, rows = snapshot.arrays.get("prov.src"), snapshot.arrays.get("prov.row")
    return {
        int(position): list(
            zip(sources[begin[position] : end[position]].tolist(), rows[begin[position] : end[position]].tolist(), strict=True)
        )
        for position in np.flatnonzero(end > begin)
    }


def link_sources(snapshot: Snapshot, table: Literal["mem", "sub"], below: int, above: int) -> list[tuple[int, int]]:
    """Return every `(source, row)` that states that an entity is a member of a concept ("mem"), or that a concept is
    a subclass of another ("sub").
    """
    first, second = (snapshot.arrays.get(f"{table}.{name}") for name in ("ec" if table == "mem" else "cp"))
    # Memberships are sorted by the concept, subclasses by the lower concept.
    key, wanted = (second, above) if table == "mem" else (first, below)
    low, high = np.searchsorted(key, [wanted, wanted + 1])
    positions = np.flatnonzero((first[low:high] == below) & (second[low:high] == above)) + low
    sources, rows = (snapshot.arrays.get(f"{table}.{name}") for name in ("src", "row"))
    return [(int(sources[position]), int(rows[position])) for position in positions]


def items(snapshot: Snapshot) -> Iterator[Source | Sourced]:
    """Yield the content of a snapshot as items that load to an equal graph: sources, entities, memberships,
    statements. Read in parts.
    """
    get = snapshot.arrays.get
    sources = [snapshot.source_of(number) for number in range(len(get("src.name")))]
    yield from sources
    names = [source.name for source in sources]
    all_declarations = declared(snapshot)
    for part in slices(len(all_declarations.e)):
        chunk = all_declarations.take(part)
        ids = snapshot.entity_id.take(chunk.e)
        idents, names_of = (snapshot.texts.take(column) for column in (ids, np.where(chunk.name < 0, ids, chunk.name)))
        for ident, name, source, kind, row in zip(
            idents, names_of, chunk.src.tolist(), chunk.kind.tolist(), chunk.row.tolist(), strict=True
        ):
            entity = Entity(ident, name, EntityKind(kind), max(row, 0))
            yield Sourced(entity, ((names[source], entity.row),) if source >= 0 else ())
    empty = np.empty(0, np.int64)
    for part in slices(len(get("mem.src"))):
        yield from _links(snapshot, names, np.arange(part.start, part.stop), empty)
    for part in slices(len(get("sub.src"))):
        yield from _links(snapshot, names, empty, np.arange(part.start, part.stop))
    raws = place_raws(snapshot)
    for part in slices(snapshot.statements):
        yield from _sourced(snapshot, names, np.arange(part.start, part.stop, dtype=np.int32), raws)


def some_items(
    snapshot: Snapshot, numbers: Numbers, entities: Numbers, members: NDArray[np.int64], subclasses: NDArray[np.int64]
) -> Iterator[Source | Sourced | Entity]:
    """Yield part of a snapshot as items: its sources, statements and entities by their sorted numbers, memberships
    and subclasses by position, and all entities in these.
    """
    get = snapshot.arrays.get
    sources = [snapshot.source_of(number) for number in range(len(get("src.name")))]
    yield from sources
    names = [source.name for source in sources]
    _, places = snapshot.qualifiers(numbers)
    values = get("q.ref").take(places)[get("q.kind").take(places) == Kind.ENTITY]
    ends = [entities, snapshot.subjects(numbers), snapshot.relation_object.take(numbers[: snapshot.split(numbers)]), values]
    ends += [get(f"mem.{end}").take(members) for end in "ec"] + [get(f"sub.{end}").take(subclasses) for end in "cp"]
    rows = get("ent.source")
    for number in np.unique(np.concatenate(ends)).tolist():
        entity = snapshot.entity(number)
        source = int(rows[number]) if entity.kind is EntityKind.ROW and len(rows) else -1
        yield entity if source < 0 else Sourced(entity, ((names[source], entity.row),))
    yield from _links(snapshot, names, members, subclasses)
    yield from _sourced(snapshot, names, numbers, place_raws(snapshot, numbers))


def _links(snapshot: Snapshot, names: list[str], members: NDArray[np.int64], subclasses: NDArray[np.int64]) -> Iterator[Sourced]:
    """Yield memberships and subclasses, by position."""
    for prefix, first, second, build, places in (("mem", "e", "c", Member, members), ("sub", "c", "p", Subclass, subclasses)):
        columns = [snapshot.arrays.get(f"{prefix}.{name}").take(places).tolist() for name in (first, second, "src", "row")]
        for left, right, source, row in zip(*columns, strict=True):
            yield Sourced(build(snapshot.ident(left), snapshot.ident(right), row), ((names[source], row),))


def _sourced(snapshot: Snapshot, names: list[str], numbers: Numbers, raws: dict[int, list[str | None]]) -> Iterator[Sourced]:
    """Yield statements with their sources."""
    for number, (statement, rows) in zip(numbers.tolist(), statements(snapshot, numbers), strict=True):
        places = tuple((names[source], row) for source, row in rows)
        if number not in raws:
            yield Sourced(statement, places)
            continue
        # If sources write the value differently, the statement is repeated for each raw text.
        for raw in dict.fromkeys(raws[number]):
            matching = tuple(place for place, written in zip(places, raws[number], strict=True) if written == raw)
            yield Sourced(replace(statement, raw=raw), matching)


def place_raws(snapshot: Snapshot, numbers: Numbers | None = None) -> dict[int, list[str | None]]:
    """Return the raw text at every location of attributes with several locations that do not all have the same (of
    some sorted statements, or of all).
    """
    get, first = snapshot.arrays.get, snapshot.relations
    raws = get("prov.raw")
    if not len(raws):
        return {}
    owners, own = get("prov.stmt"), get("att.raw")
    if numbers is None:
        attributes = np.flatnonzero(owners >= first)
    else:
        low, high = (owners.searchsorted(numbers[snapshot.split(numbers) :], side=side) for side in ("left", "right"))
        attributes = ranges(low, high)
    chunk_owners = owners[attributes] - first
    first_raws = own[chunk_owners] if len(own) else np.full(len(chunk_owners), -1, np.int32)
    result: dict[int, list[str | None]] = {}
    for owner in np.unique(owners[attributes[first_raws != raws[attributes]]]).tolist():
        low, high = np.searchsorted(owners, [owner, owner + 1])
        places = [int(own[owner - first]) if len(own) else -1, *raws[low:high].tolist()]
        result[owner] = [None if number < 0 else snapshot.texts[number] for number in places]
    return result
