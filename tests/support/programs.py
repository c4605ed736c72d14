"""Random KoPL programs over the graphs of `graphs`, and their written forms."""

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
#: Names and literals that are wrong on purpose.
WRONG = ("nobody", "knowz", "==", "Forward", "", "12 monkeys", "1960-13", "size")


@dataclass(frozen=True)
class Words:
    """What the programs over a kind of graph are made of."""

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
    """A text with a letter left out, doubled, changed, or with two of them turned round."""
    if not text:
        return "x"
    at, way = pick.below(len(text)), pick.below(5)
    if way == 4:
        return text.swapcase()
    letter, rest = text[at], text[at + 1 :]
    return text[:at] + ("" if way == 0 else letter * 2 if way == 1 else "q" if way == 2 else rest[:1] + letter) + rest[way == 3 :]


class _Maker:
    """One program while it is made. Each method adds the steps of one thing and gives the number of
    the last one.
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
        """A literal of a type, with its operator."""
        pick, words = self.pick, self.words
        if kind == "Str":
            return (pick.one(words.texts) if pick.below(4) else self.value(),)
        if kind == "Num":
            small = f"{pick.below(4)} {pick.one(words.units)}".removesuffix(" 1")
            return (literal_of(pick.one(words.quantities)) if pick.below(2) else small, pick.one(OPERATORS))
        return (literal_of(pick.one(words.times)), pick.one(OPERATORS))

    def value(self) -> str:
        """Any literal."""
        pick, words = self.pick, self.words
        if words is PLAIN:
            return literal_of(a_value(pick))
        return literal_of(pick.one((words.texts, words.quantities, words.times)[pick.below(3)]))

    def filtered(self, depth: int) -> int:
        kind, of = self.pick.one(KINDS), self.a_set(depth - 1)
        return self.give(f"Filter{kind}", self.pick.one(self.words.attributes), *self.typed(kind), takes=[of])

    def facts(self, depth: int) -> int:
        way = self.pick.below(3)
        if way == 1:
            return self.filtered(depth)
        if way == 0 or depth <= 0:
            of = self.a_set(depth - 1)
            return self.give("Relate", self.pick.one(self.words.relations), self.pick.one(("forward", "backward")), takes=[of])
        kind, of = self.pick.one(KINDS), self.facts(depth - 1)
        return self.give(f"QFilter{kind}", self.pick.one(self.words.qualifiers), *self.typed(kind), takes=[of])

    def a_set(self, depth: int) -> int:
        way = self.pick.below(2 if depth <= 0 else 8)
        if way == 0:
            return self.give("Find", self.pick.one(self.words.names))
        if way == 1:
            return self.give("FindAll")
        if way == 2:
            of = self.a_set(depth - 1)
            return self.give("FilterConcept", self.pick.one(self.words.names), takes=[of])
        if way == 3:
            takes = [self.a_set(depth - 1), self.a_set(depth - 1)]
            return self.give(self.pick.one(("And", "Or", "Except")), takes=takes)
        return self.facts(depth)

    def a_bag(self, depth: int) -> int:
        way, pick, words = self.pick.below(6), self.pick, self.words
        takes = [self.a_set(depth)]
        if way == 0:
            return self.give("QueryName", takes=takes)
        if way == 1:
            return self.give("QueryAttr", pick.one(words.attributes), takes=takes)
        if way == 2:
            text = self.value()
            return self.give("QueryAttrUnderCondition", pick.one(words.attributes), pick.one(words.qualifiers), text, takes=takes)
        if way == 3:
            text = self.value()
            return self.give("QueryAttrQualifier", pick.one(words.attributes), text, pick.one(words.qualifiers), takes=takes)
        takes.append(self.a_set(depth))
        if way == 4:
            return self.give("QueryRelation", takes=takes)
        return self.give("QueryRelationQualifier", pick.one(words.relations), pick.one(words.qualifiers), takes=takes)

    def whole(self, depth: int) -> None:
        way, pick = self.pick.below(7), self.pick
        if self.slips and pick.below(4) == 0:
            # A sort that the function does not take.
            function, texts = pick.one((("Count", ()), ("QueryName", ()), ("QFilterStr", ("place", "b")), ("QueryAttr", ("size",))))
            of = self.a_bag(depth)
            self.give(function, *texts, takes=[of])
        elif way == 0:
            self.give("Count", takes=[self.a_set(depth)])
        elif way == 1:
            takes = [self.a_set(depth), self.a_set(depth)]
            self.give("SelectBetween", pick.one(self.words.attributes), pick.one(("greater", "less")), takes=takes)
        elif way == 2:
            self.give("SelectAmong", pick.one(self.words.attributes), pick.one(("largest", "smallest")), takes=[self.a_set(depth)])
        elif way == 3:
            kind, of = pick.one(KINDS), self.a_bag(depth)
            self.give(f"Verify{kind}", *self.typed(kind), takes=[of])
        elif way == 4:
            self.a_set(depth)
        else:
            self.a_bag(depth)


def program(pick: Pick, *, most: int = 4, wrong: bool = True, words: Words = PLAIN) -> list[Call]:
    """A program of any function, post-fix. With `wrong`, now and then a name, a literal
    or a sort is wrong.
    """
    maker = _Maker(pick, wrong, words)
    maker.whole(pick.below(most + 1))
    return maker.steps


# -- written forms ---------------------------------------------------------------------------------


def as_json(steps: Sequence[Call], *, dependencies: bool = True) -> list[dict[str, Any]]:
    """The data set's form."""
    return [
        {"function": function, "inputs": list(texts)} | ({"dependencies": list(takes)} if dependencies else {})
        for function, texts, takes in steps
    ]


def as_text(steps: Sequence[Call]) -> str:
    """The text form, every argument as a JSON string."""
    return " ".join(f"{function}({', '.join(json.dumps(text) for text in texts)})" for function, texts, _ in steps)


def as_plain_text(steps: Sequence[Call]) -> str:
    """The text form without quotes, as the paper writes it."""
    return " ".join(f"{function}({', '.join(texts)})" for function, texts, _ in steps)


def as_serialised(steps: Sequence[Call]) -> str:
    """The form of the data set's baselines."""
    return " <func> ".join(" <arg> ".join([function, *texts]) for function, texts, _ in steps)
