"""The schema of a graph on a server, for lowering: stored on the graph's node, with names looked up on demand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from condgraph.engine.facts import EntityKind
from condgraph.engine.schema import Classes, End, Kinds, Shown, below, places_in, table_of, telling_columns
from condgraph.engine.values import NO_UNIT, Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: In a graph that others may change, results of a lookup are reused for LEASE seconds, or for PAUSE times as long as the
#: lookup took.
LEASE: Final = 5.0
PAUSE: Final = 50

#: Looks up the values that change how other values of an attribute, or of a qualifier (True), are read, as `shows` returns them.
LookForShown = Callable[[str, bool], list[list[Any]]]
T = TypeVar("T")


class StoredSchema:
    """The interface of `engine.schema.Schema`, answered from what `describe_schema` wrote.

    Names of entities are not stored: queries look them up themselves, and empty answers are explained afterwards.
    `look` serves graphs that nobody described.
    """

    def __init__(self, found: dict[str, Any], look: LookForShown | None = None) -> None:
        self._lookup = look
        self.relations: tuple[str, ...] = tuple(found["relations"])
        self.attributes: tuple[str, ...] = tuple(found["attributes"])
        self.qualifiers: tuple[str, ...] = tuple(found["qualifiers"])
        self.concepts: tuple[str, ...] = tuple(found["concepts"])
        self.sources: tuple[str, ...] = tuple(found["sources"])
        #: Sources with table rows; those whose statements are all about their own rows; whether any statement has a
        #: validity; whether any number does not fit a float.
        self.tables: frozenset[str] = frozenset(found["tables"])
        self.tabular: frozenset[str] = frozenset(found["tabular"])
        self.temporal: bool = found["temporal"]
        self.inexact: bool = found["inexact"]
        #: Whether any value differs from its text in the source; whether concepts have relations or attributes, or are
        #: members.
        self.raw: bool = found.get("raw", True)
        self.concept_subjects: bool = found.get("concept_subjects", True)
        self.concept_attributes: bool = found.get("concept_attributes", True)
        self.concept_members: bool = found.get("concept_members", True)
        #: A cache for callers, with the lifetime of this schema, by names of their own.
        self.kept: dict[str, Any] = {}
        #: The number of relations by predicate, and of members by the name of the concepts.
        self.sizes: dict[str, int] = found.get("sizes", {})
        self.members: dict[str, int] = found.get("members", {})
        #: The number of relations of the same predicate that the subject, and the object, of a relation has: the mean over
        #: the relations. Names that exactly one concept has.
        self.degrees: dict[str, list[float]] = found.get("degrees", {})
        self.single: frozenset[str] = frozenset(found.get("single", ()))
        #: The columns used as labels of rows without keys; absent in graphs that an earlier version wrote.
        self.telling: dict[str, str] = found.get("telling", {})
        #: By predicate: the number of edges (of any predicate) that leave the subject of a statement, and that lead to its
        #: object: the maxima, then the means. Absent in graphs that an earlier version wrote.
        self.hubs: dict[str, list[int]] = found.get("hubs", {})
        #: The classes of entities (`Classes`) by number, with the numbers of their superclasses, and the classes of the
        #: subjects and objects of each predicate and of the rows of each table. Absent in graphs that an earlier version wrote.
        self._classes: list[tuple[str, str]] = [(sort, name) for sort, name, _ in found.get("classes", ())]
        self._above = [(at, one) for at, (*_, above) in enumerate(found.get("classes", ())) for one in above]
        self._below: dict[str, Classes] = {}
        self._ends: dict[str, list[list[int]]] = found.get("ends", {})
        self._rows: dict[str, list[int]] = found.get("rows", {})
        #: The attributes, and the qualifiers, with several values for one entity or statement. Absent in graphs that an
        #: earlier version wrote.
        several: dict[str, list[str]] | None = found.get("several")
        self._several = None if several is None else {sort: frozenset(names) for sort, names in several.items()}
        #: How the numbers and texts of keys are read. Absent in graphs that an earlier version wrote.
        self.shown: Shown = found.get("shown", {"attributes": {}, "qualifiers": {}})
        #: The tables whose rows have keys.
        self.keyed_tables: frozenset[str] = frozenset(found.get("keyed", ()))
        self._of: dict[str, list[int]] = found["predicates"]
        self._attributes = {name: _kind_map(kinds) for name, kinds in found["attributes"].items()}
        self._qualifiers = {name: _kind_map(kinds) for name, kinds in found["qualifiers"].items()}
        self._owners = {key: {name: _kind_map(kinds) for name, kinds in owners.items()} for key, owners in found["on"].items()}
        self._relations, self._concepts = frozenset(self.relations), frozenset(self.concepts)

    @property
    def predicates(self) -> tuple[str, ...]:
        """Every predicate, sorted."""
        return tuple(self._of)

    def has_relation(self, name: str) -> bool:
        """Return whether some statement with this predicate has an entity as object."""
        return name in self._relations

    def has_attribute(self, name: str) -> bool:
        """Return whether some statement with this predicate has a value as object."""
        return name in self._attributes

    def has_qualifier(self, key: str, predicate: str | None = None) -> bool:
        """Return whether some statement (of this predicate) has a qualifier with this key."""
        return bool(self.qualifier_kinds(key, predicate))

    def has_concept(self, name: str) -> bool:
        """Return whether some concept has exactly this name."""
        return name in self._concepts

    def has_entity(self, name: str) -> bool:
        """Return True: not known here, the query finds out."""
        return True

    def also_called(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return nothing: not known here."""
        return ()

    def attributes_with(self, text: str) -> list[str]:
        """Return nothing: not known here."""
        return []

    def has_text(self, text: str) -> bool:
        """Return True: not known here."""
        return True

    def has_id(self, ident: str) -> bool:
        """Return False: not known here."""
        return False

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Return nothing: not known here."""
        return []

    def every_name(self) -> list[str]:
        """Return the names of all entities; here none. Subclasses that can look names up do so once per content of
        the graph, and return none where there are too many.
        """
        return []

    #: Whether `every_name` repeats a name for each entity that has it.
    names_repeat = False

    def attribute_kinds(self, name: str) -> Kinds:
        """Return the types and units of an attribute's values, with the number of values."""
        return self._attributes.get(name, {})

    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        """Return the types and units of a qualifier's values, on one predicate or on any."""
        return self._qualifiers.get(key, {}) if predicate is None else self._owners.get(key, {}).get(predicate, {})

    def several_values(self, name: str, *, qualifier: bool = False) -> bool | None:
        """Return whether some entity has several values of an attribute, or some statement of a qualifier; None if
        unknown.
        """
        return None if self._several is None else name in self._several["qualifiers" if qualifier else "attributes"]

    def shows(self, sort: str, keys: Collection[str] | None) -> list[list[Any]]:
        """Return the values that change how other values of the same key are read, by subject, predicate and value,
        for some "attributes" or "qualifiers" (None: for all).
        """
        if self._lookup is None:
            return places_in(self.shown[sort], keys)
        qualifier, result = sort == "qualifiers", list[list[Any]]()
        names = set(self.qualifiers if qualifier else self.attributes)
        for key in sorted(names if keys is None else names.intersection(keys)):
            if not self._is_read_alone(key, qualifier):
                result += self.leased((sort, key), partial(self._lookup, key, qualifier))
        return result

    def word_of(self, name: str) -> str:
        """Return a text of an attribute that is not a truth value (`Schema.word_of`); empty if unknown."""
        *_, (_, places) = self.shown["attributes"].get(name, [[False, []]])
        return str(places[0][2]) if places else ""

    def leased(self, key: tuple[str, str], look: Callable[[], T]) -> T:
        """Return the result of `look`, or a recent one."""
        begin = time.monotonic()
        leases: dict[tuple[str, str], tuple[float, T]] = self.kept.setdefault("leases", {})
        if key not in leases or leases[key][0] < begin:
            result = look()
            end = time.monotonic()
            leases[key] = end + max(LEASE, PAUSE * (end - begin)), result
        return leases[key][1]

    def _is_read_alone(self, key: str, qualifier: bool) -> bool:
        """Return whether the values of a key are certainly of types where no value changes how others are read."""
        return False

    def end_classes(self, predicate: str, end: End) -> Classes | None:
        """Return the classes of the subjects, or objects, of all statements of a predicate; None if unknown."""
        ends = self._ends.get(predicate)
        if ends is None and self._ends and predicate not in self._of:
            return frozenset()
        return None if ends is None else frozenset(self._classes[number] for number in ends[end == "object"])

    def concept_classes(self, name: str) -> Classes | None:
        """Return the classes of the members of the concepts of a name, closed under subclass."""
        if not self._classes:
            return None
        classes = self._below.get(name)
        if classes is None:
            roots = [number for number, class_ in enumerate(self._classes) if class_ == ("concept", name)]
            numbers = below(roots, *np.array(self._above or np.empty((0, 2)), np.int64).T)
            classes = self._below[name] = frozenset(self._classes[number] for number in numbers)
        return classes

    def table_classes(self, source: str) -> Classes | None:
        """Return the classes of the rows of a table."""
        numbers = self._rows.get(source)
        return None if numbers is None else frozenset(self._classes[number] for number in numbers)

    def table_called(self, name: str) -> str | None:
        """Return the table whose rows are meant by the name of a concept that does not exist."""
        return None if self.has_concept(name) else table_of(name, self.tables)

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return nothing: not known here."""
        return ()

    def sources_of(self, predicate: str) -> tuple[str, ...]:
        """Return the sources that have statements of a predicate."""
        return tuple(self.sources[i] for i in self._of.get(predicate, ()))


def _kind_map(found: list[list[Any]]) -> Kinds:
    return {(Kind(kind), unit): count for kind, unit, count in found}


def describe_schema(snapshot: Snapshot) -> dict[str, Any]:
    """Return the schema as it is stored with the graph: predicates with their types and sources, qualifier keys,
    concepts, sources.
    """
    schema, get = snapshot.schema, snapshot.arrays.get

    def kinds(found: Kinds) -> list[list[Any]]:
        return [[int(kind), unit, count] for (kind, unit), count in found.items()]

    on: dict[str, dict[str, list[list[Any]]]] = {}
    columns = (get(f"sch.q.{name}").tolist() for name in ("key", "pred", "kind", "unit", "count"))
    for key, predicate, kind, unit, count in zip(*columns, strict=True):
        owners = on.setdefault(snapshot.predicate_name(key), {})
        of_owner = owners.setdefault(snapshot.predicate_name(predicate), [])
        of_owner.append([kind, snapshot.texts[unit] if unit >= 0 else NO_UNIT, count])
    predicates: dict[str, list[int]] = {}
    for predicate, source in zip(get("sch.s.pred").tolist(), get("sch.s.src").tolist(), strict=True):
        predicates.setdefault(snapshot.predicate_name(predicate), []).append(source)
    tables = np.unique(get("row.key") >> 32).tolist()
    return {
        "relations": list(schema.relations),
        "attributes": {name: kinds(schema.attribute_kinds(name)) for name in schema.attributes},
        "qualifiers": {name: kinds(schema.qualifier_kinds(name)) for name in schema.qualifiers},
        "concepts": list(schema.concepts),
        "sources": list(schema.sources),
        "on": on,
        "predicates": predicates,
        "tables": [schema.sources[number] for number in tables],
        "tabular": [schema.sources[number] for number in tables if _of_own_rows(snapshot, number)],
        "telling": telling_columns(snapshot),
        "temporal": len(get("val.stmt")) > 0,
        "inexact": bool(snapshot.inexact),
        "raw": bool((get("att.raw") >= 0).any()),
        "concept_subjects": snapshot.counts["concept_subjects"] > 0,
        "concept_attributes": snapshot.counts["concept_attributes"] > 0,
        "several": {
            "attributes": [name for name in schema.attributes if schema.several_values(name)],
            "qualifiers": [name for name in schema.qualifiers if schema.several_values(name, qualifier=True)],
        },
        "shown": schema.shown,
        "sizes": _sizes(snapshot),
        "members": _members(snapshot),
        "degrees": _degrees(snapshot),
        "hubs": _hubs(snapshot),
        "single": [name for name, times in Counter(map(snapshot.name, get("con.entity").tolist())).items() if times == 1],
        "concept_members": bool((snapshot.entity_kind.take(get("mem.e")) == EntityKind.CONCEPT).any()),
    }


def _sizes(snapshot: Snapshot) -> dict[str, int]:
    """Count the relations of each predicate."""
    counts = np.diff(snapshot.relation_offsets)
    return {snapshot.predicate_name(number): int(counts[number]) for number in np.flatnonzero(counts).tolist()}


def _members(snapshot: Snapshot) -> dict[str, int]:
    """Count the entities in the concepts of each name, closed under subclass."""
    members: dict[str, int] = {}
    get = snapshot.arrays.get
    for concept, count in zip(get("con.entity").tolist(), np.diff(get("con.offsets")).tolist(), strict=True):
        name = snapshot.name(concept)
        members[name] = members.get(name, 0) + count
    return members


def _degrees(snapshot: Snapshot) -> dict[str, list[float]]:
    """Return, by predicate, how many relations of that predicate the subject, and the object, of a relation has: the
    mean over the relations.
    """
    offsets, ends = snapshot.relation_offsets.tolist(), (snapshot.arrays.get("rel.s"), snapshot.relation_object)
    degrees: dict[str, list[float]] = {}
    for number, (low, high) in enumerate(pairwise(offsets)):
        if high > low:
            counts = [np.unique(end[low:high], return_counts=True)[1] for end in ends]
            degrees[snapshot.predicate_name(number)] = [
                round(float(np.square(count, dtype=float).sum() / (high - low)), 1) for count in counts
            ]
    return degrees


def _hubs(snapshot: Snapshot) -> dict[str, list[int]]:
    """Return, by predicate, the number of statements and memberships of any predicate that leave the subject of a
    statement, and that lead to its object: the maxima, then the means over the statements.
    """
    get, entities = snapshot.arrays.get, snapshot.entities
    subjects, objects, members = get("rel.s"), snapshot.relation_object, np.diff(get("con.offsets"))
    leaving, entering = np.zeros(entities, np.int64), np.bincount(objects, minlength=entities)
    for column in (subjects, get("att.s"), get("con.items")):
        leaving += np.bincount(column, minlength=entities)
    np.add.at(entering, get("con.entity"), members)
    hubs: dict[str, list[int]] = {}
    relations, attributes = snapshot.relation_offsets.tolist(), snapshot.attribute_offsets.tolist()
    for offsets, side, edges, ends in (
        (relations, 0, leaving, subjects),
        (relations, 1, entering, objects),
        (attributes, 0, leaving, get("att.s")),
    ):
        for number, (low, high) in enumerate(pairwise(offsets)):
            if high > low:
                entry, degrees = hubs.setdefault(snapshot.predicate_name(number), [0] * 4), edges[ends[low:high]]
                entry[side] = max(entry[side], int(degrees.max()))
                entry[2 + side] = max(entry[2 + side], int(np.ceil(degrees.mean())))
    return hubs


def _of_own_rows(snapshot: Snapshot, source: int) -> bool:
    """Return whether all statements of a source are about its own rows and none leads to a row of another source."""
    statements = snapshot.sourced(source)
    places, kinds = snapshot.arrays.get("ent.source"), snapshot.entity_kind
    subjects = snapshot.subjects(statements)
    objects = snapshot.relation_object.take(statements[: snapshot.split(statements)])
    objects = objects[kinds.take(objects) == EntityKind.ROW]
    rows = np.concatenate([subjects, objects])
    return bool((kinds.take(rows) == EntityKind.ROW).all() and (places.take(rows) == source).all())
