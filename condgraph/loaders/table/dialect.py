"""How delimited text is written, found out from a sample: the delimiter, the way of quoting, what
stands before the header.

Ways of quoting, option `dialect`; found out when not given:

- `excel`      a field in quotes may hold delimiters and line ends; a quote inside is doubled (RFC 4180)
- `backslash`  the same, but a quote inside has a backslash before it, as WikiTableQuestions writes them
- `plain`      quotes mean nothing; a field ends at the delimiter, a record at the line end

A file is `backslash` when it has `\"` and cannot be read as `excel`, or only raggedly. A
tab-separated file is `plain` unless a field in quotes holds a tab, a line end or doubled quotes, or
all headers are in quotes. The delimiter is the one that gives the most even records of several
fields.

`sniff_csv` and `sniff_tsv` score a file: 70 with a header and several columns where it is called .csv,
.tsv or .tab, 60 where there are two or three; less without the extension, a header, or even records.
Three columns without a header are left to triples.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from condgraph.engine.reading.shapes import shape
from condgraph.engine.values import collapse
from condgraph.loaders.files import HEAD_BYTES, head_text, suffix_of
from condgraph.loaders.table.column_types import Profile

DIALECTS: Final[dict[str, dict[str, Any]]] = {
    "excel": {"quotechar": '"', "doublequote": True, "strict": True},
    "backslash": {"quotechar": '"', "doublequote": False, "escapechar": "\\", "strict": True},
    "plain": {"quoting": csv.QUOTE_NONE, "quotechar": None, "strict": True},
}
#: Characters that are enough to find the delimiter.
_HEAD: Final = 1 << 15
#: Records that are looked at for what their columns are.
_MOST_ROWS: Final = 500
#: Lines at the beginning that may be comments.
_MOST_COMMENTS: Final = 200
#: Lines that may stand above a header, and the share of the records below it that are as wide.
_MOST_ABOVE: Final = 50
_MOST_WIDTHS: Final = 10
_WIDE: Final = 0.5
#: Stands between the fields of a file of one column, which has no delimiter.
NO_DELIMITER: Final = "\x1f"
#: A line that says the delimiter, as Excel writes it.
SEPARATOR: Final = re.compile(r"(?:\ufeff)?\"?sep=(.)\"?\s*", re.IGNORECASE).fullmatch
#: A year, which may head a column of numbers.
_YEAR: Final = re.compile(r"[12]\d{3}").fullmatch
_QUOTED: Final = re.compile(r'(?:^|[\t\n])"((?:[^"]|"")*+)"(?=[\t\r\n]|\Z)').findall
_NEEDS_QUOTES: Final = re.compile(r'[\t\n"]').search
_QUOTED_AFTER_SPACE: Final = re.compile(r"\s+\".*\"\s*", re.DOTALL)


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


def above_header(text: str, complete: bool, candidates: str) -> int:
    """How many lines stand above the header of a sample, as banks and statistical offices write
    them; 0 where that is not plain.

    The header is the first record that is as wide as most of those below it. It has a name for each
    column, and either columns of numbers or times below it, or a blank line above it. What stands
    above it is narrower, and no table itself.

    >>> above_header("Account,12\\nOwner,Ann\\n\\nday,text,sum\\n2024-01-02,a,5\\n", True, ",;")
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
        there = [at for at, count in enumerate(cells) if count]
        # Fields first; then cells, since spreadsheets give every record the same number of fields.
        for widths in ([len(row) for _, row in records], cells):
            if line := _header_of(records, there, widths):
                return line
    return 0


def without_lines(text: str, above: int) -> str:
    """A text without its first lines, which end as `csv` ends them."""
    lines = io.StringIO(text, newline="")
    for _ in range(above):
        lines.readline()
    return lines.read()


def _with_lines(text: str, layout: Layout, complete: bool) -> list[tuple[int, list[str]]]:
    """The records of a sample with the numbers of their first lines, from 0; blank ones as well."""
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
    """How many fields a record has up to the last that is not blank."""
    for at in range(len(row), 0, -1):
        if row[at - 1].strip():
            return at
    return 0


def _header_of(records: Sequence[tuple[int, list[str]]], there: Sequence[int], widths: Sequence[int]) -> int:
    """The line of the header, 0 where it is the first or none is plain; `there` has the places of the
    records that are not blank.
    """
    for width in sorted({widths[at] for at in there if widths[at] > 1}, reverse=True)[:_MOST_WIDTHS]:
        first = next(place for place, at in enumerate(there) if widths[at] >= width)
        below = there[first + 1 :]
        if not below or sum(widths[at] >= width for at in below) < _WIDE * len(below):
            continue
        line, header = records[there[first]]
        if not first or line > _MOST_ABOVE:
            return 0
        filled = [collapse(cell) for cell in header if cell.strip()]
        named = (
            len(filled) >= max(2, width - 1)
            and len(set(filled)) == len(filled)
            and not any(shape(item) and not _YEAR(item) for item in filled)
        )
        if not named or any(cell[:1] == " " for cell in header):
            return 0
        above = [records[at][1] for at in there[:first]]
        apart = there[first] > there[first - 1] + 1
        if not apart and not heads_other_kinds([header, *(records[at][1] for at in below)]):
            return 0
        return 0 if _is_table(above) else line
    return 0


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Whether lines above a header are a table of their own, and not names and values: all cells of a
    column are numbers or times below a text, and there are several, or the first column is one.
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
    body = [row for row in rows[1:_MOST_ROWS] if len(row) == len(headers)]
    return any(
        header.strip() and not shape(collapse(header)) and _is_typed(column, header)
        for header, column in zip(headers, zip(*body, strict=True), strict=False)
    )


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


def one_column(text: str, complete: bool, candidates: str) -> bool:
    """Whether a sample is one column of texts: its header has no delimiter, and what could be one below
    it divides no even records.
    """
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


def preamble(text: str, comment: str = "") -> tuple[int, str | None]:
    """How many lines of a text come before its header, and the delimiter that one of them says
    (Excel's `sep=;`).

    >>> [preamble("\\n".join(lines)) for lines in (["sep=;", "a;b"], ["# of 2020", "a,b", "1,2"], ["#,b", '1,"2,3"'])]
    [(1, ';'), (1, None), (0, None)]
    """
    lines = text[: 1 << 16].splitlines()
    at, delimiter = 0, None
    if lines and (said := SEPARATOR(lines[0])):
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
        and any(1 < _fields(lines[first], mark) == _fields(lines[at], mark) for mark in (delimiter or ",;\t|"))
    ):
        # A header that begins with a number sign.
        return first, delimiter
    return at, delimiter


def _fields(line: str, delimiter: str) -> int:
    """How many fields a line has; delimiters within quotes divide nothing."""
    return len((rows_of(line, Layout(delimiter, "excel"), True) or [[]])[0])


def like_data(text: str, complete: bool, layout: Layout) -> bool:
    """Whether the first record has numbers or times as its columns do, and so is no header."""
    rows = rows_of(text[:_HEAD], layout, complete and len(text) <= _HEAD) or []
    if len(rows) < 2:
        return False
    # Years head columns of numbers; the number of another kind does not.
    values = [bool(shape(collapse(header))) for header in rows[0]]
    alike = [value and not _YEAR(header.strip()) for value, header in zip(values, rows[0], strict=True)]
    if not any(alike):
        return False
    columns = zip(*(row for row in rows[1:] if len(row) == len(rows[0])), strict=True)
    typed = [at for at, column in enumerate(columns) if _is_typed(column)]
    return any(alike[at] for at in typed) and all(values[at] for at in typed)


def _is_typed(column: Sequence[str], header: str = "") -> bool:
    """Whether a column is one of numbers or times."""
    profile = Profile()
    profile.add(column)
    return profile.decide(header).kind != "text"


def explained(error: csv.Error, layout: Layout) -> str:
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


def sample_rows(head: bytes, delimiters: str) -> tuple[str, Sequence[Sequence[str]]]:
    """The delimiter and the records of a file's head, for recognition; no records where the head is
    no text of several fields.
    """
    text = head_text(head, damaged=True)
    return _sample(text, len(head) < HEAD_BYTES, delimiters) if text and text.strip() else (delimiters[0], [])


# Several formats look at the same head.
@lru_cache(maxsize=4)
def _sample(text: str, complete: bool, delimiters: str) -> tuple[str, Sequence[Sequence[str]]]:
    skipped, said = preamble(text.lstrip("\ufeff"))
    if skipped:
        text = "".join(text.splitlines(keepends=True)[skipped:])
    delimiter, rows = _rows(text, complete, said or delimiters)
    uneven = not rows or not fits(rows) or not rows[0][-1].strip()
    if uneven and (above := above_header(text, complete, said or delimiters)):
        return _rows(without_lines(text, above), complete, said or delimiters)
    return delimiter, rows


def _rows(text: str, complete: bool, delimiters: str) -> tuple[str, list[list[str]]]:
    delimiter = find_delimiter(text, complete, delimiters)
    return delimiter, rows_of(text, find_dialect(text, complete, delimiter), complete) or []


def padded(row: Sequence[str], width: int) -> list[str]:
    """A record that lacks its last fields, or has blank ones too many, with as many as it should
    have; any other as it is.
    """
    if len(row) < width:
        return [*row, *[""] * (width - len(row))]
    return list(row if any(map(str.strip, row[width:])) else row[:width])


def fits(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all records have as many fields as the first."""
    return all(len(row) == len(rows[0]) for row in rows)


#: Files that may have text above and below a Markdown table.
_PROSE: Final = (".md", ".markdown", ".txt")
_DASHES: Final = re.compile(r":?-+:?").fullmatch


def markdown_header(text: str, path: Path) -> int | None:
    """The line, from 0, of the header of the first Markdown table of a text; None where it has none.

    The next line is one of dashes, with as many cells. Only files of prose may have lines above, and
    an empty line or a heading stands between.

    >>> markdown_header("# Peaks\\n| a | b |\\n|---|:-:|\\n| 1 | 2 |\\n", Path("peaks.md"))
    1
    """
    before, header = "", ""
    for at, line in enumerate(io.StringIO(text, newline="")):
        if "|" in header and "-" in line and not set(line) - set("|:- \t\r\n") and "|" in line:
            dashes = markdown_cells(line)
            apart = at == 1 or not before.strip() or before.startswith("#")
            if all(map(_DASHES, dashes)) and len(dashes) == len(markdown_cells(header)) and apart:
                return at - 1
        if at == 1 and suffix_of(path) not in _PROSE:
            return None
        before, header = header, line
    return None


def markdown_cells(line: str) -> list[str]:
    """The cells of a row of a Markdown table.

    >>> markdown_cells("| a \\\\| b | | c |")
    ['a | b', '', 'c']
    """
    cells = [cell.replace("\\|", "|").strip() for cell in _UNESCAPED(line.strip())]
    first, last = not cells[0], len(cells) > 1 and not cells[-1]
    return cells[first : len(cells) - last] or [""]


_UNESCAPED: Final = re.compile(r"(?<!\\)\|").split


class MarkdownRows:
    """The records of a Markdown table from its header on, as `csv.reader` has them. The table ends at
    the first line without a pipe; `left` counts the lines below it that are not blank, and `first`
    has some of them.
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
_MOST: Final = 500
#: What programs call columns.
_IDENTIFIER: Final = re.compile(r"[^\W\d][\w.-]*").fullmatch


def sniff_csv(path: Path, head: bytes) -> int:
    """How much a file looks like a table with other marks than tabs between its fields, or is
    called .csv: 0 to 70; 85 where it has a Markdown table.
    """
    suffix = suffix_of(path)
    text = (head_text(head, damaged=True) or "").lstrip("\ufeff")
    if "|" in text and markdown_header(text, path) is not None:
        return 85
    delimiter, rows = sample_rows(head, "\t" if suffix in _TABS else ",;\t|")
    if delimiter == "\t" and suffix != ".csv":
        return 0
    return _likeness(head, rows, suffix in _NAMED)


def sniff_tsv(path: Path, head: bytes) -> int:
    """How much a file looks like a table with tabs between its fields: 0 to 70."""
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
        # JSON, XML, N-Triples, Turtle: lines of those may have even numbers of commas.
        return 5 if named else 0
    width = len(rows[0])
    if width < 2:
        # One column, whose texts may hold any mark.
        return 40 if named else 0
    programs = all(map(_IDENTIFIER, rows[0]))
    if len(rows) == 1 and not named and not programs:
        return 0
    if named or (width > 2 and programs):
        rows = [padded(row, width) for row in rows]
    even = evenness(rows) >= 0.95
    headed = has_header(rows)
    if not even:
        # A name that says so is believed last, so that the error is about the record that is bad.
        return (40 if headed and evenness(rows) > 0.5 else 15) if named else 0
    if not headed:
        return 0 if not named else 25 if width == 3 else 40
    return 45 if not named else 60 if width < 4 else 70


def is_page(head: bytes) -> bool:
    """Whether a file is a page of HTML, as servers send in place of data."""
    return head.lstrip(b"\xef\xbb\xbf \r\n\t")[:14].lower().startswith((b"<!doctype html", b"<html"))


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first record names columns: texts that are all there and different, above cells
    that are of another kind.

    Where all columns are texts, the names must not come again as cells.
    """
    headers = [collapse(cell) for cell in rows[0]]
    named = [header for header in headers if header]
    if not named or len(set(named)) * 2 < len(headers):
        return False
    body = [row for row in rows[1:_MOST] if len(row) == len(headers)]
    if not body:
        return not any(map(shape, named))
    typed = again = False
    for header, column in zip(headers, zip(*body, strict=True), strict=True):
        if _is_typed(column, header):
            if not shape(header):
                return True
            # A table may have years or numbers for some headers, but not over every column of numbers.
            typed = True
        elif header and header in map(collapse, column):
            again = True
    return not typed and not again and (len(body) > 1 or _heads_one(headers, body[0]))


def _heads_one(headers: Sequence[str], row: Sequence[str]) -> bool:
    """Whether the names of columns stand above a single row of texts. Three columns may be a fact
    above another.
    """
    if not all(map(_IDENTIFIER, headers)):
        return False
    like = all(_IDENTIFIER(cell) and cell.islower() for cell in row)
    return len(headers) != 3 or ("".join(headers).islower() and not like)
