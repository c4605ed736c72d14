"""The same question as a graph pattern, where relations alone describe what is asked for.

A description may mean one entity in two places, and a pattern has another entity for each of its
nodes. So a pattern is given only where the graph has such entities around the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from condgraph.questions.description import Ask, Description, Related
from condgraph.questions.facts import Facts
from condgraph.questions.locate import Runner

Triple = tuple[str, str, str]
#: How many relations a pattern has at most, and how many neighbours are tried at each.
_MOST_TRIPLES = 5
_MOST_TRIED = 2_000
_MOST_STEPS = 20_000


def pattern(ask: Ask, facts: Facts, runner: Runner) -> tuple[Triple, ...] | None:
    """The triples of a question that asks for one entity by relations alone; the unknown that stands
    first is the answer. The subgraph that answers is at distance 0.
    """
    if ask.kind != "QueryName":
        return None
    triples: list[Triple] = []
    if not _triples(ask.first, triples, [0]) or len(triples) > _MOST_TRIPLES:
        return None
    return tuple(triples) if _apart(ask.first, facts, int(runner.numbers(ask.first)[0])) else None


def _triples(described: Description, triples: list[Triple], count: list[int]) -> str | None:
    if described.name is not None:
        return described.name if not described.name.startswith("UNKNOWN") else None
    if described.union:
        return None
    count[0] += 1
    own = f"UNKNOWN {described.concept or 'thing'} {count[0]}"
    for condition in described.conditions:
        if not isinstance(condition, Related) or condition.qualifiers:
            return None
        other = _triples(condition.target, triples, count)
        if other is None:
            return None
        triples.append((own, condition.predicate, other) if condition.outward else (other, condition.predicate, own))
    return own


def _apart(described: Description, facts: Facts, entity: int) -> bool:
    """Whether an entity fits a description with another entity for every part of it."""
    left = [_MOST_STEPS]
    return next(_assigned([(described, entity)], frozenset({entity}), facts, left), None) is not None


def _assigned(
    open_: list[tuple[Description, int]], taken: frozenset[int], facts: Facts, left: list[int]
) -> Iterator[frozenset[int]]:
    """The entities that parts can have; `open_` are parts whose own relations are still to be met."""
    edges = [(entity, condition) for described, entity in open_ for condition in described.conditions]
    if not edges:
        yield taken
        return
    (entity, condition), rest = edges[0], edges[1:]
    later = [(Description(conditions=(other,)), at) for at, other in rest]
    assert isinstance(condition, Related)
    for neighbour in _neighbours(entity, condition, facts):
        left[0] -= 1
        if left[0] < 0:
            return
        if neighbour not in taken and _named(condition.target, neighbour, facts):
            yield from _assigned([*later, (condition.target, neighbour)], taken | {neighbour}, facts, left)


def _neighbours(entity: int, condition: Related, facts: Facts) -> list[int]:
    number = facts.snapshot.predicate(condition.predicate)
    found = facts.of(entity, number, relation=True) if condition.outward else facts.onto(entity, number)
    end = facts.target if condition.outward else facts.subject
    return list(dict.fromkeys(end(int(statement)) for statement in islice(found, _MOST_TRIED)))


def _named(target: Description, entity: int, facts: Facts) -> bool:
    return target.name is None or facts.snapshot.name(entity) == target.name
