"""Small random graphs with everything that a graph can hold, as items (`condgraph.engine.facts`).

A generator gets each choice from a `Pick`: `Dice` draws from a seed, fast enough for thousands of graphs; `drawn` lets
Hypothesis choose, which can then shrink a failure. There are few names, so that they are shared; some texts look like
numbers and times, and some keys are attribute, relation and qualifier at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.values import (
    OPEN_END,
    OPEN_START,
    UNKNOWN,
    UNKNOWN_END,
    UNKNOWN_START,
    Precision,
    Quantity,
    Time,
    text_of,
)

T = TypeVar("T")


class Pick(Protocol):
    """A source of random choices."""

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""

    def one(self, options: Sequence[T]) -> T:
        """Return one of the options."""


class Dice:
    """Random choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def one(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]


class _Drawn:
    """Choices made by Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def below(self, n: int) -> int:
        return self._draw(st.integers(0, n - 1))

    def one(self, options: Sequence[T]) -> T:
        return options[self._draw(st.integers(0, len(options) - 1))]


def drawn(generate: Callable[[Pick], T]) -> st.SearchStrategy[T]:
    """Return a generator as a Hypothesis strategy."""

    @st.composite
    def strategy(draw: st.DrawFn) -> T:
        return generate(_Drawn(draw))

    return strategy()


# -- values ----------------------------------------------------------------------------------------

ENTITIES = tuple(f"e{i}" for i in range(14))
CONCEPTS = tuple(f"c{i}" for i in range(5))
NAMES = ("Ann", "ann", "Ann Lee", "Åsa", "Zoë, the", "1960", "5 blip", 'x("y")', "🜁", "c1", "Bo", "Cy")
ATTRIBUTES = ("size", "born", "same", "note")
RELATIONS = ("knows", "part of", "same")
QUALIFIERS = ("start time", "place", "size", "of")
UNITS = ("1", "blip", "blop")
TEXTS = (*NAMES, "", "b", "B", "b, c", "1960-02-01", "-5", "0.1", "unknown")
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 5, 10, 2**53, 2**53 + 1, 2**55, 2**55 + 2, float(2**55), -(10**30), 10**30, 10**400),
    *(0.5, -0.5, 5.0, -0.0, 0.1, 1e-7, 12345.678, 1e22, 1e23, 10**23),
    *map(Decimal, ("0.1", "0.1000000000000000055511151231257827", "9007199254740993", "-0.50", "5.00", "1e5")),
)
QUANTITIES = tuple(Quantity(number, unit) for number in NUMBERS for unit in UNITS)
POINTS = (
    *map(Time.year, (-43, 0, 1959, 1960, 1961, 2000)),
    *(Time.month(1960, 1), Time.month(1960, 2), Time.month(-43, 3), Time.month(1999, 12)),
    *(Time.day(1960, 2, 1), Time.day(1960, 2, 29), Time.day(1961, 1, 1), Time.day(-43, 3, 15), Time.day(1959, 12, 31)),
    *(Time.second(1960, 2, 1, 0, 0), Time.second(1999, 12, 31, 23, 59, 59)),
)
SPANS = (
    *(Time.span(first, last) for first in POINTS[::3] for last in POINTS[::2] if first.start < last.end),
    *(Time.span(None, POINTS[3]), Time.span(POINTS[3], None), Time.span(None, None)),
)
TIMES = (*POINTS, *POINTS, *SPANS)


def a_value(pick: Pick) -> Any:
    """Return any value of an attribute; small numbers and years more often, so that values coincide."""
    kind = pick.below(12)
    if kind < 4:
        return pick.one(TEXTS)
    if kind < 6:
        return Quantity(pick.below(4), pick.one(UNITS))
    if kind < 8:
        return pick.one(QUANTITIES)
    return pick.one(TIMES) if kind < 11 else UNKNOWN


def a_ref(pick: Pick) -> Ref:
    """Return a reference to an entity or a concept; `e99` is never declared."""
    return Ref(pick.one((*ENTITIES, *ENTITIES, *CONCEPTS, "e99")))


def a_subject(pick: Pick, concepts: bool) -> str:
    """Return an entity or, sometimes, a concept."""
    return pick.one((*ENTITIES, *ENTITIES, *CONCEPTS) if concepts else ENTITIES)


def qualifiers(pick: Pick) -> tuple[tuple[str, Any], ...]:
    """Return up to three qualifiers, possibly with repeated keys."""
    if pick.below(2):
        return ()
    return tuple((pick.one(QUALIFIERS), a_ref(pick) if pick.below(5) == 0 else a_value(pick)) for _ in range(pick.below(4)))


def a_statement(pick: Pick, concepts: bool = True) -> Statement:
    """Return an attribute or a relation."""
    if pick.below(2):
        return Statement(a_subject(pick, concepts), pick.one(ATTRIBUTES), a_value(pick), qualifiers(pick))
    thing = a_ref(pick) if concepts else Ref(pick.one(ENTITIES))
    return Statement(a_subject(pick, concepts), pick.one(RELATIONS), thing, qualifiers(pick))


def declarations(pick: Pick) -> list[Any]:
    """Return entities with names and kinds, memberships and subclasses, often with cycles."""
    kinds = (EntityKind.ENTITY, EntityKind.ENTITY, EntityKind.ENTITY, EntityKind.ROW)
    items: list[Any] = [Entity(entity_id, pick.one(NAMES), pick.one(kinds)) for entity_id in ENTITIES]
    items += [Entity(entity_id, pick.one(NAMES), EntityKind.CONCEPT) for entity_id in CONCEPTS]
    items += [Member(pick.one((*ENTITIES, CONCEPTS[0])), pick.one(CONCEPTS)) for _ in range(pick.below(20))]
    items += [Subclass(pick.one(CONCEPTS), pick.one(CONCEPTS)) for _ in range(pick.below(7))]
    return items


def graph(pick: Pick) -> list[Any]:
    """Return the items of a graph: declarations, then statements, some of them twice; half of the graphs have no facts
    about concepts.
    """
    concepts = pick.below(2) == 1
    statements = [a_statement(pick, concepts) for _ in range(1 + pick.below(60))]
    repeated = [pick.one(statements) for _ in range(pick.below(6))]
    return [*declarations(pick), *statements, *repeated]


def padding(entities: int, *, facts: bool) -> list[Any]:
    """Return concepts that no program names, with or without facts of their own: they make the graph large compared
    with what a program reads.
    """
    items: list[Any] = [Entity(f"pad{i}", f"{'·' * 40}{i}", EntityKind.CONCEPT) for i in range(entities)]
    if facts:
        items += [Statement(f"pad{i}", "knows", Ref(f"pad{i + 1}")) for i in range(entities - 1)]
        items += [Statement(f"pad{i}", "size", Quantity(i % 7)) for i in range(entities)]
    return items


# -- graphs as stored: rows, raw texts, sources, unknown bounds ------------------------------------

SOURCES = ("films", "Zürich/57", "facts 2")


def stored_times() -> st.SearchStrategy[Time]:
    """Return a strategy for any interval that can be stored, with open and unknown bounds."""
    starts = st.sampled_from((OPEN_START, UNKNOWN_START)) | st.integers(-(2**45), 2**45)
    ends = st.sampled_from((OPEN_END, UNKNOWN_END)) | st.integers(-(2**45), 2**45)
    pairs = st.tuples(starts, ends).filter(lambda pair: pair[0] < pair[1])
    return st.builds(lambda pair, precision: Time(*pair, precision), pairs, st.sampled_from(Precision))


def stored_numbers() -> st.SearchStrategy[Any]:
    """Return a strategy for any finite number."""
    decimals = st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-(10**20), max_value=10**20)
    return st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False) | decimals | st.sampled_from(NUMBERS)


def stored_values() -> st.SearchStrategy[Any]:
    """Return a strategy for any value."""
    words = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(TEXTS)
    return words | st.builds(Quantity, stored_numbers(), st.sampled_from(UNITS)) | stored_times() | st.just(UNKNOWN)


def places() -> st.SearchStrategy[tuple[tuple[str, int], ...]]:
    """Return a strategy for the places of a fact: one or more sources and rows."""
    return st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(0, 9)), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def stored_items(draw: st.DrawFn, *, most: int = 12) -> list[Any]:
    """Return items with sources of their own."""
    ids = st.sampled_from((*ENTITIES[:4], *CONCEPTS[:2]))
    keys = st.sampled_from((*QUALIFIERS, "end time", "point in time"))
    refs = ids.map(Ref)
    qualified = st.lists(st.tuples(keys, stored_values() | refs), max_size=3).map(tuple)
    raw = st.none() | st.text(st.characters(codec="utf-8"), max_size=4)
    attributes = st.builds(Statement, ids, st.sampled_from(ATTRIBUTES), stored_values(), qualified, st.just(0), raw)
    relations = st.builds(Statement, ids, st.sampled_from(RELATIONS), refs, qualified)
    statements = draw(st.lists(attributes | relations, max_size=most))
    if statements:
        statements += draw(st.lists(st.sampled_from(statements), max_size=3))
    heads = [Source(name, f"/data/{name}.csv", "csv") for name in draw(st.lists(st.sampled_from(SOURCES), unique=True))]
    rows = [
        Sourced(Entity(f"t/{n}", f"t row {n}", EntityKind.ROW, n), ((SOURCES[0], n),)) for n in range(1, draw(st.integers(1, 4)))
    ]
    # Declarations come from a seed, since only the statements are worth shrinking.
    declared = declarations(Dice(draw(st.integers(0, 10**6))))
    named = [item for item in declared if isinstance(item, Entity) and item.kind is not EntityKind.ROW]
    links = [Sourced(item, draw(places())) for item in declared if not isinstance(item, Entity)]
    return [*heads, *named, *rows, *links, *(Sourced(statement, draw(places())) for statement in statements)]


def literal_of(value: Any) -> str:
    """Return a value as written in a program."""
    return "Ann" if isinstance(value, Ref) else text_of(value)
