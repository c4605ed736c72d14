"""Columns as statements, read whole rather than cell by cell: plain numbers, ISO days, and text.

`read_whole` takes `fields.Fields`, whose cells were not made; `plain_batch` takes cells. What is
given is what `rows.Table.text_batch` gives of the same cells; a column that is anything else is left
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import Batch, Column, Numbers, Raws, Texts, Times
from condgraph.engine.values import DAY_SECONDS, Precision, format_number
from condgraph.loaders.table.column_type import ColumnType
from condgraph.loaders.table.fields import Fields

#: Objects, the texts of the source where they print differently (None: nowhere), and which of the
#: cells are there.
Whole: TypeAlias = tuple[Column, Sequence[str | None] | None, NDArray[np.bool_]]
_TEN: Final = np.array([10.0**power for power in range(16)])


def read_whole(fields: Fields, chosen: ColumnType) -> Whole | None:
    """A column at once; None where it has to be read cell by cell."""
    if chosen.lists:
        return None
    if chosen.kind == "text":
        return _texts(fields, chosen.missing)
    if not chosen.plain or chosen.years or any(marker[-1:].isdigit() for marker in chosen.missing):
        return None
    return _READERS[chosen.plain](fields)


def _texts(fields: Fields, missing: frozenset[str]) -> Whole | None:
    if not fields.collapsed:
        return None
    there = ~fields.missing(missing)
    return Texts(fields if there.all() else fields.where(there), collapsed=True), None, there


def _days(fields: Fields) -> Whole | None:
    found = fields.days
    if found is None:
        return None
    starts = found.days[found.there] * DAY_SECONDS
    return Times(starts, starts + DAY_SECONDS, np.full(len(starts), Precision.DAY, np.int8)), None, found.there


def year_times(years: NDArray[np.int64]) -> Times:
    """Whole years as times."""
    starts, ends = ((number - 1970).astype("datetime64[Y]").astype("datetime64[s]") for number in (years, years + 1))
    return Times(starts.astype(np.int64), ends.astype(np.int64), np.full(len(years), Precision.YEAR, dtype=np.int8))


def _years(fields: Fields) -> Whole | None:
    found = fields.plain
    if found is None:
        return None
    years = found.mantissa[found.there]
    if found.decimals.any() or (found.lengths[found.there] != 4).any() or (years < 1000).any():
        return None
    return year_times(years), None, found.there


def _integers(fields: Fields) -> Whole | None:
    found = fields.plain
    if found is None or found.decimals.any():
        return None
    return Numbers(found.mantissa[found.there]), None, found.there


def _decimals(fields: Fields) -> Whole | None:
    found = fields.plain
    # A float keeps fifteen digits; one that is smaller than that prints with an exponent.
    if found is None or int(found.lengths.max(initial=0)) > 15:
        return None
    mantissa, decimals = found.mantissa, found.decimals
    # Both are exact as floats, so that one division rounds as reading the text does.
    numbers = mantissa / _TEN[decimals]
    if ((np.abs(numbers) < 1e-4) & (mantissa != 0)).any():
        return None
    # A number prints without zeros at the end of its decimals.
    other = (decimals > 0) & (mantissa % 10 == 0) & found.there
    there = found.there
    raws = None
    if other.any():
        raws = Raws(int(np.count_nonzero(there)), np.flatnonzero(other if there.all() else other[there]), fields.where(other))
    return Numbers(numbers[there]), raws, there


_READERS: Final[dict[str, Callable[[Fields], Whole | None]]] = {"int": _integers, "float": _decimals, "day": _days, "year": _years}


def plain_batch(name: str, chosen: ColumnType, ids: Sequence[str], rows: Sequence[int], cells: Sequence[str]) -> Batch | None:
    """A column of plain integers, decimals or ISO days read at once; None where it has to be read
    cell by cell after all.
    """
    kept: list[int] | None = None
    if any(marker[-1:].isdigit() for marker in chosen.missing):
        return None
    if any(cell in chosen.missing or cell.casefold() in chosen.missing for cell in set(cells) if len(cell) < 8):
        kept = [at for at, cell in enumerate(cells) if cell.casefold() not in chosen.missing]
        cells = [cells[at] for at in kept]
        if not cells:
            return None
    objects: Column
    try:
        if chosen.plain == "day":
            days = np.array(cells, dtype="datetime64[D]").astype(np.int64)
            starts = days * DAY_SECONDS
            objects = Times(starts, starts + DAY_SECONDS, np.full(len(cells), Precision.DAY, dtype=np.int8))
            printed = list(cells) if set(map(len, cells)) == {10} else None
        elif chosen.years:
            return None
        elif chosen.plain == "year":
            numbers = list(map(int, cells))
            printed = list(map(str, numbers))
            if printed != list(cells) or min(numbers) < 1000 or max(numbers) > 9999:
                return None
            objects = year_times(np.array(numbers, dtype=np.int64))
        elif chosen.plain == "int":
            numbers = list(map(int, cells))
            objects = Numbers(np.array(numbers, dtype=np.int64))
            printed = list(map(str, numbers))
        else:
            floats = list(map(float, cells))
            array = np.array(floats, dtype=np.float64)
            if np.isnan(array).any():
                return None
            objects = Numbers(array)
            printed = list(map(repr, floats))
            if printed != list(cells):
                # A float keeps fifteen digits.
                if any(len(cell) > 15 and cell != text for cell, text in zip(cells, printed, strict=True)):
                    return None
                printed = list(map(format_number, floats))
            elif np.any(array == np.trunc(array)):
                printed = list(map(format_number, floats))
    except (ValueError, OverflowError):
        # A missing marker with white space in it, say.
        return None
    if printed is None:
        return None
    raws = None if printed == list(cells) else [None if text == cell else cell for text, cell in zip(printed, cells, strict=True)]
    if kept is not None:
        ids, rows = [ids[at] for at in kept], [rows[at] for at in kept]
    return Batch(ids, name, objects, rows, raws)
