"""The schema of a graph, against which programs are lowered: names, types, units, qualifier keys and sources, never
facts.

Every choice that a program leaves open (is this key a qualifier, is that literal a year or a number) is made from the
schema, so that a plan means the same on every store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import different, remembered
from condgraph.engine.errors import nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.readings import Reading, attribute_reading, qualifier_reading
from condgraph.engine.terms import ALTERNATIVE, loads
from condgraph.engine.values import NO_UNIT, Kind, collapse, text_of

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- labels of rows ----------------------------------------------------------------------------------
# Labels of table rows without a key: the most informative column.


#: Separates source and number in the name of a row.
BEFORE_ROW: Final = " row "
#: The number of rows of a source that are examined.
_MAX_EXAMINED: Final = 10_000
#: The largest mean length of the texts of such a column, in characters.
_MAX_MEAN_LENGTH: Final = 80
#: Headers of columns that name a row, if their texts are mostly present and mostly distinct.
_NAME_HEADERS: Final = ("name", "title", "label")


def telling_columns(snapshot: Snapshot) -> dict[str, str]:
    """Return the most informative column of each source whose rows have no keys: at least half of its texts (of at
    most 80 characters on average) are distinct, and at least half of the rows have one. Columns with a header like a
    name come first, then the most distinct texts, then the first column. Only the first 10,000 rows are examined.
    """
    get = snapshot.arrays.get
    keys, rows = get("row.key"), get("row.entity")
    if not len(keys):
        return {}
    sources, first = np.unique(keys >> 32, return_index=True)
    named = {}
    for source, index in zip(sources.tolist(), first.tolist(), strict=True):
        entity = snapshot.entity(int(rows[index]))
        name = snapshot.source_of(source).name
        if entity.name == f"{name}{BEFORE_ROW}{entity.row}":
            named[source] = name
    if not named:
        return {}
    counts = np.bincount((keys >> 32)[(keys & 0xFFFFFFFF) <= _MAX_EXAMINED], minlength=int(sources[-1]) + 1)
    subjects, offsets = get("att.s"), get("att.offsets")
    places, numbers, kinds, refs = get("ent.source"), get("ent.row"), get("att.kind"), get("att.ref")
    best: dict[int, tuple[tuple[bool, int], str]] = {}
    for predicate in range(len(offsets) - 1):
        low, high = offsets[predicate : predicate + 2].tolist()
        run_owners = subjects[low:high]
        texts = (kinds[low:high] == Kind.TEXT) & (places.take(run_owners) >= 0) & (numbers.take(run_owners) <= _MAX_EXAMINED)
        if not texts.any():
            continue
        owners, text_numbers = places.take(run_owners[texts]), refs[low:high][texts]
        column = snapshot.predicate_name(predicate)
        for source in np.unique(owners).tolist():
            if source not in named:
                continue
            source_texts = text_numbers[owners == source]
            different = np.unique(source_texts)
            if len(source_texts) * 2 < counts[source] or len(different) * 2 < len(source_texts):
                continue
            if sum(len(snapshot.texts[text]) for text in different.tolist()) > _MAX_MEAN_LENGTH * len(different):
                continue
            rank = column.casefold().endswith(_NAME_HEADERS), len(different)
            if source not in best or rank > best[source][0]:
                best[source] = rank, column
    return {named[source]: column for source, (_, column) in sorted(best.items())}


# -- schema ------------------------------------------------------------------------------------------


#: The number of values of each type and unit (the unit is "1" for all but quantities).
Kinds = dict[tuple[Kind, str], int]
#: Classes of entities: a stated concept ("concept", name), the table whose rows they are ("table",
#: source), or without either: concepts ("concepts", ""), others ("entities", "").
Classes: TypeAlias = frozenset[tuple[str, str]]
End: TypeAlias = Literal["subject", "object"]
#: How the numbers of a key, and its texts, are read: whether the reading of some depends on others (integers as floats, truth
#: values as texts), and the first statement that decides it, by subject, predicate and value (None: unknown).
ShownKey: TypeAlias = list[list[Any]]
#: The same by name, for "attributes" and "qualifiers".
Shown: TypeAlias = dict[str, dict[str, ShownKey]]


#: Up to this many entities, an unknown name is compared with all names; for more, with its neighbours
#: in sorted order.
MAX_COMPARED: Final = 200_000
#: The number of neighbours on each side.
NEARBY: Final = 5_000
#: The number of rows of a table that are examined for keys.
_KEYS_LOOKED_AT: Final = 20


def places_in(known: Mapping[str, ShownKey], keys: Collection[str] | None) -> list[list[Any]]:
    """Return the statements that decide how values of some keys (None: any) are read, where some values do not decide
    it themselves.
    """
    names = known if keys is None else [name for name in keys if name in known]
    return [place for name in names for depends, places in known[name] if depends for place in places or ()]


def beginnings(name: str) -> list[str]:
    """Return spellings of a name, for a lookup by its beginning."""
    return list(dict.fromkeys((name, name.capitalize(), name.title(), name.lower(), name.upper())))


def offered(name: str, own: Iterable[str], names: Iterable[str], most: int) -> list[str]:
    """Return suggestions for an unknown name: `own`, the name of the entity with that id, however different, then the
    nearest names.
    """
    return list(dict.fromkeys([*own, *nearest(name, names, most=most)]))[:most]


def ids_of_key(key: str, tables: Iterable[str]) -> list[str]:
    """Return the possible ids of rows with a key, in some tables."""
    return list(dict.fromkeys(f"{stem}/{key}" for table in sorted(tables) for stem in (table, table.rpartition("/")[2])))


def _is_keyed(snapshot: Snapshot, number: int) -> bool:
    """Return whether the id of a row ends in one of its cells, or in something other than its number."""
    row = snapshot.entity(number)
    key = row.id.rpartition("/")[2]
    if key != str(row.row):
        return True
    raws = snapshot.arrays.get("att.raw")
    for statement in snapshot.outgoing(number, snapshot.relations, snapshot.statements).tolist():
        attribute = statement - snapshot.relations
        raw = int(raws[attribute]) if len(raws) else -1
        if collapse(snapshot.texts[raw] if raw >= 0 else text_of(snapshot.value("att", attribute))) == key:  # type: ignore[arg-type]
            return True
    return False


def table_of(name: str, tables: Iterable[str]) -> str | None:
    """Return the table with a name: the source of that name, or the only one whose name ends in it after "/".

    >>> table_of("trips", ("bus/trips", "stops")), table_of("trips", ("a/trips", "b/trips"))
    ('bus/trips', None)
    """
    if name in tables:
        return name
    matches = [table for table in tables if table.rpartition("/")[2] == name]
    return matches[0] if len(matches) == 1 else None


def below(concepts: Iterable[int], children: NDArray[Any], parents: NDArray[Any]) -> list[int]:
    """Return some concepts and their subclasses."""
    result = set(frontier := list(concepts))
    while frontier:
        new_concepts = set(children[np.isin(parents, frontier)].tolist()) - result
        result |= new_concepts
        frontier = list(new_concepts)
    return sorted(result)


class Schema:
    """The schema of one snapshot; each part is read on first access."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        #: A cache for other modules, as long as this generation is open (for example indexes of names).
        self.kept: dict[str, Any] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of this schema: for indexes of names, never for choices of a plan."""
        return self._snapshot

    # -- names -------------------------------------------------------------------------------------

    def has_relation(self, name: str) -> bool:
        """Return whether a statement with this predicate has an entity as object."""
        number = self._snapshot.predicate(name)
        offsets = self._snapshot.relation_offsets
        return number >= 0 and offsets[number] < offsets[number + 1]

    def has_attribute(self, name: str) -> bool:
        """Return whether a statement with this predicate has a value as object."""
        number = self._snapshot.predicate(name)
        offsets = self._snapshot.attribute_offsets
        return number >= 0 and offsets[number] < offsets[number + 1]

    def has_qualifier(self, key: str, predicate: str | None = None) -> bool:
        """Return whether a statement (of this predicate) has a qualifier with this key."""
        return bool(self.qualifier_kinds(key, predicate))

    def has_entity(self, name: str) -> bool:
        """Return whether an entity or concept has exactly this name."""
        return len(self._snapshot.named(name)) > 0

    def also_called(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return the entities, id and name, that have exactly this alternative label; for graphs from RDF, whose
        labels beyond the first are facts.
        """
        snapshot, get = self._snapshot, self._snapshot.arrays.get
        text = snapshot.texts.find(name)
        if text < 0 or not self._labels:
            return ()
        numbers: set[int] = set()
        offsets, kinds, refs, subjects = (get(f"att.{part}") for part in ("offsets", "kind", "ref", "s"))
        for predicate in self._labels:
            run = slice(*offsets[predicate : predicate + 2].tolist())
            numbers.update(subjects[run][(kinds[run] == Kind.TEXT) & (refs[run] == text)].tolist())
        entities = map(snapshot.entity, sorted(numbers))
        return tuple((entity.id, entity.name) for entity in entities)

    @cached_property
    def _labels(self) -> list[int]:
        """The predicates whose texts are alternative labels."""
        terms = [loads(self._snapshot.source_of(source).terms) for source in range(len(self._snapshot.arrays.get("src.name")))]
        names = {
            name for source_terms in terms for name, property_ in source_terms.predicates.items() if property_.iri in ALTERNATIVE
        }
        return sorted(number for name in names if (number := self._snapshot.predicate(name)) >= 0)

    def has_text(self, text: str) -> bool:
        """Return whether the graph contains exactly this text: a name, a value, an id."""
        return self._snapshot.texts.find(text) >= 0

    def attributes_with(self, text: str) -> list[str]:
        """Return the attributes that have a text as a value."""
        number, get = self._snapshot.texts.find(text), self._snapshot.arrays.get
        if number < 0:
            return []
        values = np.flatnonzero((get("att.ref") == number) & (get("att.kind") == Kind.TEXT))
        predicates = np.unique(np.searchsorted(get("att.offsets"), values, side="right") - 1)
        return [self._snapshot.predicate_name(predicate) for predicate in predicates.tolist()]

    def has_concept(self, name: str) -> bool:
        """Return whether a concept has exactly this name."""
        return len(self._snapshot.concepts_named(name)) > 0

    def has_id(self, ident: str) -> bool:
        """Return whether an entity has this id."""
        return self._snapshot.identified(ident) >= 0

    # -- types -------------------------------------------------------------------------------------

    @remembered
    def attribute_kinds(self, name: str) -> Kinds:
        """Return the types and units of an attribute's values, with their counts; empty if there is no such
        attribute.
        """
        number, get, texts = self._snapshot.predicate(name), self._snapshot.arrays.get, self._snapshot.texts
        kinds: Kinds = {}
        for run in range(*np.searchsorted(get("grp.pred"), [number, number + 1]).tolist()):
            unit = int(get("grp.unit")[run])
            key = Kind(int(get("grp.kind")[run])), texts[unit] if unit >= 0 else NO_UNIT
            kinds[key] = int(get("grp.start")[run + 1] - get("grp.start")[run])
        return kinds

    @remembered
    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        """Return the types and units of a qualifier's values, on one predicate or on any; empty if there are none."""
        number = self._snapshot.predicate(key)
        owner = -1 if predicate is None else self._snapshot.predicate(predicate)
        if number < 0 or (predicate is not None and owner < 0):
            return {}
        get, texts = self._snapshot.arrays.get, self._snapshot.texts
        rows = get("sch.q.key") == number
        if owner >= 0:
            rows = rows & (get("sch.q.pred") == owner)
        kinds: Kinds = {}
        for row in np.flatnonzero(rows).tolist():
            unit = int(get("sch.q.unit")[row])
            kind = Kind(int(get("sch.q.kind")[row])), texts[unit] if unit >= 0 else NO_UNIT
            kinds[kind] = kinds.get(kind, 0) + int(get("sch.q.count")[row])
        return kinds

    @remembered
    def several_values(self, name: str, *, qualifier: bool = False) -> bool | None:
        """Return whether an entity has several values of an attribute, or a statement of a qualifier; None if
        unknown.
        """
        snapshot, number = self._snapshot, self._snapshot.predicate(name)
        owners: NDArray[Any] = np.empty(0, np.int32)
        if qualifier and number >= 0:
            cells = snapshot.ordered("q")
            places = [cells.numbers(begin, end) for _, _, begin, end in snapshot.qualifier_groups(number)]
            owners = snapshot.arrays.get("q.owner")[np.concatenate(places)] if places else owners
        elif number >= 0:
            low, high = snapshot.attribute_offsets[number : number + 2]
            owners = snapshot.attribute_subject[low:high]
        return len(different(owners)) < len(owners)

    @cached_property
    def shown(self) -> Shown:
        """How the numbers and texts of each key are read (`snapshot.readings`)."""
        snapshot = self._snapshot

        def describe_reading(known: Reading) -> ShownKey | None:
            places: list[list[list[Any]]] = [[], []]
            shows = (known.fraction, known.number_shown), (known.word, known.text_shown)
            for of, (statement, value) in zip(places, shows, strict=True):
                if statement >= 0:
                    (subject,) = snapshot.subjects(np.array([statement], np.int32)).tolist()
                    of.append([snapshot.ident(subject), snapshot.predicate_name(snapshot.predicate_of(statement)), value])
            kinds = known.whole or known.truth or any(places)
            return [[known.whole, places[0]], [known.truth, places[1]]] if kinds else None

        all_keys = {
            "attributes": {name: describe_reading(attribute_reading(snapshot, name)) for name in self.attributes},
            "qualifiers": {name: describe_reading(qualifier_reading(snapshot, name)) for name in self.qualifiers},
        }
        return {sort: {name: known for name, known in of.items() if known} for sort, of in all_keys.items()}

    def shows(self, sort: str, keys: Collection[str] | None) -> list[list[Any]]:
        """Return the values that decide how others of some "attributes" or "qualifiers" (None: any) are read, as
        subject, predicate and value.
        """
        return places_in(self.shown[sort], keys)

    def word_of(self, name: str) -> str:
        """Return a text of an attribute that is not a truth value, because of which all its values are texts; "" if
        there is none.
        """
        return attribute_reading(self._snapshot, name).text_shown

    # -- classes of entities -----------------------------------------------------------------------

    @remembered
    def end_classes(self, predicate: str, end: End) -> Classes | None:
        """Return the classes of the subjects, or objects, of all statements of a predicate; None if unknown."""
        snapshot, number = self._snapshot, self._snapshot.predicate(predicate)
        if number < 0:
            return frozenset()
        is_end = np.zeros(snapshot.entities, bool)
        low, high = snapshot.relation_offsets[number : number + 2]
        is_end[(snapshot.relation_subject if end == "subject" else snapshot.relation_object)[low:high]] = True
        if end == "subject":
            low, high = snapshot.attribute_offsets[number : number + 2]
            is_end[snapshot.attribute_subject[low:high]] = True
        return self._classes(is_end)

    @remembered
    def concept_classes(self, name: str) -> Classes | None:
        """Return the classes of the members of the concepts with a name, including subclasses."""
        get = self._snapshot.arrays.get
        concepts = below(self._snapshot.concepts_named(name), get("sub.c"), get("sub.p"))
        return frozenset(("concept", concept_name) for concept_name in map(self._snapshot.name, concepts))

    def table_classes(self, source: str) -> Classes | None:
        """Return the classes of the rows of a table."""
        owners = self._snapshot.arrays.get("ent.source")
        if source not in self.tables or not len(owners):
            return None
        rows = self._snapshot.entity_kind == EntityKind.ROW
        return self._classes(rows & (owners == self.sources.index(source)))

    def _classes(self, there: NDArray[np.bool_]) -> Classes:
        """Return the classes of the entities in a mask."""
        snapshot, (members, concepts, alone) = self._snapshot, self._memberships
        kinds, remaining = snapshot.entity_kind, there & alone
        classes = {("concept", snapshot.name(number)) for number in np.unique(concepts[there[members]]).tolist()}
        classes |= {("concepts", "")} if (remaining & (kinds == EntityKind.CONCEPT)).any() else set()
        remaining &= kinds != EntityKind.CONCEPT
        owners = snapshot.arrays.get("ent.source")
        if len(owners):
            rows = remaining & (kinds == EntityKind.ROW) & (owners >= 0)
            classes |= {("table", self.sources[number]) for number in np.unique(owners[rows]).tolist()}
            remaining &= ~rows
        return frozenset(classes | ({("entities", "")} if remaining.any() else set()))

    @cached_property
    def _memberships(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Members and their concepts, without concepts as members; and a mask of the entities without membership."""
        snapshot, get = self._snapshot, self._snapshot.arrays.get
        members, concepts = get("mem.e"), get("mem.c")
        chosen = (snapshot.entity_kind[members] != EntityKind.CONCEPT) & (snapshot.entity_kind[concepts] == EntityKind.CONCEPT)
        without_concept = np.ones(snapshot.entities, bool)
        without_concept[members[chosen]] = False
        return members[chosen], concepts[chosen], without_concept

    # -- sources -----------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> frozenset[str]:
        """The sources that have table rows."""
        return frozenset(self.sources[number] for number in np.unique(self._snapshot.arrays.get("row.key") >> 32).tolist())

    def table_called(self, name: str) -> str | None:
        """Return the table whose rows are meant by a concept name that is not a concept."""
        return None if self.has_concept(name) else table_of(name, self.tables)

    @cached_property
    def keyed_tables(self) -> frozenset[str]:
        """The tables whose rows have keys other than their numbers, judged by a sample."""
        get, snapshot = self._snapshot.arrays.get, self._snapshot
        tables = set()
        for table in self.tables:
            source = self.sources.index(table)
            low, high = np.searchsorted(get("row.key"), [source << 32, (source + 1) << 32]).tolist()
            rows = get("row.entity")[np.unique(np.linspace(low, high - 1, _KEYS_LOOKED_AT).astype(np.int64))]
            if all(_is_keyed(snapshot, number) for number in rows.tolist()):
                tables.add(table)
        return frozenset(tables)

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the rows, id and name, with a text as their key."""
        numbers = (self._snapshot.identified(ident) for ident in ids_of_key(key, self.keyed_tables))
        return tuple((self._snapshot.ident(number), self._snapshot.name(number)) for number in numbers if number >= 0)

    @cached_property
    def telling(self) -> dict[str, str]:
        """The columns by which rows without keys are displayed, by source."""
        return telling_columns(self._snapshot)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The names of all sources."""
        names = self._snapshot.arrays.get("src.name")
        return tuple(self._snapshot.texts.take(names))

    def sources_of(self, predicate: str) -> tuple[str, ...]:
        """Return the sources that have statements of a predicate."""
        number = self._snapshot.predicate(predicate)
        owners = self._snapshot.arrays.get("sch.s.pred")
        begin, end = np.searchsorted(owners, [number, number + 1])
        return tuple(self.sources[source] for source in self._snapshot.arrays.get("sch.s.src")[begin:end].tolist())

    # -- vocabularies and nearest names ------------------------------------------------------------

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """Every predicate with entities as objects, sorted."""
        return self._used("rel.offsets")

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Every predicate with values as objects, sorted."""
        return self._used("att.offsets")

    @cached_property
    def qualifiers(self) -> tuple[str, ...]:
        """Every qualifier key, sorted."""
        return self._used("qkey.offsets")

    @cached_property
    def temporal(self) -> bool:
        """Whether any statement has a validity."""
        return len(self._snapshot.arrays.get("val.stmt")) > 0

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """The names of all concepts, sorted."""
        numbers = self._snapshot.every((EntityKind.CONCEPT,))
        return tuple(dict.fromkeys(self._snapshot.texts.take(self._snapshot.entity_name[numbers])))

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Return the entity names most similar to `name`: the name of the entity with that id, the same without case,
        then by similarity among those with a similar beginning or length.
        """
        snapshot = self._snapshot
        number = snapshot.identified(name)
        by_id = [snapshot.name(number)] if number >= 0 else []
        names = different(snapshot.entity_name)
        if snapshot.entities > MAX_COMPARED:
            # Texts are sorted: compare the neighbours of the name and of its other spellings.
            positions = np.searchsorted(names, [snapshot.texts.rank(form) for form in beginnings(name)])
            names = np.unique(np.concatenate([names[max(position - NEARBY, 0) : position + NEARBY] for position in positions]))
        return offered(name, by_id, snapshot.texts.take(names), most)

    def every_name(self) -> list[str]:
        """Return the names of all entities; empty if there are too many."""
        snapshot = self._snapshot
        return [] if snapshot.entities > MAX_COMPARED else snapshot.texts.take(different(snapshot.entity_name))

    def _used(self, offsets: str) -> tuple[str, ...]:
        numbers = np.flatnonzero(np.diff(self._snapshot.arrays.get(offsets)))
        return tuple(self._snapshot.texts.take(self._snapshot.arrays.get("pred.text")[numbers]))


class OpenSchema:
    """A schema with an entity for every open name."""

    def __init__(self, schema: Any, is_open: Callable[[str], bool]) -> None:
        self._schema, self._is_open = schema, is_open

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schema, name)

    def has_entity(self, name: str) -> bool:
        """Return whether the graph has an entity with this name, or the name is open."""
        return self._is_open(name) or bool(self._schema.has_entity(name))
