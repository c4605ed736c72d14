"""Commands that take something away from a store, or write it anew: a graph, sources of it, a load
that was not finished, an earlier layout.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from condgraph.cli import complete
from condgraph.cli.arguments import LoginOptions, StoreOption, opened
from condgraph.cli.exits import Exit, complain, guard
from condgraph.cli.groups import grouped
from condgraph.cli.render import printable
from condgraph.engine.errors import StoreBusyError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@grouped
def delete(
    *,
    store: StoreOption,
    login: LoginOptions,
    yes: YesOption = False,
) -> None:
    """Remove a graph from a store, and nothing else. It asks first."""
    with guard(), opened(store, login, read_only=False) as at:
        try:
            counts = at.status().counts
            holds = f" ({counts['entities']:,} entities, {counts['relations'] + counts['attributes']:,} statements)"
        except StoreBusyError as error:
            # Half loaded, or half deleted: it can be deleted all the same.
            complain(f"warning: {error}")
            holds = ""
        _ask(f"Delete graph {login.graph!r}{holds} in {at.place}?", yes=yes)
        at.delete()
        typer.echo(f"graph {login.graph!r} is deleted")


@grouped
def unload(
    *,
    store: StoreOption,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCES...", help="Names of sources, as `condgraph status` lists them.", autocompletion=complete.sources
        ),
    ],
    login: LoginOptions,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for other processes that are loading.")
    ] = 0.0,
) -> None:
    """Take sources away from a graph, all of them or none; what other sources say as well stays."""
    with guard(), opened(store, login, read_only=False) as at:
        report = at.unload(*sources, wait=wait)
        for warning in report.warnings:
            complain(f"warning: {printable(warning)}")
        typer.echo(str(report))


@grouped
def abandon(
    *,
    store: StoreOption,
    login: LoginOptions,
    yes: YesOption = False,
) -> None:
    """Take back a load that was ended half way, so that the graph holds what it held before. It
    asks first.
    """
    with guard(), opened(store, login, read_only=False) as at:
        _ask(f"Take back the unfinished load of graph {login.graph!r} in {at.place}?", yes=yes)
        typer.echo("the load is taken back" if at.abandon() else "no load is unfinished")


def _ask(question: str, *, yes: bool) -> None:
    """Go on if a person says so; without a terminal nobody can."""
    if yes:
        return
    if not sys.stdin.isatty():
        complain("error[option]: nobody can be asked here; --yes says that it is meant")
        raise typer.Exit(Exit.USAGE)
    typer.confirm(question, abort=True)
