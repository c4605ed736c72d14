"""A real HTTP server that speaks OpenAI's chat completions, and fails as it is told to.

What it says is a script: one step a request, each a `Say`, a fault of `FAULTS`, or a function of
the request; after the last step it answers with `default`. What it was sent is in `requests`.
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
    """Completions: their texts and how they end, with refusals and usage where they are said."""

    texts: Sequence[str]
    finish: str = "stop"
    refusal: str | None = None
    usage: bool = True


@dataclass(frozen=True)
class Status:
    """An error of HTTP, as OpenAI's API words it."""

    status: int
    message: str
    headers: dict[str, str] = field(default_factory=lambda: {"Retry-After": "0.02"})
    param: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Raw:
    """A reply of any bytes, which may break off (`cut`: bytes that were promised and do not come),
    stand still, or trickle.
    """

    body: bytes
    kind: str = "application/json"
    cut: int = 0
    still: float = 0.0
    trickle: float = 0.0


Step = Say | Status | Raw | Callable[[dict[str, Any]], Any]


class Server(ThreadingHTTPServer):
    """The server; `n_at_most` is how many completions it gives at a time, whatever it is asked for,
    and `takes` the parameters that it does not refuse (None: all).
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
            found: Any = self.script.pop(0) if self.script else self.default
        while callable(found):
            found = found(request)
        return found


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
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(self.path)
        self.server.keys.add(self.headers.get("Authorization", ""))
        if self.path == "/tokenize":
            field_ = self.server.tokenize
            self._json(*((404, {}) if field_ is None else (200, {"tokens": list(range(len(asked.get(field_, "").split())))})))
            return
        if self.path != "/v1/chat/completions":
            self._json(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        for name, message in self.server.refuses.items():
            if name in asked:
                with self.server._lock:
                    self.server.requests.append(asked)
                self._json(400, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})
                return
        step = self.server.step(asked)
        if isinstance(step, Status):
            error = {"message": step.message, "type": "an_error", "param": step.param, "code": step.code}
            self._json(step.status, {"error": error}, step.headers)
        elif isinstance(step, Raw):
            self._raw(step)
        elif asked.get("stream"):
            self._raw(Raw(b"".join(events(step, asked)), "text/event-stream"))
        else:
            self._json(200, body(step, asked))

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
            # The client went away, as it should.
            pass
        self.close_connection = bool(step.cut)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def body(say: Say, asked: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request, all in one."""
    choices = [
        {"index": at, "message": {"role": "assistant", "content": text, "refusal": say.refusal}, "finish_reason": say.finish}
        for at, text in enumerate(say.texts)
    ]
    found: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": asked["model"],
        "choices": choices,
    }
    if say.usage:
        found["usage"] = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return found


def events(say: Say, asked: dict[str, Any], done: bool = True) -> Iterator[bytes]:
    """The same as a stream: a letter a time, the ends, the usage, and that it is done."""

    def event(choices: Any, **more: Any) -> bytes:
        found = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": asked["model"], "choices": choices, **more}
        return b"data: " + json.dumps(found).encode() + b"\n\n"

    for at, text in enumerate(say.texts):
        yield event([{"index": at, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for letter in text:
            yield event([{"index": at, "delta": {"content": letter}, "finish_reason": None}])
    if done:
        for at, _ in enumerate(say.texts):
            yield event([{"index": at, "delta": {}, "finish_reason": say.finish}])
        if (asked.get("stream_options") or {}).get("include_usage"):
            yield event([], usage={"prompt_tokens": 10, "completion_tokens": 2})
        yield b"data: [DONE]\n\n"


def last_message(request: dict[str, Any]) -> str:
    """What the request's last message says."""
    return str(request["messages"][-1]["content"])


@contextmanager
def serving(default: Step | str = "fine") -> Iterator[Server]:
    """A server that runs, and answers with `default` where its script has ended."""
    with Server(Say([default]) if isinstance(default, str) else default) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
