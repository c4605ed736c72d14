"""The process that writes a graph: a name by which other processes find out that it has ended."""

from __future__ import annotations

import os
import socket
from typing import ClassVar, Final
from uuid import uuid4

#: The name of a writer that has surely ended.
NOBODY: Final = "nobody"
#: A writer on another machine that has written nothing for so many seconds is taken to be gone.
SILENT: Final = 60.0


class Owner:
    """One writer: the machine, its process, and a token."""

    _here: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}/{os.getpid()}/{uuid4().hex}"
        self._here.add(self.name)

    def release(self) -> None:
        """This writer has ended."""
        self._here.discard(self.name)

    @staticmethod
    def place(name: str) -> str:
        """Where a writer is, for a message."""
        host, _, rest = name.partition("/")
        return f"process {rest.partition('/')[0]} on {host}"

    @staticmethod
    def here(name: str) -> bool:
        """Whether a writer is, or was, on this machine."""
        return name.partition("/")[0] == socket.gethostname()

    @classmethod
    def gone(cls, name: str, silent: float) -> bool:
        """Whether a writer, silent for so many seconds, has ended: at once for one of this machine,
        later for others.
        """
        host, _, rest = name.partition("/")
        process = rest.partition("/")[0]
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
        # Another process may have its number by now.
        return silent > SILENT
