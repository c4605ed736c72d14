"""Operators that give bags of values: a row for each value, with the entity that carries it and the entity that it is."""

from __future__ import annotations

from condgraph.cypher import paths
from condgraph.cypher.compile_facts import owners, written
from condgraph.cypher.compile_tests import condition, identity
from condgraph.cypher.compiler import VALUES, Compiler, FactRows, ValueRows, cell_of
from condgraph.engine import algebra as alg
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START


def objects(compiler: Compiler, node: alg.Objects) -> ValueRows:
    """The object of each fact, carried by the statement."""
    facts = compiler.facts(node.facts)
    place = paths.place(facts.fact, facts.value)
    o, s = facts.thing, facts.subject
    if facts.family == "attribute":
        return ValueRows(facts.render(), o, s, None, place)
    c, r = compiler.name("c"), compiler.name("r")
    cell, ref = paths.entity_cell(o), o
    if facts.family == "any":
        cell = f"CASE WHEN {o}:Value THEN properties({o}) ELSE {cell} END"
        ref = f"CASE WHEN {o}:Entity THEN {o} END"
    n = compiler.name("n")
    return ValueRows([*facts.render(), f"WITH {cell} AS {c}, {s}, {ref} AS {r}, {place} AS {n}"], c, s, r, n)


def qualified(compiler: Compiler, facts: FactRows, q: str, test: str) -> list[str]:
    """Clauses that leave a row for each qualifier of the facts that passes a test."""
    test = f" WHERE {test}" if test else ""
    of = owners(facts)
    if len(of) == 1:
        return [*facts.render(), f"MATCH {paths.qualifier(of[0], q)}{test}"]
    body = "\nUNION ALL\n".join(f"MATCH {paths.qualifier(owner, q)}{test} RETURN {q}" for owner in of)
    return [*facts.render(), compiler.call(body, facts.fact, facts.thing)]


def _of_qualifiers(compiler: Compiler, facts: FactRows, clauses: list[str], q: str) -> ValueRows:
    r = None
    if compiler.refers:
        r = compiler.name("r")
        clauses = [*clauses, f"OPTIONAL MATCH {paths.referred(q, r)}"]
    return ValueRows(clauses, q, facts.subject, r, paths.place(facts.fact, facts.value))


def qualifiers(compiler: Compiler, node: alg.Qualifiers) -> ValueRows:
    """The values of one qualifier key, or of all."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    test = "" if node.key is None else f"{q}.name = {compiler.parameter(node.key)}"
    return _of_qualifiers(compiler, facts, qualified(compiler, facts, q, test), q)


def validity(compiler: Compiler, node: alg.Validity) -> ValueRows:
    """When each fact holds: intervals, or the starts or ends as they were written."""
    facts = compiler.facts(node.facts)
    f = facts.fact
    if node.part != "interval":
        q = compiler.name("q")
        clauses = qualified(compiler, facts, q, written(compiler, facts, q, node.part))
        return ValueRows(clauses, q, facts.subject, None, paths.place(f, facts.value))
    facts.conditions.append(f"{f}.since <> {compiler.constant(UNKNOWN_START)} AND {f}.until <> {compiler.constant(UNKNOWN_END)}")
    c, n = compiler.name("c"), compiler.name("n")
    kept = f"WITH {paths.validity_cell(f)} AS {c}, {facts.subject}, {paths.place(f, facts.value)} AS {n}"
    return ValueRows([*facts.render(), kept], c, facts.subject, None, n)


def predicates(compiler: Compiler, node: alg.Predicates) -> ValueRows:
    """The predicate of each fact."""
    facts = compiler.facts(node.facts)
    p = compiler.name("p")
    return _texts(compiler, facts, [*facts.render(), f"WITH *, {paths.predicate_name(facts.fact)} AS {p}"], p)


def qualifier_keys(compiler: Compiler, node: alg.QualifierKeys) -> ValueRows:
    """The qualifier keys of each fact."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    return _texts(compiler, facts, qualified(compiler, facts, q, ""), f"{q}.name")


def _texts(compiler: Compiler, facts: FactRows, clauses: list[str], text: str) -> ValueRows:
    c, n = compiler.name("c"), compiler.name("n")
    kept = f"WITH {paths.text_cell(text)} AS {c}, {facts.subject}, {paths.place(facts.fact, facts.value)} AS {n}"
    return ValueRows([*clauses, kept], c, facts.subject, None, n)


def names(compiler: Compiler, node: alg.Names) -> ValueRows:
    """The name of each entity."""
    rows = compiler.entities(node.entities)
    e, c, r = rows.variable, compiler.name("c"), compiler.name("r")
    return ValueRows([*rows.clauses, f"WITH {paths.name_cell(e)} AS {c}, {e}, {e} AS {r}"], c, e, r, f"coalesce({e}.row, 0)")


def row_numbers(compiler: Compiler, node: alg.RowNumbers) -> ValueRows:
    """The position of each row in its source."""
    rows = compiler.entities(node.entities)
    e, c = rows.variable, compiler.name("c")
    return ValueRows([*rows.clauses, f"WITH {paths.row_cell(e)} AS {c}, {e} WHERE {e}.row > 0"], c, e, None, f"{e}.row")


def keep(compiler: Compiler, node: alg.Keep) -> ValueRows:
    """The values that satisfy the test."""
    rows = compiler.values(node.values)
    return ValueRows(
        [*rows.clauses, f"WITH * WHERE {condition(compiler, node.test, rows.cell, rows.ref)}"],
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
    key = f"[{identity(c)}, {c}.precision, CASE WHEN {c}.kind = 'entity' THEN {c}.id END]"
    if rows.holder is not None:
        clauses.append(f"WITH * ORDER BY {rows.holder}.name, {rows.holder}.id")
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
        kept = f"RETURN {rows.cell} AS {c}, {rows.holder or 'null'} AS {h}, {rows.ref or 'null'} AS {r}, {rows.place or '0'} AS {n}"
        branches.append("\n".join([*clauses, kept]))
    held, refers = any(rows.holder for rows in parts), any(rows.ref for rows in parts)
    return ValueRows([compiler.call("\nUNION ALL\n".join(branches))], c, h if held else None, r if refers else None, n)


def given(compiler: Compiler, node: alg.Given) -> ValueRows:
    """Values written in the program."""
    c = compiler.name("c")
    return ValueRows([f"UNWIND {compiler.parameter([cell_of(value) for value in node.values])} AS {c}"], c)


def shown(compiler: Compiler, node: alg.Shown) -> ValueRows:
    """The values; the rows stay with the answer."""
    return compiler.values(node.values)


VALUES.update(
    {
        alg.Objects: objects,
        alg.Qualifiers: qualifiers,
        alg.Validity: validity,
        alg.Predicates: predicates,
        alg.QualifierKeys: qualifier_keys,
        alg.Names: names,
        alg.RowNumbers: row_numbers,
        alg.Keep: keep,
        alg.Distinct: distinct,
        alg.Concat: concat,
        alg.Given: given,
        alg.Shown: shown,
    }
)
