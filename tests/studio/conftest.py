"""Servers of the studio, as a user starts them, over stores of each kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import condgraph
from tests.endpoint.test_serve import command
from tests.support.samples import load_samples
from tests.support.serving import Reply, ask


class Client:
    """Calls of one server: `get("names", text="a")`, `post("query", program="...")`."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, name: str, /, **fields: Any) -> Any:
        return self.document(ask(self.url, "GET", f"/api/v1/{name}?{urlencode(fields, doseq=True)}", headers=self.headers))

    def post(self, name: str, /, **fields: Any) -> Any:
        return self.document(self.send(name, json.dumps(fields).encode()))

    def send(self, name: str, body: bytes, kind: str = "application/json", **headers: str) -> Reply:
        return ask(self.url, "POST", f"/api/v1/{name}", headers=self.headers | {"Content-Type": kind} | headers, body=body)

    def drop(self, data: bytes, /, **fields: Any) -> tuple[int, Any]:
        reply = self.send(f"graphs?{urlencode(fields, doseq=True)}", data, "application/octet-stream")
        return reply.status, json.loads(reply.body)

    @staticmethod
    def document(reply: Reply) -> Any:
        found = json.loads(reply.body)
        assert (reply.status < 400) == ("error" not in found), reply
        return found


@pytest.fixture(scope="session")
def samples_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studio") / "world"
    with condgraph.open(folder) as graph:
        load_samples(graph)
    return folder


@pytest.fixture(scope="module")
def served(samples_store: Path) -> Iterator[Client]:
    with command("-d", str(samples_store), "--timeout", "30", "--rate", "0", "--workers", "2") as (url, _):
        yield Client(url)
