"""Asking a Neo4j database, however it is laid out: one query a program, and one for each thing that its
answer tells later.

`cypher.store` has the graphs that condgraph writes, `cypher.native.store` the databases of others;
both say how they are laid out, what is known of them, and how names are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from condgraph.cypher.answer import Neo4jAnswer, pasteable
from condgraph.cypher.asked import Asked
from condgraph.cypher.asked import ask as asked_of
from condgraph.cypher.compile.compiled import Compiled
from condgraph.cypher.compile.plan import compile_plan, compile_sizes
from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.base import Layout
from condgraph.cypher.records import Records
from condgraph.engine.algebra import Node
from condgraph.engine.execute.searched import countable
from condgraph.engine.facts import Source
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.names.remote import LinkingSchema, NameReader

if TYPE_CHECKING:
    from condgraph.cypher.shapes import Shapes
    from condgraph.cypher.warming import Warming
    from condgraph.engine.check import KnownIds
    from condgraph.engine.execute import Run
    from condgraph.engine.store import Request, Size

T = TypeVar("T")


class AskingStore(ABC):
    """A graph of a Neo4j database that can be asked: over a connection, under a name, in a layout."""

    def __init__(self, connection: Connection, name: str, layout: Layout) -> None:
        self.connection, self.name, self._layout = connection, name, layout
        self.place = connection.place
        self._warming: Warming | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self._warming is not None:
            self._warming.end()
        self.connection.close()

    def warm(self, *, seconds: float | None = None) -> int:
        """Have the server plan the commonest shapes of queries over the graph, for so many seconds at
        most; how many texts it planned.
        """
        from condgraph.cypher.warming import warm

        return warm(self.connection, self._shapes, seconds=seconds)

    def warm_behind(self) -> Warming:
        """The same in the background."""
        from condgraph.cypher.warming import Warming

        self._warming = Warming(self.connection, self._shapes)
        return self._warming

    def _shapes(self) -> Shapes:
        """The shapes of queries that are likely to be asked of it."""
        from condgraph.cypher.shapes import Shapes

        return Shapes(self.name, self.schema, self.layout)

    @property
    def timeout(self) -> float | None:
        """Seconds of a call without a deadline of its own."""
        return self.connection.timeout

    @property
    def layout(self) -> Layout:
        """How the graph is laid out now."""
        return self._layout

    def _layout_for(self, plans: Sequence[Node]) -> Layout:
        """The layout for a query beside the one of an answer: about steps, or what an answer rests on."""
        return self.layout

    def _fetched(self, compiled: Compiled) -> list[dict[str, Any]]:
        """The rows of what an answer rests on."""
        return self.run(compiled)

    # -- what there is -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def schema(self) -> StoredSchema:
        """What lowering knows."""

    @property
    @abstractmethod
    def known_sources(self) -> tuple[Source, ...]:
        """The sources in the order they were loaded."""

    @abstractmethod
    def names(self) -> NameReader:
        """Names read from the graph."""

    @abstractmethod
    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, of one state of the graph."""

    @property
    def _named_schema(self) -> LinkingSchema:
        """The schema with names looked up."""
        named: LinkingSchema | None = self.schema.kept.get("named")
        if named is None:
            named = self.schema.kept["named"] = LinkingSchema(self.schema, self.names())
        return named

    # -- asking ------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Neo4jAnswer:
        """Answer a program with one query; names that it looks up are known only then."""

        def ask() -> tuple[Asked, list[dict[str, Any]]]:
            asked = self._asked(request)
            return asked, self.run(asked.compiled)

        def answered(asked: Asked, rows: list[dict[str, Any]]) -> Neo4jAnswer:
            return Neo4jAnswer(self, request, asked.lowered, asked.compiled, rows)

        asked, rows = self.steady(ask)
        other = asked.check(asked.compiled.unknown(rows), self._named_schema)
        if other is None:
            answer = answered(asked, rows)
            if asked.names and (not answer.values or answer.values in ([0], [False])):
                other = asked.check(self._named_schema.missing(asked.names), self._named_schema)
        if other is not None:
            answer = answered(other, self.steady(lambda: self.run(other.compiled)))
        return answer

    def explain(self, request: Request) -> str:
        """The Cypher of a program as Browser takes it, with its parameters, without running it."""
        return pasteable(self._asked(request).compiled)

    def _asked(self, request: Request) -> Asked:
        """A program as its query."""
        return asked_of(request, self.name, self.schema, lambda: self._named_schema, self.layout)

    def run(self, compiled: Compiled) -> list[dict[str, Any]]:
        """The rows of a compiled query."""
        return self.connection.read(compiled.text, compiled.parameters)

    def sizes(self, nodes: Sequence[Node]) -> list[Size | None]:
        """How many results each operator gives, and the first of them: one query for all. None for
        those it does not give.
        """
        compiled = compile_sizes(list(nodes), self.name, self.schema, layout=self._layout_for(nodes))
        found = {row["step"]: (row["size"], tuple(row["sample"])) for row in self.run(compiled)}
        return [found.get(i) for i in range(len(nodes))]

    def statements_of(self, plan: Node) -> Compiled:
        """The query for the statements that a table is made of, which the client groups."""
        return compile_plan(plan, self.name, self.schema, layout=self.layout, grouped=False)

    def witness(self, plan: Node) -> Run:
        """A plan run in process on the statements it rests on."""
        from condgraph.cypher.witness import compile_witness, run_witness

        layout = self._layout_for([plan])
        rows = self._fetched(compile_witness(plan, self.name, self.schema, layout=layout))
        return run_witness(plan, rows, self.known_sources, layout)

    def around(self, ids: Sequence[str], names: Sequence[str], most: int, *, values: bool, concepts: bool = False) -> Snapshot:
        """The statements around entities, for chains: one query."""
        from condgraph.cypher.around import around

        return around(self, ids, names, most, values=values, concepts=concepts)

    def counted(self, nodes: Sequence[Node], known: KnownIds) -> list[int]:
        """How many statements, or entities, each operator gives: one query; `known` has the ids of
        what the client works out.
        """
        from condgraph.cypher.compile.support import lowered
        from condgraph.cypher.witness import compile_counts

        asked = [countable(node, lambda one: id(one) in lowered(one), known) for node in nodes]
        compiled = compile_counts(asked, self.name, self.schema, layout=self._layout_for(asked))
        found = {row["step"]: row["size"] for row in self.run(compiled)}
        return [found.get(step, 0) for step in range(len(asked))]

    def cypher(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Run a reading query that a person (or a model) wrote, after its text and the server's
        plan of it were checked.
        """
        self.connection.check_reading(text, parameters)
        return Records(self.connection.read(text, parameters))
