"""Values that an operator or a condition leaves out: their counts, which of several types compete,
and the warnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from condgraph.engine.errors import numbered
from condgraph.engine.values import NO_UNIT, Kind

#: How many values a test left out, by what they are and what they were to be compared with, in
#: words.
LeftOut = Counter[tuple[str, str]]


def left_out(found: LeftOut, kind: Kind, unit: str, count: int, wanted: set[tuple[Kind, str]]) -> None:
    """Count values of a type and unit where they are none that is wanted; nothing compares with
    what is not known.
    """
    if kind is Kind.TEXT:
        # A text of any form compares as a text.
        unit = NO_UNIT
    if wanted and (kind, unit) not in wanted and kind is not Kind.UNKNOWN:
        none = kind is Kind.QUANTITY and unit == NO_UNIT and any(one is kind for one, _ in wanted)
        found[kind.name.lower() + (" without a unit" if none else in_unit(unit)), _described(wanted)] += count


def left_out_warnings(found: LeftOut) -> list[str]:
    """The warnings of values that were left out."""
    return [
        f"{numbered(count, 'value', 'values')} ({what}) cannot be compared with {wanted}"
        f" and {'is' if count == 1 else 'are'} left out"
        for (what, wanted), count in found.items()
    ]


def _described(kinds: set[tuple[Kind, str]]) -> str:
    """Types and units in words."""
    words = []
    for kind, unit in sorted(kinds):
        if kind is not Kind.ENTITY or len(kinds) == 1:
            article = "an" if kind is Kind.ENTITY else "a"
            words.append(f"{article} {kind.name.lower()}" + in_unit(unit))
    return " or ".join(words)


def in_unit(unit: str) -> str:
    """A unit, for behind a word; nothing of none."""
    return f" in {unit}" if unit not in ("", NO_UNIT) else ""


def no_such(what: str, count: int, total: int, wanted: str, unit: str = "") -> str:
    """The warning of values that an operator cannot take; `wanted` is a noun in the singular."""
    are = f"is not a {wanted}{in_unit(unit)} and is" if count == 1 else f"are not {wanted}s{in_unit(unit)} and are"
    return f"{what}: {count} of {total} values {are} left out"


def outnumbered(what: str, count: int, kind: Kind, unit: str) -> str:
    """The warning of values that are of another type or unit than those that compete."""
    does = numbered(count, "value is", "values are"), "does" if count == 1 else "do"
    return f"{what}: {does[0]} no {kind.name.lower()}{in_unit(unit)} and {does[1]} not compete"


def most_frequent(sizes: Mapping[tuple[Kind, str], int]) -> tuple[Kind, str]:
    """The type and unit that most values have, which compete; ties: times first, then numbers
    without a unit, then the unit by name. There is at least one.
    """
    return min(sizes, key=lambda group: (-sizes[group], -group[0], "" if group[1] == NO_UNIT else group[1]))
