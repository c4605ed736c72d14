"""The routes of the studio and its API, for the application that `condgraph.endpoint.app` makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from condgraph.endpoint.exchange import Exchange, Receive, Send
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import MissingExtraError
from condgraph.studio import page
from condgraph.studio.api import Api, ApiExchange

if TYPE_CHECKING:
    from condgraph.studio.guard import Guard

Handler = Callable[[ApiExchange], Awaitable[None]]


class _Route:
    """A handler as an application of its own."""

    def __init__(self, handler: Handler, guard: Guard) -> None:
        self._handler, self._guard = handler, guard

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        await ApiExchange(scope, receive, send, self._guard).run(self._handler)


def routes(api: Api, *, sparql: bool) -> list[Any]:
    """The routes; `sparql` says whether the SPARQL endpoint has the first page. Raises
    `MissingExtraError`.
    """
    try:
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles
    except ImportError:
        raise MissingExtraError("starlette", "serve") from None

    async def studio(exchange: ApiExchange) -> None:
        if exchange.method not in ("GET", "HEAD"):
            raise ProtocolError(405, "this is for GET and HEAD", {"Allow": "GET, HEAD, OPTIONS"})
        await page.give(exchange, sparql=sparql)

    async def to_studio(exchange: ApiExchange) -> None:
        await exchange.reply(307, b"", {"Location": f"{exchange.root}studio/"})

    async def health(exchange: ApiExchange) -> None:
        await exchange.tell(200, {"status": "ok", "processes": len(api.workers.pids())})

    found: list[Any] = [Mount("/studio/static", StaticFiles(directory=page.STATIC))]
    own: dict[str, Handler] = {"/studio/": studio, "/studio": to_studio}
    if not sparql:
        own |= {"/": to_studio, "/health": health}
    return [*found, *(Route(path, _Route(handler, api.guard)) for path, handler in (own | api.handlers()).items())]


def admit(exchange: Exchange, guard: Guard) -> None:
    """Raise the status for who has no token, where there are tokens: SPARQL needs one as the API does,
    or they would guard nothing.
    """
    if guard.tokens:
        guard.known(exchange.client, exchange.header("authorization") or "", basic=True)
