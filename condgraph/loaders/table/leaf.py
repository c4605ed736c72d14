"""One column of an Arrow table as statements, values of every type read exactly. `nested` takes
structs, lists and dictionaries apart before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Batch, Column, Numbers, Texts, Times
from condgraph.engine.reading.shapes import BASIC, INT, YEAR
from condgraph.engine.reading.times import FIRST_YEAR, LAST_YEAR, SECOND, SECOND_OF_DAY, basic_day
from condgraph.engine.values import DAY_SECONDS, Precision, Quantity, Time, Value, parse_number, text_of
from condgraph.loaders.table.batches import column_of, unpacked
from condgraph.loaders.table.cells import Cell, ColumnType
from condgraph.loaders.table.fields import basic_days
from condgraph.loaders.table.nested import Part, is_binary, is_text, scalar_type
from condgraph.loaders.table.rows import Table
from condgraph.loaders.table.whole import year_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNITS: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
#: Decimal digits that a float keeps.
_FLOAT_DIGITS: Final = 15


class Leaf:
    """One column while the table is read: what is found out about it, then its statements."""

    def __init__(self, table: Table, at: int, kind: Any) -> None:
        self.table = table
        self.at = at
        self.name = table.names[at]
        self.kind = scalar_type(kind)
        self.profile = table.profile()
        self.declared = table.declared(at)
        self.midnight = True
        self.chosen: ColumnType | None = None
        self.read: Callable[[str], Cell | None] | None = None
        self.text = is_text(self.kind) or is_binary(self.kind)

    def needs_look(self) -> bool:
        """Whether the column has to be seen whole before its statements are made."""
        import pyarrow as pa

        if self.text or pa.types.is_timestamp(self.kind):
            return True
        number = pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind)
        return bool(number) and self.declared == "auto" and self.at not in self.table.refs

    def look(self, part: Part) -> None:
        """Take the values of a batch into account."""
        import pyarrow as pa

        values = part.values.drop_null()
        if not len(values):
            return
        if self.text:
            self.profile.add(self._texts(values))
        elif pa.types.is_timestamp(self.kind):
            day = DAY_SECONDS * _UNITS[self.kind.unit]
            self.midnight = self.midnight and self.kind.tz is None and not (_int64(values) % day).any()
        else:
            numbers = values.to_numpy(zero_copy_only=False)
            numbers = numbers[~np.isnan(numbers)] if pa.types.is_floating(self.kind) else numbers
            years = (numbers >= FIRST_YEAR) & (numbers <= LAST_YEAR) & (numbers == np.floor(numbers))
            days = np.zeros(len(numbers), bool)
            eight = np.flatnonzero((numbers >= 10_000_000) & (numbers <= 21_001_231) & (numbers == np.floor(numbers)))
            days[eight] = basic_days(numbers[eight].astype(np.int64))
            for shape, count in ((YEAR, int(years.sum())), (BASIC, int(days.sum())), (INT, int((~years & ~days).sum()))):
                if count:
                    counted = self.profile.shapes.setdefault(shape, [0, 0])
                    counted[0] += count
                    counted[1] += count

    def settle(self) -> None:
        """Decide what the column is; after the last `look`."""
        import pyarrow as pa

        number = pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind)
        fits = {
            "number": number or pa.types.is_decimal(self.kind) or pa.types.is_time(self.kind) or pa.types.is_duration(self.kind),
            "time": number or pa.types.is_date(self.kind) or pa.types.is_timestamp(self.kind),
        }
        if not self.text and not fits.get(self.declared, True) and self.at not in self.table.refs:
            self.table.reading.warn(f"a column of type {self.kind} is not read as a {self.declared}", field=self.name)
        if self.text or self.profile.shapes:
            self.chosen = self.table.decide(self.at, self.profile)
            self.read = self.chosen.reader()

    def _texts(self, values: Any) -> list[str]:
        import pyarrow as pa

        if is_binary(self.kind):
            try:
                values = values.cast(pa.large_binary()).cast(pa.large_string())
            except pa.ArrowInvalid:
                raise LoadError(
                    "the column holds bytes that are not text", file=self.table.reading.source.location, field=self.name
                ) from None
        texts: list[str] = values.to_pylist()
        return texts

    def batch(self, part: Part, ids: Sequence[str], rows: Sequence[int]) -> Iterator[Batch]:
        """The statements of the column in a batch of rows."""
        values, at = part.valid(len(ids))
        if not len(values):
            return
        if at is not None:
            ids, rows = [ids[one] for one in at], [rows[one] for one in at]
        if self.text:
            chosen = self.chosen or self.profile.decide(self.name, "text")
            batch = self.table.text_batch(self.at, chosen, self.read or chosen.reader(), ids, rows, self._texts(values))
            if batch is not None:
                yield batch
            return
        if self.declared == "text" or self.at in self.table.refs:
            texts = [text_of(value) for value in self._values(values)]
            yield Batch(
                ids, self.name, self.table.ids_of(self.at, texts, rows) if self.at in self.table.refs else Texts(texts), rows
            )
            return
        for objects, kept in self._columns(values):
            if kept is None:
                yield Batch(ids, self.name, objects, rows)
            else:
                yield Batch([ids[one] for one in kept], self.name, objects, [rows[one] for one in kept])

    def _values(self, values: Any) -> list[Value]:
        """Values one by one, for keys and for columns that are asked for as texts."""
        found: list[Value] = [""] * len(values)
        for objects, kept in self._columns(values):
            for where, value in zip(range(len(values)) if kept is None else kept, unpacked(objects), strict=True):
                found[where] = value
        return found

    def cells(self, part: Part, length: int) -> list[str | None]:
        """The printed values of a column that names rows; None where missing. A list gives the
        first of its elements.
        """
        values, at = part.valid(length)
        texts = self._texts(values) if self.text else [text_of(value) for value in self._values(values)]
        found: list[str | None] = [None] * length
        for where, text in zip(range(length) if at is None else at.tolist(), texts, strict=True):
            if found[where] is None and text:
                found[where] = text
        return found

    def _columns(self, values: Any) -> Iterator[tuple[Column, list[int] | None]]:
        """Values that are not null and not texts as columns, each with the positions it holds
        (None: all).
        """
        import pyarrow as pa

        types, kind = pa.types, self.kind
        if types.is_boolean(kind):
            yield Texts(["true" if value else "false" for value in values.to_pylist()]), None
        elif types.is_integer(kind) or types.is_floating(kind):
            yield from self._numbers(values.to_numpy(zero_copy_only=False))
        elif types.is_decimal(kind):
            yield _decimals(values), None
        elif types.is_date(kind):
            yield _days(_int64(values.cast(pa.date32()).cast(pa.int32()))), None
        elif types.is_timestamp(kind):
            seconds = self._seconds(_int64(values))
            midnight = self.midnight and kind.tz is None and not (seconds % DAY_SECONDS).any()
            yield _days(seconds // DAY_SECONDS) if midnight else _moments(seconds), None
        else:
            unit = SECOND if types.is_duration(kind) else SECOND_OF_DAY
            ticks, each = _int64(values), _UNITS[kind.unit]
            if not (ticks % each).any():
                yield Numbers(ticks // each, unit), None
            else:
                yield column_of([Quantity(_over(tick, each), unit) for tick in ticks.tolist()]), None

    def _numbers(self, numbers: NDArray[Any]) -> Iterator[tuple[Column, list[int] | None]]:
        kept: list[int] | None = None
        if numbers.dtype.kind == "f":
            numbers = numbers.astype(np.float64)
            infinite, missing = np.isinf(numbers), np.isnan(numbers)
            if infinite.any():
                self.table.reading.warn(f"{int(infinite.sum())} infinite numbers stay text", field=self.name)
                where = np.flatnonzero(infinite)
                yield Texts([repr(number) for number in numbers[where].tolist()]), where.tolist()
            if infinite.any() or missing.any():
                finite = np.flatnonzero(~(infinite | missing))
                if not len(finite):
                    return
                kept, numbers = finite.tolist(), numbers[finite]
        elif numbers.dtype == np.uint64 and numbers.max() > np.iinfo(np.int64).max:
            yield column_of([Quantity(number) for number in numbers.tolist()]), None
            return
        else:
            numbers = numbers.astype(np.int64)
        if self.declared == "time" or (self.chosen is not None and self.chosen.kind == "time"):
            whole = numbers == np.floor(numbers)
            eight = numbers.astype(np.int64)
            if len(numbers) and (whole & basic_days(eight)).all():
                dates = [Time.day(one // 10_000, one // 100 % 100, one % 100) for one in eight.tolist()]
                yield column_of(dates), kept
                return
            years = (numbers >= 1) & (numbers <= 9999) & whole
            if not years.all():
                self.table.reading.warn(f"{int((~years).sum())} cells cannot be read as a time and stay numbers", field=self.name)
                yield (
                    column_of(
                        [
                            Time.year(int(number)) if year else basic_day(str(number)) or Quantity(number)
                            for number, year in zip(numbers.tolist(), years, strict=True)
                        ]
                    ),
                    kept,
                )
                return
            yield year_times(numbers.astype(np.int64)), kept
            return
        yield Numbers(numbers), kept

    def _seconds(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        each = _UNITS[self.kind.unit]
        cut = int(np.count_nonzero(ticks % each))
        if cut:
            self.table.reading.warn(f"parts of a second are cut off in {cut} cells", field=self.name)
        return ticks // each


def _int64(values: Any) -> NDArray[np.int64]:
    """The integers below an Arrow array of times."""
    import pyarrow as pa

    if not pa.types.is_integer(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    numbers: NDArray[np.int64] = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _over(ticks: int, each: int) -> int | float | Any:
    """Ticks as seconds, exactly."""
    whole, part = divmod(abs(ticks), each)
    return parse_number(f"{'-' if ticks < 0 else ''}{whole}.{part:0{len(str(each)) - 1}d}")


def _days(days: NDArray[np.int64]) -> Times:
    starts = days * DAY_SECONDS
    return Times(starts, starts + DAY_SECONDS, np.full(len(days), Precision.DAY, dtype=np.int8))


def _moments(seconds: NDArray[np.int64]) -> Times:
    return Times(seconds, seconds + 1, np.full(len(seconds), Precision.SECOND, dtype=np.int8))


def _decimals(values: Any) -> Column:
    import pyarrow as pa

    kind = values.type
    if kind.scale <= 0 and kind.precision <= 18:
        return Numbers(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
    texts = values.cast(pa.string())
    if kind.precision <= _FLOAT_DIGITS:
        return Numbers(texts.cast(pa.float64()).to_numpy(zero_copy_only=False))
    return column_of([Quantity(parse_number(text)) for text in texts.to_pylist()])
