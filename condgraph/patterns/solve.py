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
from condgraph.patterns.options import LEFT_OUT, MOST, NEAR, STRETCHED, MatchOptions
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
    found = []
    things = pattern.things
    nodes = (*pattern.nodes[:things], _MIDDLE, *pattern.nodes[things:])

    def moved(edge: PatternEdge) -> PatternEdge:
        return replace(edge, head=edge.head + (edge.head >= things), tail=edge.tail + (edge.tail >= things))

    for number, edge in enumerate(pattern.edges):
        if max(edge.head, edge.tail) >= things:
            continue
        for halves in (((edge.head, things), (things, edge.tail)), ((things, edge.tail), (edge.head, things))):
            edges = list(map(moved, pattern.edges))
            edges[number] = replace(edge, head=halves[0][0], tail=halves[0][1])
            edges.append(PatternEdge(*halves[1][:1], "UNKNOWN between", halves[1][1], False, loose=True))
            found.append(Form(Pattern(nodes, tuple(edges)), STRETCHED, number, True))
    return found


def shorter_forms(pattern: Pattern) -> list[Form]:
    """Return the forms in which a named edge is left out, as long as unknown nodes stay joined to something."""
    found = []
    for number, edge in enumerate(pattern.edges):
        rest = tuple(one for one in pattern.edges if one is not edge)
        joined = {node for one in rest for node in (one.head, one.tail)}
        lost = [node for node in (edge.head, edge.tail) if node not in joined]
        if rest and edge.known and all(pattern.nodes[node].known and pattern.nodes[node].value is None for node in lost):
            found.append(Form(Pattern(pattern.nodes, rest), LEFT_OUT, number))
    return found


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
    own = tuple(range(pattern.things))
    by = options.group_by or own
    wanted = MOST + 1 if options.k is None else options.k
    forms, problems = [form], [problem]
    best = _marked(outcome.rows, own, 0, 0, -1)
    for more, asked in ((stretched_forms, options.stretch), (shorter_forms, options.leave_out)):
        if not asked or not outcome.complete:
            continue
        if more is shorter_forms and len(best) and int(best.totals[0]) < NEAR:
            continue
        for one in more(pattern):
            most = None
            if len(best) >= wanted or (options.k is None and len(best)):
                most = int(best.totals[0 if options.k is None else wanted - 1]) - one.extra
                if most < 0:
                    continue
            other = price(one.pattern)
            # A mapping of the pattern's own nodes counts once, whatever is in between.
            found = search(other, options.k, by, most=most)
            outcome.rounds, outcome.complete = outcome.rounds + found.rounds, outcome.complete and found.complete
            if not len(found.rows):
                continue
            forms.append(one)
            problems.append(other)
            rows = _marked(found.rows, own, one.extra, len(forms) - 1, pattern.things if one.stretched else -1)
            # In the order of the forms: at equal distance, the pattern as written comes first.
            ranks: Any = _Ranks(problem.graph.rank)
            best = first(best_of_groups(Rows.joined([best, rows]), by, ranks), ranks, wanted)
            if options.k is None:
                best = best.take(np.flatnonzero(best.totals == best.totals[0]))
    outcome.more = outcome.more or (options.k is None and len(best) > MOST)
    best = best.take(np.arange(min(len(best), MOST)))
    nodes = _nodes(best, pattern.things + 2)
    readers = []
    for number, (one, other) in enumerate(zip(forms, problems, strict=True)):
        mine = nodes[nodes[:, -2] == number]
        readers.append(read(one.pattern, other, np.delete(mine, -2 if one.stretched else [-2, -1], axis=1)))
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
        form, reader, own = self._of(numbers)
        found = reader.nodes(own)
        things = self._pattern.things
        return (*found[:things], *found[things + 1 :]) if form.stretched else found

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """Return the statements of the edges, without an edge that is left out."""
        form, reader, own = self._of(numbers)
        found = list(reader.edges(own))
        if form.stretched:
            half = found.pop()
            found[form.edge] = replace(found[form.edge], stretch=form.extra, other=half.statement)
        given = [edge for number, edge in enumerate(self._pattern.edges) if form.stretched or number != form.edge]
        return tuple(replace(one, edge=edge) for one, edge in zip(found, given, strict=True))

    def count(self, numbers: Sequence[int], total: int) -> int:
        """Return how many mappings of the same group have this distance as their least."""
        own = tuple(range(self._pattern.things))
        least: dict[tuple[int, ...], int] = {}
        for form, problem in zip(self._forms, self._problems, strict=True):
            if total < form.extra:
                continue
            given = limited(problem, {node: numbers[node] for node in self._options.group_by})
            rows = search(given, MOST, own, most=total - form.extra).rows
            for row, sum_ in zip(_nodes(rows, len(own)).tolist(), rows.totals.tolist(), strict=True):
                key = tuple(row)
                least[key] = min(least.get(key, sum_ + form.extra), sum_ + form.extra)
        return sum(one == total for one in least.values())
