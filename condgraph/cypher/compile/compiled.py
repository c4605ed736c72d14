"""A compiled query: its text, its parameters, what its rows are, and the names that it looks up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from condgraph.cypher.compile.compiler import Compiler
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.layout.cells import Listed
from condgraph.cypher.layout.paths import CONDGRAPH

#: What the rows of a query are: entities, values, predicates (as relationship types), a count, how
#: many values satisfy a test, a truth value, the middle of some numbers, groups that are summed up, or
#: the statements that the plan rests on.
Shape: TypeAlias = Literal["entities", "values", "predicates", "count", "some", "exists", "median", "groups", "witness"]


@dataclass(frozen=True, slots=True)
class Columns:
    """What the lists of a query for groups hold, behind how many values were odd: a cell for each key
    (its type, "entity" for a node), then of each measure its count, sum and extreme.
    """

    keys: tuple[str, ...]
    measures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query with its parameters, and what its rows are."""

    text: str
    parameters: dict[str, Any]
    shape: Shape
    distinct: bool = False
    #: Of values: what each row lists, and the kind of all of them where it is known.
    fields: tuple[Listed, ...] = ()
    kind: str | None = None
    #: Where the query looks names up as well: the keys of these names.
    looked_up: dict[str, str] | None = None
    #: How the database is laid out that it is asked of.
    layout: Layout = CONDGRAPH
    #: Of groups: what each list has.
    columns: Columns | None = None

    def unknown(self, rows: list[dict[str, Any]]) -> list[str]:
        """The names that no entity has, as the rows of the query say; these rows are taken out."""
        if not self.looked_up:
            return []
        found = [row for row in rows if isinstance(about := next(iter(row.values())), dict) and "missing" in about]
        rows[:] = [row for row in rows if row not in found]
        return [self.looked_up[key] for row in found for key in next(iter(row.values()))["missing"]]


def look_up(compiler: Compiler, branches: list[list[str]], columns: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Add a branch that has a row only where a name is not there: a map in the first column. Gives
    the names by their keys.
    """
    keys = {compiler.layout.key(name): name for name in names}
    if keys:
        k, e = compiler.name("k"), compiler.name("e")
        others = "".join(f", null AS {column}" for column in columns[1:])
        branches.append(
            [
                f"UNWIND {compiler.parameter(list(keys))} AS {k} {compiler.layout.absent(k, e)}",
                f"WITH collect({k}) AS {k} WHERE size({k}) > 0",
                f"RETURN {{missing: {k}}} AS {columns[0]}{others}",
            ]
        )
    return keys
