"""Ten choices for a question, with wrong ones that resemble the answer, and when two answers are equal (KQA Pro,
section 4.3).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.values import Quantity, Time, as_float, text_of
from condgraph.questions.description import Ask, Literal, RelationCondition
from condgraph.questions.facts import FACT_KINDS, Facts, readable

if TYPE_CHECKING:
    from condgraph.questions.locate import Runner


# -- equal answers -----------------------------------------------------------------------------------
# KQA Pro's scorer, which decides whether a predicted answer is right.
#
# Texts are compared without case. A date equals the year that it is in. Numbers are equal within a
# tolerance if they have the same unit.


#: The largest difference of equal numbers, absolute or relative to the larger one.
TOLERANCE: Final = 1e-3
_NUMBER: Final = re.compile(r"([+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?:\s+(.+))?").fullmatch
_DATE: Final = re.compile(r"([+-]?\d{1,6})-(\d{2})(?:-(\d{2}))?(?:T[\d:]+)?").fullmatch
_YEAR: Final = re.compile(r"[+-]?\d{1,6}").fullmatch


def equal(answer: str, predicted: str) -> bool:
    """Whether a predicted answer is right.

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
    a, b = (float(match[1].replace(",", "")) for match in (value, other))
    # Whole numbers, such as years and counts, have no tolerance.
    if a.is_integer() and b.is_integer():
        return a == b
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


# -- choices -----------------------------------------------------------------------------------------
# A wrong choice is a value of the same predicate (of entities of the same concept first), an entity of
# the same concept or at the same end of the same relation, another relation of the same entities, or a
# near count. If these are too few, it is a near value of the same type and unit. Dropping a filter of
# the program would give enough choices for only half of the questions; the neighbours of the answer
# give enough for nearly all. If a graph does not have ten, the question reports why.


#: The number of choices of a question, and the text that replaces missing ones (as KQA Pro does for
#: yes and no).
CHOICES: Final = 10
UNKNOWN_CHOICE: Final = "unknown"
_MAX_DRAWS: Final = 60
#: The most other predicates whose values are used, and the most values of each.
_LENDERS: Final = 12
_LENT: Final = 10


def choices(
    ask: Ask, answer: str, value: object, facts: Facts, runner: Runner, pick: random.Random
) -> tuple[tuple[str, ...], str | None]:
    """Return the ten choices in random order (for yes and no, these two first), and the reason if there are fewer.
    `value` is the typed answer.
    """
    if ask.kind == "Verify":
        return ("yes", "no", *[UNKNOWN_CHOICE] * (CHOICES - 2)), "an answer is yes or no"
    wrong = wrong_of(_siblings(ask, answer, value, facts, runner, pick), answer)
    return shuffled(answer, wrong, pick), None if len(wrong) == CHOICES - 1 else _why(ask, facts)


def wrong_of(texts: Iterator[str], answer: str) -> list[str]:
    """Return enough of the texts, without duplicates and without any that a scorer would accept as the answer."""
    wrong: dict[str, None] = {}
    for text in texts:
        if text and text.casefold() != UNKNOWN_CHOICE and not equal(answer, text) and readable(text):
            wrong.setdefault(text)
            if len(wrong) == CHOICES - 1:
                break
    return list(wrong)


def shuffled(answer: str, wrong: list[str], pick: random.Random) -> tuple[str, ...]:
    """Return the answer among the wrong choices, filled up to ten."""
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
        yield from _near_counts(int(answer), pick)
    elif ask.kind == "Relation":
        yield from _relations(ask, facts, runner, pick)
    elif ask.kind == "QueryAttribute":
        yield from _values(ask, facts, runner, pick)
        yield from _near_values(value, facts, pick)
    elif ask.kind.startswith("Qualifier"):
        yield from _qualifiers(ask, facts, pick)
        yield from _like_entities(ask.qkey, answer, facts, pick)
        yield from _near_values(value, facts, pick)
    else:
        yield from _entities(ask, facts, runner, pick)


def _near_counts(count: int, pick: random.Random) -> Iterator[str]:
    spread = max(6, count // 5)
    low = max(0, count - spread)
    near = [number for number in range(low, max(count + spread, low + CHOICES - 1) + 1) if number != count]
    yield from map(str, pick.sample(near, CHOICES - 1))


def _relations(ask: Ask, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    """Yield relations of the entities in question, then any relations, then attributes."""
    snapshot, neighbouring = facts.snapshot, set()
    for described, runs in ((ask.first, facts.outgoing), (ask.second, facts.incoming)):
        for number in () if described is None else runner.numbers(described)[:1].tolist():
            neighbouring |= {run.predicate for run in runs(number) if run.relation}
    near = [snapshot.predicate_name(number) for number in sorted(neighbouring)]
    for names in (near, list(snapshot.schema.relations), list(snapshot.schema.attributes)):
        pick.shuffle(names)
        # Only half of the choices are relations of these entities, so that some are clearly wrong.
        yield from names[: CHOICES // 2] if names is near else names


def _values(ask: Ask, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    """Yield values of the attribute, those of entities of the same concept first."""
    snapshot, number = facts.snapshot, facts.snapshot.predicate(ask.key)
    base, (low, high) = snapshot.relations, snapshot.attribute_offsets[number : number + 2]
    own_concepts = {concept for candidate in runner.numbers(ask.first)[:1].tolist() for concept in facts.concepts(candidate)}
    sample = [base + at for at in pick.sample(range(low, high), min(_MAX_DRAWS // 2, high - low))]
    similar = [candidate for candidate in sample if not own_concepts.isdisjoint(facts.concepts(facts.subject(candidate)))]
    if len(similar) < CHOICES:
        similar += facts.alike.values(number, pick, _MAX_DRAWS)
    kind = type(ask.value)
    # A metre among kilograms would be recognisably wrong.
    unit = ask.value.unit if isinstance(ask.value, Quantity) else None
    other_values = []
    for statement in (*similar, *sample):
        value, shown = facts.value(statement), facts.shown(statement)
        if shown is not None and type(value) is kind and (unit is None or getattr(value, "unit", None) == unit):
            yield shown
        elif shown is not None:
            other_values.append(shown)
    yield from other_values


def _qualifiers(ask: Ask, facts: Facts, pick: random.Random) -> Iterator[str]:
    snapshot, number = facts.snapshot, facts.snapshot.predicate(ask.key)
    relation = ask.kind == "QualifierRelational"
    offsets, base = (snapshot.relation_offsets, 0) if relation else (snapshot.attribute_offsets, snapshot.relations)
    low, high = offsets[number], offsets[number + 1]
    for at in pick.sample(range(low, high), min(_MAX_DRAWS, high - low)):
        for key, value in facts.qualifiers(base + at):
            if key == ask.qkey:
                yield text_of(value)
    # Then distinct values of any statement with that qualifier.
    for value in facts.alike.qualifiers(snapshot.predicate(ask.qkey), pick, _MAX_DRAWS):
        yield text_of(value)


def _like_entities(qkey: str, answer: str, facts: Facts, pick: random.Random) -> Iterator[str]:
    """Yield names of entities if the answer is one: the objects of a relation with the name of the qualifier, and
    entities that share a concept with the answer.
    """
    snapshot = facts.snapshot
    number = snapshot.predicate(qkey)
    low, high = snapshot.relation_offsets[number : number + 2]
    for number in snapshot.named(answer)[:1].tolist():
        for statement in pick.sample(range(low, high), min(_MAX_DRAWS, high - low)):
            yield from _entity_name(facts, facts.target(statement))
        for concept in facts.concepts(number):
            members = snapshot.members(snapshot.concepts_named(concept))
            for _ in range(_MAX_DRAWS if len(members) > 1 else 0):
                yield from _entity_name(facts, int(members[pick.randrange(len(members))]))


def _near_values(value: object, facts: Facts, pick: random.Random) -> Iterator[str]:
    """Yield near numbers of the same unit, or near times of the same precision, of any attribute."""
    if not isinstance(value, Quantity | Time):
        return
    groups = facts.alike.groups(value)
    at = value.start if isinstance(value, Time) else as_float(value)[0]
    for start, end, keys in pick.sample(groups, min(_LENDERS, len(groups))):
        position = start + int(np.searchsorted(keys, at))
        nearest = sorted(range(max(start, position - _LENT), min(end, position + _LENT)), key=lambda index: abs(index - position))
        for candidate in nearest:
            statement = facts.snapshot.relations + candidate
            shown, stored = facts.shown(statement), facts.value(statement)
            if shown is not None and (not isinstance(value, Time) or getattr(stored, "precision", None) is value.precision):
                yield shown


def _entities(ask: Ask, facts: Facts, runner: Runner, pick: random.Random) -> Iterator[str]:
    snapshot = facts.snapshot
    if ask.kind == "SelectBetween" and ask.second is not None:
        for described in (ask.first, ask.second):
            yield from map(snapshot.name, runner.numbers(described)[:1].tolist())
    if ask.kind == "SelectAmong":
        compared = runner.numbers(ask.first)
        for _ in range(min(_MAX_DRAWS, 2 * len(compared))):
            yield from _entity_name(facts, int(compared[pick.randrange(len(compared))]))
    if ask.kind.startswith("Select"):
        # Other entities with the compared attribute.
        number = snapshot.predicate(ask.key)
        low, high = snapshot.attribute_offsets[number], snapshot.attribute_offsets[number + 1]
        for _ in range(_MAX_DRAWS):
            yield from _entity_name(facts, facts.subject(snapshot.relations + pick.randrange(low, high)))
    for condition in ask.first.conditions:
        number = snapshot.predicate(condition.key if isinstance(condition, Literal) else condition.predicate)
        relation = isinstance(condition, RelationCondition)
        offsets = snapshot.relation_offsets if relation else snapshot.attribute_offsets
        for _ in range(_MAX_DRAWS // 2):
            statement = pick.randrange(offsets[number], offsets[number + 1]) + (0 if relation else snapshot.relations)
            entity = facts.target(statement) if relation and not getattr(condition, "outward", True) else facts.subject(statement)
            if ask.first.concept is None or ask.first.concept in facts.concepts(entity):
                yield from _entity_name(facts, entity)
    if ask.first.concept is not None:
        members = snapshot.members(snapshot.concepts_named(ask.first.concept))
        for _ in range(_MAX_DRAWS if len(members) else 0):
            yield from _entity_name(facts, int(members[pick.randrange(len(members))]))
    for _ in range(_MAX_DRAWS):
        # Then the subject of any fact.
        kinds = [kind for kind in FACT_KINDS if facts.has(kind)]
        drawn = facts.draw(pick, pick.choice(kinds))
        if drawn is not None:
            yield from _entity_name(facts, facts.subject(drawn))


def _entity_name(facts: Facts, entity: int) -> Iterator[str]:
    name = facts.snapshot.name(entity)
    if readable(name) and facts.is_entity(entity) and not facts.unnamed_row(entity):
        yield name
