"""Arguments that several commands take: the store, the graph in it, and the program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StoreOption = Annotated[
    str,
    typer.Option("--directory", "-d", envvar="CONDGRAPH_STORE", metavar="STORE", help="The folder of the store."),
]
GraphOption = Annotated[str, typer.Option("--graph", metavar="NAME", help="The graph in the store.")]
TextArgument = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="The program; `-`, or nothing, reads it from standard input.", show_default=False),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", exists=True, dir_okay=False, help="Read the program from a file."),
]
LanguageOption = Annotated[
    str | None,
    typer.Option("--language", metavar="LANGUAGE", help="The program's language (`kopl`, say); told from the text by default."),
]
