"""A real Neo4j for the tests, one of each version for all workers of a run.

It is, in this order: the server at `NEO4J_URI` (or `NEO4J_URL`); a server started from Maven's jars
(`tools/neo4j_server.py`); a container, if there is a Docker engine. `CONDGRAPH_NEO4J` gives the version to start (5.26
LTS by default). Without any of these the tests are skipped with the reason; with `CONDGRAPH_SERVICES=1` (set in CI)
they fail. The run ends with a line that says which server was used.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.graph import Graph
from condgraph.remote_neo4j import Neo4jGraph
from tests.support.asking import asks
from tests.support.progress import starting
from tests.support.servers import TOOLS, watched

TOOL = TOOLS / "neo4j_server.py"


def _run() -> int:
    """Return the id of the process that all workers of a run belong to."""
    return os.getppid() if os.environ.get("PYTEST_XDIST_WORKER") else os.getpid()


def _root() -> Path:
    """Return a folder that all workers of a run share, and that no other run removes."""
    root = Path(tempfile.gettempdir()) / f"condgraph-neo4j-run-{_run()}"
    root.mkdir(mode=0o700, exist_ok=True)
    return root


def shared_server(version: str, purpose: str = "") -> dict[str, Any]:
    """Return the record (`uri`, `http`, `kind`) of the run's server of a version, started by the first worker; of a
    further server if a `purpose` is given.
    """
    asks(f"Neo4j {version}")
    root = _root()
    name = f"{version}-{purpose}" if purpose else version
    path = root / f"{name}.json"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with starting(f"Neo4j {version} to start, the first time its jars from Maven Central"):
                path.write_text(json.dumps(_start(version, root, name)))
    record: dict[str, Any] = json.loads(path.read_text())
    if "error" in record:
        if os.environ.get("CONDGRAPH_SERVICES"):
            pytest.fail(f"no Neo4j {version}: {record['error']}")
        pytest.skip(f"no Neo4j {version}: {record['error']}")
    return record


def _start(version: str, root: Path, name: str) -> dict[str, Any]:
    # The server and its folder live until the run ends, not only until the first worker ends.
    log = root / f"{name}.log"
    command = watched([sys.executable, str(TOOL), "--version", version, "--light", "--json"], beside=_run(), remove=root)
    with log.open("w") as out:
        tool = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 300
    while time.monotonic() < until:
        text = log.read_text()
        if text.endswith("}\n"):
            return json.loads(text.splitlines()[-1]) | {"pid": tool.pid, "kind": "started from Maven's jars"}
        if tool.poll() is not None:
            return _container(version) or {"error": text.strip()}
        time.sleep(0.1)
    tool.terminate()
    return {"error": "it did not start within five minutes"}


def _container(version: str) -> dict[str, Any] | None:
    """Start the server in a container, if there is a Docker engine."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        return None
    command = [docker, "run", "--rm", "-d", "-p", "127.0.0.1::7687", "-p", "127.0.0.1::7474", "-e", "NEO4J_AUTH=none"]
    started = subprocess.run([*command, f"neo4j:{version}-community"], capture_output=True, text=True, check=False)
    if started.returncode:
        return {"error": started.stderr.strip()}
    container = started.stdout.strip()
    # The container belongs to the engine, not to this process, so a watcher stops it after the run.
    subprocess.Popen(watched([docker, "stop", container], beside=_run(), instead=True), start_new_session=True)
    ports = {}
    for port in ("7687", "7474"):
        address = subprocess.run([docker, "port", container, port], capture_output=True, text=True, check=True).stdout
        ports[port] = address.split()[0]
    import neo4j

    uri, until = f"bolt://{ports['7687']}", time.monotonic() + 120
    while time.monotonic() < until:
        try:
            with neo4j.GraphDatabase.driver(uri) as driver:
                driver.verify_connectivity()
            return {"uri": uri, "http": f"http://{ports['7474']}", "container": container, "kind": "in a container"}
        except neo4j.exceptions.DriverError:
            time.sleep(0.5)
    return {"error": f"container {container} does not answer", "container": container}


def stop_all() -> list[str]:
    """Stop the servers of the run after all workers are done; return a line about each."""
    root = _root()
    lines = []
    for path in sorted(root.glob("*.json")):
        record = json.loads(path.read_text())
        if "container" in record:
            subprocess.run(["docker", "stop", record["container"]], capture_output=True, check=False)
        elif "pid" in record:
            _end(record["pid"])
        if "uri" in record:
            lines.append(f"Neo4j {path.stem}: {record['uri']}, {record['kind']}")
    shutil.rmtree(root, ignore_errors=True)
    return lines


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
        # This process cannot wait for the child of a worker.
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            os.kill(pid, 0)
            time.sleep(0.1)
    except ProcessLookupError:
        return


def _given() -> str | None:
    return os.environ.get("NEO4J_URI") or os.environ.get("NEO4J_URL")


@pytest.fixture(scope="session")
def neo4j_version() -> str:
    """The version to start if no address is given."""
    from neo4j_server import CURRENT, LTS

    return {"lts": LTS, "current": CURRENT}.get(version := os.environ.get("CONDGRAPH_NEO4J") or LTS, version)


@pytest.fixture(scope="session")
def neo4j_uri(neo4j_version: str) -> str:
    """The address of a running server."""
    return _given() or shared_server(neo4j_version)["uri"]


@pytest.fixture(scope="session", params=["lts", pytest.param("current", marks=pytest.mark.slow)])
def each_neo4j_uri(request: pytest.FixtureRequest) -> str:
    """The address of a server of each supported version, or of the given server only."""
    from neo4j_server import CURRENT, LTS

    if _given():
        if request.param != "lts":
            pytest.skip("NEO4J_URI says which server is tested")
        return _given() or ""
    return shared_server(LTS if request.param == "lts" else CURRENT)["uri"]


@pytest.fixture(scope="session")
def emptied_neo4j_uri(neo4j_version: str) -> str:
    """The address of a server for tests of complete databases (`tests.support.native_databases`), which empty it; never
    a server given by the user.
    """
    return shared_server(neo4j_version, "emptied")["uri"]


@contextmanager
def pushed(local: Graph, uri: str, name: str) -> Iterator[tuple[Graph, Neo4jGraph]]:
    """Yield a graph, and a copy of it on a server under a name of its own, which is deleted at the end."""
    with condgraph.open(uri, graph=name) as remote:
        assert isinstance(remote, Neo4jGraph)
        remote.store.delete()
        remote.push(local)
        yield local, remote
        remote.store.delete()
