"""A progress bar for loads, pushes, indexes and training: one line on a terminal, a bar in a notebook, nothing
elsewhere.

Usage:

    with bar() as progress:
        graph.load("large.csv", progress=progress)
        graph.index(progress=progress)
        graph.train_links(on_epoch=progress)
"""

from __future__ import annotations

import html
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Final

#: The minimum seconds between two updates of the display.
_PAUSE: Final = 0.1
_WIDTH: Final = 20


class Bar:
    """A callback for `progress` or `on_epoch`. It accepts a location with the number of records and the fraction
    read, a number and the total, or an epoch with its loss and ranking.
    """

    def __init__(self, display: Any) -> None:
        #: The function that displays a bar in a notebook; None on a terminal.
        self._display = display
        self._handle: Any = None
        self._begin, self._next = time.monotonic(), 0.0
        self._last: tuple[str, float | None] | None = None

    def __call__(self, what: Any, done: Any, part: Any = None) -> None:
        """Report progress. The display is updated at most ten times a second."""
        if isinstance(what, str):
            name = "".join(character if character.isprintable() else "�" for character in PurePath(what).name or "source")
            self._last = f"{name}: {done:,} records", part
        elif isinstance(done, float):
            self._last = f"epoch {what:,}: loss {done:.4f}" + ("" if part is None else f", validation {part}"), None
        else:
            self._last = f"{what:,} of {done:,}", what / done if done else 1.0
        if time.monotonic() >= self._next:
            self.draw()

    def draw(self) -> None:
        """Display the last reported progress."""
        if self._last is None:
            return
        text, part = self._last
        self._next = time.monotonic() + _PAUSE
        text += f", {time.monotonic() - self._begin:,.0f} s"
        if self._display is None:
            filled = "" if part is None else f"[{'#' * round(_WIDTH * part):{_WIDTH}}] "
            sys.stderr.write(f"\r{(filled + text)[: shutil.get_terminal_size().columns - 1]}\x1b[K")
            sys.stderr.flush()
            return
        value = "" if part is None else f'value="{part:.3f}"'
        data = {"text/html": f"<progress {value}></progress> {html.escape(text)}", "text/plain": text}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def end(self) -> None:
        """Clear the line on a terminal. In a notebook the last bar stays."""
        if self._display is not None:
            self.draw()
        elif self._next:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _notebook() -> Any:
    """Return the display function of a notebook, or None if this is not one."""
    shell = sys.modules.get("IPython")
    if shell is None or getattr(shell.get_ipython(), "kernel", None) is None:
        return None
    from IPython.display import display

    return display


@contextmanager
def bar(*, quiet: bool = False) -> Iterator[Bar | None]:
    """Yield a progress bar, or None outside of notebooks if standard error is not a terminal."""
    display = None if quiet else _notebook()
    if quiet or (display is None and not sys.stderr.isatty()):
        yield None
        return
    progress = Bar(display)
    try:
        yield progress
    finally:
        progress.end()
