"""Operators that give sets of entities or of statements."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Final

from condgraph.cypher.compile.compiler import OUTWARD, Compiler, ConceptMembership, FactRows, Rows, asks_which, kinds_matter, share
from condgraph.cypher.compile.conditions import condition, keys_of, most_frequent, span_condition, unit_name
from condgraph.cypher.layout.base import Match, ScanRequest
from condgraph.engine import algebra as alg
from condgraph.engine.algebra.tables import EntityTable, FactTable
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, EntityKind
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START, Kind, Quantity, Time

# -- Entities ----------------------------------------------------------------------------------------
# Clauses that leave each entity once.


def every(compiler: Compiler, node: alg.AllEntities) -> Rows:
    """All entities of some kinds; with a source, its own rows, or these and the ends of its statements."""
    e, layout = compiler.name("e"), compiler.layout
    if node.source is None:
        return Rows(layout.every(e, compiler.parameter([int(kind) for kind in node.kinds])), e)
    source = compiler.parameter(node.source)
    if node.own or (node.kinds == (EntityKind.ROW,) and node.source in compiler.tabular):
        pattern, inside = layout.rows(e, source)
        return Rows([f"MATCH {pattern}{layout.by_row(e)} WHERE {inside}"], e)
    body = "\nUNION\n".join(layout.entities_in_source(compiler, e, source))
    kinds = compiler.parameter([int(kind) for kind in node.kinds])
    return Rows([compiler.call(body), f"WITH {e} WHERE {layout.of_kinds(e, kinds)}"], e)


def named(compiler: Compiler, node: alg.ByName) -> Rows:
    e = compiler.name("e")
    return Rows(compiler.layout.by_name(e, compiler.one_of(node.names)), e)


def known(compiler: Compiler, node: alg.ById) -> Rows:
    e, layout = compiler.name("e"), compiler.layout
    handles = compiler.parameter([layout.handle(ident) for ident in node.ids])
    return Rows(layout.by_id(e, f"IN {handles}"), e)


def members(compiler: Compiler, node: alg.Members) -> Rows:
    """Members of any of the concepts."""
    e = compiler.name("e")
    if isinstance(node.concepts, alg.ByName):
        return Rows(compiler.layout.members(compiler, e, node.concepts.names), e)
    of = compiler.entities(node.concepts)
    return Rows([*of.clauses, *compiler.layout.members_of(compiler, e, of.variable)], e)


def union(compiler: Compiler, node: alg.Union) -> Rows:
    rows = _together(compiler, node.parts)
    return Rows([*rows.clauses, f"WITH DISTINCT {rows.variable}"], rows.variable)


def _together(compiler: Compiler, parts: tuple[alg.Entities, ...]) -> Rows:
    """The entities of all parts, repeated for each part that has them."""
    e = compiler.name("e")
    branches = []
    for part in parts:
        rows = compiler.entities(part)
        branches.append("\n".join([*rows.clauses, f"RETURN {rows.variable} AS {e}"]))
    # A `UNION` that removes duplicates would compare the imported lists with every row.
    return Rows([compiler.call("\nUNION ALL\n".join(branches))], e)


def intersect(compiler: Compiler, node: alg.Intersect) -> Rows:
    """Entities in all parts.

    Names, kinds and concepts are tested on the entities of the other parts, which are counted.
    """
    tested = [part for part in node.parts if testable(part)]
    others = [part for part in node.parts if not testable(part)]
    if not others:
        tested.sort(key=lambda part: isinstance(part, alg.AllEntities) - isinstance(part, alg.ByName | alg.ById))
        others, tested = tested[:1], tested[1:]
    if len(others) == 1:
        rows, joined = _joined_rows(compiler, others[0], tested)
        tested = [part for part in tested if part is not joined]
        clauses = list(rows.clauses)
    else:
        rows = _together(compiler, tuple(others))
        clauses = [*rows.clauses, f"WITH {rows.variable}, count(*) AS times WHERE times = {len(others)}"]
    if tested:
        conditions = " AND ".join(membership(compiler, part, rows.variable) for part in tested)
        _add_condition(clauses, rows.variable, conditions)
    return Rows(clauses, rows.variable)


def _add_condition(clauses: list[str], e: str, conditions: str) -> None:
    """Add a condition on the entities: to the last clause if it makes them distinct, else as a new one."""
    last = f"WITH DISTINCT {e}"
    if clauses and clauses[-1] == last:
        clauses[-1] = f"{last} WHERE {conditions}"
    else:
        clauses.append(f"WITH {e} WHERE {conditions}")


def _joined_rows(compiler: Compiler, part: alg.Entities, tested: list[alg.Entities]) -> tuple[Rows, alg.Entities | None]:
    """Return the rows of a part, and the set already joined with it: a concept, where joining its members costs less."""
    concept = next((other for other in tested if isinstance(other, alg.Members) and not compiler.is_shared(other)), None)
    if concept is None or not isinstance(part, alg.Reached) or compiler.is_shared(part) or compiler.is_shared(part.facts):
        return compiler.entities(part), None
    facts = compiler.facts(part.facts)
    # The join needs one graph pattern whose entities are not bound before.
    plain = facts.pattern is not None and facts.within is None and all(clause.startswith("MATCH ") for clause in facts.clauses)
    anchored = any(f"({facts.reached}" in clause for clause in facts.clauses)
    if plain and not anchored:
        facts.within = within(compiler, concept, facts.reached)
        if facts.within.joins(facts.rows):
            return _reached(compiler, facts), concept
        facts.within = None
    return _reached(compiler, facts), None


def testable(part: alg.Entities) -> bool:
    """Tell whether membership in a set is a condition on the entity alone."""
    if isinstance(part, alg.Members):
        return isinstance(part.concepts, alg.ByName)
    return isinstance(part, alg.ByName | alg.ById) or (isinstance(part, alg.AllEntities) and part.source is None)


def membership(compiler: Compiler, part: alg.Entities, e: str) -> str:
    """Return a condition that an entity is in a set; a set that is not `testable` is bound as a list."""
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


def within(compiler: Compiler, of: alg.Members, e: str) -> ConceptMembership:
    """Membership in named concepts, for an entity that a MATCH binds."""
    assert isinstance(of.concepts, alg.ByName)
    condition, clauses = compiler.layout.within(compiler, e, of.concepts.names)
    return ConceptMembership(condition, clauses, f" USING JOIN ON {e}", compiler.estimates.members(of), of.concepts.names)


def minus(compiler: Compiler, node: alg.Minus) -> Rows:
    condition = membership(compiler, node.right, "{e}")
    left = compiler.entities(node.left)
    e = left.variable
    return Rows([*left.clauses, f"WITH {e} WHERE NOT ({condition.replace('{e}', e)})"], e)


def neighbour(compiler: Compiler, node: alg.Neighbour) -> Rows:
    """Rows at a distance from others, in the order of their source."""
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
    """The distinct entities that the facts reach."""
    return _reached(compiler, compiler.facts(node.facts))


def _reached(compiler: Compiler, facts: FactRows) -> Rows:
    if facts.reach == "object":
        if facts.family == "attribute":
            facts.conditions.append("false")
        elif facts.family == "any":
            facts.conditions.append(compiler.layout.is_entity(facts.thing))
    return Rows([*facts.render(), f"WITH DISTINCT {facts.reached}"], facts.reached)


def holders(compiler: Compiler, node: alg.SubjectsOf) -> Rows:
    """The subjects of the statements that carry the values, or the entities that have them as names."""
    rows = compiler.values(node.values)
    if rows.holder is None:
        e = compiler.name("e")
        return Rows([*rows.clauses, f"UNWIND [] AS {e} WITH {e}"], e)
    return Rows([*rows.clauses, f"WITH DISTINCT {rows.holder} WHERE {rows.holder} IS NOT NULL"], rows.holder)


def referents(compiler: Compiler, node: alg.Referents) -> Rows:
    """The entities that the values are, or that have them as names."""
    rows = compiler.values(node.values)
    c, e, k = rows.cell, compiler.name("e"), compiler.name("k")
    result = compiler.layout.by_name(e, f"= {k}")
    keys = f"collect(DISTINCT CASE WHEN {c.kind} = 'text' THEN {c.key} END)"
    if rows.ref is None:
        return Rows([*rows.clauses, f"WITH {keys} AS ks", f"UNWIND ks AS {k}", *result], e)
    # A name stands for the entity it was read from, another text for all entities with that name.
    texts = f"collect(DISTINCT CASE WHEN {c.kind} = 'text' AND {rows.ref} IS NULL THEN {c.key} END)"
    refs, ks = compiler.name("s"), compiler.name("s")
    body = f"UNWIND {refs} AS {e} RETURN {e}\nUNION ALL\nUNWIND {ks} AS {k} {' '.join(result)} RETURN {e}"
    clauses = [f"WITH collect(DISTINCT {rows.ref}) AS {refs}, {texts} AS {ks}", compiler.call(body, refs, ks), f"WITH DISTINCT {e}"]
    return Rows([*rows.clauses, *clauses], e)


def namesakes(compiler: Compiler, node: alg.SameName) -> Rows:
    """All entities that share a name with these."""
    of = compiler.entities(node.of)
    k, e = compiler.name("k"), compiler.name("e")
    key = compiler.layout.name_key(of.variable)
    result = compiler.layout.by_name(e, f"= {k}")
    return Rows([*of.clauses, f"WITH DISTINCT {key} AS {k}", *result, f"WITH {e}"], e)


def best(compiler: Compiler, node: alg.ArgExtreme) -> Rows:
    """The entities with the best value of a key, including ties; the most frequent type and unit competes."""
    facts = compiler.facts(alg.Scan(node.of, (node.key,), family="attribute"))
    value, e = facts.cell, facts.subject
    of_one = compiler.schema.attribute_kinds(node.key)
    simple = len(of_one) == 1 and next(iter(of_one))[0] in (Kind.QUANTITY, Kind.TIME)
    if simple and not compiler.inexact and compiler.layout.trusted:
        # There is one type and unit, so nothing has to be chosen or left out.
        time = next(iter(of_one))[0] is Kind.TIME
        key, way = (value.end, " DESC") if node.direction == "largest" else (value.start, "")
        if not time:
            key = value.number
            if compiler.layout.floats:
                # The least number, or the least negated number: one text for both.
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


# -- Statements --------------------------------------------------------------------------------------
# A scan is one MATCH, to which the tests on its facts are added.


#: A query starts from a set of at most this many entities, whatever else it has.
MAX_STARTS: Final = 30


def family_of(node: alg.Scan) -> alg.Family:
    """Return the family of statements a scan can give.

    Values carry no facts of their own, and are not reached as ends.
    """
    if node.anchor == "object" or (node.reach == "object" and node.family != "any"):
        return "relation"
    return node.family


def scan(compiler: Compiler, node: alg.Scan) -> FactRows:
    family = family_of(node)
    if node.predicates == () or (family == "relation" and node.family == "attribute"):
        # Empty: no predicate, or an end that attributes do not have.
        e, f, o = (compiler.name(prefix) for prefix in "efo")
        empty = f"UNWIND [] AS {f} WITH {f}, null AS {e}, null AS {o}"
        return FactRows([empty], None, [], f, e, o, "relation", node.reach, compiler.layout.object(o, "relation"))
    f, layout = compiler.name("f"), compiler.layout
    whole = node.of is None or (isinstance(node.of, alg.AllEntities) and node.of.source is None)
    concept = node.of if _has_many_members(compiler, node) else None
    listed = None if whole or concept is not None else _large_anchors(compiler, node)
    of = None if whole or concept is not None or listed is not None or node.of is None else compiler.entities(node.of)
    conditions = [] if node.predicates is not None else [layout.is_statement(f)]
    anchor = compiler.name("e") if of is None else of.variable
    if of is None and isinstance(node.of, alg.AllEntities) and kinds_matter(node, node.of, compiler.schema):
        conditions.append(layout.of_kinds(anchor, compiler.parameter([int(kind) for kind in node.of.kinds])))
    inner = within(compiler, concept, anchor) if isinstance(concept, alg.Members) else None
    if listed is not None:
        conditions.append(f"{anchor} IN {compiler.set_of(listed)}")
    outward = node.anchor == "subject"
    source = None if node.source is None else compiler.parameter(node.source)
    # All statements of a table belong to its rows.
    table = source if of is None and outward and node.source in compiler.tabular else None
    rows = compiler.estimates.rows(node)
    other = compiler.name("v" if family == "attribute" else "e")
    if source is not None:
        conditions.append(layout.in_source(source, f, None if family == "relation" else other))
    anchors = float("inf") if node.of is None else compiler.estimates.rows(node.of)
    wanted = ScanRequest(f, anchor, other, node.predicates, family, outward, of is not None, table, conditions, anchors)
    match = layout.attributes(compiler, wanted) if family == "attribute" else layout.relations(compiler, wanted)
    if inner is not None and table is not None:
        # The rows come from an index of their own, which leaves nothing to join with.
        match.conditions.append(inner.condition)
        inner = None
    subject, thing = (anchor, other) if outward else (other, anchor)
    clauses = [*([] if of is None else of.clauses), *match.before]
    result = FactRows(clauses, match.pattern, match.conditions, f, subject, thing, family, node.reach, match.cell)
    if match.branches is not None:
        result.joined = branches(compiler, match)
    result.whole, result.hint, result.after, result.within, result.rows = match.whole, match.hint, match.after, inner, rows
    return result


def branches(compiler: Compiler, match: Match) -> Callable[[Collection[str] | None, list[str]], str]:
    """Build one clause from the branches of a match, each under the same conditions."""
    variables = ", ".join(match.binds)

    def joined(labels: Collection[str] | None, conditions: list[str]) -> str:
        assert match.branches is not None
        texts = []
        for pattern, own in match.branches(labels):
            where = " AND ".join([*([own] if own else []), *conditions])
            texts.append(f"MATCH {pattern}{f' WHERE {where}' if where else ''}")
        if len(texts) == 1:
            return texts[0]
        return compiler.call("\nUNION ALL\n".join(f"{text} RETURN {variables}" for text in texts))

    return joined


def _has_many_members(compiler: Compiler, node: alg.Scan) -> bool:
    """Tell whether the anchors are the members of a concept, and so many that the statements are read first."""
    of = node.of
    if not isinstance(of, alg.Members) or node.predicates is None or compiler.is_shared(of):
        return False
    members = compiler.estimates.members(of)
    return members < float("inf") and _passing(compiler, node) < OUTWARD * members


def _large_anchors(compiler: Compiler, node: alg.Scan) -> alg.Entities | None:
    """Return the anchors where they outnumber the attribute's statements that pass the tests.

    Then the statements are read first and their subjects looked up in a list: going from a value to its subject costs less
    than going through all edges of an entity.
    """
    of = node.of
    if of is None or node.predicates is None or node.source is not None or family_of(node) != "attribute":
        return None
    kinds = {kind for name in node.predicates for kind, _ in compiler.schema.attribute_kinds(name)}
    if not compiler.layout.indexed(kinds) and id(node) not in compiler.shares:
        return None
    anchors = compiler.estimates.rows(of)
    return of if anchors > MAX_STARTS and _passing(compiler, node) + anchors < OUTWARD * anchors else None


def _passing(compiler: Compiler, node: alg.Scan) -> float:
    """Estimate how many statements of a scan pass its tests."""
    return compiler.estimates.statements(node) * compiler.shares.get(id(node), 1.0)


def where(compiler: Compiler, node: alg.Where) -> FactRows:
    """Facts whose object passes the test."""
    test = node.condition
    if isinstance(test, alg.Among):
        return _among_entities(compiler, node, test.entities)
    index = _index(compiler, test)
    below: alg.Facts = node
    while below.facets.filters and (inner := alg.passed(below)) is not None:
        below = inner
    if index is not None:
        compiler.shares[id(below)] = min(compiler.shares.get(id(below), 1.0), share(test))
    facts = compiler.facts(node.facts)
    hint = None
    if index is not None and facts.family == "attribute":
        hint = "" if index is Kind.UNKNOWN else compiler.layout.by_kind(facts.thing, index)
    facts.narrow(share(test), hint)
    facts.conditions.append(condition(compiler, test, facts.cell, facts.referred))
    return facts


def _index(compiler: Compiler, test: alg.Condition) -> Kind | None:
    """Return the kind of values whose index answers a test; `UNKNOWN` for several kinds, None for none."""
    if isinstance(test, alg.AnyOf | alg.AllOf):
        kinds = {_index(compiler, part) for part in test.conditions}
        if None in kinds:
            return None
        alternatives = isinstance(test, alg.AnyOf) and keys_of(compiler, test) is None
        return Kind.UNKNOWN if alternatives or len(kinds) > 1 else next(iter(kinds), None)
    if not isinstance(test, alg.Compare):
        return None
    if isinstance(test.value, Quantity):
        return Kind.UNKNOWN if compiler.inexact else Kind.QUANTITY
    return Kind.TIME if isinstance(test.value, Time) else Kind.TEXT


def _among_entities(compiler: Compiler, node: alg.Where, entities: alg.Entities) -> FactRows:
    """Facts that lead to some entities.

    The query starts at these if they have a name and fewer facts lead to them than start at the anchors.
    """
    below = node.facts
    if isinstance(below, alg.Scan) and isinstance(entities, alg.ByName) and below.anchor == "subject" and below.source is None:
        turned = replace(below, of=entities, anchor="object", family="relation")
        of, estimates = below.of, compiler.estimates
        if of is not None and estimates.rows(of) > MAX_STARTS and estimates.rows(turned) < OUTWARD * estimates.rows(of):
            facts = scan(compiler, turned)
            facts.conditions.append(membership(compiler, of, facts.subject))
            return facts
    facts = compiler.facts(below)
    if facts.family == "attribute":
        facts.conditions.append("false")
    elif isinstance(entities, alg.ByName):
        named = compiler.layout.named(facts.thing, compiler.one_of(entities.names))
        facts.conditions.append(f"{named} AND {compiler.layout.is_entity(facts.thing)}")
    else:
        facts.conditions.append(f"{facts.thing} IN {compiler.set_of(entities)}")
    return facts


def where_qualifier(compiler: Compiler, node: alg.WhereQualifier) -> FactRows:
    """Facts with a qualifier that passes the test."""
    facts, layout = compiler.facts(node.facts), compiler.layout
    q = compiler.name("q")
    test, cell = node.condition, layout.qualifier(q)
    name = f"{layout.qualifier_name(q)} = {compiler.parameter(node.key)}"
    if asks_which(test):
        e = compiler.name("e")
        referred = f" {layout.refer(q, e)} WITH {q}, {e}"
        ending = f" WHERE {name}{referred} WHERE {condition(compiler, test, cell, e)} RETURN {q}"
    else:
        ending = f" WHERE {name} AND {condition(compiler, test, cell)}"
    facts.conditions.append(_some_qualifier(compiler, facts, q, ending))
    return facts


def _some_qualifier(compiler: Compiler, facts: FactRows, q: str, ending: str) -> str:
    qualifiers = compiler.layout.qualifiers(facts.fact, facts.thing, facts.family, q)
    parts = [f"EXISTS {{ {clause}{ending} }}" for clause in qualifiers]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def during(compiler: Compiler, node: alg.During) -> FactRows:
    """Facts whose validity relates to the interval."""
    facts = compiler.facts(node.facts)
    if node.relation in ("may", "must") and not compiler.layout.has_times(facts.family):
        # Statements without a validity always hold.
        return facts
    low, high = compiler.parameter(node.interval.start), compiler.parameter(node.interval.end)
    test = partial(span_condition, compiler, node.relation, low=low, high=high)
    facts.conditions.append(compiler.layout.timed(facts.fact, test))
    return facts


def during_any(compiler: Compiler, node: alg.DuringAny) -> FactRows:
    """Facts whose validity relates to any of the times."""
    facts = compiler.facts(node.facts)
    times = times_of(compiler, node.values)
    y = compiler.name("y")

    def test(validity: tuple[str, str]) -> str:
        return f"any({y} IN {times} WHERE {span_condition(compiler, node.relation, validity, f'{y}[0]', f'{y}[1]')})"

    facts.conditions.append(compiler.layout.timed(facts.fact, test))
    return facts


def times_of(compiler: Compiler, values: alg.Values) -> str:
    """Return the distinct times of a bag as a sorted list of (start, end); other values are ignored."""
    if isinstance(values, alg.Constants):
        return compiler.parameter([list(pair) for pair in sorted({(v.start, v.end) for v in values.values if isinstance(v, Time)})])
    rows = compiler.values(values)
    a, b = compiler.name("a"), compiler.name("b")
    clauses = [
        *rows.clauses,
        f"WITH DISTINCT {rows.cell.start} AS {a}, {rows.cell.end} AS {b} WHERE {a} IS NOT NULL",
        f"WITH {a}, {b} ORDER BY {a}, {b}",
    ]
    return compiler.let(clauses, f"collect([{a}, {b}])", "t")


def written(compiler: Compiler, facts: FactRows, q: str, part: str) -> str:
    """Return a condition that a qualifier states the start (or end) of a fact; a point in time states both.

    Bounds in the wrong order make the validity unknown, whatever the qualifiers are.
    """
    names, layout = compiler.parameter([START_TIME if part == "start" else END_TIME, POINT_IN_TIME]), compiler.layout
    unknown = compiler.constant(UNKNOWN_START), compiler.constant(UNKNOWN_END)
    since, until = layout.validity(facts.fact)
    bad = f"{since} = {unknown[0]} AND {until} = {unknown[1]}"
    return f"{layout.qualifier_name(q)} IN {names} AND {layout.qualifier(q).kind} = 'time' AND NOT ({bad})"


def where_validity(compiler: Compiler, node: alg.WhereValidity) -> FactRows:
    """Facts whose start (or end) passes the test."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    ending = (
        f" WHERE {written(compiler, facts, q, node.part)} AND {condition(compiler, node.condition, compiler.layout.qualifier(q))}"
    )
    facts.conditions.append(_some_qualifier(compiler, facts, q, ending))
    return facts


def turn(compiler: Compiler, node: alg.OtherEnd) -> FactRows:
    """The same statements with the other end reached; attributes have no entity as object."""
    facts = compiler.facts(node.facts)
    facts.reach = node.reach
    if node.reach == "object" and facts.family == "any":
        facts.conditions.append(compiler.layout.is_entity(facts.thing))
        facts.family, facts.cell = "relation", compiler.layout.object(facts.thing, "relation")
    elif node.reach == "object" and facts.family == "attribute":
        facts.conditions.append("false")
    return facts


# -- Tables ----------------------------------------------------------------------------------------

ENTITIES: Final[EntityTable[Compiler, [], Rows]] = {
    "AllEntities": every,
    "ById": known,
    "ByName": named,
    "Members": members,
    "Union": union,
    "Intersect": intersect,
    "Minus": minus,
    "Neighbour": neighbour,
    "Reached": reached,
    "SubjectsOf": holders,
    "Referents": referents,
    "SameName": namesakes,
    "ArgExtreme": best,
}
FACTS: Final[FactTable[Compiler, [], FactRows]] = {
    "Scan": scan,
    "Where": where,
    "WhereQualifier": where_qualifier,
    "During": during,
    "DuringAny": during_any,
    "WhereValidity": where_validity,
    "OtherEnd": turn,
}
