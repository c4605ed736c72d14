"""Loader of workbooks of Excel or OpenDocument: each sheet is a table, with keys as in a folder of tables.

calamine reads .xlsx, .xlsm, .xlsb, .xls and .ods, and returns dates as dates. It runs in a separate
process (`spreadsheet_reader`) with a memory limit, unless a workbook declares itself small in every
way. A formula has the value it had when the workbook was saved; formulas that were never computed, and
cells with an error, are counted and reported.

The header of a sheet is its first row that is not blank. If the sheet has several columns, rows above
the first one with two cells are a title, and skipped with a warning. A header cell that is merged over
several columns applies to each of them ("2020 sales", "2020 profit", with the row below it), and so
does a merged cell of the body to each row and column. Columns without header and cells, and blank rows,
are ignored.
"""

from __future__ import annotations

import html
import io
import json
import lzma
import os
import re
import select
import signal
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import count, groupby, pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

from condgraph.engine.bounds import POLL, check, current
from condgraph.engine.errors import LoadError, MissingExtraError, nearest, numbered
from condgraph.engine.facts import Item
from condgraph.engine.values import collapse
from condgraph.loaders import spreadsheet_reader
from condgraph.loaders.base import Format, Options, Reading, option_bool, option_texts
from condgraph.loaders.files import MAX_GROWTH, MAX_UNPACKED, file_errors, path_of, regular, suffix_of
from condgraph.loaders.folder.declared import JOIN_OPTIONS
from condgraph.loaders.folder.items import by_name, declared_of, read_tables
from condgraph.loaders.folder.tab import Cells, OpenCells, Tab, cell_text
from condgraph.loaders.spreadsheet_reader import NO_MEMORY, Part, parts, read_part
from condgraph.loaders.table.text import Chunk, is_total

#: The first and last cell of a merged range, as (row, column), from 0.
Range: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
#: The most rows of a header.
_HEADERS: Final = 5
_ROWS: Final = 5_000
#: The most rows or columns that a warning names.
_LISTED: Final = 10
#: The most cells that merged ranges may cover.
_MAX_MERGED: Final = 2_000_000


def side_by_side(grid: Sequence[Sequence[Any]], merged: Sequence[Range]) -> tuple[list[tuple[int, int]], bool]:
    """Return the columns (from, to) of tables that are next to each other in a sheet, and whether it is certain.

    Blank columns separate the tables; a table has at least two columns, and no gap between its rows. It
    is certain if the tables end in different rows or have equal headers; otherwise a blank column may be a
    gap within one table.
    """
    width = max(map(len, grid), default=0)
    filled = [any(at < len(row) and str(row[at]).strip() for row in grid) for at in range(width)]
    column_groups = [
        [at for at, _ in group] for is_filled, group in groupby(enumerate(filled), key=lambda item: item[1]) if is_filled
    ]
    spans = [(part[0], part[-1] + 1) for part in column_groups]
    merged_across = any(left < begin <= right for (_, left), (_, right) in merged for begin, _ in spans)
    if len(spans) < 2 or merged_across or any(end - begin < 2 for begin, end in spans):
        return [(0, width)], False
    rows: list[list[int]] = []
    headers: list[tuple[str, ...]] = []
    for begin, end in spans:
        texts = [[str(cell).strip() for cell in row[begin:end]] for row in grid]
        table_rows = [at for at, row in enumerate(texts) if sum(map(bool, row)) > 1 and not any(map(is_total, row))]
        if not table_rows or table_rows[-1] - table_rows[0] + 1 != len(table_rows):
            return [(0, width)], False
        rows.append(table_rows)
        headers.append(tuple(texts[table_rows[0]]))
    return spans, any(row != rows[0] for row in rows) or len(set(headers)) == 1


class SheetCells:
    """A sheet in memory; `grid` are its rows, from the first row and column of the sheet.

    `part` marks one of several tables in a sheet, whose header has at least two cells.
    """

    def __init__(self, grid: Sequence[Sequence[Any]], merged: Sequence[Range], reading: Reading, *, part: bool = False) -> None:
        rows = [list(map(cell_text, row)) for row in grid]
        width = max(map(len, rows), default=0)
        for row in rows:
            row.extend([""] * (width - len(row)))
        first = self._begin(rows, reading, 1 if part else 2)
        last = (
            first
            + 1
            + max(
                (to[0] - at[0] for at, to in merged if at[0] == first and (to[0] > at[0])),
                default=1 if any(at[0] == to[0] == first and to[1] > at[1] for at, to in merged) else 0,
            )
        )
        last = min(last, first + _HEADERS, len(rows))
        filled = self._fill(rows, merged, last)
        if filled:
            cells = numbered(filled, "merged cell of the body is repeated", "merged cells of the body are repeated")
            reading.warn(f"{cells} in every row and column covered")
        headers = [_header([row[at] for row in rows[first:last]]) for at in range(width)]
        body_rows = [at for at in range(last, len(rows)) if any(map(str.strip, rows[at]))]
        body = [rows[at] for at in body_rows]
        after_gap = next((after for before, after in pairwise(body_rows) if after > before + 1), None)
        if after_gap is not None:
            reading.warn(
                f"blank rows divide the sheet: what follows from row {after_gap + 1} on is loaded as rows of the same table; "
                "move another table, or notes, to its own sheet"
            )
        columns = [at for at in range(width) if headers[at] or any(row[at].strip() for row in body)]
        self.headers = [headers[at] for at in columns]
        self.body = [[row[at] for at in columns] for row in body]

    def _begin(self, rows: Sequence[Sequence[str]], reading: Reading, narrow: int) -> int:
        """Return the row of the header; a table of more than `narrow` columns may have a title above it."""
        counts = [sum(bool(cell.strip()) for cell in row) for row in rows]
        first = next(at for at, count in enumerate(counts) if count)
        if counts[first] == 1 and max(counts) > narrow:
            wide = next(at for at, count in enumerate(counts) if count > 1)
            title = [cell.strip() for row in rows[first:wide] for cell in row if cell.strip()]
            reading.warn(f"the text above the header is left out: {'; '.join(title)[:200]}")
            return wide
        return first

    def _fill(self, rows: list[list[str]], merged: Sequence[Range], header: int) -> int:
        """Write merged cells into every cell they cover; returns how many ranges are in the body."""
        covered = body_ranges = 0
        for (top, left), (bottom, right) in merged:
            if top >= len(rows) or left >= len(rows[0]) or not rows[top][left].strip():
                continue
            bottom, right = min(bottom, len(rows) - 1), min(right, len(rows[0]) - 1)
            covered += (bottom - top + 1) * (right - left + 1)
            if covered > _MAX_MERGED:
                raise LoadError(f"merged cells cover more than {_MAX_MERGED:,}")
            body_ranges += top >= header
            for at in range(top, bottom + 1):
                rows[at][left : right + 1] = [rows[top][left]] * (right - left + 1)
        return body_ranges

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """Yield the rows, some thousands at a time."""
        for at in range(0, len(self.body), _ROWS):
            rows = self.body[at : at + _ROWS]
            yield Chunk(range(at + 1, at + 1 + len(rows)), list(zip(*rows, strict=True))), (at + len(rows)) / len(self.body)


def _header(cells: Sequence[str]) -> str:
    """Join the rows of a header to one text, without repetitions."""
    return " ".join(dict.fromkeys(text for cell in cells if (text := collapse(cell))))


SUFFIXES: Final = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".xltx", ".xltm")
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OPTIONS: Final[Mapping[str, str]] = {
    "sheets": "the sheets to load (default: all)",
    "split": "whether blank columns divide a sheet into tables (default: where their rows or headers say so)",
    **JOIN_OPTIONS,
}
#: Formulas without a value, and cells with an error, in the XML of a sheet.
_EMPTY: Final = re.compile(rb"</f>(?:<v ?/>|<v></v>)?</c>|<f(?: [^<>]*)?/>(?:<v ?/>|<v></v>)?</c>")
_ERROR: Final = re.compile(rb'<c (?=[^<>]{0,200}t="e")')
_SHEET: Final = re.compile(r"xl/worksheets/[^/]+\.xml").fullmatch
#: In .xlsx: the names of sheets and their files; formats of numbers and of cells; hidden rows and columns.
_NAMED: Final = re.compile(rb"""<(?:\w+:)?sheet (?=[^<>]*?\bname="([^"<>]*)")(?=[^<>]*?\b\w+:id="([^"<>]*)")""")
_FILES: Final = re.compile(rb"""<Relationship (?=[^<>]*?\bTarget="(?:/?xl/)?([^"<>]*)")(?=[^<>]*?\bId="([^"<>]*)")""")
_NUMBERS: Final = re.compile(rb"""<numFmt (?=[^<>]*?\bnumFmtId="(\d{1,9})")(?=[^<>]*?\bformatCode="([^"<>]*)")""")
_LITERAL: Final = re.compile(rb"\\.|&quot;[^&]*&quot;|_.")
_CELL_FORMAT: Final = re.compile(rb"""<xf (?=[^<>]*?\bnumFmtId="(\d{1,9})")""")
_NUMBER_CELL: Final = re.compile(rb'<c r="([A-Z]{1,3})\d{1,7}"(?=[^<>]*? s="(\d{1,9})")(?![^<>]*? t="[^n])[^<>]*(?<!/)>')
_HIDDEN_ROW: Final = re.compile(rb'<row (?=[^<>]*?\bhidden="(?:1|true)")[^<>]*?\br="(\d{1,7})"')
_HIDDEN_COLUMN: Final = re.compile(
    rb'<col (?=[^<>]*?\bhidden="(?:1|true)")(?=[^<>]*?\bmin="(\d{1,5})")(?=[^<>]*?\bmax="(\d{1,5})")'
)
#: In .ods: the beginning of a sheet; a percentage; a hidden row or column.
_SHEET_BEGIN: Final = re.compile(rb'<table:table (?=[^<>]*?\btable:name="([^"<>]*)")')
_PERCENTAGE: Final = re.compile(rb'office:value-type="percentage"')
_COLLAPSED: Final = re.compile(rb'<table:table-(row|column) (?=[^<>]*?\btable:visibility="(?:collapse|filter)")')
#: A declared count of at least 100,000, or one that is not a plain number.
_DECLARED: Final = re.compile(rb"""ount\s*=\s*["'][^"']*?(?:\d{6}|[^\d"'])""")
#: First bytes of XML in UTF-16.
_WIDE_TEXT: Final = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
#: Cells and rows that are not in the usual form with rows up to 99,999 and columns up to ZZ; a column beyond Z; a row
#: from 10,000 on.
_ODD_CELL: Final = re.compile(rb'<c(?![A-Za-z])(?! r="[A-Z]{1,2}\d{1,5}")').search
_ODD_ROW: Final = re.compile(rb'<row(?! r="\d{1,5}")').search
_WIDE: Final = re.compile(rb'<c r="[A-Z]{2}').search
_TALL: Final = re.compile(rb'<c r="[A-Z]+\d{5}').search
#: The most unpacked bytes of a workbook that is read in this process, if no cell is far away and no count is large.
_SMALL: Final = 64 << 20
#: Limits of the process that reads other workbooks: bytes of memory and seconds of processor time, plus more per byte.
_MEMORY: Final = 1 << 30
_MEMORY_A_BYTE: Final = 30
_SECONDS: Final = 30
_BYTES_A_SECOND: Final = 1 << 20
#: Exit statuses of that process when it exceeds its time or memory. Windows has neither limit.
_OUT_OF_TIME: Final = (-getattr(signal, "SIGXCPU", 24), -9)
_OUT_OF_MEMORY: Final = (-signal.SIGABRT, NO_MEMORY)


#: Exceptions raised by reading a damaged archive.
_BROKEN: Final = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError, EOFError,
    OSError,
)  # fmt: skip


@dataclass(slots=True)
class Shown:
    """How a sheet is shown: its hidden rows and columns (numbers from 1), and columns with percentages and their cells.

    A sheet of OpenDocument has counts alone, with 0 as the number.
    """

    rows: list[int] = field(default_factory=list)
    columns: list[range] = field(default_factory=list)
    percent: Counter[str] = field(default_factory=Counter)

    def warn(self, name: str, height: int, width: int, reading: Reading) -> None:
        """Report what differs from what is loaded, of a sheet with so many rows and columns."""
        rows = [str(at) for at in self.rows if at <= height]
        columns = [_letters(at) for span in self.columns for at in range(span.start, min(span.stop, width + 1))]
        hidden = [text for text in (_some("row", rows), _some("column", columns)) if text]
        if hidden:
            reading.warn(f"the sheet {name!r} has hidden {' and '.join(hidden)}, which are loaded like the others")
        if self.percent:
            where = f" in {_some('column', sorted(self.percent))}" if any(self.percent) else ""
            reading.warn(f"percentages{where} of the sheet {name!r} are loaded as the workbook stores them, 25 % as 0.25")


def _some(noun: str, names: Sequence[str]) -> str:
    """Return a few names after their noun, or the number of them if they are unknown; "" for none."""
    if not names or names[0] in ("", "0"):
        return numbered(len(names), noun, noun + "s") if names else ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{noun}{'s' * (len(names) > 1)} {', '.join(names[:_LISTED])}{more}"


def _letters(column: int) -> str:
    """Return the letters of a column, which is a number from 1.

    >>> [_letters(at) for at in (1, 26, 27, 702, 703)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    letters = ""
    while column:
        column, at = divmod(column - 1, 26)
        letters = chr(65 + at) + letters
    return letters


def _percent_formats(styles: bytes) -> frozenset[bytes]:
    """Return the numbers of the cell formats that show percentages."""
    shown = {b"9", b"10"} | {number for number, code in _NUMBERS.findall(styles) if b"%" in _LITERAL.sub(b"", code)}
    formats = styles.partition(b"<cellXfs")[2].partition(b"</cellXfs>")[0]
    return frozenset(b"%d" % at for at, number in enumerate(_CELL_FORMAT.findall(formats)) if number in shown)


def _shown(sheet: bytes, percent: frozenset[bytes]) -> Shown:
    """Return how a sheet of .xlsx is shown."""
    result = Shown()
    if b"hidden=" in sheet:
        result.rows = [*map(int, _HIDDEN_ROW.findall(sheet))]
        result.columns = [range(int(first), int(last) + 1) for first, last in _HIDDEN_COLUMN.findall(sheet)]
    if percent:
        result.percent = Counter(column.decode() for column, style in _NUMBER_CELL.findall(sheet) if style in percent)
    return result


def _shown_by_name(content: bytes) -> dict[str, Shown]:
    """Return how the sheets of .ods are shown."""
    result: dict[str, Shown] = {}
    begins = [*_SHEET_BEGIN.finditer(content)]
    for begin, end in zip(begins, [item.start() for item in begins[1:]] + [len(content)], strict=True):
        hidden = Counter(_COLLAPSED.findall(content, begin.end(), end))
        shown = Shown([0] * hidden[b"row"], [range(1)] * hidden[b"column"])
        if percentages := len(_PERCENTAGE.findall(content, begin.end(), end)):
            shown.percent[""] = percentages
        result[html.unescape(begin[1].decode(errors="replace"))] = shown
    return result


def _looked_through(path: Path, reading: Reading) -> tuple[int, bool, dict[str, Shown]]:
    """Warn of formulas without a value and of errors, which calamine does not report.

    Returns the unpacked size in bytes, whether the workbook is small enough to be read in this process, and how its
    sheets are shown.
    """
    shown: dict[str, Shown] = {}
    if not zipfile.is_zipfile(path):
        return path.stat().st_size, False, shown
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(item.file_size for item in packed.infolist())
            if size > MAX_UNPACKED and size > MAX_GROWTH * path.stat().st_size:
                raise LoadError(
                    f"the file unpacks to more than {MAX_GROWTH} times its size, and more than {MAX_UNPACKED >> 20} MiB",
                    file=str(path),
                )
            empty = errors = 0
            names = packed.namelist()
            small = size <= _SMALL and "xl/workbook.xml" in names and not any(name.endswith(".bin") for name in names)
            if "content.xml" in names:
                shown = _shown_by_name(packed.read("content.xml"))
            percent = _percent_formats(packed.read("xl/styles.xml")) if "xl/styles.xml" in names else frozenset()
            by_file: dict[str, Shown] = {}
            for item in packed.infolist():
                sheet = _SHEET(item.filename)
                if not sheet and not small:
                    continue
                check()
                data = packed.read(item)
                if sheet:
                    empty += len(_EMPTY.findall(data))
                    errors += len(_ERROR.findall(data))
                    by_file[item.filename.removeprefix("xl/")] = _shown(data, percent)
                # A sheet may be in any member, whatever its name.
                is_near = not _far(data) if sheet else b"heetData" not in data
                small = small and is_near and data[:2] not in _WIDE_TEXT and _DECLARED.search(data) is None
            if by_file and {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= {*names}:
                targets = packed.read("xl/_rels/workbook.xml.rels")
                files = {ident: target.decode(errors="replace") for target, ident in _FILES.findall(targets)}
                for sheet_name, ident in _NAMED.findall(packed.read("xl/workbook.xml")):
                    shown[html.unescape(sheet_name.decode(errors="replace"))] = by_file.get(files.get(ident, ""), Shown())
    except _BROKEN as error:
        raise LoadError(f"the workbook cannot be unpacked ({error})", file=str(path)) from None
    if empty:
        reading.warn(
            f"{numbered(empty, 'formula has no value and is', 'formulas have no value and are')} missing; "
            "a spreadsheet program computes formulas when it saves the workbook"
        )
    if errors:
        cells = numbered(errors, "cell holds an error", "cells hold an error")
        reading.warn(f"{cells}, such as #N/A or #REF!, and {'is' if errors == 1 else 'are'} missing")
    return size, small, shown


def _far(data: bytes) -> bool:
    """Whether cells may be so far apart that the range between them is large: more than some million cells."""
    if b":c" in data or b":row" in data or _ODD_ROW(data) or _ODD_CELL(data):
        return True
    return _WIDE(data) is not None and _TALL(data) is not None


def tabs_of(path: Path, reading: Reading, options: Options) -> dict[str, Tab]:
    """Return the sheets of a workbook that have cells."""
    if find_spec("python_calamine") is None:
        raise MissingExtraError("python-calamine", "excel")
    with file_errors(path):
        regular(path).open("rb").close()
    size, small, shown_as = _looked_through(path, reading)
    selected = option_texts(options, "sheets")
    sheets: dict[str, tuple[bool, bool]] = {}
    grids: dict[str, tuple[list[Any], list[Any]]] = {}
    grid: list[Any] = []
    with closing(parts(str(path), selected) if small or not sys.executable else _parts_apart(path, selected, size)) as read:
        for kind, *content in read:
            check()
            if kind == "sheets":
                sheets = {name: (cells, shown) for name, cells, shown in content[0]}
                for name in selected:
                    if name not in sheets:
                        raise LoadError(f"the workbook has no sheet {name!r}", file=str(path), candidates=nearest(name, sheets))
            elif kind == "sheet":
                grid = []
                grids[content[0]] = grid, content[1]
            elif kind == "rows":
                grid.extend(content[0])
            elif kind == "error":
                raise LoadError(f"the workbook cannot be read ({content[0]})", file=str(path))
    tabs: list[Tab] = []
    for name in selected or sheets:
        cells, shown = sheets[name]
        if not cells:
            reading.warn(f"{name!r} is not a sheet of cells and is left out")
            continue
        grid, merged = grids[name]
        if not any(cell != "" for row in grid for cell in row):
            reading.warn(f"the sheet {name!r} is empty and is left out")
            continue
        if not shown:
            reading.warn(f"the sheet {name!r} is hidden, but is loaded like the others (sheets= selects sheets)")
        if name in shown_as:
            shown_as[name].warn(name, len(grid), max(map(len, grid)), reading)
        for table_name, open_cells in _tables(name, grid, merged, option_bool(options, "split"), sheets, reading):
            tabs.append(Tab(table_name, str(path), "excel", reading, open_cells))
    if not tabs:
        raise LoadError("the workbook holds no cells", file=str(path))
    return by_name(tabs)


def _parts_apart(path: Path, wanted: Sequence[str], size: int) -> Generator[Part, None, None]:
    """Yield the parts of a workbook from a separate process.

    Its limits of memory and time grow with the size of the workbook (bytes, unpacked).
    """
    memory, seconds = _MEMORY + _MEMORY_A_BYTE * size, _SECONDS + size // _BYTES_A_SECOND
    command = [sys.executable, "-I", "-S", spreadsheet_reader.__file__, json.dumps(sys.path), str(path), json.dumps([*wanted])]
    try:
        process = subprocess.Popen(
            [*command, str(memory), str(seconds)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise LoadError(f"the reader of workbooks cannot be started ({error})", file=str(path)) from None
    with process as child:
        try:
            assert child.stdout is not None
            stream = io.BufferedReader(_Pipe(child.stdout.fileno()), 1 << 20)
            while (line := stream.readline()).endswith(b"\n"):
                part = read_part(line)
                yield part
                if part[0] in ("end", "error"):
                    return
            child.wait()
        finally:
            child.kill()
    if child.returncode in _OUT_OF_TIME:
        raise LoadError(f"reading the workbook takes more than {seconds} seconds of processor time", file=str(path))
    if child.returncode in _OUT_OF_MEMORY:
        raise LoadError(
            f"reading the workbook takes more than {memory >> 20} MiB of memory", file=str(path),
            hint="a cell is far from the others, or the workbook declares more than it contains: save it as CSV in a spreadsheet "
            "program",
        )  # fmt: skip
    raise LoadError(f"the workbook cannot be read (its reader ended with status {child.returncode})", file=str(path))


class _Pipe(io.RawIOBase):
    """The output of a process; waiting for it checks the deadline."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while os.name == "posix" and current() is not None and not select.select([self._handle], [], [], POLL)[0]:
            check()
        data = os.read(self._handle, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _tables(
    name: str, grid: Any, merged: Any, split: bool | None, sheets: Collection[str], reading: Reading
) -> Iterator[tuple[str, OpenCells]]:
    """Yield the tables of a sheet; the first has its name."""
    spans, certain = side_by_side(grid, merged)
    if len(spans) < 2 or split is False or not (certain or split):
        if len(spans) > 1 and split is None:
            reading.warn(f"blank columns divide the sheet {name!r}, which is read as one table (split=true makes several)")
        yield name, partial(_cells, grid, merged)
        return
    names = [name]
    numbers = count(2)
    while len(names) < len(spans):
        table_name = f"{name} ({next(numbers)})"
        if table_name not in sheets:
            names.append(table_name)
    listed = ", ".join(map(repr, names))
    reading.warn(f"blank columns divide the sheet {name!r}, which is read as {len(spans)} tables: {listed} (split=false makes one)")
    for table_name, (begin, end) in zip(names, spans, strict=True):
        own_ranges = [
            ((top, left - begin), (bottom, right - begin)) for (top, left), (bottom, right) in merged if begin <= left < end
        ]
        yield table_name, partial(_cells, [row[begin:end] for row in grid], own_ranges, part=True)


def _cells(grid: Any, merged: Any, reading: Reading, *, part: bool = False) -> Cells:
    return SheetCells(grid, merged, reading, part=part)


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    tabs = tabs_of(path_of(source), reading, options)
    yield from read_tables(tabs, declared_of(tabs, options), reading, options)


def _sniff(path: Path, head: bytes) -> int:
    if path.is_dir() or suffix_of(path) not in SUFFIXES:
        return 90 if head.startswith(b"PK\x03\x04") and b"xl/" in head else 0
    return 100 if head.startswith((b"PK\x03\x04", _OLE)) else 0


FORMAT: Final = Format(
    "excel",
    "a workbook of Excel or OpenDocument: each sheet is a table, with keys between them as in a folder",
    _read,
    _OPTIONS,
    _sniff,
    sign=re.compile(b"PK\x03\x04|" + re.escape(_OLE)).match,
)
