"""Random KoPL programs over the graphs of `graphs`, and their written forms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

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


class _Maker:
    """One program while it is made. Each method adds the steps of one thing and gives the number of the last one."""

    def __init__(self, pick: Pick, wrong: bool) -> None:
        self.pick = pick
        self.steps: list[Call] = []
        self.slips = wrong and pick.below(8) == 0

    def give(self, function: str, *texts: str, takes: Sequence[int] = ()) -> int:
        if self.slips and texts and self.pick.below(6) == 0:
            at = self.pick.below(len(texts))
            texts = (*texts[:at], self.pick.one(WRONG), *texts[at + 1 :])
        self.steps.append((function, texts, tuple(takes)))
        return len(self.steps) - 1

    def typed(self, kind: str) -> tuple[str, ...]:
        """A literal of a type, with its operator."""
        pick = self.pick
        if kind == "Str":
            return (pick.one(TEXTS) if pick.below(4) else literal_of(a_value(pick)),)
        if kind == "Num":
            quantity = pick.one(QUANTITIES) if pick.below(2) else f"{pick.below(4)} {pick.one(UNITS)}".removesuffix(" 1")
            return (literal_of(quantity), pick.one(OPERATORS))
        return (literal_of(pick.one(TIMES)), pick.one(OPERATORS))

    def filtered(self, depth: int) -> int:
        kind, of = self.pick.one(KINDS), self.a_set(depth - 1)
        return self.give(f"Filter{kind}", self.pick.one(ATTRIBUTES), *self.typed(kind), takes=[of])

    def facts(self, depth: int) -> int:
        way = self.pick.below(3)
        if way == 1:
            return self.filtered(depth)
        if way == 0 or depth <= 0:
            of = self.a_set(depth - 1)
            return self.give("Relate", self.pick.one(RELATIONS), self.pick.one(("forward", "backward")), takes=[of])
        kind, of = self.pick.one(KINDS), self.facts(depth - 1)
        return self.give(f"QFilter{kind}", self.pick.one(QUALIFIERS), *self.typed(kind), takes=[of])

    def a_set(self, depth: int) -> int:
        way = self.pick.below(2 if depth <= 0 else 8)
        if way == 0:
            return self.give("Find", self.pick.one(NAMES))
        if way == 1:
            return self.give("FindAll")
        if way == 2:
            of = self.a_set(depth - 1)
            return self.give("FilterConcept", self.pick.one(NAMES), takes=[of])
        if way == 3:
            takes = [self.a_set(depth - 1), self.a_set(depth - 1)]
            return self.give(self.pick.one(("And", "Or")), takes=takes)
        return self.facts(depth)

    def a_bag(self, depth: int) -> int:
        way, pick = self.pick.below(6), self.pick
        takes = [self.a_set(depth)]
        if way == 0:
            return self.give("QueryName", takes=takes)
        if way == 1:
            return self.give("QueryAttr", pick.one(ATTRIBUTES), takes=takes)
        if way == 2:
            text = literal_of(a_value(pick))
            return self.give("QueryAttrUnderCondition", pick.one(ATTRIBUTES), pick.one(QUALIFIERS), text, takes=takes)
        if way == 3:
            text = literal_of(a_value(pick))
            return self.give("QueryAttrQualifier", pick.one(ATTRIBUTES), text, pick.one(QUALIFIERS), takes=takes)
        takes.append(self.a_set(depth))
        if way == 4:
            return self.give("QueryRelation", takes=takes)
        return self.give("QueryRelationQualifier", pick.one(RELATIONS), pick.one(QUALIFIERS), takes=takes)

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
            self.give("SelectBetween", pick.one(ATTRIBUTES), pick.one(("greater", "less")), takes=takes)
        elif way == 2:
            self.give("SelectAmong", pick.one(ATTRIBUTES), pick.one(("largest", "smallest")), takes=[self.a_set(depth)])
        elif way == 3:
            kind, of = pick.one(KINDS), self.a_bag(depth)
            self.give(f"Verify{kind}", *self.typed(kind), takes=[of])
        elif way == 4:
            self.a_set(depth)
        else:
            self.a_bag(depth)


def program(pick: Pick, *, most: int = 4, wrong: bool = True) -> list[Call]:
    """A program of any of the 27 functions, post-fix. With `wrong`, now and then a name, a literal or a sort is wrong."""
    maker = _Maker(pick, wrong)
    maker.whole(pick.below(most + 1))
    return maker.steps


# -- written forms --------------------------------------------------------------------------------------------------------


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
