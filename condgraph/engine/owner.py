"""The process that writes a graph: a name from which other processes can tell whether it has ended."""

from __future__ import annotations

import os
import socket
from typing import ClassVar, Final
from uuid import uuid4

#: The name of a writer that has certainly ended.
NOBODY: Final = "nobody"
#: The time in seconds after which a silent writer on another machine counts as gone.
SILENT: Final = 60.0


class Owner:
    """One writer: its host, its process id, and a token."""

    _here: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}/{os.getpid()}/{uuid4().hex}"
        self._here.add(self.name)

    def release(self) -> None:
        """Mark this writer as ended."""
        self._here.discard(self.name)

    @staticmethod
    def place(name: str) -> str:
        """Return the process and host of a writer, for a message."""
        host, _, process = name.partition("/")
        return f"process {process.partition('/')[0]} on {host}"

    @staticmethod
    def here(name: str) -> bool:
        """Return whether a writer is, or was, on this machine."""
        return name.partition("/")[0] == socket.gethostname()

    @classmethod
    def gone(cls, name: str, silent: float) -> bool:
        """Return whether a writer that has been silent for some seconds has ended: known at once for this machine,
        later for others.
        """
        host, _, remainder = name.partition("/")
        process = remainder.partition("/")[0]
        if name == NOBODY:
            return True
        if host != socket.gethostname() or not process.isdigit():
            return silent > SILENT
        if int(process) == os.getpid():
            return name not in cls._here
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        # The process id may have been reused.
        return silent > SILENT
