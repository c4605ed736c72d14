"""A schema as rows of small tables, for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from condgraph.overview.words import examples_words, kinds_words, listed_words, plain, qualifier_words, safe, value_words

if TYPE_CHECKING:
    from condgraph.overview.records import ConceptSchema, Overview, PredicateSchema, SourceSchema

#: Rows of a section that are shown where nothing else is said.
MOST_ROWS: Final = 20
#: A heading, columns, rows, and how many rows there are beyond.
Section = tuple[str, tuple[str, ...], list[tuple[str, ...]], int]


def sections(schema: Overview, most: int = MOST_ROWS) -> list[Section]:
    """The sections that have rows: sources, concepts, predicates, units; each at most `most`
    (0: all).
    """
    found: tuple[tuple[str, tuple[str, ...], Sequence[Any], Callable[[Any], tuple[str, ...]]], ...] = (
        ("sources", ("source", "format", "statements", "rows"), schema.sources, _source),
        ("concepts", ("concept", "members", "below", "such as"), schema.concepts, _concept),
        ("predicates", ("predicate", "statements", "from", "to", "qualifiers", "such as"), schema.predicates, _predicate),
        ("units", ("unit", "values"), schema.units, lambda one: (plain(one.unit), f"{one.values:,}")),
    )
    shown = ((name, columns, parts, list(map(row, parts[: most or None]))) for name, columns, parts, row in found)
    return [(name, columns, rows, len(parts) - len(rows)) for name, columns, parts, rows in shown if rows]


def _source(one: SourceSchema) -> tuple[str, ...]:
    return plain(one.name), one.format, f"{one.statements:,}", f"{one.rows:,}"


def _concept(one: ConceptSchema) -> tuple[str, ...]:
    above = listed_words([plain(name) for name in one.above[:3]], len(one.above) - 3)
    return plain(one.name), f"{one.members:,}", above, ", ".join(map(plain, one.examples))


def _predicate(one: PredicateSchema) -> tuple[str, ...]:
    keys = listed_words([qualifier_words(key) for key in one.qualifiers[:3]], len(one.qualifiers) - 3)
    ends = kinds_words(one.subjects, 2), to_words(one, 2)
    return plain(one.name), f"{one.statements:,}", *ends, keys, examples_words(one, 1)


def to_words(one: PredicateSchema, most: int) -> str:
    """What the statements of a predicate lead to: kinds of entities, then types of values."""
    values = listed_words([value_words(value) for value in one.values[:most]], len(one.values) - most)
    return ", ".join(part for part in (kinds_words(one.objects, most), values) if part)


def heading(schema: Overview) -> str:
    """The first line: how much of everything, and from when to when."""
    counts = schema.counts
    parts = [
        f"{schema.statements:,} statements",
        f"{counts.get('entities', 0):,} entities",
        f"{counts.get('concepts', 0):,} concepts",
    ]
    if schema.first:
        parts.append(f"times from {safe(schema.first)} to {safe(schema.last)}")
    return ", ".join(parts)
