"""Random KoPL programs over the graphs of `graphs`, and their notations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.support.graphs import (
    ATTRIBUTES,
    NAMES,
    QUALIFIERS,
    QUANTITIES,
    RELATIONS,
    TEXTS,
    TIMES,
    UNITS,
    Pick,
    a_value,
    literal_of,
)
from tests.support.reference import OPERATORS, Call

KINDS = ("Str", "Num", "Year", "Date")
#: Deliberately wrong names and literals.
WRONG = ("nobody", "knowz", "==", "Forward", "", "12 monkeys", "1960-13", "size")


@dataclass(frozen=True)
class Words:
    """The words of programs over a kind of graph."""

    names: Sequence[str]
    attributes: Sequence[str]
    relations: Sequence[str]
    qualifiers: Sequence[str]
    units: Sequence[str]
    texts: Sequence[str]
    quantities: Sequence[Any]
    times: Sequence[Any]


PLAIN: Final = Words(NAMES, ATTRIBUTES, RELATIONS, QUALIFIERS, UNITS, TEXTS, QUANTITIES, TIMES)


def typo(pick: Pick, text: str) -> str:
    """Return a text with one letter left out, doubled or changed, two letters swapped, or the case inverted."""
    if not text:
        return "x"
    at, kind = pick.below(len(text)), pick.below(5)
    if kind == 4:
        return text.swapcase()
    letter, following = text[at], text[at + 1 :]
    return (
        text[:at]
        + ("" if kind == 0 else letter * 2 if kind == 1 else "q" if kind == 2 else following[:1] + letter)
        + following[kind == 3 :]
    )


class _Maker:
    """A program under construction. Each method adds the steps of one expression and returns the number of the last
    step.
    """

    def __init__(self, pick: Pick, wrong: bool, words: Words) -> None:
        self.pick, self.words = pick, words
        self.steps: list[Call] = []
        self.slips = wrong and pick.below(8) == 0

    def give(self, function: str, *texts: str, takes: Sequence[int] = ()) -> int:
        if self.slips and texts and self.pick.below(6) == 0:
            at = self.pick.below(len(texts))
            slip = self.pick.one(WRONG) if self.pick.below(2) else typo(self.pick, texts[at])
            texts = (*texts[:at], slip, *texts[at + 1 :])
        self.steps.append((function, texts, tuple(takes)))
        return len(self.steps) - 1

    def typed(self, kind: str) -> tuple[str, ...]:
        """Return a literal of a type, with an operator."""
        pick, words = self.pick, self.words
        if kind == "Str":
            return (pick.one(words.texts) if pick.below(4) else self.value(),)
        if kind == "Num":
            small = f"{pick.below(4)} {pick.one(words.units)}".removesuffix(" 1")
            return (literal_of(pick.one(words.quantities)) if pick.below(2) else small, pick.one(OPERATORS))
        return (literal_of(pick.one(words.times)), pick.one(OPERATORS))

    def value(self) -> str:
        """Return any literal."""
        pick, words = self.pick, self.words
        if words is PLAIN:
            return literal_of(a_value(pick))
        return literal_of(pick.one((words.texts, words.quantities, words.times)[pick.below(3)]))

    def filtered(self, depth: int) -> int:
        kind, entities = self.pick.one(KINDS), self.a_set(depth - 1)
        return self.give(f"Filter{kind}", self.pick.one(self.words.attributes), *self.typed(kind), takes=[entities])

    def facts(self, depth: int) -> int:
        kind_of_step = self.pick.below(3)
        if kind_of_step == 1:
            return self.filtered(depth)
        if kind_of_step == 0 or depth <= 0:
            operand = self.a_set(depth - 1)
            return self.give("Relate", self.pick.one(self.words.relations), self.pick.one(("forward", "backward")), takes=[operand])
        kind, operand = self.pick.one(KINDS), self.facts(depth - 1)
        return self.give(f"QFilter{kind}", self.pick.one(self.words.qualifiers), *self.typed(kind), takes=[operand])

    def a_set(self, depth: int) -> int:
        kind_of_step = self.pick.below(2 if depth <= 0 else 8)
        if kind_of_step == 0:
            return self.give("Find", self.pick.one(self.words.names))
        if kind_of_step == 1:
            return self.give("FindAll")
        if kind_of_step == 2:
            operand = self.a_set(depth - 1)
            return self.give("FilterConcept", self.pick.one(self.words.names), takes=[operand])
        if kind_of_step == 3:
            operands = [self.a_set(depth - 1), self.a_set(depth - 1)]
            return self.give(self.pick.one(("And", "Or", "Except")), takes=operands)
        return self.facts(depth)

    def a_bag(self, depth: int) -> int:
        kind_of_step, pick, words = self.pick.below(6), self.pick, self.words
        operands = [self.a_set(depth)]
        if kind_of_step == 0:
            return self.give("QueryName", takes=operands)
        if kind_of_step == 1:
            return self.give("QueryAttr", pick.one(words.attributes), takes=operands)
        if kind_of_step == 2:
            text = self.value()
            return self.give(
                "QueryAttrUnderCondition", pick.one(words.attributes), pick.one(words.qualifiers), text, takes=operands
            )
        if kind_of_step == 3:
            text = self.value()
            return self.give("QueryAttrQualifier", pick.one(words.attributes), text, pick.one(words.qualifiers), takes=operands)
        operands.append(self.a_set(depth))
        if kind_of_step == 4:
            return self.give("QueryRelation", takes=operands)
        return self.give("QueryRelationQualifier", pick.one(words.relations), pick.one(words.qualifiers), takes=operands)

    def whole(self, depth: int) -> None:
        kind_of_step, pick = self.pick.below(7), self.pick
        if self.slips and pick.below(4) == 0:
            # An operand of a sort that the function does not take.
            function, texts = pick.one((("Count", ()), ("QueryName", ()), ("QFilterStr", ("place", "b")), ("QueryAttr", ("size",))))
            operand = self.a_bag(depth)
            self.give(function, *texts, takes=[operand])
        elif kind_of_step == 0:
            self.give("Count", takes=[self.a_set(depth)])
        elif kind_of_step == 1:
            operands = [self.a_set(depth), self.a_set(depth)]
            self.give("SelectBetween", pick.one(self.words.attributes), pick.one(("greater", "less")), takes=operands)
        elif kind_of_step == 2:
            self.give("SelectAmong", pick.one(self.words.attributes), pick.one(("largest", "smallest")), takes=[self.a_set(depth)])
        elif kind_of_step == 3:
            kind, operand = pick.one(KINDS), self.a_bag(depth)
            self.give(f"Verify{kind}", *self.typed(kind), takes=[operand])
        elif kind_of_step == 4:
            self.a_set(depth)
        else:
            self.a_bag(depth)


def program(pick: Pick, *, most: int = 4, wrong: bool = True, words: Words = PLAIN) -> list[Call]:
    """Return a random program in postfix order. With `wrong`, a name, a literal or a sort is sometimes wrong."""
    maker = _Maker(pick, wrong, words)
    maker.whole(pick.below(most + 1))
    return maker.steps


# -- notations -------------------------------------------------------------------------------------


def as_json(steps: Sequence[Call], *, dependencies: bool = True) -> list[dict[str, Any]]:
    """Write a program in the data set's form."""
    return [
        {"function": function, "inputs": list(texts)} | ({"dependencies": list(takes)} if dependencies else {})
        for function, texts, takes in steps
    ]


def as_text(steps: Sequence[Call]) -> str:
    """Write a program as text, with every argument as a JSON string."""
    return " ".join(f"{function}({', '.join(json.dumps(text) for text in texts)})" for function, texts, _ in steps)


def as_plain_text(steps: Sequence[Call]) -> str:
    """Write a program as text without quotes, as in the paper."""
    return " ".join(f"{function}({', '.join(texts)})" for function, texts, _ in steps)


def as_serialised(steps: Sequence[Call]) -> str:
    """Write a program in the form of the data set's baselines."""
    return " <func> ".join(" <arg> ".join([function, *texts]) for function, texts, _ in steps)
