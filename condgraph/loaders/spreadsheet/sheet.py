"""One sheet of a workbook as rows of texts: where its header is, what merged cells stand for, and
what is left out.

The header is the first row that is not blank; rows above the first row with two cells, where the
sheet has several columns, are a title, and left out with a warning. A header cell that is merged
over several columns heads each of them ("2020 sales", "2020 profit", with the row below it), and a
cell that is merged over several rows or columns of the body stands in each of them. Columns without
header and cells, and blank rows, are no columns and no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, TypeAlias

from condgraph.engine.errors import LoadError, numbered
from condgraph.engine.values import collapse
from condgraph.loaders.base import Reading
from condgraph.loaders.folder.texts import cell_text
from condgraph.loaders.table.text import Chunk, is_total

#: First and last cell of a merged range, as (row, column), from 0.
Range: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
#: Rows of a header at most.
_HEADERS: Final = 5
_ROWS: Final = 5_000
#: Cells that merged ranges may stand for.
_MOST_MERGED: Final = 2_000_000


def side_by_side(grid: Sequence[Sequence[Any]], merged: Sequence[Range]) -> tuple[list[tuple[int, int]], bool]:
    """The columns (from, to) of the tables that stand side by side in a sheet with blank columns
    between them, and whether their rows show that they are tables of their own.

    A table has two columns or more, and no gap between its rows. Where all end in the same row, and
    have other headers, a blank column may as well be a gap within one table.
    """
    width = max(map(len, grid), default=0)
    filled = [any(at < len(row) and str(row[at]).strip() for row in grid) for at in range(width)]
    parts = [[at for at, _ in group] for there, group in groupby(enumerate(filled), key=lambda one: one[1]) if there]
    spans = [(part[0], part[-1] + 1) for part in parts]
    crossed = any(left < begin <= right for (_, left), (_, right) in merged for begin, _ in spans)
    if len(spans) < 2 or crossed or any(end - begin < 2 for begin, end in spans):
        return [(0, width)], False
    rows: list[list[int]] = []
    headers: list[tuple[str, ...]] = []
    for begin, end in spans:
        texts = [[str(cell).strip() for cell in row[begin:end]] for row in grid]
        there = [at for at, row in enumerate(texts) if sum(map(bool, row)) > 1 and not any(map(is_total, row))]
        if not there or there[-1] - there[0] + 1 != len(there):
            return [(0, width)], False
        rows.append(there)
        headers.append(tuple(texts[there[0]]))
    return spans, any(one != rows[0] for one in rows) or len(set(headers)) == 1


class SheetCells:
    """A sheet, its texts in memory: `grid` are its rows, from the first row and column of the sheet.
    `part`: it is one of several tables in it, whose header has two cells at least.
    """

    def __init__(self, grid: Sequence[Sequence[Any]], merged: Sequence[Range], reading: Reading, *, part: bool = False) -> None:
        rows = [list(map(cell_text, row)) for row in grid]
        width = max(map(len, rows), default=0)
        for row in rows:
            row.extend([""] * (width - len(row)))
        first = self._begin(rows, reading, 1 if part else 2)
        last = (
            first
            + 1
            + max(
                (to[0] - at[0] for at, to in merged if at[0] == first and (to[0] > at[0])),
                default=1 if any(at[0] == to[0] == first and to[1] > at[1] for at, to in merged) else 0,
            )
        )
        last = min(last, first + _HEADERS, len(rows))
        filled = self._fill(rows, merged, last)
        if filled:
            cells = numbered(filled, "merged cell of the body stands", "merged cells of the body stand")
            reading.warn(f"{cells} in every row and column covered")
        headers = [_header([row[at] for row in rows[first:last]]) for at in range(width)]
        there = [at for at in range(last, len(rows)) if any(map(str.strip, rows[at]))]
        body = [rows[at] for at in there]
        below = next((after for before, after in pairwise(there) if after > before + 1), None)
        if below is not None:
            reading.warn(
                f"blank rows divide the sheet: what stands from its row {below + 1} on is loaded as rows of the same table; "
                "another table, or notes, belong into a sheet of their own"
            )
        kept = [at for at in range(width) if headers[at] or any(row[at].strip() for row in body)]
        self.headers = [headers[at] for at in kept]
        self.body = [[row[at] for at in kept] for row in body]

    def _begin(self, rows: Sequence[Sequence[str]], reading: Reading, narrow: int) -> int:
        """The row of the header; a table of more than `narrow` columns may have a title above it."""
        counts = [sum(bool(cell.strip()) for cell in row) for row in rows]
        first = next(at for at, count in enumerate(counts) if count)
        if counts[first] == 1 and max(counts) > narrow:
            wide = next(at for at, count in enumerate(counts) if count > 1)
            title = [cell.strip() for row in rows[first:wide] for cell in row if cell.strip()]
            reading.warn(f"what stands above the header is left out: {'; '.join(title)[:200]}")
            return wide
        return first

    def _fill(self, rows: list[list[str]], merged: Sequence[Range], header: int) -> int:
        """Write merged cells wherever they stand; how many of them are in the body."""
        done = body = 0
        for (top, left), (bottom, right) in merged:
            if top >= len(rows) or left >= len(rows[0]) or not rows[top][left].strip():
                continue
            bottom, right = min(bottom, len(rows) - 1), min(right, len(rows[0]) - 1)
            done += (bottom - top + 1) * (right - left + 1)
            if done > _MOST_MERGED:
                raise LoadError(f"merged cells stand for more than {_MOST_MERGED:,}")
            body += top >= header
            for at in range(top, bottom + 1):
                rows[at][left : right + 1] = [rows[top][left]] * (right - left + 1)
        return body

    def chunks(self, report: Reading | None, names: Sequence[str]) -> Iterator[tuple[Chunk, float]]:
        """The rows, some thousands at a time."""
        for at in range(0, len(self.body), _ROWS):
            rows = self.body[at : at + _ROWS]
            yield Chunk(range(at + 1, at + 1 + len(rows)), list(zip(*rows, strict=True))), (at + len(rows)) / len(self.body)


def _header(cells: Sequence[str]) -> str:
    """A header of several rows as one text, what is said twice once."""
    return " ".join(dict.fromkeys(text for cell in cells if (text := collapse(cell))))
