"""Values that an operator or a condition ignores: their counts, the type that competes, and the warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from condgraph.engine.errors import numbered
from condgraph.engine.values import NO_UNIT, Kind

#: The number of values that a test ignored, by a description of them and of what they were compared with.
LeftOut = Counter[tuple[str, str]]


def left_out(found: LeftOut, kind: Kind, unit: str, count: int, wanted: set[tuple[Kind, str]]) -> None:
    """Count values of a type and unit if these are not wanted; unknown values are never counted."""
    if kind is Kind.TEXT:
        # Texts of all forms compare as texts.
        unit = NO_UNIT
    if wanted and (kind, unit) not in wanted and kind is not Kind.UNKNOWN:
        without_unit = kind is Kind.QUANTITY and unit == NO_UNIT and any(wanted_kind is kind for wanted_kind, _ in wanted)
        found[kind.name.lower() + (" without a unit" if without_unit else in_unit(unit)), _described(wanted)] += count


def left_out_warnings(found: LeftOut) -> list[str]:
    """Return the warnings about ignored values."""
    return [
        f"{numbered(count, 'value', 'values')} ({what}) cannot be compared with {wanted}"
        f" and {'is' if count == 1 else 'are'} left out"
        for (what, wanted), count in found.items()
    ]


def _described(kinds: set[tuple[Kind, str]]) -> str:
    """Return types and units in words."""
    words = []
    for kind, unit in sorted(kinds):
        if kind is not Kind.ENTITY or len(kinds) == 1:
            article = "an" if kind is Kind.ENTITY else "a"
            words.append(f"{article} {kind.name.lower()}" + in_unit(unit))
    return " or ".join(words)


def in_unit(unit: str) -> str:
    """Return " in UNIT", or nothing without a unit."""
    return f" in {unit}" if unit not in ("", NO_UNIT) else ""


def no_such(what: str, count: int, total: int, wanted: str, unit: str = "") -> str:
    """Return the warning about values that an operator cannot use; `wanted` is a noun in the singular."""
    are = f"is not a {wanted}{in_unit(unit)} and is" if count == 1 else f"are not {wanted}s{in_unit(unit)} and are"
    return f"{what}: {count} of {total} values {are} left out"


def outnumbered(what: str, count: int, kind: Kind, unit: str) -> str:
    """Return the warning about values of another type or unit than the competing ones."""
    words = numbered(count, "value is", "values are"), "does" if count == 1 else "do"
    return f"{what}: {words[0]} not of type {kind.name.lower()}{in_unit(unit)} and {words[1]} not compete"


def most_frequent(sizes: Mapping[tuple[Kind, str], int]) -> tuple[Kind, str]:
    """Return the type and unit of most values, which compete; `sizes` is not empty. Ties: times first, then numbers
    without a unit, then the unit by name.
    """
    return min(sizes, key=lambda group: (-sizes[group], -group[0], "" if group[1] == NO_UNIT else group[1]))
