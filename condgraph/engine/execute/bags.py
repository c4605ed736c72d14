"""Bags of values, read late: a bag knows which cells its values are, and turns them into Python
values only when asked.

A bag is a list of parts of one kind each. A part has `ids` (what the values are) and `carriers`
(what carries them):

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
from condgraph.engine.execute.sets import Mask, Numbers
from condgraph.engine.facts import Entity, Ref, shown
from condgraph.engine.pieces import PIECE, pieces, watched
from condgraph.engine.snapshot.build import fewer_collections
from condgraph.engine.snapshot.ordered import Cells
from condgraph.engine.values import (
    NO_UNIT,
    Kind,
    Precision,
    Quantity,
    Time,
    Value,
)

if TYPE_CHECKING:
    from condgraph.engine.execute.scope import Scoped
    from condgraph.engine.snapshot.ordered import Ordered
    from condgraph.engine.snapshot.snapshot import Snapshot

PartKind = Literal["att", "q", "ent", "name", "row", "pred", "span", "given"]
#: Values from which on they are many for the garbage collector.
_MANY: Final = 1 << 17
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

    __slots__ = ("parts", "scope")

    def __init__(self, run: Scoped, parts: list[Part]) -> None:
        self.scope = run.scope
        self.parts = [part for part in parts if len(part.ids)] if len(parts) > 1 else parts

    def __len__(self) -> int:
        return sum(len(part.ids) for part in self.parts)

    def take(self, chosen: NDArray[Any]) -> Bag:
        """The values at these positions, or where this mask is true; the order stays."""
        if len(self.parts) == 1:
            return Bag(self.scope, [self.parts[0].take(chosen)])
        mask = chosen
        if chosen.dtype != bool:
            mask = np.zeros(len(self), bool)
            mask[chosen] = True
        parts, at = [], 0
        for part in self.parts:
            parts.append(part.take(mask[at : at + len(part.ids)]))
            at += len(part.ids)
        return Bag(self.scope, parts)

    def few(self) -> tuple[Ordered, list[int]] | None:
        """The cells of a few attributes, or of a few qualifiers, and their numbers; None for
        others.
        """
        if len(self.parts) != 1:
            return None
        part = self.parts[0]
        if len(part.ids) > factset.FEW or (part.kind != "att" and part.kind != "q"):
            return None
        return self.scope.snapshot.ordered(part.kind), part.ids.tolist()

    # -- as columns --------------------------------------------------------------------------------

    def cells(self) -> Cells:
        """All values as cells. Texts that the graph does not have get numbers below -1, the same
        for the same text.
        """
        parts = [self.part_cells(part) for part in self.parts]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Cells(0, lambda name: np.empty(0, np.int64))
        return Cells(len(self), lambda name: np.concatenate([part[name] for part in parts]))

    def part_cells(self, part: Part) -> Cells:
        """The values of one part as cells."""
        snapshot, n = self.scope.snapshot, len(part.ids)
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
            self.scope.encode_given([part.data[i] for i in part.ids.tolist()], columns)
        return Cells(n, lambda name: np.full(n, *_DEFAULTS[name]), columns)

    # -- as Python values --------------------------------------------------------------------------

    def values(self) -> list[Result]:
        """All values, repeats included, in the order of the parts."""
        found: list[Result] = []
        for part in self.parts:
            found.extend(self._part_values(part))
        return found

    def _part_values(self, part: Part) -> list[Any]:
        if len(part.ids) <= PIECE:
            return self._some_values(part)
        found: list[Any] = []
        for ids in pieces(part.ids):
            found += self._some_values(Part(part.kind, ids, part.carriers, part.data))
        return found

    def _some_values(self, part: Part) -> list[Any]:
        snapshot = self.scope.snapshot
        if part.kind in ("att", "q"):
            return _decode(snapshot, part.kind, part.ids)
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
        """Every value, and how a user sees it: raw text of table cells as it stood, names of
        entities.
        """
        if len(self) > _MANY:
            # All of it is to stay: looking through it for what can go takes long, and cannot be
            # ended.
            with fewer_collections():
                return self._values_and_texts()
        return self._values_and_texts()

    def _values_and_texts(self) -> tuple[list[Any], list[str]]:
        if len(self.parts) == 1:
            return self._part_values_and_texts(self.parts[0])
        values: list[Any] = []
        texts: list[str] = []
        for part in self.parts:
            found, said = self._part_values_and_texts(part)
            values.extend(found)
            texts.extend(said)
        return values, texts

    def _part_values_and_texts(self, part: Part) -> tuple[list[Any], list[str]]:
        snapshot = self.scope.snapshot
        found = self._part_values(part)
        if part.kind == "name" or part.kind == "pred":
            return found, found
        texts = [value if type(value) is str else shown(value) for value in watched(found)]
        if part.kind == "att" and len(raws := snapshot.arrays.get("att.raw")):
            pairs = zip(raws[part.ids].tolist(), texts, strict=True)
            texts = [snapshot.texts[r] if r >= 0 else text for r, text in watched(pairs)]
        return found, texts

    def in_order(self) -> bool:
        """Whether the values certainly stand in the fixed order: names, and attributes of one
        predicate, type and unit.
        """
        if len(self.parts) != 1:
            return False
        part = self.parts[0]
        if part.kind != "att":
            return part.kind == "name"
        snapshot, ids = self.scope.snapshot, part.ids
        first, last = int(ids[0]), int(ids[-1])
        cells, base = snapshot.ordered("att"), snapshot.relations
        same = cells.kind[first] == cells.kind[last] and cells.unit[first] == cells.unit[last]
        return (
            same
            and not snapshot.inexact
            # Equal values stand in the order of how they stood in their source.
            and not (len(raws := snapshot.arrays.get("att.raw")) and (raws.take(ids) >= 0).any())
            and snapshot.predicate_of(first + base) == snapshot.predicate_of(last + base)
            and bool((ids[1:] >= ids[:-1]).all())
        )

    def texts(self) -> list[str]:
        """The texts alone."""
        return self.values_and_texts()[1]


#: Parts of cells that a kind of value does not fill.
_DEFAULTS: Final[dict[str, tuple[int, Any]]] = {
    "kind": (Kind.TEXT, np.int8),
    "a": (0, np.int64),
    "b": (0, np.int64),
    "ref": (-1, np.int32),
    "unit": (-1, np.int32),
    "precision": (0, np.int8),
}


def _decode(snapshot: Snapshot, family: str, ids: NDArray[Any]) -> list[Any]:
    """Cells of attributes or qualifiers as values, the common types without a detour."""
    get, texts = snapshot.arrays.get, snapshot.texts
    if len(ids) <= factset.FEW:
        return [_one(snapshot, family, number) for number in ids.tolist()]
    kinds = get(f"{family}.kind").take(ids)
    refs = get(f"{family}.ref").take(ids)
    if not kinds.any() and not (snapshot.formed and (get(f"{family}.unit").take(ids) >= 0).any()):
        return list(texts.take(refs))
    bits = get(f"{family}.a").take(ids)
    if (kinds == Kind.TIME).all():
        ends, precisions = get(f"{family}.b").take(ids), get(f"{family}.precision").take(ids)
        of = map(_PRECISIONS.__getitem__, precisions.tolist())
        return list(map(Time, bits.tolist(), ends.tolist(), of))
    if not (kinds == Kind.QUANTITY).all() or (refs >= 0).any():
        return [_one(snapshot, family, number) for number in ids.tolist()]
    units = {unit: texts[unit] if unit >= 0 else NO_UNIT for unit in set(get(f"{family}.unit").take(ids).tolist())}
    return [
        Quantity(int(x) if x.is_integer() else x, units[unit])
        for x, unit in zip(bits.view(np.float64).tolist(), get(f"{family}.unit").take(ids).tolist(), strict=True)
    ]


_PRECISIONS: Final = tuple(Precision)


def _one(snapshot: Snapshot, family: str, number: int) -> Any:
    """One cell as a value: the common types from plain Python numbers."""
    cells, texts = snapshot.ordered(family), snapshot.texts
    kind, ref = cells.kind[number], cells.ref[number]
    if kind == 0 and not snapshot.formed:
        return texts[ref]
    if kind == 1 and ref < 0:
        unit, x = cells.unit[number], float(cells.x[number])
        return Quantity(int(x) if x.is_integer() else x, texts[unit] if unit >= 0 else NO_UNIT)
    if kind == 2:
        return Time(cells.a[number], cells.b[number], _PRECISIONS[cells.precision[number]])
    value = snapshot.value(family, number)
    # A reference is the entity it names.
    return snapshot.entity(snapshot.identified(value.id)) if isinstance(value, Ref) else value


def order_key(value: Any) -> tuple[Any, ...]:
    """The fixed order of values: numbers by unit and size, times, then texts and entities by name
    (and id); unknown last.
    """
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
