"""Operators that give bags of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.bags import Bag, Part
from condgraph.engine.execute.conditions import holds
from condgraph.engine.execute.facts import qualifiers_of, qualifiers_one_by_one
from condgraph.engine.execute.same_cells import distinct_positions
from condgraph.engine.execute.sets import EMPTY

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

#: Programs can double a bag at every step, which nothing but this would end.
MOST_VALUES = 50_000_000


def objects(run: Run, node: alg.Objects) -> Bag:
    """The object of each fact; of a backward scan the object is still the statement's."""
    snapshot = run.snapshot
    numbers = run.facts(node.facts).all()
    split = snapshot.split(numbers)
    parts = []
    if split:
        parts.append(Part("ent", snapshot.relation_object.take(numbers[:split]), numbers[:split]))
    if split < len(numbers) or not parts:
        parts.append(Part("att", numbers[split:] - np.int32(snapshot.relations), numbers[split:]))
    return Bag(run, parts)


def qualifiers(run: Run, node: alg.Qualifiers) -> Bag:
    """The values of one qualifier key, or of all."""
    snapshot = run.snapshot
    facts = run.facts(node.facts)
    statements = facts.all()
    key = None if node.key is None else snapshot.predicate(node.key)
    if facts.small():
        pairs = list(qualifiers_one_by_one(run, statements, key))
        numbers = np.array([number for _, number in pairs], np.int32)
        return Bag(run, [Part("q", numbers, np.array([statement for statement, _ in pairs], np.int32))])
    positions, found = snapshot.qualifiers(statements) if key is None else qualifiers_of(run, statements, key)
    return Bag(run, [Part("q", found, statements.take(positions))])


def predicates(run: Run, node: alg.Predicates) -> Bag:
    """The predicate of each fact."""
    facts = run.facts(node.facts)
    statements = facts.all()
    if facts.small():
        numbers = np.array([run.snapshot.predicate_of(statement) for statement in statements.tolist()], np.int32)
    else:
        numbers = run.snapshot.predicates(statements)
    return Bag(run, [Part("pred", numbers, statements)])


def qualifier_keys(run: Run, node: alg.QualifierKeys) -> Bag:
    """The qualifier keys of each fact."""
    statements = run.facts(node.facts).all()
    positions, numbers = run.snapshot.qualifiers(statements)
    return Bag(run, [Part("pred", run.snapshot.arrays.get("q.key").take(numbers), statements[positions])])


def names(run: Run, node: alg.Names) -> Bag:
    """The name of each entity."""
    found = run.entities(node.entities)
    return Bag(run, [Part("name", found, found)])


def row_numbers(run: Run, node: alg.RowNumbers) -> Bag:
    """The position of each row; entities that are no rows have none."""
    found = run.entities(node.entities)
    rows = run.snapshot.arrays.get("ent.row")
    found = found[rows[found] > 0] if len(rows) else EMPTY
    return Bag(run, [Part("row", found, found)])


def keep(run: Run, node: alg.FilterValues) -> Bag:
    """The values that satisfy the test."""
    bag = run.values(node.values)
    cells = bag.cells()
    run.warn_incomparable(cells, node.condition)
    return bag.take(holds(run, node.condition, cells))


def distinct(run: Run, node: alg.Distinct) -> Bag:
    """Each value once, the first carrier staying."""
    bag = run.values(node.values)
    if len(bag) < 2:
        return bag
    if (few := bag.few()) is not None:
        cells, numbers = few
        first: dict[tuple[int, ...], int] = {}
        for i, n in enumerate(numbers):
            first.setdefault((cells.ref[n], cells.a[n], cells.kind[n], cells.b[n], cells.unit[n], cells.precision[n]), i)
        return bag if len(first) == len(numbers) else bag.take(np.array(list(first.values())))
    # Attributes of one predicate are numbered by value, so that equal ones stand together.
    positions = distinct_positions(bag.cells(), ordered=len(bag.parts) == 1 and bag.parts[0].kind == "att")
    return bag if len(positions) == len(bag) else bag.take(positions)


def concat(run: Run, node: alg.Concat) -> Bag:
    """The bags one after the other."""
    bags = [run.values(value) for value in node.parts]
    total = sum(map(len, bags))
    if total > MOST_VALUES:
        raise PlanError(f"{total} values side by side are too many", hint="union of sets, or unique, keeps each value once")
    return Bag(run, [part for bag in bags for part in bag.parts])


def given(run: Run, node: alg.Constants) -> Bag:
    """Values written in the program."""
    return Bag(run, [Part("given", np.arange(len(node.values)), EMPTY, node.values)])
