"""Conversations: what words such as "his" refer to in the answers before, and questions that follow one another."""

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
from condgraph.ask.records import Asked, Choice, Option, Reference, Referent, Standing
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
# A word such as "his" is read as an entity of the turns before: of an answer before a question, of a
# later turn before an earlier one. Whom a word may mean is limited by what the conversation says ("his
# wife" is a she), by whether entities have what people have, and by what the question asks of them. A
# word for one that may be several of the same answer is a choice of the user.


#: Turns that are looked back, entities of each group, and values of an answer in a prompt.
MOST_TURNS: Final = 6
_MOST_OF_GROUP: Final = 10
MOST_SHOWN: Final = 10
#: Entities of an answer that a later part may refer to.
MOST_ENTITIES: Final = 10_000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words for a woman, a man, a thing, a place, several, and what was just said.
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "she": _words("she her hers herself"),
    "he": _words("he him his himself"),
    "it": _words("it its itself"),
    "there": _words("there"),
    "they": _words("they them their theirs themselves these those"),
    "that": _words("this that"),
}
_KIND_OF: Final = {word: kind for kind, words in _KINDS.items() for word in words}
#: Words of a question that say that the answer is a woman, or a man.
_SHE: Final = _words("wife mother daughter sister actress queen princess empress aunt niece grandmother widow girlfriend")
_HE: Final = _words("husband father son brother king prince emperor uncle nephew grandfather widower boyfriend")
#: Words behind which "this" and "that" are a thing, and no conjunction.
_BEFORE_THAT: Final = _words(
    "than of in for about from to is was are were at on by with before after since during do does did as has have had"
)
#: Words next to which "there" is no place, and words behind an "it" that is no thing.
_BE: Final = _words("is are was were be been")
_NOTHING: Final = _words("true possible")
#: Words of predicates that people have.
_OF_PEOPLE: Final = frozenset(
    map(
        stem,
        _words("birth born died death spouse married wife husband occupation profession gender sex mother father child sibling"),
    )
)
#: The share of the best fit from which on an entity has what the question asks for.
_FITS: Final = 0.8


def refer(
    question: str, before: Sequence[Asked], found: Sequence[Mention], known: KnownNames, store: Store, choose: Mapping[str, str]
) -> tuple[list[Reference], list[Choice], list[str]]:
    """What the words of a question refer to in the turns before: the references in order, choices that the
    user has to make, and words that refer to nothing. `choose` has ids by word.

    Raises `OptionError` where a choice is none of the entities that a word may mean.
    """
    references: list[Reference] = []
    choices: list[Choice] = []
    lost: list[str] = []
    words = _about(question, found)
    for start, end, kind in _pronouns(question, found):
        text = question[start:end]
        groups = list(_groups(before, kind, known))
        everything = list(dict.fromkeys(one for _, group in groups for one in group))
        if (chosen := choose.get(text)) is not None:
            meant = [one for one in everything if chosen in (one.id, one.name)]
            if not meant:
                names = [one.id or one.name for one in everything]
                raise OptionError(f"{text!r} may not mean {chosen!r}", candidates=nearest(chosen, names) or names[:5])
            references.append(Reference(text, start, end, (meant[0],), _origin(groups, meant[0])))
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
            others = tuple(dict.fromkeys(one for _, group in fitting for one in group if one != single[1]))
            references.append(Reference(text, start, end, (single[1],), single[0], others[:_MOST_OF_GROUP]))
        elif fitting:
            origin, group = fitting[0]
            choices.append(Choice("entity", text, tuple(Option(one.id or one.name, one.name, origin) for one in group)))
        elif kind != "that":
            lost.append(text)
    return references, choices, lost


#: A word for the answer to an earlier part of a question.
ANSWER: Final = re.compile(r"\bANSWER(\d{1,2})\b")


def answer_references(question: str, answers: Mapping[str, Asked], known: KnownNames) -> list[Reference]:
    """What the words for the answers to earlier parts of a question refer to: entities, or values."""
    result = []
    for match in ANSWER.finditer(question):
        if (part := answers.get(match[0])) is not None:
            entities = answered_entities(part, known) or [Referent(text, "") for text in part.texts[:MOST_SHOWN]]
            origin = f"the answer to {part.question!r}"
            result.append(Reference(match[0], match.start(), match.end(), tuple(entities), origin))
    return result


def _pronouns(question: str, found: Sequence[Mention]) -> Iterator[tuple[int, int, str]]:
    """The words of a question that refer to something before, with their kinds; none within a name."""
    words = list(WORD.finditer(question))
    folded = [match[0].casefold().removesuffix("'s").removesuffix("’s") for match in words]
    for at, (match, word) in enumerate(zip(words, folded, strict=True)):
        kind = _KIND_OF.get(word)
        start, end = match.start(), match.start() + len(word)
        if kind is None or any(item.names and item.start < end and start < item.end for item in found):
            continue
        last, following = folded[at - 1] if at else "", folded[at + 1] if at + 1 < len(folded) else ""
        if kind == "there" and (last in _BE or following in _BE):
            continue
        if word == "it" and (following in _NOTHING or (last in ("does", "did") and following == "take")):
            continue
        if kind == "that" and last not in _BEFORE_THAT and at:
            continue
        yield start, end, kind


def _about(question: str, found: Sequence[Mention]) -> str:
    """The words of a question outside its names and references."""
    taken = sorted([(item.start, item.end) for item in found if item.names] + [(a, b) for a, b, _ in _pronouns(question, found)])
    parts, at = [], 0
    for start, end in taken:
        parts.append(question[at:start])
        at = max(at, end)
    return " ".join([*parts, question[at:]])


def _groups(before: Sequence[Asked], kind: str, known: KnownNames) -> Iterator[tuple[str, list[Referent]]]:
    """The entities of the turns before, those of the last answer first, each with where they are from. Who is
    a she is no he.
    """
    kinds = _said_kinds(before)
    for turn in [*reversed(before)][:MOST_TURNS]:
        check()
        for origin, group in (
            (f"the answer to {turn.question!r}", answered_entities(turn, known)),
            (f"the question {turn.question!r}", asked_entities(turn)),
        ):
            group = [one for one in group if kind not in ("she", "he") or kinds.get(one.name, kind) == kind]
            if kind in ("it", "there"):
                group = [one for one in group if one.name not in kinds]
            if group:
                yield origin, group


def answered_entities(turn: Asked, known: KnownNames) -> list[Referent]:
    """The first entities of an answer; where it has texts, those that are the names of entities."""
    if turn.answer is None or turn.status not in ("answered", "doubtful"):
        return []
    entities = [one for one in turn.answer.entities[:_MOST_OF_GROUP] if one.kind is not EntityKind.CONCEPT]
    texts = turn.texts[:_MOST_OF_GROUP]
    if entities and {one.name for one in entities} & set(texts):
        return list(dict.fromkeys(Referent(one.name, one.id) for one in entities))
    named = [text for text in texts if known.linker.entities.folded(text)]
    rows = known.rows_named([text for text in texts if text not in named])
    return [Referent(text, "") for text in dict.fromkeys(texts) if text in named or text in rows]


def entities_of(part: Asked, known: KnownNames) -> Standing | None:
    """What a word for an answer is in a plan: its entities, by their ids where the answer has them; None for values."""
    if part.answer is None or not answered_entities(part, known):
        return None
    entities = [one for one in part.answer.entities if one.kind is not EntityKind.CONCEPT]
    texts = part.texts
    if max(len(entities), len(texts)) > MOST_ENTITIES:
        return None
    if {one.name for one in entities} >= set(texts):
        ids = dict.fromkeys(one.id for one in entities)
        return Standing(ById(tuple(ids)), len(ids))
    names = dict.fromkeys(texts)
    return Standing(ByName(tuple(names)), len(names))


def part_limit(limit: int | None) -> int | None:
    """The limit of a part that others follow: of its answer, those need every entity."""
    return None if limit is None else max(limit, MOST_ENTITIES + 1)


def asked_entities(turn: Asked) -> list[Referent]:
    """The entities that a question names, or refers to."""
    named = [] if turn.excerpt is None else [item for item in turn.excerpt.mentions if len(item.names) == 1]
    referred = [one for item in turn.references for one in item.entities]
    referents = {one.name for one in referred}
    return list(dict.fromkeys([*referred, *(Referent(item.names[0], "") for item in named if item.names[0] not in referents)]))


def _said_kinds(before: Sequence[Asked]) -> dict[str, str]:
    """Who is a she and who a he, by name, as the turns before say: by a word that referred to them, or by one
    that asked for them.
    """
    kinds: dict[str, str] = {}
    for turn in before:
        for item in turn.references:
            kind = _KIND_OF.get(item.text.casefold(), "")
            if kind in ("she", "he") and len(item.entities) == 1:
                kinds[item.entities[0].name] = kind
        said = set(words_of(turn.question))
        she, he = bool(said & _SHE), bool(said & _HE)
        if she != he and turn.status in ("answered", "doubtful"):
            kinds |= dict.fromkeys(turn.texts[:_MOST_OF_GROUP], "she" if she else "he")
    return kinds


def _fitting(
    groups: Sequence[tuple[str, list[Referent]]], kind: str, words: str, known: KnownNames, store: Store
) -> list[tuple[str, list[Referent]]]:
    """The groups without entities that a word cannot mean, by what entities have: what people have for "he"
    and "she", and nothing of it for "it" and "there"; and what the question asks for.
    """
    fits = known.asked_for(words)
    people = any(_OF_PEOPLE & {stem(word) for word in words_of(name)} for name in known.predicates.names)
    worth: dict[Referent, tuple[int, float]] = {}
    for one in dict.fromkeys(one for _, group in groups for one in group):
        near = predicates_around(known, store, (one.name,))
        own = [name for way in ("forward", "value") for name in near.get(way, ())]
        person = any(_OF_PEOPLE & {stem(word) for word in words_of(name)} for name in own)
        around = {*own, *near.get("backward", ())}
        best = max((float(fits[known.places[name]]) for name in around if name in known.places), default=0.0)
        right = not people or kind == "that" or person == (kind in ("she", "he"))
        # Of whom nothing is known may be a person sooner than what has what things have.
        worth[one] = 2 if right else int(not own), best
    likely = [one for one in worth if worth[one][0] == max(right for right, _ in worth.values())]
    most = max((worth[one][1] for one in likely), default=0.0)
    kept = {one for one in likely if worth[one][1] >= _FITS * most}
    return [(origin, some) for origin, group in groups if (some := [one for one in group if one in kept])]


def _origin(groups: Sequence[tuple[str, list[Referent]]], one: Referent) -> str:
    return next(origin for origin, group in groups if one in group)


# -- what a model is shown of a conversation -----------------------------------------------------------


def history_line(turn: Asked) -> str:
    """A question of a conversation with its answer, for the data of a prompt."""
    texts = turn.texts
    more = f" and {len(texts) - MOST_SHOWN:,} more" if len(texts) > MOST_SHOWN else ""
    gave = ", ".join(quoted(text) for text in texts[:MOST_SHOWN]) + more or "no answer"
    return f"- {quoted(' '.join(turn.question.split()))}: {gave}"


def reference_lines(references: Sequence[Reference], sizes: Mapping[str, int]) -> list[str]:
    """What the words of a question refer to, for the data of a prompt; those of `sizes` may stand in a program for so
    many entities.
    """
    lines = []
    for item in references:
        names = ", ".join(quoted(one.name) for one in item.entities[:MOST_SHOWN])
        many = f"; in a program, {item.text} as the name of an entity is all {sizes[item.text]:,}" if item.text in sizes else ""
        lines.append(f"In the question, {quoted(item.text)} is {names}{many}")
    return lines


def referred(references: Sequence[Reference]) -> list[Mention]:
    """The references of a question as mentions of the entities."""
    return [
        Mention(item.text, item.start, item.end, tuple(dict.fromkeys(one.name for one in item.entities))) for item in references
    ]


# -- steps while they are done ------------------------------------------------------------------------


def followed(ask: Callable[..., Asked], options: dict[str, Any]) -> Iterator[AskStep | AskText | Asked]:
    """The steps of a question while they are done, with pieces of what the model writes, and the outcome at last.
    Whoever stops earlier ends the question.
    """
    told: SimpleQueue[AskStep | AskText | Asked | BaseException] = SimpleQueue()
    ended = options.get("cancelled") or Event()
    hearers = {name: options.get(name) for name in ("on_step", "on_text")}

    def tell(name: str, item: AskStep | AskText) -> None:
        if (hearer := hearers[name]) is not None:
            hearer(item)
        told.put(item)

    def run() -> None:
        try:
            told.put(ask(**options, **{name: partial(tell, name) for name in hearers}, cancelled=ended))
        except BaseException as error:  # noqa: BLE001 - raised again where the steps are read
            told.put(error)

    options = {name: value for name, value in options.items() if name not in (*hearers, "cancelled")}
    Thread(target=copy_context().run, args=(run,), name="condgraph-ask", daemon=True).start()
    try:
        while not isinstance(item := told.get(), (Asked, BaseException)):
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
    """What was asked in a turn of a conversation, without what came of it: the question, the program that answered it
    ("" where none did) with its language and source, and what names and words meant (`choose`). A question that was
    asked in `parts` has the programs of these, the last of which answered it.
    """

    question: str
    program: str = ""
    language: str = ""
    source: str | None = None
    choose: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[Turn] = ()


def lasting(choose: Mapping[str, str]) -> dict[str, str]:
    """The choices that apply to the rest of a conversation: what names mean, and not what words such as "his" refer to."""
    return {name: key for name, key in choose.items() if name.casefold() not in _KIND_OF}


def recalled(graph: Host, turns: Sequence[Turn], *, limit: int | None = None) -> tuple[Asked, ...]:
    """The outcomes of turns that somebody else kept, for `AskOptions.before`: their programs are run again, and their
    words refer again to the turns before them. No model is asked.

    Raises `OptionError` for a choice that a word of a question does not have.
    """
    store = graph._store_of(None)
    known = known_of(store, graph._survey())
    result: list[Asked] = []
    choices: dict[str, str] = {}
    for turn in turns:
        check()
        choices |= lasting(turn.choose)
        choose = {**choices, **turn.choose}
        parts: dict[str, Asked] = {}
        several = turn.parts or (turn,)
        for number, part in enumerate(several, start=1):
            most = limit if number == len(several) else part_limit(limit)
            parts[f"ANSWER{number}"] = _run_again(graph, part, result, parts, choose, most)
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
    """The outcome of a turn, or of a part of one behind parts with `answers`."""
    store = graph._store_of(None)
    known = known_of(store, graph._survey())
    references = answer_references(turn.question, answers, known)
    mentions = mentions_in(turn.question, known)
    mentions = [one for one in mentions if all(one.end <= item.start or item.end <= one.start for item in references)]
    references += refer(turn.question, before, mentions, known, store, choose)[0] if before else []
    attempt = None
    if turn.program:
        refers = {one.name: one.id for item in references for one in item.entities if one.id}
        stands = {name: entities_of(part, known) for name, part in answers.items()}
        runner = Runner(
            graph, turn.question, turn.source, known.sources.names, choose, limit=limit, refers=refers,
            stands={name: item.entities for name, item in stands.items() if item is not None},
        )  # fmt: skip
        attempt = runner.attempt("", turn.program, turn.language)
    ran = attempt is not None and attempt.answer is not None and attempt.stage is None
    mentions = sorted([*mentions, *referred(references)], key=lambda item: item.start)
    return Asked(
        turn.question, "answered" if ran else "failed", attempt.answer if attempt is not None and ran else None,
        VIA_OF.get(turn.language, ""), turn.source,
        excerpt=_with_mentions(mentions), references=tuple(references),
    )  # fmt: skip


def _with_mentions(mentions: Sequence[Mention]) -> Excerpt:
    return Excerpt("", 0, (), (), (), tuple(mentions), ())


class Chat:
    """A conversation with a graph: each question may refer to the answers before.

    `turns` are the outcomes in order; `options` are those of `Graph.ask`, for every question.
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
        """The outcomes so far, the first question first."""
        return tuple(self._turns)

    def ask(self, question: str, **options: Any) -> Asked:
        """Ask a question that may refer to the turns before; `options` are those of `Graph.ask`, for this
        question. A question that is asked again, such as one with a choice, takes the place of the last
        turn. What a name means (`choose`) applies to the rest of the conversation, what a word such as
        "his" refers to applies to this question.
        """
        self._check(options)
        again = bool(self._turns) and self._turns[-1].question == question
        before = self._turns[:-1] if again else self._turns
        given = dict(options.pop("choose", None) or {})
        self._choices |= lasting(given)
        turn = self.graph.ask(
            question, self.llm, **{**self.options, **options, "choose": {**self._choices, **given}, "before": tuple(before)}
        )
        self._turns = [*before, turn]
        return turn

    def asking(self, question: str, **options: Any) -> Iterator[AskStep | AskText | Asked]:
        """`ask` as its steps while they are done, with pieces of what the model writes, and the outcome at last."""
        return followed(partial(self.ask, question), options)

    def clear(self) -> None:
        """Forget the turns, and what names mean."""
        self._turns, self._choices = [], dict(self.options.get("choose") or {})

    def _check(self, options: Mapping[str, Any]) -> None:
        known = inspect.signature(self.graph.ask).parameters.keys() - {"question", "llm", "before"}
        for name in options:
            if name not in known:
                raise OptionError(f"{name!r} is no option of a question", candidates=nearest(name, known))
