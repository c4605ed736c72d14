"""What the tools of agents give, as records that are JSON throughout.

Lists are cut at the limit that was asked for, texts at `LONGEST`; what was left out is counted or
marked, never dropped silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.errors import CondgraphError, UnknownNameError, shortened
from condgraph.engine.facts import Entity
from condgraph.engine.values import text_of

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.evidence import Evidence

#: Characters of a text in a record.
LONGEST: Final = 2_000


@dataclass(frozen=True)
class Fact:
    """A statement of the graph: `text` as a line, its parts, and the sources (with rows) it stands in."""

    text: str
    subject: str
    predicate: str
    object: str
    qualifiers: dict[str, str]
    sources: list[str]

    @classmethod
    def of(cls, one: Evidence) -> Fact:
        """A piece of evidence."""
        return cls(
            shortened(str(one), LONGEST), named(one.subject), one.predicate, named(one.object),
            {key: named(value) for key, value in one.qualifiers},
            [place.name + (f", row {row}" if row else "") for place, row in one.sources],
        )  # fmt: skip


@dataclass(frozen=True)
class Answered:
    """The answer to a program: `answers` with their types (entities have ids, quantities numbers and
    units, times bounds; of a table one record a row, its cells by their columns), the distinct
    `texts`, how many answers there are in all, the warnings, and how many statements the answer rests
    on. `facts` are the first of them.
    """

    program: str
    language: str
    texts: list[str]
    answers: list[dict[str, Any]]
    total: int
    warnings: list[str]
    facts: list[Fact] = field(default_factory=list)
    facts_total: int = 0


@dataclass(frozen=True)
class Evidenced:
    """The statements that an answer rests on, from `offset` on, and `searched`: what was looked
    through, where the answer rests on there being no more.
    """

    program: str
    texts: list[str]
    facts: list[Fact]
    offset: int
    total: int
    searched: list[str]


@dataclass(frozen=True)
class Named:
    """What a name is in the graph: its `entities`, whether it is a relation, an attribute, a
    qualifier or a concept, the predicates that its entities have and that lead to them, and the
    nearest names where it is none.
    """

    name: str
    entities: list[dict[str, str]]
    is_a: list[str]
    attributes: list[str]
    relations_from: list[str]
    relations_to: list[str]
    nearest: list[str]
    total: int


@dataclass(frozen=True)
class Subgraph:
    """A subgraph that is near to a pattern: how far, what the unknowns stand for, and its triples."""

    distance: float
    nodes: dict[str, str]
    triples: list[list[str]]


@dataclass(frozen=True)
class Matched:
    """The subgraphs nearest to a pattern."""

    pattern: str
    subgraphs: list[Subgraph]
    total: int
    exact: bool
    warnings: list[str]


@dataclass(frozen=True)
class Described:
    """What can be asked about: the schema as text, and the counts of the graph."""

    text: str
    counts: dict[str, int]


def named(value: Any) -> str:
    """A value of a statement as a text; of an entity its name."""
    return shortened(value.name if isinstance(value, Entity) else text_of(value), LONGEST)


def answered(answer: Answer, limit: int, facts: int) -> Answered:
    """An answer that was asked with a limit, as a record with at most so many facts."""
    evidence: Sequence[Any] = answer.evidence if facts else ()
    return Answered(
        shortened(answer.program, LONGEST), answer.language, [shortened(text, LONGEST) for text in answer.texts[:limit]],
        [_short(one, limit) for one in answer.data()[:limit]], len(answer.values) + answer.cut, list(answer.warnings),
        [Fact.of(one) for one in evidence[:facts]], len(evidence),
    )  # fmt: skip


def _short(record: dict[str, Any], limit: int) -> dict[str, Any]:
    return {key: _cut(value, limit) for key, value in record.items()}


def _cut(value: Any, limit: int) -> Any:
    """A value of a record; of a list, which a cell of a table may have, the first ones, and how many
    there are more.
    """
    if isinstance(value, list):
        more = [f"... and {len(value) - limit:,} more"] if len(value) > limit else []
        return [_cut(one, limit) for one in value[:limit]] + more
    return shortened(value, LONGEST) if isinstance(value, str) else value


def failure(error: CondgraphError) -> dict[str, Any]:
    """An error as a record from which a program can be put right: `code`, `message`, `hint`, the
    `nearest` names, and where it is (`at`, first and last character).
    """
    found: dict[str, Any] = {"code": error.code, "message": error.message, "nearest": list(error.candidates)}
    if error.hint:
        found["hint"] = error.hint
    if error.span is not None:
        found["at"] = list(error.span)
    if isinstance(error, UnknownNameError):
        found |= {"kind": error.kind, "name": shortened(error.name, LONGEST)}
    return {"error": found}


def plain(record: Any) -> dict[str, Any]:
    """A record as JSON has it."""
    found: dict[str, Any] = asdict(record)
    return found
