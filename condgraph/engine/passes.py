"""Rewrites of a plan that preserve its meaning, each with a fast test whether it applies.

A test runs every program with and without the passes and compares the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields, replace
from operator import is_
from typing import Any, Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra.expressions import variables
from condgraph.engine.bounds import watched

# -- Rebuilding a plan bottom up: unchanged operators stay the same objects ------------------------


def rewrite(plan: alg.Node, rule: Callable[[alg.Node], alg.Node]) -> alg.Node:
    """Apply a rule to every operator, inputs first. A shared operator is rewritten once and stays shared."""
    done: dict[int, alg.Node] = {}
    for node in watched(alg.postorder(plan)):
        current = node
        for child in node.inputs():
            if done[id(child)] is not child:
                current = rebuild(node, done)
                break
        done[id(node)] = rule(current)
    return done[id(plan)]


def names(record: Any) -> tuple[str, ...]:
    """Return the fields of an operator or a condition, in order."""
    result = _FIELD_NAMES.get(type(record))
    if result is None:
        result = _FIELD_NAMES[type(record)] = tuple(part.name for part in fields(record))
    return result


#: Fields by type; bounded by the number of operators.
_FIELD_NAMES: dict[type[Any], tuple[str, ...]] = {}


def rebuild(node: Any, done: dict[int, alg.Node]) -> Any:
    """Return the same record (an operator or a condition) with its inputs replaced."""
    values = [getattr(node, name) for name in names(node)]
    new_values = [value if type(value) in _ATOMIC else done.get(id(value)) or _replaced(value, done) for value in values]
    return node if all(map(is_, new_values, values)) else type(node)(*new_values)


#: Types of values that contain no operators. Testing for them first is faster than testing for operators.
_ATOMIC: Final = frozenset((str, int, bool, type(None)))


def _replaced(value: Any, done: dict[int, alg.Node]) -> Any:
    if (replacement := done.get(id(value))) is not None or isinstance(value, alg.Node):
        return value if replacement is None else replacement
    if isinstance(value, alg.Condition | alg.Parameter):
        return rebuild(value, done) if value.inputs() else value
    if isinstance(value, tuple) and value and isinstance(value[0], alg.Node | alg.Condition | alg.Parameter):
        new_parts = tuple([_replaced(part, done) for part in value])
        return new_parts if any(a is not b for a, b in zip(new_parts, value, strict=True)) else value
    return value


def mark(value: Any) -> Hashable:
    """Return a key that is equal for equal operators, if their inputs are the same objects.

    Comparing one level instead of the whole tree keeps a pass linear.
    """
    return (type(value), *[_marked(getattr(value, name)) for name in names(value)])


def _marked(value: Any) -> Hashable:
    if isinstance(value, alg.Node):
        return id(value)
    if isinstance(value, alg.Condition | alg.Parameter):
        return mark(value) if value.inputs() else value
    if isinstance(value, tuple) and value and isinstance(value[0], alg.Node | alg.Condition | alg.Parameter):
        return tuple([_marked(part) for part in value])
    return value  # type: ignore[no-any-return]


# -- Flat intersections ----------------------------------------------------------------------------


def _flatten_applies(order: list[alg.Node]) -> bool:
    """Return whether some intersection has another one, or all entities, as a part."""
    merged = (alg.Intersect, alg.AllEntities)
    return any(type(part) in merged for node in order if type(node) is alg.Intersect for part in node.parts)


def flatten(plan: alg.Node) -> alg.Node:
    """Merge nested intersections, and drop "all entities" if the other parts contain only entities anyway.

    Execution starts an intersection with its smallest part and looks the others up, so a nested concept is tested as
    early as any other.

    >>> from condgraph.engine.algebra import AllEntities, ByName, Intersect, Members
    >>> human, French, Ann = Members(ByName(("human",))), Members(ByName(("French",))), ByName(("Ann",))
    >>> flatten(Intersect((Intersect((Ann, human)), French))) == Intersect((Ann, human, French))
    True
    >>> flatten(Intersect((AllEntities(), human))) == human
    True
    """
    return rewrite(plan, _flat)


def _flat(node: alg.Node) -> alg.Node:
    if not isinstance(node, alg.Intersect):
        return node
    parts = list(node.parts)
    if any(isinstance(part, alg.Members) or _holds_members(part) for part in parts):
        parts = [part for part in parts if not (isinstance(part, alg.AllEntities) and part == alg.AllEntities())]
    elif not any(isinstance(part, alg.Intersect) for part in parts):
        return node
    return alg.intersect(*parts)


def _holds_members(part: alg.Entities) -> bool:
    return isinstance(part, alg.Intersect) and any(isinstance(inner, alg.Members) for inner in part.parts)


# -- Equal parts -----------------------------------------------------------------------------------

#: Operators without inputs that are worth sharing; the store caches the set of all entities anyway.
_LEAVES: Final = frozenset((alg.ByName, alg.ById, alg.Constants))


def _common_subplans_apply(order: list[alg.Node]) -> bool:
    """Return whether there may be equal parts: they have equal leaves, or equal scans of one leaf; most plans have
    none.
    """
    kinds = list(map(type, order))
    if kinds.count(alg.Scan) < 2 and sum(map(kinds.count, _LEAVES)) < 2:
        return False
    seen: set[Hashable] = set()
    for node in order:
        key: Hashable
        if type(node) is alg.Scan:
            of = alg.AllEntities if type(node.of) is alg.AllEntities else id(node.of)
            key = (node.predicates, node.anchor, node.reach, of)
        elif type(node) in _LEAVES:
            key = node
        else:
            continue
        if key in seen:
            return True
        seen.add(key)
    return False


def common_subplans(plan: alg.Node) -> alg.Node:
    """Merge equal parts of a plan, so that they are run (and, on a server, bound) once.

    >>> from condgraph.engine.algebra import ByName, Intersect, Reached, Scan
    >>> def films(): return Reached(Scan(ByName(("Ann",)), ("director",), "object", "subject", "relation"))
    >>> before = Intersect((films(), films()))
    >>> before.parts[0] is before.parts[1]
    False
    >>> after = common_subplans(before)
    >>> after == before, after.parts[0] is after.parts[1]
    (True, True)
    """
    first_of: dict[Hashable, alg.Node] = {}
    return rewrite(plan, lambda node: first_of.setdefault(mark(node), node))


# -- Fewer rows to extend --------------------------------------------------------------------------


def _late_applies(order: list[alg.Node]) -> bool:
    """Return whether rows may be extended before they are cut."""
    # By name, to avoid importing the module of these operators.
    return {"SliceRows", "Extend"} <= {type(node).__name__ for node in order}


def late(plan: alg.Node) -> alg.Node:
    """Cut rows before extending them by columns that their order does not depend on, so that these are computed only
    for the remaining rows. Columns computed from others do not affect the order of rows that are equal in these.

    >>> from condgraph.engine.algebra import AllEntities, solutions
    >>> from condgraph.engine.algebra.expressions import Call, Variable
    >>> rows = solutions.EntityRows("n", AllEntities())
    >>> of = solutions.Extend(rows, "labels", Call("labels", (Variable("n"),)))
    >>> type(late(solutions.SliceRows(of, 0, 3))).__name__
    'Extend'
    """
    return rewrite(plan, _later)


def _later(node: alg.Node) -> alg.Node:
    if not isinstance(node, alg.SliceRows):
        return node
    ordered = node.of if isinstance(node.of, alg.OrderRows) else None
    below = node.of if ordered is None else ordered.of
    needed = set() if ordered is None else {order.variable for order in ordered.by}
    kept_before: list[alg.Extend] = []
    moved_after: list[alg.Extend] = []
    while isinstance(below, alg.Extend):
        if below.variable in needed:
            needed |= variables(below.expression)
            kept_before.append(below)
        else:
            moved_after.append(below)
        below = below.of
    if not moved_after:
        return node
    for part in reversed(kept_before):
        below = replace(part, of=below)
    result: alg.Solutions = replace(node, of=below if ordered is None else replace(ordered, of=below))
    for part in reversed(moved_after):
        result = replace(part, of=result)
    if result.variables == node.variables:
        return result
    return alg.Project(result, tuple((name, name) for name in node.variables))


# -- All passes ------------------------------------------------------------------------------------

#: The passes in order: a cheap test whether it may apply, which has no false negatives, and the rewrite.
PASSES: Final = ((_late_applies, late), (_flatten_applies, flatten), (_common_subplans_apply, common_subplans))


def chain(plan: alg.Node) -> list[alg.Node] | None:
    """Return the operators of a plan without branches, which need no rewriting; None for other plans."""
    order = [plan]
    while inputs := order[-1].inputs():
        if len(inputs) > 1:
            return None
        order.append(inputs[0])
    order.reverse()
    return order


def optimise(plan: alg.Node) -> tuple[alg.Node, list[alg.Node]]:
    """Run all passes that apply; return the plan and its operators, inputs first."""
    order = chain(plan)
    if order is not None and not _late_applies(order):
        return plan, order
    order = alg.postorder(plan)
    for applies, rewrite in PASSES:
        if applies(order):
            plan = rewrite(plan)
            order = alg.postorder(plan)
    return plan, order
