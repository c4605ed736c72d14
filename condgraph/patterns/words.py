"""Synonyms of relations in everyday words.

Graphs call a relation `parents` or `starred_actors`; people and models write "dad" or "acted in". The table has one line per
relation: words between bars mean the same, words of one line nearly the same. The distance of a relation in a pattern from a
predicate is that of the nearest word with the same meaning plus a little (`SAME`, `NEARLY`), unless the relation itself is nearer.

A phrase is in the place where it fits when read as "subject phrase object": "father" is with `parents` (Ann, father, Bob), and
"father of" with `children` (Bob, is father of, Ann).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from condgraph.vectors.encoders import spelled

#: What a word of the same meaning adds, and what one of the same line adds, in millionths.
SAME: Final = 60_000
NEARLY: Final = 120_000

TABLE: Final = Path(__file__).with_name("everyday.txt").read_text(encoding="utf-8").strip()

_LEADING: Final = re.compile(
    r"(?:is|was|are|were|be|been|being|has|have|had|does|did|do|the|a|an|his|her|its|their|who|which|that|s)\s+"
)


@cache
def _groups() -> dict[str, list[tuple[int, int]]]:
    """Return the line of every word, and its place there."""
    places: dict[str, list[tuple[int, int]]] = {}
    for line, text in enumerate(TABLE.splitlines()):
        for position, group in enumerate(text.split("|")):
            for word in group.split(","):
                places.setdefault(word.strip(), []).append((line, position))
    return places


@cache
def _longest() -> int:
    """Return how many characters the table's longest phrase has."""
    return max(map(len, _groups()))


@cache
def _lines() -> list[list[list[str]]]:
    return [[[word.strip() for word in group.split(",")] for group in line.split("|")] for line in TABLE.splitlines()]


def words_for(relation: str) -> dict[str, int]:
    """Return the words that a relation stands for, without itself, with what each adds.

    >>> found = words_for("is the dad of")
    >>> found["father of"], found["children"], "parents" in found
    (60000, 120000, False)
    """
    text = spelled(relation)
    groups = _groups()
    start = 0
    # Text longer than every phrase is not cut out for lookup, since a text may have a million words.
    while len(text) - start > _longest() or text[start:] not in groups:
        # "was born in" is "born in", and "is the father of" is "father of".
        leading = _LEADING.match(text, start)
        if leading is None:
            return {}
        start = leading.end()
    text = text[start:]
    costs: dict[str, int] = {text: 0} if text != spelled(relation) else {}
    for line, position in groups[text]:
        for number, group in enumerate(_lines()[line]):
            for word in group:
                if word != spelled(relation):
                    cost = SAME if number == position else NEARLY
                    costs[word] = min(costs.get(word, cost), cost)
    return costs
