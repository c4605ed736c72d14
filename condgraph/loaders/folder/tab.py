"""One of several tables while they are read: how it is opened, what its columns are, its keys, and
the reading that its problems go to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, Protocol

import numpy as np

from condgraph.engine.bounds import check
from condgraph.engine.facts import Source
from condgraph.engine.values import collapse
from condgraph.loaders.base import Options, Reading
from condgraph.loaders.folder.arrow import ArrowCells
from condgraph.loaders.folder.declared import Declared
from condgraph.loaders.folder.keys import Columns, Key
from condgraph.loaders.table.column_types import Profile
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.joins import joined, plain, singular
from condgraph.loaders.table.rows import CELL_OPTIONS, Table, TableOptions, column_names, texts_option
from condgraph.loaders.table.text import Chunk, TextTable, warn_of_totals

#: The part of a name column's cells that have to be there, and to be different.
_THERE: Final = 0.9
_DIFFERENT: Final = 0.5


class Cells(Protocol):
    """A table as rows of texts, read as often as is asked."""

    headers: list[str]

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """The rows, with the fraction of the table read after each chunk; what is bad goes to
        `report` (None: it was reported before).
        """
        ...


#: Opens a table; what is bad about it goes to the reading.
OpenCells = Callable[[Reading], Cells]


class Tab:
    """One table: its cells, its columns, its keys.

    `location` is where it is, `form` the format its source says.
    """

    def __init__(self, name: str, location: str, form: str, reading: Reading, opens: OpenCells) -> None:
        self.name = name
        self.location = location
        self.source = Source(f"{reading.source.name}/{name}", location, form, reading.source.content)
        # Where several tables are in one place, a row alone says little.
        table = name if location == reading.source.location else None
        self.reading = Reading(self.source, reading.on_error, None, reading.problems, table=table)
        self.cells = opens(self.reading)
        self.names = column_names(self.cells.headers, self.reading)
        self.columns = Columns(name, self.names)
        self.name_column: int | None = None
        #: The predicate of rows that are relations, and the column that says it row by row.
        self.predicate = name
        self.type_column: int | None = None
        #: The ids of rows that other sources refer to by another one than theirs (`referred`).
        self.taken: dict[str, str] = {}
        self._indexes: dict[Key, dict[str, str]] = {}
        self._kept: list[Chunk] | None = None
        self._begun: Iterator[tuple[Chunk, float]] | None = None

    def begin(self, options: Options, declared: Declared) -> None:
        """Say how the cells are read; before anything else is asked."""
        given = declared.cells.get(self.name, {}) | {key: options[key] for key in CELL_OPTIONS if options.get(key) is not None}
        if types := declared.types.get(self.name):
            given["types"] = dict(types)
        self.table = Table(self.reading, TableOptions.of(given), self.names)
        further = {collapse(text).casefold() for text in texts_option(options, "missing")}
        said = declared.missing.get(self.name, {})
        self.missing = [
            frozenset({"", *further, *(collapse(text).casefold() for text in said[name])})
            if name in said
            else self.table.options.missing
            for name in self.names
        ]
        self.profiles = [Profile(missing) for missing in self.missing]

    def cells_of(self, at: int, column: Sequence[str]) -> list[str | None]:
        """The cells of a column as parts of keys; None where one is missing."""
        missing = self.missing[at]
        if not isinstance(column, Fields) or not column.collapsed:
            return [None if text.casefold() in missing else text for text in map(collapse, column)]
        found: list[str | None] = [*column.texts]
        for one in np.flatnonzero(column.perhaps(missing) | (column.lengths == 0)).tolist():
            text = collapse(column.texts[one])
            found[one] = None if text.casefold() in missing else text
        return found

    def keys(self, key: Key, chunk: Chunk) -> list[str | None]:
        """The keys of the rows of a chunk; None where a part is missing."""
        parts = [self.cells_of(one, chunk.columns[one]) for one in key]
        return parts[0] if len(parts) == 1 else list(map(joined, zip(*parts, strict=True)))

    def first(self, rows: int, *, alone: bool) -> tuple[list[list[str]], bool]:
        """The cells of the first rows, before the first pass, column by column, and whether there are
        no more rows; `alone` says that no more may be wanted.
        """
        # A file is opened once; of a database several results at once may be too many.
        kept = isinstance(self.cells, TextTable | ArrowCells) and not alone
        if isinstance(self.cells, TextTable) and alone:
            chunks = self.cells.chunks(None, self.names, rows + 1)
        else:
            chunks = self.cells.chunks(self.reading if kept else None, self.names)
        heads: list[tuple[Chunk, float]] = []
        columns: list[list[str]] = [[] for _ in self.names]
        seen = 0
        while seen <= rows and (head := next(chunks, None)) is not None:
            heads.append(head)
            few = np.arange(max(0, min(rows - seen, len(head[0].numbers))))
            for mine, column in zip(columns, head[0].columns, strict=True):
                mine += column.some(few) if isinstance(column, Fields) else column[: len(few)]
            seen += len(head[0].numbers)
        if kept:
            self._begun = chain(heads, chunks)
        return columns, seen <= rows

    def first_pass(self) -> Iterator[Chunk]:
        """All rows, for the first time; problems go to the reading."""
        chunks, self._begun = self._begun or self.cells.chunks(self.reading, self.names), None
        for chunk, _ in chunks:
            yield chunk

    def survey(self, keys: set[Key], room: int = 0) -> int:
        """The first pass: what the columns look like, and the values of those that may be keys. A
        table of at most `room` cells stays in memory; how many cells do.
        """
        kept: list[Chunk] | None = []
        cells, last = 0, None
        self.columns.values.update((key, set()) for key in keys)
        for chunk in self.first_pass():
            check()
            for at, column in enumerate(chunk.columns):
                self.profiles[at].add(column)
            for key in keys:
                self.columns.add(key, self.keys(key, chunk))
            self.columns.rows += len(chunk.numbers)
            last = chunk
            cells += len(chunk.numbers) * len(self.names)
            if kept is not None:
                kept.append(chunk)
                if cells > room:
                    kept = None
        if last is not None:
            warn_of_totals(self.names, last, self.reading)
        delimiter = self.cells.layout.delimiter if isinstance(self.cells, TextTable) else ","
        self.table.look_for_commas(dict(enumerate(self.profiles)), delimiter)
        self._kept = kept
        return 0 if kept is None else cells

    def again(self) -> Iterator[Chunk]:
        """The rows once more, after the first pass."""
        if self._kept is not None:
            yield from self._kept
        else:
            for chunk, _ in self.cells.chunks(None, self.names):
                yield chunk

    def forget(self) -> None:
        """Call when the rows are not asked for again."""
        self._kept = None

    def index(self, key: Key) -> None:
        """Read the table once more, to know its rows by a key that is not its own."""
        if key == self.columns.primary or key in self._indexes:
            return
        found = self._indexes.setdefault(key, {})
        primary = self.columns.primary
        for chunk in self.again():
            own = chunk.numbers if primary is None else self.keys(primary, chunk)
            for one, text in zip(own, self.keys(key, chunk), strict=True):
                if text is not None and one is not None:
                    found.setdefault(text, f"{self.name}/{one}")

    def row_of(self, key: Key, text: str) -> str | None:
        """The id of the row that has a key; None where there is none."""
        if key == self.columns.primary:
            found = f"{self.name}/{text}" if text in self.columns.values[key] else None
        else:
            found = self._indexes[key].get(text)
        return found if found is None else self.taken.get(found, found)

    def find_name(self) -> int | None:
        """The column that names the rows: of text, called like a name, mostly there and mostly
        different.
        """
        stem = singular(plain(self.name))
        ranked = sorted(
            (rank, at)
            for at, name in enumerate(self.names)
            if self.columns.reference(at) is None and (rank := _name_rank(plain(name), stem)) is not None
        )
        for _, at in ranked:
            if self.profiles[at].decide(self.names[at]).kind == "text" and _unique_enough(self.profiles[at], self.columns.rows):
                return at
        return None


def _name_rank(column: str, stem: str) -> int | None:
    if column in (stem + "name", stem + "title"):
        return 0
    if column in ("name", "title", "label"):
        return 1
    return 2 if column.endswith(("name", "title")) else None


def _unique_enough(profile: Profile, rows: int) -> bool:
    # The profile counts distinct texts once a chunk, which is enough for a rule of thumb.
    cells = sum(some for some, _ in profile.shapes.values())
    distinct = sum(different for _, different in profile.shapes.values())
    return rows > 0 and cells >= _THERE * rows and distinct >= _DIFFERENT * rows
