"""Operators that give sets of entities, as clauses that leave each entity once."""

from __future__ import annotations

from condgraph.cypher import paths
from condgraph.cypher.compiler import ENTITIES, Compiler, FactRows, Rows, Within
from condgraph.engine import algebra as alg
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind


def every(compiler: Compiler, node: alg.Every) -> Rows:
    """All entities of the kinds; of one source those that are rows of it or subject or object of its statements."""
    e = compiler.name("e")
    if node.source is None:
        pattern, inside = paths.entity(e)
        kinds = compiler.parameter([int(kind) for kind in node.kinds])
        return Rows([f"MATCH {pattern} WHERE {inside} AND {paths.of_kinds(e, kinds)}"], e)
    source = compiler.parameter(node.source)
    pattern, inside = paths.row(e, source)
    if node.kinds == (EntityKind.ROW,) and node.source in compiler.tabular:
        return Rows([f"MATCH {pattern}{paths.by_row(e)} WHERE {inside}"], e)
    f, o = compiler.name("f"), compiler.name("o")
    subject, of_graph = paths.entity(e)
    other, _ = paths.entity(o)
    stands = paths.in_source(source, f, o)
    body = "\nUNION\n".join(
        [
            f"MATCH {pattern} WHERE {inside} RETURN {e}",
            f"MATCH {subject}-[{f}]->({o}) WHERE {of_graph} AND {paths.is_statement(f)} AND {stands} RETURN {e}",
            f"MATCH {other}-[{f}]->{subject} WHERE {of_graph} AND {paths.is_statement(f)} AND {source} IN {f}.sources RETURN {e}",
        ]
    )
    kinds = compiler.parameter([int(kind) for kind in node.kinds])
    return Rows([compiler.call(body), f"WITH {e} WHERE {paths.of_kinds(e, kinds)}"], e)


def named(compiler: Compiler, node: alg.Named) -> Rows:
    """Entities by exact name."""
    e = compiler.name("e")
    pattern, _ = paths.entity(e)
    return Rows([f"MATCH {pattern} WHERE {paths.named(e, compiler.one_of(node.names))}"], e)


def known(compiler: Compiler, node: alg.Known) -> Rows:
    """Entities by id."""
    e = compiler.name("e")
    pattern, test = paths.entity_by_id(e, compiler.parameter(list(node.ids)))
    return Rows([f"MATCH {pattern} WHERE {test}"], e)


def members(compiler: Compiler, node: alg.Members) -> Rows:
    """Entities in any of the concepts."""
    e = compiler.name("e")
    if isinstance(node.concepts, alg.Named):
        c = compiler.name("c")
        test = paths.named(c, compiler.one_of(node.concepts.names))
        clauses = [f"MATCH {paths.concept(c)} WHERE {test}"]
    else:
        of = compiler.entities(node.concepts)
        c, clauses = of.variable, of.clauses
    kept = f" WHERE {paths.is_member(e)}" if compiler.schema.concept_members else ""
    reached = f"MATCH {paths.members(e, c, ':Entity')}{kept}"
    return Rows([*clauses, reached, f"WITH DISTINCT {e}"], e)


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
    # A `UNION` that makes them distinct would compare the lists that the subquery imports with every row.
    return Rows([compiler.call("\nUNION ALL\n".join(branches))], e)


def intersect(compiler: Compiler, node: alg.Intersect) -> Rows:
    """Entities in all parts: names, kinds and concepts are tested on the entities of the others, which are counted."""
    tested = [part for part in node.parts if _testable(part)]
    others = [part for part in node.parts if not _testable(part)]
    if not others:
        tested.sort(key=lambda part: isinstance(part, alg.Every) - isinstance(part, alg.Named | alg.Known))
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
    """Keep the entities that satisfy a condition: in the clause that makes them distinct, where there is one."""
    last = f"WITH DISTINCT {e}"
    if clauses and clauses[-1] == last:
        clauses[-1] = f"{last} WHERE {conditions}"
    else:
        clauses.append(f"WITH {e} WHERE {conditions}")


def _joined(compiler: Compiler, part: alg.Entities, tested: list[alg.Entities]) -> tuple[Rows, alg.Entities | None]:
    """The entities of a part, and which of some sets they are joined with already: a concept's members, where that costs less."""
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
            return _reached(facts), concept
        facts.within = None
    return _reached(facts), None


def _testable(part: alg.Entities) -> bool:
    """Whether membership in a set is a condition on the entity alone."""
    if isinstance(part, alg.Members):
        return isinstance(part.concepts, alg.Named)
    return isinstance(part, alg.Named | alg.Known) or (isinstance(part, alg.Every) and part.source is None)


def membership(compiler: Compiler, part: alg.Entities, e: str) -> str:
    """A condition: an entity is in a set (see `_testable`; other sets are bound as lists)."""
    if isinstance(part, alg.Members) and isinstance(part.concepts, alg.Named):
        c = compiler.name("c")
        test = paths.named(c, compiler.one_of(part.concepts.names))
        exists = f"EXISTS {{ MATCH {paths.members(e, f'{c}:Concept')} WHERE {test} }}"
        return f"{paths.is_member(e)} AND {exists}" if compiler.schema.concept_members else exists
    if isinstance(part, alg.Named):
        return paths.named(e, compiler.one_of(part.names))
    if isinstance(part, alg.Known):
        return f"{e}.id IN {compiler.parameter(list(part.ids))}"
    if isinstance(part, alg.Every) and part.source is None:
        return paths.of_kinds(e, compiler.parameter([int(kind) for kind in part.kinds]))
    return f"{e} IN {compiler.set_of(part)}"


def within(compiler: Compiler, of: alg.Members, e: str) -> Within:
    """Membership in the concepts of some names, of an entity that a MATCH binds.

    Two concepts of a name could give an entity twice, so that only one is joined with.
    """
    assert isinstance(of.concepts, alg.Named)
    schema, names = compiler.schema, of.concepts.names
    c = compiler.name("c")
    test = paths.named(c, compiler.one_of(names))
    condition = f"EXISTS {{ MATCH {paths.members(e, f'{c}:Concept')} WHERE {test} }}"
    if schema.concept_members:
        return Within(f"{paths.is_member(e)} AND {condition}", [], "", 0.0)
    clauses = [f"MATCH {paths.concept(c)} WHERE {test}", f"MATCH {paths.members(e, c)}"]
    one = len(names) == 1 and names[0] in schema.single
    return Within(condition, clauses if one else [], f" USING JOIN ON {e}", compiler.estimates.members(of))


def minus(compiler: Compiler, node: alg.Minus) -> Rows:
    """Entities of the left that are not in the right."""
    condition = membership(compiler, node.right, "{e}")
    left = compiler.entities(node.left)
    e = left.variable
    return Rows([*left.clauses, f"WITH {e} WHERE NOT ({condition.replace('{e}', e)})"], e)


def neighbour(compiler: Compiler, node: alg.Neighbour) -> Rows:
    """Rows at a distance in the order of their source."""
    of = compiler.entities(node.of)
    if node.distance == 0:
        return Rows([*of.clauses, f"WITH {of.variable} WHERE {of.variable}.row IS NOT NULL"], of.variable)
    e, x = of.variable, compiler.name("e")
    pattern, inside = paths.row(x, f"{e}.source")
    sign, way = (">", "") if node.distance > 0 else ("<", " DESC")
    skipped = f" SKIP {abs(node.distance) - 1}" if abs(node.distance) > 1 else ""
    body = (
        f"MATCH {pattern}{paths.by_row(x)} WHERE {inside} AND {x}.row {sign} {e}.row\n"
        f"WITH {x} ORDER BY {x}.source{way}, {x}.row{way}{skipped} LIMIT 1\nRETURN {x}"
    )
    return Rows([*of.clauses, compiler.call(body, e), f"WITH DISTINCT {x}"], x)


def reached(compiler: Compiler, node: alg.Reached) -> Rows:
    """The distinct ends of the facts."""
    return _reached(compiler.facts(node.facts))


def _reached(facts: FactRows) -> Rows:
    if facts.reach == "object":
        if facts.family == "attribute":
            facts.conditions.append("false")
        elif facts.family == "any":
            facts.conditions.append(f"{facts.thing}:Entity")
    return Rows([*facts.render(), f"WITH DISTINCT {facts.reached}"], facts.reached)


def holders(compiler: Compiler, node: alg.Holders) -> Rows:
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
    pattern, by_key = paths.entity_by_key(e, k)
    keys = f"collect(DISTINCT CASE WHEN {c}.kind = 'text' THEN {c}.key END)"
    if rows.ref is None:
        return Rows([*rows.clauses, f"WITH {keys} AS ks", f"UNWIND ks AS {k}", f"MATCH {pattern} WHERE {by_key}"], e)
    # A name stands for the entity that it was read from, other texts for every entity of that name.
    texts = f"collect(DISTINCT CASE WHEN {c}.kind = 'text' AND {rows.ref} IS NULL THEN {c}.key END)"
    refs, ks = compiler.name("s"), compiler.name("s")
    body = f"UNWIND {refs} AS {e} RETURN {e}\nUNION ALL\nUNWIND {ks} AS {k} MATCH {pattern} WHERE {by_key} RETURN {e}"
    clauses = [f"WITH collect(DISTINCT {rows.ref}) AS {refs}, {texts} AS {ks}", compiler.call(body, refs, ks), f"WITH DISTINCT {e}"]
    return Rows([*rows.clauses, *clauses], e)


def namesakes(compiler: Compiler, node: alg.Namesakes) -> Rows:
    """All entities that share a name with these."""
    of = compiler.entities(node.of)
    k, e = compiler.name("k"), compiler.name("e")
    pattern, by_key = paths.entity_by_key(e, k)
    return Rows([*of.clauses, f"WITH DISTINCT {of.variable}.key AS {k}", f"MATCH {pattern} WHERE {by_key}", f"WITH {e}"], e)


def best(compiler: Compiler, node: alg.Best) -> Rows:
    """The entities with the best value of a key, all ties; the most frequent type and unit competes."""
    facts = compiler.facts(alg.Scan(node.of, (node.key,), family="attribute"))
    value, e = facts.thing, facts.subject
    of_one = compiler.schema.attribute_kinds(node.key)
    if len(of_one) == 1 and next(iter(of_one))[0] in (Kind.QUANTITY, Kind.TIME) and not compiler.inexact:
        # Nothing has to be chosen among types and units, or left out.
        time = next(iter(of_one))[0] is Kind.TIME
        key, way = ("end", " DESC") if node.direction == "largest" else ("start", "")
        x, tied = compiler.name("x"), compiler.name("tied")
        ordered = f"WITH {value}.{key if time else 'number'} AS {x}, collect({e}) AS {tied} ORDER BY {x}{way} LIMIT 1"
        return Rows([*facts.render(), ordered, f"UNWIND {tied} AS {e}", f"WITH DISTINCT {e}"], e)
    facts.conditions.append(f"{value}.kind IN ['quantity', 'time']")
    side = "end" if node.direction == "largest" else "start"
    number = f"{value}.number"
    if compiler.inexact:
        number = f"CASE WHEN {value}.number IS NOT NULL THEN [{value}.number, coalesce({value}.order, '1')] END"
    rows, top, row = compiler.name("rows"), compiler.name("best"), compiler.name("row")
    choose = "max" if node.direction == "largest" else "min"
    return Rows(
        [
            *facts.render(),
            f"WITH {value}.kind AS kind, CASE {value}.unit WHEN '1' THEN '' ELSE coalesce({value}.unit, '') END AS unit, "
            f"count(*) AS times, collect([{e}, coalesce({number}, {_wrapped(compiler, f'{value}.{side}')})]) AS {rows} "
            # The most frequent type and unit competes; ties: times first, then the unit by name.
            "ORDER BY times DESC, kind DESC, unit LIMIT 1",
            f"UNWIND {rows} AS {row} WITH {rows}, {choose}({row}[1]) AS {top}",
            f"UNWIND {rows} AS {row} WITH {row}, {top} WHERE {row}[1] = {top}",
            f"WITH DISTINCT {row}[0] AS {e}",
        ],
        e,
    )


def _wrapped(compiler: Compiler, expression: str) -> str:
    return f"[{expression}]" if compiler.inexact else expression


ENTITIES.update(
    {
        alg.Every: every,
        alg.Known: known,
        alg.Named: named,
        alg.Members: members,
        alg.Union: union,
        alg.Intersect: intersect,
        alg.Minus: minus,
        alg.Neighbour: neighbour,
        alg.Reached: reached,
        alg.Holders: holders,
        alg.Referents: referents,
        alg.Namesakes: namesakes,
        alg.Best: best,
    }
)
