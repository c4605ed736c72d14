"""The rows of a query while it is lowered: which variable of the plan each name is, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from condgraph.engine.algebra import Entities, Solutions, solutions
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.store import KnownSchema
from condgraph.languages.cypher import tree

#: What a variable may be; "value" is anything that the text does not tell.
NODE, RELATIONSHIP, PATH, RELATIONSHIPS, VALUE, SCALAR = "node", "relationship", "path", "relationships", "value", "scalar"
START: Final = solutions.Pattern(())


@dataclass(slots=True)
class Rows:
    """A plan and what its rows are: `scope` has the variable of the plan for each name of the query, `types` what
    each variable of the plan is, `nullable` those that may be null. `carried` are the variables by which the
    rows of a subquery belong to the rows outside, which `seed` has once.
    """

    plan: Solutions
    scope: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    nullable: set[str] = field(default_factory=set)
    carried: tuple[str, ...] = ()
    seed: Solutions | None = None

    def copy(self) -> Rows:
        """Its own names and types over the same plan."""
        return replace(self, scope=dict(self.scope), types=dict(self.types), nullable=set(self.nullable))


def conjuncts(expression: ex.Expression | None) -> list[ex.Expression]:
    """The conditions that an `AND` joins; none of None."""
    if expression is None:
        return []
    if isinstance(expression, ex.And):
        return [part for operand in expression.operands for part in conjuncts(operand)]
    return [expression]


def all_of(conditions: Sequence[ex.Expression]) -> ex.Expression:
    """Conditions joined by `AND`; at least one."""
    return conditions[0] if len(conditions) == 1 else ex.And(tuple(conditions))


def mentioned_in(node: Any, found: dict[str, None]) -> None:
    """The names of variables in a part of a tree, in order."""
    for item in tree.within(node):
        if isinstance(item, ex.Variable):
            found[item.name] = None
        elif isinstance(item, tree.NodePattern | tree.RelationshipPattern | tree.PathPattern):
            if item.variable is not None:
                found[item.variable] = None
        elif isinstance(item, tree.Projection) and item.star:
            # Whatever there is.
            found[" *"] = None


class Naming(Protocol):
    """What patterns need of the query that they are in."""

    schema: KnownSchema

    def fresh(self, name: str = "") -> str:
        """A variable of the plan that nobody has."""
        ...

    def label(self, name: str) -> bool:
        """Whether there is a concept, or table, of a name."""
        ...

    def relationship_type(self, name: str) -> bool:
        """Whether there is a relation of a name."""
        ...

    def label_set(self, names: Sequence[str]) -> Entities:
        """The entities that have one of some labels, which are known."""
        ...

    def having(self, key: str, operator: ex.ComparisonOperator, value: ex.Expression, rows: Rows) -> Entities | None:
        """Entities of which those are whose property compares so; None where no set is quickly found."""
        ...

    def filtered(self, rows: Rows, where: ex.Expression | None) -> None:
        """Keep the rows for which a condition is true."""
        ...
