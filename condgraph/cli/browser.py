"""`condgraph browser`: files that make a graph on Neo4j readable in Neo4j Browser."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path
from typing import Annotated, Final

import typer

from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import complain, guard
from condgraph.cli.groups import grouped
from condgraph.engine.errors import OptionError, UnsupportedError

#: The style file in the folder.
STYLE: Final = "condgraph.grass"
#: All queries in one file: Browser takes one that is dropped, and none of several.
QUERIES: Final = "queries.zip"


@grouped
def browser(
    *,
    store: StoreOption,
    login: LoginOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder, made where it is missing.")] = Path(
        "neo4j-browser"
    ),
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write a style file and queries for Neo4j Browser: captions, colours for the commonest concepts,
    and what there is to look at in the graph. Drop the style onto Browser, then `queries.zip`.
    """
    with guard(), opened(store, login) as at:
        from condgraph.cypher import browser as made
        from condgraph.cypher.store import Neo4jStore
        from condgraph.remote_neo4j import Neo4jGraph

        if not isinstance(at, Neo4jGraph) or not isinstance(at.store, Neo4jStore):
            raise UnsupportedError(at.place, ["files for Neo4j Browser"], hint="they are for a graph that condgraph keeps on Neo4j")
        labels = at.store.carried()
        found = made.queries(at.schema(), login.graph, labels).items()
        queries = {f"{number:02}.cypher": f"// {title}\n{text}\n".encode() for number, (title, text) in enumerate(found, 1)}
        _write(output, {STYLE: made.style(labels or ()).encode(), QUERIES: _packed(queries), **queries}, force=force)
        if labels is None:
            complain(
                "warning: entities carry no labels of concepts, so that they have one colour; "
                "`condgraph load --labels`, or graph.label(), gives them labels"
            )
        for label in labels or ():
            if not made.can_be_coloured(label):
                why = "Browser's styles cannot name a label with a backslash"
                complain(f"warning: {label!r} has the colour of all entities: {why}")
        typer.echo(f"{STYLE} and {QUERIES} ({len(queries)} queries) are in {output}: drop one, then the other onto Neo4j Browser")


def _packed(files: dict[str, bytes]) -> bytes:
    """Files as a ZIP archive: the same files give the same bytes."""
    place = BytesIO()
    with zipfile.ZipFile(place, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return place.getvalue()


def _write(folder: Path, files: dict[str, bytes], *, force: bool) -> None:
    # Whole or not at all: what a person has changed there is not overwritten unasked.
    there = next((name for name in files if (folder / name).exists()), None)
    if there is not None and not force:
        raise OptionError(f"{folder / there} is there already", hint="--force writes over it, --output names another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise OptionError(f"{folder} cannot be written: {error.strerror}") from None
