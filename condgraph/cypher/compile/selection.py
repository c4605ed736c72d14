"""Operators over a whole bag in Cypher: extremes, modes, the nth value, clipped times, one of two bags."""

from __future__ import annotations

from typing import Final

from condgraph.cypher.compile.competing import most_frequent, unit_name
from condgraph.cypher.compile.compiler import Compiler, ValueRows
from condgraph.cypher.compile.conditions import condition
from condgraph.cypher.compile.facts import times_of
from condgraph.cypher.compile.values import together
from condgraph.cypher.layout.cells import Bound, Cell, Field
from condgraph.engine import algebra as alg
from condgraph.engine.algebra.tables import ScalarTable, by_type
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, UNKNOWN_END, Precision


def shown_text(cell: Cell) -> str:
    """A value as a user reads it."""
    return f"coalesce({cell.raw}, {cell.text})"


def extreme(compiler: Compiler, node: alg.Extreme) -> ValueRows:
    """The best values with their carriers. Where nothing is a number or a time, texts compete: by
    their numbers, else as texts.
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
    """Clauses that return one row, none of an empty bag: of the numbers of the most frequent unit
    the middle one or two as `rows`; where nothing is a number, all texts, which the client reads
    numbers from.
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


#: What tells a number.
MIDDLE: Final[tuple[Field, ...]] = ("number", "unit", "exact")


def nth(compiler: Compiler, node: alg.Nth) -> ValueRows:
    """The value at a place, in the order of rows or by value; equal values count once where the
    order is by value.
    """
    rows = compiler.values(node.values)
    c, xs, g, k = rows.cell, compiler.name("rows"), compiler.name("g"), compiler.name("k")
    texts = f"CASE WHEN {c.key} IS NULL THEN '' ELSE {c.ordered} END"
    rank = f"CASE {c.kind} WHEN 'quantity' THEN 1 WHEN 'time' THEN 2 WHEN 'unknown' THEN 4 ELSE 3 END"
    exact = f"CASE WHEN {c.kind} = 'quantity' THEN coalesce({c.order}, '1') ELSE '' END, " if compiler.inexact else ""
    # The name of an entity is a text, which others may have as well.
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


# -- times -----------------------------------------------------------------------------------------


def clip(compiler: Compiler, node: alg.Clip) -> ValueRows:
    """Times cut to what satisfies a comparison with at least one of the limits; those that stay
    whole stay what they are.
    """
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
    """Sorted intervals as few as cover the same time."""
    y, acc = compiler.name("y"), compiler.name("acc")
    later = f"CASE WHEN {y}[1] > {acc}[-1][1] THEN {y}[1] ELSE {acc}[-1][1] END"
    joined = f"{acc}[0..size({acc}) - 1] + [[{acc}[-1][0], {later}]]"
    step = f"CASE WHEN size({acc}) > 0 AND {y}[0] <= {acc}[-1][1] THEN {joined} ELSE {acc} + [{y}] END"
    return compiler.let([], f"reduce({acc} = [], {y} IN {times} | {step})", "t")


def precision_of(compiler: Compiler, start: str, end: str) -> str:
    """The precision of an interval: a year, a month or a day where it is exactly that, else a span."""
    first, last = compiler.constant(OPEN_START), compiler.constant(UNKNOWN_END)
    a, b = (f"datetime({{epochSeconds: {one}}})" for one in (start, end))
    return (
        f"CASE WHEN {start} <= {first} OR {end} >= {last} THEN {Precision.SPAN.value} "
        f"WHEN {end} - {start} > {366 * DAY_SECONDS} OR {start} % {DAY_SECONDS} <> 0 OR {end} % {DAY_SECONDS} <> 0 THEN 0 "
        f"WHEN {end} - {start} = {DAY_SECONDS} THEN {Precision.DAY.value} "
        f"WHEN {a}.day <> 1 OR {b}.day <> 1 THEN 0 "
        f"WHEN {a}.month = 1 AND {a} + duration({{years: 1}}) = {b} THEN {Precision.YEAR.value} "
        f"WHEN {a} + duration({{months: 1}}) = {b} THEN {Precision.MONTH.value} ELSE 0 END"
    )


def bound(compiler: Compiler, node: alg.Bound) -> ValueRows:
    """The first or last year, month or day of intervals, as exact as their known ends are; other
    values stay.
    """
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


# -- choice ----------------------------------------------------------------------------------------


def truth(compiler: Compiler, node: alg.Values | alg.Scalar) -> str:
    """A truth value, bound once: a count that is not 0, or something that is neither 0 nor a word
    for no.
    """
    if isinstance(node, alg.Values):
        rows = compiler.values(node)
        cells = compiler.let(rows.clauses, f"collect({rows.cell.whole})")
        first = Bound(f"{cells}[0]")
        word = f"{first.kind} = 'text' AND toLower({first.text}) IN ['no', 'false', '']"
        return compiler.let([], f"size({cells}) > 0 AND NOT (size({cells}) = 1 AND {word})", "truth")
    clauses, expression = scalar(compiler, node)
    found = expression if isinstance(node, alg.Exists) else f"{expression} > 0"
    return compiler.let(clauses, found, "truth")


def scalar(compiler: Compiler, node: alg.Scalar) -> tuple[list[str], str]:
    """Clauses and what aggregates from them."""
    return _BY_TYPE[type(node)](compiler, node)


def count(compiler: Compiler, node: alg.Count) -> tuple[list[str], str]:
    """How many entities there are, or distinct texts."""
    if isinstance(node.of, alg.Entities):
        rows = compiler.entities(node.of)
        return rows.clauses, f"count({rows.variable})"
    bag = compiler.values(node.of)
    return bag.clauses, f"count(DISTINCT {shown_text(bag.cell)})"


def exists(compiler: Compiler, node: alg.Exists) -> tuple[list[str], str]:
    """Whether there is any fact."""
    facts = compiler.facts(node.facts)
    return [*facts.render(), f"WITH {facts.fact} LIMIT 1"], f"count({facts.fact}) > 0"


def some(compiler: Compiler, node: alg.AnySatisfies) -> tuple[list[str], str]:
    """How many values satisfy a test."""
    values = compiler.values(node.values.values if isinstance(node.values, alg.Distinct) else node.values)
    return values.clauses, f"count(CASE WHEN {condition(compiler, node.condition, values.cell, values.ref)} THEN 1 END)"


#: What becomes of each scalar; `None` where the client works it out (`support`).
SCALARS: Final[ScalarTable[Compiler, [], tuple[list[str], str]]] = {
    "Count": count,
    "Sum": None,
    "Mean": None,
    "Median": None,
    "AnySatisfies": some,
    "Exists": exists,
}
_BY_TYPE: Final = by_type(SCALARS)


def choose(compiler: Compiler, node: alg.Choose) -> ValueRows:
    """One of two bags by a test."""
    test = truth(compiler, node.condition)
    parts = [compiler.values(node.then), compiler.values(node.otherwise)]
    return together(compiler, parts, [test, f"NOT {test}"])
