"""Operators that give bags of values, scalars, and the tables of compile functions by operator.

A bag becomes clauses that leave a row for each value, with the entity that carries it and the entity that it is.
"""

from __future__ import annotations

from typing import ClassVar, Final

from condgraph.cypher.compile.compiler import Compiler, FactRows, ValueRows
from condgraph.cypher.compile.conditions import condition, identity, most_frequent, unit_name
from condgraph.cypher.compile.sets import ENTITIES, FACTS, times_of, written
from condgraph.cypher.compile.solutions import entities_of, facts_of
from condgraph.cypher.layout.base import Bound, Cell, Field
from condgraph.engine import algebra as alg
from condgraph.engine.algebra.tables import ScalarTable, ValueTable, by_type, given
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, UNKNOWN_END, UNKNOWN_START, Precision

# -- Bags --------------------------------------------------------------------------------------------


def objects(compiler: Compiler, node: alg.Objects) -> ValueRows:
    """The object of each fact, carried by the statement."""
    facts, layout = compiler.facts(node.facts), compiler.layout
    place = layout.place(facts.fact, facts.value)
    o, s = facts.thing, facts.subject
    if facts.family == "attribute":
        return ValueRows(facts.render(), facts.cell, s, None, place)
    c, r = compiler.name("c"), compiler.name("r")
    cell = layout.object_cell(o, facts.family)
    ref = f"CASE WHEN {layout.is_entity(o)} THEN {o} END" if facts.family == "any" else o
    n = compiler.name("n")
    return ValueRows([*facts.render(), f"WITH {cell} AS {c}, {s}, {ref} AS {r}, {place} AS {n}"], Bound(c), s, r, n)


def qualified(compiler: Compiler, facts: FactRows, q: str, test: str) -> list[str]:
    """Return clauses that leave a row for each qualifier of the facts that passes a test."""
    test = f" WHERE {test}" if test else ""
    qualifiers = compiler.layout.qualifiers(facts.fact, facts.thing, facts.family, q)
    if len(qualifiers) == 1:
        return [*facts.render(), f"{qualifiers[0]}{test}"]
    body = "\nUNION ALL\n".join(f"{clause}{test} RETURN {q}" for clause in qualifiers)
    return [*facts.render(), compiler.call(body, facts.fact, facts.thing)]


def _of_qualifiers(compiler: Compiler, facts: FactRows, clauses: list[str], q: str) -> ValueRows:
    r = None
    if compiler.refers:
        r = compiler.name("r")
        clauses = [*clauses, compiler.layout.refer(q, r)]
    return ValueRows(clauses, compiler.layout.qualifier(q), facts.subject, r, _position(compiler, facts))


def _position(compiler: Compiler, facts: FactRows) -> str:
    return compiler.layout.place(facts.fact, facts.value)


def qualifiers(compiler: Compiler, node: alg.Qualifiers) -> ValueRows:
    """The values of one qualifier key, or of all."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    test = "" if node.key is None else f"{compiler.layout.qualifier_name(q)} = {compiler.parameter(node.key)}"
    return _of_qualifiers(compiler, facts, qualified(compiler, facts, q, test), q)


def validity(compiler: Compiler, node: alg.Validity) -> ValueRows:
    """When each fact holds: intervals, or their starts or ends as written."""
    facts, layout = compiler.facts(node.facts), compiler.layout
    f = facts.fact
    if node.part != "interval":
        q = compiler.name("q")
        clauses = qualified(compiler, facts, q, written(compiler, facts, q, node.part))
        return ValueRows(clauses, layout.qualifier(q), facts.subject, None, _position(compiler, facts))
    since, until = layout.validity(f)
    facts.conditions.append(f"{since} <> {compiler.constant(UNKNOWN_START)} AND {until} <> {compiler.constant(UNKNOWN_END)}")
    c, n = compiler.name("c"), compiler.name("n")
    bound = f"WITH {layout.validity_cell(f)} AS {c}, {facts.subject}, {_position(compiler, facts)} AS {n}"
    return ValueRows([*facts.render(), bound], Bound(c), facts.subject, None, n)


def predicates(compiler: Compiler, node: alg.Predicates) -> ValueRows:
    facts = compiler.facts(node.facts)
    p = compiler.name("p")
    return _texts(compiler, facts, [*facts.render(), f"WITH *, {compiler.layout.predicate(facts.fact)} AS {p}"], p)


def qualifier_keys(compiler: Compiler, node: alg.QualifierKeys) -> ValueRows:
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    return _texts(compiler, facts, qualified(compiler, facts, q, ""), compiler.layout.qualifier_name(q))


def _texts(compiler: Compiler, facts: FactRows, clauses: list[str], text: str) -> ValueRows:
    c, n = compiler.name("c"), compiler.name("n")
    bound = f"WITH {compiler.layout.text_cell(text)} AS {c}, {facts.subject}, {_position(compiler, facts)} AS {n}"
    return ValueRows([*clauses, bound], Bound(c), facts.subject, None, n)


def names(compiler: Compiler, node: alg.Names) -> ValueRows:
    rows, layout = compiler.entities(node.entities), compiler.layout
    e, c, r = rows.variable, compiler.name("c"), compiler.name("r")
    bound = f"WITH {layout.name_cell(e)} AS {c}, {e}, {e} AS {r}"
    return ValueRows([*rows.clauses, bound], Bound(c), e, r, f"coalesce({layout.row(e)}, 0)")


def row_numbers(compiler: Compiler, node: alg.RowNumbers) -> ValueRows:
    rows = compiler.entities(node.entities)
    e, c = rows.variable, compiler.name("c")
    row = compiler.layout.row(e)
    return ValueRows([*rows.clauses, f"WITH {compiler.layout.row_cell(e)} AS {c}, {e} WHERE {row} > 0"], Bound(c), e, None, row)


def keep(compiler: Compiler, node: alg.FilterValues) -> ValueRows:
    """The values that pass the test."""
    rows = compiler.values(node.values)
    return ValueRows(
        [*rows.clauses, f"WITH * WHERE {condition(compiler, node.condition, rows.cell, rows.ref)}"],
        rows.cell,
        rows.holder,
        rows.ref,
        rows.place,
    )


def distinct(compiler: Compiler, node: alg.Distinct) -> ValueRows:
    """Each value once, with the first of its carriers by name."""
    rows = compiler.values(node.values)
    k, xs = compiler.name("k"), compiler.name("rows")
    clauses = list(rows.clauses)
    c = rows.cell
    key = f"[{identity(c)}, {c.precision}, CASE WHEN {c.kind} = 'entity' THEN {c.id} END]"
    if rows.holder is not None:
        clauses.append(f"WITH * ORDER BY {compiler.layout.name(rows.holder)}, {compiler.layout.id(rows.holder)}")
    clauses.append(f"WITH {key} AS {k}, collect({rows.packed()})[0] AS {xs}")
    return compiler.unpacked(clauses, f"[{xs}]", rows)


def concat(compiler: Compiler, node: alg.Concat) -> ValueRows:
    return together(compiler, [compiler.values(part) for part in node.parts])


def together(compiler: Compiler, parts: list[ValueRows], conditions: list[str] | None = None) -> ValueRows:
    """Concatenate bags, each under a condition of its own."""
    c, h, r, n = (compiler.name(prefix) for prefix in "chrn")
    branches = []
    for index, rows in enumerate(parts):
        clauses = list(rows.clauses) if conditions is None else [f"WITH * WHERE {conditions[index]}", *rows.clauses]
        holder, ref = rows.holder or "null", rows.ref or "null"
        returned = f"RETURN {rows.cell.whole} AS {c}, {holder} AS {h}, {ref} AS {r}, {rows.place or '0'} AS {n}"
        branches.append("\n".join([*clauses, returned]))
    carried, refers = any(rows.holder for rows in parts), any(rows.ref for rows in parts)
    return ValueRows([compiler.call("\nUNION ALL\n".join(branches))], Bound(c), h if carried else None, r if refers else None, n)


def constants(compiler: Compiler, node: alg.Constants) -> ValueRows:
    """Values written in the program."""
    c = compiler.name("c")
    return ValueRows([f"UNWIND {compiler.parameter([compiler.cell_of(value) for value in node.values])} AS {c}"], Bound(c))


def shown(compiler: Compiler, node: alg.Shown) -> ValueRows:
    """The values; the answer shows the rows beside them."""
    return compiler.values(node.values)


# -- Selection ---------------------------------------------------------------------------------------
# Operators over a whole bag: extremes, modes, the nth value, clipped times, a choice between two bags.


def shown_text(cell: Cell) -> str:
    """Return a value as it is printed."""
    return f"coalesce({cell.raw}, {cell.text})"


def extreme(compiler: Compiler, node: alg.Extreme) -> ValueRows:
    """The best values with their carriers.

    If no value is a number or a time, texts compete: by the numbers they begin with, else as texts.
    """
    rows = compiler.values(node.values)
    c = rows.cell
    choose = "max" if node.direction == "largest" else "min"
    xs, kind, ranked, x, key, all_, best, y = (compiler.name(p) for p in ("rows", "kind", "ranked", "x", "k", "all", "best", "y"))
    comparable = f"{c.kind} IN ['quantity', 'time']"
    group = (
        f"WITH CASE WHEN {comparable} THEN {c.kind} ELSE 'text' END AS {kind}, "
        f"CASE WHEN {comparable} THEN {unit_name(c.unit)} ELSE '' END AS unit, count(*) AS times, "
        f"count({compiler.layout.ranks(c)}) AS {ranked}, collect({rows.packed()}) AS {xs} "
        f"ORDER BY {kind} = 'text', {most_frequent(kind)}"
    )
    of_x = Bound(f"{x}.c")
    side = of_x.end if node.direction == "largest" else of_x.start
    number = f"[{of_x.number}, coalesce({of_x.order}, '1')]" if compiler.inexact else f"[{of_x.number}]"
    clauses = [
        *rows.clauses,
        group,
        f"UNWIND {xs} AS {x}",
        f"WITH {x}, CASE {kind} WHEN 'quantity' THEN {number} WHEN 'time' THEN [{side}] "
        f"ELSE CASE WHEN {ranked} = times THEN {compiler.layout.ranks(of_x)} ELSE [{of_x.ordered}] END END AS {key}",
        f"WITH collect([{x}, {key}]) AS {all_}, {choose}({key}) AS {best}",
    ]
    return compiler.unpacked(clauses, f"[{y} IN {all_} WHERE {y}[1] = {best} | {y}[0]]", rows)


def mode(compiler: Compiler, node: alg.Mode) -> ValueRows:
    """The values that occur most or least often, with their carriers."""
    rows = compiler.values(node.values)
    choose = "max" if node.direction == "largest" else "min"
    t, xs, groups, best, g = (compiler.name(prefix) for prefix in ("t", "rows", "groups", "best", "g"))
    clauses = [
        *rows.clauses,
        f"WITH {shown_text(rows.cell)} AS {t}, count(*) AS times, collect({rows.packed()}) AS {xs}",
        f"WITH collect([times, {xs}]) AS {groups}, {choose}(times) AS {best}",
        f"UNWIND {groups} AS {g} WITH {g} WHERE {g}[0] = {best}",
    ]
    return compiler.unpacked(clauses, f"{g}[1]", rows)


def middle(compiler: Compiler, node: alg.Median) -> list[str]:
    """Return clauses for the values a median needs, as one row; none for an empty bag.

    `rows` has the middle one or two numbers of the most frequent unit, or, if no value is a number, all texts, from which
    the client reads numbers.
    """
    rows = compiler.values(node.values)
    c, xs, unit = rows.cell, compiler.name("rows"), compiler.name("unit")
    cell = ", ".join(c.field(name) for name in MIDDLE)
    number = f"CASE {c.kind} WHEN 'quantity' THEN"
    return [
        *rows.clauses,
        f"WITH * ORDER BY {c.number}, coalesce({c.order}, '1')",
        f"WITH {number} {c.unit} END AS {unit}, count(*) AS times, collect({number} [{cell}] ELSE {shown_text(c)} END) AS {xs} "
        f"ORDER BY {unit} IS NULL, times DESC, {unit_name(unit)} LIMIT 1",
        f"RETURN CASE WHEN {unit} IS NULL THEN {xs} ELSE {xs}[(times - 1) / 2 .. times / 2 + 1] END AS rows, "
        f"{unit} IS NOT NULL AS numbers",
    ]


#: The fields that identify a number.
MIDDLE: Final[tuple[Field, ...]] = ("number", "unit", "exact")


def nth(compiler: Compiler, node: alg.Nth) -> ValueRows:
    """The value at a position, by rows or by value; in the order of values, equal values count once."""
    rows = compiler.values(node.values)
    c, xs, g, k = rows.cell, compiler.name("rows"), compiler.name("g"), compiler.name("k")
    texts = f"CASE WHEN {c.key} IS NULL THEN '' ELSE {c.ordered} END"
    rank = f"CASE {c.kind} WHEN 'quantity' THEN 1 WHEN 'time' THEN 2 WHEN 'unknown' THEN 4 ELSE 3 END"
    exact = f"CASE WHEN {c.kind} = 'quantity' THEN coalesce({c.order}, '1') ELSE '' END, " if compiler.inexact else ""
    # The name of an entity is a text, which other entities may share.
    ident = f"coalesce({c.id}, '')" if node.order == "row" else f"CASE {c.kind} WHEN 'entity' THEN {c.id} ELSE '' END"
    order = (
        f"[{rank}, coalesce({c.unit}, ''), coalesce({c.number}, 0.0), {exact}coalesce({c.start}, 0), coalesce({c.end}, 0), "
        f"coalesce({c.precision}, 0), {texts}, {ident}]"
    )
    if node.order == "row":
        clauses = [
            *rows.clauses,
            f"WITH *, {order} AS {k} ORDER BY {rows.place or '0'}, {k}",
            f"WITH collect({rows.packed()})[{node.place}] AS {g} WHERE {g} IS NOT NULL",
        ]
        return compiler.unpacked(clauses, f"[{g}]", rows)
    way = " DESC" if node.order == "descending" else ""
    clauses = [
        *rows.clauses,
        f"WITH {order} AS {k}, collect({rows.packed()}) AS {xs} ORDER BY {k}{way}",
        f"WITH collect({xs})[{node.place}] AS {g} WHERE {g} IS NOT NULL",
    ]
    return compiler.unpacked(clauses, g, rows)


# -- Times -----------------------------------------------------------------------------------------


def clip(compiler: Compiler, node: alg.Clip) -> ValueRows:
    """Times cut to the part that compares as asked with at least one of the limits; a time that is not cut stays unchanged."""
    limits = times_of(compiler, node.limits)
    rows = compiler.values(node.values)
    c, w, a, b, d = rows.cell, *(compiler.name(prefix) for prefix in "wabd")
    first, last = compiler.constant(OPEN_START), compiler.constant(OPEN_END)
    operator, y = node.operator, compiler.name("y")
    outside = ""
    if operator == "=":
        windows = _merged(compiler, limits)
    elif operator == "!=":
        windows = f"CASE WHEN size({limits}) = 0 THEN [] ELSE [[{first}, {last}]] END"
        outside = f" AND all({y} IN {limits} WHERE {c.end} <= {y}[0] OR {c.start} >= {y}[1])"
    else:
        side, choose = {"<": ("[0]", "max"), "<=": ("[1]", "max"), ">": ("[1]", "min"), ">=": ("[0]", "min")}[operator]
        bound = _aggregate(compiler, limits, side, choose)
        window = f"[{first}, {bound}]" if operator[0] == "<" else f"[{bound}, {last}]"
        windows = f"CASE WHEN {bound} IS NULL THEN [] ELSE [{window}] END"
    clauses = [
        *rows.clauses,
        f"WITH * WHERE {c.start} IS NOT NULL{outside}",
        f"UNWIND {windows} AS {w}",
        f"WITH *, CASE WHEN {c.start} > {w}[0] THEN {c.start} ELSE {w}[0] END AS {a}, "
        f"CASE WHEN {c.end} < {w}[1] THEN {c.end} ELSE {w}[1] END AS {b}",
        f"WITH *, CASE WHEN {a} = {c.start} AND {b} = {c.end} THEN {c.whole} "
        f"ELSE {_time(a, b, precision_of(compiler, a, b))} END AS {d} WHERE {a} < {b}",
    ]
    return ValueRows(clauses, Bound(d), rows.holder, rows.ref, rows.place)


def _time(start: str, end: str, precision: str) -> str:
    return f"{{kind: 'time', start: {start}, end: {end}, precision: {precision}}}"


def _aggregate(compiler: Compiler, times: str, side: str, choose: str) -> str:
    y = compiler.name("y")
    return compiler.let([f"UNWIND {times} AS {y}"], f"{choose}({y}{side})", "t")


def _merged(compiler: Compiler, times: str) -> str:
    """Merge overlapping intervals of a sorted list."""
    y, acc = compiler.name("y"), compiler.name("acc")
    later = f"CASE WHEN {y}[1] > {acc}[-1][1] THEN {y}[1] ELSE {acc}[-1][1] END"
    joined = f"{acc}[0..size({acc}) - 1] + [[{acc}[-1][0], {later}]]"
    step = f"CASE WHEN size({acc}) > 0 AND {y}[0] <= {acc}[-1][1] THEN {joined} ELSE {acc} + [{y}] END"
    return compiler.let([], f"reduce({acc} = [], {y} IN {times} | {step})", "t")


def precision_of(compiler: Compiler, start: str, end: str) -> str:
    """Return the precision of an interval: year, month or day where it is exactly one, else a span."""
    first, last = compiler.constant(OPEN_START), compiler.constant(UNKNOWN_END)
    a, b = (f"datetime({{epochSeconds: {item}}})" for item in (start, end))
    return (
        f"CASE WHEN {start} <= {first} OR {end} >= {last} THEN {Precision.SPAN.value} "
        f"WHEN {end} - {start} > {366 * DAY_SECONDS} OR {start} % {DAY_SECONDS} <> 0 OR {end} % {DAY_SECONDS} <> 0 THEN 0 "
        f"WHEN {end} - {start} = {DAY_SECONDS} THEN {Precision.DAY.value} "
        f"WHEN {a}.day <> 1 OR {b}.day <> 1 THEN 0 "
        f"WHEN {a}.month = 1 AND {a} + duration({{years: 1}}) = {b} THEN {Precision.YEAR.value} "
        f"WHEN {a} + duration({{months: 1}}) = {b} THEN {Precision.MONTH.value} ELSE 0 END"
    )


def bound(compiler: Compiler, node: alg.Bound) -> ValueRows:
    """The first or last year, month or day of intervals, as precise as their known ends; other values stay."""
    rows = compiler.values(node.values)
    c, m, u, d, b = rows.cell, *(compiler.name(prefix) for prefix in "mudb")
    start = node.part == "start"
    edge = c.start if start else c.end
    first, last = compiler.constant(OPEN_START), compiler.constant(UNKNOWN_END)
    span = f"({c.kind} = 'time' AND {c.precision} = 0)"

    def ends(test: str) -> str:
        parts = [f"({e} <= {first} OR {e} >= {last} OR {test.format(e=e)})" for e in (c.start, c.end)]
        return f"({' AND '.join(parts)})"

    days = ends(f"{{e}} % {DAY_SECONDS} = 0")
    months = ends("datetime({{epochSeconds: {e}}}).day = 1")
    years = ends("datetime({{epochSeconds: {e}}}).month = 1")
    sign = "+" if start else "-"
    length = (
        f"CASE {u} WHEN 1 THEN duration({{years: 1}}) WHEN 2 THEN duration({{months: 1}}) WHEN 3 THEN duration({{days: 1}}) "
        "ELSE duration({seconds: 1}) END"
    )
    other = f"(datetime({{epochSeconds: {m}}}) {sign} {length}).epochSeconds"
    pair = (m, b) if start else (b, m)
    clauses = [
        *rows.clauses,
        f"WITH * WHERE NOT {span} OR ({edge} > {first} AND {edge} < {last})",
        f"WITH *, CASE WHEN {span} THEN {edge} END AS {m}, CASE WHEN NOT {span} THEN 0 WHEN NOT {days} THEN 4 "
        f"WHEN {months} AND {years} THEN 1 WHEN {months} THEN 2 ELSE 3 END AS {u}",
        f"WITH *, CASE WHEN {m} IS NOT NULL THEN {other} END AS {b}",
        f"WITH *, CASE WHEN {m} IS NULL THEN {c.whole} ELSE {_time(*pair, u)} END AS {d}",
    ]
    return ValueRows(clauses, Bound(d), rows.holder, rows.ref, rows.place)


# -- Choice and scalars ----------------------------------------------------------------------------


def truth(compiler: Compiler, node: alg.Values | alg.Scalar) -> str:
    """Bind a truth value once: whether a count is not 0, or a value is neither empty, 0 nor a word for no."""
    if isinstance(node, alg.Values):
        rows = compiler.values(node)
        cells = compiler.let(rows.clauses, f"collect({rows.cell.whole})")
        first = Bound(f"{cells}[0]")
        word = f"{first.kind} = 'text' AND toLower({first.text}) IN ['no', 'false', '']"
        return compiler.let([], f"size({cells}) > 0 AND NOT (size({cells}) = 1 AND {word})", "truth")
    clauses, expression = scalar(compiler, node)
    result = expression if isinstance(node, alg.Exists) else f"{expression} > 0"
    return compiler.let(clauses, result, "truth")


def scalar(compiler: Compiler, node: alg.Scalar) -> tuple[list[str], str]:
    """Return clauses, and an expression that aggregates their rows."""
    return _BY_TYPE[type(node)](compiler, node)


def count(compiler: Compiler, node: alg.Count) -> tuple[list[str], str]:
    """The number of entities, or of distinct texts."""
    if isinstance(node.of, alg.Entities):
        rows = compiler.entities(node.of)
        return rows.clauses, f"count({rows.variable})"
    bag = compiler.values(node.of)
    return bag.clauses, f"count(DISTINCT {shown_text(bag.cell)})"


def exists(compiler: Compiler, node: alg.Exists) -> tuple[list[str], str]:
    facts = compiler.facts(node.facts)
    return [*facts.render(), f"WITH {facts.fact} LIMIT 1"], f"count({facts.fact}) > 0"


def some(compiler: Compiler, node: alg.AnySatisfies) -> tuple[list[str], str]:
    """The number of values that pass a test."""
    values = compiler.values(node.values.values if isinstance(node.values, alg.Distinct) else node.values)
    return values.clauses, f"count(CASE WHEN {condition(compiler, node.condition, values.cell, values.ref)} THEN 1 END)"


#: Compile functions of scalars; None where the client computes them (`SUPPORT`).
SCALARS: Final[ScalarTable[Compiler, [], tuple[list[str], str]]] = {
    "Count": count,
    "Sum": None,
    "Mean": None,
    "Median": None,
    "Deviation": None,
    "AnySatisfies": some,
    "Exists": exists,
}
_BY_TYPE: Final = by_type(SCALARS)


def choose(compiler: Compiler, node: alg.Choose) -> ValueRows:
    """One of two bags, chosen by a test."""
    test = truth(compiler, node.condition)
    parts = [compiler.values(node.then), compiler.values(node.otherwise)]
    return together(compiler, parts, [test, f"NOT {test}"])


# -- Tables ------------------------------------------------------------------------------------------


#: Compile functions of operators that give values; None where the client computes them (`SUPPORT`).
VALUES: Final[ValueTable[Compiler, [], ValueRows]] = {
    "Objects": objects,
    "Qualifiers": qualifiers,
    "Validity": validity,
    "Predicates": predicates,
    "QualifierKeys": qualifier_keys,
    "Names": names,
    "RowNumbers": row_numbers,
    "FilterValues": keep,
    "Distinct": distinct,
    "Concat": concat,
    "Extreme": extreme,
    "Mode": mode,
    "Nth": nth,
    "Clip": clip,
    "Bound": bound,
    "Choose": choose,
    "Shown": shown,
    "Constants": constants,
    "Apply": None,
    "External": None,
}
#: Names of the operators that leave rows.
OPERATORS: Final = given(ENTITIES) | given(FACTS) | given(VALUES) | {"EntitiesOf", "FactsOf"}


class PlanCompiler(Compiler):
    """The compiler with the compile functions of all operators."""

    of_entities: ClassVar = by_type(ENTITIES) | {alg.EntitiesOf: entities_of}
    of_facts: ClassVar = by_type(FACTS) | {alg.FactsOf: facts_of}
    of_values: ClassVar = by_type(VALUES)
