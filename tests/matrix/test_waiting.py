"""Several processes load at once, each waiting for the others: all succeed, in every store, and the
graph is what one makes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import OptionError
from condgraph.graph import Graph
from tests.support.lanes import by_lane
from tests.support.world import contents

pytestmark = pytest.mark.xdist_group("neo4j")
LOADERS = by_lane(2, 4, 4)
ROUNDS = by_lane(1, 1, 4)
SCRIPT = textwrap.dedent(
    """
    import json, sys, condgraph
    place, options, file, name = json.loads(sys.argv[1])
    graph = condgraph.open(place, graph="waiting", **options)
    print("ready", flush=True)
    sys.stdin.readline()
    report = graph.load(file, name=name, key="name", wait=200)
    print(json.dumps([report.sources, report.statements]), flush=True)
    """
)


def race(place: str, options: dict[str, Any], files: list[tuple[Path, str]]) -> None:
    """Load the files, each in a process of its own, all at once."""
    processes = []
    for file, name in files:
        command = [sys.executable, "-c", SCRIPT, json.dumps([place, options, str(file), name])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen(command, text=True, **pipes))  # type: ignore[call-overload]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, error = process.communicate(timeout=300)
        assert process.returncode == 0, error[-2_000:]
        assert json.loads(out)[1] > 0


def check(place: str, options: dict[str, Any], tmp_path: Path, loaders: int = LOADERS) -> None:
    files = []
    for number in range(loaders):
        path = tmp_path / f"people {number}.csv"
        path.write_text("name,height,knows\n" + "".join(f"p{i},{i + number},p{i + 1}\n" for i in range(number, 120)))
        files.append((path, f"people {number}"))
    for turn in range(ROUNDS):
        with opened(place, options) as graph:
            graph.delete()
        # The same file for all, into nothing; then the same into what is there; then files of their
        # own. In the gate the last two are one.
        for wanted in by_lane((files[:1] * loaders, files), every := (files[:1] * loaders, files[1:2] * loaders, files), every):
            race(place, options, wanted)
        local = condgraph.open()
        for file, name in files:
            local.load(file, name=name, key="name")
        with opened(place, options) as graph:
            found = graph.snapshot()
            assert set(contents(found)) == set(contents(local)), turn
            assert graph.status().counts["attributes"] == local.status().counts["attributes"]
            assert not graph.abandon()
            assert graph.delete()


def opened(place: str, options: dict[str, Any]) -> Graph:
    return condgraph.open(place, graph="waiting", **options)


@pytest.mark.slow
def test_on_neo4j(each_neo4j_uri: str, tmp_path: Path) -> None:
    check(each_neo4j_uri, {}, tmp_path)


@pytest.mark.slow
def test_in_a_folder(tmp_path: Path) -> None:
    check(str(tmp_path / "store"), {}, tmp_path)


def test_on_oxigraph(oxigraph_server: Any, tmp_path: Path) -> None:
    server = oxigraph_server
    check(f"sparql+{server.query}", {"update": server.update}, tmp_path)


@pytest.mark.slow
def test_on_virtuoso(virtuoso_server: Any, tmp_path: Path) -> None:
    server = virtuoso_server
    check(f"sparql+{server.query}", {"update": server.update}, tmp_path)


@pytest.mark.slow
def test_on_fuseki(fuseki_server: Any, tmp_path: Path) -> None:
    server = fuseki_server
    check(f"sparql+{server.query}", {"update": server.update}, tmp_path, loaders=2)


@pytest.mark.parametrize("wait", [-1, float("nan"), "soon"])
def test_a_wait_that_is_no_number_of_seconds(neo4j_uri: str, oxigraph_server: Any, tmp_path: Path, wait: Any) -> None:
    server = oxigraph_server
    places = (neo4j_uri, {}), (f"sparql+{server.query}", {"update": server.update}), (f"duckdb:///{tmp_path}/graphs.duckdb", {})
    for place, options in places:
        with opened(place, options) as graph, pytest.raises(OptionError, match="wait is in seconds"):
            graph.push(condgraph.open(), wait=wait)  # type: ignore[attr-defined]
