"""The present slowness of this machine, so that tests of time limits hold on any machine.

A test states a limit for a usual machine; it is multiplied by the time that fixed work (loops, dictionaries, sorting)
takes now, relative to a usual machine. Other programs on the same cores lengthen processor time too, by up to a factor
of two, so a fixed limit would fail at random. An error that makes work quadratic exceeds any such factor by far.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

#: Seconds for the work on a usual, idle machine.
_USUAL: Final = 0.020


def _work() -> None:
    names = {f"n{i}": i for i in range(20_000)}
    total = 0
    for name in names:
        total += names[name] * len(name)
    np.sort(np.arange(200_000)[::-1] % 7919)


def slowness() -> float:
    """Return how many times longer work takes now than on a usual machine: 1.0 or more."""
    most = 1.0
    for _ in range(3):
        begin = time.perf_counter()
        _work()
        most = max(most, (time.perf_counter() - begin) / _USUAL)
    return most


def quick_enough(spent: float, limit: float) -> bool:
    """Return whether work that took `spent` seconds here and now would take less than the limit on a usual machine."""
    return spent < limit or spent < limit * slowness()
