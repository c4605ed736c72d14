"""Claims: triples as in a pattern, each of which may be denied.

`("Nepal", "capital", "Kathmandu")` claims a statement, `("Nepal", "NOT capital", "Pokhara")` denies
one; `UNKNOWN person 1` is anybody. An unknown node that stands in one denied triple alone is denied
as a whole: `("Ann", "NOT spouse", "UNKNOWN 1")` says that Ann has no spouse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from condgraph.engine.errors import PlanError
from condgraph.languages.pattern.pattern import Pattern, PatternNode

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.overview.schema import GraphSchema
    from condgraph.overview.survey import Survey
    from condgraph.patterns.matches import Matches

#: The most triples of a claim; those of people have up to five.
MOST_TRIPLES: Final = 16
#: What a denied relation begins with.
NOT: Final = "NOT"
_NOT: Final = re.compile(r"NOT\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class ClaimTriple:
    """A triple of a claim, with the numbers of its nodes. `relation` is None where it may be any;
    `denied` says that the claim says it is not so.
    """

    head: int
    relation: str | None
    tail: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim: its nodes in the order of their first mention, and its triples."""

    nodes: tuple[PatternNode, ...]
    triples: tuple[ClaimTriple, ...]
    #: The words it was read from; empty where it was given as triples.
    text: str = ""

    @classmethod
    def of(cls, given: Any, text: str = "") -> Claim:
        """Read a claim in any form that a pattern has; a triple as an object may have `"negated":
        true`, in any form the relation may begin with `NOT`.

        Raises `ParseError` (with a place) or `PlanError`.
        """
        if isinstance(given, Claim):
            return given
        pattern = Pattern.of(_marked(given))
        if len(pattern.edges) > MOST_TRIPLES:
            raise PlanError(f"a claim has at most {MOST_TRIPLES} triples, not {len(pattern.edges)}")
        triples = []
        for edge in pattern.edges:
            relation, denied = _NOT.subn("", edge.relation, count=1) if _NOT.match(edge.relation) else (edge.relation, 0)
            known = re.match(r"UNKNOWN\b", relation) is None
            triples.append(ClaimTriple(edge.head, relation if known else None, edge.tail, bool(denied)))
        return cls(pattern.nodes, tuple(triples), text)

    def shown(self, triple: ClaimTriple) -> str:
        """A triple as text."""
        relation = triple.relation or "any relation"
        return " | ".join(
            (self.nodes[triple.head].text, ("NOT " if triple.denied else "") + relation, self.nodes[triple.tail].text)
        )

    def data(self) -> list[dict[str, Any]]:
        """The triples for JSON, in a form that `of` reads."""
        return [
            {
                "head": self.nodes[one.head].text,
                "relation": one.relation or "UNKNOWN relation",
                "tail": self.nodes[one.tail].text,
                "negated": one.denied,
            }
            for one in self.triples
        ]

    def __str__(self) -> str:
        return "; ".join(map(self.shown, self.triples))


def _marked(given: Any) -> Any:
    """Objects that are `negated`, with the mark in their relation."""
    triples = given.get("triples") if isinstance(given, Mapping) else given
    if isinstance(triples, str | Pattern) or not isinstance(triples, Iterable):
        return given
    return [_one(triple) if isinstance(triple, Mapping) else triple for triple in triples]


def _one(triple: Mapping[str, Any]) -> Mapping[str, Any]:
    negated = triple.get("negated", False)
    if not isinstance(negated, bool):
        raise PlanError(f"negated is true or false, not {negated!r}")
    for key in ("relation", "predicate", "r"):
        if negated and isinstance(triple.get(key), str):
            return {**triple, key: f"{NOT} {triple[key]}"}
    return triple


class Asking(Protocol):
    """A graph as verification sees it: `condgraph.Graph`."""

    timeout: float | None

    def kopl(self, program: Any) -> Answer:
        """`Graph.kopl`."""

    def match(self, pattern: Any, *, k: int | None = 3) -> Matches:
        """`Graph.match`."""

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """`Graph.counted`."""

    def schema(self) -> GraphSchema:
        """`Graph.schema`."""

    def _survey(self) -> Survey: ...
