"""Tests as Cypher conditions on a cell, and the choice of type and unit among the values of a bag."""

from __future__ import annotations

from math import inf, nextafter
from typing import Final, Protocol

from condgraph.cypher.compile.compiler import Compiler, ValueRows
from condgraph.cypher.layout.base import Bound, Cell
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition
from condgraph.engine.algebra.tables import ConditionTable, by_type
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.conditions import readings_of
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Quantity, Time

# -- Competing values --------------------------------------------------------------------------------
# An ordering for values of several types and units.


def unit_name(unit: str) -> str:
    """Return a unit as a sort key; values without a unit come first."""
    return f"CASE {unit} WHEN '1' THEN '' ELSE coalesce({unit}, '') END"


def most_frequent(kind: str) -> str:
    """Return the end of an ORDER BY that picks the most frequent type and unit.

    It sorts groups by their `times` and `unit`. In a tie, times win, then the unit first by name.
    """
    return f"times DESC, {kind} DESC, unit LIMIT 1"


# -- Conditions --------------------------------------------------------------------------------------
# A comparison with another type is null, which WHERE treats as false; `Not` makes that explicit.


#: Most values of a bag that are compared with, as in process.
MAX_COMPARED = 10_000


def condition(compiler: Compiler, test: Condition, cell: Cell, ref: str | None = None) -> str:
    """Return a condition on a cell; `ref` is the entity that the cell is, where it may be one."""
    return _BY_TYPE[type(test)](compiler, test, cell, ref)


def _any_of(compiler: Compiler, test: alg.AnyOf, cell: Cell, ref: str | None) -> str:
    keys = keys_of(compiler, test)
    if keys is not None:
        return f"{cell.tested('key')} IN {compiler.parameter(keys)}"
    return "(" + " OR ".join([condition(compiler, part, cell, ref) for part in test.conditions]) + ")"


def _all_of(compiler: Compiler, test: alg.AllOf, cell: Cell, ref: str | None) -> str:
    return "(" + " AND ".join([condition(compiler, part, cell, ref) for part in test.conditions]) + ")"


def _not(compiler: Compiler, test: alg.Not, cell: Cell, ref: str | None) -> str:
    return f"NOT coalesce({condition(compiler, test.condition, cell, ref)}, false)"


def _among(compiler: Compiler, test: alg.Among, cell: Cell, ref: str | None) -> str:
    return f"{ref or cell.whole} IN {compiler.set_of(test.entities)}"


def _equals(compiler: Compiler, test: alg.Equals, cell: Cell, ref: str | None) -> str:
    return f"{identity(cell)} IN {identities(compiler, test.values)}"


def keys_of(compiler: Compiler, test: alg.AnyOf) -> list[str] | None:
    """Return the texts that a disjunction of equalities allows; None for other tests."""
    operands = [part.value for part in test.conditions if isinstance(part, alg.Compare) and part.operator == "="]
    texts = [compiler.layout.key(value) for value in operands if isinstance(value, str)]
    return texts if len(texts) == len(test.conditions) else None


def _compare(compiler: Compiler, test: alg.Compare, cell: Cell, ref: str | None) -> str:
    value, operator = test.value, "<>" if test.operator == "!=" else test.operator
    if isinstance(value, Time):
        own_test = cell.timed(test.operator, value, compiler.parameter)
        if own_test is not None:
            return own_test
        if operator == "<>":
            return time_condition(test.operator, cell, compiler.parameter(value.start), compiler.parameter(value.end))
        low, high, last = map(compiler.parameter, _times(operator, value))
        return f"({cell.start} >= {low} AND {cell.start} < {high} AND {cell.end} <= {last})"
    if isinstance(value, Quantity):
        number, exact = compiler.layout.number(value)
        own, unit = cell.tested("number"), f"{cell.tested('unit')} = {compiler.parameter(value.unit)}"
        if exact and not compiler.inexact:
            if compiler.layout.floats and operator != "<>":
                low, high = map(compiler.parameter, _floats(operator, float(number)))
                return f"({own} >= {low} AND {own} <= {high} AND {unit})"
            present = f"{cell.number} IS NOT NULL AND " if operator == "<>" else ""
            return f"({present}{own} {operator} {compiler.parameter(number)} AND {unit})"
        pair = compiler.parameter(number), compiler.parameter(compiler.layout.number_order(value.number))
        return f"({exact_condition(test.operator, cell, *pair)} AND {unit})"
    if not isinstance(value, str):
        raise PlanError("an unknown value cannot be compared")
    key, layout = cell.key, compiler.layout
    if test.operator in ("=", "!="):
        present = f"{key} IS NOT NULL AND " if operator == "<>" else ""
        return f"{present}{cell.tested('key')} {operator} {compiler.parameter(layout.key(value))}"
    return f"({key} IS NOT NULL AND {cell.ordered} {operator} {compiler.parameter(layout.text_order(value))})"


def _floats(operator: str, number: float) -> tuple[float, float]:
    """Return the least and the greatest float that a comparison other than `<>` allows.

    All comparisons then have the same text, which the server plans once.

    >>> _floats("<=", 7.0)
    (-inf, 7.0)
    """
    if operator == "=":
        return number, number
    if operator[0] == "<":
        return -inf, number if operator == "<=" else nextafter(number, -inf)
    return number if operator == ">=" else nextafter(number, inf), inf


def _times(operator: str, value: Time) -> tuple[int, int, int]:
    """Return the limits that a comparison puts on a time: least start, limit of the start, greatest end.

    They correspond to `time_condition`, with one text for all comparisons.
    """
    first = {"=": value.start, ">": value.end, ">=": value.start}.get(operator, UNKNOWN_START)
    if operator[0] == ">":
        return first, OPEN_END, OPEN_END
    limit = value.start if operator == "<" else value.end
    return first, limit, limit


def time_condition(operator: str, cell: Cell, start: str, end: str) -> str:
    """Compare intervals: `=` is within, `!=` is disjoint, `<` ends before, `>` begins after.

    Each form tests both the start and the end, which are adjacent in an index, even where one test follows from the other.
    """
    first, last = cell.start, cell.end
    return {
        "=": f"({first} >= {start} AND {first} < {end} AND {last} <= {end})",
        # A CASE, as OR would walk through the index twice.
        "!=": f"({first} IS NOT NULL AND {last} IS NOT NULL AND CASE WHEN {first} >= {end} THEN true ELSE {last} <= {start} END)",
        "<": f"({first} < {start} AND {last} <= {start})",
        ">": f"({first} >= {end} AND {last} IS NOT NULL)",
        "<=": f"({first} < {end} AND {last} <= {end})",
        ">=": f"({first} >= {start} AND {last} IS NOT NULL)",
    }[operator]


def exact_condition(operator: str, cell: Cell, number: str, order: str) -> str:
    """Compare numbers as they were written: where two are the same float, `order` breaks the tie."""
    number_cell, own_order = cell.number, f"coalesce({cell.order}, '1')"
    same = f"{number_cell} = {number}"
    if operator == "=":
        return f"({same} AND {own_order} = {order})"
    if operator == "!=":
        return f"({number_cell} <> {number} OR ({same} AND {own_order} <> {order}))"
    strict = operator[0]
    return f"({number_cell} {strict} {number} OR ({same} AND {own_order} {operator} {order}))"


def identity(cell: Cell) -> str:
    """Return what identifies a value; an entity equals a text by name. The precision of a time is ignored."""
    key = cell.key
    return (
        f"[coalesce({key}, {cell.unit}, ''), coalesce({cell.number}, 0.0), "
        f"CASE WHEN {key} IS NULL THEN coalesce({cell.order}, '') ELSE '' END, "
        f"coalesce({cell.start}, 0), coalesce({cell.end}, 0), "
        f"CASE WHEN {key} IS NOT NULL THEN 'text' ELSE {cell.kind} END]"
    )


def identities(compiler: Compiler, values: alg.Values) -> str:
    """Return the identities of a bag as a list."""
    if isinstance(values, alg.Constants):
        cells = [compiler.cell_of(value) for value in values.values]
        return compiler.parameter(
            [
                [
                    cell.get("key", cell.get("unit", "")),
                    cell.get("number", 0.0),
                    "" if "key" in cell else cell.get("order", ""),
                    cell.get("start", 0),
                    cell.get("end", 0),
                    "text" if "key" in cell else cell["kind"],
                ]
                for cell in cells
            ]
        )
    rows = compiler.values(values)
    return compiler.let(rows.clauses, f"collect(DISTINCT {identity(rows.cell)})")


def versus(compiler: Compiler, test: alg.Versus, cell: Cell, ref: str | None) -> str:
    """Compare with at least one value of a bag; a year also counts as a number, and a number that can be a year as a year."""
    name = compiler.name("y")
    y = Bound(name)
    if isinstance(test.values, alg.Constants):
        written = [compiler.cell_of(reading) for value in dict.fromkeys(test.values.values) for reading in readings_of(value)]
        values = compiler.parameter(written[:MAX_COMPARED])
    else:
        values = readings(compiler, compiler.values(test.values))
    operator = "<>" if test.operator == "!=" else test.operator
    numbers = (
        exact_condition(test.operator, cell, y.number, f"coalesce({y.order}, '1')")
        if compiler.inexact
        else f"{cell.number} {operator} {y.number}"
    )
    texts = (
        f"{cell.key} {operator} {y.key}"
        if test.operator in ("=", "!=")
        else f"({cell.key} IS NOT NULL AND {y.key} IS NOT NULL AND {cell.ordered} {operator} {y.ordered})"
    )
    units = f"({y.unit} = '1' OR {y.unit} = {cell.unit})"
    times = time_condition(test.operator, cell, y.start, y.end)
    return f"any({name} IN {values} WHERE ({numbers} AND {units}) OR {times} OR {texts})"


def readings(compiler: Compiler, rows: ValueRows) -> str:
    """Return the distinct values of a bag, in every form they are compared in, as a list of cells."""
    name, k = compiler.name("c"), compiler.name("k")
    c = Bound(name)
    first = [*rows.clauses, f"WITH {identity(rows.cell)} AS {k}, collect({rows.cell.whole})[0] AS {name} LIMIT {MAX_COMPARED}"]
    year = f"toInteger({c.number})"
    is_year = f"{c.unit} = '1' AND {c.number} = toFloat({year}) AND {c.number} >= 1000 AND {c.number} <= 2999"
    begin, end = f"datetime({{year: {year}}}).epochSeconds", f"datetime({{year: {year} + 1}}).epochSeconds"
    as_year = f"{{kind: 'time', start: {begin}, end: {end}}}"
    as_number = f"{{kind: 'quantity', unit: '1', number: toFloat(datetime({{epochSeconds: {c.start}}}).year)}}"
    expression = (
        f"collect({name}) + collect(CASE WHEN {is_year} THEN {as_year} END) "
        f"+ collect(CASE WHEN {c.kind} = 'time' AND {c.precision} = 1 THEN {as_number} END)"
    )
    return compiler.let(first, expression, "v")


class Constants(Protocol):
    """A query text whose constants are parameters."""

    def constant(self, value: int) -> str: ...


def span_condition(compiler: Constants, relation: alg.Span, validity: tuple[str, str], low: str, high: str) -> str:
    """Relate a validity (start, end) to an interval; an unknown bound is taken at its least favourable."""
    since, until = validity
    # As parameters: the smallest integer cannot be written as a literal.
    if relation == "may":
        # Statements without a validity always hold.
        return f"({since} IS NULL OR ({since} < {high} AND {until} > {low}))"
    first, last = compiler.constant(UNKNOWN_START), compiler.constant(UNKNOWN_END)
    if relation == "must":
        known = f"{since} > {compiler.constant(OPEN_START)} AND {until} < {last}"
        return f"({since} IS NULL OR ({known} AND {since} <= {low} AND {until} >= {high}))"
    if relation == "overlaps":
        inside_start = f"{since} <> {first} AND {since} >= {low} AND {since} < {high}"
        inside_end = f"{until} <> {last} AND {until} > {low} AND {until} <= {high}"
        both = f"{since} <> {first} AND {until} <> {last} AND {since} < {high} AND {until} > {low}"
        return f"(({inside_start}) OR ({inside_end}) OR ({both}))"
    open_start, open_end = compiler.constant(OPEN_START), compiler.constant(OPEN_END)
    if relation == "contains":
        latest_start = f"CASE WHEN {since} <> {first} THEN {since} WHEN {until} <> {last} THEN {until} ELSE {open_end} END"
        earliest_end = f"CASE WHEN {until} <> {last} THEN {until} WHEN {since} <> {first} THEN {since} ELSE {open_start} END"
        return f"({latest_start} <= {low} AND {earliest_end} >= {high})"
    earliest_start = f"CASE WHEN {since} = {first} THEN {open_start} ELSE {since} END"
    latest_end = f"CASE WHEN {until} = {last} THEN {open_end} ELSE {until} END"
    return {
        "disjoint": f"({latest_end} <= {low} OR {earliest_start} >= {high})",
        "within": f"({earliest_start} >= {low} AND {latest_end} <= {high})",
        "before": f"{latest_end} <= {low}",
        "after": f"{earliest_start} >= {high}",
        "until": f"{latest_end} <= {high}",
        "from": f"{earliest_start} >= {low}",
    }[relation]


CONDITIONS: Final[ConditionTable[Compiler, [Cell, str | None], str]] = {
    "Compare": _compare,
    "AnyOf": _any_of,
    "AllOf": _all_of,
    "Among": _among,
    "Equals": _equals,
    "Versus": versus,
    "Not": _not,
}
_BY_TYPE: Final = by_type(CONDITIONS)
