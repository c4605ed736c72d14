"""Prompts: versioned files that users can replace, filled with names and cells that cannot leave
their place.

A prompt is a text file `NAME.vN.txt` in `prompts`; a folder given as `prompts=` is looked into
first, for files of the same names. What is filled in stands between braces. Data of the graph
stands in a block between two marks with a nonce, which no name can say, as JSON strings without
control characters (`overview.words.quoted`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

from condgraph.engine.errors import OptionError, nearest

#: The prompts, and which fields each may have.
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"mark", "language"}),
    "user": frozenset({"excerpt", "demonstrations", "question"}),
    "query": frozenset(),
    "kopl": frozenset(),
    "pattern": frozenset(),
    "retry": frozenset({"feedback"}),
    "verbalise": frozenset({"mark", "facts", "question"}),
    "function": frozenset({"mark", "question", "step", "function", "values"}),
}
_OWN: Final = Path(__file__).with_name("prompts")
_FILE: Final = re.compile(r"([a-z]+)\.v(\d+)\.txt")
_FIELD: Final = re.compile(r"\{\{|\}\}|\{([a-z]+)\}")
#: Characters of a prompt file that are read.
MOST: Final = 50_000


class Prompts:
    """The prompts of one call; `versions` has the file that each came from, once it was used."""

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self._texts = dict(_read(_OWN))
        self._from = {name: text[0] for name, text in self._texts.items()}
        if place is not None:
            folder = Path(place)
            if not folder.is_dir():
                raise OptionError(f"prompts is a folder with files such as system.v1.txt, not {os.fspath(place)!r}")
            for name, text in _read_now(folder).items():
                self._texts[name], self._from[name] = text, str(folder / text[0])

    @property
    def versions(self) -> dict[str, str]:
        """The file that each prompt came from, by its name."""
        return dict(self._from)

    def fill(self, name: str, **fields: str) -> str:
        """A prompt with its fields filled in; texts that are filled in are not looked into again."""
        file, text = self._texts[name]

        def put(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0][0]
            if found[1] not in fields:
                raise OptionError(
                    f"the prompt {file} has no field {found[1]!r}",
                    candidates=nearest(found[1], FIELDS[name]),
                    hint=f"its fields are {', '.join(sorted(FIELDS[name]))}; a brace is written {{{{",
                )
            return fields[found[1]]

        return _FIELD.sub(put, text).strip("\n")


@lru_cache(maxsize=4)
def _read(folder: Path) -> Mapping[str, tuple[str, str]]:
    return _read_now(folder)


def _read_now(folder: Path) -> dict[str, tuple[str, str]]:
    """The newest version of each prompt in a folder: its file, and its text."""
    found: dict[str, tuple[int, str, str]] = {}
    for path in sorted(folder.iterdir()):
        named = _FILE.fullmatch(path.name)
        if named is None:
            continue
        if named[1] not in FIELDS:
            raise OptionError(f"there is no prompt {named[1]!r}", candidates=nearest(named[1], FIELDS))
        version = int(named[2])
        if named[1] not in found or found[named[1]][0] < version:
            text = path.read_text("utf-8")
            if len(text) > MOST:
                raise OptionError(f"the prompt {path.name} has more than {MOST:,} characters")
            found[named[1]] = version, path.name, text
    return {name: (file, text) for name, (_, file, text) in found.items()}


def mark_of(seed: int, taken: Sequence[str]) -> str:
    """A word that none of these texts has, the same for the same seed: it marks where data begins
    and ends.
    """
    drawn = Random(f"mark {seed}")
    while True:
        mark = f"DATA-{drawn.getrandbits(64):016x}"
        if not any(mark in text for text in taken):
            return mark


def block(mark: str, text: str) -> str:
    """A text of data between its marks."""
    return f"<{mark}>\n{text}\n</{mark}>"


#: From text to how many tokens it is.
Count = Callable[[str], int]
