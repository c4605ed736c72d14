"""Rows that sum up those above them, as people write below a table: they are rows like the others,
and would be counted twice in every sum, so that they are said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from condgraph.engine.values import collapse
from condgraph.loaders.base import Reading

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
    for at in range(max(0, len(last.numbers) - _LAST), len(last.numbers)):
        cells = [str(column[at]) for column in last.columns]
        said = next((place for place, cell in enumerate(cells) if is_total(cell)), None)
        if said is not None and any(any(map(str.isdigit, cell)) for cell in cells):
            reading.warn(
                f"the row looks like a total of those above ({collapse(cells[said])!r}), and is loaded as one of them, so that "
                "sums count it too; take it out of the source, or leave it out where you ask",
                row=last.numbers[at],
                field=names[said],
            )
