"""How table rows without a key are shown.

Such a row is called "peaks row 3", which says little to who reads an answer. Its text in an answer is
therefore its cell of the column that tells most (`engine.row_labels`); ids, names, values and the order
of answers stay as they are. Rows of one answer that would read the same are told apart by their names:
"Monte Rosa (peaks row 3)". The column is found when a graph is written, from the graph itself, and is
kept with its schema, so that it is the same on every store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine.algebra import ById, Group, Objects, Scan
from condgraph.engine.algebra.grouped import Measure, ValuePath
from condgraph.engine.bounds import watched
from condgraph.engine.execute.grid import LISTED, fixed_order, listed
from condgraph.engine.execute.series import Cell
from condgraph.engine.facts import Entity, EntityKind, shown
from condgraph.engine.schema import BETWEEN

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

#: The texts of some rows, by their names: asked of a source and its column.
Labels = Callable[[str, str, Sequence[str]], Mapping[str, str]]


def rows_named(names: Iterable[str], telling: Mapping[str, str]) -> dict[str, list[str]]:
    """Those of some names that rows without keys may have, by their sources."""
    found: dict[str, list[str]] = {}
    for name in names:
        source, between, number = name.rpartition(BETWEEN)
        if between and source in telling and number.isdecimal():
            found.setdefault(source, []).append(name)
    return found


def id_of(name: str) -> str:
    """The id of a row from its name."""
    return "/".join(name.rsplit(BETWEEN, 1))


def row_texts(names: Sequence[str], telling: Mapping[str, str], labels: Labels) -> dict[str, str]:
    """What those names of an answer that are rows without keys are shown as."""
    found: dict[str, str] = {}
    for source, some in rows_named(dict.fromkeys(names), telling).items():
        found.update(labels(source, telling[source], some))
    often = Counter(found.values())
    return {name: text if often[text] == 1 else f"{text} ({name})" for name, text in found.items()}


def labels_here(snapshot: Snapshot, column: str, names: Sequence[str]) -> dict[str, str]:
    """The texts of rows of a snapshot, by their names."""
    numbers = {number: name for name in names if (number := snapshot.identified(id_of(name))) >= 0}
    predicate, get = snapshot.predicate(column), snapshot.arrays.get
    if not numbers or predicate < 0:
        return {}
    low, high = get("att.offsets")[predicate : predicate + 2].tolist()
    subjects = get("att.s")[low:high]
    there = np.flatnonzero(np.isin(subjects, np.fromiter(numbers, np.int64, len(numbers))))
    cells: dict[str, list[Cell]] = {}
    raws = get("att.raw")
    for at in watched(there.tolist()):
        number = int(subjects[at])
        if _is_row(snapshot.entity(number), numbers[number]):
            value = snapshot.value("att", low + at)
            raw = int(raws[low + at]) if len(raws) else -1
            text = value if isinstance(value, str) else snapshot.texts[raw] if raw >= 0 else shown(value)
            cells.setdefault(numbers[number], []).append(Cell(value, text))
    return {name: of_row.text for name, some in cells.items() if (of_row := listed(sorted(some, key=fixed_order))) is not None}


def labels_plan(column: str, names: Sequence[str]) -> Group:
    """A table of rows with their texts, for a store to be asked."""
    of = ById(tuple(map(id_of, names)))
    facts = Scan(of, (column,), "subject", "subject", "attribute")
    shown_as = Measure("text", "values", ValuePath("text", (0,), 0))
    return Group(of, (facts,), (Objects(facts),), (), (Measure("row", "values", ValuePath("row")), shown_as), each=True)


def labels_of_table(table: Sequence[tuple[Any, ...]], texts: Sequence[Sequence[str]], names: Sequence[str]) -> dict[str, str]:
    """The texts of rows, by their names, from what `labels_plan` gave."""
    wanted = frozenset(names)
    return {
        row.name: said[1]
        for (row, value), said in zip(table, texts, strict=True)
        if value is not None and isinstance(row, Entity) and row.name in wanted and _is_row(row, row.name)
    }


def names_in(values: Iterable[Any]) -> list[str]:
    """The names of the rows among some values, those that cells list one by one."""
    found: list[str] = []
    for value in values:
        if isinstance(value, tuple):
            found += names_in(value)
        elif isinstance(value, Entity) and value.kind is EntityKind.ROW:
            found.append(value.name)
    return found


def cell_text(value: Any, text: str, found: Mapping[str, str]) -> str:
    """The text of a cell of a table, or of a value, with what rows are shown as."""
    if isinstance(value, Entity):
        return found.get(value.name, text) if value.kind is EntityKind.ROW else text
    if isinstance(value, tuple) and value and all(isinstance(one, Entity) for one in value):
        return LISTED.join([cell_text(one, one.name, found) for one in value])
    return text


def _is_row(entity: Entity, name: str) -> bool:
    return entity.kind is EntityKind.ROW and entity.name == name
