"""Values as columns: the encoding of a value in numbers.

A cell is `kind` (int8, `values.Kind`), `a` and `b` (int64), `ref` (int32), `unit` (int32) and
`precision` (int8):

    text      ref = the text's number, unit = the text number of the name of its form (`FORMS`; -1: none)
    quantity  a = the bits of its float64, unit = the unit's text number (-1: none), ref = the exact text where a float loses digits
    time      a, b = start and end in seconds, precision
    entity    ref = the entity's number
    unknown   nothing
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Column, Ids, Numbers, Ref, Texts, Times
from condgraph.engine.values import (
    MAX_DIGITS,
    NO_UNIT,
    UNKNOWN,
    Kind,
    Precision,
    Quantity,
    Time,
    Value,
    clean_unit,
    collapse,
    form_of,
    format_number,
    formed,
    parse_number,
)

#: The parts of a cell, with their types.
PARTS: Final = (("kind", np.int8), ("a", np.int64), ("b", np.int64), ("ref", np.int32), ("unit", np.int32), ("precision", np.int8))
CellColumns = dict[str, NDArray[Any]]
Intern = Callable[[str], int]

_EXACT: Final = 2**53
_TOO_LARGE: Final = 10**MAX_DIGITS


def encode_values(values: list[Ref | Value], text: Intern, entity: Intern) -> CellColumns:
    """Encode values one by one. `text` and `entity` return the numbers of texts and of entity ids."""
    count = len(values)
    kind, ref, unit, precision = [0] * count, [-1] * count, [-1] * count, [0] * count
    a, b, floats = [0] * count, [0] * count, [0.0] * count
    for position, value in enumerate(values):
        if isinstance(value, str):
            ref[position] = text(collapse(value))
            if type(value) is not str and (form := form_of(value)) != NO_UNIT:
                unit[position] = text(form)
        elif isinstance(value, Quantity):
            kind[position] = 1
            number = value.number
            floats[position], exact = _as_float(number)
            if exact is not None:
                ref[position] = text(exact)
            if value.unit != NO_UNIT and (cleaned := clean_unit(value.unit)) != NO_UNIT:
                unit[position] = text(cleaned)
        elif isinstance(value, Time):
            kind[position] = 2
            a[position], b[position], precision[position] = value.start, value.end, value.precision
        elif isinstance(value, Ref):
            kind[position] = 3
            ref[position] = entity(value.id)
        elif value is UNKNOWN:
            kind[position] = 4
        else:
            raise LoadError(f"{value!r} is not a value: text, Quantity, Time, Ref or UNKNOWN is expected")
    kinds = np.array(kind, np.int8)
    bits = np.array(a, np.int64)
    quantities = kinds == Kind.QUANTITY
    if quantities.any():
        bits[quantities] = np.array(floats, np.float64)[quantities].view(np.int64)
    return {
        "kind": kinds,
        "a": bits,
        "b": np.array(b, np.int64),
        "ref": np.array(ref, np.int32),
        "unit": np.array(unit, np.int32),
        "precision": np.array(precision, np.int8),
    }


def _as_float(number: int | float | Decimal) -> tuple[float, str | None]:
    """Return the nearest float, and the exact text if the float is not exact."""
    if isinstance(number, float):
        if not math.isfinite(number):
            raise LoadError(f"{number!r} is not a finite number")
        return number + 0.0, None
    if isinstance(number, Decimal):
        if not number.is_finite():
            raise LoadError(f"{number!r} is not a finite number")
        if abs(number.adjusted()) >= MAX_DIGITS:
            raise LoadError(f"a number has more than {MAX_DIGITS} digits")
        if number == number.to_integral_value():
            number = int(number)
        else:
            nearest = float(number)
            # A float stands for its shortest text, so that 0.1 is exact.
            return nearest, None if Decimal(repr(nearest)) == number else format_number(number)
    try:
        nearest = float(number)
    except OverflowError:
        if abs(number) >= _TOO_LARGE:
            raise LoadError(f"a number has more than {MAX_DIGITS} digits") from None
        return (math.inf if number > 0 else -math.inf), format_number(number)
    return nearest, None if int(nearest) == number else format_number(number)


def encode_column(column: Column, text_many: Callable[[Any], NDArray[np.int32]], text: Intern, entity: Intern) -> CellColumns:
    """Encode a column of a batch. Columns of entities (`Ids`) are not cells."""
    if isinstance(column, Texts):
        refs = text_many(column.texts if column.collapsed else [collapse(text) for text in column.texts])
        return _cells(len(refs), Kind.TEXT, ref=refs)
    if isinstance(column, Numbers):
        numbers = column.numbers
        if numbers.dtype.kind in "iu":
            wide = np.abs(numbers) > _EXACT
            if wide.any():
                return encode_values([Quantity(int(number), column.unit) for number in numbers], text, entity)
        floats = numbers.astype(np.float64) + 0.0
        if not np.isfinite(floats).all():
            raise LoadError("a column of numbers holds one that is not finite")
        cleaned = clean_unit(column.unit)
        unit = -1 if cleaned == NO_UNIT else text(cleaned)
        return _cells(len(floats), Kind.QUANTITY, a=floats.view(np.int64), unit=np.full(len(floats), unit, np.int32))
    if isinstance(column, Times):
        return _cells(
            len(column.starts),
            Kind.TIME,
            a=np.asarray(column.starts, np.int64),
            b=np.asarray(column.ends, np.int64),
            precision=np.asarray(column.precisions, np.int8),
        )
    assert not isinstance(column, Ids)
    return encode_values(list(column.values), text, entity)


def _cells(n: int, kind: Kind, **parts: NDArray[Any]) -> CellColumns:
    cells: CellColumns = {"kind": np.full(n, kind, np.int8)}
    for name, dtype in PARTS[1:]:
        default = -1 if name in ("ref", "unit") else 0
        cells[name] = parts[name] if name in parts else np.full(n, default, dtype)
    return cells


def sortable(kind: NDArray[Any], a: NDArray[Any], ref: NDArray[Any]) -> NDArray[np.int64]:
    """Return integers that order cells of one kind and unit as their values: text by code point, numbers by size,
    times by start.
    """
    key = a.copy()
    numbers = (kind == Kind.QUANTITY) & (a < 0)
    # Floats compare like their bits as integers, once those of negative numbers are inverted.
    key[numbers] ^= np.int64(0x7FFF_FFFF_FFFF_FFFF)
    by_ref = (kind == Kind.TEXT) | (kind == Kind.ENTITY)
    key[by_ref] = ref[by_ref]
    return key


def decode_values(cells: CellColumns, text: Callable[[int], str], entity: Callable[[int], str]) -> list[Ref | Value]:
    """Return cells as values, in order."""
    units: dict[int, str] = {-1: NO_UNIT}
    result: list[Ref | Value] = []
    floats = cells["a"].view(np.float64).tolist()
    columns = [cells[name].tolist() for name, _ in PARTS]
    for float_, kind, a, b, ref, unit, precision in zip(floats, *columns, strict=True):
        if kind == 0:
            if unit < 0:
                result.append(text(ref))
                continue
            if unit not in units:
                units[unit] = text(unit)
            result.append(formed(text(ref), units[unit]))
        elif kind == 1:
            if unit not in units:
                units[unit] = text(unit)
            number = parse_number(text(ref)) if ref >= 0 else (int(float_) if float_.is_integer() else float_)
            result.append(Quantity(number, units[unit]))
        elif kind == 2:
            result.append(Time(a, b, _PRECISIONS[precision]))
        else:
            result.append(Ref(entity(ref)) if kind == 3 else UNKNOWN)
    return result


_PRECISIONS: Final = tuple(Precision)

#: Hashes of columns.
Hashes = NDArray[np.uint64]


def mix(hashes: Hashes, column: Any) -> Hashes:
    """Fold a column into hashes (the finaliser of splitmix64)."""
    h: Hashes = (hashes ^ column) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
