"""The result of a user's query: a table of typed Python values, one row for each solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from condgraph.engine import html
from condgraph.engine.answer import Tabular, Typed
from condgraph.engine.facts import Entity
from condgraph.engine.iris import XSD
from condgraph.engine.values import Precision, Time, text_of


class Iri(str):
    """An IRI that is not a name of the graph."""

    __slots__ = ()


class Blank(str):
    """A blank node, with the label that the store gave it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table(Tabular):
    """The solutions of a SELECT (`columns`, `rows`), the triples of a CONSTRUCT, or the answer of an ASK (`truth`)."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    #: The query as it was run.
    sparql: str = ""
    truth: bool | None = None
    warnings: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        return bool(self.rows) if self.truth is None else self.truth

    @property
    def values(self) -> list[Any]:
        """The first column; for an ASK its answer."""
        return [row[0] for row in self.rows] if self.truth is None else [self.truth]

    @property
    def texts(self) -> list[str]:
        """The first column as text: names of entities, values as printed, "yes" and "no"."""
        return [shown(value) for value in self.values]

    def data(self) -> list[dict[str, Any]]:
        """Return one record for each row; for an ASK one with "truth"."""
        if self.truth is not None:
            return [{"truth": self.truth}]
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def _typed(self) -> Typed:
        """Return typed columns for whole numbers, numbers and truth values; others as text."""
        records = self.data()
        columns: Typed = {}
        for name in ("truth",) if self.truth is not None else self.columns:
            cells = [record[name] for record in records]
            kind = _column_type({type(cell) for cell in cells if cell is not None})
            columns[name] = cells if kind != "string" else [None if cell is None else shown(cell) for cell in cells], kind
        return columns

    def _repr_html_(self) -> str:
        """Return the first rows and warnings as HTML, for notebooks."""
        if self.truth is not None:
            return html.page(shown(self.truth), warnings=self.warnings)
        rows = [["" if cell is None else shown(cell) for cell in row] for row in self.rows[: html.MAX_ROWS]]
        below = html.table("rows", self.columns, rows, len(self.rows) - len(rows))
        return html.page(f"Table of {len(self.rows):,} rows", [below], warnings=self.warnings)

    def __str__(self) -> str:
        if self.truth is not None:
            return self._printed([shown(self.truth)])
        lines = ["\t".join(self.columns)]
        lines.extend("\t".join("" if cell is None else shown(cell) for cell in row) for row in self.rows)
        return self._printed(lines if self.rows else [*lines, "no rows"])


def shown(value: Any) -> str:
    """Return a cell as text."""
    if isinstance(value, Entity):
        return value.name
    return "" if value is None else text_of(value)


def _column_type(types: set[type]) -> str:
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int64"
    return "double" if types and types <= {int, float} else "string"


_WHOLE: Final = frozenset(
    XSD + name
    for name in (
        *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
        *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_TIMES: Final = {XSD + "date": Precision.DAY, XSD + "gYear": Precision.YEAR, XSD + "gYearMonth": Precision.MONTH}


def literal(text: str, datatype: str) -> Any:
    """A literal as a typed Python value: int, float, Decimal, bool, `Time`, else its text.

    >>> literal("42", XSD + "integer"), literal("1960-02-01", XSD + "date"), literal("x", XSD + "string")
    (42, Time(start=-312940800, end=-312854400, precision=<Precision.DAY: 3>), 'x')
    """
    try:
        if datatype in _WHOLE:
            return int(text)
        if datatype in (XSD + "double", XSD + "float"):
            return float(text)
        if datatype == XSD + "decimal":
            return Decimal(text)
        if datatype == XSD + "boolean":
            return text in ("true", "1")
        if datatype in _TIMES:
            return Time.parse(text.removesuffix("Z"))
    except (ValueError, ArithmeticError):
        return text
    return text


def columns_of(names: Sequence[str]) -> tuple[str, ...]:
    """Names of variables as columns."""
    return tuple(name.removeprefix("?") for name in names)
