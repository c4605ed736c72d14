"""Values as the lists of properties that rows of a load have (`rows`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout.schema import CAPTION, index_key, inner_ranks, text_order, tie_break, time_text
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.values import NO_UNIT, UNKNOWN, Kind, Quantity, parse_number

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The properties of a value, in the order in which rows have them.
CELL: Final = ("kind", "text", "key", "number", "exact", "unit", "start", "end", "precision", "order", "ranks")
_NOTHING: Final = (None,) * len(CELL)
_WORDS: Final = tuple(kind.name.lower() for kind in Kind)


def cells(snapshot: Snapshot, family: str, numbers: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """The properties of each cell, as `CELL` names them."""
    get, texts = snapshot.arrays.get, snapshot.texts
    columns = {part: get(f"{family}.{part}")[numbers] for part, _ in PARTS}
    floats = columns["a"].view(np.float64).tolist()
    units: dict[int, str] = {-1: NO_UNIT}
    for x, kind, a, b, ref, unit, precision in zip(floats, *(columns[part].tolist() for part, _ in PARTS), strict=True):
        word = _WORDS[kind]
        if kind == Kind.TEXT:
            text = texts[ref]
            yield word, text, index_key(text), None, None, None, None, None, None, order_of(text), inner_ranks(text)
        elif kind == Kind.QUANTITY:
            named = units.get(unit)
            if named is None:
                named = units[unit] = texts[unit]
            number = x if ref < 0 else parse_number(texts[ref])
            order = None if ref < 0 else tie_break(number)
            exact = str(number) if order not in (None, "1") else None
            yield word, str(Quantity(number, named)), None, x, exact, named, None, None, None, exact and order, None
        elif kind == Kind.TIME:
            yield word, time_text(a, b, precision), None, None, None, None, a, b, precision, None, None
        elif kind == Kind.ENTITY:
            name = snapshot.name(ref)
            yield word, name, index_key(name), *_NOTHING[3:]
        else:
            yield word, str(UNKNOWN), *_NOTHING[2:]


def order_of(text: str) -> str | None:
    """What a text is ordered by, where that is not the text itself."""
    order = text_order(text)
    return None if order == text else order


def cell_properties(variable: str, first: int) -> str:
    """The properties of a value in Cypher, where a list has them from a place on."""
    return ", ".join(f"{name}: {variable}[{place}]" for place, name in enumerate(CELL, first))


def caption_of(text: str) -> str:
    """A text as Browser shows it in a node."""
    return text if len(text) <= CAPTION else text[: CAPTION - 1] + "…"
