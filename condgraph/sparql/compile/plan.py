"""Compile a plan into one SPARQL query for its answer, or into one that gathers what the client needs to finish it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.tables import given
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import EntityKind
from condgraph.engine.iris import PRED, RDF
from condgraph.engine.row_shapes import RowShape, core_of, needed
from condgraph.engine.schema import Kinds
from condgraph.engine.store import valued
from condgraph.engine.values import Kind
from condgraph.sparql.compile.conditions import Group, Objects, Target, supports_test, test_patterns
from condgraph.sparql.compile.operators import ENTITIES, FACTS, Compiler
from condgraph.sparql.compile.solutions import SOLUTIONS, selected, shape_here
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import TYPE, integer

# -- which operators become patterns -----------------------------------------------------------------
# How each operator is run; a test compares the table with the algebra.
#
# "supported" operators are patterns of the query anywhere. "lowered" ones are finished by the client with
# the engine's own code, on what the query gathers (`gather`); if a reason in brackets follows, they are
# patterns where it does not apply.


_BAG: Final = "lowered: a bag is worked out from the statements that carry it"
_TABLE: Final = "lowered: a table is worked out from the rows of its groups"
SUPPORT: Final[dict[type[Node], str]] = {
    alg.AllEntities: "supported",
    alg.ById: "supported",
    alg.ByName: "supported",
    alg.Members: "supported",
    alg.Union: "supported",
    alg.Intersect: "supported",
    alg.Minus: "supported",
    alg.Neighbour: "supported",
    alg.Reached: "supported",
    alg.SameName: "supported",
    alg.ArgExtreme: "supported",
    alg.Scan: "supported",
    alg.Where: "supported (lowered: tests with the values of another step)",
    alg.WhereQualifier: "supported (lowered: tests with the values of another step)",
    alg.WhereValidity: "supported (lowered: tests with the values of another step)",
    alg.During: "supported",
    alg.OtherEnd: "supported",
    alg.DuringAny: "lowered: the times of another step decide",
    alg.SubjectsOf: "lowered: from a bag to the subjects of its carriers",
    alg.Referents: "lowered: from a bag to entities, also by their names",
    alg.Names: "supported at the end of a program, else lowered",
    alg.Objects: "supported at the end of a program, each value once, else lowered",
    alg.Qualifiers: "supported at the end of a program, each value once, else lowered",
    alg.Predicates: "supported at the end of a program, each value once, else lowered",
    alg.Distinct: "supported at the end of a program, else lowered",
    alg.Count: "supported of entities, else lowered: texts are counted as they are shown",
    alg.AnySatisfies: "supported",
    alg.Exists: "supported",
    alg.Validity: _BAG,
    alg.QualifierKeys: _BAG,
    alg.RowNumbers: _BAG,
    alg.FilterValues: _BAG,
    alg.Concat: _BAG,
    alg.Constants: _BAG,
    alg.Nth: _BAG,
    alg.Clip: _BAG,
    alg.Bound: _BAG,
    alg.Shown: _BAG,
    alg.Extreme: _BAG,
    alg.Mode: _BAG,
    alg.Sum: "lowered: sums are exactly rounded, which no store's are",
    alg.Mean: "lowered: means are exactly rounded, which no store's are",
    alg.Deviation: "lowered: SPARQL has no square roots",
    alg.Median: "lowered: SPARQL has no place in an order, and its means are not exactly rounded",
    alg.Group: "lowered: sums are exactly rounded, and in each group the most frequent unit counts",
    alg.Having: _TABLE,
    alg.Order: _TABLE,
    alg.Limit: _TABLE,
    alg.Pattern: "supported (lowered: tests with the values of another step)",
    alg.Path: "supported of paths by their ends, of steps one way, else lowered: a store goes along each",
    alg.EntityRows: "supported",
    alg.Rows: "supported of texts, quantities and times, else lowered",
    alg.Join: "supported",
    alg.LeftJoin: "supported without a condition, else lowered",
    alg.SemiJoin: "supported of variables that every row binds, else lowered",
    alg.AntiJoin: "supported of variables that every row binds, else lowered",
    alg.MarkJoin: "supported of variables that every row binds, else lowered",
    alg.MinusRows: "supported of variables that every row binds, else lowered",
    alg.UnionAll: "supported",
    alg.Filter: "lowered: expressions compare times, units and numbers as Python does",
    alg.WhereRows: "supported (lowered: tests with the values of another step)",
    alg.BoundRows: "supported",
    alg.Extend: "lowered: expressions compute as Python does",
    alg.Unwind: "lowered: SPARQL has no lists",
    alg.Project: "supported",
    alg.DistinctRows: "supported",
    alg.GroupRows: "supported of counts, else lowered: sums are exactly rounded, lists are in a fixed order",
    alg.OrderRows: "lowered: stores order values in other ways",
    alg.SliceRows: "lowered: stores order values in other ways",
    alg.EntitiesOf: "supported",
    alg.FactsOf: "supported",
    alg.Apply: "lowered: the engine's native functions",
    alg.Choose: "lowered: one of two bags",
    alg.External: "lowered: the function is the client's",
}


# -- queries -----------------------------------------------------------------------------------------


# -- compiled ----------------------------------------------------------------------------------------
# A compiled query, and the operators that become patterns of it.


#: The rows of a query: entities (with names, if the graph is on a server), entities with their sort key
#: (ties with the first count), one row with all ties, values, predicates, a count, a truth value, rows
#: that bind variables, the evidence of a plan over such rows, or gathered triples.
Shape: TypeAlias = Literal["entities", "best", "tied", "values", "predicates", "count", "truth", "rows", "witness", "gathered"]


#: Names of the operators that become patterns.
PATTERNS: Final = given(ENTITIES) | given(FACTS) | given(SOLUTIONS) | {"EntitiesOf", "FactsOf"}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query and the shape of its rows. `leaves` are the operators whose results a gathered answer starts from."""

    text: str
    shape: Shape
    leaves: tuple[Node, ...] = field(default=())
    #: For rows: the operator that gives them, from which the client computes the rest, and the columns of
    #: its variables.
    core: alg.Solutions | None = None
    columns: tuple[tuple[str, str], ...] = ()


def native(node: Node) -> bool:
    """Tell whether an operator and everything below it become patterns."""
    order = postorder(node)
    return not lowered(order) if over_rows(order) else all(map(_is_native, order))


def lowered(order: Iterable[Node]) -> set[int]:
    """Return the operators of a plan (by `id`; inputs first) that are not patterns, or depend on one that is none."""
    result: set[int] = set()
    shapes: dict[int, RowShape] = {}
    for node in order:
        if not _is_native(node) or any(id(child) in result for child in node.inputs()):
            result.add(id(node))
        elif isinstance(node, alg.Solutions):
            if (shape := shape_here(node, shapes)) is None:
                result.add(id(node))
            else:
                shapes[id(node)] = shape
    return result


def over_rows(order: Iterable[Node]) -> bool:
    """Tell whether some operator of a plan gives rows that bind variables."""
    return any(isinstance(node, alg.Solutions) for node in order)


def _is_native(node: Node) -> bool:
    if isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity)):
        return supports_test(node.condition)
    return has_patterns(node)


def has_patterns(node: Node) -> bool:
    """Tell whether operators of this type become patterns."""
    return type(node).__name__ in PATTERNS


# -- gather ------------------------------------------------------------------------------------------
# Plans that the client finishes: one query fetches the statements and entities on which the rest of the
# plan runs.
#
# The largest parts that are patterns become `leaves`. A scan above them, whose entities only the client will know, is gathered
# for all entities. Each row is (leaf, result of the leaf, a triple about it): statements with their qualifiers and places,
# entities with their names and rows, value nodes. `sparql.gathered` makes a snapshot of them.


#: Terms of the entities, value nodes and records that a statement leads to.
_ABOUT: Final = (
    "name", "value", "unit", "exact", "start", "end", "precision", "source", "row", "position",
)  # fmt: skip
#: Terms of the nodes that a branch returns, and terms that lead on from them; more of both with
#: memberships and sources.
_RESERVED: Final = ("fact_h", "fact_r", "fact_t", "source", "row", "raw", "record", "name", "position")
_LEAD: Final = ("fact_h", "fact_t", "record")
_ENDS: Final = ("member", "concept", "subclass", "superclass")
_STATED: Final = (*_ENDS, "label", "location", "format", "place")
#: More results than any graph has.
_ANY: Final = 10**9


def gather(plan: Node, target: Target) -> Compiled:
    """Return the query that gathers the statements with which the client finishes a plan."""
    branches, leaves, stated = _branches(plan, target)
    if not branches:
        # A plan of constants alone needs nothing from the graph; the query has a predicate that no triple
        # has.
        return Compiled("SELECT ?leaf ?n ?s ?p ?o WHERE { ?n <pred:nothing> ?o }", "gathered", ())
    return Compiled(gathering(branches, target, stated), "gathered", tuple(leaves))


def gather_parts(plan: Node, target: Target) -> list[str]:
    """Return `gather` as one query for each part."""
    branches, _, stated = _branches(plan, target)
    return [gathering([branch], target, stated) for branch in branches]


def _branches(plan: Node, target: Target) -> tuple[list[str], list[Node], bool]:
    """Return the parts of the query, the leaves by number, and whether the parts include memberships."""
    leaves: list[Node] = []
    extra: list[Node] = []
    collect(plan, leaves, extra, set())
    compiler = Compiler(target)
    everything = [*leaves, *extra]
    branches = [branch_of(compiler, i, leaf) for i, leaf in enumerate(everything)]
    for i, (node, below) in enumerate(_renamed(plan), len(everything)):
        branches.extend(namesakes(compiler, i, node, below))
    stated = any(isinstance(node, alg.Members) for node in extra_of(plan))
    if stated:
        branches.extend(memberships(compiler))
    return branches, everything, stated


def gathering(branches: Iterable[str], target: Target, stated: bool = False) -> str:
    """Return the query of rows (leaf, result, a triple about it); `stated` adds terms of sources and memberships.

    Qualifiers are recognised by name: predicates of a statement in the graph's own base. If a store `names_predicates`,
    they are listed from the schema; entities then also return triples with such predicates, which `Gathered` removes.
    """
    base, about = target.names.base, [f"<{PRED}{term}>" for term in _ABOUT] + [f"<{RDF}type>"]
    own = [f"<{PRED}{term}>" for term in (*_RESERVED, *(_STATED if stated else ()))] + [f"<{RDF}type>"]
    lead = [f"<{PRED}{term}>" for term in (*_LEAD, *(_ENDS if stated else ()))]
    selected = "SELECT DISTINCT ?leaf ?n WHERE { " + " UNION ".join(f"{{ {branch} }}" for branch in branches) + " }"
    head = "SELECT DISTINCT ?leaf ?n ?s ?p (STR(?x) AS ?o) WHERE "
    if target.dialect.names_predicates:
        keys = [target.names.predicate(key) for key in target.schema.qualifiers]
        size = target.dialect.list_length
        parts = [f"{{ ?n ?p ?x . FILTER(?p IN ({', '.join(some)})) BIND(?n AS ?s) }}" for some in cut([*own, *keys], size)]
        there = f"VALUES ?p {{ {' '.join(about)} }} ?s ?p ?x ."
        parts += [f"{{ ?n ?k ?s . FILTER(?k IN ({', '.join(some)})) {there} }}" for some in cut([*lead, *keys], size)]
        return f"{head}{{ {{ {selected} }} {' UNION '.join(parts)} }}"
    # The limit exceeds any graph: Oxigraph looks up the triples of each node if it expects few nodes. If
    # a long pattern, or a list of values, makes it expect more, it reads the whole store.
    first, second = (
        f'FILTER({v} IN ({", ".join(listed)}) || (STRSTARTS(STR(?n), "{base}.s/") && STRSTARTS(STR({v}), "{base}")))'
        for v, listed in (("?p", own), ("?k", lead))
    )
    return (
        f"{head}{{ {{ {selected} LIMIT {_ANY} }} {{ ?n ?p ?x . {first} BIND(?n AS ?s) }} UNION "
        f"{{ ?n ?k ?s . {second} ?s ?p ?x . FILTER(?p IN ({', '.join(about)})) }} }}"
    )


def collect(node: Node, leaves: list[Node], extra: list[Node], seen: set[int]) -> None:
    """Collect the largest native parts, and what scans and neighbours of computed entities need."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, (alg.Entities, alg.Facts)) and native(node):
        leaves.append(node)
        return
    if type(node) in READERS:
        extra.extend(READERS[type(node)](node))
    for child in node.inputs():
        collect(child, leaves, extra, seen)


def _every_statement(node: alg.Scan) -> Iterator[Node]:
    yield replace(node, of=None, reach="subject")


def _every_value(node: alg.ArgExtreme) -> Iterator[Node]:
    yield alg.Scan(None, (node.key,), family="attribute")


def _every_row(node: alg.Neighbour) -> Iterator[Node]:
    sources = {part.source for part in postorder(node) if isinstance(part, (alg.Scan, alg.AllEntities)) and part.source}
    listed: list[str | None] = [*sorted(sources)] or [None]
    for source in listed:
        yield alg.AllEntities((EntityKind.ROW,), source)


def _every_member(node: alg.Members) -> Iterator[Node]:
    """Yield everything that may be in a concept, since only the client will know the concepts; `gather` adds all memberships."""
    yield alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))


#: What is gathered for operators that read the graph (`Facets.reads`) if only the client will know their
#: inputs.
READERS: Final[dict[type[Node], Callable[[Any], Iterator[Node]]]] = {
    alg.Scan: _every_statement,
    alg.ArgExtreme: _every_value,
    alg.Neighbour: _every_row,
    alg.Members: _every_member,
}
#: Operators that match entities by name; `namesakes` gathers these entities.
BY_NAME: Final = (alg.Referents, alg.SameName)


def extra_of(plan: Node) -> Iterator[Node]:
    """Return the operators that do not become patterns."""
    return (node for node in postorder(plan) if not native(node))


def memberships(compiler: Compiler, members: alg.Entities | None = None, concepts: alg.Entities | None = None) -> Iterator[str]:
    """Yield queries for stated memberships and subclasses: all, or those that put `members` under `concepts`."""
    for ends in (("member", "concept"), ("subclass", "superclass")):
        out = Group()
        m, end, c = (compiler.variable(prefix) for prefix in "mec")
        if concepts is not None:
            above = compiler.variable("c")
            compiler.entities(concepts, above, out)
            out.append(f"{c} <pred:subclass_of>* {above} .")
        out.append(f"{m} <pred:{ends[1]}> {c} . {m} <pred:{ends[0]}> {end} .")
        if members is not None and ends[0] == "member":
            compiler.entities(members, end, out)
        # In a group that gives nothing, a path makes Virtuoso's planner fail.
        if not out.empty:
            yield f"SELECT DISTINCT (-1 AS ?leaf) ({m} AS ?n) WHERE {{ {out.text()} }}"


def memberships_of(compiler: Compiler, of: alg.Entities, most: int) -> Iterator[str]:
    """Yield queries for stated memberships with one of these entities at an end, at most `most` for each end."""
    for end in ("member", "concept"):
        out = Group()
        m, e = compiler.variable("m"), compiler.variable("e")
        out.append(f"{m} <pred:{end}> {e} .")
        compiler.entities(of, e, out)
        yield f"SELECT DISTINCT (-1 AS ?leaf) ({m} AS ?n) WHERE {{ {out.text()} }} LIMIT {int(most)}"


def branch_of(compiler: Compiler, i: int, leaf: Node) -> str:
    """Return the part of the query that gives the statements, or the entities, of a leaf."""
    out = Group()
    if isinstance(leaf, alg.Facts):
        rows = compiler.facts(leaf, out, whole=True)
        n = rows.statement
    else:
        n = compiler.variable("e")
        compiler.settled(leaf, n, out)
    return f"SELECT DISTINCT ({integer(i)} AS ?leaf) ({n} AS ?n) WHERE {{ {out.text()} }}"


def _renamed(plan: Node) -> Iterator[tuple[Node, list[Node]]]:
    """Yield operators that match entities by name, outside of native parts, with the native parts below them."""
    seen: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if id(node) in seen or (isinstance(node, (alg.Entities, alg.Facts)) and native(node)):
            continue
        seen.add(id(node))
        if isinstance(node, BY_NAME):
            below: list[Node] = []
            collect(node, below, below, set())
            yield node, below
        stack.extend(node.inputs())


def namesakes(compiler: Compiler, i: int, node: Node, below: list[Node]) -> Iterator[str]:
    """Yield queries for entities that share a name with a result of the parts below; all, if the client computes the names."""
    select = f"SELECT DISTINCT ({integer(i)} AS ?leaf) (?n1 AS ?n) WHERE {{ %s }}"
    if any(isinstance(part, (alg.Apply, alg.External)) for part in postorder(node)):
        yield select % "?n1 <pred:name> ?n2 ."
        return
    texts = sorted({v for part in postorder(node) if isinstance(part, alg.Constants) for v in part.values if isinstance(v, str)})
    if texts:
        out = Group()
        compiler.by_name(alg.ByName(tuple(texts)), "?n1", out)
        yield select % out.text()
    for leaf in below:
        out = Group()
        t = compiler.variable("t")
        if isinstance(leaf, alg.Facts):
            rows = compiler.facts(leaf, out, whole=True)
            k, v = compiler.variable("k"), compiler.variable("v")
            out.append(f"{rows.statement} {k} {v} . {_leading_to(compiler, k)} {v} <pred:name>|<pred:value> {t} .")
        else:
            e = compiler.variable("e")
            compiler.entities(leaf, e, out)
            out.append(f"{e} <pred:name> {t} .")
        out.append(f"?n1 <pred:name> {t} .")
        yield select % out.text()


def other_namesakes(compiler: Compiler, i: int, of: alg.Entities, scans: Iterable[alg.Scan], most: int) -> Iterator[str]:
    """Yield queries for other entities that share a name with an entity of a part, or with one in its scans.

    Each has at most `most` results. One entity for each name would do, but Oxigraph treats the result of an aggregate
    as possibly unbound, and compares it with every triple of the store (6,000 names around a hub took a minute).
    """
    select = f"SELECT DISTINCT ({integer(i)} AS ?leaf) ?n WHERE {{ {{ SELECT DISTINCT ?v WHERE {{ %s }} LIMIT {int(most)} }} "
    select += f"?v <pred:name> ?t . ?n <pred:name> ?t . FILTER(?n != ?v) }} LIMIT {int(most)}"
    out = Group()
    compiler.settled(of, "?v", out)
    yield select % out.text()
    for scan in scans:
        out = Group()
        rows = compiler.facts(scan, out, whole=True)
        k = compiler.variable("k")
        out.append(f"{rows.statement} {k} ?v . {_leading_to(compiler, k)}")
        if scan.family == "attribute":
            out.append("?v <pred:name> ?held .")
        yield select % out.text()


def _leading_to(compiler: Compiler, k: str) -> str:
    """Return the condition that a predicate of a statement leads to an end or a qualifier."""
    ends, target = ["<pred:fact_h>", "<pred:fact_t>"], compiler.target
    keys = [target.names.predicate(key) for key in target.schema.qualifiers]
    if target.dialect.names_predicates and len(keys) < target.dialect.list_length:
        return f"FILTER({k} IN ({', '.join([*ends, *keys])}))"
    return f'FILTER({k} IN ({", ".join(ends)}) || STRSTARTS(STR({k}), "{target.names.base}"))'


# -- plan --------------------------------------------------------------------------------------------
# Operators at the top of a plan that need whole bags (sums, extremes, the n-th, native functions) are run
# by the client, with the engine's own code: the query then gathers the statements and entities below them
# (`gather`). `SUPPORT` tells for each operator which of the two applies.


#: An entity and its name in one column, as IRIs contain no spaces. A second column costs Virtuoso more
#: than looking up the name.
_NAME_KEY: Final = '(CONCAT(STR(?e), " ", ?name) AS ?named)'


def compile_plan(plan: Node, target: Target) -> Compiled:
    """Compile a plan; raises `UnsupportedError` if no query can express it.

    `sparql.gathered` has the query for the evidence of a plan over rows.
    """
    try:
        order = postorder(plan)
        if over_rows(order):
            beyond = lowered(order)
            core = (
                core_of(plan, beyond, target.schema, spelled=bool(target.counts.get("raws", 1)))
                if isinstance(plan, alg.Solutions)
                else None
            )
            if core is not None:
                names = needed(plan, core)  # type: ignore[arg-type]
                rows = core if names == core.variables else alg.Project(core, tuple((name, name) for name in names))
                text, columns = selected(Compiler(target), rows)
                return Compiled(text, "rows", core=core, columns=tuple(zip(names, columns, strict=True)))
            if isinstance(plan, alg.Solutions) or any(id(node) in beyond for node in order if isinstance(node, alg.Solutions)):
                return Compiled("", "witness")
        lines = _root(Compiler(target), plan)
        return gather(plan, target) if lines is None else Compiled(*lines)
    except RecursionError:
        raise UnsupportedError("SPARQL", ["so many steps of a program within each other"]) from None


def _root(compiler: Compiler, plan: Node) -> tuple[str, Shape] | None:
    """Return the query of a plan that needs no client at its top; None for others."""
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
        return f"SELECT DISTINCT {_NAME_KEY} WHERE {{ {out.text()} }}", "entities"
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
    """Tell whether a bag becomes patterns."""
    if isinstance(values, alg.Qualifiers):
        return values.key is not None and native(values.facts)
    return isinstance(values, alg.Objects) and native(values.facts)


def value_rows(compiler: Compiler, values: Node, out: Group, *, whole: bool = False) -> tuple[str, Objects, Kinds | None]:
    """Add patterns that bind a variable to the node of each value (`whole`: of each statement).

    Returns the variable, and what it may be.
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
    """Return a query with each value once in the first column.

    The name of a value node contains the value; long ones and entities need further columns.
    """
    may_be_long = (
        compiler.counts.get("long", 1) and objects != "entity" and (kinds is None or any(k is not Kind.TIME for k, _ in kinds))
    )
    if objects == "value" and not may_be_long:
        return f"SELECT DISTINCT {v} WHERE {{ {out.text()} }}"
    parts = []
    columns = "?v"
    if objects != "value":
        parts.append(f"?v <pred:name> ?name . ?v {TYPE} ?kind . OPTIONAL {{ ?v <pred:row> ?row }}")
        columns += " ?name ?kind ?row"
    if may_be_long:
        parts.append("?v <pred:value> ?x . OPTIONAL { ?v <pred:unit> ?unit . OPTIONAL { ?v <pred:exact> ?exact } }")
        columns += " ?x ?unit ?exact"
    optional = " ".join(f"OPTIONAL {{ {part} }}" for part in parts)
    return f"SELECT {columns} WHERE {{ {{ SELECT DISTINCT ({v} AS ?v) WHERE {{ {out.text()} }} }} {optional} }}"


def compile_descriptions(iris: list[str]) -> str:
    """Return the query of the kind and the row of some entities."""
    listed = ", ".join(f"<{iri}>" for iri in iris)
    about = f"?e <pred:name> ?name . ?e {TYPE} ?kind . OPTIONAL {{ ?e <pred:row> ?row }}"
    return f"SELECT ?e ?name ?kind ?row WHERE {{ {about} FILTER(?e IN ({listed})) }}"


def compile_kinds(compiled: Compiled) -> str:
    """Return the query of a `Compiled` of the shape "entities", with kind and row added."""
    text = compiled.text.replace(_NAME_KEY, "?e ?name", 1)
    return f"SELECT ?e ?name ?kind ?row WHERE {{ {{ {text} }} ?e {TYPE} ?kind . OPTIONAL {{ ?e <pred:row> ?row }} }}"


def compile_sizes(nodes: list[Node], target: Target, most: int = 3, *, statements: bool = False) -> str:
    """Compile one query for the number of results of each operator (?step, ?size), and rows (?step, ?name) with the first ones.

    Operators that do not become patterns have no rows; with `statements`, values are counted by their statements.
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
            parts.append(counting(step, e, out))
            out.append(f"{e} <pred:name> {name} .")
            first = f"SELECT DISTINCT {e} {name} WHERE {{ {out.text()} }} ORDER BY {name} {e} LIMIT {most}"
            parts.append(f"{{ SELECT ({step} AS ?step) ({name} AS ?name) WHERE {{ {first} }} }}")
        elif statements and (facts := valued(node)) is not None and native(facts):
            out = Group()
            parts.append(counting(step, compiler.facts(facts, out, whole=True).statement, out))
    return f"SELECT ?step ?size ?name WHERE {{ {' UNION '.join(parts)} }}" if parts else ""


def counting(step: str, of: str | None, where: Group) -> str:
    """Return a part of a query that counts the values of a variable."""
    return f"{{ SELECT ({step} AS ?step) (COUNT(DISTINCT {of}) AS ?size) WHERE {{ {where.text()} }} }}"
