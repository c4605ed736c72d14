"""Algorithm 1 of DoG, from a question to an entity or value: prompts, the part of the graph that is shown, and the answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, cast

import numpy as np

from condgraph.chains.backends.base import Backend, Prompt, Score, mentioned
from condgraph.chains.place import ChainGraph, Numbers
from condgraph.chains.walk import MAX_STEPS, Triple, Verdict, Walk, triple_of, verify
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.facts import Entity, shown
from condgraph.engine.records import Evidence
from condgraph.engine.values import Value
from condgraph.vectors.encoders import Encoder, LexicalEncoder, encode

# -- entities of a question --------------------------------------------------------------------------
# Finds the entities that a question names, if none are given.


#: Longest name that is looked for, in words, and longest question, in characters.
MAX_WORDS: Final = 9
MAX_CHARACTERS: Final = 2_000
_BRACKETED: Final = re.compile(r"\[([^\[\]]{1,200})\]")
_WORD: Final = re.compile(r"\S+")
#: Words that are hardly ever meant as names on their own.
_COMMON: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be by did do does for from had has have he her his how i in is it its me my name of on or she that the "
        "their them they this to was we were what when where which who whom whose why will with you your",
    )
)


def mentions(place: ChainGraph, question: str) -> list[Entity]:
    """Return the entities named in a question: those in square brackets, else the longest names in it that do not overlap."""
    question = question[:MAX_CHARACTERS]
    bracketed = [result[1].strip() for result in _BRACKETED.finditer(question)]
    if bracketed:
        known = place.present(bracketed)
        return [place.entity(number) for name in dict.fromkeys(bracketed) for number in known.get(name, ())]
    pieces = list(_phrases(question))
    known = place.present(list(dict.fromkeys(text for text, _, _ in pieces)))
    spans: list[tuple[int, int]] = []
    result: dict[int, None] = {}
    for text, begin, end in pieces:
        if text in known and not any(begin < last and first < end for first, last in spans):
            spans.append((begin, end))
            result.update(dict.fromkeys(known[text]))
    return [place.entity(number) for number in result]


def _phrases(question: str) -> Iterator[tuple[str, int, int]]:
    """Yield runs of words, longest first, as written and without surrounding punctuation."""
    words = [(match.start(), match.end()) for match in _WORD.finditer(question)]
    for size in range(min(MAX_WORDS, len(words)), 0, -1):
        for first_word in range(len(words) - size + 1):
            begin, end = words[first_word][0], words[first_word + size - 1][1]
            text = question[begin:end]
            stripped = text.strip("?!.,;:\"'“”‘’()")
            for item in dict.fromkeys((text, stripped, stripped.removesuffix("'s").removesuffix("’s"))):
                if item and item.casefold() not in _COMMON:
                    yield item, begin, end


# -- answers ---------------------------------------------------------------------------------------
# The answer: the entity or value, the chain that leads to it with its statements, and separately the text
# of the model.


@dataclass(frozen=True, slots=True)
class Reached:
    """A chain from the search: its triples, its score (None if the server reports none), and the model's free text in between.

    The free text is not supported by the graph.
    """

    triples: tuple[Triple, ...]
    score: float | None
    said: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.triples))


@dataclass(frozen=True)
class Reasoned:
    """The answer to a question by a chain.

    `value` is an entity or value of the chain, chosen by the model; None if it chose none. `backend` tells how the
    model was constrained, `score` and `combined` what the scores of `chains` mean. `said` is free text of the model,
    which the graph does not support.
    """

    question: str
    value: Entity | Value | None
    chains: tuple[Reached, ...]
    backend: str
    model: str
    score: str
    combined: str
    query: tuple[Entity, ...]
    said: str = ""
    verdict: Verdict | None = None
    warnings: tuple[str, ...] = ()
    walk: Walk | None = field(default=None, repr=False)

    @property
    def chain(self) -> tuple[Triple, ...]:
        """The triples of the best chain."""
        return self.chains[0].triples if self.chains else ()

    @property
    def values(self) -> list[Entity | Value]:
        """The answer as a list with one item, or none."""
        return [] if self.value is None else [self.value]

    @property
    def texts(self) -> list[str]:
        """The answer as text: the name of an entity, or the text of a value."""
        return [shown(value) for value in self.values]

    @property
    def entities(self) -> list[Entity]:
        """The answer, if it is an entity."""
        return [value for value in self.values if isinstance(value, Entity)]

    @cached_property
    def evidence(self) -> list[Evidence]:
        """The distinct statements of the chain, with their sources."""
        return list({repr(item): item for triple in self.chain for item in triple.evidence}.values())

    @cached_property
    def alike(self) -> list[Evidence]:
        """Statements parallel to the triple with the answer: all with the same relation and the same other end."""
        triple = next((item for item in reversed(self.chain) if self.value is not None and self.value in item.ends), None)
        if triple is None:
            return []
        place, first = triple.place, triple.statements[0]
        head, tail = place.ends(first)
        backward = triple.ends[0] == self.value and tail >= 0
        around = place.incoming(tail) if backward else place.outgoing(head)
        kind = int(place.relations(np.array([first]))[0])
        return [place.evidence(item) for item in around[place.relations(around) == kind].tolist()]

    def data(self) -> list[dict[str, Any]]:
        """Return one record for each triple of the chain, with its sources."""
        return [
            {
                "triple": str(triple), "head": triple.ends[0].name, "relation": triple.evidence[0].predicate,
                "tail": shown(triple.ends[1]),
                "sources": [(source.name, row) for item in triple.evidence for source, row in item.sources],
            }
            for triple in self.chain
        ]  # fmt: skip

    def __iter__(self) -> Iterator[Entity | Value]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        return "\n".join([*self.texts, *map(str, self.chain)])


# -- prompts ---------------------------------------------------------------------------------------
# The prompt before a model writes a chain: instruction, three examples with their contexts, the context
# of the question (DoG, Table 6, in our own words).


#: How a question is answered: by a chain, directly, or by an unconstrained chain.
Method = Literal["chains", "direct", "cot"]
_TASK: Final = (
    "You read statements of a knowledge graph and answer a question from them. First give the steps that lead "
    "from the question to its answer, each a statement in the form < head -> relation -> tail >, as few as are "
    "needed, each with a short sentence. Then name the answer."
)
_DIRECT: Final = "You read statements of a knowledge graph and answer a question from them. Name the answer alone."
#: Context, question, steps with a sentence each, answer.
_EXAMPLES: Final = (
    (
        ("Danube -> mouth -> Black Sea", "Danube -> length -> 2850 kilometre", "Inn -> tributary of -> Danube",
         "Inn -> source -> Lake Lunghin"),
        "Which sea does the river that the Inn flows into end in?",
        (("Inn -> tributary of -> Danube", "The Inn flows into the Danube."),
         ("Danube -> mouth -> Black Sea", "The Danube ends in the Black Sea.")),
        "Black Sea",
    ),
    (
        ("Ada -> written by -> Mira Holm", "Ada -> publication year -> 1987", "Tern -> written by -> Mira Holm"),
        "When was Ada published?",
        (("Ada -> publication year -> 1987", "Ada was published in 1987."),),
        "1987",
    ),
    (
        ("Red Kite -> performed by -> The Larks", "The Larks -> member -> Jo Venn", "Jo Venn -> born in -> Leeds",
         "The Larks -> genre -> folk"),
        "In which town was the member of the band that performed Red Kite born?",
        (("Red Kite -> performed by -> The Larks", "The Larks performed Red Kite."),
         ("The Larks -> member -> Jo Venn", "Jo Venn is a member of The Larks."),
         ("Jo Venn -> born in -> Leeds", "Jo Venn was born in Leeds.")),
        "Leeds",
    ),
)  # fmt: skip
#: The words before the answer.
THEREFORE: Final = "Therefore, the answer is"


def prompt_of(question: str, context: Sequence[str], method: Method = "chains") -> Prompt:
    """Return the prompt of a question; `context` are triples without brackets."""
    parts = [_TASK if method != "direct" else _DIRECT]
    for number, (example_context, example_question, steps, answer) in enumerate(_EXAMPLES, 1):
        parts.append(f"Example {number}\n{_prompt(example_context, example_question)}")
        if method != "direct":
            parts.append("Steps:\n" + "\n".join(f"< {triple} >\n{thought}" for triple, thought in steps))
        parts.append(f"{THEREFORE} {answer}")
    user = f"Example {len(_EXAMPLES) + 1}\n{_prompt(context, question)}"
    return Prompt("\n".join(parts), user + ("\nSteps:" if method != "direct" else f"\n{THEREFORE}"))


def _prompt(context: Sequence[str], question: str) -> str:
    triples = "Context:\n" + "\n".join(context) + "\n" if context else ""
    return f"{triples}Question: {' '.join(question.split())}"


# -- a part of the graph ---------------------------------------------------------------------------
# Selects a part of a graph for a question: the connected triples most similar to it (DoG, Appendix B),
# and a graph restricted to them.


#: Most triples that are compared with a question.
MAX_COMPARED: Final = 5_000
#: Default number of triples in a prompt (the paper's number).
SHOWN: Final = 120


def likest(
    place: ChainGraph, question: str, start: Sequence[int], k: int, encoder: Encoder | None = None, *, hops: int = 2,
    compared: int = MAX_COMPARED,
) -> list[int]:  # fmt: skip
    """Return the statements most similar to a question, at most k, each with the statements that connect it to the question.

    `start` are entities; the first `compared` statements within `hops` are considered. Similarity is the dot product of
    the vectors of question and triple; ties are in the order of numbers.
    """
    if k < 1:
        raise OptionError(f"a part has at least 1 triple, not {k}")
    result, back = _reachable(place, start, hops, compared)
    if not result:
        return []
    encoder = encoder or LexicalEncoder()
    texts = [_statement_text(place, item) for item in result]
    vectors = encode(encoder, [question, *texts])
    order = np.argsort(-np.round(vectors[1:] @ vectors[0], 6), kind="stable")
    chosen: dict[int, None] = {}
    for index in order.tolist():
        path, value = [], result[index]
        while value >= 0:
            path.append(value)
            value = back[value]
        fresh = [item for item in path if item not in chosen]
        if len(chosen) + len(fresh) > k:
            continue
        chosen.update(dict.fromkeys(reversed(fresh)))
        if len(chosen) >= k:
            break
    return list(chosen)


def _reachable(place: ChainGraph, start: Sequence[int], hops: int, most: int) -> tuple[list[int], dict[int, int]]:
    """Return the statements within some hops, nearest first, and for each the statement that leads to it.

    The latter is -1 if an entity of the question leads to it.
    """
    back: dict[int, int] = {}
    reached = dict.fromkeys(start, -1)
    front = list(start)
    for _ in range(hops):
        check()
        place.reach(front)
        beyond: dict[int, int] = {}
        for node in front:
            for item in np.concatenate([place.outgoing(node), place.incoming(node)]).tolist():
                if item not in back:
                    if len(back) >= most:
                        return list(back), back
                    back[item] = reached[node]
                    for end in place.ends(item):
                        if end >= 0 and end not in reached:
                            beyond.setdefault(end, item)
        reached |= beyond
        front = list(beyond)
    return list(back), back


def _statement_text(place: ChainGraph, statement: int) -> str:
    relation = place.relation(int(place.relations(np.array([statement]))[0]))
    return f"{place.entity(place.ends(statement)[0]).name} {relation.replace('_', ' ')} {place.tail(statement)}"


def context_of(place: ChainGraph, statements: Iterable[int]) -> list[str]:
    """Return statements in the form of a prompt's context."""
    return [str(triple_of(place, [statement]))[2:-2] for statement in statements]


def in_sight(walk: Walk, question: str, k: int, encoder: Encoder | None) -> list[int]:
    """Return the k statements that may follow most similar to the question."""
    return likest(walk.place, question, walk.visited, k, encoder, hops=1)


class _Subgraph:
    """A place restricted to some of its statements."""

    def __init__(self, place: ChainGraph, statements: Iterable[int]) -> None:
        self._place = place
        self._selected = np.array(sorted(set(statements)), np.int64)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place, name)

    def outgoing(self, number: int) -> Numbers:
        """Return the statements of an entity in the part."""
        return self._restrict(self._place.outgoing(number))

    def incoming(self, number: int) -> Numbers:
        """Return the statements in the part whose object an entity is."""
        return self._restrict(self._place.incoming(number))

    def _restrict(self, statements: Numbers) -> Numbers:
        return statements[np.isin(statements, self._selected)]


def part_of(place: ChainGraph, statements: Iterable[int]) -> ChainGraph:
    """Restrict a place to some of its statements."""
    return cast("ChainGraph", _Subgraph(place, statements))


# -- the algorithm ---------------------------------------------------------------------------------
# In each step, every chain is extended by triples that may follow, and the best chains are kept; between
# triples, a model may comment in free text, and end the chain. The answer is an entity or value of the
# best chain.


Combined = Literal["sum", "mean"]
Visibility = Literal["full", "local", "none"]
#: Most tokens of free text after a triple.
WORDS: Final = 48
#: Most tokens of an unconstrained answer.
MAX_TOKENS: Final = 300


@dataclass(frozen=True, slots=True)
class Options:
    """Options of reasoning; see `Graph.reason`."""

    max_steps: int = MAX_STEPS
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
        """Raise `OptionError` for invalid options."""
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
    """A chain in the pool (Algorithm 1, line 2)."""

    walk: Walk
    prompt: Prompt
    total: float | None = 0.0
    tokens: int = 0
    said: tuple[str, ...] = ()
    ended: bool = False

    def rank(self, combined: Combined) -> float:
        """Return the sort key of the candidate."""
        if self.total is None:
            return 0.0
        return self.total / max(self.tokens, 1) if combined == "mean" else self.total


def reason(
    place: ChainGraph, question: str, backend: Backend, query: Iterable[str | Entity], options: Options, encoder: Encoder | None
) -> Reasoned:
    """Answer a question about some entities."""
    options.check()
    walk = Walk.of(place, query, options.max_steps, options.repeat)
    entities = tuple(map(place.entity, walk.visited))
    warnings: list[str] = [] if walk.visited else ["the question names no entity of the graph, so that no triple is allowed"]
    context: list[int] = []
    if options.subgraph is not None or options.visibility == "full" or options.method != "chains":
        context = likest(place, question, walk.visited, options.subgraph or options.shown, encoder)
    if options.subgraph is not None:
        walk = replace(walk, place=part_of(place, context))
    lines = [] if options.visibility == "none" else context_of(place, context[: options.shown])
    prompt = prompt_of(question, lines, options.method)
    if options.method != "chains":
        return _unconstrained(walk, question, backend, prompt, options, entities, context, warnings)
    pool = _search(walk, question, backend, prompt, options, encoder)
    best = pool[0]
    choices = _choices(best.walk, entities)
    value: Entity | Value | None = None
    if choices:
        ready = best.prompt.and_then(f"{THEREFORE}")
        picked = backend.choose(ready, [text for text, _ in choices])
        value = None if picked is None else choices[picked][1]
    if best.walk.triples and value is None:
        warnings.append("the model named nothing in its chain, so there is no answer")
    scores = backend.told(options.beams, options.score)
    if scores != options.score:
        warnings.append(f"scores are {scores or 'not told'}: {backend.name} tells no {options.score} ones")
    warnings += [*dict.fromkeys([*place.warnings, *getattr(backend, "warnings", ())])]
    chains = tuple(Reached(item.walk.triples, _score(item, options.combined), item.said) for item in pool)
    return Reasoned(
        question, value, chains, backend.name, backend.model, scores or "none", options.combined, entities,
        said=" ".join(part for part in best.said if part), warnings=tuple(warnings), walk=best.walk,
    )  # fmt: skip


def _score(candidate: _Candidate, combined: Combined) -> float | None:
    return None if candidate.total is None else candidate.rank(combined)


def _search(
    walk: Walk, question: str, backend: Backend, prompt: Prompt, options: Options, encoder: Encoder | None
) -> list[_Candidate]:  # fmt: skip
    """Return the pool after all steps, best first (Algorithm 1)."""
    pool = [_Candidate(walk, prompt)]
    for _ in range(options.max_steps):
        grown: list[_Candidate] = []
        for member in pool:
            check()
            grown += [member] if member.ended else _grown(member, question, backend, options, encoder)
        pool = _best_merged(grown, options)
        if all(item.ended for item in pool):
            break
    return pool


def _grown(candidate: _Candidate, question: str, backend: Backend, options: Options, encoder: Encoder | None) -> list[_Candidate]:
    prompt = candidate.prompt
    if options.visibility == "local":
        sight = in_sight(candidate.walk, question, options.shown, encoder) if candidate.walk.visited else []
        prompt = replace(prompt_of(question, context_of(candidate.walk.place, sight)), written=candidate.prompt.written)
    result = backend.triples(prompt, candidate.walk, options.beams, backend.told(options.beams, options.score))
    if not result:
        return [replace(candidate, ended=True)]
    grown = []
    for proposal in result:
        walk = candidate.walk.commit(proposal.triple)
        total = None if proposal.score is None or candidate.total is None else candidate.total + proposal.score
        after = _Candidate(walk, prompt.and_then(f"{proposal.triple}\n"), total, candidate.tokens + proposal.tokens, candidate.said)
        if options.free:
            free = backend.free(after.prompt, WORDS)
            words = " ".join(free.text.split(THEREFORE)[0].split())
            ended = not free.goes_on or THEREFORE in free.text
            after = replace(
                after, prompt=after.prompt.and_then(f"{words}\n" if words else ""), said=(*candidate.said, words), ended=ended
            )
        grown.append(replace(after, ended=after.ended or walk.full))
    return grown


def _best_merged(grown: Sequence[_Candidate], options: Options) -> list[_Candidate]:
    """Return the best chains; equal ones are merged, with the best score."""
    best: dict[tuple[tuple[int, ...], ...], _Candidate] = {}
    for candidate in grown:
        key = tuple(triple.statements for triple in candidate.walk.triples)
        if key not in best or candidate.rank(options.combined) > best[key].rank(options.combined):
            best[key] = candidate
    result = [item for item in best.values() if not math.isnan(item.rank(options.combined))]
    return sorted(result, key=lambda item: (-item.rank(options.combined), item.walk.text))[: options.beams]


def _choices(walk: Walk, query: Sequence[Entity]) -> list[tuple[str, Entity | Value]]:
    """Return the entities and values of a chain with the texts that the model may choose, last first.

    Those of the question are only included if there is nothing else.
    """
    texts = _by_text(value for triple in reversed(walk.triples) for value in reversed(triple.ends))
    choices = [(text, value) for text, value in texts.items() if text.strip()]
    return [(text, value) for text, value in choices if value not in query] or choices


def _by_text(values: Iterable[Entity | Value]) -> dict[str, Entity | Value]:
    result: dict[str, Entity | Value] = {}
    for value in values:
        result.setdefault(shown(value), value)
    return result


def _unconstrained(
    walk: Walk, question: str, backend: Backend, prompt: Prompt, options: Options, query: tuple[Entity, ...],
    context: Sequence[int], warnings: list[str],
) -> Reasoned:  # fmt: skip
    """Run one of the paper's baselines: the answer directly, or by an unconstrained chain."""
    text = ""
    for _ in range(options.max_steps + 1):
        # A stop at the opening of a triple is not the end.
        free = backend.free(prompt.and_then(text), MAX_TOKENS if options.method == "cot" else WORDS)
        text += free.text
        if not free.goes_on or options.method == "direct":
            break
        text += "<"
    verdict = verify(walk.place, text, query, max_steps=None) if options.method == "cot" else None
    facts = map(walk.place.evidence, context)
    texts = _by_text(end for fact in facts for end in (fact.subject, fact.object))
    choices = [(text, end) for text, end in texts.items() if end not in query]
    last = text.rsplit(THEREFORE, 1)[-1].split("\n\n")[0]
    picked = mentioned(last, [text for text, _ in choices])
    if verdict is not None and not verdict:
        warnings.append(f"no well-formed chain: {verdict}")
    triples = () if verdict is None else verdict.triples
    value = None if picked is None else choices[picked][1]
    name = f"{backend.name}, unconstrained ({options.method})"
    return Reasoned(
        question, value, (Reached(triples, None),), name, backend.model, "none", options.combined, query, said=text.strip(),
        verdict=verdict, warnings=tuple(warnings),
    )  # fmt: skip
