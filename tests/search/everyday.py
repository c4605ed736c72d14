"""How well a relation fits the predicates of a graph by its words, as the module `families` says it
and slow: every word of the table is looked for in every phrase.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from condgraph.names.words import STOP, stem
from condgraph.patterns.families import TABLE
from condgraph.vectors.encoders import spelled

EMPTY = {*STOP, *"s d ll re ve having being get gets got which up off out was himself herself themselves itself".split()}  # noqa: SIM905


@cache
def lines() -> list[tuple[str, str, list[str]]]:
    """Family, its other way round, and its words."""
    found = []
    for line in TABLE.splitlines():
        head, words = line.split(":", 1)
        family, _, other = head.partition("~")
        found.append((family.strip(), other.strip(), words.split()))
    return found


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", spelled(text).casefold())


def has(part: str, phrase: Sequence[str]) -> set[str]:
    """Which words of a phrase a part of an item is; whole words of one letter have no ending."""
    if part.endswith("*"):
        return {word for word in phrase if word.startswith(part[:-1])}
    return {part} & set(phrase)


@cache
def items(text: str) -> list[tuple[str, str, int, set[str], tuple[bool, int]]]:
    """Family, the family that is meant, the weight, the words that an item takes, and which of two
    counts."""
    phrase = words_of(text)
    together, alone = [], []
    for family, other, listed in lines():
        for item in listed:
            marks, bare = re.fullmatch(r"([?^=]*)(.*)", item).groups()  # type: ignore[union-attr]
            parts = bare.split("+")
            takes = [has(part, phrase) for part in parts]
            if not all(takes):
                continue
            turned = "=" not in marks and ("by" in phrase if "^" in marks else phrase[-1] in ("of", "to"))
            weight = 450 if "?" in marks else 900 if len(parts) == 1 else 950
            said = other if other and turned else family
            exact = (not bare.endswith("*"), len(bare))
            (together if len(parts) > 1 else alone).append((family, said, weight, set().union(*takes), exact))
    found = [one for one in together if not any(one[3] < two[3] and one[0] != two[0] for two in together)]
    for word in dict.fromkeys(phrase):
        within = {one[0] for one in found if word in one[3]}
        for family in dict.fromkeys(one[0] for one in alone):
            # Of items that a word is, the one that says the most; then the word itself, then the longest.
            mine = [one for one in alone if one[0] == family and word in one[3]]
            if mine and (not within or family in within):
                found.append(max(mine, key=lambda one: (one[2], one[4])))
    return found


@cache
def told(text: str) -> dict[str, int]:
    found = {}
    for family in {one[1] for one in items(text)}:
        left = 1000
        for one in items(text):
            if one[1] == family:
                left = left * (1000 - one[2]) // 1000
        found[family] = 1000 - left
    return found


def content(text: str) -> list[str]:
    return [word for word in dict.fromkeys(words_of(text)) if word not in EMPTY]


def near(one: str, two: str) -> bool:
    """Whether one letter is wrong: dropped, put in, changed, or exchanged with the next."""
    if min(len(one), len(two)) < 4:
        return False
    shorter, longer = sorted((one, two), key=len)
    dropped = {longer[:at] + longer[at + 1 :] for at in range(len(longer))}
    if len(longer) == len(shorter) + 1:
        return shorter in dropped
    changed = len(one) == len(two) and sum(a != b for a, b in zip(one, two, strict=True)) == 1
    return changed or two in {one[:at] + one[at : at + 2][::-1] + one[at + 2 :] for at in range(len(one) - 1)}


def fit(relation: str, predicate: str, predicates: Sequence[str]) -> int:
    """How well a relation fits one of the predicates, in thousandths."""
    inverse = {stem(word) for word in ("inverse", "inversed", "reverse", "reversed")}
    named_by = {frozenset({stem(word) for word in content(name)} - inverse) for name in predicates}
    counts = {word: sum(word in one for one in named_by) for one in named_by for word in one}
    said, other = told(relation), {family: back for family, back, _ in lines() if back}
    best, turned = 0, False
    known = {word for one in items(predicate) for word in one[3]}
    named = content(predicate)
    share = 600 + 400 * sum(word in known for word in named) // len(named) if named else 1000
    for family, name in told(predicate).items():
        mine = max(said.get(family, 0), said.get(other.get(family, ""), 0) * 800 // 1000)
        best = max(best, mine * (min(name + 100, 1000) * share // 1000) // 1000)
        turned = turned or said.get(other.get(family, ""), 0) > said.get(family, 0)
    own, left = {stem(word) for word in named}, 1000
    for word in content(relation):
        left = left * (1000 - max((meant(word, one, counts) for one in own), default=0)) // 1000
    mine = (1000 - left) * (800 if turned else 1000) // 1000
    return min(max(best, mine) + min(best, mine) // 20, 1000)


def meant(word: str, other: str, counts: dict[str, int]) -> int:
    """What a word says of the stem of a predicate's word."""
    mine = stem(word)
    if mine in counts:
        return 900 // counts[mine] if mine == other else 0

    def begins(one: str) -> bool:
        return min(len(one), len(mine)) >= 4 and (one.startswith(mine) or mine.startswith(one))

    if any(map(begins, counts)):
        return 700 // counts[other] if begins(other) else 0
    return 900 // counts[other] if len(word) >= 5 and near(mine, other) else 0
