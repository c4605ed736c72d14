"""A SPARQL query lowered to the algebra: groups to operators over rows (`algebra.solutions`), bottom-up as
SPARQL 1.1, section 18.2, has it. The graph is seen as RDF in KQA Pro's layout (`docs/reference/rdf.md`).

Names are resolved against the schema, never against the facts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from condgraph.engine import temporal
from condgraph.engine.algebra import AllEntities, Solutions, solutions
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import LiteralError, PlanError
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.iris import NAMESPACE, PREFIXES, VALUE, XSD, value_named
from condgraph.engine.lowered import Lowered
from condgraph.engine.store import KnownSchema
from condgraph.languages.sparql import syntax
from condgraph.languages.sparql.parse import parse
from condgraph.languages.sparql.patterns import NODES, Matching, Names, Sort, an
from condgraph.languages.sparql.syntax import Aggregate, Call, Exists, Expression, Iri, Lit, Var, beyond

# -- Expressions -------------------------------------------------------------------------------------

# Expressions of SPARQL over rows. An error of SPARQL is null here, and both go through "and", "or" and
# "not" in the same way. A number of a value is a double, as its node says it.


_NUMBERS: Final = frozenset(("number", "number or 0", "integer", "literal"))
_COMPARED: Final[dict[str, ex.ComparisonOperator]] = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS: Final[dict[str, ex.TextOperator]] = {"CONTAINS": "contains", "STRSTARTS": "starts with", "STRENDS": "ends with"}
_PARTS: Final = {"YEAR": "year", "MONTH": "month", "DAY": "day"}
_PLAIN: Final = re.compile(r"(\^?)((?:[^.\[\]{}()*+?|\\^$]|\\[.\[\]{}()*+?|\\^$/-])*+)(\$?)").fullmatch
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d").fullmatch


class TypedTerm(NamedTuple):
    """An expression over rows, and what it gives."""

    value: ex.Expression
    sort: Sort


class Expressions:
    """Lowers expressions in the scope of some variables. `known` has aggregates and EXISTS that are
    variables of the rows.
    """

    def __init__(self, names: Names, scope: Mapping[str, Sort], known: Mapping[Expression, TypedTerm]) -> None:
        self._names, self._scope, self._known = names, scope, known

    def condition(self, expression: Expression) -> ex.Expression:
        """A filter: what is no truth value is taken as one, as SPARQL does."""
        found = self.typed(expression)
        if found.sort == "boolean":
            return found.value
        if found.sort in NODES:
            raise beyond(f"a filter that is {an(found.sort)}", "compare it with something")
        if found.sort == "text":
            return ex.Comparison("<>", found.value, ex.Constant(""))
        raise beyond(f"a filter that is {an(found.sort)}", "compare it with something")

    def typed(self, expression: Expression) -> TypedTerm:
        """Any expression."""
        if expression in self._known:
            return self._known[expression]
        if isinstance(expression, Var):
            sort = self._scope.get(expression.name)
            if sort is None:
                # An error wherever it is looked at.
                self._names.warn(f"?{expression.name} is bound by nothing here, so that what is computed from it has no value")
                return TypedTerm(ex.NULL, "literal")
            return TypedTerm(ex.Variable(expression.name), sort)
        if isinstance(expression, Lit):
            return constant(expression)
        if isinstance(expression, Iri):
            raise beyond(f"<{expression.iri}> in an expression", "= and != compare it with a variable")
        if isinstance(expression, Aggregate | Exists):
            raise beyond("an aggregate or EXISTS here")
        return self._call(expression)

    # -- functions ---------------------------------------------------------------------------------

    def _call(self, call: Call) -> TypedTerm:
        name, arguments = call.name, call.arguments
        if name in ("&&", "||", "!"):
            parts = tuple(self.condition(one) for one in arguments)
            return TypedTerm(ex.Not(parts[0]) if name == "!" else ex.And(parts) if name == "&&" else ex.Or(parts), "boolean")
        if name in _COMPARED:
            return TypedTerm(self._compared(name, *arguments), "boolean")
        if name == "SAMETERM":
            return TypedTerm(self._compared("=", *arguments), "boolean")
        if name == "IN":
            tests = tuple(self._compared("=", arguments[0], one) for one in arguments[1:])
            return TypedTerm(ex.Or(tests) if tests else ex.Constant(False), "boolean")
        if name == "BOUND":
            if not isinstance(arguments[0], Var):
                raise beyond("BOUND of something else than a variable")
            sort = self._scope.get(arguments[0].name)
            of_value = sort in ("value", "node")
            if of_value and mark_of(arguments[0].name) not in self._scope:
                raise beyond(f"BOUND of ?{arguments[0].name}, which a SELECT within the query, a group or VALUES gives")
            found = ex.Variable(mark_of(arguments[0].name) if of_value else arguments[0].name)
            return TypedTerm(ex.Constant(False) if sort is None else ex.Not(ex.IsNull(found)), "boolean")
        if name == "REGEX":
            return self._regex(*arguments)
        if name in ("IF", "COALESCE"):
            return self._chosen(name, arguments)
        typed = [self.typed(one) for one in arguments]
        if name in ("+", "-", "*", "/"):
            return self._arithmetic(name, *typed)
        if name in _PARTS:
            if typed[0].sort != "date":
                raise beyond(f"{name} of {an(typed[0].sort)}", "<pred:date> of a time is a date")
            return TypedTerm(ex.Property(typed[0].value, _PARTS[name]), "integer")
        if name in ("ABS", "CEIL", "FLOOR", "ROUND"):
            whole = typed[0].sort == "integer"
            value = typed[0].value if whole else _number(typed[0])
            if name == "ROUND":
                # Halves go up (section 17.4.4.2).
                value = ex.Call("floor", (ex.Arithmetic("+", value, ex.Constant(0.5)),))
            else:
                value = ex.Call(name.lower(), (value,))
            return TypedTerm(value, typed[0].sort if whole else "number")
        return self._of_texts(name, typed)

    def _of_texts(self, name: str, typed: list[TypedTerm]) -> TypedTerm:
        if name in _TESTS:
            return TypedTerm(ex.TextTest(_TESTS[name], _text(typed[0]), _text(typed[1])), "boolean")
        if name == "STR":
            return TypedTerm(_text(typed[0]), "text")
        if name == "STRLEN":
            return TypedTerm(ex.Call("size", (_text(typed[0]),)), "integer")
        if name in ("LCASE", "UCASE"):
            return TypedTerm(ex.Call("tolower" if name == "LCASE" else "toupper", (_text(typed[0]),)), "text")
        if name == "CONCAT":
            value: ex.Expression = ex.Constant("")
            for one in typed:
                value = ex.Arithmetic("+", value, _text(one))
            return TypedTerm(value, "text")
        starts = typed[1].value
        if not isinstance(starts, ex.Constant) or type(starts.value) is not int or starts.value < 1:
            raise beyond("SUBSTR from a place that is no whole number from 1")
        lengths = tuple(one.value for one in typed[2:])
        return TypedTerm(ex.Call("substring", (_text(typed[0]), ex.Constant(starts.value - 1), *lengths)), "text")

    def _chosen(self, name: str, arguments: tuple[Expression, ...]) -> TypedTerm:
        typed = [self.typed(one) for one in (arguments[1:] if name == "IF" else arguments)]
        sort = typed[0].sort
        for one in typed[1:]:
            if one.sort != sort:
                raise beyond(f"{name} of {an(sort)} and {an(one.sort)}")
        if name == "COALESCE":
            return TypedTerm(ex.Call("coalesce", tuple(one.value for one in typed)), sort)
        test = self.condition(arguments[0])
        # Where the test is an error, so is the whole.
        return TypedTerm(ex.Case(((test, typed[0].value), (ex.Not(test), typed[1].value))), sort)

    @staticmethod
    def _arithmetic(name: str, left: TypedTerm, right: TypedTerm) -> TypedTerm:
        operator: ex.ArithmeticOperator = name  # type: ignore[assignment]
        if left.sort == right.sort == "integer":
            if name == "/":
                raise beyond("division of whole numbers, which gives a decimal")
            return TypedTerm(ex.Arithmetic(operator, left.value, right.value), "integer")
        return TypedTerm(ex.Arithmetic(operator, _number(left), _number(right)), "number")

    # -- comparisons -------------------------------------------------------------------------------

    def _compared(self, name: str, left: Expression, right: Expression) -> ex.Expression:
        operator = _COMPARED[name]
        if isinstance(left, Iri):
            left, right = right, left
        if isinstance(right, Iri):
            if operator not in ("=", "<>"):
                raise beyond("the order of IRIs")
            equal = self._is_iri(self.typed(left), right)
            return equal if operator == "=" else ex.Not(equal)
        one, two = self.typed(left), self.typed(right)
        if one.sort in NODES or two.sort in NODES or "predicate" in (one.sort, two.sort):
            return self._nodes(operator, one, two)
        if (one.sort in _NUMBERS and two.sort in _NUMBERS) or one.sort == two.sort or "literal" in (one.sort, two.sort):
            return ex.Comparison(operator, one.value, two.value)
        raise beyond(f"a comparison of {an(one.sort)} with {an(two.sort)}")

    @staticmethod
    def _nodes(operator: ex.ComparisonOperator, one: TypedTerm, two: TypedTerm) -> ex.Expression:
        if operator not in ("=", "<>"):
            raise beyond("the order of IRIs")
        if one.sort != two.sort or one.sort in ("value", "node"):
            raise beyond(f"a comparison of {an(one.sort)} with {an(two.sort)}", "<pred:value> leads to numbers and texts")
        return ex.Comparison(operator, one.value, two.value)

    def _is_iri(self, left: TypedTerm, right: Iri) -> ex.Expression:
        if left.sort == "entity":
            return ex.Comparison("=", ex.Call("elementid", (left.value,)), ex.Constant(self._names.ident(right.iri)))
        if left.sort == "predicate":
            return ex.Comparison("=", left.value, ex.Constant(self._names.predicate(right.iri)))
        raise beyond(f"a comparison of {an(left.sort)} with an IRI")

    def _regex(self, text: Expression, pattern: Expression, flags: Expression | None = None) -> TypedTerm:
        found = _PLAIN(pattern.text) if isinstance(pattern, Lit) and pattern.datatype == f"{XSD}string" else None
        if found is None or (flags is not None and not (isinstance(flags, Lit) and flags.text in ("", "i"))):
            raise beyond("REGEX with more than plain characters, ^, $ and the flag i", "CONTAINS and STRSTARTS say most of it")
        begins, body, ends = found.groups()
        body, value = re.sub(r"\\(.)", r"\1", body), _text(self.typed(text))
        if isinstance(flags, Lit) and flags.text:
            body, value = body.lower(), ex.Call("tolower", (value,))
        if begins and ends:
            return TypedTerm(ex.Comparison("=", value, ex.Constant(body)), "boolean")
        operator: ex.TextOperator = "starts with" if begins else "ends with" if ends else "contains"
        return TypedTerm(ex.TextTest(operator, value, ex.Constant(body)), "boolean")


def mark_of(name: str) -> str:
    """The variable that says whether the node of a value is bound to another one."""
    return f" bound {name}"


def constant(found: Lit) -> TypedTerm:
    """A literal."""
    kind = found.datatype.removeprefix(XSD)
    if found.language:
        raise beyond(f"a text with a language (@{found.language})", "texts of a graph have none")
    try:
        if kind == "string":
            return TypedTerm(ex.Constant(found.text), "text")
        if kind == "boolean" and found.text in ("true", "1", "false", "0"):
            return TypedTerm(ex.Constant(found.text in ("true", "1")), "boolean")
        if kind == "date" and _DAY(found.text):
            return TypedTerm(ex.Constant(temporal.date(found.text)), "date")
        if kind == "integer":
            return TypedTerm(ex.Constant(int(found.text)), "integer")
        if kind in ("decimal", "double", "float") and math.isfinite(float(found.text)):
            return TypedTerm(ex.Constant(float(found.text)), "number")
    except (ValueError, LiteralError):
        pass
    raise beyond(f"the literal {found.text!r} of <{found.datatype}>")


def _text(typed: TypedTerm) -> ex.Expression:
    """An expression as a text; null where it is none."""
    if typed.sort == "text":
        return typed.value
    if typed.sort != "literal":
        raise beyond(f"{an(typed.sort)} where a text stands", "<pred:value> and <pred:name> lead to texts")
    return ex.Case(((ex.TextTest("contains", typed.value, ex.Constant("")), typed.value),))


def _number(typed: TypedTerm) -> ex.Expression:
    """An expression as a double; null where it is no number."""
    if typed.sort not in _NUMBERS:
        raise beyond(f"{an(typed.sort)} where a number stands", "<pred:value> leads to numbers")
    if isinstance(typed.value, ex.Constant) and typed.value.value is not None:
        return ex.Constant(float(typed.value.value))
    if typed.sort == "literal":
        return ex.Case(
            ((ex.IsNull(ex.Comparison("<=", typed.value, ex.Constant(0))), ex.NULL),), ex.Call("tofloat", (typed.value,))
        )
    return ex.Call("tofloat", (typed.value,))


# -- Queries -----------------------------------------------------------------------------------------


#: What relative IRIs begin with, where nothing else is said: the base of the graph called "default".
BASE: Final = f"{NAMESPACE}default/"
_UNIT: Final = solutions.Pattern(())
#: What the parts of a group are called in a trace; the others are patterns.
_STEPS: Final[dict[type, str]] = {
    syntax.PathPattern: "path", syntax.Nested: "SELECT", syntax.OptionalGroup: "OPTIONAL", syntax.MinusGroup: "MINUS",
    syntax.UnionGroup: "UNION", syntax.Bind: "BIND", syntax.Values: "VALUES",
}  # fmt: skip
_BOUND: Final = re.compile(r"bound\s*+\(\s*+([?$]\w++)", re.IGNORECASE)


@dataclass(slots=True)
class LoweredSparql(Lowered):
    """A plan, and what each column of its rows holds (`patterns.Sort`); `ask` says that the query was an ASK."""

    sorts: dict[str, Sort] = field(default_factory=dict)
    ask: bool = False


def lower(program: Any, schema: KnownSchema, *, base: str = BASE, on_unknown: str = "error") -> LoweredSparql:
    """The plan of a SPARQL query: a SELECT gives a row for each solution, an ASK one row whose column `ask` is a truth
    value. `base` is what the IRIs of the graph's names begin with; `on_unknown="empty"` lets predicates that the graph
    does not have mean nothing, with a warning each.

    Raises `ParseError` for an undeclared prefix, `UnsupportedError` for what has no plan, or is no SPARQL, and
    `UnknownNameError` for unknown names.
    """
    if not isinstance(program, str):
        raise PlanError(f"a SPARQL query is a text, not {type(program).__name__}")
    query = parse(program, base, PREFIXES)
    warnings: list[str] = []
    asked = frozenset(name[1:] for name in _BOUND.findall(program))
    lowering = _Lowering(Names(schema, base, lenient=on_unknown == "empty", warn=warnings.append), asked)
    found = lowering.query(query, traced=True)
    lowering.steps.append((query.form.upper(), found.plan))
    return LoweredSparql(found.plan, lowering.steps, list(dict.fromkeys(warnings)), sorts=found.sorts, ask=query.form == "ask")


@dataclass(slots=True)
class _Rows:
    """Rows of a part: their plan, and what the variables are that its patterns bind."""

    plan: Solutions
    sorts: dict[str, Sort]


class _Lowering:
    """Lowers the groups of one query."""

    def __init__(self, names: Names, asked: frozenset[str]) -> None:
        #: The variables that `BOUND` asks about.
        self._names, self._asked, self._count = names, asked, 0
        self.steps: list[tuple[str, Any]] = []

    def _fresh(self) -> str:
        self._count += 1
        return f" {self._count}"

    # -- groups ------------------------------------------------------------------------------------

    def _group(self, group: syntax.Group, *, traced: bool = False) -> _Rows:
        rows, conditions = self._unfiltered(group, traced=traced)
        return self._filtered(rows, conditions)

    def _unfiltered(self, group: syntax.Group, *, traced: bool = False) -> tuple[_Rows, Sequence[syntax.Expression]]:
        rows = _Rows(_UNIT, {})
        for part in group.parts:
            rows = self._part(rows, part)
            if traced:
                self.steps.append((_STEPS.get(type(part), "pattern"), rows.plan))
        return rows, group.filters

    def _part(self, rows: _Rows, part: syntax.Part) -> _Rows:
        if isinstance(part, syntax.OptionalGroup):
            inner, conditions = self._unfiltered(part.group)
            sorts = self._agreed(rows.sorts, inner.sorts)
            tests, known = [], dict[syntax.Expression, TypedTerm]()
            for one in conditions:
                if any(isinstance(each, syntax.Exists) for each in syntax.parts_of(one)):
                    raise syntax.beyond("EXISTS in a filter of OPTIONAL", "write it outside")
                tests.append(Expressions(self._names, sorts, known).condition(one))
            test = None if not tests else tests[0] if len(tests) == 1 else ex.And(tuple(tests))
            return _Rows(solutions.LeftJoin(rows.plan, inner.plan, test), sorts)
        if isinstance(part, syntax.MinusGroup):
            inner = self._group(part.group)
            self._agreed(rows.sorts, inner.sorts)
            return _Rows(solutions.MinusRows(rows.plan, inner.plan), rows.sorts)
        if isinstance(part, syntax.Bind):
            return self._bound(rows, part.variable, part.expression)
        found = self._rows(part)
        sorts = self._agreed(rows.sorts, found.sorts)
        return _Rows(found.plan if rows.plan is _UNIT else solutions.Join(rows.plan, found.plan), sorts)

    def _rows(self, part: syntax.Part) -> _Rows:
        """The rows of a part that is joined with what stands before it."""
        if isinstance(part, syntax.Basic):
            matching = Matching(part, self._names, self._fresh)
            found = _Rows(matching.rows(), matching.sorts)
            for name in self._asked.intersection(matching.sorts):
                # A value that is not known is null in expressions, and its node is bound.
                found.plan = solutions.Extend(found.plan, mark_of(name), ex.Constant(True))
                found.sorts[mark_of(name)] = "boolean"
            return found
        if isinstance(part, syntax.PathPattern):
            return self._along(part)
        if isinstance(part, syntax.Nested):
            return self.query(part.query)
        if isinstance(part, syntax.Values):
            return self._values(part)
        assert isinstance(part, syntax.UnionGroup)
        branches = [self._group(one) for one in part.branches]
        if len(branches) == 1:
            return branches[0]
        sorts: dict[str, Sort] = {}
        for branch in branches:
            sorts = self._agreed(sorts, branch.sorts, either=True)
        return _Rows(solutions.UnionAll(tuple(branch.plan for branch in branches)), sorts)

    @staticmethod
    def _agreed(left: dict[str, Sort], right: dict[str, Sort], *, either: bool = False) -> dict[str, Sort]:
        """What the variables of two parts are; `either`: of the rows of both, else of rows that are joined."""
        result = dict(left)
        for name, sort in right.items():
            known = result.setdefault(name, sort)
            if known == sort:
                continue
            if known in NODES and sort in NODES:
                result[name] = "node" if either else known if sort == "node" else sort
            elif {known, sort} <= {"text", "literal"}:
                result[name] = "literal" if either else "text"
            elif {known, sort} == {"number", "literal"}:
                result[name] = "literal" if either else "number"
            else:
                raise syntax.beyond(f"?{name}, which is {an(known)} in one part and {an(sort)} in another")
        return result

    def _along(self, part: syntax.PathPattern) -> _Rows:
        sorts: dict[str, Sort] = {}
        places: list[solutions.Place] = []
        for term in (part.subject, part.object):
            if isinstance(term, syntax.Lit):
                raise syntax.beyond("a path to a literal")
            if isinstance(term, syntax.Iri):
                raise syntax.beyond("a path of any length from or to an IRI", "?x <pred:name> ... binds a variable to it")
            sorts[term.name] = "entity"
            places.append(solutions.Variable(term.name))
        hops = []
        for predicate, back in part.hops:
            name = self._names.predicate(predicate.iri)
            if not self._names.schema.has_relation(name):
                raise syntax.beyond(f"a path along {name!r}, which is no relation")
            hops.append(solutions.Hop((name,), "backward" if back else "forward"))
        plan: Solutions = solutions.Path(None, places[0], tuple(hops), places[1], 1, part.most)
        if part.least == 0:
            # A path of no steps leads from everything to itself: of entities it is known here.
            same = solutions.EntityRows(part.subject.name, AllEntities(tuple(EntityKind)))  # type: ignore[union-attr]
            if part.subject == part.object:
                return _Rows(same, sorts)
            looped = solutions.Extend(same, part.object.name, ex.Variable(part.subject.name))  # type: ignore[union-attr]
            plan = solutions.DistinctRows(solutions.UnionAll((looped, plan)))
        return _Rows(plan, sorts)

    def _values(self, part: syntax.Values) -> _Rows:
        names = tuple(one.name for one in part.variables)
        sorts: dict[str, Sort] = {}
        rows = []
        for row in part.rows:
            cells: list[Any] = []
            for name, term in zip(names, row, strict=True):
                value, sort = (None, None) if term is None else self._given(term)
                if sort is not None and sorts.setdefault(name, sort) != sort:
                    raise syntax.beyond(f"?{name}, which is {an(sorts[name])} and {an(sort)} in VALUES")
                cells.append(value)
            rows.append(tuple(cells))
        for name in names:
            sorts.setdefault(name, "node")
        return _Rows(solutions.Rows(names, tuple(rows)), sorts)

    def _given(self, term: syntax.Term) -> tuple[Any, Sort]:
        """A term of VALUES."""
        if isinstance(term, syntax.Iri):
            rest = self._names.rest(term.iri)
            value = value_named(rest[len(VALUE) :]) if rest.startswith(VALUE) else None
            return (Ref(self._names.ident(term.iri)), "entity") if value is None else (value, "value")
        if not isinstance(term, syntax.Lit):
            raise syntax.beyond("a variable in VALUES")
        typed = constant(term)
        if typed.sort != "text" or not isinstance(typed.value, ex.Constant):
            # 1 and 1.0 are one number, and two literals.
            raise syntax.beyond("VALUES of anything but IRIs and plain texts", "FILTER with = and IN compares numbers")
        return typed.value.value, "text"

    def _bound(self, rows: _Rows, variable: syntax.Var, expression: syntax.Expression) -> _Rows:
        if variable.name in rows.plan.variables:
            raise syntax.beyond(f"BIND of ?{variable.name}, which is bound before")
        rows, known = self._existing(rows, [expression])
        found = Expressions(self._names, rows.sorts, known).typed(expression)
        return _Rows(solutions.Extend(rows.plan, variable.name, found.value), {**rows.sorts, variable.name: found.sort})

    # -- filters -----------------------------------------------------------------------------------

    def _filtered(self, rows: _Rows, conditions: Iterable[syntax.Expression]) -> _Rows:
        for condition in (part for whole in conditions for part in _conjuncts(whole)):
            if isinstance(condition, syntax.Exists):
                inner = self._inner(rows, condition)
                kind = solutions.AntiJoin if condition.negated else solutions.SemiJoin
                rows = _Rows(kind(rows.plan, inner), rows.sorts)
                continue
            visible = rows.sorts
            rows, known = self._existing(rows, [condition])
            test = Expressions(self._names, visible, known).condition(condition)
            rows = _Rows(solutions.Filter(rows.plan, test), visible)
        return rows

    def _inner(self, rows: _Rows, found: syntax.Exists) -> Solutions:
        """The rows of a group of EXISTS."""
        mentioned = {one.name for one in _filtered_variables(found.group)}
        inner = self._group(found.group)
        outside = [name for name in mentioned if name in rows.sorts and name not in inner.sorts]
        if outside:
            raise syntax.beyond(f"a filter in EXISTS about ?{outside[0]}, which is bound outside alone")
        self._agreed(rows.sorts, inner.sorts)
        return inner.plan

    def _existing(self, rows: _Rows, expressions: Iterable[syntax.Expression]) -> tuple[_Rows, dict[syntax.Expression, TypedTerm]]:
        """The rows with a variable for each EXISTS in expressions."""
        known: dict[syntax.Expression, TypedTerm] = {}
        plan = rows.plan
        for found in dict.fromkeys(part for one in expressions for part in syntax.parts_of(one) if isinstance(part, syntax.Exists)):
            name = self._fresh()
            plan = solutions.MarkJoin(plan, self._inner(rows, found), name)
            value: ex.Expression = ex.Variable(name)
            known[found] = TypedTerm(ex.Not(value) if found.negated else value, "boolean")
        return _Rows(plan, rows.sorts), known

    # -- the query ---------------------------------------------------------------------------------

    def query(self, query: syntax.Query, *, traced: bool = False) -> _Rows:
        """The rows of a query; `traced`: each part of its group is a step."""
        rows = self._group(query.group, traced=traced)
        if query.form == "ask":
            counted = solutions.GroupRows(rows.plan, (), (solutions.RowAggregate("n", "count"),))
            asked = solutions.Extend(counted, "ask", ex.Comparison(">", ex.Variable("n"), ex.Constant(0)))
            return _Rows(solutions.Project(asked, (("ask", "ask"),)), {"ask": "boolean"})
        said = [one for _, one in query.columns if one is not None] + query.having + [one for one, _ in query.order]
        aggregates = list(
            dict.fromkeys(part for one in said for part in syntax.parts_of(one) if isinstance(part, syntax.Aggregate))
        )
        known: dict[syntax.Expression, TypedTerm] = {}
        if aggregates or query.grouped:
            rows, known = self._grouped(rows, query, aggregates)
            loose = [variable.name for variable, one in query.columns if one is None and variable.name not in rows.sorts]
            if loose:
                raise PlanError(f"?{loose[0]} stands beside aggregates, and no group has it", hint="GROUP BY it, or SAMPLE it")
        elif query.having:
            raise syntax.beyond("HAVING without groups")
        for variable, expression in query.columns:
            if expression is not None:
                if variable.name in rows.plan.variables:
                    raise syntax.beyond(f"?{variable.name} as the name of a column, which is bound already")
                rows, exists = self._existing(rows, [expression])
                found = Expressions(self._names, rows.sorts, known | exists).typed(expression)
                rows = _Rows(solutions.Extend(rows.plan, variable.name, found.value), {**rows.sorts, variable.name: found.sort})
        for variable, expression in query.columns:
            if expression is None and variable.name not in rows.sorts:
                self._names.warn(f"?{variable.name} is a column, and nothing binds it")
        plan = self._ordered(rows, query, known)
        names = [variable.name for variable, _ in query.columns]
        plan = solutions.Project(plan, tuple((name, name) for name in dict.fromkeys(names)))
        if query.distinct:
            plan = solutions.DistinctRows(plan)
        if query.offset or query.limit is not None:
            plan = solutions.SliceRows(plan, query.offset, query.limit)
        return _Rows(plan, {name: rows.sorts.get(name, "node") for name in names})

    def _ordered(self, rows: _Rows, query: syntax.Query, known: dict[syntax.Expression, TypedTerm]) -> Solutions:
        plan, keys = rows.plan, []
        for expression, down in query.order:
            if isinstance(expression, syntax.Var) and expression.name not in rows.sorts:
                continue
            found = Expressions(self._names, rows.sorts, known).typed(expression)
            if found.sort in NODES and found.sort != "entity":
                raise syntax.beyond(f"an order by {an(found.sort)}", "<pred:value> leads to numbers and texts")
            value = ex.Call("rdf.iri", (found.value,)) if found.sort == "entity" else found.value
            name = self._fresh()
            plan = solutions.Extend(plan, name, value)
            # What is unbound is before everything (section 15.1).
            keys.append(solutions.RowOrder(name, down, first=not down))
        return solutions.OrderRows(plan, tuple(keys)) if keys else plan

    def _grouped(
        self, rows: _Rows, query: syntax.Query, aggregates: Sequence[syntax.Aggregate]
    ) -> tuple[_Rows, dict[syntax.Expression, TypedTerm]]:
        for variable, expression in query.grouped:
            if expression is not None:
                rows = self._bound(rows, variable, expression)
        keys = tuple(dict.fromkeys(variable.name for variable, _ in query.grouped))
        marks = tuple(map(mark_of, self._asked))
        visible = [name for name in rows.plan.variables if not name.startswith((".", " ")) or name in (*keys, *marks)]
        plan: Solutions = solutions.Project(rows.plan, tuple((name, name) for name in visible))
        made: list[solutions.RowAggregate] = []
        results: dict[syntax.Expression, TypedTerm] = {}
        after: list[tuple[str, ex.Expression]] = []
        for one in aggregates:
            name, result = self._fresh(), self._fresh()
            if one.of is None:
                made.append(solutions.RowAggregate(name, "count", None, one.distinct))
                results[one] = TypedTerm(ex.Variable(name), "integer")
                continue
            of = Expressions(self._names, rows.sorts, {}).typed(one.of)
            given = self._fresh()
            plan = solutions.Extend(plan, given, of.value)
            value, sort = self._aggregate(one, of.sort, name, given, made)
            after.append((result, value))
            results[one] = TypedTerm(ex.Variable(result), sort)
        plan = solutions.GroupRows(plan, keys, tuple(made))
        for name, value in after:
            plan = solutions.Extend(plan, name, value)
        found = _Rows(plan, {name: rows.sorts[name] for name in keys if name in rows.sorts})
        for condition in query.having:
            found = _Rows(
                solutions.Filter(found.plan, Expressions(self._names, found.sorts, results).condition(condition)), found.sorts
            )
        return found, results

    @staticmethod
    def _aggregate(
        one: syntax.Aggregate, of: Sort, name: str, given: str, made: list[solutions.RowAggregate]
    ) -> tuple[ex.Expression, Sort]:
        if one.name == "COUNT":
            made.append(solutions.RowAggregate(name, "count", given, one.distinct))
            return ex.Variable(name), "integer"
        if one.name == "SAMPLE":
            made.append(solutions.RowAggregate(name, "any", given))
            return ex.Variable(name), of
        if one.name == "GROUP_CONCAT":
            if of not in ("text", "literal"):
                raise syntax.beyond(f"GROUP_CONCAT of {an(of)}", "<pred:value> and <pred:name> lead to texts")
            made.append(solutions.RowAggregate(name, "text", given, one.distinct, one.separator))
            return ex.Variable(name), "text"
        if of in NODES or (one.name in ("SUM", "AVG") and of not in ("number", "integer", "literal")):
            raise syntax.beyond(f"{one.name} of {an(of)}", "<pred:value> leads to numbers and texts")
        made.append(solutions.RowAggregate(name, "list", given, one.distinct))
        function = {"SUM": "group_sum", "AVG": "group_avg", "MIN": "group_min", "MAX": "group_max"}[one.name]
        value: ex.Expression = ex.Call(function, (ex.Variable(name),))
        if one.name in ("MIN", "MAX") or (one.name == "SUM" and of == "integer"):
            return value, of
        # Of nothing, both are the integer 0 (section 18.5.1).
        nothing = ex.Comparison("=", ex.Call("size", (ex.Variable(name),)), ex.Constant(0))
        return ex.Case(((nothing, ex.Constant(0)),), ex.Call("tofloat", (value,))), "number or 0"


def _conjuncts(expression: syntax.Expression) -> list[syntax.Expression]:
    if isinstance(expression, syntax.Call) and expression.name == "&&":
        return [part for one in expression.arguments for part in _conjuncts(one)]
    return [expression]


def _filtered_variables(group: syntax.Group) -> list[syntax.Var]:
    """The variables of the filters of a group and of groups within it."""
    found = [part for one in group.filters for part in syntax.parts_of(one) if isinstance(part, syntax.Var)]
    for part in group.parts:
        inner = (
            part.branches
            if isinstance(part, syntax.UnionGroup)
            else (part.group,)
            if isinstance(part, syntax.OptionalGroup | syntax.MinusGroup)
            else ()
        )
        found += [one for each in inner for one in _filtered_variables(each)]
    return found
