"""What asking needs of a graph, wherever it is kept: what the snapshot, Neo4j and RDF stores have
in common.

A program reaches a store as a `Request`. The store lowers it against the schema that it has for the
language, runs the plan, and gives the answer; what bounds the call is ambient (`engine.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Union

from condgraph.engine.algebra import Objects, Predicates, Qualifiers
from condgraph.engine.lowered import Lowered

if TYPE_CHECKING:
    from condgraph.engine.algebra import Facts, Node
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute import Run
    from condgraph.engine.execute.witness_plan import Unit
    from condgraph.engine.schema import Schema
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.stored_schema import StoredSchema

T = TypeVar("T")
#: How many results an operator gives, and the names of the first of them.
Size: TypeAlias = tuple[int, tuple[str, ...]]
#: What lowering knows of a graph: the schema of a snapshot, or the one that a store keeps.
KnownSchema: TypeAlias = Union["Schema", "StoredSchema"]


@dataclass(slots=True)
class Request:
    """A program that a store is asked: its language, the options of that language, and the most
    values to give (None: all).

    A store may have it lowered more than once, since which names there are may come to light only
    as it is asked.
    """

    program: Any
    language: str
    options: dict[str, Any]
    limit: int | None
    #: Lowers a program against a schema (`languages.registry.lower`).
    lower: Callable[[KnownSchema, Any, str, dict[str, Any]], Lowered]

    def lowered(self, schema: KnownSchema) -> Lowered:
        """Its plan against a schema."""
        return self.lower(schema, self.program, self.language, self.options)


def valued(node: Node) -> Facts | None:
    """The statements that values are of, which a store counts in place of them."""
    return node.facts if isinstance(node, Objects | Predicates | Qualifiers) else None


def sized(node: Node, size: int | None, names: Iterable[str]) -> Size | None:
    """The size of an operator whose entities a store counted, or of values whose statements it counted; None where it did
    not, and of qualifiers, which a statement need not have.
    """
    return None if size is None or (size and isinstance(node, Qualifiers)) else (size, tuple(sorted(names)))


class Store(Protocol):
    """A graph where it is kept, as one that can be asked."""

    def answer(self, request: Request) -> Answer:
        """The answer to a program, of one state of the graph."""
        ...

    def explain(self, request: Request) -> str:
        """What a program becomes here, without running it: its plan, or the query of the store."""
        ...

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Answer:
        """The subgraphs nearest to a pattern (`patterns.result.Matches`); options as for
        `Graph.match`.
        """
        ...

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """How many statements, or entities, each operator gives; `known` has the ids of sets that
        the store cannot work out.
        """
        ...


class QueriedGraph(Protocol):
    """The part of `condgraph.Graph` that asks its store."""

    timeout: float | None

    def _store_of(self, engine: str | None) -> Store: ...


class LocalGraph(Protocol):
    """The part of `condgraph.Graph` that reads it in process, wherever it is kept."""

    timeout: float | None

    @property
    def current(self) -> Snapshot:
        """Its columns."""

    def snapshot(self) -> LocalGraph:
        """The graph as it is now, in process."""


class QueryStore(Protocol):
    """A store that answers with queries of its own, as its answers see it: what they tell later is
    one further query each.
    """

    #: The predicates that are declared as having one value at a time.
    declared: tuple[str, ...]

    def answer(self, request: Request) -> Answer:
        """As of `Store`."""
        ...

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """As of `Store`."""
        ...

    def witness(self, plan: Node) -> Run:
        """The plan run in process, on the statements and sets of the store that it rests on."""
        ...

    def gather(self, units: Sequence[Unit]) -> Snapshot:
        """The statements, sets and memberships of some units, with qualifiers and sources."""
        ...

    def sizes(self, nodes: Sequence[Node], most: int = 3, *, statements: bool = False) -> list[Size | None]:
        """The size of each operator, and the names of its first entities, at most so many; None of those that only the client
        works out. With `statements`, values that the store does not count are as many as their statements (`valued`).
        """
        ...

    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, of one state of the graph. Calls within a call are looked after by the outer one."""
        ...

    @property
    def naming_schema(self) -> KnownSchema:
        """The schema that looks up names as well."""
        ...


#: The stores that are within `steady`, by identity, with what is in doubt there.
_HELD: ContextVar[Mapping[int, list[str]]] = ContextVar("condgraph_held", default=MappingProxyType({}))


def held(store: object) -> list[str] | None:
    """A list for what is to be looked at once the outer call of `steady` ends; None outside of one."""
    return _HELD.get().get(id(store))


@contextmanager
def holding(store: object) -> Iterator[list[str]]:
    """What is asked of a store within is of one state, which the caller makes sure of."""
    doubts: list[str] = []
    token = _HELD.set({**_HELD.get(), id(store): doubts})
    try:
        yield doubts
    finally:
        _HELD.reset(token)


def plan_answer(store: Store | QueryStore, plan: Node, limit: int | None = None) -> Answer:
    """What a plan gives on a store, at most `limit` values."""
    made = Lowered(plan, [("", plan)])
    return store.answer(Request("", "kopl", {}, limit, lambda *_: made))


def plan_texts(store: Store | QueryStore, plan: Node, limit: int | None = None) -> list[str]:
    """The texts that a plan gives on a store, at most `limit`."""
    return list(plan_answer(store, plan, limit).texts)
