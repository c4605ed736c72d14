"""The terms of rows in process: entities and statements by their numbers in a snapshot, and what a
snapshot says of them.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import temporal
from condgraph.engine.allen import Bounds
from condgraph.engine.bounds import changed, different, pieces, watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute import rdf_terms
from condgraph.engine.execute.validity import holds_at
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.forms import Point
from condgraph.engine.iris import encode
from condgraph.engine.schema import table_of
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.snapshot.readings import Reading, attribute_reading, qualifier_reading
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind, Quantity, Time, Value, as_float

if TYPE_CHECKING:
    from condgraph.engine.execute.sets import Numbers
    from condgraph.engine.period import Period
    from condgraph.engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EntityAt:
    """An entity, by its number."""

    number: int

    @property
    def order(self) -> int:
        """Its place among all entities."""
        return self.number


@dataclass(frozen=True, slots=True)
class StatementAt:
    """A statement, by its number."""

    number: int

    @property
    def order(self) -> int:
        """Its place among all statements."""
        return self.number


@dataclass(frozen=True, slots=True)
class PathAt:
    """A path: its entities in order, and the statement between each two of them."""

    entities: tuple[int, ...]
    statements: tuple[int, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of what it passes, in turn."""
        rest = zip(self.statements, self.entities[1:], strict=True)
        return (self.entities[0], *(number for step in rest for number in step))


#: What messages call the types of terms.
_TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null", bool: "a truth value", int: "an integer", float: "a float", str: "a text", list: "a list",
    dict: "a map", Quantity: "a quantity with a unit", Time: "a time", EntityAt: "a node", StatementAt: "a relationship",
    PathAt: "a path", temporal.Duration: "a duration", Point: "a point",
}  # fmt: skip


def type_name(value: Any) -> str:
    """The type of a term, in words."""
    return _TYPE_NAMES.get(type(value), f"a {type(value).__name__}")


class GraphTerms:
    """What a snapshot says of entities and statements; functions over them are methods.

    With `touched` every statement that a value is read from is added to it, so that evidence can name
    them; memberships and subclass steps that labels are read from are then in `memberships` and `subclasses`,
    as pairs of numbers.
    """

    def __init__(self, snapshot: Snapshot, touched: set[int] | None = None) -> None:
        self._snapshot = snapshot
        self._touched = touched
        self.memberships: set[tuple[int, int]] = set()
        self.subclasses: set[tuple[int, int]] = set()
        #: Nanoseconds since 1970 at which functions of the clock are asked.
        self.clock = time.time_ns()
        self._attributes: dict[str, Reading] = {}
        self._qualifiers: dict[str, Reading] = {}
        self._period: Period | None = None

    def at(self, period: Period | None) -> GraphTerms:
        """The same, of the attributes that hold in a period."""
        if period is self._period:
            return self
        result = copy(self)
        result._period = period
        return result

    def _outgoing(self, entity: int, low: int, high: int) -> Numbers:
        """The statements of an entity in a run."""
        found: Numbers = self._snapshot.outgoing(entity, low, high)
        if self._period is not None and len(found):
            found = found[holds_at(self._snapshot, self._period.relation, self._period.interval, found)]
        return found

    # -- values ------------------------------------------------------------------------------------

    def value(self, term: Any, key: str) -> Any:
        """The value of a key of a term (`Property`)."""
        if term is None:
            return None
        kind = type(term)
        if kind is EntityAt:
            return self._one(self._attribute_values(term.number, self._attribute(key)))
        if kind is StatementAt:
            return self._one(self._qualifier_values(term.number, key).get(key, []))
        if kind is dict:
            return term.get(key)
        try:
            return term.part(key) if kind is Point else temporal.component(term, key)
        except KeyError:
            raise PlanError(f"{type_name(term)} has no property {key!r}") from None

    def values(self, entities: Numbers, key: str) -> tuple[list[Any], NDArray[Any]]:
        """The different values of a key of many entities, -1 for none, and which of them each entity has (-1: null):
        `value` on columns, without a period.
        """
        known, snapshot = self._attribute(key), self._snapshot
        if len(entities) * 16 < known.high - known.low or known.low == known.high:
            found = [self.value(EntityAt(number) if number >= 0 else None, key) for number in watched(entities.tolist())]
            return found, np.arange(len(found))
        subjects = snapshot.attribute_subject[known.low : known.high]
        low = int(subjects.min())
        # The last attribute of each subject, and subjects that have several.
        last = np.full(int(subjects.max()) - low + 2, -1, np.int32)
        last[subjects - low] = np.arange(len(subjects), dtype=np.int32)
        several = different(subjects[last.take(subjects - low) != np.arange(len(subjects))])
        # Values are numbered in their order, so that equal ones are neighbours.
        first = changed(*(snapshot.arrays.get(f"att.{part}")[known.low : known.high] for part, _ in PARTS))
        at = np.where((entities >= low) & (entities < low + len(last) - 1), entities - low, len(last) - 1)
        attributes = last.take(at)
        which = np.where(attributes >= 0, first.cumsum().take(attributes) - 1, -1)
        those = np.flatnonzero(np.isin(entities, several)) if len(several) else several
        which[those] = -1
        there = np.zeros(int(first.sum()) + 1, bool)
        there[which] = True
        there[-1] = False
        values = self._plain_values(np.flatnonzero(first)[there[:-1]] + known.low, known)
        which = np.where(which >= 0, there.cumsum().take(which) - 1, -1)
        for place in those.tolist():
            which[place] = len(values)
            values.append(self.value(EntityAt(int(entities[place])), key))
        return values, which

    def _plain_values(self, numbers: NDArray[Any], key: Reading) -> list[Any]:
        """The values of attributes as expressions have them."""
        get, snapshot = self._snapshot.arrays.get, self._snapshot
        kinds, refs, units = (get(f"att.{part}").take(numbers) for part in ("kind", "ref", "unit"))
        if not key.truths and (kinds == Kind.TEXT).all() and (units < 0).all():
            return list(snapshot.texts.take(refs))
        if (kinds == Kind.QUANTITY).all() and (refs < 0).all() and (units < 0).all():
            floats = get("att.a").take(numbers).view(np.float64) + 0.0
            if key.floats or (np.abs(floats) < 2.0**63).all():
                return list((floats if key.floats else floats.astype(np.int64)).tolist())
        return [self._plain(value, key) for some in pieces(numbers, 1 << 16) for value in snapshot.values("att", some)]

    @staticmethod
    def _one(values: list[Any]) -> Any:
        return None if not values else values[0] if len(values) == 1 else values

    def _attribute(self, key: str) -> Reading:
        known = self._attributes.get(key)
        if known is None:
            known = self._attributes[key] = attribute_reading(self._snapshot, key)
        return known

    def _attribute_values(self, entity: int, key: Reading) -> list[Any]:
        snapshot = self._snapshot
        if key.low == key.high:
            return []
        base = snapshot.relations
        found = self._outgoing(entity, base + key.low, base + key.high)
        if not len(found):
            return []
        numbers = found.tolist()
        if self._touched is not None:
            self._touched.update(numbers)
        values = (self._plain(snapshot.value("att", number - base), key) for number in numbers)
        return [value for value in values if value is not None]

    def _plain(self, value: Ref | Value, key: Reading) -> Any:
        """A value as expressions have it."""
        kind = type(value)
        if kind is Quantity:
            assert isinstance(value, Quantity)
            if value.unit != NO_UNIT:
                return value
            if key.floats and type(value.number) is int:
                self._touch(key.fraction)
                return as_float(value)[0]
            return value.number
        if kind is str:
            if not key.truths and value in ("true", "false"):
                self._touch(key.word)
            return value == "true" if key.truths else value
        if value is UNKNOWN:
            return None
        return EntityAt(self._snapshot.identified(value.id)) if isinstance(value, Ref) else value

    def _touch(self, statement: int) -> None:
        """What shows how others are read is part of what they rest on."""
        if self._touched is not None and statement >= 0:
            self._touched.add(statement)

    def _qualifier_values(self, statement: int, only: str | None = None) -> dict[str, list[Any]]:
        """The values of the qualifiers of a statement by their keys."""
        snapshot = self._snapshot
        _, numbers = snapshot.qualifiers(np.array([statement], np.int32))
        if self._touched is not None:
            self._touched.add(statement)
        if not len(numbers):
            return {}
        wanted = None if only is None else snapshot.predicate(only)
        keys = snapshot.arrays.view("q.key")
        result: dict[str, list[Any]] = {}
        for number in numbers.tolist():
            if wanted is not None and keys[number] != wanted:
                continue
            name = snapshot.predicate_name(keys[number])
            known = self._qualifiers.get(name)
            if known is None:
                known = self._qualifiers[name] = qualifier_reading(snapshot, name)
            value = self._plain(snapshot.value("q", number), known)
            if value is not None:
                result.setdefault(name, []).append(value)
        return result

    def properties(self, term: Any) -> dict[str, Any]:
        """All properties of a term as a map: attributes, or qualifiers."""
        kind = type(term)
        if kind is dict:
            return dict(term)
        if kind is StatementAt:
            return {key: self._one(values) for key, values in self._qualifier_values(term.number).items()}
        if kind is not EntityAt:
            raise PlanError(f"properties() is not defined for {type_name(term)}")
        snapshot = self._snapshot
        found = self._outgoing(term.number, snapshot.relations, snapshot.statements)
        names = map(snapshot.predicate_name, dict.fromkeys(snapshot.predicates(found).tolist()))
        values = ((name, self._one(self._attribute_values(term.number, self._attribute(name)))) for name in names)
        return {name: value for name, value in values if value is not None}

    def keys(self, term: Any) -> list[str]:
        """The keys of the properties of a term."""
        if type(term) is dict:
            return list(term)
        return list(self.properties(term))

    # -- labels ------------------------------------------------------------------------------------

    def has_concept(self, term: Any, names: tuple[str, ...]) -> bool | None:
        """Whether a term is in one of some concepts (`HasConcept`)."""
        if term is None:
            return None
        if type(term) is StatementAt:
            return self.type(term) in names
        if type(term) is not EntityAt:
            raise PlanError(f"labels are not defined for {type_name(term)}")
        if self._touched is not None:
            self.labels(term)
        return any(self._is(term.number, name) for name in names)

    def _is(self, entity: int, name: str) -> bool:
        snapshot = self._snapshot
        concepts = snapshot.concepts_named(name)
        if concepts:
            return bool(snapshot.member_mask(concepts)[entity])
        table = table_of(name, snapshot.schema.tables)
        return table is not None and self._table(entity) == table

    def _table(self, entity: int) -> str | None:
        """The table whose row an entity is."""
        snapshot = self._snapshot
        owners = snapshot.arrays.get("ent.source")
        if not len(owners) or snapshot.entity_kind[entity] != EntityKind.ROW or owners[entity] < 0:
            return None
        return snapshot.schema.sources[int(owners[entity])]

    def labels(self, term: Any) -> list[str]:
        """The names of the concepts that an entity is an instance of, closed under subclass, and the table
        whose row it is; in order.
        """
        if type(term) is not EntityAt:
            raise PlanError(f"labels() is not defined for {type_name(term)}")
        snapshot = self._snapshot
        members, concepts, parents = self._memberships
        low, high = np.searchsorted(members, [term.number, term.number + 1])
        waiting: list[int] = concepts[low:high].tolist()
        result: set[int] = set()
        if self._touched is not None:
            self.memberships.update((term.number, concept) for concept in waiting)
        while waiting:
            concept = waiting.pop()
            if concept not in result:
                result.add(concept)
                above = parents.get(concept, [])
                waiting.extend(above)
                if self._touched is not None:
                    self.subclasses.update((concept, parent) for parent in above)
        names = {snapshot.name(concept) for concept in result}
        if (table := self._table(term.number)) is not None:
            short = table.rpartition("/")[2]
            names.add(short if table_of(short, snapshot.schema.tables) == table else table)
        return sorted(names)

    @property
    def _memberships(self) -> tuple[Any, Any, dict[int, list[int]]]:
        """Members in order next to their concepts, and the concepts above each."""
        kept = self._snapshot.schema.kept
        known = kept.get("labels of entities")
        if known is None:
            get = self._snapshot.arrays.get
            order = np.argsort(get("mem.e"), kind="stable")
            parents: dict[int, list[int]] = {}
            for child, parent in zip(get("sub.c").tolist(), get("sub.p").tolist(), strict=True):
                parents.setdefault(child, []).append(parent)
            known = kept["labels of entities"] = get("mem.e")[order], get("mem.c")[order], parents
        result: tuple[Any, Any, dict[int, list[int]]] = known
        return result

    # -- entities and statements -------------------------------------------------------------------

    def id(self, term: Any) -> int:
        """A number of an entity or statement, the same as long as the graph does not change."""
        if type(term) in (EntityAt, StatementAt):
            return int(term.number)
        raise PlanError(f"id() is not defined for {type_name(term)}")

    def element_id(self, term: Any) -> str:
        """The id of an entity; of a statement its number, as a text."""
        if type(term) is EntityAt:
            return self._snapshot.ident(term.number)
        return str(self.id(term))

    def rdf_iri(self, term: Any) -> str:
        """The IRI of an entity or a value, from the base of the graph on."""
        return encode(self._snapshot.ident(term.number)) if type(term) is EntityAt else rdf_terms.iri(term)

    def name(self, term: Any) -> str:
        """The name of an entity."""
        if type(term) is not EntityAt:
            raise PlanError(f"{type_name(term)} has no name")
        return self._snapshot.name(term.number)

    def type(self, term: Any) -> str:
        """The predicate of a statement."""
        if type(term) is not StatementAt:
            raise PlanError(f"type() is not defined for {type_name(term)}")
        return self._snapshot.predicate_name(self._snapshot.predicate_of(term.number))

    def start_node(self, term: Any) -> EntityAt:
        """The subject of a statement."""
        if type(term) is not StatementAt:
            raise PlanError(f"startNode() is not defined for {type_name(term)}")
        return EntityAt(int(self._snapshot.relation_subject[term.number]))

    def end_node(self, term: Any) -> EntityAt:
        """The object of a statement."""
        if type(term) is not StatementAt:
            raise PlanError(f"endNode() is not defined for {type_name(term)}")
        return EntityAt(int(self._snapshot.relation_object[term.number]))

    def _bounds(self, term: Any) -> Bounds | None:
        """When a statement holds, or what interval a time is."""
        if type(term) is StatementAt:
            if self._touched is not None:
                self._touched.add(term.number)
            _, places = self._snapshot.qualifiers(np.array([term.number], np.int32))
            keys = self._snapshot.arrays.get("q.key")
            stated = [(self._snapshot.predicate_name(int(keys[at])), self._snapshot.value("q", at)) for at in places.tolist()]
            return Bounds.stated(stated)
        time = temporal.interval(term)
        if time is None:
            raise PlanError(f"{type_name(term)} has no time", hint="allen() and days.least() take relationships and times")
        return Bounds.of(time)

    def allen_possible(self, one: Any, other: Any) -> list[str] | None:
        """The relations in time that two statements or times may have (`engine.allen`); null where one has no time."""
        first, second = self._bounds(one), self._bounds(other)
        return None if first is None or second is None else list(first.relations(second))

    def allen(self, one: Any, other: Any) -> str | None:
        """The relation in time of two statements or times; null where several are possible."""
        possible = self.allen_possible(one, other)
        return possible[0] if possible is not None and len(possible) == 1 else None

    def allen_together(self, one: Any, other: Any) -> bool | None:
        """Whether two statements or times have a moment in common; null where that is not known."""
        first, second = self._bounds(one), self._bounds(other)
        return None if first is None or second is None else first.together(second)

    def days_least(self, term: Any) -> float | None:
        """The least days that a statement or time lasts; null of one without a time."""
        bounds = self._bounds(term)
        return None if bounds is None else bounds.shortest()

    def days_most(self, term: Any) -> float | None:
        """The most days that a statement or time lasts; null where an end is not known."""
        bounds = self._bounds(term)
        return None if bounds is None else bounds.longest()

    def path(self, *parts: Any) -> PathAt | None:
        """A path of an entity, and alternately a statement, or a list of them, and an entity; null if one
        of them is.
        """
        if any(part is None for part in parts):
            return None
        entities, statements = [parts[0].number], []
        for step, end in zip(parts[1::2], parts[2::2], strict=True):
            for statement in step if type(step) is list else [step]:
                subject = int(self._snapshot.relation_subject[statement.number])
                target = int(self._snapshot.relation_object[statement.number])
                entities.append(target if subject == entities[-1] else subject)
                statements.append(statement.number)
            if entities[-1] != end.number:
                raise PlanError("the parts of a path do not follow each other")
        return PathAt(tuple(entities), tuple(statements))

    @staticmethod
    def nodes(term: Any) -> list[EntityAt]:
        """The entities of a path."""
        if type(term) is not PathAt:
            raise PlanError(f"nodes() is not defined for {type_name(term)}")
        return [EntityAt(number) for number in term.entities]

    @staticmethod
    def relationships(term: Any) -> list[StatementAt]:
        """The statements of a path."""
        if type(term) is not PathAt:
            raise PlanError(f"relationships() is not defined for {type_name(term)}")
        return [StatementAt(number) for number in term.statements]
