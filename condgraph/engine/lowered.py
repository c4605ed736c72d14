"""A lowered program: one plan for whichever language, with the steps that its answer traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from condgraph.engine.errors import shortened

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node


class Substitution(str):
    """A warning that a name of a program was read as another one: `used` in place of `name`, where it might
    have been any of `others`. An answer with one of these is doubtful.
    """

    name: str
    used: tuple[str, ...]
    others: tuple[str, ...]

    def __new__(cls, kind: str, name: str, used: Sequence[str], others: Sequence[str] = (), why: str = "the nearest name") -> Self:
        """The warning as text; `kind` is what the name is."""
        listed = " or ".join(repr(shortened(one, 100)) for one in used[:_SHOWN])
        rest = ", ".join(repr(shortened(one, 100)) for one in others[:_SHOWN])
        text = f"{kind} {shortened(name, 100)!r} is not in the graph and is read as {listed}, {why}"
        result = super().__new__(cls, text + (f"; it may also be {rest}" if rest else ""))
        result.name, result.used, result.others = name, tuple(used), tuple(others)
        return result

    def __reduce__(self) -> Any:
        return _substitution, (str(self), self.name, self.used, self.others)


def _substitution(text: str, name: str, used: tuple[str, ...], others: tuple[str, ...]) -> Substitution:
    result = str.__new__(Substitution, text)
    result.name, result.used, result.others = name, used, others
    return result


#: Names that a substitution lists.
_SHOWN: Final = 5


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


def owners(steps: Sequence[tuple[str, Node]], until: Node | None = None) -> dict[int, int]:
    """The place of the step that each operator is part of, by its identity: of the first that contains it. Once it is known
    of the operator `until`, the others are left out.
    """
    found: dict[int, int] = {}
    for at, (_, root) in enumerate(steps):
        # A step contains those before it.
        waiting = [root]
        while waiting:
            part = waiting.pop()
            if id(part) not in found:
                found[id(part)] = at
                if part is until:
                    return found
                waiting += part.inputs()
    return found
