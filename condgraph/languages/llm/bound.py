"""What bound calls of an LLM query are: a search, a function with its operands and options, or a call
of a function that nobody knows (`binding` makes them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from condgraph.engine.errors import UnknownNameError
from condgraph.languages.llm.syntax.tree import NOWHERE, Call, CompareOp, Expression, Span

#: The parameters of get_information, as letters in the order of the table of 32 cases.
PARAMETERS: Final = {"H": "head_entity", "R": "relation", "T": "tail_entity", "K": "key", "V": "value"}


@dataclass(frozen=True, slots=True)
class ColumnCondition:
    """A condition on an object or a qualifier: `op` and what to compare with."""

    op: CompareOp
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Search:
    """A bound get_information. `tail` and `value` hold one test, or several that must all hold;
    empty where not given.
    """

    head: Expression | None = None
    relation: Expression | None = None
    tail: tuple[ColumnCondition, ...] = ()
    key: Expression | None = None
    value: tuple[ColumnCondition, ...] = ()
    source: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def case(self) -> str:
        """Which of the five parameters are given, as letters: "HR", "RTKV"."""
        parts = (self.head, self.relation, self.tail, self.key, self.value)
        return "".join(letter for letter, part in zip(PARAMETERS, parts, strict=True) if part is not None and part != ())


@dataclass(frozen=True, slots=True)
class Application:
    """A bound call of a native function: its name in `FUNCTIONS`, its operands in order, its
    options by name.
    """

    function: str
    operands: tuple[Expression, ...]
    options: Mapping[str, Expression] = field(default_factory=dict)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A call of a function that the table does not know; `candidates` are the nearest names it has."""

    call: Call
    candidates: tuple[str, ...]

    def error(self) -> UnknownNameError:
        """What to raise where no LLM is there to answer it."""
        return UnknownNameError("function", self.call.name, candidates=self.candidates, span=self.call.span)


Bound: TypeAlias = Search | Application | Foreign
