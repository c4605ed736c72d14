"""A workbook of Excel or OpenDocument: each sheet is a table, with keys between them as in a folder
(`folder.items`).

The library is calamine, which reads .xlsx, .xlsm, .xlsb, .xls and .ods, and gives dates as dates. It
runs in a process of its own (`reader`), with a limit of memory, unless a workbook is small in all that
it says of itself.
It gives what a formula was when the workbook was saved; formulas that were never computed, and
cells that hold an error, are counted and said.
"""

from __future__ import annotations

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
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Final

from condgraph.engine.bounds import LOOK, check, current
from condgraph.engine.errors import LoadError, MissingExtraError, nearest, numbered
from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.files import MOST_GROWTH, MOST_UNPACKED, file_errors, path_of, regular, suffix_of
from condgraph.loaders.folder.declared import JOIN_OPTIONS
from condgraph.loaders.folder.items import by_name, declared_of, read_tables
from condgraph.loaders.folder.tab import Cells, OpenCells, Tab
from condgraph.loaders.spreadsheet import reader
from condgraph.loaders.spreadsheet.reader import NO_MEMORY, Part, parts, read_part
from condgraph.loaders.spreadsheet.sheet import SheetCells, side_by_side
from condgraph.loaders.table.rows import texts_option, truth_option

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
#: A number of parts from 100,000 on, or one that is no plain number.
_DECLARED: Final = re.compile(rb"""ount\s*=\s*["'][^"']*?(?:\d{6}|[^\d"'])""")
#: How XML in UTF-16 begins.
_WIDE_TEXT: Final = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
#: Cells and rows of a sheet that are not written as a program writes them that lie in rows up to 99,999 and columns
#: up to ZZ; a column behind Z; a row from 10,000 on.
_ODD_CELL: Final = re.compile(rb'<c(?![A-Za-z])(?! r="[A-Z]{1,2}\d{1,5}")').search
_ODD_ROW: Final = re.compile(rb'<row(?! r="\d{1,5}")').search
_WIDE: Final = re.compile(rb'<c r="[A-Z]{2}').search
_TALL: Final = re.compile(rb'<c r="[A-Z]+\d{5}').search
#: Bytes of a workbook, unpacked, that may be read in this process, where nothing in it is far or many.
_SMALL: Final = 64 << 20
#: What a process has that reads any other: bytes of memory and seconds of the processor, more for each byte.
_MEMORY: Final = 1 << 30
_MEMORY_A_BYTE: Final = 30
_SECONDS: Final = 30
_BYTES_A_SECOND: Final = 1 << 20
#: How such a process ends that takes more time, or memory. Windows has neither limit.
_OUT_OF_TIME: Final = (-getattr(signal, "SIGXCPU", 24), -9)
_OUT_OF_MEMORY: Final = (-signal.SIGABRT, NO_MEMORY)


#: What reading a damaged archive raises.
_BROKEN: Final = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError, EOFError,
    OSError,
)  # fmt: skip


def _looked_through(path: Path, reading: Reading) -> tuple[int, bool]:
    """Say what the library does not: formulas without a value, and errors. The bytes of the workbook, unpacked; and
    whether it is small in all that it says of itself, so that calamine may read it here.
    """
    if not zipfile.is_zipfile(path):
        return path.stat().st_size, False
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(one.file_size for one in packed.infolist())
            if size > MOST_UNPACKED and size > MOST_GROWTH * path.stat().st_size:
                raise LoadError(
                    f"the file unpacks to more than {MOST_GROWTH} times its size, and more than {MOST_UNPACKED >> 20} MiB",
                    file=str(path),
                )
            empty = errors = 0
            names = packed.namelist()
            small = size <= _SMALL and "xl/workbook.xml" in names and not any(name.endswith(".bin") for name in names)
            for one in packed.infolist():
                sheet = _SHEET(one.filename)
                if not sheet and not small:
                    continue
                check()
                data = packed.read(one)
                if sheet:
                    empty += len(_EMPTY.findall(data))
                    errors += len(_ERROR.findall(data))
                # A sheet may be kept in any member, whatever it is called.
                plain = not _far(data) if sheet else b"heetData" not in data
                small = small and plain and data[:2] not in _WIDE_TEXT and _DECLARED.search(data) is None
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
    return size, small


def _far(data: bytes) -> bool:
    """Whether cells of a sheet may lie so far apart that what is between them takes much memory: more than some
    million cells in all.
    """
    if b":c" in data or b":row" in data or _ODD_ROW(data) or _ODD_CELL(data):
        return True
    return _WIDE(data) is not None and _TALL(data) is not None


def tabs_of(path: Path, reading: Reading, options: Options) -> dict[str, Tab]:
    """The sheets of a workbook that hold something, opened."""
    if find_spec("python_calamine") is None:
        raise MissingExtraError("python-calamine", "excel")
    with file_errors(path):
        regular(path).open("rb").close()
    size, small = _looked_through(path, reading)
    wanted = texts_option(options, "sheets")
    about: dict[str, tuple[bool, bool]] = {}
    found: dict[str, tuple[list[Any], list[Any]]] = {}
    grid: list[Any] = []
    with closing(parts(str(path), wanted) if small or not sys.executable else _parts_apart(path, wanted, size)) as read:
        for kind, *what in read:
            check()
            if kind == "sheets":
                about = {name: (cells, shown) for name, cells, shown in what[0]}
                for name in wanted:
                    if name not in about:
                        raise LoadError(f"the workbook has no sheet {name!r}", file=str(path), candidates=nearest(name, about))
            elif kind == "sheet":
                grid = []
                found[what[0]] = grid, what[1]
            elif kind == "rows":
                grid.extend(what[0])
            elif kind == "error":
                raise LoadError(f"the workbook cannot be read ({what[0]})", file=str(path))
    tabs: list[Tab] = []
    for name in wanted or about:
        cells, shown = about[name]
        if not cells:
            reading.warn(f"{name!r} is no sheet of cells and is left out")
            continue
        grid, merged = found[name]
        if not any(cell != "" for row in grid for cell in row):
            reading.warn(f"the sheet {name!r} is empty and is left out")
            continue
        if not shown:
            reading.warn(f"the sheet {name!r} is hidden, and is loaded as the others (sheets= says which to load)")
        for called, part in _tables(name, grid, merged, truth_option(options, "split"), about, reading):
            tabs.append(Tab(called, str(path), "excel", reading, part))
    if not tabs:
        raise LoadError("the workbook holds no cells", file=str(path))
    return by_name(tabs)


def _parts_apart(path: Path, wanted: Sequence[str], size: int) -> Generator[Part, None, None]:
    """The parts of a workbook, read by a process of its own that has so much memory and time as a workbook of this
    size (bytes, unpacked) may need.
    """
    memory, seconds = _MEMORY + _MEMORY_A_BYTE * size, _SECONDS + size // _BYTES_A_SECOND
    command = [sys.executable, "-I", "-S", reader.__file__, json.dumps(sys.path), str(path), json.dumps([*wanted])]
    try:
        started = subprocess.Popen(
            [*command, str(memory), str(seconds)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise LoadError(f"the reader of workbooks cannot be started ({error})", file=str(path)) from None
    with started as child:
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
            hint="a cell lies far from the others, or the workbook says that it holds more than it does: a spreadsheet program "
            "saves it as CSV",
        )  # fmt: skip
    raise LoadError(f"the workbook cannot be read (its reader ended with status {child.returncode})", file=str(path))


class _Pipe(io.RawIOBase):
    """What a process writes, with a look at the clock while it writes nothing."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while os.name == "posix" and current() is not None and not select.select([self._handle], [], [], LOOK)[0]:
            check()
        data = os.read(self._handle, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _tables(
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
