"""Which statements parallel edges of a pattern take: distinct ones of least cost, and of these the
least ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Any, Final

from condgraph.engine.pieces import watched
from condgraph.patterns.join.distinct import assigned

#: More edges than these are assigned by the Hungarian method.
_FEW: Final = 5


def choose(prices: Sequence[Sequence[int]], idents: Sequence[Any], barred: int) -> list[int] | None:
    """The statement of each edge, as places in `prices` (one row a statement, one column an edge);
    None where every choice has a price of `barred` or more.

    Least sum, then least ids in the order of the edges. A statement that is not among the first q
    of some edge, q being how many edges there are, is in no best choice: one of these q would be
    free, and come before it.

    >>> choose([[5, 0], [3, 1], [3, 9]], ["a", "b", "c"], 100)
    [1, 0]
    """
    edges = len(prices[0])
    if edges > _FEW:
        assignment = _assigned(prices, idents)
        return None if any(prices[place][edge] >= barred for edge, place in enumerate(assignment)) else assignment
    if edges == 1:
        place = min(watched(range(len(prices))), key=lambda place: (prices[place][0], idents[place]))
        return None if prices[place][0] >= barred else [place]
    states: dict[frozenset[int], tuple[int, tuple[Any, ...], tuple[int, ...]]] = {frozenset(): (0, (), ())}
    for edge in range(edges):
        near = nsmallest(edges, watched(range(len(prices))), key=lambda place: (prices[place][edge], idents[place]))
        grown: dict[frozenset[int], tuple[int, tuple[Any, ...], tuple[int, ...]]] = {}
        for used, (total, names, places) in states.items():
            for place in near:
                if place in used or prices[place][edge] >= barred:
                    continue
                state = total + prices[place][edge], (*names, idents[place]), (*places, place)
                key = used | {place}
                if key not in grown or state < grown[key]:
                    grown[key] = state
        states = grown
    return list(min(states.values())[2]) if states else None


def _assigned(prices: Sequence[Sequence[int]], idents: Sequence[Any]) -> list[int]:
    """The same for many edges: the ids, edge by edge, are the digits of a number behind the price,
    so that the least sum is the first choice.
    """
    edges, size = len(prices[0]), len(prices)
    rank = {place: number for number, place in enumerate(sorted(range(size), key=lambda place: idents[place]))}
    scale = [size ** (edges - 1 - edge) for edge in range(edges)]
    unit = size**edges
    return assigned(
        [[price * unit + rank[place] * scale[edge] for edge, price in enumerate(row)] for place, row in enumerate(prices)]
    )
