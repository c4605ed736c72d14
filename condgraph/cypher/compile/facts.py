"""Operators that give statements: a scan is one MATCH, to which the tests on its facts are added."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from condgraph.cypher.compile.compiler import Compiler, FactRows, asks_which
from condgraph.cypher.compile.conditions import condition, keys_of, span_condition
from condgraph.cypher.compile.entities import membership, within
from condgraph.cypher.compile.estimate import share
from condgraph.cypher.compile.join_order import OUTWARD, kinds_matter
from condgraph.cypher.layout.scan import Match, Wanted
from condgraph.engine import algebra as alg
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START, Kind, Quantity, Time

#: Fewer entities than this are where a query goes on from, whatever else there is.
MANY: Final = 30


def family_of(node: alg.Scan) -> alg.Family:
    """The family of the statements a scan can give: values have no facts of their own, and are no
    ends that are reached.
    """
    if node.anchor == "object" or (node.reach == "object" and node.family != "any"):
        return "relation"
    return node.family


def scan(compiler: Compiler, node: alg.Scan) -> FactRows:
    """The statements of a scan."""
    family = family_of(node)
    if node.predicates == () or (family == "relation" and node.family == "attribute"):
        # Nothing: no predicate, or an end that attributes do not have.
        e, f, o = (compiler.name(prefix) for prefix in "efo")
        empty = f"UNWIND [] AS {f} WITH {f}, null AS {e}, null AS {o}"
        return FactRows([empty], None, [], f, e, o, "relation", node.reach, compiler.layout.object(o, "relation"))
    f, layout = compiler.name("f"), compiler.layout
    whole = node.of is None or (isinstance(node.of, alg.AllEntities) and node.of.source is None)
    concept = node.of if _many_members(compiler, node) else None
    listed = None if whole or concept is not None else _many(compiler, node)
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
    # A table's statements are those of its rows.
    table = source if of is None and outward and node.source in compiler.tabular else None
    rows = compiler.estimates.rows(node)
    other = compiler.name("v" if family == "attribute" else "e")
    if source is not None:
        conditions.append(layout.in_source(source, f, None if family == "relation" else other))
    anchors = float("inf") if node.of is None else compiler.estimates.rows(node.of)
    wanted = Wanted(f, anchor, other, node.predicates, family, outward, of is not None, table, conditions, anchors)
    match = layout.attributes(compiler, wanted) if family == "attribute" else layout.relations(compiler, wanted)
    if inner is not None and table is not None:
        # The rows come from their index, which leaves nothing to be joined with.
        match.conditions.append(inner.condition)
        inner = None
    subject, thing = (anchor, other) if outward else (other, anchor)
    clauses = [*([] if of is None else of.clauses), *match.before]
    found = FactRows(clauses, match.pattern, match.conditions, f, subject, thing, family, node.reach, match.cell)
    if match.branches is not None:
        found.joined = _branches(compiler, match)
    found.whole, found.hint, found.after, found.within, found.rows = match.whole, match.hint, match.after, inner, rows
    return found


def _branches(compiler: Compiler, match: Match) -> Callable[[Collection[str] | None, list[str]], str]:
    """The branches of a match as one clause, under conditions that hold in each."""
    kept = ", ".join(match.kept)

    def joined(labels: Collection[str] | None, conditions: list[str]) -> str:
        assert match.branches is not None
        texts = []
        for pattern, own in match.branches(labels):
            where = " AND ".join([*([own] if own else []), *conditions])
            texts.append(f"MATCH {pattern}{f' WHERE {where}' if where else ''}")
        if len(texts) == 1:
            return texts[0]
        return compiler.call("\nUNION ALL\n".join(f"{text} RETURN {kept}" for text in texts))

    return joined


def _many_members(compiler: Compiler, node: alg.Scan) -> bool:
    """Whether the anchors are the members of a concept, and many beside the statements: then these
    are looked at first.
    """
    of = node.of
    if not isinstance(of, alg.Members) or node.predicates is None or compiler.is_shared(of):
        return False
    members = compiler.estimates.members(of)
    return members < float("inf") and _wanted(compiler, node) < OUTWARD * members


def _many(compiler: Compiler, node: alg.Scan) -> alg.Entities | None:
    """The anchors, where they are many beside the statements of an attribute that the tests leave:
    then these are looked at first, and their subjects looked up in a list. It costs less to go from
    a value to its one subject than from an entity through all its edges.
    """
    of = node.of
    if of is None or node.predicates is None or node.source is not None or family_of(node) != "attribute":
        return None
    kinds = {kind for name in node.predicates for kind, _ in compiler.schema.attribute_kinds(name)}
    if not compiler.layout.indexed(kinds) and id(node) not in compiler.shares:
        return None
    anchors = compiler.estimates.rows(of)
    return of if anchors > MANY and _wanted(compiler, node) + anchors < OUTWARD * anchors else None


def _wanted(compiler: Compiler, node: alg.Scan) -> float:
    """How many statements of the predicates of a scan its tests leave."""
    return compiler.estimates.statements(node) * compiler.shares.get(id(node), 1.0)


def where(compiler: Compiler, node: alg.Where) -> FactRows:
    """Facts whose object satisfies the test."""
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
    """The kind of values whose index answers a test; of several kinds none is the one, which is
    `UNKNOWN`. None where none does.
    """
    if isinstance(test, alg.AnyOf | alg.AllOf):
        found = {_index(compiler, part) for part in test.conditions}
        if None in found:
            return None
        alternatives = isinstance(test, alg.AnyOf) and keys_of(compiler, test) is None
        return Kind.UNKNOWN if alternatives or len(found) > 1 else next(iter(found), None)
    if not isinstance(test, alg.Compare):
        return None
    if isinstance(test.value, Quantity):
        return Kind.UNKNOWN if compiler.inexact else Kind.QUANTITY
    return Kind.TIME if isinstance(test.value, Time) else Kind.TEXT


def _among_entities(compiler: Compiler, node: alg.Where, entities: alg.Entities) -> FactRows:
    """Facts that lead to some entities: from the entities of a name, where fewer facts lead to them
    than start at the anchors.
    """
    below = node.facts
    if isinstance(below, alg.Scan) and isinstance(entities, alg.ByName) and below.anchor == "subject" and below.source is None:
        turned = replace(below, of=entities, anchor="object", family="relation")
        of, estimates = below.of, compiler.estimates
        if of is not None and estimates.rows(of) > MANY and estimates.rows(turned) < OUTWARD * estimates.rows(of):
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
    """Facts of which some qualifier satisfies the test."""
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
    found = compiler.layout.qualifiers(facts.fact, facts.thing, facts.family, q)
    parts = [f"EXISTS {{ {clause}{ending} }}" for clause in found]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def during(compiler: Compiler, node: alg.During) -> FactRows:
    """Facts whose validity stands in the relation to the interval."""
    facts = compiler.facts(node.facts)
    low, high = compiler.parameter(node.interval.start), compiler.parameter(node.interval.end)
    facts.conditions.append(span_condition(compiler, node.relation, compiler.layout.validity(facts.fact), low, high))
    return facts


def during_any(compiler: Compiler, node: alg.DuringAny) -> FactRows:
    """Facts whose validity stands in the relation to any of the times."""
    facts = compiler.facts(node.facts)
    times = times_of(compiler, node.values)
    y = compiler.name("y")
    test = span_condition(compiler, node.relation, compiler.layout.validity(facts.fact), f"{y}[0]", f"{y}[1]")
    facts.conditions.append(f"any({y} IN {times} WHERE {test})")
    return facts


def times_of(compiler: Compiler, values: alg.Values) -> str:
    """The distinct times of a bag as a list of start and end, sorted; other values decide nothing."""
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
    """A condition on a qualifier: it says when the fact starts (ends); a point in time says both.

    Bounds in the wrong order are unknown, whatever the qualifiers say.
    """
    names, layout = compiler.parameter([START_TIME if part == "start" else END_TIME, POINT_IN_TIME]), compiler.layout
    unknown = compiler.constant(UNKNOWN_START), compiler.constant(UNKNOWN_END)
    since, until = layout.validity(facts.fact)
    bad = f"{since} = {unknown[0]} AND {until} = {unknown[1]}"
    return f"{layout.qualifier_name(q)} IN {names} AND {layout.qualifier(q).kind} = 'time' AND NOT ({bad})"


def where_validity(compiler: Compiler, node: alg.WhereValidity) -> FactRows:
    """Facts whose start (or end) satisfies the test."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    ending = (
        f" WHERE {written(compiler, facts, q, node.part)} AND {condition(compiler, node.condition, compiler.layout.qualifier(q))}"
    )
    facts.conditions.append(_some_qualifier(compiler, facts, q, ending))
    return facts


def turn(compiler: Compiler, node: alg.OtherEnd) -> FactRows:
    """The same statements, with the other end reached; attributes have no entity at their object."""
    facts = compiler.facts(node.facts)
    facts.reach = node.reach
    if node.reach == "object" and facts.family == "any":
        facts.conditions.append(compiler.layout.is_entity(facts.thing))
        facts.family, facts.cell = "relation", compiler.layout.object(facts.thing, "relation")
    elif node.reach == "object" and facts.family == "attribute":
        facts.conditions.append("false")
    return facts
