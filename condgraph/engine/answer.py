"""Answers: typed values in a fixed order, texts, entities, the trace of a program, evidence and checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine import html
from condgraph.engine.algebra.grouped import Measure, ValuePath
from condgraph.engine.bounds import cached, kept, pieces, places_in_order, timed, watched, within
from condgraph.engine.describe import describe, tree
from condgraph.engine.errors import CondgraphError, PlanError, UnsupportedError, numbered, pyarrow_or_error, requiring, shortened
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute.evidence import Demand, row_asked, trace_back
from condgraph.engine.execute.grid import LISTED, SEPARATOR, Column, Grid, fixed_order, grid_size, listed
from condgraph.engine.execute.run import Run, count
from condgraph.engine.execute.series import Cell
from condgraph.engine.execute.sets import Bag, FactSet, order_key
from condgraph.engine.facts import Entity, EntityKind, shown
from condgraph.engine.lowered import Step, Substitution, owners
from condgraph.engine.records import Evidence
from condgraph.engine.schema import BEFORE_ROW
from condgraph.engine.values import FORMS, NO_UNIT, FormedText, Kind, Quantity, Time, bound_text, format_number, text_of

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

    from condgraph.engine.check import Checked, Counting
    from condgraph.engine.drawing import Drawing
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.why_not import Lookup, WhyNot


# -- answers as tables -------------------------------------------------------------------------------
# Answers as records and as tables of pandas, polars and pyarrow.


# -- rows as texts -----------------------------------------------------------------------------------
# How table rows without a key are displayed.
#
# Such a row is named "peaks row 3", which tells a reader little. Its text in an answer is therefore its
# cell of the most informative column (`schema.telling_columns`); ids, names, values and the order of answers
# do not change. Rows of one answer with the same text are distinguished by their names: "Monte Rosa
# (peaks row 3)". The column is chosen when a graph is written, from the graph itself, and stored with
# its schema, so that it is the same on every store.


#: Returns the texts of rows by name, given a source, its column and the names.
Labels = Callable[[str, str, Sequence[str]], Mapping[str, str]]


def rows_named(names: Iterable[str], telling: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that rows without keys may have, by source."""
    names_by_source: dict[str, list[str]] = {}
    for name in names:
        source, between, number = name.rpartition(BEFORE_ROW)
        if between and source in telling and number.isdecimal():
            names_by_source.setdefault(source, []).append(name)
    return names_by_source


def id_of(name: str) -> str:
    """Return the id of a row, given its name."""
    return "/".join(name.rsplit(BEFORE_ROW, 1))


def row_texts(names: Sequence[str], telling: Mapping[str, str], labels: Labels) -> dict[str, str]:
    """Return the texts to display for those names that are rows without keys."""
    texts: dict[str, str] = {}
    for source, source_names in rows_named(dict.fromkeys(names), telling).items():
        texts.update(labels(source, telling[source], source_names))
    counts = Counter(texts.values())
    return {name: text if counts[text] == 1 else f"{text} ({name})" for name, text in texts.items()}


def labels_here(snapshot: Snapshot, column: str, names: Sequence[str]) -> dict[str, str]:
    """Return the texts of rows of a snapshot, by name."""
    numbers = {number: name for name in names if (number := snapshot.identified(id_of(name))) >= 0}
    predicate, get = snapshot.predicate(column), snapshot.arrays.get
    if not numbers or predicate < 0:
        return {}
    low, high = get("att.offsets")[predicate : predicate + 2].tolist()
    subjects = get("att.s")[low:high]
    positions = np.flatnonzero(np.isin(subjects, np.fromiter(numbers, np.int64, len(numbers))))
    cells: dict[str, list[Cell]] = {}
    raws = get("att.raw")
    for position in watched(positions.tolist()):
        number = int(subjects[position])
        if _is_row(snapshot.entity(number), numbers[number]):
            value = snapshot.value("att", low + position)
            raw = int(raws[low + position]) if len(raws) else -1
            text = value if isinstance(value, str) else snapshot.texts[raw] if raw >= 0 else shown(value)
            cells.setdefault(numbers[number], []).append(Cell(value, text))
    return {
        name: joined.text for name, row_cells in cells.items() if (joined := listed(sorted(row_cells, key=fixed_order))) is not None
    }


def labels_plan(column: str, names: Sequence[str]) -> alg.Group:
    """Return a plan for a table of rows with their texts, for a store to run."""
    rows = alg.ById(tuple(map(id_of, names)))
    facts = alg.Scan(rows, (column,), "subject", "subject", "attribute")
    shown_as = Measure("text", "values", ValuePath("text", (0,), 0))
    return alg.Group(rows, (facts,), (alg.Objects(facts),), (), (Measure("row", "values", ValuePath("row")), shown_as), each=True)


def labels_of_table(table: Sequence[tuple[Any, ...]], texts: Sequence[Sequence[str]], names: Sequence[str]) -> dict[str, str]:
    """Return the texts of rows by name, from the result of `labels_plan`."""
    wanted = frozenset(names)
    return {
        row.name: texts_of_row[1]
        for (row, value), texts_of_row in zip(table, texts, strict=True)
        if value is not None and isinstance(row, Entity) and row.name in wanted and _is_row(row, row.name)
    }


def names_in(values: Iterable[Any]) -> list[str]:
    """Return the names of the rows among some values, including values listed in cells."""
    names: list[str] = []
    for value in values:
        if isinstance(value, tuple):
            names += names_in(value)
        elif isinstance(value, Entity) and value.kind is EntityKind.ROW:
            names.append(value.name)
    return names


def cell_text(value: Any, text: str, found: Mapping[str, str]) -> str:
    """Return the text of a cell or a value; rows are displayed as in `found`."""
    if isinstance(value, Entity):
        return found.get(value.name, text) if value.kind is EntityKind.ROW else text
    if isinstance(value, tuple) and value and all(isinstance(entity, Entity) for entity in value):
        return LISTED.join([cell_text(entity, entity.name, found) for entity in value])
    return text


def _is_row(entity: Entity, name: str) -> bool:
    return entity.kind is EntityKind.ROW and entity.name == name


# -- answers as tables -------------------------------------------------------------------------------


# -- tables of other libraries ---------------------------------------------------------------------
# Answers as tables of other libraries, all made from the same typed columns.


#: Columns by name: their values, None (or masked) if missing, and their Arrow type, "list" for lists of texts.
Typed = dict[str, tuple[Any, str]]
#: Integers up to this are exact as floats.
_MAX_EXACT: Final = 2**53
#: The timeout in seconds for the warnings of an answer on a server in its `repr`.
_REPR_SECONDS: Final = 5.0
#: The number of warnings in a `repr`, and of characters of each.
_REPR_WARNINGS: Final = 3
_REPR_CHARACTERS: Final = 300


class Tabular:
    """A result that can be converted to tables, and is printed with its warnings."""

    __slots__ = ()
    #: The timeout in seconds of each call.
    _timeout: float | None = None

    def _printed(self, texts: Iterable[str]) -> str:
        """Return lines of text, followed by the warnings, one per line."""
        warnings: Sequence[str] = self.warnings  # type: ignore[attr-defined]
        marked = (f"{'doubtful' if isinstance(warning, Substitution) else 'warning'}: {warning}" for warning in warnings)
        return "\n".join([*texts, *marked])

    def _brief(self, text: str) -> str:
        """Return a `repr` of a short text and the first warnings. It never raises, because debuggers call it, even if
        the server of the answer is gone.
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
        """Return the columns for the tables of other libraries."""
        raise NotImplementedError

    @timed
    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow Table. Every column is nullable. Needs the extra `arrow`."""
        arrow = pyarrow_or_error()
        columns = {}
        for name, (values, kind) in self._typed().items():
            typed = arrow.list_(arrow.string()) if kind == "list" else arrow.type_for_alias(kind)
            columns[name] = arrow.chunked_array([arrow.array(some, typed) for some in pieces(values)], typed)
        return arrow.table(columns)

    @timed
    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame, with the types that pandas gives an Arrow table."""
        with requiring("pandas", "pandas"):
            import pandas
        columns = self._typed()
        gaps = {
            name: any(value is None for value in values) for name, (values, kind) in columns.items() if kind in ("int64", "bool")
        }
        # Integers in a column with nulls would become floats, which lose digits of large ones.
        long = any(abs(value or 0) > _MAX_EXACT for name, gap in gaps.items() if gap for value in columns[name][0])
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
        """Return a polars DataFrame."""
        with requiring("polars", "polars"):
            import polars
        kinds = {"int64": polars.Int64, "double": polars.Float64, "bool": polars.Boolean, "string": polars.String}
        series = []
        for name, (values, kind) in self._typed().items():
            masked = isinstance(values, np.ma.MaskedArray)
            column = polars.Series(name, values.data if masked else values, kinds.get(kind, polars.List(polars.String)))
            series.append(column.scatter(np.flatnonzero(values.mask), None) if masked else column)
        return polars.DataFrame(series)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return a DuckDB relation in a connection (default: that of the module), for joins with other tables:
        `answer.to_duckdb().filter("number > 8000")`.
        """
        with requiring("duckdb", "duckdb"):
            import duckdb
        return duckdb.from_arrow(self.to_arrow(), connection=connection or duckdb.default_connection())


def typed_columns(records: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> Typed:
    """Convert records to columns in order of first appearance. `kinds` names their types (default: text); numbers are
    as in `plain_number`. A missing field is None. Without records the result is one empty column "text".
    """
    names = list(dict.fromkeys(name for record in watched(records) for name in record)) or ["text"]
    return {name: _typed_column([record.get(name) for record in watched(records)], kinds.get(name, "string")) for name in names}


#: Integers below this have a nearest float.
_GREATEST: Final = 2**1023


def _typed_column(values: list[Any], kind: str) -> tuple[list[Any], str]:
    """Return the values of a column and its type; numbers that lose digits in that type get a wider one, or become
    texts.
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


def columns_of(plan: alg.Node) -> tuple[str, ...]:
    """Return the names of the columns that a plan shows; empty if it does not return a table."""
    if isinstance(plan, alg.Solutions):
        return plan.variables
    while isinstance(plan, alg.Having | alg.Order | alg.Limit):
        plan = plan.table
    if not isinstance(plan, alg.Group):
        return ()
    names = (*(key.name for key in plan.keys), *(measure.name for measure in plan.measures))
    return names[: len(names) - plan.hidden]


def flat(values: Sequence[Any]) -> list[Any]:
    """Return all values of rows, with values listed in cells one by one."""
    flat_values: list[Any] = []
    for value in values:
        flat_values.extend(flat(value) if isinstance(value, tuple) else [value])
    return flat_values


def entities_of(values: Sequence[Row]) -> list[Entity]:
    """Return the distinct entities in the cells, by name and id."""
    entities = {value.id: value for row in watched(values) for value in flat(row) if isinstance(value, Entity)}
    return sorted(entities.values(), key=lambda entity: (entity.name, entity.id))


def records(columns: Sequence[str], values: Sequence[Row], texts: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return one record for each row. A column of numbers only (and none too large for a float, infinite or NaN) has
    numbers, with their unit in a column "... unit" if they have one: floats, or integers if all are integers and not
    all are exact as floats. Entities are names, with their ids in "... id"; lists are lists of texts; everything else
    is text, and an empty cell None.
    """
    parts = _typed(columns, values, texts)
    return [{name: cells[row] for name, (cells, _) in parts.items()} for row in watched(range(len(values)))]


def typed_rows(names: Sequence[str], columns: Sequence[Column], shown_as: Callable[[Sequence[str]], Mapping[str, str]]) -> Typed:
    """Return the same as typed columns: integers are int64, or texts if they are larger, other numbers double.
    `shown_as` returns the texts of rows without a key, by name.
    """
    kinds = {"float": "double", "int": "int64", "list": "list", "text": "string"}
    numbers = [column.numbers() for column in columns]
    cells = [[] if column_numbers else column.cells() for column, column_numbers in zip(columns, numbers, strict=True)]
    texts = shown_as(names_in(cell.value for row_cells in cells for cell in watched(row_cells) if cell is not None))
    result: Typed = {}
    for name, column, has_numbers, column_cells in zip(names, columns, numbers, cells, strict=True):
        if has_numbers is None:
            values = [None if cell is None else cell.value for cell in watched(column_cells)]
            cell_texts = ["" if cell is None else cell_text(*cell, texts) for cell in watched(column_cells)]
            for part, (part_values, kind) in _column_of(name, names, values, cell_texts).items():
                result[part] = _typed_column(part_values, "int64") if kind == "int" else (part_values, kinds[kind])
            continue
        result[name] = np.ma.masked_array(has_numbers[0], np.asarray(~column.there)), "double"
        if has_numbers[1] != NO_UNIT:
            units = [has_numbers[1] if is_known else None for is_known in column.there.tolist()]
            result[_unused_name(f"{name} unit", names)] = units, "string"
    return result


def _typed(columns: Sequence[str], values: Sequence[Row], texts: Sequence[Sequence[str]]) -> dict[str, tuple[list[Any], str]]:
    """Return the columns with their cells and types."""
    found: dict[str, tuple[list[Any], str]] = {}
    for at, name in enumerate(columns):
        found |= _column_of(name, columns, [row[at] for row in watched(values)], [row[at] for row in watched(texts)])
    return found


def _column_of(name: str, columns: Sequence[str], cells: list[Any], texts: list[str]) -> dict[str, tuple[list[Any], str]]:
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
            found[_unused_name(f"{name} unit", columns)] = units, "text"
        return found
    found = {name: ([None if cell is None else text for cell, text in zip(cells, texts, strict=True)], "text")}
    if any(isinstance(cell, Entity) for cell in known):
        found[_unused_name(f"{name} id", columns)] = [cell.id if isinstance(cell, Entity) else None for cell in cells], "text"
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


def _unused_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


# -- answers -----------------------------------------------------------------------------------------


# -- warnings of empty aggregates ------------------------------------------------------------------
# Warnings for counts and sums of nothing: a 0 alone does not tell that there was nothing.


#: Functions that test for existence, which need no such warning.
_EXISTENCE_TESTS: Final = frozenset(("is_empty", "exists", "not", "and", "or"))


def totals(plan: alg.Node) -> Iterator[alg.Scalar]:
    """Yield the counts and sums (`Facets.total`) at the end of a plan, also within functions of them."""
    if isinstance(plan, alg.Scalar) and plan.facets.total:
        yield plan
    elif isinstance(plan, alg.Apply) and plan.function not in _EXISTENCE_TESTS:
        for argument in plan.arguments:
            yield from totals(argument)


# -- values ----------------------------------------------------------------------------------------
# The values of an answer: typed, in a fixed order, as texts, as entities, and as the cells of a
# table.
#
# Values are decoded on access; the answer keeps its execution alive.


class Answer(Tabular):
    """The answer to a program.

    `values` are typed: `str`, `Quantity`, `Time`, `int` (a count), `bool` (a verification), in a fixed order:
    entities by name, then id; numbers by unit and size, then times, then texts. `texts` are the same as distinct
    strings.

    Properties computed later (values, evidence, trace, warnings) each have the timeout of the query again.
    """

    #: In seconds; None if the query had no timeout.
    _timeout: float | None = None

    def __init__(
        self,
        run: Run,
        plan: alg.Node,
        *,
        program: Any = "",
        language: str = "kopl",
        steps: Sequence[tuple[str, alg.Node]] = (),
        warnings: Sequence[str] = (),
        limit: int | None = None,
    ) -> None:
        self.run, self.plan, self.language = run, plan, language
        self._program = program
        self._steps, self._warnings, self._limit = steps, warnings, limit
        self._computed: tuple[list[Any], list[str]] | None = None
        self._texts: list[str] | None = None

    @cached
    def cypher(self) -> str | None:
        """The query of the answer on Neo4j, with its parameters in the syntax of Neo4j Browser. In process it is the
        query for the graph once it is pushed there under its name; raises `UnsupportedError` with the reason if there
        is none. None for an answer from another kind of server.
        """
        return self._query("cypher")

    @cached
    def sparql(self) -> str | None:
        """The same for RDF stores."""
        return self._query("sparql")

    @cached
    def sql(self) -> str | None:
        """The same for SQL databases, in DuckDB's dialect. Needs the extra `sql`."""
        return self._query("sql")

    def _query(self, language: str) -> str | None:
        snapshot = self.run.snapshot
        if snapshot.translate is None:
            raise UnsupportedError(_TITLES[language], ["an answer from a part of a graph, such as what a preference leaves of it"])
        return snapshot.translate(snapshot, self.plan, language)

    def keep_to(self, timeout: float | None) -> Self:
        """Return the answer itself, with a timeout in seconds for each later property."""
        if timeout is not None:
            self._timeout = timeout
        return self

    #: The values of the parameters of a prepared program, by name.
    parameters: Mapping[str, Any] = MappingProxyType({})

    def asked_with(self, program: str, parameters: Mapping[str, Any]) -> Self:
        """Return the answer itself, as the answer to a program with parameters, displayed as they were given."""
        self._program, self.parameters = program, parameters
        return self

    @property
    def program(self) -> str:
        """The program as text; a prepared program with placeholders, whose values are `parameters`."""
        return self._program if isinstance(self._program, str) else json.dumps(self._program, ensure_ascii=False, default=str)

    def _outcome(self) -> tuple[list[Any], list[str]]:
        """Return values and their texts, in order, cut at the limit; computed once."""
        if self._computed is None:
            if self._timeout is None:
                self._computed = self._compute()
            else:
                with within(self._timeout):
                    self._computed = self._compute()
        return self._computed

    def _result(self) -> tuple[Any, Snapshot]:
        """Return the result of the plan, and the snapshot that its numbers refer to."""
        result = self.run.results[id(self.plan)]
        return result.grid(self.plan.variables) if isinstance(self.plan, alg.Solutions) else result, self.run.snapshot

    def _compute(self) -> tuple[list[Any], list[str]]:
        result, snapshot = self._result()
        if isinstance(result, FactSet):
            result = result.ends()
        if isinstance(result, Grid):
            values, texts = result.values_and_texts()
        elif isinstance(result, Bag):
            values, texts = result.values_and_texts()
            if len(values) > 1 and not result.in_order():
                order = places_in_order(len(values), lambda position: (order_key(values[position]), texts[position]))
                values, texts = list(map(values.__getitem__, watched(order))), list(map(texts.__getitem__, watched(order)))
        elif result is None:
            values, texts = [], []
        elif isinstance(result, (bool, int, float)):
            values, texts = [result], [text_of(result)]
        else:
            values = texts = snapshot.texts.take(snapshot.entity_name[result])
        if self._limit is not None and len(values) > self._limit:
            self._omitted = len(values) - self._limit
            values, texts = values[: self._limit], texts[: self._limit]
        return values, texts

    _omitted = 0

    @property
    def values(self) -> list[Any]:
        """The typed values in the fixed order; for a table one tuple for each row, in order."""
        return self._outcome()[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a table; empty for other answers."""
        return columns_of(self.plan)

    @kept
    def cells(self) -> list[tuple[str, ...]]:
        """The texts of each row of a table, "" for an empty cell; empty for other answers."""
        if not isinstance(self.plan, alg.Table | alg.Solutions):
            return []
        texts, values = self._grid().cell_texts()[: self._limit], self.values
        row_texts = self._row_texts(names_in(values))
        if not row_texts:
            return texts
        pairs = zip(values, texts, strict=True)
        return [
            tuple([cell_text(*cell, row_texts) for cell in zip(row, cell_texts, strict=True)]) for row, cell_texts in watched(pairs)
        ]

    def _grid(self) -> Grid:
        grid: Grid = self._result()[0]
        return grid

    @property
    def texts(self) -> list[str]:
        """The values as distinct strings, in the order of `values`. Table rows without a key are displayed by their
        most informative column.
        """
        if self._texts is None:
            texts = self._shown
            with within(self._timeout):
                self._texts = list(dict.fromkeys(watched(texts)))
        return self._texts

    @kept
    def plain_texts(self) -> list[str]:
        """The same, with rows by name: the column they are displayed by is not part of the evidence."""
        return list(dict.fromkeys(watched(self._outcome()[1])))

    @kept
    def _shown(self) -> list[str]:
        """The text of every value."""
        values, texts = self._outcome()
        if not any(BEFORE_ROW in text for text in watched(texts)):
            return texts
        if isinstance(self.plan, alg.Table | alg.Solutions):
            return list(map(SEPARATOR.join, watched(self.cells)))
        if isinstance(self.plan, alg.Entities | alg.Facts | alg.Names):
            row_texts = self._row_texts(texts)
            return [row_texts.get(text, text) for text in watched(texts)] if row_texts else texts
        row_texts = self._row_texts(names_in(values))
        return [cell_text(*pair, row_texts) for pair in watched(zip(values, texts, strict=True))] if row_texts else texts

    def _row_texts(self, names: Sequence[str]) -> dict[str, str]:
        """Return the texts to display for rows without keys among these names."""
        return row_texts(names, self._telling, self._labels) if names else {}

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._result()[1].schema.telling

    def _labels(self, source: str, column: str, names: Sequence[str]) -> Mapping[str, str]:
        return labels_here(self._result()[1], column, names)

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order; empty if it has none."""
        result, snapshot = self._result()
        if type(result) is list:  # of a quick answer
            numbers = result
        elif isinstance(self.plan, alg.Entities):
            numbers = result.tolist()
        elif isinstance(self.plan, alg.Facts):
            numbers = result.ends().tolist()
        elif isinstance(self.plan, alg.Names):
            numbers = self.run.entities(self.plan.entities).tolist()
        elif isinstance(self.plan, alg.Shown):
            numbers = self.run.entities(self.plan.rows).tolist()
        elif isinstance(result, Grid):
            return entities_of(self.values)
        elif isinstance(result, Bag):
            numbers = sorted({number for part in result.parts if part.kind in ("ent", "name") for number in part.ids.tolist()})
        else:
            numbers = []
        return list(map(snapshot.entity, watched(numbers[: self._limit])))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        shown = ", ".join(self.texts[:5]) + (", ..." if len(self.texts) > 5 else "")
        return self._brief(f"Answer of {len(self.values)}" + (f": {shown}" if shown else ""))

    def __str__(self) -> str:
        """The texts, or every row of a table, followed by the warnings, one per line."""
        return self._printed(self._shown if self.columns else self.texts)

    def _repr_html_(self) -> str:
        """The first values and the warnings, for notebooks."""
        rows = self.cells if self.columns else [(text,) for text in self.texts]
        shown = rows[: html.MAX_ROWS]
        tables = [html.table("answers", self.columns or ("answer",), shown, len(rows) - len(shown))] if shown else []
        return html.page(f"{type(self).__name__} of {len(self.values):,}", tables, warnings=self.warnings)

    # -- trace and evidence ------------------------------------------------------------------------

    @kept
    def trace(self) -> list[Step]:
        """The result of each step of the program, in order."""
        return [
            self._step(function, node) for function, node in watched(self._steps or [(type(self.plan).__name__, self.plan)], 16)
        ]

    def _step(self, function: str, node: alg.Node) -> Step:
        size, sample = self._size(node)
        return Step(function, describe(node), size, sample, self.run.notes.get(id(node), ""))

    def _size(self, node: alg.Node) -> tuple[int, tuple[str, ...]]:
        return self._size_in(self.run, node)

    @staticmethod
    def _size_in(run: Run, node: alg.Node, most: int = 3) -> tuple[int, tuple[str, ...]]:
        """Return the number of results of an operator in an execution, and at most `most` of them as texts."""
        snapshot = run.snapshot
        result: Any = run.outcome(node)
        if isinstance(result, FactSet):
            result = result.ends()
        if isinstance(result, Bag):
            first = [part.take(np.arange(min(most, len(part.ids)))) for part in result.parts[:1]]
            return len(result), tuple(Bag(result.scope, first).texts())
        if isinstance(node, alg.Solutions):
            return len(result), grid_size(result.take(np.arange(min(3, len(result)))).grid(node.variables))[1]
        if isinstance(result, Grid):
            return grid_size(result)
        if isinstance(result, (bool, int, float)):
            return 1, (text_of(result),)
        return len(result), tuple(snapshot.texts.take(snapshot.entity_name[result[:most]]))

    @kept
    def evidence(self) -> EvidenceList:
        """The evidence of the answer: statements with their sources, entities, and what was searched."""
        return EvidenceList(trace_back(self.run, self.plan), self.plan, self._count_results)

    def draw(self) -> Drawing:
        """Return the evidence as a picture with the answers highlighted: `draw().svg`, `draw().save("answer.svg")`;
        notebooks display it. Statements that do not fit in one picture are grouped, with their number.
        """
        from condgraph.engine.drawing import of_statements

        answers = [entity.id for entity in self.entities] or self.texts
        return of_statements(self.evidence, answers, f"evidence of {len(self.values):,} answers")

    def draw_plan(self) -> Drawing:
        """Return the plan of the program as a picture: its operators, with the number of results for those of steps,
        and the last one highlighted. Otherwise as `draw()`.
        """
        from condgraph.engine.drawing import of_plan

        sizes = {id(node): step.size for (_, node), step in zip(self._steps, self.trace, strict=False)}
        return of_plan(self.plan, sizes, f"plan of {len(self.values):,} answers")

    def evidence_of(self, row: int) -> EvidenceList:
        """Return the evidence of one row of a table, by its 0-based index: the statements of the rows of the graph
        behind it. Raises `IndexError` if there is no such row, and `PlanError` if the answer is not a table.
        """
        return self._evidence_of(self.run, row)

    @timed
    def _evidence_of(self, run: Run, row: int) -> EvidenceList:
        if not isinstance(self.plan, alg.Table | alg.Solutions):
            raise PlanError("only the rows of a table have evidence of their own", hint="evidence is that of the whole answer")
        if not 0 <= row < len(self.values):
            raise IndexError(f"there is no row {row}: the table has {len(self.values)}, from 0")
        if isinstance(self.plan, alg.Solutions):
            demand = Demand(rows=run.rows(self.plan).in_fixed_order().take(np.array([row])))
            return EvidenceList(trace_back(run, self.plan, demand=demand), self.plan, self._count_results)
        return EvidenceList(trace_back(run, self.plan, row_asked(run, self.plan, row)), self.plan, self._count_results)

    @kept
    def evidence_by_step(self) -> list[list[int]]:
        """For each step of `trace` the sorted indexes in `evidence` of the statements that it read."""
        trail, step = self.evidence.trail, owners(self._steps)
        indexes: list[set[int]] = [set() for _ in range(len(self._steps) or 1)]
        statement_count, link_count = len(trail.statements), len(trail.statements) + len(trail.memberships)
        member_index, subclass_index = (
            {link: index for index, link in enumerate(links)} for links in (trail.memberships, trail.subclasses)
        )
        for node, (statements, memberships, subclasses) in watched(trail.read.items(), 16):
            step_indexes = indexes[step.get(node, -1)]  # what a pass made of several steps is the last one's
            for numbers in statements:
                step_indexes.update(np.searchsorted(trail.statements, numbers).tolist())
            step_indexes.update(statement_count + member_index[link] for link in memberships)
            step_indexes.update(link_count + subclass_index[link] for link in subclasses)
        return [sorted(places) for places in indexes]

    def _count_results(self, nodes: Sequence[alg.Node], timeout: float | None = None) -> list[int]:
        return [len(self.run.outcome(node)) for node in nodes]  # type: ignore[arg-type]

    def recounted(self, nodes: Sequence[alg.Node], timeout: float | None = None) -> list[int]:
        """Count the statements or entities of each operator again, on the store that answered."""
        return count(self.run.snapshot, nodes, timeout)

    def ready(self, timeout: float | None = None) -> None:
        """Fetch the data of the evidence, if the graph is on a server, within a timeout in seconds."""

    def replayed(self, run: Run) -> Answer:
        """Return the same answer from another execution of its plan."""
        return Answer(
            run, self.plan, program=self._program, language=self.language, steps=self._steps, warnings=self._warnings,
            limit=self._limit,
        )  # fmt: skip

    @property
    def cut(self) -> int:
        """The number of values that a limit cut off."""
        self._outcome()
        return self._omitted

    def check(
        self,
        evidence: Sequence[Evidence] | None = None,
        *,
        full: bool = False,
        graph: Counting | None = None,
        timeout: float | None = None,
    ) -> Checked:
        """Return whether the evidence proves the answer: the plan is run again on a graph of the evidence alone.

        `evidence` is checked in place of the answer's own. `full` also counts again what was searched, on the store
        that answered; `graph` does so on another store, or on the same one later. `timeout` is in seconds.
        """
        from condgraph.engine.check import check

        return check(self, evidence, full=full, graph=graph, timeout=self._timeout if timeout is None else timeout)

    @kept
    def warnings(self) -> list[str]:
        """What a user should know: values that were ignored, cut or normalised; for an empty answer, the step that
        emptied it.
        """
        messages = [*self._warnings, *self._noticed()]
        values, _ = self._outcome()
        if self._omitted:
            messages.append(f"{numbered(self._omitted, 'more value is', 'more values are')} not shown (limit {self._limit})")
        return [shortened(warning) for warning in [*messages, *self._emptied(values), *self._contradicted()]]

    @property
    def substitutions(self) -> list[Substitution]:
        """The names in the program that were read as others (`on_unknown="nearest"`), with alternatives."""
        return [warning for warning in self._warnings if isinstance(warning, Substitution)]

    @property
    def doubtful(self) -> bool:
        """Whether a name in the program was read as another one, so that the answer may be to another question."""
        return bool(self.substitutions)

    def _contradicted(self) -> list[str]:
        """Return warnings about contradictions of the evidence, for predicates that are declared to have one value at
        a time.
        """
        declared = self.run.snapshot.about.get("settings", {}).get("single_valued")
        if not declared:
            return []
        from condgraph.engine.conflicts import notices

        return notices(self.run.snapshot, self.evidence.trail.statements, declared, empty=not self.values)

    def _emptied(self, values: list[Any]) -> list[str]:
        """Return warnings why the answer is empty, or about counts and sums of nothing in it."""
        messages = []
        if not values and not self._omitted:
            explanation = self._why_empty(self._explaining)
            messages.append("the answer is empty: " + "; ".join(explanation.lines()))
        for node in totals(self.plan):
            if self._is_of_nothing(node, values):
                why = self._searched(node.inputs()[0], self._explaining, changes=False, empty=True)
                reason = (
                    "" if why is None else f"{why.step} returned nothing, {why.operator}" if why.step else "; ".join(why.lines())
                )
                messages.append(f"what is {node.facets.total} is empty: {reason}")
        return messages

    def why_not(self, expected: Any = None, *, timeout: float | None = None) -> WhyNot:
        """Explain why the answer is empty: the first step that left nothing, and the smallest changes that give a
        result, each of them run. Or explain why it lacks an expected result: the step that lost the entity or value,
        and the statement that is missing or differs.

        `expected` is an entity, its name or id, or a value. `timeout` is in seconds; if it interrupts the search, the
        result has what is known by then, and `complete` is false. A count or sum of nothing, and a "no", are
        explained like an empty answer.
        """
        seconds = self._timeout if timeout is None else timeout
        if expected is not None:
            from condgraph.engine.why_missing import why_missing

            return why_missing(self.plan, self._steps, expected, self._lookup(), seconds)
        return self._why_empty(seconds)

    #: The explanation of the empty answer, once complete; shared by the warning and `why_not`.
    _explained: WhyNot | None = None

    def _why_empty(self, seconds: float | None) -> WhyNot:
        if self._explained is not None:
            return self._explained
        from condgraph.engine.why_not import WhyNot, operator_of

        explanation = self._searched(self.plan, seconds, changes=True, empty=self._is_known_empty())
        if explanation is None and self.values:
            explanation = WhyNot("", "", f"the answer is not empty: it has {numbered(len(self.values), 'value', 'values')}")
        elif explanation is None:
            # For example, values that cannot be read as numbers.
            step = self._steps[-1][0] if self._steps else type(self.plan).__name__
            explanation = WhyNot(step, operator_of(self.plan, self.plan, step), "it returned no value", node=self.plan)
        if explanation.complete:
            self._explained = explanation
        return explanation

    #: Seconds for explaining an empty answer in its warnings; None for those that its timeout leaves.
    _explaining: float | None = None

    def _searched(self, plan: alg.Node, seconds: float | None, *, changes: bool, empty: bool) -> WhyNot | None:
        from condgraph.engine.why_not import why_empty

        return why_empty(plan, self._steps, self._lookup(), seconds, changes=changes, empty=empty)

    def _is_known_empty(self) -> bool:
        """Return whether the answer itself tells that its input is empty."""
        plan, values = self.plan, self.values
        if isinstance(plan, alg.Entities | alg.Objects | alg.Names):
            return not values and not self._omitted
        return (isinstance(plan, alg.Count) and values == [0]) or (isinstance(plan, alg.AnySatisfies) and values == [False])

    def _lookup(self) -> Lookup:
        from condgraph.engine.why_lookup import local_lookup

        return local_lookup(self.run, lambda run, node, most: Answer(run, node, limit=most).plain_texts)

    def _is_of_nothing(self, node: alg.Scalar, values: list[Any]) -> bool:
        """Return whether a count or a sum is one of nothing."""
        if node is self.plan and isinstance(node, alg.Count):
            return values == [0]
        input_result: Any = self.run.outcome(node.inputs()[0])
        return len(input_result) == 0

    def _noticed(self) -> list[str]:
        """Return the warnings of the execution."""
        return self.run.all_warnings()

    @timed
    def explain(self) -> str:
        """Return the program, its plan with the results of each operator, and warnings, as text."""
        notes = {}
        for node in watched(self.run.order, 16):
            size, sample = self._size(node)
            kinds = ((alg.Entities, "entities"), (alg.Facts, "facts"), (alg.Table, "rows"), (alg.Solutions, "rows"))
            unit = next((word for sort, word in kinds if isinstance(node, sort)), "values")
            notes[id(node)] = f"{size} {unit}" + (f": {', '.join(sample)}" if sample else "")
        lines = [self.program, "", tree(self.plan, notes)] if self.program else [tree(self.plan, notes)]
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)

    # -- tables ------------------------------------------------------------------------------------

    @timed
    def data(self) -> list[dict[str, Any]]:
        """Return one record for each row of a table, its cells by column (`records`); else one for each value: its
        `text` and `type`, and depending on the type `id` and `name`, `number` (None if it is too large for a float,
        an integer if it is whole and not exact as a float) and `unit`, `count`, `truth`, or `precision`, `start` and
        `end` (the first moment and the first one after it, as ISO text; None for an open side).
        """
        if isinstance(self.plan, alg.Table | alg.Solutions):
            return records(self.columns, self.values, self.cells)
        entities: list[Entity | None]
        values, texts = self._outcome()[0], self._shown
        entities = list(self.entities) if isinstance(self.plan, (alg.Entities, alg.Facts, alg.Names)) else []
        entities.extend([None] * (len(values) - len(entities)))
        return [_record(*record) for record in watched(zip(values, texts, entities, strict=False))]

    def _typed(self) -> Typed:
        """Return the columns that are not empty."""
        if isinstance(self.plan, alg.Table | alg.Solutions):
            grid = self._grid()
            columns = [column.take(np.arange(len(grid))[: self._limit]) for column in grid.columns[: grid.shown]]
            return typed_rows(self.columns, columns, self._row_texts)
        return typed_columns(self.data(), _ARROW)


#: The names of the languages of servers in errors.
_TITLES: Final = {"cypher": "Cypher", "sparql": "SPARQL", "sql": "SQL"}
#: The Arrow types of the fields of `data` other than texts.
_ARROW: Final = {"number": "double", "count": "int64", "truth": "bool", "longitude": "double", "latitude": "double"}


def _record(value: Any, text: str, entity: Entity | None) -> dict[str, Any]:
    record: dict[str, Any] = {"text": text}
    entity = value if isinstance(value, Entity) else entity
    if entity is not None:
        return record | {"type": "entity", "id": entity.id, "name": entity.name}
    if isinstance(value, bool):
        return record | {"type": "truth", "truth": value}
    if isinstance(value, int):
        return record | {"type": "count", "count": value}
    if isinstance(value, Quantity):
        return record | {"type": Kind.QUANTITY.name.lower(), "number": plain_number(value.number), "unit": value.unit}
    if isinstance(value, Time):
        bounds = {"start": bound_text(value.start), "end": bound_text(value.end)}
        return record | {"type": Kind.TIME.name.lower(), "precision": value.precision.name.lower()} | bounds
    if isinstance(value, FormedText):
        return record | {"type": value.form} | FORMS[value.form].record(value)
    return record | {"type": "text" if isinstance(value, str) else "unknown"}
