"""Positions in a table clause, for messages; the span of an error is a position in the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from condgraph.engine.errors import CondgraphError, shortened

#: Characters of the clause that are shown behind the place.
_SHOWN = 30


@contextmanager
def in_clause(text: str | None) -> Iterator[None]:
    """Tell the places of errors by the text of a clause; of one that has none they are left out."""
    try:
        yield
    except CondgraphError as error:
        if error.span is not None:
            start = error.span[0]
            if text is not None:
                at = f", before {shortened(text[start:], _SHOWN)!r}" if text[start:].strip() else ", at its end"
                error.message += f", at character {start + 1} of the table{at}"
            error.span = None
        raise
