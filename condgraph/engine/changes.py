"""What a load changes: the sources of a graph that are removed, replaced or added to; and
the warnings about statements with invalid times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import SourceError, StoreBusyError, nearest, numbered
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Ref, Source, Statement
from condgraph.engine.origins import check_sources
from condgraph.engine.snapshot import readback
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import items
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Kind, text_of

#: What a write on a server is heard by: how many records are written, and which part of all that is (None: not known).
OnWritten = Callable[[int, float | None], None]
#: Between the name of a folder of tables, or of nested records, and that of a table in it.
_WITHIN: Final = "/"


class OvertakenError(StoreBusyError):
    """Others changed the graph since the rows of this load were read; nothing is written."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a load does to sources that are there: those in `without` lose what they said, those in
    `more` are added to, under a name for ids that no other source has.
    """

    without: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    #: The names and contents of the sources that the graph had when rows were read that may refer to
    #: what it holds; None where none do.
    seen: frozenset[tuple[str, str]] | None = None

    def __bool__(self) -> bool:
        return bool(self.without or self.more)

    @property
    def name(self) -> str:
        """What a load that does this is known by, beside what it adds; nothing where it changes
        nothing that is there.
        """
        return repr((self.without, self.more)) if self else ""

    def joined(self, previous: Snapshot | None, snapshot: Snapshot) -> Snapshot:
        """What a graph on a server holds with this change, and what is added to it."""
        if previous is None:
            return snapshot
        builder = self.builder(previous)
        builder.add(items(snapshot))
        return Snapshot.of(*lay_out(builder))

    def builder(self, previous: Snapshot) -> Builder:
        """A builder of what a graph holds with this change, to which is added what is loaded."""
        builder = Builder(previous, self.without)
        builder.added_to(self.more)
        return builder

    def check(self, known: Iterable[Source], snapshot: Snapshot) -> None:
        """Raise `SourceError` where a source of `snapshot` has the name of a `known` one that it
        neither replaces nor adds to, and is another; or where one that is changed is not there.
        Raises `OvertakenError` where the graph is not what rows were read for.
        """
        sources = list(known)
        if self.seen is not None and self.seen != frozenset((one.name, one.content) for one in sources):
            said = "the graph was loaded while rows were read that refer to it"
            raise OvertakenError(said, hint="load again, or wait= for others")
        for name in (*self.without, *self.more):
            if all(one.name != name for one in sources):
                named_here(name, sources)
        check_sources([one for one in sources if one.name not in (*self.without, *self.more)], snapshot)


def named_here(name: str, known: Iterable[Source]) -> list[str]:
    """The sources that a name stands for: that source with the further tables of its file, or the
    tables of the folder of that name.

    Raises `SourceError`, with the nearest names, where there is none, or tables of several folders.
    """
    sources = list(known)
    own = next((one for one in sources if one.name == name), None)
    if own is not None:
        parts = [one for one in sources if one.name.startswith(name + _WITHIN) and own.content]
        return [name, *(one.name for one in parts if (one.content, one.location) == (own.content, own.location))]
    # The tables of a folder are known by the content of all of it.
    within = [one for one in sources if one.name.startswith(name + _WITHIN) and name]
    folders = {(one.content, os.path.dirname(one.location)) for one in within}
    if len(folders) == 1 and all(one.content and one.location for one in within):
        return [one.name for one in within]
    names = [one.name for one in sources]
    near = [one.name for one in within][:3] or nearest(name, names)
    hint = "name one of them" if within else ("the sources are " + ", ".join(names[:20]) if names else "the graph has no sources")
    raise SourceError(f"no source is called {name!r}", candidates=near, hint=hint)


# -- statements with invalid times -----------------------------------------------------------------
# Those that end before they start, and those whose times are texts or numbers.


_KINDS = {Kind.TEXT: "a text", Kind.QUANTITY: "a number", Kind.ENTITY: "an entity"}


def untimely(snapshot: Snapshot, fresh: Collection[int] | None = None) -> Iterator[str]:
    """Yield warnings about the statements of some sources, by number (None: all)."""
    get = snapshot.arrays.get
    begin, end = get("val.start"), get("val.end")
    ends_first = _of(snapshot, get("val.stmt")[begin >= end], fresh)
    if len(ends_first):
        what = numbered(len(ends_first), "statement ends before it starts, and holds", "statements end before they start, and hold")
        yield f"{what} at no time: {_shown(snapshot, ends_first)}"
    for key in (START_TIME, END_TIME, POINT_IN_TIME):
        number = snapshot.predicate(key)
        if number < 0:
            continue
        offsets = get("qkey.offsets")
        places = get("qkey.items")[offsets[number] : offsets[number + 1]]
        kinds = get("q.kind")[places]
        for kind, what in _KINDS.items():
            affected = _of(snapshot, get("q.owner")[places[kinds == kind]], fresh)
            if len(affected):
                subject = numbered(len(affected), "statement has", "statements have")
                yield f"{subject} {what} as {key!r}, which does not say when it holds: {_shown(snapshot, affected)}"


def _of(snapshot: Snapshot, statements: NDArray[np.int32], fresh: Collection[int] | None) -> NDArray[np.int32]:
    """Return the statements that belong to the sources, sorted."""
    statements = np.unique(statements)
    if fresh is None or not len(statements) or len(snapshot.arrays.get("src.name")) == 1:
        return statements
    parts = [
        snapshot.arrays.get("bysrc.items")[slice(*snapshot.arrays.get("bysrc.offsets")[source : source + 2])] for source in fresh
    ]
    return np.intersect1d(statements, np.concatenate(parts)) if parts else statements[:0]


def _shown(snapshot: Snapshot, statements: NDArray[np.int32]) -> str:
    """Return the first statement as text."""
    item: Statement = next(readback.statements(snapshot, statements[:1]))[0]

    def text(value: object) -> str:
        return snapshot.name(snapshot.identified(value.id)) if isinstance(value, Ref) else text_of(value)  # type: ignore[arg-type]

    qualifiers = ", ".join(f"{key}: {text(value)}" for key, value in item.qualifiers)
    return f"{text(Ref(item.subject))} | {item.predicate} | {text(item.object)} ({qualifiers})"
