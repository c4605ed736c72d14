"""What lowering asks of a graph in a remote RDF store: its stored schema with names looked up one by
one, or the schema of the whole graph, pulled into process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from condgraph.engine.bounds import cached
from condgraph.engine.schema import beginnings, ids_of_key, offered
from condgraph.engine.stored_schema import StoredSchema
from condgraph.sparql.compile.group import Target
from condgraph.sparql.store import RdfStore

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution

    from condgraph.engine.snapshot.snapshot import Snapshot

#: Names of entities that are remembered, with whether they are there.
_MOST_NAMES: Final = 100_000


class RemoteGraph(Protocol):
    """A graph in a remote store, as far as names are looked up there."""

    @property
    def target(self) -> Target:
        """What compiling knows of the graph."""

    def select(self, text: str) -> list[QuerySolution]:
        """The rows of a SELECT over the graph."""

    def ask(self, text: str) -> bool:
        """The answer of an ASK over the graph."""

    def named(self, names: Iterable[str]) -> set[str]:
        """Those of the names that an entity or concept has."""

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all entities, concepts and rows; in a large graph those that stand around
        some texts.
        """

    def linked(self) -> Snapshot:
        """The graph pulled into process."""


class LookupSchema(StoredSchema):
    """A stored schema that looks names of entities up where the graph is, each once."""

    def __init__(self, found: dict[str, Any], graph: RemoteGraph) -> None:
        super().__init__(found)
        self._graph = graph
        self._names: dict[str, bool] = {}

    def has_entity(self, name: str) -> bool:
        """Some entity or concept has exactly this name: one small query for a name that was not
        asked for before.
        """
        found = self._names.get(name)
        if found is None:
            if len(self._names) > _MOST_NAMES:
                self._names.clear()
            found = self._names[name] = bool(self._graph.named((name,)))
        return found

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """The rows, id and name, that a text is the key of."""
        found = []
        for ident in ids_of_key(key, self.keyed_tables):
            rows = self._graph.select(f"SELECT ?name WHERE {{ {self._graph.target.names.entity(ident)} <pred:name> ?name }}")
            found += [(ident, row["name"].value) for row in rows]
        return tuple(found)

    def has_id(self, ident: str) -> bool:
        """Some entity has this id."""
        return self._graph.ask(f"ASK {{ {self._graph.target.names.entity(ident)} <pred:name> ?name }}")

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Entity names most like `name`, as `engine.schema.Schema` gives them."""
        graph = self._graph
        rows = graph.select(f"SELECT ?name WHERE {{ {graph.target.names.entity(name)} <pred:name> ?name }}")
        return offered(name, [row["name"].value for row in rows], graph.all_names(beginnings(name)), most)


class LinkedStore(RdfStore):
    """A store whose schema is that of the whole graph, pulled into process."""

    def __init__(self, graph: RemoteGraph) -> None:
        self._graph = graph

    def select(self, text: str) -> list[QuerySolution]:
        """The rows of a SELECT over the graph."""
        return self._graph.select(text)

    def ask(self, text: str) -> bool:
        """The answer of an ASK over the graph."""
        return self._graph.ask(text)

    @cached
    def target(self) -> Target:
        """What compiling knows of the graph."""
        target = self._graph.target
        return replace(target, schema=self._graph.linked().schema)
