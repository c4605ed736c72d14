"""Operators that give a table: rows put into groups and summed up, tested, ordered, cut.

What is counted in a group is decided here, the same for every store. A row stands in the group of
each value that it has of a key, and in that of "no value" where it has none; every way from a row
to a value counts it once. `docs/reference/tables.md` says what follows from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from condgraph.engine.algebra.expressions import By, Key, Measure, Test
from condgraph.engine.algebra.facets import ALWAYS, Facets
from condgraph.engine.algebra.needs import Needs
from condgraph.engine.algebra.sorts import Entities, Facts, Node, Table, Values


@dataclass(frozen=True, slots=True)
class Group(Table):
    """Rows (entities, or facts) put together by the values of `keys`, each group summed up by
    `measures`.

    `facts` and `values` are what the ways of keys and measures go over. `where` is asked of each row
    before. The last `hidden` measures are there for `Having` and `Order`, and are not shown. Without
    keys all rows are one group; `each` makes a group of every row. `unsure` are places in `facts` of
    columns of which it is not known whether such rows may have them: one that no row has is a warning.
    """

    needs: ClassVar[Needs] = Needs(whole=("of", "facts", "values"))
    facets: ClassVar[Facets] = Facets(carries=(), strict=(), gives="any", reads="nothing", warns=ALWAYS)
    of: Entities | Facts
    facts: tuple[Facts, ...]
    values: tuple[Values, ...]
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    where: Test | None = None
    hidden: int = 0
    each: bool = False
    unsure: tuple[int, ...] = ()

    def inputs(self) -> tuple[Node, ...]:
        return (self.of, *self.facts, *self.values)


@dataclass(frozen=True, slots=True)
class Having(Table):
    """The rows of a table whose cells satisfy a test."""

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    test: Test

    def inputs(self) -> tuple[Node, ...]:
        return (self.table,)


@dataclass(frozen=True, slots=True)
class Order(Table):
    """The rows of a table by their cells; equal ones keep their order, and what does not compete
    stands last.
    """

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    by: tuple[By, ...]

    def inputs(self) -> tuple[Node, ...]:
        return (self.table,)


@dataclass(frozen=True, slots=True)
class Limit(Table):
    """So many rows of a table, after the first `offset`; with `ties` also those that are equal to the
    last one in the order.
    """

    needs: ClassVar[Needs] = Needs(whole=("table",))
    facets: ClassVar[Facets] = Facets(carries=(), strict=("table",), gives="any", reads="nothing", warns=ALWAYS)
    table: Table
    number: int
    offset: int = 0
    ties: bool = False

    def inputs(self) -> tuple[Node, ...]:
        return (self.table,)
