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
from condgraph.engine.errors import OptionError
from condgraph.languages.pattern.pattern import Pattern
from condgraph.languages.pattern.values import Condition
from condgraph.patterns.distance.domains import BARRED, Bond, Domain
from condgraph.patterns.distance.terms import Terms
from condgraph.patterns.emptied import emptied
from condgraph.patterns.graph import text_nodes
from condgraph.patterns.join.distinct import apart
from condgraph.patterns.matches import Matches
from condgraph.patterns.options import MatchOptions, options_for
from condgraph.patterns.priced import NamedNodes, members_of_nearest, priced
from condgraph.patterns.problem import Problem, Server
from condgraph.patterns.ranking import Rows, best_of_groups, first
from condgraph.patterns.reader import SnapshotReader, edges_between
from condgraph.patterns.remote.catalogue import Catalogue
from condgraph.patterns.remote.parts import PartPlan, Tally, part_plans
from condgraph.patterns.result import EdgeMatch, NodeMatch, Report, Solution, Solutions
from condgraph.patterns.solve import solve

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

    def between(self, catalogue: Catalogue, pairs: Sequence[tuple[int, int]]) -> Snapshot:
        """All statements and memberships between these pairs of nodes, in either direction."""
        ...


def no_values(condition: Condition) -> tuple[NDArray[Any], NDArray[Any]]:
    """Raise `OptionError`: the nodes that have a number or time are not looked for on servers."""
    raise OptionError(
        "numbers and times in patterns are looked for in process only",
        hint="write the value as a name, or load the graph into a store of condgraph's own",
    )


class NamedCatalogue:
    """A catalogue with its members, which pricing a pattern asks for (`patterns.priced.NamedNodes`)."""

    def __init__(self, catalogue: Catalogue, members: Callable[[tuple[int, ...]], NDArray[np.int32]]) -> None:
        self._catalogue, self._members = catalogue, members
        self.graph, self.predicate_names = catalogue.graph, catalogue.predicate_names
        self.identified, self.named, self.has_types = catalogue.identified, catalogue.named, len(catalogue.concepts) > 0

    def of_types(self, hint: str, k: int, terms: Terms, warnings: list[str]) -> Domain:
        """The members of the k types nearest to a hint."""
        return members_of_nearest(self._catalogue.concepts, self._members, self.graph.rank, hint, k, terms)

    def holders(self, condition: Condition) -> tuple[NDArray[Any], NDArray[Any]]:
        """Values are not looked for on servers."""
        return no_values(condition)

    def some_names(self) -> Sequence[str]:
        """Names of entities."""
        return self._catalogue.names[: 1 << 16]


class Parts:
    """The joins of a search on a store (`patterns.join.join.Server`)."""

    def __init__(self, store: JoiningStore, catalogue: Catalogue, tally: Tally) -> None:
        self.store, self.catalogue, self.tally = store, catalogue, tally
        self._labels: dict[tuple[int, int], list[int]] = {}

    def part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The first `length` solutions of a part, of each group where it has nodes of `by`.

        The server prices each bond alone. Where bonds of a row lie on the same two nodes, the row
        is put right here: it moves back, and what stood behind it comes first, so that more is
        asked for until enough stand before all that the server did not give.
        """
        bonds = [bond for bond in [*problem.bonds, *problem.loops.values()] if bond.first in nodes]
        if not problem.distinct or len(bonds) < 2:
            return self._part(problem, nodes, bound, length, by, top)
        rank, groups = problem.graph.rank, [node for node in by if node in nodes]
        wanted = length
        while True:
            rows, cut = self._part(problem, nodes, bound, wanted, by, top)
            right = apart(problem, rows, [], bonds, alone=True, between=self.between)
            changed = bool((right.totals != rows.totals).any())
            kept = right.take(np.flatnonzero(right.totals <= min(bound, BARRED - 1)))
            if not changed or wanted is None:
                if length is None or not groups:
                    return kept if length is None else first(kept, rank, length), cut or (length is not None and len(kept) > length)
                best = best_of_groups(kept, groups, rank, length)
                return best, cut or len(best) < len(kept)
            if groups or not cut:
                if not groups:
                    ordered = first(kept, rank, length or len(kept))
                    return ordered, len(ordered) < len(kept)
                wanted = None
                continue
            # What the server did not give stands behind the last row that it gave.
            ahead = first(_until(kept, rows.take(np.array([len(rows) - 1])), rank), rank, len(kept))
            if length is not None and len(ahead) >= length:
                return first(ahead, rank, length), True
            wanted *= 4

    def _part(
        self, problem: Problem, nodes: Sequence[int], bound: int, length: int | None, by: Sequence[int], top: int | None
    ) -> tuple[Rows, bool]:
        """The same with each bond priced alone."""
        rank, groups = problem.graph.rank, [node for node in by if node in nodes]
        few = None if length is None else length + problem.spare
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

    def between(self, ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The edges between pairs of nodes: position of the pair, ascending, and label."""
        pairs = list(zip(ones.tolist(), others.tolist(), strict=True))
        fresh = sorted({pair for pair in pairs if pair not in self._labels})
        for start in range(0, len(fresh), TOGETHER):
            some = fresh[start : start + TOGETHER]
            small = self.store.between(self.catalogue, some)
            self.tally.queries += 1
            numbers = SmallNumbers(small, self.catalogue)
            self._labels.update((pair, numbers.labels(*pair)) for pair in some)
        sizes = [len(self._labels[pair]) for pair in pairs]
        labels = [label for pair in pairs for label in self._labels[pair]]
        return np.arange(len(pairs)).repeat(sizes), np.array(labels, np.int64)


def _until(rows: Rows, last: Rows, rank: NDArray[Any]) -> Rows:
    """The rows that do not stand behind another one in the order of solutions."""
    after = rows.totals > last.totals[0]
    same = rows.totals == last.totals[0]
    for node in sorted(rows.columns):
        own, other = rank.take(rows.columns[node]), rank.take(last.columns[node][:1])[0]
        after |= same & (own > other)
        same &= own == other
    return rows.take(np.flatnonzero(~after))


class SmallNumbers:
    """The nodes and predicates of a small snapshot by the numbers of a catalogue."""

    def __init__(self, small: Snapshot, catalogue: Catalogue) -> None:
        self._snapshot, self._catalogue = small, catalogue
        texts = small.texts.take(text_nodes(small))
        self._texts = {text: small.entities + place for place, text in enumerate(texts)}
        names = {name: number for number, name in enumerate(catalogue.predicates)}
        self.predicates = [names.get(small.predicate_name(number), -1) for number in range(small.predicate_count)]

    def node(self, number: int) -> int:
        """The number of a node in the small snapshot; -1 where it has none."""
        value = self._catalogue.key(number)
        return self._texts.get(value, -1) if number >= self._catalogue.entities else self._snapshot.identified(value)

    def labels(self, one: int, two: int) -> list[int]:
        """The labels (`patterns.graph`) of all edges between two nodes, as seen from the first."""
        size = self._catalogue.graph.predicates
        a, b = self.node(one), self.node(two)
        if a < 0 or b < 0:
            return []
        found = []
        for number, outward in edges_between(self._snapshot, a, b):
            predicate = size - 1 if number < 0 else self.predicates[self._snapshot.predicate_of(number)]
            found.append(2 * size + predicate if one == two else 2 * predicate + (0 if outward else 1))
        return found


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
        self._numbers = SmallNumbers(small, catalogue)

    def _bonds(self, bonds: Sequence[Bond], one: int, two: int, numbers: Sequence[int]) -> dict[int, EdgeMatch]:
        return super()._bonds(bonds, self._numbers.node(one), self._numbers.node(two), numbers)

    def _predicate(self, number: int) -> int:
        return self._numbers.predicates[super()._predicate(number)]


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
        known = [node.text for node in pattern.nodes[: pattern.things] if node.known]
        prepare(known, [edge.relation for edge in pattern.edges if edge.known])
    warnings = list(noted)
    tally = tally or Tally()

    def price(form: Pattern) -> Problem:
        problem = priced(names, form, chosen, terms, warnings if form is pattern else [])
        problem.server = store.parts(catalogue, tally)
        return problem

    def read(form: Pattern, problem: Problem, nodes: NDArray[np.int32]) -> RemoteReader:
        reader = RemoteReader(store, catalogue, form, problem, chosen)
        reader.expect(nodes)
        return reader

    hits, reader, outcome = solve(pattern, chosen, price, read)
    why = None
    if outcome.complete and not len(hits.totals):

        def ask(looser: Pattern, loosened: MatchOptions) -> Solution | None:
            def price_looser(form: Pattern) -> Problem:
                problem = priced(names, form, loosened, terms, [])
                problem.server = store.parts(catalogue, Tally())
                return problem

            found, own, done = solve(
                looser, loosened, price_looser, lambda form, problem, nodes: RemoteReader(store, catalogue, form, problem, loosened)
            )
            if not done.complete:
                check()  # the time is up: that nothing was found says nothing
            return next(iter(Solutions(found, own)), None)

        why = emptied(pattern, chosen, ask)
    notes = (f"{tally.queries} queries", f"{tally.rows} rows")
    report = Report(outcome.rounds, outcome.bound, time.perf_counter() - begin, notes, tally.queries, tally.rows)
    found = Matches(
        pattern, chosen, hits, reader, program=program, warnings=warnings, report=report, encoder=terms.id, index=index,
        limit=limit, why=why,
    )  # fmt: skip
    return found, tally
