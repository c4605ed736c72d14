"""All HTML of notebooks: small tables of escaped text, bounded in rows and in characters.

Everything that comes from data goes through `escaped`; there is no script and no address in what is
made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from condgraph.engine.errors import LONGEST_MESSAGE

#: Rows that a notebook shows of anything, and characters of a cell.
MOST_ROWS: Final = 20
LONGEST_CELL: Final = 200
#: As `html.escape` writes them, without the import of all named characters.
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def escaped(text: str, most: int = LONGEST_CELL) -> str:
    """Text as HTML, cut to `most` characters; what is not printed appears as an escape.

    >>> escaped("<script>\\x07 & 'q'")
    '&lt;script&gt;\\\\x07 &amp; &#x27;q&#x27;'
    """
    short = text if len(text) <= most else text[: most - 1] + "…"
    plain = short if short.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)
    return plain.translate(_ENTITIES)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], more: int = 0) -> str:
    """A table with a title (none where it is empty), and a line that says how many rows are not
    shown.
    """
    head = "".join(f"<th>{escaped(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<div><b>{escaped(title)}</b></div>" if title else ""
    last = f"<div>and {more:,} more {escaped(title) or 'rows'}</div>" if more > 0 else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{last}"


def page(title: str, parts: Iterable[str] = (), notes: Sequence[str] = (), warnings: Sequence[str] = ()) -> str:
    """A line of text, what is below it, notes, and warnings: whole, of many the first."""
    shown = [*notes, *(f"warning: {warning}" for warning in warnings[:MOST_ROWS])]
    if len(warnings) > MOST_ROWS:
        shown.append(f"and {len(warnings) - MOST_ROWS:,} more warnings")
    # A warning is as long as `errors.shortened` lets it be.
    below = "".join(f"<div><i>{escaped(note, 2 * LONGEST_MESSAGE)}</i></div>" for note in shown)
    return f"<div><div>{escaped(title)}</div>{''.join(parts)}{below}</div>"
