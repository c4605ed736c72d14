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

from condgraph.engine import html
from condgraph.engine.algebra import (
    AnySatisfies,
    Apply,
    ById,
    Count,
    Entities,
    Facts,
    Group,
    Having,
    Limit,
    Names,
    Node,
    Objects,
    Order,
    Scalar,
    Scan,
    Shown,
    Solutions,
    Table,
    postorder,
)
from condgraph.engine.algebra.grouped import Measure, ValuePath
from condgraph.engine.bounds import cached, kept, pieces, places_in_order, timed, watched, within
from condgraph.engine.describe import describe, tree
from condgraph.engine.errors import (
    CondgraphError,
    MissingExtraError,
    PlanError,
    UnsupportedError,
    numbered,
    pyarrow_or_error,
    shortened,
)
from condgraph.engine.evidence import EvidenceList
from condgraph.engine.execute.evidence import Demand, row_asked, trace_back
from condgraph.engine.execute.grid import BETWEEN, LISTED, Column, Grid, fixed_order, grid_size, listed
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
# How table rows without a key are shown.
#
# Such a row is called "peaks row 3", which says little to who reads an answer. Its text in an answer is
# therefore its cell of the column that tells most (`engine.row_labels`); ids, names, values and the order
# of answers stay as they are. Rows of one answer that would read the same are told apart by their names:
# "Monte Rosa (peaks row 3)". The column is found when a graph is written, from the graph itself, and is
# kept with its schema, so that it is the same on every store.


#: The texts of some rows, by their names: asked of a source and its column.
Labels = Callable[[str, str, Sequence[str]], Mapping[str, str]]


def rows_named(names: Iterable[str], telling: Mapping[str, str]) -> dict[str, list[str]]:
    """Those of some names that rows without keys may have, by their sources."""
    found: dict[str, list[str]] = {}
    for name in names:
        source, between, number = name.rpartition(BEFORE_ROW)
        if between and source in telling and number.isdecimal():
            found.setdefault(source, []).append(name)
    return found


def id_of(name: str) -> str:
    """The id of a row from its name."""
    return "/".join(name.rsplit(BEFORE_ROW, 1))


def row_texts(names: Sequence[str], telling: Mapping[str, str], labels: Labels) -> dict[str, str]:
    """What those names of an answer that are rows without keys are shown as."""
    found: dict[str, str] = {}
    for source, some in rows_named(dict.fromkeys(names), telling).items():
        found.update(labels(source, telling[source], some))
    often = Counter(found.values())
    return {name: text if often[text] == 1 else f"{text} ({name})" for name, text in found.items()}


def labels_here(snapshot: Snapshot, column: str, names: Sequence[str]) -> dict[str, str]:
    """The texts of rows of a snapshot, by their names."""
    numbers = {number: name for name in names if (number := snapshot.identified(id_of(name))) >= 0}
    predicate, get = snapshot.predicate(column), snapshot.arrays.get
    if not numbers or predicate < 0:
        return {}
    low, high = get("att.offsets")[predicate : predicate + 2].tolist()
    subjects = get("att.s")[low:high]
    there = np.flatnonzero(np.isin(subjects, np.fromiter(numbers, np.int64, len(numbers))))
    cells: dict[str, list[Cell]] = {}
    raws = get("att.raw")
    for at in watched(there.tolist()):
        number = int(subjects[at])
        if _is_row(snapshot.entity(number), numbers[number]):
            value = snapshot.value("att", low + at)
            raw = int(raws[low + at]) if len(raws) else -1
            text = value if isinstance(value, str) else snapshot.texts[raw] if raw >= 0 else shown(value)
            cells.setdefault(numbers[number], []).append(Cell(value, text))
    return {name: of_row.text for name, some in cells.items() if (of_row := listed(sorted(some, key=fixed_order))) is not None}


def labels_plan(column: str, names: Sequence[str]) -> Group:
    """A table of rows with their texts, for a store to be asked."""
    of = ById(tuple(map(id_of, names)))
    facts = Scan(of, (column,), "subject", "subject", "attribute")
    shown_as = Measure("text", "values", ValuePath("text", (0,), 0))
    return Group(of, (facts,), (Objects(facts),), (), (Measure("row", "values", ValuePath("row")), shown_as), each=True)


def labels_of_table(table: Sequence[tuple[Any, ...]], texts: Sequence[Sequence[str]], names: Sequence[str]) -> dict[str, str]:
    """The texts of rows, by their names, from what `labels_plan` gave."""
    wanted = frozenset(names)
    return {
        row.name: said[1]
        for (row, value), said in zip(table, texts, strict=True)
        if value is not None and isinstance(row, Entity) and row.name in wanted and _is_row(row, row.name)
    }


def names_in(values: Iterable[Any]) -> list[str]:
    """The names of the rows among some values, those that cells list one by one."""
    found: list[str] = []
    for value in values:
        if isinstance(value, tuple):
            found += names_in(value)
        elif isinstance(value, Entity) and value.kind is EntityKind.ROW:
            found.append(value.name)
    return found


def cell_text(value: Any, text: str, found: Mapping[str, str]) -> str:
    """The text of a cell of a table, or of a value, with what rows are shown as."""
    if isinstance(value, Entity):
        return found.get(value.name, text) if value.kind is EntityKind.ROW else text
    if isinstance(value, tuple) and value and all(isinstance(one, Entity) for one in value):
        return LISTED.join([cell_text(one, one.name, found) for one in value])
    return text


def _is_row(entity: Entity, name: str) -> bool:
    return entity.kind is EntityKind.ROW and entity.name == name


# -- answers as tables -------------------------------------------------------------------------------


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


# -- answers -----------------------------------------------------------------------------------------


# -- warnings of empty aggregates ------------------------------------------------------------------
# Warnings for counts and sums of nothing: the number alone does not say that there was nothing.


#: Functions that ask whether there is anything, to which nothing is no news.
_ASK_WHETHER: Final = frozenset(("is_empty", "exists", "not", "and", "or"))


def totals(plan: Node) -> Iterator[Scalar]:
    """The counts and sums (`Facets.total`) that a plan ends on, also where functions go on from
    them.
    """
    if isinstance(plan, Scalar) and plan.facets.total:
        yield plan
    elif isinstance(plan, Apply) and plan.function not in _ASK_WHETHER:
        for argument in plan.arguments:
            yield from totals(argument)


def of_nothing(
    plan: Node, is_nothing: Callable[[Scalar], bool], steps: Sequence[tuple[str, Node]], sizes: Callable[[], Iterable[int]]
) -> Iterator[str]:
    """A warning for each count and sum of nothing: the step below it that gave nothing first.
    `sizes` says how much each step gave, in order, and is read until that one.
    """
    for node in totals(plan):
        if not is_nothing(node):
            continue
        (of,) = node.inputs()
        below, first = {id(part) for part in postorder(of)}, None
        for step, size in zip(steps, sizes(), strict=False):
            if size == 0:
                first = first or step
                if id(step[1]) in below:
                    emptied: tuple[str, Node] | None = step
                    break
        else:
            emptied = first
        why = describe(of) if emptied is None else f"{emptied[0]} gave nothing, {describe(emptied[1])}"
        yield f"what is {node.facets.total} is empty: {why}"


# -- values ----------------------------------------------------------------------------------------
# The values of an answer: typed, in a fixed order, as texts, as entities, and as the cells of a
# table.
#
# Nothing is turned into Python values before it is asked for; the execution behind an answer is kept
# until the answer goes.


class Answer(Tabular):
    """The answer to one program.

    `values` are typed: `str`, `Quantity`, `Time`, `int` (a count), `bool` (a verification); the
    fixed order is that of entities (name, then id), and for values: numbers by unit and size,
    times, texts. `texts` are the same as distinct strings.

    What is looked at later (values, evidence, trace, warnings) has the timeout of the query again,
    each for itself.
    """

    #: Seconds; None where the query had no deadline.
    _timeout: float | None = None

    def __init__(
        self,
        run: Run,
        plan: Node,
        *,
        program: Any = "",
        language: str = "kopl",
        steps: Sequence[tuple[str, Node]] = (),
        warnings: Sequence[str] = (),
        limit: int | None = None,
    ) -> None:
        self.run, self.plan, self.language = run, plan, language
        self._program = program
        self._steps, self._warnings, self._limit = steps, warnings, limit
        self._found: tuple[list[Any], list[str]] | None = None
        self._texts: list[str] | None = None

    @cached
    def cypher(self) -> str | None:
        """The query of the answer on Neo4j, with its parameters as Neo4j Browser takes them. In process it is what asks the
        same once the graph is pushed there under its name, and `UnsupportedError` says why there is none. None for an
        answer of another kind of server.
        """
        return self._query("cypher")

    @cached
    def sparql(self) -> str | None:
        """The same for RDF stores."""
        return self._query("sparql")

    @cached
    def sql(self) -> str | None:
        """The same for SQL databases, as DuckDB takes it. It needs the extra `sql`."""
        return self._query("sql")

    def _query(self, language: str) -> str | None:
        snapshot = self.run.snapshot
        if snapshot.translate is None:
            raise UnsupportedError(_NAMED[language], ["an answer from a part of a graph, such as what a preference leaves of it"])
        return snapshot.translate(snapshot, self.plan, language)

    def keep_to(self, timeout: float | None) -> Self:
        """Itself, each later look at which has that timeout (seconds)."""
        if timeout is not None:
            self._timeout = timeout
        return self

    #: What was given for the parameters of a prepared program, by name.
    parameters: Mapping[str, Any] = MappingProxyType({})

    def asked_with(self, program: str, parameters: Mapping[str, Any]) -> Self:
        """Itself, as the answer to a program with parameters, which are shown as they were given."""
        self._program, self.parameters = program, parameters
        return self

    @property
    def program(self) -> str:
        """The program as text; of a prepared one with its parameters, whose values are `parameters`."""
        return self._program if isinstance(self._program, str) else json.dumps(self._program, ensure_ascii=False, default=str)

    def _outcome(self) -> tuple[list[Any], list[str]]:
        """Values and their texts, in order, cut at the limit; worked out once."""
        if self._found is None:
            if self._timeout is None:
                self._found = self._work_out()
            else:
                with within(self._timeout):
                    self._found = self._work_out()
        return self._found

    def _result(self) -> tuple[Any, Snapshot]:
        """What the plan gave, and where its numbers are those of."""
        found = self.run.results[id(self.plan)]
        return found.grid(self.plan.variables) if isinstance(self.plan, Solutions) else found, self.run.snapshot

    def _work_out(self) -> tuple[list[Any], list[str]]:
        found, snapshot = self._result()
        if isinstance(found, FactSet):
            found = found.ends()
        if isinstance(found, Grid):
            values, texts = found.values_and_texts()
        elif isinstance(found, Bag):
            values, texts = found.values_and_texts()
            if len(values) > 1 and not found.in_order():
                order = places_in_order(len(values), lambda i: (order_key(values[i]), texts[i]))
                values, texts = list(map(values.__getitem__, watched(order))), list(map(texts.__getitem__, watched(order)))
        elif found is None:
            values, texts = [], []
        elif isinstance(found, (bool, int, float)):
            values, texts = [found], [text_of(found)]
        else:
            values = texts = snapshot.texts.take(snapshot.entity_name[found])
        if self._limit is not None and len(values) > self._limit:
            self._cut = len(values) - self._limit
            values, texts = values[: self._limit], texts[: self._limit]
        return values, texts

    _cut = 0

    @property
    def values(self) -> list[Any]:
        """Typed values in the fixed order; of a table a tuple for each of its rows, in their order."""
        return self._outcome()[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a table; none of other answers."""
        return columns_of(self.plan)

    @kept
    def cells(self) -> list[tuple[str, ...]]:
        """The texts of each row of a table, "" where a cell has no value; none of other answers."""
        if not isinstance(self.plan, Table | Solutions):
            return []
        texts, values = self._grid().cell_texts()[: self._limit], self.values
        found = self._row_texts(names_in(values))
        if not found:
            return texts
        pairs = zip(values, texts, strict=True)
        return [tuple([cell_text(*cell, found) for cell in zip(row, said, strict=True)]) for row, said in watched(pairs)]

    def _grid(self) -> Grid:
        found: Grid = self._result()[0]
        return found

    @property
    def texts(self) -> list[str]:
        """The values as distinct strings, in the order of `values`. Table rows without a key are shown
        by their most telling column.
        """
        if self._texts is None:
            found = self._shown
            with within(self._timeout):
                self._texts = list(dict.fromkeys(watched(found)))
        return self._texts

    @kept
    def plain_texts(self) -> list[str]:
        """The same, rows by their names: what they are shown by is no part of what an answer rests on."""
        return list(dict.fromkeys(watched(self._outcome()[1])))

    @kept
    def _shown(self) -> list[str]:
        """The text of every value."""
        values, texts = self._outcome()
        if not any(BEFORE_ROW in text for text in watched(texts)):
            return texts
        if isinstance(self.plan, Table | Solutions):
            return list(map(BETWEEN.join, watched(self.cells)))
        if isinstance(self.plan, Entities | Facts | Names):
            found = self._row_texts(texts)
            return [found.get(text, text) for text in watched(texts)] if found else texts
        found = self._row_texts(names_in(values))
        return [cell_text(*pair, found) for pair in watched(zip(values, texts, strict=True))] if found else texts

    def _row_texts(self, names: Sequence[str]) -> dict[str, str]:
        """What rows without keys among these names are shown as."""
        return row_texts(names, self._telling, self._labels) if names else {}

    @property
    def _telling(self) -> Mapping[str, str]:
        return self._result()[1].schema.telling

    def _labels(self, source: str, column: str, names: Sequence[str]) -> Mapping[str, str]:
        return labels_here(self._result()[1], column, names)

    @kept
    def entities(self) -> list[Entity]:
        """The entities of the answer, in order; empty where it has none."""
        found, snapshot = self._result()
        if type(found) is list:  # of a quick answer
            numbers = found
        elif isinstance(self.plan, Entities):
            numbers = found.tolist()
        elif isinstance(self.plan, Facts):
            numbers = found.ends().tolist()
        elif isinstance(self.plan, Names):
            numbers = self.run.entities(self.plan.entities).tolist()
        elif isinstance(self.plan, Shown):
            numbers = self.run.entities(self.plan.rows).tolist()
        elif isinstance(found, Grid):
            return entities_of(self.values)
        elif isinstance(found, Bag):
            numbers = sorted({i for part in found.parts if part.kind in ("ent", "name") for i in part.ids.tolist()})
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
        """The texts, or every row of a table, and the warnings below them, a line each."""
        return self._printed(self._shown if self.columns else self.texts)

    def _repr_html_(self) -> str:
        """The first answers and warnings, for notebooks."""
        found = self.cells if self.columns else [(text,) for text in self.texts]
        shown = found[: html.MOST_ROWS]
        below = [html.table("answers", self.columns or ("answer",), shown, len(found) - len(shown))] if shown else []
        return html.page(f"{type(self).__name__} of {len(self.values):,}", below, warnings=self.warnings)

    # -- how it came about -------------------------------------------------------------------------

    @kept
    def trace(self) -> list[Step]:
        """What each step of the program gave, in its order."""
        return [
            self._step(function, node) for function, node in watched(self._steps or [(type(self.plan).__name__, self.plan)], 16)
        ]

    def _sizes(self) -> Iterable[int]:
        """How much each step gave; one by one, where each costs something."""
        for _, node in self._steps:
            found: Any = self.run.outcome(node)
            yield 1 if isinstance(node, Scalar) else len(found)

    def _step(self, function: str, node: Node) -> Step:
        size, sample = self._size(node)
        return Step(function, describe(node), size, sample, self.run.notes.get(id(node), ""))

    def _size(self, node: Node) -> tuple[int, tuple[str, ...]]:
        return self._size_in(self.run, node)

    @staticmethod
    def _size_in(run: Run, node: Node, most: int = 3) -> tuple[int, tuple[str, ...]]:
        """How much an operator gave in an execution, and the first of it as texts, at most so many."""
        snapshot = run.snapshot
        found: Any = run.outcome(node)
        if isinstance(found, FactSet):
            found = found.ends()
        if isinstance(found, Bag):
            first = [part.take(np.arange(min(most, len(part.ids)))) for part in found.parts[:1]]
            return len(found), tuple(Bag(found.scope, first).texts())
        if isinstance(node, Solutions):
            return len(found), grid_size(found.take(np.arange(min(3, len(found)))).grid(node.variables))[1]
        if isinstance(found, Grid):
            return grid_size(found)
        if isinstance(found, (bool, int, float)):
            return 1, (text_of(found),)
        return len(found), tuple(snapshot.texts.take(snapshot.entity_name[found[:most]]))

    @kept
    def evidence(self) -> EvidenceList:
        """What the answer rests on: statements with their sources, entities, and what was looked
        through.
        """
        return EvidenceList(trace_back(self.run, self.plan), self.plan, self._counted)

    def draw(self) -> Drawing:
        """The evidence as a picture, with the answers set off: `draw().svg`, `draw().save("answer.svg")`; a notebook
        shows it. Statements beyond what can be read in one picture are groups with numbers.
        """
        from condgraph.engine.drawing import of_statements

        answers = [entity.id for entity in self.entities] or self.texts
        return of_statements(self.evidence, answers, f"evidence of {len(self.values):,} answers")

    def draw_plan(self) -> Drawing:
        """The plan of the program as a picture: its operators, those of its steps with how much they gave, and the answer's
        own set off. As `draw()` otherwise.
        """
        from condgraph.engine.drawing import of_plan

        sizes = {id(node): step.size for (_, node), step in zip(self._steps, self.trace, strict=False)}
        return of_plan(self.plan, sizes, f"plan of {len(self.values):,} answers")

    def evidence_of(self, row: int) -> EvidenceList:
        """What one row of a table rests on: the statements of the rows of the graph behind it, by its
        place from 0; raises `IndexError` where there is none, and `PlanError` for what is no table.
        """
        return self._evidence_of(self.run, row)

    @timed
    def _evidence_of(self, run: Run, row: int) -> EvidenceList:
        if not isinstance(self.plan, Table | Solutions):
            raise PlanError("only the rows of a table have evidence of their own", hint="evidence is that of the whole answer")
        if not 0 <= row < len(self.values):
            raise IndexError(f"there is no row {row}: the table has {len(self.values)}, from 0")
        if isinstance(self.plan, Solutions):
            demand = Demand(rows=run.rows(self.plan).in_fixed_order().take(np.array([row])))
            return EvidenceList(trace_back(run, self.plan, demand=demand), self.plan, self._counted)
        return EvidenceList(trace_back(run, self.plan, row_asked(run, self.plan, row)), self.plan, self._counted)

    @kept
    def evidence_by_step(self) -> list[list[int]]:
        """For each step of `trace` the places in `evidence`, sorted, of the statements that it read."""
        trail, step = self.evidence.trail, owners(self._steps)
        found: list[set[int]] = [set() for _ in range(len(self._steps) or 1)]
        known, after = len(trail.statements), len(trail.statements) + len(trail.memberships)
        members, above = ({link: at for at, link in enumerate(links)} for links in (trail.memberships, trail.subclasses))
        for node, (statements, memberships, subclasses) in watched(trail.read.items(), 16):
            own = found[step.get(node, -1)]  # what a pass made of several steps is the last one's
            for numbers in statements:
                own.update(np.searchsorted(trail.statements, numbers).tolist())
            own.update(known + members[link] for link in memberships)
            own.update(after + above[link] for link in subclasses)
        return [sorted(places) for places in found]

    def _counted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        return [len(self.run.outcome(node)) for node in nodes]  # type: ignore[arg-type]

    def recounted(self, nodes: Sequence[Node], timeout: float | None = None) -> list[int]:
        """How many statements, or entities, each operator gives, counted again on the store that
        answered.
        """
        return count(self.run.snapshot, nodes, timeout)

    def ready(self, timeout: float | None = None) -> None:
        """Have what the evidence is made of at hand, within so many seconds: of a graph on a server
        it is fetched.
        """

    def replayed(self, run: Run) -> Answer:
        """The same answer from another execution of its plan."""
        return Answer(
            run, self.plan, program=self._program, language=self.language, steps=self._steps, warnings=self._warnings,
            limit=self._limit,
        )  # fmt: skip

    @property
    def cut(self) -> int:
        """How many values a limit left out."""
        self._outcome()
        return self._cut

    def check(
        self,
        evidence: Sequence[Evidence] | None = None,
        *,
        full: bool = False,
        graph: Counting | None = None,
        timeout: float | None = None,
    ) -> Checked:
        """Whether the evidence proves the answer: the plan is run again on a graph of the evidence
        alone.

        `evidence` is checked in the place of the answer's own. `full` also counts again what was
        looked through, on the store that answered; `graph` does so on another one, or on the same
        one later. `timeout` is in seconds.
        """
        from condgraph.engine.check import check

        return check(self, evidence, full=full, graph=graph, timeout=self._timeout if timeout is None else timeout)

    @kept
    def warnings(self) -> list[str]:
        """What a user should know: what was left out, cut, or normalised; for an empty answer, the
        step that emptied it.
        """
        found = [*self._warnings, *self._noticed()]
        values, _ = self._outcome()
        if self._cut:
            found.append(f"{numbered(self._cut, 'more value is', 'more values are')} not shown (limit {self._limit})")
        return [shortened(one) for one in [*found, *self._emptied(values), *self._contradicted()]]

    @property
    def substitutions(self) -> list[Substitution]:
        """The names of the program that were read as others (`on_unknown="nearest"`), with what else they
        may be.
        """
        return [warning for warning in self._warnings if isinstance(warning, Substitution)]

    @property
    def doubtful(self) -> bool:
        """Whether the answer rests on a name that was read as another one, so that it may answer another
        question.
        """
        return bool(self.substitutions)

    def _contradicted(self) -> list[str]:
        """What contradicts the statements that the answer rests on, of predicates that are declared as having one value
        at a time.
        """
        declared = self.run.snapshot.about.get("settings", {}).get("single_valued")
        if not declared:
            return []
        from condgraph.engine.conflicts import notices

        return notices(self.run.snapshot, self.evidence.trail.statements, declared, empty=not self.values)

    def _emptied(self, values: list[Any]) -> list[str]:
        """Why the answer is empty, or what is counted and summed up in it."""
        found = []
        if not values and not self._cut:
            why = self._why_empty()
            found.append("the answer is empty: " + "; ".join(why.lines()))
        found.extend(of_nothing(self.plan, lambda node: self._is_nothing(node, values), self._steps, self._sizes))
        return found

    def why_not(self, expected: Any = None, *, timeout: float | None = None) -> WhyNot:
        """Why the answer is empty, or why it lacks an expected result: the first step that left nothing,
        and the smallest changes that give something, each run; or the step that lost the entity or
        value, and the statement that is missing or differs.

        `expected` is an entity, its name or id, or a value. `timeout` is in seconds; of a search that
        it ends, what is known by then is returned, and `complete` is false. A count or a sum of
        nothing, and a "no", are explained like an empty answer.
        """
        seconds = self._timeout if timeout is None else timeout
        if expected is not None:
            from condgraph.engine.why_missing import why_missing

            return why_missing(self.plan, self._steps, expected, self._lookup(), seconds)
        return self._why_empty(seconds)

    #: The explanation of the empty answer, once one was not cut by a deadline: a warning has it, and who prints it may go on.
    _explained: WhyNot | None = None

    def _why_empty(self, seconds: float | None = None) -> WhyNot:
        if self._explained is None:
            found = self._search_why(seconds)
            if not found.complete:
                return found
            self._explained = found
        return self._explained

    def _search_why(self, seconds: float | None) -> WhyNot:
        from condgraph.engine.why_not import WhyNot, operator_of, why_empty

        found = why_empty(self.plan, self._steps, self._lookup(), seconds, empty=self._is_known_empty())
        if found is None and self.values:
            return WhyNot("", "", f"the answer is not empty: it has {numbered(len(self.values), 'value', 'values')}")
        # Values that no number can be made of.
        step = self._steps[-1][0] if self._steps else type(self.plan).__name__
        return found or WhyNot(step, operator_of(self.plan, self.plan, step), "it gave no value", node=self.plan)

    def _is_known_empty(self) -> bool:
        """Whether the answer tells that what it is made of is nothing."""
        plan, values = self.plan, self.values
        if isinstance(plan, Entities | Objects | Names):
            return not values and not self._cut
        return (isinstance(plan, Count) and values == [0]) or (isinstance(plan, AnySatisfies) and values == [False])

    def _lookup(self) -> Lookup:
        from condgraph.engine.why_lookup import local_lookup

        return local_lookup(self.run, lambda run, node, most: Answer(run, node, limit=most).plain_texts)

    def _is_nothing(self, node: Scalar, values: list[Any]) -> bool:
        """Whether a count or a sum is one of nothing."""
        if node is self.plan and isinstance(node, Count):
            return values == [0]
        found: Any = self.run.outcome(node.inputs()[0])
        return len(found) == 0

    def _noticed(self) -> list[str]:
        """What was noticed while the program ran."""
        return self.run.all_warnings()

    @timed
    def explain(self) -> str:
        """The program, its plan with what each operator gave, and warnings, as text."""
        notes = {}
        for node in watched(self.run.order, 16):
            size, sample = self._size(node)
            kinds = ((Entities, "entities"), (Facts, "facts"), (Table, "rows"), (Solutions, "rows"))
            unit = next((word for sort, word in kinds if isinstance(node, sort)), "values")
            notes[id(node)] = f"{size} {unit}" + (f": {', '.join(sample)}" if sample else "")
        lines = [self.program, "", tree(self.plan, notes)] if self.program else [tree(self.plan, notes)]
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)

    # -- tables ------------------------------------------------------------------------------------

    @timed
    def data(self) -> list[dict[str, Any]]:
        """One record a row of a table, its cells by their columns (`records`); else one a value:
        its `text` and `type`, and as the type asks `id` and `name`, `number` (None where it is too
        large for a float, an integer where it is whole and no float has all digits) and `unit`,
        `count`, `truth`, or `precision`, `start` and `end` (the first moment and the first one after
        it, as ISO text; None for an open side).
        """
        if isinstance(self.plan, Table | Solutions):
            return records(self.columns, self.values, self.cells)
        entities: list[Entity | None]
        values, texts = self._outcome()[0], self._shown
        entities = list(self.entities) if isinstance(self.plan, (Entities, Facts, Names)) else []
        entities.extend([None] * (len(values) - len(entities)))
        return [_record(*record) for record in watched(zip(values, texts, entities, strict=False))]

    def _typed(self) -> Typed:
        """The columns that something fills."""
        if isinstance(self.plan, Table | Solutions):
            grid = self._grid()
            columns = [column.take(np.arange(len(grid))[: self._limit]) for column in grid.columns[: grid.shown]]
            return typed_rows(self.columns, columns, self._row_texts)
        return typed_columns(self.data(), _ARROW)


#: What errors call the languages of servers.
_NAMED: Final = {"cypher": "Cypher", "sparql": "SPARQL", "sql": "SQL"}
#: Types of Arrow of what `data` has, but for texts.
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
