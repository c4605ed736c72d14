"""Arguments that several commands take: the store and how to log in to it, the graph in it, and the
program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import condgraph
from condgraph.cli import complete
from condgraph.engine.addresses import NEO4J_SCHEMES, SPARQL_SCHEMES
from condgraph.graph import Graph

StoreOption = Annotated[
    str,
    typer.Option(
        "--directory",
        "-d",
        "--address",
        "-a",
        envvar=complete.STORE_VARIABLES,
        metavar="STORE",
        help="The folder of the store, or an address: neo4j://HOST:PORT, sparql+http://HOST/PATH.",
    ),
]
UserOption = Annotated[str | None, typer.Option("--username", "-u", metavar="NAME", help="Who logs in to a server.")]
PasswordOption = Annotated[
    str | None, typer.Option("--password", "-p", metavar="PASSWORD", help="With what; NEO4J_PASSWORD keeps it out of sight.")
]
DatabaseOption = Annotated[
    str | None, typer.Option("--database", metavar="NAME", help="The database of a Neo4j server; its home database by default.")
]
GraphOption = Annotated[
    str, typer.Option("--graph", metavar="NAME", help="The graph in the store.", autocompletion=complete.graphs)
]
TextArgument = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="The program; `-`, or nothing, reads it from standard input.", show_default=False),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", exists=True, dir_okay=False, help="Read the program from a file."),
]
TableOption = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="CLAUSE",
        help="Make a table of the rows: `group by country show count() having count() > 5 order by count() desc limit 3`.",
    ),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="The value of a parameter ($NAME) of the program, without quotes."),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="LANGUAGE",
        help="The program's language (`kopl`, say); recognised from the text by default.",
        autocompletion=complete.languages,
    ),
]


def is_neo4j(store: str) -> bool:
    """Whether a store is the address of a Neo4j server."""
    scheme, mark, _ = store.partition("://")
    return bool(mark) and scheme.lower() in NEO4J_SCHEMES


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """Which graph of the store, and who logs in."""

    graph: GraphOption = "default"
    user: UserOption = None
    password: PasswordOption = None
    database: DatabaseOption = None


def opened(store: str, login: LoginOptions, *, read_only: bool = True, labels: bool | None = None) -> Graph:
    """The graph that a command is about; what to log in with is passed on where it was given, and
    what a load is to do about labels.
    """
    return condgraph.open(store, graph=login.graph, read_only=read_only, **how_to_open(store, login, read_only, labels))


def how_to_open(store: str, login: LoginOptions, read_only: bool = True, labels: bool | None = None) -> dict[str, Any]:
    """The options of `condgraph.open` that a command line and its environment say.

    A command that writes is about a graph of condgraph's own. For others the environment says how a
    Neo4j database is to be taken: `CONDGRAPH_LAYOUT`, and `CONDGRAPH_MAPPING`, a mapping file. It
    also says what addresses an RDF store has beside the one for queries: `SPARQL_UPDATE`, and
    `SPARQL_STORE` (Graph Store Protocol).
    """
    given: dict[str, Any] = {"user": login.user, "password": login.password, "database": login.database, "labels": labels}
    if is_neo4j(store):
        given |= {"layout": os.environ.get("CONDGRAPH_LAYOUT") or None, "mapping": os.environ.get("CONDGRAPH_MAPPING") or None}
        if not read_only:
            given |= {"layout": "condgraph", "mapping": None}
    elif store.partition("://")[0].lower() in SPARQL_SCHEMES:
        given |= {"update": os.environ.get("SPARQL_UPDATE") or None, "store": os.environ.get("SPARQL_STORE") or None}
    return {name: value for name, value in given.items() if value is not None}
