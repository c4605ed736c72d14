"""A table clause on top of the plan of a program: names looked up in the schema, ways of paths made
scans, columns numbered.

Each part of a path becomes one scan, and paths that begin alike share theirs, so that what is
calculated with two of them belongs together. What is only tested or ordered by is a hidden column.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import grouped as ex
from condgraph.engine.algebra.operators import reached
from condgraph.engine.errors import PlanError
from condgraph.engine.lowered import Lowered
from condgraph.languages.table.columns import Columns
from condgraph.languages.table.tree import Clause, Column, Expression, mentions, named_row, title
from condgraph.names.words import OnUnknown

if TYPE_CHECKING:
    from condgraph.engine.store import KnownSchema


def lower(of: Lowered, clause: Clause, schema: KnownSchema, *, on_unknown: OnUnknown = "error") -> Lowered:
    """The plan of a program with a table made of the rows that it gives; the passes have to look at
    it again.

    Raises `UnknownNameError` with the nearest names, and `PlanError` for what makes no table.
    """
    table = TableLowering(rows_of(of.plan, clause), schema, on_unknown=on_unknown)
    plan, steps = table.plan(clause)
    return Lowered(plan, [*of.steps, *steps], [*of.warnings, *table.columns.warnings], of.notes)


def rows_of(plan: alg.Node, clause: Clause) -> alg.Entities | alg.Facts:
    """What the rows of a table are: the entities that a program gives, or its facts, where a
    qualifier of them is asked for.
    """
    while isinstance(plan, alg.Names | alg.Shown):
        plan = plan.entities if isinstance(plan, alg.Names) else plan.rows
    if mentions(clause):
        if not isinstance(plan, alg.Facts):
            raise PlanError(
                "a path that begins with @ asks for a qualifier of the facts that the program ends on, and it ends on none",
                hint="end it on a step that follows facts: Relate, FilterStr, FilterNum, FilterYear or FilterDate",
            )
        return plan
    if isinstance(plan, alg.Entities | alg.Facts):
        return reached(plan)
    given = "values" if isinstance(plan, alg.Values) else "a table" if isinstance(plan, alg.Table) else "a single result"
    raise PlanError(
        f"a table is made of entities; the program gives {given}", hint="leave out the step that reads values or counts"
    )


class TableLowering:
    """One table while it is made."""

    def __init__(self, of: alg.Entities | alg.Facts, schema: KnownSchema, *, on_unknown: OnUnknown = "error") -> None:
        self.of, self.columns = of, Columns(of, schema, on_unknown=on_unknown)
        self.keys: list[ex.Key] = []
        self.measures: list[ex.Measure] = []
        self.hidden: list[ex.Measure] = []
        #: Columns by the names that are given them.
        self.named: dict[str, int] = {}
        self.each = False

    def plan(self, clause: Clause) -> tuple[alg.Table, list[tuple[str, alg.Node]]]:
        """The operators of a clause, and the steps of the trace."""
        columns = self.columns
        for key in clause.keys:
            name = self._free(key.name or title(key.of))
            self.keys.append(ex.Key(name, columns.expression(key.of, sums=True)))
        shown = clause.shown or ((Column(named_row()),) if not clause.keys else ())
        sums = [columns.is_sum(column.of) for column in shown]
        self.each = not clause.keys and not all(sums)
        for column in shown:
            self._show(column)
        if not self.measures and clause.keys and not clause.shown:
            self.measures.append(ex.Measure(self._free("count()"), "count"))
        columns.called = {column.name: column.of for column in (*clause.keys, *shown) if column.name is not None}
        having = None if clause.having is None else columns.test(clause.having, self._place)
        columns.called = {}
        by = tuple(ex.OrderBy(self._place(one.of), one.descending) for one in clause.order)
        per = tuple(map(self._place, clause.per))
        where = None if clause.where is None else columns.test(clause.where, partial(columns.expression, sums=True))
        hidden = len(self.hidden)
        group = alg.Group(
            self.of, tuple(columns.facts), tuple(columns.values), tuple(self.keys), (*self.measures, *self.hidden), where, hidden,
            self.each, tuple(columns.unsure),
        )  # fmt: skip
        words = "group by" if clause.keys else "show"
        table: alg.Table = group
        steps: list[tuple[str, alg.Node]] = [(words, table)]
        if having is not None:
            table = alg.Having(table, having)
            steps.append(("having", table))
        if by:
            table = alg.Order(table, by)
            steps.append(("order by", table))
        if clause.limit is not None or clause.offset:
            most = 10**12 if clause.limit is None else clause.limit
            table = alg.Limit(table, most, clause.offset, clause.ties, per)
            steps.append(("limit", table))
        return table, steps

    # -- columns -----------------------------------------------------------------------------------

    def _show(self, column: Column) -> None:
        """A column that is shown: a key that is grouped by stands already, in front."""
        if self.columns.is_sum(column.of):
            measure = self.columns.measure(column.of)
        else:
            of = self.columns.expression(column.of)
            place = next((at for at, key in enumerate(self.keys) if key.of == of), None)
            if place is not None:
                if column.name is not None:
                    self.keys[place] = replace(self.keys[place], name=self._free(column.name, place))
                return
            if not self.each:
                raise PlanError(
                    f"{title(column.of)!r} is neither grouped by nor summed up, so that a group may have several",
                    span=getattr(column.of, "span", None),
                    hint=f"group by it as well, or show max({title(column.of)}) or values({title(column.of)})",
                )
            measure = ex.Measure("", "values", of)
        self.measures.append(replace(measure, name=self._free(column.name or title(column.of))))

    def _free(self, name: str, own: int | None = None) -> str:
        """The name of a new column; two of one name cannot be told apart."""
        taken = [one.name for at, one in enumerate(self.keys) if at != own] + [one.name for one in self.measures]
        if name in taken:
            raise PlanError(f"two columns are called {name!r}", hint="call one of them something else: sum(price) as total")
        return name

    def _place(self, of: Expression) -> int:
        """The place of a column that is tested or ordered by; one that is not shown is added, hidden."""
        name = title(of)
        known: list[ex.Key | ex.Measure] = [*self.keys, *self.measures, *self.hidden]
        for at, one in enumerate(known):
            if one.name == name:
                return at
        if self.columns.is_sum(of):
            measure = self.columns.measure(of)
            alike = [isinstance(one, ex.Measure) and replace(one, name="") == measure for one in known]
        else:
            measure = ex.Measure("", "values", self.columns.expression(of))
            alike = [not _sums(one) and one.of == measure.of for one in known]
        if True in alike:
            return alike.index(True)
        if measure.function == "values" and not self.each:
            listed = ", ".join([one.name for one in known[: len(known) - len(self.hidden)]])
            raise PlanError(
                f"{name!r} is no column of the table",
                span=getattr(of, "span", None),
                hint=f"its columns are: {listed}; rows are tested before they are grouped with where",
            )
        self.hidden.append(replace(measure, name=name))
        return len(known)


def _sums(one: ex.Key | ex.Measure) -> bool:
    return isinstance(one, ex.Measure) and one.function != "values"
