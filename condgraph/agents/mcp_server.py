"""The tools of a graph as an MCP server (`condgraph mcp`), over standard input and output or HTTP.

Every tool only reads, says so in its annotations, and gives structured output. What a program does
wrong comes back as an error result with the nearest names, so that an agent can put it right.
Cancelling a request ends its query; so does the deadline of the server.

Annotations of this module are no texts (`from __future__ import annotations`): the SDK makes the
schemas of the tools from them.
"""

import hmac
import json
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Annotated, Any, Final, TypeVar

import condgraph
from condgraph.agents.records import LONGEST, Answered, Described, Evidenced, Matched, Named, failure, plain
from condgraph.agents.toolbox import GUIDE, MOST, Toolbox
from condgraph.engine.errors import CondgraphError, MissingExtraError, OptionError, nearest, shortened

T = TypeVar("T")
#: Calls of tools that run at once.
AT_ONCE: Final = 16
#: Bytes of the longest request over HTTP.
MOST_BYTES: Final = 4 << 20


def mcp_server(tools: Toolbox, *, name: str = "condgraph", at_once: int = AT_ONCE) -> Any:
    """An `MCPServer` over a graph's tools; `at_once` calls run at the same time, others wait. Raises
    `MissingExtraError`.
    """
    try:
        import anyio
        from mcp.server.mcpserver import MCPServer
        from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
        from pydantic import Field, StrictFloat, StrictInt
    except ImportError as error:
        raise MissingExtraError(error.name or "mcp", "mcp") from None

    limiter: list[Any] = []

    async def run(call: Callable[..., T]) -> T:
        if not limiter:
            limiter.append(anyio.CapacityLimiter(at_once))
        cancelled = Event()
        try:
            return await anyio.to_thread.run_sync(partial(call, cancelled=cancelled), abandon_on_cancel=True, limiter=limiter[0])
        finally:
            # A task that is cancelled ends its query; one that is over has none.
            cancelled.set()

    def refused(error: CondgraphError) -> CallToolResult:
        # The message with the nearest names for models, and the same as a record: as text too, since
        # clients hold structured content to the tool's output schema where the call failed as well.
        texts = f"error[{error.code}]: {error}", json.dumps(failure(error), ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], is_error=True)

    class Server(MCPServer[Any]):
        """Refuses arguments that a tool does not have; the SDK would leave them out in silence."""

        async def list_tools(self) -> list[Tool]:
            found = await super().list_tools()
            return [one.model_copy(update={"input_schema": one.input_schema | {"additionalProperties": False}}) for one in found]

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            takes = next((list(one.input_schema["properties"]) for one in await self.list_tools() if one.name == name), None)
            unknown = [] if takes is None else [one for one in arguments if one not in takes]
            if takes is not None and unknown:
                what = f"{name} takes no argument {shortened(unknown[0], LONGEST)!r}"
                return refused(OptionError(what, candidates=nearest(unknown[0], takes), hint=f"it takes: {', '.join(takes)}"))
            return await super().call_tool(name, arguments, context)

    async def told(call: Callable[..., Any]) -> CallToolResult:
        try:
            found = await run(call)
        except CondgraphError as error:
            return refused(error)
        record = found if isinstance(found, dict) else plain(found)
        return CallToolResult(
            content=[TextContent(type="text", text=json.dumps(record, ensure_ascii=False))], structured_content=record
        )

    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    server = Server(name, title="condgraph", instructions=GUIDE, version=condgraph.__version__, log_level="WARNING")
    language = Annotated[str | None, Field(description="kopl, llm_query or logic; recognised from the text by default")]
    program = Annotated[str, Field(description="A program, such as: Find(Nepal) Relate(capital, forward) QueryName()")]
    table = Annotated[
        str | None,
        Field(description="A table of the rows that the program gives, such as: group by country show count(), max(height)"),
    ]
    # Strict: true is no 1.
    given = Annotated[
        dict[str, str | StrictInt | StrictFloat] | None,
        Field(description="Values of the parameters ($name) of the program, unquoted"),
    ]
    most = Annotated[int, Field(ge=1, le=MOST, description="The most results to give")]

    @server.tool(title="The schema of the graph", annotations=reads)
    async def schema(
        source: Annotated[str | None, Field(description="Only what has to do with this source")] = None,
        concept: Annotated[str | None, Field(description="Only what has to do with this concept")] = None,
        predicate: Annotated[str | None, Field(description="Only this relation or attribute")] = None,
        tokens: Annotated[int, Field(ge=1, le=100_000, description="How long the text may be")] = 2_000,
    ) -> Annotated[CallToolResult, Described]:
        """What can be asked about: sources, concepts, relations and attributes with their types,
        units, counts and examples. Look here first.
        """
        return await told(_without(partial(tools.schema, source=source, concept=concept, predicate=predicate, tokens=tokens)))

    @server.tool(title="What a name is", annotations=reads)
    async def find(
        name: Annotated[str, Field(description="A name, spelled as you know it")], limit: most = 20
    ) -> Annotated[CallToolResult, Named]:
        """What a name is in the graph: its entities with their ids, the relations and attributes they
        have, or the nearest names where nothing has it exactly.
        """
        return await told(partial(tools.find, name, limit=limit))

    @server.tool(title="Run a program", annotations=reads)
    async def query(
        program: program,
        table: table = None,
        parameters: given = None,
        language: language = None,
        limit: most = 50,
        facts: Annotated[int, Field(ge=0, le=MOST, description="How many statements behind the answer to give")] = 5,
    ) -> Annotated[CallToolResult, Answered]:
        """Run a KoPL program, an LLM query or a logical query, exactly; `table` groups, sums up, orders
        and cuts its rows. Gives typed answers, warnings, and the first of the statements that the
        answer rests on.
        """
        return await told(
            partial(tools.query, program, language=language, table=table, parameters=parameters, limit=limit, facts=facts)
        )

    @server.tool(title="Find subgraphs like a pattern", annotations=reads)
    async def match(
        pattern: Annotated[str, Field(description="Such as: (UNKNOWN film 1) -[directed by]-> (Clint Eastwood)")],
        k: Annotated[int, Field(ge=1, le=MOST, description="How many of the nearest subgraphs")] = 3,
        limit: most = 20,
    ) -> Annotated[CallToolResult, Matched]:
        """Find the subgraphs most similar to a pattern, for questions whose names or directions you
        are not sure of. `distance` 0 is an exact match.
        """
        return await told(partial(tools.match, pattern, k=k, limit=limit))

    @server.tool(title="What an answer rests on", annotations=reads)
    async def evidence(
        program: program,
        table: table = None,
        parameters: given = None,
        language: language = None,
        limit: most = 50,
        offset: Annotated[int, Field(ge=0, description="How many statements to leave out at the beginning")] = 0,
    ) -> Annotated[CallToolResult, Evidenced]:
        """The statements that the answer to a program rests on, each with its sources and rows, page
        by page.
        """
        return await told(
            partial(tools.evidence, program, language=language, table=table, parameters=parameters, limit=limit, offset=offset)
        )

    if tools.llm is not None:

        @server.tool(title="Ask in words", annotations=reads.model_copy(update={"open_world_hint": True, "idempotent_hint": False}))
        async def ask(
            question: Annotated[str, Field(description="A question in plain words")],
        ) -> Annotated[CallToolResult, dict[str, Any]]:
            """Ask in plain words: a language model writes a program, which is run. Gives status,
            answers, the program, citations, and the choices where a name has several meanings.
            """
            return await told(partial(tools.ask, question))

    @server.resource("condgraph://schema", name="schema", title="The schema of the graph", mime_type="text/plain")
    async def schema_text() -> str:
        """What can be asked about, as text."""
        return (await run(_without(tools.schema))).text

    @server.resource("condgraph://schema.json", name="schema.json", title="The schema as JSON", mime_type="application/json")
    async def schema_json() -> str:
        """The same, whole, as JSON."""
        return await run(_without(lambda: json.dumps(tools.graph.schema(timeout=tools.timeout).data(), ensure_ascii=False)))

    @server.resource("condgraph://guide", name="guide", title="How programs are written", mime_type="text/plain")
    async def guide() -> str:
        """The languages in short."""
        return GUIDE

    return server


def _without(call: Callable[..., T]) -> Callable[..., T]:
    """A call that looks at its deadline alone."""
    return lambda cancelled: call()


# -- over HTTP -------------------------------------------------------------------------------------


def application(server: Any, *, host: str, token: str | None = None) -> Any:
    """The ASGI application of an MCP server, at `/mcp`. With a token, requests without it are
    refused; without one, requests that name another host than this one (DNS rebinding) are.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    security = TransportSecuritySettings(enable_dns_rebinding_protection=False) if token else None
    found = server.streamable_http_app(
        host="127.0.0.1" if token is None else host, max_request_body_size=MOST_BYTES, transport_security=security
    )
    return found if token is None else _Guarded(found, token)


class _Guarded:
    """Requests have the token, as `Authorization: Bearer TOKEN`."""

    def __init__(self, application: Any, token: str) -> None:
        self._application, self._wanted = application, f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._wanted):
                headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"a token is needed\n"})
                return
        await self._application(scope, receive, send)
