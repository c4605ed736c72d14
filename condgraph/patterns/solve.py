"""From a priced pattern to its first solutions.

The pattern is searched as written and, if asked for, with an edge that stands for a path of two, or with an edge left out. Each
such form is a pattern of its own, searched under the bound left by the solutions so far minus what the form adds to the
distance. A solution maps the pattern's own nodes, so each mapping is returned once, in its nearest form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from condgraph.languages.pattern.pattern import Pattern, PatternEdge, PatternNode
from condgraph.patterns.join.driver import Outcome, limited, search
from condgraph.patterns.options import LEFT_OUT, MAX_SOLUTIONS, NEAR, STRETCHED, MatchOptions
from condgraph.patterns.problem import Problem
from condgraph.patterns.ranking import Rows, best_of_groups, first
from condgraph.patterns.result import EdgeMatch, Hits, NodeMatch, Reader

#: The node in the middle of a path of two.
_MIDDLE: Final = PatternNode("UNKNOWN between", False)


@dataclass(slots=True)
class Form:
    """A form of a pattern: what it adds to the distance, the edge it changes, and whether it has a node in between."""

    pattern: Pattern
    extra: int = 0
    edge: int = -1
    stretched: bool = False


def stretched_forms(pattern: Pattern) -> list[Form]:
    """Return the forms in which an edge is a path of two: one half has the relation, the other any."""
    forms = []
    things = pattern.things
    nodes = (*pattern.nodes[:things], _MIDDLE, *pattern.nodes[things:])

    def shifted(edge: PatternEdge) -> PatternEdge:
        return replace(edge, head=edge.head + (edge.head >= things), tail=edge.tail + (edge.tail >= things))

    for number, edge in enumerate(pattern.edges):
        if max(edge.head, edge.tail) >= things:
            continue
        for halves in (((edge.head, things), (things, edge.tail)), ((things, edge.tail), (edge.head, things))):
            edges = list(map(shifted, pattern.edges))
            edges[number] = replace(edge, head=halves[0][0], tail=halves[0][1])
            edges.append(PatternEdge(*halves[1][:1], "UNKNOWN between", halves[1][1], False, loose=True))
            forms.append(Form(Pattern(nodes, tuple(edges)), STRETCHED, number, True))
    return forms


def shorter_forms(pattern: Pattern) -> list[Form]:
    """Return the forms in which a named edge is left out, as long as unknown nodes stay joined to something."""
    forms = []
    for number, edge in enumerate(pattern.edges):
        remaining = tuple(other for other in pattern.edges if other is not edge)
        joined = {node for other in remaining for node in (other.head, other.tail)}
        lost = [node for node in (edge.head, edge.tail) if node not in joined]
        if remaining and edge.known and all(pattern.nodes[node].known and pattern.nodes[node].value is None for node in lost):
            forms.append(Form(Pattern(pattern.nodes, remaining), LEFT_OUT, number))
    return forms


def solve(
    pattern: Pattern, options: MatchOptions, price: Callable[[Pattern], Problem], read: Callable[[Pattern, Problem, Any], Reader]
) -> tuple[Hits, Reader, Outcome]:
    """Return the first solutions of a pattern.

    `price` prepares a form, `read` returns what reads back its solutions (shape (n, nodes)).
    """
    form = Form(pattern)
    problem = price(pattern)
    outcome = search(problem, options.k, options.group_by)
    if not options.stretch and not options.leave_out:
        nodes = _nodes(outcome.rows, pattern.things)
        return Hits(outcome.rows.totals, nodes, outcome.complete, outcome.more), read(pattern, problem, nodes), outcome
    own_nodes = tuple(range(pattern.things))
    by = options.group_by or own_nodes
    needed = MAX_SOLUTIONS + 1 if options.k is None else options.k
    forms, problems = [form], [problem]
    best = _marked(outcome.rows, own_nodes, 0, 0, -1)
    for variants, enabled in ((stretched_forms, options.stretch), (shorter_forms, options.leave_out)):
        if not enabled or not outcome.complete:
            continue
        if variants is shorter_forms and len(best) and int(best.totals[0]) < NEAR:
            continue
        for variant in variants(pattern):
            most = None
            if len(best) >= needed or (options.k is None and len(best)):
                most = int(best.totals[0 if options.k is None else needed - 1]) - variant.extra
                if most < 0:
                    continue
            variant_problem = price(variant.pattern)
            # A mapping of the pattern's own nodes counts once, whatever is in between.
            result = search(variant_problem, options.k, by, most=most)
            outcome.rounds, outcome.complete = outcome.rounds + result.rounds, outcome.complete and result.complete
            if not len(result.rows):
                continue
            forms.append(variant)
            problems.append(variant_problem)
            rows = _marked(result.rows, own_nodes, variant.extra, len(forms) - 1, pattern.things if variant.stretched else -1)
            # In the order of the forms: at equal distance, the pattern as written comes first.
            ranks: Any = _Ranks(problem.graph.rank)
            best = first(best_of_groups(Rows.joined([best, rows]), by, ranks), ranks, needed)
            if options.k is None:
                best = best.take(np.flatnonzero(best.totals == best.totals[0]))
    outcome.more = outcome.more or (options.k is None and len(best) > MAX_SOLUTIONS)
    best = best.take(np.arange(min(len(best), MAX_SOLUTIONS)))
    nodes = _nodes(best, pattern.things + 2)
    readers = []
    for number, (variant, variant_problem) in enumerate(zip(forms, problems, strict=True)):
        variant_rows = nodes[nodes[:, -2] == number]
        readers.append(
            read(variant.pattern, variant_problem, np.delete(variant_rows, -2 if variant.stretched else [-2, -1], axis=1))
        )
    outcome.rows = best
    return Hits(best.totals, nodes, outcome.complete, outcome.more), FormReader(pattern, options, forms, problems, readers), outcome


class _Ranks:
    """Ranks of nodes by column; for the marks after the nodes, the marks themselves."""

    def __init__(self, rank: Any) -> None:
        self.rank = rank

    def take(self, column: Any) -> Any:
        """Return the ranks of a column; marks are negative, which distinguishes them."""
        return np.where(column < 0, column, self.rank.take(np.maximum(column, 0))) if column.dtype == np.int32 else column


def _marked(rows: Rows, own: Sequence[int], extra: int, form: int, middle: int) -> Rows:
    """Return rows of a form, with its number and the node in between as columns after the pattern's own."""
    columns: dict[int, Any] = {node: rows.columns[node] for node in own}
    columns[len(own)] = np.full(len(rows), form, np.int64)
    between = rows.columns[middle] if middle >= 0 else np.full(len(rows), -1)
    columns[len(own) + 1] = between.astype(np.int32)
    return Rows(rows.totals + extra, columns)


def _nodes(rows: Rows, size: int) -> Any:
    return np.stack([rows.columns[node].astype(np.int32) for node in range(size)], axis=1)


class FormReader:
    """Reads back solutions of several forms. See `result.Reader`.

    A row ends with the number of its form and the node in between.
    """

    def __init__(
        self, pattern: Pattern, options: MatchOptions, forms: Sequence[Form], problems: Sequence[Problem], readers: Sequence[Reader]
    ) -> None:
        self._pattern, self._options, self._forms = pattern, options, forms
        self._problems, self._readers = problems, readers

    def _of(self, numbers: Sequence[int]) -> tuple[Form, Reader, list[int]]:
        form = self._forms[numbers[-2]]
        return form, self._readers[numbers[-2]], [*numbers[:-2], *([numbers[-1]] if form.stretched else [])]

    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """Return what the pattern's own nodes are."""
        form, reader, form_numbers = self._of(numbers)
        matches = reader.nodes(form_numbers)
        things = self._pattern.things
        return (*matches[:things], *matches[things + 1 :]) if form.stretched else matches

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """Return the statements of the edges, without an edge that is left out."""
        form, reader, form_numbers = self._of(numbers)
        matches = list(reader.edges(form_numbers))
        if form.stretched:
            half = matches.pop()
            matches[form.edge] = replace(matches[form.edge], stretch=form.extra, other=half.statement)
        edges = [edge for number, edge in enumerate(self._pattern.edges) if form.stretched or number != form.edge]
        return tuple(replace(match, edge=edge) for match, edge in zip(matches, edges, strict=True))

    def count(self, numbers: Sequence[int], total: int) -> int:
        """Return how many mappings of the same group have this distance as their least."""
        own_nodes = tuple(range(self._pattern.things))
        least: dict[tuple[int, ...], int] = {}
        for form, problem in zip(self._forms, self._problems, strict=True):
            if total < form.extra:
                continue
            fixed = limited(problem, {node: numbers[node] for node in self._options.group_by})
            rows = search(fixed, MAX_SOLUTIONS, own_nodes, most=total - form.extra).rows
            for row, sum_ in zip(_nodes(rows, len(own_nodes)).tolist(), rows.totals.tolist(), strict=True):
                key = tuple(row)
                least[key] = min(least.get(key, sum_ + form.extra), sum_ + form.extra)
        return sum(distance == total for distance in least.values())
