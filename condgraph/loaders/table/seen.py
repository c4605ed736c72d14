"""The keys of a table's rows and the cells that refer to them: in memory, or in files where a load is bounded.

Of a key that is in a file, twelve bytes stay in memory: a hash of 64 bits, and the place in the file. The hash
finds keys that may be equal, and their texts decide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import chain, islice, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.pieces import slices
from condgraph.engine.snapshot.container import released
from condgraph.engine.snapshot.pool import bytes_of_texts
from condgraph.engine.snapshot.spill import I32, SpilledColumn, SpilledFiles, SpilledTable, binary

#: Keys that are held before they are written to a file.
_HELD: Final = 1 << 16
#: Keys that stay in memory where no more come.
_FEW: Final = 1 << 10
#: Hashes that are sorted together.
_SORTED: Final = 1 << 22
_NUMBERS: Final = (("begins", np.int64), ("rows", np.int64))
#: Of keys that cells name, and that nothing says they refer to, so many are told.
_TOLD: Final = 3
#: Texts that are no keys, of which so many are compared with keys that are nearly equal.
MOST_LOST: Final = 100_000


def seen_by(files: SpilledFiles | None) -> Seen | SpilledSeen:
    """The row of each key, in memory, or in the files of a bounded load."""
    return Seen() if files is None else SpilledSeen(files)


def values_by(files: SpilledFiles | None) -> Values | SpilledValues:
    """The different texts of a column, in memory, or in the files of a bounded load."""
    return Values() if files is None else SpilledValues(files)


class Seen(dict[str, int]):
    """The row of each key, in memory."""

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """The first row of each key, which is its own where the key is new."""
        return list(map(self.setdefault, keys, rows))

    def rows(self, keys: Sequence[str]) -> list[int | None]:
        """The row of each key; None where there is none."""
        return list(map(self.get, keys))

    def among(self, further: Iterable[str]) -> Collection[str]:
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

    def that_are_not(self, keys: Any) -> Iterator[tuple[str, int]]:
        """Those that are no keys, with the first row of each, in their order."""
        return ((cell, row) for cell, row in self.items() if cell not in keys)


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

    @cached_property
    def _columns(self) -> tuple[SpilledColumn, ...]:
        """The texts, where each begins, and the rows."""
        name = self._files.fresh("keys")
        columns = [self._files.column(f"{name}-{part}", dtype) for part, dtype in (("texts", np.uint8), *_NUMBERS)]
        columns[1].add(np.zeros(1, np.int64))
        return tuple(columns)

    def __len__(self) -> int:
        return sum(len(places) for _, places in self._runs) + len(self._held)

    def firsts(self, keys: Sequence[str], rows: Sequence[int]) -> list[int]:
        """The first row of each key, which is its own where the key is new."""
        written, hold = self._written(keys), self._held.setdefault
        firsts = [written[at] if at in written else hold(key, row) for at, (key, row) in enumerate(zip(keys, rows, strict=True))]
        if len(self._held) >= _HELD:
            self._write()
        return firsts

    def rows(self, keys: Sequence[str]) -> list[int | None]:
        """The row of each key; None where there is none."""
        written, held = self._written(keys), self._held.get
        return [written[at] if at in written else held(key) for at, key in enumerate(keys)]

    def end(self) -> None:
        """Say that no more keys come soon: they are written to the files, but for few."""
        if len(self._held) > _FEW:
            self._write()

    def _written(self, keys: Sequence[str]) -> dict[int, int]:
        """The rows of those that are in the files, by their places among `keys`."""
        found: dict[int, int] = {}
        if not self._runs:
            return found
        hashes = _hashes(keys)
        # Those that are sought one after the other are close to each other.
        order = np.argsort(hashes)
        hashes = hashes[order]
        texts, begins, rows = self._read
        for known, places in self._runs:
            low = known.searchsorted(hashes)
            for at in np.flatnonzero(known.take(low, mode="clip") == hashes).tolist():
                key, place = keys[order[at]].encode("utf-8", "surrogatepass"), int(low[at])
                while place < len(known) and known[place] == hashes[at]:
                    text = places[place]
                    if texts[begins[text] : begins[text + 1]].tobytes() == key:
                        found[int(order[at])] = int(rows[text])
                    place += 1
        for column in self._read:
            released(column)
        return found

    def _write(self) -> None:
        data, sizes = bytes_of_texts(list(self._held))
        hashes = _hashes(self._held)
        order = np.argsort(hashes)
        texts, begins, rows = self._columns
        hashes, places = hashes[order], (rows.length + order).astype(I32)
        begins.add(texts.length + np.cumsum(sizes))
        texts.add(np.frombuffer(data, np.uint8))
        rows.add(np.fromiter(self._held.values(), np.int64, len(self._held)))
        self._held = {}
        # A run joins those before it that are not longer, so that there are few.
        while self._runs and len(self._runs[-1][0]) <= len(hashes) < _SORTED:
            before = self._runs.pop()
            hashes, places = np.concatenate([before[0], hashes]), np.concatenate([before[1], places])
            order = np.argsort(hashes, kind="stable")
            hashes, places = hashes[order], places[order]
        self._runs.append((hashes, places))
        self._read = tuple(column.mapped() for column in self._columns)

    def __iter__(self) -> Iterator[str]:
        for part in slices(len(self) - len(self._held)):
            texts, begins, _ = self._read
            ends = (begins[part.start : part.stop + 1] - begins[part.start]).tolist()
            data = texts[begins[part.start] : begins[part.stop]].tobytes()
            yield from (data[low:high].decode() for low, high in pairwise(ends))
            released(texts)
        yield from self._held

    def among(self, further: Iterable[str]) -> SpilledAmong:
        """All keys and some more, which cells are compared with."""
        return SpilledAmong(self._files, self, further)


class SpilledAmong:
    """All keys of a table, in a file that DuckDB reads."""

    def __init__(self, files: SpilledFiles, keys: Iterable[str], further: Iterable[str]) -> None:
        self._keys, self._further = keys, further
        self.table = files.table("keys")
        for part in parts(self):
            self.table.add({"key": _texts(part)})

    def __iter__(self) -> Iterator[str]:
        return chain(self._keys, self._further)


def parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts as lists of some length."""
    rest = iter(texts)
    while part := list(islice(rest, _HELD)):
        yield part


def _texts(texts: Sequence[str]) -> Any:
    return binary(*bytes_of_texts(list(texts)))


class SpilledCells:
    """The cells of a column and their rows, in a file."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files, self._table = files, files.table(files.fresh("cells"))

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

    def that_are_not(self, keys: Any) -> Iterator[tuple[str, int]]:
        """Those that are no keys, with the first row of each, in their order."""
        query = "SELECT cell, arg_min(n, place) AS n FROM $0 c ANTI JOIN $1 k ON c.cell = k.key GROUP BY cell ORDER BY min(place)"
        return ((row["cell"].decode(), row["n"]) for row in self._found(query, keys.table))

    def _found(self, query: str, *tables: SpilledTable) -> Iterator[dict[str, Any]]:
        if self._table.rows:
            for batch in self._files.rows(query, self._table, *tables):
                yield from batch.to_pylist()


class Values(set[str]):
    """The different texts of a column, in memory."""

    def take(self, texts: Iterable[str]) -> int:
        """Take texts; how many are new."""
        before = len(self)
        self.update(texts)
        return len(self) - before

    def end(self) -> None:
        """Say that no more texts come."""

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Which of some texts are here."""
        return list(map(self.__contains__, texts))

    def holds_all(self, texts: Sequence[Any]) -> bool:
        """Whether all of some texts are here."""
        return self.issuperset(texts)

    def inside(self, other: Any) -> int:
        """How many are in another column too."""
        return len(self & other)

    def beyond(self, other: Any) -> list[str]:
        """The first by code point of those that are not in another column, and no more than are looked at."""
        return nsmallest(MOST_LOST + 1, self - other)

    def spelled(self, how: Callable[[str], str]) -> Values:
        """The same in another spelling."""
        return Values(map(how, self))


class SpilledValues:
    """The different texts of a column, in files."""

    def __init__(self, files: SpilledFiles) -> None:
        self._files, self._seen = files, SpilledSeen(files)
        #: How many are in others, which have so many.
        self._inside: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def take(self, texts: Iterable[str]) -> int:
        """Take texts; how many are new."""
        before = len(self)
        for part in parts(texts):
            self._seen.firsts(part, range(len(part)))
        return len(self) - before

    def end(self) -> None:
        """Say that no more texts come."""
        self._seen.end()

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Which of some texts are here."""
        return [row is not None for row in self._seen.rows(texts)]

    def holds_all(self, texts: Sequence[Any]) -> bool:
        """Whether all of some texts are here."""
        return None not in texts and all(self.holds(texts))

    def inside(self, other: Any) -> int:
        """How many are in another column too."""
        key = id(other), len(other)
        if key not in self._inside:
            self._inside[key] = sum(sum(other.holds(part)) for part in parts(self))
        return self._inside[key]

    def beyond(self, other: Any) -> list[str]:
        """The first by code point of those that are not in another column, and no more than are looked at."""
        lost = (text for part in parts(self) for text, there in zip(part, other.holds(part), strict=True) if not there)
        return nsmallest(MOST_LOST + 1, lost)

    def spelled(self, how: Callable[[str], str]) -> SpilledValues:
        """The same in another spelling."""
        result = SpilledValues(self._files)
        result.take(map(how, self))
        return result
