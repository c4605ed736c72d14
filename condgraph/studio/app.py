"""The routes of the studio and its API, for the application that `condgraph.endpoint.app` makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from condgraph.endpoint.exchange import Receive, Send
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import MissingExtraError
from condgraph.studio import page
from condgraph.studio.api import Api, ApiExchange

#: How requests are refused, by the beginnings of their paths (`condgraph.endpoint.guard`).
KINDS: Final = {"/api/": ApiExchange}

Handler = Callable[[ApiExchange], Awaitable[None]]


class _Route:
    """A handler as an application of its own."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        await ApiExchange(scope, receive, send).run(self._handler)


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
    return [*found, *(Route(path, _Route(handler)) for path, handler in (own | api.handlers()).items())]
