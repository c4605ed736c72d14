"""`condgraph serve`: a SPARQL endpoint over a graph of a store, until it is stopped."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Final

import typer

import condgraph
from condgraph.cli.exits import complain, guard
from condgraph.cli.groups import grouped
from condgraph.engine.errors import CondgraphError
from condgraph.engine.snapshot.directory import graph_directory

if TYPE_CHECKING:
    from condgraph.endpoint.backend import OxigraphBackend
    from condgraph.endpoint.clients import Bounds
    from condgraph.graph import Graph
    from condgraph.sparql.embedded import EmbeddedStore

#: Seconds between two looks for a newer generation.
_LOOK: Final = 1.0


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a query may take."""

    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="The deadline of every query.")] = 30.0
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="The most results of a query; 0 for all.")] = 10_000
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, help="Queries that run at once; by default two a processor.")
    ] = None
    memory: Annotated[
        int, typer.Option("--memory", metavar="MIB", min=0, help="The most memory of a query, in MiB; 0 for any amount.")
    ] = 2048
    grace: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", min=0.0, help="How long queries may go on when the server is stopped.")
    ] = 10.0
    data_timeout: Annotated[
        float, typer.Option("--data-timeout", metavar="SECONDS", min=0.001, help="The deadline of a whole graph (/data).")
    ] = 600.0

    @property
    def at_once(self) -> int:
        """Queries that run at once."""
        return self.workers or 2 * (os.cpu_count() or 2)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What clients may take of the server."""

    connections: Annotated[int, typer.Option("--connections", metavar="N", min=1, help="The most open connections.")] = 2_000
    client_connections: Annotated[
        int,
        typer.Option("--client-connections", metavar="N", min=1, help="The most open connections of one client, by its address."),
    ] = 256
    head_timeout: Annotated[
        float, typer.Option("--head-timeout", metavar="SECONDS", min=0.001, help="How long a client may take for a request's head.")
    ] = 10.0
    body_timeout: Annotated[
        float, typer.Option("--body-timeout", metavar="SECONDS", min=0.001, help="How long a client may take for a request's body.")
    ] = 30.0
    idle_timeout: Annotated[
        float, typer.Option("--idle-timeout", metavar="SECONDS", min=0.001, help="How long a connection may wait for a request.")
    ] = 15.0
    write_timeout: Annotated[
        float,
        typer.Option("--write-timeout", metavar="SECONDS", min=0.001, help="How soon a client is ended who reads under 8 KiB/s."),
    ] = 30.0
    head_size: Annotated[int, typer.Option("--head-size", metavar="KIB", min=1, help="The longest head of a request.")] = 64
    body_size: Annotated[int, typer.Option("--body-size", metavar="KIB", min=1, help="The longest body of a request.")] = 4096
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option("--trusted-proxy", metavar="ADDRESS", help="A proxy, or a network, whose X-Forwarded-For is believed."),
    ] = None

    def bounds(self) -> Bounds:
        """These as bounds of the server."""
        from condgraph.endpoint.clients import Bounds

        return Bounds(
            connections=self.connections,
            per_client=self.client_connections,
            head_timeout=self.head_timeout,
            body_timeout=self.body_timeout,
            idle_timeout=self.idle_timeout,
            write_timeout=self.write_timeout,
            head_bytes=self.head_size << 10,
        )


@grouped
def serve(
    *,
    store: Annotated[
        str, typer.Option("--directory", "-d", envvar="CONDGRAPH_STORE", metavar="STORE", help="The folder of the store.")
    ],
    graph: Annotated[str, typer.Option("--graph", metavar="NAME", help="The graph in the store.")] = "default",
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Where to listen; 0.0.0.0 is everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 for any that is free.")] = 7878,
    queries: QueryOptions,
    clients: ClientOptions,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line for every request.")] = False,
) -> None:
    """Answer SPARQL over HTTP, with a page for people; a graph that is loaded anew is served anew."""
    with guard(), condgraph.open(store, graph=graph, read_only=True) as opened:
        from condgraph.endpoint.app import application
        from condgraph.endpoint.clients import Proxies
        from condgraph.endpoint.server import listen, log_to_stderr, server
        from condgraph.endpoint.service import Limits

        bounds, proxies = clients.bounds(), Proxies(clients.trusted_proxy or ())
        # As many as may take more than a moment beside those that are computed.
        streams = 2 * queries.at_once
        limits = Limits(queries.timeout, queries.limit or None, queries.data_timeout, clients.body_size << 10, streams=streams)
        embedded = opened.rdf()
        log_to_stderr(requests=not quiet)
        backend = _backend(embedded, queries)

        def started(address: str) -> None:
            typer.echo(f"{address}/ serves {graph!r} of {store}; SPARQL at {address}/sparql")

        sock = listen(host, port)
        running = server(application(backend, limits), [sock], grace=queries.grace, started=started, bounds=bounds, proxies=proxies)
        stop = Event()
        watching = Thread(target=_follow, args=(opened, backend, graph_directory(Path(store), graph), stop), daemon=True)
        watching.start()
        # The server handles these itself and raises them again when it has ended, which is all that
        # they are for.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        try:
            running.run(sockets=[sock])
        finally:
            stop.set()
            watching.join()
            backend.close()


def _backend(embedded: EmbeddedStore, queries: QueryOptions) -> OxigraphBackend:
    from condgraph.endpoint.backend import OxigraphBackend
    from condgraph.sparql.layout import PRED

    base = embedded.base
    return OxigraphBackend(
        embedded.kept,
        graphs=[base],
        default=base,
        base=base,
        # None for the names: what has to be escaped behind a prefix is not understood by every
        # reader of Turtle.
        prefixes={"pred": PRED},
        workers=queries.at_once,
        memory=queries.memory << 20,
    )


def _follow(opened: Graph, backend: OxigraphBackend, directory: Path, stop: Event) -> None:
    """Serve the generation that a load makes, as soon as its RDF is there."""
    seen = _written(directory)
    while not stop.wait(_LOOK):
        now = _written(directory)
        if now == seen:
            continue
        seen = now
        try:
            opened.refresh()
            backend.use(opened.rdf().kept)
        except (CondgraphError, OSError) as error:
            complain(f"warning: the graph was loaded anew and cannot be served: {error}; the old one goes on")


def _written(directory: Path) -> tuple[int, int] | None:
    """What changes when a generation becomes current."""
    try:
        found = (directory / "manifest.json").stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
