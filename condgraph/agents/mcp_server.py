"""The tools of a graph as an MCP server (`condgraph mcp`), over standard input and output or HTTP
(extra `mcp`).

All tools are read-only, declare it in their annotations, and return structured output. An error in a
program is returned as an error result with the nearest names, so that an agent can correct it. A query
ends when its request is cancelled or the server's deadline has passed.

This module has no `from __future__ import annotations`, because the SDK generates the schemas of the
tools from the annotations.
"""

import json
from collections.abc import Callable
from functools import partial
from inspect import Signature
from threading import Event
from typing import Annotated, Any, Final, TypeVar, get_args

import condgraph
from condgraph.agents import toolbox
from condgraph.agents.guide import Examples, hint_for_tools
from condgraph.engine.bounds import within
from condgraph.engine.errors import CondgraphError, MissingExtraError, OptionError, nearest, shortened

try:
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
    from pydantic import Field, StrictFloat, StrictInt
except ImportError as error:
    raise MissingExtraError(error.name or "mcp", "mcp") from None

T = TypeVar("T")

#: How many calls of tools run at once.
AT_ONCE: Final = 16
#: The size limit of an HTTP request in bytes.
MAX_BYTES: Final = 4 << 20


def mcp_server(tools: toolbox.Toolbox, *, name: str = "condgraph", at_once: int = AT_ONCE) -> MCPServer[Any]:
    """Create an `MCPServer` with the tools of a graph.

    At most `at_once` calls run at the same time, and others wait. The server's instructions contain
    examples with names from the graph as it is when the server starts.
    """
    try:
        with within(toolbox.AT_START):
            instructions = tools.guide()
    except CondgraphError:
        # The graph cannot be asked for its names now, but the resource and the prompts may succeed later.
        instructions = Examples().guide()
    server = Server(name, title="condgraph", instructions=instructions, version=condgraph.__version__, log_level="WARNING")
    calls = Calls(at_once)
    add_tools(server, tools, calls)
    add_resources(server, tools, calls)
    add_prompts(server, tools, calls)
    return server


def application(server: Any) -> Any:
    """Return the ASGI application of an MCP server, with the path `/mcp`.

    Access is controlled by the guard in front of it (`condgraph.endpoint.guard`) and not by the SDK.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(max_request_body_size=MAX_BYTES, transport_security=security)


# -- calls -----------------------------------------------------------------------------------------


class Calls:
    """Runs calls of tools, at most `at_once` at the same time."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, call: Callable[..., T]) -> T:
        """Run a call in a thread and return its result. If the request is cancelled, the query ends."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._at_once)
        cancelled = Event()
        try:
            return await anyio.to_thread.run_sync(partial(call, cancelled=cancelled), abandon_on_cancel=True, limiter=self._limiter)
        finally:
            # This ends the query if the task was cancelled. Otherwise it has no effect.
            cancelled.set()

    async def reply(self, call: Callable[..., Any]) -> CallToolResult:
        """Run a tool and return its record, or its error, as a result."""
        try:
            result = await self.run(call)
        except CondgraphError as error:
            return refused(error)
        record = toolbox.plain(result)
        return CallToolResult(
            content=[TextContent(type="text", text=json.dumps(record, ensure_ascii=False))], structured_content=record
        )


class Server(MCPServer[Any]):
    """A server that refuses unknown arguments of tools, which the SDK would silently ignore."""

    async def list_tools(self) -> list[Tool]:
        """Return the tools, with schemas that forbid other arguments."""
        return [
            item.model_copy(update={"input_schema": item.input_schema | {"additionalProperties": False}})
            for item in await super().list_tools()
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool. An unknown argument is an error that lists the supported ones."""
        supported = next((list(item.input_schema["properties"]) for item in await self.list_tools() if item.name == name), None)
        unknown = [] if supported is None else [argument for argument in arguments if argument not in supported]
        if supported is not None and unknown:
            message = f"{name} takes no argument {shortened(unknown[0], toolbox.MAX_TEXT)!r}"
            return refused(
                OptionError(message, candidates=nearest(unknown[0], supported), hint=f"it takes: {', '.join(supported)}")
            )
        return await super().call_tool(name, arguments, context)


def refused(error: CondgraphError) -> CallToolResult:
    """Convert an error to a result: the message with the nearest names, and the error as a record.

    The record is sent as text, because clients check structured content against the tool's output schema
    even if the call failed.
    """
    error.hint = hint_for_tools(error)
    texts = f"error[{error.code}]: {error}", json.dumps(toolbox.failure(error), ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], is_error=True)


def without(call: Callable[..., T]) -> Callable[..., T]:
    """Adapt a call that cannot be cancelled and is only limited by its deadline."""
    return lambda cancelled: call()


# -- tools and resources ---------------------------------------------------------------------------


READS: Final = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
TITLES: Final = {
    "schema": "The schema of the graph", "find": "What a name is", "query": "Run a program",
    "match": "Find subgraphs like a pattern", "evidence": "What an answer rests on", "ask": "Ask in words",
}  # fmt: skip
#: Types that are stricter than those of Python's callers: true does not count as 1.
STRICT: Final = {"parameters": dict[str, str | StrictInt | StrictFloat] | None}


def add_tools(server: Server, tools: toolbox.Toolbox, calls: Calls) -> None:
    """Add the tools of a toolbox."""
    for tool in toolbox.declared(tools):
        reads = READS if tool.name != "ask" else READS.model_copy(update={"open_world_hint": True, "idempotent_hint": False})
        server.add_tool(_function(tool, calls), tool.name, TITLES[tool.name], tool.about, reads)


def _function(tool: toolbox.Tool, calls: Calls) -> Callable[..., Any]:
    async def call(**arguments: Any) -> CallToolResult:
        return await calls.reply(partial(tool.call, **arguments))

    parameters = []
    for item in tool.signature.parameters.values():
        kind, about, *bounds = get_args(item.annotation)
        field: Any = Field(description=about, **(bounds[0] if bounds else {}))
        parameters.append(item.replace(annotation=Annotated[STRICT.get(item.name, kind), field]))
    result: Any = Annotated[CallToolResult, tool.signature.return_annotation]
    call.__name__ = tool.name
    call.__signature__ = Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    return call


def add_resources(server: Server, tools: toolbox.Toolbox, calls: Calls) -> None:
    """Add what can be read without a call: the schema, as text and as JSON, and the guide."""

    @server.resource("condgraph://schema", name="schema", title="The schema of the graph", mime_type="text/plain")
    async def schema_text() -> str:
        """What can be asked about, as text."""
        return (await calls.run(tools.schema)).text

    @server.resource("condgraph://schema.json", name="schema.json", title="The schema as JSON", mime_type="application/json")
    async def schema_json() -> str:
        """The whole schema as JSON."""
        return await calls.run(without(lambda: json.dumps(tools.graph.schema(timeout=tools.timeout).data(), ensure_ascii=False)))

    @server.resource("condgraph://guide", name="guide", title="How programs are written", mime_type="text/plain")
    async def guide() -> str:
        """The languages in short, with examples of the graph."""
        return await calls.run(without(tools.guide))


def add_prompts(server: Server, tools: toolbox.Toolbox, calls: Calls) -> None:
    """Add prompts to begin with: a question, a claim, and an overview, each with the guide and the schema."""

    async def begun(task: str) -> str:
        def both() -> str:
            return f"{tools.guide()}\n{tools.schema().text}"

        return f"{await calls.run(without(both))}\n\n{task}"

    @server.prompt(title="Answer a question from the graph")
    async def question(question: Annotated[str, Field(description="A question in plain words")]) -> str:
        """Answer a question with programs, and cite the statements that the answer is based on."""
        return await begun(
            "Answer the question with the tools of the graph alone. Cite the statements that the answer rests on, with their "
            f"sources (`facts`, `evidence`); say so if the graph has no answer.\nThe question: {question}"
        )

    @server.prompt(title="Check a claim against the graph")
    async def check_claim(claim: Annotated[str, Field(description="A sentence that is true or false")]) -> str:
        """Check whether statements of the graph support a claim, refute it, or leave it open."""
        return await begun(
            "Check the claim with the tools of the graph alone: supported, refuted, or not decided by the graph. Name the "
            "statements that decide it, and those that would be missing. That the graph lacks a statement does not refute it.\n"
            f"The claim: {claim}"
        )

    @server.prompt(title="What is in the graph")
    async def overview(
        concept: Annotated[str, Field(description="What it is to be about; everything by default")] = "",
    ) -> str:
        """A summary of what the graph contains, with questions that it can answer."""
        about = f" about {concept!r}" if concept else ""
        return await begun(f"Say in a few sentences what the graph contains{about}, and list five questions that it can answer.")
