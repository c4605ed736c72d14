"""One file of arrays with its table of contents: how the columns of a generation are written, mapped and checked.

The file is the concatenated arrays, each at a multiple of 64 bytes. The table (part of the manifest, which
`directory` writes) gives the offset, type, length and CRC-32 of every array, and for long byte arrays the CRC-32 of
every block. Mapping reads only the table. An array is compared with its checksum on first access, a block of texts
when one of its texts is read.

Integers are compressed in blocks (`packed`), which are checked and decoded on access.
"""

from __future__ import annotations

import mmap
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import changed, check, current, different, in_order, pieces
from condgraph.engine.errors import InterruptedQueryError, LoadError, StoreDamagedError, StoreError

#: The hint for a damaged graph.
LOST: Final = "delete the directory of the graph, and load the sources again"
_ALIGN: Final = 64
#: The number of bytes between two checks of the deadline.
_CHUNK: Final = 1 << 24
#: The size in bytes of a block, and of the shortest array whose blocks are checked one by one.
BLOCK: Final = 1 << 20
LONG: Final = 1 << 24


class ArrayEntry(TypedDict):
    """The location of an array in the file; `blocks` are the checksums of its blocks."""

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
                released(array)
            table[name] = {"offset": offset, "dtype": data.dtype.str, "length": int(data.size), "crc": crc}
            if data.itemsize == 1 and len(body) >= LONG:
                table[name]["blocks"] = [zlib.crc32(body[at : at + BLOCK]) for at in range(0, len(body), BLOCK)]
                released(array)
            offset += len(body)
        file.flush()
        os.fsync(file.fileno())
    return table


def released(array: NDArray[Any]) -> None:
    """Release the memory of a column that is mapped from a file; it is read again on the next access."""
    _release(getattr(array, "_mmap", None))


def _release(mapped: mmap.mmap | None) -> None:
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(array.data).cast("B") if array.size else memoryview(b"")


class ArrayFile:
    """The arrays of one file, mapped read-only. `get(name)` is a NumPy view of the file, `view(name)` a memoryview of
    it.

    A memoryview returns plain Python numbers, three times faster than NumPy for a single element. The first access to
    an array whose bytes have changed raises `StoreDamagedError`.
    """

    def __init__(self, path: Path, table: Mapping[str, ArrayEntry]) -> None:
        self.path = path
        self._table = table
        self._views: dict[str, memoryview] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        #: Arrays that are partly checked: the number of bytes, and the checksum so far.
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
        """Return an array as a read-only NumPy view of the file; empty if the file has none of this name."""
        result = self._arrays.get(name)
        if result is None:
            entry = self._table.get(name)
            if entry is None or self._map is None or not entry["length"]:
                result = np.empty(0, np.dtype(entry["dtype"]) if entry else np.int32)
            else:
                result = np.frombuffer(self._map, np.dtype(entry["dtype"]), entry["length"], entry["offset"])
                self._compare(name)
            self._arrays[name] = result
        return result

    def length(self, name: str) -> int:
        """Return the length of an array without reading it."""
        entry = self._table.get(name)
        return len(self.get(name)) if entry is None else entry["length"]

    def view(self, name: str) -> memoryview:
        """Return the same as a memoryview."""
        result = self._views.get(name)
        if result is None:
            result = self._views[name] = memoryview(self.get(name).data)
        return result

    def raw(self, name: str) -> tuple[bytes | mmap.mmap, int]:
        """Return the buffer that a byte array is in, and its begin there: slicing it gives `bytes` without a view in
        between. Callers must check `blocks` first.
        """
        if self._map is None or name not in self._table:
            return b"", 0
        if "blocks" not in self._table[name]:
            self.get(name)
        return self._map, self._table[name]["offset"]

    def blocks(self, name: str) -> Blocks | None:
        """Return the blocks of a byte array that are checked one by one; None if it is checked as a whole."""
        entry = self._table.get(name)
        if entry is None or self._map is None or "blocks" not in entry:
            return None
        return Blocks(self._body(entry), entry["blocks"], lambda: self._differs(name))

    def release(self) -> None:
        """Release the memory of what was read; it is read again on the next access."""
        _release(self._map)

    def _body(self, entry: ArrayEntry) -> memoryview:
        begin, size = entry["offset"], entry["length"] * np.dtype(entry["dtype"]).itemsize
        return memoryview(b"" if self._map is None else self._map)[begin : begin + size]

    def _compare(self, name: str) -> None:
        """Compare an array with its checksum; if a deadline interrupts it, the next call continues."""
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
        """Read every byte and compare checksums; raise `StoreDamagedError` for the first array that differs."""
        end = 0
        for name, entry in self._table.items():
            if self._map is not None and any(self._map[end : entry["offset"]]):
                raise StoreDamagedError(f"{self.path}: there are bytes before {name!r} that were not written", hint=LOST)
            end = entry["offset"] + entry["length"] * np.dtype(entry["dtype"]).itemsize
            self._compare(name)

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return len(self._map) if self._map is not None else 0


class Blocks:
    """The blocks of a byte array, each checked when it is first read."""

    __slots__ = ("_body", "_crcs", "_differs", "_left", "_waiting")

    def __init__(self, body: memoryview, crcs: Sequence[int], differs: Callable[[], StoreDamagedError]) -> None:
        self._body, self._crcs, self._differs = body, crcs, differs
        #: Which blocks have not been read yet.
        self._waiting = np.ones(len(crcs), bool)
        self._left = len(crcs)

    def __bool__(self) -> bool:
        """Return whether any block is still unchecked."""
        return self._left > 0

    def need(self, begin: int, end: int) -> None:
        """Check the blocks of `[begin, end)`; raise `StoreDamagedError`."""
        for block in range(begin // BLOCK, (max(end - 1, begin)) // BLOCK + 1):
            if block < len(self._waiting) and self._waiting[block]:
                self._check(block)

    def need_all(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """The same for many ranges."""
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
        # Two threads may check a block at once; count it once.
        if self._waiting[block]:
            self._waiting[block] = False
            self._left = int(np.count_nonzero(self._waiting))


class MemoryArrays(ArrayFile):
    """The same interface over arrays in memory, for graphs that are not stored."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.path = Path("memory:")
        self._table = {}
        self._views = {}
        self._map = None
        self._arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        for array in self._arrays.values():
            array.flags.writeable = False

    def raw(self, name: str) -> tuple[bytes | mmap.mmap, int]:
        """Return the bytes that the array was made from, else a copy."""
        array: Any = self.get(name)
        base = array.base
        while isinstance(base, np.ndarray):
            base = base.base
        return (base if isinstance(base, bytes) and len(base) == array.nbytes else array.tobytes()), 0

    def blocks(self, name: str) -> Blocks | None:
        """Return None: arrays in memory are not checked."""
        return None

    @property
    def names(self) -> list[str]:
        """The arrays, in the order they were given."""
        return list(self._arrays)

    @property
    def size(self) -> int:
        """The size of all arrays in bytes."""
        return sum(array.nbytes for array in self._arrays.values())


# Compression of integer columns: blocks of differences with as few bytes as possible.
#
# A block has its first number and, for each number, its distance from the smallest ("apart") or from
# the number before ("steps"), divided by the greatest common divisor of these distances. Floats with
# few decimals are stored as integers (12.5 as 125, one digit): every float is compared bit by bit with
# its decoded form, and if one differs the block is stored uncompressed. A block that is close to the
# same block of another column (the end of a day to its start) is stored as the difference.
#
# Cost: some nanoseconds for each number to write, and as many to read.


#: The largest and smallest number of items in a block (the last one may be smaller).
MAX_BLOCK: Final = 1 << 16
MIN_BLOCK: Final = 1 << 10
_PLAIN, _APART, _STEPS = 0, 1, 2
_DIGITS: Final = 4
#: Integers below this are exact as floats.
_EXACT: Final = 2**53
#: The size of a sample that is tested first.
_SAMPLE: Final = 64
#: The number of properties of a block: method, bytes for each number, decimal digits (-1: integers, not
#: floats), and whether the other column is added.
_HEADER: Final = 4


class Packed(NamedTuple):
    """A column in blocks: `how` has 4 properties of each block, as above, `numbers` 4 numbers (its begin, first
    number, step, unit), `body` the bytes.
    """

    how: NDArray[np.int8]
    numbers: NDArray[np.int64]
    body: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """The total size in bytes."""
        return self.how.nbytes + self.numbers.nbytes + self.body.nbytes


class _Block(NamedTuple):
    how: tuple[int, int, int, int]
    first: int
    step: int
    unit: int
    body: NDArray[np.uint8]


def cuts(length: int, edges: Iterable[int] = ()) -> list[int]:
    """Return the begins of blocks, and the length: at the edges that are far enough apart, and where a block would be
    too long.
    """
    result = [0]
    for edge in [*edges, length]:
        if edge == result[-1] or (edge - result[-1] < MIN_BLOCK and edge != length):
            continue
        result.extend(range(result[-1] + MAX_BLOCK, edge, MAX_BLOCK))
        result.append(edge)
    return result


def pack(column: NDArray[Any], edges: Iterable[int] = (), beside: NDArray[Any] | None = None) -> Packed:
    """Compress a column of integers. `beside` is a 64-bit column of the same length that is available when this one
    is read.
    """
    places = cuts(len(column), edges)
    blocks = []
    for low, high in pairwise(places):
        block = _packed(column[low:high])
        if beside is not None and block.how[1]:
            # Differences wrap around in 64 bits, and so do the sums that take them back.
            difference = _compress_integers(column[low:high] - beside[low:high], column.itemsize, -1)
            if difference.how[1] < block.how[1]:
                block = difference._replace(how=(*difference.how[:3], 1))
        blocks.append(block)
    numbers = [(low, block.first, block.step, block.unit) for low, block in zip(places, blocks, strict=False)]
    return Packed(
        np.array([block.how for block in blocks], np.int8).reshape(-1),
        np.array(numbers, np.int64).reshape(-1),
        np.concatenate([block.body for block in blocks]) if blocks else np.empty(0, np.uint8),
    )


def unpack(packed: Packed, length: int, dtype: np.dtype[Any], beside: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return the original column."""
    out, position = np.empty(length, dtype), 0
    rows = packed.numbers.reshape(-1, 4).tolist()
    ends = [*(row[0] for row in rows[1:]), length]
    for (method, width, digits, added), (low, first, step, unit), high in zip(
        packed.how.reshape(-1, _HEADER).tolist(), rows, ends, strict=True
    ):
        body = packed.body[position : position + (high - low) * width]
        position += len(body)
        if method == _PLAIN:
            out[low:high] = body.view(dtype)
            continue
        numbers = _from_bytes(body, width, high - low)
        if unit != 1:
            numbers *= unit
        if method == _STEPS:
            # The first item has no step; it is the first number itself.
            numbers[1:] += step
            np.cumsum(numbers, out=numbers)
        numbers += first
        if digits >= 0:
            numbers = (numbers / 10.0**digits).view(np.int64)
        if added:
            assert beside is not None
            numbers = numbers + beside[low:high]
        out[low:high] = numbers
    return out


def _packed(block: NDArray[Any]) -> _Block:
    """Compress one block in the fewest bytes."""
    if block.itemsize == 8:
        for digits in range(_DIGITS + 1):
            integers = _decimals(block, digits)
            if integers is not None:
                return _compress_integers(integers, 8, digits)
    return _compress_integers(block, block.itemsize, -1)


def _decimals(block: NDArray[Any], digits: int) -> NDArray[np.int64] | None:
    """Return the floats with these bits times ten to the power of the digits, if that is exact for all of them."""
    scale = 10.0**digits
    for part in (block[:: max(len(block) // _SAMPLE, 1)], block):
        with np.errstate(all="ignore"):
            scaled = np.rint(np.ascontiguousarray(part).view(np.float64) * scale)
            if not (np.abs(scaled) < _EXACT).all():
                return None
            # As integers, which have no -0.0.
            integers = scaled.astype(np.int64)
            if not ((integers / scale).view(np.int64) == part).all():
                return None
    # Times in seconds are integers; their bits read as floats are almost 0.
    return integers if integers.any() or not block.any() else None


def _compress_integers(block: NDArray[Any], itemsize: int, digits: int) -> _Block:
    """Compress integers by their distances, or store them unchanged if that is no longer."""
    wide = block.astype(np.int64)
    low, high = int(wide.min()), int(wide.max())
    if low == high:
        return _Block((_APART, 0, digits, 0), low, 0, 1, np.empty(0, np.uint8))
    best: tuple[int, int, int, int, int, NDArray[Any]] | None = None
    if high - low < 2**62:
        apart = wide - low
        unit = _unit(apart) if itemsize == 8 else 1
        best = (_width((high - low) // unit), _APART, low, 0, unit, apart)
        steps = np.diff(wide)
        least, most = int(steps.min()), int(steps.max())
        excess = steps - least
        step_unit = (_unit(excess) if itemsize == 8 else 1) if most > least else 1
        width = _width((most - least) // step_unit)
        if width < best[0]:
            best = (width, _STEPS, int(wide[0]), least, step_unit, np.concatenate([[0], excess]))
    if best is None or best[0] >= itemsize:
        if digits >= 0:
            floats = (wide / 10.0**digits).view(np.uint8)
            return _Block((_PLAIN, itemsize, -1, 0), 0, 0, 1, floats)
        return _Block((_PLAIN, itemsize, -1, 0), 0, 0, 1, np.ascontiguousarray(block).view(np.uint8))
    width, method, first, step, unit, numbers = best
    return _Block((method, width, digits, 0), first, step, unit, _to_bytes(numbers // unit if unit != 1 else numbers, width))


def _unit(distances: NDArray[np.int64]) -> int:
    """Return the greatest common divisor of the distances."""
    unit = int(np.gcd.reduce(distances[:: max(len(distances) // _SAMPLE, 1)]))
    while unit > 1:
        remainders = distances % unit
        nonzero = remainders[remainders > 0][:_SAMPLE]
        if not len(nonzero):
            return unit
        unit = int(np.gcd.reduce(np.append(nonzero, unit)))
    return 1


def _width(most: int) -> int:
    return (most.bit_length() + 7) // 8


def _to_bytes(numbers: NDArray[Any], width: int) -> NDArray[np.uint8]:
    if width in (1, 2, 4):
        return numbers.astype(f"<u{width}").view(np.uint8)
    return np.ascontiguousarray(numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]).reshape(-1)


def _from_bytes(body: NDArray[np.uint8], width: int, length: int) -> NDArray[np.int64]:
    if width in (1, 2, 4):
        return body.view(f"<u{width}").astype(np.int64)
    wide = np.zeros((length, 8), np.uint8)
    wide[:, :width] = body.reshape(length, width)
    return wide.view("<i8").reshape(-1)


Arrays = Mapping[str, NDArray[Any]]
Form = dict[str, Any]

#: The largest and smallest length of a column that is compressed.
MAX_COLUMN: Final = 1 << 21
MIN_COLUMN: Final = 1 << 9
MAPPED: Final = frozenset(
    {"pool.bytes", "pool.offsets", "pool.buckets", "pool.items", "rel.s", "rel.o", "att.s", "out.items", "in.items"}
)
#: The largest size of a compressed column, as a fraction of the original.
_WORTH: Final = 0.75
#: The smallest average length of runs.
_RUN: Final = 16
#: Columns whose values are sorted within the groups of their family, and columns close to another one.
_GROUPED: Final = {f"att.{part}": "grp.start" for part in ("a", "b", "ref", "kind", "unit", "precision", "raw")}
_RELATED: Final = {"att.b": "att.a", "q.b": "q.a", "val.end": "val.start"}


def packed(columns: Arrays) -> tuple[dict[str, NDArray[Any]], dict[str, Form]]:
    """Return the arrays to write for these columns, and the forms of those that are compressed."""
    arrays: dict[str, NDArray[Any]] = {}
    forms: dict[str, Form] = {}
    for name, column in columns.items():
        shorter = None
        if name not in MAPPED and MIN_COLUMN <= len(column) <= MAX_COLUMN and column.dtype.kind in "iu":
            shorter = _derived(name, columns) or _short(name, column, columns)
        if shorter is None:
            arrays[name] = column
            continue
        form, parts = shorter
        forms[name] = {"dtype": column.dtype.str, "length": len(column), **form}
        arrays |= {f"{name}:{part}": array for part, array in parts.items()}
    return arrays, forms


Decoded = tuple[Form, dict[str, NDArray[Any]]]


def _derived(name: str, columns: Arrays) -> Decoded | None:
    """Return the form of a column that follows from others."""
    if name == "ent.name" and np.array_equal(columns[name], columns["ent.id"]):
        return {"form": "copy", "of": "ent.id"}, {}
    if name in ("ent.source", "ent.row"):
        same = np.array_equal(columns[name], _from_rows(name, len(columns[name]), columns))
        return ({"form": "rows"}, {}) if same else None
    if name == "st.row" and len(columns["ent.row"]):
        differing = np.flatnonzero(columns[name] != _subject_rows(columns))
        if 4 * len(differing) <= len(columns[name]):
            return {"form": "places"}, {"at": differing.astype(np.int32), "rows": columns[name][differing]}
    return None


def _short(name: str, column: NDArray[Any], columns: Arrays) -> Decoded | None:
    """Return the shortest form of a single column, if it is worth it."""
    changes = np.flatnonzero(column[1:] != column[:-1]) + 1
    if not len(changes):
        return {"form": "same", "value": int(column[0])}, {}
    if _RUN * len(changes) <= len(column):
        starts = np.append(0, changes)
        return {"form": "runs"}, {"starts": starts.astype(np.int32), "values": column[starts]}
    edges = columns[_GROUPED[name]].tolist() if name in _GROUPED else ()
    size_limit, usual = _WORTH * column.nbytes, -1 if (column[:1024] == -1).any() else 0
    is_rare = column != usual
    sparse = int(is_rare.sum()) * column.itemsize + len(column) // 8
    beside = columns.get(_RELATED.get(name, ""))
    if beside is not None or sparse > column.nbytes / 4:
        packed = pack(column, edges, beside)
        if packed.size < min(size_limit, sparse):
            options = {} if beside is None else {"beside": _RELATED[name]}
            return {"form": "blocks", **options}, {"how": packed.how, "numbers": packed.numbers, "body": packed.body}
    if sparse < size_limit:
        return {"form": "sparse", "usual": usual}, {"where": np.packbits(is_rare), "values": column[is_rare]}
    return None


def _subject_rows(columns: Arrays) -> NDArray[Any]:
    """Return the row of each statement's subject."""
    rows = columns["ent.row"]
    return np.concatenate([rows[columns["rel.s"]], rows[columns["att.s"]]])


def _from_rows(name: str, entities: int, columns: Arrays) -> NDArray[np.int32]:
    """Return the table (-1: none) or the row (0: none) of each entity."""
    key, row_entities = columns["row.key"], columns["row.entity"]
    result = np.full(entities, -1 if name == "ent.source" else 0, np.int32)
    result[row_entities] = key >> 32 if name == "ent.source" else key & (2**32 - 1)
    return result


class PackedFile(ArrayFile):
    """The columns of one file, compressed or not. `get` and `view` are as in `ArrayFile`; `names` are the columns,
    `size` and `verify` concern the file.
    """

    def __init__(self, path: Path, table: Mapping[str, ArrayEntry], forms: Mapping[str, Form]) -> None:
        super().__init__(path, table)
        self._forms = forms

    @property
    def names(self) -> list[str]:
        """The columns, compressed ones last."""
        return [name for name in self._table if name.partition(":")[0] not in self._forms] + list(self._forms)

    def get(self, name: str) -> NDArray[Any]:
        """Return a read-only column; a compressed one is decoded on the first call."""
        form = self._forms.get(name)
        if form is None:
            return super().get(name)
        result = self._arrays.get(name)
        if result is None:
            result = self._unpacked(name, form).astype(np.dtype(form["dtype"]), copy=False)
            result.flags.writeable = False
            self._arrays[name] = result
        return result

    def length(self, name: str) -> int:
        """Return the length of a column without decoding it."""
        form = self._forms.get(name)
        return super().length(name) if form is None else int(form["length"])

    def _unpacked(self, name: str, form: Form) -> NDArray[Any]:
        length, kind = form["length"], form["form"]
        if kind == "same":
            return np.full(length, form["value"], np.dtype(form["dtype"]))
        if kind == "copy":
            return self.get(form["of"]).copy()
        if kind == "rows":
            return _from_rows(name, length, _Columns(self))
        if kind == "places":
            rows = _subject_rows(_Columns(self))
            rows[self._part(name, "at")] = self._part(name, "rows")
            return rows
        if kind == "runs":
            starts = self._part(name, "starts")
            return self._part(name, "values").repeat(np.diff(np.append(starts, length)))
        if kind == "sparse":
            column = np.full(length, form["usual"], np.dtype(form["dtype"]))
            column[np.unpackbits(self._part(name, "where"), count=length).view(bool)] = self._part(name, "values")
            return column
        parts = Packed(self._part(name, "how"), self._part(name, "numbers"), self._part(name, "body"))
        beside = self.get(form["beside"]) if "beside" in form else None
        return unpack(parts, length, np.dtype(form["dtype"]), beside)

    def _part(self, name: str, part: str) -> NDArray[Any]:
        return super().get(f"{name}:{part}")


class _Columns(Mapping[str, NDArray[Any]]):
    """The columns of a file as a mapping."""

    def __init__(self, file: PackedFile) -> None:
        self._file = file

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._file.get(name)

    def __iter__(self) -> Any:
        return iter(self._file.names)

    def __len__(self) -> int:
        return len(self._file.names)


# -- texts as bytes ----------------------------------------------------------------------------------
# Operations on many texts as concatenated bytes: sorting by code point, reordering, and CRC-32, by
# NumPy, eight bytes of all texts at once.
#
# Texts are UTF-8 in `data`, a byte array with `SPARE` more bytes after the last text; each begins
# at one of `begins` and has one of `lengths` bytes. UTF-8 preserves the order of code points.


#: Bytes after the last text, so that eight bytes can be read at every byte of a text.
SPARE: Final = 8
#: The number of words compared by NumPy before Python sorts the texts that are still equal.
_ROUNDS: Final = 8
#: Checksums of longer texts (in bytes) are left to zlib.
_MAX_CHECKSUM: Final = 64
#: Up to this many texts, Python is faster.
_MAX_PYTHON: Final = 256
#: Texts with a larger mean length in bytes are cut out one by one.
MAX_MEAN_LENGTH: Final = 40
#: The number of texts processed at once, so that they stay in the caches.
_SOME_BYTES: Final = 1 << 15
_WORD: Final = 8
#: Masks of the first 0 to 8 bytes of a word, the first byte being the highest.
_BYTE_MASKS: Final = np.array([2**64 - (1 << 8 * (8 - size)) if size else 0 for size in range(9)], np.uint64)


def _words(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the eight bytes from each position, little-endian."""
    all_words = np.ndarray(len(data) - _WORD + 1, np.dtype("<u8"), data, 0, (1,))
    return all_words[at]


def _key(data: NDArray[np.uint8], begins: NDArray[np.int64], left: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the next bytes of texts as numbers in their order; `left` is the number of bytes left (0 or less: none)."""
    words = _words(data, np.minimum(begins, len(data) - _WORD)).astype(np.uint64).byteswap()
    words &= _BYTE_MASKS.take(left, mode="clip")
    return words


def sorted_texts(
    data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the positions of texts in order, and a mask of those that differ from the text before; equal texts are
    in arbitrary order.
    """
    count = len(begins)
    if count <= _MAX_PYTHON or (data[: len(data) - SPARE] == 0).any():
        # A text and the same text followed by a zero byte have equal words.
        return _by_python(data, begins, lengths, np.arange(count), np.ones(count, bool))
    key = _key(data, begins, lengths)
    order = np.argsort(key)
    is_new = changed(key[order])
    # The positions of texts that are still equal.
    undecided, done = np.arange(count), 0
    for done in range(1, _ROUNDS + 1):
        undecided = _undecided(is_new, undecided, lengths[order[undecided]] > _WORD * done)
        if not len(undecided):
            return order, is_new
        text_numbers = order[undecided]
        group = np.cumsum(is_new[undecided], dtype=np.int32)
        key = _key(data, begins[text_numbers] + _WORD * done, lengths[text_numbers] - _WORD * done)
        by_key = np.argsort(key)
        within = by_key[in_order([group[by_key]])]
        order[undecided], key = text_numbers[within], key[within]
        is_new[undecided[1:]] |= key[1:] != key[:-1]
    undecided = _undecided(is_new, undecided, lengths[order[undecided]] > _WORD * (_ROUNDS + 1))
    return _by_python(data, begins, lengths, order, is_new, undecided) if len(undecided) else (order, is_new)


def _undecided(fresh: NDArray[np.bool_], places: NDArray[np.int64], longer: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the positions in groups of equal texts that have several texts, one of them longer than what was
    compared.
    """
    first = fresh[places]
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, len(places)))
    wanted = (sizes > 1) & np.logical_or.reduceat(longer, starts) if len(starts) else np.zeros(0, bool)
    return places[np.repeat(wanted, sizes)]


def _by_python(
    data: NDArray[np.uint8],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    order: NDArray[np.int64],
    fresh: NDArray[np.bool_],
    places: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Sort the texts at some positions (None: all, in one group) within their groups, in Python."""
    places = np.arange(len(order)) if places is None else places
    text_numbers = order[places]
    group = np.cumsum(fresh[places]).tolist() if len(places) < len(order) else [0] * len(order)
    texts = [(key, text) for key, text in zip(group, _split_bytes(data, begins[text_numbers], lengths[text_numbers]), strict=True)]
    by_text = sorted(range(len(texts)), key=texts.__getitem__)
    order = order.copy()
    order[places] = text_numbers[by_text]
    ordered = [texts[index] for index in by_text]
    fresh[places[1:]] = [text != previous for text, previous in zip(ordered[1:], ordered, strict=False)]
    return order, fresh


def _split_bytes(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[bytes]:
    all_bytes = data.tobytes()
    return [all_bytes[low:high] for low, high in zip(begins.tolist(), (begins + lengths).tolist(), strict=True)]


def put_together(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Concatenate texts in the given order, followed by `SPARE` bytes."""
    if lengths.sum() > MAX_MEAN_LENGTH * len(lengths):
        return np.frombuffer(b"".join(_split_bytes(data, begins, lengths)) + bytes(SPARE), np.uint8)
    result = np.zeros(int(lengths.sum()) + SPARE, np.uint8)
    position = 0
    for first in range(0, len(begins), _SOME_BYTES):
        size = lengths[first : first + _SOME_BYTES]
        nonempty = size > 0
        size, begin = size[nonempty], begins[first : first + _SOME_BYTES][nonempty]
        if not len(size):
            continue
        # Indexes as cumulative steps: 1 within a text, a jump from the end of one to the next.
        ends = np.cumsum(size)
        steps = np.ones(int(ends[-1]), np.int64)
        steps[0] = begin[0]
        steps[ends[:-1]] = begin[1:] - (begin[:-1] + size[:-1] - 1)
        data.take(np.cumsum(steps, out=steps), out=result[position : position + len(steps)], mode="clip")
        position += len(steps)
    return result


@cache
def _tables() -> tuple[NDArray[np.uint32], ...]:
    """Return tables of what two bytes contribute to a CRC-32 followed by 0, 2, 4 and 6 bytes."""
    single = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        single = np.where(single & 1, (single >> 1) ^ np.uint32(0xEDB88320), single >> 1).astype(np.uint32)
    # Each table is for one more byte that follows.
    by_byte = [single]
    for _ in range(_WORD - 1):
        by_byte.append(single[by_byte[-1] & 255] ^ (by_byte[-1] >> np.uint32(8)))
    pairs = np.arange(1 << 16)
    return tuple(by_byte[index + 1][pairs & 255] ^ by_byte[index][pairs >> 8] for index in range(0, _WORD, 2))


def checksums(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the CRC-32 of each text, as `zlib.crc32`."""
    if len(begins) <= _MAX_PYTHON:
        return np.array(list(map(zlib.crc32, _split_bytes(data, begins, lengths))), np.uint32)
    long = np.flatnonzero(lengths > _MAX_CHECKSUM)
    longest = int(np.minimum(lengths, _MAX_CHECKSUM).max(initial=0))
    # Apart from its initial and final value, a CRC is linear, and leading zeros do not matter: so all
    # texts are padded in front to one length, and the contribution of their length is added.
    crcs = np.array([zlib.crc32(bytes(size)) for size in range(longest + 1)], np.uint32).take(lengths, mode="clip")
    tables = _tables()
    ends = begins + lengths
    for first in range(0, len(begins), _SOME_BYTES):
        chunk = slice(first, first + _SOME_BYTES)
        size, end = lengths[chunk], ends[chunk]
        state = np.zeros(len(size), np.uint64)
        for words_left in range((longest - 1) // _WORD, -1, -1):
            # Bytes before the text are zeroed; before the first texts there may be none to read.
            position = end - _WORD * (words_left + 1)
            words = _words(data, np.maximum(position, 0)) << (np.maximum(-position, 0) * 8).clip(0, 63).astype(np.uint64)
            words &= _BYTE_MASKS.take(size - _WORD * words_left, mode="clip")
            words ^= state
            pairs = words.astype("<u8", copy=False).view("<u2").reshape(-1, 4)
            low = tables[1][pairs[:, 2]] ^ tables[0][pairs[:, 3]]
            state = (tables[3][pairs[:, 0]] ^ tables[2][pairs[:, 1]] ^ low).astype(np.uint64)
        crcs[chunk] ^= state.astype(np.uint32)
    if len(long):
        crcs[long] = list(map(zlib.crc32, _split_bytes(data, begins[long], lengths[long])))
    return crcs


def bytes_of(texts: list[str]) -> tuple[bytes, NDArray[Any]]:
    """Return the concatenated bytes of texts, and the length of each in bytes. Raises UnicodeEncodeError for an
    unpaired surrogate.
    """
    joined = "".join(texts)
    data = joined.encode()
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if len(data) > len(joined):
        # From characters to bytes: a character begins at a byte that is not a continuation byte.
        ends = np.cumsum(lengths)
        raw = np.frombuffer(data, np.uint8)
        places = np.append(np.flatnonzero((raw & 0xC0) != 0x80), len(data))
        lengths = np.diff(places[np.append(0, ends)])
    return data, lengths


# -- the pool of texts -------------------------------------------------------------------------------
# The string pool: every distinct text of a graph once, sorted by code point, so that comparing
# numbers compares texts.
#
# Columns: `pool.bytes` (concatenated UTF-8), `pool.offsets` (one more than texts; 32 bits, or 64 if
# necessary), and a hash index, `pool.buckets` and `pool.items`: the texts whose CRC-32 ends in the bits
# b are `items[buckets[b]:buckets[b + 1]]`. UTF-8 preserves code-point order, so the number of a text is
# its rank.


#: Up to this many texts, their offsets are looked up one by one.
_MAX_SINGLE: Final = 8
_SURROGATE: Final = re.compile("[\ud800-\udfff]").search
#: The number of texts that are read between two checks of the deadline.
_SOME: Final = 1 << 15


def build_pool(
    texts: list[str], more: Sequence[tuple[NDArray[np.uint8], NDArray[np.int64]]] = ()
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32]]:
    """Build the pool of texts, and of `more` texts as concatenated bytes with their lengths. Return the columns, and
    the number of each given text in the pool.
    """
    raw, lengths = bytes_of_texts(texts)
    data = np.concatenate([np.frombuffer(raw, np.uint8), *(bytes_ for bytes_, _ in more), np.zeros(SPARE, np.uint8)])
    lengths = np.concatenate([lengths, *(sizes for _, sizes in more)])
    begins = np.cumsum(lengths) - lengths
    # Equal texts are adjacent after sorting: finding them there is cheaper than a lookup before.
    order, is_new = sorted_texts(data, begins, lengths)
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(is_new, dtype=np.int32) - 1
    distinct = order[is_new]
    lengths = lengths[distinct]
    data = put_together(data, begins[distinct], lengths)
    offsets = np.zeros(len(distinct) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    hashes = checksums(data, offsets[:-1], lengths)
    data = data[: len(data) - SPARE]
    if len(data) < 2**31:
        offsets = offsets.astype(np.int32)
    size = buckets_of(len(distinct))
    slots = (hashes & np.uint32(size - 1)).astype(np.int64)
    buckets = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(slots, minlength=size), out=buckets[1:])
    columns: dict[str, NDArray[Any]] = {
        "pool.bytes": data,
        "pool.offsets": offsets,
        "pool.buckets": buckets,
        "pool.items": in_order([slots]).astype(np.int32),
    }
    return columns, number


def bytes_of_texts(texts: list[str]) -> tuple[bytes, NDArray[Any]]:
    """Return the concatenated bytes of texts, and the length of each; raise `LoadError` for an unpaired surrogate."""
    try:
        return bytes_of(texts)
    except UnicodeEncodeError:
        broken = next(text for text in texts if _SURROGATE(text))
        raise LoadError(f"a text contains an unpaired surrogate, which is not a character: {broken!r}") from None


def buckets_of(texts: int) -> int:
    """Return the number of buckets. Two or three texts share one: more buckets would cost more memory than they save
    time.
    """
    return 1 << max(4, texts.bit_length() - 2)


class Pool:
    """The texts of an open snapshot. Numbers run from 0 to `len(pool) - 1`, in code-point order."""

    def __init__(self, arrays: ArrayFile) -> None:
        # Slicing the underlying buffer is twice as fast as slicing a view of it.
        self._bytes, self._begin = arrays.raw("pool.bytes")
        self._offsets = arrays.view("pool.offsets")
        self._ends = arrays.get("pool.offsets")
        self._buckets = arrays.view("pool.buckets")
        self._items = arrays.view("pool.items")
        self._mask = max(len(self._buckets) - 2, 0)
        self._blocks = arrays.blocks("pool.bytes")

    def __len__(self) -> int:
        return max(len(self._offsets) - 1, 0)

    def __getitem__(self, number: int) -> str:
        begin = self._begin
        if self._blocks:
            self._blocks.need(self._offsets[number], self._offsets[number + 1])
        return self._bytes[begin + self._offsets[number] : begin + self._offsets[number + 1]].decode()

    def take(self, numbers: NDArray[Any]) -> list[str]:
        """Return the texts with these numbers."""
        data, begin = self._bytes, self._begin
        if len(numbers) <= _MAX_SINGLE:
            offsets = self._offsets
            if self._blocks:
                for number in numbers.tolist():
                    self._blocks.need(offsets[number], offsets[number + 1])
            return [data[begin + offsets[number] : begin + offsets[number + 1]].decode() for number in numbers.tolist()]
        if len(numbers) > _SOME and current() is not None:
            return [text for chunk in pieces(numbers, _SOME) for text in self.take(chunk)]
        first, last = self._ends.take(numbers).astype(np.int64), self._ends[1:].take(numbers).astype(np.int64)
        if self._blocks:
            self._blocks.need_all(first, last)
        if begin:
            first += begin
            last += begin
        return [data[low:high].decode() for low, high in zip(first.tolist(), last.tolist(), strict=True)]

    def longer(self, size: int) -> NDArray[np.int64]:
        """Return the numbers of the texts of more than `size` bytes."""
        return np.flatnonzero(self._ends[1:] - self._ends[:-1] > size)

    def find(self, text: str) -> int:
        """Return the number of a text, or -1."""
        if not len(self):
            return -1
        try:
            key = text.encode()
        except UnicodeEncodeError:
            return -1
        slot = zlib.crc32(key) & self._mask
        offsets, begin = self._offsets, self._begin
        for index in range(self._buckets[slot], self._buckets[slot + 1]):
            number: int = self._items[index]
            if self._blocks:
                self._blocks.need(offsets[number], offsets[number + 1])
            if self._bytes[begin + offsets[number] : begin + offsets[number + 1]] == key:
                return number
        return -1

    def rank(self, text: str) -> int:
        """Return the number of texts in the pool that sort before this one, which need not be in it."""
        return bisect_left(range(len(self)), text.encode("utf-8", "surrogatepass"), key=self._raw)

    def _raw(self, number: int) -> bytes:
        if self._blocks:
            self._blocks.need(self._offsets[number], self._offsets[number + 1])
        return self._bytes[self._begin + self._offsets[number] : self._begin + self._offsets[number + 1]]
