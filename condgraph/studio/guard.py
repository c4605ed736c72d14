"""Who may ask: tokens, hosts and pages that a request may come from, and how often one client asks.

On a loopback address without tokens, everybody on the machine may ask; the host of each request
must then be a name of this machine, so that no page of others reaches the server by a name that it
points here. Elsewhere nobody may without a token.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from condgraph.endpoint.clients import client_of
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import OptionError

#: Characters of the shortest token that is taken.
SHORTEST: Final = 16
#: What a request with a wrong token costs, in requests.
_WRONG: Final = 20.0
#: Clients that are remembered.
_CLIENTS: Final = 10_000


class Tokens:
    """The tokens of users; only their digests are kept."""

    def __init__(self, tokens: Mapping[str, str] | None = None) -> None:
        self._digests = [(name, sha256(token.encode()).digest()) for name, token in (tokens or {}).items()]

    def __bool__(self) -> bool:
        return bool(self._digests)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """From a file: a line for each user, `NAME:TOKEN`; `#` begins a comment. Raises
        `OptionError`, which repeats no token.
        """
        found: dict[str, str] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(
                f"the file of tokens cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
            ) from None
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            name, mark, token = (part.strip() for part in text.partition(":"))
            if not mark or not name or len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
                raise OptionError(
                    f"line {number} of the file of tokens is not NAME:TOKEN",
                    hint=f"a token is printable ASCII without spaces, of {SHORTEST} characters or more",
                )
            if name in found:
                raise OptionError(f"line {number} of the file of tokens names a user again")
            found[name] = token
        if not found:
            raise OptionError("the file of tokens has none", hint="a line for each user, NAME:TOKEN")
        return cls(found)

    def user(self, token: str) -> str | None:
        """Whose token it is. Every token is compared, each in constant time."""
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        found = None
        for name, known in self._digests:
            if hmac.compare_digest(digest, known):
                found = name
        return found


class Rates:
    """How often clients ask: `rate` requests a second, and `burst` of them at once (0: as often as
    they like).
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, max(burst, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> float:
        """Take requests of a client; seconds to wait where it has none left, else 0."""
        if not self.rate:
            return 0.0
        now = time.monotonic()
        left, seen = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - seen) * self.rate)
        wait = 0.0 if left >= min(cost, 1.0) else (1.0 - left) / self.rate
        if cost > 1.0:
            wait = 0.0
        # What costs more than there is leaves a debt, of a minute at most.
        self._left[client] = (max(left - (cost if not wait else 0.0), -60.0 * self.rate), now)
        while len(self._left) > _CLIENTS:
            self._left.popitem(last=False)
        return wait


def is_loopback(host: str) -> bool:
    """Whether an address is one that only this machine reaches."""
    if host == "localhost":
        return True
    try:
        found = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return found.is_loopback or bool((mapped := getattr(found, "ipv4_mapped", None)) and mapped.is_loopback)


@dataclass(frozen=True, slots=True)
class Guard:
    """What is asked of every request. `closed` says why the API is not given at all; `origins` are
    those of other pages that may ask.
    """

    tokens: Tokens
    rates: Rates
    loopback: bool = True
    closed: str = ""
    origins: tuple[str, ...] = ()

    def admit(self, client: str, headers: Mapping[str, str]) -> str:
        """The user that asks ("" where there are no tokens); raises the status that says why not.
        `headers` have names in lower case.
        """
        if self.closed:
            raise ProtocolError(403, self.closed)
        wait = self.rates.take(client_of(client))
        if wait:
            raise ProtocolError(429, "too many requests; try again later", {"Retry-After": str(max(1, round(wait + 0.5)))})
        host = headers.get("host", "")
        if self.loopback and not self.tokens and not is_loopback(_hostname(host)):
            raise ProtocolError(403, "this server answers to names of this machine only (localhost, 127.0.0.1)")
        origin = headers.get("origin")
        # The page itself is of this host; a browser names every other one.
        if origin is not None and not self.allows(origin) and _place(origin) != host.lower():
            raise ProtocolError(403, "pages of other servers may not ask; --allow-origin names those that may")
        return self.known(client, headers.get("authorization", ""))

    def known(self, client: str, authorization: str, *, basic: bool = False) -> str:
        """The user whose token was sent ("" where there are no tokens); raises status 401. `basic`
        takes a token as a password, too, for clients that know nothing else.
        """
        if not self.tokens:
            return ""
        # Who sent wrong ones waits.
        wait = self.rates.take(client_of(client), 0.0)
        user = None if wait else self.tokens.user(_token(authorization, basic=basic))
        if wait:
            raise ProtocolError(429, "too many requests; try again later", {"Retry-After": str(max(1, round(wait + 0.5)))})
        if user is None:
            self.rates.take(client_of(client), _WRONG)
            challenge = f'{"Basic" if basic else "Bearer"} realm="condgraph"'
            raise ProtocolError(401, "a token is needed, and none that is known was sent", {"WWW-Authenticate": challenge})
        return user

    def allows(self, origin: str) -> bool:
        """Whether a page of another server may ask."""
        return origin in self.origins


def _hostname(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _place(origin: str) -> str:
    """The host and port of an origin; empty for what is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _token(authorization: str, *, basic: bool) -> str:
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if basic and scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""


def origins_of(given: Sequence[str]) -> tuple[str, ...]:
    """Origins of pages that may ask; raises `OptionError` for what is none."""
    found = []
    for one in given:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/") or parts.query:
            raise OptionError(f"an origin is like https://example.org, not {one!r}")
        found.append(f"{parts.scheme}://{parts.netloc}".lower())
    return tuple(found)
