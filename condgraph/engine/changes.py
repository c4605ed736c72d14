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

#: Receives the progress of a write on a server: the number of records, and their share of all (None: unknown).
OnWritten = Callable[[int, float | None], None]
#: Separates the name of a folder of tables, or of nested records, from that of a table in it.
_SEPARATOR: Final = "/"


class OvertakenError(StoreBusyError):
    """Raised if another load changed the graph since the rows of this load were read; nothing is written."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a load does to existing sources: those in `without` are emptied, those in `more` are added to, with a
    separate namespace for ids.
    """

    without: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    #: The names and contents of the graph's sources when rows were read that may refer to it; None if
    #: none do.
    seen: frozenset[tuple[str, str]] | None = None

    def __bool__(self) -> bool:
        return bool(self.without or self.more)

    @property
    def name(self) -> str:
        """A key for the change, apart from what is added; empty if it changes nothing that exists."""
        return repr((self.without, self.more)) if self else ""

    def joined(self, previous: Snapshot | None, snapshot: Snapshot) -> Snapshot:
        """Return the content of a graph with this change and the additions."""
        if previous is None:
            return snapshot
        builder = self.builder(previous)
        builder.add(items(snapshot))
        return Snapshot.of(*lay_out(builder))

    def builder(self, previous: Snapshot) -> Builder:
        """Return a builder with the content of a graph after this change, to which the loaded items are added."""
        builder = Builder(previous, self.without)
        builder.added_to(self.more)
        return builder

    def check(self, known: Iterable[Source], snapshot: Snapshot) -> None:
        """Raise `SourceError` if a source of `snapshot` has the name of a different `known` source that it neither
        replaces nor adds to, or if a source to change does not exist. Raise `OvertakenError` if the graph is not the
        one that rows were read for.
        """
        sources = list(known)
        if self.seen is not None and self.seen != frozenset((source.name, source.content) for source in sources):
            message = "another load changed the graph while references to it were read"
            raise OvertakenError(message, hint="load again, or wait for others with wait=")
        for name in (*self.without, *self.more):
            if all(source.name != name for source in sources):
                named_here(name, sources)
        check_sources([source for source in sources if source.name not in (*self.without, *self.more)], snapshot)


def named_here(name: str, known: Iterable[Source]) -> list[str]:
    """Return the sources that a name stands for: that source with the other tables of its file, or the tables of the
    folder of that name.

    Raises `SourceError`, with the nearest names, if there is none, or if tables of several folders match.
    """
    sources = list(known)
    named = next((source for source in sources if source.name == name), None)
    if named is not None:
        parts = [source for source in sources if source.name.startswith(name + _SEPARATOR) and named.content]
        return [name, *(source.name for source in parts if (source.content, source.location) == (named.content, named.location))]
    # The tables of a folder share the fingerprint of the whole folder.
    in_folder = [source for source in sources if source.name.startswith(name + _SEPARATOR) and name]
    folders = {(source.content, os.path.dirname(source.location)) for source in in_folder}
    if len(folders) == 1 and all(source.content and source.location for source in in_folder):
        return [source.name for source in in_folder]
    names = [source.name for source in sources]
    similar = [source.name for source in in_folder][:3] or nearest(name, names)
    listed = f"the sources are {', '.join(names[:20])}" if names else "the graph has no sources"
    hint = "name one of them" if in_folder else listed
    raise SourceError(f"no source is called {name!r}", candidates=similar, hint=hint)


# -- statements with invalid times -----------------------------------------------------------------
# Those that end before they start, and those whose times are texts or numbers.


_KIND_NAMES = {Kind.TEXT: "a text", Kind.QUANTITY: "a number", Kind.ENTITY: "an entity"}


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
        for kind, what in _KIND_NAMES.items():
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
