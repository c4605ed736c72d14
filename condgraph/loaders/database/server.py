"""PostgreSQL and MySQL (MariaDB) by URL. The password of a URL is in no message and not in the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from condgraph.engine.addresses import parse
from condgraph.engine.facts import Item
from condgraph.loaders.base import Format, Options, Reading
from condgraph.loaders.database.login import Login
from condgraph.loaders.database.mysql import mysql
from condgraph.loaders.database.postgres import postgres
from condgraph.loaders.database.tables import (
    DATABASE_OPTIONS,
    Database,
    content_of,
    read_database,
)

POSTGRES: Final = ("postgresql", "postgres")
MYSQL: Final = ("mysql", "mariadb")
_EXAMPLE: Final = "{}://user:password@host:port/database"


@dataclass(frozen=True)
class DatabaseUrl:
    """The address of a database; what is shown of it has no password."""

    url: str

    @property
    def scheme(self) -> str:
        """`postgresql` or `mysql`, as it is written."""
        return self.url.partition("://")[0].casefold()

    @property
    def called(self) -> str:
        """What the source is called: the name of the database."""
        path = self._parts()[4]
        return path or self.scheme

    @property
    def location(self) -> str:
        """The address without user, password and options."""
        _, _, host, port, name, _ = self._parts()
        return f"{self.scheme}://{host}{f':{port}' if port else ''}/{name}"

    def __repr__(self) -> str:
        return f"<database {self.location}>"

    def login(self) -> Login:
        """What the address says; raises `OptionError` where it is none."""
        return Login(self.scheme, *self._parts(), self.location)

    def _parts(self) -> tuple[str, str, str, int | None, str, dict[str, str]]:
        """User, password, host, port, database, options; an error shows nothing of a password, also of
        one that nobody escaped.
        """
        # White space may stand in the name of a database.
        found = parse(self.url.replace(" ", "%20"), (self.scheme,), example=_EXAMPLE.format(self.scheme), paths=True)
        host = found.host.strip("[]").lower()
        options = dict(parse_qsl(found.query))
        return found.user or "", found.password or "", host, found.port, unquote(found.path.lstrip("/")), options

    def content(self, options: Options) -> str:
        """A fingerprint of what would be loaded from here."""
        with opened(self) as database:
            return content_of(database, options)


def is_url(text: str) -> bool:
    """Whether a text is the address of a database."""
    scheme, mark, _ = text[:32].partition("://")
    return bool(mark) and scheme.casefold() in POSTGRES + MYSQL


@contextmanager
def opened(place: DatabaseUrl) -> Iterator[Database]:
    """A connection to a database, in a transaction for reading."""
    with (postgres if place.scheme in POSTGRES else mysql)(place.login()) as database:
        yield database


def _read(source: Any, reading: Reading, options: Options) -> Iterator[Item]:
    place = source if isinstance(source, DatabaseUrl) else DatabaseUrl(str(source))
    with opened(place) as database:
        yield from read_database(database, reading, options)


def _format(name: str, schemes: Sequence[str], about: str) -> Format:
    return Format(
        name, about, _read, DATABASE_OPTIONS, claims=lambda source: isinstance(source, DatabaseUrl) and source.scheme in schemes
    )


FORMATS: Final = (
    _format("postgresql", POSTGRES, "a PostgreSQL database by its URL: rows are entities, foreign keys are relations"),
    _format("mysql", MYSQL, "a MySQL or MariaDB database by its URL: rows are entities, foreign keys are relations"),
)
