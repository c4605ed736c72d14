"""A real HTTP server for OpenAI's chat completions, which fails as its script says.

The script has one step for each request: a `Say`, a `Status`, a `Raw`, or a function of the request; after the last
step the server answers with `default`. Requests are recorded in `requests`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-a-secret-of-the-tests-0123456789"


@dataclass(frozen=True)
class Say:
    """Completions: their texts and finish reason, with an optional refusal and usage."""

    texts: Sequence[str]
    finish: str = "stop"
    refusal: str | None = None
    usage: bool = True


@dataclass(frozen=True)
class Status:
    """An HTTP error in the format of OpenAI's API."""

    status: int
    message: str
    headers: dict[str, str] = field(default_factory=lambda: {"Retry-After": "0.02"})
    param: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Raw:
    """A reply of arbitrary bytes, which may break off (`cut`: bytes that were announced but never come), stall, or
    trickle.
    """

    body: bytes
    kind: str = "application/json"
    cut: int = 0
    still: float = 0.0
    trickle: float = 0.0


Step = Say | Status | Raw | Callable[[dict[str, Any]], Any]


class Server(ThreadingHTTPServer):
    """The server. It answers 400 to requests with a parameter in `refuses`, counts tokens if `tokenize` names the field
    of the text, and passes for llama.cpp if `llama` is set.
    """

    daemon_threads = True

    def __init__(self, default: Step) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.default = default
        self.script: list[Step] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.refuses: dict[str, str] = {}
        self.tokenize: str | None = None
        self.llama = False
        self.asked: list[str] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def step(self, request: dict[str, Any]) -> Any:
        with self._lock:
            self.requests.append(request)
            step: Any = self.script.pop(0) if self.script else self.default
        while callable(step):
            step = step(request)
        return step


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path == "/props" and self.server.llama:
            self._json(200, {"default_generation_settings": {}})
        else:
            self._json(404, {"error": {"message": f"no such path: {self.path}"}})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(self.path)
        self.server.keys.add(self.headers.get("Authorization", ""))
        if self.path == "/tokenize":
            field_ = self.server.tokenize
            self._json(*((404, {}) if field_ is None else (200, {"tokens": list(range(len(request.get(field_, "").split())))})))
            return
        if self.path != "/v1/chat/completions":
            self._json(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        for name, message in self.server.refuses.items():
            if name in request:
                with self.server._lock:
                    self.server.requests.append(request)
                self._json(400, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})
                return
        step = self.server.step(request)
        if isinstance(step, Status):
            error = {"message": step.message, "type": "an_error", "param": step.param, "code": step.code}
            self._json(step.status, {"error": error}, step.headers)
        elif isinstance(step, Raw):
            self._raw(step)
        elif request.get("stream"):
            self._raw(Raw(b"".join(events(step, request)), "text/event-stream"))
        else:
            self._json(200, body(step, request))

    def _json(self, status: int, found: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(found).encode()
        self._head(status, "application/json", len(text), headers or {})
        self.wfile.write(text)

    def _head(self, status: int, kind: str, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _raw(self, step: Raw) -> None:
        try:
            self._head(200, step.kind, len(step.body) + step.cut, {})
            pieces = [step.body[at : at + 1] for at in range(len(step.body))] if step.trickle else [step.body]
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(step.trickle)
            time.sleep(step.still)
        except OSError:
            # The client closed the connection, as it should.
            pass
        self.close_connection = bool(step.cut)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def body(say: Say, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a request, not streamed."""
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text, "refusal": say.refusal}, "finish_reason": say.finish}
        for index, text in enumerate(say.texts)
    ]
    result: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": asked["model"],
        "choices": choices,
    }
    if say.usage:
        result["usage"] = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return result


def events(say: Say, asked: dict[str, Any], done: bool = True) -> Iterator[bytes]:
    """Yield the same reply as a stream: one letter at a time, the finish reasons, the usage, and the end mark."""

    def event(choices: Any, **more: Any) -> bytes:
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": asked["model"], "choices": choices, **more}
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    for index, text in enumerate(say.texts):
        yield event([{"index": index, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for letter in text:
            yield event([{"index": index, "delta": {"content": letter}, "finish_reason": None}])
    if done:
        for index, _ in enumerate(say.texts):
            yield event([{"index": index, "delta": {}, "finish_reason": say.finish}])
        if (asked.get("stream_options") or {}).get("include_usage"):
            yield event([], usage={"prompt_tokens": 10, "completion_tokens": 2})
        yield b"data: [DONE]\n\n"


def last_message(request: dict[str, Any]) -> str:
    """Return the content of the request's last message."""
    return str(request["messages"][-1]["content"])


@contextmanager
def serving(default: Step | str = "fine") -> Iterator[Server]:
    """Run a server that answers with `default` when its script has ended."""
    with Server(Say([default]) if isinstance(default, str) else default) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
