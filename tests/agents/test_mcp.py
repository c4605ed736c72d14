"""The MCP server, asked by the SDK's own client: over standard input and output, over HTTP, and in
process.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.agents.toolbox import Toolbox
from condgraph.samples import FOLDER
from tests.support.pace import quick_enough
from tools.watched import watched

pytest.importorskip("mcp")

import httpx2
from jsonschema import validate
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from condgraph.agents.mcp_server import mcp_server

#: Ten questions, each with the tools that an agent would call and the arguments it would write: a
#: tuple is a call that goes wrong, whose nearest name is put in its place.
QUESTIONS: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("capital of Nepal", "query", {"program": "Find(Nepal) Relate(capitol, forward) QueryName()"}, ["Kathmandu"]),
    ("mountains over 8000 m", "query", {"program": "FindAll() FilterNum(hight, 8000 m, >) QueryName()"},
     ["Annapurna I", "Dhaulagiri I", "Manaslu"]),
    ("height of Manaslu", "query", {"program": "Find($m) QueryAttr(height)", "parameters": {"m": "Manaslou"}}, None),
    ("how many mountains in Nepal", "query", {"program": "Find(Nepal) Relate(country, backward) Count()"}, None),
    ("the highest mountain in Nepal", "query",
     {"program": "Find(Nepal) Relate(country, backward) SelectAmong(height, largest)"}, ["Dhaulagiri I"]),
    ("which is higher", "query",
     {"program": "Find(Manaslu) Find(Annapurna I) SelectBetween(height, greater)"}, None),
    ("heads of government in 1984", "query", {"program": "Find(India) Relate(head of government, forward) "
     "QFilterYear(start time, 1984, <=) QFilterYear(end time, 1984, >=) QueryName()"}, None),
    ("what the capital of Nepal rests on", "evidence", {"program": "Find(Nepal) Relate(capital, forward) QueryName()"}, None),
    ("the capital, names guessed", "match", {"pattern": "(UNKNOWN city 1) <-[capitol]- (Nepall)", "k": 1}, None),
    ("what Nepal is", "find", {"name": "Nepall"}, None),
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "world"
    with condgraph.open(folder) as graph:
        graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
        graph.load(FOLDER / "countries.json")
        graph.load(FOLDER / "governments.tsv")
    return folder


def run(call: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(call(), 60)

    return asyncio.run(bounded())


def refusal(found: Any) -> Any:
    """The record of an error, which stands behind the message.

    It is no structured content: clients hold that to the tool's output schema also where the call
    failed (the TypeScript SDK, and so the inspector), and show their own error for the graph's.
    """
    assert found.is_error, found
    assert found.structured_content is None
    message, record = found.content
    wrong = json.loads(record.text)["error"]
    assert message.text.startswith(f"error[{wrong['code']}]: {wrong['message']}")
    return wrong


async def agent(client: Client, question: tuple[str, str, dict[str, Any], Any]) -> dict[str, Any]:
    """An agent that knows nothing but the tools: it calls one, puts right what is said to be wrong
    with the nearest name, and calls again.
    """
    _, tool, arguments, _ = question
    for _ in range(4):
        found = await client.call_tool(tool, arguments)
        if not found.is_error:
            record: dict[str, Any] = found.structured_content
            if tool == "find" and not record["entities"]:
                arguments = {"name": record["nearest"][0]}
                continue
            return record
        wrong = refusal(found)
        assert wrong["nearest"], wrong
        text = json.dumps(arguments)
        assert wrong["name"] in text
        arguments = json.loads(text.replace(wrong["name"], wrong["nearest"][0]))
    raise AssertionError(question)


async def ten_questions(client: Client, graph: condgraph.Graph) -> None:
    for question in QUESTIONS:
        name, tool, arguments, wanted = question
        found = await agent(client, question)
        if tool == "query":
            program = arguments["program"].replace("capitol", "capital").replace("hight", "height").replace("$m", "Manaslu")
            assert found["texts"] == graph.kopl(program).texts, name
            assert wanted is None or found["texts"] == wanted
            assert found["texts"]
        elif tool == "evidence":
            assert found["facts"][0]["text"].startswith("Nepal | capital | Kathmandu")
        elif tool == "match":
            assert found["subgraphs"][0]["nodes"] == {"city 1": "Kathmandu"}
        else:
            assert found["entities"][0]["name"] == "Nepal"


async def everything(client: Client, graph: condgraph.Graph) -> None:
    """Every tool and resource, against its own schema."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"schema", "find", "query", "match", "evidence"}
    for tool in tools.values():
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is False
        assert tool.output_schema is not None
    for name, arguments in (
        ("schema", {}), ("schema", {"predicate": "capital", "tokens": 100}), ("find", {"name": "Nepal"}),
        ("query", {"program": "FindAll() Count()"}), ("match", {"pattern": "(UNKNOWN x) -[capital]-> (UNKNOWN y)"}),
        ("evidence", {"program": "Find(Manaslu) QueryAttr(height)", "limit": 1}),
        ("query", {"program": "FindAll() FilterNum(height, $least, >)", "parameters": {"least": 8000},
                   "table": "group by country show count(), values(self)"}),
        ("query", {"program": "(UNKNOWN x) -[capital]-> ($y)", "parameters": {"y": "Kathmandu"}}),
        ("query", {"program": "Find(Manaslu) QueryAttr(height) VerifyNum(8163 m, =)"}),
        ("query", {"program": "Find(Nepal) Relate(capital, backward)"}),
        ("evidence", {"program": "FindAll() FilterNum(height, 8000 m, >)", "table": "group by country"}),
    ):  # fmt: skip
        validate(arguments, tools[name].input_schema)
        found = await client.call_tool(name, arguments)
        assert not found.is_error, found
        validate(found.structured_content, tools[name].output_schema)
        # Clients that read texts alone get the same.
        assert json.loads(found.content[0].text) == found.structured_content
    resources = {str(resource.uri) for resource in (await client.list_resources()).resources}
    assert resources == {"condgraph://schema", "condgraph://schema.json", "condgraph://guide"}
    for uri in resources:
        text = (await client.read_resource(uri)).contents[0].text
        assert text
        if uri.endswith("json"):
            assert json.loads(text) == json.loads(json.dumps(graph.schema().data()))
    assert "KoPL" in (client.instructions or "")
    for arguments in (
        {"program": "FindAll() Count()", "limit": 0},
        {"program": "FindAll() Count()", "limit": 10**6},
        {},
        {"program": 5},
        {"program": "Find($x)", "parameters": {"x": True}},
        {"program": "FindAll()", "table": "grup by country"},
    ):
        wrong = await client.call_tool("query", arguments)
        assert wrong.is_error
    misspelt = await client.call_tool("query", {"program": "Find($x) Count()", "parameter": {"x": "Nepal"}})
    assert misspelt.is_error
    assert refusal(misspelt)["nearest"][0] == "parameters"
    assert "it takes: program, table, parameters" in misspelt.content[0].text
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False
    unknown = await client.call_tool("query", {"program": "Find(Nepall) Count()"})
    assert unknown.is_error
    assert refusal(unknown)["nearest"][0] == "Nepal"
    assert "nearest: 'Nepal'" in unknown.content[0].text
    injected = await client.call_tool("query", {"program": "Find($x) Count()", "parameters": {"x": 'Nepal") FindAll("'}})
    assert refusal(injected)["code"] == "unknown-name"


def test_in_process(store: Path) -> None:
    graph = condgraph.open(store, read_only=True)

    async def asked() -> None:
        async with Client(mcp_server(Toolbox(graph))) as client:
            await everything(client, graph)
            await ten_questions(client, graph)

    run(asked)


def test_asking_in_words_where_a_model_is(store: Path) -> None:
    graph = condgraph.open(store, read_only=True)

    async def asked() -> None:
        server = mcp_server(Toolbox(graph, llm=lambda messages: "Find(Nepal) Relate(capital, forward) QueryName()"))
        async with Client(server) as client:
            found = await client.call_tool("ask", {"question": "What is the capital of Nepal?"})
            assert [one["text"] for one in found.structured_content["answers"]] == ["Kathmandu"]

    run(asked)


def test_deadlines_and_cancelling(store: Path) -> None:
    graph = condgraph.open(store, read_only=True)

    async def late() -> None:
        async with Client(mcp_server(Toolbox(graph, timeout=1e-9))) as client:
            found = await client.call_tool("query", {"program": "FindAll() Count()"})
            assert refusal(found)["code"] == "deadline"

    run(late)
    ended: list[float] = []

    class Slow(Toolbox):
        def query(self, program: str, **options: Any) -> Any:
            cancelled = options["cancelled"]
            begin = time.monotonic()
            assert cancelled.wait(30)
            ended.append(time.monotonic() - begin)
            return super().query(program, **options)

    async def gone() -> None:
        async with Client(mcp_server(Slow(graph))) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await client.call_tool("query", {"program": "FindAll() Count()"})
            for _ in range(100):
                if ended:
                    break
                await asyncio.sleep(0.05)
            assert ended
            assert ended[0] < 10

    run(gone)


#: Steps that take some five seconds without a deadline, in a program of as many as may be.
STEPS = "FindAll() " + "Relate(knows, forward) Relate(knows, backward) " * 990 + "Count()"
EXPENSIVE: list[tuple[str, dict[str, Any]]] = [
    ("query", {"program": STEPS}),
    ("evidence", {"program": STEPS}),
    ("query", {"program": STEPS.removesuffix(" Count()"), "table": "show count()"}),
]
CHAIN = "\n".join(f"(UNKNOWN {one}) -[knows]-> (UNKNOWN {one + 1})" for one in range(1, 9))


@pytest.fixture(scope="module")
def knowing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 20,000 people, who know each other 100,000 times."""
    folder = tmp_path_factory.mktemp("knowing")
    (folder / "knows.tsv").write_text("".join(f"P{one % 20_000}\tknows\tP{one * 37 % 19_997}\n" for one in range(100_000)))
    with condgraph.open(folder / "graph") as graph:
        graph.load(folder / "knows.tsv", format="triples")
    return folder / "graph"


async def in_time(client: Client, deadline: float) -> None:
    """Each expensive call ends with the error of its deadline, soon after that, and others are answered
    afterwards.
    """
    for tool, arguments in EXPENSIVE:
        begin = time.monotonic()
        found = await client.call_tool(tool, arguments)
        took = time.monotonic() - begin
        assert refusal(found)["code"] == "deadline", tool
        assert took >= deadline
        assert quick_enough(took, deadline + 2), (tool, took)
    # A search gives what it has.
    begin = time.monotonic()
    assert not (await client.call_tool("match", {"pattern": CHAIN, "k": 50})).is_error
    assert quick_enough(time.monotonic() - begin, deadline + 2)
    counted = await client.call_tool("query", {"program": "FindAll() Count()"})
    assert counted.structured_content["texts"] == ["20000"]


def test_a_deadline_holds_in_process(knowing: Path) -> None:
    graph = condgraph.open(knowing, read_only=True)

    async def asked() -> None:
        async with Client(mcp_server(Toolbox(graph, timeout=1))) as client:
            await in_time(client, 1)

    run(asked)


@pytest.mark.service
@pytest.mark.slow
def test_a_deadline_holds_over_standard_input_and_output(knowing: Path) -> None:
    command = watched([sys.executable, "-m", "condgraph", "mcp", "-d", str(knowing), "--timeout", "1"])

    async def asked() -> None:
        async with Client(StdioServerParameters(command=command[0], args=command[1:], env={"COLUMNS": "80"})) as client:
            await in_time(client, 1)
            # Calls at once share the processor, and each has its deadline.
            tool, arguments = EXPENSIVE[0]
            begin = time.monotonic()
            found = await asyncio.gather(*(client.call_tool(tool, arguments) for _ in range(4)))
            assert {refusal(one)["code"] for one in found} == {"deadline"}
            assert quick_enough(time.monotonic() - begin, 5)

    run(asked)


@pytest.mark.service
def test_standard_input_and_output(store: Path) -> None:
    graph = condgraph.open(store, read_only=True)
    command = watched([sys.executable, "-m", "condgraph", "mcp", "-d", str(store)])
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "COLUMNS": "80"}

    async def asked() -> None:
        async with Client(StdioServerParameters(command=command[0], args=command[1:], env=environment)) as client:
            await everything(client, graph)
            await ten_questions(client, graph)
            # Somebody else's load is seen.
            before = (await client.call_tool("query", {"program": "FindAll() Count()"})).structured_content["texts"]
            assert before == graph.kopl("FindAll() Count()").texts

    run(asked)
    assert stdio_client is not None


@contextmanager
def over_http(store: Path, *more: str, environment: dict[str, str] | None = None) -> Iterator[str]:
    command = watched([sys.executable, "-m", "condgraph", "mcp", "-d", str(store), "--http", "--port", "0", *more])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"(http://\S+/mcp) serves", line)
        assert found is not None, line
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.mark.service
def test_http(store: Path) -> None:
    graph = condgraph.open(store, read_only=True)
    with over_http(store) as url:

        async def asked() -> None:
            async with Client(url) as client:
                await everything(client, graph)
                await ten_questions(client, graph)
            async with Client(url, mode="legacy") as client:
                assert (await client.call_tool("find", {"name": "Nepal"})).structured_content["entities"]
            # Many at once.
            async with Client(url) as client:
                calls = [client.call_tool("query", {"program": "FindAll() Count()"}) for _ in range(40)]
                assert len({found.structured_content["texts"][0] for found in await asyncio.gather(*calls)}) == 1

        run(asked)
        with httpx2.Client() as http:
            # A page of another place, whose name leads here, is refused.
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
                for path in ("", "/../sparql"):
                    refused = http.post(url + path, json={}, headers=headers)
                    assert refused.status_code == 403
                    assert "access-control-allow-origin" not in refused.headers
            assert http.post(url, content=b"x" * (5 << 20), headers={"Content-Type": "application/json"}).status_code == 413
            assert http.get(url.removesuffix("/mcp") + "/../etc/passwd").status_code == 404


@pytest.mark.service
def test_http_with_a_token(store: Path) -> None:
    with over_http(store, "--host", "0.0.0.0", environment={"CONDGRAPH_MCP_TOKEN": "s3cret"}) as url:
        url = url.replace("0.0.0.0", "127.0.0.1")
        with httpx2.Client() as http:
            for given in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "s3cret"},
                {"Authorization": "Bearer s3cret "[:-2]},
            ):
                refused = http.post(url, json={}, headers=given)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"].startswith("Bearer")
            page = {"Authorization": "Bearer s3cret", "Origin": "http://evil.example"}
            assert http.post(url, json={}, headers=page).status_code == 403

        async def asked() -> None:
            async with (
                httpx2.AsyncClient(headers={"Authorization": "Bearer s3cret"}) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                assert (await client.call_tool("find", {"name": "Nepal"})).structured_content["entities"]

        run(asked)


@pytest.mark.service
def test_pages_that_are_allowed(store: Path) -> None:
    page = {"Origin": "http://localhost:6274"}
    with over_http(store, "--cors", page["Origin"], "--allow-host", "data.example") as url, httpx2.Client() as http:
        hello = {
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}},
        }  # fmt: skip
        accept = {"Accept": "application/json, text/event-stream"}
        for more in (page, page | {"Host": "data.example"}):
            found = http.post(url, json=hello, headers=accept | more)
            assert found.status_code == 200
            assert found.headers["access-control-allow-origin"] == page["Origin"]
            assert "Mcp-Session-Id" in found.headers["access-control-expose-headers"]
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-session-id"}
        preflight = http.options(url, headers=page | asked)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, page["Origin"])
        assert "Mcp-Session-Id" in preflight.headers["access-control-allow-headers"]


@pytest.mark.service
def test_a_token_is_needed_elsewhere(store: Path) -> None:
    command = [sys.executable, "-m", "condgraph", "mcp", "-d", str(store), "--http", "--host", "0.0.0.0"]
    environment = {name: value for name, value in os.environ.items() if name != "CONDGRAPH_MCP_TOKEN"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2 or "no token is given" in done.stderr
    assert done.returncode != 0
    missing = subprocess.run([*command[:5], str(store / "nothing")], capture_output=True, text=True, check=False, input="")
    assert missing.returncode == 3
    assert missing.stdout == ""
