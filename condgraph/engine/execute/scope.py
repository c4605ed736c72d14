"""Context of the results of operators: the snapshot, masks of sets, numbers of new texts.

A `Scope` knows no results, so that nothing refers in a circle: an answer and all that it holds goes
when nobody holds the answer, without work for the garbage collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.execute.sets import Numbers, among, ascending, by_mask, distinct, mask_of
from condgraph.engine.forms import FormedText
from condgraph.engine.pieces import watched
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, as_float, format_number, text_of

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


_NOWHERE: Final = -(2**31)


class Scoped(Protocol):
    """An execution, or its scope."""

    @property
    def scope(self) -> Scope:
        """What its results refer to."""


class Scope:
    """The scope of one execution."""

    __slots__ = ("_given", "_masks", "_texts", "inexact", "snapshot", "term_numbers", "terms")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        #: Whether any number, stored or given, is none that a float can hold.
        self.inexact = bool(snapshot.inexact)
        self._masks: dict[int, tuple[Numbers, NDArray[np.bool_]]] = {}
        self._given: dict[str, int] = {}
        self._texts: list[str] = []
        #: Terms of rows that the graph does not have, each once, and their numbers (`rowset.given`).
        self.terms: list[Any] = []
        self.term_numbers: dict[Any, int] = {}

    @property
    def scope(self) -> Scope:
        """Itself: an execution and its scope are asked alike."""
        return self

    def mask(self, numbers: Numbers) -> NDArray[np.bool_]:
        """One truth value an entity; sets that were asked for before are not marked again."""
        found = self._masks.get(id(numbers))
        if found is None or found[0] is not numbers:
            kept = self.snapshot.mask_of(numbers)
            found = self._masks[id(numbers)] = numbers, mask_of(numbers, self.snapshot.entities) if kept is None else kept
        return found[1]

    def distinct(self, entities: Numbers) -> Numbers:
        """The distinct entities, sorted; where they are marked on the way, the marks are kept for
        the operator that comes next.
        """
        size = self.snapshot.entities
        if not by_mask(len(entities), size):
            return distinct(entities, size)
        if ascending(entities):
            return entities
        mask = mask_of(entities, size)
        found: Numbers = mask.nonzero()[0].astype(np.int32)
        self._masks[id(found)] = found, mask
        return found

    def among(self, entities: Numbers, of: Numbers) -> NDArray[np.bool_]:
        """For each entity (in any order), whether it is in the sorted set `of`."""
        if len(of) > 1 and len(entities) * 512 > self.snapshot.entities:
            return self.mask(of).take(entities)
        return among(entities, of, self.snapshot.entities)

    def encode_given(self, values: list[Any], columns: dict[str, NDArray[Any]]) -> None:
        """Fill columns with values written in a program; texts the graph does not have get numbers
        below -1.
        """
        for i, value in enumerate(watched(values)):
            if isinstance(value, Quantity):
                columns["kind"][i] = Kind.QUANTITY
                number, exact = as_float(value)
                # Minus zero is zero, as where it is stored.
                columns["a"][i] = np.float64(number + 0.0).view(np.int64)
                if not exact:
                    columns["ref"][i], self.inexact = self._text(format_number(value.number)), True
                if value.unit != NO_UNIT:
                    columns["unit"][i] = self._text(value.unit)
            elif isinstance(value, Time):
                columns["kind"][i] = Kind.TIME
                columns["a"][i], columns["b"][i], columns["precision"][i] = value.start, value.end, value.precision
            else:
                columns["ref"][i] = self._text(text_of(value))
                if isinstance(value, FormedText):
                    columns["unit"][i] = self._text(value.form)

    def text(self, number: int) -> str:
        """A text by its number, of the graph or given."""
        return self.snapshot.texts[number] if number >= 0 else self.given_text(number)

    def unit_number(self, unit: str) -> int:
        """How a unit stands in columns: -1 for none; one that neither the graph has nor a given
        value stands nowhere.
        """
        if unit == NO_UNIT:
            return -1
        found = self.snapshot.texts.find(unit)
        return found if found >= 0 else self._given.get(unit, _NOWHERE)

    def given_text(self, number: int) -> str:
        """A text that the graph does not have, by its number below -1."""
        return self._texts[-2 - number]

    def _text(self, text: str) -> int:
        found = self.snapshot.texts.find(text)
        if found < 0:
            found = self._given.get(text, 0)
            if not found:
                found = self._given[text] = -2 - len(self._given)
                self._texts.append(text)
        return found
