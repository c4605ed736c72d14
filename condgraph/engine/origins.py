"""Decide whether two sources with one name are the same: equal origin and content, otherwise an error that names
both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from condgraph.engine.errors import SourceError
from condgraph.engine.facts import Source

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The format of items added from Python; more can be added to such a source.
API = "api"
#: Separates the fingerprint of the data from that of the options it was read with.
PARTS = "+"
#: Separates the fingerprints of additions to a source.
ADDITION = ","


def check_source(known: Source, new: Source) -> None:
    """Raise `SourceError` if `new` has the name of `known` and is a different source, or its content has changed.

    A source without location and content (`Source(name)`) only refers to an existing one.
    """
    if not (new.location or new.content or new.format):
        return
    if known.format and new.format and (known.format == API) != (new.format == API):
        raise _error(known, new, f"{_place(new)} has the same name")
    if new.content and ADDITION in known.content and new.content in known.content.split(ADDITION):
        # It is one of the additions to the known source.
        return
    if known.content and new.content and known.content != new.content:
        if known.location and not _elsewhere(known, new):
            same_data = known.content.partition(PARTS)[0] == new.content.partition(PARTS)[0]
            reason = "it is read with other options now" if same_data else "its content has changed since"
            raise _error(known, new, reason)
        raise _error(known, new, f"{_place(new)} has the same name and other content")
    if _elsewhere(known, new):
        raise _error(known, new, f"{_place(new)} has the same name")


def check_sources(known: Iterable[Source], snapshot: Snapshot) -> None:
    """Raise `SourceError` if a source of `snapshot` has the name of a `known` one and is a different source."""
    names = {source.name: source for source in known}
    for number in range(len(snapshot.schema.sources)):
        source = snapshot.source_of(number)
        if source.name in names:
            check_source(names[source.name], source)


def _elsewhere(known: Source, new: Source) -> bool:
    """Return whether both sources have different locations. A location that is gone may have moved, or been named
    relative to another folder.
    """
    if known.location == new.location:
        return False
    if not known.location or not new.location:
        return bool(known.format)
    try:
        return os.path.exists(known.location) and not os.path.samefile(known.location, new.location)
    except OSError:
        return True


def _place(source: Source) -> str:
    if source.location:
        return source.location
    return "what was added from Python" if source.format == API else f"a Python object (format {source.format})"


def _error(known: Source, new: Source, what: str) -> SourceError:
    return SourceError(
        f"a source {known.name!r} is loaded already, from {_place(known)}; {what}",
        file=new.location or None,
        hint="replace=True replaces that source, append=True adds to it; name= loads this one under another name",
    )
