"""Compile a plan into one parameterised Cypher query: for its answer, the sizes of its steps, or its evidence.

`SUPPORT` tells how each operator is run; `sets`, `values` and `conditions` compile those that run in the query, `compiler`
holds what they share, and `cypher.layout` describes the database. Values, names of entities and graphs are parameters;
predicates are quoted relationship types, which the planner needs to see.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from condgraph.cypher.compile.compiler import Compiler, FactRows, Rows, arrange
from condgraph.cypher.compile.conditions import condition
from condgraph.cypher.compile.solutions import entities_of, facts_of
from condgraph.cypher.compile.solutions import returned as rows_returned
from condgraph.cypher.compile.values import MIDDLE, PlanCompiler, middle, scalar, shown_text
from condgraph.cypher.layout.base import FIELDS, TARGET, Direct, Layout, Listed, value_of
from condgraph.cypher.layout.schema import CONDGRAPH, CondgraphLayout
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Condition, Node, postorder
from condgraph.engine.algebra.grouped import AllTests, CellTest, Expression, Measure, NotTest, Test, ValuePath
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.execute.sets import Numbers
from condgraph.engine.execute.witness_plan import Unit, WitnessRun, shown, units
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass
from condgraph.engine.row_shapes import RowShape, core_of, needed, shape_of
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.store import valued
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time, Value, text_of

if TYPE_CHECKING:
    from condgraph.engine.store import EndPart
    from condgraph.engine.stored_schema import StoredSchema

__all__ = ["Compiled", "compile_plan", "compile_sizes"]


# -- Support -----------------------------------------------------------------------------------------
# `supported` operators run in the query. `lowered` ones need code of the client: the query fetches the
# statements that the plan rests on, narrowed as far as the server can, and the same code as in process
# finishes. `last` ones run in the query where they end the plan, and are lowered elsewhere. A test
# compares the table with the algebra.


class Support(NamedTuple):
    """How an operator is run, and why where it does not run in the query."""

    how: Literal["supported", "lowered", "last"]
    why: str = ""


_YES: Final = Support("supported")
#: Every operator and test of the algebra.
SUPPORT: Final[dict[type[Node] | type[Condition], Support]] = {
    **dict.fromkeys(
        (
            *(alg.AllEntities, alg.ById, alg.ByName, alg.Members, alg.Union, alg.Intersect, alg.Minus, alg.Neighbour, alg.Reached),
            *(alg.SubjectsOf, alg.Referents, alg.SameName, alg.ArgExtreme),
            *(alg.Scan, alg.Where, alg.WhereQualifier, alg.During, alg.DuringAny, alg.WhereValidity, alg.OtherEnd),
            *(alg.Objects, alg.Qualifiers, alg.Validity, alg.Predicates, alg.QualifierKeys, alg.Names, alg.RowNumbers),
            *(alg.FilterValues, alg.Distinct, alg.Concat, alg.Extreme, alg.Nth, alg.Clip, alg.Bound, alg.Shown, alg.Constants),
            *(alg.AnySatisfies, alg.Exists),
            *(alg.Compare, alg.AnyOf, alg.AllOf, alg.Among, alg.Equals, alg.Versus, alg.Not),
        ),
        _YES,
    ),
    **dict.fromkeys(
        (
            *(alg.Pattern, alg.EntityRows, alg.Join, alg.SemiJoin, alg.AntiJoin, alg.MarkJoin, alg.UnionAll, alg.WhereRows),
            *(alg.BoundRows, alg.Project, alg.DistinctRows, alg.EntitiesOf, alg.FactsOf),
        ),
        _YES,
    ),
    alg.Path: Support("supported", "paths by their ends, of steps one way, else they are lowered: a server goes along each"),
    alg.Rows: Support("supported", "of texts, quantities and times, else they are lowered"),
    alg.LeftJoin: Support("supported", "with a condition it is lowered"),
    alg.MinusRows: Support("supported", "with variables that may be unbound it is lowered"),
    alg.GroupRows: Support("supported", "of counts, else it is lowered: sums are exactly rounded, lists are in a fixed order"),
    **dict.fromkeys(
        (alg.Filter, alg.Extend, alg.Unwind), Support("lowered", "expressions compare times, units and numbers as Python does")
    ),
    **dict.fromkeys((alg.OrderRows, alg.SliceRows), Support("lowered", "servers order values in other ways")),
    alg.Count: Support("supported", "of times that were cut, whose texts the client makes, it is lowered"),
    alg.Mode: Support("supported", "of times that were cut, whose texts the client makes, it is lowered"),
    alg.Choose: Support("supported", "where the test is a function of the client, it is lowered"),
    alg.Sum: Support("lowered", "sums are exactly rounded, and a server's depend on the order of rows"),
    alg.Mean: Support("lowered", "means are exactly rounded, and a server's depend on the order of rows"),
    alg.Deviation: Support("lowered", "deviations are exactly rounded, and a server's are not"),
    alg.Median: Support("last", "the query gives the middle one or two, whose mean the client rounds exactly"),
    **dict.fromkeys(
        (alg.Group, alg.Having, alg.Order, alg.Limit),
        Support("lowered", "sums are exactly rounded, and in each group the most frequent unit counts"),
    ),
    alg.Apply: Support("lowered", "native functions are Python"),
    alg.External: Support("lowered", "a function from outside is called by the client"),
}


def lowered(plan: Node, *, ends: bool = True) -> set[int]:
    """Return the operators (by `id`) that the query cannot compute: lowered ones, and all that depend on one.

    `ends` tells whether the query ends with this plan.
    """
    result: set[int] = set()
    textless: set[int] = set()
    shapes: dict[int, RowShape] = {}
    for node in postorder(plan):
        inputs = [id(child) for child in node.inputs()]
        carries = isinstance(node, alg.Values) and node.facets.carries
        if carries and (node.facets.alters or not textless.isdisjoint(inputs)):
            textless.add(id(node))
        by_text = isinstance(node, (alg.Count, alg.Mode, alg.Median)) and not textless.isdisjoint(inputs)
        how = SUPPORT[type(node)].how
        if how == "lowered" or (how == "last" and not (ends and node is plan)) or by_text or not result.isdisjoint(inputs):
            result.add(id(node))
        elif isinstance(node, alg.Solutions):
            if (shape := shape_of(node, shapes)) is None:
                result.add(id(node))
            else:
                shapes[id(node)] = shape
    return result


# -- Compiled queries --------------------------------------------------------------------------------


#: The rows of a query: entities, values, predicates (relationship types), a count, the number of values
#: that satisfy a test, a truth value, the middle of some numbers, aggregated groups, rows that bind
#: variables, or the statements that the plan rests on.
Shape: TypeAlias = Literal["entities", "values", "predicates", "count", "some", "exists", "median", "groups", "rows", "witness"]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a query for groups, after the number of unexpected values.

    `keys` has the type of each key's cell ("entity" for a node), `measures` that of each measure: a list of count, sum and
    extreme.
    """

    keys: tuple[str, ...]
    measures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query with its parameters and the shape of its rows."""

    text: str
    parameters: dict[str, Any]
    shape: Shape
    distinct: bool = False
    #: For values: the fields of each row, and the kind of all values where there is only one.
    fields: tuple[Listed, ...] = ()
    kind: str | None = None
    #: Where the query also looks up names: these names by their keys.
    looked_up: dict[str, str] | None = None
    #: The layout of the database that is queried.
    layout: Layout = CONDGRAPH
    #: For groups: the columns of each list.
    columns: Columns | None = None
    #: For rows: the operator that gives them, from which the client computes the rest, and those of its
    #: variables that are returned.
    core: alg.Solutions | None = None
    names: tuple[str, ...] = ()

    def unknown(self, rows: list[dict[str, Any]]) -> list[str]:
        """Return the names that no entity has, and remove the rows that report them."""
        if not self.looked_up:
            return []
        result = [row for row in rows if isinstance(about := next(iter(row.values())), dict) and "missing" in about]
        rows[:] = [row for row in rows if row not in result]
        return [self.looked_up[key] for row in result for key in next(iter(row.values()))["missing"]]


def look_up(compiler: Compiler, branches: list[list[str]], columns: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Add a branch that reports names which no entity has, as a map in the first column; return the names by key."""
    keys = {compiler.layout.key(name): name for name in names}
    if keys:
        k, e = compiler.name("k"), compiler.name("e")
        nulls = "".join(f", null AS {column}" for column in columns[1:])
        branches.append(
            [
                f"UNWIND {compiler.parameter(list(keys))} AS {k} {compiler.layout.absent(k, e)}",
                f"WITH collect({k}) AS {k} WHERE size({k}) > 0",
                f"RETURN {{missing: {k}}} AS {columns[0]}{nulls}",
            ]
        )
    return keys


# -- Groups ------------------------------------------------------------------------------------------
# The server aggregates groups of a table where the values of each column all have one plain type, so that
# units, texts and exactness are in no doubt; then only the groups are sent.
#
# Otherwise the statements are fetched and the client groups them (`compile_witness`). A value of an
# unexpected type is counted (`odd`); if there is one, the client groups as well.


#: Sums of integers are computed in two parts, neither of which can overflow on the server.
HALF: Final = 2**31
#: Type tests by plain type.
_TYPES: Final = {
    "text": "{} IS :: STRING NOT NULL",
    "boolean": "{} IS :: BOOLEAN NOT NULL",
    "integer": "{} IS :: INTEGER NOT NULL",
    "float": "CASE WHEN {} IS :: INTEGER NOT NULL | FLOAT NOT NULL THEN {} - {} = 0 ELSE false END",
    "day": "{} IS :: DATE NOT NULL",
}


def group_of(plan: Node) -> alg.Group | None:
    """Return the groups of a table; None for a plan that is not a table."""
    while isinstance(plan, alg.Having | alg.Order | alg.Limit):
        plan = plan.table
    return plan if isinstance(plan, alg.Group) else None


def compile_groups(plan: Node, graph: str, schema: StoredSchema, names: Sequence[str], layout: Layout) -> Compiled | None:
    """Compile the groups of a table; None where the client has to group."""
    group = group_of(plan)
    if group is None or group.each or id(group.of) in lowered(group.of):
        return None
    try:
        return _Groups(group, graph, schema, layout).compiled(names)
    except _Doubtful:
        return None


class _Doubtful(Exception):
    """Raised for a column that the server would not aggregate as the client does."""


class _Groups:
    """Builder of one query for groups."""

    def __init__(self, group: alg.Group, graph: str, schema: StoredSchema, layout: Layout) -> None:
        self._group, self._layout = group, layout
        self._start = alg.Reached(group.of) if isinstance(group.of, alg.Facts) else group.of
        self._compiler = PlanCompiler(graph, schema, [group.of], layout)
        self._concepts = _concepts(group.of)
        #: The variable of each step's end from a row, once bound.
        self._ends: dict[int, str] = {}
        #: The fact of a row, where rows are facts.
        self._f = ""
        #: Values of each row by expression, each as (variable, type); and counts of values with an
        #: unexpected type.
        self._values: dict[str, tuple[str, str]] = {}
        self._odd: list[str] = []

    def compiled(self, names: Sequence[str]) -> Compiled:
        compiler, group = self._compiler, self._group
        if isinstance(group.of, alg.Facts):
            facts = compiler.facts(group.of)
            if facts.family != "relation":
                raise _Doubtful
            clauses, e, row = facts.render(), facts.reached, [facts.fact, facts.reached]
            self._f = facts.fact
        else:
            rows = compiler.entities(group.of)
            clauses, e, row = list(rows.clauses), rows.variable, [rows.variable]
        if group.where is not None:
            test = self._condition(e, group.where)
            # Keep a row with a value of an unexpected type, so that it is counted.
            odd = [f"({v} IS NOT NULL AND NOT ({_typed(kind, v)}))" for v, kind in self._values.values()]
            clauses.append(f"{self._bound(row)} WHERE {' OR '.join([test, *odd])}")
            self._odd += [f"count(CASE WHEN {item} THEN 1 END)" for item in odd]
            row += [v for v, _ in self._values.values()]
        keys = [self._key(e, key.of) for key in group.keys]
        joined = any(lines for lines, *_ in keys)
        clauses += [line for lines, *_ in keys for line in lines]
        key_names = [compiler.name("k") for _ in keys]
        before = set(self._values)
        measures = [self._measure(e, measure) for measure in group.measures]
        bound = [f"{expression} AS {k}" for (_, expression, _), k in zip(keys, key_names, strict=True)]
        added = [f"{expression} AS {v}" for expression, (v, _) in self._values.items() if expression not in before]
        # A row is in a group once, however many paths lead there.
        clauses.append(f"WITH {'DISTINCT ' if joined else ''}{', '.join([*row, *bound, *added])}")
        clauses += [line for lines, *_ in measures for line in lines]
        measure_names, odd_count = [compiler.name("m") for _ in measures], compiler.name("n")
        aggregates = [f"{expression} AS {m}" for (_, expression, _), m in zip(measures, measure_names, strict=True)]
        clauses.append(f"WITH {', '.join([*key_names, *aggregates, f'{self._count_sum()} AS {odd_count}'])}")
        kinds = [kind for *_, kind in keys]
        tests = [
            f"({k} IS NOT NULL AND NOT ({_typed(kind, k)}))" for k, kind in zip(key_names, kinds, strict=True) if kind != "entity"
        ]
        if tests:
            odd_count = f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE {odd_count} END"
        cells = [self._shown(k, kind) for k, kind in zip(key_names, kinds, strict=True)]
        clauses.append(f"RETURN collect([{', '.join([odd_count, *cells, *measure_names])}]) AS rows")
        branches = [clauses]
        looked_up = look_up(compiler, branches, ("rows",), names)
        text = compiler.whole(branches, ("rows",))
        columns = Columns(tuple(kinds), tuple(kind for *_, kind in measures))
        return Compiled(text, compiler.parameters, "groups", looked_up=looked_up, layout=self._layout, columns=columns)

    def _bound(self, row: list[str]) -> str:
        return f"WITH {', '.join([*row, *(f'{expression} AS {v}' for expression, (v, _) in self._values.items())])}"

    def _count_sum(self) -> str:
        # Always an aggregate: next to one, a constant returns no row if there is nothing.
        return " + ".join(self._odd) or "count(null)"

    def _value(self, found: Direct) -> str:
        """Bind a value of each row once, and return its variable."""
        if found.expression not in self._values:
            self._values[found.expression] = self._compiler.name("v"), found.kind
        return self._values[found.expression][0]

    def _shown(self, k: str, kind: str) -> str:
        if kind == "entity":
            return f"CASE WHEN {k} IS NOT NULL THEN {self._layout.listed(k)} END"
        return f"toString({k})" if kind in ("day", "boolean") else k

    # -- ways --------------------------------------------------------------------------------------

    def _scan(self, number: int, before: int | None) -> alg.Scan:
        """Return a step that starts at the rows, or where the step `before` led."""
        scan = self._group.facts[number]
        if not isinstance(scan, alg.Scan) or scan.source is not None or scan.predicates is None or len(scan.predicates) != 1:
            raise _Doubtful
        of = self._start if before is None else alg.Reached(self._group.facts[before])
        if scan.of is not of and scan.of != of:
            raise _Doubtful
        return scan

    def _parted(self, way: ValuePath) -> tuple[list[alg.Scan], alg.Scan | None]:
        """Split a path into the relations that it follows and the attribute at its end."""
        scans = [self._scan(number, before) for before, number in zip((None, *way.steps), way.steps, strict=False)]
        attribute = scans.pop() if scans and scans[-1].family == "attribute" else None
        if any(scan.family != "relation" for scan in scans):
            raise _Doubtful
        return scans, attribute

    def _pattern(self, scan: alg.Scan, a: str, r: str, b: str) -> str:
        assert scan.predicates is not None
        pattern = self._layout.hop(r, a, b, scan.predicates, outward=scan.anchor == "subject")
        if pattern is None:
            raise _Doubtful
        return pattern

    def _direct(self, e: str, scan: alg.Scan, concepts: tuple[str, ...] = ()) -> Direct:
        assert scan.predicates is not None
        result = self._layout.direct(e, scan.predicates[0], concepts)
        if result is None:
            raise _Doubtful
        return result

    def _qualifier(self, way: ValuePath, facts: alg.Facts, f: str) -> Direct | None:
        """Return the qualifier that a path ends in, or None."""
        values = None if way.values is None else self._group.values[way.values]
        if isinstance(values, alg.Objects) or values is None:
            return None
        while not isinstance(facts, alg.Scan):
            (facts,) = [item for item in facts.inputs() if isinstance(item, alg.Facts)][:1] or [None]  # type: ignore[list-item]
            if facts is None:
                raise _Doubtful
        if not isinstance(values, alg.Qualifiers) or values.key is None or facts.predicates is None:
            raise _Doubtful
        result = self._layout.direct_qualifier(f, facts.predicates, values.key)
        if result is None:
            raise _Doubtful
        return result

    def _key(self, e: str, of: Expression) -> tuple[list[str], str, str]:
        """Return clauses that bind a key, its expression and its type."""
        if not isinstance(of, ValuePath):
            raise _Doubtful
        scans, attribute = self._parted(of)
        lines, at, r = list[str](), e, self._f
        for number, scan in zip(of.steps, scans, strict=False):
            if number not in self._ends:
                self._ends[number] = self._compiler.name("e")
                r = self._compiler.name("r")
                lines.append(f"OPTIONAL MATCH {self._pattern(scan, at, r, self._ends[number])}")
            at = self._ends[number]
        if attribute is not None:
            result = self._direct(at, attribute, () if scans else self._concepts)
            return lines, result.expression, result.kind
        if not scans and of.values is not None and isinstance(self._group.of, alg.Facts):
            qualifier = self._qualifier(of, self._group.of, r)
            if qualifier is not None:
                return lines, qualifier.expression, qualifier.kind
        if of.values is not None and not isinstance(self._group.values[of.values], alg.Objects):
            raise _Doubtful
        return lines, at, "entity"

    # -- measures ----------------------------------------------------------------------------------

    def _measure(self, e: str, measure: Measure) -> tuple[list[str], str, str]:
        """Return clauses for each row, the list (count, sum, extreme) that aggregates a group, and the type of the values."""
        of, function = measure.of, measure.function
        if of is None and function in ("count", "distinct"):
            return [], f"[count({self._f or e})]", "rows"
        if measure.clock or not isinstance(of, ValuePath) or function not in ("count", "distinct", "sum", "mean", "min", "max"):
            raise _Doubtful
        scans, attribute = self._parted(of)
        if not self._ends.keys().isdisjoint(of.steps):
            # A row counts once for each entity that a key leads to.
            raise _Doubtful
        if not scans:
            if attribute is None and isinstance(self._group.of, alg.Facts):
                result = self._qualifier(of, self._group.of, self._f)
            else:
                result = None if attribute is None else self._direct(e, attribute, self._concepts)
            if result is None:
                raise _Doubtful
            v = self._value(result)
            self._odd.append(f"count({v}) - count({_safe(result.kind, v)})")
            return [], self._summed(function, v, result.kind), result.kind
        return self._end_measure(e, function, of, scans, attribute)

    def _end_measure(
        self, e: str, function: str, way: ValuePath, scans: list[alg.Scan], attribute: alg.Scan | None
    ) -> tuple[list[str], str, str]:
        """Compile a measure of values that a path leads to from the row."""
        if function == "distinct":
            raise _Doubtful
        name, at, r, matches = self._compiler.name, e, "", list[str]()
        for scan in scans:
            r, before, at = name("r"), at, name("e")
            matches.append(f"MATCH {self._pattern(scan, before, r, at)}")
        if attribute is not None:
            result: Direct | None = self._direct(at, attribute)
        else:
            result = self._qualifier(way, self._group.facts[way.steps[-1]], r)
        if result is None:
            if function != "count":
                raise _Doubtful
            if len(scans) == 1:
                # The server stores the degree of a node.
                return [], f"[sum(COUNT {{ {self._pattern(scans[0], e, '', '')} }})]", "rows"
            n = name("n")
            return [f"CALL ({e}) {{ {' '.join(matches)} RETURN count(*) AS {n} }}"], f"[sum({n})]", "rows"
        v, x, n = result.expression, name("x"), name("n")
        odd = f"count({v}) - count({_safe(result.kind, v)})"
        inner = self._summed(function, v, result.kind)
        self._odd.append(f"sum({n})")
        line = f"CALL ({e}) {{ {' '.join(matches)} RETURN {inner} AS {x}, {odd} AS {n} }}"
        return [line], self._outer(function, x, result.kind), result.kind

    def _summed(self, function: str, v: str, kind: str) -> str:
        """Return the aggregates of values on the server: their count, and what else the function needs."""
        # An unexpected value is counted and must not fail the query.
        safe = _safe(kind, v)
        if function == "count":
            return f"[count({v})]"
        if function == "distinct":
            if kind == "float":
                raise _Doubtful
            return f"[count(DISTINCT {v})]"
        if function in ("sum", "mean"):
            if kind == "integer":
                return f"[count({v}), sum({safe} / {HALF}), sum({safe} % {HALF})]"
            if kind == "float":
                return f"[count({v}), collect({safe})]"
            raise _Doubtful
        if kind not in ("integer", "float", "day"):
            raise _Doubtful
        best = f"{function}({safe})"
        return f"[count({v}), {f'toString({best})' if kind == 'day' else best}]"

    def _outer(self, function: str, x: str, kind: str) -> str:
        """Aggregate the aggregates of rows."""
        if function == "count":
            return f"[sum({x}[0])]"
        if function in ("sum", "mean"):
            if kind == "integer":
                return f"[sum({x}[0]), sum({x}[1]), sum({x}[2])]"
            many = self._compiler.name("y")
            return f"[sum({x}[0]), reduce({many} = [], y IN collect({x}[1]) | {many} + y)]"
        if kind == "day":
            raise _Doubtful
        return f"[sum({x}[0]), {function}({x}[1])]"

    # -- tests of rows -----------------------------------------------------------------------------

    def _condition(self, e: str, test: Test) -> str:
        """Return a condition on a row."""
        if isinstance(test, NotTest):
            return f"NOT {self._condition(e, test.test)}"
        if not isinstance(test, CellTest):
            word = " AND " if isinstance(test, AllTests) else " OR "
            return f"({word.join(self._condition(e, part) for part in test.tests)})"
        if not isinstance(test.of, ValuePath):
            raise _Doubtful
        scans, attribute = self._parted(test.of)
        if scans:
            raise _Doubtful
        if attribute is not None:
            result: Direct | None = self._direct(e, attribute, self._concepts)
        else:
            result = self._qualifier(test.of, self._group.of, self._f) if isinstance(self._group.of, alg.Facts) else None
        if result is None:
            raise _Doubtful
        kind = result.kind
        # Bind the value, as conditions read a variable.
        self._value(result)
        v = result.expression
        if test.operator in ("known", "missing"):
            return f"{v} IS {'NOT ' if test.operator == 'known' else ''}NULL"
        readings = [value for value in test.readings if _is_of_kind(kind, value)]
        orders = () if kind in ("text", "boolean") else ("<", ">", "<=", ">=")
        if not readings or test.operator not in ("=", "!=", *orders):
            raise _Doubtful
        parts = [condition(self._compiler, alg.Compare(test.operator, value), result.cell) for value in readings]  # type: ignore[arg-type]
        return f"coalesce({' OR '.join(parts)}, false)"


def _concepts(node: Node) -> tuple[str, ...]:
    """Return the names of a concept that all rows are members of; empty where unknown."""
    if isinstance(node, alg.Members) and isinstance(node.concepts, alg.ByName):
        return node.concepts.names
    if isinstance(node, alg.Intersect):
        return next((concepts for part in node.parts if (concepts := _concepts(part))), ())
    if isinstance(node, alg.Where | alg.Minus):
        return _concepts(node.inputs()[0])
    if isinstance(node, alg.Reached):
        return _concepts(node.facts)
    inward = isinstance(node, alg.Scan) and node.anchor == node.reach == "subject" and node.of is not None
    return _concepts(node.of) if inward else ()  # type: ignore[attr-defined]


def _safe(kind: str, v: str) -> str:
    return f"CASE WHEN {_typed(kind, v)} THEN {v} END"


def _typed(kind: str, v: str) -> str:
    return _TYPES[kind].replace("{}", v)


def _is_of_kind(kind: str, value: Any) -> bool:
    if kind in ("text", "boolean"):
        return isinstance(value, str)
    if kind == "day":
        return isinstance(value, Time)
    return isinstance(value, Quantity) and value.unit == NO_UNIT


# -- What an answer rests on -------------------------------------------------------------------------
# One query fetches the part of a graph that a plan rests on, which is then queried in process.
#
# The statements that pass the filters of each scan, and the sets that the plan names, are fetched with
# qualifiers and sources into a small snapshot, on which the same code as in process runs the plan. That
# finishes lowered operators (`SUPPORT`) and gives the evidence of an answer. Where a filter needs a
# function of the client, the statements are fetched without the filter: more than needed, never less.


#: A qualifier added to tell apart relationships that have the same ends, type and properties.
PARALLEL: Final = "elementId"


def compile_witness(
    plan: Node, graph: str, schema: StoredSchema, names: Sequence[str] = (), *, layout: Layout = CONDGRAPH
) -> Compiled:
    """Compile the query for all that a plan rests on: rows of a unit's number and a record. `names` as in `compile_plan`."""
    wanted = [*units(plan, lowered(plan)), *shown(plan, schema)]
    concepts = {id(node.concepts) for node in postorder(plan) if isinstance(node, alg.Members)}
    binding = _binding_concepts(plan) if layout.labelled else set()
    return compile_units(wanted, graph, schema, names, concepts, binding, layout=layout)


def compile_units(
    wanted: Sequence[Unit],
    graph: str,
    schema: StoredSchema,
    names: Sequence[str] = (),
    concepts: Collection[int] = (),
    binding: Collection[int] = (),
    *,
    layout: Layout = CONDGRAPH,
) -> Compiled:
    """Compile the query for some units.

    `concepts` are the sets (by `id`) that operators take as concepts, `binding` those whose concepts are bound by rows.
    """
    compiler = PlanCompiler(graph, schema, [unit.compiled for unit in wanted], layout)
    branches: list[list[str]] = []
    matched: dict[int, tuple[alg.FactsOf, list[str]]] = {}
    for number, unit in enumerate(wanted):
        if isinstance(unit.compiled, alg.FactsOf):
            # One pattern's statements are fetched together.
            matched.setdefault(id(unit.compiled.of), (unit.compiled, []))[1].append(unit.compiled.variable)
            continue
        if isinstance(unit.compiled, alg.Facts):
            facts = compiler.facts(unit.compiled)
            branches.append([*facts.render(), f"RETURN {number} AS unit, {_record(compiler, facts)} AS row"])
            continue
        if isinstance(unit.compiled, alg.ByName) and id(unit.compiled) in concepts:
            # Also fetch the concepts of that name, which the operator may need in other uses.
            concept_records = layout.concepts_named(compiler, unit.compiled.names)
            branches.extend([f"RETURN {number} AS unit, {{e: {concept}}} AS row"] for concept in concept_records)
        # Rows may also bind concepts given by id, and paths of no steps start at all entities.
        binds = id(unit.compiled) in binding or (binding and isinstance(unit.compiled, alg.ById | alg.AllEntities))
        if binds and (labels := layout.labels_in(unit.compiled)):  # type: ignore[arg-type]
            terms = compiler.parameter(layout.concept_terms(labels))
            branches.append([f"UNWIND {terms} AS concept RETURN {number} AS unit, {{e: concept}} AS row"])
        if isinstance(unit.compiled, alg.EntitiesOf):
            rows = entities_of(compiler, unit.compiled, concepts=True)
            described_as = layout.described_term(rows.variable)
        else:
            rows = compiler.entities(unit.compiled)
            described_as = layout.described(rows.variable)
        branches.append([*rows.clauses, f"RETURN {number} AS unit, {{e: {described_as}}} AS row"])
        if unit.concepts is not None:
            branches.extend(_memberships(compiler, unit))
    for node, variables in matched.values():
        facts = facts_of(compiler, node, variables)
        branches.append([*facts.render(), f"RETURN -1 AS unit, {_record(compiler, facts)} AS row"])
    branches = branches or [["UNWIND [] AS unit RETURN unit, null AS row"]]
    columns = "unit", "row"
    looked_up = look_up(compiler, branches, columns, names)
    ending = None
    if layout.labelled and any(isinstance(unit.compiled, alg.Facts) for unit in wanted):
        f, s, o = (compiler.name(prefix) for prefix in "fso")
        row = layout.statement(compiler, f, s, o, "any")
        bound = f"WITH unit, row, row.f AS {f}, row.s AS {s}, row.o AS {o}"
        ending = f"{bound}\nRETURN unit, CASE WHEN {f} IS NULL THEN row ELSE {row} END AS row"
    text = compiler.whole(branches, columns, ending)
    return Compiled(text, compiler.parameters, "witness", looked_up=looked_up, layout=layout)


def compile_ends(parts: Sequence[EndPart], graph: str, schema: StoredSchema, layout: CondgraphLayout) -> Compiled:
    """Compile the query for the ends of statements and stated memberships: lists of rows (`patterns.remote.planned.EndRow`)."""
    compiler = PlanCompiler(graph, schema, [part for part in parts if isinstance(part, alg.Facts)], layout)
    branches = [[f"{clauses}\nRETURN collect({row}) AS rows"] for clauses, row, _ in _ends(compiler, layout, parts, "subject")]
    return Compiled(compiler.whole(branches, ("rows",)), compiler.parameters, "witness", layout=layout)


def compile_ends_on(
    parts: Sequence[EndPart], near: alg.End, few: int | None, here: alg.Entities, then: Sequence[EndPart], graph: str,
    schema: StoredSchema, layout: CondgraphLayout,
) -> Compiled:  # fmt: skip
    """Compile the query for `patterns.remote.planned.JoinedEnds`: two lists of rows for each far node."""
    compiler = PlanCompiler(graph, schema, [part for part in (*parts, *then) if isinstance(part, alg.Facts)], layout)
    m, rows = compiler.name("m"), compiler.name("rows")
    compiler.give(here, f"[{m}]")
    first = [f"{clauses}\nRETURN {far} AS {m}, {row} AS row" for clauses, row, far in _ends(compiler, layout, parts, near)]
    onward = [f"{clauses}\nRETURN {row} AS row" for clauses, row, _ in _ends(compiler, layout, then, near)]
    nodes = f"WITH {m}, row WHERE {layout.id(m)} IS NOT NULL OR {m}.kind = 'text'\nWITH {m}, collect(row) AS {rows}"
    if few is not None:
        nodes += f" ORDER BY {m}.kind = 'text', CASE WHEN {m}.kind = 'text' THEN {m}.text ELSE {layout.id(m)} END LIMIT {few + 1}"
    ending = f"RETURN collect([{rows}, {f'COLLECT {{ {_UNION.join(onward)} }}' if onward else '[]'}]) AS groups"
    text = "\n".join([*compiler.lets, compiler.call(_UNION.join(first)), nodes, ending])
    return Compiled(layout.written(text), compiler.parameters, "witness", layout=layout)


_UNION: Final = "\nUNION ALL\n"


def _ends(compiler: Compiler, layout: CondgraphLayout, parts: Sequence[EndPart], near: alg.End) -> Iterator[tuple[str, str, str]]:
    """Yield for each part its clauses, a row, and the node at the end that is not `near`."""
    for part in parts:
        if isinstance(part, alg.Facts):
            facts = compiler.facts(part)
            clauses, s, o, p, key = facts.render(), facts.subject, facts.thing, layout.type(facts.fact), f"{facts.fact}.sid"
        else:
            known = [node for node in (part.member, part.concept) if isinstance(node, alg.Entities)]
            rows = compiler.entities(known[0]) if known else Rows([], compiler.name("e"))
            s, o = rows.variable, compiler.name("c")
            if known == [part.concept]:
                s, o = o, s
            clauses, p, key = [*rows.clauses, layout.stated(s, o)], "null", "0"
        row = f"[{layout.id(s)}, {p}, {layout.id(o)}, CASE WHEN {o}.kind = 'text' THEN {o}.text END, {key}]"
        yield "\n".join(clauses), row, o if near == "subject" else s


def _record(compiler: Compiler, facts: FactRows) -> str:
    """Return all stored parts of a statement; where that text is long, only its ends, which the end of the query expands."""
    parts = facts.fact, facts.subject, facts.thing
    if compiler.layout.labelled:
        return f"{{{', '.join(f'{name}: {part}' for name, part in zip('fso', parts, strict=True))}}}"
    return compiler.layout.statement(compiler, *parts, facts.family)


def _binding_concepts(plan: Node) -> set[int]:
    """Find the operators (by `id`) of rows, and the sets whose concepts they bind."""
    nodes = postorder(plan)
    places = [part.concept for node in nodes if isinstance(node, alg.Pattern) for part in node.memberships]
    places += [node.entities for node in nodes if isinstance(node, alg.EntityRows)]
    return {id(place) for place in [*places, *(node for node in nodes if isinstance(node, alg.Solutions))]}


def _memberships(compiler: Compiler, unit: Unit) -> list[list[str]]:
    """Return branches for the stated memberships that put entities under concepts, and the subclasses in between."""
    assert unit.concepts is not None
    if isinstance(unit.concepts, alg.ByName) and not compiler.layout.complete:
        members = compiler.set_of(unit.compiled)  # type: ignore[arg-type]
        result = compiler.layout.memberships_in(compiler, unit.concepts.names, members)
        if result is not None:
            return result
    concepts = "" if compiler.layout.labelled else compiler.set_of(unit.concepts)
    members = compiler.set_of(unit.compiled)  # type: ignore[arg-type]
    return compiler.layout.memberships(compiler, concepts, members)


def compile_counts(nodes: Sequence[Node], graph: str, schema: StoredSchema, *, layout: Layout = CONDGRAPH) -> Compiled:
    """Compile one query that counts the statements or entities of each operator: rows of `step` and `size`."""
    compiler = PlanCompiler(graph, schema, list(nodes), layout)
    branches = [_counting(compiler, step, node) for step, node in enumerate(nodes)]
    return Compiled(compiler.whole(branches, ("step", "size")), compiler.parameters, "witness", layout=layout)


def _counting(compiler: PlanCompiler, step: int, node: Node, more: str = "") -> list[str]:
    """Return clauses that count the statements or entities of one step."""
    if isinstance(node, alg.Facts):
        facts = compiler.facts(node)
        return [*facts.render(), f"RETURN {step} AS step, count(DISTINCT {facts.fact}) AS size{more}"]
    assert isinstance(node, alg.Entities)
    rows = compiler.entities(node)
    return [*rows.clauses, f"RETURN {step} AS step, count(DISTINCT {rows.variable}) AS size{more}"]


# -- Reading the statements back -------------------------------------------------------------------


def restore(rows: Sequence[dict[str, Any]], sources: Sequence[Source], layout: Layout = CONDGRAPH) -> Snapshot:
    """Build a snapshot from fetched rows."""
    builder = Builder()
    builder.begin(Source(""))
    builder.add(_items(rows, sources, layout))
    builder.finish()
    return Snapshot.of(*lay_out(builder))


def _items(rows: Sequence[dict[str, Any]], sources: Sequence[Source], layout: Layout) -> list[Item]:
    entities: dict[str, Item] = {}
    links: dict[Any, Item] = {}
    statements: dict[int, Item] = {}
    alike: set[Statement] = set()

    def entity_id(entity: dict[str, Any]) -> str:
        result: str = entity["id"]
        if result not in entities:
            item = Entity(result, entity["name"], EntityKind(entity["kind"]), entity["row"] or 0)
            entities[result] = item if entity["source"] is None else Sourced(item, ((entity["source"], item.row),))
        return result

    for record in rows:
        row = record["row"]
        if "e" in row:
            entity_id(row["e"])
        elif "p" in row:
            if row["id"] in statements:
                continue
            thing: Ref | Value = Ref(entity_id(row["o"])) if row["v"] is None else value_of(row["v"])
            raw = None
            if not isinstance(thing, Ref):
                raw = row["v"].get("raw")
                if layout.parallel and raw == text_of(thing):
                    # The text of a property; it is kept in process only where the value prints otherwise.
                    raw = None
            pairs = layout.qualifiers_in(row["q"])
            qualifiers = tuple((name, Ref(entity_id(value)) if isinstance(value, dict) else value) for name, value in pairs)
            statement = Statement(entity_id(row["s"]), layout.predicate_of(row["p"]), thing, qualifiers, raw=raw)
            if layout.parallel and row["v"] is None:
                if (equal := replace(statement, qualifiers=tuple(sorted(qualifiers, key=repr)))) in alike:
                    # Only the server's id tells it from the other.
                    statement = replace(statement, qualifiers=(*qualifiers, (PARALLEL, row["id"])))
                alike.add(equal)
            statements[row["id"]] = Sourced(statement, tuple(zip(row["sources"], row["rows"], strict=True)))
        else:
            link = row.get("m") or row["c"]
            build = Member if "m" in row else Subclass
            key = build, entity_id(link["a"]), entity_id(link["b"])
            links[key] = Sourced(build(*key[1:]), tuple(zip(link["sources"], link["rows"], strict=True)))
    return [*sources, *entities.values(), *links.values(), *statements.values()]


def run_witness(plan: Node, rows: Sequence[dict[str, Any]], sources: Sequence[Source], layout: Layout = CONDGRAPH) -> WitnessRun:
    """Run a plan on the rows fetched for it."""
    snapshot = restore(rows, sources, layout)
    members: dict[int, list[int]] = {}
    for record in rows:
        if "e" in record["row"]:
            members.setdefault(record["unit"], []).append(snapshot.identified(record["row"]["e"]["id"]))
    known: dict[int, Numbers] = {}
    for number, unit in enumerate(units(plan, lowered(plan))):
        for node in unit.known:
            known[id(node)] = np.unique(np.array(members.get(number, []), np.int32))
    run = WitnessRun(snapshot, known, lowered(plan))
    run.execute(plan)
    return run


# -- Plans -------------------------------------------------------------------------------------------


def check(plan: Node, layout: Layout) -> None:
    """Raise `UnsupportedError` with every operator that is unknown here, or that the database cannot run."""
    nodes = postorder(plan)
    missing = sorted({type(node).__name__ for node in nodes if type(node) not in SUPPORT})
    if not missing and not layout.complete:
        missing = sorted({result for node in nodes if (result := layout.missing(node)) is not None})
    if missing:
        raise UnsupportedError(TARGET, missing)


def compile_plan(
    plan: Node, graph: str, schema: StoredSchema, names: Sequence[str] = (), *, layout: Layout = CONDGRAPH, grouped: bool = True
) -> Compiled:
    """Compile the query of a plan.

    Where operators are lowered, it fetches the statements that they need; with `grouped`, a table may fetch its groups alone.
    The query also looks up the entity names in `names`; `Compiled.unknown` lists those that do not exist.
    """
    check(plan, layout)
    try:
        return _compiled(plan, graph, schema, names, layout, grouped=grouped)
    except RecursionError:
        raise UnsupportedError(TARGET, ["so many steps of a program within each other"]) from None


def _compiled(plan: Node, graph: str, schema: StoredSchema, names: Sequence[str], layout: Layout, *, grouped: bool) -> Compiled:
    beyond = lowered(plan)
    if isinstance(plan, alg.Solutions):
        core = core_of(plan, beyond, schema, spelled=schema.raw)
        return (
            compile_witness(plan, graph, schema, names, layout=layout)
            if core is None
            else _rows(plan, core, graph, schema, names, layout)
        )
    if id(plan) in beyond:
        if grouped and (result := compile_groups(plan, graph, schema, names, layout)) is not None:
            return result
        return compile_witness(plan, graph, schema, names, layout=layout)
    plan = arrange(plan, schema)
    compiler = PlanCompiler(graph, schema, [plan], layout)
    # Without raw texts, equal values are interchangeable.
    inner = plan
    if isinstance(plan, alg.Distinct) and not schema.tables and not isinstance(plan.values, alg.Predicates):
        inner = plan.values
    distinct = inner is not plan
    kind, fields = _fields(inner, schema) if layout.trusted or isinstance(inner, alg.Median) else (None, FIELDS)
    # An entity as the value of a qualifier is looked up in the query.
    compiler.refers |= "of" in fields
    branches, columns, shape = _result(compiler, inner, fields, distinct)
    looked_up = look_up(compiler, branches, columns, names)
    return Compiled(compiler.whole(branches, columns), compiler.parameters, shape, distinct, fields, kind, looked_up, layout)


def _rows(
    plan: alg.Solutions, core: alg.Solutions, graph: str, schema: StoredSchema, names: Sequence[str], layout: Layout
) -> Compiled:
    """Compile the query of the rows that the client continues from."""
    kept = needed(plan, core)
    rows = core if kept == core.variables else alg.Project(core, tuple((name, name) for name in kept))
    compiler = PlanCompiler(graph, schema, [rows], layout)
    branches = [rows_returned(compiler, rows)]
    looked_up = look_up(compiler, branches, ("rows",), names)
    text = compiler.whole(branches, ("rows",))
    return Compiled(text, compiler.parameters, "rows", looked_up=looked_up, layout=layout, core=core, names=kept)


#: The fields that identify a value, by kind.
_VALUE_FIELDS: Final[dict[Kind, tuple[Listed, ...]]] = {
    Kind.TEXT: ("text",),
    Kind.QUANTITY: ("number", "unit"),
    Kind.TIME: ("start", "end", "precision"),
    Kind.ENTITY: ("id", "text", "of", "row"),
    Kind.UNKNOWN: (),
}


def _fields(plan: Node, schema: StoredSchema) -> tuple[str | None, tuple[Listed, ...]]:
    """Return the fields that an answer reads of each value, and the kind where there is only one, from the schema's kinds."""
    if isinstance(plan, alg.Median):
        return "quantity", MIDDLE
    pairs: set[tuple[Kind, str]] = set()
    own = False
    if isinstance(plan, alg.Objects):
        facts = plan.facts
        while not isinstance(facts, alg.Scan) and isinstance(inner := facts.inputs()[0], alg.Facts):
            facts = inner
        if isinstance(facts, alg.Scan) and facts.family == "attribute" and facts.predicates:
            own = True
            pairs = {pair for name in facts.predicates for pair in schema.attribute_kinds(name)}
    elif isinstance(plan, alg.Qualifiers) and plan.key is not None:
        pairs = set(schema.qualifier_kinds(plan.key))
    if not pairs:
        return None, FIELDS
    kinds = {kind for kind, _ in pairs}
    result = [name for kind in sorted(kinds) for name in _VALUE_FIELDS[kind]]
    if Kind.QUANTITY not in kinds and any(kind is Kind.TEXT and unit != NO_UNIT for kind, unit in pairs):
        result.append("unit")
    if Kind.QUANTITY in kinds and schema.inexact:
        result.append("exact")
    if own and schema.raw:
        result.append("raw")
    if len(kinds) == 1:
        return next(iter(kinds)).name.lower(), tuple(result)
    return None, tuple(dict.fromkeys(["kind", *result]))


def _result(
    compiler: Compiler, plan: Node, fields: tuple[Listed, ...], distinct: bool
) -> tuple[list[list[str]], tuple[str, ...], Shape]:
    """Return branches that end in a RETURN, their columns, and the shape of the rows."""
    if isinstance(plan, alg.Facts):
        plan = alg.Reached(plan)
    if isinstance(plan, alg.Names):
        plan = plan.entities
    if isinstance(plan, alg.Entities):
        rows = compiler.entities(plan)
        e = rows.variable
        # As one list: a record for each entity would cost more than its content.
        return [[*rows.clauses, f"RETURN collect({compiler.layout.listed(e)}) AS rows"]], ("rows",), "entities"
    if isinstance(plan, alg.AnySatisfies):
        # Duplicates do not change whether some value satisfies the test.
        values = compiler.values(plan.values.values if isinstance(plan.values, alg.Distinct) else plan.values)
        test = condition(compiler, plan.condition, values.cell, values.ref)
        returned = f"RETURN count({values.cell.whole}) AS total, count(CASE WHEN {test} THEN 1 END) AS satisfied"
        return [[*values.clauses, returned]], ("total", "satisfied"), "some"
    if isinstance(plan, alg.Median):
        return [middle(compiler, plan)], ("rows", "numbers"), "median"
    if isinstance(plan, alg.Count | alg.Exists):
        clauses, expression = scalar(compiler, plan)
        name = "count" if isinstance(plan, alg.Count) else "found"
        return [[*clauses, f"RETURN {expression} AS {name}"]], (name,), "count" if name == "count" else "exists"
    if isinstance(plan, alg.Distinct) and isinstance(plan.values, alg.Predicates):
        facts = compiler.facts(plan.values.facts)
        return [[*facts.render(), f"RETURN DISTINCT {compiler.layout.type(facts.fact)} AS type"]], ("type",), "predicates"
    assert isinstance(plan, alg.Values)
    if isinstance(plan, alg.Predicates):
        facts = compiler.facts(plan.facts)
        return [[*facts.render(), f"RETURN {compiler.layout.type(facts.fact)} AS type"]], ("type",), "predicates"
    values = compiler.values(plan)
    # An entity's kind and row are stored on the entity.
    ref, layout = values.ref, compiler.layout
    about: dict[Listed, str] = {"of": layout.kind(ref) if ref else "null", "row": layout.row(ref) if ref else "null"}
    listed = ", ".join([about[name] if name in about else values.cell.field(name) for name in fields])  # type: ignore[arg-type]
    once = "DISTINCT " if distinct else ""
    if not isinstance(plan, alg.Shown):
        return [[*values.clauses, f"RETURN collect({once}[{listed}]) AS rows"]], ("rows",), "values"
    rows = compiler.entities(plan.rows)
    # An aggregate, as a constant next to `collect` would be a grouping key and return no row if there is
    # nothing.
    shown = [*rows.clauses, f"RETURN collect({compiler.layout.listed(rows.variable)}) AS rows, count(*) >= 0 AS held"]
    return [[*values.clauses, f"RETURN collect([{listed}]) AS rows, count(*) < 0 AS held"], shown], ("rows", "held"), "values"


def compile_sizes(
    nodes: list[Node], graph: str, schema: StoredSchema, *, layout: Layout = CONDGRAPH, most: int = 3, statements: bool = False
) -> Compiled:
    """Compile one query for the number of results of each operator (`step`, `size`) with up to `most` names or texts
    (`sample`).

    With `statements`, values that the query cannot compute are counted by their statements, without a sample.
    """
    beyond = set().union(*(lowered(node, ends=False) for node in nodes)) if nodes else set()
    # Rows have no sample: it would need an order that servers do not have.
    chosen = [(i, node) for i, node in enumerate(nodes) if id(node) not in beyond and not isinstance(node, alg.Solutions)]
    valuable = [(i, valued(node)) for i, node in enumerate(nodes) if statements and id(node) in beyond]
    counted = [(i, facts) for i, facts in valuable if facts is not None and id(facts) not in lowered(facts)]
    compiler = PlanCompiler(graph, schema, [node for _, node in (*chosen, *counted)], layout)
    branches = [_counting(compiler, i, facts, ", null AS sample") for i, facts in counted]
    for i, node in chosen:
        if isinstance(node, alg.Facts):
            node = alg.Reached(node)
        if isinstance(node, alg.Entities):
            rows = compiler.entities(node)
            clauses = rows.clauses
            shown, size = f"collect({layout.name(rows.variable)})[0..{most}]", f"count({rows.variable})"
        elif isinstance(node, alg.Scalar):
            clauses, expression = scalar(compiler, node)
            clauses = [*clauses, f"WITH {expression} AS found"]
            shown, size = "[toString(found)]", "1"
            branches.append([*clauses, f"RETURN {i} AS step, {size} AS size, {shown} AS sample"])
            continue
        else:
            bag = compiler.values(node)
            clauses, size = bag.clauses, "count(*)"
            shown = f"collect({shown_text(bag.cell)})[0..{most}]"
        # A count of no rows is 0, but next to a literal it becomes a group that does not exist.
        branches.append([*clauses, f"WITH {size} AS size, {shown} AS sample RETURN {i} AS step, size, sample"])
    names = ("step", "size", "sample")
    empty = [["UNWIND [] AS step RETURN step, 0 AS size, [] AS sample"]]
    return Compiled(compiler.whole(branches or empty, names), compiler.parameters, "values", layout=layout)
