"""One step of a program as the trace of an answer shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of the program gave: its operator in words, how many results, the first few of
    them, a remark.
    """

    function: str
    operator: str
    size: int
    sample: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        shown = ", ".join(self.sample) + (", ..." if self.size > len(self.sample) else "")
        return f"{self.function}: {self.size}" + (f" ({shown})" if shown else "") + (f"; {self.note}" if self.note else "")
