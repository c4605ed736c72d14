"""The log of single changes, next to the generations of a graph: one line for each, appended and
synced. The manifest of a generation states how much of the log it contains.

A line is a CRC-32, the number of bytes, and JSON. A last line without its end was never
acknowledged, since its writer was stopped: readers ignore it, and the next writer removes it.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from condgraph.engine.errors import StoreDamagedError, StoreError
from condgraph.engine.snapshot.container import LOST

#: The file, in the folder of the graph.
EDITS: Final = "edits.log"
_HEAD: Final = b"condgraph edits 1\n"


class Tail(NamedTuple):
    """The records after a place in a log, where the last of them ends, and the bytes after that of a
    record that was not finished.
    """

    records: list[bytes]
    end: int
    torn: int


def log_size(directory: Path) -> int:
    """Bytes of the log; 0 where there is none."""
    try:
        return os.stat(directory / EDITS).st_size
    except OSError:
        return 0


def read_log(directory: Path, begin: int = 0) -> Tail:
    """The records from a place on. Raises `StoreDamagedError` where one is not what was written, or
    the log is shorter than a generation says.
    """
    path = directory / EDITS
    try:
        with path.open("rb") as file:
            file.seek(begin)
            data = file.read()
            size = file.tell()
    except FileNotFoundError:
        data, size = b"", 0
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if size < begin:
        raise StoreDamagedError(f"{path} has {size} bytes, and the graph contains {begin} of it", hint=LOST)
    at = 0
    if not begin and data:
        if not data.startswith(_HEAD):
            if _HEAD.startswith(data):
                return Tail([], 0, len(data))
            raise StoreDamagedError(f"{path} is not what was written", hint=LOST)
        at = len(_HEAD)
    records = []
    while (end := data.find(b"\n", at)) >= 0:
        line = data[at:end]
        crc, _, rest = line.partition(b" ")
        length, _, body = rest.partition(b" ")
        if crc != b"%08x" % zlib.crc32(body) or length != b"%d" % len(body):
            raise StoreDamagedError(f"{path}: the change at byte {begin + at} is not what was written", hint=LOST)
        records.append(body)
        at = end + 1
    return Tail(records, begin + at, len(data) - at)


def append_record(directory: Path, body: bytes, end: int) -> int:
    """Append a record at the end of the finished ones, and sync it; where it ends. The caller holds
    the lock of the folder. A record that cannot be written whole leaves the log as it was.
    """
    path = directory / EDITS
    line = b"%08x %d %s\n" % (zlib.crc32(body), len(body), body)
    if not end:
        line = _HEAD + line
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    try:
        try:
            os.ftruncate(handle, end)
            os.lseek(handle, end, os.SEEK_SET)
            left = memoryview(line)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, end)
            raise StoreError(
                f"{path} cannot be written: {error.strerror}", hint="nothing was changed; make room, and try again"
            ) from error
    finally:
        os.close(handle)
    if not end:
        _sync_folder(directory)
    return end + len(line)


def _sync_folder(directory: Path) -> None:
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:  # not every file system lets a directory be opened
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
