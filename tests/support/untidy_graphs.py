"""Three graphs as people keep them, from a number: a museum whose things share names, a dynasty that
begins before our era, a store of parts with one unit too many.

Names have quotes, brackets, braces, line breaks and backslashes; the same name stands for several
entities, for a concept and for a predicate; one attribute has texts, numbers, times and entities;
numbers are negative, huge and tiny; years lie on both sides of year 1; qualifiers repeat.
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
    """Words, with a mark within, before or behind them every second time."""
    words = dice.sample(_WORDS, dice.randint(1, 3))
    if dice.random() < 0.5:
        at = dice.randrange(len(words))
        mark = dice.choice(_MARKS)
        words[at] = dice.choice((f"{words[at]}{mark}", f"{mark}{words[at]}", f"{words[at][:2]}{mark}{words[at][2:]}"))
    return " ".join(words)


def _moment(dice: random.Random) -> Time:
    """A year, month, day or span, as often before our era as in it."""
    year = dice.choice((dice.randint(-3000, -1), dice.randint(-60, 60), dice.randint(1, 2020)))
    way = dice.randrange(4)
    if way == 0:
        return Time.month(year, dice.randint(1, 12))
    if way == 1:
        return Time.day(year, dice.randint(1, 12), dice.randint(1, 28))
    return (
        Time.span(Time.year(year), Time.year(year + dice.randint(0, 40))) if way == 2 and dice.random() < 0.3 else Time.year(year)
    )


def _amount(dice: random.Random) -> Any:
    return dice.choice(
        (dice.randint(-50, 50), dice.randint(-9, 9) / 8, -0.0, 10 ** dice.randint(15, 30) + 1, -(2**53) - dice.randint(0, 2),
         Decimal(dice.randint(-999, 999)) / 100, 1e-9 * dice.randint(1, 9))
    )  # fmt: skip


def _shaped(dice: random.Random, size: int, names: int) -> list[Any]:
    """Entities, of which some share a name, in concepts that are below each other."""
    pool = [_name(dice) for _ in range(names)]
    items: list[Any] = [
        Entity(f"k{at}", name, EntityKind.CONCEPT) for at, name in enumerate(("thing", "idol's", pool[0], "Bowl (old)"))
    ]
    items += [Subclass("k1", "k0"), Subclass("k2", "k0"), Subclass("k3", "k2")]
    for at in range(size):
        items += [Entity(f"e{at}", dice.choice(pool)), Member(f"e{at}", f"k{dice.randrange(4)}")]
    return items


def museum(seed: int) -> list[Any]:
    """Things with shared names, whose one attribute is anything at all."""
    dice, size = random.Random(f"museum {seed}"), 60
    items = _shaped(dice, size, 35)

    def another() -> Ref:
        return Ref(f"e{dice.randrange(size)}")

    for at in range(size):
        for predicate in dice.sample(("made of", "mark", "Bowl", "kept in", "size (cm)", 'it\'s "like"'), 3):
            value: Any = dice.choice((_name(dice), Quantity(_amount(dice)), _moment(dice), another(), another()))
            said = ((dice.choice(("since", "by", "by")), dice.choice((_moment(dice), another(), _name(dice)))),)
            items.append(Statement(f"e{at}", predicate, value, said if dice.random() < 0.4 else ()))
    return items


def dynasty(seed: int) -> list[Any]:
    """People who follow each other from before our era on; reigns have starts, ends and neither."""
    dice, size = random.Random(f"dynasty {seed}"), 70
    items = _shaped(dice, size, 40)
    for at in range(size):
        who, began = f"e{at}", dice.randint(-400, 300)
        reign = (("start time", Time.year(began)), ("end time", Time.year(began + dice.randint(0, 50))))
        later = (("in", _moment(dice)),) if at % 2 else ()
        born = dice.choice((Time.year(began - 30), Time.day(began - 30, 2, 28), _moment(dice)))
        title = dice.choice(("king", "king", "Queen", "\u00ab k \u00bb", 'the "Great"'))
        items += [
            Statement(who, "born", born),
            Statement(who, "ruled", Ref(f"e{dice.randrange(size)}"), reign[: dice.randint(0, 2)]),
            Statement(who, "follows", Ref(f"e{(at + dice.randint(1, 4)) % size}"), later),
            Statement(who, "title", title, reign[:1]),
            Statement(who, "regnal number", Quantity(dice.randint(-2, 9))),
        ]
    return items


def parts(seed: int) -> list[Any]:
    """Parts with sizes in units that look alike, below zero as often as above."""
    dice, size = random.Random(f"parts {seed}"), 60
    units = ("m", "metre", "cm", "kg", "\u00b0C", "%", "US$", "m\u00b2", "1", "it's")
    items = _shaped(dice, size, 45)
    for at in range(size):
        who, by = f"e{at}", (("method", _name(dice)),) if at % 2 else ()
        amount = (("amount", Quantity(dice.randint(-3, 12), dice.choice(units))),)
        items += [
            Statement(who, "temperature", Quantity(dice.randint(-60, 60) / 2, "\u00b0C"), by),
            Statement(who, "size", Quantity(_amount(dice), dice.choice(units))),
            Statement(who, "price", Quantity(dice.randint(-20, 900), dice.choice(("US$", "\u20ac")))),
            Statement(who, "part of", Ref(f"e{dice.randrange(size)}"), amount),
        ]
    return items


UNTIDY: Final[dict[str, Callable[[int], list[Any]]]] = {"museum": museum, "dynasty": dynasty, "parts": parts}
