"""A graph in a remote RDF store: load, ask with one query, look, and pull it into process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import OptionError, ReadOnlyError, StoreBusyError, StoreMissingError, StoreVersionError
from condgraph.engine.facts import Source
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.readback import items
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.stored_schema import StoredSchema
from condgraph.sparql.client import Endpoint, Method
from condgraph.sparql.layout import LAYOUT, base_iri, checked_base
from condgraph.sparql.load import load_id, schema_of, state, write_snapshot
from condgraph.sparql.pull import EVERYTHING, pull, sources

if TYPE_CHECKING:
    from pyoxigraph import QuerySolution


class SparqlStore:
    """One graph of an RDF store. `place` is the endpoint's address; `base` the IRI of the graph and of its names."""

    def __init__(
        self,
        place: str,
        *,
        graph: str = "default",
        read_only: bool = False,
        update: str | None = None,
        store: str | None = None,
        base: str | None = None,
        user: str | None = None,
        password: str | None = None,
        method: Method = "auto",
    ) -> None:
        if not graph:
            raise OptionError("the name of a graph is empty")
        self.name, self.read_only = graph, read_only
        self.base = base_iri(graph) if base is None else checked_base(base)
        self.endpoint = Endpoint(
            place, update=update, store=store, user=user, password=password, method=method, read_only=read_only
        )
        self.place = self.endpoint.query_url
        self._update_given = update is not None
        self._schema: StoredSchema | None = None

    def __enter__(self) -> SparqlStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of waiting threads; there is no connection between queries."""
        self.endpoint.close()

    def __repr__(self) -> str:
        return f"<SparqlStore {self.name!r} at {self.place}>"

    # -- the graph's node -------------------------------------------------------------------------------------------------

    def about(self) -> dict[str, list[str]]:
        """What the graph's node says; raises where there is none, or a load is not finished."""
        found = state(self.endpoint, self.base)
        if "loading" in found:
            raise StoreBusyError(
                f"graph {self.name!r} is being loaded, or its load was ended", hint="the same load again goes on where it stopped"
            )
        if "load" not in found or "schema" not in found:
            raise StoreMissingError(f"there is no graph {self.name!r} at {self.place}", hint="load something first")
        if found.get("layout") != [str(LAYOUT)]:
            raise StoreVersionError(f"graph {self.name!r} has layout {found.get('layout')}, this version reads {LAYOUT}")
        return found

    @property
    def schema(self) -> StoredSchema:
        """What lowering knows; read once, and again after a load."""
        if self._schema is None:
            self._schema = StoredSchema(json.loads(schema_of(self.about())))
        return self._schema

    def refresh(self) -> None:
        """Forget the schema, which another process may have changed."""
        self._schema = None

    def exists(self) -> bool:
        """Whether the graph is there, and its load is finished."""
        found = state(self.endpoint, self.base)
        return "load" in found and "loading" not in found

    def counts(self) -> dict[str, int]:
        """What the graph holds."""
        found: dict[str, int] = json.loads(self.about()["counts"][0])
        return found

    def sources(self) -> tuple[Source, ...]:
        """The sources of the graph, by name."""
        return tuple(sorted(sources(self.select), key=lambda source: source.name))

    def select(self, text: str, *, timeout: float | None = None, cancelled: Event | None = None) -> Iterator[QuerySolution]:
        """The rows of a SELECT over the graph."""
        found: Any = self.endpoint.query(text, graphs=(self.base,), timeout=timeout, cancelled=cancelled)
        return iter(found)

    # -- loading ----------------------------------------------------------------------------------------------------------

    def push(self, snapshot: Snapshot) -> None:
        """Write a snapshot as this graph, beside what the graph holds already. The same content twice changes nothing."""
        if self.read_only:
            raise ReadOnlyError(f"{self.place} was opened for reading", hint="open it with read_only=False")
        load = load_id(snapshot)
        found = state(self.endpoint, self.base)
        if self.endpoint.store_url is None and not self._update_given:
            self.endpoint.store_url = self.endpoint.dialect.store_url(self.place)
        begun = found if "loading" in found else None
        if begun is not None and begun["loading"] != [load]:
            raise StoreBusyError(
                f"another load of graph {self.name!r} is not finished", hint="finish it with the same sources, or delete the graph"
            )
        previous = None
        if "load" in found or (begun is not None and begun.get("over") != [""]):
            if begun is None and found["load"] == [load]:
                return
            previous = self._pull(lenient=begun is not None)
            builder = Builder(previous)
            builder.add(items(snapshot))
            snapshot = Snapshot.of(*lay_out(builder))
        write_snapshot(self.endpoint, snapshot, self.base, graph=self.name, load=load, previous=previous, begun=begun)
        self._schema = None

    def delete(self) -> None:
        """Remove the graph from the store."""
        if self.read_only:
            raise ReadOnlyError(f"{self.place} was opened for reading", hint="open it with read_only=False")
        self.endpoint.update(f"CLEAR SILENT GRAPH <{self.base}>")
        self._schema = None

    def snapshot(self) -> Snapshot:
        """The whole graph pulled into process, with its sources."""
        self.about()
        return self._pull()

    def _pull(self, *, lenient: bool = False) -> Snapshot:
        triples = self.endpoint.triples(EVERYTHING, graphs=(self.base,))
        return pull(triples, self.select, self.base, lenient=lenient)
