"""Rows that bind variables, as columns of numbers: the results of the operators of `algebra.solutions` in process.

A column has one number for each row, -1 where the variable is unbound. In a column of one kind these are the numbers
of entities, statements, predicates, attributes (counted from 0), qualifiers, terms from outside the graph
(`Scope.terms`), or entities whose names are the terms; in a mixed column the high bits of each number are its kind.
Terms are decoded on access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra.solutions import RowOrder
from condgraph.engine.bounds import changed, check, in_order, watched
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.grid import Column, Grid, Members, fixed_order, order_of
from condgraph.engine.execute.series import BagSeries, Cell, EntitySeries, ListSeries, Series, dense, first_of_each, once, ranked
from condgraph.engine.execute.sets import Bag, Part, PartKind, Scope, equal_runs
from condgraph.engine.execute.terms import EntityAt, PathAt, StatementAt
from condgraph.engine.facts import Entity, shown
from condgraph.engine.records import PathTerm, record_of, records_of, statement_text
from condgraph.engine.row_shapes import visible
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind, Quantity, Time

Places: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[Any]

#: Kinds of columns.
ENTITY, STATEMENT, PREDICATE, ATTRIBUTE, QUALIFIER, GIVEN, NAME = range(7)
#: The position of the kind in a number of a mixed column.
_SHIFT: Final = 40
_NUMBER: Final = (1 << _SHIFT) - 1
#: From here on Python prints floats with an exponent.
_EXPONENT: Final = 1e16
#: The largest number of rows of one operator. More take minutes and gigabytes, and nobody reads them.
MAX_ROWS: Final = 32_000_000
#: The number of pairs of rows that are processed between two checks of the deadline.
CHUNK: Final = 1 << 18
#: From this many terms on, equal ones are processed once.
_SEVERAL: Final = 16
#: The column with the number of equal rows that a row stands for, if the plan only counts them.
TIMES: Final = "\0times"
#: Further kinds of cells: statements, and terms that are not values.
_STATEMENT_CELL: Final = 10
_OTHER_KIND: Final = 11
_BAGS: Final[dict[int, PartKind]] = {PREDICATE: "pred", ATTRIBUTE: "att", QUALIFIER: "q", NAME: "name"}


class Terms:
    """A column; `kind` is None if it is mixed. `counts` are the terms of a column of integers without unbound rows,
    if they are known.
    """

    __slots__ = ("counts", "kind", "numbers")

    def __init__(self, kind: int | None, numbers: Numbers, counts: Places | None = None) -> None:
        self.kind, self.numbers, self.counts = kind, numbers, counts

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, places: Numbers) -> Terms:
        """Return some of the rows, by position."""
        return Terms(self.kind, self.numbers.take(places), None if self.counts is None else self.counts.take(places))

    @property
    def bound(self) -> NDArray[np.bool_]:
        """A mask of the rows in which the variable is bound."""
        mask: NDArray[np.bool_] = self.numbers >= 0
        return mask

    def marked(self) -> Places:
        """Return the numbers as in a mixed column, with their kinds."""
        if self.kind is None:
            return self.numbers
        return np.where(self.numbers >= 0, self.numbers.astype(np.int64) | (self.kind << _SHIFT), -1)

    def entities(self) -> Numbers:
        """Return the entity of each row, -1 for other terms."""
        if self.kind == ENTITY:
            return self.numbers
        if self.kind is not None:
            return np.full(len(self.numbers), -1, np.int32)
        return np.where((self.numbers >> _SHIFT) == ENTITY, self.numbers & _NUMBER, -1).astype(np.int32)

    def split(self) -> Iterator[tuple[int, Places, Numbers]]:
        """Yield the kinds of the terms, each with the positions of its rows and their numbers."""
        if self.kind is not None:
            places = np.flatnonzero(self.numbers >= 0)
            if len(places):
                yield self.kind, places, self.numbers.take(places)
            return
        kinds = np.where(self.numbers >= 0, self.numbers >> _SHIFT, -1)
        for kind in range(7):
            places = np.flatnonzero(kinds == kind)
            if len(places):
                yield kind, places, self.numbers.take(places) & _NUMBER

    def narrowed(self) -> Terms:
        """Return the same column, with one kind if all terms have the same."""
        if self.kind is not None:
            return self
        parts = list(self.split())
        if len(parts) != 1:
            return self
        numbers = np.full(len(self.numbers), -1, np.int64)
        numbers[parts[0][1]] = parts[0][2]
        return Terms(parts[0][0], numbers.astype(np.int32))

    @classmethod
    def unbound(cls, size: int) -> Terms:
        """Return a column without terms."""
        return cls(ENTITY, np.full(size, -1, np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Terms]) -> Terms:
        """Return the concatenated columns."""
        if len(parts) == 1:
            return parts[0]
        kinds = {part.kind for part in parts if len(part)}
        if len(kinds) == 1 and None not in kinds:
            return cls(kinds.pop(), np.concatenate([part.numbers for part in parts if len(part)]))
        if not kinds:
            return parts[0]
        # A column without bound terms takes the kind of the others.
        bound_parts = [part for part in parts if part.kind is None or part.bound.any()]
        bound_kinds = {part.kind for part in bound_parts}
        if len(bound_kinds) == 1 and None not in bound_kinds:
            return cls(bound_kinds.pop(), np.concatenate([part.numbers for part in parts]))
        return cls(None, np.concatenate([part.marked() for part in parts]))


def qualifier_terms(scope: Scope, numbers: Numbers) -> Terms:
    """Return the values of qualifiers; entities among them as entities."""
    get = scope.snapshot.arrays.get
    entity = get("q.kind").take(numbers) == Kind.ENTITY
    if not entity.any():
        return Terms(QUALIFIER, numbers.astype(np.int32))
    if entity.all():
        return Terms(ENTITY, get("q.ref").take(numbers))
    marked = np.where(entity, get("q.ref").take(numbers).astype(np.int64), numbers | (QUALIFIER << _SHIFT))
    return Terms(None, marked)


def object_terms(scope: Scope, statements: Numbers) -> Terms:
    """Return the objects of statements, in any order."""
    snapshot = scope.snapshot
    relation = statements < snapshot.relations
    if relation.all():
        return Terms(ENTITY, snapshot.relation_object.take(statements))
    attributes = statements - snapshot.relations
    if not relation.any():
        return Terms(ATTRIBUTE, attributes.astype(np.int32))
    entities = snapshot.relation_object.take(np.where(relation, statements, 0)) if snapshot.relations else attributes
    return Terms(None, np.where(relation, entities.astype(np.int64), attributes.astype(np.int64) | (ATTRIBUTE << _SHIFT)))


def subjects(scope: Scope, statements: Numbers) -> Numbers:
    """Return the subjects of statements, in any order."""
    snapshot = scope.snapshot
    relation = statements < snapshot.relations
    if relation.all():
        return snapshot.relation_subject.take(statements)
    attributes = statements - np.int32(snapshot.relations)
    if not relation.any():
        return snapshot.attribute_subject.take(attributes)
    attribute_subjects = snapshot.attribute_subject.take(np.where(relation, 0, attributes))
    return np.where(relation, snapshot.relation_subject.take(np.where(relation, statements, 0)), attribute_subjects)


# -- terms from outside the graph --------------------------------------------------------------------


def same(value: Any) -> Any:
    """Return a dictionary key that is equal for equal terms."""
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, int | float | Decimal):
        return Quantity(value)
    if isinstance(value, list | tuple):
        return ("list", *[same(item) for item in value])
    if isinstance(value, dict):
        return ("map", frozenset((key, same(item)) for key, item in value.items()))
    if isinstance(value, Entity):
        return ("entity", value.id)
    return value


def _typed(value: Any) -> Any:
    """Return a dictionary key that is equal for equal terms of one type, item by item."""
    if isinstance(value, list | tuple):
        # A short program can build a list of exponential size by doubling it.
        check()
        return ("list", *[_typed(item) for item in value])
    if isinstance(value, dict):
        check()
        return ("map", frozenset((key, _typed(item)) for key, item in value.items()))
    return (type(value), same(value))


def given(scope: Scope, value: Any) -> int:
    """Return the number of a term that the graph does not have; equal ones of one type share a number, except lists."""
    kind = type(value)
    if kind is list:
        scope.terms.append(value)
        return len(scope.terms) - 1
    key = (kind, value) if kind is int or kind is str or kind is float or kind is bool else _typed(value)
    number = scope.term_numbers.get(key)
    if number is None:
        number = scope.term_numbers[key] = len(scope.terms)
        scope.terms.append(value)
    return number


def _as_value(value: Any) -> Any:
    """Return a term from outside the graph as a value of a graph; None if it is not one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        return Quantity(value)
    return value if isinstance(value, str | Quantity | Time) else None


# -- codes -------------------------------------------------------------------------------------------

_CELL_COLUMNS: Final = ("kind", "ref", "a", "b", "unit", "precision")


def value_cells(scope: Scope, terms: Terms) -> tuple[Places, Cells]:
    """Return the positions of the rows whose terms are entities or values, and these as cells."""
    parts: list[dict[str, Any]] = []
    places: list[Places] = []
    for kind, positions, numbers in terms.split():
        if kind == STATEMENT:
            continue
        columns, ready = _cells(scope, kind, numbers)
        chosen = ready["kind"] < _STATEMENT_CELL if kind == GIVEN else slice(None)
        places.append(positions[chosen])
        parts.append({name: columns(name)[chosen] for name in _CELL_COLUMNS})
    if not parts:
        return np.empty(0, np.int64), Cells(0, lambda name: np.empty(0, np.int64))
    count = sum(map(len, places))
    return np.concatenate(places), Cells(count, lambda name: np.concatenate([part[name] for part in parts]))


def _cells(scope: Scope, kind: int, numbers: Numbers) -> tuple[Callable[[str], Any], dict[str, Any]]:
    """Return the columns by which terms of one kind are compared; the second result has those that are already
    computed.
    """
    count = len(numbers)
    ready: dict[str, Any] = {}
    if kind in (STATEMENT, ENTITY):
        ready["kind"] = np.full(count, _STATEMENT_CELL if kind == STATEMENT else int(Kind.ENTITY), np.int8)
        ready["ref"] = numbers
    elif kind == GIVEN:
        distinct, inverse = once(numbers)
        terms = [scope.terms[number] for number in watched(distinct.tolist())]
        values = [_as_value(term) for term in terms]
        cells = Bag(scope, [Part("given", np.arange(len(terms)), distinct, ["" if value is None else value for value in values])])
        columns = {name: cells.cells()[name].copy() for name in _CELL_COLUMNS}
        for position, (term, value) in enumerate(zip(terms, values, strict=True)):
            if value is None:
                unknown = term is UNKNOWN
                columns["kind"][position] = Kind.UNKNOWN if unknown else _OTHER_KIND
                # Equal terms share the number of the first of them.
                first = -1 if unknown else scope.term_numbers.setdefault(("equal", same(term)), int(distinct[position]))
                columns["ref"][position] = first
        ready = {name: column.take(inverse) for name, column in columns.items()}
    else:
        found = Bag(scope, [Part(_BAGS[kind], numbers, numbers)]).cells()
        return found.__getitem__, ready
    return lambda name: ready[name] if name in ready else _filled(name, count), ready


def _filled(name: str, count: int) -> Any:
    return np.full(count, -1 if name in ("unit", "ref") else 0, np.int64)


def codes(scope: Scope, columns: Sequence[Terms]) -> list[Places]:
    """Return numbers that are equal for equal terms, across all columns; -1 where a variable is unbound."""
    kinds = {column.kind for column in columns if len(column)}
    if len(kinds) <= 1 and kinds <= {ENTITY, STATEMENT, PREDICATE}:
        return [column.numbers.astype(np.int64) for column in columns]
    if kinds == {NAME}:
        # The last item stands for unbound terms, -1.
        texts = np.append(scope.snapshot.entity_name, -1)
        return [texts.take(column.numbers).astype(np.int64) for column in columns]
    narrowed = [column.narrowed() for column in columns]
    if {column.kind for column in narrowed} == {GIVEN} and _common_type(scope, narrowed) in (int, str):
        return [column.numbers.astype(np.int64) for column in narrowed]
    if {column.kind for column in narrowed} <= {ENTITY} or {column.kind for column in narrowed} <= {STATEMENT}:
        return [column.numbers.astype(np.int64) for column in narrowed]
    sizes = [len(column) for column in narrowed]
    merged = np.full(sum(sizes), -1, np.int64)
    places: list[Places] = []
    parts: dict[str, list[Any]] = {name: [] for name in _CELL_COLUMNS}
    offset = 0
    for column, size in zip(narrowed, sizes, strict=True):
        for kind, positions, numbers in column.split():
            check()
            # Equal numbers are processed once.
            distinct, inverse = (numbers, None) if kind not in (ATTRIBUTE, QUALIFIER, NAME) else _deduplicated(numbers)
            read, _ = _cells(scope, kind, distinct)
            places.append(positions + offset)
            for name in _CELL_COLUMNS:
                part = np.asarray(read(name)).astype(np.int64)
                parts[name].append(part if inverse is None else part.take(inverse))
        offset += size
    if places:
        columns_of = [np.concatenate(parts[name]) for name in _CELL_COLUMNS]
        varying = [column for column in columns_of if len(column) and (column != column[0]).any()]
        merged[np.concatenate(places)] = dense(*varying) if varying else 0
    return np.split(merged, np.cumsum(sizes)[:-1])


def _common_type(scope: Scope, columns: Sequence[Terms]) -> type | None:
    """Return the type of all terms of columns of kind `GIVEN`, or None if there are several."""
    numbers, _ = once(np.concatenate([column.numbers for column in columns]))
    types = {type(scope.terms[number]) for number in watched(numbers[np.searchsorted(numbers, 0) :].tolist())}
    return types.pop() if len(types) == 1 else None


def _deduplicated(numbers: Numbers) -> tuple[Numbers, Places | None]:
    if len(numbers) < 4096:
        return numbers, None
    result = once(numbers)
    return (numbers, None) if len(result[0]) * 2 > len(numbers) else result


def packed(columns: Sequence[Places], size: int) -> Places:
    """Combine the codes of each row in one number, equal for equal rows; 0 if there are no columns."""
    if not columns:
        return np.zeros(size, np.int64)
    if len(columns) == 1:
        return columns[0]
    if len(columns) == 2 and size:
        low, high = min(int(part.min()) for part in columns), max(int(part.max()) for part in columns)
        if low >= -1 and high < (1 << 31) - 1:
            return (columns[0] + 1) << 32 | (columns[1] + 1)
    return dense(*columns)


# -- rows --------------------------------------------------------------------------------------------


class RowSet:
    """Rows as columns; `ordered` tells that their order is meaningful. `len` counts a row as often as its column
    `TIMES` says; `size` is the length of the columns.
    """

    __slots__ = ("_grid", "columns", "ordered", "scope", "size")

    def __init__(self, scope: Scope, size: int, columns: dict[str, Terms], *, ordered: bool = False) -> None:
        self.scope, self.size, self.columns, self.ordered = scope, size, columns, ordered
        self._grid: Grid | None = None

    def __len__(self) -> int:
        times = self.columns.get(TIMES)
        return self.size if times is None else int(times.numbers.sum())

    def column(self, name: str) -> Terms:
        """Return the column of a variable; unbound everywhere if the rows do not have it."""
        column = self.columns.get(name)
        return Terms.unbound(self.size) if column is None else column

    def take(self, places: Numbers, *, ordered: bool | None = None) -> RowSet:
        """Return some of the rows, in this order."""
        columns = {name: column.take(places) for name, column in self.columns.items()}
        return RowSet(self.scope, len(places), columns, ordered=self.ordered if ordered is None else ordered)

    def where(self, mask: NDArray[np.bool_]) -> RowSet:
        """Return the rows for which a mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def having(self, **columns: Terms) -> RowSet:
        """Return the same rows with more columns."""
        return RowSet(self.scope, self.size, {**self.columns, **columns}, ordered=self.ordered)

    def with_rows(self, other: RowSet) -> RowSet:
        """Return these rows, followed by others."""
        return concatenated([self, other], list(dict.fromkeys([*self.columns, *other.columns])), self.scope)

    def only(self, names: Sequence[str]) -> RowSet:
        """Return the same rows with only these columns."""
        return RowSet(self.scope, self.size, {name: self.column(name) for name in names}, ordered=self.ordered)

    def keys(self, names: Sequence[str] | None = None) -> Places:
        """Return a number for each row, equal for rows that are equal in these columns."""
        names = list(self.columns) if names is None else names
        return packed([codes(self.scope, [self.column(name)])[0] for name in names], self.size)

    def distinct(self, names: Sequence[str] | None = None) -> RowSet:
        """Return the first of each set of equal rows."""
        if self.size < 2:
            return self
        keys = self.keys(names)
        order = in_order([keys])
        first = np.sort(order[changed(keys.take(order))])
        return self if len(first) == self.size else self.take(first)

    # -- order -------------------------------------------------------------------------------------

    def ranks(self, name: str, *, spelled: bool = True) -> Places:
        """Return ranks of the terms of a column in the fixed order of values, unbound ones last; with `spelled`,
        equal terms with different texts have different ranks.
        """
        column = self.column(name).narrowed()
        if column.counts is not None:
            return column.counts
        places = np.flatnonzero(column.bound)
        ranks = np.full(self.size, np.iinfo(np.int64).max, np.int64)
        if not len(places):
            return ranks
        if column.kind == GIVEN and len(places) > _SEVERAL:
            # Equal terms are ranked once.
            terms, inverse = once(column.numbers.take(places))
            if len(terms) < len(places):
                term_ranks = RowSet(self.scope, len(terms), {name: Terms(GIVEN, terms)}).ranks(name, spelled=spelled)
                ranks[places] = term_ranks.take(inverse)
                return ranks
        if column.kind == GIVEN and (kind := _common_type(self.scope, [column])) in (int, float, str):
            values = [self.scope.terms[number] for number in watched(column.numbers.take(places).tolist())]
            if kind is str:
                ranks[places] = ranked(values)
                return ranks
            numbers = np.array(values)
            # Not for zeros, which have two signs, nor for NaN.
            if numbers.dtype.kind == "i" or (numbers.dtype.kind == "f" and numbers.all() and np.isfinite(numbers).all()):
                order = numbers.argsort(kind="stable")
                ranks[places.take(order)] = changed(numbers.take(order)).cumsum() - 1
                return ranks
        series = term_series(self.scope, column)
        series_ranks = series.ranks(places)
        if series_ranks is not None:
            spellings = series.spellings(places) if spelled else None
            ranks[places] = series_ranks if spellings is None else dense(series_ranks, spellings)
            return ranks
        first, inverse = first_of_each(column.numbers.take(places))
        cells = series.cells(places.take(first))
        ranks[places] = ranked([_order(cell, spelled) for cell in cells]).take(inverse)
        return ranks

    def in_fixed_order(self) -> RowSet:
        """Return the rows in their order, if they are ordered, else in the fixed order of rows."""
        if self.ordered or self.size < 2 or not self.columns:
            return self
        return self.in_order(())

    def in_order(self, by: Sequence[RowOrder], number: int | None = None) -> RowSet:
        """Return the rows ordered by some variables, ties in the fixed order of rows; only the first `number` if
        given. A column is only examined if the ones before leave ties.
        """

        def ranked_by(one: RowOrder, rows: RowSet) -> Places:
            ranks, bound = rows.ranks(one.variable, spelled=False), rows.column(one.variable).bound
            return np.where(bound, dense(-ranks if one.descending else ranks) + 1, 0 if one.first else rows.size + 1)

        marks: list[Callable[[RowSet], Places]] = [partial(ranked_by, one) for one in by]
        # Columns that were compared need not be compared again by text: those with one text for equal terms, and copies.
        # Names of entities and the entities themselves have the same numbers, and are no copies.
        columns = [self.column(one.variable) for one in by]
        used = {(one.kind, id(one.numbers)) for one in columns if one.kind in (ENTITY, STATEMENT, NAME) or one.counts is not None}
        for name, column in self.columns.items():
            if (key := (column.kind, id(column.numbers))) not in used:
                used.add(key)
                marks.append(lambda rows, name=name: rows.ranks(name))  # type: ignore[misc]
        rows, places, ranks = self, np.arange(self.size), np.zeros(self.size, np.int64)
        for mark in marks:
            check()
            if not rows.size or int(ranks.max()) + 1 == rows.size:
                break
            ranks = dense(ranks, mark(rows))
            if number is not None and 0 < number < rows.size:
                chosen = np.flatnonzero(ranks <= np.partition(ranks, number - 1)[number - 1])
                rows, places, ranks = rows.take(chosen), places.take(chosen), dense(ranks.take(chosen))
        return self.take(places.take(in_order([ranks]))[:number], ordered=True)

    def grid(self, names: Sequence[str]) -> Grid:
        """Return the rows as the table of an answer."""
        if self._grid is None:
            rows = self.in_fixed_order()
            columns = []
            for name in names:
                column = rows.column(name).narrowed()
                columns.append(Column(term_series(self.scope, column), np.where(column.bound, np.arange(rows.size), -1)))
            self._grid = Grid(tuple(names), len(names), columns, Members.unknown(rows.size))
        return self._grid


def _order(cell: Cell, spelled: bool) -> tuple[Any, ...]:
    """Return the sort key of a term: values first, then statements, paths and the rest by their texts."""
    value = cell.value
    if value is UNKNOWN or isinstance(value, bool | str | int | float | Quantity | Time | Entity):
        return fixed_order(cell) if spelled else order_of(cell)
    return (7, type(value).__name__, cell.text)


# -- terms as Python values --------------------------------------------------------------------------


class _StatementSeries(Series):
    """Statements, decoded to the records of evidence."""

    def __init__(self, scope: Scope, numbers: Numbers) -> None:
        self._scope, self._numbers = scope, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def cells(self, at: Places) -> list[Cell]:
        distinct, inverse = once(self._numbers.take(at))
        cells = [Cell(record, statement_text(record)) for record in records_of(self._scope.snapshot, distinct)]
        return [cells[number] for number in watched(inverse.tolist())]

    def codes(self, at: Places) -> Places:
        return self._numbers.take(at).astype(np.int64)


def term_series(scope: Scope, column: Terms) -> Series:
    """Return the terms of a column, by row; positions of unbound terms must not be accessed."""
    numbers = column.numbers
    if column.kind == ENTITY:
        return EntitySeries(scope.snapshot, numbers)
    if column.kind == STATEMENT:
        return _StatementSeries(scope, numbers)
    if column.kind in _BAGS:
        # Unbound rows get the first cell, which is never accessed there.
        return BagSeries(Bag(scope, [Part(_BAGS[column.kind], np.maximum(numbers, 0), numbers)]))
    cells: list[Cell | None] = [None] * len(numbers)
    for kind, positions, part_numbers in column.split():
        distinct, inverse = once(part_numbers)
        if kind == GIVEN:
            part_cells = [given_cell(scope, scope.terms[number]) for number in watched(distinct.tolist())]
        else:
            part_cells = term_series(scope, Terms(kind, distinct)).cells(np.arange(len(distinct)))
        for place, index in watched(zip(positions.tolist(), inverse.tolist(), strict=True)):
            cells[place] = part_cells[index]
    return ListSeries(cells)


def given_cell(scope: Scope, term: Any) -> Cell:
    """Return a term from outside the graph as a cell of an answer."""
    snapshot = scope.snapshot
    if isinstance(term, EntityAt):
        entity = snapshot.entity(term.number)
        return Cell(entity, entity.name)
    if isinstance(term, StatementAt):
        record = record_of(snapshot, term.number)
        return Cell(record, statement_text(record))
    if isinstance(term, PathAt):
        records = [record_of(snapshot, number) for number in term.statements]
        path = PathTerm(tuple(snapshot.entity(number) for number in term.entities), tuple(records))
        return Cell(path, str(path))
    if isinstance(term, list | tuple):
        cells = [None if item is None else given_cell(scope, item) for item in term]
        text = ", ".join("" if cell is None else cell.text for cell in cells)
        return Cell(tuple(None if cell is None else cell.value for cell in cells), f"[{text}]")
    if isinstance(term, dict):
        items = {key: None if item is None else given_cell(scope, item) for key, item in term.items()}
        values = {key: None if cell is None else cell.value for key, cell in items.items()}
        return Cell(values, "{" + ", ".join(f"{key}: {'' if cell is None else cell.text}" for key, cell in items.items()) + "}")
    return Cell(term, term_text(term))


def term_text(term: Any) -> str:
    """Return the text of a single term. Floats that Python prints with an exponent keep it, so that no invented
    digits are shown.
    """
    if type(term) is float and abs(term) >= _EXPONENT:
        return repr(term)
    return shown(term) if isinstance(term, str | bool | int | float | Decimal | Quantity | Time | Entity) else str(term)


def python_terms(scope: Scope, column: Terms) -> list[Any]:
    """Return the terms of a column as expressions use them (`execute.terms`); None if unbound or unknown."""
    result: list[Any] = [None] * len(column)
    if column.kind == NAME and column.bound.all():
        return list(scope.snapshot.texts.take(scope.snapshot.entity_name.take(column.numbers)))
    if column.kind == ENTITY:
        return [EntityAt(number) if number >= 0 else None for number in watched(column.numbers.tolist())]
    if column.kind == STATEMENT:
        return [StatementAt(number) if number >= 0 else None for number in watched(column.numbers.tolist())]
    if column.kind == GIVEN:
        terms = scope.terms
        return [terms[number] if number >= 0 else None for number in watched(column.numbers.tolist())]
    for kind, positions, numbers in column.split():
        distinct, inverse = once(numbers)
        if kind == ENTITY:
            terms = [EntityAt(number) for number in watched(distinct.tolist())]
        elif kind == STATEMENT:
            terms = [StatementAt(number) for number in watched(distinct.tolist())]
        elif kind == GIVEN:
            terms = [scope.terms[number] for number in watched(distinct.tolist())]
        else:
            terms = [_unwrapped(value) for value in watched(Bag(scope, [Part(_BAGS[kind], distinct, distinct)]).values())]
        for place, index in watched(zip(positions.tolist(), inverse.tolist(), strict=True)):
            result[place] = terms[index]
    return result


def _unwrapped(value: Any) -> Any:
    """Return a value as expressions use it: numbers without a unit are plain numbers."""
    if isinstance(value, Quantity) and value.unit == NO_UNIT:
        return value.number
    return None if value is UNKNOWN else value


def column_of(scope: Scope, terms: Sequence[Any]) -> Terms:
    """Return terms of expressions as a column."""
    kind = type(terms[0]) if len(terms) else None
    if kind in (int, float, str) and all(type(term) is kind for term in watched(terms)):
        term_numbers, all_terms = scope.term_numbers, scope.terms
        numbers = []
        for term in watched(terms):
            number = term_numbers.get((kind, term))
            if number is None:
                number = term_numbers[kind, term] = len(all_terms)
                all_terms.append(term)
            numbers.append(number)
        return Terms(GIVEN, np.array(numbers, np.int32))
    marked = np.full(len(terms), -1, np.int64)
    for place, term in enumerate(watched(terms)):
        if isinstance(term, EntityAt):
            marked[place] = term.number
        elif isinstance(term, StatementAt):
            marked[place] = term.number | (STATEMENT << _SHIFT)
        elif term is not None:
            marked[place] = given(scope, term) | (GIVEN << _SHIFT)
    return Terms(None, marked).narrowed()


# -- joins -------------------------------------------------------------------------------------------


def too_many(count: int | None, what: str, hint: str) -> PlanError:
    """Return the error of an operator with more than `MAX_ROWS` rows; `count` is None if the number is unknown."""
    rows = f"more than {MAX_ROWS:,} rows" if count is None else f"{count:,} rows, more than {MAX_ROWS:,}"
    return PlanError(f"{what} has {rows}", hint=hint)


def pairs(left: Places, right: Places) -> Iterator[tuple[Places, Places]]:
    """Yield the positions of equal keys in both, in chunks; negative keys equal nothing."""
    order = in_order([right])
    order = order[int((right < 0).sum()) :]
    if not len(left) or not len(order):
        return
    low, sizes = equal_runs(left, right.take(order), sort=False)
    total = int(sizes.sum())
    if total > MAX_ROWS:
        raise too_many(total, "a join", "join on more variables, or filter its inputs first")
    for start, stop in chunks(sizes):
        begin, counts = low[start:stop], sizes[start:stop]
        yield np.arange(start, stop).repeat(counts), order.take(ranges(begin, begin + counts))


def chunks(counts: Places, size: int = CHUNK) -> Iterator[tuple[int, int]]:
    """Yield bounds of runs of rows with about `size` results each, where row i has `counts[i]`; checks the deadline
    before each.
    """
    ends = counts.cumsum()
    start, total = 0, len(counts)
    while start < total:
        check()
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield start, min(stop, total)
        start = stop


def compatible(left: RowSet, right: RowSet, shared: Sequence[str]) -> tuple[Places, Places]:
    """Return the positions of all compatible pairs of rows."""
    if not shared:
        total = left.size * right.size
        if total > MAX_ROWS:
            names = [visible(rows.columns) for rows in (left, right)]
            raise too_many(
                total,
                f"the product of {left.size:,} rows of {names[0]} with {right.size:,} rows of {names[1]}, which share no variable,",
                "connect the two parts, or filter them first",
            )
        return np.arange(left.size).repeat(right.size), np.tile(np.arange(right.size), left.size)
    columns = [codes(left.scope, [left.column(name), right.column(name)]) for name in shared]
    lefts, rights = [part[0] for part in columns], [part[1] for part in columns]
    results: list[tuple[Places, Places]] = []
    for left_places, left_bound in _by_bound(lefts, left.size):
        for right_places, right_bound in _by_bound(rights, right.size):
            common = [at for at in range(len(shared)) if left_bound[at] and right_bound[at]]
            left_keys = [lefts[at].take(left_places) for at in common]
            right_keys = [rights[at].take(right_places) for at in common]
            keys = packed(
                [np.concatenate(pair) for pair in zip(left_keys, right_keys, strict=True)], len(left_places) + len(right_places)
            )
            for left_position, right_position in pairs(keys[: len(left_places)], keys[len(left_places) :]):
                results.append((left_places.take(left_position), right_places.take(right_position)))
                if sum(len(part[0]) for part in results) > MAX_ROWS:
                    raise too_many(None, "a join", "join on more variables, or filter its inputs first")
    if not results:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([part[0] for part in results]), np.concatenate([part[1] for part in results])


def _by_bound(columns: Sequence[Places], size: int) -> Iterator[tuple[Places, tuple[bool, ...]]]:
    """Yield groups of rows that bind the same shared variables: their positions, and which variables these are."""
    if all((column >= 0).all() for column in columns):
        yield np.arange(size), (True,) * len(columns)
        return
    masks = np.zeros(size, np.int64)
    for at, column in enumerate(columns):
        masks |= (column >= 0).astype(np.int64) << at
    for value in np.unique(masks).tolist():
        yield np.flatnonzero(masks == value), tuple(bool(value >> at & 1) for at in range(len(columns)))


def merged(left: RowSet, right: RowSet, one: Places, other: Places, names: Sequence[str]) -> RowSet:
    """Return pairs of compatible rows as rows with these columns."""
    columns: dict[str, Terms] = {}
    for name in names:
        if name not in right.columns:
            columns[name] = left.column(name).take(one)
        elif name not in left.columns:
            columns[name] = right.columns[name].take(other)
        else:
            column = left.columns[name].take(one)
            if not column.bound.all():
                other_column = right.columns[name].take(other)
                if column.kind == other_column.kind:
                    column = Terms(column.kind, np.where(column.numbers >= 0, column.numbers, other_column.numbers))
                else:
                    column = Terms(None, np.where(column.numbers >= 0, column.marked(), other_column.marked())).narrowed()
            columns[name] = column
    return RowSet(left.scope, len(one), columns)


def concatenated(parts: Sequence[RowSet], names: Sequence[str], scope: Scope) -> RowSet:
    """Return the rows one after the other."""
    size = sum(part.size for part in parts)
    if size > MAX_ROWS:
        raise too_many(size, "a union", "filter its parts first")
    if not parts:
        return RowSet(scope, 0, {name: Terms.unbound(0) for name in names})
    return RowSet(scope, size, {name: Terms.joined([part.column(name) for part in parts]) for name in watched(names, 1)})
