"""Statements of a snapshot as records, for evidence and the rows of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import pieces
from condgraph.engine.facts import Entity, Ref, Source, shown
from condgraph.engine.snapshot import readback
from condgraph.engine.values import Value

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


def place_text(source: Source, row: int) -> str:
    """Return the source and row of a statement as text."""
    return (f"{source.store}: " if source.store else "") + source.name + (f", row {row}" if row else "")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A statement that an answer rests on, with every `(source, row)` it appears in.

    `kind` distinguishes statements from memberships (predicate "instance of") and steps from a concept to a
    superclass ("subclass of"). `raw` is the text in the source, if the object is printed differently.
    """

    subject: Entity
    predicate: str
    object: Entity | Value
    qualifiers: tuple[tuple[str, Entity | Value], ...]
    sources: tuple[tuple[Source, int], ...]
    kind: Literal["statement", "membership", "subclass"] = "statement"
    raw: str | None = None

    def __str__(self) -> str:
        text = f"{self.subject.name} | {self.predicate} | {shown(self.object)}"
        if self.qualifiers:
            text += " (" + ", ".join(f"{key}: {shown(value)}" for key, value in self.qualifiers) + ")"
        return text + "  [" + "; ".join(place_text(source, row) for source, row in self.sources) + "]"


@dataclass(frozen=True, slots=True)
class PathTerm:
    """A path in a row: its entities in order, and the statements between them; a single entity if it has no
    statement. A statement may have been followed from its object to its subject.
    """

    entities: tuple[Entity, ...]
    statements: tuple[Evidence, ...]

    def __str__(self) -> str:
        return " - ".join(entity.name for entity in self.entities)


#: A term of a row in answers; None if unbound. A statement is its record of evidence, a list a tuple, a map a dictionary.
Term: TypeAlias = "Entity | Value | Evidence | PathTerm | bool | int | float | tuple[Term | None, ...] | dict[str, Term | None]"


def record_of(snapshot: Snapshot, number: int) -> Evidence:
    """Return a statement by its number."""
    return records_of(snapshot, np.array([number], np.int32))[0]


def records_of(snapshot: Snapshot, numbers: NDArray[np.int32]) -> list[Evidence]:
    """Return statements by their sorted numbers."""

    def entity(ident: str) -> Entity:
        return snapshot.entity(snapshot.identified(ident))

    def resolved(value: Ref | Value) -> Entity | Value:
        return entity(value.id) if isinstance(value, Ref) else value

    return [
        Evidence(
            entity(statement.subject),
            statement.predicate,
            resolved(statement.object),
            tuple((key, resolved(value)) for key, value in statement.qualifiers),
            tuple((snapshot.source_of(source), row) for source, row in places),
            raw=statement.raw,
        )
        for piece in pieces(numbers, 512)
        for statement, places in readback.statements(snapshot, piece)
    ]


def statement_text(record: Evidence) -> str:
    """Return a statement without its sources."""
    return str(record).rpartition("  [")[0]
