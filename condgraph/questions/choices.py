"""Ten choices for a question, the wrong ones like the answer, and when two answers are equal (KQA Pro, section 4.3)."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.values import Quantity, Time, text_of
from condgraph.questions.description import Ask, Literal, RelationCondition
from condgraph.questions.facts import FACT_KINDS, Facts, readable

if TYPE_CHECKING:
    from condgraph.questions.locate import Runner


# -- equal answers -----------------------------------------------------------------------------------
# KQA Pro's scorer: whether a predicted answer is the right one.
#
# Texts are equal as they are. A date is right for a year that it lies in. Numbers are equal within a
# tolerance, and their units have to be the same.


#: How far two numbers may be apart, absolutely or as a part of the larger.
TOLERANCE: Final = 1e-3
_NUMBER: Final = re.compile(r"([+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?:\s+(.+))?").fullmatch
_DATE: Final = re.compile(r"([+-]?\d{1,6})-(\d{2})(?:-(\d{2}))?(?:T[\d:]+)?").fullmatch
_YEAR: Final = re.compile(r"[+-]?\d{1,6}").fullmatch


def equal(answer: str, predicted: str) -> bool:
    """Whether a prediction is right.

    >>> equal("1958-05-29", "1958"), equal("206 centimetre", "206.0 centimetre"), equal("206 centimetre", "206")
    (True, True, False)
    >>> equal("1958", "1958-05-29"), equal("yes", "Yes"), equal("0.3333", "0.333")
    (True, True, True)
    """
    answer, predicted = answer.strip(), predicted.strip()
    if answer.casefold() == predicted.casefold():
        return True
    return _same_year(answer, predicted) or _same_number(answer, predicted)


def _same_year(answer: str, predicted: str) -> bool:
    value, other = _DATE(answer), _DATE(predicted)
    if value is not None and other is not None:
        return False
    if value is not None and _YEAR(predicted):
        return int(value[1]) == int(predicted)
    return other is not None and _YEAR(answer) is not None and int(other[1]) == int(answer)


def _same_number(answer: str, predicted: str) -> bool:
    value, other = _NUMBER(answer), _NUMBER(predicted)
    if value is None or other is None or (value[2] or "") != (other[2] or ""):
        return False
    a, b = (float(result[1].replace(",", "")) for result in (value, other))
    # Whole numbers, years and counts among them, are equal or not.
    if a.is_integer() and b.is_integer():
        return a == b
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


# -- choices -----------------------------------------------------------------------------------------
# A wrong choice is a value of the same predicate (first of entities of the same concept), an entity of
# the same concept or at the same end of the same relation, another relation of the same entities, a
# count that is near; where these are too few, a value of the same type and unit that is near. Dropping
# a filter of the program gives enough for every second question only, and the answer's neighbours
# give enough for nearly all. Where a graph has no ten, the question says why.


#: How many choices a question has, and what takes the place of one that is not there (KQA Pro does
#: so for yes and no).
CHOICES: Final = 10
UNKNOWN_CHOICE: Final = "unknown"
_DRAWS: Final = 60
#: How many other predicates lend values, and how many of each.
_LENDERS: Final = 12
_LENT: Final = 10


def choices(
    ask: Ask, answer: str, value: object, facts: Facts, runner: Runner, pick: random.Random
) -> tuple[tuple[str, ...], str | None]:
    """The ten choices in a random order (of yes and no, these two first), and why there are fewer.

    `value` is the typed answer.
    """
    if ask.kind == "Verify":
        return ("yes", "no", *[UNKNOWN_CHOICE] * (CHOICES - 2)), "an answer is yes or no"
    wrong = wrong_of(_siblings(ask, answer, value, facts, runner, pick), answer)
    return shuffled(answer, wrong, pick), None if len(wrong) == CHOICES - 1 else _why(ask, facts)


def wrong_of(texts: Iterator[str], answer: str) -> list[str]:
    """Enough of the texts, each once, none of which a scorer would take for the answer."""
    wrong: dict[str, None] = {}
    for text in texts:
        if text and text.casefold() != UNKNOWN_CHOICE and not equal(answer, text) and readable(text):
            wrong.setdefault(text)
            if len(wrong) == CHOICES - 1:
                break
    return list(wrong)


def shuffled(answer: str, wrong: list[str], pick: random.Random) -> tuple[str, ...]:
    """The answer among the wrong choices, filled up to ten."""
    result = [answer, *wrong[: CHOICES - 1]]
    pick.shuffle(result)
    return (*result, *[UNKNOWN_CHOICE] * (CHOICES - len(result)))


def _why(ask: Ask, facts: Facts) -> str:
    if ask.kind == "Relation":
        return f"the graph has {len(facts.snapshot.schema.relations)} relations"
    if ask.kind == "QueryAttribute":
        return f"the attribute {ask.key} has few values, and no other has any that are like the answer"
    if ask.kind.startswith("Qualifier"):
        return f"the qualifier {ask.qkey} has few values, and nothing else is like the answer"
    return "the graph has few things with names"


def _siblings(ask: Ask, answer: str, value: object, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    if ask.kind == "Count":
        yield from _counts(int(answer), pick)
    elif ask.kind == "Relation":
        yield from _relations(ask, facts, runner, pick)
    elif ask.kind == "QueryAttribute":
        yield from _values(ask, facts, runner, pick)
        yield from _near(value, facts, pick)
    elif ask.kind.startswith("Qualifier"):
        yield from _qualifiers(ask, facts, pick)
        yield from _like(ask.qkey, answer, facts, pick)
        yield from _near(value, facts, pick)
    else:
        yield from _entities(ask, facts, runner, pick)


def _counts(count: int, pick: random.Random) -> Iterator[str]:
    spread = max(6, count // 5)
    low = max(0, count - spread)
    near = [number for number in range(low, max(count + spread, low + CHOICES - 1) + 1) if number != count]
    yield from map(str, pick.sample(near, CHOICES - 1))


def _relations(ask: Ask, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    """Relations: of the entities in question, then any; then attributes."""
    snapshot, around = facts.snapshot, set()
    for described, runs in ((ask.first, facts.outgoing), (ask.second, facts.incoming)):
        for number in () if described is None else runner.numbers(described)[:1].tolist():
            around |= {run.predicate for run in runs(number) if run.relation}
    near = [snapshot.predicate_name(number) for number in sorted(around)]
    for names in (near, list(snapshot.schema.relations), list(snapshot.schema.attributes)):
        pick.shuffle(names)
        # Half of the choices are of these entities: if all were, none would be far off.
        yield from names[: CHOICES // 2] if names is near else names


def _values(ask: Ask, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    """Values of the attribute: of entities of the same concept first, then each once."""
    snapshot, number = facts.snapshot, facts.snapshot.predicate(ask.key)
    base, (low, high) = snapshot.relations, snapshot.attribute_offsets[number : number + 2]
    own = {concept for item in runner.numbers(ask.first)[:1].tolist() for concept in facts.concepts(item)}
    drawn = [base + at for at in pick.sample(range(low, high), min(_DRAWS // 2, high - low))]
    alike = [item for item in drawn if not own.isdisjoint(facts.concepts(facts.subject(item)))] if own else []
    if len(alike) < CHOICES:
        alike += facts.alike.values(number, pick, _DRAWS)
    kind = type(ask.value)
    # A metre among kilograms could not be right.
    unit = ask.value.unit if isinstance(ask.value, Quantity) else None
    other = []
    for statement in (*alike, *drawn):
        value, shown = facts.value(statement), facts.shown(statement)
        if shown is not None and type(value) is kind and (unit is None or getattr(value, "unit", None) == unit):
            yield shown
        elif shown is not None:
            other.append(shown)
    yield from other


def _qualifiers(ask: Ask, facts: Facts, pick: random.Random) -> Iterator[str]:
    snapshot, number = facts.snapshot, facts.snapshot.predicate(ask.key)
    relation = ask.kind == "QualifierRelational"
    offsets, base = (snapshot.relation_offsets, 0) if relation else (snapshot.attribute_offsets, snapshot.relations)
    low, high = offsets[number], offsets[number + 1]
    for at in pick.sample(range(low, high), min(_DRAWS, high - low)):
        for key, value in facts.qualifiers(base + at):
            if key == ask.qkey:
                yield text_of(value)
    # Then of any statement with that qualifier, each value once.
    for value in facts.alike.qualifiers(snapshot.predicate(ask.qkey), pick, _DRAWS):
        yield text_of(value)


def _like(qkey: str, answer: str, facts: Facts, pick: random.Random) -> Iterator[str]:
    """If the answer names an entity, names of entities that a relation with the name of the qualifier
    leads to, or that are in a concept of it.
    """
    snapshot = facts.snapshot
    number = snapshot.predicate(qkey)
    low, high = snapshot.relation_offsets[number : number + 2]
    for number in snapshot.named(answer)[:1].tolist():
        for statement in pick.sample(range(low, high), min(_DRAWS, high - low)):
            yield from _named(facts, facts.target(statement))
        for concept in facts.concepts(number):
            members = snapshot.members(snapshot.concepts_named(concept))
            for _ in range(_DRAWS if len(members) > 1 else 0):
                yield from _named(facts, int(members[pick.randrange(len(members))]))


def _near(value: object, facts: Facts, pick: random.Random) -> Iterator[str]:
    """Numbers of the same unit, or times of the same precision, that are near, of any attribute."""
    if not isinstance(value, Quantity | Time):
        return
    groups = facts.alike.groups(value)
    at = value.start if isinstance(value, Time) else _float(value)
    for start, end, keys in pick.sample(groups, min(_LENDERS, len(groups))):
        place = start + int(np.searchsorted(keys, at))
        near = sorted(range(max(start, place - _LENT), min(end, place + _LENT)), key=lambda item: abs(item - place))
        for candidate in near:
            statement = facts.snapshot.relations + candidate
            shown, result = facts.shown(statement), facts.value(statement)
            if shown is not None and (not isinstance(value, Time) or getattr(result, "precision", None) is value.precision):
                yield shown


def _float(value: Quantity) -> float:
    try:
        return float(value.number)
    except OverflowError:
        return float("inf") if value.number > 0 else float("-inf")


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
        relation = isinstance(condition, RelationCondition)
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
