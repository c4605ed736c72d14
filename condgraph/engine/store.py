"""The interface that queries need of a graph, common to snapshots, Neo4j and RDF stores.

A program reaches a store as a `Request`. The store lowers it against the schema that it has for the language, runs
the plan, and returns the answer; the deadline of the call is ambient (`engine.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Union

from condgraph.engine.algebra import Objects, Predicates, Qualifiers
from condgraph.engine.lowered import Lowered

if TYPE_CHECKING:
    from condgraph.engine.algebra import Facts, MembershipPattern, Node
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute import Run
    from condgraph.engine.execute.witness_plan import Unit
    from condgraph.engine.schema import Schema
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.stored_schema import StoredSchema

T = TypeVar("T")
#: The number of results of an operator, and the names of the first of them.
Size: TypeAlias = tuple[int, tuple[str, ...]]
#: Statements, or stated memberships (a direct pattern of sets), whose ends are fetched.
EndPart: TypeAlias = Union["Facts", "MembershipPattern"]
#: The schema for lowering: that of a snapshot, or the one stored on a server.
KnownSchema: TypeAlias = Union["Schema", "StoredSchema"]


@dataclass(slots=True)
class Request:
    """A program to answer: its language, the options of that language, and the limit on the number of values (None:
    all).

    A store may lower it more than once, since some names may become known only while the query runs. `begun` is when
    it was made (`time.monotonic`).
    """

    program: Any
    language: str
    options: dict[str, Any]
    limit: int | None
    #: Lowers a program against a schema (`languages.registry.lower`).
    lower: Callable[[KnownSchema, Any, str, dict[str, Any]], Lowered]
    begun: float = field(default_factory=monotonic)

    def lowered(self, schema: KnownSchema) -> Lowered:
        """Lower the program against a schema."""
        return self.lower(schema, self.program, self.language, self.options)


def valued(node: Node) -> Facts | None:
    """Return the statements that values belong to, which a store counts in place of the values."""
    return node.facts if isinstance(node, Objects | Predicates | Qualifiers) else None


def sized(node: Node, size: int | None, names: Iterable[str]) -> Size | None:
    """Return the size of an operator whose entities, or whose values' statements, a store counted; None if it did
    not, or for qualifiers, which a statement may lack.
    """
    return None if size is None or (size and isinstance(node, Qualifiers)) else (size, tuple(sorted(names)))


class Store(Protocol):
    """A store of a graph that can be queried."""

    def answer(self, request: Request) -> Answer:
        """Return the answer to a program, from one state of the graph."""
        ...

    def explain(self, request: Request) -> str:
        """Return the plan of a program, or the store's query for it, without running it."""
        ...

    def match(self, pattern: Any, *, exact: bool, **options: Any) -> Answer:
        """Return the subgraphs nearest to a pattern (`patterns.result.Matches`); options as for `Graph.match`."""
        ...

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """Return the number of statements or entities of each operator; `known` returns the ids of sets that the
        store cannot compute.
        """
        ...

    @property
    def naming_schema(self) -> KnownSchema:
        """The schema that can also look up names."""
        ...

    @property
    def linking_schema(self) -> KnownSchema:
        """The schema that can also find similar names."""
        ...


class QueriedGraph(Protocol):
    """The part of `condgraph.Graph` that queries its store."""

    timeout: float | None

    def _store_of(self, engine: str | None) -> Store: ...


class LocalGraph(Protocol):
    """The part of `condgraph.Graph` that is read in process, wherever it is stored."""

    timeout: float | None

    @property
    def current(self) -> Snapshot:
        """The columns of the graph."""

    def snapshot(self) -> LocalGraph:
        """Return the present state of the graph, in process."""


class QueryStore(Protocol):
    """A store that answers with its own queries, as its answers use it: each later property takes one further query."""

    #: The predicates declared to have one value at a time.
    declared: tuple[str, ...]

    def answer(self, request: Request) -> Answer:
        """As of `Store`."""
        ...

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """As of `Store`."""
        ...

    def witness(self, plan: Node) -> Run:
        """Return the plan run in process, on the statements and sets of the store that it rests on."""
        ...

    def gather(self, units: Sequence[Unit]) -> Snapshot:
        """Return the statements, sets and memberships of some units, with qualifiers and sources."""
        ...

    def sizes(self, nodes: Sequence[Node], most: int = 3, *, statements: bool = False) -> list[Size | None]:
        """Return the size of each operator, and at most `most` names of its entities; None for operators that only
        the client computes. With `statements`, values that the store does not count have the size of their statements
        (`valued`).
        """
        ...

    def steady(self, ask: Callable[[], T]) -> T:
        """Return the result of `ask`, from one state of the graph. Nested calls are handled by the outer one."""
        ...

    @property
    def naming_schema(self) -> KnownSchema:
        """The schema that can also look up names."""
        ...


#: The stores that are within `steady`, by identity, with the doubts to check at its end.
_STEADY: ContextVar[Mapping[int, list[str]]] = ContextVar("condgraph_held", default=MappingProxyType({}))


def held(store: object) -> list[str] | None:
    """Return the list of doubts to check when the outer call of `steady` ends; None outside of one."""
    return _STEADY.get().get(id(store))


@contextmanager
def holding(store: object) -> Iterator[list[str]]:
    """Mark that all queries of a store in the body must be of one state, which the caller ensures; yield the list of
    doubts.
    """
    doubts: list[str] = []
    token = _STEADY.set({**_STEADY.get(), id(store): doubts})
    try:
        yield doubts
    finally:
        _STEADY.reset(token)


def plan_answer(store: Store | QueryStore, plan: Node, limit: int | None = None) -> Answer:
    """Return the answer of a store to a plan, with at most `limit` values."""
    lowered = Lowered(plan, [("", plan)])
    return store.answer(Request("", "kopl", {}, limit, lambda *_: lowered))


def plan_texts(store: Store | QueryStore, plan: Node, limit: int | None = None) -> list[str]:
    """Return the texts of a plan's result on a store, at most `limit`."""
    return list(plan_answer(store, plan, limit).texts)
