"""Records of Cypher queries: as a list of one dict a row, which notebooks show as a table; and an entity of a record."""

from __future__ import annotations

from typing import Any

from condgraph.engine import html
from condgraph.engine.facts import Entity, EntityKind


class Records(list[dict[str, Any]]):
    """The rows of a query in Cypher, each a dict by column."""

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        columns = list(self[0]) if self else []
        rows = [["" if cell is None else str(cell) for cell in record.values()] for record in self[: html.MOST_ROWS]]
        return html.page(f"{len(self):,} rows", [html.table("rows", columns, rows, len(self) - len(rows))] if self else [])


def entity_of(ident: str, name: str, kind: int | None = None, row: int | None = None) -> Entity:
    """An entity of a record: its id and name, and where it is no plain one its kind and row."""
    return Entity(ident, name, EntityKind(kind or 0), row or 0)
