"""Operators over rows that bind several variables, as groups of SPARQL.

A variable of a plan is the same variable of the query everywhere, so that SPARQL joins the groups: entities and values are
nodes, shared by equal terms, names of predicates their IRIs. Every statement of a pattern is bound to its node, which keeps
parallel statements apart; whatever else may repeat a row (the sets in a pattern, tests with sets) is put in a subquery that
selects DISTINCT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.algebra.tables import SolutionTable, by_type
from condgraph.engine.iris import VALUE, value_name, value_named
from condgraph.engine.row_shapes import RowShape, Sort, met, of_pattern, shape_of, shapes_of
from condgraph.engine.store import KnownSchema
from condgraph.sparql.compile.conditions import (
    NEVER,
    FactNeeds,
    FactTerms,
    Group,
    Objects,
    Target,
    during_test,
    supports_test,
    test_patterns,
)
from condgraph.sparql.layout import GraphIris

#: Steps up to which a path of bounded length is written out.
MAX_STEPS: Final = 30


class Compiler(Protocol):
    """The part of the compiler (`operators.Compiler`) that rows need."""

    target: Target
    iris: GraphIris
    schema: KnownSchema
    counts: Mapping[str, int]
    #: Variables of rows, by their names in the plan.
    row_variables: dict[str, str]

    def variable(self, prefix: str) -> str:
        """Return a fresh variable."""

    def group(self) -> Group:
        """Return an empty group."""

    def entities(self, node: Node, e: str, out: Group) -> bool:
        """Add patterns that bind `e` to each entity of a set; tell whether `e` is still loose."""

    def settled(self, node: Node, e: str, out: Group) -> None:
        """Like `entities`, with `e` restricted to entities in any case."""

    def facts(self, node: Node, out: Group, *, whole: bool = False, reached: str | None = None) -> FactTerms:
        """Add patterns of facts; `whole` binds the statement."""


_OBJECTS: Final[Mapping[Sort, Objects]] = {"entity": "entity", "value": "value", "any": "any"}


def rows(compiler: Compiler, node: Node) -> str:
    """Return the group that gives the rows of an operator, to be put between braces."""
    return _BY_TYPE[type(node)](compiler, node)


def variable(compiler: Compiler, name: str) -> str:
    """Return the query's variable for one of the plan."""
    known = compiler.row_variables
    if name not in known:
        known[name] = compiler.variable("r")
    return known[name]


# -- What becomes a group ----------------------------------------------------------------------------


def shape_here(node: alg.Solutions, known: Mapping[int, RowShape]) -> RowShape | None:
    """Return the shape of an operator that becomes a group, given the shapes of its inputs; None if the client computes it."""
    shape = shape_of(node, known)
    return shape if shape is not None and _is_group(node, known) else None


def _is_group(node: alg.Solutions, known: Mapping[int, RowShape]) -> bool:
    """Tell whether SPARQL can express an operator of a known shape."""
    if isinstance(node, alg.Pattern):
        conditions = [part.condition for part in node.statements]
        conditions += [qualifier.condition for part in node.statements for qualifier in part.qualifiers]
        return all(condition is None or supports_test(condition) for condition in conditions)
    if isinstance(node, alg.WhereRows):
        return supports_test(node.condition)
    if isinstance(node, alg.Rows):
        return all(value_named(value_name(term)) is not None for row in node.rows for term in row if term is not None)  # type: ignore[arg-type]
    if isinstance(node, alg.Path):
        return node.hops[0].direction != "either" and (node.most is None or node.most <= MAX_STEPS)
    if isinstance(node, alg.SemiJoin | alg.AntiJoin | alg.MarkJoin):
        left, right = known[id(node.left)], known[id(node.right)]
        return all(left[name].certain and right[name].certain for name in left.keys() & right.keys())
    return True


# -- Patterns ----------------------------------------------------------------------------------------


def _node(compiler: Compiler, place: alg.Place | None, out: list[str], prefix: str = "e") -> str:
    """Return the variable of an entity in a pattern."""
    if isinstance(place, alg.Variable):
        return variable(compiler, place.name)
    e = compiler.variable(prefix)
    if isinstance(place, alg.Entities):
        out.append(_among(compiler, place, e))
    return e


def _among(compiler: Compiler, of: alg.Entities, e: str) -> str:
    """Return patterns that bind each entity of a set once."""
    group = Group()
    compiler.settled(of, e, group)
    if isinstance(of, alg.ByName | alg.ById):
        return group.text()
    return f"{{ SELECT DISTINCT {e} WHERE {{ {group.text()} }} }}"


def _tests(compiler: Compiler, test: alg.Condition, v: str, objects: Objects) -> str:
    """Return patterns under which a node passes a condition, which repeat no row."""
    lines = " ".join(test_patterns(compiler, test, v, objects, None))
    return f"FILTER EXISTS {{ {lines} }}" if test.inputs() else lines


def _pattern(compiler: Compiler, node: alg.Pattern) -> str:
    out: list[str] = []
    statements: list[str] = []
    shape = of_pattern(node)
    parts: tuple[alg.StatementPattern | alg.MembershipPattern, ...] = (*node.statements, *node.memberships)
    times = Counter(name for part in parts for name in part.variables)
    repeated = {name for name in times if times[name] > 1}
    for statement in node.statements:
        statements.append(_statement(compiler, statement, shape, repeated, out))
    if node.different:
        pairs = [(first, second) for index, first in enumerate(statements) for second in statements[:index]]
        out += [f"FILTER({first} != {second})" for first, second in pairs]
    for part in node.memberships:
        out.append(_membership(compiler, part))
    return " ".join(out)


def _membership(compiler: Compiler, part: alg.MembershipPattern) -> str:
    """Return the patterns of members and concepts; unbound variables repeat no row."""
    out: list[str] = []
    e, c = _node(compiler, part.member, out), _node(compiler, part.concept, out, "c")
    m = compiler.variable("m")
    out.append(f"{m} <pred:member> {e} . {m} <pred:concept> {c} ." if part.direct else f"{e} <pred:instance_of> {c} .")
    own = [variable(compiler, place.name) for place in (part.member, part.concept) if isinstance(place, alg.Variable)]
    if not own:
        return f"FILTER EXISTS {{ {' '.join(out)} }}"
    if len(own) == 2 and not part.direct:
        return " ".join(out)
    return f"{{ SELECT DISTINCT {' '.join(dict.fromkeys(own))} WHERE {{ {' '.join(out)} }} }}"


def _statement(compiler: Compiler, part: alg.StatementPattern, shape: RowShape, often: set[str], out: list[str]) -> str:
    """Add the patterns of a statement and return its variable; `often` are the variables shared with other parts."""
    iris, schema = compiler.iris, compiler.schema
    s, o = _node(compiler, part.subject, out), _node(compiler, part.object, out)
    f = compiler.variable("f") if part.statement is None else variable(compiler, part.statement.name)
    single = isinstance(part.predicate, tuple) and len(part.predicate) == 1
    if isinstance(part.predicate, alg.Variable):
        p = variable(compiler, part.predicate.name)
    elif single:
        assert isinstance(part.predicate, tuple)
        p = iris.predicate(part.predicate[0])
    else:
        p = compiler.variable("p")
        if part.predicate is not None:
            out.append(f"VALUES {p} {{ {' '.join(map(iris.predicate, part.predicate))} }}" if part.predicate else NEVER)
    # The direct triple adds nothing, but most stores start with it. One without statistics would read all
    # statements of one end for each of the other.
    known = (isinstance(end, alg.Entities) or (end is not None and end.name in often) for end in (part.subject, part.object))
    single = single and (compiler.target.dialect.counts or all(known))
    forward = (f"{s} {p} {o} . " if single else "") + f"{f} <pred:fact_h> {s} . {f} <pred:fact_r> {p} . {f} <pred:fact_t> {o} ."
    # The scan in `among` binds the ends.
    ends_known = part.among is not None and part.during is None and not part.undirected
    if ends_known:
        out.append(f"{f} <pred:fact_r> {p} .")
    elif part.undirected:
        backward = (
            f"{o} {p} {s} . " if single else ""
        ) + f"{f} <pred:fact_h> {o} . {f} <pred:fact_r> {p} . {f} <pred:fact_t> {s} ."
        out.append(f"{{ {forward} }} UNION {{ {backward} FILTER({s} != {o}) }}")
    else:
        out.append(forward)
    family = "relation" if part.undirected else part.family
    objects: Objects = "any" if family == "any" else "entity" if family == "relation" else "value"
    if isinstance(part.object, alg.Variable):
        # Another part of the pattern may narrow the sort.
        objects = _OBJECTS[met("any" if objects == "any" else objects, shape[part.object.name].sort)]
    elif isinstance(part.object, alg.Entities):
        out += [NEVER] if objects == "value" else []
        objects = "entity"
    predicates = part.predicate if isinstance(part.predicate, tuple) else None
    if objects != "any":
        other = schema.has_attribute if objects == "entity" else schema.has_relation
        if predicates is None or any(map(other, predicates)):
            sign = "!" if objects == "entity" else ""
            ends = (s, o) if part.undirected else (o,)
            out += [f'FILTER({sign}STRSTARTS(STR({end}), "{iris.base}{VALUE}"))' for end in ends]
    if part.condition is not None:
        out.append(_tests(compiler, part.condition, o, objects))
    if part.during is not None:
        # A sub-select would read all statements, as stores do not pass bindings into it.
        out.append(during_test(compiler, part.during, f))
    elif part.among is not None:
        group = Group()
        facts = compiler.facts(part.among, group, whole=True)
        pairs = {f: facts.statement, s: facts.subject, o: facts.object} if ends_known else {f: facts.statement}
        if s == o:
            group.append(f"FILTER({facts.subject} = {facts.object})")
        listed = " ".join(f"({there} AS {here})" for here, there in pairs.items())
        out.append(f"{{ SELECT DISTINCT {listed} WHERE {{ {group.text()} }} }}")
    for qualifier in part.qualifiers:
        _qualifier(compiler, qualifier, f, out)
    return f


def _qualifier(compiler: Compiler, qualifier: alg.QualifierPattern, f: str, out: list[str]) -> None:
    iris, lines = compiler.iris, list[str]()
    if isinstance(qualifier.key, str):
        k = iris.predicate(qualifier.key)
    else:
        k = variable(compiler, qualifier.key.name)
        keys = [iris.predicate(key) for key in compiler.schema.qualifiers]
        lines.append(f"VALUES {k} {{ {' '.join(keys)} }}" if keys else NEVER)
    q = variable(compiler, qualifier.value.name) if isinstance(qualifier.value, alg.Variable) else compiler.variable("q")
    lines.append(f"{f} {k} {q} .")
    if isinstance(qualifier.value, alg.Entities):
        lines.append(_among(compiler, qualifier.value, q))
    if qualifier.condition is not None:
        lines.append(_tests(compiler, qualifier.condition, q, "any"))
    out.append(" ".join(lines) if qualifier.variables else f"FILTER EXISTS {{ {' '.join(lines)} }}")


def _path(compiler: Compiler, node: alg.Path) -> str:
    of = "" if node.of is None else f"{{ {rows(compiler, node.of)} }} "
    out = list[str]()
    a, b = _node(compiler, node.subject, out), _node(compiler, node.object, out)
    names = dict.fromkeys(name for hop in node.hops for name in hop.predicates or ())
    sign = "^" if node.hops[0].direction == "backward" else ""
    step = f"({'|'.join(f'{sign}{compiler.iris.predicate(name)}' for name in names)})"
    pairs_once = node.most is None
    if node.most is None and (node.least == 0 or compiler.target.dialect.finds_cycles):
        path = f"{step}{'*' if node.least == 0 else '+'}"
    elif node.most is None:
        path, pairs_once = f"{step}/{step}*", False
    else:
        path = "/".join([step] * node.least + [f"{step}?"] * (node.most - node.least)) or f"{step}?"
    # Statements have triples with qualifiers as predicates, but no names.
    out += [f"{end} <pred:name> {compiler.variable('n')} ." for end in dict.fromkeys((a, b))]
    out.append(f"{a} {path} {b} ." + (f" FILTER({a} = {b})" if node.most == 0 else ""))
    own = [variable(compiler, place.name) for place in (node.subject, node.object) if isinstance(place, alg.Variable)]
    if pairs_once and len(own) == 2:
        # Pairs of ends, each once.
        return of + " ".join(out)
    listed = " ".join(dict.fromkeys(own)) or f"(1 AS {compiler.variable('x')})"
    return f"{of}{{ SELECT DISTINCT {listed} WHERE {{ {' '.join(out)} }} }}"


def _entity_rows(compiler: Compiler, node: alg.EntityRows) -> str:
    return _among(compiler, node.entities, variable(compiler, node.variable))


def _literal(compiler: Compiler, node: alg.Rows) -> str:
    names = " ".join(variable(compiler, name) for name in node.names)
    cells = [" ".join("UNDEF" if term is None else compiler.iris.value(term) for term in row) for row in node.rows]  # type: ignore[arg-type]
    return f"VALUES ({names}) {{ {' '.join(f'({row})' for row in cells)} }}"


# -- Two inputs --------------------------------------------------------------------------------------


def _join(compiler: Compiler, node: alg.Join) -> str:
    return f"{{ {rows(compiler, node.left)} }} {{ {rows(compiler, node.right)} }}"


def _optional_rows(compiler: Compiler, node: alg.LeftJoin) -> str:
    # In a group of its own, where filters apply to the right side alone.
    return f"{{ {rows(compiler, node.left)} }} OPTIONAL {{ {{ {rows(compiler, node.right)} }} }}"


def _shared(compiler: Compiler, node: alg.SemiJoin | alg.AntiJoin | alg.MarkJoin | alg.MinusRows) -> list[str]:
    return [variable(compiler, name) for name in node.left.variables if name in node.right.variables]


def _semi_join(compiler: Compiler, node: alg.SemiJoin) -> str:
    left, right, shared = rows(compiler, node.left), rows(compiler, node.right), _shared(compiler, node)
    if not shared:
        return f"{{ {left} }} FILTER EXISTS {{ {right} }}"
    return f"{{ {left} }} {{ SELECT DISTINCT {' '.join(shared)} WHERE {{ {right} }} }}"


def _anti_join(compiler: Compiler, node: alg.AntiJoin | alg.MinusRows) -> str:
    left, right, shared = rows(compiler, node.left), rows(compiler, node.right), _shared(compiler, node)
    if not shared:
        return left if isinstance(node, alg.MinusRows) else f"{{ {left} }} FILTER NOT EXISTS {{ {right} }}"
    return f"{{ {left} }} MINUS {{ {{ SELECT DISTINCT {' '.join(shared)} WHERE {{ {right} }} }} }}"


def _mark_join(compiler: Compiler, node: alg.MarkJoin) -> str:
    left, right, shared = rows(compiler, node.left), rows(compiler, node.right), _shared(compiler, node)
    b = variable(compiler, node.variable)
    if not shared:
        return f"{{ {left} }} BIND(EXISTS {{ {right} }} AS {b})"
    there = compiler.variable("m")
    marked = f"{{ SELECT DISTINCT {' '.join(shared)} (true AS {there}) WHERE {{ {right} }} }}"
    return f"{{ {{ {left} }} OPTIONAL {marked} }} BIND(BOUND({there}) AS {b})"


def _union(compiler: Compiler, node: alg.UnionAll) -> str:
    return " UNION ".join(f"{{ {rows(compiler, part)} }}" for part in node.parts)


# -- One input ---------------------------------------------------------------------------------------


def _where_rows(compiler: Compiler, node: alg.WhereRows) -> str:
    v = variable(compiler, node.variable)
    shape = shapes_of(node.of)[id(node.of)][node.variable]
    bound = "" if shape.certain else f" FILTER(BOUND({v}))"
    return f"{{ {rows(compiler, node.of)}{bound} }} {_tests(compiler, node.condition, v, _OBJECTS[shape.sort])}"


def _bound_rows(compiler: Compiler, node: alg.BoundRows) -> str:
    tests = " && ".join(f"BOUND({variable(compiler, name)})" for name in node.names)
    return f"{{ {rows(compiler, node.of)} }}" + (f" FILTER({tests})" if tests else "")


def _selected(compiler: Compiler, names: Iterable[str]) -> str:
    return " ".join(variable(compiler, name) for name in names) or f"(1 AS {compiler.variable('x')})"


def _project(compiler: Compiler, node: alg.Project) -> str:
    of = rows(compiler, node.of)
    pairs = [(new, old) for new, old in node.names if old in node.of.variables]
    if all(new == old for new, old in pairs):
        return f"{{ SELECT {_selected(compiler, [new for new, _ in pairs])} WHERE {{ {of} }} }}"
    # By temporary names, since two variables may be swapped.
    between = {new: compiler.variable("t") for new, _ in pairs}
    inner = " ".join(f"({variable(compiler, old)} AS {between[new]})" for new, old in pairs)
    outer = " ".join(f"({between[new]} AS {variable(compiler, new)})" for new, _ in pairs)
    return f"{{ SELECT {outer} WHERE {{ {{ SELECT {inner} WHERE {{ {of} }} }} }} }}"


def _distinct(compiler: Compiler, node: alg.DistinctRows) -> str:
    return f"{{ SELECT DISTINCT {_selected(compiler, node.variables)} WHERE {{ {rows(compiler, node.of)} }} }}"


def _group(compiler: Compiler, node: alg.GroupRows) -> str:
    of, keys = rows(compiler, node.of), [variable(compiler, name) for name in node.keys]
    counts = []
    for aggregate in node.aggregates:
        counted = "*"
        if aggregate.of is not None:
            # A variable that no row binds.
            counted = variable(compiler, aggregate.of) if aggregate.of in node.of.variables else compiler.variable("x")
        distinct = "DISTINCT " if aggregate.distinct else ""
        counts.append(f"(COUNT({distinct}{counted}) AS {variable(compiler, aggregate.name)})")
    if any(aggregate.of is None and aggregate.distinct for aggregate in node.aggregates):
        of = f"{{ SELECT {_selected(compiler, node.of.variables)} WHERE {{ {of} }} }}"
    listed = " ".join([*keys, *(counts or [f"(COUNT(*) AS {compiler.variable('x')})"])])
    return f"{{ SELECT {listed} WHERE {{ {of} }}{' GROUP BY ' + ' '.join(keys) if keys else ''} }}"


# -- Other sorts -------------------------------------------------------------------------------------


def entities_of(compiler: Compiler, node: alg.EntitiesOf, e: str, out: Group) -> bool:
    """Bind `e` to the distinct entities that a variable is bound to."""
    shape = shapes_of(node.of)[id(node.of)].get(node.variable)
    if shape is None or shape.sort not in ("entity", "any"):
        out.append(f"{e} <pred:name> {compiler.variable('n')} . {NEVER}")
        return False
    v = variable(compiler, node.variable)
    bound = "" if shape.certain else f" FILTER(BOUND({v}))"
    entity = "" if shape.sort == "entity" else f' FILTER(!STRSTARTS(STR({v}), "{compiler.iris.base}{VALUE}"))'
    out.append(f"{{ SELECT DISTINCT ({v} AS {e}) WHERE {{ {{ {rows(compiler, node.of)} }}{bound}{entity} }} }}")
    return False


def facts_of(compiler: Compiler, node: alg.FactsOf, out: Group, wanted: FactNeeds) -> FactTerms:
    """Return the distinct statements that a variable is bound to."""
    subject, thing = wanted.subject or compiler.variable("e"), wanted.object or compiler.variable("e")
    f, p = compiler.variable("f"), compiler.variable("p")
    if wanted.among is not None:
        compiler.entities(wanted.among, thing, out)
    shape = shapes_of(node.of)[id(node.of)].get(node.variable)
    if shape is None or shape.sort != "statement":
        out.append(NEVER)
    else:
        v = variable(compiler, node.variable)
        bound = "" if shape.certain else f" FILTER(BOUND({v}))"
        out.append(f"{{ SELECT DISTINCT ({v} AS {f}) WHERE {{ {{ {rows(compiler, node.of)} }}{bound} }} }}")
    out.append(f"{f} <pred:fact_h> {subject} . {f} <pred:fact_r> {p} . {f} <pred:fact_t> {thing} .")
    return FactTerms(subject, p, thing, f, subject if node.reach == "subject" else thing, "any")


SOLUTIONS: Final[SolutionTable[Compiler, [], str]] = {
    "Pattern": _pattern,
    "Path": _path,
    "EntityRows": _entity_rows,
    "Rows": _literal,
    "Join": _join,
    "LeftJoin": _optional_rows,
    "SemiJoin": _semi_join,
    "AntiJoin": _anti_join,
    "MarkJoin": _mark_join,
    "MinusRows": _anti_join,
    "UnionAll": _union,
    "Filter": None,
    "WhereRows": _where_rows,
    "BoundRows": _bound_rows,
    "Extend": None,
    "Unwind": None,
    "Project": _project,
    "DistinctRows": _distinct,
    "GroupRows": _group,
    "OrderRows": None,
    "SliceRows": None,
    # These give other sorts of rows: see `entities_of` and `facts_of`.
    "EntitiesOf": None,
    "FactsOf": None,
}
_BY_TYPE: Final = by_type(SOLUTIONS)


# -- The query ---------------------------------------------------------------------------------------


def selected(compiler: Compiler, node: alg.Solutions) -> tuple[str, tuple[str, ...]]:
    """Return the query of the rows of an operator, and the names of its columns.

    For a column `r1` that may be an entity, `r1n`, `r1k` and `r1r` have its name, class and row, unless the graph is
    also in this process; for one that may be a long value, `r1x`, `r1u` and `r1e` have its value, unit and exact
    number.
    """
    text, shape = rows(compiler, node), shapes_of(node)[id(node)]
    columns = [variable(compiler, name) for name in node.variables]
    more, described = [], []
    for name, v in zip(node.variables, columns, strict=True):
        sort = shape[name].sort
        if not shape[name].certain:
            # Without this, an optional part would bind what the row does not.
            described.append(f"BIND(COALESCE({v}, <pred:nothing>) AS {v}c)")
        there = v if shape[name].certain else f"{v}c"
        if sort in ("entity", "any") and not compiler.target.local:
            about = f"{there} <pred:name> {v}n . {there} <{_TYPE}> {v}k . OPTIONAL {{ {there} <pred:row> {v}r }}"
            described.append(about if sort == "entity" and shape[name].certain else f"OPTIONAL {{ {about} }}")
            more += [f"{v}n", f"{v}k", f"{v}r"]
        if sort in ("value", "any") and compiler.counts.get("long", 1):
            unit = f"OPTIONAL {{ {there} <pred:unit> {v}u . OPTIONAL {{ {there} <pred:exact> {v}e }} }}"
            described.append(f"OPTIONAL {{ {there} <pred:value> {v}x . {unit} }}")
            more += [f"{v}x", f"{v}u", f"{v}e"]
    listed = " ".join([*dict.fromkeys(columns), *dict.fromkeys(more)]) or f"(1 AS {compiler.variable('x')})"
    return f"SELECT {listed} WHERE {{ {{ {text} }} {' '.join(described)} }}", tuple(v[1:] for v in columns)


_TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
