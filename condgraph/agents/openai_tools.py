"""A graph as tools of OpenAI's API, for your own loop around a model: the schemas to send, and a function
that runs the calls in a reply. The extra `openai` includes pydantic, which generates the schemas.

    tools = openai_tools(graph)
    reply = client.chat.completions.create(model=..., messages=messages, tools=tools.schemas)
    messages += [reply.choices[0].message, *map(tools.call, reply.choices[0].message.tool_calls or ())]

With `api="responses"`, the same works for `client.responses.create(tools=tools.schemas, input=items)`,
whose output contains items of the type `function_call`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from condgraph.agents.toolbox import Call, Toolbox, calls, failure, short
from condgraph.engine.errors import MissingExtraError, OptionError, nearest

try:
    from pydantic import ConfigDict, Field, ValidationError, create_model
except ImportError as error:
    raise MissingExtraError(error.name or "pydantic", "openai") from None

if TYPE_CHECKING:
    from pydantic import BaseModel

    from condgraph.graph import Graph

Api = Literal["chat", "responses"]


def openai_tools(graph: Graph, *, llm: Any = None, timeout: float = 30.0, api: Api = "chat") -> OpenAITools:
    """Return the tools of a graph: schema, find, query, match, evidence, and ask with a model.

    Each call is limited to `timeout` seconds. `api` selects the format of the schemas: "chat" for chat
    completions, "responses" for responses.
    """
    if api not in get_args(Api):
        raise OptionError(f"there is no API {api!r}", candidates=nearest(str(api), get_args(Api)), hint='"chat" or "responses"')
    return OpenAITools(calls(Toolbox(graph, llm=llm, timeout=timeout)), api)


class OpenAITools:
    """The tools of a graph: `schemas` for the requests, and `call`, which runs one call from a reply."""

    def __init__(self, known: list[Call], api: Api) -> None:
        self._calls = {f"graph_{call.__name__}": (call, _arguments(call)) for call in known}
        functions = [
            {
                "name": name,
                "description": cleandoc(call.__doc__ or ""),
                "parameters": arguments.model_json_schema(),
                "strict": False,
            }
            for name, (call, arguments) in self._calls.items()
        ]
        self.schemas: list[dict[str, Any]] = [
            {"type": "function", **function} if api == "responses" else {"type": "function", "function": function}
            for function in functions
        ]

    def call(self, call: Any) -> dict[str, str]:
        """Run a call from a reply and return the message or item that answers it.

        The call is one of a chat completion (`message.tool_calls`) or an item of a response, as an object
        of the package `openai` or its JSON. Errors are returned as results, so that the model can read them
        and try again.
        """
        item: Mapping[str, Any] = call if isinstance(call, Mapping) else call.model_dump()
        if item.get("type") == "function_call":
            return {
                "type": "function_call_output",
                "call_id": item["call_id"],
                "output": self._run(item["name"], item["arguments"]),
            }
        function = item["function"]
        return {"role": "tool", "tool_call_id": item["id"], "content": self._run(function["name"], function["arguments"])}

    def _run(self, name: str, text: str) -> str:
        try:
            if name not in self._calls:
                tools = f"the tools are: {', '.join(self._calls)}"
                raise OptionError(f"there is no tool {name!r}", candidates=nearest(name, self._calls), hint=tools)
            call, arguments = self._calls[name]
            short(text, "call")
            try:
                values = arguments.model_validate_json(text or "{}", strict=True)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                place = ".".join(map(str, first["loc"]))
                hint = f"{name} takes: {', '.join(arguments.model_fields)}"
                candidates = nearest(place, arguments.model_fields)
                raise OptionError(f"{place or 'the call'}: {first['msg']}", candidates=candidates, hint=hint) from None
            result = call(**{field: getattr(values, field) for field in values.model_fields_set})
        except OptionError as error:
            result = failure(error)
        return json.dumps(result, ensure_ascii=False)


def _arguments(call: Call) -> type[BaseModel]:
    """Return a pydantic model of a tool's arguments, with the descriptions from its annotations."""
    fields: dict[str, Any] = {}
    for name, parameter in signature(call).parameters.items():
        kind, description, *_ = get_args(parameter.annotation)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (Annotated[kind, Field(description=description)], default)
    return create_model(call.__name__, __config__=ConfigDict(extra="forbid"), **fields)
