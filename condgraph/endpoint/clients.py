"""Who the clients of the endpoint are, and what each of them may take: bounds of connections, of
time and of size.

A client is an address: one of IPv4, or a network of 64 bits of IPv6, which is what one subscriber
has. Behind a proxy all clients have the address of the proxy; where that proxy is trusted,
`X-Forwarded-For` says who asks, and requests are counted instead of connections.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from condgraph.engine.errors import OptionError

Message = dict[str, Any]
Application = Callable[[Any, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Seconds after which a client that was refused may come again.
RETRY: Final = b"1"
#: Bits of an address of IPv6 that are the client.
_SUBSCRIBER: Final = 64


@dataclass(frozen=True, slots=True)
class Bounds:
    """What clients may take of a server. Times are in seconds, sizes in bytes.

    `connections` may be open at once, `per_client` of them from one client. `head_timeout` is how
    long the head of a request may take, `body_timeout` its body, `idle_timeout` how long a
    connection may wait for the next request. Of results that are there, a client has to take `rate`
    bytes a second, looked at once every `write_timeout`.
    """

    connections: int = 2_000
    per_client: int = 256
    head_timeout: float = 10.0
    body_timeout: float = 30.0
    idle_timeout: float = 15.0
    write_timeout: float = 30.0
    rate: float = 8 << 10
    head_bytes: int = 64 << 10
    #: Results of all clients together that may wait for being read.
    unread_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not 0 < value < math.inf:
                raise OptionError(f"{one.name.replace('_', ' ')} is a number above 0, not {value!r}")


def client_of(host: str) -> str:
    """The client that an address belongs to; what is no address stays as it is.

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
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


class Proxies:
    """Addresses and networks whose `X-Forwarded-For` is believed. Raises `OptionError` for what is
    neither.
    """

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._networks: list[_Network] = []
        for one in trusted:
            try:
                self._networks.append(ipaddress.ip_network(one.strip(), strict=False))
            except ValueError:
                raise OptionError(f"a trusted proxy is an address or a network (10.0.0.0/8), not {one!r}") from None

    def __bool__(self) -> bool:
        return bool(self._networks)

    def trusts(self, host: str) -> bool:
        """Whether an address is one of them."""
        if not self._networks:
            return False
        address = _address(host)
        return address is not None and any(address in network for network in self._networks)

    def asking(self, proxy: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """The address that asks through a proxy: the last one of `X-Forwarded-For` that is no
        trusted proxy itself.

        >>> proxies = Proxies(["10.0.0.0/8"])
        >>> proxies.asking("10.0.0.1", [(b"x-forwarded-for", b"6.6.6.6, 1.2.3.4:99, 10.0.0.2")])
        '1.2.3.4'
        >>> proxies.asking("10.0.0.1", [(b"x-forwarded-for", b"1.2.3.4, nobody")])
        '10.0.0.1'
        """
        said = b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")
        found = proxy
        for one in reversed(said.split(",")):
            host = _without_port(one.strip())
            if _address(host) is None:
                break
            found = host
            if not self.trusts(host):
                break
        return found


def _without_port(text: str) -> str:
    """The host of `host`, `host:port` (IPv4) or `[host]:port`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


class Forwarded:
    """An application behind trusted proxies: it is told who asks, and one client has so many
    requests at once.
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
        asking = self._proxies.asking(peer[0], scope["headers"])
        scope = {**scope, "client": (asking, 0), "scheme": _scheme(scope)}
        client = client_of(asking)
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
    said = [value.strip().lower() for name, value in scope["headers"] if name == b"x-forwarded-proto"]
    return str(said[0].decode() if said and said[0] in (b"http", b"https") else scope.get("scheme", "http"))


async def _refuse(send: Callable[[Message], Awaitable[None]], client: str, most: int) -> None:
    body = f"{client} has {most} requests running; try again later\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body)), (b"retry-after", RETRY)]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": body})
