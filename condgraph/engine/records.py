"""Statements of a snapshot as records: what evidence, and the rows of an answer, have of them."""

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
    """Where something stands, as text."""
    return (f"{source.store}: " if source.store else "") + source.name + (f", row {row}" if row else "")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A statement an answer rests on, with every `(source, row)` it stands in.

    `kind` tells statements from memberships (predicate "instance of") and steps from a concept to
    one above it ("subclass of"). `raw` is the text as it stood in the source, where the object
    prints in another way.
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
    """A path that a row binds: its entities in order, and the statement between each two of them; one
    entity alone where it has no statement. A statement may have been followed from its object to its
    subject.
    """

    entities: tuple[Entity, ...]
    statements: tuple[Evidence, ...]

    def __str__(self) -> str:
        return " - ".join(entity.name for entity in self.entities)


#: What a row binds a variable to, as answers and expressions see it; None where it is unbound. A statement is the record
#: that evidence has of it, a list a tuple, a map a dictionary.
Term: TypeAlias = "Entity | Value | Evidence | PathTerm | bool | int | float | tuple[Term | None, ...] | dict[str, Term | None]"


def record_of(snapshot: Snapshot, number: int) -> Evidence:
    """A statement by its number."""
    return records_of(snapshot, np.array([number], np.int32))[0]


def records_of(snapshot: Snapshot, numbers: NDArray[np.int32]) -> list[Evidence]:
    """Statements by their numbers, which are sorted."""

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
    """A statement without its sources."""
    return str(record).rpartition("  [")[0]
