"""Tables built step by step in Python: `graph.table(program).group(...).show(...).ask()`.

Nothing runs before `ask`, so program and table are one query on every store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from condgraph.engine.errors import OptionError
from condgraph.languages.table.clause import parse, parse_part
from condgraph.languages.table.tree import Clause, Junction, OrderBy, Test, in_clause

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer


def clause_of(table: Any) -> Clause:
    """Return the clause of a text, a builder or a parsed clause.

    Raises `OptionError` for anything else, and for a builder with a program of its own.
    """
    if isinstance(table, TableParts):
        if table.program != "FindAll()":
            raise OptionError("this table has a program of its own", hint="ask it with .ask(), or begin with graph.table()")
        return table.clause
    if isinstance(table, Clause):
        return table
    if isinstance(table, str):
        with in_clause(table):
            return parse(table)
    raise OptionError(f"a table clause is a text, not {type(table).__name__}", hint='table="group by country show count()"')


@dataclass(frozen=True)
class TableParts:
    """A program and the table made of its rows.

    Every method returns a new object, so a partial table can be reused.
    """

    program: Any
    clause: Clause

    def where(self, test: str) -> Self:
        """Keep the rows that pass a test, before grouping; several calls are joined by "and"."""
        return self._with(where=_both(self.clause.where, _checked_text(test, "where")))

    def group(self, *keys: str) -> Self:
        """Group rows by equal values: `"country"`, `"customer.country, year(date)"`."""
        return self._with(keys=(*self.clause.keys, *_all(keys, "group")))

    def show(self, *columns: str) -> Self:
        """Add columns: `"count()"`, `"sum(price) as total"`; without groups also `"price"`."""
        return self._with(shown=(*self.clause.shown, *_all(columns, "show")))

    def having(self, test: str) -> Self:
        """Keep the rows of the table that pass a test; several calls are joined by "and"."""
        return self._with(having=_both(self.clause.having, _checked_text(test, "having")))

    def order(self, *columns: str) -> Self:
        """Order by columns: `"total desc"`, `"-total"`, `"country"`."""
        by: list[OrderBy] = _all(columns, "order")
        return self._with(order=(*self.clause.order, *by))

    def limit(self, number: Any, *, offset: Any = 0, ties: bool = False, per: str | Sequence[str] = ()) -> Self:
        """Keep `number` rows after the first `offset`.

        `ties` also keeps the rows equal to the last one. `per` counts the rows for each value of these
        columns separately: `order("-height").limit(2, per="country")`. Raises `OptionError` if a number is
        negative or not whole.
        """
        for count in (number, offset):
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise OptionError(f"{count!r} is not a number of rows", hint="limit(3), limit(10, offset=20)")
        columns = _all((per,) if isinstance(per, str) else tuple(per), "show")
        return self._with(limit=number, offset=offset, ties=ties, per=tuple(column.of for column in columns))

    def _with(self, **changes: Any) -> Self:
        return replace(self, clause=replace(self.clause, **changes))


@dataclass(frozen=True)
class TableQuery(TableParts):
    """A table of a graph, built step by step; `ask` runs it."""

    run: Callable[..., Answer]
    explained: Callable[..., str]

    def ask(self, **options: Any) -> Answer:
        """Run the query and return its answer, a table; options as for `Graph.query`."""
        return self.run(self.program, table=self.clause, **options)

    def explain(self, **options: Any) -> str:
        """Return the plan, or the query sent to the store, without running it."""
        return self.explained(self.program, table=self.clause, **options)


@dataclass(frozen=True)
class AsyncTableQuery(TableParts):
    """A table for asyncio: `await graph.table(...).group("country").show("count()").ask()`."""

    run: Callable[..., Awaitable[Answer]]
    explained: Callable[..., Awaitable[str]]

    async def ask(self, **options: Any) -> Answer:
        """Run the query and return its answer, a table; options as for `Graph.query`."""
        return await self.run(self.program, table=self.clause, **options)

    async def explain(self, **options: Any) -> str:
        """Return the plan, or the query sent to the store, without running it."""
        return await self.explained(self.program, table=self.clause, **options)


def _all(texts: tuple[str, ...], part: str) -> list[Any]:
    parsed: list[Any] = []
    for text in texts:
        parsed += _checked_text(text, part)
    return parsed


def _checked_text(text: Any, part: str) -> Any:
    if not isinstance(text, str):
        raise OptionError(f"a part of a table is a text, not {type(text).__name__}", hint='group("country"), show("count()")')
    with in_clause(text):
        return parse_part(text, part)


def _both(one: Test | None, other: Test) -> Test:
    return other if one is None else Junction("and", (one, other))
