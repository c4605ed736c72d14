"""One file of arrays, and the table that finds them: how the columns of a generation are written,
mapped and checked.

The file is the arrays one after the other, each at a multiple of 64 bytes. The table (part of the
manifest, which `directory` writes) says for every array its offset, type, length and CRC-32.
Mapping reads nothing but the table.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import StoreDamagedError, StoreError

#: What is to be done about a damaged graph.
LOST: Final = "delete the directory of the graph, and load the sources again"
_ALIGN: Final = 64
_CHUNK: Final = 1 << 24


class ArrayEntry(TypedDict):
    """Where an array lies in the file."""

    offset: int
    dtype: str
    length: int
    crc: int


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
    wanted.
    """

    def __init__(self, path: Path, table: Mapping[str, ArrayEntry]) -> None:
        self.path = path
        self._table = table
        self._views: dict[str, memoryview] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
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
        without a view between.
        """
        if self._map is None or name not in self._table:
            return b"", 0
        return self._map, self._table[name]["offset"]

    def verify(self) -> None:
        """Read every byte and compare checksums; raises `StoreDamagedError` naming the array that
        differs.
        """
        end = 0
        for name, entry in self._table.items():
            if self._map is not None and any(self._map[end : entry["offset"]]):
                raise StoreDamagedError(f"{self.path}: there are bytes before {name!r} that were not written", hint=LOST)
            end = entry["offset"] + entry["length"] * np.dtype(entry["dtype"]).itemsize
            body = _bytes(self.get(name))
            crc = 0
            for start in range(0, len(body), _CHUNK):
                crc = zlib.crc32(body[start : start + _CHUNK], crc)
            if crc != entry["crc"]:
                raise StoreDamagedError(f"{self.path}: the bytes of {name!r} are not the ones that were written", hint=LOST)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._map) if self._map is not None else 0


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

    @property
    def names(self) -> list[str]:
        """The arrays, in the order they were given."""
        return list(self._arrays)

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays.values())
