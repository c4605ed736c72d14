"""The tools and resources of an MCP server: what each is called, takes and gives, in the words that
an agent reads. Imported by `mcp_server` alone, which says what is missing where the SDK is.

Annotations of this module are no texts (`from __future__ import annotations`): the SDK makes the
schemas of the tools from them.
"""

import json
from functools import partial
from typing import Annotated, Any, Final

from mcp.types import CallToolResult, ToolAnnotations
from pydantic import Field, StrictFloat, StrictInt

from condgraph.agents.mcp_calls import Calls, Server, without
from condgraph.agents.records import Answered, Described, Evidenced, Matched, Named
from condgraph.agents.toolbox import GUIDE, MOST, Toolbox

READS: Final = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
Language = Annotated[str | None, Field(description="kopl, llm_query or logic; recognised from the text by default")]
Program = Annotated[str, Field(description="A program, such as: Find(Nepal) Relate(capital, forward) QueryName()")]
Table = Annotated[
    str | None,
    Field(description="A table of the rows that the program gives, such as: group by country show count(), max(height)"),
]
# Strict: true is no 1.
Parameters = Annotated[
    dict[str, str | StrictInt | StrictFloat] | None,
    Field(description="Values of the parameters ($name) of the program, unquoted"),
]
Most = Annotated[int, Field(ge=1, le=MOST, description="The most results to give")]


def add_looking(server: Server, tools: Toolbox, calls: Calls) -> None:
    """What there is to ask about: `schema` and `find`."""

    @server.tool(title="The schema of the graph", annotations=READS)
    async def schema(
        source: Annotated[str | None, Field(description="Only what has to do with this source")] = None,
        concept: Annotated[str | None, Field(description="Only what has to do with this concept")] = None,
        predicate: Annotated[str | None, Field(description="Only this relation or attribute")] = None,
        tokens: Annotated[int, Field(ge=1, le=100_000, description="How long the text may be")] = 2_000,
    ) -> Annotated[CallToolResult, Described]:
        """What can be asked about: sources, concepts, relations and attributes with their types,
        units, counts and examples. Look here first.
        """
        return await calls.told(without(partial(tools.schema, source=source, concept=concept, predicate=predicate, tokens=tokens)))

    @server.tool(title="What a name is", annotations=READS)
    async def find(
        name: Annotated[str, Field(description="A name, spelled as you know it")], limit: Most = 20
    ) -> Annotated[CallToolResult, Named]:
        """What a name is in the graph: its entities with their ids, the relations and attributes they
        have, or the nearest names where nothing has it exactly.
        """
        return await calls.told(partial(tools.find, name, limit=limit))


def add_programs(server: Server, tools: Toolbox, calls: Calls) -> None:
    """Programs, patterns, and what an answer rests on: `query`, `match` and `evidence`."""

    @server.tool(title="Run a program", annotations=READS)
    async def query(
        program: Program,
        table: Table = None,
        parameters: Parameters = None,
        language: Language = None,
        limit: Most = 50,
        facts: Annotated[int, Field(ge=0, le=MOST, description="How many statements behind the answer to give")] = 5,
    ) -> Annotated[CallToolResult, Answered]:
        """Run a KoPL program, an LLM query or a logical query, exactly; `table` groups, sums up, orders
        and cuts its rows. Gives typed answers, warnings, and the first of the statements that the
        answer rests on.
        """
        return await calls.told(
            partial(tools.query, program, language=language, table=table, parameters=parameters, limit=limit, facts=facts)
        )

    @server.tool(title="Find subgraphs like a pattern", annotations=READS)
    async def match(
        pattern: Annotated[str, Field(description="Such as: (UNKNOWN film 1) -[directed by]-> (Clint Eastwood)")],
        k: Annotated[int, Field(ge=1, le=MOST, description="How many of the nearest subgraphs")] = 3,
        limit: Most = 20,
    ) -> Annotated[CallToolResult, Matched]:
        """Find the subgraphs most similar to a pattern, for questions whose names or directions you
        are not sure of. `distance` 0 is an exact match.
        """
        return await calls.told(partial(tools.match, pattern, k=k, limit=limit))

    @server.tool(title="What an answer rests on", annotations=READS)
    async def evidence(
        program: Program,
        table: Table = None,
        parameters: Parameters = None,
        language: Language = None,
        limit: Most = 50,
        offset: Annotated[int, Field(ge=0, description="How many statements to leave out at the beginning")] = 0,
    ) -> Annotated[CallToolResult, Evidenced]:
        """The statements that the answer to a program rests on, each with its sources and rows, page
        by page.
        """
        return await calls.told(
            partial(tools.evidence, program, language=language, table=table, parameters=parameters, limit=limit, offset=offset)
        )


def add_words(server: Server, tools: Toolbox, calls: Calls) -> None:
    """Questions in words, which a model answers: `ask`."""

    @server.tool(title="Ask in words", annotations=READS.model_copy(update={"open_world_hint": True, "idempotent_hint": False}))
    async def ask(
        question: Annotated[str, Field(description="A question in plain words")],
    ) -> Annotated[CallToolResult, dict[str, Any]]:
        """Ask in plain words: a language model writes a program, which is run. Gives status,
        answers, the program, citations, and the choices where a name has several meanings.
        """
        return await calls.told(partial(tools.ask, question))


def add_resources(server: Server, tools: Toolbox, calls: Calls) -> None:
    """What can be read without a call: the schema, as text and as JSON, and the guide."""

    @server.resource("condgraph://schema", name="schema", title="The schema of the graph", mime_type="text/plain")
    async def schema_text() -> str:
        """What can be asked about, as text."""
        return (await calls.run(without(tools.schema))).text

    @server.resource("condgraph://schema.json", name="schema.json", title="The schema as JSON", mime_type="application/json")
    async def schema_json() -> str:
        """The same, whole, as JSON."""
        return await calls.run(without(lambda: json.dumps(tools.graph.schema(timeout=tools.timeout).data(), ensure_ascii=False)))

    @server.resource("condgraph://guide", name="guide", title="How programs are written", mime_type="text/plain")
    async def guide() -> str:
        """The languages in short."""
        return GUIDE
