"""One file of arrays with its table of contents: how the columns of a generation are written, mapped
and checked.

The file is the arrays one after the other, each at a multiple of 64 bytes. The table (part of the
manifest, which `directory` writes) says for every array its offset, type, length and CRC-32; of
long arrays of bytes also that of every block. Mapping reads nothing but the table. An array is
compared with its checksum when it is first read, a block of texts when a text of it is.

Integers are written in blocks of few bytes (`packed`), which are checked and decoded when they are
read.
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
    """Take what was read of a column that is mapped from a file out of memory; what is asked for again is read again."""
    _release(getattr(array, "_mmap", None))


def _release(mapped: mmap.mmap | None) -> None:
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


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
        """How many numbers an array has, without looking at them."""
        entry = self._table.get(name)
        return len(self.get(name)) if entry is None else entry["length"]

    def view(self, name: str) -> memoryview:
        """The same as a memoryview."""
        result = self._views.get(name)
        if result is None:
            result = self._views[name] = memoryview(self.get(name).data)
        return result

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

    def release(self) -> None:
        """Take what was read of the file out of memory; what is asked for again is read again."""
        _release(self._map)

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
        array: Any = self.get(name)
        base = array.base
        while isinstance(base, np.ndarray):
            base = base.base
        return (base if isinstance(base, bytes) and len(base) == array.nbytes else array.tobytes()), 0

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


# Columns of whole numbers in few bytes: cut into blocks, each kept as differences in as many bytes
# as they need.
#
# A block is its first number and, for each number, how far it is from the first ("apart") or from the
# one before ("steps"), divided by what all of these distances are multiples of. Floats that are
# decimals of few digits are kept as whole numbers (12.5 as 125, one digit): every float is compared
# bit by bit with what is read back, and where one differs the block is kept as it is. A block that is
# close to the same block of another column (the end of a day to its start) is kept as what lies
# between them.
#
# Cost: some nanoseconds a number to write, and as many to read.


#: A block has so many numbers at most, and at least (but for the last).
LONGEST: Final = 1 << 16
SHORTEST: Final = 1 << 10
_PLAIN, _APART, _STEPS = 0, 1, 2
_DIGITS: Final = 4
#: Whole numbers that a float tells apart.
_EXACT: Final = 2**53
#: Numbers that are looked at before all are.
_SAMPLE: Final = 64
#: Of each block: how it is kept, bytes a number, decimal digits (-1: whole numbers, no floats), and
#: whether the other column is added.
_HOW: Final = 4


class Packed(NamedTuple):
    """A column in blocks: `how` [4 a block] as above, `numbers` [4 a block] (where it begins, first
    number, step, unit), `body` the bytes.
    """

    how: NDArray[np.int8]
    numbers: NDArray[np.int64]
    body: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        return self.how.nbytes + self.numbers.nbytes + self.body.nbytes


class _Block(NamedTuple):
    how: tuple[int, int, int, int]
    first: int
    step: int
    unit: int
    body: NDArray[np.uint8]


def cuts(length: int, edges: Iterable[int] = ()) -> list[int]:
    """Where blocks begin, and the length: at the edges that leave room for a block between them,
    and where a block would be too long.
    """
    result = [0]
    for edge in [*edges, length]:
        if edge == result[-1] or (edge - result[-1] < SHORTEST and edge != length):
            continue
        result.extend(range(result[-1] + LONGEST, edge, LONGEST))
        result.append(edge)
    return result


def pack(column: NDArray[Any], edges: Iterable[int] = (), beside: NDArray[Any] | None = None) -> Packed:
    """A column of whole numbers in blocks. `beside` is a column of as many 64-bit numbers that is
    there when this one is read.
    """
    places = cuts(len(column), edges)
    blocks = []
    for low, high in pairwise(places):
        block = _packed(column[low:high])
        if beside is not None and block.how[1]:
            # Differences wrap around in 64 bits, and so do the sums that take them back.
            other = _whole(column[low:high] - beside[low:high], column.itemsize, -1)
            if other.how[1] < block.how[1]:
                block = other._replace(how=(*other.how[:3], 1))
        blocks.append(block)
    numbers = [(low, block.first, block.step, block.unit) for low, block in zip(places, blocks, strict=False)]
    return Packed(
        np.array([block.how for block in blocks], np.int8).reshape(-1),
        np.array(numbers, np.int64).reshape(-1),
        np.concatenate([block.body for block in blocks]) if blocks else np.empty(0, np.uint8),
    )


def unpack(packed: Packed, length: int, dtype: np.dtype[Any], beside: NDArray[Any] | None = None) -> NDArray[Any]:
    """The column as it was."""
    out, at = np.empty(length, dtype), 0
    rows = packed.numbers.reshape(-1, 4).tolist()
    ends = [*(row[0] for row in rows[1:]), length]
    for (kept, width, digits, added), (low, first, step, unit), high in zip(
        packed.how.reshape(-1, _HOW).tolist(), rows, ends, strict=True
    ):
        body = packed.body[at : at + (high - low) * width]
        at += len(body)
        if kept == _PLAIN:
            out[low:high] = body.view(dtype)
            continue
        numbers = _from_bytes(body, width, high - low)
        if unit != 1:
            numbers *= unit
        if kept == _STEPS:
            # The first of the steps leads from nowhere to the first number.
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
    """One block in the fewest bytes."""
    if block.itemsize == 8:
        for digits in range(_DIGITS + 1):
            whole = _decimals(block, digits)
            if whole is not None:
                return _whole(whole, 8, digits)
    return _whole(block, block.itemsize, -1)


def _decimals(block: NDArray[Any], digits: int) -> NDArray[np.int64] | None:
    """The floats whose bits these are, times ten to the digits, if that loses none of them."""
    scale = 10.0**digits
    for part in (block[:: max(len(block) // _SAMPLE, 1)], block):
        with np.errstate(all="ignore"):
            scaled = np.rint(np.ascontiguousarray(part).view(np.float64) * scale)
            if not (np.abs(scaled) < _EXACT).all():
                return None
            # As whole numbers, since -0.0 is none.
            whole = scaled.astype(np.int64)
            if not ((whole / scale).view(np.int64) == part).all():
                return None
    # Times in seconds are no floats: as floats they are all but nothing.
    return whole if whole.any() or not block.any() else None


def _whole(block: NDArray[Any], itemsize: int, digits: int) -> _Block:
    """Whole numbers by their distances, or as they are where that is no shorter."""
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
        rest = steps - least
        step_unit = (_unit(rest) if itemsize == 8 else 1) if most > least else 1
        width = _width((most - least) // step_unit)
        if width < best[0]:
            best = (width, _STEPS, int(wide[0]), least, step_unit, np.concatenate([[0], rest]))
    if best is None or best[0] >= itemsize:
        if digits >= 0:
            floats = (wide / 10.0**digits).view(np.uint8)
            return _Block((_PLAIN, itemsize, -1, 0), 0, 0, 1, floats)
        return _Block((_PLAIN, itemsize, -1, 0), 0, 0, 1, np.ascontiguousarray(block).view(np.uint8))
    width, kept, first, step, unit, numbers = best
    return _Block((kept, width, digits, 0), first, step, unit, _to_bytes(numbers // unit if unit != 1 else numbers, width))


def _unit(distances: NDArray[np.int64]) -> int:
    """What all of these are multiples of."""
    unit = int(np.gcd.reduce(distances[:: max(len(distances) // _SAMPLE, 1)]))
    while unit > 1:
        rest = distances % unit
        other = rest[rest > 0][:_SAMPLE]
        if not len(other):
            return unit
        unit = int(np.gcd.reduce(np.append(other, unit)))
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

#: Numbers of a column that is kept in fewer bytes: at most, and at least.
MOST: Final = 1 << 21
LEAST: Final = 1 << 9
MAPPED: Final = frozenset(
    {"pool.bytes", "pool.offsets", "pool.buckets", "pool.items", "rel.s", "rel.o", "att.s", "out.items", "in.items"}
)
#: A shorter form has to take at most so much of what the column takes.
_WORTH: Final = 0.75
#: Numbers of a run, on average.
_RUN: Final = 16
#: Parts of columns whose values are sorted within the groups of their family, and what they are close to.
_GROUPED: Final = {f"att.{part}": "grp.start" for part in ("a", "b", "ref", "kind", "unit", "precision", "raw")}
_BESIDE: Final = {"att.b": "att.a", "q.b": "q.a", "val.end": "val.start"}


def packed(columns: Arrays) -> tuple[dict[str, NDArray[Any]], dict[str, Form]]:
    """The arrays to write for these columns, and the forms of those that are not written as they
    are.
    """
    arrays: dict[str, NDArray[Any]] = {}
    forms: dict[str, Form] = {}
    for name, column in columns.items():
        shorter = None
        if name not in MAPPED and LEAST <= len(column) <= MOST and column.dtype.kind in "iu":
            shorter = _derived(name, columns) or _short(name, column, columns)
        if shorter is None:
            arrays[name] = column
            continue
        form, parts = shorter
        forms[name] = {"dtype": column.dtype.str, "length": len(column), **form}
        arrays |= {f"{name}:{part}": array for part, array in parts.items()}
    return arrays, forms


Found = tuple[Form, dict[str, NDArray[Any]]]


def _derived(name: str, columns: Arrays) -> Found | None:
    """A column that others say already."""
    if name == "ent.name" and np.array_equal(columns[name], columns["ent.id"]):
        return {"form": "copy", "of": "ent.id"}, {}
    if name in ("ent.source", "ent.row"):
        same = np.array_equal(columns[name], _from_rows(name, len(columns[name]), columns))
        return ({"form": "rows"}, {}) if same else None
    if name == "st.row" and len(columns["ent.row"]):
        at = np.flatnonzero(columns[name] != _places(columns))
        if 4 * len(at) <= len(columns[name]):
            return {"form": "places"}, {"at": at.astype(np.int32), "rows": columns[name][at]}
    return None


def _short(name: str, column: NDArray[Any], columns: Arrays) -> Found | None:
    """A column by itself, in the shortest of the forms that are worth it."""
    changes = np.flatnonzero(column[1:] != column[:-1]) + 1
    if not len(changes):
        return {"form": "same", "value": int(column[0])}, {}
    if _RUN * len(changes) <= len(column):
        starts = np.append(0, changes)
        return {"form": "runs"}, {"starts": starts.astype(np.int32), "values": column[starts]}
    edges = columns[_GROUPED[name]].tolist() if name in _GROUPED else ()
    most, usual = _WORTH * column.nbytes, -1 if (column[:1024] == -1).any() else 0
    rare = column != usual
    sparse = int(rare.sum()) * column.itemsize + len(column) // 8
    beside = columns.get(_BESIDE.get(name, ""))
    if beside is not None or sparse > column.nbytes / 4:
        packed = pack(column, edges, beside)
        if packed.size < min(most, sparse):
            more = {} if beside is None else {"beside": _BESIDE[name]}
            return {"form": "blocks", **more}, {"how": packed.how, "numbers": packed.numbers, "body": packed.body}
    if sparse < most:
        return {"form": "sparse", "usual": usual}, {"where": np.packbits(rare), "values": column[rare]}
    return None


def _places(columns: Arrays) -> NDArray[Any]:
    """The row of the subject of each statement."""
    rows = columns["ent.row"]
    return np.concatenate([rows[columns["rel.s"]], rows[columns["att.s"]]])


def _from_rows(name: str, entities: int, columns: Arrays) -> NDArray[np.int32]:
    """The table (-1: none) or the row (0: none) of each entity."""
    key, of = columns["row.key"], columns["row.entity"]
    result = np.full(entities, -1 if name == "ent.source" else 0, np.int32)
    result[of] = key >> 32 if name == "ent.source" else key & (2**32 - 1)
    return result


class PackedFile(ArrayFile):
    """The columns of one file, in whatever form they are there. `get` and `view` are as those of
    `ArrayFile`; `names` are the columns, `size` and `verify` are of the file.
    """

    def __init__(self, path: Path, table: Mapping[str, ArrayEntry], forms: Mapping[str, Form]) -> None:
        super().__init__(path, table)
        self._forms = forms

    @property
    def names(self) -> list[str]:
        """The columns, packed ones last."""
        return [name for name in self._table if name.partition(":")[0] not in self._forms] + list(self._forms)

    def get(self, name: str) -> NDArray[Any]:
        """A column; read-only. Worked out at the first call where it is not there as it is."""
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
        """How many numbers a column has, without working it out."""
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
            rows = _places(_Columns(self))
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
# Many texts as bytes side by side: sorted by code point, put together in another order, and their
# CRC-32, by NumPy, eight bytes of all of them at once.
#
# Texts are UTF-8 in `data`, a byte array with `SPARE` more bytes behind the last text; each begins
# at one of `begins` and has one of `lengths` bytes. UTF-8 keeps the order of code points.


#: Bytes behind the last text, so that eight bytes can be read wherever a text has one.
SPARE: Final = 8
#: How often eight more bytes are compared before Python sorts what is still equal.
_ROUNDS: Final = 8
#: Texts of more bytes are left to zlib.
_LONGEST: Final = 64
#: Of so few texts Python is quicker.
_FEW_BYTES: Final = 256
#: Texts of more bytes, on average, are cut out one by one.
MEAN: Final = 40
#: Texts that are put together at once: what they take stays in the caches.
_SOME_BYTES: Final = 1 << 15
_WORD: Final = 8
#: The bytes of a word that the first so many bytes of a text fill, as a number, the first the highest.
_FIRST: Final = np.array([2**64 - (1 << 8 * (8 - size)) if size else 0 for size in range(9)], np.uint64)


def _words(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Eight bytes from each of some places, little-endian."""
    every = np.ndarray(len(data) - _WORD + 1, np.dtype("<u8"), data, 0, (1,))
    return every[at]


def _key(data: NDArray[np.uint8], begins: NDArray[np.int64], left: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The next bytes of texts that have so many left (0 or less: none), as numbers that order them."""
    words = _words(data, np.minimum(begins, len(data) - _WORD)).astype(np.uint64).byteswap()
    words &= _FIRST.take(left, mode="clip")
    return words


def sorted_texts(
    data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The places of texts in their order, and which of them, in that order, are not the text before;
    equal texts are in no certain order.
    """
    count = len(begins)
    if count <= _FEW_BYTES or (data[: len(data) - SPARE] == 0).any():
        # A text and the same with a zero behind have equal words.
        return _by_python(data, begins, lengths, np.arange(count), np.ones(count, bool))
    key = _key(data, begins, lengths)
    order = np.argsort(key)
    fresh = changed(key[order])
    # Where the texts that are still equal stand, and the group of equals of each.
    places, done = np.arange(count), 0
    for done in range(1, _ROUNDS + 1):
        places = _undecided(fresh, places, lengths[order[places]] > _WORD * done)
        if not len(places):
            return order, fresh
        some = order[places]
        group = np.cumsum(fresh[places], dtype=np.int32)
        key = _key(data, begins[some] + _WORD * done, lengths[some] - _WORD * done)
        by_key = np.argsort(key)
        within = by_key[in_order([group[by_key]])]
        order[places], key = some[within], key[within]
        fresh[places[1:]] |= key[1:] != key[:-1]
    places = _undecided(fresh, places, lengths[order[places]] > _WORD * (_ROUNDS + 1))
    return _by_python(data, begins, lengths, order, fresh, places) if len(places) else (order, fresh)


def _undecided(fresh: NDArray[np.bool_], places: NDArray[np.int64], longer: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The places, out of some whole groups of equals, whose groups have several texts, of which one
    is longer than what was compared.
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
    """The same, where texts at some places (None: all are one group) are sorted one by one within
    their groups.
    """
    places = np.arange(len(order)) if places is None else places
    some = order[places]
    group = np.cumsum(fresh[places]).tolist() if len(places) < len(order) else [0] * len(order)
    texts = [(of, text) for of, text in zip(group, _cut(data, begins[some], lengths[some]), strict=True)]
    by_text = sorted(range(len(texts)), key=texts.__getitem__)
    order = order.copy()
    order[places] = some[by_text]
    ordered = [texts[at] for at in by_text]
    fresh[places[1:]] = [one != before for one, before in zip(ordered[1:], ordered, strict=False)]
    return order, fresh


def _cut(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[bytes]:
    whole = data.tobytes()
    return [whole[low:high] for low, high in zip(begins.tolist(), (begins + lengths).tolist(), strict=True)]


def put_together(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Texts back to back, in the order in which they are given, with `SPARE` bytes behind them."""
    if lengths.sum() > MEAN * len(lengths):
        return np.frombuffer(b"".join(_cut(data, begins, lengths)) + bytes(SPARE), np.uint8)
    found = np.zeros(int(lengths.sum()) + SPARE, np.uint8)
    at = 0
    for first in range(0, len(begins), _SOME_BYTES):
        size = lengths[first : first + _SOME_BYTES]
        there = size > 0
        size, begin = size[there], begins[first : first + _SOME_BYTES][there]
        if not len(size):
            continue
        # One byte further each time, but from the end of a text to the beginning of the next.
        ends = np.cumsum(size)
        steps = np.ones(int(ends[-1]), np.int64)
        steps[0] = begin[0]
        steps[ends[:-1]] = begin[1:] - (begin[:-1] + size[:-1] - 1)
        data.take(np.cumsum(steps, out=steps), out=found[at : at + len(steps)], mode="clip")
        at += len(steps)
    return found


@cache
def _tables() -> tuple[NDArray[np.uint32], ...]:
    """What two bytes add to a CRC-32 that follows them by 0, 2, 4 and 6 bytes."""
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, (one >> 1) ^ np.uint32(0xEDB88320), one >> 1).astype(np.uint32)
    # By one byte more each: the first is of the byte itself.
    by_byte = [one]
    for _ in range(_WORD - 1):
        by_byte.append(one[by_byte[-1] & 255] ^ (by_byte[-1] >> np.uint32(8)))
    pairs = np.arange(1 << 16)
    return tuple(by_byte[at + 1][pairs & 255] ^ by_byte[at][pairs >> 8] for at in range(0, _WORD, 2))


def checksums(data: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The CRC-32 of each text, as `zlib.crc32` has it."""
    if len(begins) <= _FEW_BYTES:
        return np.array(list(map(zlib.crc32, _cut(data, begins, lengths))), np.uint32)
    long = np.flatnonzero(lengths > _LONGEST)
    most = int(np.minimum(lengths, _LONGEST).max(initial=0))
    # Without its start and end, a CRC is linear, and zeros in front change nothing: so texts are
    # taken as if they began at one place before they end, and what their lengths add is added.
    found = np.array([zlib.crc32(bytes(size)) for size in range(most + 1)], np.uint32).take(lengths, mode="clip")
    tables = _tables()
    ends = begins + lengths
    for first in range(0, len(begins), _SOME_BYTES):
        some = slice(first, first + _SOME_BYTES)
        size, end = lengths[some], ends[some]
        state = np.zeros(len(size), np.uint64)
        for left in range((most - 1) // _WORD, -1, -1):
            # Bytes before the text are made zero; there may be none to read before the first texts.
            at = end - _WORD * (left + 1)
            words = _words(data, np.maximum(at, 0)) << (np.maximum(-at, 0) * 8).clip(0, 63).astype(np.uint64)
            words &= _FIRST.take(size - _WORD * left, mode="clip")
            words ^= state
            pairs = words.astype("<u8", copy=False).view("<u2").reshape(-1, 4)
            low = tables[1][pairs[:, 2]] ^ tables[0][pairs[:, 3]]
            state = (tables[3][pairs[:, 0]] ^ tables[2][pairs[:, 1]] ^ low).astype(np.uint64)
        found[some] ^= state.astype(np.uint32)
    if len(long):
        found[long] = list(map(zlib.crc32, _cut(data, begins[long], lengths[long])))
    return found


def bytes_of(texts: list[str]) -> tuple[bytes, NDArray[Any]]:
    """Texts as bytes back to back, and how many each has. Raises UnicodeEncodeError for half of a
    surrogate pair.
    """
    joined = "".join(texts)
    data = joined.encode()
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if len(data) > len(joined):
        # From characters to bytes: each begins with a byte that continues none.
        ends = np.cumsum(lengths)
        raw = np.frombuffer(data, np.uint8)
        places = np.append(np.flatnonzero((raw & 0xC0) != 0x80), len(data))
        lengths = np.diff(places[np.append(0, ends)])
    return data, lengths


# -- the pool of texts -------------------------------------------------------------------------------
# The string pool: every distinct text of a graph once, sorted by code point, so that comparing
# numbers compares texts.
#
# Columns: `pool.bytes` (UTF-8 back to back), `pool.offsets` (one more than texts; 32 bits wide, 64
# where they have to be), and a hash index, `pool.buckets` and `pool.items`: the texts whose CRC-32 ends in the bits b are
# `items[buckets[b]:buckets[b + 1]]`. UTF-8 keeps code-point order, so the number of a text is its
# rank.


#: Up to this many texts, their places are looked up one by one.
_FEW: Final = 8
_SURROGATE: Final = re.compile("[\ud800-\udfff]").search
#: Texts that are read between two looks at the clock.
_SOME: Final = 1 << 15


def build_pool(
    texts: list[str], more: Sequence[tuple[NDArray[np.uint8], NDArray[np.int64]]] = ()
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32]]:
    """Lay out texts, each once, and `more` of them as bytes back to back, with their lengths.
    Returns the columns, and for each given text its number in the pool.
    """
    raw, lengths = bytes_of_texts(texts)
    data = np.concatenate([np.frombuffer(raw, np.uint8), *(one for one, _ in more), np.zeros(SPARE, np.uint8)])
    lengths = np.concatenate([lengths, *(sizes for _, sizes in more)])
    begins = np.cumsum(lengths) - lengths
    # What is there twice stands side by side: looking there is cheaper than looking each text up before.
    order, fresh = sorted_texts(data, begins, lengths)
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(fresh, dtype=np.int32) - 1
    kept = order[fresh]
    lengths = lengths[kept]
    data = put_together(data, begins[kept], lengths)
    offsets = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    hashes = checksums(data, offsets[:-1], lengths)
    data = data[: len(data) - SPARE]
    if len(data) < 2**31:
        offsets = offsets.astype(np.int32)
    size = buckets_of(len(kept))
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
    """Texts as bytes back to back, and how many each has; raises `LoadError` for half of a surrogate pair."""
    try:
        return bytes_of(texts)
    except UnicodeEncodeError:
        broken = next(text for text in texts if _SURROGATE(text))
        raise LoadError(f"a text holds half a surrogate pair, which is no character: {broken!r}") from None


def buckets_of(texts: int) -> int:
    """The number of buckets. Two or three texts share one: finer ones would cost more to keep than to tell apart."""
    return 1 << max(4, texts.bit_length() - 2)


class Pool:
    """The texts of an open snapshot. Numbers run from 0 to `len(pool) - 1`, in code-point order."""

    def __init__(self, arrays: ArrayFile) -> None:
        # Slices of what the array lies in are twice as fast as those of a view of it.
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
        """The texts of many numbers."""
        data, begin = self._bytes, self._begin
        if len(numbers) <= _FEW:
            offsets = self._offsets
            if self._blocks:
                for n in numbers.tolist():
                    self._blocks.need(offsets[n], offsets[n + 1])
            return [data[begin + offsets[n] : begin + offsets[n + 1]].decode() for n in numbers.tolist()]
        if len(numbers) > _SOME and current() is not None:
            return [text for some in pieces(numbers, _SOME) for text in self.take(some)]
        first, last = self._ends.take(numbers).astype(np.int64), self._ends[1:].take(numbers).astype(np.int64)
        if self._blocks:
            self._blocks.need_all(first, last)
        if begin:
            first += begin
            last += begin
        return [data[low:high].decode() for low, high in zip(first.tolist(), last.tolist(), strict=True)]

    def longer(self, size: int) -> NDArray[np.int64]:
        """The numbers of the texts of more than `size` bytes."""
        return np.flatnonzero(self._ends[1:] - self._ends[:-1] > size)

    def find(self, text: str) -> int:
        """The number of a text, or -1."""
        if not len(self):
            return -1
        try:
            key = text.encode()
        except UnicodeEncodeError:
            return -1
        slot = zlib.crc32(key) & self._mask
        offsets, begin = self._offsets, self._begin
        for at in range(self._buckets[slot], self._buckets[slot + 1]):
            number: int = self._items[at]
            if self._blocks:
                self._blocks.need(offsets[number], offsets[number + 1])
            if self._bytes[begin + offsets[number] : begin + offsets[number + 1]] == key:
                return number
        return -1

    def rank(self, text: str) -> int:
        """How many texts of the pool sort before this one, which need not be in it."""
        return bisect_left(range(len(self)), text.encode("utf-8", "surrogatepass"), key=self._raw)

    def _raw(self, number: int) -> bytes:
        if self._blocks:
            self._blocks.need(self._offsets[number], self._offsets[number + 1])
        return self._bytes[self._begin + self._offsets[number] : self._begin + self._offsets[number + 1]]
