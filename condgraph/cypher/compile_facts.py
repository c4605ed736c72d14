"""Operators that give statements: a scan is one MATCH, to which the tests on its facts are added."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from condgraph.cypher import paths
from condgraph.cypher.arrange import OUTWARD, tells
from condgraph.cypher.compile_entities import membership, within
from condgraph.cypher.compile_tests import condition, keys_of, span_condition
from condgraph.cypher.compiler import FACTS, Compiler, FactRows
from condgraph.cypher.estimate import share
from condgraph.engine import algebra as alg
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START, Kind, Quantity, Time

#: Fewer entities than this are where a query goes on from, whatever else there is.
MANY: Final = 30
_FILTERS: Final = (alg.Where, alg.WhereQualifier, alg.During, alg.DuringAny, alg.WhereValidity)


def family_of(node: alg.Scan) -> alg.Family:
    """The family of the statements a scan can give: values have no facts of their own, and are no ends that are reached."""
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
        return FactRows([empty], None, [], f, e, o, "relation", node.reach)
    f = compiler.name("f")
    schema = compiler.schema
    types = paths.types(node.predicates)
    whole = node.of is None or (isinstance(node.of, alg.Every) and node.of.source is None)
    concept = node.of if _many_members(compiler, node) else None
    listed = None if whole or concept is not None else _many(compiler, node)
    of = None if whole or concept is not None or listed is not None or node.of is None else compiler.entities(node.of)
    clauses = [] if of is None else of.clauses
    conditions = [] if node.predicates is not None else [paths.is_statement(f)]
    anchor = compiler.name("e") if of is None else of.variable
    label = ":Entity" if of is None else ""
    inside, hint = [], ""
    asks_kind = of is None and isinstance(node.of, alg.Every) and tells(node, node.of, schema)
    if asks_kind and isinstance(node.of, alg.Every):
        conditions.append(paths.of_kinds(anchor, compiler.parameter([int(kind) for kind in node.of.kinds])))
    inner = within(compiler, concept, anchor) if isinstance(concept, alg.Members) else None
    if listed is not None:
        conditions.append(f"{anchor} IN {compiler.set_of(listed)}")
    source = None if node.source is None else compiler.parameter(node.source)
    if of is None and source is not None and node.anchor == "subject" and node.source in compiler.tabular:
        # A table's statements are those of its rows.
        pattern, inside_table = paths.row(anchor, source)
        label = pattern[1 + len(anchor) : -1]
        inside, hint = [inside_table], paths.by_row(anchor)
    estimate = compiler.estimates.rows(node)
    if family == "attribute":
        v = compiler.name("v")
        if source is not None:
            conditions.append(paths.in_source(source, f, v))
        if node.predicates is None or inside:
            if of is None and not inside:
                inside = [f"{anchor}.graph = $graph"]
            return FactRows(
                clauses,
                f"({anchor}{label})-[{f}{types}]->({v}:Value)",
                [*inside, *conditions],
                f,
                anchor,
                v,
                family,
                node.reach,
                hint=hint,
                rows=estimate,
            )
        predicate = (
            f"= {compiler.parameter(node.predicates[0])}"
            if len(node.predicates) == 1
            else f"IN {compiler.parameter(list(node.predicates))}"
        )
        if of is not None:
            # A label tells values from entities where a predicate has both.
            end = ":Value" if any(map(schema.has_relation, node.predicates)) else ""
            pattern = f"({anchor})-[{f}{types}]->({v}{end})"
            return FactRows(clauses, pattern, conditions, f, anchor, v, family, node.reach, rows=estimate)
        kinds = {kind for name in node.predicates for kind, _ in schema.attribute_kinds(name)}
        found = paths.of_kind(v, kinds)
        hint = "" if found is None else paths.by_kind(v, next(iter(kinds)))
        if found is None:
            # By their subjects: no index has values of all kinds.
            found = [f"{anchor}:Entity", f"{anchor}.graph = $graph", f"{anchor}.kind IN [0, 1, 2]"]
        pattern, values = f"({anchor})-[{f}{types}]->({v}:Value)", [*paths.values_of(v, predicate), *conditions]
        return FactRows(
            clauses, pattern, values, f, anchor, v, family, node.reach, whole=found, hint=hint, within=inner, rows=estimate
        )
    other = compiler.name("e")
    if of is None and not inside:
        inside = [f"{anchor}.graph = $graph"]
    if source is not None:
        conditions.append(paths.in_source(source, f, other if family == "any" else None))
    # A label tells entities from values where a predicate has both.
    both = node.predicates is None or any(map(schema.has_attribute, node.predicates))
    end = ":Entity" if family == "relation" and (of is None or (both and node.anchor == "subject")) else ""
    if node.anchor == "subject":
        pattern, subject, thing = f"({anchor}{label})-[{f}{types}]->({other}{end})", anchor, other
    else:
        pattern, subject, thing = f"({other}{end})-[{f}{types}]->({anchor}{label})", other, anchor
    return FactRows(
        clauses, pattern, [*inside, *conditions], f, subject, thing, family, node.reach, hint=hint, within=inner, rows=estimate
    )


def _many_members(compiler: Compiler, node: alg.Scan) -> bool:
    """Whether the anchors are the members of a concept, and many beside the statements: then these are looked at first."""
    of = node.of
    if not isinstance(of, alg.Members) or node.predicates is None or compiler.is_shared(of):
        return False
    members = compiler.estimates.members(of)
    return members < float("inf") and _wanted(compiler, node) < OUTWARD * members


def _many(compiler: Compiler, node: alg.Scan) -> alg.Entities | None:
    """The anchors, where they are many beside the statements of an attribute that the tests leave: then these are looked at first,
    and their subjects looked up in a list. It costs less to go from a value to its one subject than from an entity through all its
    edges.
    """
    of = node.of
    if of is None or node.predicates is None or node.source is not None or family_of(node) != "attribute":
        return None
    kinds = {kind for name in node.predicates for kind, _ in compiler.schema.attribute_kinds(name)}
    if paths.of_kind("", kinds) is None and id(node) not in compiler.shares:
        return None
    anchors = compiler.estimates.rows(of)
    return of if anchors > MANY and _wanted(compiler, node) + anchors < OUTWARD * anchors else None


def _wanted(compiler: Compiler, node: alg.Scan) -> float:
    """How many statements of the predicates of a scan its tests leave."""
    return compiler.estimates.statements(node) * compiler.shares.get(id(node), 1.0)


def where(compiler: Compiler, node: alg.Where) -> FactRows:
    """Facts whose object satisfies the test."""
    test = node.test
    if isinstance(test, alg.Among):
        return _among_entities(compiler, node, test.entities)
    index = _index(compiler, test)
    below: alg.Facts = node
    while isinstance(below, _FILTERS):
        below = below.facts
    if index is not None:
        compiler.shares[id(below)] = min(compiler.shares.get(id(below), 1.0), share(test))
    facts = compiler.facts(node.facts)
    hint = (
        None if index is None or facts.family != "attribute" else "" if index is Kind.UNKNOWN else paths.by_kind(facts.thing, index)
    )
    facts.narrow(share(test), hint)
    facts.conditions.append(condition(compiler, test, facts.thing))
    return facts


def _index(compiler: Compiler, test: alg.Test) -> Kind | None:
    """The kind of values whose index answers a test; of several kinds none is the one, which is `UNKNOWN`. None where none does."""
    if isinstance(test, alg.AnyOf | alg.AllOf):
        found = {_index(compiler, part) for part in test.tests}
        if None in found:
            return None
        alternatives = isinstance(test, alg.AnyOf) and keys_of(test) is None
        return Kind.UNKNOWN if alternatives or len(found) > 1 else next(iter(found), None)
    if not isinstance(test, alg.Compare):
        return None
    if isinstance(test.value, Quantity):
        return Kind.UNKNOWN if compiler.inexact else Kind.QUANTITY
    return Kind.TIME if isinstance(test.value, Time) else Kind.TEXT


def _among_entities(compiler: Compiler, node: alg.Where, entities: alg.Entities) -> FactRows:
    """Facts that lead to some entities: from those of a name, where there are fewer that lead to them than from the anchors."""
    below = node.facts
    if isinstance(below, alg.Scan) and isinstance(entities, alg.Named) and below.anchor == "subject" and below.source is None:
        turned = replace(below, of=entities, anchor="object", family="relation")
        of, estimates = below.of, compiler.estimates
        if of is not None and estimates.rows(of) > MANY and estimates.rows(turned) < OUTWARD * estimates.rows(of):
            facts = scan(compiler, turned)
            facts.conditions.append(membership(compiler, of, facts.subject))
            return facts
    facts = compiler.facts(below)
    if facts.family == "attribute":
        facts.conditions.append("false")
    elif isinstance(entities, alg.Named):
        facts.conditions.append(f"{paths.named(facts.thing, compiler.one_of(entities.names))} AND {facts.thing}:Entity")
    else:
        facts.conditions.append(f"{facts.thing} IN {compiler.set_of(entities)}")
    return facts


def where_qualifier(compiler: Compiler, node: alg.WhereQualifier) -> FactRows:
    """Facts of which some qualifier satisfies the test."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    test = node.test
    referred = ""
    name = f"{q}.name = {compiler.parameter(node.key)}"
    if _among(test):
        e = compiler.name("e")
        referred = f" OPTIONAL MATCH {paths.referred(q, e)} WITH {q}, {e}"
        ending = f" WHERE {name}{referred} WHERE {condition(compiler, test, q, e)}"
    else:
        ending = f" WHERE {name} AND {condition(compiler, test, q)}"
    returned = f" RETURN {q}" if referred else ""
    facts.conditions.append(_some_owner(facts, q, f"{ending}{returned}"))
    return facts


def _among(test: alg.Test) -> bool:
    """Whether a test looks at which entity a value is."""
    if isinstance(test, (alg.AnyOf, alg.AllOf)):
        return any(_among(part) for part in test.tests)
    return isinstance(test, alg.Among) or (isinstance(test, alg.Not) and _among(test.test))


def owners(facts: FactRows) -> list[str]:
    """The nodes that qualifiers of the facts can hang on."""
    found = []
    if facts.family != "relation":
        found.append(paths.owner_of_value(facts.thing))
    if facts.family != "attribute":
        found.append(paths.owner_of_relation(facts.fact))
    return found


def _some_owner(facts: FactRows, q: str, ending: str) -> str:
    parts = [f"EXISTS {{ MATCH {paths.qualifier(owner, q)}{ending} }}" for owner in owners(facts)]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def during(compiler: Compiler, node: alg.During) -> FactRows:
    """Facts whose validity stands in the relation to the interval."""
    facts = compiler.facts(node.facts)
    low, high = compiler.parameter(node.interval.start), compiler.parameter(node.interval.end)
    facts.conditions.append(span_condition(compiler, node.relation, facts.fact, low, high))
    return facts


def during_any(compiler: Compiler, node: alg.DuringAny) -> FactRows:
    """Facts whose validity stands in the relation to any of the times."""
    facts = compiler.facts(node.facts)
    times = times_of(compiler, node.values)
    y = compiler.name("y")
    test = span_condition(compiler, node.relation, facts.fact, f"{y}[0]", f"{y}[1]")
    facts.conditions.append(f"any({y} IN {times} WHERE {test})")
    return facts


def times_of(compiler: Compiler, values: alg.Values) -> str:
    """The distinct times of a bag as a list of start and end, sorted; other values decide nothing."""
    if isinstance(values, alg.Given):
        return compiler.parameter([list(pair) for pair in sorted({(v.start, v.end) for v in values.values if isinstance(v, Time)})])
    rows = compiler.values(values)
    a, b = compiler.name("a"), compiler.name("b")
    clauses = [
        *rows.clauses,
        f"WITH DISTINCT {rows.cell}.start AS {a}, {rows.cell}.end AS {b} WHERE {a} IS NOT NULL",
        f"WITH {a}, {b} ORDER BY {a}, {b}",
    ]
    return compiler.let(clauses, f"collect([{a}, {b}])", "t")


def written(compiler: Compiler, facts: FactRows, q: str, part: str) -> str:
    """A condition on a qualifier: it says when the fact starts (ends); a point in time says both.

    Bounds in the wrong order are unknown, whatever the qualifiers say.
    """
    names = compiler.parameter([START_TIME if part == "start" else END_TIME, POINT_IN_TIME])
    unknown = compiler.constant(UNKNOWN_START), compiler.constant(UNKNOWN_END)
    bad = f"{facts.fact}.since = {unknown[0]} AND {facts.fact}.until = {unknown[1]}"
    return f"{q}.name IN {names} AND {q}.kind = 'time' AND NOT ({bad})"


def where_validity(compiler: Compiler, node: alg.WhereValidity) -> FactRows:
    """Facts whose start (or end) satisfies the test."""
    facts = compiler.facts(node.facts)
    q = compiler.name("q")
    ending = f" WHERE {written(compiler, facts, q, node.part)} AND {condition(compiler, node.test, q)}"
    facts.conditions.append(_some_owner(facts, q, ending))
    return facts


def turn(compiler: Compiler, node: alg.Turn) -> FactRows:
    """The same statements, with the other end reached; attributes have no entity at their object."""
    facts = compiler.facts(node.facts)
    facts.reach = node.reach
    if node.reach == "object" and facts.family == "any":
        facts.conditions.append(f"{facts.thing}:Entity")
        facts.family = "relation"
    elif node.reach == "object" and facts.family == "attribute":
        facts.conditions.append("false")
    return facts


FACTS.update(
    {
        alg.Scan: scan,
        alg.Where: where,
        alg.WhereQualifier: where_qualifier,
        alg.During: during,
        alg.DuringAny: during_any,
        alg.WhereValidity: where_validity,
        alg.Turn: turn,
    }
)
