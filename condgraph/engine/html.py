"""All HTML for notebooks: small tables of escaped text, limited in rows and characters.

All data passes through `escaped`; the result contains no scripts and no addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from condgraph.engine.errors import MAX_MESSAGE, printable

#: The largest number of rows that a notebook shows, and of characters in a cell.
MAX_ROWS: Final = 20
MAX_CELL: Final = 200
#: As in `html.escape`, without importing all named characters.
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def escaped(text: str, most: int = MAX_CELL) -> str:
    """Return text as HTML, cut to `most` characters, with unprintable characters escaped.

    >>> escaped("<script>\\x07 & 'q'")
    '&lt;script&gt;\\\\x07 &amp; &#x27;q&#x27;'
    """
    short = text if len(text) <= most else text[: most - 1] + "…"
    return printable(short).translate(_ENTITIES)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], more: int = 0) -> str:
    """Return a table with a title (unless it is empty), and a line with the number of rows not shown."""
    head = "".join(f"<th>{escaped(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<div><b>{escaped(title)}</b></div>" if title else ""
    last = f"<div>and {more:,} more {escaped(title) or 'rows'}</div>" if more > 0 else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{last}"


def page(title: str, parts: Iterable[str] = (), notes: Sequence[str] = (), warnings: Sequence[str] = ()) -> str:
    """Return a title, the parts below it, notes, and the first warnings."""
    shown = [*notes, *(f"warning: {warning}" for warning in warnings[:MAX_ROWS])]
    if len(warnings) > MAX_ROWS:
        shown.append(f"and {len(warnings) - MAX_ROWS:,} more warnings")
    # Warnings are already cut by `errors.shortened`.
    note_lines = "".join(f"<div><i>{escaped(note, 2 * MAX_MESSAGE)}</i></div>" for note in shown)
    return f"<div><div>{escaped(title)}</div>{''.join(parts)}{note_lines}</div>"
