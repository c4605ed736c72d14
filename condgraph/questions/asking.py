"""What is asked of what was described: one sampler for each of the nine kinds (KQA Pro, Table 8).

Each gives an `Ask` whose answer is one value, and no matter of course; None where the sample did
not lead to one, and the next sample is tried.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from condgraph.engine.operands import year_of
from condgraph.engine.values import Precision, Quantity, Time, text_of
from condgraph.questions.description import Ask, Cell, Description, Restriction
from condgraph.questions.facts import FACT_KINDS, LONGEST, RELATION, Facts
from condgraph.questions.locate import Locator, Runner, around, is_code

#: Counts and superlatives are over at most so many.
_MOST: Final = 2_000
_VALUES: Final = ("text", "number", "time")
_SIZES: Final = ("number", "time")


class Asker:
    """Draws facts and asks about them. `qualified` is the share of facts with qualifiers."""

    def __init__(self, facts: Facts, runner: Runner, pick: random.Random, qualified: float) -> None:
        self.facts, self.runner, self.pick, self.qualified = facts, runner, pick, qualified
        self.locator = Locator(facts, runner, pick, qualified)
        self._ways: dict[str, Callable[[int], Ask | None]] = {
            "QueryName": self._name,
            "Count": self._count,
            "QueryAttribute": self._attribute,
            "Relation": self._relation,
            "SelectAmong": self._among,
            "SelectBetween": self._between,
            "Verify": self._verify,
            "QualifierLiteral": self._qualifier_literal,
            "QualifierRelational": self._qualifier_relational,
        }

    def can(self, kind: str) -> bool:
        """Whether the graph has the facts that a kind asks about."""
        facts = self.facts
        if kind == "QualifierLiteral":
            return any(facts.has(one, True) for one in _VALUES)
        if kind == "QualifierRelational":
            return facts.has(RELATION, True)
        if kind == "Relation":
            return facts.has(RELATION)
        if kind in ("SelectAmong", "SelectBetween"):
            return any(map(facts.has, _SIZES))
        if kind in ("QueryAttribute", "Verify"):
            return any(map(facts.has, _VALUES))
        return any(map(facts.has, FACT_KINDS))

    def ask(self, kind: str, hops: int) -> Ask | None:
        """A question of a kind and of about so many hops."""
        return self._ways[kind](hops)

    # -- sampling ----------------------------------------------------------------------------------

    def _fact(self, kinds: tuple[str, ...], qualified: bool | None = None) -> int | None:
        """A fact of one of the kinds, each as likely as the others."""
        asked = self.pick.random() < self.qualified if qualified is None else qualified
        there = [kind for kind in kinds if self.facts.has(kind, asked)]
        if not there and qualified is None:
            asked, there = False, [kind for kind in kinds if self.facts.has(kind)]
        return self.facts.draw(self.pick, self.pick.choice(there), asked) if there else None

    def _entity(self) -> int | None:
        """An entity that a fact is about, or that one leads to."""
        statement = self._fact(FACT_KINDS)
        if statement is None:
            return None
        if self.facts.kind(statement) == RELATION and self.pick.random() < 0.5:
            entity = self.facts.target(statement)
        else:
            entity = self.facts.subject(statement)
        return entity if self.facts.is_entity(entity) else None

    # -- the kinds ---------------------------------------------------------------------------------

    def _name(self, hops: int) -> Ask | None:
        entity = self._entity()
        if entity is None or self.facts.name(entity) is None:
            return None
        found = self.locator.one(entity, max(hops, 1))
        return None if found is None else Ask("QueryName", found)

    def _count(self, hops: int) -> Ask | None:
        entity = self._entity()
        found = None if entity is None else self.locator.several(entity, hops)
        if found is None or not found.conditions:
            return None
        return Ask("Count", found) if 2 <= len(self.runner.numbers(found)) <= _MOST else None

    def _told(self, statement: int, left: int) -> tuple[Description, str, Cell, Restriction | None] | None:
        """The subject of an attribute described, the attribute, its value, and the qualifier that
        tells it from others of the same.
        """
        facts = self.facts
        value, subject = facts.value(statement), facts.subject(statement)
        if value is None or not facts.is_entity(subject):
            return None
        number = facts.predicate(statement)
        key = facts.snapshot.predicate_name(number)
        restriction = None
        if len(facts.of(subject, number, relation=False)) > 1:
            found = facts.qualifiers(statement)
            if not found:
                return None
            restriction = Restriction(*_plain(self.pick.choice(found)))
            left -= 1
        if is_code(key, value) and key.split("_")[-1].split(" ")[-1].casefold().endswith("id"):
            return None
        described = self.locator.one(subject, left, frozenset({statement})) or self.locator.one(subject, 0)
        return None if described is None else (described, key, value, restriction)

    def _attribute(self, hops: int) -> Ask | None:
        statement = self._fact(_VALUES)
        told = None if statement is None else self._told(statement, hops - 1)
        if told is None:
            return None
        described, key, value, restriction = told
        return Ask("QueryAttribute", described, key=key, value=value, qualifier=restriction)

    def _verify(self, hops: int) -> Ask | None:
        statement = self._fact(_VALUES)
        told = None if statement is None else self._told(statement, hops - 2)
        if told is None or statement is None:
            return None
        described, key, value, restriction = told
        op, against = "=", value
        true = self.pick.random() < 0.5
        if isinstance(value, str):
            if not true:
                other = self._sibling(statement)
                if other is None or other == value:
                    return None
                against = other
        elif isinstance(value, Quantity) and not is_code(key, value):
            below, above = around(value.number)
            op = self.pick.choice("<>")
            against = Quantity(below if (op == ">") == true else above, value.unit)
            if len(text_of(against)) > LONGEST:
                return None
        elif isinstance(value, Time):
            year = year_of(value)
            op = self.pick.choice("=<>")
            away = self.pick.randint(1, 9)
            if op == "=":
                against = Time.year(year if true else year + self.pick.choice((-1, 1)) * away)
            else:
                against = Time.year(year - away if (op == ">") == true else year + away)
        elif not true:
            other = self._sibling(statement)
            if other is None or other == value:
                return None
            against = other
        return Ask("Verify", described, key=key, value=against, op=op, qualifier=restriction)

    def _sibling(self, statement: int) -> Cell | None:
        """Another value of the same attribute, of something of the same concept where that is soon
        met.
        """
        facts, base = self.facts, self.facts.snapshot.relations
        offsets, number = facts.snapshot.attribute_offsets, facts.predicate(statement)
        concepts, other = set(facts.concepts(facts.subject(statement))), statement
        for _ in range(10):
            other = base + self.pick.randrange(offsets[number], offsets[number + 1])
            if other != statement and not concepts.isdisjoint(facts.concepts(facts.subject(other))):
                break
        return facts.value(other)

    def _relation(self, hops: int) -> Ask | None:
        statement = self._fact((RELATION,))
        if statement is None:
            return None
        pair = self._pair(statement, hops - 1)
        return None if pair is None else Ask("Relation", *pair)

    def _pair(self, statement: int, left: int) -> tuple[Description, Description] | None:
        """Both ends of a relation described, without each other."""
        facts = self.facts
        subject, target = facts.subject(statement), facts.target(statement)
        if subject == target:
            return None
        first = self.pick.randint(0, max(left, 0))
        avoid = frozenset({statement})
        found = [
            self.locator.one(entity, hops, avoid) or self.locator.one(entity, 0)
            for entity, hops in ((subject, first), (target, left - first))
        ]
        return (found[0], found[1]) if found[0] is not None and found[1] is not None and found[0] != found[1] else None

    def _among(self, hops: int) -> Ask | None:
        statement = self._fact(_SIZES, False)
        if statement is None:
            return None
        value, number = self.facts.value(statement), self.facts.predicate(statement)
        key = self.facts.snapshot.predicate_name(number)
        if value is None or is_code(key, value):
            return None
        found = self.locator.several(self.facts.subject(statement), hops - 2, frozenset({statement}))
        if found is None or not 3 <= len(self.runner.numbers(found)) <= _MOST:
            return None
        ask = Ask("SelectAmong", found, key=key, value=value, op=self.pick.choice(("largest", "smallest")))
        # A superlative of one or two is none, and metres and kilograms have none together.
        own = [self.facts.of(int(one), number, relation=False) for one in self.runner.numbers(found)]
        units = {self.facts.unit(int(statement)) for statements in own for statement in statements}
        return ask if sum(map(bool, map(len, own))) >= 3 and len(units) == 1 else None

    def _between(self, hops: int) -> Ask | None:
        facts = self.facts
        statement = self._fact(_SIZES, False)
        if statement is None:
            return None
        number = facts.predicate(statement)
        key = facts.snapshot.predicate_name(number)
        subject, value = facts.subject(statement), facts.value(statement)
        if value is None or is_code(key, value) or facts.unnamed_row(subject):
            return None
        low, high = facts.snapshot.attribute_offsets[number], facts.snapshot.attribute_offsets[number + 1]
        concepts = set(facts.concepts(subject))
        for _ in range(12):
            # Near ones are of a size, and a question.
            other = facts.snapshot.relations + self.pick.randrange(low, high)
            rival = facts.subject(other)
            size = facts.value(other)
            if rival == subject or type(size) is not type(value) or size == value or not _comparable(value, size):
                continue
            # Yes and no as 1 and 0 have no order that anybody asks for.
            if isinstance(value, Quantity) and isinstance(size, Quantity) and {value.number, size.number} == {0, 1}:
                continue
            if concepts and not concepts.intersection(facts.concepts(rival)):
                continue
            left = max(hops - 3, 0)
            first = self.pick.randint(0, left)
            ends = [
                self.locator.one(entity, own, frozenset({statement, other})) or self.locator.one(entity, 0)
                for entity, own in ((subject, first), (rival, left - first))
            ]
            if ends[0] is None or ends[1] is None:
                return None
            return Ask("SelectBetween", ends[0], ends[1], key=key, value=value, op=self.pick.choice(("greater", "less")))
        return None

    def _qualifier_literal(self, hops: int) -> Ask | None:
        statement = self._fact(_VALUES, True)
        if statement is None:
            return None
        facts = self.facts
        value, found = facts.value(statement), facts.qualifiers(statement)
        subject = facts.subject(statement)
        if value is None or not found or not facts.is_entity(subject):
            return None
        described = self.locator.one(subject, hops - 2, frozenset({statement})) or self.locator.one(subject, 0)
        key = facts.snapshot.predicate_name(facts.predicate(statement))
        qkey = self.pick.choice(found)[0]
        return None if described is None else Ask("QualifierLiteral", described, key=key, value=value, qkey=qkey)

    def _qualifier_relational(self, hops: int) -> Ask | None:
        statement = self._fact((RELATION,), True)
        if statement is None:
            return None
        found = self.facts.qualifiers(statement)
        pair = self._pair(statement, hops - 2) if found else None
        if pair is None:
            return None
        key = self.facts.snapshot.predicate_name(self.facts.predicate(statement))
        return Ask("QualifierRelational", *pair, key=key, qkey=self.pick.choice(found)[0])


def _plain(found: tuple[str, Cell]) -> tuple[str, str, Cell]:
    """A qualifier as a condition: of a day its year, as people ask."""
    key, value = found
    if isinstance(value, Time) and value.precision is not Precision.YEAR:
        value = Time.year(year_of(value))
    return key, "=", value


def _comparable(one: Cell, other: Cell) -> bool:
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return one.unit == other.unit and one.number != other.number
    if isinstance(one, Time) and isinstance(other, Time):
        return one.end <= other.start or other.end <= one.start
    return False
