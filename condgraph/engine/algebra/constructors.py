"""Constructors that normalise, and refuse nonsense; parts of a plan that others ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from condgraph.engine.algebra.operators import (
    AnyOf,
    ById,
    ByName,
    Condition,
    Distinct,
    Entities,
    Facts,
    Intersect,
    Node,
    Predicates,
    Qualifiers,
    Reached,
    Referents,
    Scan,
    Union,
    postorder,
)
from condgraph.engine.errors import PlanError

# -- Constructors ------------------------------------------------------------------------------------


def union(*parts: Entities) -> Entities:
    """Union, flattened, equal parts once; at least one part."""
    return _set_of(Union, parts)


def intersect(*parts: Entities) -> Entities:
    """Intersection, flattened, equal parts once; at least one part."""
    return _set_of(Intersect, parts)


def _set_of(kind: type[Union] | type[Intersect], parts: tuple[Entities, ...]) -> Entities:
    # By identity: comparing deep trees by value costs more than the part that is saved.
    flat: dict[int, Entities] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            flat.setdefault(id(inner), inner)
    if not flat:
        raise PlanError(f"{kind.__name__.lower()} of nothing")
    return kind(tuple(flat.values())) if len(flat) > 1 else next(iter(flat.values()))


def reached(of: Entities | Facts) -> Entities:
    """A set of entities from either sort."""
    return Reached(of) if isinstance(of, Facts) else of


def any_of(conditions: list[Condition] | tuple[Condition, ...]) -> Condition:
    """One test out of the readings of a literal; at least one."""
    if not conditions:
        raise PlanError("a test without a reading")
    return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))


def carried(node: Node) -> list[Node]:
    """The inputs whose entities, statements or values make up the result (`Facets.carries`)."""
    return fields_of(node, node.facets.carries)


def passed(facts: Facts) -> Facts | None:
    """The facts that others are carried on from; None of a scan."""
    found = carried(facts)
    return found[0] if found and isinstance(found[0], Facts) else None


def passing(facts: Facts, inner: Facts) -> Facts:
    """The same facts, carried on from others."""
    (name,) = facts.facets.carries
    return replace(facts, **{name: inner})  # type: ignore[type-var]


def fields_of(node: Node, names: tuple[str, ...]) -> list[Node]:
    """The operators in some fields, in order; a field without any has none."""
    found: list[Node] = []
    for name in names:
        value: Any = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [part for part in value if isinstance(part, Node)]
    return found


def whole_inputs(node: Node) -> list[Node]:
    """The inputs of which everything counts, and that there is no more; tests included."""
    found: list[Node] = []
    _gather_whole(node, False, found)
    return found


def _gather_whole(record: Node | Condition, within: bool, found: list[Node]) -> None:
    for name in () if not record.inputs() else record.__dataclass_fields__:  # type: ignore[union-attr]
        whole = within or name in record.needs.whole
        value: Any = getattr(record, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Condition):
                _gather_whole(part, whole, found)
            elif whole and isinstance(part, Node):
                found.append(part)


def monotone(plan: Node) -> bool:
    """Whether more statements can only give more, so that what the answer has is proved by what led
    to it.
    """
    return not any(node.needs.graph or whole_inputs(node) for node in postorder(plan))


# -- Statements around entities ----------------------------------------------------------------------
# What stands around some entities, as operators: those entities, and the statements that have one
# of them at an end; and the entities that stand in these.


def around_of(ids: Sequence[str], names: Sequence[str], *, values: bool) -> tuple[Entities, tuple[Scan, ...]]:
    """The entities of these ids and names, and scans of their statements: with `values`, relations
    and attributes from them; and relations to them.
    """
    parts: list[Entities] = []
    if ids:
        parts.append(ById(tuple(ids)))
    if names:
        parts.append(ByName(tuple(names)))
    of: Entities = parts[0] if len(parts) == 1 else Union(tuple(parts))
    scans = [Scan(of, None, reach="object", family="relation"), Scan(of, None, anchor="object", reach="subject", family="relation")]
    if values:
        scans.append(Scan(of, None, family="attribute"))
    return of, tuple(scans)


def scans_around(of: Entities) -> dict[str, Scan]:
    """The statements of entities: "forward" and "backward" for relations, "value" for attributes."""
    return {
        "forward": Scan(of, None, "subject", "object", "relation"),
        "backward": Scan(of, None, "object", "subject", "relation"),
        "value": Scan(of, None, "subject", "subject", "attribute"),
    }


def around(of: Entities) -> dict[str, Node]:
    """What gives the predicates of entities, by the same words."""
    return {way: Distinct(Predicates(scan)) for way, scan in scans_around(of).items()}


def named_of(of: Entities, scans: Sequence[Scan], *, qualified: bool) -> list[Entities]:
    """The entities that stand in scans of `around_of`: those they begin at, their other ends, and
    those that are qualifiers, where a graph has such (`qualified`).
    """
    parts: list[Entities] = [of, *(Reached(scan) for scan in scans if scan.family == "relation")]
    return [*parts, *(Referents(Qualifiers(scan, None)) for scan in scans)] if qualified else parts
