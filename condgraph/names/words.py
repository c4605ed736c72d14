"""Words of questions: stems, words that say nothing, and everyday words that stand for others.

English alone; what is in no list is compared as it is written, so that other languages lose these
helps and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from condgraph.engine.errors import nearest
from condgraph.vectors.encoders import fold

#: A word, or a number with its marks.
WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
#: Words of questions that name nothing.
_STOP: Final = """
a an the of in on at by to for from with without and or not no is are was were be been being am
do does did done have has had what which who whom whose when where why how many much that this
these those there it its he she they them his her their i you we my your our me us as than then
so if but about into over under after before between during can could will would shall should
may might must name named called list tell give show find all any some each every one ones same
other another more most less least also only just very please ever
"""
STOP: Final = frozenset(_STOP.split())
#: Words that ask for one thing: a word of a question, and words that stand in names of predicates
#: and concepts.
_GROUPS: Final = (
    "movie film picture",
    "country nation state",
    "city town municipality",
    "person human people man woman",
    "company business corporation firm organisation organization enterprise",
    "actor actress star starred cast played",
    "director directed",
    "writer wrote written author screenwriter",
    "book novel",
    "song single track",
    "team club",
    "university college school educated studied alumni",
    "mountain peak summit",
    "river stream",
    "born birth birthplace",
    "published publication release released",
    "died die dies death dead killed",
    "wife husband spouse married",
    "child children son daughter father mother parent",
    "job occupation profession work",
    "tall height high elevation altitude",
    "long length duration",
    "big large size area",
    "heavy weight mass",
    "population inhabitants people",
    "when date year time",
    "where place location located",
    "headquarters based",
    "founded inception established foundation created creation formed formation started",
    "become became independence inception",
    "language spoken speak",
    "description described describe describes words",
    "religion faith",
    "leader head president minister premier chancellor",
    "award prize won winner",
    "genre kind type",
    "money currency",
    "website url homepage",
    "sport game",
)


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in _GROUPS:
        words = group.split()
        for word in words:
            found.setdefault(word, set()).update(words)
    return {word: frozenset(others - {word}) for word, others in found.items()}


_OTHERS: Final = _table()
#: Words of a name for which synonyms are compared.
_MOST_SAID: Final = 8


def words_of(text: str) -> list[str]:
    """The words of a text, folded."""
    return WORD.findall(fold(text))


def stem(word: str) -> str:
    """A word without the endings that English words take; the same for words that differ in them.

    >>> stem("mountains"), stem("located"), stem("countries"), stem("process")
    ('mountain', 'locat', 'country', 'process')
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)]
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        return word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def others(word: str) -> frozenset[str]:
    """Everyday words with the same meaning; none for most words."""
    return _OTHERS.get(word) or _OTHERS.get(stem(word)) or frozenset()


def meant(name: str, names: Iterable[str]) -> list[str]:
    """The names of a vocabulary that are another word for a name.

    >>> meant("movie", ["film", "country"])
    ['film']
    """
    wanted = others(fold(name))
    return [name for name in names if fold(name) in wanted] if wanted else []


def near_names(name: str, names: Sequence[str], *, most: int = 5) -> list[str]:
    """Names of a vocabulary that may be meant by one that it does not have: synonyms, names that
    differ by a few letters, names that share a word with it.

    >>> near_names("movie", ["film", "moraine", "silent film"])
    ['film', 'moraine', 'silent film']
    """
    other = meant(name, names)
    alike = nearest(name, names, most=most)
    said = {stem(word) for word in words_of(name)} - STOP
    said |= {stem(other) for word in words_of(name)[:_MOST_SAID] for other in others(word)}
    sharing = [name for name in names if said and said & {stem(word) for word in words_of(name)}] if len(name) <= 300 else []
    # Names that share all the words come first, the short ones before the long.
    sharing.sort(key=lambda one: (-len(said & {stem(word) for word in words_of(one)}), len(one), one))
    return list(dict.fromkeys([*other, *alike[: most - min(len(sharing), 2)], *sharing]))[:most]
