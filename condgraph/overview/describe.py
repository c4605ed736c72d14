"""A survey as objects, narrowed to what a source, a concept or a predicate has to do with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from condgraph.engine.errors import OptionError, UnknownNameError, nearest
from condgraph.engine.values import DAY_SECONDS, NO_UNIT, bound_text
from condgraph.overview.records import (
    MOST_PARTS,
    ConceptSchema,
    Example,
    GraphSchema,
    KindCount,
    PredicateSchema,
    QualifierKey,
    SourceCount,
    SourceSchema,
    UnitCount,
    ValueCount,
)
from condgraph.overview.survey import Survey

T = TypeVar("T")


def describe(found: Survey, *, source: str | None = None, concept: str | None = None, predicate: str | None = None) -> GraphSchema:
    """The schema that a survey holds.

    `source` keeps the predicates with statements in that source, `concept` those whose subjects or
    objects are in a concept of that name or below it, `predicate` one; all of them together keep
    what each keeps. Sources, concepts and units are then those of the kept predicates. Numbers stay
    those of the whole graph. Raises `UnknownNameError`, with the nearest names, for a name that the
    graph does not have, and `OptionError` for what is no text.
    """
    kinds, kept = found["kinds"], found["predicates"]
    narrowed = any(name is not None for name in (source, concept, predicate))
    inside: set[int] = set()
    if source is not None:
        _known("source", source, [one[0] for one in found["sources"]])
        kept = [one for one in kept if any(name == source for name, _ in one[7])]
    if concept is not None:
        _known("concept", concept, [one[1] for one in kinds if one[0] == "concept"])
        inside = _below(kinds, concept)
        kept = [one for one in kept if any(kind in inside for side in one[3:5] for kind, _ in side)]
    if predicate is not None:
        _known("predicate", predicate, [one[0] for one in found["predicates"]], _keyed(found, predicate))
        kept = [one for one in kept if one[0] == predicate]
    if narrowed:
        inside = inside | {kind for one in kept for side in one[3:5] for kind, _ in side}
    shown = {name for one in kept for name, _ in one[7]}
    values = [value for one in kept for value in _values_of(one)]
    seconds = [value[5] for value in values if value[5] is not None], [value[6] for value in values if value[6] is not None]
    return GraphSchema(
        dict(found["counts"]),
        tuple(
            _ordered(
                (SourceSchema(name, form, count, _rows(kinds, name)) for name, form, count in found["sources"]),
                lambda one: (-one.statements, one.name),
                lambda one: not narrowed or one.name in shown,
            )
        ),
        tuple(
            _ordered(
                (_concept(kinds, one) for number, one in enumerate(kinds) if not narrowed or number in inside),
                lambda one: (-one.members, one.name, one.id),
            )
        ),
        tuple(_ordered((_predicate(kinds, one) for one in kept), lambda one: (-one.statements, one.name))),
        _units(values),
        _day(min(seconds[0])) if seconds[0] else "",
        _day(max(seconds[1]) - 1) if seconds[1] else "",
        found.get("note", ""),
    )


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
    owners = [one[0] for one in found["predicates"] if any(key == name for key, _ in one[6])]
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


def _ordered(found: Iterable[T | None], key: Callable[[T], Any], keep: Callable[[T], bool] = lambda one: True) -> list[T]:
    return sorted((one for one in found if one is not None and keep(one)), key=key)


def _rows(kinds: list[Any], source: str) -> int:
    return next((one[3] for one in kinds if one[0] == "table" and one[1] == source), 0)


def _concept(kinds: list[Any], one: list[Any]) -> ConceptSchema | None:
    if one[0] != "concept":
        return None
    return ConceptSchema(one[2], one[1], one[3], tuple(sorted(kinds[number][1] for number in one[5])), tuple(one[4]))


def _predicate(kinds: list[Any], one: list[Any]) -> PredicateSchema:
    name, relations, attributes, subjects, objects, values, qualifiers, sources, examples = one
    parts: dict[str, list[Any]] = {
        "subjects": _kinds(kinds, subjects),
        "objects": _kinds(kinds, objects),
        "values": [_value(value) for value in values],
        "qualifiers": [QualifierKey(key, sum(value[2] for value in of), tuple(map(_value, of))) for key, of in qualifiers],
        "sources": [SourceCount(*source) for source in sources],
    }
    more = {part: len(all_of) - MOST_PARTS for part, all_of in parts.items() if len(all_of) > MOST_PARTS}
    cut: dict[str, Any] = {part: tuple(all_of[:MOST_PARTS]) for part, all_of in parts.items()}
    some = tuple(Example(*example) for example in examples)
    return PredicateSchema(name, relations + attributes, relations, attributes, **cut, examples=some, more=more)


def _kinds(kinds: list[Any], counted: list[list[int]]) -> list[KindCount]:
    found = [KindCount(kinds[number][0], kinds[number][1], count) for number, count in counted]
    return sorted(found, key=lambda one: (-one.statements, one.sort, one.name))


def _value(value: list[Any]) -> ValueCount:
    return ValueCount(*value[:5])


def _values_of(one: list[Any]) -> list[list[Any]]:
    """The values of a predicate, and of its qualifiers."""
    return [*one[5], *(value for _, values in one[6] for value in values)]


def _units(values: list[list[Any]]) -> tuple[UnitCount, ...]:
    counts: dict[str, int] = {}
    for kind, unit, count, *_ in values:
        if kind == "quantity" and unit != NO_UNIT:
            counts[unit] = counts.get(unit, 0) + count
    return tuple(UnitCount(unit, count) for unit, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
