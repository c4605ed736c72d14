"""Describes an entity, or a set of entities, by the statements around it: concept, attributes, relations and their
qualifiers, until no other entity fits.

The engine finds every set, with the program that the question will have. Conditions that change nothing are removed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.execute.sets import FactSet
from condgraph.engine.operands import year_of
from condgraph.engine.values import NO_UNIT, Number, Precision, Quantity, Time, text_of
from condgraph.languages import registry
from condgraph.questions import description as descriptions
from condgraph.questions.facts import MAX_LENGTH, RELATION, Facts
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.snapshot.snapshot import Snapshot

Numbers = NDArray[np.int32]
#: The most subjects of a relation to one entity that can still help to identify one of them.
_MAX_RELATED: Final = 5_000
#: The most sets in the cache, and the most entities in all of them.
_MAX_CACHED: Final = 1_000
_MAX_ENTITIES: Final = 2_000_000
#: The most statements that are tried for one description.
_MAX_TRIED: Final = 10
#: Words in the names of attributes whose numbers are codes, not measures.
_CODES: Final = frozenset(
    "id ids code codes number identifier key zip phone fax numeric extension no nr num # №".split()  # noqa: SIM905
)


class Runner:
    """Runs programs on a snapshot, and caches the entities of descriptions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self._store = snapshot, SnapshotStore(snapshot)
        self.calls = 0
        self._cache: dict[descriptions.Description, Numbers] = {}
        self._cached_size = 0

    def answer(self, calls: list[descriptions.Call]) -> Answer:
        """Return the answer of a program."""
        self.calls += 1
        return registry.answer(self._store, descriptions.steps(calls), "kopl")

    def numbers(self, described: descriptions.Description) -> Numbers:
        """Return the described entities by number, ascending."""
        results = self._cache.get(described)
        if results is None:
            answer = self.answer(descriptions.located(described))
            result: Any = answer.run.results[id(answer.plan)]
            results = result.ends() if isinstance(result, FactSet) else result
            self._cached_size += len(results)
            if len(self._cache) > _MAX_CACHED or self._cached_size > _MAX_ENTITIES:
                self._cache.clear()
                self._cached_size = len(results)
            self._cache[described] = results
        return results


class Locator:
    """Makes descriptions. `share` is the share of statements with qualifiers whose qualifiers are used."""

    def __init__(self, facts: Facts, runner: Runner, pick: random.Random, share: float) -> None:
        self.facts, self.runner, self.pick, self.share = facts, runner, pick, share

    def one(self, entity: int, hops: int, avoid: frozenset[int] = frozenset()) -> descriptions.Description | None:
        """Return a description of about `hops` hops that fits only this entity; None if none was found. It does not use
        the statements in `avoid`.
        """
        if hops <= 0:
            name = self.facts.name(entity)
            return None if name is None else descriptions.Description(name)
        described = self._grown(entity, hops, avoid, alone=True)
        if described is None or len(self.runner.numbers(described)) != 1:
            return None
        described = self.pruned(described)
        # Without a condition, "the seminary" would read as if it had been mentioned before.
        return described if described is not None and described.conditions else None

    def several(self, entity: int, hops: int, avoid: frozenset[int] = frozenset()) -> descriptions.Description | None:
        """Return a description that fits this entity and others; None if none was found."""
        described = self._grown(entity, hops, avoid, alone=False)
        if described is None or not described.conditions:
            return described
        if self.pick.random() < 0.2 and len(described.conditions) == 1 and not described.conditions[0].qualifiers:
            described = self._or_another(described, avoid) or described
        described = self.pruned(described) or descriptions.Description()
        return described if len(self.runner.numbers(described)) > 1 and (described.conditions or described.concept) else None

    def pruned(self, described: descriptions.Description) -> descriptions.Description | None:
        """Remove conditions that change nothing; None if a part of the description is then empty."""
        if described.name is not None:
            return described
        entities = self.runner.numbers(described)
        changed = True
        while changed:
            changed = False
            for reduced in descriptions.without_each(described):
                if np.array_equal(self.runner.numbers(reduced), entities):
                    described, changed = reduced, True
                    break
        is_empty = not described.conditions and described.concept is None
        return None if is_empty or descriptions.says_nothing(described) else described

    # -- growing -----------------------------------------------------------------------------------

    def _grown(self, entity: int, hops: int, avoid: frozenset[int], *, alone: bool) -> descriptions.Description | None:
        concept = self._concept(entity)
        described = descriptions.Description(concept=concept)
        count = None
        hops_left = hops
        if hops_left <= 0:
            return described if concept is not None else None
        for statement in self._statements(entity, avoid):
            condition = self._condition(entity, statement, hops_left, avoid, first=not described.conditions)
            if condition is None or condition.hops > hops_left or _repeats(condition, described.conditions):
                continue
            trial = replace(described, conditions=(*described.conditions, condition))
            entities = self.runner.numbers(trial)
            if not len(entities) or (count is not None and len(entities) >= count) or (not alone and len(entities) < 2):
                continue
            described, count = trial, len(entities)
            hops_left -= condition.hops
            if hops_left <= 0 or (alone and count == 1):
                break
        if alone and count is not None and 1 < count <= 4 and hops_left > 0:
            return self._distinguished(described, entity)
        return described if described.conditions else None

    def _statements(self, entity: int, avoid: frozenset[int]) -> list[int]:
        """Return statements around an entity in the order of trial: one for each predicate, in random order."""
        facts, pick = self.facts, self.pick
        runs = [*facts.outgoing(entity), *facts.incoming(entity)]
        pick.shuffle(runs)
        # Texts come last: most are names and descriptions, which give the answer away.
        runs.sort(key=lambda run: not run.relation and facts.kind(run.first) == "text" and pick.random() < 0.8)
        statements = (run.draw(pick) for run in runs[: _MAX_TRIED + len(avoid)])
        return [statement for statement in statements if statement not in avoid][:_MAX_TRIED]

    def _condition(
        self, entity: int, statement: int, left: int, avoid: frozenset[int], *, first: bool
    ) -> descriptions.Condition | None:
        facts = self.facts
        predicate = facts.snapshot.predicate_name(facts.predicate(statement))
        qualifiers: tuple[descriptions.Restriction, ...] = ()
        if left > 1 and self.pick.random() < self.share and facts.qualified(statement):
            qualifiers = self._restrictions(statement)
        left -= 1 + len(qualifiers)
        if facts.kind(statement) != RELATION:
            value = facts.value(statement)
            if value is None or is_code(predicate, value):
                return None
            op = "="
            if not (first and self.pick.random() < 0.6) or _exact(value):
                op, value = self._compared(predicate, value)
            return descriptions.Literal(predicate, op, value, qualifiers)
        outward = facts.subject(statement) == entity
        other = facts.target(statement) if outward else facts.subject(statement)
        if other == entity:
            return None
        predicate_number = facts.predicate(statement)
        if len(facts.onto(other, predicate_number) if outward else facts.of(other, predicate_number, relation=True)) > _MAX_RELATED:
            return None
        # Spend most hops on one chain, so that questions with many hops mention few entities.
        target_hops = left if self.pick.random() < 0.6 else self.pick.randint(0, left)
        target = self.one(other, target_hops, avoid | {statement}) if target_hops else None
        target = target or self.one(other, 0)
        return None if target is None else descriptions.RelationCondition(predicate, outward, target, qualifiers)

    def _restrictions(self, statement: int) -> tuple[descriptions.Restriction, ...]:
        qualifiers = self.facts.qualifiers(statement)
        if not qualifiers:
            return ()
        key, value = self.pick.choice(qualifiers)
        if isinstance(value, Time) and value.precision is not Precision.YEAR:
            # People ask about the year rather than the day.
            return (descriptions.Restriction(key, "=", Time.year(year_of(value))),)
        return (descriptions.Restriction(key, "=", value),)

    def _compared(self, predicate: str, value: descriptions.Cell) -> tuple[str, descriptions.Cell]:
        """Return a comparison that holds for a value, with a round number or a year."""
        if isinstance(value, Time):
            year = year_of(value)
            dice = self.pick.random()
            if dice < 0.3:
                return "=", Time.year(year)
            step = 10 if year % 10 else 5
            year_before = year - year % step - (year % step == 0)
            return (">", Time.year(year_before)) if dice < 0.65 else ("<", Time.year(year - year % step + step))
        if isinstance(value, Quantity):
            below, above = around(value.number)
            is_greater = self.pick.random() < 0.5
            bound = Quantity(below if is_greater else above, value.unit)
            # Near 5e-324 every bound has too many digits for a question.
            return (">" if is_greater else "<", bound) if len(text_of(bound)) <= MAX_LENGTH else ("=", value)
        return "=", value

    def _distinguished(self, description: descriptions.Description, entity: int) -> descriptions.Description:
        """Add a condition that one of the few other entities meets and this one does not."""
        other_entities = [int(number) for number in self.runner.numbers(description) if number != entity]
        for other in other_entities[:1]:
            for statement in self._statements(other, frozenset()):
                if self.facts.kind(statement) == RELATION or self.facts.subject(statement) != other:
                    continue
                predicate = self.facts.snapshot.predicate_name(self.facts.predicate(statement))
                value = self.facts.value(statement)
                # KoPL has no "is not" for texts.
                if value is None or isinstance(value, str) or is_code(predicate, value):
                    continue
                trial = replace(description, conditions=(*description.conditions, descriptions.Literal(predicate, "!=", value)))
                entities = self.runner.numbers(trial)
                if len(entities) == 1 and int(entities[0]) == entity:
                    return trial
        return description

    def _or_another(self, description: descriptions.Description, avoid: frozenset[int]) -> descriptions.Description | None:
        """Return the union with the same condition on another entity; None if there is none."""
        (condition,) = description.conditions
        facts, entities = self.facts, self.runner.numbers(description)
        if not isinstance(condition, descriptions.RelationCondition) or condition.target.name is None or not condition.outward:
            return None
        number = facts.snapshot.predicate(condition.predicate)
        low, high = facts.snapshot.relation_offsets[number], facts.snapshot.relation_offsets[number + 1]
        for _ in range(6):
            other = facts.target(self.pick.randrange(low, high))
            name = facts.name(other)
            if name is None or name == condition.target.name:
                continue
            union = replace(
                description, conditions=(condition, replace(condition, target=descriptions.Description(name))), union=True
            )
            if len(self.runner.numbers(union)) > len(entities):
                return union
        return None

    def _concept(self, entity: int) -> str | None:
        names = self.facts.concepts(entity)
        return self.pick.choice(names) if names else None


def _repeats(condition: descriptions.Condition, others: Sequence[descriptions.Condition]) -> bool:
    """Whether another condition has the same attribute or relation."""
    key = condition.key if isinstance(condition, descriptions.Literal) else condition.predicate
    return any(key == (other.key if isinstance(other, descriptions.Literal) else other.predicate) for other in others)


def _exact(value: descriptions.Cell) -> bool:
    """Whether a number has more decimals than a question should have."""
    return isinstance(value, Quantity) and len(str(value.number).partition(".")[2]) > 2


def is_code(predicate: str, value: descriptions.Cell) -> bool:
    """Whether a value is a code or an id, which questions do not compare."""
    spaced = "".join(
        " " + letter if letter.isupper() and not previous.isupper() else letter for previous, letter in pairwise(" " + predicate)
    )
    spaced = spaced.replace("_", " ").replace("-", " ").replace("#", " #")
    words = spaced.casefold().split()
    # "Reports to" and "ship via" are numbers of other entities.
    if len(words) > 1 and words[-1] in ("to", "via", "by") and isinstance(value, Quantity) and value.unit == NO_UNIT:
        return True
    return bool(words) and (words[-1].rstrip(".:") in _CODES or predicate.casefold().endswith(" id") or predicate.endswith("ID"))


def is_id(predicate: str) -> bool:
    """Whether the values of a predicate are ids."""
    return predicate.endswith("ID") or predicate.replace("_", " ").casefold().endswith((" id", " ids", " identifier"))


def around(number: Number) -> tuple[Number, Number]:
    """Return a round number below and one above a number of any size.

    >>> around(3), around(0.17), around(10**25 + 1) == (10**25, 2 * 10**25)
    ((2, 4), (0.1, 0.2), True)
    """
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    if not exact:
        return -1, 1
    size = Decimal(1).scaleb(exact.adjusted())
    low = exact.quantize(size, ROUND_FLOOR)
    if low == exact:
        # Whole numbers get whole bounds: nobody has 2.5 children.
        low -= 1 if size == 1 else size / 2
    high = low + size if low + size > exact else low + 2 * size
    return _number(low), _number(high)


def _number(exact: Decimal) -> Number:
    if exact == exact.to_integral_value():
        return int(exact)
    return float(exact) if Decimal(repr(float(exact))) == exact else exact
