"""Writes lines of CSV. Python's own writer leaves a lone carriage return without quotes, at which every
reader begins a new row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

#: What a reader may take for the end of a cell or a row, in any country, or take away.
_QUOTED: Final = re.compile(r'[",;\t\r\n]|^\s|\s$')


def csv_line(cells: Iterable[Any]) -> str:
    """One row with its line end. None is an empty cell; other cells are their `str`."""
    found = ["" if cell is None else str(cell) for cell in cells]
    if found == [""]:
        return '""\n'  # an empty line is no row
    return ",".join('"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell for cell in found) + "\n"
