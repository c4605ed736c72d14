"""The entities that a question names, where nobody says which they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from condgraph.chains.place import Place
from condgraph.engine.facts import Entity

#: The longest name that is looked for, in words, and the longest question, in characters.
MOST_WORDS: Final = 9
MOST_SIGNS: Final = 2_000
_BRACKETED: Final = re.compile(r"\[([^\[\]]{1,200})\]")
_WORD: Final = re.compile(r"\S+")
#: Words that are names of things only by accident, where they stand alone.
_COMMON: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be by did do does for from had has have he her his how i in is it its me my name of on or she that the "
        "their them they this to was we were what when where which who whom whose why will with you your",
    )
)


def mentions(place: Place, question: str) -> list[Entity]:
    """The entities named in a question: those in square brackets, else the longest names that stand
    in it, none inside another.
    """
    question = question[:MOST_SIGNS]
    marked = [found[1].strip() for found in _BRACKETED.finditer(question)]
    if marked:
        known = place.present(marked)
        return [place.entity(number) for name in dict.fromkeys(marked) for number in known.get(name, ())]
    pieces = list(_pieces(question))
    known = place.present(list(dict.fromkeys(text for text, _, _ in pieces)))
    taken: list[tuple[int, int]] = []
    found: dict[int, None] = {}
    for text, begin, end in pieces:
        if text in known and not any(begin < last and first < end for first, last in taken):
            taken.append((begin, end))
            found.update(dict.fromkeys(known[text]))
    return [place.entity(number) for number in found]


def _pieces(question: str) -> Iterator[tuple[str, int, int]]:
    """Runs of words, longest first, as they stand and without what sentences put around them."""
    words = [(one.start(), one.end()) for one in _WORD.finditer(question)]
    for size in range(min(MOST_WORDS, len(words)), 0, -1):
        for at in range(len(words) - size + 1):
            begin, end = words[at][0], words[at + size - 1][1]
            text = question[begin:end]
            bare = text.strip("?!.,;:\"'“”‘’()")
            for one in dict.fromkeys((text, bare, bare.removesuffix("'s").removesuffix("’s"))):
                if one and one.casefold() not in _COMMON:
                    yield one, begin, end
