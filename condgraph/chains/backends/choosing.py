"""Which of some texts a model went on with, read from what it wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence


def mentioned(text: str, options: Sequence[str]) -> int | None:
    """The option that a text names: the one that it is, else the one whose mention comes last, the
    longest of those that end there. None where it names none.
    """
    wanted = text.strip().strip(".*\"' ").casefold()
    for at, option in enumerate(options):
        if option.casefold() == wanted:
            return at
    best: tuple[int, int, int] | None = None
    for at, option in enumerate(options):
        if not option.strip():
            continue
        found = list(re.finditer(r"(?<!\w)" + re.escape(option.casefold()) + r"(?!\w)", text.casefold()))
        if found:
            mine = (found[-1].end(), len(option), -at)
            best = mine if best is None else max(best, mine)
    return None if best is None else -best[2]
