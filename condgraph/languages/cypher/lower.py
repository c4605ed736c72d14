"""Lowers Cypher queries to the algebra: clauses to operators over rows (`algebra.solutions`), expressions to
`algebra.expressions`. `docs/reference/cypher.md` describes a graph as a property graph.

Names are resolved against the schema, never against the facts. A subquery becomes a plan over the distinct
values of its outer variables, and is joined with the outer rows, so that it runs once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import PlanError, UnknownNameError, nearest
from condgraph.engine.execute.expressions import Compiler
from condgraph.engine.execute.terms import type_name
from condgraph.engine.facts import EntityKind
from condgraph.engine.lowered import Lowered
from condgraph.engine.store import KnownSchema
from condgraph.engine.values import NO_UNIT, Kind, Quantity
from condgraph.languages.cypher import tree
from condgraph.languages.cypher.expressions import (
    NODE,
    PATH,
    RELATIONSHIP,
    RELATIONSHIPS,
    SCALAR,
    START,
    VALUE,
    Expressions,
    Rows,
    conjuncts,
    mentioned_in,
)
from condgraph.languages.cypher.parse import parse
from condgraph.languages.cypher.patterns import Matching
from condgraph.languages.cypher.procedures import CallingQuery, ProcedureRows, procedure
from condgraph.languages.parameters import BoundQuery


def lower(program: Any, schema: KnownSchema, *, parameters: Mapping[str, Any] | None = None, on_unknown: str = "error") -> Lowered:
    """Return the plan of a Cypher query.

    `parameters` are the values of `$name`. `on_unknown="empty"` lets labels, types and properties that
    the graph does not have match nothing, with a warning each.

    Raises `ParseError` with a position for invalid text, `UnknownNameError` for unknown names, and
    `PlanError` for a query without a meaning.
    """
    procedures: Mapping[str, ProcedureRows] = {}
    if isinstance(program, BoundQuery):
        procedures = program.procedures if isinstance(program, CallingQuery) else {}
        program, parameters = program.text, {**program.parameters, **(parameters or {})}
    if not isinstance(program, str):
        raise PlanError(f"a Cypher query is a text, not {type(program).__name__}")
    parsed = parse(program)
    lowering = Lowering(schema, dict(parameters or {}), on_unknown, parsed.names, procedures)
    rows, columns = lowering.query(parsed.query, None)
    plan = alg.solutions.Project(rows.plan, tuple((name, rows.scope[name]) for name in columns))
    lowering.steps.append(("RETURN", plan))
    return Lowered(plan, lowering.steps, lowering.warnings)


def _constant(expression: ex.Expression) -> bool:
    return not any(
        isinstance(part, ex.Variable | tree.SubQuery | tree.PatternTest | tree.PatternComprehension | tree.Aggregate)
        for part in ex.walk(expression)
    )


def _aggregated(expression: ex.Expression) -> bool:
    return any(isinstance(part, tree.Aggregate) for part in ex.walk(expression))


class Lowering:
    """Shared state of the clauses: the schema, the parameters, warnings and steps."""

    def __init__(
        self,
        schema: KnownSchema,
        parameters: dict[str, Any],
        on_unknown: str,
        names: dict[tuple[str, str], tuple[int, int]],
        procedures: Mapping[str, ProcedureRows],
    ) -> None:
        self.schema = schema
        self._procedures = procedures
        self.parameters = parameters
        self._lenient = on_unknown == "empty"
        self._spans = names
        self._count = 0
        #: Variables of the plan whose values all have one type, so that they sort without `orderkey`.
        self._uniform: set[str] = set()
        #: Variables that hold a property with several values on some nodes, with its key; and all such keys in use.
        self._several: dict[str, str] = {}
        self._several_read: dict[str, None] = {}
        self.steps: list[tuple[str, alg.Node]] = []
        self.warnings: list[str] = []

    def fresh(self, name: str = "") -> str:
        """Return an unused variable of the plan."""
        self._count += 1
        return f" {name}#{self._count}"

    def warn(self, text: str) -> None:
        """Add a warning to the answer, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    # -- names -------------------------------------------------------------------------------------

    def _unknown(self, kind: str, name: str, names: Sequence[str], effect: str) -> None:
        """Raise the error for an unknown name, or warn if unknown names are allowed."""
        if not self._lenient:
            span = self._spans.get((kind, name))
            raise UnknownNameError(
                kind, name, candidates=nearest(name, names), span=span, hint='on_unknown="empty" lets it mean nothing, as in Cypher'
            )
        self.warn(f"the graph has no {kind} {name!r}: {effect}")

    def label(self, name: str) -> bool:
        """Whether a concept or table of this name exists."""
        schema = self.schema
        if schema.has_concept(name) or schema.table_called(name) is not None:
            return True
        self._unknown("label", name, [*schema.concepts, *schema.tables], "no node has it")
        return False

    def relationship_type(self, name: str) -> bool:
        """Whether a relation of this name exists."""
        if self.schema.has_relation(name):
            return True
        self._unknown("relationship type", name, self.schema.relations, "no relationship has it")
        return False

    def property(self, of: ex.Expression, key: str, kind: str) -> ex.Expression:
        """Return the property of a node or relationship, or the entry of a map."""
        schema = self.schema
        if kind in (NODE, RELATIONSHIP, VALUE):
            known = schema.has_attribute(key) if kind == NODE else schema.has_qualifier(key) if kind == RELATIONSHIP else True
            if not known and kind == NODE and key in ("name", "id"):
                return ex.Call("name" if key == "name" else "elementid", (of,))
            if not known:
                described = "property" if kind == NODE else "property of relationships"
                self._spans.setdefault((described, key), self._spans.get(("property", key), (0, 0)))
                self._unknown(described, key, schema.attributes if kind == NODE else schema.qualifiers, "it is null")
            if self.has_several(key, kind):
                self._several_read[key] = None
        return ex.Property(of, key)

    def label_set(self, names: Sequence[str]) -> alg.Entities:
        """Return the entities with at least one of some known labels."""
        concepts = tuple(name for name in names if self.schema.has_concept(name))
        tables = [table for name in names if (table := self.schema.table_called(name)) is not None]
        rows = [alg.AllEntities((EntityKind.ROW,), source=table, own=True) for table in tables]
        return alg.union(*([alg.Members(alg.ByName(concepts))] if concepts else []), *rows)

    def having(self, key: str, operator: ex.ComparisonOperator, value: ex.Expression, rows: Rows) -> alg.Entities | None:
        """Return a set that contains every entity whose property compares so with a constant.

        The set may contain more, since the condition is tested again. Returns None if no set is cheap to find.
        """
        lowered = self.expression(value, rows)
        constant: Any = lowered.value if isinstance(lowered, ex.Constant) else None
        if not self.schema.has_attribute(key):
            if operator == "=" and isinstance(constant, str) and key in ("name", "id"):
                return alg.ByName((constant,)) if key == "name" else alg.ById((constant,))
            return None
        kinds = self.schema.attribute_kinds(key)
        test: alg.Compare | None = None
        if isinstance(constant, str) and operator == "=":
            test = alg.Compare("=", constant)
        elif type(constant) in (int, float, Decimal) and len(kinds) == 1 and operator != "<>":
            ((kind, unit),) = kinds
            if kind is Kind.QUANTITY and math.isfinite(constant):
                test = alg.Compare(operator, Quantity(constant, unit))
        if test is None:
            return None
        return alg.Reached(alg.Where(alg.Scan(None, (key,), anchor="subject", reach="subject", family="attribute"), test))

    # -- expressions -------------------------------------------------------------------------------

    def expression(self, e: ex.Expression, rows: Rows, local: Mapping[str, str] | None = None) -> ex.Expression:
        """Lower an expression over the rows; subqueries in it are joined to them."""
        return Expressions(self, rows, dict(local or {})).lowered(e)

    def kind_of(self, e: ex.Expression, rows: Rows) -> str:
        """Return what a lowered expression evaluates to, as far as known."""
        if isinstance(e, ex.Variable):
            return rows.types.get(e.name, VALUE)
        if isinstance(e, ex.Constant):
            return VALUE if e.value is None else SCALAR
        if isinstance(e, ex.Call):
            return {"startnode": NODE, "endnode": NODE, "path": PATH, "relationships": RELATIONSHIPS}.get(
                e.name, VALUE if e.name in ("coalesce", "head", "last", "nullif") else SCALAR
            )
        if isinstance(e, ex.Index | ex.Property | ex.Case | ex.Reduce | ex.ListComprehension | ex.Slice):
            return VALUE
        return SCALAR

    def has_several(self, key: str, kind: str) -> bool | None:
        """Whether a property has several values on some nodes; None if the graph does not tell."""
        scopes = [qualifier for qualifier in (False, True) if kind in (VALUE, RELATIONSHIP if qualifier else NODE)]
        answers = [self.schema.several_values(key, qualifier=qualifier) for qualifier in scopes]
        return True if True in answers else None if None in answers else False

    def _several_in(self, e: ex.Expression, rows: Rows) -> str | None:
        """Return the key if an expression is a property with several values on some nodes or relationships."""
        if isinstance(e, ex.Variable):
            return self._several.get(e.name)
        kind = self.kind_of(e.of, rows) if isinstance(e, ex.Property) else VALUE
        return e.key if isinstance(e, ex.Property) and kind != VALUE and self.has_several(e.key, kind) else None

    def listed(self, e: ex.Expression, rows: Rows, function: str = "") -> ex.Expression:
        """Return an expression for a place that needs a list.

        A property with several values on some nodes becomes a list everywhere, also where there is one
        value. For a `function` that also takes texts, a warning reports this, and values that may be
        such a property.
        """
        key = self._several_in(e, rows)
        if key is not None:
            if function:
                self.warn(f"{key!r} has several values in places: {function}() is of their list, also where there is one")
            return ex.Call("listed", (e,))
        if isinstance(e, ex.Property):
            several = self.has_several(e.key, self.kind_of(e.of, rows))
            if several and not function:
                return ex.Call("listed", (e,))
            keys = [] if several is False else [e.key]
        else:
            keys = list(self._several_read) if self.kind_of(e, rows) == VALUE else []
        if function and keys:
            named = " or ".join(map(repr, keys))
            self.warn(f"{function}() may be of {named}, where a list of one value is the value, a text for example")
        return e

    def may_be_null(self, e: ex.Expression, rows: Rows) -> bool:
        if isinstance(e, ex.Variable):
            return e.name in rows.nullable
        return not (isinstance(e, ex.Constant) and e.value is not None) and not isinstance(e, ex.ListOf | ex.MapOf | ex.IsNull)

    def extended(self, rows: Rows, e: ex.Expression, name: str = "") -> str:
        """Return the variable of an expression: its own, or a new one that the rows are extended by."""
        if isinstance(e, ex.Variable):
            return e.name
        variable = self.fresh(name)
        rows.plan = alg.solutions.Extend(rows.plan, variable, e)
        rows.types[variable] = self.kind_of(e, rows)
        if self.may_be_null(e, rows):
            rows.nullable.add(variable)
        if self.of_one_type(e):
            self._uniform.add(variable)
        if (key := self._several_in(e, rows)) is not None:
            self._several[variable] = key
        return variable

    def filtered(self, rows: Rows, where: ex.Expression | None) -> None:
        """Keep the rows for which a condition is true."""
        for condition in conjuncts(where):
            test = self.expression(condition, rows)
            self.check_truth(test, self.kind_of(test, rows))
            self.warn_of_words(test)
            rows.plan = alg.solutions.Filter(rows.plan, test)

    def warn_of_words(self, e: ex.Expression) -> None:
        """Warn of a property that is used as a truth value but is text such as 'True' in the graph."""
        if isinstance(e, ex.Property) and (word := self.schema.word_of(e.key)).casefold() in ("true", "false"):
            self.warn(f"{e.key!r} is a text such as {word!r}, which is not a truth value: toBoolean(n.{e.key}) makes one of it")

    @staticmethod
    def check_truth(test: ex.Expression, kind: str = "") -> None:
        """Refuse a condition that is never a truth value; `kind` is its kind (`kind_of`)."""
        wrong = (
            kind in (NODE, RELATIONSHIP, RELATIONSHIPS, PATH)
            or isinstance(test, ex.ListOf | ex.MapOf | ex.Arithmetic | ex.Negative)
            or (isinstance(test, ex.Constant) and test.value is not None and not isinstance(test.value, bool))
        )
        if wrong:
            raise PlanError("a condition is a truth value, which this is not", hint="compare it with something")

    def whole(self, e: ex.Expression, what: str) -> int:
        """Return the number of `SKIP` or `LIMIT`."""
        if not _constant(e):
            raise PlanError(f"{what} takes a number that does not depend on rows")
        value = Compiler({}, None)(self.expression(e, Rows(START)))([])  # type: ignore[arg-type]
        if type(value) is not int or value < 0:
            raise PlanError(
                f"{what} takes a whole number from 0, not {value if isinstance(value, int | float) else type_name(value)}"
            )
        return value

    # -- queries -----------------------------------------------------------------------------------

    def query(self, query: tree.Query, start: Rows | None) -> tuple[Rows, list[str]]:
        """Return the rows of a query and the names of its columns; a subquery begins with the rows of `start`."""
        branches = [self.single(part, start) for part in query.parts]
        first, columns = branches[0]
        if len(branches) == 1:
            return first, columns
        for _, names in branches[1:]:
            if sorted(names) != sorted(columns):
                raise PlanError(
                    f"the parts of UNION have different columns: {', '.join(columns)}; {', '.join(names)}",
                    hint="give them the same names with AS",
                )
        carried = () if start is None else start.carried
        projections = [
            alg.solutions.Project(rows.plan, (*((name, rows.scope[name]) for name in columns), *((key, key) for key in carried)))
            for rows, _ in branches
        ]
        plan: alg.Solutions = alg.solutions.UnionAll(tuple(projections))
        if not query.every:
            plan = alg.solutions.DistinctRows(plan)
        self.steps.append(("UNION ALL" if query.every else "UNION", plan))
        types = {name: first.types.get(first.scope[name], VALUE) for name in columns}
        for rows, _ in branches[1:]:
            types = {name: kind if rows.types.get(rows.scope[name]) == kind else VALUE for name, kind in types.items()}
        return Rows(
            plan, {name: name for name in columns}, types, set(columns), carried, None if start is None else start.seed
        ), columns

    def single(self, single: tree.Single, start: Rows | None) -> tuple[Rows, list[str]]:
        """Return the rows of a chain of clauses and the names of their columns."""
        rows = Rows(START) if start is None else start.copy()
        columns: list[str] = []
        for clause in single.clauses:
            if isinstance(clause, tree.Match):
                rows = self.match(clause, rows)
                self.steps.append(("OPTIONAL MATCH" if clause.optional else "MATCH", rows.plan))
            elif isinstance(clause, tree.Unwind):
                rows = self.unwind(clause, rows)
                self.steps.append(("UNWIND", rows.plan))
            elif isinstance(clause, tree.Call):
                rows = self.call(clause, rows)
                self.steps.append(("CALL", rows.plan))
            elif isinstance(clause, tree.Procedure):
                rows, columns = self.procedure(clause, rows)
                self.steps.append((f"CALL {clause.name}", rows.plan))
            else:
                rows, columns = self.projection(clause, rows)
                if not clause.final:
                    self.steps.append(("WITH", rows.plan))
        return rows, columns

    def unwind(self, clause: tree.Unwind, rows: Rows) -> Rows:
        """Return the rows with one for each item of a list."""
        rows = rows.copy()
        items = self.expression(clause.items, rows)
        if clause.variable in rows.scope:
            raise PlanError(f"the variable {clause.variable!r} already exists", span=(clause.position, clause.position + 6))
        variable = clause.variable if clause.variable not in rows.plan.variables else self.fresh(clause.variable)
        rows.plan = alg.solutions.Unwind(rows.plan, variable, items)
        rows.scope[clause.variable] = variable
        rows.types[variable] = RELATIONSHIP if self.kind_of(items, rows) == RELATIONSHIPS else VALUE
        rows.nullable.add(variable)
        return rows

    def procedure(self, clause: tree.Procedure, rows: Rows) -> tuple[Rows, list[str]]:
        """Join the rows with those of a procedure; returns them and the procedure's columns."""
        known = procedure(clause, self.schema, self._procedures)
        arguments = [self.expression(argument, rows) for argument in clause.arguments]
        for argument in arguments:
            if not isinstance(argument, ex.Constant):
                raise PlanError("the arguments of a procedure are constants or parameters", span=(clause.position, clause.end))
        result_rows = known.rows(*(argument.value for argument in arguments if isinstance(argument, ex.Constant)))
        records: list[Any] = [dict(zip(known.columns, row, strict=True)) for row in result_rows]
        name, item = self.fresh(), self.fresh()
        self.parameters[name] = records or ([None] if clause.optional else [])
        rows = self.unwind(tree.Unwind(tree.Parameter(name), item, clause.position), rows)
        yielded = clause.columns
        if yielded is None or yielded.star:
            yielded = tree.Projection((), position=clause.position) if yielded is None else yielded
            yielded = replace(
                yielded, items=tuple(tree.Item(ex.Variable(column), column, True) for column in known.columns), star=False
            )
        items = []
        for column in yielded.items:
            assert isinstance(column.value, ex.Variable)
            if column.value.name not in known.columns:
                raise PlanError(
                    f"the procedure {clause.name!r} has no column {column.value.name!r}",
                    candidates=nearest(column.value.name, known.columns),
                    span=(clause.position, clause.end),
                )
            if column.name in rows.scope:
                raise PlanError(f"the variable {column.name!r} already exists", span=(clause.position, clause.end))
            items.append(replace(column, value=ex.Property(ex.Variable(item), column.value.name), named=True))
        before = bool([column for column in rows.scope if column[0] != " "])
        if before and (yielded.order or yielded.skip or yielded.limit):
            raise PlanError("ORDER BY, SKIP and LIMIT after YIELD", span=(clause.position, clause.end), hint="put them into a WITH")
        rows, _ = self.projection(replace(yielded, items=tuple(items), star=before), rows)
        return rows, [column.name for column in items]

    # -- subqueries --------------------------------------------------------------------------------

    def seeded(self, rows: Rows, names: Sequence[str]) -> tuple[Rows, tuple[str, ...]]:
        """Return the distinct rows of some names, with which a subquery begins.

        Also returns the variables by which the subquery's rows are joined to `rows` again.
        """
        names = [name for name in names if name in rows.scope]
        variables = list(dict.fromkeys(rows.scope[name] for name in names))
        if not variables:
            return Rows(START), ()
        key: tuple[str, ...] = tuple(variables)
        if rows.nullable.intersection(variables):
            # A null would join with everything, so one list of all the values is the key.
            marker = self.fresh()
            rows.plan = alg.solutions.Extend(rows.plan, marker, ex.ListOf(tuple(ex.Variable(name) for name in variables)))
            rows.types[marker] = SCALAR
            key = (marker,)
        plan = alg.solutions.DistinctRows(
            alg.solutions.Project(rows.plan, tuple((name, name) for name in dict.fromkeys([*variables, *key])))
        )
        scope = {name: rows.scope[name] for name in names}
        types = {name: rows.types.get(name, VALUE) for name in variables}
        seed = plan
        if len(key) != len(variables) or set(key) != set(variables):
            seed = alg.solutions.DistinctRows(alg.solutions.Project(plan, tuple((name, name) for name in key)))
        return Rows(plan, scope, types, rows.nullable.intersection(variables), key, seed), key

    def free(self, query: tree.Query) -> list[str]:
        """Return the names that a subquery may take from outside: all that it mentions."""
        names: dict[str, None] = {}
        mentioned_in(query, names)
        return list(names)

    def subquery(self, query: tree.Query, rows: Rows, outer: Sequence[str]) -> tuple[Rows, list[str], tuple[str, ...]]:
        """Return the rows of a subquery, its columns, and the variables by which it is joined."""
        start, key = self.seeded(rows, outer)
        steps, self.steps = self.steps, []
        try:
            inner, columns = self.query(query, start)
        finally:
            self.steps = steps
        return inner, columns, key

    def exists(self, query: tree.Query, rows: Rows, outer: Sequence[str]) -> ex.Expression:
        """Join a subquery and return a variable: whether it has rows."""
        inner, _, key = self.subquery(query, rows, outer)
        mark = self.fresh()
        right = alg.solutions.Project(inner.plan, tuple((name, name) for name in key))
        rows.plan = alg.solutions.MarkJoin(rows.plan, right, mark)
        rows.types[mark] = SCALAR
        return ex.Variable(mark)

    def count(self, query: tree.Query, rows: Rows, outer: Sequence[str]) -> ex.Expression:
        """Join a subquery and return the number of its rows."""
        inner, _, key = self.subquery(query, rows, outer)
        name = self.fresh()
        grouped = alg.solutions.GroupRows(inner.plan, key, (alg.solutions.RowAggregate(name, "count"),))
        rows.plan = alg.solutions.LeftJoin(rows.plan, grouped)
        return ex.Call("coalesce", (ex.Variable(name), ex.Constant(0)))

    def collect(self, query: tree.Query, rows: Rows, outer: Sequence[str]) -> ex.Expression:
        """Join a subquery and return the list of its only column's values."""
        inner, columns, key = self.subquery(query, rows, outer)
        boxed, name, item = self.fresh(), self.fresh(), self.fresh()
        # Each value is wrapped in a list, since groups leave null out.
        plan = alg.solutions.Extend(inner.plan, boxed, ex.ListOf((ex.Variable(inner.scope[columns[0]]),)))
        grouped = alg.solutions.GroupRows(plan, key, (alg.solutions.RowAggregate(name, "list", boxed),))
        rows.plan = alg.solutions.LeftJoin(rows.plan, grouped)
        items = ex.Call("coalesce", (ex.Variable(name), ex.ListOf(())))
        return ex.ListComprehension(item, items, None, ex.Index(ex.Variable(item), ex.Constant(0)))

    def call(self, clause: tree.Call, rows: Rows) -> Rows:
        """Return the rows joined with those of a `CALL { }`."""
        rows = rows.copy()
        imports, query = clause.imports, clause.query
        if imports is None:
            imports = self.importing(query, rows)
        elif imports == ("*",):
            imports = tuple(rows.scope)
        for name in imports:
            if name not in rows.scope:
                raise self.undefined(name, rows)
        for part in query.parts:
            last = part.clauses[-1]
            if not isinstance(last, tree.Projection) or not last.final:
                raise PlanError("CALL { } needs a RETURN at its end", span=(clause.position, clause.position + 4))
        inner, columns, key = self.subquery(query, rows, imports)
        for name in columns:
            if name in rows.scope:
                raise PlanError(f"the variable {name!r} already exists", hint="give the column of CALL { } another name with AS")
        names = {name: self.fresh(name) for name in columns}
        right = alg.solutions.Project(
            inner.plan, (*((name, name) for name in key), *((names[name], inner.scope[name]) for name in columns))
        )
        rows.plan = alg.solutions.LeftJoin(rows.plan, right) if clause.optional else alg.solutions.Join(rows.plan, right)
        for name, variable in names.items():
            rows.scope[name] = variable
            rows.types[variable] = inner.types.get(inner.scope[name], VALUE)
            if clause.optional or inner.scope[name] in inner.nullable:
                rows.nullable.add(variable)
        return rows

    def importing(self, query: tree.Query, rows: Rows) -> tuple[str, ...]:
        """Return the names that a subquery imports by a leading `WITH`."""
        names: dict[str, None] = {}
        for part in query.parts:
            first = part.clauses[0]
            if (
                isinstance(first, tree.Projection)
                and not first.final
                and all(
                    isinstance(item.value, ex.Variable) and not (item.named and item.value.name != item.name)
                    for item in first.items
                )
                and not (first.distinct or first.order or first.skip or first.limit)
            ):
                names.update(dict.fromkeys(rows.scope if first.star else ()))
                names.update(dict.fromkeys(item.name for item in first.items))
        return tuple(names)

    def undefined(self, name: str, rows: Rows) -> PlanError:
        """Return the error for an undefined variable."""
        return PlanError(
            f"the variable {name!r} is not defined here",
            candidates=nearest(name, [known for known in rows.scope if known[0] != " "]),
        )

    # -- MATCH -------------------------------------------------------------------------------------

    def match(self, clause: tree.Match, rows: Rows) -> Rows:
        """Return the rows that match; `OPTIONAL MATCH` is joined with the earlier rows."""
        if not clause.optional:
            return Matching(self, clause, rows.copy()).rows()
        rows = rows.copy()
        outer_scope = dict(rows.scope)
        mentioned: dict[str, None] = {}
        mentioned_in(clause, mentioned)
        outer = [name for name in mentioned if name in outer_scope]
        start, key = self.seeded(rows, outer)
        inner = Matching(self, clause, start).rows()
        new = [name for name in inner.scope if name not in outer_scope]
        names = {name: inner.scope[name] for name in new}
        right = alg.solutions.Project(
            inner.plan, (*((name, name) for name in key), *((variable, variable) for variable in dict.fromkeys(names.values())))
        )
        rows.plan = alg.solutions.LeftJoin(rows.plan, right)
        for name, variable in names.items():
            rows.scope[name] = variable
            rows.types[variable] = inner.types.get(variable, VALUE)
            rows.nullable.add(variable)
        return rows

    # -- WITH and RETURN ---------------------------------------------------------------------------

    def projection(self, clause: tree.Projection, rows: Rows) -> tuple[Rows, list[str]]:
        """Lower `WITH` or `RETURN`; returns the rows and the names of their columns."""
        rows = rows.copy()
        items = list(clause.items)
        if clause.star:
            visible = sorted(name for name in rows.scope if name[0] != " ")
            if not visible and not items:
                raise PlanError(
                    f"{'RETURN' if clause.final else 'WITH'} * has no variables to take",
                    span=(clause.position, clause.position + 4),
                )
            items = [tree.Item(ex.Variable(name), name, True) for name in visible] + items
        seen: set[str] = set()
        for item in items:
            if item.name in seen:
                raise PlanError(
                    f"two columns are called {item.name!r}",
                    hint="give one another name with AS",
                    span=(item.position, item.position + 1),
                )
            seen.add(item.name)
            if not clause.final and not item.named and not isinstance(item.value, ex.Variable):
                raise PlanError(
                    f"{item.name!r} in WITH needs a name", hint="give it one with AS", span=(item.position, item.position + 1)
                )
            if isinstance(item.value, tree.PatternTest):
                raise PlanError(
                    "a pattern is not a column", hint="EXISTS { (n)-->() } tells whether it matches, COUNT { } how often"
                )
            for part in ex.walk(item.value):
                inner = [getattr(part, name, None) for name in ("where", "result")] if part.bound() else []
                if any(one is not None and _aggregated(one) for one in inner):
                    raise PlanError("an aggregate within a list expression", hint="compute it in a WITH before")
        columns = [item.name for item in items]
        grouped = any(_aggregated(item.value) for item in items)
        computed = {part for item in items for part in ex.walk(item.value) if isinstance(part, tree.Aggregate)}
        if any(
            isinstance(part, tree.Aggregate) and part not in computed for order in clause.order for part in ex.walk(order.value)
        ):
            raise PlanError(
                "ORDER BY has an aggregate, which the columns do not have", hint="group in WITH or RETURN, and order by its name"
            )
        order = list(clause.order)
        if grouped:
            rows, order_values = self.grouped(items, [one.value for one in order], rows)
            visible_scope = dict(rows.scope)
        else:
            names: dict[str, str] = {}
            for item in items:
                value = self.expression(item.value, rows)
                names[item.name] = self.extended(rows, value, item.name)
            visible_scope = names
            order_values = [one.value for one in order]
            if clause.distinct:
                order_values = [self.of_items(value, items) for value in order_values]
                rows = self.projected(rows, names)
                rows.plan = alg.solutions.DistinctRows(rows.plan)
            else:
                rows.scope = rows.scope | names
        if grouped and clause.distinct:
            rows = self.projected(rows, {name: rows.scope[name] for name in columns})
            rows.plan = alg.solutions.DistinctRows(rows.plan)
        if order:
            keys = []
            for one, value in zip(order, order_values, strict=True):
                keys.append(self.order_key(value, rows, one.descending))
            rows.plan = alg.solutions.OrderRows(rows.plan, tuple(keys))
        skip = 0 if clause.skip is None else self.whole(clause.skip, "SKIP")
        limit = None if clause.limit is None else self.whole(clause.limit, "LIMIT")
        if skip or limit is not None:
            rows = self.sliced(rows, skip, limit)
        where = clause.where
        if where is not None and (grouped or clause.distinct):
            where = self.of_items(where, [item for item in items if not isinstance(item.value, ex.Variable)])
        self.filtered(rows, where)
        return self.projected(rows, {name: visible_scope[name] for name in columns}), columns

    def projected(self, rows: Rows, names: Mapping[str, str]) -> Rows:
        """Return the rows with the named variables only."""
        variables = dict.fromkeys([*names.values(), *rows.carried])
        plan = alg.solutions.Project(rows.plan, tuple((name, name) for name in variables))
        return Rows(
            plan,
            dict(names),
            {v: rows.types.get(v, VALUE) for v in variables},
            rows.nullable.intersection(variables),
            rows.carried,
            rows.seed,
        )

    def sliced(self, rows: Rows, skip: int, limit: int | None) -> Rows:
        """Apply SKIP and LIMIT; in a subquery for each outer row separately."""
        if not rows.carried:
            rows.plan = alg.solutions.SliceRows(rows.plan, skip, limit)
            return rows
        # Collect the rows of each outer row in a list, and slice that.
        variables = [name for name in dict.fromkeys(rows.scope.values()) if name not in rows.carried]
        boxed, listed, item = self.fresh(), self.fresh(), self.fresh()
        plan: alg.Solutions = alg.solutions.Extend(rows.plan, boxed, ex.ListOf(tuple(ex.Variable(name) for name in variables)))
        plan = alg.solutions.GroupRows(plan, rows.carried, (alg.solutions.RowAggregate(listed, "list", boxed),))
        stop = None if limit is None else ex.Constant(skip + limit)
        plan = alg.solutions.Unwind(plan, item, ex.Slice(ex.Variable(listed), ex.Constant(skip), stop))
        renamed = {name: self.fresh(name) for name in variables}
        for at, name in enumerate(variables):
            plan = alg.solutions.Extend(plan, renamed[name], ex.Index(ex.Variable(item), ex.Constant(at)))
        pairs = (*((name, name) for name in rows.carried), *((name, renamed[name]) for name in variables))
        plan = alg.solutions.Project(plan, pairs)
        return replace(rows, plan=plan)

    def order_key(self, value: ex.Expression, rows: Rows, descending: bool) -> alg.solutions.RowOrder:
        """Return a key of `ORDER BY`, as a variable of the rows."""
        key = self.expression(value, rows)
        if not self.of_one_type(key):
            key = ex.Call("orderkey", (key,))
        return alg.solutions.RowOrder(self.extended(rows, key), descending, first=descending)

    def of_one_type(self, e: ex.Expression) -> bool:
        """Whether all values of an expression are numbers, or all texts, so that they sort without `orderkey`."""
        if isinstance(e, ex.Variable):
            return e.name in self._uniform
        if isinstance(e, ex.Property):
            kinds = self.schema.attribute_kinds(e.key)
            return len(kinds) == 1 and next(iter(kinds)) in ((Kind.QUANTITY, NO_UNIT), (Kind.TIME, NO_UNIT))
        if isinstance(e, ex.Call) and e.name == "coalesce" and isinstance(e.arguments[0], ex.Variable):
            # A count.
            return e.arguments[0].name in self._uniform and e.arguments[1:] == (ex.Constant(0),)
        return isinstance(e, ex.Call) and e.name in ("tointeger", "tofloat", "size", "id", "tolower", "toupper", "name", "tostring")

    def of_items(self, value: ex.Expression, items: Sequence[tree.Item]) -> ex.Expression:
        """Return an expression in terms of the columns: parts that equal a column become its name."""
        known = {item.name for item in items}

        def named(part: ex.Expression) -> ex.Expression | None:
            if (
                isinstance(part, ex.Variable)
                and part.name in known
                and not any(item.value == part and item.name != part.name for item in items)
            ):
                return part
            for item in items:
                if item.value == part:
                    return ex.Variable(item.name)
            return None

        return ex.rebuilt(value, named)

    def grouped(self, items: Sequence[tree.Item], order: Sequence[ex.Expression], rows: Rows) -> tuple[Rows, list[ex.Expression]]:
        """Group by the items without aggregates.

        Returns the groups, and the keys of ORDER BY in terms of their columns.
        """
        keys = [item for item in items if not _aggregated(item.value)]
        key_names: dict[str, str] = {}
        for item in keys:
            key_names[item.name] = self.extended(rows, self.expression(item.value, rows), item.name)
        aggregates: dict[tree.Aggregate, ex.Expression] = {}
        row_aggregates: list[alg.solutions.RowAggregate] = []
        hidden: dict[str, str] = {}

        def aggregate(part: tree.Aggregate) -> ex.Expression:
            if part not in aggregates:
                aggregates[part] = self.aggregate(part, rows, row_aggregates)
            name = self.fresh()
            hidden[name] = name
            results[name] = aggregates[part]
            return ex.Variable(name)

        results: dict[str, ex.Expression] = {}

        def replaced(value: ex.Expression) -> ex.Expression:
            def rewritten(part: ex.Expression) -> ex.Expression | None:
                if isinstance(part, tree.Aggregate):
                    return aggregate(part)
                for item in keys:
                    # Larger expressions are ambiguous: Cypher allows variables and their properties.
                    if item.value == part and isinstance(part, ex.Variable | ex.Property):
                        return ex.Variable(item.name)
                return None

            return ex.rebuilt(value, rewritten)

        values = {item.name: replaced(item.value) for item in items if _aggregated(item.value)}
        item_names = {item.name for item in items}
        ordered: list[ex.Expression] = []
        for value in order:
            column = next((item.name for item in items if item.value == value), None)
            if column is not None:
                ordered.append(ex.Variable(column))
            elif isinstance(value, ex.Variable) and value.name in item_names:
                ordered.append(value)
            else:
                ordered.append(replaced(self.of_items(value, [item for item in items if _aggregated(item.value)])))
        plan: alg.Solutions = alg.solutions.GroupRows(
            rows.plan, tuple(dict.fromkeys([*key_names.values(), *rows.carried])), tuple(row_aggregates)
        )
        if rows.carried and not keys and rows.seed is not None:
            # A subquery that aggregates without keys has a row for each outer row, even an empty group.
            plan = alg.solutions.LeftJoin(rows.seed, plan)
        after = Rows(
            plan, dict(key_names), {v: rows.types.get(v, VALUE) for v in key_names.values()},
            rows.nullable.intersection(key_names.values()), rows.carried, rows.seed,
        )  # fmt: skip
        for name, result in results.items():
            after.scope[name] = self.extended(after, result)
        new: dict[str, str] = {}
        for name, value in values.items():
            try:
                new[name] = self.extended(after, self.expression(value, after), name)
            except PlanError as error:
                raise self._ungrouped(error, rows) from None
        after.scope.update(new)
        return after, ordered

    @staticmethod
    def _ungrouped(error: PlanError, rows: Rows) -> PlanError:
        """Explain the error for a variable next to an aggregate that is not a grouping key."""
        if not error.message.startswith("the variable"):
            return error
        return PlanError(
            f"{error.message}: next to an aggregate only what the rows are grouped by can be used",
            hint="make it a column of its own, or compute it in a WITH before",
        )

    def aggregate(self, part: tree.Aggregate, rows: Rows, made: list[alg.solutions.RowAggregate]) -> ex.Expression:
        """Add an aggregate to those of the group, and return the expression computed from it."""
        for value in (part.of, part.argument):
            if value is not None and _aggregated(value):
                raise PlanError(f"{part.function}() is an aggregate of an aggregate", hint="compute the inner one in a WITH before")
        name = self.fresh()
        if part.of is not None and any(
            isinstance(call, ex.Call) and call.name in ("rand", "randomuuid") for call in ex.walk(part.of)
        ):
            raise PlanError(f"{part.function}() of a random value means nothing", hint="compute it in a WITH before")
        if part.of is None:
            made.append(alg.solutions.RowAggregate(name, "count"))
            self._uniform.add(name)
            return ex.Call("coalesce", (ex.Variable(name), ex.Constant(0)))
        of = self.extended(rows, self.expression(part.of, rows))
        if part.function == "count":
            made.append(alg.solutions.RowAggregate(name, "count", of, part.distinct))
            self._uniform.add(name)
            return ex.Call("coalesce", (ex.Variable(name), ex.Constant(0)))
        made.append(alg.solutions.RowAggregate(name, "list", of, part.distinct))
        values = ex.Call("coalesce", (ex.Variable(name), ex.ListOf(())))
        if part.function == "collect":
            return values
        if part.argument is None:
            return ex.Call(f"group_{part.function}", (values,))
        if not _constant(part.argument):
            raise PlanError(f"the second argument of {part.function}() does not depend on rows")
        return ex.Call(f"group_{part.function}", (values, self.expression(part.argument, rows)))
