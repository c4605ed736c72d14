"""Operators that need a whole set or bag: counts, sums, extremes, existence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import isqrt, lcm
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import AnySatisfies, ArgExtreme, Count, Deviation, Exists, Extreme, Mean, Median, Mode, Scan, Sum
from condgraph.engine.bounds import watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.conditions import decide, holds
from condgraph.engine.execute.facts import literal, object_cells, scan
from condgraph.engine.execute.left_out import most_frequent, no_such, outnumbered
from condgraph.engine.execute.number_texts import inner_numbers, leading_numbers, read_as_numbers, summed_numbers
from condgraph.engine.execute.sets import EMPTY, MAX_SINGLE, Bag, Mask, Numbers, distinct
from condgraph.engine.facts import shown
from condgraph.engine.operands import Inapplicable, plain, quotient
from condgraph.engine.snapshot.ordered import Cells, add_types
from condgraph.engine.values import NO_UNIT, Kind, Number, Quantity, as_float, exact, format_number, parse_number

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


#: Added to the numbers of units to make them positive: -1 is no unit, less a unit unknown to the graph.
_UNITS: Final = 1 << 31
_ORDERED: Final = (int(Kind.QUANTITY), int(Kind.TIME))


def competing(run: Run, cells: Cells, what: str) -> Mask:
    """Return a mask of the cells of the most frequent comparable type and unit (ties: time first, then unit by name),
    and warn of the others.
    """
    kind, unit = cells["kind"], cells["unit"]
    if kind[0] in _ORDERED and (kind == kind[0]).all() and (unit == unit[0]).all():
        return np.ones(len(kind), bool)
    ordered: Mask = (kind == Kind.QUANTITY) | (kind == Kind.TIME)
    # Type and unit as one number.
    keys = kind[ordered].astype(np.int64) << 32 | (unit[ordered].astype(np.int64) + _UNITS)
    if not len(keys):
        return ordered
    distinct_keys, sizes = (keys[:1], np.array([len(keys)])) if (keys == keys[0]).all() else np.unique(keys, return_counts=True)
    groups: dict[tuple[Kind, str], int] = {}
    units: dict[str, int] = {}
    for key, size in zip(distinct_keys.tolist(), sizes.tolist(), strict=True):
        number = (key & 0xFFFFFFFF) - _UNITS
        name = run.scope.text(number) if number != -1 else ""
        groups[Kind(key >> 32), name], units[name] = size, number
    best, name = most_frequent(groups)
    mask: Mask = ordered & (kind == best) & (unit == units[name])
    ignored = len(cells) - int(mask.sum())
    if ignored:
        run.warn(outnumbered(what, ignored, best, name))
    return mask


def _best_positions(run: Run, cells: Cells, positions: NDArray[np.int64], largest: bool) -> NDArray[np.int64]:
    """Return the positions of the best cells among cells of one type and unit. For times, the smallest is by start,
    the largest by end.
    """
    if not len(positions):
        return positions
    all_cells = len(positions) == len(cells)
    if cells["kind"][positions[0]] == Kind.TIME:
        keys: NDArray[Any] = cells["b" if largest else "a"]
    else:
        keys = cells.numbers()
    keys = keys if all_cells else keys[positions]
    top = positions.compress(keys == (keys.max() if largest else keys.min()))
    if run.scope.inexact and cells["kind"][top[0]] == Kind.QUANTITY:
        top = top.compress(_best_exact(run, cells["ref"][top], cells.numbers()[top], largest))
    return top


def _best_exact(run: Run, refs: NDArray[np.int32], numbers: NDArray[np.float64], largest: bool) -> Mask:
    """Return a mask of the best among numbers that are equal as floats, compared as they were written."""
    exact = [
        Fraction(Decimal(str(parse_number(run.scope.text(r))))) if r != -1 else Fraction(format_number(x))
        for r, x in watched(zip(refs.tolist(), numbers.tolist(), strict=True))
    ]
    winner = max(watched(exact)) if largest else min(watched(exact))
    return np.array([value == winner for value in watched(exact)])


def best(run: Run, node: ArgExtreme) -> Numbers:
    """Return the entities with the best value of the key, with all ties."""
    winners = best_facts(run, node)
    return distinct(run.snapshot.subjects(winners), run.snapshot.entities)


def best_facts(run: Run, node: ArgExtreme) -> Numbers:
    """Return the statements that have the best value."""
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
        # Sorted by start, but the largest time is the one with the latest end.
        ends = snapshot.arrays.get("att.b").take(statements - np.int32(base))
        return statements.compress(ends == ends.max())
    # The statements are sorted by value.
    part = ordered.a if kind is Kind.TIME else ordered.x
    if len(statements) <= MAX_SINGLE:
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
        winners = winners[_best_exact(run, cells["ref"], cells.numbers(), largest)]
    return winners


def competitors(run: Run, node: ArgExtreme) -> Numbers:
    """Return the statements that prove which value is the best: those that have it, or all of them if several types
    or units compete.
    """
    statements = scan(run, Scan(node.of, (node.key,), family="attribute")).all()
    if not len(statements) or uniform(object_cells(run, statements)):
        return best_facts(run, node) if len(statements) else statements
    return statements


def uniform(cells: Cells) -> bool:
    """Return whether all values are numbers of one unit, or all are times: then any part of them competes in the same
    way.
    """
    kind, unit = cells["kind"], cells["unit"]
    if not len(kind) or kind[0] not in (Kind.QUANTITY, Kind.TIME):
        return not len(kind)
    return bool((kind == kind[0]).all() and (unit == unit[0]).all())


def _largest_group(
    run: Run, groups: list[tuple[Kind, str, int, int]], statements: Numbers, key: str
) -> tuple[list[tuple[Kind, str, int, int]], Numbers]:
    """Return the comparable type and unit that most of the statements have (ties: time first, then unit by name), and
    these statements.
    """
    base = run.snapshot.relations
    begins = statements.searchsorted(np.array([group[2] for group in groups], np.int32) + np.int32(base)).tolist()
    sizes = [high - low for low, high in pairwise([*begins, len(statements)])]
    candidates = {groups[i][:2]: i for i, size in enumerate(sizes) if size and groups[i][0] in (Kind.QUANTITY, Kind.TIME)}
    if not candidates:
        return [], EMPTY
    kind, unit = most_frequent({group: sizes[i] for group, i in candidates.items()})
    best = candidates[kind, unit]
    if sizes[best] < len(statements):
        run.warn(outnumbered(key, len(statements) - sizes[best], kind, unit))
    return [groups[best]], statements[begins[best] : begins[best] + sizes[best]]


def extreme(run: Run, node: Extreme) -> Bag:
    """Return the best values with their carriers. If there are neither numbers nor times, compare texts, with a
    warning.
    """
    bag = run.values(node.values)
    cells = bag.cells()
    if not len(cells):
        run.warn("the largest or smallest of no values is undefined")
        return bag
    largest = node.direction == "largest"
    mask = competing(run, cells, node.direction)
    if mask.any():
        return bag.take(_best_positions(run, cells, np.flatnonzero(mask), largest))
    # By the text of the value, not the raw text.
    texts = [shown(value) for value in bag.values()]
    if leading_numbers(texts) is not None:
        # By the list of numbers in each text: 5-10 is more than 5-7.
        run.warn(f"{node.direction}: the values are texts and are compared by the numbers in them")
        ranks = [inner_numbers(text) or [] for text in watched(texts)]
        top = max(watched(ranks)) if largest else min(watched(ranks))
        return bag.take(np.array([rank == top for rank in watched(ranks)]))
    run.warn(f"{node.direction}: the values are texts and are compared by code point")
    winner = max(watched(texts)) if largest else min(watched(texts))
    return bag.take(np.array([text == winner for text in watched(texts)]))


def mode(run: Run, node: Mode) -> Bag:
    """Return the values that occur most or least often, with their carriers."""
    bag = run.values(node.values)
    texts = bag.texts()
    counts = Counter(watched(texts))
    if not counts:
        run.warn("the most frequent of no values is undefined")
        return bag
    wanted = max(counts.values()) if node.direction == "largest" else min(counts.values())
    return bag.take(np.array([counts[text] == wanted for text in watched(texts)]))


def count(run: Run, node: Count) -> int:
    """Return the number of entities, or of distinct texts."""
    result: Any = run.results[id(node.of)]
    return len(set(watched(result.texts()))) if isinstance(result, Bag) else len(result)


def numbers_of(run: Run, bag: Bag, what: str) -> tuple[list[Any], str]:
    """Return the numbers of a bag as loaded, and their unit. Warn of values that are not numbers or have a less
    frequent unit.
    """
    quantities = [value for value in watched(bag.values()) if isinstance(value, Quantity)]
    if not quantities and len(bag) and (numbers := summed_numbers(bag.texts())) is not None:
        run.warn(f"{what}: {read_as_numbers(bag.values())}")
        return numbers, NO_UNIT
    ignored = len(bag) - len(quantities)
    units = Counter((Kind.QUANTITY, value.unit) for value in watched(quantities))
    _, unit = most_frequent(units) if units else (Kind.QUANTITY, NO_UNIT)
    chosen = [value.number for value in watched(quantities) if value.unit == unit]
    ignored += len(quantities) - len(chosen)
    if ignored:
        run.warn(no_such(what, ignored, len(bag), "number", unit))
    return chosen, unit


def exact_sum(numbers: list[Any]) -> Fraction:
    """Return the exact sum of numbers as they were written (a float stands for its shortest text)."""
    return sum(map(exact, watched(numbers)), Fraction(0))


def middle(numbers: list[Any]) -> Fraction:
    """Return the exact median of at least one number, as they were written."""
    floats = np.fromiter((as_float(Quantity(n))[0] for n in watched(numbers)), np.float64, len(numbers))
    ordered = np.sort(floats)
    middles = []
    for place in ((len(numbers) - 1) // 2, len(numbers) // 2):
        # Floats give the order, except among numbers that are equal as floats.
        equal_floats = np.flatnonzero(floats == ordered[place]).tolist()
        exact_values = sorted(exact(numbers[i]) for i in watched(equal_floats))
        middles.append(exact_values[place - int(ordered.searchsorted(ordered[place]))])
    return sum(middles, Fraction(0)) / 2


def sample_deviation(numbers: list[Any]) -> Fraction:
    """Return the sample standard deviation of at least two numbers, as they were written.

    The result is exact if it is rational, otherwise accurate enough to be rounded once.
    """
    ratios = [exact(number).as_integer_ratio() for number in watched(numbers)]
    unit = lcm(*{bottom for _, bottom in ratios})
    integers = [ratio[0] * (unit // ratio[1]) for ratio in watched(ratios)]
    size, total = len(integers), sum(integers)
    squares = sum(number * number for number in watched(integers))
    variance = Fraction(size * squares - total * total, size * (size - 1) * unit * unit)
    top, bottom = variance.as_integer_ratio()
    if (root := Fraction(isqrt(top), isqrt(bottom))) ** 2 == variance:
        return root
    bits = 64 + max(0, bottom.bit_length() - top.bit_length() + 1) // 2
    # The last bit stands for the digits cut off, so that no result is halfway between two floats.
    return Fraction(isqrt((top << 2 * bits) // bottom) | 1, 1 << bits)


def _bounded(number: Fraction, of: Callable[[Fraction], Number] = plain) -> Number:
    """Convert a result to a number that can be printed; raise `PlanError` if it is too large."""
    try:
        return of(number)
    except Inapplicable as error:
        raise PlanError(str(error)) from None


def total(run: Run, node: Sum) -> Bag:
    """Return the sum of all numbers; 0 if there are none."""
    bag = run.values(node.values)
    numbers, unit = numbers_of(run, bag, "sum")
    return Bag.given(run, [Quantity(_bounded(exact_sum(numbers)), unit)])


def mean(run: Run, node: Mean) -> Bag:
    """Return the mean of all numbers; an empty bag, with a warning, if there are none."""
    return _of_numbers(run, node, "mean", lambda numbers: _bounded(exact_sum(numbers) / len(numbers), quotient))


def median(run: Run, node: Median) -> Bag:
    """Return the median of all numbers; an empty bag, with a warning, if there are none."""
    return _of_numbers(run, node, "median", lambda numbers: _bounded(middle(numbers)))


def deviation(run: Run, node: Deviation) -> Bag:
    """Return the sample standard deviation of all numbers; an empty bag, with a warning, for fewer than two."""
    numbers, unit = numbers_of(run, run.values(node.values), "stdev")
    if len(numbers) < 2:
        run.warn("the standard deviation of fewer than two numbers is undefined")
        return Bag.given(run, [])
    return Bag.given(run, [Quantity(_bounded(sample_deviation(numbers), quotient), unit)])


def _of_numbers(run: Run, node: Mean | Median, what: str, of: Callable[[list[Any]], Number]) -> Bag:
    numbers, unit = numbers_of(run, run.values(node.values), what)
    if not numbers:
        run.warn(f"the {what} of no numbers is undefined")
        return Bag.given(run, [])
    return Bag.given(run, [Quantity(of(numbers), unit)])


def median_of(numbers: list[Any], unit: str) -> Quantity:
    """Return the median of at least one number of one unit."""
    return Quantity(_bounded(middle(numbers)), unit)


def some(run: Run, node: AnySatisfies) -> bool:
    """Return whether any value satisfies the condition; the trace records how many do."""
    bag = run.values(node.values)
    few = bag.few() if literal(node.condition) else None
    if few is not None:
        ordered, numbers = few
        satisfies = decide(run, node.condition)
        run.warn_types(add_types(ordered, numbers), node.condition)
        satisfied = sum([bool(satisfies(ordered, number)) for number in numbers])
    else:
        cells = bag.cells()
        run.warn_incomparable(cells, node.condition)
        satisfied = int(holds(run, node.condition, cells).sum())
    run.notes[id(node)] = f"{satisfied} of {len(bag)} values satisfy it"
    return satisfied > 0


def exists(run: Run, node: Exists) -> bool:
    return len(run.facts(node.facts)) > 0
