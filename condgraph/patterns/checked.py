"""Checking the answer to a pattern: the same search on a graph of its evidence alone finds the same
subgraphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from condgraph.engine.bounds import within
from condgraph.engine.check import Checked, built
from condgraph.engine.errors import OptionError
from condgraph.engine.evidence import Evidence, items
from condgraph.engine.facts import Entity
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.distance.terms import TextTerms
from condgraph.patterns.options import MatchOptions
from condgraph.patterns.priced import prepare
from condgraph.patterns.reader import SnapshotReader
from condgraph.patterns.result import Solution, Solutions
from condgraph.patterns.solve import solve

if TYPE_CHECKING:
    from condgraph.vectors.encoder import Encoder

#: Where fewer statements can give further subgraphs, so many are looked at.
_FURTHER: Final = 10_000
_RESTS: Final = "that no subgraph is nearer rests on the search of the whole graph"


class Found(Protocol):
    """What a check takes of the answer to a pattern (`matches.Matches`)."""

    pattern: Pattern
    options: MatchOptions
    encoder: str

    @property
    def evidence(self) -> Sequence[Evidence]:
        """The statements of the subgraphs that are shown."""

    @property
    def shown(self) -> list[Solution]:
        """The subgraphs that a limit leaves."""

    def __len__(self) -> int: ...


def check_matches(
    found: Found, evidence: Sequence[Evidence] | None, encoder: Encoder | str | None, timeout: float | None
) -> Checked:
    """Search a graph of the evidence for the same pattern; raises `OptionError` where the encoder
    is another one.
    """
    with within(timeout):
        return _check(found, evidence, encoder)


def _check(found: Found, evidence: Sequence[Evidence] | None, encoder: Encoder | str | None) -> Checked:
    given = found.evidence if evidence is None else evidence
    own = set(map(repr, found.evidence))
    differing = [f"no evidence of this answer: {fact}" for fact in given if repr(fact) not in own]
    snapshot = built(items(given))
    terms = TextTerms.of(snapshot, encoder)
    if terms.id != found.encoder:
        raise OptionError(f"the distances come from the encoder {found.encoder!r}", hint="give it: check(encoder=...)")
    # What is forbidden or left out by name or by rank is not all here: of such a search only that
    # the subgraphs are found counts.
    bounded = found.options.induced or found.options.approximate or bool(found.options.distinct_from)
    options = replace(found.options, distinct_from=(), k=_FURTHER) if bounded else found.options
    hits, reader, _ = solve(
        found.pattern,
        options,
        lambda form: prepare(snapshot, form, options, terms, []),
        lambda form, problem, nodes: SnapshotReader(snapshot, form, problem, options),
    )
    again = list(Solutions(hits, reader))
    there = {_ranked(one) for one in again}
    missing = [f"subgraph {one}" for one in found.shown if _ranked(one) not in there]
    if not bounded and not missing and [_ranked(one) for one in again[: len(found.shown)]] != [_ranked(one) for one in found.shown]:
        differing.append("nearer subgraphs are in the evidence, or others in their order")
    notes = [_RESTS]
    if len(found) > len(found.shown):
        notes.append(f"{len(found) - len(found.shown)} more subgraphs are not shown, and their statements are not in the evidence")
    return Checked(not (missing or differing), False, len(given), tuple(missing), tuple(differing), notes=tuple(notes))


def _ranked(solution: Solution) -> tuple[Any, ...]:
    nodes = tuple(match.value.id if isinstance(match.value, Entity) else match.value for match in solution.nodes)
    return solution.total, nodes
