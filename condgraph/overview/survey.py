"""A survey: all counts of a schema, made in one pass over the columns of a snapshot.

A store on a server keeps the survey as text next to the graph: it is counted once, by the load, and is the same
wherever the graph is stored. Only the examples are limited; `overview.schema.describe` chooses what is shown. A graph
that an earlier release wrote on a server has no survey: `partial_survey` builds one from the schema that programs are
lowered against.

    counts      {entities, concepts, rows, relations, attributes, qualifiers: number}
    sources     [[name, format, statements]]
    kinds       [[sort, name, id, members, [names of members], [numbers of the kinds above]]]
    predicates  [[name, relations, attributes, [values], [[key, [values]]], [[source, statements]],
                  [[subject, object]]]]
    subjects    kinds of the subjects of each predicate (`Ends`), objects: those of its objects
    values      [type, unit, number, first, last, first second, last second]

Kinds classify subjects and objects: by the concepts that a member is stated to be in ("concept"), by table for rows
in no concept ("table"), concepts themselves ("concepts"), and entities in no concept ("entities"). `first` and `last`
are numbers by size and times by their start, as text; only times have seconds.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, check, different, scratch, slices
from condgraph.engine.errors import StoreDamagedError
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.cells import PARTS, decode_values
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.stored_schema import describe_schema
from condgraph.engine.values import NO_UNIT, OPEN_START, UNKNOWN_END, Kind, Time, text_of, type_word

if TYPE_CHECKING:
    from condgraph.engine.schema import Kinds
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.stored_schema import StoredSchema


Survey = dict[str, Any]
Counts = NDArray[np.int64]

#: The maximum number of examples of a predicate and of a concept, and their maximum length in characters.
EXAMPLES: Final = 3
MAX_EXAMPLE: Final = 120
#: The number of distinct pairs after which partial counts are added up.
_MAX_PARTIAL: Final = 1_000_000
#: The version of the stored form, increased when its meaning changes.
VERSION: Final = 1
#: The number of relations whose labels are counted at once.
_CHUNK: Final = 1 << 18
_SECTIONS: Final = ("counts", "sources", "kinds", "predicates")
_ENDS: Final = ("subjects", "objects")
_COUNT_NAMES: Final = ("entities", "concepts", "rows", "relations", "attributes", "qualifiers")


class Ends(NamedTuple):
    """The kinds of subjects, or of objects, of all predicates.

    Those of predicate i (its position in the survey) are `kinds[starts[i]:starts[i + 1]]`, each with its number of
    statements in `counts`, the most frequent first, then by number.
    """

    starts: Counts
    kinds: Counts
    counts: Counts


def survey(snapshot: Snapshot) -> Survey:
    """Return the survey of a snapshot, which is cached with it."""
    result: Survey | None = snapshot.schema.kept.get("survey")
    if result is None:
        result = snapshot.schema.kept["survey"] = _build(snapshot)
    return result


def patterns(snapshot: Snapshot) -> dict[tuple[str, str, str], int]:
    """Count the relations by the labels of their ends: (subject label, predicate, object label) to the number of
    statements.

    A label is a concept or the last part of a table's name. An entity with two labels counts for both, one without a
    label not at all.
    """
    kinds = _EntityKinds(snapshot)
    all_kinds = kinds.listed()
    subjects, objects = snapshot.relation_subject, snapshot.relation_object
    predicates = snapshot.predicates(np.arange(snapshot.relations, dtype=np.int32))
    result: dict[tuple[str, str, str], int] = {}
    for low in range(0, snapshot.relations, _CHUNK):
        high = min(low + _CHUNK, snapshot.relations)
        numbers = np.arange(low, high)
        numbers, subject_kinds = kinds.expanded(numbers, subjects[numbers])
        positions, object_kinds = kinds.expanded(np.arange(len(numbers)), objects[numbers])
        triples = np.stack([subject_kinds[positions], predicates[numbers[positions]].astype(np.int64), object_kinds], axis=1)
        distinct, counts = np.unique(triples, axis=0, return_counts=True)
        for (subject, predicate, target), count in zip(distinct.tolist(), counts.tolist(), strict=True):
            ends = all_kinds[subject], all_kinds[target]
            if all(end[0] in ("concept", "table") for end in ends):
                key = ends[0][1].rpartition("/")[2], snapshot.predicate_name(predicate), ends[1][1].rpartition("/")[2]
                result[key] = result.get(key, 0) + count
    return result


def described(snapshot: Snapshot) -> dict[str, Any]:
    """Return the schema as stored with a graph on a server, with the kinds of subjects, objects and rows as numbers
    of the survey's kinds.
    """
    result, schema = survey(snapshot), snapshot.schema
    kinds = [(sort, name, above) for sort, name, _, _, _, above in result["kinds"]]
    ends = {
        predicate: [side.kinds[side.starts[at] : side.starts[at + 1]].tolist() for side in (result[name] for name in _ENDS)]
        for at, (predicate, *_) in enumerate(result["predicates"])
    }
    place = {(sort, name): number for number, (sort, name, _) in enumerate(kinds)}
    rows = {table: sorted(place[item] for item in schema.table_classes(table) or ()) for table in sorted(schema.tables)}
    return {**describe_schema(snapshot), "classes": kinds, "ends": ends, "rows": rows, "keyed": sorted(schema.keyed_tables)}


def packed(survey: Survey, content: str) -> str:
    """Return a survey as ASCII text, for storage on a server. It begins with `content`, a word that names the content
    that was counted.
    """
    plain = survey | {name: [part.tolist() for part in survey[name]] for name in _ENDS}
    return f"{content} {VERSION} " + base64.b64encode(zlib.compress(json.dumps(plain).encode(), 6)).decode("ascii")


def unpacked(text: str, content: str) -> Survey | None:
    """Return the survey from the text of `packed`, or None if it has another version or content. Raises `ValueError`
    for any other text.
    """
    stored_content, _, remainder = text.partition(" ")
    version, _, data = remainder.partition(" ")
    if (stored_content, version) != (content, str(VERSION)):
        return None
    try:
        record = json.loads(zlib.decompress(base64.b64decode(data, validate=True)))
        ends = {name: Ends(*(np.array(part, np.int64) for part in record[name])) for name in _ENDS}
        return {name: record[name] for name in _SECTIONS} | ends
    except (zlib.error, KeyError, TypeError) as error:
        raise ValueError(f"it is not a survey: {error}") from None


def _build(snapshot: Snapshot) -> Survey:
    get = snapshot.arrays.get
    numbers = np.arange(snapshot.predicate_count)
    relations, attributes = np.diff(get("rel.offsets")), np.diff(get("att.offsets"))
    predicates = scratch(snapshot.statements, np.int32)
    for part in slices(len(predicates)):
        predicates[part] = snapshot.predicates(np.arange(part.start, part.stop, dtype=np.int32))
    kinds = _EntityKinds(snapshot)
    of_subjects = kinds.tally([snapshot.relation_subject, snapshot.attribute_subject], predicates, len(numbers))
    of_objects = kinds.tally([snapshot.relation_object], predicates, len(numbers))
    check()
    values = _values(snapshot)
    qualifiers = _qualifiers(snapshot, predicates)
    check()
    sources, of_sources = _sources(snapshot, predicates)
    examples = _examples(snapshot, relations, attributes)
    check()
    names = snapshot.texts.take(get("pred.text")) if len(numbers) else []
    described = [
        [
            *(name, relations, attributes, values.get(number, []), qualifiers.get(number, [])),
            *(of_sources.get(number, []), examples.get(number, [])),
        ]
        for number, (name, relations, attributes) in enumerate(zip(names, relations.tolist(), attributes.tolist(), strict=True))
        # Keys of qualifiers are listed with the predicates that have them.
        if relations or attributes
    ]
    used = np.flatnonzero(relations + attributes)
    ends = {
        name: Ends(np.append(ends.starts[used], ends.starts[-1:]), ends.kinds, ends.counts)
        for name, ends in (("subjects", of_subjects), ("objects", of_objects))
    }
    counts = {name: int(snapshot.counts.get(name, 0)) for name in _COUNT_NAMES}
    return {"counts": counts, "sources": sources, "kinds": kinds.listed(), "predicates": described, **ends}


def _added(keys: Counts, counts: Counts, further: list[tuple[Counts, Counts]]) -> tuple[Counts, Counts]:
    """Add further counts to counts by sorted keys."""
    all_keys = np.concatenate([keys, *(part for part, _ in further)])
    result, positions = np.unique(all_keys, return_inverse=True)
    total = np.zeros(len(result), np.int64)
    np.add.at(total, positions, np.concatenate([counts, *(part for _, part in further)]))
    return result, total


class _EntityKinds:
    """The kinds of every entity, as one or more numbers for each."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        get, kinds = snapshot.arrays.get, snapshot.entity_kind
        size = snapshot.entities
        self._concepts = snapshot.every((EntityKind.CONCEPT,))
        self._tables = len(get("src.name"))
        concepts = len(self._concepts)
        self._count = concepts + self._tables + 2
        place = np.full(size, -1, np.int64)
        place[self._concepts] = np.arange(concepts)
        pairs = different(get("mem.e").astype(np.int64) * max(size, 1) + get("mem.c"))
        members, above = pairs // max(size, 1), pairs % max(size, 1)
        inside = (kinds[members] != EntityKind.CONCEPT) & (place[above] >= 0)
        members, codes = members[inside], place[above[inside]]
        has_no_concept = np.ones(size, bool)
        has_no_concept[members] = False
        without_concept = np.flatnonzero(has_no_concept)
        own_kinds = np.full(len(without_concept), concepts + self._tables + 1, np.int64)
        own_kinds[kinds[without_concept] == EntityKind.CONCEPT] = concepts + self._tables
        sources = get("ent.source")
        if len(sources):
            row = (kinds[without_concept] == EntityKind.ROW) & (sources[without_concept] >= 0)
            # Tables are ordered by name, sources by their loads.
            rank = np.argsort(np.argsort(np.array(snapshot.schema.sources, object)))
            own_kinds[row] = concepts + rank[sources[without_concept[row]]]
        self._alone = int((own_kinds == concepts + self._tables + 1).sum())
        all_entities = np.concatenate([members, without_concept])
        order = np.argsort(all_entities, kind="stable")
        self._codes = np.concatenate([codes, own_kinds])[order]
        self._offsets = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(all_entities, minlength=size), out=self._offsets[1:])

    def tally(self, columns: list[NDArray[Any]], predicates: NDArray[Any], size: int) -> Ends:
        """Count the kinds of the ends of statements for each of `size` predicates. The ends are in `columns`, one
        after the other.
        """
        keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        partial_counts: list[tuple[Counts, Counts]] = []
        first = 0
        for entities in columns:
            for part in slices(len(entities)):
                owners_of_part, codes = self.expanded(
                    predicates[first + part.start : first + part.stop].astype(np.int64), entities[part]
                )
                partial_counts.append(np.unique(owners_of_part * self._count + codes, return_counts=True))
                if sum(len(part_keys) for part_keys, _ in partial_counts) > max(len(keys), _MAX_PARTIAL):
                    keys, counts = _added(keys, counts, partial_counts)
                    partial_counts = []
            first += len(entities)
        keys, counts = _added(keys, counts, partial_counts)
        owners, codes = keys // self._count, keys % self._count
        order = np.lexsort((codes, -counts, owners))
        starts = np.searchsorted(owners[order], np.arange(size + 1))
        return Ends(starts, codes[order], counts[order])

    def expanded(self, owners: NDArray[Any], entities: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Repeat each owner for each kind of its entity. Returns the repeated owners and these kinds."""
        begin, end = self._offsets[entities], self._offsets[entities + 1]
        return np.repeat(owners, end - begin), self._codes[ranges(begin, end)]

    def listed(self) -> list[list[Any]]:
        """Return all kinds, in the order of their numbers."""
        snapshot, get = self._snapshot, self._snapshot.arrays.get
        above: dict[int, list[int]] = {}
        place = {concept: number for number, concept in enumerate(self._concepts.tolist())}
        for child, parent in sorted(set(zip(get("sub.c").tolist(), get("sub.p").tolist(), strict=True))):
            if child in place and parent in place:
                above.setdefault(place[child], []).append(place[parent])
        members: dict[int, tuple[int, int]] = {}
        offsets, items = get("con.offsets").tolist(), get("con.items")
        for at, concept in enumerate(get("con.entity").tolist()):
            members[concept] = offsets[at], offsets[at + 1]
        example_members = {concept: items[_spread(*members.get(concept, (0, 0)))] for concept in place}
        example_names = iter(
            map(cut, snapshot.texts.take(snapshot.entity_name[np.concatenate([*example_members.values(), []]).astype(np.int64)]))
        )
        names = snapshot.texts.take(snapshot.entity_name[self._concepts])
        ids = snapshot.texts.take(snapshot.entity_id[self._concepts])
        result: list[list[Any]] = []
        for (concept, number), name, ident in zip(place.items(), names, ids, strict=True):
            low, high = members.get(concept, (0, 0))
            examples = list(dict.fromkeys(next(example_names) for _ in range(len(example_members[concept]))))
            result.append(["concept", name, ident, high - low, examples, above.get(number, [])])
        rows = np.bincount(get("row.key") >> 32, minlength=self._tables) if self._tables else np.empty(0, np.int64)
        for source, number in sorted((source, number) for number, source in enumerate(snapshot.schema.sources)):
            result.append(["table", source, "", int(rows[number]), [], []])
        return [*result, ["concepts", "", "", len(place), [], []], ["entities", "", "", self._alone, [], []]]


def _values(snapshot: Snapshot) -> dict[int, list[list[Any]]]:
    """Return the values of each attribute by type and unit, the most frequent first."""
    get = snapshot.arrays.get
    starts = get("grp.start")
    typed = _typed(snapshot, "att", None, starts, [get(f"grp.{name}") for name in ("pred", "kind", "unit")])
    return {owner[0]: values for owner, values in typed.items()}


def _qualifiers(snapshot: Snapshot, predicates: NDArray[Any]) -> dict[int, list[list[Any]]]:
    """Return the qualifier keys of each predicate with their values by type and unit, the most frequent first."""
    get = snapshot.arrays.get
    items = get("qkey.items")
    owners = predicates[get("q.owner")[items]] if len(items) else np.empty(0, np.int32)
    order = np.argsort(owners, kind="stable")
    items, owners = items[order], owners[order]
    columns = [owners, *(get(f"q.{name}")[items] for name in ("key", "kind", "unit"))]
    begins = np.flatnonzero(changed(*columns))
    grouped = _typed(snapshot, "q", items, np.append(begins, len(items)), [column[begins] for column in columns])
    result: dict[int, list[list[Any]]] = {}
    for (owner, key), values in grouped.items():
        result.setdefault(owner, []).append([snapshot.predicate_name(key), values])
    for keys in result.values():
        keys.sort(key=lambda item: (-sum(value[2] for value in item[1]), item[0]))
    return result


def _typed(
    snapshot: Snapshot, family: str, items: NDArray[Any] | None, starts: NDArray[Any], marks: list[NDArray[Any]]
) -> dict[tuple[int, ...], list[list[Any]]]:
    """Return a record of type, unit, number, first and last value for each run of cells with the same type and unit,
    which are sorted by value.

    `marks` are columns with a value for each run: owners, then type and unit. The result maps owners to the records
    of their runs.
    """
    get = snapshot.arrays.get
    begin, end = starts[:-1].copy(), starts[1:] - 1
    kinds = marks[-2]
    cells = get(f"{family}.a")
    for at in np.flatnonzero(kinds == Kind.TIME).tolist():
        run = slice(int(begin[at]), int(end[at]) + 1)
        seconds = cells[run] if items is None else cells[items[run]]
        # Times without a start come first and are skipped.
        begin[at] += int(np.searchsorted(seconds, OPEN_START, side="right"))
    ends = np.concatenate([np.minimum(begin, end), end]) if len(begin) else np.empty(0, np.int64)
    places = ends if items is None else items[ends]
    numbered = np.isin(np.concatenate([kinds, kinds]), (Kind.QUANTITY, Kind.TIME))
    values_read = iter(
        decode_values({part: get(f"{family}.{part}")[places[numbered]] for part, _ in PARTS}, snapshot.texts.__getitem__, str)
    )
    values = [next(values_read) if item else None for item in numbered.tolist()]
    result: dict[tuple[int, ...], list[list[Any]]] = {}
    size = len(begin)
    for i, (*owner, kind, unit) in enumerate(zip(*(mark.tolist() for mark in marks), strict=True)):
        first, last = values[i], values[size + i]
        span: list[Any] = ["", "", None, None]
        if isinstance(first, Time) and isinstance(last, Time):
            if begin[i] <= end[i]:
                span = [str(first), str(last), first.start, last.end if last.end < UNKNOWN_END else last.start]
        elif first is not None and last is not None:
            span = [text_of(first), text_of(last), None, None]  # type: ignore[arg-type]
        unit_name = snapshot.texts[unit] if unit >= 0 else NO_UNIT
        count = int(starts[i + 1] - starts[i])
        word = type_word(Kind(kind).name.lower(), unit_name)
        result.setdefault(tuple(owner), []).append([word, unit_name if word != unit_name else NO_UNIT, count, *span])
    for records in result.values():
        records.sort(key=lambda item: (-item[2], item[0], item[1]))
    return result


def _sources(snapshot: Snapshot, predicates: NDArray[Any]) -> tuple[list[list[Any]], dict[int, list[list[Any]]]]:
    """Return the sources with their numbers of statements, and for each predicate its number of statements in each
    source, the most frequent first.
    """
    sources: list[list[Any]] = []
    by_predicate: dict[int, list[list[Any]]] = {}
    for number, name in enumerate(snapshot.schema.sources):
        statements = snapshot.sourced(number)
        counts = np.zeros(snapshot.predicate_count, np.int64)
        for part in slices(len(statements)):
            counts += np.bincount(predicates[statements[part]], minlength=len(counts))
        for predicate in np.flatnonzero(counts).tolist():
            by_predicate.setdefault(predicate, []).append([name, int(counts[predicate])])
        sources.append([name, snapshot.source_of(number).format, len(statements)])
    for counts_by_source in by_predicate.values():
        counts_by_source.sort(key=lambda item: (-item[1], item[0]))
    sources.sort(key=lambda item: (-item[2], item[0]))
    return sources, by_predicate


def _examples(snapshot: Snapshot, relations: Counts, attributes: Counts) -> dict[int, list[list[str]]]:
    """Return some statements of each predicate as [subject, object], evenly spread over its statements."""
    get, relation_count = snapshot.arrays.get, snapshot.relations
    first_relation, first_attribute = get("rel.offsets").tolist(), get("att.offsets").tolist()
    owners: list[int] = []
    chosen: list[int] = []
    for predicate, (inward, outward) in enumerate(zip(relations.tolist(), attributes.tolist(), strict=True)):
        first, second = first_relation[predicate], relation_count + first_attribute[predicate] - inward
        places = _spread(0, inward + outward).tolist()
        owners += [predicate] * len(places)
        chosen += [place + (first if place < inward else second) for place in places]
    numbers = np.array(chosen, np.int64)
    is_relation = numbers < relation_count
    subjects = np.empty(len(numbers), np.int64)
    subjects[is_relation] = snapshot.relation_subject[numbers[is_relation]]
    subjects[~is_relation] = snapshot.attribute_subject[numbers[~is_relation] - relation_count]
    objects = snapshot.texts.take(snapshot.entity_name[snapshot.relation_object[numbers[is_relation]]])
    cells = {part: get(f"att.{part}")[numbers[~is_relation] - relation_count] for part, _ in PARTS}
    values = iter(decode_values(cells, snapshot.texts.__getitem__, str))
    names = iter(objects)
    result: dict[int, list[list[str]]] = {}
    subject_names = snapshot.texts.take(snapshot.entity_name[subjects])
    for owner, subject, relation in zip(owners, subject_names, is_relation.tolist(), strict=True):
        target = next(names) if relation else text_of(next(values))  # type: ignore[arg-type]
        example, examples_so_far = [cut(subject), cut(target)], result.setdefault(owner, [])
        if example not in examples_so_far:
            examples_so_far.append(example)
    return result


def _spread(low: int, high: int) -> NDArray[np.int64]:
    """Return at most `EXAMPLES` evenly spaced positions in `[low, high)`."""
    size = high - low
    most = min(EXAMPLES, size)
    return low + (2 * np.arange(most, dtype=np.int64) + 1) * size // (2 * max(most, 1))


def cut(text: str) -> str:
    """Shorten an example."""
    return text if len(text) <= MAX_EXAMPLE else text[: MAX_EXAMPLE - 1] + "…"


# -- graphs on a server without a survey -------------------------------------------------------------
# Another release wrote them, with no survey or one that this release cannot read.


#: The note of a partial survey: what is missing, and how to get it.
NOTE: Final = (
    "Another version wrote this graph: what subjects and objects are, spans, statements of sources and examples are not known "
    "until the next load."
)


def stored_survey(text: str | None, content: str, schema: StoredSchema, counts: Mapping[str, int]) -> Survey:
    """Return the survey that a server stores as text, or one made from the schema if none is stored for this content.
    Raises `StoreDamagedError` if the text is not a survey.
    """
    try:
        stored = unpacked(text, content) if text else None
    except ValueError as error:
        raise StoreDamagedError(f"the stored summary of the graph cannot be read: {error}", hint="load it again") from None
    return partial_survey(schema, counts) if stored is None else stored


def partial_survey(schema: StoredSchema, counts: Mapping[str, int]) -> Survey:
    """Return a survey from the schema of a graph. It has predicates, types of values, qualifiers, concepts and
    sources by name; everything else is empty or 0.
    """
    predicates = [
        [
            *(name, schema.sizes.get(name, 0), sum(schema.attribute_kinds(name).values())),
            *(
                _partial_values(schema.attribute_kinds(name)),
                _partial_qualifiers(schema, name),
                [[item, 0] for item in schema.sources_of(name)],
                [],
            ),
        ]
        for name in schema.predicates
    ]
    kinds = [["concept", name, "", schema.members.get(name, 0), [], []] for name in dict.fromkeys(schema.concepts)]
    no_ends = Ends(np.zeros(len(predicates) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    return {
        "counts": {name: counts.get(name, 0) for name in _COUNT_NAMES},
        "sources": [[name, "", 0] for name in schema.sources],
        "kinds": kinds,
        "predicates": predicates,
        "subjects": no_ends,
        "objects": no_ends,
        "note": NOTE,
    }


def _partial_qualifiers(schema: StoredSchema, predicate: str) -> list[list[Any]]:
    keys = [[key, _partial_values(kinds)] for key in schema.qualifiers if (kinds := schema.qualifier_kinds(key, predicate))]
    return sorted(keys, key=lambda item: (-sum(value[2] for value in item[1]), item[0]))


def _partial_values(kinds: Kinds) -> list[list[Any]]:
    values = [[kind.name.lower(), unit, count, "", "", None, None] for (kind, unit), count in kinds.items()]
    return sorted(values, key=lambda item: (-item[2], item[0], item[1]))
