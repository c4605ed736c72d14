"""Values side by side: the narrowest column that holds them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from condgraph.engine.facts import Column, Numbers, Ref, Texts, Times, Values
from condgraph.engine.values import Number, Precision, Quantity, Time, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Whole numbers up to this are exact as floats.
_EXACT_FLOAT: Final = 2**53


def column_of(values: Sequence[Ref | Value]) -> Column:
    """Values as the narrowest column that holds them without loss."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return Texts(cast("Sequence[str]", values))
    if kinds == {Time}:
        times = cast("Sequence[Time]", values)
        return Times(
            np.fromiter((time.start for time in times), np.int64, len(times)),
            np.fromiter((time.end for time in times), np.int64, len(times)),
            np.fromiter((time.precision for time in times), np.int8, len(times)),
        )
    if kinds == {Quantity}:
        quantities = cast("Sequence[Quantity]", values)
        if len({quantity.unit for quantity in quantities}) == 1:
            array = _array([quantity.number for quantity in quantities])
            if array is not None:
                return Numbers(array, quantities[0].unit)
    return Values(values)


def _array(numbers: Sequence[Number]) -> NDArray[np.int64] | NDArray[np.float64] | None:
    """Numbers as an array that holds all of them exactly, None where there is none."""
    whole = [number for number in numbers if isinstance(number, int)]
    lowest, highest = (min(whole), max(whole)) if whole else (0, 0)
    if len(whole) == len(numbers):
        return np.array(numbers, dtype=np.int64) if lowest >= -(2**63) and highest < 2**63 else None
    if lowest >= -_EXACT_FLOAT and highest <= _EXACT_FLOAT and not any(isinstance(number, Decimal) for number in numbers):
        return np.array(numbers, dtype=np.float64)
    return None


def unpacked(column: Column) -> list[Value]:
    """The values of a column without entities, one by one."""
    if isinstance(column, Texts):
        return list(column.texts)
    if isinstance(column, Numbers):
        return [Quantity(number, column.unit) for number in column.numbers.tolist()]
    if isinstance(column, Times):
        columns = zip(column.starts.tolist(), column.ends.tolist(), column.precisions.tolist(), strict=True)
        return [Time(start, end, Precision(precision)) for start, end, precision in columns]
    return list(column.values)  # type: ignore[union-attr, arg-type]
