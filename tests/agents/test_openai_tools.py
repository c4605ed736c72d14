"""The tools of a graph for OpenAI's API: the package `openai` sends the schemas to a server, which calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from condgraph.engine.errors import OptionError
from condgraph.graph import Graph
from tests.support.agents import CAPITAL, model, samples
from tests.support.chat_server import KEY, Raw, serving

pytest.importorskip("openai")

import openai

from condgraph.agents.openai_tools import OpenAITools, openai_tools


@pytest.fixture(scope="module")
def graph() -> Graph:
    return samples()


def completion(message: dict[str, Any]) -> Raw:
    choice = {"index": 0, "finish_reason": "tool_calls" if "tool_calls" in message else "stop", "message": message}
    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Raw(json.dumps(reply).encode())


def calling(name: str, arguments: str) -> Raw:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return completion({"role": "assistant", "content": None, "tool_calls": [call]})


@pytest.mark.service
def test_a_loop_around_a_model(graph: Graph) -> None:
    """A model that misspells a name, reads the error, tries the nearest name, and answers with what it got."""
    tools = openai_tools(graph)

    def next_step(request: dict[str, Any]) -> Raw:
        assert request["tools"] == tools.schemas
        last = request["messages"][-1]
        if last["role"] == "user":
            return calling("graph_query", json.dumps({"program": CAPITAL.replace("capital", "capitol")}))
        assert last["tool_call_id"] == "call_1"
        found = json.loads(last["content"])
        if "error" in found:
            wrong = found["error"]
            return calling("graph_query", json.dumps({"program": CAPITAL.replace("capital", wrong["nearest"][0])}))
        return completion({"role": "assistant", "content": found["texts"][0]})

    with serving(next_step) as server:
        client = openai.OpenAI(base_url=server.url, api_key=KEY)
        messages: list[Any] = [{"role": "user", "content": "What is the capital of Nepal?"}]
        for _ in range(5):
            message = client.chat.completions.create(model="m", messages=messages, tools=tools.schemas).choices[0].message
            if not message.tool_calls:
                break
            messages += [message, *map(tools.call, message.tool_calls)]
        assert message.content == "Kathmandu"
        assert len(messages) == 5


def test_items_of_responses(graph: Graph) -> None:
    from openai.types.responses import ResponseFunctionToolCall

    tools = openai_tools(graph, llm=model, api="responses")
    assert {schema["name"] for schema in tools.schemas} >= {"graph_query", "graph_ask"}
    item = ResponseFunctionToolCall(
        arguments='{"question": "What is the capital of Nepal?"}', call_id="c1", name="graph_ask", type="function_call"
    )
    answer = tools.call(item)
    assert (answer["type"], answer["call_id"]) == ("function_call_output", "c1")
    assert json.loads(answer["output"])["status"] == "answered"


def test_schemas(graph: Graph) -> None:
    from jsonschema import Draft202012Validator

    for schema in openai_tools(graph).schemas:
        function = schema["function"]
        Draft202012Validator.check_schema(function["parameters"])
        assert function["description"]
        assert function["parameters"]["additionalProperties"] is False
        assert all(part["description"] for part in function["parameters"]["properties"].values())


@pytest.mark.parametrize(
    ("name", "arguments", "nearest", "part"),
    [
        ("graph_qery", "{}", "graph_query", "no tool"),
        ("graph_query", "{", None, "JSON"),
        ("graph_query", "{}", "program", "program: Field required"),
        ("graph_query", '{"program": "FindAll() Count()", "limits": 5}', "limit", "limits"),
        ("graph_query", '{"program": "Find($x)", "parameters": {"x": true}}', None, "parameters.x"),
        ("graph_query", '{"program": "FindAll() Count()", "limit": 0}', None, "limit is from 1"),
        ("graph_query", '"' + "x" * 200_000 + '"', None, "characters"),
        ("graph_find", '{"name": "Nepal", "limit": "many"}', "limit", "limit: "),
    ],
)
def test_wrong_calls_are_results(graph: Graph, name: str, arguments: str, nearest: str | None, part: str) -> None:
    tools = openai_tools(graph)
    said = answered(tools, name, arguments)["error"]
    assert part in said["message"]
    assert nearest is None or said["nearest"][0] == nearest


def answered(tools: OpenAITools, name: str, arguments: str) -> Any:
    return json.loads(tools.call({"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}})["content"])


def test_an_unknown_api_is_refused(graph: Graph) -> None:
    with pytest.raises(OptionError, match="no API"):
        openai_tools(graph, api="assistants")  # type: ignore[arg-type]
