"""Tables of the rows that a program gives, as a method of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condgraph.languages.table.builder import TableQuery


class TableMethods:
    """What graphs get from here."""

    def table(self, program: Any = "FindAll()") -> TableQuery:
        """Group, sum up, order and cut the rows that a program gives, as one query with it:
        `graph.table("FindAll() FilterConcept(order)").group("country").show("count()").ask()`.
        """
        from condgraph.languages.table.builder import TableQuery
        from condgraph.languages.table.tree import Clause

        return TableQuery(program, Clause(), self.query, self.explain)  # type: ignore[attr-defined]
