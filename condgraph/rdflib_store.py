"""A graph as a read-only store of rdflib.

    rdflib.Graph(store="condgraph").open("world")

This has the plain triples (`sparql.plain`) of the graph "default" in the folder `world`. The store copies them into
memory, as rdflib's own store does, because Oxigraph does not preserve how numbers are written.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

import condgraph
from condgraph.engine.errors import MissingExtraError, OptionError, ReadOnlyError
from condgraph.sparql.layout import base_iri
from condgraph.sparql.plain import Plain

try:
    from rdflib import BNode, Graph
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
    from rdflib.plugins.stores.memory import Memory
    from rdflib.store import NO_STORE, VALID_STORE
except ImportError:
    raise MissingExtraError("rdflib", "rdflib") from None


class CondgraphStore(Memory):
    """A read-only store of rdflib over a graph of condgraph: `Graph(store="condgraph")`, then `open(place)`.

    The place is one for `condgraph.open`, followed by `?graph=NAME` for a graph other than "default", or it is an
    open graph of condgraph. The default graph of the store has the graph's own triples; its named graphs are those of
    the loaded RDF.
    """

    def __init__(self, configuration: Any = None, identifier: Any = None) -> None:
        super().__init__(None, identifier)
        self._opened = False
        if configuration is not None:
            self.open(configuration)

    def open(self, configuration: Any, create: bool = False) -> int | None:
        """Copy the triples of a graph. Raises `ReadOnlyError` for `create`, and `OptionError` if the store is open
        already.
        """
        if create:
            raise ReadOnlyError("a store of condgraph is made by loading", hint="condgraph load, or Graph.load")
        if self._opened:
            raise OptionError("this store is open already", hint="another graph is another store")
        if isinstance(configuration, condgraph.Graph):
            self._fill(configuration)
            return VALID_STORE
        place, mark, name = os.fspath(configuration).partition("?graph=")
        if not os.path.isdir(place) and "://" not in place:
            return NO_STORE
        with condgraph.open(place, graph=name if mark else "default", read_only=True) as graph:
            self._fill(graph)
        return VALID_STORE

    def _fill(self, graph: Any) -> None:
        self._opened = True
        from condgraph.sparql.rdflib_graph import quads

        default = Graph(store=self, identifier=DATASET_DEFAULT_GRAPH_ID)
        contexts: dict[Any, Graph] = {}
        for triple, name in quads(Plain(graph.snapshot().current, base_iri(graph.name), star=False)):
            context = default if name is None else contexts.setdefault(name, Graph(store=self, identifier=name))
            super().add(triple, context)
            super().add_graph(context)

    def triples(self, triple_pattern: Any, context: Any = None) -> Any:
        """Return the matching triples. A graph over the store without its own name (`Graph(store="condgraph")`)
        matches all triples.
        """
        if context is not None and isinstance(context.identifier, BNode) and context.identifier not in self._named():
            context = None
        return super().triples(triple_pattern, context)

    def __len__(self, context: Any = None) -> int:
        if context is not None and isinstance(context.identifier, BNode) and context.identifier not in self._named():
            context = None
        return super().__len__(context)

    def _named(self) -> set[Any]:
        return {context.identifier for context in super().contexts()}

    # -- refused changes ---------------------------------------------------------------------------

    def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
        _refuse()

    def addN(self, quads: Any) -> None:
        _refuse()

    def remove(self, triple_pattern: Any, context: Any = None) -> None:
        _refuse()

    def add_graph(self, graph: Any) -> None:
        """Do nothing for an existing graph; raise `ReadOnlyError` for another one."""
        if graph.identifier != DATASET_DEFAULT_GRAPH_ID and graph.identifier not in self._named():
            _refuse()

    def remove_graph(self, graph: Any) -> None:
        _refuse()

    def update(self, *_: Any, **__: Any) -> NoReturn:
        _refuse()

    def destroy(self, configuration: Any) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise ReadOnlyError("a store of condgraph is read only", hint="rdflib.Graph() += it is a copy that can be changed")
