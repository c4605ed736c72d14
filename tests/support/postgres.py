"""A real PostgreSQL for tests: a cluster in a folder of its own, on a free port of the loopback address, stopped with
the process that started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers import missing, watched

#: The folders where Debian installs the programs.
_HOMES = ("/usr/lib/postgresql/*/bin",)


def program(name: str) -> str | None:
    """Return the path of a PostgreSQL program, from PATH or Debian's folder."""
    on_path = shutil.which(name)
    if on_path:
        return on_path
    paths = sorted(path for home in _HOMES for path in Path("/").glob(f"{home[1:]}/{name}"))
    return str(paths[-1]) if paths else None


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run a server with a database `test`; yield its address."""
    initdb, server = program("initdb"), program("postgres")
    if initdb is None or server is None:
        missing("there is no PostgreSQL: apt-get install postgresql")
    as_user: list[str] = []
    if os.getuid() == 0:
        # The server refuses to run as root.
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        for parent in (folder, *folder.parents):
            if parent.owner() == "root" and parent != Path("/") and parent.stat().st_mode & 0o5 != 0o5:
                parent.chmod(parent.stat().st_mode | 0o5)
        shutil.chown(folder, "postgres")
    data, port = folder / "pg", free_port()
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [*as_user, initdb, "-D", str(data), "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment,
        cwd="/",
    )
    command = [*as_user, server, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
    process = subprocess.Popen(
        watched(command),
        stdout=subprocess.DEVNULL,
        stderr=(folder / "postgres.log").open("wb"),
        env=environment,
        cwd="/",
    )
    try:
        import psycopg

        url = f"postgresql://test:a%40secret@127.0.0.1:{port}/postgres"
        until = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
                    connection.execute("CREATE DATABASE test")
                break
            except psycopg.OperationalError:
                failed = process.poll() is not None or time.monotonic() > until
                assert not failed, (folder / "postgres.log").read_text()
                time.sleep(0.1)
        yield url.removesuffix("postgres") + "test"
    finally:
        # A fast shutdown, which does not wait for clients.
        process.send_signal(signal.SIGINT)
        process.wait(20)
