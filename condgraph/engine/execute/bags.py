"""Bags of values, read late: a bag knows which cells its values are, and turns them into Python values only when asked.

A bag is a list of parts of one kind each. A part has `ids` (what the values are) and `carriers` (what carries them):

    att   ids: attributes, counted from 0        carriers: statements
    q     ids: qualifiers                        carriers: statements
    ent   ids: entities (objects of relations)   carriers: statements
    name  ids: entities, the value is the name   carriers: entities
    row   ids: entities, the value is the row number         carriers: entities
    pred  ids: predicates, the value is the name             carriers: statements
    span  ids: positions in `start` and `end`    carriers: statements
    given ids: positions in `values`             carriers: none
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.execute.sets import EMPTY, Numbers
from condgraph.engine.execute.tests import Cells, Mask
from condgraph.engine.facts import Entity
from condgraph.engine.values import (
    NO_UNIT,
    OPEN_END,
    OPEN_START,
    UNKNOWN_END,
    UNKNOWN_START,
    Kind,
    Precision,
    Quantity,
    Time,
    Value,
    format_number,
)

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run

PartKind = Literal["att", "q", "ent", "name", "row", "pred", "span", "given"]
#: What a value of an answer is: a typed value, an entity, a number, or a truth value.
Result = Value | Entity | bool | int | float


class Part:
    """Values of one kind with their carriers; `data` is what the kind needs beside the numbers."""

    __slots__ = ("carriers", "data", "ids", "kind")

    def __init__(self, kind: PartKind, ids: NDArray[Any], carriers: Numbers, data: Any = None) -> None:
        self.kind, self.ids, self.carriers, self.data = kind, ids, carriers, data

    def take(self, mask: Mask | NDArray[np.int64]) -> Part:
        """Some of the values."""
        return Part(self.kind, self.ids[mask], self.carriers[mask] if self.kind != "given" else self.carriers, self.data)


class Bag:
    """A bag of values. `len` counts values, repeats included."""

    __slots__ = ("parts", "run")

    def __init__(self, run: Run, parts: list[Part]) -> None:
        self.run = run
        self.parts = [part for part in parts if len(part.ids)] if len(parts) > 1 else parts

    def __len__(self) -> int:
        return sum(len(part.ids) for part in self.parts)

    def take(self, chosen: NDArray[Any]) -> Bag:
        """The values at these positions, or where this mask is true; the order stays."""
        if len(self.parts) == 1:
            return Bag(self.run, [self.parts[0].take(chosen)])
        mask = chosen
        if chosen.dtype != bool:
            mask = np.zeros(len(self), bool)
            mask[chosen] = True
        parts, at = [], 0
        for part in self.parts:
            parts.append(part.take(mask[at : at + len(part.ids)]))
            at += len(part.ids)
        return Bag(self.run, parts)

    # -- as columns -------------------------------------------------------------------------------------------------------

    def cells(self) -> Cells:
        """All values as cells. Texts that the graph does not have get numbers below -1, the same for the same text."""
        columns = [self._part_cells(part) for part in self.parts]
        if len(columns) == 1:
            return Cells(columns[0])
        names = ("kind", "a", "b", "ref", "unit", "precision")
        if not columns:
            empty = {name: np.empty(0, np.int64) for name in names}
            return Cells(empty)
        return Cells({name: np.concatenate([column[name] for column in columns]) for name in names})

    def _part_cells(self, part: Part) -> dict[str, NDArray[Any]]:
        snapshot, n = self.run.snapshot, len(part.ids)
        get = snapshot.arrays.get
        if part.kind in ("att", "q"):
            return {name: get(f"{part.kind}.{name}")[part.ids] for name in ("kind", "a", "b", "ref", "unit", "precision")}
        columns: dict[str, NDArray[Any]] = {
            "kind": np.zeros(n, np.int8),
            "a": np.zeros(n, np.int64),
            "b": np.zeros(n, np.int64),
            "ref": np.full(n, -1, np.int32),
            "unit": np.full(n, -1, np.int32),
            "precision": np.zeros(n, np.int8),
        }
        if part.kind == "ent":
            columns["kind"][:] = Kind.ENTITY
            columns["ref"] = part.ids
        elif part.kind == "name":
            columns["ref"] = snapshot.entity_name[part.ids]
        elif part.kind == "pred":
            columns["ref"] = get("pred.text")[part.ids]
        elif part.kind == "row":
            columns["kind"][:] = Kind.QUANTITY
            columns["a"] = get("ent.row")[part.ids].astype(np.float64).view(np.int64)
        elif part.kind == "span":
            columns["kind"][:] = Kind.TIME
            columns["a"], columns["b"] = part.data[0][part.ids], part.data[1][part.ids]
            columns["precision"] = part.data[2][part.ids]
        else:
            self.run.encode_given([part.data[i] for i in part.ids.tolist()], columns)
        return columns

    # -- as Python values -------------------------------------------------------------------------------------------------

    def values(self) -> list[Result]:
        """All values, repeats included, in the order of the parts."""
        found: list[Result] = []
        for part in self.parts:
            found.extend(self._part_values(part))
        return found

    def _part_values(self, part: Part) -> list[Any]:
        snapshot = self.run.snapshot
        if part.kind in ("att", "q"):
            return _decode(self.run, part.kind, part.ids)
        if part.kind == "ent":
            return [snapshot.entity(i) for i in part.ids.tolist()]
        if part.kind == "name":
            return snapshot.texts.take(snapshot.entity_name[part.ids])
        if part.kind == "pred":
            return [snapshot.predicate_name(i) for i in part.ids.tolist()]
        if part.kind == "row":
            return [Quantity(n) for n in snapshot.arrays.get("ent.row")[part.ids].tolist()]
        if part.kind == "span":
            start, end, precision = (column[part.ids].tolist() for column in part.data)
            return [Time(a, b, Precision(p)) for a, b, p in zip(start, end, precision, strict=True)]
        return [part.data[i] for i in part.ids.tolist()]

    def texts(self) -> list[str]:
        """Every value as a user sees it: raw text of table cells as it stood, names of entities."""
        from condgraph.engine.values import text_of

        snapshot = self.run.snapshot
        found: list[str] = []
        raws = snapshot.arrays.get("att.raw")
        for part in self.parts:
            if part.kind == "att" and len(raws):
                raw = raws[part.ids].tolist()
                plain = [text_of(value) for value in self._part_values(part)]
                found.extend(snapshot.texts[r] if r >= 0 else text for r, text in zip(raw, plain, strict=True))
            elif part.kind == "ent":
                found.extend(snapshot.texts.take(snapshot.entity_name[part.ids]))
            else:
                found.extend(text_of(value) for value in self._part_values(part))
        return found


def _decode(run: Run, family: str, ids: NDArray[Any]) -> list[Any]:
    """Cells of attributes or qualifiers as values, the common types without a detour."""
    snapshot = run.snapshot
    if len(ids) == 1:
        return [_resolved(run, snapshot.value(family, int(ids[0])))]
    get, texts = snapshot.arrays.get, snapshot.texts
    kinds = get(f"{family}.kind")[ids]
    if len(ids) and not kinds.any():
        return list(texts.take(get(f"{family}.ref")[ids]))
    refs = get(f"{family}.ref")[ids].tolist()
    a, b = get(f"{family}.a")[ids], get(f"{family}.b")[ids].tolist()
    units, precisions = get(f"{family}.unit")[ids].tolist(), get(f"{family}.precision")[ids].tolist()
    floats, a = a.view(np.float64).tolist(), a.tolist()
    unit_text: dict[int, str] = {-1: NO_UNIT}
    found: list[Any] = []
    for i, kind in enumerate(kinds.tolist()):
        if kind == 1 and refs[i] < 0:
            unit = unit_text.get(units[i])
            if unit is None:
                unit = unit_text[units[i]] = texts[units[i]]
            x = floats[i]
            found.append(Quantity(int(x) if x.is_integer() else x, unit))
        elif kind == 2:
            found.append(Time(a[i], b[i], Precision(precisions[i])))
        elif kind == 0:
            found.append(texts[refs[i]])
        else:
            found.append(_resolved(run, snapshot.value(family, int(ids[i]))))
    return found


def _resolved(run: Run, value: Any) -> Any:
    """A reference as the entity it names."""
    from condgraph.engine.facts import Ref

    return run.snapshot.entity(run.snapshot.identified(value.id)) if isinstance(value, Ref) else value


def order_key(value: Any) -> tuple[Any, ...]:
    """The fixed order of values: numbers by unit and size, times, then texts and entities by name (and id); unknown last."""
    if isinstance(value, bool):
        return (0, "", value)
    if isinstance(value, Quantity):
        return (1, value.unit, value.number)
    if isinstance(value, Time):
        return (2, value.start, value.end, value.precision)
    if isinstance(value, str):
        return (3, value, "")
    if isinstance(value, Entity):
        return (3, value.name, value.id)
    if isinstance(value, (int, float)):
        return (1, NO_UNIT, value)
    return (4,)


def identity_columns(cells: Cells, name_of: Callable[[NDArray[Any]], NDArray[Any]]) -> list[NDArray[Any]]:
    """Columns that are equal exactly where two values are the same value."""
    columns = cells.columns
    kind = columns["kind"]
    a = np.where((kind == Kind.QUANTITY) | (kind == Kind.TIME), columns["a"], 0)
    return [kind, a, columns["b"], columns["ref"], columns["unit"], columns["precision"]]


def distinct_positions(cells: Cells) -> NDArray[np.int64]:
    """The first position of each distinct value, ascending."""
    n = len(cells)
    if n < 2:
        return np.arange(n)
    marks = identity_columns(cells, lambda refs: refs)
    varying = [mark for mark in marks if (mark != mark[0]).any()]
    if not varying:
        return np.zeros(1, np.int64)
    order = np.lexsort(varying)
    fresh = np.zeros(n, bool)
    fresh[0] = True
    for mark in varying:
        ordered = mark[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    # lexsort is stable, so the first of a run of equals is the first position.
    return np.sort(order[fresh])


def equal_cells(run: Run, cells: Cells, other: Bag) -> Mask:
    """For each cell, whether it is one of the values of a bag; an entity and a text meet by name."""
    left, right = by_name(run, cells), by_name(run, other.cells())
    rows = [np.stack([c.astype(np.int64) for c in identity_columns(side, lambda refs: refs)[:5]], axis=1) for side in (left, right)]
    if not len(rows[0]) or not len(rows[1]):
        return np.zeros(len(rows[0]), bool)
    _, inverse = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    found: Mask = np.isin(inverse[: len(rows[0])], inverse[len(rows[0]) :])
    return found


def by_name(run: Run, cells: Cells) -> Cells:
    """Entities turned into the texts of their names."""
    entity = cells.columns["kind"] == Kind.ENTITY
    if not entity.any():
        return cells
    columns = dict(cells.columns)
    columns["kind"] = np.where(entity, np.int8(Kind.TEXT), columns["kind"])
    columns["ref"] = columns["ref"].copy()
    columns["ref"][entity] = run.snapshot.entity_name[columns["ref"][entity]]
    return Cells(columns)


def span_part(statements: Numbers, start: NDArray[Any], end: NDArray[Any], part: str) -> Part:
    """Validity as values; intervals with an unknown side, and open sides asked for alone, are no value."""
    if part == "interval":
        known = (start != UNKNOWN_START) & (end != UNKNOWN_END)
    elif part == "start":
        known = (start != UNKNOWN_START) & (start != OPEN_START)
    else:
        known = (end != UNKNOWN_END) & (end != OPEN_END)
    start, end, statements = start[known], end[known], statements[known]
    precision = np.full(len(start), Precision.SPAN, np.int8)
    return Part("span", np.arange(len(start)), statements, (start, end, precision))


def number_text(value: Any) -> str:
    """A bare number as text."""
    return format_number(value)


__all__ = ["EMPTY", "Bag", "Part", "Result"]
