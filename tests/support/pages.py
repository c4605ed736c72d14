"""Pages in a real browser: open them, watch requests and console, take pictures on request."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers import TOOLS  # noqa: F401 - puts the tools on the path

import browser_shot  # isort: skip

CHROMIUM = browser_shot.chromium()


@contextmanager
def visited(
    browser: Any,
    url: str,
    path: str,
    ready: str,
    *,
    silent: tuple[str, ...] = ("error",),
    known: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[Any]:
    """Yield the page at a path of a server once the selector `ready` matches. Afterwards, check that it sent no
    requests elsewhere (except to `also`), and that the console has no messages of the kinds `silent`, except those that
    contain a text in `known` and the browser's own messages about statuses.
    """
    context = browser.new_context(**({"viewport": {"width": 1200, "height": 760}} | options))
    page = context.new_page()
    page.set_default_timeout(120_000)
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: messages.append(f"error: {error}"))
    page.goto(url + path)
    page.wait_for_selector(ready)
    try:
        yield page
    finally:
        context.close()
    assert not [entry for entry in requests if not entry.startswith((url, *also, "data:", "blob:"))]
    assert not [
        entry for entry in messages if entry.startswith(silent) and not any(text in entry for text in ("status of", *known))
    ], messages


def until(page: Any, expression: str, arg: Any = None) -> None:
    """Wait for a condition; the page's policy forbids playwright's own way of waiting."""
    end = time.monotonic() + 120
    while not page.evaluate(expression, arg):
        assert time.monotonic() < end, (expression, page.inner_text("body")[:2000])
        time.sleep(0.05)


def answered(page: Any) -> None:
    """Wait until the studio shows the requested answer: an earlier one is marked busy at once."""
    until(page, "!document.querySelector('.answer[aria-busy]')")


def picture(page: Any, name: str) -> None:
    """Save a picture in the folder that `CONDGRAPH_SCREENSHOTS` names."""
    folder = os.environ.get("CONDGRAPH_SCREENSHOTS")
    if folder:
        page.wait_for_timeout(400)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))
