"""Logging in to a server of databases, and its errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from condgraph.engine.errors import LoadError
from condgraph.loaders.database.tables import told

#: Seconds until a server that says nothing is given up.
CONNECT: Final = 20


@dataclass(frozen=True)
class Login:
    """What an address says: who logs in where, to which database, and how the place is called in
    messages.
    """

    scheme: str
    user: str
    password: str = field(repr=False)
    host: str
    port: int | None
    name: str
    options: dict[str, str] = field(repr=False)
    location: str


@contextmanager
def server_errors(library: Any, location: str, doing: str) -> Iterator[None]:
    """Errors of a library as a `LoadError` that says what was tried where."""
    try:
        yield
    except (library.Error, OSError, UnicodeError, ValueError) as error:
        raise LoadError(f"{doing}: {told(error)}", file=location) from None
