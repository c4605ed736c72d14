"""Which ids the rows of a table have by their keys, and which entities the cells of its columns of
references are; what is said of references to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from condgraph.engine.errors import shortened
from condgraph.engine.facts import Batch, Ids, Item, Numbers, Texts
from condgraph.engine.values import NO_UNIT, collapse
from condgraph.loaders.base import Options, Read, Reading
from condgraph.loaders.folder.keys import CONTAINED
from condgraph.loaders.folder.spelling import is_number
from condgraph.loaders.table.fields import Fields
from condgraph.loaders.table.joined_columns import Meeting, To, called_alike

#: Cells of a column that are looked at to see whether they are keys of a table.
_FIRST: Final = 1000
#: References to nothing that are said of one column.
_MOST_SAID: Final = 1000


class Keys:
    """The ids of the rows of a table that is read, by their keys."""

    def __init__(self, meeting: Meeting, key: str, table: str, warn: Callable[..., None]) -> None:
        self._meeting, self._table, self._warn, self._key = meeting, table, warn, key
        self._former = meeting.former
        self._there = meeting.referred(key, table)

    def ids_of(self, keys: Sequence[str], rows: Sequence[int]) -> list[str]:
        """The ids of rows."""
        if self._former or self._there:
            return list(map(self.id_of, keys, rows))
        return list(map(f"{self._table}/".__add__, keys))

    def id_of(self, key: str, row: int | None = None) -> str:
        """The id of a row: the one it has already, or that by which it is referred to."""
        ident = self._former.get(key)
        if ident is None:
            ident = f"{self._table}/{key}"
            if key not in self._there:
                return ident
            if not self._meeting.holds(ident):
                return key
        if row is not None and ident != key and key in self._there:
            self._warn(
                f"{ident!r} is referred to, and so is an entity {key!r} of its own, by a column that is called alike "
                "(join= for that says that it is this row)",
                row=row,
                field=self._key,
            )
        return ident


class Targets:
    """Which entities the cells of one column of references are; `own`: those of the table itself."""

    def __init__(self, meeting: Meeting, column: str, to: To | None, warn: Callable[..., None], own: Keys | None = None) -> None:
        self._warn, self._meeting, self._own = warn, meeting, own
        self.column = column
        self.key = ""
        self.known: Mapping[str, str] = {}
        self.table: str | None = None
        self._joined = to is not None
        if to is not None:
            self.table, self.key = to
            if own is None:
                self.table = meeting.called(to.table)
                meeting.check(self.table, to.key, column)
                self.known = meeting.rows(self.table)
        else:
            tables = meeting.tables(column)
            if len(tables) > 1:
                named = ", ".join(tables[:5])
                warn(
                    f"this may refer to rows of several tables ({named}); its cells are entities named by them (join= says which)",
                    field=column,
                )
            elif tables:
                self.table = tables[0]
                self.known = meeting.rows(tables[0])
        #: The cells of a column that refers to no table.
        self._named: set[str] = set()
        #: What cells are that are no keys, and where the first of them stand.
        self._others: dict[str, str] = {}
        self._first: dict[str, int] = {}

    def ids(self, cells: Sequence[str], rows: Sequence[int]) -> Sequence[str]:
        """The ids of what cells refer to; says which are not there."""
        if self.table is None:
            self._named.update(cells)
            return cells
        known, others = self.known, self._others
        for cell, row in zip(cells, rows, strict=True):
            if cell not in known and cell not in others:
                others[cell] = self._other(cell)
                if self._own is not None:
                    self._first[cell] = row
                elif len(others) <= _MOST_SAID and (known or len(others) == 1):
                    # Said once of a table that may follow.
                    self._say(cell, row, "" if known else ", which is not loaded yet")
        return [known.get(cell) or others[cell] for cell in cells]

    def _other(self, cell: str) -> str:
        if self._own is not None:
            return self._own.id_of(cell)
        if self._joined:
            return self._meeting.place(self.table or "", self.key, cell)
        ident = self._meeting.ident(self.table or "", cell)
        return ident if self._meeting.holds(ident) else cell

    def _say(self, cell: str, row: int, more: str = "") -> None:
        self._warn(f"{cell!r} is no key of {self.table!r}{more}", row=row, field=self.column)

    def finish(self, keys: Collection[str]) -> None:
        """Say which cells that refer to rows of the table itself are no keys of it, and which are keys
        of it although nothing says that they refer to them (Singapore is the capital of Singapore,
        and a manager is an employee: only people know which of the two it is).
        """
        both = self._named.intersection(keys)
        if both:
            named = ", ".join(repr(shortened(cell, 60)) for cell in sorted(both)[:3])
            one = len(both) == 1
            self._warn(
                f"{len(both):,} of the {len(self._named):,} entities named here {'has' if one else 'have'} the key of a row of "
                f"this table, and {'is' if one else 'are'} not that row: such as {named} "
                f"(join={{{self.column!r}: {self._meeting.own!r}}} makes the column refer to the rows)",
                field=self.column,
            )
        lost = [(cell, row) for cell, row in self._first.items() if cell not in keys]
        for cell, row in lost[:_MOST_SAID]:
            self._say(cell, row)


def asking(read: Read) -> Read:
    """The same loader of a single table, which warns of columns whose cells are keys of tables of the
    graph, and which refer to none: the first cells of each decide.
    """

    def asked(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
        meeting = Meeting(reading.known, reading.source.name, reading.gone)
        join = options.get("join")
        seen = {collapse(str(options.get("key") or "")), *(map(collapse, join) if isinstance(join, Mapping) else ())}
        for item in read(source, reading, options):
            yield item
            if isinstance(item, Batch) and isinstance(item.predicates, str) and item.predicates not in seen:
                seen.add(item.predicates)
                if join is not False:
                    _ask(item, item.predicates, meeting, reading)

    return asked


def _ask(batch: Batch, column: str, meeting: Meeting, reading: Reading) -> None:
    cells = _first_cells(batch) if meeting.snapshot is not None and meeting.keyed() else []
    if len(cells) < 2:
        return
    coded = not any(map(is_number, cells))
    for table, keys in meeting.keyed():
        called = any(called_alike(column, key, table) for key in keys)
        inside = meeting.inside(table, cells, CONTAINED if called else 1.0) if called or coded else 0
        if not inside:
            continue
        some = shortened(", ".join(cells[:3]), 60)
        first = "its" if len(batch) <= _FIRST else "its first"
        others = ", and the entities that it names are others" if isinstance(batch.objects, Ids) else ""
        reading.warn(
            f"{first} {len(cells):,} different values ({some}) are keys of {table!r}{others}: join={{{column!r}: {table!r}}} makes "
            "it refer to these rows"
            if inside == len(cells)
            else f"{inside:,} of {first} {len(cells):,} different values are keys of {table!r}{others}: join={{{column!r}: "
            f"{table!r}}} makes it refer to these rows",
            field=column,
        )
        return


def _first_cells(batch: Batch) -> list[str]:
    """The different texts of the first cells of a column that may be keys; none of one with other values."""
    objects, most = batch.objects, min(len(batch), _FIRST)
    if isinstance(objects, Numbers):
        if objects.unit != NO_UNIT or objects.numbers.dtype.kind != "i":
            return []
        found = list(map(str, objects.numbers[:most].tolist()))
    elif isinstance(objects, Ids | Texts):
        listed = objects.ids if isinstance(objects, Ids) else objects.texts
        found = listed.some(np.arange(most)) if isinstance(listed, Fields) else list(listed[:most])
    else:
        return []
    raws = batch.raws[:most] if isinstance(batch.raws, list) else [None] * most
    return list(dict.fromkeys(collapse(text if raw is None else raw) for text, raw in zip(found, raws, strict=True)))
