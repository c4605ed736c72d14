"""The API on what is ugly: files that are read back, names that many have, methods and statuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas
import pytest

import condgraph
from condgraph.engine.facts import Entity, Statement
from condgraph.engine.values import Quantity, Time
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.support.serving import ask

pytestmark = pytest.mark.service


def test_csv_is_read_back_as_it_is(tmp_path: Path) -> None:
    """No cell begins a row, or runs in a spreadsheet; numbers stay numbers."""
    values: list[Any] = [
        Quantity(-2.5, "kg"), Quantity(-3, "+cmd|' /C calc'!A0"), Time.day(-43, 3, 15), Time.year(-43), "a\rb\nc",
        "x;=1+1", "\uff1d1+1", "=HYPERLINK(1)", " padded ", 'say "x"',
    ]  # fmt: skip
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Entity("e", "carriage\rreturn"), *(Statement("e", "says", value) for value in values)])
    with command("-d", str(tmp_path / "store"), "--rate", "0", "--workers", "1") as (url, _):
        client = Client(url)
        for program, count in (("FindAll() QueryAttr(says)", len(values)), ("FindAll() QueryName()", 1)):
            rows = client.post("query", program=program)["rows"]
            text = _csv(client, program)
            found = [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:]
            assert (len(found), len(rows)) == (count, count)
            assert [one[one.startswith("'") :] for one in found] == [row[0]["text"] for row in rows]
            frame = pandas.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
            assert frame["answer"].tolist() == found
        assert {"-2.5 kg", "'-3 +cmd|' /C calc'!A0", "'-0043-03-15", "-43", "'\uff1d1+1", "'=HYPERLINK(1)"} <= set(
            _column(client, "FindAll() QueryAttr(says)")
        )
        assert '"x;=1+1"' in _csv(client, "FindAll() QueryAttr(says)")


def _column(client: Client, program: str) -> list[str]:
    return [row[0] for row in csv.reader(io.StringIO(_csv(client, program), newline=""))]


def _csv(client: Client, program: str) -> str:
    return client.send("query", json.dumps({"program": program, "format": "csv"}).encode()).body.decode()


def test_names_of_one_kind_of_predicate(served: Client) -> None:
    """What completion offers in a place may stand there."""

    def found(*kinds: str) -> set[str]:
        return {one["name"] for one in served.get("names", text="", kinds=list(kinds), limit=200)["names"]}

    relations, attributes, keys = found("relation"), found("attribute"), found("qualifier")
    assert {"capital", "country"} <= relations
    assert {"height", "date of birth"} <= attributes
    assert "start time" in keys
    assert "height" not in relations
    assert "capital" not in attributes
    assert found("predicate") == relations | attributes | keys


def test_methods_of_a_path(served: Client) -> None:
    for path, allowed in (
        ("query", "POST, OPTIONS"),
        ("names", "GET, HEAD, OPTIONS"),
        ("graphs", "POST, OPTIONS"),
        ("entity", "GET, HEAD, POST, OPTIONS"),
        ("graphs/x", "DELETE, OPTIONS"),
    ):
        assert ask(served.url, "OPTIONS", f"/api/v1/{path}").headers["allow"] == allowed
    responses = served.get("openapi.json")["paths"]["/api/v1/query"]["post"]["responses"]
    assert {"405", "408", "431"} <= set(responses)


def test_others_of_a_name(tmp_path: Path) -> None:
    with condgraph.open(tmp_path / "store") as graph:
        graph.add([Entity(f"j{number}", "John Smith") for number in range(60)])
    with command("-d", str(tmp_path / "store"), "--rate", "0", "--workers", "1") as (url, _):
        for field in ({"id": "j7"}, {"name": "John Smith"}):
            found = Client(url).get("entity", **field)
            assert (len(found["same"]), found["total_same"]) == (50, 59)
            assert found["entity"]["id"] not in {one["id"] for one in found["same"]}
