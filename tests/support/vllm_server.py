"""A real HTTP server for vLLM's API as documented: it refuses what vLLM refuses, and writes random texts that follow
the constraint of a request.

A refused request is an HTTP error, and is recorded in `faults` for tests that do not look at the answer. `version` is
the version it imitates: before 0.12 a regular expression is `guided_regex`, and other such fields are silently ignored.
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

#: The most alternatives of one choice, and the most characters of an expression.
MAX_ALTERNATIVES = 2_000
MAX_CHARACTERS = 4_000_000
_KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
_COMMON = {"model", "n", "max_tokens", "temperature", "seed", "stop", "logprobs", "stream", "stream_options"}
_TAKEN = {
    "/v1/completions": _COMMON | {"prompt", "structured_outputs"},
    "/v1/chat/completions": _COMMON | {"messages", "response_format", "structured_outputs"},
}


class RefusedError(Exception):
    """The server's reason for refusing a request."""


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
        """Its address, including `/v1`."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request; raise `RefusedError` if it is invalid."""
        self.requests.append((path, body))
        if path not in _TAKEN:
            raise RefusedError(f"no such path: {path}")
        if body.get("temperature", 1.0) == 0 and body.get("n", 1) != 1:
            raise RefusedError("n must be 1 when using greedy sampling")
        if not isinstance(body.get("max_tokens", 16), int) or body.get("max_tokens", 16) < 1:
            raise RefusedError("max_tokens must be at least 1")
        old = self.version < (0, 12)
        constraint = body.get("structured_outputs")
        if not old:
            if unknown := sorted(body.keys() - _TAKEN[path]):
                raise RefusedError(f"extra fields are not taken: {', '.join(unknown)}")
            if constraint is not None and (
                [kind for kind in _KINDS if constraint.get(kind)] != [*constraint] or len(constraint) != 1
            ):
                raise RefusedError(f"exactly one of {', '.join(_KINDS)} is taken, not {sorted(constraint)}")
        expression = body.get("guided_regex") if old else (constraint or {}).get("regex")
        texts = [self._text(path, body, expression) for _ in range(body.get("n", 1))]
        if path == "/v1/completions":
            return {
                "choices": [{"text": text, "logprobs": {"token_logprobs": [-0.5, -0.25]}, "stop_reason": None} for text in texts]
            }
        messages = [{"role": "assistant", "content": text} for text in texts]
        choices = [{"index": at, "message": message, "finish_reason": "stop"} for at, message in enumerate(messages)]
        return {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": choices}

    def _text(self, path: str, body: dict[str, Any], expression: str | None) -> str:
        if expression is not None:
            if len(expression) > MAX_CHARACTERS or (widest := alternatives(expression)) > MAX_ALTERNATIVES:
                raise RefusedError(f"the regex is too large: {len(expression)} characters, {widest} alternatives")
            text = text_of(expression, self.rng)
            assert re.fullmatch(expression, text)
            return text
        reply_format = body.get("response_format")
        if reply_format is None:
            return "Let me think."
        if reply_format.get("type") != "json_schema" or not isinstance(reply_format.get("json_schema", {}).get("name"), str):
            raise RefusedError("response_format is a json_schema with a name")
        schema = reply_format["json_schema"]["schema"]
        Draft202012Validator.check_schema(schema)
        if _listed(schema) > MAX_ALTERNATIVES:
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
            reply = self.server.answer(self.path, body)
        except RefusedError as error:
            self.server.faults.append(str(error))
            self._json(400, {"error": {"message": str(error), "type": "BadRequestError", "param": None, "code": 400}})
        else:
            self._json(200, reply)

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
    """Run a server until the block ends."""
    server = Vllm(version)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
