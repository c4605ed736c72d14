"""The container files say what the package has: extras, commands, ports, variables, health checks
that are waited for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))
IMAGE = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")


def test_services_wait_for_each_other() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"neo4j", "load", "condgraph"}
    assert services["neo4j"]["healthcheck"]["test"][0] == "CMD-SHELL"
    assert services["condgraph"]["depends_on"] == {
        "neo4j": {"condition": "service_healthy"},
        "load": {"condition": "service_completed_successfully"},
    }
    assert services["condgraph"]["ports"] == ["127.0.0.1:7878:7878"]
    volumes = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert volumes == set(COMPOSE["volumes"])


def test_condgraph_writes_to_its_volume_and_temporary_files_alone() -> None:
    volumes = {"/data", "/tmp"}
    for name in ("load", "condgraph"):
        service = COMPOSE["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert {volume.partition(":")[2] for volume in service["volumes"]} == {"/data"}
        assert {place.partition(":")[0] for place in service["tmpfs"]} == {"/tmp"}
    written = re.findall(r"(?:>|condgraph load) (/\S+)", COMPOSE["services"]["load"]["command"][0])
    assert written == ["/data/store", "/data/tokens"]
    assert all(any(path.startswith(f"{volume}/") for volume in volumes) for path in written)


def test_neo4j_is_a_profile() -> None:
    """A start that names no profile takes that of `.env`, which `--profile` replaces."""
    profiles = {name: service["profiles"] for name, service in COMPOSE["services"].items()}
    assert [name for name, some in profiles.items() if "neo4j" in some] == ["neo4j"]
    assert (ROOT / "docker" / ".env").read_text() == "COMPOSE_PROFILES=all\n"
    assert all("all" in some for some in profiles.values())
    assert "depends_on" not in COMPOSE["services"]["neo4j"]


def test_the_password_of_the_server_is_that_of_its_clients() -> None:
    services = COMPOSE["services"]
    password = services["condgraph"]["environment"]["NEO4J_PASSWORD"]
    assert services["neo4j"]["environment"]["NEO4J_AUTH"] == f"neo4j/{password}"


def test_the_image_installs_what_there_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.search(r"'\.\[([\w,]+)\]'", IMAGE)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    copied = re.findall(r"^COPY (.+) \S+$", IMAGE, re.M)
    assert all((ROOT / name).exists() for line in copied for name in line.split())
    base = re.search(r"^FROM python:3\.(\d+)", IMAGE, re.M)
    assert base is not None
    assert int(base[1]) >= 11
    assert "urlopen('http://127.0.0.1:7878/health'" in IMAGE


def test_what_the_containers_serve_needs_the_token_that_the_load_makes(tmp_path: Path) -> None:
    from condgraph.endpoint.guard import Guard, Tokens

    command = COMPOSE["services"]["condgraph"]["command"]
    assert command[command.index("--host") + 1] == "0.0.0.0"
    place = command[command.index("--token-file") + 1]
    lines = [line for line in COMPOSE["services"]["load"]["command"][0].splitlines() if "token" in line]
    tokens = tmp_path / "tokens"
    script = "\n".join(lines).replace("$$", "$").replace(place, str(tokens)).replace("python", sys.executable)
    for _ in range(2):  # the second start keeps it
        said = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True).stdout
        name, _, token = tokens.read_text().strip().partition(":")
        assert f"{name}:{token}" in said
    guard = Guard(Tokens.read(tokens), loopback=False)
    assert not guard.closed
    assert guard.known("10.0.0.1", f"Bearer {token}") == name


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["samples", "neo4j", "nothing"])
def test_a_load_that_fails_is_reported(broken: str, tmp_path: Path) -> None:
    """The step's own script, with the real command line: nobody answers at the server's address, or
    there is no package.
    """
    step = COMPOSE["services"]["load"]
    script = step["command"][0].replace("$$", "$").replace("/data/", f"{tmp_path}/")
    if broken == "nothing":
        script = script.replace("neo4j://", str(tmp_path / "another"))
    tools = tmp_path / "bin"
    tools.mkdir()
    python = "exit 1" if broken == "samples" else f'exec "{sys.executable}" "$@"'
    for name, line in (("python", python), ("condgraph", f'exec "{sys.executable}" -m condgraph "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "NEO4J_URI": "bolt://127.0.0.1:9", "PYTHONPATH": str(ROOT)}
    said = subprocess.run([*step["entrypoint"], script], env=environment, capture_output=True, text=True, check=False)
    assert (said.returncode == 0) == (broken == "nothing"), said.stderr
    assert (tmp_path / "store").exists() == (broken == "nothing")


def test_compose_reads_the_file_where_it_is_installed() -> None:
    """Docker's own parser, which needs no daemon for it."""
    found = shutil.which("docker")
    if found is None or subprocess.run([found, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed")
    for profile, services in ((), ["condgraph", "load", "neo4j"]), (("--profile", "neo4j"), ["neo4j"]):
        command = [found, "compose", "-f", str(ROOT / "docker" / "compose.yaml"), *profile, "config", "--services"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        assert not said.stderr
        assert sorted(said.stdout.split()) == services
