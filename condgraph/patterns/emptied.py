"""Explains an empty search: which option or edge emptied it, and what the nearest looser search finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from condgraph.engine.bounds import within
from condgraph.engine.errors import DeadlineError
from condgraph.languages.pattern.pattern import Pattern
from condgraph.patterns.options import MatchOptions
from condgraph.patterns.result import Solution

#: The most seconds that all looser searches together may take.
SECONDS: Final = 2.0
#: The most edges that are left out one by one.
_EDGES: Final = 8

#: Searches for the nearest solution of a pattern; returns None if there is none.
Asked = Callable[[Pattern, MatchOptions], Solution | None]


def emptied(pattern: Pattern, options: MatchOptions, ask: Asked) -> list[str]:
    """Return what emptied a search, as lines for a user, and the nearest solutions that looser searches find."""
    explained: list[tuple[int, str]] = []
    late = False
    try:
        with within(SECONDS):
            for change, looser in _looser(options):
                solution = ask(pattern, looser)
                if solution is not None:
                    explained.append((solution.total, f"{change} there is one: {solution}"))
            for number, edge in enumerate(pattern.edges[:_EDGES] if not explained else ()):
                remaining = tuple(other_edge for position, other_edge in enumerate(pattern.edges) if position != number)
                if not remaining:
                    continue
                solution = ask(_without(pattern, remaining), replace(options, group_by=(), distinct_from=(), k=1))
                if solution is not None:
                    ends = pattern.nodes[edge.head].text, pattern.nodes[edge.tail].text
                    change = f"without ({ends[0]}) -[{edge.relation}]-> ({ends[1]})"
                    explained.append((solution.total, f"{change} there is one: {solution}"))
    except DeadlineError:
        late = True
    # A stable order: by distance, then in the order tried.
    lines = [line for _, line in sorted(explained, key=lambda explanation: explanation[0])]
    if not lines and not late:
        lines.append("loosening any one option, or leaving out any one edge, finds none either")
    return lines


def _looser(options: MatchOptions) -> Iterator[tuple[str, MatchOptions]]:
    """Yield the options with each one that narrows the search loosened on its own."""
    changes: list[tuple[bool, str, dict[str, Any]]] = [
        (options.directed is True, "without directed=True", {"directed": None}),
        (options.injective, "without injective=True", {"injective": False}),
        (options.induced, "without induced=True", {"induced": False}),
        (options.k_types is not None, f"without k_types={options.k_types}, a filter by hints at types,", {"k_types": None}),
        (options.k_nodes is not None, f"without k_nodes={options.k_nodes}", {"k_nodes": None}),
        (options.k_relations is not None, f"without k_relations={options.k_relations}", {"k_relations": None}),
        (bool(options.distinct_from), "without distinct_from", {"distinct_from": ()}),
        (
            not options.free and not options.injective,
            "with free=True, which lets a statement be used again,",
            {"free": True},
        ),
    ]  # fmt: skip
    for applies, text, change in changes:
        if applies:
            yield text, replace(options, k=1, group_by=(), **change)


def _without(pattern: Pattern, rest: tuple[Any, ...]) -> Pattern:
    """Return a pattern of some of the edges and only their nodes."""
    texts = [
        (pattern.nodes[edge.head].text, edge.relation, pattern.nodes[edge.tail].text) for edge in rest
    ]  # fmt: skip
    return Pattern.build(texts)
