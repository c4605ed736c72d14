"""The keys of a table's rows and the cells that refer to them, which are compared when all are read: in memory, or
in files where a load is bounded.

Of a key that is in a file, twelve bytes stay in memory: a hash of 64 bits, and the place in the file. The hash
finds keys that may be equal, and their texts decide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import slices
from condgraph.engine.snapshot.pool import bytes_of_texts
from condgraph.engine.snapshot.spill import I32, SpilledFiles, SpilledTable, binary

#: Keys that are held before they are written to a file.
_HELD: Final = 1 << 16
#: Hashes that are sorted together.
_SORTED: Final = 1 << 22
#: Of keys that cells name, and that nothing says they refer to, so many are told.
_TOLD: Final = 3


class Seen(dict[str, int]):
    """The row of each key, in memory."""

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """The first row of each key, which is its own where the key is new."""
        return list(map(self.setdefault, keys, rows))

    def among(self, further: Collection[str]) -> Collection[str]:
        """All keys and some more, which cells are compared with."""
        return {*self, *further} if further else self


class Cells(dict[str, int]):
    """The different cells of a column, and the first row of each, in memory."""

    def add(self, cells: Sequence[str], rows: Sequence[int]) -> None:
        """Take cells."""
        deque(map(self.setdefault, cells, rows), 0)

    def count(self) -> int:
        """How many different ones there are."""
        return len(self)

    def that_are(self, keys: Any) -> tuple[int, list[str]]:
        """How many are keys, and the first of these by code point."""
        both = self.keys() & keys
        return len(both), sorted(both)[:_TOLD]

    def that_are_not(self, keys: Any) -> list[tuple[str, int]]:
        """Those that are no keys, with the first row of each, in their order."""
        return [(cell, row) for cell, row in self.items() if cell not in keys]


def _hashes(texts: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, texts), np.int64, len(texts))


class SpilledSeen:
    """The row of each key, in files."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files = files
        self._held: dict[str, int] = {}
        #: Sorted hashes, and where their keys are.
        self._runs: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self._read: tuple[NDArray[Any], ...] = ()
        self._texts = files.column("keys-texts", np.uint8)
        self._begins, self._rows = (files.column(f"keys-{name}", np.int64) for name in ("begins", "rows"))
        self._begins.add(np.zeros(1, np.int64))

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """The first row of each key, which is its own where the key is new."""
        written, hold = self._written(list(keys)), self._held.setdefault
        firsts = [written[at] if at in written else hold(key, row) for at, (key, row) in enumerate(zip(keys, rows, strict=True))]
        if len(self._held) >= _HELD:
            self._write()
        return firsts

    def _written(self, keys: list[str]) -> dict[int, int]:
        """The rows of those that are in the files, by their places among `keys`."""
        hashes, found = _hashes(keys), {}
        # Those that are sought one after the other are close to each other.
        order = np.argsort(hashes)
        hashes = hashes[order]
        for known, places in self._runs:
            low = known.searchsorted(hashes)
            for at in np.flatnonzero(known.take(low, mode="clip") == hashes).tolist():
                high = int(known.searchsorted(hashes[at], "right"))
                texts, begins, rows = self._read
                for place in places[low[at] : high].tolist():
                    if texts[begins[place] : begins[place + 1]].tobytes().decode() == keys[order[at]]:
                        found[int(order[at])] = int(rows[place])
        return found

    def _write(self) -> None:
        data, sizes = bytes_of_texts(list(self._held))
        hashes = _hashes(self._held)
        order = np.argsort(hashes)
        hashes, places = hashes[order], (self._rows.length + order).astype(I32)
        self._begins.add(self._texts.length + np.cumsum(sizes))
        self._texts.add(np.frombuffer(data, np.uint8))
        self._rows.add(np.fromiter(self._held.values(), np.int64, len(self._held)))
        self._held = {}
        # A run joins those before it that are not longer, so that there are few.
        while self._runs and len(self._runs[-1][0]) <= len(hashes) < _SORTED:
            before = self._runs.pop()
            hashes, places = np.concatenate([before[0], hashes]), np.concatenate([before[1], places])
            order = np.argsort(hashes, kind="stable")
            hashes, places = hashes[order], places[order]
        self._runs.append((hashes, places))
        self._read = self._texts.mapped(), self._begins.mapped(), self._rows.mapped()

    def __iter__(self) -> Iterator[str]:
        for part in slices(self._rows.length):
            texts, begins, _ = self._read
            ends = (begins[part.start : part.stop + 1] - begins[part.start]).tolist()
            data = texts[begins[part.start] : begins[part.stop]].tobytes()
            yield from (data[low:high].decode() for low, high in pairwise(ends))
        yield from self._held

    def among(self, further: Collection[str]) -> SpilledAmong:
        """All keys and some more, which cells are compared with."""
        return SpilledAmong(self._files, self, further)


class SpilledAmong:
    """All keys of a table, in a file that DuckDB reads."""

    def __init__(self, files: SpilledFiles, keys: Iterable[str], further: Collection[str]) -> None:
        self._keys, self._further = keys, further
        self.table = files.table("keys")
        for part in _parts(self):
            self.table.add({"key": _texts(part)})

    def __iter__(self) -> Iterator[str]:
        return chain(self._keys, self._further)


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for text in texts:
        part.append(text)
        if len(part) == _HELD:
            yield part
            part = []
    yield part


def _texts(texts: Sequence[str]) -> Any:
    return binary(*bytes_of_texts(list(texts)))


class SpilledCells:
    """The cells of a column and their rows, in a file."""

    def __init__(self, files: SpilledFiles, column: int) -> None:
        self._files, self._table = files, files.table(f"cells-{column}")

    def add(self, cells: Sequence[str], rows: Sequence[int]) -> None:
        """Take cells."""
        places = np.arange(self._table.rows, self._table.rows + len(cells))
        self._table.add({"cell": _texts(cells), "n": np.array(rows, np.int64), "place": places})

    def count(self) -> int:
        """How many different ones there are."""
        return next((row["n"] for row in self._found("SELECT count(DISTINCT cell) AS n FROM $0")), 0)

    def that_are(self, keys: Any) -> tuple[int, list[str]]:
        """How many are keys, and the first of these by code point."""
        query = "SELECT DISTINCT cell FROM $0 c SEMI JOIN $1 k ON c.cell = k.key ORDER BY cell"
        count, first = 0, []
        for row in self._found(query, keys.table):
            count += 1
            if count <= _TOLD:
                first.append(row["cell"].decode())
        return count, first

    def that_are_not(self, keys: Any) -> list[tuple[str, int]]:
        """Those that are no keys, with the first row of each, in their order."""
        query = "SELECT cell, arg_min(n, place) AS n FROM $0 c ANTI JOIN $1 k ON c.cell = k.key GROUP BY cell ORDER BY min(place)"
        return [(row["cell"].decode(), row["n"]) for row in self._found(query, keys.table)]

    def _found(self, query: str, *tables: SpilledTable) -> Iterator[dict[str, Any]]:
        if self._table.rows:
            for batch in self._files.rows(query, self._table, *tables):
                yield from batch.to_pylist()
