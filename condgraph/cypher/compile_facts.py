"""Operators that give statements: a scan is one MATCH, to which the tests on its facts are added."""

from __future__ import annotations

from condgraph.cypher import paths
from condgraph.cypher.compile_entities import membership
from condgraph.cypher.compile_tests import condition, span_condition
from condgraph.cypher.compiler import FACTS, Compiler, FactRows
from condgraph.engine import algebra as alg
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START


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
    types = paths.types(node.predicates)
    whole = node.of is None or (isinstance(node.of, alg.Every) and node.of.source is None)
    within = node.of if _many_members(compiler, node) else None
    of = None if whole or within is not None or node.of is None else compiler.entities(node.of)
    clauses = [] if of is None else of.clauses
    conditions = [] if node.predicates is not None else [paths.is_statement(f)]
    anchor = compiler.name("e") if of is None else of.variable
    label = ":Entity" if of is None else ""
    inside = []
    if of is None and isinstance(node.of, alg.Every) and _tells(compiler, node, node.of):
        conditions.append(paths.of_kinds(anchor, compiler.parameter([int(kind) for kind in node.of.kinds])))
    if within is not None:
        conditions.append(membership(compiler, within, anchor))
    source = None if node.source is None else compiler.parameter(node.source)
    if of is None and source is not None and node.anchor == "subject" and node.source in compiler.tabular:
        # A table's statements are those of its rows.
        pattern, inside_table = paths.row(anchor, source)
        label = pattern[1 + len(anchor) : -1]
        inside = [inside_table]
    if family == "attribute":
        v = compiler.name("v")
        if node.predicates is not None and not inside:
            predicate = (
                f"= {compiler.parameter(node.predicates[0])}"
                if len(node.predicates) == 1
                else f"IN {compiler.parameter(list(node.predicates))}"
            )
            inside = [f"{v}.graph = $graph", f"{v}.predicate {predicate}"]
            if node.of is None:
                # Where nothing is asked of the value, this is what an index answers.
                inside += [f"{anchor}.graph = $graph", f"{anchor}.kind IN [0, 1, 2]"]
        elif of is None and not inside:
            inside = [f"{anchor}.graph = $graph"]
        if source is not None:
            conditions.append(paths.in_source(source, f, v))
        return FactRows(
            clauses, f"({anchor}{label})-[{f}{types}]->({v}:Value)", [*inside, *conditions], f, anchor, v, family, node.reach
        )
    other = compiler.name("e")
    if of is None and not inside:
        inside = [f"{anchor}.graph = $graph"]
    if source is not None:
        conditions.append(paths.in_source(source, f, other if family == "any" else None))
    end = ":Entity" if family == "relation" else ""
    if node.anchor == "subject":
        pattern, subject, thing = f"({anchor}{label})-[{f}{types}]->({other}{end})", anchor, other
    else:
        pattern, subject, thing = f"({other}:Entity)-[{f}{types}]->({anchor}{label})", other, anchor
    return FactRows(clauses, pattern, [*inside, *conditions], f, subject, thing, family, node.reach)


def _many_members(compiler: Compiler, node: alg.Scan) -> bool:
    """Whether the anchors are the members of a concept, and more than there are statements: then the anchor is tested."""
    of, schema = node.of, compiler.schema
    if (
        not isinstance(of, alg.Members)
        or not isinstance(of.concepts, alg.Named)
        or node.predicates is None
        or compiler.is_shared(of)
    ):
        return False
    statements = 0
    for name in node.predicates:
        statements += sum(schema.attribute_kinds(name).values()) if family_of(node) != "relation" else 0
        statements += schema.sizes.get(name, 0) if family_of(node) != "attribute" else 0
    return statements < sum(schema.members.get(name, 0) for name in of.concepts.names)


def _tells(compiler: Compiler, node: alg.Scan, of: alg.Every) -> bool:
    """Whether the kinds leave out any anchor: all but concepts do not, where concepts are no subjects."""
    schema = compiler.schema
    concepts = (schema.concept_subjects and node.family != "attribute") or (schema.concept_attributes and node.family != "relation")
    return node.anchor != "subject" or concepts or of.kinds != alg.ENTITY_KINDS


def where(compiler: Compiler, node: alg.Where) -> FactRows:
    """Facts whose object satisfies the test."""
    facts = compiler.facts(node.facts)
    test = node.test
    if isinstance(test, alg.Among):
        if facts.family == "attribute":
            facts.conditions.append("false")
        elif isinstance(test.entities, alg.Named):
            facts.conditions.append(f"{paths.named(facts.thing, compiler.one_of(test.entities.names))} AND {facts.thing}:Entity")
        else:
            facts.conditions.append(f"{facts.thing} IN {compiler.set_of(test.entities)}")
        return facts
    facts.conditions.append(condition(compiler, test, facts.thing))
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
        from condgraph.engine.values import Time

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
