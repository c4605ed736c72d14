"""Synonyms of relations in everyday words.

Graphs call a relation `parents` or `starred_actors`, people and models write "dad" or "acted in".
The table has a line a relation; words between bars mean the same, words of one line nearly so. A
relation of a pattern is as near to a predicate as the nearest of the words that mean the same,
and a little more (`SAME`, `NEARLY`), where it is not nearer by itself.

A phrase stands where it fits from subject to object, read as "subject phrase object": "father" is
with `parents` (Ann, father, Bob), and "father of" with `children` (Bob, is father of, Ann).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from condgraph.vectors.encoders import spelled

#: What a word of the same meaning adds, and one of the same line, in millionths.
SAME: Final = 60_000
NEARLY: Final = 120_000

TABLE: Final = Path(__file__).with_name("everyday.txt").read_text(encoding="utf-8").strip()

_LEADING: Final = re.compile(
    r"(?:is|was|are|were|be|been|being|has|have|had|does|did|do|the|a|an|his|her|its|their|who|which|that|s)\s+"
)


@cache
def _groups() -> dict[str, list[tuple[int, int]]]:
    """Line and place in it of every word."""
    found: dict[str, list[tuple[int, int]]] = {}
    for line, text in enumerate(TABLE.splitlines()):
        for place, group in enumerate(text.split("|")):
            for word in group.split(","):
                found.setdefault(word.strip(), []).append((line, place))
    return found


@cache
def _longest() -> int:
    """Characters of the longest phrase of the table."""
    return max(map(len, _groups()))


@cache
def _lines() -> list[list[list[str]]]:
    return [[[word.strip() for word in group.split(",")] for group in line.split("|")] for line in TABLE.splitlines()]


def words_for(relation: str) -> dict[str, int]:
    """The words that a relation stands for, with what each adds; itself is not among them.

    >>> found = words_for("is the dad of")
    >>> found["father of"], found["children"], "parents" in found
    (60000, 120000, False)
    """
    text = spelled(relation)
    groups = _groups()
    at = 0
    # What is longer than every phrase is not cut out to be looked up: a text may have a million words.
    while len(text) - at > _longest() or text[at:] not in groups:
        # "was born in" is "born in", and "is the father of" is "father of".
        leading = _LEADING.match(text, at)
        if leading is None:
            return {}
        at = leading.end()
    text = text[at:]
    found: dict[str, int] = {text: 0} if text != spelled(relation) else {}
    for line, place in groups[text]:
        for number, group in enumerate(_lines()[line]):
            for word in group:
                if word != spelled(relation):
                    cost = SAME if number == place else NEARLY
                    found[word] = min(found.get(word, cost), cost)
    return found
