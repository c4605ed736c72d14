"""Conversations: questions that follow one another, and what words such as "his" refer to in earlier answers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from condgraph.ask.programs import VIA_OF, Runner
from condgraph.ask.prompt import Excerpt, Mention, known_of, mentions_in, predicates_around
from condgraph.ask.records import AnswerSet, Asked, Choice, Option, Reference, Referent
from condgraph.engine.algebra import ById, ByName
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.facts import EntityKind
from condgraph.names.words import WORD, stem, words_of
from condgraph.overview.schema import quoted

if TYPE_CHECKING:
    from condgraph.ask.prompt import KnownNames
    from condgraph.ask.records import AskStep, AskText, Host
    from condgraph.engine.store import Store


# -- references --------------------------------------------------------------------------------------
# A word such as "his" refers to an entity of an earlier turn. Answers take precedence over questions, and
# later turns over earlier ones. The candidates are restricted by what the conversation says ("his wife" is
# a she), by whether entities have the properties of people, and by what the question asks about. If several
# entities of the same answer remain, the user has to choose.


#: How many turns are searched, the most entities of each group, and the most values of an answer in a prompt.
MAX_TURNS: Final = 6
_MAX_GROUP: Final = 10
MAX_SHOWN: Final = 10
#: The most entities of an answer to which a later part may refer.
MAX_ENTITIES: Final = 10_000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words for a woman, a man, a thing, a place, several entities, and what was just mentioned.
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "she": _words("she her hers herself"),
    "he": _words("he him his himself"),
    "it": _words("it its itself"),
    "there": _words("there"),
    "they": _words("they them their theirs themselves these those"),
    "that": _words("this that"),
}
_KIND_OF: Final = {word: kind for kind, words in _KINDS.items() for word in words}
#: Words in a question which show that the answer is a woman or a man.
_SHE: Final = _words("wife mother daughter sister actress queen princess empress aunt niece grandmother widow girlfriend")
_HE: Final = _words("husband father son brother king prince emperor uncle nephew grandfather widower boyfriend")
#: After these words, "this" and "that" mean a thing and are not conjunctions.
_BEFORE_THAT: Final = _words(
    "than of in for about from to is was are were at on by with before after since during do does did as has have had"
)
#: Words next to which "there" is not a place, and words that follow an "it" which is not a thing.
_BE: Final = _words("is are was were be been")
_IMPERSONAL: Final = _words("true possible")
#: Words in predicates of people.
_PERSONAL: Final = frozenset(
    map(
        stem,
        _words("birth born died death spouse married wife husband occupation profession gender sex mother father child sibling"),
    )
)
#: An entity fits what the question asks for from this share of the best fit on.
_MIN_FIT: Final = 0.8


def resolve_references(
    question: str, before: Sequence[Asked], mentions: Sequence[Mention], known: KnownNames, store: Store, choose: Mapping[str, str]
) -> tuple[list[Reference], list[Choice], list[str]]:
    """Find what the words of a question refer to in earlier turns.

    Returns the references in order, choices that the user has to make, and words that refer to
    nothing. `choose` has ids by word. Raises `OptionError` if a choice is none of the entities that the
    word may mean.
    """
    references: list[Reference] = []
    choices: list[Choice] = []
    lost: list[str] = []
    words = _other_words(question, mentions)
    for start, end, kind in _pronouns(question, mentions):
        text = question[start:end]
        groups = list(_groups(before, kind, known))
        everything = list(dict.fromkeys(entity for _, group in groups for entity in group))
        if (chosen := choose.get(text)) is not None:
            matching = [entity for entity in everything if chosen in (entity.id, entity.name)]
            if not matching:
                names = [entity.id or entity.name for entity in everything]
                raise OptionError(f"{text!r} may not mean {chosen!r}", candidates=nearest(chosen, names) or names[:5])
            references.append(Reference(text, start, end, (matching[0],), _origin(groups, matching[0])))
            continue
        if kind == "they":
            origin, group = max(groups[:2], key=lambda item: len(item[1]) > 1, default=("", []))
            if group:
                references.append(Reference(text, start, end, tuple(group), origin))
            else:
                lost.append(text)
            continue
        fitting = _fitting(groups, kind, words, known, store)
        single = next(((origin, group[0]) for origin, group in fitting if len(group) == 1), None)
        if single is not None:
            others = tuple(dict.fromkeys(entity for _, group in fitting for entity in group if entity != single[1]))
            references.append(Reference(text, start, end, (single[1],), single[0], others[:_MAX_GROUP]))
        elif fitting:
            origin, group = fitting[0]
            choices.append(Choice("entity", text, tuple(Option(entity.id or entity.name, entity.name, origin) for entity in group)))
        elif kind != "that":
            lost.append(text)
    return references, choices, lost


#: The word for the answer to an earlier part of a question.
ANSWER: Final = re.compile(r"\bANSWER(\d{1,2})\b")


def answer_references(question: str, answers: Mapping[str, Asked], known: KnownNames) -> list[Reference]:
    """Return what the words for answers to earlier parts refer to: entities or values."""
    result = []
    for match in ANSWER.finditer(question):
        if (part := answers.get(match[0])) is not None:
            entities = answered_entities(part, known) or [Referent(text, "") for text in part.texts[:MAX_SHOWN]]
            origin = f"the answer to {part.question!r}"
            result.append(Reference(match[0], match.start(), match.end(), tuple(entities), origin))
    return result


def _pronouns(question: str, mentions: Sequence[Mention]) -> Iterator[tuple[int, int, str]]:
    """Yield the words of a question that refer back, with their kinds. Words within names are left out."""
    words = list(WORD.finditer(question))
    folded = [match[0].casefold().removesuffix("'s").removesuffix("’s") for match in words]
    for index, (match, word) in enumerate(zip(words, folded, strict=True)):
        kind = _KIND_OF.get(word)
        start, end = match.start(), match.start() + len(word)
        if kind is None or any(item.names and item.start < end and start < item.end for item in mentions):
            continue
        last, following = folded[index - 1] if index else "", folded[index + 1] if index + 1 < len(folded) else ""
        if kind == "there" and (last in _BE or following in _BE):
            continue
        if word == "it" and (following in _IMPERSONAL or (last in ("does", "did") and following == "take")):
            continue
        if kind == "that" and last not in _BEFORE_THAT and index:
            continue
        yield start, end, kind


def _other_words(question: str, mentions: Sequence[Mention]) -> str:
    """Return the words of a question outside its names and references."""
    taken = sorted(
        [(item.start, item.end) for item in mentions if item.names] + [(a, b) for a, b, _ in _pronouns(question, mentions)]
    )
    parts, position = [], 0
    for start, end in taken:
        parts.append(question[position:start])
        position = max(position, end)
    return " ".join([*parts, question[position:]])


def _groups(before: Sequence[Asked], kind: str, known: KnownNames) -> Iterator[tuple[str, list[Referent]]]:
    """Yield the entities of earlier turns with their origin, those of the last answer first.

    Entities known to be a "she" are left out for "he", and the other way round.
    """
    kinds = _genders(before)
    for turn in [*reversed(before)][:MAX_TURNS]:
        check()
        for origin, group in (
            (f"the answer to {turn.question!r}", answered_entities(turn, known)),
            (f"the question {turn.question!r}", asked_entities(turn)),
        ):
            group = [entity for entity in group if kind not in ("she", "he") or kinds.get(entity.name, kind) == kind]
            if kind in ("it", "there"):
                group = [entity for entity in group if entity.name not in kinds]
            if group:
                yield origin, group


def answered_entities(turn: Asked, known: KnownNames) -> list[Referent]:
    """Return the first entities of an answer. If the answer has texts, return those that name entities."""
    if turn.answer is None or turn.status not in ("answered", "doubtful"):
        return []
    entities = [entity for entity in turn.answer.entities[:_MAX_GROUP] if entity.kind is not EntityKind.CONCEPT]
    texts = turn.texts[:_MAX_GROUP]
    if entities and {entity.name for entity in entities} & set(texts):
        return list(dict.fromkeys(Referent(entity.name, entity.id) for entity in entities))
    named = [text for text in texts if known.linker.entities.folded(text)]
    rows = known.rows_named([text for text in texts if text not in named])
    return [Referent(text, "") for text in dict.fromkeys(texts) if text in named or text in rows]


def answer_set(part: Asked, known: KnownNames) -> AnswerSet | None:
    """Return the entities for which a word for an answer stands in a plan, or None if it stands for values.

    They are identified by id if the answer has ids.
    """
    if part.answer is None or not answered_entities(part, known):
        return None
    entities = [entity for entity in part.answer.entities if entity.kind is not EntityKind.CONCEPT]
    texts = part.texts
    if max(len(entities), len(texts)) > MAX_ENTITIES:
        return None
    if {entity.name for entity in entities} >= set(texts):
        ids = dict.fromkeys(entity.id for entity in entities)
        return AnswerSet(ById(tuple(ids)), len(ids))
    names = dict.fromkeys(texts)
    return AnswerSet(ByName(tuple(names)), len(names))


def part_limit(limit: int | None) -> int | None:
    """Return the limit for the answer of a part that later parts refer to, since these need every entity."""
    return None if limit is None else max(limit, MAX_ENTITIES + 1)


def asked_entities(turn: Asked) -> list[Referent]:
    """Return the entities that a question names or refers to."""
    named = [] if turn.excerpt is None else [item for item in turn.excerpt.mentions if len(item.names) == 1]
    referred = [entity for item in turn.references for entity in item.entities]
    referents = {entity.name for entity in referred}
    return list(dict.fromkeys([*referred, *(Referent(item.names[0], "") for item in named if item.names[0] not in referents)]))


def _genders(before: Sequence[Asked]) -> dict[str, str]:
    """Return who is a "she" or a "he", by name, according to the earlier turns.

    This follows from words that referred to an entity, or that asked for it.
    """
    kinds: dict[str, str] = {}
    for turn in before:
        for item in turn.references:
            kind = _KIND_OF.get(item.text.casefold(), "")
            if kind in ("she", "he") and len(item.entities) == 1:
                kinds[item.entities[0].name] = kind
        words = set(words_of(turn.question))
        she, he = bool(words & _SHE), bool(words & _HE)
        if she != he and turn.status in ("answered", "doubtful"):
            kinds |= dict.fromkeys(turn.texts[:_MAX_GROUP], "she" if she else "he")
    return kinds


def _fitting(
    groups: Sequence[tuple[str, list[Referent]]], kind: str, words: str, known: KnownNames, store: Store
) -> list[tuple[str, list[Referent]]]:
    """Return the groups without entities that a word cannot mean.

    "He" and "she" need entities with the properties of people, and "it" and "there" entities without them.
    The entities must also have what the question asks for.
    """
    fits = known.predicate_scores(words)
    people = any(_PERSONAL & {stem(word) for word in words_of(name)} for name in known.predicates.names)
    worth: dict[Referent, tuple[int, float]] = {}
    for entity in dict.fromkeys(entity for _, group in groups for entity in group):
        near = predicates_around(known, store, (entity.name,))
        own_predicates = [name for way in ("forward", "value") for name in near.get(way, ())]
        person = any(_PERSONAL & {stem(word) for word in words_of(name)} for name in own_predicates)
        neighbours = {*own_predicates, *near.get("backward", ())}
        best = max((float(fits[known.places[name]]) for name in neighbours if name in known.places), default=0.0)
        fits_kind = not people or kind == "that" or person == (kind in ("she", "he"))
        # An entity without statements is more likely a person than one with the properties of things.
        worth[entity] = 2 if fits_kind else int(not own_predicates), best
    likeliest = max((fit for fit, _ in worth.values()), default=0)
    candidates = [entity for entity, (fit, _) in worth.items() if fit == likeliest]
    most = max((worth[entity][1] for entity in candidates), default=0.0)
    kept = {entity for entity in candidates if worth[entity][1] >= _MIN_FIT * most}
    return [(origin, remaining) for origin, group in groups if (remaining := [entity for entity in group if entity in kept])]


def _origin(groups: Sequence[tuple[str, list[Referent]]], entity: Referent) -> str:
    return next(origin for origin, group in groups if entity in group)


# -- what a model is shown of a conversation -----------------------------------------------------------


def history_line(turn: Asked) -> str:
    """Return a question of a conversation with its answer, for the data of a prompt."""
    texts = turn.texts
    more = f" and {len(texts) - MAX_SHOWN:,} more" if len(texts) > MAX_SHOWN else ""
    answer = ", ".join(quoted(text) for text in texts[:MAX_SHOWN]) + more or "no answer"
    return f"- {quoted(' '.join(turn.question.split()))}: {answer}"


def reference_lines(references: Sequence[Reference], sizes: Mapping[str, int]) -> list[str]:
    """Return what the words of a question refer to, for the data of a prompt.

    Those in `sizes` may stand in a program for that many entities.
    """
    lines = []
    for item in references:
        names = ", ".join(quoted(entity.name) for entity in item.entities[:MAX_SHOWN])
        note = f"; in a program, {item.text} as the name of an entity is all {sizes[item.text]:,}" if item.text in sizes else ""
        lines.append(f"In the question, {quoted(item.text)} is {names}{note}")
    return lines


def reference_mentions(references: Sequence[Reference]) -> list[Mention]:
    """Return the references of a question as mentions of the entities."""
    return [
        Mention(item.text, item.start, item.end, tuple(dict.fromkeys(entity.name for entity in item.entities)))
        for item in references
    ]


# -- steps while they are done ------------------------------------------------------------------------


def stream_steps(ask: Callable[..., Asked], options: dict[str, Any]) -> Iterator[AskStep | AskText | Asked]:
    """Yield the steps of a question when they are done, with pieces of the model's text, and finally the outcome.

    If the caller stops early, the question ends.
    """
    events: SimpleQueue[AskStep | AskText | Asked | BaseException] = SimpleQueue()
    ended = options.get("cancelled") or Event()
    listeners = {name: options.get(name) for name in ("on_step", "on_text")}

    def tell(name: str, item: AskStep | AskText) -> None:
        if (listener := listeners[name]) is not None:
            listener(item)
        events.put(item)

    def run() -> None:
        try:
            events.put(ask(**options, **{name: partial(tell, name) for name in listeners}, cancelled=ended))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that reads the steps
            events.put(error)

    options = {name: value for name, value in options.items() if name not in (*listeners, "cancelled")}
    Thread(target=copy_context().run, args=(run,), name="condgraph-ask", daemon=True).start()
    try:
        while not isinstance(item := events.get(), (Asked, BaseException)):
            yield item
    except GeneratorExit:
        ended.set()
        raise
    if isinstance(item, BaseException):
        raise item
    yield item


# -- conversations -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation, without its outcome.

    It has the question, the program that answered it ("" if none did) with its language and source, and the
    meanings of names and words (`choose`). A question that was split into `parts` has their programs, of
    which the last one answered it.
    """

    question: str
    program: str = ""
    language: str = ""
    source: str | None = None
    choose: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[Turn] = ()


def lasting_choices(choose: Mapping[str, str]) -> dict[str, str]:
    """Return the choices that apply to the rest of a conversation.

    These are the meanings of names, but not of words such as "his".
    """
    return {name: key for name, key in choose.items() if name.casefold() not in _KIND_OF}


def rerun_turns(graph: Host, turns: Sequence[Turn], *, limit: int | None = None) -> tuple[Asked, ...]:
    """Return the outcomes of turns that a client kept, for `AskOptions.before`.

    The programs are run again, and the words refer to earlier turns again. No model is called. Raises
    `OptionError` for a choice that a word of a question does not have.
    """
    store = graph._store_of(None)
    known = known_of(store, graph._survey())
    result: list[Asked] = []
    choices: dict[str, str] = {}
    for turn in turns:
        check()
        choices |= lasting_choices(turn.choose)
        choose = {**choices, **turn.choose}
        parts: dict[str, Asked] = {}
        turn_parts = turn.parts or (turn,)
        for number, part in enumerate(turn_parts, start=1):
            own_limit = limit if number == len(turn_parts) else part_limit(limit)
            parts[f"ANSWER{number}"] = _run_again(graph, part, result, parts, choose, own_limit)
        last = parts[f"ANSWER{len(parts)}"]
        if turn.parts:
            mentions = mentions_in(turn.question, known)
            references = tuple(item for part in parts.values() for item in part.references)
            last = replace(last, question=turn.question, excerpt=_with_mentions(mentions), references=references)
        result.append(last)
    return tuple(result)


def _run_again(
    graph: Host, turn: Turn, before: Sequence[Asked], answers: Mapping[str, Asked], choose: Mapping[str, str], limit: int | None
) -> Asked:
    """Return the outcome of a turn, or of a part of one that follows parts with `answers`."""
    store = graph._store_of(None)
    known = known_of(store, graph._survey())
    references = answer_references(turn.question, answers, known)
    mentions = mentions_in(turn.question, known)
    mentions = [
        mention for mention in mentions if all(mention.end <= item.start or item.end <= mention.start for item in references)
    ]
    references += resolve_references(turn.question, before, mentions, known, store, choose)[0] if before else []
    attempt = None
    if turn.program:
        referent_ids = {mention.name: mention.id for item in references for mention in item.entities if mention.id}
        answer_sets = {name: answer_set(part, known) for name, part in answers.items()}
        runner = Runner(
            graph, turn.question, turn.source, known.sources.names, choose, limit=limit, referent_ids=referent_ids,
            answer_sets={name: item.entities for name, item in answer_sets.items() if item is not None},
        )  # fmt: skip
        attempt = runner.attempt("", turn.program, turn.language)
    succeeded = attempt is not None and attempt.answer is not None and attempt.stage is None
    mentions = sorted([*mentions, *reference_mentions(references)], key=lambda item: item.start)
    return Asked(
        turn.question, "answered" if succeeded else "failed", attempt.answer if attempt is not None and succeeded else None,
        VIA_OF.get(turn.language, ""), turn.source,
        excerpt=_with_mentions(mentions), references=tuple(references),
    )  # fmt: skip


def _with_mentions(mentions: Sequence[Mention]) -> Excerpt:
    return Excerpt("", 0, (), (), (), tuple(mentions), ())


class Chat:
    """A conversation with a graph, in which each question may refer to earlier answers.

    `turns` are the outcomes in order. `options` are those of `Graph.ask`, for every question.
    """

    def __init__(self, graph: Host, llm: Any, options: Mapping[str, Any]) -> None:
        self.graph, self.llm, self.options = graph, llm, dict(options)
        self._check(options)
        self._turns: list[Asked] = []
        self._choices: dict[str, str] = dict(options.get("choose") or {})

    def __repr__(self) -> str:
        return f"<Chat of {len(self._turns)} turns>"

    @property
    def turns(self) -> tuple[Asked, ...]:
        """The outcomes so far, in order."""
        return tuple(self._turns)

    def ask(self, question: str, **options: Any) -> Asked:
        """Ask a question that may refer to earlier turns.

        `options` are those of `Graph.ask`, for this question only. If the last question is asked again, for
        example with a choice, the new turn replaces it. The meaning of a name (`choose`) applies to the rest of
        the conversation, but that of a word such as "his" only to this question.
        """
        self._check(options)
        again = bool(self._turns) and self._turns[-1].question == question
        before = self._turns[:-1] if again else self._turns
        choices = dict(options.pop("choose", None) or {})
        self._choices |= lasting_choices(choices)
        turn = self.graph.ask(
            question, self.llm, **{**self.options, **options, "choose": {**self._choices, **choices}, "before": tuple(before)}
        )
        self._turns = [*before, turn]
        return turn

    def asking(self, question: str, **options: Any) -> Iterator[AskStep | AskText | Asked]:
        """Ask a question like `ask`, and yield the steps when they are done, pieces of text, and the outcome."""
        return stream_steps(partial(self.ask, question), options)

    def clear(self) -> None:
        """Forget the turns and the meanings of names."""
        self._turns, self._choices = [], dict(self.options.get("choose") or {})

    def _check(self, options: Mapping[str, Any]) -> None:
        known = inspect.signature(self.graph.ask).parameters.keys() - {"question", "llm", "before"}
        for name in options:
            if name not in known:
                raise OptionError(f"{name!r} is not an option of a question", candidates=nearest(name, known))
