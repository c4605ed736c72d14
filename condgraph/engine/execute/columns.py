"""Columns of rows: the values at the end of a path from each row, and expressions over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Facts, Group, passed
from condgraph.engine.algebra.grouped import CellTest, Computed, Either, Expression, Given, Measure, No, Summed, Test, Way
from condgraph.engine.bounds import check
from condgraph.engine.errors import PlanError, numbered
from condgraph.engine.execute.bags import Bag, shown
from condgraph.engine.execute.factset import FactSet
from condgraph.engine.execute.grid import Cell
from condgraph.engine.execute.sets import EMPTY
from condgraph.engine.execute.sums import Column
from condgraph.engine.execute.values import MOST_VALUES
from condgraph.engine.operands import Inapplicable, alike, exact, plain, quotient, unit_of_product
from condgraph.engine.pieces import different, mapped, watched
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, OPEN_START, Precision, Quantity, Time, civil

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run


# -- paths -----------------------------------------------------------------------------------------


Places = NDArray[np.int64]


#: Ways from rows to keys beside one for each row.
_MOST_BINDINGS = 10_000_000


class Reached(NamedTuple):
    """Where a way has come to: which row (or item) each of its ends belongs to, the entity there (-1
    for a value), the statement that led there (-1 at the start).
    """

    of: Places
    at: NDArray[np.int32]
    by: NDArray[np.int32]


class Bindings(NamedTuple):
    """The row of each binding, and where it stands after each step."""

    row: Places
    ends: dict[int, Reached]


class Found(NamedTuple):
    """Values with their texts, and the row (or item) that each belongs to, ascending."""

    of: list[int]
    values: list[Any]
    texts: list[str]


class Ways:
    """The rows of a group, and what they have. `odd` counts what could not be calculated, by reason."""

    def __init__(self, run: Run, node: Group, places: Places | None = None) -> None:
        self.run, self.node = run, node
        self.odd: Counter[str] = Counter()
        self._found: dict[Expression, Found] = {}
        self._bags: dict[int, tuple[NDArray[np.int32], Places, list[Any], list[str]]] = {}
        given = run.results[id(node.of)]
        #: The statement of each row, where rows are facts.
        self.statements: NDArray[np.int32] = EMPTY
        if isinstance(given, FactSet):
            self.statements = given.all()
            ends = _ends(run, self.statements, given.reach)
            #: The entity of each row; of a fact whose end is a value its subject.
            self.rows = np.where(ends < 0, run.snapshot.subjects(self.statements), ends)
            self._start = Reached(np.arange(len(ends)), ends, self.statements)
        else:
            self.rows = given
            self._start = Reached(np.arange(len(given)), given, np.full(len(given), -1, np.int32))
        if places is not None:
            of, at, by = self._start
            self._start = Reached(of.take(places), at.take(places), by.take(places))

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, expression: Expression) -> Found:
        """What all rows have."""
        found = self._found.get(expression)
        if found is None:
            found = self._found[expression] = self.found(expression, self._start, 0)
        return found

    def bound(self, keys: Sequence[Expression]) -> Bindings:
        """The ways that keys go, joined: one binding for each way to go them all, so that two keys
        that begin alike are those of one thing. What leads nowhere is bound to nothing.
        """
        row, ends = self._start.of, dict[int, Reached]()
        for key in keys:
            before: int | None = None
            for step in lead(key):
                if step not in ends:
                    start = self._start if before is None else ends[before]
                    at = start.at.take(row) if before is None else start.at
                    places, reached = self._outer(at, step)
                    if len(places) > _MOST_BINDINGS + len(self):
                        raise PlanError(f"{len(places):,} ways from rows to keys are too many", hint="group by fewer keys")
                    row = row.take(places)
                    for known, one in ends.items():
                        ends[known] = Reached(one.of.take(places), one.at.take(places), one.by.take(places))
                    ends[step] = reached
                before = step
        return Bindings(row, ends)

    def at(self, bindings: Bindings, steps: Sequence[int]) -> Reached:
        """Where each binding stands after these steps."""
        if not steps:
            start = self._start
            return Reached(np.arange(len(bindings.row)), start.at.take(bindings.row), start.by.take(bindings.row))
        one = bindings.ends[steps[-1]]
        return Reached(np.arange(len(bindings.row)), one.at, one.by)

    def warn(self) -> None:
        """Say what could not be calculated."""
        for reason, count in self.odd.items():
            self.run.warn(f"{reason}: {numbered(count, 'value is', 'values are')} left out")

    @property
    def chosen(self) -> NDArray[np.int32]:
        """The entities, or the statements, that the rows are."""
        return self._start.by if isinstance(self.node.of, Facts) else self._start.at

    def gone_over(self) -> dict[int, NDArray[np.int32]]:
        """The statements of each of the facts that the ways of these rows go over, sorted."""
        found: dict[int, list[NDArray[np.int32]]] = {}
        expressions = [key.of for key in self.node.keys] + [measure.of for measure in self.node.measures if measure.of is not None]
        expressions += tested(self.node.where)
        for way in dict.fromkeys(way for expression in expressions for way in ways_of(expression)):
            for length in range(1, len(way.steps) + 1):
                found.setdefault(way.steps[length - 1], []).append(self._follow(self._start, way.steps[:length]).by)
        return {number: different(np.concatenate(parts)) for number, parts in found.items()}

    # -- joining -----------------------------------------------------------------------------------

    def found(self, expression: Expression, base: Reached, skip: int) -> Found:
        """What there is from where ways have come to, `skip` steps from the rows."""
        if isinstance(expression, Way):
            return self._values(expression, self._follow(base, expression.steps[skip:]))
        if isinstance(expression, Summed):
            return self._summed(expression, base)
        if isinstance(expression, Either):
            return self._either(expression, base, skip)
        ways = list(dict.fromkeys(parts_of(expression)))
        if len(ways) == 1:
            found = self.found(ways[0], base, skip)
            alone: list[dict[Part, tuple[Any, str]]] = [
                {ways[0]: pair} for pair in watched(zip(found.values, found.texts, strict=True))
            ]
            return self._calculated(expression, found.of, alone)
        prefix = lead(expression)
        base = self._follow(base, prefix[skip:])
        items: list[dict[Part, tuple[Any, str]]] = [{} for _ in range(len(base.of))]
        many: set[int] = set()
        here = Reached(np.arange(len(base.of)), base.at, base.by)
        for way in ways:
            found = self.found(way, here, len(prefix))
            for at, value, text in watched(zip(found.of, found.values, found.texts, strict=True)):
                if way in items[at]:
                    many.add(at)
                items[at][way] = value, text
        if many:
            self.run.warn(
                f"{expression.name}: {numbered(len(many), 'row has', 'rows have')} several values to calculate with, "
                f"and {'is' if len(many) == 1 else 'are'} left out"
            )
        whole = [at for at in range(len(items)) if len(items[at]) == len(ways) and at not in many]
        places = base.of.tolist()
        return self._calculated(expression, [places[at] for at in whole], [items[at] for at in whole])

    def _outer(self, at: NDArray[np.int32], step: int) -> tuple[Places, Reached]:
        """One step from where bindings stand: the binding that each result goes on from, and where it
        has come to; one that leads nowhere stays, at nothing.
        """
        here = self._follow(Reached(np.arange(len(at)), at, at), (step,))
        nowhere = np.ones(len(at), bool)
        nowhere[here.of] = False
        lost = np.flatnonzero(nowhere)
        nothing = np.full(len(lost), -1, np.int32)
        places = np.concatenate([here.of, lost])
        order = places.argsort(kind="stable")
        ends = (np.concatenate([one, nothing]).take(order) for one in (here.at, here.by))
        return places.take(order), Reached(places.take(order), *ends)

    def _follow(self, start: Reached, steps: Iterable[int]) -> Reached:
        for number in steps:
            check()
            node = self.node.facts[number]
            facts = self.run.facts(node)
            statements = facts.all()
            if _anchor(node) == "object":
                statements = statements[: self.run.snapshot.split(statements)]
                anchors = self.run.snapshot.relation_object.take(statements)
            else:
                anchors = self.run.snapshot.subjects(statements)
            places, chosen = _joined(start.at, anchors)
            by = statements.take(chosen)
            start = Reached(start.of.take(places), _ends(self.run, by, facts.reach), by)
        return start

    def _values(self, way: Way, arrived: Reached) -> Found:
        if way.values is None:
            there = arrived.at >= 0
            entities = mapped(self.run.snapshot.entity, arrived.at[there].tolist())
            return Found(arrived.of[there].tolist(), entities, [entity.name for entity in entities])
        carriers, order, values, texts = self._bag(way.values)
        places, chosen = _joined(arrived.by, carriers, sort=False)
        numbers = order.take(chosen).tolist()
        return Found(
            arrived.of.take(places).tolist(),
            [values[number] for number in watched(numbers)],
            [texts[number] for number in watched(numbers)],
        )

    def _bag(self, number: int) -> tuple[NDArray[np.int32], Places, list[Any], list[str]]:
        """The carriers of a bag, sorted, with the place of the value of each, and the values."""
        known = self._bags.get(number)
        if known is None:
            bag: Bag = self.run.values(self.node.values[number])
            parts = [part.carriers for part in bag.parts if part.kind != "given"]
            carriers = np.concatenate(parts) if parts else EMPTY
            order = carriers.argsort(kind="stable")
            known = self._bags[number] = carriers.take(order), order, *bag.values_and_texts()
        return known

    # -- calculating -------------------------------------------------------------------------------

    def _summed(self, expression: Summed, base: Reached) -> Found:
        """One value for each row, where there is one."""
        values = self.found(expression.of, Reached(np.arange(len(base.of)), base.at, base.by), 0)
        cells: dict[int, list[Cell]] = {}
        for at, value, text in watched(zip(values.of, values.values, values.texts, strict=True)):
            cells.setdefault(at, []).append(Cell(value, text))
        column = Column(self.run, Measure(expression.name, expression.function, expression.of), "row")
        found = Found([], [], [])
        for at, row in watched(enumerate(base.of.tolist())):
            cell = column.of(cells.get(at, ()))
            if cell is not None:
                found.of.append(row)
                # Counts are numbers to calculate with.
                found.values.append(Quantity(cell.value) if isinstance(cell.value, int) else cell.value)
                found.texts.append(cell.text)
        column.warn()
        return found

    def _either(self, expression: Either, base: Reached, skip: int) -> Found:
        """The values of the first, and of the second where what both begin with leads to what has none."""
        base = self._follow(base, expression.steps[skip:])
        here, done = Reached(np.arange(len(base.of)), base.at, base.by), len(expression.steps)
        first, second = (self.found(one, here, done) for one in (expression.first, expression.second))
        there, places = frozenset(first.of), base.of.tolist()
        rest = [at for at, item in enumerate(second.of) if item not in there]
        of = [*(places[item] for item in first.of), *(places[second.of[at]] for at in rest)]
        values = [*first.values, *(second.values[at] for at in rest)]
        texts = [*first.texts, *(second.texts[at] for at in rest)]
        order = sorted(range(len(of)), key=of.__getitem__)
        return Found([of[at] for at in order], [values[at] for at in order], [texts[at] for at in order])

    def _calculated(self, expression: Expression, of: list[int], items: list[dict[Part, tuple[Any, str]]]) -> Found:
        found = Found([], [], [])
        for at, item in watched(zip(of, items, strict=True)):
            try:
                value = calculate(expression, item)
            except Inapplicable as error:
                self.odd[str(error)] += 1
                continue
            found.of.append(at)
            found.values.append(value)
            found.texts.append(shown(value))
        return found


def _ends(run: Run, statements: NDArray[np.int32], reach: str) -> NDArray[np.int32]:
    """The entity that each statement reaches, -1 for a value."""
    if reach == "subject":
        return run.snapshot.subjects(statements)
    ends = np.full(len(statements), -1, np.int32)
    relation = statements < run.snapshot.relations
    ends[relation] = run.snapshot.relation_object.take(statements[relation])
    return ends


def _anchor(node: Facts) -> str:
    while (inner := passed(node)) is not None:
        node = inner
    return node.anchor if isinstance(node, alg.Scan) else "subject"


def _joined(left: NDArray[np.int32], right: NDArray[np.int32], *, sort: bool = True) -> tuple[Places, Places]:
    """For each of `left` all places in `right` that are equal, as pairs of places; `right` is sorted
    where not to be sorted.
    """
    order = right.argsort(kind="stable") if sort else None
    ordered = right if order is None else right.take(order)
    low, high = ordered.searchsorted(left, "left"), ordered.searchsorted(left, "right")
    sizes = np.where(left < 0, 0, high - low)
    total = int(sizes.sum())
    if total > MOST_VALUES:
        raise PlanError(f"{total} ways from rows to values are too many", hint="ask it of fewer rows, or over fewer steps")
    places = np.arange(len(left)).repeat(sizes)
    chosen = np.arange(total) - (sizes.cumsum() - sizes).repeat(sizes) + low.repeat(sizes)
    return places, chosen if order is None else order.take(chosen)


# -- expressions -----------------------------------------------------------------------------------
# What expressions over rows are made of (ways, and what is summed up within a row), and what they
# give of the values at the ends of these: arithmetic with units, and parts of times.


#: What has values of its own, of which others are calculated.
Part: TypeAlias = Way | Summed | Either


def parts_of(expression: Expression) -> Iterable[Part]:
    """What gives values of its own to an expression."""
    if isinstance(expression, Way | Summed | Either):
        yield expression
    elif isinstance(expression, Computed):
        for part in expression.parts:
            yield from parts_of(part)


def ways_of(expression: Expression) -> Iterable[Way]:
    """All ways, also those that are summed up within a row."""
    for part in parts_of(expression):
        if isinstance(part, Summed):
            yield from ways_of(part.of)
        elif isinstance(part, Either):
            yield part.first
            yield from ways_of(part.second)
        else:
            yield part


def tested(test: Test | None) -> list[Expression]:
    """What a test of rows looks at."""
    if isinstance(test, CellTest):
        return [] if isinstance(test.of, int) else [test.of]
    if isinstance(test, No):
        return tested(test.test)
    return [] if test is None else [one for part in test.tests for one in tested(part)]


def lead(expression: Expression) -> tuple[int, ...]:
    """The steps that all ways of an expression begin with."""
    return _common(list(dict.fromkeys(parts_of(expression))))


def _common(ways: list[Part]) -> tuple[int, ...]:
    """The steps that all ways begin with."""
    if not ways:
        return ()
    least, most = min(way.steps for way in ways), max(way.steps for way in ways)
    shared = 0
    while shared < min(len(least), len(most)) and least[shared] == most[shared]:
        shared += 1
    return least[:shared]


def calculate(expression: Expression, item: dict[Part, tuple[Any, str]]) -> Any:
    """The value of an expression, from the value and text of each of its parts. Raises `Inapplicable`
    where they are not what it calculates with.
    """
    if isinstance(expression, Given):
        return expression.value
    if isinstance(expression, Way | Summed | Either):
        return item[expression][0]
    values = [calculate(part, item) for part in expression.parts]
    if expression.function == "name":
        return shown(values[0])
    if expression.function in ("year", "month", "day"):
        return _part(expression, values[0])
    return _arithmetic(expression, *values)


def _part(expression: Computed, value: Any) -> Quantity:
    """The year, month or day of the month in which a time begins."""
    what = expression.function
    if not isinstance(value, Time):
        raise Inapplicable(f"{expression.name}: no time")
    exactly = Precision[what.upper()]
    if value.start <= OPEN_START or (value.precision is not Precision.SPAN and value.precision < exactly):
        raise Inapplicable(f"{expression.name}: no {what} in the time")
    return Quantity(civil(value.start // DAY_SECONDS)[("year", "month", "day").index(what)])


def _arithmetic(expression: Computed, left: Any, right: Any) -> Quantity:
    if not isinstance(left, Quantity) or not isinstance(right, Quantity):
        raise Inapplicable(f"{expression.name}: no number")
    function = expression.function
    # Texts without the numbers, so that rows of the same units are told together.
    by = f"{expression.name}: numbers in {left.unit} by numbers in {right.unit}"
    if function == "*":
        product = unit_of_product(left.unit, right.unit)
        if product is None:
            raise Inapplicable(by)
        return Quantity(plain(exact(left.number) * exact(right.number) / product[1]), product[0])
    if function == "/":
        if not right.number:
            raise Inapplicable(f"{expression.name}: divided by 0")
        unit = left.unit
        if right.unit != NO_UNIT:
            if left.unit == NO_UNIT:
                raise Inapplicable(by)
            left, right = _in_one_unit(left, right, by)
            unit = NO_UNIT
        return Quantity(quotient(exact(left.number) / exact(right.number)), unit)
    left, right = _in_one_unit(left, right, f"{expression.name}: numbers in {left.unit} and in {right.unit}")
    a, b = exact(left.number), exact(right.number)
    return Quantity(plain(a + b if function == "+" else a - b), right.unit if left.unit == NO_UNIT else left.unit)


def _in_one_unit(left: Quantity, right: Quantity, otherwise: str) -> tuple[Quantity, Quantity]:
    """Two numbers in the unit of the first, as far as the second can be said in it."""
    try:
        return alike(left, right, "")[:2]
    except Inapplicable:
        raise Inapplicable(otherwise) from None
