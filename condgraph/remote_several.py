"""Several graphs queried as one, in any combination of folders, databases and servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import OptionError, ReadOnlyError, UnsupportedError
from condgraph.graph import Graph
from condgraph.remote import RemoteGraph, ServerStorage
from condgraph.reports import Status
from condgraph.several.member import Member
from condgraph.several.schema import Same
from condgraph.several.store import SeveralStore
from condgraph.storage import ENGINES

if TYPE_CHECKING:
    from condgraph.engine.store import Store


class SeveralStorage(ServerStorage):
    """Several graphs, read-only."""

    server: SeveralStore

    def __init__(self, graphs: Mapping[str, Graph], own: Sequence[Graph], same: Same | None) -> None:
        self.graphs, self._own = dict(graphs), own
        super().__init__(SeveralStore([_member(*item) for item in graphs.items()], same), graph="several", read_only=True)

    def check_writable(self, wait: float = 0.0) -> None:
        raise ReadOnlyError("several stores together are only read", hint="load into one of them")

    def write(self, *_: Any) -> Any:
        self.check_writable()

    def index(self, *_: Any) -> Any:
        """Raise `UnsupportedError`: vectors are stored with a single graph."""
        raise UnsupportedError("several stores", ["an index"], hint="graph.snapshot() copies them into one graph")

    def rdf(self, base: str | None) -> Any:
        """Raise `UnsupportedError`: only graphs in process have an embedded RDF store."""
        raise UnsupportedError("several stores", ["SPARQL"], hint="graph.snapshot() copies them into one graph, which has it")

    def store(self, engine: str | None) -> Store:
        """Return the store that queries all of them. Raises `OptionError` for any engine."""
        if engine is not None:
            hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}" if engine in ENGINES else None
            raise OptionError("each of several stores answers for itself", hint=hint or "leave `engine` out")
        return self.server

    def status(self, verify: bool) -> Status:
        """Return the sums of the counts, and all sources. Raises `OptionError` for `verify`."""
        if verify:
            raise OptionError("several stores have no checksums together", hint="verify each of them")
        notes = ("counts are of each store, so that what several of them have is counted several times", *self.server.notes)
        return Status(self.place, self.graph, "several stores", self.server.counts(), self.server.sources(), 0, notes=notes)

    def refresh(self) -> None:
        """Read the current state of each graph."""
        for graph in self.graphs.values():
            graph.refresh()
        super().refresh()

    def close(self) -> None:
        """Close the graphs that were opened here, rather than passed in."""
        super().close()
        for graph in self._own:
            graph.close()


def _member(name: str, graph: Graph) -> Member:
    storage = graph._storage

    def version() -> str | None:
        if isinstance(storage, ServerStorage):
            return storage.content()
        about = storage.current.about
        return None if "generation" not in about else f"{about['generation']}+{len(storage.edits())}"

    def counts() -> dict[str, int]:
        return graph.store.counts() if isinstance(graph, RemoteGraph) else dict(storage.current.counts)

    return Member(name, str(graph.place), lambda: storage.store(None), version, counts)


class SeveralGraph(RemoteGraph):
    """Several graphs queried as one, read-only. `graphs` maps the names of their stores to them."""

    #: The name of the kind of store in tracing spans.
    store_kind = "several"

    _storage: SeveralStorage

    def __init__(self, graphs: Mapping[str, Graph], own: Sequence[Graph] = (), same: Same | None = None) -> None:
        super().__init__(SeveralStorage(graphs, own, same))

    @property
    def store(self) -> SeveralStore:
        """The store that queries all of them."""
        return self._storage.server

    @property
    def graphs(self) -> dict[str, Graph]:
        """The graphs by the names of their stores."""
        return dict(self._storage.graphs)


def several(places: Mapping[str, Any] | Sequence[Any], opened: Callable[[Any], Graph], same: Same | None = None) -> SeveralGraph:
    """Open several graphs as one. `places` are addresses, folders or open graphs, in a list or by name; `same` is as
    for `condgraph.open`.
    """
    if not isinstance(places, Mapping):
        named: dict[str, Any] = {}
        for place in places:
            name = _name_of(place)
            if name in named:
                raise OptionError(
                    f"two stores are called {name!r}", hint='name them: condgraph.open({"first": ..., "second": ...})'
                )
            named[name] = place
        places = named
    if not places:
        raise OptionError("no store is given", hint='condgraph.open(["folder", "postgresql://localhost/shop"])')
    graphs: dict[str, Graph] = {}
    opened_here: list[Graph] = []
    try:
        for name, place in places.items():
            if isinstance(place, SeveralGraph):
                raise OptionError(f"store {name!r} is several stores itself", hint="give each of them")
            if not isinstance(place, Graph):
                place = opened(place)
                opened_here.append(place)
            graphs[name] = place
        result = SeveralGraph(graphs, opened_here, same)
        if same:
            result.store.naming_schema  # noqa: B018 - checks the declaration
        return result
    except BaseException:
        for graph in opened_here:
            graph.close()
        raise


def _name_of(place: Any) -> str:
    """Return the name of a store that was given without one: the name of an open graph, the end of its address, or
    its folder.
    """
    place = place[0] if isinstance(place, tuple) else place
    text = str(place.place if isinstance(place, Graph) else place)
    if isinstance(place, Graph) and place.name != "default":
        return place.name
    return Path(text.partition("://")[2].partition("?")[0].rstrip("/") or text).stem.rpartition("@")[2] or text
