"""Groups of a table that the server sums up: where the values of a column are all of one plain type, so
that there is no doubt about units, texts or exactness, nothing but the groups has to be sent.

Everything else is fetched as statements and grouped by the client (`cypher.witness`). A value of
another type than expected is counted (`odd`), and then the client groups as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.compile.compiled import Columns, Compiled, look_up
from condgraph.cypher.compile.conditions import condition
from condgraph.cypher.compile.operators import PlanCompiler
from condgraph.cypher.compile.support import lowered
from condgraph.cypher.layout.base import Direct, Layout
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.algebra.expressions import CellTest, Every, Expression, Measure, No, Test, Way
from condgraph.engine.values import NO_UNIT, Quantity, Time

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

#: Sums of integers are taken in two parts, neither of which can be too large for the server.
PART: Final = 2**31
#: What is of each plain type, as a test.
_TYPES: Final = {
    "text": "{} IS :: STRING NOT NULL",
    "boolean": "{} IS :: BOOLEAN NOT NULL",
    "integer": "{} IS :: INTEGER NOT NULL",
    "float": "CASE WHEN {} IS :: INTEGER NOT NULL | FLOAT NOT NULL THEN {} - {} = 0 ELSE false END",
    "day": "{} IS :: DATE NOT NULL",
}


def group_of(plan: Node) -> alg.Group | None:
    """The groups that a table is made of; None of a plan that is no table."""
    while isinstance(plan, alg.Having | alg.Order | alg.Limit):
        plan = plan.table
    return plan if isinstance(plan, alg.Group) else None


def compile_groups(plan: Node, graph: str, schema: StoredSchema, names: Sequence[str], layout: Layout) -> Compiled | None:
    """The query of the groups of a table; None where the client has to group."""
    group = group_of(plan)
    if group is None or group.each or id(group.of) in lowered(group.of):
        return None
    try:
        return _Groups(group, graph, schema, layout).compiled(names)
    except _Doubtful:
        return None


class _Doubtful(Exception):
    """A column that the server does not sum up as the client would."""


class _Groups:
    """One query while it is made."""

    def __init__(self, group: alg.Group, graph: str, schema: StoredSchema, layout: Layout) -> None:
        self._group, self._layout = group, layout
        self._start = alg.Reached(group.of) if isinstance(group.of, alg.Facts) else group.of
        self._compiler = PlanCompiler(graph, schema, [group.of], layout)
        self._concepts = _concepts(group.of)
        #: Where steps lead from each row, once they are bound.
        self._ends: dict[int, str] = {}
        #: The fact of a row, where rows are facts.
        self._f = ""
        #: Values of each row by their expressions, each with its type; and how many are odd.
        self._values: dict[str, tuple[str, str]] = {}
        self._odd: list[str] = []

    def compiled(self, names: Sequence[str]) -> Compiled:
        """The query."""
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
            # A row whose value is odd stays, so that it is counted.
            odd = [f"({v} IS NOT NULL AND NOT ({_typed(kind, v)}))" for v, kind in self._values.values()]
            clauses.append(f"{self._bound(row)} WHERE {' OR '.join([test, *odd])}")
            self._odd += [f"count(CASE WHEN {one} THEN 1 END)" for one in odd]
            row += [v for v, _ in self._values.values()]
        keys = [self._key(e, key.of) for key in group.keys]
        joined = any(lines for lines, *_ in keys)
        clauses += [line for lines, *_ in keys for line in lines]
        ks = [compiler.name("k") for _ in keys]
        known = set(self._values)
        found = [self._measure(e, measure) for measure in group.measures]
        bound = [f"{expression} AS {k}" for (_, expression, _), k in zip(keys, ks, strict=True)]
        more = [f"{expression} AS {v}" for expression, (v, _) in self._values.items() if expression not in known]
        # A row stands in a group once, however many ways lead there.
        clauses.append(f"WITH {'DISTINCT ' if joined else ''}{', '.join([*row, *bound, *more])}")
        clauses += [line for lines, *_ in found for line in lines]
        shown, odd_ones = [compiler.name("m") for _ in found], compiler.name("n")
        summed = [f"{expression} AS {m}" for (_, expression, _), m in zip(found, shown, strict=True)]
        clauses.append(f"WITH {', '.join([*ks, *summed, f'{self._counted()} AS {odd_ones}'])}")
        kinds = [kind for *_, kind in keys]
        tests = [f"({k} IS NOT NULL AND NOT ({_typed(kind, k)}))" for k, kind in zip(ks, kinds, strict=True) if kind != "entity"]
        if tests:
            odd_ones = f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE {odd_ones} END"
        cells = [self._shown(k, kind) for k, kind in zip(ks, kinds, strict=True)]
        clauses.append(f"RETURN collect([{', '.join([odd_ones, *cells, *shown])}]) AS rows")
        branches = [clauses]
        looked_up = look_up(compiler, branches, ("rows",), names)
        text = compiler.whole(branches, ("rows",))
        columns = Columns(tuple(kinds), tuple(kind for *_, kind in found))
        return Compiled(text, compiler.parameters, "groups", looked_up=looked_up, layout=self._layout, columns=columns)

    def _bound(self, row: list[str]) -> str:
        return f"WITH {', '.join([*row, *(f'{expression} AS {v}' for expression, (v, _) in self._values.items())])}"

    def _counted(self) -> str:
        # An aggregate in any case: beside one, a constant gives no row where there is nothing.
        return " + ".join(self._odd) or "count(null)"

    def _value(self, found: Direct) -> str:
        """A value of each row, bound once."""
        if found.expression not in self._values:
            self._values[found.expression] = self._compiler.name("v"), found.kind
        return self._values[found.expression][0]

    def _shown(self, k: str, kind: str) -> str:
        if kind == "entity":
            return f"CASE WHEN {k} IS NOT NULL THEN {self._layout.listed(k)} END"
        return f"toString({k})" if kind in ("day", "boolean") else k

    # -- ways --------------------------------------------------------------------------------------

    def _scan(self, number: int, before: int | None) -> alg.Scan:
        """A step from the rows, or from where the step before led."""
        scan = self._group.facts[number]
        if not isinstance(scan, alg.Scan) or scan.source is not None or scan.predicates is None or len(scan.predicates) != 1:
            raise _Doubtful
        of = self._start if before is None else alg.Reached(self._group.facts[before])
        if scan.of is not of and scan.of != of:
            raise _Doubtful
        return scan

    def _parted(self, way: Way) -> tuple[list[alg.Scan], alg.Scan | None]:
        """The relations that a way follows, and the attribute at its end."""
        scans = [self._scan(number, before) for before, number in zip((None, *way.steps), way.steps, strict=False)]
        attribute = scans.pop() if scans and scans[-1].family == "attribute" else None
        if any(scan.family != "relation" for scan in scans):
            raise _Doubtful
        return scans, attribute

    def _pattern(self, scan: alg.Scan, a: str, r: str, b: str) -> str:
        assert scan.predicates is not None
        pattern = self._layout.way(r, a, b, scan.predicates, outward=scan.anchor == "subject")
        if pattern is None:
            raise _Doubtful
        return pattern

    def _direct(self, e: str, scan: alg.Scan, concepts: tuple[str, ...] = ()) -> Direct:
        assert scan.predicates is not None
        found = self._layout.direct(e, scan.predicates[0], concepts)
        if found is None:
            raise _Doubtful
        return found

    def _qualifier(self, way: Way, facts: alg.Facts, f: str) -> Direct | None:
        """The qualifier that a way ends in; None where it ends in something else."""
        values = None if way.values is None else self._group.values[way.values]
        if isinstance(values, alg.Objects) or values is None:
            return None
        while not isinstance(facts, alg.Scan):
            (facts,) = [one for one in facts.inputs() if isinstance(one, alg.Facts)][:1] or [None]  # type: ignore[list-item]
            if facts is None:
                raise _Doubtful
        if not isinstance(values, alg.Qualifiers) or values.key is None or facts.predicates is None:
            raise _Doubtful
        found = self._layout.direct_qualifier(f, facts.predicates, values.key)
        if found is None:
            raise _Doubtful
        return found

    def _key(self, e: str, of: Expression) -> tuple[list[str], str, str]:
        """Clauses that bind where a key leads, its expression, and its type."""
        if not isinstance(of, Way):
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
            found = self._direct(at, attribute, () if scans else self._concepts)
            return lines, found.expression, found.kind
        if not scans and of.values is not None and isinstance(self._group.of, alg.Facts):
            qualifier = self._qualifier(of, self._group.of, r)
            if qualifier is not None:
                return lines, qualifier.expression, qualifier.kind
        if of.values is not None and not isinstance(self._group.values[of.values], alg.Objects):
            raise _Doubtful
        return lines, at, "entity"

    # -- measures ----------------------------------------------------------------------------------

    def _measure(self, e: str, measure: Measure) -> tuple[list[str], str, str]:
        """Clauses for each row, what sums the rows of a group up (a list of a count, a sum and an extreme),
        and the type of the values.
        """
        of, function = measure.of, measure.function
        if of is None and function in ("count", "distinct"):
            return [], f"[count({self._f or e})]", "rows"
        if not isinstance(of, Way) or function not in ("count", "distinct", "sum", "mean", "min", "max"):
            raise _Doubtful
        scans, attribute = self._parted(of)
        if not self._ends.keys().isdisjoint(of.steps):
            # What keys lead to counts once for each group.
            raise _Doubtful
        if not scans:
            if attribute is None and isinstance(self._group.of, alg.Facts):
                found = self._qualifier(of, self._group.of, self._f)
            else:
                found = None if attribute is None else self._direct(e, attribute, self._concepts)
            if found is None:
                raise _Doubtful
            v = self._value(found)
            self._odd.append(f"count({v}) - count({_safe(found.kind, v)})")
            return [], self._summed(function, v, found.kind), found.kind
        return self._far(e, function, of, scans, attribute)

    def _far(
        self, e: str, function: str, way: Way, scans: list[alg.Scan], attribute: alg.Scan | None
    ) -> tuple[list[str], str, str]:
        """A measure of what is not on the row itself."""
        if function == "distinct":
            raise _Doubtful
        name, at, r, matches = self._compiler.name, e, "", list[str]()
        for scan in scans:
            r, before, at = name("r"), at, name("e")
            matches.append(f"MATCH {self._pattern(scan, before, r, at)}")
        if attribute is not None:
            found: Direct | None = self._direct(at, attribute)
        else:
            found = self._qualifier(way, self._group.facts[way.steps[-1]], r)
        if found is None:
            if function != "count":
                raise _Doubtful
            if len(scans) == 1:
                # The server knows how many there are.
                return [], f"[sum(COUNT {{ {self._pattern(scans[0], e, '', '')} }})]", "rows"
            n = name("n")
            return [f"CALL ({e}) {{ {' '.join(matches)} RETURN count(*) AS {n} }}"], f"[sum({n})]", "rows"
        v, x, n = found.expression, name("x"), name("n")
        odd = f"count({v}) - count({_safe(found.kind, v)})"
        inner = self._summed(function, v, found.kind)
        self._odd.append(f"sum({n})")
        line = f"CALL ({e}) {{ {' '.join(matches)} RETURN {inner} AS {x}, {odd} AS {n} }}"
        return [line], self._again(function, x, found.kind), found.kind

    def _summed(self, function: str, v: str, kind: str) -> str:
        """What sums up values on the server: how many they are, and what else the function needs."""
        # What is odd must not end the query; it is counted.
        safe = _safe(kind, v)
        if function == "count":
            return f"[count({v})]"
        if function == "distinct":
            if kind == "float":
                raise _Doubtful
            return f"[count(DISTINCT {v})]"
        if function in ("sum", "mean"):
            if kind == "integer":
                return f"[count({v}), sum({safe} / {PART}), sum({safe} % {PART})]"
            if kind == "float":
                return f"[count({v}), collect({safe})]"
            raise _Doubtful
        if kind not in ("integer", "float", "day"):
            raise _Doubtful
        best = f"{function}({safe})"
        return f"[count({v}), {f'toString({best})' if kind == 'day' else best}]"

    def _again(self, function: str, x: str, kind: str) -> str:
        """The same of what rows were summed up to."""
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
        """Whether a test holds of a row."""
        if isinstance(test, No):
            return f"NOT {self._condition(e, test.test)}"
        if not isinstance(test, CellTest):
            word = " AND " if isinstance(test, Every) else " OR "
            return f"({word.join(self._condition(e, part) for part in test.tests)})"
        if not isinstance(test.of, Way):
            raise _Doubtful
        scans, attribute = self._parted(test.of)
        if scans:
            raise _Doubtful
        if attribute is not None:
            found: Direct | None = self._direct(e, attribute, self._concepts)
        else:
            found = self._qualifier(test.of, self._group.of, self._f) if isinstance(self._group.of, alg.Facts) else None
        if found is None:
            raise _Doubtful
        kind = found.kind
        # Conditions read what is not bound yet.
        self._value(found)
        v = found.expression
        if test.operator in ("known", "missing"):
            return f"{v} IS {'NOT ' if test.operator == 'known' else ''}NULL"
        readings = [value for value in test.readings if _reads(kind, value)]
        orders = () if kind in ("text", "boolean") else ("<", ">", "<=", ">=")
        if not readings or test.operator not in ("=", "!=", *orders):
            raise _Doubtful
        parts = [condition(self._compiler, alg.Compare(test.operator, value), found.cell) for value in readings]  # type: ignore[arg-type]
        return f"coalesce({' OR '.join(parts)}, false)"


def _concepts(node: Node) -> tuple[str, ...]:
    """A concept that all rows are in, by its names; none where that is not known."""
    if isinstance(node, alg.Members) and isinstance(node.concepts, alg.ByName):
        return node.concepts.names
    if isinstance(node, alg.Intersect):
        return next((found for part in node.parts if (found := _concepts(part))), ())
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


def _reads(kind: str, value: Any) -> bool:
    if kind in ("text", "boolean"):
        return isinstance(value, str)
    if kind == "day":
        return isinstance(value, Time)
    return isinstance(value, Quantity) and value.unit == NO_UNIT
