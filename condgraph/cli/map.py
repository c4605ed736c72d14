"""`condgraph map`: what a Neo4j database that condgraph did not write is taken for, as a mapping file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import condgraph
from condgraph.cli import complete
from condgraph.cli.arguments import DatabaseOption, PasswordOption, UserOption, is_neo4j
from condgraph.cli.exits import guard
from condgraph.cli.options import file_of
from condgraph.engine.errors import OptionError


def map_database(
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", envvar=complete.STORE_VARIABLES, help="The address of a Neo4j server: bolt://HOST:PORT."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file; standard output by default.")
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE", help="A mapping file that is read first: it is checked, and filled up."),
    ] = None,
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write what a Neo4j database that condgraph did not write is taken for, with the reason of each
    choice, as a mapping file. Nothing is written to the database.
    """
    from condgraph.remote_native import NativeGraph

    output = file_of(output)
    given = {"user": user, "password": password, "database": database, "mapping": mapping, "timeout": timeout}
    with guard():
        if not is_neo4j(address):
            raise OptionError(f"{address!r} is no address of a Neo4j server", hint="such as bolt://localhost:7687")
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        with condgraph.open(address, layout="native", **options) as graph:
            assert isinstance(graph, NativeGraph)
            text = graph.mapping_file(timeout=timeout)
        if output is None:
            typer.echo(text, nl=False)
            return
        try:
            # What a person has written into a file is not overwritten unasked.
            with output.open("w" if force else "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except FileExistsError:
            raise OptionError(f"{output} is there already", hint="--force writes over it, --mapping reads it first") from None
        except OSError as error:
            raise OptionError(f"{output} cannot be written: {error.strerror}") from None
