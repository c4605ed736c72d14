"""`condgraph serve`: the studio, its API, and of a graph in a folder a SPARQL endpoint, until it is
stopped.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any, Final
from weakref import ref

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, how_to_open, opened
from condgraph.cli.exits import complain, guard
from condgraph.cli.groups import grouped
from condgraph.cli.serve_options import ClientOptions, QueryOptions, ReplicaOptions, StudioOptions
from condgraph.engine.addresses import shown
from condgraph.engine.errors import OptionError, UnsupportedError
from condgraph.engine.snapshot.directory import graph_directory

if TYPE_CHECKING:
    from condgraph.endpoint.backend import OxigraphBackend
    from condgraph.endpoint.live import LiveBackend
    from condgraph.endpoint.replica import Replica
    from condgraph.endpoint.service import Backend
    from condgraph.graph import Graph
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.studio.api import Api

#: Seconds between two looks for a newer generation.
_LOOK: Final = 1.0
#: Looks after which a generation that was replaced, and is still in use, is left to itself.
_LOOKS: Final = 10
#: Seconds after which a database of others is read anew: its counts do not tell every change.
_OLD: Final = 60.0


@grouped
def serve(
    *,
    store: StoreOption,
    login: LoginOptions,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Where to listen; 0.0.0.0 is everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 for any that is free.")] = 7878,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="IRI", help="What the graph's own names begin with, such as http://example.org/."),
    ] = None,
    queries: QueryOptions,
    clients: ClientOptions,
    studio: StudioOptions,
    replica: ReplicaOptions,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line for every request.")] = False,
) -> None:
    """Serve a graph over HTTP: the studio, a page for people, its API, and SPARQL for a graph in a
    folder or in Neo4j; a graph that is loaded anew is served anew.
    """
    with guard(), opened(store, login) as at:
        from condgraph.endpoint.app import application
        from condgraph.endpoint.clients import Proxies
        from condgraph.endpoint.server import listen, log_to_stderr, server
        from condgraph.endpoint.service import Limits
        from condgraph.studio.app import KINDS, routes

        bounds, proxies = clients.bounds(), Proxies(clients.trusted_proxy or ())
        # As many as may take more than a moment beside those that are computed.
        streams = 2 * queries.at_once
        limits = Limits(queries.timeout, queries.limit or None, queries.data_timeout, clients.body_size << 10, streams=streams)
        local = "://" not in at.place
        if not local:
            at.status(timeout=queries.timeout)  # a server that cannot be reached is told at once
        watch = studio.guard(host, base)
        if watch.closed:
            complain(f"warning: {watch.closed}")
        api = _api(at, store, login, queries, studio)
        log_to_stderr(requests=not quiet)
        copy = None if local or replica.live else _replica(at, base, replica)
        embedded = at.rdf(base) if local else None if copy is None else copy.embedded
        backend = None if embedded is None else _backend(embedded, queries, {} if copy is None else copy.headers)
        live = _live(at, base, queries, asked=replica.live) if embedded is None and replica.replica_size else None

        answers: Backend | None = live if backend is None else backend
        # What serves is the backend's: the generation is let go of when a load replaces it (`_follow`).
        del embedded

        def started(address: str) -> None:
            sparql = f"; SPARQL at {address}/sparql" if answers is not None else ""
            doors = " to nobody" if watch.closed else f"{sparql}; the studio at {address}/studio/"
            typer.echo(f"{address}/ serves {at.name!r} of {at.place if local else shown(at.place)}{doors}")

        sock = listen(host, port)
        own = routes(api, sparql=answers is not None)
        site = application(answers, limits, routes=own, closing=api.close, guard=watch, kinds=KINDS)
        running = server(site, [sock], grace=queries.grace, started=started, bounds=bounds, proxies=proxies)
        stop, watching = Event(), None
        if backend is not None:
            following: Callable[[], None]
            if copy is None:
                following = partial(_follow, at, base, backend, api, graph_directory(Path(at.place), login.graph), stop)
            else:
                following = partial(copy.follow, partial(_use, backend, api), complain, stop)
            watching = Thread(target=following, daemon=True)
            watching.start()
        # The server handles these itself and raises them again when it has ended, which is all that
        # they are for.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        try:
            running.run(sockets=[sock])
        finally:
            stop.set()
            if watching is not None:
                watching.join()
            if answers is not None:
                answers.close()
            api.close()


def _api(at: Graph, store: str, login: LoginOptions, queries: QueryOptions, studio: StudioOptions) -> Api:
    """The API as the options say."""
    from condgraph.studio.api import Api, ApiLimits
    from condgraph.studio.pools import Workers

    place = store if "://" in at.place else os.path.abspath(store)
    # Workers open what this opened: the mapping and the layout of a database of others are said as here.
    given = how_to_open(store, login)
    if mapping := given.get("mapping"):
        given["mapping"] = os.path.abspath(mapping)
    source = {"place": place, "graph": login.graph, "login": given, "llm": studio.llm}
    limits = ApiLimits(
        queries.timeout, studio.ask_timeout, queries.limit or None, studio.drop_size << 20, streams=2 * queries.at_once
    )
    workers = Workers(source, workers=queries.at_once, memory=queries.memory << 20)
    # Where the model, or its recording, is, is nobody's business.
    model = "replay" if (studio.llm or "").startswith("replay:") else (studio.llm or "").partition("@")[0] or None
    return Api(workers, limits, model)


def _replica(at: Graph, base: str | None, options: ReplicaOptions) -> Replica | None:
    """A graph in Neo4j as RDF in process; None where it has no SPARQL, which is said."""
    from condgraph.endpoint.replica import Replica
    from condgraph.remote_native import NativeGraph
    from condgraph.remote_neo4j import Neo4jGraph

    if not isinstance(at, Neo4jGraph) or not options.replica_size:
        return None
    try:
        refresh = options.refresh or (_OLD if isinstance(at, NativeGraph) else None)
        return Replica(at, base=base, most=options.replica_size, refresh=refresh)
    except UnsupportedError as error:
        if isinstance(at, NativeGraph):
            complain(f"warning: SPARQL asks the database where it is (--live): {error}")
        else:
            complain(f"warning: there is no SPARQL: {error}")
        return None


def _live(at: Graph, base: str | None, queries: QueryOptions, *, asked: bool) -> LiveBackend | None:
    """SPARQL on a database that condgraph did not write, where it is; raises `OptionError` where it is
    `asked` for and the graph is none.
    """
    from condgraph.endpoint.live import LiveBackend
    from condgraph.live.answer import Live
    from condgraph.remote_native import NativeGraph

    if not isinstance(at, NativeGraph):
        if asked:
            raise OptionError("--live is for a Neo4j database that condgraph did not write", hint="leave it out")
        return None
    try:
        return LiveBackend(Live(at.store, base=base), workers=queries.at_once, memory=queries.memory << 20)
    except UnsupportedError as error:
        complain(f"warning: there is no SPARQL: {error}")
        return None


def _use(backend: OxigraphBackend, api: Api, copy: Replica, fresh: bool) -> None:
    """Serve what a replica has now; what is not fresh differs by what its headers say."""
    if fresh:
        backend.use(copy.embedded.source, **_served(copy.embedded))
        backend.prepare()
        api.workers.renew()
    backend.headers = copy.headers


def _backend(embedded: EmbeddedStore, queries: QueryOptions, headers: Mapping[str, str]) -> OxigraphBackend:
    from condgraph.endpoint.backend import OxigraphBackend
    from condgraph.sparql.layout import PRED
    from condgraph.sparql.text.prologue import PREFIXES

    backend = OxigraphBackend(
        embedded.source,
        **_served(embedded),
        base=embedded.base,
        headers=headers,
        predeclared=PREFIXES,
        # None for the names: what has to be escaped behind a prefix is not understood by every
        # reader of Turtle.
        prefixes={"pred": PRED},
        held=queries.in_memory,
        workers=queries.at_once,
        memory=queries.memory << 20,
    )
    backend.prepare()
    return backend


def _served(embedded: EmbeddedStore) -> dict[str, Any]:
    """What a generation serves, which another one may serve otherwise."""
    from condgraph.sparql.examples import examples

    def naming() -> Mapping[str, str]:
        complain("a query names graphs: the store with the named graph is opened, and built where it is not there")
        return embedded.naming()

    return {
        "naming": naming,
        "graphs": embedded.graphs,
        "default": embedded.defaults,
        "is_name": embedded.is_name,
        "examples": examples(embedded),
    }


def _follow(opened: Graph, base: str | None, backend: OxigraphBackend, api: Api, directory: Path, stop: Event) -> None:
    """Serve the generation that a load makes, as soon as its RDF is there, and let go of the one before."""
    from condgraph.endpoint.replica import let_go

    # A load may have come while the server started.
    seen, served, said = None, opened.current, ""
    left, looks = ref(served), 0
    while not stop.wait(_LOOK):
        if looks and left() is not None:
            looks -= 1
            let_go()
        now = _written(directory)
        if now == seen:
            continue
        try:
            opened.refresh()
            if opened.current is not served:
                embedded = opened.rdf(base)
                backend.use(embedded.source, **_served(embedded))
                backend.prepare()
                api.workers.renew()
                left, looks, served = ref(served), _LOOKS, embedded.snapshot
                del embedded
            seen, said = now, ""
        except Exception as error:  # noqa: BLE001 - the server goes on, and is told of the next load, whatever this one did
            if str(error) != said:
                said = str(error)
                complain(f"warning: the graph was loaded anew and cannot be served: {error}; the old one goes on")


def _written(directory: Path) -> tuple[int, int] | None:
    """What changes when a generation becomes current."""
    try:
        found = (directory / "manifest.json").stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
