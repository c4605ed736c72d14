"""A workbook of Excel or OpenDocument: each sheet is a table, with keys between them as in a folder
(`folder.items`).

The library is calamine, which reads .xlsx, .xlsm, .xlsb, .xls and .ods, and gives dates as dates.
It gives what a formula was when the workbook was saved; formulas that were never computed, and
cells that hold an error, are counted and said.
"""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, MissingExtraError, nearest, numbered
from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.files import MOST_GROWTH, MOST_UNPACKED, file_errors, path_of, regular, suffix_of
from condgraph.loaders.folder.declared import JOIN_OPTIONS
from condgraph.loaders.folder.items import by_name, declared_of, read_tables
from condgraph.loaders.folder.tab import Cells, OpenCells, Tab
from condgraph.loaders.spreadsheet.sheet import SheetCells, side_by_side
from condgraph.loaders.table.options import texts_option, truth_option

SUFFIXES: Final = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".xltx", ".xltm")
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OPTIONS: Final[Mapping[str, str]] = {
    "sheets": "the sheets to load (default: all)",
    "split": "whether blank columns divide a sheet into tables (default: where their rows or headers say so)",
    **JOIN_OPTIONS,
}
#: Formulas without a value, and errors, in the XML of a sheet.
_EMPTY: Final = re.compile(rb"</f>(?:<v ?/>|<v></v>)?</c>|<f(?: [^<>]*)?/>(?:<v ?/>|<v></v>)?</c>")
_ERROR: Final = re.compile(rb'<c (?=[^<>]{0,200}t="e")')
_SHEET: Final = re.compile(r"xl/worksheets/[^/]+\.xml").fullmatch


#: What reading a damaged archive raises.
_BROKEN: Final = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError, EOFError,
    OSError,
)  # fmt: skip


def _warnings(path: Path, reading: Reading) -> None:
    """Say what the library does not: formulas without a value, and errors."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(one.file_size for one in packed.infolist())
            if size > MOST_UNPACKED and size > MOST_GROWTH * path.stat().st_size:
                raise LoadError(
                    f"the file unpacks to more than {MOST_GROWTH} times its size, and more than {MOST_UNPACKED >> 20} MiB",
                    file=str(path),
                )
            empty = errors = 0
            for one in packed.infolist():
                if _SHEET(one.filename):
                    check()
                    data = packed.read(one)
                    empty += len(_EMPTY.findall(data))
                    errors += len(_ERROR.findall(data))
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


def tabs_of(path: Path, reading: Reading, options: Options) -> dict[str, Tab]:
    """The sheets of a workbook that hold something, opened."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise MissingExtraError("python-calamine", "excel") from None
    with file_errors(path):
        regular(path).open("rb").close()
    _warnings(path, reading)
    tabs: list[Tab] = []
    # Its errors have several bases, and a panic of its Rust is none of them.
    try:
        with calamine.CalamineWorkbook.from_path(str(path)) as book:
            about = {one.name: one for one in book.sheets_metadata}
            wanted = texts_option(options, "sheets")
            for name in wanted:
                if name not in about:
                    raise LoadError(f"the workbook has no sheet {name!r}", file=str(path), candidates=nearest(name, about))
            for name in wanted or about:
                check()
                if about[name].typ != calamine.SheetTypeEnum.WorkSheet:
                    reading.warn(f"{name!r} is no sheet of cells and is left out")
                    continue
                sheet = book.get_sheet_by_name(name)
                grid = sheet.to_python(skip_empty_area=False)
                if not any(cell != "" for row in grid for cell in row):
                    reading.warn(f"the sheet {name!r} is empty and is left out")
                    continue
                if about[name].visible != calamine.SheetVisibleEnum.Visible:
                    reading.warn(f"the sheet {name!r} is hidden, and is loaded as the others (sheets= says which to load)")
                merged = sheet.merged_cell_ranges or ()
                for called, part in _parts(name, grid, merged, truth_option(options, "split"), about, reading):
                    tabs.append(Tab(called, str(path), "excel", reading, part))
    except (calamine.CalamineError, OSError, ValueError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"the workbook cannot be read ({error})", file=str(path)) from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise LoadError(f"the workbook cannot be read ({error})", file=str(path)) from None
        raise
    if not tabs:
        raise LoadError("the workbook holds no cells", file=str(path))
    return by_name(tabs)


def _parts(
    name: str, grid: Any, merged: Any, split: bool | None, sheets: Collection[str], reading: Reading
) -> Iterator[tuple[str, OpenCells]]:
    """The tables of a sheet, the first called like it."""
    spans, sure = side_by_side(grid, merged)
    if len(spans) < 2 or split is False or not (sure or split):
        if len(spans) > 1 and split is None:
            reading.warn(f"blank columns divide the sheet {name!r}, which is read as one table (split=true makes several)")
        yield name, partial(_cells, grid, merged)
        return
    names = [name]
    numbers = count(2)
    while len(names) < len(spans):
        called = f"{name} ({next(numbers)})"
        if called not in sheets:
            names.append(called)
    told = ", ".join(map(repr, names))
    reading.warn(f"blank columns divide the sheet {name!r}, which is read as {len(spans)} tables: {told} (split=false makes one)")
    for called, (begin, end) in zip(names, spans, strict=True):
        inside = [((top, left - begin), (bottom, right - begin)) for (top, left), (bottom, right) in merged if begin <= left < end]
        yield called, partial(_cells, [row[begin:end] for row in grid], inside, part=True)


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
)
