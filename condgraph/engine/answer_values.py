"""The values of an answer: typed, in a fixed order, as texts, as entities, and as the cells of a
table.

Nothing is turned into Python values before it is asked for; the execution behind an answer is kept
until the answer goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from condgraph.engine import rows
from condgraph.engine.algebra import Entities, Facts, Names, Node, Shown, Table
from condgraph.engine.bounds import kept, within
from condgraph.engine.execute.bags import Bag, order_key
from condgraph.engine.execute.factset import FactSet
from condgraph.engine.execute.grid import Grid
from condgraph.engine.execute.run import Run
from condgraph.engine.facts import Entity
from condgraph.engine.pieces import each_once, mapped, places_in_order, watched
from condgraph.engine.row_labels import BETWEEN
from condgraph.engine.row_texts import cell_text, labels_here, names_in, row_texts
from condgraph.engine.tabular import Tabular
from condgraph.engine.values import text_of

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot


class AnswerValues(Tabular):
    """What an answer holds, as a user sees it; `Answer` has in addition how it came about."""

    #: Seconds; None where the query had no deadline.
    _timeout: float | None = None

    def __init__(
        self,
        run: Run,
        plan: Node,
        *,
        program: Any = "",
        language: str = "kopl",
        steps: Sequence[tuple[str, Node]] = (),
        warnings: Sequence[str] = (),
        limit: int | None = None,
    ) -> None:
        self.run, self.plan, self.language = run, plan, language
        self._program = program
        self._steps, self._warnings, self._limit = steps, warnings, limit
        self._found: tuple[list[Any], list[str]] | None = None
        self._texts: list[str] | None = None
        #: The compiled queries of other targets; None for an answer computed in process.
        self.cypher: str | None = None
        self.sparql: str | None = None

    def keep_to(self, timeout: float | None) -> Self:
        """Itself, each later look at which has that timeout (seconds)."""
        if timeout is not None:
            self._timeout = timeout
        return self

    #: What was given for the parameters of a prepared program, by name.
    parameters: Mapping[str, Any] = MappingProxyType({})

    def asked_with(self, program: str, parameters: Mapping[str, Any]) -> Self:
        """Itself, as the answer to a program with parameters, which are shown as they were given."""
        self._program, self.parameters = program, parameters
        return self

    @property
    def program(self) -> str:
        """The program as text; of a prepared one with its parameters, whose values are `parameters`."""
        return self._program if isinstance(self._program, str) else json.dumps(self._program, ensure_ascii=False, default=str)

    def _outcome(self) -> tuple[list[Any], list[str]]:
        """Values and their texts, in order, cut at the limit; worked out once."""
        if self._found is None:
            if self._timeout is None:
                self._found = self._work_out()
            else:
                with within(self._timeout):
                    self._found = self._work_out()
        return self._found

    def _result(self) -> tuple[Any, Snapshot]:
        """What the plan gave, and where its numbers are those of."""
        return self.run.results[id(self.plan)], self.run.snapshot

    def _work_out(self) -> tuple[list[Any], list[str]]:
        found, snapshot = self._result()
        if isinstance(found, FactSet):
            found = found.ends()
        if isinstance(found, Grid):
            values, texts = found.values_and_texts()
        elif isinstance(found, Bag):
            values, texts = found.values_and_texts()
            if len(values) > 1 and not found.in_order():
                order = places_in_order(len(values), lambda i: (order_key(values[i]), texts[i]))
                values, texts = mapped(values.__getitem__, order), mapped(texts.__getitem__, order)
        elif found is None:
            values, texts = [], []
        elif isinstance(found, (bool, int, float)):
            values, texts = [found], [text_of(found)]
        else:
            values = texts = snapshot.texts.take(snapshot.entity_name[found])
        if self._limit is not None and len(values) > self._limit:
            self._cut = len(values) - self._limit
            values, texts = values[: self._limit], texts[: self._limit]
        return values, texts

    _cut = 0

    @property
    def values(self) -> list[Any]:
        """Typed values in the fixed order; of a table a tuple for each of its rows, in their order."""
        return self._outcome()[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a table; none of other answers."""
        return rows.columns_of(self.plan)

    @kept
    def cells(self) -> list[tuple[str, ...]]:
        """The texts of each row of a table, "" where a cell has no value; none of other answers."""
        if not isinstance(self.plan, Table):
            return []
        texts, values = self._grid().cell_texts()[: self._limit], self.values
        found = self._row_texts(names_in(values))
        if not found:
            return texts
        pairs = zip(values, texts, strict=True)
        return [tuple([cell_text(*cell, found) for cell in zip(row, said, strict=True)]) for row, said in watched(pairs)]

    def _grid(self) -> Grid:
        found: Grid = self.run.results[id(self.plan)]
        return found

    @property
    def texts(self) -> list[str]:
        """The values as distinct strings, in the order of `values`. Table rows without a key are shown
        by their most telling column.
        """
        if self._texts is None:
            found = self._shown
            with within(self._timeout):
                self._texts = each_once(found)
        return self._texts

    @kept
    def plain_texts(self) -> list[str]:
        """The same, rows by their names: what they are shown by is no part of what an answer rests on."""
        return each_once(self._outcome()[1])

    @kept
    def _shown(self) -> list[str]:
        """The text of every value."""
        values, texts = self._outcome()
        if not any(BETWEEN in text for text in watched(texts)):
            return texts
        if isinstance(self.plan, Table):
            return mapped(rows.BETWEEN.join, self.cells)
        if isinstance(self.plan, Entities | Facts | Names):
            found = self._row_texts(texts)
            return [found.get(text, text) for text in watched(texts)] if found else texts
        found = self._row_texts(names_in(values))
        return [cell_text(*pair, found) for pair in watched(zip(values, texts, strict=True))] if found else texts

    def _row_texts(self, names: Sequence[str]) -> dict[str, str]:
        """What rows without keys among these names are shown as."""
        return row_texts(names, self._telling, self._labels) if names else {}

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._result()[1].schema.telling

    def _labels(self, source: str, column: str, names: Sequence[str]) -> Mapping[str, str]:
        return labels_here(self._result()[1], column, names)

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order; empty where it has none."""
        snapshot = self.run.snapshot
        found: Any = self.run.results[id(self.plan)]
        if isinstance(self.plan, Entities):
            numbers = found.tolist()
        elif isinstance(self.plan, Facts):
            numbers = found.ends().tolist()
        elif isinstance(self.plan, Names):
            numbers = self.run.entities(self.plan.entities).tolist()
        elif isinstance(self.plan, Shown):
            numbers = self.run.entities(self.plan.rows).tolist()
        elif isinstance(found, Grid):
            return rows.entities_of(self.values)
        elif isinstance(found, Bag):
            numbers = sorted({i for part in found.parts if part.kind in ("ent", "name") for i in part.ids.tolist()})
        else:
            numbers = []
        return mapped(snapshot.entity, numbers[: self._limit])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        shown = ", ".join(self.texts[:5]) + (", ..." if len(self.texts) > 5 else "")
        return f"<Answer of {len(self.values)}: {shown}>"
