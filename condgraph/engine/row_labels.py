"""Labels of table rows that have no key: the column that says most about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


#: What stands between source and number in the name of a row.
BETWEEN: Final = " row "
#: Rows of a source that are looked at.
_LOOKED_AT: Final = 10_000
#: Characters that the texts of a telling column have at most, on average.
_LONGEST: Final = 80
#: Headers that name a row, where their texts are mostly there and mostly different.
_NAMES: Final = ("name", "title", "label")


def telling_columns(snapshot: Snapshot) -> dict[str, str]:
    """The column that tells most of each source whose rows have no keys: of its texts (of at most 80
    characters on average) half or more are different, and half or more of the rows have one. One that
    is called like a name comes first, then the one with the most different texts, then the first.
    Looked at are the first 10,000 rows.
    """
    get = snapshot.arrays.get
    keys, rows = get("row.key"), get("row.entity")
    if not len(keys):
        return {}
    sources, first = np.unique(keys >> 32, return_index=True)
    named = {}
    for source, at in zip(sources.tolist(), first.tolist(), strict=True):
        entity = snapshot.entity(int(rows[at]))
        name = snapshot.source_of(source).name
        if entity.name == f"{name}{BETWEEN}{entity.row}":
            named[source] = name
    if not named:
        return {}
    counts = np.bincount((keys >> 32)[(keys & 0xFFFFFFFF) <= _LOOKED_AT], minlength=int(sources[-1]) + 1)
    subjects, offsets = get("att.s"), get("att.offsets")
    places, numbers, kinds, refs = get("ent.source"), get("ent.row"), get("att.kind"), get("att.ref")
    best: dict[int, tuple[tuple[bool, int], str]] = {}
    for predicate in range(len(offsets) - 1):
        low, high = offsets[predicate : predicate + 2].tolist()
        of = subjects[low:high]
        texts = (kinds[low:high] == Kind.TEXT) & (places.take(of) >= 0) & (numbers.take(of) <= _LOOKED_AT)
        if not texts.any():
            continue
        owners, said = places.take(of[texts]), refs[low:high][texts]
        column = snapshot.predicate_name(predicate)
        for source in np.unique(owners).tolist():
            if source not in named:
                continue
            here = said[owners == source]
            different = np.unique(here)
            if len(here) * 2 < counts[source] or len(different) * 2 < len(here):
                continue
            if sum(len(snapshot.texts[one]) for one in different.tolist()) > _LONGEST * len(different):
                continue
            rank = column.casefold().endswith(_NAMES), len(different)
            if source not in best or rank > best[source][0]:
                best[source] = rank, column
    return {named[source]: column for source, (_, column) in sorted(best.items())}
