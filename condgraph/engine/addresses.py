"""Parse the addresses of servers without revealing any part of a password in errors.

`urllib` does not help here: a `#`, `/`, `?` or `[` in a password shifts the boundaries of its parts, and its errors
quote them. Everything before the last `@` is user and password. No error is raised while handling another that may
quote them.
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
_ADDRESS: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s/?#@:\[\]]*)(?::(?P<port>[^/?#@]*))?(?P<path>/[^\s?#]*)?(?:\?(?P<query>[^\s#]*))?"
)
#: `neo4j:secret@host`, `bolt:/neo4j:secret@host`: an address that lacks its scheme, or part of it,
#: rather than a folder.
_LOGIN: Final = re.compile(r"(?![/.~])[^:]*:(?!\\)[^@]*@", re.DOTALL)
_ESCAPE_HINT: Final = "in a user or a password write # as %23, / as %2F, : as %3A, ? as %3F, @ as %40, [ as %5B"


class Address(NamedTuple):
    """The parts of an address."""

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
        """The address with user and password, for libraries; never to be displayed."""
        if self.user is None and self.password is None:
            return self.plain
        login = ":".join(quote(part, safe="") for part in (self.user or "", self.password) if part is not None)
        return self.plain.replace("://", f"://{login}@", 1)


def parse(address: str, schemes: Sequence[str], *, example: str, paths: bool = False) -> Address:
    """Split an address into parts; raise `OptionError`, which never quotes a possible password.

    With `paths`, the path or the query may also contain an `@`, if there is no colon before it.
    """
    check_scheme(address, schemes, example=example)
    scheme, _, remainder = address.partition("://")
    login, mark, location = remainder.rpartition("@")
    if mark and paths and re.search(r"[/?#]", login):
        authority = re.split(r"[/?#]", login, maxsplit=1)[0]
        if "@" in authority or ":" not in authority:
            # The login ends before the path, or there is none.
            login, mark, location = _split_login(remainder)
        elif authority.rpartition(":")[2].isdigit():
            raise OptionError(f"the part before an '@' in an address of {scheme}:// may be a path or a password", hint=_ESCAPE_HINT)
    parts = _ADDRESS.fullmatch(location)
    if parts is None:
        raise OptionError(f"{shown(address)!r} is not an address", hint=f"such as {example}; {_ESCAPE_HINT}")
    port = parts["port"] or None
    if port is not None and not (port.isascii() and port.isdigit() and int(port[:6]) < 65536 and len(port) < 6):
        raise OptionError(f"the port of {shown(address)!r} is not a number up to 65535", hint=_ESCAPE_HINT)
    user, colon, password = login.partition(":")
    return Address(
        scheme.lower(),
        unquote(user) or None if mark else None,
        unquote(password) if mark and colon else None,
        parts["host"],
        None if port is None else int(port),
        parts["path"] or "",
        parts["query"] or "",
    )


def check_scheme(address: str, schemes: Sequence[str], *, example: str) -> None:
    """Raise `OptionError`, with the nearest scheme, unless the address has one of these schemes."""
    scheme, mark, _ = address.partition("://")
    if not mark:
        raise OptionError(f"{shown(address)!r} is not an address: it has no scheme", hint=f"such as {example}")
    if scheme.lower() not in schemes:
        is_name = re.fullmatch(r"[\w+.-]{1,20}", scheme)
        similar = [f"{name}://" for name in nearest(scheme, schemes)] if is_name else []
        name = f"{scheme}://" if similar or scheme.isalnum() else "the part before ://"
        raise OptionError(f"{name!r} is not a kind of address that is known here", candidates=similar, hint=f"such as {example}")


def is_misplaced_login(place: str) -> bool:
    """Return whether a location given as a folder is an address with a password but without its scheme."""
    return bool(_LOGIN.match(place))


def shown(address: str) -> str:
    """Return the part of a possibly broken address that can be displayed: no login, no port that is not a number, no
    query.
    """
    scheme, mark, remainder = address.partition("://")
    if not mark:
        scheme, remainder = "", address
    remainder = re.split(r"[/?#\s]", remainder.rpartition("@")[2], maxsplit=1)[0]
    host, colon, port = remainder.partition(":")
    if colon and not (port.isascii() and port.isdigit()) and not remainder.startswith("["):
        remainder = f"{host}:..."
    return f"{scheme}{mark}{remainder}"


def _split_login(rest: str) -> tuple[str, str, str]:
    """Split off a login that is before the path."""
    end = re.search(r"[/?#]", rest)
    authority = rest if end is None else rest[: end.start()]
    login, mark, host = authority.rpartition("@")
    return login, mark, host + rest[len(authority) :]
