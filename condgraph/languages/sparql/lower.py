"""Lowers SPARQL queries to the algebra: groups to operators over rows (`algebra.solutions`).

Groups are evaluated bottom-up, as in SPARQL 1.1, section 18.2. The graph is seen as RDF in KQA Pro's
layout (`docs/reference/rdf.md`). Names are resolved against the schema, never against the facts.
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

# Expressions of SPARQL over rows. SPARQL's error is null here; "and", "or" and "not" treat both alike.
# Numbers of values are doubles, as their literals in RDF are.


_NUMBERS: Final = frozenset(("number", "number or 0", "integer", "decimal", "literal"))
_COMPARED: Final[dict[str, ex.ComparisonOperator]] = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS: Final[dict[str, ex.TextOperator]] = {"CONTAINS": "contains", "STRSTARTS": "starts with", "STRENDS": "ends with"}
_PARTS: Final = {"YEAR": "year", "MONTH": "month", "DAY": "day"}
_PLAIN: Final = re.compile(r"(\^?)((?:[^.\[\]{}()*+?|\\^$]|\\[.\[\]{}()*+?|\\^$/-])*+)(\$?)").fullmatch
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d").fullmatch


class TypedTerm(NamedTuple):
    """An expression over rows, and the sort of its values."""

    value: ex.Expression
    sort: Sort


class Expressions:
    """Lowers expressions, given the sorts of the variables in scope.

    `known` maps aggregates and EXISTS to variables of the rows.
    """

    def __init__(self, names: Names, scope: Mapping[str, Sort], known: Mapping[Expression, TypedTerm]) -> None:
        self._names, self._scope, self._known = names, scope, known

    def condition(self, expression: Expression) -> ex.Expression:
        """Lower a filter condition; a text is true if it is not empty."""
        term = self.typed(expression)
        if term.sort == "boolean":
            return term.value
        if term.sort in NODES:
            raise beyond(f"a filter that is {an(term.sort)}", "compare it with something")
        if term.sort == "text":
            return ex.Comparison("<>", term.value, ex.Constant(""))
        raise beyond(f"a filter that is {an(term.sort)}", "compare it with something")

    def typed(self, expression: Expression) -> TypedTerm:
        """Lower any expression, with its sort."""
        if expression in self._known:
            return self._known[expression]
        if isinstance(expression, Var):
            sort = self._scope.get(expression.name)
            if sort is None:
                # An unbound variable is an error wherever it is used.
                self._names.warn(f"?{expression.name} is not bound here, so expressions with it have no value")
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
            parts = tuple(self.condition(argument) for argument in arguments)
            return TypedTerm(ex.Not(parts[0]) if name == "!" else ex.And(parts) if name == "&&" else ex.Or(parts), "boolean")
        if name in _COMPARED:
            return TypedTerm(self._compared(name, *arguments), "boolean")
        if name == "SAMETERM":
            sorts = {self.typed(argument).sort for argument in arguments if not isinstance(argument, Iri)}
            if len(sorts) > 1 and sorts != {"text", "literal"}:
                raise beyond(f"SAMETERM of {' and '.join(map(an, sorted(sorts)))}", "= compares numbers of all types")
            return TypedTerm(self._compared("=", *arguments), "boolean")
        if name == "IN":
            tests = tuple(self._compared("=", arguments[0], argument) for argument in arguments[1:])
            return TypedTerm(ex.Or(tests) if tests else ex.Constant(False), "boolean")
        if name == "BOUND":
            if not isinstance(arguments[0], Var):
                raise beyond("BOUND of something else than a variable")
            sort = self._scope.get(arguments[0].name)
            of_value = sort in ("value", "node")
            if of_value and mark_of(arguments[0].name) not in self._scope:
                raise beyond(f"BOUND of ?{arguments[0].name}, which a SELECT within the query, a group or VALUES gives")
            variable = ex.Variable(mark_of(arguments[0].name) if of_value else arguments[0].name)
            return TypedTerm(ex.Constant(False) if sort is None else ex.Not(ex.IsNull(variable)), "boolean")
        if name == "REGEX":
            return self._regex(*arguments)
        if name in ("IF", "COALESCE"):
            return self._chosen(name, arguments)
        typed = [self.typed(argument) for argument in arguments]
        if name in ("+", "-", "*", "/"):
            return self._arithmetic(name, *typed)
        if name in _PARTS:
            if typed[0].sort != "date":
                raise beyond(f"{name} of {an(typed[0].sort)}", "<pred:date> of a time is a date")
            return TypedTerm(ex.Property(typed[0].value, _PARTS[name]), "integer")
        if name in ("ABS", "CEIL", "FLOOR", "ROUND"):
            if typed[0].sort == "integer" and name != "ABS":
                return typed[0]
            value = typed[0].value if typed[0].sort == "integer" else _number(typed[0])
            if name == "ROUND":
                # Halves go up (section 17.4.4.2). A sum with 0.5 would round a second time.
                down = ex.Call("floor", (value,))
                half = ex.Comparison(">=", ex.Arithmetic("-", value, down), ex.Constant(0.5))
                value = ex.Case(((half, ex.Arithmetic("+", down, ex.Constant(1.0))),), down)
            else:
                value = ex.Call(name.lower(), (value,))
            return TypedTerm(value, typed[0].sort if typed[0].sort in ("integer", "decimal") else "number")
        return self._of_texts(name, typed)

    def _of_texts(self, name: str, typed: list[TypedTerm]) -> TypedTerm:
        if name in _TESTS:
            return TypedTerm(ex.TextTest(_TESTS[name], _text(typed[0]), _text(typed[1])), "boolean")
        if name == "STR":
            if typed[0].sort == "literal":
                self._names.warn("STR of a number has no value in a program, that of a text is the text")
            return TypedTerm(_text(typed[0]), "text")
        if name == "STRLEN":
            return TypedTerm(ex.Call("size", (_text(typed[0]),)), "integer")
        if name in ("LCASE", "UCASE"):
            return TypedTerm(ex.Call("tolower" if name == "LCASE" else "toupper", (_text(typed[0]),)), "text")
        if name == "CONCAT":
            value: ex.Expression = ex.Constant("")
            for part in typed:
                value = ex.Arithmetic("+", value, _text(part))
            return TypedTerm(value, "text")
        starts = typed[1].value
        if not isinstance(starts, ex.Constant) or type(starts.value) is not int or starts.value < 1:
            raise beyond("SUBSTR from a position that is not a whole number of at least 1")
        lengths = tuple(term.value for term in typed[2:])
        return TypedTerm(ex.Call("substring", (_text(typed[0]), ex.Constant(starts.value - 1), *lengths)), "text")

    def _chosen(self, name: str, arguments: tuple[Expression, ...]) -> TypedTerm:
        typed = [self.typed(argument) for argument in (arguments[1:] if name == "IF" else arguments)]
        sort = typed[0].sort
        for term in typed[1:]:
            if term.sort != sort:
                raise beyond(f"{name} of {an(sort)} and {an(term.sort)}")
        if name == "COALESCE":
            return TypedTerm(ex.Call("coalesce", tuple(term.value for term in typed)), sort)
        test = self.condition(arguments[0])
        # An error in the test makes the result an error.
        return TypedTerm(ex.Case(((test, typed[0].value), (ex.Not(test), typed[1].value))), sort)

    @staticmethod
    def _arithmetic(name: str, left: TypedTerm, right: TypedTerm) -> TypedTerm:
        operator: ex.ArithmeticOperator = name  # type: ignore[assignment]
        if left.sort == right.sort == "integer":
            if name == "/":
                raise beyond("division of whole numbers, which gives a decimal")
            return TypedTerm(ex.Arithmetic(operator, left.value, right.value), "integer")
        if {left.sort, right.sort} <= {"integer", "decimal"}:
            raise beyond("arithmetic of decimals, which is exact", "1.5e0 is a double")
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
        left_term, right_term = self.typed(left), self.typed(right)
        if left_term.sort in NODES or right_term.sort in NODES or "predicate" in (left_term.sort, right_term.sort):
            return self._nodes(operator, left_term, right_term)
        if (
            (left_term.sort in _NUMBERS and right_term.sort in _NUMBERS)
            or left_term.sort == right_term.sort
            or "literal" in (left_term.sort, right_term.sort)
        ):
            return ex.Comparison(operator, _operand(left_term, right_term), _operand(right_term, left_term))
        raise beyond(f"a comparison of {an(left_term.sort)} with {an(right_term.sort)}")

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
        match = _PLAIN(pattern.text) if isinstance(pattern, Lit) and pattern.datatype == f"{XSD}string" else None
        if match is None or (flags is not None and not (isinstance(flags, Lit) and flags.text in ("", "i"))):
            raise beyond("REGEX with more than plain characters, ^, $ and the flag i", "CONTAINS and STRSTARTS say most of it")
        begins, body, ends = match.groups()
        body, value = re.sub(r"\\(.)", r"\1", body), _text(self.typed(text))
        if isinstance(flags, Lit) and flags.text:
            body, value = body.lower(), ex.Call("tolower", (value,))
        if begins and ends:
            return TypedTerm(ex.Comparison("=", value, ex.Constant(body)), "boolean")
        operator: ex.TextOperator = "starts with" if begins else "ends with" if ends else "contains"
        return TypedTerm(ex.TextTest(operator, value, ex.Constant(body)), "boolean")


def mark_of(name: str) -> str:
    """Return the variable that tells whether a value's node is bound, even if the value is null."""
    return f" bound {name}"


def constant(found: Lit) -> TypedTerm:
    """Lower a literal."""
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
            return TypedTerm(ex.Constant(float(found.text)), "decimal" if kind == "decimal" else "number")
    except (ValueError, LiteralError):
        pass
    raise beyond(f"the literal {found.text!r} of <{found.datatype}>")


def _text(typed: TypedTerm) -> ex.Expression:
    """Return an expression as a text; null if it is not one."""
    if typed.sort == "text":
        return typed.value
    if typed.sort != "literal":
        raise beyond(f"{an(typed.sort)} in place of a text", "<pred:value> and <pred:name> lead to texts")
    return ex.Case(((ex.TextTest("contains", typed.value, ex.Constant("")), typed.value),))


def _operand(term: TypedTerm, other: TypedTerm) -> ex.Expression:
    """Return an operand of a comparison: a whole number is compared with a double as a double."""
    whole = isinstance(term.value, ex.Constant) and type(term.value.value) is int
    return _number(term) if whole and other.sort in ("number", "number or 0", "literal") else term.value


def _number(typed: TypedTerm) -> ex.Expression:
    """Return an expression as a double; null if it is not a number."""
    if typed.sort not in _NUMBERS:
        raise beyond(f"{an(typed.sort)} in place of a number", "<pred:value> leads to numbers")
    if isinstance(typed.value, ex.Constant) and typed.value.value is not None:
        return ex.Constant(float(typed.value.value))
    if typed.sort == "literal":
        return ex.Case(
            ((ex.IsNull(ex.Comparison("<=", typed.value, ex.Constant(0))), ex.NULL),), ex.Call("tofloat", (typed.value,))
        )
    return ex.Call("tofloat", (typed.value,))


# -- Queries -----------------------------------------------------------------------------------------


#: The default base of relative IRIs: that of the graph called "default".
BASE: Final = f"{NAMESPACE}default/"
_UNIT: Final = solutions.Pattern(())
#: Names of a group's parts in a trace; any other part is a "pattern".
_STEPS: Final[dict[type, str]] = {
    syntax.PathPattern: "path", syntax.Nested: "SELECT", syntax.OptionalGroup: "OPTIONAL", syntax.MinusGroup: "MINUS",
    syntax.UnionGroup: "UNION", syntax.Bind: "BIND", syntax.Values: "VALUES",
}  # fmt: skip
_BOUND: Final = re.compile(r"bound\s*+\(\s*+([?$]\w++)", re.IGNORECASE)


@dataclass(slots=True)
class LoweredSparql(Lowered):
    """A plan with the sort of each column (`patterns.Sort`); `ask` marks an ASK query."""

    sorts: dict[str, Sort] = field(default_factory=dict)
    ask: bool = False


def lower(program: Any, schema: KnownSchema, *, base: str = BASE, on_unknown: str = "error") -> LoweredSparql:
    """Return the plan of a SPARQL query.

    A SELECT gives a row for each solution, an ASK one row with a truth value in the column `ask`.
    `base` is the prefix of the graph's IRIs. `on_unknown="empty"` lets predicates that the graph does
    not have match nothing, with a warning each.

    Raises `ParseError` for an undeclared prefix, `UnsupportedError` for a query without a plan and for
    invalid SPARQL, and `UnknownNameError` for unknown names.
    """
    if not isinstance(program, str):
        raise PlanError(f"a SPARQL query is a text, not {type(program).__name__}")
    query = parse(program, base, PREFIXES)
    warnings: list[str] = []
    bound_tested = frozenset(name[1:] for name in _BOUND.findall(program))
    lowering = _Lowering(Names(schema, base, lenient=on_unknown == "empty", warn=warnings.append), bound_tested)
    rows = lowering.query(query, traced=True)
    lowering.steps.append((query.form.upper(), rows.plan))
    return LoweredSparql(rows.plan, lowering.steps, list(dict.fromkeys(warnings)), sorts=rows.sorts, ask=query.form == "ask")


@dataclass(slots=True)
class _Rows:
    """The plan of a part, and the sorts of the variables that it binds."""

    plan: Solutions
    sorts: dict[str, Sort]


class _Lowering:
    """Lowers the groups of one query."""

    def __init__(self, names: Names, asked: frozenset[str]) -> None:
        # `asked` are the variables that `BOUND` tests.
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
            for condition in conditions:
                if any(isinstance(subexpression, syntax.Exists) for subexpression in syntax.parts_of(condition)):
                    raise syntax.beyond("EXISTS in a filter of OPTIONAL", "write it outside")
                tests.append(Expressions(self._names, sorts, known).condition(condition))
            test = None if not tests else tests[0] if len(tests) == 1 else ex.And(tuple(tests))
            return _Rows(solutions.LeftJoin(rows.plan, inner.plan, test), sorts)
        if isinstance(part, syntax.MinusGroup):
            inner = self._group(part.group)
            self._agreed(rows.sorts, inner.sorts)
            return _Rows(solutions.MinusRows(rows.plan, inner.plan), rows.sorts)
        if isinstance(part, syntax.Bind):
            return self._bound(rows, part.variable, part.expression)
        inner_rows = self._rows(part)
        sorts = self._agreed(rows.sorts, inner_rows.sorts)
        return _Rows(inner_rows.plan if rows.plan is _UNIT else solutions.Join(rows.plan, inner_rows.plan), sorts)

    def _rows(self, part: syntax.Part) -> _Rows:
        """Return the rows of a part that is joined with the parts before it."""
        if isinstance(part, syntax.Basic):
            matching = Matching(part, self._names, self._fresh)
            rows = _Rows(matching.rows(), matching.sorts)
            for name in self._asked.intersection(matching.sorts):
                # An unknown value is null in expressions, although its node is bound.
                rows.plan = solutions.Extend(rows.plan, mark_of(name), ex.Constant(True))
                rows.sorts[mark_of(name)] = "boolean"
            return rows
        if isinstance(part, syntax.PathPattern):
            return self._along(part)
        if isinstance(part, syntax.Nested):
            return self.query(part.query)
        if isinstance(part, syntax.Values):
            return self._values(part)
        assert isinstance(part, syntax.UnionGroup)
        branches = [self._group(branch_group) for branch_group in part.branches]
        if len(branches) == 1:
            return branches[0]
        sorts: dict[str, Sort] = {}
        for branch in branches:
            sorts = self._agreed(sorts, branch.sorts, either=True)
        return _Rows(solutions.UnionAll(tuple(branch.plan for branch in branches)), sorts)

    @staticmethod
    def _agreed(left: dict[str, Sort], right: dict[str, Sort], *, either: bool = False) -> dict[str, Sort]:
        """Merge the sorts of two parts: for a union of their rows (`either`), else for a join."""
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
        for name in result.keys() & {mark_of(name) for name in result}:
            # A mark that only one part has does not tell whether the other one binds the variable.
            of = name.removeprefix(mark_of(""))
            if any(of in part and name not in part for part in (left, right)):
                del result[name]
        return result

    def _along(self, part: syntax.PathPattern) -> _Rows:
        sorts: dict[str, Sort] = {}
        ends: list[solutions.Place] = []
        for term in (part.subject, part.object):
            if isinstance(term, syntax.Lit):
                raise syntax.beyond("a path to a literal")
            if isinstance(term, syntax.Iri):
                raise syntax.beyond("a path of any length from or to an IRI", "?x <pred:name> ... binds a variable to it")
            sorts[term.name] = "entity"
            ends.append(solutions.Variable(term.name))
        hops = []
        for predicate, back in part.hops:
            name = self._names.predicate(predicate.iri)
            if not self._names.schema.has_relation(name) or self._names.schema.has_attribute(name):
                raise syntax.beyond(
                    f"a path along {name!r}, which is not a relation" + " alone" * self._names.schema.has_relation(name)
                )
            hops.append(solutions.Hop((name,), "backward" if back else "forward"))
        plan: Solutions = solutions.Path(None, ends[0], tuple(hops), ends[1], 1, part.most)
        if part.least == 0:
            # A path of length 0 leads from each node to itself; here nodes are entities.
            identity = solutions.EntityRows(part.subject.name, AllEntities(tuple(EntityKind)))  # type: ignore[union-attr]
            if part.subject == part.object:
                return _Rows(identity, sorts)
            looped = solutions.Extend(identity, part.object.name, ex.Variable(part.subject.name))  # type: ignore[union-attr]
            plan = solutions.DistinctRows(solutions.UnionAll((looped, plan)))
        return _Rows(plan, sorts)

    def _values(self, part: syntax.Values) -> _Rows:
        names = tuple(variable.name for variable in part.variables)
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
        """Return the value and sort of a term of VALUES."""
        if isinstance(term, syntax.Iri):
            local_name = self._names.rest(term.iri)
            value = value_named(local_name[len(VALUE) :]) if local_name.startswith(VALUE) else None
            return (Ref(self._names.ident(term.iri)), "entity") if value is None else (value, "value")
        if not isinstance(term, syntax.Lit):
            raise syntax.beyond("a variable in VALUES")
        typed = constant(term)
        if typed.sort != "text" or not isinstance(typed.value, ex.Constant):
            # 1 and 1.0 are equal numbers but different literals.
            raise syntax.beyond("VALUES of anything but IRIs and plain texts", "FILTER with = and IN compares numbers")
        return typed.value.value, "text"

    def _bound(self, rows: _Rows, variable: syntax.Var, expression: syntax.Expression) -> _Rows:
        if variable.name in rows.plan.variables:
            raise syntax.beyond(f"BIND of ?{variable.name}, which is bound before")
        rows, known = self._existing(rows, [expression])
        term = Expressions(self._names, rows.sorts, known).typed(expression)
        return _Rows(solutions.Extend(rows.plan, variable.name, term.value), {**rows.sorts, variable.name: term.sort})

    # -- filters -----------------------------------------------------------------------------------

    def _filtered(self, rows: _Rows, conditions: Iterable[syntax.Expression]) -> _Rows:
        for condition in (part for conjunction in conditions for part in _conjuncts(conjunction)):
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
        """Return the rows of the group of an EXISTS."""
        inner = self._group(found.group)
        outer_only = [variable.name for variable in _correlated(found.group, frozenset()) if variable.name in rows.sorts]
        if outer_only:
            raise syntax.beyond(
                f"?{outer_only[0]} in EXISTS, which is bound outside and used there by a filter, BIND, OPTIONAL or MINUS alone",
                "a triple pattern of the same group that has it is enough",
            )
        self._agreed(rows.sorts, inner.sorts)
        return inner.plan

    def _existing(self, rows: _Rows, expressions: Iterable[syntax.Expression]) -> tuple[_Rows, dict[syntax.Expression, TypedTerm]]:
        """Extend the rows by a variable for each EXISTS in the expressions."""
        known: dict[syntax.Expression, TypedTerm] = {}
        plan = rows.plan
        for exists in dict.fromkeys(
            part for expression in expressions for part in syntax.parts_of(expression) if isinstance(part, syntax.Exists)
        ):
            name = self._fresh()
            plan = solutions.MarkJoin(plan, self._inner(rows, exists), name)
            value: ex.Expression = ex.Variable(name)
            known[exists] = TypedTerm(ex.Not(value) if exists.negated else value, "boolean")
        return _Rows(plan, rows.sorts), known

    # -- the query ---------------------------------------------------------------------------------

    def query(self, query: syntax.Query, *, traced: bool = False) -> _Rows:
        """Return the rows of a query; `traced` records each part of its group as a step."""
        rows = self._group(query.group, traced=traced)
        if query.form == "ask":
            counted = solutions.GroupRows(rows.plan, (), (solutions.RowAggregate("n", "count"),))
            answered = solutions.Extend(counted, "ask", ex.Comparison(">", ex.Variable("n"), ex.Constant(0)))
            return _Rows(solutions.Project(answered, (("ask", "ask"),)), {"ask": "boolean"})
        expressions = (
            [source for _, source in query.columns if source is not None] + query.having + [source for source, _ in query.order]
        )
        aggregates = list(
            dict.fromkeys(part for source in expressions for part in syntax.parts_of(source) if isinstance(part, syntax.Aggregate))
        )
        known: dict[syntax.Expression, TypedTerm] = {}
        if aggregates or query.grouped:
            rows, known = self._grouped(rows, query, aggregates)
            keys = {variable for variable, _ in query.grouped}
            columns = [variable for variable, source in query.columns if source is None]
            ungrouped = [column.name for column in columns if column.name not in rows.sorts and column not in keys]
            if ungrouped:
                raise PlanError(f"?{ungrouped[0]} is next to aggregates but not in GROUP BY", hint="GROUP BY it, or SAMPLE it")
        elif query.having:
            raise syntax.beyond("HAVING without groups")
        for variable, expression in query.columns:
            if expression is not None:
                if variable.name in rows.plan.variables:
                    raise syntax.beyond(f"?{variable.name} as the name of a column, which is bound already")
                rows, exists = self._existing(rows, [expression])
                term = Expressions(self._names, rows.sorts, known | exists).typed(expression)
                rows = _Rows(solutions.Extend(rows.plan, variable.name, term.value), {**rows.sorts, variable.name: term.sort})
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
            term = Expressions(self._names, rows.sorts, known).typed(expression)
            if term.sort in NODES and term.sort != "entity":
                raise syntax.beyond(f"an order by {an(term.sort)}", "<pred:value> leads to numbers and texts")
            value = ex.Call("rdf.iri", (term.value,)) if term.sort == "entity" else term.value
            name = self._fresh()
            plan = solutions.Extend(plan, name, value)
            # Unbound sorts first (section 15.1).
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
        row_aggregates: list[solutions.RowAggregate] = []
        results: dict[syntax.Expression, TypedTerm] = {}
        after: list[tuple[str, ex.Expression]] = []
        for aggregate in aggregates:
            name, result = self._fresh(), self._fresh()
            if aggregate.of is None:
                row_aggregates.append(solutions.RowAggregate(name, "count", None, aggregate.distinct))
                results[aggregate] = TypedTerm(ex.Variable(name), "integer")
                continue
            of = Expressions(self._names, rows.sorts, {}).typed(aggregate.of)
            argument = self._fresh()
            plan = solutions.Extend(plan, argument, of.value)
            value, sort = self._aggregate(aggregate, of.sort, name, argument, row_aggregates)
            if aggregate.name not in ("COUNT", "SAMPLE"):
                # A row without a value is an error, which only COUNT and SAMPLE leave out (section 18.5.1).
                total, present = self._fresh(), self._fresh()
                row_aggregates += [solutions.RowAggregate(total, "count"), solutions.RowAggregate(present, "count", argument)]
                value = ex.Case(((ex.Comparison("=", ex.Variable(total), ex.Variable(present)), value),))
            after.append((result, value))
            results[aggregate] = TypedTerm(ex.Variable(result), sort)
        plan = solutions.GroupRows(plan, keys, tuple(row_aggregates))
        for name, value in after:
            plan = solutions.Extend(plan, name, value)
        groups = _Rows(plan, {name: rows.sorts[name] for name in keys if name in rows.sorts})
        for condition in query.having:
            groups = _Rows(
                solutions.Filter(groups.plan, Expressions(self._names, groups.sorts, results).condition(condition)), groups.sorts
            )
        return groups, results

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
        # Over an empty group, SUM and AVG are the integer 0 (section 18.5.1).
        nothing = ex.Comparison("=", ex.Call("size", (ex.Variable(name),)), ex.Constant(0))
        return ex.Case(((nothing, ex.Constant(0)),), ex.Call("tofloat", (value,))), "number or 0"


def _conjuncts(expression: syntax.Expression) -> list[syntax.Expression]:
    if isinstance(expression, syntax.Call) and expression.name == "&&":
        return [part for argument in expression.arguments for part in _conjuncts(argument)]
    return [expression]


def _correlated(group: syntax.Group, bound: frozenset[syntax.Var]) -> list[syntax.Var]:
    """Return the variables of an EXISTS whose values outside would change the rows within: of filters, BIND, OPTIONAL
    and MINUS, if no other part of the group binds them. `bound` are the variables of the groups around this one.
    """
    unions = [part for part in group.parts if isinstance(part, syntax.UnionGroup)]
    own = tuple(part for part in group.parts if not isinstance(part, syntax.OptionalGroup | syntax.Bind | syntax.UnionGroup))
    bound = bound.union(
        syntax.Group(own, ()).variables(), *(set.intersection(*(set(one.variables()) for one in part.branches)) for part in unions)
    )
    expressions = [*group.filters, *(part.expression for part in group.parts if isinstance(part, syntax.Bind))]
    subexpressions = [part for expression in expressions for part in syntax.parts_of(expression)]
    used = [part for part in subexpressions if isinstance(part, syntax.Var)]
    nested = [part.group for part in subexpressions if isinstance(part, syntax.Exists)]
    nested += [part.group for part in group.parts if isinstance(part, syntax.OptionalGroup | syntax.MinusGroup)]
    for inner in nested:
        used += [*inner.variables(), *_correlated(inner, bound)]
    used += [variable for part in unions for branch in part.branches for variable in _correlated(branch, frozenset())]
    return [variable for variable in used if variable not in bound]
