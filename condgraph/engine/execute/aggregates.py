"""Operators that look at a whole set or bag: counts, sums, extremes, existence."""

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
from condgraph.engine.execute.sets import EMPTY, FEW, Bag, Mask, Numbers, Part, distinct
from condgraph.engine.facts import shown
from condgraph.engine.operands import Inapplicable, exact, plain, quotient
from condgraph.engine.snapshot.ordered import Cells, add_types
from condgraph.engine.values import NO_UNIT, Kind, Number, Quantity, as_float, format_number, parse_number

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


#: What keeps the numbers of units, -1 for none and less for those that the graph does not have,
#: from being negative.
_UNITS: Final = 1 << 31
_ORDERED: Final = (int(Kind.QUANTITY), int(Kind.TIME))


def competing(run: Run, cells: Cells, what: str) -> Mask:
    """The cells of the most frequent comparable type and unit (ties: time first, then unit by
    name); the rest gives a warning.
    """
    kind, unit = cells["kind"], cells["unit"]
    if kind[0] in _ORDERED and (kind == kind[0]).all() and (unit == unit[0]).all():
        return np.ones(len(kind), bool)
    ordered: Mask = (kind == Kind.QUANTITY) | (kind == Kind.TIME)
    # Types and units as one number: most columns have one of each.
    both = kind[ordered].astype(np.int64) << 32 | (unit[ordered].astype(np.int64) + _UNITS)
    if not len(both):
        return ordered
    found, sizes = (both[:1], np.array([len(both)])) if (both == both[0]).all() else np.unique(both, return_counts=True)
    groups: dict[tuple[Kind, str], int] = {}
    units: dict[str, int] = {}
    for one, size in zip(found.tolist(), sizes.tolist(), strict=True):
        number = (one & 0xFFFFFFFF) - _UNITS
        name = run.scope.text(number) if number != -1 else ""
        groups[Kind(one >> 32), name], units[name] = size, number
    best, name = most_frequent(groups)
    mask: Mask = ordered & (kind == best) & (unit == units[name])
    rest = len(cells) - int(mask.sum())
    if rest:
        run.warn(outnumbered(what, rest, best, name))
    return mask


def _best_positions(run: Run, cells: Cells, positions: NDArray[np.int64], largest: bool) -> NDArray[np.int64]:
    """Positions of the best among cells of one type and unit: times by start for the smallest, by
    end for the largest.
    """
    if not len(positions):
        return positions
    every = len(positions) == len(cells)
    if cells["kind"][positions[0]] == Kind.TIME:
        keys: NDArray[Any] = cells["b" if largest else "a"]
    else:
        keys = cells.numbers()
    keys = keys if every else keys[positions]
    top = positions.compress(keys == (keys.max() if largest else keys.min()))
    if run.scope.inexact and cells["kind"][top[0]] == Kind.QUANTITY:
        top = top.compress(_exactly_best(run, cells["ref"][top], cells.numbers()[top], largest))
    return top


def _exactly_best(run: Run, refs: NDArray[np.int32], numbers: NDArray[np.float64], largest: bool) -> Mask:
    """Numbers a float cannot tell apart, compared as they were written: which of them are the best."""
    exact = [
        Fraction(Decimal(str(parse_number(run.scope.text(r))))) if r != -1 else Fraction(format_number(x))
        for r, x in watched(zip(refs.tolist(), numbers.tolist(), strict=True))
    ]
    winner = max(watched(exact)) if largest else min(watched(exact))
    return np.array([value == winner for value in watched(exact)])


def best(run: Run, node: ArgExtreme) -> Numbers:
    """The entities with the best value of the key, all ties."""
    winners = best_facts(run, node)
    return distinct(run.snapshot.subjects(winners), run.snapshot.entities)


def best_facts(run: Run, node: ArgExtreme) -> Numbers:
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


def competitors(run: Run, node: ArgExtreme) -> Numbers:
    """The statements that prove which value is the best: those that hold it, or all, where several
    types or units compete.
    """
    statements = scan(run, Scan(node.of, (node.key,), family="attribute")).all()
    if not len(statements) or uniform(object_cells(run, statements)):
        return best_facts(run, node) if len(statements) else statements
    return statements


def uniform(cells: Cells) -> bool:
    """Whether all values are numbers of one unit, or times: fewer of them would compete in the same
    way.
    """
    kind, unit = cells["kind"], cells["unit"]
    if not len(kind) or kind[0] not in (Kind.QUANTITY, Kind.TIME):
        return not len(kind)
    return bool((kind == kind[0]).all() and (unit == unit[0]).all())


def _largest_group(
    run: Run, groups: list[tuple[Kind, str, int, int]], statements: Numbers, key: str
) -> tuple[list[tuple[Kind, str, int, int]], Numbers]:
    """The comparable type and unit that most of the statements have (ties: time first, then unit by
    name), and these statements.
    """
    base = run.snapshot.relations
    begins = statements.searchsorted(np.array([group[2] for group in groups], np.int32) + np.int32(base)).tolist()
    sizes = [high - low for low, high in pairwise([*begins, len(statements)])]
    there = {groups[i][:2]: i for i, size in enumerate(sizes) if size and groups[i][0] in (Kind.QUANTITY, Kind.TIME)}
    if not there:
        return [], EMPTY
    kind, unit = most_frequent({group: sizes[i] for group, i in there.items()})
    best = there[kind, unit]
    if sizes[best] < len(statements):
        run.warn(outnumbered(key, len(statements) - sizes[best], kind, unit))
    return [groups[best]], statements[begins[best] : begins[best] + sizes[best]]


def extreme(run: Run, node: Extreme) -> Bag:
    """The best values with their carriers. Where nothing is a number or a time, texts compete, with
    a warning.
    """
    bag = run.values(node.values)
    cells = bag.cells()
    if not len(cells):
        run.warn("the largest or smallest of no values is nothing")
        return bag
    largest = node.direction == "largest"
    mask = competing(run, cells, node.direction)
    if mask.any():
        return bag.take(_best_positions(run, cells, np.flatnonzero(mask), largest))
    # By what they are, as numbers and times are, and not by how they stood.
    texts = [shown(value) for value in bag.values()]
    if leading_numbers(texts) is not None:
        # 5-10 is more than 5-7: one number after the other.
        run.warn(f"{node.direction}: the values are texts and are compared by the numbers in them")
        ranks = [inner_numbers(text) or [] for text in watched(texts)]
        top = max(watched(ranks)) if largest else min(watched(ranks))
        return bag.take(np.array([rank == top for rank in watched(ranks)]))
    run.warn(f"{node.direction}: the values are texts and are compared by code point")
    winner = max(watched(texts)) if largest else min(watched(texts))
    return bag.take(np.array([text == winner for text in watched(texts)]))


def mode(run: Run, node: Mode) -> Bag:
    """The values that occur most or least often, with their carriers."""
    bag = run.values(node.values)
    texts = bag.texts()
    counts = Counter(watched(texts))
    if not counts:
        run.warn("the most frequent of no values is nothing")
        return bag
    wanted = max(counts.values()) if node.direction == "largest" else min(counts.values())
    return bag.take(np.array([counts[text] == wanted for text in watched(texts)]))


def count(run: Run, node: Count) -> int:
    """How many entities, or distinct texts."""
    found: Any = run.results[id(node.of)]
    return len(set(watched(found.texts()))) if isinstance(found, Bag) else len(found)


def numbers_of(run: Run, bag: Bag, what: str) -> tuple[list[Any], str]:
    """The numbers of a bag as loaded, and their unit; what is no number, or of a less frequent
    unit, is warned of.
    """
    found = [value for value in watched(bag.values()) if isinstance(value, Quantity)]
    if not found and len(bag) and (numbers := summed_numbers(bag.texts())) is not None:
        run.warn(f"{what}: {read_as_numbers(bag.values())}")
        return numbers, NO_UNIT
    other = len(bag) - len(found)
    units = Counter((Kind.QUANTITY, value.unit) for value in watched(found))
    _, unit = most_frequent(units) if units else (Kind.QUANTITY, NO_UNIT)
    chosen = [value.number for value in watched(found) if value.unit == unit]
    other += len(found) - len(chosen)
    if other:
        run.warn(no_such(what, other, len(bag), "number", unit))
    return chosen, unit


def exact_sum(numbers: list[Any]) -> Fraction:
    """The exact sum of numbers as they were written (a float stands for its shortest text)."""
    return sum(map(exact, watched(numbers)), Fraction(0))


def middle(numbers: list[Any]) -> Fraction:
    """The exact median of numbers as they were written, of which there is at least one."""
    floats = np.fromiter((as_float(Quantity(n))[0] for n in watched(numbers)), np.float64, len(numbers))
    ordered = np.sort(floats)
    found = []
    for place in ((len(numbers) - 1) // 2, len(numbers) // 2):
        # Numbers are in the order of their floats, but for those that a float cannot tell apart.
        alike = np.flatnonzero(floats == ordered[place]).tolist()
        told_apart = sorted(exact(numbers[i]) for i in watched(alike))
        found.append(told_apart[place - int(ordered.searchsorted(ordered[place]))])
    return sum(found, Fraction(0)) / 2


def sample_deviation(numbers: list[Any]) -> Fraction:
    """The sample standard deviation of numbers as they were written, of which there are at least two.

    It is exact where it is rational, otherwise accurate enough to be rounded once.
    """
    ratios = [exact(number).as_integer_ratio() for number in watched(numbers)]
    unit = lcm(*{bottom for _, bottom in ratios})
    whole = [ratio[0] * (unit // ratio[1]) for ratio in watched(ratios)]
    size, total = len(whole), sum(whole)
    squares = sum(number * number for number in watched(whole))
    variance = Fraction(size * squares - total * total, size * (size - 1) * unit * unit)
    top, bottom = variance.as_integer_ratio()
    if (root := Fraction(isqrt(top), isqrt(bottom))) ** 2 == variance:
        return root
    bits = 64 + max(0, bottom.bit_length() - top.bit_length() + 1) // 2
    # The last bit is set for the digits left out, so that no result is halfway between two floats.
    return Fraction(isqrt((top << 2 * bits) // bottom) | 1, 1 << bits)


def _bounded(number: Fraction, of: Callable[[Fraction], Number] = plain) -> Number:
    """A result that can be printed; of an operator, one that cannot is an error."""
    try:
        return of(number)
    except Inapplicable as error:
        raise PlanError(str(error)) from None


def total(run: Run, node: Sum) -> Bag:
    """The sum of all numbers; 0 of none."""
    bag = run.values(node.values)
    numbers, unit = numbers_of(run, bag, "sum")
    return _given(run, [Quantity(_bounded(exact_sum(numbers)), unit)])


def mean(run: Run, node: Mean) -> Bag:
    """The mean of all numbers; nothing, with a warning, of none."""
    return _of_numbers(run, node, "mean", lambda numbers: _bounded(exact_sum(numbers) / len(numbers), quotient))


def median(run: Run, node: Median) -> Bag:
    """The median of all numbers; nothing, with a warning, of none."""
    return _of_numbers(run, node, "median", lambda numbers: _bounded(middle(numbers)))


def deviation(run: Run, node: Deviation) -> Bag:
    """The sample standard deviation of all numbers; nothing, with a warning, of fewer than two."""
    numbers, unit = numbers_of(run, run.values(node.values), "stdev")
    if len(numbers) < 2:
        run.warn("the standard deviation of fewer than two numbers is nothing")
        return _given(run, [])
    return _given(run, [Quantity(_bounded(sample_deviation(numbers), quotient), unit)])


def _of_numbers(run: Run, node: Mean | Median, what: str, of: Callable[[list[Any]], Number]) -> Bag:
    numbers, unit = numbers_of(run, run.values(node.values), what)
    if not numbers:
        run.warn(f"the {what} of no numbers is nothing")
        return _given(run, [])
    return _given(run, [Quantity(of(numbers), unit)])


def median_of(numbers: list[Any], unit: str) -> Quantity:
    """The median of numbers of one unit; at least one."""
    return Quantity(_bounded(middle(numbers)), unit)


def _given(run: Run, values: list[Any]) -> Bag:
    return Bag(run, [Part("given", np.arange(len(values)), EMPTY, tuple(values))])


def some(run: Run, node: AnySatisfies) -> bool:
    """Whether any value satisfies the test; the trace says how many do."""
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
    """Whether there is any fact."""
    return len(run.facts(node.facts)) > 0
