"""From a pattern to its answer on a snapshot: domains and bonds, the search, and how solutions are read back."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.bounds import check, check_bounds, within
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance.terms import Terms, TextTerms
from condgraph.patterns.emptied import emptied
from condgraph.patterns.matches import Matches
from condgraph.patterns.options import MatchOptions, options_for
from condgraph.patterns.priced import prepare
from condgraph.patterns.problem import Problem
from condgraph.patterns.reader import SnapshotReader
from condgraph.patterns.result import Hits, Report, Solution, Solutions
from condgraph.patterns.solve import solve

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.vectors.encoders import Encoder


def match(
    snapshot: Snapshot,
    program: Any,
    *,
    encoder: Encoder | str | None = None,
    terms: Terms | None = None,
    index: str = "",
    timeout: float | None = None,
    limit: int | None = None,
    cancelled: Event | None = None,
    **options: Any,
) -> Matches:
    """Return the subgraphs of a snapshot that are nearest to a pattern. See `Graph.match`."""
    check_bounds(timeout, limit, what="solutions to show")
    with within(timeout, cancelled):
        matches = _match(snapshot, program, encoder, terms, index, limit, options)
    return matches.keep_to(timeout)


def _match(
    snapshot: Snapshot,
    program: Any,
    encoder: Encoder | str | None,
    terms: Terms | None,
    index: str,
    limit: int | None,
    options: dict[str, Any],
) -> Matches:
    begin = time.perf_counter()
    pattern = Pattern.of(program)
    checked_options = options_for(pattern, **options)
    warnings: list[str] = []
    details: dict[str, Any] = {"program": program, "warnings": warnings, "index": index, "limit": limit}
    source = terms or TextTerms.of(snapshot, encoder)
    if isinstance(source, TextTerms):
        known_texts = [node.text for node in pattern.nodes[: pattern.things] if node.known]
        source.prepare(known_texts, [edge.relation for edge in pattern.edges if edge.known])
    first = prepare(snapshot, pattern, checked_options, source, warnings)

    def price(form: Pattern) -> Problem:
        return first if form is pattern else prepare(snapshot, form, checked_options, source, [])

    hits, reader, outcome = solve(
        pattern, checked_options, price, lambda form, problem, nodes: SnapshotReader(snapshot, form, problem, checked_options)
    )
    why = None
    if outcome.complete and not len(hits.totals):

        def ask(looser: Pattern, loosened: MatchOptions) -> Solution | None:
            solutions, solution_reader, ended = solve(
                looser,
                loosened,
                lambda form: prepare(snapshot, form, loosened, source, []),
                lambda form, problem, nodes: SnapshotReader(snapshot, form, problem, loosened),
            )
            if not ended.complete:
                check()  # If time is up, finding nothing tells nothing.
            return next(iter(Solutions(solutions, solution_reader)), None)

        why = emptied(pattern, checked_options, ask)
    report = Report(outcome.rounds, outcome.bound, time.perf_counter() - begin)
    return Matches(pattern, checked_options, hits, reader, report=report, encoder=source.id, why=why, **details)


def unsearched(program: Any, limit: int | None, seconds: float, options: dict[str, Any]) -> Matches:
    """Return the answer if the deadline came before the search: no subgraph, and not complete."""
    pattern = Pattern.of(program)
    hits = Hits(np.empty(0, np.int64), np.empty((0, pattern.things), np.int32), complete=False)
    nothing: Any = None
    return Matches(
        pattern, options_for(pattern, **options), hits, nothing, program=program, limit=limit, report=Report(seconds=seconds)
    )
