"""Which values of a bag compete where they are of several types and units, as one ordering."""

from __future__ import annotations


def unit_name(unit: str) -> str:
    """A unit as it is ordered: none comes first."""
    return f"CASE {unit} WHEN '1' THEN '' ELSE coalesce({unit}, '') END"


def most_frequent(kind: str) -> str:
    """The end of an ORDER BY over groups with `times` and `unit` that leaves the most frequent
    type and unit; ties: times first, then the unit by name.
    """
    return f"times DESC, {kind} DESC, unit LIMIT 1"
