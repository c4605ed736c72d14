"""How slow this machine is just now, so that a test that holds a time holds it on any machine.

Whoever tests a time says what a usual machine may take; here that is multiplied by what fixed work
(loops, dictionaries, sorting) takes now, compared with a usual machine. Other programs on the same
cores make the processor's own time longer too, by as much as two, so that a fixed limit fails at
random. A fault that makes work quadratic is far beyond any such factor.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

#: Seconds that the work takes on a usual machine with nothing else to do.
_USUAL: Final = 0.020


def _work() -> None:
    names = {f"n{i}": i for i in range(20_000)}
    total = 0
    for name in names:
        total += names[name] * len(name)
    np.sort(np.arange(200_000)[::-1] % 7919)


def slowness() -> float:
    """How many times longer than on a usual machine work takes now: 1.0 or more."""
    most = 1.0
    for _ in range(3):
        begin = time.perf_counter()
        _work()
        most = max(most, (time.perf_counter() - begin) / _USUAL)
    return most


def quick_enough(spent: float, limit: float) -> bool:
    """Whether something that took so many seconds here and now would take less than the limit on a usual
    machine.
    """
    return spent < limit or spent < limit * slowness()
