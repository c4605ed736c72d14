"""What the rows of one of several tables say, a chunk at a time and column by column: their ids,
their references, their values.

Clean columns of text files are read whole (`table.whole`), the others cell by cell; problems are
told in the order in which the rows stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import add
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from condgraph.engine.facts import Batch, Ids, Ref, Texts
from condgraph.engine.values import Value
from condgraph.loaders.folder.keys import Reference
from condgraph.loaders.folder.tab import Tab
from condgraph.loaders.table.column_types import Cell
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.rows import column_of, read_whole
from condgraph.loaders.table.text import Chunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tabs: TypeAlias = Mapping[str, Tab]
Columns: TypeAlias = Sequence[Sequence[str]]


class Problems:
    """The problems of a chunk, found column by column."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, bool, str, int, str | None]] = []

    def add(self, at: int, rank: int, message: str, number: int, field: str | None, *, bad: bool = False) -> None:
        """Something about the row at a place of the chunk; of one row the lowest rank is told first."""
        self._found.append((at, rank, bad, message, number, field))

    def tell(self, tab: Tab) -> None:
        """Tell them, row by row; raises what is bad where that is wanted."""
        for _, _, bad, message, number, field in sorted(self._found, key=lambda one: one[:2]):
            (tab.reading.bad if bad else tab.reading.warn)(message, row=number, field=field)


class Found(dict[str | None, str | tuple[str, ...] | None]):
    """The rows that keys of a reference stand for, looked up once each: one id, or several, or
    none; None where the key is missing.
    """

    def __init__(self, tabs: Tabs, reference: Reference) -> None:
        self.tabs, self.reference = tabs, reference

    def __missing__(self, text: str | None) -> str | tuple[str, ...] | None:
        self[text] = found = None if text is None else self._look(text)
        return found

    def _look(self, text: str) -> str | tuple[str, ...]:
        spelled = self.reference.spelled(text)
        if len(self.reference.targets) == 1:
            target, key = self.reference.targets[0]
            return self.tabs[target].row_of(key, spelled) or ()
        found = (self.tabs[target].row_of(key, spelled) for target, key in self.reference.targets)
        rows = tuple(dict.fromkeys(one for one in found if one is not None))
        return rows[0] if len(rows) == 1 else rows

    def at_once(self, keys: Sequence[str | None]) -> list[str] | None:
        """The rows that many keys stand for, each one; None where they have to be looked up one by
        one.
        """
        (target, key), *others = self.reference.targets
        tab = self.tabs[target]
        if others or self.reference.pointed or tab.taken or key != tab.columns.primary:
            return None
        if not tab.columns.values[key].issuperset(cast("Sequence[str]", keys)):
            return None
        return list(map(add, repeat(f"{target}/"), cast("Sequence[str]", keys)))

    def said(self, text: str) -> str:
        """What there is to say of a key that is none."""
        return f"{text!r} is no key of " + " or ".join(repr(target) for target, _ in self.reference.targets)


class RowIds:
    """The ids of the rows of a table, by their keys."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self._seen: dict[str, int] = {}

    def of(self, chunk: Chunk, problems: Problems) -> tuple[tuple[str, ...], list[int] | None]:
        """The ids of the rows of a chunk, and their places there (None: all); a row whose key is
        missing or repeated is bad.
        """
        ids, kept = self._own(chunk, problems)
        taken = self.tab.taken
        return (tuple([taken.get(one, one) for one in ids]) if taken else ids), kept

    def _own(self, chunk: Chunk, problems: Problems) -> tuple[tuple[str, ...], list[int] | None]:
        """The same, of rows that nothing referred to before."""
        tab, key = self.tab, self.tab.columns.primary
        if key is None:
            return tuple([f"{tab.name}/{number}" for number in chunk.numbers]), None
        keys = tab.keys(key, chunk)
        if tab.columns.unique(key):
            return tuple(map(add, repeat(f"{tab.name}/"), cast("list[str]", keys))), None
        if None not in set(keys):
            ids = tuple(map(add, repeat(f"{tab.name}/"), cast("list[str]", keys)))
            new = dict(zip(ids, chunk.numbers, strict=True))
            if len(new) == len(ids) and self._seen.keys().isdisjoint(new.keys()):
                self._seen.update(new)
                return ids, None
        return self._one_by_one(keys, chunk.numbers, " + ".join(tab.names[column] for column in key), problems)

    def _one_by_one(
        self, keys: Sequence[str | None], numbers: Sequence[int], header: str, problems: Problems
    ) -> tuple[tuple[str, ...], list[int]]:
        found: list[str] = []
        kept: list[int] = []
        for at, (key, number) in enumerate(zip(keys, numbers, strict=True)):
            if key is None:
                problems.add(at, 0, "the row has no key", number, header, bad=True)
                continue
            one = f"{self.tab.name}/{key}"
            first = self._seen.setdefault(one, number)
            if first != number:
                problems.add(at, 0, f"the key {key!r} stands in row {first} already", number, header, bad=True)
                continue
            found.append(one)
            kept.append(at)
        return tuple(found), kept


class Rest:
    """The rows of a chunk that are read, without those that are bad: their places in it, their
    numbers, their columns.
    """

    def __init__(self, chunk: Chunk, kept: list[int] | None) -> None:
        self.chunk, self._kept = chunk, kept
        self.places: Sequence[int] = range(len(chunk.numbers)) if kept is None else kept
        self.numbers = chunk.numbers if kept is None else [chunk.numbers[at] for at in kept]
        self.rows: NDArray[np.int32] = np.asarray(self.numbers, np.int32)

    def column(self, at: int) -> Sequence[str]:
        """The cells of a column."""
        column = self.chunk.columns[at]
        return column if self._kept is None else [column[one] for one in self._kept]

    def keys(self, tab: Tab, key: tuple[int, ...]) -> list[str | None]:
        """The keys in some columns."""
        keys = tab.keys(key, self.chunk)
        return keys if self._kept is None else [keys[one] for one in self._kept]


class Pointer:
    """A reference of a table: from keys in its columns to rows of others. `rank` is its place among
    the references of a row.
    """

    def __init__(self, tab: Tab, tabs: Tabs, reference: Reference, rank: int) -> None:
        self.tab, self.reference, self.rank = tab, reference, rank
        self.found = Found(tabs, reference)
        self.header = " + ".join(tab.names[at] for at in reference.columns)

    def batches(self, ids: Sequence[str], rest: Rest, problems: Problems) -> Iterator[Batch]:
        """What the reference says of some rows."""
        source = self.tab.source.name
        keys = rest.keys(self.tab, self.reference.columns)
        every = self.found.at_once(keys)
        found = list(map(self.found.__getitem__, keys)) if every is None else []
        if every is None and set(map(type, found)) == {str}:
            every = cast("list[str]", found)
        if every is not None:
            if every:
                yield Batch(ids, self.header, Ids(every), cast("Sequence[int]", rest.rows), source=source)
            return
        things: list[tuple[str, str, int]] = []
        texts: list[tuple[str, str, int, str | None]] = []
        for at, (key, rows) in enumerate(zip(keys, found, strict=True)):
            if key is None or rows is None:
                continue
            number = rest.numbers[at]
            things += [(ids[at], one, number) for one in ((rows,) if isinstance(rows, str) else rows)]
            if not isinstance(rows, str):
                self._tell(key, rows, rest.places[at], number, problems)
                if not rows and len(self.reference.columns) == 1:
                    cell = rest.column(self.reference.columns[0])[at]
                    texts.append((ids[at], key, number, None if key == cell else cell))
        if things:
            subjects, objects, numbers = zip(*things, strict=True)
            yield Batch(subjects, self.header, Ids(objects), numbers, source=source)
        if texts:
            subjects, values, numbers, raws = zip(*texts, strict=True)
            yield Batch(subjects, self.header, Texts(values), numbers, raws, source=source)

    def qualify(self, qualifiers: Sequence[list[tuple[str, Ref | Value]]], rest: Rest, problems: Problems) -> None:
        """Add what the reference says of some rows to their qualifiers."""
        for at, key in enumerate(rest.keys(self.tab, self.reference.columns)):
            rows = self.found[key]
            if key is None or rows is None:
                continue
            if isinstance(rows, str):
                qualifiers[at].append((self.header, Ref(rows)))
                continue
            self._tell(key, rows, rest.places[at], rest.numbers[at], problems)
            qualifiers[at].extend((self.header, thing) for thing in (map(Ref, rows) if rows else (key,)))

    def end(self, key: str | None, at: int, number: int, problems: Problems) -> str | None:
        """The row at an end of a relation; None where there is none, or several, which is bad."""
        found = self.found[key]
        if isinstance(found, str):
            return found
        said = "the key is missing" if key is None else self.found.said(key)
        if found:
            said = f"{key!r} is a key of several tables: {' and '.join(found)}"
        said += ", so that there is nothing to relate"
        problems.add(at, self.rank, said, number, self.header, bad=True)
        return None

    def _tell(self, key: str, rows: Sequence[str], at: int, number: int, problems: Problems) -> None:
        """Say that a key stands for several rows, or for none."""
        if rows:
            message = f"{key!r} is a key of several tables, and stands for {' and '.join(rows)}"
        else:
            kept = "the cell is kept as text" if len(self.reference.columns) == 1 else "the cells are kept"
            message = f"{self.found.said(key)}; {kept}"
        problems.add(at, self.rank, message, number, self.header)


class Values:
    """How the columns of a table that are no references are read."""

    def __init__(self, tab: Tab, skipped: frozenset[int]) -> None:
        self.tab = tab
        self.types = {at: tab.table.decide(at, profile) for at, profile in enumerate(tab.profiles) if at not in skipped}
        self._readers: dict[int, Callable[[str], Cell | None]] = {at: one.reader() for at, one in self.types.items()}
        self._texts: dict[int, list[int]] = {}

    def batches(self, ids: Sequence[str], rest: Rest) -> Iterator[Batch]:
        """What the cells say of some rows."""
        for at in self.types:
            batch = self._whole(at, ids, rest)
            if batch is None:
                batch = self._batch(at, ids, rest)
            if len(batch):
                yield batch

    def _whole(self, at: int, ids: Sequence[str], rest: Rest) -> Batch | None:
        column = rest.column(at)
        found = read_whole(column, self.types[at]) if isinstance(column, Fields) else None
        if found is None:
            return None
        objects, raws, there = found
        rows = rest.rows
        if not there.all():
            ids, rows = list(compress(ids, there)), rows[there]
        return Batch(ids, self.tab.names[at], objects, cast("Sequence[int]", rows), raws, source=self.tab.source.name)

    def _batch(self, at: int, ids: Sequence[str], rest: Rest) -> Batch:
        column, numbers = rest.column(at), rest.numbers
        if self.types[at].lists:
            places, column = self.types[at].elements(column)
            ids, numbers = [ids[one] for one in places], [numbers[one] for one in places]
        cells = self.read(at, column, numbers)
        if None in cells:
            there = [cell is not None for cell in cells]
            ids, numbers = list(compress(ids, there)), list(compress(numbers, there))
        values = [cell[0] for cell in cells if cell is not None]
        raws = [cell[1] for cell in cells if cell is not None]
        return Batch(ids, self.tab.names[at], column_of(values), numbers, raws, source=self.tab.source.name)

    def read(self, at: int, column: Sequence[str], numbers: Sequence[int]) -> list[Cell | None]:
        """The cells of a column one by one; which of them are not what the column is, is remembered."""
        chosen = self.types[at]
        # The memory of a reader costs more than it saves where cells rarely come again.
        read = chosen.read if len(set(column)) * 2 > len(column) else self._readers[at]
        cells = list(map(read, column))
        if chosen.kind != "text":
            texts = [number for number, cell in zip(numbers, cells, strict=True) if cell is not None and isinstance(cell[0], str)]
            if texts:
                self._texts.setdefault(at, []).extend(texts)
        return cells

    def qualifiers(self, rest: Rest) -> list[list[tuple[str, Ref | Value]]]:
        """The values of some rows, by header, as qualifiers."""
        found: list[list[tuple[str, Ref | Value]]] = [[] for _ in rest.numbers]
        for at in self.types:
            header = self.tab.names[at]
            places, column = self.types[at].elements(rest.column(at))
            cells = self.read(at, column, [rest.numbers[one] for one in places])
            for one, cell in zip(places, cells, strict=True):
                if cell is not None:
                    found[one].append((header, cell[0]))
        return found

    def warn(self) -> None:
        """Say which cells are not what their columns are, in the order in which they stand."""
        for position, rows in sorted(self._texts.items(), key=lambda one: (one[1][0], one[0])):
            kind = {"number": "numbers", "time": "times"}.get(self.types[position].kind, "clock times")
            stay = f"{len(rows)} cells stay" if len(rows) > 1 else "a cell stays"
            self.tab.reading.warn(f"{stay} text in a column of {kind}", row=rows[0], field=self.tab.names[position])
