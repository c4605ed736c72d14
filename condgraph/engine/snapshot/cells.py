"""Values as columns: how a value is encoded in numbers.

A cell is `kind` (int8, `values.Kind`), `a` and `b` (int64), `ref` (int32), `unit` (int32) and
`precision` (int8):

    text      ref = the text's number, unit = the text number of the name of its form (`forms`; -1: none)
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
from condgraph.engine.forms import form_of, formed
from condgraph.engine.values import (
    MOST_DIGITS,
    NO_UNIT,
    UNKNOWN,
    Kind,
    Precision,
    Quantity,
    Time,
    Value,
    clean_unit,
    collapse,
    format_number,
    parse_number,
)

#: The parts of a cell, with their types.
PARTS: Final = (
    ("kind", np.int8),
    ("a", np.int64),
    ("b", np.int64),
    ("ref", np.int32),
    ("unit", np.int32),
    ("precision", np.int8),
)
CellColumns = dict[str, NDArray[Any]]
Intern = Callable[[str], int]

_EXACT: Final = 2**53
_TOO_LARGE: Final = 10**MOST_DIGITS


def encode_values(values: list[Ref | Value], text: Intern, entity: Intern) -> CellColumns:
    """Lay out values one by one. `text` and `entity` give numbers to texts and to entity ids."""
    n = len(values)
    kind, ref, unit, precision = [0] * n, [-1] * n, [-1] * n, [0] * n
    a, b, x = [0] * n, [0] * n, [0.0] * n
    for i, value in enumerate(values):
        if isinstance(value, str):
            ref[i] = text(collapse(value))
            if type(value) is not str and (form := form_of(value)) != NO_UNIT:
                unit[i] = text(form)
        elif isinstance(value, Quantity):
            kind[i] = 1
            number = value.number
            x[i], exact = _as_float(number)
            if exact is not None:
                ref[i] = text(exact)
            if value.unit != NO_UNIT and (cleaned := clean_unit(value.unit)) != NO_UNIT:
                unit[i] = text(cleaned)
        elif isinstance(value, Time):
            kind[i] = 2
            a[i], b[i], precision[i] = value.start, value.end, value.precision
        elif isinstance(value, Ref):
            kind[i] = 3
            ref[i] = entity(value.id)
        elif value is UNKNOWN:
            kind[i] = 4
        else:
            raise LoadError(f"{value!r} is not a value: text, Quantity, Time, Ref or UNKNOWN is expected")
    kinds = np.array(kind, np.int8)
    bits = np.array(a, np.int64)
    quantities = kinds == Kind.QUANTITY
    if quantities.any():
        bits[quantities] = np.array(x, np.float64)[quantities].view(np.int64)
    return {
        "kind": kinds,
        "a": bits,
        "b": np.array(b, np.int64),
        "ref": np.array(ref, np.int32),
        "unit": np.array(unit, np.int32),
        "precision": np.array(precision, np.int8),
    }


def _as_float(number: int | float | Decimal) -> tuple[float, str | None]:
    """The nearest float, and the exact text where the float is not exact."""
    if isinstance(number, float):
        if not math.isfinite(number):
            raise LoadError(f"{number!r} is not a finite number")
        return number + 0.0, None
    if isinstance(number, Decimal):
        if not number.is_finite():
            raise LoadError(f"{number!r} is not a finite number")
        if abs(number.adjusted()) >= MOST_DIGITS:
            raise LoadError(f"a number has more than {MOST_DIGITS} digits")
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
            raise LoadError(f"a number has more than {MOST_DIGITS} digits") from None
        return (math.inf if number > 0 else -math.inf), format_number(number)
    return nearest, None if int(nearest) == number else format_number(number)


def encode_column(column: Column, text_many: Callable[[Any], NDArray[np.int32]], text: Intern, entity: Intern) -> CellColumns:
    """Lay out a column of a batch. Columns of entities (`Ids`) are no cells."""
    if isinstance(column, Texts):
        refs = text_many(column.texts if column.collapsed else [collapse(text) for text in column.texts])
        return _cells(len(refs), Kind.TEXT, ref=refs)
    if isinstance(column, Numbers):
        numbers = column.numbers
        if numbers.dtype.kind in "iu":
            wide = np.abs(numbers) > _EXACT
            if wide.any():
                return encode_values([Quantity(int(n), column.unit) for n in numbers], text, entity)
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
    """Integers that order cells of one kind and unit as their values: text by code point, numbers
    by size, times by start.
    """
    key = a.copy()
    numbers = (kind == Kind.QUANTITY) & (a < 0)
    # Floats compare like their bits as integers, once those of negative numbers are turned round.
    key[numbers] ^= np.int64(0x7FFF_FFFF_FFFF_FFFF)
    other = (kind == Kind.TEXT) | (kind == Kind.ENTITY)
    key[other] = ref[other]
    return key


def decode_values(cells: CellColumns, text: Callable[[int], str], entity: Callable[[int], str]) -> list[Ref | Value]:
    """Many cells as values, in order."""
    units: dict[int, str] = {-1: NO_UNIT}
    result: list[Ref | Value] = []
    floats = cells["a"].view(np.float64).tolist()
    columns = [cells[name].tolist() for name, _ in PARTS]
    for x, kind, a, b, ref, unit, precision in zip(floats, *columns, strict=True):
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
            number = parse_number(text(ref)) if ref >= 0 else (int(x) if x.is_integer() else x)
            result.append(Quantity(number, units[unit]))
        elif kind == 2:
            result.append(Time(a, b, _PRECISIONS[precision]))
        else:
            result.append(Ref(entity(ref)) if kind == 3 else UNKNOWN)
    return result


_PRECISIONS: Final = tuple(Precision)
