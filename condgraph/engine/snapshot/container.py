"""One file of arrays, and the table that finds them: how the columns of a generation are written,
mapped and checked.

The file is the arrays one after the other, each at a multiple of 64 bytes. The table (part of the
manifest, which `directory` writes) says for every array its offset, type, length and CRC-32; of
long arrays of bytes also that of every block. Mapping reads nothing but the table. An array is
compared with its checksum when it is first read, a block of texts when a text of it is.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.errors import InterruptedQueryError, StoreDamagedError, StoreError
from condgraph.engine.pieces import different

#: What is to be done about a damaged graph.
LOST: Final = "delete the directory of the graph, and load the sources again"
_ALIGN: Final = 64
#: Bytes between two looks at the clock.
_CHUNK: Final = 1 << 24
#: Bytes of a block, and of an array from which on its blocks are checked one by one.
BLOCK: Final = 1 << 20
LONG: Final = 1 << 24


class ArrayEntry(TypedDict):
    """Where an array lies in the file; `blocks` are the checksums of its blocks."""

    offset: int
    dtype: str
    length: int
    crc: int
    blocks: NotRequired[list[int]]


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> dict[str, ArrayEntry]:
    """Write one-dimensional arrays to a new file, fsync it, and return its table."""
    table: dict[str, ArrayEntry] = {}
    offset = 0
    with path.open("xb") as file:
        for name, array in arrays.items():
            data = np.ascontiguousarray(array)
            padding = -offset % _ALIGN
            file.write(b"\0" * padding)
            offset += padding
            body = _bytes(data)
            crc = 0
            for start in range(0, len(body), _CHUNK):
                part = body[start : start + _CHUNK]
                crc = zlib.crc32(part, crc)
                file.write(part)
            table[name] = {"offset": offset, "dtype": data.dtype.str, "length": int(data.size), "crc": crc}
            if data.itemsize == 1 and len(body) >= LONG:
                table[name]["blocks"] = [zlib.crc32(body[at : at + BLOCK]) for at in range(0, len(body), BLOCK)]
            offset += len(body)
        file.flush()
        os.fsync(file.fileno())
    return table


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(array.data).cast("B") if array.size else memoryview(b"")


class ArrayFile:
    """The arrays of one file, mapped read-only. `get(name)` is a NumPy view of the file,
    `view(name)` a memoryview of it.

    A memoryview gives plain Python numbers, three times faster than NumPy when one element is
    wanted. Bytes that are not those that were written are a `StoreDamagedError` when their array is
    first asked for.
    """

    def __init__(self, path: Path, table: Mapping[str, ArrayEntry]) -> None:
        self.path = path
        self._table = table
        self._views: dict[str, memoryview] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        #: Of arrays that were compared in part, how far, and the checksum so far.
        self._compared: dict[str, tuple[int, int]] = {}
        wanted = max((e["offset"] + e["length"] * np.dtype(e["dtype"]).itemsize for e in table.values()), default=0)
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size != wanted:
                    raise StoreDamagedError(f"{path} has {size} bytes and should have {wanted}", hint=LOST)
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else None
        except FileNotFoundError:
            raise StoreDamagedError(f"{path} is missing", hint=LOST) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error

    @property
    def names(self) -> list[str]:
        """The arrays of the file, in the order they were written."""
        return list(self._table)

    def get(self, name: str) -> NDArray[Any]:
        """The array as a read-only NumPy view of the file; empty where the file has none of this
        name.
        """
        found = self._arrays.get(name)
        if found is None:
            entry = self._table.get(name)
            if entry is None or self._map is None or not entry["length"]:
                found = np.empty(0, np.dtype(entry["dtype"]) if entry else np.int32)
            else:
                found = np.frombuffer(self._map, np.dtype(entry["dtype"]), entry["length"], entry["offset"])
                self._compare(name)
            self._arrays[name] = found
        return found

    def length(self, name: str) -> int:
        """How many numbers an array has, without looking at them."""
        entry = self._table.get(name)
        return len(self.get(name)) if entry is None else entry["length"]

    def view(self, name: str) -> memoryview:
        """The same as a memoryview."""
        found = self._views.get(name)
        if found is None:
            found = self._views[name] = memoryview(self.get(name).data)
        return found

    def raw(self, name: str) -> tuple[bytes | mmap.mmap, int]:
        """What an array of bytes lies in, and where it begins there: slices of that are `bytes`,
        without a view between. Who reads them asks `blocks` before.
        """
        if self._map is None or name not in self._table:
            return b"", 0
        if "blocks" not in self._table[name]:
            self.get(name)
        return self._map, self._table[name]["offset"]

    def blocks(self, name: str) -> Blocks | None:
        """The blocks of an array of bytes that are to be checked one by one; None where it is checked as a
        whole.
        """
        entry = self._table.get(name)
        if entry is None or self._map is None or "blocks" not in entry:
            return None
        return Blocks(self._body(entry), entry["blocks"], lambda: self._differs(name))

    def _body(self, entry: ArrayEntry) -> memoryview:
        begin, size = entry["offset"], entry["length"] * np.dtype(entry["dtype"]).itemsize
        return memoryview(b"" if self._map is None else self._map)[begin : begin + size]

    def _compare(self, name: str) -> None:
        """Compare an array with its checksum; what a deadline ends is gone on with by the next call."""
        entry = self._table[name]
        body = self._body(entry)
        start, crc = self._compared.pop(name, (0, 0))
        try:
            while start < len(body):
                check()
                crc = zlib.crc32(body[start : start + _CHUNK], crc)
                start += _CHUNK
        except InterruptedQueryError:
            self._compared[name] = start, crc
            raise
        if crc != entry["crc"]:
            raise self._differs(name)

    def _differs(self, name: str) -> StoreDamagedError:
        return StoreDamagedError(f"{self.path}: the bytes of {name!r} are not the ones that were written", hint=LOST)

    def verify(self) -> None:
        """Read every byte and compare checksums; raises `StoreDamagedError` naming the array that
        differs.
        """
        end = 0
        for name, entry in self._table.items():
            if self._map is not None and any(self._map[end : entry["offset"]]):
                raise StoreDamagedError(f"{self.path}: there are bytes before {name!r} that were not written", hint=LOST)
            end = entry["offset"] + entry["length"] * np.dtype(entry["dtype"]).itemsize
            self._compare(name)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._map) if self._map is not None else 0


class Blocks:
    """The blocks of an array of bytes, each checked when something in it is first read."""

    __slots__ = ("_body", "_crcs", "_differs", "_left", "_waiting")

    def __init__(self, body: memoryview, crcs: Sequence[int], differs: Callable[[], StoreDamagedError]) -> None:
        self._body, self._crcs, self._differs = body, crcs, differs
        #: A 1 for every block that nobody has read.
        self._waiting = np.ones(len(crcs), bool)
        self._left = len(crcs)

    def __bool__(self) -> bool:
        """Whether any block is still to be checked."""
        return self._left > 0

    def need(self, begin: int, end: int) -> None:
        """Check what `[begin, end)` lies in; raises `StoreDamagedError`."""
        for block in range(begin // BLOCK, (max(end - 1, begin)) // BLOCK + 1):
            if block < len(self._waiting) and self._waiting[block]:
                self._check(block)

    def need_all(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """The same of many."""
        first, last = begins // BLOCK, np.maximum(ends - 1, begins) // BLOCK
        for block in different(np.concatenate([first, last])).tolist():
            if block < len(self._waiting) and self._waiting[block]:
                self._check(block)
        for at in np.flatnonzero(last > first + 1).tolist():
            self.need(int(begins[at]), int(ends[at]))

    def _check(self, block: int) -> None:
        check()
        if zlib.crc32(self._body[block * BLOCK : (block + 1) * BLOCK]) != self._crcs[block]:
            raise self._differs()
        # Of two threads that check a block at once, one counts.
        if self._waiting[block]:
            self._waiting[block] = False
            self._left = int(np.count_nonzero(self._waiting))


class MemoryArrays(ArrayFile):
    """The same over arrays in memory, for graphs that are not kept."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.path = Path("memory:")
        self._table = {}
        self._views = {}
        self._map = None
        self._arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        for array in self._arrays.values():
            array.flags.writeable = False

    def raw(self, name: str) -> tuple[bytes | mmap.mmap, int]:
        """The bytes that the array was made of, else a copy."""
        found: Any = self.get(name)
        base = found.base
        while isinstance(base, np.ndarray):
            base = base.base
        return (base if isinstance(base, bytes) and len(base) == found.nbytes else found.tobytes()), 0

    def blocks(self, name: str) -> Blocks | None:
        """None: what is in memory is not checked."""
        return None

    @property
    def names(self) -> list[str]:
        """The arrays, in the order they were given."""
        return list(self._arrays)

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays.values())
