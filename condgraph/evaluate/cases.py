"""Questions whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import overload


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the texts of its right answer, and the source that it is about, where one is said."""

    question: str
    answers: tuple[str, ...]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Cases(Sequence[Case]):
    """Questions in the order of their file; `dataset` names the data set they are of, "" for one's
    own; `left_out` says which records of the file are no questions that can be asked, with a reason.
    """

    items: tuple[Case, ...]
    dataset: str = ""
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        return self.items[index]

    def sample(self, many: int, seed: int = 0) -> Cases:
        """So many of them, drawn by `seed`, in their order."""
        if many >= len(self.items):
            return self
        drawn = sorted(Random(seed).sample(range(len(self.items)), many))
        return Cases(tuple(self.items[at] for at in drawn), self.dataset, self.left_out)
