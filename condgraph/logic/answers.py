"""What a logical query gives: entities with scores, whether the graph alone gives them, and how each
came about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from condgraph.engine import html
from condgraph.engine.bounds import timed, within
from condgraph.engine.evidence import Evidence, EvidenceList
from condgraph.engine.facts import Entity
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.tabular import Tabular, arrow_table
from condgraph.logic.derivation import Derivation, Edge
from condgraph.logic.picture import drawn

if TYPE_CHECKING:
    import pyarrow

    from condgraph.engine.answer import Answer


@dataclass(frozen=True, slots=True)
class ScoredEdge:
    """An edge of an explanation. `observed`: the graph has it, as `statements`; otherwise a model
    predicts it with `score`.

    Of a `negated` edge `factor` is what is left for the answer, else it is the score.
    """

    subject: Entity
    relation: str
    object: Entity
    score: float
    factor: float
    observed: bool
    negated: bool
    statements: tuple[Evidence, ...]

    def __str__(self) -> str:
        text = f"{self.subject.name} | {self.relation} | {self.object.name}"
        if self.negated:
            said = "no such edge" if self.score <= 0.0 else f"not, as far as {_number(self.factor)}"
            return f"not: {text}  [{'the graph has it' if self.observed else said}]"
        if self.observed:
            return str(self.statements[0]) if self.statements else f"{text}  [observed]"
        return f"{text}  [predicted, {_number(self.score)}]"


class LogicAnswer:
    """One answer: `entity`, `score` in (0, 1], and `observed`, whether the graph alone gives it.

    `derivation` is the best assignment, branch by branch.
    """

    def __init__(self, snapshot: Snapshot, node: int, score: float, observed: bool, derive: Callable[[], Derivation]) -> None:
        self._snapshot, self._derive = snapshot, derive
        self.node, self.score, self.observed = node, score, observed

    @cached_property
    def entity(self) -> Entity:
        """The entity itself."""
        return self._snapshot.entity(self.node)

    @cached_property
    def derivation(self) -> Derivation:
        """How it came about: the query computation tree with an entity at every node (Eq. 12 to 14)."""
        return self._derive()

    @property
    def assignment(self) -> list[tuple[str, Entity]]:
        """What each variable is, on every branch that holds, the answer variable left out."""
        found = self.derivation
        below = [(one.variable, one.node) for one in found.walk() if one.kind != "constant" and one.variable != found.variable]
        named = [(name, node) for name, node in dict.fromkeys(below) if name is not None and node is not None]
        return [(name, self._snapshot.entity(node)) for name, node in named]

    @property
    def edges(self) -> list[ScoredEdge]:
        """The edges that count, those nearest to the answer first."""
        return [self._edge(edge) for edge in self.derivation.edges()]

    def _edge(self, edge: Edge) -> ScoredEdge:
        entity = self._snapshot.entity
        statements = tuple(EvidenceList.of(self._snapshot, list(edge.statements), []))
        return ScoredEdge(
            entity(edge.subject),
            edge.relation,
            entity(edge.object),
            edge.score,
            edge.factor,
            edge.observed,
            edge.negated,
            statements,
        )

    def explain(self) -> str:
        """The derivation as text, one line a node of the tree."""
        lines: list[str] = []
        self._tell(self.derivation, 0, lines)
        return "\n".join(lines)

    def _tell(self, one: Derivation, depth: int, lines: list[str]) -> None:
        name = "" if one.node is None else self._snapshot.name(one.node)
        variable = f"?{one.variable} = " if one.variable is not None else ""
        text = f"{'  ' * depth}{_number(one.score)}  "
        if one.kind == "constant":
            text += name
        elif one.edge is not None:
            text += f"{variable}{name}: {self._edge(one.edge)}"
        else:
            text += f"{variable}{name}: {one.kind}" + (f", {one.reason}" if one.reason else "")
        lines.append(text)
        for part in one.parts:
            self._tell(part, depth + 1, lines)

    def __repr__(self) -> str:
        return f"<{self.entity.name}: {_number(self.score)}, {'observed' if self.observed else 'predicted'}>"

    def _repr_html_(self) -> str:
        return drawn(self.derivation, self._snapshot.name)


@dataclass(eq=False)
class LogicAnswers(Tabular):
    """The answers of a logical query in order: those that the graph alone gives, then by score, then
    by name and id.

    `query` is its text, `more` whether `k` left answers out, `warnings` what a user should know.
    `answer` is that of the store, with its query, where one answered; None otherwise.
    """

    query: str
    answers: list[LogicAnswer]
    more: bool = False
    warnings: list[str] = field(default_factory=list)
    answer: Answer | None = None
    counting: Callable[[float], int] | None = field(default=None, repr=False)
    _timeout: float | None = field(default=None, repr=False)

    def keep_to(self, timeout: float | None) -> Self:
        """Itself, each later look at which has that timeout (seconds)."""
        self._timeout = timeout
        return self

    @property
    def texts(self) -> list[str]:
        """The names of the answers."""
        return [one.entity.name for one in self.answers]

    @property
    def entities(self) -> list[Entity]:
        """The answers as entities."""
        return [one.entity for one in self.answers]

    @property
    def scores(self) -> list[float]:
        """Their scores."""
        return [one.score for one in self.answers]

    def cardinality(self, threshold: float = 0.5) -> int:
        """How many answers there are: those of a score above `threshold` (QTO, section 4.4), however
        many `k` shows.
        """
        if self.counting is None:
            return sum(one.score > threshold for one in self.answers)
        with within(self._timeout):
            return self.counting(threshold)

    @property
    def evidence(self) -> list[Evidence]:
        """The statements of the graph that the answers rest on, each once."""
        found = {str(one): one for answer in self.answers for edge in answer.edges if not edge.negated for one in edge.statements}
        return list(found.values())

    def __iter__(self) -> Iterator[LogicAnswer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, at: int) -> LogicAnswer:
        return self.answers[at]

    def __str__(self) -> str:
        return "\n".join(f"{one.entity.name}  {_number(one.score)}{'' if one.observed else '  predicted'}" for one in self.answers)

    @timed
    def explain(self) -> str:
        """The query, and every answer with how it came about, as text."""
        return "\n\n".join([self.query, *(one.explain() for one in self.answers)])

    @timed
    def data(self) -> list[dict[str, Any]]:
        """One record an answer: `id`, `name`, `score`, `observed`, and its `edges`, each with subject,
        relation, object, score, observed, negated, and the statements that say it.
        """
        return [
            {
                "id": one.entity.id,
                "name": one.entity.name,
                "score": one.score,
                "observed": one.observed,
                "assignment": [{"variable": name, "id": entity.id, "name": entity.name} for name, entity in one.assignment],
                "edges": [_record(edge) for edge in one.edges],
            }
            for one in self.answers
        ]

    @timed
    def to_arrow(self) -> pyarrow.Table:
        """The answers as a pyarrow Table: `id`, `name`, `score`, `observed`, and the explanation as
        text.
        """
        records = [
            {"id": one.entity.id, "name": one.entity.name, "score": one.score, "observed": one.observed, "why": one.explain()}
            for one in self.answers
        ]
        return arrow_table(records, {"score": "double", "observed": "bool"})

    def _repr_html_(self) -> str:
        """The answers, and the tree of the first with its assignment, for notebooks."""
        shown = self.answers[: html.MOST_ROWS]
        rows = [(one.entity.name, _number(one.score), "observed" if one.observed else "predicted") for one in shown]
        parts = [html.table("answers", ("answer", "score", ""), rows, len(self.answers) - len(rows))] if rows else []
        if shown:
            parts.append(shown[0]._repr_html_())
        return html.page(self.query, parts, self.warnings[: html.MOST_ROWS])


def _record(edge: ScoredEdge) -> dict[str, Any]:
    return {
        "subject": edge.subject.id,
        "relation": edge.relation,
        "object": edge.object.id,
        "score": edge.score,
        "observed": edge.observed,
        "negated": edge.negated,
        "factor": edge.factor,
        "statements": [str(one) for one in edge.statements],
    }


def _number(score: float) -> str:
    """A score for people: what is less than 1 never looks like 1."""
    if score >= 1.0:
        return "1"
    text = f"{score:.4f}"
    return f"{score:.9g}" if text == "1.0000" else f"{score:.2e}" if text == "0.0000" else text
