"""The five sorts of operators, what a test is, and the words operators are parametrised with."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, Literal, TypeAlias

from condgraph.engine.algebra.facets import Facets
from condgraph.engine.algebra.needs import Needs, declared
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind

Operator: TypeAlias = Literal["=", "!=", "<", ">", "<=", ">="]
OPERATORS: Final[tuple[Operator, ...]] = ("=", "!=", "<", ">", "<=", ">=")
End: TypeAlias = Literal["subject", "object"]
#: Which objects a statement may have: entities (relation), values (attribute), or either.
Family: TypeAlias = Literal["relation", "attribute", "any"]
Direction: TypeAlias = Literal["largest", "smallest"]
#: How a validity stands to an interval (`During`).
Span: TypeAlias = Literal["overlaps", "disjoint", "before", "after", "within", "contains", "until", "from"]
ENTITY_KINDS: Final = (EntityKind.ENTITY, EntityKind.ROW)
#: The types a value can have in a literal's readings, in the order they are tried.
LITERAL_KINDS: Final = (Kind.TIME, Kind.QUANTITY, Kind.TEXT)


class Node:
    """An operator. `inputs` are the operators it takes; each operator says as class variables what
    has to be whole for its result (`needs`), and what others must know of it (`facets`).
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        declared(cls, "Node", {"needs": Needs, "facets": Facets})

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What has to be whole for the result."""

    @property
    @abstractmethod
    def facets(self) -> Facets:
        """What others must know of it."""

    def inputs(self) -> tuple[Node, ...]:
        """The operators this one takes, in order."""
        return ()


class Entities(Node):
    """A set of entities."""

    __slots__ = ()


class Facts(Node):
    """A set of statements, each with the end that was reached."""

    __slots__ = ()


class Values(Node):
    """A bag of values with their carriers."""

    __slots__ = ()


class Scalar(Node):
    """One number, text, time or truth value."""

    __slots__ = ()


class Condition:
    """What `Where`, `WhereQualifier`, `FilterValues` and `AnySatisfies` ask of a value; `needs` is
    as of operators.
    """

    __slots__ = ()
    __test__ = False

    def __init_subclass__(cls) -> None:
        declared(cls, "", {"needs": Needs})

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What has to be whole for it to hold."""

    def parts(self) -> tuple[Condition, ...]:
        """The tests it is made of."""
        return ()

    def inputs(self) -> tuple[Node, ...]:
        """The operators the test refers to."""
        return tuple(node for part in self.parts() for node in part.inputs())


class Table(Node):
    """Rows of cells under named columns, in an order."""

    __slots__ = ()
