"""A real HTTP server that speaks OpenAI's embeddings API, over a small model of hashed words, for
the tests of clients.

It can be told to fail: `plan` holds what it answers to the next requests before it answers as it
should.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMENSION = 24
KEY = "a key"


def embed(text: str, dimension: int = DIMENSION) -> list[float]:
    """The sum of a random vector for every word: not of length one, as many models are."""
    total = np.zeros(dimension)
    for word in text.split() or [text]:
        seed = int.from_bytes(blake2b(word.casefold().encode(), digest_size=8).digest(), "little")
        total += np.random.default_rng(seed).standard_normal(dimension)
    return total.tolist()


class Server(ThreadingHTTPServer):
    """The server; what it was sent is in `requests`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        #: (status, headers, body) or a function of the request's JSON that gives the response's,
        #: used up one by one.
        self.plan: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.dimension = DIMENSION

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/embeddings":
            self.answer(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            self.answer(401, {"error": {"message": "wrong key", "type": "invalid_request_error"}})
            return
        self.server.requests.append(asked)
        planned = self.server.plan.pop(0) if self.server.plan else None
        if isinstance(planned, tuple):
            self.answer(*planned)
        elif asked["model"] != "words":
            self.answer(404, {"error": {"message": f"no model {asked['model']!r}", "type": "invalid_request_error"}})
        else:
            data = [
                {"object": "embedding", "index": at, "embedding": embed(text, self.server.dimension)}
                for at, text in enumerate(asked["input"])
            ]
            body = {"object": "list", "data": data, "model": "words", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
            self.answer(200, planned(body) if planned else body)

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def running() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
