"""Fast reading of clean delimited text with NumPy: finds fields in bytes, and reads whole columns.

Text is clean if every record is one line with as many delimiters as the header. `columns_of` splits
lines into columns; other text is left to `csv`: a single chunk if it has quotes but no record spans
several lines, otherwise the rest of the file. A `Block` has the bytes of some records, and a `Fields`
is one column of it, whose cells are created on demand. `plain`, `days` and `doubtful` classify whole
columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Final, overload

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.facts import LazyTexts
from condgraph.engine.reading.numbers import CODES
from condgraph.engine.reading.times import FIRST_YEAR, LAST_YEAR
from condgraph.engine.snapshot.container import MAX_MEAN_LENGTH, SPARE, sorted_texts

#: The most digits of a number that fits in a float and in 64 bits.
_DIGITS: Final = 15
_MINUS, _POINT, _ZERO, _SPACE, _DOLLAR = b"-.0 $"
#: White space beyond ASCII, as in `str.split`; and ASCII white space within a line, except the space.
_WIDE_SPACE: Final = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]").search
_OTHER_SPACE: Final = b"\t\x0b\x0c\x1c\x1d\x1e\x1f"
_MONTH_LENGTHS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
# The first three or two letters of texts that, with a digit, may be more than text (see `shapes`).
_DOUBTFUL: Final = sorted(
    int.from_bytes(word.lower().encode(), "big")
    for word in (
        *("jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun " + CODES.replace("|", " ")).split(),
        *(mark + after for mark in ("dr", "cr") for after in " .$0123456789"),
        *(f"pt{after}" for after in "+-0123456789"),
        *("poi", "sri"),
    )
)
_DOUBTFUL_TWO: Final = [
    int.from_bytes(word, "big") for word in (b"rs", b"ad", b"bc", *(b"p%c" % after for after in b"+-0123456789"))
]


@dataclass(frozen=True, slots=True)
class Plain:
    """Plain numbers, each `mantissa / 10 ** decimals`; shape (cells,) each.

    `there` is False for missing cells, which are empty or a hyphen.
    """

    mantissa: NDArray[np.int64]
    decimals: NDArray[np.int64]
    there: NDArray[np.bool_]
    lengths: NDArray[np.int64]


def basic_days(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers of eight digits are calendar days YYYYMMDD in the years 1000 to 2100."""
    year, month, day = numbers // 10_000, numbers // 100 % 100, numbers % 100
    result: NDArray[np.bool_] = (year >= FIRST_YEAR) & (year <= LAST_YEAR) & _in_calendar(year, month, day)
    return result


def _in_calendar(year: NDArray[np.int64], month: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.bool_]:
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    good: NDArray[np.bool_] = (year > 0) & (month > 0) & (month < 13) & (day > 0)
    good &= day <= _MONTH_LENGTHS.take(month, mode="clip") + (leap & (month == 2))
    return good


@dataclass(frozen=True, slots=True)
class Days:
    """ISO days as days since 1970-01-01; `there` is False for missing cells, which are empty."""

    days: NDArray[np.int64]
    there: NDArray[np.bool_]


class Block:
    """The UTF-8 bytes of some records, and their delimiter; raises UnicodeDecodeError for other bytes."""

    def __init__(self, data: bytes, delimiter: str) -> None:
        self.data, self._delimiter = data, delimiter
        self.bytes = np.frombuffer(data, np.uint8)
        self.ascii = data.isascii()
        self.text = data.decode()

    @cached_property
    def collapsed(self) -> bool:
        """Whether all white space is single spaces, apart from delimiters and line ends."""
        other_space = _OTHER_SPACE.replace(self._delimiter.encode(), b"")
        if b"  " in self.data or any(space in self.data for space in other_space):
            return False
        return self.ascii or not _WIDE_SPACE(self.text)

    @cached_property
    def padded(self) -> NDArray[np.uint8]:
        """The bytes, with some spare ones at the end."""
        return np.frombuffer(self.data + bytes(SPARE), np.uint8)

    # Positions of such bytes are few, and are searched; a cumulative sum for every byte would take four
    # times the size of the text.

    @cached_property
    def _digits(self) -> NDArray[np.int32]:
        return _where((self.bytes - np.uint8(_ZERO)) < 10)

    @cached_property
    def _wide(self) -> NDArray[np.int32]:
        """The positions of the first bytes of non-ASCII characters."""
        return _where(self.bytes >= 0xC0)

    @cached_property
    def _further(self) -> NDArray[np.int32]:
        """The positions of the continuation bytes of non-ASCII characters."""
        return _where((self.bytes & 0xC0) == 0x80)

    def places(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the character indices of byte positions."""
        return at if self.ascii else at - self._further.searchsorted(at.astype(np.int32))

    def with_digits(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which ranges contain a digit."""
        return _within(self._digits, begins, ends)

    def beyond_ascii(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which ranges contain a non-ASCII character."""
        return np.zeros(len(begins), bool) if self.ascii else _within(self._wide, begins, ends)


def _where(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    return np.flatnonzero(mask).astype(np.int32)


def _within(places: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which ranges contain one of the sorted positions."""
    # The same type as the positions, which would be copied otherwise.
    low, high = begins.astype(np.int32), ends.astype(np.int32)
    result: NDArray[np.bool_] = places.searchsorted(high) > places.searchsorted(low)
    return result


class Fields(LazyTexts):
    """One column of a block: the start and end of each cell."""

    def __init__(self, block: Block, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.block, self.begins, self.ends = block, begins, ends
        self.lengths = ends - begins

    @classmethod
    def of(cls, cells: Collection[str]) -> Fields | None:
        """Return existing cells as a column; None if they contain line ends or are no valid text."""
        joined = "\n".join(cells) + "\n"
        if joined.count("\n") != len(cells) or "\r" in joined or "\0" in joined:
            return None
        try:
            block = Block(joined.encode(), "\n")
        except UnicodeEncodeError:
            return None
        ends = np.flatnonzero(block.bytes == 10)
        begins = np.append(0, ends[:-1] + 1)
        result = cls(block, begins, ends)
        result.texts = list(cells)
        return result

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        return self.texts[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    @cached_property
    def texts(self) -> list[str]:
        """The cells."""
        return self._cut(self.begins, self.ends)

    def some(self, at: NDArray[Any]) -> list[str]:
        """Return some of the cells, by indices or a mask."""
        return self._cut(self.begins[at], self.ends[at])

    def _cut(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str]:
        text = self.block.text
        lows, highs = self.block.places(begins).tolist(), self.block.places(ends).tolist()
        return [text[low:high] for low, high in zip(lows, highs, strict=True)]

    def where(self, mask: NDArray[np.bool_]) -> Fields:
        """Return some of the cells as a column."""
        return Fields(self.block, self.begins[mask], self.ends[mask])

    def utf8(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return the bytes of the block, and the start and length of each cell."""
        return self.block.padded, self.begins, self.lengths

    def sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Return the sorted order of the cells, and which differ from the previous one; None for long cells."""
        return self._sorted

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        return sorted_texts(*self.utf8()) if self.lengths.sum() <= MAX_MEAN_LENGTH * len(self) else None

    @cached_property
    def distinct(self) -> int:
        """The number of distinct cells."""
        order = self._sorted
        return len(set(self.texts)) if order is None else int(np.count_nonzero(order[1]))

    def _byte(self, at: int) -> NDArray[np.uint8]:
        """Return the byte at an offset of each cell; arbitrary if the cell is shorter."""
        result: NDArray[np.uint8] = self.block.bytes.take(self.begins + at, mode="clip")
        return result

    @cached_property
    def plain(self) -> Plain | None:
        """The cells as plain numbers of at most 15 digits, or missing; None if any cell is something else."""
        lengths, first = self.lengths, self._byte(0)
        longest = int(lengths.max(initial=0))
        not_empty = lengths > 0
        negative = not_empty & (first == _MINUS)
        if longest > _DIGITS + 2 or not (((first - np.uint8(_ZERO)) < 10) | negative | ~not_empty).all():
            return None
        mantissa, decimals = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        after_point, points, valid_count = np.zeros(len(self), bool), np.zeros(len(self), np.int64), negative.astype(np.int64)
        for at in range(longest):
            byte, in_cell = self._byte(at), lengths > at
            digit = byte - np.uint8(_ZERO)
            is_digit, is_point = (digit < 10) & in_cell, (byte == _POINT) & in_cell
            mantissa = np.where(is_digit, mantissa * 10 + digit, mantissa)
            decimals += is_digit & after_point
            points += is_point
            after_point |= is_point
            valid_count += is_digit | is_point
        present = not_empty & ~(negative & (lengths == 1))
        digits = lengths - negative - points
        zero_first = self.block.bytes.take(self.begins + negative, mode="clip") == _ZERO
        valid = (
            (valid_count == lengths) & (points <= 1) & (digits <= _DIGITS) & (digits > decimals) & (after_point == (decimals > 0))
        )
        valid &= ~(zero_first & (digits - decimals > 1)) & ~(negative & (mantissa == 0))
        if not (valid | ~present).all():
            return None
        return Plain(np.where(negative, -mantissa, mantissa), decimals, present, lengths)

    @cached_property
    def days(self) -> Days | None:
        """The cells as calendar days YYYY-MM-DD, or missing; None if any cell is something else."""
        present = self.lengths > 0
        if not ((self.lengths == 10) | ~present).all() or not present.any():
            return None
        parts = []
        valid = (self._byte(4) == _MINUS) & (self._byte(7) == _MINUS)
        if not (valid | ~present).all():
            return None
        for places in ((0, 1, 2, 3), (5, 6), (8, 9)):
            number = np.zeros(len(self), np.int64)
            for at in places:
                digit = self._byte(at) - np.uint8(_ZERO)
                valid &= digit < 10
                number = number * 10 + digit
            parts.append(number)
        year, month, day = parts
        valid &= _in_calendar(year, month, day)
        if not (valid | ~present).all():
            return None
        months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
        return Days(months.astype("datetime64[D]").astype(np.int64) + day - 1, present)

    @cached_property
    def collapsed(self) -> bool:
        """Whether white space in the cells is single inner spaces."""
        not_empty = self.lengths > 0
        if not self.block.collapsed:
            return False
        edges = (self._byte(0) == _SPACE) | (self.block.bytes.take(self.ends - 1, mode="clip") == _SPACE)
        return not (edges & not_empty).any()

    def perhaps(self, markers: Collection[str]) -> NDArray[np.bool_]:
        """Return which cells may equal one of some texts, ignoring case; only for collapsed columns.

        Cells that are not returned do not equal any, except that empty cells are not considered.
        """
        not_empty = self.lengths > 0
        first = self._lower(0)
        longest = 4 * max(map(len, markers), default=0)
        beyond: NDArray[np.bool_] = self.block.beyond_ascii(self.begins, self.ends) & (self.lengths <= longest)
        for length, begin in {(len(marker), ord(marker[0])) for marker in markers if marker and marker.isascii()}:
            beyond |= (self.lengths == length) & (first == begin)
        return beyond & not_empty

    def missing(self, markers: Collection[str]) -> NDArray[np.bool_]:
        """Return which cells are empty or a marker of missing cells; only for collapsed columns."""
        result: NDArray[np.bool_] = self.lengths == 0
        candidates = np.flatnonzero(self.perhaps(markers))
        if len(candidates):
            result[candidates] = [text.casefold() in markers for text in self.some(candidates)]
        return result

    def doubtful(self) -> NDArray[np.bool_]:
        """Return which cells may be more than text; only for collapsed columns.

        All others are certainly text (`shapes.shape`), except that empty cells are not considered.
        """
        first, second, third = (self._lower(at) for at in range(3))
        letter = (first >= ord("a")) & (first <= ord("z"))
        two = first.astype(np.int64) << 8 | second
        result: NDArray[np.bool_] = ~letter | (second >= 0x80) | (third >= 0x80) | (second == _DOLLAR) | (third == _DOLLAR)
        result |= np.isin(two, _DOUBTFUL_TWO) | np.isin(two << 8 | third, _DOUBTFUL)
        result &= self.lengths > 0
        if result.any():
            result &= self.block.with_digits(self.begins, self.ends)
        return result

    def _lower(self, at: int) -> NDArray[np.uint8]:
        """Return the lower-case byte at an offset of each cell; 0 if the cell is shorter."""
        byte = np.where(self.lengths > at, self._byte(at), np.uint8(0))
        upper = (byte >= ord("A")) & (byte <= ord("Z"))
        return np.where(upper, byte | np.uint8(0x20), byte)


#: How many bytes are read at once.
_PIECE: Final = 1 << 22
#: The most bytes of a chunk.
_MAX_CHUNK: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """The format of records: the delimiter, the number of fields, and the characters that need `csv`.

    `quotes` are these characters, and `reader` is the `csv` reader.
    """

    delimiter: str
    width: int
    quotes: bytes
    reader: Any


@dataclass(slots=True)
class Position:
    """How far a file has been read: bytes, rows, and whether it is finished."""

    offset: int = 0
    rows: int = 0
    done: bool = False


def lines_of(stream: BinaryIO, most: int, place: Position) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of a file, at most `most` at once, as bytes that end with a line end, and their number.

    Stops early, without setting `place.done`, if lines are too long.
    """
    buffered = b""
    while True:
        piece = stream.read(_PIECE)
        if not piece:
            break
        buffered += piece
        ends = np.flatnonzero(np.frombuffer(buffered, np.uint8) == 10)
        begin = 0
        for at in range(most, len(ends) + 1, most):
            end = int(ends[at - 1]) + 1
            yield buffered[begin:end], most
            begin = end
        buffered = buffered[begin:]
        if len(buffered) > _MAX_CHUNK:
            return
    if buffered:
        buffered += b"" if buffered.endswith(b"\n") else b"\n"
        lines = buffered.count(b"\n")
        for first in range(0, lines, most):
            # The last piece may have a few more lines.
            end = _after(buffered, most)
            yield buffered[:end], min(most, lines - first)
            buffered = buffered[end:]
    place.done = True


def _after(data: bytes, lines: int) -> int:
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    return int(ends[min(lines, len(ends)) - 1]) + 1


def columns_of(data: bytes, lines: int, form: RecordFormat) -> Sequence[Sequence[str]] | None:
    """Return the columns of some lines; None if they need `csv`."""
    if b"\0" in data or (data.count(b"\r") and data.count(b"\r\n") != data.count(b"\r")):
        return None
    if any(quote in data for quote in (form.quotes[at : at + 1] for at in range(len(form.quotes)))):
        return _quoted(data, lines, form)
    try:
        block = Block(data, form.delimiter)
    except UnicodeDecodeError:
        return None
    marks = np.flatnonzero((block.bytes == ord(form.delimiter)) | (block.bytes == 10))
    if len(marks) != lines * form.width:
        return None
    ends = marks.reshape(lines, form.width)
    if not (block.bytes[ends[:, -1]] == 10).all():
        return None
    begins = np.empty(len(marks), np.int64)
    begins[0] = 0
    begins[1:] = marks[:-1] + 1
    begins = begins.reshape(ends.shape)
    if b"\r" in data:
        if data.count(b"\r") != lines:
            return None
        ends[:, -1] -= 1
    fields = [Fields(block, begins[:, at].copy(), ends[:, at].copy()) for at in range(form.width)]
    longest = max(int(column.lengths.max()) for column in fields)
    # An empty line is no record.
    if longest > csv.field_size_limit() or (form.width == 1 and not fields[0].lengths.all()):
        return None
    return fields


def _quoted(data: bytes, lines: int, form: RecordFormat) -> Sequence[Sequence[str]] | None:
    try:
        rows = list(form.reader(io.StringIO(data.decode(), newline="")))
    except (UnicodeDecodeError, csv.Error):
        return None
    # As many records as lines, so no record spans several lines.
    if len(rows) != lines or any(len(row) != form.width for row in rows):
        return None
    return list(zip(*rows, strict=True))
