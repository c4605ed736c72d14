"""The command `condgraph guess`: what the tables of a folder could be declared as."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from condgraph.cli.exits import complain, guard
from condgraph.cli.options import file_of, loader_options
from condgraph.engine.errors import LoadError


def guess(
    place: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder of tables, a workbook, an SQLite file, or the address of a database.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; condgraph.toml in the folder, else standard output."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write over a file that is there.")] = False,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-O", metavar="OPTION=VALUE", help="An option of the format, as of `load`.")
    ] = None,
) -> None:
    """Write a declaration of related tables (keys, references, names), with the reason for each
    line, for you to edit; `load` reads it.
    """
    options = loader_options(option or [])
    with guard():
        from condgraph.loaders.declaring import guess as guessed
        from condgraph.loaders.files import file_errors
        from condgraph.loaders.folder.declared import FILE

        output = Path(place) / FILE if output is None and Path(place).is_dir() else file_of(output)
        if output is not None and output.exists() and not replace:
            raise LoadError("this file is there already", file=str(output), hint="--replace writes over it")
        text = guessed(place, **options)
        if output is None:
            typer.echo(text, nl=False)
            return
        with file_errors(output):
            fresh = output.with_name(f".{output.name}.{os.getpid()}")
            fresh.write_text(text, encoding="utf-8", newline="\n")
            os.replace(fresh, output)
        complain(f"wrote {output}")
