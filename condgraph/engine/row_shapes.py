"""Infer which variables the rows of a plan bind, to what, and whether in every row; and divide a plan between a store
and the client.

A store joins rows by what identifies their terms, so it must know what a variable can be. An operator for which this
is unknown has no shape: then the store fetches the statements that the plan rests on, and the client joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Solutions, postorder
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.errors import DeadlineError
from condgraph.engine.facts import Ref
from condgraph.engine.values import NO_UNIT, Quantity, Value

#: The sorts of terms: an entity, a value, either, a statement, the name of a predicate or key, a truth value, a count.
Sort: TypeAlias = Literal["entity", "value", "any", "statement", "name", "truth", "count"]


@dataclass(frozen=True, slots=True)
class Bound:
    """The sort of a variable's terms, and whether every row binds it."""

    sort: Sort
    certain: bool = True


RowShape: TypeAlias = dict[str, Bound]


class KnownObjects(Protocol):
    """The part of a schema that row shapes need."""

    def has_attribute(self, name: str) -> bool:
        """Return whether a predicate has values as objects."""
        ...


class Shapes(dict[int, RowShape]):
    """The shapes of operators by identity; `schema`, if known, tells what objects the predicates of patterns have."""

    schema: KnownObjects | None = None


class _Unknown(Exception):
    """Raised for rows that have no shape."""


def met(one: Sort, other: Sort) -> Sort:
    """Return the sort of a term that has both sorts."""
    if one == other:
        return one
    pair = {one, other}
    if "any" in pair and pair <= {"any", "entity", "value"}:
        return one if other == "any" else other
    # Other pairs have nothing in common, except names and texts.
    raise _Unknown


def either(one: Sort, other: Sort) -> Sort:
    """Return the sort of a term that has one of two sorts."""
    if one == other:
        return one
    if {one, other} <= {"any", "entity", "value"}:
        return "any"
    raise _Unknown


def shape_of(node: Solutions, known: Mapping[int, RowShape]) -> RowShape | None:
    """Return the shape of an operator's rows, given those of its inputs by identity; None if it has none."""
    try:
        rule = _RULES.get(type(node).__name__)
        return None if rule is None else rule(node, known)
    except (_Unknown, KeyError):
        return None


def of_pattern(node: alg.Pattern, known: Mapping[int, RowShape] = {}) -> RowShape:
    """Return the shape of a basic pattern."""
    result: RowShape = {}
    schema = known.schema if isinstance(known, Shapes) else None

    def bind(place: object, sort: Sort) -> None:
        if isinstance(place, alg.Variable):
            previous = result.get(place.name)
            result[place.name] = Bound(sort if previous is None else met(previous.sort, sort))

    for part in node.statements:
        bind(part.subject, "entity")
        bind(part.predicate, "name")
        family = "relation" if part.undirected else part.family
        if family == "any" and schema is not None and isinstance(part.predicate, tuple):
            family = family if any(map(schema.has_attribute, part.predicate)) else "relation"
        bind(part.object, "any" if family == "any" else "entity" if family == "relation" else "value")
        bind(part.statement, "statement")
        for qualifier in part.qualifiers:
            bind(qualifier.key, "name")
            bind(qualifier.value, "any")
    for membership in node.memberships:
        bind(membership.member, "entity")
        bind(membership.concept, "entity")
    return result


def _path(node: alg.Path, known: Mapping[int, RowShape]) -> RowShape:
    # With at least 0 or 1 steps this is reachability, which servers compute without enumerating every path.
    plain = node.mode == "ends" and node.path is None and node.length is None and node.least <= 1 and node.among is None
    if not plain or len({hop.direction for hop in node.hops}) != 1 or any(hop.predicates is None for hop in node.hops):
        raise _Unknown
    result = {} if node.of is None else dict(known[id(node.of)])
    for place in (node.subject, node.object):
        if isinstance(place, alg.Variable):
            previous = result.get(place.name)
            if previous is not None and not previous.certain:
                raise _Unknown
            result[place.name] = Bound("entity" if previous is None else met(previous.sort, "entity"))
    if node.least == 0 and not any(_anchored(place, known, node) for place in (node.subject, node.object)):
        raise _Unknown
    return result


def _anchored(place: object, known: Mapping[int, RowShape], node: alg.Path) -> bool:
    """Return whether an end of a path is known before it is followed."""
    if isinstance(place, alg.Variable):
        return node.of is not None and place.name in known[id(node.of)]
    return isinstance(place, alg.Entities)


def _rows(node: alg.Rows, known: Mapping[int, RowShape]) -> RowShape:
    result = {}
    for index, name in enumerate(node.names):
        terms = [row[index] for row in node.rows]
        # In rows, a number without a unit is a plain number, but the number of a statement is a quantity.
        plain = [isinstance(term, Quantity) and term.unit == NO_UNIT for term in terms]
        if any(plain) or any(isinstance(term, bool | Ref | int | float) for term in terms):
            raise _Unknown
        result[name] = Bound("value", None not in terms)
    return result


def _join_shape(node: alg.Join | alg.LeftJoin, known: Mapping[int, RowShape]) -> RowShape:
    left, right = known[id(node.left)], known[id(node.right)]
    if isinstance(node, alg.LeftJoin) and node.condition is not None:
        raise _Unknown
    optional = isinstance(node, alg.LeftJoin)
    result = dict(left)
    for name, bound in right.items():
        if name not in left:
            result[name] = Bound(bound.sort, bound.certain and not optional)
            continue
        sort = met(left[name].sort, bound.sort)
        if left[name].certain:
            result[name] = Bound(sort if not optional and bound.certain else left[name].sort)
        else:
            result[name] = Bound(either(left[name].sort, bound.sort), bound.certain and not optional)
    return result


def _tested(node: alg.SemiJoin | alg.AntiJoin | alg.MinusRows | alg.MarkJoin, known: Mapping[int, RowShape]) -> RowShape:
    left, right = known[id(node.left)], known[id(node.right)]
    for name in left.keys() & right.keys():
        met(left[name].sort, right[name].sort)
        if isinstance(node, alg.MinusRows) and not (left[name].certain and right[name].certain):
            raise _Unknown
    if isinstance(node, alg.MarkJoin):
        return {**left, node.variable: Bound("truth")}
    return left


def _union(node: alg.UnionAll, known: Mapping[int, RowShape]) -> RowShape:
    parts = [known[id(part)] for part in node.parts]
    result: RowShape = {}
    for name in node.variables:
        bound = [part[name] for part in parts if name in part]
        sort = bound[0].sort
        for item in bound[1:]:
            sort = either(sort, item.sort)
        result[name] = Bound(sort, len(bound) == len(parts) and all(item.certain for item in bound))
    return result


def _where_shape(node: alg.WhereRows, known: Mapping[int, RowShape]) -> RowShape:
    result = dict(known[id(node.of)])
    bound = result[node.variable]
    if bound.sort not in ("entity", "value", "any"):
        raise _Unknown
    result[node.variable] = Bound(bound.sort)
    return result


def _bound(node: alg.BoundRows, known: Mapping[int, RowShape]) -> RowShape:
    result = dict(known[id(node.of)])
    for name in node.names:
        result[name] = Bound(result[name].sort)
    return result


def _project(node: alg.Project, known: Mapping[int, RowShape]) -> RowShape:
    of = known[id(node.of)]
    return {new: of.get(old, Bound("any", certain=False)) for new, old in node.names}


def _group(node: alg.GroupRows, known: Mapping[int, RowShape]) -> RowShape:
    of = known[id(node.of)]
    if any(item.function != "count" for item in node.aggregates):
        raise _Unknown
    return {name: of[name] for name in node.keys} | {item.name: Bound("count") for item in node.aggregates}


_RULES: Final[dict[str, Callable[[Any, Mapping[int, RowShape]], RowShape]]] = {
    "Pattern": of_pattern,
    "Path": _path,
    "EntityRows": lambda node, known: {node.variable: Bound("entity")},
    "Rows": _rows,
    "Join": _join_shape,
    "LeftJoin": _join_shape,
    "SemiJoin": _tested,
    "AntiJoin": _tested,
    "MarkJoin": _tested,
    "MinusRows": _tested,
    "UnionAll": _union,
    "WhereRows": _where_shape,
    "BoundRows": _bound,
    "Project": _project,
    "DistinctRows": lambda node, known: known[id(node.of)],
    "GroupRows": _group,
}


class Name(str):
    """The name of a predicate or key, which belongs to no statement."""

    __slots__ = ()


#: The terms of a row from a store, entities by id.
Row: TypeAlias = tuple[Value | Ref | Name | bool | int | None, ...]

# -- Division ----------------------------------------------------------------------------------------
# The client continues from rows: operators that order, cut, group or compute from their terms alone run in process on the
# rows of the store.


#: Functions that read the graph, or more of an entity or statement than its identity.
_LOOKING: Final = frozenset(
    [
        *("id", "elementid", "labels", "type", "keys", "properties", "startnode", "endnode", "nodes", "relationships", "names"),
        *("path", "allen", "allen.possible", "allen.together", "days.least", "days.most"),
    ]
)
_UNCHANGED: Final = (
    ex.Variable, ex.Constant, ex.And, ex.Or, ex.Xor, ex.Not, ex.IsNull, ex.Comparison, ex.Arithmetic, ex.Negative, ex.TextTest,
    ex.In, ex.ListOf, ex.Slice, ex.Case, ex.ListComprehension, ex.Quantified, ex.Reduce,
)  # fmt: skip


def is_plain(expression: Any) -> bool:
    """Return whether an expression reads only the terms of its row."""
    if not isinstance(expression, ex.Expression):
        return False
    return all(
        isinstance(part, _UNCHANGED) or (isinstance(part, ex.Call) and part.name not in _LOOKING) for part in ex.walk(expression)
    )


def _finishes(node: Node) -> bool:
    """Return whether an operator needs only the terms of rows."""
    if isinstance(node, alg.Filter):
        return is_plain(node.test)
    if isinstance(node, alg.Extend | alg.Unwind):
        return is_plain(node.expression)
    if isinstance(node, alg.WhereRows):
        return not node.condition.inputs()
    return isinstance(node, alg.BoundRows | alg.Project | alg.DistinctRows | alg.GroupRows | alg.OrderRows | alg.SliceRows)


def core_of(plan: Solutions, beyond: Collection[int], schema: KnownObjects, *, spelled: bool) -> Solutions | None:
    """Return the operator whose rows a store returns, below those that the client computes from terms alone; None if
    the client needs more. `beyond` are the operators (by identity) that the store cannot run; `spelled`: equal values
    may have several texts, which only their statements tell.
    """
    node: Node = plan
    while id(node) in beyond and _finishes(node):
        (node, *_) = node.inputs()
    if id(node) in beyond or not isinstance(node, Solutions):
        return None
    shape = shapes_of(node, schema).get(id(node))
    if shape is None:
        return None
    # The client needs the complete statement, not only its identity.
    incomplete_sorts: tuple[Sort, ...] = ("statement", "value", "any") if spelled else ("statement",)
    return None if any(shape[name].sort in incomplete_sorts for name in needed(plan, node)) else node


def needed(plan: Solutions, core: Solutions) -> tuple[str, ...]:
    """Return the variables of a store's rows that the rest of a plan uses, in order."""
    chain: list[Any] = [plan]
    while chain[-1] is not core:
        chain.append(chain[-1].of)
    names = set(plan.variables)
    for node in chain[:-1]:
        if isinstance(node, alg.Project):
            names = {old for new, old in node.names if new in names}
        elif isinstance(node, alg.GroupRows):
            uses_all = any(item.of is None and item.distinct for item in node.aggregates)
            names = (
                set(node.of.variables) if uses_all else {*node.keys, *(item.of for item in node.aggregates if item.of is not None)}
            )
        elif isinstance(node, alg.Filter):
            names |= ex.variables(node.test)
        elif isinstance(node, alg.Extend | alg.Unwind):
            names = (names - {node.variable}) | ex.variables(node.expression)
        elif isinstance(node, alg.WhereRows):
            names.add(node.variable)
        elif isinstance(node, alg.BoundRows):
            names.update(node.names)
        else:
            # Whole rows are compared, or ordered.
            names = set(node.of.variables)
    return tuple(name for name in core.variables if name in names)


def shapes_of(plan: Node, schema: KnownObjects | None = None) -> Shapes:
    """Return the shapes of the operators of a plan that have one."""
    known = Shapes()
    known.schema = schema
    for node in postorder(plan):
        if isinstance(node, Solutions) and (shape := shape_of(node, known)) is not None:
            known[id(node)] = shape
    return known


# -- Products ----------------------------------------------------------------------------------------


def visible(names: Iterable[str]) -> str:
    """List the variables that the query itself names, for messages."""
    return ", ".join(name for name in names if not name.startswith((" ", "."))) or "no variable"


def product_in(plan: Node) -> tuple[str, str] | None:
    """Return the variables of two parts of a plan that are joined without sharing any; None if there are no such
    parts.
    """
    for node in postorder(plan):
        parts: list[set[str]] = []
        if isinstance(node, alg.Join):
            parts = [set(node.left.variables), set(node.right.variables)]
        elif isinstance(node, alg.Pattern):
            parts = [set(part.variables) for part in node.statements] + [set(part.variables) for part in node.memberships]
        components: list[set[str]] = []
        for names in filter(None, parts):
            # Merge it with all components that it shares a variable with.
            connected = [component for component in components if not component.isdisjoint(names)]
            components = [component for component in components if component.isdisjoint(names)] + [names.union(*connected)]
        if len(components) > 1:
            first, second = (visible(sorted(names)) for names in components[:2])
            return first, second
    return None


@contextmanager
def naming_products(plan: Node) -> Iterator[None]:
    """Let a deadline that passes while a store runs a plan name the parts that share no variable."""
    try:
        yield
    except DeadlineError as error:
        if (parts := product_in(plan)) is not None:
            error.hint = f"{parts[0]} and {parts[1]} share no variable, so that all pairs of rows are made: connect the two parts"
        raise


# -- Tests -------------------------------------------------------------------------------------------


def row_tests(plan: Node) -> list[alg.Where | alg.WhereQualifier]:
    """Return the conditions of a plan's patterns as conditions on facts: values that cannot be compared are counted
    for each part of a pattern, whatever the other parts match.
    """
    result: list[alg.Where | alg.WhereQualifier] = []
    statement = alg.Variable(" tested")
    for node in postorder(plan):
        for part in node.statements if isinstance(node, alg.Pattern) else ():
            sets = [None if isinstance(place, alg.Variable) else place for place in (part.subject, part.object)]
            predicates = part.predicate if isinstance(part.predicate, tuple) else None
            family: alg.Family = "relation" if part.undirected else part.family
            alone = alg.StatementPattern(sets[0], predicates, sets[1], statement=statement, family=family)
            facts = alg.FactsOf(alg.Pattern((alone,)), statement.name)
            if part.condition is not None:
                result.append(alg.Where(facts, part.condition))
            for qualifier in part.qualifiers:
                if qualifier.condition is not None and isinstance(qualifier.key, str):
                    result.append(alg.WhereQualifier(facts, qualifier.key, qualifier.condition))
    return result
