"""The lanes hold: what asks a server is marked, and a test that is not and does fails, in every
lane.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.asking import serves
from tests.support.progress import ALLOWANCE, long_tests, name_of, slower

ROOT = Path(__file__).parents[1]
CONFTEST = """
import pytest
from tests.support import asking, lanes
from tests.support.asking import pytest_runtest_protocol, pytest_runtest_teardown
asking.listen()

def pytest_collection_modifyitems(items):
    lanes.mark(items)

@pytest.fixture(scope="module")
def shared_server():
    from http.server import HTTPServer
    with HTTPServer(("127.0.0.1", 0), None):
        yield

@pytest.fixture(params=["memory", pytest.param("server", marks=pytest.mark.service)])
def store(request):
    return request.param == "memory" or request.getfixturevalue("shared_server")
"""
TESTS = """
import contextlib, socket, subprocess, sys, threading
import pytest

def test_plain(tmp_path):
    with socket.socket(socket.AF_UNIX) as inside:
        inside.bind(str(tmp_path / "socket"))
    subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)

def test_fixture(shared_server):
    pass

def test_params(store):
    pass

@pytest.mark.service
def test_marked():
    socket.create_server(("127.0.0.1", 0)).close()

def test_bare_socket():
    socket.create_server(("127.0.0.1", 0)).close()

def test_by_name_of_the_fixture(request):
    request.getfixturevalue("shared_server")

def test_in_a_thread():
    thread = threading.Thread(target=lambda: socket.create_server(("::1", 0), family=socket.AF_INET6))
    thread.start()
    thread.join()

def test_somebody_caught_it():
    with contextlib.suppress(Exception):
        socket.create_server(("127.0.0.1", 0))

def test_a_program():
    subprocess.Popen([sys.executable, "-m", "condgraph", "serve", "-d", "nothing"])
"""
GOOD = {"test_plain", "test_fixture", "test_params[memory]", "test_params[server]", "test_marked"}
BAD = {"test_bare_socket", "test_by_name_of_the_fixture", "test_in_a_thread", "test_somebody_caught_it", "test_a_program"}


def lane(folder: Path, *arguments: str) -> tuple[set[str], set[str]]:
    """Which tests of a folder end well in a lane, and which do not."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_some.py").write_text(TESTS)
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\nmarkers =\n    service: asks a server\n")
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, env=environment, cwd=folder)
    ends: dict[str, set[str]] = {"PASSED": set(), "FAILED": set(), "ERROR": set()}
    for line in ran.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in ends:
            ends[word].add(rest.split(" - ")[0].partition("::")[2])
    bad = ends["FAILED"] | ends["ERROR"]
    assert ends["PASSED"] | bad, ran.stdout + ran.stderr
    return ends["PASSED"] - bad, bad


@pytest.mark.slow
def test_every_lane_finds_servers_that_are_not_marked(tmp_path: Path) -> None:
    good, bad = lane(tmp_path)
    # A server that an earlier test started, and marked, is not started again: the quick lane, in
    # which that test does not run, finds who else takes it.
    assert good == GOOD | {"test_by_name_of_the_fixture"}
    assert bad == BAD - {"test_by_name_of_the_fixture"}


def test_the_quick_lane_starts_none(tmp_path: Path) -> None:
    good, bad = lane(tmp_path, "-m", "not service")
    assert good == {"test_plain", "test_params[memory]"}
    assert bad == BAD


@pytest.mark.parametrize(
    ("command", "whether"),
    [
        (["/usr/bin/virtuoso-t", "+wait"], True),
        (["python", "tools/neo4j_server.py", "--light"], True),
        (["python", "-m", "condgraph", "serve", "--port", "0"], True),
        ("python -m http.server 8000", True),
        (["python", "-m", "condgraph", "query", "-d", "observed", "Find(server) What()"], False),
        (["curl", "http://127.0.0.1/server"], False),
    ],
)
def test_commands_that_serve(command: list[str] | str, whether: bool) -> None:
    assert serves(command) is whether


def test_a_file_that_grew_is_named() -> None:
    recorded = {f"tests/test_{number}.py": 10.0 for number in range(9)}
    slow = recorded | {"tests/test_3.py": 11 + ALLOWANCE, "tests/test_new.py": 1 + ALLOWANCE, "tests/test_small.py": ALLOWANCE - 1}
    assert [line.split()[0] for line in slower(slow, recorded)] == ["tests/test_3.py", "tests/test_new.py"]
    assert not slower(slow, recorded, allowances=2)
    # On a machine that is half as fast, twice the time is the same.
    twice = {file: 2 * took for file, took in recorded.items()}
    assert not slower(twice | {"tests/test_3.py": 40.0}, recorded)
    assert slower(twice | {"tests/test_3.py": 90.0}, recorded)


def test_long_tests_are_those_with_a_long_case() -> None:
    assert name_of("tests/test_a.py::test_b[one::two]@neo4j") == "tests/test_a.py::test_b"
    assert name_of("tests/test_a.py::Test::test_b@neo4j native") == "tests/test_a.py::Test::test_b"
    assert all(Path(ROOT, name.partition("::")[0]).exists() for name in long_tests())
