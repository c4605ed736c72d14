"""Rewrites of a plan that keep its meaning. Each is a module with one rule and a quick look at
whether it can apply.

A test runs every program with the passes on and off and compares the answers.
"""

from __future__ import annotations

from condgraph.engine.algebra import Node, postorder
from condgraph.engine.passes import common_subplans as share
from condgraph.engine.passes import flatten

#: In order; each module has `applies(order)`, cheap and never wrong when it says no, and the
#: rewrite itself.
PASSES = ((flatten.applies, flatten.flatten), (share.applies, share.share))


def chain(plan: Node) -> list[Node] | None:
    """The operators of a plan that has no branches, in which nothing is to be rewritten; None for
    others.
    """
    order = [plan]
    while inputs := order[-1].inputs():
        if len(inputs) > 1:
            return None
        order.append(inputs[0])
    order.reverse()
    return order


def optimise(plan: Node) -> tuple[Node, list[Node]]:
    """All passes that apply; the plan and its operators, inputs first."""
    order = chain(plan)
    if order is not None:
        return plan, order
    order = postorder(plan)
    for applies, rewrite in PASSES:
        if applies(order):
            plan = rewrite(plan)
            order = postorder(plan)
    return plan, order
