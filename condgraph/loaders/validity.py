"""Declared times: columns or qualifiers that say when rows or statements hold.

They become the qualifiers `start time`, `end time` and `point in time`, which every store and language knows.
`[valid_from, valid_to)` names two columns whose end is the first moment in which the row no longer holds, as in
SQL:2011 histories and slowly changing dimensions. In `[valid_from, valid_to]` the end is the last day (or month, or
year) in which it holds. `observed_on` is one column, a point in time.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from condgraph.engine import facts as model
from condgraph.engine.errors import OptionError, nearest, shortened
from condgraph.engine.reading.times import EPOCHS
from condgraph.engine.row_times import TIMES_HINT, Qualifiers, RowTimes
from condgraph.engine.toml import read_file
from condgraph.engine.values import UNKNOWN, Precision, Quantity, Time, Value
from condgraph.loaders.base import Reading


def unpacked(column: model.Column) -> list[Value]:
    """Return the values of a column without entities as a list."""
    if isinstance(column, model.Texts):
        return list(column.texts)
    if isinstance(column, model.Numbers):
        return [Quantity(number, column.unit) for number in column.numbers.tolist()]
    if isinstance(column, model.Times):
        columns = zip(column.starts.tolist(), column.ends.tolist(), column.precisions.tolist(), strict=True)
        return [Time(start, end, Precision(precision)) for start, end, precision in columns]
    return list(column.values)  # type: ignore[union-attr, arg-type]


def with_times(items: Iterable[model.Item | Any], times: Mapping[str, RowTimes], reading: Reading) -> Iterator[Any]:
    """Yield the items of tables, with the times of each row on its statements; `times` maps sources ("" for any).

    All batches of these tables are read before the first is yielded. A row with invalid times, or that holds at no time, is
    bad: it raises `LoadError`, or its statements are skipped. It stays an entity, as any row is when it does not hold: other
    rows may refer to it.
    """
    batches: list[model.Batch] = []
    for item in items:
        if isinstance(item, model.Batch) and _of(item.source, times) is not None:
            batches.append(item)
        elif (
            isinstance(item, model.Sourced)
            and isinstance(item.item, model.Statement)
            and (row_times := _of(item.sources[0][0], times)) is not None
        ):
            # The row is a relation, and its other columns are qualifiers.
            cells_of_row = {key: value for key, value in item.item.qualifiers if not isinstance(value, model.Ref)}
            for name in row_times.epochs(cells_of_row):
                reading.warn(EPOCHS, field=name)
            qualifiers = _checked(row_times, cells_of_row, item.item.row, reading, entity=False)
            if qualifiers is not None:
                yield replace(item, item=replace(item.item, qualifiers=(*item.item.qualifiers, *qualifiers)))
        else:
            yield item
    cells: dict[str, dict[int, dict[str, Value]]] = defaultdict(lambda: defaultdict(dict))
    for batch in batches:
        declared = _of(batch.source, times)
        assert declared is not None
        if isinstance(batch.predicates, str) and batch.predicates not in declared.columns():
            continue
        predicates = [batch.predicates] * len(batch) if isinstance(batch.predicates, str) else batch.predicates
        for row, name, value in zip(batch.rows, predicates, _objects(batch), strict=True):
            if name in declared.columns():
                cells[batch.source][int(row)][name] = value
    result: dict[str, dict[int, Qualifiers | None]] = {}
    for source, rows in cells.items():
        declared = _of(source, times)
        assert declared is not None
        for name in sorted({name for row_cells in rows.values() for name in declared.epochs(row_cells)}):
            reading.warn(EPOCHS, field=name)
        result[source] = {row: _checked(declared, row_cells, row, reading) for row, row_cells in rows.items()}
        _touching(declared, rows, reading)
    for batch in batches:
        yield from _timed(batch, result.get(batch.source, {}))


def _of(source: str, times: Mapping[str, RowTimes]) -> RowTimes | None:
    return times.get(source, times.get(""))


def _objects(batch: model.Batch) -> Sequence[Any]:
    return list(batch.objects.ids) if isinstance(batch.objects, model.Ids) else unpacked(batch.objects)


def _checked(times: RowTimes, cells: Mapping[str, Value], row: int, reading: Reading, entity: bool = True) -> Qualifiers | None:
    """Return the qualifiers of a row, which may be an entity, or None if it is bad."""
    try:
        return times.qualifiers(cells)
    except ValueError as error:
        stays = "; its statements are left out, the entity stays" if entity and reading.on_error == "skip" else ""
        reading.bad(f"{error}{stays}", row=row)
        return None


def _touching(times: RowTimes, rows: Mapping[int, Mapping[str, Value]], reading: Reading) -> None:
    """Warn of included ends that are starts of other rows, since both rows would hold then."""
    if times.excluded or not times.start or not times.end:
        return
    starts = {row[times.start] for row in rows.values() if times.start in row}
    ends = [row[times.end] for row in rows.values() if times.end in row]
    touching = sum(end in starts for end in ends)
    if touching * 2 > len(ends):
        reading.warn(
            f"{touching:,} of {len(ends):,} ends in {times.end!r} are starts of other rows, and both hold then; "
            f"times='[{times.start}, {times.end})' excludes the end",
            field=times.end,
        )


def _timed(batch: model.Batch, rows: Mapping[int, Qualifiers | None]) -> Iterator[model.Batch]:
    """Yield a batch with the times of its rows, without bad rows."""
    of_rows = [rows.get(int(row), ()) for row in batch.rows]
    if None in of_rows:
        yield from _one_by_one(batch, of_rows)
        return
    keyed = [dict(qualifiers or ()) for qualifiers in of_rows]
    added = [
        (key, [qualifiers.get(key) for qualifiers in keyed])
        for key in (model.START_TIME, model.END_TIME, model.POINT_IN_TIME)
        if any(key in qualifiers for qualifiers in keyed)
    ]
    yield replace(batch, qualifiers=(*batch.qualifiers, *added))


def _one_by_one(batch: model.Batch, of_rows: Sequence[Qualifiers | None]) -> Iterator[Any]:
    relation = isinstance(batch.objects, model.Ids)
    raws: Sequence[str | None] = list(batch.raws) if batch.raws is not None else [None] * len(batch)
    names: Iterable[str] = [batch.predicates] * len(batch) if isinstance(batch.predicates, str) else batch.predicates
    for at, (name, target, times) in enumerate(zip(names, _objects(batch), of_rows, strict=True)):
        if times is None:
            continue
        qualifiers = [(key, value) for key, column in batch.qualifiers if (value := column[at]) is not None]
        row = int(batch.rows[at])
        statement = model.Statement(
            batch.subjects[at], name, model.Ref(target) if relation else target, tuple(chain(qualifiers, times)), row, raws[at]
        )
        yield model.Sourced(statement, ((batch.source, row),)) if batch.source else statement


# -- statements --------------------------------------------------------------------------------------

#: The key for all predicates that a declaration does not name.
OTHERS: Final = "*"
_SIDES: Final = ((model.START_TIME, "start"), (model.END_TIME, "end"), (model.POINT_IN_TIME, "point"))


class StatementTimes:
    """The qualifiers that say when statements hold, by predicate; `OTHERS` is for predicates not named."""

    def __init__(self, times: Mapping[str, RowTimes]) -> None:
        self._times = times
        #: The qualifiers seen on statements of each declared predicate, and all predicates seen.
        self._seen: dict[str, set[str]] = defaultdict(set)
        self._predicates: set[str] = set()

    @classmethod
    def of(cls, value: Any) -> StatementTimes:
        """Parse `"[since, until)"`, a mapping of predicates to such texts, or the path of a file with a section `[times]`.

        Raises `OptionError`.
        """
        if isinstance(value, os.PathLike) or (isinstance(value, str) and value.endswith(".toml")):
            place, section = os.fspath(value), read_file(value).get("times")
            if not isinstance(section, Mapping):
                raise OptionError(f"{place} has no section [times]", hint='[times]\ncapital = "[since, until)"')
            value = section
        if isinstance(value, str):
            value = {OTHERS: value}
        if not isinstance(value, Mapping) or not value:
            raise OptionError(
                f"times= is an interval of qualifiers or a mapping of predicates to these, not {shortened(repr(value), 100)}",
                hint=TIMES_HINT,
            )
        return cls({str(predicate): RowTimes.of(text) for predicate, text in value.items()})

    def columns(self) -> dict[str, list[str]]:
        """Return the declared qualifiers by predicate."""
        return {predicate: times.columns() for predicate, times in self._times.items()}

    def timed(self, items: Iterable[Any], reading: Reading) -> Iterator[Any]:
        """Yield the items, with the times that their qualifiers declare.

        A statement with invalid times, or that holds at no time, is bad: it raises `LoadError`, or is skipped.
        """
        for item in items:
            if isinstance(item, model.Sourced) and isinstance(item.item, model.Statement):
                statement = self._statement(item.item, reading)
                if statement is not None:
                    yield item if statement is item.item else replace(item, item=statement)
            elif isinstance(item, model.Statement):
                statement = self._statement(item, reading)
                if statement is not None:
                    yield statement
            elif isinstance(item, model.Batch) and item.qualifiers and self._concerns(item):
                yield from self.timed(_one_by_one(item, [()] * len(item)), reading)
            else:
                if isinstance(item, model.Batch):
                    self._note(item)
                yield item

    def check(self) -> None:
        """Raise `OptionError` for a declared predicate or qualifier that no statement had."""
        for predicate, times in self._times.items():
            if predicate != OTHERS and predicate not in self._predicates:
                raise OptionError(
                    f"times= names the predicate {predicate!r}, which no statement has",
                    candidates=nearest(predicate, self._predicates),
                )
            for column in times.columns():
                seen = self._seen[predicate]
                if column not in seen:
                    of = "" if predicate == OTHERS else f" of {predicate!r}"
                    raise OptionError(
                        f"times= names the qualifier {column!r}, which no statement{of} has", candidates=nearest(column, seen)
                    )

    def _concerns(self, batch: model.Batch) -> bool:
        if OTHERS in self._times:
            return True
        names = {batch.predicates} if isinstance(batch.predicates, str) else set(batch.predicates)
        return not names.isdisjoint(self._times)

    def _note(self, batch: model.Batch) -> None:
        self._predicates |= {batch.predicates} if isinstance(batch.predicates, str) else set(batch.predicates)

    def _statement(self, statement: model.Statement, reading: Reading) -> model.Statement | None:
        """Return a statement with its times, or None if it is bad."""
        predicate = statement.predicate
        self._predicates.add(predicate)
        declared = predicate if predicate in self._times else OTHERS
        times = self._times.get(declared)
        if times is None or not statement.qualifiers:
            return statement
        self._seen[declared].update(key for key, _ in statement.qualifiers)
        columns = times.columns()
        stated = [(key, value) for key, value in statement.qualifiers if key in columns]
        if not stated:
            return statement
        for name in times.epochs({key: value for key, value in stated if not isinstance(value, model.Ref)}):
            reading.warn(EPOCHS, field=name)
        try:
            added = self._added(times, stated, f"a statement of {predicate!r}")
        except ValueError as error:
            reading.bad(f"{error} (of {shortened(statement.subject, 60)})", row=statement.row or None)
            return None
        # A declared qualifier that already has one of the three names is replaced.
        kept_qualifiers = [(key, value) for key, value in statement.qualifiers if not (key in columns and key in _VALIDITY)]
        return replace(statement, qualifiers=tuple(dict.fromkeys([*kept_qualifiers, *added])))

    @staticmethod
    def _added(times: RowTimes, stated: Sequence[tuple[str, Any]], what: str) -> list[tuple[str, Any]]:
        """Return the times of qualifiers; a key may have several values."""
        added: list[tuple[str, Any]] = []
        for name, value in stated:
            if isinstance(value, model.Ref):
                raise ValueError(f"{name!r} is not a time: {value.id!r}")
            sides = {side: name for _, side in _SIDES if getattr(times, side) == name}
            side_times = RowTimes(**sides, excluded=times.excluded)
            if value is UNKNOWN:
                added += [(key, UNKNOWN) for key, side in _SIDES if getattr(side_times, side)]
            else:
                added += side_times.qualifiers({name: value}, what)
        if len(stated) == len({name for name, _ in stated}):
            # Check both ends together: the start must come before the end.
            times.qualifiers({name: value for name, value in stated if value is not UNKNOWN}, what)
        return added


_VALIDITY: Final = frozenset(key for key, _ in _SIDES)
