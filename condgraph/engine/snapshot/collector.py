"""Fewer runs of the cyclic garbage collector while a graph is built.

A load makes millions of small objects that live until it ends and hardly any cycles, so looking at
all of them again and again finds nothing and costs half of the time. The collector is not switched
off: what other threads leave behind is still found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

#: Objects between two collections, and collections of each generation between two of the next.
_THRESHOLDS: Final = (200_000, 50, 100)
_lock = Lock()
_before: list[tuple[int, int, int]] = []


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Collect less often; what was set before is set again when the last of several loads ends."""
    with _lock:
        _before.append(gc.get_threshold())
        if gc.get_threshold()[0]:  # whoever switched it off means it
            gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        with _lock:
            # The first in the list is what was set before any of them; loads may end in any order.
            if len(_before) == 1:
                gc.set_threshold(*_before[0])
                _before.clear()
            else:
                _before.pop()
