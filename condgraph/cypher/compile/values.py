"""Operators that give bags of values: a row for each value, with the entity that carries it and the
entity that it is.
"""

from __future__ import annotations

from condgraph.cypher.compile.compiler import Compiler, FactRows, ValueRows
from condgraph.cypher.compile.conditions import condition, identity
from condgraph.cypher.compile.facts import written
from condgraph.cypher.layout.cells import Bound
from condgraph.engine import algebra as alg
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START


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
    """Clauses that leave a row for each qualifier of the facts that passes a test."""
    test = f" WHERE {test}" if test else ""
    found = compiler.layout.qualifiers(facts.fact, facts.thing, facts.family, q)
    if len(found) == 1:
        return [*facts.render(), f"{found[0]}{test}"]
    body = "\nUNION ALL\n".join(f"{clause}{test} RETURN {q}" for clause in found)
    return [*facts.render(), compiler.call(body, facts.fact, facts.thing)]


def _of_qualifiers(compiler: Compiler, facts: FactRows, clauses: list[str], q: str) -> ValueRows:
    r = None
    if compiler.refers:
        r = compiler.name("r")
        clauses = [*clauses, compiler.layout.refer(q, r)]
    return ValueRows(clauses, compiler.layout.qualifier(q), facts.subject, r, _place(compiler, facts))


def _place(compiler: Compiler, facts: FactRows) -> str:
    return compiler.layout.place(facts.fact, facts.value)


def qualifiers(compiler: Compiler, node: alg.Qualifiers) -> ValueRows:
    """The values of one qualifier key, or of all."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    test = "" if node.key is None else f"{compiler.layout.qualifier_name(q)} = {compiler.parameter(node.key)}"
    return _of_qualifiers(compiler, facts, qualified(compiler, facts, q, test), q)


def validity(compiler: Compiler, node: alg.Validity) -> ValueRows:
    """When each fact holds: intervals, or the starts or ends as they were written."""
    facts, layout = compiler.facts(node.facts), compiler.layout
    f = facts.fact
    if node.part != "interval":
        q = compiler.name("q")
        clauses = qualified(compiler, facts, q, written(compiler, facts, q, node.part))
        return ValueRows(clauses, layout.qualifier(q), facts.subject, None, _place(compiler, facts))
    since, until = layout.validity(f)
    facts.conditions.append(f"{since} <> {compiler.constant(UNKNOWN_START)} AND {until} <> {compiler.constant(UNKNOWN_END)}")
    c, n = compiler.name("c"), compiler.name("n")
    kept = f"WITH {layout.validity_cell(f)} AS {c}, {facts.subject}, {_place(compiler, facts)} AS {n}"
    return ValueRows([*facts.render(), kept], Bound(c), facts.subject, None, n)


def predicates(compiler: Compiler, node: alg.Predicates) -> ValueRows:
    """The predicate of each fact."""
    facts = compiler.facts(node.facts)
    p = compiler.name("p")
    return _texts(compiler, facts, [*facts.render(), f"WITH *, {compiler.layout.predicate(facts.fact)} AS {p}"], p)


def qualifier_keys(compiler: Compiler, node: alg.QualifierKeys) -> ValueRows:
    """The qualifier keys of each fact."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    return _texts(compiler, facts, qualified(compiler, facts, q, ""), compiler.layout.qualifier_name(q))


def _texts(compiler: Compiler, facts: FactRows, clauses: list[str], text: str) -> ValueRows:
    c, n = compiler.name("c"), compiler.name("n")
    kept = f"WITH {compiler.layout.text_cell(text)} AS {c}, {facts.subject}, {_place(compiler, facts)} AS {n}"
    return ValueRows([*clauses, kept], Bound(c), facts.subject, None, n)


def names(compiler: Compiler, node: alg.Names) -> ValueRows:
    """The name of each entity."""
    rows, layout = compiler.entities(node.entities), compiler.layout
    e, c, r = rows.variable, compiler.name("c"), compiler.name("r")
    kept = f"WITH {layout.name_cell(e)} AS {c}, {e}, {e} AS {r}"
    return ValueRows([*rows.clauses, kept], Bound(c), e, r, f"coalesce({layout.row(e)}, 0)")


def row_numbers(compiler: Compiler, node: alg.RowNumbers) -> ValueRows:
    """The position of each row in its source."""
    rows = compiler.entities(node.entities)
    e, c = rows.variable, compiler.name("c")
    row = compiler.layout.row(e)
    return ValueRows([*rows.clauses, f"WITH {compiler.layout.row_cell(e)} AS {c}, {e} WHERE {row} > 0"], Bound(c), e, None, row)


def keep(compiler: Compiler, node: alg.FilterValues) -> ValueRows:
    """The values that satisfy the test."""
    rows = compiler.values(node.values)
    return ValueRows(
        [*rows.clauses, f"WITH * WHERE {condition(compiler, node.condition, rows.cell, rows.ref)}"],
        rows.cell,
        rows.holder,
        rows.ref,
        rows.place,
    )


def distinct(compiler: Compiler, node: alg.Distinct) -> ValueRows:
    """Each value once; of several carriers the one that comes first by name stays."""
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
    """The bags one after the other."""
    return together(compiler, [compiler.values(part) for part in node.parts])


def together(compiler: Compiler, parts: list[ValueRows], conditions: list[str] | None = None) -> ValueRows:
    """Bags one after the other, each under a condition of its own."""
    c, h, r, n = (compiler.name(prefix) for prefix in "chrn")
    branches = []
    for at, rows in enumerate(parts):
        clauses = list(rows.clauses) if conditions is None else [f"WITH * WHERE {conditions[at]}", *rows.clauses]
        held, ref = rows.holder or "null", rows.ref or "null"
        kept = f"RETURN {rows.cell.whole} AS {c}, {held} AS {h}, {ref} AS {r}, {rows.place or '0'} AS {n}"
        branches.append("\n".join([*clauses, kept]))
    carried, refers = any(rows.holder for rows in parts), any(rows.ref for rows in parts)
    return ValueRows([compiler.call("\nUNION ALL\n".join(branches))], Bound(c), h if carried else None, r if refers else None, n)


def given(compiler: Compiler, node: alg.Constants) -> ValueRows:
    """Values written in the program."""
    c = compiler.name("c")
    return ValueRows([f"UNWIND {compiler.parameter([compiler.cell_of(value) for value in node.values])} AS {c}"], Bound(c))


def shown(compiler: Compiler, node: alg.Shown) -> ValueRows:
    """The values; the rows stay with the answer."""
    return compiler.values(node.values)
