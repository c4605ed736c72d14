"""Warnings of a load about statements with invalid times: those that end before they start, and those whose times are
texts or numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import numbered
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Ref, Statement
from condgraph.engine.snapshot import readback
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Kind, text_of

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
