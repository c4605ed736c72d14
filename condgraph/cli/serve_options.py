"""The options of `condgraph serve`, by what they are about: queries, clients, the studio, SPARQL over a
graph in Neo4j.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

if TYPE_CHECKING:
    from condgraph.endpoint.clients import Bounds
    from condgraph.endpoint.guard import Guard


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
    in_memory: Annotated[
        int,
        typer.Option("--in-memory", metavar="N", min=0, help="Triples of a graph that SPARQL holds in memory at most; 0 for none."),
    ] = 100_000
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


@dataclass(frozen=True, slots=True)
class StudioOptions:
    """Who may use the studio and its API, and what it may do."""

    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", envvar="CONDGRAPH_TOKEN_FILE", metavar="FILE", exists=True, dir_okay=False,
            help="Users and their tokens, a line NAME:TOKEN each; needed where HOST is not this machine alone.",
        ),
    ] = None  # fmt: skip
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", "--allow-origin", metavar="ORIGIN", help="Web pages of another server that may ask; * for all."),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name of this server, such as that of a proxy."),
    ] = None
    rate: Annotated[
        float, typer.Option("--rate", metavar="N", min=0.0, help="The most requests of a client a second, to the API; 0 for any.")
    ] = 50.0
    llm: Annotated[
        str | None,
        typer.Option("--llm", envvar="CONDGRAPH_LLM", metavar="MODEL", help="The model that questions in words are asked of."),
    ] = None
    ask_timeout: Annotated[
        float, typer.Option("--ask-timeout", metavar="SECONDS", min=0.001, help="The deadline of a question in words.")
    ] = 120.0
    drop_size: Annotated[
        int, typer.Option("--drop-size", metavar="MIB", min=0, help="The most of files that are dropped on a scratch graph.")
    ] = 64

    def guard(self, host: str, base: str | None) -> Guard:
        """Who may ask a server that listens at `host`; the host of a `base` is a name of the server."""
        from condgraph.endpoint.guard import Guard, Rates, Tokens, hosts_of, is_loopback, origins_of

        own = urlsplit(base).hostname if base is not None else None
        return Guard(
            Tokens() if self.token_file is None else Tokens.read(self.token_file),
            Rates(self.rate, 4 * self.rate),
            is_loopback(host),
            origins_of(self.cors or ()),
            (*hosts_of(self.allow_host or ()), *(() if own is None else (own,))),
        )


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """SPARQL over a graph that stands in Neo4j."""

    replica_size: Annotated[
        int,
        typer.Option(
            "--replica-size", metavar="N",
            help="The most statements of a graph in Neo4j that are read into process for SPARQL; 0 for no SPARQL.",
        ),
    ] = 1_000_000  # fmt: skip
    refresh: Annotated[
        float | None,
        typer.Option(
            "--refresh",
            metavar="SECONDS",
            min=1.0,
            help="Read a graph in Neo4j anew when it is so old; one that condgraph did not write, after 60.",
        ),
    ] = None
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Ask a Neo4j database that condgraph did not write where it is, without a copy: some queries are answered.",
        ),
    ] = False
