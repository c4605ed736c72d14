"""What an answer warns of, found out when somebody asks: values that a test could not compare, counted by the server.

Most questions need no query for it: the schema says which types a predicate has. What aggregates warn of is found by running the
plan on the statements it rests on (`witness`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condgraph.cypher.compile_facts import written
from condgraph.cypher.compile_values import qualified
from condgraph.cypher.compiler import Compiler
from condgraph.cypher.layout import KINDS
from condgraph.cypher.support import lowered
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.execute.run import describe_kinds
from condgraph.engine.execute.tests import compared_kinds
from condgraph.engine.schema import Kinds
from condgraph.engine.values import NO_UNIT, Kind

if TYPE_CHECKING:
    from condgraph.cypher.compile import Compiled
    from condgraph.engine.stored_schema import StoredSchema

_TESTED = (alg.Where, alg.WhereQualifier, alg.WhereValidity, alg.Keep, alg.Some)
#: Operators that warn of what they find, beside tests.
_TELLING = (
    *(alg.Best, alg.Extreme, alg.Mode, alg.Sum, alg.Mean, alg.Nth, alg.Clip, alg.DuringAny, alg.Neighbour, alg.Referents),
    *(alg.Apply, alg.External, alg.Choose),
)


def tested(plan: Node, schema: StoredSchema) -> list[Node]:
    """The operators whose tests may meet values that they cannot compare, as far as the server can count them."""
    beyond = lowered(plan)
    found: list[Node] = []
    for node in postorder(plan):
        if isinstance(node, _TESTED) and not beyond.intersection(map(id, node.inputs())):
            wanted = compared_kinds(node.test)
            kinds = kinds_of(node, schema)
            if wanted and (kinds is None or not _all(kinds, wanted)):
                found.append(node)
    return found


def _all(kinds: Kinds, wanted: set[tuple[Kind, str]]) -> bool:
    """Whether values of these types can all be compared, or are not known and count as nothing."""
    return all(one in wanted or one[0] is Kind.UNKNOWN for one in kinds)


def kinds_of(node: Node, schema: StoredSchema) -> Kinds | None:
    """The types that the values an operator looks at can have; None where the schema does not say."""
    if isinstance(node, alg.WhereQualifier):
        return schema.qualifier_kinds(node.key)
    if isinstance(node, (alg.WhereValidity, alg.Validity, alg.Clip, alg.Bound)):
        return {(Kind.TIME, NO_UNIT): 1}
    if isinstance(node, alg.RowNumbers):
        return {(Kind.QUANTITY, NO_UNIT): 1}
    if isinstance(node, (alg.Names, alg.Predicates, alg.QualifierKeys)):
        return {(Kind.TEXT, NO_UNIT): 1}
    if isinstance(node, alg.Qualifiers):
        return None if node.key is None else schema.qualifier_kinds(node.key)
    if isinstance(node, alg.Scan):
        if node.predicates is None or node.family == "any":
            return None
        if node.family == "relation":
            return {(Kind.ENTITY, NO_UNIT): 1}
        return {one: 1 for name in node.predicates for one in schema.attribute_kinds(name)}
    if isinstance(node, (alg.Objects, alg.Where, alg.During, alg.DuringAny, alg.Turn)):
        return kinds_of(node.facts, schema)
    if isinstance(node, (alg.Keep, alg.Some, alg.Distinct, alg.Extreme, alg.Mode, alg.Nth)):
        return kinds_of(node.values, schema)
    return None


def told(plan: Node, schema: StoredSchema, empty: bool) -> bool:
    """Whether some aggregate may have something to say that only a look at its values tells."""
    for node in postorder(plan):
        if not isinstance(node, _TELLING):
            continue
        kinds: Kinds | None = None
        if isinstance(node, alg.Best):
            kinds = schema.attribute_kinds(node.key)
        elif isinstance(node, (alg.Extreme, alg.Mode, alg.Nth)):
            kinds = kinds_of(node.values, schema)
            if kinds is not None and not isinstance(node, alg.Extreme):
                kinds = {(Kind.TIME, NO_UNIT): 1}
        elif isinstance(node, alg.Clip):
            kinds = kinds_of(node.limits, schema)
        elif isinstance(node, alg.DuringAny):
            kinds = {(Kind.TIME, NO_UNIT): 1} if isinstance(node.values, alg.Given) else kinds_of(node.values, schema)
        alike = kinds is not None and len(kinds) == 1 and next(iter(kinds))[0] in (Kind.QUANTITY, Kind.TIME)
        if empty or not alike:
            return True
    return False


def compile_tallies(nodes: list[Node], graph: str, schema: StoredSchema) -> Compiled:
    """One query for how many values of each type and unit each operator looks at: `step`, `kind`, `unit`, `count`."""
    from condgraph.cypher.compile import Compiled

    compiler = Compiler(graph, schema, [child for node in nodes for child in node.inputs()])
    branches: list[list[str]] = []
    for step, node in enumerate(nodes):
        for clauses, kind, unit in _looked_at(compiler, node):
            grouped = f"RETURN {step} AS step, {kind} AS kind, {unit} AS unit, count(*) AS count"
            branches.append([*clauses, grouped])
    return Compiled(compiler.whole(branches, ("step", "kind", "unit", "count")), compiler.parameters, "values")


def _looked_at(compiler: Compiler, node: Node) -> list[tuple[list[str], str, str]]:
    """Clauses that leave what an operator's test looks at, and its kind and unit."""
    if isinstance(node, (alg.Keep, alg.Some)):
        rows = compiler.values(node.values)
        return [(rows.clauses, f"{rows.cell}.kind", f"{rows.cell}.unit")]
    assert isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity))
    facts = compiler.facts(node.facts)
    if isinstance(node, alg.Where):
        if facts.family == "relation":
            return [(facts.render(), "'entity'", "null")]
        kind = f"CASE WHEN {facts.thing}:Value THEN {facts.thing}.kind ELSE 'entity' END"
        return [(facts.render(), kind, f"{facts.thing}.unit")]
    q = compiler.name("q")
    if isinstance(node, alg.WhereQualifier):
        test = f"{q}.name = {compiler.parameter(node.key)}"
    else:
        test = written(compiler, facts, q, node.part)
    return [(qualified(compiler, facts, q, test), f"{q}.kind", f"{q}.unit")]


def left_out(nodes: list[Node], rows: list[dict[str, Any]]) -> list[str]:
    """The warnings of values that were left out."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        node = nodes[row["step"]]
        assert isinstance(node, _TESTED)
        wanted, kind = compared_kinds(node.test), KINDS[row["kind"]]
        unit = row["unit"] if kind is Kind.QUANTITY else NO_UNIT
        if kind is not Kind.UNKNOWN and (kind, unit) not in wanted:
            what = kind.name.lower() + (f" in {unit}" if unit != NO_UNIT else "")
            key = what, describe_kinds(wanted)
            found[key] = found.get(key, 0) + row["count"]
    return [
        f"{'1 value' if count == 1 else f'{count} values'} ({what}) cannot be compared with {wanted} and are left out"
        for (what, wanted), count in found.items()
    ]
