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

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.execute import factset
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.execute.tests import Cell, Cells, Mask
from condgraph.engine.facts import Entity
from condgraph.engine.values import (
    DAY_SECONDS,
    NO_UNIT,
    OPEN_START,
    UNKNOWN_END,
    UNKNOWN_START,
    Kind,
    Precision,
    Quantity,
    Time,
    Value,
    text_of,
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

    def few(self) -> list[Cell] | None:
        """The values one by one, where they are few, and attributes or qualifiers; None for others."""
        if len(self) > factset.FEW or not all(part.kind in ("att", "q") for part in self.parts):
            return None
        ordered = self.run.snapshot.ordered
        return [Cell(ordered(part.kind), number) for part in self.parts for number in part.ids.tolist()]

    # -- as columns -------------------------------------------------------------------------------------------------------

    def cells(self) -> Cells:
        """All values as cells. Texts that the graph does not have get numbers below -1, the same for the same text."""
        parts = [self.part_cells(part) for part in self.parts]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Cells(0, lambda name: np.empty(0, np.int64))
        return Cells(len(self), lambda name: np.concatenate([part[name] for part in parts]))

    def part_cells(self, part: Part) -> Cells:
        """The values of one part as cells."""
        snapshot, n = self.run.snapshot, len(part.ids)
        get = snapshot.arrays.get
        if part.kind in ("att", "q"):
            return Cells(n, lambda name: get(f"{part.kind}.{name}").take(part.ids))
        columns: dict[str, NDArray[Any]] = {}
        if part.kind == "ent":
            columns["kind"], columns["ref"] = np.full(n, Kind.ENTITY, np.int8), part.ids
        elif part.kind == "name":
            columns["ref"] = snapshot.entity_name.take(part.ids)
        elif part.kind == "pred":
            columns["ref"] = get("pred.text")[part.ids]
        elif part.kind == "row":
            columns["kind"] = np.full(n, Kind.QUANTITY, np.int8)
            columns["a"] = get("ent.row")[part.ids].astype(np.float64).view(np.int64)
        elif part.kind == "span":
            columns["kind"] = np.full(n, Kind.TIME, np.int8)
            columns["a"], columns["b"], columns["precision"] = (column[part.ids] for column in part.data)
        else:
            columns = {name: np.full(n, default, dtype) for name, (default, dtype) in _DEFAULTS.items()}
            self.run.encode_given([part.data[i] for i in part.ids.tolist()], columns)
        return Cells(n, lambda name: np.full(n, *_DEFAULTS[name]), columns)

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
            return snapshot.texts.take(snapshot.entity_name.take(part.ids))
        if part.kind == "pred":
            return [snapshot.predicate_name(i) for i in part.ids.tolist()]
        if part.kind == "row":
            return [Quantity(n) for n in snapshot.arrays.get("ent.row")[part.ids].tolist()]
        if part.kind == "span":
            start, end, precision = (column[part.ids].tolist() for column in part.data)
            return [Time(a, b, Precision(p)) for a, b, p in zip(start, end, precision, strict=True)]
        return [part.data[i] for i in part.ids.tolist()]

    def values_and_texts(self) -> tuple[list[Any], list[str]]:
        """Every value, and how a user sees it: raw text of table cells as it stood, names of entities."""
        snapshot = self.run.snapshot
        raws = snapshot.arrays.get("att.raw")
        values: list[Any] = []
        texts: list[str] = []
        for part in self.parts:
            found = self._part_values(part)
            values.extend(found)
            if part.kind == "ent":
                texts.extend(entity.name for entity in found)
                continue
            shown = [value if type(value) is str else _shown(value) for value in found]
            if part.kind == "att" and len(raws):
                shown = [snapshot.texts[r] if r >= 0 else text for r, text in zip(raws[part.ids].tolist(), shown, strict=True)]
            texts.extend(shown)
        return values, texts

    def texts(self) -> list[str]:
        """The texts alone."""
        return self.values_and_texts()[1]


def _shown(value: Any) -> str:
    # A qualifier's value may be an entity.
    return value.name if isinstance(value, Entity) else text_of(value)


#: Parts of cells that a kind of value does not fill.
_DEFAULTS: Final[dict[str, tuple[int, Any]]] = {
    "kind": (Kind.TEXT, np.int8),
    "a": (0, np.int64),
    "b": (0, np.int64),
    "ref": (-1, np.int32),
    "unit": (-1, np.int32),
    "precision": (0, np.int8),
}


def _decode(run: Run, family: str, ids: NDArray[Any]) -> list[Any]:
    """Cells of attributes or qualifiers as values, the common types without a detour."""
    snapshot = run.snapshot
    get, texts = snapshot.arrays.get, snapshot.texts
    if len(ids) == 1:
        return [_one(run, family, int(ids[0]))]
    kinds = get(f"{family}.kind").take(ids)
    if len(ids) and not kinds.any():
        return list(texts.take(get(f"{family}.ref").take(ids)))
    refs, b = get(f"{family}.ref").take(ids).tolist(), get(f"{family}.b").take(ids).tolist()
    bits = get(f"{family}.a").take(ids)
    floats, a = bits.view(np.float64).tolist(), bits.tolist()
    units, precisions = get(f"{family}.unit").take(ids).tolist(), get(f"{family}.precision").take(ids).tolist()
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
            found.append(Time(a[i], b[i], _PRECISIONS[precisions[i]]))
        elif kind == 0:
            found.append(texts[refs[i]])
        else:
            found.append(_resolved(run, snapshot.value(family, int(ids[i]))))
    return found


_PRECISIONS: Final = tuple(Precision)


def _one(run: Run, family: str, number: int) -> Any:
    """One cell as a value: the common types from plain Python numbers."""
    snapshot, texts = run.snapshot, run.snapshot.texts
    cells = snapshot.ordered(family)
    kind, ref = cells.kind[number], cells.ref[number]
    if kind == 0:
        return texts[ref]
    if kind == 1 and ref < 0:
        unit, x = cells.unit[number], float(cells.x[number])
        return Quantity(int(x) if x.is_integer() else x, texts[unit] if unit >= 0 else NO_UNIT)
    if kind == 2:
        return Time(cells.a[number], cells.b[number], _PRECISIONS[cells.precision[number]])
    return _resolved(run, snapshot.value(family, number))


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


_IDENTITY: Final = ("ref", "a", "kind", "b", "unit", "precision")


def distinct_positions(cells: Cells, *, ordered: bool = False) -> NDArray[np.int64]:
    """The first position of each distinct value, ascending; `ordered` says that equal values stand together already."""
    n = len(cells)
    if n < 2:
        return np.arange(n)
    varying = [mark for mark in (cells[name] for name in _IDENTITY) if (mark != mark[0]).any()]
    if not varying:
        return np.zeros(1, np.int64)
    order = None if ordered else np.lexsort(varying)
    fresh = np.zeros(n, bool)
    fresh[0] = True
    for mark in varying:
        sorted_mark = mark if order is None else mark[order]
        fresh[1:] |= sorted_mark[1:] != sorted_mark[:-1]
    if order is None:
        return np.flatnonzero(fresh)
    # lexsort is stable, so the first of a run of equals is the first position.
    return np.sort(order[fresh])


def equal_cells(run: Run, cells: Cells, other: Bag) -> Mask:
    """For each cell, whether it is one of the values of a bag; an entity and a text meet by name."""
    left, right = by_name(run, cells), by_name(run, other.cells())
    rows = [np.stack([side[name].astype(np.int64) for name in _IDENTITY[:5]], axis=1) for side in (left, right)]
    if not len(rows[0]) or not len(rows[1]):
        return np.zeros(len(rows[0]), bool)
    _, inverse = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    found: Mask = np.isin(inverse[: len(rows[0])], inverse[len(rows[0]) :])
    return found


def by_name(run: Run, cells: Cells) -> Cells:
    """Entities turned into the texts of their names."""
    entity = cells["kind"] == Kind.ENTITY
    if not entity.any():
        return cells
    refs = cells["ref"].copy()
    refs[entity] = run.snapshot.entity_name[refs[entity]]
    return Cells(len(cells), cells.__getitem__, {"kind": np.where(entity, np.int8(Kind.TEXT), cells["kind"]), "ref": refs})


def span_part(statements: Numbers, start: NDArray[Any], end: NDArray[Any]) -> Part:
    """Validity as intervals; those with a side that is not known are no value."""
    known = (start != UNKNOWN_START) & (end != UNKNOWN_END)
    start, end, statements = start[known], end[known], statements[known]
    return Part("span", np.arange(len(start)), statements, (start, end, span_precision(start, end)))


def span_precision(start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.int8]:
    """The precision of intervals, int8: that of a year, a month or a day where one is exactly that, else `Precision.SPAN`."""
    found = np.full(len(start), Precision.SPAN, np.int8)
    # Open sides would overflow, and longer intervals are none of these.
    short = np.flatnonzero((start > OPEN_START) & (end < UNKNOWN_END))
    short = short[(end[short] - start[short] <= 366 * DAY_SECONDS) & (start[short] % DAY_SECONDS == 0)]
    days = (end[short] - start[short]) // DAY_SECONDS
    whole = (end[short] % DAY_SECONDS == 0) & ((days == 1) | (days >= 28))
    short, days = short[whole], days[whole]
    if not len(short):
        return found
    found[short[days == 1]] = Precision.DAY
    first = (start[short] // DAY_SECONDS).astype("M8[D]")
    for unit, precision in (("M8[M]", Precision.MONTH), ("M8[Y]", Precision.YEAR)):
        begins = first.astype(unit)
        length = ((begins + 1).astype("M8[D]") - begins.astype("M8[D]")).astype(np.int64)
        found[short[(begins.astype("M8[D]") == first) & (length == days)]] = precision
    return found
