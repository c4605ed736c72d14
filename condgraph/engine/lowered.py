"""A lowered program: one plan for whichever language, with the steps that its answer traces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node


# One step of a program as the trace of an answer shows it.


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of the program gave: its operator in words, how many results, the first few of
    them, a remark.
    """

    function: str
    operator: str
    size: int
    sample: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        shown = ", ".join(self.sample) + (", ..." if self.size > len(self.sample) else "")
        return f"{self.function}: {self.size}" + (f" ({shown})" if shown else "") + (f"; {self.note}" if self.note else "")


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
