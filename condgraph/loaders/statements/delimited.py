"""The columns of graph files of one fact a line, in large pieces; `shape` says how a file is
written.

Used by the loaders of triples and of temporal facts. Reading is by whole columns: a million lines a
second, not a line at a time.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Final

from condgraph.engine.errors import numbered
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import BLOCK_CHARS, blocks
from condgraph.loaders.statements.shape import HEAD, QUOTING, RELATION, TAIL, Shape


def columns_of(path: Path, shape: Shape, reading: Reading, options: Options) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """The file's columns in pieces of about 100,000 lines: (1-based line numbers, one list a
    column, in the file's order).

    Lines with another number of fields, and lines where head, relation or tail are empty, are
    `bad`. White space around fields is left out, with one warning for the file. A lone number in
    the first line is taken for the count of lines, and compared.
    """
    needed = tuple(at for at, role in enumerate(shape.roles) if role in (HEAD, RELATION, TAIL))
    tidy = _Tidy(reading, needed, shape)
    pieces = blocks(path, reading, options.get("encoding"))
    header = shape.header
    count: tuple[int, int] | None = None
    total = 0
    for rows, columns, plain in _quoted(pieces, shape, reading) if shape.mark in QUOTING else _split(pieces, shape, reading):
        if isinstance(columns, int):
            count = (rows[0], columns)
            continue
        if header and rows:
            header = False
            rows, columns = rows[1:], [column[1:] for column in columns]
        if not plain:
            rows, columns = tidy(rows, columns)
        if rows:
            total += len(rows)
            yield rows, columns
    if count is not None and count[1] != total:
        reading.warn(f"the first line says {count[1]} facts and {total} were read", row=count[0])
    tidy.finish()


#: Line numbers, columns, and whether no field is empty or has white space around it, as far as that
#: is known.
_Piece = tuple[Sequence[int], "list[list[str]] | int", bool]
#: White space in ASCII that is neither a tab nor a space; lines have no line ends.
_RARE_SPACE: Final = "\x0b\x0c\x1c\x1d\x1e\x1f\r"


def _is_plain(joined: str, mark: str) -> bool:
    """Whether fields with marks between them are all there and need no stripping; quick, and may
    say no where they are.
    """
    if not joined.isascii() or mark * 2 in joined or any(map(joined.__contains__, _RARE_SPACE)):
        return False
    around = [space + mark for space in " \t" if space != mark] + [mark + space for space in " \t" if space != mark]
    ends = joined[:1] + joined[-1:]
    return not (mark in ends or " " in ends or "\t" in ends or any(map(joined.__contains__, around)))


def _split(pieces: Iterator[tuple[int, list[str]]], shape: Shape, reading: Reading) -> Iterator[_Piece]:
    """Columns of lines whose fields are never quoted. A piece with an int for its columns is the
    count in the first line.
    """
    mark, width = shape.mark, len(shape.roles)
    begun = False
    for first, lines in pieces:
        if mark == "\t" or (mark and not mark.isspace()):
            counts = list(map(str.count, lines, repeat(mark)))
            if counts.count(width - 1) == len(lines):
                begun = True
                joined = mark.join(lines)
                flat = joined.split(mark)
                plain = _is_plain(joined, mark)
                yield range(first, first + len(lines)), [flat[at::width] for at in range(width)], plain
                continue
        rows: list[int] = []
        records: list[list[str]] = []
        for at, line in enumerate(lines, first):
            fields = line.split(mark or None)
            if len(fields) == width:
                rows.append(at)
                records.append(fields)
            elif not line.strip():
                continue
            elif not begun and not rows and line.strip().isdecimal():
                yield [at], int(line), False
            else:
                reading.bad(_wrong_width(len(fields), width, mark, line), row=at)
            begun = True
        if records:
            yield rows, [list(column) for column in zip(*records, strict=True)], False


def _quoted(pieces: Iterator[tuple[int, list[str]]], shape: Shape, reading: Reading) -> Iterator[_Piece]:
    """Columns of comma- or semicolon-separated records, whose quoted fields may hold marks and line
    ends.
    """
    mark, width = shape.mark, len(shape.roles)
    reader = csv.reader((line + "\n" for _, lines in pieces for line in lines), delimiter=mark, strict=True)
    rows: list[int] = []
    records: list[list[str]] = []
    size = 0
    begun = False
    while True:
        row = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            until = "" if reader.line_num <= row else f", up to line {reader.line_num}"
            reading.bad(f"this record cannot be split into fields ({error}){until}", row=row)
            continue
        if len(fields) == width:
            rows.append(row)
            records.append(fields)
            size += 1
            if size == BLOCK_CHARS // 40:
                yield rows, [list(column) for column in zip(*records, strict=True)], False
                rows, records, size = [], [], 0
        elif not fields or (len(fields) == 1 and not fields[0].strip()):
            continue
        elif not begun and len(fields) == 1 and fields[0].strip().isdecimal():
            yield [row], int(fields[0]), False
        else:
            reading.bad(_wrong_width(len(fields), width, mark, mark.join(fields)), row=row)
        begun = True
    if records:
        yield rows, [list(column) for column in zip(*records, strict=True)], False


def _wrong_width(found: int, width: int, mark: str, line: str) -> str:
    between = repr(mark) if mark else "white space"
    return f"{width} fields with {between} between them are expected, this line has {found}: {line[:80]!r}"


class _Tidy:
    """Strips fields, and leaves out facts that lack a head, a relation or a tail."""

    def __init__(self, reading: Reading, needed: tuple[int, ...], shape: Shape) -> None:
        self._reading = reading
        self._needed = needed
        self._shape = shape
        self._stripped = 0
        self._first = 0

    def __call__(self, rows: Sequence[int], columns: list[list[str]]) -> tuple[Sequence[int], list[list[str]]]:
        for at, column in enumerate(columns):
            plain = list(map(str.strip, column))
            if plain != column:
                changed = [row for row, old, new in zip(rows, column, plain, strict=True) if new and old != new]
                self._stripped += len(changed)
                self._first = self._first or next(iter(changed), 0)
                columns[at] = plain
        if not any("" in columns[at] for at in self._needed):
            return rows, columns
        kept = []
        for at, row in enumerate(rows):
            empty = [position for position in self._needed if not columns[position][at]]
            if empty:
                role = self._shape.roles[empty[0]]
                self._reading.bad(f"the {role} of this fact is empty", row=row, field=role)
            else:
                kept.append(at)
        return [rows[at] for at in kept], [[column[at] for at in kept] for column in columns]

    def finish(self) -> None:
        if self._stripped:
            fields = numbered(self._stripped, "field has white space around it", "fields have white space around them")
            self._reading.warn(f"{fields}, which is left out", row=self._first)
