"""Write lines of CSV. Python's own writer does not quote a lone carriage return, at which every reader begins a new
row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

#: Characters that a reader of any locale may take for the end of a cell or a row, or strip.
_QUOTED: Final = re.compile(r'[",;\t\r\n]|^\s|\s$')


def csv_line(cells: Iterable[Any]) -> str:
    """Return one row with its line end. None is an empty cell; other cells are their `str`."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    if texts == [""]:
        return '""\n'  # an empty line is no row
    return ",".join('"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell for cell in texts) + "\n"
