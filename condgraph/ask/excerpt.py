"""The part of a schema that a question needs, as text within a budget of tokens (TrustUQA, E.3).

What comes first: things that the question names with the relations one and two steps from them; the
names in similar demonstrations; then the names nearest to the words of the question. The best are
told at length, as `schema().text()` tells them; as many others as fit by name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.ask.mentions import Mention, asked_about, masked
from condgraph.ask.mentions import mentions as mentions_in
from condgraph.engine.algebra import ByName, Distinct, Predicates, Reached, Scan
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError
from condgraph.engine.instead import around
from condgraph.engine.store import plan_texts
from condgraph.models.tokens import estimate
from condgraph.overview.text import predicate_line
from condgraph.overview.words import quoted

if TYPE_CHECKING:
    from condgraph.ask.known import Known
    from condgraph.engine.store import Store

#: Things of a question whose relations are looked up, and names that one thing may have.
_MOST_THINGS: Final = 3
#: Statements around a thing beyond which two steps from it are not looked at.
_MOST_AROUND: Final = 2_000
#: Sources that are offered where none is said.
MOST_SOURCES: Final = 3
#: Which part of a budget each section may take at most; names take what is left.
_SHARES: Final = {"things": 0.2, "told": 0.2, "concepts": 0.12, "keys": 0.2}
#: What a name is worth that is one and two steps from a thing, next to one that the question says.
#: Of fewer tokens no predicate is told at length.
_SMALL: Final = 800
#: Names that are listed whatever the question says, and what others have to fit.
_IN_ANY_CASE: Final = 4
_FITS: Final = 0.25
_ONE_STEP, _TWO_STEPS, _DEMONSTRATED = 0.5, 0.2, 0.9


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a schema: its `text` of at most as many `tokens` as were asked for, and the names
    that it holds. `sources` are those offered, best first.
    """

    text: str
    tokens: int
    predicates: tuple[str, ...]
    concepts: tuple[str, ...]
    qualifiers: tuple[str, ...]
    mentions: tuple[Mention, ...]
    sources: tuple[str, ...]
    masked: str = ""

    def __str__(self) -> str:
        return self.text


def excerpt(
    known: Known,
    store: Store,
    question: str,
    tokens: int,
    *,
    source: str | None = None,
    demonstrated: Mapping[str, float] | None = None,
    count: Callable[[str], int] | None = None,
    samples: bool = True,
    untrusted: Collection[str] = (),
    mentions: Sequence[Mention] | None = None,
    sources: Sequence[str] | None = None,
) -> Excerpt:
    """The part of a schema that a question needs, in at most so many tokens.

    `sources` are those that may be meant, the likeliest first, where they were ranked before.
    `demonstrated` are names that similar questions used, with a weight from 0 to 1. `samples=False`
    leaves out everything that stands in the graph but its names; so does a source among
    `untrusted`, for its predicates.
    """
    if type(tokens) is not int or tokens < 0:
        raise OptionError(f"tokens is a whole number and 0 or more, not {tokens!r}")
    counted = estimate if count is None else count
    found = tuple(mentions_in(question, known) if mentions is None else mentions)
    form, words = masked(question, found), asked_about(question, found)
    scores = known.predicates.scores(words)
    for name, weight in (demonstrated or {}).items():
        if (place := known.places.get(name)) is not None:
            scores[place] += _DEMONSTRATED * weight
    things = _things(known, store, found, scores)
    ranked = rank_sources(known, scores, words) if sources is None and source is None else list(sources or ())
    offered = (source,) if source is not None else tuple(ranked[: MOST_SOURCES if len(known.sources.names) > 10 else 10])
    allowed = _allowed(known, source, offered)
    order = _order(scores, known.predicates.sizes, allowed)
    concepts = known.concepts.scores(words)
    _add(concepts, known.concepts.names, demonstrated)
    writer = _Writer(known, counted, tokens, samples=samples, untrusted=frozenset(untrusted))
    writer.sources(offered, source)
    writer.things(things)
    # A table is small: its columns are all told, in the order that they have.
    writer.predicates(order, scores)
    writer.concepts(_fitting(concepts, known.concepts.sizes) if source is None else [])
    keys = known.qualifiers.scores(words)
    _add(keys, known.qualifiers.names, demonstrated)
    writer.keys(_fitting(keys, known.qualifiers.sizes))
    text, names = writer.done(order)
    return Excerpt(text, counted(text), tuple(names), tuple(writer.named), tuple(writer.keyed), found, offered, form)


def _fitting(scores: NDArray[np.float64], sizes: Sequence[int]) -> list[int]:
    """Places in order, of those that fit the question somewhat; some in any case."""
    order = _order(scores, sizes, None)
    return [at for number, at in enumerate(order) if number < _IN_ANY_CASE or scores[at] >= _FITS]


def _add(scores: NDArray[np.float64], names: Sequence[str], demonstrated: Mapping[str, float] | None) -> None:
    """What names gain that similar questions used."""
    if demonstrated:
        for at, name in enumerate(names):
            scores[at] += _DEMONSTRATED * demonstrated.get(name, 0.0)


def _order(scores: NDArray[np.float64], sizes: Sequence[int], allowed: NDArray[np.bool_] | None) -> list[int]:
    """Places by falling score, then size, then place."""
    order = np.lexsort((np.arange(len(scores)), -np.asarray(sizes, np.int64), -np.round(scores, 6)))
    kept: list[int] = (order if allowed is None else order[allowed[order]]).tolist()
    return kept


def _allowed(known: Known, source: str | None, sources: Sequence[str]) -> NDArray[np.bool_] | None:
    """Which predicates may be told: those of a source, or where there are many sources, of the
    offered ones.
    """
    many = len(known.sources.names) > 10
    if source is None and not many:
        return None
    mask = np.zeros(len(known.predicates.names), np.bool_)
    for one in (source,) if source is not None else sources:
        mask[known.of_source(one)] = True
    return mask


def rank_sources(known: Known, scores: NDArray[np.float64], question: str) -> list[str]:
    """All sources, the likeliest first: those whose predicates, and whose name, the question says."""
    named = known.sources.scores(question)
    best = np.zeros(len(known.sources.names))
    for at, name in enumerate(known.sources.names):
        some = scores[known.of_source(name)]
        top = np.sort(some)[::-1][:4]
        best[at] = float((top * np.array([1.0, 0.7, 0.5, 0.3])[: len(top)]).sum()) + 0.5 * named[at]
    return [known.sources.names[at] for at in _order(best, known.sources.sizes, None)]


# -- what stands around the things of a question ---------------------------------------------------


def _things(known: Known, store: Store, found: Sequence[Mention], scores: NDArray[np.float64]) -> list[tuple[Mention, list[str]]]:
    """The first things with their predicates, those that fit the question first; the predicates
    around them gain in `scores`.
    """
    things: list[tuple[Mention, list[str]]] = []
    for one in [one for one in found if one.names][:_MOST_THINGS]:
        check()
        near = _kept_around(known, store, one.names)
        told: dict[str, str] = {}
        for way, sign in (("forward", "→"), ("backward", "←"), ("value", "=")):
            for name in near.get(way, ()):
                told[name] = told.get(name, "") + sign
        for names, gain in ((told, _ONE_STEP), (near.get("beyond", ()), _TWO_STEPS)):
            for name in names:
                if (place := known.places.get(name)) is not None:
                    scores[place] += gain
        order = sorted(told, key=lambda name: (-scores[known.places[name]] if name in known.places else 0.0, name))
        things.append((one, [f"{quoted(name)} {told[name]}" for name in order[:8]]))
    return things


def _kept_around(known: Known, store: Store, names: tuple[str, ...]) -> dict[str, list[str]]:
    """What stands around things, looked up once while the graph stays as it is."""
    kept: dict[tuple[str, ...], dict[str, list[str]]] = known.around
    found = kept.get(names)
    if found is None:
        found = {way: plan_texts(store, plan) for way, plan in around(ByName(names)).items()}
        steps = Scan(ByName(names), None, "subject", "object", "relation")
        back = Scan(ByName(names), None, "object", "subject", "relation")
        if sum(store.counted([steps, back], lambda _: ())) <= _MOST_AROUND:
            beyond = Predicates(Scan(Reached(steps), None)), Predicates(Scan(Reached(back), None))
            found["beyond"] = [text for plan in beyond for text in plan_texts(store, Distinct(plan))]
        if len(kept) > 4_096:
            kept.clear()
        kept[names] = found
    return found


# -- the text --------------------------------------------------------------------------------------


class _Writer:
    """Lines within a budget: each section has a share, and what it leaves is for names."""

    def __init__(
        self, known: Known, counted: Callable[[str], int], tokens: int, *, samples: bool, untrusted: frozenset[str]
    ) -> None:
        self._known, self._counted, self._left, self._tokens = known, counted, tokens, tokens
        self._samples, self._untrusted = samples, untrusted
        self._lines: list[str] = []
        self._told: list[str] = []
        self.named: list[str] = []
        self.keyed: list[str] = []

    def _add(self, lines: Sequence[str], most: float) -> int:
        """Add the lines that fit into so many tokens; how many."""
        used = 0
        for number, line in enumerate(lines):
            cost = self._counted(line + "\n")
            if used + cost > min(most, self._left):
                return number
            self._lines.append(line)
            self._left -= cost
            used += cost
        return len(lines)

    def sources(self, sources: Sequence[str], source: str | None) -> None:
        """The sources that may be meant."""
        if source is None and len(self._known.sources.names) > 1 and sources:
            self._add([f"Sources: {', '.join(quoted(name) for name in sources)}"], 0.1 * self._tokens)

    def things(self, things: Sequence[tuple[Mention, list[str]]]) -> None:
        """What the question names, with what is known of it."""
        lines = [
            f"- {', '.join(quoted(name) for name in one.names[:3])} has {', '.join(predicates) or 'nothing'}"
            for one, predicates in things
            if self._samples
        ]
        if lines:
            self._add(["Named in the question (→ forward, ← backward, = value):", *lines], _SHARES["things"] * self._tokens)

    def predicates(self, order: Sequence[int], scores: NDArray[np.float64]) -> None:
        """The best predicates at length: as long as they fit, then shorter."""
        share = _SHARES["told"] * self._tokens * (0.6 if self._tokens < _SMALL else 1.0)
        used, lines = 0.0, ["Predicates, with statements: subjects → objects:"]
        used = self._counted(lines[0] + "\n")
        for place in order[:40]:
            check()
            one = self._known.predicate(place)
            trusted = self._samples and not self._untrusted & {source.name for source in one.sources}
            for length in range(2 if self._tokens < _SMALL else min(int(3 * used // max(share, 1)), 2), 3):
                line = predicate_line(one, length, examples=trusted)
                cost = self._counted(line + "\n")
                if used + cost <= share:
                    lines.append(line)
                    self._told.append(one.name)
                    used += cost
                    break
            else:
                break
        if len(lines) > 1:
            self._add(lines, share)

    def concepts(self, order: Sequence[int]) -> None:
        """The nearest concepts by name."""
        self.named = self._listed("Concepts: ", [self._known.concepts.names[at] for at in order], _SHARES["concepts"])

    def keys(self, order: Sequence[int]) -> None:
        """The nearest keys of qualifiers."""
        self.keyed = self._listed("Qualifiers: ", [self._known.qualifiers.names[at] for at in order], _SHARES["keys"])

    def _listed(self, title: str, names: Sequence[str], share: float) -> list[str]:
        line, kept = self._names(title, names, min(share * self._tokens, self._left))
        if kept:
            self._lines.append(line)
            self._left -= self._counted(line + "\n")
        return kept

    def _names(self, title: str, names: Sequence[str], most: float) -> tuple[str, list[str]]:
        """As many names as fit into one line."""
        kept: list[str] = []
        used: float = self._counted(title + "\n")
        for name in names:
            used += self._counted(quoted(name) + ", ")
            if used > most:
                break
            kept.append(name)
        return title + ", ".join(quoted(name) for name in kept), kept

    def done(self, order: Sequence[int]) -> tuple[str, list[str]]:
        """The text, and the predicates in it; the names that follow take what is left."""
        known = self._known.predicates.names
        rest = [known[place] for place in order if known[place] not in set(self._told)]
        line, kept = self._names("More predicates: ", rest[:400], self._left)
        lines = [*self._lines, line] if kept else self._lines
        text = "\n".join(lines)
        # Tokens of a tokenizer may run over ends of lines.
        while lines and self._counted(text) > self._tokens:
            lines = lines[:-1]
            kept = []
            text = "\n".join(lines)
        told = [name for name in self._told if quoted(name) in text]
        return text, [*told, *kept]
