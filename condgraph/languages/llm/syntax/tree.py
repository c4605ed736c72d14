"""The syntax tree of LLM queries, which `parse.parse` makes and the lowering reads.

A `Program` is a list of `Query` lines; each holds one expression. Every node is frozen and has a
`span` (start and end offset in the program's text), which equality ignores. An `OutputRef` refers to
an earlier query by its position in `Program.queries`, so labels are never looked up again. Nodes
keep the written names; `lower.query.bind` decides which function and parameters they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as OneOf

from condgraph.engine.errors import CondgraphError, UnknownNameError

# -- trees -------------------------------------------------------------------------------------------


Span: TypeAlias = tuple[int, int]
NOWHERE: Span = (0, 0)

CompareOp: TypeAlias = OneOf["=", "!=", "<", ">", "<=", ">="]
InfixOp: TypeAlias = OneOf["+", "-", "*", "/", "%", "and", "or", "in"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark for the user about a program that could be parsed."""

    message: str
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"{self.message} (at character {self.span[0] + 1})"


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, number or bare word, as written; `quoted` distinguishes `'None'` from `None`."""

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
    """A member of a result by its 0-based index, negative from the end: `output_of_query1[0]`."""

    of: Expression
    index: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Items:
    """A list of expressions: `['A', 'B']`."""

    items: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: its name (None if positional), the operator after it, and its value."""

    name: str | None
    op: CompareOp
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function, named as written, and its arguments."""

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
    """The negation of a truth value."""

    of: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Ternary:
    """`then` if `condition` holds, else `otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span = field(default=NOWHERE, compare=False)


Expression: TypeAlias = Literal | OutputRef | Item | Items | Call | Comparison | Infix | Not | Ternary


@dataclass(frozen=True, slots=True)
class Query:
    """A line: its label (`"4"`, `"4_houston"`), the words of its step, and its expression.

    `error` explains why a line has no expression; that is allowed only if no other query needs it.
    """

    label: str
    expression: Expression | None
    step: str = ""
    error: CondgraphError | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A parsed program. The last query is the answer; `used` are the positions of the queries that it
    needs, itself included, ascending.
    """

    queries: tuple[Query, ...]
    used: tuple[int, ...]
    target_type: str | None = None
    notices: tuple[Notice, ...] = field(default=(), compare=False)


def children(node: Expression) -> Iterator[Expression]:
    """Yield the direct subexpressions of a node, as written."""
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
    """Yield every reference to another query in an expression."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, OutputRef):
            yield current
        waiting.extend(children(current))


# -- bound calls -------------------------------------------------------------------------------------
# A bound call is a search, a native function with its operands and options, or a call of an unknown
# function; `lower.query.bind` makes them.


#: The parameters of get_information by their letters in the table of 32 cases.
PARAMETERS: Final = {"H": "head_entity", "R": "relation", "T": "tail_entity", "K": "key", "V": "value"}


@dataclass(frozen=True, slots=True)
class ColumnCondition:
    """A condition on an object or a qualifier: an operator and the value to compare with."""

    op: CompareOp
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Search:
    """A bound get_information.

    `tail` and `value` hold the conditions that must all hold; empty if the parameter is missing.
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
        """The letters of the parameters that are present: "HR", "RTKV"."""
        parts = (self.head, self.relation, self.tail, self.key, self.value)
        return "".join(letter for letter, part in zip(PARAMETERS, parts, strict=True) if part is not None and part != ())


@dataclass(frozen=True, slots=True)
class Application:
    """A bound call of a native function: its name in `FUNCTIONS`, its operands, and its options by name."""

    function: str
    operands: tuple[Expression, ...]
    options: Mapping[str, Expression] = field(default_factory=dict)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A call of an unknown function; `candidates` are the nearest known names."""

    call: Call
    candidates: tuple[str, ...]

    def error(self) -> UnknownNameError:
        """Return the error to raise if no language model can answer the call."""
        return UnknownNameError("function", self.call.name, candidates=self.candidates, span=self.call.span)


Bound: TypeAlias = Search | Application | Foreign
