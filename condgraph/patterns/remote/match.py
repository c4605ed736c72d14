"""From a pattern to its answer on a server: priced and driven by the client as in process, joined
by the server (`parts`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, check_bounds
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance.domains import Bond, Domain
from condgraph.patterns.distance.terms import Terms
from condgraph.patterns.graph import text_nodes
from condgraph.patterns.join.driver import search
from condgraph.patterns.matches import Matches
from condgraph.patterns.options import MatchOptions, options_for
from condgraph.patterns.priced import NamedNodes, members_of_nearest, priced
from condgraph.patterns.problem import Problem, Server
from condgraph.patterns.ranking import Rows, best_of_groups, first
from condgraph.patterns.reader import SnapshotReader
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.parts import PartPlan, Tally, part_plans
from condgraph.patterns.result import EdgeMatch, Hits, NodeMatch, Report

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Solutions whose statements are fetched together.
TOGETHER: Final = 1000


class PatternStore(Protocol):
    """A store that patterns are searched on."""

    def parts(self, catalogue: Catalogue, tally: Tally) -> Server:
        """What joins the connected parts of a pattern there."""
        ...

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]]) -> Snapshot:
        """All statements and memberships between these pairs of nodes, in either direction, as a
        small snapshot.
        """
        ...


class JoiningStore(Protocol):
    """A store that joins parts itself."""

    def rows(self, plan: PartPlan, catalogue: Catalogue, tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The solutions of a plan: sums, shape (n,), and numbers of nodes, shape (n, nodes of the
        plan).
        """
        ...

    def joined(
        self, catalogue: Catalogue, ones: Sequence[int], others: Sequence[int], forward: bool, backward: bool
    ) -> Sequence[bool]:
        """Which pairs of nodes an edge joins, from the first to the second, or back."""
        ...


class NamedCatalogue:
    """A catalogue with its members, which pricing a pattern asks for (`patterns.priced.NamedNodes`)."""

    def __init__(self, catalogue: Catalogue, members: Callable[[tuple[int, ...]], NDArray[np.int32]]) -> None:
        self._catalogue, self._members = catalogue, members
        self.graph, self.predicate_names = catalogue.graph, catalogue.predicate_names
        self.identified, self.named, self.has_types = catalogue.identified, catalogue.named, len(catalogue.concepts) > 0

    def of_types(self, hint: str, k: int, terms: Terms, warnings: list[str]) -> Domain:
        """The members of the k types nearest to a hint."""
        return members_of_nearest(self._catalogue.concepts, self._members, self.graph.rank, hint, k, terms)

    def some_names(self) -> Sequence[str]:
        """Names of entities."""
        return self._catalogue.names[: 1 << 16]


class Parts:
    """The joins of a search on a store (`patterns.join.join.Server`)."""

    def __init__(self, store: JoiningStore, catalogue: Catalogue, tally: Tally) -> None:
        self.store, self.catalogue, self.tally = store, catalogue, tally

    def part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The first `length` solutions of a part, of each group where it has nodes of `by`."""
        rank, groups = problem.graph.rank, [node for node in by if node in nodes]
        few = None if length is None else length + (len(problem.domains) - 1 if problem.injective else 0)
        # One more than asked for tells whether there are more; of groups the server gives the best,
        # or all rows to choose from.
        limit = None if length is None else length + 1
        if groups:
            limit = top if length == 1 else None
        grouped = groups if groups and length == 1 else []
        found = [Rows(np.empty(0, np.int64), {node: np.empty(0, np.int32) for node in nodes})]
        for plan in part_plans(problem, self.catalogue, nodes, bound, few=few, limit=limit, by=grouped, kept=groups):
            check()
            totals, numbers = self.store.rows(plan, self.catalogue, self.tally)
            self.tally.rows += len(totals)
            found.append(Rows(totals, {node: numbers[:, place] for place, node in enumerate(plan.nodes)}))
        rows = Rows.joined(found)
        if length is None:
            return rows, False
        before = len(rows)
        if groups:
            rows = best_of_groups(rows, groups, rank, length)
            # Groups of which the server gave the best alone: that others are there is not known,
            # and matters to pairs only.
            return rows, len(rows) < before or bool(grouped)
        rows = first(rows, rank, length)
        return rows, len(rows) < before

    def joined(
        self, problem: Problem, ones: NDArray[Any], others: NDArray[Any], forward: bool, backward: bool
    ) -> NDArray[np.bool_]:
        """Which of these pairs of nodes some edge joins."""
        keys, which = np.unique(ones.astype(np.int64) << 32 | others, return_inverse=True)
        first_ones, second_ones = (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist()
        found = self.store.joined(self.catalogue, first_ones, second_ones, forward, backward)
        self.tally.queries += 1
        return np.array(found, bool)[which]


class RemoteReader:
    """Reads solutions back: nodes from the catalogue, statements fetched when the first edge is
    looked at (`patterns.result.Reader`).
    """

    def __init__(
        self, store: PatternStore, catalogue: Catalogue, pattern: Pattern, problem: Problem, options: MatchOptions
    ) -> None:
        self._store, self._catalogue, self._pattern, self._problem, self._options = store, catalogue, pattern, problem, options
        self._ahead: list[tuple[int, ...]] = []
        self._read = False
        self._readers: dict[tuple[int, ...], _SmallReader] = {}

    def expect(self, solutions: NDArray[np.int32]) -> None:
        """The solutions there are, so that their statements are fetched together."""
        self._ahead = [tuple(row) for row in solutions.tolist()]

    def nodes(self, numbers: Sequence[int]) -> tuple[NodeMatch, ...]:
        """What the nodes are, with their terms."""
        if not self._read:
            self._read = True
            self._catalogue.expect({number for one in self._ahead for number in one})
        found = []
        for node, domain, number in zip(self._pattern.nodes, self._problem.domains, numbers, strict=True):
            terms = domain.at(np.array([number])) if node.known else None
            found.append(NodeMatch(node, self._catalogue.value(number), None if terms is None else int(terms[0])))
        return tuple(found)

    def edges(self, numbers: Sequence[int]) -> tuple[EdgeMatch, ...]:
        """The statement of each edge."""
        key = tuple(numbers)
        reader = self._readers.get(key)
        if reader is None:
            at = self._ahead.index(key) if key in self._ahead else -1
            together = [key] if at < 0 else self._ahead[at : at + TOGETHER]
            bonds = [*self._problem.bonds, *self._problem.loops.values()]
            pairs = sorted({(one[bond.first], one[bond.second]) for one in together for bond in bonds})
            small = self._store.between(self._catalogue, pairs)
            reader = _SmallReader(small, self._catalogue, self._pattern, self._problem, self._options)
            self._readers.update(dict.fromkeys(together, reader))
        return reader.edges(numbers)

    def count(self, numbers: Sequence[int], total: int) -> int:
        """How many solutions of the same group have this distance."""
        from condgraph.patterns.join.count import count
        from condgraph.patterns.join.driver import limited

        problem = limited(self._problem, {node: numbers[node] for node in self._options.group_by})
        problem.server = self._store.parts(self._catalogue, Tally())
        return count(problem, total)


class _SmallReader(SnapshotReader):
    """Statements read from a small snapshot, whose nodes and predicates have other numbers than the
    catalogue's.
    """

    def __init__(self, small: Snapshot, catalogue: Catalogue, pattern: Pattern, problem: Problem, options: MatchOptions) -> None:
        super().__init__(small, pattern, problem, options)
        self._catalogue = catalogue
        texts = small.texts.take(text_nodes(small))
        self._texts = {text: small.entities + place for place, text in enumerate(texts)}
        names = {name: number for number, name in enumerate(catalogue.predicates)}
        self._numbers = [names.get(small.predicate_name(number), -1) for number in range(small.predicate_count)]

    def _bonds(self, bonds: Sequence[Bond], one: int, two: int, numbers: Sequence[int]) -> dict[int, EdgeMatch]:
        return super()._bonds(bonds, self._small(one), self._small(two), numbers)

    def _small(self, number: int) -> int:
        value = self._catalogue.key(number)
        return self._texts[value] if number >= self._catalogue.entities else self._snapshot.identified(value)

    def _predicate(self, number: int) -> int:
        return self._numbers[super()._predicate(number)]


def match_remote(
    store: PatternStore,
    names: NamedNodes,
    catalogue: Catalogue,
    terms: Terms,
    program: Any,
    *,
    limit: int | None = None,
    index: str = "",
    tally: Tally | None = None,
    noted: Sequence[str] = (),
    **options: Any,
) -> tuple[Matches, Tally]:
    """The subgraphs on a store that are nearest to a pattern, in the order that a snapshot of it
    gives.

    `tally` has counted what finding the terms asks of the server; `noted` are warnings that stand
    before others.
    """
    begin = time.perf_counter()
    check_bounds(None, limit, what="solutions to show")
    pattern = Pattern.of(program)
    chosen = options_for(pattern, **options)
    prepare = getattr(terms, "prepare", None)
    if prepare is not None:
        prepare([*(node.text for node in pattern.nodes if node.known), *(e.relation for e in pattern.edges if e.known)])
    warnings = list(noted)
    tally = tally or Tally()
    problem = priced(names, pattern, chosen, terms, warnings)
    problem.server = store.parts(catalogue, tally)
    outcome = search(problem, chosen.k, chosen.group_by)
    nodes = np.stack([outcome.rows.columns[node] for node in range(len(pattern.nodes))], axis=1)
    hits = Hits(outcome.rows.totals, nodes, outcome.complete, outcome.more)
    notes = (f"{tally.queries} queries", f"{tally.rows} rows")
    report = Report(outcome.rounds, outcome.bound, time.perf_counter() - begin, notes, tally.queries, tally.rows)
    reader = RemoteReader(store, catalogue, pattern, problem, chosen)
    reader.expect(nodes)
    found = Matches(
        pattern, chosen, hits, reader, program=program, warnings=warnings, report=report, encoder=terms.id, index=index,
        limit=limit,
    )  # fmt: skip
    return found, tally
