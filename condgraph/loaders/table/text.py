"""Delimited text (CSV, TSV) as rows of cells: numbered, in chunks, bad records left out and said.

`TextFile` finds out how a file is written. As long as records are clean they are read whole
(`clean`), from there on by `csv`.

A record without its last fields, or with blank ones after them, is read with a warning, one for all
of a file. A record with a comma too many is put right, with a warning, where a space after the comma
says that it belongs to the text ("Rua do Paço, 67" without quotes); every other record with more
fields than the header is bad.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from condgraph.engine.errors import numbered, shortened
from condgraph.loaders.base import Reading
from condgraph.loaders.encodings import known_encoding, marked_encoding
from condgraph.loaders.files import file_errors, open_bytes, raw_position
from condgraph.loaders.table.cells import undecodable
from condgraph.loaders.table.clean import Place, Way, columns_of, lines_of
from condgraph.loaders.table.dialect import NO_DELIMITER, explained, padded
from condgraph.loaders.table.text_file import SAMPLE, TextFile

_CELLS_A_CHUNK: Final = 400_000
_ROWS_A_CHUNK: Final = 20_000
#: Records that are looked at for the way of the file.
_LOOKED_AT: Final = 2_000
#: A record of more lines than this is warned about: a quote may be missing.
_LONG_RECORD: Final = 200
#: What may stand between the fields of clean records, and what makes records of a way of quoting no
#: clean ones.
_MARKS: Final = ",;\t|:" + NO_DELIMITER
_QUOTES: Final = {"excel": b'"', "backslash": b'"\\', "plain": b""}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows side by side: their 1-based numbers, and the cells column by column."""

    numbers: Sequence[int]
    columns: Sequence[Sequence[str]]


@dataclass(slots=True)
class _Others:
    """Records of another width than the header that can be read all the same: how many, and the
    first two.
    """

    count: int = 0
    first: list[tuple[int, int, list[str]]] = field(default_factory=list)

    def add(self, number: int, line: int, row: list[str]) -> None:
        """One more: its number, its line, its fields."""
        self.count += 1
        if len(self.first) < 2:
            self.first.append((number, line, row))

    def tell(self, what: str, report: Reading) -> None:
        """Warn about them, if there are any."""
        if self.count:
            lines = "; ".join(f"line {line}: {shortened(','.join(row), 60)!r}" for _, line, row in self.first)
            report.warn(f"{numbered(self.count, 'record has', 'records have')} {what} ({lines})", row=self.first[0][0])


@dataclass(slots=True)
class TextTable(TextFile):
    """A delimited file as a table: its rows as often as they are asked for."""

    #: Whether spaces after delimiters are the way of the file; None until somebody asks.
    _spaces: bool | None = None

    def _clean(self, place: Place, width: int, most: int) -> Iterator[tuple[Sequence[Sequence[str]], int]]:
        """The columns of chunks of rows as long as they are clean (`clean`), with the bytes of the
        file that were read; `place` tells how far that is.
        """
        way = self._way(width)
        if way is None:
            return
        with open_bytes(self.path) as stream, file_errors(self.path):
            if not self._after_header(stream, place):
                return
            for data, lines in lines_of(stream, most, place):
                columns = columns_of(data, lines, way)
                if columns is None:
                    place.done = False
                    return
                place.offset += len(data)
                place.rows += lines
                yield columns, raw_position(stream)

    def _way(self, width: int) -> Way | None:
        delimiter, encoding = self.layout.delimiter, self.encoding
        plain = encoding is None or known_encoding(encoding) in ("utf-8", "utf-8-sig")
        if not plain or self.layout.skip_space or self.comment or delimiter not in _MARKS:
            return None
        return Way(delimiter, width, _QUOTES[self.layout.dialect], self.layout.reader)

    def _after_header(self, stream: Any, place: Place) -> bool:
        """Take the lines up to the first row; whether they are as they are expected."""
        head = stream.peek(4)[:4]
        if marked_encoding(head) not in (None, "utf-8-sig"):
            return False
        place.offset = 3 if head.startswith(codecs.BOM_UTF8) else 0
        stream.read(place.offset)
        for at in range(self.skipped + self.header):
            line = stream.readline(SAMPLE)
            place.offset += len(line)
            if b"\r" in line.removesuffix(b"\r\n"):
                return False
            if at == self.skipped:
                try:
                    if list(self.layout.reader([line.decode()])) != [self.headers]:
                        return False
                except (UnicodeDecodeError, csv.Error):
                    return False
        return True

    def chunks(self, report: Reading | None, names: Sequence[str], most: int = 0) -> Iterator[tuple[Chunk, float]]:
        """The rows, with the fraction of the file read after each chunk, of at most so many rows.

        Bad records go to `report` (None: they were reported before) and are left out; rows keep
        their numbers.
        """
        width = len(self.headers)
        most = most or max(1000, min(_ROWS_A_CHUNK, _CELLS_A_CHUNK // width))
        size = max(1, self.path.stat().st_size)
        numbers: list[int] = []
        rows: list[list[str]] = []
        clean = Place()
        for columns, fraction in self._clean(clean, width, most):
            yield Chunk(range(clean.rows - len(columns[0]) + 1, clean.rows + 1), columns), min(1.0, fraction / size)
        if clean.done:
            return
        with self._lines(clean) as stream:
            for number, row in self._records(stream, width, report, clean.rows):
                numbers.append(number)
                rows.append(row)
                if len(rows) >= most:
                    yield self._chunk(numbers, rows, report, names), min(1.0, raw_position(stream) / size)
                    numbers, rows = [], []
        if rows:
            yield self._chunk(numbers, rows, report, names), 1.0

    def _records(self, stream: Any, width: int, report: Reading | None, before: int) -> Iterator[tuple[int, list[str]]]:
        """The rows of `_lines` with their numbers; `before` rows, a line each, came before them."""
        reader = self._records_of(stream)
        short, long = _Others(), _Others()
        number = before or (-1 if self.header else 0)
        blank = blanks = 0
        above = self.skipped + (before + self.header if before else 0)
        line = 1 + above
        while True:
            try:
                for row in reader:
                    first, line = line, reader.line_num + 1 + above
                    if not row:
                        blank += 1
                        continue
                    number += 1
                    if number == 0:
                        blank = 0
                        continue
                    blanks, blank = blanks + blank, 0
                    if len(row) != width and len(even := padded(row, width)) == width:
                        (short if len(row) < width else long).add(number, first, row)
                        row = even
                    elif len(row) != width:
                        joined = self._joined(row, width)
                        said = f"{len(row)} fields where the table has {width}"
                        if joined is None:
                            if report is not None:
                                report.bad(f"{said} (line {first})", row=number)
                            continue
                        row, cell = joined
                        if report is not None:
                            report.warn(f"{said}: {cell!r} is read as one", row=number)
                    if line - first > _LONG_RECORD and report is not None:
                        report.warn(f"the record goes from line {first} to {line - 1}; a quote may be missing", row=number)
                    yield number, row
                if report is not None:
                    if blanks and not self.comment:
                        report.warn(numbered(blanks, "blank line between rows is no row", "blank lines between rows are no rows"))
                    short.tell(f"fewer than the {width} fields of the header, and the last are missing", report)
                    long.tell(f"blank fields after the {width} of the header, which are left out", report)
                return
            except csv.Error as error:
                number += 1
                first, line = line, reader.line_num + 1 + above
                if report is not None:
                    lines = f"line {first}" if line - first < 2 else f"lines {first} to {line - 1}"
                    report.bad(f"{explained(error, self.layout)} ({lines})", row=number)

    def _joined(self, row: list[str], width: int) -> tuple[list[str], str] | None:
        """A record with a comma too many, put right: only where exactly as many fields as are too
        many begin with a space.

        A space stands after a comma in prose, and in most files not after one between fields.
        Returns the record and the first joined field; None where the record could mean something
        else.
        """
        mark = self.layout.delimiter
        parts = [at for at, cell in enumerate(row) if at and cell[:1] == " " and cell.strip()]
        if mark != "," or not parts or len(row) - width != len(parts) or self._spaced(width):
            return None
        fields: list[str] = []
        for at, cell in enumerate(row):
            if at in parts:
                fields[-1] += mark + cell
            else:
                fields.append(cell)
        return fields, fields[parts[0] - 1]

    def _spaced(self, width: int) -> bool:
        """Whether spaces after delimiters are the way of the file: in over a tenth of the first
        records of the right width.
        """
        if self._spaces is None:
            with self._lines() as stream:
                even = [row for row in islice(self._lenient(stream), _LOOKED_AT) if len(row) == width]
            spaced = sum(any(cell[:1] == " " for cell in row[1:]) for row in even)
            self._spaces = self.layout.skip_space or not even or spaced * 10 > len(even)
        return self._spaces

    def _lenient(self, stream: Any) -> Iterator[list[str]]:
        reader = self._records_of(stream)
        while True:
            try:
                yield from reader
                return
            except csv.Error:
                continue

    def _chunk(self, numbers: list[int], rows: list[list[str]], report: Reading | None, names: Sequence[str]) -> Chunk:
        bad = set()
        for at, where, byte in undecodable(rows):
            bad.add(at)
            if report is not None:
                report.bad(
                    f"byte 0x{byte:02x} is not text in the encoding (encoding= names another)", row=numbers[at], field=names[where]
                )
        if bad:
            numbers = [number for at, number in enumerate(numbers) if at not in bad]
            rows = [row for at, row in enumerate(rows) if at not in bad]
        columns: list[tuple[str, ...]] = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        return Chunk(numbers, columns)
