"""The command serve and its options."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import socket
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit
from weakref import ref

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, grouped, how_to_open, opened
from condgraph.cli.exits import complain, guard
from condgraph.engine.addresses import shown
from condgraph.engine.errors import OptionError, UnsupportedError
from condgraph.engine.snapshot.directory import graph_directory, version_of

if TYPE_CHECKING:
    from condgraph.bolt.connection import Bolt
    from condgraph.endpoint.app import Backend
    from condgraph.endpoint.backend import LiveBackend, OxigraphBackend, Replica
    from condgraph.endpoint.guard import Bounds, Guard
    from condgraph.graph import Graph
    from condgraph.sparql.embedded import EmbeddedStore
    from condgraph.studio.api import Api, Tiles


# -- serve options -----------------------------------------------------------------------------------
# The options of `condgraph serve`, grouped by subject: queries, clients, Bolt, the studio, and SPARQL over
# a graph in Neo4j.


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Limits for queries."""

    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="The deadline of every query.")] = 30.0
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Maximum results of a query; 0 for all.")] = 10_000
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Number of queries that run at once; two per processor by default."),
    ] = None
    memory: Annotated[
        int, typer.Option("--memory", metavar="MIB", min=0, help="Maximum memory of a query, in MiB; 0 for no limit.")
    ] = 2048
    in_memory: Annotated[
        int,
        typer.Option("--in-memory", metavar="N", min=0, help="Maximum triples of a graph that SPARQL holds in memory; 0 for none."),
    ] = 100_000
    grace: Annotated[
        float,
        typer.Option(
            "--grace", metavar="SECONDS", min=0.0, help="How long running queries may continue when the server is stopped."
        ),
    ] = 10.0
    data_timeout: Annotated[
        float, typer.Option("--data-timeout", metavar="SECONDS", min=0.001, help="The deadline of a whole graph (/data).")
    ] = 600.0

    @property
    def at_once(self) -> int:
        """How many queries run at once."""
        return self.workers or 2 * (os.cpu_count() or 2)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Limits for clients."""

    connections: Annotated[int, typer.Option("--connections", metavar="N", min=1, help="Maximum open connections.")] = 2_000
    client_connections: Annotated[
        int,
        typer.Option("--client-connections", metavar="N", min=1, help="Maximum open connections of one client address."),
    ] = 256
    head_timeout: Annotated[
        float, typer.Option("--head-timeout", metavar="SECONDS", min=0.001, help="Time for a client to send the head of a request.")
    ] = 10.0
    body_timeout: Annotated[
        float, typer.Option("--body-timeout", metavar="SECONDS", min=0.001, help="Time for a client to send the body of a request.")
    ] = 30.0
    idle_timeout: Annotated[
        float,
        typer.Option("--idle-timeout", metavar="SECONDS", min=0.001, help="Time that a connection may be idle between requests."),
    ] = 15.0
    write_timeout: Annotated[
        float,
        typer.Option(
            "--write-timeout",
            metavar="SECONDS",
            min=0.001,
            help="Time after which a client that reads less than 8 KiB/s is disconnected.",
        ),
    ] = 30.0
    head_size: Annotated[int, typer.Option("--head-size", metavar="KIB", min=1, help="Maximum size of a request's head.")] = 64
    body_size: Annotated[int, typer.Option("--body-size", metavar="KIB", min=1, help="Maximum size of a request's body.")] = 4096
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option("--trusted-proxy", metavar="ADDRESS", help="A proxy, or a network, whose X-Forwarded-For is trusted."),
    ] = None

    def bounds(self) -> Bounds:
        """Return the limits of the server."""
        from condgraph.endpoint.guard import Bounds

        return Bounds(
            connections=self.connections,
            per_client=self.client_connections,
            head_timeout=self.head_timeout,
            body_timeout=self.body_timeout,
            idle_timeout=self.idle_timeout,
            write_timeout=self.write_timeout,
            head_bytes=self.head_size << 10,
        )


@dataclass(frozen=True, slots=True)
class BoltOptions:
    """Options for Bolt, the protocol of Neo4j's drivers."""

    bolt: Annotated[
        int | None,
        typer.Option("--bolt", metavar="PORT", min=0, max=65535, help="Answer Cypher over Bolt on this port; 0 for any free port."),
    ] = None
    bolt_idle_timeout: Annotated[
        float,
        typer.Option("--bolt-idle-timeout", metavar="SECONDS", min=0.001, help="Time that a Bolt connection may be idle."),
    ] = 3600.0

    def server(
        self, at: Graph, api: Api, host: str, watch: Guard, queries: QueryOptions, largest: int
    ) -> tuple[Bolt, socket] | None:
        """Return the Bolt server and its socket, or None if it was not requested.

        Raises `OptionError` for databases that condgraph did not write.
        """
        from condgraph.bolt.connection import Bolt
        from condgraph.endpoint.server import address, listen
        from condgraph.remote_native import NativeGraph

        if self.bolt is None:
            return None
        if isinstance(at, NativeGraph):
            raise OptionError(
                "--bolt serves graphs that condgraph wrote, and this database is not one",
                hint="the database speaks Bolt itself; over HTTP all graphs are served",
            )
        sock = listen(host, self.bolt)
        place = address(sock).partition("://")[2]
        return Bolt(api.bolt, watch, at.name, place, queries.timeout, queries.limit or None, largest, self.bolt_idle_timeout), sock


@dataclass(frozen=True, slots=True)
class StudioOptions:
    """Options for access to the studio and its API, and for what they may do."""

    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", envvar="CONDGRAPH_TOKEN_FILE", metavar="FILE", exists=True, dir_okay=False,
            help="Users and their tokens, one NAME:TOKEN per line; required if HOST is not only this machine.",
        ),
    ] = None  # fmt: skip
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", "--allow-origin", metavar="ORIGIN", help="An origin whose web pages may send requests; * for all."),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name of this server, such as that of a proxy."),
    ] = None
    rate: Annotated[
        float,
        typer.Option("--rate", metavar="N", min=0.0, help="Maximum API requests of a client per second; 0 for no limit."),
    ] = 50.0
    llm: Annotated[
        str | None,
        typer.Option("--llm", envvar="CONDGRAPH_LLM", metavar="MODEL", help="The model for questions in words."),
    ] = None
    ask_timeout: Annotated[
        float, typer.Option("--ask-timeout", metavar="SECONDS", min=0.001, help="The deadline of a question in words.")
    ] = 120.0
    drop_size: Annotated[
        int, typer.Option("--drop-size", metavar="MIB", min=0, help="Maximum size of all files of a scratch graph.")
    ] = 64

    tiles: Annotated[
        str | None,
        typer.Option("--tiles", metavar="URL", help="A server of map tiles (with {z}, {x}, {y}), which browsers contact."),
    ] = None
    tiles_credit: Annotated[
        str, typer.Option("--tiles-credit", metavar="TEXT", help="Attribution of the tiles, shown on maps; required with --tiles.")
    ] = ""

    def map_tiles(self) -> Tiles | None:
        """Return the source of background maps, or None without one. Raises `OptionError`."""
        from condgraph.studio.api import Tiles

        return None if self.tiles is None else Tiles(self.tiles, self.tiles_credit)

    def guard(self, host: str, base: str | None) -> Guard:
        """Return the guard of a server that listens at `host`. The host of `base` is a name of the server, too."""
        from condgraph.endpoint.guard import Guard, Rates, Tokens, hosts_of, is_loopback, origins_of

        base_host = urlsplit(base).hostname if base is not None else None
        return Guard(
            Tokens() if self.token_file is None else Tokens.read(self.token_file),
            Rates(self.rate, 4 * self.rate),
            is_loopback(host),
            origins_of(self.cors or ()),
            (*hosts_of(self.allow_host or ()), *(() if base_host is None else (base_host,))),
        )


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """Options for SPARQL over a graph in Neo4j."""

    replica_size: Annotated[
        int,
        typer.Option(
            "--replica-size", metavar="N",
            help="Maximum statements of a graph in Neo4j that is copied into process for SPARQL; 0 for no SPARQL.",
        ),
    ] = 1_000_000  # fmt: skip
    refresh: Annotated[
        float | None,
        typer.Option(
            "--refresh",
            metavar="SECONDS",
            min=1.0,
            help="How often to copy a graph in Neo4j again; every 60 seconds by default if condgraph did not write it.",
        ),
    ] = None
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Query a Neo4j database that condgraph did not write without a copy; not all queries are supported.",
        ),
    ] = False


# -- serve -------------------------------------------------------------------------------------------


#: The number of statements from which on the server reports that preparing SPARQL takes a while.
_MANY: Final = 200_000
#: The most characters of the name under which a store is served.
_MAX_NAME: Final = 64
#: The seconds between two checks for a newer generation.
_INTERVAL: Final = 1.0
#: In how many checks the memory of a replaced generation is freed if it is still in use.
_CHECKS: Final = 10
#: How many seconds a process that builds RDF gets to remove its unfinished files.
_ENDING: Final = 5.0
#: After how many seconds an existing database is copied again, since its counts do not show every change.
_OLD: Final = 60.0


@grouped
def serve(
    *,
    further: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=]STORE...", help="Further stores; the studio and its API serve each under its name.", show_default=False
        ),
    ] = None,
    store: StoreOption,
    login: LoginOptions,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 for any free port.")] = 7878,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="IRI", help="The base of the graph's IRIs, such as http://example.org/."),
    ] = None,
    queries: QueryOptions,
    clients: ClientOptions,
    studio: StudioOptions,
    replica: ReplicaOptions,
    bolt: BoltOptions,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not log requests.")] = False,
) -> None:
    """Serve a graph over HTTP: the studio (a page for people), its API, and SPARQL for a graph in a folder
    or in Neo4j; with --bolt, Cypher for Neo4j's drivers. When the graph is loaded again, the new
    version is served.
    """
    with guard(), opened(store, login) as at:
        from condgraph.endpoint.app import Limits, application
        from condgraph.endpoint.guard import Proxies
        from condgraph.endpoint.server import ExtraProtocol, listen, log_to_stderr, server
        from condgraph.sparql.layout import base_iri, checked_base
        from condgraph.studio.api import ApiExchange

        bounds, proxies = clients.bounds(), Proxies(clients.trusted_proxy or ())
        # Results may be sent while others are being computed.
        streams = 2 * queries.at_once
        limits = Limits(queries.timeout, queries.limit or None, queries.data_timeout, clients.body_size << 10, streams=streams)
        local = "://" not in at.place
        if not local:
            at.status(timeout=queries.timeout)  # fails at once if the server cannot be reached
        watch, tiles = studio.guard(host, base), studio.map_tiles()
        if watch.closed:
            complain(f"warning: {watch.closed}")
        api = _api(at, store, login, queries, studio, further or ())
        log_to_stderr(requests=not quiet)
        copy = None if local or replica.live else _replica(at, base, replica)
        embedded = None if copy is None else copy.embedded
        statements, preparing = at.status().statements if local else 0, ""
        if statements > _MANY:
            preparing = f"SPARQL over {statements:,} statements is being prepared: after a load this takes minutes, later seconds"
            complain(preparing)
        elif local:
            embedded = at.rdf(base)
        backend = None
        if embedded is not None or preparing:
            state = None if copy is None else copy.state
            backend = _backend(embedded, state, checked_base(base or base_iri(at.name)), queries, preparing)
        live = _live(at, base, queries, required=replica.live) if embedded is None and replica.replica_size else None

        answers: Backend | None = live if backend is None else backend
        # Only the backend refers to the generation, so that it is freed when a load replaces it (`_follow`).
        del embedded

        def started(address: str) -> None:
            sparql = f"; SPARQL at {address}/sparql" if answers is not None else ""
            sparql += f"; Bolt at bolt://{bolt_server[0].address}" if bolt_server is not None else ""
            addresses = " to nobody" if watch.closed else sparql
            typer.echo(f"{address}/ serves {at.name!r} of {at.place if local else shown(at.place)}{addresses}")

        sock = listen(host, port)
        for workers in {api.workers, *api.graphs.values()}:
            workers.prepare()
        bolt_server = bolt.server(at, api, host, watch, queries, clients.body_size << 10)
        beside = None if bolt_server is None else ExtraProtocol(bolt_server[1], bolt_server[0].factory, bolt_server[0].close)
        studio_routes = api.routes(sparql=answers is not None, tiles=tiles)
        site = application(answers, limits, routes=studio_routes, closing=api.close, guard=watch, kinds={"/api/": ApiExchange})
        running = server(site, [sock], grace=queries.grace, started=started, bounds=bounds, proxies=proxies, beside=beside)
        stop, watching = Event(), None
        if backend is not None:
            follow: Callable[[], None]
            if copy is None:
                follow = partial(_follow, at, base, backend, api, stop)
            else:
                follow = partial(copy.follow, partial(_use, backend), complain, stop)
            watching = Thread(target=follow, daemon=True)
            watching.start()
        Thread(target=_renew, args=(api, stop), daemon=True).start()
        # The server handles these signals itself, and raises them again when it has ended.
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


def _api(at: Graph, store: str, login: LoginOptions, queries: QueryOptions, studio: StudioOptions, further: Sequence[str]) -> Api:
    """Create the API with its options, for a graph and further stores."""
    from condgraph.studio.api import Api, ApiLimits
    from condgraph.studio.pools import Workers

    def workers(at: Graph, store: str, login: LoginOptions) -> Workers:
        # Workers open the same store with the same options.
        options = how_to_open(store, login)
        if mapping := options.get("mapping"):
            options["mapping"] = os.path.abspath(mapping)
        place = store if "://" in at.place else os.path.abspath(store)
        source = {"place": place, "graph": login.graph, "login": options, "llm": studio.llm}
        return Workers(source, workers=queries.at_once, memory=queries.memory << 20)

    main = workers(at, store, login)
    graphs = {_named(store)[0]: main} if further else {}
    for one in further:
        name, place = _named(one)
        if name in graphs:
            raise OptionError(f"two stores are called {name!r}", hint=f"give one of them another name: NAME={place}")
        with opened(place, LoginOptions()) as graph:
            graph.status(timeout=queries.timeout)  # fails at once if it cannot be read
            graphs[name] = workers(graph, place, LoginOptions())
    limits = ApiLimits(
        queries.timeout, studio.ask_timeout, queries.limit or None, studio.drop_size << 20, streams=2 * queries.at_once
    )
    # Clients must not see the address of the model or the path of its recording.
    model = "replay" if (studio.llm or "").startswith("replay:") else (studio.llm or "").partition("@")[0] or None
    return Api(main, limits, model, graphs)


def _named(store: str) -> tuple[str, str]:
    """Return the name under which a store is served, and the store.

    The name is that of `NAME=STORE`, or else the last part of the path or the host.

    >>> _named("data/films"), _named("neo4j://localhost:7687"), _named("old=data/films")
    (('films', 'data/films'), ('localhost', 'neo4j://localhost:7687'), ('old', 'data/films'))
    """
    name, mark, place = store.partition("=")
    if mark and name and not set(name) & set("/:?"):
        return name[:_MAX_NAME], place
    parts = urlsplit(store) if "://" in store else None
    path = (parts.path if parts else os.path.abspath(store)).rstrip("/").rsplit("/", 1)[-1]
    return (path or (parts.hostname if parts else None) or "graph")[:_MAX_NAME], store


def _renew(api: Api, stop: Event) -> None:
    """Reopen further graphs in folders when they have been loaded again."""
    folders = {Path(one.place): one for one in api.graphs.values() if one is not api.workers and "://" not in one.place}
    versions = {folder: version_of(graph_directory(folder, "default")) for folder in folders}
    while folders and not stop.wait(_INTERVAL):
        for folder, workers in folders.items():
            if (now := version_of(graph_directory(folder, "default"))) != versions[folder]:
                versions[folder] = now
                workers.renew()


def _replica(at: Graph, base: str | None, options: ReplicaOptions) -> Replica | None:
    """Return an in-process RDF copy of a graph in Neo4j, or None if it has no SPARQL, with a warning."""
    from condgraph.endpoint.backend import Replica
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
            complain(f"warning: SPARQL is not available: {error}")
        return None


def _live(at: Graph, base: str | None, queries: QueryOptions, *, required: bool) -> LiveBackend | None:
    """Return SPARQL without a copy for a database that condgraph did not write, or None for other graphs.

    If `required` (by `--live`), other graphs raise `OptionError`.
    """
    from condgraph.endpoint.backend import LiveBackend
    from condgraph.endpoint.live import Live
    from condgraph.remote_native import NativeGraph

    if not isinstance(at, NativeGraph):
        if required:
            raise OptionError("--live is for a Neo4j database that condgraph did not write", hint="leave it out")
        return None
    try:
        return LiveBackend(Live(at.store, base=base), workers=queries.at_once, memory=queries.memory << 20)
    except UnsupportedError as error:
        complain(f"warning: SPARQL is not available: {error}")
        return None


def _use(backend: OxigraphBackend, copy: Replica, fresh: bool) -> None:
    """Serve the current state of a replica. If it is not `fresh`, only its headers have changed.

    The studio queries the database itself, so it sees changes there.
    """
    if fresh:
        backend.use(copy.embedded.source, state=copy.state, **_served(copy.embedded))
        backend.prepare()
    backend.headers = copy.headers


def _backend(
    embedded: EmbeddedStore | None, state: Mapping[str, str] | None, base: str, queries: QueryOptions, preparing: str
) -> OxigraphBackend:
    """Return a backend for SPARQL over the RDF of a graph. `preparing` is the message if it is not ready yet."""
    from condgraph.endpoint.backend import OxigraphBackend
    from condgraph.engine.iris import PRED, PREFIXES

    backend = OxigraphBackend(
        [] if embedded is None else embedded.source,
        **({} if embedded is None else _served(embedded)),
        state=state,
        base=base,
        predeclared=PREFIXES,
        # There is no prefix for names, because not every Turtle reader understands escapes after a prefix.
        prefixes={"pred": PRED},
        held=queries.in_memory,
        workers=queries.at_once,
        memory=queries.memory << 20,
        preparing=preparing,
    )
    if not preparing:
        backend.prepare()
    return backend


def _served(embedded: EmbeddedStore) -> dict[str, Any]:
    """Return the options of a backend that depend on the generation."""
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


#: The code of a process that builds the RDF of a graph in a folder, at low priority. If it is ended, it removes its files.
_BUILD: Final = """\
import os, signal, sys
import condgraph
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
getattr(os, "nice", int)(10)
with condgraph.open(sys.argv[1], graph=sys.argv[2], read_only=True) as graph:
    graph.rdf()
"""


def _build_apart(opened: Graph, stop: Event) -> None:
    """Build the RDF of a large graph in another process, while this one answers. `stop` ends it.

    If it fails, the RDF is built when it is needed, which reports the error.
    """
    with subprocess.Popen([sys.executable, "-c", _BUILD, os.path.abspath(opened.place), opened.name]) as process:
        while process.poll() is None and not stop.wait(_INTERVAL / 10):
            pass
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING)
        process.kill()


def _follow(opened: Graph, base: str | None, backend: OxigraphBackend, api: Api, stop: Event) -> None:
    """Serve each new generation as soon as its RDF is ready, and free the old one.

    This includes the first generation, if it is still `preparing`.
    """
    from condgraph.endpoint.backend import free_unused

    directory = graph_directory(Path(opened.place), opened.name)
    # There may have been a load while the server was starting.
    last_version, served, problem = None, None if backend.preparing else opened.current, ""
    replaced, checks = ref(opened.current), 0
    while not stop.wait(0 if backend.preparing and not problem else _INTERVAL):
        if checks and replaced() is not None:
            checks -= 1
            free_unused()
        now = version_of(directory)
        if now == last_version:
            continue
        try:
            opened.refresh()
            if opened.current is not served:
                if base is None and opened.status().statements > _MANY:
                    _build_apart(opened, stop)
                if stop.is_set():
                    return
                embedded = opened.rdf(base)
                backend.use(embedded.source, **_served(embedded))
                backend.prepare()
                if served is None:
                    complain("SPARQL is ready")
                else:
                    api.workers.renew()
                    replaced, checks = ref(served), _CHECKS
                served = embedded.snapshot
                del embedded
            last_version, problem = now, ""
        except Exception as error:  # noqa: BLE001 - the server continues, and will see the next load
            if str(error) != problem:
                problem = str(error)
                loaded_again = "the graph was loaded again and cannot be served", "the old one goes on"
                problem_text, consequence = ("SPARQL is not available", "it is tried again") if backend.preparing else loaded_again
                complain(f"warning: {problem_text}: {error}; {consequence}")
