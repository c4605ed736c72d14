"""Pages in a real browser: visited, watched, and photographed on request."""

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
    """The page at a path of a server, once `ready` (a selector) is there. Afterwards: it asked nobody
    else (but `also`), and the console has nothing of the kinds `silent`, but for messages with one of `known`
    and for statuses, which a browser tells by itself.
    """
    context = browser.new_context(**({"viewport": {"width": 1200, "height": 760}} | options))
    page = context.new_page()
    page.set_default_timeout(120_000)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.goto(url + path)
    page.wait_for_selector(ready)
    try:
        yield page
    finally:
        context.close()
    assert not [one for one in asked if not one.startswith((url, *also, "data:", "blob:"))]
    assert not [one for one in said if one.startswith(silent) and not any(text in one for text in ("status of", *known))], said


def until(page: Any, expression: str, arg: Any = None) -> None:
    """Wait for something; the page's policy keeps playwright's own way of waiting from it."""
    end = time.monotonic() + 120
    while not page.evaluate(expression, arg):
        assert time.monotonic() < end, (expression, page.inner_text("body")[:2000])
        time.sleep(0.05)


def answered(page: Any) -> None:
    """Wait until the studio has the answer that was asked for: one that stood there before is marked at once."""
    until(page, "!document.querySelector('.answer[aria-busy]')")


def picture(page: Any, name: str) -> None:
    """Leave a picture in the folder that `CONDGRAPH_SCREENSHOTS` names."""
    folder = os.environ.get("CONDGRAPH_SCREENSHOTS")
    if folder:
        page.wait_for_timeout(400)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))
