"""Names that an address has no room for: pages of entities, and what is completed."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

import condgraph
from condgraph.engine.facts import Entity, Member, Statement
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.studio.test_api import Judge
from tests.support.serving import ask

pytestmark = pytest.mark.service

LONG = "\U0001f642" * 10_000


def test_an_entity_whose_name_and_id_are_long(tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Entity(LONG + "x", LONG), Statement(LONG + "x", LONG, "y" * 20_000), Member(LONG + "x", "kind")])
    with command("-d", str(tmp_path / "store"), "--rate", "0", "--workers", "1") as (url, _):
        client = Client(url)
        judge = Judge(client)
        for field in ({"name": LONG}, {"id": LONG + "x"}):
            found = client.post("entity", **field)
            judge.check("EntityPage", found)
            assert (found["entity"]["name"], found["total"]) == (LONG, 1)
        assert [one["name"] for one in client.post("schema", predicate=LONG)["predicates"]] == [LONG]
        assert client.get("entity", id="kind") == client.post("entity", id="kind")
        # In the address there is no room, which is said as the document says.
        reply = ask(url, "GET", f"/api/v1/entity?name={quote(LONG)}")
        said = judge.document["paths"]["/api/v1/entity"]["get"]["responses"]["431"]["content"]
        assert (reply.status, list(said)) == (431, [reply.headers["content-type"].partition(";")[0]])
        assert client.post("entity", id="x" * 2_000_000)["error"]["code"] == "request"
        assert client.get("names", text="\U0001f642" * 200)["names"][0]["name"] == LONG
