"""What an answer from an RDF store warns of, found out when somebody asks: values that a test could
not compare, counted there.

The schema says which types a predicate has, so that most questions need no query for it. What the
client works out is counted as it is worked out (`engine.execute.run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.execute.conditions import compared_kinds
from condgraph.engine.execute.left_out import LeftOut, left_out
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME
from condgraph.engine.kinds import all_comparable, condition_of, kinds_tested
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time
from condgraph.sparql.compile.compiled import native
from condgraph.sparql.compile.entities import Compiler
from condgraph.sparql.compile.group import Group, Target
from condgraph.sparql.compile.plan import value_rows, values_are_native
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import PRED, TYPE, VALUE, GraphIris, value_named
from condgraph.sparql.literals import integer

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

Select = Callable[[str], Iterable["QuerySolution"]]
_KINDS: Final = {
    f"{PRED}Text": Kind.TEXT,
    f"{PRED}Quantity": Kind.QUANTITY,
    f"{PRED}Time": Kind.TIME,
    f"{PRED}Unknown": Kind.UNKNOWN,
}
#: Long values that one query is asked about.
_LONG: Final = 200


def count_left_out(plan: Node, target: Target, select: Select) -> LeftOut:
    """The values that the tests of the query could not compare, by what they are and what they were
    to be compared with.
    """
    compiler = Compiler(target)
    nodes = [node for node in postorder(plan) if _may_leave_out(node, plan, target)]
    if not nodes:
        return LeftOut()
    branches = " UNION ".join(f"{{ {_tally(compiler, i, node)} }}" for i, node in enumerate(nodes))
    rows = [(int(row["step"].value), row["o"].value, int(row["count"].value)) for row in select(_TALLIES % branches)]
    kinds = _kinds_of({o for _, o, _ in rows}, target.names, select)
    found = LeftOut()
    for step, o, count in rows:
        left_out(found, *kinds[o], count, compared_kinds(condition_of(nodes[step])))
    return found


_TALLIES: Final = "SELECT ?step ?o ?count WHERE { %s }"


def _may_leave_out(node: Node, plan: Node, target: Target) -> bool:
    """Whether the query decides a test that may meet values which it cannot compare."""
    if isinstance(node, alg.AnySatisfies):
        if node is not plan or not values_are_native(_plain(node.values)):
            return False
    elif node.facets.tests == "nothing" or not native(node):
        return False
    wanted = compared_kinds(condition_of(node))
    kinds = _possible(node, target)
    return bool(wanted) and (kinds is None or not all_comparable(kinds, wanted))


def _plain(values: alg.Values) -> alg.Values:
    return values.values if isinstance(values, alg.Distinct) else values


def _possible(node: Node, target: Target) -> set[tuple[Kind, str]] | None:
    """The types that the values which a test looks at can have; None where the schema does not say."""
    schema = target.schema
    facts = node
    while not isinstance(facts, (alg.Scan, alg.Qualifiers)):
        facts = facts.inputs()[0]
    if isinstance(facts, alg.Qualifiers) or node.facets.tests in ("qualifiers", "validity"):
        kinds = kinds_tested(node, schema)
        return None if kinds is None else set(kinds)
    # The query itself knows which statements of any family there are.
    if facts.predicates is None:
        return None
    found = {kind for name in facts.predicates for kind in schema.attribute_kinds(name)} if facts.family != "relation" else set()
    entities = facts.family != "attribute" and any(map(schema.has_relation, facts.predicates))
    return found | {(Kind.ENTITY, NO_UNIT)} if entities else found


def _tally(compiler: Compiler, i: int, node: Node) -> str:
    """How often each value is looked at."""
    out = Group()
    count = "COUNT(*)"
    if isinstance(node, alg.AnySatisfies):
        v, _, _ = value_rows(compiler, _plain(node.values), out, whole=True)
        if isinstance(node.values, alg.Distinct):
            return f"SELECT DISTINCT ({integer(i)} AS ?step) ({v} AS ?o) ({integer(1)} AS ?count) WHERE {{ {out.text()} }}"
    else:
        assert isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity))
        rows = compiler.facts(node.facts, out, whole=True)
        v = rows.object
        if isinstance(node, alg.Where):
            count = f"COUNT(DISTINCT {rows.statement})"
        else:
            v, p = compiler.variable("q"), compiler.variable("p")
            keys = [node.key] if isinstance(node, alg.WhereQualifier) else [START_TIME if node.part == "start" else END_TIME]
            keys += [POINT_IN_TIME] if isinstance(node, alg.WhereValidity) else []
            out.append(f"VALUES {p} {{ {' '.join(map(compiler.iris.predicate, keys))} }} {rows.statement} {p} {v} .")
            if isinstance(node, alg.WhereValidity):
                out.append(f"{v} {TYPE} <pred:Time> .")
            count = f"COUNT(DISTINCT CONCAT(STR({rows.statement}), STR({p})))"
    return f"SELECT ({integer(i)} AS ?step) ({v} AS ?o) ({count} AS ?count) WHERE {{ {out.text()} }} GROUP BY {v}"


def _kinds_of(nodes: set[str], names: GraphIris, select: Select) -> dict[str, tuple[Kind, str]]:
    """The type and unit of each value, which its IRI says; of long ones they are asked."""
    found: dict[str, tuple[Kind, str]] = {}
    long = []
    for node in nodes:
        if not names.is_value(node):
            found[node] = Kind.ENTITY, NO_UNIT
            continue
        value = value_named(node[len(names.base) + len(VALUE) :])
        if value is None:
            long.append(node)
        elif isinstance(value, Quantity):
            found[node] = Kind.QUANTITY, value.unit
        else:
            kind = Kind.TEXT if isinstance(value, str) else Kind.TIME if isinstance(value, Time) else Kind.UNKNOWN
            found[node] = kind, NO_UNIT
    for some in cut(sorted(long), _LONG):
        listed = ", ".join(f"<{node}>" for node in some)
        text = f"SELECT ?o ?kind ?unit WHERE {{ ?o {TYPE} ?kind . OPTIONAL {{ ?o <pred:unit> ?unit }} FILTER(?o IN ({listed})) }}"
        for row in select(text):
            found[row["o"].value] = _KINDS[row["kind"].value], NO_UNIT if row["unit"] is None else row["unit"].value
    return found
