"""Several graphs asked as one: folders, databases and servers beside each other."""

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
    """Several graphs, which are only read here."""

    server: SeveralStore

    def __init__(self, graphs: Mapping[str, Graph], own: Sequence[Graph], same: Same | None) -> None:
        self.graphs, self._own = dict(graphs), own
        super().__init__(SeveralStore([_member(*each) for each in graphs.items()], same), graph="several", read_only=True)

    def check_writable(self, wait: float = 0.0) -> None:
        """Nothing is written."""
        raise ReadOnlyError("several stores together are only read", hint="load into one of them")

    def write(self, *_: Any) -> Any:
        """Nothing is written."""
        self.check_writable()

    def index(self, *_: Any) -> Any:
        """Vectors are stored with one graph."""
        raise UnsupportedError("several stores", ["an index"], hint="graph.snapshot() copies them into one graph")

    def rdf(self, base: str | None) -> Any:
        """Only graphs in process have an RDF store of their own."""
        raise UnsupportedError("several stores", ["SPARQL"], hint="graph.snapshot() copies them into one graph, which has it")

    def store(self, engine: str | None) -> Store:
        """What asks them."""
        if engine is not None:
            hint = f"leave `engine` out, or ask graph.snapshot() with engine={engine!r}" if engine in ENGINES else None
            raise OptionError("several stores answer each by itself", hint=hint or "leave `engine` out")
        return self.server

    def status(self, verify: bool) -> Status:
        """What they hold together."""
        if verify:
            raise OptionError("several stores have no checksums together", hint="verify each of them")
        notes = ("counts are of each store, so that what several of them have is counted several times", *self.server.notes)
        return Status(self.place, self.graph, "several stores", self.server.counts(), self.server.sources(), 0, notes=notes)

    def refresh(self) -> None:
        """Turn to what each of them holds now."""
        for graph in self.graphs.values():
            graph.refresh()
        super().refresh()

    def close(self) -> None:
        """Let go of those that were opened here."""
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
    """Several graphs as one, which is only read. `graphs` has them by the names of their stores."""

    #: What spans call it.
    store_kind = "several"

    _storage: SeveralStorage

    def __init__(self, graphs: Mapping[str, Graph], own: Sequence[Graph] = (), same: Same | None = None) -> None:
        super().__init__(SeveralStorage(graphs, own, same))

    @property
    def store(self) -> SeveralStore:
        """What asks them."""
        return self._storage.server

    @property
    def graphs(self) -> dict[str, Graph]:
        """The graphs by the names of their stores."""
        return dict(self._storage.graphs)


def several(places: Mapping[str, Any] | Sequence[Any], opened: Callable[[Any], Graph], same: Same | None = None) -> SeveralGraph:
    """Graphs as one: `places` are addresses, folders or open graphs, by names or in order; `same` as for `condgraph.open`."""
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
    own: list[Graph] = []
    try:
        for name, place in places.items():
            if isinstance(place, SeveralGraph):
                raise OptionError(f"store {name!r} is several stores itself", hint="give each of them")
            if not isinstance(place, Graph):
                place = opened(place)
                own.append(place)
            graphs[name] = place
        result = SeveralGraph(graphs, own, same)
        if same:
            result.store.naming_schema  # noqa: B018 - what is declared is looked at once
        return result
    except BaseException:
        for graph in own:
            graph.close()
        raise


def _name_of(place: Any) -> str:
    """What a store is called that was given without a name: the last part of its address, or its folder."""
    place = place[0] if isinstance(place, tuple) else place
    text = str(place.place if isinstance(place, Graph) else place)
    if isinstance(place, Graph) and place.name != "default":
        return place.name
    return Path(text.partition("://")[2].partition("?")[0].rstrip("/") or text).stem.rpartition("@")[2] or text
