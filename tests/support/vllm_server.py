"""A real HTTP server that speaks vLLM's API as its documentation has it, refuses what that refuses, and
writes random texts that follow the constraint of a request.

A request that it refuses is an error of HTTP, and is kept in `faults`: a test that forgets to look
at the answer sees it there. `version` is what it is taken for: before 0.12 a regular expression is
`guided_regex`, and other fields of that kind are left aside without a word.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jsonschema import Draft202012Validator

from tests.support.schemas import Schemas, alternatives, text_of

#: Alternatives of one choice that are refused beyond, and characters of an expression.
MOST_ALTERNATIVES = 2_000
MOST_CHARACTERS = 4_000_000
_KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
_COMMON = {"model", "n", "max_tokens", "temperature", "seed", "stop", "logprobs", "stream", "stream_options"}
_TAKEN = {
    "/v1/completions": _COMMON | {"prompt", "structured_outputs"},
    "/v1/chat/completions": _COMMON | {"messages", "response_format", "structured_outputs"},
}


class RefusedError(Exception):
    """What the server says of a request that it does not take."""


class Vllm(ThreadingHTTPServer):
    """The server."""

    daemon_threads = True

    def __init__(self, version: tuple[int, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.version, self.rng = version, random.Random(1)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.faults: list[str] = []

    @property
    def url(self) -> str:
        """Its address, up to and with `/v1`."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; raises `RefusedError`."""
        self.requests.append((path, body))
        if path not in _TAKEN:
            raise RefusedError(f"no such path: {path}")
        if body.get("temperature", 1.0) == 0 and body.get("n", 1) != 1:
            raise RefusedError("n must be 1 when using greedy sampling")
        if not isinstance(body.get("max_tokens", 16), int) or body.get("max_tokens", 16) < 1:
            raise RefusedError("max_tokens must be at least 1")
        old = self.version < (0, 12)
        held = body.get("structured_outputs")
        if not old:
            if strange := sorted(body.keys() - _TAKEN[path]):
                raise RefusedError(f"extra fields are not taken: {', '.join(strange)}")
            if held is not None and ([kind for kind in _KINDS if held.get(kind)] != [*held] or len(held) != 1):
                raise RefusedError(f"exactly one of {', '.join(_KINDS)} is taken, not {sorted(held)}")
        expression = body.get("guided_regex") if old else (held or {}).get("regex")
        texts = [self._text(path, body, expression) for _ in range(body.get("n", 1))]
        if path == "/v1/completions":
            return {
                "choices": [{"text": text, "logprobs": {"token_logprobs": [-0.5, -0.25]}, "stop_reason": None} for text in texts]
            }
        messages = [{"role": "assistant", "content": text} for text in texts]
        choices = [{"index": at, "message": one, "finish_reason": "stop"} for at, one in enumerate(messages)]
        return {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": choices}

    def _text(self, path: str, body: dict[str, Any], expression: str | None) -> str:
        if expression is not None:
            if len(expression) > MOST_CHARACTERS or (wide := alternatives(expression)) > MOST_ALTERNATIVES:
                raise RefusedError(f"the regex is too large: {len(expression)} characters, {wide} alternatives")
            text = text_of(expression, self.rng)
            assert re.fullmatch(expression, text)
            return text
        form = body.get("response_format")
        if form is None:
            return "Let me think."
        if form.get("type") != "json_schema" or not isinstance(form.get("json_schema", {}).get("name"), str):
            raise RefusedError("response_format is a json_schema with a name")
        schema = form["json_schema"]["schema"]
        Draft202012Validator.check_schema(schema)
        if _listed(schema) > MOST_ALTERNATIVES:
            raise RefusedError("the schema lists too many values")
        return json.dumps(Schemas(schema, deep=5).derive(self.rng), ensure_ascii=False)


def _listed(schema: Any) -> int:
    if isinstance(schema, dict):
        return max([len(schema["enum"]) if "enum" in schema else 0, *map(_listed, schema.values())])
    return max(map(_listed, schema), default=0) if isinstance(schema, list) else 0


class _Handler(BaseHTTPRequestHandler):
    server: Vllm

    def do_GET(self) -> None:
        self._json(404, {"message": f"no such path: {self.path}"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self._json(200, {"tokens": list(range(len(body.get("prompt", "").split())))})
            return
        try:
            found = self.server.answer(self.path, body)
        except RefusedError as error:
            self.server.faults.append(str(error))
            self._json(400, {"error": {"message": str(error), "type": "BadRequestError", "param": None, "code": 400}})
        else:
            self._json(200, found)

    def _json(self, status: int, found: Any) -> None:
        text = json.dumps(found).encode()
        self.send_response(status)
        for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(text)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(version: tuple[int, int] = (0, 14)) -> Iterator[Vllm]:
    """A server, which ends with the block."""
    server = Vllm(version)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
