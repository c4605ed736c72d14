"""Access control: who may send requests to a server, and how much of it each client may use.

One guard checks every request on any path (SPARQL, graphs, IRIs, pages, the API, MCP): tokens, the
host, the web page that it comes from, and the rate of its client. On a loopback address without tokens,
everybody on the machine has access. The host of each request must then be a name of this machine (or an
allowed one), so that no web page can reach the server through a name that its owner points here (DNS
rebinding). On any other address nothing is served without tokens. Requests that a browser sends for
another site's page are refused, unless its origin is allowed.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import math
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from condgraph.endpoint.exchange import Exchange, Receive, Send
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import OptionError

# -- clients -----------------------------------------------------------------------------------------
# A client is an IPv4 address, or a /64 network of IPv6, which is what one subscriber has. Behind a proxy
# all clients have the proxy's address. If that proxy is trusted, `X-Forwarded-For` names the client, and
# its requests are counted instead of connections. (uvicorn's middleware does not trust IPv4 addresses
# mapped to IPv6 sockets, and accepts any text as a client.)


Application = Callable[[Any, Receive, Send], Awaitable[None]]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: After how many seconds a refused client may try again.
RETRY: Final = b"1"
#: How many bits of an IPv6 address identify the client.
_SUBSCRIBER: Final = 64


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits for clients of a server. Times are in seconds, sizes in bytes.

    At most `connections` may be open at once, and `per_client` from one client. `head_timeout` limits the
    time for the head of a request, `body_timeout` for its body, and `idle_timeout` the wait for the next
    request. A client must read its pending results at `rate` bytes per second, checked once every
    `write_timeout`.
    """

    connections: int = 2_000
    per_client: int = 256
    head_timeout: float = 10.0
    body_timeout: float = 30.0
    idle_timeout: float = 15.0
    write_timeout: float = 30.0
    rate: float = 8 << 10
    head_bytes: int = 64 << 10
    #: The most unread results of all clients together.
    unread_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        for field_ in fields(self):
            value = getattr(self, field_.name)
            if not 0 < value < math.inf:
                raise OptionError(f"{field_.name.replace('_', ' ')} is a number above 0, not {value!r}")


def client_of(host: str) -> str:
    """Return the client of an address. Text that is not an address is returned unchanged.

    >>> client_of("127.0.0.2"), client_of("::ffff:127.0.0.2"), client_of("2001:db8::1:2:3:4")
    ('127.0.0.2', '127.0.0.2', '2001:db8::/64')
    """
    address = _address(host)
    if address is None:
        return host
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, _SUBSCRIBER), strict=False))


def _address(host: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class Proxies:
    """Addresses and networks whose `X-Forwarded-For` is trusted. Raises `OptionError` for any other text."""

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._networks: list[_Network] = []
        for text in trusted:
            try:
                self._networks.append(ipaddress.ip_network(text.strip(), strict=False))
            except ValueError:
                raise OptionError(f"a trusted proxy is an address or a network (10.0.0.0/8), not {text!r}") from None

    def __bool__(self) -> bool:
        return bool(self._networks)

    def trusts(self, host: str) -> bool:
        """Return whether an address is a trusted proxy."""
        if not self._networks:
            return False
        address = _address(host)
        return address is not None and any(address in network for network in self._networks)

    def client(self, proxy: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """Return the address of a proxy's client: the last one in `X-Forwarded-For` that is not a trusted proxy.

        >>> proxies = Proxies(["10.0.0.0/8"])
        >>> proxies.client("10.0.0.1", [(b"x-forwarded-for", b"6.6.6.6, 1.2.3.4:99, 10.0.0.2")])
        '1.2.3.4'
        >>> proxies.client("10.0.0.1", [(b"x-forwarded-for", b"1.2.3.4, nobody")])
        '10.0.0.1'
        """
        forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")
        client = proxy
        for text in reversed(forwarded.split(",")):
            host = _without_port(text.strip())
            if _address(host) is None:
                break
            client = host
            if not self.trusts(host):
                break
        return client


def _without_port(text: str) -> str:
    """Return the host of `host`, `host:port` (IPv4) or `[host]:port`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


class Forwarded:
    """An application behind trusted proxies.

    The scope gets the real client, which may have at most `most` requests running.
    """

    def __init__(self, application: Application, proxies: Proxies, most: int) -> None:
        self._application, self._proxies, self._most = application, proxies, most
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        peer = scope.get("client")
        if scope["type"] != "http" or not peer or not self._proxies.trusts(peer[0]):
            await self._application(scope, receive, send)
            return
        address = self._proxies.client(peer[0], scope["headers"])
        scope = {**scope, "client": (address, 0), "scheme": _scheme(scope)}
        client = client_of(address)
        if self._running[client] >= self._most:
            await _refuse(send, client, self._most)
            return
        self._running[client] += 1
        try:
            await self._application(scope, receive, send)
        finally:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]


def _scheme(scope: Mapping[str, Any]) -> str:
    schemes = [value.strip().lower() for name, value in scope["headers"] if name == b"x-forwarded-proto"]
    return str(schemes[0].decode() if schemes and schemes[0] in (b"http", b"https") else scope.get("scheme", "http"))


async def _refuse(send: Send, client: str, most: int) -> None:
    body = f"{client} has {most} requests running; try again later\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body)), (b"retry-after", RETRY)]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# -- tokens, hosts, origins and rates ----------------------------------------------------------------


#: The least length of a token.
MIN_TOKEN: Final = 16
#: How many requests a wrong token counts as.
_WRONG: Final = 20.0
#: How many clients are remembered.
_CLIENTS: Final = 10_000
#: This origin stands for all origins.
_ANY: Final = "*"
#: Paths of page assets, which contain no graph data and need no token.
_FILES: Final = ("/static/", "/studio/static/")
#: The request headers that the guard reads.
_READ: Final = frozenset(
    b"host origin authorization sec-fetch-site sec-fetch-mode sec-fetch-dest access-control-request-method".split()
)
#: A `Host` header.
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]@/\\,\s]+))(?::[0-9]{1,5})?")
#: What a page of an allowed origin may send and read.
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE"),
    (b"access-control-allow-headers", b"Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, "
                                      b"X-Requested-With"),
    (b"access-control-max-age", b"600"),
)  # fmt: skip
_EXPOSED: Final = (b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After, Warning, X-SPARQL-MaxRows")


class Tokens:
    """The tokens of users, stored only as digests."""

    def __init__(self, tokens: Mapping[str, str] | None = None) -> None:
        self._digests = [(name, sha256(token.encode()).digest()) for name, token in (tokens or {}).items()]

    def __bool__(self) -> bool:
        return bool(self._digests)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read tokens from a file with a line `NAME:TOKEN` for each user. `#` begins a comment.

        Raises `OptionError`, which never repeats a token.
        """
        tokens: dict[str, str] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise OptionError(f"the file of tokens cannot be read: {reason}") from None
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            name, mark, token = (part.strip() for part in text.partition(":"))
            if not mark or not name or len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
                raise OptionError(
                    f"line {number} of the file of tokens is not NAME:TOKEN",
                    hint=f"a token is printable ASCII without spaces, of {MIN_TOKEN} characters or more",
                )
            if name in tokens:
                raise OptionError(f"line {number} of the file of tokens names a user again")
            tokens[name] = token
        if not tokens:
            raise OptionError("the file of tokens has none", hint="a line for each user, NAME:TOKEN")
        return cls(tokens)

    def user(self, token: str) -> str | None:
        """Return the user of a token, or None. It is compared with every token, each in constant time."""
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        user = None
        for name, known in self._digests:
            if hmac.compare_digest(digest, known):
                user = name
        return user


class Rates:
    """Limits the requests of each client: `rate` per second (0 for no limit) and `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, max(burst, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> float:
        """Count requests of a client. Returns the seconds to wait if it has none left, else 0."""
        if not self.rate:
            return 0.0
        now = time.monotonic()
        left, last = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - last) * self.rate)
        wait = 0.0 if left >= min(cost, 1.0) else (1.0 - left) / self.rate
        if cost > 1.0:
            wait = 0.0
        # A cost above what is left leaves a debt of at most a minute.
        self._left[client] = (max(left - (cost if not wait else 0.0), -60.0 * self.rate), now)
        while len(self._left) > _CLIENTS:
            self._left.popitem(last=False)
        return wait


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable only from this machine."""
    if host.lower() in ("localhost", "localhost."):
        return True
    address = _address(host.strip("[]"))
    return address is not None and address.is_loopback


@dataclass(frozen=True, slots=True)
class Guard:
    """The conditions that every request has to meet.

    `loopback` is whether the server listens only on this machine. `origins` are other web origins that
    are allowed ("*" for all), and `hosts` are additional names of the server.
    """

    tokens: Tokens = field(default_factory=Tokens)
    rates: Rates = field(default_factory=lambda: Rates(0.0, 0.0))
    loopback: bool = True
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def closed(self) -> str:
        """Why nothing is served at all, or "" if requests are served."""
        if self.loopback or self.tokens:
            return ""
        return (
            "nothing is served: the server listens beyond its own machine and has no tokens; "
            "start it with --token-file FILE, which has a line NAME:TOKEN for each user"
        )

    def enter(self, method: str, headers: Mapping[str, str]) -> None:
        """Check the host and origin of a request by its headers (with lower-case names). Raises status 403."""
        if closed := self.closed:
            raise ProtocolError(403, closed)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.tokens and not is_loopback(name := _hostname(host)) and name not in self.hosts:
            raise ProtocolError(
                403, "this server answers to names of its own machine only (localhost, 127.0.0.1); --allow-host NAME adds one"
            )
        if origin is not None:
            # The origin of the server's own pages has the same host. A browser sends the origin of all others.
            foreign = not self.allows(origin) and _netloc(origin) != host.lower()
        else:
            # Browsers send no origin if a page embeds a resource. Following a link is allowed.
            link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
            foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site") and not (link and method in ("GET", "HEAD"))
        if foreign:
            raise ProtocolError(403, "web pages of other servers may not ask; --cors ORIGIN allows one")

    def known(self, client: str, authorization: str | None, *, challenge: str = "Bearer") -> str:
        """Return the user whose token was sent, or "" if there are no tokens.

        The token is a bearer token or the password of Basic authentication. Raises status 401 with a
        challenge, or 429 for a client that has sent many wrong tokens.
        """
        if not self.tokens:
            return ""
        user = None if authorization is None else self.tokens.user(_token(authorization))
        if user is not None:
            return user
        # Wrong tokens only slow down their senders. A right one never has to wait.
        if authorization is not None:
            self._take(f"wrong {client_of(client)}", 0.0)
            self.rates.take(f"wrong {client_of(client)}", _WRONG)
        headers = {"WWW-Authenticate": f'{challenge} realm="condgraph"'}
        raise ProtocolError(401, "a token is needed, and none that is known was sent", headers)

    def admit(self, client: str, user: str) -> None:
        """Count a request of a user, or of a client if there are no tokens. Raises status 429."""
        self._take(f"user {user}" if user else client_of(client), 1.0)

    def _take(self, who: str, cost: float) -> None:
        if wait := self.rates.take(who, cost):
            raise ProtocolError(429, "too many requests; try again later", {"Retry-After": str(max(1, round(wait + 0.5)))})

    def allows(self, origin: str) -> bool:
        """Return whether pages of an origin are allowed."""
        return origin in self.origins or _ANY in self.origins


class BearerExchange(Exchange):
    """A request of a program, which is asked for a bearer token."""

    challenge = "Bearer"


class Guarded:
    """An application behind a guard, with the CORS headers for pages of allowed origins.

    `kinds` are the exchange classes that write refusals, by the beginning of the path. `public` are paths
    that need no token.
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
                # A repeated header must not match anything.
                key = name.decode()
                headers[key] = f"{headers[key]}, {value.decode('latin-1')}" if key in headers else value.decode("latin-1")
        origin = headers.get("origin")
        if guard.origins:
            send = _with_cors(send, origin if origin is not None and guard.allows(origin) else None, any_=_ANY in guard.origins)
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


def _with_cors(send: Send, origin: str | None, *, any_: bool) -> Send:
    """Return a send function that adds headers for pages of an origin, and keeps caches separate by origin."""
    cors_headers: list[tuple[bytes, bytes]] = [] if any_ else [(b"vary", b"Origin")]
    if origin is not None:
        cors_headers += [(b"access-control-allow-origin", _ANY.encode() if any_ else origin.encode("latin-1", "replace")), _EXPOSED]

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *cors_headers]}
        await send(message)

    return answer


def _hostname(host: str) -> str:
    """Return the name or address of a `Host` header in lower case, or "" if it is malformed."""
    match = _HOST.fullmatch(host)
    return "" if match is None else (match[1] or match[2]).lower()


def _netloc(origin: str) -> str:
    """Return the host and port of an origin, or "" if it is malformed."""
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


def origins_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse the origins of allowed pages. Raises `OptionError` for text that is not an origin."""
    origins = []
    for text in texts:
        try:
            parts = urlsplit(text)
            whole = f"{parts.scheme}://{parts.netloc}"
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and text in (whole, f"{whole}/") and "@" not in whole
            valid = valid and parts.port != 0
        except ValueError:
            valid = False
        if text != _ANY and not valid:
            raise OptionError(f"an origin is like https://example.org, not {text!r}", hint="* is every one")
        origins.append(text.rstrip("/").lower())
    return tuple(origins)


def hosts_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse names of the server. Raises `OptionError` for text that is not a host."""
    for text in texts:
        if not text or not text.isascii() or not text.isprintable() or set(text) & set("/@ ,*?#") or text.count(":") == 1:
            raise OptionError(f"a host is a name or an address, such as data.example.org, not {text!r}", hint="without its port")
    return tuple(text.strip("[]").lower() for text in texts)
