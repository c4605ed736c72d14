"""Three realistic graphs, generated from a seed: a museum whose things share names, a dynasty that begins before year
1, and a store of parts with one unit too many.

Names have quotes, brackets, braces, line breaks and backslashes; one name stands for several entities, for a concept
and for a predicate; one attribute has texts, numbers, times and entities; numbers are negative, huge and tiny; years
are before and after year 1; qualifiers repeat.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from condgraph import Entity, EntityKind, Member, Quantity, Ref, Statement, Subclass, Time

_MARKS: Final = ("'", '"', "(", ")", "[", "]", "{", "}", "\\", "\n", "\t", "`", "<", ">", "|", ";", ",", "%", "$", "&", "#", "?")
_WORDS: Final = (
    "Amber",
    "Bowl",
    "Crown",
    "Idol",
    "Zo\u00eb",
    "stra\u00dfe",
    "\u0130nci",
    "Old",
    "of",
    "St.",
    "no. 7",
    "1066",
    "the",
)


def _name(dice: random.Random) -> str:
    """Return words, every second time with a punctuation mark in, before or after one of them."""
    words = dice.sample(_WORDS, dice.randint(1, 3))
    if dice.random() < 0.5:
        at = dice.randrange(len(words))
        mark = dice.choice(_MARKS)
        words[at] = dice.choice((f"{words[at]}{mark}", f"{mark}{words[at]}", f"{words[at][:2]}{mark}{words[at][2:]}"))
    return " ".join(words)


def _moment(dice: random.Random) -> Time:
    """Return a year, month, day or span, as often before year 1 as after."""
    year = dice.choice((dice.randint(-3000, -1), dice.randint(-60, 60), dice.randint(1, 2020)))
    kind = dice.randrange(4)
    if kind == 0:
        return Time.month(year, dice.randint(1, 12))
    if kind == 1:
        return Time.day(year, dice.randint(1, 12), dice.randint(1, 28))
    return (
        Time.span(Time.year(year), Time.year(year + dice.randint(0, 40))) if kind == 2 and dice.random() < 0.3 else Time.year(year)
    )


def _amount(dice: random.Random) -> Any:
    return dice.choice(
        (dice.randint(-50, 50), dice.randint(-9, 9) / 8, -0.0, 10 ** dice.randint(15, 30) + 1, -(2**53) - dice.randint(0, 2),
         Decimal(dice.randint(-999, 999)) / 100, 1e-9 * dice.randint(1, 9))
    )  # fmt: skip


def _shaped(dice: random.Random, size: int, names: int) -> list[Any]:
    """Return entities, some with the same name, in concepts with subclasses."""
    pool = [_name(dice) for _ in range(names)]
    items: list[Any] = [
        Entity(f"k{at}", name, EntityKind.CONCEPT) for at, name in enumerate(("thing", "idol's", pool[0], "Bowl (old)"))
    ]
    items += [Subclass("k1", "k0"), Subclass("k2", "k0"), Subclass("k3", "k2")]
    for at in range(size):
        items += [Entity(f"e{at}", dice.choice(pool)), Member(f"e{at}", f"k{dice.randrange(4)}")]
    return items


def museum(seed: int) -> list[Any]:
    """Return things with shared names and attributes with values of any kind."""
    dice, size = random.Random(f"museum {seed}"), 60
    items = _shaped(dice, size, 35)

    def other_entity() -> Ref:
        return Ref(f"e{dice.randrange(size)}")

    for at in range(size):
        for predicate in dice.sample(("made of", "mark", "Bowl", "kept in", "size (cm)", 'it\'s "like"'), 3):
            value: Any = dice.choice((_name(dice), Quantity(_amount(dice)), _moment(dice), other_entity(), other_entity()))
            qualifiers = ((dice.choice(("since", "by", "by")), dice.choice((_moment(dice), other_entity(), _name(dice)))),)
            items.append(Statement(f"e{at}", predicate, value, qualifiers if dice.random() < 0.4 else ()))
    return items


def dynasty(seed: int) -> list[Any]:
    """Return people who succeed each other, beginning before year 1; reigns have starts, ends or neither."""
    dice, size = random.Random(f"dynasty {seed}"), 70
    items = _shaped(dice, size, 40)
    for at in range(size):
        person, first_year = f"e{at}", dice.randint(-400, 300)
        reign = (("start time", Time.year(first_year)), ("end time", Time.year(first_year + dice.randint(0, 50))))
        place = (("in", _moment(dice)),) if at % 2 else ()
        born = dice.choice((Time.year(first_year - 30), Time.day(first_year - 30, 2, 28), _moment(dice)))
        title = dice.choice(("king", "king", "Queen", "\u00ab k \u00bb", 'the "Great"'))
        items += [
            Statement(person, "born", born),
            Statement(person, "ruled", Ref(f"e{dice.randrange(size)}"), reign[: dice.randint(0, 2)]),
            Statement(person, "follows", Ref(f"e{(at + dice.randint(1, 4)) % size}"), place),
            Statement(person, "title", title, reign[:1]),
            Statement(person, "regnal number", Quantity(dice.randint(-2, 9))),
        ]
    return items


def parts(seed: int) -> list[Any]:
    """Return parts with sizes in similar units, as often below zero as above."""
    dice, size = random.Random(f"parts {seed}"), 60
    units = ("m", "metre", "cm", "kg", "\u00b0C", "%", "US$", "m\u00b2", "1", "it's")
    items = _shaped(dice, size, 45)
    for at in range(size):
        part, method = f"e{at}", (("method", _name(dice)),) if at % 2 else ()
        amount = (("amount", Quantity(dice.randint(-3, 12), dice.choice(units))),)
        items += [
            Statement(part, "temperature", Quantity(dice.randint(-60, 60) / 2, "\u00b0C"), method),
            Statement(part, "size", Quantity(_amount(dice), dice.choice(units))),
            Statement(part, "price", Quantity(dice.randint(-20, 900), dice.choice(("US$", "\u20ac")))),
            Statement(part, "part of", Ref(f"e{dice.randrange(size)}"), amount),
        ]
    return items


UNTIDY: Final[dict[str, Callable[[int], list[Any]]]] = {"museum": museum, "dynasty": dynasty, "parts": parts}
