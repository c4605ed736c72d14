"""Conflicts found by a loop over all pairs of statements: a second implementation of
`docs/how-to/find-contradictions.md`.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import condgraph
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.snapshot.readback import items
from condgraph.engine.values import UNKNOWN, Quantity, Time

#: Metres of each unit of the tests.
METRES = {"metre": 1, "kilometre": 1000}


def differ(a: Any, b: Any) -> str:
    """Return whether two values differ: "yes", "no" or "unclear"; entities are given by their names."""
    if a is UNKNOWN or b is UNKNOWN or a == b:
        return "no"
    if isinstance(a, Time) and isinstance(b, Time):
        common = min(a.end, b.end) - max(a.start, b.start)
        if common <= 0:
            return "yes"
        return "no" if common == min(a.end - a.start, b.end - b.start) else "unclear"
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        if a.unit == b.unit:
            return "yes" if a.number != b.number else "no"
        if a.unit in METRES and b.unit in METRES:
            sizes = [Fraction(str(quantity.number)) * METRES[quantity.unit] for quantity in (a, b)]
            return "yes" if sizes[0] != sizes[1] else "no"
        return "unclear"
    return "yes" if isinstance(a, str) and isinstance(b, str) else "unclear"


def moments(statement: Statement) -> tuple[Any, ...]:
    """Return the earliest and latest start and the earliest and latest end of a statement, each None if not stated, and
    whether it has times at all.
    """

    def stated(name: str) -> list[Time]:
        return [value for key, value in statement.qualifiers if key == name and isinstance(value, Time)]

    starts, ends = stated("start time"), stated("end time")
    keys = [key for key, _ in statement.qualifiers]
    unknown = {name for name in ("start time", "end time") if any(k == name and v is UNKNOWN for k, v in statement.qualifiers)}
    if "start time" not in keys and "end time" not in keys:
        points = stated("point in time")
        if not points or any(key == "point in time" and value is UNKNOWN for key, value in statement.qualifiers):
            return None, None, None, None, "point in time" in keys
        first, last = min(p.start for p in points), max(p.end for p in points) - 1
        return first, first, last, last, True
    start = (min(t.start for t in starts), min(t.end for t in starts) - 1) if starts else (None, None)
    end = (max(t.start for t in ends), max(t.end for t in ends) - 1) if ends else (None, None)
    if "start time" in unknown:
        start = None, start[1]
    if "end time" in unknown:
        end = end[0], None
    return start[0], start[1], end[0], end[1], True


def together(a: Statement, b: Statement) -> str:
    """Return whether two statements hold at the same time: "yes", "no" or "maybe"."""
    first, second = moments(a), moments(b)
    if not first[4] or not second[4]:
        return "yes" if first[4] == second[4] else "maybe"

    if first[0] == second[0] and first[3] == second[3] and (first[0], first[3]) != (None, None):
        return "yes"

    def before(x: Any, y: Any) -> str:
        """Return whether x ends before y starts."""
        starts_at_latest = y[1] if y[1] is not None else y[3]
        ends_at_earliest = x[2] if x[2] is not None else x[0]
        if x[3] is not None and y[0] is not None and x[3] < y[0]:
            return "yes"
        if starts_at_latest is not None and ends_at_earliest is not None and starts_at_latest <= ends_at_earliest:
            return "no"
        return "follows" if x[2] is not None and y[1] is not None else "maybe"

    answers = before(first, second), before(second, first)
    if answers == ("no", "no"):
        return "yes"
    return "no" if "yes" in answers or "follows" in answers else "maybe"


def by_hand(graph: condgraph.Graph, predicates: set[str]) -> set[tuple[Any, bool]]:
    """Return the conflicts of a graph, each with whether it is certain."""
    names = {graph.current.ident(n): graph.current.name(n) for n in range(graph.current.entities)}
    statements = defaultdict(list)
    for item in items(graph.current):
        inner = getattr(item, "item", item)
        if isinstance(inner, Statement) and inner.predicate in predicates:
            statements[inner.subject, inner.predicate].append(inner)
    conflicts = set()
    for group in statements.values():
        for a, b in itertools.combinations(group, 2):
            values = [names[statement.object.id] if isinstance(statement.object, Ref) else statement.object for statement in (a, b)]
            difference, overlap = differ(*values), together(a, b)
            if difference != "no" and overlap != "no":
                conflicts.add((frozenset((key_of(a), key_of(b))), difference == "yes" and overlap == "yes"))
    return conflicts


def key_of(statement: Statement) -> Any:
    object_key = ("entity", statement.object.id) if isinstance(statement.object, Ref) else statement.object
    qualifiers = frozenset((key, getattr(value, "id", value)) for key, value in statement.qualifiers)
    return statement.subject, statement.predicate, object_key, qualifiers


def listed(graph: condgraph.Graph, *predicates: str, **options: Any) -> set[tuple[Any, bool]]:
    """Return the conflicts that a graph lists, in the same form."""

    def key(one: condgraph.Evidence) -> Any:
        object_key = ("entity", one.object.id) if isinstance(one.object, condgraph.Entity) else one.object
        return one.subject.id, one.predicate, object_key, frozenset((k, getattr(v, "id", v)) for k, v in one.qualifiers)

    conflicts = graph.conflicts(*predicates, limit=None, **options)
    result = {(frozenset(map(key, conflict.statements)), conflict.certain) for conflict in conflicts}
    assert len(result) == len(conflicts)
    return result


def random_statements(count: int, seed: int) -> list[Statement]:
    """Return statements about few subjects, with values and times of every form."""
    dice = random.Random(seed)
    values = [
        Ref("A"), Ref("B"), "A", "text", UNKNOWN, Quantity(1), Quantity(1000, "metre"), Quantity(1, "kilometre"),
        Quantity(2, "kilometre"), Time.year(1984), Time.month(1984, 5), Time.day(1984, 5, 3), Time.year(1990),
        Time.span(Time.month(1983, 6), Time.month(1984, 6)),
    ]  # fmt: skip

    def time() -> Any:
        year = dice.randrange(1980, 1990)
        return dice.choice(
            [Time.year(year), Time.month(year, dice.randrange(1, 13)), Time.day(year, dice.randrange(1, 13), 5), UNKNOWN]
        )

    def qualifiers() -> list[tuple[str, Any]]:
        form = dice.randrange(6)
        if form == 0:
            return []
        if form == 1:
            return [("point in time", time()) for _ in range(dice.randrange(1, 3))]
        bounds = sorted((time() for _ in range(2)), key=lambda moment: moment.start if isinstance(moment, Time) else 0)
        names = {2: ("start time",), 3: ("end time",)}.get(form, ("start time", "end time"))
        return list(zip(names, bounds, strict=False))

    return [Statement(f"s{dice.randrange(count // 8)}", "p", dice.choice(values), tuple(qualifiers())) for _ in range(count)]


def with_planted(count: int, seed: int) -> tuple[list[Statement], set[Any]]:
    """Return statements with `count` planted conflicts, and the pairs that conflict; ten times as many subjects have
    pairs that follow each other, say the same in other words, or may or may not conflict.
    """
    dice = random.Random(seed)
    statements, planted = [], set()
    same = [
        (Quantity(1000, "metre"), Quantity(1, "kilometre")), (Time.year(-43), Time.month(-43, 3)), (Ref("A"), "A"), (UNKNOWN, "B"),
        (Time.year(1984), Time.day(1984, 5, 3)),
    ]  # fmt: skip
    different: list[tuple[Any, Any]] = [
        (Quantity(1001, "metre"), Quantity(1, "kilometre")), (Time.year(-43), Time.year(-44)), (Ref("A"), Ref("B")), ("A", "B"),
        (Time.month(1984, 4), Time.day(1984, 5, 3)),
    ]  # fmt: skip
    unclear = [(Quantity(1), Quantity(1, "metre")), (Quantity(3), "text")]

    def span(first: Any, last: Any) -> list[tuple[str, Any]]:
        return [(key, time) for key, time in (("start time", first), ("end time", last)) if time is not None]

    def year(one: int) -> Time:
        return dice.choice([Time.year(one), Time.month(one, 6), Time.day(one, 6, 3)])

    def successive() -> tuple[Any, Any]:
        at = dice.randrange(-60, 2020)
        return span(year(at), year(at + 2)), span(year(dice.choice([at + 2, at + 3])), dice.choice([None, year(at + 9)]))

    def overlapping() -> tuple[Any, Any]:
        at = dice.randrange(-60, 2020)
        return dice.choice(
            [([], []), (span(year(at), year(at + 9)), span(year(at + 2), year(at + 12))), (span(year(at), year(at + 9)),) * 2,
             (span(year(at), year(at + 9)), [("point in time", year(at + 4))])]
        )  # fmt: skip

    def undecided() -> tuple[Any, Any]:
        at = dice.randrange(-60, 2020)
        return dice.choice([([], span(year(at), None)), (span(None, year(at + 1)), span(None, year(at)))])

    for number in range(10 * count):
        if number < count:
            values, times = dice.choice(different), overlapping()
        else:
            values, times = dice.choice(
                [(dice.choice(same), overlapping()), (dice.choice(different), successive()), (dice.choice(unclear), overlapping()),
                 (dice.choice(different), undecided())]
            )  # fmt: skip
        pair = [Statement(f"s{number}", "p", value, tuple(time)) for value, time in zip(values, times, strict=True)]
        statements += dice.sample(pair, 2)
        if number < count:
            planted.add(frozenset(map(key_of, pair)))
    dice.shuffle(statements)
    return statements, planted
