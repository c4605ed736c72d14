"""Looking back from known nodes that come late in a join: which nodes before them lead there at
all, and at least at which price.

So a join does not walk where no way leads to what is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from condgraph.patterns.distance.domains import BARRED, Domain, neighbours_of, starts_of
from condgraph.patterns.graph import Costs, Numbers
from condgraph.patterns.join.order import Step
from condgraph.patterns.problem import Problem

#: Neighbours that are looked at to see from a known node which nodes lead to it.
LOOK: Final = 1 << 18


@dataclass(slots=True)
class Guide:
    """The only nodes that a node of the pattern may be, ascending, with their own terms.

    `excess` is by how much a node, with all that hangs on it, costs more than the least terms of
    all that.
    """

    nodes: Numbers
    terms: Costs
    excess: Costs


def look_back(problem: Problem, steps: Sequence[Step], slack: int) -> dict[int, Guide]:
    """From known nodes that come late: which nodes before them lead there at all, and at least at
    which price.

    The least cost of what hangs on a node, which takes the place of the sum of the least terms in
    the bound; `slack` is what the bound leaves beyond that sum. Stops where there are too many
    neighbours to look at.
    """
    guides: dict[int, Guide] = {}
    for step in reversed(steps):
        domain, guide = problem.domains[step.node], guides.get(step.node)
        if guide is None and domain.open:
            continue
        if guide is None:
            nodes, terms = domain.within(domain.least + slack)
            guide = Guide(nodes, terms, terms - domain.least)
        if not len(guide.nodes):
            guides[step.parent] = Guide(guide.nodes, guide.terms, guide.excess)
            continue
        if int(problem.graph.degrees(guide.nodes).sum()) > LOOK:
            continue
        limit = min(step.bond.least + slack, BARRED - 1)
        owner, found, costs = neighbours_of(problem.graph, guide.nodes, step.bond.weights(step.node), limit)
        excess = costs - step.bond.least + guide.excess.take(owner)
        keep = excess <= slack
        guides[step.parent] = _narrowed(problem.domains[step.parent], guides.get(step.parent), found[keep], excess[keep], slack)
    return guides


def _narrowed(domain: Domain, before: Guide | None, found: Numbers, excess: Costs, slack: int) -> Guide:
    """What a node may be by what it is known to lead to, together with what was known of it before."""
    order = np.argsort(found, kind="stable")
    found, excess = found[order], excess[order]
    if len(found):
        starts = starts_of(found)
        found, excess = found[starts], np.minimum.reduceat(excess, starts)
    if before is None:
        own = domain.at(found)
        terms = np.zeros(len(found), np.int64) if own is None else own
        more = terms - domain.least
    else:
        place = np.minimum(before.nodes.searchsorted(found), max(len(before.nodes) - 1, 0))
        same = np.flatnonzero(before.nodes.take(place) == found) if len(before.nodes) else np.empty(0, np.int64)
        found, excess, place = found[same], excess[same], place[same]
        terms, more = before.terms.take(place), before.excess.take(place)
    excess = excess + more
    keep = excess <= slack
    return Guide(found[keep], terms[keep], excess[keep])
