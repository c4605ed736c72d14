"""What a program becomes, whichever language it is written in: one plan, and what its answer tells
of how it came about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node


@dataclass(slots=True)
class Lowered:
    """A plan, which operator each step of the program became, warnings, and remarks on operators.

    A step is known by its name in the program; `notes` are remarks for the trace, by the identity
    of the operator. `order` has the operators of the plan, inputs first. It is None while passes
    have to look at the plan, which `languages.registry.lower` has them do.
    """

    plan: Node
    steps: list[tuple[str, Node]]
    warnings: list[str] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    order: list[Node] | None = None
