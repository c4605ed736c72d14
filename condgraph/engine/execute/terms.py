"""The terms of rows in process: entities and statements by number, and the functions that read the graph."""

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
from condgraph.engine.iris import encode
from condgraph.engine.schema import table_of
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.snapshot.readings import Reading, attribute_reading, qualifier_reading
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind, Point, Quantity, Time, Value, as_float

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
        return self.number


@dataclass(frozen=True, slots=True)
class StatementAt:
    """A statement, by its number."""

    number: int

    @property
    def order(self) -> int:
        return self.number


@dataclass(frozen=True, slots=True)
class PathAt:
    """A path: its entities in order, and the statements between them."""

    entities: tuple[int, ...]
    statements: tuple[int, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of its entities and statements, in turn."""
        steps = zip(self.statements, self.entities[1:], strict=True)
        return (self.entities[0], *(number for step in steps for number in step))


#: Names of the types of terms in messages.
_TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null", bool: "a truth value", int: "an integer", float: "a float", str: "a text", list: "a list",
    dict: "a map", Quantity: "a quantity with a unit", Time: "a time", EntityAt: "a node", StatementAt: "a relationship",
    PathAt: "a path", temporal.Duration: "a duration", Point: "a point",
}  # fmt: skip


def type_name(value: Any) -> str:
    """Return the type of a term, in words."""
    return _TYPE_NAMES.get(type(value), f"a {type(value).__name__}")


def _check(function: str, term: Any, sort: type) -> None:
    """Raise `PlanError` if the argument of a function is not a term of a sort."""
    if type(term) is not sort:
        raise PlanError(f"{function}() is not defined for {type_name(term)}")


class GraphTerms:
    """Properties of entities and statements in a snapshot; its methods are functions of expressions.

    Every statement that a value is read from is added to `touched`, if given, for the evidence; memberships and
    subclass steps that labels are read from are then in `memberships` and `subclasses`, as pairs of numbers.
    """

    def __init__(self, snapshot: Snapshot, touched: set[int] | None = None) -> None:
        self._snapshot = snapshot
        self._touched = touched
        self.memberships: set[tuple[int, int]] = set()
        self.subclasses: set[tuple[int, int]] = set()
        #: The time in nanoseconds since 1970 that functions of the clock use.
        self.clock = time.time_ns()
        self._attributes: dict[str, Reading] = {}
        self._period: Period | None = None

    def at(self, period: Period | None) -> GraphTerms:
        """Return the same, restricted to attributes that hold in a period."""
        if period is self._period:
            return self
        result = copy(self)
        result._period = period
        return result

    def _outgoing(self, entity: int, low: int, high: int) -> Numbers:
        """Return the statements of an entity in a run."""
        statements: Numbers = self._snapshot.outgoing(entity, low, high)
        if self._period is not None and len(statements):
            statements = statements[holds_at(self._snapshot, self._period.relation, self._period.interval, statements)]
        return statements

    # -- values ------------------------------------------------------------------------------------

    def value(self, term: Any, key: str) -> Any:
        """Return the value of a key of a term (`Property`)."""
        if term is None:
            return None
        kind = type(term)
        if kind is EntityAt:
            return self._unpacked(self._attribute_values(term.number, self._attribute(key)))
        if kind is StatementAt:
            return self._unpacked(self._qualifier_values(term.number, key).get(key, []))
        if kind is dict:
            return term.get(key)
        try:
            return term.part(key) if kind is Point else temporal.component(term, key)
        except KeyError:
            raise PlanError(f"{type_name(term)} has no property {key!r}") from None

    def values(self, entities: Numbers, key: str) -> tuple[list[Any], NDArray[Any]]:
        """Return the distinct values of a key for many entities (-1 for none), and the index of each entity's value
        (-1: null). This is `value` on columns, without a period.
        """
        reading, snapshot = self._attribute(key), self._snapshot
        if len(entities) * 16 < reading.high - reading.low or reading.low == reading.high:
            results = [self.value(EntityAt(number) if number >= 0 else None, key) for number in watched(entities.tolist())]
            return results, np.arange(len(results))
        subjects = snapshot.attribute_subject[reading.low : reading.high]
        low = int(subjects.min())
        # The last attribute of each subject, and the subjects with several.
        last = np.full(int(subjects.max()) - low + 2, -1, np.int32)
        last[subjects - low] = np.arange(len(subjects), dtype=np.int32)
        multiple = different(subjects[last.take(subjects - low) != np.arange(len(subjects))])
        # Attributes are numbered by value, so that equal ones are adjacent.
        first = changed(*(snapshot.arrays.get(f"att.{part}")[reading.low : reading.high] for part, _ in PARTS))
        offsets = np.where((entities >= low) & (entities < low + len(last) - 1), entities - low, len(last) - 1)
        attributes = last.take(offsets)
        inverse = np.where(attributes >= 0, first.cumsum().take(attributes) - 1, -1)
        repeated = np.flatnonzero(np.isin(entities, multiple)) if len(multiple) else multiple
        inverse[repeated] = -1
        used = np.zeros(int(first.sum()) + 1, bool)
        used[inverse] = True
        used[-1] = False
        values = self._unwrapped_values(np.flatnonzero(first)[used[:-1]] + reading.low, reading)
        inverse = np.where(inverse >= 0, used.cumsum().take(inverse) - 1, -1)
        for place in repeated.tolist():
            inverse[place] = len(values)
            values.append(self.value(EntityAt(int(entities[place])), key))
        return values, inverse

    def _unwrapped_values(self, numbers: NDArray[Any], key: Reading) -> list[Any]:
        """Return the values of attributes as expressions use them."""
        get, snapshot = self._snapshot.arrays.get, self._snapshot
        kinds, refs, units = (get(f"att.{part}").take(numbers) for part in ("kind", "ref", "unit"))
        if not key.truths and (kinds == Kind.TEXT).all() and (units < 0).all():
            return list(snapshot.texts.take(refs))
        if (kinds == Kind.QUANTITY).all() and (refs < 0).all() and (units < 0).all():
            floats = get("att.a").take(numbers).view(np.float64) + 0.0
            if key.floats or (np.abs(floats) < 2.0**63).all():
                return list((floats if key.floats else floats.astype(np.int64)).tolist())
        return [self._unwrapped(value, key) for chunk in pieces(numbers, 1 << 16) for value in snapshot.values("att", chunk)]

    @staticmethod
    def _unpacked(values: list[Any]) -> Any:
        return None if not values else values[0] if len(values) == 1 else values

    def _attribute(self, key: str) -> Reading:
        reading = self._attributes.get(key)
        if reading is None:
            reading = self._attributes[key] = attribute_reading(self._snapshot, key)
        return reading

    def _attribute_values(self, entity: int, key: Reading) -> list[Any]:
        snapshot = self._snapshot
        if key.low == key.high:
            return []
        base = snapshot.relations
        statements = self._outgoing(entity, base + key.low, base + key.high)
        if not len(statements):
            return []
        numbers = statements.tolist()
        if self._touched is not None:
            self._touched.update(numbers)
        # Statements that differ in their qualifiers alone give one value.
        values = dict.fromkeys([snapshot.value("att", number - base) for number in numbers])
        return [value for item in values if (value := self._unwrapped(item, key)) is not None]

    def _unwrapped(self, value: Ref | Value, key: Reading) -> Any:
        """Return a value as expressions use it."""
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
        """Record the statement that determines how other values are read, which is evidence, too."""
        if self._touched is not None and statement >= 0:
            self._touched.add(statement)

    def _qualifier_values(self, statement: int, only: str | None = None) -> dict[str, list[Any]]:
        """Return the values of the qualifiers of a statement, by key."""
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
            value = self._unwrapped(snapshot.value("q", number), qualifier_reading(snapshot, name))
            if value is not None:
                result.setdefault(name, []).append(value)
        return result

    def properties(self, term: Any) -> dict[str, Any]:
        """Return all properties of a term as a map: attributes, or qualifiers."""
        kind = type(term)
        if kind is dict:
            return dict(term)
        if kind is StatementAt:
            return {key: self._unpacked(values) for key, values in self._qualifier_values(term.number).items()}
        if kind is not EntityAt:
            raise PlanError(f"properties() is not defined for {type_name(term)}")
        snapshot = self._snapshot
        statements = self._outgoing(term.number, snapshot.relations, snapshot.statements)
        names = map(snapshot.predicate_name, dict.fromkeys(snapshot.predicates(statements).tolist()))
        values = ((name, self._unpacked(self._attribute_values(term.number, self._attribute(name)))) for name in names)
        return {name: value for name, value in values if value is not None}

    def keys(self, term: Any) -> list[str]:
        """Return the keys of the properties of a term."""
        if type(term) is dict:
            return list(term)
        return list(self.properties(term))

    # -- labels ------------------------------------------------------------------------------------

    def has_concept(self, term: Any, names: tuple[str, ...]) -> bool | None:
        """Return whether a term is in one of the concepts (`HasConcept`)."""
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
        """Return the table that an entity is a row of, or None."""
        snapshot = self._snapshot
        owners = snapshot.arrays.get("ent.source")
        if not len(owners) or snapshot.entity_kind[entity] != EntityKind.ROW or owners[entity] < 0:
            return None
        return snapshot.schema.sources[int(owners[entity])]

    def labels(self, term: Any) -> list[str]:
        """Return the names of the concepts of an entity, including superclasses, and the table that it is a row of;
        sorted.
        """
        _check("labels", term, EntityAt)
        snapshot = self._snapshot
        members, concepts, parents = self._memberships
        low, high = np.searchsorted(members, [term.number, term.number + 1])
        queue: list[int] = concepts[low:high].tolist()
        result: set[int] = set()
        if self._touched is not None:
            self.memberships.update((term.number, concept) for concept in queue)
        while queue:
            concept = queue.pop()
            if concept not in result:
                result.add(concept)
                superclasses = parents.get(concept, [])
                queue.extend(superclasses)
                if self._touched is not None:
                    self.subclasses.update((concept, parent) for parent in superclasses)
        names = {snapshot.name(concept) for concept in result}
        if (table := self._table(term.number)) is not None:
            short = table.rpartition("/")[2]
            names.add(short if table_of(short, snapshot.schema.tables) == table else table)
        return sorted(names)

    @property
    def _memberships(self) -> tuple[Any, Any, dict[int, list[int]]]:
        """Members in order, the concept of each, and the superclasses of each concept."""
        cache = self._snapshot.schema.kept
        entry = cache.get("labels of entities")
        if entry is None:
            get = self._snapshot.arrays.get
            order = np.argsort(get("mem.e"), kind="stable")
            parents: dict[int, list[int]] = {}
            for child, parent in zip(get("sub.c").tolist(), get("sub.p").tolist(), strict=True):
                parents.setdefault(child, []).append(parent)
            entry = cache["labels of entities"] = get("mem.e")[order], get("mem.c")[order], parents
        result: tuple[Any, Any, dict[int, list[int]]] = entry
        return result

    # -- entities and statements -------------------------------------------------------------------

    def id(self, term: Any) -> int:
        """Return the number of an entity or statement, which is stable until the graph changes."""
        if type(term) in (EntityAt, StatementAt):
            return int(term.number)
        raise PlanError(f"id() is not defined for {type_name(term)}")

    def element_id(self, term: Any) -> str:
        """Return the id of an entity, or the number of a statement as a text."""
        if type(term) is EntityAt:
            return self._snapshot.ident(term.number)
        return str(self.id(term))

    def rdf_iri(self, term: Any) -> str:
        """Return the IRI of an entity or a value, relative to the base of the graph."""
        return encode(self._snapshot.ident(term.number)) if type(term) is EntityAt else rdf_terms.iri(term)

    def name(self, term: Any) -> str:
        if type(term) is not EntityAt:
            raise PlanError(f"{type_name(term)} has no name")
        return self._snapshot.name(term.number)

    def type(self, term: Any) -> str:
        """Return the predicate of a statement."""
        _check("type", term, StatementAt)
        return self._snapshot.predicate_name(self._snapshot.predicate_of(term.number))

    def start_node(self, term: Any) -> EntityAt:
        """Return the subject of a statement."""
        _check("startNode", term, StatementAt)
        return EntityAt(int(self._snapshot.relation_subject[term.number]))

    def end_node(self, term: Any) -> EntityAt:
        """Return the object of a statement."""
        _check("endNode", term, StatementAt)
        return EntityAt(int(self._snapshot.relation_object[term.number]))

    def _bounds(self, term: Any) -> Bounds | None:
        """Return when a statement holds, or the interval of a time."""
        if type(term) is StatementAt:
            if self._touched is not None:
                self._touched.add(term.number)
            _, qualifiers = self._snapshot.qualifiers(np.array([term.number], np.int32))
            keys = self._snapshot.arrays.get("q.key")
            stated = [
                (self._snapshot.predicate_name(int(keys[number])), self._snapshot.value("q", number))
                for number in qualifiers.tolist()
            ]
            return Bounds.stated(stated)
        time = temporal.interval(term)
        if time is None:
            raise PlanError(f"{type_name(term)} has no time", hint="allen() and days.least() take relationships and times")
        return Bounds.of(time)

    def allen_possible(self, one: Any, other: Any) -> list[str] | None:
        """Return the possible temporal relations of two statements or times (`engine.allen`); null if one has no
        time.
        """
        first, second = self._bounds(one), self._bounds(other)
        return None if first is None or second is None else list(first.relations(second))

    def allen(self, one: Any, other: Any) -> str | None:
        """Return the temporal relation of two statements or times; null if several are possible."""
        possible = self.allen_possible(one, other)
        return possible[0] if possible is not None and len(possible) == 1 else None

    def allen_together(self, one: Any, other: Any) -> bool | None:
        """Return whether two statements or times have a moment in common; null if unknown."""
        first, second = self._bounds(one), self._bounds(other)
        return None if first is None or second is None else first.together(second)

    def days_least(self, term: Any) -> float | None:
        """Return the minimum duration of a statement or time in days; null if it has no time."""
        bounds = self._bounds(term)
        return None if bounds is None else bounds.shortest()

    def days_most(self, term: Any) -> float | None:
        """Return the maximum duration of a statement or time in days; null if an end is unknown."""
        bounds = self._bounds(term)
        return None if bounds is None else bounds.longest()

    def path(self, *parts: Any) -> PathAt | None:
        """Return a path made of an entity, then alternately a statement (or a list of them) and an entity; null if
        one of them is.
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
        """Return the entities of a path."""
        _check("nodes", term, PathAt)
        return [EntityAt(number) for number in term.entities]

    @staticmethod
    def relationships(term: Any) -> list[StatementAt]:
        """Return the statements of a path."""
        _check("relationships", term, PathAt)
        return [StatementAt(number) for number in term.statements]
