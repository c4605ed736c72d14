"""Delimited text without quotes, as `fields.Block`s: where every record is one line with as many
delimiters as the header, fields are found with NumPy, and no cell is made.

Records are taken in chunks of a given number, as `text.TextTable` takes them. What is not clean is
left to `csv`: a chunk in which quotes mean something and no record goes over several lines alone,
anything else with the rest of the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np

from condgraph.loaders.table.fields import Block, Fields

#: Bytes that are read at once.
_PIECE: Final = 1 << 22
#: Bytes of a chunk that are too many to be looked at together.
_LARGEST: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class Way:
    """How the file is written, as far as it matters here: `quotes` are the characters that make a
    chunk one for `csv`, and `reader` is that.
    """

    delimiter: str
    width: int
    quotes: bytes
    reader: Any


@dataclass(slots=True)
class Place:
    """How far a file has been read: bytes, rows, and whether all of it."""

    offset: int = 0
    rows: int = 0
    done: bool = False


def lines_of(stream: BinaryIO, most: int, place: Place) -> Iterator[tuple[bytes, int]]:
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


def columns_of(data: bytes, lines: int, way: Way) -> Sequence[Sequence[str]] | None:
    """The columns of some lines; None where they are for the careful way."""
    if b"\0" in data or (data.count(b"\r") and data.count(b"\r\n") != data.count(b"\r")):
        return None
    if any(quote in data for quote in (way.quotes[at : at + 1] for at in range(len(way.quotes)))):
        return _quoted(data, lines, way)
    try:
        block = Block(data, way.delimiter)
    except UnicodeDecodeError:
        return None
    marks = np.flatnonzero((block.bytes == ord(way.delimiter)) | (block.bytes == 10))
    if len(marks) != lines * way.width:
        return None
    ends = marks.reshape(lines, way.width)
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
    fields = [Fields(block, begins[:, at].copy(), ends[:, at].copy()) for at in range(way.width)]
    longest = max(int(column.lengths.max()) for column in fields)
    # A line of nothing is no record.
    if longest > csv.field_size_limit() or (way.width == 1 and not fields[0].lengths.all()):
        return None
    return fields


def _quoted(data: bytes, lines: int, way: Way) -> Sequence[Sequence[str]] | None:
    try:
        rows = list(way.reader(io.StringIO(data.decode(), newline="")))
    except (UnicodeDecodeError, csv.Error):
        return None
    # As many records as lines: none of them goes over several.
    if len(rows) != lines or any(len(row) != way.width for row in rows):
        return None
    return list(zip(*rows, strict=True))
