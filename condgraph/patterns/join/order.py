"""In which order the nodes of a connected part are found, one a step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from condgraph.patterns.distance.domains import Bond
from condgraph.patterns.problem import Problem


@dataclass(slots=True)
class Step:
    """Find `node` beside `parent`; `closing` bonds lead to other nodes found before. `rest` is the
    least cost of what is left then.
    """

    node: int
    parent: int
    bond: Bond
    closing: list[Bond]
    rest: int
    leaf: bool
    #: The step to a leaf behind the node, where both are found together.
    arm: Step | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that the step finds."""
        return (self.node,) if self.arm is None else (self.node, self.arm.node)


def plan_steps(problem: Problem, nodes: Sequence[int], seed: int, kept: Collection[int]) -> list[Step]:
    """The order of the other nodes: those bound by most, known ones, then by mention; unknown
    leaves last.

    `kept` are nodes that are never leaves.
    """
    least = problem.least(nodes)
    touching = {node: [b for b in problem.bonds if node in (b.first, b.second)] for node in nodes}
    leaves = {
        node
        for node in nodes
        if node != seed and node not in kept and len(touching[node]) == 1
        and node not in problem.loops and not problem.forbidden
    }  # fmt: skip
    found, steps = [seed], []
    rest = least - problem.least(found)
    while len(found) < len(nodes):
        ahead = [node for node in nodes if node not in found and any(b.other(node) in found for b in touching[node])]
        node = min(
            ahead,
            key=lambda n: (
                n in leaves and problem.domains[n].open, -sum(b.other(n) in found for b in touching[n]),
                problem.domains[n].open, n,
            ),
        )  # fmt: skip
        back = [b for b in touching[node] if b.other(node) in found]
        # Dearer bonds first: their predicates are known, and leave fewer neighbours.
        bond = max(back, key=lambda b: (b.least, len(b.steps)))
        found.append(node)
        rest = least - problem.least(found)
        steps.append(Step(node, bond.other(node), bond, [b for b in back if b is not bond], rest, node in leaves))
    return steps
