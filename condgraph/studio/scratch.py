"""Scratch graphs: folders that live as long as the server, or until they were not asked for an hour.
Whoever has the name of one may ask it, and names cannot be guessed.
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from condgraph.endpoint.protocol import ProtocolError

#: Scratch graphs that there may be at once, of all clients, and of one; files of one of them.
_MOST: Final = 32
_MOST_OF_ONE: Final = 8
_FILES: Final = 50
#: Seconds after which one that nobody asked goes.
_IDLE: Final = 3600.0
_NAME: Final = re.compile(r"[0-9a-f]{32}")
#: What stays of the name of a file: no folders, no control characters, no hidden files.
_UNSAFE: Final = re.compile(r"[^\w.()\[\] ,+-]")


@dataclass(slots=True)
class Scratch:
    """One of them: its folder, who made it, bytes of its files, when it was asked last."""

    folder: Path
    owner: str
    size: int = 0
    files: int = 0
    #: Files of tables, which further ones may refer to: they are kept.
    tables: list[str] = field(default_factory=list)
    used: float = field(default_factory=time.monotonic)

    @property
    def place(self) -> Path:
        """The store."""
        return self.folder / "store"


class ScratchGraphs:
    """All of them; `most` is how many bytes the files of one may have together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._root: Path | None = None
        self._graphs: dict[str, Scratch] = {}

    def make(self, owner: str) -> str:
        """A new one; the oldest of this client goes where it has too many, status 503 where all
        have.
        """
        self._sweep()
        own = sorted((one.used, name) for name, one in self._graphs.items() if one.owner == owner)
        if len(own) >= _MOST_OF_ONE:
            self.remove(own[0][1])
        if len(self._graphs) >= _MOST:
            raise ProtocolError(503, f"there are {_MOST} scratch graphs; try again later", {"Retry-After": "60"})
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="condgraph-studio-"))
        name = secrets.token_hex(16)
        folder = self._root / name
        folder.mkdir(mode=0o700)
        self._graphs[name] = Scratch(folder, owner)
        return name

    def find(self, name: str) -> Scratch:
        """One by its name; status 404 where there is none."""
        self._sweep()
        found = self._graphs.get(name) if _NAME.fullmatch(name) else None
        if found is None:
            raise ProtocolError(404, "there is no such scratch graph; it may have been removed")
        found.used = time.monotonic()
        return found

    def file(self, one: Scratch, name: str) -> Path:
        """Where a file is kept while it is loaded: its name without all that could mean a place."""
        if one.files >= _FILES:
            raise ProtocolError(413, f"a scratch graph has at most {_FILES} files")
        one.files += 1
        safe = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(". ")[-100:] or "file"
        folder = one.folder / f"file{one.files}"
        folder.mkdir(mode=0o700)
        return folder / safe

    def remove(self, name: str) -> None:
        """Remove one."""
        found = self._graphs.pop(name, None)
        if found is not None:
            shutil.rmtree(found.folder, ignore_errors=True)

    def _sweep(self) -> None:
        now = time.monotonic()
        for name in [name for name, one in self._graphs.items() if now - one.used > _IDLE]:
            self.remove(name)

    def close(self) -> None:
        """Remove all."""
        self._graphs.clear()
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None
