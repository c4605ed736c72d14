"""From a loader's items to columns in load order: the first half of building a snapshot.

A `Builder` takes items one by one or in batches, and knows which source they come from and who
declares what; statements become NumPy chunks (`chunks`). `layout` sorts, joins equal statements and
makes the indexes. An append starts from the columns of the open snapshot, so that no source is read
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from operator import ne
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import LoadError
from condgraph.engine.facts import (
    MANY,
    Batch,
    Entity,
    EntityKind,
    Item,
    Many,
    Member,
    Rows,
    Source,
    Sourced,
    Statement,
    Subclass,
)
from condgraph.engine.origins import ALSO, check_source
from condgraph.engine.pieces import different
from condgraph.engine.snapshot.chunks import Chunks
from condgraph.engine.snapshot.collector import fewer_collections
from condgraph.engine.snapshot.declared import UNKNOWN, Declared

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: Single statements are gathered in lists, and turned into chunks when there are this many.
_FLUSH = 1 << 16
#: Numbers of statements, texts and entities are 32 bits wide.
_MOST = 2**31 - 1


class Builder(Chunks):
    """Gathers items. `begin` names the source of what follows; `add` takes items;
    `layout.lay_out(builder)` gives the columns.

    It begins with what `previous` holds, but for what only the sources `without` say. Such a source
    keeps its place among the others, which is empty until something comes from it again.
    """

    def __init__(self, previous: Snapshot | None = None, without: Iterable[str] = ()) -> None:
        super().__init__()
        #: The first name of each entity that has one, by which a second one is told.
        self.names: dict[int, str] = {}
        #: By source (-1: nobody knows which), what it declares of each entity: name (None: its id),
        #: kind and row (-1: none); and what the snapshot that this begins with has of that.
        self.declared: dict[int, dict[int, tuple[str | None, int, int]]] = {}
        self.seeded: Declared | None = None
        #: Rows of tables that were new when they came, by source: entities, names, rows.
        self.rows: list[tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]] = []
        self.sources: list[Source] = []
        self.source_numbers: dict[str, int] = {}
        self.warnings: list[str] = []
        #: Memberships one by one, and many at once, shape (memberships, 4): entity, concept,
        #: source, row.
        self.members: list[tuple[int, int, int, int]] = []
        self.many_members: list[NDArray[np.int64]] = []
        self.subclasses: list[tuple[int, int, int, int]] = []
        #: Sources whose content was taken away, and to which nothing was added since.
        self.emptied: set[int] = set()
        self._source = Source("")
        self._source_at, self._nobody = -1, True
        self._more_of: set[str] = set()
        #: Names of rows that are not among `names` yet.
        self._called: list[tuple[NDArray[np.int32], Sequence[str]]] = []
        #: Which entities are among `rows`; how many the snapshot that this begins with has.
        self._is_row, self._seeded = np.empty(0, bool), 0
        if previous is not None:
            previous.seed(self, without)
            self._seeded = len(self.entities)

    def added_to(self, names: Iterable[str]) -> None:
        """What comes from these sources is added to what is there of them, and takes the place of
        what is known of them.
        """
        self._more_of.update(names)

    def begin(self, source: Source) -> None:
        """Everything that follows comes from this source. A source of the same name is the same
        source; what comes from one without a name declares entities for nobody.

        It becomes a source of the graph with the first item that it gives.
        """
        self._source, self._source_at, self._nobody = source, -1, not source.name

    def _current(self) -> int:
        if self._source_at < 0:
            self._source_at = self._source_number(self._source)
        return self._source_at

    def _source_number(self, source: Source) -> int:
        number = self.source_numbers.setdefault(source.name, len(self.sources))
        if number == len(self.sources):
            self.sources.append(source)
        elif number in self.emptied:
            self.emptied.discard(number)
            self.sources[number] = source
        elif source.name in self._more_of:
            if source.format:
                self.sources[number] = source
        else:
            check_source(self.sources[number], source)
            # One that was added to holds more than what is read again.
            if (source.location or source.content or source.terms) and ALSO not in self.sources[number].content:
                self.sources[number] = source
        return number

    def add(self, items: Iterable[Item]) -> None:
        """Take all items of a loader; raises what the loader raises."""
        with fewer_collections():
            self._add(items)

    def _add(self, items: Iterable[Item]) -> None:
        pending = self._pending
        for item in items:
            if isinstance(item, Statement):
                pending.append((self.statements, self._current(), item))
                self.statements += 1
                if len(pending) >= _FLUSH:
                    self._flush()
            elif isinstance(item, MANY):
                self._add_many(item)
            elif isinstance(item, Entity):
                self._declare(item)
            elif isinstance(item, Member):
                self.members.append((self.entities[item.entity], self._concept(item.concept), self._current(), item.row))
            elif isinstance(item, Subclass):
                self.subclasses.append((self._concept(item.concept), self._concept(item.parent), self._current(), item.row))
            elif isinstance(item, Sourced):
                self._add_sourced(item)
            elif isinstance(item, Source):
                self._source_number(item)
            else:
                raise LoadError(f"{item!r} is no item of a condition graph")

    def finish(self) -> None:
        """Call when all items were added; raises `LoadError` for more than a graph can number."""
        self._flush()
        for what, size in (
            ("statements", self.statements),
            ("texts", len(self.texts) + self.spelled_texts),
            ("entities", len(self.entities)),
        ):
            if size >= _MOST:
                raise LoadError(f"a graph holds fewer than {_MOST:,} {what}, and this one has {size:,}")

    # -- entities ----------------------------------------------------------------------------------

    def _concept(self, ident: str) -> int:
        return self.entities[ident]

    def _declare(self, entity: Entity) -> None:
        # Without a source of its own, and in no named one, it is nobody's.
        source = UNKNOWN if self._nobody and entity.kind is not EntityKind.ROW else self._current()
        mine = self.declared.get(source)
        if mine is None:
            mine = self.declared[source] = {}
        number = self.entities[entity.id]
        name = None if entity.name == entity.id else entity.name
        if name is not None:
            for numbers, names in self._called:
                self.names.update(zip(numbers.tolist(), names, strict=True))
            self._called.clear()
            known = self.names.setdefault(number, name)
            if known != name:
                self.warnings.append(f"entity {entity.id!r} is called {known!r} and {name!r}; the first name stays")
        row = entity.row if entity.kind is EntityKind.ROW else -1
        before = mine.get(number)
        if before is None:
            mine[number] = name, int(entity.kind), row
        else:
            # Concepts win over rows, and rows over others: 1, 2, 0.
            kind = EntityKind.CONCEPT if EntityKind.CONCEPT in (before[1], entity.kind) else max(before[1], int(entity.kind))
            mine[number] = name if before[0] is None else before[0], int(kind), row if before[2] < 0 else before[2]

    def _declare_rows(self, rows: Rows) -> None:
        """Rows of a table. Those that are known by no one yet need not be looked at one by one."""
        before = len(self.entities)
        numbers = self._subjects(rows.ids)
        if len(self.entities) - before != len(rows) and not self._undeclared(numbers, before):
            for entity in rows.entities():
                self._declare(entity)
            return
        source = self._current()
        self.declared.setdefault(source, {})
        own = np.zeros(len(rows), bool)
        if rows.names is not rows.ids:
            own = np.fromiter(map(ne, rows.ids, rows.names), bool, len(rows))
        called = rows.names if own.all() else list(compress(rows.names, own))
        names = np.full(len(rows), -1, np.int32)
        names[own] = numbered = self._text_numbers(called)
        self._named = called, numbered
        self._called.append((numbers[own], list(called)))
        self.rows.append((source, numbers, names, np.asarray(rows.rows, np.int32)))
        if len(self._is_row) < len(self.entities):
            self._is_row = np.concatenate([self._is_row, np.zeros(len(self.entities), bool)])
        self._is_row[numbers] = True

    def _undeclared(self, numbers: NDArray[np.int32], before: int) -> bool:
        """Whether entities are all different, and what is known of them is that they are mentioned;
        `before` entities were known.
        """
        old = numbers[numbers < before]
        if (old < self._seeded).any() or self._is_row[old[old < len(self._is_row)]].any():
            return False
        if len(different(numbers)) < len(numbers):
            return False
        mentioned = set(old.tolist())
        return all(mine.keys().isdisjoint(mentioned) for mine in self.declared.values())

    # -- items side by side, and with sources of their own -----------------------------------------

    def _add_many(self, items: Many) -> None:
        if not len(items):
            return
        outer, nobody = self._source_at, self._nobody
        if items.source:
            self._source_at, self._nobody = self._source_number(Source(items.source)), False
        if isinstance(items, Batch):
            self._add_batch(items, self._current())
        elif isinstance(items, Rows):
            self._declare_rows(items)
        else:
            found = np.empty((len(items), 4), np.int64)
            found[:, 0], found[:, 1] = self._subjects(items.entities), self._concept(items.concept)
            found[:, 2], found[:, 3] = self._current(), items.rows
            self.many_members.append(found)
        if items.source:
            self._source_at, self._nobody = outer, nobody

    def _add_sourced(self, sourced: Sourced) -> None:
        item = sourced.item
        numbers = [(self._source_number(Source(name)), row) for name, row in sourced.sources]
        if not numbers:
            nobody, self._nobody = self._nobody, self._nobody or isinstance(item, Entity)
            self.add((item,))
            self._nobody = nobody
            return
        outer, nobody = self._source_at, self._nobody
        self._nobody = False
        if isinstance(item, Statement):
            self._source_at, row = numbers[0]
            self._more.extend((self.statements, source, at) for source, at in numbers[1:])
            self.add((item if item.row == row else replace(item, row=row),))
        else:
            for self._source_at, row in numbers:
                self.add((item if item.row == row else replace(item, row=row),))
        self._source_at, self._nobody = outer, nobody
