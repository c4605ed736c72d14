"""Claims and verdicts.

A claim consists of triples as in a pattern, each stated or denied: `("Nepal", "capital", "Kathmandu")` is stated,
`("Nepal", "NOT capital", "Pokhara")` is denied; `UNKNOWN person 1` stands for any person. An unknown node that occurs
only in one denied triple is denied as a whole: `("Ann", "NOT spouse", "UNKNOWN 1")` means that Ann has no spouse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from condgraph.engine import html
from condgraph.engine.errors import PlanError
from condgraph.engine.facts import Entity, shown
from condgraph.engine.records import Evidence
from condgraph.engine.values import text_of
from condgraph.languages.pattern.pattern import Pattern, PatternNode
from condgraph.models.chat import Usage

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.overview.schema import GraphSchema
    from condgraph.overview.survey import Survey
    from condgraph.patterns.matches import Matches
    from condgraph.patterns.result import Solution


# -- claims ------------------------------------------------------------------------------------------


#: The maximum number of triples of a claim. Claims in practice have up to five.
MAX_TRIPLES: Final = 16
#: The prefix of a denied relation.
NOT: Final = "NOT"
_NOT: Final = re.compile(r"NOT\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class ClaimTriple:
    """A triple of a claim, with its nodes by number. `relation` is None if it may be any; `denied` is whether the
    claim denies the triple.
    """

    head: int
    relation: str | None
    tail: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim: its nodes in the order of their first use, and its triples."""

    nodes: tuple[PatternNode, ...]
    triples: tuple[ClaimTriple, ...]
    #: The claim in plain words, if it was read from a text; else empty.
    text: str = ""

    @classmethod
    def of(cls, given: Any, text: str = "") -> Claim:
        """Read a claim in any form of a pattern. In every form a relation that begins with `NOT` is denied; a triple
        as an object may have `"negated": true` instead.

        Raises `ParseError` (with a position) or `PlanError` if it is not a claim.
        """
        if isinstance(given, Claim):
            return given
        pattern = Pattern.of(_marked(given))
        if len(pattern.edges) > MAX_TRIPLES:
            raise PlanError(f"a claim has at most {MAX_TRIPLES} triples, not {len(pattern.edges)}")
        triples = []
        for edge in pattern.edges:
            relation, denied = _NOT.subn("", edge.relation, count=1) if _NOT.match(edge.relation) else (edge.relation, 0)
            is_known = re.match(r"UNKNOWN\b", relation) is None
            triples.append(ClaimTriple(edge.head, relation if is_known else None, edge.tail, bool(denied)))
        return cls(pattern.nodes, tuple(triples), text)

    def shown(self, triple: ClaimTriple) -> str:
        """Return a triple of the claim as text, with its ends separated by bars."""
        relation = triple.relation or "any relation"
        return " | ".join(
            (self.nodes[triple.head].text, ("NOT " if triple.denied else "") + relation, self.nodes[triple.tail].text)
        )

    def data(self) -> list[dict[str, Any]]:
        """Return the triples as values for JSON, in a form that `of` reads."""
        return [
            {
                "head": self.nodes[triple.head].text,
                "relation": triple.relation or "UNKNOWN relation",
                "tail": self.nodes[triple.tail].text,
                "negated": triple.denied,
            }
            for triple in self.triples
        ]

    def __str__(self) -> str:
        return "; ".join(map(self.shown, self.triples))


def _marked(given: Any) -> Any:
    """Move the `negated` of triples that are objects into their relations."""
    triples = given.get("triples") if isinstance(given, Mapping) else given
    if isinstance(triples, str | Pattern) or not isinstance(triples, Iterable):
        return given
    return [_checked(triple) if isinstance(triple, Mapping) else triple for triple in triples]


def _checked(triple: Mapping[str, Any]) -> Mapping[str, Any]:
    negated = triple.get("negated", False)
    if not isinstance(negated, bool):
        raise PlanError(f"negated is true or false, not {negated!r}")
    for key in ("relation", "predicate", "r"):
        if negated and isinstance(triple.get(key), str):
            return {**triple, key: f"{NOT} {triple[key]}"}
    return triple


class Asking(Protocol):
    """The methods of `condgraph.Graph` that verification uses."""

    timeout: float | None

    def kopl(self, program: Any) -> Answer:
        """Answer a KoPL program (`Graph.kopl`)."""

    def match(self, pattern: Any, *, k: int | None = 3) -> Matches:
        """Search for the subgraphs nearest to a pattern (`Graph.match`)."""

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Count the results of operators (`Graph.counted`)."""

    def schema(self) -> GraphSchema:
        """Return the schema (`Graph.schema`)."""

    def _survey(self) -> Survey: ...


# -- verdicts ----------------------------------------------------------------------------------------


Status = Literal["supported", "refuted", "not enough facts"]
#: The rule that applies to a triple: it is stated; it is denied, but stated; its predicate has one value, and another is
#: stated; its predicate has one subject for each object, and another is stated; its predicate is closed, and it is not
#: stated; nothing is known.
Rule = Literal["stated", "denied", "one value", "one subject", "closed", "open"]


@dataclass(frozen=True, slots=True)
class Reason:
    """A triple of the claim, the rule that applies to it, and the statements that the rule rests on."""

    triple: ClaimTriple
    rule: Rule
    facts: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a claim.

    - `status`: "supported", "refuted" or "not enough facts"
    - `reasons`: triples, each with its rule and statements
    - `evidence`: the statements that the reasons cite, with their sources
    - `notes`: names that the graph does not have, and how names were interpreted
    - `nearest`: the most similar subgraphs, on request
    - `queries`, `seconds`: the number of queries, and the time of the call
    - `attempts`, `usage`, `model`: the attempts and tokens of the model that read the claim, and its name
    """

    status: Status
    claim: Claim
    reasons: tuple[Reason, ...]
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()
    nearest: tuple[Solution, ...] = ()
    queries: int = 0
    seconds: float = field(default=0.0, compare=False)
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)
    model: str = ""

    @property
    def triples(self) -> list[tuple[str, str, str]]:
        """The statements of the evidence as triples of texts."""
        return [(fact.subject.name, fact.predicate, _end(fact)) for fact in self.evidence]

    @property
    def text(self) -> str:
        """The verdict in words, with the numbers of the cited statements."""
        lines = [_HEADS[self.status]]
        lines += [self._sentence(reason) for reason in self.reasons]
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    def _sentence(self, reason: Reason) -> str:
        plain = reason.triple if reason.rule == "open" else replace(reason.triple, denied=False)
        claimed, cited = f'"{self.claim.shown(plain)}"', self._cited(reason)
        name = reason.triple.relation or "any relation"
        if reason.rule == "one value":
            return f'Against {claimed}: the graph states {cited}, and "{name}" has one value.'
        if reason.rule == "one subject":
            return f'Against {claimed}: the graph states {cited}, and "{name}" has one subject for each object.'
        return _SENTENCES[reason.rule].format(claimed=claimed, cited=cited, name=name)

    def _cited(self, reason: Reason) -> str:
        numbers = [self.evidence.index(fact) + 1 for fact in reason.facts if fact in self.evidence]
        cited_texts = [f'"{" | ".join(self.triples[number - 1])}" [{number}]' for number in numbers[:_MAX_CITED]]
        omitted = len(numbers) - len(cited_texts)
        return ", ".join(cited_texts) + (f" and {omitted} more" if omitted > 0 else "")

    def data(self) -> dict[str, Any]:
        """Return the verdict as values for JSON. Reasons refer to the statements by number, from 1."""
        return {
            "status": self.status,
            "text": self.text,
            "claim": self.claim.data(),
            "words": self.claim.text,
            "reasons": [
                {
                    "triple": self.claim.shown(reason.triple),
                    "rule": reason.rule,
                    "statements": [self.evidence.index(fact) + 1 for fact in reason.facts if fact in self.evidence],
                }
                for reason in self.reasons
            ],
            "evidence": [_fact(fact) for fact in self.evidence],
            "notes": list(self.notes),
            "nearest": [{"distance": item.distance, "triples": [list(triple) for triple in item.triples]} for item in self.nearest],
            "queries": self.queries,
            "attempts": self.attempts,
            "model": self.model,
        }

    def _repr_html_(self) -> str:
        """Show the verdict with its statements in notebooks."""
        rows = [(str(number), *triple) for number, triple in enumerate(self.triples[: html.MAX_ROWS], 1)]
        below = [html.table("statements", ("", "subject", "predicate", "object"), rows, len(self.evidence) - len(rows))]
        return html.page(f"{self.status}: {self.claim}", below if rows else [], self.notes)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Verdict: {self.status}: {self.claim}>"


_MAX_CITED: Final = 5
_HEADS: Final = {"supported": "Supported.", "refuted": "Refuted.", "not enough facts": "Not enough facts."}
_SENTENCES: Final = {
    "stated": "For {claimed}: the graph states {cited}.",
    "denied": "The claim denies {claimed}, and the graph states {cited}.",
    "closed": 'About {claimed}: the graph states no such thing, and it is taken to have all of "{name}".',
    "open": "About {claimed}: the graph states neither this nor anything that excludes it.",
}


def _end(fact: Evidence) -> str:
    return fact.object.name if isinstance(fact.object, Entity) else text_of(fact.object)


def _fact(fact: Evidence) -> dict[str, Any]:
    return {
        "subject": {"id": fact.subject.id, "name": fact.subject.name},
        "predicate": fact.predicate,
        "object": {"id": fact.object.id, "name": fact.object.name} if isinstance(fact.object, Entity) else text_of(fact.object),
        "qualifiers": [[key, shown(value)] for key, value in fact.qualifiers],
        "sources": [{"source": source.name, "row": row or None} for source, row in fact.sources],
    }
