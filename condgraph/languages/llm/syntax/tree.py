"""The syntax tree of an LLM query: what `parse.parse` gives, and what the lowering reads.

A `Program` is a list of `Query` lines; each holds one expression. Every node is frozen and carries
its `span` (start and end offset in the program's text), which takes no part in equality. An
`OutputRef` names an earlier query by its position in `Program.queries`, so that nothing is looked
up by label later. Nodes hold what was written; `languages.llm.binding.bind` says which function and
parameters are meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as OneOf

from condgraph.engine.errors import CondgraphError, UnknownNameError

# -- trees -------------------------------------------------------------------------------------------
# A `Program` is a list of `Query` lines; each holds one expression. Every node is frozen and carries
# its `span` (start and end offset in the program's text), which takes no part in equality. An
# `OutputRef` names an earlier query by its position in `Program.queries`, so that nothing is looked
# up by label later. Nodes hold what was written; `languages.llm.binding.bind` says which function and
# parameters are meant.


Span: TypeAlias = tuple[int, int]
NOWHERE: Span = (0, 0)

CompareOp: TypeAlias = OneOf["=", "!=", "<", ">", "<=", ">="]
InfixOp: TypeAlias = OneOf["+", "-", "*", "/", "%", "and", "or", "in"]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user should know about a program that was read anyway."""

    message: str
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.message} (at character {self.span[0] + 1})"


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, number or bare word, as it was written; `quoted` tells `'None'` from `None`."""

    text: str
    quoted: bool = True
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OutputRef:
    """The result of the query at `position` in `Program.queries`."""

    position: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Item:
    """One member of a result by its 0-based index, from the end where negative:
    `output_of_query1[0]`.
    """

    of: Expression
    index: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Items:
    """Several expressions side by side: `['A', 'B']`."""

    items: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call: its name (None by position), the operator between name and value, and
    the value.
    """

    name: str | None
    op: CompareOp
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function by the name it was written with, and its arguments."""

    name: str
    arguments: tuple[Argument, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`."""

    op: CompareOp
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Infix:
    """Arithmetic, `and`, `or`, or membership."""

    op: InfixOp
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a truth value."""

    of: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Ternary:
    """`then` if `test` holds, else `otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span = field(default=NOWHERE, compare=False)


Expression: TypeAlias = Literal | OutputRef | Item | Items | Call | Comparison | Infix | Not | Ternary


@dataclass(frozen=True, slots=True)
class Query:
    """One line: its label (`"4"`, `"4_houston"`), the step it answers in words, and its expression.

    `error` says why a line has no expression; such a line is only kept when no other query needs
    it.
    """

    label: str
    expression: Expression | None
    step: str = ""
    error: CondgraphError | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program. The last query is the answer; `used` are the positions of those that it
    needs, itself included, ascending.
    """

    queries: tuple[Query, ...]
    used: tuple[int, ...]
    target_type: str | None = None
    notices: tuple[Notice, ...] = field(default=(), compare=False)


def children(node: Expression) -> Iterator[Expression]:
    """The expressions directly under a node, in the order they were written."""
    if isinstance(node, Call):
        yield from (argument.value for argument in node.arguments)
    elif isinstance(node, Items):
        yield from node.items
    elif isinstance(node, (Comparison, Infix)):
        yield node.left
        yield node.right
    elif isinstance(node, (Item, Not)):
        yield node.of
    elif isinstance(node, Ternary):
        yield node.condition
        yield node.then
        yield node.otherwise


def references(node: Expression) -> Iterator[OutputRef]:
    """Every reference to another query under a node, itself included."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, OutputRef):
            yield current
        waiting.extend(children(current))


# -- bound calls -------------------------------------------------------------------------------------
# What bound calls of an LLM query are: a search, a function with its operands and options, or a call
# of a function that nobody knows (`binding` makes them).


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
