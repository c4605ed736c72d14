"""Typed values (of databases, spreadsheets, Parquet) as the texts of cells, without loss: what is
typed over the whole column afterwards, as in every table.

Whole floats are whole numbers, decimals keep their zeros, moments with a zone are in UTC, bytes are
hexadecimal (`0x...`), and what has parts (lists, mappings) is JSON.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from condgraph.engine.values import format_number


def _float(value: float) -> str:
    return (
        ""
        if math.isnan(value)
        else str(value)
        if math.isinf(value)
        else format_number(int(value) if value.is_integer() and abs(value) < 2**63 else value)
    )


def _decimal(value: Decimal) -> str:
    return "" if value.is_nan() else str(value) if value.is_infinite() else format(value, "f")


def _moment(value: datetime.datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value.isoformat(sep=" ")


def _length(value: datetime.timedelta) -> str:
    seconds = value.days * 86_400 + value.seconds
    sign, seconds = ("-", -seconds) if seconds < 0 and not value.microseconds else ("", seconds)
    if seconds < 0:
        return f"{value.total_seconds()} seconds"
    part = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{part}"


_PRINT: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda value: "",
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    Decimal: _decimal,
    datetime.datetime: _moment,
    datetime.date: datetime.date.isoformat,
    datetime.time: lambda value: value.isoformat(),
    datetime.timedelta: _length,
    bytes: lambda value: "0x" + value.hex().upper(),
    bytearray: lambda value: "0x" + value.hex().upper(),
    memoryview: lambda value: "0x" + value.hex().upper(),
}


def cell_text(value: Any) -> str:
    """A value as the text of a cell; "" where it is missing.

    >>> [cell_text(one) for one in (10248.0, Decimal("14.00"), True, None, b"\\x15", datetime.date(1996, 7, 4))]
    ['10248', '14.00', 'true', '', '0x15', '1996-07-04']
    """
    known = _PRINT.get(type(value))
    if known is not None:
        return known(value)
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        if isinstance(value, (set, frozenset)):
            value = sorted(value, key=str)
        return json.dumps(value, ensure_ascii=False, default=cell_text)
    return str(value)


def columns_of(rows: Sequence[Sequence[Any]], width: int) -> list[list[str]]:
    """Rows of values as columns of texts."""
    if not rows:
        return [[] for _ in range(width)]
    return [[_PRINT.get(type(value), cell_text)(value) for value in column] for column in zip(*rows, strict=True)]
