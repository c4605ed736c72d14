"""The routes of the studio and its API, for the application that `condgraph.endpoint.app` makes."""

from __future__ import annotations

from typing import Any, Final

from condgraph.endpoint.exchange import READING, Handler
from condgraph.engine.errors import MissingExtraError
from condgraph.studio import page
from condgraph.studio.api import Api, ApiExchange

#: How requests are refused, by the beginnings of their paths (`condgraph.endpoint.guard`).
KINDS: Final = {"/api/": ApiExchange}


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
        await page.give(exchange, sparql=sparql)

    async def to_studio(exchange: ApiExchange) -> None:
        await exchange.reply(307, b"", {"Location": f"{exchange.root}studio/"})

    async def health(exchange: ApiExchange) -> None:
        await exchange.tell(200, {"status": "ok", "processes": len(api.workers.pids())})

    found: list[Any] = [Mount("/studio/static", StaticFiles(directory=page.STATIC))]
    own = {"/studio/": studio, "/studio": to_studio}
    if not sparql:
        own |= {"/": to_studio, "/health": health}
    handlers = {path: Handler(answer, READING, ApiExchange) for path, answer in own.items()}
    return [*found, *(Route(path, handler) for path, handler in (handlers | api.handlers()).items())]
