"""One column of an Arrow table as statements: structs, lists and dictionaries taken apart, values
of every type read exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import Batch, Column, Numbers, Texts, Times
from condgraph.engine.reading.shapes import INT, YEAR
from condgraph.engine.reading.times import FIRST_YEAR, LAST_YEAR, SECOND, SECOND_OF_DAY
from condgraph.engine.values import DAY_SECONDS, Precision, Quantity, Time, Value, parse_number, text_of
from condgraph.loaders.table.cells import Cell, ColumnType
from condgraph.loaders.table.rows import Table, column_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNITS: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
#: Decimal digits that a float keeps.
_FLOAT_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class Part:
    """A column after structs and lists are taken apart: its values, and the rows they stand in
    (None: one each, in order).
    """

    values: Any
    rows: NDArray[np.int64] | None = None

    def valid(self, length: int) -> tuple[Any, NDArray[np.int64] | None]:
        """The values that are not null, and their rows; None for the rows where that is all of
        them, one each.
        """
        if self.values.null_count == 0:
            return self.values, self.rows
        mask = self.values.is_valid()
        rows = np.arange(length) if self.rows is None else self.rows
        return self.values.filter(mask), rows[mask.to_numpy(zero_copy_only=False)]


def leaves_of(name: str, kind: Any) -> list[tuple[str, Any]]:
    """The names and types of a column's leaves: itself, or the fields of a struct."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in leaves_of(f"{name}.{field.name}", field.type)]
    return [(name, kind)]


def flattened(array: Any) -> list[Any]:
    """The arrays of `leaves_of`, in the same order; nulls of a struct are nulls of its fields."""
    import pyarrow as pa

    if pa.types.is_struct(array.type):
        return [leaf for field in array.flatten() for leaf in flattened(field)]
    return [array]


def _scalar_type(kind: Any) -> Any:
    """The type of the values of a leaf: of a list's elements, of a dictionary's values, of an
    extension's storage.
    """
    import pyarrow as pa

    types = pa.types
    while True:
        if types.is_dictionary(kind) or types.is_run_end_encoded(kind) or _is_list(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType) and not kind.extension_name.startswith("pandas."):
            kind = kind.storage_type
        else:
            return kind


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    plain = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(plain or types.is_list_view(kind) or types.is_large_list_view(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def readable(kind: Any) -> bool:
    """Whether the values of a leaf of this Arrow type are values of a graph, or lists of such."""
    import pyarrow as pa

    types = pa.types
    if _is_list(kind) and _is_list(kind.value_type):
        return False
    kind = _scalar_type(kind)
    return bool(
        _is_text(kind)
        or _is_binary(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
        or types.is_duration(kind)
        or types.is_null(kind)
    )


def part_of(array: Any) -> Part:
    """Take lists, dictionaries and extensions off an array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows: NDArray[np.int64] | None = None
    while True:
        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(kind):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(kind):
            array = pc.run_end_decode(array)
        elif pa.types.is_string_view(kind):
            # Few kernels take views.
            array = array.cast(pa.large_string())
        elif pa.types.is_binary_view(kind):
            array = array.cast(pa.large_binary())
        elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            array = array.cast(pa.large_list(kind.value_type))
        elif _is_list(kind):
            parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False).astype(np.int64)
            rows = parents if rows is None else rows[parents]
            array = pc.list_flatten(array)
        else:
            return Part(array, rows)


def only_rows(part: Part, kept: Sequence[int], length: int) -> Part:
    """The values of the rows that are kept, whose positions are those among the kept rows."""
    import pyarrow as pa

    place = np.full(length, -1, dtype=np.int64)
    place[np.asarray(kept, dtype=np.int64)] = np.arange(len(kept))
    rows = place if part.rows is None else place[part.rows]
    taken = np.flatnonzero(rows >= 0)
    return Part(part.values.take(pa.array(taken)), rows[taken])


class Leaf:
    """One column while the table is read: what is found out about it, then its statements."""

    def __init__(self, table: Table, at: int, kind: Any) -> None:
        self.table = table
        self.at = at
        self.name = table.names[at]
        self.kind = _scalar_type(kind)
        self.profile = table.profile()
        self.declared = table.declared(at)
        self.midnight = True
        self.chosen: ColumnType | None = None
        self.read: Callable[[str], Cell | None] | None = None
        self.text = _is_text(self.kind) or _is_binary(self.kind)

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
            for shape, count in ((YEAR, int(years.sum())), (INT, int(len(numbers) - years.sum()))):
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

        if _is_binary(self.kind):
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
            years = (numbers >= 1) & (numbers <= 9999) & (numbers == np.floor(numbers))
            if not years.all():
                self.table.reading.warn(f"{int((~years).sum())} cells cannot be read as a time and stay numbers", field=self.name)
                yield (
                    column_of(
                        [
                            Time.year(int(number)) if year else Quantity(number)
                            for number, year in zip(numbers.tolist(), years, strict=True)
                        ]
                    ),
                    kept,
                )
                return
            first = numbers.astype(np.int64) - 1970
            starts, ends = (year.astype("datetime64[Y]").astype("datetime64[s]").astype(np.int64) for year in (first, first + 1))
            yield Times(starts, ends, np.full(len(starts), Precision.YEAR, dtype=np.int8)), kept
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
