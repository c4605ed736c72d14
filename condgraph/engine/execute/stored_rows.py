"""Run the upper part of a plan on rows that a store returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from condgraph.engine.algebra import Node, Solutions
from condgraph.engine.bounds import watched
from condgraph.engine.execute.rowset import ATTRIBUTE, ENTITY, RowSet, Terms, column_of
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import Item, Ref, Source, Statement
from condgraph.engine.row_shapes import Name, Row
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time, Unknown

#: The subject of the statements that hold the values.
_HOLDER: Final = " "


def run_rows(plan: Node, core: Solutions, names: Sequence[str], rows: Sequence[Row], entities: Iterable[Item]) -> Run:
    """Run a plan on the rows that a store returned for one of its operators (with the needed variables), and their
    entities.
    """
    values = dict.fromkeys(term for row in watched(rows) for term in row if isinstance(term, str | Quantity | Time | Unknown))
    places = {value: str(place) for place, value in enumerate(values)}
    builder = Builder()
    builder.begin(Source(""))
    builder.add(entities)
    # As in process, values belong to statements: each has a predicate of its own, which identifies it.
    builder.add([Statement(_HOLDER, name, value) for value, name in places.items()])
    builder.finish()
    snapshot = Snapshot.of(*lay_out(builder))
    run = Run(snapshot)
    numbers = np.arange(snapshot.relations, snapshot.statements, dtype=np.int32)
    attributes = {
        snapshot.predicate_name(predicate): index for index, predicate in enumerate(snapshot.predicates(numbers).tolist())
    }
    columns = {}
    for index, name in enumerate(names):
        entity, attribute = np.full(len(rows), -1, np.int32), np.full(len(rows), -1, np.int32)
        other_terms: list[str | bool | int | None] = [None] * len(rows)
        for place, row in enumerate(watched(rows)):
            term = row[index]
            if isinstance(term, Ref):
                entity[place] = snapshot.identified(term.id)
            elif isinstance(term, Name):
                # Functions tell the types of terms exactly, and a name is a text like any other.
                other_terms[place] = str(term)
            elif isinstance(term, bool | int):
                other_terms[place] = term
            elif term is not None:
                attribute[place] = attributes[places[term]]
        columns[name] = _merged([Terms(ENTITY, entity), Terms(ATTRIBUTE, attribute), column_of(run.scope, other_terms)])
    columns |= {name: Terms.unbound(len(rows)) for name in core.variables if name not in columns}
    run.results[id(core)] = RowSet(run.scope, len(rows), {name: columns[name] for name in core.variables})
    above: list[Node] = []
    node = plan
    while node is not core:
        above.append(node)
        node = node.inputs()[0]
    if above:
        run.execute(plan, above[::-1])
    return run


def _merged(parts: Sequence[Terms]) -> Terms:
    """Merge columns that bind different rows."""
    marked = parts[0].marked()
    for part in parts[1:]:
        marked = np.where(part.bound, part.marked(), marked)
    return Terms(None, marked.astype(np.int64)).narrowed()
