"""Values, entities and statements as JSON: one form for all that the API gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from condgraph.engine.evidence import Evidence
from condgraph.engine.facts import Entity
from condgraph.engine.values import UNKNOWN, Quantity, Time, bound_text, text_of


def entity(one: Entity) -> dict[str, Any]:
    """An entity: its id, name and kind ("entity", "concept" or "row")."""
    return {"type": "entity", "text": one.name, "id": one.id, "name": one.name, "kind": one.kind.name.lower()}


def cell(value: Any) -> dict[str, Any] | None:
    """A value: its `text` and `type`, and as the type asks `number` and `unit`, `precision`,
    `start` and `end`, or `id`, `name` and `kind`. None stays None. A number that JSON does not have
    is null beside its text.
    """
    if value is None:
        return None
    if isinstance(value, Entity):
        return entity(value)
    if isinstance(value, bool):
        return {"type": "truth", "text": text_of(value), "truth": value}
    if isinstance(value, int):
        return {"type": "count", "text": str(value), "number": value}
    if isinstance(value, Quantity):
        return {"type": "quantity", "text": text_of(value), "number": _number(value.number), "unit": value.unit}
    if isinstance(value, Time):
        bounds = {"start": bound_text(value.start), "end": bound_text(value.end)}
        return {"type": "time", "text": text_of(value), "precision": value.precision.name.lower(), **bounds}
    if isinstance(value, str):
        kind = {"Iri": "iri", "Blank": "blank"}.get(type(value).__name__, "text")
        return {"type": kind, "text": str(value)}
    if value is UNKNOWN:
        return {"type": "unknown", "text": text_of(value)}
    try:
        return {"type": "number", "text": str(value), "number": _number(value)}
    except (TypeError, ValueError, OverflowError):
        return {"type": "other", "text": str(value)}


def table_cell(value: Any, text: str) -> dict[str, Any] | None:
    """A cell of a table; one that lists several values is their text (`text`), of the type "list"."""
    return {"type": "list", "text": text} if isinstance(value, tuple) else cell(value)


def _number(value: Any) -> float | None:
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def record_cells(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """A record of `Answer.data` in the form of `cell`."""
    found = dict(record)
    if "count" in found:
        found["number"] = found.pop("count")
    return found


def fact(one: Evidence) -> dict[str, Any]:
    """A statement with its qualifiers, and every source and row it stands in (row null: not
    known). Places of files are the server's own, and are not told.
    """
    return {
        "kind": one.kind,
        "subject": entity(one.subject),
        "predicate": one.predicate,
        "object": cell(one.object),
        "qualifiers": [{"key": key, "value": cell(value)} for key, value in one.qualifiers],
        "sources": [{"name": source.name, "row": row or None} for source, row in one.sources],
        "raw": one.raw,
        "text": str(one),
    }
