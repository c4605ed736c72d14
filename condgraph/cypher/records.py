"""What a query that people wrote gives: a list of one dict a row, which notebooks show as a table."""

from __future__ import annotations

from typing import Any

from condgraph.engine import html


class Records(list[dict[str, Any]]):
    """The rows of a query in Cypher, each a dict by column."""

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        columns = list(self[0]) if self else []
        rows = [["" if cell is None else str(cell) for cell in record.values()] for record in self[: html.MOST_ROWS]]
        return html.page(f"{len(self):,} rows", [html.table("rows", columns, rows, len(self) - len(rows))] if self else [])
