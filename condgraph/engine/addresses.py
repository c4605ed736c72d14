"""Parses addresses of servers, so that no part of a password is shown or gets into an error.

`urllib` is no help here: a `#`, `/`, `?` or `[` in a password moves the borders of its parts, and
its errors quote them. What stands before the last `@` is the user and the password. No error is
raised while another is handled that may quote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from condgraph.engine.errors import OptionError, nearest

NEO4J_SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
SPARQL_SCHEMES: Final = ("sparql+http", "sparql+https")
SQL_SCHEMES: Final = ("duckdb", "postgresql", "postgres", "spark")
_PARTS: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s/?#@:\[\]]*)(?::(?P<port>[^/?#@]*))?(?P<path>/[^\s?#]*)?(?:\?(?P<query>[^\s#]*))?"
)
#: `neo4j:secret@host`, `bolt:/neo4j:secret@host`: an address that lacks its scheme, or part of it,
#: and no folder.
_LOGIN: Final = re.compile(r"(?![/.~])[^:]*:(?!\\)[^@]*@", re.DOTALL)
_ESCAPE_IT: Final = "in a user or a password write # as %23, / as %2F, : as %3A, ? as %3F, @ as %40, [ as %5B"


class Address(NamedTuple):
    """An address in its parts; `plain` is all of it but the user, the password and the path that
    `parse` was told to leave out.
    """

    scheme: str
    user: str | None
    password: str | None
    host: str
    port: int | None
    path: str
    query: str

    @property
    def plain(self) -> str:
        """The address without user and password."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}{self.path}{self.query and '?' + self.query}"

    @property
    def whole(self) -> str:
        """The address with its user and password, as libraries understand it: for nobody to see."""
        if self.user is None and self.password is None:
            return self.plain
        login = ":".join(quote(part, safe="") for part in (self.user or "", self.password) if part is not None)
        return self.plain.replace("://", f"://{login}@", 1)


def parse(address: str, schemes: Sequence[str], *, example: str, paths: bool = False) -> Address:
    """Take an address apart; raises `OptionError`, which shows nothing of what may be a password.

    With `paths`, an `@` may also stand in the path or the query, where no colon comes before it.
    """
    check_scheme(address, schemes, example=example)
    scheme, _, rest = address.partition("://")
    login, mark, behind = rest.rpartition("@")
    if mark and paths and re.search(r"[/?#]", login):
        before = re.split(r"[/?#]", login, maxsplit=1)[0]
        if "@" in before or ":" not in before:
            # The login has ended before the path began, or there is none.
            login, mark, behind = _first(rest)
        elif before.rpartition(":")[2].isdigit():
            raise OptionError(
                f"what stands before an '@' in an address of {scheme}:// may be a path or a password", hint=_ESCAPE_IT
            )
    found = _PARTS.fullmatch(behind)
    if found is None:
        raise OptionError(f"{shown(address)!r} is no address", hint=f"such as {example}; {_ESCAPE_IT}")
    port = found["port"] or None
    if port is not None and not (port.isascii() and port.isdigit() and int(port[:6]) < 65536 and len(port) < 6):
        raise OptionError(f"the port of {shown(address)!r} is no number up to 65535, so that it is no address", hint=_ESCAPE_IT)
    user, colon, password = login.partition(":")
    return Address(
        scheme.lower(),
        unquote(user) or None if mark else None,
        unquote(password) if mark and colon else None,
        found["host"],
        None if port is None else int(port),
        found["path"] or "",
        found["query"] or "",
    )


def check_scheme(address: str, schemes: Sequence[str], *, example: str) -> None:
    """Raise `OptionError`, with the nearest scheme, unless the address has one of these."""
    scheme, mark, _ = address.partition("://")
    if not mark:
        raise OptionError(f"{shown(address)!r} is no address: it has no scheme", hint=f"such as {example}")
    if scheme.lower() not in schemes:
        near = [f"{one}://" for one in nearest(scheme, schemes)] if re.fullmatch(r"[\w+.-]{1,20}", scheme) else []
        name = f"{scheme}://" if near or scheme.isalnum() else "what stands before ://"
        raise OptionError(f"{name!r} is no kind of address that is known here", candidates=near, hint=f"such as {example}")


def is_misplaced_login(place: str) -> bool:
    """Whether a place that is given as a folder is an address without its scheme, which has a
    password in it.
    """
    return bool(_LOGIN.match(place))


def shown(address: str) -> str:
    """As much of an address that may be broken as can be shown: no login, no port that is no
    number, no query.
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        scheme, rest = "", address
    rest = re.split(r"[/?#\s]", rest.rpartition("@")[2], maxsplit=1)[0]
    host, colon, port = rest.partition(":")
    if colon and not (port.isascii() and port.isdigit()) and not rest.startswith("["):
        rest = f"{host}:..."
    return f"{scheme}{mark}{rest}"


def _first(rest: str) -> tuple[str, str, str]:
    """The login, where one stands before the path."""
    end = re.search(r"[/?#]", rest)
    authority = rest if end is None else rest[: end.start()]
    login, mark, host = authority.rpartition("@")
    return login, mark, host + rest[len(authority) :]
