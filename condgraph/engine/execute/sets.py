"""Results of operators in process: sets of entities and statements, bags of values, and the scope that they refer to.

Sets are sorted int32 arrays of distinct numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import End
from condgraph.engine.bounds import CHUNK, ROWS, changed, check, different, in_order, pieces, watched
from condgraph.engine.facts import Entity, Ref, shown
from condgraph.engine.snapshot.build import fewer_collections
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.values import NO_UNIT, FormedText, Kind, Precision, Quantity, Time, Value, as_float, format_number, text_of

if TYPE_CHECKING:
    from condgraph.engine.snapshot.ordered import Ordered
    from condgraph.engine.snapshot.snapshot import Snapshot


Numbers = NDArray[np.int32]
#: One truth value for each number, cell or value.
Mask: TypeAlias = NDArray[np.bool_]
EMPTY: Final[Numbers] = np.empty(0, np.int32)
EMPTY.flags.writeable = False


def distinct(numbers: Numbers, size: int) -> Numbers:
    """Return the distinct numbers, sorted; all are below `size`."""
    n = len(numbers)
    if n < 2:
        return numbers
    if n <= 8:
        return np.array(sorted(set(numbers.tolist())), np.int32)
    if ascending(numbers):
        return numbers
    if not by_mask(n, size):
        return different(numbers)
    return mask_of(numbers, size).nonzero()[0].astype(np.int32)


def ascending(numbers: NDArray[Any]) -> bool:
    """Return whether each number is greater than the one before, as the ends of one entity's statements are. Much
    faster than sorting.
    """
    return int(np.count_nonzero(numbers[1:] > numbers[:-1])) == len(numbers) - 1


def by_mask(numbers: int, size: int) -> bool:
    """Return whether marking is faster than sorting: there are enough numbers for the size of the space."""
    return numbers * 32 >= size and numbers > 16


def mask_of(numbers: Numbers, size: int) -> NDArray[np.bool_]:
    """Return one truth value for each possible number."""
    mask = np.zeros(size, bool)
    # NumPy assigns through int32 indices five times slower than through its own integers.
    mask[numbers.astype(np.intp)] = True
    return mask


def among(numbers: NDArray[Any], of: NDArray[Any], size: int) -> NDArray[np.bool_]:
    """Return for each number (in any order) whether it is in the sorted set `of`."""
    if not len(of):
        return np.zeros(len(numbers), bool)
    if len(of) == 1:
        is_equal: NDArray[np.bool_] = numbers == of[0]
        return is_equal
    if len(numbers) * 512 > size:
        # A binary search mispredicts a branch at every step; a mask costs its size once.
        return mask_of(of, size).take(numbers)
    places = np.searchsorted(of, numbers)
    places[places == len(of)] = 0
    mask: NDArray[np.bool_] = of[places] == numbers
    return mask


def intersect(left: Numbers, right: Numbers, size: int) -> Numbers:
    """Return the intersection of two sorted sets."""
    if len(left) > len(right):
        left, right = right, left
    return left[among(left, right, size)]


def minus(left: NDArray[Any], right: NDArray[Any], size: int) -> NDArray[Any]:
    """Return `left` without `right`, both sorted."""
    return left[~among(left, right, size)]


def union(parts: list[Numbers], size: int) -> Numbers:
    """Return the union of sorted sets."""
    # A program may contain the same set a thousand times.
    parts = [part for part in {id(part): part for part in parts}.values() if len(part)]
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return parts[0]
    total = sum(map(len, parts))
    if total <= ROWS or not by_mask(total, size):
        return distinct(np.concatenate(parts), size)
    mask = np.zeros(size, bool)
    for part in parts:
        check()
        mask[part.astype(np.intp)] = True
    return mask.nonzero()[0].astype(np.int32)


#: Numbers are dense if the largest is below this many times their count: counting then beats searching.
DENSE: Final = 16


def equal_runs(left: NDArray[Any], right: NDArray[Any], *, sort: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each number of `left` the begin and count of the equal numbers in the sorted `right`. `right` must
    be sorted already unless `sort` is set; it is not empty and has no negative numbers. Negative numbers of `left`
    equal nothing.
    """
    maximum = int(right.max() if sort else right[-1])
    if maximum < DENSE * (len(left) + len(right)):
        counts = np.bincount(right, minlength=maximum + 1)
        in_range = (left >= 0) & (left <= maximum)
        safe = left if in_range.all() else np.where(in_range, left, 0)
        return (counts.cumsum() - counts).take(safe), np.where(in_range, counts.take(safe), 0)
    ordered = np.sort(right) if sort else right
    low = ordered.searchsorted(left, "left")
    return low, np.where(left < 0, 0, ordered.searchsorted(left, "right") - low)


# -- the scope of an execution -----------------------------------------------------------------------
# The context of the results of operators: the snapshot, masks of sets, numbers of new texts.
#
# A `Scope` has no reference to results, so that there are no reference cycles: an answer and its results
# are freed with the last reference to the answer, without the garbage collector.


_NOWHERE: Final = -(2**31)


class Scoped(Protocol):
    """An execution, or its scope."""

    @property
    def scope(self) -> Scope:
        """The context of its results."""


class Scope:
    """The context of the results of one execution."""

    __slots__ = ("_given_refs", "_masks", "_texts", "inexact", "snapshot", "term_numbers", "terms")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        #: Whether any number, stored or in the program, is not exact as a float.
        self.inexact = bool(snapshot.inexact)
        self._masks: dict[int, tuple[Numbers, NDArray[np.bool_]]] = {}
        self._given_refs: dict[str, int] = {}
        self._texts: list[str] = []
        #: The distinct terms of rows that the graph does not have, and their numbers (`rowset.given`).
        self.terms: list[Any] = []
        self.term_numbers: dict[Any, int] = {}

    @property
    def scope(self) -> Scope:
        """The scope itself, as for an execution."""
        return self

    def mask(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Return one truth value for each entity; masks are cached by set."""
        entry = self._masks.get(id(numbers))
        if entry is None or entry[0] is not numbers:
            stored = self.snapshot.mask_of(numbers)
            entry = self._masks[id(numbers)] = numbers, mask_of(numbers, self.snapshot.entities) if stored is None else stored
        return entry[1]

    def distinct(self, entities: Numbers) -> Numbers:
        """Return the distinct entities, sorted. A mask computed on the way is cached for the next operator."""
        size = self.snapshot.entities
        if not by_mask(len(entities), size):
            return distinct(entities, size)
        if ascending(entities):
            return entities
        mask = mask_of(entities, size)
        result: Numbers = mask.nonzero()[0].astype(np.int32)
        self._masks[id(result)] = result, mask
        return result

    def among(self, entities: Numbers, of: Numbers) -> NDArray[np.bool_]:
        """Return for each entity (in any order) whether it is in the sorted set `of`."""
        if len(of) > 1 and len(entities) * 512 > self.snapshot.entities:
            return self.mask(of).take(entities)
        return among(entities, of, self.snapshot.entities)

    def encode_given(self, values: list[Any], columns: dict[str, NDArray[Any]]) -> None:
        """Fill columns with values written in a program; texts that the graph does not have get numbers below -1."""
        for row, value in enumerate(watched(values)):
            if isinstance(value, Quantity):
                columns["kind"][row] = Kind.QUANTITY
                number, exact = as_float(value)
                # Adding 0.0 turns minus zero into zero, as in storage.
                columns["a"][row] = np.float64(number + 0.0).view(np.int64)
                if not exact:
                    columns["ref"][row], self.inexact = self._text(format_number(value.number)), True
                if value.unit != NO_UNIT:
                    columns["unit"][row] = self._text(value.unit)
            elif isinstance(value, Time):
                columns["kind"][row] = Kind.TIME
                columns["a"][row], columns["b"][row], columns["precision"][row] = value.start, value.end, value.precision
            else:
                columns["ref"][row] = self._text(text_of(value))
                if isinstance(value, FormedText):
                    columns["unit"][row] = self._text(value.form)

    def text(self, number: int) -> str:
        """Return a text by its number, from the graph or the program."""
        return self.snapshot.texts[number] if number >= 0 else self.given_text(number)

    def unit_number(self, unit: str) -> int:
        """Return the number of a unit in columns: -1 for none; a number that occurs nowhere if it is unknown."""
        if unit == NO_UNIT:
            return -1
        number = self.snapshot.texts.find(unit)
        return number if number >= 0 else self._given_refs.get(unit, _NOWHERE)

    def given_text(self, number: int) -> str:
        """Return a text that the graph does not have, by its number below -1."""
        return self._texts[-2 - number]

    def _text(self, text: str) -> int:
        number = self.snapshot.texts.find(text)
        if number < 0:
            number = self._given_refs.get(text, 0)
            if not number:
                number = self._given_refs[text] = -2 - len(self._given_refs)
                self._texts.append(text)
        return number


# -- sets of statements ------------------------------------------------------------------------------
# Sets of statements, computed lazily.
#
# A `FactSet` is either the sorted numbers of its statements, or unevaluated: runs of numbers, and the
# set of entities that one end must be in. A scan is the runs of its predicates; as attributes are
# numbered by value, a condition on the value shortens the runs. How the statements are then found
# (entity by entity, through the adjacency of all entities, or through the runs) is the only physical
# choice of execution, and is made here, by counting.


#: Up to this many entities, statements are looked up entity by entity; up to this many statements
#: are processed one by one.
MAX_SINGLE: Final = 8

Runs = list[tuple[int, int]]


class FactSet:
    """Statements with the end that was reached. `of` is None if the anchor may be any entity; a run contains either
    relations or attributes.
    """

    __slots__ = ("anchor", "numbers", "of", "reach", "runs", "scope", "source")

    def __init__(
        self,
        run: Scoped,
        reach: End,
        *,
        numbers: Numbers | None = None,
        runs: Runs | None = None,
        of: Numbers | None = None,
        anchor: End = "subject",
        source: int = -1,
    ) -> None:
        self.scope, self.reach, self.numbers = run.scope, reach, numbers
        self.runs, self.of, self.anchor, self.source = runs or [], of, anchor, source

    def __len__(self) -> int:
        if self.numbers is None and self.of is None and self.source < 0:
            return sum(high - low for low, high in self.runs)
        return len(self.all())

    def all(self) -> Numbers:
        """Return the sorted numbers of the statements."""
        if self.numbers is None:
            if self.source < 0:
                self.numbers = _scan(self)
            elif self.of is not None and len(self.of) == 1:
                self.numbers = intersect(_scan(self), self.scope.snapshot.sourced(self.source), self.scope.snapshot.statements)
            else:
                self.numbers = _scan_source(self)
        return self.numbers

    def ends(self) -> Numbers:
        """Return the distinct entities that were reached."""
        snapshot, of, numbers = self.scope.snapshot, self.of, self.numbers
        if numbers is None:
            lazy = self.source < 0 and len(self.runs) == 1
            if lazy and (of is None or (len(of) > MAX_SINGLE and not _spread(self))):
                # The numbers of the statements are not needed, only one end where the other one
                # matches.
                low, high = self.runs[0]
                if self.reach == "object" and low >= snapshot.relations:
                    return EMPTY  # values are no entities
                ends = column(self, self.reach, low, high)
                if of is not None:
                    anchors = ends if self.anchor == self.reach else column(self, self.anchor, low, high)
                    ends = ends[self.scope.mask(of).take(anchors)]
                return self.scope.distinct(ends)
            numbers = self.all()
        if self.reach == "object":
            # Values are no entities.
            relations = numbers if not self.runs or self.runs[-1][1] <= snapshot.relations else numbers[: snapshot.split(numbers)]
            return self.scope.distinct(snapshot.relation_object.take(relations))
        if of is not None and len(of) == 1 and self.anchor == "subject":
            return of if len(numbers) else numbers
        return self.scope.distinct(snapshot.subjects(numbers))

    def few(self) -> bool:
        """Return whether the statements are cheap to enumerate: they are known, or those of a few entities."""
        return self.numbers is not None or (self.of is not None and len(self.of) <= MAX_SINGLE)

    def small(self) -> bool:
        """Return whether there are so few statements that processing them one by one is faster."""
        return self.few() and len(self.all()) <= MAX_SINGLE

    def narrowed(self, runs: Runs) -> FactSet:
        """Return the statements within shorter runs."""
        if self.numbers is not None:
            return self.keep(self.within(runs))
        return FactSet(self.scope, self.reach, runs=runs, of=self.of, anchor=self.anchor, source=self.source)

    def within(self, runs: Runs) -> Numbers:
        """Return the statements in one of the sorted runs."""
        numbers = self.all()
        bounds = numbers.searchsorted(np.array(runs, np.int32).ravel()).tolist()
        return _concatenated([numbers[low:high] for low, high in zip(bounds[::2], bounds[1::2], strict=True)])

    def keep(self, numbers: Numbers) -> FactSet:
        """Return a sorted subset of these statements as a `FactSet`."""
        return FactSet(self.scope, self.reach, numbers=numbers, runs=self.runs, anchor=self.anchor)

    def having(self, numbers: Numbers) -> Numbers:
        """Return those of `numbers` (in any order, repeats are kept) that are in this set."""
        snapshot = self.scope.snapshot
        if self.numbers is not None:
            return numbers[among(numbers, self.numbers, snapshot.statements)]
        parts = []
        for low, high in self.runs if len(numbers) else ():
            part = numbers[(numbers >= low) & (numbers < high)] if low or high < snapshot.statements else numbers
            if self.of is not None and len(part):
                anchors = column(self, self.anchor, low, high).take(part - np.int32(low))
                part = part[self.scope.among(anchors, self.of)]
            parts.append(part)
        result = _concatenated(parts)
        if self.source >= 0:
            result = result[among(result, snapshot.sourced(self.source), snapshot.statements)]
        return result


def column(facts: FactSet, end: End, low: int, high: int) -> Numbers:
    """Return the subjects or objects of a run, which contains either relations or attributes."""
    snapshot = facts.scope.snapshot
    if end == "object":
        return snapshot.relation_object[low:high]
    base = snapshot.relations
    return snapshot.attribute_subject[low - base : high - base] if low >= base else snapshot.relation_subject[low:high]


def _concatenated(parts: list[Numbers]) -> Numbers:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY


def _spread(facts: FactSet) -> bool:
    """Return whether the anchors likely have fewer statements than the runs, so that looking them up is faster."""
    snapshot, of = facts.scope.snapshot, facts.of
    if of is None:
        return False
    total = sum(high - low for low, high in facts.runs)
    # Computing degrees pays only if the anchors are likely the smaller side.
    if len(of) * snapshot.statements >= total * snapshot.entities:
        return False
    return snapshot.degree(of, backward=facts.anchor == "object") * 4 < total + snapshot.entities // 16


def _scan(facts: FactSet) -> Numbers:
    snapshot, of, runs = facts.scope.snapshot, facts.of, facts.runs
    if of is None:
        return _concatenated([np.arange(low, high, dtype=np.int32) for low, high in runs])
    if not len(of) or not runs:
        return EMPTY
    backward = facts.anchor == "object"
    if len(of) <= MAX_SINGLE:
        lookup = snapshot.incoming if backward else snapshot.outgoing
        if len(of) == 1:
            entity = int(of[0])
            return lookup(entity, *runs[0]) if len(runs) == 1 else np.concatenate([lookup(entity, low, high) for low, high in runs])
        statements = np.concatenate([lookup(entity, low, high) for entity in of.tolist() for low, high in runs])
        statements.sort()
        return statements
    if _spread(facts):
        touching = snapshot.touching(of, backward=backward)
        statements = _concatenated([touching[(touching >= low) & (touching < high)] for low, high in runs])
        statements.sort()
        return statements
    mask = facts.scope.mask(of)
    parts = []
    for low, high in runs:
        statements = mask.take(column(facts, facts.anchor, low, high)).nonzero()[0].astype(np.int32)
        parts.append(statements + np.int32(low))
    return _concatenated(parts)


def _scan_source(facts: FactSet) -> Numbers:
    """Return the statements of one source; its own are searched, which are few if a graph has many sources."""
    snapshot, of = facts.scope.snapshot, facts.of
    scoped = snapshot.sourced(facts.source)
    statements = FactSet(facts.scope, facts.reach, numbers=scoped).within(facts.runs) if facts.runs else EMPTY
    if of is None or not len(statements):
        return statements
    ends = snapshot.relation_object.take(statements) if facts.anchor == "object" else snapshot.subjects(statements)
    return statements[facts.scope.among(ends, of)]


# -- bags of values ----------------------------------------------------------------------------------
# Bags of values, decoded late: a bag refers to the cells of its values, and turns them into Python
# values on demand.
#
# A bag is a list of parts, each of one kind. A part has `ids` (the values) and `carriers`:
#
#     att   ids: attributes, counted from 0        carriers: statements
#     q     ids: qualifiers                        carriers: statements
#     ent   ids: entities (objects of relations)   carriers: statements
#     name  ids: entities, the value is the name   carriers: entities
#     row   ids: entities, the value is the row number         carriers: entities
#     pred  ids: predicates, the value is the name             carriers: statements
#     span  ids: positions in `start` and `end`    carriers: statements
#     given ids: positions in `values`             carriers: none


PartKind = Literal["att", "q", "ent", "name", "row", "pred", "span", "given"]
#: From this many values on, the garbage collector is held off.
_MIN_GC_PAUSE: Final = 1 << 17
#: A value of an answer: a typed value, an entity, a number, or a truth value.
Result = Value | Entity | bool | int | float


class Part:
    """Values of one kind with their carriers; `data` has the values of the kinds "span" and "given"."""

    __slots__ = ("carriers", "data", "ids", "kind")

    def __init__(self, kind: PartKind, ids: NDArray[Any], carriers: Numbers, data: Any = None) -> None:
        self.kind, self.ids, self.carriers, self.data = kind, ids, carriers, data

    def take(self, mask: Mask | NDArray[np.int64]) -> Part:
        """Return some of the values."""
        return Part(self.kind, self.ids[mask], self.carriers[mask] if self.kind != "given" else self.carriers, self.data)


class Bag:
    """A bag of values. `len` counts values, repeats included."""

    __slots__ = ("parts", "scope")

    def __init__(self, run: Scoped, parts: list[Part]) -> None:
        self.scope = run.scope
        self.parts = [part for part in parts if len(part.ids)] if len(parts) > 1 else parts

    @classmethod
    def given(cls, run: Scoped, values: Iterable[Any]) -> Bag:
        """Return values without carriers as a bag."""
        data = tuple(values)
        return cls(run, [Part("given", np.arange(len(data)), EMPTY, data)])

    def __len__(self) -> int:
        return sum(len(part.ids) for part in self.parts)

    def take(self, chosen: NDArray[Any]) -> Bag:
        """Return the values at these positions, or where this mask is true, in their present order."""
        if len(self.parts) == 1:
            return Bag(self.scope, [self.parts[0].take(chosen)])
        mask = chosen
        if chosen.dtype != bool:
            mask = np.zeros(len(self), bool)
            mask[chosen] = True
        parts, start = [], 0
        for part in self.parts:
            parts.append(part.take(mask[start : start + len(part.ids)]))
            start += len(part.ids)
        return Bag(self.scope, parts)

    def few(self) -> tuple[Ordered, list[int]] | None:
        """Return the cells of a few attributes or qualifiers, and their numbers; None for other bags."""
        if len(self.parts) != 1:
            return None
        part = self.parts[0]
        if len(part.ids) > MAX_SINGLE or (part.kind != "att" and part.kind != "q"):
            return None
        return self.scope.snapshot.ordered(part.kind), part.ids.tolist()

    # -- as columns --------------------------------------------------------------------------------

    def cells(self) -> Cells:
        """Return all values as cells. Texts that the graph does not have get numbers below -1, equal texts the same."""
        parts = [self.part_cells(part) for part in self.parts]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Cells(0, lambda name: np.empty(0, np.int64))
        return Cells(len(self), lambda name: np.concatenate([part[name] for part in parts]))

    def part_cells(self, part: Part) -> Cells:
        """Return the values of one part as cells."""
        snapshot, count = self.scope.snapshot, len(part.ids)
        get = snapshot.arrays.get
        if part.kind in ("att", "q"):
            return Cells(count, lambda name: get(f"{part.kind}.{name}").take(part.ids))
        columns: dict[str, NDArray[Any]] = {}
        if part.kind == "ent":
            columns["kind"], columns["ref"] = np.full(count, Kind.ENTITY, np.int8), part.ids
        elif part.kind == "name":
            columns["ref"] = snapshot.entity_name.take(part.ids)
        elif part.kind == "pred":
            columns["ref"] = get("pred.text")[part.ids]
        elif part.kind == "row":
            columns["kind"] = np.full(count, Kind.QUANTITY, np.int8)
            columns["a"] = get("ent.row")[part.ids].astype(np.float64).view(np.int64)
        elif part.kind == "span":
            columns["kind"] = np.full(count, Kind.TIME, np.int8)
            columns["a"], columns["b"], columns["precision"] = (column[part.ids] for column in part.data)
        else:
            columns = {name: np.full(count, default, dtype) for name, (default, dtype) in _DEFAULTS.items()}
            self.scope.encode_given([part.data[position] for position in part.ids.tolist()], columns)
        return Cells(count, lambda name: np.full(count, *_DEFAULTS[name]), columns)

    # -- as Python values --------------------------------------------------------------------------

    def values(self) -> list[Result]:
        """Return all values, repeats included, in the order of the parts."""
        values: list[Result] = []
        for part in self.parts:
            values.extend(self._part_values(part))
        return values

    def _part_values(self, part: Part) -> list[Any]:
        if len(part.ids) <= CHUNK:
            return self._some_values(part)
        values: list[Any] = []
        for ids in pieces(part.ids):
            values += self._some_values(Part(part.kind, ids, part.carriers, part.data))
        return values

    def _some_values(self, part: Part) -> list[Any]:
        snapshot = self.scope.snapshot
        if part.kind in ("att", "q"):
            return _decode(snapshot, part.kind, part.ids)
        if part.kind == "ent":
            return [snapshot.entity(number) for number in part.ids.tolist()]
        if part.kind == "name":
            return snapshot.texts.take(snapshot.entity_name.take(part.ids))
        if part.kind == "pred":
            return [snapshot.predicate_name(number) for number in part.ids.tolist()]
        if part.kind == "row":
            return [Quantity(n) for n in snapshot.arrays.get("ent.row")[part.ids].tolist()]
        if part.kind == "span":
            start, end, precision = (column[part.ids].tolist() for column in part.data)
            return [Time(a, b, Precision(p)) for a, b, p in zip(start, end, precision, strict=True)]
        return [part.data[number] for number in part.ids.tolist()]

    def values_and_texts(self) -> tuple[list[Any], list[str]]:
        """Return every value and its text for display: the raw text of table cells, the name of entities."""
        if len(self) > _MIN_GC_PAUSE:
            # All of these objects stay; a search for garbage among them takes long and cannot be
            # interrupted.
            with fewer_collections():
                return self._values_and_texts()
        return self._values_and_texts()

    def _values_and_texts(self) -> tuple[list[Any], list[str]]:
        if len(self.parts) == 1:
            return self._part_values_and_texts(self.parts[0])
        values: list[Any] = []
        texts: list[str] = []
        for part in self.parts:
            part_values, part_texts = self._part_values_and_texts(part)
            values.extend(part_values)
            texts.extend(part_texts)
        return values, texts

    def _part_values_and_texts(self, part: Part) -> tuple[list[Any], list[str]]:
        snapshot = self.scope.snapshot
        values = self._part_values(part)
        if part.kind == "name" or part.kind == "pred":
            return values, values
        texts = [value if type(value) is str else shown(value) for value in watched(values)]
        if part.kind == "att" and len(raws := snapshot.arrays.get("att.raw")):
            pairs = zip(raws[part.ids].tolist(), texts, strict=True)
            texts = [snapshot.texts[raw] if raw >= 0 else text for raw, text in watched(pairs)]
        return values, texts

    def in_order(self) -> bool:
        """Return whether the values are certain to be in the fixed order: names, and attributes of one predicate,
        type and unit.
        """
        if len(self.parts) != 1:
            return False
        part = self.parts[0]
        if part.kind != "att":
            return part.kind == "name"
        snapshot, ids = self.scope.snapshot, part.ids
        first, last = int(ids[0]), int(ids[-1])
        cells, base = snapshot.ordered("att"), snapshot.relations
        same = cells.kind[first] == cells.kind[last] and cells.unit[first] == cells.unit[last]
        return (
            same
            and not snapshot.inexact
            # Equal values with raw texts are in the order of their source.
            and not (len(raws := snapshot.arrays.get("att.raw")) and (raws.take(ids) >= 0).any())
            and snapshot.predicate_of(first + base) == snapshot.predicate_of(last + base)
            and bool((ids[1:] >= ids[:-1]).all())
        )

    def texts(self) -> list[str]:
        return self.values_and_texts()[1]


#: Defaults for the columns of cells that a kind of value does not use.
_DEFAULTS: Final[dict[str, tuple[int, Any]]] = {
    "kind": (Kind.TEXT, np.int8),
    "a": (0, np.int64),
    "b": (0, np.int64),
    "ref": (-1, np.int32),
    "unit": (-1, np.int32),
    "precision": (0, np.int8),
}


def _decode(snapshot: Snapshot, family: str, ids: NDArray[Any]) -> list[Any]:
    """Return cells of attributes or qualifiers as values, with shortcuts for the common types."""
    get, texts = snapshot.arrays.get, snapshot.texts
    if len(ids) <= MAX_SINGLE:
        return [_cell_value(snapshot, family, number) for number in ids.tolist()]
    kinds = get(f"{family}.kind").take(ids)
    refs = get(f"{family}.ref").take(ids)
    if not kinds.any() and not (snapshot.formed and (get(f"{family}.unit").take(ids) >= 0).any()):
        return list(texts.take(refs))
    bits = get(f"{family}.a").take(ids)
    if (kinds == Kind.TIME).all():
        ends, precisions = get(f"{family}.b").take(ids), get(f"{family}.precision").take(ids)
        of = map(_PRECISIONS.__getitem__, precisions.tolist())
        return list(map(Time, bits.tolist(), ends.tolist(), of))
    if not (kinds == Kind.QUANTITY).all() or (refs >= 0).any():
        return [_cell_value(snapshot, family, number) for number in ids.tolist()]
    units = {unit: texts[unit] if unit >= 0 else NO_UNIT for unit in set(get(f"{family}.unit").take(ids).tolist())}
    return [
        Quantity(int(number) if number.is_integer() else number, units[unit])
        for number, unit in zip(bits.view(np.float64).tolist(), get(f"{family}.unit").take(ids).tolist(), strict=True)
    ]


_PRECISIONS: Final = tuple(Precision)


def _cell_value(snapshot: Snapshot, family: str, number: int) -> Any:
    """Return one cell as a value, with shortcuts for the common types."""
    cells, texts = snapshot.ordered(family), snapshot.texts
    kind, ref = cells.kind[number], cells.ref[number]
    if kind == 0 and not snapshot.formed:
        return texts[ref]
    if kind == 1 and ref < 0:
        unit, magnitude = cells.unit[number], float(cells.x[number])
        return Quantity(int(magnitude) if magnitude.is_integer() else magnitude, texts[unit] if unit >= 0 else NO_UNIT)
    if kind == 2:
        return Time(cells.a[number], cells.b[number], _PRECISIONS[cells.precision[number]])
    value = snapshot.value(family, number)
    # Replace a reference by its entity.
    return snapshot.entity(snapshot.identified(value.id)) if isinstance(value, Ref) else value


def order_key(value: Any) -> tuple[Any, ...]:
    """Return the key of the fixed order of values: numbers by unit and size, times, then texts and entities by name
    (and id), unknown values last.
    """
    if isinstance(value, bool):
        return (0, "", value)
    if isinstance(value, Quantity):
        return (1, value.unit, value.number)
    if isinstance(value, Time):
        return (2, value.start, value.end, value.precision)
    if isinstance(value, str):
        return (3, value, "")
    if isinstance(value, Entity):
        return (3, value.name, value.id)
    if isinstance(value, (int, float)):
        return (1, NO_UNIT, value)
    return (4,)


# -- equal cells -------------------------------------------------------------------------------------
# Equality of values by their cells: distinct values of a column, and values that another column has.


_IDENTITY: Final = ("ref", "a", "kind", "b", "unit", "precision")
#: The columns that distinguish values of one type; the others are constant.
_DISTINCT_BY: Final[dict[int, tuple[str, ...]]] = {
    Kind.TEXT: ("ref",),
    Kind.ENTITY: ("ref",),
    Kind.QUANTITY: ("a", "unit", "ref"),
    Kind.TIME: ("a", "b", "precision"),
    Kind.UNKNOWN: _IDENTITY,
}


def distinct_positions(cells: Cells, *, ordered: bool = False) -> NDArray[np.int64]:
    """Return the first position of each distinct value, ascending; `ordered`: equal values are already adjacent."""
    count = len(cells)
    if count < 2:
        return np.arange(count)
    kinds = cells["kind"]
    parts = _DISTINCT_BY[int(kinds[0])] if np.count_nonzero(kinds == kinds[0]) == count else _IDENTITY
    if ordered:
        return changed(*(cells[name] for name in parts)).nonzero()[0]
    varying = [column for column in (cells[name] for name in parts) if np.count_nonzero(column != column[0])]
    if not varying:
        return np.zeros(1, np.int64)
    # Positions of equal values are ascending, so the first of each run is the first position.
    order = in_order(varying)
    return np.sort(order[changed(*(column.take(order) for column in varying))])


def equal_cells(run: Scoped, cells: Cells, other: Bag) -> Mask:
    """Return for each cell whether it equals a value of a bag; an entity and a text are compared by name."""
    left, right = by_name(run, cells), by_name(run, other.cells())
    size = len(left)
    mask: Mask = np.zeros(size, bool)
    if not size or not len(right):
        return mask
    columns = [np.concatenate([left[name], right[name]]) for name in _IDENTITY[:5]]
    order = in_order(columns)
    group, is_left = changed(*(column.take(order) for column in columns)).cumsum() - 1, order < size
    occurs = np.zeros(int(group[-1]) + 1, bool)
    occurs[group[~is_left]] = True
    mask[order[is_left]] = occurs[group[is_left]]
    return mask


def by_name(run: Scoped, cells: Cells) -> Cells:
    """Replace entities by the texts of their names."""
    entity = cells["kind"] == Kind.ENTITY
    if not entity.any():
        return cells
    refs = cells["ref"].copy()
    refs[entity] = run.scope.snapshot.entity_name[refs[entity]]
    return Cells(len(cells), cells.__getitem__, {"kind": np.where(entity, np.int8(Kind.TEXT), cells["kind"]), "ref": refs})
