"""How an MCP server calls a graph's tools: in threads, so many at once, ended where the request is
cancelled; and what goes back for a result and for an error. Imported by `mcp_server` alone, which
says what is missing where the SDK is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Any, TypeVar

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, Tool

from condgraph.agents.records import LONGEST, failure, plain
from condgraph.engine.errors import CondgraphError, OptionError, nearest, shortened

T = TypeVar("T")


class Calls:
    """Calls of tools, of which `at_once` run at the same time; others wait."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, call: Callable[..., T]) -> T:
        """What a call in a thread of its own gives; a request that is cancelled ends its query."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._at_once)
        cancelled = Event()
        try:
            return await anyio.to_thread.run_sync(partial(call, cancelled=cancelled), abandon_on_cancel=True, limiter=self._limiter)
        finally:
            # A task that is cancelled ends its query; one that is over has none.
            cancelled.set()

    async def told(self, call: Callable[..., Any]) -> CallToolResult:
        """The result of a tool: what a call gives as a record, or what is wrong with it."""
        try:
            found = await self.run(call)
        except CondgraphError as error:
            return refused(error)
        record = found if isinstance(found, dict) else plain(found)
        return CallToolResult(
            content=[TextContent(type="text", text=json.dumps(record, ensure_ascii=False))], structured_content=record
        )


class Server(MCPServer[Any]):
    """Refuses arguments that a tool does not have; the SDK would leave them out in silence."""

    async def list_tools(self) -> list[Tool]:
        """The tools, whose schemas say that they take nothing else."""
        found = await super().list_tools()
        return [one.model_copy(update={"input_schema": one.input_schema | {"additionalProperties": False}}) for one in found]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool; an argument that it does not have is an error that names those it has."""
        takes = next((list(one.input_schema["properties"]) for one in await self.list_tools() if one.name == name), None)
        unknown = [] if takes is None else [one for one in arguments if one not in takes]
        if takes is not None and unknown:
            what = f"{name} takes no argument {shortened(unknown[0], LONGEST)!r}"
            return refused(OptionError(what, candidates=nearest(unknown[0], takes), hint=f"it takes: {', '.join(takes)}"))
        return await super().call_tool(name, arguments, context)


def refused(error: CondgraphError) -> CallToolResult:
    """The message with the nearest names for models, and the same as a record: as text too, since
    clients hold structured content to the tool's output schema where the call failed as well.
    """
    texts = f"error[{error.code}]: {error}", json.dumps(failure(error), ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], is_error=True)


def without(call: Callable[..., T]) -> Callable[..., T]:
    """A call that looks at its deadline alone."""
    return lambda cancelled: call()
