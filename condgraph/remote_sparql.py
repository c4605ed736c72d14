"""Graphs in RDF stores, through their SPARQL endpoints."""

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


#: The options that are addresses.
_ADDRESSES = ("update", "store")


def _plain(address: str) -> str:
    """The address as HTTP has it."""
    return address[7:] if address[:7].lower() == "sparql+" else address


class SparqlStorage(EditedStorage):
    """One graph of an RDF store."""

    server: SparqlStore

    @property
    def current(self) -> Snapshot:
        """The graph as it is now, pulled into process and stored until it changes there."""
        return self.server.linked()

    def copied(self) -> Snapshot:
        """As `current`."""
        return self.current

    def store(self, engine: str | None) -> Store:
        """What answers on the server; `engine="snapshot"` answers in process, on the pulled graph."""
        return self.server if engine in (None, "sparql") else local_store(self, engine)

    def sparql(self, text: str, **options: Any) -> Table:
        """The solutions of a query over this graph on the server."""
        return self.server.text(text, **options)

    def check_editable(self) -> None:
        """Raise `UnsupportedError` where an update request is not made all at once."""
        # A first query tells which server it is.
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
        """Encode the names of nodes and predicates, and store their vectors on this machine, since
        RDF stores keep none.
        """
        if faiss:
            raise OptionError("an RDF store has no approximate index", hint="leave `faiss` out")
        return self.server.index(encoder_of(encoder), progress)

    def status(self, verify: bool) -> Status:
        """What the graph holds; `verify` pulls it and raises `StoreDamagedError` where it is not
        what was written.
        """
        if verify:
            self.server.snapshot()
        return replace(super().status(False), verified=verify)


class SparqlGraph(EditedGraph):
    """One graph of an RDF store, through its SPARQL endpoint.

    `place` is `sparql+http://host/path` or `sparql+https://...`, with user and password in it or in
    `SPARQL_USERNAME` and `SPARQL_PASSWORD`. `update` is the address for updates where it is another
    one, `store` that of the Graph Store Protocol, by which loading is quicker, `base` the IRI of
    the graph (and of its named graph), `method` "get", "post" or "auto". `timeout` (seconds) is the
    deadline of calls that are given none; `patience` (30 seconds) is for how long the server may
    say nothing where it has little to do, whatever the call.
    """

    _storage: SparqlStorage

    def __init__(self, place: str, *, graph: str = "default", read_only: bool = False, **options: Any) -> None:
        known = ("update", "store", "base", "user", "password", "method", "timeout", "patience")
        wrong = next((name for name in options if name not in known), None)
        if wrong is not None:
            what, hint = f"a SPARQL endpoint takes no option {wrong!r}", f"it takes: {', '.join(known)}"
            raise OptionError(what, candidates=nearest(wrong, known), hint=hint)
        bounds = {name: options.pop(name) for name in ("timeout", "patience") if name in options}
        options = {name: value and (_plain(str(value)) if name in _ADDRESSES else value) for name, value in options.items()}
        store = SparqlStore(_plain(place), graph=graph, read_only=read_only, **options, **bounds)
        super().__init__(SparqlStorage(store, graph=graph, read_only=read_only))

    @property
    def store(self) -> SparqlStore:
        """What answers on the server."""
        return self._storage.server
