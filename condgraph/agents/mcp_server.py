"""The tools of a graph as an MCP server (`condgraph mcp`), over standard input and output or HTTP
(extra `mcp`).

All tools are read-only, declare it in their annotations, and return structured output. An error in a
program is returned as an error result with the nearest names, so that an agent can correct it. A query
ends when its request is cancelled or the server's deadline has passed.

This module has no `from __future__ import annotations`, because the SDK generates the schemas of the
tools from the annotations.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from inspect import cleandoc
from threading import Event
from typing import Annotated, Any, Final, TypeVar

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
MOST_BYTES: Final = 4 << 20


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
    server.examples = dict(zip(("query", "match"), toolbox.described(tools), strict=True))
    add_looking(server, tools, calls)
    add_programs(server, tools, calls)
    if tools.llm is not None:
        add_words(server, tools, calls)
    add_resources(server, tools, calls)
    add_prompts(server, tools, calls)
    return server


def application(server: Any) -> Any:
    """Return the ASGI application of an MCP server, with the path `/mcp`.

    Access is controlled by the guard in front of it (`condgraph.endpoint.guard`) and not by the SDK.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(max_request_body_size=MOST_BYTES, transport_security=security)


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
        record = result if isinstance(result, dict) else toolbox.plain(result)
        return CallToolResult(
            content=[TextContent(type="text", text=json.dumps(record, ensure_ascii=False))], structured_content=record
        )


class Server(MCPServer[Any]):
    """A server that refuses unknown arguments of tools, which the SDK would silently ignore."""

    #: What is added to the descriptions of tools: programs for the graph.
    examples: Mapping[str, str] = {}

    async def list_tools(self) -> list[Tool]:
        """Return the tools, with schemas that forbid other arguments and with examples in the descriptions."""
        return [
            item.model_copy(
                update={
                    "input_schema": item.input_schema | {"additionalProperties": False},
                    "description": cleandoc(item.description or "") + self.examples.get(item.name, ""),
                }
            )
            for item in await super().list_tools()
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool. An unknown argument is an error that lists the supported ones."""
        supported = next((list(item.input_schema["properties"]) for item in await self.list_tools() if item.name == name), None)
        unknown = [] if supported is None else [argument for argument in arguments if argument not in supported]
        if supported is not None and unknown:
            message = f"{name} takes no argument {shortened(unknown[0], toolbox.LONGEST)!r}"
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
Language = Annotated[str | None, Field(description=toolbox.ABOUT["language"])]
Program = Annotated[str, Field(description=toolbox.ABOUT["program"])]
Table = Annotated[str | None, Field(description=toolbox.ABOUT["table"])]
# Strict, so that true does not count as 1.
Parameters = Annotated[dict[str, str | StrictInt | StrictFloat] | None, Field(description=toolbox.ABOUT["parameters"])]
At = Annotated[str | None, Field(description=toolbox.ABOUT["at"])]
Between = Annotated[list[str] | None, Field(min_length=2, max_length=2, description=toolbox.ABOUT["between"])]
Certain = Annotated[bool, Field(description=toolbox.ABOUT["certain"])]
AsOf = Annotated[str | None, Field(description=toolbox.ABOUT["as_of"])]
Prefer = Annotated[
    str | list[str] | dict[str, str | list[str]] | None,
    Field(
        description="What counts of two statements that contradict each other: rank, latest, earliest, or sources, best first; "
        'or one of these for each predicate, such as {"capital": "latest"}'
    ),
]
Most = Annotated[int, Field(ge=1, le=toolbox.MOST, description=toolbox.ABOUT["limit"])]


def add_looking(server: Server, tools: toolbox.Toolbox, calls: Calls) -> None:
    """Add the tools that describe the graph: `schema` and `find`."""

    @server.tool(title="The schema of the graph", annotations=READS)
    async def schema(
        source: Annotated[str | None, Field(description=toolbox.ABOUT["source"])] = None,
        concept: Annotated[str | None, Field(description=toolbox.ABOUT["concept"])] = None,
        predicate: Annotated[str | None, Field(description=toolbox.ABOUT["predicate"])] = None,
        tokens: Annotated[int, Field(ge=1, le=100_000, description=toolbox.ABOUT["tokens"])] = 2_000,
    ) -> Annotated[CallToolResult, toolbox.Described]:
        """What can be asked about: sources, concepts, relations and attributes with their types,
        units, counts and examples. Look here first.
        """
        return await calls.reply(without(partial(tools.schema, source=source, concept=concept, predicate=predicate, tokens=tokens)))

    @server.tool(title="What a name is", annotations=READS)
    async def find(
        name: Annotated[str, Field(description=toolbox.ABOUT["name"])], limit: Most = 20
    ) -> Annotated[CallToolResult, toolbox.NameLookup]:
        """What a name is in the graph: its entities with their ids, the relations and attributes they
        have, or the nearest names where nothing has it exactly.
        """
        return await calls.reply(partial(tools.find, name, limit=limit))


def add_programs(server: Server, tools: toolbox.Toolbox, calls: Calls) -> None:
    """Add the tools for programs, patterns and evidence: `query`, `match` and `evidence`."""

    @server.tool(title="Run a program", annotations=READS)
    async def query(
        program: Program,
        table: Table = None,
        parameters: Parameters = None,
        language: Language = None,
        at: At = None,
        between: Between = None,
        certain: Certain = False,
        as_of: AsOf = None,
        prefer: Prefer = None,
        limit: Most = 50,
        facts: Annotated[int, Field(ge=0, le=toolbox.MOST, description=toolbox.ABOUT["facts"])] = 5,
    ) -> Annotated[CallToolResult, toolbox.Answered]:
        """Run a program on the graph, exactly; `table` groups, sums up, orders and cuts its rows. Gives
        typed answers, warnings, and the first of the statements that the answer rests on.
        """
        return await calls.reply(
            partial(
                tools.query,
                program,
                language=language,
                table=table,
                parameters=parameters,
                at=at,
                between=between,
                certain=certain,
                as_of=as_of,
                prefer=prefer,
                limit=limit,
                facts=facts,
            )
        )

    @server.tool(title="Find subgraphs like a pattern", annotations=READS)
    async def match(
        pattern: Annotated[str, Field(description=toolbox.ABOUT["pattern"])],
        k: Annotated[int, Field(ge=1, le=toolbox.MOST, description=toolbox.ABOUT["k"])] = 3,
        at: At = None,
        between: Between = None,
        certain: Certain = False,
        as_of: AsOf = None,
        prefer: Prefer = None,
        limit: Most = 20,
    ) -> Annotated[CallToolResult, toolbox.Matched]:
        """Find the subgraphs most similar to a pattern, for questions whose names or directions you
        are not sure of. `distance` 0 is an exact match.
        """
        view: dict[str, Any] = {"at": at, "between": between, "certain": certain, "as_of": as_of, "prefer": prefer}
        return await calls.reply(partial(tools.match, pattern, k=k, limit=limit, **view))

    @server.tool(title="What an answer rests on", annotations=READS)
    async def evidence(
        program: Program,
        table: Table = None,
        parameters: Parameters = None,
        language: Language = None,
        at: At = None,
        between: Between = None,
        certain: Certain = False,
        as_of: AsOf = None,
        prefer: Prefer = None,
        limit: Most = 50,
        offset: Annotated[int, Field(ge=0, description=toolbox.ABOUT["offset"])] = 0,
    ) -> Annotated[CallToolResult, toolbox.Evidenced]:
        """The statements that the answer to a program rests on, each with its sources and rows, page
        by page.
        """
        return await calls.reply(
            partial(
                tools.evidence,
                program,
                language=language,
                table=table,
                parameters=parameters,
                at=at,
                between=between,
                certain=certain,
                as_of=as_of,
                prefer=prefer,
                limit=limit,
                offset=offset,
            )
        )


def add_words(server: Server, tools: toolbox.Toolbox, calls: Calls) -> None:
    """Add the tool for questions in words, which a model answers: `ask`."""

    @server.tool(title="Ask in words", annotations=READS.model_copy(update={"open_world_hint": True, "idempotent_hint": False}))
    async def ask(
        question: Annotated[str, Field(description=toolbox.ABOUT["question"])],
    ) -> Annotated[CallToolResult, dict[str, Any]]:
        """Ask in plain words: a language model writes a program, which is run. Gives status,
        answers, the program, citations, and the choices where a name has several meanings.
        """
        return await calls.reply(partial(tools.ask, question))


def add_resources(server: Server, tools: toolbox.Toolbox, calls: Calls) -> None:
    """Add what can be read without a call: the schema, as text and as JSON, and the guide."""

    @server.resource("condgraph://schema", name="schema", title="The schema of the graph", mime_type="text/plain")
    async def schema_text() -> str:
        """What can be asked about, as text."""
        return (await calls.run(without(tools.schema))).text

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
    async def question(question: Annotated[str, Field(description=toolbox.ABOUT["question"])]) -> str:
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
