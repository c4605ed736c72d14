"""What the compiler and a layout say to each other about a scan of statements."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from condgraph.cypher.layout.cells import Cell
from condgraph.engine.algebra import Family

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema


class Writing(Protocol):
    """What a layout asks of the compiler: fresh variables, parameters, and what the graph holds."""

    schema: StoredSchema

    def name(self, prefix: str) -> str:
        """A fresh variable."""
        ...

    def parameter(self, value: Any) -> str:
        """A parameter holding a value, as it is written."""
        ...


@dataclass(slots=True)
class Wanted:
    """The statements that a scan looks for.

    `anchor` is the end it starts from, bound before or (`bound` false) any entity; `other` is the
    other end. `outward` says that the anchor is the subject. `predicates` None stands for all.
    `table` is the parameter of a source whose rows the anchors are, where the statements of a table
    are looked for. `conditions` hold beside what the layout adds. `anchors` is how many bound anchors
    there are likely to be.
    """

    fact: str
    anchor: str
    other: str
    predicates: tuple[str, ...] | None
    family: Family
    outward: bool
    bound: bool
    table: str | None
    conditions: list[str]
    anchors: float = float("inf")


@dataclass(slots=True)
class Match:
    """One MATCH that gives statements.

    `cell` is the object as a value, in conditions on the MATCH and behind it. `whole` are further
    conditions by which an index gives all statements, left out where a test is one that an index
    answers; `hint` says which index to take. `after` are clauses behind the MATCH that bind the
    variables of the statement and the object where no pattern can, since a value is a property: the
    object then is a map with the fields of the cell.

    Without a `pattern` the clauses `before` bind all, and the conditions follow them. `branches` are
    patterns with a condition each in place of the one, whose rows together are wanted, and `kept` the
    variables that these bind; given labels, they are for the members of these alone.
    """

    pattern: str | None
    conditions: list[str]
    cell: Cell
    whole: list[str] = field(default_factory=list)
    hint: str = ""
    after: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    branches: Callable[[Collection[str] | None], list[tuple[str, str]]] | None = None
    kept: tuple[str, ...] = ()
