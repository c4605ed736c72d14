"""Answers of a logical query: entities with scores, their derivations, and the query computation tree as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from condgraph.engine import html
from condgraph.engine.answer import Tabular, Typed, typed_columns
from condgraph.engine.bounds import timed, within
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.facts import Entity
from condgraph.engine.html import escaped
from condgraph.engine.records import Evidence
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.logic.propagation import Derivation, Edge

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import Checked
    from condgraph.links.rule_model import Rule


# -- picture -----------------------------------------------------------------------------------------
# A query computation tree with its assignment as SVG: the answer at the top, constants at the bottom.
#
# Observed edges are solid, predicted ones dashed and labelled with their score, negated ones dotted and red. Every text
# from data is escaped, and there is no script.


#: Pixels: the width of a leaf, the width and height of a box, the distance of two levels.
WIDTH, BOX, HEIGHT, LEVEL = 190, 170, 42, 96
#: The most characters of a name in a box, and the most leaves of a picture.
LETTERS, MAX_LEAVES = 24, 24
_CONNECTIVES: Final = {"and": "and", "or": "or", "not": "not"}


def drawn(root: Derivation, name: Callable[[int], str]) -> str:
    """Return the picture of a derivation as SVG. `name` returns the name of a node."""
    leaves = _leaf_count(root)
    if leaves > MAX_LEAVES:
        return f"<div>a tree of {leaves} branches is not drawn</div>"
    parts: list[str] = []
    _draw(root, 0.0, 0, parts, name)
    width, height = leaves * WIDTH, _depth(root) * LEVEL + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escaped("query computation tree")}</title>'
        f"{''.join(parts)}</svg>"
    )


def _leaf_count(one: Derivation) -> int:
    return max(1, sum(map(_leaf_count, one.parts)))


def _depth(one: Derivation) -> int:
    return 1 + max(map(_depth, one.parts), default=0) + (1 if _negated(one) else 0)


def _negated(one: Derivation) -> bool:
    """Whether the derivation is a negated edge, whose constant has no derivation of its own to draw."""
    return one.kind == "not" and one.edge is not None


def _draw(one: Derivation, left: float, level: int, parts: list[str], name: Callable[[int], str]) -> float:
    """Draw a derivation and its parts; return the x of the middle of its box."""
    middle, top = left + _leaf_count(one) * WIDTH / 2, level * LEVEL + 5
    part_left = left
    for part in one.parts:
        part_middle = _draw(part, part_left, level + 1, parts, name)
        part_left += _leaf_count(part) * WIDTH
        _line(one, part_middle, level + 1, middle, level, parts)
    if _negated(one) and one.edge is not None:
        other = one.edge.object if one.edge.subject == one.node else one.edge.subject
        _box(middle, (level + 1) * LEVEL + 5, name(other), "", parts)
        _line(one, middle, level + 1, middle, level, parts)
    word = _CONNECTIVES.get(one.kind, "")
    title = f"?{one.variable} = " if one.variable else ""
    text = title + ("" if one.node is None else name(one.node))
    _box(middle, top, text, " ".join(filter(None, (word if not _negated(one) else "", _score(one.score), one.reason))), parts)
    return middle


def _box(middle: float, top: float, text: str, small: str, parts: list[str]) -> None:
    short = text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
    parts.append(
        f'<rect x="{middle - BOX / 2:.0f}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="6" fill="#f6f6f6" stroke="#888"/>'
        f'<text x="{middle:.0f}" y="{top + 18}" text-anchor="middle">{escaped(short)}<title>{escaped(text)}</title></text>'
        f'<text x="{middle:.0f}" y="{top + 34}" text-anchor="middle" fill="#666" font-size="10">{escaped(small)}</text>'
    )


def _line(one: Derivation, x: float, level: int, above_x: float, above_level: int, parts: list[str]) -> None:
    """Draw the edge from a node up to its parent, with its label."""
    edge = one.edge
    begin, end = level * LEVEL + 5, above_level * LEVEL + 5 + HEIGHT
    style, colour, label = "", "#444", ""
    if edge is not None:
        label = f"{'not ' if edge.negated else ''}{edge.relation}"
        if edge.negated:
            style, colour = ' stroke-dasharray="2 3"', "#b00"
        elif not edge.observed:
            style, colour = ' stroke-dasharray="6 4"', "#06c"
            label += f" {_score(edge.score)}"
    parts.append(f'<line x1="{x:.0f}" y1="{begin}" x2="{above_x:.0f}" y2="{end}" stroke="{colour}"{style}/>')
    if label:
        middle_x, middle_y = (x + above_x) / 2, (begin + end) / 2 + 4
        parts.append(
            f'<text x="{middle_x:.0f}" y="{middle_y:.0f}" text-anchor="middle" fill="{colour}" font-size="11" stroke="#fff" '
            f'stroke-width="3" paint-order="stroke">{escaped(label)}</text>'
        )


def _score(score: float) -> str:
    return "1" if score >= 1.0 else f"{score:.3f}" if score < 0.9995 else f"{score:.7f}"


# -- answers -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleEvidence:
    """A rule that predicts an edge. `answer` is the answer of its body for the two ends, with statements as evidence."""

    rule: Rule
    answer: Answer

    @property
    def confidence(self) -> float:
        """The confidence of the rule, in [0, 1]."""
        return self.rule.confidence

    @property
    def statements(self) -> EvidenceList:
        """The statements that make the body true."""
        return self.answer.evidence

    def check(self) -> Checked:
        """Run the body again on its statements alone (`Answer.check`)."""
        return self.answer.check()

    def __str__(self) -> str:
        return f"{_number(self.confidence)}  {self.rule}"


@dataclass(frozen=True, slots=True)
class ScoredEdge:
    """An edge of an explanation. `observed`: the graph has it, as `statements`; otherwise a model predicts it with
    `score`.

    `factor` is what the edge multiplies the answer's score by: `score`, or if the edge is `negated` 1 - min(1, alpha *
    `score`), which is 0 for an observed edge.
    """

    subject: Entity
    relation: str
    object: Entity
    score: float
    factor: float
    observed: bool
    negated: bool
    statements: tuple[Evidence, ...]
    #: The rules that predict it, best first; empty unless the model consists of rules.
    rules: tuple[RuleEvidence, ...] = ()

    def __str__(self) -> str:
        text = f"{self.subject.name} | {self.relation} | {self.object.name}"
        if self.negated:
            verdict = "no such edge" if self.score <= 0.0 else f"not, as far as {_number(self.factor)}"
            return f"not: {text}  [{'the graph has it' if self.observed else verdict}]"
        if self.observed:
            return str(self.statements[0]) if self.statements else f"{text}  [observed]"
        return f"{text}  [predicted, {_number(self.score)}]"


class LogicAnswer:
    """One answer: `entity`, `score` in (0, 1], and `observed`, whether the graph alone gives it."""

    def __init__(
        self, snapshot: Snapshot, node: int, score: float, observed: bool, derive: Callable[[], Derivation],
        rules: Callable[[str, str, str], list[Rule]] | None = None,
    ) -> None:  # fmt: skip
        self._snapshot, self._derive, self._rules = snapshot, derive, rules
        self.node, self.score, self.observed = node, score, observed

    @cached_property
    def entity(self) -> Entity:
        """The answer as an entity."""
        return self._snapshot.entity(self.node)

    @cached_property
    def derivation(self) -> Derivation:
        """The best assignment: the query computation tree with an entity at every node (Eq. 12 to 14)."""
        return self._derive()

    @property
    def assignment(self) -> list[tuple[str, Entity]]:
        """The variables and their entities on every branch, without the answer variable."""
        root = self.derivation
        nodes = [(step.variable, step.node) for step in root.walk() if step.kind != "constant" and step.variable != root.variable]
        named = [(name, node) for name, node in dict.fromkeys(nodes) if name is not None and node is not None]
        return [(name, self._snapshot.entity(node)) for name, node in named]

    @property
    def edges(self) -> list[ScoredEdge]:
        """The edges that the score rests on, those next to the answer first."""
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
            () if edge.observed or self._rules is None else tuple(self._predicted_by(edge, self._rules)),
        )

    def _predicted_by(self, edge: Edge, rules: Callable[[str, str, str], list[Rule]]) -> Iterator[RuleEvidence]:
        from condgraph.engine.answer import Answer
        from condgraph.engine.execute.run import Run

        subject, object_ = self._snapshot.entity(edge.subject).id, self._snapshot.entity(edge.object).id
        for rule in rules(subject, edge.relation, object_):
            plan, run = rule.plan(subject, object_), Run(self._snapshot)
            run.execute(plan)
            yield RuleEvidence(rule, Answer(run, plan, program=str(rule), language="logic"))

    def explain(self) -> str:
        """Return the derivation as text, one line per node of the tree."""
        lines: list[str] = []
        self._describe(self.derivation, 0, lines)
        return "\n".join(lines)

    def _describe(self, one: Derivation, depth: int, lines: list[str]) -> None:
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
        if one.edge is not None and not one.edge.observed:
            for match in self._edge(one.edge).rules:
                lines.append(f"{'  ' * (depth + 1)}rule {match}")
                lines.extend(f"{'  ' * (depth + 2)}{statement}" for statement in match.statements)
        for part in one.parts:
            self._describe(part, depth + 1, lines)

    def __repr__(self) -> str:
        return f"<{self.entity.name}: {_number(self.score)}, {'observed' if self.observed else 'predicted'}>"

    def _repr_html_(self) -> str:
        return drawn(self.derivation, self._snapshot.name)


@dataclass(eq=False, repr=False)
class LogicAnswers(Tabular):
    """The answers of a logical query: first those that the graph alone gives, then by score, name and id.

    `query` is the text of the query, `more` whether `k` cut answers off, `warnings` are for the user. `answer` is the
    answer of the store, with its Cypher or SPARQL query, or None if the query was answered in process.
    """

    query: str
    answers: list[LogicAnswer]
    more: bool = False
    warnings: list[str] = field(default_factory=list)
    answer: Answer | None = None
    counting: Callable[[float], int] | None = field(default=None, repr=False)
    _timeout: float | None = field(default=None, repr=False)

    def keep_to(self, timeout: float | None) -> Self:
        """Set the timeout of later look-ups, in seconds, and return self."""
        self._timeout = timeout
        return self

    @property
    def texts(self) -> list[str]:
        """The names of the answers."""
        return [answer.entity.name for answer in self.answers]

    @property
    def entities(self) -> list[Entity]:
        """The answers as entities."""
        return [answer.entity for answer in self.answers]

    @property
    def scores(self) -> list[float]:
        """The scores of the answers, in (0, 1]."""
        return [answer.score for answer in self.answers]

    def cardinality(self, threshold: float = 0.5) -> int:
        """Count the answers with a score above `threshold` (QTO, section 4.4), including those that `k` cut off."""
        if self.counting is None:
            return sum(answer.score > threshold for answer in self.answers)
        with within(self._timeout):
            return self.counting(threshold)

    @property
    def evidence(self) -> list[Evidence]:
        """The statements of the graph that the answers rest on, each once."""
        distinct = {
            str(statement): statement
            for answer in self.answers
            for edge in answer.edges
            if not edge.negated
            for statement in edge.statements
        }
        return list(distinct.values())

    def __iter__(self) -> Iterator[LogicAnswer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, at: int) -> LogicAnswer:
        return self.answers[at]

    def __str__(self) -> str:
        return self._printed(
            f"{answer.entity.name}  {_number(answer.score)}{'' if answer.observed else '  predicted'}" for answer in self.answers
        )

    def __repr__(self) -> str:
        shown = ", ".join(answer.entity.name for answer in self.answers[:5]) + (", ..." if len(self.answers) > 5 else "")
        return self._brief(f"LogicAnswers of {len(self.answers)}" + (f": {shown}" if shown else ""))

    @timed
    def explain(self) -> str:
        """Return the query and the explanation of every answer, as text."""
        return "\n\n".join([self.query, *(answer.explain() for answer in self.answers)])

    @timed
    def data(self) -> list[dict[str, Any]]:
        """Return one record per answer: `id`, `name`, `score`, `observed`, `assignment`, and `edges`, each with its
        subject, relation, object, score, statements and rules.
        """
        return [
            {
                "id": answer.entity.id,
                "name": answer.entity.name,
                "score": answer.score,
                "observed": answer.observed,
                "assignment": [{"variable": name, "id": entity.id, "name": entity.name} for name, entity in answer.assignment],
                "edges": [_record(edge) for edge in answer.edges],
            }
            for answer in self.answers
        ]

    def _typed(self) -> Typed:
        records = [
            {
                "id": answer.entity.id,
                "name": answer.entity.name,
                "score": answer.score,
                "observed": answer.observed,
                "why": answer.explain(),
            }
            for answer in self.answers
        ]
        return typed_columns(records, {"score": "double", "observed": "bool"})

    def _repr_html_(self) -> str:
        """Return the answers and the picture of the first, for notebooks."""
        shown = self.answers[: html.MAX_ROWS]
        rows = [(answer.entity.name, _number(answer.score), "observed" if answer.observed else "predicted") for answer in shown]
        parts = [html.table("answers", ("answer", "score", ""), rows, len(self.answers) - len(rows))] if rows else []
        if shown:
            parts.append(shown[0]._repr_html_())
        return html.page(self.query, parts, warnings=self.warnings)


def _record(edge: ScoredEdge) -> dict[str, Any]:
    return {
        "subject": edge.subject.id,
        "relation": edge.relation,
        "object": edge.object.id,
        "score": edge.score,
        "observed": edge.observed,
        "negated": edge.negated,
        "factor": edge.factor,
        "statements": [str(statement) for statement in edge.statements],
        "rules": [
            {
                "rule": str(proof.rule),
                "confidence": proof.confidence,
                "statements": [str(statement) for statement in proof.statements],
            }
            for proof in edge.rules
        ],
    }


def _number(score: float) -> str:
    """Return a score as text; a score below 1 never appears as 1."""
    if score >= 1.0:
        return "1"
    text = f"{score:.4f}"
    return f"{score:.9g}" if text == "1.0000" else f"{score:.2e}" if text == "0.0000" else text
