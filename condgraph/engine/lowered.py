"""A lowered program: one plan for any language, with the steps that its answer traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from condgraph.engine.errors import shortened

if TYPE_CHECKING:
    from condgraph.engine.algebra import Node


class Substitution(str):
    """A warning that a name of a program was read as another one: `used` instead of `name`, with the alternatives
    `others`. An answer with one is doubtful.
    """

    name: str
    used: tuple[str, ...]
    others: tuple[str, ...]

    def __new__(cls, kind: str, name: str, used: Sequence[str], others: Sequence[str] = (), why: str = "the nearest name") -> Self:
        """Create the warning; `kind` is the kind of name."""
        listed = " or ".join(repr(shortened(listed_name, 100)) for listed_name in used[:_SHOWN])
        alternatives = ", ".join(repr(shortened(listed_name, 100)) for listed_name in others[:_SHOWN])
        text = f"{kind} {shortened(name, 100)!r} is not in the graph and is read as {listed}, {why}"
        result = super().__new__(cls, text + (f"; it may also be {alternatives}" if alternatives else ""))
        result.name, result.used, result.others = name, tuple(used), tuple(others)
        return result

    def __reduce__(self) -> Any:
        return _substitution, (str(self), self.name, self.used, self.others)


def _substitution(text: str, name: str, used: tuple[str, ...], others: tuple[str, ...]) -> Substitution:
    result = str.__new__(Substitution, text)
    result.name, result.used, result.others = name, used, others
    return result


#: The number of names that a substitution lists.
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step of a program: its operator in words, the number of results, the first few of them, a
    remark.
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
    """A plan, the operator of each step of the program, warnings, and remarks on operators.

    A step has its name in the program; `notes` are remarks for the trace, by the identity of the operator. `order`
    has the operators of the plan, inputs first; None until passes have run, which `languages.registry.lower` does.
    """

    plan: Node
    steps: list[tuple[str, Node]]
    warnings: list[str] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    order: list[Node] | None = None


def owners(steps: Sequence[tuple[str, Node]], until: Node | None = None) -> dict[int, int]:
    """Return the index of the first step that contains each operator, by its identity; stop once the operator `until`
    is reached.
    """
    step_of: dict[int, int] = {}
    for index, (_, root) in enumerate(steps):
        # A step contains those before it.
        stack = [root]
        while stack:
            part = stack.pop()
            if id(part) not in step_of:
                step_of[id(part)] = index
                if part is until:
                    return step_of
                stack += part.inputs()
    return step_of
