"""Operators that look at a whole set or bag: counts, sums, extremes, existence."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import Best, Count, Exists, Extreme, Mean, Mode, Scan, Some, Sum
from condgraph.engine.execute.bags import Bag, Part
from condgraph.engine.execute.facts import literal, object_cells, scan
from condgraph.engine.execute.factset import FEW
from condgraph.engine.execute.sets import EMPTY, Numbers, distinct
from condgraph.engine.execute.tests import Mask, decide, holds
from condgraph.engine.snapshot.ordered import Cells, add_types
from condgraph.engine.values import NO_UNIT, Kind, Quantity, format_number, parse_number

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


def competing(run: Run, cells: Cells, what: str) -> Mask:
    """The cells of the most frequent comparable type and unit (ties: time first, then unit by name); the rest gives a warning."""
    kind, unit = cells["kind"], cells["unit"]
    ordered: Mask = (kind == Kind.QUANTITY) | (kind == Kind.TIME)
    groups = Counter(zip(kind[ordered].tolist(), unit[ordered].tolist(), strict=True))
    if not groups:
        return ordered
    texts = run.snapshot.texts

    def rank(group: tuple[int, int]) -> tuple[int, int, str]:
        return -groups[group], -group[0], texts[group[1]] if group[1] >= 0 else ""

    best = min(groups, key=rank)
    mask: Mask = ordered & (kind == best[0]) & (unit == best[1])
    rest = len(cells) - int(mask.sum())
    if rest:
        unit_text = f" in {texts[best[1]]}" if best[1] >= 0 else ""
        run.warn(f"{what}: {rest} values are no {Kind(best[0]).name.lower()}{unit_text} and do not compete")
    return mask


def _best_positions(run: Run, cells: Cells, positions: NDArray[np.int64], largest: bool) -> NDArray[np.int64]:
    """Positions of the best among cells of one type and unit: times by start for the smallest, by end for the largest."""
    if not len(positions):
        return positions
    every = len(positions) == len(cells)
    if cells["kind"][positions[0]] == Kind.TIME:
        keys: NDArray[Any] = cells["b" if largest else "a"]
    else:
        keys = cells.numbers()
    keys = keys if every else keys[positions]
    top = positions.compress(keys == (keys.max() if largest else keys.min()))
    if run.snapshot.inexact and cells["kind"][top[0]] == Kind.QUANTITY:
        top = top.compress(_exactly_best(run, cells["ref"][top], cells.numbers()[top], largest))
    return top


def _exactly_best(run: Run, refs: NDArray[np.int32], numbers: NDArray[np.float64], largest: bool) -> Mask:
    """Numbers a float cannot tell apart, compared as they were written: which of them are the best."""
    exact = [
        Fraction(Decimal(str(parse_number(run.snapshot.texts[r])))) if r >= 0 else Fraction(format_number(x))
        for r, x in zip(refs.tolist(), numbers.tolist(), strict=True)
    ]
    winner = max(exact) if largest else min(exact)
    return np.array([value == winner for value in exact])


def best(run: Run, node: Best) -> Numbers:
    """The entities with the best value of the key, all ties."""
    winners = best_facts(run, node)
    return distinct(run.snapshot.subjects(winners), run.snapshot.entities)


def best_facts(run: Run, node: Best) -> Numbers:
    """The statements that hold the best value."""
    snapshot, largest = run.snapshot, node.direction == "largest"
    facts = scan(run, Scan(node.of, (node.key,), family="attribute"))
    statements = facts.all()
    if not len(statements):
        run.warn(f"none of the {len(run.entities(node.of))} entities has a value of {node.key!r}")
        return EMPTY
    base, ordered = snapshot.relations, snapshot.ordered("att")
    (low, high), *_ = facts.runs
    groups = snapshot.groups(low - base, high - base)
    if len(groups) > 1:
        groups, statements = _largest_group(run, groups, statements, node.key)
    if not groups or groups[0][0] not in (Kind.QUANTITY, Kind.TIME):
        return EMPTY
    kind, _, begin, end = groups[0]
    if len(statements) == 1:
        return statements
    if kind is Kind.TIME and largest:
        # By the end; the order is by the start.
        ends = snapshot.arrays.get("att.b").take(statements - np.int32(base))
        return statements.compress(ends == ends.max())
    # The statements stand in the order of their values, and equal ones side by side.
    part = ordered.a if kind is Kind.TIME else ordered.x
    if len(statements) <= FEW:
        values = [part[number] for number in (statements - np.int32(base)).tolist()]
        ties = values.count(values[-1 if largest else 0])
        winners = statements[-ties:] if largest else statements[:ties]
        if not snapshot.inexact or kind is Kind.TIME or ties == 1:
            return winners
    best = part[int(statements[-1 if largest else 0]) - base]
    if largest:
        winners = statements[statements.searchsorted(np.int32(ordered.left(part, best, begin, end) + base)) :]
    else:
        winners = statements[: statements.searchsorted(np.int32(ordered.right(part, best, begin, end) + base))]
    if snapshot.inexact and kind is Kind.QUANTITY and len(winners) > 1:
        cells = object_cells(run, winners)
        winners = winners[_exactly_best(run, cells["ref"], cells.numbers(), largest)]
    return winners


def _largest_group(
    run: Run, groups: list[tuple[Kind, str, int, int]], statements: Numbers, key: str
) -> tuple[list[tuple[Kind, str, int, int]], Numbers]:
    """The comparable type and unit that most of the statements have (ties: time first, then unit by name), and these statements."""
    base = run.snapshot.relations
    begins = statements.searchsorted(np.array([group[2] for group in groups], np.int32) + np.int32(base)).tolist()
    sizes = [high - low for low, high in pairwise([*begins, len(statements)])]
    there = [i for i, size in enumerate(sizes) if size and groups[i][0] in (Kind.QUANTITY, Kind.TIME)]
    if not there:
        return [], EMPTY
    best = min(there, key=lambda i: (-sizes[i], -groups[i][0], groups[i][1]))
    kind, unit, _, _ = groups[best]
    if sizes[best] < len(statements):
        in_unit = f" in {unit}" if unit != NO_UNIT else ""
        run.warn(f"{key}: {len(statements) - sizes[best]} values are no {kind.name.lower()}{in_unit} and do not compete")
    return [groups[best]], statements[begins[best] : begins[best] + sizes[best]]


def extreme(run: Run, node: Extreme) -> Bag:
    """The best values with their carriers. Where nothing is a number or a time, texts compete, with a warning."""
    bag = run.values(node.values)
    cells = bag.cells()
    if not len(cells):
        run.warn("the largest or smallest of no values is nothing")
        return bag
    largest = node.direction == "largest"
    mask = competing(run, cells, node.direction)
    if mask.any():
        return bag.take(_best_positions(run, cells, np.flatnonzero(mask), largest))
    texts = bag.texts()
    if leading_numbers(texts) is not None:
        # 5-10 is more than 5-7: one number after the other.
        run.warn(f"{node.direction}: the values are texts and are compared by the numbers in them")
        ranks = [inner_numbers(text) or [] for text in texts]
        top = max(ranks) if largest else min(ranks)
        return bag.take(np.array([rank == top for rank in ranks]))
    run.warn(f"{node.direction}: the values are texts and are compared by code point")
    winner = max(texts) if largest else min(texts)
    return bag.take(np.array([text == winner for text in texts]))


def mode(run: Run, node: Mode) -> Bag:
    """The values that occur most or least often, with their carriers."""
    bag = run.values(node.values)
    texts = bag.texts()
    counts = Counter(texts)
    if not counts:
        run.warn("the most frequent of no values is nothing")
        return bag
    wanted = max(counts.values()) if node.direction == "largest" else min(counts.values())
    return bag.take(np.array([counts[text] == wanted for text in texts]))


def count(run: Run, node: Count) -> int:
    """How many entities, or distinct texts."""
    found: Any = run.results[id(node.of)]
    return len(set(found.texts())) if isinstance(found, Bag) else len(found)


def numbers_of(run: Run, bag: Bag, what: str) -> tuple[list[Any], str]:
    """The numbers of a bag as loaded, and their unit; what is no number, or of a less frequent unit, is warned of."""
    found = [value for value in bag.values() if isinstance(value, Quantity)]
    if not found and len(bag) and (numbers := leading_numbers(bag.texts())) is not None:
        run.warn(f"{what}: the values are texts and are read by the numbers they begin with")
        return numbers, NO_UNIT
    other = len(bag) - len(found)
    units = Counter(value.unit for value in found)
    unit = min(units, key=lambda u: (-units[u], u)) if units else NO_UNIT
    chosen = [value.number for value in found if value.unit == unit]
    other += len(found) - len(chosen)
    if other:
        in_unit = f" in {unit}" if unit != NO_UNIT else ""
        run.warn(f"{what}: {other} of {len(bag)} values are no numbers{in_unit} and are left out")
    return chosen, unit


_LEADING = re.compile(r"[^\w+\-−]{0,3}([-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?![\d:])", re.ASCII)


_INNER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII).findall


def leading_numbers(texts: list[str]) -> list[Any] | None:
    """The numbers that texts begin with; None where one of them begins with something else."""
    found = [_LEADING.match(text) for text in texts]
    if not texts or not all(found):
        return None
    return [parse_number(one[1].replace(",", "").replace("−", "-")) for one in found if one is not None]


def inner_numbers(text: str) -> list[Decimal] | None:
    """All numbers in a text that begins with one, by which `Extreme` compares such texts; None for others."""
    if _LEADING.match(text) is None:
        return None
    return [Decimal(number.replace(",", "")) for number in _INNER(text)]


def exact_sum(numbers: list[Any]) -> Fraction:
    """The exact sum of numbers as they were written (a float stands for its shortest text)."""
    return sum((Fraction(Decimal(repr(n)) if isinstance(n, float) else n) for n in numbers), Fraction(0))


def as_number(exact: Fraction) -> int | float:
    """An exact number as an integer where it is one, else the nearest float."""
    return int(exact) if exact.denominator == 1 else float(exact)


def total(run: Run, node: Sum) -> Bag:
    """The sum of all numbers; 0 of none."""
    bag = run.values(node.values)
    numbers, unit = numbers_of(run, bag, "sum")
    return _given(run, [Quantity(as_number(exact_sum(numbers)), unit)])


def mean(run: Run, node: Mean) -> Bag:
    """The mean of all numbers; nothing, with a warning, of none."""
    bag = run.values(node.values)
    numbers, unit = numbers_of(run, bag, "mean")
    if not numbers:
        run.warn("the mean of no numbers is nothing")
        return _given(run, [])
    return _given(run, [Quantity(as_number(exact_sum(numbers) / len(numbers)), unit)])


def _given(run: Run, values: list[Any]) -> Bag:
    return Bag(run, [Part("given", np.arange(len(values)), EMPTY, tuple(values))])


def some(run: Run, node: Some) -> bool:
    """Whether any value satisfies the test; the trace says how many do."""
    bag = run.values(node.values)
    few = bag.few() if literal(node.test) else None
    if few is not None:
        ordered, numbers = few
        satisfies = decide(run, node.test)
        run.warn_types(add_types(ordered, numbers), node.test)
        satisfied = sum([bool(satisfies(ordered, number)) for number in numbers])
    else:
        cells = bag.cells()
        run.warn_incomparable(cells, node.test)
        satisfied = int(holds(run, node.test, cells).sum())
    run.notes[id(node)] = f"{satisfied} of {len(bag)} values satisfy it"
    return satisfied > 0


def exists(run: Run, node: Exists) -> bool:
    """Whether there is any fact."""
    return len(run.facts(node.facts)) > 0
