"""Clean delimited text as bytes: where every record is one line with as many delimiters as the header,
fields are found with NumPy, and whole columns are looked at and read rather than cells.

`columns_of` splits lines into columns; what is not clean is left to `csv`: a chunk in which quotes
mean something and no record goes over several lines alone, anything else with the rest of the file.
A `Block` holds the bytes of some records, `Fields` is one column of it, and a sequence of its cells,
which are made when somebody asks for them. `plain`, `days` and `doubtful` say what a look at each
cell would say, or that they do not know.
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
from condgraph.engine.snapshot.container import MEAN, SPARE, sorted_texts

#: Digits of a number that a float and 64 bits hold with room to spare.
_DIGITS: Final = 15
_MINUS, _POINT, _ZERO, _SPACE, _DOLLAR = b"-.0 $"
#: White space beyond ASCII, as `str.split` knows it; then that of ASCII within a line, but the space.
_WIDE_SPACE: Final = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]").search
_OTHER_SPACE: Final = b"\t\x0b\x0c\x1c\x1d\x1e\x1f"
_MONTH_LENGTHS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
# How a text begins that has a digit and may be no text (`shapes` knows more): its first three
# letters, and its first two.
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
    """Plain numbers, each `mantissa / 10 ** decimals`, where `there` says so; a missing cell is
    empty, or a hyphen. Shape (cells,) each.
    """

    mantissa: NDArray[np.int64]
    decimals: NDArray[np.int64]
    there: NDArray[np.bool_]
    lengths: NDArray[np.int64]


def basic_days(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which numbers of eight digits are days of the calendar, YYYYMMDD, of the years 1000 to 2100."""
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
    """ISO days as days since 1970-01-01, where `there` says so; a missing cell is empty."""

    days: NDArray[np.int64]
    there: NDArray[np.bool_]


class Block:
    """The bytes of some records, UTF-8, and what stands between their fields; raises
    UnicodeDecodeError where they are none.
    """

    def __init__(self, data: bytes, delimiter: str) -> None:
        self.data, self._delimiter = data, delimiter
        self.bytes = np.frombuffer(data, np.uint8)
        self.ascii = data.isascii()
        self.text = data.decode()

    @cached_property
    def collapsed(self) -> bool:
        """Whether there is no white space but single spaces, and those between fields and records."""
        other = _OTHER_SPACE.replace(self._delimiter.encode(), b"")
        if b"  " in self.data or any(space in self.data for space in other):
            return False
        return self.ascii or not _WIDE_SPACE(self.text)

    @cached_property
    def padded(self) -> NDArray[np.uint8]:
        """The bytes, with some more behind them."""
        return np.frombuffer(self.data + bytes(SPARE), np.uint8)

    # Places of bytes are far fewer than bytes, and are looked up; a sum for every byte would be four
    # times the text.

    @cached_property
    def _digits(self) -> NDArray[np.int32]:
        return _where((self.bytes - np.uint8(_ZERO)) < 10)

    @cached_property
    def _wide(self) -> NDArray[np.int32]:
        """The first bytes of characters that are not ASCII."""
        return _where(self.bytes >= 0xC0)

    @cached_property
    def _further(self) -> NDArray[np.int32]:
        """The other bytes of characters that are not ASCII."""
        return _where((self.bytes & 0xC0) == 0x80)

    def places(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """The characters that begin at some bytes."""
        return at if self.ascii else at - self._further.searchsorted(at.astype(np.int32))

    def with_digits(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some stretches have a digit."""
        return _within(self._digits, begins, ends)

    def beyond_ascii(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some stretches have a character that is not ASCII."""
        return np.zeros(len(begins), bool) if self.ascii else _within(self._wide, begins, ends)


def _where(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    return np.flatnonzero(mask).astype(np.int32)


def _within(places: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some stretches have one of the places, which are sorted."""
    # Of one type with the places, which would be copied otherwise.
    low, high = begins.astype(np.int32), ends.astype(np.int32)
    result: NDArray[np.bool_] = places.searchsorted(high) > places.searchsorted(low)
    return result


class Fields(LazyTexts):
    """One column of a block: where each of its cells begins and ends."""

    def __init__(self, block: Block, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.block, self.begins, self.ends = block, begins, ends
        self.lengths = ends - begins

    @classmethod
    def of(cls, cells: Collection[str]) -> Fields | None:
        """Cells that are there already as a column; None where line ends, or what is no text, stand
        in them.
        """
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
        """Some of the cells, by their places or a mask."""
        return self._cut(self.begins[at], self.ends[at])

    def _cut(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str]:
        text = self.block.text
        lows, highs = self.block.places(begins).tolist(), self.block.places(ends).tolist()
        return [text[low:high] for low, high in zip(lows, highs, strict=True)]

    def where(self, mask: NDArray[np.bool_]) -> Fields:
        """Some of the cells as a column."""
        return Fields(self.block, self.begins[mask], self.ends[mask])

    def utf8(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """The bytes of the block, and where each of the cells begins there."""
        return self.block.padded, self.begins, self.lengths

    def sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """The places of the cells in order, once, and which are not the cell before; None for long
        ones.
        """
        return self._sorted

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        return sorted_texts(*self.utf8()) if self.lengths.sum() <= MEAN * len(self) else None

    @cached_property
    def distinct(self) -> int:
        """How many different cells there are."""
        order = self._sorted
        return len(set(self.texts)) if order is None else int(np.count_nonzero(order[1]))

    def _byte(self, at: int) -> NDArray[np.uint8]:
        """The byte at a place of each cell; whatever stands there where the cell has fewer."""
        result: NDArray[np.uint8] = self.block.bytes.take(self.begins + at, mode="clip")
        return result

    @cached_property
    def plain(self) -> Plain | None:
        """All cells as plain numbers of at most 15 digits, or missing; None where one is something
        else.
        """
        lengths, first = self.lengths, self._byte(0)
        longest = int(lengths.max(initial=0))
        some = lengths > 0
        negative = some & (first == _MINUS)
        if longest > _DIGITS + 2 or not (((first - np.uint8(_ZERO)) < 10) | negative | ~some).all():
            return None
        mantissa, decimals = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        behind, points, good = np.zeros(len(self), bool), np.zeros(len(self), np.int64), negative.astype(np.int64)
        for at in range(longest):
            byte, live = self._byte(at), lengths > at
            digit = byte - np.uint8(_ZERO)
            is_digit, is_point = (digit < 10) & live, (byte == _POINT) & live
            mantissa = np.where(is_digit, mantissa * 10 + digit, mantissa)
            decimals += is_digit & behind
            points += is_point
            behind |= is_point
            good += is_digit | is_point
        there = some & ~(negative & (lengths == 1))
        digits = lengths - negative - points
        zero_first = self.block.bytes.take(self.begins + negative, mode="clip") == _ZERO
        whole = (good == lengths) & (points <= 1) & (digits <= _DIGITS) & (digits > decimals) & (behind == (decimals > 0))
        whole &= ~(zero_first & (digits - decimals > 1)) & ~(negative & (mantissa == 0))
        if not (whole | ~there).all():
            return None
        return Plain(np.where(negative, -mantissa, mantissa), decimals, there, lengths)

    @cached_property
    def days(self) -> Days | None:
        """All cells as days of the calendar, YYYY-MM-DD, or missing; None where one is something
        else.
        """
        there = self.lengths > 0
        if not ((self.lengths == 10) | ~there).all() or not there.any():
            return None
        parts = []
        good = (self._byte(4) == _MINUS) & (self._byte(7) == _MINUS)
        if not (good | ~there).all():
            return None
        for places in ((0, 1, 2, 3), (5, 6), (8, 9)):
            number = np.zeros(len(self), np.int64)
            for at in places:
                digit = self._byte(at) - np.uint8(_ZERO)
                good &= digit < 10
                number = number * 10 + digit
            parts.append(number)
        year, month, day = parts
        good &= _in_calendar(year, month, day)
        if not (good | ~there).all():
            return None
        months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
        return Days(months.astype("datetime64[D]").astype(np.int64) + day - 1, there)

    @cached_property
    def collapsed(self) -> bool:
        """Whether white space in the cells is single spaces, and none at their ends."""
        some = self.lengths > 0
        if not self.block.collapsed:
            return False
        edges = (self._byte(0) == _SPACE) | (self.block.bytes.take(self.ends - 1, mode="clip") == _SPACE)
        return not (edges & some).any()

    def perhaps(self, markers: Collection[str]) -> NDArray[np.bool_]:
        """Which cells may be one of some texts, white space collapsed and case folded; of collapsed
        columns. The others are none of them, but for empty cells, which are not looked at.
        """
        some = self.lengths > 0
        first = self._lower(0)
        longest = 4 * max(map(len, markers), default=0)
        beyond: NDArray[np.bool_] = self.block.beyond_ascii(self.begins, self.ends) & (self.lengths <= longest)
        for length, begin in {(len(marker), ord(marker[0])) for marker in markers if marker and marker.isascii()}:
            beyond |= (self.lengths == length) & (first == begin)
        return beyond & some

    def missing(self, markers: Collection[str]) -> NDArray[np.bool_]:
        """Which cells are empty or a marker of missing cells; of collapsed columns."""
        result: NDArray[np.bool_] = self.lengths == 0
        perhaps = np.flatnonzero(self.perhaps(markers))
        if len(perhaps):
            result[perhaps] = [text.casefold() in markers for text in self.some(perhaps)]
        return result

    def doubtful(self) -> NDArray[np.bool_]:
        """Which cells may be more than text; the others can only be that (`shapes.shape`), but for
        empty ones, which are not looked at. Of collapsed columns.
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
        """The byte at a place of each cell, in lower case; nothing (0) where the cell has fewer."""
        byte = np.where(self.lengths > at, self._byte(at), np.uint8(0))
        upper = (byte >= ord("A")) & (byte <= ord("Z"))
        return np.where(upper, byte | np.uint8(0x20), byte)


#: Bytes that are read at once.
_PIECE: Final = 1 << 22
#: Bytes of a chunk that are too many to be looked at together.
_LARGEST: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How the file is written, as far as it matters here: `quotes` are the characters that make a
    chunk one for `csv`, and `reader` is that.
    """

    delimiter: str
    width: int
    quotes: bytes
    reader: Any


@dataclass(slots=True)
class Position:
    """How far a file has been read: bytes, rows, and whether all of it."""

    offset: int = 0
    rows: int = 0
    done: bool = False


def lines_of(stream: BinaryIO, most: int, place: Position) -> Iterator[tuple[bytes, int]]:
    """The lines of a file from a place on, `most` at once: their bytes, with a line end behind the
    last, and their number. Ends early, with `place.done` not set, where lines are too long.
    """
    rest = b""
    while True:
        piece = stream.read(_PIECE)
        if not piece:
            break
        rest += piece
        ends = np.flatnonzero(np.frombuffer(rest, np.uint8) == 10)
        begin = 0
        for at in range(most, len(ends) + 1, most):
            end = int(ends[at - 1]) + 1
            yield rest[begin:end], most
            begin = end
        rest = rest[begin:]
        if len(rest) > _LARGEST:
            return
    if rest:
        rest += b"" if rest.endswith(b"\n") else b"\n"
        lines = rest.count(b"\n")
        for first in range(0, lines, most):
            # The last piece may hold a few more than most.
            end = _after(rest, most)
            yield rest[:end], min(most, lines - first)
            rest = rest[end:]
    place.done = True


def _after(data: bytes, lines: int) -> int:
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    return int(ends[min(lines, len(ends)) - 1]) + 1


def columns_of(data: bytes, lines: int, form: RecordFormat) -> Sequence[Sequence[str]] | None:
    """The columns of some lines; None where they are for the careful way."""
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
    # A line of nothing is no record.
    if longest > csv.field_size_limit() or (form.width == 1 and not fields[0].lengths.all()):
        return None
    return fields


def _quoted(data: bytes, lines: int, form: RecordFormat) -> Sequence[Sequence[str]] | None:
    try:
        rows = list(form.reader(io.StringIO(data.decode(), newline="")))
    except (UnicodeDecodeError, csv.Error):
        return None
    # As many records as lines: none of them goes over several.
    if len(rows) != lines or any(len(row) != form.width for row in rows):
        return None
    return list(zip(*rows, strict=True))
