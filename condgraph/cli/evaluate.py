"""The commands `condgraph evaluate ask` and `condgraph evaluate logic`."""

from __future__ import annotations

import typer

from condgraph.cli.evaluate_ask import ask
from condgraph.cli.evaluate_logic import logic
from condgraph.cli.exits import EXIT_CODES

evaluate = typer.Typer(
    name="evaluate",
    help="Say how well questions are answered whose answers are known.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
for command in (ask, logic):
    evaluate.command(epilog=EXIT_CODES)(command)
