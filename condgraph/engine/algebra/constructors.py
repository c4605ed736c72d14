"""Constructors that normalise, and refuse nonsense; parts of a plan that others ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from condgraph.engine.algebra import operators
from condgraph.engine.errors import PlanError

# -- Constructors ------------------------------------------------------------------------------------


def union(*parts: operators.Entities) -> operators.Entities:
    """Union, flattened, equal parts once; at least one part."""
    return _set_of(operators.Union, parts)


def intersect(*parts: operators.Entities) -> operators.Entities:
    """Intersection, flattened, equal parts once; at least one part."""
    return _set_of(operators.Intersect, parts)


def _set_of(kind: type[operators.Union] | type[operators.Intersect], parts: tuple[operators.Entities, ...]) -> operators.Entities:
    # By identity: comparing deep trees by value costs more than the part that is saved.
    flat: dict[int, operators.Entities] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            flat.setdefault(id(inner), inner)
    if not flat:
        raise PlanError(f"{kind.__name__.lower()} of nothing")
    return kind(tuple(flat.values())) if len(flat) > 1 else next(iter(flat.values()))


def reached(of: operators.Entities | operators.Facts) -> operators.Entities:
    """A set of entities from either sort."""
    return operators.Reached(of) if isinstance(of, operators.Facts) else of


def any_of(conditions: list[operators.Condition] | tuple[operators.Condition, ...]) -> operators.Condition:
    """One test out of the readings of a literal; at least one."""
    if not conditions:
        raise PlanError("a test without a reading")
    return conditions[0] if len(conditions) == 1 else operators.AnyOf(tuple(conditions))


def carried(node: operators.Node) -> list[operators.Node]:
    """The inputs whose entities, statements or values make up the result (`Facets.carries`)."""
    return fields_of(node, node.facets.carries)


def passed(facts: operators.Facts) -> operators.Facts | None:
    """The facts that others are carried on from; None of a scan."""
    found = carried(facts)
    return found[0] if found and isinstance(found[0], operators.Facts) else None


def passing(facts: operators.Facts, inner: operators.Facts) -> operators.Facts:
    """The same facts, carried on from others."""
    (name,) = facts.facets.carries
    return replace(facts, **{name: inner})  # type: ignore[type-var]


def fields_of(node: operators.Node, names: tuple[str, ...]) -> list[operators.Node]:
    """The operators in some fields, in order; a field without any has none."""
    found: list[operators.Node] = []
    for name in names:
        value: Any = getattr(node, name)
        if isinstance(value, operators.Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [part for part in value if isinstance(part, operators.Node)]
    return found


def whole_inputs(node: operators.Node) -> list[operators.Node]:
    """The inputs of which everything counts, and that there is no more; tests included."""
    found: list[operators.Node] = []
    _gather_whole(node, False, found)
    return found


def _gather_whole(record: operators.Node | operators.Condition, within: bool, found: list[operators.Node]) -> None:
    for name in () if not record.inputs() else record.__dataclass_fields__:  # type: ignore[union-attr]
        whole = within or name in record.needs.whole
        value: Any = getattr(record, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, operators.Condition):
                _gather_whole(part, whole, found)
            elif whole and isinstance(part, operators.Node):
                found.append(part)


def monotone(plan: operators.Node) -> bool:
    """Whether more statements can only give more, so that what the answer has is proved by what led
    to it.
    """
    return not any(node.needs.graph or whole_inputs(node) for node in operators.postorder(plan))


# -- Statements around entities ----------------------------------------------------------------------
# What stands around some entities, as operators: those entities, and the statements that have one
# of them at an end; and the entities that stand in these.


def around_of(ids: Sequence[str], names: Sequence[str], *, values: bool) -> tuple[operators.Entities, tuple[operators.Scan, ...]]:
    """The entities of these ids and names, and scans of their statements: with `values`, relations
    and attributes from them; and relations to them.
    """
    parts: list[operators.Entities] = []
    if ids:
        parts.append(operators.ById(tuple(ids)))
    if names:
        parts.append(operators.ByName(tuple(names)))
    of: operators.Entities = parts[0] if len(parts) == 1 else operators.Union(tuple(parts))
    scans = [
        operators.Scan(of, None, reach="object", family="relation"),
        operators.Scan(of, None, anchor="object", reach="subject", family="relation"),
    ]
    if values:
        scans.append(operators.Scan(of, None, family="attribute"))
    return of, tuple(scans)


def scans_around(of: operators.Entities) -> dict[str, operators.Scan]:
    """The statements of entities: "forward" and "backward" for relations, "value" for attributes."""
    return {
        "forward": operators.Scan(of, None, "subject", "object", "relation"),
        "backward": operators.Scan(of, None, "object", "subject", "relation"),
        "value": operators.Scan(of, None, "subject", "subject", "attribute"),
    }


def around(of: operators.Entities) -> dict[str, operators.Node]:
    """What gives the predicates of entities, by the same words."""
    return {way: operators.Distinct(operators.Predicates(scan)) for way, scan in scans_around(of).items()}


def named_of(of: operators.Entities, scans: Sequence[operators.Scan], *, qualified: bool) -> list[operators.Entities]:
    """The entities that stand in scans of `around_of`: those they begin at, their other ends, and
    those that are qualifiers, where a graph has such (`qualified`).
    """
    parts: list[operators.Entities] = [of, *(operators.Reached(scan) for scan in scans if scan.family == "relation")]
    return [*parts, *(operators.Referents(operators.Qualifiers(scan, None)) for scan in scans)] if qualified else parts
