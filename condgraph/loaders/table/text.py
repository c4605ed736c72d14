"""Delimited text (CSV, TSV) as rows of cells: encoding, delimiter, the way of quoting, records that
are bad.

Ways of quoting, option `dialect`; found out when not given:

- `excel`      a field in quotes may hold delimiters and line ends; a quote inside is doubled (RFC 4180)
- `backslash`  the same, but a quote inside has a backslash before it, as WikiTableQuestions writes them
- `plain`      quotes mean nothing; a field ends at the delimiter, a record at the line end

A file is `backslash` when it has `\\"` and cannot be read as `excel`, or only raggedly. A
tab-separated file is `plain` unless a field in quotes holds a tab, a line end or doubled quotes, or
all headers are in quotes. The delimiter is the one that gives the most even records of several
fields; another one than expected is warned about.

Lines before the header are left out where they say how the file is written (`sep=;`), or begin with
`#` and have another number of fields than the header, with a warning; `comment=` names what begins
such lines anywhere. Text that is no UTF-8 is read as what it seems to be, with a warning.

A record with a comma too many is put right, with a warning, where a space after the comma says that
it belongs to the text ("Rua do Paço, 67" without quotes); every other record of another width is
bad.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from condgraph.engine.errors import LoadError, OptionError, nearest, numbered
from condgraph.engine.reading.shapes import shape
from condgraph.engine.values import collapse
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.files import (
    file_errors,
    guessed_encoding,
    known_encoding,
    marked_encoding,
    open_bytes,
    open_text,
    raw_position,
)
from condgraph.loaders.table.cells import Profile
from condgraph.loaders.table.clean import Place, Way, columns_of, lines_of
from condgraph.loaders.table.rows import truth_option, undecodable

DIALECTS: Final[dict[str, dict[str, Any]]] = {
    "excel": {"quotechar": '"', "doublequote": True, "strict": True},
    "backslash": {"quotechar": '"', "doublequote": False, "escapechar": "\\", "strict": True},
    "plain": {"quoting": csv.QUOTE_NONE, "quotechar": None, "strict": True},
}
#: Characters that are looked at to find out how a file is written.
_SAMPLE: Final = 1 << 20
#: Characters that are enough to find the delimiter.
_HEAD: Final = 1 << 15
_CELLS_A_CHUNK: Final = 400_000
_ROWS_A_CHUNK: Final = 20_000
#: Records that are looked at for the way of the file.
_LOOKED_AT: Final = 2_000
#: A record of more lines than this is warned about: a quote may be missing.
_LONG_RECORD: Final = 200
#: What may stand between the fields of clean records, and what makes records of a way of quoting no
#: clean ones.
_MARKS: Final = ",;\t|:"
_QUOTES: Final = {"excel": b'"', "backslash": b'"\\', "plain": b""}
_QUOTED: Final = re.compile(r'(?:^|[\t\n])"((?:[^"]|"")*+)"(?=[\t\r\n]|\Z)').findall
_NEEDS_QUOTES: Final = re.compile(r'[\t\n"]').search
_QUOTED_AFTER_SPACE: Final = re.compile(r"\s+\".*\"\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows side by side: their 1-based numbers, and the cells column by column."""

    numbers: Sequence[int]
    columns: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is written."""

    delimiter: str
    dialect: str
    skip_space: bool = False

    def reader(self, lines: Any) -> Any:
        """A `csv.reader` over lines that keep their line ends."""
        return csv.reader(lines, delimiter=self.delimiter, skipinitialspace=self.skip_space, **DIALECTS[self.dialect])


def rows_of(text: str, layout: Layout, complete: bool) -> list[list[str]] | None:
    """The records of a sample that are not blank; None where it cannot be read so. A cut sample
    loses its last record.
    """
    lines = io.StringIO(text, newline="")
    reader = layout.reader(lines)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if row)
    except csv.Error:
        if complete or lines.read(1):
            return None
        return rows
    return rows if complete else rows[:-1]


def evenness(rows: Sequence[Sequence[str]] | None) -> float:
    """The share of records that have as many fields as the first."""
    return 0.0 if not rows else sum(len(row) == len(rows[0]) for row in rows) / len(rows)


def find_delimiter(text: str, complete: bool, candidates: str) -> str:
    """The delimiter of a sample, the first candidate where none gives several fields."""
    best, best_score = candidates[0], 0.0
    if len(text) > _HEAD:
        text, complete = text[:_HEAD], False
    for delimiter in candidates:
        if delimiter not in text:
            continue
        scores = [
            evenness(rows)
            for dialect in (DIALECTS if '"' in text else ("excel",))
            if (rows := rows_of(text, Layout(delimiter, dialect), complete)) and len(rows[0]) > 1
        ]
        score = max(scores, default=0.0)
        if score == 1.0:
            return delimiter
        if score > best_score + 1e-9:
            best, best_score = delimiter, score
    return best


def find_dialect(text: str, complete: bool, delimiter: str) -> Layout:
    """The way of quoting of a sample whose delimiter is known."""
    excel = Layout(delimiter, "excel")
    if '"' not in text:
        # What follows the sample may still have quotes; tabs do without them.
        return Layout(delimiter, "plain") if delimiter == "\t" else excel
    rows = rows_of(text, excel, complete)
    if delimiter == "\t" and not _tabs_quoted(text, rows):
        return Layout(delimiter, "plain")
    if rows and any(_QUOTED_AFTER_SPACE.fullmatch(cell) for row in rows[:100] for cell in row[1:]):
        spaced = Layout(delimiter, "excel", True)
        if evenness(rows_of(text, spaced, complete)) >= evenness(rows):
            return spaced
    if '\\"' in text:
        backslash = Layout(delimiter, "backslash")
        if evenness(rows_of(text, backslash, complete)) > evenness(rows):
            return backslash
    return excel


def _tabs_quoted(text: str, rows: Sequence[Sequence[str]] | None) -> bool:
    if not rows:
        return False
    if any(map(_NEEDS_QUOTES, _QUOTED(text[:_HEAD]))):
        return True
    headers = text.splitlines()[0].split("\t")
    return all(len(header) > 1 and header[0] == header[-1] == '"' for header in headers)


@dataclass(slots=True)
class TextTable:
    """A delimited file: its headers, and its rows as often as they are asked for."""

    path: Path
    layout: Layout
    encoding: str | None
    header: bool
    headers: list[str] = field(default_factory=list)
    #: Lines before the header that are no records, and what begins a comment.
    skipped: int = 0
    comment: str = ""
    _spaces: bool | None = None

    @classmethod
    def open(cls, path: Path, reading: Reading, options: Options, delimiters: str) -> TextTable:
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
        with open_text(path, encoding, errors="surrogateescape") as stream, file_errors(path):
            text = stream.read(_SAMPLE)
            complete = len(text) < _SAMPLE
        skipped, said = preamble(text, comment or "")
        if skipped:
            lines = text.splitlines(keepends=True)
            text = "".join(lines[skipped:])
            left = [line.strip() for line in lines[:skipped] if line.strip() and not _SEPARATOR(line)]
            if left:
                lines_of = numbered(len(left), "line", "lines")
                reading.warn(f"{lines_of} of comment before the header left out: {'; '.join(left)[:200]}")
        if comment:
            text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(comment))
        delimiter = delimiter or said
        if "\0" in text:
            raise LoadError("this is not text: it holds NUL characters", file=str(path), hint="encoding= names another encoding")
        if delimiter is None:
            delimiter = find_delimiter(text, complete, delimiters)
            if delimiter != delimiters[0]:
                reading.warn(f"fields are separated by {delimiter!r} (delimiter= overrules)")
        layout = Layout(delimiter, dialect) if dialect else find_dialect(text, complete, delimiter)
        header = truth_option(options, "header")
        table = cls(path, layout, encoding, True if header is None else header, skipped=skipped, comment=comment or "")
        table._read_header()
        if header is None and _like_data(text, complete, layout):
            reading.warn("the first record looks like data, and is taken for the header (header=false says that there is none)")
        return table

    @contextmanager
    def _lines(self, after: Place | None = None) -> Iterator[Any]:
        """The text of the file from its header on, without comments; what follows the rows that
        were clean, if there were any.
        """
        if after is not None and after.rows:
            with open_bytes(self.path) as raw, file_errors(self.path):
                raw.seek(after.offset)
                yield io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="")
            return
        with open_text(self.path, self.encoding, errors="surrogateescape") as stream, file_errors(self.path):
            for _ in range(self.skipped):
                stream.readline(_SAMPLE)
            yield stream

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
            line = stream.readline(_SAMPLE)
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

    def _records_of(self, stream: Any) -> Any:
        """A reader of the records of `_lines`; comments are blank lines to it."""
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
                    f"the first record cannot be read: {_explained(error, self.layout)}", file=str(self.path), row=1
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

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """The rows, with the fraction of the file read after each chunk.

        Bad records go to `report` (None: they were reported before) and are left out; rows keep
        their numbers.
        """
        width = len(self.headers)
        most = max(1000, min(_ROWS_A_CHUNK, _CELLS_A_CHUNK // width))
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
                    if len(row) != width:
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
                if blanks and report is not None and not self.comment:
                    report.warn(f"{blanks} blank lines between rows are not rows")
                return
            except csv.Error as error:
                number += 1
                first, line = line, reader.line_num + 1 + above
                if report is not None:
                    lines = f"line {first}" if line - first < 2 else f"lines {first} to {line - 1}"
                    report.bad(f"{_explained(error, self.layout)} ({lines})", row=number)

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


_SEPARATOR: Final = re.compile(r"(?:\ufeff)?\"?sep=(.)\"?\s*", re.IGNORECASE).fullmatch
#: Lines at the beginning that may be comments.
_MOST_COMMENTS: Final = 200


def preamble(text: str, comment: str = "") -> tuple[int, str | None]:
    """How many lines of a text come before its header, and the delimiter that one of them says
    (Excel's `sep=;`).

    >>> [preamble("\\n".join(lines)) for lines in (["sep=;", "a;b"], ["# of 2020", "a,b", "1,2"], ["#,b", "1,2"])]
    [(1, ';'), (1, None), (0, None)]
    """
    lines = text[: 1 << 16].splitlines()
    at, delimiter = 0, None
    if lines and (said := _SEPARATOR(lines[0])):
        at, delimiter = 1, said[1]
    first = at
    while at < min(len(lines), _MOST_COMMENTS) and (
        lines[at].startswith("#") or (at > first and not lines[at].strip()) or (comment and lines[at].startswith(comment))
    ):
        at += 1
    if at == first or at == len(lines):
        return first, delimiter
    if (
        at == first + 1
        and not comment
        and any(mark in lines[first] and lines[first].count(mark) == lines[at].count(mark) for mark in (delimiter or ",;\t|"))
    ):
        # A header that begins with a number sign.
        return first, delimiter
    return at, delimiter


def _guessed(path: Path, reading: Reading) -> str | None:
    """The encoding that a file without one seems to have, said in a warning."""
    with open_bytes(path) as stream, file_errors(path):
        data = stream.read(_SAMPLE)
    found = guessed_encoding(data)
    if found is not None:
        reading.warn(f"the text is no UTF-8 and is read as {found} (encoding= names another encoding)")
    return found


def _like_data(text: str, complete: bool, layout: Layout) -> bool:
    """Whether the first record has numbers or times as its columns do, and so is no header."""
    rows = rows_of(text[:_HEAD], layout, complete and len(text) <= _HEAD) or []
    if len(rows) < 2:
        return False
    alike = unlike = 0
    for header, *column in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True):
        profile = Profile()
        profile.add(column)
        if profile.decide("").kind != "text":
            # Years head columns of numbers; the number of another kind does not.
            alike += bool(shape(collapse(header))) and not re.fullmatch(r"[12]\d{3}", header.strip())
            unlike += not shape(collapse(header))
    return alike > 0 and not unlike


def _explained(error: csv.Error, layout: Layout) -> str:
    """What `csv` complains about, in terms of the file."""
    said = str(error)
    if "unexpected end of data" in said:
        return "a quote is opened and never closed"
    if "field larger than" in said:
        return (
            f"a field is longer than {csv.field_size_limit():,} characters: a quote is not closed, or longest_cell= has to allow it"
        )
    if "expected after" in said:
        other = "backslash" if layout.dialect == "excel" else "excel"
        return f"a field goes on after its closing quote (dialect={other!r} or 'plain' reads other ways of quoting)"
    return said


def sample_rows(head: bytes, delimiters: str) -> tuple[str, list[list[str]]]:
    """The delimiter and the records of a file's head, for recognition; no records where the head is
    no text of several fields.
    """
    from condgraph.loaders.files import HEAD_BYTES, head_text

    text = head_text(head)
    if not text or not text.strip():
        return delimiters[0], []
    complete = len(head) < HEAD_BYTES
    skipped, said = preamble(text.lstrip("\ufeff"))
    if skipped:
        text = "".join(text.splitlines(keepends=True)[skipped:])
    delimiter = said or find_delimiter(text, complete, delimiters)
    rows = rows_of(text, find_dialect(text, complete, delimiter), complete)
    return delimiter, rows or []
