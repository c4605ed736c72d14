"""What the readers of RDF know of a node: as an object, and its best label so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyoxigraph


@dataclass(frozen=True, slots=True)
class Object:
    """An object: the id of a node, or a literal."""

    id: str
    literal: pyoxigraph.Literal | None = None


@dataclass(slots=True)
class Label:
    """The best label of a node so far; lower ranks are better."""

    rank: tuple[int, int]
    text: str
    predicate: str
    language: str | None

    @property
    def form(self) -> tuple[str, str | None]:
        """Its predicate and its language."""
        return self.predicate, self.language

    def is_from(self, predicate: str, other: Object) -> bool:
        """Whether a triple with this predicate and object is the one that gave the label."""
        literal = other.literal
        return (
            literal is not None and predicate == self.predicate and literal.value == self.text and literal.language == self.language
        )
