"""What a search for a pattern gives: solutions with every term of their distance, as an answer like any other.

Every store gives the same `Matches`. It is made of `Hits` (totals, and the nodes as numbers of the store) and a `Reader`, which
turns the numbers of one solution into nodes, edges and evidence when they are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.answer import Answer, Evidence, Step
from condgraph.engine.facts import Entity
from condgraph.engine.frontends.pattern import Pattern, PatternEdge, PatternNode
from condgraph.engine.linking.vectors import UNIT
from condgraph.engine.search.options import MatchOptions
from condgraph.engine.tabular import arrow_table

if TYPE_CHECKING:
    import pyarrow

#: The predicate of a membership.
INSTANCE_OF: Final = "instance of"


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """What a node of the pattern is in a solution: an entity (or concept, or row), or a text value.

    `term` is the node's part of the distance in millionths; None for an unknown node, which adds nothing.
    """

    node: PatternNode
    value: Entity | str
    term: int | None

    @property
    def text(self) -> str:
        """The name of the entity, or the text."""
        return self.value.name if isinstance(self.value, Entity) else self.value


@dataclass(frozen=True, slots=True)
class EdgeMatch:
    """The statement that an edge of the pattern is in a solution, in its own direction.

    `reversed` says that the statement runs from what the edge calls its tail to its head. `term` is the edge's part of the
    distance in millionths; None for an unknown relation.
    """

    edge: PatternEdge
    statement: Evidence
    reversed: bool
    term: int | None

    @property
    def triple(self) -> tuple[str, str, str]:
        """Subject, predicate and object as texts."""
        thing = self.statement.object
        return self.statement.subject.name, self.statement.predicate, thing.name if isinstance(thing, Entity) else str(thing)


class Reader(Protocol):
    """How a store reads back one of its solutions, given as its node numbers in the order of the pattern's nodes."""

    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """What the nodes are."""
        ...

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """The statements that the edges take: nearest first, then least by id, distinct for parallel edges."""
        ...

    def count(self, numbers: Sequence[int], total: int) -> int:
        """How many solutions of the same group have this distance."""
        ...


@dataclass(frozen=True, slots=True)
class Hits:
    """Solutions in their order: `totals` in millionths, shape (n,), int64, and `nodes`, shape (n, number of pattern nodes).

    `complete` is False where the deadline came first: these are the best so far. `more` says that there are further ones at the
    best distance, beyond the most that are given (`k=None`).
    """

    totals: NDArray[np.int64]
    nodes: NDArray[np.int32]
    complete: bool = True
    more: bool = False


class Solution:
    """One subgraph: a node for each node of the pattern, a statement for each edge, and their distance."""

    __slots__ = ("_edges", "_nodes", "_numbers", "_reader", "total")

    def __init__(self, total: int, numbers: Sequence[int], reader: Reader) -> None:
        #: The graph semantic distance in millionths: the sum of all terms (Eq. 3).
        self.total = total
        self._numbers, self._reader = numbers, reader
        self._nodes: tuple[NodeMatch, ...] | None = None
        self._edges: tuple[EdgeMatch, ...] | None = None

    @property
    def distance(self) -> float:
        """The graph semantic distance."""
        return self.total / UNIT

    @property
    def nodes(self) -> tuple[NodeMatch, ...]:
        """What each node of the pattern is, in the order of the pattern's nodes."""
        if self._nodes is None:
            self._nodes = self._reader.nodes(self._numbers)
        return self._nodes

    @property
    def edges(self) -> tuple[EdgeMatch, ...]:
        """What each edge of the pattern is, in the order of the pattern's edges."""
        if self._edges is None:
            self._edges = self._reader.edges(self._numbers)
        return self._edges

    @property
    def count(self) -> int:
        """How many solutions have this one's answer (`group_by`) at this distance, itself included; worked out when asked for."""
        return self._reader.count(self._numbers, self.total)

    @property
    def triples(self) -> list[tuple[str, str, str]]:
        """The subgraph as triples of texts, each statement once, in its own direction (section 4.4)."""
        return list(dict.fromkeys(edge.triple for edge in self.edges))

    def __getitem__(self, name: str) -> Entity | str:
        """What a node is, by its text in the pattern, with or without the word UNKNOWN."""
        for match in self.nodes:
            if name in (match.node.text, match.node.name):
                return match.value
        raise KeyError(name)

    def __str__(self) -> str:
        return f"{self.distance:.6f}  " + "; ".join(" | ".join(triple) for triple in self.triples)

    def __repr__(self) -> str:
        return f"<Solution {self}>"


class Solutions(Sequence[Solution]):
    """Solutions in their order, each made when it is looked at."""

    def __init__(self, hits: Hits, reader: Reader) -> None:
        self._hits, self._reader = hits, reader

    def __len__(self) -> int:
        return len(self._hits.totals)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return Solution(int(self._hits.totals[at]), self._hits.nodes[at].tolist(), self._reader)

    def __iter__(self) -> Iterator[Solution]:
        rows = zip(self._hits.totals.tolist(), self._hits.nodes.tolist(), strict=True)
        return (Solution(total, numbers, self._reader) for total, numbers in rows)

    def __repr__(self) -> str:
        return f"<{len(self)} solutions>"


@dataclass(frozen=True, slots=True)
class Report:
    """How a search went: how far the bound had to grow, and what it took; on a server, its queries and the rows they gave."""

    rounds: int = 0
    bound: int | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    queries: int = 0
    rows: int = 0


class Matches(Answer):
    """The answer to a pattern.

    `solutions` are the subgraphs. `values` and `texts` are the answers: what the `group_by` nodes are, or else the one unknown
    node, or else the subgraphs as text. `exact` says that no subgraph is nearer than those given; it is False with limited
    candidates (`approximate`) and after a deadline (`complete` is False then).
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
    ) -> None:
        self.pattern, self.options, self.hits = pattern, options, hits
        self.solutions = Solutions(hits, reader)
        #: The approximate index that candidates come from; empty where every name was looked at.
        self.index = index
        self.complete, self.approximate = hits.complete, options.approximate or bool(index)
        self.exact = hits.complete and not self.approximate
        self.report = report or Report()
        #: The id of the encoder that the distances come from.
        self.encoder = encoder
        self.language = "pattern"
        self._given, self._limit, self._program = warnings, limit, program if isinstance(program, str) and program else str(pattern)
        self.cypher: str | None = None
        self.sparql: str | None = None

    @property
    def program(self) -> str:
        """The pattern as text."""
        return str(self._program)

    # -- answers ----------------------------------------------------------------------------------------------------------

    @cached_property
    def _asked(self) -> tuple[int, ...]:
        """The nodes whose values are the answer; none where solutions are."""
        if self.options.group_by:
            return self.options.group_by
        unknown = [number for number, node in enumerate(self.pattern.nodes) if not node.known]
        return tuple(unknown) if len(unknown) == 1 else ()

    @cached_property
    def shown(self) -> list[Solution]:
        """The solutions, at most as many as the limit."""
        return list(self.solutions)[: self._limit]

    @cached_property
    def values(self) -> list[Any]:
        """The answers as text, one a solution, in their order."""
        return [self._text(solution) for solution in self.shown]

    def _text(self, solution: Solution) -> str:
        if not self._asked:
            return "; ".join(" | ".join(triple) for triple in solution.triples)
        return ", ".join(solution.nodes[number].text for number in self._asked)

    @cached_property
    def texts(self) -> list[str]:
        """The answers as distinct texts."""
        return list(dict.fromkeys(self.values))

    @cached_property
    def entities(self) -> list[Entity]:
        """The entities among the answers, each once, in their order."""
        found = (solution.nodes[number].value for solution in self.shown for number in self._asked)
        return list(dict.fromkeys(value for value in found if isinstance(value, Entity)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.solutions)

    def __len__(self) -> int:
        return len(self.solutions)

    def __str__(self) -> str:
        return "\n".join(map(str, self.shown))

    def __repr__(self) -> str:
        return f"<Matches: {len(self)} of {self.pattern}>"

    # -- evidence ---------------------------------------------------------------------------------------------------------

    @cached_property
    def evidence(self) -> Any:
        """The statements of all solutions with their sources, each once."""
        found: dict[str, Evidence] = {}
        for solution in self.shown:
            for edge in solution.edges:
                found.setdefault(repr(edge.statement), edge.statement)
        return list(found.values())

    def verbalised(self) -> str:
        """The subgraphs as the paper's prompts hold them (section 4.4 and Appendix B): triples of each graph, as JSON strings.

        `{"graph [1]": [("Unforgiven", "directed by", "Clint Eastwood"),], ...}`
        """
        lines = ["{"]
        for number, solution in enumerate(self.shown, 1):
            lines.append(f'"graph [{number}]": [')
            for triple in solution.triples:
                lines.append("(" + ", ".join(json.dumps(part, ensure_ascii=False) for part in triple) + "),")
            lines.append("],")
        return "\n".join([*lines, "}"])

    # -- how it came about ------------------------------------------------------------------------------------------------

    @cached_property
    def warnings(self) -> list[str]:
        """What a user should know: hints that were not used, a deadline that came first, limited candidates, an empty answer."""
        found = [*self.pattern.warnings, *self._given]
        if not self.complete:
            found.append("the deadline came first: these are the best found so far, and nearer ones may exist")
        if self.index:
            found.append(f"approximate: candidates come from {self.index}, which may miss some; their distances are exact")
        if self.options.approximate:
            limits = {name: getattr(self.options, name) for name in ("k_nodes", "k_relations", "k_types")}
            given = ", ".join(f"{name}={limit}" for name, limit in limits.items() if limit is not None)
            found.append(f"approximate: candidates are limited by {given}")
        if self.hits.more:
            found.append(f"there are more than {len(self)} at the best distance; the first of them are given")
        if self._limit is not None and len(self.solutions) > self._limit:
            found.append(f"{len(self.solutions) - self._limit} more solutions are not shown (limit {self._limit})")
        if not len(self.solutions):
            found.append("no subgraph has the form of the pattern" if self.complete else "nothing was found before the deadline")
        return found

    @cached_property
    def trace(self) -> list[Step]:
        """One step a node and edge of the best solution: what it is there, at which distance."""
        if not len(self.solutions):
            return []
        best = self.solutions[0]
        steps = [Step(match.node.text, _term(match.term), 1, (match.text,)) for match in best.nodes]
        for match in best.edges:
            note = "reversed" if match.reversed else ""
            steps.append(Step(match.edge.relation, _term(match.term), 1, (" | ".join(match.triple),), note))
        return steps

    def explain(self) -> str:
        """The pattern, its solutions with every term, and warnings, as text."""
        lines = [str(self.pattern), ""]
        for number, solution in enumerate(self.shown, 1):
            lines.append(f"{number}. distance {solution.distance:.6f}")
            lines.extend(f"   {match.node.text} = {match.text}  {_term(match.term)}" for match in solution.nodes)
            for edge in solution.edges:
                way = "  (reversed)" if edge.reversed else ""
                lines.append(f"   {edge.edge.relation} = {' | '.join(edge.triple)}  {_term(edge.term)}{way}")
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)

    # -- tables -----------------------------------------------------------------------------------------------------------

    def data(self) -> list[dict[str, Any]]:
        """One record a solution: `text`, `distance`, for a single answer its `id` and `name`, and every node by its name."""
        records = []
        for solution, text in zip(self.shown, self.values, strict=True):
            record: dict[str, Any] = {"text": text}
            if len(self._asked) == 1:
                value = solution.nodes[self._asked[0]].value
                record |= {"id": value.id, "name": value.name} if isinstance(value, Entity) else {}
            record["distance"] = solution.distance
            records.append(record | {match.node.text: match.text for match in solution.nodes})
        return records

    def to_arrow(self) -> pyarrow.Table:
        """The same as a pyarrow Table; every column is nullable."""
        return arrow_table(self.data(), {"distance": "double"})


def _term(term: int | None) -> str:
    return "any" if term is None else f"{term / UNIT:.6f}"
