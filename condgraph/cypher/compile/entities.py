"""Operators that give sets of entities, as clauses that leave each entity once."""

from __future__ import annotations

from condgraph.cypher.compile.competing import most_frequent, unit_name
from condgraph.cypher.compile.compiler import Compiler, FactRows, Rows, Within
from condgraph.engine import algebra as alg
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind


def every(compiler: Compiler, node: alg.AllEntities) -> Rows:
    """All entities of the kinds; of one source those that are rows of it or subject or object of
    its statements, or its own rows.
    """
    e, layout = compiler.name("e"), compiler.layout
    if node.source is None:
        return Rows(layout.every(e, compiler.parameter([int(kind) for kind in node.kinds])), e)
    source = compiler.parameter(node.source)
    if node.own or (node.kinds == (EntityKind.ROW,) and node.source in compiler.tabular):
        pattern, inside = layout.rows(e, source)
        return Rows([f"MATCH {pattern}{layout.by_row(e)} WHERE {inside}"], e)
    body = "\nUNION\n".join(layout.standing_in(compiler, e, source))
    kinds = compiler.parameter([int(kind) for kind in node.kinds])
    return Rows([compiler.call(body), f"WITH {e} WHERE {layout.of_kinds(e, kinds)}"], e)


def named(compiler: Compiler, node: alg.ByName) -> Rows:
    """Entities by exact name."""
    e = compiler.name("e")
    return Rows(compiler.layout.by_name(e, compiler.one_of(node.names)), e)


def known(compiler: Compiler, node: alg.ById) -> Rows:
    """Entities by id."""
    e, layout = compiler.name("e"), compiler.layout
    handles = compiler.parameter([layout.handle(ident) for ident in node.ids])
    return Rows(layout.by_id(e, f"IN {handles}"), e)


def members(compiler: Compiler, node: alg.Members) -> Rows:
    """Entities in any of the concepts."""
    e = compiler.name("e")
    if isinstance(node.concepts, alg.ByName):
        return Rows(compiler.layout.members(compiler, e, node.concepts.names), e)
    of = compiler.entities(node.concepts)
    return Rows([*of.clauses, *compiler.layout.members_of(compiler, e, of.variable)], e)


def union(compiler: Compiler, node: alg.Union) -> Rows:
    """Entities in any part."""
    rows = _together(compiler, node.parts)
    return Rows([*rows.clauses, f"WITH DISTINCT {rows.variable}"], rows.variable)


def _together(compiler: Compiler, parts: tuple[alg.Entities, ...]) -> Rows:
    """The entities of all parts, as often as they are in one."""
    e = compiler.name("e")
    branches = []
    for part in parts:
        rows = compiler.entities(part)
        branches.append("\n".join([*rows.clauses, f"RETURN {rows.variable} AS {e}"]))
    # A `UNION` that makes them distinct would compare the lists that the subquery imports with
    # every row.
    return Rows([compiler.call("\nUNION ALL\n".join(branches))], e)


def intersect(compiler: Compiler, node: alg.Intersect) -> Rows:
    """Entities in all parts: names, kinds and concepts are tested on the entities of the others,
    which are counted.
    """
    tested = [part for part in node.parts if _testable(part)]
    others = [part for part in node.parts if not _testable(part)]
    if not others:
        tested.sort(key=lambda part: isinstance(part, alg.AllEntities) - isinstance(part, alg.ByName | alg.ById))
        others, tested = tested[:1], tested[1:]
    if len(others) == 1:
        rows, joined = _joined(compiler, others[0], tested)
        tested = [part for part in tested if part is not joined]
        clauses = list(rows.clauses)
    else:
        rows = _together(compiler, tuple(others))
        clauses = [*rows.clauses, f"WITH {rows.variable}, count(*) AS times WHERE times = {len(others)}"]
    if tested:
        conditions = " AND ".join(membership(compiler, part, rows.variable) for part in tested)
        _ask(clauses, rows.variable, conditions)
    return Rows(clauses, rows.variable)


def _ask(clauses: list[str], e: str, conditions: str) -> None:
    """Keep the entities that satisfy a condition: in the clause that makes them distinct, where
    there is one.
    """
    last = f"WITH DISTINCT {e}"
    if clauses and clauses[-1] == last:
        clauses[-1] = f"{last} WHERE {conditions}"
    else:
        clauses.append(f"WITH {e} WHERE {conditions}")


def _joined(compiler: Compiler, part: alg.Entities, tested: list[alg.Entities]) -> tuple[Rows, alg.Entities | None]:
    """The entities of a part, and which of some sets they are joined with already: a concept's
    members, where that costs less.
    """
    concept = next((other for other in tested if isinstance(other, alg.Members) and not compiler.is_shared(other)), None)
    if concept is None or not isinstance(part, alg.Reached) or compiler.is_shared(part) or compiler.is_shared(part.facts):
        return compiler.entities(part), None
    facts = compiler.facts(part.facts)
    # In one graph of patterns, and with the entities not bound before.
    plain = facts.pattern is not None and facts.within is None and all(clause.startswith("MATCH ") for clause in facts.clauses)
    anchored = any(f"({facts.reached}" in clause for clause in facts.clauses)
    if plain and not anchored:
        facts.within = within(compiler, concept, facts.reached)
        if facts.within.joins(facts.rows):
            return _reached(compiler, facts), concept
        facts.within = None
    return _reached(compiler, facts), None


def _testable(part: alg.Entities) -> bool:
    """Whether membership in a set is a condition on the entity alone."""
    if isinstance(part, alg.Members):
        return isinstance(part.concepts, alg.ByName)
    return isinstance(part, alg.ByName | alg.ById) or (isinstance(part, alg.AllEntities) and part.source is None)


def membership(compiler: Compiler, part: alg.Entities, e: str) -> str:
    """A condition: an entity is in a set (see `_testable`; other sets are bound as lists)."""
    layout = compiler.layout
    if isinstance(part, alg.Members) and isinstance(part.concepts, alg.ByName):
        return layout.within(compiler, e, part.concepts.names)[0]
    if isinstance(part, alg.ByName):
        return layout.named(e, compiler.one_of(part.names))
    if isinstance(part, alg.ById):
        return layout.has_id(e, compiler.parameter(list(part.ids)))
    if isinstance(part, alg.AllEntities) and part.source is None:
        return layout.of_kinds(e, compiler.parameter([int(kind) for kind in part.kinds]))
    return f"{e} IN {compiler.set_of(part)}"


def within(compiler: Compiler, of: alg.Members, e: str) -> Within:
    """Membership in the concepts of some names, of an entity that a MATCH binds."""
    assert isinstance(of.concepts, alg.ByName)
    condition, clauses = compiler.layout.within(compiler, e, of.concepts.names)
    return Within(condition, clauses, f" USING JOIN ON {e}", compiler.estimates.members(of), of.concepts.names)


def minus(compiler: Compiler, node: alg.Minus) -> Rows:
    """Entities of the left that are not in the right."""
    condition = membership(compiler, node.right, "{e}")
    left = compiler.entities(node.left)
    e = left.variable
    return Rows([*left.clauses, f"WITH {e} WHERE NOT ({condition.replace('{e}', e)})"], e)


def neighbour(compiler: Compiler, node: alg.Neighbour) -> Rows:
    """Rows at a distance in the order of their source."""
    of, layout = compiler.entities(node.of), compiler.layout
    if node.distance == 0:
        return Rows([*of.clauses, f"WITH {of.variable} WHERE {layout.row(of.variable)} IS NOT NULL"], of.variable)
    e, x = of.variable, compiler.name("e")
    pattern, inside = layout.rows(x, layout.source(e))
    sign, way = (">", "") if node.distance > 0 else ("<", " DESC")
    skipped = f" SKIP {abs(node.distance) - 1}" if abs(node.distance) > 1 else ""
    body = (
        f"MATCH {pattern}{layout.by_row(x)} WHERE {inside} AND {layout.row(x)} {sign} {layout.row(e)}\n"
        f"WITH {x} ORDER BY {layout.source(x)}{way}, {layout.row(x)}{way}{skipped} LIMIT 1\nRETURN {x}"
    )
    return Rows([*of.clauses, compiler.call(body, e), f"WITH DISTINCT {x}"], x)


def reached(compiler: Compiler, node: alg.Reached) -> Rows:
    """The distinct ends of the facts."""
    return _reached(compiler, compiler.facts(node.facts))


def _reached(compiler: Compiler, facts: FactRows) -> Rows:
    if facts.reach == "object":
        if facts.family == "attribute":
            facts.conditions.append("false")
        elif facts.family == "any":
            facts.conditions.append(compiler.layout.is_entity(facts.thing))
    return Rows([*facts.render(), f"WITH DISTINCT {facts.reached}"], facts.reached)


def holders(compiler: Compiler, node: alg.SubjectsOf) -> Rows:
    """The subjects of the statements that carry the values, or the entities whose names they are."""
    rows = compiler.values(node.values)
    if rows.holder is None:
        e = compiler.name("e")
        return Rows([*rows.clauses, f"UNWIND [] AS {e} WITH {e}"], e)
    return Rows([*rows.clauses, f"WITH DISTINCT {rows.holder} WHERE {rows.holder} IS NOT NULL"], rows.holder)


def referents(compiler: Compiler, node: alg.Referents) -> Rows:
    """The entities that the values are, or whose name they are."""
    rows = compiler.values(node.values)
    c, e, k = rows.cell, compiler.name("e"), compiler.name("k")
    found = compiler.layout.by_name(e, f"= {k}")
    keys = f"collect(DISTINCT CASE WHEN {c.kind} = 'text' THEN {c.key} END)"
    if rows.ref is None:
        return Rows([*rows.clauses, f"WITH {keys} AS ks", f"UNWIND ks AS {k}", *found], e)
    # A name stands for the entity that it was read from, other texts for every entity of that name.
    texts = f"collect(DISTINCT CASE WHEN {c.kind} = 'text' AND {rows.ref} IS NULL THEN {c.key} END)"
    refs, ks = compiler.name("s"), compiler.name("s")
    body = f"UNWIND {refs} AS {e} RETURN {e}\nUNION ALL\nUNWIND {ks} AS {k} {' '.join(found)} RETURN {e}"
    clauses = [f"WITH collect(DISTINCT {rows.ref}) AS {refs}, {texts} AS {ks}", compiler.call(body, refs, ks), f"WITH DISTINCT {e}"]
    return Rows([*rows.clauses, *clauses], e)


def namesakes(compiler: Compiler, node: alg.SameName) -> Rows:
    """All entities that share a name with these."""
    of = compiler.entities(node.of)
    k, e = compiler.name("k"), compiler.name("e")
    key = compiler.layout.name_key(of.variable)
    found = compiler.layout.by_name(e, f"= {k}")
    return Rows([*of.clauses, f"WITH DISTINCT {key} AS {k}", *found, f"WITH {e}"], e)


def best(compiler: Compiler, node: alg.ArgExtreme) -> Rows:
    """The entities with the best value of a key, all ties; the most frequent type and unit
    competes.
    """
    facts = compiler.facts(alg.Scan(node.of, (node.key,), family="attribute"))
    value, e = facts.cell, facts.subject
    of_one = compiler.schema.attribute_kinds(node.key)
    simple = len(of_one) == 1 and next(iter(of_one))[0] in (Kind.QUANTITY, Kind.TIME)
    if simple and not compiler.inexact and compiler.layout.trusted:
        # Nothing has to be chosen among types and units, or left out.
        time = next(iter(of_one))[0] is Kind.TIME
        key, way = (value.end, " DESC") if node.direction == "largest" else (value.start, "")
        if not time:
            key = value.number
            if compiler.layout.floats:
                # The least of the numbers, or of their opposites: one text for both.
                key, way = f"{key} * {compiler.parameter(-1.0 if node.direction == 'largest' else 1.0)}", ""
        x, tied = compiler.name("x"), compiler.name("tied")
        ordered = f"WITH {key} AS {x}, collect({e}) AS {tied} ORDER BY {x}{way} LIMIT 1"
        return Rows([*facts.render(), ordered, f"UNWIND {tied} AS {e}", f"WITH DISTINCT {e}"], e)
    facts.conditions.append(f"{value.kind} IN ['quantity', 'time']")
    side = value.end if node.direction == "largest" else value.start
    number = value.number
    if compiler.inexact:
        number = f"CASE WHEN {number} IS NOT NULL THEN [{number}, coalesce({value.order}, '1')] END"
    rows, top, row = compiler.name("rows"), compiler.name("best"), compiler.name("row")
    choose = "max" if node.direction == "largest" else "min"
    return Rows(
        [
            *facts.render(),
            f"WITH {value.kind} AS kind, {unit_name(value.unit)} AS unit, "
            f"count(*) AS times, collect([{e}, coalesce({number}, {_wrapped(compiler, side)})]) AS {rows} "
            f"ORDER BY {most_frequent('kind')}",
            f"UNWIND {rows} AS {row} WITH {rows}, {choose}({row}[1]) AS {top}",
            f"UNWIND {rows} AS {row} WITH {row}, {top} WHERE {row}[1] = {top}",
            f"WITH DISTINCT {row}[0] AS {e}",
        ],
        e,
    )


def _wrapped(compiler: Compiler, expression: str) -> str:
    return f"[{expression}]" if compiler.inexact else expression
