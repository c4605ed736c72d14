"""A progress bar on standard error while something takes long; nothing where standard error is not
a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath

from condgraph.loaders.base import Progress


@contextmanager
def loading_progress(*, quiet: bool) -> Iterator[Progress | None]:
    """The callback that a load tells of its records, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[records]:,} records", table_column=Column(no_wrap=True, min_width=16)),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(location: str, records: int, fraction: float | None) -> None:
            if location not in tasks:
                tasks[location] = bars.add_task(escape(PurePath(location).name or "source"), total=None, records=0)
            if fraction is None:
                bars.update(tasks[location], records=records)
            else:
                bars.update(tasks[location], total=1.0, completed=fraction, records=records)

        yield advance


@contextmanager
def counting_progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """The callback that hears how many are done, of how many; or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance
