"""The tables of a snapshot that questions can be made about, and their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.values import Kind, Quantity
from condgraph.questions import forms
from condgraph.questions.facts import readable
from condgraph.questions.locate import is_code

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

_NUMBERS: Final = Kind.QUANTITY


class Column(NamedTuple):
    """A column of a table: its predicate, and the types of its values."""

    number: int
    name: str
    kinds: frozenset[Kind]
    #: Whether its numbers are no codes, and not only 0 and 1.
    measures: bool


@dataclass(frozen=True)
class Table:
    """A source with rows: their numbers, and its columns."""

    source: str
    rows: NDArray[np.int32]
    columns: tuple[Column, ...]

    @property
    def numeric(self) -> list[Column]:
        """The columns of numbers that measure something."""
        return [one for one in self.columns if one.kinds == {_NUMBERS} and one.measures]

    @property
    def texts(self) -> list[Column]:
        """The columns of texts alone."""
        return [one for one in self.columns if one.kinds == {Kind.TEXT} and not is_code(one.name, "")]


def tables_of(snapshot: Snapshot) -> list[Table]:
    """The tables of a snapshot."""
    owners = snapshot.arrays.get("ent.source")
    found = []
    for number in np.unique(owners[owners >= 0]).tolist() if len(owners) else []:
        rows = np.flatnonzero(owners == number).astype(np.int32)
        name = snapshot.schema.sources[number]
        some = rows[:: max(1, len(rows) // 500)]
        statements = np.unique(snapshot.touching(some))
        attributes = statements[statements >= snapshot.relations]
        columns = []
        for predicate in np.unique(snapshot.predicates(attributes)).tolist():
            label = snapshot.predicate_name(predicate)
            kinds = frozenset(kind for kind, _ in snapshot.schema.attribute_kinds(label))
            if len(snapshot.schema.attribute_kinds(label)) <= 2 and label != "row_number" and readable(label):
                columns.append(Column(predicate, label, kinds, _measures(snapshot, predicate, label)))
        if len(rows) >= 3 and len(columns) >= 2 and readable(name) and "'" not in name:
            found.append(Table(name, rows, tuple(columns)))
    return found


def _measures(snapshot: Snapshot, predicate: int, name: str) -> bool:
    low, high = snapshot.attribute_offsets[predicate], snapshot.attribute_offsets[predicate + 1]
    ends = [snapshot.value("att", low), snapshot.value("att", high - 1)]
    truth = all(isinstance(one, Quantity) and one.number in (0, 1) for one in ends)
    # "reports to", "ship via": numbers of other rows.
    refers = forms.words_of(name).rpartition(" ")[2] in ("to", "via", "by", "from")
    return not is_code(name, Quantity(0)) and not truth and not refers
