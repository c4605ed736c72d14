"""Warnings for counts and sums of nothing: the number alone does not say that there was nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from condgraph.engine.algebra import Apply, Node, Scalar, postorder
from condgraph.engine.describe import describe

if TYPE_CHECKING:
    from condgraph.engine.step import Step


#: Functions that ask whether there is anything, to which nothing is no news.
_ASK_WHETHER: Final = frozenset(("is_empty", "exists", "not", "and", "or"))


def totals(plan: Node) -> Iterator[Scalar]:
    """The counts and sums (`Facets.total`) that a plan ends on, also where functions go on from
    them.
    """
    if isinstance(plan, Scalar) and plan.facets.total:
        yield plan
    elif isinstance(plan, Apply) and plan.function not in _ASK_WHETHER:
        for argument in plan.arguments:
            yield from totals(argument)


def of_nothing(
    plan: Node, is_nothing: Callable[[Scalar], bool], steps: Sequence[tuple[str, Node]], trace: Callable[[], Sequence[Step]]
) -> Iterator[str]:
    """A warning for each count and sum of nothing: the step below it that gave nothing first.
    `trace` has an entry a step.
    """
    for node in totals(plan):
        if not is_nothing(node):
            continue
        (of,) = node.inputs()
        below = {id(part) for part in postorder(of)}
        empty = [(one, step) for (_, one), step in zip(steps, trace(), strict=False) if step.size == 0]
        emptied = next((step for one, step in empty if id(one) in below), empty[0][1] if empty else None)
        why = describe(of) if emptied is None else f"{emptied.function} gave nothing, {emptied.operator}"
        yield f"what is {node.facets.total} is empty: {why}"
