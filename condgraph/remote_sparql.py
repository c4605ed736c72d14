"""Graphs that condgraph writes to RDF stores, through their SPARQL endpoints."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import OptionError, UnsupportedError, nearest
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.remote import EditedGraph, EditedStorage
from condgraph.reports import Status
from condgraph.sparql.remote import SparqlStore
from condgraph.sparql.text.table import Table
from condgraph.storage import local_store
from condgraph.vectors.encoders import encoder_of

if TYPE_CHECKING:
    from condgraph.engine.store import Store
    from condgraph.vectors.encoders import Encoder
    from condgraph.vectors.stored import IndexReport


#: The options whose values are addresses.
_ADDRESSES = ("update", "store")


def _plain(address: str) -> str:
    """Return an address without its prefix "sparql+"."""
    return address[7:] if address[:7].lower() == "sparql+" else address


class SparqlStorage(EditedStorage):
    """One graph in an RDF store."""

    server: SparqlStore

    @property
    def current(self) -> Snapshot:
        """The current graph, pulled into the process and cached until it changes on the server."""
        return self.server.linked()

    def copied(self) -> Snapshot:
        """Return the current graph in process."""
        return self.current

    def store(self, engine: str | None) -> Store:
        """Return the store that queries the server, or with `engine="snapshot"` one in process, on the pulled graph."""
        return self.server if engine in (None, "sparql") else local_store(self, engine)

    def sparql(self, text: str, **options: Any) -> Table:
        """Return the solutions of a query over this graph on the server."""
        return self.server.text(text, **options)

    def check_editable(self) -> None:
        """Raise `UnsupportedError` if the server does not execute an update request atomically."""
        # The first query detects the kind of server.
        self.server.exists()
        dialect = self.server.endpoint.dialect
        if not dialect.atomic:
            raise UnsupportedError(
                f"{dialect.name} at {self.place}", ["single changes: it makes an update request row by row"],
                hint="graph.add([...], source=..., replace=True) replaces a source",
            )  # fmt: skip

    def index(
        self, encoder: str | os.PathLike[str] | Encoder, faiss: bool, progress: Callable[[int, int], None] | None
    ) -> IndexReport:
        """Encode the names of nodes and predicates, and store the vectors on this machine, since RDF stores have no
        place for them.
        """
        if faiss:
            raise OptionError("an RDF store has no approximate index", hint="leave `faiss` out")
        return self.server.index(encoder_of(encoder), progress)

    def status(self, verify: bool) -> Status:
        """Return the counts and sources of the graph. `verify` pulls it and raises `StoreDamagedError` if its content
        was altered.
        """
        if verify:
            self.server.snapshot()
        return replace(super().status(False), verified=verify)


class SparqlGraph(EditedGraph):
    """One graph in an RDF store, through its SPARQL endpoint.

    `place` is `sparql+http://host/path` or `sparql+https://...`, with user and password in it or in the environment
    variables `SPARQL_USERNAME` and `SPARQL_PASSWORD`. The options:

    - `update`: the address for updates if it differs
    - `store`: the address of the Graph Store Protocol, which makes loads faster
    - `base`: the IRI of the graph and of its named graph
    - `method`: "get", "post" or "auto"
    - `timeout`: the default timeout of calls, in seconds
    - `patience`: how many seconds (30) the server may take for requests with little work, whatever the call
    """

    _storage: SparqlStorage

    def __init__(self, place: str, *, graph: str = "default", read_only: bool = False, **options: Any) -> None:
        known_options = ("update", "store", "base", "user", "password", "method", "timeout", "patience")
        unknown_option = next((name for name in options if name not in known_options), None)
        if unknown_option is not None:
            message, hint = f"a SPARQL endpoint takes no option {unknown_option!r}", f"it takes: {', '.join(known_options)}"
            raise OptionError(message, candidates=nearest(unknown_option, known_options), hint=hint)
        bounds = {name: options.pop(name) for name in ("timeout", "patience") if name in options}
        options = {name: value and (_plain(str(value)) if name in _ADDRESSES else value) for name, value in options.items()}
        store = SparqlStore(_plain(place), graph=graph, read_only=read_only, **options, **bounds)
        super().__init__(SparqlStorage(store, graph=graph, read_only=read_only))

    @property
    def store(self) -> SparqlStore:
        """The store that queries the server."""
        return self._storage.server
