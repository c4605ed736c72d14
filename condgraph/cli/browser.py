"""`condgraph browser`: files that make a graph on Neo4j readable in Neo4j Browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from condgraph.cli.arguments import DatabaseOption, GraphOption, PasswordOption, StoreOption, UserOption, opened
from condgraph.cli.exits import complain, guard
from condgraph.engine.errors import OptionError, UnsupportedError

#: The style file in the folder.
STYLE: Final = "condgraph.grass"


def browser(
    store: StoreOption,
    graph: GraphOption = "default",
    user: UserOption = None,
    password: PasswordOption = None,
    database: DatabaseOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder, made where it is missing.")] = Path(
        "neo4j-browser"
    ),
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write a style file and queries for Neo4j Browser: captions, colours for the commonest concepts,
    and what there is to look at in the graph. Drop the files onto Browser.
    """
    with guard(), opened(store, graph, user, password, database) as at:
        from condgraph.cypher import browser as made
        from condgraph.cypher.store import Neo4jStore
        from condgraph.remote_neo4j import Neo4jGraph

        if not isinstance(at, Neo4jGraph) or not isinstance(at.store, Neo4jStore):
            raise UnsupportedError(at.place, ["files for Neo4j Browser"], hint="they are for a graph that condgraph keeps on Neo4j")
        labels = at.store.carried()
        files = {STYLE: made.style(labels or ())}
        for number, (title, text) in enumerate(made.queries(at.schema(), graph, labels).items(), 1):
            files[f"{number:02}.cypher"] = f"// {title}\n{text}\n"
        _write(output, files, force=force)
        if labels is None:
            complain(
                "warning: entities carry no labels of concepts, so that they have one colour; "
                "`condgraph load --labels`, or graph.label(), gives them labels"
            )
        typer.echo(f"{STYLE} and {len(files) - 1} queries are in {output}: drop them onto Neo4j Browser")


def _write(folder: Path, files: dict[str, str], *, force: bool) -> None:
    # Whole or not at all: what a person has changed there is not overwritten unasked.
    there = next((name for name in files if (folder / name).exists()), None)
    if there is not None and not force:
        raise OptionError(f"{folder / there} is there already", hint="--force writes over it, --output names another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"{folder} cannot be written: {error.strerror}") from None
