"""A survey as objects, narrowed to what a source, a concept or a predicate has to do with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, UnknownNameError, nearest
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, bound_text
from condgraph.overview.records import (
    MOST_PARTS,
    ConceptSchema,
    Example,
    KindCount,
    PredicateSchema,
    QualifierKey,
    SourceCount,
    SourceSchema,
    UnitCount,
    ValueCount,
)
from condgraph.overview.schema import GraphSchema
from condgraph.overview.survey import Ends, Survey


def describe(found: Survey, *, source: str | None = None, concept: str | None = None, predicate: str | None = None) -> GraphSchema:
    """The schema that a survey holds.

    `source` keeps the predicates with statements in that source, `concept` those whose subjects or
    objects are in a concept of that name or below it, `predicate` one; all of them together keep
    what each keeps. Sources, concepts and units are then those of the kept predicates. Numbers stay
    those of the whole graph. Raises `UnknownNameError`, with the nearest names, for a name that the
    graph does not have, and `OptionError` for what is no text.
    """
    kinds, predicates, ends = found["kinds"], found["predicates"], (found["subjects"], found["objects"])
    narrowed = any(name is not None for name in (source, concept, predicate))
    keep, inside = np.ones(len(predicates), bool), np.zeros(len(kinds), bool)
    if source is not None:
        _known("source", source, [one[0] for one in found["sources"]])
        keep &= [any(name == source for name, _ in one[5]) for one in predicates]
    if concept is not None:
        _known("concept", concept, [one[1] for one in kinds if one[0] == "concept"])
        inside[list(_below(kinds, concept))] = True
        keep &= _any(ends[0], inside) | _any(ends[1], inside)
    if predicate is not None:
        _known("predicate", predicate, [one[0] for one in predicates], _keyed(found, predicate))
        keep &= [one[0] == predicate for one in predicates]
    places = np.flatnonzero(keep).tolist()
    for side in ends if narrowed else ():
        inside[side.kinds[np.repeat(keep, np.diff(side.starts))]] = True
    kept = [predicates[place] for place in places]
    shown = {name for one in kept for name, _ in one[5]}
    values = [value for one in kept for value in _values_of(one)]
    firsts, lasts = ([value[place] for value in values if value[place] is not None] for place in (5, 6))
    check()
    rows = {one[1]: one[3] for one in kinds if one[0] == "table"}
    sources = [
        SourceSchema(name, form, count, rows.get(name, 0))
        for name, form, count in found["sources"]
        if not narrowed or name in shown
    ]
    concepts = [
        concept_schema(kinds, one) for place, one in enumerate(kinds) if one[0] == "concept" and (inside[place] or not narrowed)
    ]
    return GraphSchema(
        dict(found["counts"]),
        tuple(sorted(sources, key=lambda one: (-one.statements, one.name))),
        tuple(sorted(concepts, key=lambda one: (-one.members, one.name, one.id))),
        tuple(sorted((predicate_schema(found, place) for place in places), key=lambda one: (-one.statements, one.name))),
        _units(values),
        _day(min(firsts)) if firsts else "",
        _day(max(lasts) - 1) if lasts else "",
        found.get("note", ""),
    )


def _any(side: Ends, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which predicates have one of these kinds at an end."""
    found = np.zeros(len(side.starts) - 1, bool)
    found[np.repeat(np.arange(len(found)), np.diff(side.starts))[inside[side.kinds]]] = True
    return found


def _day(second: int) -> str:
    """The day that a second is in."""
    return bound_text(second // DAY_SECONDS * DAY_SECONDS) or ""


def _known(kind: str, name: Any, names: Sequence[str], hint: str | None = None) -> None:
    if not isinstance(name, str):
        raise OptionError(f"{kind} is the name of a {kind}, not {name!r}")
    if name not in names:
        raise UnknownNameError(kind, name, candidates=nearest(name, dict.fromkeys(names)), hint=hint)


def _keyed(found: Survey, name: Any) -> str | None:
    """What to say of a name that is a key of qualifiers."""
    owners = [one[0] for one in found["predicates"] if any(key == name for key, _ in one[4])]
    return f"it is a key of qualifiers, of {', '.join(map(repr, owners[:3]))}" if owners else None


def _below(kinds: list[Any], name: str) -> set[int]:
    """The concepts of a name, and all below them."""
    inside = {number for number, one in enumerate(kinds) if one[0] == "concept" and one[1] == name}
    below: dict[int, list[int]] = {}
    for number, one in enumerate(kinds):
        for parent in one[5]:
            below.setdefault(parent, []).append(number)
    waiting = list(inside)
    while waiting:
        fresh = [child for child in below.get(waiting.pop(), ()) if child not in inside]
        inside.update(fresh)
        waiting.extend(fresh)
    return inside


def concept_schema(kinds: list[Any], one: list[Any]) -> ConceptSchema:
    """A concept of a survey."""
    return ConceptSchema(one[2], one[1], one[3], tuple(sorted(kinds[number][1] for number in one[5])), tuple(one[4]))


def predicate_schema(found: Survey, place: int) -> PredicateSchema:
    """A predicate of a survey, by its place there."""
    name, relations, attributes, values, qualifiers, sources, examples = found["predicates"][place]
    parts: dict[str, tuple[Any, ...]] = {
        "values": tuple(map(_value, values[:MOST_PARTS])),
        "qualifiers": tuple(
            QualifierKey(key, sum(value[2] for value in of), tuple(map(_value, of))) for key, of in qualifiers[:MOST_PARTS]
        ),
        "sources": tuple(SourceCount(*one) for one in sources[:MOST_PARTS]),
    }
    kinds = found["kinds"]
    sizes = {"values": len(values), "qualifiers": len(qualifiers), "sources": len(sources)}
    for end in ("subjects", "objects"):
        side: Ends = found[end]
        low, high = side.starts[place : place + 2].tolist()
        first = slice(low, min(low + MOST_PARTS, high))
        counted = zip(side.kinds[first].tolist(), side.counts[first].tolist(), strict=True)
        parts[end] = tuple(KindCount(kinds[kind][0], kinds[kind][1], count) for kind, count in counted)
        sizes[end] = high - low
    more = {part: sizes[part] - MOST_PARTS for part in sorted(sizes) if sizes[part] > MOST_PARTS}
    some = tuple(Example(*one) for one in examples)
    return PredicateSchema(name, relations + attributes, relations, attributes, **parts, examples=some, more=more)


def _value(value: list[Any]) -> ValueCount:
    return ValueCount(*value[:5])


def _values_of(one: list[Any]) -> list[list[Any]]:
    """The values of a predicate, and of its qualifiers."""
    return [*one[3], *(value for _, values in one[4] for value in values)]


def _units(values: list[list[Any]]) -> tuple[UnitCount, ...]:
    counts: dict[str, int] = {}
    for kind, unit, count, *_ in values:
        if kind == "quantity" and unit != NO_UNIT:
            counts[unit] = counts.get(unit, 0) + count
    return tuple(UnitCount(unit, count) for unit, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
