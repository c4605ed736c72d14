"""Which variables the rows of a plan bind, to what, and whether in every row: what a store has to know before it can join
rows in a query of its own; and how a plan is divided between a store and the client.

A store joins rows by what identifies their terms, so that it has to know what a variable can be. An operator whose rows it
cannot know so much of has no shape: then the store fetches the statements that the plan rests on, and the client joins them.
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

#: What a variable is bound to: an entity, a value, one of the two, a statement, the name of a predicate or key, a truth value, a
#: count.
Sort: TypeAlias = Literal["entity", "value", "any", "statement", "name", "truth", "count"]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a variable is bound to, and whether every row binds it."""

    sort: Sort
    certain: bool = True


RowShape: TypeAlias = dict[str, Bound]


class KnownObjects(Protocol):
    """A schema, as far as rows need it."""

    def has_attribute(self, name: str) -> bool:
        """Whether a predicate has values as objects."""
        ...


class Shapes(dict[int, RowShape]):
    """The shapes of operators by their identities; `schema` says what objects the predicates of patterns have, if it is known."""

    schema: KnownObjects | None = None


class _Unknown(Exception):
    """Rows that have no shape."""


def met(one: Sort, other: Sort) -> Sort:
    """The sort of a term that is of both."""
    if one == other:
        return one
    pair = {one, other}
    if "any" in pair and pair <= {"any", "entity", "value"}:
        return one if other == "any" else other
    # A name equals a text, and other pairs nothing.
    raise _Unknown


def either(one: Sort, other: Sort) -> Sort:
    """The sort of a term that is of one of the two."""
    if one == other:
        return one
    if {one, other} <= {"any", "entity", "value"}:
        return "any"
    raise _Unknown


def shape_of(node: Solutions, known: Mapping[int, RowShape]) -> RowShape | None:
    """The shape of the rows of an operator, given those of its inputs by their identities; None where it has none."""
    try:
        rule = _RULES.get(type(node).__name__)
        return None if rule is None else rule(node, known)
    except (_Unknown, KeyError):
        return None


def of_pattern(node: alg.Pattern, known: Mapping[int, RowShape] = {}) -> RowShape:
    """The shape of a basic pattern."""
    result: RowShape = {}
    schema = known.schema if isinstance(known, Shapes) else None

    def bind(place: object, sort: Sort) -> None:
        if isinstance(place, alg.Variable):
            before = result.get(place.name)
            result[place.name] = Bound(sort if before is None else met(before.sort, sort))

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
    # From one step on, that there is a path of so many steps at most is reachability, which servers look for without
    # going along every path.
    plain = node.mode == "ends" and node.path is None and node.length is None and node.least <= 1 and node.among is None
    if not plain or len({hop.direction for hop in node.hops}) != 1 or any(hop.predicates is None for hop in node.hops):
        raise _Unknown
    result = {} if node.of is None else dict(known[id(node.of)])
    for place in (node.subject, node.object):
        if isinstance(place, alg.Variable):
            before = result.get(place.name)
            if before is not None and not before.certain:
                raise _Unknown
            result[place.name] = Bound("entity" if before is None else met(before.sort, "entity"))
    if node.least == 0 and not any(_anchored(place, known, node) for place in (node.subject, node.object)):
        raise _Unknown
    return result


def _anchored(place: object, known: Mapping[int, RowShape], node: alg.Path) -> bool:
    """Whether an end of a path is known before it is followed."""
    if isinstance(place, alg.Variable):
        return node.of is not None and place.name in known[id(node.of)]
    return isinstance(place, alg.Entities)


def _rows(node: alg.Rows, known: Mapping[int, RowShape]) -> RowShape:
    result = {}
    for at, name in enumerate(node.names):
        terms = [row[at] for row in node.rows]
        # A number without a unit is one of Python, where that of a statement is a quantity.
        plain = [isinstance(term, Quantity) and term.unit == NO_UNIT for term in terms]
        if any(plain) or any(isinstance(term, bool | Ref | int | float) for term in terms):
            raise _Unknown
        result[name] = Bound("value", None not in terms)
    return result


def _joined(node: alg.Join | alg.LeftJoin, known: Mapping[int, RowShape]) -> RowShape:
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


def _where(node: alg.WhereRows, known: Mapping[int, RowShape]) -> RowShape:
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
    "Join": _joined,
    "LeftJoin": _joined,
    "SemiJoin": _tested,
    "AntiJoin": _tested,
    "MarkJoin": _tested,
    "MinusRows": _tested,
    "UnionAll": _union,
    "WhereRows": _where,
    "BoundRows": _bound,
    "Project": _project,
    "DistinctRows": lambda node, known: known[id(node.of)],
    "GroupRows": _group,
}


class Name(str):
    """The name of a predicate or key, which no statement carries."""

    __slots__ = ()


#: The terms of a row that a store gave, entities by their ids.
Row: TypeAlias = tuple[Value | Ref | Name | bool | int | None, ...]

# -- Division ----------------------------------------------------------------------------------------
# The client goes on from rows: what orders, cuts, groups and computes of their terms alone is run in process on a `Rows` of
# what the store gave.


#: Functions that look at the graph, or at more of an entity or statement than what identifies it.
_LOOKING: Final = frozenset(
    [
        *("id", "elementid", "labels", "type", "keys", "properties", "startnode", "endnode", "nodes", "relationships", "names"),
        *("path", "allen", "allen.possible", "allen.together", "days.least", "days.most"),
    ]
)
_PLAIN: Final = (
    ex.Variable, ex.Constant, ex.And, ex.Or, ex.Xor, ex.Not, ex.IsNull, ex.Comparison, ex.Arithmetic, ex.Negative, ex.TextTest,
    ex.In, ex.ListOf, ex.Slice, ex.Case, ex.ListComprehension, ex.Quantified, ex.Reduce,
)  # fmt: skip


def is_plain(expression: Any) -> bool:
    """Whether an expression looks at nothing but the terms of its row."""
    if not isinstance(expression, ex.Expression):
        return False
    return all(
        isinstance(part, _PLAIN) or (isinstance(part, ex.Call) and part.name not in _LOOKING) for part in ex.walk(expression)
    )


def _finishes(node: Node) -> bool:
    """Whether an operator works on the terms of rows alone."""
    if isinstance(node, alg.Filter):
        return is_plain(node.test)
    if isinstance(node, alg.Extend | alg.Unwind):
        return is_plain(node.expression)
    if isinstance(node, alg.WhereRows):
        return not node.condition.inputs()
    return isinstance(node, alg.BoundRows | alg.Project | alg.DistinctRows | alg.GroupRows | alg.OrderRows | alg.SliceRows)


def core_of(plan: Solutions, beyond: Collection[int], schema: KnownObjects, *, spelled: bool) -> Solutions | None:
    """The operator whose rows a store gives, below what the client finishes with their terms alone; None where the client needs
    more than these. `beyond` are the operators (by identity) that the store cannot give; `spelled` says that equal values may be
    written in several ways, which their statements tell.
    """
    node: Node = plan
    while id(node) in beyond and _finishes(node):
        (node, *_) = node.inputs()
    if id(node) in beyond or not isinstance(node, Solutions):
        return None
    shape = shapes_of(node, schema).get(id(node))
    if shape is None:
        return None
    # Of a statement the client needs all.
    whole: tuple[Sort, ...] = ("statement", "value", "any") if spelled else ("statement",)
    return None if any(shape[name].sort in whole for name in needed(plan, node)) else node


def needed(plan: Solutions, core: Solutions) -> tuple[str, ...]:
    """The variables of the rows that a store gives which the rest of a plan looks at, in order."""
    chain: list[Any] = [plan]
    while chain[-1] is not core:
        chain.append(chain[-1].of)
    names = set(plan.variables)
    for node in chain[:-1]:
        if isinstance(node, alg.Project):
            names = {old for new, old in node.names if new in names}
        elif isinstance(node, alg.GroupRows):
            every = any(item.of is None and item.distinct for item in node.aggregates)
            names = set(node.of.variables) if every else {*node.keys, *(item.of for item in node.aggregates if item.of is not None)}
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
    """The shapes of the operators of a plan that have one."""
    known = Shapes()
    known.schema = schema
    for node in postorder(plan):
        if isinstance(node, Solutions) and (shape := shape_of(node, known)) is not None:
            known[id(node)] = shape
    return known


# -- Products ----------------------------------------------------------------------------------------


def visible(names: Iterable[str]) -> str:
    """The variables that a query names itself, listed for people."""
    return ", ".join(name for name in names if not name.startswith((" ", "."))) or "no variable"


def product_in(plan: Node) -> tuple[str, str] | None:
    """The variables of two parts of a plan that are joined and share none; None if there are no such parts."""
    for node in postorder(plan):
        parts: list[set[str]] = []
        if isinstance(node, alg.Join):
            parts = [set(node.left.variables), set(node.right.variables)]
        elif isinstance(node, alg.Pattern):
            parts = [set(part.variables) for part in node.statements] + [set(part.variables) for part in node.memberships]
        apart: list[set[str]] = []
        for names in filter(None, parts):
            # With all that it meets it is one part.
            met_by = [other for other in apart if not other.isdisjoint(names)]
            apart = [other for other in apart if other.isdisjoint(names)] + [names.union(*met_by)]
        if len(apart) > 1:
            first, second = (visible(sorted(names)) for names in apart[:2])
            return first, second
    return None


@contextmanager
def naming_products(plan: Node) -> Iterator[None]:
    """A deadline that passes while a store runs a plan names the parts of it that share no variable."""
    try:
        yield
    except DeadlineError as error:
        if (parts := product_in(plan)) is not None:
            error.hint = f"{parts[0]} and {parts[1]} share no variable, so that all pairs of rows are made: connect the two parts"
        raise


# -- Tests -------------------------------------------------------------------------------------------


def row_tests(plan: Node) -> list[alg.Where | alg.WhereQualifier]:
    """The conditions of the patterns of a plan, as those of facts: what they cannot compare is counted among the statements of
    each part of a pattern, whatever the other parts leave of them.
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
