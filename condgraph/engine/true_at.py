"""Rewriting of a plan so that only statements that hold in a period count.

A statement counts if its validity (`snapshot.layout.lay_validity`) may hold in the period, or with `certain` if it
must. Statements without a validity always count, and so do memberships in concepts, which have none.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.algebra.expressions import Call, Expression, Index, Property
from condgraph.engine.bounds import watched
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.lowered import Lowered
from condgraph.engine.passes import rebuild
from condgraph.engine.period import Period


def restricted(lowered: Lowered, period: Period, *, temporal: bool) -> Lowered:
    """Return a lowered program that counts only the statements that hold in a period, with the steps of its trace.

    `temporal` tells whether any statement of the graph has a validity. Raises `UnsupportedError`, with the name of
    the operator, if a plan reads statements in a way that cannot be restricted.
    """
    rewriting = _Rewriting(period)
    warnings = list(lowered.warnings)
    if not temporal:
        warnings.append(untimed(str(period.interval)))
    plan = rewriting.root(lowered.plan)
    steps = [(name, rewriting.root(node)) for name, node in lowered.steps]
    notes = {id(rewriting.outer[node]): note for node, note in lowered.notes.items() if node in rewriting.outer}
    return Lowered(plan, steps, warnings, notes)


def untimed(when: str) -> str:
    """Return the warning for a graph whose statements have no times."""
    return (
        f"no statement of the graph has a time, so that all of them count at {when}: times are the qualifiers 'start time', "
        "'end time' and 'point in time', which times= of a load makes from columns or other qualifiers"
    )


class _Rewriting:
    """One pass over a plan. `inner` has the new operators by the identity of the old ones; `outer` has the form that
    operators of other sorts take: facts with the validity test above all other tests, so that stores can still
    optimise these.
    """

    def __init__(self, period: Period) -> None:
        self._period = period
        self.inner: dict[int, Node] = {}
        self.outer: dict[int, Node] = {}
        #: The rewritten operators, kept alive because they are identified by id().
        self._alive: list[Node] = []

    def root(self, plan: Node) -> Node:
        """Rewrite a plan or a step."""
        for node in watched(alg.postorder(plan, self.inner)):
            through = alg.passed(node) if isinstance(node, alg.Facts) else None
            inputs = {id(child): (self.inner if child is through else self.outer)[id(child)] for child in node.inputs()}
            inner = self._rewritten(rebuild(node, inputs) if inputs else node)
            self._alive.append(node)
            self.inner[id(node)] = inner
            self.outer[id(node)] = self._tested(inner) if isinstance(inner, alg.Facts) else inner
        return self.outer[id(plan)]

    def _tested(self, facts: alg.Facts) -> alg.Facts:
        """Add the test of the period to facts; the facts of rows have it already."""
        below = facts
        while (before := alg.passed(below)) is not None:
            below = before
        return facts if isinstance(below, alg.FactsOf) else alg.During(facts, self._period.relation, self._period.interval)

    def _rewritten(self, node: Node) -> Node:
        if isinstance(node, alg.Scan):
            return node
        if isinstance(node, alg.ArgExtreme):
            facts = self._tested(alg.Scan(node.of, (node.key,), family="attribute"))
            return alg.SubjectsOf(alg.Extreme(alg.Objects(facts), node.direction))
        if isinstance(node, alg.Pattern):
            return replace(node, statements=tuple(map(self._statement, node.statements)))
        if isinstance(node, alg.Path):
            named = [hop.predicates for hop in node.hops]
            every = None if None in named else tuple(sorted({name for names in named for name in names or ()}))
            steps = self._tested(alg.Scan(None, every, "subject", "object", "relation"))
            return replace(node, among=steps)
        if node.facets.reads == "statements":
            raise UnsupportedError("a time of a query", [type(node).__name__])
        if isinstance(node, alg.Solutions):
            return self._with_expressions(node)
        return node

    def _statement(self, part: alg.StatementPattern) -> alg.StatementPattern:
        if part.among is not None:
            return part
        predicates = part.predicate if isinstance(part.predicate, tuple) else None
        reach: alg.End = "object" if part.family == "relation" else "subject"
        return replace(part, among=self._tested(alg.Scan(None, predicates, "subject", reach, part.family)))

    def _with_expressions(self, node: Any) -> Node:
        changed = {
            field.name: self._expression(value)
            for field in fields(node)
            if isinstance(value := getattr(node, field.name), Expression)
        }
        result: Node = replace(node, **changed) if changed else node
        return result

    def _expression(self, value: Any) -> Any:
        """Rewrite an expression so that attributes of entities are read as of the period."""
        if isinstance(value, tuple):
            return tuple(map(self._expression, value))
        if not isinstance(value, Expression):
            return value
        parts = {field.name: self._expression(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]
        if isinstance(value, Property | Call | Index):
            parts["period"] = self._period
        return type(value)(**parts)
