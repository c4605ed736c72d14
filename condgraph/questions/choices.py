"""Ten choices: the answer and wrong ones that are like it, from its siblings.

A wrong choice is a value of the same predicate elsewhere (the birth dates of others), an entity of
the same concept or at the same end of the same relation, another relation of the same things, a
count that is near. Dropping a filter of the program gives enough for every second question only,
and the answer's neighbours give enough for nearly all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from condgraph.engine.values import text_of
from condgraph.questions.description import Ask, Literal, Related
from condgraph.questions.facts import FACT_KINDS, Facts, readable

if TYPE_CHECKING:
    from condgraph.questions.locate import Runner

#: How many choices a question has, and what takes the place of one that is not there (KQA Pro does
#: so for yes and no).
CHOICES: Final = 10
UNKNOWN_CHOICE: Final = "unknown"
_DRAWS: Final = 60


def choices(ask: Ask, answer: str, facts: Facts, runner: Runner, pick: random.Random) -> tuple[str, ...]:
    """The ten choices in a random order; of yes and no, these two first."""
    if ask.kind == "Verify":
        return ("yes", "no", *[UNKNOWN_CHOICE] * (CHOICES - 2))
    wrong: dict[str, None] = {}
    for text in _siblings(ask, answer, facts, runner, pick):
        if text and text.casefold() not in (answer.casefold(), UNKNOWN_CHOICE):
            wrong.setdefault(text)
            if len(wrong) == CHOICES - 1:
                break
    return shuffled(answer, list(wrong), pick)


def shuffled(answer: str, wrong: list[str], pick: random.Random) -> tuple[str, ...]:
    """The answer among the wrong choices, filled up to ten."""
    found = [answer, *wrong[: CHOICES - 1]]
    pick.shuffle(found)
    return (*found, *[UNKNOWN_CHOICE] * (CHOICES - len(found)))


def _siblings(ask: Ask, answer: str, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    if ask.kind == "Count":
        yield from _near(int(answer), pick)
    elif ask.kind == "Relation":
        yield from _relations(facts, pick)
    elif ask.kind == "QueryAttribute":
        yield from _values(ask.key, facts, pick)
    elif ask.kind.startswith("Qualifier"):
        yield from _qualifiers(ask, facts, pick)
    else:
        yield from _entities(ask, facts, runner, pick)


def _near(count: int, pick: random.Random) -> Iterator[str]:
    spread = max(6, count // 5)
    near = [number for number in range(max(0, count - spread), count + spread + 1) if number != count]
    yield from map(str, pick.sample(near, min(len(near), CHOICES - 1)))


def _relations(facts: Facts, pick: random.Random) -> Iterator[str]:
    names = list(facts.snapshot.schema.relations)
    pick.shuffle(names)
    yield from names


def _values(key: str, facts: Facts, pick: random.Random) -> Iterator[str]:
    offsets, number = facts.snapshot.attribute_offsets, facts.snapshot.predicate(key)
    for _ in range(_DRAWS):
        shown = facts.shown(facts.snapshot.relations + pick.randrange(offsets[number], offsets[number + 1]))
        if shown is not None and readable(shown):
            yield shown


def _qualifiers(ask: Ask, facts: Facts, pick: random.Random) -> Iterator[str]:
    snapshot, number = facts.snapshot, facts.snapshot.predicate(ask.key)
    relation = ask.kind == "QualifierRelational"
    offsets, base = (snapshot.relation_offsets, 0) if relation else (snapshot.attribute_offsets, snapshot.relations)
    for _ in range(_DRAWS):
        for key, value in facts.qualifiers(base + pick.randrange(offsets[number], offsets[number + 1])):
            if key == ask.qkey:
                yield text_of(value)
    # Then of any statement with that qualifier.
    qkey = snapshot.predicate(ask.qkey)
    places, items = snapshot.arrays.view("qkey.offsets"), snapshot.arrays.view("qkey.items")
    owners = snapshot.arrays.view("q.owner")
    for _ in range(_DRAWS):
        for key, value in facts.qualifiers(owners[items[pick.randrange(places[qkey], places[qkey + 1])]]):
            if key == ask.qkey:
                yield text_of(value)


def _entities(ask: Ask, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    snapshot = facts.snapshot
    if ask.kind == "SelectBetween" and ask.second is not None:
        for described in (ask.first, ask.second):
            yield from map(snapshot.name, runner.numbers(described)[:1].tolist())
    if ask.kind == "SelectAmong":
        inside = runner.numbers(ask.first)
        for _ in range(min(_DRAWS, 2 * len(inside))):
            yield from _named(facts, int(inside[pick.randrange(len(inside))]))
    if ask.kind.startswith("Select"):
        # Others that have what is compared.
        number = snapshot.predicate(ask.key)
        low, high = snapshot.attribute_offsets[number], snapshot.attribute_offsets[number + 1]
        for _ in range(_DRAWS):
            yield from _named(facts, facts.subject(snapshot.relations + pick.randrange(low, high)))
    for condition in ask.first.conditions:
        number = snapshot.predicate(condition.key if isinstance(condition, Literal) else condition.predicate)
        relation = isinstance(condition, Related)
        offsets = snapshot.relation_offsets if relation else snapshot.attribute_offsets
        for _ in range(_DRAWS // 2):
            statement = pick.randrange(offsets[number], offsets[number + 1]) + (0 if relation else snapshot.relations)
            ends = facts.target(statement) if relation and not getattr(condition, "outward", True) else facts.subject(statement)
            if ask.first.concept is None or ask.first.concept in facts.concepts(ends):
                yield from _named(facts, ends)
    if ask.first.concept is not None:
        members = snapshot.members(snapshot.concepts_named(ask.first.concept))
        for _ in range(_DRAWS if len(members) else 0):
            yield from _named(facts, int(members[pick.randrange(len(members))]))
    for _ in range(_DRAWS):
        # Then of anything at all.
        kinds = [kind for kind in FACT_KINDS if facts.has(kind)]
        statement_or_none = facts.draw(pick, pick.choice(kinds))
        if statement_or_none is not None:
            yield from _named(facts, facts.subject(statement_or_none))


def _named(facts: Facts, entity: int) -> Iterator[str]:
    name = facts.snapshot.name(entity)
    if readable(name) and facts.is_entity(entity) and not facts.unnamed_row(entity):
        yield name
