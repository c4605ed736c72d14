"""Rows of several tables that other sources referred to before they came.

A table that was loaded alone, with `refs=` or `join=`, leaves entities where rows are to be. When
the folder (workbook, database) with these rows comes, the rows are those entities: they take over
the ids, as rows of a single table do (`table.targets`). What is still missing is said.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from condgraph.engine.errors import shortened
from condgraph.loaders.base import Reading
from condgraph.loaders.table.joins import Meeting

if TYPE_CHECKING:
    from condgraph.loaders.folder.rows import Tabs
    from condgraph.loaders.folder.tab import Tab

#: Keys that one warning names.
_NAMED = 5


def meet(tabs: Tabs, reading: Reading) -> None:
    """Give rows the ids by which other sources refer to them; after keys were found, before any row
    is read.
    """
    first = Meeting(reading.known, gone=reading.gone)
    if first.snapshot is None:
        return
    bare: dict[str, set[str]] = {}
    for tab in tabs.values():
        primary = tab.columns.primary
        if primary is None or tab.columns.joins:
            continue
        meeting = first.of(tab.source.name)
        keys = tab.columns.values.get(primary, set())
        taken = {key: ident for key, ident in meeting.former.items() if key in keys}
        short = set(first.of(tab.name).wanted())
        long = set(meeting.wanted()) - meeting.former.keys()
        taken |= {key: f"{tab.name}/{key}" for key in keys & short if key not in taken}
        taken |= {key: f"{tab.source.name}/{key}" for key in keys & long if key not in taken}
        _lost(tab, {*short, *long, *meeting.former} - keys)
        tab.taken = {f"{tab.name}/{key}": ident for key, ident in taken.items()}
        header = " + ".join(tab.names[at] for at in primary)
        bare[tab.name] = (keys & meeting.referred(header, tab.source.name)) - taken.keys()
    claimed = Counter(key for found in bare.values() for key in found)
    for name, found in bare.items():
        several = {key for key in found if claimed[key] > 1}
        if several:
            said = f"other sources refer to {_some(several)}, which is a key of several tables here; join= says which is meant"
            tabs[name].reading.warn(said)
        tabs[name].taken.update((f"{name}/{key}", key) for key in found - several)


def _lost(tab: Tab, lost: set[str]) -> None:
    """Say which rows of a table others refer to that it has not."""
    if lost:
        tab.reading.warn(f"other sources refer to rows of {tab.source.name!r} that it has not: {_some(lost)}")


def _some(keys: set[str]) -> str:
    named = ", ".join(repr(shortened(key, 60)) for key in sorted(keys)[:_NAMED])
    return named + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")
