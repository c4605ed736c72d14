"""Loader of delimited text (CSV, TSV): detects the format, and reads numbered rows in chunks.

Options or the text itself determine the format; an unexpected delimiter gives a warning. Lines before
the header are skipped if they declare the format (`sep=;`), or begin with `#` and have another number
of fields than the header, with a warning; `comment=` names the start of such lines anywhere. Text that
is not UTF-8 is read in a guessed encoding, with a warning.

Clean records are read in whole columns (`fields`); from the first other one on, `csv` reads them. A
record without its last fields, or with blank ones after them, is accepted, with one warning for a
file. A record with an extra comma is repaired, with a warning, if a space after the comma shows that
it belongs to the text ("Rua do Paço, 67" without quotes); any other record with more fields than the
header is bad.

Unless it is small, a file is read twice, first to type its columns. Memory is bounded except for the
keys of `key`.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from condgraph.engine.errors import LoadError, OptionError, nearest, numbered, shortened
from condgraph.engine.facts import Item
from condgraph.engine.reading.shapes import shape
from condgraph.engine.values import collapse
from condgraph.loaders import files
from condgraph.loaders.base import Format, Options, Reading, option_bool
from condgraph.loaders.files import HEAD_BYTES, head_text, suffix_of
from condgraph.loaders.table.column_types import Profile, undecodable
from condgraph.loaders.table.fields import Fields, Position, RecordFormat, columns_of, lines_of
from condgraph.loaders.table.joins import with_key_warnings
from condgraph.loaders.table.rows import TABLE_OPTIONS, Table, TableOptions, column_names

# -- the dialect -------------------------------------------------------------------------------------
# A sample determines the delimiter, the quoting, and the lines before the header.
#
# Values of the option `dialect`, which is detected by default:
#
# - `excel`      a quoted field may contain delimiters and line ends; a quote inside is doubled (RFC 4180)
# - `backslash`  the same, but a quote inside has a backslash before it, as in WikiTableQuestions
# - `plain`      quotes have no meaning; a field ends at the delimiter, a record at the line end
#
# A file is `backslash` if it has `"` and cannot be read as `excel`, or only raggedly. A tab-separated
# file is `plain` unless a quoted field contains a tab, a line end or doubled quotes, or all headers are
# quoted. The delimiter is the one that gives the most even records of several fields.
#
# `sniff_csv` and `sniff_tsv` score a file: 70 with a header, several columns and the extension .csv,
# .tsv or .tab; 60 with two or three columns; less without the extension, a header, or even records.
# Three columns without a header are left to triples.


DIALECTS: Final[dict[str, dict[str, Any]]] = {
    "excel": {"quotechar": '"', "doublequote": True, "strict": True},
    "backslash": {"quotechar": '"', "doublequote": False, "escapechar": "\\", "strict": True},
    "plain": {"quoting": csv.QUOTE_NONE, "quotechar": None, "strict": True},
}
#: How many characters are examined to find the delimiter.
_HEAD: Final = 1 << 15
#: How many records are examined for the types of columns.
_MAX_ROWS: Final = 500
#: The most lines of comments at the start.
_MAX_COMMENTS: Final = 200
#: The most lines above a header, and the least share of records below it that are as wide.
_MAX_ABOVE: Final = 50
_MAX_WIDTHS: Final = 10
_WIDE: Final = 0.5
#: The delimiter of a file of one column, which has none.
NO_DELIMITER: Final = "\x1f"
#: A line that declares the delimiter, as Excel writes it.
SEPARATOR: Final = re.compile(r"(?:\ufeff)?\"?sep=(.)\"?\s*", re.IGNORECASE).fullmatch
#: A year, which may be the header of a column of numbers.
_YEAR: Final = re.compile(r"[12]\d{3}").fullmatch
_QUOTED: Final = re.compile(r'(?:^|[\t\n])"((?:[^"]|"")*+)"(?=[\t\r\n]|\Z)').findall
_NEEDS_QUOTES: Final = re.compile(r'[\t\n"]').search
_QUOTED_AFTER_SPACE: Final = re.compile(r"\s+\".*\"\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Layout:
    """The format of a file: delimiter, dialect, and whether spaces after delimiters are skipped."""

    delimiter: str
    dialect: str
    skip_space: bool = False

    def reader(self, lines: Any) -> Any:
        """Return a `csv.reader` over lines with line ends."""
        return csv.reader(lines, delimiter=self.delimiter, skipinitialspace=self.skip_space, **DIALECTS[self.dialect])


def rows_of(text: str, layout: Layout, complete: bool) -> list[list[str]] | None:
    """Return the records of a sample that are not blank; None if it cannot be read in this format.

    An incomplete sample loses its last record.
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
    """Return the share of records with as many fields as the first."""
    return 0.0 if not rows else sum(len(row) == len(rows[0]) for row in rows) / len(rows)


def above_header(text: str, complete: bool, candidates: str) -> int:
    r"""Return the number of lines above the header of a sample, as banks and statistical offices write them.

    0 if it is unclear. The header is the first record as wide as most of those below it. It has a name for
    each column, and either columns of numbers or times below it, or a blank line above it. The lines above
    it are narrower, and no table themselves.

    >>> above_header("Account,12\nOwner,Ann\n\nday,text,sum\n2024-01-02,a,5\n", True, ",;")
    3
    """
    if len(text) > _HEAD:
        text, complete = text[:_HEAD], False
    marks = [delimiter for delimiter in candidates if delimiter in text]
    for delimiter in marks:
        rows = rows_of(text, Layout(delimiter, "excel"), complete)
        if rows and len(rows[0]) > 1 and fits(rows) and rows[0][-1].strip():
            return 0
    for delimiter in marks:
        records = _with_lines(text, Layout(delimiter, "excel"), complete)
        cells = [_cells(row) for _, row in records]
        not_blank = [at for at, count in enumerate(cells) if count]
        # Try fields, then filled cells, since spreadsheets give every record the same number of fields.
        for widths in ([len(row) for _, row in records], cells):
            if line := _header_of(records, not_blank, widths):
                return line
    return 0


def without_lines(text: str, above: int) -> str:
    """Return a text without its first lines, which end as in `csv`."""
    lines = io.StringIO(text, newline="")
    for _ in range(above):
        lines.readline()
    return lines.read()


def _with_lines(text: str, layout: Layout, complete: bool) -> list[tuple[int, list[str]]]:
    """Return the records of a sample with their first line numbers, from 0, including blank records."""
    lines = io.StringIO(text, newline="")
    reader = layout.reader(lines)
    records: list[tuple[int, list[str]]] = []
    try:
        while True:
            at = reader.line_num
            records.append((at, next(reader)))
    except (StopIteration, csv.Error):
        pass
    return records if complete else records[:-1]


def _cells(row: Sequence[str]) -> int:
    """Return the number of fields up to the last that is not blank."""
    for at in range(len(row), 0, -1):
        if row[at - 1].strip():
            return at
    return 0


def _header_of(records: Sequence[tuple[int, list[str]]], there: Sequence[int], widths: Sequence[int]) -> int:
    """Return the line of the header; 0 if it is the first line or unclear.

    `there` has the indices of the records that are not blank.
    """
    for width in sorted({widths[at] for at in there if widths[at] > 1}, reverse=True)[:_MAX_WIDTHS]:
        header_place = next(place for place, at in enumerate(there) if widths[at] >= width)
        below = there[header_place + 1 :]
        if not below or sum(widths[at] >= width for at in below) < _WIDE * len(below):
            continue
        line, header = records[there[header_place]]
        if not header_place or line > _MAX_ABOVE:
            return 0
        filled = [collapse(cell) for cell in header if cell.strip()]
        has_names = (
            len(filled) >= max(2, width - 1)
            and len(set(filled)) == len(filled)
            and not any(shape(item) and not _YEAR(item) for item in filled)
        )
        if not has_names or any(cell[:1] == " " for cell in header):
            return 0
        above = [records[at][1] for at in there[:header_place]]
        after_blank = there[header_place] > there[header_place - 1] + 1
        if not after_blank and not heads_other_kinds([header, *(records[at][1] for at in below)]):
            return 0
        return 0 if _is_table(above) else line
    return 0


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Whether lines above a header are a separate table, rather than names and values.

    That is so if below the first cell of some column all are numbers or times, and there are several lines.
    """
    names = [row[0].strip() for row in rows]
    if len(rows) < 2 or names[0].endswith(":") or (len(rows) == 2 and not shape(collapse(names[1]))):
        return False
    columns = list(zip(*rows, strict=False))
    return any(
        not shape(collapse(column[0])) and all(map(shape, map(collapse, column[1:]))) for column in columns if column[0].strip()
    )


def heads_other_kinds(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first record has texts above columns of numbers or times."""
    headers = rows[0]
    body = [row for row in rows[1:_MAX_ROWS] if len(row) == len(headers)]
    return any(
        header.strip() and not shape(collapse(header)) and _is_typed(column, header)
        for header, column in zip(headers, zip(*body, strict=True), strict=False)
    )


def find_delimiter(text: str, complete: bool, candidates: str) -> str:
    """Return the delimiter of a sample; the first candidate if none gives several fields."""
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


def one_column(text: str, complete: bool, candidates: str) -> bool:
    """Whether a sample is one column of texts: no candidate splits the header, or splits records evenly."""
    if len(text) > _HEAD:
        text, complete = text[:_HEAD], False
    samples = [
        rows
        for mark in candidates
        if mark in text
        for dialect in (DIALECTS if '"' in text else ("excel",))
        if (rows := rows_of(text, Layout(mark, dialect), complete))
    ]
    return bool(samples) and all(len(rows[0]) == 1 for rows in samples) and not all(map(fits, samples))


def find_dialect(text: str, complete: bool, delimiter: str) -> Layout:
    """Return the layout of a sample with a known delimiter."""
    excel = Layout(delimiter, "excel")
    if '"' not in text:
        # There may be quotes after the sample, except in tab-separated files, which need none.
        return Layout(delimiter, "plain") if delimiter == "\t" else excel
    rows = rows_of(text, excel, complete)
    if delimiter == "\t" and not _tabs_quoted(text, rows, complete and len(text) <= _HEAD):
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


def _tabs_quoted(text: str, rows: Sequence[Sequence[str]] | None, complete: bool) -> bool:
    if not rows:
        return False
    if any(map(_NEEDS_QUOTES, _QUOTED(text[:_HEAD]))):
        return True
    headers, *body = rows_of(text[:_HEAD], Layout("\t", "plain"), complete) or [[]]
    return all(map(_in_quotes, headers)) or any(_is_quoted(column) for column in zip(*body, strict=False))


def _in_quotes(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"'


def _is_quoted(column: Sequence[str]) -> bool:
    """Whether a column has numbers or times in quotes, which are not part of them."""
    cells = [cell for cell in column if cell.strip()]
    return len(cells) > 1 and all(map(_in_quotes, cells)) and _is_typed([cell[1:-1] for cell in cells])


def preamble(text: str, comment: str = "") -> tuple[int, str | None]:
    r"""Return the number of lines before the header, and the delimiter that one of them declares (`sep=;`).

    >>> [preamble("\n".join(lines)) for lines in (["sep=;", "a;b"], ["# of 2020", "a,b", "1,2"], ["#,b", '1,"2,3"'])]
    [(1, ';'), (1, None), (0, None)]
    """
    lines = text[: 1 << 16].splitlines()
    at, delimiter = 0, None
    if lines and (declared := SEPARATOR(lines[0])):
        at, delimiter = 1, declared[1]
    first = at
    while at < min(len(lines), _MAX_COMMENTS) and (
        lines[at].startswith("#") or (at > first and not lines[at].strip()) or (comment and lines[at].startswith(comment))
    ):
        at += 1
    if at == first or at == len(lines):
        return first, delimiter
    if (
        at == first + 1
        and not comment
        and any(1 < _fields(lines[first], mark) == _fields(lines[at], mark) for mark in (delimiter or ",;\t|"))
    ):
        # The header itself begins with a number sign.
        return first, delimiter
    return at, delimiter


def _fields(line: str, delimiter: str) -> int:
    """Return the number of fields of a line, respecting quotes."""
    return len((rows_of(line, Layout(delimiter, "excel"), True) or [[]])[0])


def like_data(text: str, complete: bool, layout: Layout) -> bool:
    """Return whether the first record is data: it has numbers or times like its columns, or texts that occur again below."""
    rows = rows_of(text[:_HEAD], layout, complete and len(text) <= _HEAD) or []
    if len(rows) < 2:
        return False
    # Years head columns of numbers, but a single one does not head other years; the number of another kind does not.
    values = [bool(shape(collapse(header))) for header in rows[0]]
    years = [bool(_YEAR(header.strip())) for header in rows[0]]
    alike = [value and not year for value, year in zip(values, years, strict=True)]
    full = [row for row in rows[1:] if len(row) == len(rows[0]) and row != rows[0]]
    if sum(years) == 1:
        at = years.index(True)
        alike[at] = sum(bool(_YEAR(row[at].strip())) for row in full) * 2 > len(full)
    headers = [collapse(header) for header in rows[0]]
    columns = list(zip(*full, strict=True))
    again = [
        any(map(str.isalpha, name)) and sum(cell.split() == name.split() for cell in cells) > 1
        for name, cells in zip(headers, columns, strict=False)
    ]
    if not any(alike) and not any(again):
        return False
    typed = [at for at, column in enumerate(columns) if _is_typed(column)]
    named = [at for at in typed if not values[at] and any(map(str.isalnum, headers[at]))]
    return (any(alike[at] for at in typed) or any(again)) and not named


def _is_typed(column: Sequence[str], header: str = "") -> bool:
    """Whether a column has numbers or times."""
    profile = Profile()
    profile.add(column)
    return profile.decide(header).kind != "text"


def explained(error: csv.Error, layout: Layout) -> str:
    """Return an error of `csv` in terms of the file."""
    message = str(error)
    if "unexpected end of data" in message:
        return "a quote is opened and never closed"
    if "field larger than" in message:
        return (
            f"a field is longer than {csv.field_size_limit():,} characters: a quote is not closed, or longest_cell= has to allow it"
        )
    if "expected after" in message:
        other = "backslash" if layout.dialect == "excel" else "excel"
        return f"a field goes on after its closing quote (dialect={other!r} or 'plain' reads other ways of quoting)"
    return message


def sample_rows(head: bytes, delimiters: str) -> tuple[str, Sequence[Sequence[str]]]:
    """Return the delimiter and records of a file's head; no records if it is no text of several fields."""
    text = head_text(head, damaged=True)
    return _sample(text, len(head) < HEAD_BYTES, delimiters) if text and text.strip() else (delimiters[0], [])


# Several formats look at the same head.
@lru_cache(maxsize=4)
def _sample(text: str, complete: bool, delimiters: str) -> tuple[str, Sequence[Sequence[str]]]:
    skipped, declared = preamble(text.lstrip("\ufeff"))
    if skipped:
        text = "".join(text.splitlines(keepends=True)[skipped:])
    delimiter, rows = _rows(text, complete, declared or delimiters)
    uneven = not rows or not fits(rows) or not rows[0][-1].strip()
    if uneven and (above := above_header(text, complete, declared or delimiters)):
        return _rows(without_lines(text, above), complete, declared or delimiters)
    return delimiter, rows


def _rows(text: str, complete: bool, delimiters: str) -> tuple[str, list[list[str]]]:
    delimiter = find_delimiter(text, complete, delimiters)
    return delimiter, rows_of(text, find_dialect(text, complete, delimiter), complete) or []


def padded(row: Sequence[str], width: int) -> list[str]:
    """Return a record with the right number of fields: padded, or without extra blank ones.

    Any other record is returned unchanged.
    """
    if len(row) < width:
        return [*row, *[""] * (width - len(row))]
    return list(row if any(map(str.strip, row[width:])) else row[:width])


def fits(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all records have as many fields as the first."""
    return all(len(row) == len(rows[0]) for row in rows)


#: Extensions of files that may have text around a Markdown table.
_PROSE: Final = (".md", ".markdown", ".txt")
_DASHES: Final = re.compile(r":?-+:?").fullmatch


def markdown_header(text: str, path: Path) -> int | None:
    r"""Return the line, from 0, of the header of the first Markdown table in a text, or None.

    The next line is one of dashes, with as many cells. Only files of prose may have lines above it, and an
    empty line or a heading before it.

    >>> markdown_header("# Peaks\n| a | b |\n|---|:-:|\n| 1 | 2 |\n", Path("peaks.md"))
    1
    """
    line_before, header = "", ""
    for at, line in enumerate(io.StringIO(text, newline="")):
        if "|" in header and "-" in line and not set(line) - set("|:- \t\r\n") and "|" in line:
            dashes = markdown_cells(line)
            separated = at == 1 or not line_before.strip() or line_before.startswith("#")
            if all(map(_DASHES, dashes)) and len(dashes) == len(markdown_cells(header)) and separated:
                return at - 1
        if at == 1 and suffix_of(path) not in _PROSE:
            return None
        line_before, header = header, line
    return None


def markdown_cells(line: str) -> list[str]:
    r"""Return the cells of a row of a Markdown table.

    >>> markdown_cells("| a \\| b | | c |")
    ['a | b', '', 'c']
    """
    cells = [cell.replace("\\|", "|").strip() for cell in _UNESCAPED(line.strip())]
    first, last = not cells[0], len(cells) > 1 and not cells[-1]
    return cells[first : len(cells) - last] or [""]


_UNESCAPED: Final = re.compile(r"(?<!\\)\|").split


class MarkdownRows:
    """An iterator of the records of a Markdown table from its header on, like `csv.reader`.

    The table ends at the first line without a pipe; `left` counts the lines below it that are not blank,
    and `first` has some of them.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.line_num = 0
        self.left = 0
        self.first: list[str] = []

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        line = next(self._lines, None)
        if line is not None and "|" in line:
            if not self.line_num:
                next(self._lines, None)
                self.line_num = 1
            self.line_num += 1
            return markdown_cells(line)
        while line is not None:
            if line.strip():
                self.left += 1
                self.first += [line.strip()] if self.left <= 3 else []
            line = next(self._lines, None)
        raise StopIteration


_TABS: Final = (".tsv", ".tab")
_NAMED: Final = (".csv", ".psv")
#: Names that programs give to columns.
_IDENTIFIER: Final = re.compile(r"[^\W\d][\w.-]*").fullmatch


def sniff_csv(path: Path, head: bytes) -> int:
    """Score a file as a table with other delimiters than tabs: 0 to 70; 85 for a Markdown table."""
    suffix = suffix_of(path)
    text = (head_text(head, damaged=True) or "").lstrip("\ufeff")
    if "|" in text and markdown_header(text, path) is not None:
        return 85
    delimiter, rows = sample_rows(head, "\t" if suffix in _TABS else ",;\t|")
    if delimiter == "\t" and suffix != ".csv":
        return 0
    return _likeness(head, rows, suffix in _NAMED)


def sniff_tsv(path: Path, head: bytes) -> int:
    """Score a file as a tab-separated table: 0 to 70."""
    suffix = suffix_of(path)
    if suffix == ".csv":
        return 0
    delimiter, rows = sample_rows(head, "\t" if suffix in _TABS else ",;\t|")
    return _likeness(head, rows, suffix in _TABS) if delimiter == "\t" else 0


def _likeness(head: bytes, rows: Sequence[Sequence[str]], named: bool) -> int:
    if not rows:
        return 0
    if is_page(head):
        return 0
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[", b"<", b"@"):
        # JSON, XML, N-Triples or Turtle, whose lines may have equal numbers of commas.
        return 5 if named else 0
    width = len(rows[0])
    if width < 2:
        # One column, whose texts may contain any mark.
        return 40 if named else 0
    programs = all(map(_IDENTIFIER, rows[0]))
    if len(rows) == 1 and not named and not programs:
        return 0
    if named or (width > 2 and programs):
        rows = [padded(row, width) for row in rows]
    even = evenness(rows) >= 0.95
    headed = has_header(rows)
    if not even:
        # With the right extension it still counts a little, so that the error is about the bad record.
        return (40 if headed and evenness(rows) > 0.5 else 15) if named else 0
    if not headed:
        return 0 if not named else 25 if width == 3 else 40
    return 45 if not named else 60 if width < 4 else 70


def is_page(head: bytes) -> bool:
    """Whether a file is an HTML page, which servers send instead of data."""
    return head.lstrip(b"\xef\xbb\xbf \r\n\t")[:14].lower().startswith((b"<!doctype html", b"<html"))


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first record is a header: filled and distinct texts above cells of another kind.

    If all columns are texts, the headers must not occur again as cells.
    """
    headers = [collapse(cell) for cell in rows[0]]
    named = [header for header in headers if header]
    if not named or len(set(named)) * 2 < len(headers):
        return False
    body = [row for row in rows[1:_MAX_ROWS] if len(row) == len(headers)]
    if not body:
        return not any(map(shape, named))
    typed = repeated = False
    for header, column in zip(headers, zip(*body, strict=True), strict=True):
        if _is_typed(column, header):
            if not shape(header):
                return True
            # Some headers may be years or numbers, but not over every column of numbers.
            typed = True
        elif header and header in map(" ".join, map(str.split, column)):
            repeated = True
    return not typed and not repeated and (len(body) > 1 or _heads_one(headers, body[0]))


def _heads_one(headers: Sequence[str], row: Sequence[str]) -> bool:
    """Whether headers are above a single row of texts; three columns may be two facts."""
    if not all(map(_IDENTIFIER, headers)):
        return False
    like_identifiers = all(_IDENTIFIER(cell) and cell.islower() for cell in row)
    return len(headers) != 3 or ("".join(headers).islower() and not like_identifiers)


# -- rows --------------------------------------------------------------------------------------------


#: How many characters are examined to detect the format.
SAMPLE: Final = 1 << 20


def _skip_option(options: Options) -> int | None:
    skip = options.get("skip")
    if skip is not None and (not isinstance(skip, int) or isinstance(skip, bool) or skip < 0):
        raise OptionError(f"skip= is a number of lines, not {skip!r}")
    return skip


def _warn_left_out(text: str, lines: int, one: str, several: str, reading: Reading) -> None:
    """Warn of skipped lines at the start of a text."""
    skipped = [line.strip() for line in islice(io.StringIO(text, newline=""), lines) if line.strip() and not SEPARATOR(line)]
    if skipped:
        count = numbered(len(skipped), f"{one} is", f"{several} are")
        reading.warn(f"{count} left out: {'; '.join(skipped)[:200]} (skip= says how many lines are)")


def _guessed(path: Path, reading: Reading) -> str | None:
    """Guess the encoding of a file, with a warning."""
    with files.open_bytes(path) as stream, files.file_errors(path):
        data = stream.read(SAMPLE)
    result = files.guessed_encoding(data)
    if result is not None:
        reading.warn(f"the text is not UTF-8 and is read as {result} (encoding= names another encoding)")
    return result


_CELLS_A_CHUNK: Final = 400_000
_ROWS_A_CHUNK: Final = 20_000
#: How many records are examined for spaces after delimiters.
_LOOKED_AT: Final = 2_000
#: A record of more lines than this gives a warning that a quote may be missing.
_LONG_RECORD: Final = 200
#: Possible delimiters of clean records, and the characters that a clean record of a dialect must not
#: have.
_MARKS: Final = ",;\t|:" + NO_DELIMITER
_QUOTES: Final = {"excel": b'"', "backslash": b'"\\', "plain": b""}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows: their 1-based numbers, and their cells by column."""

    numbers: Sequence[int]
    columns: Sequence[Sequence[str]]


@dataclass(slots=True)
class _OddRecords:
    """Readable records with another number of fields than the header: their number, and the first two."""

    count: int = 0
    first: list[tuple[int, int, list[str]]] = field(default_factory=list)

    def add(self, number: int, line: int, row: list[str]) -> None:
        """Add a record with its number and line."""
        self.count += 1
        if len(self.first) < 2:
            self.first.append((number, line, row))

    def warn(self, what: str, report: Reading) -> None:
        """Warn of the records, if there are any."""
        if self.count:
            lines = "; ".join(f"line {line}: {shortened(','.join(row), 60)!r}" for _, line, row in self.first)
            report.warn(f"{numbered(self.count, 'record has', 'records have')} {what} ({lines})", row=self.first[0][0])


@dataclass(slots=True)
class TextTable:
    """A delimited file as a table, whose rows can be read repeatedly."""

    path: Path
    layout: Layout
    encoding: str | None
    header: bool
    headers: list[str] = field(default_factory=list)
    #: The number of lines before the header, and the start of a comment.
    skipped: int = 0
    comment: str = ""
    #: Whether this is a Markdown table.
    markdown: bool = False

    @classmethod
    def open(cls, path: Path, reading: Reading, options: Options, delimiters: str) -> Self:
        """Detect the format of a file, and read its header; raises `LoadError` and `OptionError`."""
        delimiter, dialect, encoding = options.get("delimiter"), options.get("dialect"), options.get("encoding")
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
            raise OptionError(f"delimiter= is one character, not {delimiter!r}")
        if dialect is not None and dialect not in DIALECTS:
            raise OptionError(
                f"unknown dialect {dialect!r}",
                candidates=nearest(str(dialect), DIALECTS),
                hint="there are: " + ", ".join(DIALECTS),
            )
        if encoding is not None and not isinstance(encoding, str):
            raise OptionError(f"encoding= is the name of an encoding, not {encoding!r}")
        longest = options.get("longest_cell")
        if longest is not None:
            if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1:
                raise OptionError(f"longest_cell= is a number of characters, not {longest!r}")
            # The limit is global to the process, so it is only ever raised.
            csv.field_size_limit(max(longest, csv.field_size_limit()))
        comment = options.get("comment")
        if comment is not None and (not isinstance(comment, str) or not comment.strip()):
            raise OptionError(f"comment= is what comments begin with, not {comment!r}")
        if encoding is None:
            encoding = _guessed(path, reading)
        with files.open_text(path, encoding, errors="surrogateescape") as stream, files.file_errors(path):
            text = stream.read(SAMPLE)
            complete = len(text) < SAMPLE
        header, skip_option = option_bool(options, "header"), _skip_option(options)
        markdown_line = None
        if "|" in (delimiter or delimiters) and header is not False and not (dialect or comment or skip_option):
            markdown_line = markdown_header(text, path)
        if markdown_line is not None:
            reading.warn("the file is read as a Markdown table (dialect= overrules)")
            _warn_left_out(text, markdown_line, "line above the header", "lines above the header", reading)
            table = cls(path, Layout("|", "plain"), encoding, True, skipped=markdown_line, markdown=True)
            table._read_header()
            return table
        skipped, declared_delimiter = preamble(text, comment or "") if skip_option is None else (skip_option, None)
        if skipped:
            if skip_option is None:
                _warn_left_out(text, skipped, "line of comment", "lines of comment", reading)
            text = without_lines(text, skipped)
        if skip_option is None and header is not False and not comment:
            above = above_header(text, complete, delimiter or declared_delimiter or delimiters)
            if above:
                _warn_left_out(text, above, "line above the header", "lines above the header", reading)
                text, skipped = without_lines(text, above), skipped + above
        if comment:
            text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(comment))
        delimiter = delimiter or declared_delimiter
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
            reading.warn("the first record looks like data, and is taken as the header (header=false: there is none)")
        return table

    @contextmanager
    def _lines(self, after: Position | None = None) -> Iterator[Any]:
        """Yield the text from the header on; or, after clean rows, the text that follows them."""
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
        """Return a reader of the records of `_lines`, which sees comments as blank lines."""
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
        for _, column, byte in undecodable([first]):
            raise LoadError(
                f"byte 0x{byte:02x} in the {column + 1}. field of the first record is not text in the encoding",
                file=str(self.path),
                hint="encoding= names another encoding, cp1252 or utf-16, say",
            )
        self.headers = first if self.header else [f"column {at}" for at in range(1, len(first) + 1)]

    #: Whether spaces after delimiters are usual in the file; None until it is computed.
    _spaces: bool | None = None

    def _clean(self, place: Position, width: int, most: int) -> Iterator[tuple[Sequence[Sequence[str]], int]]:
        """Yield the columns of chunks of rows while they are clean, with the bytes of the file read.

        `place` records how far that is.
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
        """Skip the lines before the first row; returns whether they are as expected."""
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
        """Yield the rows in chunks of at most `most`, with the fraction of the file read after each.

        Bad records go to `report` (None: they were reported before) and are skipped; rows keep their numbers.
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
        """Yield the rows of `_lines` with their numbers; `before` rows, one line each, precede them."""
        reader = self._records_of(stream)
        too_short, too_long = _OddRecords(), _OddRecords()
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
                    if len(row) != width and len(complete_row := padded(row, width)) == width:
                        (too_short if len(row) < width else too_long).add(number, first, row)
                        row = complete_row
                    elif len(row) != width:
                        repaired = self._joined(row, width)
                        message = f"{len(row)} fields where the table has {width}"
                        if repaired is None:
                            if report is not None:
                                report.bad(f"{message} (line {first})", row=number)
                            continue
                        row, cell = repaired
                        if report is not None:
                            report.warn(f"{message}: {cell!r} is read as one", row=number)
                    if line - first > _LONG_RECORD and report is not None:
                        report.warn(f"the record goes from line {first} to {line - 1}; a quote may be missing", row=number)
                    yield number, row
                if report is not None:
                    if blanks and not self.comment:
                        report.warn(numbered(blanks, "blank line between rows is ignored", "blank lines between rows are ignored"))
                    too_short.warn(f"fewer than the {width} fields of the header, and the last are missing", report)
                    too_long.warn(f"blank fields after the {width} of the header, which are left out", report)
                    if isinstance(reader, MarkdownRows) and reader.left:
                        skipped_lines = numbered(reader.left, "line below the table is", "lines below the table are")
                        report.warn(f"{skipped_lines} left out: {shortened('; '.join(reader.first), 200)}")
                return
            except csv.Error as error:
                number += 1
                first, line = line, reader.line_num + 1 + above
                if report is not None:
                    lines = f"line {first}" if line - first < 2 else f"lines {first} to {line - 1}"
                    report.bad(f"{explained(error, self.layout)} ({lines})", row=number)

    def _joined(self, row: list[str], width: int) -> tuple[list[str], str] | None:
        """Repair a record with extra commas; returns it and the first joined field, or None if it is unclear.

        Exactly as many fields as there are too many must begin with a space: prose has a space after a comma,
        and most files do not have one between fields.
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
        """Whether spaces after delimiters are usual: in over a tenth of the first complete records."""
        if self._spaces is None:
            with self._lines() as stream:
                complete = [row for row in islice(self._lenient(stream), _LOOKED_AT) if len(row) == width]
            spaced = sum(any(cell[:1] == " " for cell in row[1:]) for row in complete)
            self._spaces = self.layout.skip_space or not complete or spaced * 10 > len(complete)
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
        for at, column, byte in undecodable(rows):
            bad.add(at)
            if report is not None:
                report.bad(
                    f"byte 0x{byte:02x} is not text in the encoding (encoding= names another)", row=numbers[at], field=names[column]
                )
        if bad:
            numbers = [number for at, number in enumerate(numbers) if at not in bad]
            rows = [row for at, row in enumerate(rows) if at not in bad]
        columns: list[tuple[str, ...]] = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        return Chunk(numbers, columns)


#: How many of the last rows are examined for totals, and the most characters of a label for totals.
_LAST: Final = 3
_MAX_LABEL: Final = 40
_TOTAL: Final = re.compile(
    r"(?:(?:grand|sub|column|overall)[ -]?)?totals?|(?:grand )?sum|summe|gesamt(?:summe)?|insgesamt|total g[eé]n[eé]ral|totale"
    r"|totaal|итого|合計|总计"
).fullmatch


def is_total(cell: str) -> bool:
    """Whether a cell is a label for a row of totals.

    >>> is_total(" Grand Total: "), is_total("Total Gym")
    (True, False)
    """
    return len(cell) < _MAX_LABEL and _TOTAL(collapse(cell).casefold().strip(":= ")) is not None


def warn_of_totals(names: Sequence[str], last: Chunk, reading: Reading) -> None:
    """Warn of last rows that look like totals: one cell is such a label, and another has digits."""
    first = max(0, len(last.numbers) - _LAST)
    columns = [_last(column, first) for column in last.columns]
    for at in range(len(last.numbers) - first):
        cells = [column[at] for column in columns]
        label = next((place for place, cell in enumerate(cells) if is_total(cell)), None)
        if label is not None and any(any(map(str.isdigit, cell)) for cell in cells):
            reading.warn(
                f"the row looks like a total of those above ({collapse(cells[label])!r}), and is loaded as a row, so that "
                "sums count it too; remove it from the source, or exclude it from queries",
                row=last.numbers[first + at],
                field=names[label],
            )


def warn_of_headers(headers: Sequence[str], chunk: Chunk, reading: Reading) -> None:
    """Warn of rows that repeat the header, as in concatenated files."""
    rows: Sequence[int] = range(len(chunk.numbers)) if len(headers) > 1 else ()
    for header, column in zip(headers, chunk.columns, strict=True):
        if not rows or (isinstance(column, Fields) and (column.days is not None or column.plain is not None)):
            return
        if isinstance(column, Fields) and len(rows) == len(column):
            rows = np.flatnonzero(column.lengths == len(header.encode(errors="replace"))).tolist()
        rows = [at for at, cell in zip(rows, map(column.__getitem__, rows), strict=True) if cell == header]
    for at in rows:
        reading.warn("the row repeats the header, and is loaded like any other; remove it from the source", row=chunk.numbers[at])


def _last(column: Sequence[str], first: int) -> list[str]:
    """Return the cells of a column from an index on.

    Cells of a column of numbers or days are not created, since none is a label for totals.
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
    "delimiter": "the character between fields (default: detected)",
    "dialect": "the way of quoting: excel, backslash or plain (default: detected)",
    "comment": "the beginning of comment lines",
    "encoding": files.ENCODING_HELP,
    "longest_cell": "characters that a cell may have (default: 131072)",
}
#: A table with fewer cells is read only once.
_CELLS_IN_MEMORY: Final = 1_000_000


def read_csv(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a file of comma-separated values."""
    yield from _read_text(source, reading, options, ",;\t|")


def read_tsv(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    """Yield the facts of a file of tab-separated values."""
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
    readers = [column_type.reader() for column_type in types]
    again = memory if memory is not None else ((chunk, 0.5 + part / 2) for chunk, part in text.chunks(None, table.names))
    for chunk, fraction in again:
        columns = chunk.columns
        entities, good = table.rows_at_once(
            chunk.numbers,
            None if table.key is None else columns[table.key],
            None if table.name_column is None else columns[table.name_column],
        )
        if len(entities):
            yield entities
            # Converted once, since a range would become an array for each column.
            rows = np.asarray(entities.rows, np.int32)
            for at, (column, column_type, read) in enumerate(zip(columns, types, readers, strict=True)):
                good_cells = column if good is None else [column[row] for row in good]
                batch = table.batch(at, column_type, read, entities.ids, rows, good_cells)
                if batch is not None:
                    yield batch
        reading.advance(len(chunk.numbers), fraction)
    if not table.has_rows:
        reading.warn("the table has no rows")
    table.finish()


CSV: Final = Format("csv", "a table of comma-separated values", with_key_warnings(read_csv), _TEXT_OPTIONS, sniff_csv)
TSV: Final = Format("tsv", "a table of tab-separated values", with_key_warnings(read_tsv), _TEXT_OPTIONS, sniff_tsv)
