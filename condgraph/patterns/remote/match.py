"""From a pattern to its answer on a server: priced and driven by the client as in process, joined
by the server (`parts`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check, check_bounds
from condgraph.engine.period import Period
from condgraph.languages.pattern.pattern import Condition, Pattern
from condgraph.patterns.distance.domains import Domain
from condgraph.patterns.distance.terms import Terms
from condgraph.patterns.emptied import emptied
from condgraph.patterns.matches import Matches
from condgraph.patterns.options import MatchOptions, check_timed, options_for
from condgraph.patterns.priced import NamedNodes, members_of_nearest, priced
from condgraph.patterns.problem import Problem
from condgraph.patterns.remote.catalogue import Catalogue, Tally
from condgraph.patterns.remote.solutions import PatternStore, RemoteReader
from condgraph.patterns.result import Report, Solution, Solutions
from condgraph.patterns.solve import solve


class NamedCatalogue:
    """A catalogue with its members, which pricing a pattern asks for (`patterns.priced.NamedNodes`)."""

    def __init__(self, catalogue: Catalogue, of_types: Callable[[Sequence[str]], NDArray[np.int32]]) -> None:
        self._catalogue, self._of_types = catalogue, of_types
        self.graph, self.predicate_names = catalogue.graph, catalogue.predicate_names
        self.holding = catalogue.holding
        self.identified, self.named, self.has_types = catalogue.identified, catalogue.named, len(catalogue.concepts) > 0

    def of_types(self, hint: str, k: int, terms: Terms, warnings: list[str]) -> Domain:
        """The members of the k types nearest to a hint."""
        catalogue = self._catalogue

        def members(concepts: tuple[int, ...]) -> NDArray[np.int32]:
            return self._of_types([catalogue.key(number) for number in concepts])

        return members_of_nearest(catalogue.concepts, members, self.graph.rank, hint, k, terms)

    def holders(self, condition: Condition) -> None:
        """None: the server looks for values, under the bound."""

    def some_names(self) -> Sequence[str]:
        """Names of entities."""
        return self._catalogue.names[: 1 << 16]


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
    period: Period | None = None,
    **options: Any,
) -> tuple[Matches, Tally]:
    """The subgraphs on a store that are nearest to a pattern, in the order that a snapshot of it
    gives.

    `tally` has counted what finding the terms asks of the server; `noted` are warnings that stand
    before others. `period` is the time of the statements that the store looks at.
    """
    begin = time.perf_counter()
    check_bounds(None, limit, what="solutions to show")
    pattern = Pattern.of(program)
    chosen = options_for(pattern, **options)
    check_timed(period, chosen, "a server")
    prepare = getattr(terms, "prepare", None)
    if prepare is not None:
        known = [node.text for node in pattern.nodes[: pattern.things] if node.known]
        prepare(known, [edge.relation for edge in pattern.edges if edge.known])
    warnings = list(noted)
    tally = tally or Tally()

    server = store.parts(catalogue, tally)

    def price(form: Pattern) -> Problem:
        problem = priced(names, form, chosen, terms, warnings if form is pattern else [])
        # What one form fetched is there for the others.
        problem.server = server
        return problem

    def read(form: Pattern, problem: Problem, nodes: NDArray[np.int32]) -> RemoteReader:
        reader = RemoteReader(store, catalogue, form, problem, chosen)
        reader.expect(nodes)
        return reader

    hits, reader, outcome = solve(pattern, chosen, price, read)
    why = None
    if outcome.complete and not len(hits.totals):
        why = emptied(pattern, chosen, partial(_looser, store, names, catalogue, terms))
    notes = (f"{tally.queries} queries", f"{tally.rows} rows")
    report = Report(outcome.rounds, outcome.bound, time.perf_counter() - begin, notes, tally.queries, tally.rows)
    found = Matches(
        pattern, chosen, hits, reader, program=program, warnings=warnings, report=report, encoder=terms.id, index=index,
        limit=limit, why=why,
    )  # fmt: skip
    return found, tally


def _looser(
    store: PatternStore, names: NamedNodes, catalogue: Catalogue, terms: Terms, pattern: Pattern, options: MatchOptions
) -> Solution | None:
    """The first solution of a looser pattern, which says why the one that was asked has none."""

    def price(form: Pattern) -> Problem:
        problem = priced(names, form, options, terms, [])
        problem.server = store.parts(catalogue, Tally())
        return problem

    def read(form: Pattern, problem: Problem, nodes: NDArray[np.int32]) -> RemoteReader:
        return RemoteReader(store, catalogue, form, problem, options)

    found, reader, outcome = solve(pattern, options, price, read)
    if not outcome.complete:
        check()  # the time is up: that nothing was found says nothing
    return next(iter(Solutions(found, reader)), None)
