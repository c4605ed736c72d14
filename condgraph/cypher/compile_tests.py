"""Tests as Cypher conditions on a node or a map that has the properties of a `Value`.

A comparison with something of another type is null, which a WHERE takes for false; `Not` says so explicitly.
"""

from __future__ import annotations

from condgraph.cypher.compiler import Compiler, ValueRows, cell_of
from condgraph.cypher.layout import index_key, text_order, tie_break
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Test
from condgraph.engine.errors import PlanError
from condgraph.engine.execute.tests import as_float
from condgraph.engine.execute.versus import readings_of
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Quantity, Time

#: More values than this are not compared with, as in process.
MOST_COMPARED = 10_000


def condition(compiler: Compiler, test: Test, cell: str, ref: str | None = None) -> str:
    """A condition on a cell; `ref` is the entity that the cell is, where it may be one."""
    if isinstance(test, (alg.AnyOf, alg.AllOf)):
        word = " OR " if isinstance(test, alg.AnyOf) else " AND "
        keys = keys_of(test)
        if keys is not None:
            return f"{cell}.key IN {compiler.parameter(keys)}"
        return "(" + word.join(condition(compiler, part, cell, ref) for part in test.tests) + ")"
    if isinstance(test, alg.Not):
        return f"NOT coalesce({condition(compiler, test.test, cell, ref)}, false)"
    if isinstance(test, alg.Among):
        return f"{ref or cell} IN {compiler.set_of(test.entities)}"
    if isinstance(test, alg.Equals):
        return f"{identity(cell)} IN {identities(compiler, test.values)}"
    if isinstance(test, alg.Versus):
        return versus(compiler, test, cell)
    assert isinstance(test, alg.Compare)
    return _compare(compiler, test, cell)


def keys_of(test: alg.AnyOf | alg.AllOf) -> list[str] | None:
    """The texts that an alternative of equalities allows; None for other tests."""
    if not isinstance(test, alg.AnyOf):
        return None
    found = [part.value for part in test.tests if isinstance(part, alg.Compare) and part.operator == "="]
    texts = [index_key(value) for value in found if isinstance(value, str)]
    return texts if len(texts) == len(test.tests) else None


def _compare(compiler: Compiler, test: alg.Compare, cell: str) -> str:
    value, operator = test.value, "<>" if test.operator == "!=" else test.operator
    if isinstance(value, Time):
        return time_condition(test.operator, cell, compiler.parameter(value.start), compiler.parameter(value.end))
    if isinstance(value, Quantity):
        number, exact = as_float(value)
        unit = f"{cell}.unit = {compiler.parameter(value.unit)}"
        if exact and not compiler.inexact:
            there = f"{cell}.number IS NOT NULL AND " if operator == "<>" else ""
            return f"({there}{cell}.number {operator} {compiler.parameter(number)} AND {unit})"
        pair = compiler.parameter(number), compiler.parameter(tie_break(value.number))
        return f"({exact_condition(test.operator, cell, *pair)} AND {unit})"
    if not isinstance(value, str):
        raise PlanError("nothing compares with a value that is not known")
    if test.operator in ("=", "!="):
        there = f"{cell}.key IS NOT NULL AND " if operator == "<>" else ""
        return f"{there}{cell}.key {operator} {compiler.parameter(index_key(value))}"
    return f"({cell}.key IS NOT NULL AND {shown_order(cell)} {operator} {compiler.parameter(text_order(value))})"


def shown_order(cell: str) -> str:
    """What texts (and entities, by name) are ordered by."""
    return f"coalesce({cell}.order, {cell}.text, {cell}.name)"


def time_condition(operator: str, cell: str, start: str, end: str) -> str:
    """Interval comparison: `=` lies within, `!=` is disjoint, `<` ends before, `>` begins after.

    Each asks for the start and the end, which an index has side by side, and for a start the end could not be without.
    """
    return {
        "=": f"({cell}.start >= {start} AND {cell}.start < {end} AND {cell}.end <= {end})",
        # As a choice: an alternative would be two walks through the index.
        "!=": f"({cell}.start IS NOT NULL AND {cell}.end IS NOT NULL "
        f"AND CASE WHEN {cell}.start >= {end} THEN true ELSE {cell}.end <= {start} END)",
        "<": f"({cell}.start < {start} AND {cell}.end <= {start})",
        ">": f"({cell}.start >= {end} AND {cell}.end IS NOT NULL)",
        "<=": f"({cell}.start < {end} AND {cell}.end <= {end})",
        ">=": f"({cell}.start >= {start} AND {cell}.end IS NOT NULL)",
    }[operator]


def exact_condition(operator: str, cell: str, number: str, order: str) -> str:
    """Comparison of numbers as they were written: of those that are one float, by what breaks the tie."""
    same, mine = f"{cell}.number = {number}", f"coalesce({cell}.order, '1')"
    if operator == "=":
        return f"({same} AND {mine} = {order})"
    if operator == "!=":
        return f"({cell}.number <> {number} OR ({same} AND {mine} <> {order}))"
    strict = operator[0]
    return f"({cell}.number {strict} {number} OR ({same} AND {mine} {operator} {order}))"


def identity(cell: str) -> str:
    """What tells values apart; an entity and a text meet by name. (The precision of a time does not tell.)"""
    return (
        f"[coalesce({cell}.key, {cell}.unit, ''), coalesce({cell}.number, 0.0), "
        f"CASE WHEN {cell}.key IS NULL THEN coalesce({cell}.order, '') ELSE '' END, "
        f"coalesce({cell}.start, 0), coalesce({cell}.end, 0), "
        f"CASE WHEN {cell}.key IS NOT NULL THEN 'text' ELSE {cell}.kind END]"
    )


def identities(compiler: Compiler, values: alg.Values) -> str:
    """The identities of a bag as a list."""
    if isinstance(values, alg.Given):
        cells = [cell_of(value) for value in values.values]
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


def versus(compiler: Compiler, test: alg.Versus, cell: str) -> str:
    """Comparison with at least one value of a bag: a year is a number as well, and a number that can be a year a year."""
    y = compiler.name("y")
    if isinstance(test.values, alg.Given):
        written = [cell_of(reading) for value in dict.fromkeys(test.values.values) for reading in readings_of(value)]
        values = compiler.parameter(written[:MOST_COMPARED])
    else:
        values = readings(compiler, compiler.values(test.values))
    operator = "<>" if test.operator == "!=" else test.operator
    numbers = (
        exact_condition(test.operator, cell, f"{y}.number", f"coalesce({y}.order, '1')")
        if compiler.inexact
        else f"{cell}.number {operator} {y}.number"
    )
    texts = (
        f"{cell}.key {operator} {y}.key"
        if test.operator in ("=", "!=")
        else f"({cell}.key IS NOT NULL AND {y}.key IS NOT NULL AND {shown_order(cell)} {operator} {shown_order(y)})"
    )
    units = f"({y}.unit = '1' OR {y}.unit = {cell}.unit)"
    times = time_condition(test.operator, cell, f"{y}.start", f"{y}.end")
    return f"any({y} IN {values} WHERE ({numbers} AND {units}) OR {times} OR {texts})"


def readings(compiler: Compiler, rows: ValueRows) -> str:
    """The distinct values of a bag as what they are compared as, a list of cells."""
    c, k = compiler.name("c"), compiler.name("k")
    first = [*rows.clauses, f"WITH {identity(rows.cell)} AS {k}, collect({rows.cell})[0] AS {c} LIMIT {MOST_COMPARED}"]
    year = f"toInteger({c}.number)"
    is_year = f"{c}.unit = '1' AND {c}.number = toFloat({year}) AND {c}.number >= 1000 AND {c}.number <= 2999"
    begin, end = f"datetime({{year: {year}}}).epochSeconds", f"datetime({{year: {year} + 1}}).epochSeconds"
    as_year = f"{{kind: 'time', start: {begin}, end: {end}}}"
    as_number = f"{{kind: 'quantity', unit: '1', number: toFloat(datetime({{epochSeconds: {c}.start}}).year)}}"
    expression = (
        f"collect({c}) + collect(CASE WHEN {is_year} THEN {as_year} END) "
        f"+ collect(CASE WHEN {c}.kind = 'time' AND {c}.precision = 1 THEN {as_number} END)"
    )
    return compiler.let(first, expression, "v")


def span_condition(compiler: Compiler, relation: alg.Span, f: str, low: str, high: str) -> str:
    """How a validity stands to an interval; a bound that is not known is taken at its least favourable."""
    since, until = f"{f}.since", f"{f}.until"
    # As parameters: the least number there is cannot be written as a literal.
    first, last = compiler.constant(UNKNOWN_START), compiler.constant(UNKNOWN_END)
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
