"""The MCP inspector's own checks, by its command line, against the server as people start it: schemas
that every client takes, results that are what the schemas say, and errors that arrive as ours.

The inspector needs Node 22.19; `.ci/frameworks` installs both (by hand: `npm install -g
@modelcontextprotocol/inspector`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import condgraph
from condgraph.samples import FOLDER

INSPECTOR = shutil.which("mcp-inspector")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(INSPECTOR is None, reason="the program `mcp-inspector` is not installed, which needs Node 22.19"),
]


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """What the inspector gives for a method of the protocol; it must not complain."""
    folder = tmp_path_factory.mktemp("inspected")
    with condgraph.open(folder / "store") as graph:
        graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
        graph.load(FOLDER / "countries.json")
    server = {"command": sys.executable, "args": ["-m", "condgraph", "mcp", "--directory", str(folder / "store")]}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"condgraph": server}}))

    def inspected(method: str, *more: str) -> Any:
        command = [str(INSPECTOR), "--cli", "--config", str(folder / "servers.json"), "--server", "condgraph", "--method", method]
        said = subprocess.run([*command, *more], capture_output=True, text=True, check=False, timeout=120)
        # A tool that refuses has an exit status of its own.
        found = json.loads(said.stdout[said.stdout.index("{") :])
        assert said.returncode == (5 if found.get("isError") else 0), (said.returncode, said.stdout, said.stderr)
        return found

    return inspected


def test_schemas_that_every_client_takes(inspect: Callable[..., Any]) -> None:
    tools = inspect("tools/list", "--strict")["tools"]
    assert {tool["name"] for tool in tools} == {"schema", "find", "query", "match", "evidence"}
    assert all(tool["outputSchema"] and tool["annotations"]["readOnlyHint"] for tool in tools)


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("schema", "tokens=100"),
        ("find", "name=Nepal"),
        ("query", "program=Find(Manaslu) QueryAttr(height)"),
        ("match", "pattern=(UNKNOWN x) -[capital]-> (UNKNOWN y)"),
        ("evidence", "program=Find(Manaslu) QueryAttr(height)"),
    ],
)
def test_results_are_what_the_schemas_say(inspect: Callable[..., Any], tool: str, argument: str) -> None:
    """The inspector holds each to its schema."""
    found = inspect("tools/call", "--tool-name", tool, "--tool-arg", argument)
    assert not found.get("isError"), found
    assert found["structuredContent"] == json.loads(found["content"][0]["text"])


@pytest.mark.parametrize(
    ("argument", "code"),
    [("program=Find(Nepall) Count()", "unknown-name"), ("progam=FindAll()", "option"), ("program=Find((", "parse")],
)
def test_errors_are_ours(inspect: Callable[..., Any], argument: str, code: str) -> None:
    found = inspect("tools/call", "--tool-name", "query", "--tool-arg", argument)
    assert found["isError"]
    assert found["content"][0]["text"].startswith(f"error[{code}]")
    assert json.loads(found["content"][1]["text"])["error"]["code"] == code


def test_resources(inspect: Callable[..., Any]) -> None:
    found = {one["uri"] for one in inspect("resources/list")["resources"]}
    assert found == {"condgraph://schema", "condgraph://schema.json", "condgraph://guide"}
    for uri in found:
        assert inspect("resources/read", "--uri", uri)["contents"][0]["text"]
