"""One guard for every door of a server (SPARQL, graphs, IRIs, pages, the API, MCP): tokens, hosts, web
pages that a request may come from, and how often one client asks.

On a loopback address without tokens, everybody on the machine may ask; the host of each request
must then be a name of this machine (or an allowed one), so that no web page reaches the server by a
name that its owner points here (DNS rebinding). Beyond the machine nothing is served without
tokens. Requests that a browser sends for another page are refused, unless its origin is allowed.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from condgraph.endpoint.clients import Application, client_of
from condgraph.endpoint.exchange import Exchange, Receive, Send
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import OptionError

#: Characters of the shortest token that is taken.
SHORTEST: Final = 16
#: What a request with a wrong token costs, in requests.
_WRONG: Final = 20.0
#: Clients that are remembered.
_CLIENTS: Final = 10_000
#: Origins: every one.
_ANY: Final = "*"
#: Files of pages, which hold nothing of the graph and need no token.
_FILES: Final = ("/static/", "/studio/static/")
#: Headers of a request that the guard reads.
_READ: Final = frozenset(
    [
        b"host",
        b"origin",
        b"authorization",
        b"sec-fetch-site",
        b"sec-fetch-mode",
        b"sec-fetch-dest",
        b"access-control-request-method",
    ]
)
#: A `Host` header.
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]@/\\,\s]+))(?::[0-9]{1,5})?")
#: What an allowed page may send and read.
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE"),
    (b"access-control-allow-headers", b"Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, "
                                      b"X-Requested-With"),
    (b"access-control-max-age", b"600"),
)  # fmt: skip
_EXPOSED: Final = (b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After, Warning, X-SPARQL-MaxRows")


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
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        found = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return found.is_loopback or bool((mapped := getattr(found, "ipv4_mapped", None)) and mapped.is_loopback)


@dataclass(frozen=True, slots=True)
class Guard:
    """What is asked of every request. `loopback` says whether the server listens on this machine alone;
    `origins` are those of other web pages that may ask ("*": all), `hosts` names of the server beyond
    those of the machine.
    """

    tokens: Tokens = field(default_factory=Tokens)
    rates: Rates = field(default_factory=lambda: Rates(0.0, 0.0))
    loopback: bool = True
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def closed(self) -> str:
        """Why nothing is served at all; empty where something is."""
        if self.loopback or self.tokens:
            return ""
        return (
            "nothing is served: the server listens beyond its own machine and has no tokens; "
            "start it with --token-file FILE, which has a line NAME:TOKEN for each user"
        )

    def enter(self, method: str, headers: Mapping[str, str]) -> None:
        """Let a request in by what its headers (names in lower case) say of where it goes and comes from;
        raises the status that says why not.
        """
        if closed := self.closed:
            raise ProtocolError(403, closed)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.tokens and not is_loopback(name := _hostname(host)) and name not in self.hosts:
            raise ProtocolError(
                403, "this server answers to names of its own machine only (localhost, 127.0.0.1); --allow-host NAME adds one"
            )
        if origin is not None:
            # The server's own pages are of this host; a browser names every other one.
            strange = not self.allows(origin) and _place(origin) != host.lower()
        else:
            # Browsers name no origin where a page embeds something; a link that is followed is no such thing.
            link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
            strange = headers.get("sec-fetch-site") in ("cross-site", "same-site") and not (link and method in ("GET", "HEAD"))
        if strange:
            raise ProtocolError(403, "web pages of other servers may not ask; --cors ORIGIN allows one")

    def known(self, client: str, authorization: str | None, *, challenge: str = "Bearer") -> str:
        """The user whose token was sent ("" where there are no tokens), as a bearer or as the password of
        Basic; raises status 401 with a challenge, 429 for a client that sent many wrong ones.
        """
        if not self.tokens:
            return ""
        user = None if authorization is None else self.tokens.user(_token(authorization))
        if user is not None:
            return user
        # Wrong tokens cost their senders something, and nobody else: a right one is never asked to wait.
        if authorization is not None:
            self._take(f"wrong {client_of(client)}", 0.0)
            self.rates.take(f"wrong {client_of(client)}", _WRONG)
        headers = {"WWW-Authenticate": f'{challenge} realm="condgraph"'}
        raise ProtocolError(401, "a token is needed, and none that is known was sent", headers)

    def admit(self, client: str, user: str) -> None:
        """Count a request of a user, or of a client where there are no tokens; raises status 429."""
        self._take(f"user {user}" if user else client_of(client), 1.0)

    def _take(self, who: str, cost: float) -> None:
        if wait := self.rates.take(who, cost):
            raise ProtocolError(429, "too many requests; try again later", {"Retry-After": str(max(1, round(wait + 0.5)))})

    def allows(self, origin: str) -> bool:
        """Whether pages of another origin may ask."""
        return origin in self.origins or _ANY in self.origins


class BearerExchange(Exchange):
    """A request of a program that is no browser: it is asked for a bearer."""

    challenge = "Bearer"


class Guarded:
    """An application behind a guard, and what pages of other origins need to read its answers (CORS).

    `kinds` says by the beginning of a path how refusals are written; `public` are paths that need no
    token.
    """

    def __init__(
        self,
        application: Application,
        guard: Guard,
        *,
        kinds: Mapping[str, type[Exchange]] | None = None,
        public: frozenset[str] = frozenset(),
    ) -> None:
        self._application, self._guard, self._public = application, guard, public
        self._kinds = dict(kinds or {})

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        guard, method = self._guard, scope["method"]
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                # A header that is there twice is nobody's.
                key = name.decode()
                headers[key] = f"{headers[key]}, {value.decode('latin-1')}" if key in headers else value.decode("latin-1")
        origin = headers.get("origin")
        if guard.origins:
            send = _answering(send, origin if origin is not None and guard.allows(origin) else None, any_=_ANY in guard.origins)
        path = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/"))
        kind = next((kind for begin, kind in self._kinds.items() if path.startswith(begin)), Exchange)
        try:
            guard.enter(method, headers)
            if method == "OPTIONS" and origin is not None and "access-control-request-method" in headers and guard.allows(origin):
                await send({"type": "http.response.start", "status": 204, "headers": [*_PREFLIGHT]})
                await send({"type": "http.response.body", "body": b""})
                return
            if path not in self._public and not path.startswith(_FILES):
                client = str((scope.get("client") or ("",))[0])
                user = guard.known(client, headers.get("authorization"), challenge=kind.challenge)
                if kind.rated:
                    guard.admit(client, user)
        except ProtocolError as problem:
            await kind(scope, receive, send).refuse(problem)
            return
        await self._application(scope, receive, send)


def _answering(send: Send, origin: str | None, *, any_: bool) -> Send:
    """Send answers that a page of an origin may read, and that are kept apart from those of others."""
    more: list[tuple[bytes, bytes]] = [] if any_ else [(b"vary", b"Origin")]
    if origin is not None:
        more += [(b"access-control-allow-origin", _ANY.encode() if any_ else origin.encode("latin-1", "replace")), _EXPOSED]

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return answer


def _hostname(host: str) -> str:
    """The name or address of a `Host` header, in lower case; empty for what is no such header."""
    found = _HOST.fullmatch(host)
    return "" if found is None else (found[1] or found[2]).lower()


def _place(origin: str) -> str:
    """The host and port of an origin; empty for what is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _token(authorization: str) -> str:
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""


def origins_of(given: Sequence[str]) -> tuple[str, ...]:
    """Origins of pages that may ask; raises `OptionError` for what is none."""
    found = []
    for one in given:
        try:
            parts = urlsplit(one)
            whole = f"{parts.scheme}://{parts.netloc}"
            right = parts.scheme in ("http", "https") and bool(parts.hostname) and one in (whole, f"{whole}/") and "@" not in whole
            right = right and parts.port != 0
        except ValueError:
            right = False
        if one != _ANY and not right:
            raise OptionError(f"an origin is like https://example.org, not {one!r}", hint="* is every one")
        found.append(one.rstrip("/").lower())
    return tuple(found)


def hosts_of(given: Sequence[str]) -> tuple[str, ...]:
    """Names of the server; raises `OptionError` for what is no host."""
    for one in given:
        if not one or not one.isascii() or not one.isprintable() or set(one) & set("/@ ,*?#") or one.count(":") == 1:
            raise OptionError(f"a host is a name or an address, such as data.example.org, not {one!r}", hint="without its port")
    return tuple(one.strip("[]").lower() for one in given)
