"""Statements around an entity, as chains read them: from a snapshot in process, or from a graph on a server.

Entities and statements are numbers of the place. Nothing is read before a chain reaches it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.chains.text import entity_text, qualified, value_text
from condgraph.engine.errors import UnknownNameError, nearest
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute.validity import cut
from condgraph.engine.facts import Entity, Ref
from condgraph.engine.period import Period
from condgraph.engine.records import Evidence
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

# -- in process --------------------------------------------------------------------------------------
# Entities and statements are numbers of the place. Nothing is read before a chain reaches it.


Numbers = NDArray[np.int64]


class ChainGraph(Protocol):
    """The part of a graph that a chain reads."""

    #: Whether values and qualifiers are read.
    values: bool
    qualifiers: bool
    #: Warnings about what was left out.
    warnings: list[str]

    def find(self, name: str, *, by_id: bool = False) -> list[int]:
        """Return the entities with this name, else (or `by_id`) with this id; raises `UnknownNameError`."""

    def present(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Return those of the names that entities have, with the entities."""

    def entity(self, number: int) -> Entity:
        """Return an entity as a record."""

    def head(self, number: int) -> str:
        """Return the text of an entity."""

    def reach(self, numbers: Iterable[int]) -> None:
        """Read the statements around entities, all at once."""

    def outgoing(self, number: int) -> Numbers:
        """Return the statements of an entity, sorted."""

    def incoming(self, number: int) -> Numbers:
        """Return the statements whose object an entity is, sorted."""

    def subjects(self, statements: Numbers) -> Numbers:
        """Return the subject of each statement."""

    def relations(self, statements: Numbers) -> Numbers:
        """Return the number of the predicate of each statement (sorted)."""

    def relation(self, number: int) -> str:
        """Return the name of a predicate."""

    def bare(self, statements: Numbers) -> Numbers:
        """Return the object of each statement that is a relation without qualifiers; -1 for others."""

    def tail(self, statement: int) -> str:
        """Return the text after the second arrow: the object, and the qualifiers."""

    def ends(self, statement: int) -> tuple[int, int]:
        """Return subject and object; -1 for a value."""

    def same(self, statement: int) -> Hashable:
        """Return a key of subject, predicate and object, equal for statements that differ only in qualifiers."""

    def evidence(self, statement: int) -> Evidence:
        """Return a statement with its sources."""


class LocalPlace:
    """A snapshot; statements have its numbers: relations, then attributes."""

    def __init__(self, snapshot: Snapshot, *, values: bool = True, qualifiers: bool = True) -> None:
        self.snapshot, self.values, self.qualifiers = snapshot, values, qualifiers
        self.warnings: list[str] = []
        self._limit = snapshot.statements if values else snapshot.relations
        offsets = snapshot.arrays.get("q.offsets")
        self._qualified = offsets if len(offsets) and qualifiers else None

    def find(self, name: str, *, by_id: bool = False) -> list[int]:
        """Return the entities with this name, else (or `by_id`) with this id; raises `UnknownNameError`."""
        result = [] if by_id else self.snapshot.named(name).tolist()
        if not result and (number := self.snapshot.identified(name)) >= 0:
            result = [number]
        if not result:
            from condgraph.names.linking import Linker
            from condgraph.names.vocabulary import resolve

            near = resolve(name, Linker.of(self.snapshot.schema).entities, threshold=2.0).near
            raise UnknownNameError("entity", name, candidates=[item.name for item in near])
        return list(result)

    def present(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Return those of the names that entities have, by the folded form if none has them exactly."""
        from condgraph.names.linking import Linker

        vocabulary = Linker.of(self.snapshot.schema).entities
        result: dict[str, list[int]] = {}
        for name in names:
            numbers = self.snapshot.named(name).tolist()
            for position in () if numbers else vocabulary.folded(name):
                numbers += self.snapshot.named(vocabulary.names[position]).tolist()
            if numbers:
                result[name] = list(dict.fromkeys(numbers))
        return result

    def entity(self, number: int) -> Entity:
        """Return an entity as a record."""
        return self.snapshot.entity(number)

    def head(self, number: int) -> str:
        """Return the text of an entity."""
        snapshot = self.snapshot
        return entity_text(snapshot.name(number), snapshot.ident(number), self.alone(number))

    def alone(self, number: int) -> bool:
        """Tell whether no other entity has its name; entities are numbered by name."""
        names = self.snapshot._name_view
        before = number > 0 and names[number - 1] == names[number]
        return not before and not (number + 1 < len(names) and names[number + 1] == names[number])

    def reach(self, numbers: Iterable[int]) -> None:
        """Do nothing: everything is in memory."""

    def outgoing(self, number: int) -> Numbers:
        """Return the statements of an entity, sorted."""
        return self.snapshot.outgoing(number, 0, self._limit).astype(np.int64)

    def incoming(self, number: int) -> Numbers:
        """Return the statements whose object an entity is, sorted."""
        return self.snapshot.incoming(number, 0, self.snapshot.relations).astype(np.int64)

    def subjects(self, statements: Numbers) -> Numbers:
        """Return the subject of each statement (sorted)."""
        return self.snapshot.subjects(statements.astype(np.int32)).astype(np.int64)

    def relations(self, statements: Numbers) -> Numbers:
        """Return the predicate of each statement (sorted)."""
        return self.snapshot.predicates(statements.astype(np.int32)).astype(np.int64)

    def relation(self, number: int) -> str:
        """Return the name of a predicate."""
        return self.snapshot.predicate_name(number)

    def bare(self, statements: Numbers) -> Numbers:
        """Return the object of each statement that is a relation without qualifiers; -1 for others."""
        result = np.full(len(statements), -1, np.int64)
        mask = statements < self.snapshot.relations
        if self._qualified is not None:
            mask &= self._qualified.take(statements) == self._qualified[1:].take(statements)
        result[mask] = self.snapshot.relation_object.take(statements[mask])
        return result

    def tail(self, statement: int) -> str:
        """Return the text of the object, and the qualifiers."""
        snapshot = self.snapshot
        tail = self._text(self._object(statement))
        if self._qualified is None or self._qualified[statement] == self._qualified[statement + 1]:
            return tail
        keys, indices = snapshot.arrays.get("q.key"), range(int(self._qualified[statement]), int(self._qualified[statement + 1]))
        return qualified(
            tail, [(snapshot.predicate_name(int(keys[index])), self._text(snapshot.value("q", index))) for index in indices]
        )

    def _object(self, statement: int) -> Ref | Value | int:
        if statement < self.snapshot.relations:
            return int(self.snapshot.relation_object[statement])
        return self.snapshot.value("att", statement - self.snapshot.relations)

    def _text(self, value: Ref | Value | int) -> str:
        if isinstance(value, int):
            return self.head(value)
        return self.head(self.snapshot.identified(value.id)) if isinstance(value, Ref) else value_text(value)

    def ends(self, statement: int) -> tuple[int, int]:
        """Return subject and object; -1 for a value."""
        snapshot = self.snapshot
        if statement < snapshot.relations:
            return int(snapshot.relation_subject[statement]), int(snapshot.relation_object[statement])
        return int(snapshot.attribute_subject[statement - snapshot.relations]), -1

    def same(self, statement: int) -> Hashable:
        """Return a key of subject, predicate and object."""
        value: Any = self._object(statement)
        return self.ends(statement)[0], self.snapshot.predicate_of(statement), type(value).__name__, value

    def evidence(self, statement: int) -> Evidence:
        """Return a statement with its sources."""
        result: Evidence = EvidenceList.of(self.snapshot, [statement], [])[0]
        return result


# -- on servers --------------------------------------------------------------------------------------
# One query fetches the statements around the entities that a triple reached.


#: Most statements read around one entity, in each direction.
MAX_FETCHED: Final = 10_000
_NONE: Final = np.empty(0, np.int64)


class AroundStore(Protocol):
    """A store that returns the statements around entities."""

    def around(self, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool) -> Snapshot:
        """Return entities by id or name, and the statements with one of them at an end, by one query.

        Statements have qualifiers and sources; there are at most `most` in each direction. For an entity that shares
        its name, one other entity with this name is included, if there are fewer than `most`.
        """
        ...


class StorePlace:
    """A graph on a server. One query fetches the statements around entities when a chain reaches them; they are cached.

    Entities and statements are numbered in order of arrival.
    """

    def __init__(
        self,
        store: AroundStore,
        period: Period | None = None,
        *,
        values: bool = True,
        qualifiers: bool = True,
        most: int = MAX_FETCHED,
    ) -> None:
        """With a `period`, only statements that hold in it are read."""
        self._period = period
        self._store, self.values, self.qualifiers, self._most = store, values, qualifiers, most
        self.warnings: list[str] = []
        #: Number of queries sent.
        self.queries = 0
        self._entities: list[Entity] = []
        self._by_id: dict[str, int] = {}
        #: Whether others share an entity's name, by id; decided once, so that its text stays the same.
        self._shared: dict[str, bool] = {}
        self._facts: list[Evidence] = []
        self._ends: list[tuple[int, int]] = []
        self._kinds: list[int] = []
        self._names: list[str] = []
        self._by_name: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._edges: dict[int, tuple[Numbers, Numbers]] = {}

    def find(self, name: str, *, by_id: bool = False) -> list[int]:
        """Return the entities with this name, else with this id, and read the statements around them;

        raises `UnknownNameError`.
        """
        fetched = self._fetch((name,), () if by_id else (name,))
        result = fetched if by_id else [number for number in fetched if self._entities[number].name == name] or fetched
        if not result:
            known_names = [entity.name for entity in self._entities]
            raise UnknownNameError("entity", name, candidates=nearest(name, known_names))
        return result

    def present(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Return those of the names that entities have exactly."""
        result: dict[str, list[int]] = {}
        for number in self._fetch((), list(names)) if names else ():
            result.setdefault(self._entities[number].name, []).append(number)
        return result

    def entity(self, number: int) -> Entity:
        """Return an entity as a record."""
        return self._entities[number]

    def head(self, number: int) -> str:
        """Return the text of an entity."""
        return self._entity_text(self._entities[number])

    def _entity_text(self, entity: Entity) -> str:
        return entity_text(entity.name, entity.id, not self._shared.get(entity.id, True))

    def reach(self, numbers: Iterable[int]) -> None:
        """Fetch the statements around entities, by one query for all that are not cached."""
        fresh = [self._entities[number].id for number in numbers if number not in self._edges]
        if fresh:
            self._fetch(fresh, ())

    def _fetch(self, ids: Sequence[str], names: Sequence[str]) -> list[int]:
        self.queries += 1
        whole = self._store.around(ids, names, self._most, values=self.values)
        # A part of the snapshot with the same entity numbers.
        part = whole if self._period is None else cut(whole, self._period)
        wanted = [number for ident in ids if (number := whole.identified(ident)) >= 0]
        for name in names:
            wanted += whole.named(name).tolist()
        ends: dict[int, tuple[list[int], list[int]]] = {self._number(part.entity(item)): ([], []) for item in wanted}
        numbers = range(part.statements if self.values else part.relations)
        for fact in EvidenceList.of(part, list(numbers), []):
            number = self._statement(fact)
            subject, tail = self._ends[number]
            if subject in ends:
                ends[subject][0].append(number)
            if tail in ends:
                ends[tail][1].append(number)
        for node, (out, into) in ends.items():
            self._edges[node] = np.unique(np.array(out, np.int64)), np.unique(np.array(into, np.int64))
        # The limit applies to all entities of a query together, and to each kind of statement, including
        # those outside the period.
        last = whole.statements if self.values else whole.relations
        sizes = [
            (
                len(whole.outgoing(number, 0, whole.relations)),
                len(whole.outgoing(number, whole.relations, last)),
                len(whole.incoming(number, 0, whole.relations)),
            )
            for number in dict.fromkeys(wanted)
        ]
        bounded = any(sum(kind) >= self._most for kind in zip(*sizes, strict=True))
        # Beyond the limit, no other entities with the name were looked for; within it, ends and
        # qualifiers together may exceed the limit.
        may_share = bounded or part.entities >= self._most
        for member in map(part.entity, range(part.entities)):
            self._shared.setdefault(member.id, may_share or len(part.named(member.name)) > 1)
        if bounded:
            several = ", ".join(repr(self._entities[node].name) for node in ends)
            self.warnings.append(f"only the first {self._most} statements around {several} are read")
        return list(ends)

    def _number(self, entity: Entity) -> int:
        result = self._by_id.get(entity.id)
        if result is None:
            result = self._by_id[entity.id] = len(self._entities)
            self._entities.append(entity)
        return result

    def _statement(self, fact: Evidence) -> int:
        key = f"{fact.subject.id}\x00{fact.predicate}\x00{fact.object!r}\x00{fact.qualifiers!r}"
        result = self._numbers.get(key)
        if result is None:
            result = self._numbers[key] = len(self._facts)
            self._facts.append(fact)
            tail = self._number(fact.object) if isinstance(fact.object, Entity) else -1
            self._ends.append((self._number(fact.subject), tail))
            if fact.predicate not in self._by_name:
                self._by_name[fact.predicate] = len(self._names)
                self._names.append(fact.predicate)
            self._kinds.append(self._by_name[fact.predicate])
        return result

    def outgoing(self, number: int) -> Numbers:
        """Return the statements of an entity, sorted."""
        self.reach((number,))
        return self._edges[number][0] if number in self._edges else _NONE

    def incoming(self, number: int) -> Numbers:
        """Return the statements whose object an entity is, sorted."""
        self.reach((number,))
        return self._edges[number][1] if number in self._edges else _NONE

    def subjects(self, statements: Numbers) -> Numbers:
        """Return the subject of each statement."""
        return np.array([self._ends[item][0] for item in statements.tolist()], np.int64)

    def relations(self, statements: Numbers) -> Numbers:
        """Return the predicate of each statement."""
        return np.array([self._kinds[item] for item in statements.tolist()], np.int64)

    def relation(self, number: int) -> str:
        """Return the name of a predicate."""
        return self._names[number]

    def bare(self, statements: Numbers) -> Numbers:
        """Return the object of each statement that is a relation without qualifiers; -1 for others."""
        plain = (-1 if self.qualifiers and self._facts[item].qualifiers else self._ends[item][1] for item in statements.tolist())
        return np.fromiter(plain, np.int64, len(statements))

    def tail(self, statement: int) -> str:
        """Return the text of the object, and the qualifiers."""
        fact = self._facts[statement]
        text = self._text(fact.object)
        if not self.qualifiers or not fact.qualifiers:
            return text
        return qualified(text, [(key, self._text(value)) for key, value in fact.qualifiers])

    def _text(self, value: Entity | Value) -> str:
        return self._entity_text(value) if isinstance(value, Entity) else value_text(value)

    def ends(self, statement: int) -> tuple[int, int]:
        """Return subject and object; -1 for a value."""
        return self._ends[statement]

    def same(self, statement: int) -> Hashable:
        """Return a key of subject, predicate and object."""
        fact = self._facts[statement]
        return fact.subject.id, fact.predicate, repr(fact.object)

    def evidence(self, statement: int) -> Evidence:
        """Return a statement with its sources."""
        return self._facts[statement]
