"""Lowers the expressions of Cypher queries to those of the algebra (`algebra.expressions`).

Names become variables of the plan, and parameters constants. Patterns and subqueries are handed to
the lowering of the enclosing query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

from condgraph.engine import temporal
from condgraph.engine.algebra import Entities, Solutions, solutions
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import OptionError, PlanError, UnsupportedError, nearest
from condgraph.engine.execute.points import point, refused
from condgraph.engine.execute.terms import type_name
from condgraph.engine.store import KnownSchema
from condgraph.engine.values import NO_UNIT, WGS84, Kind, Point, Quantity, Time
from condgraph.languages.cypher import tree

# -- the scope of names ------------------------------------------------------------------------------
# The rows of a query during lowering: the plan's variable for each name, and what it holds.


#: Kinds of variables; "value" is one that the text does not determine.
NODE, RELATIONSHIP, PATH, RELATIONSHIPS, VALUE, SCALAR = "node", "relationship", "path", "relationships", "value", "scalar"
START: Final = solutions.Pattern(())


@dataclass(slots=True)
class Rows:
    """A plan, and a description of its rows.

    `scope` has the plan's variable for each name of the query, `types` the kind of each variable, and
    `nullable` those that may be null. `carried` are the variables by which the rows of a subquery
    belong to outer rows; `seed` has each of these once.
    """

    plan: Solutions
    scope: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    nullable: set[str] = field(default_factory=set)
    carried: tuple[str, ...] = ()
    seed: Solutions | None = None

    def copy(self) -> Rows:
        """Copy the names and types, over the same plan."""
        return replace(self, scope=dict(self.scope), types=dict(self.types), nullable=set(self.nullable))


def conjuncts(expression: ex.Expression | None) -> list[ex.Expression]:
    """Return the conditions that an `AND` joins; an empty list for None."""
    if expression is None:
        return []
    if isinstance(expression, ex.And):
        return [part for operand in expression.operands for part in conjuncts(operand)]
    return [expression]


def all_of(conditions: Sequence[ex.Expression]) -> ex.Expression:
    """Join one or more conditions by `AND`."""
    return conditions[0] if len(conditions) == 1 else ex.And(tuple(conditions))


def mentioned_in(node: Any, found: dict[str, None]) -> None:
    """Add the names of variables in a part of a tree to `found`, in order."""
    for item in tree.within(node):
        if isinstance(item, ex.Variable):
            found[item.name] = None
        elif isinstance(item, tree.NodePattern | tree.RelationshipPattern | tree.PathPattern):
            if item.variable is not None:
                found[item.variable] = None
        elif isinstance(item, tree.Projection) and item.star:
            # A star takes every variable in scope.
            found[" *"] = None


class Naming(Protocol):
    """What patterns need from the enclosing query."""

    schema: KnownSchema

    def fresh(self, name: str = "") -> str: ...

    def label(self, name: str) -> bool: ...

    def relationship_type(self, name: str) -> bool: ...

    def label_set(self, names: Sequence[str]) -> Entities: ...

    def having(self, key: str, operator: ex.ComparisonOperator, value: ex.Expression, rows: Rows) -> Entities | None: ...

    def filtered(self, rows: Rows, where: ex.Expression | None) -> None: ...


# -- expressions -------------------------------------------------------------------------------------


class Lowering(Naming, Protocol):
    """What expressions need from the enclosing query; `lower.Lowering` describes each method."""

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    def undefined(self, name: str, rows: Rows) -> PlanError: ...

    def kind_of(self, e: ex.Expression, rows: Rows) -> str: ...

    def property(self, of: ex.Expression, key: str, kind: str) -> ex.Expression: ...

    def listed(self, e: ex.Expression, rows: Rows, function: str = "") -> ex.Expression: ...

    def check_truth(self, test: ex.Expression, kind: str = "") -> None: ...

    def warn_of_words(self, e: ex.Expression) -> None: ...

    def exists(self, query: tree.Query, rows: Rows, outer: Sequence[str]) -> ex.Expression: ...

    def count(self, query: tree.Query, rows: Rows, outer: Sequence[str]) -> ex.Expression: ...

    def collect(self, query: tree.Query, rows: Rows, outer: Sequence[str]) -> ex.Expression: ...


class Expressions:
    """Lowers one expression; `local` maps the variables that the expression binds itself."""

    def __init__(self, lowering: Lowering, rows: Rows, local: dict[str, str]) -> None:
        self._lowering, self._rows, self._local = lowering, rows, local

    def lowered(self, e: ex.Expression) -> ex.Expression:
        """Return the expression over variables of the plan."""
        return ex.rebuilt(e, self._handled)

    def _handled(self, e: ex.Expression) -> ex.Expression | None:
        handler: Callable[[Any, Any], ex.Expression | None] | None = _HANDLERS.get(type(e))
        return None if handler is None else handler(self, e)

    def _nested(self, *names: str) -> tuple[Expressions, list[str]]:
        fresh_names = [self._lowering.fresh(name) for name in names]
        return Expressions(self._lowering, self._rows, self._local | dict(zip(names, fresh_names, strict=True))), fresh_names

    def _variable(self, e: ex.Variable) -> ex.Expression:
        local = self._local.get(e.name)
        if local is not None:
            return ex.Variable(local)
        variable = self._rows.scope.get(e.name)
        if variable is None:
            raise self._lowering.undefined(e.name, self._rows)
        return ex.Variable(variable)

    def _parameter(self, e: tree.Parameter) -> ex.Expression:
        parameters = self._lowering.parameters
        if e.name not in parameters:
            raise OptionError(
                f"the parameter ${e.name} is not given",
                candidates=nearest(e.name, parameters),
                hint=f'parameters={{"{e.name}": ...}}',
            )
        return ex.Constant(_value(parameters[e.name], e.name))

    def _kind(self, e: ex.Expression) -> str:
        return self._lowering.kind_of(e, self._rows)

    def _property(self, e: ex.Property) -> ex.Expression:
        of = self.lowered(e.of)
        kind = self._kind(of)
        if kind in (PATH, RELATIONSHIPS) or (isinstance(of, ex.Constant | ex.ListOf) and not _may_have_parts(of)):
            raise PlanError(f"a {'list' if kind == RELATIONSHIPS or isinstance(of, ex.ListOf) else kind} has no property {e.key!r}")
        return self._lowering.property(of, e.key, kind)

    def _truths(self, e: Any) -> ex.Expression:
        """Lower an operator over truth values."""
        parts = tuple(self.lowered(part) for part in e.parts())
        for part in parts:
            self._lowering.check_truth(part, self._kind(part))
            self._lowering.warn_of_words(part)
        if isinstance(e, ex.Not):
            return ex.Not(parts[0])
        return ex.Xor(*parts) if isinstance(e, ex.Xor) else type(e)(parts)

    def _case(self, e: ex.Case) -> None:
        for condition, _ in e.branches if e.operand is None else ():
            self._lowering.warn_of_words(condition)

    def _has_concept(self, e: ex.HasConcept) -> ex.Expression:
        of = self.lowered(e.of)
        kind = self._kind(of)
        if kind == RELATIONSHIP:
            names = [name for name in e.names if self._lowering.relationship_type(name)]
        else:
            if kind not in (NODE, VALUE):
                raise PlanError(f"labels are not defined for a {kind}")
            names = [name for name in e.names if self._lowering.label(name)]
        return ex.HasConcept(of, tuple(names))

    def _comparison(self, e: ex.Comparison) -> ex.Expression:
        left, right = self.lowered(e.left), self.lowered(e.right)
        for operand, other in ((left, right), (right, left)):
            if isinstance(other, ex.Constant) and isinstance(other.value, bool):
                self._lowering.warn_of_words(operand)
        return ex.Comparison(e.operator, self._with_unit(left, right), self._with_unit(right, left))

    def _in(self, e: ex.In) -> ex.Expression:
        item, items = self.lowered(e.item), self._listed(e.items)
        if isinstance(items, ex.Constant) and items.value is not None and not isinstance(items.value, list):
            raise PlanError(f"IN takes a list, not {type_name(items.value)}")
        if isinstance(items, ex.ListOf):
            items = ex.ListOf(tuple(self._with_unit(element, item) for element in items.items))
        return ex.In(item, items)

    def _with_unit(self, value: ex.Expression, other: ex.Expression) -> ex.Expression:
        """Give a number the unit of the attribute that it is compared with; raises if there are several."""
        if (
            not isinstance(value, ex.Constant)
            or type(value.value) not in (int, float, Decimal)
            or not isinstance(other, ex.Property)
        ):
            return value
        schema = self._lowering.schema
        kinds = schema.attribute_kinds(other.key) or schema.qualifier_kinds(other.key)
        units = {unit for kind, unit in kinds if kind is Kind.QUANTITY}
        if not units or NO_UNIT in units:
            return value
        if len(units) > 1:
            raise PlanError(
                f"{other.key} has several units ({', '.join(sorted(units))}): {value.value} is not clear",
                hint=f"name the unit: quantity('{value.value} {sorted(units)[0]}')",
            )
        return ex.Constant(Quantity(value.value, units.pop()))

    def _all_properties(self, e: tree.AllProperties) -> ex.Expression:
        return ex.Call("properties", (self.lowered(e.of),))

    def _listed(self, e: ex.Expression) -> ex.Expression:
        return self._lowering.listed(self.lowered(e), self._rows)

    def _index(self, e: ex.Index) -> ex.Expression:
        return ex.Index(self._listed(e.of), self.lowered(e.index), e.period)

    def _slice(self, e: ex.Slice) -> ex.Expression:
        start, stop = (None if bound is None else self.lowered(bound) for bound in (e.start, e.stop))
        return ex.Slice(self._listed(e.of), start, stop)

    def _comprehension(self, e: ex.ListComprehension) -> ex.Expression:
        items = self._listed(e.items)
        inside, (name,) = self._nested(e.variable)
        self._typed(name, items)
        where = None if e.where is None else inside.lowered(e.where)
        return ex.ListComprehension(name, items, where, None if e.result is None else inside.lowered(e.result))

    def _typed(self, name: str, items: ex.Expression) -> None:
        """Record the kind of a list's items."""
        if isinstance(items, ex.Call) and items.name in ("nodes", "relationships"):
            self._rows.types[name] = NODE if items.name == "nodes" else RELATIONSHIP
        elif self._kind(items) == RELATIONSHIPS:
            self._rows.types[name] = RELATIONSHIP

    def _quantified(self, e: ex.Quantified) -> ex.Expression:
        items = self._listed(e.items)
        inside, (name,) = self._nested(e.variable)
        self._typed(name, items)
        where = inside.lowered(e.where)
        return ex.Quantified(e.quantifier, name, items, where)

    def _reduce(self, e: ex.Reduce) -> ex.Expression:
        initial, items = self.lowered(e.initial), self._listed(e.items)
        inside, (accumulator, name) = self._nested(e.accumulator, e.variable)
        self._typed(name, items)
        return ex.Reduce(accumulator, initial, name, items, inside.lowered(e.result))

    def _call(self, e: ex.Call) -> ex.Expression:
        if any(isinstance(argument, tree.PatternTest) for argument in e.arguments):
            raise PlanError(f"{e.name}() of a pattern", hint="COUNT { (n)-->() } counts its matches")
        arguments = tuple(self.lowered(argument) for argument in e.arguments)
        if arguments:
            kind = self._kind(arguments[0])
            kinds = _ACCEPTED.get(e.name)
            if kinds is not None and kind not in (VALUE, *kinds) and not _is_null(arguments[0]):
                raise PlanError(f"{e.name}() is not defined for a {kind}")
            if e.name == "relationships" and kind == PATH and isinstance(arguments[0], ex.Variable):
                return ex.Call(e.name, arguments)
            if e.name in _OF_LISTS:
                function = _OF_LISTS[e.name]
                arguments = (self._lowering.listed(arguments[0], self._rows, function), *arguments[1:])
        return ex.Call(e.name, arguments)

    def _aggregate(self, e: tree.Aggregate) -> ex.Expression:
        raise PlanError(
            f"{e.function}() is an aggregate, which is only allowed in WITH and RETURN", hint="compute it in a WITH before"
        )

    def _outer(self, node: Any) -> list[str]:
        """Return the names that a subquery takes from the rows.

        Raises `UnsupportedError` for a name that a list expression binds.
        """
        mentioned: dict[str, None] = {}
        mentioned_in(node, mentioned)
        for name in mentioned:
            if name in self._local:
                raise UnsupportedError(
                    "a query within a list expression", [f"a pattern or subquery about {name!r}, which the list binds"],
                    hint="UNWIND the list, and put the pattern after it",
                )  # fmt: skip
        return list(self._rows.scope) if " *" in mentioned else [name for name in mentioned if name in self._rows.scope]

    def _pattern_test(self, e: tree.PatternTest) -> ex.Expression:
        names = [*(node.variable for node in e.pattern.nodes), *(relationship.variable for relationship in e.pattern.relationships)]
        for name in names:
            if name[0] != " " and name not in self._rows.scope and name not in self._local:
                raise self._lowering.undefined(name, self._rows)
        query = tree.Query((tree.Single((tree.Match((e.pattern,)),)),))
        return self._lowering.exists(query, self._rows, self._outer(query))

    def _sub_query(self, e: tree.SubQuery) -> ex.Expression:
        return getattr(self._lowering, e.kind)(e.query, self._rows, self._outer(e.query))  # type: ignore[no-any-return]

    def _pattern_comprehension(self, e: tree.PatternComprehension) -> ex.Expression:
        if e.pattern.variable is not None and e.pattern.variable in self._rows.scope:
            raise PlanError(f"the variable {e.pattern.variable!r} already exists")
        projection = tree.Projection((tree.Item(e.result, " result", True),), final=True)
        query = tree.Query((tree.Single((tree.Match((e.pattern,), e.where), projection)),))
        return self._lowering.collect(query, self._rows, self._outer(query))


def _may_have_parts(e: ex.Expression) -> bool:
    return isinstance(e, ex.Constant) and (
        e.value is None or isinstance(e.value, dict | Time | Point | temporal.Duration) or type(e.value) in temporal.ORDERED
    )


def _is_null(e: ex.Expression) -> bool:
    return isinstance(e, ex.Constant) and e.value is None


#: The kinds that some functions take; a value of unknown kind is always accepted.
_ACCEPTED: Final = {
    "type": (RELATIONSHIP,), "labels": (NODE,), "startnode": (RELATIONSHIP,), "endnode": (RELATIONSHIP,),
    "nodes": (PATH,), "relationships": (PATH,), "length": (PATH,),
    "properties": (NODE, RELATIONSHIP, SCALAR), "size": (SCALAR, RELATIONSHIPS),
    "id": (NODE, RELATIONSHIP), "tointeger": (SCALAR,), "tofloat": (SCALAR,),
    "toboolean": (SCALAR,), "tostring": (SCALAR,),
}  # fmt: skip
#: Functions of lists; the ones that also take texts have the name that warnings use.
_OF_LISTS: Final = {"head": "", "last": "", "tail": "", "size": "size", "reverse": "reverse", "isempty": "isEmpty"}
_HANDLERS: Final[dict[type, Callable[[Any, Any], ex.Expression | None]]] = {
    ex.Variable: Expressions._variable,
    ex.Property: Expressions._property,
    ex.HasConcept: Expressions._has_concept,
    ex.And: Expressions._truths,
    ex.Or: Expressions._truths,
    ex.Xor: Expressions._truths,
    ex.Not: Expressions._truths,
    ex.Case: Expressions._case,
    ex.Comparison: Expressions._comparison,
    ex.In: Expressions._in,
    ex.Call: Expressions._call,
    ex.Index: Expressions._index,
    ex.Slice: Expressions._slice,
    ex.ListComprehension: Expressions._comprehension,
    ex.Quantified: Expressions._quantified,
    ex.Reduce: Expressions._reduce,
    tree.Parameter: Expressions._parameter,
    tree.AllProperties: Expressions._all_properties,
    tree.Aggregate: Expressions._aggregate,
    tree.PatternTest: Expressions._pattern_test,
    tree.SubQuery: Expressions._sub_query,
    tree.PatternComprehension: Expressions._pattern_comprehension,
}


def _value(value: Any, name: str) -> Any:
    """Convert a parameter to a value of expressions."""
    if isinstance(value, Quantity):
        return value.number if value.unit == NO_UNIT else Quantity(value.number, value.unit)
    if value is None or isinstance(value, bool | str | Time | Decimal) or type(value) in temporal.ORDERED:
        return value
    if isinstance(value, int | float | temporal.Duration):
        return value
    if isinstance(value, datetime):
        return temporal.zoned_datetime(value.isoformat()) if value.tzinfo else temporal.localdatetime(value.isoformat())
    if isinstance(value, date):
        return Time.day(value.year, value.month, value.day)
    if isinstance(value, timedelta):
        return temporal.Duration.of(days=value.days, seconds=value.seconds).plus(
            temporal.duration({"microseconds": value.microseconds})
        )
    if isinstance(value, Mapping):
        return {str(key): _value(item, name) for key, item in value.items()}
    if (srid := getattr(value, "srid", None)) is not None and isinstance(value, tuple):
        # A point of the Neo4j driver.
        if srid != WGS84 or len(value) != 2:
            raise refused(srid)
        return point({"x": float(value[0]), "y": float(value[1]), "srid": srid})
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(item, name) for item in value]
    if hasattr(value, "item") and not isinstance(value, type):
        return _value(value.item(), name)
    raise OptionError(f"the parameter ${name} is a {type(value).__name__}, which is not a value of a query")
