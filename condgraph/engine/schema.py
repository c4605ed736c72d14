"""What is known of a graph while a program is lowered: names, types, units, qualifier keys,
sources. Never the facts.

Every choice a program leaves open (is this key a qualifier, is that literal a year or a number) is
made from here, so that one plan means the same on every store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.errors import nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.telling import telling_columns
from condgraph.engine.terms import ALTERNATIVE, loads
from condgraph.engine.values import NO_UNIT, Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: How many values of each type and unit (the unit is "1" for all but quantities).
Kinds = dict[tuple[Kind, str], int]


#: Of so many entities the names are all compared with one that is not known; of more, those that
#: stand around it.
MOST_COMPARED: Final = 200_000
#: How many names on each side of it.
AROUND: Final = 5_000


def beginnings(name: str) -> list[str]:
    """What a name may be written as, where it is looked up by how it begins."""
    return list(dict.fromkeys((name, name.capitalize(), name.title(), name.lower(), name.upper())))


def offered(name: str, own: Iterable[str], names: Iterable[str], most: int) -> list[str]:
    """What is offered for an unknown name: `own`, the name of the entity whose id it is, however little
    the two are alike, and then the nearest of some names.
    """
    return list(dict.fromkeys([*own, *nearest(name, names, most=most)]))[:most]


class Schema:
    """The schema of one snapshot; each part is read when it is first asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._attributes: dict[int, Kinds] = {}
        self._qualifiers: dict[tuple[int, int], Kinds] = {}
        #: What others keep for as long as this generation is open, by their own names (indexes of
        #: names, say).
        self.kept: dict[str, Any] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The generation this is the schema of: for indexes of names, never for choices of a plan."""
        return self._snapshot

    @property
    def spelled(self) -> Callable[[str, str], str] | None:
        """Names are written as they are."""
        return None

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

    # -- sources -----------------------------------------------------------------------------------

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
        names = np.unique(snapshot.entity_name)
        if snapshot.entities > MOST_COMPARED:
            # Texts are sorted: look around where the name would stand, and where its capitalised
            # form would.
            at = np.searchsorted(names, [snapshot.texts.rank(form) for form in beginnings(name)])
            names = np.unique(np.concatenate([names[max(i - AROUND, 0) : i + AROUND] for i in at]))
        return offered(name, own, snapshot.texts.take(names), most)

    def _used(self, offsets: str) -> tuple[str, ...]:
        numbers = np.flatnonzero(np.diff(self._snapshot.arrays.get(offsets)))
        return tuple(self._snapshot.texts.take(self._snapshot.arrays.get("pred.text")[numbers]))
