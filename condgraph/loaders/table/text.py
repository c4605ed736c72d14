"""Delimited text (CSV, TSV) as rows of cells: how a file is written, numbered rows in chunks, bad
records left out and reported.

How a file is written is said by options or found out (`dialect`); another delimiter than expected is
warned about. Lines before the header are left out where they say how the file is written (`sep=;`),
or begin with `#` and have another number of fields than the header, with a warning; `comment=` names
what begins such lines anywhere. Text that is no UTF-8 is read as what it seems to be, with a warning.

As long as records are clean they are read whole (`fields`), from there on by `csv`. A record without
its last fields, or with blank ones after them, is read with a warning, one for all of a file. A
record with a comma too many is put right, with a warning, where a space after the comma says that it
belongs to the text ("Rua do Paço, 67" without quotes); every other record with more fields than the
header is bad.

A file is read twice, once to type its columns, unless it is small; memory is bounded whatever its
size, except that `key` remembers the keys.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from condgraph.engine.errors import LoadError, OptionError, nearest, numbered, shortened
from condgraph.engine.facts import Item
from condgraph.engine.values import collapse
from condgraph.loaders import files
from condgraph.loaders.base import Format, Options, Reading, option_bool
from condgraph.loaders.table.column_types import undecodable
from condgraph.loaders.table.dialect import (
    DIALECTS,
    NO_DELIMITER,
    SEPARATOR,
    Layout,
    MarkdownRows,
    above_header,
    explained,
    find_delimiter,
    find_dialect,
    like_data,
    markdown_header,
    one_column,
    padded,
    preamble,
    sniff_csv,
    sniff_tsv,
    without_lines,
)
from condgraph.loaders.table.fields import Fields, Position, RecordFormat, columns_of, lines_of
from condgraph.loaders.table.joins import with_key_warnings
from condgraph.loaders.table.rows import TABLE_OPTIONS, Table, TableOptions, column_names

#: Characters that are looked at to find out how a file is written.
SAMPLE: Final = 1 << 20


def _skip_option(options: Options) -> int | None:
    skip = options.get("skip")
    if skip is not None and (not isinstance(skip, int) or isinstance(skip, bool) or skip < 0):
        raise OptionError(f"skip= is a number of lines, not {skip!r}")
    return skip


def _warn_left_out(text: str, lines: int, one: str, several: str, reading: Reading) -> None:
    """Warn about the first lines of a text, which are no part of the table."""
    left = [line.strip() for line in islice(io.StringIO(text, newline=""), lines) if line.strip() and not SEPARATOR(line)]
    if left:
        what = numbered(len(left), f"{one} is", f"{several} are")
        reading.warn(f"{what} left out: {'; '.join(left)[:200]} (skip= says how many lines are)")


def _guessed(path: Path, reading: Reading) -> str | None:
    """The encoding that a file without one seems to have, said in a warning."""
    with files.open_bytes(path) as stream, files.file_errors(path):
        data = stream.read(SAMPLE)
    result = files.guessed_encoding(data)
    if result is not None:
        reading.warn(f"the text is no UTF-8 and is read as {result} (encoding= names another encoding)")
    return result


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
class _OddRecords:
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

    def warn(self, what: str, report: Reading) -> None:
        """Warn about them, if there are any."""
        if self.count:
            lines = "; ".join(f"line {line}: {shortened(','.join(row), 60)!r}" for _, line, row in self.first)
            report.warn(f"{numbered(self.count, 'record has', 'records have')} {what} ({lines})", row=self.first[0][0])


@dataclass(slots=True)
class TextTable:
    """A delimited file as a table: its rows as often as they are asked for."""

    path: Path
    layout: Layout
    encoding: str | None
    header: bool
    headers: list[str] = field(default_factory=list)
    #: Lines before the header that are no records, and what begins a comment.
    skipped: int = 0
    comment: str = ""
    #: Whether this is a table of Markdown.
    markdown: bool = False

    @classmethod
    def open(cls, path: Path, reading: Reading, options: Options, delimiters: str) -> Self:
        """Find out how a file is written, and read its header. Raises `LoadError` and
        `OptionError`.
        """
        delimiter, dialect, encoding = options.get("delimiter"), options.get("dialect"), options.get("encoding")
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
            raise OptionError(f"delimiter= is one character, not {delimiter!r}")
        if dialect is not None and dialect not in DIALECTS:
            raise OptionError(
                f"there is no dialect {dialect!r}",
                candidates=nearest(str(dialect), DIALECTS),
                hint="there are: " + ", ".join(DIALECTS),
            )
        if encoding is not None and not isinstance(encoding, str):
            raise OptionError(f"encoding= is the name of an encoding, not {encoding!r}")
        longest = options.get("longest_cell")
        if longest is not None:
            if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1:
                raise OptionError(f"longest_cell= is a number of characters, not {longest!r}")
            # The limit is one for the whole process, so it is only ever raised.
            csv.field_size_limit(max(longest, csv.field_size_limit()))
        comment = options.get("comment")
        if comment is not None and (not isinstance(comment, str) or not comment.strip()):
            raise OptionError(f"comment= is what comments begin with, not {comment!r}")
        if encoding is None:
            encoding = _guessed(path, reading)
        with files.open_text(path, encoding, errors="surrogateescape") as stream, files.file_errors(path):
            text = stream.read(SAMPLE)
            complete = len(text) < SAMPLE
        header, given = option_bool(options, "header"), _skip_option(options)
        marked = None
        if "|" in (delimiter or delimiters) and header is not False and not (dialect or comment or given):
            marked = markdown_header(text, path)
        if marked is not None:
            reading.warn("the file is read as a Markdown table (dialect= overrules)")
            _warn_left_out(text, marked, "line above the header", "lines above the header", reading)
            table = cls(path, Layout("|", "plain"), encoding, True, skipped=marked, markdown=True)
            table._read_header()
            return table
        skipped, said = preamble(text, comment or "") if given is None else (given, None)
        if skipped:
            if given is None:
                _warn_left_out(text, skipped, "line of comment", "lines of comment", reading)
            text = without_lines(text, skipped)
        if given is None and header is not False and not comment:
            above = above_header(text, complete, delimiter or said or delimiters)
            if above:
                _warn_left_out(text, above, "line above the header", "lines above the header", reading)
                text, skipped = without_lines(text, above), skipped + above
        if comment:
            text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(comment))
        delimiter = delimiter or said
        if "\0" in text:
            raise LoadError("this is not text: it holds NUL characters", file=str(path), hint="encoding= names another encoding")
        if delimiter is None:
            delimiter = find_delimiter(text, complete, delimiters)
            if one_column(text, complete, delimiters):
                delimiter = NO_DELIMITER
                reading.warn("the file is read as one column of texts (delimiter= overrules)")
            elif delimiter != delimiters[0]:
                reading.warn(f"fields are separated by {delimiter!r} (delimiter= overrules)")
        layout = Layout(delimiter, dialect) if dialect else find_dialect(text, complete, delimiter)
        table = cls(path, layout, encoding, True if header is None else header, skipped=skipped, comment=comment or "")
        table._read_header()
        if header is None and like_data(text, complete, layout):
            reading.warn("the first record looks like data, and is taken for the header (header=false says that there is none)")
        return table

    @contextmanager
    def _lines(self, after: Position | None = None) -> Iterator[Any]:
        """The text of the file from its header on, without comments; what follows the rows that
        were clean, if there were any.
        """
        if after is not None and after.rows:
            with files.open_bytes(self.path) as raw, files.file_errors(self.path):
                raw.seek(after.offset)
                yield io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="")
            return
        with files.open_text(self.path, self.encoding, errors="surrogateescape") as stream, files.file_errors(self.path):
            for _ in range(self.skipped):
                stream.readline(SAMPLE)
            yield stream

    def _records_of(self, stream: Any) -> Any:
        """A reader of the records of `_lines`; comments are blank lines to it."""
        if self.markdown:
            return MarkdownRows(stream)
        if not self.comment:
            return self.layout.reader(stream)
        return self.layout.reader("\n" if line.startswith(self.comment) else line for line in stream)

    def _read_header(self) -> None:
        with self._lines() as stream:
            reader = self._records_of(stream)
            try:
                first = next((row for row in reader if row), None)
            except csv.Error as error:
                raise LoadError(
                    f"the first record cannot be read: {explained(error, self.layout)}", file=str(self.path), row=1
                ) from None
        if first is None:
            raise LoadError("the file is empty; a table has at least a header", file=str(self.path))
        for _, where, byte in undecodable([first]):
            raise LoadError(
                f"byte 0x{byte:02x} in the {where + 1}. field of the first record is not text in the encoding",
                file=str(self.path),
                hint="encoding= names another encoding, cp1252 or utf-16, say",
            )
        self.headers = first if self.header else [f"column {at}" for at in range(1, len(first) + 1)]

    #: Whether spaces after delimiters are the way of the file; None until somebody asks.
    _spaces: bool | None = None

    def _clean(self, place: Position, width: int, most: int) -> Iterator[tuple[Sequence[Sequence[str]], int]]:
        """The columns of chunks of rows as long as they are clean (`clean`), with the bytes of the
        file that were read; `place` tells how far that is.
        """
        form = self._record_format(width)
        if form is None:
            return
        with files.open_bytes(self.path) as stream, files.file_errors(self.path):
            if not self._after_header(stream, place):
                return
            for data, lines in lines_of(stream, most, place):
                columns = columns_of(data, lines, form)
                if columns is None:
                    place.done = False
                    return
                place.offset += len(data)
                place.rows += lines
                yield columns, files.raw_position(stream)

    def _record_format(self, width: int) -> RecordFormat | None:
        delimiter, encoding = self.layout.delimiter, self.encoding
        plain = encoding is None or files.known_encoding(encoding) in ("utf-8", "utf-8-sig")
        if not plain or self.markdown or self.layout.skip_space or self.comment or delimiter not in _MARKS:
            return None
        return RecordFormat(delimiter, width, _QUOTES[self.layout.dialect], self.layout.reader)

    def _after_header(self, stream: Any, place: Position) -> bool:
        """Take the lines up to the first row; whether they are as they are expected."""
        head = stream.peek(4)[:4]
        if files.marked_encoding(head) not in (None, "utf-8-sig"):
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
        clean = Position()
        for columns, fraction in self._clean(clean, width, most):
            yield Chunk(range(clean.rows - len(columns[0]) + 1, clean.rows + 1), columns), min(1.0, fraction / size)
        if clean.done:
            return
        with self._lines(clean) as stream:
            for number, row in self._records(stream, width, report, clean.rows):
                numbers.append(number)
                rows.append(row)
                if len(rows) >= most:
                    yield self._chunk(numbers, rows, report, names), min(1.0, files.raw_position(stream) / size)
                    numbers, rows = [], []
        if rows:
            yield self._chunk(numbers, rows, report, names), 1.0

    def _records(self, stream: Any, width: int, report: Reading | None, before: int) -> Iterator[tuple[int, list[str]]]:
        """The rows of `_lines` with their numbers; `before` rows, a line each, came before them."""
        reader = self._records_of(stream)
        short, long = _OddRecords(), _OddRecords()
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
                    short.warn(f"fewer than the {width} fields of the header, and the last are missing", report)
                    long.warn(f"blank fields after the {width} of the header, which are left out", report)
                    if isinstance(reader, MarkdownRows) and reader.left:
                        below = numbered(reader.left, "line below the table is", "lines below the table are")
                        report.warn(f"{below} left out: {shortened('; '.join(reader.first), 200)}")
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


#: The last rows, which are looked at, and characters that what they are called has at most.
_LAST: Final = 3
_LONGEST: Final = 40
_TOTAL: Final = re.compile(
    r"(?:(?:grand|sub|column|overall)[ -]?)?totals?|(?:grand )?sum|summe|gesamt(?:summe)?|insgesamt|total g[eé]n[eé]ral|totale"
    r"|totaal|итого|合計|总计"
).fullmatch


def is_total(cell: str) -> bool:
    """Whether a cell is what people call a row that sums the others up.

    >>> is_total(" Grand Total: "), is_total("Total Gym")
    (True, False)
    """
    return len(cell) < _LONGEST and _TOTAL(collapse(cell).casefold().strip(":= ")) is not None


def warn_of_totals(names: Sequence[str], last: Chunk, reading: Reading) -> None:
    """Say which of the last rows of a table look like totals: one of their cells says so, and another
    has digits.
    """
    first = max(0, len(last.numbers) - _LAST)
    columns = [_last(column, first) for column in last.columns]
    for at in range(len(last.numbers) - first):
        cells = [column[at] for column in columns]
        said = next((place for place, cell in enumerate(cells) if is_total(cell)), None)
        if said is not None and any(any(map(str.isdigit, cell)) for cell in cells):
            reading.warn(
                f"the row looks like a total of those above ({collapse(cells[said])!r}), and is loaded as one of them, so that "
                "sums count it too; take it out of the source, or leave it out where you ask",
                row=last.numbers[first + at],
                field=names[said],
            )


def warn_of_headers(headers: Sequence[str], chunk: Chunk, reading: Reading) -> None:
    """Say which rows are the header once more, as in files that were joined."""
    rows: Sequence[int] = range(len(chunk.numbers)) if len(headers) > 1 else ()
    for header, column in zip(headers, chunk.columns, strict=True):
        if not rows or (isinstance(column, Fields) and (column.days is not None or column.plain is not None)):
            return
        if isinstance(column, Fields) and len(rows) == len(column):
            rows = np.flatnonzero(column.lengths == len(header.encode(errors="replace"))).tolist()
        rows = [at for at, cell in zip(rows, map(column.__getitem__, rows), strict=True) if cell == header]
    for at in rows:
        reading.warn("the row repeats the header, and is loaded as any other; take it out of the source", row=chunk.numbers[at])


def _last(column: Sequence[str], first: int) -> list[str]:
    """The cells of a column from a place on. Of one that is numbers or days alone none is made: it
    calls nothing a total.
    """
    if isinstance(column, Fields):
        if column.days is not None or column.plain is not None:
            return ["0"] * (len(column) - first)
        return column.some(np.arange(len(column)) >= first)
    return [str(column[at]) for at in range(first, len(column))]


_TEXT_OPTIONS: Final[Mapping[str, str]] = {
    **TABLE_OPTIONS,
    "header": "whether the first record names the columns (default: true)",
    "skip": "lines above the header, which are left out (default: found where they are plain)",
    "delimiter": "the character between fields (default: found out)",
    "dialect": "the way of quoting: excel, backslash or plain (default: found out)",
    "comment": "what lines of comment begin with",
    "encoding": files.ENCODING_HELP,
    "longest_cell": "characters that a cell may have (default: 131072)",
}
#: A table of fewer cells is read once.
_CELLS_IN_MEMORY: Final = 1_000_000


def read_csv(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A file of comma-separated values as facts."""
    yield from _read_text(source, reading, options, ",;\t|")


def read_tsv(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """A file of tab-separated values as facts."""
    yield from _read_text(source, reading, options, "\t")


def _read_text(source: Any, reading: Reading, options: Options, delimiters: str) -> Iterator[Item]:
    path = files.path_of(source)
    checked = TableOptions.of(options)
    text = TextTable.open(path, reading, options, delimiters)
    table = Table(reading, checked, column_names(text.headers, reading) if text.header else text.headers)
    profiles = [table.profile() for _ in table.names]
    memory: list[tuple[Chunk, float]] | None = []
    cells, last = 0, None
    for chunk, fraction in text.chunks(reading, table.names):
        for profile, column in zip(profiles, chunk.columns, strict=True):
            profile.add(column)
        if text.header:
            warn_of_headers(text.headers, chunk, reading)
        cells += len(chunk.numbers) * len(table.names)
        last = chunk
        if memory is not None:
            memory.append((chunk, 0.5 + fraction / 2))
            if cells > _CELLS_IN_MEMORY:
                memory = None
        reading.advance(0, fraction / 2)
    table.look_for_commas(dict(enumerate(profiles)), text.layout.delimiter)
    if last is not None:
        warn_of_totals(table.names, last, reading)
    types = [table.decide(at, profile) for at, profile in enumerate(profiles)]
    readers = [chosen.reader() for chosen in types]
    again = memory if memory is not None else ((chunk, 0.5 + part / 2) for chunk, part in text.chunks(None, table.names))
    for chunk, fraction in again:
        columns = chunk.columns
        entities, kept = table.rows_at_once(
            chunk.numbers,
            None if table.key is None else columns[table.key],
            None if table.name_column is None else columns[table.name_column],
        )
        if len(entities):
            yield entities
            # Once for all columns; a range would become an array for each.
            rows = np.asarray(entities.rows, np.int32)
            for at, (column, chosen, read) in enumerate(zip(columns, types, readers, strict=True)):
                taken = column if kept is None else [column[row] for row in kept]
                batch = table.batch(at, chosen, read, entities.ids, rows, taken)
                if batch is not None:
                    yield batch
        reading.advance(len(chunk.numbers), fraction)
    table.finish()


CSV: Final = Format("csv", "a table of comma-separated values", with_key_warnings(read_csv), _TEXT_OPTIONS, sniff_csv)
TSV: Final = Format("tsv", "a table of tab-separated values", with_key_warnings(read_tsv), _TEXT_OPTIONS, sniff_tsv)
