"""The schema of a graph, by which programs are lowered: names, types, units, qualifier keys and
sources, never facts.

Every choice a program leaves open (is this key a qualifier, is that literal a year or a number) is
made from here, so that one plan means the same on every store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import different
from condgraph.engine.errors import nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.readings import Reading, attribute_reading, qualifier_reading
from condgraph.engine.terms import ALTERNATIVE, loads
from condgraph.engine.values import NO_UNIT, Kind, collapse, text_of

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- labels of rows ----------------------------------------------------------------------------------
# Labels of table rows that have no key: the column that says most about them.


#: What stands between source and number in the name of a row.
BEFORE_ROW: Final = " row "
#: Rows of a source that are looked at.
_LOOKED_AT: Final = 10_000
#: Characters that the texts of a telling column have at most, on average.
_LONGEST: Final = 80
#: Headers that name a row, where their texts are mostly there and mostly different.
_NAMES: Final = ("name", "title", "label")


def telling_columns(snapshot: Snapshot) -> dict[str, str]:
    """The column that tells most of each source whose rows have no keys: of its texts (of at most 80
    characters on average) half or more are different, and half or more of the rows have one. One that
    is called like a name comes first, then the one with the most different texts, then the first.
    Looked at are the first 10,000 rows.
    """
    get = snapshot.arrays.get
    keys, rows = get("row.key"), get("row.entity")
    if not len(keys):
        return {}
    sources, first = np.unique(keys >> 32, return_index=True)
    named = {}
    for source, at in zip(sources.tolist(), first.tolist(), strict=True):
        entity = snapshot.entity(int(rows[at]))
        name = snapshot.source_of(source).name
        if entity.name == f"{name}{BEFORE_ROW}{entity.row}":
            named[source] = name
    if not named:
        return {}
    counts = np.bincount((keys >> 32)[(keys & 0xFFFFFFFF) <= _LOOKED_AT], minlength=int(sources[-1]) + 1)
    subjects, offsets = get("att.s"), get("att.offsets")
    places, numbers, kinds, refs = get("ent.source"), get("ent.row"), get("att.kind"), get("att.ref")
    best: dict[int, tuple[tuple[bool, int], str]] = {}
    for predicate in range(len(offsets) - 1):
        low, high = offsets[predicate : predicate + 2].tolist()
        of = subjects[low:high]
        texts = (kinds[low:high] == Kind.TEXT) & (places.take(of) >= 0) & (numbers.take(of) <= _LOOKED_AT)
        if not texts.any():
            continue
        owners, said = places.take(of[texts]), refs[low:high][texts]
        column = snapshot.predicate_name(predicate)
        for source in np.unique(owners).tolist():
            if source not in named:
                continue
            here = said[owners == source]
            different = np.unique(here)
            if len(here) * 2 < counts[source] or len(different) * 2 < len(here):
                continue
            if sum(len(snapshot.texts[one]) for one in different.tolist()) > _LONGEST * len(different):
                continue
            rank = column.casefold().endswith(_NAMES), len(different)
            if source not in best or rank > best[source][0]:
                best[source] = rank, column
    return {named[source]: column for source, (_, column) in sorted(best.items())}


# -- schema ------------------------------------------------------------------------------------------


#: How many values of each type and unit (the unit is "1" for all but quantities).
Kinds = dict[tuple[Kind, str], int]
#: What some entities are: a concept that they are stated to be in, the table whose rows they are, or
#: nothing of the kind, as ("concept", name), ("table", source), ("concepts", "") and ("entities", "").
Classes: TypeAlias = frozenset[tuple[str, str]]
End: TypeAlias = Literal["subject", "object"]
#: How the numbers of a key are read, and its texts: whether there are some that others may read (whole numbers as floats, truth
#: values as texts), and where the first that shows it is, by subject, predicate and value: among these places, or not known
#: (None).
ShownKey: TypeAlias = list[list[Any]]
#: That of the keys of "attributes" and of "qualifiers", by name.
Shown: TypeAlias = dict[str, dict[str, ShownKey]]


#: Of so many entities the names are all compared with one that is not known; of more, those that
#: stand around it.
MOST_COMPARED: Final = 200_000
#: How many names on each side of it.
AROUND: Final = 5_000
#: Rows of a table that are looked at to see whether they have keys.
_KEYS_LOOKED_AT: Final = 20


def places_in(known: Mapping[str, ShownKey], keys: Collection[str] | None) -> list[list[Any]]:
    """The places by which values of some keys (None: of any) are read that are not read by themselves."""
    names = known if keys is None else [name for name in keys if name in known]
    return [place for name in names for others, places in known[name] if others for place in places or ()]


def beginnings(name: str) -> list[str]:
    """What a name may be written as, where it is looked up by how it begins."""
    return list(dict.fromkeys((name, name.capitalize(), name.title(), name.lower(), name.upper())))


def offered(name: str, own: Iterable[str], names: Iterable[str], most: int) -> list[str]:
    """What is offered for an unknown name: `own`, the name of the entity whose id it is, however little
    the two are alike, and then the nearest of some names.
    """
    return list(dict.fromkeys([*own, *nearest(name, names, most=most)]))[:most]


def ids_of_key(key: str, tables: Iterable[str]) -> list[str]:
    """What the ids of rows may be that have a key, in some tables."""
    return list(dict.fromkeys(f"{stem}/{key}" for table in sorted(tables) for stem in (table, table.rpartition("/")[2])))


def _has_key(snapshot: Snapshot, number: int) -> bool:
    """Whether the id of a row ends in a cell of it, or in something else than its number."""
    row = snapshot.entity(number)
    key = row.id.rpartition("/")[2]
    if key != str(row.row):
        return True
    raws = snapshot.arrays.get("att.raw")
    for statement in snapshot.outgoing(number, snapshot.relations, snapshot.statements).tolist():
        at = statement - snapshot.relations
        raw = int(raws[at]) if len(raws) else -1
        if collapse(snapshot.texts[raw] if raw >= 0 else text_of(snapshot.value("att", at))) == key:  # type: ignore[arg-type]
            return True
    return False


def table_of(name: str, tables: Iterable[str]) -> str | None:
    """The table of a name: the source that is called so, or the one whose name ends in it behind "/".

    >>> table_of("trips", ("bus/trips", "stops")), table_of("trips", ("a/trips", "b/trips"))
    ('bus/trips', None)
    """
    if name in tables:
        return name
    found = [table for table in tables if table.rpartition("/")[2] == name]
    return found[0] if len(found) == 1 else None


def below(concepts: Iterable[int], children: NDArray[Any], parents: NDArray[Any]) -> list[int]:
    """Some concepts, and those below them."""
    found = set(waiting := list(concepts))
    while waiting:
        fresh = set(children[np.isin(parents, waiting)].tolist()) - found
        found |= fresh
        waiting = list(fresh)
    return sorted(found)


class Schema:
    """The schema of one snapshot; each part is read when it is first asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._attributes: dict[int, Kinds] = {}
        self._qualifiers: dict[tuple[int, int], Kinds] = {}
        self._ends: dict[tuple[int, End], Classes] = {}
        self._below: dict[str, Classes] = {}
        #: What others keep for as long as this generation is open, by their own names (indexes of
        #: names, say).
        self.kept: dict[str, Any] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The generation this is the schema of: for indexes of names, never for choices of a plan."""
        return self._snapshot

    # -- what a name is ----------------------------------------------------------------------------

    def has_relation(self, name: str) -> bool:
        """Some statement with this predicate has an entity as object."""
        number = self._snapshot.predicate(name)
        offsets = self._snapshot.relation_offsets
        return number >= 0 and offsets[number] < offsets[number + 1]

    def has_attribute(self, name: str) -> bool:
        """Some statement with this predicate has a value as object."""
        number = self._snapshot.predicate(name)
        offsets = self._snapshot.attribute_offsets
        return number >= 0 and offsets[number] < offsets[number + 1]

    def has_qualifier(self, key: str, predicate: str | None = None) -> bool:
        """Some statement (of this predicate) has a qualifier of this key."""
        return bool(self.qualifier_kinds(key, predicate))

    def has_entity(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""
        return len(self._snapshot.named(name)) > 0

    def also_called(self, name: str) -> tuple[tuple[str, str], ...]:
        """The entities, id and name, of which an alternative label is exactly this name: of graphs
        that were loaded from RDF, whose labels beyond the first are facts.
        """
        snapshot, get = self._snapshot, self._snapshot.arrays.get
        text = snapshot.texts.find(name)
        if text < 0 or not self._labels:
            return ()
        found: set[int] = set()
        offsets, kinds, refs, subjects = (get(f"att.{part}") for part in ("offsets", "kind", "ref", "s"))
        for predicate in self._labels:
            here = slice(*offsets[predicate : predicate + 2].tolist())
            found.update(subjects[here][(kinds[here] == Kind.TEXT) & (refs[here] == text)].tolist())
        entities = map(snapshot.entity, sorted(found))
        return tuple((one.id, one.name) for one in entities)

    @cached_property
    def _labels(self) -> list[int]:
        """The predicates whose texts are further names."""
        terms = [loads(self._snapshot.source_of(i).terms) for i in range(len(self._snapshot.arrays.get("src.name")))]
        names = {name for one in terms for name, own in one.predicates.items() if own.iri in ALTERNATIVE}
        return sorted(number for name in names if (number := self._snapshot.predicate(name)) >= 0)

    def has_text(self, text: str) -> bool:
        """Something in the graph is exactly this text: a name, a value, an id."""
        return self._snapshot.texts.find(text) >= 0

    def attributes_with(self, text: str) -> list[str]:
        """The attributes that have a text as a value."""
        number, get = self._snapshot.texts.find(text), self._snapshot.arrays.get
        if number < 0:
            return []
        values = np.flatnonzero((get("att.ref") == number) & (get("att.kind") == Kind.TEXT))
        predicates = np.unique(np.searchsorted(get("att.offsets"), values, side="right") - 1)
        return [self._snapshot.predicate_name(predicate) for predicate in predicates.tolist()]

    def has_concept(self, name: str) -> bool:
        """Some concept has exactly this name."""
        return len(self._snapshot.concepts_named(name)) > 0

    def has_id(self, ident: str) -> bool:
        """Some entity has this id."""
        return self._snapshot.identified(ident) >= 0

    # -- types -------------------------------------------------------------------------------------

    def attribute_kinds(self, name: str) -> Kinds:
        """The types and units of an attribute's values, with how many there are; empty for no
        attribute.
        """
        number = self._snapshot.predicate(name)
        found = self._attributes.get(number)
        if found is None:
            get, texts = self._snapshot.arrays.get, self._snapshot.texts
            predicates, found = get("grp.pred"), {}
            for i in range(*np.searchsorted(predicates, [number, number + 1]).tolist()):
                unit = int(get("grp.unit")[i])
                key = Kind(int(get("grp.kind")[i])), texts[unit] if unit >= 0 else NO_UNIT
                found[key] = int(get("grp.start")[i + 1] - get("grp.start")[i])
            self._attributes[number] = found
        return found

    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        """The types and units of a qualifier's values, on one predicate or on any; empty where
        there are none.
        """
        number = self._snapshot.predicate(key)
        owner = -1 if predicate is None else self._snapshot.predicate(predicate)
        if number < 0 or (predicate is not None and owner < 0):
            return {}
        found = self._qualifiers.get((number, owner))
        if found is None:
            get, texts = self._snapshot.arrays.get, self._snapshot.texts
            rows = get("sch.q.key") == number
            if owner >= 0:
                rows = rows & (get("sch.q.pred") == owner)
            found = {}
            for i in np.flatnonzero(rows).tolist():
                unit = int(get("sch.q.unit")[i])
                kind = Kind(int(get("sch.q.kind")[i])), texts[unit] if unit >= 0 else NO_UNIT
                found[kind] = found.get(kind, 0) + int(get("sch.q.count")[i])
            self._qualifiers[number, owner] = found
        return found

    def several_values(self, name: str, *, qualifier: bool = False) -> bool | None:
        """Whether some entity has several values of an attribute, or some statement of a qualifier; None where that is not
        known.
        """
        known: dict[tuple[str, bool], bool] = self.kept.setdefault("several values", {})
        found = known.get((name, qualifier))
        if found is None:
            snapshot, number = self._snapshot, self._snapshot.predicate(name)
            owners: NDArray[Any] = np.empty(0, np.int32)
            if qualifier and number >= 0:
                cells = snapshot.ordered("q")
                places = [cells.numbers(begin, end) for _, _, begin, end in snapshot.qualifier_groups(number)]
                owners = snapshot.arrays.get("q.owner")[np.concatenate(places)] if places else owners
            elif number >= 0:
                low, high = snapshot.attribute_offsets[number : number + 2]
                owners = snapshot.attribute_subject[low:high]
            found = known[name, qualifier] = len(different(owners)) < len(owners)
        return found

    @cached_property
    def shown(self) -> Shown:
        """How the numbers and texts of each key are read (`snapshot.readings`)."""
        snapshot = self._snapshot

        def described(known: Reading) -> ShownKey | None:
            places: list[list[list[Any]]] = [[], []]
            shows = (known.fraction, known.number_shown), (known.word, known.text_shown)
            for of, (statement, value) in zip(places, shows, strict=True):
                if statement >= 0:
                    (subject,) = snapshot.subjects(np.array([statement], np.int32)).tolist()
                    of.append([snapshot.ident(subject), snapshot.predicate_name(snapshot.predicate_of(statement)), value])
            kinds = known.whole or known.truth or any(places)
            return [[known.whole, places[0]], [known.truth, places[1]]] if kinds else None

        every = {
            "attributes": {name: described(attribute_reading(snapshot, name)) for name in self.attributes},
            "qualifiers": {name: described(qualifier_reading(snapshot, name)) for name in self.qualifiers},
        }
        return {sort: {name: known for name, known in of.items() if known} for sort, of in every.items()}

    def shows(self, sort: str, keys: Collection[str] | None) -> list[list[Any]]:
        """Where the values are by which others of some "attributes" or "qualifiers" (None: of any) are read, by subject,
        predicate and value.
        """
        return places_in(self.shown[sort], keys)

    def word_of(self, name: str) -> str:
        """A text of an attribute that is no truth value, for which others are texts as well; empty where there is none."""
        return attribute_reading(self._snapshot, name).text_shown

    # -- what entities are -------------------------------------------------------------------------

    def end_classes(self, predicate: str, end: End) -> Classes | None:
        """The classes of the subjects, or objects, of all statements of a predicate; None where that
        is not known.
        """
        snapshot, number = self._snapshot, self._snapshot.predicate(predicate)
        if number < 0:
            return frozenset()
        found = self._ends.get((number, end))
        if found is None:
            there = np.zeros(snapshot.entities, bool)
            low, high = snapshot.relation_offsets[number : number + 2]
            there[(snapshot.relation_subject if end == "subject" else snapshot.relation_object)[low:high]] = True
            if end == "subject":
                low, high = snapshot.attribute_offsets[number : number + 2]
                there[snapshot.attribute_subject[low:high]] = True
            found = self._ends[number, end] = self._classes(there)
        return found

    def concept_classes(self, name: str) -> Classes | None:
        """The classes of the members of the concepts of a name, closed under subclass."""
        found = self._below.get(name)
        if found is None:
            get = self._snapshot.arrays.get
            concepts = below(self._snapshot.concepts_named(name), get("sub.c"), get("sub.p"))
            found = self._below[name] = frozenset(("concept", one) for one in map(self._snapshot.name, concepts))
        return found

    def table_classes(self, source: str) -> Classes | None:
        """The classes of the rows of a table."""
        owners = self._snapshot.arrays.get("ent.source")
        if source not in self.tables or not len(owners):
            return None
        rows = self._snapshot.entity_kind == EntityKind.ROW
        return self._classes(rows & (owners == self.sources.index(source)))

    def _classes(self, there: NDArray[np.bool_]) -> Classes:
        """The classes of the entities of a mask."""
        snapshot, (members, concepts, alone) = self._snapshot, self._memberships
        kinds, rest = snapshot.entity_kind, there & alone
        found = {("concept", snapshot.name(one)) for one in np.unique(concepts[there[members]]).tolist()}
        found |= {("concepts", "")} if (rest & (kinds == EntityKind.CONCEPT)).any() else set()
        rest &= kinds != EntityKind.CONCEPT
        owners = snapshot.arrays.get("ent.source")
        if len(owners):
            rows = rest & (kinds == EntityKind.ROW) & (owners >= 0)
            found |= {("table", self.sources[one]) for one in np.unique(owners[rows]).tolist()}
            rest &= ~rows
        return frozenset(found | ({("entities", "")} if rest.any() else set()))

    @cached_property
    def _memberships(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Members and their concepts side by side, concepts as members left out; and who is none."""
        snapshot, get = self._snapshot, self._snapshot.arrays.get
        members, concepts = get("mem.e"), get("mem.c")
        kept = (snapshot.entity_kind[members] != EntityKind.CONCEPT) & (snapshot.entity_kind[concepts] == EntityKind.CONCEPT)
        alone = np.ones(snapshot.entities, bool)
        alone[members[kept]] = False
        return members[kept], concepts[kept], alone

    # -- sources -----------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> frozenset[str]:
        """The sources that have table rows."""
        return frozenset(self.sources[number] for number in np.unique(self._snapshot.arrays.get("row.key") >> 32).tolist())

    def table_called(self, name: str) -> str | None:
        """The table whose rows are meant where a concept of a name is asked for, and there is none."""
        return None if self.has_concept(name) else table_of(name, self.tables)

    @cached_property
    def keyed_tables(self) -> frozenset[str]:
        """The tables whose rows have keys and no numbers alone, as far as some of their rows say."""
        get, snapshot = self._snapshot.arrays.get, self._snapshot
        found = set()
        for table in self.tables:
            source = self.sources.index(table)
            low, high = np.searchsorted(get("row.key"), [source << 32, (source + 1) << 32]).tolist()
            rows = get("row.entity")[np.unique(np.linspace(low, high - 1, _KEYS_LOOKED_AT).astype(np.int64))]
            if all(_has_key(snapshot, number) for number in rows.tolist()):
                found.add(table)
        return frozenset(found)

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """The rows, id and name, that a text is the key of."""
        found = (self._snapshot.identified(ident) for ident in ids_of_key(key, self.keyed_tables))
        return tuple((self._snapshot.ident(number), self._snapshot.name(number)) for number in found if number >= 0)

    @cached_property
    def telling(self) -> dict[str, str]:
        """The columns that rows without keys are shown by, of the sources that have one."""
        return telling_columns(self._snapshot)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The names of all sources."""
        names = self._snapshot.arrays.get("src.name")
        return tuple(self._snapshot.texts.take(names))

    def sources_of(self, predicate: str) -> tuple[str, ...]:
        """The sources that have statements of a predicate."""
        number = self._snapshot.predicate(predicate)
        owners = self._snapshot.arrays.get("sch.s.pred")
        begin, end = np.searchsorted(owners, [number, number + 1])
        return tuple(self.sources[i] for i in self._snapshot.arrays.get("sch.s.src")[begin:end].tolist())

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
        """Entity names most like `name`: that of the entity whose id it is, the same without case, then
        by likeness among those of a similar beginning or length.
        """
        snapshot = self._snapshot
        number = snapshot.identified(name)
        own = [snapshot.name(number)] if number >= 0 else []
        names = different(snapshot.entity_name)
        if snapshot.entities > MOST_COMPARED:
            # Texts are sorted: look around where the name would stand, and where its capitalised
            # form would.
            at = np.searchsorted(names, [snapshot.texts.rank(form) for form in beginnings(name)])
            names = np.unique(np.concatenate([names[max(i - AROUND, 0) : i + AROUND] for i in at]))
        return offered(name, own, snapshot.texts.take(names), most)

    def every_name(self) -> list[str]:
        """The names of all entities; none where there are too many."""
        snapshot = self._snapshot
        return [] if snapshot.entities > MOST_COMPARED else snapshot.texts.take(different(snapshot.entity_name))

    def _used(self, offsets: str) -> tuple[str, ...]:
        numbers = np.flatnonzero(np.diff(self._snapshot.arrays.get(offsets)))
        return tuple(self._snapshot.texts.take(self._snapshot.arrays.get("pred.text")[numbers]))


class OpenSchema:
    """A schema that has an entity for every name that is open."""

    def __init__(self, schema: Any, is_open: Callable[[str], bool]) -> None:
        self._schema, self._is_open = schema, is_open

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schema, name)

    def has_entity(self, name: str) -> bool:
        """Whether the graph has an entity of this name, or it is open."""
        return self._is_open(name) or bool(self._schema.has_entity(name))
