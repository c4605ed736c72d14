"""A name in a program to the names it can mean: exact, then folded, then similar.

The first way that finds anything decides, and all its ties are kept: three rows with the cell
"Italy" are three matches. Names that came close are given beside them with their scores, for the
trace and for messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.errors import UnknownNameError
from condgraph.engine.values import collapse
from condgraph.names.vocabulary import Vocabulary
from condgraph.vectors.encoder import fold

How: TypeAlias = Literal["exact", "folded", "similar"]

#: The least similarity at which a name of one column (or one relation's objects) is taken for
#: another spelling.
THRESHOLD: Final = 0.4
#: The least similarity at which a name is worth mentioning.
_WORTH: Final = 0.2
#: Names given as near matches.
MOST_NEAR: Final = 5
_WORD: Final = re.compile(r"\w+")
#: Letters of a word of which one may be replaced by mistake.
_LONG: Final = 8


@dataclass(frozen=True, slots=True)
class Match:
    """A name of the vocabulary: its position there, how it was found, and its score from 0 to 1 (1
    for exact and folded).
    """

    name: str
    position: int
    score: float
    how: How


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a name was resolved to: the matches that count (ties, by position), and the near ones
    (best first).
    """

    name: str
    matches: tuple[Match, ...]
    near: tuple[Match, ...] = ()

    def require(self, kind: str, span: tuple[int, int] | None = None) -> tuple[Match, ...]:
        """The matches; raises `UnknownNameError` with the near ones as candidates where there are
        none.
        """
        if not self.matches:
            names = dict.fromkeys(match.name for match in self.near)
            raise UnknownNameError(kind, self.name, candidates=tuple(names), span=span)
        return self.matches


def resolve(
    name: str,
    vocabulary: Vocabulary,
    *,
    threshold: float = THRESHOLD,
    among: NDArray[np.integer] | None = None,
    most: int = MOST_NEAR,
    names: bool = True,
) -> Resolution:
    """What `name` means in `vocabulary`.

    `among` limits it to some positions of the vocabulary (the values of one column, say).
    `threshold` above 1 allows no similar names; near ones are still given, at most `most`. Unless
    `names` is false, a similar name that is another name (`is_other`) is a near one: Iceland is not
    Ireland.
    """
    allowed = None if among is None else _mask(among, len(vocabulary))
    folded = [position for position in vocabulary.folded(name) if allowed is None or allowed[position]]
    if folded:
        wanted = collapse(name)
        exact = [position for position in folded if collapse(vocabulary.names[position]) == wanted]
        how: How = "exact" if exact else "folded"
        return Resolution(name, tuple(Match(vocabulary.names[position], position, 1.0, how) for position in exact or folded))
    scores = vocabulary.similarities(name)
    if allowed is not None:
        scores = np.where(allowed, scores, 0.0)
    best = float(scores.max(initial=0.0))
    matches: tuple[Match, ...] = ()
    if best >= threshold and best > 0:
        tied = (_similar(vocabulary, scores, position) for position in np.flatnonzero(scores == best).tolist())
        matches = tuple(match for match in tied if not (names and is_other(name, match.name)))
        scores[[match.position for match in matches]] = 0.0
    return Resolution(name, matches, _near(vocabulary, scores, most))


def is_other(one: str, other: str) -> bool:
    """Whether a similar name is another name, and no other spelling: some short word of it has letters replaced, and none left
    out, added or swapped.

    >>> [is_other(one, "Ireland") for one in ("Iceland", "Irland", "Irelnad", "Republic of Ireland")]
    [True, False, False, False]
    >>> is_other("North Korea", "South Korea"), is_other("Annapurma", "Annapurna"), is_other("Iran", "Iraq")
    (True, False, True)
    """
    mine, others = _WORD.findall(fold(one)), _WORD.findall(fold(other))
    return len(mine) == len(others) and any(
        a != b and len(a) == len(b) < _LONG and sorted(a) != sorted(b) for a, b in zip(mine, others, strict=True)
    )


def _near(vocabulary: Vocabulary, scores: NDArray[np.float64], most: int) -> tuple[Match, ...]:
    """The best of what is left, at most `most`, by falling score, then name, then position."""
    candidates = np.flatnonzero(scores >= _WORTH)
    if len(candidates) > most > 0:
        least = np.partition(scores[candidates], -most)[-most]
        candidates = candidates[scores[candidates] >= least]
    ordered = sorted(candidates.tolist(), key=lambda position: (-scores[position], vocabulary.names[position], position))
    return tuple(_similar(vocabulary, scores, position) for position in ordered[:most])


def _similar(vocabulary: Vocabulary, scores: NDArray[np.float64], position: int) -> Match:
    return Match(vocabulary.names[position], position, float(scores[position]), "similar")


def _mask(among: NDArray[np.integer], size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, np.bool_)
    mask[among] = True
    return mask
