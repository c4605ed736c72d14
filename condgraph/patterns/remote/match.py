"""Runs a pattern on a server: the client prices it and drives the search as in process; the server joins its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
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
from condgraph.patterns.remote.values import every_value
from condgraph.patterns.result import Report, Solution, Solutions
from condgraph.patterns.solve import solve


class NamedCatalogue:
    """A catalogue with the members of its concepts, for pricing a pattern (`patterns.priced.NamedNodes`)."""

    def __init__(self, store: PatternStore, catalogue: Catalogue, tally: Tally, *, whole: bool) -> None:
        """`whole` tells that the search is over the edges of the catalogue."""
        self._store, self._catalogue, self._tally, self.whole = store, catalogue, tally, whole
        self.graph, self.predicate_names = catalogue.graph, catalogue.predicate_names
        self.holding = catalogue.holding
        self.identified, self.named, self.has_types = catalogue.identified, catalogue.named, len(catalogue.concepts) > 0

    def of_types(self, hint: str, k: int, terms: Terms, warnings: list[str]) -> Domain:
        """Return the members of the k types nearest to a hint."""
        catalogue = self._catalogue

        def members(concepts: tuple[int, ...]) -> NDArray[np.int32]:
            return self._store.of_types(catalogue, [catalogue.key(number) for number in concepts])

        return members_of_nearest(catalogue.concepts, members, self.graph.rank, hint, k, terms)

    def holders(self, condition: Condition) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the nodes with such a value, and the predicate of each; None if the search looks for them under the
        bound.
        """
        if not self.whole:
            return None
        return self._store.holders(self._catalogue, None, every_value(self._catalogue, condition), self._tally)

    def some_names(self) -> Sequence[str]:
        """Return names of entities, at most 65,536."""
        return self._catalogue.names[: 1 << 16]


def match_remote(
    store: PatternStore,
    catalogue: Catalogue,
    terms: Terms,
    program: Any,
    *,
    names: NamedNodes | None = None,
    limit: int | None = None,
    index: str = "",
    tally: Tally | None = None,
    noted: Sequence[str] = (),
    period: Period | None = None,
    **options: Any,
) -> Matches:
    """Return the subgraphs on a store that are nearest to a pattern, in the order of a snapshot of it.

    `names` are those of the catalogue if None; `tally` already counts the queries for the terms; `noted` are warnings
    that come first. With `period`, only statements of that time match.
    """
    begin = time.perf_counter()
    check_bounds(None, limit, what="solutions to show")
    pattern = Pattern.of(program)
    checked_options = options_for(pattern, **options)
    check_timed(period, checked_options, "a server")
    prepare = getattr(terms, "prepare", None)
    if prepare is not None:
        known_texts = [node.text for node in pattern.nodes[: pattern.things] if node.known]
        prepare(known_texts, [edge.relation for edge in pattern.edges if edge.known])
    if period is not None:
        every, terms = terms.every, copy(terms)
        terms.passed_over = lambda text: store.passed_over(catalogue, every(text))  # type: ignore[method-assign]
    warnings = list(noted)
    tally = tally or Tally()
    copied = None if period is not None else store.copy_edges(catalogue)
    whole = copied is not None
    known_names = names or NamedCatalogue(store, catalogue, tally, whole=whole)
    server = None if whole else store.parts(catalogue, tally)

    def price(form: Pattern) -> Problem:
        problem = priced(known_names, form, checked_options, terms, warnings if form is pattern else [])
        # All forms of the pattern share what was fetched.
        problem.server = server
        return problem

    def read(form: Pattern, problem: Problem, nodes: NDArray[np.int32]) -> RemoteReader:
        return RemoteReader(store, catalogue, form, problem, checked_options, nodes)

    hits, reader, outcome = solve(pattern, checked_options, price, read)
    why = None
    if outcome.complete and not len(hits.totals):
        why = emptied(pattern, checked_options, partial(_looser, store, known_names, catalogue, terms, whole))
    notes = [f"{tally.queries} queries", f"{tally.rows} rows", *([] if copied is None else ["edges copied before"])]
    report = Report(outcome.rounds, outcome.bound, time.perf_counter() - begin, tuple(notes), tally.queries, tally.rows)
    matches = Matches(
        pattern, checked_options, hits, reader, program=program, warnings=warnings, report=report, encoder=terms.id, index=index,
        limit=limit, why=why,
    )  # fmt: skip
    sent = [tally] if copied is None else [copied, tally]
    matches.sparql = "\n\n".join(text for part in sent for text in part.sparql) or None
    matches.sql = "\n;\n".join(text for part in sent for text in part.sql) or None
    matches.cypher_queries, matches.pasted = tuple(query for part in sent for query in part.cypher), sent[0].pasted
    return matches


def _looser(
    store: PatternStore, names: NamedNodes, catalogue: Catalogue, terms: Terms, whole: bool, pattern: Pattern, options: MatchOptions
) -> Solution | None:
    """Return the first solution of a looser pattern, which explains why the original has none."""

    def price(form: Pattern) -> Problem:
        problem = priced(names, form, options, terms, [])
        problem.server = None if whole else store.parts(catalogue, Tally())
        return problem

    def read(form: Pattern, problem: Problem, nodes: NDArray[np.int32]) -> RemoteReader:
        return RemoteReader(store, catalogue, form, problem, options, nodes)

    hits, reader, outcome = solve(pattern, options, price, read)
    if not outcome.complete:
        check()  # out of time: an empty result proves nothing
    return next(iter(Solutions(hits, reader)), None)
