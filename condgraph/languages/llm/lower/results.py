"""What the queries of a program leave behind while it is lowered: operators, and what is known of
them from the schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from condgraph.engine.algebra import Apply, Constants, Entities, Facts, Node, Scalar, Table, Values
from condgraph.engine.errors import PlanError
from condgraph.engine.schema import Kinds
from condgraph.engine.values import NO_UNIT, Kind, Value
from condgraph.languages.llm.syntax.tree import Literal, Span

NUMBERS: Final[Kinds] = {(Kind.QUANTITY, NO_UNIT): 1}
TEXTS: Final[Kinds] = {(Kind.TEXT, NO_UNIT): 1}
TIMES: Final[Kinds] = {(Kind.TIME, NO_UNIT): 1}


@dataclass(slots=True)
class Result:
    """The operator a query became, and what later queries need to know of it.

    `table` is the source whose rows it holds, or whose rows carry its values; `sources` are the
    sources it comes from (empty: not known, or all). `column` is the relation used last. `kinds`
    are the types of its values. `led` are the constants that led to it, as the graph spells them.
    `validity` are the facts whose intervals the values are. `carried` tells values that a statement
    or a row carries from those a function made. `order` is how `sort` was asked for. `facts` are
    those whose objects the entities are: as a column, every one of them counts. `empty` are rows
    without a value of `column`.
    """

    node: Node
    table: str | None = None
    sources: tuple[str, ...] = ()
    column: str | None = None
    kinds: Kinds = field(default_factory=dict)
    led: tuple[str, ...] = ()
    validity: Facts | None = None
    carried: bool = False
    order: str = ""
    #: A literal that is not resolved yet: what it stands for depends on where it is used.
    literal: Literal | None = None
    span: Span = (0, 0)
    facts: Facts | None = None
    empty: bool = False

    @property
    def is_entities(self) -> bool:
        """Whether it is a set of entities."""
        return isinstance(self.node, Entities)

    @property
    def is_rows(self) -> bool:
        """Whether it is a set of table rows."""
        return self.is_entities and self.table is not None

    @property
    def is_scalar(self) -> bool:
        """Whether it is a count, a truth value or the like, which has no members."""
        return isinstance(self.node, Scalar)

    def of(self, node: Node, **changes: object) -> Result:
        """The same with another operator."""
        # Spelled out: `dataclasses.replace` takes longer than lowering a query.
        fresh = Result(
            node,
            self.table,
            self.sources,
            self.column,
            self.kinds,
            self.led,
            self.validity,
            self.carried,
            self.order,
            None,
            self.span,
            self.facts if node is self.node else None,
            self.empty and node is self.node,
        )
        for name, value in changes.items():
            setattr(fresh, name, value)
        return fresh


def as_values(result: Result) -> Values:
    """Values out of values or a scalar; entities have to be given a column first."""
    if isinstance(result.node, Values):
        return result.node
    if isinstance(result.node, Table):
        hint = "having, order_by, limit and top take a table; group_by ends what is looked up"
        raise PlanError("a table of groups is no set that this function could take", span=result.span, hint=hint)
    assert isinstance(result.node, Scalar)
    return Apply("identity", (result.node,))


def given(*values: Value) -> Constants:
    """Values written in the program."""
    return Constants(values)
