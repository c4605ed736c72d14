"""A whole plan as one query, and what its rows are: the top of a plan selects, counts or asks.

What the top of a plan works out from whole bags (sums, extremes, the n-th, native functions) is
finished by the client, with the engine's own code: then the query gathers the statements and
entities below (`gather`), and the engine runs the rest on them. `support.ANSWERS` says of every
operator which of the two it is.
"""

from __future__ import annotations

from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.schema import Kinds
from condgraph.engine.values import Kind
from condgraph.sparql.compile.compiled import Compiled, Shape, native
from condgraph.sparql.compile.conditions import supports_test, test_patterns
from condgraph.sparql.compile.entities import Compiler
from condgraph.sparql.compile.gather import gather
from condgraph.sparql.compile.group import Group, Objects, Target
from condgraph.sparql.layout import TYPE
from condgraph.sparql.literals import integer

#: An entity and its name in one column: an IRI has no spaces. A second column costs Virtuoso more
#: than looking the name up.
_NAMED: Final = '(CONCAT(STR(?e), " ", ?name) AS ?named)'


def compile_plan(plan: Node, target: Target) -> Compiled:
    """The query of a plan; raises `UnsupportedError` where no query can say it."""
    try:
        lines = _root(Compiler(target), plan)
        return gather(plan, target) if lines is None else Compiled(*lines)
    except RecursionError:
        raise UnsupportedError("SPARQL", ["so many steps of a program within each other"]) from None


def _root(compiler: Compiler, plan: Node) -> tuple[str, Shape] | None:
    """The query of a plan whose top needs no client; None for others."""
    if isinstance(plan, (alg.Entities, alg.Names, alg.Facts)):
        inner = plan.entities if isinstance(plan, alg.Names) else plan
        if not native(inner):
            return None
        of = alg.Reached(inner) if isinstance(inner, alg.Facts) else inner
        local = compiler.target.local
        if isinstance(of, alg.ArgExtreme) and (text := compiler.ordered(of) if local else compiler.tied(of)) is not None:
            return text, "best" if local else "tied"
        out = Group()
        if local:
            compiler.settled(of, "?e", out)
            return f"SELECT DISTINCT ?e WHERE {{ {out.text()} }}", "entities"
        compiler.entities(of, "?e", out)
        out.append("?e <pred:name> ?name .")
        return f"SELECT DISTINCT {_NAMED} WHERE {{ {out.text()} }}", "entities"
    if isinstance(plan, alg.Count) and isinstance(plan.of, alg.Entities) and native(plan.of):
        out = Group()
        compiler.settled(plan.of, "?e", out)
        return f"SELECT (COUNT(DISTINCT ?e) AS ?count) WHERE {{ {out.text()} }}", "count"
    if isinstance(plan, alg.Exists) and native(plan.facts):
        out = Group()
        rows = compiler.facts(plan.facts, out)
        if rows.loose:
            compiler.settle(rows.reached, out)
        return f"ASK {{ {out.text()} }}", "truth"
    if isinstance(plan, alg.AnySatisfies):
        values = plan.values.values if isinstance(plan.values, alg.Distinct) else plan.values
        if not values_are_native(values) or not supports_test(plan.condition) or not all(map(native, plan.condition.inputs())):
            return None
        out = Group()
        v, objects, kinds = value_rows(compiler, values, out)
        out.extend(test_patterns(compiler, plan.condition, v, objects, kinds))
        return f"ASK {{ {out.text()} }}", "truth"
    if isinstance(plan, alg.Distinct):
        values = plan.values
        if isinstance(values, alg.Predicates) and native(values.facts):
            out = Group()
            compiler.client_filters = True
            rows = compiler.facts(values.facts, out)
            if rows.loose:
                compiler.settle(rows.reached, out)
            return f"SELECT DISTINCT {rows.predicate} WHERE {{ {out.text()} }}".replace(rows.predicate, "?p"), "predicates"
        raws = isinstance(values, alg.Objects) and compiler.counts.get("raws", 1)
        if values_are_native(values) and not raws:
            out = Group()
            v, objects, kinds = value_rows(compiler, values, out)
            return _values(compiler, v, objects, kinds, out), "values"
    return None


def values_are_native(values: Node) -> bool:
    """Whether a bag is said as patterns."""
    if isinstance(values, alg.Qualifiers):
        return values.key is not None and native(values.facts)
    return isinstance(values, alg.Objects) and native(values.facts)


def value_rows(compiler: Compiler, values: Node, out: Group, *, whole: bool = False) -> tuple[str, Objects, Kinds | None]:
    """Patterns that bind a variable to the node of each value (`whole`: of each statement); the
    variable, and what it may be.
    """
    if isinstance(values, alg.Objects):
        rows = compiler.facts(values.facts, out, whole=whole)
        if rows.loose:
            compiler.settle(rows.subject, out)
        return rows.object, rows.objects, compiler.kinds(values.facts)
    assert isinstance(values, alg.Qualifiers)
    assert values.key is not None
    rows = compiler.facts(values.facts, out, whole=True)
    q = compiler.variable("q")
    out.append(f"{rows.statement} {compiler.iris.predicate(values.key)} {q} .")
    kinds = compiler.schema.qualifier_kinds(values.key)
    entity, value = (any((kind is Kind.ENTITY) is side for kind, _ in kinds) for side in (True, False))
    return q, "any" if entity == value else "entity" if entity else "value", kinds


def _values(compiler: Compiler, v: str, objects: Objects, kinds: Kinds | None, out: Group) -> str:
    """Each value once, in the first column: a value node says its value, long ones and entities
    have to be read.
    """
    long = compiler.counts.get("long", 1) and objects != "entity" and (kinds is None or any(k is not Kind.TIME for k, _ in kinds))
    if objects == "value" and not long:
        return f"SELECT DISTINCT {v} WHERE {{ {out.text()} }}"
    parts = []
    columns = "?v"
    if objects != "value":
        parts.append(f"?v <pred:name> ?name . ?v {TYPE} ?kind . OPTIONAL {{ ?v <pred:row> ?row }}")
        columns += " ?name ?kind ?row"
    if long:
        parts.append("?v <pred:value> ?x . OPTIONAL { ?v <pred:unit> ?unit . OPTIONAL { ?v <pred:exact> ?exact } }")
        columns += " ?x ?unit ?exact"
    optional = " ".join(f"OPTIONAL {{ {part} }}" for part in parts)
    return f"SELECT {columns} WHERE {{ {{ SELECT DISTINCT ({v} AS ?v) WHERE {{ {out.text()} }} }} {optional} }}"


def compile_descriptions(iris: list[str]) -> str:
    """The kind and the row of some entities."""
    listed = ", ".join(f"<{iri}>" for iri in iris)
    about = f"?e <pred:name> ?name . ?e {TYPE} ?kind . OPTIONAL {{ ?e <pred:row> ?row }}"
    return f"SELECT ?e ?name ?kind ?row WHERE {{ {about} FILTER(?e IN ({listed})) }}"


def compile_kinds(compiled: Compiled) -> str:
    """The entities of a query with the shape "entities", with the kind and the row of each."""
    text = compiled.text.replace(_NAMED, "?e ?name", 1)
    return f"SELECT ?e ?name ?kind ?row WHERE {{ {{ {text} }} ?e {TYPE} ?kind . OPTIONAL {{ ?e <pred:row> ?row }} }}"


def compile_sizes(nodes: list[Node], target: Target) -> str:
    """One query for how many results each operator gives (?step, ?size), and rows (?step, ?name)
    with the first of them.

    Operators that are not said as patterns have no rows.
    """
    compiler = Compiler(target)
    parts = []
    for i, node in enumerate(nodes):
        of: Node = node.entities if isinstance(node, alg.Names) else node
        of = alg.Reached(of) if isinstance(of, alg.Facts) else of
        step = integer(i)
        if isinstance(of, alg.Entities) and native(of):
            out = Group()
            e, name = compiler.variable("e"), compiler.variable("n")
            compiler.settled(of, e, out)
            parts.append(f"{{ SELECT ({step} AS ?step) (COUNT(DISTINCT {e}) AS ?size) WHERE {{ {out.text()} }} }}")
            out.append(f"{e} <pred:name> {name} .")
            first = f"SELECT DISTINCT {e} {name} WHERE {{ {out.text()} }} ORDER BY {name} {e} LIMIT 3"
            parts.append(f"{{ SELECT ({step} AS ?step) ({name} AS ?name) WHERE {{ {first} }} }}")
    return f"SELECT ?step ?size ?name WHERE {{ {' UNION '.join(parts)} }}" if parts else ""
