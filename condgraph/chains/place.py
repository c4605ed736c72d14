"""Statements around an entity, as chains read them: what they ask of a graph, and a snapshot in
process. `stored_place` is a graph on a server.

Entities and statements are numbers of the place. Nothing is read before a chain reaches it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.chains.text import entity_text, qualified, value_text
from condgraph.engine.errors import UnknownNameError
from condgraph.engine.evidence import Evidence, EvidenceList
from condgraph.engine.facts import Entity, Ref
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Value

Numbers = NDArray[np.int64]


class Place(Protocol):
    """What a chain asks of a graph."""

    #: Whether values and qualifiers are read at all.
    values: bool
    qualifiers: bool
    #: What was left out, in words.
    warnings: list[str]

    def find(self, name: str, *, by_id: bool = False) -> list[int]:
        """The entities of this name, else (or `by_id`) of this id; raises `UnknownNameError`."""

    def present(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Of some names those that entities have, with these."""

    def entity(self, number: int) -> Entity:
        """An entity as a record."""

    def head(self, number: int) -> str:
        """An entity as it is written."""

    def reach(self, numbers: Iterable[int]) -> None:
        """Read what stands around entities, together."""

    def outgoing(self, number: int) -> Numbers:
        """The statements of an entity, sorted."""

    def incoming(self, number: int) -> Numbers:
        """The statements whose object an entity is, sorted."""

    def subjects(self, statements: Numbers) -> Numbers:
        """The subject of each statement."""

    def relations(self, statements: Numbers) -> Numbers:
        """The predicate of each sorted statement, by number."""

    def relation(self, number: int) -> str:
        """The name of a predicate."""

    def bare(self, statements: Numbers) -> Numbers:
        """The object of each statement that is written as the entity that it is; -1 for others."""

    def tail(self, statement: int) -> str:
        """What is written behind the second arrow: the object, and the qualifiers."""

    def ends(self, statement: int) -> tuple[int, int]:
        """Subject and object; -1 for a value."""

    def same(self, statement: int) -> Hashable:
        """Subject, predicate and object: equal for statements that differ in qualifiers alone."""

    def evidence(self, statement: int) -> Evidence:
        """A statement with its sources."""


class LocalPlace:
    """A snapshot. Statements have its numbers: relations, then attributes."""

    def __init__(self, snapshot: Snapshot, *, values: bool = True, qualifiers: bool = True) -> None:
        self.snapshot, self.values, self.qualifiers = snapshot, values, qualifiers
        self.warnings: list[str] = []
        self._last = snapshot.statements if values else snapshot.relations
        offsets = snapshot.arrays.get("q.offsets")
        self._qualified = offsets if len(offsets) and qualifiers else None

    def find(self, name: str, *, by_id: bool = False) -> list[int]:
        """The entities of this name, else (or `by_id`) of this id; raises `UnknownNameError`."""
        found = [] if by_id else self.snapshot.named(name).tolist()
        if not found and (number := self.snapshot.identified(name)) >= 0:
            found = [number]
        if not found:
            from condgraph.names.linking import Linker
            from condgraph.names.vocabulary import resolve

            near = resolve(name, Linker.of(self.snapshot.schema).entities, threshold=2.0).near
            raise UnknownNameError("entity", name, candidates=[one.name for one in near])
        return list(found)

    def present(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Of some names those that entities have, by the folded form where none has them exactly."""
        from condgraph.names.linking import Linker

        vocabulary = Linker.of(self.snapshot.schema).entities
        found: dict[str, list[int]] = {}
        for name in names:
            numbers = self.snapshot.named(name).tolist()
            for at in () if numbers else vocabulary.folded(name):
                numbers += self.snapshot.named(vocabulary.names[at]).tolist()
            if numbers:
                found[name] = list(dict.fromkeys(numbers))
        return found

    def entity(self, number: int) -> Entity:
        """An entity as a record."""
        return self.snapshot.entity(number)

    def head(self, number: int) -> str:
        """An entity as it is written."""
        snapshot = self.snapshot
        return entity_text(snapshot.name(number), snapshot.ident(number), self.alone(number))

    def alone(self, number: int) -> bool:
        """Whether no other entity has its name; entities are numbered by name."""
        names = self.snapshot._name_view
        before = number > 0 and names[number - 1] == names[number]
        return not before and not (number + 1 < len(names) and names[number + 1] == names[number])

    def reach(self, numbers: Iterable[int]) -> None:
        """Everything is here."""

    def outgoing(self, number: int) -> Numbers:
        """The statements of an entity, sorted."""
        return self.snapshot.outgoing(number, 0, self._last).astype(np.int64)

    def incoming(self, number: int) -> Numbers:
        """The statements whose object an entity is, sorted."""
        return self.snapshot.incoming(number, 0, self.snapshot.relations).astype(np.int64)

    def subjects(self, statements: Numbers) -> Numbers:
        """The subject of each sorted statement."""
        return self.snapshot.subjects(statements.astype(np.int32)).astype(np.int64)

    def relations(self, statements: Numbers) -> Numbers:
        """The predicate of each sorted statement."""
        return self.snapshot.predicates(statements.astype(np.int32)).astype(np.int64)

    def relation(self, number: int) -> str:
        """The name of a predicate."""
        return self.snapshot.predicate_name(number)

    def bare(self, statements: Numbers) -> Numbers:
        """The object of each statement that is a relation without qualifiers; -1 for others."""
        found = np.full(len(statements), -1, np.int64)
        mask = statements < self.snapshot.relations
        if self._qualified is not None:
            mask &= self._qualified.take(statements) == self._qualified[1:].take(statements)
        found[mask] = self.snapshot.relation_object.take(statements[mask])
        return found

    def tail(self, statement: int) -> str:
        """The object, and the qualifiers."""
        snapshot = self.snapshot
        tail = self._text(self._object(statement))
        if self._qualified is None or self._qualified[statement] == self._qualified[statement + 1]:
            return tail
        keys, found = snapshot.arrays.get("q.key"), range(int(self._qualified[statement]), int(self._qualified[statement + 1]))
        return qualified(tail, [(snapshot.predicate_name(int(keys[at])), self._text(snapshot.value("q", at))) for at in found])

    def _object(self, statement: int) -> Ref | Value | int:
        if statement < self.snapshot.relations:
            return int(self.snapshot.relation_object[statement])
        return self.snapshot.value("att", statement - self.snapshot.relations)

    def _text(self, thing: Ref | Value | int) -> str:
        if isinstance(thing, int):
            return self.head(thing)
        return self.head(self.snapshot.identified(thing.id)) if isinstance(thing, Ref) else value_text(thing)

    def ends(self, statement: int) -> tuple[int, int]:
        """Subject and object; -1 for a value."""
        snapshot = self.snapshot
        if statement < snapshot.relations:
            return int(snapshot.relation_subject[statement]), int(snapshot.relation_object[statement])
        return int(snapshot.attribute_subject[statement - snapshot.relations]), -1

    def same(self, statement: int) -> Hashable:
        """Subject, predicate and object."""
        thing: Any = self._object(statement)
        return self.ends(statement)[0], self.snapshot.predicate_of(statement), type(thing).__name__, thing

    def evidence(self, statement: int) -> Evidence:
        """A statement with its sources."""
        found: Evidence = EvidenceList.of(self.snapshot, [statement], [])[0]
        return found
