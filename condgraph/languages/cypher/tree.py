"""The syntax tree of Cypher: clauses, patterns, and the expressions that only Cypher has.

Other expressions are the records of `engine.algebra.expressions`. A node or relationship without a
variable has one that begins with a space, which no query can name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from condgraph.engine.algebra.expressions import Constant, Expression

#: The functions over the rows of a group.
AGGREGATES = frozenset(("count", "sum", "avg", "min", "max", "collect", "stdev", "stdevp", "percentilecont", "percentiledisc"))

# -- Expressions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """`$name`: a value supplied with the query."""

    name: str


@dataclass(frozen=True, slots=True)
class Aggregate(Expression):
    """An aggregate over a group; `count` without `of` counts rows."""

    function: str
    of: Expression | None = None
    distinct: bool = False
    argument: Expression | None = None


@dataclass(frozen=True, slots=True)
class SubQuery(Expression):
    """`EXISTS { }`, `COUNT { }` or `COLLECT { }`."""

    kind: Literal["exists", "count", "collect"]
    query: Query


@dataclass(frozen=True, slots=True)
class PatternTest(Expression):
    """A pattern used as a truth value: whether it matches."""

    pattern: PathPattern


@dataclass(frozen=True, slots=True)
class PatternComprehension(Expression):
    """`[(n)-->(m) WHERE ... | m.name]`."""

    pattern: PathPattern
    where: Expression | None
    result: Expression

    def parts(self) -> tuple[Expression, ...]:
        """Return nothing: the parts are lowered with the pattern."""
        return ()


@dataclass(frozen=True, slots=True)
class AllProperties(Expression):
    """`n {.*}`: the properties of a variable as a map."""

    of: Expression


# -- Patterns ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodePattern:
    """`(n:Person {name: "Keanu"} WHERE ...)`: its variable and the conditions on it."""

    variable: str
    conditions: tuple[Expression, ...] = ()
    position: int = 0


@dataclass(frozen=True, slots=True)
class RelationshipPattern:
    """`-[r:ACTED_IN*1..3 {role: "Neo"}]->`.

    `types` are alternatives (empty for any), `length` the bounds of a path (None for one
    relationship). The conditions are about `variable`; for a path they are about each of its
    relationships, bound to `item`.
    """

    variable: str
    types: tuple[str, ...] = ()
    direction: Literal["forward", "backward", "either"] = "either"
    length: tuple[int, int | None] | None = None
    conditions: tuple[Expression, ...] = ()
    item: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Nodes with a relationship between each pair of neighbours."""

    nodes: tuple[NodePattern, ...]
    relationships: tuple[RelationshipPattern, ...] = ()
    variable: str | None = None
    shortest: Literal["shortest", "all shortest"] | None = None
    position: int = 0


# -- Clauses -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Match:
    """`MATCH` and `OPTIONAL MATCH`."""

    patterns: tuple[PathPattern, ...]
    where: Expression | None = None
    optional: bool = False
    position: int = 0


@dataclass(frozen=True, slots=True)
class Unwind:
    """`UNWIND list AS x`."""

    items: Expression
    variable: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A column of `WITH` or `RETURN`: its expression and name, and whether the name comes from `AS`."""

    value: Expression
    name: str
    named: bool
    position: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """A key of `ORDER BY`."""

    value: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Projection:
    """`WITH` and `RETURN`; `star` takes all variables in scope."""

    items: tuple[Item, ...]
    star: bool = False
    distinct: bool = False
    order: tuple[Order, ...] = ()
    skip: Expression | None = None
    limit: Expression | None = None
    where: Expression | None = None
    final: bool = False
    position: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """`CALL { }`; `imports` are its outer variables, None for those of a leading `WITH`."""

    query: Query
    imports: tuple[str, ...] | None = None
    optional: bool = False
    position: int = 0


@dataclass(frozen=True, slots=True)
class Procedure:
    """`CALL name(arguments) YIELD columns`; `columns` None for all.

    `position` and `end` delimit the text from `CALL` to the name.
    """

    name: str
    arguments: tuple[Expression, ...]
    columns: Projection | None
    optional: bool
    position: int
    end: int


Clause: TypeAlias = Match | Unwind | Projection | Call | Procedure


@dataclass(frozen=True, slots=True)
class Single:
    """The clauses of a query without `UNION`."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """Parts joined by `UNION`, whose positions are `unions`; `every` keeps duplicate rows (`UNION ALL`)."""

    parts: tuple[Single, ...]
    every: bool = False
    unions: tuple[tuple[int, int], ...] = field(default=(), compare=False)


def within(root: Any) -> Iterator[Any]:
    """Yield a part of a tree and all its descendants, in order; constants have none."""
    stack = [root]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        elif hasattr(item, "__dataclass_fields__") and not isinstance(item, Constant):
            stack.extend(getattr(item, name) for name in reversed(list(item.__dataclass_fields__)))
