"""Matches of a pattern: checks of the options, and the answer with its solutions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from condgraph.engine import html
from condgraph.engine.answer import Answer, Typed, typed_columns
from condgraph.engine.bounds import kept, timed, watched, within
from condgraph.engine.check import Checked, built
from condgraph.engine.errors import DeadlineError, OptionError, PlanError, shortened
from condgraph.engine.evidence import EvidenceList, items
from condgraph.engine.facts import Entity
from condgraph.engine.lowered import Step, Substitution
from condgraph.engine.records import Evidence
from condgraph.languages.pattern.pattern import Pattern
from condgraph.names.words import same_form
from condgraph.patterns.distance.terms import TextTerms
from condgraph.patterns.families import disagree
from condgraph.patterns.options import MatchOptions
from condgraph.patterns.priced import prepare
from condgraph.patterns.reader import SnapshotReader
from condgraph.patterns.result import FEW, Hits, Reader, Report, Solution, Solutions, TimedReader
from condgraph.patterns.solve import solve
from condgraph.vectors.encoders import LexicalEncoder
from condgraph.vectors.nearest import UNIT

if TYPE_CHECKING:
    from condgraph.engine.check import Checked, Counting
    from condgraph.vectors.encoders import Encoder


# -- checked -----------------------------------------------------------------------------------------
# Checks the answer to a pattern: the same search on a graph of only its evidence must find the same subgraphs.


#: If fewer statements may give more subgraphs, how many of these are looked at.
_FURTHER: Final = 10_000
_RESTS: Final = "that no subgraph is nearer rests on the search of the whole graph"


class PatternAnswer(Protocol):
    """What a check needs from the answer to a pattern. See `matches.Matches`."""

    pattern: Pattern
    options: MatchOptions
    encoder: str

    @property
    def evidence(self) -> Sequence[Evidence]:
        """The statements of the subgraphs that are shown."""

    @property
    def shown(self) -> list[Solution]:
        """The subgraphs within the limit."""

    def __len__(self) -> int: ...


def check_matches(
    found: PatternAnswer, evidence: Sequence[Evidence] | None, encoder: Encoder | str | None, timeout: float | None
) -> Checked:
    """Search a graph of the evidence for the same pattern; raise `OptionError` if the encoder differs."""
    with within(timeout):
        return _check(found, evidence, encoder)


def _check(found: PatternAnswer, evidence: Sequence[Evidence] | None, encoder: Encoder | str | None) -> Checked:
    statements = found.evidence if evidence is None else evidence
    own_facts = set(map(repr, found.evidence))
    differing = [f"no evidence of this answer: {fact}" for fact in statements if repr(fact) not in own_facts]
    snapshot = built(items(statements))
    terms = TextTerms.of(snapshot, encoder)
    if terms.id != found.encoder:
        raise OptionError(f"the distances come from the encoder {found.encoder!r}", hint="give it: check(encoder=...)")
    # Nodes that are forbidden, or left out by name or rank, are missing from the evidence, so such a search only has to find
    # the subgraphs.
    bounded = found.options.induced or found.options.approximate or bool(found.options.distinct_from)
    options = replace(found.options, distinct_from=(), k=_FURTHER) if bounded else found.options
    hits, reader, _ = solve(
        found.pattern,
        options,
        lambda form: prepare(snapshot, form, options, terms, []),
        lambda form, problem, nodes: SnapshotReader(snapshot, form, problem, options),
    )
    repeated = list(Solutions(hits, reader))
    solutions_again = {_ranked(solution) for solution in repeated}
    missing = [f"subgraph {solution}" for solution in found.shown if _ranked(solution) not in solutions_again]
    if (
        not bounded
        and not missing
        and [_ranked(solution) for solution in repeated[: len(found.shown)]] != [_ranked(solution) for solution in found.shown]
    ):
        differing.append("nearer subgraphs are in the evidence, or others in their order")
    notes = [_RESTS]
    if len(found) > len(found.shown):
        notes.append(f"{len(found) - len(found.shown)} more subgraphs are not shown, and their statements are not in the evidence")
    return Checked(not (missing or differing), False, len(statements), tuple(missing), tuple(differing), notes=tuple(notes))


def _ranked(solution: Solution) -> tuple[Any, ...]:
    nodes = tuple(match.value.id if isinstance(match.value, Entity) else match.value for match in solution.nodes)
    return solution.total, nodes


# -- matches -----------------------------------------------------------------------------------------


#: From this term of a relation on, in millionths, its predicate is merely the nearest one. On the sets examined, matches by
#: words and their families cost at most 250,000, wrong ones at least 540,000.
DOUBTED: Final = 500_000
#: The most subgraphs whose relations are looked at.
_MAX_READ: Final = 200
#: The encoder that compares spellings.
SPELLED = LexicalEncoder().id


class Matches(Answer):
    """The answer to a pattern.

    `solutions` are the subgraphs. `values` and `texts` are the answers: the `group_by` nodes if given, else the only
    unknown node, else the subgraphs as text. `exact` tells that no subgraph is nearer than those given; it is False
    with limited candidates (`approximate`) and after a deadline (`complete` is False then).
    """

    def __init__(
        self,
        pattern: Pattern,
        options: MatchOptions,
        hits: Hits,
        reader: Reader,
        *,
        program: Any = "",
        warnings: Sequence[str] = (),
        report: Report | None = None,
        encoder: str = "",
        index: str = "",
        limit: int | None = None,
        why: Sequence[str] | None = None,
    ) -> None:
        self.pattern, self.options, self.hits = pattern, options, hits
        self._reader = reader
        self.solutions = Solutions(hits, reader)
        #: The approximate index that candidates come from; "" if every name was looked at.
        self.index = index
        self.complete, self.approximate = hits.complete, options.approximate or bool(index)
        self.exact = hits.complete and not self.approximate
        self.report = report or Report()
        #: For an empty answer, what emptied it, and what the nearest looser searches find.
        self.why: tuple[str, ...] = tuple(why or ())
        #: The id of the encoder that the distances come from.
        self.encoder = encoder
        self.language = "pattern"
        self._given, self._limit, self._program = warnings, limit, program if isinstance(program, str) and program else str(pattern)
        #: The queries for edges on Neo4j, in the order sent: texts with their parameters, as a driver takes them.
        self.cypher_queries: tuple[tuple[str, dict[str, Any]], ...] = ()
        #: Writes a query with its parameters; supplied by the target.
        self.pasted: Callable[[str, dict[str, Any]], str] | None = None
        self.sparql: str | None = None
        self._cypher: str | None = None

    @property
    def cypher(self) -> str | None:
        """The queries of the joins with their parameters (`:param` lines), as Neo4j Browser takes them; None on other stores."""
        if self._cypher is None and self.pasted is not None:
            self._cypher = "\n;\n".join(dict.fromkeys(self.pasted(*query) for query in self.cypher_queries))
        return self._cypher

    @cypher.setter
    def cypher(self, text: str | None) -> None:
        self._cypher = text

    def keep_to(self, timeout: float | None) -> Self:
        """Return this answer, with a timeout in seconds for each later look at it."""
        if timeout is not None:
            self._timeout = timeout
            self.solutions = Solutions(self.hits, TimedReader(self._reader, timeout))
        return self

    @property
    def program(self) -> str:
        """The pattern as text."""
        return str(self._program)

    # -- answers -----------------------------------------------------------------------------------

    @kept
    def _asked(self) -> tuple[int, ...]:
        """The nodes whose values are the answer; empty if the solutions are."""
        if self.options.group_by:
            return self.options.group_by
        unknown = [number for number, node in enumerate(self.pattern.nodes) if not node.known]
        return tuple(unknown) if len(unknown) == 1 else ()

    @kept
    def shown(self) -> list[Solution]:
        """The solutions, at most as many as the limit."""
        return list(islice(watched(self.solutions, FEW), self._limit))

    @kept
    def values(self) -> list[Any]:
        """The answers as text, one per solution, in order."""
        return [self._text(solution) for solution in watched(self.shown, FEW)]

    def _text(self, solution: Solution) -> str:
        if not self._asked:
            return "; ".join(" | ".join(triple) for triple in solution.triples)
        return ", ".join(solution.nodes[number].text for number in self._asked)

    @kept
    def texts(self) -> list[str]:
        """The distinct texts of the answers."""
        return list(dict.fromkeys(watched(self.values)))

    @kept
    def entities(self) -> list[Entity]:
        """The distinct entities among the answers, in order."""
        values = (solution.nodes[number].value for solution in watched(self.shown, FEW) for number in self._asked)
        return list(dict.fromkeys(value for value in values if isinstance(value, Entity)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Empty: the answer is no table."""
        return ()

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Empty: the answer is no table."""
        return []

    @property
    def cut(self) -> int:
        """How many solutions a limit left out."""
        return len(self.solutions) - len(self.shown)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.solutions)

    def __len__(self) -> int:
        return len(self.solutions)

    def __str__(self) -> str:
        return self._printed(map(str, self.shown))

    def __repr__(self) -> str:
        return self._brief(f"Matches: {len(self)} of {self.pattern}")

    @timed
    def _repr_html_(self) -> str:
        """Return the first subgraphs with their distances, and warnings, for notebooks."""
        rows = [_html_row(solution) for solution in watched(self.shown[: html.MAX_ROWS], FEW)]
        below = [html.table("subgraphs", ("distance", "subgraph"), rows, len(self.shown) - len(rows))] if rows else []
        return html.page(f"Matches: {len(self)} of {self.pattern}", below, warnings=self.warnings)

    # -- evidence ----------------------------------------------------------------------------------

    @kept
    def evidence(self) -> Any:
        """The distinct statements of all solutions, with their sources."""
        statements: dict[str, Evidence] = {}
        for solution in watched(self.shown, FEW):
            for edge in solution.edges:
                for statement in (edge.statement, edge.other):
                    if statement is not None:
                        statements.setdefault(repr(statement), statement)
        return list(statements.values())

    @kept
    def evidence_by_step(self) -> list[list[int]]:
        """Return all evidence as a single step, since a pattern is one step."""
        return [list(range(len(self.evidence)))]

    def evidence_of(self, row: int) -> EvidenceList:
        """Raise `PlanError`: a solution has its own statements, `solutions[row].edges`."""
        raise PlanError(
            "only the rows of a table have evidence of their own", hint=f"solutions[{row!r}].edges have their statements"
        )

    def check(
        self,
        evidence: Sequence[Evidence] | None = None,
        *,
        full: bool = False,
        graph: Counting | None = None,
        timeout: float | None = None,
        encoder: Encoder | str | None = None,
    ) -> Checked:
        """Tell whether a search of only the evidence finds the same subgraphs at the same distances. See `Answer.check`.

        That no subgraph is nearer rests on the search of the whole graph, of which nothing can be counted again
        (`full`, `graph`). `encoder` is the one of the original search, if it was not the default.
        """
        return check_matches(self, evidence, encoder, timeout)

    def verbalised(self) -> str:
        """Return the subgraphs as in the paper's prompts (section 4.4, Appendix B): each graph's triples, as JSON strings.

        `{"graph [1]": [("Unforgiven", "directed by", "Clint Eastwood"),], ...}`
        """
        lines = ["{"]
        for number, solution in enumerate(watched(self.shown, FEW), 1):
            lines.append(f'"graph [{number}]": [')
            for triple in solution.triples:
                lines.append("(" + ", ".join(json.dumps(part, ensure_ascii=False) for part in triple) + "),")
            lines.append("],")
        return "\n".join([*lines, "}"])

    # -- how it came about -------------------------------------------------------------------------

    @kept
    def _read_as(self) -> list[str]:
        """The relations of the pattern that are other predicates in the subgraphs.

        Matches by words or their families are remarks; merely nearest predicates are substitutions.
        """
        used: dict[str, dict[str, int]] = {}
        notes: list[str] = []
        try:
            for solution in islice(watched(self.solutions, FEW), _MAX_READ if self._limit is None else min(self._limit, _MAX_READ)):
                for edge in solution.edges:
                    if edge.term:
                        name = " and ".join(dict.fromkeys(triple[1] for triple in edge.triples))
                        terms = used.setdefault(edge.edge.relation, {})
                        terms[name] = min(terms.get(name, edge.term), edge.term)
        except DeadlineError:
            notes.append("the deadline came before all subgraphs were looked at for relations that are read as others")
        for relation, terms in used.items():
            names = {name: term for name, term in terms.items() if not same_form(relation, name)}
            far = [name for name, term in names.items() if term >= DOUBTED or disagree(relation, name)]
            near = [name for name in names if name not in far]
            if near:
                notes.append(f"relation {relation!r} is read as {' or '.join(map(repr, near[:5]))}")
            if far:
                notes.append(Substitution("relation", relation, far, [name for name in terms if name not in far]))
        return notes

    @property
    def substitutions(self) -> list[Substitution]:
        """The relations replaced by predicates that are near only by letters or vectors.

        Matches by words and their families do not count, since these are what patterns are for.
        """
        return [warning for warning in self._read_as if isinstance(warning, Substitution)]

    @kept
    def warnings(self) -> list[str]:
        """What a user should know: unused hints, a deadline that came first, limited candidates, an empty answer."""
        lines = [*self.pattern.warnings, *self._given, *self._read_as]
        if not self.complete:
            lines.append("the deadline came first: these are the best found so far, and nearer ones may exist")
        if self.index:
            lines.append(f"approximate: candidates come from {self.index}, which may miss some; their distances are exact")
        if self.options.approximate:
            limits = {name: getattr(self.options, name) for name in ("k_nodes", "k_relations", "k_types")}
            limit_text = ", ".join(f"{name}={limit}" for name, limit in limits.items() if limit is not None)
            lines.append(f"approximate: candidates are limited by {limit_text}")
        if self.hits.more:
            lines.append(f"there are more than {len(self)} at the best distance; the first of them are given")
        if self._limit is not None and len(self.solutions) > self._limit:
            lines.append(f"{len(self.solutions) - self._limit} more solutions are not shown (limit {self._limit})")
        if self.options.leave_out:
            for number, solution in enumerate(watched(self.shown, FEW), 1):
                for edge in solution.left_out(self.pattern):
                    ends = self.pattern.nodes[edge.head].text, self.pattern.nodes[edge.tail].text
                    lines.append(f"subgraph {number} leaves an edge out: ({ends[0]}) -[{edge.relation}]-> ({ends[1]})")
        if not len(self.solutions):
            lines.append("no subgraph has the form of the pattern" if self.complete else "nothing was found before the deadline")
            lines.extend(self.why)
        return [shortened(line) for line in lines]

    @kept
    def trace(self) -> list[Step]:
        """The nodes and edges of the best solution, one step each: what it is there, and at which distance."""
        if not len(self.solutions):
            return []
        best = self.solutions[0]
        steps = [Step(match.node.text, _term(match.term), 1, (match.text,)) for match in best.nodes]
        for match in best.edges:
            note = "reversed" if match.reversed else ""
            steps.append(Step(match.edge.relation, _term(match.term), 1, (" | ".join(match.triple),), note))
        return steps

    @timed
    def explain(self) -> str:
        """Return the pattern, its solutions with every term, and warnings, as text."""
        lines = [str(self.pattern), ""]
        for number, solution in enumerate(watched(self.shown, FEW), 1):
            lines.append(f"{number}. distance {solution.distance:.6f}")
            lines.extend(f"   {match.node.text} = {match.text}  {_term(match.term)}" for match in solution.nodes)
            for edge in solution.edges:
                direction = "  (reversed)" if edge.reversed else ""
                extras = "".join(f" + {_term(term)}" for term in (edge.against, edge.stretch) if term)
                triples = "; ".join(" | ".join(triple) for triple in edge.triples)
                lines.append(f"   {edge.edge.relation} = {triples}  {_term(edge.term)}{extras}{direction}")
        if self.encoder == SPELLED:
            lines.append("relations are compared by spelling and everyday words: no other encoder is recorded or given")
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)

    # -- tables ------------------------------------------------------------------------------------

    @timed
    def data(self) -> list[dict[str, Any]]:
        """Return one record per solution: `text`, `distance`, `id` and `name` of a single answer, and every node by its name."""
        records = []
        for solution, text in watched(zip(self.shown, self.values, strict=True), FEW):
            record: dict[str, Any] = {"text": text}
            if len(self._asked) == 1:
                value = solution.nodes[self._asked[0]].value
                record |= {"id": value.id, "name": value.name} if isinstance(value, Entity) else {}
            record["distance"] = solution.distance
            records.append(record | {match.node.text: match.text for match in solution.nodes})
        return records

    def _query(self, language: str) -> None:
        """Return None: a pattern becomes several queries, if any."""

    def _typed(self) -> Typed:
        return typed_columns(self.data(), {"distance": "double"})


def _html_row(solution: Solution) -> tuple[str, str]:
    return f"{solution.distance:.6f}", "; ".join(" | ".join(triple) for triple in solution.triples)


def _term(term: int | None) -> str:
    return "any" if term is None else f"{term / UNIT:.6f}"
