"""A server ends with the process that started it, however that ends; one that several share, with
the run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers import TOOLS, watched

#: Starts a server as the tests do, says its process and folder, and waits.
OWNER = """
    import json, sys
    sys.path.insert(0, TOOLS)
    from service import Service, answers, free_port

    class Cheap(Service):
        def start(self):
            port = free_port()
            command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
            self.launch(command, ready=lambda: answers(f"http://127.0.0.1:{port}/"), wait=60)

    server = Cheap()
"""
STARTED = """
    server.start()
    print(json.dumps([server.pid, str(server.home)]), flush=True)
    sys.stdin.read()
"""
#: The same within a test that pytest runs.
TEST = """
    def test_it(capfd):
        with capfd.disabled():
            server.start()
            print(json.dumps([server.pid, str(server.home)]), flush=True)
            sys.stdin.read()
"""
#: Starts what it is given, says its process, and waits.
WORKER = """
    import subprocess, sys
    print(subprocess.Popen(sys.argv[1:], start_new_session=True).pid, flush=True)
    sys.stdin.read()
"""
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(100)"]


def program(*parts: str) -> str:
    return "".join(map(textwrap.dedent, parts)).replace("TOOLS", repr(str(TOOLS)))


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing, and is gone at the end."""
    with subprocess.Popen(SLEEP) as process:
        try:
            yield process
        finally:
            process.kill()


def owner(command: list[str], **options: object) -> tuple[subprocess.Popen[str], int, Path]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and not line.lstrip(".").startswith("["):
        line = process.stdout.readline()
    pid, home = json.loads(line.lstrip("."))
    return process, pid, Path(home)


@pytest.mark.service
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_server_ends_with_its_process(number: signal.Signals) -> None:
    process, pid, home = owner([sys.executable, "-c", program(OWNER, STARTED)])
    with process:
        assert runs(pid)
        assert (home / "console.log").exists()
        process.send_signal(number)
        process.wait()
        assert eventually(lambda: not runs(pid))
        assert eventually(lambda: not home.exists())


@pytest.mark.service
def test_a_server_ends_with_the_run_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(program(OWNER, TEST))
    (tmp_path / "pytest.ini").touch()
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    process, pid, home = owner(command, env=environment, cwd=tmp_path)
    with process:
        assert runs(pid)
        process.kill()
        assert eventually(lambda: not runs(pid))
        assert eventually(lambda: not home.exists())


def test_a_shared_process_outlives_the_worker_that_started_it(tmp_path: Path) -> None:
    """A run with a worker that starts what belongs to the run."""
    folder = tmp_path / "shared"
    folder.mkdir()
    with sleeping() as run:
        command = watched(SLEEP, beside=run.pid, remove=folder)
        worker = [sys.executable, "-S", "-c", program(WORKER), *command]
        with subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
            assert started.stdout is not None
            pid = int(started.stdout.readline())
            assert eventually(lambda: "watched.py" not in Path(f"/proc/{pid}/cmdline").read_text())
            started.kill()
        time.sleep(0.5)
        assert runs(pid)
        assert folder.exists()
        run.kill()
    assert eventually(lambda: not runs(pid))
    assert eventually(lambda: not folder.exists())


def test_who_does_not_go_is_killed() -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(100)"
    with sleeping() as run:
        command = watched([sys.executable, "-S", "-c", stubborn], beside=run.pid, grace=0.2)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            run.kill()
            assert process.wait(60) == -signal.SIGKILL


def test_it_is_the_command_itself() -> None:
    """Its number, its pipes and its exit code are the command's, and nobody holds the pipes
    longer.
    """
    code = "import os, sys; print(os.getpid(), sys.stdin.read()); sys.exit(7)"
    with subprocess.Popen(
        watched([sys.executable, "-S", "-c", code]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.communicate("given", timeout=60)[0] == f"{process.pid} given\n"
        assert process.returncode == 7


def test_what_is_done_instead(tmp_path: Path) -> None:
    with sleeping() as run:
        subprocess.Popen(watched(["mkdir", str(tmp_path / "done")], beside=run.pid, instead=True)).returncode = 0
        time.sleep(0.5)
        assert not (tmp_path / "done").exists()
        run.kill()
    assert eventually((tmp_path / "done").exists)


def test_who_is_gone_already_starts_nothing() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "pass"]) as gone:
        gone.wait()
    done = subprocess.run(watched(["echo", "up"], beside=gone.pid), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no process" in done.stderr
