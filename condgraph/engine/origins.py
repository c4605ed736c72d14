"""Whether two sources of one name are the same: equal origin and content; otherwise an error that
names both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from condgraph.engine.errors import SourceError
from condgraph.engine.facts import Source

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The format of what was added from Python; more can be added to it.
API = "api"
#: Between the fingerprint of the data and that of the options it was read with.
PARTS = "+"
#: Between the fingerprints of what was added to a source, one after the other.
ALSO = ","


def check_source(known: Source, new: Source) -> None:
    """Raise `SourceError` where `new` has the name of `known` and is another source, or holds
    something else by now.

    A source of which neither place nor content is said (`Source(name)`) only names one that is
    there.
    """
    if not (new.location or new.content or new.format):
        return
    if known.format and new.format and (known.format == API) != (new.format == API):
        raise _error(known, new, f"{_place(new)} has the same name")
    if new.content and ALSO in known.content and new.content in known.content.split(ALSO):
        # One of those that were added to each other.
        return
    if known.content and new.content and known.content != new.content:
        if known.location and not _elsewhere(known, new):
            same_data = known.content.partition(PARTS)[0] == new.content.partition(PARTS)[0]
            what = "it is read with other options now" if same_data else "its content has changed since"
            raise _error(known, new, what)
        raise _error(known, new, f"{_place(new)} has the same name and other content")
    if _elsewhere(known, new):
        raise _error(known, new, f"{_place(new)} has the same name")


def check_sources(known: Iterable[Source], snapshot: Snapshot) -> None:
    """Raise `SourceError` where a source of `snapshot` has the name of a `known` one and is
    another.
    """
    names = {source.name: source for source in known}
    for number in range(len(snapshot.schema.sources)):
        source = snapshot.source_of(number)
        if source.name in names:
            check_source(names[source.name], source)


def _elsewhere(known: Source, new: Source) -> bool:
    """Whether both are places and they are two. A place that is gone may have moved, or been named
    from another folder.
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
        hint="replace=True puts it in place of the other, append=True adds it to that; "
        "name= loads it beside the other, as a source of its own name",
    )
