"""Rows that sum up those above them, as people write below a table: they are rows like the others,
and would be counted twice in every sum, so that they are said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.values import collapse
from condgraph.loaders.base import Reading
from condgraph.loaders.table.fields import Fields

if TYPE_CHECKING:
    from condgraph.loaders.table.text import Chunk

#: The last rows, which are looked at, and characters that what they are called has at most.
_LAST: Final = 3
_LONGEST: Final = 40
_TOTAL: Final = re.compile(
    r"(?:(?:grand|sub|column|overall)[ -]?)?totals?|(?:grand )?sum|summe|gesamt(?:summe)?|insgesamt|total g[eé]n[eé]ral|totale"
    r"|totaal|итого|合計|总计"
).fullmatch


def is_total(cell: str) -> bool:
    """Whether a cell is what people call a row that sums the others up.

    >>> is_total(" Grand Total: "), is_total("Total Gym")
    (True, False)
    """
    return len(cell) < _LONGEST and _TOTAL(collapse(cell).casefold().strip(":= ")) is not None


def warn_of_totals(names: Sequence[str], last: Chunk, reading: Reading) -> None:
    """Say which of the last rows of a table look like totals: one of their cells says so, and another
    has digits.
    """
    first = max(0, len(last.numbers) - _LAST)
    columns = [_last(column, first) for column in last.columns]
    for at in range(len(last.numbers) - first):
        cells = [column[at] for column in columns]
        said = next((place for place, cell in enumerate(cells) if is_total(cell)), None)
        if said is not None and any(any(map(str.isdigit, cell)) for cell in cells):
            reading.warn(
                f"the row looks like a total of those above ({collapse(cells[said])!r}), and is loaded as one of them, so that "
                "sums count it too; take it out of the source, or leave it out where you ask",
                row=last.numbers[first + at],
                field=names[said],
            )


def _last(column: Sequence[str], first: int) -> list[str]:
    """The cells of a column from a place on. Of one that is numbers or days alone none is made: it
    calls nothing a total.
    """
    if isinstance(column, Fields):
        if column.plain is not None or column.days is not None:
            return ["0"] * (len(column) - first)
        return column.some(np.arange(len(column)) >= first)
    return [str(column[at]) for at in range(first, len(column))]
