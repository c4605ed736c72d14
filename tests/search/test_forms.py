"""Every option at once, by brute force: values, edges that stand for paths of two, edges that are
left out, on random graphs. Stores are asked the same cases (`tests/matrix/test_match_forms.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import condgraph
from condgraph.languages.pattern.pattern import Pattern, PatternEdge, PatternNode
from condgraph.patterns.match import match
from condgraph.patterns.matches import Matches
from tests.search.reference import Node, Reference
from tests.search.test_reference import ENCODER, idents_of, node_of
from tests.search.worlds import a_case
from tests.support.lanes import by_lane

GRAPHS = by_lane(20, 200, 1000)
#: Mappings by distance: what they are, and what their edges to values are.
Mapping = tuple[int, tuple[Node, ...]]
NAMES = ("injective", "free", "induced", "directed", "k_nodes", "k_relations", "k_types")


def plain(pattern: Pattern) -> Pattern:
    """A pattern without its values."""
    size = pattern.things
    return Pattern(pattern.nodes[:size], tuple(edge for edge in pattern.edges if max(edge.head, edge.tail) < size))


def paths_of_two(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern in which one edge is two: either half has its relation, the other any, either way."""
    size = len(pattern.nodes)
    nodes = (*pattern.nodes, PatternNode("UNKNOWN 99", False))
    for number, edge in enumerate(pattern.edges):
        for named, free in (((edge.head, size), (size, edge.tail)), ((size, edge.tail), (edge.head, size))):
            edges = list(pattern.edges)
            edges[number] = replace(edge, head=named[0], tail=named[1])
            yield Pattern(nodes, (*edges, PatternEdge(free[0], "UNKNOWN 99", free[1], False, loose=True)))


def without_one(pattern: Pattern) -> Iterator[tuple[Pattern, Pattern]]:
    """A pattern with a named edge left out, and the same without its values; what is unknown, and what
    is a value, stays joined to something.
    """
    for edge in pattern.edges:
        rest = tuple(one for one in pattern.edges if one != edge)
        joined = {node for one in rest for node in (one.head, one.tail)}
        lost = [pattern.nodes[node] for node in (edge.head, edge.tail) if node not in joined]
        if rest and edge.known and all(node.known and node.value is None for node in lost):
            shorter = Pattern(pattern.nodes, rest)
            yield shorter, plain(shorter)


def mappings(reference: Reference, pattern: Pattern, asked: dict[str, Any]) -> dict[tuple[Node, ...], int]:
    """Every mapping of the pattern's nodes, with the least that a form of the pattern costs."""
    apart = {
        pattern.number(name): {node for node in reference.nodes if reference.text(node) == one}
        for name, one in asked["distinct_from"].items()
    }
    size = pattern.things
    least: dict[tuple[Node, ...], int] = {}

    def see(form: Pattern, valued: Pattern, extra: int) -> None:
        for total, nodes, *_ in reference.solutions(form, distinct_from=apart, **{name: asked[name] for name in NAMES}):
            values = reference.values(valued, nodes, asked["directed"])
            if values is not None:
                total += extra + sum(cost for cost, _ in values)
                least[nodes[:size]] = min(least.get(nodes[:size], total), total)

    own = plain(pattern)
    see(own, pattern, 0)
    for form in paths_of_two(own) if asked["stretch"] else ():
        see(form, pattern, 250_000)
    if asked["leave_out"] and min(least.values(), default=1_000_000) >= 1_000_000:
        for valued, form in without_one(pattern):
            see(form, valued, 1_000_000)
    return least


def wanted(reference: Reference, pattern: Pattern, asked: dict[str, Any]) -> list[tuple[int, tuple[Node, ...], int]]:
    """The distance, the nodes and the count of each solution."""
    least = mappings(reference, pattern, asked)
    by = [pattern.number(name) for name in asked["group_by"]]
    ordered = sorted((total, nodes) for nodes, total in least.items())
    counts: dict[Any, int] = {}
    groups: dict[Any, Mapping] = {}
    for total, nodes in ordered:
        key = tuple(nodes[number] for number in by)
        counts[total, key] = counts.get((total, key), 0) + 1
        groups.setdefault(key if by else nodes, (total, nodes))
    chosen = list(groups.values())
    chosen = [one for one in chosen if one[0] == chosen[0][0]] if asked["k"] is None else chosen[: asked["k"]]
    return [(total, nodes, counts[total, tuple(nodes[number] for number in by)]) for total, nodes in chosen]


def adds_up(found: Matches, about: str) -> None:
    """Whether each distance is the sum of what the solution says."""
    for one in found.solutions:
        parts = [part.term or 0 for part in (*one.nodes, *one.edges)]
        parts += [edge.against + edge.stretch for edge in one.edges]
        left_out = len(found.pattern.edges) - len(one.edges)
        assert sum(parts) + 1_000_000 * left_out == one.total, about


@pytest.mark.parametrize("batch", range(10))
def test_solutions_are_those_of_the_definitions(batch: int) -> None:
    for seed in range(batch * GRAPHS // 10, (batch + 1) * GRAPHS // 10):
        items, cases = a_case(random.Random(seed))
        graph = condgraph.open("memory:")
        graph.add(items)
        reference = Reference(items, idents_of(graph.current), ENCODER)
        for pattern, asked in cases:
            if asked["stretch"] and len(reference.nodes) > 8:
                continue
            about = f"seed {seed}: {pattern} {asked}"
            found = match(graph.current, pattern, encoder=ENCODER, **asked)
            things = pattern.things
            assert [
                (one.total, tuple(node_of(node.value) for node in one.nodes[:things]), one.count) for one in found.solutions
            ] == wanted(reference, pattern, asked), about
            adds_up(found, about)


def test_the_cases_have_every_form() -> None:
    seen = {"values": 0, "stretched": 0, "left out": 0}
    for seed in range(25):
        items, cases = a_case(random.Random(seed))
        graph = condgraph.open("memory:")
        graph.add(items)
        for pattern, asked in cases:
            for one in match(graph.current, pattern, encoder=ENCODER, **asked).solutions:
                seen["values"] += len(one.nodes) > pattern.things
                seen["stretched"] += any(edge.other is not None for edge in one.edges)
                seen["left out"] += len(one.edges) < len(pattern.edges)
    assert min(seen.values()) >= 3, seen
