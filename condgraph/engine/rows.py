"""Answers as records and as tables of pandas, polars and pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.algebra import Group, Having, Limit, Node, Order, Solutions
from condgraph.engine.bounds import pieces, timed, watched, within
from condgraph.engine.errors import CondgraphError, MissingExtraError, pyarrow_or_error, shortened
from condgraph.engine.execute.grid import BETWEEN, Column
from condgraph.engine.facts import Entity, shown
from condgraph.engine.lowered import Substitution
from condgraph.engine.row_texts import cell_text, names_in
from condgraph.engine.values import NO_UNIT, Quantity, format_number

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

__all__ = ["BETWEEN", "columns_of", "entities_of", "flat", "plain_number", "records"]


# -- tables of other libraries ---------------------------------------------------------------------
# Answers as tables of other libraries, all made from the same typed columns.


#: Columns by name: their values, None (or masked) where there is none, and their type as Arrow calls it, "list" for lists
#: of texts.
Typed = dict[str, tuple[Any, str]]
#: Whole numbers up to it are floats with all their digits.
_WHOLE: Final = 2**53
#: Seconds that the warnings of an answer on a server may take where only its `repr` shows them.
_REPR_SECONDS: Final = 5.0
#: Warnings in a `repr`, and characters of each.
_REPR_WARNINGS: Final = 3
_REPR_CHARACTERS: Final = 300


class Tabular:
    """What can be had as a table, and is shown with its warnings."""

    __slots__ = ()
    #: Seconds that each call may take.
    _timeout: float | None = None

    def _printed(self, texts: Iterable[str]) -> str:
        """Lines of text, and the warnings below them, a line each."""
        warnings: Sequence[str] = self.warnings  # type: ignore[attr-defined]
        marked = (f"{'doubtful' if isinstance(warning, Substitution) else 'warning'}: {warning}" for warning in warnings)
        return "\n".join([*texts, *marked])

    def _brief(self, text: str) -> str:
        """A `repr`: a short text and the first warnings. It raises nothing: a debugger shows it, of an
        answer whose server may be gone.
        """
        try:
            with within(_REPR_SECONDS):
                warnings: Sequence[str] = self.warnings  # type: ignore[attr-defined]
        except CondgraphError as error:
            return f"<{text}; its warnings could not be read: {type(error).__name__}>"
        shown = [f"; warning: {shortened(warning, _REPR_CHARACTERS)}" for warning in warnings[:_REPR_WARNINGS]]
        more = len(warnings) - len(shown)
        return f"<{text}{''.join(shown)}{f'; {more} more warnings' if more > 1 else '; 1 more warning' if more else ''}>"

    def _typed(self) -> Typed:
        """The columns that the tables of other libraries have."""
        raise NotImplementedError

    @timed
    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow Table. Every column is nullable."""
        arrow = pyarrow_or_error()
        columns = {}
        for name, (values, kind) in self._typed().items():
            typed = arrow.list_(arrow.string()) if kind == "list" else arrow.type_for_alias(kind)
            columns[name] = arrow.chunked_array([arrow.array(some, typed) for some in pieces(values)], typed)
        return arrow.table(columns)

    @timed
    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas DataFrame, of the types that pandas gives a table of Arrow."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        columns = self._typed()
        gaps = {
            name: any(value is None for value in values) for name, (values, kind) in columns.items() if kind in ("int64", "bool")
        }
        # Integers next to nulls would become floats, which do not have the digits of long ones.
        long = any(abs(value or 0) > _WHOLE for name, gap in gaps.items() if gap for value in columns[name][0])
        text = object if int(pandas.__version__.partition(".")[0]) < 3 else "str"
        kinds = {"int64": object if long else "float64", "double": "float64", "bool": object, "list": object, "string": text}
        series = {}
        for name, (values, kind) in columns.items():
            plain = {"int64": "int64", "bool": "bool"}.get(kind) if not gaps.get(name) else None
            if kind == "list":
                values = [None if value is None else np.array(value, dtype=object) for value in values]
            elif isinstance(values, np.ma.MaskedArray):
                values = values.filled(np.nan)
            series[name] = pandas.Series(values, dtype=plain or kinds[kind])
        return pandas.DataFrame(series)

    @timed
    def to_polars(self) -> polars.DataFrame:
        """The same as a polars DataFrame."""
        try:
            import polars
        except ImportError:
            raise MissingExtraError("polars", "polars") from None
        kinds = {"int64": polars.Int64, "double": polars.Float64, "bool": polars.Boolean, "string": polars.String}
        series = []
        for name, (values, kind) in self._typed().items():
            masked = isinstance(values, np.ma.MaskedArray)
            column = polars.Series(name, values.data if masked else values, kinds.get(kind, polars.List(polars.String)))
            series.append(column.scatter(np.flatnonzero(values.mask), None) if masked else column)
        return polars.DataFrame(series)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The same as a relation of DuckDB, in a connection (the default one of the module), to be
        joined with what else is there: `answer.to_duckdb().filter("number > 8000")`.
        """
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "duckdb") from None
        return duckdb.from_arrow(self.to_arrow(), connection=connection or duckdb.default_connection())


def typed_columns(records: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> Typed:
    """Records as columns in the order in which they first come, of the types that `kinds` names, else of texts; numbers as
    `plain_number` has them.

    A record that has no such field gives None. Without records it is one empty column "text".
    """
    names = list(dict.fromkeys(name for record in watched(records) for name in record)) or ["text"]
    return {name: _typed_column([record.get(name) for record in watched(records)], kinds.get(name, "string")) for name in names}


#: Integers below it have a nearest float.
_GREATEST: Final = 2**1023


def _typed_column(values: list[Any], kind: str) -> tuple[list[Any], str]:
    """The values of a column, and its type: numbers of which no float, or no integer of 64 bits, has all digits, are
    another one.
    """
    if kind not in ("double", "int64") or not any(type(value) is int for value in values):
        return values, kind
    if all(value is None or (value == int(value) and -(2**63) <= value < 2**63) for value in values):
        return [None if value is None else int(value) for value in values], "int64"
    if all(value is None or _is_float(value) for value in values):
        return [None if value is None else float(value) for value in values], "double"
    return [None if value is None else format_number(value) for value in values], "string"


# -- records ---------------------------------------------------------------------------------------


Row = tuple[Any, ...]


def columns_of(plan: Node) -> tuple[str, ...]:
    """The names of the columns that a plan shows; none where it gives no table."""
    if isinstance(plan, Solutions):
        return plan.variables
    while isinstance(plan, Having | Order | Limit):
        plan = plan.table
    if not isinstance(plan, Group):
        return ()
    names = (*(key.name for key in plan.keys), *(measure.name for measure in plan.measures))
    return names[: len(names) - plan.hidden]


def flat(values: Sequence[Any]) -> list[Any]:
    """All values of rows, those that a cell lists one by one."""
    found: list[Any] = []
    for value in values:
        found.extend(flat(value) if isinstance(value, tuple) else [value])
    return found


def entities_of(values: Sequence[Row]) -> list[Entity]:
    """The entities in the cells, each once, by name and id."""
    found = {one.id: one for row in watched(values) for one in flat(row) if isinstance(one, Entity)}
    return sorted(found.values(), key=lambda entity: (entity.name, entity.id))


def records(columns: Sequence[str], values: Sequence[Row], texts: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """One record a row. Numbers are numbers where a column has nothing else (and none that is too
    large for a float, infinite or not a number), with their unit in a column "... unit" where they have one: floats, or
    integers where all are whole and floats do not have all of their digits. Entities are names, with
    their ids in "... id"; lists are lists of texts; everything else is text, and a cell without a
    value None.
    """
    parts = _parts(columns, values, texts)
    return [{name: cells[at] for name, (cells, _) in parts.items()} for at in watched(range(len(values)))]


def typed_rows(names: Sequence[str], columns: Sequence[Column], shown_as: Callable[[Sequence[str]], Mapping[str, str]]) -> Typed:
    """The same as typed columns: integers are int64, or texts where they are longer, other numbers double. `shown_as`
    gives the texts of rows that have no key, by their names.
    """
    kinds = {"float": "double", "int": "int64", "list": "list", "text": "string"}
    numbers = [column.numbers() for column in columns]
    cells = [[] if known else column.cells() for column, known in zip(columns, numbers, strict=True)]
    texts = shown_as(names_in(cell.value for some in cells for cell in watched(some) if cell is not None))
    found: Typed = {}
    for name, column, known, some in zip(names, columns, numbers, cells, strict=True):
        if known is None:
            values = [None if cell is None else cell.value for cell in watched(some)]
            said = ["" if cell is None else cell_text(*cell, texts) for cell in watched(some)]
            for part, (of, kind) in _part(name, names, values, said).items():
                found[part] = _typed_column(of, "int64") if kind == "int" else (of, kinds[kind])
            continue
        found[name] = np.ma.masked_array(known[0], np.asarray(~column.there)), "double"
        if known[1] != NO_UNIT:
            found[_free(f"{name} unit", names)] = [known[1] if one else None for one in column.there.tolist()], "string"
    return found


def _parts(columns: Sequence[str], values: Sequence[Row], texts: Sequence[Sequence[str]]) -> dict[str, tuple[list[Any], str]]:
    """The columns with their cells and the type of these."""
    found: dict[str, tuple[list[Any], str]] = {}
    for at, name in enumerate(columns):
        found |= _part(name, columns, [row[at] for row in watched(values)], [row[at] for row in watched(texts)])
    return found


def _part(name: str, columns: Sequence[str], cells: list[Any], texts: list[str]) -> dict[str, tuple[list[Any], str]]:
    """A column with its cells and their type, and what goes with it: units or ids."""
    known = [cell for cell in cells if cell is not None]
    if (
        known
        and all(isinstance(cell, tuple) for cell in known if not isinstance(cell, Entity))
        and any(isinstance(cell, tuple) for cell in known)
    ):
        return {name: ([None if cell is None else [shown(one) for one in flat((cell,))] for cell in cells], "list")}
    if known and all(isinstance(cell, int) and not isinstance(cell, bool) for cell in known):
        return {name: (cells, "int")}
    if known and all(map(_is_float, known)):
        return {name: ([None if cell is None else float(cell) for cell in cells], "float")}
    numbers = [plain_number(cell.number) if isinstance(cell, Quantity) else None for cell in known]
    long = any(type(number) is int for number in numbers)
    if known and None not in numbers and not (long and any(number != int(number or 0) for number in numbers)):
        every = iter(map(int, numbers) if long else numbers)  # type: ignore[arg-type]
        plain = [None if cell is None else next(every) for cell in cells]
        found: dict[str, tuple[list[Any], str]] = {name: (plain, "int" if long else "float")}
        if any(cell.unit != NO_UNIT for cell in known):
            units = [None if cell is None or cell.unit == NO_UNIT else cell.unit for cell in cells]
            found[_free(f"{name} unit", columns)] = units, "text"
        return found
    found = {name: ([None if cell is None else text for cell, text in zip(cells, texts, strict=True)], "text")}
    if any(isinstance(cell, Entity) for cell in known):
        found[_free(f"{name} id", columns)] = [cell.id if isinstance(cell, Entity) else None for cell in cells], "text"
    return found


def _is_float(value: Any) -> bool:
    """Whether a value is a finite float, or an integer that equals one."""
    if type(value) is float:
        return isfinite(value)
    return type(value) is int and abs(value) < _GREATEST and float(value) == value


def plain_number(number: int | float | Decimal) -> int | float | None:
    """A number as JSON has it: the nearest float, or a whole number itself where no float is it; None where it is too large
    for a float.
    """
    try:
        nearest = float(number)
    except OverflowError:
        return None
    if not isfinite(nearest):
        return None
    return nearest if type(number) is float or number != int(number) or number == int(nearest) else int(number)


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
