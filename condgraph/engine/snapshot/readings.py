"""How expressions read the numbers and texts of a key, which depends on all of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.values import NO_UNIT, Kind

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The bound of Cypher's integers; a whole number from here on was written as a float, such as 5.972e24.
_INTEGERS: Final = 2.0**63


@dataclass(slots=True)
class Reading:
    """A key of attributes or qualifiers: its number, its run of statements, how its numbers and texts are read, and a
    statement that shows this: the first by value with a float, or with a text that is not a truth value (-1: none).
    """

    number: int
    low: int
    high: int
    floats: bool = False
    truths: bool = False
    fraction: int = -1
    word: int = -1
    #: The number and the text in these statements.
    number_shown: float = 0.0
    text_shown: str = ""
    #: Whether some number is an integer, and whether some text is a truth value.
    whole: bool = False
    truth: bool = False


def attribute_reading(snapshot: Snapshot, key: str) -> Reading:
    """Return how the values of an attribute are read."""
    cache: dict[str, Reading] = snapshot.schema.kept.setdefault("attribute readings", {})
    if key not in cache:
        number = snapshot.predicate(key)
        low, high = snapshot.attribute_offsets[number : number + 2].tolist() if number >= 0 else (0, 0)
        cache[key] = _reading(snapshot, "att", Reading(number, low, high), snapshot.groups(low, high) if low < high else [])
    return cache[key]


def qualifier_reading(snapshot: Snapshot, key: str) -> Reading:
    """Return how the values of a qualifier are read."""
    cache: dict[str, Reading] = snapshot.schema.kept.setdefault("qualifier readings", {})
    if key not in cache:
        number = snapshot.predicate(key)
        cache[key] = _reading(snapshot, "q", Reading(number, 0, 0), snapshot.qualifier_groups(number) if number >= 0 else [])
    return cache[key]


def _reading(snapshot: Snapshot, family: str, found: Reading, groups: list[tuple[Kind, str, int, int]]) -> Reading:
    """Decide how values are read. Numbers without a unit are floats if some are not integers, or are beyond 64 bits
    while all are exact as floats; texts are truth values if all are.
    """
    cells, texts = snapshot.ordered(family), snapshot.texts
    truths = [texts.find("true"), texts.find("false")]

    def statement(place: int) -> int:
        cell = int(cells.numbers(place, place + 1)[0])
        return cell + snapshot.relations if family == "att" else int(snapshot.arrays.get("q.owner")[cell])

    for kind, unit, begin, end in groups:
        if kind is Kind.QUANTITY and unit == NO_UNIT and not found.floats:
            numbers: Any = cells.column("a", begin, end).view(np.float64)
            fractions = np.isfinite(numbers) & (numbers != np.floor(numbers))
            if not fractions.any() and (cells.column("ref", begin, end) < 0).all():
                fractions = np.abs(numbers) >= _INTEGERS
            found.whole = not fractions.all()
            if fractions.any():
                position = int(fractions.argmax())
                found.floats, found.fraction, found.number_shown = True, statement(begin + position), float(numbers[position])
        elif kind is Kind.TEXT:
            words = ~np.isin(cells.column("ref", begin, end), truths)
            found.truths, found.truth = not words.any(), not words.all()
            if not found.truths:
                position = int(words.argmax())
                found.word = statement(begin + position)
                found.text_shown = texts[int(cells.column("ref", begin + position, begin + position + 1)[0])]
    return found
