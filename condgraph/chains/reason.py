"""From a question to an entity or value: Algorithm 1 of DoG, with any backend.

Each step lets every chain write triples that may follow, and keeps the best chains; between triples
a model may say in words what it found, and whether it goes on. The answer is one of the things in
the best chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from condgraph.chains.answer import Reached, Reasoned
from condgraph.chains.backends.base import Backend, Prompt, Score
from condgraph.chains.backends.choosing import mentioned
from condgraph.chains.part import SHOWN, Part, in_sight, likest, shown
from condgraph.chains.place import Place
from condgraph.chains.prompt import THEREFORE, Method, prompt_of
from condgraph.chains.verify import verify
from condgraph.chains.walk import MOST_STEPS, Walk
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.facts import Entity
from condgraph.engine.values import Value, text_of
from condgraph.vectors.encoder import Encoder

Combined = Literal["sum", "mean"]
Visibility = Literal["full", "local", "none"]
#: Tokens of free text behind a triple.
WORDS: Final = 48
#: Tokens of an answer that nothing keeps to the graph.
LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Options:
    """How a question is reasoned about; see `Graph.reason`."""

    max_steps: int = MOST_STEPS
    beams: int = 1
    score: Score = "masked"
    combined: Combined = "sum"
    visibility: Visibility = "full"
    shown: int = SHOWN
    subgraph: int | None = None
    repeat: bool = False
    free: bool = True
    method: Method = "chains"

    def check(self) -> None:
        """Raise `OptionError` for what makes no sense."""
        for name, value, allowed in (
            ("score", self.score, ("masked", "raw")), ("combined", self.combined, ("sum", "mean")),
            ("visibility", self.visibility, ("full", "local", "none")), ("method", self.method, ("chains", "direct", "cot")),
        ):  # fmt: skip
            if value not in allowed:
                raise OptionError(f"{name} is one of {', '.join(allowed)}, not {value!r}", candidates=nearest(value, allowed))
        for name, number in (("beams", self.beams), ("max_steps", self.max_steps), ("shown", self.shown)):
            if number < 1:
                raise OptionError(f"{name} is at least 1, not {number}")


@dataclass(frozen=True)
class _Candidate:
    """A chain of the pool (Algorithm 1, line 2)."""

    walk: Walk
    prompt: Prompt
    total: float | None = 0.0
    tokens: int = 0
    said: tuple[str, ...] = ()
    ended: bool = False

    def rank(self, combined: Combined) -> float:
        """What it is kept for; a chain without a score before none."""
        if self.total is None:
            return 0.0
        return self.total / max(self.tokens, 1) if combined == "mean" else self.total


def reason(
    place: Place, question: str, backend: Backend, query: Iterable[str | Entity], options: Options, encoder: Encoder | None
) -> Reasoned:
    """The answer to a question about some entities."""
    options.check()
    walk = Walk.of(place, query, options.max_steps, options.repeat)
    entities = tuple(map(place.entity, walk.visited))
    warnings: list[str] = [] if walk.visited else ["the question names no entity of the graph, so that no triple is allowed"]
    context: list[int] = []
    if options.subgraph is not None or options.visibility == "full" or options.method != "chains":
        context = likest(place, question, walk.visited, options.subgraph or options.shown, encoder)
    if options.subgraph is not None:
        walk = replace(walk, place=Part(place, context))
    lines = [] if options.visibility == "none" else shown(place, context[: options.shown])
    prompt = prompt_of(question, lines, options.method)
    if options.method != "chains":
        return _unconstrained(walk, question, backend, prompt, options, entities, context, warnings)
    pool = _search(walk, question, backend, prompt, options, encoder)
    best = pool[0]
    things = things_of(best.walk, entities)
    value: Entity | Value | None = None
    if things:
        ready = best.prompt.and_then(f"{THEREFORE}")
        picked = backend.choose(ready, [text for text, _ in things])
        value = None if picked is None else things[picked][1]
    if best.walk.triples and value is None:
        warnings.append("the model named nothing that stands in its chain, which is no answer")
    told = backend.told(options.beams, options.score)
    if told != options.score:
        warnings.append(f"scores are {told or 'not told'}: {backend.name} tells no {options.score} ones")
    warnings += [*dict.fromkeys([*place.warnings, *getattr(backend, "warnings", ())])]
    chains = tuple(Reached(one.walk.triples, _score(one, options.combined), one.said) for one in pool)
    return Reasoned(
        question, value, chains, backend.name, backend.model, told or "none", options.combined, entities,
        said=" ".join(part for part in best.said if part), warnings=tuple(warnings), walk=best.walk,
    )  # fmt: skip


def _score(one: _Candidate, combined: Combined) -> float | None:
    return None if one.total is None else one.rank(combined)


def _search(
    walk: Walk, question: str, backend: Backend, prompt: Prompt, options: Options, encoder: Encoder | None
) -> list[_Candidate]:  # fmt: skip
    """The pool after all steps, best first (Algorithm 1)."""
    pool = [_Candidate(walk, prompt)]
    for _ in range(options.max_steps):
        grown: list[_Candidate] = []
        for one in pool:
            check()
            grown += [one] if one.ended else _grown(one, question, backend, options, encoder)
        pool = _best(grown, options)
        if all(one.ended for one in pool):
            break
    return pool


def _grown(one: _Candidate, question: str, backend: Backend, options: Options, encoder: Encoder | None) -> list[_Candidate]:
    prompt = one.prompt
    if options.visibility == "local":
        sight = in_sight(one.walk, question, options.shown, encoder) if one.walk.visited else []
        prompt = replace(prompt_of(question, shown(one.walk.place, sight)), written=one.prompt.written)
    found = backend.triples(prompt, one.walk, options.beams, backend.told(options.beams, options.score))
    if not found:
        return [replace(one, ended=True)]
    grown = []
    for proposal in found:
        walk = one.walk.commit(proposal.triple)
        total = None if proposal.score is None or one.total is None else one.total + proposal.score
        after = _Candidate(walk, prompt.and_then(f"{proposal.triple}\n"), total, one.tokens + proposal.tokens, one.said)
        if options.free:
            free = backend.free(after.prompt, WORDS)
            words = " ".join(free.text.split(THEREFORE)[0].split())
            ended = not free.goes_on or THEREFORE in free.text
            after = replace(
                after, prompt=after.prompt.and_then(f"{words}\n" if words else ""), said=(*one.said, words), ended=ended
            )
        grown.append(replace(after, ended=after.ended or walk.full))
    return grown


def _best(grown: Sequence[_Candidate], options: Options) -> list[_Candidate]:
    """The best chains; equal ones are one, with its best score."""
    kept: dict[tuple[tuple[int, ...], ...], _Candidate] = {}
    for one in grown:
        key = tuple(triple.statements for triple in one.walk.triples)
        if key not in kept or one.rank(options.combined) > kept[key].rank(options.combined):
            kept[key] = one
    found = [one for one in kept.values() if not math.isnan(one.rank(options.combined))]
    return sorted(found, key=lambda one: (-one.rank(options.combined), one.walk.text))[: options.beams]


def things_of(walk: Walk, query: Sequence[Entity]) -> list[tuple[str, Entity | Value]]:
    """The entities and values of a chain as texts that the model may choose: last first, those of
    the question only where there is nothing else.
    """
    found: dict[str, Entity | Value] = {}
    for triple in reversed(walk.triples):
        for thing in reversed(triple.ends):
            found.setdefault(thing.name if isinstance(thing, Entity) else text_of(thing), thing)
    fresh = [(text, thing) for text, thing in found.items() if text.strip() and thing not in query]
    return fresh or [(text, thing) for text, thing in found.items() if text.strip()]


def _unconstrained(
    walk: Walk, question: str, backend: Backend, prompt: Prompt, options: Options, query: tuple[Entity, ...],
    context: Sequence[int], warnings: list[str],
) -> Reasoned:  # fmt: skip
    """The paper's baselines: the answer at once, or by a chain that nothing keeps to the graph."""
    text = ""
    for _ in range(options.max_steps + 1):
        # A stop at the sign of a triple is no end here.
        free = backend.free(prompt.and_then(text), LONGEST if options.method == "cot" else WORDS)
        text += free.text
        if not free.goes_on or options.method == "direct":
            break
        text += "<"
    verdict = verify(walk.place, text, query, max_steps=None) if options.method == "cot" else None
    ends = (walk.place.evidence(one) for one in context)
    options_: dict[str, Entity | Value] = {}
    for fact in ends:
        for thing in (fact.subject, fact.object):
            options_.setdefault(thing.name if isinstance(thing, Entity) else text_of(thing), thing)
    things = [(name, thing) for name, thing in options_.items() if thing not in query]
    last = text.rsplit(THEREFORE, 1)[-1].split("\n\n")[0]
    picked = mentioned(last, [name for name, _ in things])
    if verdict is not None and not verdict:
        warnings.append(f"no well-formed chain: {verdict}")
    triples = () if verdict is None else verdict.triples
    value = None if picked is None else things[picked][1]
    name = f"{backend.name}, unconstrained ({options.method})"
    return Reasoned(
        question, value, (Reached(triples, None),), name, backend.model, "none", options.combined, query, said=text.strip(),
        verdict=verdict, warnings=tuple(warnings),
    )  # fmt: skip
