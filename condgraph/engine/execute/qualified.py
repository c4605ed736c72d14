"""The operator that tests qualifiers of statements, and the qualifiers that statements have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.algebra import Condition, WhereQualifier
from condgraph.engine.execute.conditions import decide, holds
from condgraph.engine.execute.facts import comparable, literal, sorted_matches
from condgraph.engine.execute.factset import FactSet, Runs
from condgraph.engine.execute.sets import EMPTY, Numbers, distinct
from condgraph.engine.snapshot.ordered import Cells, add_types
from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


def where_qualifier(run: Run, node: WhereQualifier) -> FactSet:
    """The facts of which some qualifier of the key satisfies the test."""
    snapshot = run.snapshot
    facts, condition = run.facts(node.facts), node.condition
    key = snapshot.predicate(node.key)
    if key < 0:
        return facts.keep(EMPTY)
    if literal(condition):
        if facts.small():
            return facts.keep(_one_by_one(run, facts.all(), key, condition))
        found = _by_qualifier(run, facts, key, condition)
        if found is not None:
            return facts.keep(found)
    statements = facts.all()
    positions, numbers = qualifiers_of(run, statements, key)
    cells = Cells(len(numbers), lambda name: snapshot.arrays.get(f"q.{name}").take(numbers))
    run.warn_incomparable(cells, condition)
    return facts.keep(statements[distinct(positions[holds(run, condition, cells)], len(statements))])


def qualifiers_of(run: Run, statements: Numbers, key: int) -> tuple[Numbers, Any]:
    """The qualifiers of a key of sorted statements: for each the position of its statement, and its
    own number.
    """
    positions, numbers = run.snapshot.qualifiers(statements)
    chosen = (run.snapshot.arrays.get("q.key").take(numbers) == key).nonzero()[0]
    return positions.take(chosen), numbers.take(chosen)


def _one_by_one(run: Run, statements: Numbers, key: int, condition: Condition) -> Numbers:
    """A few statements are looked at one by one."""
    ordered, satisfies = run.snapshot.ordered("q"), decide(run, condition)
    owned = qualifiers_one_by_one(run, statements, key)
    run.warn_types(add_types(ordered, [number for _, number in owned]), condition)
    found = dict.fromkeys([statement for statement, number in owned if satisfies(ordered, number)])
    return statements if len(found) == len(statements) else np.array(list(found), np.int32)


def qualifiers_one_by_one(run: Run, statements: Numbers, key: int | None) -> list[tuple[int, int]]:
    """The qualifiers of a key (None: all) of a few statements: each with its statement, both by
    number.
    """
    offsets, keys = run.snapshot.arrays.view("q.offsets"), run.snapshot.arrays.view("q.key")
    found = []
    for statement in statements.tolist() if len(offsets) else ():
        for number in range(offsets[statement], offsets[statement + 1]):
            if key is None or keys[number] == key:
                found.append((statement, number))
    return found


def _by_qualifier(run: Run, facts: FactSet, key: int, condition: Condition) -> Numbers | None:
    """The facts with a qualifier whose value satisfies a test on literals; None where it is better
    to look at all facts.
    """
    snapshot = run.snapshot
    ordered = snapshot.ordered("q")
    owner = snapshot.arrays.get("q.owner")
    runs: Runs = []
    parts: list[Numbers] = []
    others: list[tuple[Kind, str, int, int]] = []
    for kind, unit, low, high in snapshot.qualifier_groups(key):
        if comparable(condition, kind, unit):
            found = sorted_matches(run, condition, ordered, kind, unit, low, high)
            if isinstance(found, list):
                runs.extend(found)
            else:
                parts.append(snapshot.arrays.get("qkey.items").take(found))
        elif kind is not Kind.UNKNOWN:
            others.append((kind, unit, low, high))
    if facts.few():
        size = sum(high - low for low, high in runs) + sum(high - low for _, _, low, high in others) + sum(map(len, parts))
        if size > 4 * len(facts.all()):
            return None
    parts.extend(ordered.numbers(low, high) for low, high in runs)
    for kind, unit, low, high in others:
        run.leave_out(kind, unit, len(facts.having(owner.take(ordered.numbers(low, high)))), condition)
    numbers = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY
    return distinct(facts.having(owner.take(numbers)), snapshot.statements)
